"""Every figure of four campaigns by page, part of a page, CSV file, API and command: equal before and after a change?

``python -m bench.golden_answers FOLDER`` writes a file for every answer, and ``digests.json``; ``--against OTHER`` then
lists the answers that differ from another folder's, and ends with 1 if there are any.

An instance in a temporary folder (SQLite, tasks run at once) is given the demo and three made campaigns by commands and
the API, so that modules may be renamed and moved. Of a page its words, links, values and `aria` and `id` attributes
count, not its markup. Times, digests and hours of the day are replaced. Questions are those of `QUESTIONS`, and all
statistics that the page Explore offers.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import io
import json
import logging
import os
import random
import re
import sys
import tempfile
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

LEAD = "lead@demo.panelbench.test"
RESAMPLES = 200
QUESTIONS = (
    "rows=generator&columns=criterion&statistic=mae&statistic=bias&statistic=krippendorff_alpha",
    "rows=language&columns=&statistic=fleiss_kappa&statistic=icc&statistic=percent_agreement&statistic=gwet_ac",
    "rows=judge&columns=criterion&statistic=cohen_kappa&statistic=spearman&statistic=accuracy&reference=median",
    "rows=judge&columns=language&statistic=f1&statistic=f1_macro&statistic=precision&reference=each",
    "rows=criterion&columns=judge&statistic=mae&reference=dawid_skene",
    "rows=criterion&columns=judge&statistic=mae&reference=adjudicated_first&ties=upper",
    "rows=criterion&columns=judge&statistic=bias&reference=minimum&cluster=item",
    "rows=criterion&columns=judge&statistic=rmse&reference=mode_split&ties=lower",
    "rows=language&columns=generator&pool=on&statistic=krippendorff_alpha&statistic=class_share&level=nominal",
    "rows=criterion&columns=week&statistic=percent_agreement_exact&statistic=score_share",
    "rows=raters&columns=criterion&statistic=pairs.cohen_kappa&pairs=all",
    "rows=annotator&columns=criterion&statistic=annotators.severity&statistic=left_out.krippendorff_alpha_change",
    "rows=languages&columns=&statistic=stability.kendall_tau_b&statistic=stability.inversions",
    "rows=criterion&columns=language&exclude=single&exclude=speed&statistic=gwet_ac&variant=AC2+linear",
    "rows=variant&columns=criterion&statistic=beside.confusion&statistic=verdict_confidence",
    "rows=criterion&columns=language&measure=text.words&statistic=measures.spearman&statistic=measures.pearson",
    "rows=judge&columns=&goal=half_width%3D0.25&goal=epsilon%3D0.15&statistic=plan.labels_needed",
    "rows=nonsense&columns=language",
    "rows=criterion&columns=language&statistic=no.such",
    "rows=criterion&columns=language&where=language%3Det&statistic=krippendorff_alpha&confidence=0.9&seed=7",
)
CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"\b\d{1,2} [A-Z][a-z]+ 20\d\d(, \d\d:\d\d)?"), "TIME"),
    (re.compile(r"\b[A-Z][a-z]+\.? \d{1,2}, 20\d\d(, [\d:]+ [ap]\.?m\.?)?"), "TIME"),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "DAY"),
    (re.compile(r"\b20\d\d-W\d\d\b"), "WEEK"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,27}\b"), "UUID"),
    (re.compile(r"(?<![.\w-])(?=[0-9a-f]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{12,64}\b"), "DIGEST"),
    (re.compile(r"\b\d\d:\d\d(:\d\d)?\b"), "HOUR"),
    (re.compile(r"\b(a moment|\d+ (second|minute)s?) ago|\bin \d+(\.\d+)? ?s\b|\bnow\b"), "AGO"),
    (re.compile(r'("seconds": )[\d.e-]+'), r"\1SECONDS"),
    (re.compile(r'(csrfmiddlewaretoken"? (value=)?")[^"]+'), r"\1TOKEN"),
)


@dataclass(frozen=True, slots=True)
class AskedCampaign:
    """A campaign to ask: the address of its project, and its number."""

    project: str
    campaign: int


class TextAndLinks(HTMLParser):
    """The words of a page, and of its elements the attributes that say something."""

    SHOWN = frozenset(("href", "src", "id", "value", "name", "for", "title", "datetime", "colspan", "rowspan", "scope"))
    UNSEEN = frozenset(("script", "style", "head", "svg"))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.later: list[str] = []
        self._unseen = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._unseen += tag in self.UNSEEN
        said = dict(attrs)
        if "csrf" in (said.get("name") or ""):
            return
        if (address := said.get("hx-get")) and "every" not in (said.get("hx-trigger") or ""):
            self.later.append(address)
        self.later += [said["href"] or ""] if tag == "a" and said.get("href") else []
        shown = {k: v for k, v in said.items() if k in self.SHOWN or k.startswith("aria-") or k == "hx-get"}
        if shown and not self._unseen:
            self.lines.append("  ".join(f"{name}={value}" for name, value in sorted(shown.items())))

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in self.UNSEEN

    def handle_data(self, text: str) -> None:
        if not self._unseen and text.strip():
            self.lines.append(" ".join(text.split()))


def steady(text: str) -> str:
    """A text without what differs between two equal instances."""
    for pattern, word in CHANGING:
        text = pattern.sub(word, text)
    return text


# --- three made campaigns ---------------------------------------------------------------------------------------------
def made_studies(folder: Path) -> list[AskedCampaign]:
    """Mixed scales in three languages with gaps, N/A and repeats; pairs of candidates; thirty raters."""
    from django.core.management import call_command

    def command(which: str, /, *given: str, **named: Any) -> None:
        call_command(which, *given, **named, stdout=io.StringIO())

    studies = []
    for slug, name, make in (
        ("mixed", "L’étude “N\u00ba 1” دراسة", _mixed),
        ("pairs", "Two of a kind, \u0301e", _pairs),
        ("crowd", "Thirty 'raters'", _crowd),
    ):
        command("create_project", name, lead=LEAD, slug=slug)
        rng = random.Random(slug)
        items, rubric, ratings, verdicts = make(rng)
        (folder / f"{slug}.jsonl").write_text("\n".join(json.dumps(item) for item in items), "utf-8")
        (folder / f"{slug}-rubric.json").write_text(json.dumps(rubric), "utf-8")
        _write_rows(folder / f"{slug}-ratings.csv", ratings)
        _write_rows(folder / f"{slug}-verdicts.csv", verdicts)
        command("import_dataset", str(folder / f"{slug}.jsonl"), project=slug, name=f"Items of {slug}")
        command("import_rubric", str(folder / f"{slug}-rubric.json"), project=slug, publish=True)
        command("import_ratings", str(folder / f"{slug}-ratings.csv"), project=slug, campaign="Round «1»")
        command("import_verdicts", str(folder / f"{slug}-verdicts.csv"), project=slug)
        studies.append(slug)
    client = _client()
    found = []
    for slug in studies:
        listed = client.get(f"/api/v1/projects/{slug}/campaigns/").json()["results"]
        found.append(AskedCampaign(slug, listed[0]["id"]))
    return found


Made = tuple[list[dict[str, Any]], dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]


def _criterion(key: str, level: str, points: Sequence[Any], **more: Any) -> dict[str, Any]:
    scale: dict[str, Any] = {"level": level, "points": list(points)}
    if level == "interval":
        scale = {"level": level, "min": points[0], "max": points[-1]}
    anchors = {} if level != "ordinal" else {str(p): {"en": {"text": f"{key} at {p}"}} for p in points}
    about = {"key": key, "name": {"en": f"{key.title()} (as seen)"}, "scale": scale, "anchors": anchors}
    return about | {"definition": {"en": f"How {key} it is"}} | more


def _rubric(key: str, *criteria: dict[str, Any]) -> dict[str, Any]:
    return {"key": key, "name": {"en": f"Rubric {key}"}, "source_language": "en", "criteria": list(criteria)}


def _item(name: str, language: str, generator: str, scenario: str, **attributes: Any) -> dict[str, Any]:
    turns = [
        {"speaker": "customer", "text": f"Where is parcel {name}? " * (1 + len(name) % 3)},
        {"speaker": "agent", "text": f"I look for it. {scenario} " * (1 + len(scenario) % 4)},
    ]
    about = {"id": name, "language": language, "generator": generator, "scenario": scenario, "turns": turns}
    return about | {"attributes": attributes}


def _mixed(rng: random.Random) -> Made:
    labels = [{"value": 0, "label": {"en": "no"}}, {"value": 1, "label": {"en": "yes"}}]
    topics = [{"value": n, "label": {"en": text}} for n, text in enumerate(("bank", "shop", "rail"))]
    rubric = _rubric(
        "mixed",
        _criterion("fluency", "ordinal", range(4)),
        _criterion("safe", "nominal", labels, direction="higher_is_better"),
        _criterion("topic", "nominal", topics, not_applicable=True),
        _criterion("quality", "interval", (0, 100)),
    )
    items, ratings, verdicts = [], [], []
    for number in range(72):
        language = ("et", "ar", "en")[number % 3]
        scenario = f"s{number // 9}"
        generator = ("atlas", "borea", "Cirrus 2")[number // 3 % 3]
        name = f"{language}-{number}"
        kind = {"task type": ("qa", "sum")[number // 9 % 2], "difficulty": number % 5, "industry": number % 3}
        items.append(_item(name, language, generator, scenario, **kind))
        truth = {"fluency": rng.choice((0, 1, 2, 3, 3)), "safe": int(rng.random() < 0.85), "topic": number % 3}
        truth["quality"] = rng.randint(20, 99)
        for rater in ("mari", "jaan tamm", "noor", "هالة")[: 3 + number % 2]:
            for key, top in (("fluency", 3), ("safe", 1), ("topic", 2), ("quality", 100)):
                if rng.random() < 0.05:
                    continue
                score = truth[key] if rng.random() < 0.7 else rng.randint(0, top)
                is_na = key == "topic" and rng.random() < 0.06
                row = {"item": name, "rater": rater, "criterion": key, "score": "N/A" if is_na else score}
                ratings.append(row | {"seconds": rng.randint(2, 90)})
        for judge, skill in (("Steady, v1", 0.75), ("harsh", 0.5), ("mild", 0.6)):
            for repeat in range(2 if judge != "mild" else 1):
                for key, top in (("fluency", 3), ("safe", 1), ("topic", 2), ("quality", 100)):
                    score = truth[key] if rng.random() < skill else rng.randint(0, top)
                    score = max(score - 1, 0) if judge == "harsh" and key == "fluency" else score
                    verdicts.append({"item": name, "judge": judge, "criterion": key, "score": score, "repeat": repeat})
    return items, rubric, ratings, verdicts


def _pairs(rng: random.Random) -> Made:
    scale = {"level": "interval", "min": 1, "max": 2}
    words = {"en": "1 is the first, 2 the second"}
    preference = _criterion("preference", "interval", (1, 2), direction="none", definition=words)
    rubric = _rubric("pairs", preference | {"scale": scale})
    items, ratings, verdicts = [], [], []
    models = ("atlas-1", "birch-2", "cedar-3")
    for number in range(60):
        first, second = rng.sample(models, 2)
        items.append(
            {
                "id": f"p{number}", "language": ("et", "ja")[number % 2], "scenario": f"s{number // 2}",
                "fields": {"question": f"Where {number}?", "passage_a": "Here it is", "passage_b": "There, perhaps"},
                "attributes": {"model_a": first, "model_b": second},
            }
        )  # fmt: skip
        for rater in ("mari", "jaan", "noor"):
            score = rng.choice((1, 1, 2, 1.5))
            ratings.append({"item": f"p{number}", "rater": rater, "criterion": "preference", "score": score})
        for judge in ("first", "second"):
            score = rng.choice((1, 2, 2, 1.5) if judge == "second" else (1, 1, 2))
            verdicts.append({"item": f"p{number}", "judge": judge, "criterion": "preference", "score": score})
    return items, rubric, ratings, verdicts


def _crowd(rng: random.Random) -> Made:
    rubric = _rubric("crowd", _criterion("grade", "ordinal", range(1, 6)), _criterion("warm", "ordinal", range(3)))
    items, ratings, verdicts = [], [], []
    lenience = {f"r{n:02}": rng.choice((-1, 0, 0, 0, 1)) for n in range(30)}
    for number in range(40):
        generator = f"model {number % 4}"
        items.append(_item(f"c{number}", "ja", generator, f"s{number // 4}", level=f"L{number % 2}"))
        truth = rng.randint(1, 5)
        for rater in rng.sample(sorted(lenience), 9):
            noise = lenience[rater] + rng.choice((-1, 0, 0, 1))
            ratings.append(
                {"item": f"c{number}", "rater": rater, "criterion": "grade", "score": min(max(truth + noise, 1), 5)}
            )
            ratings.append({"item": f"c{number}", "rater": rater, "criterion": "warm", "score": rng.randint(0, 2)})
        for judge, away in (("near", (0, 0, 1)), ("far", (0, 1, -1, 2))):
            score = min(max(truth + rng.choice(away), 1), 5)
            verdicts.append({"item": f"c{number}", "judge": judge, "criterion": "grade", "score": score})
            verdicts.append({"item": f"c{number}", "judge": judge, "criterion": "warm", "score": rng.randint(0, 2)})
    return items, rubric, ratings, verdicts


def _write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


# --- asking -----------------------------------------------------------------------------------------------------------
def _client() -> Any:
    from django.test import Client

    from accounts.models import User

    client = Client(headers={"accept-language": "en"})
    client.force_login(User.objects.get(email=LEAD), backend="allauth.account.auth_backends.AuthenticationBackend")
    return client


class AnswerFolder:
    """The answers by name, written into a folder, one file each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.client = folder, _client()
        self.digests: dict[str, str] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def keep(self, name: str, text: str) -> None:
        text = steady(unicodedata.normalize("NFC", text))
        self.digests[name] = hashlib.sha256(text.encode()).hexdigest()
        file = re.sub(r"[^\w.=-]+", "_", name)
        short = file if len(file) < 120 else f"{file[:100]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
        (self.folder / short).write_text(f"{name}\n{text}", "utf-8")

    def opened(self, address: str) -> tuple[int, str, str]:
        """Status, type and text of an address that computes nothing any more."""
        before: tuple[int, str, str] = (0, "", "")
        for _try in range(5):
            response = self.client.get(address)
            body = b"".join(response.streaming_content) if response.streaming else response.content
            kind = response.headers.get("Content-Type", "")
            text = body.decode("utf-8", "replace") if "zip" not in kind and "octet" not in kind else str(len(body) > 0)
            found = (response.status_code, kind, text)
            if found[0] >= 400 or ("html" not in kind and '"stale": true' not in text and found[0] == 200):
                return found
            if steady(found[2]) == steady(before[2]):
                return found
            before = found
        return before

    def page(self, name: str, address: str) -> list[str]:
        """Keep an address; the addresses that its page refers to."""
        status, kind, text = self.opened(address)
        if "html" in kind:
            parsed = TextAndLinks(text)
            self.keep(name, f"{status}\n" + "\n".join(parsed.lines))
            return [urljoin(address, target) for target in parsed.later]
        if "json" in kind:
            text = json.dumps(json.loads(text or "null"), ensure_ascii=False, indent=1, sort_keys=True)
        self.keep(name, f"{status} {kind}\n{text}")
        return []


