"""``panelbench stats consistency FILE``: languages as raters of parallel items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {
    "*": "the judge scored nothing that has a language",
    "mean": "it needs numbers that the judge gave to items with a language",
    "kappa_against_level": "it needs two judges whose scores are numbers in several languages",
    "language_shift": "it needs numbers that the judge gave in the pivot language and in another",
}
SPEAKS_FOR = "this judge"
NO_SAMPLE = "languages stand as the raters of one judge here, and they are no sample"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.add_argument("--judge", metavar="RATER", help="the judge (default: every judge in turn)")
    options.add_pivot(parser, "en")
    parser.add_argument("--jury", type=options.names, metavar="RATER,...", help="also the kappa of these judges' jury,"
                        " of the least consistent of them, and the difference (S1)")  # fmt: skip
    options.add_jury_rule(parser)
    parser.add_argument("--gap", type=options.names, metavar="A,B", help="also kappa on criterion A less that on B")


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.judge.consistency import STATISTICS

    return STATISTICS


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Fleiss's kappa over languages, Cohen's against the pivot, means and shifts."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.judge.consistency import PIVOT, beside, consistency_report

    if not table.frame["language"].notna().any():
        raise TableError([Problem(None, "the column 'language' is missing or empty: languages are the raters here")])
    if arguments.pivot and arguments.pivot not in set(table.frame["language"]):
        raise TableError([Problem(None, f"no score is in the language {arguments.pivot!r} (given by --pivot)")])
    known = set(table.frame["rater"])
    if strangers := [name for name in arguments.jury or () if name not in known]:
        raise TableError([Problem(None, f"no rater is called {strangers[0]!r} (given by --jury)")])
    if arguments.jury and len(set(arguments.jury)) < 2:
        raise TableError([Problem(None, "a jury has two judges or more: --jury A,B")])
    gap = arguments.gap or ()
    if gap and (len(gap) != 2 or len(set(gap)) < 2):
        raise TableError([Problem(None, "name two criteria: --gap A,B")])
    if absent := [name for name in gap if name not in table.scales]:
        raise TableError([Problem(None, f"no criterion is called {absent[0]!r} (given by --gap)")])
    chosen = table if arguments.raters is None else table.only(rater=arguments.raters)
    rows = consistency_report(
        chosen,
        judge=arguments.judge,
        pivot=arguments.pivot or PIVOT,
        by=arguments.by,
        pool=arguments.pool,
        statistics=arguments.statistic,
        bootstrap=arguments.bootstrap,
        seed=arguments.seed,
    )
    return [*rows, *beside(chosen, judge=arguments.judge, jury=arguments.jury, rule=arguments.rule, gap=arguments.gap,
                           statistics=arguments.statistic)]  # fmt: skip
