"""Parse the reply of a judge: from its text to one reading per criterion. Pure; never raises on any text.

The ladder of parsers, from the top: a JSON object that is the whole reply; the same after small syntax errors are
repaired; JSON objects inside prose or a code fence; members of a broken or cut-off object; tagged text
(``[RESULT] 3 [END]``, ``<answer>``, ``Score: 3``, a bare ``3/4``); a number in words that is the whole reply; unparsed.
The first rung that finds an answer to any criterion is used for all criteria. If one rung finds two different answers
to one criterion, neither is used. A quotation from the rated text is not an answer: an object or a line that is also in
the rated text, or that the reply presents as another person's words, counts only if it is the whole reply. If a model
says in plain text that it does not rate, this is a refusal. A missing score is never replaced by a default. ``coerced``
names every correction that was needed to read an answer; for a reading without a score, ``reason`` names the rung and
quotes what was found there.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from accounts.inputs import storable
from judging.prompts import NOT_APPLICABLE, CriterionBrief, PromptVariant, check
from judging.reply_words import number_in_words, refusal_in

Status = Literal["ok", "unparsed", "out_of_range", "refused", "truncated", "error"]

VERDICTS_TOOL: Final = "verdicts"
"""The name of the tool that a judge is asked to call if its model accepts no other form of a reply."""
_ENDED: Final = frozenset({"stop", "tool_calls"})
CUT_OFF: Final = frozenset({"length", "max_tokens", "max_output_tokens"})
_SCORE_FIELDS: Final = ("score", "rating", "grade", "label", "answer", "result")
_SCORE_WORDS: Final = (
    *(
        "评分",
        "評分",
        "分数",
        "分數",
        "得分",
        "スコア",
        "点数",
        "評価",
        "оценка",
        "балл",
        "التقييم",
        "الدرجة",
        "التقدير",
    ),
    *(
        "puntuación",
        "calificación",
        "valoración",
        "nota",
        "hinne",
        "hinnang",
        "skoor",
        "अंक",
        "स्कोर",
        "note",
        "bewertung",
    ),
)
"""What stands before a number in words, in the languages of replies."""
_RATIONALE_FIELDS: Final = ("rationale", "explanation", "justification", "comment", "feedback", "reasoning", "reason")
_NA_SPELLINGS: Final = frozenset({"n/a", "na", "n.a.", "n.a", "not applicable"})
# Braces that open nothing readable are given up on after this many, so that no reply costs quadratic time.
_FAILED_STARTS: Final = 200

_LINES: Final = re.IGNORECASE | re.MULTILINE
NUMBER: Final = r"[-+]?\d{1,12}(?:\.\d{1,12})?"
_AS_TEXT: Final = re.compile(rf"({NUMBER})(?:\s*(?:/|out of)\s*({NUMBER}))?", re.IGNORECASE)
_THINKING: Final = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_TAGS: Final = (
    re.compile(r"\[RESULT\](.*?)(?:\[END\]|\[|\n|\Z)", re.DOTALL),
    re.compile(r"<(?:answer|score|rating|grade)>([^<]{0,200})</(?:answer|score|rating|grade)>", re.IGNORECASE),
)
_OPENS_AS_OBJECT: Final = re.compile(r"\s*(?:```\w{0,10}\s*)?\{")
_RATIONALE_OPENS: Final = re.compile(r"\[FEEDBACK\]|<(?:justification|explanation|rationale|feedback)>", re.IGNORECASE)
_RATIONALE_CLOSES: Final = re.compile(r"\[RESULT\]|</(?:justification|explanation|rationale|feedback)>", re.IGNORECASE)
# "Score: 3", "**Score**: 3/4". What follows must end the number: no range, percentage, list or decimal comma.
_LINE_VALUE: Final = (
    rf"\s*[:=][\s*_\"'`(\[]{{0,4}}?(n/a\b|{NUMBER}(?:\s*(?:/|out of)\s*{NUMBER})?)"
    r"(?![\w%|/])(?![.,]\d)(?!\s*(?:[%|/]|[-\u2013\u2014~]\s*\d|(?:to|or|out|/)\b))"
)
_SCORED_LINE: Final = re.compile(rf"\w{_LINE_VALUE}|\[RESULT\]|</(?:answer|score|rating|grade)>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Conflict:
    """Replaces a value if one object has the same key with different values."""

    values: tuple[Any, ...]


LONGEST_FOUND: Final = 120  # characters of what stood there


@dataclass(frozen=True, slots=True)
class NoScore:
    """Why a reply gives no score on a criterion: a ``code`` (`reading_reasons.SENTENCES`), the ``rung`` of the ladder
    on which it was looked for last, and what was ``found`` there."""

    code: str
    rung: str = ""
    found: str = ""

    @property
    def stored(self) -> dict[str, str]:
        """As JSON, fit for the database."""
        found = storable(self.found)
        found = found if len(found) <= LONGEST_FOUND else f"{found[: LONGEST_FOUND - 1]}…"
        return {"code": self.code, "rung": self.rung, "found": found}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reply says on one criterion.

    ``score`` is a number for ``ok`` (unless ``applicable`` is false) and for ``out_of_range``, else ``None``.
    ``fractional`` marks an ordinal score between two points. ``coerced`` names, comma-separated, what had to be bent
    to read it: where it stood (mended, prose, broken, tagged, words, wrapped, key, field, flat) and how it was written
    (text, decimal, ratio, label, spelling); ``repaired`` when the model was asked once more. ``expected`` and
    ``confidence`` come from the probabilities of the score's token, see ``weighed``. ``reason``: why there is no score
    on the scale.
    """

    criterion: str
    status: Status
    score: float | None = None
    applicable: bool = True
    rationale: str = ""
    coerced: str | None = None
    fractional: bool = False
    expected: float | None = None
    confidence: float | None = None
    reason: NoScore | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class _Offer:
    """A candidate value for one criterion, before it is compared with the scale.

    A ``doubtful`` value seems to be a quotation: it can contradict another value, but is never used alone.
    """

    value: Any
    rationale: str = ""
    bent: tuple[str, ...] = ()
    doubtful: bool = False

    @property
    def rung(self) -> str:
        """The rung of the ladder on which it stood."""
        return self.bent[0] if self.bent and self.bent[0] in _RUNGS else "object"


