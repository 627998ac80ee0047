"""The page on which a reader asks a question about a campaign's ratings: its form, its cells, and both as files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.text import slugify
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import languages
from accounts.refusals import Refused
from analytics import answers, computing, page_cache, questions, tasks
from analytics.figures import SHARE_LEFT_OUT, SMALL, Figure
from analytics.items import ATTRIBUTE, REFERENCES
from analytics.models import Snapshot
from analytics.numbers import criterion_groups
from analytics.questions import NumbersQuestion, QuestionChoices
from analytics.ratings import attribute_choices
from analytics.score_views import CLASS_NAMES
from analytics.views.exports import download
from analytics.views.items import shown_campaign
from analytics.views.question_names import (
    COLUMN_NAMES,
    EXCLUSION_NAMES,
    GROUPS,
    JURY_RULE_NAMES,
    PRESETS,
    REFERENCE_NAMES,
    STATISTIC_NAMES,
    TIE_NAMES,
)
from annotation.models import Campaign

MOST_MATRICES = 24
MOST_ROWS = 2000
"""Figures in one file of JSON: 123 raters have 7,503 pairs."""
KEEPING_RULES = ("mode_split", "median", "mean", "each")
"""Rules of reference that a page offers where the mode leaves out much."""
ABOUT = (
    "criterion",
    "judge",
    "panel",
    "language",
    "languages",
    "generator",
    "raters",
    "annotator",
    "agreement_class",
    "item",
)


# --- cells as the template reads them --------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ShownCell:
    """One cell of a matrix; without a figure nothing was rated there."""

    row: str
    column: str
    figure: Figure | None = None
    items: str = ""

    @property
    def few(self) -> str:
        """Why its value is muted: it rests on few items or few clusters."""
        figure = self.figure
        if figure is None or not figure.is_defined:
            return ""
        clusters = figure.n_clusters
        if clusters is not None and clusters < min(figure.n_items, SMALL):
            return ngettext("only %d cluster", "only %d clusters", clusters) % clusters
        return _("fewer than %d items") % SMALL if figure.is_small else ""

    @property
    def exact(self) -> str:
        """Its value with all digits, for programs that read the page."""
        return "" if self.figure is None or self.figure.value is None else repr(self.figure.value)

    @property
    def counts(self) -> str:
        """What it rests on: items, raters, ratings, clusters."""
        return self.figure.basis if self.figure else ""


@dataclass(frozen=True, slots=True)
class Matrix:
    """The cells of one statistic, by row and column; `about`: what else all of them are about."""

    statistic: str
    about: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[ShownCell, ...]], ...]

    @property
    def cells(self) -> list[ShownCell]:
        return [cell for _name, row in self.rows for cell in row if cell.figure]


class AnswerPage:
    """An answer as the page shows it: its matrices with the names of languages and criteria."""

    def __init__(self, campaign: Campaign, snapshot: Snapshot, question: NumbersQuestion) -> None:
        self.campaign, self.content, self.question = campaign, snapshot.content, question
        self.criteria = criterion_names(campaign)
        self.groups = criterion_groups(campaign.rubric_version.criteria.all())
        attributes = attribute_choices(campaign.dataset)
        self.keys = dict(zip(attributes.names, attributes.keys, strict=True))

    @cached_property
    def matrices(self) -> list[Matrix]:
        """A matrix for each statistic, and for each value of what is neither row nor column."""
        layers: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
        for row in self.content["estimates"]:
            variant = "" if "variant" in self.question.dimensions else row["variant"] or ""
            layers.setdefault((row["asked"], variant, *self._about(row)), []).append(row)
        return [self._matrix(key, rows) for key, rows in layers.items()]

    @property
    def shown(self) -> list[Matrix]:
        return self.matrices[:MOST_MATRICES]

    @property
    def more(self) -> int:
        return max(0, len(self.matrices) - MOST_MATRICES)

    @property
    def excluded(self) -> list[tuple[str, int]]:
        """Each exclusion that is on, and what it leaves out; and what would be left out if it were on."""
        found = self.content["left_out"]
        blind = (
            _("left out: by people who could see verdicts")
            if self.question.blind_only
            else _("counted although their raters could see verdicts")
        )
        left_out = [(blind, found["not_blind"])] if self.question.blind_only or found["not_blind"] else []
        if self.question.min_seconds:
            left_out.append(
                (_("left out: item rated in less than %g s") % self.question.min_seconds, found["too_fast"])
            )
        return left_out + [
            (_("left out: %s") % name, found[key]) for key, name in EXCLUSION_NAMES.items() if key in found
        ]

    @property
    def ties_sentence(self) -> str:
        """What a tied mode leaves out of the figures that need a reference label."""
        found = self.content.get("ties") or {}
        if not found.get("tied"):
            return ""
        sentence = ngettext(
            "The mode leaves out %(tied)s of %(pairs)s pair of item and criterion: its annotators are tied.",
            "The mode leaves out %(tied)s of %(pairs)s pairs of item and criterion: their annotators are tied.",
            found["pairs"],
        )
        return sentence % {name: f"{number:,}" for name, number in found.items()}

    @property
    def is_much_tied(self) -> bool:
        """Whether that is a tenth or more: other rules are then offered (METHODS 3)."""
        found = self.content.get("ties") or {"tied": 0, "pairs": 0}
        return bool(found["tied"]) and found["tied"] >= SHARE_LEFT_OUT * found["pairs"]

    @property
    def other_rules(self) -> list[tuple[str, str]]:
        """Rules of reference that leave out no tie, with the query string of the same question under each."""
        asked = [replace(self.question, reference=name, ties="exclude") for name in KEEPING_RULES]
        return [(str(REFERENCE_NAMES[each.reference]), each.query) for each in asked]

    def _about(self, row: Mapping[str, Any]) -> Iterator[str]:
        """What a row is about beside its row and its column."""
        for name in ABOUT:
            if name not in self.question.dimensions and (value := plain_value(row.get(name))):
                yield self.name(name, value) if name != "judge" else value

    def _matrix(self, key: tuple[str, ...], rows: Sequence[Mapping[str, Any]]) -> Matrix:
        statistic, variant, *about = key
        names = {name: in_order(self.values(name), rows, name) for name in self.question.dimensions}
        down, across = names[self.question.rows], names.get(self.question.columns, [""])
        found = {
            (plain_value(row.get(self.question.rows)), plain_value(row.get(self.question.columns))): row for row in rows
        }
        title = str(STATISTIC_NAMES[statistic])
        shown = tuple(
            (self.name(self.question.rows, value), tuple(self._cell(value, column, found) for column in across))
            for value in down
        )
        columns = tuple(self.name(self.question.columns, column) for column in across)
        return Matrix(f"{title} ({variant})" if variant else title, " · ".join(about), columns, shown)

    def _cell(self, down: str, across: str, found: Mapping[tuple[str, str], Mapping[str, Any]]) -> ShownCell:
        names = self.name(self.question.rows, down), self.name(self.question.columns, across)
        row = found.get((down, across))
        return ShownCell(*names, Figure.of(row), self.items_address(row)) if row else ShownCell(*names)

    def items_address(self, row: Mapping[str, Any]) -> str:
        """The address of the items behind a cell; nothing where their list cannot be cut to it."""
        question = self.question
        wanted = dict(question.where)
        wanted |= {name: value for name in (*ABOUT, *self.keys) if (value := plain_value(row.get(name)))}
        several = len({name for name, _value in question.where}) < len(question.where)
        if (
            several
            or question.min_seconds
            or question.exclude
            or question.level
            or ("criterion" not in wanted and len(self.criteria) > 1)  # a list is about one criterion
            or set(wanted) & {"scenario", "item", "dataset_version", "languages"}
            or set(question.dimensions) & set(questions.TIMES)
        ):
            return ""
        pairs: list[tuple[str, str]] = [
            (name, wanted[name]) for name in ("criterion", "language", "generator", "panel") if name in wanted
        ]
        pairs += [(f"{ATTRIBUTE}{self.keys[name]}", value) for name, value in wanted.items() if name in self.keys]
        judges = {judge["name"] for judge in self.content["judges"]}
        pairs += [("judge", row["judge"])] if row.get("judge") in judges and not question.runs else []
        pairs += [("rater", name) for name in question.raters]
        pairs += [("panel", name) for name in question.panels if "panel" not in wanted]
        pairs += [("reference", row["reference"])] if row.get("reference") in REFERENCES else []
        pairs += [("blind", "only")] if question.blind_only else []
        return f"{reverse('numbers_items', args=[self.campaign.project.slug, self.campaign.pk])}?{urlencode(pairs)}"

    def values(self, name: str) -> list[str]:
        """The known order of a column's values."""
        if name == "language":
            tags = {row["language"] for row in self.content["estimates"] if row.get("language")}
            return languages.in_name_order(tags, get_language())
        return list(self.criteria) if name == "criterion" else []

    def name(self, column: str, value: str) -> str:
        """A value as a reader knows it."""
        if column == "criterion":
            return self.criteria.get(value, value) or _("all criteria")
        if column in ("language", "languages") and value:
            return " ~ ".join(languages.name_for(tag, get_language()) for tag in value.split(" ~ "))
        if column == "agreement_class" and value in CLASS_NAMES:
            return str(CLASS_NAMES[value])
        return value or _("all")


