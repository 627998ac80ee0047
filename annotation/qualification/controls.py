"""Controls and repeats: annotators get them unnoticed among the items; a low match with references pauses the work."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts import audit, mail
from accounts.models import Membership, Role, User
from accounts.refusals import Refused
from analytics.stats.core.shares import wilson_of_share
from annotation.models import (
    Annotator,
    Assignment,
    Campaign,
    ControlPause,
    Duty,
    QualificationRule,
    Rating,
    ReferenceItem,
    Skip,
    WritingText,
)
from annotation.qualification.matching import ReferenceComparison, compare
from annotation.qualification.references import (
    UNSEEN,
    as_seen,
    drawn_number,
    hidden_duties,
    reference_items,
    rule_of,
)

LATEST_NOT_REPEATED = 5
"""How many of the annotator's latest items are never repeated: they would remember them."""


@dataclass(frozen=True, slots=True)
class ControlStanding:
    """The match of an annotator's controls: ``matched``, the mean over ``controls`` items of the share of criteria that
    match, with its Wilson interval (each item counts once). All are None or 0 without controls."""

    controls: int
    matched: float | None
    lower: float | None
    upper: float | None

    def is_below(self, rule: QualificationRule) -> bool:
        """Whether there are enough controls, and the whole interval lies below the threshold."""
        return self.controls >= rule.fewest_controls and self.upper is not None and self.upper < rule.control_threshold


# --- drawing ----------------------------------------------------------------------------------------------------------
def due_purpose(*, duty: Duty, annotator: Annotator, rule: QualificationRule) -> Duty.Purpose | None:
    """Whether the annotator's next item is a control or a repeat; None: an ordinary item.

    It depends only on the rule's seed, the annotator and how many items of the duty they have finished.
    """
    if not rule.control_rate and not rule.repeat_rate:
        return None
    submitted = Assignment.objects.filter(as_seen(duty.pk), annotator=annotator, state=Assignment.State.SUBMITTED)
    skipped = Skip.objects.filter(as_seen(duty.pk), annotator=annotator)
    number = drawn_number(rule.seed, "next", duty.pk, annotator.pk, submitted.count() + skipped.count())
    if number < rule.control_rate:
        return Duty.Purpose.CONTROL
    return Duty.Purpose.REPEAT if number < rule.control_rate + rule.repeat_rate else None


def next_unseen(*, duty: Duty, annotator: Annotator, rule: QualificationRule) -> tuple[Duty, int] | None:
    """The hidden duty and the item of the control or the repeat that comes next; None: an ordinary item comes next.

    It runs the same queries for every item, so that the time that it needs does not reveal a control.
    """
    due = due_purpose(duty=duty, annotator=annotator, rule=rule)
    hidden = hidden_duties(duty)
    # A control of another duty of the campaign counts as had, too: after a pause its references were shown.
    here = Q(duty__campaign__qualification_of=duty.campaign_id, duty__purpose=Duty.Purpose.CONTROL)
    unseen = here | Q(duty__stands_for=duty, duty__purpose=Duty.Purpose.REPEAT)
    had = set(Assignment.objects.filter(unseen, annotator=annotator).values_list("duty__purpose", "item"))
    had |= set(Skip.objects.filter(unseen, annotator=annotator).values_list("duty__purpose", "item"))
    pools = {Duty.Purpose.CONTROL: _controls(duty, annotator), Duty.Purpose.REPEAT: _repeatable(duty, annotator)}
    free = {purpose: [item for item in items if (purpose.value, item) not in had] for purpose, items in pools.items()}
    if due is None or not free[due]:
        return None
    return hidden[due], min(free[due], key=lambda item: drawn_number(rule.seed, due, annotator.pk, item))


def skipped_unseen(*, duty: Duty, annotator: Annotator) -> tuple[Duty, int, datetime] | None:
    """The control or repeat that the annotator skipped first and has not answered, with its hidden duty and the time:
    it comes back as skipped items do. None: there is none."""
    answered = Assignment.objects.filter(duty=OuterRef("duty"), item=OuterRef("item"), annotator=annotator)
    left = Skip.objects.filter(unseen_skips(duty.pk), ~Exists(answered), annotator=annotator).select_related("duty")
    first = left.order_by("at", "pk").first()
    return None if first is None else (first.duty, first.item_id, first.at)


def unseen_skips(duty: Any) -> Q:
    """The skips of the controls and repeats of a duty."""
    return Q(duty__stands_for=duty, duty__purpose__in=UNSEEN)


def _controls(duty: Duty, annotator: Annotator) -> list[int]:
    """The controls of a duty that the annotator did not write themselves."""
    controls = reference_items(duty=duty, purpose=ReferenceItem.Purpose.CONTROL)
    own_text = Exists(WritingText.objects.filter(annotator=annotator).behind("item__"))
    return list(controls.filter(~own_text).values_list("item", flat=True))


