"""Words of the glossary beside the heading where they stand: a button that shows the text, once on every page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from analytics.glossary import TERMS

register = template.Library()


@register.simple_tag(takes_context=True)
def terms(context: Any, *keys: str) -> SafeString:
    """These words, except those that the page has explained already; nothing where it has no project."""
    return terms_of(context, keys)


@register.simple_tag(takes_context=True)
def terms_of(context: Any, keys: Iterable[str]) -> SafeString:
    """The same for a list of keys. A part that a page fetches has identifiers of its own."""
    request, project = context.get("request"), context.get("project")
    if project is None or request is None or "project" not in request.resolver_match.kwargs:  # a report, a shared page
        return SafeString()
    known: set[str] = request.__dict__.setdefault("terms_explained", set())
    new = [key for key in dict.fromkeys(keys) if key not in known]
    if not new:
        return SafeString()
    known.update(new)
    part = f"-{request.resolver_match.kwargs.get('part', '')}" if "HX-Request" in request.headers else ""
    page, more = reverse("glossary", args=[project.slug]), _("Glossary")
    shown = format_html_join(
        "",
        '<button type="button" class="term" popovertarget="{0}">{1}</button>'
        '<span class="term-text" id="{0}" popover><b>{1}</b> {2} <a href="{3}">{4}</a></span>',
        ((f"term-{key}{part}", TERMS[key].word, TERMS[key].text, f"{page}#{key}", more) for key in new),
    )
    return format_html('<span class="terms">{}</span>', shown)
