"""Exports and bundles: the page that offers them, their downloads, and the files that a worker wrote."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    QueryDict,
)
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, jobs
from accounts.inputs import whole_number, without_nul
from accounts.models import Project, Role, User
from accounts.refusals import Refused
from analytics.exporting import exports, transfers
from analytics.exporting.exports import SUBJECTS, Export, Options
from analytics.models import BY_WORKER, Transfer
from analytics.ratings.item_attributes import offered_attributes
from annotation.imports import opening, uploads
from annotation.readers import parquet_is_installed
from annotation.views.campaigns import show_refusal


# --- downloads -------------------------------------------------------------------------------------------------------
def recorded_download(export: Export, *, actor: User) -> FileResponse:
    """The export as a download, with its entry in the audit trail. Raises `Refused` if it can't be written."""
    if export.what in BY_WORKER:
        told = gettext("A worker writes this. Have it created in the background, then fetch the file.")
        raise Refused(told, code="in_background")
    response = unrecorded_download(export)
    with ExitStack() as on_error:
        on_error.callback(response.close)
        exports.record_export(export, actor)
        on_error.pop_all()
    return response


def unrecorded_download(export: Export) -> FileResponse:
    """The export as a download for the holder of a shared link, and the use is recorded with the link."""
    return download(exports.export_pieces(export), name=export.file_name, media_type=export.media_type)


def download(pieces: Generator[bytes], *, name: str, media_type: str) -> FileResponse:
    """These bytes as a download, all of them read before the first is sent."""
    with ExitStack() as on_error:
        file = on_error.enter_context(TemporaryFile())
        with closing(pieces):  # also if the disk is full: an unfinished export would keep its transaction open
            file.writelines(pieces)
        file.seek(0)
        on_error.pop_all()
    return _attachment(FileResponse(file, as_attachment=True, filename=name, content_type=media_type))


def kept_file(transfer: Transfer) -> FileResponse:
    """The file that a worker wrote, as a download."""
    media_type = transfers.export_of(transfer).media_type
    file = transfer.content.open("rb")
    return _attachment(FileResponse(file, as_attachment=True, filename=transfer.name, content_type=media_type))


def _attachment(response: FileResponse) -> FileResponse:
    response["X-Content-Type-Options"] = "nosniff"
    return response


# --- the page of exports ---------------------------------------------------------------------------------------------
SWITCHES = ("replies", "revisions", "every_run", "names")
KEPT = (
    *("what", "format", *set(SUBJECTS.values()), "renumbered", "without_rationales", *SWITCHES),
    *("split_seed", "test_share", "question", "layout"),
)
MOST_SEED = 2**31


@dataclass(frozen=True, slots=True)
class ExportCard:
    """One form of the page: the export that it offers, and the options that affect it."""

    title: Any
    about: Any
    whats: tuple[tuple[str, Any], ...]
    options: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        return SUBJECTS[self.whats[0][0]]

    @property
    def formats(self) -> tuple[str, ...]:
        return exports.offered_exports(self.whats[0][0])

    @property
    def layouts(self) -> tuple[str, ...]:
        return exports.LAYOUTS

    @property
    def is_by_worker(self) -> bool:
        """Whether only a worker can write this export."""
        return self.whats[0][0] in BY_WORKER

    def chosen(self, parameters: QueryDict) -> dict[str, Any]:
        """The choices of this form in the address; empty if the address is about another form."""
        return parameters.dict() if parameters.get("what") in dict(self.whats) else {}


