"""A campaign continues with a newer version of its rubric: the differences, the effect on the ratings, and the undo.

Stored ratings never change. Every current annotation gets a revision under the new version's criteria, with the ratings
that are kept or mapped; the replaced annotation stays stored under the old version (docs/decisions/0037).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, Q, QuerySet
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import audit, jobs
from accounts.jobs import JobKind
from accounts.models import Job, User
from accounts.refusals import Refused
from annotation import allocation
from annotation.campaigns import lock_campaign
from annotation.carried_ratings import (
    Carrier,
    ChangedCriterion,
    Progress,
    RatedCounts,
    RatedScore,
    RatingDecision,
    lock_assignments,
    restore,
    within,
)
from annotation.models import (
    Adjudication,
    Annotation,
    Campaign,
    Criterion,
    Duty,
    ExamAttempt,
    Rating,
    ReferenceScore,
    RubricChange,
    RubricVersion,
)
from annotation.readers import plain_number, rubric_from_dict
from annotation.rubrics import rubric_differences

LARGE = 5_000
"""Current ratings of a campaign from which a change, or its undo, is carried out in the background."""


def newer_versions(campaign: Campaign) -> QuerySet[RubricVersion]:
    """The published versions of the campaign's rubric after its own, newest first."""
    own = campaign.rubric_version
    later = RubricVersion.objects.published().filter(rubric=own.rubric_id, number__gt=own.number)
    return later.select_related("rubric").order_by("-number")


def touched_criteria(campaign: Campaign, version: RubricVersion) -> list[ChangedCriterion]:
    """What differs between the campaign's version and another one, with the ratings that it touches."""
    before, after = (
        {criterion.key: criterion for criterion in Criterion.objects.filter(rubric_version=each.pk)}
        for each in (campaign.rubric_version, version)
    )
    rated = _rated(campaign)
    documents = (rubric_from_dict(each.document) for each in (campaign.rubric_version, version))
    return [
        ChangedCriterion(one, before.get(one.key), after.get(one.key), rated.get(one.key, RatedCounts()))
        for one in rubric_differences(*documents)
    ]


def _rated(campaign: Campaign) -> dict[str, RatedCounts]:
    current = Rating.objects.filter(annotation__campaign=campaign, annotation__superseded_at=None)
    rows: Any = current.order_by().values("criterion__key").annotate(
        ratings=Count("pk", filter=~Q(status=Rating.Status.STOPPED)),
        items=Count("annotation__item", distinct=True),
        annotators=Count("annotation__annotator", distinct=True),
        not_applicable=Count("pk", filter=Q(status=Rating.Status.NOT_APPLICABLE)),
        imported=Count("pk", filter=Q(annotation__assignment=None)),
    )  # fmt: skip
    scores = defaultdict[str, list[RatedScore]](list)
    scored = current.exclude(score=None).order_by("score").values_list("criterion__key", "score")
    for key, score, count in scored.annotate(count=Count("pk")):
        scores[key].append(RatedScore(score or 0.0, count))
    return {(key := row.pop("criterion__key")): RatedCounts(**row, scores=tuple(scores[key])) for row in rows}


# --- the change -------------------------------------------------------------------------------------------------------
def change_version(
    *,
    campaign: Campaign,
    version: RubricVersion,
    decisions: Mapping[str, RatingDecision],
    from_version: int,
    qualify_again: bool = False,
    is_large: bool = False,
    actor: User | None = None,
) -> RubricChange:
    """Continue with a newer version of the rubric. The campaign must be paused, so that nobody submits.

    ``decisions``: for each criterion that has a choice (`ChangedCriterion.decisions`). ``from_version``: the version
    that the lead has seen. ``qualify_again``: training and exam count only from now on. ``is_large``: only store the
    change with a waiting job; the caller enqueues it. Refused: codes ``not_paused``, ``changed``, ``no_newer``,
    ``invalid``, ``empty_duty``, ``changing``.
    """
    _require_paused(campaign)
    if campaign.rubric_version_id != from_version:
        raise _changed()
    if not newer_versions(campaign).filter(pk=version.pk).exists():
        raise Refused(_("Choose a newer published version of the campaign's rubric."), code="no_newer")
    _check(touched_criteria(campaign, version), decisions)
    with transaction.atomic():
        lock_campaign(campaign)
        require_idle(campaign)
        change = RubricChange.objects.create(
            campaign=campaign,
            from_version=campaign.rubric_version,
            to_version=version,
            decisions={key: decision.as_json for key, decision in decisions.items()},
            qualify_again=qualify_again,
            changed_by=actor,
        )
        if is_large:
            _begin_job(change, actor)
        else:
            _carry_out(change)
    return change


