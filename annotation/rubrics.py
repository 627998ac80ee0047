"""Rubrics: draft a version from a document, publish it, withdraw a draft. A published version never changes."""

from __future__ import annotations

import hashlib

import orjson
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.models import Criterion, Rubric, RubricVersion
from annotation.readers import CriterionDocument, RubricDocument, parse_rubric

# The parts of a criterion's document that are text for people: stored together in one column, `Criterion.text`.
TEXT_PARTS = ("name", "question", "definition", "anchors", "mark_if", "dont_mark_if", "examples")


def draft(*, project: Project, document: RubricDocument, actor: User | None = None) -> RubricVersion:
    """Create a draft version of the rubric with the document's key. If the newest version has the same content, return
    that version."""
    content = document.as_dict()
    digest = hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)).hexdigest()
    with transaction.atomic():
        rubric, _is_new = Rubric.objects.get_or_create(project=project, key=document.key)
        newest = rubric.versions.order_by("-number").first()
        if newest is not None and newest.digest == digest:
            return newest
        number = (rubric.versions.aggregate(newest=Max("number"))["newest"] or 0) + 1
        version = RubricVersion.objects.create(
            rubric=rubric, number=number, document=content, digest=digest, created_by=actor
        )
        audit.record(actor=actor, project=project, verb="draft rubric", subject=version)
    return version


def publish(*, version: RubricVersion, actor: User | None = None) -> RubricVersion:
    """Publish a draft: create its criteria. Neither they nor the document change afterwards."""
    parsed = parse_rubric("rubric.json", orjson.dumps(version.document))
    if parsed.document is None:
        raise Refused(_("This draft can't be published: %s") % "; ".join(parsed.problems.sentences()))
    with transaction.atomic():
        drafts = RubricVersion.objects.filter(pk=version.pk, state=RubricVersion.State.DRAFT)
        if not drafts.update(state=RubricVersion.State.PUBLISHED, published_at=timezone.now()):
            raise Refused(_("This version is already published."), code="already_published")
        Criterion.objects.bulk_create(
            _criterion(version, position, criterion)
            for position, criterion in enumerate(parsed.document.criteria, start=1)
        )
        audit.record(actor=actor, project=version.rubric.project, verb="publish rubric", subject=version)
    version.refresh_from_db()
    return version


def withdraw(*, version: RubricVersion, actor: User | None = None) -> None:
    """Delete a draft. A published version can't be deleted."""
    with transaction.atomic():
        audit.record(actor=actor, project=version.rubric.project, verb="withdraw draft", subject=version)
        deleted, _by_model = RubricVersion.objects.filter(pk=version.pk, state=RubricVersion.State.DRAFT).delete()
        if not deleted:
            raise Refused(_("A published version can't be deleted."), code="already_published")


def _criterion(version: RubricVersion, position: int, document: CriterionDocument) -> Criterion:
    scale = document.scale
    values = [point.value for point in scale.points]
    whole = next(part for part in version.document["criteria"] if part["key"] == document.key)
    return Criterion(
        rubric_version=version,
        key=document.key,
        position=position,
        level=scale.level,
        points=[{"value": point.value, "label": dict(point.label)} for point in scale.points],
        minimum=min(values) if values else scale.minimum,
        maximum=max(values) if values else scale.maximum,
        step=None if values else scale.step,
        not_applicable=document.not_applicable,
        rationale_rule=document.rationale.rule,
        rationale_words=document.rationale.min_words,
        group=document.group,
        speaker="" if document.speaker == "any" else document.speaker,
        panel_hint=document.panel,
        direction=document.direction,
        text={part: whole[part] for part in TEXT_PARTS if part in whole}
        | {"source_language": version.document["source_language"]},
    )
