"""Time and memory of one large import each of dialogues, ratings and verdicts: ``python -m bench.import_large``.

Each is looked at and then stored, as a worker does it, in a process of its own on PostgreSQL; memory is that process's
highest. Ratings and verdicts are about the dialogues of a file of the same size."""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import orjson

from bench import server

# --- the files --------------------------------------------------------------------------------------------------------


PHRASES = {
    "et": ("Tere! Minu pakk on kadunud.", "Vaatan kohe järele, kus see on.", "Aitäh, ootan siis õhtuni."),
    "ru": ("Здравствуйте! Где моя посылка?", "Проверю и сразу отвечу.", "Спасибо, подожду до вечера."),
    "ar": ("مرحبًا، لم تصل الطردة بعد.", "ســـأتحقق من الأمر الآن.", "شكرًا، سأنتظر حتى المساء."),
    "he": ("שלום, החבילה שלי לא הגיעה.", "אבדוק מיד \u200f(מספר 12)\u200e ואחזור.", "תודה, אחכה עד הערב."),
    "fa": ("سلام، بستهٔ من نرسیده است.", "همین حالا می‌بینم کجاست.", "ممنون، تا شب صبر می‌کنم."),
    "hi": ("नमस्ते, मेरा पार्सल खो गया है।", "मैं अभी देखता हूँ कि वह कहाँ है।", "धन्यवाद, मैं शाम तक रुकूँगा।"),
    "th": ("สวัสดีค่ะ พัสดุของฉันหายไป", "ขอตรวจสอบสักครู่นะครับ", "ขอบคุณค่ะ จะรอถึงเย็น"),
    "ja": ("こんにちは、荷物が届きません。", "すぐにお調べします。", "ありがとう、夕方まで待ちます。"),
    "zh": ("你好，我的包裹没有到。", "我马上查一下它在哪里。", "谢谢，我等到晚上。"),
    "ko": ("안녕하세요, 소포가 안 왔어요.", "바로 확인해 보겠습니다.", "감사합니다, 저녁까지 기다릴게요."),
    "vi": ("Xin chào, gói hàng của tôi bị mất.", "Tôi sẽ kiểm tra ngay.", "Cảm ơn, tôi sẽ đợi đến tối."),
    "en": ("Hello, my parcel is lost 📦.", "Let me look right away 👩🏽‍💻.", "Thanks, I shall wait until tonight."),
}
SPEAKERS = ("customer", "agent")
RATERS = ("rater 1", "rater 2")
CRITERIA = {"fluency": 4, "coherence": 2}  # how many points
BLANK = 97  # every so manyth rating has no score


def write_dialogues_file(path: Path, size: int) -> int:
    """A JSONL file of about ``size`` bytes; how many dialogues there are."""
    return _written(path, size, _dialogues(random.Random(1)))


def _dialogues(chance: random.Random) -> Iterator[bytes]:
    languages = list(PHRASES)
    number = 0
    while True:
        number += 1
        language = languages[number % len(languages)]
        turns = [
            {"speaker": SPEAKERS[turn % 2], "text": _text(language, chance, number)}
            for turn in range(chance.randint(4, 12))
        ]
        row = {"id": f"d{number}", "language": language, "model": f"model {number % 3}", "turns": turns}
        yield orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def _text(language: str, chance: random.Random, number: int) -> str:
    return " ".join(chance.choices(PHRASES[language], k=chance.randint(1, 9))) + f" #{number}"


def write_ratings_file(path: Path, size: int, items: int) -> tuple[int, int]:
    """A CSV file of at most about ``size`` bytes: a reason with each, every 97th blank; how many rows and scores."""
    rows = _written(path, size, _ratings(items, random.Random(2)), b"item,rater,criterion,score,rationale\r\n")
    return rows, rows - rows // BLANK


def _ratings(items: int, chance: random.Random) -> Iterator[bytes]:
    # `product` alone would first make a list of all items, of which there may be any number.
    asked = ((number, *rest) for number in range(1, items + 1) for rest in product(RATERS, CRITERIA.items()))
    for place, (number, rater, (criterion, points)) in enumerate(asked, start=1):
        score = chance.randrange(points) if place % BLANK else ""
        why = _text(chance.choice(list(PHRASES)), chance, number)
        yield f'd{number},{rater},{criterion},{score},"{why}"\r\n'.encode()


def write_verdicts_file(path: Path, size: int, items: int) -> int:
    """A JSONL file of at most about ``size`` bytes: two judges, one raw reply for both criteria; how many rows."""
    return _written(path, size, _verdicts(items, random.Random(3)))


