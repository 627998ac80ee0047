"""Reads a question from its parameters, and checks it against the choices that the campaign offers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from django.utils.translation import gettext as _

from accounts.inputs import storable, without_nul
from analytics.questions.goals import check_goals
from analytics.questions.juries import jury_name
from analytics.questions.parameters import (
    COMPUTED,
    EACH_RUN,
    OWN_COLUMNS,
    PARAMETERS,
    choice_refusal,
    require_choice,
)
from analytics.questions.question import NumbersQuestion
from analytics.ratings import exclusions
from analytics.ratings.additions import TEXT_MEASURES
from analytics.ratings.item_attributes import attribute_choices
from analytics.ratings.raters import (
    all_runs,
    campaign_annotators,
    judge_names,
    names_of_designs,
    names_of_failed,
    usual_judges,
)
from analytics.stats.core.identifiers import normal_identifier
from analytics.stats.declared.register import STATISTICS, statistics_that_need
from annotation.models import Campaign, Criterion, Duty, Item
from judging.models import JudgeRun

MOST_COMPARED = 12
"""Criteria up to which each pair of them is compared."""


def parsed_question(pairs: Iterable[tuple[str, str]]) -> NumbersQuestion:
    """The question of these parameters; refused with the sentence under the parameter's name.

    Empty parameters are ignored, except `columns`: an empty value means one column.
    """
    found: dict[str, list[str]] = {}
    for name, text in pairs:
        found.setdefault(name, []).append(storable(without_nul(text)).strip())
    values: dict[str, Any] = {}
    for name, parameter in PARAMETERS.items():
        texts = [text for text in found.pop(name, []) if text or name == "columns"]
        if texts:
            values[parameter.field] = parameter.value(texts)
    if found:
        unknown = next(iter(found))
        raise choice_refusal(
            unknown,
            _("There is no parameter “%(name)s”. Available: %(all)s.")
            % {"name": unknown, "all": ", ".join(PARAMETERS)},
        )
    return NumbersQuestion(**values)


def question_of(query: str) -> NumbersQuestion:
    """The question of a query string."""
    return parsed_question(parse_qsl(query.lstrip("?"), keep_blank_values=True))


@dataclass(frozen=True, slots=True)
class QuestionChoices:
    """The choices for questions about one campaign.

    `attributes`: columns of its items' attributes, with their values. `judges` that `failed`, of which no score was
    read, come last.
    """

    criteria: tuple[str, ...]
    attributes: Mapping[str, tuple[str, ...]]
    languages: tuple[str, ...]
    generators: tuple[str, ...]
    judges: tuple[str, ...]
    runs: tuple[JudgeRun, ...]
    raters: tuple[str, ...]
    panels: tuple[str, ...]
    measures: tuple[str, ...] = ()
    exclusions: tuple[str, ...] = exclusions.EXCLUSIONS
    of_designs: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()

    def listed_judges(self, question: NumbersQuestion) -> tuple[str, ...]:
        """The judges that a form offers.

        Judges that are only cells of designs are offered if the question includes designs or names these judges.
        """
        hidden = () if question.designs else self.of_designs
        return usual_judges(self.judges, hidden, chosen=question.judges_named)

    @property
    def columns(self) -> tuple[str, ...]:
        """The possible values of rows and columns."""
        return (*OWN_COLUMNS, *self.attributes, *COMPUTED)

    @property
    def filters(self) -> tuple[str, ...]:
        """The columns that a filter may use."""
        return (*OWN_COLUMNS, *self.attributes)


def question_choices(campaign: Campaign) -> QuestionChoices:
    """The choices that a campaign offers."""
    items = Item.objects.of(campaign.dataset).order_by()
    criteria = Criterion.objects.filter(rubric_version=campaign.rubric_version_id)
    languages, generators = (
        tuple(sorted(set(items.values_list(name, flat=True).distinct()) - {""})) for name in ("language", "generator")
    )
    runs = tuple(all_runs(campaign))
    names = judge_names(campaign, runs)
    failed = names_of_failed(runs, names)
    attributes = attribute_choices(campaign.dataset)
    return QuestionChoices(
        criteria=tuple(criteria.order_by("position").values_list("key", flat=True)),
        attributes=attributes.values,
        languages=languages,
        generators=generators,
        judges=tuple(sorted({names[run.pk] for run in runs}, key=lambda name: (name in failed, name))),
        runs=runs,
        raters=tuple(annotator.pseudonym for annotator in campaign_annotators(campaign)),
        panels=tuple(sorted(set(Duty.objects.filter(campaign=campaign).values_list("panel__name", flat=True)))),
        measures=(*attributes.numeric, *TEXT_MEASURES),
        exclusions=exclusions.available_exclusions(campaign),
        of_designs=names_of_designs(runs, names),
        failed=failed,
    )


def check_question(question: NumbersQuestion, choices: QuestionChoices) -> None:
    """Refuse a question with a name that the campaign does not have; the refusal lists the possible names."""
    for name, text in (("rows", question.rows), ("columns", question.columns)):
        if text or name == "rows":
            require_choice(name, text, choices.columns)
    if question.rows == question.columns:
        raise choice_refusal("columns", _("Rows and columns are both “%s”. Choose two different ones.") % question.rows)
    known: dict[str, Sequence[str]] = {
        "statistic": tuple(STATISTICS),
        "judge": choices.judges,
        "run": (EACH_RUN, *(str(run.pk) for run in choices.runs)),
        "raters": choices.raters,
        "panel": choices.panels,
        "measure": choices.measures,
        "exclude": choices.exclusions,
    }
    for name, there in known.items():
        for text in getattr(question, PARAMETERS[name].field):
            require_choice(name, text, there)
    _check_families(question, choices)
    check_goals(question.goals, choices.languages)
    values = {"criterion": choices.criteria, "language": choices.languages, "generator": choices.generators}
    for column, value in question.where:
        require_choice("where", column, choices.filters)
        if in_column := {**values, **choices.attributes}.get(column):
            require_choice("where", f"{column}={value}", [f"{column}={each}" for each in in_column])
    if question.needs_judge and not choices.judges:
        asked = next(name for name in question.statistics if name in statistics_that_need("judge"))
        raise choice_refusal("statistic", _("“%s” is about a judge, and no judge has been run on these items.") % asked)


def _check_families(question: NumbersQuestion, choices: QuestionChoices) -> None:
    if question.against:
        juries = [jury_name(members, question.jury_rule) for members in question.jury_members]
        require_choice("against", question.against, [*choices.judges, *juries])
    for member in (name for members in question.jury_members for name in members):
        require_choice("jury", member, choices.judges)
    if question.juries and EACH_RUN in question.runs:
        raise choice_refusal(
            "jury", _("A jury takes one run of each judge. Choose “One run of each judge”, or runs by number.")
        )
    need_measure, need_two = statistics_that_need("measure"), statistics_that_need("two judges")
    if not question.measures and (asked := [name for name in question.statistics if name in need_measure]):
        sentence = _("“%(asked)s” is about a measure of the items. Choose one. Available: %(all)s.")
        raise choice_refusal("measure", sentence % {"asked": asked[0], "all": ", ".join(choices.measures)})
    judges = len(question.judges or choices.judges) + len(question.juries)
    if judges < 2 and (asked := [name for name in question.statistics if name in need_two]):
        raise choice_refusal("statistic", _("“%s” is about two judges. Only one is chosen or has been run.") % asked[0])
    if "languages.kappa_gap" in question.statistics:
        chosen = [value for column, value in question.where if column == "criterion"] or choices.criteria
        if len(chosen) > MOST_COMPARED:
            sentence = _("“languages.kappa_gap” compares every two criteria. Choose at most %d of them.")
            raise choice_refusal("statistic", sentence % MOST_COMPARED)


def asked_question(campaign: Campaign, pairs: Iterable[tuple[str, str]]) -> NumbersQuestion:
    """The question of these parameters, checked against the campaign. The default question fits every campaign."""
    pairs = list(pairs)
    question = parsed_question(pairs)
    if question != NumbersQuestion():
        choices = question_choices(campaign)
        if not all(text.isascii() for _name, text in pairs):
            question = parsed_question(_as_spelt(pairs, choices))
        check_question(question, choices)
    return question


def _as_spelt(pairs: Iterable[tuple[str, str]], choices: QuestionChoices) -> Iterator[tuple[str, str]]:
    """The parameters with names of judges, annotators, panels, generators and criteria in the Unicode form that these
    have in the project."""
    there = (*choices.judges, *choices.raters, *choices.panels, *choices.generators, *choices.criteria)
    spelt = {normal_identifier(name): name for name in there}
    for name, text in pairs:
        column, sign, value = text.partition("=") if name == "where" else ("", "", text)
        yield name, f"{column}{sign}{spelt.get(normal_identifier(value), value)}"
