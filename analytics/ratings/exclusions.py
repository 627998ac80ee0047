"""What a question leaves out of the ratings table: filters, and exclusions that are on or off (METHODS 2).

Every exclusion is counted. They apply in a fixed order, and a rating is counted under the first one that it meets.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from django.db.models import Q, QuerySet

from analytics.ratings.raters import ratings_condition
from analytics.ratings.rationale_languages import is_in_another_language
from annotation.desk.answers import Answer, rationale_problem, worst
from annotation.desk.presentation import text_language
from annotation.models import Annotation, Annotator, Campaign, Criterion, Duty, Rating, ReferenceItem
from annotation.qualification import controls
from annotation.writers.tables import Table

if TYPE_CHECKING:
    from analytics.questions.question import NumbersQuestion

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
        "version": given_earlier(campaign) > 0,
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

    Filters come first: they are about items and criteria, and let all ratings of one item and criterion through or
    none. `counts` is added to as rows are read: by exclusion, how many ratings (scores and N/A) it leaves out.
    """
    found = filtered(found, question)
    if not question.exclude:
        return found
    places = [found.names.index(name) for name in ("item", "criterion")]
    rules = [(name, _RULES[name](campaign, found)) for name in EXCLUSIONS if name in question.exclude]
    counted = Counter[str]() if counts is None else counts
    kind, reason = (found.names.index(name) for name in ("rater_kind", "missing_reason"))

    def kept() -> Iterator[Sequence[Any]]:
        for _pair, together in groupby(found.rows, key=itemgetter(*places)):
            rows = list(together)
            left = [row for row in rows if row[kind] == "annotator"]
            for name, rule in rules:
                remaining = rule(left)
                # A rating has a score or is N/A: what a critical mark stopped has a reason.
                counted[name] += sum(row[reason] is None for row in left)
                counted[name] -= sum(row[reason] is None for row in remaining)
                left = remaining
            yield from left
            yield from (row for row in rows if row[kind] != "annotator")

    return replace(found, rows=kept())


Rows = list[Sequence[Any]]
ExclusionRule = Callable[[Rows], Rows]
"""From the ratings of an item and criterion that are left, the ones that stay."""


def _without(found: Table, names: Sequence[str], is_excluded: Callable[[Any], bool]) -> ExclusionRule:
    """Leaves out the ratings of whose values in these columns this is true."""
    value = itemgetter(*(found.names.index(name) for name in names))
    return lambda left: [row for row in left if not is_excluded(value(row))]


def below_controls(campaign: Campaign) -> frozenset[tuple[str, str]]:
    """Pseudonym and duty of every annotator whose controls fall under the threshold."""
    below = controls.below_threshold(campaign)
    names = dict(Annotator.objects.filter(project=campaign.project_id).values_list("pk", "pseudonym"))
    duties = dict(Duty.objects.filter(pk__in=below).values_list("pk", "name"))
    return frozenset((names[person], duties[duty]) for duty, people in below.items() for person in people)


def _speed_rule(campaign: Campaign, found: Table) -> ExclusionRule:
    seconds, duty = found.names.index("seconds"), found.names.index("duty")
    place = itemgetter(*(found.names.index(name) for name in ("item", "rater", "duty")))
    fewest, sets = fewest_seconds(campaign), _criteria_sets(campaign)

    def rule(left: Rows) -> Rows:
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


def marked_pairs(campaign: Campaign) -> set[tuple[str, str]]:
    """Item and criterion of every critical mark, and of what one stopped, by any annotator: chosen or not."""
    is_marked = Q(status=Rating.Status.STOPPED)
    for criterion in campaign.rubric_version.criteria.all():
        if criterion.is_critical and (point := worst(criterion)) is not None:
            is_marked |= Q(criterion=criterion, score=point)
    here = Rating.objects.filter(is_marked, annotation__campaign=campaign, annotation__superseded_at=None)
    return set(here.values_list("annotation__item__external_id", "criterion__key").iterator())


def _single_rule(_campaign: Campaign, found: Table) -> ExclusionRule:
    score = found.names.index("score")

    def rule(left: Rows) -> Rows:
        if sum(row[score] is not None for row in left) != 1:
            return left
        return [row for row in left if row[score] is None]

    return rule


_OF_RATING = ("item", "criterion", "rater", "duty")
_RULES: dict[str, Callable[[Campaign, Table], ExclusionRule]] = {
    "version": lambda campaign, found: _without(
        found, ("rubric_version",), lambda version: version != campaign.rubric_version.number
    ),
    "controls": lambda campaign, found: _without(found, ("rater", "duty"), below_controls(campaign).__contains__),
    "speed": _speed_rule,
    "rationale": lambda campaign, found: _without(found, _OF_RATING, _broken_rationales(campaign).__contains__),
    "language": lambda campaign, found: _without(found, _OF_RATING, _foreign_rationales(campaign).__contains__),
    "critical": lambda campaign, found: _without(found, ("item", "criterion"), marked_pairs(campaign).__contains__),
    "single": _single_rule,
}


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


# --- ratings that a reader should know of -----------------------------------------------------------------------------
def marked_counts(campaign: Campaign, raters: Collection[str] = ()) -> dict[str, int]:
    """`not_blind` and `given_earlier`, as a snapshot's content has them."""
    return {"not_blind": not_blind(campaign, raters), "given_earlier": given_earlier(campaign, raters)}


def given_earlier(campaign: Campaign, raters: Collection[str] = ()) -> int:
    """How many of the ratings (of these annotators, or of all) were given under an earlier version of the rubric."""
    here = Rating.objects.filter(
        ratings_condition(raters), annotation__campaign=campaign, annotation__superseded_at=None
    )
    return here.filter(given_version__isnull=False).exclude(status=Rating.Status.STOPPED).count()


def not_blind(campaign: Campaign, raters: Collection[str] = ()) -> int:
    """How many of the scores (of these annotators, or of all) were given by people who could see verdicts."""
    here = Rating.objects.filter(
        ratings_condition(raters), annotation__campaign=campaign, annotation__superseded_at=None
    )
    return here.filter(annotation__blind=False, status=Rating.Status.SCORED).count()
