"""Datasets and their items, for leads and researchers."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts import access, languages
from accounts.inputs import whole_number
from accounts.models import Project
from accounts.refusals import Refused
from annotation import layouts
from annotation.desk import presentation
from annotation.models import Curation, Dataset, Import, Item
from annotation.models.content import ITEM_FILTERS, DatasetQuerySet

PAGE = 50


@dataclass(slots=True)
class LanguageCounts:
    """One row of the table of items by language and generator."""

    language: str
    name: str
    cells: list[int] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.cells)


def _datasets(request: HttpRequest, project: str) -> tuple[Project, DatasetQuerySet]:
    current_project = access.require(user=request.user, slug=project)
    return current_project, Dataset.objects.visible_to(request.user).filter(project=current_project)


@require_safe
@login_required
def datasets_page(request: HttpRequest, project: str) -> HttpResponse:
    """The project's datasets by name, newest version first, and the imports that are not stored yet."""
    current_project, datasets = _datasets(request, project)
    unstored = (
        Import.objects.visible_to(request.user).filter(project=current_project).exclude(state=Import.State.STORED)
    )
    context = {
        "title": _("Datasets"),
        "project": current_project,
        "datasets": datasets.sized(),
        "unstored": unstored.select_related("created_by").prefetch_related("files")[:5],
    }
    return render(request, "annotation/datasets.html", context)


@require_safe
@login_required
def dataset_page(request: HttpRequest, project: str, dataset: int) -> HttpResponse:
    """One version of a dataset: counts by language and generator, and its items with filters and pagination."""
    current_project, datasets = _datasets(request, project)
    shown = get_object_or_404(datasets.select_related("file_import", "derived_from", "curation"), pk=dataset)
    items = Item.objects.visible_to(request.user).of(shown).matching(request.GET.dict())
    after = whole_number(request.GET.get("after"))
    page = list(items.filter(ordinal__gt=after)[: PAGE + 1]) if after is not None else list(items[: PAGE + 1])
    context = {
        "title": shown.name,
        "project": current_project,
        "dataset": shown,
        "markup": layouts.markup_of(shown),
        "simulated": shown.simulated,
        "curation": getattr(shown, "curation", None),
        "curations": Curation.objects.filter(source=shown).select_related("dataset"),
        "versions": datasets.filter(name=shown.name).sized().select_related("extends"),
        "newest": Dataset.objects.holding(shown).first(),
        "items": page[:PAGE],
        "next_after": page[PAGE - 1].ordinal if len(page) > PAGE else None,
        "is_first_page": after is None,
        "matching": items.count(),
        "has_simulators": _has_simulators(shown),
        "chosen": {name: request.GET.get(name, "") for name in (*ITEM_FILTERS, "q")},
        **_counts(shown),
    }
    return render(request, "annotation/dataset.html", context)


def _has_simulators(dataset: Dataset) -> bool:
    """Whether its dialogues are with simulated users, and it is no comparison of these with people."""
    items = Item.objects.of(dataset).order_by().filter(attributes__has_key="simulator")
    return items.exclude(attributes__has_key="origin").exists()


def _counts(dataset: Dataset) -> dict[str, Any]:
    """The table of items by language and generator, and the generators that the filter offers."""
    rows = Item.objects.of(dataset).order_by().values_list("language", "generator")
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for language, generator, count in rows.annotate(count=Count("pk")):
        counts[language][generator] = count
    generators = sorted({generator for by_generator in counts.values() for generator in by_generator})
    spoken = get_language()
    table = [
        LanguageCounts(tag, languages.name_for(tag, spoken), [counts[tag].get(name, 0) for name in generators])
        for tag in languages.in_name_order(counts, spoken)
    ]
    return {"generators": generators, "counts": table}


@require_POST
@login_required
def set_markup_view(request: HttpRequest, project: str, dataset: int) -> HttpResponse:
    """Show the texts of a dataset as plain text or as Markdown."""
    current_project, datasets = _datasets(request, project)
    shown = get_object_or_404(datasets, pk=dataset)
    try:
        layouts.set_markup(dataset=shown, markup=request.POST.get("markup", ""), actor=request.user)
        messages.success(request, _("The texts are shown this way from now on."))
    except Refused as refused:
        messages.error(request, refused.sentence)
    return redirect("dataset", project=current_project.slug, dataset=shown.pk)


@require_safe
@login_required
def item_page(request: HttpRequest, project: str, dataset: int, item: int) -> HttpResponse:
    """One item as annotators see it, and the information that annotators do not see."""
    current_project, datasets = _datasets(request, project)
    shown = get_object_or_404(datasets, pk=dataset)
    beside = Item.objects.visible_to(request.user).of(shown)
    stored = get_object_or_404(beside, pk=item)
    context = {
        "title": stored.title or stored.external_id,
        "project": current_project,
        "dataset": shown,
        "stored": stored,
        "item": presentation.show_item(stored, (), shown.layout),
        "before": beside.filter(ordinal__lt=stored.ordinal).order_by("-ordinal").first(),
        "after": beside.filter(ordinal__gt=stored.ordinal).first(),
    }
    return render(request, "annotation/item.html", context)
