"""Panels and their annotators; what is erased with a person (DESIGN 8.25), and their removal by a lead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit, languages, removal
from accounts.models import SIGHTED, Invitation, Membership, Project, Role, User
from accounts.refusals import Refused
from analytics.stats.core.identifiers import normal_identifier
from annotation import adjudication
from annotation.models import (
    Acknowledgement,
    Adjudication,
    Annotation,
    Annotator,
    Assignment,
    ClosingAnswer,
    ControlPause,
    Draft,
    Duty,
    EvidenceSpan,
    ExamAttempt,
    InvitedSeat,
    ItemQuestion,
    KeptDraft,
    MismatchReview,
    Panel,
    PanelSeat,
    PrivateNote,
    Rating,
    Skip,
    Upload,
)

TRIES = 5


def create(*, project: Project, name: str, language: str = "", actor: User | None = None) -> Panel:
    """Create an empty panel. ``language`` is the native language of its annotators, "" for any."""
    try:
        tag = languages.canonical_language(language) if language else ""
    except ValueError as error:
        raise Refused(str(error), code="invalid", fields={"language": str(error)}) from None
    try:
        with transaction.atomic():
            panel = Panel.objects.create(project=project, name=name, language=tag)
            audit.record(actor=actor, project=project, verb="create panel", subject=panel, fields=["language", "name"])
    except IntegrityError:
        taken = _("There is already a panel called “%(name)s”. Choose another name.") % {"name": name}
        raise Refused(taken, code="name_taken", fields={"name": taken}) from None
    return panel


def annotator_for(*, project: Project, user: User) -> Annotator:
    """The annotator (pseudonym) of a member in a project; created when it is first needed."""
    for _attempt in range(TRIES):
        annotator = Annotator.objects.filter(project=project, user=user).first()
        if annotator is not None:
            return annotator
        try:
            with transaction.atomic():
                return Annotator.objects.create(project=project, user=user, pseudonym=_pseudonym(project))
        except IntegrityError:
            continue  # another request has just used the number, or created this annotator
    raise Refused(_("Too many people are being added at the same time. Try again."), code="busy")


def _pseudonym(project: Project) -> str:
    """`A01`, `A02` and so on: the next number that is free in the project."""
    taken = set(Annotator.objects.filter(project=project).values_list("pseudonym", flat=True))
    number = len(taken) + 1
    while f"A{number:02d}" in taken:
        number += 1
    return f"A{number:02d}"


def seat(
    *,
    panel: Panel,
    user: User | None = None,
    annotator: Annotator | None = None,
    actor: User | None = None,
    only_blind: bool = False,
) -> PanelSeat:
    """Add a member (``user``) or an existing ``annotator`` to the panel; an existing seat is returned unchanged.

    ``only_blind``: refuse a person who can see verdicts and other people's ratings (code ``sees_verdicts``).
    """
    role = _role(panel, annotator.user if annotator else user)
    if only_blind and role in SIGHTED:
        sentence = _(
            "%(name)s is a %(role)s and can see verdicts and other people's ratings. Their ratings will be marked "
            "as not blind, and the numbers can leave them out. The mark may show who is behind the pseudonym. "
            "Confirm to add this person anyway."
        )
        named = {"name": annotator.user if annotator else user, "role": Role(role).label.lower()}
        raise Refused(sentence % named, code="sees_verdicts", fields={"confirmed": sentence % named})
    if annotator is None:
        if user is None or role is None:
            raise Refused(
                _("Only members of the project can join a panel. Invite the person first."), code="not_a_member"
            )
        annotator = annotator_for(project=panel.project, user=user)
    if annotator.project_id != panel.project_id:
        raise Refused(_("This annotator belongs to another project."), code="other_project")
    with transaction.atomic():
        taken, is_new = PanelSeat.objects.get_or_create(panel=panel, annotator=annotator)
        if is_new:
            seen = ["sees_verdicts"] if role in SIGHTED else []
            audit.record(actor=actor, project=panel.project, verb="seat annotator", subject=taken, fields=seen)
    return taken


def _role(panel: Panel, user: User | None) -> str | None:
    return Membership.objects.filter(project=panel.project_id, user=user).values_list("role", flat=True).first()


def seats(panel: Panel) -> QuerySet[PanelSeat]:
    """The seats of a panel, with ``sees_verdicts``: whether the person's role shows them verdicts and ratings now."""
    sighted = Membership.objects.filter(project=panel.project_id, user=OuterRef("annotator__user"), role__in=SIGHTED)
    panel_seats = PanelSeat.objects.filter(panel=panel).annotate(sees_verdicts=Exists(sighted))
    return panel_seats.select_related("annotator__user").order_by("annotator__pseudonym")


