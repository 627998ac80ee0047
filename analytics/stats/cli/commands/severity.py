"""``panelbench stats severity FILE --judge RATER``: is the judge stricter in one language than in another?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {"*": "no item with a language has both a judge score and human scores"}
SPEAKS_FOR = "these raters"
NO_SAMPLE = "regressed panel means allow for few annotators already; leaving one out is not simulated"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats severity ratings.csv --judge gpt --pivot en. The shift is in logits, positive "
        "where the judge is more lenient than in the pivot language on answers the panel finds equally good."
    )
    options.add_judge(parser, "the judge")
    options.add_pivot(parser, "the first")


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.judge.soundness import SEVERITY

    return SEVERITY


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Shift of each language, and tests of a uniform and of a changing severity."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.judge.soundness import severity_report

    if not table.frame["language"].notna().any():
        raise TableError([Problem(None, "the column 'language' is missing or empty: languages are compared here")])
    if arguments.pivot and arguments.pivot not in set(table.frame["language"]):
        raise TableError([Problem(None, f"no score is in the language {arguments.pivot!r} (given by --pivot)")])
    return severity_report(
        table,
        judge=arguments.judge,
        by=arguments.by,
        raters=arguments.raters,
        pivot=arguments.pivot,
        pool=arguments.pool,
    )
