"""The second study through HTTP: prompts written by three people with reviews, answered by two models and by people,
rated by the rules of a taxonomy.

``python -m bench.collected_prompts`` writes ``bench/results/collected_prompts.md``: on PostgreSQL with Redis and on
SQLite with a queue in a folder, each with a web server and a worker of their own. Nothing of the product is called:
the first account is made by `panelbench create_user`, all else by pages and the API. About two minutes for each.
"""

from __future__ import annotations

import contextlib
import csv
import html
import json
import os
import re
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import visitors
from bench.kill_worker import workers
from bench.server import database, on_both_databases, redis_server, serving
from bench.visitors import SignedUpPerson
from panelbench_client import ApiError, Client
from tests.provider_server import running_provider

RESULT = Path(__file__).parent / "results" / "collected_prompts.md"
HEAD = """\
# Prompts collected by three people, answered by two models and a person, rated by rules

Everything goes through the pages and the API of a running server with a worker; nobody is in the database but by their
sign-up. Three people write prompts for 2 tasks x 2 styles in Estonian and Arabic, two of each kind, one of them on the
page, two by API, and review each other's: every fourth is sent back and revised, one more is rejected and written
again. *Confirmed* are those that were like another one, so that their author was asked first. *Refused* are a copy of
another prompt, a review of one's own, and a second review. The accepted prompts are answered by two simulated models.
The same three people write a human baseline on the page of texts to write, with a draft each; the lead accepts it,
every fifth only after it was sent back once. *Scenarios* have all three answers. Rules of a taxonomy make the duties
of three readers: all answers on one criterion, letters on a second one. *Offered own* are answers that a writer would
have been given to rate, in a duty of the writers; 0 is right.

| database | submitted | versions | confirmed | sent back | rejected | accepted | refused | answers of models \
| human answers | texts sent back | scenarios | assignments | ratings | offered own | mean of models | mean of people \
| seconds |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"""
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
ANSWERS_RUBRIC = {
    "key": "answers",
    "name": {"en": "Answers"},
    "source_language": "en",
    "criteria": [
        {
            "key": key,
            "name": {"en": key.title()},
            "definition": {"en": f"How {word} it is."},
            "scale": {"level": "ordinal", "points": list(values)},
            "anchors": {str(value): {"en": {"text": f"{word}: {value}"}} for value in values},
        }
        for key, word, values in (("fluency", "fluent", range(4)), ("coherence", "coherent", range(2)))
    ],
}
HUMAN_ANSWERS = {
    "et": "Selle vastuse kirjutas inimene, kes istus akna all ja mõtles natuke aega: {words}",
    "ar": "كتب هذا الجواب إنسان جلس قرب النافذة وفكّر قليلًا قبل أن يكتب: {words}",
}
WRITING_PEOPLE, RATING_PEOPLE = ("Maarika «M»", "Layla", "Boris O’Brien"), ("Mari", "Jaan", "سارة")


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
        address = f"http://127.0.0.1:{stack.enter_context(serving())}"
        stack.enter_context(workers(1))
        began = time.monotonic()
        lead = visitors.founder(address, "Aino", project="Käskude “S2” – مطالبات", slug="s2")
        people = visitors.invited(address, lead, [*WRITING_PEOPLE, *RATING_PEOPLE], slug="s2")
        for visitor in (lead, *people):
            stack.callback(visitor.close)
        writers, readers = people[: len(WRITING_PEOPLE)], people[len(WRITING_PEOPLE) :]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        draft = lead.client.draft_rubric(ANSWERS_RUBRIC)
        lead.client.publish_rubric("answers", draft["number"])
        figures = [*_collected(lead.client, writers)]
        dataset, *answered = _answered(lead.client, writers, figures.pop())
        figures += [*answered, *_rated(lead.client, writers, readers, dataset, folder)]
        row = (kind, *figures, f"{time.monotonic() - began:.0f}")
    return "| " + " | ".join(map(str, row)) + " |"