CARDS = (
    ExportCard(
        _("Ratings and verdicts"),
        _("One row per item, rater and criterion. Raters are shown by pseudonym."),
        (("scores", _("People and judges")), ("ratings", _("People only")), ("verdicts", _("Judges only"))),
        ("rationales", "renumbered", "attributes", *SWITCHES),
    ),
    ExportCard(
        _("Training set"),
        _(
            "For training a judge: instruction, answer, criterion, rubric, the panel’s score and its distribution. "
            "No scenario is in two splits, and what an alignment has locked is always in the test split."
        ),
        (("training-set", _("Training set")),),
        ("rationales", "split"),
    ),
    ExportCard(
        _("Adjudications"),
        _("One row for each decision on an item and criterion, replaced ones too, with what the adjudicator saw."),
        (("adjudications", _("Adjudications")),),
        ("rationales",),
    ),
    ExportCard(
        _("Items"), _("The items, in the format that an import reads."), (("items", _("Items")),), ("attributes",)
    ),
    ExportCard(
        _("Verdicts on a dataset"),
        _("What judges said of a dataset on every rubric, also where no campaign rates it."),
        (("dataset-verdicts", _("Verdicts")),),
        ("rationales", "replies", "every_run", "attributes"),
    ),
    ExportCard(_("Rubric"), _("Criteria, scales and anchors in all their languages."), (("rubric", _("Rubric")),)),
    ExportCard(
        _("Campaign"), _("Rating tasks, panels, overlap, and how items were selected."), (("campaign", _("Design")),)
    ),
    ExportCard(
        _("Label Studio"),
        _("Items as tasks, ratings as annotations, verdicts as predictions (JSON); the labelling interface (XML)."),
        (("label-studio", _("Tasks and interface")),),
        ("rationales", "renumbered", "attributes"),
    ),
    ExportCard(
        _("Hugging Face"),
        _("A folder for the Hub: tables, rubric, and a card with languages, panels, agreement and licence."),
        (("hugging-face", _("Folder")),),
        ("rationales", "renumbered", "replies", "revisions", "every_run", "attributes"),
    ),
    ExportCard(
        _("Croissant"),
        _("A folder with the items and a description of its columns that machines read."),
        (("croissant", _("Folder")),),
        ("attributes",),
    ),
    ExportCard(
        _("Report"),
        _("Methods, tables, figures, exclusions, thresholds and data statement; the ZIP has LaTeX, CSV and SVG, too."),
        (("report", _("Report")),),
        ("layout",),
    ),
    ExportCard(
        _("Recomputation"),
        _("The tables, questions, seeds and figures of a report, to be computed again on any machine by one command."),
        (("recomputation", _("Recomputation")),),
        ("layout",),
    ),
    ExportCard(
        _("The whole project"),
        _("The whole project in one file, which can be loaded into an empty project. It contains the rationales."),
        (("bundle", _("Bundle")),),
        ("renumbered", "replies"),
    ),
)


@require_safe
@login_required
def export_page(request: HttpRequest, project: str) -> HttpResponseBase:
    """The page on which a user chooses an export, its campaign, dataset or rubric, and its format."""
    current_project = access.require(user=request.user, slug=project)
    offered = [(card, _subjects(current_project, card.subject), card.chosen(request.GET)) for card in CARDS]
    chosen = [
        subject
        for card, subjects, _said in offered
        for subject in subjects
        if request.GET.get(card.subject) in (str(subject.pk), str(subject))
    ]
    campaigns = list(exports.subject_choices(project=current_project, subject="campaign"))
    newest = max(campaigns, key=lambda campaign: campaign.pk, default=None)
    if newest is not None and "dataset" not in request.GET:
        chosen.append(newest.dataset)
    if newest is not None and "campaign" not in request.GET:
        chosen.append(newest)
    is_lead = access.holds(user=request.user, project=current_project, roles=(Role.LEAD,))
    context = {
        "title": _("Export"),
        "campaigns": campaigns,
        "project": current_project,
        "offered": offered,
        "chosen": chosen,
        "is_lead": is_lead,
        "attributes": offered_attributes(current_project),
        "left_out": request.GET.getlist("without_attributes"),
    }
    context["has_parquet"] = parquet_is_installed()
    return render(request, "analytics/export.html", {**context, **listed_transfers(current_project, request.user)})


