"""Pages of sections that are questions each: Agreement, Calibration, Generators, Planner.

A section has an address of its own. The page shows one; the others ask for themselves when their fold is opened, and
again every two seconds while a worker computes their answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.models import User
from accounts.refusals import Refused
from analytics import answer_pages, page_cache, tasks
from analytics.agreement import chosen_criterion
from analytics.answer_pages import AnswerPage, criterion_names
from analytics.answers import computing
from analytics.questions.asked import QuestionChoices, check_question, parsed_question, question_choices
from analytics.questions.question import NumbersQuestion, pairs_of
from analytics.questions.reference_rules import OF_LEVELS
from analytics.study.choice import as_filter
from analytics.views.explore import QuestionForm
from analytics.views.items import shown_campaign
from analytics.views.sections import Section, ShownSection
from analytics.workflow import SURFACE
from annotation.models import Campaign, Criterion

Asked = Callable[[Campaign, Section, NumbersQuestion, QuestionChoices], NumbersQuestion]
Offered = Callable[[Campaign, NumbersQuestion, QuestionChoices], dict[str, Any]]


def parameter_pairs(fields: QueryDict) -> list[tuple[str, str]]:
    """The parameters of an address, one by one; criterion and language of the bar are filters."""
    return [as_filter(name, text) for name, texts in fields.lists() for text in texts if text or name != "reference"]


# --- what pages about a judge ask ------------------------------------------------------------------------------------
EVERY_JUDGE = frozenset({"judges", "parallel", "juries"})
"""Sections on all judges, not on the chosen one."""
OWN_COLUMNS = frozenset({"ranks", "rankings", "judge", "survival", "surface", "parallel", "pivot", "juries"})
"""Sections on rankings in languages, which no other column cuts."""
PREPARED_SECTIONS = 4
"""Sections of a page, from the first, whose answers are computed before somebody asks."""


def chosen_judge(question: NumbersQuestion, choices: QuestionChoices) -> str:
    """The judge that a page is about: the first that its question names, or the first that there is; "" for none."""
    return next(iter((*question.judges, *choices.listed_judges(question))), "")


def judge_question(
    campaign: Campaign, part: Section, question: NumbersQuestion, choices: QuestionChoices
) -> NumbersQuestion:
    """The question of a section, from that of the page: the same judge, filters, raters, exclusions and intervals.

    Columns by language are those of the page's question, where it names others. A section about one criterion takes the
    first one that the page's question leaves; one that pools criteria takes those on the scale of that one.
    Where the page's question has no reference, bias and correlations are against the panel's mean, as in decisions.
    """
    columns = part.columns
    if columns == "language" and question.columns not in ("", part.rows, "judge") and part.name not in OWN_COLUMNS:
        columns = question.columns
    where = question.where
    chosen = chosen_criterion(question, choices.criteria)
    if chosen and (part.one_criterion or part.name == "pooled"):
        keys = [chosen] if part.one_criterion else _on_one_scale(campaign, question, chosen)
        where = (*(pair for pair in where if pair[0] != "criterion"), *(("criterion", key) for key in keys))
    judge = chosen_judge(question, choices)
    return replace(
        question,
        rows=part.rows,
        columns=columns,
        statistics=part.statistics,
        where=tuple(sorted(where)),
        judges=() if part.name in EVERY_JUDGE or not judge else (judge,),
        pool=part.name == "pooled",
        measures=SURFACE if part.name == "surface" else (),
        variants=(),
        reference=question.reference or ("mean" if OF_LEVELS.issuperset(part.statistics) else ""),
    )


def _on_one_scale(campaign: Campaign, question: NumbersQuestion, chosen: str) -> list[str]:
    """The criteria that match a question's filters and have the same scale as the chosen criterion."""
    named = [value for name, value in question.where if name == "criterion"]
    scales = {
        each.key: (each.level, each.minimum, each.maximum, [point["value"] for point in each.points])
        for each in campaign.rubric_version.criteria.all()
    }
    return [key for key in scales if scales[key] == scales[chosen] and (not named or key in named)]


