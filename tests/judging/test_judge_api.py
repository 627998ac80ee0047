"""Judges, runs, calls and verdicts over the API."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from judging.models import Call, JudgeRun
from tests import make
from tests.cast import Cast
from tests.judging.test_runs import declared, started, worked
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = "/api/v1/projects/kassa"


@pytest.fixture
def boris(cast: Cast) -> Client:
    return cast.client("boris")


def sent(client: Client, method: str, path: str, body: Any = None, *, expect: int = 200) -> Any:
    answer = getattr(client, method)(f"{ROOT}/{path}", data=body, content_type="application/json")
    assert answer.status_code == expect, answer.content
    return answer.json()


def test_a_judge_is_declared_listed_and_the_same_again(boris: Client, provider: RunningProvider) -> None:
    asked = {"name": "J", "provider": "simulated", "model": "sim-steady", "variant": {"grouping": "single"}}
    made = sent(boris, "post", "judges/", asked, expect=201)
    again = sent(boris, "post", "judges/", {**asked, "name": "K"}, expect=201)
    assert again == made
    assert made["variant"]["anchor_detail"] == "anchors"
    assert [each["name"] for each in sent(boris, "get", "judges/")["results"]] == ["J"]
    assert sent(boris, "get", f"judges/{made['id']}/")["simulated"] is True


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"provider": "nobody"}, "provider"),
        ({"parameters": {"messages": []}}, "parameters"),
        ({"parameters": {"stop": "\x00"}}, "parameters"),
        ({"variant": {"grouping": "twice"}}, "variant"),
    ],
)
def test_a_judge_that_cannot_be_asked_is_refused_by_field(
    boris: Client, provider: RunningProvider, wrong: dict[str, Any], field: str
) -> None:
    asked = {"name": "J", "provider": "simulated", "model": "sim-steady", **wrong}
    answer = boris.post(f"{ROOT}/judges/", data=asked, content_type="application/json")
    assert answer.status_code in (400, 422)
    assert field in answer.json()["fields"]


def test_the_preview_shows_the_messages(cast: Cast, boris: Client, provider: RunningProvider) -> None:
    item = make.dataset(cast.kassa, 1).items.get()
    version = make.rubric(cast.kassa)
    judge = declared(cast, grouping="single")
    prompts = sent(boris, "get", f"judges/{judge.pk}/preview/?item={item.pk}&rubric_version={version.pk}")
    assert [prompt["criteria"] for prompt in prompts] == [["Fluency"], ["Coherence"]]
    assert "Minu pakk number 1" in prompts[0]["messages"][1]["content"]


def test_a_run_is_forecast_started_and_read(cast: Cast, boris: Client, provider: RunningProvider) -> None:
    asked = {
        "judge": declared(cast).pk,
        "dataset": make.dataset(cast.kassa, 3).pk,
        "rubric_version": make.rubric(cast.kassa).pk,
        "repeats": 2,
    }
    assert sent(boris, "post", "runs/forecast/", asked)["calls"] == 6
    run = sent(boris, "post", "runs/", asked, expect=201)
    assert (run["state"], run["progress"]["waiting"]) == ("running", 6)

    worked(JudgeRun.objects.get(pk=run["id"]))
    assert sent(boris, "get", f"runs/{run['id']}/")["progress"]["verdicts"] == {"ok": 12}
    assert len(sent(boris, "get", "runs/")["results"]) == 1
    calls = sent(boris, "get", f"runs/{run['id']}/calls/?state=settled&limit=4")
    assert (len(calls["results"]), bool(calls["next"])) == (4, True)
    call = sent(boris, "get", f"runs/{run['id']}/calls/{calls['results'][0]['id']}/")
    assert "Minu pakk number 1" in call["attempts"][0]["request"]["messages"][1]["content"]
    verdicts = sent(boris, "get", f"verdicts/?run={run['id']}&criterion=fluency&item=d2")["results"]
    assert [(each["item"], each["repeat"], each["status"]) for each in verdicts] == [("d2", 1, "ok"), ("d2", 2, "ok")]


def test_a_run_is_steered_and_says_when_it_cannot_be(cast: Cast, boris: Client, provider: RunningProvider) -> None:
    run = started(cast, declared(cast), items=1)
    assert sent(boris, "post", f"runs/{run.pk}/pause/")["state"] == "paused"
    assert sent(boris, "post", f"runs/{run.pk}/pause/", expect=409)["code"] == "wrong_state"
    assert sent(boris, "post", f"runs/{run.pk}/resume/")["state"] == "running"
    assert sent(boris, "post", f"runs/{run.pk}/rerun-failed/", expect=409)["code"] == "nothing_failed"
    Call.objects.filter(run=run).update(state="failed")
    assert sent(boris, "post", f"runs/{run.pk}/rerun-failed/")["progress"]["waiting"] == 1
    assert sent(boris, "post", f"runs/{run.pk}/cancel/")["state"] == "cancelled"


def test_a_budget_is_set_and_lifted(cast: Cast, boris: Client, provider: RunningProvider, settings: Any) -> None:
    run = started(cast, declared(cast, parameters={"max_tokens": 200}), items=1)
    assert "budget" in sent(boris, "put", f"runs/{run.pk}/budget/", {"budget": "2"}, expect=422)["fields"]
    object.__setattr__(settings.PROVIDERS["simulated"], "prices", (("sim-steady", Decimal(2), Decimal(8)),))
    assert sent(boris, "put", f"runs/{run.pk}/budget/", {"budget": "2"})["budget"] == "2.000000"
    assert sent(boris, "put", f"runs/{run.pk}/budget/", {"budget": None})["budget"] is None


def test_another_projects_rows_are_not_there(cast: Cast, boris: Client, provider: RunningProvider) -> None:
    foreign = make.dataset(cast.teine, 1)
    asked = {"judge": declared(cast).pk, "dataset": foreign.pk, "rubric_version": make.rubric(cast.kassa).pk}
    sent(boris, "post", "runs/", asked, expect=404)


def test_lists_ask_the_database_a_fixed_number_of_questions(
    cast: Cast, boris: Client, provider: RunningProvider, django_assert_max_num_queries: Any
) -> None:
    run = started(cast, declared(cast), items=5)
    worked(run)
    for path in ("judges/", "runs/", f"runs/{run.pk}/calls/", "verdicts/"):
        with django_assert_max_num_queries(8):
            sent(boris, "get", path)
