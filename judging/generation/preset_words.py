"""The titles in our own specs, for translators: pages show them in the reader's language."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext, gettext_noop

PRESET_TITLES: Final = (
    gettext_noop("Answers to prompts"),
    gettext_noop("Pairs with a known difference"),
    gettext_noop("Conversations of simulated users with chatbots"),
    gettext_noop("Single answers"),
    gettext_noop("Short stories"),
    gettext_noop("Customer support dialogues"),
    gettext_noop("Translated twins"),
)
PARAMETER_TITLES: Final = (
    gettext_noop("Industry"),
    gettext_noop("Problem"),
    gettext_noop("Channel"),
    gettext_noop("Experience of the agent"),
    gettext_noop("Type of agent"),
    gettext_noop("Number of messages"),
    gettext_noop("Prompt"),
    gettext_noop("Question"),
    gettext_noop("Reader"),
    gettext_noop("Length"),
    gettext_noop("Request"),
    gettext_noop("Fault"),
    gettext_noop("Answer with the fault"),
    gettext_noop("Person"),
    gettext_noop("Place"),
    gettext_noop("Event"),
    gettext_noop("Mood"),
    gettext_noop("Form"),
    gettext_noop("Scene"),
    gettext_noop("Persona"),
    gettext_noop("State of mind"),
    gettext_noop("Gender"),
    gettext_noop("Where the user lives"),
)
_TRANSLATED: Final = frozenset((*PRESET_TITLES, *PARAMETER_TITLES))


def translated_title(title: str) -> str:
    """A title of a spec or a parameter as a page writes it; one of somebody's own spec as it is."""
    return gettext(title) if title in _TRANSLATED else title
