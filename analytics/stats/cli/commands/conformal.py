"""``panelbench stats conformal FILE --judge RATER``: which items may be left to the judge?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {"*": "no item has both a judge score and human scores"}
SPEAKS_FOR = "these raters"
NO_SAMPLE = "the promise holds for panels made as this one is; calibrate with other annotators to promise it of theirs"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats conformal ratings.csv --judge gpt --coverage 0.9 --widest 1. The radius comes "
        "from the items with human scores; width and share for people describe the items that only the judge "
        "scored. --statistic conformal_interval lists the interval of each of them."
    )
    options.add_judge(parser, "the judge that scored all items")
    parser.add_argument(
        "--coverage",
        type=options.probability,
        default=0.9,
        metavar="P",
        help="share of intervals that hold (default: .9)",
    )
    parser.add_argument(
        "--widest",
        type=options.positive,
        metavar="W",
        help="people see items with a wider interval (default: half the scale)",
    )


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.judge.soundness import CONFORMAL

    return CONFORMAL


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Radius, mean width and share of items for people; the items themselves on request."""
    from analytics.stats.judge.soundness import conformal_report

    return conformal_report(
        table,
        judge=arguments.judge,
        by=arguments.by,
        raters=arguments.raters,
        coverage=arguments.coverage,
        widest=arguments.widest,
        items="conformal_interval" in (arguments.statistic or ()),
        pool=arguments.pool,
    )