def ask_everything(answers: AnswerFolder, study: AskedCampaign, most_pages: int) -> None:
    home = f"/p/{study.project}/numbers/{study.campaign}/"
    waiting = [home, f"/p/{study.project}/numbers/", f"/p/{study.project}/"]
    waiting += [f"{home}{part}/" for part in ("explore", "comparison", "judges", "workflow", "audits", "items", "work")]
    seen: set[str] = set()
    while waiting and len(seen) < most_pages:
        address = waiting.pop(0)
        if address in seen:
            continue
        seen.add(address)
        for found in answers.page(f"page {address}", address):
            parts = urlsplit(found)
            is_numbers = parts.path.startswith(home) and "/adjudication/" not in parts.path
            is_short = len(dict(parse_qsl(parts.query))) <= 2 and "cells." not in parts.path
            if is_numbers and is_short and not parts.netloc:
                waiting.append(parts.path + (f"?{parts.query}" if parts.query else ""))
    api = f"/api/v1/projects/{study.project}/campaigns/{study.campaign}/"
    for part in (
        *("numbers/", "decisions/", "decisions/history/", "comparison/", "items/", "adjudication/", "workflow/"),
        *("ratings.csv", "soft-labels.csv", "soft-labels.jsonl"),
    ):
        answers.page(f"api {api}{part}", f"{api}{part}")
    status, _kind, text = answers.opened(f"{home}explore/")
    offered = sorted(set(re.findall(r'name="statistic"[^>]*value="([^"]+)"', text)))
    offered = offered or sorted(set(re.findall(r'<option value="([a-z_0-9]+(?:\.[a-z_0-9]+)?)"', text)))
    answers.keep(f"statistics of {study.project}", "\n".join([str(status), *offered]))
    every = urlencode([("measure", "text.words"), *(("statistic", name) for name in offered)])
    for query in (*QUESTIONS, f"columns=&{every}", f"rows=judge&columns=criterion&{every}"):
        asked = f"{query}&bootstrap={RESAMPLES}"
        name = query if len(query) < 400 else f"{query[:60]} all"
        answers.page(f"explore {study.project} {name}", f"{home}explore/?{asked}")
        answers.page(f"estimates {study.project} {name}", f"{api}estimates/?{asked}")
        answers.page(f"cells.csv {study.project} {name}", f"{home}explore/cells.csv?{asked}")
        answers.page(f"cells.json {study.project} {name}", f"{home}explore/cells.json?{asked}")
    for query in QUESTIONS[:6]:
        parameters = parse_qsl(f"{query}&bootstrap={RESAMPLES}", keep_blank_values=True)
        options = [part for name, value in parameters for part in (f"--{name.replace('_', '-')}", value)]
        answers.keep(
            f"command {study.project} {query}", _printed("numbers", study.project, "--format", "csv", *options)
        )
    answers.keep(f"gate {study.project}", _printed("gate", study.project))


