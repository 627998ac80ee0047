"""Reference items: items of a campaign for training, exams or controls, with reference scores per criterion.

Answers to them belong to hidden duties, in a hidden campaign of their own.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, Max, Q, QuerySet
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from accounts import audit
from accounts.models import User
from accounts.refusals import Refused
from analytics.stats.core.identifiers import normal_identifier, spellings_of
from annotation.campaigns import lock_campaign
from annotation.models import (
    Annotation,
    Annotator,
    Assignment,
    Campaign,
    Criterion,
    Duty,
    Item,
    QualificationRule,
    ReferenceItem,
    ReferenceScore,
    Selection,
    Skip,
)

COLUMNS = ("item", "purpose", "criterion", "score", "lowest", "highest", "explanation")
NOT_APPLICABLE = "na"
MOST_ROWS = 20_000
LONGEST_EXPLANATION = 4000
SHOWN_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class ReferenceRow:
    """One reference score as a file, a form or the API gives it: texts, as they were written."""

    item: str
    purpose: str
    criterion: str
    score: str
    lowest: str = ""
    highest: str = ""
    explanation: str = ""
    place: str = ""


def reference_items(*, duty: Duty, purpose: str) -> QuerySet[ReferenceItem]:
    """The campaign's reference items for one purpose that have a score on the duty's criteria, in its languages."""
    chosen = Q()
    for tag in duty.languages or filter(None, [duty.panel.language]):
        chosen |= Q(item__language=tag) | Q(item__language__startswith=f"{tag}-")
    own = Duty.criteria.through._default_manager.filter(duty=duty.visible_pk).values("criterion")
    scored = ReferenceScore.objects.filter(criterion__in=own).values("reference")
    return ReferenceItem.objects.filter(chosen, campaign=duty.campaign_id, purpose=purpose, pk__in=scored)


def mark(*, campaign: Campaign, rows: Sequence[ReferenceRow], actor: User | None = None) -> int:
    """Mark items as reference items, all or none; the reference scores of an item replace those that it had.

    Marked items leave the queues of the campaign's duties. Refused are rows with a problem, items that somebody has
    worked on already, and another purpose for an item that somebody has answered. Returns the number of items.
    """
    if len(rows) > MOST_ROWS:
        raise Refused(_("Give at most %(most)d rows at a time.") % {"most": MOST_ROWS}, code="too_many")
    checked = _checked(campaign, rows)
    with transaction.atomic():
        lock_campaign(campaign, no_key=False)
        slots = Assignment.objects.filter(duty__campaign=campaign, item__in=list(checked))
        list(slots.select_for_update(of=("self",)))  # waits for who opens one just now, and nobody opens one after it
        items = _free_items(campaign, checked)
        _take_out_of_duties(campaign, items)
        _store(campaign, checked, actor)
        audit.record(actor=actor, project=campaign.project, verb="mark reference items", subject=campaign)
    return len(checked)


def _store(campaign: Campaign, checked: Mapping[Item, tuple[str, list[dict[str, Any]]]], actor: User | None) -> None:
    marked = [
        ReferenceItem(campaign=campaign, item=item, purpose=purpose, created_by=actor)
        for item, (purpose, _scores) in checked.items()
    ]
    ReferenceItem.objects.bulk_create(
        marked, update_conflicts=True, unique_fields=["campaign", "item"], update_fields=["purpose"]
    )
    stored = dict(ReferenceItem.objects.filter(campaign=campaign, item__in=list(checked)).values_list("item", "pk"))
    ReferenceScore.objects.filter(reference__in=stored.values()).delete()
    ReferenceScore.objects.bulk_create(
        [
            ReferenceScore(reference_id=stored[item.pk], **score)
            for item, (_purpose, scores) in checked.items()
            for score in scores
        ]
    )


def _checked(campaign: Campaign, rows: Iterable[ReferenceRow]) -> dict[Item, tuple[str, list[dict[str, Any]]]]:
    rows = list(rows)
    criteria = {criterion.key: criterion for criterion in campaign.rubric_version.criteria.all()}
    rows = [replace(row, item=normal_identifier(row.item)) for row in rows]
    wanted = spellings_of(row.item for row in rows)
    found = Item.objects.of(campaign.dataset).filter(external_id__in=wanted)
    items = {normal_identifier(item.external_id): item for item in found}
    problems: list[str] = []
    checked: dict[Item, tuple[str, list[dict[str, Any]]]] = {}
    for row in rows:
        try:
            item, criterion = _known(row, items, criteria)
            purpose, scores = checked.setdefault(item, (row.purpose.strip().lower(), []))
            if purpose != row.purpose.strip().lower():
                raise ValueError(_("“%(item)s” has two purposes. An item has one.") % {"item": row.item})
            if any(score["criterion"] == criterion for score in scores):
                raise ValueError(_("“%(item)s” has two scores on one criterion.") % {"item": row.item})
            scores.append({"criterion": criterion, **_score(criterion, row)})
        except ValueError as error:
            problems.append(f"{row.place}: {error}" if row.place else str(error))
    if not rows:
        problems.append(_("There is no row."))
    if problems:
        shown = " ".join(problems[:SHOWN_PROBLEMS])
        raise Refused(shown, code="invalid", fields={"references": shown})
    return checked


def _known(row: ReferenceRow, items: Mapping[str, Item], criteria: Mapping[str, Criterion]) -> tuple[Item, Criterion]:
    if row.item not in items:
        raise ValueError(_("The campaign has no item “%(item)s”.") % {"item": row.item})
    if row.criterion not in criteria:
        raise ValueError(_("This campaign has no criterion “%(key)s”.") % {"key": row.criterion})
    if row.purpose.strip().lower() not in ReferenceItem.Purpose.values:
        raise ValueError(_("The purpose is training, exam or control, not “%(purpose)s”.") % {"purpose": row.purpose})
    return items[row.item], criteria[row.criterion]


def _score(criterion: Criterion, row: ReferenceRow) -> dict[str, Any]:
    explanation = row.explanation.strip()[:LONGEST_EXPLANATION]
    if row.score.strip().lower().replace("/", "") == NOT_APPLICABLE:
        if not criterion.not_applicable:
            raise ValueError(_("“%(key)s” has no N/A. Give a score.") % {"key": criterion.key})
        return {"score": None, "lowest": None, "highest": None, "explanation": explanation}
    score = _number(row.score)
    if score is None or not criterion.is_on_scale(score):
        raise ValueError(
            _("“%(score)s” is not on the scale of “%(key)s”.") % {"score": row.score, "key": criterion.key}
        )
    low, high = (_number(text) if text.strip() else None for text in (row.lowest, row.highest))
    if row.lowest.strip() or row.highest.strip():
        low, high = score if not row.lowest.strip() else low, score if not row.highest.strip() else high
        if low is None or high is None or not low <= score <= high:
            raise ValueError(_("The accepted range of “%(key)s” does not contain its score.") % {"key": criterion.key})
    return {"score": score, "lowest": low, "highest": high, "explanation": explanation}


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and abs(number) <= 1e12 else None


def _free_items(campaign: Campaign, checked: Mapping[Item, tuple[str, Any]]) -> list[Item]:
    """The items, unless somebody has worked on one of them as an ordinary item, or answered it for another purpose."""
    items = list(checked)
    here = Assignment.objects.filter(duty__campaign=campaign, item__in=items)
    worked = [
        here.exclude(state=Assignment.State.OPEN).values_list("item", flat=True),
        Skip.objects.filter(duty__campaign=campaign, item__in=items).values_list("item", flat=True),
        Annotation.objects.filter(assignment__in=here).values_list("item", flat=True),
    ]
    seen = {pk for rows in worked for pk in rows}
    if names := sorted(item.external_id for item in items if item.pk in seen):
        sentence = _(
            "Annotators have worked on %(items)s already, so these can't become reference items. Choose items that "
            "nobody has opened."
        )
        raise Refused(sentence % {"items": ", ".join(names[:5])}, code="item_in_work")
    purposes = dict(ReferenceItem.objects.filter(campaign=campaign, item__in=items).values_list("item", "purpose"))
    moved = [item for item in items if purposes.get(item.pk, checked[item][0]) != checked[item][0]]
    if hidden_assignments(campaign).filter(item__in=moved).exists():
        raise Refused(
            _("Annotators have answered one of these items for its present purpose. Choose another item."),
            code="item_answered",
        )
    return items


def hidden_assignments(campaign: Campaign) -> QuerySet[Assignment]:
    """The assignments of reference items and repeats of a campaign, whatever became of them."""
    return Assignment.objects.filter(duty__campaign__qualification_of=campaign)


def _take_out_of_duties(campaign: Campaign, items: Sequence[Item]) -> None:
    Assignment.objects.filter(duty__campaign=campaign, item__in=items, state=Assignment.State.OPEN).delete()
    Selection.objects.filter(duty__campaign=campaign, item__in=items).delete()


def count_references(campaign: Campaign) -> list[dict[str, Any]]:
    """Map each purpose and language to how many reference items there are."""
    found = ReferenceItem.objects.filter(campaign=campaign).order_by("purpose", "item__language")
    names = dict(ReferenceItem.Purpose.choices)
    rows = found.values("purpose", "item__language").annotate(items=Count("pk"))
    return [
        {"purpose": names[row["purpose"]], "language": row["item__language"], "items": row["items"]} for row in rows
    ]


def remove_reference(*, reference: ReferenceItem, actor: User | None = None) -> None:
    """Unmark an item that nobody has answered yet. It returns to no queue by itself."""
    with transaction.atomic():
        if hidden_assignments(reference.campaign).filter(item=reference.item).exists():
            raise Refused(_("Annotators have answered this item, so it stays a reference item."), code="item_answered")
        audit.record(
            actor=actor, project=reference.campaign.project, verb="unmark reference item", subject=reference.campaign
        )
        reference.delete()


def read_reference_rows(content: bytes) -> list[ReferenceRow]:
    """The rows of a CSV file in UTF-8 with the columns of ``COLUMNS`` (ranges and explanations may be missing)."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused(_("Save the file as CSV in UTF-8."), code="invalid", fields={"file": _("Not UTF-8.")}) from None
    first = text.partition("\n")[0]
    try:
        reader = csv.DictReader(io.StringIO(text), delimiter=max(",;\t", key=first.count), strict=True)
        names = [(name or "").strip().lower() for name in reader.fieldnames or ()]
        if missing := [name for name in COLUMNS[:4] if name not in names]:
            wrong = _("The file has no column “%(name)s”. It needs: %(columns)s.")
            sentence = wrong % {"name": missing[0], "columns": ", ".join(COLUMNS)}
            raise Refused(sentence, code="invalid", fields={"file": sentence})
        reader.fieldnames = names
        return [
            ReferenceRow(
                **{name: (row.get(name) or "").replace("\x00", "") for name in COLUMNS},
                place=_("Line %(number)d") % {"number": reader.line_num},
            )
            for row in reader
        ]
    except csv.Error as error:
        raise Refused(str(error), code="invalid", fields={"file": str(error)}) from None


