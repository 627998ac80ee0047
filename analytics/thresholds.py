"""Thresholds for the use of judges: a project declares them before it sees their figures, in versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Project, User
from accounts.refusals import Refused
from analytics.models import GateThresholds, Snapshot
from analytics.questions import Settings

LIMITS: dict[str, tuple[float, float]] = {
    "epsilon": (0.0, 1.0),
    "bias_margin": (0.001, 0.5),
    "flip_rate": (0.0, 1.0),
    "fewest_items": (10, 100_000),
    "alpha_ceiling": (-1.0, 1.0),
    "ac_ceiling": (-1.0, 1.0),
    "omega": (0.01, 1.0),
    "readable": (0.0, 1.0),
    "tau_b": (-1.0, 1.0),
    "tau_b_low": (-1.0, 1.0),
}
"""What a threshold may be set to."""
AUDITS = ("verbosity", "self_preference", "perturbation", "sensitivity")
"""The audits that may be asked for. The last two need an audit run with changed texts; see docs/gate.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings(Settings):
    """The settings of a campaign's decisions: the primary key of the thresholds that hold.

    Ratings by people who could see verdicts do not speak for a judge.
    """

    blind_only: bool = True
    thresholds: int = 0


def preset_values(preset: str) -> dict[str, Any]:
    """The thresholds of a preset."""
    from analytics.stats.planning.gate import PRESETS

    return {**{name: getattr(PRESETS[preset], name) for name in LIMITS}, "audits": list(PRESETS[preset].audits)}


def current_thresholds(project: Project) -> GateThresholds | None:
    """Those that hold: the newest version."""
    return GateThresholds.objects.filter(project=project).select_related("declared_by").first()


def gate_settings(project: Project) -> GateSettings | None:
    """Under what a campaign's decisions are computed; None before thresholds are declared."""
    newest = current_thresholds(project)
    return GateSettings(thresholds=newest.pk) if newest else None


def figures_since(project: Project) -> datetime | None:
    """Since when figures of a judge beside the panel can be read in the project; None where there are none."""
    of_page = Q(content__rated__ratings__gt=0, content__rated__verdicts__gt=0)
    of_question = Q(content__counts__ratings__gt=0, content__counts__verdicts__gt=0)
    shown = Snapshot.objects.filter(of_page | of_question, campaign__project=project)
    return shown.order_by("pk").values_list("created_at", flat=True).first()


def declare_thresholds(
    *, project: Project, preset: str, changes: Mapping[str, float | Sequence[str]] | None = None, actor: User | None
) -> GateThresholds:
    """A new version: the preset's thresholds with changes. The same again is the version that there is.

    Refused with the sentence under the threshold's name. Whether a judge's figures could be read is stored with it.
    """
    values = _checked({**preset_values(_known_preset(preset)), **(changes or {})}, changes or {})
    newest = current_thresholds(project)
    if newest and newest.preset == preset and all(getattr(newest, name) == value for name, value in values.items()):
        return newest
    changed = [name for name, value in values.items() if newest is None or getattr(newest, name) != value]
    number = newest.number + 1 if newest else 1
    try:
        with transaction.atomic():
            declared = GateThresholds.objects.create(
                project=project,
                number=number,
                preset=preset,
                figures_since=figures_since(project),
                declared_by=actor,
                **values,
            )
            audit.record(actor=actor, project=project, verb="declare thresholds", subject=declared, fields=changed)
    except IntegrityError:
        sentence = _("Somebody else declared thresholds at the same time. Look at theirs first.")
        raise Refused(sentence, code="taken") from None
    return declared


def _known_preset(preset: str) -> str:
    if preset not in GateThresholds.Preset.values:
        known = ", ".join(GateThresholds.Preset.values)
        sentence = _("“%(given)s” is no preset. There are: %(all)s.") % {"given": preset, "all": known}
        raise Refused(sentence, code="unknown_choice", fields={"preset": sentence})
    return preset


def _checked(values: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    problems: dict[str, str] = {}
    if unknown := sorted(set(given) - {*LIMITS, "audits"}):
        known = {"name": unknown[0], "all": ", ".join((*LIMITS, "audits"))}
        problems[unknown[0]] = _("There is no threshold “%(name)s”. There are: %(all)s.") % known
    for name, (low, high) in LIMITS.items():
        if not (isinstance(values[name], int | float) and low <= values[name] <= high):
            problems[name] = _("This is a number from %(low)g to %(high)g.") % {"low": low, "high": high}
    if not problems and values["tau_b_low"] > values["tau_b"]:
        problems["tau_b_low"] = _("The lower bound can’t be above the value itself.")
    if strangers := [name for name in values["audits"] if name not in AUDITS]:
        known = {"name": strangers[0], "all": ", ".join(AUDITS)}
        problems["audits"] = _("There is no audit “%(name)s”. There are: %(all)s.") % known
    if problems:
        raise Refused(next(iter(problems.values())), code="unknown_choice", fields=problems)
    kept = {name: values[name] for name in LIMITS}
    kept["fewest_items"] = int(kept["fewest_items"])
    return {**kept, "audits": sorted(set(values["audits"]), key=AUDITS.index)}