def _repeatable(duty: Duty, annotator: Annotator) -> list[int]:
    own = Assignment.objects.filter(duty=duty, annotator=annotator, state=Assignment.State.SUBMITTED)
    by_time = own.annotate(last=Max("annotations__submitted_at")).order_by("-last").values_list("item", flat=True)
    return list(by_time[LATEST_NOT_REPEATED:])


# --- comparing --------------------------------------------------------------------------------------------------------
def control_assignments(*, duty: Duty, annotator: Annotator) -> QuerySet[Assignment]:
    """The annotator's submitted controls of a duty since they were last reinstated, in the order in which they came."""
    own = _submitted_controls(duty, [annotator])
    pauses = ControlPause.objects.filter(duty=duty, annotator=annotator, reinstated_at__isnull=False)
    since = pauses.aggregate(last=Max("paused_at"))["last"]
    return own.filter(leased_at__gt=since) if since else own


def _submitted_controls(duty: Duty, annotators: Sequence[Annotator]) -> QuerySet[Assignment]:
    own = Assignment.objects.filter(
        duty__stands_for=duty,
        duty__purpose=Duty.Purpose.CONTROL,
        annotator__in=annotators,
        state=Assignment.State.SUBMITTED,
    )
    return own.select_related("item").order_by("leased_at", "pk")


def control_comparisons(*, duty: Duty, annotator: Annotator, rule: QualificationRule) -> list[ReferenceComparison]:
    """The annotator's controls beside their reference scores."""
    return compare(control_assignments(duty=duty, annotator=annotator), campaign=duty.campaign_id, rule=rule)


def revealed_comparisons(*, duty: Duty, annotator: Annotator) -> list[ReferenceComparison]:
    """The controls that the annotator may be shown: those that they got before their work was last paused."""
    rule = rule_of(duty.campaign_id)
    pauses = ControlPause.objects.filter(duty=duty, annotator=annotator)
    last = pauses.aggregate(last=Max("paused_at"))["last"]
    if rule is None or last is None:
        return []
    before = _submitted_controls(duty, [annotator]).filter(leased_at__lte=last)
    return compare(before, campaign=duty.campaign_id, rule=rule)


def standing_of(compared: list[ReferenceComparison]) -> ControlStanding:
    """The match over control items. An item counts once, as the share of its criteria that match, so that criteria of
    one item are not taken for independent answers."""
    by_item: dict[int, list[bool]] = defaultdict(list)
    for one in compared:
        by_item[one.assignment.pk].append(one.matched)
    if not by_item:
        return ControlStanding(0, None, None, None)
    controls = len(by_item)
    matched = sum(sum(flags) / len(flags) for flags in by_item.values()) / controls
    lower, upper = wilson_of_share(min(matched, 1.0), controls)
    return ControlStanding(controls, matched, lower, upper)


def comparisons_by_annotator(
    *, duty: Duty, annotators: Sequence[Annotator], rule: QualificationRule
) -> dict[int, list[ReferenceComparison]]:
    """By annotator, as `control_comparisons`."""
    ended = ControlPause.objects.filter(duty=duty, annotator__in=annotators, reinstated_at__isnull=False)
    since = dict(ended.order_by().values_list("annotator").annotate(Max("paused_at")))
    counted = [
        one
        for one in _submitted_controls(duty, annotators)
        if one.annotator_id not in since or (one.leased_at and one.leased_at > since[one.annotator_id])
    ]
    found: dict[int, list[ReferenceComparison]] = defaultdict(list)
    for comparison in compare(counted, campaign=duty.campaign_id, rule=rule):
        found[comparison.assignment.annotator_id or 0].append(comparison)
    return found


def repeats_by_annotator(*, duty: Duty, annotators: Sequence[Annotator]) -> dict[int, tuple[int, int]]:
    """By annotator, the number of repeated answers that are equal to the first ones: (same, compared)."""
    current = Rating.objects.filter(annotation__annotator__in=annotators, annotation__superseded_at=None)
    columns = ("annotation__annotator", "annotation__item", "criterion", "status", "score")
    again = current.filter(
        annotation__assignment__duty__stands_for=duty, annotation__assignment__duty__purpose=Duty.Purpose.REPEAT
    )
    repeated = {row[:3]: row[3:] for row in again.values_list(*columns)}
    items = {item for _annotator, item, _criterion in repeated}
    first = current.filter(annotation__assignment__duty=duty, annotation__item__in=items)
    found: dict[int, tuple[int, int]] = {}
    for row in first.values_list(*columns) if repeated else ():
        if row[:3] in repeated:
            same, n = found.get(row[0], (0, 0))
            found[row[0]] = (same + (row[3:] == repeated[row[:3]]), n + 1)
    return found


