"""The answer to a question: its ratings table, what is left out of it, and an estimate for every cell.

A cell that was computed once is stored by the digest of all that it depends on (docs/decisions/0027): after a
submission only the cells that it touches are computed again. pandas and scipy are loaded by workers and commands alone.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from django.db import OperationalError, transaction

from analytics import ratings
from analytics.exclusions import filtered, of_panels, slow_enough, without_excluded
from analytics.families import (
    JURY,
    FamilyReport,
    asked_judges,
    columns_of_families,
    family_reports,
    measure_notes,
    with_additions,
)
from analytics.models import StoredCell
from analytics.questions import (
    AGREEMENT,
    CALIBRATION,
    CONSISTENCY,
    LEFT_OUT,
    NEEDS_ORDER,
    NO_CUT,
    PAIRS,
    STABILITY,
    WITHIN_PANEL,
    NumbersQuestion,
    Settings,
    chosen_runs,
)
from annotation.models import Campaign
from annotation.writers.tables import Table
from judging.models import JudgeRun

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.scales import Scale
    from analytics.stats.core.tables import RatingsTable

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]
VARIANTS = {
    "fleiss_kappa": {"nominal": "unequal", "ordinal": "unequal", "interval": "unequal"},
    "gwet_ac": {"nominal": "identity", "ordinal": "ordinal", "interval": "quadratic"},
    "brennan_prediger": {"nominal": "identity", "ordinal": "ordinal", "interval": "quadratic"},
    "conger_kappa": {"nominal": "identity", "ordinal": "quadratic", "interval": "quadratic"},
    "cohen_kappa": {"nominal": "unweighted", "ordinal": "quadratic", "interval": "quadratic"},
}
"""The one variant of a statistic that is shown unless others are asked for, by the criterion's level of measurement."""


# --- the rows that a question is about -------------------------------------------------------------------------------
def question_table(campaign: Campaign, question: NumbersQuestion, runs: Sequence[JudgeRun] | None = None) -> Table:
    """The ratings table of a question: nothing is left in it that the figures do not rest on."""
    runs = chosen_runs(campaign, question) if runs is None else runs
    found = ratings.table(
        campaign=campaign,
        runs=runs,
        raters=question.raters,
        blind_only=question.blind_only,
        more=of_panels(question) & slow_enough(question),
    )
    found = without_excluded(found, campaign, question)
    return filtered(with_additions(found, campaign, question, runs), question)


# --- cells that are computed once ------------------------------------------------------------------------------------
Rows = list[dict[str, Any]]
NEEDED = (
    *("item", "item_key", "rater", "rater_kind", "rater_identified", "panel", "criterion", "cluster", "language"),
    *("generator", "score", "code", "applicable", "missing", "out_of_range", "missing_reason", "repeat"),
    *("first_repeat", "inclusion_prob"),
)
"""The columns of a validated ratings table that figures depend on, beside those that cut it into cells."""


