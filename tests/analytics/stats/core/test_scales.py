"""Scales as they are declared."""

from __future__ import annotations

import numpy as np

from analytics.stats.core.scales import range_scale
from analytics.stats.core.tables import codes_on


def test_a_scale_of_tenths_holds_the_numbers_as_people_write_them() -> None:
    tenths = range_scale(0, 1, 0.1, "interval")
    written = np.array([float(f"0.{digit}") for digit in range(10)])
    assert codes_on(written, tenths).tolist() == list(range(10))
