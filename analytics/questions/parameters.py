"""The parameters of a question in addresses, the API and commands: the meaning of each, and how its value is read and
written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from django.utils.translation import gettext as _

from accounts.refusals import Refused
from analytics.questions.goals import parsed_goal
from analytics.questions.juries import JURY_RULES, jury_members, jury_text
from analytics.questions.reference_rules import REFERENCES, TIES
from annotation.writers import tables

LEVELS = ("nominal", "ordinal", "interval")
OWN_COLUMNS = ("criterion", "language", "generator", "scenario", "item", "dataset_version")
"""Columns of the ratings table that rows, columns and filters may be, beside the attributes of the items."""
TIMES = ("week", "hundred")
"""When an item was rated last, as rows or columns: the ISO week, or the first of the hundred items in that order."""
NO_CUT = ("judge", "panel", "languages", "raters", "annotator", "variant", "agreement_class")
"""Other possible rows and columns: `languages` and `raters` are the pair that a figure compares, `annotator` is the
annotator that it describes, `variant` the label of F1 or the kind of a coefficient. They do not split the ratings
table.
"""
COMPUTED = (*NO_CUT, *TIMES)
CLUSTERS = ("item",)
ALL_PAIRS = ("all",)
EACH_RUN = "each"
BLIND_ONLY = "only"
_FEWEST_RESAMPLES, MOST_RESAMPLES = 200, 20_000


@dataclass(frozen=True, slots=True)
class QuestionParameter:
    """One parameter of an address, and the field of a question that it sets.

    A list is a repeated parameter, each text of which `read` makes a value; a switch has one value, `switch`. Else it
    is one of `choices`, a number within `limits` (0 or at least `least`), or any text.
    """

    name: str
    field: str
    meaning: str
    _: KW_ONLY
    is_list: bool = False
    keeps_order: bool = False
    read: Callable[[str], Any] = str
    switch: str = ""
    choices: tuple[str, ...] = ()
    limits: tuple[float, float] | None = None
    is_decimal: bool = False
    least: int = 0

    def value(self, texts: Sequence[str]) -> Any:
        """The field's value from these texts; a refusal has its sentence under the parameter's name."""
        if self.is_list:
            values = dict.fromkeys(map(self.read, texts))
            if self.name == "goal":  # of two values of one goal the later one counts
                return tuple(sorted(dict(iter(values)).items()))
            return tuple(values) if self.keeps_order else tuple(sorted(values))
        text = texts[-1]
        if self.switch:
            return require_choice(self.name, text, (self.switch,)) == self.switch
        if self.choices:
            return require_choice(self.name, text, self.choices)
        return text if self.limits is None else self._number(text, *self.limits)

    def texts(self, value: Any) -> list[str]:
        """A value of the field as the parameter's texts."""
        if self.switch:
            return [self.switch]
        if self.is_list:
            return ["=".join(entry) if isinstance(entry, tuple) else str(entry) for entry in value]
        return [tables.number(value) if self.is_decimal else str(value)]

    def _number(self, text: str, low: float, high: float) -> float | int:
        try:
            value = float(text) + 0.0 if self.is_decimal else int(text)  # no negative zero
        except ValueError:
            value = -1.0
        if not low <= value <= high or 0 < value < self.least:
            more = _(" (0, or %d and more)") % self.least if self.least else ""
            sentence = _("“%(name)s” is a number from %(low)s to %(high)s%(more)s.")
            limits = {"low": tables.number(low), "high": tables.number(high), "more": more}
            raise choice_refusal(self.name, sentence % {"name": self.name, **limits})
        return value


def require_choice(name: str, text: str, known: Iterable[str]) -> str:
    """The text; refused under the parameter's name if it is not a known choice."""
    if text not in known:
        raise choice_refusal(
            name,
            _("“%(text)s” is not a valid choice for “%(name)s”. Available: %(all)s.")
            % {"text": text, "name": name, "all": ", ".join(known) or _("none")},
        )
    return text


def choice_refusal(name: str, sentence: str) -> Refused:
    """The refusal of a parameter's value."""
    return Refused(sentence, code="unknown_choice", fields={name: sentence})


def _filter(text: str) -> tuple[str, str]:
    column, sign, value = text.partition("=")
    if not (sign and column.strip()):
        raise choice_refusal("where", _("“%s” is not a filter. Write it as COLUMN=VALUE.") % text)
    return column.strip(), value


def _jury(text: str) -> str:
    if len(set(jury_members(text))) < 2:
        sentence = _("“%s” is no jury. Write two names or more as A,B,C, in quotes where one has a comma.")
        raise choice_refusal("jury", sentence % text)
    return jury_text(text)


