"""What a change of the rubric's version does to a campaign's annotations, and how the change is undone.

Stored ratings never change. Every current annotation gets a revision under the new version's criteria, with the ratings
that are kept or mapped; the replaced annotation stays stored under the old version (docs/decisions/0037).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from accounts.refusals import Refused
from annotation import bulk
from annotation.desk import leasing
from annotation.desk.answers import Answer, is_stop
from annotation.models import (
    Annotation,
    Assignment,
    ControlPause,
    Criterion,
    Draft,
    Duty,
    EvidenceSpan,
    ExamAttempt,
    MismatchReview,
    PanelSeat,
    Rating,
    ReferenceScore,
    RubricChange,
)
from annotation.qualification.references import UNSEEN
from annotation.readers import plain_number
from annotation.rubrics import CriterionDifference
from annotation.whole_item import WHOLE_ITEM_COLUMNS, WholeItemAnswers, item_answers

MOST_MAPPED = 50
"""Different scores of one criterion that a table may map."""
KEPT_FOR = timedelta(days=14)
"""How long an item that is rated again waits for the annotator who rated it; then others may take it."""
TOGETHER = 1_000
Progress = Callable[[int, int], None]


# --- what has been rated under the present version --------------------------------------------------------------------
class RatedScore(NamedTuple):
    """A score and how many current ratings give it."""

    score: float
    ratings: int


@dataclass(frozen=True, slots=True)
class RatedCounts:
    """The current ratings on one criterion. ``imported``: those that nobody can rate again. ``scores``: by score."""

    ratings: int = 0
    items: int = 0
    annotators: int = 0
    not_applicable: int = 0
    imported: int = 0
    scores: tuple[RatedScore, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangedCriterion:
    """A criterion of either version, with the counts of its ratings and the possible decisions."""

    difference: CriterionDifference
    before: Criterion | None
    after: Criterion | None
    rated: RatedCounts

    @property
    def decisions(self) -> tuple[str, ...]:
        """The possible decisions, the default first; empty for an unchanged, removed, or changed but unrated one."""
        if self.difference.kind == "added":
            return ("keep", "requeue")
        if self.difference.kind != "changed" or not self.rated.ratings:
            return ()
        mapped = ("map",) if len(self.rated.scores) <= MOST_MAPPED else ()
        return ("requeue", *mapped) if self.difference.scale_differs else ("keep", "requeue", *mapped)


@dataclass(frozen=True, slots=True)
class RatingDecision:
    """The decision for the ratings on one criterion. ``scores``: by old score, the new score; if that is None or
    missing, the item is rated again."""

    decision: str = "keep"
    scores: Mapping[float, float | None] = field(default_factory=dict)

    @property
    def as_json(self) -> dict[str, Any]:
        mapped = {str(plain_number(old)): new for old, new in self.scores.items()}
        return {"decision": self.decision} | ({"scores": mapped} if self.decision == "map" else {})

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RatingDecision:
        return cls(stored["decision"], {float(old): new for old, new in stored.get("scores", {}).items()})


class _RatedAgain(NamedTuple):
    """The first content of the draft of an item that is rated again; ``first``: its place in the submission order."""

    answers: dict[str, Any]
    seconds: float
    about_item: WholeItemAnswers
    first: tuple[datetime, int]


@dataclass(slots=True)
class Carrier:
    """Carries a campaign's annotations over to another version of the rubric, inside one transaction.

    Controls and repeats are treated as ordinary items, so that annotators can't notice which items they were.
    """

    change: RubricChange
    criteria: Sequence[ChangedCriterion]
    decisions: Mapping[str, RatingDecision]
    tell: Progress = lambda _done, _total: None
    counts: Counter[str] = field(default_factory=Counter)
    reopened: dict[int, _RatedAgain] = field(default_factory=dict)
    revealed: set[int] = field(default_factory=set)
    new: dict[str, Criterion] = field(init=False)
    old: dict[int, Criterion] = field(init=False)
    added: set[str] = field(init=False)
    asked: dict[int, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.new = {one.difference.key: one.after for one in self.criteria if one.after is not None}
        self.old = {one.before.pk: one.before for one in self.criteria if one.before is not None}
        added = [one.difference.key for one in self.criteria if one.difference.kind == "added"]
        self.added = {key for key in added if self._decision(key).decision == "requeue"}

    def carry_out(self) -> None:
        former: dict[str, Any] = {"duties": self._duties(), **self._references()}
        fitting = {one.difference.key for one in self.criteria if one.difference.kind == "same"}
        fitting |= {key for key, one in self.decisions.items() if one.decision == "keep"}
        former["drafts"] = _renew_leases(self.change, fitting)
        former["attempts"] = self._end_attempts()
        self.revealed = _revealed_controls(self.change)
        current = Annotation.objects.filter(within(self.change), superseded_at=None)
        keys = list(current.order_by("pk").values_list("pk", flat=True))
        current.update(superseded_at=self.change.at)
        for done, some in enumerate(_batches(keys)):
            self.tell(done * TOGETHER, len(keys))
            self._annotations(some)
        self.tell(len(keys), len(keys))
        _own(self.change).filter(state=Assignment.State.SUBMITTED).update(key=_current("key"))
        _own(self.change).update(revision=F("revision") + 1)
        former["reopened"] = self._reopen()
        self.counts["assignments"] = len(former["reopened"])
        self.change.former, self.change.counts = former, dict(self.counts)

    def _end_attempts(self) -> list[int]:
        """If everybody must pass the exam again, end the exams in progress; return their primary keys."""
        if not self.change.qualify_again:
            return []
        under_way = ExamAttempt.objects.filter(duty__campaign=self.change.campaign_id, finished_at=None)
        keys = list(under_way.values_list("pk", flat=True))
        ExamAttempt.objects.filter(pk__in=keys).update(finished_at=self.change.at, passed=False)
        return keys

    def _decision(self, key: str) -> RatingDecision:
        return self.decisions.get(key) or RatingDecision()

    def _duties(self) -> dict[str, list[int]]:
        """Give every duty the new version's criteria with the same keys; if it asked the whole rubric, new ones too."""
        through = Duty.criteria.through._default_manager
        former: dict[str, list[int]] = {}
        whole = {criterion.key for criterion in self.old.values()}
        for duty in Duty.with_hidden.filter(within(self.change)).order_by("pk"):
            own = list(through.filter(duty=duty).order_by("pk").values_list("criterion", flat=True))
            former[str(duty.pk)] = own
            keys = {self.old[pk].key for pk in own if pk in self.old}
            asked = [key for key in self.new if key in keys or (keys == whole and key not in whole)]
            if own and (not asked or any(not {*keys_of_set} & {*asked} for keys_of_set in duty.criteria_sets)):
                sentence = _("“%(duty)s” asks some items only for criteria that %(version)s does not have.")
                named = {"duty": duty.name, "version": self.change.to_version}
                raise Refused(sentence % named, code="empty_duty")
            through.filter(duty=duty).delete()
            through.bulk_create([through.model(duty=duty, criterion=self.new[key]) for key in asked])
        return former

    def _references(self) -> dict[str, Any]:
        """Apply the decisions to reference scores. A score that would be rated again is removed until a new mark."""
        scores = ReferenceScore.objects.filter(reference__campaign=self.change.campaign_id)
        names = ("pk", "reference", "criterion", "score", "lowest", "highest", "explanation")
        former = list(scores.order_by("pk").values_list(*names))
        for pk, _reference, criterion, score, lowest, highest, _why in former:
            carried = self._carried(criterion, Rating.Status.SCORED, score) if score is not None else None
            after = self.new.get(self.old[criterion].key) if criterion in self.old else None
            kept = self._decision(self.old[criterion].key).decision == "keep" if criterion in self.old else False
            if score is None and after is not None and kept and after.not_applicable:
                scores.filter(pk=pk).update(criterion=after)
            elif score is None or after is None or carried is None:
                scores.filter(pk=pk).delete()
                self.counts["references_dropped"] += 1
            else:
                ends = (lowest, highest) if kept else (None, None)
                scores.filter(pk=pk).update(criterion=after, score=carried, lowest=ends[0], highest=ends[1])
        reviews = MismatchReview.objects.filter(assignment__duty__in=Duty.with_hidden.filter(within(self.change)))
        for pk, before in self.old.items():
            if (after := self.new.get(before.key)) and self._decision(before.key).decision != "requeue":
                reviews.filter(criterion=pk).update(criterion=after)
        return {"references": former, "marked": list(scores.values_list("pk", flat=True))}

    # --- annotations and ratings --------------------------------------------------------------------------------------
    def _annotations(self, keys: Sequence[int]) -> None:
        names = (
            "campaign_id", "item_id", "annotator_id", "assignment_id", "file_import_id", "key", "revision", "seconds",
            *WHOLE_ITEM_COLUMNS, "blind", "swapped", "submitted_at",
        )  # fmt: skip
        rows = list(Annotation.objects.filter(pk__in=keys).order_by("pk").values("pk", *names))
        sets = Assignment.objects.filter(annotations__in=keys).values_list(
            "pk", "duty", "duty__purpose", "criteria_set"
        )
        about: dict[int, Any] = {pk: rest for pk, *rest in sets}
        ratings = defaultdict[int, list[Any]](list)
        for rating in Rating.objects.filter(annotation__in=keys).order_by("pk"):
            ratings[rating.annotation_id].append(rating)
        stored, carried = list[tuple[Any, ...]](), list[tuple[Rating, float | None]]()
        places = bulk.reserve_keys(Annotation, len(rows))
        new_keys: dict[int, int] = {}
        for place, row in zip(places, rows, strict=True):
            own, again = self._ratings(ratings[row["pk"]], is_imported=row["assignment_id"] is None)
            if row["assignment_id"] is None and not own:
                continue
            new_keys[row["pk"]] = place
            carried += own
            row |= {"key": row["key"] and uuid7(), "revision": row["revision"] + 1}
            stored.append((place, *(row[name] for name in names), None, self.change.pk))
            if row["assignment_id"] is not None:
                duty, purpose, criteria_set = about[row["assignment_id"]]
                self._note_assignment(row, own, again, duty, purpose, criteria_set)
        bulk.insert(Annotation, ("id", *names, "superseded_at", "rubric_change_id"), stored)
        self._store_ratings(carried, new_keys)

    def _ratings(self, given: Sequence[Rating], *, is_imported: bool) -> tuple[list[tuple[Rating, float | None]], bool]:
        """The ratings that are kept or mapped, with their new scores, and whether some must be rated again."""
        own, again = [], False
        is_stopped = any(map(self._stops, given))
        for rating in given:
            if rating.criterion_id not in self.old or self.old[rating.criterion_id].key not in self.new:
                self.counts["removed"] += 1
                continue
            score = self._carried(rating.criterion_id, rating.status, rating.score)
            if score is None and not self._stays_without_score(rating, is_stopped):
                again = True
                self.counts["left" if is_imported else "requeued"] += 1
                continue
            own.append((rating, score))
            is_mapped = self._decision(self.old[rating.criterion_id].key).decision == "map"
            self.counts["mapped" if is_mapped and score is not None else "kept"] += 1
        return own, again

    def _stops(self, rating: Rating) -> bool:
        """Whether the rating is a critical mark under the new version, too."""
        after = self.new.get(self.old[rating.criterion_id].key) if rating.criterion_id in self.old else None
        score = self._carried(rating.criterion_id, rating.status, rating.score)
        return after is not None and is_stop(after, Answer(score=score))

    def _stays_without_score(self, rating: Rating, is_stopped: bool) -> bool:
        key = self.old[rating.criterion_id].key
        if rating.status == Rating.Status.STOPPED:
            return is_stopped
        is_na = rating.status == Rating.Status.NOT_APPLICABLE
        return is_na and self.new[key].not_applicable and self._decision(key).decision != "requeue"

    def _carried(self, criterion: int, status: str, score: float | None) -> float | None:
        """The score under the new version; None if there is no score."""
        if criterion not in self.old or status != Rating.Status.SCORED or score is None:
            return None
        decision = self._decision(self.old[criterion].key)
        if decision.decision == "requeue":
            return None
        return decision.scores.get(score) if decision.decision == "map" else score

    def _note_assignment(
        self, row: Mapping[str, Any], own: Sequence[tuple[Rating, float | None]], again: bool, duty: int, purpose: str,
        criteria_set: int,
    ) -> None:  # fmt: skip
        """Note an assignment that is rated again, with the first answers of its draft."""
        asks_more = not criteria_set and bool(self.added & self._keys_of(duty))
        is_item = purpose == Duty.Purpose.RATING or (purpose in UNSEEN and row["assignment_id"] not in self.revealed)
        if not is_item or not (again or asks_more):
            return
        answers = {
            self.old[rating.criterion_id].key: {
                "score": score,
                "status": rating.status,
                "rationale": rating.rationale,
            }
            for rating, score in own
            if rating.status != Rating.Status.STOPPED
        }
        first = (row["submitted_at"], row["assignment_id"])
        self.reopened[row["assignment_id"]] = _RatedAgain(
            answers=answers, seconds=row["seconds"] or 0.0, about_item=item_answers(row), first=first
        )

    def _keys_of(self, duty: int) -> set[str]:
        if duty not in self.asked:
            rows = Duty.criteria.through._default_manager.filter(duty=duty)
            self.asked[duty] = set(rows.values_list("criterion__key", flat=True))
        return self.asked[duty]

    def _store_ratings(self, carried: Sequence[tuple[Rating, float | None]], annotations: Mapping[int, int]) -> None:
        places = bulk.reserve_keys(Rating, len(carried))
        new_keys = {rating.pk: place for place, (rating, _score) in zip(places, carried, strict=True)}
        former = self.change.from_version_id
        rows = []
        for place, (rating, score) in zip(places, carried, strict=True):
            key = self.old[rating.criterion_id].key
            is_mapped = self._decision(key).decision == "map" and score is not None
            given = rating.given_score if rating.given_score is not None or not is_mapped else rating.score
            version = rating.given_version_id or former
            rows.append(
                (place, annotations[rating.annotation_id], self.new[key].pk, rating.status, score, rating.rationale,
                 rating.rule_kept, version, given)
            )  # fmt: skip
        names = ("id", "annotation_id", "criterion_id", "status", "score", "rationale", "rule_kept")
        bulk.insert(Rating, (*names, "given_version_id", "given_score"), rows)
        parts = ("turn", "field", "start", "end", "quote", "label", "severity")
        spans = EvidenceSpan.objects.filter(rating__annotation__in=[*annotations]).order_by("pk")
        marked = [row for row in spans.values_list("rating", *parts) if row[0] in new_keys]
        bulk.insert(EvidenceSpan, ("rating_id", *parts), [(new_keys[rating], *rest) for rating, *rest in marked])

    def _reopen(self) -> dict[str, str | None]:
        """Give the items that are rated again to the people who rated them; if they left, to anybody.

        The times of the leases keep each person's order of submission. Returns the former times.
        """
        seated = Exists(PanelSeat.objects.filter(panel=OuterRef("duty__panel"), annotator=OuterRef("annotator")))
        every = Assignment.objects.filter(pk__in=list(self.reopened), state=Assignment.State.SUBMITTED)
        seen = every.annotate(is_seated=seated, person=F("annotator__user"), purpose=F("duty__purpose"))
        slots = sorted(seen, key=lambda slot: self.reopened[slot.pk].first)
        slots = [slot for slot in slots if slot.purpose == Duty.Purpose.RATING or (slot.is_seated and slot.person)]
        former = {str(slot.pk): slot.leased_at.isoformat() if slot.leased_at else None for slot in slots}
        drafts = []
        for place, slot in enumerate(slots):
            slot.revision += 1
            slot.leased_at = self.change.at - timedelta(microseconds=place)
            slot.leased_until, slot.state, slot.key = self.change.at + KEPT_FOR, Assignment.State.LEASED, uuid7()
            if slot.is_seated and slot.person:
                again = self.reopened[slot.pk]
                owner = {"duty_id": slot.duty_id, "item_id": slot.item_id, "annotator_id": slot.annotator_id}
                entered = {"answers": again.answers, "seconds": again.seconds, **again.about_item}
                drafts.append(Draft(**owner, key=slot.key, **entered, saved_at=self.change.at))
            else:
                slot.state, slot.annotator, slot.key = Assignment.State.OPEN, None, None
                slot.leased_at = slot.leased_until = None
        fields = ["state", "annotator", "key", "revision", "leased_at", "leased_until"]
        Assignment.objects.bulk_update(slots, fields, batch_size=500)
        Draft.objects.bulk_create(
            drafts,
            batch_size=500,
            update_conflicts=True,
            unique_fields=["duty", "item", "annotator"],
            update_fields=["key", "answers", *WHOLE_ITEM_COLUMNS, "seconds", "saved_at"],
        )
        return former


