"""What the page of numbers shows of a ratings table: estimates, counts and languages as plain values.

pandas and scipy are loaded by workers and commands alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from analytics.answers.measured import report_cells
from analytics.answers.revisions import code_version
from analytics.answers.stored_cells import (
    ALL_JUDGES,
    READ,
    CellReport,
    CellStore,
    CodedTable,
    computed_cells,
    usual_row,
)
from analytics.questions.question import Settings
from analytics.questions.reference_rules import NEEDS_ORDER, RULES
from analytics.stats.declared.register import HEAT_MAPS, OVER_REPEATS, REPORTS
from annotation.writers.tables import Table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.scales import Scale
    from analytics.stats.core.tables import RatingsTable

Progress = Callable[[int, int], None]


def no_progress(_done: int, _total: int) -> None:
    """Progress that is not reported."""


CALIBRATION = ("mae", "bias", "cohen_kappa", "spearman")
_LABELS = ("cohen_kappa", "accuracy", "f1", "precision", "recall")
"""Statistics of a judge on a nominal criterion; the last three for each point of the scale."""

MOST_CELLS = 600
"""With at most so many cells (criteria × languages), shares of scores in each class of agreement are also computed by
language. With more they would be half of what is stored; Explore computes them on request."""
ALL_LANGUAGES = ("criterion",)
EACH_LANGUAGE = ("language", "criterion")
EACH_GENERATOR = ("generator", "language", "criterion")


def measured_content(
    found: Table,
    settings: Settings,
    *,
    scales: Mapping[str, Scale],
    store: CellStore | None = None,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Languages, counts and estimates of a ratings table: by criterion and language, and over all languages together.

    Criteria are never pooled. An estimate is a row without the fields that are None. Cells in the `store` are not
    computed again.
    """
    table = CodedTable(found, scales, READ)
    reports: list[CellReport] = []
    groupings = _groupings(table.values("language"))
    for by in groupings:
        reports += list(_reports(table, settings, by))
    reports.append(_means(settings))
    if flags := [key for key in table.criteria if is_flag(table.scale(key))]:
        by = EACH_GENERATOR
        reports.append(
            CellReport(
                name="prevalence",
                compute=_prevalence,
                options={},
                by=by,
                judge=ALL_JUDGES,
                criteria=flags,
                row=usual_row,
            )
        )
    counts = [
        CellReport(name="counts", compute=partial(counts_of, by=by), options={}, by=by, judge=ALL_JUDGES)
        for by in groupings
    ]
    store = store or CellStore(None, "", code_version())
    found_rows = computed_cells(table, reports, store=store, progress=progress, beside=counts)
    return {
        "languages": table.values("language"),
        "rated": rated_counts(table),
        "counts": [row for rows in found_rows[len(reports) :] for row in rows],
        "estimates": [row for rows in found_rows[: len(reports)] for row in rows],
    }


def is_flag(scale: Scale) -> bool:
    """Whether a criterion is nominal with two labels."""
    return scale.level == "nominal" and scale.q == 2


def rated_counts(table: CodedTable) -> dict[str, int]:
    """Counts of the panels' items, raters and ratings, and of the judges' verdicts and items."""
    import numpy as np

    def rows(name: str, is_one: Callable[[Any], bool]) -> NDArray[np.bool_]:
        column = table.columns[name]
        return np.array([is_one(value) for value in column.values], dtype=bool)[column.codes]

    people, judges = (table.where("rater_kind", (kind,)) for kind in ("annotator", "judge"))
    is_scored = rows("score", lambda score: score is not None and score == score)  # NaN is no score
    applicable = rows("applicable", bool)
    scored = people & applicable & is_scored
    return {
        "items": int(np.count_nonzero(np.bincount(table.item_keys[scored]))),
        "raters": int(np.count_nonzero(np.bincount(table.columns["rater"].codes[scored]))),
        "ratings": int(scored.sum()),
        "not_applicable": int((people & ~applicable).sum()),
        "stopped": int((people & rows("missing_reason", lambda reason: reason == "stopped")).sum()),
        "verdicts": int(judges.sum()),
        "judged_items": int(np.count_nonzero(np.bincount(table.item_keys[judges]))),
    }


