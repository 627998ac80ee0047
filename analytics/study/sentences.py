"""A sentence whose most important words are emphasised: plain text for the API, HTML for pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import ngettext

from analytics.figures import listed

LISTED = 3
"""Cells, judges, languages or duties that a sentence names; the others are counted."""


class Emphasised(str):
    """Words of a sentence that a page shows in bold."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """A translated template with `%(name)s` for each value; an `Emphasised` value is bold on pages."""

    template: str
    values: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.template % dict(self.values)

    @property
    def html(self) -> SafeString:
        """The sentence as HTML, with everything in it escaped."""
        values = {name: _as_html(value) for name, value in self.values}
        return mark_safe(escape(self.template, quote=False) % values)  # noqa: S308 (every value is escaped here)


def _as_html(value: Any) -> Any:
    if isinstance(value, Emphasised):
        return f"<strong><bdi>{escape(value)}</bdi></strong>"
    return escape(value) if isinstance(value, str) else value


def named_briefly(names: Sequence[str]) -> Emphasised:
    """Up to `LISTED` names, and how many more there are."""
    more = len(names) - LISTED
    if more <= 0:
        return Emphasised(listed(names))
    return Emphasised(listed([*names[:LISTED], ngettext("%d more", "%d more", more) % more]))


def worded(template: str, **values: Any) -> Sentence:
    """A sentence from a translated template."""
    return Sentence(template, tuple(values.items()))