class CellStore:
    """The cells that were computed under some settings of a campaign, by digest; nothing is kept without a campaign."""

    def __init__(self, campaign: Campaign | None, settings_digest: str, version: str) -> None:
        self.campaign, self.settings_digest, self.version = campaign, settings_digest, version
        self.used: set[str] = set()
        self.computed = 0

    def digest(self, *parts: bytes) -> str:
        """The digest of these inputs, of the version of the code, and of nothing else."""
        return hashlib.sha256(b"\0".join([self.version.encode(), *parts])).hexdigest()

    def contents(self, digests: Sequence[str], compute: Callable[[int], Any]) -> list[Any]:
        """The content of each digest: what is stored, or else what ``compute(place)`` gives, which is stored now."""
        known = self._stored(digests)
        missing = {digest: place for place, digest in enumerate(digests) if digest not in known}
        new = {digest: compute(place) for digest, place in missing.items()}
        self._keep(new)
        self.used |= set(digests)
        self.computed += len(new)
        return [known[digest] if digest in known else new[digest] for digest in digests]

    def forget_others(self) -> None:
        """Delete the cells of these settings that were not asked for since: their inputs have changed."""
        if self.campaign is not None:
            here = StoredCell.objects.filter(campaign=self.campaign, settings_digest=self.settings_digest)
            old = [pk for pk, digest in here.values_list("pk", "digest") if digest not in self.used]
            try:
                with transaction.atomic():
                    for place in range(0, len(old), AT_ONCE):
                        StoredCell.objects.filter(pk__in=old[place : place + AT_ONCE]).delete()
            except OperationalError:
                logger.warning("the database is busy: old cells of campaign %s stay for now", self.campaign.pk)

    def _stored(self, digests: Sequence[str]) -> dict[str, Any]:
        if self.campaign is None:
            return {}
        here = StoredCell.objects.filter(campaign=self.campaign, settings_digest=self.settings_digest)
        parts = (digests[place : place + AT_ONCE] for place in range(0, len(digests), AT_ONCE))
        rows = (row for part in parts for row in here.filter(digest__in=part).values_list("digest", "content"))
        return {digest: json.loads(text) for digest, text in rows}

    def _keep(self, new: Mapping[str, Any]) -> None:
        """What another worker stored meanwhile is the same. A busy database only costs the next computation time."""
        if self.campaign is None or not new:
            return
        about = {"campaign": self.campaign, "settings_digest": self.settings_digest}
        # As a text, because PostgreSQL gives the keys of JSON objects in an order of its own.
        rows = [StoredCell(**about, digest=digest, content=json.dumps(content)) for digest, content in new.items()]
        try:
            with transaction.atomic():
                StoredCell.objects.bulk_create(rows, batch_size=AT_ONCE, ignore_conflicts=True)
        except OperationalError:
            logger.warning("the database is busy: %s cells of campaign %s are not kept", len(rows), self.campaign.pk)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellReport:
    """A report that computes every cell from that cell's rows alone.

    ``by``: the columns that cut the table; ``is_whole``: it is computed as one cell all the same. ``judge``: whose
    verdicts it reads beside the panel's ratings: None for no judge, ``ALL_JUDGES`` for all. ``criteria`` and ``panel``:
    the only ones it is about. ``options``: what the rows depend on beside the table. ``in_file_order``: the order of
    the rows counts. ``more``: columns that figures depend on beside ``NEEDED``.
    """

    name: str
    compute: Callable[[RatingsTable], Iterable[CellEstimate]]
    options: Mapping[str, Any]
    by: tuple[str, ...]
    pool: bool = False
    judge: str | None = None
    criteria: Sequence[str] | None = None
    panel: str | None = None
    in_file_order: bool = False
    is_whole: bool = False
    more: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that cut the table, as `stats.core.tables.cells` does."""
        if self.is_whole:
            return ()
        columns = [column for column in self.by if not (self.pool and column == "criterion")]
        return (*columns,) if self.pool or "criterion" in columns else (*columns, "criterion")


ALL_JUDGES = "*"
AT_ONCE = 500
"""Stored cells in one statement."""


class CutTable:
    """A validated ratings table that reports are computed from cell by cell; what is stored is not computed again."""

    def __init__(self, table: RatingsTable, store: CellStore) -> None:
        import numpy as np
        import pandas as pd

        self.table, self.store = table, store
        self.raters = table.frame["rater"].to_numpy()
        self.hashes: dict[str, NDArray[np.uint64]] = {}
        self.frames: dict[tuple[str, ...], pd.DataFrame] = {}
        self.cuts: dict[tuple[str, ...], NDArray[np.intp]] = {}
        codes, self.criterion_names = pd.factorize(table.frame["criterion"])
        self.criterion = np.asarray(codes, dtype=np.intp)
        self.is_judge = _is_judge(table).to_numpy()
        self._needed = [name for name in NEEDED if name in table.frame]
        self.places = table.frame["row"].to_numpy()

    def rows(self, report: CellReport, plain: Callable[[CellEstimate], dict[str, Any] | None]) -> Rows:
        """The rows of every cell in the order of the cells; those that ``plain`` gives None for are left out."""
        cut = self._cells(report)
        about = json.dumps([report.name, report.options, report.by, report.judge, report.panel, report.pool])
        digests = [self._digest(report, about, places) for places in cut]

        def compute(number: int) -> Rows:
            part = self._part(report, cut[number])
            return [row for estimate in report.compute(part) if (row := plain(estimate)) is not None]

        return [row for rows in self.store.contents(digests, compute) for row in rows]

    def _cells(self, report: CellReport) -> list[NDArray[np.intp]]:
        """The places of the rows of each cell, cells in the order of their keys."""
        import numpy as np

        keep = ~self.is_judge
        if report.panel is not None:
            keep &= (self.table.frame["panel"] == report.panel).to_numpy()
        if report.judge is not None:
            keep |= self.is_judge if report.judge == ALL_JUDGES else self.is_judge & (self.raters == report.judge)
        if report.criteria is not None:
            keep &= self.table.frame["criterion"].isin(list(report.criteria)).to_numpy()
        places = np.flatnonzero(keep)
        if not report.columns:
            return [places] if len(places) else []
        numbers = self._numbers(report.columns)[places]
        order = np.argsort(numbers, kind="stable")
        ends = np.flatnonzero(np.diff(numbers[order])) + 1
        return [part for part in np.split(places[order], ends) if len(part)]

    def _numbers(self, columns: tuple[str, ...]) -> NDArray[np.intp]:
        """(M,) the number of each row's cell."""
        import numpy as np

        if columns not in self.cuts:
            cut = self.table.frame.groupby(list(columns), sort=True, observed=True, dropna=False)
            self.cuts[columns] = np.asarray(cut.ngroup(), dtype=np.intp)
        return self.cuts[columns]

    def _digest(self, report: CellReport, about: str, places: NDArray[np.intp]) -> str:
        import numpy as np

        criteria = [self.criterion_names[code] for code in np.unique(self.criterion[places])]
        scales = repr([(name, self.table.scales.get(name)) for name in criteria])
        more = [self._hashed(name)[places].tobytes() for name in self._beside(report)]
        order = self.places[places].argsort().tobytes() if report.in_file_order else b""
        return self.store.digest(about.encode(), scales.encode(), self._row_hashes[places].tobytes(), *more, order)

    @cached_property
    def _row_hashes(self) -> NDArray[np.uint64]:
        """(M, 2) 128 bits for the needed columns of every row."""
        import numpy as np

        hashes = []
        for factor in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F):
            row_hash = np.full(len(self.table.frame), factor, dtype=np.uint64)
            for name in self._needed:
                row_hash = (row_hash ^ self._hashed(name)) * np.uint64(factor)
                row_hash ^= row_hash >> np.uint64(29)
            hashes.append(row_hash)
        return np.stack(hashes, axis=1)

    def _columns(self, report: CellReport) -> pd.DataFrame:
        """All rows with the columns that a report reads."""
        names = (*self._needed, *self._beside(report))
        if names not in self.frames:
            self.frames[names] = self.table.frame[list(names)]
        return self.frames[names]

    def _beside(self, report: CellReport) -> list[str]:
        """The columns that a report reads beside the needed ones."""
        columns = dict.fromkeys((*report.by, *report.more))
        return [name for name in columns if name not in NEEDED and name in self.table.frame]

    def _hashed(self, name: str) -> NDArray[np.uint64]:
        """(M,) a number of 64 bits for every value of a column. Items are known by their names, not by their number."""
        import numpy as np
        import pandas as pd
        from pandas.util import hash_array

        if name not in self.hashes:
            column = self.table.frame[name]
            if name == "item_key":
                self.hashes[name] = np.zeros(len(column), dtype=np.uint64)
            elif column.dtype.kind == "f":
                self.hashes[name] = column.to_numpy(dtype=np.float64).view(np.uint64)
            elif column.dtype.kind in "biu":
                self.hashes[name] = column.to_numpy().astype(np.uint64)
            else:
                codes, values = pd.factorize(column)
                texts = np.array([*(f"{type(value).__name__} {value}" for value in values), ""], dtype=object)
                self.hashes[name] = hash_array(texts)[codes]
        return self.hashes[name]

    def _part(self, report: CellReport, places: NDArray[np.intp]) -> RatingsTable:
        """The rows of a cell as a table of their own: nothing in it depends on other cells."""
        import numpy as np

        frame = self._columns(report).iloc[places].reset_index(drop=True)
        order = self.places[places].argsort().argsort() if report.in_file_order else np.arange(len(places))
        items = np.unique(frame["item_key"].to_numpy(), return_inverse=True)[1]
        return replace(self.table, frame=frame.assign(row=order, item_key=items))


