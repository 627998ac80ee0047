"""What a question leaves out: ratings by exclusions that are on or off, and items by the rule of reference (METHODS 2).

Every exclusion is counted. They apply in a fixed order, and a rating is counted under the first one that it meets.

A rationale is in another language by two checks: the script of most letters, and English in the place of another
language in Latin script (S2 App. B). Other languages of one script are not told apart: short rationales do not say
enough.
"""

from __future__ import annotations

import re
import statistics
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from django.db.models import Q, QuerySet

from accounts import languages
from analytics import ratings
from annotation import adjudication
from annotation.desk.answers import Answer, rationale_problem, worst
from annotation.desk.presentation import text_language
from annotation.models import Annotation, Annotator, Campaign, Criterion, Duty, Item, Rating, ReferenceItem
from annotation.qualification import controls
from annotation.writers.tables import Table

if TYPE_CHECKING:
    from analytics.questions.question import NumbersQuestion

FEWEST_LETTERS = 10
FEWEST_WORDS = 6
_ENGLISH_SHARE, _OWN_SHARE = 0.8, 0.5
_SCRIPTS = {
    "Latn": ("LATIN",),
    "Cyrl": ("CYRILLIC",),
    "Grek": ("GREEK",),
    "Arab": ("ARABIC",),
    "Aran": ("ARABIC",),
    "Hebr": ("HEBREW",),
    "Deva": ("DEVANAGARI",),
    "Beng": ("BENGALI",),
    "Taml": ("TAMIL",),
    "Telu": ("TELUGU",),
    "Gujr": ("GUJARATI",),
    "Knda": ("KANNADA",),
    "Mlym": ("MALAYALAM",),
    "Guru": ("GURMUKHI",),
    "Thai": ("THAI",),
    "Laoo": ("LAO",),
    "Mymr": ("MYANMAR",),
    "Khmr": ("KHMER",),
    "Geor": ("GEORGIAN",),
    "Armn": ("ARMENIAN",),
    "Ethi": ("ETHIOPIC",),
    "Hans": ("CJK",),
    "Hant": ("CJK",),
    "Jpan": ("CJK", "HIRAGANA", "KATAKANA"),
    "Kore": ("HANGUL", "CJK"),
}
"""By script, how the Unicode names of its letters begin. A language in another script is not checked."""
_ALSO_IN = {
    **dict.fromkeys(("sr", "bs", "kk", "tt", "uz", "az", "tk"), ("LATIN", "CYRILLIC")),
    **dict.fromkeys(("ha", "ms", "ku"), ("LATIN", "ARABIC")),
    **dict.fromkeys(("ky", "tg"), ("CYRILLIC", "ARABIC")),
    **dict.fromkeys(("sd", "ks"), ("ARABIC", "DEVANAGARI")),
    "pa": ("GURMUKHI", "ARABIC"),
}
"""Languages that people write in either of two scripts, unless the tag names one."""
_WORD = re.compile(r"[^\W\d_]+")
EXCLUSIONS = ("version", "controls", "speed", "rationale", "language", "critical", "single")
"""In the order in which they apply.

`version`: ratings that were given under an earlier version of the rubric, and kept or mapped. `controls`: every rating,
in a duty, of an annotator whose control items there match their references too seldom (the
whole interval lies below the threshold, as where their work is paused). `speed`: an item that was rated in less than a
third of the median time of its duty, among items with the same criteria. `rationale`: a rationale that breaks the rule
of its criterion. `language`: a rationale in another language than those of the item and of the criterion as it was
shown. `critical`: every rating of an item and criterion where one annotator gave a critical mark or was stopped by one,
chosen or not. `single`: the only score left of an item and criterion.
"""
SUSPICIOUS_SHARE = 1 / 3
FEWEST_TIMES = 10
"""Times of one duty from which their median says something."""
Place = tuple[str, str, str, str | None]


def available_exclusions(campaign: Campaign) -> tuple[str, ...]:
    """The exclusions that may leave something out: there are times, rules on rationales, critical criteria."""
    criteria = list(Criterion.objects.filter(rubric_version=campaign.rubric_version_id))
    timed = Annotation.objects.filter(campaign=campaign, superseded_at=None).exclude(seconds=None)
    there = {
        "version": ratings.given_earlier(campaign) > 0,
        "controls": ReferenceItem.objects.filter(campaign=campaign, purpose=ReferenceItem.Purpose.CONTROL).exists(),
        "speed": timed.exists(),
        "rationale": any(_has_rule(criterion) for criterion in criteria),
        "language": _reasons(campaign).exists(),
        "critical": any(criterion.is_critical and worst(criterion) is not None for criterion in criteria),
        "single": True,
    }
    return tuple(name for name in EXCLUSIONS if there[name])


