"""The providers that a project may use, and what it may spend there in all and in a day of UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Project, ProjectDeletion, User
from accounts.refusals import Refused
from judging.asking import endpoints
from judging.asking.budgets import Cap, spent_at
from judging.models import ProviderAllowance

LARGEST_CAP = Decimal(100_000)


def needs_allowance(provider: str) -> bool:
    """Whether a declared provider may be used only by projects that are allowed it: it is not a simulated one."""
    declared = endpoints.find_provider(provider)
    return declared is not None and not declared.simulated


def allowance(project: Project, provider: str) -> ProviderAllowance | None:
    """What a project may spend at a provider; None at a simulated one. Refuses a provider that is not allowed."""
    if not needs_allowance(provider):
        return None
    provider_allowance = ProviderAllowance.objects.filter(project=project, provider=provider).first()
    if provider_allowance is None:
        raise Refused(not_allowed(project, provider), code="provider_not_allowed")
    return provider_allowance


def allowed_names(project: Project) -> list[str]:
    """The declared providers that the project may use; the simulated ones need no permission."""
    allowed = set(ProviderAllowance.objects.filter(project=project).values_list("provider", flat=True))
    return [name for name, each in endpoints.all_providers().items() if each.simulated or name in allowed]


def locked_caps(project: Project, provider: str, now: datetime) -> list[Cap]:
    """The caps of a project at a provider, locked until the end of the transaction. Refuses one that is not allowed.

    Every sum is one query: a request that another worker settles at the same time is counted exactly once. Every paid
    request comes through here, so this is where those of a deleted project end.
    """
    if ProjectDeletion.objects.filter(project=project).exists():
        raise Refused(_("The project was deleted."), code="deleted")
    if not needs_allowance(provider):
        return []
    rows = ProviderAllowance.objects.select_for_update(no_key=True)
    allowed = rows.filter(project=project, provider=provider).first()
    if allowed is None:
        raise Refused(not_allowed(project, provider), code="provider_not_allowed")
    return project_caps(allowed, now)


def not_allowed(project: Project, provider: str) -> str:
    """What to say of a provider that the project may not use."""
    sentence = _(
        "This project may not use the provider “%(provider)s”. The operator can allow it with: panelbench "
        "allow_provider %(project)s %(provider)s --cap USD"
    )
    return sentence % {"provider": provider, "project": project.slug}


def allow(
    *,
    project: Project,
    provider: str,
    cap_total: Decimal | None = None,
    cap_per_day: Decimal | None = None,
    actor: User | None = None,
) -> ProviderAllowance:
    """Allow a project to use a declared provider within these caps; calling it again changes the caps."""
    if endpoints.find_provider(provider) is None:
        declared = ", ".join(endpoints.all_providers()) or _("none")
        sentence = _("The provider “%(name)s” is not declared (declared: %(declared)s).")
        raise Refused(sentence % {"name": provider, "declared": declared}, code="unknown_provider")
    for cap in (cap_total, cap_per_day):
        if cap is not None and not 0 <= cap <= LARGEST_CAP:
            raise Refused(_("A cap must be from 0 to %s USD.") % LARGEST_CAP, code="cap")
    with transaction.atomic():
        caps = {"cap_total": cap_total, "cap_per_day": cap_per_day}
        allowed, _made = ProviderAllowance.objects.update_or_create(project=project, provider=provider, defaults=caps)
        audit.record(actor=actor, project=project, verb="allow provider", subject=allowed, fields=sorted(caps))
    return allowed


def revoke(*, project: Project, provider: str, actor: User | None = None) -> bool:
    """Take a provider from a project: its runs there pause. False when it was not allowed."""
    with transaction.atomic():
        allowed = ProviderAllowance.objects.filter(project=project, provider=provider).first()
        if allowed is None:
            return False
        audit.record(actor=actor, project=project, verb="revoke provider", subject=allowed)
        allowed.delete()
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """A provider that a project may use, for people to read: its caps, and what is spent or reserved of them."""

    provider: str
    simulated: bool = False
    cap_total: Decimal | None = None
    cap_per_day: Decimal | None = None
    spent: Decimal | None = None
    spent_today: Decimal | None = None


def allowed_providers(project: Project) -> list[Allowed]:
    """Every provider that a project may use: those it is allowed, and the simulated ones."""
    rows = [
        Allowed(
            provider=provider_allowance.provider,
            cap_total=provider_allowance.cap_total,
            cap_per_day=provider_allowance.cap_per_day,
            spent=spent_at(project.pk, provider_allowance.provider).all,
            spent_today=spent_at(project.pk, provider_allowance.provider, _midnight()).all,
        )
        for provider_allowance in ProviderAllowance.objects.filter(project=project)
    ]
    named = {row.provider for row in rows}
    simulated = [name for name, provider in settings.PROVIDERS.items() if provider.simulated and name not in named]
    return [*rows, *(Allowed(provider=name, simulated=True) for name in simulated)]


def project_caps(allowed: ProviderAllowance, now: datetime) -> list[Cap]:
    """The caps of a project at a provider, in all and for the day; ``allowed`` is locked by the caller."""
    named = {"provider": allowed.provider}
    project_caps = []
    if allowed.cap_total is not None:
        sentence = _(
            "The project has spent its limit at %(provider)s, or the rest is too small for another call. Ask the "
            "operator to raise the limit."
        )
        spent = spent_at(allowed.project_id, allowed.provider)
        project_caps.append(Cap(allowed.cap_total, spent, sentence % named, allowed.provider))
    if allowed.cap_per_day is not None:
        sentence = _(
            "The project has spent its daily limit at %(provider)s, or the rest is too small for another call. "
            "Resume after midnight UTC, or ask the operator to raise the limit."
        )
        spent = spent_at(allowed.project_id, allowed.provider, _midnight(now))
        project_caps.append(Cap(allowed.cap_per_day, spent, sentence % named, allowed.provider))
    return project_caps


def _midnight(now: datetime | None = None) -> datetime:
    today = (now or timezone.now()).astimezone(UTC)
    return today.replace(hour=0, minute=0, second=0, microsecond=0)