# --- estimates -------------------------------------------------------------------------------------------------------
def measured_cells(
    found: Table, question: NumbersQuestion, *, scales: Mapping[str, Scale], store: CellStore, progress: Progress
) -> dict[str, Any]:
    """Estimates of every cell as rows (`CellEstimate.as_row`), and the notes on the table.

    `asked` of a row is its statistic with the family's name before it, as in `questions.STATISTICS`.
    """
    from analytics.stats.core.validation import ratings_table

    columns = {*NEEDED, *question.dimensions, "rationale_length", *columns_of_families(found, question)}
    table = ratings_table(ratings.frame(found, columns), scales=_levelled(scales, question.level))
    cut, reports = CutTable(table, store), list(_reports(table, question))
    rows: dict[str, dict[str, Any]] = {}  # what does not depend on the judge is in the report of each
    for done, (family, report) in enumerate(reports):
        progress(done, len(reports))
        for row in cut.rows(report, partial(_plain, question, family, report.panel)):
            rows[json.dumps(row)] = row
    progress(len(reports), len(reports))
    spoken = sorted(table.frame["language"].dropna().unique())
    return {"estimates": list(rows.values()), "notes": [*table.notes, *measure_notes(spoken, question.measures)]}


def _plain(question: NumbersQuestion, family: str, panel: str | None, row: CellEstimate) -> dict[str, Any] | None:
    """A row that is asked for as plain values."""
    asked = family + row.estimate.statistic
    if asked not in question.statistics or not _is_variant(row, question):
        return None
    if panel is not None:
        row = replace(row, cell={**row.cell, "panel": panel})
    return {**row.as_row(), "asked": asked}


