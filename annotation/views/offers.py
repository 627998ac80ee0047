"""The mappings that an import can take over: those kept in its project under a name, and those of earlier imports."""

from __future__ import annotations

from dataclasses import dataclass

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from accounts.models import User
from annotation import reception
from annotation.formats.mapping import Mapping
from annotation.models import Intake, SavedMapping

SAVED, EARLIER = "saved", "import"


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
    ]
    return [(place, found) for place, found in groups if found]


def _earlier(intake: Intake) -> list[Intake]:
    return reception.earlier_mappings(intake)


def _named(intake: Intake) -> str:
    return f"{intake.pk}: {', '.join(each.name for each in intake.files.all())}"


def chosen(*, user: User, intake: Intake, choice: str) -> Mapping:
    """The mapping that the value of an option stands for."""
    place, _dash, key = choice.partition("-")
    pk = int(key) if key.isascii() and key.isdecimal() and len(key) < 19 else 0
    if place == SAVED:
        saved = SavedMapping.objects.visible_to(user).filter(project=intake.project_id, kind=intake.kind)
        return Mapping.from_dict(get_object_or_404(saved, pk=pk).mapping)
    earlier = Intake.objects.visible_to(user).filter(project=intake.project_id)
    return reception.mapping_of(get_object_or_404(earlier, pk=pk))
