"""Requests a second of a simulation against a plain loop that sends the same.

``python -m bench.simulation_throughput`` writes ``bench/results/simulation_throughput.md``. The simulated provider
answers after 200 ms in a process of its own. First a small plan is simulated, which is not measured: a worker loads the
client and the model that tells languages once, for all plans that it works on. Then one worker simulates conversations
of one user model with two chatbots, with an utterance judge, all of them one model, so that at most 64 requests are in
flight. Then a plain asyncio loop sends the requests that were stored, over the same client, 64 conversations at a time,
each request when the one before is answered and the openings before the conversations; it stores nothing. Per database
``TURNS`` runs of each, alternating; medians. The ratio that is aimed at is .85.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench import server
from bench.judge_run import Took, took_of
from tests.provider_server import running_provider

TURNS = 2
FAMILIES, CHATBOTS, USER_TURNS = 96, 2, 4
LATENCY, IN_FLIGHT = 0.2, 64
LOADING_FAMILIES = 4
RESULTS = Path(__file__).parent / "results" / "simulation_throughput.md"
HEAD = (
    "| database | conversations | requests | loop, per s | simulation, per s | ratio | loop, CPU s per 1,000 "
    "| simulation, CPU s per 1,000 | not finished |\n|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """A request as it was sent."""

    messages: Sequence[Any]
    parameters: dict[str, Any]
    schema: Any


def measure(kind: str) -> str:
    """The table's row for one database."""
    with running_provider(latency=LATENCY) as provider:
        declared = [{"name": "simulated", "base_url": provider.base_url, "simulated": True}]
        os.environ["PANELBENCH_PROVIDERS"] = json.dumps(declared)
        with server.database(kind):
            return _row(kind)


def _row(kind: str) -> str:
    from accounts import people
    from accounts.models import User
    from judging.generation.utterance_judge import declare_utterance_judge, utterance_rubric

    lead = User.objects.create_user("lead@panelbench.test", "correct horse battery", name="Lead")
    project = people.create_project(name="Bench", slug="bench", founder=lead)
    judge = declare_utterance_judge(project=project, provider="simulated", model="sim-steady")
    asked = {"utterance_judge": judge, "utterance_rubric": utterance_rubric(project=project)}
    found: dict[str, list[tuple[int, Took]]] = {"loop": [], "simulation": []}
    left = 0
    _simulate(_plan(project, asked, TURNS, families=LOADING_FAMILIES))
    for turn in range(TURNS):
        plan = _plan(project, asked, turn, families=FAMILIES)
        took = took_of(lambda plan=plan: _simulate(plan))
        requests, openings, conversations = _stored(plan, judge)
        found["simulation"].append((requests, took))
        left += plan.realisations.filter(state__in=["waiting", "leased"]).count()
        found["loop"].append((requests, took_of(lambda o=openings, c=conversations: asyncio.run(_send(o, c)))))
    return _summary(kind, found, left)


def _plan(project: Any, asked: dict[str, Any], turn: int, *, families: int) -> Any:
    from judging.generation import plans
    from judging.generation.specs import preset

    spec = preset("simulated-users")
    choices = [
        plans.GeneratorChoice(provider="simulated", model="sim-steady", name=f"chatbot {number}")
        for number in range(1, CHATBOTS + 1)
    ]
    plan = plans.create_plan(
        project=project,
        name=f"Plan {turn}",
        spec=replace(spec, conversation=replace(spec.simulation, user_turns=USER_TURNS)),
        languages=["en"],
        families=families,
        generators=choices,
        user_models=[plans.GeneratorChoice(provider="simulated", model="sim-steady", name="user")],
        seed=turn,
        **asked,
    )
    plans.start_plan(plan=plan)
    return plan


def _simulate(plan: Any) -> None:
    from judging.generation import conversing, plans

    while not plans.has_finished(plan):
        conversing.work_on_conversations(plan.pk)


def _stored(plan: Any, judge: Any) -> tuple[int, list[list[StoredRequest]], list[list[StoredRequest]]]:
    """How many requests were sent, and those of every opening and conversation, in their order."""
    from judging.generation.utterance_judge import UtteranceJudge
    from judging.models import GenerationAttempt, Realisation

    schema = UtteranceJudge(judge, plan.utterance_rubric).schema
    sent: dict[bool, list[list[StoredRequest]]] = {True: [], False: []}
    attempts = GenerationAttempt.objects.filter(realisation__plan=plan, outcome="replied").order_by("number")
    by_row: dict[int, list[StoredRequest]] = {}
    for row, step, request in attempts.values_list("realisation", "step", "request"):
        wanted = schema if step == "verdict" else None
        by_row.setdefault(row, []).append(StoredRequest(request["messages"], request["parameters"], wanted))
    for row in Realisation.everything.filter(plan=plan).order_by("pk"):
        sent[row.is_opening].append(by_row.get(row.pk, []))
    return attempts.count(), sent[True], sent[False]


async def _send(openings: list[list[StoredRequest]], conversations: list[list[StoredRequest]]) -> None:
    from judging import judges
    from judging.asking import client
    from judging.models import Judge

    endpoint = await asyncio.to_thread(lambda: judges.endpoint(Judge.objects.get()))
    places = asyncio.Semaphore(IN_FLIGHT)
    async with client.connect(endpoint) as line:

        async def converse(requests: list[StoredRequest]) -> None:
            async with places:
                for request in requests:
                    await client.ask(
                        line,
                        model="sim-steady",
                        messages=request.messages,
                        parameters=request.parameters,
                        schema=request.schema,
                        timeout=30,
                    )

        for rows in (openings, conversations):
            async with asyncio.TaskGroup() as group:
                for requests in rows:
                    group.create_task(converse(requests))


def _summary(kind: str, found: dict[str, list[tuple[int, Took]]], left: int) -> str:
    rates = {name: statistics.median(count / took.clock for count, took in runs) for name, runs in found.items()}
    cpus = {name: statistics.median(1000 * took.cpu / count for count, took in runs) for name, runs in found.items()}
    requests = round(statistics.median(count for count, _took in found["loop"]))
    figures = (
        *(kind, FAMILIES * CHATBOTS, requests, f"{rates['loop']:.0f}", f"{rates['simulation']:.0f}"),
        *(f"{rates['simulation'] / rates['loop']:.2f}", f"{cpus['loop']:.2f}", f"{cpus['simulation']:.2f}", left),
    )
    return "| " + " | ".join(map(str, figures)) + " |"


def _main() -> None:
    if table := server.on_both_databases(measure, head=HEAD):
        size = f"{FAMILIES} families, {CHATBOTS} chatbots, at most {USER_TURNS} user turns, {LATENCY} s a reply"
        load = f"{os.cpu_count()} cores under a load of {os.getloadavg()[1]:.1f}"
        text = f"# A simulation against a plain loop\n\n{size}, {IN_FLIGHT} in flight. {load}.\n\n{table}\n"
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(_main())
