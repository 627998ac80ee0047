"""The table of all statistics in docs/methods/statistics.md: ``python -m analytics.stats.declared.table`` writes it."""

from __future__ import annotations

from pathlib import Path

from analytics.stats.declared.declaring import Statistic
from analytics.stats.declared.register import GROUPS, STATISTICS

PAGE = Path(__file__).parents[3] / "docs" / "methods" / "statistics.md"
INTRODUCTION = """# All statistics

What Explore, `panelbench numbers` and the API give by name. Written by `python -m analytics.stats.declared.table` from
the declarations in `analytics/stats/declared/`. *Needs*: what the data must contain; without it the statistic can't be
asked for. *Usual*: the variant that is shown unless others are asked for (nominal, ordinal, interval). *Good*: higher,
lower or nearer to zero.
"""


def statistics_page() -> str:
    """The page as Markdown."""
    pieces = [INTRODUCTION]
    for group, title in GROUPS.items():
        rows = [_row(statistic) for statistic in STATISTICS.values() if statistic.report.group == group]
        head = "| name | statistic | needs | usual | good | explained in |\n|---|---|---|---|---|---|"
        pieces.append("\n".join([f"## {title}\n", head, *rows, ""]))
    return "\n".join(pieces)


def _row(statistic: Statistic) -> str:
    doc = statistic.doc or statistic.report.doc
    page, _, heading = doc.removeprefix("methods/").partition("#")
    target = f"{page}#{heading}" if heading else page
    usual = ", ".join(dict.fromkeys(statistic.usual.values()))
    cells = (f"`{statistic.name}`", statistic.title, ", ".join(statistic.report.needs), usual, statistic.better)
    return f"| {' | '.join(cells)} | [{Path(page).stem}]({target}) |"


if __name__ == "__main__":
    PAGE.write_text(statistics_page(), encoding="utf-8")