def without_excluded(
    found: Table, campaign: Campaign, question: NumbersQuestion, counts: Counter[str] | None = None
) -> Table:
    """The ratings table without the ratings that the question's exclusions leave out; verdicts stay.

    `counts` is added to as rows are read: by exclusion, how many ratings (scores and N/A) it leaves out.
    """
    if not question.exclude:
        return found
    places = [found.names.index(name) for name in ("item", "criterion")]
    rules = [(name, _RULES[name](campaign, found)) for name in EXCLUSIONS if name in question.exclude]
    counted = Counter[str]() if counts is None else counts
    kind, is_rating = found.names.index("rater_kind"), _rating_test(found)

    def kept() -> Iterator[Sequence[Any]]:
        for _pair, together in groupby(found.rows, key=itemgetter(*places)):
            rows = list(together)
            people = left = [row for row in rows if row[kind] == "annotator"]
            for name, rule in rules:
                remaining = rule(people, left)
                counted[name] += sum(map(is_rating, left)) - sum(map(is_rating, remaining))
                left = remaining
            yield from left
            yield from (row for row in rows if row[kind] != "annotator")

    return replace(found, rows=kept())


Rows = list[Sequence[Any]]
ExclusionRule = Callable[[Rows, Rows], Rows]
"""From all ratings of an item and criterion, and those that are left, the ones that stay."""


def _rating_test(found: Table) -> Callable[[Sequence[Any]], bool]:
    """Whether a row is a rating: a score or N/A, not what a critical mark stopped."""
    reason = found.names.index("missing_reason")
    return lambda row: row[reason] is None


def below_controls(campaign: Campaign) -> frozenset[tuple[str, str]]:
    """Pseudonym and duty of every annotator whose controls fall under the threshold."""
    below = controls.below_threshold(campaign)
    names = dict(Annotator.objects.filter(project=campaign.project_id).values_list("pk", "pseudonym"))
    duties = dict(Duty.objects.filter(pk__in=below).values_list("pk", "name"))
    return frozenset((names[person], duties[duty]) for duty, people in below.items() for person in people)


def _version_rule(campaign: Campaign, found: Table) -> ExclusionRule:
    version, present = found.names.index("rubric_version"), campaign.rubric_version.number

    def rule(_all: Rows, left: Rows) -> Rows:
        return [row for row in left if row[version] == present]

    return rule


def _controls_rule(campaign: Campaign, found: Table) -> ExclusionRule:
    place = itemgetter(*(found.names.index(name) for name in ("rater", "duty")))
    below = below_controls(campaign)

    def rule(_all: Rows, left: Rows) -> Rows:
        return [row for row in left if place(row) not in below]

    return rule


def _speed_rule(campaign: Campaign, found: Table) -> ExclusionRule:
    seconds, duty = found.names.index("seconds"), found.names.index("duty")
    place = itemgetter(*(found.names.index(name) for name in ("item", "rater", "duty")))
    fewest, sets = fewest_seconds(campaign), _criteria_sets(campaign)

    def rule(_all: Rows, left: Rows) -> Rows:
        limits = (fewest.get((row[duty], sets.get(place(row), 0)), 0.0) for row in left)
        return [row for row, least in zip(left, limits, strict=True) if row[seconds] is None or row[seconds] >= least]

    return rule


def fewest_seconds(campaign: Campaign) -> dict[tuple[str | None, int], float]:
    """By duty (None: imported) and set of criteria (0: all), a third of the median seconds of its current annotations;
    only where enough are known. An item that asks for fewer criteria takes less time.

    A convention, not a test: `min_seconds` of a question sets a limit of one's own.
    """
    times = defaultdict[tuple[str | None, int], list[float]](list)
    timed = Annotation.objects.filter(campaign=campaign, superseded_at=None).exclude(seconds=None)
    columns = ("assignment__duty__name", "assignment__criteria_set", "seconds")
    for duty, criteria_set, seconds in timed.values_list(*columns).iterator():
        times[duty, criteria_set or 0].append(seconds or 0.0)
    known = {group: values for group, values in times.items() if len(values) >= FEWEST_TIMES}
    return {group: statistics.median(values) * SUSPICIOUS_SHARE for group, values in known.items()}