def set_rule(*, campaign: Campaign, actor: User | None = None, **fields: Any) -> QualificationRule:
    """Set what the campaign asks of its annotators. Without a seed, a random one is drawn and kept."""
    import secrets

    seed = fields.pop("seed", None)
    with transaction.atomic():
        known = {"seed": seed} if seed is not None else {}
        rule, _is_new = QualificationRule.objects.update_or_create(
            campaign=campaign,
            defaults={**fields, **known},
            create_defaults={**fields, "seed": secrets.randbelow(2**53) if seed is None else seed},
        )
        audit.record(
            actor=actor, project=campaign.project, verb="set qualification rule", subject=campaign, fields=fields
        )
    return rule


# --- the hidden duties that hold training, exams, controls and repeats of a duty, in a hidden campaign ---------------
TRIES = 5
BESIDE_RATING = tuple(purpose for purpose in Duty.Purpose if purpose != Duty.Purpose.RATING)
UNSEEN = (Duty.Purpose.CONTROL, Duty.Purpose.REPEAT)
"""The purposes that annotators can't tell from ratings."""


def hidden_duties(duty: Duty) -> dict[str, Duty]:
    """The hidden duties of a duty by purpose; they are created together when one is first needed."""
    found = {hidden.purpose: hidden for hidden in _stored_hidden(duty)}
    if len(found) == len(BESIDE_RATING):
        return found
    visible = duty.campaign
    same = {name: getattr(visible, name) for name in ("project_id", "name", "dataset_id", "rubric_version_id")}
    own = {"panel_id": duty.panel_id, "name": duty.name, "overlap": duty.overlap, "seed": duty.seed}
    own |= {"taxonomy_id": duty.taxonomy_id, "quota": duty.quota}
    with transaction.atomic():
        campaign, _is_new = Campaign.with_hidden.get_or_create(
            qualification_of=visible, defaults={**same, "state": visible.state}
        )
        made = [Duty(campaign=campaign, stands_for=duty, purpose=purpose, **own) for purpose in BESIDE_RATING]
        Duty.with_hidden.bulk_create(made, ignore_conflicts=True)
    return {hidden.purpose: hidden for hidden in _stored_hidden(duty)}