# --- the page -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class PartsPage:
    """A page of sections. `name`: in its addresses, `numbers_NAME` and `numbers_NAME_part`, and in its files' names.

    `sections` in their order. `opening` names the one that is shown at once, the first where it names none. `asked`:
    the question of a section. `about`: what the page's question is about, which a section is given; it refuses a
    question that the page is not for. `pairs`: the parameters of an address, where the form has fields of its own.
    `offered`: what else the form and the page need, `nothing` among it where there is nothing to show and why.
    `has_reference`: whether figures are against a reference label; elsewhere the bar's choice changes no question.
    """

    name: str
    title: Any
    sections: tuple[Section, ...]
    offered: Offered
    asked: Asked = judge_question
    about: Callable[[NumbersQuestion], str] = lambda _question: ""
    opening: Callable[[QuestionChoices], str] = lambda _choices: ""
    pairs: Callable[[QueryDict], list[tuple[str, str]]] = parameter_pairs
    has_reference: bool = False

    @property
    def parts(self) -> dict[str, Section]:
        """The sections by name."""
        return {section.name: section for section in self.sections}

    def usual_questions(self, campaign: Campaign, choices: QuestionChoices) -> list[NumbersQuestion]:
        """What its first sections ask without a choice, so that a worker can answer before somebody opens the page."""
        question = NumbersQuestion()
        try:
            self.about(question)
            if "nothing" in self.offered(campaign, question, choices):
                return []
            return [self.asked(campaign, part, question, choices) for part in self.sections[:PREPARED_SECTIONS]]
        except Refused:  # the page says why
            return []

    @property
    def routes(self) -> list[URLPattern]:
        """The addresses of the page and of its sections."""
        whole = f"p/<slug:project>/numbers/<int:campaign>/{self.name}/"
        return [
            path(whole, self.whole, name=f"numbers_{self.name}"),
            path(f"{whole}<slug:part>/", self.one, name=f"numbers_{self.name}_part"),
        ]

    @method_decorator([require_safe, login_required, page_cache.cached_page])
    def whole(self, request: HttpRequest, project: str, campaign: int) -> HttpResponse:
        """The form and one section; the others are folded and ask for themselves when they are opened."""
        current = shown_campaign(request.user, project, campaign)
        choices = question_choices(current)
        context = self._context(current) | {"title": self.title}
        try:
            question = self._question(request, choices)
            offered = self.offered(current, question, choices)
            opening = self._opening(choices)
            first = {} if "nothing" in offered else self._part(current, question, opening, choices, request.user)
        except Refused as refused:
            question = NumbersQuestion()
            offered = self.offered(current, question, choices)
            context |= {
                "refusal": refused.sentence,
                "form": QuestionForm(question, choices, criterion_names(current)),
                **offered,
            }
            return render(request, "analytics/agreement.html", context, status=422)
        sections = [
            {"name": each.name, "title": each.title, "address": self._address(current, question, each.name)}
            for each in self.sections
            if first and each != opening and not each.is_catalogue
        ]
        context |= {
            "form": QuestionForm(question, choices, criterion_names(current)),
            "question": question,
            "sections": sections,
        }
        return render(request, "analytics/agreement.html", {**context, **offered, **first})

    @method_decorator([require_safe, login_required, page_cache.cached_page])
    def one(self, request: HttpRequest, project: str, campaign: int, part: str) -> HttpResponse:
        """One section: by itself for the page that asks for it, as a page of its own for a person."""
        if part not in self.parts:
            raise Http404("This page has no such section.")
        current = shown_campaign(request.user, project, campaign)
        choices = question_choices(current)
        is_inserted = "HX-Request" in request.headers
        template = "analytics/_agreement_part.html" if is_inserted else "analytics/agreement.html"
        about = {
            "title": self.parts[part].title,
            "is_alone": True,
            "is_folded": is_inserted and part != self._opening(choices).name,
        }
        context = self._context(current) | about
        try:
            question = self._question(request, choices)
            context |= {"question": question, **self._part(current, question, self.parts[part], choices, request.user)}
        except Refused as refused:
            about = {"refusal": refused.sentence, "judge": chosen_judge(NumbersQuestion(), choices)}
            return render(request, template, {**context, **about}, status=422)
        if part not in EVERY_JUDGE:
            context["judge"] = chosen_judge(question, choices)
        return render(request, template, context)

    def _opening(self, choices: QuestionChoices) -> Section:
        return self.parts.get(self.opening(choices), self.sections[0])

    def _context(self, campaign: Campaign) -> dict[str, Any]:
        here = reverse(f"numbers_{self.name}", args=[campaign.project.slug, campaign.pk])
        return {"project": campaign.project, "campaign": campaign, "page_title": self.title, "page_address": here}

    def _question(self, request: HttpRequest, choices: QuestionChoices) -> NumbersQuestion:
        pairs = self.pairs(request.GET)
        question = parsed_question([pair for pair in pairs if self.has_reference or pair[0] != "reference"])
        self.about(question)
        check_question(question, choices)
        return question

    def _part(
        self, campaign: Campaign, question: NumbersQuestion, part: Section, choices: QuestionChoices, actor: User
    ) -> dict[str, Any]:
        """The answer to a section's question, or how far it is."""
        asked = self.asked(campaign, part, question, choices)
        snapshot, is_stale = answer_pages.current_answer(campaign, asked)
        failed = None
        if is_stale:
            tasks.ask_to_compute(campaign=campaign, settings=asked)
            failed = computing.failed(campaign=campaign, settings=asked)
        page = AnswerPage(campaign, snapshot, asked) if snapshot else None
        if snapshot:
            answer_pages.record_labels_shown(snapshot, campaign, actor)
        return {
            "part": part,
            "part_title": part.title,
            "part_about": part.about,
            "part_empty": _no_order(campaign, part, asked) or part.empty,
            "shown": ShownSection(part, page, asked, self.about(question)) if page else None,
            "snapshot": snapshot,
            "is_stale": is_stale,
            "failed": failed,
            "job": answer_pages.open_job(campaign, asked) if is_stale else None,
            "addresses": self._addresses(campaign, question, asked, part),
            "criteria": _criteria_choices(campaign, asked, choices) if part.one_criterion else [],
            "kept": [
                pair for pair in pairs_of(question) if not (pair[0] == "where" and pair[1].startswith("criterion="))
            ],
        }

    def _address(self, campaign: Campaign, question: NumbersQuestion, part: str) -> str:
        address = reverse(f"numbers_{self.name}_part", args=[campaign.project.slug, campaign.pk, part])
        return f"{address}?{question.query}" if question.query else address

    def _addresses(
        self, campaign: Campaign, question: NumbersQuestion, asked: NumbersQuestion, part: Section
    ) -> dict[str, str]:
        here, query = [campaign.project.slug, campaign.pk], f"?{asked.query}" if asked.query else ""
        kinds = {"csv": "numbers_cells_csv", "json": "numbers_cells_json", "explore": "numbers_explore"}
        found = {name: reverse(route, args=here) + query for name, route in kinds.items()}
        labels = {
            f"labels_{kind}": reverse("api_soft_labels", args=[*here, kind]) + query
            for kind in ("csv", "json")
            if self.name == "agreement" and part.name == "items"
        }
        alone = reverse(f"numbers_{self.name}_part", args=[*here, part.name])
        this = f"{alone}?{question.query}" if question.query else alone
        found["csv"] += f"{'&' if query else '?'}part={self.name}-{part.name}"
        return {**found, **labels, "this": this, "alone": alone, "api": reverse("api_estimates", args=here) + query}


def _no_order(campaign: Campaign, part: Section, asked: NumbersQuestion) -> str:
    """Why a section has no figures, where the only reason is that its criteria are nominal."""
    wanted = {value for column, value in asked.where if column == "criterion"}
    criteria = [each for each in campaign.rubric_version.criteria.all() if each.key in (wanted or {each.key})]
    if not part.needs_order or {asked.level or each.level for each in criteria} != {Criterion.Level.NOMINAL}:
        return ""
    return _("This needs scores in order. The labels of these criteria have none: their scale is nominal.")


def _criteria_choices(
    campaign: Campaign, asked: NumbersQuestion, choices: QuestionChoices
) -> list[tuple[str, str, bool]]:
    """The criteria that a section about one of them can be about: the parameter's value, its name, whether chosen."""
    names = criterion_names(campaign)
    chosen = dict(asked.where).get("criterion", "")
    return [(f"criterion={key}", names[key], key == chosen) for key in choices.criteria]
