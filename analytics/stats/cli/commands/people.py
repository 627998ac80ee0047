"""Subcommands of ``panelbench stats`` about people and rankings: agreement, contrasts, reference labels, stability."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.stats.cli import options
from analytics.stats.cli.options import Subcommand
from analytics.stats.core.identifiers import normal_identifier

if TYPE_CHECKING:
    import argparse

    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.tables import RatingsTable


# --- agreement -------------------------------------------------------------------------------------------------------


def _configure_agreement(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.add_argument(
        "--interval", choices=("default", "percentile", "bca"), default="default", help="kind of bootstrap interval"
    )
    parser.add_argument("--leave-one-out", action="store_true", help="also every coefficient without each annotator")
    what = "all: Cohen's kappa of every two raters, also of more than 24 (default: few, then their mean alone)"
    parser.add_argument("--pairs", choices=("few", "all"), default="few", help=what)


def _statistics_agreement() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.agreement.rater_agreement import APPLICABILITY, STATISTICS

    return (*STATISTICS, *APPLICABILITY.values())


def _run_agreement(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Every agreement statistic of every cell."""
    from analytics.stats.agreement.pairwise import PAIRS_LEFT_OUT
    from analytics.stats.agreement.rater_agreement import agreement_report
    from analytics.stats.core.tables import TableError, TableProblem

    if arguments.positional and arguments.leave_one_out:
        raise TableError([TableProblem(None, "--leave-one-out leaves out persons: anonymous slots are none")])
    estimates = agreement_report(
        table,
        by=arguments.by,
        statistics=arguments.statistic,
        raters=arguments.raters,
        positional=arguments.positional,
        pool=arguments.pool,
        bootstrap=arguments.bootstrap,
        seed=arguments.seed,
        interval=arguments.interval,
        leave_one_out=arguments.leave_one_out,
        pairs=arguments.pairs,
        raters_as=arguments.raters_as,
    )
    # The remark names the parameter of the API.
    return [
        replace(row, estimate=row.estimate.with_(note=row.estimate.note.replace("pairs=all", "--pairs all")))
        if row.estimate.note and PAIRS_LEFT_OUT in row.estimate.note
        else row
        for row in estimates
    ]


# --- criteria --------------------------------------------------------------------------------------------------------


def _configure_criteria(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats criteria ratings.csv --by language. Each row is a pair of criteria: Spearman's"
        " correlation of the items' panel means. Criteria that always move together measure one thing."
    )


def _statistics_criteria() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    return ("criteria_spearman",)


