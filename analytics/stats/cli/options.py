"""Values of the command line, each read by a function that says what it should be, and options subcommands share."""

from __future__ import annotations

import csv
import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analytics.stats.core.identifiers import normal_identifier

if TYPE_CHECKING:
    from analytics.stats.core.estimates import CellEstimate


@dataclass(frozen=True, slots=True)
class Subcommand:
    """One subcommand of ``panelbench stats``.

    ``configure`` adds its own options; ``statistics``: what ``--statistic`` may ask for; ``read`` converts the frame
    into the input of ``run``, if that is not a ratings table; ``absent``: by statistic ("*" for all others) why no cell
    has it; ``speaks_for``: the population that its intervals describe; ``no_sample``: why raters can't be treated as a
    sample, empty if they can.
    """

    configure: Callable[[ArgumentParser], None]
    statistics: Callable[[], tuple[str, ...]]
    run: Callable[[Namespace, Any], list[CellEstimate]]
    absent: Mapping[str, str]
    speaks_for: str | None
    no_sample: str
    read: Callable[[Namespace, Any], Any] | None = None


def name_list(text: str) -> tuple[str, ...]:
    """``A,B,C``; a name with a comma is written in double quotes: ``"Tamm, Jaan",B``."""
    names = tuple(normal_identifier(name) for name in next(csv.reader([text], skipinitialspace=True), [""]))
    if not names or not all(names):
        raise ArgumentTypeError("names are separated by commas and never empty")
    return names


def whole_count(text: str) -> int:
    """0, 1, 2, ..."""
    if not text.isdecimal():
        raise ArgumentTypeError("should be a whole number, 0 or more")
    return int(text)


def count(text: str) -> int:
    """1, 2, 3, ..."""
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError("should be a whole number, 1 or more")
    return int(text)


def resamples(text: str) -> int:
    """0, or 200, 201, ...: with fewer resamples the ends of an interval are random."""
    from analytics.stats.core.estimates import FEWEST_RESAMPLES

    if not text.isdecimal() or 0 < int(text) < FEWEST_RESAMPLES:
        raise ArgumentTypeError(f"should be 0 (no resampling) or a whole number from {FEWEST_RESAMPLES} on")
    return int(text)


def finite_number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ArgumentTypeError("should be a number")
    return value


def positive(text: str) -> float:
    """A number above 0."""
    if (value := finite_number(text)) <= 0:
        raise ArgumentTypeError("should be above 0")
    return value


def a_share(text: str) -> float:
    """A number from 0 to 1."""
    if not 0 <= (value := finite_number(text)) <= 1:
        raise ArgumentTypeError("should be from 0 to 1")
    return value


def sides(text: str) -> tuple[str, tuple[str, str]]:
    """``language=en,et``: a column and two of its values."""
    column, _, values = text.partition("=")
    names = name_list(values) if column and values else ()
    if len(names) != 2 or names[0] == names[1]:
        raise ArgumentTypeError("should be COLUMN=A,B")
    return column.strip(), (names[0], names[1])


def named_price(text: str) -> tuple[str, float]:
    """``et=2``: a language and what a label costs there."""
    language, _, money = text.partition("=")
    if not (language and money):
        raise ArgumentTypeError("should be LANGUAGE=PRICE")
    return language, positive(money)


def assignment(text: str) -> tuple[str, str]:
    """``gpt-4=openai``: a rater and its group."""
    name, _, value = (normal_identifier(part) for part in text.partition("="))
    if not (name and value):
        raise ArgumentTypeError("should be NAME=VALUE")
    return name, value


def probability(text: str) -> float:
    """A number above 0 and below 1."""
    if not 0 < (value := finite_number(text)) < 1:
        raise ArgumentTypeError("should be between 0 and 1")
    return value


TIES = ("exclude", "lower", "upper", "median", "adjudicated")
REFERENCES = ("mode", "median", "mean", "minimum", "each")


def add_judge(parser: ArgumentParser, what: str) -> None:
    """Add --judge, which the subcommand requires."""
    parser.add_argument("--judge", required=True, type=normal_identifier, metavar="RATER", help=what)


def add_judges(parser: ArgumentParser, what: str, *, required: bool = False) -> None:
    """Add --judge with several names."""
    parser.add_argument("--judge", type=name_list, required=required, metavar="RATER,...", help=what)


def add_reference(parser: ArgumentParser, more: tuple[str, ...] = ()) -> None:
    """Add --reference: the labels that a judge is compared with."""
    parser.add_argument(
        "--reference", choices=(*REFERENCES, *more), help="the panel's label (default: mode; interval: mean)"
    )


def add_ties(parser: ArgumentParser) -> None:
    """Add --ties: the rule for a tied mode."""
    what = "what the mode does where several points lead (default: exclude the item)"
    parser.add_argument("--ties", choices=TIES, default="exclude", help=what)


def add_jury_rule(parser: ArgumentParser) -> None:
    """Add --rule: the rule of a jury."""
    parser.add_argument(
        "--rule", choices=("majority", "median", "mean"), default="majority", help="how they settle (default: majority)"
    )


def add_length(parser: ArgumentParser) -> None:
    """Add --length: the column for the audit of verbosity."""
    parser.add_argument(
        "--length", type=normal_identifier, metavar="COLUMN", help="the item's length or text: does it move the judge?"
    )


def add_pivot(parser: ArgumentParser, default: str) -> None:
    """Add --pivot: the language that others are compared with."""
    what = f"the language to set others against (default: {default})"
    parser.add_argument("--pivot", metavar="LANGUAGE", help=what)


def add_epsilon(parser: ArgumentParser, what: str, *, default: float | None = None) -> None:
    """Add --epsilon: the tolerance of the alternative annotator test."""
    parser.add_argument("--epsilon", type=finite_number, default=default, help=what)