def _levelled(scales: Mapping[str, Scale], level: str) -> dict[str, Scale]:
    return {name: replace(scale, level=level) if level else scale for name, scale in scales.items()}  # type: ignore[arg-type]


def _is_variant(row: CellEstimate, question: NumbersQuestion) -> bool:
    """Whether the row's variant is one that is asked for."""
    estimate = row.estimate
    if question.variants:
        return estimate.variant in question.variants
    return is_usual(estimate.statistic, estimate.variant, estimate.level or "")


def is_usual(statistic: str, variant: str | None, level: str) -> bool:
    """Whether a variant is the one that is shown: others are neither computed nor stored."""
    usual = VARIANTS.get(statistic)
    return usual is None or variant is None or variant == usual.get(level)


def _reports(table: RatingsTable, question: NumbersQuestion) -> Iterator[tuple[str, CellReport]]:
    """A report for every family of statistics, judge and panel that is asked for, after the family's prefix."""
    judges = asked_judges(table, question)
    by = tuple(name for name in question.dimensions if name not in NO_CUT)
    rules = list(_rules(table, question))
    panels = sorted(table.frame["panel"].dropna().unique()) if "panel" in question.dimensions else [None]
    for panel in panels:
        if wanted := question.wanted(AGREEMENT):
            yield "", replace(agreement_cells(question, by, wanted), panel=panel)
        for family, report in _within_panel(table, question, by):
            yield family, replace(report, panel=panel)
        for judge in judges:
            for family, report in _of_judge(table, question, judge, by):
                yield family, replace(report, panel=panel)
        for ranked in (None, *judges) if question.wanted(STABILITY) else ():
            yield "stability.", replace(_of_rankings(question, ranked, by), panel=panel)
        for of_family in family_reports(table, question, judges=judges, rules=rules, by=by):
            yield of_family.prefix, _family_cells(question, by, of_family, panel)