_RUNGS: Final = ("mended", "prose", "broken", "tagged", "words")


def parse(
    text: str,
    *,
    criteria: Sequence[CriterionBrief],
    variant: PromptVariant,
    finish_reason: str | None = None,
    refusal: str | None = None,
    material: str = "",
    language: str = "",
) -> list[Reading]:
    """One reading per criterion, in the order asked. ``material`` is the rated text, as the judge was shown it, and
    ``language`` its language.

    Raises only for criteria that ``prompts.render`` would refuse.
    """
    check(criteria, variant)
    if refusal or finish_reason == "content_filter":
        why = NoScore("refusal", "provider", refusal) if refusal else NoScore("content_filter", "provider")
        return _all(criteria, "refused", why, rationale=refusal or "")
    cut_off = finish_reason in CUT_OFF
    thought = _without_thinking(text)
    answer = _without_quotations(thought, material)
    if cut_off and not _OPENS_AS_OBJECT.match(answer):
        # Cut off while it was still weighing: what it had come to by then is no answer.
        return _all(criteria, "truncated", NoScore("cut_off", "text", _beginning(text)))
    climbed = _climb(answer, criteria, variant, cut_off, ended=finish_reason in _ENDED, language=language)
    readings = [
        _agreed(criterion, offers, [_settle(criterion, offer) for offer in offers])
        for criterion, offers in zip(criteria, climbed.offers, strict=True)
    ]
    may_refuse = not cut_off and (not climbed.broken or all(reading.status != "ok" for reading in readings))
    if may_refuse and (sentence := refusal_in(climbed.words, material)):
        return _all(criteria, "refused", NoScore("refusal", "text", sentence), rationale=sentence)
    removed = "" if answer == thought else _beginning(thought)
    return [
        reading if reading.status not in ("unparsed", "refused") else _explained(reading, criterion, climbed, removed)
        for reading, criterion in zip(
            [_cut(reading, climbed) if cut_off else reading for reading in readings], criteria, strict=True
        )
    ]


def _all(criteria: Sequence[CriterionBrief], status: Status, why: NoScore, rationale: str = "") -> list[Reading]:
    return [Reading(criterion.key, status, rationale=storable(rationale), reason=why) for criterion in criteria]


def _cut(reading: Reading, climbed: _Climbed) -> Reading:
    """The reading of a reply that was cut off: if it can't be read, the cut is the reason for the missing score."""
    if reading.status != "unparsed":
        return reading
    stood = (reading.reason.rung, reading.reason.found) if reading.reason else (climbed.rung, _beginning(climbed.text))
    return replace(reading, status="truncated", reason=NoScore("cut_off", *stood))


def _beginning(text: str) -> str:
    return " ".join(text[: 4 * LONGEST_FOUND].split())[:LONGEST_FOUND]


@dataclass(frozen=True, slots=True)
class _Climbed:
    """The offers for each criterion on the first rung that has any.

    ``keys``: the keys in the objects of the reply, if it has any; ``words``: the text of the reply without the objects.
    """

    offers: list[list[_Offer]]
    rung: str
    text: str
    words: str
    keys: tuple[str, ...] = ()
    broken: bool = False


