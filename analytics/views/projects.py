"""A project's first page: what it has, how far it is, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import access
from accounts.models import Project, User
from analytics import page_cache
from annotation.models import Annotation, Assignment, Campaign, Dataset, Item, Panel, PanelSeat, RubricVersion
from judging.models import Call, Judge, JudgeRun

RUNS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do on the way to the numbers."""

    title: str
    why: str
    url_name: str
    verb: str
    is_done: bool


@dataclass(frozen=True, slots=True)
class Holdings:
    """How much of everything the project has."""

    datasets: int
    items: int
    rubrics: int
    panels: int
    annotators: int
    campaigns: int
    judges: int
    annotations: int

    @property
    def any(self) -> bool:
        """Whether there is something to count yet."""
        return bool(self.datasets or self.rubrics or self.panels or self.judges)


def holdings(*, project: Project, user: User) -> Holdings:
    """Counted as this person may see them."""
    datasets = Dataset.objects.visible_to(user).filter(project=project)
    panels = Panel.objects.visible_to(user).filter(project=project)
    campaigns = Campaign.objects.visible_to(user).filter(project=project)
    published = RubricVersion.objects.visible_to(user).published().filter(rubric__project=project)
    return Holdings(
        datasets=datasets.count(),
        items=Item.objects.filter(dataset__in=datasets).count(),
        rubrics=published.count(),
        panels=panels.count(),
        annotators=PanelSeat.objects.filter(panel__in=panels).values("annotator").distinct().count(),
        campaigns=campaigns.count(),
        judges=Judge.objects.visible_to(user).filter(project=project).count(),
        annotations=Annotation.objects.filter(campaign__in=campaigns, superseded_at=None).count(),
    )


def steps(held: Holdings) -> list[Step]:
    """The way from an empty project to its numbers, in order."""
    way = (
        ("datasets", held.datasets, _("Upload"), _("Upload a dataset"), _("What people and judges will rate.")),
        ("rubrics", held.rubrics, _("Publish"), _("Publish a rubric"), _("Criteria, and what each point means.")),
        (
            "panels",
            held.annotators,
            _("Create"),
            _("Create a panel"),
            _("Native speakers who rate one language together."),
        ),
        ("campaigns", held.campaigns, _("Open"), _("Open a campaign"), _("One dataset on one rubric, for the panels.")),
        ("judges", held.judges, _("Declare"), _("Declare a judge"), _("A model that rates the same items.")),
        ("numbers", held.annotations, _("Read"), _("Read the numbers"), _("Agreement and calibration.")),
    )
    return [Step(title, why, url_name, verb, bool(count)) for url_name, count, verb, title, why in way]


def campaigns(*, project: Project, user: User) -> QuerySet[Campaign, Any]:
    """With `slots`, `submitted` and `annotations`, the imported ones included."""
    current = Annotation.objects.filter(campaign=OuterRef("pk"), superseded_at=None).order_by().values("campaign")
    return (
        Campaign.objects.visible_to(user)
        .filter(project=project)
        .select_related("dataset", "rubric_version__rubric")
        .annotate(
            slots=Count("duties__assignments"),
            submitted=Count("duties__assignments", filter=Q(duties__assignments__state=Assignment.State.SUBMITTED)),
            annotations=Coalesce(Subquery(current.annotate(n=Count("pk")).values("n")), 0),
        )
    )


def judge_runs(*, project: Project, user: User) -> QuerySet[JudgeRun, Any]:
    """The newest runs, with how many calls were `planned` and how many are `done`."""
    over = Q(calls__state__in=[Call.State.SETTLED, Call.State.FAILED])
    return (
        JudgeRun.objects.visible_to(user)
        .filter(project=project)
        .select_related("judge", "dataset")
        .annotate(planned=Count("calls"), done=Count("calls", filter=over))[:RUNS_SHOWN]
    )


@require_safe
@login_required
@page_cache.cached_page
def project_page(request: HttpRequest, project: str) -> HttpResponse:
    """What there is, how far each campaign and judge run is, and what to do next."""
    current_project = access.require(user=request.user, slug=project)
    held = holdings(project=current_project, user=request.user)
    to_do = steps(held)
    context = {
        "title": current_project.name,
        "subtitle": current_project.description,
        "project": current_project,
        "held": held,
        "steps": to_do,
        "next_step": next((step for step in to_do if not step.is_done), None),
        "campaigns": campaigns(project=current_project, user=request.user),
        "runs": judge_runs(project=current_project, user=request.user),
    }
    return render(request, "analytics/project.html", context)