def _family_cells(
    question: NumbersQuestion, by: tuple[str, ...], family: FamilyReport, panel: str | None
) -> CellReport:
    """A report of `families`, computed as one cell: it may compare cells or judges."""
    asked = {"asked": question.statistics, "variants": question.variants}
    return CellReport(
        name=family.prefix, compute=family.compute, options={**family.about, **asked}, by=by, pool=question.pool,
        judge=family.judge or ALL_JUDGES, panel=panel, in_file_order=True, is_whole=True, more=family.columns,
    )  # fmt: skip


def options_of(settings: Settings, **more: Any) -> dict[str, Any]:
    """How intervals are made, for every report."""
    return {"bootstrap": settings.bootstrap, "confidence": settings.confidence, "seed": settings.seed, **more}


def agreement_cells(settings: Settings, by: tuple[str, ...], statistics: Sequence[str]) -> CellReport:
    """Agreement among the annotators of every cell."""
    from analytics.stats.agreement import among_raters

    is_asked = isinstance(settings, NumbersQuestion)
    variants, pool = (settings.variants, settings.pool) if is_asked else ((), False)  # type: ignore[attr-defined]
    how = options_of(settings, statistics=tuple(statistics), pool=pool)
    compute = partial(among_raters.agreement_report, by=by, keeps=None if variants else is_usual, **how)
    return CellReport(
        name="agreement", compute=compute, options={**how, "variants": variants}, by=by, pool=pool,
        in_file_order=bool(variants),
    )  # fmt: skip


def _is_judge(table: RatingsTable) -> Any:
    return table.frame["rater_kind"].isin(["judge", JURY])


def _within_panel(
    table: RatingsTable, question: NumbersQuestion, by: tuple[str, ...]
) -> Iterator[tuple[str, CellReport]]:
    """The family's prefix and a report, on who and what makes a panel agree."""
    from analytics.stats.agreement import within_panel
    from analytics.stats.judge.panel import agreement_class_report

    asked, pool = set(question.wanted(WITHIN_PANEL)), {"pool": question.pool}
    confidence = {"confidence": question.confidence}
    report = partial(_report, question, by)
    if asked & {"class_share", "score_share"}:
        yield "", report(agreement_class_report, {}, judge=ALL_JUDGES)
    if "commonest_share" in asked:
        yield "", report(within_panel.commonest_report, pool)
    if asked & set(within_panel.RATIONALES):
        lengths = report(within_panel.rationale_length_report, confidence, judge=ALL_JUDGES)
        yield "", replace(lengths, more=("rationale_length",))
    if asked & set(within_panel.LABELS):  # numbers the items of all cells together
        yield "", replace(report(within_panel.spread_report, pool), is_whole=True, in_file_order=True)
    if statistics := question.wanted(LEFT_OUT):
        yield "left_out.", report(within_panel.left_out_report, {**pool, **confidence, "statistics": statistics})
    if statistics := question.wanted(PAIRS):
        options = options_of(question, pool=question.pool, statistics=statistics)
        yield "pairs.", report(within_panel.pair_report, options)
    for of_means in _of_means(table, question, asked, by):
        yield "", of_means


def _of_means(
    table: RatingsTable, question: NumbersQuestion, asked: set[str], by: tuple[str, ...]
) -> Iterator[CellReport]:
    """Two criteria, or two panels, on the same items; means of criteria that have them."""
    from analytics.stats.agreement import within_panel
    from analytics.stats.judge import differences

    drawn = {"resamples": question.bootstrap, "seed": question.seed}
    ordered = [key for key in sorted(table.frame["criterion"].unique()) if _has_means(table.scales[key])]
    if "criteria_spearman" in asked:
        across = tuple(name for name in by if name != "criterion")
        yield replace(_report(question, across, differences.between_criteria, drawn), criteria=ordered, is_whole=True)
    panels = sorted(table.annotators().frame["panel"].dropna().unique()) if "panel" in table.frame else []
    for first, second in combinations(panels, 2):
        both = {"first": str(first), "second": str(second)}
        if asked & {"panel_difference", "panel_spearman"}:
            report = _report(question, by, differences.between_panels, {**both, **drawn})
            yield replace(report, criteria=ordered)
        if "panel_same_mode" in asked:
            yield _report(question, by, within_panel.same_mode_report, {**both, "confidence": question.confidence})


