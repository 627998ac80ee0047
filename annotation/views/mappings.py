"""Mappings that a project keeps under a name: saved from an import, written down, used, and deleted."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access, refusals
from accounts.models import Project
from accounts.refusals import Refused
from annotation.imports import saved_mappings, uploads
from annotation.models import SavedMapping
from annotation.readers import FormatError, Mapping
from annotation.views import import_page, imports
from annotation.views.campaigns import show_refusal


class MappingForm(forms.Form):
    """A mapping as a YAML file, under a name."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=120)
    kind = forms.ChoiceField(
        label=gettext_lazy("For"),
        choices=[(kind.value, kind.label) for kind in saved_mappings.KINDS],
    )
    file = forms.FileField(label=gettext_lazy("Mapping (YAML)"))


@require_http_methods(["GET", "POST"])
@login_required
def mappings_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every saved mapping of the project, and a form to upload one."""
    current_project = access.require(user=request.user, slug=project)
    form = MappingForm(request.POST or None, request.FILES or None)
    if form.is_valid() and _uploaded(request, current_project, form):
        return redirect("mappings", current_project.slug)
    listed = SavedMapping.objects.visible_to(request.user).filter(project=current_project).select_related("created_by")
    context = {"title": _("Mappings"), "project": current_project, "mappings": listed, "form": form}
    return render(request, "annotation/mappings.html", context)


def _uploaded(request: HttpRequest, project: Project, form: MappingForm) -> bool:
    cleaned = form.cleaned_data
    try:
        mapping = Mapping.from_yaml(cleaned["file"].name, cleaned["file"].read(uploads.MEGABYTE))
        saved_mappings.save(
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
    current_project, current_import = imports.find_import(request, project, file_import)
    with refusals.refusals_as_messages(request):
        saved = saved_mappings.save(
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
    current_project, current_import = imports.find_import(request, project, file_import)
    offers = import_page.offered_mappings(user=request.user, file_import=current_import)
    context = {"project": current_project, "file_import": current_import, "offers": offers}
    return render(request, "annotation/_import_offers.html", context)


def _find(request: HttpRequest, project: str, mapping: int) -> SavedMapping:
    current_project = access.require(user=request.user, slug=project)
    mine = SavedMapping.objects.visible_to(request.user).filter(project=current_project).select_related("project")
    return get_object_or_404(mine, pk=mapping)


@require_safe
@login_required
def mapping_yaml(request: HttpRequest, project: str, mapping: int) -> HttpResponse:
    """A mapping as a file, for the command line and for other projects."""
    return import_page.yaml_file(Mapping.from_dict(_find(request, project, mapping).mapping), f"mapping-{mapping}.yaml")


@require_POST
@login_required
def rename_mapping(request: HttpRequest, project: str, mapping: int) -> HttpResponse:
    """Rename a mapping."""
    saved_mapping = _find(request, project, mapping)
    with refusals.refusals_as_messages(request):
        saved_mappings.revise_saved_mapping(saved=saved_mapping, name=request.POST.get("name", ""), actor=request.user)
        messages.success(request, _("Renamed to “%s”.") % saved_mapping)
    return redirect("mappings", project)


@require_POST
@login_required
def delete_mapping(request: HttpRequest, project: str, mapping: int) -> HttpResponse:
    """Delete a mapping."""
    saved_mapping = _find(request, project, mapping)
    saved_mappings.delete(saved=saved_mapping, actor=request.user)
    messages.success(request, _("“%s” is deleted. Imports that used it do not change.") % saved_mapping)
    return redirect("mappings", project)
