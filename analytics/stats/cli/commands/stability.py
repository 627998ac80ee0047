"""``panelbench stats stability FILE``: do rankings of generators hold across languages?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {
    "*": "it needs scores in two languages",
    "mean": "nobody scored an item that has a language and a generator",
    "confirmed_inversions": "it needs two languages that rank the generators, and resampling",
}
SPEAKS_FOR = "these raters"
NO_SAMPLE = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.add_argument("--judge", metavar="RATER", help="whose scores rank (default: the panel's mean)")


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.ranking.stability import STATISTICS

    return STATISTICS


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Means, then tau-b, Spearman and inversions of every pair of languages."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.ranking.stability import stability_report

    absent = [name for name in ("language", "generator") if not table.frame[name].notna().any()]
    if absent:
        raise TableError(
            [Problem(None, f"the column {name!r} is missing or empty: rankings need it") for name in absent]
        )
    chosen = table if arguments.raters is None else table.only(rater=[*arguments.raters, arguments.judge])
    if arguments.judge and arguments.raters_as == "sample":
        raise TableError([Problem(None, "--raters-as sample: with --judge one judge ranks, and no panel")])
    return stability_report(
        chosen,
        raters_as=arguments.raters_as,
        judge=arguments.judge,
        by=arguments.by,
        pool=arguments.pool,
        bootstrap=arguments.bootstrap,
        seed=arguments.seed,
    )
