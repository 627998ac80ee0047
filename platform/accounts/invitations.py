"""Invitations: links with a secret that can be used once, until they expire or are revoked."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.sessions.backends.base import SessionBase
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import audit
from accounts.models import Invitation, Membership, Project, Role, User
from accounts.refusals import Refused

SESSION_KEY = "invitation"
DEFAULT_DAYS = 14
ANNOTATORS_ONLY = gettext_lazy(
    "An invitation can add only annotators to a panel, because leads and researchers see verdicts."
)


class InvitationClosed(Refused):
    """The invitation is unknown, used, revoked or expired."""


class InvitedOther(Refused):
    """The invitation is for another e-mail address than the account's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelAccess:
    """The functions of the app that has the panels; this app knows panels by primary key only."""

    choices: Callable[[Project], list[tuple[int, str]]]
    reserve: Callable[[Invitation, int], None]
    seat: Callable[[Invitation, User], None]
    names: Callable[[Sequence[Invitation]], dict[int, str]]


# Set by the app that has the panels, when it is loaded.
panel_access: list[PanelAccess] = []


def offered_panels(project: Project) -> list[tuple[int, str]]:
    """Primary key and name of every panel that an invited annotator can join."""
    return [panel for access in panel_access for panel in access.choices(project)]


def panel_names(invitations: Sequence[Invitation]) -> dict[int, str]:
    """By invitation's primary key, the name of the panel that the annotator joins; others are left out."""
    return {pk: name for access in panel_access for pk, name in access.names(invitations).items()}


def invitation_digest(secret: str) -> str:
    """The digest that is stored instead of the secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def invite(
    *,
    project: Project,
    role: Role,
    created_by: User,
    email: str = "",
    name: str = "",
    note: str = "",
    panel: int | None = None,
    languages: Sequence[str] = (),
    days: int = DEFAULT_DAYS,
) -> tuple[Invitation, str]:
    """Create an invitation, for one address only if `email` is given. The secret is returned once and not stored.

    The person who accepts it joins `panel` (a primary key); this is possible for annotators only.
    """
    if panel is not None and role != Role.ANNOTATOR:
        raise Refused(str(ANNOTATORS_ONLY), code="sees_verdicts", fields={"panel": str(ANNOTATORS_ONLY)})
    secret = secrets.token_urlsafe(32)
    with transaction.atomic():
        invitation = Invitation.objects.create(
            project=project,
            role=role,
            email=email.strip().lower(),
            name=name.strip(),
            note=note,
            languages=list(languages),
            secret_digest=invitation_digest(secret),
            created_by=created_by,
            expires_at=timezone.now() + timedelta(days=days),
        )
        if panel is not None:
            for access in panel_access:
                access.reserve(invitation, panel)
        audit.record(actor=created_by, project=project, verb="invite", subject=invitation, fields=["role"])
    return invitation, secret


def find_invitation(secret: str) -> Invitation:
    """The open invitation with this secret. Raises ``InvitationClosed``."""
    invitation = (
        Invitation.objects.open().select_related("project").filter(secret_digest=invitation_digest(secret)).first()
    )
    if invitation is None:
        raise InvitationClosed(
            _("This invitation was used, withdrawn or has expired. Ask the project's lead for a new one.")
        )
    return invitation


def remember(session: SessionBase, secret: str) -> None:
    """Store the secret in the session while its holder signs in or signs up."""
    session[SESSION_KEY] = secret


def pending(session: SessionBase) -> Invitation | None:
    """The open invitation in this session, or None."""
    try:
        return find_invitation(session[SESSION_KEY])
    except (KeyError, InvitationClosed):
        return None


def bind(*, invitation: Invitation, email: str) -> None:
    """Bind an invitation without an address to ``email``, because an account has this address already.

    So the holder of a link can test at most one address for an account.
    """
    Invitation.objects.open().filter(pk=invitation.pk, email="").update(email=email)


def is_used_by(*, secret: str, user: User) -> bool:
    """Whether the user has accepted the invitation with this secret."""
    return Invitation.objects.filter(secret_digest=invitation_digest(secret), accepted_by=user).exists()


def accept(*, secret: str, user: User) -> Membership:
    """Accept the invitation. By compare-and-set, so one link creates one membership even if it is used concurrently."""
    invitation = find_invitation(secret)
    if invitation.email not in ("", user.email):
        raise Refused(
            _("This invitation is for another e-mail address. Sign in with that one, or ask the lead for a new link.")
        )
    if Membership.objects.filter(project=invitation.project, user=user).exists():
        raise Refused(_("You are already in this project. The link still works for the person who was invited."))
    with transaction.atomic():
        taken = (
            Invitation.objects.open()
            .filter(pk=invitation.pk, email=invitation.email)
            .update(accepted_by=user, accepted_at=timezone.now())
        )
        if not taken:
            raise InvitationClosed(_("This invitation has just been used. Ask the project lead for a new one."))
        member, _is_new = Membership.objects.get_or_create(
            project=invitation.project, user=user, defaults={"role": invitation.role}
        )
        user.languages = sorted({*user.languages, *invitation.languages})
        user.name = user.name or invitation.name
        user.save(update_fields=["languages", "name"])
        for access in panel_access:
            access.seat(invitation, user)
        audit.record(actor=user, project=invitation.project, verb="accept invitation", subject=invitation)
    return member


def revoke_invitation(*, invitation: Invitation, actor: User) -> bool:
    """Revoke an open invitation; False if it was used or revoked before."""
    with transaction.atomic():
        done = Invitation.objects.open().filter(pk=invitation.pk).update(revoked_at=timezone.now())
        if done:
            audit.record(actor=actor, project=invitation.project, verb="revoke invitation", subject=invitation)
    return bool(done)
