"""``panelbench stats equivalence FILE --raters A,B``: the same scores, up to a margin?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {"*": "neither rater scored an item"}
SPEAKS_FOR = "these raters"
NO_SAMPLE = "it is about the two raters that are named"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats equivalence ratings.csv --raters gpt-native,gpt-english --margin 0.1. p below "
        ".05 says that the mean difference (first less second) is smaller than the margin; its interval is one of"
        " 90 %%."
    )
    parser.add_argument(
        "--margin", type=options.positive, default=0.05, metavar="M", help="largest difference that counts as none"
    )


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    return ("tost",)


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Two one-sided tests of the mean paired difference."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.judge.soundness import equivalence_report

    if arguments.raters is None or len(arguments.raters) != 2 or len(set(arguments.raters)) < 2:
        raise TableError([Problem(None, "name two raters: --raters A,B")])
    return equivalence_report(
        table, raters=arguments.raters, by=arguments.by, margin=arguments.margin, pool=arguments.pool
    )
