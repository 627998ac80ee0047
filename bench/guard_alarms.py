"""How often the reply guard of simulated conversations stops turns that nobody planted anything in.

``python -m bench.guard_alarms`` writes ``bench/results/guard_alarms.md``: the demo's dialogues in five languages, those
of S0's authors in four, DICES (people with a chatbot) and MultiPICo (people with people, nine languages). Turns of the
user's side go through the guard of user's turns, all others through that of answers. A minute; needs ../shared/data.
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "bench" / "results" / "guard_alarms.md"
HEAD = """\
# Alarms of the reply guard where nothing was planted

Turns of the user's side, and of the other side, and the share that the guard stops, by rule. Marks that anonymisation
left, and lengths, are not counted. The dialogues of S0 were written by models. Read by hand: in MultiPICo, nearly every
alarm about a language or script is of a text in another language than declared (German, Dutch and English in French,
German and Spanish threads, Persian in Arabic ones), in Latin letters (Hindi, Arabic), or mixed; of S0, a sample of
the alarms was read, all of English in dialogues of another language, or of a turn said again. False were *quoted* and
*stand_in*: 5 and 5 of the 6,751 turns that people wrote, 0.1 %. No turn of a person was stopped for its role.

| data | side | turns | stopped | share | by rule |
|---|---|---|---|---|---|"""
TURNS = tuple[str, str, list[tuple[str, str]]]
"""Data, language, and turns as side and text."""


def spoken_dialogues(shared: Path) -> Iterator[TURNS]:
    """Every dialogue of the data, user's side first."""
    for path in sorted((ROOT / "platform/panelbench/demo/content").glob("dialogues.*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            item = json.loads(line)
            sides = [("user" if turn["speaker"] == "customer" else "assistant", turn["text"]) for turn in item["turns"]]
            yield f"demo, {item['language']}", item["language"], sides
    for path in sorted((shared / "xls-estonian/paper_data").glob("combined_*.json")):
        language = path.stem[-2:]
        for listed in json.loads(path.read_text(encoding="utf-8")).values():
            for one in listed:
                turns = [
                    ("user" if turn.get("from_type") == "customer" else "assistant", turn.get("message") or "")
                    for turn in one.get("messages", [])
                ]
                yield f"S0, {language} (of models)", language, [(side, text) for side, text in turns if text.strip()]
    yield from _dices(shared)
    with (shared / "multipico-dev/items.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield f"MultiPICo, {row['lang']}", row["lang"], [("user", row["post"]), ("assistant", row["reply"])]
            yield f"MultiPICo, {row['lang']}", row["lang"], [("user", row["reply"])]


def _dices(shared: Path) -> Iterator[TURNS]:
    dices = json.loads((shared / "dices-350/dices_350_crowdsourced.json").read_text(encoding="utf-8"))
    for instance in dices["instances"]:
        said: list[tuple[str, str]] = []
        for line in instance["instance"]["user_prompt"].splitlines():
            name, colon, text = line.partition(": ")
            if colon and name in ("USER", "LAMDA"):
                said.append(("user" if name == "USER" else "assistant", text))
            elif said:
                said[-1] = (said[-1][0], f"{said[-1][1]}\n{line}")
        yield "DICES, en", "en", [*said, ("assistant", instance["instance"]["response"])]


def measure(shared: Path, shown: int = 0) -> list[str]:
    """The rows of the table; ``shown`` examples of every rule are printed."""
    from judging.generation.drawing import draw_parameters
    from judging.generation.guard import guard_answer, guard_utterance
    from judging.generation.specs import preset

    spec = preset("simulated-users")
    wide = replace(spec.simulation, longest_utterance=100_000, least_user_turns=1)
    spec = replace(spec, conversation=wide, rules=replace(spec.rules, longest=100_000))
    drawn = draw_parameters(spec, seed=1, number=1)
    counts: dict[tuple[str, str], int] = defaultdict(int)
    stopped: dict[tuple[str, str], int] = defaultdict(int)
    rules: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    printed: Counter[tuple[str, str, str]] = Counter()
    for source, language, sides in spoken_dialogues(shared):
        turns: list[dict[str, str]] = []
        for side, raw in sides:
            text = raw.replace("[REDACTED]", "Kim").replace("<br>", "\n")
            if side == "user":
                problems = guard_utterance(spec, drawn, language=language, turns=turns, utterance=text)
            else:
                problems = guard_answer(spec, language=language, turns=turns, answer=text)
            codes = {problem.code for problem in problems}
            counts[source, side] += 1
            stopped[source, side] += bool(codes)
            rules[source, side].update(codes)
            for code in codes:
                if printed[source, side, code] < shown:
                    printed[source, side, code] += 1
                    values = next(dict(problem.values) for problem in problems if problem.code == code)
                    sys.stdout.write(f"{source} | {side} | {code} {values}: {text[:260]!r}\n")
            turns.append({"speaker": side, "text": text})
    return [
        f"| {source} | {side} | {count} | {stopped[source, side]} | {stopped[source, side] / count:.1%} | "
        + (", ".join(f"{code} {times}" for code, times in rules[source, side].most_common()) or "-")
        + " |"
        for (source, side), count in sorted(counts.items())
    ]


if __name__ == "__main__":
    import django

    django.setup()
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT.parent / "shared" / "data"
    rows = measure(folder, shown=int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    sys.stdout.write("\n".join(rows) + "\n")
    RESULT.write_text("\n".join([HEAD, *rows]) + "\n", encoding="utf-8")
