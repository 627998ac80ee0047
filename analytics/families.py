"""Statistics of a question beyond one judge and the panel: the report of `analytics.stats` that computes each.

`panelbench numbers`, the API and the page Explore reach them by name, `FAMILY.STATISTIC`; and juries: several judges as
one rater of the ratings table. pandas and scipy are loaded when a report is computed.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from analytics import ratings
from analytics.judges import judge_reports
from analytics.judges.compared_judges import LEVELS, with_levels
from analytics.judges.judge_reports import READ, with_audited
from analytics.questions.goals import goal_values
from analytics.questions.juries import jury_name
from analytics.ratings import Row
from analytics.stats.declared.register import REPORTS, STATISTICS
from annotation import adjudication
from annotation.models import Campaign, Item
from annotation.writers.tables import Column, Table

if TYPE_CHECKING:
    from analytics.computation.stored_cells import CodedTable
    from analytics.questions.question import NumbersQuestion
    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.tables import RatingsTable
    from judging.models import JudgeRun

Options = dict[str, Any]
Call = tuple[str, Callable[..., "list[CellEstimate]"], Options]
"""The prefix of a family, a report on a table, and its options."""


class FamilyReport(NamedTuple):
    """A report of a family on a whole table.

    `about`: all that its rows depend on beside the table, as plain values. `judge`: the one judge that it reads, None
    for all. `columns`: what it reads beside the columns that every report reads.
    """

    prefix: str
    compute: Callable[[RatingsTable], list[CellEstimate]]
    about: Mapping[str, Any]
    judge: str | None
    columns: tuple[str, ...]


SUBMITTED_AT = "submitted_at"
"""When each rating was submitted, a column of `with_moments`."""
RATED_PLACE = "rated_place"
"""The place of an item in the order in which items were rated, a column of `with_times`."""
MOST_COMPARED = 12
"""Criteria up to which each pair of them is compared."""


def wanted_of(question: NumbersQuestion, family: str) -> tuple[str, ...]:
    """The statistics of a family that a question asks for, without the family's name."""
    return question.wanted([name for name in STATISTICS if name.startswith(f"{family}.")])


def family_reports(
    table: CodedTable,
    question: NumbersQuestion,
    *,
    judges: Sequence[str],
    rules: Sequence[tuple[Sequence[str], str | None, str]],
    by: Sequence[str],
) -> Iterator[FamilyReport]:
    """A report for every family that is asked for. `rules`: criteria with their rule of reference and its ties; `by`:
    the columns that cut the table.
    """
    how: Options = {"bootstrap": question.bootstrap, "confidence": question.confidence, "seed": question.seed}
    how |= {"by": tuple(by), "pool": question.pool}
    read = ("score_label", *(name for key in table.criteria for name in (key, f"attribute_{key}")))
    for prefix, report, options in _calls(question, judges, rules, how):
        arguments = report.keywords if isinstance(report, partial) else {}
        about = {"report": _named(report), **arguments, **options, "judges": judges}
        more = {
            "recovery.": read, "comparison.": (LEVELS,), "plan.": (RATED_PLACE,), "raters.": (SUBMITTED_AT,)
        }.get(prefix, READ.get(prefix, ()))  # fmt: skip
        columns = (*question.measures, *more)
        judge = None if prefix == "audit." else arguments.get("judge")  # self-preference reads all judges
        yield FamilyReport(prefix, partial(report, **options), about, judge, columns)


def _named(report: Any) -> list[str]:
    """The names that distinguish one report from another."""
    if not isinstance(report, partial):
        return [str(report.__name__)]
    return [str(report.func.__name__), *(str(getattr(given, "__name__", given)) for given in report.args)]


def _calls(
    question: NumbersQuestion,
    judges: Sequence[str],
    rules: Sequence[tuple[Sequence[str], str | None, str]],
    how: Mapping[str, Any],
) -> Iterator[Call]:
    yield from _of_panel(question, rules, how)
    yield from _of_judges(question, judges, rules, how)
    if names := wanted_of(question, "judges"):
        for pair in combinations(judges, 2):
            yield "judges.", partial(_between, pair=pair, names=names), dict(how)
    if question.measures:
        yield from _of_measures(question, judges, how)
    for judge in (None, *judges) if wanted_of(question, "preference") else ():
        yield "preference.", partial(judge_reports.preferences, judge=judge), _chosen(how, "by", "pool", "confidence")
    if names := wanted_of(question, "comparison"):
        report = partial(_compared, rules=rules, judges=judges, statistics=names, against=question.against)
        yield "comparison.", report, _chosen(how, "by", "bootstrap", "confidence", "seed")
    if names := wanted_of(question, "plan"):
        goals = goal_values(question.goals)
        plan = partial(judge_reports.plan, judge=next(iter(judges), None), names=names, goals=goals)
        yield "plan.", plan, _chosen(how, "by", "pool", "bootstrap", "seed")
    if names := wanted_of(question, "languages"):
        yield "languages.", partial(_of_languages, judges=judges, names=names), {}


