"""Adjudicate items on which annotators disagree, and record what calibration meetings decide.

An adjudication is stored beside the ratings and never changes one. Leads and researchers adjudicate, but nobody an item
that they have rated (docs/methods/adjudication.md).
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import count
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, Max, Q, QuerySet
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from accounts import audit
from accounts.inputs import holds_nul
from accounts.models import User
from accounts.refusals import Refused
from analytics.stats.core.identifiers import normal_identifier, spellings_of
from annotation import evidence
from annotation.models import (
    Adjudication,
    Annotation,
    Annotator,
    Campaign,
    Criterion,
    Item,
    MeetingDecision,
    Rating,
    WritingText,
)
from annotation.readers import Span
from annotation.writers.tables import BATCH, Column, Table, number

LONGEST_RATIONALE, LONGEST_NOTE = 5000, 300
LETTERS, DIGITS = "ABCDEFGHJKLMNPQRSTUVWXYZ", "23456789"
"""The characters of codes that stand for raters; none can be taken for another."""
DRAWS = 20
"""How often a rater draws a code of three characters."""


# --- what an adjudicator sees ----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class SeenRating:
    """One present rating of an item. `code` stands for its rater, on this item only."""

    code: str
    rater: str
    annotator: int
    criterion: int
    revision: int
    status: str
    score: float | None
    rationale: str
    evidence: tuple[Span, ...] = ()

    @property
    def stored(self) -> dict[str, Any]:
        """What an adjudication keeps of it."""
        return {"rater": self.rater, "revision": self.revision, "status": self.status, "score": self.score}


def seen_ratings(
    campaign: Campaign, items: Iterable[int], *, with_evidence: bool = False
) -> dict[tuple[int, int], list[SeenRating]]:
    """Map each item and criterion to the present ratings, in the order of their raters' codes."""
    present = Rating.objects.filter(
        annotation__campaign=campaign, annotation__superseded_at=None, annotation__item__in=list(items)
    )
    rows = present.values_list(
        "pk", "annotation__item", "annotation__annotator", "annotation__annotator__pseudonym", "criterion",
        "annotation__revision", "status", "score", "rationale",
    )  # fmt: skip
    marked = evidence.spans_of(Q(rating__in=present)) if with_evidence else {}
    found: dict[tuple[int, int], list[SeenRating]] = defaultdict(list)
    read = list(rows.iterator(BATCH))
    raters: dict[int, set[int]] = defaultdict(set)
    for _rating, item, annotator, *_rest in read:
        raters[item].add(annotator)
    codes = {item: rater_codes(item, annotators) for item, annotators in raters.items()}
    for rating, item, annotator, rater, criterion, revision, status, score, rationale in read:
        code, spans = codes[item][annotator], marked.get(rating, ())
        seen = SeenRating(code, rater, annotator, criterion, revision, status, score, rationale, spans)
        found[item, criterion].append(seen)
    return {place: sorted(ratings, key=_by_code) for place, ratings in found.items()}


def _by_code(seen: SeenRating) -> tuple[str, str, int]:
    return seen.code, seen.rater, seen.revision


def rater_codes(item: int, annotators: Iterable[int]) -> dict[int, str]:
    """Map each rater of an item to three characters such as KT7: another item gives the same rater another code.

    They depend on the server's secret key, so that nobody can compute who it is. No two raters of an item have the same
    code: among 4,608, two of ten would in one item of a hundred. Who draws one that is taken draws again; where nearly
    all are taken, with more characters.
    """
    codes: dict[int, str] = {}
    taken: set[str] = set()
    for annotator in sorted(set(annotators), key=lambda each: _drawn(item, each, 0)):
        drawn = (_code(_drawn(item, annotator, time), time) for time in count())
        codes[annotator] = next(code for code in drawn if code not in taken)
        taken.add(codes[annotator])
    return codes


def _drawn(item: int, annotator: int, time: int) -> int:
    about = f"{item}:{annotator}:{time}" if time else f"{item}:{annotator}"
    return int.from_bytes(salted_hmac("annotation.adjudication", about).digest()[:8])


def _code(value: int, time: int) -> str:
    value, digit = divmod(value, len(DIGITS))
    first, second = divmod(value, len(LETTERS))
    short = LETTERS[first % len(LETTERS)] + LETTERS[second] + DIGITS[digit]
    return f"{short}{time}" if time >= DRAWS else short


