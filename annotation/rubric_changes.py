"""A campaign goes on with a newer version of its rubric: what differs, what becomes of the ratings, and the way back.

Nothing that was rated changes. Every current annotation gets a revision under the new version's criteria, with the
ratings that are kept or mapped; what it replaces stays stored under the old version (docs/decisions/0037).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from accounts import audit
from accounts.models import User
from accounts.refusals import Refused
from annotation import allocation, bulk
from annotation.desk import leasing
from annotation.desk.answers import Answer, is_stop
from annotation.models import (
    Adjudication,
    Annotation,
    Assignment,
    Campaign,
    Criterion,
    Draft,
    Duty,
    EvidenceSpan,
    MismatchReview,
    PanelSeat,
    Rating,
    ReferenceScore,
    RubricChange,
    RubricVersion,
)
from annotation.readers import plain_number, rubric_from_dict
from annotation.rubrics import CriterionDifference, rubric_differences

DECISIONS = ("keep", "requeue", "map")
MOST_MAPPED = 50
"""Different scores of one criterion that a table may map."""
KEPT_FOR = timedelta(days=14)
"""How long an item that is rated again waits for the annotator who rated it; then others may take it."""
TOGETHER = 1_000


# --- what has been rated under the present version --------------------------------------------------------------------
class RatedScore(NamedTuple):
    """A score and how many current ratings give it."""

    score: float
    ratings: int


@dataclass(frozen=True, slots=True)
class RatedCounts:
    """The current ratings on one criterion. ``imported``: of these nobody can rate again. ``scores`` by score."""

    ratings: int = 0
    items: int = 0
    annotators: int = 0
    not_applicable: int = 0
    imported: int = 0
    scores: tuple[RatedScore, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangedCriterion:
    """A criterion of either version, with what has been rated on it, and the decisions that are possible."""

    difference: CriterionDifference
    before: Criterion | None
    after: Criterion | None
    rated: RatedCounts

    @property
    def decisions(self) -> tuple[str, ...]:
        """None for a criterion that is the same, removed, or has no ratings; the first one is the default."""
        if self.difference.kind == "added":
            return ("keep", "requeue")
        if self.difference.kind != "changed" or not self.rated.ratings:
            return ()
        mapped = ("map",) if len(self.rated.scores) <= MOST_MAPPED else ()
        return ("requeue", *mapped) if self.difference.scale_differs else ("keep", "requeue", *mapped)


def newer_versions(campaign: Campaign) -> QuerySet[RubricVersion]:
    """The published versions of the campaign's rubric after its own, newest first."""
    own = campaign.rubric_version
    later = RubricVersion.objects.published().filter(rubric=own.rubric_id, number__gt=own.number)
    return later.select_related("rubric").order_by("-number")


def touched_criteria(campaign: Campaign, version: RubricVersion) -> list[ChangedCriterion]:
    """What differs between the campaign's version and another one, with the ratings that it touches."""
    before, after = (_by_key(each.pk) for each in (campaign.rubric_version, version))
    rated = _rated(campaign)
    documents = (rubric_from_dict(each.document) for each in (campaign.rubric_version, version))
    return [
        ChangedCriterion(one, before.get(one.key), after.get(one.key), rated.get(one.key, RatedCounts()))
        for one in rubric_differences(*documents)
    ]


def _by_key(version: int) -> dict[str, Criterion]:
    return {criterion.key: criterion for criterion in Criterion.objects.filter(rubric_version=version)}


def _rated(campaign: Campaign) -> dict[str, RatedCounts]:
    current = Rating.objects.filter(annotation__campaign=campaign, annotation__superseded_at=None)
    rows: Any = current.order_by().values("criterion__key").annotate(
        ratings=Count("pk", filter=~Q(status=Rating.Status.STOPPED)),
        items=Count("annotation__item", distinct=True),
        annotators=Count("annotation__annotator", distinct=True),
        not_applicable=Count("pk", filter=Q(status=Rating.Status.NOT_APPLICABLE)),
        imported=Count("pk", filter=Q(annotation__assignment=None)),
    )  # fmt: skip
    scores = defaultdict[str, list[RatedScore]](list)
    scored = current.exclude(score=None).order_by("score").values_list("criterion__key", "score")
    for key, score, count in scored.annotate(count=Count("pk")):
        scores[key].append(RatedScore(score or 0.0, count))
    return {(key := row.pop("criterion__key")): RatedCounts(**row, scores=tuple(scores[key])) for row in rows}


