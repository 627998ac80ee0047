"""The mappings that an import can take over: those kept in its project under a name, those of earlier imports, and the
ready ones of studies and tools that are known.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.parameters import whole_number
from accounts.refusals import Refused
from annotation import reception
from annotation.formats.mapping import Mapping
from annotation.formats.studies import Import, studies
from annotation.models import Intake, SavedMapping

SAVED, EARLIER, READY = "saved", "import", "ready"


@dataclass(frozen=True, slots=True)
class Offer:
    """One mapping: the value of its option, and its name."""

    value: str
    name: str


def offers(*, user: User, intake: Intake) -> list[tuple[str, list[Offer]]]:
    """The mappings by where they come from; kinds of places that have none are left out."""
    saved = SavedMapping.objects.visible_to(user).filter(project=intake.project_id, kind=intake.kind)
    groups = [
        (_("Saved in this project"), [Offer(f"{SAVED}-{each.pk}", each.name) for each in saved]),
        (_("Of earlier imports"), [Offer(f"{EARLIER}-{each.pk}", _named(each)) for each in _earlier(intake)]),
        (_("Ready mappings"), [Offer(f"{READY}-{key}", name) for key, (name, _each) in _ready(intake.kind).items()]),
    ]
    return [(place, found) for place, found in groups if found]


def _earlier(intake: Intake) -> list[Intake]:
    return reception.earlier_mappings(intake)


def _named(intake: Intake) -> str:
    return f"{intake.pk}: {', '.join(each.name for each in intake.files.all())}"


def _ready(kind: str) -> dict[str, tuple[str, Import]]:
    """What is known of a kind, by study and place in it, each under a name that tells it from the others."""
    return {
        f"{study.name}.{place}": (f"{study.name}: {each.name or each.dataset} ({_marks(each)})", each)
        for study in studies().values()
        for place, each in enumerate(study.imports)
        if each.kind == kind
    }


def _marks(each: Import) -> str:
    """What its files are known by."""
    return ", ".join([*each.files, *each.mapping.aligned, *each.columns][:3])


def chosen(*, user: User, intake: Intake, choice: str) -> Mapping:
    """The mapping that the value of an option stands for. Raises `Refused` when none is chosen."""
    if not choice:
        raise Refused(_("Choose a mapping."), code="no_mapping")
    place, _dash, key = choice.partition("-")
    if place == READY:
        if key not in (ready := _ready(intake.kind)):
            raise Http404("There is no such ready mapping.")
        return ready[key][1].mapping
    pk = whole_number(key) or 0
    if place == SAVED:
        saved = SavedMapping.objects.visible_to(user).filter(project=intake.project_id, kind=intake.kind)
        return Mapping.from_dict(get_object_or_404(saved, pk=pk).mapping)
    earlier = Intake.objects.visible_to(user).filter(project=intake.project_id)
    return reception.mapping_of(get_object_or_404(earlier, pk=pk))