def _printed(command: str, project: str, *options: str) -> str:
    from django.core.management import CommandError, call_command

    out, err = io.StringIO(), io.StringIO()
    failed = ""
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            call_command(command, "--project", project, *options)
        except (CommandError, SystemExit) as error:  # what the command refuses is an answer, too
            failed = f"{type(error).__name__}: {error}"
    return f"{out.getvalue()}\n{err.getvalue()}\n{failed}"


@contextlib.contextmanager
def instance() -> Iterator[Path]:
    """A fresh instance of this checkout whose tasks run at once, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        for name in ("DATABASE_URL", "REDIS_URL", "PANELBENCH_PROVIDERS"):
            os.environ.pop(name, None)
        os.environ |= {"PANELBENCH_DATA_DIR": folder, "DEBUG": "on", "DJANGO_SETTINGS_MODULE": "panelbench.settings"}
        os.environ["ALLOWED_HOSTS"] = "*"
        import django

        django.setup()
        from django.conf import settings
        from django.core.management import call_command

        from panelbench.celery import app

        settings.ALLOWED_HOSTS = ["*"]
        app.conf.task_always_eager = True
        logging.disable(logging.CRITICAL)
        call_command("migrate", verbosity=0)
        call_command("load_demo", stdout=io.StringIO())
        yield Path(folder)


def differing(ours: Path, other: Path) -> list[str]:
    """The names of answers that are not equal in two folders."""
    mine, theirs = (json.loads((folder / "digests.json").read_text("utf-8")) for folder in (ours, other))
    return sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))


def golden_answers() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--against", type=Path, help="a folder that an earlier run wrote")
    parser.add_argument("--pages", type=int, default=60, help="pages of a campaign at most (default: 60)")
    parser.add_argument("--only", action="append", default=[], metavar="PROJECT", help="demo, mixed, pairs or crowd")
    given = parser.parse_args()
    with instance() as folder:
        demo = _client().get("/api/v1/projects/demo/campaigns/").json()["results"][0]["id"]
        studies = [AskedCampaign("demo", demo), *made_studies(folder)]
        answers = AnswerFolder(given.folder)
        for study in studies:
            if not given.only or study.project in given.only:
                ask_everything(answers, study, given.pages)
    (given.folder / "digests.json").write_text(json.dumps(answers.digests, indent=1, sort_keys=True), "utf-8")
    whole = hashlib.sha256(json.dumps(answers.digests, sort_keys=True).encode()).hexdigest()
    print(f"{len(answers.digests)} answers, digest {whole[:16]}")
    if not given.against:
        return 0
    changed = differing(given.folder, given.against)
    print(f"{len(changed)} differ from {given.against}")
    for name in changed:
        print(f"  {name}")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(golden_answers())
