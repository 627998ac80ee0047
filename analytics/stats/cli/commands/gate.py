"""``panelbench stats gate FILE --judge RATER``: may this judge be used here, and how far?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {"*": "no item is scored by the judge or by an annotator"}
SPEAKS_FOR = "these raters"
NO_SAMPLE = "its thresholds are set for intervals that speak for these raters; see agreement, calibration and alt-test"


def configure(parser: argparse.ArgumentParser) -> None:
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
    options.add_length(parser)
    parser.add_argument("--stale", metavar="REASON", help="judge, prompt or rubric have changed since: say how")


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.planning.gate import STATISTICS

    return STATISTICS


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """The decision of every cell and the findings on the way to it."""
    from dataclasses import replace

    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.planning.gate import PRESETS, gate_report

    if arguments.positional:
        raise TableError([Problem(None, "the gate compares persons: anonymous slots are none")])
    if arguments.pool:
        raise TableError([Problem(None, "a judge is trusted criterion by criterion: leave --pool out")])
    given = {name: getattr(arguments, name) for name in ("epsilon", "bias_margin", "flip_rate")}
    changed = {name: value for name, value in given.items() if value is not None}
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
