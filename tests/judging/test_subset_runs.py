"""A judge over a selection: asked about its items only, and its numbers say with what probability they were drawn."""

from __future__ import annotations

import pytest

from accounts.refusals import Refused
from analytics.ratings import ratings_tables
from analytics.ratings.raters import newest_runs
from annotation import selections
from annotation.imports import storage
from annotation.models import Campaign, ItemSelection
from judging import runs
from judging.models import JudgeRun
from tests import make
from tests.cast import Cast
from tests.judging.test_continuing import asked
from tests.judging.test_runs import declared, worked
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def campaign(cast: Cast) -> Campaign:
    return make.campaign(cast.kassa, items=8)


def selected(campaign: Campaign, n: int = 2, name: str = "Pilot") -> ItemSelection:
    return selections.select(campaign=campaign, name=name, rule={"kind": "draw", "n": n}, seed=3)


def about(cast: Cast, campaign: Campaign, **parts: object) -> dict[str, object]:
    material = {"dataset": campaign.dataset, "rubric_version": campaign.rubric_version}
    return {"judge": declared(cast), **material, **parts}


def test_only_the_items_of_the_selection_are_asked_about(
    cast: Cast, provider: RunningProvider, campaign: Campaign
) -> None:
    plan = about(cast, campaign, selection=selected(campaign))
    forecast = runs.forecast(**plan)  # type: ignore[arg-type]
    assert (forecast.calls, forecast.items) == (2, 2)
    run = runs.start_judge_run(**plan)  # type: ignore[arg-type]
    chosen = selections.selected_items(plan["selection"]).values_list("external_id", flat=True)  # type: ignore[arg-type]
    assert asked(run) == list(chosen)
    assert worked(run).finished
    whole = runs.forecast(**about(cast, campaign))  # type: ignore[arg-type]
    assert (whole.calls, whole.answered) == (8, 2)


def test_the_probability_reaches_the_ratings_table(cast: Cast, provider: RunningProvider, campaign: Campaign) -> None:
    run = runs.start_judge_run(**about(cast, campaign, selection=selected(campaign)))  # type: ignore[arg-type]
    worked(run)
    table = ratings_tables.load(campaign=campaign)
    assert len(table) == 4
    assert set(table["inclusion_prob"]) == {0.25}
    assert set(table["weight"]) == {4.0}


def test_a_part_replaces_no_run_over_all_items(cast: Cast, provider: RunningProvider, campaign: Campaign) -> None:
    whole = runs.start_judge_run(**about(cast, campaign))  # type: ignore[arg-type]
    with pytest.raises(Refused, match=f"Run {whole.pk} already uses this judge"):
        runs.start_judge_run(**about(cast, campaign, selection=selected(campaign)))  # type: ignore[arg-type]
    worked(whole)
    part = runs.start_judge_run(**about(cast, campaign, selection=selected(campaign, name="B")))  # type: ignore[arg-type]
    assert worked(part).reused == 2
    assert list(newest_runs(campaign)) == [whole]
    assert set(ratings_tables.load(campaign=campaign, runs=[whole, part])["inclusion_prob"]) == {1.0, 0.25}


def test_two_selections_without_a_common_item_run_side_by_side(
    cast: Cast, provider: RunningProvider, campaign: Campaign
) -> None:
    one, other = (
        selections.select(campaign=campaign, name=item, rule={"kind": "list", "items": [item]}) for item in ("d1", "d2")
    )
    for selection in (one, other):
        runs.start_judge_run(**about(cast, campaign, selection=selection))  # type: ignore[arg-type]
    with pytest.raises(Refused, match="already uses this judge"):
        runs.start_judge_run(**about(cast, campaign, selection=one))  # type: ignore[arg-type]


def test_a_run_over_a_part_is_not_continued(cast: Cast, provider: RunningProvider, campaign: Campaign) -> None:
    part = runs.start_judge_run(**about(cast, campaign, selection=selected(campaign)))  # type: ignore[arg-type]
    worked(part)
    later = storage.append_items(dataset=campaign.dataset, items=[make.item_row(9)])
    judge, version = declared(cast), campaign.rubric_version
    assert runs.run_to_continue(judge=judge, dataset=later, rubric_version=version) is None
    run = runs.start_judge_run(judge=judge, dataset=later, rubric_version=version)
    assert len(asked(run)) == 9


def test_another_datasets_selection_is_refused(cast: Cast, provider: RunningProvider, campaign: Campaign) -> None:
    other = make.dataset(cast.kassa, 2, name="Other")
    with pytest.raises(Refused, match="does not have the items of the selection “Pilot”"):
        runs.start_judge_run(**about(cast, campaign, dataset=other, selection=selected(campaign)))  # type: ignore[arg-type]


def test_page_and_api_start_a_run_over_a_selection(cast: Cast, provider: RunningProvider, campaign: Campaign) -> None:
    selection, judge, boris = selected(campaign), declared(cast), cast.client("boris")
    about = {"dataset": campaign.dataset_id, "rubric_version": campaign.rubric_version_id, "selection": selection.pk}
    address = f"/p/kassa/judges/{judge.pk}/runs/new/"
    page = boris.get(address, {**about, "repeats": "1"})
    assert page.context["forecast"].calls == 2
    started = boris.post(address, {**about, "repeats": "1", "key": "a"})
    run = JudgeRun.objects.get()
    assert (started.status_code, run.selection, len(asked(run))) == (302, selection, 2)
    assert "Pilot" in boris.get(started["Location"]).content.decode()
    body = {**about, "judge": judge.pk, "repeats": 2, "again": True}
    made = boris.post("/api/v1/projects/kassa/runs/", body, content_type="application/json")
    assert (made.status_code, made.json()["selection"], made.json()["progress"]["planned"]) == (201, selection.pk, 4)
    foreign = boris.post("/api/v1/projects/kassa/runs/", {**body, "selection": 10**9}, content_type="application/json")
    assert foreign.status_code == 404
