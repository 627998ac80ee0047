"""What the first page of a project counts: what it has, what needs somebody, what is decided, hours and money."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import access
from accounts.models import AuditEntry, Invitation, Job, Project, Role, User
from analytics.judges import decisions
from analytics.judges.thresholds import current_thresholds
from analytics.models import GateDecision, Snapshot
from analytics.open_work import Attention, DecidedCell, open_work, paused_runs, waits_for_a_lead, work_of_leads
from annotation.models import (
    Annotation,
    Assignment,
    Campaign,
    Dataset,
    Duty,
    Import,
    Item,
    Panel,
    PanelSeat,
    RubricVersion,
)
from judging.daily_spending import SpendingTotal, daily_spending, spending_total
from judging.models import Call, Judge, JudgeRun

RUNS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing to do on the way from an empty project to its report. ``ask``: whom to ask, if others have to do it."""

    title: str
    why: str
    verb: str
    address: str
    is_done: bool
    ask: str = ""


@dataclass(frozen=True, slots=True)
class Holdings:
    """How much of everything the project has."""

    datasets: int
    items: int
    rubrics: int
    panels: int
    annotators: int
    campaigns: int
    judges: int
    annotations: int

    @property
    def any(self) -> bool:
        """Whether there is something to count yet."""
        return bool(self.datasets or self.rubrics or self.panels or self.judges)


def holdings(*, project: Project, user: User) -> Holdings:
    """Counted as this person may see them."""
    datasets = Dataset.objects.visible_to(user).filter(project=project)
    panels = Panel.objects.visible_to(user).filter(project=project)
    campaigns = Campaign.objects.visible_to(user).filter(project=project)
    published = RubricVersion.objects.visible_to(user).published().filter(rubric__project=project)
    return Holdings(
        datasets=datasets.count(),
        items=Item.objects.filter(dataset__in=datasets).count(),
        rubrics=published.count(),
        panels=panels.count(),
        annotators=PanelSeat.objects.filter(panel__in=panels).values("annotator").distinct().count(),
        campaigns=campaigns.count(),
        judges=Judge.objects.visible_to(user).filter(project=project).count(),
        annotations=Annotation.objects.filter(campaign__in=campaigns, superseded_at=None).count(),
    )


def steps(project: Project, user: User, held: Holdings, listed: Sequence[Campaign]) -> list[Step]:
    """The way from an empty project to its report, in order: what a judge must reach comes before any figure.

    ``listed``: the campaigns of `campaigns`.
    """
    slug = project.slug
    is_lead = access.holds(user=user, project=project, roles=(Role.LEAD,))
    ask_lead = "" if is_lead else _("Only leads can do this. Ask %s.") % _named_leads(project)
    rated = [campaign for campaign in listed if campaign.annotations]  # type: ignore[attr-defined]
    newest = max(rated or listed, key=lambda campaign: campaign.pk, default=None)
    study = reverse("study", args=[slug, newest.pk]) if rated and newest else ""
    report = reverse("report", args=[slug, newest.pk]) if rated and newest else ""
    lacks_people = held.panels and not held.annotators
    return [
        Step(
            title=_("Upload a dataset"),
            why=_("What people and judges will rate."),
            verb=_("Upload"),
            address=reverse("datasets", args=[slug]),
            is_done=bool(held.datasets),
        ),
        Step(
            title=_("Publish a rubric"),
            why=_("Criteria, and what each point means."),
            verb=_("Publish"),
            address=reverse("rubrics", args=[slug]),
            is_done=bool(held.rubrics),
        ),
        Step(
            title=_("Invite people to the panel") if lacks_people else _("Create a panel"),
            why=_invited(project) if lacks_people and is_lead else _("Native speakers who rate one language together."),
            verb=_("Invite") if lacks_people else _("Create"),
            address=reverse("people" if lacks_people else "panels", args=[slug]),
            is_done=bool(held.annotators),
            ask=ask_lead if lacks_people else "",
        ),
        Step(
            title=_("Declare what a judge must reach"),
            why=_("Before the first figures: what is declared later is marked as declared after them."),
            verb=_("Declare"),
            address=reverse("thresholds", args=[slug]),
            is_done=current_thresholds(project) is not None,
            ask=ask_lead,
        ),
        Step(
            title=_("Open a campaign"),
            why=_("One dataset on one rubric, for the panels."),
            verb=_("Open"),
            address=reverse("campaigns", args=[slug]),
            is_done=bool(held.campaigns),
        ),
        Step(
            title=_("Add a judge"),
            why=_("A model that rates the same items."),
            verb=_("Add"),
            address=reverse("judges", args=[slug]),
            is_done=bool(held.judges),
        ),
        Step(
            title=_("Collect ratings"),
            why=_("From the panels, or from a file."),
            verb=_("Open"),
            address=reverse("campaign", args=[slug, newest.pk]) if newest else "",
            is_done=bool(held.annotations),
        ),
        Step(
            title=_("Read the study"),
            why=_("What was found, how sure it is, and what is to be done."),
            verb=_("Read"),
            address=study,
            is_done=bool(study) and Snapshot.objects.filter(campaign__project=project).exists(),
        ),
        Step(
            title=_("Write the report"),
            why=_("Figures, tables and methods in one file."),
            verb=_("Write"),
            address=report,
            is_done=AuditEntry.objects.filter(verb="export report", project=project).exists(),
        ),
    ]


