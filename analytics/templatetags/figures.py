"""How templates write figures: number and interval, what a row is based on; and the choices that forms keep.

Written in Python and not as included templates: a page has many figures, and an include costs four times as much.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django import template
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from analytics.figures import Figure, HeatCell
from analytics.score_views import Line

register = template.Library()


@register.simple_tag
def estimate(figure: Figure | None) -> SafeString:
    """One figure in a table: its number and interval, or the reason there is none."""
    if figure is None:
        return _markup(f'<em class="undefined">{escape(_("not rated"))}</em>')
    title = escape(str(figure))
    if not figure.is_defined:
        return _markup(f'<em class="undefined" title="{title}">{escape(figure.reason)}</em>')
    small = " small" if figure.is_small else ""
    if interval := figure.interval:
        around = f'<span class="interval">{interval}</span>'
    else:
        around = f'<span class="interval none">{escape(figure.no_interval)}</span>'
    if figure.mark:
        around += f' <span class="approximate">{escape(figure.mark)}</span>'
    return _markup(f'<span class="estimate{small}" title="{title}"><b>{figure.number}</b> {around}</span>')


@register.simple_tag(takes_context=True)
def shaded_share(context: Mapping[str, Any], figure: Figure) -> SafeString:
    """A cell of a table of shares, in a shade of its own, which leads to its items."""
    number = _linked(context, figure, figure.number)
    return _markup(f'<td data-bin="{figure.shade}" title="{escape(str(figure))}">{number}</td>')


@register.simple_tag(takes_context=True)
def linked_number(context: Mapping[str, Any], figure: Figure) -> SafeString:
    """A figure's number, which leads to its items; on a shared page the number alone."""
    return _markup(_linked(context, figure, figure.number))


@register.simple_tag
def heat_cell(cell: HeatCell, sentence: str, address: str) -> SafeString:
    """A cell of the heatmap: it leads to its row in the table, or to why it is blank."""
    whole, text = "" if cell.language else "whole", escape(sentence)
    if cell.figure is None or cell.bin is None:
        link = f'<a href="#undefined" data-sentence title="{text}"><span class="vh">{text}</span></a>'
        return _markup(f'<td class="undefined {whole}">{link}</td>')
    classes = f"{whole}{' muted' if cell.is_muted else ''}{' attention' if cell.needs_attention else ''}"
    small = f"<small>{escape(cell.figure.span or _('no interval'))}</small>"
    if cell.figure.mark:
        small += f"<small>{escape(cell.figure.mark)}</small>"
    link = f'<a href="{escape(address)}" data-sentence title="{text}">{cell.figure.number}{small}</a>'
    value = f"{cell.figure.value:.4f}"
    return _markup(f'<td data-bin="{cell.bin}" data-value="{value}" class="{classes}">{link}</td>')


@register.simple_tag(takes_context=True)
def row_basis(context: Mapping[str, Any], line: Line) -> SafeString:
    """What a row's figures are based on, a link to these items, and how each figure was computed."""
    made = line.made
    first = made[0][1] if made else None
    about = escape(f"{line.criterion}, {line.language}")
    how = "".join(
        f"<li><b>{escape(name)}</b>: {escape(figure.made)} · {escape(figure.basis)}</li>" for name, figure in made
    )
    return _markup(
        f"{escape(line.basis)}{_items_link(context, first, f'{line.criterion} {line.language}')}"
        f'<details class="how"><summary>{escape(_("How computed"))}<span class="vh"> · {about}</span></summary>'
        f"<ul>{how}</ul></details>"
    )


@register.simple_tag(takes_context=True)
def items_link(context: Mapping[str, Any], figure: Figure | None, about: str) -> SafeString:
    """From a figure to its items; nothing on a shared page."""
    return _markup(_items_link(context, figure, about))


def _items_link(context: Mapping[str, Any], figure: Figure | None, about: str) -> str:
    url = _items_url(context, figure)
    return f' · <a href="{url}">{escape(_("Items"))}<span class="vh"> · {escape(about)}</span></a>' if url else ""


def _linked(context: Mapping[str, Any], figure: Figure, text: str) -> str:
    url = _items_url(context, figure)
    return f'<a href="{url}">{text}</a>' if url else text


def _items_url(context: Mapping[str, Any], figure: Figure | None) -> str:
    """Nothing on a shared page."""
    address = context["addresses"].get("item_list") if "addresses" in context else None
    if not address or figure is None:
        return ""
    about = figure.items_query
    if "reference=" in address:  # the reader's choice
        about = urlencode([pair for pair in parse_qsl(about) if pair[0] != "reference"])
    return escape(f"{address}{'&' if '?' in address else '?'}{about}")


@register.simple_tag(takes_context=True)
def chosen_inputs(context: Mapping[str, Any], left_out: str) -> SafeString:
    """What is chosen already, kept by a form that changes one thing: the choice ``left_out``."""
    page, raters = context.get("page"), context["raters"]
    kept = [("blind", "only")] if raters.blind_only else []
    kept += [("reference", raters.reference)] if raters.reference else []
    kept += page.chosen.items() if page else []
    kept += [("raters", annotator.pseudonym) for annotator in raters.chosen]
    inputs = (
        f'<input type="hidden" name="{escape(name)}" value="{escape(str(value))}">'
        for name, value in kept
        if name != left_out
    )
    return _markup("".join(inputs))


def _markup(html: str) -> SafeString:
    return mark_safe(html)  # noqa: S308 (every text in it is escaped above)
