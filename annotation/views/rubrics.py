"""Rubrics: their versions, what changed between them, and the form that writes them; for leads and researchers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import unified_diff
from itertools import groupby
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, languages, refusals
from accounts.models import Project
from accounts.refusals import Refused
from annotation import rubrics
from annotation.desk import presentation
from annotation.models import Criterion, RubricVersion
from annotation.readers import CriterionDocument, RubricDocument, plain_number, rubric_from_dict
from annotation.views import rubric_form
from annotation.views.rubric_form import RubricFields


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
    by_rubric = [list(versions) for _rubric, versions in groupby(ordered, key=lambda version: version.rubric)]
    listed = [(versions[0].name(request.LANGUAGE_CODE), versions) for versions in by_rubric]
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
        "publish_warning": _publish_warning(shown) if shown.state == RubricVersion.State.DRAFT else "",
        **wording(document),
    }
    return render(request, "annotation/rubric_version.html", context)


def _publish_warning(version: RubricVersion) -> str:
    """What publishing leads to, and in which languages texts are missing."""
    sentences = [_("It can then be used in campaigns and can no longer be changed.")]
    if missing := rubric_form.missing_texts(version.document):
        counts = ", ".join(f"{languages.both_names(tag, get_language())}: {count}" for tag, count in missing)
        sentences.append(_("Missing texts: %s. Annotators see these in the source language.") % counts)
    return " ".join(sentences)


def wording(document: RubricDocument) -> dict[str, Any]:
    """What `annotation/_wording.html` shows: the languages, and every criterion's texts in each of them."""
    spoken = _languages(document)
    return {
        "languages": [(tag, languages.endonym(tag), languages.direction(tag)) for tag in spoken],
        "source_language": document.source_language,
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
    own = {*document.name, *document.question, *document.definition}
    own = own.union(*document.anchors.values(), *labels.values())
    wording = {_("Name"): document.name, _("Question"): document.question, _("Definition"): document.definition}
    return {
        "document": document,
        "level": Criterion.Level(document.scale.level).label,
        "states": [document.translations.get(tag, "draft") if tag in own else "" for tag in spoken],
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


# --- the form -------------------------------------------------------------------------------------------------------
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def new_rubric(request: HttpRequest, project: str) -> HttpResponse:
    """A rubric by form, empty or begun from another rubric's version (``?from=``)."""
    current_project, versions = _versions(request, project)
    if request.method != "POST":
        begun = _begun_from(versions, request.GET.get("from", ""))
        return _show_form(request, current_project, begun)

    def save(document: RubricDocument, _former_digest: str) -> RubricVersion:
        return rubrics.draft_new(project=current_project, document=document, actor=request.user)

    return _posted_form(request, current_project, save)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def edit_rubric(request: HttpRequest, project: str, rubric: str, number: int) -> HttpResponse:
    """Edit a draft, or begin the next version from a published one."""
    current_project, edited = _version(request, project, rubric, number)
    if request.method != "POST":
        return _show_form(request, current_project, rubric_form.fields_of(edited.document), edited=edited)

    def save(document: RubricDocument, former_digest: str) -> RubricVersion:
        return rubrics.edit(version=edited, document=document, former_digest=former_digest, actor=request.user)

    return _posted_form(request, current_project, save, edited=edited)


def _begun_from(versions: QuerySet[RubricVersion], chosen: str) -> RubricFields:
    """The fields of a copy without its key, or of a rubric with one empty criterion."""
    if chosen.isdecimal() and (version := versions.filter(pk=int(chosen[:18])).first()):
        fields = rubric_form.fields_of(version.document)
        fields.key = ""
        return fields
    fields = RubricFields()
    rubric_form.change(fields, "add-criterion", "")
    return fields


def _posted_form(
    request: HttpRequest,
    project: Project,
    save: Callable[[RubricDocument, str], RubricVersion],
    *,
    edited: RubricVersion | None = None,
) -> HttpResponse:
    """Save, or carry out another button of the form and show it again with everything that was typed."""
    fields, action = rubric_form.posted_fields(request.POST), request.POST.get("action", "save")
    if edited:
        fields.key = edited.rubric.key
    if action != "save":
        try:
            focus = rubric_form.change(fields, action, request.POST.get("new_language", ""))
        except ValueError as error:
            return _show_form(request, project, fields, edited=edited, refusal=str(error))
        return _show_form(request, project, fields, edited=edited, focus=focus)
    parsed = fields.parsed()
    if parsed.document is None:
        problems = rubric_form.problems_by_criterion(parsed)
        return _show_form(request, project, fields, edited=edited, problems=problems)
    try:
        version = save(parsed.document, request.POST.get("digest", ""))
    except Refused as refused:
        return _show_form(request, project, fields, edited=edited, refusal=refused.sentence)
    messages.success(request, _("Saved as a draft. Publish it to use it in campaigns."))
    return redirect("rubric_version", project.slug, version.rubric.key, version.number)


def _show_form(
    request: HttpRequest,
    project: Project,
    fields: RubricFields,
    *,
    edited: RubricVersion | None = None,
    problems: Mapping[int, list[str]] | None = None,
    refusal: str = "",
    focus: str = "",
) -> HttpResponse:
    context = {
        "title": _("Edit %s") % edited if edited else _("New rubric"),
        "project": project,
        "edited": edited,
        "digest": request.POST.get("digest") or (rubrics.opened_digest(edited) if edited else ""),
        "refusal": refusal,
        **rubric_form.shown_fields(fields, problems or {}, focus),
    }
    status = 400 if problems or refusal else 200
    return render(request, "annotation/rubric_form.html", context, status=status)


@require_POST
@login_required
def preview_rubric(request: HttpRequest, project: str) -> HttpResponse:
    """The criteria of the form as annotators see them on the desk; nothing is stored."""
    _versions(request, project)
    fields = rubric_form.posted_fields(request.POST)
    parsed = list(fields.parsed_alone())
    complete = [(one, part.document) for one, part in zip(fields.criteria, parsed, strict=True) if part.document]
    criteria = [rubrics.unsaved_criteria(document)[0] for _fields, document in complete]
    wanted, source = fields.preview_language, fields.languages[0]
    language = presentation.text_language(criteria, wanted)
    desk = {"text_language": language, "text_direction": languages.direction(language), "item": {"language": language}}
    missing = [", ".join(rubric_form.missing_parts(one, source, wanted)) for one, _document in complete]
    context = {
        "desk": desk,
        "criteria": list(zip(presentation.show_criteria(criteria, language, {}), missing, strict=True)),
        "incomplete": len(parsed) - len(criteria),
        "language_name": languages.both_names(wanted, get_language()),
        "source_name": languages.both_names(source, get_language()),
    }
    return render(request, "annotation/_rubric_preview.html", context)
