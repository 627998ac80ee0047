"""``panelbench stats plan FILE``: how many more labels, from the ratings of a pilot."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from analytics.stats.estimate import CellEstimate
    from analytics.stats.tables import RatingsTable


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    goals = parser.add_argument_group("goals")
    goals.add_argument("--judge", metavar="RATER", help="a judge that could score everything")
    goals.add_argument("--half-width", type=float, default=0.1, metavar="H", help="an interval of value +- H")
    goals.add_argument("--reliability", type=float, default=0.8, metavar="R", help="of the mean of an item's raters")
    goals.add_argument("--budget", type=float, metavar="MONEY", help="to share out over languages")
    goals.add_argument(
        "--price", action="append", metavar="LANGUAGE=P", help="price of a label (default: 1)", default=[]
    )
    goals.add_argument("--minimax", action="store_true", help="share out for the smallest widest interval")
    goals.add_argument("--epsilon", type=float, default=0.15, help="of the alternative annotator test")


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Labels, items and raters needed in every cell, power of the test, then the budget's share of each language."""
    from analytics.stats.plan import Goals, report
    from analytics.stats.tables import Problem, TableError

    if arguments.half_width <= 0:
        raise TableError([Problem(None, "--half-width should be above 0")])
    try:
        price = {language: float(money) for language, _, money in (word.partition("=") for word in arguments.price)}
        goals = Goals(
            half_width=arguments.half_width,
            reliability=arguments.reliability,
            epsilon=arguments.epsilon,
            budget=arguments.budget,
            price=price,
            minimax=arguments.minimax,
        )
        return report(
            table,
            goals,
            judge=arguments.judge,
            by=arguments.by,
            raters=arguments.raters,
            bootstrap=arguments.bootstrap,
            seed=arguments.seed,
        )
    except ValueError as error:
        raise TableError([Problem(None, str(error))]) from error
