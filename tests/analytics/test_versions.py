"""Numbers over the versions of a dataset: the earlier version's stand, the later one's count everything."""

from __future__ import annotations

from typing import Any

from analytics.answers import revisions, snapshots
from analytics.questions.question import Settings
from analytics.ratings import ratings_tables
from analytics.ratings.raters import newest_runs
from annotation import campaigns
from annotation.imports import storage
from annotation.models import Campaign, Dataset
from judging.models import Call, JudgeRun, Verdict
from judging.runs import run_to_continue
from tests import make
from tests.analytics import scene
from tests.analytics.test_exports import lines
from tests.cast import Cast

QUICK = Settings(bootstrap=50)


def added(campaign: Campaign) -> Dataset:
    """Two more items."""
    rows = [make.item_row(number, scenario=f"s{number}", external_id=f"et-{number}") for number in (7, 8)]
    return storage.append_items(dataset=campaign.dataset, items=rows)


def estimates(campaign: Campaign) -> list[dict[str, Any]]:
    return list(snapshots.snapshot(campaign=campaign, settings=QUICK).content["estimates"])


def continued_on(dataset: Dataset, run: JudgeRun) -> JudgeRun:
    """A finished run on a later version, with a verdict on each new item."""
    later = JudgeRun.objects.create(
        project=run.project,
        judge=run.judge,
        dataset=dataset,
        rubric_version=run.rubric_version,
        continues=run_to_continue(judge=run.judge, dataset=dataset, rubric_version=run.rubric_version, repeats=1),
    )
    fluency = run.rubric_version.criteria.get(key="fluency")
    for item in dataset.items.all():
        Verdict.objects.create(run=later, item=item, criterion=fluency, status="ok", score=2)
    return later


def items(rows: Any, kind: str) -> list[str]:
    return [row.item for row in rows if row.rater_kind == kind and row.criterion == "fluency"]


def test_numbers_stay_as_they_are_until_something_new_is_rated(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    scene.with_verdicts(campaign)
    before, table = estimates(campaign), list(ratings_tables.rows(campaign=campaign))
    campaign = campaigns.extend_campaign(campaign=campaign, dataset=added(campaign))
    snapshot, is_stale = snapshots.current_snapshot(campaign=campaign, settings=QUICK)
    assert snapshot is not None
    assert (snapshot.content["items"], is_stale) == (12, True)
    assert (estimates(campaign), list(ratings_tables.rows(campaign=campaign))) == (before, table)
    assert snapshots.snapshot(campaign=campaign, settings=QUICK).content["items"] == 14


def test_a_continued_run_counts_as_one_rater_over_all_items(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    earlier = scene.with_verdicts(campaign)
    published = revisions.snapshot_revision(campaign), list(ratings_tables.rows(campaign=campaign))
    second = added(campaign)
    later = continued_on(second, earlier)
    assert (later.continues, list(newest_runs(campaign))) == (earlier, [earlier])
    assert (revisions.snapshot_revision(campaign), list(ratings_tables.rows(campaign=campaign))) == published
    campaign = campaigns.extend_campaign(campaign=campaign, dataset=second)
    assert list(newest_runs(campaign)) == [later]
    rows = list(ratings_tables.rows(campaign=campaign))
    judged = items(rows, "judge")
    assert (len(judged), judged[-2:], len(set(judged))) == (14, ["et-7", "et-8"], 14)
    assert {row.rater for row in rows if row.rater_kind == "judge"} == {"Kohtunik"}
    snapshot = snapshots.snapshot(campaign=campaign, settings=QUICK)
    assert [each["run"] for each in snapshot.content["judges"]] == [later.pk]


def test_a_run_on_the_earlier_version_counts_until_one_on_the_later_has_finished(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    earlier = scene.with_verdicts(campaign)
    campaign = campaigns.extend_campaign(campaign=campaign, dataset=added(campaign))
    assert list(newest_runs(campaign)) == [earlier]
    later = continued_on(campaign.dataset, earlier)
    call = Call.objects.create(run=later, item=campaign.dataset.items.first())
    assert list(newest_runs(campaign)) == [earlier]
    Call.objects.filter(pk=call.pk).update(state=Call.State.SETTLED)
    again = scene.with_verdicts(
        Campaign(project=cast.kassa, dataset=earlier.dataset, rubric_version=earlier.rubric_version)
    )
    assert again.pk > later.pk
    assert list(newest_runs(campaign)) == [later]


def test_what_is_taken_out_has_every_item_and_verdict_of_the_version(cast: Cast) -> None:
    campaign = scene.rated_campaign(cast)
    earlier = scene.with_verdicts(campaign)
    second = added(campaign)
    continued_on(second, earlier)
    campaigns.extend_campaign(campaign=campaign, dataset=second)
    client = cast.client("boris")
    assert [len(lines(client, "items", dataset=f"Round 1 v{version}")) for version in (1, 2)] == [12, 14]
    assert len(lines(client, "verdicts")) == 12 + 12 + 2