def _of_judges(
    question: NumbersQuestion,
    judges: Sequence[str],
    rules: Sequence[tuple[Sequence[str], str | None, str]],
    how: Mapping[str, Any],
) -> Iterator[Call]:
    of_judge = [each for each in REPORTS.values() if each.in_file_order and each.once_per == ("judge",)]
    for declared in of_judge:
        family = declared.prefix.removesuffix(".")
        if names := wanted_of(question, family):
            chosen = _chosen(how, *(name for name in declared.takes if name != "statistics"))
            more = {"statistics": names} if "statistics" in declared.takes else {}
            for judge in judges:
                yield declared.prefix, partial(declared.function(), judge=judge, **more), chosen
    if names := wanted_of(question, "beside"):
        for judge in judges:
            for criteria, rule, ties in rules:
                beside = partial(judge_reports.beside_panel, judge=judge, criteria=criteria, rule=rule, ties=ties)
                yield "beside.", beside, {**how, "statistics": names}


def _chosen(how: Mapping[str, Any], *names: str) -> Options:
    return {name: how[name] for name in names}


def _of_panel(
    question: NumbersQuestion, rules: Sequence[tuple[Sequence[str], str | None, str]], how: Mapping[str, Any]
) -> Iterator[Call]:
    from analytics.stats.judge import agreement_classes, annotators, corrected_means

    by = how["by"]
    if names := wanted_of(question, "annotators"):
        columns = by if question.pool or "criterion" in by else (*by, "criterion")
        yield "annotators.", annotators.annotator_report, {**how, "by": columns, "statistics": names}
    if names := wanted_of(question, "raters"):
        models = _chosen(how, "by", "pool", "confidence") | {"statistics": names}
        yield "raters.", rater_model_rows, models
    if wanted_of(question, "distribution"):
        yield "distribution.", agreement_classes.score_share_report, {"by": by}
    if names := wanted_of(question, "reference"):
        for criteria, rule, ties in rules:
            report = partial(_of_reference, criteria=criteria, rule=rule, ties=ties)
            yield "reference.", report, {**_chosen(how, "by", "pool", "seed"), "statistics": names}
    if wanted_of(question, "means"):
        columns = by if "criterion" in by else (*by, "criterion")
        yield "means.", corrected_means.means_report, {"by": columns, "confidence": how["confidence"]}


# --- the panel --------------------------------------------------------------------------------------------------------
def _of_reference(
    table: RatingsTable, *, criteria: Sequence[str], rule: str | None, ties: str, **options: Any
) -> list[CellEstimate]:
    from analytics.stats.judge import reference

    part = table.only(criterion=criteria)
    usual = {table.scales[key].level for key in criteria} == {"interval"}
    chosen = rule or ("mean" if usual else "mode")
    return reference.reference_report(part, rule=cast("Any", chosen), ties=cast("Any", ties), **options)


# --- two judges, and judges with languages as raters -----------------------------------------------------------------
def _between(table: RatingsTable, *, pair: tuple[str, str], names: Sequence[str], **how: Any) -> list[CellEstimate]:
    """The first judge beside the second as if it were the panel; both judges' first answers."""
    from analytics.stats.judge import calibration, mcnemar, soundness

    frame = table.frame
    mine = frame[(frame["rater"].isin(pair) & (frame["repeat"] == frame["first_repeat"])).to_numpy()]
    both = replace(table, frame=mine)
    rows: list[CellEstimate] = []
    if figures := [name for name in names if name not in ("tost", "mcnemar")]:
        kinds = mine["rater_kind"].where(mine["rater"] != pair[1], "annotator")
        compared = replace(table, frame=mine.assign(rater_kind=kinds))
        rows += calibration.calibration_report(compared, judge=pair[0], reference="median", statistics=figures, **how)
    cell = _chosen(how, "by", "pool")
    if "tost" in names:
        rows += soundness.equivalence_report(both, raters=pair, **cell)
    if "mcnemar" in names:
        rows += mcnemar.mcnemar_report(both, raters=pair, truth="labels", **cell)
    return [replace(row, judge=None, raters=pair, reference=None) for row in rows]