def _batches(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    return (keys[start : start + TOGETHER] for start in range(0, len(keys), TOGETHER))


def within(change: RubricChange, prefix: str = "") -> Q:
    """A filter for the rows of the campaign and of its hidden qualification campaign."""
    return Q(**{f"{prefix}campaign": change.campaign_id}) | Q(
        **{f"{prefix}campaign__qualification_of": change.campaign_id}
    )


def _revealed_controls(change: RubricChange) -> set[int]:
    """The items that were shown to their annotators as controls, when their work was paused."""
    pauses = ControlPause.objects.filter(duty=OuterRef("duty__stands_for"), annotator=OuterRef("annotator"))
    shown = Exists(pauses.filter(paused_at__gte=OuterRef("leased_at")))
    hidden = Assignment.objects.filter(shown, within(change, "duty__"), duty__purpose=Duty.Purpose.CONTROL)
    return set(hidden.values_list("pk", flat=True))


def lock_assignments(change: RubricChange) -> None:
    """Lock the assignments: wait for submissions, changes and undos in progress; later ones find another key."""
    taken = Assignment.objects.filter(within(change, "duty__")).exclude(state=Assignment.State.OPEN).order_by("pk")
    for _pk in taken.select_for_update(of=("self",), no_key=True).values_list("pk", flat=True).iterator():
        pass


def _renew_leases(change: RubricChange, fitting: Collection[str]) -> dict[str, dict[str, Any]]:
    """Renew the keys, so that a page with the other version can't be submitted. Drafts keep only the answers on
    ``fitting`` criteria.

    Returns the removed answers, by primary key of the draft.
    """
    leased = Assignment.objects.filter(within(change, "duty__"), state=Assignment.State.LEASED)
    held = list(leased)
    leasing.keep_drafts(held)
    for slot in held:
        slot.key = uuid7()
    Assignment.objects.bulk_update(held, ["key"], batch_size=500)
    drafts = [
        one for one in Draft.objects.filter(within(change, "duty__")).iterator() if not {*one.answers} <= {*fitting}
    ]
    lost: dict[str, dict[str, Any]] = {}
    for draft in drafts:
        lost[str(draft.pk)] = {key: answer for key, answer in draft.answers.items() if key not in fitting}
        draft.answers = {key: answer for key, answer in draft.answers.items() if key in fitting}
    Draft.objects.bulk_update(drafts, ["answers"], batch_size=500)
    return lost


def _own(change: RubricChange) -> QuerySet[Assignment]:
    """The assignments with annotations that the change revised."""
    carried = Annotation.objects.filter(within(change), rubric_change=change, assignment__isnull=False)
    return Assignment.objects.filter(pk__in=carried.values("assignment"))


def _current(column: str) -> Subquery:
    """A column of the current annotation of an assignment."""
    return Subquery(Annotation.objects.filter(assignment=OuterRef("pk"), superseded_at=None).values(column)[:1])


# --- the way back -----------------------------------------------------------------------------------------------------
def restore(change: RubricChange, tell: Progress = lambda _done, _total: None) -> None:
    """Delete the rows that the change wrote, and restore the replaced ones. Nobody may have rated since the change."""
    carried = Annotation.objects.filter(within(change), rubric_change=change)
    slots = _own(change)
    pks = list(slots.values_list("pk", flat=True))
    keys = list(carried.values_list("pk", flat=True))
    for done, some in enumerate(_batches(keys)):
        tell(done * TOGETHER, len(keys))
        EvidenceSpan.objects.filter(rating__annotation__in=some)._raw_delete(using="default")
        bulk.delete_by_key(Rating, "annotation", some)
    carried._raw_delete(using="default")
    Annotation.objects.filter(within(change), superseded_at=change.at).update(superseded_at=None)
    reopened = set(map(int, change.former["reopened"]))  # a list before the times were stored
    for some in _batches(pks):
        own = Assignment.objects.filter(pk__in=some)
        submitted = own.filter(Q(state=Assignment.State.SUBMITTED) | Q(pk__in=[pk for pk in some if pk in reopened]))
        back = list(submitted.values_list("pk", flat=True))
        own.exclude(pk__in=back).update(revision=F("revision") - 1)
        Assignment.objects.filter(pk__in=back).update(
            state=Assignment.State.SUBMITTED,
            annotator=_current("annotator"),
            key=_current("key"),
            revision=_current("revision"),
            leased_until=None,
        )
        again = Assignment.objects.filter(pk__in=[pk for pk in back if pk in reopened])
        same = again.filter(duty=OuterRef("duty"), item=OuterRef("item"), annotator=OuterRef("annotator"))
        Draft.objects.filter(Exists(same)).delete()
    if isinstance(times := change.former["reopened"], dict):
        given = list(Assignment.objects.filter(pk__in=reopened))
        for slot in given:
            slot.leased_at = datetime.fromisoformat(at) if (at := times[str(slot.pk)]) else None
        Assignment.objects.bulk_update(given, ["leased_at"], batch_size=500)
    _restore_duties(change)
    attempts = change.former.get("attempts", [])
    ExamAttempt.objects.filter(pk__in=attempts).update(finished_at=None, passed=None)


def _restore_duties(change: RubricChange) -> None:
    through = Duty.criteria.through._default_manager
    for duty, criteria in change.former["duties"].items():
        through.filter(duty=int(duty)).delete()
        through.bulk_create([through.model(duty_id=int(duty), criterion_id=pk) for pk in criteria])
    ReferenceScore.objects.filter(reference__campaign=change.campaign_id).delete()
    names = ("pk", "reference_id", "criterion_id", "score", "lowest", "highest", "explanation")
    rows = (dict(zip(names, row, strict=True)) for row in change.former["references"])
    ReferenceScore.objects.bulk_create([ReferenceScore(**row) for row in rows])
    old = {criterion.key: criterion.pk for criterion in change.from_version.criteria.all()}
    reviews = MismatchReview.objects.filter(assignment__duty__in=Duty.with_hidden.filter(within(change)))
    for criterion in change.to_version.criteria.all():
        if criterion.key in old:
            reviews.filter(criterion=criterion).update(criterion=old[criterion.key])
    _renew_leases(change, old.keys() - change.decisions.keys())
    lost = change.former.get("drafts", {})
    drafts = list(Draft.objects.filter(pk__in=[int(pk) for pk in lost]))
    for draft in drafts:
        draft.answers = {**lost[str(draft.pk)], **draft.answers}
    Draft.objects.bulk_update(drafts, ["answers"], batch_size=500)
