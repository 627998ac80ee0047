"""Files of tools that ran judges elsewhere: what is read of them, and what is refused, with the reason."""

from __future__ import annotations

import json
import re
from io import BytesIO
from typing import Any
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_STORED, ZipFile

import pyarrow as pa
import pytest

from annotation.readers import archives
from annotation.readers.archives import File
from annotation.readers.items import parse_items
from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problems
from annotation.readers.ratings import ParsedAnswers, VerdictRow, parse_ratings, parse_verdicts
from annotation.readers.reading import read_rows
from annotation.readers.studies import StudyImport, known_studies, ready_mapping, recognise, with_constants
from tests.annotation.readers.test_tools import examples

TOOLS = ("inspect-ai", "lm-eval", "promptfoo", "deepeval", "ragas")


def files_of(tool: str) -> list[File]:
    return [(name, text) for name, text in examples(tool).items()]


def parts(files: list[File], kind: str) -> list[tuple[StudyImport, list[File]]]:
    study = recognise(files)
    assert study is not None
    return [(part, own) for part, own in with_constants(study, {"language": "en"}).parts(files) if part.kind == kind]


def verdicts(files: list[File]) -> ParsedAnswers[VerdictRow]:
    ((part, own),) = parts(files, "verdicts")
    return parse_verdicts(own, part.mapping)


def scores(rows: Any) -> list[tuple[Any, ...]]:
    return [(row.item, row.judge, row.criterion, row.score) for row in rows]


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_is_recognised_and_read_without_a_problem(tool: str) -> None:
    study = recognise(files_of(tool))
    assert study is not None
    assert study.name == tool
    for part, own in parts(files_of(tool), "dataset"):
        items = parse_items(own, part.mapping)
        assert items.problems.sentences() == []
        assert items.report.taken == 2
    assert verdicts(files_of(tool)).problems.sentences() == []


def test_inspect_gives_the_call_behind_each_score() -> None:
    rows = verdicts(files_of("inspect-ai")).rows
    assert scores(rows) == [
        ("s1-1", "openai/grader", "fluency", 2),
        ("s1-1", "Inspect scorer", "polite", 1),
        ("s1-1", "Inspect scorer", "complete", 0),
        ("s1-1", "Inspect scorer", "includes", 1),
        ("s2-1", "grader-1", "fluency", 3),
    ]
    assert rows[0].request == ("Rate it from 0 to 3.", "Good. 2", "grader-1", 40, 5, None, 0.5)
    assert rows[4].request == ("Rate it from 0 to 3.", "Fine. 3", "", None, None, None, None)


def test_an_epoch_is_a_repeat_of_an_item_that_is_here() -> None:
    log = json.loads(examples("inspect-ai")["log.json"])
    log["samples"][1] |= {"id": "s1", "epoch": 2}
    files: list[File] = [("log.json", json.dumps(log).encode())]
    mapping = ready_mapping("verdicts", files)
    assert mapping is not None
    fluency = [row for row in parse_verdicts(files, mapping).rows if row.criterion == "fluency"]
    assert [(row.item, row.repeat, row.score) for row in fluency] == [("s1", 0, 2), ("s1", 1, 3)]


def test_lm_eval_names_the_judge_by_the_results_file_of_its_date() -> None:
    rows = verdicts(files_of("lm-eval")).rows
    assert scores(rows)[:2] == [("s1", "judge-1", "fluency", 2), ("s1", "judge-1", "coherence", 1)]
    assert json.loads(rows[0].prompt) == [{"role": "user", "content": "Rate it from 0 to 3."}]
    assert (rows[0].reply, rows[3].missing) == ("Good. 2", True)
    other = [(name.replace("results_2026", "results_2025"), text) for name, text in files_of("lm-eval")]
    problem, *_others = verdicts(other).problems
    assert (problem.column, problem.code) == ("judge", "no_judge")


def test_promptfoo_leaves_out_what_its_grader_could_not_grade() -> None:
    parsed = verdicts(files_of("promptfoo"))
    assert scores(parsed.rows) == [
        ("0-0", "openai:grader", "clarity", 0.8),
        ("0-0", "promptfoo grader", "contains", 1),
        ("1-0", "promptfoo grader", "contains", 0),
    ]
    assert parsed.rows[0].request[3:5] == (40, 10)
    # What stands beside a part that is used is named, too; what is used is not.
    named = set(parsed.problems.left_out)
    assert {"gradingResult.componentResults.tokensUsed.total", "response.output", "latencyMs"} <= named
    assert not {"gradingResult.componentResults.tokensUsed.prompt", "gradingResult.componentResults.score"} & named
    assert any("1 records are left out" in note for note in parsed.problems.notes)


