"""``panelbench stats calibration FILE --judge RATER``: a judge against the panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {
    "*": "it needs a short list of labels, and scores on them",
    "ceiling_mae": "a nominal scale has no order and no distances",
    "ceiling_pearson": "a nominal scale has no order and no distances",
    "panel_given_judge": "no item has both a judge score and human scores",
}
SPEAKS_FOR = "these raters"
NO_SAMPLE = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = "--statistic confusion, class_share or score_share shows lists that are otherwise left out."
    options.add_judge(parser, "the rater to set against the panel")
    options.add_reference(parser, ("dawid_skene", "adjudicated_first"))
    options.add_ties(parser)


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    from analytics.stats.judge import calibration

    return calibration.STATISTICS


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Errors, accuracies and correlations, then the human ceiling and the reliability table."""
    from analytics.stats.judge import calibration

    shared = {"judge": arguments.judge, "by": arguments.by, "raters": arguments.raters, "pool": arguments.pool}
    sampling = {"bootstrap": arguments.bootstrap, "seed": arguments.seed}
    wanted = arguments.statistic
    if arguments.reference is None:
        _refuse_a_mode_that_leaves_out_much(table, {**shared, "ties": arguments.ties})
    return [
        *calibration.calibration_report(
            table,
            **shared,
            **sampling,
            reference=arguments.reference,
            ties=arguments.ties,
            statistics=wanted,
            raters_as=arguments.raters_as,
        ),
        *calibration.beside_humans(table, **shared, **sampling, statistics=wanted),
    ]


def _refuse_a_mode_that_leaves_out_much(table: RatingsTable, asked: dict[str, Any]) -> None:
    """The default rule drops the items on which the panel is tied: from a tenth on somebody has to choose it."""
    from analytics.stats.core.tables import Problem, TableError
    from analytics.stats.judge import calibration

    problems = []
    for row in calibration.calibration_report(table, **asked, bootstrap=0, statistics=["without_reference"]):
        left_out = row.estimate.value or 0.0
        n = left_out + row.estimate.n_items
        if row.reference == "mode" and left_out and left_out / n >= calibration.SHARE_WITHOUT_MODE:
            where = " / ".join(part for part in row.cell.values() if part)
            message = (
                f"{where + ': ' if where else ''}the panel has no mode on {left_out:.0f} of {n:.0f} judged items "
                f"({left_out / n:.0%}), which would be left out. Name the rule: --reference each keeps them (so do "
                "median and mean, where the scale has an order), --reference mode leaves them out"
            )
            problems.append(Problem(None, message))
    if problems:
        raise TableError(problems)
