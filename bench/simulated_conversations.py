"""The whole of the third study: conversations simulated with planted faults, curated, annotated, and its F1 page.

``python -m bench.simulated_conversations`` writes ``bench/results/simulated_conversations.md``, on PostgreSQL with
Redis and on SQLite with a queue in a folder: web server, worker and clock as an operator runs them, and people who sign
up and use pages and API; nothing of the product is called. A simulated user talks with two chatbots in three
languages under the reply guard and the judge of user turns; the simulated provider plants refusals, role confusion and
language mixing. What was found is held against what was planted, request by request. Then nine issues are judged, 20
conversations per language are curated, two people annotate eight issues and the overall score, and F1 of both labels is
read from API and page. About three minutes each.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

from scipy.stats import binomtest

from bench import server, visitors
from bench.study_families import LONGEST_WAIT_SECONDS, PROVIDER_SEED, StudyOverHttp
from panelbench.provider.conversing import planted_turn_break
from panelbench.supervisor import Warden
from tests.provider_server import running_provider

TALK_RESULTS = Path(__file__).parent / "results" / "simulated_conversations.md"
TALK_LANGUAGES, TALK_FAMILIES, CURATED = ("en", "es", "et"), 15, 20
TALK_CHATBOTS, TALK_USER, TALK_JUDGE = ("sim-steady", "sim-chatty"), "sim-flawed", "sim-harsh"
TALK_BREAKS = {
    "utterance": {"inverted_role": 0.05, "mixed_language": 0.03, "copied_brief": 0.02, "reasoning": 0.02},
    "answer": {"mixed_language": 0.01, "reasoning": 0.03},
    "verdict": {"refused": 0.10, "unread": 0.01},
}
TWO_ANNOTATORS = ("mari", "José «Ñ»")
ISSUES = (
    *("uninterpretable", "unsafe", "lacks_empathy", "lacks_commonsense", "repetitive", "incoherent"),
    *("irrelevant", "nonfactual"),
)
TALK_HEAD = """\
# The third study, from a simulation to its F1 page

One simulated user, two chatbots, three languages, 15 scenes: 90 conversations, of which 60 are curated, 20 a language.
*Planted* are the replies that the provider made break a rule, worked out here again from every stored request; *found*
are those that the guard or the judge of user turns discarded for it. *Rate* is the share of found ones among the
replies of that step, with its 95 % interval (Wilson); *asked for* is the rate that the provider was given. A judge run
about the curated conversations finds the verdicts of the first run, and one about the stored turns those of the
simulation.
"""


def measure_talks(kind: str) -> str:
    """The table of one database."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        if kind == "postgresql":
            stack.enter_context(server.redis_server())
        else:
            os.environ.pop("REDIS_URL", None)
        provider = stack.enter_context(running_provider(latency=0.02))
        provider.control(turn_breaks=TALK_BREAKS)
        declared = {"name": "simulated", "base_url": provider.base_url, "simulated": True}
        os.environ["PANELBENCH_PROVIDERS"] = json.dumps([declared])
        stack.enter_context(server.database(kind))
        log = Path(os.environ["PANELBENCH_DATA_DIR"]) / "programs.log"
        programs = stack.enter_context(server.running(kind, stack.enter_context(Warden(grace=3)), log))
        programs.beat.start()
        lead = visitors.founder(programs.address, "Aino «Ä»", project="Vestlused “S3” – محادثات", slug="bench")
        people = visitors.invited(programs.address, lead, TWO_ANNOTATORS, slug="bench")
        for person in (lead, *people):
            stack.callback(person.close)
        members = {member["email"]: member["user"] for member in lead.client.members()}
        clients, users = [person.client for person in people], [members[person.email] for person in people]
        study = StudyOverHttp(lead.client, lead.browser, clients, users, provider, programs)
        plan = _simulated(study)
        _against_what_was_planted(study, plan)
        _turns_judged_again(study, plan)
        _curated_and_annotated(study, plan)
    study.note("seconds in all", round(time.monotonic() - began))
    rows = [f"| {what} | {value} |" for what, value in study.rows]
    return "\n".join([f"## {kind}", "", "| what | value |", "|---|---|", *rows, ""])


def _simulated(study: StudyOverHttp) -> int:
    """A finished simulation; the worker holds the conversations."""
    client, seeded = study.lead, {"seed": 3}
    judge = client.declare_judge(
        "Kasutaja voorude kohtunik", "simulated", TALK_JUDGE, parameters={"temperature": 0.1, "max_tokens": 400}
    )
    chatbots: list[Any] = [{"provider": "simulated", "model": model, "parameters": seeded} for model in TALK_CHATBOTS]
    plan = client.create_generation_plan(
        "Vestlused “1”",
        "simulated-users",
        TALK_LANGUAGES,
        TALK_FAMILIES,
        chatbots,
        user_models=[{"provider": "simulated", "model": TALK_USER, "parameters": seeded}],
        utterance_judge=judge["id"],
        seed=5,
    )["id"]
    began = time.monotonic()
    client.start_generation(plan)
    client.wait(
        lambda: client.generation_plan(plan)["progress"]["phase"] == "finished" or None,
        timeout=LONGEST_WAIT_SECONDS,
        what="the simulation",
    )
    progress = client.generation_plan(plan)["progress"]
    study.note("conversations written", f"{progress['written']} of {progress['planned']}")
    study.note("seconds until all were written", round(time.monotonic() - began))
    return plan


