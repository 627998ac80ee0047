"""A report as files: self-contained HTML, PDF, tables in LaTeX and CSV, figures in SVG, and all of them in a zip."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZipFile

from django.template.loader import render_to_string
from django.utils import translation
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from accounts.refusals import Refused
from analytics import charts, figures, latex_tables
from analytics.answer_pages import Matrix
from analytics.reports.content import CampaignReport, figures_of
from annotation.writers import archives
from annotation.writers.archives import dateless

STYLE = Path(__file__).with_name("report.css")
FEWEST_DRAWN, MOST_DRAWN = 2, 36
"""A table has a chart if it has at least FEWEST_DRAWN and at most MOST_DRAWN estimates."""
MANY_COLUMNS = 5
"""A table with more columns than this is on a landscape page of a PDF."""


@dataclass(frozen=True, slots=True)
class NumberedTable:
    """A table with its number in the report, its file's name, and its chart without words ("" if it has no chart)."""

    number: int
    name: str
    table: Matrix
    svg: str
    words: Mapping[str, str]

    @property
    def is_wide(self) -> bool:
        return len(self.table.columns) > MANY_COLUMNS

    @property
    def chart(self) -> SafeString:
        """The chart as part of a page, in whose colours it is shown."""
        return figures.inline(self.svg, self.words)

    @property
    def caption(self) -> str:
        """What the table and its chart show."""
        return f"{self.table.statistic}. {self.table.about}" if self.table.about else self.table.statistic

    @property
    def made(self) -> list[str]:
        """The methods of its intervals, or the reasons why cells have no interval; each once."""
        shown = [cell.figure for cell in self.table.cells if cell.figure is not None]
        return sorted({each.method if each.has_interval else each.no_interval for each in shown} - {""})


def written_report(report: CampaignReport, kind: str) -> Iterator[bytes]:
    """The report as ``html``, ``pdf`` or ``zip``; refused if this server can't write PDF."""
    with translation.override("en"):
        numbered = numbered_tables(report)
        if kind == "zip":
            yield from archives.spooled(lambda out: _write_archive(report, numbered, out))
            return
        page = report_page(report, numbered, is_print=kind == "pdf")
        yield as_pdf(page) if kind == "pdf" else page.encode()


def numbered_tables(report: CampaignReport) -> dict[str, list[NumberedTable]]:
    """By part its tables, numbered through the report, each with its chart."""
    found: dict[str, list[NumberedTable]] = {}
    number = 0
    for part in report.parts:
        here = found.setdefault(part.part.name, [])
        for table in part.tables:
            number += 1
            here.append(NumberedTable(number, f"{number:02}-{part.part.name}", table, *_drawn(table)))
    return found


def _drawn(table: Matrix) -> tuple[str, dict[str, str]]:
    """The chart of a table if its figures have intervals, and the chart's words."""
    shown = [(name, figure) for name, figure in figures_of(table) if figure.has_interval]
    if not FEWEST_DRAWN <= len(shown) <= MOST_DRAWN:
        return "", {}
    words = {str(place): name for place, (name, _figure) in enumerate(shown)}
    longest = max(map(len, words.values()))
    spec = charts.interval_chart([figure for _name, figure in shown], longest_name=longest)
    return charts.svg(spec), {**words, "axis": table.statistic}


# --- HTML and PDF ----------------------------------------------------------------------------------------------------
def report_page(report: CampaignReport, numbered: Mapping[str, list[NumberedTable]], *, is_print: bool = False) -> str:
    """The report as one page without any address that a browser would fetch; in plain light colours for print."""
    style = STYLE.read_text("utf-8")
    parts = [(part, numbered[part.part.name]) for part in report.parts]
    context = {"report": report, "parts": parts, "style": mark_safe(style)}  # noqa: S308 (our own file)
    page = render_to_string("analytics/report.html", context)
    return re.sub(r"var\(--([a-z-]+)\)", _in_light, page) if is_print else page


def _in_light(found: re.Match[str]) -> str:
    """A colour of our own; a name in the data may look like one, and stays."""
    return figures.LIGHT.get(found[1], found[0])


def pdf_is_installed() -> bool:
    """Whether the library that writes PDF is installed; if Pango is missing, writing is refused later."""
    return find_spec("weasyprint") is not None


def as_pdf(page: str) -> bytes:
    """A page as PDF; refused if WeasyPrint or Pango is missing. Nothing is fetched from a network."""
    for name in ("weasyprint", "weasyprint.progress", "fontTools"):
        logging.getLogger(name).disabled = True  # they log every step, also while they are imported
    try:
        library = import_module("weasyprint")
    except (ImportError, OSError):
        sentence = _(
            "This server can't write PDF. The operator can install it: pip install 'panelbench[pdf]', and Pango. "
            "HTML can be printed to PDF by a browser."
        )
        raise Refused(sentence, code="unwritable", fields={"format": sentence}) from None
    written: bytes = library.HTML(string=page, url_fetcher=_fetch_nothing).write_pdf()
    return written


def _fetch_nothing(address: str, *_more: Any, **_options: Any) -> Any:
    raise ValueError(f"A report refers to nothing outside: {address}")


# --- all of it -------------------------------------------------------------------------------------------------------
def _write_archive(report: CampaignReport, numbered: Mapping[str, list[NumberedTable]], out: BinaryIO) -> None:
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, content in _members(report, numbered):
            archive.writestr(dateless(name), content)


def _members(report: CampaignReport, numbered: Mapping[str, list[NumberedTable]]) -> Iterator[tuple[str, bytes | str]]:
    yield "report.html", report_page(report, numbered)
    if pdf_is_installed():
        yield "report.pdf", as_pdf(report_page(report, numbered, is_print=True))
    yield "methods.txt", "\n\n".join([*report.methods, *_listed_references(report)]) + "\n"
    if report.decided:
        yield (
            "tables/decisions.tex",
            latex_tables.latex_decisions((row[:6] for row in report.decision_rows), name=str(report.campaign.pk)),
        )
    for part in report.parts:
        yield f"tables/{part.part.name}.csv", estimates_csv(part.snapshot.content["estimates"])
        for each in numbered[part.part.name]:
            yield f"tables/{each.name}.tex", latex_tables.latex_table(each.table, name=each.name, caption=each.caption)
            if each.svg:
                yield f"figures/{each.name}.svg", figures.alone(each.svg, each.words, title=each.caption, theme="light")


def estimates_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Figures with all digits; the order of columns is fixed and does not depend on the order of a row's keys."""
    from analytics.stats.cli.files import rendered_rows

    return rendered_rows([dict(sorted(row.items())) for row in rows], "csv")


def _listed_references(report: CampaignReport) -> list[str]:
    return [f"[{place}] {text}" for place, text in enumerate(report.references, start=1)]
