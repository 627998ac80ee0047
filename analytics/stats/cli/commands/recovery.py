"""``panelbench stats recovery FILE``: does a judge recover what dialogues were generated from?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    import pandas as pd

    from analytics.stats.core.estimate import CellEstimate

ABSENT = {"*": "the file has no dialogue with a parameter"}
SPEAKS_FOR = "this judge"
NO_SAMPLE = "it is about one judge, nobody else rates"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats recovery dialogues.csv --parameters industry,channel. A row is a dialogue; a "
        "column of each name holds the parameter it was generated from, and one with the prefix judge_ what the "
        "judge read out of it (empty: it named none, which is missing, not wrong)."
    )
    parser.add_argument(
        "--parameters", type=options.names, required=True, metavar="COLUMN,...", help="the parameters' columns"
    )
    parser.add_argument(
        "--prefix", default="judge_", metavar="TEXT", help="before the columns of the judge's reading (default: judge_)"
    )


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    return ("label_recovery",)


def read(arguments: argparse.Namespace, frame: pd.DataFrame) -> pd.DataFrame:
    """The records with item, cluster and language under these names."""
    from analytics.stats.cli.reading import known_columns, renamed
    from analytics.stats.core.tables import Problem, TableError

    own = {name: getattr(arguments, f"column_{name}") for name in ("item", "language", "generator", "cluster")}
    given = {name: column for name, column in own.items() if column}
    frame = renamed(frame, given)
    wanted = [*arguments.parameters, *(arguments.prefix + name for name in arguments.parameters)]
    if absent := [name for name in wanted if name not in frame]:
        raise TableError([Problem(None, f"the column {name!r} is missing") for name in absent])
    default = tuple(column for column in ("language", "generator") if column in frame)
    arguments.by = default if arguments.by is None else known_columns(frame, arguments.by, given)
    return frame


def run(arguments: argparse.Namespace, frame: pd.DataFrame) -> list[CellEstimate]:
    """The share recovered of each parameter, and of all."""
    from analytics.stats.judge.soundness import recovery_report

    return recovery_report(frame, arguments.parameters, prefix=arguments.prefix, by=arguments.by)
