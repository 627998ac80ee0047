"""What readers say: a template with values, English as text, and composed again in the language of a page."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
from functools import cache
from pathlib import Path

import pytest
from django.utils import translation

from annotation.readers.problems import did_you_mean, excerpt, shortened_list
from annotation.readers.words import Field, Setting, Words, either, joined_words, read_words, with_words, words_by_text
from annotation.views.import_words import shown_words
from bench import structure

ROOT = Path(__file__).resolve().parent.parent.parent.parent
PLACEHOLDER = re.compile(r"%\((\w+)\)s")
NOT_CAREFUL = Words(
    "a file saved as UTF-8, or %(choice)s", choice=Setting("encoding", "encoding: cp1252 in the mapping")
)
SAID = [
    NOT_CAREFUL,
    Words("no %(name)s", name=Field("language")),
    did_you_mean("Ladu:sus", Words("one of %(names)s", names=joined_words(["a: b", Words("nothing")]))),
    Words("%(value)s, but %(other)s on line %(line)s", value=excerpt("a: b or c"), other=excerpt("100 %"), line=3),
    shortened_list([excerpt(name) for name in ("سارة", "e\u0301", "3", "4", "5", "6")]),
    either(["a", "b", "c"]),
    "text of no template",
]


@cache
def calls() -> list[tuple[str, ast.Call]]:
    """Every call of `Words` in the product, with its module."""
    paths = [path for folder in ("annotation", "judging") for path in sorted((ROOT / folder).rglob("*.py"))]
    files = [(path, *structure.parsed_file(path)) for path in paths]
    return [
        (path.name, node)
        for path, source, tree in files
        if "Words(" in source
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Words"
    ]


def test_every_template_can_be_extracted_and_has_its_values() -> None:
    literal = [(name, call) for name, call in calls() if isinstance(call.args[0], ast.Constant)]
    assert len(literal) > 350
    named = {(name, ast.unparse(call.args[0])) for name, call in calls() if not isinstance(call.args[0], ast.Constant)}
    assert named == {
        ("words.py", "template"),
        ("columns.py", "template"),
        ("rows.py", "_KEY_NOTES[kind][doubt.code]"),
    }
    for name, call in literal:
        templates = [str(argument.value) for argument in call.args if isinstance(argument, ast.Constant)]
        given = {keyword.arg for keyword in call.keywords}
        wanted = [set(PLACEHOLDER.findall(template)) for template in templates]
        assert None in given or wanted[0] == given, (name, templates)
        assert all(names <= wanted[0] for names in wanted), (name, templates)


@pytest.mark.parametrize("said", SAID)
def test_words_survive_copies_pickles_and_json(said: str) -> None:
    kept = json.loads(json.dumps(words_by_text([said])))
    (again,) = with_words([str(said)], kept)
    for copied in (again, copy.deepcopy(said), pickle.loads(pickle.dumps(said))):
        assert (copied, type(copied)) == (said, type(said))
        with translation.override("et"):
            assert shown_words(copied) == shown_words(said)
    assert read_words("as it is") == "as it is"


def test_a_page_has_labels_where_the_command_has_keys() -> None:
    assert str(NOT_CAREFUL) == "a file saved as UTF-8, or encoding: cp1252 in the mapping"
    assert shown_words(NOT_CAREFUL) == "a file saved as UTF-8, or another choice under “Encoding of the text”"
    number = Words("a number for %(field)s", field="turn.number")
    assert (str(number), shown_words(number)) == ("a number for turn.number", "a number for “Turn: number”")
    quoting = Words("closed quotes; if the line breaks belong to the text, line_breaks: on under “Mapping (YAML)”")
    assert quoting.endswith("line_breaks: on in the mapping")
    assert shown_words(quoting).endswith("line_breaks: on under “Mapping (YAML)”")


def test_what_is_quoted_from_a_file_is_never_translated() -> None:
    """Translation by pattern once found its own words in it: “USER: x” came out as “USER：x” in Japanese."""
    found = Words(
        "%(value)s, but %(other)s on line %(line)s", value=excerpt("Hi USER: x or nothing"), other="b", line=2
    )
    for language in ("ja", "et", "ar"):
        with translation.override(language):
            assert "“Hi USER: x or nothing”" in shown_words(found)