def _verdicts(items: int, chance: random.Random) -> Iterator[bytes]:
    for number in range(1, items + 1):
        for judge in ("judge-a", "judge-b"):
            scores = {criterion: chance.randrange(points) for criterion, points in CRITERIA.items()}
            why = _text(chance.choice(list(PHRASES)), chance, number)
            reply = orjson.dumps({"scores": scores, "why": why}).decode()
            for criterion, score in scores.items():
                row = {"item": f"d{number}", "judge": judge, "criterion": criterion, "score": score, "rationale": why}
                yield orjson.dumps({**row, "reply": reply}, option=orjson.OPT_APPEND_NEWLINE)


def _written(path: Path, size: int, lines: Iterator[bytes], head: bytes = b"") -> int:
    """Write lines until the file is large enough or they end; how many."""
    count, there = 0, len(head)
    with path.open("wb") as file:
        file.write(head)
        for line in lines:
            file.write(line)
            count += 1
            there += len(line)
            if there >= size:
                break
    return count


# --- the command ------------------------------------------------------------------------------------------------------


KINDS = ("dataset", "ratings", "verdicts")
USUAL = 100  # MB
RESULTS = Path(__file__).parent / "results" / "md"
HEAD = "| file | MB | rows | looked at, s | stored, s | peak of the process, MB |\n|---|---|---|---|---|---|"


def measure(kind: str, size: int) -> str:
    """The table's row for one kind of file."""
    with server.database("postgresql"):
        folder = Path(os.environ["PANELBENCH_DATA_DIR"])
        scene = _Scene(folder)
        path, rows = scene.made(kind, size)
        file_import = scene.opened(kind, path)
        looked = _seconds(lambda: scene.look(file_import))
        stored = _seconds(lambda: scene.store(file_import))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        megabytes = path.stat().st_size / 1e6
        return f"| {kind} | {megabytes:,.0f} | {rows:,} | {looked:,.0f} | {stored:,.0f} | {peak} |"


def _seconds(way: Callable[[], object]) -> float:
    started = time.perf_counter()
    way()
    return time.perf_counter() - started


class _Scene:
    """A project with a rubric, and for ratings and verdicts a dataset to be about."""

    def __init__(self, folder: Path) -> None:
        from accounts import people
        from accounts.models import User
        from tests import make

        self.folder = folder
        self.lead = User.objects.create_user("lead@panelbench.test")
        self.project = people.create_project(name="Bench", slug="bench", founder=self.lead)
        criteria = [make.criterion(name, range(points)) for name, points in CRITERIA.items()]
        self.version = make.rubric(self.project, *criteria)
        self.target: dict[str, Any] = {}

    def made(self, kind: str, size: int) -> tuple[Path, int]:
        if kind == "dataset":
            path = self.folder / "dialogues.jsonl"
            return path, write_dialogues_file(path, size)
        if kind == "ratings":
            path = self.folder / "ratings.csv"
            rows = write_ratings_file(path, size, sys.maxsize)[0]
        else:
            path = self.folder / "verdicts.jsonl"
            rows = write_verdicts_file(path, size, sys.maxsize)
        self._items(-(-rows // len(CRITERIA) // 2))  # of two raters or judges each
        return path, rows

    def _items(self, count: int) -> None:
        from tests import make

        dataset = make.dataset(self.project, (make.item_row(number) for number in range(1, count + 1)))
        self.target = {"dataset": dataset.pk, "rubric_version": self.version.pk}

    def opened(self, kind: str, path: Path) -> Any:
        from annotation.imports import opening

        with path.open("rb") as file:
            return opening.open_import(
                project=self.project, kind=kind, files=[(path.name, file)], target=self.target, actor=self.lead
            )

    def look(self, file_import: Any) -> None:
        from annotation.imports import previews
        from judging.imports import verdicts

        look = verdicts.preview_verdict_import if file_import.kind == "verdicts" else previews.preview_import
        seen = look(file_import)
        assert not seen.problems, seen.problems.sentences()

    def store(self, file_import: Any) -> None:
        from annotation.imports import lifecycle
        from judging.imports import verdicts

        carry_out = verdicts.carry_out_verdicts if file_import.kind == "verdicts" else lifecycle.carry_out
        carry_out(file_import=file_import, actor=self.lead)


def _alone(kind: str, size: str) -> str:
    command = [sys.executable, "-m", "bench.import_large", "--kind", kind, "--size", size]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default=f"{USUAL}MB", help="of each file, such as 500MB")
    parser.add_argument("--kind", choices=KINDS, help="only this one, printed and not written")
    asked = parser.parse_args()
    if asked.kind:
        print(measure(asked.kind, int(asked.size.upper().removesuffix("MB")) * 1_000_000))
        return
    table = "\n".join([HEAD, *(_alone(kind, asked.size) for kind in KINDS)])
    title = "# Large imports: time and memory"
    RESULTS.write_text(f"{title}\n\n`python -m bench.import_large`\n\n{table}\n", encoding="utf-8")
    print(table)


if __name__ == "__main__":
    _main()
