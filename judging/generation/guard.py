"""The reply guard: what is wrong with a turn of a simulated conversation, found without a model. Pure.

Every turn passes it before anything else is paid for. A turn is taken as it is or discarded, never edited. What is
wrong with a user's turn is told to its model, which is asked again. Of a chatbot only what is no conversation is
discarded: that it is dull, repeats itself or refuses is what the conversation is made to show. One that writes in
another language ends the conversation (`SETS_ASIDE`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from rapidfuzz import fuzz

from judging.generation.guard_words import (
    CHATBOT_NAMES,
    USER_NAMES,
    as_patterned,
    breaks_the_play,
    speaks_as_chatbot,
    talks_about_itself,
)
from judging.generation.languages import (
    FEWEST_LETTERS,
    IN_A_TURN,
    MOSTLY,
    has_frequent_words,
    identified_language,
    is_probably_in,
    letter_counts,
    likely_language,
)
from judging.generation.messages import WritingProblem
from judging.generation.specs import Spec
from judging.generation.turn_rules import (
    REASONING_MARKS,
    STAND_IN,
    copied_sentence,
    folded_text,
    has_hidden_characters,
    shown_width,
)
from judging.generation.user_agent import ends_conversation, has_stop, scene_text, without_stop
from judging.replies import CUT_OFF
from judging.reply_words import refusal_in

SETS_ASIDE: Final = frozenset({"wrong_script", "mixed_script", "wrong_language", "mixed_language"})
"""Problems of a chatbot's answer that end the conversation: it is set aside with the reason, and not asked again."""
ROLE_CONFUSION: Final = frozenset({"inverted_role", "two_speakers", "fourth_wall"})
"""Problems of a user's turn that show a model out of its role."""

LOOKED_AT: Final = 5_000
"""Characters of a turn that are looked at; only its length is taken from more."""
LONGEST_LOOKED_AT: Final = 120_000  # characters of a reply; a longer one is too long by any rule
_COPY: Final = 28  # shown width of a sentence of the scene, or of what was told, that make a copy
_REPEAT: Final = 25  # shown width of a turn from which on the same again is a repeat
_ALIKE: Final = 95.0  # per cent, of two turns of at least the shown width `_LONG`
_LONG: Final = 40
_SENTENCE: Final = re.compile(r"(?<=[.!?。！？؟।])\s*|\n+")
_SURE_SENTENCE: Final = 20  # letters of a sentence from which on its script is looked at
_SHORT_SENTENCE: Final = 8  # letters of a sentence in the script of the language beside others
_IN_A_SENTENCE: Final = 0.15  # the share of letters of the language's scripts in a sentence that is in another one
_ADDRESSES: Final = re.compile(r"https?://\S+|www\.\S+|[@#]\w+|(?<!\w)/?[ru]/\w+|[\w.+-]+@[\w.-]+")
_FORM: Final = re.compile(r'"(?:score|rationale|verdict|label|feedback)"\s*:')
_MARKS: Final = (('"', '"'), ("“", "”"), ("„", "“"), ("„", "”"), ("«", "»"), ("「", "」"), ("『", "』"), ("'", "'"))


