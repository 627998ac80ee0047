"""``panelbench stats correct FILE --judge RATER``: the judge's means corrected with a few human labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {
    "*": "no item is scored by the judge or by an annotator",
    "rogan_gladen": "it needs a scale of two points",
    "ppi_plus_difference": "it needs --generators A,B",
}
SPEAKS_FOR = "these raters"
NO_SAMPLE = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    options.add_judge(parser, "the judge that scored all items")
    parser.add_argument("--stratum", metavar="COLUMN", help="also PPI++ within the values of this column, weighted by"
                        " their share of the items")  # fmt: skip
    parser.add_argument("--generators", type=options.names, metavar="A,B", help="also the difference A - B on parallel"
                        " items, those of one cluster and language")  # fmt: skip


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.judge.corrected_means import STATISTICS

    return STATISTICS


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """PPI, PPI++, Rogan-Gladen and what calibration would gain."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.judge.corrected_means import correction_report

    if arguments.stratum and arguments.stratum not in table.frame:
        raise TableError([Problem(None, f"the column {arguments.stratum!r} (given by --stratum) is missing")])
    if arguments.generators is not None:
        if len(set(arguments.generators)) != 2 or len(arguments.generators) != 2:
            raise TableError([Problem(None, "name two generators: --generators A,B")])
        known = set(table.frame["generator"].dropna().astype(str))
        if absent := [name for name in arguments.generators if name not in known]:
            raise TableError([Problem(None, f"no generator is called {absent[0]!r} (given by --generators)")])
    return correction_report(
        table,
        raters_as=arguments.raters_as,
        stratum=arguments.stratum,
        generators=arguments.generators,
        judge=arguments.judge,
        by=arguments.by,
        raters=arguments.raters,
        statistics=arguments.statistic,
        pool=arguments.pool,
        seed=arguments.seed,
    )