def is_large(campaign: Campaign) -> bool:
    """Whether a change of the campaign's version takes longer than a request should."""
    current = Rating.objects.filter(annotation__campaign=campaign, annotation__superseded_at=None)
    return current.order_by()[: LARGE + 1].count() > LARGE


def require_idle(campaign: Campaign) -> None:
    """Refuse while a worker changes the campaign's version, or goes back to the former one."""
    if pending_change(campaign):
        sentence = _("A worker is changing the version of the rubric. Wait until it has finished, or cancel it.")
        raise Refused(sentence, code="changing")


def pending_change(campaign: Campaign) -> RubricChange | None:
    """The change that waits for a worker, or that a worker carries out or undoes now."""
    return campaign.rubric_changes.filter(job__state__in=Job.OPEN).select_related("job", "to_version__rubric").first()


def _begin_job(change: RubricChange, actor: User | None) -> None:
    total = Annotation.objects.filter(within(change), superseded_at=None).count()
    kind, project = Job.Kind.RUBRIC, change.campaign.project
    jobs.begin(kind=kind, subject=change, project=project, owner=actor, total=total, unit=Job.Unit.ROWS)


def carry_out_job(change_pk: int) -> None:
    """Carry out a change, or its undo, in one transaction: a worker that dies has changed nothing, and another begins
    again. A refusal is the sentence of the job."""
    found = RubricChange.objects.select_related("campaign__project", "campaign__rubric_version__rubric", "to_version")
    change = found.filter(pk=change_pk).first()
    if change is None or (job := jobs.take_job(change, Job.Kind.RUBRIC)) is None:
        return
    try:
        with jobs.JobHeartbeat(job) as heartbeat, transaction.atomic():
            (_carry_out if change.finished_at is None else _take_back)(change, heartbeat.tell)
            if not jobs.finish_job(job, done=heartbeat.total, total=heartbeat.total):
                transaction.set_rollback(True)
    except Refused as refused:
        jobs.fail(job, refused.sentence)
    finally:
        allocation.criteria_of.cache_clear()


def _carry_out(change: RubricChange, tell: Progress = lambda _done, _total: None) -> None:
    """Carry out the change in the caller's transaction, so that everything happens or nothing."""
    campaign, version = change.campaign, change.to_version
    decisions = {key: RatingDecision.from_json(one) for key, one in change.decisions.items()}
    with transaction.atomic():
        paused = Campaign.objects.filter(
            pk=campaign.pk, state=Campaign.State.PAUSED, rubric_version=change.from_version_id
        )
        if not paused.update(rubric_version=version):
            raise _changed()
        lock_assignments(change)
        criteria = touched_criteria(campaign, version)
        _check(criteria, decisions)  # ratings may have been imported since it was asked for
        change.at = timezone.now()
        Campaign.with_hidden.filter(qualification_of=campaign).update(rubric_version=version)
        Carrier(change, criteria, decisions, tell).carry_out()
        change.finished_at = timezone.now()
        change.save(update_fields=["at", "finished_at", "former", "counts"])
        verb, fields = "change rubric version", [*decisions]
        audit.record(actor=change.changed_by, project=campaign.project, verb=verb, subject=campaign, fields=fields)
    allocation.criteria_of.cache_clear()
    campaign.rubric_version = version


def _require_paused(campaign: Campaign) -> None:
    if campaign.state == Campaign.State.CLOSED:
        raise Refused(_("This campaign is closed. Open a new campaign."), code="campaign_closed")
    if campaign.state != Campaign.State.PAUSED:
        sentence = _("Pause the campaign first, so that nobody submits scores during the change. Drafts are kept.")
        raise Refused(sentence, code="not_paused")


def _changed() -> Refused:
    return Refused(_("The campaign has changed since you opened this page. Look at it again."), code="changed")


def _check(criteria: Iterable[ChangedCriterion], decisions: Mapping[str, RatingDecision]) -> None:
    """Refuse decisions that are missing, unknown or impossible, with a sentence for each criterion."""
    wrong: dict[str, str] = {}
    known = {one.difference.key: one for one in criteria}
    for key in decisions.keys() - {key for key, one in known.items() if one.decisions}:
        wrong[key] = _("There is nothing to decide about “%s”.") % key
    for key, one in known.items():
        if one.decisions and (problem := _problem(one, decisions.get(key))):
            wrong[key] = problem
    if wrong:
        raise Refused(" ".join(wrong.values()), code="invalid", fields=wrong)