def _stored_hidden(duty: Duty) -> list[Duty]:
    return list(Duty.with_hidden.filter(stands_for=duty).select_related("campaign"))


def as_seen(duty: int) -> Q:
    """Assignments of a duty as its annotators know it: with controls and repeats, without training and exams."""
    return Q(duty=duty) | Q(duty__stands_for=duty, duty__purpose__in=UNSEEN)


def rule_of(campaign: int) -> QualificationRule | None:
    """What a campaign asks of its annotators; None if nothing was set."""
    return QualificationRule.objects.filter(campaign=campaign).first()


def drawn_number(*parts: object) -> float:
    """A number in [0, 1) that depends only on ``parts``: neither order nor time shows what it decides."""
    digest = hashlib.blake2b(":".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def lease_hidden(*, duty: Duty, item: int, annotator: Annotator, now: datetime, until: datetime) -> Assignment | None:
    """Lease an item in a hidden duty until ``until``; None if the annotator has had it there already."""
    own = Assignment.objects.filter(duty=duty, item=item)
    for _try in range(TRIES):
        had = own.aggregate(last=Max("slot"), mine=Count("pk", filter=Q(annotator=annotator)))
        if had["mine"]:
            return None
        try:
            with transaction.atomic():
                return Assignment.objects.create(
                    duty=duty,
                    item_id=item,
                    annotator=annotator,
                    slot=(had["last"] or 0) + 1,
                    position=0,
                    criteria_set=_criteria_set(duty, item, annotator) if duty.taxonomy_id else 0,
                    state=Assignment.State.LEASED,
                    key=uuid7(),
                    leased_at=now,
                    leased_until=until,
                )
        except IntegrityError:
            continue  # somebody else has just taken this slot
    return None


def _criteria_set(hidden: Duty, item: int, annotator: Annotator) -> int:
    """Which criteria a hidden assignment asks for, in a duty that asks different items about different ones.

    A repeat has those of its first time, a reference item those of `closest_set`: it must not show by its criteria that
    it is another kind of item.
    """
    visible = Duty.objects.get(pk=hidden.visible_pk)
    if hidden.purpose == Duty.Purpose.REPEAT:
        own = Assignment.objects.filter(duty=visible, item=item, annotator=annotator)
        return own.values_list("criteria_set", flat=True).first() or 0
    scores = ReferenceScore.objects.filter(reference__campaign=visible.campaign_id, reference__item=item)
    rated = set(visible.criteria.values_list("key", flat=True))
    wanted = rated & set(scores.values_list("criterion__key", flat=True))
    return closest_set(visible.criteria_sets, wanted)


def closest_set(sets: Sequence[Collection[str]], wanted: Collection[str]) -> int:
    """The number, from 1, of the set with most of the criteria that are ``wanted``; of those, the smallest; 0 of none.

    Criteria that the set lacks are not compared with their reference scores.
    """
    places = range(1, len(sets) + 1)
    return min(places, key=lambda place: (-len({*wanted} & {*sets[place - 1]}), len(sets[place - 1])), default=0)
