"""What annotators and judges see of an item, and the names of generators in it: find and mask them. Pure.

A dataset's layout: ``{"fields": ["question", "answer"], "brief": "context", "turns": false}``; every key is optional.
``fields``: the fields shown, in order (default: all, in `USUAL_ORDER`). ``brief``: the field shown collapsed above the
text. ``turns``: false hides the dialogue. ``markup``: ``markdown`` shows texts
formatted to people (annotation/desk/markup.py). Generator, scenario and attributes are never shown.

The rule for names (also in docs/importing.md): a name is searched in speakers, turn names, the title, the texts that
the layout shows and the content warning. Case, spaces and punctuation do not matter (``GPT-4o``, ``gpt 4O``,
``gpt_4o``). It is also searched without the folder before it and the date after it (``openai/gpt-4o-2024-08-06``). It
counts as follows:

- A name with a letter and a digit and at least three characters counts everywhere.
- Other names (``claude``) count in a speaker, a turn's name or the title, as a complete text, and as a label at the
  start of a line (``Claude: ...``). Inside running text they count only if they are revealing.
- An ordinary name (one or two characters, or only numbers, single letters and words such as *human*, *reference*,
  *assistant*) counts only as a complete speaker, name, title, text or label, and only if it is revealing.

A name is *revealing* in a kind of place if items of its own generator have it there and no items of other generators
do.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

from annotation.readers import ItemRow, excerpt, field_text

USUAL_ORDER = (
    "context",
    "question",
    "source",
    "document",
    "passages",
    "passage_a",
    "passage_b",
    "answer",
    "reference",
)

CANDIDATES = ("passage_a", "passage_b")
"""The two fields of an item that are compared with each other."""


@dataclass(frozen=True, slots=True)
class VisibleParts:
    """The visible parts of an item: the collapsed brief, (name, text) of every field, and the turns."""

    brief: str
    fields: tuple[tuple[str, str], ...]
    turns: tuple[Mapping[str, str], ...]


def lay_out(
    *, fields: Mapping[str, Any], turns: Sequence[Mapping[str, str]], layout: Mapping[str, Any] | None = None
) -> VisibleParts:
    """The parts of an item that its dataset's layout shows."""
    layout = layout or {}
    brief = layout.get("brief", "")
    names = layout.get("fields") or sorted(fields, key=_usual_place)
    return VisibleParts(
        brief=field_text(fields.get(brief, "")),
        fields=tuple((name, field_text(fields[name])) for name in names if name in fields and name != brief),
        turns=tuple(turns) if layout.get("turns", True) else (),
    )


LONGEST_HEADING = 60  # characters


def heading_of(title: str, parts: VisibleParts) -> str:
    """The title; without one, the first words of the shown turns or fields; "…" where nothing is written."""
    texts = (*(str(turn["text"]) for turn in parts.turns), *(text for _name, text in parts.fields), parts.brief)
    words = title.strip() or " ".join(next((text for text in texts if text.strip()), "…").split())
    if title.strip() or len(words) <= LONGEST_HEADING:
        return words
    cut = words[:LONGEST_HEADING].rstrip()
    whole = cut.rpartition(" ")[0] if words[len(cut)] != " " else cut
    return f"{whole if len(whole) > LONGEST_HEADING // 2 else cut}…"


def _usual_place(name: str) -> tuple[int, str]:
    return (USUAL_ORDER.index(name) if name in USUAL_ORDER else len(USUAL_ORDER), name)


# --- names of generators ----------------------------------------------------------------------------------------------
MASK, KEEP = "mask", "keep"
CHOICES = (MASK, KEEP)
MOST_NAMES = 200  # with more generators in a dataset, an item is searched for its own generator's name only
NEUTRAL = "assistant"  # the name of a masked speaker, unless another speaker of the dialogue has it
REMOVED = "[…]"  # replaces a masked name in a text
_SPEAKER, _NAME, _TITLE, _TEXT, _WARNING = "speaker", "turn name", "title", "text", "content warning"
_LABELS = (_SPEAKER, _NAME, _TITLE)
_ORDINARY = frozenset(
    "ai agent advisor annotator answer assistant author baseline bot caller chatbot client control counselor "  # noqa: SIM905
    "counsellor customer doctor expert generated generator gold human humans interviewer llm machine model models mt "
    "native new none official old operator original output patient people person prediction professional question "
    "random real reference references reply response simulated source speaker student summary synthetic system target "
    "teacher template test text therapist translation translator unknown user users writer".split()
)
_WORDS = re.compile(r"[^\W\d_]+|\d+")
_DATED = re.compile(r"[-_@: ](?:20\d\d[-_]?\d\d[-_]?\d\d|latest)$")
_OPENING, _CLOSING = r"[\s\[({<*#\"'«“_]{0,8}", r"(?:[\s\])}>*\"'»”_]{0,8}[:：]|[\])}>*]{1,4})[\s*_]{0,4}"


