"""``panelbench stats alt-test FILE --judge RATER``: may the judge stand in for an annotator?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from analytics.stats.cli import options

if TYPE_CHECKING:
    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {"*": "no item is scored by the judge or by an annotator"}


class _MeasureOrColumn(argparse.Action):
    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        setattr(namespace, "measure" if values in ("accuracy", "rmse") else "column_score", values)


SPEAKS_FOR = "these raters"
NO_SAMPLE = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    options.add_judge(parser, "the rater to set against each annotator")
    options.add_epsilon(parser, "how much worse a cheaper judge may be: .2 experts, .15, .1 crowd", default=0.15)
    parser.set_defaults(column_score=None, measure=None)
    # The shared --score names a column; here the two measures come first, and any other name is still the column's.
    parser.conflict_handler = "resolve"
    parser.add_argument_group("measure").add_argument(
        "--score",
        action=_MeasureOrColumn,
        metavar="accuracy|rmse",
        help="agreement with the others (default: accuracy if nominal, else rmse); another name is the score column",
    )


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.judge.alt_test import STATISTICS

    return STATISTICS


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """omega and rho of every cell, then each annotator."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.judge.alt_test import ANONYMOUS, alt_test_report

    if arguments.positional:
        raise TableError([Problem(None, ANONYMOUS)])
    return alt_test_report(
        table,
        raters_as=arguments.raters_as,
        judge=arguments.judge,
        by=arguments.by,
        epsilon=arguments.epsilon,
        score=arguments.measure,
        min_items=arguments.min_items,
        raters=arguments.raters,
        pool=arguments.pool,
        bootstrap=arguments.bootstrap,
        seed=arguments.seed,
    )