FOR_PUBLICATION = (("hugging-face", "zip"), ("report", "zip"))
"""What a publication needs: the folder with items, ratings, verdicts, rubric and card; the report with its tables."""


@require_POST
@login_required
def export_publication(request: HttpRequest, project: str) -> HttpResponse:
    """Have a worker write all that a publication of a campaign needs, with the chosen attributes left out."""
    current_project = access.require(user=request.user, slug=project)
    try:
        wanted = [
            exports.named_export(
                project=current_project,
                what=what,
                parameters={"format": kind, "campaign": request.POST.get("campaign", "")},
                options=_options(request.POST),
            )
            for what, kind in FOR_PUBLICATION
        ]
        for export in wanted:
            exports.permit(export, user=request.user)
            jobs.enqueue(transfers.prepare(export=export, actor=request.user))
    except Refused as refused:
        messages.error(request, refused.sentence)
    return redirect("export", current_project.slug)


def _back(project: Project, parameters: QueryDict) -> HttpResponseRedirect:
    """The page again, with the form as it was filled in."""
    kept: dict[str, Any] = {name: parameters[name] for name in KEPT if parameters.get(name)}
    kept |= {"without_attributes": left_out} if (left_out := parameters.getlist("without_attributes")) else {}
    page = reverse("export", args=[project.slug])
    return redirect(f"{page}?{urlencode(kept, doseq=True)}" if kept else page)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def export_file(request: HttpRequest, project: str) -> HttpResponseBase:
    """The requested file, or the page with the reason why there is no file: only the size was asked, or a worker writes
    it.

    GET returns the file, whatever its size.
    """
    current_project = access.require(user=request.user, slug=project)
    parameters = request.POST if request.method == "POST" else request.GET
    try:
        export = exports.named_export(
            project=current_project,
            what=parameters.get("what", ""),
            parameters=parameters.dict(),
            options=_options(parameters),
        )
        exports.permit(export, user=request.user)
        response = _answer(request, export, parameters)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return _back(current_project, parameters)
    return response


def _answer(request: HttpRequest, export: Export, parameters: QueryDict) -> HttpResponseBase:
    if "look" in parameters:
        messages.info(request, _extent_sentence(export))
        return _back(export.project, parameters)
    if request.method == "POST" and ("later" in parameters or exports.is_large_export(export)):
        jobs.enqueue(transfers.prepare(export=export, actor=request.user))
        return redirect("export", export.project.slug)
    return recorded_download(export, actor=request.user)


def _extent_sentence(export: Export) -> str:
    rows, size = exports.export_extent(export)
    sentence = ngettext("%(name)s: %(rows)s row", "%(name)s: %(rows)s rows", rows)
    in_words = sentence % {"name": export.file_name, "rows": f"{rows:,}"}
    return (
        in_words
        if size is None
        else gettext("%(rows)s, about %(size)s") % {"rows": in_words, "size": filesizeformat(size)}
    )


def _subjects(project: Project, subject: str) -> list[Any]:
    return [] if subject == "project" else list(exports.subject_choices(project=project, subject=subject))


def _options(parameters: QueryDict) -> Options:
    seed = parameters.get("renumbered", "").strip()
    number = whole_number(seed, largest=MOST_SEED - 1)
    if seed and number is None:
        sentence = str(_("The seed for other pseudonyms must be a whole number."))
        raise Refused(sentence, fields={"renumbered": sentence})
    switched = {name: name in parameters for name in SWITCHES}
    given = {name: parameters.get(name, "") for name in ("question", "layout")} | _split(parameters)
    return Options(
        renumbered=number,
        rationales="without_rationales" not in parameters,
        without_attributes=tuple(map(without_nul, parameters.getlist("without_attributes"))),
        **switched,
        **given,
    )


