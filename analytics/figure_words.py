"""Translations of the messages and words with which `analytics.stats` describes its figures."""

from __future__ import annotations

from django.utils.translation import gettext, gettext_lazy, gettext_noop

from analytics.stats.core.messages import Message

WORDS = (
    gettext_noop("exact"),
    gettext_noop("linearised"),
    gettext_noop("percentile"),
    gettext_noop("humans"),
    gettext_noop("identity"),
    gettext_noop("judge"),
    gettext_noop("linear"),
    gettext_noop("ordinal"),
    gettext_noop("quadratic"),
    gettext_noop("unequal"),
    gettext_noop("unweighted"),
)
"""Methods and variants of one word. They are plain strings in `analytics.stats`, not `Message`, because they are also
names there."""
SPEAKS_FOR = {
    "these raters": gettext_lazy("for these raters"),
    "raters like these": gettext_lazy("for raters like these"),
    "this judge": gettext_lazy("for this judge"),
}
"""For which raters or judge a figure is valid (`Estimate.speaks_for`), in the words of pages."""


def translated_message(text: str) -> str:
    """A message, or a text that the catalogues have, in the reader's language; any other text as it is."""
    if not isinstance(text, Message):
        return gettext(text) if text else ""
    template = gettext(text.template)
    if not text.values:
        return template
    return template % {
        name: translated_message(value) if isinstance(value, Message) else value for name, value in text.values.items()
    }