def _criteria_sets(campaign: Campaign) -> dict[tuple[str, str, str | None], int]:
    """The set of criteria by item, annotator and duty, where it is not all criteria of the duty."""
    rows = Annotation.objects.filter(campaign=campaign, superseded_at=None, assignment__criteria_set__gt=0)
    place = ("item__external_id", "annotator__pseudonym", "assignment__duty__name")
    return {tuple(at): number for *at, number in rows.values_list(*place, "assignment__criteria_set").iterator()}


def _rationale_rule(campaign: Campaign, found: Table) -> ExclusionRule:
    place = itemgetter(*(found.names.index(name) for name in ("item", "criterion", "rater", "duty")))
    broken = _broken_rationales(campaign)

    def rule(_all: Rows, left: Rows) -> Rows:
        return [row for row in left if place(row) not in broken]

    return rule


def _broken_rationales(campaign: Campaign) -> set[Place]:
    """Item, criterion, annotator and duty of every rating whose rationale breaks the rule of its criterion."""
    criteria = {criterion.pk: criterion for criterion in campaign.rubric_version.criteria.all() if _has_rule(criterion)}
    here = Rating.objects.filter(
        annotation__campaign=campaign, annotation__superseded_at=None, criterion__in=criteria, score__isnull=False
    )
    about = [f"annotation__{name}" for name in ("item__external_id", "annotator__pseudonym", "assignment__duty__name")]
    rows = here.values_list(*about, "criterion", "score", "rationale", "rule_kept")
    return {
        (item, criteria[criterion].key, rater, duty)
        for item, rater, duty, criterion, score, text, rule_kept in rows.iterator()
        if rule_kept is False
        or (rule_kept is None and rationale_problem(criteria[criterion], Answer(score=score, rationale=text)))
    }


def _reasons(campaign: Campaign) -> QuerySet[Rating]:
    """The current ratings that have a rationale."""
    return Rating.objects.filter(
        annotation__campaign=campaign, annotation__superseded_at=None, score__isnull=False
    ).exclude(rationale="")


def _language_rule(campaign: Campaign, found: Table) -> ExclusionRule:
    place = itemgetter(*(found.names.index(name) for name in ("item", "criterion", "rater", "duty")))
    foreign = _foreign_rationales(campaign)

    def rule(_all: Rows, left: Rows) -> Rows:
        return [row for row in left if place(row) not in foreign]

    return rule


def _foreign_rationales(campaign: Campaign) -> set[Place]:
    """Item, criterion, annotator and duty of every rating whose rationale is in a language that nobody asked for."""
    criteria = {criterion.pk: criterion for criterion in campaign.rubric_version.criteria.all()}
    about = [f"annotation__{name}" for name in ("item__external_id", "annotator__pseudonym", "assignment__duty__name")]
    rows = _reasons(campaign).values_list(*about, "annotation__item__language", "criterion", "rationale")
    shown = cache(lambda criterion, language: text_language([criteria[criterion]], language))
    return {
        (item, criteria[criterion].key, rater, duty)
        for item, rater, duty, language, criterion, text in rows.iterator()
        if is_in_another_language(text, {language, shown(criterion, language)})
    }


def _has_rule(criterion: Criterion) -> bool:
    return criterion.rationale_rule != Criterion.RationaleRule.OPTIONAL


def _critical_rule(campaign: Campaign, found: Table) -> ExclusionRule:
    place = itemgetter(*(found.names.index(name) for name in ("item", "criterion")))
    marked = _marked_pairs(campaign)

    def rule(_all: Rows, left: Rows) -> Rows:
        return [row for row in left if place(row) not in marked]

    return rule


def _marked_pairs(campaign: Campaign) -> set[tuple[str, str]]:
    """Item and criterion of every critical mark, and of what one stopped, by any annotator: chosen or not."""
    is_marked = Q(status=Rating.Status.STOPPED)
    for criterion in campaign.rubric_version.criteria.all():
        if criterion.is_critical and (point := worst(criterion)) is not None:
            is_marked |= Q(criterion=criterion, score=point)
    here = Rating.objects.filter(is_marked, annotation__campaign=campaign, annotation__superseded_at=None)
    return set(here.values_list("annotation__item__external_id", "criterion__key").iterator())


