"""``panelbench stats audit FILE --judge RATER``: is the judge sound?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {
    "*": "the judge scored nothing",
    "verbosity": "it needs --length COLUMN",
    "self_preference": "it needs --family JUDGE=FAMILY, twice or more",
    "perturbation": "it needs --against RATER,...",
    "condition_mae": "it needs --against RATER,...",
    "condition_shift": "it needs --against RATER,...",
    "repeat_sd": "a nominal scale has no distances",
}
SPEAKS_FOR = "these raters"
NO_SAMPLE = "an audit is about one judge, not about a panel"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats audit ratings.csv --judge gpt --length words --against gpt-shuffled. Repeats "
        "are rows with a column 'repeat'; a judge's row without a score is an unreadable reply."
    )
    options.add_judge(parser, "the judge to audit")
    options.add_length(parser)
    parser.add_argument(
        "--against",
        type=options.names,
        default=(),
        metavar="RATER,...",
        help="the same judge with another prompt or text",
    )
    parser.add_argument(
        "--family", type=options.assignment, action="append", default=[], metavar="JUDGE=FAMILY",
        help="the family of a judge, as the column generator_family (or generator) names it; say it for each judge",
    )  # fmt: skip


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.judge.soundness import AUDITS

    return AUDITS


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Repeats, use of the scale, unreadable replies, and what the options ask for."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.judge.soundness import audit_report

    known = set(table.frame["rater"])
    asked = [("against", name) for name in arguments.against] + [("family", name) for name, _ in arguments.family]
    if strangers := [(option, name) for option, name in asked if name not in known]:
        raise TableError([Problem(None, f"no rater is called {name!r} (given by --{o})") for o, name in strangers])
    return audit_report(
        table,
        judge=arguments.judge,
        by=arguments.by,
        raters=arguments.raters,
        against=arguments.against,
        length=arguments.length,
        families=dict(arguments.family),
        pool=arguments.pool,
    )
