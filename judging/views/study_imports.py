"""Imports of whole studies: what all of their parts would come to, then what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts import refusals
from accounts.models import Project
from annotation import checks, reception
from annotation.formats import studies as known
from annotation.formats.report import Report
from annotation.formats.studies import Study
from annotation.models import Intake
from annotation.views import intake_page, intakes
from judging import studies, tasks


@dataclass(frozen=True, slots=True)
class PartShown:
    """One part of a study with its report; ``url`` is the import that stored it, once it is there."""

    kind: str
    made: str
    files: list[str]
    report: Report
    url: str


def _shown(project: Project, told: list[dict[str, Any]]) -> list[PartShown]:
    return [
        PartShown(
            Intake.Kind(each["kind"]).label,
            each["made"],
            each["files"],
            Report.from_dict(each["report"]),
            reverse("intake", args=[project.slug, each["intake"]]) if each["intake"] else "",
        )
        for each in told
    ]


def _find(request: HttpRequest, project: str, intake: int) -> tuple[Project, Intake]:
    room, found = intakes.find(request, project, intake)
    if found.kind != Intake.Kind.STUDY:
        raise Http404("This import is of no whole study.")
    return room, found


@require_safe
@login_required
def study_import(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """Which study it is, and for each of its parts what would be stored, or what was."""
    room, found = _find(request, project, intake)
    seen = checks.current(found) if found.state in reception.UNSTORED else None
    told = seen["parts"] if seen else found.report.get("parts", [])
    shown = intake_page.context(request, room, found, None)
    study, said = _study(found), found.target.get("constants", {})
    context = {
        **shown,
        "title": study.title if study else shown["title"],
        "seen": seen,
        "store_url": reverse("study_import_store", args=[room.slug, found.pk]),
        "undo_url": reverse("study_import_undo", args=[room.slug, found.pk]),
        "problems_url": reverse("study_import_problems", args=[room.slug, found.pk]),
        "study": study,
        "studies": known.studies().values(),
        "constants": {name: said.get(name, "") for name in intake_page.CONSTANTS["dataset"]},
        "parts": _shown(room, told),
    }
    return render(request, "judging/study_import.html", context)


def _study(intake: Intake) -> Study | None:
    return known.studies().get(intake.target.get("study", ""))


@require_safe
@login_required
def study_import_problems(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """What is wrong with the files, as CSV."""
    _room, found = _find(request, project, intake)
    return intake_page.problems_csv(found, checks.current(found))


@require_POST
@login_required
def store_study_import(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """Have a worker store all of it."""
    room, found = _find(request, project, intake)
    with refusals.told(request):
        tasks.store(found, request.user)
    return redirect("study_import", room.slug, found.pk)


@require_POST
@login_required
def undo_study_import(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """Take back everything it stored, while nothing depends on it."""
    room, found = _find(request, project, intake)
    with refusals.told(request):
        studies.undo(intake=found, actor=request.user)
        messages.success(request, _("Undone. The files are still here, and so are the rubrics, which are published."))
    return redirect("study_import", room.slug, found.pk)
