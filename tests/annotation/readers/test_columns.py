"""What stands in the columns is counted over all rows, while they are read."""

from __future__ import annotations

from annotation.readers.columns import MOST_DISTINCT, TableFacts
from annotation.readers.items import parse_items
from annotation.readers.mapping import Mapping
from annotation.readers.ratings import parse_ratings

SAID = Mapping(columns={name: name for name in ("item", "rater", "criterion", "score")}, ignore=("note",))


def test_every_row_of_every_file_is_counted_once() -> None:
    head = b"item,rater,criterion,score,note\n"
    rows = [f"i{n},A{n % 3},fluency,{'' if n % 4 == 0 else n % 7},\n".encode() for n in range(3_000)]
    facts = TableFacts()
    files = [("a.csv", head + b"".join(rows)), ("b.csv", head + b"i1,A9,tone,1,so\n")]
    for _again in range(2):
        parsed = parse_ratings(files, SAID, facts=facts)
        assert parsed.read == 3_001
        item, rater, criterion, score, note = facts.columns(SAID)
        assert (item.filled, item.distinct, item.is_many) == (3_001, MOST_DISTINCT, True)
        assert (rater.counts["A0"], rater.distinct) == (1_000, 4)
        assert (score.blank, score.filled, sum(score.counts.values())) == (750, 2_251, 2_251)
        assert (criterion.examples, criterion.most) == (["fluency", "tone"], [("fluency", 3_000)])
        assert (note.target, note.blank, note.filled) == ("ignore", 3_000, 1)


def test_objects_are_opened_and_lists_counted_by_their_length() -> None:
    facts = TableFacts()
    text = (
        b'{"id": "a", "language": "et", "answer": "x", "m": {"k": 1, "l": [1, 2]}}\n{"language": "et", "answer": 2}\n'
    )
    parse_items(
        [("a.jsonl", text)], Mapping(columns={"id": "id", "language": "language", "answer": "answer"}), facts=facts
    )
    assert [(each.name, dict(each.counts)) for each in facts.columns(Mapping())] == [
        *(("id", {"a": 1}), ("language", {"et": 2}), ("answer", {"x": 1, "2": 1})),
        *(("m.k", {"1": 1}), ("m.l", {"[2 entries]": 1})),
    ]
