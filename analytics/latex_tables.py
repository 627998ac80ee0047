"""A matrix of figures as a table in LaTeX, with intervals, counts and marks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from django.utils.translation import gettext as _

from analytics import figures
from analytics.answer_pages import Matrix, ShownCell

_LATEX = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "α": r"$\alpha$",
    "κ": r"$\kappa$",
    "τ": r"$\tau$",
    "ρ": r"$\rho$",
    "ω": r"$\omega$",
    "−": "$-$",
    "×": r"$\times$",
    "→": r"$\rightarrow$",
    "–": "--",
    "“": "``",
    "”": "''",
    "’": "'",
    **dict.fromkeys("\n\r\t\x0b\x0c\x85\u2028\u2029", " "),
}
LATEX_COLUMNS, LATEX_ROWS, LATEX_DECISIONS = 5, 10, 20
"""The maximum numbers of columns and rows of one part of a table, so that the part fits a page."""
LATEX_HEAD = "% Needs booktabs, and XeLaTeX or LuaLaTeX where names are not in Latin letters.\n"


def latex_text(text: str) -> str:
    """The text escaped for LaTeX."""
    plain = "".join(_LATEX.get(char, char) for char in figures.UNPRINTABLE.sub("", text))
    return f"{{}}{plain}" if plain.lstrip().startswith(("[", "*")) else plain  # else the end of the row before reads it


def latex_table(table: Matrix, *, name: str, caption: str) -> str:
    """A table with its caption, label, intervals and counts; in parts if it has more columns or rows than fit a
    page.
    """
    places = range(0, max(len(table.columns), 1), LATEX_COLUMNS)
    starts = range(0, max(len(table.rows), 1), LATEX_ROWS)
    parts = [(at, table.rows[start : start + LATEX_ROWS]) for start in starts for at in places]
    in_caption = _in_all_cells(table)
    caption = latex_text(f"{caption} {_('Every cell: %s.') % '; '.join(in_caption)}" if in_caption else caption)
    lines = []
    for number, (at, rows) in enumerate(parts, start=1):
        part = _("%(n)d of %(total)d") % {"n": number, "total": len(parts)}
        which = f" ({part})" if len(parts) > 1 else ""
        label = _label(name, number)
        lines += [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}{which}}}{label}",
            r"\setlength{\tabcolsep}{3pt}",
        ]
        lines += [*_latex_part(table.columns[at : at + LATEX_COLUMNS], rows, at, in_caption), r"\end{table}"]
    return LATEX_HEAD + "\n".join(lines) + "\n"


def _label(name: str, number: int) -> str:
    """The label of a table; further parts have their number in theirs."""
    return rf"\label{{tab:{name}}}" if number == 1 else rf"\label{{tab:{name}-{number}}}"


def latex_decisions(decisions: Iterable[tuple[str, str, str, str, str, str]], *, name: str, note: str = "") -> str:
    """Decisions about judges as tables that fit a page: judge, criterion, language, decision, why it is not
    certain, and what it is based on, which is said once if it is the same for all. ``name``: what tells its label from
    those of other campaigns. ``note``: what else its caption says.
    """
    rows: list[tuple[str, ...]] = [
        (judge, criterion, language, f"{use} ({_('not certain')})" if doubt else use, basis)
        for judge, criterion, language, use, doubt, basis in decisions
    ]
    columns: tuple[str, ...] = (_("Judge"), _("Criterion"), _("Language"), _("Decision"), _("Based on"))
    about = [_("What judges may be used for") + "."]
    if len(bases := {row[-1] for row in rows}) == 1 < len(rows):
        rows, columns = [row[:-1] for row in rows], columns[:-1]
        about.append(_("Every cell: %s.") % bases.pop())
    about += [note] if note else []
    lines = []
    starts = range(0, len(rows), LATEX_DECISIONS)
    for number, start in enumerate(starts, start=1):
        part = _("%(n)d of %(total)d") % {"n": number, "total": len(starts)}
        caption = latex_text(" ".join(about)) + (f" ({part})" if len(starts) > 1 else "")
        label = _label(f"decisions-{name}", number)
        lines += [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}{label}", r"\setlength{\tabcolsep}{3pt}"]
        shape = "l" * len(columns)
        lines += [rf"\begin{{tabular}}{{{shape}}}", r"\toprule", " & ".join(map(latex_text, columns)) + r" \\"]
        lines.append(r"\midrule")
        for row in rows[start : start + LATEX_DECISIONS]:
            lines.append(" & ".join(_in_box(latex_text(text), r"0.18\linewidth") for text in row) + r" \\[2pt]")
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return LATEX_HEAD + "\n".join(lines) + "\n"


def _in_all_cells(table: Matrix) -> list[str]:
    """What stands below the figure of every cell: said once, in the caption."""
    below = [_below(cell) for cell in table.cells]
    first = below[0] if len(below) > 1 else []
    return [text for text in first[1:] if text and all(text in others for others in below)]


def _below(cell: ShownCell) -> list[str]:
    """The texts below a figure: its interval, the mark of that, what it rests on, and whether that is little."""
    figure = cell.figure
    if figure is None or not figure.is_defined:
        return [""]
    return [figure.interval or figure.no_interval, figure.mark, cell.counts, cell.few]


def _latex_part(
    columns: Sequence[str], rows: Iterable[tuple[str, Sequence[ShownCell]]], at: int, in_caption: Collection[str]
) -> Iterator[str]:
    """These columns, from number ``at`` on, of these rows; every cell has its width and breaks its lines."""
    width = rf"{0.76 / max(len(columns), 2):.3f}\linewidth"
    yield rf"\begin{{tabular}}{{l{'l' * len(columns)}}}"
    yield r"\toprule"
    head = [_in_box(latex_text(column or "value"), width) for column in columns]
    yield " & ".join(["", *head]) + r" \\"
    yield r"\midrule"
    for name, cells in rows:
        shown = [_in_box(_latex_cell(cell, in_caption), width) for cell in cells[at : at + LATEX_COLUMNS]]
        yield " & ".join([_in_box(latex_text(name), r"0.15\linewidth"), *shown]) + r" \\[2pt]"
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _in_box(text: str, width: str) -> str:
    return rf"\parbox[t]{{{width}}}{{\raggedright {text}}}" if text else ""


def _latex_cell(cell: ShownCell, in_caption: Collection[str]) -> str:
    figure = cell.figure
    if figure is None:
        return ""
    if not figure.is_defined:
        return rf"\scriptsize {latex_text(_('undefined'))}: {latex_text(figure.reason)}"
    small = [rf"\scriptsize {latex_text(text)}" for text in _below(cell) if text and text not in in_caption]
    return r"\\".join([latex_text(figure.number), *small])
