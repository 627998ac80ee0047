"""Ratings: one answer per rater, item and criterion; blank is missing, N/A is said, and nothing is silently dropped."""

import pytest

from annotation.readers.guessing import guess_mapping
from annotation.readers.mapping import Mapping
from annotation.readers.ratings import ParsedAnswers, RatingRow, parse_ratings

LONG = Mapping(columns={"i": "item", "r": "rater", "c": "criterion", "s": "score"})


def parse(*rows: str, mapping: Mapping = LONG, header: str = "i,r,c,s") -> ParsedAnswers[RatingRow]:
    return parse_ratings([("a.csv", "\n".join([header, *rows]).encode())], mapping)


def codes(parsed: ParsedAnswers[RatingRow]) -> list[tuple[str, int | None, str | None]]:
    return [(problem.code, problem.line, problem.column) for problem in parsed.problems]


@pytest.mark.parametrize(
    ("cell", "score", "applicable", "missing"),
    [
        ("2", 2.0, True, False),
        ("2.0", 2.0, True, False),
        (" -1 ", -1.0, True, False),
        ("0", 0.0, True, False),
        ("", None, True, True),
        ("  ", None, True, True),
        ("N/A", None, False, False),
        ("n/a", None, False, False),
    ],
)
def test_a_score_is_a_number_or_na_or_missing(cell: str, score: float | None, applicable: bool, missing: bool) -> None:
    (row,) = parse(f"x,A,fluency,{cell}").rows
    assert (row.score, row.applicable, row.missing) == (score, applicable, missing)


@pytest.mark.parametrize("cell", ["Yes", "NA", "nan", "inf", "2e0", '"2,5"', "٣", "0x2", "1_000", "2-3"])
def test_anything_else_is_refused(cell: str) -> None:
    parsed = parse(f"x,A,fluency,{cell}", "y,A,fluency,1")
    assert codes(parsed) == [("not_a_number", 2, "s")]
    assert (parsed.read, len(parsed.rows), parsed.refused) == (2, 1, 1)


def test_words_get_their_values_from_the_mapping() -> None:
    mapping = LONG.updated(Mapping(values={"score": {"Yes": "1", "2": "N/A", "?": ""}}))
    rows = parse("x,A,c,Yes", "y,A,c,2.0", "z,A,c,2", "w,A,c,?", mapping=mapping).rows
    assert [(row.score, row.applicable, row.missing) for row in rows[:1]] == [(1.0, True, False)]
    assert rows[1].score == 2.0, "the map says 2, the file says 2.0: text is compared with text"
    assert not rows[2].applicable
    assert rows[3].missing


def test_repetitions_collapse_also_across_files_with_other_names() -> None:
    mapping = LONG.updated(Mapping(columns={"reviewer": "rater"}))
    files = [("a.csv", b"i,r,c,s\nx,A,c,2\ny,A,c,\n"), ("b.csv", b"reviewer,i,c,s\nA,x,c,2.0\nA,y,c,\nB,y,c,1\n")]
    parsed = parse_ratings(files, mapping)
    assert parsed.problems.sentences() == []
    counts = parsed.counts()
    assert (parsed.read, parsed.collapsed, parsed.collapsed_blank, counts.missing, counts.scored) == (5, 2, 1, 1, 2)


@pytest.mark.parametrize("second", ["x,A,c,3", "x,A,c,", "x,A,c,N/A"])
def test_contradictions_are_told_with_both_lines(second: str) -> None:
    parsed = parse("x,A,c,2", "x,B,c,2", second)
    assert codes(parsed) == [("conflict", 4, "s")]
    assert "line 2 has 2" in parsed.problems.shown[0].found
    assert len(parsed.rows) == 2