def test_deepeval_gives_what_each_metric_cost() -> None:
    parsed = verdicts(files_of("deepeval"))
    assert scores(parsed.rows) == [
        ("s1", "judge-1", "Clarity [GEval]", 0.8),
        ("s2", "judge-1", "Clarity [GEval]", 0.4),
    ]
    assert parsed.rows[0].request == ("", "", "", 40, 10, 0.0021, None)
    wrapped = json.dumps({"testRunData": json.loads(examples("deepeval")["test_run.json"]), "testRunLink": None})
    assert scores(verdicts([("run.json", wrapped.encode())]).rows) == scores(parsed.rows)


def test_a_blank_of_ragas_is_missing_and_its_rows_need_an_item_where_items_are_here() -> None:
    parsed = verdicts(files_of("ragas"))
    assert (parsed.read, parsed.missing) == (4, 1)
    table = "user_input,response,item,faithfulness,my_metric\nq,a,s1,,3\nq,b,s2,0.5,2\n"
    files: list[File] = [("ragas.csv", table.encode())]
    mapping = ready_mapping("verdicts", files)
    assert mapping is not None
    own = parse_verdicts(files, mapping)
    assert [(row.item, row.score) for row in own.rows] == [("s1", None), ("s2", 0.5)]
    assert "my_metric" in own.problems.left_out


def test_mlflow_tells_judges_from_people_and_leaves_out_what_is_no_feedback() -> None:
    parsed = verdicts(files_of("mlflow"))
    assert scores(parsed.rows) == [
        ("tr-1", "openai:/judge-1", "clarity", 0.8),
        ("tr-2", "openai:/judge-1", "clarity", 0.4),
    ]
    assert parsed.rows[0].request[3:] == (40, 5, 0.002, None)
    ((part, own),) = parts(files_of("mlflow"), "ratings")
    people = parse_ratings(own, part.mapping).rows
    assert [(row.item, row.rater, row.criterion, row.score) for row in people] == [
        ("tr-1", "mari", "polite", 1),
        ("tr-2", "mari", "polite", 0),
    ]


@pytest.mark.parametrize("tool", ["langfuse", "opentelemetry"])
def test_scores_without_texts_are_read_for_items_that_are_here(tool: str) -> None:
    assert recognise(files_of(tool)) is None
    mapping = ready_mapping("verdicts", files_of(tool))
    assert mapping is not None
    parsed = parse_verdicts(files_of(tool), mapping)
    assert parsed.problems.sentences() == []
    assert [(row.item, row.criterion) for row in parsed.rows] == [("s1", "clarity"), ("s2", "clarity")]
    assert any("1 records are left out" in note for note in parsed.problems.notes)


# --- what is refused -------------------------------------------------------------------------------------------------
def log(text: str = "", **changes: Any) -> list[File]:
    document = json.loads(examples("inspect-ai")["log.json"]) | changes
    return [("log.json", (text or json.dumps(document)).encode())]


def refused(files: list[File]) -> list[str]:
    mapping = next(part.mapping for part in known_studies()["inspect-ai"].imports if part.kind == "verdicts")
    return parse_verdicts(files, mapping).problems.sentences()


def test_another_version_is_refused() -> None:
    assert recognise(log(version=1)) is not None
    sentences = refused(log(version=1))
    assert len(sentences) == 2
    assert "expected 2 in version" in sentences[0]


def test_samples_without_scores_are_counted() -> None:
    samples = json.loads(examples("inspect-ai")["log.json"])["samples"]
    del samples[1]["scores"]
    mapping = ready_mapping("verdicts", log(samples=samples))
    assert mapping is not None
    parsed = parse_verdicts(log(samples=samples), mapping)
    assert (len(parsed.rows), parsed.problems.sentences()) == (4, [])
    assert any("1 records have nothing in scores" in note for note in parsed.problems.notes)


def test_nan_is_refused_inside_a_sample_and_passed_over_elsewhere() -> None:
    text = examples("inspect-ai")["log.json"].decode()
    assert "NaN" in text
    assert refused(log(text)) == []
    (sentence,) = refused(log(text.replace('"time": 0.5', '"time": NaN')))
    assert "NaN" in sentence
    assert "null" in sentence


