"""The figures of alignments: versions of a judge on the tuning items, and what a look at the locked items has shown.

Tuning figures are computed again whenever they are shown. The result of a look is computed once, from the labels at
that time, and stored (docs/alignment.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import jobs
from accounts.models import Job
from accounts.refusals import Refused
from analytics.figures import Figure
from annotation.models import Criterion, Item, ItemSelection, Rating, SelectedItem
from judging.models import Alignment, AlignmentCandidate, AlignmentLook, AlignmentSearch, Call, JudgeRun, Verdict
from judging.versions import alignment, proposals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analytics.stats.core.estimates import Estimate

    Floats = NDArray[np.float64]

PairKey = tuple[int, int]
"""Primary keys of an item and a criterion."""
MOST_CONFUSIONS = 60
RULE_OF_LABELS = "mode; mean on interval scales; ties excluded"


# --- labels and scores ------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ItemPlace:
    """The language of an item, and its scenario (or its content, if it has no scenario)."""

    language: str
    cluster: str


@dataclass(frozen=True, slots=True)
class SideLabels:
    """The reference labels of one side of a split, by item and criterion, with the language and scenario of each
    item.
    """

    labels: Mapping[PairKey, float]
    places: Mapping[int, ItemPlace]
    criteria: Mapping[int, Criterion]
    without_label: int

    @property
    def languages(self) -> list[str]:
        """The languages of its items."""
        return sorted({place.language for place in self.places.values()})


def side_labels(current: Alignment, selection: ItemSelection) -> SideLabels:
    """The panel's current labels of the items of one side: the mode of its scores, or their mean on interval scales."""
    chosen = SelectedItem.objects.filter(selection=selection)
    columns = ("item", "item__language", "item__scenario", "item__digest")
    places = {
        pk: ItemPlace(language, scenario or digest) for pk, language, scenario, digest in chosen.values_list(*columns)
    }
    criteria = {criterion.pk: criterion for criterion in current.campaign.rubric_version.criteria.all()}
    given: dict[PairKey, list[float]] = defaultdict(list)
    ratings = Rating.objects.filter(
        annotation__campaign=current.campaign_id,
        annotation__superseded_at=None,
        annotation__item__in=chosen.values("item"),
    )
    for item, criterion, score in ratings.values_list("annotation__item", "criterion", "score"):
        if score is not None:
            given[item, criterion].append(score)
    settled = {key: _settled(scores, criteria[key[1]]) for key, scores in given.items()}
    labels = {key: label for key, label in settled.items() if label is not None}
    return SideLabels(labels, places, criteria, len(settled) - len(labels))


def _settled(scores: Sequence[float], criterion: Criterion) -> float | None:
    if criterion.level == Criterion.Level.INTERVAL:
        return sum(scores) / len(scores)
    votes: dict[float, int] = defaultdict(int)
    for score in scores:
        votes[score] += 1
    top = max(votes.values())
    modes = [score for score, count in votes.items() if count == top]
    return modes[0] if len(modes) == 1 else None


@dataclass(frozen=True, slots=True)
class SideScores:
    """Agreement with the labels of one side by item and criterion, and the pairs asked about without a verdict."""

    agreement: Mapping[PairKey, float]
    unread: frozenset[PairKey]

    @property
    def keys(self) -> list[PairKey]:
        """The pairs with both a label and a verdict, in a stable order."""
        return sorted(self.agreement)

    def only(self, side: SideLabels, language: str) -> SideScores:
        """The scores and pairs of one language."""
        own = {item for item, place in side.places.items() if place.language == language}
        kept = {key: value for key, value in self.agreement.items() if key[0] in own}
        return SideScores(kept, frozenset(key for key in self.unread if key[0] in own))


NO_SCORES = SideScores({}, frozenset())


def side_scores(current: Alignment, side: SideLabels, judge_runs: Iterable[JudgeRun | None]) -> dict[int, SideScores]:
    """By judge, the agreement of its run's verdicts with the labels; needs two queries.

    For exact agreement, a fractional score or a fractional mean of the panel is rounded to the nearest point.
    """
    judges = {run.pk: run.judge_id for run in judge_runs if run is not None}
    given: dict[int, dict[PairKey, float]] = {run: {} for run in judges}
    read = Verdict.objects.filter(run__in=judges, repeat=1, status=Verdict.Status.OK)
    for run, item, criterion, score in read.values_list("run", "item", "criterion", "score"):
        if score is not None and (item, criterion) in side.labels:
            given[run][item, criterion] = score
    asked: dict[int, set[int]] = {run: set() for run in judges}
    for run, item in Call.objects.filter(run__in=judges).order_by().values_list("run", "item").distinct():
        asked[run].add(item)
    unread = {
        run: frozenset(key for key in side.labels if key[0] in asked[run] and key not in given[run]) for run in judges
    }
    return {judges[run]: SideScores(_agreement(current, side, given[run]), unread[run]) for run in judges}