def test_a_rationale_that_only_one_export_has_is_kept() -> None:
    header = "i,r,c,s,rationale"
    mapping = LONG.updated(Mapping(columns={"rationale": "rationale"}))
    (row,) = parse("x,A,c,2,", "x,A,c,2,because", header=header, mapping=mapping).rows
    assert row.rationale == "because"
    assert codes(parse("x,A,c,2,so", "x,A,c,2,because", header=header, mapping=mapping)) == [("conflict", 3, "s")]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (",A,c,1", ("no_item", 2, "i")),
        ("x, ,c,1", ("no_rater", 2, "r")),
        ("x,A,,1", ("no_criterion", 2, "c")),
        ("2.9E+15,A,c,1", ("mangled_id", 2, "i")),
        ("x,1e7,c,1", ("mangled_id", 2, "r")),
        ("x,A,c", ("too_few_cells", 2, None)),
    ],
)
def test_a_row_that_names_nobody_or_nothing_is_refused(row: str, fault: tuple[str, int, str | None]) -> None:
    parsed = parse(row)
    assert codes(parsed) == [fault]
    assert (parsed.read, parsed.refused) == (1, 1)


def test_a_file_without_a_needed_column_is_one_problem() -> None:
    parsed = parse("x,A,1", "y,A,2", header="i,r,s")
    assert codes(parsed) == [("no_column", None, None)]
    mapping = LONG.updated(Mapping(constants={"criterion": "irony"}))
    assert [row.criterion for row in parse("x,A,1", header="i,r,s", mapping=mapping).rows] == ["irony"]


def test_one_column_per_criterion() -> None:
    mapping = Mapping(
        columns={"i": "item", "r": "rater", "f": "score.fluency", "c": "score.coherence", "why": "rationale.coherence"}
    )
    parsed = parse("x,A,2,,so", "y,A,?,1,", mapping=mapping, header="i,r,f,c,why")
    assert [(row.item, row.criterion, row.score, row.rationale) for row in parsed.rows] == [
        ("x", "fluency", 2.0, ""),
        ("x", "coherence", None, "so"),
        ("y", "coherence", 1.0, ""),
    ]
    assert codes(parsed) == [("not_a_number", 3, "f")]
    assert (parsed.read, parsed.counts().missing, parsed.refused) == (4, 1, 1)


def test_ratings_inside_items() -> None:
    raw = b'[{"id": "x", "m": {"fluency": [{"annotator": "A", "value": 2.0}, {"annotator": "B"}]}}, {"id": "y"}]'
    mapping = Mapping(columns={"id": "item", "m.fluency": "ratings.fluency"})
    parsed = parse_ratings([("a.json", raw)], mapping)
    assert [(row.rater, row.score, row.missing) for row in parsed.rows] == [("A", 2.0, False), ("B", None, True)]
    broken = parse_ratings([("a.json", raw.replace(b'{"annotator": "B"}', b"3"))], mapping)
    assert codes(broken) == [("shape", 1, "[0].m.fluency")]


def test_json_records_may_leave_out_what_is_missing() -> None:
    raw = b'{"i": 1, "r": "A", "c": "f"}\n{"i": 2, "r": "A", "c": "f", "s": 1}\n{"i": 2, "r": "B", "c": "f", "s": true}'
    parsed = parse_ratings([("a.jsonl", raw)], LONG)
    assert [(row.item, row.score, row.missing) for row in parsed.rows] == [("1", None, True), ("2", 1.0, False)]
    assert codes(parsed) == [("not_a_number", 3, "s")]


def test_the_names_that_studies_use_are_known() -> None:
    columns = [
        "calibration_reviewer_name",
        "conversation_external_id",
        "rating_category_name",
        "rating_value",
        "rating_max",
    ]
    assert guess_mapping("ratings", columns).columns == {
        "conversation_external_id": "item",
        "calibration_reviewer_name": "rater",
        "rating_category_name": "criterion",
        "rating_value": "score",
        "rating_max": "scale_max",
    }
    assert guess_mapping("ratings", ["id", "item_id", "Annotator", "label"]).columns == {
        "item_id": "item",
        "Annotator": "rater",
        "label": "score",
    }