def _climb(
    text: str,
    criteria: Sequence[CriterionBrief],
    variant: PromptVariant,
    cut_off: bool,
    *,
    ended: bool,
    language: str,
) -> _Climbed:
    """Try the rungs in order. A reply with objects is never read as text. Only a complete reply is repaired, because
    the missing part of an incomplete reply may change the answer.
    """
    single = variant.grouping == "single"
    spans, broken = _spans(text)
    whole = _is_whole(text, spans, broken)
    words = "" if whole else _outside(text, spans)
    bent: tuple[str, ...] = () if whole else ("prose",)
    if broken and ended and (mended := _mended(text)) is not None:
        spans, whole, broken, bent, words = [(mended, 0, len(text))], True, False, ("mended",), ""
    telling = [
        span for span in spans if any(True for each in criteria for _ in _in_object(span[0], each, single, bent))
    ]
    quoted = [] if whole else [(at, end) for _members, at, end in telling[:_MOST_HITS] if _is_mentioned(text, at, end)]
    offers_by_criterion = [
        [
            replace(offer, doubtful=(start, end) in quoted)
            for members, start, end in telling[:_MOST_HITS]
            for offer in _in_object(members, criterion, single, bent)
        ]
        + [_Offer(None, bent=bent)] * (len(telling) > _MOST_HITS)  # so many scores are nobody's
        for criterion in criteria
    ]
    if broken:
        # An object found beside broken braces may be a quotation inside a string, so the members get a say too.
        for offers, criterion in zip(offers_by_criterion, criteria, strict=True):
            offers.extend(_loose_members(text, criterion, single, quoted))
    if not whole:
        # Whoever writes a verdict beside the object may only have quoted that.
        for offers, criterion in zip(offers_by_criterion, criteria, strict=True):
            offers.extend(_stated(text, spans, criterion) if offers else ())
    if spans or any(offers_by_criterion):
        rung = "broken" if broken else bent[0] if bent else "object"
        keys = tuple(str(key) for members, _start, _end in spans[:5] for key in list(members)[:10])
        return _Climbed(offers_by_criterion, rung, text, words, keys, broken)
    alone = len(criteria) == 1
    tagged = [
        list(_tagged(text, criterion, alone=alone, cut_off=cut_off, languages=(language, variant.instruction_language)))
        for criterion in criteria
    ]
    return _Climbed(tagged, "broken" if broken else "tagged" if any(tagged) else "text", text, words, broken=broken)


def _agreed(criterion: CriterionBrief, offers: Sequence[_Offer], readings: Sequence[Reading]) -> Reading:
    """The reading on which all offers agree; unparsed if there are no offers, they differ, or all seem to be quoted."""
    if not readings:
        return Reading(criterion.key, "unparsed")
    shown = list(dict.fromkeys(_shown(offer.value) for offer in offers))
    if len({(reading.status, reading.score, reading.applicable) for reading in readings}) > 1:
        why = NoScore("differing", offers[0].rung, ", ".join(shown[:6]))
        return Reading(criterion.key, "unparsed", reason=why)
    if all(offer.doubtful for offer in offers):
        return Reading(criterion.key, "unparsed", reason=NoScore("quoted", offers[0].rung, shown[0]))
    return readings[0]


def _explained(reading: Reading, criterion: CriterionBrief, climbed: _Climbed, removed: str) -> Reading:
    """The unreadable reading with the reason why nothing was offered for its criterion, unless it has one."""
    if reading.reason is not None:
        return reading
    if not climbed.text.strip():
        why = NoScore("quoted", "text", removed) if removed else NoScore("empty", "text")
    elif climbed.keys:
        why = NoScore("not_named", climbed.rung, ", ".join(dict.fromkeys(climbed.keys)))
    elif climbed.broken:
        why = NoScore("broken", "broken", _beginning(climbed.text[climbed.text.find("{") :]))
    elif line := _doubtful_line(climbed.text, criterion):
        why = NoScore("not_a_score", "tagged", line)
    elif removed:
        why = NoScore("quoted", "text", removed)
    else:
        why = NoScore("nothing", climbed.rung, _beginning(climbed.text))
    return replace(reading, reason=why)


def _doubtful_line(text: str, criterion: CriterionBrief) -> str:
    """The first line that names the criterion, or a score, and has something behind a colon."""
    names = "|".join(re.escape(name) for name in (criterion.key, criterion.name, *_SCORE_FIELDS) if name)
    line = re.search(rf"^\W{{0,8}}(?:(?:final|overall|my) )?(?:{names})\W{{0,8}}[:=].{{1,200}}", text, _LINES)
    return " ".join(line[0].split()) if line else ""


def _shown(value: Any) -> str:
    """A value as it is named in a reason."""
    if isinstance(value, _Conflict):
        return ", ".join(_shown(each) for each in value.values[:6])
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str):
        return value[:LONGEST_FOUND]
    try:
        return json.dumps(value, ensure_ascii=False, default=_shown)[:LONGEST_FOUND]
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__


# --- The text of a stored reply ---------------------------------------------------------------------------------------