def unseat(*, seat: PanelSeat, actor: User | None = None) -> None:
    """Remove an annotator from the panel. They get no new items, may finish their current item, and keep their
    ratings."""
    with transaction.atomic():
        audit.record(actor=actor, project=seat.panel.project, verb="unseat annotator", subject=seat)
        PanelSeat.objects.filter(pk=seat.pk).delete()


def choices(project: Project) -> list[tuple[int, str]]:
    """Primary key and name of every panel of the project, for the form of an invitation."""
    return list(Panel.objects.filter(project=project).values_list("pk", "name"))


def reserve(invitation: Invitation, panel: int) -> None:
    """Store that the person who accepts the invitation joins this panel."""
    reserved = Panel.objects.filter(project=invitation.project_id, pk=panel).first()
    if reserved is None:
        raise Refused(_("Choose a panel of this project."), code="invalid", fields={"panels": _("Unknown.")})
    InvitedSeat.objects.create(invitation=invitation, panel=reserved)


def seat_invited(invitation: Invitation, user: User) -> None:
    """Add the person who accepted the invitation to its panels, if it has any."""
    for invited in InvitedSeat.objects.select_related("panel__project").filter(invitation=invitation).order_by("pk"):
        seat(panel=invited.panel, user=user, actor=invitation.created_by)
        invited.delete()


def seat_listed(member: Membership, panel: int, actor: User) -> str:
    """Add a member who stands in a list of people to invite to a panel; returns its name. Refused if they can see
    verdicts."""
    found = Panel.objects.select_related("project").filter(project=member.project_id, pk=panel).first()
    if found is None:
        raise Refused(_("Choose a panel of this project."), code="invalid", fields={"panels": _("Unknown.")})
    seat(panel=found, user=member.user, actor=actor, only_blind=True)
    return found.name


def names_by_invitation(invitations: Sequence[Invitation]) -> dict[int, str]:
    """Map each primary key of an invitation to the names of its panels; invitations without a panel are left out."""
    seats = InvitedSeat.objects.filter(invitation__in=invitations).order_by("panel__name")
    named: dict[int, list[str]] = {}
    for invitation, name in seats.values_list("invitation", "panel__name"):
        named.setdefault(invitation, []).append(name)
    return {invitation: ", ".join(names) for invitation, names in named.items()}


def redact(user: User, project: Project | None = None) -> None:
    """Empty a person's rationales and notes, delete their drafts, free their leased items, remove them from panels.

    In one project, or in all of them. Runs in the transaction that erases or removes the person. Scores and times are
    kept.
    """
    own = Annotator.objects.filter(user=user, **({"project": project} if project else {}))
    Rating.objects.filter(annotation__annotator__in=own).exclude(rationale="").update(rationale="")
    Skip.objects.filter(annotator__in=own).exclude(note="").update(note="")
    ClosingAnswer.objects.filter(annotator__in=own).exclude(comment="").update(comment="")
    adjudicated = Adjudication.objects.filter(adjudicator=user)
    uploaded = Upload.objects.filter(created_by=user)
    if project is not None:
        adjudicated, uploaded = adjudicated.filter(campaign__project=project), uploaded.filter(project=project)
    adjudicated.update(rationale="", cause_note="")
    uploaded.update(name="")
    Draft.objects.filter(annotator__in=own).delete()
    KeptDraft.objects.filter(annotator__in=own).delete()
    PrivateNote.objects.filter(annotator__in=own).delete()
    ItemQuestion.objects.filter(annotator__in=own).update(text="")
    held = Assignment.objects.filter(annotator__in=own, state=Assignment.State.LEASED)
    held.update(state=Assignment.State.OPEN, annotator=None, key=None, leased_at=None, leased_until=None)
    PanelSeat.objects.filter(annotator__in=own).delete()
    MismatchReview.objects.filter(assignment__annotator__in=own).exclude(objection="").update(objection="")
    own.update(user=None, removed_at=timezone.now())


# --- removal of a person by a lead -----------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class PersonHeld:
    """What a project holds of a person: numbers of scored items, of texts, and of campaigns with their scores."""

    annotator: Annotator
    items: int
    texts: int
    campaigns: int
    may_erase_account: bool


