"""Rubrics: draft a version from a document, publish it, withdraw a draft. A published version never changes."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast

import orjson
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.models import Criterion, Rubric, RubricVersion
from annotation.readers import (
    CriterionDocument,
    RubricDocument,
    parse_rubric,
    plain_number,
    rubric_from_dict,
    scale_in_words,
)

# The parts of a criterion's document that are text for people: stored together in one column, `Criterion.text`.
TEXT_PARTS = ("name", "question", "definition", "anchors", "mark_if", "dont_mark_if", "examples")


def draft_new(*, project: Project, document: RubricDocument, actor: User | None = None) -> RubricVersion:
    """Create a draft of a new rubric. Raises ``Refused`` if the project has a rubric with this key."""
    if RubricVersion.objects.filter(rubric__project=project, rubric__key=document.key).exists():
        raise Refused(
            _("The project has a rubric with the key “%s”. Choose another key, or edit that rubric.") % document.key
        )
    return draft(project=project, document=document, actor=actor)


def edit(
    *, version: RubricVersion, document: RubricDocument, former_digest: str, actor: User | None = None
) -> RubricVersion:
    """Change a draft in place, or draft the next version of a published one.

    ``former_digest``: the digest of the version that the editor opened (see `opened_digest`). Raises ``Refused``, code
    ``changed``, if the draft has another content now, or if the rubric of a published version has a newer version.
    """
    if document.key != version.rubric.key:
        raise Refused(_("The key of a rubric can't be changed. Create a new rubric instead."))
    if version.state == RubricVersion.State.PUBLISHED:
        return _draft_next(version, document, former_digest, actor)
    content, digest = _content(with_stale(rubric_from_dict(version.document), document))
    with transaction.atomic():
        unchanged = RubricVersion.objects.filter(pk=version.pk, state=RubricVersion.State.DRAFT, digest=former_digest)
        if not unchanged.update(document=content, digest=digest):
            raise Refused(
                _("This draft was changed or published by somebody else since you opened it."), code="changed"
            )
        audit.record(actor=actor, project=version.rubric.project, verb="edit draft", subject=version)
    version.refresh_from_db()
    return version


def opened_digest(version: RubricVersion) -> str:
    """The digest that shows an editor of this version whether another person has changed it since: the digest of the
    draft, or of the newest version of a published version's rubric."""
    if version.state == RubricVersion.State.DRAFT:
        return version.digest
    return version.rubric.versions.order_by("-number").values_list("digest", flat=True)[0]


def _draft_next(
    version: RubricVersion, document: RubricDocument, former_digest: str, actor: User | None
) -> RubricVersion:
    with transaction.atomic():
        Rubric.objects.select_for_update(no_key=True).get(pk=version.rubric_id)
        newest = opened_digest(version)
        if newest not in (former_digest, _content(document)[1]):
            sentence = _(
                "Somebody else has saved a newer version of this rubric since you opened it. Open the newest version "
                "and make your changes there."
            )
            raise Refused(sentence, code="changed")
        return draft(project=version.rubric.project, document=document, actor=actor)


def unsaved_criteria(document: RubricDocument) -> list[Criterion]:
    """The criteria that publishing the document would create, for previews."""
    version = RubricVersion(document=document.as_dict())
    return [_criterion(version, position, part) for position, part in enumerate(document.criteria, start=1)]


def document_digest(document: RubricDocument) -> str:
    """The digest that every version with this content has."""
    return _content(document)[1]


def _content(document: RubricDocument) -> tuple[dict[str, Any], str]:
    """The stored form of a document, and its digest."""
    content = document.as_dict()
    option = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    return content, hashlib.sha256(orjson.dumps(content, option=option)).hexdigest()