def reply_text(reply: Mapping[str, Any], answer: Mapping[str, Any] | None = None) -> str:
    """The text of a stored reply, for people to read: of its ``answer``, which rows of before it was stored have not.

    An imported one is the text itself. Its answer, else its refusal, else its reasoning; without any, the finish reason
    in parentheses. A reply of another shape is shown as JSON; without a reply the text is empty.
    """
    if answer:
        kept = (answer.get(name, "") for name in ("text", "refusal", "reasoning"))
        return next((text for text in kept if text.strip()), f"({answer.get('finish_reason')})")
    if isinstance(imported := reply.get("imported"), str):
        return imported
    try:
        choice = reply["choices"][0]
        texts = [choice["message"].get(part) for part in ("refusal", "reasoning_content", "reasoning")]
        texts.insert(0, answer_text(choice["message"]))
        finish_reason = f"({choice.get('finish_reason')})"
    except (LookupError, TypeError, AttributeError):
        return json.dumps(reply, ensure_ascii=False, indent=2) if reply else ""
    return next((text for text in texts if isinstance(text, str) and text.strip()), finish_reason)


def answer_text(message: Mapping[str, Any]) -> str:
    """The answer in a message: what it calls our tool with, else its content, else what it calls another tool with.

    Words beside a call of our tool are no answer.
    """
    name, arguments = _tool_call(message)
    content = plain_text(message.get("content"))
    if arguments and (name == VERDICTS_TOOL or not content.strip()):
        return arguments
    return content


