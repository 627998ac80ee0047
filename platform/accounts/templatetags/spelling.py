"""Template filters for text from elsewhere: sentence case, and isolation from the text direction."""

from __future__ import annotations

import re

from django import template
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language

from accounts import languages
from accounts.sentences import stored_sentence, with_commas

register = template.Library()

_INNER_CAPITAL = re.compile(r"(?<=\w[ -])[A-Z](?=[a-z]+\b)")
_BETWEEN_TAGS = re.compile(r"(<[^>]*>)")


@register.filter
def sentence_case(html: SafeString) -> SafeString:
    """allauth's English headings and buttons in sentence case ("Change password"); markup and acronyms stay."""
    if not (get_language() or "en").startswith("en"):
        return html
    parts = _BETWEEN_TAGS.split(html)
    parts[::2] = [_INNER_CAPITAL.sub(lambda match: match.group().lower(), text) for text in parts[::2]]
    return mark_safe("".join(parts))  # noqa: S308 (what it was given, with other letters)


@register.filter(name="stored")
def in_readers_language(text: object) -> str:
    """What a worker stored in English, in the reader's language."""
    return stored_sentence(str(text)) if text else ""


@register.simple_tag
def comma() -> str:
    """What separates two parts of a line in the reader's language."""
    return with_commas(("", ""))


FIRST_STRONG_ISOLATE, POP_ISOLATE = "\u2068", "\u2069"


@register.filter
def isolate(value: object) -> str:
    """A number or name inside a sentence, isolated from the text direction around it."""
    return f"{FIRST_STRONG_ISOLATE}{value}{POP_ISOLATE}"


@register.filter
def text_direction(tag: str) -> str:
    """ltr or rtl, of a language."""
    return languages.direction(tag)