# --- the change -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RatingDecision:
    """What becomes of the ratings on one criterion. ``scores``: by old score the new one; None or none: rated again."""

    decision: str = "keep"
    scores: Mapping[float, float | None] = field(default_factory=dict)

    @property
    def as_json(self) -> dict[str, Any]:
        mapped = {str(plain_number(old)): new for old, new in self.scores.items()}
        return {"decision": self.decision} | ({"scores": mapped} if self.decision == "map" else {})


def change_version(
    *,
    campaign: Campaign,
    version: RubricVersion,
    decisions: Mapping[str, RatingDecision],
    from_version: int,
    actor: User | None = None,
) -> RubricChange:
    """Go on with a newer version of the rubric. The campaign is paused meanwhile, so that nobody submits.

    ``decisions``: for each criterion that has a choice (`ChangedCriterion.decisions`). ``from_version``: the one that
    the lead has seen. Refused: codes ``not_paused``, ``changed``, ``no_newer``, ``invalid``, ``empty_duty``.
    """
    _require_paused(campaign)
    if campaign.rubric_version_id != from_version:
        raise _changed()
    if not newer_versions(campaign).filter(pk=version.pk).exists():
        raise Refused(_("Choose a newer published version of the campaign's rubric."), code="no_newer")
    criteria = touched_criteria(campaign, version)
    _check(criteria, decisions)
    at = timezone.now()
    with transaction.atomic():
        paused = Campaign.objects.filter(pk=campaign.pk, state=Campaign.State.PAUSED, rubric_version=from_version)
        if not paused.update(rubric_version=version):
            raise _changed()
        Campaign.with_hidden.filter(qualification_of=campaign).update(rubric_version=version)
        change = RubricChange.objects.create(
            campaign=campaign,
            from_version=campaign.rubric_version,
            to_version=version,
            decisions={key: decision.as_json for key, decision in decisions.items()},
            changed_by=actor,
            at=at,
        )
        _Carrier(change, criteria, decisions).carry_out()
        audit.record(
            actor=actor, project=campaign.project, verb="change rubric version", subject=campaign, fields=[*decisions]
        )
    allocation.criteria_of.cache_clear()
    campaign.rubric_version = version
    return change


def _require_paused(campaign: Campaign) -> None:
    if campaign.state == Campaign.State.CLOSED:
        raise Refused(_("This campaign is closed. Open a new campaign."), code="campaign_closed")
    if campaign.state != Campaign.State.PAUSED:
        sentence = _("Pause the campaign first, so that nobody submits scores during the change. Drafts are kept.")
        raise Refused(sentence, code="not_paused")


def _changed() -> Refused:
    return Refused(_("The campaign has changed since you opened this page. Look at it again."), code="changed")


def _check(criteria: Iterable[ChangedCriterion], decisions: Mapping[str, RatingDecision]) -> None:
    """Refuse decisions that are missing, unknown or impossible, with a sentence for each criterion."""
    wrong: dict[str, str] = {}
    known = {one.difference.key: one for one in criteria}
    for key in decisions.keys() - {key for key, one in known.items() if one.decisions}:
        wrong[key] = _("There is nothing to decide about “%s”.") % key
    for key, one in known.items():
        if one.decisions and (problem := _problem(one, decisions.get(key))):
            wrong[key] = problem
    if wrong:
        raise Refused(" ".join(wrong.values()), code="invalid", fields=wrong)


def _problem(one: ChangedCriterion, decision: RatingDecision | None) -> str:
    key = one.difference.key
    if decision is None:
        return _("Decide what becomes of the ratings on “%s”.") % key
    if decision.decision not in one.decisions:
        named = {"key": key, "all": ", ".join(one.decisions)}
        return _("This is not possible for “%(key)s”. Choose one of: %(all)s.") % named
    if decision.decision != "map" or one.after is None:
        return ""
    given = {score for score, _count in one.rated.scores}
    if unknown := sorted(decision.scores.keys() - given):
        named = {"key": key, "score": str(plain_number(unknown[0]))}
        return _("Nobody gave “%(key)s” the score %(score)s.") % named
    off = [score for score in decision.scores.values() if score is not None and not one.after.is_on_scale(score)]
    if off:
        named = {"key": key, "score": str(plain_number(off[0]))}
        return _("%(score)s is not on the new scale of “%(key)s”.") % named
    if not any(score is not None for score in decision.scores.values()):
        return _("Give “%s” a new score for at least one old score.") % key
    return ""