def _invited(project: Project) -> str:
    """How many people are invited and have not joined yet."""
    waiting = Invitation.objects.filter(project=project).open().count()
    if not waiting:
        return _("Native speakers who rate one language together.")
    return ngettext("%d invitation is open.", "%d invitations are open.", waiting) % waiting


def _named_leads(project: Project) -> str:
    """The names of the leads, at most three."""
    leads = User.objects.filter(memberships__project=project, memberships__role=Role.LEAD).order_by("memberships")
    return ", ".join(str(lead) for lead in leads[:3])


def campaigns(*, project: Project, user: User) -> QuerySet[Campaign, Any]:
    """With `slots`, `submitted` and `annotations`, the imported ones included."""
    current = Annotation.objects.filter(campaign=OuterRef("pk"), superseded_at=None).order_by().values("campaign")
    return (
        Campaign.objects.visible_to(user)
        .filter(project=project)
        .select_related("dataset", "rubric_version__rubric")
        .annotate(
            slots=Count("duties__assignments"),
            submitted=Count("duties__assignments", filter=Q(duties__assignments__state=Assignment.State.SUBMITTED)),
            annotations=Coalesce(Subquery(current.annotate(n=Count("pk")).values("n")), 0),
        )
    )


def judge_runs(*, project: Project, user: User) -> QuerySet[JudgeRun, Any]:
    """The newest runs, with how many calls were `planned` and how many are `done`."""
    over = Q(calls__state__in=[Call.State.SETTLED, Call.State.FAILED])
    return (
        JudgeRun.objects.visible_to(user)
        .filter(project=project)
        .select_related("judge", "dataset")
        .annotate(planned=Count("calls"), done=Count("calls", filter=over))
        .order_by("-pk")[:RUNS_SHOWN]
    )


# --- what needs somebody ---------------------------------------------------------------------------------------------
RECENT = timedelta(days=7)
"""How long a job that failed is shown."""


MOST_LISTED = 5
"""Campaigns, from the newest, of which all open work is listed; of the others, what annotators wait for."""


