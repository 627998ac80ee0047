"""``panelbench stats plan FILE``: how many more labels, from the ratings of a pilot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {
    "*": "no item is scored by the judge or by an annotator",
    "alt_test_power": "it needs --judge",
    "labels_affordable": "it needs --budget, and a language whose labels vary",
}
SPEAKS_FOR = "these raters"
NO_SAMPLE = "a plan reads the spread of these raters in the pilot; how many raters it takes is `raters_needed`"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    goals = parser.add_argument_group("goals")
    goals.add_argument("--judge", metavar="RATER", help="a judge that could score everything")
    goals.add_argument(
        "--half-width", type=options.positive, default=0.1, metavar="H", help="an interval of value +- H"
    )
    goals.add_argument(
        "--reliability", type=options.positive, default=0.8, metavar="R", help="of the mean of an item's raters"
    )
    goals.add_argument("--budget", type=options.positive, metavar="MONEY", help="to share out over languages")
    goals.add_argument(
        "--price", type=options.price, action="append", metavar="LANGUAGE=P", help="of a label (default: 1)", default=[]
    )
    goals.add_argument("--minimax", action="store_true", help="share out for the smallest widest interval")
    options.add_epsilon(parser, "of the alternative annotator test", default=0.15)


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.planning.pilot import STATISTICS

    return STATISTICS


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Labels, items and raters needed in every cell, power of the test, then the budget's share of each language."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.planning.pilot import Goals, pilot_report

    try:
        goals = Goals(
            half_width=arguments.half_width,
            reliability=arguments.reliability,
            epsilon=arguments.epsilon,
            min_items=arguments.min_items,
            budget=arguments.budget,
            price=dict(arguments.price),
            minimax=arguments.minimax,
        )
        return pilot_report(
            table,
            goals,
            judge=arguments.judge,
            by=arguments.by,
            raters=arguments.raters,
            positional=arguments.positional,
            pool=arguments.pool,
            bootstrap=arguments.bootstrap,
            seed=arguments.seed,
        )
    except ValueError as error:
        raise TableError([Problem(None, str(error))]) from error
