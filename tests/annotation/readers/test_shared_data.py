"""Every file of the shared studies that these formats fit, with the counts of its SOURCE.md."""

from collections import Counter

import pytest

from annotation.readers.guessing import Kind, guess_mapping
from annotation.readers.items import parse_items
from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problems
from annotation.readers.ratings import parse_ratings
from annotation.readers.reading import peek, read_rows
from tests.study_data import study_file

pytestmark = pytest.mark.study_data

ESTONIAN = "xls-estonian/human_annotated_data_et"
CSVS = [f"{ESTONIAN}/{kind}_query_result_anonymized.csv" for kind in ("calibration", "manual")]
CRITERIA = Mapping(
    values={
        "criterion": {
            "Is this fluent, human-written Estonian?": "fluency",
            "Does the content make sense?": "coherence",
        }
    }
)


def guessed(kind: Kind, *files: tuple[str, bytes]) -> Mapping:
    mapping = Mapping()
    for name, raw in files:
        sample = peek(name, raw)
        mapping = mapping.updated(guess_mapping(kind, sample.columns, [row.fields for row in sample.rows]))
    return mapping


def test_the_estonian_ratings_of_two_files_with_different_names() -> None:
    files = [study_file(path) for path in CSVS]
    parsed = parse_ratings(files, guessed("ratings", *files))
    assert parsed.problems.sentences() == []
    counts = (parsed.read, parsed.collapsed, parsed.collapsed_blank, parsed.missing, parsed.scored)
    assert counts == (1268, 248, 1, 4, 1016)
    assert {row.rater for row in parsed.rows} == {f"Annotator{number}" for number in range(1, 6)}
    assert len({row.item for row in parsed.rows}) == 120


def test_the_ratings_inside_the_estonian_dialogues_agree_with_the_csv() -> None:
    files = [study_file(path) for path in (*CSVS, f"{ESTONIAN}/combined_et_with_annotations.json")]
    parsed = parse_ratings(files, guessed("ratings", *files).updated(CRITERIA))
    assert parsed.problems.sentences() == []
    assert (parsed.read, parsed.collapsed, parsed.missing, parsed.scored) == (1268 + 1016, 248 + 1016, 4, 1016)


def test_the_estonian_dialogues() -> None:
    file = study_file(f"{ESTONIAN}/combined_et_with_annotations.json")
    parsed = parse_items([file], guessed("dataset", file))
    assert parsed.problems.sentences() == []
    assert (len(parsed.items), parsed.report.embedded_ratings, parsed.report.derived_ids) == (120, 1016, 0)
    assert {(item.language, item.generator) for item in parsed.items} == {("et", "gpt-4.1-mini")}
    assert {turn["speaker"] for item in parsed.items for turn in item.turns} == {"agent", "customer"}
    kept = {key for item in parsed.items for key in item.attributes}
    known = {
        "industry",
        "problem",
        "channel",
        "agent_experience",
        "agent_type",
        "n_messages",
        "n_agents",
        "source_file",
    }
    assert kept == known


@pytest.mark.parametrize(
    ("language", "count", "empty"), [("en", 692, 0), ("et", 697, 1), ("fi", 692, 0), ("hu", 684, 0)]
)
def test_the_dialogues_of_the_paper(language: str, count: int, empty: int) -> None:
    file = study_file(f"xls-estonian/paper_data/combined_{language}.json")
    parsed = parse_items([file], guessed("dataset", file))
    assert parsed.problems.sentences() == []
    assert (len(parsed.items), parsed.report.empty) == (count, empty)
    assert len({item.external_id for item in parsed.items}) == count == parsed.report.derived_ids
    assert (len(parsed.report.generators), set(parsed.report.languages)) == (6, {language})


def test_the_multilingual_posts_and_their_labels() -> None:
    items, labels = study_file("multipico-dev/items.csv"), study_file("multipico-dev/labels.csv")
    parsed = parse_items([items], guessed("dataset", items))
    assert parsed.problems.sentences() == []
    assert parsed.report.languages == Counter(es=756, en=489, ar=363, de=358, pt=325, fr=276, it=159, nl=147, hi=132)
    text = "".join(text for item in parsed.items for text in item.fields.values())
    raw = items[1].decode()
    for mark in ("\u200f", "\u200d", "\u0640", "\u202a"):
        assert text.count(mark) == raw.count(mark)
    mapping = guessed("ratings", labels)
    assert [problem.code for problem in parse_ratings([labels], mapping).problems] == ["no_column"]
    ratings = parse_ratings([labels], mapping.updated(Mapping(constants={"criterion": "irony"})))
    assert ratings.problems.sentences() == []
    assert (ratings.read, ratings.scored, len({row.rater for row in ratings.rows})) == (15178, 15178, 506)


@pytest.mark.parametrize("pair", ["enzh", "eten", "neen", "ruen", "sien"])
def test_a_tsv_with_unescaped_quotes_is_refused_until_quoting_is_off(pair: str) -> None:
    name, raw = study_file(f"mlqe-pe/direct-assessments/test20.{pair}.df.short.tsv")
    strict, off = Problems(), Problems()
    assert len(list(read_rows(name, raw, problems=strict))) < 1000
    assert strict.codes.keys() <= {"stray_quote", "merged_records", "unclosed_quote"}
    assert len(list(read_rows(name, raw, layout=Mapping(quoting=False), problems=off))) == 1000
    assert not off


@pytest.mark.parametrize("pair", ["encs", "ende", "enja", "enzh"])
def test_a_tsv_without_a_header_is_refused_until_its_columns_are_named(pair: str) -> None:
    name, raw = study_file(f"mlqe-pe/catastrophic-errors/{pair}_majority_dev.tsv")
    problems = Problems()
    assert list(read_rows(name, raw, problems=problems)) == []
    assert problems.codes == {"header": 1}
    named = Mapping(quoting=False, header=("id", "source", "translation", "labels", "majority"))
    assert len(list(read_rows(name, raw, layout=named, problems=Problems()))) == 1000


def test_wide_files_are_read_whole() -> None:
    for path, count in (("hanna/hanna_metric_scores_llm.csv", 11), ("hanna/user_study.csv", 300)):
        name, raw = study_file(path)
        problems = Problems()
        assert len(list(read_rows(name, raw, problems=problems))) == count
        assert not problems


def test_one_list_of_a_larger_document_is_read_when_it_is_named() -> None:
    name, raw = study_file("dices-350/dices_350_crowdsourced.json")
    problems = Problems()
    assert list(read_rows(name, raw, problems=problems)) == []
    assert problems.codes == {"shape": 1}
    assert len(list(read_rows(name, raw, layout=Mapping(records="instances"), problems=Problems()))) == 350
