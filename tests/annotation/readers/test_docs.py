"""The examples of docs/formats.md and docs/formats/shape.md are read by the code they describe."""

import csv
import io
import re
from pathlib import Path

import pytest

from annotation.readers.guessing import Kind, guess_mapping
from annotation.readers.items import parse_items
from annotation.readers.mapping import BY_NAME, Mapping
from annotation.readers.problems import Problems
from annotation.readers.ratings import parse_ratings, parse_verdicts
from annotation.readers.reading import peek, read_rows
from annotation.readers.rows import as_written
from annotation.readers.rubric import parse_rubric

PAGE = Path(__file__).resolve().parents[3] / "docs" / "formats.md"
EXAMPLES = {
    kind: (f"example.{ending}", text.encode())
    for ending, kind, text in re.findall(r"```(\w+) (\w+)\n(.*?)```", PAGE.read_text(), re.DOTALL)
}

SHAPES = (PAGE.parent / "formats" / "shape.md").read_text()
RECIPES = re.findall(
    r"```(\w+) file\n(.*?)```\n\n```yaml mapping\n(.*?)```\n\n```csv rows\n(.*?)```", SHAPES, re.DOTALL
)


def guessed(kind: Kind) -> Mapping:
    sample = peek(*EXAMPLES[kind])
    return guess_mapping(kind, sample.columns, [row.fields for row in sample.rows])


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


@pytest.mark.parametrize(("ending", "text", "mapping", "rows"), RECIPES, ids=range(len(RECIPES)))
def test_a_shape(ending: str, text: str, mapping: str, rows: str) -> None:
    problems = Problems()
    made = read_rows(f"file.{ending}", text.encode(), layout=Mapping.from_yaml("m.yaml", mapping), problems=problems)
    found = [{column: as_written(value) for column, value in row.fields.items()} for row in made]
    assert problems.sentences() == []
    assert found == list(csv.DictReader(io.StringIO(rows)))


def test_every_step_has_its_example() -> None:
    assert len(RECIPES) == SHAPES.count("\n## ")
    used = "".join(mapping for _ending, _text, mapping, _rows in RECIPES)
    assert {name for name in BY_NAME if f"{{{name}: " not in used} == set()
