"""Work that every first upload in a process waits for, counted in calls of Python functions: no clock is asked."""

import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from annotation.readers import studies
from annotation.readers.documents import load_document, load_shipped
from annotation.readers.encoding import codec_of
from annotation.readers.studies import recognise, resources


def calls(verb: Callable[[], Any]) -> int:
    """How many functions, generators' steps among them, run in a verb."""
    count = 0

    def see(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(see)
    try:
        verb()
    finally:
        sys.setprofile(None)
    return count


def test_telling_an_encoding_takes_no_call_for_each_character() -> None:
    assert calls(lambda: codec_of("a.csv", ("õäöü hello, " * 6_000).encode(), None)) < 100


def test_ready_studies_are_read_by_libyaml() -> None:
    assert calls(studies.known_studies.__wrapped__) < 120_000


def test_ready_studies_say_the_same_to_libyaml_and_to_the_loader_of_what_users_send() -> None:
    ready = [each for each in (resources("annotation.readers") / "ready").iterdir() if each.name.endswith(".yaml")]
    assert len(ready) > 10
    for each in ready:
        raw = each.read_bytes()
        assert load_shipped(each.name, raw) == load_document(each.name, raw)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_file_of_no_study_is_read_once_to_find_that_out(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    rows = [json.dumps({"id": number, "question": "q"}) for number in range(30)]
    raw = "\n".join(["id,question", "1,q"] if name == "a.csv" else rows).encode()
    read, peek = [], studies.peek
    monkeypatch.setattr(studies, "peek", lambda *file, **options: (read.append(options), peek(*file, **options))[1])
    assert recognise([(name, raw)]) is None
    assert len(read) == 1
