"""The example on the page of each file format is imported as it stands there."""

import re
from pathlib import Path

import pytest

from annotation.readers.guessing import propose_mapping
from annotation.readers.items import parse_items
from annotation.readers.mapping import Mapping
from annotation.readers.ratings import parse_ratings, parse_verdicts

PAGES = Path(__file__).resolve().parents[3] / "docs" / "formats"
EXAMPLE = re.compile(r"```(\w+) (dataset|ratings|verdicts)\n(.*?)```", re.DOTALL)
PARSE = {"dataset": parse_items, "ratings": parse_ratings, "verdicts": parse_verdicts}


@pytest.mark.parametrize(
    ("page", "rows"),
    [("csv", 3), ("tsv", 2), ("json", 2), ("jsonl", 2), ("xlsx", 2), ("parquet", 2), ("compressed", 2)],
)
def test_the_example_of_a_format(page: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ((language, kind, text),) = EXAMPLE.findall((PAGES / f"{page}.md").read_text())
    if language == "python":
        exec(text, {})
    else:
        Path(f"example.{language}").write_text(text)
    (made,) = tmp_path.iterdir()
    file = (made.name, made.read_bytes())
    parsed = PARSE[kind]([file], propose_mapping(kind, [file], Mapping()))
    assert parsed.problems.sentences() == []
    assert len(parsed.items if kind == "dataset" else parsed.rows) == rows


@pytest.mark.parametrize("page", ["tsv"])
def test_the_mappings_on_the_pages_are_read(page: str) -> None:
    for text in re.findall(r"```yaml mapping\n(.*?)```", (PAGES / f"{page}.md").read_text(), re.DOTALL):
        assert Mapping.from_yaml("page.yaml", text).as_dict()
