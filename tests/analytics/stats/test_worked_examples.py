"""The worked examples of the documentation print what they say."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

METHODS = Path(__file__).parents[3] / "docs" / "methods"


@pytest.mark.parametrize("name", ["agreement", "raters"])
def test_worked_examples(name: str) -> None:
    failed, attempted = doctest.testfile(str(METHODS / f"{name}.md"), module_relative=False)
    assert attempted >= 10
    assert failed == 0