def _of_languages(table: RatingsTable, *, judges: Sequence[str], names: Sequence[str]) -> list[CellEstimate]:
    """Ens, Min and Ens - Min of all judges; kappa on one criterion less that on another; kappa against the mean."""
    from analytics.stats.judge import consistency

    part = table.only(rater=judges)
    rows: list[CellEstimate] = []
    if "ensemble_kappa" in names and len(judges) > 1:
        of_jury = consistency.beside(part, jury=list(judges), statistics=["fleiss_kappa"])
        rows += [_renamed(row, "ensemble_kappa") for row in of_jury]
    if "kappa_gap" in names:
        for pair in combinations(sorted(map(str, part.frame["criterion"].unique())), 2):
            gaps = consistency.beside(part, gap=pair, statistics=["fleiss_kappa"])
            rows += [_renamed(row, "kappa_gap") for row in gaps]
    if "kappa_against_level" in names:
        rows += consistency.beside(part, statistics=["kappa_against_level"])
    return rows


def _renamed(row: CellEstimate, statistic: str) -> CellEstimate:
    return replace(row, estimate=row.estimate.with_(statistic=statistic))


# --- several judges on the same items, and what they differ in --------------------------------------------------------
def _compared(table: RatingsTable, **options: Any) -> list[CellEstimate]:
    from analytics.stats.judge import comparison

    frame = table.frame
    if LEVELS not in frame:
        return comparison.comparison_report(table, **options)
    named = frame[frame[LEVELS].notna().to_numpy()].drop_duplicates("rater")
    levels = {str(rater): json.loads(text) for rater, text in zip(named["rater"], named[LEVELS], strict=True)}
    return comparison.comparison_report(table, levels=levels, **options)


# --- several judges as one rater (METHODS 4) -------------------------------------------------------------------------
JURY = "jury"
TIED = "tied"
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
    width = len(ratings.COLUMNS)

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
        score, reason = jury_score(scores, used), TIED
    not_applicable = sum(not row.applicable for row in first) > half
    return first[0]._replace(
        rater=jury_name(members, rule), rater_kind=JURY, score=score, score_label="", repeat=0, rationale_length=0,
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


def measure_notes(languages: Sequence[str], measures: Sequence[str]) -> list[str]:
    """Which lemmatiser and list of stop words the measures of texts had, by language."""
    from analytics.stats.text.words import has_stop_words, lemmatiser, tokeniser

    if not set(measures) & {f"{TEXT}{name}" for name in ("words", "ttr", "mattr", "mtld")}:
        return []
    return [
        f"words of texts in {language}: {tokeniser(language)[0]}; lemmas: {lemmatiser(language)[0]}; "
        + ("stop words removed from TTR and MATTR" if has_stop_words(language) else "no list of stop words")
        for language in languages
    ]


def _of_measures(question: NumbersQuestion, judges: Sequence[str], how: Mapping[str, Any]) -> Iterator[Call]:
    """Correlations of each measure; then rankings and means of measures as if each were a criterion with one judge."""
    from analytics.stats.judge import corrected_means, measures
    from analytics.stats.ranking import stability

    by = [name for name in how["by"] if name != "criterion"]
    if names := wanted_of(question, "measures"):
        for place, measure in enumerate(question.measures):
            others = (*question.measures[place + 1 :], None, *judges)
            for other in others:
                pair = partial(
                    measures.measure_report, measure=measure, other=other, is_measure=other in question.measures
                )
                yield "measures.", pair, {**how, "statistics": names}
    if wanted := wanted_of(question, "stability"):
        for measure in question.measures:
            columns = ["criterion", *(name for name in by if name not in ("language", "generator"))]
            report = partial(measures.report_on_measure, stability.stability_report, measure, statistics=wanted)
            options = {**_chosen(how, "bootstrap", "confidence", "seed"), "judge": measure, "paper_compat": False}
            yield "stability.", report, {**options, "by": columns}
    if "judge_mean" in wanted_of(question, "means"):
        for measure in question.measures:
            report = partial(
                measures.report_on_measure, corrected_means.means_report, measure, statistics=("judge_mean",)
            )
            yield "means.", report, {"by": ["criterion", *by], "confidence": how["confidence"]}


# --- what a question adds to its table, and leaves out of it ----------------------------------------------------------
def with_additions(found: Table, campaign: Campaign, question: NumbersQuestion, runs: Sequence[JudgeRun]) -> Table:
    """The table with the times, juries, measures, levels, clusters and columns of audits that a question asks for."""
    asked = {f"{name.partition('.')[0]}." for name in question.statistics}
    if columns := [column for family, own in READ.items() if family in asked for column in own]:
        found = with_audited(found, campaign, runs, columns)
    if {"week", "hundred"} & set(question.dimensions) or "plan.sequence_mean" in question.statistics:
        found = with_times(found, campaign)
    if "raters.rasch_drift" in question.statistics:
        found = with_moments(found, campaign)
    if question.is_adjudicated:
        found = with_adjudications(found, campaign)
    found = with_juries(found, question.jury_members, question.jury_rule)
    found = with_text_measures(found, campaign, question.measures)
    if wanted_of(question, "comparison"):
        found = with_levels(found, campaign, runs)
    if question.cluster != "item":
        return found
    return replace(found, rows=((row[0], row[0], *row[2:]) for row in found.rows))


def with_adjudications(found: Table, campaign: Campaign) -> Table:
    """The table with a row of the adjudicator after the ratings of every item and criterion that has a decision.

    The newest decision counts, also where a rating has changed since. It belongs to the item, not to raters: filters of
    raters and panels leave it.
    """
    decided, names = adjudication.current(campaign), adjudication.adjudicator_names(campaign)
    items = dict(Item.objects.filter(pk__in={item for item, _criterion in decided}).values_list("pk", "external_id"))
    criteria = {criterion.pk: criterion for criterion in campaign.rubric_version.criteria.all()}
    by_place = {(items[item], criteria[pk].key): (row, criteria[pk]) for (item, pk), row in decided.items()}
    width = len(ratings.COLUMNS)

    def rows() -> Iterator[Sequence[Any]]:
        for place, group in groupby(found.rows, key=itemgetter(0, 2)):
            cell = list(group)
            yield from cell
            if place in by_place:
                row, criterion = by_place[place]
                source = criterion.text.get("source_language", "en")
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
                )
                yield (*of_adjudicator, *cell[0][width:])

    return replace(found, rows=rows())