def _attempts(study: StudyOverHttp, texts: Iterable[Any]) -> list[Any]:
    """Every request of the plan in the order of its reply; those of a first turn once, although chatbots share it."""
    attempts: list[Any] = []
    openings: set[tuple[int, str, str]] = set()
    for text in texts:
        attempts += text["attempts"]
        if (key := (text["family"], text["language"], str(text["simulator"]))) not in openings:
            openings.add(key)
            attempts += text["opening_attempts"]
    return sorted(attempts, key=lambda attempt: attempt["at"])


def _against_what_was_planted(study: StudyOverHttp, plan: int) -> None:
    """Every stored request, held against what the provider planted in its reply."""
    replies: Counter[str] = Counter()
    planted: Counter[tuple[str, str]] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    wrong = 0
    asked_before: Counter[str] = Counter()
    rows = [study.lead.generated_text(plan, text["id"]) for text in study.lead.generated_texts(plan)]
    attempts = [attempt for attempt in _attempts(study, rows) if attempt["outcome"] == "replied"]
    for attempt in attempts:
        parameters = attempt["request"]["parameters"]
        body = {"model": attempt["model"], "messages": attempt["request"]["messages"], **parameters}
        digest = json.dumps(body, sort_keys=True)
        again = asked_before[digest] if "seed" not in parameters else 0
        asked_before[digest] += 1
        step, code = planted_turn_break(body, TALK_BREAKS, PROVIDER_SEED, again)
        codes = [problem["code"] for problem in attempt["problems"]]
        same = {"refused": "refused_by_judge", "unread": "no_verdict"}.get(code, code)
        replies[step] += 1
        planted[step, code] += bool(code)
        found[step, code] += bool(code) and same in codes
        mixed = {"mixed_language": {"mixed_language", "mixed_script"}}.get(code, {same})
        wrong += bool(codes) != bool(code) or (bool(code) and not mixed & {*codes})
    for step, rates in TALK_BREAKS.items():
        for code, rate in rates.items():
            low, high = binomtest(found[step, code], replies[step]).proportion_ci(method="wilson")
            share = found[step, code] / replies[step]
            shown = f"planted {planted[step, code]}, found {found[step, code]} of {replies[step]}"
            study.note(f"{step}: {code}", f"{shown}; rate {share:.3f} [{low:.3f}, {high:.3f}], asked for {rate}")
    study.note("replies whose problem is not the planted one", wrong)
    counts = study.provider.control()
    study.note("requests booked / counted", f"{len(attempts)} / {counts['answered']}")
    aside = Counter(row["problems"][0]["code"] for row in rows if row["ended"] == "set_aside")
    study.note("conversations set aside by the engine", ", ".join(f"{code} {n}" for code, n in aside.items()) or "none")
    study.note("how conversations ended", ", ".join(f"{e} {n}" for e, n in Counter(r["ended"] for r in rows).items()))
    study.note("user turns of a conversation, mean", f"{fmean(len(row['turns']) / 2 for row in rows):.1f}")
    assert all(count == found[key] for key, count in planted.items()), (planted, found)


def _turns_judged_again(study: StudyOverHttp, plan: int) -> None:
    """The judge of user turns, run about the stored turns: every reply is there."""
    client = study.lead
    simulation = client.generation_plan(plan)
    dataset = int(client.store_utterances(plan, "Kasutaja voorud")["dataset"] or 0)
    before = study.provider.control()["requests"]
    run = client.start_run(
        judge=int(simulation["utterance_judge"] or 0),
        dataset=dataset,
        rubric_version=int(simulation["utterance_rubric"] or 0),
    )
    client.wait_for_run(run["id"], timeout=LONGEST_WAIT_SECONDS)
    sent = study.provider.control()["requests"] - before
    stored = sum(1 for _item in client.items(dataset))
    study.note("user turns stored, and requests of a run of their judge", f"{stored}, {sent}")


