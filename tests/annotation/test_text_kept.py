"""Text byte for byte: in by every kind of file, in the database, and out by every kind of file."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annotation import exports
from annotation.imports import lifecycle, opening
from annotation.models import Dataset, Item
from annotation.readers.guessing import propose_mapping
from annotation.readers.items import parse_items
from annotation.readers.mapping import Mapping
from annotation.writers.formats import FORMATS, pieces
from tests.annotation.readers.test_text import KINDS, TEXTS
from tests.cast import Cast

TEXT = Mapping(columns={"text": "answer"}, constants={"language": "et"}, ignore=("n",), line_breaks=True)
# Other control characters have no place in a workbook, and openpyxl takes what begins with = for a formula.
plain = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
said = st.builds("".join, st.lists(st.sampled_from([*TEXTS.values(), "'", "\u061c", "\u2066"]) | plain, max_size=4))


@pytest.mark.parametrize("name", KINDS)
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(texts=st.lists(said.filter(lambda text: text.strip() and not text.startswith("=")), min_size=1, max_size=6))
def test_text_is_kept_from_file_to_file(cast: Cast, name: str, texts: list[str]) -> None:
    opened = opening.open_import(
        project=cast.kassa, kind="dataset", files=[(name, KINDS[name]([*TEXTS.values(), *texts]))], mapping=TEXT
    )
    dataset = Dataset.objects.get(file_import=lifecycle.carry_out(file_import=opened))
    expected = [*TEXTS.values(), *texts]
    assert [item.fields["answer"] for item in Item.objects.of(dataset).order_by("ordinal")] == expected
    for kind in FORMATS:
        files = [(f"out.{kind}", b"".join(pieces(exports.items(dataset), kind)))]
        parsed = parse_items(files, propose_mapping("dataset", files, Mapping()))
        assert parsed.problems.sentences() == []
        assert [item.fields["answer"] for item in parsed.items] == expected, kind
