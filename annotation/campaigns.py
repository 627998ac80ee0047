"""Campaigns: open, pause and close them, extend their dataset, count their progress."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, F, Max, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, ngettext_lazy

from accounts import audit
from accounts.deletion import Content
from accounts.models import Job, Project, User
from accounts.refusals import Refused
from annotation.models import (
    Annotation,
    Assignment,
    Campaign,
    Dataset,
    Duty,
    Item,
    Panel,
    PanelSeat,
    Rating,
    Rubric,
    RubricVersion,
    Skip,
)

# By state, the states that can follow; a closed campaign stays closed.
MOVES = {
    Campaign.State.OPEN: (Campaign.State.PAUSED, Campaign.State.CLOSED),
    Campaign.State.PAUSED: (Campaign.State.OPEN, Campaign.State.CLOSED),
    Campaign.State.CLOSED: (),
}


@dataclass(frozen=True, slots=True)
class AnnotatorProgress:
    """One annotator's part in a duty, under their pseudonym."""

    pseudonym: str
    submitted: int
    on_desk: int
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class DutyProgress:
    """The progress of a duty: slots by state, and ``complete``, the items with all slots submitted."""

    duty: Duty
    items: int
    complete: int
    slots: int
    submitted: int
    on_desk: int
    annotators: tuple[AnnotatorProgress, ...]


def open_campaign(
    *, project: Project, name: str, dataset: Dataset, rubric_version: RubricVersion, actor: User | None = None
) -> Campaign:
    """Create an open campaign for one dataset and one published rubric version; it has no duties yet."""
    _require_ready(project, dataset, rubric_version)
    try:
        with transaction.atomic():
            campaign = Campaign.objects.create(
                project=project, name=name, dataset=dataset, rubric_version=rubric_version, created_by=actor
            )
            audit.record(actor=actor, project=project, verb="open campaign", subject=campaign, fields=["name"])
    except IntegrityError:
        taken = _("There is already a campaign called “%(name)s”. Choose another name.") % {"name": name}
        raise Refused(taken, code="name_taken", fields={"name": taken}) from None
    return campaign


def lock_campaign(campaign: Campaign, *, no_key: bool = True) -> None:
    """Lock the campaign's row until the transaction ends. ``no_key``: rows that point at it may be added meanwhile.

    Refused (code ``changed``) if it has another version of the rubric than when ``campaign`` was read.
    """
    locked = Campaign.with_hidden.select_for_update(of=("self",), no_key=no_key).get(pk=campaign.pk)
    if locked.rubric_version_id != campaign.rubric_version_id:
        raise Refused(_("The rubric of this campaign has just changed. Reload the page."), code="changed")


def _require_ready(project: Project, dataset: Dataset, rubric_version: RubricVersion) -> None:
    wrong = {}
    if dataset.project_id != project.pk or dataset.state != Dataset.State.READY or not dataset.allocatable:
        wrong["dataset"] = _("Choose a dataset of this project that is ready and meant for rating.")
    published = rubric_version.state == RubricVersion.State.PUBLISHED
    if rubric_version.rubric.project_id != project.pk or not published:
        wrong["rubric_version"] = _("Choose a published rubric of this project.")
    if wrong:
        raise Refused(" ".join(wrong.values()), code="invalid", fields=wrong)


def move(*, campaign: Campaign, to: Campaign.State, actor: User | None = None) -> Campaign:
    """Pause, resume or close a campaign. Drafts and submitted ratings are kept."""
    from_states = [state for state, allowed in MOVES.items() if to in allowed]
    with transaction.atomic():
        if campaign.rubric_changes.filter(job__state__in=Job.OPEN).exists():
            sentence = _("A worker is changing the version of the rubric. Wait until it has finished, or cancel it.")
            raise Refused(sentence, code="changing")
        if not Campaign.objects.filter(pk=campaign.pk, state__in=from_states).update(state=to):
            raise Refused(_("The state of the campaign has changed. Reload the page."), code="wrong_state")
        Campaign.with_hidden.filter(qualification_of=campaign).update(state=to)
        audit.record(actor=actor, project=campaign.project, verb=f"move campaign to {to}", subject=campaign)
    campaign.state = to
    return campaign


def extend_campaign(*, campaign: Campaign, dataset: Dataset, actor: User | None = None) -> Campaign:
    """Continue with a later version of the campaign's dataset. Ratings, assignments and selections do not change.

    The new items are not assigned yet: see `allocation.hand_out`.
    """
    _require_extension(campaign, dataset)
    with transaction.atomic():
        same = Campaign.objects.filter(pk=campaign.pk, dataset=campaign.dataset_id).exclude(state=Campaign.State.CLOSED)
        if not same.update(dataset=dataset):
            raise Refused(_("The state of the campaign has changed. Reload the page."), code="wrong_state")
        Campaign.with_hidden.filter(qualification_of=campaign).update(dataset=dataset)
        audit.record(
            actor=actor, project=campaign.project, verb="extend campaign", subject=campaign, fields=["dataset"]
        )
    campaign.dataset = dataset
    return campaign


def _require_extension(campaign: Campaign, dataset: Dataset) -> None:
    wrong = ""
    if campaign.state == Campaign.State.CLOSED:
        raise Refused(_("This campaign is closed. Open a new campaign."), code="campaign_closed")
    if dataset.pk == campaign.dataset_id:
        wrong = _("The campaign already uses “%(new)s”.")
    elif not Dataset.objects.holding(campaign.dataset).filter(pk=dataset.pk).exists():
        wrong = _("“%(new)s” does not contain all items of “%(old)s”. Choose a version that contains them.")
    if wrong:
        wrong %= {"new": dataset, "old": campaign.dataset}
        raise Refused(wrong, code="no_extension", fields={"dataset": wrong})