def _curated_and_annotated(study: StudyOverHttp, plan: int) -> None:
    client = study.lead
    dataset = int(client.store_generated(plan, "Vestlused", only="all")["dataset"] or 0)
    declared = client.declare_as_study("s3", "simulated", "sim-steady")
    version = declared["rubric_version"]
    judged = client.start_run(judge=declared["judge"]["id"], dataset=dataset, rubric_version=version)
    client.wait_for_run(judged["id"], timeout=LONGEST_WAIT_SECONDS)
    # As S3: of uninterpretable ones, those are left out that are so for their language.
    words = ["language"]
    curated = client.curate("20 keele kohta", dataset, CURATED, run=judged["id"], user="simulator", seed=2, words=words)
    languages = Counter(item["language"] for item in client.items(curated["dataset"]))
    study.note("curated", ", ".join(f"{language} {count}" for language, count in sorted(languages.items())))
    assert languages == dict.fromkeys(TALK_LANGUAGES, CURATED), languages
    before = study.provider.control()["requests"]
    again = client.start_run(judge=declared["judge"]["id"], dataset=curated["dataset"], rubric_version=version)
    client.wait_for_run(again["id"], timeout=LONGEST_WAIT_SECONDS)
    sent = study.provider.control()["requests"] - before
    study.note("requests of the judge run about the curated set", sent)
    campaign = int(client.open_campaign("Probleemid", curated["dataset"], version)["id"])
    verdicts = _majority(study, int(again["id"]))
    keys = {_said(item): item["external_id"] for item in client.items(curated["dataset"])}
    ratings = _annotated(study, campaign, verdicts, keys)
    _f1(study, campaign, verdicts, ratings)


def _majority(study: StudyOverHttp, run: int) -> dict[tuple[str, str], float]:
    """The score that most repeats give, by item and criterion."""
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for verdict in study.lead.verdicts(run=run):
        if verdict["score"] is not None:
            scores[verdict["item"], verdict["criterion"]].append(verdict["score"])
    return {key: Counter(given).most_common(1)[0][0] for key, given in scores.items()}


def _said(item: Any) -> str:
    """All that is said in a conversation: annotators see no key of an item."""
    return "\n".join(turn["text"] for turn in item["turns"])


def _annotated(
    study: StudyOverHttp, campaign: int, verdicts: dict[tuple[str, str], float], keys: dict[str, str]
) -> dict[tuple[str, str, int], float]:
    """Eight issues and the overall score of every conversation, by two people on the desk."""
    client = study.lead
    overall = next(key for _item, key in verdicts if key.startswith("overall"))
    ratings: dict[tuple[str, str, int], float] = {}
    for language in TALK_LANGUAGES:
        panel = client.make_panel(f"Paneel {language}", language=language)
        for user in study.people:
            client.seat(panel["id"], user)
        duty = client.add_duty(campaign, panel["id"], len(study.people), criteria=[*ISSUES, overall], seed=1)
        for number, annotator in enumerate(study.annotators):
            rng = random.Random(f"{language}{number}")
            while taken := annotator.take(duty["id"]):
                item = keys[_said(taken["item"])]
                answers: Any = []
                for key in ISSUES:
                    marked = verdicts.get((item, key), rng.random() < 0.2)
                    answers.append({"criterion": key, "score": int(rng.random() < (0.8 if marked else 0.08))})
                answers.append({"criterion": overall, "score": rng.choice((2, 3, 4, 4, 5))})
                annotator.submit(taken["key"], answers, seconds=30)
                for answer in answers:
                    ratings[item, answer["criterion"], number] = answer["score"]
    study.note("annotations on the desk", len({(item, number) for item, _key, number in ratings}))
    return ratings


def _f1(
    study: StudyOverHttp,
    campaign: int,
    verdicts: dict[tuple[str, str], float],
    ratings: dict[tuple[str, str, int], float],
) -> None:
    """F1 of both labels of every issue: from the API, and on the page."""
    answer = study.lead.fresh_estimates(campaign, statistic="beside.f1", columns="variant")
    rows: Any = [row for row in answer["estimates"] if row["value"] is not None and row["criterion"] in ISSUES]
    for key in ISSUES:
        shown = {
            str(row.get("variant")): f"{row['value']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"
            for row in rows
            if row["criterion"] == key and row["low"] is not None
        }
        study.note(f"F1 of {key}", ", ".join(f"label {label}: {line}" for label, line in sorted(shown.items())) or "-")
    base = f"/p/bench/numbers/{campaign}/calibration/f1/?where=criterion%3Drepetitive"
    deadline = time.monotonic() + LONGEST_WAIT_SECONDS
    while "being computed" in (words := study.page(base)) and time.monotonic() < deadline:
        time.sleep(0.5)
    by_language: Any = study.lead.fresh_estimates(campaign, statistic="beside.f1", columns="language")["estimates"]
    numbers = [f"{row['value']:.2f}" for row in by_language if row["criterion"] == "repetitive" and row["value"]]
    there = sum(number in words for number in numbers)
    study.note("F1 by label and language that stand on the page (repetitive)", f"{there} of {len(numbers)}")


if __name__ == "__main__":
    if table := server.on_both_databases(measure_talks, head=TALK_HEAD):
        TALK_RESULTS.write_text(f"{table}\n", encoding="utf-8")
