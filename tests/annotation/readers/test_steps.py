"""Records made long: every step of a mapping's ``shape``, alone and in company."""

from __future__ import annotations

import time
from typing import Any

import orjson
import pytest

from annotation.readers.mapping import Mapping
from annotation.readers.problems import FormatError, Problems
from annotation.readers.ratings import parse_ratings
from annotation.readers.reading import read_rows
from annotation.readers.rows import value_at


def rows(said: str, *records: dict[str, Any], name: str = "x.jsonl") -> list[dict[str, Any]]:
    made, problems = shaped(said, *records, name=name)
    assert problems.sentences() == []
    return made


def shaped(said: str, *records: dict[str, Any], name: str = "x.jsonl") -> tuple[list[dict[str, Any]], Problems]:
    problems = Problems()
    raw = b"\n".join(map(orjson.dumps, records))
    layout = Mapping.from_yaml("mapping.yaml", said)
    return [row.fields for row in read_rows(name, raw, layout=layout, problems=problems)], problems


def refused(said: str, *records: dict[str, Any]) -> str:
    made, problems = shaped(said, *records)
    assert made == []
    assert problems.refused == len(records)
    return str(next(iter(problems)))


def test_lists_side_by_side_are_taken_apart_together() -> None:
    made = rows(
        "shape: [{explode: [scores, z], position: slot}]",
        {"id": 7, "scores": "[50, 51]", "z": [-0.1, 0.2]},
        {"id": 8, "scores": "['a']", "z": [None]},
    )
    assert made == [
        {"id": 7, "scores": 50, "z": -0.1, "slot": 1},
        {"id": 7, "scores": 51, "z": 0.2, "slot": 2},
        {"id": 8, "scores": "a", "z": None, "slot": 1},
    ]


def test_lists_of_different_lengths_are_refused_with_their_line() -> None:
    said = refused("shape: [{explode: [a, b]}]", {"a": [1, 2], "b": [1]})
    assert said == (
        "x.jsonl, line 1, b: found 2 values in a and 1 in b; expected lists of one length, taken apart side by side."
    )


@pytest.mark.parametrize("cell", ["[1, 2", "{1, 2}", "[b'x']", "[" * 5000, "__import__('os')", "[1, nan]"])
def test_what_is_no_list_is_refused(cell: str) -> None:
    assert refused("shape: [{explode: a}]", {"a": cell}).startswith("x.jsonl, line 1, a: found “")


def test_a_record_that_holds_nothing_is_left_out_and_counted() -> None:
    made, problems = shaped("shape: [{explode: a}]", {"a": []}, {"a": ""}, {"a": [1]})
    assert made == [{"a": 1}]
    assert problems.notes == ["x.jsonl: 2 records have nothing in a."]


def test_joined_text_is_split_and_then_taken_apart() -> None:
    made = rows('shape: [{split: {who: ";", what: "|"}}, {explode: [who, what]}]', {"who": "a; b", "what": "1|2"})
    assert made == [{"who": "a", "what": "1"}, {"who": "b", "what": "2"}]


def test_columns_that_are_not_kept_are_noted() -> None:
    made, problems = shaped("shape: [{keep: [id, 'a *']}]", {"id": 1, "a x": 2, "b": 3, "c": 4}, {"id": 5})
    assert made == [{"id": 1, "a x": 2}, {"id": 5}]
    assert problems.notes == ["x.jsonl: columns that the mapping leaves out: b, c."]


def test_json_inside_json_is_opened() -> None:
    made = rows("shape: [{parse: meta.raw}]", {"meta": {"raw": '{"score": 3}', "x": 1}})
    assert made == [{"meta": {"raw": {"score": 3}, "x": 1}}]


def test_objects_whose_keys_are_values() -> None:
    made = rows("shape: [{entries: a.labels, key: rater, value: label}]", {"id": 1, "a": {"labels": {"x": 0, "y": 1}}})
    assert made == [{"id": 1, "rater": "x", "label": 0}, {"id": 1, "rater": "y", "label": 1}]