def _report(
    question: NumbersQuestion,
    by: tuple[str, ...],
    report: Callable[..., Iterable[CellEstimate]],
    options: Mapping[str, Any],
    judge: str | None = None,
) -> CellReport:
    """A report of these options, whose rows are then those that the question asks for."""
    name = getattr(report, "__name__", "report")
    about = {**options, "by": by, "statistics asked": question.statistics, "variants": question.variants}
    compute = partial(report, by=by, **options)
    return CellReport(name=name, compute=compute, options=about, by=by, pool=question.pool, judge=judge)


def _has_means(scale: Scale) -> bool:
    """Whether a mean of its scores says something: scores in order, or a share of one of two labels."""
    return scale.is_numeric and (scale.has_order or scale.q == 2)


def _of_judge(
    table: RatingsTable, question: NumbersQuestion, judge: str, by: tuple[str, ...]
) -> Iterator[tuple[str, CellReport]]:
    """The family's prefix and a report, on one judge beside the panel, and on its languages as raters."""
    from analytics.stats.judge import calibration, consistency

    wanted = question.wanted(CALIBRATION)
    beside = [name for name in wanted if name in (*calibration.BESIDE, *calibration.ON_REQUEST)]
    how = options_of(question, judge=judge, pool=question.pool)
    if figures := [name for name in wanted if name not in beside]:
        for criteria, rule, ties in _rules(table, question):
            yield "", replace(calibration_cells(question, by, judge, figures, (rule, ties)), criteria=criteria)
    if beside:
        yield "", _report(question, by, calibration.beside_humans, {**how, "statistics": beside}, judge=judge)
    if languages := question.wanted(CONSISTENCY):
        across = tuple(name for name in by if name != "language")
        report = _report(
            question, across, consistency.consistency_report, {**how, "statistics": languages}, judge=judge
        )
        yield "consistency.", replace(report, is_whole=True)  # are items or scenarios parallel: one decision


def calibration_cells(
    settings: Settings, by: tuple[str, ...], judge: str, statistics: Sequence[str], rule: tuple[str | None, str]
) -> CellReport:
    """One judge against the panel in every cell; ``rule`` as in `questions.RULES`."""
    from analytics.stats.judge import calibration

    is_asked = isinstance(settings, NumbersQuestion)
    variants, pool = (settings.variants, settings.pool) if is_asked else ((), False)  # type: ignore[attr-defined]
    how = options_of(settings, statistics=tuple(statistics), pool=pool, judge=judge, reference=rule[0], ties=rule[1])
    compute = partial(calibration.calibration_report, by=by, keeps=None if variants else is_usual, **how)
    options = {**how, "variants": variants}
    return CellReport(name="calibration", compute=compute, options=options, by=by, pool=pool, judge=judge)


def _rules(table: RatingsTable, question: NumbersQuestion) -> Iterator[tuple[list[str], str | None, str]]:
    """Criteria with their rule of reference and what it does with a tie.

    Nominal criteria have no order: the mode stands for a rule that needs one, and ties are left out. Criteria that are
    pooled have one rule.
    """
    rule, ties = question.rule
    criteria = sorted(table.frame["criterion"].unique())
    nominal = [key for key in criteria if table.scales[key].level == "nominal"]
    if question.pool and nominal:
        nominal = criteria
    if nominal:
        yield nominal, "mode" if rule in NEEDS_ORDER else rule, "exclude"
    if ordered := [key for key in criteria if key not in nominal]:
        yield ordered, rule, ties


def _of_rankings(question: NumbersQuestion, judge: str | None, by: tuple[str, ...]) -> CellReport:
    """The rankings of generators by the panel, or by a judge."""
    from analytics.stats.ranking import stability

    across = tuple(name for name in by if name not in ("language", "generator"))
    how = options_of(question, judge=judge, pool=question.pool, paper_compat=False)
    return _report(question, across, stability.stability_report, how, judge=judge)