_DECLARED = (
    QuestionParameter(
        "rows",
        "rows",
        "What the rows are: criterion, language, generator, judge, panel, variant or any attribute of the items.",
    ),
    QuestionParameter("columns", "columns", "What the columns are; empty for one column."),
    QuestionParameter(
        "where",
        "where",
        "COLUMN=VALUE: only items and criteria with it. Several of one column: any of them.",
        is_list=True,
        read=_filter,
    ),
    QuestionParameter(
        "statistic",
        "statistics",
        "krippendorff_alpha, mae, cohen_kappa, consistency.mean ...: a wrong name is answered with all.",
        is_list=True,
        keeps_order=True,
    ),
    QuestionParameter("variant", "variants", "Only these variants of a statistic.", is_list=True),
    QuestionParameter("judge", "judges", "Names of judges, all of them by default.", is_list=True),
    QuestionParameter(
        "run", "runs", "Numbers of judge runs, or `each`; one run of each judge by default.", is_list=True
    ),
    QuestionParameter(
        "raters", "raters", "Pseudonyms of the annotators that count, all of them by default.", is_list=True
    ),
    QuestionParameter("panel", "panels", "Names of panels, all of them by default.", is_list=True),
    QuestionParameter(
        "designs",
        "designs",
        "`show`: where no judge and no run is named, those that are only cells of designs count, too.",
        switch="show",
    ),
    QuestionParameter(
        "pairs",
        "pairs",
        "`all`: the pairs of more than 24 raters are listed, too; by default their means alone.",
        choices=ALL_PAIRS,
    ),
    QuestionParameter(
        "jury",
        "juries",
        "Judges as one more rater: A,B,C; a name that holds a comma in double quotes.",
        is_list=True,
        read=_jury,
    ),
    QuestionParameter(
        "jury_rule", "jury_rule", "majority (a tie gives no score), median, mean or minimum.", choices=JURY_RULES
    ),
    QuestionParameter(
        "against",
        "against",
        "The judge that the others are compared with, for comparison.accuracy_difference and alike.",
    ),
    QuestionParameter(
        "measure",
        "measures",
        "Numeric attributes of the items, and text.words, text.mattr ...: set beside scores, and ranked.",
        is_list=True,
    ),
    QuestionParameter(
        "goal",
        "goals",
        "NAME=VALUE: half_width, difference, reliability, epsilon, budget, price.LANGUAGE or split, for plan.*.",
        is_list=True,
        read=parsed_goal,
    ),
    QuestionParameter(
        "cluster",
        "cluster",
        "`item`: items of one scenario are taken for independent; by default they are not.",
        choices=CLUSTERS,
    ),
    QuestionParameter(
        "reference",
        "reference",
        "mode, mode_split, median, mean, minimum, each, dawid_skene, adjudicated, adjudicated_first."
        " The last one takes the mode where nobody adjudicated; see `ties`.",
        choices=REFERENCES,
    ),
    QuestionParameter("ties", "ties", "What the mode does with a tie: exclude, lower, upper or median.", choices=TIES),
    QuestionParameter("pool", "pool", "`on`: criteria are pooled.", switch="on"),
    QuestionParameter(
        "blind",
        "blind_only",
        "`only`: leave out ratings by people who could see verdicts and other people's ratings.",
        switch=BLIND_ONLY,
    ),
    QuestionParameter(
        "exclude",
        "exclude",
        "Leave out: version (an earlier one of the rubric), speed (too fast), rationale (breaks its rule),"
        " critical (a critical mark), single (alone).",
        is_list=True,
    ),
    QuestionParameter(
        "min_seconds",
        "min_seconds",
        "Leave out ratings of items that took less time.",
        limits=(0, 1e6),
        is_decimal=True,
    ),
    QuestionParameter("level", "level", "nominal, ordinal or interval, whatever the criteria declare.", choices=LEVELS),
    QuestionParameter(
        "confidence", "confidence", "Of the intervals; 0.95 by default.", limits=(0.5, 0.999), is_decimal=True
    ),
    QuestionParameter(
        "bootstrap", "bootstrap", "Resamples; 2000 by default.", limits=(0, MOST_RESAMPLES), least=_FEWEST_RESAMPLES
    ),
    QuestionParameter("seed", "seed", "Of the random numbers.", limits=(0, 2**62)),
)
PARAMETERS = {parameter.name: parameter for parameter in _DECLARED}
"""In canonical order. Lists are repeated parameters, because a name may contain a comma."""
