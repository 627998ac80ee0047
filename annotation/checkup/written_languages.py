"""Languages: whether an item is written in the language that it is declared in.

The script is looked at first. Then py3langid chooses among the languages of dataset and project, and the neighbours of
the item's own. No library can be trusted on a short text, so a dialogue is judged as a whole, and not at all below 15
letters.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import regex

from accounts import languages
from analytics.stats.declared.declaring import translatable
from annotation.checkup.checked_items import SCRIPTS, CheckedItem, ScriptRun, excerpt_around
from annotation.checkup.declared import Check, CheckScope, Hit, Values
from annotation.checkup.native_flags import LEAST_PROBABILITY, FlagComparison, ReadItem, compare_flags

FEWEST_LETTERS = 15
OTHER_SCRIPT = 0.5  # the share of letters outside of the language's scripts, beyond which the text is in another one
SIGN = 3  # letters of an alphabet that a sign of `SYLLABIC` stands for
SYLLABIC = frozenset({"Hans", "Hant", "Jpan", "Kore"})
READ = 4_000  # characters of an item that its language is told from
SURE = 0.9  # the probability of the other language from which on it is a finding
SURE_OF_ALL = 0.99  # the same among all languages that the identifier knows
FAR = 0.02  # the probability of the declared language up to which it is one
# Languages with more than one script; a script in the tag (sr-Latn) decides.
TWO_SCRIPTS = {"sr": ("Cyrl", "Latn"), "bs": ("Latn", "Cyrl"), "uz": ("Latn", "Cyrl"), "kk": ("Cyrl", "Latn")}
TWO_SCRIPTS |= {"ku": ("Latn", "Arab"), "pa": ("Guru", "Arab"), "mn": ("Cyrl", "Mong"), "az": ("Latn", "Cyrl")}
# Languages that are taken for each other most easily.
NEIGHBOURS = (
    "et fi lv lt vro",
    "no nb nn da sv is fo",
    "nl af de lb",
    "es pt gl ca it fr oc ro",
    "cs sk pl sl",
    "hr sr bs sl mk",
    "ru uk be bg mk sr",
    "hi mr ne",
    "bn as",
    "ar fa ur ps",
    "id ms jv",
    "zh ja ko",
    "tr az kk ky uz",
)
WIDESPREAD = "en es fr de pt it ru zh ja ar hi tr id nl pl"
# Languages that the identifier can't tell apart, or that are written alike.
ALIKE = ("no nb nn", "hr sr bs", "id ms", "zh yue wuu", "fa prs", "et ekk vro", "lv ltg", "sw swh")
_NOT_WORDS = regex.compile(
    r"https?://\S+|www\.\S+|[@#]\w+|(?<![\w.+-])[\w.+-]++@[\w.-]+|<[^<>]{1,200}>|[\[{][^\[\]{}]{1,40}[\]}]"
)  # an address begins where a word does: each letter is read once
_MIXED = frozenset({"Latin", "Cyrillic", "Greek"})
SAYS_SCRIPT = translatable("%(share)d %% of the letters are %(script)s; declared is %(language)s")
SAYS_LANGUAGE = translatable("Rather %(found_language)s than %(language)s: “%(text)s”")
"""These two are shown to the writers of prompts, too (annotation/collection/prompt_originality.py)."""


# --- the checks -------------------------------------------------------------------------------------------------------


@cache
def scripts_written(tag: str) -> frozenset[str]:
    """The scripts of the letters that a language is written in."""
    written = languages.script(tag)
    codes = TWO_SCRIPTS.get(tag.partition("-")[0], (written,)) if f"-{written}" not in tag else (written,)
    return frozenset(name for code in codes for name in SCRIPTS.get(code, ()))


class OtherScript(Check):
    name = "other_script"
    subject = "languages"
    severity = "error"
    title = translatable("Written in another script than its language")
    help = translatable(
        "More than half of the letters belong to a script that the declared language is not written in."
    )
    says = SAYS_SCRIPT

    def __init__(self, scope: CheckScope) -> None:
        super().__init__(scope)
        self.known = False

    def look(self, item: CheckedItem) -> Iterator[Hit]:
        own = scripts_written(item.language)
        letters = sum(item.letters.values())
        self.known |= bool(own) and letters >= FEWEST_LETTERS
        if own and letters >= FEWEST_LETTERS:
            foreign = Counter({script: count for script, count in item.letters.items() if script not in own})
            weight = SIGN if languages.script(item.language) in SYLLABIC else 1
            others = foreign.total()
            if others > OTHER_SCRIPT * (others + weight * (letters - others)):
                script, count = foreign.most_common(1)[0]
                share = round(100 * count / letters)
                values: Values = {"share": share, "script": script, "language": item.language}
                yield Hit(item.ordinal, None, values)

    def why_not(self) -> str:
        return "" if self.known else "too_short"


class MixedScripts(Check):
    name = "mixed_scripts"
    subject = "languages"
    severity = "warning"
    title = translatable("Letters of a script that its language does not use")
    help = translatable(
        "Such as Cyrillic or Chinese letters in Estonian text. Latin letters are expected everywhere, for names."
    )
    says = translatable("%(letters)d %(script)s: “%(found)s” in “%(text)s”")

    def look(self, item: CheckedItem) -> Iterator[Hit]:
        own = scripts_written(item.language) | {"Latin"}
        if item.letters.keys() <= own or (own == {"Latin"} and not scripts_written(item.language)):
            return
        texts = dict(item.parts)
        foreign: dict[str, list[ScriptRun]] = {}
        for run in item.script_runs:
            if run.script not in own and not _is_sign(run, texts[run.place]):
                foreign.setdefault(run.script, []).append(run)
        for script, runs in foreign.items():
            first = max(runs, key=lambda run: len(run.letters))
            shown = excerpt_around(texts[first.place], first.start, first.start + len(first.letters))
            letters = sum(len(run.letters) for run in runs)
            values: Values = {"letters": letters, "script": script, "found": first.letters[:40], "text": shown}
            yield Hit(item.ordinal, first.place, values)


def _is_sign(run: ScriptRun, text: str) -> bool:
    """Whether it is a letter that stands for something else: µ, Ω, π, or the eye of an emoticon such as (ツ)."""
    if len(run.letters) > 1:
        return False
    before, after = text[run.start - 1 : run.start], text[run.start + 1 : run.start + 2]
    is_alone = not (before.isalpha() or after.isalpha())
    return is_alone and (run.script == "Greek" or (run.script not in ("Cyrillic", "Han") and before in "(_/\\ಠ"))


class MixedWord(Check):
    name = "mixed_word"
    subject = "languages"
    severity = "warning"
    title = translatable("Word with letters of two alphabets")
    help = translatable("Such as a Cyrillic letter in a word of Latin letters: it looks alike, and is another word.")
    says = translatable("%(found)s in “%(text)s”")

    def look(self, item: CheckedItem) -> Iterator[Hit]:
        if len(item.letters.keys() & _MIXED) < 2:
            return
        texts = dict(item.parts)
        for first, second in zip(item.script_runs, item.script_runs[1:], strict=False):
            is_neighbour = first.place == second.place and first.start + len(first.letters) == second.start
            if is_neighbour and {first.script, second.script} <= _MIXED:
                end = second.start + len(second.letters)
                shown = excerpt_around(texts[first.place], first.start, end)
                yield Hit(item.ordinal, first.place, {"found": texts[first.place][first.start : end], "text": shown})
                return


class OtherLanguage(Check):
    name = "other_language"
    subject = "languages"
    severity = "warning"
    title = translatable("Probably written in another language")
    help = translatable(
        "A program reads the whole dialogue and compares the project's languages with similar ones. It guesses: read "
        "the examples before you leave anything out."
    )
    says = SAYS_LANGUAGE

    def __init__(self, scope: CheckScope) -> None:
        super().__init__(scope)
        self.identifier = Identifier(scope.languages)
        self.judged = self.unknown = 0
        self.likely: list[tuple[str, LanguageReading, Hit]] = []
        self.read: defaultdict[str, list[ReadItem]] = defaultdict(list)

    def look(self, item: CheckedItem) -> Iterable[Hit]:
        """Notes what is likely in another language; the thresholds are known after the last item."""
        own = scripts_written(item.language)
        if not self.identifier.knows(item.language):
            self.unknown += 1
            return ()
        if sum(item.letters[script] for script in own) <= (1 - OTHER_SCRIPT) * sum(item.letters.values()):
            return ()  # `OtherScript` has it, or it has more names than words
        words = language_words(item.text[:READ])
        reading = LanguageReading()
        if sum(map(str.isalpha, words)) >= FEWEST_LETTERS:
            self.judged += 1
            reading = self.identifier.reading(words, item.language)
        if item.ordinal in self.scope.natives:
            flagged = self.scope.natives[item.ordinal]
            self.read[item.language].append(ReadItem(reading.declared, reading.is_sure, flagged))
        if reading.other:
            clearest = max(
                item.parts, key=lambda part: self.identifier.share_of(reading.other, language_words(part.text[:READ]))
            )
            shown = excerpt_around(language_words(clearest.text), 0, 60)
            values: Values = {"found_language": reading.other, "language": item.language, "text": shown}
            self.likely.append((item.language, reading, Hit(item.ordinal, clearest.place, values)))
        return ()

    def finish(self) -> Iterable[Hit]:
        corrected = {row.language: row.threshold for row in self.comparisons() if not row.reason}
        for language, reading, hit in self.likely:
            declared = max(reading.declared, LEAST_PROBABILITY)
            if declared <= corrected[language] if language in corrected else reading.is_sure:
                yield hit

    def comparisons(self) -> list[FlagComparison]:
        """The identifier beside the annotators, in every language of which they have read items."""
        return [compare_flags(language, items, usual=FAR) for language, items in sorted(self.read.items())]

    def why_not(self) -> str:
        if self.judged:
            return ""
        return "unknown_languages" if self.unknown else "too_short"


def language_words(text: str) -> str:
    """A text in one line without addresses, names of accounts, tags and placeholders, which are in no language."""
    return " ".join(_NOT_WORDS.sub(" ", text).split())


class FlaggedLanguage(Check):
    name = "flagged_language"
    subject = "languages"
    severity = "warning"
    title = translatable("Skipped by annotators as not in their language")
    help = translatable("They read it. Where they and the identifier differ, they are right.")
    says = translatable("Annotators who skipped it: %(people)d")

    def finish(self) -> Iterable[Hit]:
        flagged = sorted((self.scope.flagged or {}).items())
        return [Hit(ordinal, None, {"people": people}) for ordinal, people in flagged]

    def why_not(self) -> str:
        return "nobody_skipped" if self.scope.flagged is None else ""


# --- py3langid -------------------------------------------------------------------------------------------------------
@cache
def _model() -> Any:
    """The model, which is part of the distribution: nothing is fetched."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@cache
