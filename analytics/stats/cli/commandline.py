"""``panelbench stats``: the numbers of a plain file of ratings, without a server and without Django.

``main(argv)`` returns the exit status: 0, or 2 when the file or the options are bad, with one line per problem on
standard error (``FILE:LINE: what is wrong``). ``python -m analytics.stats.cli.commandline agreement FILE`` runs it too.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from analytics.stats.cli import options
from analytics.stats.core.identifiers import normal_identifier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.stats.cli.files import Lines
    from analytics.stats.cli.options import Subcommand
    from analytics.stats.core.estimates import CellEstimate
    from analytics.stats.core.tables import RatingsTable, TableProblem

SUBCOMMANDS = {
    "agreement": ("people", "how far raters agree: percentages, kappas, alpha, AC, ICC, Verdict Confidence"),
    "calibration": ("judges", "a judge against the panel: error, bias, accuracy, correlation"),
    "alt-test": ("judges", "the alternative annotator test: may a judge replace an annotator?"),
    "stability": ("people", "how far rankings of generators hold across languages"),
    "consistency": ("judges", "languages as raters of parallel items"),
    "correct": ("labels", "means of a judge corrected with a few human labels"),
    "plan": ("labels", "how many labels an interval of a given width takes"),
    "surface": ("texts", "surface metrics of dialogues"),
    "reference": ("people", "reference labels: what a rule settles, excludes and says of annotators"),
    "criteria": ("people", "do criteria measure different things? rank correlation of each pair"),
    "contrast": ("people", "two panels on the same items: difference and rank correlation"),
    "rationales": ("texts", "rationales of people and judges: length, variety, language"),
    "audit": ("judges", "is a judge sound? repeats, scale use, verbosity, own family, changed prompts or texts"),
    "equivalence": ("judges", "two raters on the same items: equal up to a margin? two one-sided tests"),
    "severity": ("judges", "is a judge more lenient in one language? differential item functioning"),
    "conformal": ("labels", "how far the panel may lie from a judge's score, and which items people should see"),
    "jury": ("judges", "several judges as one rater, beside the panel"),
    "recovery": ("texts", "does a judge recover the parameters that dialogues were generated from?"),
    "gate": ("labels", "may this judge be used here: alone, with correction, for ranking only, or not?"),
    "compare": (
        "people",
        "two raters on the same items: McNemar; any statistic between two languages, judges or panels",
    ),
}
"""Module of each subcommand, and what its help says."""
COLUMN_OPTIONS = ("item", "rater", "criterion", "score", "language", "generator", "cluster")


def run_command(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    arguments = _parser(words).parse_args(_with_negative_points(words))
    from analytics.stats.cli.files import BrokenRowsError

    try:
        return _run(arguments, words)
    except BrokenRowsError as error:
        _complain(f"{arguments.file}:{line}: {message}" for line, message in error.broken)
    except OSError as error:
        _complain([f"{arguments.file}: {error.strerror}"])
    return 2


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the options, as ``_run`` does of a file."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (--help shows the options)\n")


def _with_negative_points(argv: Sequence[str]) -> list[str]:
    """``--scale -1,0,1`` as ``--scale=-1,0,1``: else the points pass for an option."""
    words = list(argv)
    for place in range(len(words) - 1, 0, -1):
        if words[place - 1] in ("--scale", "--missing") and words[place][:1] == "-" and words[place][1:2] != "-":
            words[place - 1 : place + 1] = [f"{words[place - 1]}={words[place]}"]
    return words


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """All subcommands by name; only the one that is called is imported."""
    parser = _Parser(prog="panelbench stats", description="Statistics of a plain file of ratings.")
    subparsers = parser.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND")
    called = next((word for word in argv if not word.startswith("-")), None)
    for name, (_module, line) in SUBCOMMANDS.items():
        subparser = subparsers.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
        if name == called:
            _add_shared_options(subparser)
            subcommand_named(name).configure(subparser)
    return parser


def subcommand_named(name: str) -> Subcommand:
    """One subcommand; its module is imported when it is asked for."""
    subcommand: Subcommand = import_module(f"analytics.stats.cli.commands.{SUBCOMMANDS[name][0]}").SUBCOMMANDS[name]
    return subcommand


def _add_shared_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="ratings, one a row: .csv, .tsv, .jsonl or .parquet")
    columns = parser.add_argument_group("columns of the file")
    for name in COLUMN_OPTIONS:
        columns.add_argument(
            f"--{name}", type=normal_identifier, metavar="NAME", dest=f"column_{name}", help=f"the column of the {name}"
        )
    scores = parser.add_argument_group("scores and raters")
    scores.add_argument("--level", choices=("nominal", "ordinal", "interval", "ratio"), help="level of measurement")
    scores.add_argument("--scale", type=options.name_list, metavar="0,1,2", help="all points of the scale, in order")
    scores.add_argument("--missing", type=options.name_list, metavar="NA,-1", help="words in the score column that mean"
                        " no score (default: NA, NaN, nan, null, NULL, <NA>, #N/A); an empty one always"
                        " does")  # fmt: skip
    scores.add_argument("--allow-values", action="store_true", help="take every value that occurs for a score, also -1,"
                        " 9 or 99 far from the others and labels that differ only in case or spaces")  # fmt: skip
    scores.add_argument("--raters", type=options.name_list, metavar="A,B,C", help="only these raters")
    scores.add_argument("--positional", action="store_true", help="raters are anonymous slots, not persons")
    scores.add_argument("--raters-as", choices=("these", "sample"), default="these", help="these: intervals speak for"
                        " these raters; sample: for raters like these, of whom these are a sample")  # fmt: skip
    scores.add_argument(
        "--broken-rationale",
        type=normal_identifier,
        metavar="COLUMN",
        help="leave out ratings with true in this column",
    )
    scores.add_argument(
        "--critical", type=normal_identifier, metavar="COLUMN",
        help="leave out items and criteria that anybody marks true in this column, and"
        " what is then left with one rating"
    )  # fmt: skip
    cells = parser.add_argument_group("cells")
    cells.add_argument("--by", type=options.name_list, metavar="COLUMN,...", help="one cell per value of these columns"
                       " (default: language,criterion)")  # fmt: skip
    cells.add_argument("--pool", action="store_true", help="pool the criteria of a cell")
    cells.add_argument(
        "--min-items", type=options.whole_count, default=30, metavar="N", help="fewer items than this are remarked on"
    )
    cells.add_argument("--statistic", type=options.name_list, metavar="NAME,...", help="only these statistics")
    numbers = parser.add_argument_group("intervals and output")
    numbers.add_argument(
        "--bootstrap",
        type=options.resamples,
        default=2000,
        metavar="B",
        help="resamples, 200 or more; 0: closed form only",
    )
    numbers.add_argument("--seed", type=options.whole_count, default=0, help="seed of the random numbers")
    numbers.add_argument(
        "--format", choices=("table", "json", "csv"), default="table", help="how to print the estimates"
    )


def _run(arguments: argparse.Namespace, argv: Sequence[str]) -> int:
    from analytics.stats.cli.files import RatingsFile, rendered_estimates
    from analytics.stats.core.resampling import saying_whom
    from analytics.stats.core.tables import TableError

    source, subcommand, lines = RatingsFile(arguments.file), subcommand_named(arguments.subcommand), None
    try:
        _refuse_unknown_statistics(arguments, subcommand)
        _refuse_a_sample(arguments, subcommand)
        frame, lines = source.frame()
        table = subcommand.read(arguments, frame) if subcommand.read else _table(frame, arguments)
        del frame
        estimates = subcommand.run(arguments, table)
    except TableError as error:
        _complain(_located(arguments.file, problem, lines) for problem in error.problems)
        return 2
    statistics, few = arguments.statistic, arguments.min_items
    kept = [row.remarked(few) for row in estimates if statistics is None or row.estimate.statistic in statistics]
    kept = [saying_whom(row, subcommand.speaks_for) for row in kept]
    kept = [row.on_scale(_scale_of(table, row)) for row in kept]
    kept += _absent(kept, statistics or (), subcommand.absent)
    notes = [*getattr(table, "notes", ()), *([] if kept else [f"nothing to show: {subcommand.absent['*']}"])]
    _complain(f"{arguments.file}: note: {note}" for note in notes)
    # Write, and leave quietly when the reader (``| head``) has left.
    try:
        sys.stdout.write(rendered_estimates(kept, arguments.format, _provenance(arguments, argv, source.sha256)))
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _scale_of(table: Any, row: CellEstimate) -> str | None:
    """The scale an estimate rests on, in words; None for what is no rating."""
    if not hasattr(table, "scale_in_words"):
        return None
    named = row.cell.get("criterion", row.criterion)
    return str(table.scale_in_words(named or ("" if "" in table.scales else None))) or None


def _absent(shown: Sequence[CellEstimate], statistics: Sequence[str], reasons: Mapping[str, str]) -> list[CellEstimate]:
    """A row with the reason for each statistic that was asked for and that no cell has."""
    from analytics.stats.core.estimates import CellEstimate, Estimate

    there = {row.estimate.statistic for row in shown}
    return [
        CellEstimate(estimate=Estimate(statistic=name, value=None, reason=reasons.get(name, reasons["*"])))
        for name in dict.fromkeys(statistics) if name not in there
    ]  # fmt: skip


def _table(frame: Any, arguments: argparse.Namespace) -> RatingsTable:
    """The validated ratings table, and ``arguments.by`` settled on columns that exist."""
    from analytics.stats.cli.files import known_columns, renamed, with_normal_names
    from analytics.stats.core.tables import MISSING
    from analytics.stats.core.validation import ratings_table

    own = {name: getattr(arguments, f"column_{name}") for name in COLUMN_OPTIONS}
    named = {name: column for name, column in own.items() if column}
    frame = renamed(frame, named)
    if arguments.by is None:
        arguments.by = tuple(column for column in ("language", "criterion") if column in frame.columns)
    arguments.by = known_columns(frame, arguments.by, named)
    frame = with_normal_names(frame, arguments.by)
    table = ratings_table(
        frame, scales=_scales(arguments), level=arguments.level, judges=_judges(arguments),
        missing=MISSING if arguments.missing is None else arguments.missing, allow_values=arguments.allow_values,
    )  # fmt: skip
    _refuse_strangers(table, arguments)
    return _without_excluded(table, arguments)


def _without_excluded(table: RatingsTable, arguments: argparse.Namespace) -> RatingsTable:
    """The table without what --broken-rationale and --critical exclude, and a note that counts it."""
    from analytics.stats.core.tables import RatingsTable, TableError, TableProblem
    from analytics.stats.judge.reference import excluding

    named = {"broken-rationale": arguments.broken_rationale, "critical": arguments.critical}
    if not any(named.values()):
        return table
    absent = [(option, column) for option, column in named.items() if column and column not in table.frame]
    if absent:
        raise TableError(
            [TableProblem(None, f"the column {c!r} (given by --{option}) is missing") for option, c in absent]
        )
    kept, counted = excluding(table, broken_rationale=arguments.broken_rationale, critical=arguments.critical)
    note = (
        f"left out: {counted.broken_rationale} ratings with a broken rationale, {counted.critical} of items with a "
        f"critical mark, {counted.single} left alone; {counted.left} ratings are left"
    )
    return RatingsTable(kept.frame, kept.scales, (*kept.notes, note))


def _scales(arguments: argparse.Namespace) -> dict[str, Any]:
    from analytics.stats.core.scales import scale_of
    from analytics.stats.core.tables import TableError, TableProblem

    if arguments.scale is None:
        return {}
    try:
        return {"*": scale_of(arguments.scale, arguments.level)}
    except ValueError as error:
        raise TableError([TableProblem(None, f"--scale: {error}")]) from error


def _judges(arguments: argparse.Namespace) -> tuple[str, ...]:
    judge = getattr(arguments, "judge", None)
    between = getattr(arguments, "between", None)
    if between and between[0] == "judge":
        return tuple(dict.fromkeys((*(judge or ()), *between[1])))
    return () if not judge else (judge,) if isinstance(judge, str) else tuple(judge)


def _refuse_strangers(table: RatingsTable, arguments: argparse.Namespace) -> None:
    from analytics.stats.core.tables import TableError, TableProblem

    known = set(table.frame["rater"])
    named = [("raters", name) for name in arguments.raters or ()] + [("judge", name) for name in _judges(arguments)]
    unknown = [TableProblem(None, f"no rater is called {name!r} (given by --{option})")
               for option, name in named if name not in known]  # fmt: skip
    if unknown:
        raise TableError(unknown)


def _refuse_unknown_statistics(arguments: argparse.Namespace, subcommand: Subcommand) -> None:
    from analytics.stats.core.tables import TableError, TableProblem

    known = subcommand.statistics() if arguments.statistic else ()
    unknown = [name for name in arguments.statistic or () if name not in known]
    if unknown:
        raise TableError(
            [TableProblem(None, f"--statistic: {name!r} is not one of {', '.join(known)}") for name in unknown]
        )


def _refuse_a_sample(arguments: argparse.Namespace, subcommand: Subcommand) -> None:
    """Raters as a sample only where leaving raters out tells how far other raters would move the figures."""
    from analytics.stats.core.tables import TableError, TableProblem

    if arguments.raters_as != "sample":
        return
    why = "it needs persons, anonymous slots are none" if arguments.positional else subcommand.no_sample
    if why:
        raise TableError([TableProblem(None, f"--raters-as sample: {why}")])


def _provenance(arguments: argparse.Namespace, argv: Sequence[str], sha256: str) -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        installed = version("panelbench")
    except PackageNotFoundError:
        installed = "source"
    command = shlex.join(["panelbench", "stats", *argv])
    return {"command": command, "version": installed, "seed": arguments.seed, "input_sha256": sha256}


def _located(path: str, problem: TableProblem, lines: Lines | None) -> str:
    if problem.row is None or lines is None:
        return f"{path}:1: {problem.message}"
    return f"{path}:{lines(problem.row)}: {problem.message}"


def _complain(messages: Any) -> None:
    sys.stderr.write("".join(f"{message}\n" for message in messages))


if __name__ == "__main__":
    sys.exit(run_command())