def _agreement(current: Alignment, side: SideLabels, scores: Mapping[PairKey, float]) -> dict[PairKey, float]:
    import numpy as np

    from analytics.stats.judge.alignment import agreement_of_pairs

    keys = sorted(scores)
    is_exact = current.measure == Alignment.Measure.ACCURACY
    given, labels = (
        [_nearest(known[key], side.criteria[key[1]]) if is_exact else known[key] for key in keys]
        for known in (scores, side.labels)
    )
    values = agreement_of_pairs(
        np.array(given, dtype=np.float64),
        np.array(labels, dtype=np.float64),
        np.array([_width(side.criteria[criterion]) for _item, criterion in keys], dtype=np.float64),
        measure=current.measure,
    )
    return dict(zip(keys, map(float, values), strict=True))


def _nearest(score: float, criterion: Criterion) -> float:
    """The nearest point of the scale; a score halfway between two points is rounded up."""
    return min(criterion.values, key=lambda point: (abs(point - score), -point), default=score)


def _width(criterion: Criterion) -> float:
    is_nominal = criterion.level == Criterion.Level.NOMINAL
    return float("nan") if is_nominal else criterion.maximum - criterion.minimum


# --- figures ----------------------------------------------------------------------------------------------------------
def _codes(side: SideLabels, keys: Sequence[PairKey]) -> Any:
    import numpy as np

    names = sorted({side.places[item].cluster for item, _criterion in keys})
    code = {name: place for place, name in enumerate(names)}
    return np.array([code[side.places[item].cluster] for item, _criterion in keys], dtype=np.intp)


def _values(scores: SideScores, keys: Sequence[PairKey]) -> Floats:
    import numpy as np

    return np.array([scores.agreement[key] for key in keys], dtype=np.float64)


def _items(keys: Iterable[PairKey]) -> int:
    return len({item for item, _criterion in keys})


def _mean(side: SideLabels, scores: SideScores, confidence: float) -> Estimate:
    from analytics.stats.judge.alignment import mean_agreement

    keys = scores.keys
    found = mean_agreement(_values(scores, keys), _codes(side, keys), items=_items(keys), confidence=confidence)
    return found.with_(n_missing=len(scores.unread))


def _gain(side: SideLabels, scores: SideScores, base: SideScores, confidence: float) -> Estimate:
    from analytics.stats.judge.alignment import paired_gain

    keys = sorted(scores.agreement.keys() & base.agreement.keys())
    values = _values(scores, keys), _values(base, keys)
    return paired_gain(*values, _codes(side, keys), items=_items(keys), confidence=confidence)


