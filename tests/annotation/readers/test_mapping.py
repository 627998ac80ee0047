import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annotation.readers.mapping import Mapping
from annotation.readers.problems import FormatError

FULL = """
columns: {reviewer_name: rater, _metadata.language: language}
constants: {criterion: irony}
values:
  score: {2: N/A, Yes: 1, no: 0}
ignore: [notes]
speakers: {USER: user}
allow_empty: yes
format: csv
delimiter: tab
quoting: off
header: [a, b]
"""


def test_a_mapping_says_words_as_they_are_written() -> None:
    mapping = Mapping.from_yaml("m.yaml", FULL)
    assert mapping.values == {"score": {"2": "N/A", "Yes": "1", "no": "0"}}
    assert (mapping.delimiter, mapping.quoting, mapping.allow_empty) == ("\t", False, True)
    assert mapping.header == ("a", "b")


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("column: {a: b}", 1, "did you mean columns?"),
        ("columns:\n  a: [b]", 2, "a word"),
        ("columns: {a: b}\ndelimiter: semicolon", 2, "one character"),
        ("columns: {a: b}\nformat: xls", 2, "one of json"),
        ("quoting: maybe", 1, "on or off"),
        ("columns: {a: b, a: c}", 1, "each key once"),
        ("- a\n- b", 1, "named values"),
        ("a: *b", 1, "valid YAML"),
        ("a: {", 1, "valid YAML"),
        ('constants: {language: "\\0"}', 1, "NUL"),
        ("", None, "named values"),
    ],
)
def test_a_wrong_mapping_is_told_where(text: str, line: int | None, word: str) -> None:
    with pytest.raises(FormatError, match=word.replace("?", "\\?")) as caught:
        Mapping.from_yaml("m.yaml", text)
    assert caught.value.problem.line == line


def test_pairs_cut_at_the_last_equals_sign() -> None:
    mapping = Mapping.from_pairs(["reviewer=rater", " a=b = score "])
    assert mapping.columns == {"reviewer": "rater", "a=b": "score"}
    with pytest.raises(FormatError, match="column=field"):
        Mapping.from_pairs(["rater"])


def test_constants_cut_at_the_first_equals_sign() -> None:
    assert Mapping.from_pairs(constants=["language=et", "title=a=b"]).constants == {"language": "et", "title": "a=b"}
    with pytest.raises(FormatError, match="--set: found “language”; expected field=value"):
        Mapping.from_pairs(constants=["language"])


def test_what_is_said_later_goes_over_what_was_guessed() -> None:
    guessed = Mapping(columns={"a": "item", "b": "rater"}, ignore=("c",), quoting=False)
    said = Mapping(columns={"b": "judge"}, constants={"criterion": "x"})
    assert guessed.updated(said) == Mapping(
        columns={"a": "item", "b": "judge"}, constants={"criterion": "x"}, ignore=("c",), quoting=False
    )


words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
said = st.dictionaries(words, words, max_size=3)


@settings(deadline=None)
@given(
    st.builds(
        Mapping,
        columns=said,
        constants=said,
        values=st.dictionaries(words, said, max_size=2),
        ignore=st.lists(words, max_size=3).map(tuple),
        speakers=said,
        allow_empty=st.booleans(),
        format=st.none() | st.just("tsv"),
        records=st.none() | words,
        delimiter=st.none() | st.sampled_from(";|\t"),
        quoting=st.booleans(),
        header=st.lists(words, max_size=3).map(tuple),
    )
)
def test_a_mapping_survives_yaml_and_json(mapping: Mapping) -> None:
    assert Mapping.from_yaml("m.yaml", mapping.as_yaml()) == mapping
    assert Mapping.from_dict(mapping.as_dict()) == mapping
