"""Projects and their members: one role per person, and at least one lead per project."""

from __future__ import annotations

from collections.abc import Callable

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import access, audit, jobs
from accounts.models import Membership, Profile, Project, Role, User
from accounts.refusals import Refused

MAY_NOT_FOUND = gettext_lazy("You can't create projects here. Ask the operator of this server for permission.")


def found_project(*, name: str, founder: User, slug: str = "", description: str = "") -> Project:
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
        raise Refused(taken, fields={"slug": taken}) from None
    return project


def may_found(user: User) -> bool:
    """Whether the operator allows this user to create projects."""
    return user.may_found_projects


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


# Functions of other apps that stop running work when a project is archived; registered when the apps are loaded.
stops: list[Callable[[Project], None]] = []


def archive(*, project: Project, actor: User) -> bool:
    """Make a project read-only and stop its running work; False if it was archived before."""
    with transaction.atomic():
        done = Project.objects.filter(pk=project.pk, archived_at=None).update(archived_at=timezone.now())
        if done:
            jobs.cancel_all(project=project, sentence=_("This was cancelled because the project was archived."))
            for stop in stops:
                stop(project)
            audit.record(actor=actor, project=project, verb="archive project", subject=project)
    return bool(done)


def unarchive(*, project: Project, actor: User) -> bool:
    """Allow changes in an archived project again; stopped work must be started again by hand."""
    with transaction.atomic():
        done = Project.objects.filter(pk=project.pk, archived_at__isnull=False).update(archived_at=None)
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