def draft(*, project: Project, document: RubricDocument, actor: User | None = None) -> RubricVersion:
    """Create a draft version of the rubric with the document's key. If the newest version has the same content, return
    that version."""
    content, digest = _content(document)
    with transaction.atomic():
        rubric, _is_new = Rubric.objects.get_or_create(project=project, key=document.key)
        newest = rubric.versions.order_by("-number").first()
        if newest is not None and newest.digest == digest:
            return newest
        if newest is not None:
            content, digest = _content(with_stale(rubric_from_dict(newest.document), document))
            if newest.digest == digest:
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
    if without_direction := stops_nothing(parsed.document):
        sentence = _(
            "This draft can't be published: these critical criteria have no direction: %s. Set it: “higher is better” "
            "if 0 ends the rating of an item, “lower is better” if 1 does."
        )
        raise Refused(sentence % ", ".join(without_direction), code="critical_direction")
    with transaction.atomic():
        same = RubricVersion.objects.filter(pk=version.pk)
        drafts = same.filter(state=RubricVersion.State.DRAFT, digest=version.digest)
        if not drafts.update(state=RubricVersion.State.PUBLISHED, published_at=timezone.now()):
            if same.filter(state=RubricVersion.State.DRAFT).exists():
                raise Refused(
                    _("This draft was changed since you opened it. Look at it again, then publish it."), code="changed"
                )
            raise Refused(_("This version is already published."), code="already_published")
        Criterion.objects.bulk_create(
            _criterion(version, position, criterion)
            for position, criterion in enumerate(parsed.document.criteria, start=1)
        )
        audit.record(actor=actor, project=version.rubric.project, verb="publish rubric", subject=version)
    version.refresh_from_db()
    return version


def stops_nothing(document: RubricDocument) -> list[str]:
    """The keys of the critical criteria without a direction: neither of their points is the worst, so no mark stops
    anything. Versions that were published before this was refused may have some."""
    return [one.key for one in document.criteria if one.group == "critical" and one.direction == "none"]


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
        evidence_rule=document.evidence,
        group=document.group,
        speaker="" if document.speaker == "any" else document.speaker,
        panel_hint=document.panel,
        direction=document.direction,
        text={part: whole[part] for part in TEXT_PARTS if part in whole}
        | {"source_language": version.document["source_language"]},
    )


# --- the state of translations ----------------------------------------------------------------------------------------
def with_stale(before: RubricDocument, after: RubricDocument) -> RubricDocument:
    """The newer document. A reviewed translation becomes stale if the text in the source language changed and the
    translation did not."""
    source = after.source_language
    if before.source_language != source:
        return after
    old = {criterion.key: criterion for criterion in before.criteria}
    criteria = []
    for criterion in after.criteria:
        former = old.get(criterion.key)
        if former is not None and _texts_in(former, source) != _texts_in(criterion, source):
            reviewed = {tag for tag, state in criterion.translations.items() if state == "reviewed"}
            unread = {
                tag for tag in reviewed
                if former.translations.get(tag) == "reviewed" and _texts_in(former, tag) == _texts_in(criterion, tag)
            }  # fmt: skip
            states = {tag: "stale" if tag in unread else state for tag, state in criterion.translations.items()}
            criterion = replace(criterion, translations=cast("Any", states))  # noqa: PLW2901
        criteria.append(criterion)
    return replace(after, criteria=tuple(criteria))


def _texts_in(criterion: CriterionDocument, language: str) -> dict[PartKey, str]:
    return {part: text for part, text in _parts(criterion).items() if part[2] == language}


def translation_states(document: RubricDocument) -> dict[str, dict[str, str]]:
    """Map each language other than the source language to the state of every criterion that has texts in it, by key."""
    states: dict[str, dict[str, str]] = {}
    for criterion in document.criteria:
        for tag in sorted({part[2] for part in _parts(criterion)} - {"", document.source_language}):
            states.setdefault(tag, {})[criterion.key] = criterion.translations.get(tag, "draft")
    return dict(sorted(states.items()))


class TranslationCounts(NamedTuple):
    """How many criteria have texts in a language by their state, and how many have none in it."""

    language: str
    reviewed: int
    draft: int
    stale: int
    lacking: int


def translation_counts(document: RubricDocument) -> list[TranslationCounts]:
    """By language other than the source language."""
    counted = ((tag, Counter(states.values())) for tag, states in translation_states(document).items())
    criteria = len(document.criteria)
    return [
        TranslationCounts(tag, count["reviewed"], count["draft"], count["stale"], criteria - count.total())
        for tag, count in counted
    ]


