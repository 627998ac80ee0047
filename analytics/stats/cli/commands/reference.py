"""``panelbench stats reference FILE --rule RULE``: what a rule makes the panel's labels, and what it leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {
    "*": "no item is scored by an annotator or an adjudicator",
    "reference_excluded": "every item gets a label",
    "label_share": "the scale has more than 101 points",
    "annotator_accuracy": "it needs --rule dawid_skene",
    "confusion": "it needs --rule dawid_skene",
    "reference_label": "no item gets a label",
    "few_shot_example": "it needs --examples N, and labels",
}
SPEAKS_FOR = "these raters"
NO_SAMPLE = "labels are what these annotators settled; other annotators would settle others"


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats reference ratings.csv --rule mode --ties median. --statistic reference_label "
        "lists the label of every item, --statistic confusion each annotator's confusions (--rule dawid_skene)."
    )
    parser.add_argument(
        "--rule",
        choices=("mode", "median", "mean", "dawid_skene", "adjudicated_first"),
        default="mode",
        help="how the label is settled (default: mode)",
    )
    options.add_ties(parser)
    parser.add_argument(
        "--examples", type=options.count, metavar="N", help="also N items of each label, drawn with --seed, to show a"
        " judge in its prompt; it must not judge them afterwards"
    )  # fmt: skip


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.judge.reference import STATISTICS

    return STATISTICS


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Settled and excluded items, the share of each label, and with Dawid-Skene each annotator."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.judge.reference import reference_report

    if arguments.pool:
        raise TableError([Problem(None, "labels are settled criterion by criterion: leave --pool out")])
    if arguments.positional and arguments.rule == "dawid_skene":
        raise TableError([Problem(None, "dawid_skene is about persons: anonymous slots are none")])
    if arguments.rule == "mean" and any(not s.has_order for s in table.scales.values()):
        raise TableError([Problem(None, "--rule mean: a nominal scale has no mean; take mode or dawid_skene")])
    return reference_report(
        table,
        rule=arguments.rule,
        ties=arguments.ties,
        by=arguments.by,
        raters=arguments.raters,
        statistics=arguments.statistic,
        examples=arguments.examples or 0,
        seed=arguments.seed,
    )
