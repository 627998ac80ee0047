"""Numbers that can't be computed: said on the page, tried again later and later, and in nobody's way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from analytics import computing, snapshots, tasks
from analytics.models import Computation, Snapshot
from annotation.models import Campaign, Criterion
from panelbench.celery import app
from panelbench.programs import IMPORTS, JUDGING, QUEUES, worker_programs
from tests.analytics import scene
from tests.cast import Cast


@pytest.fixture
def broken(cast: Cast) -> Campaign:
    """A campaign with ratings off its scale, as a release before today could store them."""
    campaign = scene.campaign(cast)
    points = [{"value": value} for value in (0, 1)]
    Criterion.objects.filter(rubric_version=campaign.rubric_version, key="fluency").update(points=points, maximum=1)
    return campaign


def page(cast: Cast, campaign: Campaign) -> str:
    return cast.client("aino").get(f"/p/kassa/numbers/{campaign.pk}/").content.decode()


def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The campaigns whose numbers workers are asked for from now on."""
    asked: list[int] = []
    monkeypatch.setattr(tasks.refresh, "delay_on_commit", lambda campaign, *_chosen: asked.append(campaign))
    monkeypatch.setattr(tasks, "PATIENCE", 0.001)
    return asked


def test_the_page_says_why_there_are_no_figures(cast: Cast, broken: Campaign) -> None:
    assert "could not be computed" not in page(cast, broken)
    tasks.refresh(broken.pk)
    shown = page(cast, broken)
    assert "The first figures are being computed" not in shown
    assert "There are no figures: they could not be computed." in shown
    assert "score &#x27;2.0&#x27; is not on the scale 0, 1" in shown
    assert "Tried once" in shown


def test_a_computation_that_fails_is_asked_for_later_and_later(
    cast: Cast, broken: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asked_for(monkeypatch)
    tasks.refresh_stale()
    assert asked == [broken.pk]
    pauses = []
    for _try in range(3):
        tasks.refresh(broken.pk)
        stored = Computation.objects.get()
        pauses.append(round((stored.next_at - timezone.now()).total_seconds() / 60))
        tasks.refresh_stale()
        page(cast, broken)
        assert asked == [broken.pk]
        Computation.objects.update(next_at=timezone.now() - timedelta(seconds=1))
    assert pauses == [1, 2, 4]
    assert computing.pause(30) == timedelta(hours=6)
    tasks.refresh_stale()
    assert asked == [broken.pk, broken.pk]


def test_one_computation_of_a_campaign_at_a_time(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = scene.campaign(cast)
    asked = asked_for(monkeypatch)
    lease = computing.begin_computation(campaign=campaign, settings=snapshots.Settings(raters=("mari", "jaan")))
    assert lease is not None
    tasks.refresh_stale()
    tasks.refresh(campaign.pk)
    assert (asked, Snapshot.objects.count()) == ([], 0)
    computing.finish_computation(lease=lease)
    tasks.refresh(campaign.pk)
    assert (Snapshot.objects.count(), Computation.objects.count()) == (1, 0)


def test_a_computation_whose_worker_died_counts_as_a_try(cast: Cast) -> None:
    campaign = scene.campaign(cast)
    assert computing.begin_computation(campaign=campaign, settings=snapshots.Settings())
    Computation.objects.update(lease_ends_at=timezone.now() - timedelta(seconds=1))
    assert "The worker stopped before it had finished. Tried once" in page(cast, campaign)


def test_a_closed_campaign_is_not_polled_once_its_numbers_are_fresh(cast: Cast, django_assert_num_queries: Any) -> None:
    campaign = scene.campaign(cast)
    Campaign.objects.update(state=Campaign.State.CLOSED)
    tasks.refresh(campaign.pk)
    tasks.refresh_stale()
    with django_assert_num_queries(1):
        tasks.refresh_stale()
    scene.judged(campaign)
    with pytest.raises(pytest.fail.Exception), django_assert_num_queries(1):
        tasks.refresh_stale()
    tasks.refresh(campaign.pk)
    assert Snapshot.objects.count() == 2


@pytest.mark.parametrize(
    ("task", "queue"),
    [
        ("analytics.tasks.refresh", "analytics"),
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
