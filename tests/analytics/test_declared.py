"""Every statistic and report is declared once, and what pages, answers and commands know of it is read from there."""

from __future__ import annotations

import inspect
import subprocess
import sys

from analytics.judges import judge_reports
from analytics.stats.declared.register import BY_PLAIN_NAME, GROUPS, REPORTS, STATISTICS


def test_the_declarations_load_neither_pandas_nor_scipy_nor_django() -> None:
    code = "import sys; import analytics.stats.declared.register; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert "analytics.stats.declared.agreement" in loaded
    assert not {"numpy", "pandas", "scipy", "django"} & set(loaded)


def test_every_statistic_belongs_to_a_declared_report_and_group() -> None:
    for name, statistic in STATISTICS.items():
        assert REPORTS[statistic.report.name] is statistic.report, name
        assert name.startswith(statistic.report.prefix) and statistic.report.group in GROUPS, name
    assert {statistic.report.group for statistic in STATISTICS.values()} == set(GROUPS)


def test_every_report_takes_the_options_that_it_declares() -> None:
    for report in REPORTS.values():
        parameters = inspect.signature(report.function()).parameters
        if all(parameter.kind is not inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
            assert set(report.takes) <= {*parameters, "statistics"}, report.name


def test_figures_of_one_name_are_shown_alike() -> None:
    """`Figure.statistic` is the name without its report's prefix."""
    for name, statistic in STATISTICS.items():
        same = BY_PLAIN_NAME[statistic.plain]
        assert (statistic.written, statistic.usual, statistic.part) == (same.written, same.usual, same.part), name
        assert statistic.over_repeats == same.over_repeats, name


def test_reports_read_what_audits_add() -> None:
    for report in REPORTS.values():
        assert report.reads == judge_reports.READ.get(report.prefix, report.reads)
