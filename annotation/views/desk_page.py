"""The desk page's context, and the reading of its form. docs/interface.md says what the template expects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import QueryDict
from django.urls import reverse

from accounts import languages
from accounts.storable import without_nul
from annotation.desk import presentation, service
from annotation.desk.answers import Answer
from annotation.models import Assignment

NOT_APPLICABLE = "na"
NEEDED = ("annotator", "item", "duty__campaign__dataset", "duty__campaign__rubric_version__rubric")


def read_answers(form: QueryDict) -> dict[str, Answer]:
    """``score-<criterion>`` and ``rationale-<criterion>`` of a form, as answers by criterion."""
    keys = [name.partition("-")[2] for name in form if name.startswith(("score-", "rationale-"))]
    return {key: _answer(form.getlist(f"score-{key}"), form.get(f"rationale-{key}", "")) for key in keys}


def _answer(scores: list[str], rationale: str) -> Answer:
    rationale = without_nul(rationale)
    if NOT_APPLICABLE in scores:
        return Answer(status="na", rationale=rationale)
    written = next(filter(None, scores), None)
    return Answer(score=None if written is None else _number(written), rationale=rationale)


def _number(text: str) -> float:
    """What was typed as a score; what is no number lies on no scale."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def read_seconds(form: QueryDict) -> float:
    return _number(form.get("seconds", "0"))


def context(assignment: Assignment, answers: Mapping[str, Answer], seconds: float) -> dict[str, Any]:
    """Everything the desk shows of one assignment, whose ``NEEDED`` relations are loaded, and nothing more."""
    duty, campaign, item = assignment.duty, assignment.duty.campaign, assignment.item
    criteria = service.criteria_of(duty)
    language = presentation.text_language(criteria, item.language)
    return {
        "campaign": {"name": campaign.name, "url": None},
        "duty": {"name": duty.name},
        "assignment": {"key": str(assignment.key), "expires_at": assignment.leased_until, "seconds": round(seconds)},
        "item": presentation.show_item(item, criteria, campaign.dataset.layout),
        "rubric": {"name": campaign.rubric_version.name(language), "version": f"v{campaign.rubric_version.number}"},
        "criteria": presentation.show_criteria(criteria, language, answers),
        "text_language": language,
        "text_direction": languages.direction(language),
        "progress": service.progress(duty=duty, annotator=assignment.annotator),
        "urls": urls(assignment),
        "can_undo": undo_url(service.last_submitted(duty=duty, annotator=assignment.annotator)),
    }


def urls(assignment: Assignment) -> dict[str, str]:
    actions = ("submit", "draft", "skip", "heartbeat")
    return {name: reverse(f"desk_{name}", args=[assignment.key]) for name in actions} | {"leave": reverse("desk_leave")}


def undo_url(last: Assignment | None) -> str | None:
    return reverse("desk_undo", args=[last.key]) if last else None