@pytest.mark.parametrize("tool", ["inspect-ai", "promptfoo", "deepeval"])
def test_a_file_that_was_cut_is_refused_as_a_whole(tool: str) -> None:
    ((name, text), *_more) = examples(tool).items()
    mapping = next(part.mapping for part in known_studies()[tool].imports if part.kind == "verdicts")
    problems = parse_verdicts([(name, text[: len(text) - 40])], mapping).problems
    assert [problem.code for problem in problems] == ["truncated"]


def test_brackets_without_end_are_refused() -> None:
    text = examples("inspect-ai")["log.json"].decode()
    deep = "[" * 100_000 + "]" * 100_000
    for place in ('"results": ', '"events": '):
        (sentence,) = refused(log(text.replace(place, f'"more": {deep}, {place}', 1)))
        assert "nested" in sentence


def test_facts_after_the_records_are_refused_rather_than_missed() -> None:
    layout = Mapping.from_dict({"records": "rows.all", "beside": ["model"]})
    before, after, problems = (
        '{"model": "m", "rows": {"all": [{"a": 1}]}}',
        '{"rows": {"all": [{"a": 1}]}, "model": "m"}',
        Problems(),
    )
    (row,) = read_rows("a.json", before.encode(), layout=layout, problems=problems)
    assert (row.fields, problems.sentences()) == ({"model": "m", "a": 1}, [])
    list(read_rows("a.json", after.encode(), layout=layout, problems=problems))
    assert [problem.code for problem in problems] == ["shape"]
    assert "after the records" in problems.sentences()[0]


ZSTANDARD = 93


def packed_log(log: dict[str, Any], *, method: int = ZSTANDARD, header: str = "header.json") -> bytes:
    """The log as Inspect AI stores it: a zip of a header and the samples; Zstandard is written by hand."""
    samples = log.pop("samples")
    names = {header: log, "_journal/summaries/1.json": []}
    names |= {f"samples/{sample['id']}_epoch_{sample['epoch']}.json": sample for sample in samples}
    out = BytesIO()
    with ZipFile(out, "w") as archive:
        for name, value in names.items():
            text = json.dumps(value).encode()
            packed = pa.compress(text, codec="zstd", asbytes=True) if method == ZSTANDARD else text
            archive.writestr(name, packed, ZIP_STORED if method == ZSTANDARD else method)
    raw = bytearray(out.getvalue())
    if method == ZSTANDARD:  # both headers of each member say so
        for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            for found in re.finditer(re.escape(mark), bytes(raw)):
                raw[found.start() + place : found.start() + place + 2] = ZSTANDARD.to_bytes(2, "little")
    return bytes(raw)


@pytest.mark.parametrize("method", [ZSTANDARD, ZIP_DEFLATED, ZIP_STORED])
@pytest.mark.parametrize("header", ["header.json", "_journal/start.json"])
def test_a_binary_log_of_inspect_is_the_same_as_its_json(method: int, header: str) -> None:
    log = json.loads(examples("inspect-ai")["log.json"])
    files: list[File] = [("2026_support.eval", packed_log(log, method=method, header=header))]
    parsed = verdicts(files)
    assert parsed.problems.sentences() == []
    assert scores(parsed.rows) == scores(verdicts(files_of("inspect-ai")).rows)
    ((part, own),) = parts(files, "dataset")
    assert parse_items(own, part.mapping).report.taken == 2


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"PK\x03\x04", "broken compressed file"),
        (packed_log({"samples": []}, header="other.json"), "without header.json"),
        (packed_log({"version": 2, "samples": []})[:-30], "broken compressed file"),
        (packed_log({"a": 1, "samples": [{"id": "s", "epoch": 1}]}, method=ZIP_BZIP2), "compression that is not read"),
    ],
)
def test_a_binary_log_that_is_none_is_refused(raw: bytes, words: str) -> None:
    parsed = parse_verdicts([("log.eval", raw)], Mapping(columns={"item": "item"}))
    assert words in " ".join(parsed.problems.sentences())


@pytest.mark.parametrize("method", [ZSTANDARD, ZIP_DEFLATED])
def test_a_header_of_a_binary_log_that_unpacks_to_very_much_is_refused_before(
    method: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "LARGEST_HEADER", 2**20)
    raw = packed_log({"version": 2, "plan": " " * 2**22, "samples": [{"id": "s", "epoch": 1}]}, method=method)
    parsed = parse_verdicts([("log.eval", raw)], Mapping(columns={"item": "item"}))
    assert [problem.code for problem in parsed.problems] == ["size"]
    assert "header.json of more than 1 MB" in " ".join(parsed.problems.sentences())
