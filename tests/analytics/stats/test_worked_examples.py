"""The worked examples of the documentation print what they say."""

from __future__ import annotations

import doctest
from pathlib import Path

METHODS = Path(__file__).parents[3] / "docs" / "methods"


def test_agreement() -> None:
    failed, attempted = doctest.testfile(str(METHODS / "agreement.md"), module_relative=False)
    assert attempted > 10
    assert failed == 0
