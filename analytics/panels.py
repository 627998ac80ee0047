"""Who rated a campaign: its panels, and what their people let the study say of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from django.db.models import Count

from accounts.models import Profile
from analytics.data_cards import Described
from annotation.models import Annotation, Campaign


def described(campaign: Campaign) -> list[Described]:
    """Every panel with ratings, by name; imported ratings have none. Of profiles only those with consent, as counts."""
    panel = "assignment__duty__panel"
    current = Annotation.objects.filter(campaign=campaign, superseded_at=None)
    counted = current.order_by().values_list(f"{panel}__name", f"{panel}__language", "annotator", "annotator__user")
    rows = list(counted.annotate(annotations=Count("pk")))
    profiles = Profile.objects.in_bulk([user for *_panel, user, _count in rows if user], field_name="user_id")
    found: dict[tuple[str, str], Described] = {}
    for name, language, _annotator, user, so_many in rows:
        key = (name or "", language or "")
        _count(found.setdefault(key, Described(*key)), so_many, user, profiles)
    return [found[key] for key in sorted(found)]


def _count(panel: Described, annotations: int, user: int | None, profiles: Mapping[int, Profile]) -> None:
    panel.annotators += 1
    panel.annotations += annotations
    said = profiles.get(user) if user else None
    if said is None or said.consented_at is None:
        return
    panel.consenting += 1
    panel.grew_up_with += Counter(said.grew_up_with)
    panel.education += Counter(filter(None, [said.education]))
    panel.experience += Counter(filter(None, [said.experience]))
