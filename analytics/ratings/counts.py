"""What a ratings table holds, how many ratings a question leaves out, and how many items its rule of reference does."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.db.models import Count, Q

from analytics.questions.plan import Plan
from analytics.ratings import ratings_tables
from analytics.ratings.exclusions import EXCLUSIONS, filtered
from analytics.ratings.rating_rows import COLUMNS, Row
from annotation import adjudication
from annotation.models import Campaign, Criterion, Item, Rating
from annotation.writers.coded_rows import CodedRows
from annotation.writers.tables import Table


def answer_counts(found: Table, campaign: Campaign, plan: Plan, excluded: Mapping[str, int]) -> dict[str, Any]:
    """What the answer to a question says of its ratings table: `counts`, `left_out`, and by the rule of reference
    `ties` and `adjudicated`. `excluded`: what exclusions left out, as `without_excluded` counted it.
    """
    on = {name: excluded[name] for name in EXCLUSIONS if name in plan.question.exclude}
    return {
        "counts": counted_table(found),
        "left_out": _unread_scores(campaign, plan) | on,
        "ties": _tied_modes(found, plan) if plan.compares_judges else {},
        "adjudicated": _adjudicated_pairs(found, campaign) if plan.is_adjudicated else {},
    }


def _unread_scores(campaign: Campaign, plan: Plan) -> dict[str, int]:
    """How many ratings of the chosen raters, under the question's filters, are left out by who gave them and how fast.

    `not_blind`: by people who could see verdicts, counted where that exclusion is off, too; `too_fast`: below
    `min_seconds`, without those that are left out as not blind; `version`: given under an earlier version of the
    rubric, counted where that exclusion is off. Those of `EXCLUSIONS` that are on, `without_excluded` counts.
    """
    question = plan.question
    here = Rating.objects.filter(plan.people, annotation__campaign=campaign, annotation__superseded_at=None)
    given = here.exclude(status=Rating.Status.STOPPED)
    not_blind, earlier = Q(annotation__blind=False), Q(given_version__isnull=False)
    too_fast = Q(annotation__seconds__lt=question.min_seconds)
    if question.blind_only:
        too_fast &= ~not_blind
    if not question.where:
        conditions = {"not_blind": not_blind, "too_fast": too_fast, "version": earlier}
        counts = given.aggregate(**{name: Count("pk", filter=condition) for name, condition in conditions.items()})
        return {name: number for name, number in counts.items() if number or name != "version"}
    every = Q(pk__in=given.filter(not_blind | too_fast | earlier))
    found = ratings_tables.table(campaign=campaign, runs=[], more=every)
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


def _tied_modes(found: Table, plan: Plan) -> dict[str, int]:
    """Of all pairs of an item and a criterion with a score, how many have a tied mode that leaves them out.

    `pairs` and `tied`; both 0 where the rule of reference is not the mode or keeps ties. Scores of one pair stand
    together.
    """
    place = itemgetter(*(found.names.index(name) for name in ("item", "criterion")))
    kind, level, score = (found.names.index(name) for name in ("rater_kind", "level", "score"))
    pairs = tied = 0
    for _pair, together in groupby(found.rows, key=place):
        rows = [row for row in together if row[kind] == "annotator" and row[score] is not None]
        if rows and _leaves_out_ties(plan.question.level or rows[0][level], plan):
            (_first, most), *others = Counter(row[score] for row in rows).most_common(2)
            pairs += 1
            tied += bool(others) and others[0][1] == most
    return {"pairs": pairs, "tied": tied}


def _adjudicated_pairs(found: Table, campaign: Campaign) -> dict[str, int]:
    """Of all pairs of an item and a criterion that were rated, how many have an adjudication.

    `pairs`; `adjudicated`, of these `not_applicable` as N/A and `stale` before a rating changed; `tied`: without one
    and, for the rule that then takes the mode, without a mode. Rows of one pair stand together.
    """
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


def _leaves_out_ties(level: str, plan: Plan) -> bool:
    """Whether a criterion of this level is settled by the mode, and a tie settles nothing (`reference_rules.RULES`)."""
    rule, ties = plan.rule
    if level == Criterion.Level.NOMINAL:
        return rule in (None, "mode", "median", "mean", "minimum")
    usual = rule == "mode" or (rule is None and level == Criterion.Level.ORDINAL)
    return usual and ties == "exclude"


# --- what a table holds ----------------------------------------------------------------------------------------------
def counted_table(found: Table) -> dict[str, int]:
    """How many items, clusters, annotators, ratings and verdicts a table holds."""
    if isinstance(found.rows, CodedRows):
        return _counted_columns(found, found.rows)
    counted = [Row(*row[: len(COLUMNS)]) for row in found.rows]
    people = [row for row in counted if row.rater_kind == "annotator"]
    return {
        "items": len({row.item for row in counted}),
        "clusters": len({row.cluster for row in counted}),
        "raters": len({row.rater for row in people}),
        "ratings": len(people),
        "scores": sum(row.score is not None for row in people),
        "not_applicable": sum(not row.applicable for row in people),
        "stopped": sum(row.missing_reason is not None for row in people),
        "judges": len({row.rater for row in counted if row.rater_kind == "judge"}),
        "verdicts": sum(row.rater_kind == "judge" for row in counted),
    }


def _counted_columns(found: Table, coded: CodedRows) -> dict[str, int]:
    place = {name: number for number, name in enumerate(found.names)}
    people, judges = (coded.where({place["rater_kind"]: kind.__eq__}) for kind in ("annotator", "judge"))
    return {
        "items": len(coded.values(place["item"])),
        "clusters": len(coded.values(place["cluster"])),
        "raters": len(people.values(place["rater"])),
        "ratings": len(people),
        "scores": len(people.where({place["score"]: lambda score: score is not None})),
        "not_applicable": len(people.where({place["applicable"]: operator.not_})),
        "stopped": len(people.where({place["missing_reason"]: lambda reason: reason is not None})),
        "judges": len(judges.values(place["rater"])),
        "verdicts": len(judges),
    }
