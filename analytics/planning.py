"""The next items of a duty by active sampling (METHODS 8).

Items that a judge may get wrong are drawn more often. What was drawn before is certain, and every new item is
drawn by itself with a probability that is stored; the ratings table has it as `inclusion_prob`. Estimates of means
that use it stay valid (docs/methods/planning.md).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Avg, Q, QuerySet
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import AuditEntry, User
from accounts.refusals import Refused
from analytics.ratings.raters import judge_names, newest_runs
from annotation import allocation, pay
from annotation.exports import GIVEN_FORMER
from annotation.models import Annotation, Campaign, Criterion, Duty, Item, PayRate, Rating, Selection
from judging.models import JudgeRun, Verdict
from judging.runs import whole_run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analytics.stats.planning.pilot import JudgedMean

FEWEST_LEFT = 2
FEWEST_FOR_WIDTH = 5
"""Scenarios with ratings below which no width of the mean's interval is shown."""
FEWEST_FOR_CORRECTION = 20
"""Labels below which PPI++ is refused (METHODS 3)."""
CLUSTERS_FOR_WIDTH = 30
"""Scenarios below which the width is approximate (METHODS 0)."""


@dataclass(frozen=True, slots=True)
class NextItems:
    """What a draw is from: the items that are left, each with the probability of being drawn."""

    items: tuple[Item, ...]
    probabilities: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawPreview:
    """What a draw with this seed gives out, what it costs, and what it does to the interval of the panel's mean.

    `seconds`: of one assignment, the mean of those so far; None if none has a time. `half_before`, `half_after`: half
    the width of the interval at 95% (t, by scenario; approximate below CLUSTERS_FOR_WIDTH of them); None with
    few scenarios, labels that do not differ, or labels of unequal probabilities. `judge_before`, `judge_after`: of the
    mean that the judge's scores are used for. ``digest`` stands for these items with
    their probabilities, overlap and pay: a draw that names it gives out exactly them.
    """

    duty: Duty
    criterion: str
    judge: str
    wanted: int
    seed: int
    items: int
    seconds: float | None
    half_before: float | None
    half_after: float | None
    judge_before: float | None
    judge_after: float | None
    is_approximate: bool
    digest: str

    @property
    def assignments(self) -> int:
        return self.items * self.duty.overlap

    @property
    def hours(self) -> float | None:
        return hours_of(self.assignments, self.seconds)

    @property
    def price(self) -> Decimal | None:
        return price_of(self.duty, self.assignments, self.seconds)

    @property
    def has_rate(self) -> bool:
        """Whether the pay of the task is set."""
        return getattr(self.duty, "pay_rate", None) is not None


def hours_of(assignments: int, seconds: float | None) -> float | None:
    """So many assignments of so many seconds each, in hours; None if no time is known."""
    return None if seconds is None else assignments * seconds / 3600


def price_of(duty: Duty, assignments: int, seconds: float | None) -> Decimal | None:
    """In USD; None without a rate, or without the time that an hourly rate is for."""
    rate = getattr(duty, "pay_rate", None)
    if rate is None or (rate.unit == PayRate.Unit.HOUR and seconds is None):
        return None
    return pay.amount(rate, items=assignments, seconds=assignments * (seconds or 0.0))


def seconds_of(duty: Duty) -> float | None:
    """The mean time of an assignment so far; None if none has a time."""
    timed = Annotation.objects.filter(assignment__duty=duty, superseded_at=None, seconds__isnull=False)
    mean: float | None = timed.aggregate(mean=Avg("seconds"))["mean"]
    return mean


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanPrecision:
    """From what the width of a mean's interval follows: the number of `labels`, their `clusters`, and the standard
    deviation of a label that counts in that those of a cluster are alike; None where it is not known.

    `judged`: the same of the mean by PPI++; None without a judge that scored enough labelled items, and without one
    that scored all items of the task.
    """

    labels: int = 0
    clusters: int = 0
    sd: float | None = None
    judged: JudgedMean | None = None

    def half_width(self, more: int) -> float | None:
        """Half the interval of the panel's mean at 95%, with so many more labels of as many clusters each."""
        from analytics.stats.planning.pilot import half_width_of_mean

        labels = self.labels + more
        return None if self.sd is None else half_width_of_mean(self.sd, labels, self.clusters * labels / self.labels)

    def half_width_with_judge(self, more: int) -> float | None:
        """The same of the mean that the judge's scores of all items are used for (PPI++)."""
        return None if self.judged is None else self.judged.half_width(self.judged.labels + more)


@dataclass(frozen=True, slots=True)
class OpenWave:
    """A drawn wave of a duty that nobody has rated yet, so that it can be taken back."""

    duty: Duty
    wave: int
    items: int


