"""Rubrics, their versions and what changed between them; for leads and researchers."""

from __future__ import annotations

from difflib import unified_diff
from itertools import groupby
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts import access, languages, refusals
from accounts.models import Project
from accounts.refusals import Refused
from annotation import rubrics
from annotation.models import RubricVersion
from annotation.readers import CriterionDocument, RubricDocument, plain_number, rubric_from_dict


def _versions(request: HttpRequest, project: str) -> tuple[Project, QuerySet[RubricVersion]]:
    current_project = access.require(user=request.user, slug=project)
    versions = RubricVersion.objects.visible_to(request.user).filter(rubric__project=current_project)
    return current_project, versions.select_related("rubric__project")


def _version(request: HttpRequest, project: str, rubric: str, number: int) -> tuple[Project, RubricVersion]:
    current_project, versions = _versions(request, project)
    return current_project, get_object_or_404(versions, rubric__key=rubric, number=number)


@require_safe
@login_required
def rubrics_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every rubric with its versions, newest first."""
    current_project, rubric_versions = _versions(request, project)
    ordered = rubric_versions.order_by("rubric__key", "-number")
    listed = [(rubric, list(versions)) for rubric, versions in groupby(ordered, key=lambda version: version.rubric)]
    return render(
        request, "annotation/rubrics.html", {"title": _("Rubrics"), "project": current_project, "rubrics": listed}
    )


@require_safe
@login_required
def version_page(request: HttpRequest, project: str, rubric: str, number: int) -> HttpResponse:
    """One version: criteria and anchors in every language, and the changes since the version before."""
    current_project, shown = _version(request, project, rubric, number)
    document = rubric_from_dict(shown.document)
    beside = _versions(request, project)[1].filter(rubric=shown.rubric)
    earlier = beside.filter(number__lt=number).order_by("-number").first()
    context = {
        "title": shown.name(request.LANGUAGE_CODE),
        "project": current_project,
        "version": shown,
        "versions": beside,
        "earlier": earlier,
        "changes": _changes(rubric_from_dict(earlier.document), document) if earlier else [],
        **wording(document),
    }
    return render(request, "annotation/rubric_version.html", context)


def wording(document: RubricDocument) -> dict[str, Any]:
    """What `annotation/_wording.html` shows: the languages, and every criterion's texts in each of them."""
    spoken = _languages(document)
    return {
        "languages": [(tag, languages.endonym(tag), languages.direction(tag)) for tag in spoken],
        "criteria": [_criterion(criterion, spoken) for criterion in document.criteria],
    }


def _languages(document: RubricDocument) -> list[str]:
    """The languages of all texts, source language first."""
    tags = {*document.name}
    for criterion in document.criteria:
        tags |= criterion.name.keys() | criterion.question.keys() | criterion.definition.keys()
        tags |= {tag for anchors in criterion.anchors.values() for tag in anchors}
    return sorted(tags, key=lambda tag: (tag != document.source_language, tag))


def _criterion(document: CriterionDocument, spoken: list[str]) -> dict[str, Any]:
    """A criterion as rows of texts by language: its wording, then each point with its anchor."""
    values = [point.value for point in document.scale.points] or sorted(document.anchors)
    labels = {point.value: point.label for point in document.scale.points}
    wording = {_("Name"): document.name, _("Question"): document.question, _("Definition"): document.definition}
    return {
        "document": document,
        "wording": [(what, [text.get(tag, "") for tag in spoken]) for what, text in wording.items() if text],
        "points": [
            (
                plain_number(value),
                [(labels.get(value, {}).get(tag), document.anchors.get(value, {}).get(tag)) for tag in spoken],
            )
            for value in values
        ],
        "guidance": [
            (tag, document.mark_if.get(tag, ()), document.dont_mark_if.get(tag, ()), document.examples.get(tag, ()))
            for tag in spoken
            if any(tag in part for part in (document.mark_if, document.dont_mark_if, document.examples))
        ],
    }


def _changes(before: RubricDocument, after: RubricDocument) -> list[str]:
    """The removed and added lines of the documents' YAML, with some lines of context."""
    lines = unified_diff(before.as_yaml().splitlines(), after.as_yaml().splitlines(), lineterm="", n=2)
    return [line for line in lines if not line.startswith(("---", "+++"))]


@require_POST
@login_required
def publish_version(request: HttpRequest, project: str, rubric: str, number: int) -> HttpResponse:
    """Publish a draft; it can no longer be changed."""
    current_project, draft = _version(request, project, rubric, number)
    with refusals.refusals_as_messages(request):
        rubrics.publish(version=draft, actor=request.user)
        messages.success(request, _("Published. It can now be used in campaigns and can no longer be changed."))
    return redirect("rubric_version", current_project.slug, rubric, number)


@require_POST
@login_required
def withdraw_version(request: HttpRequest, project: str, rubric: str, number: int) -> HttpResponse:
    """Delete a draft."""
    current_project, draft = _version(request, project, rubric, number)
    try:
        rubrics.withdraw(version=draft, actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect("rubric_version", current_project.slug, rubric, number)
    return redirect("rubrics", current_project.slug)


@require_safe
@login_required
def version_yaml(request: HttpRequest, project: str, rubric: str, number: int) -> HttpResponse:
    """The document as YAML; importing it gives the same rubric."""
    _project, shown = _version(request, project, rubric, number)
    headers = {"Content-Disposition": f'attachment; filename="{rubric}-v{number}.yaml"'}
    return HttpResponse(
        rubric_from_dict(shown.document).as_yaml(), content_type="application/yaml; charset=utf-8", headers=headers
    )
