"""Every statistic and report is declared once, and what pages, answers and commands know of it is read from there."""

from __future__ import annotations

import inspect
import subprocess
import sys

from analytics import families, figures, question_names, questions, score_views
from analytics.computation import cells
from analytics.judges import judge_reports
from analytics.stats.declared.register import GROUPS, REPORTS, STATISTICS


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
            assert {"names" if name == "statistics" and "names" in parameters else name for name in report.takes} - {
                "statistics"
            } <= set(parameters), report.name


def test_declarations_and_tables_agree() -> None:
    assert tuple(STATISTICS) == questions.STATISTICS
    titles = {name: str(title) for name, title in question_names.STATISTIC_NAMES.items()}
    assert {name: statistic.title for name, statistic in STATISTICS.items()} == titles
    groups: dict[str, list[str]] = {title: [] for title in GROUPS.values()}
    for name, statistic in STATISTICS.items():
        groups[GROUPS[statistic.report.group]].append(name)
    assert list(groups.items()) == [(str(title), list(names)) for title, names in question_names.GROUPS]
    needs = {name: statistic.report.needs for name, statistic in STATISTICS.items()}
    assert {name for name, need in needs.items() if {"judge", "two judges"} & set(need)} == questions.NEED_JUDGE
    assert {name for name, need in needs.items() if "two judges" in need} == set(questions.NEED_TWO_JUDGES)
    assert {name for name, need in needs.items() if "measure" in need} == set(questions.NEED_MEASURE)
    for statistic in STATISTICS.values():
        plain = statistic.plain
        assert statistic.usual == cells.VARIANTS.get(plain, {}), plain
        assert (statistic.written == "share") == (plain in figures.PERCENTAGES), plain
        assert (statistic.written == "signed") == (plain in figures.SIGNED), plain
        assert statistic.part == figures.PARTS.get(plain, ""), plain
    assert [name for name, it in STATISTICS.items() if it.is_chance_corrected] == list(figures.CHANCE_CORRECTED)
    for family, takes in judge_reports.TAKES.items():
        report = next(each for each in REPORTS.values() if each.prefix == f"{family}.")
        assert tuple(name for name in report.takes if name != "statistics") == takes
        assert report.reads == judge_reports.READ.get(f"{family}.", report.reads)
    assert {name: (title, STATISTICS[name].symbol) for name, (title, _symbol) in score_views.COEFFICIENT_NAMES.items()}
    assert {f"{family}." for family in families.FAMILIES} <= {report.prefix for report in REPORTS.values()}
