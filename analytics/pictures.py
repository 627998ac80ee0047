"""A chart that was drawn with its snapshot, as a reader gets it: words in their language, colours of the page or plain.

The stored SVG is drawn by `charts`, in a worker; here its text is filled in, and nothing is rendered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from django.utils.safestring import SafeString, mark_safe

AXIS = "← judge harsher · judge more generous →"
LONGEST_NAME = 24
"""Letters of a name that a chart has room for."""
FILLER = "n"
STANDS_FOR = re.compile(rf">\{{(\w+):{FILLER}*\}}<")
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # no XML may hold them

# The page's tokens (static/css/base.css) in a notation that every program for SVG reads, for files that stand alone.
LIGHT = {
    "ink": "#122027",
    "ink-faint": "#58666c",
    "line": "#e3e1dc",
    "brass": "#c58632",
    "accent": "#005f66",
    "surface": "#ffffff",
}
DARK = {
    "ink": "#efece8",
    "ink-faint": "#939fa3",
    "line": "#253034",
    "brass": "#e7b463",
    "accent": "#62c7c8",
    "surface": "#11191c",
}
THEMES = {"light": LIGHT, "dark": DARK}


def stands_for(word: str, letters: int = 0) -> str:
    """What is drawn in place of a word, about as wide as so many letters."""
    return f"{{{word}:{FILLER * (letters - len(word) - 3)}}}"


def shortened(name: str) -> str:
    """A name that has room beside the chart."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def inline(svg: str, words: Mapping[str, str]) -> SafeString:
    """The picture as part of a page, in whose colours it is shown. `words` may hold anything: they are escaped."""
    filled = STANDS_FOR.sub(lambda found: f">{_spelt(words.get(found[1], ''))}<", svg)
    return mark_safe(filled)  # noqa: S308 (drawn by `charts`; every word in it is escaped here)


def alone(svg: str, words: Mapping[str, str], *, title: str, theme: str) -> str:
    """The picture as a file of its own, in plain colours."""
    filled = str(inline(svg, words)).replace(">", f"><title>{_spelt(title)}</title>", 1)
    return re.sub(r"var\(--([a-z-]+)\)", lambda found: THEMES[theme][found[1]], filled)


def _spelt(word: str) -> str:
    return escape(UNPRINTABLE.sub("", word))
