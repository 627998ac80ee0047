"""What is open in a campaign and waits for a person: each with the page on which it is dealt with."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

from django.db.models import Count
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from analytics.judges.decisions import CampaignDecisions
from analytics.models import GateDecision
from analytics.overview import Attention
from analytics.study.sentences import named_briefly
from annotation.desk import threads
from annotation.models import Assignment, Campaign, ControlPause, Skip
from judging import runs
from judging.models import JudgeRun


def open_matters(campaign: Campaign, decided: CampaignDecisions | None, *, is_lead: bool) -> list[Attention]:
    """Everything open, what blocks the others first."""
    here = [campaign.project.slug, campaign.pk]
    found: list[Attention] = []
    if decided is None and is_lead:
        text = _("Declare what a judge has to reach: without thresholds nothing is decided.")
        found.append(Attention(text, reverse("thresholds", args=here[:1])))
    cells = decided.cells if decided is not None else ()
    if stale := sorted({cell.row["judge"] for cell in cells if cell.use is GateDecision.Use.STALE}):
        text = _("To be measured again, because something changed since: %s.") % named_briefly(stale)
        address = f"{reverse('judge_decisions', args=here)}?{urlencode({'judge': stale[0]})}"
        found.append(Attention(text, address))
    return [*found, *_paused(campaign), *_assignments(campaign, is_lead=is_lead), *_runs(campaign), *_notes(campaign)]


def _assignments(campaign: Campaign, *, is_lead: bool) -> Iterator[Attention]:
    """Assignments that nobody has submitted yet, and of which duties."""
    waiting = Assignment.objects.filter(duty__campaign=campaign, duty__stands_for=None)
    waiting = waiting.exclude(state=Assignment.State.SUBMITTED)
    by_duty = dict(waiting.order_by().values_list("duty__name").annotate(n=Count("pk")))
    if count := sum(by_duty.values()):
        text = ngettext("%(n)d assignment is open: %(duties)s.", "%(n)d assignments are open: %(duties)s.", count)
        page = "workload" if is_lead else "campaign"
        about = {"n": count, "duties": named_briefly(sorted(by_duty, key=lambda name: -by_duty[name]))}
        yield Attention(text % about, reverse(page, args=[campaign.project.slug, campaign.pk]))


def _paused(campaign: Campaign) -> Iterator[Attention]:
    stopped = ControlPause.objects.filter(duty__campaign=campaign, reinstated_at=None).count()
    if stopped:
        text = ngettext("Controls paused %d annotator.", "Controls paused %d annotators.", stopped)
        yield Attention(text % stopped, reverse("campaign", args=[campaign.project.slug, campaign.pk]))


def _runs(campaign: Campaign) -> Iterator[Attention]:
    here = JudgeRun.objects.filter(dataset=campaign.dataset, rubric_version=campaign.rubric_version)
    if paused := runs.in_phase(here, runs.Phase.PAUSED).count():
        text = ngettext("%d judge run is paused.", "%d judge runs are paused.", paused)
        yield Attention(text % paused, reverse("judges", args=[campaign.project.slug]))


def _notes(campaign: Campaign) -> Iterator[Attention]:
    """Items that were skipped with a note, and questions without an answer."""
    slug = campaign.project.slug
    skipped = Skip.objects.filter(duty__campaign=campaign, resolved_at=None).exclude(note="")
    if count := skipped.values("item").distinct().count():
        text = ngettext("%d item was skipped with a note.", "%d items were skipped with a note.", count)
        yield Attention(text % count, reverse("campaign", args=[slug, campaign.pk]))
    asked = threads.open_questions(campaign.project).filter(duty__campaign=campaign).count()
    if asked:
        text = ngettext("%d question of an annotator is open.", "%d questions of annotators are open.", asked)
        yield Attention(text % asked, reverse("annotator_questions", args=[slug, campaign.pk]))
