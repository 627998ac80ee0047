"""Numbers that can't be computed: said on the page, tried again later and later, and in nobody's way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts import jobs
from accounts.models import Job, Project
from analytics import tasks
from analytics.answers import computing, revisions
from analytics.models import Computation, Snapshot
from analytics.questions.question import Settings
from annotation import campaigns
from annotation.models import Annotation, Campaign, Criterion
from judging.models import JudgeRun
from panelbench.celery import app
from panelbench.instance import IMPORTS, JUDGING, QUEUES, worker_programs
from tests import make
from tests.analytics import scene
from tests.cast import Cast
from tests.workers import absent_broker, kill, long_after, wait_for_workers, waits_for_a_lock, working


@pytest.fixture
def broken(cast: Cast) -> Campaign:
    """A campaign with ratings off its scale, as a release before today could store them."""
    campaign = scene.rated_campaign(cast)
    points = [{"value": value} for value in (0, 1)]
    Criterion.objects.filter(rubric_version=campaign.rubric_version, key="fluency").update(points=points, maximum=1)
    return campaign


def page(cast: Cast, campaign: Campaign) -> str:
    return cast.client("aino").get(f"/p/kassa/numbers/{campaign.pk}/").content.decode()


def waiting() -> list[int]:
    """The campaigns whose numbers wait for a worker."""
    return list(Computation.objects.filter(job__state="waiting").values_list("campaign", flat=True))


def test_the_page_says_why_there_are_no_figures(cast: Cast, broken: Campaign) -> None:
    assert "could not be computed" not in page(cast, broken)
    scene.compute(broken)
    shown = page(cast, broken)
    assert "The first figures are being computed" not in shown
    assert "There are no figures: they could not be computed." in shown
    assert "score &#x27;2.0&#x27; is not on the scale 0, 1" in shown
    assert "Tried once" in shown
    (listed,) = cast.client("aino").get("/api/v1/projects/kassa/jobs/").json()["results"]
    assert (listed["kind"], listed["state"], listed["title"]) == ("numbers", "failed", "Round 1")
    assert "score '2.0' is not on the scale 0, 1" in listed["sentence"]


def test_a_computation_that_fails_is_asked_for_later_and_later(cast: Cast, broken: Campaign) -> None:
    tasks.refresh_stale()
    assert waiting() == [broken.pk]
    pauses = []
    for _try in range(3):
        scene.compute(broken)
        stored = Computation.objects.get()
        pauses.append(round((stored.next_at - timezone.now()).total_seconds() / 60))
        tasks.refresh_stale()
        page(cast, broken)
        assert (waiting(), Job.objects.count()) == ([], 1)
        Computation.objects.update(next_at=timezone.now() - timedelta(seconds=1))
    assert pauses == [1, 2, 4]
    assert computing.pause(30) == timedelta(hours=6)
    tasks.refresh_stale()
    assert waiting() == [broken.pk]


def test_one_computation_of_a_campaign_at_a_time(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    subset = Settings(raters=("mari", "jaan"))
    computation = computing.begin_computation(campaign=campaign, settings=subset)
    assert computation is not None
    tasks.refresh_stale()
    assert computing.begin_computation(campaign=campaign, settings=subset) is None
    assert (Computation.objects.count(), Snapshot.objects.count()) == (1, 0)
    tasks.compute_numbers(computation.pk)
    tasks.compute_numbers(computation.pk)  # delivered twice
    assert (Snapshot.objects.count(), Computation.objects.count()) == (1, 0)
    job = Job.objects.get()
    assert (job.state, job.done, job.total) == ("finished", 4, 4)  # one language, no judge
    scene.compute(campaign)
    assert Snapshot.objects.count() == 2


def test_a_lead_cancels_a_computation_and_it_is_not_asked_for_at_once(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    tasks.refresh_stale()
    boris, aino = cast.client("boris"), cast.client("aino")
    cancel = f"/api/v1/projects/kassa/jobs/{Job.objects.get().pk}/cancel/"
    assert boris.post(cancel).status_code == 409
    assert aino.post(cancel).json()["state"] == "cancelled"
    tasks.compute_numbers(Computation.objects.get().pk)  # its message arrives after all
    tasks.refresh_stale()
    assert (waiting(), Snapshot.objects.count()) == ([], 0)
    assert "This was cancelled by Aino. Tried once" in page(cast, campaign)
    Computation.objects.update(next_at=timezone.now())
    scene.compute(campaign)
    assert Snapshot.objects.count() == 1


def test_a_computation_without_a_broker_waits_for_the_sweep(
    cast: Cast, settings: Any, django_capture_on_commit_callbacks: Any
) -> None:
    if not settings.REDIS_URL:
        pytest.skip("needs Redis")
    campaign = scene.rated_campaign(cast)
    with absent_broker(), django_capture_on_commit_callbacks(execute=True):
        assert "no worker is running" in page(cast, campaign)
    assert Job.objects.get().sent_at is None
    assert [job.kind for job in jobs.sweep_jobs()] == ["numbers"]


@pytest.mark.django_db(transaction=True)
def test_a_computation_whose_worker_is_killed_says_so_and_begins_again(cast: Cast, settings: Any) -> None:
    if not settings.REDIS_URL or connection.vendor != "postgresql":
        pytest.skip("needs Redis and PostgreSQL")
    app.control.purge()
    campaign = scene.rated_campaign(cast)
    page(cast, campaign)
    with working(queues="analytics") as doomed, transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE analytics_snapshot IN EXCLUSIVE MODE")  # the worker computes, and can't store
        wait_for_workers(waits_for_a_lock)
        assert Job.objects.get().state == "running"
        kill(doomed)
    assert Snapshot.objects.count() == 0
    assert jobs.sweep_jobs(now=long_after()) == []
    assert "The worker stopped before it had finished. Tried once" in page(cast, campaign)
    Computation.objects.update(next_at=timezone.now())
    with working(queues="analytics"):
        page(cast, campaign)
        wait_for_workers(lambda: not Computation.objects.exists())
    assert (Snapshot.objects.count(), Job.objects.get().state) == (1, "finished")


def test_one_statement_finds_what_has_changed(cast: Cast, django_assert_num_queries: Any) -> None:
    first, second = scene.rated_campaign(cast), make.campaign(cast.teine, items=12)
    make.rated(second, {"fluency": scene.FLUENCY})
    about = {"dataset": first.dataset, "rubric_version": first.rubric_version}
    closed = campaigns.open_campaign(project=cast.kassa, name="Closed", **about)
    Campaign.objects.filter(pk=closed.pk).update(state=Campaign.State.CLOSED)
    scene.compute(first)
    scene.compute(second)
    tasks.refresh_stale()
    with django_assert_num_queries(1):
        tasks.refresh_stale()
    assert not waiting()
    run = scene.with_verdicts(first)
    tasks.refresh_stale()
    assert waiting() == [first.pk]
    scene.compute(first)
    tasks.refresh_stale()
    changes = (
        lambda: make.rated(second, {"fluency": {"uus": [3, *11 * [None]]}}),
        lambda: Annotation.objects.filter(annotator__pseudonym="uus").update(superseded_at=timezone.now()),
        lambda: scene.with_verdicts(second),
        lambda: JudgeRun.objects.exclude(pk=run.pk).update(state=JudgeRun.State.CANCELLED),
    )
    for change in changes:
        change()
        assert [campaign.pk for campaign in revisions.to_be_polled()] == [second.pk]
        scene.compute(second)
        tasks.refresh_stale()
        assert not revisions.to_be_polled()


def test_a_closed_campaign_is_never_polled_and_its_page_asks_for_new_numbers(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    Campaign.objects.update(state=Campaign.State.CLOSED)
    scene.with_verdicts(campaign)
    assert revisions.to_be_polled() == []
    page(cast, campaign)
    assert waiting() == [campaign.pk]
    Campaign.objects.update(state=Campaign.State.OPEN)
    Project.objects.update(archived_at=timezone.now())
    assert revisions.to_be_polled() == []


@pytest.mark.parametrize(
    ("task", "queue"),
    [
        ("analytics.tasks.compute_numbers", "analytics"),
        ("annotation.tasks.store_import", IMPORTS),
        ("annotation.tasks.check_import", IMPORTS),
        ("judging.tasks.store_study", IMPORTS),
        ("judging.tasks.check_verdicts", IMPORTS),
        ("judging.tasks.work", JUDGING),
    ],
)
def test_imports_wait_for_no_numbers(task: str, queue: str) -> None:
    assert app.amqp.router.route({}, task)["queue"].name == queue


def test_the_embedded_instance_has_a_worker_for_imports() -> None:
    assert [each.name for each in worker_programs(2)] == ["worker", "imports worker", "judging worker"]
    assert IMPORTS not in QUEUES
