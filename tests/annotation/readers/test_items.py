"""Items: turns or named fields, one language, an id; everything else is an attribute and nothing is lost."""

import json

import pytest

from annotation.readers.guessing import guess_mapping
from annotation.readers.items import ItemRow, ParsedItems, content_digest, parse_items
from annotation.readers.mapping import Mapping
from annotation.readers.reading import peek

TURNS = [{"role": "User", "content": "Hi"}, {"role": "assistant", "content": "Hello", "name": "Ann"}]


def parse(*records: dict[str, object], mapping: Mapping | None = None, name: str = "a.jsonl") -> ParsedItems:
    raw = "\n".join(json.dumps(record) for record in records).encode()
    sample = peek(name, raw)
    guessed = guess_mapping("dataset", sample.columns, [row.fields for row in sample.rows])
    return parse_items([(name, raw)], guessed.updated(mapping or Mapping()))


def only(*records: dict[str, object], mapping: Mapping | None = None) -> ItemRow:
    parsed = parse(*records, mapping=mapping)
    assert parsed.problems.sentences() == []
    (item,) = parsed.items
    return item


def codes(parsed: ParsedItems) -> list[tuple[str, int | None]]:
    return [(problem.code, problem.line) for problem in parsed.problems]


def test_an_item_with_turns() -> None:
    item = only({"id": 7, "lang": "pt_br", "model": "m1", "messages": TURNS, "topic": {"a": [1]}, "subject": "S"})
    assert item == ItemRow(
        external_id="7",
        language="pt-BR",
        generator="m1",
        scenario=None,
        title="S",
        turns=[{"speaker": "user", "text": "Hi"}, {"speaker": "assistant", "name": "Ann", "text": "Hello"}],
        fields={},
        attributes={"topic": {"a": [1]}},
        content_warning="",
        line=1,
        file="a.jsonl",
    )


def test_an_item_with_named_fields() -> None:
    item = only({"id": "x", "language": "et", "question": "Miks?", "answer": "", "passages": ["a", "b"]})
    assert item.fields == {"question": "Miks?", "answer": "", "passages": ["a", "b"]}
    assert item.turns == []


def test_attributes_are_spread_and_renamed() -> None:
    record = {"id": "x", "language": "et", "answer": "A b", "metadata": {"level": 1, "id": 2}, "diff": "hard"}
    item = only(record, mapping=Mapping(columns={"diff": "attributes.difficulty"}))
    assert item.attributes == {"level": 1, "metadata.id": 2, "difficulty": "hard"}


def test_turns_in_a_cell_may_be_json() -> None:
    raw = b'id,language,turns\n1,et,"[{""speaker"": ""A"", ""text"": ""x\\r\\ny""}]"\n'
    parsed = parse_items([("a.csv", raw)], guess_mapping("dataset", ["id", "language", "turns"]))
    assert parsed.items[0].turns == [{"speaker": "a", "text": "x\r\ny"}]


def test_turns_in_one_text_are_split_at_the_prefixes_that_the_mapping_gives() -> None:
    text = "USER: Hi there\nNote: two\nlines\nLAMDA:Hello USER: you\n"
    record = {"id": "x", "language": "en", "turns": text}
    item = only(record, mapping=Mapping(speakers={"USER": "user", "LAMDA": "agent"}))
    assert item.turns == [
        {"speaker": "user", "text": "Hi there\nNote: two\nlines"},
        {"speaker": "agent", "text": "Hello USER: you\n"},
    ]
    assert codes(parse(record)) == [("turns", 1)]
    assert codes(parse({**record, "turns": "Hi USER: x"}, mapping=Mapping(speakers={"USER": "user"}))) == [("turns", 1)]


@pytest.mark.parametrize(
    ("turns", "place"),
    [
        ([{"role": "user"}], "turn 1"),
        ([*TURNS, {"content": "x"}], "turn 3"),
        ([{"role": " ", "content": "x"}], "turn 1"),
        ([{"role": "user", "content": ["x"]}], "turn 1"),
        (["hello"], "turn 1"),
        ("[1", "turns"),
        ({"0": "x"}, "turns"),
    ],
)
def test_turns_that_say_no_speaker_or_text_are_refused(turns: object, place: str) -> None:
    parsed = parse({"id": "x", "language": "en", "turns": turns}, mapping=Mapping(columns={"turns": "turns"}))
    assert [(problem.code, problem.line, problem.column) for problem in parsed.problems] == [("turns", 1, place)]


