"""The page on which a reader asks a question about a campaign's ratings: its form, its cells, and both as files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.text import slugify
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import languages
from accounts.refusals import Refused
from analytics import answer_pages, page_cache, tasks
from analytics.answer_pages import AnswerPage, criterion_names
from analytics.answers import computing
from analytics.questions.asked import QuestionChoices, asked_question, check_question, parsed_question, question_choices
from analytics.questions.juries import jury_name
from analytics.questions.parameters import EACH_RUN, LEVELS
from analytics.questions.presets import study_questions
from analytics.questions.question import NumbersQuestion, pairs_of
from analytics.questions.question_names import (
    EXCLUSION_NAMES,
    JURY_RULE_NAMES,
    REFERENCE_NAMES,
    TIE_NAMES,
    column_name,
    question_in_words,
    statistic_name,
)
from analytics.stats.declared.register import GROUPS, STATISTICS
from analytics.study.choice import FILTERS_OF_BAR, as_filter
from analytics.views.exports import download
from analytics.views.items import shown_campaign
from annotation.models import Campaign, Criterion

MOST_ROWS = 2000
"""The most figures in one JSON file. More are possible: 123 raters have 7,503 pairs."""


# --- the form --------------------------------------------------------------------------------------------------------
class QuestionForm:
    """The choices that the form offers, and the current choices."""

    def __init__(self, question: NumbersQuestion, choices: QuestionChoices, criteria: Mapping[str, str]) -> None:
        """`criteria`: their names by key."""
        self.question, self.choices, self.criteria = question, choices, criteria

    @property
    def dimensions(self) -> list[tuple[str, str]]:
        return [(name, column_name(name)) for name in self.choices.columns]

    @property
    def statistics_asked(self) -> str:
        """The names of the statistics that are asked for."""
        return ", ".join(statistic_name(name) for name in self.question.statistics)

    @property
    def statistics(self) -> list[tuple[str, list[tuple[str, str, bool]]]]:
        """Groups of statistics; those about judges only where there is a judge."""
        asked, has_judge = self.question.statistics, bool(self.choices.judges)
        groups = []
        for group, title in GROUPS.items():
            there = [
                name
                for name, statistic in STATISTICS.items()
                if statistic.report.group == group and (has_judge or "judge" not in statistic.report.needs)
            ]
            if there:
                groups.append((_(title), [(name, statistic_name(name), name in asked) for name in there]))
        return groups

    @property
    def filters(self) -> list[tuple[str, list[tuple[str, str, bool]]]]:
        """Choices for each column with few values: the parameter's value, its name, whether it is chosen."""
        return [
            (column_name(column), [self._filter(column, value) for value in there])
            for column, there in self._filtered.items()
        ]

    @property
    def filters_beside_bar(self) -> list[tuple[str, list[tuple[str, str, bool]]]]:
        """The filters without those in the filter bar of the page."""
        return [
            (column_name(column), [self._filter(column, value) for value in there])
            for column, there in self._filtered.items()
            if column not in FILTERS_OF_BAR
        ]

    @property
    def chosen_in_bar(self) -> list[str]:
        """The filters of the bar that are chosen, as values of `where`; a form keeps them."""
        return [f"{column}={value}" for column, value in self.question.where if column in FILTERS_OF_BAR]

    @cached_property
    def _filtered(self) -> dict[str, tuple[str, ...]]:
        """The columns that the form has filters for, with their values."""
        languages_there = tuple(languages.in_name_order(self.choices.languages, get_language()))
        values = {"criterion": self.choices.criteria, "language": languages_there}
        values |= {"generator": self.choices.generators, **self.choices.attributes}
        return {column: there for column, there in values.items() if len(there) > 1}

    def _filter(self, column: str, value: str) -> tuple[str, str, bool]:
        name = languages.name_for(value, get_language()) if column == "language" else value
        name = self.criteria.get(value, value) if column == "criterion" else name
        return f"{column}={value}", name, (column, value) in self.question.where

    @property
    def has_filters(self) -> bool:
        """Whether one of the settings listed here differs from its default."""
        question, usual = self.question, NumbersQuestion()
        names = (
            *("where", "reference", "ties", "min_seconds", "juries", "level", "cluster", "against", "variants"),
            *("confidence", "bootstrap", "seed"),
        )
        return any(getattr(question, name) != getattr(usual, name) for name in names)

    @property
    def kept(self) -> list[tuple[str, str]]:
        """What the form has no field for, kept as it is: filters of other columns, variants, numbers.

        The filters of the bar are in `chosen_in_bar`.
        """
        fields = {"rows", "columns", "statistic", "judge", "run", "raters", "panel", "reference", "ties", "blind"}
        fields |= {"pool", "min_seconds", "exclude", "jury", "jury_rule", "measure", "level", "cluster", "designs"}
        return [
            (name, text)
            for name, text in pairs_of(self.question)
            if name not in fields
            and not (name == "where" and text.partition("=")[0] in (*self._filtered, *FILTERS_OF_BAR))
        ]

    @property
    def kept_beside(self) -> list[tuple[str, str]]:
        """What the form of Explore must keep: `kept` without the settings for which this form alone has fields."""
        fields = ("confidence", "bootstrap", "seed", "variant", "against", "where")
        return [(name, text) for name, text in self.kept if name not in fields]

    @property
    def other_filters(self) -> list[tuple[str, str]]:
        """The filters of columns that have no list to choose from: the parameter's value, and its words."""
        others = [(column, value) for column, value in self.question.where if column not in self._filtered]
        return [(f"{column}={value}", f"{column_name(column)}: {value}") for column, value in others]

    @property
    def other_columns(self) -> list[str]:
        """The columns that can be filtered but have no list to choose from."""
        return [column for column in self.choices.filters if column not in self._filtered]

    @property
    def compared_with(self) -> list[str]:
        """Judges and juries that others may be compared with."""
        rule = self.question.jury_rule
        juries = [jury_name(members, rule) for members in self.question.jury_members]
        return [*self.judges, *juries]

    @property
    def judges(self) -> tuple[str, ...]:
        """The judges to choose from; judges of designs only if the question asks for them."""
        return self.choices.listed_judges(self.question)

    @property
    def of_designs(self) -> int:
        """How many judges the switch for judges of designs shows or hides."""
        everyone, usual = self.choices.judges, self.choices.listed_judges(replace(self.question, designs=False))
        return len(everyone) - len(usual)

    @property
    def runs(self) -> list[tuple[str, str, bool]]:
        """The choices of runs: every run separately, or runs by number. If none is chosen, one run of each judge is
        used."""
        choices = [(EACH_RUN, _("Each run apart"))]
        own = [run for run in self.choices.runs if run.design_id is None or str(run.pk) in self.question.runs]
        listed = own if own and not self.question.designs else self.choices.runs
        choices += [
            (str(run.pk), _("%(judge)s, run %(number)s") % {"judge": run.judge.name, "number": run.pk})
            for run in listed
        ]
        return [(value, name, value in self.question.runs) for value, name in choices]

    @property
    def references(self) -> list[tuple[str, str, bool]]:
        return [(value, str(name), value == self.question.reference) for value, name in REFERENCE_NAMES.items()]

    @property
    def exclusions(self) -> list[tuple[str, str, bool]]:
        """The exclusions that this campaign has data for."""
        there = [(key, name) for key, name in EXCLUSION_NAMES.items() if key in self.choices.exclusions]
        return [(key, str(name), key in self.question.exclude) for key, name in there]

    @property
    def levels(self) -> list[tuple[str, str, bool]]:
        return [(value, Criterion.Level(value).label, value == self.question.level) for value in LEVELS]

    @property
    def ties(self) -> list[tuple[str, str, bool]]:
        return [(value, str(name), value == self.question.ties) for value, name in TIE_NAMES.items()]

    @property
    def jury_rules(self) -> list[tuple[str, str, bool]]:
        return [(value, str(name), value == self.question.jury_rule) for value, name in JURY_RULE_NAMES.items()]

    @property
    def summary(self) -> list[tuple[str, str]]:
        """The question in words, for below every figure."""
        return question_in_words(self.question)


