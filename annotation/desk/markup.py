"""Markdown of a text to rate as HTML that is safe on a page and loads nothing.

Written tags are escaped. Links are text with their address beside it, images are their description and address.
Headings are paragraphs, so that a text does not change the outline of the page. Code is left to right.
"""

from __future__ import annotations

from functools import cache
from html import escape
from typing import Any

from django.utils.safestring import SafeString, mark_safe

MARKDOWN = "markdown"
"""The value of a layout's ``markup`` that asks for it; without it texts are plain."""


def formatted(text: str) -> SafeString:
    """Markdown as HTML without links, images, styles, scripts and headings."""
    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        token.attrs.pop("style", None)  # the alignment of a table's column, which the pages' policy refuses
        if token.type in ("heading_open", "heading_close"):
            if token.type == "heading_open":
                token.attrs["class"] = f"heading-{token.tag[1:]}"
            token.tag = "p"
    html: str = parser.renderer.render(tokens, parser.options, {})
    return mark_safe(html)  # noqa: S308 - escaped by the renderer


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    parser.disable(["html_block", "html_inline"])
    for kind, rule in _RULES.items():
        parser.add_render_rule(kind, rule)
    return parser


def _link_open(_renderer: Any, tokens: Any, place: int, _options: Any, env: Any) -> str:
    env.setdefault("addresses", []).append(tokens[place].attrs.get("href", ""))
    return '<span class="link-text">'


def _link_close(_renderer: Any, _tokens: Any, _place: int, _options: Any, env: Any) -> str:
    return f"</span> {_address(env['addresses'].pop())}"


def _image(_renderer: Any, tokens: Any, place: int, _options: Any, _env: Any) -> str:
    image = tokens[place]
    return f'<span class="link-text">{escape(image.content)}</span> {_address(image.attrs.get("src", ""))}'


def _code(_renderer: Any, tokens: Any, place: int, _options: Any, _env: Any) -> str:
    return f'<pre dir="ltr"><code>{escape(tokens[place].content)}</code></pre>\n'


def _code_inline(_renderer: Any, tokens: Any, place: int, _options: Any, _env: Any) -> str:
    return f'<code dir="ltr">{escape(tokens[place].content)}</code>'


def _address(address: Any) -> str:
    return f'<bdi class="address" dir="ltr">({escape(str(address))})</bdi>'


_RULES = {
    "link_open": _link_open,
    "link_close": _link_close,
    "image": _image,
    "fence": _code,
    "code_block": _code,
    "code_inline": _code_inline,
}
