"""Rubrics: complete documents come back equal, and every fault of a wrong one is told with its line and path."""

import json
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.readers.problems import FormatError
from annotation.readers.rubric import (
    AnchorDocument,
    CriterionDocument,
    ExampleDocument,
    PointDocument,
    RationaleRule,
    RubricDocument,
    ScaleDocument,
    parse_rubric,
    rubric_from_dict,
)

WHOLE = """
key: support
name: {en: Support, no: Støtte}
source_language: EN
criteria:
  - key: fluency
    name: Fluency
    question: {en: "Is it fluent?", et: "Kas see on ladus?"}
    definition: "How it reads.\\r\\nAloud."
    scale: {level: ordinal, points: [0, 1, 2]}
    anchors:
      2: {en: {text: Native, reason: No doubt}, et: Emakeelne}
      0: Broken
    mark_if: [it flows, "yes"]
    dont_mark_if: {et: [ei]}
    examples: [{text: Hello, score: 2, comment: ok}]
    speaker: Agent
    not_applicable: true
    rationale: {rule: required_except_best, min_words: 3}
    panel: linguists
  - key: right-language
    name: Right language
    scale: {level: nominal, points: [{value: 0, label: No}, {value: 1, label: {en: Yes, et: Jah}}]}
    group: critical
  - key: quality
    name: Quality
    scale: {level: interval, min: 0, max: 100, step: 0.5}
    rationale: never
    direction: lower_is_better
"""


def problems(text: str, name: str = "r.yaml") -> list[tuple[str, int | None, str | None]]:
    parsed = parse_rubric(name, text.encode())
    assert parsed.document is None
    return [(problem.code, problem.line, problem.column) for problem in parsed.problems]


def whole() -> RubricDocument:
    parsed = parse_rubric("r.yaml", WHOLE.encode())
    assert parsed.problems.sentences() == []
    assert parsed.document is not None
    return parsed.document


def test_a_whole_rubric() -> None:
    fluency, language, quality = whole().criteria
    assert whole().name == {"en": "Support", "no": "Støtte"}
    assert fluency == CriterionDocument(
        key="fluency",
        name={"en": "Fluency"},
        scale=ScaleDocument("ordinal", (PointDocument(0), PointDocument(1), PointDocument(2)), 0, 2),
        question={"en": "Is it fluent?", "et": "Kas see on ladus?"},
        definition={"en": "How it reads.\r\nAloud."},
        anchors={
            0: {"en": AnchorDocument("Broken")},
            2: {"en": AnchorDocument("Native", "No doubt"), "et": AnchorDocument("Emakeelne")},
        },
        mark_if={"en": ("it flows", "yes")},
        dont_mark_if={"et": ("ei",)},
        examples={"en": (ExampleDocument("Hello", 2, "ok"),)},
        speaker="agent",
        not_applicable=True,
        rationale=RationaleRule("required_except_best", 3),
        group="general",
        panel="linguists",
        direction="higher_is_better",
    )
    assert [point.label for point in language.scale.points] == [{"en": "No"}, {"en": "Yes", "et": "Jah"}]
    assert (language.group, language.direction) == ("critical", "none")
    assert [quality.scale.holds(value) for value in (0, 99.5, 99.6, 101)] == [True, True, False, False]


def test_the_canonical_form_is_read_back_equal() -> None:
    document = whole()
    assert parse_rubric("r.yaml", document.as_yaml().encode()).document == document
    assert parse_rubric("r.json", json.dumps(document.as_dict()).encode()).document == document
    assert rubric_from_dict(document.as_dict()) == document
    with pytest.raises(FormatError, match="no key"):
        rubric_from_dict({"name": "x", "source_language": "en", "criteria": []})


def criterion(more: str = "", scale: str = "{level: ordinal, points: [0, 1]}", key: str = "a") -> str:
    return dedent(f"""
    key: r
    name: R
    source_language: en
    criteria:
      - key: {key}
        name: A
        scale: {scale}
        {more}
    """).strip()


@pytest.mark.parametrize(
    ("more", "code", "line", "path"),
    [
        ("nme: B", "unknown_key", 8, "criteria[1].nme"),
        ("group: crtical", "choice", 8, "criteria[1].group"),
        ("direction: up", "choice", 8, "criteria[1].direction"),
        ("not_applicable: yes", "shape", 8, "criteria[1].not_applicable"),
        ("question: {et: Miks}", "no_source_text", 8, "criteria[1].question"),
        ("question: {en: Why, english: Why}", "language", 8, "criteria[1].question.english"),
        ("question: {en: Why, EN: Why}", "duplicate_language", 8, "criteria[1].question.EN"),
        ('question: " "', "text", 8, "criteria[1].question"),
        ("question: [Why]", "text", 8, "criteria[1].question"),
        ("anchors: {2: Best}", "anchor_off_scale", 8, "criteria[1].anchors.2"),
        ("anchors: {best: Best}", "anchor_off_scale", 8, "criteria[1].anchors.best"),
        ("anchors: {1: {reason: x}}", "missing_key", 8, "criteria[1].anchors.1"),
        ("examples: [{text: x, score: 3}]", "example_off_scale", 8, "criteria[1].examples[1].score"),
        ("examples: [{text: x, score: one}]", "not_a_number", 8, "criteria[1].examples[1].score"),
        ("mark_if: x", "shape", 8, "criteria[1].mark_if"),
        ("rationale: sometimes", "choice", 8, "criteria[1].rationale"),
        ("rationale: {rule: never, min_words: 2}", "rationale", 8, "criteria[1].rationale.min_words"),
        ("rationale: {rule: required, min_words: 1.5}", "rationale", 8, "criteria[1].rationale.min_words"),
        ("panel: " + "x" * 121, "too_long", 8, "criteria[1].panel"),
        ("name: B", "duplicate_key", 8, "criteria[1]"),
    ],
)
def test_a_fault_is_told_with_its_line_and_path(more: str, code: str, line: int, path: str) -> None:
    assert (code, line, path) in problems(criterion(more))