def digest_of(seen: Iterable[Mapping[str, Any]]) -> str:
    """The digest of ratings as `SeenRating.stored`, whatever their order."""
    lines = sorted(
        json.dumps([each["rater"], each["revision"], each["status"], number(each["score"])]) for each in seen
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def is_disputed(seen: Sequence[SeenRating]) -> bool:
    """Whether two raters differ: in a score, or one gave a score and another N/A."""
    return len({(each.status, each.score) for each in seen if each.status != Rating.Status.STOPPED}) > 1


# --- what was decided ------------------------------------------------------------------------------------------------
def history(campaign: Campaign) -> QuerySet[Adjudication]:
    """Every adjudication of a campaign, the earliest first."""
    return Adjudication.objects.filter(campaign=campaign, rubric_version=campaign.rubric_version_id).order_by("pk")


def adjudication_revision(campaign: Campaign) -> str:
    """A text that changes with every adjudication: "count:max pk"."""
    stored = history(campaign).aggregate(count=Count("pk"), newest=Max("pk"))
    return f"{stored['count']}:{stored['newest'] or 0}"


def current(campaign: Campaign, items: Iterable[int] | None = None) -> dict[tuple[int, int], Adjudication]:
    """Map each item and criterion to the newest adjudication: it counts."""
    rows = history(campaign) if items is None else history(campaign).filter(item__in=list(items))
    return {(row.item_id, row.criterion_id): row for row in rows}


def stale(campaign: Campaign, decided: Mapping[tuple[int, int], Adjudication]) -> set[tuple[int, int]]:
    """Those of the adjudications that saw other ratings than there are now: one was added, revised or undone."""
    places = list(decided)
    ratings: dict[tuple[int, int], list[SeenRating]] = {}
    items = sorted({item for item, _criterion in places})
    for start in range(0, len(items), BATCH):
        ratings |= seen_ratings(campaign, items[start : start + BATCH])
    return {
        place for place in places if digest_of(each.stored for each in ratings.get(place, ())) != decided[place].digest
    }


def adjudicator_names(campaign: Campaign) -> dict[int | None, str]:
    """Map each user to what tables call an adjudicator: numbered by their first adjudication, never by name."""
    taken = set(Annotator.objects.filter(project=campaign.project_id).values_list("pseudonym", flat=True))
    users = dict.fromkeys(history(campaign).values_list("adjudicator", flat=True))
    names = ((user, f"adjudicator {place}") for place, user in enumerate(users, 1))
    return {user: f"{name} (adjudicator)" if name in taken else name for user, name in names}


@dataclass(frozen=True, slots=True)
class Adjudicated:
    """One adjudication, its adjudicator by number; `counts`: it is the newest; `stale`: a rating has changed since."""

    adjudication: Adjudication
    adjudicator: str
    counts: bool
    stale: bool


def adjudications_of(campaign: Campaign, item: Item) -> Iterator[Adjudicated]:
    """Every adjudication of the item, the newest first."""
    rows = list(history(campaign).filter(item=item))
    newest = {(row.item_id, row.criterion_id): row for row in rows}
    old = stale(campaign, newest)
    names = adjudicator_names(campaign) if rows else {}
    for row in reversed(rows):
        place = (row.item_id, row.criterion_id)
        counts = newest[place] is row
        yield Adjudicated(row, names[row.adjudicator_id], counts, counts and place in old)


def rated_by(campaign: Campaign, user: User) -> set[int]:
    """The items that this person has rated in the campaign or has written: somebody else adjudicates them."""
    own = Annotation.objects.filter(campaign=campaign, annotator__user=user)
    return set(own.values_list("item", flat=True)) | _written_by(campaign, user)


def _written_by(campaign: Campaign, user: User) -> set[int]:
    texts = WritingText.objects.filter(annotator__user=user, annotator__project=campaign.project_id)
    if not texts.exclude(external_id="").exists():
        return set()
    return set(Item.objects.of(campaign.dataset).filter(Exists(texts.behind(""))).values_list("pk", flat=True))


# --- deciding --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionDecision:
    """What an adjudicator decides on one criterion: a score, or None for N/A. `seen` is the digest of what they saw."""

    criterion: Criterion
    score: float | None
    cause: str
    cause_note: str = ""
    rationale: str
    seen: str


def adjudicate(
    *, campaign: Campaign, item: Item, decisions: Sequence[CriterionDecision], order: str, key: UUID, actor: User
) -> list[Adjudication]:
    """Store one adjudication for each decision. The same `key` again returns what it stored.

    Raises ``Refused`` with a sentence for each field: codes ``own_rating``, ``ratings_changed``, ``key_used``,
    ``invalid``.
    """
    if earlier := _stored(campaign, item, key, actor):
        return earlier
    if item.pk in _written_by(campaign, actor):
        raise Refused(_("You wrote this text. Another lead decides on it."), code="own_text")
    if item.pk in rated_by(campaign, actor):
        raise Refused(_("You have rated this item, so somebody else has to adjudicate it."), code="own_rating")
    ratings = seen_ratings(campaign, [item.pk])
    seen = {decision.criterion.pk: ratings.get((item.pk, decision.criterion.pk), []) for decision in decisions}
    if problems := dict(_problems(decisions, seen)):
        raise Refused(" ".join(dict.fromkeys(problems.values())), code="invalid", fields=problems)
    changed = [each for each in decisions if digest_of(one.stored for one in seen[each.criterion.pk]) != each.seen]
    if changed:
        sentence = _("The ratings of this item have changed since you saw them. Read them again, then save once more.")
        fields = {f"score-{each.criterion.key}": sentence for each in changed}
        raise Refused(sentence, code="ratings_changed", fields=fields)
    about = {"campaign": campaign, "item": item, "order": order, "adjudicator": actor, "key": key}
    try:
        with transaction.atomic():
            stored = [_store(each, seen[each.criterion.pk], about) for each in decisions]
            decided = [each.criterion.key for each in decisions]
            audit.record(actor=actor, project=campaign.project, verb="adjudicate", subject=item, fields=decided)
    except IntegrityError:  # sent twice at once, or with a key of something else
        if earlier := _stored(campaign, item, key, actor):
            return earlier
        used = _("Another decision was stored with this key. Send this one with a new key.")
        raise Refused(used, code="key_used", fields={"key": used}) from None
    return stored


def _stored(campaign: Campaign, item: Item, key: UUID, actor: User) -> list[Adjudication]:
    """What this person's decision with this key stored on the item."""
    return list(history(campaign).filter(key=key, item=item, adjudicator=actor))


def _store(decision: CriterionDecision, seen: Sequence[SeenRating], about: Mapping[str, Any]) -> Adjudication:
    is_scored = decision.score is not None
    return Adjudication.objects.create(
        **about,
        criterion=decision.criterion,
        rubric_version=about["campaign"].rubric_version,
        status=Adjudication.Status.SCORED if is_scored else Adjudication.Status.NOT_APPLICABLE,
        score=decision.score,
        cause=decision.cause,
        cause_note=decision.cause_note.strip(),
        rationale=decision.rationale.strip(),
        seen=[one.stored for one in seen],
        digest=decision.seen,
    )


def _problems(
    decisions: Sequence[CriterionDecision], seen: Mapping[int, Sequence[SeenRating]]
) -> Iterator[tuple[str, str]]:
    """A sentence by field for everything that is missing or not allowed."""
    if not decisions:
        yield "score", _("Choose a score for one criterion at least.")
    for each in decisions:
        key = each.criterion.key
        if sentence := _score_problem(each, seen[each.criterion.pk]):
            yield f"score-{key}", sentence % key
        if each.cause not in Adjudication.Cause.values and (each.cause or is_disputed(seen[each.criterion.pk])):
            yield f"cause-{key}", _("Choose why the raters disagree on “%s”.") % key
        if each.cause == Adjudication.Cause.OTHER and not each.cause_note.strip():
            yield f"note-{key}", _("Say in a few words what else made the raters disagree on “%s”.") % key
        if sentence := _text_problem(each):
            yield f"rationale-{key}", sentence % key


def _score_problem(decision: CriterionDecision, seen: Sequence[SeenRating]) -> str:
    if not seen:
        return _("Nobody has rated “%s” on this item, so there is nothing to adjudicate.")
    if decision.score is None:
        return "" if decision.criterion.not_applicable else _("“%s” has no N/A. Choose a score.")
    on_scale = decision.criterion.is_on_scale(decision.score)
    return "" if on_scale else _("Choose a score that is on the scale of “%s”.")


def _text_problem(decision: CriterionDecision) -> str:
    if not decision.rationale.strip():
        return _("Write why you decided so on “%s”.")
    if len(decision.cause_note.strip()) > LONGEST_NOTE or len(decision.rationale.strip()) > LONGEST_RATIONALE:
        return _("Write less about “%s”.")
    if holds_nul(decision.rationale + decision.cause_note):
        return _("The text on “%s” has a character that can't be stored. Remove it.")
    return ""


# --- as a table ------------------------------------------------------------------------------------------------------
COLUMNS = (
    Column("campaign"),
    Column("item"),
    Column("language", "word"),
    Column("criterion", "word"),
    Column("rubric", "word"),
    Column("rubric_version", "integer"),
    Column("adjudicator"),
    Column("status", "word"),
    Column("score", "number"),
    Column("cause", "word"),
    Column("cause_note"),
    Column("rationale"),
    Column("queue_order", "word"),
    Column("ratings_seen", "integer"),
    Column("ratings_digest"),
    Column("at", "moment"),
    Column("counts", "switch"),
    Column("stale", "switch"),
)
"""The columns of exported adjudications: one row for each, replaced ones too; `counts` is true for the newest."""


def adjudications(campaign: Campaign, *, rationales: bool = True) -> Table:
    """Every adjudication of a campaign as a table, in the order of the items, then of the criteria, then of time."""
    newest = current(campaign)
    old = stale(campaign, newest)
    names = adjudicator_names(campaign)
    version = campaign.rubric_version
    rows = history(campaign).select_related("item", "criterion")

    def lines() -> Iterator[tuple[Any, ...]]:
        for row in rows.order_by("item__ordinal", "criterion__position", "pk").iterator(BATCH):
            place = (row.item_id, row.criterion_id)
            counts = newest[place].pk == row.pk
            yield (
                campaign.name, row.item.external_id, row.item.language, row.criterion.key, version.rubric.key,
                version.number, names[row.adjudicator_id], row.status, row.score, row.cause, row.cause_note,
                row.rationale if rationales else "", row.order, len(row.seen), row.digest, row.at, counts,
                counts and place in old,
            )  # fmt: skip

    return Table(f"{campaign.name} adjudications", COLUMNS, lines())


# --- decisions of meetings -------------------------------------------------------------------------------------------
def record_decision(
    *,
    campaign: Campaign,
    held_on: date | None,
    decision: str,
    guideline_change: str = "",
    criterion: Criterion | None = None,
    item: Item | None = None,
    actor: User,
) -> MeetingDecision:
    """Add a decision of a calibration meeting to the campaign's list. It is not changed later: add another one."""
    wrong = {}
    if held_on is None or held_on > timezone.localdate():
        wrong["held_on"] = _("Give the day of the meeting, not later than today, as YYYY-MM-DD.")
    if not decision.strip():
        wrong["decision"] = _("Write what the meeting decided.")
    for name, text in (("decision", decision), ("guideline_change", guideline_change)):
        if len(text) > LONGEST_RATIONALE or holds_nul(text):
            wrong[name] = _("Write %d characters at most.") % LONGEST_RATIONALE
    if wrong or held_on is None:
        raise Refused(" ".join(wrong.values()), code="invalid", fields=wrong)
    with transaction.atomic():
        stored = MeetingDecision.objects.create(
            campaign=campaign,
            criterion=criterion,
            item=item,
            held_on=held_on,
            decision=decision.strip(),
            guideline_change=guideline_change.strip(),
            recorded_by=actor,
        )
        audit.record(actor=actor, project=campaign.project, verb="record decision", subject=campaign)
    return stored


def subject_of_decision(campaign: Campaign, *, criterion: str, item: str) -> dict[str, Any]:
    """The ``criterion`` of this key and the ``item`` of this id, None for an empty one; refused where there is none."""
    criteria = {each.key: each for each in campaign.rubric_version.criteria.all()}
    names = spellings_of([normal_identifier(item)])
    found = Item.objects.of(campaign.dataset).filter(external_id__in=names).first() if item else None
    wrong = {}
    if criterion and criterion not in criteria:
        wrong["criterion"] = _("This rubric has no criterion “%s”. Leave the field empty, or choose one.") % criterion
    if item and found is None:
        wrong["item"] = _("This campaign has no item “%s”. Leave the field empty, or give an id.") % item
    if wrong:
        raise Refused(" ".join(wrong.values()), code="invalid", fields=wrong)
    return {"criterion": criteria.get(criterion), "item": found}


def meeting_decisions(campaign: Campaign) -> QuerySet[MeetingDecision]:
    """The decisions of a campaign's meetings, the newest meeting first."""
    return MeetingDecision.objects.filter(campaign=campaign).select_related("criterion", "item", "recorded_by")


DECISION_COLUMNS = ("held_on", "criterion", "item", "decision", "guideline_change", "recorded_at")


def decision_rows(campaign: Campaign) -> Iterator[tuple[Any, ...]]:
    """The same under `DECISION_COLUMNS`, for a CSV file."""
    for row in meeting_decisions(campaign):
        yield (
            row.held_on.isoformat(), row.criterion.key if row.criterion else None,
            row.item.external_id if row.item else None, row.decision, row.guideline_change,
            row.recorded_at.isoformat(),
        )  # fmt: skip
