"""``panelbench stats consistency FILE``: languages as raters of parallel items."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from analytics.stats.estimate import CellEstimate
    from analytics.stats.tables import RatingsTable


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.add_argument("--judge", metavar="RATER", help="the judge (default: every judge in turn)")
    parser.add_argument("--pivot", default="en", metavar="LANGUAGE", help="the language to set others against")


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Fleiss's kappa over languages, Cohen's against the pivot, means and shifts."""
    from analytics.stats.consistency import report
    from analytics.stats.tables import Problem, TableError

    if not table.frame["language"].notna().any():
        raise TableError([Problem(None, "the column 'language' is missing: languages are the raters here")])
    chosen = table if arguments.raters is None else table.only(rater=arguments.raters)
    return report(
        chosen,
        judge=arguments.judge,
        pivot=arguments.pivot,
        by=arguments.by,
        statistics=arguments.statistic,
        bootstrap=arguments.bootstrap,
        seed=arguments.seed,
    )
