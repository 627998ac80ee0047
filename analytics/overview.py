"""What the first page of a project counts: what it has, what needs somebody, what is decided, hours and money."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import access
from accounts.models import AuditEntry, Job, Project, Role, User
from analytics.judges import decisions
from analytics.judges.thresholds import current_thresholds
from analytics.models import GateDecision, Snapshot
from annotation.desk import threads
from annotation.models import (
    Annotation,
    Assignment,
    Campaign,
    ControlPause,
    Dataset,
    Duty,
    Import,
    Item,
    Panel,
    PanelSeat,
    RubricVersion,
    Skip,
)
from judging import runs
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
            why=_("Native speakers who rate one language together."),
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
        .annotate(planned=Count("calls"), done=Count("calls", filter=over))[:RUNS_SHOWN]
    )


# --- what needs somebody ---------------------------------------------------------------------------------------------
RECENT = timedelta(days=7)
"""How long a job that failed is shown."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Something that waits for a person, and the page on which it is dealt with."""

    sentence: str
    address: str


def needs_attention(project: Project, user: User, uses: Sequence[GateDecision]) -> list[Attention]:
    """Stale decisions among the newest, what failed or is paused, skipped items with notes, and annotators on pause."""
    paused_runs = runs.in_phase(JudgeRun.objects.filter(project=project), runs.Phase.PAUSED).count()
    paused = Campaign.objects.filter(project=project, state=Campaign.State.PAUSED).count()
    stopped = ControlPause.objects.filter(duty__campaign__project=project, reinstated_at=None).count()
    imports = Import.objects.filter(project=project, state=Import.State.FAILED).count()
    recent = timezone.now() - RECENT
    jobs = Job.objects.filter(project=project, state=Job.State.FAILED, ended_at__gt=recent).count()
    sentences = (
        (paused_runs, "judges", ngettext("%d judge run is paused.", "%d judge runs are paused.", paused_runs)),
        (paused, "campaigns", ngettext("%d campaign is paused.", "%d campaigns are paused.", paused)),
        (stopped, "campaigns", ngettext("Controls paused %d annotator.", "Controls paused %d annotators.", stopped)),
        (imports, "imports", ngettext("%d import has problems.", "%d imports have problems.", imports)),
        (jobs, "jobs", ngettext("%d job failed in the last week.", "%d jobs failed in the last week.", jobs)),
    )
    counted = [Attention(text % count, reverse(page, args=[project.slug])) for count, page, text in sentences if count]
    is_lead = access.holds(user=user, project=project, roles=(Role.LEAD,))
    asked = _asked(project) if is_lead else ()
    return [*_undecided(project, uses, is_lead), *counted, *_skipped(project), *asked]


def _undecided(project: Project, uses: Sequence[GateDecision], is_lead: bool) -> Iterator[Attention]:
    """Stale decisions by campaign; for leads, thresholds that are not declared although judges were run."""
    stale: dict[int, list[GateDecision]] = {}
    for row in uses:
        if row.decision == GateDecision.Use.STALE:
            stale.setdefault(row.campaign_id, []).append(row)
    for campaign, found in stale.items():
        sentence = ngettext(
            "%d decision about a judge must be measured again.",
            "%d decisions about judges must be measured again.",
            len(found),
        )
        address = reverse("judge_decisions", args=[project.slug, campaign])
        yield Attention(sentence % len(found), f"{address}?{urlencode({'judge': found[0].judge.name})}")
    if is_lead and JudgeRun.objects.filter(project=project).exists() and current_thresholds(project) is None:
        sentence = _("Judges were run, but no thresholds for their use are declared.")
        yield Attention(sentence, reverse("thresholds", args=[project.slug]))


def _skipped(project: Project) -> Iterator[Attention]:
    """Items that annotators skipped with a note, not resolved yet, by campaign."""
    open_ones = Skip.objects.filter(duty__campaign__project=project, resolved_at=None).exclude(note="").order_by()
    # A control's or repeat's skip stands on the page of the campaign that annotators know.
    known = open_ones.annotate(campaign=Coalesce("duty__campaign__qualification_of", "duty__campaign"))
    for campaign, count in known.values_list("campaign").annotate(Count("item", distinct=True)):
        sentence = ngettext("%d item was skipped with a note.", "%d items were skipped with a note.", count)
        yield Attention(sentence % count, reverse("campaign", args=[project.slug, campaign]))


def _asked(project: Project) -> Iterator[Attention]:
    """Questions of annotators that nobody has answered, by campaign."""
    asked = threads.open_questions(project).order_by().values_list("duty__campaign")
    for campaign, count in asked.annotate(Count("pk")):
        sentence = ngettext("%d question of an annotator is open.", "%d questions of annotators are open.", count)
        yield Attention(sentence % count, reverse("annotator_questions", args=[project.slug, campaign]))


def latest_uses(project: Project) -> list[GateDecision]:
    """The newest decision of every campaign, judge, criterion and language."""
    kept = GateDecision.objects.filter(campaign__project=project).order_by("pk")
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
