"""The mappings that an import can take over: those kept in its project under a name, those of earlier imports, and the
ready ones of studies and tools that are known.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from accounts.inputs import whole_number
from accounts.models import User
from accounts.refusals import Refused
from annotation.imports import lifecycle
from annotation.models import Import, SavedMapping
from annotation.readers import Mapping, StudyImport
from annotation.readers import known_studies as studies

SAVED, EARLIER, READY = "saved", "import", "ready"


@dataclass(frozen=True, slots=True)
class Offer:
    """One mapping: the value of its option, and its name."""

    value: str
    name: str


def offers(*, user: User, file_import: Import) -> list[tuple[str, list[Offer]]]:
    """The mappings by where they come from; kinds of places that have none are left out."""
    saved = SavedMapping.objects.visible_to(user).filter(project=file_import.project_id, kind=file_import.kind)
    groups = [
        (_("Saved in this project"), [Offer(f"{SAVED}-{each.pk}", each.name) for each in saved]),
        (_("From earlier imports"), [Offer(f"{EARLIER}-{each.pk}", _named(each)) for each in _earlier(file_import)]),
        (
            _("Ready mappings"),
            [Offer(f"{READY}-{key}", name) for key, (name, _each) in _ready(file_import.kind).items()],
        ),
    ]
    return [(place, found) for place, found in groups if found]


def _earlier(file_import: Import) -> list[Import]:
    return lifecycle.earlier_mappings(file_import)


def _named(file_import: Import) -> str:
    return f"{file_import.pk}: {', '.join(file.name for file in file_import.files.all())}"


def _ready(kind: str) -> dict[str, tuple[str, StudyImport]]:
    """What is known of a kind, by study and place in it, each under a name that tells it from the others."""
    return {
        f"{study.name}.{place}": (f"{study.name}: {each.name or each.dataset} ({_marks(each)})", each)
        for study in studies().values()
        for place, each in enumerate(study.imports)
        if each.kind == kind
    }


def _marks(each: StudyImport) -> str:
    """What its files are known by."""
    return ", ".join([*each.files, *each.mapping.aligned, *each.columns][:3])


def chosen(*, user: User, file_import: Import, choice: str) -> Mapping:
    """The mapping of an option's value. Raises `Refused` when none is chosen."""
    if not choice:
        raise Refused(_("Choose a mapping."), code="no_mapping")
    place, _dash, key = choice.partition("-")
    if place == READY:
        if key not in (ready := _ready(file_import.kind)):
            raise Http404("There is no such built-in mapping.")
        return ready[key][1].mapping
    pk = whole_number(key) or 0
    if place == SAVED:
        saved = SavedMapping.objects.visible_to(user).filter(project=file_import.project_id, kind=file_import.kind)
        return Mapping.from_dict(get_object_or_404(saved, pk=pk).mapping)
    earlier = Import.objects.visible_to(user).filter(project=file_import.project_id)
    return lifecycle.mapping_of(get_object_or_404(earlier, pk=pk))
