"""``panelbench stats correct FILE --judge RATER``: the judge's means corrected with a few human labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from analytics.stats.estimate import CellEstimate
    from analytics.stats.tables import RatingsTable


ABSENT = {
    "*": "no item is scored by the judge or by an annotator",
    "rogan_gladen": "it needs a scale of two points",
}
SPEAKS_FOR = "these raters"
NO_SAMPLE = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.add_argument("--judge", required=True, metavar="RATER", help="the judge that scored all items")


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.corrected import STATISTICS

    return STATISTICS


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """PPI, PPI++, Rogan-Gladen and what calibration would gain."""
    from analytics.stats.corrected import report

    return report(
        table,
        raters_as=arguments.raters_as,
        judge=arguments.judge,
        by=arguments.by,
        raters=arguments.raters,
        statistics=arguments.statistic,
        pool=arguments.pool,
        seed=arguments.seed,
    )
