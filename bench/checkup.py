"""The check-up of datasets: ``python -m bench.checkup [--folder FOLDER]``.

2,000 dialogues as a study has them; 100,000 short items; and, where ``FOLDER`` has them, the published dialogues of
the cross-lingual study and MultiPICo. Each runs in a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PUBLISHED = Path("/work/shared/data")
LANGUAGES = ("en", "et", "fi", "hu")
WORDS = {
    "en": "the parcel has not arrived yet and I would like to know where it is because my order was due last week",
    "et": "pakk ei ole veel kohale jõudnud ja ma tahaksin teada kus see on sest tellimus pidi tulema eelmisel nädalal",
    "fi": "paketti ei ole vielä saapunut ja haluaisin tietää missä se on koska tilaukseni piti tulla viime viikolla",
    "hu": "a csomag még nem érkezett meg és szeretném tudni hol van mert a rendelésnek múlt héten kellett volna jönnie",
}


def dialogue(number: int, turns: int) -> dict[str, Any]:
    """A dialogue of about 1,400 characters in one of four languages, the same for the same number."""
    rng = random.Random(number)
    language = LANGUAGES[number % 4]
    words = WORDS[language].split()
    texts = [" ".join(rng.choices(words, k=30)) + f" {rng.randrange(10**6)}." for _turn in range(turns)]
    said = [{"speaker": ("customer", "agent")[n % 2], "text": text} for n, text in enumerate(texts)]
    return {"language": language, "generator": f"m{number % 6}", "scenario": f"s{number // 24}", "turns": said}


def dialogues_of(which: str, folder: Path) -> Iterator[dict[str, Any]]:
    if which == "2,000 dialogues":
        yield from (dialogue(number, 8) for number in range(2_000))
    elif which == "100,000 items":
        yield from (dialogue(number, 1) for number in range(100_000))
    elif which == "cross-lingual study":
        for language in LANGUAGES:
            document = json.loads((folder / f"xls-estonian/paper_data/combined_{language}.json").read_text())
            for model, dialogues in document.items():
                for one in dialogues:
                    said = [{"speaker": turn["from_type"], "text": turn["message"]} for turn in one["messages"]]
                    yield {"language": language, "generator": model, "scenario": "", "turns": said}
    else:
        with (folder / "multipico-dev/items.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                said = [{"speaker": "post", "text": row["post"]}, {"speaker": "reply", "text": row["reply"]}]
                yield {"language": row["lang"], "generator": "", "scenario": "", "turns": said}


def measure(which: str, folder: Path) -> dict[str, Any]:
    """One check-up in this process, without a network."""

    def no_network(*_arguments: Any, **_more: Any) -> None:
        raise AssertionError("something asked for the network")

    socket.socket.connect = no_network  # type: ignore[assignment]
    from annotation.checkup.checked_items import checked_item
    from annotation.checkup.checking import check_items
    from annotation.checkup.declared import CheckScope

    began, used = time.perf_counter(), time.process_time()
    items = (checked_item(ordinal=number, fields={}, **row) for number, row in enumerate(dialogues_of(which, folder)))
    result = check_items(items, CheckScope(frozenset(row["language"] for row in dialogues_of(which, folder))))
    return {
        "items": result.items,
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - used,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "json": len(json.dumps(result.as_json())) / 1e6,
        "found": {finding.check: finding.items for finding in result.findings if finding.items},
    }


def print_measurements() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=PUBLISHED)
    parser.add_argument("--one")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.folder)))
        return
    sets = ["2,000 dialogues", "100,000 items"]
    if options.folder.exists():
        sets += ["cross-lingual study", "MultiPICo"]
    print("| dataset | items | s | CPU s | MB (with Python) | result, MB |\n|---|---|---|---|---|---|")
    found: dict[str, dict[str, int]] = {}
    for which in sets:
        command = [sys.executable, "-m", "bench.checkup", "--one", which, "--folder", str(options.folder)]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        found[which] = answer["found"]
        numbers = (answer[name] for name in ("items", "seconds", "cpu", "mb", "json"))
        print(
            f"| {which} | " + " | ".join(f"{number:,.1f}".removesuffix(".0") for number in numbers) + " |", flush=True
        )
    print("\n| items with a finding | " + " | ".join(sets[2:]) + " |\n|---|" + "---|" * len(sets[2:]))
    for check in sorted({name for which in sets[2:] for name in found[which]}):
        print(f"| `{check}` | " + " | ".join(str(found[which].get(check, 0)) for which in sets[2:]) + " |")


if __name__ == "__main__":
    print_measurements()