def _collected(lead: Client, writers: list[SignedUpPerson]) -> list[Any]:
    """Submitted prompts, versions, confirmed, sent back, rejected, accepted, refused; then the dataset."""
    kinds: list[Any] = [
        {"task": task, "style": style, "language": language, "wanted": WANTED}
        for language in LANGUAGES
        for task in TASKS
        for style in STYLES
    ]
    made = lead.create_prompt_collection("Prompts", slots=kinds, guidelines={"et": "Kirjuta ise.", "ar": "اكتب بنفسك."})
    collection = made["id"]
    for visitor in writers:
        lead.set_prompt_member(collection, visitor.email, writes=True, reviews=True)
    counts: Counter[str] = Counter()
    number = 0
    for slot in made["progress"]:
        for _copy in range(WANTED):
            turns = [writers[(number + place) % 3] for place in range(3)]
            writer, reviewer, other = turns
            prompt = _submitted(lead, writer, collection, slot, _text(slot, number), counts)
            if number == 0:
                _note(counts, lambda: _by_api(other, collection, counts, _text(slot, 0), slot=slot["id"]))  # noqa: B023
                _note(counts, lambda: writer.client.review_prompt(collection, prompt, 1, "accept"))  # noqa: B023
            if number % 4 == 1:
                reviewer.client.review_prompt(collection, prompt, 1, "send_back", comment="Täpsemalt, palun.")
                _by_api(writer, collection, counts, _text(slot, number, " +"), prompt=prompt)
                other.client.review_prompt(collection, prompt, 2, "accept")
                _note(counts, lambda: reviewer.client.review_prompt(collection, prompt, 2, "reject", comment="Ei"))  # noqa: B023
            elif number == 6:
                reviewer.client.review_prompt(collection, prompt, 1, "reject", comment="On kopeeritud.")
                again = _submitted(lead, other, collection, slot, _text(slot, number, " !"), counts)
                writer.client.review_prompt(collection, again, 1, "accept")
            else:
                reviewer.client.review_prompt(collection, prompt, 1, "accept")
            number += 1
    prompts = list(lead.collected_prompts(collection))
    versions = [version for prompt in prompts for version in prompt["versions"]]
    decided = Counter(version["decision"] for version in versions)
    assert lead.prompt_progress(collection)["left"] == 0, "every kind is full"
    lead.set_prompt_collection_state(collection, "closed")
    dataset = lead.store_prompts(collection, "Prompts")["dataset"]
    figures: list[Any] = [len(prompts), len(versions), counts.pop("confirmed", 0)]
    return [*figures, decided["send_back"], decided["reject"], decided["accept"], ", ".join(sorted(counts)), dataset]


def _submitted(
    lead: Client, writer: SignedUpPerson, collection: int, slot: Any, text: str, counts: Counter[str]
) -> int:
    """The prompt that a person has submitted: the first writer on the page, the others by API."""
    if not writer.name.startswith("Maarika"):
        return _by_api(writer, collection, counts, text, slot=slot["id"])
    page = f"/p/s2/prompts/{collection}/write/{slot['id']}/"
    answer = writer.send(page, text=text)
    if "Submit all the same" in answer.text:
        counts["confirmed"] += 1
        answer = writer.browser.post(page, data=visitors.hidden_fields(answer.text) | {"text": text})
    assert "Submitted. Somebody else reviews it now." in answer.text, visitors.page_words(answer.text)
    own = (one for one in writer.client.collected_prompts(collection) if one["versions"][0]["text"] == text)
    return next(own)["id"]


def _by_api(writer: SignedUpPerson, collection: int, counts: Counter[str], text: str, **about: Any) -> int:
    try:
        return writer.client.submit_prompt(collection, text, **about)["id"]
    except ApiError as error:
        if error.code != "prompt_warnings":
            raise
        sent = writer.client.submit_prompt(collection, text, **about, confirmed=error.more["confirm"])
        counts["confirmed"] += 1
        return sent["id"]


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
    try:
        asked()
    except ApiError as error:
        refused[error.code] += 1
    else:
        raise AssertionError("it was not refused")


def _answered(lead: Client, writers: list[SignedUpPerson], prompts: int) -> tuple[int, int, int, int, int]:
    """The dataset with answers of models and people, how many of each, texts that were sent back, and how many
    scenarios have all three answers."""
    chosen: list[Any] = [{"provider": "simulated", "model": model} for model in MODELS]
    plan = lead.plan_answers(prompts, "Answers", chosen)["id"]
    lead.start_generation(plan)
    lead.wait(
        lambda: lead.generation_plan(plan)["progress"]["phase"] == "finished" or None, timeout=120, what="answers"
    )
    stored = int(lead.store_generated(plan, "Answers")["dataset"] or 0)
    members = {member["email"]: member["user"] for member in lead.members()}
    returned = 0
    for language in LANGUAGES:
        panel = lead.make_panel(f"Writers {language}", language=language)["id"]
        for visitor in writers:
            lead.seat(panel, members[visitor.email])
        duty = lead.open_writing_duty(
            f"Baseline {language}", stored, panel, generator="human", shortest=20, longest=600, seed=1
        )
        returned += _written(lead, writers, duty["id"], language)
        stored = lead.store_writing(duty["id"])["dataset"]
    generators: dict[str, set[str]] = defaultdict(set)
    counts: Counter[str] = Counter()
    for item in lead.items(stored):
        generators[item["scenario"]].add(item["generator"])
        counts[item["generator"]] += 1
    complete = sum(those == {*MODELS, "human"} for those in generators.values())
    return stored, sum(counts[model] for model in MODELS), counts["human"], returned, complete


