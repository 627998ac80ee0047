"""What a question adds to its ratings table: columns that its figures read, juries and adjudications as raters.

Audits read columns beside the judge's scores, and verdicts of audit runs have no rows of their own: `length_of_text`
is the characters of the item; `judge_family` the family of the judge's model; `changed_scores` the judge's scores of
the same item before and after each change, in its audit runs (docs/decisions/0028).
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from analytics.judges.compared_judges import LEVELS, with_levels
from analytics.questions.juries import jury_name
from analytics.questions.parameters import TIMES
from analytics.questions.plan import Plan
from analytics.ratings import ratings_tables
from analytics.ratings.dialogue_faults import dialogue_faults
from analytics.ratings.exclusions import without_excluded
from analytics.ratings.raters import audit_runs
from analytics.ratings.rating_rows import COLUMNS, Row
from analytics.ratings.rating_times import item_times, rating_moments
from annotation import adjudication
from annotation.models import Campaign, Item
from annotation.whole_item import WHOLE_ITEM_COLUMNS
from annotation.writers.tables import Column, Table, nested
from judging.models import JudgeRun, Verdict

LENGTH, FAMILY, CHANGED = "length_of_text", "judge_family", "changed_scores"
"""Columns that audits read beside a judge's scores."""
SUBMITTED_AT = "submitted_at"
"""When each rating was submitted, a column of `with_moments`."""
DIALOGUE_FAULT = "dialogue_fault"
"""Why a dialogue is known to be faulty, a column of `with_faults`."""
RATED_PLACE = "rated_place"
"""The place of an item in the order in which items were rated, a column of `with_times`."""


def question_table(campaign: Campaign, plan: Plan, left_out: Counter[str] | None = None) -> Table:
    """The ratings table of a question: nothing is left in it that the figures do not rest on.

    `left_out` is added to as rows are read: by exclusion, how many ratings it leaves out.
    """
    found = ratings_tables.table(campaign=campaign, runs=plan.runs, more=plan.ratings, names=plan.names)
    if plan.question.where or plan.question.exclude:
        found = without_excluded(found, campaign, plan.question, left_out)
    return with_additions(found, campaign, plan)


def with_additions(found: Table, campaign: Campaign, plan: Plan) -> Table:
    """The table with the times, juries, measures, levels, clusters and columns of audits that a question asks for."""
    question, columns = plan.question, plan.columns
    found = with_audited(found, campaign, plan.runs, plan.names, columns)
    if columns & {*TIMES, RATED_PLACE}:
        found = with_times(found, campaign)
    if SUBMITTED_AT in columns:
        found = with_moments(found, campaign)
    if DIALOGUE_FAULT in columns:
        found = with_faults(found, campaign)
    if plan.is_adjudicated:
        found = with_adjudications(found, campaign)
    found = with_juries(found, plan.juries, question.jury_rule)
    found = with_text_measures(found, campaign, question.measures)
    if LEVELS in columns:
        found = with_levels(found, plan.runs, plan.names)
    if question.cluster != "item":
        return found
    return replace(found, rows=((row[0], row[0], *row[2:]) for row in found.rows))


# --- audits ----------------------------------------------------------------------------------------------------------
def with_audited(
    found: Table, campaign: Campaign, runs: Sequence[JudgeRun], names: Mapping[int, str], columns: Collection[str]
) -> Table:
    """The table with those of these columns that audits read. `names`: of the judges, by run."""
    chosen = [name for name in (LENGTH, FAMILY, CHANGED) if name in columns]
    if not chosen:
        return found
    judges = {names[run.pk]: run for run in runs}
    lengths = item_lengths(campaign) if LENGTH in chosen else {}
    families = {name: model_family(run.judge.model) for name, run in judges.items()}
    of_judges = {run.judge_id: name for name, run in judges.items()}
    changed = changed_scores(campaign, of_judges) if CHANGED in chosen else {}
    by_column: dict[str, Callable[[Row], Any]] = {
        LENGTH: lambda row: float(lengths.get(row.item, 0)),
        FAMILY: lambda row: families.get(row.rater, "") if row.rater_kind == "judge" else "",
        CHANGED: lambda row: changed.get((row.rater, row.item, row.criterion), ""),
    }
    width = len(COLUMNS)
    rows = ((*row, *(by_column[name](Row(*row[:width])) for name in chosen)) for row in found.rows)
    added = (Column(name, "number" if name == LENGTH else "text") for name in chosen)
    return replace(found, columns=(*found.columns, *added), rows=rows)


def model_family(name: str) -> str:
    """The family of a model by its name: the first letters of the name after the publisher, for example gpt in
    openai/gpt-4o.
    """
    found = re.match(r"[^\W\d_]+", name.rpartition("/")[2].casefold())
    return found[0] if found else name.casefold()


