"""What we write, our importer reads back to the same content, in every format and whatever the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.stats.core.identifiers import normal_identifier
from annotation.exports import OWN, SHARED, item_columns
from annotation.readers.guessing import guess_kind, propose_mapping
from annotation.readers.items import NAMED_FIELDS, ItemRow, content_digest, parse_items
from annotation.readers.mapping import Mapping
from annotation.readers.ratings import parse_ratings
from annotation.writers.formats import FORMATS, pieces
from annotation.writers.tables import Table

pytest.importorskip("pyarrow")
MARKED = st.sampled_from(
    ["", "=", "+1", "-", "@a", "\t", "\r", "\r\n", "\n", "'", "''=", "＝", "\ufeff", "\u202e", "_x000D_"]
)
PLAIN = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
LINES = st.sampled_from(
    ["", "a,,,,,,,\nb,,,,,,,", '"', '""\n"', "1\u200d👩‍🔬", "e\u0301ـ", "2.9E+15", "N/A", "[1]", '{"a": 1}', "\u2028"]
)
TEXT = st.builds(lambda *parts: "".join(parts), MARKED, PLAIN, LINES)
KEY = TEXT.map(normal_identifier).filter(lambda text: bool(text) and not text.endswith("2.9E+15"))
SAID = TEXT.filter(lambda text: bool(text.strip()))
SPEAKER = st.sampled_from(["user", "agent", "=bot"])
TURN = st.fixed_dictionaries({"speaker": SPEAKER, "text": TEXT}, optional={"name": SAID})
JSON = st.recursive(
    TEXT | st.integers(-(2**53), 2**53) | st.booleans() | st.none(), lambda inner: st.lists(inner, max_size=2)
)
ATTRIBUTE = st.sampled_from(["difficulty", "=key", "a b", "status", "x.y"])
ITEM = st.fixed_dictionaries(
    {
        "generator": st.none() | KEY,
        "scenario": st.none() | KEY,
        "title": TEXT,
        "turns": st.lists(TURN, min_size=1, max_size=2),
        "fields": st.dictionaries(
            st.sampled_from([name for name in NAMED_FIELDS if name != "passages"]), TEXT, max_size=2
        ),
        "passages": st.none() | st.lists(TEXT, max_size=2),
        "attributes": st.dictionaries(ATTRIBUTE, JSON, max_size=2),
        "content_warning": TEXT,
    }
)
READING = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def written(kind: str, table: Table) -> list[tuple[str, bytes]]:
    return [(f"file.{kind}", b"".join(pieces(table, kind)))]


def item(number: int, parts: dict[str, Any]) -> ItemRow:
    passages = {} if parts["passages"] is None else {"passages": parts["passages"]}
    said = {**parts, "fields": {**parts["fields"], **passages}}
    del said["passages"]
    return ItemRow(external_id=f"d{number}", language="et", line=number, **said)


def table_of(items: Sequence[ItemRow]) -> Table:
    fields = [name for name in NAMED_FIELDS if any(name in row.fields for row in items)]
    rows = [
        (
            row.external_id, row.language, row.generator or "", row.scenario or "", row.title, row.turns,
            *(row.fields.get(name) for name in fields), row.content_warning, row.attributes,
        )
        for row in items
    ]  # fmt: skip
    return Table("items", item_columns(fields), rows)


@pytest.mark.parametrize("kind", FORMATS)
@READING
@given(parts=st.lists(ITEM, min_size=1, max_size=3))
def test_items_come_back_as_they_were(kind: str, parts: list[dict[str, Any]]) -> None:
    items = [item(number, each) for number, each in enumerate(parts)]
    files = written(kind, table_of(items))
    assert guess_kind(files) == "dataset"
    parsed = parse_items(files, propose_mapping("dataset", files, Mapping()))
    assert parsed.problems.sentences() == []
    assert [row.external_id for row in parsed.items] == [row.external_id for row in items]
    for came, went in zip(parsed.items, items, strict=True):
        assert content_digest(came) == content_digest(went), (came, went)


RATING = st.tuples(
    st.sampled_from(["d1", "d2"]), KEY, st.sampled_from(["fluency", "coherence"]), st.none() | st.integers(-4, 4), TEXT
)
COLUMNS = (*SHARED, *OWN)


def rating(said: tuple[str, str, str, int | None, str]) -> tuple[Any, ...]:
    item_id, rater, criterion, score, rationale = said
    is_na = score is None
    known = {
        "dataset": "=D", "item": item_id, "language": "et", "generator": "@g", "rubric": "quality",
        "criterion": criterion, "rater": rater, "rater_kind": "annotator", "status": "na" if is_na else "scored",
        "score": None if score is None else score / 2, "not_applicable": is_na, "rationale": rationale,
        "seconds": 1.5, "campaign": "-C",
    }  # fmt: skip
    return tuple(known.get(column.name) for column in COLUMNS)


@pytest.mark.parametrize("kind", FORMATS)
@READING
@given(said=st.lists(RATING, min_size=1, max_size=4, unique_by=lambda row: row[:3]))
def test_ratings_come_back_as_they_were(kind: str, said: list[tuple[str, str, str, int | None, str]]) -> None:
    files = written(kind, Table("ratings", COLUMNS, [rating(each) for each in said]))
    assert guess_kind(files) == "ratings"
    parsed = parse_ratings(files, propose_mapping("ratings", files, Mapping()))
    assert parsed.problems.sentences() == []
    came = [
        (row.item, row.rater, row.criterion, row.score, row.applicable, row.rationale, row.seconds)
        for row in parsed.rows
    ]
    assert came == [
        (item_id, rater, criterion, None if score is None else score / 2, score is not None, rationale, 1.5)
        for item_id, rater, criterion, score, rationale in said
    ]