class ShownName(Protocol):
    """An item that is searched for names: as its file contains it, or as it is stored."""

    @property
    def generator(self) -> str | None: ...
    @property
    def title(self) -> str: ...
    @property
    def turns(self) -> Any: ...
    @property
    def fields(self) -> Any: ...
    @property
    def content_warning(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Finding:
    """A generator's name in one kind of place; ``items``: the number of items; ``example``: the text in the first."""

    generator: str
    place: str
    items: int
    example: str
    file: str = ""
    line: int | None = None

    @property
    def words(self) -> str:
        """``“gpt-4o”: speaker, items: 60, such as “GPT-4o”``, for a list of findings."""
        return f"{excerpt(self.generator)}: {self.place}, items: {self.items:,}, such as {excerpt(self.example)}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: value for name, value in asdict(self).items() if name not in ("file", "line")}


@dataclass(frozen=True, slots=True)
class _Name:
    """The patterns for a generator's name. ``anchors``: every text with the name contains at least one of them."""

    generator: str
    anchors: tuple[str, ...]
    inside: re.Pattern[str]
    whole: re.Pattern[str]
    label: re.Pattern[str]
    is_ordinary: bool
    is_distinct: bool


@dataclass(frozen=True, slots=True)
class _Hit:
    """A name in a place; ``is_sure``: it counts even if it is not revealing."""

    name: _Name
    place: str
    is_sure: bool
    text: str


@dataclass(slots=True)
class _Count:
    own: int = 0
    others: int = 0
    is_sure: bool = False
    example: str = ""
    file: str = ""
    line: int | None = None


def find_generator_names(
    items: Iterable[ShownName],
    layout: Mapping[str, Any] | None = None,
    *,
    generators: Iterable[str],
    most: int = MOST_NAMES,
) -> list[Finding]:
    """The names of ``generators`` in what ``layout`` shows of some items, by generator and place."""
    names = _names(generators)
    counts: dict[tuple[str, str], _Count] = {}
    for item in items if names else ():
        looked_for = names if len(names) <= most else _names([item.generator or ""])
        in_item: dict[tuple[str, str], list[_Hit]] = {}
        for hit in _hits(item, layout, looked_for):
            in_item.setdefault((hit.name.generator, hit.place), []).append(hit)
        for (generator, place), hits in in_item.items():
            first = _Count(example=hits[0].text, file=getattr(item, "file", ""), line=getattr(item, "line", None))
            count = counts.setdefault((generator, place), first)
            count.own += generator == item.generator
            count.others += generator != item.generator
            count.is_sure |= any(hit.is_sure for hit in hits)
    can_tell = 1 < len(names) <= most
    findings = [
        Finding(generator, place, count.own + count.others, count.example, count.file, count.line)
        for (generator, place), count in counts.items()
        if count.is_sure or (can_tell and count.own and not count.others)
    ]
    return sorted(findings, key=lambda finding: (finding.generator, finding.place))


def masker(findings: Iterable[Finding]) -> Callable[[ItemRow], ItemRow]:
    """A function that masks these names in an item: neutral speakers, no turn names, ``[…]`` in texts.

    A label at the start of a line is removed completely. Other parts of the item do not change.
    """
    by_place: dict[str, list[_Name]] = {}
    for finding in findings:
        by_place.setdefault(finding.place, []).extend(_names([finding.generator]))

    def cleared(place: str, text: str) -> str:
        names = by_place.get(place, ())
        return _cleared(text, names, "" if place == _TITLE else REMOVED) if names else text

    def masked(item: ItemRow) -> ItemRow:
        called = _neutral(item.turns, by_place.get(_SPEAKER, ()))
        turns = []
        for turn in item.turns:
            changed = {**turn, "speaker": called.get(turn["speaker"], turn["speaker"])}
            if any(_is_in_label(name, turn.get("name", "")) for name in by_place.get(_NAME, ())):
                del changed["name"]
            turns.append({**changed, "text": cleared(_TEXT, turn["text"])})
        fields = {
            name: [cleared(name, str(text)) for text in value] if isinstance(value, list) else cleared(name, value)
            for name, value in item.fields.items()
        }
        title, warning = cleared(_TITLE, item.title), cleared(_WARNING, item.content_warning)
        return replace(item, title=title, turns=turns, fields=fields, content_warning=warning)

    return masked


def _neutral(turns: Sequence[Mapping[str, str]], names: Sequence[_Name]) -> dict[str, str]:
    """New names for the speakers that reveal a generator: ``NEUTRAL``, or letters if there are several."""
    speakers = list(dict.fromkeys(turn["speaker"] for turn in turns))
    hidden = [speaker for speaker in speakers if any(_is_in_label(name, speaker) for name in names)]
    kept = {speaker.casefold() for speaker in speakers if speaker not in hidden}
    if len(hidden) == 1 and NEUTRAL not in kept:
        return {hidden[0]: NEUTRAL}
    letters = (letter for letter in map(chr, range(65, 91)) if letter.casefold() not in kept)
    return {speaker: next(letters, NEUTRAL) for speaker in hidden}


def _cleared(text: str, names: Sequence[_Name], nothing: str) -> str:
    """The text without the names; ``nothing`` replaces a text that has no other content."""
    before = text
    for name in names:
        for pattern, instead in ((name.label, ""), (name.whole, ""), (name.inside, REMOVED)):
            plain = text if pattern.search(text) else _plain(text)
            if not (name.is_ordinary and pattern is name.inside) and pattern.search(plain):
                text = pattern.sub(instead, plain)
    return nothing if before.strip() and not text.strip() else text


# --- finding --------------------------------------------------------------------------------------------------------
def _hits(item: ShownName, layout: Mapping[str, Any] | None, names: Sequence[_Name]) -> Iterator[_Hit]:
    parts = list(_parts(item, layout))
    whole = _plain("\n".join(text for _place, text in parts)).casefold()
    near = [name for name in names if any(anchor in whole for anchor in name.anchors)]
    for place, text in dict.fromkeys(parts) if near else ():
        plain = _plain(text)
        for name in near:
            if (is_sure := _counts(name, place, plain)) is not None:
                yield _Hit(name, place, is_sure, _around(name, plain))


def _parts(item: ShownName, layout: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """The visible texts of an item: kind of place and text."""
    shown = lay_out(fields=item.fields, turns=item.turns, layout=layout)
    for turn in shown.turns:
        yield _SPEAKER, turn["speaker"]
        yield _NAME, turn.get("name", "")
        yield _TEXT, turn["text"]
    yield _TITLE, item.title
    yield _WARNING, item.content_warning
    yield from shown.fields
    if shown.brief:
        yield str((layout or {}).get("brief", "")), shown.brief


def _counts(name: _Name, place: str, text: str) -> bool | None:
    """How a name counts in a text: always (True), if it is revealing (False), or the text does not have it (None)."""
    is_label = place in _LABELS
    if name.is_ordinary:
        return False if name.whole.search(text) or (not is_label and name.label.search(text)) else None
    if not name.inside.search(text):
        return None
    return bool(name.is_distinct or is_label or name.whole.search(text) or name.label.search(text))


def _is_in_label(name: _Name, text: str) -> bool:
    return _counts(name, _SPEAKER, _plain(text)) is not None


def _around(name: _Name, text: str) -> str:
    """The name with a few words around it."""
    match = name.inside.search(text)
    return text[max(0, match.start() - 30) : match.end() + 30].strip() if match else text[:60].strip()


def _plain(text: str) -> str:
    return text if unicodedata.is_normalized("NFKC", text) else unicodedata.normalize("NFKC", text)


def _names(generators: Iterable[str]) -> list[_Name]:
    return [name for generator in dict.fromkeys(generators) if generator and (name := _name(generator))]


@lru_cache(maxsize=4096)
def _name(generator: str) -> _Name | None:
    """The patterns for a generator's name; None if it has no letters or digits to search for."""
    full = _plain(generator).strip()
    forms = [full, full.rstrip("/").rpartition("/")[2]]
    forms += [_DATED.sub("", form) for form in forms]
    words = [word for form in dict.fromkeys(forms) if (word := tuple(_WORDS.findall(form)))]
    # The part without folder and date is used only if it is distinctive.
    words = [word for word in dict.fromkeys(words) if word == words[0] or _is_distinct(word)]
    if not words:
        return None
    either = "|".join(r"[\W_]{0,3}".join(map(re.escape, word)) for word in sorted(words, key=len, reverse=True))
    inside = rf"(?<![a-z0-9])(?:{either})(?![a-z0-9])" if full.isascii() else f"(?:{either})"
    return _Name(
        generator=generator,
        anchors=tuple(max(word, key=len).casefold() for word in words),
        inside=re.compile(inside, re.IGNORECASE),
        whole=re.compile(rf"\A[\W_]*(?:{either})[\W_]*\Z", re.IGNORECASE),
        label=re.compile(rf"^{_OPENING}(?:{either}){_CLOSING}", re.IGNORECASE | re.MULTILINE),
        is_ordinary=all(_is_ordinary(word) for word in words),
        is_distinct=any(_is_distinct(word) for word in words),
    )


def _is_ordinary(words: Sequence[str]) -> bool:
    spoken = [word.casefold() for word in words if not word.isdecimal()]
    short = len("".join(words)) < 3 and "".join(words).isascii()
    return short or all(len(word) == 1 or word in _ORDINARY for word in spoken)


def _is_distinct(words: Sequence[str]) -> bool:
    kinds = {word.isdecimal() for word in words}
    return len(kinds) == 2 and not _is_ordinary(words)