def written_alike(language: str) -> frozenset[str]:
    """The languages that a text in this one may be taken for without being wrong."""
    return frozenset({language, *(other for group in ALIKE if language in group.split() for other in group.split())})


@dataclass(frozen=True, slots=True)
class LanguageReading:
    """What the identifier makes of a text. ``other``: a likelier language than the declared one, or "";
    ``declared``: the probability of that beside it; ``is_sure``: whether this is a finding by the usual threshold."""

    other: str = ""
    declared: float = 1.0
    is_sure: bool = False


class Identifier:
    """Tells the language of a text from a few: those in use, their neighbours, and the most widespread ones."""

    def __init__(self, tags: Collection[str]) -> None:
        self.all = _model()
        self.labels = frozenset(self.all.labels)
        in_use = {tag.partition("-")[0] for tag in tags}
        near = {other for group in NEIGHBOURS for other in group.split() if in_use & set(group.split())}
        known = {self._label(tag) for tag in tags} - {""}
        self.few = copy(self.all)  # the numbers are shared, of which there are 120 MB
        self.few.set_languages(sorted((known | near | set(WIDESPREAD.split())) & self.labels))

    def _label(self, tag: str) -> str:
        """The label of a language, or of one that is written alike; "" if it knows none in the script of the tag: it
        has learnt Hindi in Devanagari, and takes Hindi in Latin letters for any other language."""
        language, script = tag.partition("-")[0], SCRIPTS.get(languages.script(tag))
        fitting = [
            known for known in written_alike(language) & self.labels if SCRIPTS.get(languages.script(known)) == script
        ]
        return language if language in fitting else min(fitting, default="")

    def knows(self, tag: str) -> bool:
        return bool(self._label(tag))

    def other_language(self, text: str, tag: str) -> str:
        """The language that the text is in rather than in the declared one; "" if it may be in that."""
        reading = self.reading(text, tag)
        return reading.other if reading.is_sure else ""

    def reading(self, text: str, tag: str) -> LanguageReading:
        """Whether a text is likelier in another language than in the declared one, and how sure that is."""
        same = written_alike(self._label(tag))
        ranked = self.few.rank(text)
        likely, probability = ranked[0]
        declared = float(sum(share for language, share in ranked if language in same))
        if likely in same:
            return LanguageReading()
        of_all, sure = self.all.classify(text)  # it may be none of the few
        if sure >= SURE_OF_ALL and of_all not in same:
            return LanguageReading(str(of_all), min(declared, float(1 - sure)), is_sure=True)
        return LanguageReading(str(likely), declared, is_sure=bool(probability >= SURE and declared <= FAR))

    def share_of(self, language: str, text: str) -> float:
        """How probable it is that a text is in that language; 0 for a text too short to tell."""
        return float(dict(self.all.rank(text))[language]) if sum(map(str.isalpha, text)) >= FEWEST_LETTERS else 0.0


CHECKS: tuple[type[Check], ...] = (OtherScript, MixedScripts, MixedWord, OtherLanguage, FlaggedLanguage)
