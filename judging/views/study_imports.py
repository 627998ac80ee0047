"""The pages of imports of whole studies: the preview of all parts, then the stored parts."""

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
from annotation.imports import checks, lifecycle
from annotation.models import Import
from annotation.readers import KnownStudy, Report, known_studies
from annotation.views import import_page, imports
from judging import tasks
from judging.imports import studies


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
            Import.Kind(each["kind"]).label,
            each["made"],
            each["files"],
            Report.from_dict(each["report"]),
            reverse("import", args=[project.slug, each["import_id"]]) if each["import_id"] else "",
        )
        for each in told
    ]


def _find(request: HttpRequest, project: str, file_import: int) -> tuple[Project, Import]:
    current_project, found = imports.find(request, project, file_import)
    if found.kind != Import.Kind.STUDY:
        raise Http404("This import is not a whole study.")
    return current_project, found


@require_safe
@login_required
def study_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Which study it is, and for each of its parts what would be stored, or what was."""
    current_project, found = _find(request, project, file_import)
    seen = checks.current(found) if found.state in lifecycle.UNSTORED else None
    told = seen["parts"] if seen else found.report.get("parts", [])
    shown = import_page.context(request, current_project, found, None)
    study, said = _study(found), found.target.get("constants", {})
    context = {
        **shown,
        "title": study.title if study else shown["title"],
        "seen": seen,
        "store_url": reverse("study_import_store", args=[current_project.slug, found.pk]),
        "undo_url": reverse("study_import_undo", args=[current_project.slug, found.pk]),
        "problems_url": reverse("study_import_problems", args=[current_project.slug, found.pk]),
        "study": study,
        "studies": known_studies().values(),
        "constants": {name: said.get(name, "") for name in import_page.CONSTANTS["dataset"]},
        "parts": _shown(current_project, told),
    }
    return render(request, "judging/study_import.html", context)


def _study(file_import: Import) -> KnownStudy | None:
    return known_studies().get(file_import.target.get("study", ""))


@require_safe
@login_required
def study_import_problems(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """What is wrong with the files, as CSV."""
    _room, found = _find(request, project, file_import)
    return import_page.problems_csv(found, checks.current(found))


@require_POST
@login_required
def store_study_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Have a worker store all of it."""
    current_project, found = _find(request, project, file_import)
    with refusals.refusals_as_messages(request):
        tasks.store(found, request.user)
    return redirect("study_import", current_project.slug, found.pk)


@require_POST
@login_required
def undo_study_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Take back everything it stored, while nothing depends on it."""
    current_project, found = _find(request, project, file_import)
    with refusals.refusals_as_messages(request):
        studies.undo(file_import=found, actor=request.user)
        messages.success(request, _("Undone. The files are kept, and the rubrics too, because they are published."))
    return redirect("study_import", current_project.slug, found.pk)