def test_keys_of_turns_that_are_not_kept_are_counted() -> None:
    turns = [{"role": "user", "content": "x", "at": 1}, {"role": "agent", "content": "y", "at": 2, "tone": "dry"}]
    assert parse({"id": "x", "language": "en", "turns": turns}).report.dropped == {"at": 2, "tone": 1}


def test_an_item_without_content_is_refused_unless_the_mapping_keeps_it() -> None:
    record = {"id": "x", "language": "en", "turns": [], "answer": "  "}
    assert codes(parse(record)) == [("empty_item", 1)]
    kept = parse(record, mapping=Mapping(allow_empty=True))
    assert (len(kept.items), kept.report.empty, kept.report.empty_at) == (1, 1, ["a.jsonl, line 1"])


@pytest.mark.parametrize(
    ("tag", "code"), [("", "no_language"), (None, "no_language"), ("jp", "language"), (3, "language")]
)
def test_a_language_is_needed_and_known(tag: object, code: str) -> None:
    parsed = parse({"id": "x", "language": tag, "answer": "a b"})
    assert codes(parsed) == [(code, 1)]
    assert parsed.problems.shown[0].column == "language"


def test_a_constant_gives_what_no_column_does() -> None:
    assert only({"id": "x", "answer": "a b"}, mapping=Mapping(constants={"language": "ar"})).language == "ar"
    parsed = parse_items([("a.csv", b"id,answer\n1,a\n")], Mapping(columns={"id": "id", "answer": "answer"}))
    assert codes(parsed) == [("no_column", None)]
    assert "no language" in str(parsed.problems.shown[0])


def test_an_id_said_twice_is_one_item_or_a_problem() -> None:
    one, other = {"id": "x", "language": "en", "answer": "a b"}, {"id": "x", "language": "en", "answer": "c d"}
    same = parse(one, one)
    assert (len(same.items), same.report.collapsed, same.report.read) == (1, 1, 2)
    contradiction = parse(one, one, other)
    assert codes(contradiction) == [("duplicate_id", 3)]
    assert "a.jsonl, line 1" in contradiction.problems.shown[0].found
    assert contradiction.report.read == 3


def test_ids_that_a_spreadsheet_has_rounded_are_refused() -> None:
    base = {"language": "en", "answer": "a b"}
    parsed = parse({"id": "2.9E+15", **base}, {"id": 2.9e15, **base}, {"id": "2e5x", **base})
    assert codes(parsed) == [("mangled_id", 1), ("mangled_id", 2)]


def test_items_without_an_id_get_one_from_their_content_wherever_they_stand() -> None:
    one, other = {"language": "en", "answer": "a b"}, {"language": "en", "answer": "c d"}
    there = parse(one, other, one)
    back = parse(one, one, other)
    ids = [item.external_id for item in there.items]
    assert there.report.derived_ids == 3
    assert sorted(ids) == sorted(item.external_id for item in back.items)
    assert ids[2] == f"{ids[0]}-2"
    assert ids[0] == f"item-{content_digest(there.items[0])[:16]}"


def test_columns_that_give_one_field_must_agree() -> None:
    mapping = Mapping(columns={"model": "generator", "_metadata.model": "generator"})
    record = {"id": "x", "language": "en", "answer": "a b", "model": "m1", "_metadata": {"model": "m1", "k": 1}}
    assert only(record, mapping=mapping).attributes == {"k": 1}
    parsed = parse({**record, "_metadata": {"model": "m2"}}, mapping=mapping)
    assert codes(parsed) == [("ambiguous", 1)]
    assert "“m1” in model and “m2” in _metadata.model" in parsed.problems.shown[0].found


def test_a_column_name_with_a_dot_is_a_column() -> None:
    raw = b"Input.story_id,text,lang\n1,hello,en\n"
    parsed = parse_items(
        [("a.csv", raw)], Mapping(columns={"Input.story_id": "id", "text": "answer", "lang": "language"})
    )
    assert (parsed.items[0].external_id, parsed.items[0].attributes) == ("1", {})


def test_ratings_inside_items_are_counted_and_are_no_attributes() -> None:
    record = {"id": "x", "language": "en", "answer": "a b", "fluency_annotations": [{"annotator": "A", "value": 2}]}
    parsed = parse(record)
    assert parsed.report.embedded_ratings == 1
    assert parsed.items[0].attributes == {}


def test_a_source_is_a_text_or_a_code_by_what_it_holds() -> None:
    text = guess_mapping("dataset", ["id", "source"], [{"id": "1", "source": "a whole sentence"}])
    code = guess_mapping("dataset", ["id", "source"], [{"id": "1", "source": "reddit"}])
    assert (text.columns.get("source"), code.columns.get("source")) == ("source", None)