def _single_rule(_campaign: Campaign, found: Table) -> ExclusionRule:
    score = found.names.index("score")

    def rule(_all: Rows, left: Rows) -> Rows:
        if sum(row[score] is not None for row in left) != 1:
            return left
        return [row for row in left if row[score] is None]

    return rule


_RULES: dict[str, Callable[[Campaign, Table], ExclusionRule]] = {
    "version": _version_rule,
    "controls": _controls_rule,
    "speed": _speed_rule,
    "rationale": _rationale_rule,
    "language": _language_rule,
    "critical": _critical_rule,
    "single": _single_rule,
}


# --- who and how long ------------------------------------------------------------------------------------------------
def of_panels(question: NumbersQuestion) -> Q:
    return Q(annotation__assignment__duty__panel__name__in=question.panels) if question.panels else Q()


def slow_enough(question: NumbersQuestion) -> Q:
    """A rating with an unknown duration counts."""
    if not question.min_seconds:
        return Q()
    return Q(annotation__seconds=None) | Q(annotation__seconds__gte=question.min_seconds)


# --- filters ---------------------------------------------------------------------------------------------------------
def filtered(found: Table, question: NumbersQuestion) -> Table:
    """The rows that the question's filters let through."""
    if not question.where:
        return found
    wanted = defaultdict[int, set[str]](set)
    for column, value in question.where:
        wanted[found.names.index(column)].add(value)
    return replace(found, rows=(row for row in found.rows if _is_wanted(row, wanted)))


def _is_wanted(row: Sequence[Any], wanted: Mapping[int, set[str]]) -> bool:
    return all(("" if row[place] is None else str(row[place])) in values for place, values in wanted.items())


# --- counts ----------------------------------------------------------------------------------------------------------
def excluded_scores(campaign: Campaign, question: NumbersQuestion) -> dict[str, int]:
    """How many ratings of the chosen raters, under the question's filters, are left out by who gave them and how fast.

    `not_blind`: by people who could see verdicts, counted where that exclusion is off, too; `too_fast`: below
    `min_seconds`, without those that are left out as not blind; `version`: given under an earlier version of the
    rubric, counted where that exclusion is off. Those of `EXCLUSIONS` that are on, `without_excluded` counts.
    """
    chosen = ratings.ratings_condition(question.raters) & of_panels(question)
    here = Rating.objects.filter(chosen, annotation__campaign=campaign, annotation__superseded_at=None)
    given = here.exclude(status=Rating.Status.STOPPED)
    not_blind = given.filter(annotation__blind=False)
    too_fast = given.exclude(slow_enough(question)) if question.min_seconds else given.none()
    if question.blind_only:
        too_fast = too_fast.exclude(annotation__blind=False)
    earlier = given.filter(given_version__isnull=False)
    if not question.where:
        counts = {"not_blind": not_blind.count(), "too_fast": too_fast.count()}
        if number := earlier.count():
            counts["version"] = number
        return counts
    every = Q(pk__in=not_blind) | Q(pk__in=too_fast) | Q(pk__in=earlier)
    found = ratings.table(campaign=campaign, runs=[], more=every)
    rows = list(filtered(found, question).rows)
    blind, seconds, version = (found.names.index(name) for name in ("blind", "seconds", "rubric_version"))
    present = campaign.rubric_version.number
    given_earlier = {"version": number} if (number := sum(row[version] != present for row in rows)) else {}
    return given_earlier | {
        "not_blind": sum(row[blind] is False for row in rows),
        "too_fast": sum(
            row[seconds] is not None
            and row[seconds] < question.min_seconds
            and not (question.blind_only and row[blind] is False)
            for row in rows
        ),
    }


def tied_modes(found: Table, question: NumbersQuestion) -> dict[str, int]:
    """Of all pairs of an item and a criterion with a score, how many have a tied mode that leaves them out.

    `pairs` and `tied`; both 0 where the rule of reference is not the mode or keeps ties. Scores of one pair stand
    together.
    """
    place = itemgetter(*(found.names.index(name) for name in ("item", "criterion")))
    kind, level, score = (found.names.index(name) for name in ("rater_kind", "level", "score"))
    pairs = tied = 0
    for _pair, together in groupby(found.rows, key=place):
        rows = [row for row in together if row[kind] == "annotator" and row[score] is not None]
        if rows and leaves_out_ties(question.level or rows[0][level], question):
            (_first, most), *others = Counter(row[score] for row in rows).most_common(2)
            pairs += 1
            tied += bool(others) and others[0][1] == most
    return {"pairs": pairs, "tied": tied}