def _problem(one: ChangedCriterion, decision: RatingDecision | None) -> str:
    key = one.difference.key
    if decision is None:
        return _("Decide what becomes of the ratings on “%s”.") % key
    if decision.decision not in one.decisions:
        named = {"key": key, "all": ", ".join(one.decisions)}
        return _("This is not possible for “%(key)s”. Choose one of: %(all)s.") % named
    if decision.decision != "map" or one.after is None:
        return ""
    given = {score for score, _count in one.rated.scores}
    if unknown := sorted(decision.scores.keys() - given):
        named = {"key": key, "score": str(plain_number(unknown[0]))}
        return _("Nobody gave “%(key)s” the score %(score)s.") % named
    off = [score for score in decision.scores.values() if score is not None and not one.after.is_on_scale(score)]
    if off:
        named = {"key": key, "score": str(plain_number(off[0]))}
        return _("%(score)s is not on the new scale of “%(key)s”.") % named
    if not any(score is not None for score in decision.scores.values()):
        return _("Give “%s” a new score for at least one old score.") % key
    return ""


# --- the way back -----------------------------------------------------------------------------------------------------
def last_change(campaign: Campaign) -> RubricChange | None:
    """The change that led to the campaign's present version, if there was one."""
    done = campaign.rubric_changes.filter(finished_at__isnull=False, undone_at=None)
    changes = done.filter(to_version=campaign.rubric_version_id)
    return changes.select_related("from_version__rubric", "to_version__rubric", "changed_by").first()


def why_final(change: RubricChange) -> str:
    """Why a change can't be undone, as a sentence; "" if it can."""
    since = Annotation.objects.filter(within(change)).filter(
        (Q(superseded_at=None) & (Q(rubric_change=None) | ~Q(rubric_change=change)))
        | Q(submitted_at__gt=change.at)
        | (Q(rubric_change=change) & Q(superseded_at__isnull=False))
    )
    if since.exists():
        return _("It can't be undone: scores were submitted under the new version since.")
    duties = Duty.with_hidden.filter(within(change)).values_list("pk", flat=True)
    if {str(pk) for pk in duties} - change.former["duties"].keys():
        return _("It can't be undone: a task was added since.")
    marked = ReferenceScore.objects.filter(reference__campaign=change.campaign_id).values_list("pk", flat=True)
    if set(marked) != set(change.former["marked"]):
        return _("It can't be undone: reference scores were changed since.")
    if ExamAttempt.objects.filter(duty__campaign=change.campaign_id, started_at__gt=change.at).exists():
        return _("It can't be undone: exams were begun under the new version since.")
    if Adjudication.objects.filter(campaign=change.campaign_id, rubric_version=change.to_version_id).exists():
        return _("It can't be undone: items were adjudicated under the new version since.")
    return ""


def undo_change(*, change: RubricChange, is_large: bool = False, actor: User | None = None) -> None:
    """Go back to the former version, as long as nothing was rated, marked or adjudicated under the new one.

    ``is_large``: begin a job that does it; the caller enqueues it. Refused: codes ``not_paused``, ``changed``,
    ``final``, ``changing``.
    """
    _require_paused(change.campaign)
    with transaction.atomic():
        lock_campaign(change.campaign)
        require_idle(change.campaign)
        if change.finished_at is None or change.undone_at is not None:
            raise _changed()
        if is_large:
            if sentence := why_final(change):
                raise Refused(sentence, code="final")
            _begin_job(change, actor)
        else:
            _take_back(change, actor=actor)


def _take_back(change: RubricChange, tell: Progress = lambda _done, _total: None, *, actor: User | None = None) -> None:
    campaign = change.campaign
    try:
        with transaction.atomic():
            paused = Campaign.objects.filter(
                pk=campaign.pk, state=Campaign.State.PAUSED, rubric_version=change.to_version_id
            )
            if not paused.update(rubric_version=change.from_version_id):
                raise _changed()
            if not RubricChange.objects.filter(pk=change.pk, undone_at=None).update(undone_at=timezone.now()):
                raise _changed()
            lock_assignments(change)
            if sentence := why_final(change):
                raise Refused(sentence, code="final")
            Campaign.with_hidden.filter(qualification_of=campaign).update(rubric_version=change.from_version_id)
            restore(change, tell)
            by = actor or (change.job.owner if change.job else None)
            audit.record(actor=by, project=campaign.project, verb="undo rubric version", subject=campaign)
    except IntegrityError:  # somebody has taken another slot of an item that they had rated
        raise Refused(_("It can't be undone: items have been given to others since."), code="final") from None
    allocation.criteria_of.cache_clear()


# --- what jobs have to know -------------------------------------------------------------------------------------------
KINDS: dict[str, JobKind] = {
    Job.Kind.RUBRIC: JobKind(
        model=RubricChange,
        task=lambda _change: "annotation.tasks.change_rubric_version",
        fail=lambda _change, _sentence: True,  # it changes everything or nothing
        title=lambda change: str(change.campaign.name),
        address=lambda change: reverse("rubric_change", args=[change.campaign.project.slug, change.campaign_id]),
        related=("campaign__project",),
        interrupted=gettext_lazy("It was interrupted %d times. The campaign has the version that it had."),
        loses=gettext_lazy("The campaign keeps the version that it has."),
    )
}
