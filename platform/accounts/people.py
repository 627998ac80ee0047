"""Projects, their members and invitations: one role per person, and at least one lead per project.

An invitation is a link with a secret that can be used once, until it expires or is revoked.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.contrib.sessions.backends.base import SessionBase
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import access, audit, jobs
from accounts.models import SIGHTED, Invitation, Membership, Profile, Project, ProjectDeletion, Role, User
from accounts.refusals import Refused

SESSION_KEY = "invitation"
DEFAULT_DAYS = 14
ANNOTATORS_ONLY = gettext_lazy(
    "An invitation can add only annotators to a panel, because leads and researchers see verdicts."
)
MAY_NOT_FOUND = gettext_lazy("You can't create projects here. Ask the operator of this server for permission.")


def create_project(*, name: str, founder: User, slug: str = "", description: str = "") -> Project:
    """Create a project with ``founder`` as its lead. Pages and API first check whether the user may create projects."""
    slug = slug or slugify(name)[:60]
    if not slug:
        raise Refused(_("Give the project an address of letters, digits and hyphens."), fields={"slug": _("Missing.")})
    try:
        with transaction.atomic():
            project = Project.objects.create(name=name, slug=slug, description=description)
            Membership.objects.create(project=project, user=founder, role=Role.LEAD)
            audit.record(actor=founder, project=project, verb="found project", subject=project, fields=["name"])
    except IntegrityError:
        taken = _("The address “%(slug)s” is already in use. Choose another.") % {"slug": slug}
        if ProjectDeletion.objects.filter(project__slug=slug).exists():
            taken = _("The address “%(slug)s” is of a deleted project, which can still be restored. Choose another.")
            taken %= {"slug": slug}
        raise Refused(taken, fields={"slug": taken}) from None
    return project


def may_found(user: User) -> bool:
    """Whether the operator allows this user to create projects."""
    return user.may_found_projects


def ask_for_founding(user: User) -> list[User]:
    """Whom a user who may not create projects can ask: the operators, else members of their projects who may create
    one and invite them. At most three; nobody for a user who is only an annotator.
    """
    sighted = Membership.objects.filter(user=user, role__in=SIGHTED)
    if not sighted.exists():
        return []
    there_are = User.objects.filter(is_active=True, erased_at=None).exclude(pk=user.pk).order_by("pk")
    colleagues = Membership.objects.filter(project__in=sighted.values("project")).values("user")
    return list(
        there_are.filter(is_superuser=True)[:3] or there_are.filter(may_found_projects=True, pk__in=colleagues)[:3]
    )


def allow_founding(*, user: User, allowed: bool) -> bool:
    """Allow a user to create projects, or revoke it; only the operator calls this. False if nothing changed."""
    with transaction.atomic():
        changed = User.objects.filter(pk=user.pk, may_found_projects=not allowed).update(may_found_projects=allowed)
        if changed:
            verb = "allow founding" if allowed else "forbid founding"
            audit.record(actor=None, project=None, verb=verb, subject=user, fields=["may_found_projects"])
    return bool(changed)


def describe_project(*, project: Project, name: str, description: str, actor: User) -> bool:
    """Change a project's name and description; its address stays. False if nothing changed."""
    name, changes = name.strip(), {}
    if not name:
        raise Refused(_("Give the project a name."), fields={"name": _("Missing.")})
    if name != project.name:
        changes["name"] = name
    if description != project.description:
        changes["description"] = description
    if not changes:
        return False
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(**changes)
        audit.record(actor=actor, project=project, verb="rename project", subject=project, fields=changes)
    project.name, project.description = name, description
    return True


# Functions of other apps that stop running work, with the reason, when a project is archived or deleted.
stops: list[Callable[[Project, str], None]] = []


def archive(*, project: Project, actor: User) -> bool:
    """Make a project read-only and stop its running work; False if it was archived before."""
    with transaction.atomic():
        done = Project.objects.filter(pk=project.pk, archived_at=None).update(archived_at=timezone.now())
        if done:
            jobs.cancel_all(project=project, sentence=_("This was cancelled because the project was archived."))
            for stop in stops:
                stop(project, _("The project was archived."))
            audit.record(actor=actor, project=project, verb="archive project", subject=project)
    return bool(done)


