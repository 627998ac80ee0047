"""``panelbench stats compare FILE``: two raters on the same items, or any statistic between two sides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {"*": "no cell has both sides, or neither rater scored an item"}
SPEAKS_FOR = "these raters"
NO_SAMPLE = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.add_argument(
        "--truth",
        choices=("labels", "mode", "reference"),
        help="what is a hit: the higher of two labels, the other annotators' mode, or the file's reference",
    )
    parser.epilog = (
        "--raters A,B compares two raters by McNemar's test. --between COLUMN=A,B gives the difference A - B of any "
        "--statistic of agreement, calibration or correct, with its interval; --between judge=A,B that of two judges."
    )
    parser.add_argument("--between", type=options.sides, metavar="COLUMN=A,B", help="the two sides: language=en,et")
    options.add_reference(parser)
    options.add_judges(parser, "which raters are judges, where no rater_kind says so: fractions are rounded half up")


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.judge.differences import STATISTICS

    return ("mcnemar", *STATISTICS)


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """McNemar's test in four variants, or differences of statistics."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.judge.mcnemar import mcnemar_report

    if arguments.between is not None:
        return _differences(arguments, table)
    if arguments.raters_as == "sample":
        raise TableError([Problem(None, "--raters-as sample: McNemar's test is about the two raters that are named;"
                                        " with --between the panels of both sides can be a sample")])  # fmt: skip
    if strangers := [name for name in arguments.statistic or () if name != "mcnemar"]:
        raise TableError([Problem(None, f"{strangers[0]} is compared between two sides: add --between COLUMN=A,B")])
    if arguments.positional:
        raise TableError([Problem(None, "two raters are compared as persons: anonymous slots are none")])
    if arguments.raters is None or len(arguments.raters) != 2 or len(set(arguments.raters)) < 2:
        raise TableError([Problem(None, "name two raters: --raters A,B")])
    return mcnemar_report(table, raters=arguments.raters, by=arguments.by, truth=arguments.truth, pool=arguments.pool)


def _differences(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    from analytics.stats.agreement import among_raters
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.judge import differences

    column, values = arguments.between
    wanted = tuple(name for name in arguments.statistic or () if name != "mcnemar")
    if not wanted:
        raise TableError([Problem(None, "name what to compare: --statistic krippendorff_alpha,mae")])
    judges = arguments.judge or ()
    known = (
        set(table.frame["rater"] if column == "judge" else table.frame[column].dropna().astype(str))
        if (column == "judge" or column in table.frame)
        else set()
    )
    if absent := [value for value in values if value not in known]:
        raise TableError([Problem(None, f"--between: no {column} is called {absent[0]!r}")])
    if column != "judge" and len(judges) > 1:
        raise TableError([Problem(None, "one --judge stands on both sides; two judges are --between judge=A,B")])
    needs_judge = [name for name in wanted if name not in among_raters.STATISTICS]
    if needs_judge and column != "judge" and not judges:
        raise TableError([Problem(None, f"{needs_judge[0]} is about a judge: add --judge")])
    question = differences.DifferenceQuestion(
        column=column, values=values, statistics=wanted, judge=judges[0] if judges else None, by=tuple(arguments.by),
        reference=arguments.reference, raters=arguments.raters, pool=arguments.pool, seed=arguments.seed,
        raters_as=arguments.raters_as,
    )  # fmt: skip
    return differences.difference_report(table, question)
