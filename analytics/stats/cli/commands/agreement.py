"""``panelbench stats agreement FILE``: how far raters agree, cell by cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {
    "*": "no rating is by an annotator or by one of --raters",
    "applicability_agreement": "nobody said that a criterion does not apply",
    "applicability_alpha": "nobody said that a criterion does not apply",
    "applicability_ac": "nobody said that a criterion does not apply",
}
SPEAKS_FOR = "these raters"
NO_SAMPLE = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.add_argument(
        "--interval", choices=("default", "percentile", "bca"), default="default", help="kind of bootstrap interval"
    )
    parser.add_argument("--leave-one-out", action="store_true", help="also every coefficient without each annotator")


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.agreement.among_raters import APPLICABILITY, STATISTICS

    return (*STATISTICS, *APPLICABILITY.values())


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Every agreement statistic of every cell."""
    from analytics.stats.agreement.among_raters import agreement_report
    from analytics.stats.core.tables import Problem, TableError

    if arguments.positional and arguments.leave_one_out:
        raise TableError([Problem(None, "--leave-one-out leaves out persons: anonymous slots are none")])
    return agreement_report(
        table,
        by=arguments.by,
        statistics=arguments.statistic,
        raters=arguments.raters,
        positional=arguments.positional,
        pool=arguments.pool,
        bootstrap=arguments.bootstrap,
        seed=arguments.seed,
        interval=arguments.interval,
        leave_one_out=arguments.leave_one_out,
        raters_as=arguments.raters_as,
    )
