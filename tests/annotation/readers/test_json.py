"""JSON and JSON Lines: every fault with its line, nothing doubled, nothing that cannot be stored."""

import json

import pytest

from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problems
from annotation.readers.reading import peek, read_rows

DEEP = "[" * 100_000


def rows(text: str, name: str = "a.json", **layout: object) -> tuple[list[tuple[int, dict[str, object]]], Problems]:
    problems = Problems()
    return [tuple(row) for row in read_rows(name, text.encode(), layout=Mapping(**layout), problems=problems)], problems


def test_records_carry_the_line_they_start_on() -> None:
    text = '\ufeff[\n {"a": 1},\n\n {"a":\n 2}, {"a": 3}\n]\n'
    assert rows(text)[0] == [(2, {"a": 1}), (4, {"a": 2}), (5, {"a": 3})]


def test_lists_by_key_carry_their_key() -> None:
    taken, problems = rows('{\n"m1": [{"a": 1}],\n"m2": [{"a": 2}, {"a": 3}], "m3": []}')
    assert not problems
    assert taken == [(2, {"(key)": "m1", "a": 1}), (3, {"(key)": "m2", "a": 2}), (3, {"(key)": "m2", "a": 3})]


def test_one_list_among_other_things_has_to_be_named() -> None:
    text = '{"title": "x", "rows": [{"a": 1}], "more": {"b": [2]}}'
    taken, problems = rows(text, records="rows")
    assert not problems
    assert taken == [(1, {"a": 1})]
    assert [problem.code for problem in rows(text)[1]] == ["shape"]
    assert [problem.code for problem in rows(text, records="other")[1]] == ["shape"]


def test_text_survives_byte_for_byte() -> None:
    value = 'a\r\nb\u200f\u200d e\u0301 \u0640 👩‍👧 \u2028 \\ "'
    for written in (json.dumps([{"t": value}]), json.dumps([{"t": value}], ensure_ascii=False)):
        assert rows(written)[0] == [(1, {"t": value})]


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("", "shape", 1, "character 1"),
        ("3", "shape", 1, "character 1"),
        ('[{"a": 1},\n {"a": "cut', "truncated", 2, "character 12"),
        ('[{"a": 1}\n', "truncated", 2, "character 1"),
        ('{"m": [{"a": 1}]', "truncated", 1, "character 17"),
        ('[{"a": 1}\n {"a": 2}]', "json", 2, "character 2"),
        ('[{"a": 1},\n {"a" 2}]', "json", 2, "character 7"),
        ('[{"a": 1}] []', "json", 1, "character 12"),
        ('{"a": 1}\n{"a": 2}', "shape", 1, "character 2"),
        ('{"m": [], "m": []}', "duplicate_key", 1, "character 11"),
        ('[{"a": "\t"}]', "json", 1, "character 9"),
        (DEEP, "nesting", 1, "character 2"),
    ],
)
def test_a_broken_document_ends_with_one_problem(text: str, code: str, line: int, column: str) -> None:
    (problem,) = rows(text)[1]
    assert (problem.code, problem.line, problem.column) == (code, line, column)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ('{"a": 1, "a": 2}', "duplicate_key"),
        ('{"a": {"b": 1, "b": 1}}', "duplicate_key"),
        ('{"a": NaN}', "number"),
        ('{"a": -Infinity}', "number"),
        ('{"a": 1e999}', "number"),
        ('{"a": 123456789012345678901234567890}', "number"),
        ('{"a": 18446744073709551616}', "unstorable"),
        ('{"a": "\\u0000"}', "nul"),
        ('{"\\u0000": 1}', "nul"),
        ('{"a": "\\ud83d"}', "unstorable"),
        ("[1]", "shape"),
        ("null", "shape"),
        ('{"a":' + "[" * 300 + "]" * 300 + "}", "unstorable"),
    ],
)
def test_a_bad_record_is_refused_and_the_next_one_read(value: str, code: str) -> None:
    document, lines = f'[{{"b": 0}},\n{value},\n{{"b": 1}}]', f'{{"b": 0}}\n{value}\n{{"b": 1}}'
    for text, name in ((document, "a.json"), (lines, "a.jsonl")):
        taken, problems = rows(text, name)
        assert [fields for _, fields in taken] == [{"b": 0}, {"b": 1}]
        assert [(problem.code, problem.line) for problem in problems] == [(code, 2)]
        assert problems.refused == 1


def test_an_escaped_backslash_before_u0000_is_no_nul() -> None:
    assert rows('[{"a": "\\\\u0000"}]')[0] == [(1, {"a": "\\u0000"})]


def test_json_lines_are_cut_at_line_feeds_only() -> None:
    taken, problems = rows('{"a": "x\u2028y"}\r\n\n{"a": 2}\n{"a": 3', "a.jsonl")
    assert [line for line, _ in taken] == [1, 3]
    assert [(problem.code, problem.line) for problem in problems] == [("truncated", 4)]


def test_one_object_per_line_in_a_json_file_is_told_its_name() -> None:
    (problem,) = rows('{"a": 1}\n{"a": 2}')[1]
    assert ".jsonl" in problem.expected


def test_deep_lines_are_refused() -> None:
    taken, problems = rows(f'{DEEP}\n{{"a": 1}}', "a.jsonl")
    assert [(problem.code, problem.line) for problem in problems] == [("nesting", 1)]
    assert len(taken) == 1


def test_peek_opens_objects_one_level_deep() -> None:
    sample = peek("a.json", b'[{"id": 1, "m": {"x": 1, "y": {"z": 1}}}, {"id": 2, "more": []}]', rows=2)
    assert sample.columns == ("id", "m.x", "m.y", "more")
    assert len(sample.rows) == 2
