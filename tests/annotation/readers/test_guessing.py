"""What files nobody told us about are taken for, before somebody looks and corrects it."""

from __future__ import annotations

import codecs
import csv
import io
from typing import Any

import pytest

from annotation.readers.encoding import PIECE
from annotation.readers.guessing import guess_kind, guess_mapping, propose_mapping
from annotation.readers.items import parse_items
from annotation.readers.mapping import Mapping
from annotation.readers.ratings import parse_ratings
from annotation.readers.reading import with_cached_head

CROWD = [
    "HITId",
    "WorkerId",
    "Input.dialog_id",
    "Input.dialog",
    "Answer.fluency",
    "Answer.Overall quality",
    "Answer.comment",
]


def table(columns: list[str], rows: list[list[Any]]) -> tuple[str, bytes]:
    written = io.StringIO()
    csv.writer(written).writerows([columns, *rows])
    return "file.csv", written.getvalue().encode()


@pytest.fixture
def crowd() -> tuple[str, bytes]:
    """Two dialogues as one text each, rated by two workers: the dialogue stands in every row."""
    rows = [
        [f"H{n}", who, f"dlg{n}", f"User: hi {n}\nBot: hello", n + (who == "A2"), 3, "fine"]
        for n in range(2)
        for who in ("A1", "A2")
    ]
    return table(CROWD, rows)


def test_columns_called_as_the_criteria_of_a_rubric_hold_scores_on_them(crowd: tuple[str, bytes]) -> None:
    mapping = propose_mapping("ratings", [crowd], Mapping(), criteria={"fluency", "overall quality"})
    parsed = parse_ratings([crowd], mapping)
    assert not parsed.problems
    found = {(row.item, row.rater, row.criterion, row.score) for row in parsed.rows}
    assert len(found) == 8
    assert ("dlg1", "A2", "fluency", 2.0) in found
    assert ("dlg0", "A1", "Overall quality", 3.0) in found


def test_a_column_of_criteria_leaves_columns_called_as_criteria_alone() -> None:
    columns = ["item", "rater", "criterion", "score", "fluency"]
    assert "fluency" not in guess_mapping("ratings", columns, [], {"fluency"}).columns


def test_what_raters_said_is_no_part_of_the_item_that_they_rated(crowd: tuple[str, bytes]) -> None:
    mapping = propose_mapping("dataset", [crowd], Mapping(constants={"language": "en"}))
    parsed = parse_items([crowd], mapping)
    assert not parsed.problems
    assert [item.turns for item in parsed.items] == [
        [{"speaker": "user", "text": f"hi {n}"}, {"speaker": "bot", "text": "hello"}] for n in range(2)
    ]
    assert (parsed.report.read, parsed.report.collapsed) == (4, 2)
    assert mapping.ignore == ("WorkerId", "Answer.fluency", "Answer.comment")


def test_an_id_that_is_said_twice_of_different_things_tells_what_differs() -> None:
    file = table(["id", "language", "answer", "origin"], [["a", "et", "one", "x"], ["a", "et", "two", "y"]])
    [problem] = parse_items([file], propose_mapping("dataset", [file], Mapping())).problems
    assert "they differ in answer, origin" in str(problem)


@pytest.mark.parametrize(
    ("columns", "given"),
    [
        (["id", "text"], {"text": "answer"}),
        (["id", "text", "decoded"], {"decoded": "answer", "text": "document"}),
        (["id", "prompt", "text"], {"prompt": "question", "text": "answer"}),
        (["id", "turns", "text"], {"turns": "turns"}),
        (["id", "document", "summary", "text"], {"document": "document", "summary": "answer"}),
    ],
)
def test_a_text_is_what_is_judged_or_what_that_was_made_from(columns: list[str], given: dict[str, str]) -> None:
    assert guess_mapping("dataset", columns, [dict.fromkeys(columns, "words and words")]).columns == {
        "id": "id",
        **given,
    }


@pytest.mark.parametrize(
    ("texts", "speakers"),
    [
        (["A: hi\nB: ho", "A: well\nB: no: never"], {"A": "a", "B": "b"}),
        (["Teenindaja: Tere!\nKlient: Tere.\nMurelik"] * 2, {"Teenindaja": "teenindaja", "Klient": "klient"}),
        (["Note: one voice only"] * 3, {}),
        (["A: hi\nB: ho", "nobody says this"], {}),
        (["12: numbers\n13: of lines"], {}),
        ([], {}),
    ],
)
def test_speakers_are_told_by_what_lines_begin_with(texts: list[str], speakers: dict[str, str]) -> None:
    rows = [{"id": n, "dialogue": text} for n, text in enumerate(texts)]
    assert guess_mapping("dataset", ["id", "dialogue"], rows).speakers == speakers


@pytest.mark.parametrize("name", ["WorkerId", "worker_id", "_worker_id", "data.workerId", "Worker ID"])
def test_a_name_is_known_however_it_is_written(name: str) -> None:
    assert guess_mapping("ratings", [name]).columns == {name: "rater"}


def test_a_tab_inside_cells_is_not_taken_for_the_delimiter() -> None:
    """Rows with as many tabs as each other, and with commas in their quoted cells, once hid the header."""
    turns = [
        '[{"speaker": "user", "text": "Tere"}]',
        '[{"speaker": "user", "text": "a"}, {"speaker": "bot", "text": ""}]',
    ]
    file = table(
        ["id", "language", "title", "turns"], [[f"d{n}", "et", "\tTere", text] for n, text in enumerate(turns)]
    )
    proposed = propose_mapping("dataset", [file], Mapping())
    assert proposed.header_row is None
    assert proposed.columns == {name: name for name in ("id", "language", "title", "turns")}


class CountingStream(io.BytesIO):
    """A stream that counts the bytes that are read of it."""

    count = 0

    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(size)
        self.count += len(content)
        return content


@pytest.mark.parametrize("shape", ["new", "known"])
def test_kind_and_mapping_cost_one_reading_and_one_decoding_of_the_first_page(
    monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    rows = "".join(f"d{number},et,Küsimus {number}?,Õige vastus {number}.\n" for number in range(100_000))
    raw = f"id,language,question,answer\n{rows}".encode()
    assert len(raw) > 3 * PIECE
    said = propose_mapping("dataset", [("d.csv", raw)], Mapping()) if shape == "known" else Mapping()
    counted: list[int] = []
    utf_8 = codecs.getincrementaldecoder("utf_8")

    class CountingDecoder(utf_8):  # type: ignore[valid-type, misc]
        def decode(self, content: bytes, final: bool = False) -> str:
            counted.append(len(content))
            return str(super().decode(content, final))

    monkeypatch.setattr(codecs, "getincrementaldecoder", lambda _codec: CountingDecoder)
    stream = CountingStream(raw)
    file = with_cached_head(("d.csv", stream), said)
    if shape == "new":
        assert guess_kind([file], said) == "dataset"
    assert propose_mapping("dataset", [file], said).columns["answer"] == "answer"
    assert (stream.count, sum(counted)) == (PIECE, PIECE)
