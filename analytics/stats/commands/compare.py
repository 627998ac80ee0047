"""``panelbench stats compare FILE --raters A,B``: two raters on the same items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats import options

if TYPE_CHECKING:
    import argparse

    from analytics.stats.estimate import CellEstimate
    from analytics.stats.tables import RatingsTable


ABSENT = {"*": "neither rater scored an item"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.add_argument(
        "--truth",
        choices=("labels", "mode", "reference"),
        help="what is a hit: the higher of two labels, the other annotators' mode, or the file's reference",
    )
    parser.add_argument(
        "--judge",
        type=options.names,
        metavar="RATER,...",
        help="which raters are judges, where no rater_kind says so: fractions are rounded half up",
    )


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    return ("mcnemar",)


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """McNemar's test in four variants."""
    from analytics.stats.comparison import report
    from analytics.stats.tables import Problem, TableError

    if arguments.positional:
        raise TableError([Problem(None, "two raters are compared as persons: anonymous slots are none")])
    if arguments.raters is None or len(arguments.raters) != 2 or len(set(arguments.raters)) < 2:
        raise TableError([Problem(None, "name two raters: --raters A,B")])
    return report(table, raters=arguments.raters, by=arguments.by, truth=arguments.truth, pool=arguments.pool)
