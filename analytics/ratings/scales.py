"""The scales of a campaign's criteria, as statistics read them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from annotation.models import Campaign, Criterion

if TYPE_CHECKING:
    from analytics.stats.core.scales import Level, Scale


def campaign_scales(campaign: Campaign) -> dict[str, Scale]:
    """The declared scale of every criterion of the campaign's rubric version."""
    return {criterion.key: criterion_scale(criterion) for criterion in campaign.rubric_version.criteria.all()}


def criterion_scale(criterion: Criterion) -> Scale:
    """A criterion's scale: its points, the steps between its ends, or any number between them."""
    from analytics.stats.core.scales import Scale, range_scale

    level = cast("Level", criterion.level)
    if criterion.points:
        declared = Scale(points=tuple(sorted(criterion.values)), level=level)
    else:
        declared = range_scale(criterion.minimum, criterion.maximum, criterion.step, level)
    return replace(declared, lower_is_better=criterion.direction == criterion.Direction.LOWER)
