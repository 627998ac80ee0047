"""Subcommands of ``panelbench stats`` about what a judge may be used for, and which labels that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options
from analytics.stats.cli.options import Subcommand
from analytics.stats.core.identifiers import normal_identifier

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.tables import RatingsTable


# --- correct ---------------------------------------------------------------------------------------------------------


def _configure_correct(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    options.add_judge(parser, "the judge that scored all items")
    parser.add_argument("--stratum", type=normal_identifier, metavar="COLUMN",
                        help="also PPI++ within the values of this column, weighted by"
                        " their share of the items")  # fmt: skip
    parser.add_argument("--generators", type=options.name_list, metavar="A,B", help="also the difference A - B on"
                        " parallel items, those of one cluster and language")  # fmt: skip


def _statistics_correct() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.judge.corrected_means import STATISTICS

    return STATISTICS


def _run_correct(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """PPI, PPI++, Rogan-Gladen and what calibration would gain."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.judge.corrected_means import correction_report

    if arguments.stratum and arguments.stratum not in table.frame:
        raise TableError([TableProblem(None, f"the column {arguments.stratum!r} (given by --stratum) is missing")])
    if arguments.generators is not None:
        if len(set(arguments.generators)) != 2 or len(arguments.generators) != 2:
            raise TableError([TableProblem(None, "name two generators: --generators A,B")])
        known = set(table.frame["generator"].dropna().astype(str))
        if absent := [name for name in arguments.generators if name not in known]:
            raise TableError([TableProblem(None, f"no generator is called {absent[0]!r} (given by --generators)")])
    return correction_report(
        table,
        raters_as=arguments.raters_as,
        stratum=arguments.stratum,
        generators=arguments.generators,
        judge=arguments.judge,
        by=arguments.by,
        raters=arguments.raters,
        statistics=arguments.statistic,
        pool=arguments.pool,
        seed=arguments.seed,
    )


# --- conformal -------------------------------------------------------------------------------------------------------


def _configure_conformal(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats conformal ratings.csv --judge gpt --coverage 0.9 --widest 1. The radius comes "
        "from the items with human scores; width and share for people describe the items that only the judge "
        "scored. --statistic conformal_interval lists the interval of each of them."
    )
    options.add_judge(parser, "the judge that scored all items")
    parser.add_argument(
        "--coverage",
        type=options.probability,
        default=0.9,
        metavar="P",
        help="share of intervals that hold (default: .9)",
    )
    parser.add_argument(
        "--widest",
        type=options.positive,
        metavar="W",
        help="people see items with a wider interval (default: half the scale)",
    )


def _statistics_conformal() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.judge.soundness import CONFORMAL

    return CONFORMAL