# --- views -----------------------------------------------------------------------------------------------------------
@require_safe
@login_required
@page_cache.cached_page
def explore_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The form and the answer. While a worker computes, the page reloads itself."""
    current = shown_campaign(request.user, project, campaign)
    choices = question_choices(current)
    context: dict[str, Any] = {"title": _("Explore"), "project": current.project, "campaign": current}
    asked = [(name, text) for name, text in _pairs(request) if name != "seen"]
    try:
        question = parsed_question(asked)
        check_question(question, choices)
        snapshot, is_stale = answer_pages.current_answer(current, question)
    except Refused as refused:
        form = QuestionForm(NumbersQuestion(), choices, criterion_names(current))
        context |= {"refusal": refused.sentence, "form": form, "presets": _presets(choices)}
        return render(request, "analytics/explore.html", context, status=422)
    computation = None
    if snapshot:
        answer_pages.record_labels_shown(snapshot, current, request.user)
    if is_stale:
        tasks.ask_to_compute(campaign=current, settings=question)
        computation = computing.failed(campaign=current, settings=question)
    context |= {
        "form": QuestionForm(question, choices, criterion_names(current)),
        "question": question,
        "snapshot": snapshot,
        "is_stale": is_stale,
        "failed": computation,
        "job": answer_pages.open_job(current, question) if is_stale else None,
        "page": AnswerPage(current, snapshot, question) if snapshot else None,
        "presets": _presets(choices),
        "addresses": _addresses(current, question),
    }
    return render(request, "analytics/explore.html", context)


@require_safe
@login_required
def explore_file(request: HttpRequest, project: str, campaign: int, kind: str) -> HttpResponseBase:
    """The cells of the page as CSV or JSON.

    If the address is wrong or nothing is computed yet, a sentence says so. While new figures are computed, the
    stored cells are returned; the JSON has their time and revision. `part` in the address only names the CSV file.
    JSON has at most `MOST_ROWS` figures, from the one numbered `from` (0 the first), with their `total` and the
    address of the `next` ones.
    """
    current = shown_campaign(request.user, project, campaign)
    try:
        asked = [(name, text) for name, text in _pairs(request) if name not in ("part", "from")]
        question = asked_question(current, asked)
        snapshot, is_stale = answer_pages.current_answer(current, question)
    except Refused as refused:
        return HttpResponse(refused.sentence, status=422, content_type="text/plain; charset=utf-8")
    if is_stale:
        tasks.ask_to_compute(campaign=current, settings=question)
    if snapshot is None:
        text = _("A worker is computing these figures. Try again in a moment.")
        return HttpResponse(text, status=503, content_type="text/plain; charset=utf-8", headers={"Retry-After": "5"})
    answer_pages.record_labels_shown(snapshot, current, request.user)
    if kind == "json":
        document = _part_of(answer_pages.answer_document(snapshot), request)
        return JsonResponse(document, json_dumps_params={"ensure_ascii": False})
    about = slugify(request.GET.get("part", "")[:40]) or "cells"
    name = f"{slugify(current.name) or current.pk}-{about}.csv"
    return download(answer_pages.answer_csv(snapshot), name=name, media_type="text/csv; charset=utf-8")


def _part_of(document: dict[str, Any], request: HttpRequest) -> dict[str, Any]:
    """A document with at most `MOST_ROWS` of its estimates."""
    given = request.GET.get("from", "")
    start, rows = int(given[:18]) if given.isdecimal() else 0, document["estimates"]
    end = start + MOST_ROWS
    query = urlencode([*((name, text) for name, text in _pairs(request) if name != "from"), ("from", str(end))])
    following = f"{request.path}?{query}" if end < len(rows) else None
    return {**document, "estimates": rows[start:end], "total": len(rows), "next": following}


def _pairs(request: HttpRequest) -> list[tuple[str, str]]:
    return [as_filter(name, text) for name, texts in request.GET.lists() for text in texts]


def _presets(choices: QuestionChoices) -> list[tuple[str, str, str]]:
    """Questions from published studies that fit this campaign, as query strings."""
    return [(study, about, question.query) for study, about, question in study_questions(choices)]


def _addresses(campaign: Campaign, question: NumbersQuestion) -> dict[str, str]:
    here, query = [campaign.project.slug, campaign.pk], f"?{question.query}" if question.query else ""
    return {
        "csv": reverse("numbers_cells_csv", args=here) + query,
        "json": reverse("numbers_cells_json", args=here) + query,
        "ratings": reverse("api_ratings_table", args=here) + query,
        "estimates": reverse("api_estimates", args=here) + query,
        "this": reverse("numbers_explore", args=here) + query,
    }
