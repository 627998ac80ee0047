"""Verdicts of judges that ran elsewhere."""

import json

from annotation.readers.guessing import guess_mapping
from annotation.readers.mapping import Mapping
from annotation.readers.ratings import parse_verdicts

WIDE = {
    "conversation_id": "c1",
    "generator_model": "g1",
    "judge_model": "j1",
    "G": 4,
    "R": 3.5,
    "C": -1,
    "F": None,
    "explanation": "fine",
}


def test_one_line_per_dialogue_with_a_letter_per_criterion() -> None:
    raw = "\n".join(json.dumps(record) for record in (WIDE, {**WIDE, "generator_model": "g2"})).encode()
    mapping = guess_mapping("verdicts", list(WIDE), [WIDE])
    parsed = parse_verdicts([("judge.jsonl", raw)], mapping)
    assert parsed.problems.sentences() == []
    assert (parsed.read, parsed.missing, parsed.collapsed) == (8, 2, 0)
    assert [(row.criterion, row.score) for row in parsed.rows[:4]] == [
        ("grammar", 4.0),
        ("readability", 3.5),
        ("coherence", -1.0),
        ("fluency", None),
    ]
    assert {(row.item, row.judge, row.generator, row.rationale) for row in parsed.rows} == {
        ("c1", "j1", "g1", "fine"),
        ("c1", "j1", "g2", "fine"),
    }


def test_repeats_are_verdicts_of_their_own() -> None:
    mapping = guess_mapping("verdicts", ["item", "judge", "criterion", "score", "repeat", "raw_reply"])
    raw = b'item,judge,criterion,score,repeat,raw_reply\nx,j,f,1,0,"{""f"": 1}"\nx,j,f,2,1,\nx,j,f,2,1,\nx,j,f,2,1.5,\n'
    parsed = parse_verdicts([("a.csv", raw)], mapping)
    assert [(row.repeat, row.score, row.reply) for row in parsed.rows] == [(0, 1.0, '{"f": 1}'), (1, 2.0, "")]
    assert parsed.collapsed == 1
    assert [(problem.code, problem.line, problem.column) for problem in parsed.problems] == [("repeat", 5, "repeat")]


def test_a_file_that_names_no_judge_is_one_problem_and_a_constant_helps() -> None:
    mapping = Mapping(columns={"item": "item", "f": "score.fluency"})
    parsed = parse_verdicts([("a.csv", b"item,f\nx,1\n")], mapping)
    assert [problem.code for problem in parsed.problems] == ["no_column"]
    named = parse_verdicts([("a.csv", b"item,f\nx,1\n")], mapping.updated(Mapping(constants={"judge": "j"})))
    assert [row.judge for row in named.rows] == ["j"]