def _written(lead: Client, writers: list[SignedUpPerson], duty: int, language: str) -> int:
    """Every prompt of the duty answered on its page, in turn, and accepted; how many were sent back before."""
    returned = 0
    for number in range(1_000):
        writer = writers[number % len(writers)]
        page = writer.send(f"/desk/writing/{duty}/", f"/desk/writing/{duty}/")
        if "/desk/writing/at/" not in str(page.url):
            break  # no prompt is left
        address = page.url.path
        assert not any(model in page.text for model in MODELS), "who wrote the other answers is not shown"
        text = HUMAN_ANSWERS[language].format(words=f"{writer.name} {number}")
        entered = visitors.hidden_fields(page.text) | {"text-0": text[:30]}
        draft = writer.browser.post(f"{address}draft/", data=entered, headers={"Accept": "application/json"})
        assert draft.status_code == 200, draft.text
        assert text[:30] in html.unescape(writer.get(address)), "the draft is there"
        _text_sent(writer, address, text)
        waiting = list(lead.human_texts(duty, state="submitted"))[-1]
        if number % 5 == 2:
            lead.decide_writing(duty, waiting["id"], "returned", number=1, comment="Üks lause juurde, palun.")
            returned += 1
            own = re.search(r"/desk/writing/at/[0-9a-f-]+/", writer.get(f"/desk/writing/{duty}/"))
            assert own, "it is on the author's page"
            assert "Üks lause juurde, palun." in writer.get(own[0])
            _text_sent(writer, own[0], f"{text}.")
        number_read = len(next(one for one in lead.human_texts(duty) if one["id"] == waiting["id"])["submissions"])
        lead.decide_writing(duty, waiting["id"], "accepted", number=number_read)
    progress = lead.writing_duty(duty)["progress"]
    assert progress["accepted"] == progress["wanted"], progress
    return returned


def _text_sent(writer: SignedUpPerson, address: str, text: str) -> None:
    """Submit on the page, and confirm if it asks."""
    answer = writer.send(address, f"{address}submit/", **{"text-0": text, "seconds": "90"})
    if "Submit all the same" in answer.text:
        entered = visitors.hidden_fields(answer.text) | {"text-0": text}
        answer = writer.browser.post(f"{address}submit/", data=entered)
    assert "Submitted. Thank you." in answer.text, visitors.page_words(answer.text)


def _rated(
    lead: Client, writers: list[SignedUpPerson], readers: list[SignedUpPerson], dataset: int, folder: Path
) -> list[Any]:
    """Assignments, ratings, own answers that writers were offered, and the mean fluency of models and of people."""
    rubric = next(iter(lead.rubric_versions("answers")))
    campaign = lead.open_campaign("Round 1", dataset, rubric["id"])["id"]
    members = {member["email"]: member["user"] for member in lead.members()}
    panels = {name: lead.make_panel(name)["id"] for name in ("Readers", "Writers too")}
    for visitor in readers:
        lead.seat(panels["Readers"], members[visitor.email])
    for visitor in writers:
        lead.seat(panels["Writers too"], members[visitor.email])
    taxonomy = lead.store_taxonomy(TAXONOMY)["id"]
    plan = lead.add_duties_by_rules(campaign, taxonomy, panels={"Readers": [panels["Readers"]]})
    for reader in readers:
        for duty in reader.client.desk():
            while (taken := reader.client.take(duty["id"])) is not None:
                is_human = any(words.partition(",")[0][:12] in str(taken["item"]) for words in HUMAN_ANSWERS.values())
                answers: list[Any] = [
                    {"criterion": one["key"], "score": one["points"][-1 if is_human else 1]["value"]}
                    for one in taken["criteria"]
                ]
                reader.client.submit(taken["key"], answers, seconds=5)
    lead.export("ratings", folder / "ratings.csv", format="csv", campaign=campaign)
    scores: dict[bool, list[float]] = defaultdict(list)
    with (folder / "ratings.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["criterion"] == "fluency":
            scores[row["generator"] == "human"].append(float(row["score"]))
    means = [f"{statistics.mean(scores[is_human]):.2f}" for is_human in (False, True)]
    second = lead.add_duty(campaign, panels["Writers too"], 2, criteria=["fluency"], seed=1)["id"]
    own = 0
    for writer in writers:
        while (taken := writer.client.take(second)) is not None:
            own += writer.name in str(taken["item"])
            writer.client.submit(taken["key"], [{"criterion": "fluency", "score": 2}], seconds=5)
    return [plan["assignments"], len(rows), own, *means]


if __name__ == "__main__":
    if table := on_both_databases(measure, head=HEAD):
        RESULT.write_text(table + "\n", encoding="utf-8")
