"""The pages of imports of verdicts and of whole studies: preview, store, undo, problems."""

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
from annotation.imports import import_jobs, lifecycle
from annotation.models import Import
from annotation.readers import KnownStudy, Report, known_studies
from annotation.views import import_page, imports
from annotation.views.import_words import field_label
from judging import tasks
from judging.imports import verdicts
from judging.models import JudgeRun

NOT_OF_KIND = {
    Import.Kind.VERDICTS: "This import contains no verdicts.",
    Import.Kind.STUDY: "This import is not a whole study.",
}
PAGES = {Import.Kind.VERDICTS: "verdict_import", Import.Kind.STUDY: "study_import"}


def _find(request: HttpRequest, project: str, file_import: int, kind: Import.Kind) -> tuple[Project, Import]:
    """The project and the import, if it is of this kind; else 404."""
    current_project, of_project = imports.find_import(request, project, file_import)
    if of_project.kind != kind:
        raise Http404(NOT_OF_KIND[kind])
    return current_project, of_project


def _addresses(project: Project, file_import: Import) -> dict[str, str]:
    """The addresses of the forms and of the problems, for the templates."""
    page, arguments = PAGES[Import.Kind(file_import.kind)], [project.slug, file_import.pk]
    return {f"{step}_url": reverse(f"{page}_{step}", args=arguments) for step in ("store", "undo", "problems")}


def _store(request: HttpRequest, project: Project, file_import: Import) -> HttpResponse:
    """Store what the page shows: directly, or in the background if the files are large."""
    with refusals.refusals_as_messages(request):
        tasks.store_judge_import(file_import, request.user)
    return redirect(PAGES[Import.Kind(file_import.kind)], project.slug, file_import.pk)


def _undo(request: HttpRequest, project: Project, file_import: Import, sentence: str) -> HttpResponse:
    """Undo an import, directly or in the background; ``sentence`` is shown when it is undone."""
    with refusals.refusals_as_messages(request):
        if tasks.undo_or_enqueue(file_import, request.user):
            messages.success(request, sentence)
    return redirect(PAGES[Import.Kind(file_import.kind)], project.slug, file_import.pk)


# --- verdicts ---------------------------------------------------------------------------------------------------------


@require_safe
@login_required
def verdict_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Columns, first verdicts, problems and report; the runs, once it is stored."""
    current_project, shown_import = _find(request, project, file_import, Import.Kind.VERDICTS)
    seen = import_page.current_preview(shown_import, lambda: verdicts.preview_verdict_import(shown_import))
    stored_runs = [
        (str(run.judge), "") for run in JudgeRun.objects.filter(file_import=shown_import).select_related("judge")
    ]
    context = import_page.context(request, current_project, shown_import, seen)
    addresses = _addresses(current_project, shown_import)
    return render(request, "annotation/import.html", {**context, **addresses, "stored_links": stored_runs})


@require_safe
@login_required
def verdict_import_problems(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """What is wrong with the files, as CSV."""
    _project, shown_import = _find(request, project, file_import, Import.Kind.VERDICTS)
    return import_page.problems_csv(
        shown_import, import_page.current_preview(shown_import, lambda: verdicts.preview_verdict_import(shown_import))
    )


@require_POST
@login_required
def store_verdict_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Store the verdicts that the page shows."""
    return _store(request, *_find(request, project, file_import, Import.Kind.VERDICTS))


@require_POST
@login_required
def undo_verdict_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Remove the verdicts, and the judges that have no others."""
    sentence = _("Undone. The files are kept: store them again or discard them.")
    return _undo(request, *_find(request, project, file_import, Import.Kind.VERDICTS), sentence)


# --- whole studies ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PartShown:
    """One part of a study with its report; ``url`` is the import that stored it, once it is there."""

    kind: str
    stored_as: str
    files: list[str]
    report: Report
    url: str


def _shown(project: Project, parts: list[dict[str, Any]]) -> list[PartShown]:
    return [
        PartShown(
            Import.Kind(part["kind"]).label,
            part["made"],
            part["files"],
            Report.from_dict(part["report"]),
            reverse("import", args=[project.slug, part["import_id"]]) if part["import_id"] else "",
        )
        for part in parts
    ]


@require_safe
@login_required
def study_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Which study it is, and for each of its parts what would be stored, or what was."""
    current_project, shown_import = _find(request, project, file_import, Import.Kind.STUDY)
    seen = import_jobs.current_check(shown_import) if shown_import.state in lifecycle.UNSTORED else None
    parts = seen["parts"] if seen else shown_import.report.get("parts", [])
    shown = import_page.context(request, current_project, shown_import, None)
    study, constants = _study(shown_import), shown_import.target.get("constants", {})
    context = {
        **shown,
        "title": study.title if study else shown["title"],
        "seen": seen,
        **_addresses(current_project, shown_import),
        "study": study,
        "studies": known_studies().values(),
        "constants": [(name, field_label(name), constants.get(name, "")) for name in import_page.CONSTANTS["study"]],
        "parts": _shown(current_project, parts),
    }
    return render(request, "judging/study_import.html", context)


def _study(file_import: Import) -> KnownStudy | None:
    return known_studies().get(file_import.target.get("study", ""))


@require_safe
@login_required
def study_import_problems(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """What is wrong with the files, as CSV."""
    _project, shown_import = _find(request, project, file_import, Import.Kind.STUDY)
    return import_page.problems_csv(shown_import, import_jobs.current_check(shown_import))


@require_POST
@login_required
def store_study_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Store all parts of the study, in the background."""
    return _store(request, *_find(request, project, file_import, Import.Kind.STUDY))


@require_POST
@login_required
def undo_study_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Remove everything that it stored, while nothing depends on it."""
    sentence = _("Undone. The files are kept, and the rubrics too, because they are published.")
    return _undo(request, *_find(request, project, file_import, Import.Kind.STUDY), sentence)
