"""The list of refusal codes is complete, each code has one meaning, and the documentation shows what the code has."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from accounts.data_folder import FolderState
from accounts.refusal_codes import CODES, SHARED, SPECIFIC
from annotation.qualification import exams, gate
from bench import structure
from judging.requests import NOTHING_CHANGED
from panelbench.management.commands.reference import reference_pages

ROOT = Path(__file__).resolve().parent.parent
APPS = ("annotation", "judging", "analytics", "platform/accounts", "platform/panelbench")
REFUSING = {"Refused", "Outage", "_refuse", "__init__"}
DEFAULT = "refused"


@cache
def uses() -> list[tuple[str, str]]:
    """Every code that a module gives to a refusal, with the module."""
    found: list[tuple[str, str]] = []
    for path in (path for app in APPS for path in sorted((ROOT / app).rglob("*.py")) if "migrations" not in path.parts):
        source, tree = structure.parsed_file(path)
        for node in ast.walk(tree) if "code" in source else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in REFUSING:
                for keyword in node.keywords:
                    if keyword.arg == "code":
                        found += ((code, str(path.relative_to(ROOT))) for code in constants(keyword.value))
    return found


def constants(value: ast.expr) -> Iterator[str]:
    """The codes that an argument can be, as far as they stand in it."""
    if isinstance(value, ast.Constant):
        yield str(value.value)
    elif isinstance(value, ast.IfExp):
        yield from (*constants(value.body), *constants(value.orelse))


COMPOSED = {
    DEFAULT,
    NOTHING_CHANGED,
    *(f"exam_{state}" for state in exams.REASONS),
    *(f"qualification_{stage}" for stage in gate._WORDS),
    *(str(state) for state in FolderState if state),
}
"""Codes that are put together, or are the value of a name."""


def test_the_list_has_every_code_and_no_other() -> None:
    used = {code for code, _module in uses()} | COMPOSED
    assert len(used) > 150
    assert (used - CODES.keys(), CODES.keys() - used) == (set(), set())


def test_a_code_has_one_meaning() -> None:
    """A specific code belongs to one app; two codes do not mean the same."""
    apps: dict[str, set[str]] = defaultdict(set)
    for code, module in uses():
        apps[code].add(next(app for app in APPS if module.startswith(f"{app}/")))
    assert {code: places for code, places in apps.items() if code in SPECIFIC and len(places) > 1} == {}
    assert {code for code in SHARED if len(apps[code]) < 2} == {DEFAULT}
    assert SHARED.keys() & SPECIFIC.keys() == set()
    assert len(set(CODES.values())) == len(CODES)
    assert [meaning for meaning in CODES.values() if not meaning.endswith(".") or len(meaning.split()) > 25] == []


def test_pages_have_what_the_code_has() -> None:
    """`manage.py reference` writes them."""
    written = dict(reference_pages(ROOT / "docs"))
    assert {path.name for path in written} >= {"refusals.md", "interfaces.md", "walk.md"}
    assert [path.name for path, text in written.items() if path.read_text(encoding="utf-8") != text] == []
