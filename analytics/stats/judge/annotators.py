"""Each annotator beside the others on the items that they share: severity, agreement, and how often one score is given.

The annotator stands where a judge stands in the figures of calibration; nobody is compared with themself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analytics.stats.core.estimates import CellEstimate
from analytics.stats.core.tables import Cell, RatingsTable, cells
from analytics.stats.judge.audits import share
from analytics.stats.judge.calibration import calibration_report
from analytics.stats.judge.judge_against_panel import cell_key

STATISTICS = ("severity", "cohen_kappa", "accuracy", "same_score", "same_score_of_others")


def annotator_report(
    table: RatingsTable,
    *,
    by: Sequence[str] = ("criterion",),
    statistics: Sequence[str] = STATISTICS,
    pool: bool = False,
    bootstrap: int = 2000,
    confidence: float = 0.95,
    seed: int = 0,
) -> list[CellEstimate]:
    """Figures of every annotator in every cell, over the items that somebody else scored, too.

    ``severity``: mean over items of the annotator's score less the mean of the others', in points (numeric scales with
    an order; below 0: the annotator gives lower scores). ``cohen_kappa`` (in its weights by level) and ``accuracy``
    (equal scores): beside every other annotator in turn, averaged over these (METHODS 2, ``each``). ``same_score``:
    share of the annotator's scores on the point that they give most; ``same_score_of_others``: the same share among the
    others' scores on the same items. Intervals resample clusters; shares have Wilson's. Leave-one-out: METHODS 1.
    """
    people = table.annotators()
    found: list[CellEstimate] = []
    for name in sorted(map(str, people.frame["rater"].unique())):
        beside = _shared_items(people, name)
        how = {"by": by, "pool": pool, "bootstrap": bootstrap, "confidence": confidence, "seed": seed}
        for reference, wanted in (("mean", ("bias",)), ("each", ("cohen_kappa", "accuracy"))):
            chosen = [each for each in wanted if ("severity" if each == "bias" else each) in statistics]
            part = _with_means(beside) if reference == "mean" else beside
            if chosen and len(part.frame):
                rows = calibration_report(part, judge=name, reference=reference, statistics=chosen, **how)  # type: ignore[arg-type]
                found += [_of_annotator(row, name) for row in rows if row.estimate.n_items]
        for cell in cells(beside, by=by, pool=pool):
            found += [row for row in _same_scores(cell, name, confidence) if row.estimate.statistic in statistics]
    return found


def _shared_items(people: RatingsTable, name: str) -> RatingsTable:
    """The first ratings of items and criteria that the annotator and somebody else scored."""
    frame = people.frame[
        ((people.frame["repeat"] == people.frame["first_repeat"]) & (people.frame["code"] >= 0)).to_numpy()
    ]
    place = ["item_key", "criterion"]
    own = frame[(frame["rater"] == name).to_numpy()][place].drop_duplicates()
    mine = frame.merge(own, on=place)
    others = mine[(mine["rater"] != name).to_numpy()][place].drop_duplicates()
    return replace(people, frame=mine.merge(others, on=place))


def _with_means(table: RatingsTable) -> RatingsTable:
    """Only the criteria whose scores have an order and a mean."""
    chosen = [key for key, scale in table.scales.items() if scale.is_numeric and scale.has_order]
    return table.only(criterion=chosen)


def _of_annotator(row: CellEstimate, name: str) -> CellEstimate:
    statistic = "severity" if row.estimate.statistic == "bias" else row.estimate.statistic
    return replace(row, estimate=row.estimate.with_(statistic=statistic), judge=None, annotator=name)


def _same_scores(cell: Cell, name: str, confidence: float) -> list[CellEstimate]:
    is_own = (cell.frame["rater"] == name).to_numpy()
    found = []
    for statistic, frame in (("same_score", cell.frame[is_own]), ("same_score_of_others", cell.frame[~is_own])):
        if len(frame):
            counts = frame["score"].value_counts()
            clusters = int(frame["cluster"].nunique())
            estimate = share(statistic, int(counts.iloc[0]), len(frame), clusters=clusters, confidence=confidence)
            counted = {"n_raters": int(frame["rater"].nunique()), "n_ratings": len(frame), "level": cell.scale.level}
            found.append(CellEstimate(estimate=estimate.with_(**counted), cell=cell_key(cell), annotator=name))
    return found