def criterion_names(campaign: Campaign) -> dict[str, str]:
    """By key, each criterion's name in the reader's language, in the rubric's order."""
    spoken = get_language() or "en"
    criteria = campaign.rubric_version.criteria.all()
    return {each.key: str(each.says("name", spoken) or each.key) for each in criteria}


def plain_value(value: Any) -> str:
    return " ~ ".join(map(str, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)


def in_order(known: Sequence[str], rows: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """The values of a column that occur: in their known order, then numbers by size, then text."""
    place = {value: number for number, value in enumerate(known)}
    return sorted(
        {plain_value(row.get(name)) for row in rows}, key=lambda value: (place.get(value, len(place)), *_size(value))
    )


def _size(value: str) -> tuple[float, str]:
    try:
        return float(value), ""
    except ValueError:
        return float("inf"), value


# --- the form --------------------------------------------------------------------------------------------------------
class QuestionForm:
    """What the form offers, and what is chosen in it."""

    def __init__(self, question: NumbersQuestion, choices: QuestionChoices) -> None:
        self.question, self.choices = question, choices

    @property
    def dimensions(self) -> list[tuple[str, str]]:
        return [(name, column_name(name)) for name in self.choices.columns]

    @property
    def statistics_asked(self) -> str:
        """The names of the statistics that are asked for."""
        return ", ".join(str(STATISTIC_NAMES[name]) for name in self.question.statistics)

    @property
    def statistics(self) -> list[tuple[str, list[tuple[str, str, bool]]]]:
        """Groups of statistics; those about judges only where there is a judge."""
        asked, has_judge = self.question.statistics, bool(self.choices.judges)
        groups = []
        for title, names in GROUPS:
            there = [name for name in names if has_judge or name not in questions.NEED_JUDGE]
            if there:
                groups.append((str(title), [(name, str(STATISTIC_NAMES[name]), name in asked) for name in there]))
        return groups

    @property
    def filters(self) -> list[tuple[str, list[tuple[str, str, bool]]]]:
        """Choices for each column with few values: the parameter's value, its name, whether it is chosen."""
        return [
            (column_name(column), [self._filter(column, value) for value in there])
            for column, there in self._filtered.items()
        ]

    @cached_property
    def _filtered(self) -> dict[str, tuple[str, ...]]:
        """The columns that the form has filters for, with their values."""
        languages_there = tuple(languages.in_name_order(self.choices.languages, get_language()))
        values = {"criterion": self.choices.criteria, "language": languages_there}
        values |= {"generator": self.choices.generators, **self.choices.attributes}
        return {column: there for column, there in values.items() if len(there) > 1}

    def _filter(self, column: str, value: str) -> tuple[str, str, bool]:
        name = languages.name_for(value, get_language()) if column == "language" else value
        return f"{column}={value}", name, (column, value) in self.question.where

    @property
    def has_filters(self) -> bool:
        """Whether anything among filters, reference, runs and seconds is not as usual."""
        question, usual = self.question, NumbersQuestion()
        names = ("where", "reference", "ties", "runs", "min_seconds", "exclude", "juries", "level", "cluster")
        return any(getattr(question, name) != getattr(usual, name) for name in names)

    @property
    def kept(self) -> list[tuple[str, str]]:
        """What the form has no field for, kept as it is: filters of other columns, variants, numbers."""
        fields = {"rows", "columns", "statistic", "judge", "run", "raters", "panel", "reference", "ties", "blind"}
        fields |= {"pool", "min_seconds", "exclude", "jury", "jury_rule", "measure", "level", "cluster", "designs"}
        return [
            (name, text)
            for name, text in questions.pairs_of(self.question)
            if name not in fields and not (name == "where" and text.partition("=")[0] in self._filtered)
        ]

    @property
    def judges(self) -> tuple[str, ...]:
        """The judges to choose from, without those of designs where these are not asked for."""
        return self.choices.listed_judges(self.question)

    @property
    def of_designs(self) -> int:
        """How many judges the switch for those of designs shows or hides."""
        everyone, usual = self.choices.judges, self.choices.listed_judges(replace(self.question, designs=False))
        return len(everyone) - len(usual)

    @property
    def runs(self) -> list[tuple[str, str, bool]]:
        """Each run apart, or runs by their numbers; where none is chosen, one run of each judge."""
        choices = [(questions.EACH_RUN, _("Each run apart"))]
        own = [run for run in self.choices.runs if run.design_id is None or str(run.pk) in self.question.runs]
        listed = own if own and not self.question.designs else self.choices.runs
        choices += [(str(run.pk), f"{run.judge.name}, {_('run')} {run.pk}") for run in listed]
        return [(value, name, value in self.question.runs) for value, name in choices]

    @property
    def references(self) -> list[tuple[str, str, bool]]:
        return [(value, str(name), value == self.question.reference) for value, name in REFERENCE_NAMES.items()]

    @property
    def exclusions(self) -> list[tuple[str, str, bool]]:
        """What may be left out of this campaign: nothing is offered that it has no data for."""
        there = [(key, name) for key, name in EXCLUSION_NAMES.items() if key in self.choices.exclusions]
        return [(key, str(name), key in self.question.exclude) for key, name in there]

    @property
    def levels(self) -> list[tuple[str, bool]]:
        return [(value, value == self.question.level) for value in questions.LEVELS]

    @property
    def ties(self) -> list[tuple[str, str, bool]]:
        return [(value, str(name), value == self.question.ties) for value, name in TIE_NAMES.items()]

    @property
    def jury_rules(self) -> list[tuple[str, str, bool]]:
        return [(value, str(name), value == self.question.jury_rule) for value, name in JURY_RULE_NAMES.items()]

    @property
    def _juries(self) -> str:
        if not self.question.juries:
            return ""
        return f"{'; '.join(self.question.juries)}: {JURY_RULE_NAMES[self.question.jury_rule]}"

    @property
    def summary(self) -> list[tuple[str, str]]:
        """The question in words, for below every figure: each thing that is chosen, with its name."""
        question = self.question
        lines = [
            (_("Rows"), column_name(question.rows)),
            (_("Columns"), column_name(question.columns) if question.columns else _("none")),
            (_("Only"), "; ".join(f"{column_name(column)} = {value}" for column, value in question.where)),
            (_("Raters"), ", ".join(question.raters) or _("all")),
            (_("Panels"), ", ".join(question.panels)),
            (_("Judges"), ", ".join(question.judges) if question.needs_judge else ""),
            (_("Runs"), ", ".join(question.runs)),
            (_("Juries"), self._juries),
            (_("Measures"), ", ".join(question.measures)),
            (_("Goals"), "; ".join(f"{name} = {value}" for name, value in question.goals)),
            (_("Clusters"), _("none: items of one scenario are taken for independent") if question.cluster else ""),
            (_("Reference"), str(REFERENCE_NAMES[question.reference]) if question.needs_judge else ""),
            (_("Tied modes"), str(TIE_NAMES[question.ties]) if question.needs_judge else ""),
            (_("Left out"), "; ".join(str(EXCLUSION_NAMES[name]) for name in question.exclude)),
            (_("Level"), question.level),
            (_("Criteria"), _("pooled") if question.pool else ""),
            (
                _("Interval"),
                f"{question.confidence:.0%}, {question.bootstrap} {_('resamples')}, {_('seed')} {question.seed}",
            ),
        ]
        return [(name, text) for name, text in lines if text]


def column_name(column: str) -> str:
    """A column of the ratings table as a reader knows it; an attribute by its own name."""
    return str(COLUMN_NAMES.get(column, column))


# --- views -----------------------------------------------------------------------------------------------------------
@require_safe
@login_required
@page_cache.cached_page
def explore_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The form and the answer. While a worker computes, the page asks for itself."""
    current = shown_campaign(request.user, project, campaign)
    choices = questions.question_choices(current)
    context: dict[str, Any] = {"title": _("Explore"), "project": current.project, "campaign": current}
    asked = [(name, text) for name, text in _pairs(request) if name != "seen"]
    try:
        question = questions.parsed_question(asked)
        questions.check_question(question, choices)
        snapshot, is_stale = answers.current_answer(current, question)
    except Refused as refused:
        form = QuestionForm(NumbersQuestion(), choices)
        context |= {"refusal": refused.sentence, "form": form, "presets": _presets(choices)}
        return render(request, "analytics/explore.html", context, status=422)
    computation = None
    if is_stale:
        tasks.ask_to_compute(campaign=current, settings=question)
        computation = computing.failed(campaign=current, settings=question)
    context |= {
        "form": QuestionForm(question, choices),
        "question": question,
        "snapshot": snapshot,
        "is_stale": is_stale,
        "failed": computation,
        "job": answers.open_job(current, question) if is_stale else None,
        "page": AnswerPage(current, snapshot, question) if snapshot else None,
        "presets": _presets(choices),
        "addresses": _addresses(current, question),
    }
    return render(request, "analytics/explore.html", context)


@require_safe
@login_required
def explore_file(request: HttpRequest, project: str, campaign: int, kind: str) -> HttpResponseBase:
    """The very cells of the page as CSV or JSON; what is wrong with the address, or not computed yet, as a sentence.

    While newer ones are computed, the stored cells are given: their time and revision are in the JSON. `part` in the
    address only names the CSV file. JSON has at most `MOST_ROWS` figures, from the one numbered `from` (0 the first),
    with their `total` and the address of the `next` ones.
    """
    current = shown_campaign(request.user, project, campaign)
    try:
        asked = [(name, text) for name, text in _pairs(request) if name not in ("part", "from")]
        question = questions.asked_question(current, asked)
        snapshot, is_stale = answers.current_answer(current, question)
    except Refused as refused:
        return HttpResponse(refused.sentence, status=422, content_type="text/plain; charset=utf-8")
    if is_stale:
        tasks.ask_to_compute(campaign=current, settings=question)
    if snapshot is None:
        text = _("A worker is computing these figures. Try again in a moment.")
        return HttpResponse(text, status=503, content_type="text/plain; charset=utf-8", headers={"Retry-After": "5"})
    if kind == "json":
        document = _part_of(answers.answer_document(snapshot), request)
        return JsonResponse(document, json_dumps_params={"ensure_ascii": False})
    about = slugify(request.GET.get("part", "")[:40]) or "cells"
    name = f"{slugify(current.name) or current.pk}-{about}.csv"
    return download(answers.answer_csv(snapshot), name=name, media_type="text/csv; charset=utf-8")


def _part_of(document: dict[str, Any], request: HttpRequest) -> dict[str, Any]:
    """A document with at most `MOST_ROWS` of its estimates."""
    given = request.GET.get("from", "")
    start, rows = int(given[:18]) if given.isdecimal() else 0, document["estimates"]
    end = start + MOST_ROWS
    query = urlencode([*((name, text) for name, text in _pairs(request) if name != "from"), ("from", str(end))])
    following = f"{request.path}?{query}" if end < len(rows) else None
    return {**document, "estimates": rows[start:end], "total": len(rows), "next": following}


def _pairs(request: HttpRequest) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in request.GET.lists() for text in texts]


def _presets(choices: QuestionChoices) -> list[tuple[str, str, str]]:
    """The studies whose questions this campaign can be asked, without exclusions that it has no data for."""
    asked = [(name, str(about), questions.question_of(query)) for name, about, query in PRESETS]
    return [
        (name, about, replace(question, exclude=tuple(sorted({*question.exclude} & {*choices.exclusions}))).query)
        for name, about, question in asked
        if choices.judges or not question.needs_judge
    ]


def _addresses(campaign: Campaign, question: NumbersQuestion) -> dict[str, str]:
    here, query = [campaign.project.slug, campaign.pk], f"?{question.query}" if question.query else ""
    return {
        "csv": reverse("numbers_cells_csv", args=here) + query,
        "json": reverse("numbers_cells_json", args=here) + query,
        "ratings": reverse("api_ratings_table", args=here) + query,
        "estimates": reverse("api_estimates", args=here) + query,
        "this": reverse("numbers_explore", args=here) + query,
    }