def drawable_duties(campaign: Campaign) -> list[Duty]:
    """The duties that have items left to draw."""
    return [duty for duty in campaign.duties.select_related("panel", "campaign") if items_left(duty).exists()]


def ordered_criteria(campaign: Campaign) -> list[str]:
    """The criteria whose scores have an order, so that a judge can be wrong by points."""
    criteria = campaign.rubric_version.criteria.exclude(level="nominal").order_by("position")
    return list(criteria.values_list("key", flat=True))


def items_left(duty: Duty) -> QuerySet[Item]:
    """The items in the duty's languages that it has not drawn."""
    drawn = Selection.objects.filter(duty=duty).values("item")
    wanted = allocation.items_for(
        dataset=duty.campaign.dataset, panel=duty.panel, languages=duty.languages, campaign=duty.campaign
    )
    return wanted.exclude(pk__in=drawn)


def next_items(*, duty: Duty, judge: str, criterion: str, wanted: int) -> NextItems:
    """The items that are left, each with the probability of being drawn; their sum is `wanted`.

    Refused where the criterion is nominal or not the duty's, where another duty rates the same, where a drawn item is
    not rated yet, and where the judge has not scored all items.
    """
    from analytics.stats.planning.pilot import expected_error, inclusion_probabilities

    about = _criterion(duty, criterion)
    _require_alone(duty, about)
    run = _run(duty.campaign, judge)
    left = list(items_left(duty).order_by("ordinal"))
    if not len(left) >= FEWEST_LEFT:
        raise _refused("duty", _("All items of this task are drawn already."))
    if not 1 <= wanted <= len(left):
        sentence = _("Draw from 1 to %(most)d items: so many are left.") % {"most": len(left)}
        raise _refused("wanted", sentence)
    labels = _labels(duty, about)
    drawn = list(Selection.objects.filter(duty=duty).values_list("item", flat=True))
    scores = _scores(run, about, [*drawn, *(item.pk for item in left)])
    if missing := sum(item.pk not in scores for item in left):
        sentence = _("The judge has no score of %(missing)d of the %(all)d items that are left. Run it on them first.")
        raise _refused("judge", sentence % {"missing": missing, "all": len(left)})
    if unrated := len(set(drawn) - labels.keys()):
        sentence = _("%(count)d drawn items are not rated yet. Draw more when this wave is done.")
        raise _refused("duty", sentence % {"count": unrated})
    y, f = _arrays(labels, scores, [*(pk for pk in drawn if pk in scores), *(item.pk for item in left)])
    error = expected_error(y, f)[len(f) - len(left) :]
    return NextItems(tuple(left), inclusion_probabilities(error, wanted))


def draw_next_items(
    *,
    duty: Duty,
    judge: str,
    criterion: str,
    wanted: int,
    seed: int | None = None,
    digest: str = "",
    actor: User | None = None,
) -> int:
    """Draw the next items into the duty as one more wave, and store their probabilities; returns how many there are.

    The same seed on the same ratings and verdicts draws the same items. Their number is `wanted` on average. With the
    ``digest`` of a preview it is refused (code ``cannot_draw``) if other items would be given out now.
    """
    _require_open(duty)
    with transaction.atomic():
        Duty.objects.select_for_update().get(pk=duty.pk)  # of two draws at a time the second sees the first
        chosen = secrets.randbelow(allocation.SEEDS) if seed is None else seed
        items, chances = _drawn(next_items(duty=duty, judge=judge, criterion=criterion, wanted=wanted), chosen)
        if digest and digest != _digest(duty, items, chances):
            raise _refused("digest", _("The ratings or the judge have changed since: other items are drawn now."))
        drawn = allocation.draw(duty=duty, items=items, probabilities=chances, seed=chosen, origin=GIVEN_FORMER)
        wave = Selection.objects.filter(duty=duty).order_by("-wave").values_list("wave", flat=True)[0]
        fields = [f"items={drawn}", f"criterion={criterion}", f"judge={judge}", f"seed={chosen}", f"wave={wave}"]
        audit.record(actor=actor, project=duty.campaign.project, verb="draw next items", subject=duty, fields=fields)
    return drawn


def _require_open(duty: Duty) -> None:
    if duty.campaign.state == Campaign.State.CLOSED:
        raise Refused(_("This campaign is closed. Open a new campaign."), code="campaign_closed")


def _digest(duty: Duty, items: Sequence[Item], chances: Sequence[float]) -> str:
    rate = PayRate.objects.filter(duty=duty).values_list("unit", "amount").first()
    about = repr(
        (duty.pk, duty.overlap, rate, [(item.pk, chance) for item, chance in zip(items, chances, strict=True)])
    )
    return hashlib.sha256(about.encode()).hexdigest()[:32]