def test_lists_in_lists() -> None:
    record = {"id": 1, "annotations": [{"by": 5, "result": [{"v": 1}, {"v": 2}]}, {"by": 6, "result": [{"v": 3}]}]}
    made = rows("shape: [{explode: annotations}, {explode: annotations.result}]", record)
    assert [(row["annotations"]["by"], row["annotations"]["result"]["v"]) for row in made] == [(5, 1), (5, 2), (6, 3)]
    assert record["annotations"][0]["result"] == [{"v": 1}, {"v": 2}]


def test_wide_becomes_long_by_the_names_of_columns() -> None:
    said = """
    shape:
      - melt: {"Human {rater} {criterion=RE|CH}": score, "{judge=Beluga-13B|GPT} {criterion=RE|CH} {variant}": score}
    """
    record = {"id": 1, "Human 1 RE": 4, "Beluga-13B CH 2": "1.5", "ROUGE-1 F-Score x": 9}
    kept = {"id": 1, "ROUGE-1 F-Score x": 9}
    assert rows(said, record) == [
        {**kept, "rater": "1", "criterion": "RE", "score": 4},
        {**kept, "judge": "Beluga-13B", "criterion": "CH", "variant": "2", "score": "1.5"},
    ]
    assert "expected columns like Human {rater}" in refused(said, {"id": 1})


def test_columns_whose_names_say_the_same_give_one_row() -> None:
    melt = '{melt: {"{criterion}.responses": score, "{criterion}.responses.users": rater}}'
    said = f"shape: [{melt}, {{explode: [score, rater]}}]"
    made = rows(said, {"id": 1, "tone.responses": [4, 5], "tone.responses.users": ["a", "b"]})
    assert made == [
        {"id": 1, "criterion": "tone", "score": 4, "rater": "a"},
        {"id": 1, "criterion": "tone", "score": 5, "rater": "b"},
    ]


def test_a_place_that_holds_now_an_object_now_a_value_is_flattened() -> None:
    made = rows("shape: [{flatten: a.by}]", {"a": {"by": {"id": 5}, "x": 1}}, {"a": {"by": 6}})
    assert made == [{"a": {"x": 1}, "a.by.id": 5}, {"a.by": 6}]


def test_ids_are_composed_numbered_and_extracted() -> None:
    said = """
    shape:
      - {number: place, within: model, start: 0}
      - {extract: {file: "data/combined_{language}.json"}}
      - {compose: {id: "{language}/{model}/{place}"}}
    """
    made = rows(said, *({"model": model, "file": "data/combined_et.json"} for model in ("a", "b", "a")))
    assert [row["id"] for row in made] == ["et/a/0", "et/b/0", "et/a/1"]
    assert "expected text like data/combined_{language}.json" in refused(said, {"model": "a", "file": "et.json"})
    assert "found nothing; expected text or a number in b" in refused("shape: [{compose: {id: '{b}'}}]", {"a": 1})


def test_rows_in_a_row_are_the_raters_of_one_item() -> None:
    said = "shape: [{every: 2, same: text, position: slot, group: item}]"
    made = rows(said, *({"text": text, "flag": 1} for text in "aabb"))
    assert [(row["item"], row["slot"]) for row in made] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert "found “b” on line 2 where line 1 has “a”; expected one text in 2 rows in a row" in refused(
        said, {"text": "a"}, {"text": "b"}
    )
    assert "found 1 rows at the end; expected 2 rows for each" in refused(said, {"text": "a"})


def test_one_of_a_list_and_where() -> None:
    said = "shape: [{where: {type: choices|rating}}, {single: label}]"
    made, problems = shaped(
        said, {"type": "text"}, {"type": "choices", "label": ["Yes"]}, {"type": "rating", "label": []}
    )
    assert [row["label"] for row in made] == ["Yes", None]
    assert problems.notes == ["x.jsonl: 1 records are left out: type is not choices|rating."]
    assert "expected one value in label" in refused(said, {"type": "choices", "label": ["Yes", "No"]})


