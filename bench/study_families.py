"""The whole of the first study over HTTP: dialogues made, stored, judged, rated, and its pages filled; no file touched.

``python -m bench.study_families`` writes ``bench/results/study_families.md``, on PostgreSQL with Redis and on SQLite
with a queue in a folder: web server, worker and clock as an operator runs them, and a lead and three annotators who use
the API and the pages. 4 languages x 50 families x 3 generators by the simulated provider, which breaks rules at planted
rates; two SIGKILLs, a storm of 429, an exhausted budget. Then criteria and labels are judged, 100 Estonian dialogues
are rated by three people, and every figure is read back from API and page. About nine minutes on two busy cores.
"""

from __future__ import annotations

import contextlib
import html
import json
import os
import random
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx
from scipy.stats import kendalltau

from bench import server
from bench.generated_families import BREAKS, LANGUAGES, MODELS, PRICES, STORM
from panelbench.provider.writing import planted_break
from panelbench.supervisor import Warden
from panelbench_client import Client
from tests.provider_server import RunningProvider, running_provider

RESULTS = Path(__file__).parent / "results" / "study_families.md"
STUDY_FAMILIES = int(os.environ.get("STUDY_FAMILIES", "50"))
PLANNED_TEXTS = STUDY_FAMILIES * len(LANGUAGES) * len(MODELS)
RATED = min(100, STUDY_FAMILIES * len(MODELS))
NATIVE_RATERS = ("mari", "jaan", "noor")
RATED_CRITERIA = ("grammar", "readability", "coherence", "fluency")
SMALL_BUDGET, LARGE_BUDGET = "0.02", "200"
LONGEST_WAIT_SECONDS = 240.0
PROVIDER_SEED = 7  # as panelbench.provider has it
WRITTEN_FIGURE = re.compile(r"−?[01]\.[0-9]{2}")
HEAD = """\
# The first study over HTTP, from a plan to its workflow page

4 languages x 50 families x 3 generators. Web server, worker and clock run as an operator has them; the worker is killed
twice with SIGKILL. *Booked* are the requests that our attempts say were sent, *counted* those that the provider saw.
*Planted* are the replies that break a rule, of all the requests that the provider answered; *found* are the discarded
ones, each held against what was planted for its very request; the difference are replies that were lost with a worker.
*Twice* are texts with more than one reply that keeps the rules. Figures are read from the API, worked out again here
from the verdicts, and looked for on the pages.
"""


@dataclass(slots=True)
class StudyOverHttp:
    """The lead's client and browser, and what was found so far."""

    lead: Client
    browser: httpx.Client
    annotators: list[Client]
    people: list[int]
    provider: RunningProvider
    programs: server.Stack
    rows: list[tuple[str, str]] = field(default_factory=list)

    def note(self, what: str, value: object) -> None:
        self.rows.append((what, str(value)))
        print(f"{what}: {value}", file=sys.stderr)

    def page(self, path: str) -> str:
        """The visible words of a page."""
        response = self.browser.get(path)
        assert response.status_code == 200, (path, response.status_code)
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", response.text)).split())