# --- pausing ----------------------------------------------------------------------------------------------------------
def open_pause(*, duty: Duty, annotator: Annotator) -> ControlPause | None:
    """The pause of the annotator's work in this duty; None if it is not paused."""
    return ControlPause.objects.filter(duty=duty, annotator=annotator, reinstated_at=None).first()


def pause_if_below(*, duty: Duty, annotator: Annotator, rule: QualificationRule) -> ControlPause | None:
    """Pause the annotator's work if the interval of their match lies below the threshold, and mail the leads."""
    standing = standing_of(control_comparisons(duty=duty, annotator=annotator, rule=rule))
    if not standing.is_below(rule):
        return None
    try:
        with transaction.atomic():
            pause = ControlPause.objects.create(
                duty=duty,
                annotator=annotator,
                controls=standing.controls,
                matched=standing.matched or 0.0,
                upper=standing.upper or 0.0,
            )
            audit.record(actor=None, project=duty.campaign.project, verb="pause annotator", subject=pause)
            _mail_leads(pause)
    except IntegrityError:
        return open_pause(duty=duty, annotator=annotator)
    return pause


def _mail_leads(pause: ControlPause) -> None:
    """One mail to each lead, in the language of their interface."""
    campaign = pause.duty.campaign
    pseudonym = Annotator.objects.values_list("pseudonym", flat=True).get(pk=pause.annotator_id)
    leads = Membership.objects.filter(project=campaign.project_id, role=Role.LEAD, user__is_active=True)
    path = mail.site_address(reverse("qualification", args=[campaign.project.slug, campaign.pk]))
    for membership in leads.select_related("user").order_by("pk"):
        with translation.override(membership.user.ui_language or "en"):
            body = _(
                "The work of %(annotator)s in “%(duty)s” of the campaign “%(campaign)s” in the project “%(project)s” "
                "is paused. Their answers to %(controls)d control items matched the references in %(matched)d %% of "
                "the criteria. The upper end of the 95 %% interval (%(upper)d %%) lies below the threshold.\n\n"
                "Look at the answers and decide: %(path)s"
            ) % {
                "annotator": pseudonym,
                "duty": pause.duty.name,
                "campaign": campaign.name,
                "project": campaign.project.name,
                "matched": round(pause.matched * 100),
                "controls": pause.controls,
                "upper": round(pause.upper * 100),
                "path": path,
            }
            mail.queue_text(subject=_("An annotator's work is paused"), body=body, to=[membership.user.email])


def reinstate(*, pause: ControlPause, note: str = "", actor: User | None = None) -> None:
    """End a pause. Controls before it count no more; those whose references were shown are not drawn again."""
    with transaction.atomic():
        ended = ControlPause.objects.filter(pk=pause.pk, reinstated_at=None).update(
            reinstated_at=timezone.now(), reinstated_by=actor, note=note.strip()[:2000]
        )
        if not ended:
            raise Refused(_("This pause has ended already."), code="wrong_state")
        audit.record(actor=actor, project=pause.duty.campaign.project, verb="reinstate annotator", subject=pause)


def was_revealed(assignment: Assignment) -> bool:
    """Whether the annotator was shown that this control is one: their work was paused after they got it."""
    pauses = ControlPause.objects.filter(duty=assignment.duty.visible_pk, annotator=assignment.annotator_id)
    return bool(assignment.leased_at) and pauses.filter(paused_at__gte=assignment.leased_at).exists()


def below_threshold(campaign: Campaign) -> dict[int, set[int]]:
    """Map each duty to the annotators whose controls fall under the threshold: paused now, or they would be."""
    rule = rule_of(campaign.pk)
    found: dict[int, set[int]] = defaultdict(set)
    if rule is None:
        return found
    done = Assignment.objects.filter(
        duty__campaign__qualification_of=campaign,
        duty__purpose=Duty.Purpose.CONTROL,
        state=Assignment.State.SUBMITTED,
    )
    pairs: Any = done.values_list("duty__stands_for", "annotator").distinct().order_by()
    paused = ControlPause.objects.filter(duty__campaign=campaign, reinstated_at=None)
    for duty, annotator in paused.values_list("duty", "annotator"):
        found[duty].add(annotator)
    duties = {duty.pk: duty for duty in Duty.objects.filter(campaign=campaign).select_related("panel")}
    for duty, annotator in pairs:
        compared = control_comparisons(duty=duties[duty], annotator=Annotator(pk=annotator), rule=rule)
        if annotator not in found[duty] and standing_of(compared).is_below(rule):
            found[duty].add(annotator)
    return found
