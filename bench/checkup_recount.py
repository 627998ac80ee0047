"""Counts of the published dialogues without Panelbench's own code: ``python -m bench.checkup_recount [FOLDER]``.

Python's own modules parse the files and look for plain strings and the names of letters, so that what the check-up
says of the same files can be held against it.
"""

import csv
import json
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path


def raw_dialogues(folder: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for language in ("en", "et", "fi", "hu"):
        text = (folder / f"xls-estonian/paper_data/combined_{language}.json").read_text(encoding="utf-8")
        for of_model in json.loads(text).values():
            yield from (("study", [(row["from_type"], row["message"]) for row in one["messages"]]) for one in of_model)
    with (folder / "multipico-dev/items.csv").open(encoding="utf-8", newline="") as file:
        yield from (("MultiPICo", [("post", row["post"]), ("reply", row["reply"])]) for row in csv.DictReader(file))


def recount(folder: Path) -> Counter[tuple[str, str]]:
    counted: Counter[tuple[str, str]] = Counter()
    for name, turns in raw_dialogues(folder):
        text, roles = "\n".join(message for _role, message in turns), [role for role, _message in turns]
        scripts = {unicodedata.name(sign, "").split(" ")[0] for sign in text if sign.isalpha() or ord(sign) > 0x300}
        marks = {unicodedata.bidirectional(sign) for sign in text} & {"RLE", "LRE", "RLO", "LRO", "LRI", "RLI", "FSI"}
        true = {
            "items": True,
            "no message": not turns,
            "one message": len(turns) == 1,
            "messages, none of a customer": bool(turns) and "customer" not in roles,
            "messages, none of an agent": bool(turns) and "agent" not in roles,
            "a role twice in a row": any(first == second for first, second in pairwise(roles)),
            "[REDACTED]": "[REDACTED]" in text,
            "<br>": "<br>" in text,
            "HTML entity &#": "&#" in text,
            "Cyrillic letters": "CYRILLIC" in scripts,
            "Chinese or Japanese signs": bool(scripts & {"CJK", "HIRAGANA", "KATAKANA"}),
            "Malayalam letters": "MALAYALAM" in scripts,
            "a turn of names of accounts, marks and spaces": any(
                not re.search(r"[^\W_]", re.sub(r"@\w+", "", message)) for _role, message in turns
            ),
            "mark of direction": bool(marks) or any(sign in text for sign in "\u061c\u200e\u200f\u202c\u2069"),
            "? before a joiner": "?\u200d" in text or "?\ufe0f" in text,
        }
        counted.update((name, what) for what, is_so in true.items() if is_so)
    return counted


if __name__ == "__main__":
    rows = recount(Path(sys.argv[1] if len(sys.argv) > 1 else "/work/shared/data"))
    print("| items with | cross-lingual study | MultiPICo |\n|---|---|---|")
    for subject in dict.fromkeys(what for _name, what in rows):
        print(f"| {subject} | {rows['study', subject]} | {rows['MultiPICo', subject]} |")