def _run_criteria(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Spearman's correlation of every pair of criteria."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.judge.differences import between_criteria

    if table.frame["criterion"].nunique() < 2:
        raise TableError([TableProblem(None, "the file has one criterion: there is nothing to correlate it with")])
    chosen = table if arguments.raters is None else table.only(rater=arguments.raters)
    by = tuple(column for column in arguments.by if column != "criterion")
    return between_criteria(chosen, by=by, resamples=arguments.bootstrap, seed=arguments.seed,
                            raters_as=arguments.raters_as)  # fmt: skip


# --- contrast --------------------------------------------------------------------------------------------------------


def _configure_contrast(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats contrast ratings.csv --panels crowd,experts. The file says in a column 'panel'"
        " (or --panel NAME) who belongs where; the difference is the second panel's mean less the first's."
    )
    parser.add_argument("--panels", type=options.name_list, required=True, metavar="A,B", help="the two panels")
    parser.add_argument("--panel", metavar="NAME", default="panel", help="the column of the panel (default: panel)")


def _statistics_contrast() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    return ("panel_difference", "panel_spearman")


def _run_contrast(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Mean difference and rank correlation of the two panels' item means."""
    from analytics.stats.core.tables import RatingsTable, TableError, TableProblem
    from analytics.stats.judge.differences import between_panels

    column = arguments.panel
    if len(arguments.panels) != 2 or len(set(arguments.panels)) < 2:
        raise TableError([TableProblem(None, "name two panels: --panels A,B")])
    if column not in table.frame:
        raise TableError([TableProblem(None, f"the column {column!r} is missing: it says who belongs to which panel")])
    known = set(table.frame[column].astype(str))
    if strangers := [name for name in arguments.panels if name not in known]:
        raise TableError([TableProblem(None, f"no panel is called {name!r} (given by --panels)") for name in strangers])
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


# --- reference -------------------------------------------------------------------------------------------------------


def _configure_reference(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats reference ratings.csv --rule mode --ties median. --statistic reference_label "
        "lists the label of every item, --statistic confusion each annotator's confusions (--rule dawid_skene)."
    )
    parser.add_argument(
        "--rule",
        choices=("mode", "median", "mean", "dawid_skene", "adjudicated", "adjudicated_first"),
        default="mode",
        help="how the label is settled (default: mode)",
    )
    options.add_ties(parser)
    parser.add_argument(
        "--examples", type=options.count, metavar="N", help="also N items of each label, drawn with --seed, to show a"
        " judge in its prompt; it must not judge them afterwards"
    )  # fmt: skip


def _statistics_reference() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.judge.reference import STATISTICS

    return (*STATISTICS, "score_share")


def _run_reference(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Settled and excluded items, the share of each label, and with Dawid-Skene each annotator."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.judge.reference import reference_report

    if arguments.pool:
        raise TableError([TableProblem(None, "labels are settled criterion by criterion: leave --pool out")])
    if arguments.positional and arguments.rule == "dawid_skene":
        raise TableError([TableProblem(None, "dawid_skene is about persons: anonymous slots are none")])
    if arguments.rule == "mean" and any(not s.has_order for s in table.scales.values()):
        raise TableError([TableProblem(None, "--rule mean: a nominal scale has no mean; take mode or dawid_skene")])
    shares: list[CellEstimate] = []
    if "score_share" in (arguments.statistic or ()):
        from analytics.stats.judge.agreement_classes import score_share_report

        chosen = table if arguments.raters is None else table.only(rater=arguments.raters)
        shares = score_share_report(chosen, by=arguments.by)
    return shares + reference_report(
        table,
        rule=arguments.rule,
        ties=arguments.ties,
        by=arguments.by,
        raters=arguments.raters,
        statistics=arguments.statistic,
        examples=arguments.examples or 0,
        seed=arguments.seed,
    )


# --- stability -------------------------------------------------------------------------------------------------------


def _configure_stability(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.add_argument(
        "--judge", type=normal_identifier, metavar="RATER", help="whose scores rank (default: the panel's mean)"
    )


def _statistics_stability() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.ranking.stability import STATISTICS

    return STATISTICS


def _run_stability(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Means, then tau-b, Spearman and inversions of every pair of languages."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.ranking.stability import stability_report

    absent = [name for name in ("language", "generator") if not table.frame[name].notna().any()]
    if absent:
        raise TableError(
            [TableProblem(None, f"the column {name!r} is missing or empty: rankings need it") for name in absent]
        )
    chosen = table if arguments.raters is None else table.only(rater=[*arguments.raters, arguments.judge])
    if arguments.judge and arguments.raters_as == "sample":
        raise TableError([TableProblem(None, "--raters-as sample: with --judge one judge ranks, and no panel")])
    return stability_report(
        chosen,
        raters_as=arguments.raters_as,
        judge=arguments.judge,
        by=arguments.by,
        pool=arguments.pool,
        bootstrap=arguments.bootstrap,
        seed=arguments.seed,
    )


# --- compare ---------------------------------------------------------------------------------------------------------


def _configure_compare(parser: argparse.ArgumentParser) -> None:
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


def _statistics_compare() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.judge.differences import STATISTICS

    return ("mcnemar", *STATISTICS)


def _run_compare(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """McNemar's test in four variants, or differences of statistics."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.judge.mcnemar import mcnemar_report

    if arguments.between is not None:
        return _differences(arguments, table)
    if arguments.raters_as == "sample":
        raise TableError([TableProblem(None, "--raters-as sample: McNemar's test is about the two raters that are"
                                        " named; with --between the panels of both sides can be a"
                                        " sample")])  # fmt: skip
    if strangers := [name for name in arguments.statistic or () if name != "mcnemar"]:
        raise TableError(
            [TableProblem(None, f"{strangers[0]} is compared between two sides: add --between COLUMN=A,B")]
        )
    if arguments.positional:
        raise TableError([TableProblem(None, "two raters are compared as persons: anonymous slots are none")])
    if arguments.raters is None or len(arguments.raters) != 2 or len(set(arguments.raters)) < 2:
        raise TableError([TableProblem(None, "name two raters: --raters A,B")])
    return mcnemar_report(table, raters=arguments.raters, by=arguments.by, truth=arguments.truth, pool=arguments.pool)


def _differences(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    from analytics.stats.agreement import rater_agreement
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.judge import differences

    column, values = arguments.between
    statistics = tuple(name for name in arguments.statistic or () if name != "mcnemar")
    if not statistics:
        raise TableError([TableProblem(None, "name what to compare: --statistic krippendorff_alpha,mae")])
    judges = arguments.judge or ()
    known = (
        set(table.frame["rater"] if column == "judge" else table.frame[column].dropna().astype(str))
        if (column == "judge" or column in table.frame)
        else set()
    )
    if absent := [value for value in values if value not in known]:
        raise TableError([TableProblem(None, f"--between: no {column} is called {absent[0]!r}")])
    if column != "judge" and len(judges) > 1:
        raise TableError([TableProblem(None, "one --judge stands on both sides; two judges are --between judge=A,B")])
    needs_judge = [name for name in statistics if name not in rater_agreement.STATISTICS]
    if needs_judge and column != "judge" and not judges:
        raise TableError([TableProblem(None, f"{needs_judge[0]} is about a judge: add --judge")])
    question = differences.DifferenceQuestion(
        column=column, values=values, statistics=statistics, judge=judges[0] if judges else None,
        by=tuple(arguments.by), reference=arguments.reference, raters=arguments.raters,
        pool=arguments.pool, seed=arguments.seed, raters_as=arguments.raters_as,
    )  # fmt: skip
    return differences.difference_report(table, question)


# --- the table -------------------------------------------------------------------------------------------------------
SUBCOMMANDS = {
    "agreement": Subcommand(
        configure=_configure_agreement,
        statistics=_statistics_agreement,
        run=_run_agreement,
        absent={
            "*": "no rating is by an annotator or by one of --raters",
            "applicability_agreement": "nobody said that a criterion does not apply",
            "applicability_alpha": "nobody said that a criterion does not apply",
            "applicability_ac": "nobody said that a criterion does not apply",
        },
        speaks_for="these raters",
        no_sample="",
    ),
    "criteria": Subcommand(
        configure=_configure_criteria,
        statistics=_statistics_criteria,
        run=_run_criteria,
        absent={"*": "it needs two criteria, scored with numbers by annotators on the same items"},
        speaks_for="these raters",
        no_sample="",
    ),
    "contrast": Subcommand(
        configure=_configure_contrast,
        statistics=_statistics_contrast,
        run=_run_contrast,
        absent={"*": "no item is scored by annotators of either panel"},
        speaks_for="these raters",
        no_sample="",
    ),
    "reference": Subcommand(
        configure=_configure_reference,
        statistics=_statistics_reference,
        run=_run_reference,
        absent={
            "*": "no item is scored by an annotator or an adjudicator",
            "reference_excluded": "every item gets a label",
            "score_share": "the scale has more points than are listed",
            "label_share": "the scale has more than 101 points",
            "annotator_accuracy": "it needs --rule dawid_skene",
            "confusion": "it needs --rule dawid_skene",
            "reference_label": "no item gets a label",
            "few_shot_example": "it needs --examples N, and labels",
        },
        speaks_for="these raters",
        no_sample="labels are what these annotators settled; other annotators would settle others",
    ),
    "stability": Subcommand(
        configure=_configure_stability,
        statistics=_statistics_stability,
        run=_run_stability,
        absent={
            "*": "it needs scores in two languages",
            "mean": "nobody scored an item that has a language and a generator",
            "confirmed_inversions": "it needs two languages that rank the generators, and resampling",
        },
        speaks_for="these raters",
        no_sample="",
    ),
    "compare": Subcommand(
        configure=_configure_compare,
        statistics=_statistics_compare,
        run=_run_compare,
        absent={"*": "no cell has both sides, or neither rater scored an item"},
        speaks_for="these raters",
        no_sample="",
    ),
}
