"""``panelbench stats jury FILE --judge A,B,C``: several judges as one rater."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {"*": "none of the judges scored an item"}
SPEAKS_FOR = "these raters"
NO_SAMPLE = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats jury ratings.csv --judge gpt,claude,mistral --rule majority --statistic mae. "
        "Rows of the jury come first, then those of each member; a tied majority gives no label and is counted."
    )
    options.add_judges(parser, "the members, two or more", required=True)
    options.add_jury_rule(parser)
    options.add_reference(parser)


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.judge.soundness import JURY

    return JURY


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """The share left without a label, then calibration of the jury and of each member."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.judge.soundness import jury_report

    if len(set(arguments.judge)) < 2:
        raise TableError([Problem(None, "a jury has two judges or more: --judge A,B")])
    return jury_report(
        table,
        raters_as=arguments.raters_as,
        judges=tuple(dict.fromkeys(arguments.judge)),
        rule=arguments.rule,
        by=arguments.by,
        raters=arguments.raters,
        reference=arguments.reference,
        statistics=arguments.statistic,
        pool=arguments.pool,
        bootstrap=arguments.bootstrap,
        seed=arguments.seed,
    )