def _run_conformal(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Radius, mean width and share of items for people; the items themselves on request."""
    from analytics.stats.judge.soundness import conformal_report

    return conformal_report(
        table,
        judge=arguments.judge,
        by=arguments.by,
        raters=arguments.raters,
        coverage=arguments.coverage,
        widest=arguments.widest,
        items="conformal_interval" in (arguments.statistic or ()),
        pool=arguments.pool,
    )


# --- plan ------------------------------------------------------------------------------------------------------------


def _configure_plan(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    goals = parser.add_argument_group("goals")
    goals.add_argument("--judge", type=normal_identifier, metavar="RATER", help="a judge that could score everything")
    goals.add_argument(
        "--half-width", type=options.positive, default=0.1, metavar="H", help="an interval of value +- H"
    )
    goals.add_argument(
        "--difference", type=options.positive, default=0.25, metavar="D", help="of two generators, to be found"
    )
    goals.add_argument(
        "--reliability", type=options.positive, default=0.8, metavar="R", help="of the mean of an item's raters"
    )
    goals.add_argument("--budget", type=options.positive, metavar="MONEY", help="to share out over languages")
    goals.add_argument(
        "--price",
        type=options.named_price,
        action="append",
        metavar="LANGUAGE=P",
        help="of a label (default: 1)",
        default=[],
    )
    goals.add_argument("--minimax", action="store_true", help="share out for the smallest widest interval")
    options.add_epsilon(parser, "of the alternative annotator test", default=0.15)


def _statistics_plan() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.planning.pilot import STATISTICS

    return STATISTICS


def _run_plan(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Labels, items and raters needed in every cell, power of the test, then the budget's share of each language."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.planning.pilot import Goals, pilot_report

    try:
        goals = Goals(
            half_width=arguments.half_width,
            difference=arguments.difference,
            reliability=arguments.reliability,
            epsilon=arguments.epsilon,
            min_items=arguments.min_items,
            budget=arguments.budget,
            price=dict(arguments.price),
            minimax=arguments.minimax,
        )
        return pilot_report(
            table,
            goals,
            judge=arguments.judge,
            by=arguments.by,
            raters=arguments.raters,
            positional=arguments.positional,
            pool=arguments.pool,
            bootstrap=arguments.bootstrap,
            seed=arguments.seed,
        )
    except ValueError as error:
        raise TableError([TableProblem(None, str(error))]) from error


# --- gate ------------------------------------------------------------------------------------------------------------


def _configure_gate(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats gate ratings.csv --judge gpt --preset skilled. What was not measured counts "
        "against the judge: repeats (column 'repeat') for the flip rate, generators for the ranking. Each finding"
        " says what would change it."
    )
    options.add_judge(parser, "the judge to decide about")
    parser.add_argument(
        "--preset",
        choices=("experts", "skilled", "crowd"),
        default="skilled",
        help="thresholds by who the annotators are (default: skilled)",
    )
    options.add_epsilon(parser, "of the alternative annotator test, instead of the preset's")
    parser.add_argument("--bias-margin", type=options.positive, metavar="SHARE", help="of the scale's width, likewise")
    parser.add_argument("--flip-rate", type=options.positive, metavar="SHARE", help="of items over repeats, likewise")
    parser.add_argument("--readable", type=options.a_share, metavar="SHARE", help="of replies, likewise")
    options.add_length(parser)
    parser.add_argument("--stale", metavar="REASON", help="judge, prompt or rubric have changed since: say how")


def _statistics_gate() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.planning.gate import STATISTICS

    return STATISTICS


def _run_gate(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """The decision of every cell and the findings on the way to it."""
    from dataclasses import replace

    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.planning.gate import PRESETS, gate_report

    if arguments.positional:
        raise TableError([TableProblem(None, "the gate compares persons: anonymous slots are none")])
    if arguments.pool:
        raise TableError([TableProblem(None, "a judge is trusted criterion by criterion: leave --pool out")])
    thresholds = {name: getattr(arguments, name) for name in ("epsilon", "bias_margin", "flip_rate", "readable")}
    changed = {name: value for name, value in thresholds.items() if value is not None}
    preset = PRESETS[arguments.preset]
    if changed:
        version = f"{preset.version} with {', '.join(f'{name} {value:g}' for name, value in changed.items())}"
        preset = replace(preset, version=version, **changed)
    return gate_report(
        table,
        preset,
        judge=arguments.judge,
        by=arguments.by,
        raters=arguments.raters,
        length=arguments.length,
        stale_because=arguments.stale,
        bootstrap=arguments.bootstrap,
        seed=arguments.seed,
    )


# --- the table -------------------------------------------------------------------------------------------------------
SUBCOMMANDS = {
    "correct": Subcommand(
        configure=_configure_correct,
        statistics=_statistics_correct,
        run=_run_correct,
        absent={
            "*": "no item is scored by the judge or by an annotator",
            "rogan_gladen": "it needs a scale of two points",
            "ppi_plus_difference": "it needs --generators A,B",
        },
        speaks_for="these raters",
        no_sample="",
    ),
    "conformal": Subcommand(
        configure=_configure_conformal,
        statistics=_statistics_conformal,
        run=_run_conformal,
        absent={"*": "no item has both a judge score and human scores"},
        speaks_for="these raters",
        no_sample="the promise holds for panels made as this one is; calibrate with other annotators"
        " to promise it of theirs",
    ),
    "plan": Subcommand(
        configure=_configure_plan,
        statistics=_statistics_plan,
        run=_run_plan,
        absent={
            "*": "no item is scored by the judge or by an annotator",
            "alt_test_power": "it needs --judge",
            "items_for_difference": "it needs two generators with rated items",
            "labels_affordable": "it needs --budget, and a language whose labels vary",
        },
        speaks_for="these raters",
        no_sample="a plan reads the spread of these raters in the pilot; how many raters it takes is `raters_needed`",
    ),
    "gate": Subcommand(
        configure=_configure_gate,
        statistics=_statistics_gate,
        run=_run_gate,
        absent={"*": "no item is scored by the judge or by an annotator"},
        speaks_for="these raters",
        no_sample="its thresholds are set for intervals that speak for these raters; see agreement,"
        " calibration and alt-test",
    ),
}
