"""Every statistic and report is declared once, and what pages, answers and commands know of it is read from there."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from analytics.figures import Figure
from analytics.judges.compared_judges import LEVELS
from analytics.ratings import additions
from analytics.stats.declared.register import BY_PLAIN_NAME, GROUPS, HEAT_MAPS, OVER_REPEATS, REPORTS, STATISTICS
from analytics.stats.declared.table import PAGE, statistics_page
from panelbench.management.commands.catalogues import catalogue_path, read_catalogue

DOCS = Path(__file__).parents[2] / "docs"


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


def test_reports_of_audits_read_what_is_added_for_them() -> None:
    read = {name for report in REPORTS.values() for name in report.reads}
    added = {additions.LENGTH, additions.FAMILY, additions.CHANGED, LEVELS}
    assert added <= read
    of_statistics = {name for statistic in STATISTICS.values() for name in statistic.reads}
    assert of_statistics == {additions.SUBMITTED_AT, additions.RATED_PLACE}


def headings(page: str) -> set[str]:
    """The anchors of a page of docs/: its headings as GitHub spells them."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    titles = [line.lstrip("#").strip().lower() for line in lines if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", STATISTICS)
def test_every_statistic_is_named_written_and_explained(name: str) -> None:
    """`test_families` asks for each of them by command, API and page, and opens the lists of items behind them."""
    statistic = STATISTICS[name]
    assert statistic.title and not statistic.title.endswith(".")
    page, _, heading = (statistic.doc or statistic.report.doc).partition("#")
    assert not heading or heading in headings(page), (page, heading)
    shown = Figure(statistic=statistic.plain, criterion="fluency", value=0.5, low=0.25, high=0.75)
    assert shown.number == {"coefficient": "0.50", "share": "50%", "signed": "+0.50"}[statistic.written]
    assert shown.interval and set(statistic.usual) <= {"nominal", "ordinal", "interval"}


@pytest.mark.parametrize("language", settings.COMPLETE_LANGUAGES)
def test_titles_are_translated(language: str) -> None:
    path = catalogue_path(Path(settings.CHECKOUT_DIR), language)
    if not path.exists():  # English
        return
    catalogue = read_catalogue(path)
    titles = [title for statistic in STATISTICS.values() for title in (statistic.title, statistic.short_title) if title]
    for title in (*titles, *GROUPS.values()):
        message = catalogue.get(title)
        assert message is not None and message.string, title


def test_the_page_of_all_statistics_is_the_one_that_the_declarations_write() -> None:
    assert PAGE.read_text(encoding="utf-8") == statistics_page(), "python -m analytics.stats.declared.table"


def test_tables_of_pages_have_their_columns_in_the_order_of_the_headings() -> None:
    assert OVER_REPEATS == ("repeat_sd", "flip_rate")
    assert HEAT_MAPS == ("krippendorff_alpha", "fleiss_kappa", "gwet_ac", "percent_agreement")
