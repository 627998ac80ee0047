"""Reports of a campaign, and bundles by which their figures are recomputed; a worker writes both.

`content` asks the questions and puts a report together, `methods` puts settings into words, `latex` writes tables,
`files` HTML, PDF, CSV and SVG. Its exports are registered with `models.BY_WORKER` when the app is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from analytics.exporting.exports import Export
from annotation.writers import archives


def report_pieces(export: Export, tell: Callable[[int, int], None]) -> Iterator[bytes]:
    """The report as one file; ``tell`` hears how many of its questions are answered, and may raise to stop."""
    from analytics.reports import content, files  # pandas and the renderer, for workers only

    report = content.composed_report(export.subject, content.asked_layout(export), tell)
    yield from files.written_report(report, export.kind)


def recomputation_pieces(export: Export, tell: Callable[[int, int], None]) -> Iterator[bytes]:
    """The bundle from which the report's figures are computed again."""
    from analytics.reports import content, recomputation

    layout = content.asked_layout(export)
    yield from archives.spooled(lambda out: recomputation.write_recomputation(export.subject, layout, out, tell))