@pytest.mark.parametrize(
    ("scale", "code"),
    [
        ("{points: [0, 1]}", "missing_key"),
        ("{level: ordinal}", "scale"),
        ("{level: ordnal, points: [0, 1]}", "choice"),
        ("{level: ordinal, points: [1]}", "shape"),
        ("{level: ordinal, points: [0, 0]}", "scale_points"),
        ("{level: ordinal, points: [1, 0]}", "scale_points"),
        ("{level: ordinal, points: [0, yes]}", "not_a_number"),
        ("{level: ordinal, points: [0, 1], max: 1}", "scale"),
        ("{level: nominal, points: [0, 1]}", "scale_labels"),
        ("{level: nominal, points: [{value: 0, label: A}, {value: 1, label: A}]}", "scale_labels"),
        ("{level: nominal, min: 0, max: 1}", "scale"),
        ("{level: interval, min: 0}", "scale"),
        ("{level: interval, min: 5, max: 1}", "scale"),
        ("{level: interval, min: 0, max: 100, step: 33}", "scale"),
        ("{level: interval, min: 0, max: 100, step: 0}", "scale"),
        ("3", "shape"),
    ],
)
def test_a_scale_has_a_level_and_points_or_ends(scale: str, code: str) -> None:
    assert code in {found for found, _, _ in problems(criterion(scale=scale))}


def test_parts_that_do_not_go_together() -> None:
    assert problems(criterion("group: critical", "{level: ordinal, points: [0, 1, 2]}")) == [
        ("critical_scale", 5, "criteria[1]")
    ]
    unordered = "{level: nominal, points: [{value: 0, label: A}, {value: 1, label: B}]}"
    assert problems(criterion("rationale: required_except_best", unordered)) == [("no_best_point", 5, "criteria[1]")]


@pytest.mark.parametrize("key", ["Fluency", "a b", "-a", "a" * 61, "õ"])
def test_keys_are_short_plain_words(key: str) -> None:
    assert problems(criterion(key=key))[0][0] == "key"


def test_all_faults_are_told_at_once() -> None:
    text = "key: R r\nlangauge: en\ncriteria:\n  - key: a\n    name: A\n  - name: B\n    scale: {level: x}\n"
    assert [code for code, _, _ in problems(text)] == [
        *("unknown_key", "missing_key", "missing_key", "key", "missing_key", "missing_key", "choice", "scale"),
    ]


def test_criteria_are_told_apart_by_key() -> None:
    twice = criterion() + "\n  - {key: a, name: A, scale: {level: ordinal, points: [0, 1]}}"
    assert problems(twice) == [("duplicate_criterion", 8, "criteria[2]")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", None),
        ("[]", 1),
        ("x", 1),
        ("a: [", 1),
        ("a: &x 1\nb: *x", 2),
        ("? [a]\n: b", 1),
        ('key: "\\0"', 1),
        ("[" * 5000, 1),
        ("key: \x07", None),
    ],
)
def test_what_is_no_document_is_refused(text: str, line: int | None) -> None:
    (problem, *_) = parse_rubric("r.yaml", text.encode()).problems
    assert problem.line == line


words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip)


@settings(deadline=None)
@given(words, words, st.lists(words, min_size=1, max_size=2), st.sampled_from([0, 1, 0.5]))
def test_any_words_survive(name: str, anchor: str, lines: list[str], value: float) -> None:
    document = RubricDocument(
        "r",
        {"en": name, "no": anchor},
        "en",
        (
            CriterionDocument(
                "a",
                {"en": anchor},
                ScaleDocument("interval", (), 0, 1),
                anchors={value: {"en": AnchorDocument(anchor, name)}},
                mark_if={"en": tuple(lines)},
                examples={"en": (ExampleDocument(name, value, anchor),)},
            ),
        ),
    )
    assert parse_rubric("r.yaml", document.as_yaml().encode()).document == document


def test_a_text_cut_by_an_unquoted_comma_is_refused() -> None:
    criterion = "{key: c, name: {en: Clear, but short}, scale: {level: ordinal, points: [0, 1]}}"
    text = f"{{key: r, name: R, source_language: en, criteria: [{criterion}]}}"
    assert [problem.code for problem in parse_rubric("r.yaml", text.encode()).problems] == ["language"]
