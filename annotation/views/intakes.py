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
from annotation import batches, reception, retraction, tasks
from annotation.formats import columnar
from annotation.formats.mapping import Mapping
from annotation.formats.problems import FormatError
from annotation.formats.reading import File
from annotation.generator_names import CHOICES
from annotation.models import Dataset, Intake, IntakeFile, RubricVersion
from annotation.views import intake_page, offers
from annotation.views.campaigns import show_refusal

STORED_HERE = (Intake.Kind.DATASET, Intake.Kind.RUBRIC, Intake.Kind.RATINGS)


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
        label=gettext_lazy("What they hold"),
        choices=[("", gettext_lazy("Tell by the content")), *Intake.Kind.choices],
        required=False,
    )

    def clean(self) -> dict[str, Any]:
        said = super().clean() or {}
        try:
            said["keys"] = [UUID(key) for key in cast(QueryDict, self.data).getlist("upload")]
        except ValueError:
            raise forms.ValidationError(_("The upload has no such file. Upload it again.")) from None
        return said


def _intakes(request: HttpRequest, project: str) -> tuple[Project, QuerySet[Intake]]:
    room = access.require(user=request.user, slug=project)
    return room, Intake.objects.visible_to(request.user).filter(project=room).select_related("project")


def find(request: HttpRequest, project: str, intake: int) -> tuple[Project, Intake]:
    """The project and the intake at an address, for those who may see it."""
    room, found = _intakes(request, project)
    return room, get_object_or_404(found, pk=intake)


@require_safe
@login_required
def intakes_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every import of the project, newest first."""
    room, found = _intakes(request, project)
    listed = found.select_related("created_by").prefetch_related("files")[:200]
    return render(request, "annotation/intakes.html", {"title": _("Imports"), "project": room, "intakes": listed})


@require_http_methods(["GET", "POST"])
@login_required
def new_intake(request: HttpRequest, project: str) -> HttpResponse:
    """Choose files; what they are is guessed, and shown on the next page."""
    room, _found = _intakes(request, project)
    asked = request.GET.get("kind", "")
    form = UploadForm(request.POST or None, request.FILES or None, initial={"kind": asked})
    if form.is_valid():
        try:
            return redirect(intake_page.address(_opened(request, room, form.cleaned_data)))
        except Refused as refused:
            show_refusal(form, refused)
    context = {"title": _("Import"), "project": room, "form": form, "limit": settings.UPLOAD_LIMIT}
    return render(request, "annotation/intake_new.html", {**context, "has_parquet": columnar.is_installed()})


def _opened(request: HttpRequest, project: Project, said: dict[str, Any]) -> Intake:
    """The first of the imports that the files make; a look at each large one is under way."""
    files: list[File] = [(each.name, each.file) for each in said["files"]]
    reception.check_sizes({each.name: each.size for each in said["files"]})
    extends = intake_page.key(request.GET.get("extends", ""))  # the way from a dataset's page: add items to it
    opened = batches.receive(
        project=project,
        files=files,
        keys=said["keys"],
        kind=said["kind"],
        target={"extends": extends} if extends else None,
        actor=request.user,
    )
    for intake in opened:
        tasks.look(intake)
    if len(opened) > 1:
        sentence = _("The files hold several things. Each is an import of its own; store them in the order shown.")
        messages.info(request, sentence)
    return opened[0]


@require_safe
@login_required
def show_intake(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """Columns, first rows, problems and report of an import; its progress while it is stored; what it made, then."""
    room, found = find(request, project, intake)
    if found.kind not in STORED_HERE:
        return redirect(intake_page.address(found))
    seen = intake_page.seen(found, lambda: reception.preview(found))
    context = intake_page.context(request, room, found, seen)
    addresses = {"store_url": reverse("intake_store", args=[room.slug, found.pk])}
    addresses["undo_url"] = reverse("intake_undo", args=[room.slug, found.pk])
    addresses["problems_url"] = reverse("intake_problems", args=[room.slug, found.pk])
    return render(request, "annotation/intake.html", {**context, **addresses, "made": _made(found)})


def _made(intake: Intake) -> list[tuple[str, str]]:
    """Name and address of what a stored import made."""
    slug = intake.project.slug
    made = [(str(each), reverse("dataset", args=[slug, each.pk])) for each in Dataset.objects.filter(intake=intake)]
    versions = RubricVersion.objects.filter(pk__in=intake.report.get("versions", [])).select_related("rubric")
    made += [(str(each), reverse("rubric_version", args=[slug, each.rubric.key, each.number])) for each in versions]
    if campaign := intake.report.get("campaign"):
        made.append((_("Campaign"), reverse("campaign", args=[slug, campaign])))
    return made


@require_POST
@login_required
def map_intake(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """Take over the page's table, a saved mapping, or one written as YAML; then look again."""
    _room, found = find(request, project, intake)
    try:
        _revise(request, found)
        tasks.look(found)
    except FormatError as error:
        intake_page.keep_written(request, found, str(error.problem))
    except Refused as refused:
        messages.error(request, refused.sentence)
    return redirect(intake_page.address(found))


