"""Every public function of analytics.stats that takes arrays says their shapes and where its formula comes from."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

STATS = Path(__file__).parents[3] / "analytics" / "stats"
ARRAYS = re.compile(r"\b(Floats|Codes|Counts|Integers|NDArray|ArrayLike)\b")
SHAPE = re.compile(r"\([A-Za-z0-9+]+,[^)]*\)|\(items, raters\)")
SOURCE = re.compile(r"Sources?:|METHODS \d|doi|arXiv")
PREPARATION = ("intervals", "judge_against_panel", "resampling", "scales", "tables")
"""These put numbers in shape or draw them, and have no formula of their own to cite."""


def public() -> Iterator[tuple[str, str, str, str]]:
    """(function, its docstring, its module's, its signature) of whatever takes or gives arrays."""
    for path in sorted(STATS.rglob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        for node in module.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                signature = ast.unparse(node.args) + (ast.unparse(node.returns) if node.returns else "")
                if ARRAYS.search(signature):
                    said = ast.get_docstring(node) or ""
                    yield f"{path.stem}.{node.name}", said, ast.get_docstring(module) or "", signature


FUNCTIONS = {name: rest for name, *rest in public()}


def test_there_are_functions_to_read() -> None:
    assert len(FUNCTIONS) > 80


def faults(name: str, said: str, of_module: str, signature: str) -> Iterator[str]:
    """What a docstring lacks."""
    if not said:
        yield f"{name}: no docstring"
    if not (SHAPE.search(said) or SHAPE.search(of_module)):
        yield f"{name}{signature}: no shape"
    if name.partition(".")[0] not in PREPARATION and not SOURCE.search(said + of_module):
        yield f"{name}: no source"


def test_a_function_on_arrays_says_shapes_and_source() -> None:
    assert [fault for name, rest in FUNCTIONS.items() for fault in faults(name, *rest)] == []