def _figure(estimate: Estimate | Mapping[str, Any], language: str | None = None) -> Figure:
    row = estimate if isinstance(estimate, Mapping) else estimate.as_dict()
    return Figure.of(
        {"criterion": "", "language": language, **{name: row[name] for name in row if row[name] is not None}}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedVersion:
    """One version of the judge on the tuning items: its agreement, its paired gain over the original judge."""

    candidate: AlignmentCandidate
    run: JudgeRun | None
    planned: int
    done: int
    score: Figure | None
    gain: Figure | None
    languages: Mapping[str, Figure]

    @property
    def is_answered(self) -> bool:
        return self.run is not None and self.planned == self.done and self.run.state != JudgeRun.State.CANCELLED


def tuned_versions(current: Alignment) -> list[TunedVersion]:
    """Every version of an alignment with its figures on the tuning items; intervals at the alignment's confidence.

    The intervals are not corrected. Versions are written and chosen by these items, so the figures of the best version
    are too high.
    """
    side = side_labels(current, current.tuning)
    runs = alignment.tuning_runs(current)
    scores = side_scores(current, side, runs.values())
    base = scores.get(current.base_id, NO_SCORES)
    found = []
    for candidate in current.candidates.select_related("judge__parent", "created_by"):
        own, run = scores.get(candidate.judge_id, NO_SCORES), runs.get(candidate.judge_id)
        is_base = candidate.judge_id == current.base_id
        found.append(
            TunedVersion(
                candidate=candidate,
                run=run,
                planned=getattr(run, "planned", 0),
                done=getattr(run, "done", 0),
                score=_figure(_mean(side, own, current.confidence)) if own.agreement else None,
                gain=_figure(_gain(side, own, base, current.confidence)) if own.agreement and not is_base else None,
                languages={
                    language: _figure(_mean(side, own.only(side, language), current.confidence), language)
                    for language in (side.languages if own.agreement else ())
                },
            )
        )
    return found


# --- searches ---------------------------------------------------------------------------------------------------------
PAUSE = timedelta(seconds=10)
"""How long a search waits before it checks again whether all calls of its newest version are answered."""


def comparable_gains(versions: Iterable[TunedVersion]) -> dict[int, float]:
    """By judge, the gains by which a search may choose a version.

    A version counts if all its calls are answered, on at least half of the scenarios for which the original judge has
    scores.
    """
    rows = list(versions)
    of_base = [row.score for row in rows if row.score and row.candidate.origin == AlignmentCandidate.Origin.BASE]
    scenarios = sum(score.n_clusters or 0 for score in of_base)
    return {
        row.candidate.judge_id: row.gain.value
        for row in rows
        if row.gain and row.gain.value is not None and row.is_answered and 2 * (row.gain.n_clusters or 0) >= scenarios
    }


def carry_out_search_step(*, search_pk: int) -> JudgeRun | None:
    """Do one step of a search, unless another worker does it.

    Returns the run of a new version, which the task enqueues.
    """
    rows = AlignmentSearch.objects.select_related("alignment__campaign__rubric_version", "alignment__project")
    current = rows.filter(pk=search_pk).first()
    if current is None or (job := jobs.take_job(current, Job.Kind.SEARCH)) is None:
        return None
    run, made = proposals.last_run(current), current.candidates.count()
    try:
        if run is not None and not alignment.is_answered(run):
            if run.state != JudgeRun.State.RUNNING:
                raise Refused(run.reason or _("The run of the newest version was cancelled."), code="paused")
            jobs.release(job, due_at=timezone.now() + PAUSE, done=max(0, made - 1), total=current.steps)
            return None
        run = proposals.next_version(current, comparable_gains(tuned_versions(current.alignment)))
    except Refused as refused:
        with transaction.atomic():
            proposals.end_search(current, refused.sentence)
            jobs.fail(job, refused.sentence)
        return None
    if run is None:
        jobs.finish_job(job, done=made, total=current.steps)
    else:
        jobs.release(job, due_at=timezone.now() + PAUSE, done=made, total=current.steps)
    return run


# --- looks ------------------------------------------------------------------------------------------------------------
def settle_open_looks() -> int:
    """Store the result of every look with all runs answered; returns how many results were stored."""
    return sum(settle_look(look) for look in alignment.open_looks())


def settle_look(look: AlignmentLook) -> bool:
    """Compute and store the result of a look, once. Returns False if calls are open or the result is already stored."""
    if look.result is not None or not _are_answered(look):
        return False
    return alignment.store_result(look=look, result=look_result(look))


def _are_answered(look: AlignmentLook) -> bool:
    runs = alignment.look_runs(look)
    return len(runs) == 2 and all(map(alignment.is_answered, runs))


def look_result(look: AlignmentLook) -> dict[str, Any]:
    """Estimates as plain values: agreement of version and base on the locked items, paired gain, and overfit.

    The level is corrected for the looks allowed, in languages for their number, too.
    """
    from analytics.stats.judge.alignment import corrected_confidence

    current, judge = look.alignment, look.candidate.judge
    tuning, test = side_labels(current, current.tuning), side_labels(current, current.test)
    on_tuning = side_scores(current, tuning, [alignment.run_of(current, judge, current.tuning)])
    on_test = side_scores(current, test, alignment.look_runs(look))
    tuned = on_tuning.get(judge.pk, NO_SCORES)
    tested, base = on_test.get(judge.pk, NO_SCORES), on_test.get(current.base_id, NO_SCORES)
    languages = test.languages
    whole = corrected_confidence(current.confidence, looks=current.looks_allowed)
    part = corrected_confidence(current.confidence, looks=current.looks_allowed, parts=max(1, len(languages)))

    def about(mine: SideScores, locked: SideScores, before: SideScores, confidence: float) -> dict[str, Any]:
        estimates = {
            "tuning": _mean(tuning, mine, confidence),
            "test": _mean(test, locked, confidence),
            "base": _mean(test, before, confidence),
            "gain": _gain(test, locked, before, confidence),
            "overfit": _overfit((tuning, mine), (test, locked), confidence),
        }
        return {name: estimate.as_dict() for name, estimate in estimates.items()}

    return {
        **about(tuned, tested, base, whole),
        "languages": {
            name: about(tuned.only(tuning, name), tested.only(test, name), base.only(test, name), part)
            for name in languages
        },
        "confidence": current.confidence,
        "looks_allowed": current.looks_allowed,
        "labels": RULE_OF_LABELS,
        "is_later": _is_later(look),
    }


def _overfit(
    first: tuple[SideLabels, SideScores], second: tuple[SideLabels, SideScores], confidence: float
) -> Estimate:
    from analytics.stats.judge.alignment import overfit

    tuning, test = (
        (_values(scores, scores.keys), _codes(side, scores.keys), _items(scores.keys))
        for side, scores in (first, second)
    )
    return overfit(*tuning[:2], *test[:2], items=tuning[2] + test[2], confidence=confidence)


def _is_later(look: AlignmentLook) -> bool:
    """Whether the version was made after the first look. If so, only simulation shows that the correction is valid."""
    first = look.alignment.looks.order_by("number").first()
    return first is not None and look.candidate.created_at > first.taken_at


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownLook:
    """A look as a page shows it; its figures are set if it has a result."""

    look: AlignmentLook
    figures: Mapping[str, Figure]
    languages: Mapping[str, Mapping[str, Figure]]
    is_later: bool

    @property
    def level(self) -> float:
        """The corrected level of the overall intervals, in percent."""
        current = self.look.alignment
        return round(100 * (1 - (1 - current.confidence) / current.looks_allowed), 2)


PARTS = ("tuning", "test", "base", "gain", "overfit")


def shown_looks(current: Alignment) -> list[ShownLook]:
    """The looks of an alignment in their order."""
    looks = current.looks.select_related("candidate__judge", "taken_by", "alignment").order_by("number")
    return [
        ShownLook(
            look=look,
            figures={part: _figure(look.result[part]) for part in PARTS} if look.result else {},
            languages={
                language: {part: _figure(rows[part], language) for part in PARTS}
                for language, rows in (look.result or {}).get("languages", {}).items()
            },
            is_later=bool(look.result and look.result["is_later"]),
        )
        for look in looks
    ]


# --- confusions -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Confusion:
    """A tuning item and criterion on which a version differs from the reference label, with the rationales of both."""

    item: Item
    criterion: Criterion
    label: float
    verdict: Verdict
    ratings: Sequence[Rating]

    @property
    def difference(self) -> float:
        return (self.verdict.score or 0.0) - self.label


def confusions(
    current: Alignment, run: JudgeRun | None, *, language: str = "", criterion: str = "", most: int = MOST_CONFUSIONS
) -> tuple[list[Confusion], int]:
    """The largest differences from the labels on the tuning items, and how many there are; ties by item.

    Differences are shares of the scale's width; on a nominal scale each counts as the whole width.
    """
    side = side_labels(current, current.tuning)
    verdicts = {
        (verdict.item_id, verdict.criterion_id): verdict
        for verdict in _read(run).filter(item__in=side.places).select_related("item__dataset")
    }
    differing = []
    for key in side.labels.keys() & verdicts.keys():
        own, place = side.criteria[key[1]], side.places[key[0]]
        distance = abs((verdicts[key].score or 0.0) - side.labels[key])
        if distance and language in ("", place.language) and criterion in ("", own.key):
            width = _width(own)
            verdict = verdicts[key]
            differing.append((-(distance / width if width == width else 1.0), verdict.item.ordinal, own.position, key))
    shown = [key for *_order, key in sorted(differing)[:most]]
    words = _rationales(current, shown)
    listed = [
        Confusion(verdicts[key].item, side.criteria[key[1]], side.labels[key], verdicts[key], words.get(key, ()))
        for key in shown
    ]
    return listed, len(differing)


def proposal_cases(current: Alignment, run: JudgeRun | None) -> list[proposals.Case]:
    """The cases that a model sees: the largest differences, each language in turn, from the tuning items only."""
    by_language = [
        confusions(current, run, language=row.language, most=proposals.MOST_CASES)[0]
        for row in alignment.split_by_language(current)
    ]
    in_turn = [case for places in zip_longest(*by_language) for case in places if case is not None]
    return [
        proposals.Case(
            item=case.item,
            criterion=case.criterion.key,
            score=case.verdict.score or 0.0,
            rationale=case.verdict.rationale,
            label=case.label,
            panel_rationales=[rating.rationale for rating in case.ratings if rating.rationale],
        )
        for case in in_turn[: proposals.MOST_CASES]
    ]


def _read(run: JudgeRun | None) -> QuerySet[Verdict]:
    read = Verdict.objects.filter(repeat=1, status=Verdict.Status.OK, score__isnull=False)
    return read.filter(run=run) if run else read.none()


def _rationales(current: Alignment, keys: Sequence[PairKey]) -> dict[PairKey, list[Rating]]:
    found: dict[PairKey, list[Rating]] = defaultdict(list)
    rows = Rating.objects.filter(
        annotation__campaign=current.campaign_id,
        annotation__superseded_at=None,
        annotation__item__in={item for item, _criterion in keys},
        score__isnull=False,
    )
    for rating in rows.select_related("annotation__annotator").order_by("annotation__annotator__pseudonym"):
        found[rating.annotation.item_id, rating.criterion_id].append(rating)
    return found
