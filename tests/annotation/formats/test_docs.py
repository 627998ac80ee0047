"""The examples of docs/formats.md are read by the code they describe."""

import re
from pathlib import Path

from annotation.formats.guessing import Kind, guess
from annotation.formats.items import parse_items
from annotation.formats.mapping import Mapping
from annotation.formats.ratings import parse_ratings
from annotation.formats.reading import peek
from annotation.formats.rubric import parse_rubric
from annotation.formats.verdicts import parse_verdicts

PAGE = Path(__file__).resolve().parents[3] / "docs" / "formats.md"
EXAMPLES = {
    kind: (f"example.{ending}", text.encode())
    for ending, kind, text in re.findall(r"```(\w+) (\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL)
}


def guessed(kind: Kind) -> Mapping:
    sample = peek(*EXAMPLES[kind])
    return guess(kind, sample.columns, [row.fields for row in sample.rows])


def test_the_dataset() -> None:
    parsed = parse_items([EXAMPLES["dataset"]], guessed("dataset"))
    assert parsed.problems.sentences() == []
    assert [item.language for item in parsed.items] == ["et", "et", "pt-BR"]
    assert parsed.items[2].attributes == {"difficulty": "easy"}


def test_the_ratings() -> None:
    parsed = parse_ratings([EXAMPLES["ratings"]], guessed("ratings"))
    assert parsed.problems.sentences() == []
    assert (parsed.read, parsed.scored, parsed.missing) == (4, 2, 1)


def test_the_verdicts() -> None:
    parsed = parse_verdicts([EXAMPLES["verdicts"]], guessed("verdicts"))
    assert parsed.problems.sentences() == []
    assert [row.score for row in parsed.rows] == [4, 3.5, 2, None]


def test_the_mapping_names_every_part_there_is() -> None:
    name, text = EXAMPLES["mapping"]
    assert set(Mapping.from_yaml(name, text).as_dict()) == set(Mapping.__dataclass_fields__)


def test_the_rubric() -> None:
    parsed = parse_rubric(*EXAMPLES["rubric"])
    assert parsed.problems.sentences() == []
    assert parsed.document
    assert [criterion.key for criterion in parsed.document.criteria] == ["fluency", "safe", "quality"]
