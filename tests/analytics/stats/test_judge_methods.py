"""The worked examples of docs/methods about judges and rankings are true."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

METHODS = Path(__file__).parents[3] / "docs" / "methods"


@pytest.mark.parametrize("name", ["calibration", "correction", "stability", "audits", "surface", "planning"])
def test_examples_hold(name: str) -> None:
    found = doctest.testfile(
        str(METHODS / f"{name}.md"), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert found.attempted > 1
    assert found.failed == 0