def needs_attention(project: Project, user: User, uses: Sequence[GateDecision]) -> list[Attention]:
    """What is open in the campaigns that are not closed, and what failed or is paused in the project.

    `uses`: the newest decisions about judges.
    """
    is_lead = access.holds(user=user, project=project, roles=(Role.LEAD,))
    found: list[Attention] = []
    if is_lead and JudgeRun.objects.filter(project=project).exists() and current_thresholds(project) is None:
        sentence = _("Judges were run, but no thresholds for their use are declared.")
        found.append(Attention(sentence, reverse("thresholds", args=[project.slug])))
    decided: dict[int, list[DecidedCell]] = defaultdict(list)
    for row in uses:
        decided[row.campaign_id].append(DecidedCell.of_history(row))
    listed = campaigns(project=project, user=user).exclude(state=Campaign.State.CLOSED).order_by("-pk")
    with_parts = listed.select_related("project", "rubric_version__rubric", "dataset")
    open_ones = list(with_parts.prefetch_related("rubric_version__criteria")[: MOST_LISTED + 1])
    for campaign in open_ones[:MOST_LISTED]:
        own = open_work(campaign, decided[campaign.pk], is_lead=is_lead, with_runs=False)
        about = f"{campaign.name}: " if len(open_ones) > 1 else ""
        found += [Attention(f"{about}{matter.sentence}", matter.address) for matter in own]
    older = with_parts.exclude(pk__in=[campaign.pk for campaign in open_ones[:MOST_LISTED]])
    for campaign in older.filter(waits_for_a_lead()) if len(open_ones) > MOST_LISTED else ():
        found += [Attention(f"{campaign.name}: {one.sentence}", one.address) for one in work_of_leads(campaign)]
    found += paused_runs(project, JudgeRun.objects.filter(project=project))
    paused = Campaign.objects.filter(project=project, state=Campaign.State.PAUSED).count()
    imports = Import.objects.filter(project=project, state=Import.State.FAILED).count()
    recent = timezone.now() - RECENT
    jobs = Job.objects.filter(project=project, state=Job.State.FAILED, ended_at__gt=recent).count()
    sentences = (
        (paused, "campaigns", ngettext("%d campaign is paused.", "%d campaigns are paused.", paused)),
        (imports, "imports", ngettext("%d import has problems.", "%d imports have problems.", imports)),
        (jobs, "jobs", ngettext("%d job failed in the last week.", "%d jobs failed in the last week.", jobs)),
    )
    return found + [Attention(text % n, reverse(page, args=[project.slug])) for n, page, text in sentences if n]


def latest_uses(project: Project) -> list[GateDecision]:
    """The newest decision of every campaign, judge, criterion and language."""
    kept = GateDecision.objects.filter(campaign__project=project).select_related("judge").order_by("pk")
    newest = {(row.campaign_id, row.judge_id, row.criterion, row.language): row for row in kept}
    return list(newest.values())


def decided_uses(uses: Sequence[GateDecision]) -> list[tuple[str, int]]:
    """How many cells have each decision, from the widest use."""
    counted = Counter(row.decision for row in uses)
    return [(str(use.label), counted[use]) for use in decisions.ORDER if counted[use]]


@dataclass(frozen=True, slots=True)
class Effort:
    """What a project has taken: hours that people worked on items, how many of their annotations have a time, and what
    was booked for its requests, the same total as on the page Spending."""

    hours: float
    timed: int
    spent: SpendingTotal


def effort_of(project: Project) -> Effort:
    """Hours and money, of all campaigns and runs.

    The seconds of a revision hold those of the ones before it; an item of training or of an exam begins anew each time.
    """
    counts = Q(superseded_at=None) | Q(assignment__duty__purpose__in=[Duty.Purpose.TRAINING, Duty.Purpose.EXAM])
    times = Annotation.objects.filter(counts, campaign__project=project, seconds__isnull=False)
    worked = times.aggregate(seconds=Sum("seconds"), n=Count("pk"))
    return Effort((worked["seconds"] or 0) / 3600, worked["n"], spending_total(daily_spending(project)))


def running_now(project: Project) -> list[Job]:
    """The jobs that wait or run, oldest first."""
    return list(Job.objects.filter(project=project, state__in=Job.OPEN).order_by("pk")[:RUNS_SHOWN])