def unreviewed(version: RubricVersion, languages: Iterable[str]) -> dict[str, dict[str, int]]:
    """Map each language of the rubric that people of these ``languages`` would read to its number of draft or stale
    criteria.

    Languages of which every criterion is reviewed are left out, as is the source language.
    """
    states = translation_states(rubric_from_dict(version.document))
    read = {tag for language in languages for tag in states if tag in (language, language.partition("-")[0])}
    counts = {tag: Counter(state for state in states[tag].values() if state != "reviewed") for tag in sorted(read)}
    return {tag: dict(sorted(count.items())) for tag, count in counts.items() if count}


# --- what differs between two versions --------------------------------------------------------------------------------
Kind = Literal["same", "changed", "added", "removed"]
PartKey = tuple[str, float | None, str]


@dataclass(frozen=True, slots=True)
class PartChange:
    """One part of a criterion that differs: in a ``language``, or in none; ``point``: of a label or an anchor."""

    part: str
    point: float | None
    language: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class CriterionDifference:
    """How a criterion differs between two versions. A ``scale`` differs in its level or points, not in labels."""

    key: str
    kind: Kind
    parts: tuple[PartChange, ...] = ()
    scale_differs: bool = False


def rubric_differences(before: RubricDocument, after: RubricDocument) -> list[CriterionDifference]:
    """Every criterion of both versions, in the order of the newer one; removed ones come last."""
    old = {criterion.key: criterion for criterion in before.criteria}
    found = [_difference(old.get(criterion.key), criterion) for criterion in after.criteria]
    kept = {criterion.key for criterion in after.criteria}
    return found + [CriterionDifference(key, "removed") for key in old if key not in kept]


def _difference(before: CriterionDocument | None, after: CriterionDocument) -> CriterionDifference:
    if before is None:
        return CriterionDifference(after.key, "added")
    old, new = _parts(before), _parts(after)
    changed = tuple(
        PartChange(*key, old.get(key, ""), new.get(key, ""))
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    )
    scale_differs = _bare_scale(before) != _bare_scale(after)
    return CriterionDifference(after.key, "changed" if changed else "same", changed, scale_differs)


def _bare_scale(document: CriterionDocument) -> tuple[Any, ...]:
    scale = document.scale
    return scale.level, tuple(point.value for point in scale.points), scale.minimum, scale.maximum, scale.step


def _parts(document: CriterionDocument) -> dict[PartKey, str]:
    """Everything that a version says about a criterion, as texts."""
    level, *_ends = _bare_scale(document)
    parts: dict[PartKey, str] = {
        ("scale", None, ""): f"{level}: {scale_values(document)}",
        ("not_applicable", None, ""): "yes" if document.not_applicable else "no",
        ("rationale", None, ""): f"{document.rationale.rule}, {document.rationale.min_words}",
        ("evidence", None, ""): document.evidence,
        ("group", None, ""): document.group,
        ("direction", None, ""): document.direction,
        ("speaker", None, ""): document.speaker,
    }
    for part in ("name", "question", "definition"):
        parts |= {(part, None, tag): text for tag, text in getattr(document, part).items()}
    for point in document.scale.points:
        parts |= {("label", point.value, tag): text for tag, text in point.label.items()}
    for value, anchors in document.anchors.items():
        for tag, anchor in anchors.items():
            parts["anchor", value, tag] = "\n".join(filter(None, (anchor.text, anchor.reason)))
    for part in ("mark_if", "dont_mark_if"):
        parts |= {(part, None, tag): "\n".join(lines) for tag, lines in getattr(document, part).items()}
    for tag, examples in document.examples.items():
        shown = (f"{plain_number(one.score)}: {one.text} {one.comment}".strip() for one in examples)
        parts["examples", None, tag] = "\n".join(shown)
    return parts


def scale_values(document: CriterionDocument) -> str:
    """The values of a scale, such as ``0, 1, 2``; ``0 to 100`` without points."""
    points = [str(plain_number(point.value)) for point in document.scale.points]
    return ", ".join(points) or scale_in_words(document.scale)
