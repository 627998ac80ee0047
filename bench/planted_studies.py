"""What the page Study says of twenty made studies, beside what is planted in them.

``python -m bench.planted_studies [--studies 20] [--seed 1]`` makes each study in an instance of its own kind (SQLite in
a temporary folder, tasks run in this process): two to four languages, two criteria, three generators, 45 scenarios and
three raters in each language, three judges. Planted: a cell in which two raters contradict each other or all rate at
random, a strict judge, a judge that is generous in one language, an order of the generators, and languages in which the
first two are equal. The sentences are read by API, and each claim is compared with what is planted. A claim about
something that is not so counts as wrong, also where chance alone made it.

It ends with 1 if any claim is wrong, or if what is planted is missed in a study.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.golden_answers import LEAD, _client, _criterion, _item, _rubric, _write_rows, instance

NAMES = {"et": "Estonian", "ar": "Arabic", "ja": "Japanese", "es": "Spanish"}
CRITERIA = {"fluency": "Fluency (as seen)", "tone": "Tone (as seen)"}
GENERATORS = ("atlas", "borea", "cirrus")
SCENARIOS, TOP = 45, 4
STRICT, GENEROUS, FAIR = "Strict, v1", "Uneven", "Fair"


@dataclass
class PlantedStudy:
    """What is so in one made study."""

    languages: list[str]
    poor: tuple[str, str] | None
    is_contradiction: bool
    generous_in: str
    order: list[str]
    tied_in: list[str]
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)


def planted_study(rng: random.Random) -> PlantedStudy:
    tags = rng.sample(sorted(NAMES), rng.randint(2, 4))
    poor = (rng.choice(sorted(CRITERIA)), rng.choice(tags)) if rng.random() < 0.7 else None
    tied = rng.sample(tags, rng.randint(0, len(tags) - 1)) if rng.random() < 0.5 else []
    return PlantedStudy(tags, poor, rng.random() < 0.5, rng.choice(tags), rng.sample(GENERATORS, 3), tied)


def _near(value: float, spread: float, rng: random.Random) -> int:
    return min(TOP, max(0, round(value + rng.gauss(0, spread))))


def rows_of(planted: PlantedStudy, rng: random.Random) -> tuple[list[Any], dict[str, Any], list[Any], list[Any]]:
    """Items, rubric, ratings and verdicts of a planted study."""
    rubric = _rubric(
        "planted", *(_criterion(key, "ordinal", range(TOP + 1), direction="higher_is_better") for key in CRITERIA)
    )
    items, ratings, verdicts = [], [], []
    for tag in planted.languages:
        for number in range(SCENARIOS):
            for generator in GENERATORS:
                name = f"{tag}-{number}-{GENERATORS.index(generator) + 1}"
                items.append(_item(name, tag, generator, f"s{number}"))
                place = planted.order.index(generator)
                mean = 2.9 - 0.9 * (0 if place == 1 and tag in planted.tied_in else place)
                for key in CRITERIA:
                    truth = mean + rng.gauss(0, 0.8)
                    for rater in range(1, 4):
                        score = _near(truth, 0.35, rng)
                        if (key, tag) == planted.poor and not planted.is_contradiction:
                            score = rng.randint(0, TOP)
                        elif (key, tag) == planted.poor and rater == 1:
                            score = TOP - score
                        ratings.append({"item": name, "rater": f"{tag} «{rater}»", "criterion": key, "score": score})
                    biases = {STRICT: -1.0, GENEROUS: 1.0 if tag == planted.generous_in else 0.0, FAIR: 0.0}
                    for judge, bias in biases.items():
                        score = _near(truth + bias, 0.35, rng)
                        verdicts.append({"item": name, "judge": judge, "criterion": key, "score": score})
    return items, rubric, ratings, verdicts


def store_planted(slug: str, folder: Path, planted: PlantedStudy, rng: random.Random) -> int:
    """Import a study by commands and declare thresholds; the key of its campaign."""
    from django.core.management import call_command

    from accounts.models import Project
    from analytics.judges import thresholds

    def command(which: str, /, *given: str, **named: Any) -> None:
        call_command(which, *given, **named, stdout=io.StringIO())

    items, rubric, ratings, verdicts = rows_of(planted, rng)
    command("create_project", f"Planted “{slug}” دراسة", lead=LEAD, slug=slug)
    (folder / f"{slug}.jsonl").write_text("\n".join(json.dumps(item) for item in items), "utf-8")
    (folder / f"{slug}.json").write_text(json.dumps(rubric), "utf-8")
    _write_rows(folder / f"{slug}-ratings.csv", ratings)
    _write_rows(folder / f"{slug}-verdicts.csv", verdicts)
    command("import_dataset", str(folder / f"{slug}.jsonl"), project=slug, name="Items")
    command("import_rubric", str(folder / f"{slug}.json"), project=slug, publish=True)
    command("import_ratings", str(folder / f"{slug}-ratings.csv"), project=slug, campaign="Round «1»")
    command("import_verdicts", str(folder / f"{slug}-verdicts.csv"), project=slug)
    thresholds.declare_thresholds(project=Project.objects.get(slug=slug), preset="skilled", actor=None)
    return int(_client().get(f"/api/v1/projects/{slug}/campaigns/").json()["results"][0]["id"])


def findings_of(slug: str, campaign: int, judge: str) -> dict[str, list[str]]:
    """The sentences by topic, when everything is computed."""
    client = _client()
    for _try in range(12):
        found = client.get(f"/api/v1/projects/{slug}/campaigns/{campaign}/study/", {"judge": judge}).json()
        if found["is_computed"]:
            break
    assert found["is_computed"], found
    return {each["topic"]: each["sentences"] for each in found["findings"]}


def compare_claims(planted: PlantedStudy, said: Mapping[str, list[str]]) -> None:
    """Note every claim that is not so, and what is planted and not said."""
    _compare_people(planted, said["people"])
    _compare_judges(planted, said["judges"])
    _compare_generators(planted, said["generators"])


def _compare_people(planted: PlantedStudy, sentences: list[str]) -> None:
    text = " ".join(sentences)
    n_cells = len(planted.languages) * len(CRITERIA)
    agreeing = re.search(r"in (\d+) of \d+ cells", text)
    most = n_cells - (planted.poor is not None)
    if agreeing and int(agreeing[1]) > most:
        planted.wrong.append(f"people: {text}")
    poor = f"{CRITERIA[planted.poor[0]]} in {NAMES[planted.poor[1]]}" if planted.poor else "-"
    for one in sentences:
        if "hardly more" in one and one != f"They agree hardly more than by chance on {poor}.":
            planted.wrong.append(f"people: {one}")
        if "contradict" in one:
            names = set(re.findall(r"\w\w «\d»", one))
            right = planted.is_contradiction and planted.poor and f"{planted.poor[1]} «1»" in names
            if not right:
                planted.wrong.append(f"people: {one}")
    if planted.poor and poor not in text:
        planted.missed.append(f"people: {poor} is not named: {text}")
    if planted.poor and planted.is_contradiction and "contradict" not in text:
        planted.missed.append(f"people: no contradiction: {text}")


def _compare_judges(planted: PlantedStudy, sentences: list[str]) -> None:
    judge, found = "", set()
    for one in sentences:
        judge = next((name for name in (STRICT, GENEROUS, FAIR) if one.startswith(name)), judge)
        if "than the panel’s mean" not in one:
            continue
        too_much = "gives more" in one
        cells = one.split(" on ", 1)[1]
        if planted.poor and CRITERIA[planted.poor[0]] in cells and NAMES[planted.poor[1]] in cells:
            named_poor = f"{CRITERIA[planted.poor[0]]} in {NAMES[planted.poor[1]]}" in cells
            if named_poor:
                planted.wrong.append(f"judges: {judge}: {one} (compared with people who do not agree)")
        tags = {tag for tag, name in NAMES.items() if name in cells}
        found.add((judge, too_much))
        right = (judge, too_much) == (STRICT, False)
        right = right or ((judge, too_much) == (GENEROUS, True) and tags == {planted.generous_in})
        if not right:
            planted.wrong.append(f"judges: {judge}: {one}")
    for expected in ((STRICT, False), (GENEROUS, True)):
        # With a cell of chance, bias against people who rate at random is no planted value.
        if expected not in found:
            planted.missed.append(f"judges: {expected} is not said: {sentences}")


def _compare_generators(planted: PlantedStudy, sentences: list[str]) -> None:
    text = " ".join(sentences)
    first = planted.order[0]
    for one in sentences:
        if "certainly first" not in one:
            continue
        if f" {first} is certainly first" not in one or ("every language" in one and planted.tied_in):
            planted.wrong.append(f"generators: {one}")
        for tag in planted.tied_in:
            if NAMES[tag] in one:
                planted.wrong.append(f"generators: {one} (tied in {NAMES[tag]})")
    for tag in planted.tied_in:
        if not re.search(rf"In {NAMES[tag]}[^.]*not decided|not decided which generator", text):
            planted.missed.append(f"generators: {NAMES[tag]} is not said to be undecided: {text}")
    if len(planted.tied_in) < len(planted.languages) and "certainly first" not in text:
        planted.missed.append(f"generators: {text}")


def planted_studies() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--say", action="store_true", help="print every sentence")
    options = parser.parse_args()
    started, right, claims = time.monotonic(), 0, 0
    with instance() as folder:
        for number in range(1, options.studies + 1):
            rng = random.Random(f"{options.seed}-{number}")
            planted = planted_study(rng)
            slug = f"planted-{number}"
            said = findings_of(slug, store_planted(slug, folder, planted, rng), FAIR)
            compare_claims(planted, said)
            claims += sum(map(len, said.values()))
            right += not planted.wrong and not planted.missed
            about = f"poor {planted.poor}, contradiction {planted.is_contradiction}, generous in {planted.generous_in}"
            print(f"{number}: {about}, order {planted.order}, tied in {planted.tied_in}", flush=True)
            for one in [*planted.wrong, *(f"missed: {text}" for text in planted.missed)]:
                print(f"   {one}", flush=True)
            if options.say:
                print("\n".join(f"   {topic}: {' '.join(texts)}" for topic, texts in said.items()), flush=True)
    print(f"{right} of {options.studies} studies right, {claims} sentences, {time.monotonic() - started:.0f} s")
    return int(right < options.studies)


if __name__ == "__main__":
    sys.exit(planted_studies())