def with_times(found: Table, campaign: Campaign) -> Table:
    """The table with the columns `week`, `hundred` and `rated_place` of each item, by its last annotation.

    They are empty where it has none. Ratings of one item so stay together.
    """
    times = ratings.item_times(campaign)
    item_at = found.names.index("item")
    rows = ((*row, *times.get(row[item_at], (None, None, None))) for row in found.rows)
    columns = (Column("week"), Column("hundred"), Column(RATED_PLACE, "integer"))
    return replace(found, columns=(*found.columns, *columns), rows=rows)


def with_moments(found: Table, campaign: Campaign) -> Table:
    """The table with the column `submitted_at` of each rating: when it was submitted here, in seconds."""
    moments = ratings.rating_moments(campaign)
    item_at, rater_at = (found.names.index(name) for name in ("item", "rater"))
    rows = ((*row, moments.get((row[item_at], row[rater_at]))) for row in found.rows)
    return replace(found, columns=(*found.columns, Column(SUBMITTED_AT, "number")), rows=rows)


def columns_of_families(found: Table, question: NumbersQuestion) -> tuple[str, ...]:
    """The columns that figures of these families depend on beside those that every figure needs."""
    asked = {f"{name.partition('.')[0]}." for name in question.statistics}
    read = ("score_label", *found.names[len(ratings.COLUMNS) :]) if "recovery." in asked else ()
    more = (LEVELS, RATED_PLACE, SUBMITTED_AT, *(name for family in READ if family in asked for name in READ[family]))
    return (*question.measures, *read, *(name for name in more if name in found.names))


def asked_judges(table: CodedTable, question: NumbersQuestion) -> list[str]:
    """The judges and juries that figures are asked of: not those that only sit on a jury."""
    names = set(table.values("rater", table.is_judge))
    if question.judges and question.juries:
        seated = {name for members in question.jury_members for name in members}
        names -= seated - set(question.judges)
    return sorted(names)


def rater_model_rows(
    table: RatingsTable, *, by: Sequence[str], pool: bool, confidence: float, statistics: Sequence[str]
) -> list[CellEstimate]:
    """The rows of these models. Dawid and Skene's is fitted in each language; judges are in Rasch's model only."""
    from analytics.stats.agreement import generalizability, rasch, rasch_drift
    from analytics.stats.judge import reference

    how = {"by": by, "pool": pool, "confidence": confidence}
    rows: list[CellEstimate] = []
    if names := [name for name in statistics if name in rasch.STATISTICS]:
        rows += rasch.rasch_report(table, statistics=names, **how)  # type: ignore[arg-type]
    if set(rasch_drift.STATISTICS) & set(statistics):
        rows += rasch_drift.drift_report(table, **how)  # type: ignore[arg-type]
    if names := [name for name in statistics if name in generalizability.STATISTICS]:
        rows += generalizability.generalizability_report(table, statistics=names, **how)  # type: ignore[arg-type]
    if "annotator_accuracy" in statistics:
        columns = by if "language" in by else (*by, "language")
        of_labels = reference.reference_report(table, rule="dawid_skene", by=columns, pool=pool)
        rows += [row for row in of_labels if row.estimate.statistic == "annotator_accuracy"]
    return rows