def revision(campaign: Campaign) -> str:
    """A text that changes with every annotation that is added or undone: "count:max pk:superseded"."""
    stored = Annotation.objects.filter(campaign=campaign).aggregate(
        count=Count("pk"), last=Max("pk"), superseded=Count("superseded_at")
    )
    return f"{stored['count']}:{stored['last'] or 0}:{stored['superseded']}"


def progress(campaign: Campaign) -> list[DutyProgress]:
    """The progress of every duty and of every annotator in it, in a fixed number of queries."""
    duties = list(Duty.objects.filter(campaign=campaign).select_related("panel", "taxonomy").order_by("pk"))
    slots = Assignment.objects.filter(duty__campaign=campaign)
    items = Count("item", distinct=True)
    counted: Any = slots.values("duty").annotate(**_counts(), items=items)
    counts = {row["duty"]: row for row in counted}
    unfinished = dict(slots.exclude(state=Assignment.State.SUBMITTED).values_list("duty").annotate(items=items))
    annotators = _annotators(campaign, duties)
    return [_duty(duty, counts.get(duty.pk, {}), unfinished.get(duty.pk, 0), annotators[duty.pk]) for duty in duties]


def skips(campaign: Campaign) -> QuerySet[Skip]:
    """The items that annotators skipped, with their reasons and notes: unresolved ones first, then the newest.

    Controls and repeats among them: their notes are for the lead like any other.
    """
    here = Q(duty__campaign=campaign) | Q(duty__campaign__qualification_of=campaign)
    rows = Skip.objects.filter(here).select_related("duty", "item", "annotator")
    return rows.order_by(F("resolved_at").desc(nulls_first=True), "-at", "-pk")


def resolve_skip(*, skip: Skip, resolved: bool, actor: User | None = None) -> None:
    """Mark a skipped item as resolved, or as unresolved again; nothing else changes."""
    project = skip.duty.campaign.project
    before = Skip.objects.filter(pk=skip.pk, resolved_at__isnull=resolved)
    with transaction.atomic():
        if before.update(resolved_at=timezone.now() if resolved else None):
            verb = "resolve skip" if resolved else "reopen skip"
            audit.record(actor=actor, project=project, verb=verb, subject=skip)


def _counts() -> dict[str, Count]:
    # Distinct: joined with its annotations, an assignment with several revisions has several rows.
    return {
        "slots": Count("pk", distinct=True),
        "submitted": Count("pk", filter=Q(state=Assignment.State.SUBMITTED), distinct=True),
        "on_desk": Count("pk", filter=Q(state=Assignment.State.LEASED), distinct=True),
    }


def _duty(duty: Duty, counts: dict[str, int], unfinished: int, annotators: Iterable[AnnotatorProgress]) -> DutyProgress:
    items = counts.get("items", 0)
    return DutyProgress(
        duty=duty,
        items=items,
        complete=items - unfinished,
        slots=counts.get("slots", 0),
        submitted=counts.get("submitted", 0),
        on_desk=counts.get("on_desk", 0),
        annotators=tuple(annotators),
    )


def _annotators(campaign: Campaign, duties: Iterable[Duty]) -> dict[int, list[AnnotatorProgress]]:
    """Map each duty to the annotators who sit on its panel or have rated in it, sorted by pseudonym."""
    worked: Any = (
        Assignment.objects.filter(duty__campaign=campaign, annotator__isnull=False)
        .values("duty", "annotator__pseudonym")
        .annotate(**_counts(), last_at=Max("annotations__submitted_at"))
    )
    people_by_duty: dict[int, dict[str, AnnotatorProgress]] = defaultdict(dict)
    for duty, pseudonym in _seated(duties):
        people_by_duty[duty][pseudonym] = AnnotatorProgress(pseudonym, 0, 0, None)
    for row in worked:
        people_by_duty[row["duty"]][row["annotator__pseudonym"]] = AnnotatorProgress(
            row["annotator__pseudonym"], row["submitted"], row["on_desk"], row["last_at"]
        )
    return defaultdict(
        list, {duty: [people[name] for name in sorted(people)] for duty, people in people_by_duty.items()}
    )


def _seated(duties: Iterable[Duty]) -> list[tuple[int, str]]:
    seats = PanelSeat.objects.filter(panel__in={duty.panel_id for duty in duties})
    by_panel = defaultdict(list)
    for panel, pseudonym in seats.values_list("panel", "annotator__pseudonym"):
        by_panel[panel].append(pseudonym)
    return [(duty.pk, pseudonym) for duty in duties for pseudonym in by_panel[duty.panel_id]]


def contents(project: Project) -> list[Content]:
    """The contents of a project in this app."""
    submitted = Annotation.objects.filter(campaign__project=project)
    own = {"project": project}
    counted = (
        (Item.objects.filter(dataset__project=project).count(), ngettext_lazy("%d item", "%d items")),
        (Dataset.objects.filter(**own).count(), ngettext_lazy("%d dataset", "%d datasets")),
        (Rubric.objects.filter(**own).count(), ngettext_lazy("%d rubric", "%d rubrics")),
        (Campaign.objects.filter(**own).count(), ngettext_lazy("%d campaign", "%d campaigns")),
        (Panel.objects.filter(**own).count(), ngettext_lazy("%d panel", "%d panels")),
    )
    ratings = Rating.objects.filter(annotation__campaign__project=project).count()
    newest = submitted.aggregate(newest=Max("submitted_at"))["newest"]
    rated = [Content(ngettext("%d rating", "%d ratings", ratings) % ratings, newest=newest)] if ratings else []
    return rated + [Content(words % count) for count, words in counted if count]
