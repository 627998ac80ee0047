"""Charts as Vega-Lite specs, made of plain values and rendered to SVG on the server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from analytics.figures import Figure

Spec = dict[str, Any]

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', Arial, sans-serif"
ROW_HEIGHT = 33
# The screens' own colours (static/css/tokens.css) in a notation that every SVG renderer reads.
THEMES = {
    "light": {
        "ink": "#122027",
        "faint": "#58666c",
        "line": "#e3e1dc",
        "clear": "#c58632",
        "unclear": "#005f66",
        "surface": "#ffffff",
    },
    "dark": {
        "ink": "#efece8",
        "faint": "#939fa3",
        "line": "#253034",
        "clear": "#e7b463",
        "unclear": "#62c7c8",
        "surface": "#11191c",
    },
}
WIDTHS = {"wide": 410, "narrow": 300}
TICKS = {"wide": 6, "narrow": 4}


@dataclass(frozen=True, slots=True)
class Labelled:
    """A figure under the name its row bears."""

    name: str
    figure: Figure


def forest(
    rows: Sequence[Labelled],
    *,
    axis: str,
    description: str,
    theme: str = "light",
    width: str = "wide",
    approximate: str = "approximate",
) -> Spec:
    """Signed differences with their intervals around zero, the smallest on top.

    Intervals beyond zero are diamonds in brass; figures on few items are hollow; what is undefined has no row. An
    interval that is approximate bears that word.
    """
    colours = THEMES[theme]
    values = [_mark(row) for row in rows if row.figure.is_defined]
    order = [value["name"] for value in sorted(values, key=lambda value: (value["value"], value["name"]))]
    label_width = _label_width(order)
    x, y = _differences(axis, values, TICKS[width]), _names(order)
    colour = _by_clarity([colours["clear"], colours["unclear"]])
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": description,
        "width": WIDTHS[width] - label_width,
        "height": max(1, len(values)) * ROW_HEIGHT,
        # Browsers set the labels in fonts of their own, up to a sixth wider than those the renderer measures by.
        "padding": {"left": label_width // 6, "right": 16, "top": 4, "bottom": 2},
        "background": "transparent",
        "data": {"values": values},
        "layer": [
            _zero(colours),
            _whiskers(x, y, colour),
            _points(x, y, colour, colours),
            _words(x, y, colours, approximate),
        ],
        "config": _config(colours),
    }


def svg(spec: Spec) -> str:
    """The chart as SVG text; the renderer is loaded with the first one."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(spec, vl_version="6.4"))


def _mark(row: Labelled) -> dict[str, Any]:
    figure = row.figure
    return {
        "name": row.name,
        "value": figure.value,
        "low": figure.low,
        "high": figure.high,
        "is_clear": figure.excludes_zero,
        "is_small": figure.is_small,
        "is_approximate": figure.is_approximate,
    }


def _domain(values: Iterable[dict[str, Any]]) -> list[float]:
    """Both sides of zero, with a little air."""
    ends = [float(value[end]) for value in values for end in ("low", "value", "high") if value[end] is not None]
    low, high = min([*ends, -0.1]), max([*ends, 0.1])
    air = 0.06 * (high - low)
    return [round(low - air, 3), round(high + air, 3)]


def _label_width(names: Iterable[str]) -> int:
    """Room for the longest name at 12 px, so that the whole chart keeps its width."""
    return 24 + min(150, max((7 * len(name) for name in names), default=0))


def _differences(title: str, values: Iterable[dict[str, Any]], ticks: int) -> Spec:
    axis = {"format": "+.1f", "tickCount": ticks, "grid": True, "labelFlush": False}
    return {
        "field": "value",
        "type": "quantitative",
        "title": title,
        "scale": {"domain": _domain(values)},
        "axis": axis,
    }


def _names(order: Sequence[str]) -> Spec:
    return {"field": "name", "type": "nominal", "sort": list(order), "title": None, "axis": {"labelPadding": 10}}


def _by_clarity(outcomes: list[str]) -> Spec:
    """One way to draw what excludes zero, another for what doesn't."""
    scale = {"domain": [True, False], "range": outcomes}
    return {"field": "is_clear", "type": "nominal", "scale": scale, "legend": None}


def _zero(colours: dict[str, str]) -> Spec:
    mark = {"type": "rule", "strokeDash": [3, 3], "strokeWidth": 1.5, "color": colours["ink"]}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": {"x": {"datum": 0, "type": "quantitative"}}}


def _whiskers(x: Spec, y: Spec, colour: Spec) -> Spec:
    return {
        "mark": {"type": "rule", "strokeWidth": 2.2, "strokeCap": "round"},
        "transform": [{"filter": "datum.low !== null"}],
        "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour},
    }


def _points(x: Spec, y: Spec, colour: Spec, colours: dict[str, str]) -> Spec:
    fill = {"condition": {"test": "datum.is_small", "value": colours["surface"]}, **colour}
    shape = _by_clarity(["diamond", "circle"])
    return {
        "mark": {"type": "point", "size": 95, "filled": False, "strokeWidth": 2, "opacity": 1},
        "encoding": {"x": x, "y": y, "stroke": colour, "fill": fill, "shape": shape},
    }


def _words(x: Spec, y: Spec, colours: dict[str, str], approximate: str) -> Spec:
    """The word under an interval, around its middle."""
    mark = {"type": "text", "dy": 13, "font": FONT, "fontSize": 10.5, "color": colours["ink"], "text": approximate}
    middle = {**x, "field": "middle"}
    return {
        "mark": mark,
        "transform": [
            {"filter": "datum.is_approximate"},
            {"calculate": "(datum.low + datum.high) / 2", "as": "middle"},
        ],
        "encoding": {"x": middle, "y": y},
    }


def _config(colours: dict[str, str]) -> Spec:
    axis = {
        "labelFont": FONT,
        "titleFont": FONT,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 9,
        "labelColor": colours["ink"],
        "titleColor": colours["faint"],
        "labelLimit": 170,
        "gridColor": colours["line"],
        "domain": False,
        "ticks": False,
    }
    return {"axis": axis, "view": {"stroke": None}, "aria": False}