@dataclass(slots=True)
class _Carrier:
    """Carries a campaign's annotations over to another version of the rubric, inside one transaction."""

    change: RubricChange
    criteria: Sequence[ChangedCriterion]
    decisions: Mapping[str, RatingDecision]
    counts: Counter[str] = field(default_factory=Counter)
    reopened: dict[int, tuple[dict[str, Any], float]] = field(default_factory=dict)
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
        former = {"duties": self._duties(), **self._references(), "reopened": list[int]()}
        fitting = {one.difference.key for one in self.criteria if one.difference.kind == "same"}
        fitting |= {key for key, one in self.decisions.items() if one.decision == "keep"}
        _renew_leases(self.change, fitting)
        current = Annotation.objects.filter(_within(self.change), superseded_at=None)
        keys = list(current.order_by("pk").values_list("pk", flat=True))
        current.update(superseded_at=self.change.at)
        for some in _batches(keys):
            self._annotations(some)
        _own(self.change).filter(state=Assignment.State.SUBMITTED).update(key=_current("key"))
        _own(self.change).update(revision=F("revision") + 1)
        former["reopened"] = self._reopen()
        self.counts["assignments"] = len(former["reopened"])
        self.change.former, self.change.counts = former, dict(self.counts)
        self.change.save(update_fields=["former", "counts"])

    def _decision(self, key: str) -> RatingDecision:
        return self.decisions.get(key) or RatingDecision()

    def _duties(self) -> dict[str, list[int]]:
        """Give every duty the new version's criteria of the same keys; added ones where it asked the whole rubric."""
        through = Duty.criteria.through._default_manager
        former: dict[str, list[int]] = {}
        whole = {criterion.key for criterion in self.old.values()}
        for duty in Duty.with_hidden.filter(_within(self.change)).order_by("pk"):
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
        """Reference scores follow the decisions; what would be rated again has none until it is marked anew."""
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
        reviews = MismatchReview.objects.filter(assignment__duty__in=Duty.with_hidden.filter(_within(self.change)))
        for pk, before in self.old.items():
            if (after := self.new.get(before.key)) and self._decision(before.key).decision != "requeue":
                reviews.filter(criterion=pk).update(criterion=after)
        return {"references": former, "marked": list(scores.values_list("pk", flat=True))}

    # --- annotations and ratings --------------------------------------------------------------------------------------
    def _annotations(self, keys: Sequence[int]) -> None:
        names = (
            "campaign_id", "item_id", "annotator_id", "assignment_id", "file_import_id", "key", "revision", "seconds",
            "blind", "swapped", "submitted_at",
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
        """The ratings that are carried over with their new scores, and whether some have to be rated again."""
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
        """Whether it is a critical mark under the new version, too."""
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
        """The score under the new version; None where there is none."""
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
        """Remember an assignment that is rated again, with the answers that its draft begins from."""
        asks_more = not criteria_set and bool(self.added & self._keys_of(duty))
        if purpose != Duty.Purpose.RATING or not (again or asks_more):
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
        self.reopened[row["assignment_id"]] = (answers, row["seconds"] or 0.0)

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

    def _reopen(self) -> list[int]:
        """Give the items that are rated again to those who rated them; those of people who left, to anybody."""
        seated = Exists(PanelSeat.objects.filter(panel=OuterRef("duty__panel"), annotator=OuterRef("annotator")))
        every = Assignment.objects.filter(pk__in=list(self.reopened), state=Assignment.State.SUBMITTED)
        slots = list(every.annotate(is_seated=seated, person=F("annotator__user")).order_by("pk"))
        drafts = []
        for slot in slots:
            slot.revision += 1
            slot.leased_at, slot.leased_until, slot.state = self.change.at, self.change.at + KEPT_FOR, "leased"
            slot.key = uuid7()
            if slot.is_seated and slot.person:
                answers, seconds = self.reopened[slot.pk]
                owner = {"duty_id": slot.duty_id, "item_id": slot.item_id, "annotator_id": slot.annotator_id}
                drafts.append(Draft(**owner, key=slot.key, answers=answers, seconds=seconds, saved_at=self.change.at))
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
            update_fields=["key", "answers", "seconds", "saved_at"],
        )
        return [slot.pk for slot in slots]


