"""The third study through HTTP: prompts written by three people with reviews, answered by two models and by people,
rated by the rules of a taxonomy.

``python -m bench.collected_prompts`` writes ``bench/results/collected_prompts.md``: on PostgreSQL with Redis and on
SQLite with a queue in a folder, each with a web server and a worker of their own. About a minute.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.kill_worker import workers
from bench.server import database, on_both_databases, redis_server, serving
from panelbench_client import Client
from tests.provider_server import running_provider

RESULT = Path(__file__).parent / "results" / "collected_prompts.md"
HEAD = """\
# Prompts collected by three people, answered by two models and a person, rated by rules

Everything goes through the API of a running server with a worker. Three people write prompts for 2 tasks x 2 styles in
Estonian and Arabic, two of each kind, and review each other's: every fourth is sent back and revised, one more is
rejected and written again. *Refused* are a copy of another prompt, a review of one's own, and a second review. The
accepted prompts are answered by two simulated models; a human baseline is added to the same scenarios. *Scenarios* have
all three answers. Rules of a taxonomy make the duties: all answers on one criterion, letters on a second one.

| database | submitted | versions | sent back | rejected | accepted | refused | answers of models | human answers \
| scenarios | assignments | ratings | mean of models | mean of people | seconds |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"""
LANGUAGES, MODELS, WANTED = ("et", "ar"), ("sim-steady", "sim-chatty"), 2
TASKS, STYLES = ("letter", "poem"), ("plain", "high")
TAXONOMY = """
key: prompts
name: {en: Prompts}
source_language: en
attributes: {task: task, style: style, difficulty: difficulty}
tasks: [{key: letter, name: Letter}, {key: poem, name: Poem}]
styles: [{key: plain, name: Plain}, {key: high, name: High}]
criteria:
- {key: all, name: All, criteria: [fluency]}
- {key: more, name: More, criteria: [coherence]}
rules:
- {name: All, criteria: [all], panel: Readers, overlap: 2}
- {name: Letters, criteria: [more], panel: Readers, overlap: 3, tasks: [letter]}
"""
SUBJECTS = {
    "et": ("naabri koera haukumisest", "katkisest tänavalaternast", "vihmasest suvepäevast", "vanast jalgrattast"),
    "ar": ("الجار الذي يترك الباب مفتوحًا", "مصباح الشارع المكسور", "يوم ماطر في الصيف", "الدراجة القديمة"),
}
ORDERS = {
    "et": "Kirjuta {style} {task} {subject}, number {number}.",
    "ar": "اكتب {task} {style} عن {subject}، رقم {number}.",
}
WORDS = {
    "et": {"letter": "kiri", "poem": "luuletus", "plain": "lihtne", "high": "pidulik"},
    "ar": {"letter": "رسالة", "poem": "قصيدة", "plain": "بسيطة", "high": "فصيحة"},
}


def measure(kind: str) -> str:
    """The row of one database."""
    with contextlib.ExitStack() as stack:
        if kind == "postgresql":
            stack.enter_context(redis_server())
        else:
            os.environ.pop("REDIS_URL", None)
        provider = stack.enter_context(running_provider(latency=0.05))
        declared = {"name": "simulated", "base_url": provider.base_url, "simulated": True}
        os.environ["PANELBENCH_PROVIDERS"] = json.dumps([declared])
        stack.enter_context(database(kind))
        secrets = _people()
        address = f"http://127.0.0.1:{stack.enter_context(serving())}"
        stack.enter_context(workers(1))
        opened = {name: stack.enter_context(Client(address, secret, "s2")) for name, secret in secrets.items()}
        lead = opened.pop("Aino")
        began = time.monotonic()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        figures = [*_collected(lead, opened)]
        dataset, models, people, scenarios = _answered(lead, figures.pop(), folder)
        figures += [models, people, scenarios, *_rated(lead, opened, dataset, folder)]
        row = (kind, *figures, f"{time.monotonic() - began:.0f}")
    return "| " + " | ".join(map(str, row)) + " |"


def _people() -> dict[str, str]:
    """A lead and three writers, with a token each; a published rubric."""
    from accounts import people, tokens
    from accounts.models import Membership, Role, Scope, User
    from tests import make

    lead = User.objects.create_user("aino@panelbench.test", name="Aino")
    project = people.create_project(name="S2", slug="s2", founder=lead)
    make.rubric(project, key="answers")
    users = [lead]
    for name in ("Maarika", "Layla", "Boris"):
        users.append(User.objects.create_user(f"{name.lower()}@panelbench.test", name=name))
        Membership.objects.create(project=project, user=users[-1], role=Role.ANNOTATOR)
    return {user.name: tokens.issue(user=user, name="bench", scope=Scope.WRITE)[1] for user in users}


def _collected(lead: Client, people: dict[str, Client]) -> list[Any]:
    """Submitted prompts, versions, sent back, rejected, accepted, refused; then the dataset."""
    kinds: list[Any] = [
        {"task": task, "style": style, "language": language, "wanted": WANTED}
        for language in LANGUAGES
        for task in TASKS
        for style in STYLES
    ]
    made = lead.create_prompt_collection("Prompts", slots=kinds, guidelines={"et": "Kirjuta ise.", "ar": "اكتب بنفسك."})
    collection = made["id"]
    for name in people:
        email = f"{name.lower()}@panelbench.test"
        lead.set_prompt_member(collection, email, writes=True, reviews=True)
    refused: Counter[str] = Counter()
    names, number = list(people), 0
    for slot in made["progress"]:
        for _copy in range(WANTED):
            writer, reviewer, other = (people[names[(number + place) % 3]] for place in range(3))
            sent = writer.submit_prompt(collection, _text(slot, number), slot=slot["id"])
            if number == 0:
                _note(refused, lambda: other.submit_prompt(collection, _text(slot, 0), slot=slot["id"]))  # noqa: B023
                _note(refused, lambda: writer.review_prompt(collection, sent["id"], 1, "accept"))  # noqa: B023
            if number % 4 == 1:
                reviewer.review_prompt(collection, sent["id"], 1, "send_back", comment="Täpsemalt, palun.")
                writer.submit_prompt(collection, _text(slot, number, " +"), prompt=sent["id"])
                other.review_prompt(collection, sent["id"], 2, "accept")
                _note(refused, lambda: reviewer.review_prompt(collection, sent["id"], 2, "reject", comment="Ei"))  # noqa: B023
            elif number == 6:
                reviewer.review_prompt(collection, sent["id"], 1, "reject", comment="On kopeeritud.")
                again = other.submit_prompt(collection, _text(slot, number, " !"), slot=slot["id"])
                writer.review_prompt(collection, again["id"], 1, "accept")
            else:
                reviewer.review_prompt(collection, sent["id"], 1, "accept")
            number += 1
    prompts = list(lead.collected_prompts(collection))
    versions = [version for prompt in prompts for version in prompt["versions"]]
    decided = Counter(version["decision"] for version in versions)
    assert lead.prompt_progress(collection)["left"] == 0, "every kind is full"
    lead.set_prompt_collection_state(collection, "closed")
    dataset = lead.store_prompts(collection, "Prompts")["dataset"]
    counts = [len(prompts), len(versions), decided["send_back"], decided["reject"], decided["accept"]]
    return [*counts, ", ".join(sorted(refused)), dataset]


def _text(slot: Any, number: int, more: str = "") -> str:
    language = slot["language"]
    words = WORDS[language]
    text = ORDERS[language].format(
        task=words[slot["task"]],
        style=words[slot["style"]],
        subject=SUBJECTS[language][number % 4],
        number=number,
    )
    return text + more


def _note(refused: Counter[str], asked: Callable[[], Any]) -> None:
    """Note the code with which something was refused."""
    from panelbench_client import ApiError

    try:
        asked()
    except ApiError as error:
        refused[error.code] += 1
    else:
        raise AssertionError("it was not refused")


def _answered(lead: Client, prompts: int, folder: Path) -> tuple[int, int, int, int]:
    """The dataset with answers of models and people, how many of each, and how many scenarios have all three."""
    chosen: list[Any] = [{"provider": "simulated", "model": model} for model in MODELS]
    plan = lead.plan_answers(prompts, "Answers", chosen)["id"]
    lead.start_generation(plan)
    lead.wait(
        lambda: lead.generation_plan(plan)["progress"]["phase"] == "finished" or None, timeout=120, what="answers"
    )
    stored = lead.store_generated(plan, "Answers")
    file = folder / "people.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for item in lead.items(prompts):
            human = {name: item["attributes"][name] for name in ("task", "style", "difficulty")}
            human |= {"id": f"{item['external_id']}/human", "language": item["language"], "generator": "human"}
            human |= {"scenario": item["scenario"] or item["external_id"], "question": item["fields"]["question"]}
            answer = {"et": "See on inimese vastus.", "ar": "هذا جواب كتبه إنسان."}[item["language"]]
            lines.write(json.dumps(human | {"answer": f"{answer} {item['external_id']}"}, ensure_ascii=False) + "\n")
    opened = lead.open_import(file, kind="dataset", target={"extends": int(stored["dataset"] or 0)})
    lead.store_import(opened["id"])
    lead.wait_for_import(opened["id"], timeout=60)
    whole = max((one for one in lead.datasets() if one["name"] == "Answers"), key=lambda one: one["version"])
    generators: dict[str, set[str]] = defaultdict(set)
    counts: Counter[str] = Counter()
    for item in lead.items(whole["id"]):
        generators[item["scenario"]].add(item["generator"])
        counts[item["generator"]] += 1
    complete = sum(those == {*MODELS, "human"} for those in generators.values())
    return whole["id"], sum(counts[model] for model in MODELS), counts["human"], complete


def _rated(lead: Client, people: dict[str, Client], dataset: int, folder: Path) -> list[Any]:
    """Assignments, ratings, and the mean score of fluency of models and of people."""
    rubric = next(iter(lead.rubric_versions("answers")))
    campaign = lead.open_campaign("Round 1", dataset, rubric["id"])["id"]
    panel = lead.make_panel("Readers")["id"]
    for member in lead.members():
        if member["role"] == "annotator":
            lead.seat(panel, member["user"])
    taxonomy = lead.store_taxonomy(TAXONOMY)["id"]
    plan = lead.add_duties_by_rules(campaign, taxonomy, panels={"Readers": [panel]})
    for client in people.values():
        for duty in client.desk():
            while (taken := client.take(duty["id"])) is not None:
                is_human = "inimese" in str(taken["item"]) or "إنسان" in str(taken["item"])
                answers: list[Any] = [
                    {"criterion": one["key"], "score": one["points"][-1 if is_human else 1]["value"]}
                    for one in taken["criteria"]
                ]
                client.submit(taken["key"], answers, seconds=5)
    lead.export("ratings", folder / "ratings.csv", format="csv", campaign=campaign)
    scores: dict[bool, list[float]] = defaultdict(list)
    with (folder / "ratings.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["criterion"] == "fluency":
            scores[row["generator"] == "human"].append(float(row["score"]))
    means = [f"{statistics.mean(scores[is_human]):.2f}" for is_human in (False, True)]
    return [plan["assignments"], len(rows), *means]


if __name__ == "__main__":
    if table := on_both_databases(measure, head=HEAD):
        RESULT.write_text(table + "\n", encoding="utf-8")
