"""The four pictures of a study as files: SVG that stands alone, LaTeX, and the decisions as CSV.

Styles are attributes and colours are plain, so that every program for SVG shows a picture as the page does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from django.utils.translation import gettext as _

from analytics.answer_pages import Matrix, ShownCell
from analytics.figures import FONT, LIGHT, UNPRINTABLE, Figure, shortened
from analytics.judges.decisions import ORDER
from analytics.judges.reasons import CellDecision
from analytics.latex_tables import latex_decisions, latex_table
from analytics.study.campaign_pictures import CampaignPictures
from analytics.study.pictures import Drawing
from annotation.writers.csv import csv_lines

PICTURES = ("decisions", "bias", "agreement", "generators")
_TOKENS = LIGHT | {
    "ink-soft": "#3c4a51",
    "line-strong": "#c2bfb8",
    "accent-ink": "#00525a",
    "accent-soft": "#e3f5f6",
    "brass-soft": "#fef2da",
    "brass-ink": "#73450e",
    "danger": "#ac3029",
    "danger-soft": "#fff0ed",
}
"""The tokens of static/css/base.css in light."""
MARK_COLOURS = {
    "within": "accent", "beyond": "brass", "kind-1": "accent", "kind-2": "brass", "kind-3": "ink-soft",
    "kind-4": "danger", "kind-5": "ink", "kind-6": "brass-ink",
}  # fmt: skip
"""The colour of each mark (static/css/study.css)."""
SQUARE_COLOURS = {
    "judge_alone": ("accent", "accent", "surface"),
    "judge_with_correction": ("accent-soft", "accent", "accent-ink"),
    "ranking_only": ("brass-soft", "brass", "brass-ink"),
    "humans_only": ("danger", "danger", "surface"),
    "rubric_problem": ("danger-soft", "danger", "danger"),
    "insufficient": ("surface", "line-strong", "ink-soft"),
    "stale": ("surface", "line-strong", "ink-soft"),
}
"""Of each decision: its fill, its border and its letters; a broken border where `BROKEN_BORDERS` has it."""
UNKNOWN_SQUARE = ("surface", "brass", "ink")
BROKEN_BORDERS = ("rubric_problem", "stale")
INKS = ("#e3f4f4", "#cbe8e9", "#aad6d7", "#86bfc1", "#66a8ad", "#005f66", "#004851")
"""The seven depths of a heat map; letters are light from the sixth on (static/css/dashboard.css)."""
FULL_WIDTH, BESIDE_NAMES, PLOT_WIDTH = 680, 150, 490
EDGE, LINE_HEIGHT = 20, 18
DASHES = "4 3"


# --- SVG ----------------------------------------------------------------------------------------------------------
def svg_file(drawn: CampaignPictures, picture: str) -> str | None:
    """The picture as a file of its own; None before there is anything to draw."""
    title, about = titles(drawn)[picture]
    if picture == "decisions":
        body = _squares(drawn) if drawn.squares else None
    elif picture == "agreement":
        body = _heat(drawn) if drawn.heat else None
    else:
        drawing = drawn.forest if picture == "bias" else drawn.dots
        body = _axis(drawing) if drawing else None
    if body is None:
        return None
    elements, height, width = body
    feet = [text for text in (about, *_feet(drawn, picture)) if text]
    whole = 64 + height + LINE_HEIGHT * len(feet) + EDGE
    lines = [_text(EDGE, 64 + height + LINE_HEIGHT * number, text, "ink-soft") for number, text in enumerate(feet, 1)]
    width = max(width, FULL_WIDTH)
    return "".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{whole}" viewBox="0 0 {width} {whole}" ',
            f'role="img" font-family="{FONT}" font-size="12"><title>{_plain(title)}</title>',
            f'<rect width="{width}" height="{whole}" fill="{_TOKENS["surface"]}"/>',
            _text(EDGE, 30, title, "ink", size=16, weight=700),
            f'<g transform="translate(0 50)">{"".join(elements)}</g>',
            *lines,
            "</svg>",
        )
    )


def titles(drawn: CampaignPictures) -> dict[str, tuple[str, str]]:
    """The title of each picture, and what it is about."""
    judge = drawn.choice.judge
    bias = _("%(judge)s minus the panel") % {"judge": judge} if judge else _("Judge minus the panel")
    points = f"{drawn.criterion_name}. {_('points, with 95 % intervals')}. {drawn.reference_name}."
    means = drawn.about_means
    return {
        "decisions": (_("Where may a judge be used?"), ""),
        "bias": (bias, points),
        "agreement": (_("Do the people agree?"), _("Krippendorff’s α.")),
        "generators": (f"{_('Generators')}: {drawn.criterion_name}", means),
    }


def _feet(drawn: CampaignPictures, picture: str) -> list[str]:
    """What is said once below a picture."""
    if picture == "decisions":
        letters = [f"{letters}: {drawn.study.criteria[key]}" for key, letters in drawn.letters.items()]
        return [*letters, _note(drawn, picture)]
    found = {"bias": drawn.basis_of_bias, "agreement": drawn.basis_of_heat}
    return [_note(drawn, picture), found.get(picture, "")]


def _note(drawn: CampaignPictures, picture: str) -> str:
    """On how few items a picture rests, in the file of either format; empty if they are enough."""
    if picture in ("bias", "agreement"):
        return drawn.bias_sentence if picture == "bias" else drawn.heat_sentence
    return drawn.preliminary_decisions if picture == "decisions" else drawn.preliminary_means


def _plain(text: str) -> str:
    return escape(UNPRINTABLE.sub("", text))


def _text(x: float, y: float, text: str, colour: str, *, size: int = 12, weight: int = 400, at: str = "start") -> str:
    fill = _TOKENS.get(colour, colour)
    about = f'font-size="{size}" font-weight="{weight}" text-anchor="{at}" fill="{fill}"'
    return f'<text x="{x:g}" y="{y:g}" {about}>{_plain(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, width: float = 1, dashes: str = "") -> str:
    broken = f' stroke-dasharray="{dashes}"' if dashes else ""
    ends = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
    return f'<line {ends} stroke="{_TOKENS[colour]}" stroke-width="{width:g}" stroke-linecap="round"{broken}/>'


def _shape(x: float, y: float, outline: str, kind: str) -> str:
    style = f'fill="{_TOKENS[MARK_COLOURS[kind]]}" stroke="{_TOKENS["surface"]}" stroke-width="1.5"'
    return f'<path transform="translate({x:g} {y:g})" d="{outline}" {style}/>'


def _axis(drawing: Drawing) -> tuple[list[str], int, int]:
    """Marks with intervals by row, on one axis."""
    height = sum(max(30, row.height) for row in drawing.rows)

    def at(share: float) -> float:
        return round(BESIDE_NAMES + PLOT_WIDTH * share / 100, 1)

    found = []
    if drawing.band:
        start, end = map(at, drawing.band)
        band = _TOKENS["accent-soft"]
        found.append(f'<rect x="{start:g}" y="0" width="{end - start:g}" height="{height}" fill="{band}"/>')
    found += [_line(at(share), 0, at(share), height, "line") for share, _tick in drawing.axis.ticks]
    if drawing.zero is not None:
        found.append(_line(at(drawing.zero), 0, at(drawing.zero), height, "ink", dashes="2 3"))
    top = 0
    for row in drawing.rows:
        own = max(30, row.height)
        middle = top + own / 2
        found.append(_text(BESIDE_NAMES - 12, middle + 4, shortened(row.name), "ink", at="end"))
        if row.is_undecided:
            found.append(_text(BESIDE_NAMES + PLOT_WIDTH + 4, middle + 4, "?", "brass-ink", weight=700))
        for placed in row.placed:
            mark, y = placed.mark, round(top + own * placed.y / 100, 1)
            if mark.start is not None and mark.end is not None:
                found.append(_line(at(mark.start), y, at(mark.end), y, MARK_COLOURS[mark.kind], width=3))
            found.append(_shape(at(mark.at), y, mark.shape, mark.kind))
        top += own
    found += [_text(at(share), height + 16, text, "ink-faint", at="middle") for share, text in drawing.axis.ticks]
    key, below = _key_of_axis(drawing, height + 40)
    return [*found, *key], below, FULL_WIDTH


def _key_of_axis(drawing: Drawing, top: int) -> tuple[list[str], int]:
    """The margin, the marks and what is not decided, one below the other."""
    found = []
    if drawing.margin:
        found.append(_text(BESIDE_NAMES, top, f"{_('margin')} {drawing.margin}", "ink-soft"))
        top += LINE_HEIGHT
    for kind, outline, name in drawing.kinds:
        found += [_shape(BESIDE_NAMES + 6, top - 4, outline, kind), _text(BESIDE_NAMES + 20, top, name, "ink-soft")]
        top += LINE_HEIGHT
    if any(row.is_undecided for row in drawing.rows):
        found.append(_text(BESIDE_NAMES, top, f"?: {_('not decided')}", "ink-soft"))
        top += LINE_HEIGHT
    return found, top


def _heat(drawn: CampaignPictures) -> tuple[list[str], int, int]:
    """Agreement by criterion and language; a broken border where few items are independent."""
    columns = drawn.heat_columns
    wide = max(64, min(110, PLOT_WIDTH // max(len(columns), 1)))
    found = [
        _text(BESIDE_NAMES + wide * (number + 0.5), 12, shortened(name), "ink", weight=600, at="middle")
        for number, (_tag, name) in enumerate(columns)
    ]
    top = 22
    has_few = False
    for name, cells in drawn.heat_rows:
        found.append(_text(BESIDE_NAMES - 12, top + 21, shortened(name), "ink", at="end"))
        for number, (cell, _address) in enumerate(cells):
            x = BESIDE_NAMES + wide * number
            fill = INKS[cell.bin - 1] if cell.bin else _TOKENS["surface"]
            few = cell.is_muted
            has_few = has_few or few
            border = _TOKENS["brass" if cell.needs_attention else "line-strong"]
            broken = f' stroke-dasharray="{DASHES}"' if few else ""
            box = f'x="{x + 2}" y="{top + 2}" width="{wide - 4}" height="28" rx="5"'
            found.append(f'<rect {box} fill="{fill}" stroke="{border}"{broken}/>')
            number_shown = cell.figure.number if cell.figure and cell.figure.is_defined else "–"
            ink = "surface" if (cell.bin or 0) > 5 else "ink"
            found.append(_text(x + wide / 2, top + 21, number_shown, ink, weight=600, at="middle"))
        top += 32
    if has_few:
        few_words = _("Broken border: fewer than 30 items or clusters, preliminary.")
        found.append(_text(EDGE, top + 20, few_words, "ink-soft"))
        top += 24
    return found, top + 8, BESIDE_NAMES + wide * len(columns) + EDGE


def _squares(drawn: CampaignPictures) -> tuple[list[str], int, int]:
    """Judges by languages, a square for each criterion."""
    side, gap = 26, 10
    n_criteria = len(drawn.study.criteria)
    wide = n_criteria * (side + 3) + gap
    found = [
        _text(BESIDE_NAMES + wide * number + (wide - gap) / 2, 12, shortened(name), "ink", weight=600, at="middle")
        for number, (_tag, name, _cells) in enumerate(drawn.squares[0].languages)
    ]
    top = 22
    for judge in drawn.squares:
        found.append(_text(BESIDE_NAMES - 12, top + 19, shortened(judge.judge), "ink", at="end"))
        for number, (_tag, _name, squares) in enumerate(judge.languages):
            for place, square in enumerate(squares):
                if square is not None:
                    x = BESIDE_NAMES + wide * number + place * (side + 3)
                    found += _square(x, top, side, square.use, square.letters)
                    if square.state == "not_certain":
                        found.append(_line(x + 4, top + side - 3, x + side - 4, top + side - 3, "brass", width=3))
        top += side + 8
    top += 14
    for use, name in drawn.uses:
        found += [*_square(BESIDE_NAMES, top, 16, use, ""), _text(BESIDE_NAMES + 24, top + 13, name, "ink-soft")]
        top += LINE_HEIGHT + 4
    if drawn.has_uncertain_squares:
        found.append(_line(BESIDE_NAMES, top + 9, BESIDE_NAMES + 16, top + 9, "brass", width=3))
        found.append(
            _text(
                BESIDE_NAMES + 24,
                top + 13,
                _("not certain: applies now; more items may change it"),
                "ink-soft",
            )
        )
        top += LINE_HEIGHT + 4
    return found, top + 8, BESIDE_NAMES + wide * len(drawn.squares[0].languages) + EDGE


def _square(x: float, y: float, side: int, use: str, letters: str) -> list[str]:
    fill, border, ink = SQUARE_COLOURS.get(use, UNKNOWN_SQUARE)
    broken = f' stroke-dasharray="{DASHES}"' if use in BROKEN_BORDERS or use not in SQUARE_COLOURS else ""
    colours = f'fill="{_TOKENS[fill]}" stroke="{_TOKENS[border]}" stroke-width="1.5"{broken}'
    box = f'<rect x="{x:g}" y="{y:g}" width="{side}" height="{side}" rx="5" {colours}/>'
    return [box, _text(x + side / 2, y + side / 2 + 4, letters, ink, weight=700, at="middle")]


# --- tables -------------------------------------------------------------------------------------------------------
def tex_file(drawn: CampaignPictures, picture: str) -> str | None:
    """The picture as a table in LaTeX; None before there is anything to write."""
    if picture == "decisions":
        about_cells = [
            (
                cell.row["judge"], drawn.names.criterion(cell.row["criterion"]),
                drawn.names.language(cell.row["language"]), str(cell.use.label), cell.why_not_certain,
                cell.basis,
            )
            for cell in _ordered_cells(drawn)
        ]  # fmt: skip
        name, note = str(drawn.study.campaign.pk), _note(drawn, picture)
        return latex_decisions(about_cells, name=name, note=note) if about_cells else None
    table = _matrix(drawn, picture)
    if not table.rows:
        return None
    title, about = titles(drawn)[picture]
    return latex_table(
        table,
        name=f"study-{picture}",
        caption=" ".join(filter(None, (title if title.endswith("?") else f"{title}.", about, _note(drawn, picture)))),
    )


def _matrix(drawn: CampaignPictures, picture: str) -> Matrix:
    title = titles(drawn)[picture][0]
    if picture == "agreement":
        columns = tuple(name for _tag, name in drawn.heat_columns)
        rows = [
            (
                name,
                [ShownCell(name, column, cell.figure) for column, (cell, _items) in zip(columns, cells, strict=True)],
            )
            for name, cells in drawn.heat_rows
        ]
    else:
        drawing = drawn.forest if picture == "bias" else drawn.dots
        kinds = drawing.kinds if drawing else ()
        columns = (title,) if picture == "bias" else tuple(name for _kind, _outline, name in kinds)
        rows = [
            (row.name, [_of(row.marks, row.name, column, is_only=picture == "bias") for column in columns])
            for row in (drawing.rows if drawing else ())
        ]
    return Matrix(title, "", columns, tuple((name, tuple(cells)) for name, cells in rows))


def _of(marks: Sequence[Any], row: str, column: str, *, is_only: bool) -> ShownCell:
    figures: Iterator[Figure] = (mark.figure for mark in marks if is_only or mark.name == column)
    return ShownCell(row, column, next(figures, None))


def decisions_csv(drawn: CampaignPictures) -> Iterator[str]:
    """A row for each decision: judge, criterion, language, the decision, and on how many items it is based."""
    rows = (
        [cell.row[name] for name in ("judge", "criterion", "language")]
        + [cell.use.value, cell.state, cell.row["n_items"]]
        for cell in _ordered_cells(drawn)
    )
    return csv_lines(["judge", "criterion", "language", "decision", "state", "items"], rows)


def _ordered_cells(drawn: CampaignPictures) -> list[CellDecision]:
    """The decisions, those about the chosen judge first, from the widest use."""
    return sorted(
        drawn.study.cells,
        key=lambda cell: (cell.row["judge"] != drawn.choice.judge, cell.row["judge"], ORDER.index(cell.use)),
    )