def measure(kind: str) -> str:
    """The table of one database."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        if kind == "postgresql":
            stack.enter_context(server.redis_server())
        else:
            os.environ.pop("REDIS_URL", None)
        provider = stack.enter_context(running_provider(latency=0.1))
        provider.control(written_breaks=BREAKS)
        declared = {"name": "simulated", "base_url": provider.base_url, "simulated": True, "prices": PRICES}
        os.environ["PANELBENCH_PROVIDERS"] = json.dumps([declared])
        stack.enter_context(server.database(kind))
        log = Path(os.environ["PANELBENCH_DATA_DIR"]) / "programs.log"
        programs = stack.enter_context(server.running(kind, stack.enter_context(Warden(grace=3)), log))
        programs.beat.start()
        study = _study(provider, programs)
        stack.enter_context(study.browser)
        dataset = _written(study)
        _checked(study, dataset)
        _judged(study, dataset)
    study.note("seconds in all", round(time.monotonic() - began))
    lines = [
        f"## {kind}",
        "",
        "| what | value |",
        "|---|---|",
        *(f"| {what} | {value} |" for what, value in study.rows),
    ]
    return "\n".join([*lines, ""])


def _study(provider: RunningProvider, programs: server.Stack) -> StudyOverHttp:
    """The people of the project; everything after that goes over HTTP."""
    from accounts import people, tokens
    from accounts.models import Membership, Role, Scope, User
    from bench import scene

    lead = User.objects.create_user("lead@panelbench.test", name="Aino «Ä»", ui_language="en", languages=["en"])
    project = people.create_project(name="Uuring “S0” – دراسة", slug="bench", founder=lead)
    chosen = [(lead, Scope.WRITE)]
    for name in NATIVE_RATERS:
        user = User.objects.create_user(f"{name}@panelbench.test", name=name, ui_language="en", languages=["et"])
        Membership.objects.create(project=project, user=user, role=Role.ANNOTATOR)
        chosen.append((user, Scope.WRITE))
    secrets = [tokens.issue(user=user, name="bench", scope=scope, project=project)[1] for user, scope in chosen]
    clients = [Client(programs.address, secret, "bench") for secret in secrets]
    cookies = {"sessionid": scene.session_key(lead)}
    browser = httpx.Client(base_url=programs.address, cookies=cookies, headers={"Accept-Language": "en"}, timeout=60)
    keys = [user.pk for user, _scope in chosen[1:]]
    return StudyOverHttp(clients[0], browser, clients[1:], keys, provider, programs)


def _until(is_there: Callable[[], Any], what: str) -> Any:
    """Ask until the answer is something."""
    deadline = time.monotonic() + LONGEST_WAIT_SECONDS
    while not (found := is_there()):
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.2)
    return found


# --- texts ------------------------------------------------------------------------------------------------------------


def _written(study: StudyOverHttp) -> int:
    """The dataset of a plan that was killed twice, limited, and paused for money."""
    client = study.lead
    made = client.create_generation_plan(
        "Klienditugi “S0” – خدمة",
        "support-dialogues",
        LANGUAGES,
        STUDY_FAMILIES,
        [{"provider": "simulated", "model": model, "parameters": {"max_tokens": 2_000}} for model in MODELS],
        seed=1,
        budget=SMALL_BUDGET,
    )
    plan = made["id"]

    def progress() -> Any:
        return client.generation_plan(plan)["progress"]

    began = time.monotonic()
    client.start_generation(plan)
    _until(lambda: progress()["phase"] == "paused" and not progress()["in_flight"], "the budget to be exhausted")
    study.note("paused, because", client.generation_plan(plan)["reason"])
    study.note(f"spent of the first budget of {SMALL_BUDGET}", progress()["cost"])
    client.set_generation_budget(plan, LARGE_BUDGET)
    client.resume_generation(plan)
    _until(lambda: progress()["written"] > PLANNED_TEXTS * 0.3, "a third of the texts")
    _kill(study)
    _until(lambda: progress()["written"] > PLANNED_TEXTS * 0.5, "half of the texts")
    study.provider.control(next=["rate_limit"] * STORM)
    _until(lambda: progress()["written"] > PLANNED_TEXTS * 0.7, "most texts")
    _kill(study)
    _until(lambda: progress()["phase"] == "finished", "the end of the plan")
    study.note("seconds until all was written", round(time.monotonic() - began))
    _held_against_the_provider(study, plan)
    page = study.page(f"/p/bench/generation/{plan}/")
    assert f"{STUDY_FAMILIES} of {STUDY_FAMILIES}" in page, page[:3_000]
    dataset = int(client.store_generated(plan, "Dialoogid “S0”", only="whole")["dataset"])
    study.note("items of the dataset", sum(1 for _item in client.items(dataset)))
    return dataset


def _kill(study: StudyOverHttp) -> None:
    """SIGKILL to the worker with everything below it, and a new one."""
    study.programs.worker.kill()
    study.programs.worker.start()


def _held_against_the_provider(study: StudyOverHttp, plan: int) -> None:
    counts, shown = study.provider.control(), study.lead.generation_plan(plan)["progress"]
    outcomes: Counter[str] = Counter()
    twice = wrong = lost_breaks = 0
    for text in list(study.lead.generated_texts(plan)):
        kept = 0
        for attempt in study.lead.generated_text(plan, text["id"])["attempts"]:
            outcomes[attempt["outcome"]] += 1
            body = {"model": text["generator"], **attempt["request"]}
            planted = planted_break(body, BREAKS, PROVIDER_SEED)
            found = [problem["code"] for problem in attempt["problems"]]
            if attempt["outcome"] == "replied":
                kept += not found
                wrong += planted not in found if planted else bool(found)
            lost_breaks += attempt["outcome"] == "lost" and bool(planted)
        twice += kept > 1
    planted_replies = sum(counts["written_breaks"].values())
    study.note("texts written", f"{shown['written']} of {shown['planned']}")
    study.note("families whole", f"{shown['whole']} of {STUDY_FAMILIES}")
    study.note("requests booked / counted", f"{shown['attempts']} / {counts['requests']}")
    study.note("attempts", ", ".join(f"{name} {count}" for name, count in sorted(outcomes.items())))
    study.note("breaks planted / found / lost", f"{planted_replies} / {shown['discarded']} / {lost_breaks}")
    study.note("replies whose problem is not the planted one", wrong)
    study.note("texts paid twice", twice)
    study.note("cost", shown["cost"])
    assert shown["written"] == shown["planned"] == PLANNED_TEXTS and shown["whole"] == STUDY_FAMILIES
    assert shown["attempts"] == sum(outcomes.values()) == counts["requests"]
    assert twice == wrong == 0
    assert planted_replies == shown["discarded"] + lost_breaks


def _checked(study: StudyOverHttp, dataset: int) -> None:
    """The check-up that a worker makes of every dataset."""
    study.lead.check_dataset(dataset)
    checkup = _until(
        lambda: (found := study.lead.dataset_checkup(dataset)) and found["checked_at"] and found, "the check-up"
    )
    found = {finding["check"]: finding["items"] for finding in checkup["findings"] if finding["items"]}
    study.note("check-up", ", ".join(f"{name} {count}" for name, count in sorted(found.items())) or "nothing")


# --- figures ----------------------------------------------------------------------------------------------------------


def _judged(study: StudyOverHttp, dataset: int) -> None:
    client = study.lead
    chosen = [client.declare_as_study(key, "simulated", "sim-steady") for key in ("s0", "s0_labels")]
    runs = [
        client.start_run(judge=one["judge"]["id"], dataset=dataset, rubric_version=one["rubric_version"])
        for one in chosen
    ]
    for run in runs:
        ended = client.wait_for_run(run["id"], timeout=LONGEST_WAIT_SECONDS)["progress"]
        study.note(f"verdicts of run {run['id']}", ended["verdicts"])
    campaigns = [
        int(client.open_campaign(name, dataset, one["rubric_version"])["id"])
        for name, one in zip(("Kriteeriumid", "Märgendid"), chosen, strict=True)
    ]
    items = {item["external_id"]: item for item in client.items(dataset)}
    _rated(study, campaigns[0])
    client.json("POST", client.at("thresholds/"), json={"preset": "skilled", "fewest_items": min(100, RATED)})
    judge = chosen[0]["judge"]["name"]
    _stability(study, campaigns[0], items, int(runs[0]["id"]))
    _recovery(study, campaigns[1], items, int(runs[1]["id"]))
    _workflow(study, campaigns[0], judge)


def _rated(study: StudyOverHttp, campaign: int) -> None:
    """Estonian dialogues rated by three people on the desk, as they look to somebody who reads for mistakes."""
    from panelbench.provider.answers import text_quality

    client = study.lead
    rule = {"kind": "draw", "n": RATED, "filter": {"language": ["et"]}}
    selection = client.select_items(campaign, "Saja vestluse valim", rule, seed=3)
    panel = client.make_panel("Emakeelsed", language="et")
    for user in study.people:
        client.seat(panel["id"], user)
    criteria = ["coherence", "fluency"]
    duty = client.add_duty(campaign, panel["id"], 3, criteria=criteria, selection=selection["id"], seed=1)
    submitted = 0
    for number, annotator in enumerate(study.annotators):
        rng = random.Random(number)
        while taken := annotator.take(duty["id"]):
            quality = text_quality("\n".join(turn["text"] for turn in taken["item"]["turns"]))
            scores = [min(3, max(0, round(4 * quality - 0.4 + rng.gauss(0, 0.35)))) for _criterion in criteria]
            answers: Any = [{"criterion": key, "score": score} for key, score in zip(criteria, scores, strict=True)]
            annotator.submit(taken["key"], answers, seconds=20)
            submitted += 1
    study.note("dialogues rated by three people on the desk", f"{submitted} annotations")
    assert submitted == RATED * len(NATIVE_RATERS)


def _verdicts(study: StudyOverHttp, run: int) -> list[Any]:
    return [verdict for verdict in study.lead.verdicts(run=run) if verdict["score"] is not None]


def _stability(study: StudyOverHttp, campaign: int, items: Mapping[str, Any], run: int) -> None:
    """τ-b between languages: of the API, of the verdicts, and on the page."""
    scores: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for verdict in _verdicts(study, run):
        item = items[verdict["item"]]
        scores[verdict["criterion"], item["language"], item["generator"]].append(verdict["score"])
    answer = study.lead.fresh_estimates(campaign, columns="languages", statistic="stability.kendall_tau_b")
    rows: Any = [row for row in answer["estimates"] if row["judge"]]
    assert len(rows) == len(RATED_CRITERIA) * 6, len(rows)
    for row in rows:
        first, second = row["languages"]
        means = [[fmean(scores[row["criterion"], language, model]) for model in MODELS] for language in (first, second)]
        own = kendalltau(*means).statistic
        assert own != own or abs(own - row["value"]) < 1e-9, (row, means)
    by_criterion = {
        key: ", ".join(
            f"{'–'.join(row['languages'])} {row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
            for row in rows
            if row["criterion"] == key and row["value"] is not None
        )
        for key in RATED_CRITERIA
    }
    for key, line in by_criterion.items():
        study.note(f"τ-b of the judge, {key}", line or "undefined")
    base = f"/p/bench/numbers/{campaign}/results/"
    _until(lambda: "being computed" not in study.page(base), "the page of rankings")
    first_page = study.page(base)
    assert all(model in first_page for model in MODELS), first_page[:2_000]
    filled = []
    for part in ("rankings", "judge", "surface", "parallel", "pivot"):
        words = _until(partial(_computed_page, study, f"{base}{part}/"), f"the section {part}")
        filled.append(f"{part} {len(WRITTEN_FIGURE.findall(words))}")
    study.note("numbers on the sections of the stability page", ", ".join(filled))
    words = _until(partial(_computed_page, study, f"{base}rankings/?where=criterion%3Dfluency"), "the rankings")
    fluency = [row for row in rows if row["criterion"] == "fluency" and row["value"] is not None]
    assert all(_written_as(row["value"]) in words for row in fluency), words[:3_000]


def _computed_page(study: StudyOverHttp, path: str) -> str:
    """The words of a page, if a worker has computed all that is on it."""
    words = study.page(path)
    return "" if "being computed" in words else words


def _written_as(value: float) -> str:
    """A figure as pages write it."""
    return f"{value:.2f}".replace("-", "−")


def _recovery(study: StudyOverHttp, campaign: int, items: Mapping[str, Any], run: int) -> None:
    """Label recovery: of the API, and of the verdicts held against what was drawn."""
    from judging.study_presets import STUDY_PRESETS

    labels = {
        criterion["key"]: {point["value"]: point["label"]["en"] for point in criterion["scale"]["points"]}
        for criterion in STUDY_PRESETS["s0_labels"].rubric["criteria"]
    }
    right: dict[str, list[bool]] = defaultdict(list)
    for verdict in _verdicts(study, run):
        key = verdict["criterion"]
        right[key].append(labels[key][int(verdict["score"])] == items[verdict["item"]]["attributes"][key])
    answer = study.lead.fresh_estimates(campaign, rows="variant", columns="", statistic="recovery.label_recovery")
    shares = {row["variant"]: row["value"] for row in answer["estimates"]}
    for key, hits in right.items():
        assert abs((shares[key] or 0) - fmean(hits)) < 1e-9, (key, shares, fmean(hits))
        study.note(f"label recovery, {key}", f"{shares[key]:.3f} of {len(hits)}")
    page = study.page(
        f"/p/bench/numbers/{campaign}/explore/?rows=variant&columns=language&statistic=recovery.label_recovery"
    )
    assert "industry" in page.lower(), page[:2_000]


def _workflow(study: StudyOverHttp, campaign: int, judge: str) -> None:
    """The four steps, by API and on the page."""
    client = study.lead

    def settled() -> Any:
        found = client.workflow(campaign, judge=judge, language="et")
        return found if not found["stale"] else None

    found = _until(settled, "the workflow")
    for step in found["steps"]:
        states: Counter[str] = Counter(figure["state"] for figure in step["figures"])
        shown = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        study.note(f"workflow, {step['name']}", f"{step['state']} ({shown or 'no figures'}): {step['sentence']}")
    page = study.page(f"/p/bench/numbers/{campaign}/workflow/?judge={judge}&language=et")
    assert all(step["sentence"] in page for step in found["steps"]), page[:3_000]
    assert all(step["figures"] for step in found["steps"]), found
    values = [
        figure["value"]
        for step in found["steps"]
        for figure in step["figures"][:1]
        if figure["value"] is not None and step["name"] == "panel"
    ]
    assert all(_written_as(value) in page for value in values), (values, page[:3_000])


if __name__ == "__main__":
    if table := server.on_both_databases(measure, head=HEAD):
        RESULTS.write_text(table + "\n", encoding="utf-8")
