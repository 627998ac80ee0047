"""The examples on the pages of tools' formats are recognised, and read as the pages say."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from annotation.readers.archives import File
from annotation.readers.evidence import as_spans
from annotation.readers.items import parse_items
from annotation.readers.mapping import Mapping
from annotation.readers.ratings import parse_ratings, parse_verdicts
from annotation.readers.studies import StudyImport, observed_scales, recognise, with_constants, with_word_codes

PAGES = Path(__file__).resolve().parents[3] / "docs" / "formats"
EXAMPLE = re.compile(r"```(?:jsonl?|csv|tsv) (\S+\.(?:jsonl?|csv|tsv))\n(.*?)```", re.DOTALL)
MAPPING = re.compile(r"```yaml mapping\n(.*?)```", re.DOTALL)

Answers = list[tuple[Any, ...]]
Taken = dict[str, list[Any]]


def examples(page: str) -> dict[str, bytes]:
    return {name: text.encode() for name, text in EXAMPLE.findall((PAGES / f"{page}.md").read_text(encoding="utf-8"))}


def meanings(mapping: Mapping) -> dict[float, str]:
    return {float(code): word for word, code in mapping.values.get("score", {}).items()}


def taken(page: str, files: list[File], **constants: str) -> Taken:
    """What the files of a page come to: items as id and fields, answers with their words."""
    study = recognise(files)
    assert study is not None
    assert study.name == page
    found: Taken = {"dataset": [], "ratings": [], "verdicts": []}
    for each, own in with_constants(study, constants).parts(files):
        if each.kind == "dataset":
            parsed = parse_items(own, each.mapping)
            assert parsed.problems.sentences() == []
            found["dataset"] += [
                (item.external_id, item.language, item.fields, item.attributes) for item in parsed.items
            ]
        elif each.kind != "rubric":
            found[each.kind] += answers(each, own)
    return found


def answers(each: StudyImport, files: list[File]) -> Answers:
    mapping = with_word_codes(each.mapping, observed_scales(files, each.mapping))
    words = meanings(mapping)
    if each.kind == "ratings":
        ratings = parse_ratings(files, mapping)
        assert ratings.problems.sentences() == []
        return [(row.item, row.rater, row.criterion, words.get(row.score, row.score)) for row in ratings.rows]
    verdicts = parse_verdicts(files, mapping)
    assert verdicts.problems.sentences() == []
    return [(row.item, row.judge, row.criterion, words.get(row.score, row.score)) for row in verdicts.rows]


def only(page: str, *names: str) -> list[File]:
    found = examples(page)
    assert set(names) <= found.keys()
    return [(name, found[name]) for name in names]


def test_label_studio() -> None:
    found = taken("label-studio", only("label-studio", "export.json"))
    assert found["dataset"] == [("1", "et", {"answer": "Tere!"}, {}), ("2", "et", {"answer": "Nägemist!"}, {})]
    assert found["ratings"] == [("1", "5", "fluency", 2), ("1", "5", "faults", "case + spelling")]


def test_label_studio_in_brief_is_mapped_by_hand() -> None:
    page = (PAGES / "label-studio.md").read_text(encoding="utf-8")
    mapping = Mapping.from_yaml("page.yaml", MAPPING.findall(page)[0])
    parsed = parse_ratings(only("label-studio", "min.json"), mapping)
    assert parsed.problems.sentences() == []
    assert [(row.item, row.rater, row.criterion, row.score, row.seconds) for row in parsed.rows] == [
        ("1", "5", "tone", 1, 3.5)
    ]


FIRST = [("a", "u1", "fluency", 3), ("a", "u1", "faults", "case + spelling")]


def as_parquet(lines: bytes) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([json.loads(line) for line in lines.splitlines()]), stream)
    return stream.getvalue()


@pytest.mark.parametrize("name", ["records.jsonl", "old.jsonl"])
def test_argilla(name: str) -> None:
    ((_name, content),) = only("argilla", name)
    for file in ((name, content), (name.replace("jsonl", "parquet"), as_parquet(content))):
        found = taken("argilla", [file])
        assert found["dataset"][0] == ("a", "et", {"answer": "Tere!"}, {})
        assert found["ratings"] == FIRST
        assert found["verdicts"] == [("a", "judge-x" if name == "records.jsonl" else "m", "fluency", 2)]


def test_argilla_without_ids_numbers_the_records_and_says_unknown_for_nobody() -> None:
    record = {"text": "Tere!", "fluency": [{"user_id": None, "value": 2, "status": "submitted"}], "external_id": None}
    found = taken("argilla", [("old.jsonl", json.dumps(record).encode())], language="et")
    assert found["dataset"] == [("record-1", "et", {"answer": "Tere!"}, {})]
    assert found["ratings"] == [("record-1", "unknown", "fluency", 2)]


def test_doccano() -> None:
    found = taken("doccano", only("doccano", "maria.jsonl", "ann-2.jsonl"), language="et")
    assert [item[0] for item in found["dataset"]] == ["1", "2"]
    assert found["ratings"] == [
        ("1", "maria", "label", "polite"),
        ("2", "maria", "label", "rude + short"),
        ("1", "ann-2", "label", None),
        ("2", "ann-2", "label", "rude"),
    ]


def test_alt_test() -> None:
    found = taken("alt-test", only("alt-test", "human_annotations.json", "llm_annotations.json"), language="en")
    assert [item[0] for item in found["dataset"]] == ["x1", "x2", "x3"]
    people = [("x1", "rater-1"), ("x2", "rater-1"), ("x1", "rater-2"), ("x3", "rater-2")]
    assert [row[:2] for row in found["ratings"]] == people
    assert found["verdicts"][0] == ("x1", "judge-x", "label", "A")


def test_alt_test_with_one_judge_by_itself() -> None:
    ((_name, people),) = only("alt-test", "human_annotations.json")
    files = [("humans_annotations.json", people), ("llm_annotations.json", b'{"x1": "A", "x2": "C"}')]
    found = taken("alt-test", files, language="en")
    assert found["verdicts"] == [("x1", "llm", "label", "A"), ("x2", "llm", "label", "C")]


def test_lewidi() -> None:
    found = taken("lewidi", only("lewidi", "MP_dev.json"))
    fields = {"context": "What a day", "answer": "Oh sure"}
    assert found["dataset"][0][:3] == ("MP_dev-1000", "en", fields)
    assert found["ratings"] == [
        ("MP_dev-1000", "MP Ann1", "irony detection", 1),
        ("MP_dev-1000", "MP Ann2", "irony detection", 0),
    ]


def test_lewidi_of_2023() -> None:
    found = taken("lewidi", only("lewidi", "HS_dev.json"))
    assert found["dataset"][0][:3] == ("HS_dev-1", "en", {"answer": "Oh sure"})
    task = "hate speech detection"
    assert found["ratings"] == [("HS_dev-1", "HS Ann1", task, 0), ("HS_dev-1", "HS Ann2", task, 1)]


def test_lewidi_explanations_are_rationales() -> None:
    files = only("lewidi", "Par_dev.json")
    study = recognise(files)
    assert study is not None
    ((said, own),) = [part for part in study.parts(files) if part[0].kind == "ratings"]
    parsed = parse_ratings(own, said.mapping)
    assert parsed.problems.sentences() == []
    assert [(row.rater, row.score, row.rationale) for row in parsed.rows] == [
        ("Par Ann1", 4, "Near."), ("Par Ann2", 5, "Same.\nBoth ask why.")
    ]  # fmt: skip


def test_lewidi_conversations_are_turns_and_all_their_annotations_ratings() -> None:
    files = only("lewidi", "ConvAbuse_dev.json")
    found = taken("lewidi", files)
    assert found["dataset"] == [
        ("ConvAbuse_dev-1", "en", {}, {"annotation task": "abusiveness detection", "split": "dev", "bot": "E.L.I.Z.A."})
    ]
    study = recognise(files)
    assert study is not None
    ((said, own),) = [part for part in study.parts(files) if part[0].kind == "dataset"]
    (item,) = parse_items(own, said.mapping).items
    turns = [("agent", "Hi"), ("user", "hello"), ("agent", "Well?"), ("user", "Go away")]
    assert [(turn["speaker"], turn["text"]) for turn in item.turns] == turns
    assert found["ratings"] == [
        *(
            ("ConvAbuse_dev-1", "ConvAbuse Ann1", "abusiveness detection", -1),
            ("ConvAbuse_dev-1", "ConvAbuse Ann2", "abusiveness detection", 1),
        ),
        *(("ConvAbuse_dev-1", "ConvAbuse Ann1", "ableist", 0), ("ConvAbuse_dev-1", "ConvAbuse Ann2", "ableist", 0)),
        *(
            ("ConvAbuse_dev-1", "ConvAbuse Ann1", "target.system", 1),
            ("ConvAbuse_dev-1", "ConvAbuse Ann2", "target.system", 0),
        ),
    ]


def test_the_tasks_of_lewidi_come_in_together() -> None:
    found = taken("lewidi", list(examples("lewidi").items()))
    assert [item[0] for item in found["dataset"]] == ["MP_dev-1000", "Par_dev-10", "HS_dev-1", "ConvAbuse_dev-1"]
    assert {row[1] for row in found["ratings"]} == {
        f"{task} {rater}" for task in ("MP", "Par", "HS", "ConvAbuse") for rater in ("Ann1", "Ann2")
    }


def test_judge_bench() -> None:
    found = taken("judge-bench", only("judge-bench", "recipes.json"))
    assert found["dataset"] == [
        ("1", "en", {"answer": "Salt the water."}, {}),
        ("2", "en", {"question": "Hi", "answer": "Hello"}, {"instance.lesson": "3"}),
    ]
    assert [row[3] for row in found["ratings"] if row[0] == "1"] == [2, 6, None, "yes", "no", "yes"]


def test_medal() -> None:
    found = taken("medal", only("medal", "dialogues.jsonl", "people.jsonl", "batch.jsonl"))
    assert [item[:2] for item in found["dataset"]] == [("d-1", "et")]
    assert found["ratings"] == [
        ("d-1", "ann-1", "uninterpretable", 0),
        ("d-1", "ann-1", "lacks_commonsense", 1),
        ("d-1", "ann-1", "overall_quality_rating", 4),
    ]
    assert found["verdicts"] == [
        ("d-1", "judge-x", "uninterpretable", 0),
        ("d-1", "judge-x", "overall_quality_rating", 5),
    ]


def test_the_judges_of_the_estonian_study() -> None:
    found = taken("xls-estonian", list(examples("xls-estonian").items()))
    (item,) = found["dataset"]
    assert item[:2] == ("et/gen-a/0", "et")
    assert {row[:2] for row in found["verdicts"]} == {("et/gen-a/0", "judge-x")}
    marks = {"grammar": 4, "readability": 3, "coherence": 2, "fluency": 3}
    labels = {"industry": "retail", "problem": "track_refund", "channel": "chat"}
    agent = {"agent_experience": "senior", "agent_type": "bot"}
    assert {row[2]: row[3] for row in found["verdicts"]} == marks | labels | agent


def test_mturk_with_a_column_for_each_question_and_with_one_for_each_choice() -> None:
    found = taken("mturk", only("mturk", "batch.csv"), language="et")
    assert found["dataset"] == [("H1", "et", {"answer": "Tere!"}, {"Input.topic": "parcel"})]
    assert found["ratings"] == [
        *[("H1", "W1", "fluency", 3), ("H1", "W1", "tone", "polite")],
        *[("H1", "W2", "fluency", 2), ("H1", "W2", "tone", "rude")],
    ]
    found = taken("mturk", only("mturk", "radio.csv"), language="et")
    assert found["ratings"] == [
        *[("H1", "W1", "fluency", 2), ("H1", "W1", "tone", "polite")],
        *[("H1", "W2", "fluency", 1), ("H1", "W2", "tone", "rude")],
    ]


def test_mturk_before_review_has_no_last_cells() -> None:
    ((name, content),) = only("mturk", "batch.csv")
    head, first, *_reviewed = content.decode().splitlines()
    rows = [(name, f"{head}\n{first}\n".encode())]
    assert len(taken("mturk", rows, language="et")["ratings"]) == 2


def test_prodigy() -> None:
    found = taken("prodigy", only("prodigy", "choices.jsonl"))
    assert found["dataset"][0] == ("11", "et", {"answer": "Tere!"}, {"topic": "parcel"})
    assert found["ratings"] == [
        ("11", "tone-maria", "choice", "polite"),
        ("11", "tone-juhan", "choice", "polite + rude"),
    ]
    found = taken("prodigy", only("prodigy", "labels.jsonl"))
    assert found["ratings"] == [("11", "tone-maria", "POLITE", "accept"), ("12", "tone-maria", "POLITE", "reject")]


def test_prodigy_codes_accepted_as_1_and_rejected_as_0() -> None:
    files = only("prodigy", "labels.jsonl")
    study = recognise(files)
    assert study is not None
    (mapping,) = [part.mapping for part, _own in study.parts(files) if part.kind == "ratings"]
    assert [row.score for row in parse_ratings(files, mapping).rows] == [1, 0]


def test_potato_names_raters_by_their_folders() -> None:
    files = only("potato", "maria/annotated_instances.jsonl", "juhan/annotated_instances.jsonl")
    found = taken("potato", files, language="et")
    assert found["dataset"] == [("1", "et", {"answer": "Tere!"}, {}), ("2", "et", {"answer": "Olgu."}, {})]
    assert found["ratings"] == [
        ("1", "maria", "tone", "polite"),
        ("1", "maria", "faults", "case + spelling"),
        ("2", "maria", "tone", "rude"),
        ("1", "juhan", "tone", "rude"),
    ]


def test_alpaca_eval_has_one_item_for_one_pair_in_every_file() -> None:
    judged = taken("alpaca-eval", only("alpaca-eval", "annotations.json"))
    (tree, _language, texts, attributes), sea = judged["dataset"]
    assert texts == {"question": "Name a tree.", "passage_a": "Oak.", "passage_b": "Birch, perhaps."}
    assert attributes == {"generator_1": "model-a", "generator_2": "model-b", "dataset": "koala"}
    assert [row[:3] for row in judged["verdicts"]] == [
        (tree, "judge-x", "preference"),
        (tree, "judge-y", "preference"),
        (sea[0], "judge-x", "preference"),
    ]
    rated = taken("alpaca-eval", only("alpaca-eval", "people.json"))
    assert rated["ratings"] == [(tree, "person 14", "preference", 2)]


def test_llmbar_has_a_label_and_no_rating() -> None:
    found = taken("llmbar", only("llmbar", "dataset.json"))
    ((_id, language, texts, attributes),) = found["dataset"]
    assert (language, attributes) == ("en", {"label": 1})
    assert texts == {"question": "Name a tree.", "passage_a": "Oak.", "passage_b": "Tea."}
    assert found["ratings"] == found["verdicts"] == []


def test_chatbot_arena() -> None:
    ((_name, content),) = only("chatbot-arena", "votes.jsonl")
    for file in (("votes.jsonl", content), ("votes.parquet", as_parquet(content))):
        found = taken("chatbot-arena", [file])
        assert [item[1:] for item in found["dataset"]] == [
            (
                "et",
                {"question": "Tere!", "passage_a": "Tere, kuidas aidata?", "passage_b": "Hello."},
                {"model_a": "model-a", "model_b": "model-b", "turn": 1},
            ),
            (
                "en",
                {"question": "Hi", "passage_a": "Ha", "passage_b": "Ho"},
                {"model_a": "model-a", "model_b": "model-c", "turn": 1},
            ),
        ]
        assert [row[1:] for row in found["ratings"]] == [
            ("arena_user_1", "preference", "model_a"),
            ("arena_user_2", "preference", "tie (bothbad)"),
        ]


def test_votes_after_each_turn_of_mt_bench_are_about_items_of_their_own() -> None:
    ((name, content),) = only("chatbot-arena", "votes.jsonl")
    first = content.splitlines()[0]
    second = first.replace(b'"winner": "model_a"', b'"winner": "model_b"').replace(b'"turn": 1', b'"turn": 2')
    found = taken("chatbot-arena", [(name, first + b"\n" + second)])
    assert [item[3]["turn"] for item in found["dataset"]] == [1, 2]
    assert [row[:2] for row in found["ratings"]] == [(item[0], "arena_user_1") for item in found["dataset"]]
    assert [row[3] for row in found["ratings"]] == ["model_a", "model_b"]


def test_wmt_errors_add_up_by_rater_and_translation() -> None:
    files = only("wmt-mqm", "mqm_newstest2020_ende.tsv")
    found = taken("wmt-mqm", files)
    assert found["dataset"] == [
        ("7-sys-a", "de", {"source": "The dog sleeps.", "answer": "Der Hunt schläft."}, {"source_language": "en"}),
        ("7-sys-b", "de", {"source": "The dog sleeps.", "answer": "Ha ha."}, {"source_language": "en"}),
    ]
    assert found["ratings"] == [
        ("7-sys-a", "rater1", "mqm", 5.1),
        ("7-sys-a", "rater2", "mqm", 0),
        ("7-sys-b", "rater1", "mqm", 25),
    ]
    study = recognise(files)
    assert study is not None
    (mapping,) = [part.mapping for part, _own in study.parts(files) if part.kind == "ratings"]
    errors = [row.rationale.splitlines() for row in parse_ratings(files, mapping).rows]
    assert errors == [
        [
            "Major, Accuracy/Mistranslation: Der <v>Hunt</v> schläft.",
            "Minor, Fluency/Punctuation: Der Hunt schläft<v>.</v>",
        ],
        [],
        ["Major, Non-translation!: <v>Ha ha.</v>"],
    ]
    spans = [[span[:7] for span in as_spans(row.evidence)] for row in parse_ratings(files, mapping).rows]
    assert spans == [
        [
            (4, 8, None, "answer", "Hunt", "Accuracy/Mistranslation", "Major"),
            (16, 17, None, "answer", ".", "Fluency/Punctuation", "Minor"),
        ],
        [],
        [(0, 6, None, "answer", "Ha ha.", "Non-translation!", "Major")],
    ]


def test_dices() -> None:
    found = taken("dices", only("dices", "diverse_safety_adversarial_dialog_990.csv"))
    assert found["dataset"] == [("17", "en", {"answer": "Nothing."}, {"degree_of_harm": "Benign", "harm_type": "None"})]
    assert [row for row in found["ratings"] if row[2] == "Q_overall"] == [
        ("17", "101", "Q_overall", "No"),
        ("17", "102", "Q_overall", "Yes"),
    ]
