"""Charts as Vega-Lite specs, rendered to SVG by the worker that makes a snapshot; web processes fill in the words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import vl_convert

from accounts import languages
from analytics.figures import AXIS, FONT, LIGHT, MINUS, Figure, Figures, Labelled, stands_for

Spec = dict[str, Any]

ROW_HEIGHT = 33
WIDTHS = {"wide": 410, "narrow": 300}
TICKS = {"wide": 6, "narrow": 4}
COLOURS = {name: f"var(--{name})" for name in LIGHT}

# What the renderer writes for programs that read its drawing, and fonts and shapes without content.
UNUSED = re.compile(r' (?:class|role|aria-[a-z]+|pointer-events|xmlns:xlink|font-family|opacity)="[^"]*"')
EMPTY = re.compile(r'<path(?: [a-z]+="[^"]*")*? d=""[^>]*/>|<path d="M0,0h0v0h0Z"/>')


def bias(
    content: Mapping[str, Any], drawn: Callable[[Sequence[Spec]], list[str]] | None = None
) -> list[dict[str, str]]:
    """Judge minus panel by language, for every judge and criterion of a snapshot that have such a figure.

    Each row has judge, criterion and one SVG for each of `WIDTHS`, with placeholders (`stands_for`) for
    the words: names of languages by their place in `languages`, the title of the axis, the word for an approximate
    interval. `drawn` gives the SVG of each spec.
    """
    figures, tags = Figures(content["estimates"]), list(content["languages"])
    criteria = sorted({row["criterion"] for row in content["counts"]})
    names = {tag: stands_for(str(place)) for place, tag in enumerate(tags)}
    spelt = [name for tag in tags for name in (languages.english_name(tag), languages.endonym(tag))]
    longest = max(map(len, spelt), default=0)
    charts: list[tuple[str, str, list[Spec]]] = []
    for judge in (row["name"] for row in content["judges"]):
        for criterion in criteria:
            found = figures.among("bias", [criterion], tags, judge)
            rows = [Labelled(names[figure.language or ""], figure) for figure in found if figure.is_defined]
            if rows:
                sizes = [forest(rows, width=width, longest_name=longest) for width in WIDTHS]
                charts.append((judge, criterion, sizes))
    specs = [spec for _judge, _criterion, sizes in charts for spec in sizes]
    svgs = iter(drawn(specs) if drawn else map(svg, specs))
    return [
        {"judge": judge, "criterion": criterion, **{width: next(svgs) for width in WIDTHS}}
        for judge, criterion, _sizes in charts
    ]


def forest(rows: Sequence[Labelled], *, longest_name: int, width: str = "wide") -> Spec:
    """Signed differences with their intervals around zero, the smallest on top.

    Intervals beyond zero are diamonds in brass; figures on few items are hollow; what is undefined has no row. An
    interval that is approximate bears that word. `longest_name`: letters of the longest name that a row may bear.
    """
    values = [_mark(row) for row in rows if row.figure.is_defined]
    order = [value["name"] for value in sorted(values, key=lambda value: (value["value"], value["name"]))]
    label_width = 24 + min(150, 7 * longest_name)  # pixels at 12 px a letter, so that the whole chart keeps its width
    axis = stands_for("axis", len(AXIS))
    x, y = _differences(axis, values, TICKS[width]), _names(order, label_width)
    colour = _by_clarity([COLOURS["brass"], COLOURS["accent"]])
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": WIDTHS[width] - label_width,
        "height": max(1, len(values)) * ROW_HEIGHT,
        # Browsers set the labels in fonts of their own, up to a sixth wider than those the renderer measures by.
        "padding": {"left": 6, "right": 16, "top": 4, "bottom": 2},
        "background": "transparent",
        "data": {"values": values},
        "layer": [_zero(), _whiskers(x, y, colour), _points(x, y, colour), _words(x, y)],
        "config": _config(),
    }


def svg(spec: Spec) -> str:
    """The chart as SVG text without names, roles, identifiers or styles that could meet those of a page."""
    drawn = EMPTY.sub("", UNUSED.sub("", str(vl_convert.vegalite_to_svg(spec, vl_version="6.4"))))
    return drawn.replace("<svg ", f'<svg direction="ltr" font-family="{FONT}" ', 1)


def _mark(row: Labelled) -> dict[str, Any]:
    figure = row.figure
    return {
        "name": row.name,
        "value": figure.value,
        "low": figure.low,
        "high": figure.high,
        "is_clear": figure.is_clear,
        "is_small": figure.is_small,
        "is_approximate": figure.is_approximate,
    }


def _domain(values: Iterable[dict[str, Any]]) -> list[float]:
    """Both sides of zero, with a little air."""
    ends = [float(value[end]) for value in values for end in ("low", "value", "high") if value[end] is not None]
    low, high = min([*ends, -0.1]), max([*ends, 0.1])
    air = 0.06 * (high - low)
    return [round(low - air, 3), round(high + air, 3)]


def _differences(title: str, values: Iterable[dict[str, Any]], ticks: int) -> Spec:
    low, high = _domain(values)
    step = _step((high - low) / ticks)
    places = range(math.ceil(low / step), math.floor(high / step) + 1)
    digits = 0 if step >= 1 else 1 if step >= 0.1 else 2
    # The renderer writes a hyphen for a minus; nought has no sign.
    label = f"datum.value === 0 ? '0' : replace(format(datum.value, '+.{digits}f'), /^-/, '{MINUS}')"
    axis = {"values": [round(place * step, 6) for place in places], "labelExpr": label, "grid": True}
    return {
        "field": "value",
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [low, high]},
        "axis": {**axis, "labelFlush": False},
    }


def _step(smallest: float) -> float:
    """The smallest of 0.01, 0.02, 0.05, 0.1, 0.2, ... that is no smaller than that."""
    size = 10.0 ** math.floor(math.log10(max(smallest, 0.01)))
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= smallest - 1e-9)


def _names(order: Sequence[str], width: int) -> Spec:
    axis = {"labelPadding": 10, "minExtent": width, "maxExtent": width}
    return {"field": "name", "type": "nominal", "sort": list(order), "title": None, "axis": axis}


def _by_clarity(outcomes: list[str]) -> Spec:
    """One way to draw what excludes zero, another for what doesn't."""
    scale = {"domain": [True, False], "range": outcomes}
    return {"field": "is_clear", "type": "nominal", "scale": scale, "legend": None}