def item_lengths(campaign: Campaign) -> dict[str, int]:
    """By item, the number of characters of its turns and fields."""
    texts = Item.objects.of(campaign.dataset).values_list("external_id", "turns", "fields")
    return {
        item: sum(len(turn.get("text") or "") for turn in turns)
        + sum(len(str(text)) for text in (fields or {}).values())
        for item, turns, fields in texts.iterator()
    }


def changed_scores(campaign: Campaign, names: Mapping[int, str]) -> dict[tuple[str, str, str], str]:
    """By judge, item and criterion, as JSON: by change the score before and after it, both of the newest audit that
    has them. ``names``: the judges wanted, by key, as the table calls them. N/A and scores off the scale don't count.
    """
    verdicts = Verdict.objects.filter(
        run__in=audit_runs(campaign).filter(judge__in=names), status=Verdict.Status.OK, score__isnull=False
    )
    columns = ("run", "change", "run__judge", "item__external_id", "criterion__key", "score")
    before: dict[tuple[int, str, str], float] = {}
    changed: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for run, change, judge, item, criterion, score in verdicts.order_by("run", "change").values_list(*columns):
        if not change:
            before[run, item, criterion] = score
        elif (first := before.get((run, item, criterion))) is not None:
            changed.setdefault((names[judge], item, criterion), {})[change] = [first, score]
    return {key: nested(scores) for key, scores in changed.items()}


# --- several judges as one rater (METHODS 4) -------------------------------------------------------------------------
_JURY = "jury"
_TIED = "tied"
"""Why a jury has no score where no point has the most votes."""
FEW_MEMBERS = "few_members"
"""Why a jury has no score where half of its members or fewer gave one on the scale."""


def with_juries(found: Table, juries: Sequence[Sequence[str]], rule: str) -> Table:
    """The table with a row for each jury after the verdicts of its members on an item and criterion.

    Members count by their first answer, on the scale and not N/A; more than half of them have to. A row without a
    score says why: too few members, or a tied majority. An item that no member was asked about has no row.
    """
    if not juries:
        return found
    width = len(COLUMNS)

    def place(row: Sequence[Any]) -> tuple[str, str]:
        return row[0], row[2]

    def rows() -> Iterator[Sequence[Any]]:
        for _place, group in groupby(found.rows, key=place):
            cell = list(group)
            yield from cell
            for members in juries:
                first = _first_answers([Row(*row[:width]) for row in cell], members)
                if first:
                    yield (*_verdict_of(first, members, rule), *cell[0][width:])

    return replace(found, rows=rows())


def _first_answers(rows: Sequence[Row], members: Sequence[str]) -> list[Row]:
    """The first answer of each member that has one, with or without a score."""
    first: dict[str, Row] = {}
    for row in rows:
        if row.rater_kind == "judge" and row.rater in members:
            first.setdefault(row.rater, row)
    return list(first.values())


def _verdict_of(first: Sequence[Row], members: Sequence[str], rule: str) -> Row:
    """The row of a jury, of the first answers of its members; more than half N/A is N/A."""
    half = len(set(members)) / 2
    scores = [float(row.score) for row in first if row.score is not None and row.applicable and not row.missing_reason]
    used = "majority" if first[0].level == "nominal" else rule
    score, reason = None, FEW_MEMBERS
    if len(scores) > half:
        score, reason = jury_score(scores, used), _TIED
    not_applicable = sum(not row.applicable for row in first) > half
    return first[0]._replace(
        rater=jury_name(members, rule), rater_kind=_JURY, score=score, score_label="", repeat=0, rationale_length=0,
        applicable=not not_applicable, missing_reason=None if score is not None or not_applicable else reason,
    )  # fmt: skip


def jury_score(scores: Sequence[float], rule: str) -> float | None:
    """The score of a jury from its members' scores; None if a majority is tied."""
    if rule == "majority":
        most = statistics.multimode(scores)
        return most[0] if len(most) == 1 else None
    if rule == "minimum":
        return min(scores)
    return statistics.median(scores) if rule == "median" else statistics.fmean(scores)


# --- measures of the items: numeric attributes, and surface metrics of their texts (METHODS 6) -----------------------
TEXT = "text."
TEXT_MEASURES = tuple(f"{TEXT}{name}" for name in ("characters", "words", "sentences", "turns", "ttr", "mattr", "mtld"))
"""The measures of each item's text: its turns, else its answer, else all of its fields."""


