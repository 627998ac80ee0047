"""What is said about columns: called by e-mail addresses, left out, kept, and looked for in vain."""

import json

from annotation.readers.items import parse_items
from annotation.readers.mapping import Mapping, note_on_rater_addresses
from annotation.readers.problems import loose_key, nearest_name
from annotation.readers.ratings import parse_ratings

WIDE = b"id,language,text,maria@ut.ee,ann2\nx,et,Tere,1,2\n"
ITEMS = Mapping(columns={"id": "id", "language": "language", "text": "answer"})
LONG = b"item,raiter,criterion,score,why\nx,r1,fluency,2,odd\n"
LONG_NAMES = {"item": "item", "rater": "rater", "criterion": "criterion", "score": "score"}


def items_notes(mapping: Mapping) -> list[str]:
    return parse_items([("wide.csv", WIDE)], mapping).problems.notes


def test_a_column_called_by_an_email_address_is_noted_with_what_to_do() -> None:
    first, kept = items_notes(ITEMS)
    assert first.startswith("wide.csv: the names of these columns are e-mail addresses: “maria@ut.ee”. Before")
    assert 'values: {rater: {"maria@ut.ee": rater-1}}' in first and 'ignore: ["maria@ut.ee"]' in first
    assert kept == "Columns kept as attributes of the items: maria@ut.ee, ann2."


def test_nothing_is_noted_once_the_mapping_has_dealt_with_it() -> None:
    left_out = items_notes(ITEMS.updated(Mapping(ignore=("maria@*",))))
    renamed = items_notes(ITEMS.updated(Mapping(columns={"maria@ut.ee": "attributes.rater_1"})))
    coded = items_notes(ITEMS.updated(Mapping(values={"rater": {"maria@ut.ee": "rater-1"}})))
    assert not any("addresses" in note for note in (*left_out, *renamed, *coded))
    assert "Columns left out, as the mapping says: maria@ut.ee." in left_out
    still = items_notes(ITEMS.updated(Mapping(columns={"maria@ut.ee": "attributes.m@ut.ee"})))
    assert any("addresses" in note for note in still)


def test_keys_inside_of_objects_are_columns_too() -> None:
    raw = json.dumps([{"id": "x", "language": "et", "text": "a", "scores": {"anna.k@ut.ee": 1}}]).encode()
    (note, _kept) = parse_items([("a.json", raw)], ITEMS).problems.notes
    assert "“scores.anna.k@ut.ee”" in note


def test_raters_called_by_address_are_noted() -> None:
    assert note_on_rater_addresses(["rater-1", "Annotator5", "slot 3", "Marta González"]) == []
    (note,) = note_on_rater_addresses(["rater-1", "x@y.ee", "r@example.org", "x@y.ee"])
    assert note.startswith("These raters are called by e-mail addresses: “x@y.ee”, “r@example.org”.")
    assert 'values: {rater: {"x@y.ee": rater-1}}' in note


def test_a_column_that_the_file_lacks_is_named_with_what_may_be_meant() -> None:
    (problem,) = parse_ratings([("r.csv", LONG)], Mapping(columns=LONG_NAMES)).problems
    assert str(problem).startswith("r.csv: found no column “rater”, which is to give the rater; expected did you mean")
    assert "“raiter”?" in problem.expected


def test_columns_that_nothing_takes_and_that_no_file_has_are_noted() -> None:
    mapping = Mapping(columns={**LONG_NAMES, "raiter": "rater", "whyy": "rationale"})
    parsed = parse_ratings([("r.csv", LONG)], mapping)
    assert not parsed.problems
    assert parsed.problems.notes == [
        "Columns that are not used and not stored: why.",
        "Columns that the mapping names and no file has: whyy (did you mean why?).",
    ]


def test_files_of_one_import_may_have_different_columns() -> None:
    other = b"item,reviewer,criterion,score\ny,r2,fluency,1\n"
    mapping = Mapping(columns={**LONG_NAMES, "raiter": "rater", "reviewer": "rater", "why": "rationale"})
    parsed = parse_ratings([("r.csv", LONG), ("s.csv", other)], mapping)
    assert (parsed.problems.sentences(), parsed.problems.notes, len(parsed.rows)) == ([], [], 2)


def test_what_is_near() -> None:
    assert nearest_name("Fluencey", ["coherence", "fluency"]) == "fluency"
    assert nearest_name("zzz", ["coherence", "fluency"]) == ""
    assert loose_key("Item_007.0") == loose_key("item-7") != loose_key("item-70")
