"""``panelbench stats contrast FILE --panels A,B``: two panels, say crowd and experts, on the same items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.stats.cli import options

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimate import CellEstimate
    from analytics.stats.core.tables import RatingsTable


ABSENT = {"*": "no item is scored by annotators of either panel"}
SPEAKS_FOR = "these raters"
NO_SAMPLE = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats contrast ratings.csv --panels crowd,experts. The file says in a column 'panel'"
        " (or --panel NAME) who belongs where; the difference is the second panel's mean less the first's."
    )
    parser.add_argument("--panels", type=options.names, required=True, metavar="A,B", help="the two panels")
    parser.add_argument("--panel", metavar="NAME", default="panel", help="the column of the panel (default: panel)")


def names() -> tuple[str, ...]:
    """What ``--statistic`` may ask for."""
    return ("panel_difference", "panel_spearman")


def run(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Mean difference and rank correlation of the two panels' item means."""
    from analytics.stats.core.tables import Problem, RatingsTable, TableError
    from analytics.stats.judge.differences import between_panels

    column = arguments.panel
    if len(arguments.panels) != 2 or len(set(arguments.panels)) < 2:
        raise TableError([Problem(None, "name two panels: --panels A,B")])
    if column not in table.frame:
        raise TableError([Problem(None, f"the column {column!r} is missing: it says who belongs to which panel")])
    known = set(table.frame[column].astype(str))
    if strangers := [name for name in arguments.panels if name not in known]:
        raise TableError([Problem(None, f"no panel is called {name!r} (given by --panels)") for name in strangers])
    frame = table.frame.assign(panel=table.frame[column].astype(str))
    chosen = RatingsTable(frame, table.scales, table.notes)
    if arguments.raters is not None:
        chosen = chosen.only(rater=arguments.raters)
    return between_panels(
        chosen,
        *arguments.panels,
        by=arguments.by,
        resamples=arguments.bootstrap,
        seed=arguments.seed,
        raters_as=arguments.raters_as,
    )
