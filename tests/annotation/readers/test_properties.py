"""What holds for any file: text comes out as it went in, every row is accounted for, nothing but problems is raised."""

import csv
import io
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from annotation.readers.guessing import guess_mapping
from annotation.readers.items import parse_items
from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problems
from annotation.readers.ratings import parse_ratings, parse_verdicts
from annotation.readers.reading import peek, read_rows
from annotation.readers.rubric import parse_rubric

pytestmark = pytest.mark.slow

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
awkward = st.sampled_from(
    ["\r\n", "\n", "\r", '"', '""', ",", ";", "\t", "\u200f", "\u200d", "e\u0301", "ـ", "👩‍👧", "\u2028", "\ufeff", " "]
)
cell = st.lists(text | awkward, max_size=4).map("".join)
LONG = Mapping(columns={"i": "item", "r": "rater", "c": "criterion", "s": "score"})


def written(rows: list[list[str]], delimiter: str = ",", line_end: str = "\n") -> bytes:
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=delimiter, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(rows)
    return stream.getvalue().encode()


@settings(deadline=None)
@given(
    st.lists(st.lists(cell, min_size=3, max_size=3), max_size=6),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_cells_come_out_of_a_csv_as_they_went_in(rows: list[list[str]], delimiter: str, line_end: str) -> None:
    raw = written([["a", "b", "c"], *rows], delimiter, line_end)
    problems = Problems()
    taken = [
        list(row.fields.values())
        for row in read_rows("a.csv", raw, layout=Mapping(line_breaks=True), problems=problems)
    ]
    assert not problems
    assert taken == rows


@settings(deadline=None)
@given(st.lists(st.lists(cell, min_size=3, max_size=3), max_size=6))
def test_lines_are_those_of_an_editor(rows: list[list[str]]) -> None:
    raw = written([["a", "b", "c"], *rows])
    lines = [row.line for row in read_rows("a.csv", raw, layout=Mapping(line_breaks=True), problems=Problems())]
    records = raw.split(b"\n")
    for line, row in zip(lines, rows, strict=True):
        assert records[line - 1].startswith(b'"' + row[0].replace('"', '""').split("\n")[0].encode())


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | cell,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
records = st.lists(st.dictionaries(text, values, max_size=4), max_size=5)


@settings(deadline=None)
@given(records, st.booleans(), st.sampled_from([None, 1]))
def test_values_come_out_of_json_as_they_went_in(
    records: list[dict[str, object]], ascii_only: bool, indent: int | None
) -> None:
    problems = Problems()
    document = json.dumps(records, ensure_ascii=ascii_only, indent=indent).encode()
    assert [row.fields for row in read_rows("a.json", document, problems=problems)] == records
    lines = "\n".join(json.dumps(record, ensure_ascii=ascii_only) for record in records).encode()
    assert [row.fields for row in read_rows("a.jsonl", lines, problems=problems)] == records
    assert not problems


score = st.sampled_from(["0", "1", "2.0", "", " ", "N/A", "Yes", "9E+9", "-1"])
name = st.sampled_from(["x", "y", "", "2.9E+15"])
ratings = st.lists(
    st.lists(st.one_of(name, score), min_size=3, max_size=5) | st.tuples(name, name, name, score).map(list)
)


@settings(deadline=None)
@given(ratings, ratings)
def test_every_rating_is_taken_or_collapsed_or_refused(one: list[list[str]], other: list[list[str]]) -> None:
    files = [("a.csv", written([["i", "r", "c", "s"], *one])), ("b.csv", written([["i", "r", "c", "s"], *other]))]
    parsed = parse_ratings(files, LONG)
    assert parsed.read == len(one) + len(other)
    assert parsed.read == len(parsed.rows) + parsed.collapsed + parsed.refused
    counts = parsed.counts()
    assert counts.scored + counts.missing + counts.not_applicable == len(parsed.rows)
    assert len({(row.rater, row.item, row.criterion) for row in parsed.rows}) == len(parsed.rows)


items = st.fixed_dictionaries(
    {"language": st.sampled_from(["et", "en_us", "jp", ""])},
    optional={
        "id": st.sampled_from(["x", "y", 3, 2.9e15, ""]),
        "answer": cell,
        "turns": st.lists(st.fixed_dictionaries({"role": st.sampled_from(["A", ""]), "content": cell}), max_size=2),
    },
)


@settings(deadline=None)
@given(st.lists(items, max_size=8))
def test_every_item_is_taken_or_collapsed_or_refused(records: list[dict[str, object]]) -> None:
    raw = "\n".join(json.dumps(record) for record in records).encode()
    mapping = Mapping(columns={"id": "id", "language": "language", "answer": "answer", "turns": "turns"})
    parsed = parse_items([("a.jsonl", raw)], mapping)
    report = parsed.report
    assert report.read == len(records) == len(parsed.items) + report.collapsed + report.refused
    assert len({item.external_id for item in parsed.items}) == len(parsed.items)
    for item in parsed.items:
        source = records[item.line - 1]
        assert item.fields == ({"answer": source["answer"]} if "answer" in source else {})
        assert [turn["text"] for turn in item.turns] == [turn["content"] for turn in source.get("turns", [])]


WHOLE_FILES = {
    "a.csv": b'i,r,c,s\nx,A,fluency,2.0\ny,"B ""b""",fluency,\nz,C,"flu\r\nency",N/A\n',
    "a.jsonl": '{"id": "x", "language": "et", "turns": [{"role": "A", "content": "õ\\ud83d"}]}\n{"s": 1}'.encode(),
    "a.json": b'{"m1": [{"id": 1, "language": "et", "answer": "a"}], "m2": [{"a": [1.5, null, true]}]}',
    "a.yaml": b"key: r\nname: {en: R}\nsource_language: en\ncriteria:\n- {key: a, name: A, scale: {level: ordinal, "
    b"points: [0, 1]}, anchors: {0: x}}\n",
}
edits = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 8), st.binary(max_size=4) | awkward.map(str.encode)),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("name", WHOLE_FILES)
@settings(max_examples=3 * settings().max_examples // 2, deadline=None)
@given(edits)
@example([(0.0, 0, b"[" * 3000)])
@example([(0.0, 500, b"")])
@example([(0.0, 0, b"\xff\xfe")])
def test_no_damage_raises_anything(name: str, edits: list[tuple[float, int, bytes]]) -> None:
    raw = WHOLE_FILES[name]
    for place, cut, put in edits:
        at = int(place * len(raw))
        raw = raw[:at] + put + raw[at + cut :]
    sample = peek(name, raw) if name != "a.yaml" else None
    for kind, parse in (("dataset", parse_items), ("ratings", parse_ratings), ("verdicts", parse_verdicts)):
        if sample:
            mapping = guess_mapping(kind, sample.columns, [row.fields for row in sample.rows])  # type: ignore[arg-type]
            for one in (mapping, LONG):
                parsed = parse([(name, raw)], one)
                assert all(str(problem) for problem in parsed.problems)
    rubric = parse_rubric(name, raw)
    assert (rubric.document is None) == bool(rubric.problems)


@settings(deadline=None)
@given(st.lists(st.lists(cell.filter(str.strip), min_size=3, max_size=3), min_size=2, max_size=5), st.data())
def test_a_lost_quote_never_loses_a_row_silently(rows: list[list[str]], data: st.DataObject) -> None:
    """One quote fewer: either the file is refused, or all its rows are there (the quotes left were not needed)."""
    rows = [[str(number), *row[1:]] for number, row in enumerate(rows)]
    raw = written([["a", "b", "c"], *rows])
    quotes = [at for at, byte in enumerate(raw) if byte == ord('"')]
    at = data.draw(st.sampled_from(quotes))
    problems = Problems()
    taken = list(read_rows("a.csv", raw[:at] + raw[at + 1 :], problems=problems))
    assert problems or len(taken) == len(rows)


word = st.text("abc .", min_size=1, max_size=6).filter(str.strip)


@settings(deadline=None)
@given(st.lists(st.tuples(word, word), min_size=2, max_size=6), st.data())
def test_two_stray_quotes_never_merge_rows_silently(cells: list[tuple[str, str]], data: st.DataObject) -> None:
    """A text that begins with a quote, and one further down that ends with one: what people forget to escape."""
    rows = [[str(number), *pair] for number, pair in enumerate(cells)]
    first = data.draw(st.integers(0, len(rows) - 1))
    last = data.draw(st.integers(first, len(rows) - 1))
    column, other = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))
    rows[first][column] = f'"{rows[first][column]}'
    rows[last][other] = f'{rows[last][other]}"'
    raw = "\n".join(",".join(row) for row in [["a", "b", "c"], *rows])
    problems = Problems()
    taken = list(read_rows("a.csv", raw.encode(), problems=problems))
    assert problems or len(taken) == len(rows)
