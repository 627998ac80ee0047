"""`{% load studies %}`: what pages call the published studies."""

from __future__ import annotations

from django import template

from analytics.questions.presets import STUDY_NAMES

register = template.Library()


@register.filter
def study_name(code: str) -> str:
    """The name of the study with this code, such as S2."""
    return str(STUDY_NAMES[code])
