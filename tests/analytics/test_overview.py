"""The first page of a project for leads: what needs somebody, what runs, what is decided, hours and money."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

from django.utils import timezone

from accounts import jobs
from accounts.models import Job
from analytics import overview, workload
from analytics.judges import thresholds
from analytics.models import GateDecision
from annotation import campaigns
from annotation.desk import leasing, service
from annotation.models import Annotation, Assignment, Campaign, ControlPause, Import, Skip
from judging.daily_spending import SpendingTotal
from judging.models import Attempt, Call, JudgeRun, JudgeTrial
from tests.analytics import scene
from tests.annotation import scene as desks
from tests.cast import Cast


def listed(cast: Cast) -> dict[str, str]:
    """What the page says needs somebody, and where it leads."""
    page = cast.client("aino").get("/p/kassa/").content.decode()
    part = page.partition('id="attention-title"')[2].partition("</section>")[0]
    return {text: address for address, text in re.findall(r'<li><a href="([^"]+)">([^<]+)</a>', part)}


def open_on_study(cast: Cast, campaign: Campaign) -> dict[str, str]:
    """What the page Study lists as to do."""
    page = cast.client("aino").get(f"/p/kassa/numbers/{campaign.pk}/study/").content.decode()
    part = page.partition('id="study-findings"')[2].partition("</dl>")[0]
    found = {text: address for address, text in re.findall(r'<li><a href="([^"]+)">([^<]+)</a>', part)}
    return {text: address for text, address in found.items() if "thresholds" not in address}


def test_what_needs_somebody_is_named_and_leads_to_its_page(cast: Cast) -> None:
    duty = desks.duty(cast)
    campaign = duty.campaign
    n, items = duty.assignments.count(), 3
    whom = f"{desks.annotator(cast, cast.maarika).pseudonym} ({cast.maarika.name})"
    waits = {f"{n} open assignments: {whom} {items}.": f"/p/kassa/numbers/{campaign.pk}/work/"}
    assert listed(cast) == waits
    without_names = {text.replace(f" ({cast.maarika.name})", ""): address for text, address in waits.items()}
    assert open_on_study(cast, campaign) == without_names, "one list on both pages"
    taken = desks.taken(cast, duty)
    Skip.objects.create(duty=duty, item=taken.item, annotator=desks.annotator(cast, cast.maarika), note="cut off")
    Import.objects.create(project=cast.kassa, kind=Import.Kind.DATASET, state=Import.State.FAILED)
    run = scene.with_verdicts(campaign, {"fluency": [1, 2, 3]})
    finished = scene.with_verdicts(campaign, {"fluency": [1, 2, 3]})
    for its_run, state in ((run, Call.State.WAITING), (finished, Call.State.SETTLED)):
        Call.objects.create(run=its_run, item=taken.item, repeat=1, state=state)
    JudgeRun.objects.update(state=JudgeRun.State.PAUSED)  # as deleting and restoring the project leaves them
    campaigns.move(campaign=campaign, to=Campaign.State.PAUSED)
    assert listed(cast) == {
        f"{n} open assignments: {whom} {items}.": f"/p/kassa/numbers/{campaign.pk}/work/",
        "1 campaign is paused.": "/p/kassa/campaigns/",
        "1 import has problems.": "/p/kassa/imports/",
        "1 item was skipped with a note.": f"/p/kassa/campaigns/{campaign.pk}/",
        "1 judge run is paused.": "/p/kassa/judges/",
        "Judges were run, but no thresholds for their use are declared.": "/p/kassa/settings/thresholds/",
    }
    Skip.objects.update(resolved_at=timezone.now())
    assert "1 item was skipped with a note." not in listed(cast)


def test_paused_runs_are_counted_once_whatever_their_campaign(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    about: dict[str, Any] = {"dataset": campaign.dataset, "rubric_version": campaign.rubric_version}
    campaigns.open_campaign(project=cast.kassa, name="Round 2", **about)
    run = scene.with_verdicts(campaign)
    Call.objects.create(run=run, item=campaign.dataset.items.first(), repeat=1, state=Call.State.WAITING)
    JudgeRun.objects.update(state=JudgeRun.State.PAUSED)
    paused = [text for text in listed(cast) if "judge run" in text]
    assert paused == ["1 judge run is paused."], "of two campaigns on one dataset, neither lists it again"
    Campaign.objects.update(state=Campaign.State.CLOSED)
    assert listed(cast)["1 judge run is paused."] == "/p/kassa/judges/"


def test_open_work_waits_for_those_who_may_do_it(cast: Cast) -> None:
    duty = desks.duty(cast)
    person = desks.annotator(cast, cast.maarika)
    before = workload.open_items(duty.campaign)
    assert before == {duty.pk: {person.pk: 3}}
    taken = desks.taken(cast, duty)
    Assignment.objects.filter(pk=taken.pk).update(leased_until=timezone.now() - timedelta(minutes=1))
    assert workload.open_items(duty.campaign) == before, "a lease that has run out is open to its holder, too"
    ControlPause.objects.create(duty=duty, annotator=person, controls=10, matched=0.1, upper=0.3)
    assert workload.open_items(duty.campaign) == {}
    page = cast.client("aino").get(f"/p/kassa/numbers/{duty.campaign_id}/work/").content.decode()
    assert "assignments are open." in page and "Items that these people may still rate" not in page


def test_notes_and_pauses_are_listed_however_old_the_campaign_is(cast: Cast) -> None:
    duty = desks.duty(cast)
    campaign = duty.campaign
    about: dict[str, Any] = {"dataset": campaign.dataset, "rubric_version": campaign.rubric_version}
    for number in range(overview.MOST_LISTED):
        campaigns.open_campaign(project=cast.kassa, name=f"Later {number}", **about)
    assert not [text for text in listed(cast) if campaign.name in text]
    taken = desks.taken(cast, duty)
    person = desks.annotator(cast, cast.maarika)
    Skip.objects.create(duty=duty, item=taken.item, annotator=person, note="cut off")
    ControlPause.objects.create(duty=duty, annotator=person, controls=10, matched=0.1, upper=0.3)
    assert sorted(text for text in listed(cast) if campaign.name in text) == [
        f"{campaign.name}: 1 item was skipped with a note.",
        f"{campaign.name}: Controls paused 1 annotator.",
    ]


def test_decisions_count_by_their_newest_and_stale_ones_need_somebody(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    run = scene.with_verdicts(campaign)
    declared = thresholds.declare_thresholds(project=cast.kassa, preset="skilled", actor=cast.aino)
    about = {"campaign": campaign, "judge": run.judge, "thresholds": declared, "language": "et"}
    for criterion, decision in (("fluency", "judge_alone"), ("coherence", "humans_only"), ("fluency", "stale")):
        GateDecision.objects.create(**about, criterion=criterion, decision=decision)
    assert listed(cast) == {
        "3 disputed items.": f"/p/kassa/numbers/{campaign.pk}/adjudication/",
        "Measure Kohtunik again.": f"/p/kassa/numbers/{campaign.pk}/judges/?judge=Kohtunik",
    }
    assert overview.decided_uses(overview.latest_uses(cast.kassa)) == [
        ("Humans only", 1),
        ("Must be measured again", 1),
    ]


def test_tiles_and_runs_lead_to_what_they_count(cast: Cast) -> None:
    run = scene.with_verdicts(scene.rated_campaign(cast))
    page = cast.client("aino").get("/p/kassa/").content.decode()
    tiles = re.findall(r'class="kpi-link" href="([^"]+)"', page)
    assert tiles == ["/p/kassa/datasets/", "/p/kassa/panels/", "/p/kassa/campaigns/", "/p/kassa/judges/"]
    assert f'href="/p/kassa/runs/{run.pk}/"' in page
    for address in tiles:
        assert cast.client("aino").get(address).status_code == 200


def test_failed_jobs_are_shown_for_a_week_and_open_ones_as_running(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    scene.compute(campaign)
    done = Job.objects.filter(project=cast.kassa).latest("pk")
    Job.objects.filter(pk=done.pk).update(state=Job.State.FAILED, ended_at=timezone.now())
    assert "1 job failed in the last week." in listed(cast)
    Job.objects.filter(pk=done.pk).update(ended_at=timezone.now() - overview.RECENT * 2)
    assert [*listed(cast)] == ["3 disputed items."]
    Job.objects.filter(pk=done.pk).update(state=Job.State.WAITING, ended_at=None)
    assert [job.pk for job in overview.running_now(cast.kassa)] == [done.pk]
    assert jobs.job_kinds().keys() == set(Job.Kind.values)


def test_hours_and_money_are_summed(cast: Cast) -> None:
    duty = desks.duty(cast)
    for seconds in (1800, 5400):
        taken = leasing.take(duty=duty, annotator=desks.annotator(cast, cast.maarika))
        assert taken is not None
        long_ago = timezone.now() - timedelta(hours=2)  # no more seconds count than passed
        Assignment.objects.filter(pk=taken.pk).update(leased_at=long_ago)
        service.submit(assignment=taken, key=taken.key, answers=desks.ANSWERS, seconds=seconds - 600)
        Annotation.objects.filter(assignment=taken).update(submitted_at=long_ago)
        taken.refresh_from_db()
        anew: dict[str, Any] = {"shown": taken.key, "key": uuid4(), "seconds": seconds}  # with the seconds before
        service.revise_scores(assignment=taken, answers=desks.ANSWERS, **anew)
    run = scene.with_verdicts(duty.campaign, {"fluency": [1, 2, 3]})
    call = Call.objects.create(run=run, item=duty.campaign.dataset.items.first(), repeat=1)
    for number, (outcome, cost) in enumerate(
        ((Attempt.Outcome.REPLIED, "0.25"), (Attempt.Outcome.REPLIED, None), (Attempt.Outcome.REUSED, "9")), start=1
    ):
        Attempt.objects.create(call=call, number=number, outcome=outcome, cost=cost and Decimal(cost))
    found = overview.effort_of(cast.kassa)
    assert (found.hours, found.timed) == (2.0, Annotation.objects.filter(superseded_at=None).count())
    JudgeTrial.objects.create(
        project=cast.kassa, series=uuid4(), digest="d", sent_at=timezone.now(), cost=Decimal("0.0004")
    )
    found = overview.effort_of(cast.kassa)
    assert found.spent == SpendingTotal(requests=3, unpriced=1, cost=Decimal("0.2504"))
    page = cast.client("aino").get("/p/kassa/").content.decode()
    assert "2.0 hours of annotators on 2 timed annotations" in page
    for address in ("/p/kassa/", "/p/kassa/spending/"):
        page = cast.client("aino").get(address).content.decode()
        assert "In all: $0.25 for 3 requests." in page and "1 of them has no cost: no price is known." in page