def _split(parameters: QueryDict) -> dict[str, Any]:
    """The values of the form for the split of a training set."""
    given: dict[str, Any] = {}
    if seed := parameters.get("split_seed", "").strip():
        given["split_seed"] = whole_number(seed, largest=MOST_SEED - 1)
    if share := parameters.get("test_share", "").strip():
        given["test_share"] = _share(share)
    if None in given.values():
        sentence = str(_("The seed must be a whole number, and the share a number from 0 to less than 1."))
        raise Refused(sentence, fields={name: sentence for name, value in given.items() if value is None})
    return given


def _share(text: str) -> float | None:
    """A share such as ``0.2`` or ``0,2``; None if the text is not a share."""
    with suppress(ValueError):
        share = float(text.replace(",", "."))
        return share if 0 <= share < 1 else None
    return None


# --- transfers and bundles -------------------------------------------------------------------------------------------
SHOWN = 10


class BundleForm(forms.Form):
    """A bundle in the form itself, or the key of a bundle that the page's script has already uploaded."""

    files = forms.FileField(label=_("Bundle"), required=False)  # type: ignore[assignment]
    upload = forms.UUIDField(required=False)


def listed_transfers(project: Project, user: User) -> dict[str, Any]:
    """The user's newest transfers in a project, and whether any of them is still open."""
    found = list(Transfer.objects.visible_to(user).filter(project=project).select_related("job")[:SHOWN])
    return {"transfers": found, "moving": any(each.is_moving for each in found)}


def _find(request: HttpRequest, project: str, transfer: UUID) -> Transfer:
    current_project = access.require(user=request.user, slug=project)
    found = Transfer.objects.visible_to(request.user).filter(project=current_project).select_related("project", "job")
    return get_object_or_404(found, key=transfer)


@require_safe
@login_required
def transfers_part(request: HttpRequest, project: str) -> HttpResponse:
    """The list of the user's transfers, which reloads itself while a transfer is open."""
    current_project = access.require(user=request.user, slug=project)
    return render(
        request,
        "analytics/_transfers.html",
        {"project": current_project, **listed_transfers(current_project, request.user)},
    )


@require_safe
@login_required
def transfer_file(request: HttpRequest, project: str, transfer: UUID) -> HttpResponseBase:
    """Download the written file."""
    found = _find(request, project, transfer)
    if not transfers.has_file(found):
        raise Http404("There is no file yet, or it was deleted.")
    exports.permit(transfers.export_of(found), user=request.user)
    return kept_file(found)


@require_POST
@login_required
def remove_transfer(request: HttpRequest, project: str, transfer: UUID) -> HttpResponse:
    """Delete a transfer and its file."""
    found = _find(request, project, transfer)
    transfers.remove(transfer=found)
    return redirect("export", found.project.slug)


@require_http_methods(["GET", "POST"])
@login_required
def import_bundle(request: HttpRequest, project: str) -> HttpResponse:
    """Choose a bundle; a worker loads it into this empty project, all of it or nothing."""
    current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    form = BundleForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        try:
            jobs.enqueue(_received(request, current_project, form.cleaned_data))
            messages.info(
                request, gettext("The bundle is being loaded. Its content appears when everything is loaded.")
            )
            return redirect("export", current_project.slug)
        except Refused as refused:
            show_refusal(form, refused)
    context = {
        "title": gettext("Load a bundle"),
        "project": current_project,
        "form": form,
        "limit": settings.UPLOAD_LIMIT,
    }
    return render(request, "analytics/import_bundle.html", context)


def _received(request: HttpRequest, project: Project, parameters: dict[str, Any]) -> Transfer:
    if parameters["upload"]:
        (upload,) = uploads.whole(project=project, keys=[parameters["upload"]], actor=request.user)
        return transfers.take_over(upload=upload, actor=request.user)
    if not parameters["files"]:
        raise opening.no_file()
    file = parameters["files"]
    opening.check_sizes({file.name: file.size})
    return transfers.receive_bundle(project=project, name=file.name, content=file.file, actor=request.user)