def with_text_measures(found: Table, campaign: Campaign, names: Sequence[str]) -> Table:
    """The table with a column for each of these measures of the item's text; other names are left out."""
    wanted = [name for name in names if name in TEXT_MEASURES]
    if not wanted:
        return found
    item_at = found.names.index("item")

    def rows() -> Iterator[Sequence[Any]]:
        values = _text_values(campaign, wanted)
        return ((*row, *values[row[item_at]]) for row in found.rows)

    return replace(found, columns=(*found.columns, *(Column(name, "number") for name in wanted)), rows=_Lazy(rows))


class _Lazy:
    """Rows whose first one takes long, read when somebody asks for it."""

    def __init__(self, rows: Callable[[], Iterator[Sequence[Any]]]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Sequence[Any]]:
        return self._rows()


def _text_values(campaign: Campaign, names: Sequence[str]) -> dict[str, tuple[float | None, ...]]:
    from analytics.stats.text.surface import Dialogue, text_measures

    plain = [name.removeprefix(TEXT) for name in names]
    items = Item.objects.of(campaign.dataset).values_list("external_id", "language", "turns", "fields")
    values: dict[str, tuple[float | None, ...]] = {}
    for external, language, turns, fields in items.iterator(500):
        spoken = tuple((turn.get("speaker", ""), turn["text"]) for turn in turns or [])
        rated = fields["answer"] if "answer" in (fields or {}) else "\n".join(map(str, (fields or {}).values()))
        dialogue = Dialogue(external, spoken or (("", str(rated)),), language)
        values[external] = tuple(text_measures(dialogue, plain).values())
    return values


# --- decisions and times ---------------------------------------------------------------------------------------------
def with_adjudications(found: Table, campaign: Campaign) -> Table:
    """The table with a row of the adjudicator after the ratings of every item and criterion that has a decision.

    The newest decision counts, also where a rating has changed since. It belongs to the item, not to raters: filters of
    raters and panels leave it.
    """
    decided, names = adjudication.current(campaign), adjudication.adjudicator_names(campaign)
    items = dict(Item.objects.filter(pk__in={item for item, _criterion in decided}).values_list("pk", "external_id"))
    criteria = {criterion.pk: criterion for criterion in campaign.rubric_version.criteria.all()}
    by_place = {(items[item], criteria[pk].key): (row, criteria[pk]) for (item, pk), row in decided.items()}
    width = len(COLUMNS)

    def rows() -> Iterator[Sequence[Any]]:
        for place, group in groupby(found.rows, key=itemgetter(0, 2)):
            cell = list(group)
            yield from cell
            if place in by_place:
                row, criterion = by_place[place]
                source = criterion.text.get("source_language", "en")
                about_item: dict[str, Any] = dict.fromkeys(WHOLE_ITEM_COLUMNS)
                of_adjudicator = Row(*cell[0][:width])._replace(
                    rater=names[row.adjudicator_id],
                    rater_kind="adjudicator",
                    rater_identified=True,
                    panel=None,
                    score=row.score,
                    applicable=row.score is not None,
                    missing_reason=None,
                    repeat=0,
                    blind=None,
                    score_label="" if row.score is None else criterion.label(row.score, source),
                    duty=None,
                    seconds=None,
                    rationale_length=len(row.rationale),
                    **about_item,
                )
                yield (*of_adjudicator, *cell[0][width:])

    return replace(found, rows=rows())


def with_times(found: Table, campaign: Campaign) -> Table:
    """The table with the columns `week`, `hundred` and `rated_place` of each item, by its last annotation.

    They are empty where it has none. Ratings of one item so stay together.
    """
    times = item_times(campaign)
    item_at = found.names.index("item")
    rows = ((*row, *times.get(row[item_at], (None, None, None))) for row in found.rows)
    columns = (Column("week"), Column("hundred"), Column(RATED_PLACE, "integer"))
    return replace(found, columns=(*found.columns, *columns), rows=rows)


def with_moments(found: Table, campaign: Campaign) -> Table:
    """The table with the column `submitted_at` of each rating: when it was submitted here, in seconds."""
    moments = rating_moments(campaign)
    item_at, rater_at = (found.names.index(name) for name in ("item", "rater"))
    rows = ((*row, moments.get((row[item_at], row[rater_at]))) for row in found.rows)
    return replace(found, columns=(*found.columns, Column(SUBMITTED_AT, "number")), rows=rows)


def with_faults(found: Table, campaign: Campaign) -> Table:
    """The table with the column `dialogue_fault` of each item; it is empty for a sound dialogue."""
    faults = dialogue_faults(campaign)
    item_at = found.names.index("item")
    rows = ((*row, faults.get(row[item_at])) for row in found.rows)
    return replace(found, columns=(*found.columns, Column(DIALOGUE_FAULT, "word")), rows=rows)
