"""Subcommands of ``panelbench stats`` about judges beside the panel."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from analytics.stats.cli import options
from analytics.stats.cli.options import Subcommand
from analytics.stats.core.identifiers import normal_identifier

if TYPE_CHECKING:
    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.tables import RatingsTable


# --- calibration -----------------------------------------------------------------------------------------------------


def _configure_calibration(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = "--statistic confusion, class_share or score_share shows lists that are otherwise left out."
    what = "the rater to set against the panel"
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--judge", type=normal_identifier, metavar="RATER", help=what)
    chosen.add_argument(
        "--measure", type=options.name_list, metavar="COLUMN[,COLUMN]",
        help="a column with a number for each item, against the panel's means, or against a second one: correlations",
    )  # fmt: skip
    options.add_reference(parser, ("dawid_skene", "adjudicated", "adjudicated_first"))
    options.add_ties(parser)


def _statistics_calibration() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.judge import calibration

    return calibration.STATISTICS


def _run_calibration(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Errors, accuracies and correlations, then the human ceiling and the reliability table."""
    from analytics.stats.judge import calibration

    if arguments.measure:
        return _on_measures(arguments, table)
    shared = {"judge": arguments.judge, "by": arguments.by, "raters": arguments.raters, "pool": arguments.pool}
    sampling = {"bootstrap": arguments.bootstrap, "seed": arguments.seed}
    statistics = arguments.statistic
    if arguments.reference is None:
        _refuse_a_mode_that_leaves_out_much(table, {**shared, "ties": arguments.ties})
    return [
        *calibration.calibration_report(
            table,
            **shared,
            **sampling,
            reference=arguments.reference,
            ties=arguments.ties,
            statistics=statistics,
            raters_as=arguments.raters_as,
        ),
        *calibration.beside_humans(table, **shared, **sampling, statistics=statistics),
    ]


