"""What nobody should send to plans is refused in words or does nothing; nothing is paid, lost or stored twice."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone

from accounts import deletion, people
from annotation.models import Dataset
from judging.generation import plans, writing
from judging.generation.specs import preset
from judging.models import GenerationAttempt, GenerationPlan, Realisation
from tests.cast import Cast
from tests.judging.generation.test_writing import begun, planned, written
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)
SPEC = preset("support-dialogues").stored
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefg", "bcdefgh", strict=True)
)
GENERATORS = [{"provider": "simulated", "model": "sim-steady"}]


def posted(cast: Cast, path: str, body: Any, *, name: str = "boris", method: str = "post") -> Any:
    client = cast.client(name)
    client.raise_request_exception = True
    return getattr(client, method)(f"/api/v1/projects/kassa/generation/{path}", body, content_type="application/json")


def asked(**changed: Any) -> dict[str, Any]:
    return {
        "name": "Plaan",
        "spec": SPEC,
        "languages": ["et"],
        "families": 2,
        "generators": GENERATORS,
        **changed,
    }


def together(*verbs: Callable[[], Any]) -> list[Any]:
    """Call each in a thread of its own, at the same moment."""
    barrier, results = threading.Barrier(len(verbs)), [None] * len(verbs)

    def call(place: int, verb: Callable[[], Any]) -> None:
        try:
            barrier.wait()
            results[place] = verb()
        finally:
            connection.close()

    threads = [threading.Thread(target=call, args=pair) for pair in enumerate(verbs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize(
    "changed",
    [
        {"spec": BOMB},
        {"spec": "key: [" * 5_000},
        {"spec": "!!python/object/apply:os.system ['true']"},
        {"spec": {**SPEC, "templates": {"": "{problem}" * 2_000}}},
        {"spec": {**SPEC, "templates": "x" * 1_000_000}},
        {"spec": {**SPEC, "parameters": [{"name": f"p{n}", "levels": [1]} for n in range(5_000)]}},
        {"spec": {**SPEC, "parameters": [{"name": "x", "levels": list(range(100_000))}]}},
        {"spec": {**SPEC, "parameters": [{"name": "x", "levels": [1, 2], "weights": [float("1e308"), 1e308]}]}},
        {"spec": {**SPEC, "retries": 10**30}},
        {"spec": {**SPEC, "title": "x\u0000y"}},
        {"spec": {**SPEC, "title": "\ud800"}},
        {"spec": {**SPEC, "rules": {**SPEC["rules"], "roles": ["customer", "customer"]}}},
        {"spec": {**SPEC, "rules": []}},
        {"spec": None},
        {"spec": 7},
        {"spec": [SPEC]},
        {"name": "x\u0000"},
        {"name": "\u200b"},
        {"name": "\ud83d"},
        {"name": "n" * 121},
        {"languages": ["et"] * 61},
        {"languages": [None]},
        {"languages": ["x" * 36]},
        {"languages": ["e\u0301t"]},
        {"families": 10**30},
        {"families": 1.5},
        {"families": True},
        {"repeats": -1},
        {"seed": 2**63},
        {"seed": -1},
        {"budget": "NaN"},
        {"budget": "Infinity"},
        {"budget": "1e400"},
        {"generators": GENERATORS * 2},
        {"generators": [{**GENERATORS[0], "model": "x\u0000"}]},
        {"generators": [{**GENERATORS[0], "parameters": {"max_tokens": 10**40}}]},
        {"generators": [{**GENERATORS[0], "parameters": {"messages": []}}]},
        {"generators": [{**GENERATORS[0], "parameters": {"x": {"y": [{}] * 100_000}}}]},
        {"generators": [{**GENERATORS[0], "provider": "../etc"}]},
        {"generators": "sim-steady"},
        {"unknown": 1},
    ],
    ids=lambda changed: str(changed)[:60].encode("ascii", "replace").decode(),
)
def test_what_makes_no_plan_is_refused_in_words(cast: Cast, provider: RunningProvider, changed: dict[str, Any]) -> None:
    answer = posted(cast, "", asked(**changed))
    assert answer.status_code in (400, 422), (answer.status_code, answer.content[:300])
    assert answer.json()
    assert not GenerationPlan.objects.exists()


@pytest.mark.parametrize(
    "name", ["«Ä» \"'<script>", "خطة \u202eعكس", "e\u0301 \u2028", "{{ 7*7 }} %s %(name)s {0}", "👩‍🔬 ../.."]
)
def test_any_name_is_shown_as_it_is(cast: Cast, provider: RunningProvider, name: str) -> None:
    made = posted(cast, "", asked(name=name, families=1))
    assert made.status_code == 201, made.content
    plan = GenerationPlan.objects.get()
    plans.start_plan(plan=plan)
    written(plan)
    client = cast.client("boris")
    for page in ("", "texts/", "reading/", f"texts/{plan.realisations.get().pk}/"):
        shown = client.get(f"/p/kassa/generation/{plan.pk}/{page}")
        assert shown.status_code == 200
        assert "<script>" not in shown.content.decode().partition("<main")[2]
    stored = posted(cast, f"{plan.pk}/store/", {"name": name, "only": "all"})
    assert stored.status_code == 201, stored.content
    assert Dataset.objects.get(pk=stored.json()["dataset"]).name == name.strip()
    assert client.get("/p/kassa/generation/").status_code == 200


@pytest.mark.both_databases
def test_of_many_that_change_a_plan_at_once_each_move_is_made_once(cast: Cast, provider: RunningProvider) -> None:
    plan = planned(cast, families=4, languages=["et"], models=("sim-steady",))

    def move(verb: str) -> Callable[[], Any]:
        return lambda: posted(cast, f"{plan.pk}/{verb}/", {}).status_code

    assert Counter(together(*[move("start")] * 4))[200] == 1
    plan.refresh_from_db()
    assert plan.state == "running"
    statuses = together(*[move("pause")] * 3, *[move("resume")] * 3)
    assert set(statuses) <= {200, 409, 422}, statuses
    statuses = together(*[move("cancel")] * 3)
    assert Counter(statuses)[200] == 1, statuses
    plan.refresh_from_db()
    assert plan.state == "cancelled"
    assert provider.control()["requests"] == 0


@pytest.mark.both_databases
def test_two_sessions_and_a_pause_write_every_text_once(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=6, languages=["et", "ar"], models=("sim-steady",))
    [generator] = plan.generators.all()

    def pause_and_resume() -> None:
        for _turn in range(3):
            plans.pause_plan(plan=GenerationPlan.objects.get(pk=plan.pk))
            plans.resume_plan(plan=GenerationPlan.objects.get(pk=plan.pk))

    together(
        lambda: writing.work_on_generator(generator.pk),
        lambda: writing.work_on_generator(generator.pk),
        pause_and_resume,
    )
    plan.refresh_from_db()
    assert plan.state == "running"
    assert written(plan).written == 12
    assert GenerationAttempt.objects.filter(outcome="replied").count() == provider.control()["requests"] == 12


@pytest.mark.both_databases
def test_of_several_that_store_a_plan_under_one_name_one_does(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=2, languages=["et"], models=("sim-steady",))
    written(plan)
    answers = together(*[lambda: posted(cast, f"{plan.pk}/store/", {"name": "Üks", "only": "all"}).status_code] * 4)
    assert Counter(answers)[201] == 1 and set(answers) <= {201, 409, 422}, answers
    assert Dataset.objects.filter(project=cast.kassa, name="Üks").count() == 1
    assert plan.datasets.count() == 1


@pytest.mark.both_databases
def test_an_archived_project_pauses_its_plan_and_a_deleted_one_loses_it(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=3, languages=["et"], models=("sim-steady",))
    written(plan, sessions=1)
    people.archive(project=cast.kassa, actor=cast.aino)
    plan.refresh_from_db()
    assert plan.state == "paused" and plan.reason
    for verb in ("start", "resume", "again", "store"):
        assert posted(cast, f"{plan.pk}/{verb}/", {"name": "x"}, name="aino").status_code in (403, 404, 409, 422), verb

    started = planned(cast, project=cast.teine, families=3, languages=["et"], models=("sim-steady",))
    plans.start_plan(plan=started)
    people.archive(project=cast.teine, actor=cast.zoltan)
    deletion.delete_project(project=cast.teine, name="Teine", actor=cast.zoltan)
    assert deletion.purge_deleted(now=timezone.now() + timedelta(days=31)) == ["teine"]
    assert [*GenerationPlan.objects.all()] == [plan]
    assert set(Realisation.everything.values_list("plan", flat=True)) == {plan.pk}
    assert not writing.work_on_generator(plan.generators.get().pk)


def test_strangers_and_annotators_reach_no_part_of_a_plan(cast: Cast, provider: RunningProvider) -> None:
    plan = begun(cast, families=1, languages=["et"], models=("sim-steady",))
    written(plan)
    text = plan.realisations.get()
    for name in ("zoltan", "maarika"):
        for verb in ("examples", "start", "pause", "resume", "cancel", "again", "store"):
            assert posted(cast, f"{plan.pk}/{verb}/", {"name": "x"}, name=name).status_code in (403, 404)
        for page in ("", f"{plan.pk}/", f"{plan.pk}/texts/", f"{plan.pk}/texts/{text.pk}/", f"{plan.pk}/forecast/"):
            assert cast.client(name).get(f"/api/v1/projects/kassa/generation/{page}").status_code in (403, 404)
    # A plan of one project is not reached through another.
    client = cast.client("zoltan")
    assert client.get(f"/api/v1/projects/teine/generation/{plan.pk}/").status_code == 404
    assert client.get(reverse("generation_plan", args=["teine", plan.pk])).status_code == 404