def unarchive(*, project: Project, actor: User) -> bool:
    """Allow changes in an archived project again; stopped work must be started again by hand."""
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)  # a deletion that has begun ends first
        archived = Project.objects.filter(pk=project.pk, archived_at__isnull=False)
        done = archived.exclude(pk__in=ProjectDeletion.objects.values("project")).update(archived_at=None)
        if done:
            audit.record(actor=actor, project=project, verb="unarchive project", subject=project)
    return bool(done)


def require_second_factor(*, project: Project, required: bool, actor: User) -> bool:
    """Require two-factor authentication of all members, or no longer. Only a user who has it can require it."""
    if required and not access.has_second_factor(actor):
        raise Refused(
            _("Set up two-factor authentication for your own account first, so that you don't lose access."),
            code="no_factor",
        )
    with transaction.atomic():
        changed = Project.objects.filter(pk=project.pk, requires_second_factor=not required)
        done = changed.update(requires_second_factor=required)
        if done:
            fields = ["requires_second_factor"]
            audit.record(actor=actor, project=project, verb="change project", subject=project, fields=fields)
    return bool(done)


def change_role(*, member: Membership, role: Role, actor: User) -> None:
    """Change a member's role. The last lead must stay lead."""
    with transaction.atomic():
        _keep_a_lead(member, role)
        Membership.objects.filter(pk=member.pk).update(role=role)
        audit.record(actor=actor, project=member.project, verb="change role", subject=member, fields=["role"])


def remove_member(*, member: Membership, actor: User) -> None:
    """Remove a member from a project. Their ratings are kept, under their pseudonym."""
    with transaction.atomic():
        _keep_a_lead(member, None)
        audit.record(actor=actor, project=member.project, verb="remove member", subject=member)
        Membership.objects.filter(pk=member.pk).delete()


def _keep_a_lead(member: Membership, role: Role | None) -> None:
    leads = Membership.objects.select_for_update().filter(project=member.project, role=Role.LEAD)
    if role != Role.LEAD and list(leads.values_list("pk", flat=True)) == [member.pk]:
        raise Refused(_("A project needs a lead. Make somebody else lead first."), code="last_lead")


def describe_self(
    *,
    user: User,
    education: str,
    experience: str,
    grew_up_with: list[str],
    consent: bool,
    dialect: str = "",
    age_band: str = "",
) -> Profile:
    """Store the facts that a user lets studies publish about their panel; without consent nothing is stored."""
    texts = {"education": education, "experience": experience, "dialect": dialect, "age_band": age_band}
    facts = {**texts, "grew_up_with": grew_up_with}
    kept = facts if consent else {**dict.fromkeys(texts, ""), "grew_up_with": []}
    with transaction.atomic():
        profile, _created = Profile.objects.update_or_create(
            user=user, defaults={**kept, "consented_at": timezone.now() if consent else None}
        )
        audit.record(actor=user, project=None, verb="describe self", subject=profile, fields=list(facts))
    return profile


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
    seat_member: Callable[[Membership, int, User], str]
    names: Callable[[Sequence[Invitation]], dict[int, str]]


# Set by the app that has the panels, when it is loaded.
panel_access: list[PanelAccess] = []


def offered_panels(project: Project) -> list[tuple[int, str]]:
    """Primary key and name of every panel that an invited annotator can join."""
    return [panel for access in panel_access for panel in access.choices(project)]


def panel_names(invitations: Sequence[Invitation]) -> dict[int, str]:
    """Map each invitation's primary key to the name of the panel that the annotator joins; others are left out."""
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
    panels: Sequence[int] = (),
    languages: Sequence[str] = (),
    days: int = DEFAULT_DAYS,
) -> tuple[Invitation, str]:
    """Create an invitation, for one address only if `email` is given. The secret is returned once and not stored.

    The person who accepts it joins the `panels` (primary keys); this is possible for annotators only.
    """
    if panels and role != Role.ANNOTATOR:
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
        for access in panel_access if panels else ():
            for panel in dict.fromkeys(panels):
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
        Project.objects.select_for_update(no_key=True).get(pk=invitation.project_id)  # nobody joins while it is deleted
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
