"""Imports, from the choice of files to the undo; for leads and researchers."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import FileResponse, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, refusals
from accounts.models import Project
from accounts.refusals import Refused
from annotation import tasks
from annotation.generator_names import CHOICES
from annotation.imports import batches, lifecycle, removal
from annotation.models import Dataset, Import, ImportFile, RubricVersion
from annotation.readers import File, FormatError, Mapping, parquet_is_installed
from annotation.views import import_page
from annotation.views.campaigns import show_refusal

STORED_HERE = (Import.Kind.DATASET, Import.Kind.RUBRIC, Import.Kind.RATINGS)


class ManyFiles(forms.FileField):
    """Every chosen file, as a list."""

    widget = forms.ClearableFileInput

    def clean(self, given: Any, initial: Any = None) -> list[Any]:
        return [super(ManyFiles, self).clean(each, initial) for each in given]


class ManyFilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True

    def value_from_datadict(self, posted: Any, files: Any, name: str) -> list[Any]:
        return list(files.getlist(name))


class UploadForm(forms.Form):
    """Files in the form itself, or the keys of those that the page's script has uploaded already."""

    files = ManyFiles(label=gettext_lazy("Files"), widget=ManyFilesInput, required=False)  # type: ignore[assignment]
    kind = forms.ChoiceField(
        label=gettext_lazy("Content"),
        choices=[("", gettext_lazy("Detect from the content")), *Import.Kind.choices],
        required=False,
    )

    def clean(self) -> dict[str, Any]:
        said = super().clean() or {}
        try:
            said["keys"] = [UUID(key) for key in cast(QueryDict, self.data).getlist("upload")]
        except ValueError:
            raise forms.ValidationError(_("This file is not in the upload. Upload it again.")) from None
        return said


def _imports(request: HttpRequest, project: str) -> tuple[Project, QuerySet[Import]]:
    current_project = access.require(user=request.user, slug=project)
    return current_project, Import.objects.visible_to(request.user).filter(project=current_project).select_related(
        "project", "job"
    )


def find(request: HttpRequest, project: str, file_import: int) -> tuple[Project, Import]:
    """The project and the import at an address, for those who may see it."""
    current_project, found = _imports(request, project)
    return current_project, get_object_or_404(found, pk=file_import)


@require_safe
@login_required
def imports_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every import of the project, newest first."""
    current_project, found = _imports(request, project)
    listed = found.select_related("created_by").prefetch_related("files")[:200]
    return render(
        request, "annotation/imports.html", {"title": _("Imports"), "project": current_project, "imports": listed}
    )


@require_http_methods(["GET", "POST"])
@login_required
def new_import(request: HttpRequest, project: str) -> HttpResponse:
    """Choose files; what they are is guessed, and shown on the next page."""
    current_project, _found = _imports(request, project)
    asked = request.GET.get("kind", "")
    form = UploadForm(request.POST or None, request.FILES or None, initial={"kind": asked})
    if form.is_valid():
        try:
            return redirect(import_page.address(_opened(request, current_project, form.cleaned_data)))
        except Refused as refused:
            show_refusal(form, refused)
    context = {"title": _("Import"), "project": current_project, "form": form, "limit": settings.UPLOAD_LIMIT}
    return render(request, "annotation/import_new.html", {**context, "has_parquet": parquet_is_installed()})


def _opened(request: HttpRequest, project: Project, said: dict[str, Any]) -> Import:
    """The first of the imports that the files make; a look at each large one is under way."""
    files: list[File] = [(each.name, each.file) for each in said["files"]]
    lifecycle.check_sizes({each.name: each.size for each in said["files"]})
    extends = import_page.key(request.GET.get("extends", ""))  # the way from a dataset's page: add items to it
    opened = batches.receive(
        project=project,
        files=files,
        keys=said["keys"],
        kind=said["kind"],
        target={"extends": extends} if extends else None,
        actor=request.user,
    )
    for file_import in opened:
        tasks.look(file_import)
    if len(opened) > 1:
        sentence = _(
            "The files contain several kinds of data. Each kind is a separate import. Store them in the order shown."
        )
        messages.info(request, sentence)
    return opened[0]


@require_safe
@login_required
def show_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Columns, first rows, problems and report of an import; its progress while it is stored; what it made, then."""
    current_project, found = find(request, project, file_import)
    if found.kind not in STORED_HERE:
        return redirect(import_page.address(found))
    seen = import_page.seen(found, lambda: lifecycle.preview(found))
    context = import_page.context(request, current_project, found, seen)
    addresses = {"store_url": reverse("import_store", args=[current_project.slug, found.pk])}
    addresses["undo_url"] = reverse("import_undo", args=[current_project.slug, found.pk])
    addresses["problems_url"] = reverse("import_problems", args=[current_project.slug, found.pk])
    return render(request, "annotation/import.html", {**context, **addresses, "made": _made(found)})


def _made(file_import: Import) -> list[tuple[str, str]]:
    """Name and address of what a stored import made."""
    slug = file_import.project.slug
    made = [
        (str(dataset), reverse("dataset", args=[slug, dataset.pk]))
        for dataset in Dataset.objects.filter(file_import=file_import)
    ]
    versions = RubricVersion.objects.filter(pk__in=file_import.report.get("versions", [])).select_related("rubric")
    made += [
        (str(version), reverse("rubric_version", args=[slug, version.rubric.key, version.number]))
        for version in versions
    ]
    if campaign := file_import.report.get("campaign"):
        made.append((_("Campaign"), reverse("campaign", args=[slug, campaign])))
    return made