def guard_utterance(
    spec: Spec,
    drawn: Mapping[str, str | int],
    *,
    language: str,
    turns: Sequence[Mapping[str, str]],
    utterance: str,
    finish_reason: str = "",
    told: Sequence[str] = (),
) -> list[WritingProblem]:
    """Every reason why a turn of the user is discarded; none if it is not. ``told``: what its model was told about
    refused tries, which must not stand in the turn. Never raises on any text."""
    if broken := _no_reply(utterance, finish_reason):
        return [broken]
    if len(utterance) > LONGEST_LOOKED_AT:
        return [WritingProblem("long_turn", {"turn": len(turns) + 1, "longest": spec.simulation.longest_utterance})]
    text, number = without_stop(spec, utterance), len(turns) + 1
    problems = [*_unusable(text, spec.simulation.longest_utterance, number)]
    text = text[:LOOKED_AT]
    if _stops_wrongly(spec, utterance, text, len(turns) // 2):
        problems.append(WritingProblem("stop_mark"))
    problems += _roles(spec, text, language)
    if stand_in := next((one for one in STAND_IN.finditer(text) if not _is_link(text, one)), None):
        problems.append(WritingProblem("stand_in", {"text": stand_in[0][:60]}))
    if copied := copied_sentence(text, [scene_text(spec, drawn, language)], shortest=_COPY):
        problems.append(WritingProblem("copied_brief", {"text": copied[:100]}))
    if _FORM.search(text) or copied_sentence(text, told, shortest=_COPY):
        problems.append(WritingProblem("leaked_rubric"))
    problems += _repeats(spec, turns, text)
    return problems + _other_languages(text, language, number)


def guard_answer(
    spec: Spec, *, language: str, turns: Sequence[Mapping[str, str]], answer: str, finish_reason: str = ""
) -> list[WritingProblem]:
    """Every reason why a chatbot's answer is discarded, or ends the conversation (`SETS_ASIDE`). Never raises."""
    if broken := _no_reply(answer, finish_reason, may_refuse=True):
        return [broken]
    if len(answer) > LONGEST_LOOKED_AT:
        return [WritingProblem("long_turn", {"turn": len(turns) + 1, "longest": spec.rules.longest})]
    text, number = answer.strip(), len(turns) + 1
    problems = [*_unusable(text, spec.rules.longest, number)]
    text = text[:LOOKED_AT]
    if has_stop(spec, text):
        problems.append(WritingProblem("stop_mark"))
    speakers = _speakers(spec, text)
    if speakers[1:] or (speakers and speakers[0] == spec.user_role):
        problems.append(WritingProblem("two_speakers"))
    elif speakers:
        problems.append(WritingProblem("role_label"))
    if copied := copied_sentence(text, spec.simulation.chatbot.values()):
        problems.append(WritingProblem("copied_brief", {"text": copied[:100]}))
    return problems + _other_languages(text, language, number)


def guard_conversation(spec: Spec, *, language: str, turns: Sequence[Mapping[str, str]]) -> list[WritingProblem]:
    """What is wrong with a whole conversation: a user out of the role, and languages other than its own, which are told
    apart more surely in all turns of a side than in one. Each code is named once."""
    problems: list[WritingProblem] = []
    sides: dict[str, list[str]] = {}
    for number, turn in enumerate(turns, 1):
        text = turn["text"][:LOOKED_AT]
        sides.setdefault(turn["speaker"], []).append(text)
        if turn["speaker"] == spec.user_role:
            problems += [one for one in _roles(spec, text, language) if one.code in ROLE_CONFUSION]
        problems += _other_languages(text, language, number)
    for texts in sides.values():
        if other := identified_language("\n".join(texts), language):
            problems.append(WritingProblem("wrong_language", {"language": other}))
    first: dict[str, WritingProblem] = {}
    for problem in problems:
        first.setdefault(problem.code, problem)
    return list(first.values())


# --- the rules --------------------------------------------------------------------------------------------------------


def _no_reply(text: str, finish_reason: str, *, may_refuse: bool = False) -> WritingProblem | None:
    """Why there is no turn at all. A refusal in words is an answer of a chatbot, and no turn of a user."""
    if finish_reason == "content_filter":
        return WritingProblem("refusal")
    if finish_reason in CUT_OFF:
        return WritingProblem("cut_off")
    text = text.strip()[:LOOKED_AT]
    if not text:
        return WritingProblem("no_text")
    if REASONING_MARKS.search(text):
        return WritingProblem("reasoning")
    return WritingProblem("refusal") if not may_refuse and refusal_in(text) and _is_refusal(text) else None


def _is_refusal(text: str) -> bool:
    """Whether a refusal is of this request: a person, too, writes of what they can't or won't do."""
    return _OF_THE_REQUEST.search(as_patterned(text)) is not None


_OF_THE_REQUEST: Final = re.compile(
    r"\b(?:requests?|role-?play)\b|\bas an? (?:ai|language)\b|\b(?:assist|help|comply)(?: you)? with (?:that|this)\b"
    r"|solicitud|petición|\banfrage|\bdemande\b|solicitação|\brichiesta|запрос|просьб|\bpalve|\bpäring|\bpyyn"
    r"|\bkérés|リクエスト|ご要望|ご依頼|请求|請求|طلبك|هذا الطلب|अनुरोध"
)


def _unusable(text: str, longest: int, number: int) -> Iterator[WritingProblem]:
    if has_hidden_characters(text):
        yield WritingProblem("hidden_characters")
    if len(text) > longest:
        yield WritingProblem("long_turn", {"turn": number, "longest": longest})


def _stops_wrongly(spec: Spec, utterance: str, text: str, before: int) -> bool:
    """Whether the mark of the end stands elsewhere than at the end, or comes too soon."""
    too_soon = before < spec.simulation.least_user_turns and ends_conversation(spec, utterance)
    return too_soon or has_stop(spec, text)


def _roles(spec: Spec, text: str, language: str) -> Iterator[WritingProblem]:
    """Whose words a user's turn has."""
    speakers = _speakers(spec, text)
    if speakers[1:]:
        yield WritingProblem("two_speakers")
    elif speakers == [spec.user_role]:
        yield WritingProblem("role_label")
    if speakers == [spec.chatbot_role] or speaks_as_chatbot(text, language):
        yield WritingProblem("inverted_role")
    if breaks_the_play(text, language):
        yield WritingProblem("fourth_wall")
    if talks_about_itself(text, language):
        yield WritingProblem("comment")
    if _is_quoted(text):
        yield WritingProblem("quoted")


def _speakers(spec: Spec, text: str) -> list[str]:
    """The roles by whose names lines of a text begin, in order."""
    names = _names(spec.user_role, spec.chatbot_role)
    return [
        spec.user_role if found["user"] else spec.chatbot_role for found in names.finditer(as_patterned(text.strip()))
    ]


@cache
def _names(user: str, chatbot: str) -> re.Pattern[str]:
    user, chatbot = (re.escape(as_patterned(role.replace("_", " "))) for role in (user, chatbot))
    return re.compile(
        rf"^[\s*_#\[(<>-]{{0,6}}(?:(?P<user>{user}|{USER_NAMES})|{chatbot}|{CHATBOT_NAMES})[\s*_\])>]{{0,4}}[:：](?!//)",
        re.MULTILINE,
    )


def _is_quoted(text: str) -> bool:
    """Whether the whole text stands in one pair of quotation marks."""
    text = text.strip()
    return len(text) > 2 and any(
        text.startswith(opening) and text.endswith(closing) and not {opening, closing} & {*text[1:-1]}
        for opening, closing in _MARKS
    )


def _is_link(text: str, bracketed: re.Match[str]) -> bool:
    """Whether what stands in brackets is an address, or the words of a link."""
    return "@" in bracketed[0] or text.startswith("(", bracketed.end())


def _repeats(spec: Spec, turns: Sequence[Mapping[str, str]], text: str) -> list[WritingProblem]:
    """The earlier turn, of the user or the one answered, that a user's turn says again."""
    folded = folded_text(text)
    if shown_width(folded) < _REPEAT:
        return []
    for number, turn in enumerate(turns, 1):
        if turn["speaker"] != spec.user_role and number < len(turns):
            continue
        earlier = folded_text(turn["text"])
        if folded == earlier or (shown_width(folded) >= _LONG and fuzz.ratio(folded, earlier, score_cutoff=_ALIKE)):
            return [WritingProblem("repeated_turn", {"turn": len(turns) + 1, "before": number})]
    return []


def _other_languages(text: str, language: str, number: int) -> list[WritingProblem]:
    """The first of: another script or language throughout, another one in a sentence. Addresses and names of accounts
    are of no language."""
    text = _ADDRESSES.sub(" ", text)
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence.strip()]
    own, letters = letter_counts(text, language)
    if letters >= FEWEST_LETTERS and own < IN_A_TURN * letters:
        mixed = any(_is_in_script(sentence, language) for sentence in sentences)
        return [WritingProblem("mixed_script", {"turn": number}) if mixed else WritingProblem("wrong_script")]
    others = [(sentence, _surely_other(sentence, language)) for sentence in sentences]
    if other := _surely_other(text, language):
        mixed = any(not strange and _is_own(sentence, language) for sentence, strange in others)
        about: dict[str, str | int] = {"language": other}
        return [
            WritingProblem("mixed_language", {"turn": number, **about})
            if mixed
            else WritingProblem("wrong_language", about)
        ]
    for sentence, other in others:
        own, letters = letter_counts(sentence, language)
        if letters >= _SURE_SENTENCE and own < _IN_A_SENTENCE * letters:
            return [WritingProblem("mixed_script", {"turn": number})]
        if other:
            return [WritingProblem("mixed_language", {"turn": number, "language": other})]
    return []


def _is_in_script(sentence: str, language: str) -> bool:
    own, letters = letter_counts(sentence, language)
    return own >= _SHORT_SENTENCE and own >= MOSTLY * letters


def _is_own(sentence: str, language: str) -> bool:
    """Whether a sentence is long enough to be told, and in the language."""
    is_long = letter_counts(sentence, language)[0] >= FEWEST_LETTERS
    return is_long and (has_frequent_words(sentence, language) or is_probably_in(sentence, language))


def _surely_other(text: str, language: str) -> str:
    """Another language that a text is in by the identifier of languages and by its frequent words: it has those of the
    other one, or, if it is long, none of its own."""
    likely = likely_language(text, language)
    is_bare = not has_frequent_words(text, language) and letter_counts(text, language)[1] >= _LONG
    if not (likely or is_bare):  # of nearly all texts: the identifier takes ten times as long
        return ""
    identified = identified_language(text, language)
    return identified and (likely or identified)