def _drawn(found: NextItems, seed: int) -> tuple[list[Item], list[float]]:
    """The items that this seed draws, and their probabilities."""
    import numpy as np

    from analytics.stats.planning.pilot import independent_draws

    drawn = np.flatnonzero(independent_draws(found.probabilities, rng=np.random.default_rng(seed)))
    if not len(drawn):
        raise _refused("wanted", _("The draw came to no item. Ask for more items, or draw again."))
    return [found.items[place] for place in drawn], [float(found.probabilities[place]) for place in drawn]


def preview_draw(*, duty: Duty, judge: str, criterion: str, wanted: int, seed: int | None = None) -> DrawPreview:
    """What `draw_next_items` would do with the seed of the preview; nothing is stored. Refused as it would be."""
    _require_open(duty)
    chosen = secrets.randbelow(allocation.SEEDS) if seed is None else seed
    items, chances = _drawn(next_items(duty=duty, judge=judge, criterion=criterion, wanted=wanted), chosen)
    precision = precision_of(duty, _criterion(duty, criterion), judge)
    before = precision.half_width(0)
    return DrawPreview(
        duty=duty, criterion=criterion, judge=judge, wanted=wanted, seed=chosen, items=len(items),
        seconds=seconds_of(duty), half_before=before, half_after=precision.half_width(len(items)),
        judge_before=precision.half_width_with_judge(0), judge_after=precision.half_width_with_judge(len(items)),
        is_approximate=before is not None and precision.clusters < CLUSTERS_FOR_WIDTH,
        digest=_digest(duty, items, chances),
    )  # fmt: skip


def precision_of(duty: Duty, criterion: Criterion, judge: str = "") -> MeanPrecision:
    """What is known of the width of a duty's mean: nothing with few scenarios, labels that do not differ, or labels of
    unequal probabilities."""
    import numpy as np

    from analytics.stats.planning.pilot import sd_by_clusters

    labels = {pk: mean for pk, mean in _labels(duty, criterion).items() if mean is not None}
    here = Selection.objects.filter(duty=duty, item__in=labels)
    if not labels or here.order_by().values("probability").distinct().count() > 1:
        return MeanPrecision()
    items = list(Item.objects.filter(pk__in=labels))
    clusters = len({item.cluster for item in items})
    y = np.array([labels[item.pk] for item in items], dtype=np.float64)
    sd = sd_by_clusters(y, np.array([item.cluster for item in items]))
    if clusters < FEWEST_FOR_WIDTH or not sd:
        return MeanPrecision(labels=len(labels), clusters=clusters)
    return MeanPrecision(
        labels=len(labels), clusters=clusters, sd=sd, judged=_mean_with_judge(duty, criterion, judge, labels)
    )


def _mean_with_judge(duty: Duty, criterion: Criterion, judge: str, labels: Mapping[int, float]) -> JudgedMean | None:
    """PPI++ with a judge's scores of all items of a duty; None without a judge, without its score of every item that
    is left, and with fewer labels than a correction takes."""
    import numpy as np

    from analytics.stats.planning.pilot import JudgedMean

    runs = list(newest_runs(duty.campaign)) if judge else []
    names = judge_names(duty.campaign, runs) if runs else {}
    if (run := next((run for run in runs if names[run.pk] == judge), None)) is None:
        return None
    left = set(items_left(duty).values_list("pk", flat=True))
    drawn = set(Selection.objects.filter(duty=duty).values_list("item", flat=True))
    scores = _scores(run, criterion, [*left | drawn | labels.keys()])
    both, rest = sorted(labels.keys() & scores.keys()), sorted(scores.keys() - labels.keys())
    if len(both) < FEWEST_FOR_CORRECTION or not left <= scores.keys():
        return None
    whole = Item.objects.of(duty.campaign.dataset).only("scenario", "external_id")
    names_of = {item.pk: item.cluster for item in whole.iterator(chunk_size=2000) if item.pk in scores}
    code = {name: place for place, name in enumerate(set(names_of.values()))}
    y = np.array([labels[pk] for pk in both], dtype=np.float64)
    f, f_rest = (np.array([scores[pk] for pk in part], dtype=np.float64) for part in (both, rest))
    cluster, cluster_rest = (np.array([code[names_of[pk]] for pk in part], dtype=np.int64) for part in (both, rest))
    return JudgedMean.of(y, f, f_rest, cluster, cluster_rest)


def open_waves(campaign: Campaign) -> list[OpenWave]:
    """The newest wave of every duty, if it was drawn here and nobody has rated any of its items. None of a closed
    campaign, which nothing is taken out of.
    """
    found: list[OpenWave] = []
    if campaign.state == Campaign.State.CLOSED:
        return found
    for duty in campaign.duties.select_related("campaign__project"):
        newest = Selection.objects.filter(duty=duty).order_by("-wave").first()
        if newest is None or newest.origin != GIVEN_FORMER:
            continue
        items = Selection.objects.filter(duty=duty, wave=newest.wave).values("item")
        if not Annotation.objects.filter(assignment__duty=duty, item__in=items).exists():
            found.append(OpenWave(duty, newest.wave, len(items)))
    return found