def test_what_a_files_name_says_is_in_each_row() -> None:
    said = 'files: {"test20.{pair}.short.jsonl": {shape: [{explode: scores}]}, "*.csv": {quoting: off}}'
    assert rows(said, {"scores": [1, 2]}, name="a/test20.eten.short.jsonl") == [
        {"scores": 1, "pair": "eten"},
        {"scores": 2, "pair": "eten"},
    ]
    assert rows(said, {"scores": [1, 2]}) == [{"scores": [1, 2]}]
    made, problems = shaped(said, {"scores": [1], "pair": "x"}, name="test20.eten.short.jsonl")
    assert (made, problems.codes) == ([], {"ambiguous": 1})


def test_a_mapping_with_steps_goes_to_yaml_and_plain_values_and_back() -> None:
    said = Mapping.from_yaml(
        "m.yaml",
        """
        shape: [{parse: a}, {every: 3, same: [b]}, {melt: {"{x} {y}": z}}, {where: {a: b}}]
        files: {"*.csv": {delimiter: tab, columns: {a: item}}, "{pair}.tsv": }
        aligned: {"*.src": source}
        positional: on
        """,
    )
    assert Mapping.from_yaml("m.yaml", said.as_yaml()) == said
    assert Mapping.from_dict(said.as_dict()) == said
    assert said.updated(Mapping()) == said
    assert said.as_dict()["shape"][0] == {"parse": ["a"]}
    assert said.of("x/y.csv").columns == {"a": "item"} and said.of("y.tsv").columns == {}
    assert said.columns_from_name("en-et.tsv") == {"pair": "en-et"}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("shape: {explode: a}", "a list of steps"),
        ("shape: [{explode: a, postion: b}]", "did you mean position?"),
        ("shape: [{explode: a, melt: b}]", "one step of"),
        ("shape: [{every: many}]", "a whole number"),
        ("shape: [{entries: {a: b}}]", "a word"),
        ('files: {"*.csv": {files: {"*": }}}', "the mapping of one file"),
        ("files: [a]", "an object"),
    ],
)
def test_a_step_that_is_none_is_refused_with_its_line(said: str, expected: str) -> None:
    with pytest.raises(FormatError, match=r"m\.yaml, line 1") as fault:
        Mapping.from_yaml("m.yaml", said)
    assert expected in str(fault.value)


def test_among_many_objects_each_row_finds_its_own_without_a_search_of_all() -> None:
    count, by = 1_000, "output.choices.0.id"
    events = [{"output": None}, "no object", {"output": {"choices": [{"id": "0"}]}, "at": "first"}]
    events += [{"output": {"choices": [{"id": str(number)}]}, "at": number} for number in range(count)]
    record = {"scores": {str(number): number for number in range(count)}, "events": events}
    started = time.process_time()
    made = rows(f"shape: [{{entries: scores}}, {{match: call, among: events, by: {by}, to: key}}]", record)
    assert time.process_time() - started < 2, "half a million searches took far longer"
    assert [row["call"]["at"] for row in made] == ["first", *range(1, count)]


def test_an_object_is_found_among_those_of_its_own_record() -> None:
    said = "shape: [{match: call, among: events, by: call.id, to: wanted}]"
    listed = [{"call": {"id": 1}, "at": "a"}, {"call": {"id": [2]}, "at": "b"}, {"call": {"id": "1"}, "at": "c"}]
    records = [{"wanted": 1, "events": listed}, {"wanted": "1", "events": listed}, {"wanted": 1, "events": []}]
    records += [{"wanted": [2], "events": listed}, {"wanted": " ", "events": listed}, {"wanted": 1, "events": "text"}]
    found = [row["call"] and row["call"]["at"] for row in rows(said, *records)]
    assert found == ["a", "c", None, None, None, None]


