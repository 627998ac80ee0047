"""Imports, from the choice of files to the undo, and saved mappings; for leads and researchers."""

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

from accounts import access, audit, refusals
from accounts.inputs import whole_number
from accounts.models import Project
from accounts.refusals import Refused
from annotation import tasks
from annotation.blinding import CHOICES
from annotation.imports import lifecycle, opening, previews, saved_mappings, undoing, uploads
from annotation.models import Dataset, Import, ImportFile, RubricVersion, SavedMapping
from annotation.readers import File, FormatError, Mapping, parquet_is_installed
from annotation.views import import_page
from annotation.views.campaigns import show_refusal

STORED_HERE = (Import.Kind.DATASET, Import.Kind.RUBRIC, Import.Kind.RATINGS)


class ManyFiles(forms.FileField):
    """A file field with any number of files; its cleaned value is a list."""

    widget = forms.ClearableFileInput

    def clean(self, uploaded: Any, initial: Any = None) -> list[Any]:
        return [super(ManyFiles, self).clean(file, initial) for file in uploaded]


class ManyFilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True

    def value_from_datadict(self, posted: Any, files: Any, name: str) -> list[Any]:
        return list(files.getlist(name))


class UploadForm(forms.Form):
    """Files sent with the form, or the keys of files that the page's script has uploaded before."""

    files = ManyFiles(label=gettext_lazy("Files"), widget=ManyFilesInput, required=False)  # type: ignore[assignment]
    kind = forms.ChoiceField(
        label=gettext_lazy("Content"),
        choices=[("", gettext_lazy("Detect from the content")), *Import.Kind.choices],
        required=False,
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        try:
            cleaned["keys"] = [UUID(key) for key in cast(QueryDict, self.data).getlist("upload")]
        except ValueError:
            raise forms.ValidationError(_("This file is not in the upload. Upload it again.")) from None
        return cleaned


def _imports(request: HttpRequest, project: str) -> tuple[Project, QuerySet[Import]]:
    current_project = access.require(user=request.user, slug=project)
    return current_project, Import.objects.visible_to(request.user).filter(project=current_project).select_related(
        "project", "job"
    )


def find_import(request: HttpRequest, project: str, file_import: int) -> tuple[Project, Import]:
    """The project and the import with these keys, if the user may see it; 404 otherwise."""
    current_project, visible_imports = _imports(request, project)
    return current_project, get_object_or_404(visible_imports, pk=file_import)


@require_safe
@login_required
def imports_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every import of the project, newest first."""
    current_project, visible_imports = _imports(request, project)
    listed = visible_imports.select_related("created_by").prefetch_related("files")[:200]
    return render(
        request, "annotation/imports.html", {"title": _("Imports"), "project": current_project, "imports": listed}
    )


@require_http_methods(["GET", "POST"])
@login_required
def new_import(request: HttpRequest, project: str) -> HttpResponse:
    """Upload files. Their kind is detected and shown on the next page."""
    current_project = access.require(user=request.user, slug=project)
    kind = request.GET.get("kind", "")
    form = UploadForm(request.POST or None, request.FILES or None, initial={"kind": kind})
    if form.is_valid():
        try:
            return redirect(_opened(request, current_project, form.cleaned_data))
        except Refused as refused:
            show_refusal(form, refused)
    context = {"title": _("Import"), "project": current_project, "form": form, "limit": settings.UPLOAD_LIMIT}
    return render(request, "annotation/import_new.html", {**context, "has_parquet": parquet_is_installed()})


def _opened(request: HttpRequest, project: Project, cleaned: dict[str, Any]) -> Import:
    """Open an import per kind of the uploaded files and start to check the large ones; returns the first import."""
    files: list[File] = [(file.name, file.file) for file in cleaned["files"]]
    opening.check_sizes({file.name: file.size for file in cleaned["files"]})
    extends = whole_number(request.GET.get("extends", ""))  # from a dataset's page: add items to that dataset
    opened = opening.open_imports(
        project=project,
        files=files,
        keys=cleaned["keys"],
        kind=cleaned["kind"],
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
    """An import: columns, first rows, problems and report; while it is stored, its progress; then links to its rows."""
    current_project, current_import = find_import(request, project, file_import)
    if current_import.kind not in STORED_HERE:
        return redirect(current_import)
    seen = import_page.current_preview(current_import, lambda: previews.preview_import(current_import))
    context = import_page.context(request, current_project, current_import, seen)
    addresses = {"store_url": reverse("import_store", args=[current_project.slug, current_import.pk])}
    addresses["undo_url"] = reverse("import_undo", args=[current_project.slug, current_import.pk])
    addresses["problems_url"] = reverse("import_problems", args=[current_project.slug, current_import.pk])
    return render(
        request,
        "annotation/import.html",
        {
            **context,
            **addresses,
            "stored_links": _stored_links(current_import),
            "checked_dataset": Dataset.objects.filter(file_import=current_import).values_list("pk", flat=True).first(),
        },
    )


def _stored_links(file_import: Import) -> list[tuple[str, str]]:
    """Name and address of every dataset, rubric version and campaign that a stored import created."""
    slug = file_import.project.slug
    links = [
        (str(dataset), reverse("dataset", args=[slug, dataset.pk]))
        for dataset in Dataset.objects.filter(file_import=file_import)
    ]
    versions = RubricVersion.objects.filter(pk__in=file_import.report.get("versions", [])).select_related("rubric")
    links += [
        (str(version), reverse("rubric_version", args=[slug, version.rubric.key, version.number]))
        for version in versions
    ]
    if campaign := file_import.report.get("campaign"):
        links.append((_("Campaign"), reverse("campaign", args=[slug, campaign])))
    return links


@require_POST
@login_required
def map_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Apply the mapping in the page's table, a saved mapping, or a mapping written as YAML; then check again."""
    _project, current_import = find_import(request, project, file_import)
    try:
        _revise(request, current_import)
        tasks.look(current_import)
    except FormatError as error:
        import_page.keep_written(request, current_import, str(error.problem))
    except Refused as refused:
        messages.error(request, refused.sentence)
    return redirect(current_import)


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
        target = opening.likely_target(file_import.project, form["kind"])
        lifecycle.revise(file_import=file_import, kind=form["kind"], target=target, actor=actor)
    else:
        target = import_page.read_target(form, file_import)
        mapping = import_page.mapping_from_form(form, file_import.column_mapping())
        lifecycle.revise(file_import=file_import, mapping=mapping, is_whole=True, target=target, actor=actor)


@require_POST
@login_required
def start_storing(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Store the import: in this request, or in the background if the files are large."""
    _project, current_import = find_import(request, project, file_import)
    with refusals.refusals_as_messages(request):
        if current_import.kind not in STORED_HERE:
            raise Refused(_("Store this import on its own page."), code="wrong_kind")
        tasks.store_here_or_later(current_import, request.user)
    return redirect(current_import)


@require_POST
@login_required
def check_again(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Check a large import again, in the background."""
    _project, current_import = find_import(request, project, file_import)
    with refusals.refusals_as_messages(request):
        tasks.look(current_import)
    return redirect(current_import)


@require_POST
@login_required
def also_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Open another import of the same files, for their other contents."""
    _project, current_import = find_import(request, project, file_import)
    try:
        opened = opening.import_as_kind(
            file_import=current_import, kind=request.POST.get("kind", ""), actor=request.user
        )
        tasks.look(opened)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect(current_import)
    return redirect(opened)


@require_POST
@login_required
def take_apart(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Replace the import of a study by separate imports, one per kind."""
    _project, current_import = find_import(request, project, file_import)
    try:
        opened = opening.split_study(file_import=current_import, actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect(current_import)
    for opened_import in opened:
        tasks.look(opened_import)
    return redirect(opened[0])


@require_safe
@login_required
def import_progress(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """The progress of checking or storing. When it has ended, the response makes the page reload."""
    _project, current_import = find_import(request, project, file_import)
    answer = render(
        request,
        "annotation/_import_progress.html",
        {"file_import": current_import, "way": import_page.way(current_import)},
    )
    if current_import.state not in import_page.UNDER_WAY:
        answer["HX-Refresh"] = "true"
    return answer


@require_POST
@login_required
def undo_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Delete what the import stored, unless something depends on it."""
    _project, current_import = find_import(request, project, file_import)
    with refusals.refusals_as_messages(request):
        if current_import.kind not in STORED_HERE:
            raise Refused(_("Undo this import on its own page."), code="wrong_kind")
        if tasks.undo_here_or_later(current_import, request.user):
            messages.success(request, _("Undone. The files are kept: store them again or discard them."))
    return redirect(current_import)


@require_POST
@login_required
def discard_import(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Delete an import that stored nothing, with its files."""
    current_project, current_import = find_import(request, project, file_import)
    try:
        undoing.discard(file_import=current_import, actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect(current_import)
    return redirect("datasets", current_project.slug)


@require_safe
@login_required
def import_problems(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """The problems of the files, as CSV."""
    _project, current_import = find_import(request, project, file_import)
    return import_page.problems_csv(
        current_import, import_page.current_preview(current_import, lambda: previews.preview_import(current_import))
    )


@require_safe
@login_required
def import_mapping(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """The mapping as a YAML file, for the command line and for other projects."""
    _project, current_import = find_import(request, project, file_import)
    return import_page.yaml_file(current_import.column_mapping(), f"mapping-{current_import.pk}.yaml")


@require_safe
@login_required
def import_file(request: HttpRequest, project: str, file_import: int, file: int) -> FileResponse:
    """One of the files, unchanged."""
    current_project, current_import = find_import(request, project, file_import)
    kept = get_object_or_404(ImportFile.objects.filter(file_import=current_import), pk=file)
    audit.record_once_a_day(actor=request.user, project=current_project, verb=audit.READ_IMPORT, subject=current_import)
    return FileResponse(
        kept.content.open("rb"), as_attachment=True, filename=kept.name, content_type="application/octet-stream"
    )


# --- mappings that a project keeps under a name: saved from an import, written down, used, deleted -------------------
class MappingForm(forms.Form):
    """A mapping as a YAML file, under a name."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    kind = forms.ChoiceField(
        label=gettext_lazy("For"),
        choices=[(kind.value, kind.label) for kind in saved_mappings.MAPPED_KINDS],
    )
    file = forms.FileField(label=gettext_lazy("Mapping (YAML)"))


@require_http_methods(["GET", "POST"])
@login_required
def mappings_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every saved mapping of the project, and a form to upload one."""
    current_project = access.require(user=request.user, slug=project)
    form = MappingForm(request.POST or None, request.FILES or None)
    if form.is_valid() and _mapping_uploaded(request, current_project, form):
        return redirect("mappings", current_project.slug)
    listed = SavedMapping.objects.visible_to(request.user).filter(project=current_project).select_related("created_by")
    context = {"title": _("Mappings"), "project": current_project, "mappings": listed, "form": form}
    return render(request, "annotation/mappings.html", context)


def _mapping_uploaded(request: HttpRequest, project: Project, form: MappingForm) -> bool:
    cleaned = form.cleaned_data
    try:
        mapping = Mapping.from_yaml(cleaned["file"].name, cleaned["file"].read(uploads.MEGABYTE))
        saved_mappings.store_mapping(
            project=project, kind=cleaned["kind"], name=cleaned["name"], mapping=mapping, actor=request.user
        )
    except FormatError as error:
        form.add_error("file", str(error.problem))
    except Refused as refused:
        show_refusal(form, refused)
    return form.is_valid()


@require_POST
@login_required
def save_mapping(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """Save the mapping of an import under a name."""
    current_project, current_import = find_import(request, project, file_import)
    with refusals.refusals_as_messages(request):
        saved = saved_mappings.store_mapping(
            project=current_project,
            kind=current_import.kind,
            name=request.POST.get("name", ""),
            mapping=current_import.column_mapping(),
            actor=request.user,
        )
        messages.success(request, _("Saved. Every import of this project can use “%s”.") % saved)
    return redirect(current_import)


@require_safe
@login_required
def import_offers(request: HttpRequest, project: str, file_import: int) -> HttpResponse:
    """The mappings that an import can use instead of its own: a part of its page, loaded when it is scrolled to."""
    current_project, current_import = find_import(request, project, file_import)
    offers = import_page.offered_mappings(user=request.user, file_import=current_import)
    context = {"project": current_project, "file_import": current_import, "offers": offers}
    return render(request, "annotation/_import_offers.html", context)


def _find_mapping(request: HttpRequest, project: str, mapping: int) -> SavedMapping:
    current_project = access.require(user=request.user, slug=project)
    mine = SavedMapping.objects.visible_to(request.user).filter(project=current_project).select_related("project")
    return get_object_or_404(mine, pk=mapping)


@require_safe
@login_required
def mapping_yaml(request: HttpRequest, project: str, mapping: int) -> HttpResponse:
    """A mapping as a file, for the command line and for other projects."""
    return import_page.yaml_file(
        Mapping.from_dict(_find_mapping(request, project, mapping).mapping), f"mapping-{mapping}.yaml"
    )


@require_POST
@login_required
def rename_mapping(request: HttpRequest, project: str, mapping: int) -> HttpResponse:
    """Rename a mapping."""
    saved_mapping = _find_mapping(request, project, mapping)
    with refusals.refusals_as_messages(request):
        saved_mappings.revise_saved_mapping(saved=saved_mapping, name=request.POST.get("name", ""), actor=request.user)
        messages.success(request, _("Renamed to “%s”.") % saved_mapping)
    return redirect("mappings", project)


@require_POST
@login_required
def delete_mapping(request: HttpRequest, project: str, mapping: int) -> HttpResponse:
    """Delete a mapping."""
    saved_mapping = _find_mapping(request, project, mapping)
    saved_mappings.remove_mapping(saved=saved_mapping, actor=request.user)
    messages.success(request, _("“%s” is deleted. Imports that used it do not change.") % saved_mapping)
    return redirect("mappings", project)