def _zero() -> Spec:
    mark = {"type": "rule", "strokeDash": [3, 3], "strokeWidth": 1.5, "color": COLOURS["ink"]}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": {"x": {"datum": 0, "type": "quantitative"}}}


def _whiskers(x: Spec, y: Spec, colour: Spec) -> Spec:
    return {
        "mark": {"type": "rule", "strokeWidth": 2.2, "strokeCap": "round"},
        "transform": [{"filter": "datum.low !== null"}],
        "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour},
    }


def _points(x: Spec, y: Spec, colour: Spec) -> Spec:
    fill = {"condition": {"test": "datum.is_small", "value": COLOURS["surface"]}, **colour}
    shape = _by_clarity(["diamond", "circle"])
    return {
        "mark": {"type": "point", "size": 95, "filled": False, "strokeWidth": 2, "opacity": 1},
        "encoding": {"x": x, "y": y, "stroke": colour, "fill": fill, "shape": shape},
    }


def _words(x: Spec, y: Spec) -> Spec:
    """The word under an interval, around its middle."""
    word = stands_for("approximate", len("approximate"))
    mark = {"type": "text", "dy": 13, "font": FONT, "fontSize": 10.5, "color": COLOURS["ink"], "text": word}
    middle = {**x, "field": "middle"}
    return {
        "mark": mark,
        "transform": [
            {"filter": "datum.is_approximate"},
            {"calculate": "(datum.low + datum.high) / 2", "as": "middle"},
        ],
        "encoding": {"x": middle, "y": y},
    }


def _config() -> Spec:
    axis = {
        "labelFont": FONT,
        "titleFont": FONT,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 9,
        "labelColor": COLOURS["ink"],
        "titleColor": COLOURS["ink-faint"],
        "labelLimit": 170,
        "gridColor": COLOURS["line"],
        "domain": False,
        "ticks": False,
    }
    return {"axis": axis, "view": {"stroke": None}, "aria": False}


# --- any figures with intervals --------------------------------------------------------------------------------------
def interval_chart(shown: Sequence[Figure], *, longest_name: int) -> Spec:
    """Figures with their intervals below each other, in their order; names and axis are placeholders.

    The name of each is `stands_for` its place. Figures on few items are hollow, approximate intervals are dashed.
    """
    values = [
        _mark(Labelled(stands_for(str(place)), figure)) | {"is_clear": False} for place, figure in enumerate(shown)
    ]
    label_width = 26 + round(7.7 * longest_name)
    low, high = min(value["low"] for value in values), max(value["high"] for value in values)
    air = 0.04 * (high - low) or 0.1
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "title": stands_for("axis", len(AXIS)),
        "scale": {"domain": [low - air, high + air], "nice": False, "zero": False},
        "axis": {"tickCount": TICKS["wide"], "grid": True, "labelFlush": False},
    }
    y = _names([value["name"] for value in values], label_width)
    colour: Spec = {"value": COLOURS["accent"]}
    whiskers = _whiskers(x, y, colour)
    dashed: Spec = {"condition": {"test": "datum.is_approximate", "value": [4, 4]}, "value": [1, 0]}
    whiskers["encoding"] |= {"strokeDash": dashed}
    crosses = [_zero()] if low < 0 < high else []
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": 740 - label_width,
        "height": len(values) * 18,
        "padding": {"left": 6, "right": 16, "top": 4, "bottom": 2},
        "background": "transparent",
        "data": {"values": values},
        "layer": [*crosses, whiskers, _points(x, y, colour)],
        "config": _config(),
    }