def plain_text(value: Any) -> str:
    """A text, or the joined texts of content in parts; empty for anything else."""
    if isinstance(value, list):
        return "".join(plain_text(part.get("text")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""


def _tool_call(message: Mapping[str, Any]) -> tuple[str, str]:
    """The name of the first tool that a message calls, and what it is called with, as text; empty without any."""
    try:
        function = message["tool_calls"][0]["function"]
        name, arguments = plain_text(function.get("name")), function["arguments"]
    except (LookupError, TypeError, AttributeError):
        return "", ""
    text = json.dumps(arguments, ensure_ascii=False) if isinstance(arguments, dict) else plain_text(arguments)
    return name, "" if text.strip() in ("", "{}") else text


# --- From an offer to a reading -------------------------------------------------------------------------------------


def _settle(criterion: CriterionBrief, offer: _Offer) -> Reading:
    """Compare an offered value with the criterion's scale."""
    score, written = _value(offer.value, criterion)
    bent = ",".join((*offer.bent, *written)) or None
    reading = Reading(criterion.key, "unparsed", rationale=storable(offer.rationale), coerced=bent)
    shown = _shown(offer.value)
    if score == NOT_APPLICABLE:
        if criterion.allows_na:
            return replace(reading, status="ok", applicable=False)
        return replace(reading, coerced=None, reason=NoScore("no_na", offer.rung, shown))
    if not isinstance(score, float):
        return replace(reading, coerced=None, reason=NoScore(_code(offer.value, criterion), offer.rung, shown))
    is_between_points = not criterion.is_on_scale(score)
    if not criterion.low <= score <= criterion.high or (is_between_points and criterion.level == "nominal"):
        return replace(reading, status="out_of_range", score=score, reason=NoScore("off_scale", offer.rung, shown))
    return replace(reading, status="ok", score=score, fractional=is_between_points and criterion.level == "ordinal")


def _code(value: Any, criterion: CriterionBrief) -> str:
    """The code of the reason why a value is not a score."""
    if isinstance(value, _Conflict):
        return "differing"
    if value is None:
        return "no_member"
    written = _AS_TEXT.fullmatch(value.strip()) if isinstance(value, str) else None
    return "another_scale" if written and written[2] and float(written[2]) != criterion.high else "not_a_score"


def _value(value: Any, criterion: CriterionBrief) -> tuple[float | str | None, tuple[str, ...]]:
    """The number (or N/A) that a JSON value means, with the corrections that were needed; ``None`` if it means none."""
    if isinstance(value, bool):
        return None, ()
    if isinstance(value, int | float):
        return _from_number(value, criterion)
    if isinstance(value, str):
        return _from_text(value.strip(), criterion)
    return None, ()


def _from_number(value: float, criterion: CriterionBrief) -> tuple[float | None, tuple[str, ...]]:
    number = float(value) if abs(value) < 1e15 else math.inf
    if not math.isfinite(number):
        return None, ()
    whole_points = all(float(point.value).is_integer() for point in criterion.points)
    decimal = isinstance(value, float) and number.is_integer() and whole_points
    return number, ("decimal",) if decimal else ()


def _from_text(text: str, criterion: CriterionBrief) -> tuple[float | str | None, tuple[str, ...]]:
    if text == NOT_APPLICABLE:
        return NOT_APPLICABLE, ()
    if written := _AS_TEXT.fullmatch(text):
        return _from_written(written, criterion)
    labelled = {point.value for point in criterion.points if point.label and point.label.casefold() == text.casefold()}
    if len(labelled) == 1:
        return float(labelled.pop()), ("label",)
    if text.casefold() in _NA_SPELLINGS:
        return NOT_APPLICABLE, ("spelling",)
    return None, ()


def _from_written(written: re.Match[str], criterion: CriterionBrief) -> tuple[float | None, tuple[str, ...]]:
    """ "3" and "3/4". A ratio counts only over this scale's own top: 3/5 on a scale to 4 is another scale's score."""
    number, over = written.groups()
    if over is None:
        return float(number), ("text",)
    return (float(number), ("ratio",)) if float(over) == criterion.high else (None, ())


# --- JSON -----------------------------------------------------------------------------------------------------------


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        earlier = members.get(key, value)
        if isinstance(earlier, _Conflict):
            members[key] = _Conflict((*earlier.values[:5], value))
        else:
            members[key] = value if earlier == value else _Conflict((earlier, value))
    return members


def _whole_number(digits: str) -> float:
    return int(digits) if len(digits) < 20 else math.inf


# strict=False lets raw line breaks stand in a rationale. NaN and Infinity are read, to spoil only their own criterion.
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_members, parse_int=_whole_number, strict=False)


def _decode(text: str, at: int) -> tuple[Any, int] | None:
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None


def _without_quotations(text: str, material: str) -> str:
    """The reply without lines marked as quoted, and without objects and scored lines that the material has too."""
    if text.startswith("{") and len(text.splitlines()) == 1 and _is_whole(text, *_spans(text)):
        return text  # one object on one line is the whole reply, whatever the material has
    kept = [line for line in text.splitlines(keepends=True) if not line.lstrip().startswith(">")]
    text = "".join(kept)
    spans = _spans(text)[0]
    shown = _squeezed(material) if spans else ""
    for _object, start, end in reversed(spans):
        if _squeezed(text[start:end]) in shown and (text[:start] + text[end:]).strip(" \n\t`"):
            text = text[:start] + text[end:]
    lines = text.splitlines(keepends=True)
    texts = {line.strip().casefold() for line in material.splitlines() if line.strip()}
    own = [line for line in lines if not (_SCORED_LINE.search(line) and line.strip().casefold() in texts)]
    return "".join(own) if "".join(own).strip() else text


def _squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _spans(text: str) -> tuple[list[tuple[dict[str, Any], int, int]], bool]:
    """The outermost JSON objects of a text and where they stand; whether some brace opened none."""
    spans, failed, at = [], 0, text.find("{")
    while at != -1 and failed < _FAILED_STARTS:
        decoded = _decode(text, at)
        if decoded is None:
            failed, end = failed + 1, at + 1
        else:
            end = decoded[1]
            spans.append((decoded[0], at, end))
        at = text.find("{", end)
    return spans, failed > 0


def _is_whole(text: str, spans: Sequence[tuple[Any, int, int]], broken: bool) -> bool:
    """Whether the text is exactly one object."""
    return len(spans) == 1 and not broken and not (text[: spans[0][1]] + text[spans[0][2] :]).strip()


def _outside(text: str, spans: Sequence[tuple[Any, int, int]]) -> str:
    """The text without these spans."""
    kept, at = [], 0
    for _object, start, end in spans:
        kept.append(text[at:start])
        at = end
    return "".join([*kept, text[at:]])


def _in_object(
    members: dict[str, Any], criterion: CriterionBrief, single: bool, bent: tuple[str, ...]
) -> Iterator[_Offer]:
    """What one object offers for a criterion: at its top, under its key, or the same one wrapper further down."""
    entry = _entry(members, criterion, single, bent)
    if entry is None and len(members) == 1:
        inner = next(iter(members.values()))
        entry = _entry(inner, criterion, single, (*bent, "wrapped")) if isinstance(inner, dict) else None
    if entry is not None:
        yield entry


def _entry(members: dict[str, Any], criterion: CriterionBrief, single: bool, bent: tuple[str, ...]) -> _Offer | None:
    name = _key(members, criterion)
    if name is not None:
        bent = bent if name == criterion.key else (*bent, "key")
        value = members[name]
        return _from_members(value, bent) if isinstance(value, dict) else _Offer(value, bent=(*bent, "flat"))
    field = _field(members, _SCORE_FIELDS)
    if single and field and not isinstance(members[field], dict):
        return _from_members(members, bent)
    return None


def _key(members: dict[str, Any], criterion: CriterionBrief) -> str | None:
    """The member that speaks of this criterion: its key, else the only one spelt like its key or name."""
    if criterion.key in members:
        return criterion.key
    spellings = {_folded(criterion.key), _folded(criterion.name)}
    alike = [name for name in members if _folded(name) in spellings]
    return alike[0] if len(alike) == 1 else None


def _from_members(members: dict[str, Any], bent: tuple[str, ...]) -> _Offer:
    field = _field(members, _SCORE_FIELDS)
    rationale = members.get(_field(members, _RATIONALE_FIELDS) or "", "")
    bent = bent if field in ("score", None) else (*bent, "field")
    return _Offer(members.get(field or ""), rationale if isinstance(rationale, str) else "", bent)


def _field(members: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """The member that goes by the first of these names, however it is cased."""
    folded = {_folded(member): member for member in reversed(members)}
    return next((folded[name] for name in names if name in folded), None)


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", name.strip().casefold())


def _loose_members(
    text: str, criterion: CriterionBrief, single: bool, quoted: Sequence[tuple[int, int]]
) -> Iterator[_Offer]:
    """Finished members of an object that itself cannot be read: cut off, or broken elsewhere.

    If very many members can't be read, none is used, because one of them may contradict the others.
    """
    names = (criterion.key, "score") if single else (criterion.key,)
    for name in dict.fromkeys(names):
        failed = 0
        for start in re.finditer(rf"{re.escape(json.dumps(name, ensure_ascii=False))}\s*+:\s*+", text):
            decoded = _decode(text, start.end())
            failed += decoded is None
            if failed > _FAILED_STARTS:
                yield _Offer(None, bent=("broken",))
                return
            # A number that nothing follows may have lost its last digits.
            if decoded is None or not re.match(r"\s*[,}\]]", text[decoded[1] : decoded[1] + 40]):
                continue
            value = decoded[0]
            bent = ("broken",)
            offer = _from_members(value, bent) if isinstance(value, dict) else _Offer(value, bent=bent)
            yield replace(offer, doubtful=any(low <= start.start() < high for low, high in quoted))


# --- An object with slips ---------------------------------------------------------------------------------------------

_QUOTES: Final = "\"'\u201c\u201d\u201e\u2018\u2019"
_CLOSED_BY: Final = {
    '"': '"',
    "'": "'",
    **dict.fromkeys("\u201c\u201d\u201e", "\u201c\u201d"),
    **dict.fromkeys("\u2018\u2019", "\u2018\u2019"),
}
# Possessive, each of them: what follows can't be matched by giving back, and trying takes seconds of some texts.
_NEXT_KEY: Final = rf"\s{{0,40}}+(?:[{_QUOTES}][^{_QUOTES}:{{}}\n]{{1,120}}+[{_QUOTES}]|[^\W\d]\w{{0,80}}+)\s{{0,40}}+:"
_AFTER_KEY: Final = re.compile(r"\s{0,40}+:")
_AFTER_NUMBER: Final = re.compile(rf"\s{{0,40}}+(?:,?\s{{0,40}}+[}}\]]|,\s{{0,40}}+\Z|,?{_NEXT_KEY})")
_AFTER_STRING: Final = re.compile(rf"{_AFTER_NUMBER.pattern}|\s{{0,40}}+\Z")
_BARE_KEY: Final = re.compile(r"[^\W\d]\w{0,80}")
_BARE_VALUE: Final = re.compile(rf"{NUMBER}|[A-Za-z]{{4,5}}")
_BACKSLASHES: Final = re.compile(r"\\{0,64}$")
_LITERALS: Final = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_LONGEST_MENDED, _DEEPEST_MENDED = 100_000, 5


class _Doubtful(Exception):
    """The text can be read in more than one way, or in none."""


def _mended(text: str) -> dict[str, Any] | None:
    """The object that is the whole reply, with its syntax errors repaired; None in any doubt.

    Repaired are: other quotation marks, keys without any, unescaped quotation marks and unknown escapes inside a
    string, a comma too many or too few, Python's literals, and closing brackets that are missing at the end. A number
    is never completed and never taken from words. (A library for this, json_repair, takes 3 of "3 or 4" and of "3%".)
    """
    text = text.strip()
    text = text[opening.end() :] if (opening := re.match(r"```\w{0,10}\s*+", text)) else text
    text = text.removesuffix("```").rstrip()
    if not text.startswith("{") or len(text) > _LONGEST_MENDED:
        return None
    try:
        return _Mender(text).whole()
    except _Doubtful:
        return None


class _Mender:
    """Reads one object from a text, from its start to its end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def whole(self) -> dict[str, Any]:
        members = self._object(1)
        self._skip(" \t\r\n")
        if self.at < len(self.text):
            raise _Doubtful
        return members

    def _object(self, depth: int) -> dict[str, Any]:
        if depth > _DEEPEST_MENDED:
            raise _Doubtful
        self.at += 1
        pairs: list[tuple[str, Any]] = []
        while True:
            self._skip(" \t\r\n")
            if self.text.startswith(",", self.at) and pairs:
                self.at += 1
                self._skip(" \t\r\n")
            if self.at >= len(self.text) or self.text[self.at] == "}":
                self.at += 1
                return _members(pairs)
            pairs.append((self._key(), self._value(depth)))

    def _key(self) -> str:
        if self.text[self.at] in _QUOTES:
            key = self._string(_AFTER_KEY)
        elif bare := _BARE_KEY.match(self.text, self.at):
            key, self.at = bare[0], bare.end()
        else:
            raise _Doubtful
        self._skip(" \t\r\n")
        if not self.text.startswith(":", self.at):
            raise _Doubtful
        self.at += 1
        self._skip(" \t\r\n")
        return key

    def _value(self, depth: int) -> Any:
        first = self.text[self.at : self.at + 1]
        if first == "{":
            return self._object(depth + 1)
        if first and first in _QUOTES:
            return self._string(_AFTER_STRING)
        written = _BARE_VALUE.match(self.text, self.at)
        if not written or not _AFTER_NUMBER.match(self.text, written.end()):
            raise _Doubtful
        self.at = written.end()
        if not written[0].isalpha():
            return float(written[0]) if "." in written[0] else int(written[0])
        if written[0] not in _LITERALS:
            raise _Doubtful
        return _LITERALS[written[0]]

    def _string(self, after: re.Pattern[str]) -> str:
        """A string, up to the first mark that closes it and has behind it what may stand ``after`` a string."""
        start = self.at + 1
        for mark in re.compile(f"[{_CLOSED_BY[self.text[self.at]]}]").finditer(self.text, start):
            backslashes = _BACKSLASHES.search(self.text, max(start, mark.start() - 64), mark.start())
            if backslashes and len(backslashes[0]) % 2 == 0 and after.match(self.text, mark.end()):
                self.at = mark.end()
                return re.sub(
                    r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[0]), self.text[start : mark.start()]
                )
        raise _Doubtful

    def _skip(self, characters: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in characters:
            self.at += 1


# --- Tagged text ----------------------------------------------------------------------------------------------------


def _without_thinking(text: str) -> str:
    """The reply without the model's reasoning, if a server leaves the reasoning in the text."""
    _, closed, answer = text.rpartition("</think>")
    return answer if closed else _THINKING.sub("", text)


def _tagged(
    text: str, criterion: CriterionBrief, *, alone: bool, cut_off: bool, languages: Sequence[str]
) -> Iterator[_Offer]:
    """The offers of all tags, readable or not. If there are no tags, a reply of one short line is the offer."""
    hits = _tag_hits(text, criterion, alone)
    if alone and not hits:
        number = None if cut_off else _in_words(text, criterion, languages)
        if number is not None:
            yield _Offer(number, bent=("words",))
            return
        line = re.match(r"\s*+([^\s{][^\n]{0,60}+)\s*+\Z", text)
        hits = (
            [line]
            if line and (re.search(r"\d", line[1]) or _from_text(_bare(line[1]), criterion)[0] is not None)
            else []
        )
    # Cut off right behind the number, its last digits may be missing.
    kept = [hit for hit in hits if not cut_off or text[hit.end(1) :].strip(" \n.,/")]
    rationale = _tagged_rationale(text) if alone else ""
    if len(kept) > _MOST_HITS:
        yield _Offer(None, bent=("tagged",))  # so many scores are nobody's
        return
    fences = _fences(text) if kept else ()
    for hit in kept:
        doubtful = _bare(text) != _bare(hit[0]) and _is_quoted_hit(text, hit, criterion, fences)
        yield _Offer(_bare(hit[1]), rationale, ("tagged",), doubtful)


def _bare(text: str) -> str:
    """Without the marks around it."""
    return text.strip(" \t\n*_\"'`().“”«»")


def _in_words(text: str, criterion: CriterionBrief, languages: Sequence[str]) -> int | None:
    """A number in words that is the whole reply, perhaps after "Score:" or the criterion's name; None in any doubt.

    A word that is a label of the scale is read as the label.
    """
    fields = (criterion.key, criterion.name, *_SCORE_FIELDS, *_SCORE_WORDS)
    names = "|".join(re.escape(name) for name in fields if name)
    opens = rf"\W{{0,8}}(?:(?:final|overall|my) )?(?:{names})\W{{0,8}}[:=：]\W{{0,8}}"
    named = re.fullmatch(rf"{opens}(.*)", text.strip(), _LINES)
    word = named[1] if named else text
    labels = {point.label.casefold() for point in criterion.points if point.label}
    if _bare(word).casefold() in labels:
        return None
    return number_in_words(word, [language for language in languages if language])


def _tag_hits(text: str, criterion: CriterionBrief, alone: bool) -> list[re.Match[str]]:
    names = [re.escape(name) for name in (criterion.key, criterion.name) if name]
    if alone:
        names += ["score", "rating", "grade", "result", "answer"]
    tags = [*(_TAGS if alone else ()), re.compile(_line(names), _LINES)]
    return [hit for tag in tags for hit in tag.finditer(text)]


def _stated(text: str, spans: Sequence[tuple[Any, int, int]], criterion: CriterionBrief) -> Iterator[_Offer]:
    """Lines beside the objects of a reply that say nothing but this criterion's score."""
    text = _outside(text, spans)
    for hit in re.finditer(_line([re.escape(criterion.key), re.escape(criterion.name)]), text, _LINES):
        if not text[hit.end() :].partition("\n")[0].strip(" \t.*_`\"')]"):
            yield _Offer(hit[1], bent=("tagged",))


# --- What a reply presents as somebody else's -------------------------------------------------------------------------
# Such a score counts against another one, and never by itself. English words, and forms that are the same in every
# language: quotation marks, code, indentation, a line before that ends in a colon.

_SAYS: Final = re.compile(
    r"\b(?:says?|said|saying|wrote|writes|asks|contains?|claims?|states|includes?|quot\w+|demands?|instructs|"
    r"tells|planted|inserted|pretends|embedded|holds|mentions|requests)\b",
    re.IGNORECASE,
)
_OWN: Final = re.compile(
    r"\b(?:my|i|we|rating|score|scores|verdict|verdicts|evaluation|assessment|answer|result|results|grade|judge?ment|"
    r"feedback|here|json|final|output|reply|response|skoor\w*|hinne|hinnang\w*|hinde\w*|vastus|tulemus|"
    r"оценк\w+|балл\w*|ответ|puntuaci\w+|calificaci\w+|valoraci\w+|respuesta|note|réponse|bewertung|wertung|antwort|"
    r"nota|resposta)\b"
    r"|评|分数|得分|答|结果|評|スコア|点|結果|تقييم|درجة|النتيجة|الإجابة|अंक|स्कोर|मूल्यांकन|उत्तर",
    re.IGNORECASE,
)
_NEAR: Final = 600  # characters before a score in which it may be announced, and after it disowned
_MOST_HITS: Final = 200
_DISOWNED: Final = re.compile(
    r"[\s,\"'`”’»)*_\]]{0,6}(?:which (?:I|the|they|it|he|she|was|is quoted)\b|"
    r"is (?:what|quoted|only|in|from|not)\b|that (?:I|the|they|it)\b|appears\b|stands\b|was\b|comes from\b|"
    r"says\b|said\b|asks\b|in the (?:text|item|material)\b)"
)


def _is_mentioned(text: str, start: int, end: int) -> bool:
    """Whether an object is only mentioned: inside a sentence that is not about the verdict, or of what a text says."""
    if _DISOWNED.match(text, end):
        return True
    before = text[max(0, start - _NEAR) : start]
    clause = re.split(r"[.!?。！？]\s", before.rpartition("\n")[2])[-1].strip(" \t`*_(\"'“")
    if not clause:
        return _is_introduced(before)
    if _SAYS.search(clause):
        return True
    return clause[-1:].isalpha() and not _OWN.search(clause)


def _is_introduced(before: str, name: str = "") -> bool:
    """Whether the last line of this text announces what somebody else says."""
    line = before.rstrip(" \t\n`*_-\"'“").rpartition("\n")[2].strip()
    if not line.endswith((":", "：")):
        return False
    if _SAYS.search(line):
        return True
    return bool(name) and not (_OWN.search(line) or name.casefold() in line.casefold() or len(line) <= len(name) + 4)


def _fences(text: str) -> list[tuple[int, int]]:
    """The start and end of every code block, fenced or indented by four spaces or a tab, if the text has more than
    these blocks."""
    marks = [mark.start() for mark in re.finditer(r"^[ \t]{0,8}```", text, re.MULTILINE)]
    fenced = list(zip(marks[::2], [*marks[1::2], *([len(text)] if len(marks) % 2 else [])], strict=True))
    outside = _outside(text, [(None, start, end) for start, end in fenced]).replace("`", "").strip()
    blocks = fenced if outside else []
    indents = [line for line in text.splitlines() if line.strip()]
    if any(not line.startswith(("    ", "\t")) for line in indents):
        blocks += [(line.start(), line.end()) for line in re.finditer(r"^(?:    |\t)[^\n]*", text, re.MULTILINE)]
    return blocks


def _is_quoted_hit(text: str, hit: re.Match[str], criterion: CriterionBrief, fences: Sequence[tuple[int, int]]) -> bool:
    """Whether a tag or a line with a score seems to be quoted."""
    at = hit.start(1)
    if any(start <= at < end for start, end in fences) or _DISOWNED.match(text, hit.end()):
        return True
    near = text[max(0, at - _NEAR) : at]
    before, after = near.rpartition("\n")[2], text[hit.end(1) : hit.end(1) + _NEAR].partition("\n")[0]
    tag = hit[0].lstrip()[:1] in "<["
    opened = before[: before.rfind(hit[0].lstrip()[0])] if tag else re.split("[:=]", before)[0]
    for opening, closing in ('""', "''", "“”", "«»", "„“", "‘’", "「」", "『』", "‹›", "``"):
        count = opened.count(opening)
        if (count % 2 if opening == closing else count > opened.count(closing)) and closing in after:
            return True
    clause = re.split(r"[.!?。！？]\s|[>\]]", opened)[-1].strip(" \t*_(-") if tag else ""
    if clause:
        return bool(_SAYS.search(clause))
    return _is_introduced(near[: len(near) - len(before)], criterion.name)


def _line(names: Sequence[str]) -> str:
    """A line that begins with one of ``names``, a colon and a score."""
    return rf"^\W{{0,8}}(?:(?:final|overall|my)\s+)?(?:{'|'.join(filter(None, names))})[\"'*_`)]*{_LINE_VALUE}"


def _tagged_rationale(text: str) -> str:
    opened = _RATIONALE_OPENS.search(text)
    closed = _RATIONALE_CLOSES.search(text, opened.end()) if opened else None
    return text[opened.end() : closed.start()].strip() if opened and closed else ""