def adjudicated_pairs(found: Table, campaign: Campaign, question: NumbersQuestion) -> dict[str, int]:
    """Of all pairs of an item and a criterion that were rated, how many have an adjudication; {} for other rules.

    `pairs`; `adjudicated`, of these `not_applicable` as N/A and `stale` before a rating changed; `tied`: without one
    and, for the rule that then takes the mode, without a mode. Rows of one pair stand together.
    """
    if not question.is_adjudicated:
        return {}
    place = itemgetter(*(found.names.index(name) for name in ("item", "criterion")))
    kind, score = (found.names.index(name) for name in ("rater_kind", "score"))
    old = adjudication.stale(campaign, adjudication.current(campaign))
    items = dict(Item.objects.filter(pk__in={item for item, _criterion in old}).values_list("pk", "external_id"))
    keys = dict(campaign.rubric_version.criteria.values_list("pk", "key"))
    changed = {(items[item], keys[criterion]) for item, criterion in old}
    counts = dict.fromkeys(("pairs", "adjudicated", "not_applicable", "stale", "tied"), 0)
    for pair, together in groupby(found.rows, key=place):
        rows = list(together)
        decided = [row for row in rows if row[kind] == "adjudicator"]
        given = [row[score] for row in rows if row[kind] == "annotator" and row[score] is not None]
        if not (decided or given):
            continue
        counts["pairs"] += 1
        counts["adjudicated"] += bool(decided)
        counts["not_applicable"] += any(row[score] is None for row in decided)
        counts["stale"] += bool(decided) and pair in changed
        (_first, most), *others = Counter(given).most_common(2) or [(None, 0)]
        counts["tied"] += not decided and bool(others) and others[0][1] == most
    return counts


def leaves_out_ties(level: str, question: NumbersQuestion) -> bool:
    """Whether a criterion of this level is settled by the mode, and a tie settles nothing (`reference_rules.RULES`)."""
    rule, ties = question.rule
    if level == Criterion.Level.NOMINAL:
        return rule in (None, "mode", "median", "mean", "minimum")
    usual = rule == "mode" or (rule is None and level == Criterion.Level.ORDINAL)
    return usual and ties == "exclude"


def is_in_another_language(text: str, expected: Collection[str]) -> bool:
    """Whether a rationale is written in none of the `expected` languages, as far as this can be told.

    Fewer than ten letters say nothing. Under half of the letters in an expected script: another language. Six words or
    more that are English, where English is not expected and the words are not known in an expected language: English.
    """
    letters = [character for character in text if character.isalpha()]
    known = [_letters_of(tag) for tag in expected]
    scripts = {name for names in known for name in names}
    if len(letters) < FEWEST_LETTERS or not all(known):
        return False
    own = sum(unicodedata.name(letter, "").partition(" ")[0] in scripts for letter in letters)
    if 2 * own < len(letters):
        return True
    return "LATIN" in scripts and _is_english_instead(text, {tag.partition("-")[0] for tag in expected})


def _letters_of(tag: str) -> tuple[str, ...]:
    """How the names of its letters begin, in every script that it is written in; none where it is not checked."""
    language, _hyphen, more = tag.partition("-")
    names_script = any(len(part) == 4 and part.isalpha() for part in more.split("-"))
    names = _SCRIPTS.get(languages.script(tag), ())
    return names if names_script or not names else (*names, *_ALSO_IN.get(language, ()))


def _is_english_instead(text: str, expected: Collection[str]) -> bool:
    from simplemma import in_target_language  # its dictionaries are read at the first call

    known = [tag for tag in sorted(expected) if tag in _with_dictionary()]
    if "en" in expected or len(known) < len(expected) or len(_WORD.findall(text)) < FEWEST_WORDS:
        return False
    own = max(float(in_target_language(text, lang=tag)) for tag in known)
    return float(in_target_language(text, lang="en")) >= _ENGLISH_SHARE and own < _OWN_SHARE


@cache
def _with_dictionary() -> frozenset[str]:
    from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

    return frozenset(SUPPORTED_LANGUAGES)