@require_POST
@login_required
def map_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Take over the page's table, a saved mapping, or one written as YAML; then look again."""
    _room, found = find(request, project, file_import)
    try:
        _revise(request, found)
        tasks.look(found)
    except FormatError as error:
        import_page.keep_written(request, found, str(error.problem))
    except Refused as refused:
        messages.error(request, refused.sentence)
    return redirect(import_page.address(found))


def _revise(request: HttpRequest, file_import: Import) -> None:
    form, actor = request.POST, request.user
    if (names := form.get("generator_names")) in CHOICES:
        lifecycle.revise(file_import=file_import, target={**file_import.target, "generator_names": names}, actor=actor)
    elif "mapping_of" in form:
        mapping = import_page.chosen_mapping(user=request.user, file_import=file_import, choice=form["mapping_of"])
        lifecycle.revise(file_import=file_import, mapping=mapping, actor=actor)
    elif file_import.kind == Import.Kind.STUDY:
        lifecycle.revise(file_import=file_import, target=import_page.read_target(form, file_import), actor=actor)
    elif "yaml" in form:
        lifecycle.revise(file_import=file_import, mapping=Mapping.from_yaml("mapping", form["yaml"]), actor=actor)
    elif form.get("kind", file_import.kind) != file_import.kind and form["kind"] in Import.Kind.values:
        target = batches.likely_target(file_import.project, form["kind"])
        lifecycle.revise(file_import=file_import, kind=form["kind"], target=target, actor=actor)
    else:
        target = import_page.read_target(form, file_import)
        mapping = import_page.read_mapping(form, lifecycle.mapping_of(file_import))
        lifecycle.revise(file_import=file_import, mapping=mapping, is_whole=True, target=target, actor=actor)


@require_POST
@login_required
def store_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Store what the page shows: directly, or in the background if the files are large."""
    _room, found = find(request, project, file_import)
    with refusals.refusals_as_messages(request):
        if found.kind not in STORED_HERE:
            raise Refused(_("Store this import on its own page."), code="wrong_kind")
        tasks.store(found, request.user)
    return redirect(import_page.address(found))


@require_POST
@login_required
def check_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Let a worker look at a large import again."""
    _room, found = find(request, project, file_import)
    with refusals.refusals_as_messages(request):
        tasks.look(found)
    return redirect(import_page.address(found))


@require_POST
@login_required
def also_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Open one more import of the same files, for what else they hold."""
    _room, found = find(request, project, file_import)
    try:
        opened = batches.also(file_import=found, kind=request.POST.get("kind", ""), actor=request.user)
        tasks.look(opened)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect(import_page.address(found))
    return redirect(import_page.address(opened))


@require_POST
@login_required
def take_apart(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Import the files of a study kind by kind after all."""
    _room, found = find(request, project, file_import)
    try:
        opened = batches.apart(file_import=found, actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect(import_page.address(found))
    for each in opened:
        tasks.look(each)
    return redirect(import_page.address(opened[0]))


@require_safe
@login_required
def import_progress(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """How far checking or storing is; asks the page to reload once it is over."""
    _room, found = find(request, project, file_import)
    answer = render(request, "annotation/_import_progress.html", {"file_import": found, "way": import_page.way(found)})
    if found.state not in import_page.UNDER_WAY:
        answer["HX-Refresh"] = "true"
    return answer


@require_POST
@login_required
def undo_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Take back what was stored, while nothing depends on it."""
    _room, found = find(request, project, file_import)
    with refusals.refusals_as_messages(request):
        if found.kind not in STORED_HERE:
            raise Refused(_("Undo this import on its own page."), code="wrong_kind")
        removal.undo(file_import=found, actor=request.user)
        messages.success(request, _("Undone. The files are still here; store them again or discard them."))
    return redirect(import_page.address(found))


@require_POST
@login_required
def discard_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Delete an import that stored nothing, with its files."""
    current_project, found = find(request, project, file_import)
    try:
        removal.discard(file_import=found, actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect(import_page.address(found))
    return redirect("datasets", current_project.slug)


@require_safe
@login_required
def import_problems(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """What is wrong with the files, as CSV."""
    _room, found = find(request, project, file_import)
    return import_page.problems_csv(found, import_page.seen(found, lambda: lifecycle.preview(found)))


@require_safe
@login_required
def import_mapping(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """The mapping as a YAML file, for the command line and for other projects."""
    _room, found = find(request, project, file_import)
    return import_page.yaml_file(lifecycle.mapping_of(found), f"mapping-{found.pk}.yaml")


@require_safe
@login_required
def import_file(request: HttpRequest, project: str, file_import: int, file: int) -> FileResponse:
    """One of the files, byte for byte as it came."""
    _room, found = find(request, project, file_import)
    kept = get_object_or_404(ImportFile.objects.filter(file_import=found), pk=file)
    return FileResponse(
        kept.content.open("rb"), as_attachment=True, filename=kept.name, content_type="application/octet-stream"
    )
