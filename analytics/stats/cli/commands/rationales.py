"""``panelbench stats rationales FILE``: rationales of people beside those of judges."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {"*": "nobody rated anything"}
SPEAKS_FOR = "these raters"
NO_SAMPLE = "what these raters wrote is described"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats rationales ratings.csv --rationale comment. Rows without a judge are the "
        "annotators together; words are counted by the rules of the cell's language."
    )
    parser.add_argument(
        "--rationale", metavar="NAME", default="rationale", help="the column of the rationale (default: rationale)"
    )


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    return ("rationale_words", "rationale_mattr", "rationale_in_language")


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Length, variety and language of rationales, annotators and each judge."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.text.rationales import rationale_report

    column = arguments.rationale
    if column not in table.frame:
        raise TableError([Problem(None, f"the column {column!r} is missing: say --rationale NAME")])
    chosen = table if arguments.raters is None else table.only(rater=arguments.raters)
    return rationale_report(chosen, column=column, by=arguments.by, resamples=arguments.bootstrap, seed=arguments.seed)