def take_back_draw(*, duty: Duty, actor: User | None = None) -> int:
    """Take the newest drawn wave out of a duty, with its assignments; returns how many items it had.

    Refused (code ``has_ratings``) once somebody has rated one of them, and (``nothing_drawn``) without such a wave.
    """
    _require_open(duty)
    with transaction.atomic():
        Duty.objects.select_for_update().get(pk=duty.pk)  # of two at a time the second sees what the first left
        newest = Selection.objects.filter(duty=duty).order_by("-wave").first()
        if newest is None or newest.origin != GIVEN_FORMER:
            raise Refused(_("The newest items of this task were not drawn here."), code="nothing_drawn")
        drawn = Selection.objects.filter(duty=duty, wave=newest.wave).order_by("item").values_list("item", flat=True)
        keys = ",".join(map(str, drawn))
        items = allocation.take_back_wave(duty=duty, wave=newest.wave)
        own = AuditEntry.objects.filter(verb="draw next items", subject=audit.label(Duty), subject_pk=duty.pk)
        draws = [entry.fields for entry in own.order_by("-pk") if f"wave={newest.wave}" in entry.fields]
        about = [part for part in (draws[0] if draws else []) if not part.startswith(("items=", "wave="))]
        fields = [f"items={items}", f"wave={newest.wave}", *about, f"item_ids={keys}"]
        project = duty.campaign.project
        audit.record(actor=actor, project=project, verb="take back next items", subject=duty, fields=fields)
    return items


def _criterion(duty: Duty, key: str) -> Criterion:
    criteria = {each.key: each for each in allocation.criteria_of(duty.pk, duty.campaign.rubric_version_id)}
    if key not in criteria:
        sentence = _("“%(key)s” is not rated in this task. Available: %(all)s.")
        raise _refused("criterion", sentence % {"key": key, "all": ", ".join(criteria)})
    if criteria[key].level == "nominal":
        raise _refused(
            "criterion", _("The scores of “%s” have no order, so that a judge has no error in points.") % key
        )
    return criteria[key]


def _require_alone(duty: Duty, criterion: Criterion) -> None:
    """Refuse where another duty draws from the same items: an item would have two probabilities."""
    others = Duty.objects.filter(campaign=duty.campaign, criteria=criterion).exclude(pk=duty.pk)
    items = allocation.items_for(dataset=duty.campaign.dataset, panel=duty.panel, languages=duty.languages)
    for other in others:
        if Selection.objects.filter(duty=other, item__in=items.values("pk")).exists():
            sentence = _("The task “%s” has items on the same criterion, too: an item would have two probabilities.")
            raise _refused("duty", sentence % other.name)


def _run(campaign: Campaign, judge: str) -> JudgeRun:
    runs = list(newest_runs(campaign))
    names = judge_names(campaign, runs)
    found = next((run for run in runs if names[run.pk] == judge), None)
    if found is None:
        sentence = _("There is no judge “%(judge)s” on these items. Available: %(all)s.")
        raise _refused("judge", sentence % {"judge": judge, "all": ", ".join(names.values()) or _("none")})
    return found


def _labels(duty: Duty, criterion: Criterion) -> dict[int, float | None]:
    """The panel's mean of every item of the duty that is rated; None where nobody gave it a score."""
    here = Rating.objects.filter(annotation__assignment__duty=duty, annotation__superseded_at=None, criterion=criterion)
    rows = here.order_by().values_list("annotation__item").annotate(mean=Avg("score"))
    return dict(rows)


def _scores(run: JudgeRun, criterion: Criterion, items: Sequence[int]) -> dict[int, float]:
    """The judge's mean score of each item that it scored."""
    valid = Q(criterion=criterion, status=Verdict.Status.OK, score__isnull=False)
    rows = Verdict.objects.filter(valid, run__in=whole_run([run])).order_by().values_list("item")
    wanted = set(items)
    return {item: mean for item, mean in rows.annotate(mean=Avg("score")) if item in wanted}


def _arrays(
    labels: dict[int, float | None], scores: dict[int, float], items: Sequence[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Labels and scores of these items; a label that is missing is NaN."""
    import numpy as np

    y = np.array([np.nan if labels.get(pk) is None else labels[pk] for pk in items], dtype=np.float64)
    return y, np.array([scores[pk] for pk in items], dtype=np.float64)


def _refused(name: str, sentence: str) -> Refused:
    return Refused(sentence, code="cannot_draw", fields={name: sentence})