def people_held(project: Project) -> QuerySet[Annotator]:
    """The annotators of a project whose person is known, members or not, by pseudonym."""
    return Annotator.objects.filter(project=project, user__isnull=False).select_related("user").order_by("pseudonym")


def person_held(*, annotator: Annotator, actor: User) -> PersonHeld:
    """What `remove_person` would remove."""
    current = Annotation.objects.filter(annotator=annotator, superseded_at=None)
    own = Rating.objects.filter(annotation__annotator=annotator).exclude(rationale="").count()
    for written in (PrivateNote, ItemQuestion, Draft, KeptDraft):
        own += written._default_manager.filter(annotator=annotator).count()
    return PersonHeld(
        annotator=annotator,
        items=current.count(),
        texts=own,
        campaigns=current.values("campaign").order_by().distinct().count(),
        may_erase_account=annotator.user is not None
        and removal.may_erase_account(user=annotator.user, project=annotator.project, actor=actor),
    )


def remove_person(
    *, annotator: Annotator, typed: str, with_ratings: bool = False, with_account: bool = False, actor: User
) -> int:
    """Remove a person from a project on their request; returns how many ratings were deleted.

    ``typed``: the pseudonym, as a confirmation (code ``wrong_name``). ``with_ratings``: their ratings, too: else these
    stay under the pseudonym, which belongs to nobody then. ``with_account``: erase their account; refused if other
    projects use it (code ``other_projects``). The audit trail names only the pseudonym.
    """
    if normal_identifier(typed) != normal_identifier(annotator.pseudonym):
        sentence = _("This is not the pseudonym. Type “%(name)s” to remove this person.")
        wrong = sentence % {"name": annotator.pseudonym}
        raise Refused(wrong, code="wrong_name", fields={"typed": wrong})
    with transaction.atomic():
        held = Annotator.objects.select_for_update(of=("self",)).select_related("user", "project").get(pk=annotator.pk)
        user, project = held.user, held.project
        if user is None:
            raise Refused(_("This person was removed before."), code="removed")
        if user.pk == actor.pk:
            raise Refused(_("You can't remove yourself. Erase your account, or ask another lead."), code="oneself")
        if with_account and not removal.may_erase_account(user=user, project=project, actor=actor):
            raise Refused(_("Other projects use this account, so it stays. Ask its owner."), code="other_projects")
        fields = [name for name, asked in (("ratings", with_ratings), ("account", with_account)) if asked]
        removal.remove_from_project(user=user, project=project, actor=actor)
        deleted = delete_ratings(held) if with_ratings else 0
        if with_account:
            removal.erase_user(user=user, actor=actor)
        audit.record(actor=actor, project=project, verb="remove person", subject=held, fields=fields)
    return deleted


def delete_ratings(annotator: Annotator) -> int:
    """Delete all that an annotator has scored, with training, exams and controls; returns how many ratings.

    Their slots are free again, what adjudicators saw of them goes, and figures of their campaigns are computed anew.
    """
    own = Annotation.objects.filter(annotator=annotator)
    campaigns = sorted(set(own.filter(campaign__qualification_of=None).values_list("campaign", flat=True)))
    ratings = Rating.objects.filter(annotation__in=own)
    EvidenceSpan.objects.filter(rating__in=ratings).delete()
    count, _by_model = ratings.delete()
    own.delete()
    for rows in (ExamAttempt, ControlPause, Acknowledgement, Skip, ItemQuestion, ClosingAnswer):
        rows._default_manager.filter(annotator=annotator).delete()
    slots = Assignment.objects.filter(annotator=annotator)
    MismatchReview.objects.filter(assignment__in=slots).delete()
    slots.exclude(duty__purpose=Duty.Purpose.RATING).delete()
    # Of others, from before a change of the rubric.
    others = Annotation.objects.filter(assignment=OuterRef("pk")).order_by("-revision")
    revision = Coalesce(Subquery(others.values("revision")[:1]), 0) + 1
    freed = {"annotator": None, "key": None, "leased_at": None, "leased_until": None}
    slots.update(state=Assignment.State.OPEN, revision=revision, **freed)
    for seen in Adjudication.objects.filter(campaign__in=campaigns).iterator():
        left = [each for each in seen.seen if each["rater"] != annotator.pseudonym]
        if len(left) != len(seen.seen):
            Adjudication.objects.filter(pk=seen.pk).update(seen=left, digest=adjudication.digest_of(left))
    for delete in removal.computed:
        delete(campaigns)
    return count