def _revise(request: HttpRequest, intake: Intake) -> None:
    form, actor = request.POST, request.user
    if (names := form.get("generator_names")) in CHOICES:
        reception.revise(intake=intake, target={**intake.target, "generator_names": names}, actor=actor)
    elif "mapping_of" in form:
        mapping = offers.chosen(user=request.user, intake=intake, choice=form["mapping_of"])
        reception.revise(intake=intake, mapping=mapping, actor=actor)
    elif intake.kind == Intake.Kind.STUDY:
        reception.revise(intake=intake, target=intake_page.read_target(form, intake), actor=actor)
    elif "yaml" in form:
        reception.revise(intake=intake, mapping=Mapping.from_yaml("mapping", form["yaml"]), actor=actor)
    elif form.get("kind", intake.kind) != intake.kind and form["kind"] in Intake.Kind.values:
        target = batches.likely_target(intake.project, form["kind"])
        reception.revise(intake=intake, kind=form["kind"], target=target, actor=actor)
    else:
        target = intake_page.read_target(form, intake)
        mapping = intake_page.read_mapping(form, reception.mapping_of(intake))
        reception.revise(intake=intake, mapping=mapping, is_whole=True, target=target, actor=actor)


@require_POST
@login_required
def store_intake(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """Store what the page shows: at once, or in the background when there is much of it."""
    _room, found = find(request, project, intake)
    with refusals.told(request):
        if found.kind not in STORED_HERE:
            raise Refused(_("This import is stored from its own page."), code="wrong_kind")
        tasks.store(found, request.user)
    return redirect(intake_page.address(found))


@require_POST
@login_required
def check_intake(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """Let a worker look at a large import again."""
    _room, found = find(request, project, intake)
    with refusals.told(request):
        tasks.look(found)
    return redirect(intake_page.address(found))


@require_POST
@login_required
def also_import(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """Open one more import of the same files, for what else they hold."""
    _room, found = find(request, project, intake)
    try:
        opened = batches.also(intake=found, kind=request.POST.get("kind", ""), actor=request.user)
        tasks.look(opened)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect(intake_page.address(found))
    return redirect(intake_page.address(opened))


@require_POST
@login_required
def take_apart(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """Import the files of a study kind by kind after all."""
    _room, found = find(request, project, intake)
    try:
        opened = batches.apart(intake=found, actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect(intake_page.address(found))
    for each in opened:
        tasks.look(each)
    return redirect(intake_page.address(opened[0]))


@require_safe
@login_required
def intake_progress(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """How far checking or storing is; asks the page to reload once it is over."""
    _room, found = find(request, project, intake)
    answer = render(request, "annotation/_intake_progress.html", {"intake": found, "way": intake_page.way(found)})
    if found.state not in intake_page.UNDER_WAY:
        answer["HX-Refresh"] = "true"
    return answer


@require_POST
@login_required
def undo_intake(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """Take back what was stored, while nothing depends on it."""
    _room, found = find(request, project, intake)
    with refusals.told(request):
        if found.kind not in STORED_HERE:
            raise Refused(_("This import is taken back from its own page."), code="wrong_kind")
        retraction.undo(intake=found, actor=request.user)
        messages.success(request, _("Undone. The files are still here; store them again or discard them."))
    return redirect(intake_page.address(found))


@require_POST
@login_required
def discard_intake(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """Delete an import that stored nothing, with its files."""
    room, found = find(request, project, intake)
    try:
        retraction.discard(intake=found, actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect(intake_page.address(found))
    return redirect("datasets", room.slug)


@require_safe
@login_required
def intake_problems(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """What is wrong with the files, as CSV."""
    _room, found = find(request, project, intake)
    return intake_page.problems_csv(found, intake_page.seen(found, lambda: reception.preview(found)))


@require_safe
@login_required
def intake_mapping(request: HttpRequest, project: str, intake: int) -> HttpResponse:
    """The mapping as a YAML file, for the command line and for other projects."""
    _room, found = find(request, project, intake)
    return intake_page.yaml_file(reception.mapping_of(found), f"mapping-{found.pk}.yaml")


@require_safe
@login_required
def intake_file(request: HttpRequest, project: str, intake: int, file: int) -> FileResponse:
    """One of the files, byte for byte as it came."""
    _room, found = find(request, project, intake)
    kept = get_object_or_404(IntakeFile.objects.filter(intake=found), pk=file)
    return FileResponse(
        kept.content.open("rb"), as_attachment=True, filename=kept.name, content_type="application/octet-stream"
    )