def _on_measures(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Correlations of one column of the file with the panel, or with another column."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.judge import measures

    first, *others = arguments.measure
    if absent := [name for name in arguments.measure if name not in table.frame]:
        raise TableError([TableProblem(None, f"--measure: the file has no column {absent[0]!r}")])
    if len(others) > 1:
        raise TableError([TableProblem(None, "--measure takes one column, or two that are compared")])
    asked = arguments.statistic or measures.STATISTICS
    if strangers := [name for name in asked if name not in measures.STATISTICS]:
        raise TableError([TableProblem(None, f"{strangers[0]} is not a correlation: leave --measure out")])
    other = others[0] if others else None
    how = {"by": arguments.by, "pool": arguments.pool, "bootstrap": arguments.bootstrap, "seed": arguments.seed}
    return measures.measure_report(table, measure=first, other=other, is_measure=bool(others), statistics=asked, **how)


def _refuse_a_mode_that_leaves_out_much(table: RatingsTable, options_given: dict[str, Any]) -> None:
    """The default rule drops the items on which the panel is tied: from a tenth on somebody has to choose it."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.judge import calibration

    problems = []
    for row in calibration.calibration_report(table, **options_given, bootstrap=0, statistics=["without_reference"]):
        left_out = row.estimate.value or 0.0
        n = left_out + row.estimate.n_items
        if row.reference == "mode" and left_out and left_out / n >= calibration.SHARE_WITHOUT_MODE:
            where = " / ".join(part for part in row.cell.values() if part)
            message = (
                f"{where + ': ' if where else ''}the panel has no mode on {left_out:.0f} of {n:.0f} judged items "
                f"({left_out / n:.0%}), which would be left out. Name the rule: --reference each keeps them (so do "
                "median and mean, where the scale has an order), --reference mode leaves them out"
            )
            problems.append(TableProblem(None, message))
    if problems:
        raise TableError(problems)


# --- alt-test --------------------------------------------------------------------------------------------------------


class _MeasureOrColumn(argparse.Action):
    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: str | None = None
    ) -> None:
        setattr(namespace, "measure" if values in ("accuracy", "rmse") else "column_score", values)


def _configure_alt_test(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    options.add_judge(parser, "the rater to set against each annotator")
    options.add_epsilon(parser, "how much worse a cheaper judge may be: .2 experts, .15, .1 crowd", default=0.15)
    parser.set_defaults(column_score=None, measure=None)
    # The shared --score names a column; here the two measures come first, and any other name is still the column's.
    parser.conflict_handler = "resolve"
    parser.add_argument_group("measure").add_argument(
        "--score",
        action=_MeasureOrColumn,
        metavar="accuracy|rmse",
        help="agreement with the others (default: accuracy if nominal, else rmse); another name is the score column",
    )


def _statistics_alt_test() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.judge.alt_test import STATISTICS

    return STATISTICS


def _run_alt_test(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """omega and rho of every cell, then each annotator."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.judge.alt_test import ANONYMOUS, alt_test_report

    if arguments.positional:
        raise TableError([TableProblem(None, ANONYMOUS)])
    return alt_test_report(
        table,
        raters_as=arguments.raters_as,
        judge=arguments.judge,
        by=arguments.by,
        epsilon=arguments.epsilon,
        score=arguments.measure,
        min_items=arguments.min_items,
        raters=arguments.raters,
        pool=arguments.pool,
        bootstrap=arguments.bootstrap,
        seed=arguments.seed,
    )


# --- audit -----------------------------------------------------------------------------------------------------------


def _configure_audit(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats audit ratings.csv --judge gpt --length words --against gpt-shuffled. Repeats "
        "are rows with a column 'repeat'; a judge's row without a score is an unreadable reply."
    )
    options.add_judge(parser, "the judge to audit")
    options.add_length(parser)
    parser.add_argument(
        "--against",
        type=options.name_list,
        default=(),
        metavar="RATER,...",
        help="the same judge with another prompt or text",
    )
    parser.add_argument(
        "--family", type=options.assignment, action="append", default=[], metavar="JUDGE=FAMILY",
        help="the family of a judge, as the column generator_family (or generator) names it; say it for each judge",
    )  # fmt: skip


def _statistics_audit() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.judge.soundness import AUDITS

    return AUDITS


def _run_audit(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Repeats, use of the scale, unreadable replies, and what the options ask for."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.judge.soundness import audit_report

    known = set(table.frame["rater"])
    named = [("against", name) for name in arguments.against] + [("family", name) for name, _ in arguments.family]
    if strangers := [(option, name) for option, name in named if name not in known]:
        raise TableError([TableProblem(None, f"no rater is called {name!r} (given by --{o})") for o, name in strangers])
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


# --- equivalence -----------------------------------------------------------------------------------------------------


def _configure_equivalence(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats equivalence ratings.csv --raters gpt-native,gpt-english --margin 0.1. p below "
        ".05 says that the mean difference (first less second) is smaller than the margin; its interval is one of"
        " 90 %%."
    )
    parser.add_argument(
        "--margin", type=options.positive, default=0.05, metavar="M", help="largest difference that counts as none"
    )


def _statistics_equivalence() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    return ("tost",)


def _run_equivalence(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Two one-sided tests of the mean paired difference."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.judge.soundness import equivalence_report

    if arguments.raters is None or len(arguments.raters) != 2 or len(set(arguments.raters)) < 2:
        raise TableError([TableProblem(None, "name two raters: --raters A,B")])
    return equivalence_report(
        table, raters=arguments.raters, by=arguments.by, margin=arguments.margin, pool=arguments.pool
    )


# --- severity --------------------------------------------------------------------------------------------------------


def _configure_severity(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats severity ratings.csv --judge gpt --pivot en. The shift is in logits, positive "
        "where the judge is more lenient than in the pivot language on answers the panel finds equally good."
    )
    options.add_judge(parser, "the judge")
    options.add_pivot(parser, "the first")


def _statistics_severity() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.judge.soundness import SEVERITY

    return SEVERITY


def _run_severity(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Shift of each language, and tests of a uniform and of a changing severity."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.judge.soundness import severity_report

    if not table.frame["language"].notna().any():
        raise TableError([TableProblem(None, "the column 'language' is missing or empty: languages are compared here")])
    if arguments.pivot and arguments.pivot not in set(table.frame["language"]):
        raise TableError([TableProblem(None, f"no score is in the language {arguments.pivot!r} (given by --pivot)")])
    return severity_report(
        table,
        judge=arguments.judge,
        by=arguments.by,
        raters=arguments.raters,
        pivot=arguments.pivot,
        pool=arguments.pool,
    )


# --- jury ------------------------------------------------------------------------------------------------------------


def _configure_jury(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.epilog = (
        "Example: panelbench stats jury ratings.csv --judge gpt,claude,mistral --rule majority --statistic mae. "
        "Rows of the jury come first, then those of each member; a tied majority gives no label and is counted."
    )
    options.add_judges(parser, "the members, two or more", required=True)
    options.add_jury_rule(parser)
    options.add_reference(parser)


def _statistics_jury() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.judge.soundness import JURY

    return JURY


def _run_jury(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """The share left without a label, then calibration of the jury and of each member."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.judge.soundness import jury_report

    if len(set(arguments.judge)) < 2:
        raise TableError([TableProblem(None, "a jury has two judges or more: --judge A,B")])
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


# --- consistency -----------------------------------------------------------------------------------------------------


def _configure_consistency(parser: argparse.ArgumentParser) -> None:
    """Options of this subcommand alone."""
    parser.add_argument(
        "--judge", type=normal_identifier, metavar="RATER", help="the judge (default: every judge in turn)"
    )
    options.add_pivot(parser, "en")
    parser.add_argument("--jury", type=options.name_list, metavar="RATER,...", help="also the kappa of these judges'"
                        " jury, of the least consistent of them, and the difference (S1)")  # fmt: skip
    options.add_jury_rule(parser)
    parser.add_argument("--gap", type=options.name_list, metavar="A,B", help="also kappa on criterion A less that on B")


def _statistics_consistency() -> tuple[str, ...]:
    """The names that ``--statistic`` accepts."""
    from analytics.stats.judge.consistency import STATISTICS

    return STATISTICS


def _run_consistency(arguments: argparse.Namespace, table: RatingsTable) -> list[CellEstimate]:
    """Fleiss's kappa over languages, Cohen's against the pivot, means and shifts."""
    from analytics.stats.core.tables import TableError, TableProblem
    from analytics.stats.judge.consistency import PIVOT, beside, consistency_report

    if not table.frame["language"].notna().any():
        raise TableError(
            [TableProblem(None, "the column 'language' is missing or empty: languages are the raters here")]
        )
    if arguments.pivot and arguments.pivot not in set(table.frame["language"]):
        raise TableError([TableProblem(None, f"no score is in the language {arguments.pivot!r} (given by --pivot)")])
    known = set(table.frame["rater"])
    if strangers := [name for name in arguments.jury or () if name not in known]:
        raise TableError([TableProblem(None, f"no rater is called {strangers[0]!r} (given by --jury)")])
    if arguments.jury and len(set(arguments.jury)) < 2:
        raise TableError([TableProblem(None, "a jury has two judges or more: --jury A,B")])
    gap = arguments.gap or ()
    if gap and (len(gap) != 2 or len(set(gap)) < 2):
        raise TableError([TableProblem(None, "name two criteria: --gap A,B")])
    if absent := [name for name in gap if name not in table.scales]:
        raise TableError([TableProblem(None, f"no criterion is called {absent[0]!r} (given by --gap)")])
    chosen = table if arguments.raters is None else table.only(rater=arguments.raters)
    rows = consistency_report(
        chosen,
        judge=arguments.judge,
        pivot=arguments.pivot or PIVOT,
        by=arguments.by,
        pool=arguments.pool,
        statistics=arguments.statistic,
        bootstrap=arguments.bootstrap,
        seed=arguments.seed,
    )
    return [*rows, *beside(chosen, judge=arguments.judge, jury=arguments.jury, rule=arguments.rule, gap=arguments.gap,
                           statistics=arguments.statistic)]  # fmt: skip


# --- the table -------------------------------------------------------------------------------------------------------
SUBCOMMANDS = {
    "calibration": Subcommand(
        configure=_configure_calibration,
        statistics=_statistics_calibration,
        run=_run_calibration,
        absent={
            "*": "it needs a short list of labels, and scores on them",
            "ceiling_mae": "a nominal scale has no order and no distances",
            "ceiling_pearson": "a nominal scale has no order and no distances",
            "panel_given_judge": "no item has both a judge score and human scores",
        },
        speaks_for="these raters",
        no_sample="",
    ),
    "alt-test": Subcommand(
        configure=_configure_alt_test,
        statistics=_statistics_alt_test,
        run=_run_alt_test,
        absent={"*": "no item is scored by the judge or by an annotator"},
        speaks_for="these raters",
        no_sample="",
    ),
    "audit": Subcommand(
        configure=_configure_audit,
        statistics=_statistics_audit,
        run=_run_audit,
        absent={
            "*": "the judge scored nothing",
            "verbosity": "it needs --length COLUMN",
            "self_preference": "it needs --family JUDGE=FAMILY, twice or more",
            "perturbation": "it needs --against RATER,...",
            "condition_mae": "it needs --against RATER,...",
            "condition_shift": "it needs --against RATER,...",
            "repeat_sd": "a nominal scale has no distances",
        },
        speaks_for="these raters",
        no_sample="an audit is about one judge, not about a panel",
    ),
    "equivalence": Subcommand(
        configure=_configure_equivalence,
        statistics=_statistics_equivalence,
        run=_run_equivalence,
        absent={"*": "neither rater scored an item"},
        speaks_for="these raters",
        no_sample="it is about the two raters that are named",
    ),
    "severity": Subcommand(
        configure=_configure_severity,
        statistics=_statistics_severity,
        run=_run_severity,
        absent={"*": "no item with a language has both a judge score and human scores"},
        speaks_for="these raters",
        no_sample="regressed panel means allow for few annotators already; leaving one out is not simulated",
    ),
    "jury": Subcommand(
        configure=_configure_jury,
        statistics=_statistics_jury,
        run=_run_jury,
        absent={"*": "none of the judges scored an item"},
        speaks_for="these raters",
        no_sample="",
    ),
    "consistency": Subcommand(
        configure=_configure_consistency,
        statistics=_statistics_consistency,
        run=_run_consistency,
        absent={
            "*": "the judge scored nothing that has a language",
            "mean": "it needs numbers that the judge gave to items with a language",
            "kappa_against_level": "it needs two judges whose scores are numbers in several languages",
            "language_shift": "it needs numbers that the judge gave in the pivot language and in another",
        },
        speaks_for="this judge",
        no_sample="languages stand as the raters of one judge here, and they are not a sample",
    ),
}
