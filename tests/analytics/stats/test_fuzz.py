"""Five hundred random tables at the edges through the statistics; ``bench/fuzz_stats.py`` says what is looked for."""

from __future__ import annotations

import pytest

from bench.fuzz_stats import check_in_processes, draw_table

pytestmark = pytest.mark.slow


def test_no_table_gives_a_traceback_or_a_number_outside_its_range() -> None:
    found = check_in_processes(500, seed=1, workers=2)
    assert found.failures == []
    assert found.tables == 500
    assert found.refused < 50
    assert found.defined > 5_000
    assert len(found.statistics) > 45


def test_a_table_is_the_same_whenever_it_is_drawn() -> None:
    assert repr(draw_table(1, 137).rows) == repr(draw_table(1, 137).rows)
    assert len({draw_table(1, number).words for number in range(40)}) > 30