def _batches(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    return (keys[start : start + TOGETHER] for start in range(0, len(keys), TOGETHER))


def _within(change: RubricChange, prefix: str = "") -> Q:
    """Rows of the campaign and of its hidden qualification campaign."""
    return Q(**{f"{prefix}campaign": change.campaign_id}) | Q(
        **{f"{prefix}campaign__qualification_of": change.campaign_id}
    )


def _renew_leases(change: RubricChange, fitting: Collection[str]) -> None:
    """A page that shows the other version can't be submitted; drafts keep only the answers on ``fitting`` criteria."""
    leased = Assignment.objects.filter(_within(change, "duty__"), state=Assignment.State.LEASED)
    held = list(leased.select_for_update(of=("self",), no_key=True))  # waits for a submission that has just begun
    leasing.keep_drafts(held)
    for slot in held:
        slot.key = uuid7()
    Assignment.objects.bulk_update(held, ["key"], batch_size=500)
    drafts = [one for one in Draft.objects.filter(_within(change, "duty__")).iterator() if one.answers]
    for draft in drafts:
        draft.answers = {key: answer for key, answer in draft.answers.items() if key in fitting}
    Draft.objects.bulk_update(drafts, ["answers"], batch_size=500)


def _own(change: RubricChange) -> QuerySet[Assignment]:
    """The assignments whose annotations the change carried over."""
    carried = Annotation.objects.filter(_within(change), rubric_change=change, assignment__isnull=False)
    return Assignment.objects.filter(pk__in=carried.values("assignment"))


def _current(column: str) -> Subquery:
    """A column of the current annotation of an assignment."""
    return Subquery(Annotation.objects.filter(assignment=OuterRef("pk"), superseded_at=None).values(column)[:1])


# --- the way back -----------------------------------------------------------------------------------------------------
def last_change(campaign: Campaign) -> RubricChange | None:
    """The change that led to the campaign's present version, if there was one."""
    changes = campaign.rubric_changes.filter(undone_at=None, to_version=campaign.rubric_version_id)
    return changes.select_related("from_version__rubric", "to_version__rubric", "changed_by").first()


def why_final(change: RubricChange) -> str:
    """Why a change can't be undone, as a sentence; "" if it can."""
    since = Annotation.objects.filter(_within(change)).filter(
        (Q(superseded_at=None) & (Q(rubric_change=None) | ~Q(rubric_change=change)))
        | Q(submitted_at__gt=change.at)
        | (Q(rubric_change=change) & Q(superseded_at__isnull=False))
    )
    if since.exists():
        return _("It can't be undone: scores were submitted under the new version since.")
    duties = Duty.with_hidden.filter(_within(change)).values_list("pk", flat=True)
    if {str(pk) for pk in duties} - change.former["duties"].keys():
        return _("It can't be undone: a duty was added since.")
    marked = ReferenceScore.objects.filter(reference__campaign=change.campaign_id).values_list("pk", flat=True)
    if set(marked) != set(change.former["marked"]):
        return _("It can't be undone: reference scores were changed since.")
    if Adjudication.objects.filter(campaign=change.campaign_id, rubric_version=change.to_version_id).exists():
        return _("It can't be undone: items were adjudicated under the new version since.")
    return ""


def undo_change(*, change: RubricChange, actor: User | None = None) -> None:
    """Go back to the former version, as long as nothing was rated, marked or adjudicated under the new one.

    Refused: codes ``not_paused``, ``changed``, ``final``.
    """
    campaign = change.campaign
    _require_paused(campaign)
    try:
        with transaction.atomic():
            paused = Campaign.objects.filter(
                pk=campaign.pk, state=Campaign.State.PAUSED, rubric_version=change.to_version_id
            )
            if not paused.update(rubric_version=change.from_version_id):
                raise _changed()
            if not RubricChange.objects.filter(pk=change.pk, undone_at=None).update(undone_at=timezone.now()):
                raise _changed()
            if sentence := why_final(change):
                raise Refused(sentence, code="final")
            Campaign.with_hidden.filter(qualification_of=campaign).update(rubric_version=change.from_version_id)
            _restore(change)
            audit.record(actor=actor, project=campaign.project, verb="undo rubric version", subject=campaign)
    except IntegrityError:  # somebody has taken another slot of an item that they had rated
        raise Refused(_("It can't be undone: items have been given to others since."), code="final") from None
    allocation.criteria_of.cache_clear()


def _restore(change: RubricChange) -> None:
    carried = Annotation.objects.filter(_within(change), rubric_change=change)
    slots = _own(change)
    pks = list(slots.values_list("pk", flat=True))
    keys = list(carried.values_list("pk", flat=True))
    for some in _batches(keys):
        EvidenceSpan.objects.filter(rating__annotation__in=some)._raw_delete(using="default")
        bulk.delete_by_key(Rating, "annotation", some)
    carried._raw_delete(using="default")
    Annotation.objects.filter(_within(change), superseded_at=change.at).update(superseded_at=None)
    reopened = set(change.former["reopened"])
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
    _restore_duties(change)


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
    reviews = MismatchReview.objects.filter(assignment__duty__in=Duty.with_hidden.filter(_within(change)))
    for criterion in change.to_version.criteria.all():
        if criterion.key in old:
            reviews.filter(criterion=criterion).update(criterion=old[criterion.key])
    _renew_leases(change, old.keys() - change.decisions.keys())