def _groupings(languages: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Each language, and all of them together where there are several."""
    return (EACH_LANGUAGE, ALL_LANGUAGES) if len(languages) > 1 else (EACH_LANGUAGE,)


def _reports(table: CodedTable, settings: Settings, by: tuple[str, ...]) -> Iterator[CellReport]:
    """What is computed for every cell: agreement, each judge against the panel, shares of scores, and repeats."""
    from analytics.stats.judge import agreement_classes, calibration, soundness

    judges = table.judges
    yield report_cells(REPORTS["agreement"], settings, by, HEAT_MAPS, arguments={})
    nominal = [key for key in table.criteria if table.scale(key).level == "nominal"]
    ordered = [key for key in table.criteria if key not in nominal]
    for judge in judges:
        for criteria, statistics in ((nominal, _LABELS), (ordered, CALIBRATION)):
            name = "mode" if statistics is _LABELS and settings.reference in NEEDS_ORDER else settings.reference
            rule, ties = RULES[name]
            names, compared = (*statistics, *calibration.COUNTS), {"judge": judge, "reference": rule, "ties": ties}
            yield report_cells(REPORTS["calibration"], settings, by, names, criteria=criteria, arguments=compared)
    shares = partial(agreement_classes.score_share_report, by=by)
    yield CellReport(name="score_share", compute=shares, options={}, by=by, judge=ALL_JUDGES, row=usual_row)
    is_large = "language" in by and len(table.criteria) * len(table.values("language")) > MOST_CELLS
    classes = partial(_class_shares, by=by, with_scores=not is_large)
    options = {"with_scores": False} if is_large else {}
    yield CellReport(name="class_share", compute=classes, options=options, by=by, judge=ALL_JUDGES, row=usual_row)
    for judge in judges:
        if table.has_repeats(judge):
            audits = partial(_repeats, soundness.audit_report, by=by, judge=judge)
            yield CellReport(name="repeats", compute=audits, options={}, by=by, judge=judge, row=usual_row)


def _class_shares(table: RatingsTable, by: Sequence[str], *, with_scores: bool) -> Iterator[CellEstimate]:
    """Shares of the classes of agreement, and in each class the shares of the points, as `class_score_share`."""
    from analytics.stats.judge import agreement_classes

    for row in agreement_classes.agreement_class_report(table, by=by):
        if row.estimate.statistic == "class_share" and row.estimate.is_defined:
            yield row
        elif (
            with_scores
            and row.estimate.is_defined
            and table.scales[str(row.cell["criterion"])].q <= agreement_classes.MOST_SHOWN
        ):
            yield replace(row, estimate=row.estimate.with_(statistic="class_score_share"))


def _prevalence(table: RatingsTable) -> Iterator[CellEstimate]:
    """For flags: the share of the higher label in the scores of the panel and of each judge, by generator."""
    from analytics.stats.judge import agreement_classes

    for row in agreement_classes.score_share_report(table, by=EACH_GENERATOR):
        if row.estimate.variant == table.scales[str(row.cell["criterion"])].label(1):
            yield replace(row, estimate=row.estimate.with_(statistic="prevalence"))


def _repeats(report: Any, table: RatingsTable, *, judge: str, by: Sequence[str]) -> Iterator[CellEstimate]:
    """The statistics of the judge's repeats, from a report of all its audits."""
    audits = report(table.only(rater=[judge]), judge=judge, by=by)
    return (row for row in audits if row.estimate.statistic in OVER_REPEATS)


def _means(settings: Settings) -> CellReport:
    """Mean scores of each generator."""
    from analytics.stats.judge import corrected_means

    by, confidence = ("generator", "criterion"), settings.confidence
    compute = partial(corrected_means.means_report, by=by, confidence=confidence)
    return CellReport(
        name="means", compute=compute, options={"confidence": confidence}, by=by, judge=ALL_JUDGES, row=usual_row
    )


def counts_of(table: RatingsTable, by: Sequence[str]) -> list[dict[str, Any]]:
    """What a cell holds: items, raters, ratings, missing, N/A, off the scale; for the panel and for each judge."""
    import numpy as np
    import pandas as pd

    is_first = (table.frame["repeat"] == table.frame["first_repeat"]).to_numpy()
    frame = table.frame if is_first.all() else table.frame[is_first]
    judge = np.where((frame["rater_kind"] == "judge").to_numpy(), frame["rater"].to_numpy(), "")
    group, keys = np.zeros(len(frame), dtype=np.intp), []
    for column in (*(frame[name] for name in by), pd.Series(judge, dtype=object)):
        codes, names = pd.factorize(column, sort=True)
        group = np.where((group < 0) | (codes < 0), -1, group * len(names) + codes)
        keys.append(list(map(str, names)))
    has_key = group >= 0
    frame = frame if has_key.all() else frame[has_key]
    numbers, group = np.unique(group[has_key], return_inverse=True)
    applicable, missing = frame["applicable"].to_numpy(), frame["missing"].to_numpy()
    given = applicable & ~missing & ~frame["out_of_range"].to_numpy()

    def sums(rows: NDArray[np.bool_]) -> list[int]:
        return _tallied(group[rows], len(numbers))

    def distinct(name: str) -> list[int]:
        codes, names = pd.factorize(frame[name].to_numpy()[given])
        return _tallied(np.unique(group[given] * max(len(names), 1) + codes) // max(len(names), 1), len(numbers))

    counts = zip(distinct("item_key"), distinct("rater"), sums(given), sums(missing), sums(~applicable), strict=True)
    counted = ("items", "raters", "ratings", "missing", "not_applicable")
    places = np.unravel_index(numbers, [max(len(each), 1) for each in keys])
    found = zip(*([each[at] for at in place.tolist()] for each, place in zip(keys, places, strict=True)), strict=True)
    reasons = _reasons(frame["missing_reason"].to_numpy(), group, len(numbers))
    return [
        dict(zip((*by, "judge"), key, strict=True)) | dict(zip(counted, row, strict=True)) | {"reasons": why}
        for key, row, why in zip(found, counts, reasons, strict=True)
    ]


def _tallied(places: NDArray[np.intp], size: int) -> list[int]:
    """How often each number below `size` occurs."""
    import numpy as np

    counted: list[int] = np.bincount(places, minlength=size).tolist()
    return counted


def _reasons(reasons: NDArray[Any], group: NDArray[np.intp], size: int) -> list[dict[str, int]]:
    """By group, how often each reason for a missing score occurs, in the order of the reasons."""
    import pandas as pd

    codes, names = pd.factorize(reasons, sort=True)
    every: list[dict[str, int]] = [{} for _group in range(size)]
    for place, name in enumerate(names):
        for number, count in enumerate(_tallied(group[codes == place], size)):
            if count:
                every[number][str(name)] = count
    return every