def test_a_place_that_no_list_has_is_blank() -> None:
    paths = [f"a.{'9' * digits}" for digits in (2, 9, 10, 5_000)]
    assert [value_at({"a": [5]}, path) for path in ("a.0", "a.00", *paths)] == [5, 5, None, None, None, None]


def test_deep_paths_are_columns_too() -> None:
    raw = b'{"i": {"a.b": {"c": 5}}, "r": "A", "s": {"t": {"u": 1, "v": 2}}}'
    mapping = Mapping(columns={"i.a.b.c": "item", "r": "rater", "s.t.u": "score"}, constants={"criterion": "x"})
    parsed = parse_ratings([("x.jsonl", raw)], mapping)
    assert parsed.problems.sentences() == []
    assert [(row.item, row.score) for row in parsed.rows] == [("5", 1.0)]


def test_a_sum_with_an_unknown_word_is_refused_and_gives_no_score() -> None:
    said = "shape: [{total: score, of: severity, by: [item], weights: {major: 5, minor: 1}}]"
    made, problems = shaped(
        said,
        {"item": "a", "severity": "Major"},
        {"item": "a", "severity": "grave"},
        {"item": "b", "severity": "minor"},
        {"item": "b", "severity": "minor"},
    )
    assert made == [{"item": "b", "score": 2}]
    assert problems.sentences() == [
        "x.jsonl, line 2, severity: found “grave”; expected one of major, minor in severity."
    ]


def test_a_sum_of_numbers_is_exact() -> None:
    said = "shape: [{total: score, of: weight, by: [item]}]"
    assert rows(said, *[{"item": "a", "weight": weight} for weight in (0.1, "0.2", None, 0.3)]) == [
        {"item": "a", "score": 0.6}
    ]
    assert "expected a number in weight" in refused(said, {"item": "a", "weight": "1e9"})


def test_a_digest_is_one_for_equal_values_and_a_blank_is_no_value() -> None:
    said = "shape: [{digest: id, of: [a, b]}]"
    first, second, third = (made["id"] for made in rows(said, {"a": "x"}, {"b": " ", "a": "x"}, {"a": "x", "b": "y"}))
    assert first == second != third
    assert "expected a value in a or b" in refused(said, {"a": "", "b": None})
    numbers = [made["id"] for made in rows(said, {"a": 1}, {"a": "1"}, {"a": 1.0}, {"a": " 1"}, {"a": True})]
    assert len(set(numbers[:3])) == 1 and len(set(numbers)) == 3  # a CSV file has texts where a JSON file has numbers


def test_marks_become_spans_of_the_text_without_them() -> None:
    said = "shape: [{spans: evidence, of: {a: source, b: answer}, severity: s}, {keep: [evidence]}]"
    record = {"a": "ما <v>هذا</v>؟", "b": "</v>x<v>👩‍🔬</v><v></v> y<v>z", "s": "Major"}
    assert rows(said, record) == [
        {
            "evidence": [
                {"field": "source", "start": 3, "end": 6, "quote": "هذا", "severity": "Major"},
                {"field": "answer", "start": 1, "end": 4, "quote": "👩‍🔬", "severity": "Major"},
            ]
        }
    ]


@pytest.mark.parametrize("turn", ["Hi", {"role": "user"}, {"role": "user", "content": 3}])
def test_a_transcript_needs_who_speaks_and_the_words(turn: Any) -> None:
    assert "expected turns with a speaker and a text in a" in refused("shape: [{transcript: {t: a}}]", {"a": [turn]})


def test_an_asterisk_keeps_what_is_not_blank() -> None:
    given = [{"a": value} for value in ("x", "", None, 0, " ", ["b"])]
    assert rows('shape: [{where: {a: "*"}}]', *given) == [{"a": "x"}, {"a": 0}, {"a": ["b"]}]
