"""From a ratings table to the estimates of a snapshot, as plain values. pandas and scipy are needed from here on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from analytics.stats.agreement import among_raters
from analytics.stats.core.tables import RatingsTable
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge import calibration

if TYPE_CHECKING:
    import pandas as pd

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.scales import Scale

AGREEMENT = ("percent_agreement", "fleiss_kappa", "krippendorff_alpha", "gwet_ac")
CALIBRATION = ("mae", "bias", "cohen_kappa", "spearman", *calibration.COUNTS)

# The one variant of a statistic that is kept, by the criterion's level of measurement.
VARIANTS = {
    "fleiss_kappa": {"nominal": "unequal", "ordinal": "unequal", "interval": "unequal"},
    "gwet_ac": {"nominal": "identity", "ordinal": "ordinal", "interval": "quadratic"},
    "cohen_kappa": {"nominal": "unweighted", "ordinal": "quadratic", "interval": "quadratic"},
}
ALL_LANGUAGES = ("criterion",)
EACH_LANGUAGE = ("language", "criterion")


def content(
    frame: pd.DataFrame, *, scales: Mapping[str, Scale], bootstrap: int, confidence: float, seed: int
) -> dict[str, Any]:
    """Languages, counts and estimates of a ratings table: by criterion and language, and over all languages together.

    Criteria are never pooled. An estimate is its row without what is None.
    """
    table = ratings_table(frame, scales=scales)
    how = {"bootstrap": bootstrap, "confidence": confidence, "seed": seed}
    languages = sorted(table.frame["language"].dropna().unique())
    found = list(_estimates(table, languages, how))
    return {
        "languages": languages,
        "rated": rated(table),
        "counts": [row for by in _groupings(languages) for row in counts(table, by)],
        "estimates": [_plain(each) for each in found if _is_kept(each)],
    }


def rated(table: RatingsTable) -> dict[str, int]:
    """How many items the panels scored, by how many people, how often."""
    scored = table.annotators().frame
    scored = scored[scored["applicable"] & ~scored["missing"]]
    return {
        "items": int(scored["item_key"].nunique()),
        "raters": int(scored["rater"].nunique()),
        "ratings": len(scored),
        "verdicts": int((table.frame["rater_kind"] == "judge").sum()),
    }


def _groupings(languages: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Each language, and all of them together where there are several."""
    return (EACH_LANGUAGE, ALL_LANGUAGES) if len(languages) > 1 else (EACH_LANGUAGE,)


def _estimates(table: RatingsTable, languages: Sequence[str], how: dict[str, Any]) -> Iterator[CellEstimate]:
    judges = sorted(table.frame.loc[table.frame["rater_kind"] == "judge", "rater"].unique())
    for by in _groupings(languages):
        yield from among_raters.agreement_report(table, by=by, statistics=AGREEMENT, **how)
        for judge in judges:
            yield from calibration.calibration_report(table, judge=judge, by=by, statistics=CALIBRATION, **how)


def _is_kept(each: CellEstimate) -> bool:
    estimate = each.estimate
    variants = VARIANTS.get(estimate.statistic)
    return variants is None or estimate.variant == variants.get(estimate.level or "")


def _plain(each: CellEstimate) -> dict[str, Any]:
    return {name: value for name, value in each.as_row().items() if value is not None}


def counts(table: RatingsTable, by: Sequence[str]) -> list[dict[str, Any]]:
    """What a cell holds: items, raters, ratings, missing, N/A, off the scale; for the panel and for each judge."""
    frame = table.frame.assign(judge=table.frame["rater"].where(table.frame["rater_kind"] == "judge", ""))
    first = frame[frame["repeat"] == frame["first_repeat"]]
    keys = [*by, "judge"]
    return [
        dict(zip(keys, (str(part) for part in key), strict=True)) | _counted(cell)
        for key, cell in first.groupby(keys, sort=True, observed=True)
    ]


def _counted(cell: pd.DataFrame) -> dict[str, Any]:
    reasons = cell["missing_reason"].dropna()
    given = cell["applicable"] & ~cell["missing"] & ~cell["out_of_range"]
    return {
        "items": int(cell.loc[given, "item_key"].nunique()),
        "raters": int(cell.loc[given, "rater"].nunique()),
        "ratings": int(given.sum()),
        "missing": int(cell["missing"].sum()),
        "not_applicable": int((~cell["applicable"]).sum()),
        "reasons": {str(reason): int(number) for reason, number in reasons.value_counts().sort_index().items()},
    }
