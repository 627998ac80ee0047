"""``panelbench stats criteria FILE``: do criteria measure different things?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {"*": "it needs two criteria, scored with numbers by annotators on the same items"}
SPEAKS_FOR = "these raters"
NO_SAMPLE = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats criteria ratings.csv --by language. Each row is a pair of criteria: Spearman's"
        " correlation of the items' panel means. Criteria that always move together measure one thing."
    )


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    return ("criteria_spearman",)


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Spearman's correlation of every pair of criteria."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.judge.differences import between_criteria

    if table.frame["criterion"].nunique() < 2:
        raise TableError([Problem(None, "the file has one criterion: there is nothing to correlate it with")])
    chosen = table if arguments.raters is None else table.only(rater=arguments.raters)
    by = tuple(column for column in arguments.by if column != "criterion")
    return between_criteria(chosen, by=by, resamples=arguments.bootstrap, seed=arguments.seed,
                            raters_as=arguments.raters_as)  # fmt: skip
