"""``panelbench stats consistency FILE``: languages as raters of parallel items."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from analytics.stats.estimate import CellEstimate
    from analytics.stats.tables import RatingsTable


ABSENT = {
    "*": "the judge scored nothing that has a language",
    "mean": "it needs numbers that the judge gave to items with a language",
    "language_shift": "it needs numbers that the judge gave in the pivot language and in another",
}
SPEAKS_FOR = "this judge"
NO_SAMPLE = "languages stand as the raters of one judge here, and they are no sample"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.add_argument("--judge", metavar="RATER", help="the judge (default: every judge in turn)")
    parser.add_argument("--pivot", metavar="LANGUAGE", help="the language to set others against (default: en)")


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.consistency import STATISTICS

    return STATISTICS


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Fleiss's kappa over languages, Cohen's against the pivot, means and shifts."""
    from analytics.stats.consistency import PIVOT, report
    from analytics.stats.tables import Problem, TableError

    if not table.frame["language"].notna().any():
        raise TableError([Problem(None, "the column 'language' is missing or empty: languages are the raters here")])
    if arguments.pivot and arguments.pivot not in set(table.frame["language"]):
        raise TableError([Problem(None, f"no score is in the language {arguments.pivot!r} (given by --pivot)")])
    chosen = table if arguments.raters is None else table.only(rater=arguments.raters)
    return report(
        chosen,
        judge=arguments.judge,
        pivot=arguments.pivot or PIVOT,
        by=arguments.by,
        pool=arguments.pool,
        statistics=arguments.statistic,
        bootstrap=arguments.bootstrap,
        seed=arguments.seed,
    )
