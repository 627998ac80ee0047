"""Files that a worker writes for somebody, and bundles that it loads: how far they are, to fetch, and to forget."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, jobs
from accounts.models import Project, Role, User
from accounts.refusals import Refused
from analytics import exports, transfers
from analytics.models import Transfer
from analytics.views import sending
from annotation.imports import lifecycle, uploads
from annotation.views.campaigns import show_refusal

SHOWN = 10


class BundleForm(forms.Form):
    """A bundle in the form itself, or the key of one that the page's script has uploaded already."""

    files = forms.FileField(label=gettext_lazy("Bundle"), required=False)  # type: ignore[assignment]
    upload = forms.UUIDField(required=False)


def listed(room: Project, user: User) -> dict[str, Any]:
    """One's newest transfers in a project, and whether any of them moves."""
    found = list(Transfer.objects.visible_to(user).filter(project=room).select_related("job")[:SHOWN])
    return {"transfers": found, "moving": any(each.is_moving for each in found)}


def _find(request: HttpRequest, project: str, transfer: UUID) -> Transfer:
    room = access.require(user=request.user, slug=project)
    found = Transfer.objects.visible_to(request.user).filter(project=room).select_related("project", "job")
    return get_object_or_404(found, key=transfer)


@require_safe
@login_required
def transfers_part(request: HttpRequest, project: str) -> HttpResponse:
    """The list of one's transfers, which asks for itself while something moves."""
    room = access.require(user=request.user, slug=project)
    return render(request, "analytics/_transfers.html", {"project": room, **listed(room, request.user)})


@require_safe
@login_required
def transfer_file(request: HttpRequest, project: str, transfer: UUID) -> HttpResponseBase:
    """The file that was written."""
    found = _find(request, project, transfer)
    if not transfers.has_file(found):
        raise Http404("There is no file yet, or it was deleted.")
    exports.permit(transfers.export_of(found), user=request.user)
    return sending.kept(found)


@require_POST
@login_required
def remove_transfer(request: HttpRequest, project: str, transfer: UUID) -> HttpResponse:
    """Forget a transfer, with its file."""
    found = _find(request, project, transfer)
    transfers.remove(transfer=found)
    return redirect("export", found.project.slug)


@require_http_methods(["GET", "POST"])
@login_required
def import_bundle(request: HttpRequest, project: str) -> HttpResponse:
    """Choose a bundle; a worker loads it into this empty project, all of it or nothing."""
    room = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    form = BundleForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        try:
            jobs.enqueue(_received(request, room, form.cleaned_data))
            messages.info(request, _("The bundle is being loaded. Its content appears when everything is loaded."))
            return redirect("export", room.slug)
        except Refused as refused:
            show_refusal(form, refused)
    context = {"title": _("Load a bundle"), "project": room, "form": form, "limit": settings.UPLOAD_LIMIT}
    return render(request, "analytics/import_bundle.html", context)


def _received(request: HttpRequest, room: Project, said: dict[str, Any]) -> Transfer:
    if said["upload"]:
        (upload,) = uploads.whole(project=room, keys=[said["upload"]], actor=request.user)
        return transfers.take_over(upload=upload, actor=request.user)
    if not said["files"]:
        raise lifecycle.no_file()
    file = said["files"]
    lifecycle.check_sizes({file.name: file.size})
    return transfers.receive(project=room, name=file.name, content=file.file, actor=request.user)
