"""How a campaign's panels work: progress, pace, forecast, suspicious speed, and sheets filled with one score.

Counted from annotations as they stand, without numpy: web processes use this. It flags, a person decides. Severity and
agreement with the others are statistics of questions (`annotators.*`).
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from math import sqrt
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, F, Max, Min, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from analytics.figures import Figure, clear_together
from analytics.ratings.exclusions import available_exclusions, fewest_seconds
from annotation import pay
from annotation.desk import pairs
from annotation.models import Annotation, Annotator, Assignment, Campaign, ControlPause, Duty, PanelSeat, Rating, Skip
from annotation.pay import Work
from judging.judges import canonical
from judging.models import Judge, JudgeRun, Verdict

DAYS = 14
"""A forecast is from the last so many days with the duty open, days without a submission included."""
FEWEST_DAYS = 5
FEWEST_ITEMS = 10
"""Items of an annotator from which speed and sheets are flagged."""
FAST_SHARE = 0.1
SAME_MARGIN = 0.2
FEWEST_CRITERIA = 3
CHUNK = 20_000
T_975 = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160)
"""The .975 quantile of Student's t with 1 to 13 degrees of freedom."""


_SEVERITY = urlencode([("rows", "annotator"), ("columns", "criterion"), ("statistic", "annotators.severity")])
_FEWEST_SHARED = 20
"""Shared items from which a severity whose interval leaves out 0 is flagged."""


@dataclass(frozen=True, slots=True)
class ItemPace:
    """Active seconds per item: median and quartiles of `n` items whose time is known; None for fewer than four."""

    n: int
    median: float | None = None
    low: float | None = None
    high: float | None = None


def pace_of(seconds: Sequence[float]) -> ItemPace:
    """The pace of these times."""
    if len(seconds) < 4:
        return ItemPace(len(seconds), statistics.median(seconds) if seconds else None)
    low, median, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return ItemPace(len(seconds), median, low, high)


@dataclass(frozen=True, slots=True)
class CompletionForecast:
    """When a duty will be complete. `latest` None: no upper limit; `reason`: why there is no forecast."""

    days: int = 0
    per_day: float = 0.0
    expected: date | None = None
    earliest: date | None = None
    latest: date | None = None
    reason: str = ""


def completion_forecast(by_day: Mapping[date, int], left: int, today: date) -> CompletionForecast:
    """The day when `left` assignments will be submitted, from the mean number m of the last `DAYS` whole days.

    Days count from the first submission on, empty ones included; today does not. The interval is left / (m +- t s /
    sqrt(n)), s the standard deviation over n days: approximate, as if days were independent and alike. Fewer than
    `FEWEST_DAYS` days, or none with a submission: too few to say.
    """
    if not left:
        return CompletionForecast(reason=_("complete"))
    first = min(by_day, default=today)
    days = [today - timedelta(days=back) for back in range(1, DAYS + 1)]
    counts = [by_day.get(day, 0) for day in days if day >= first]
    if len(counts) < FEWEST_DAYS or not any(counts):
        return CompletionForecast(days=len(counts), reason=_("too few days to say"))
    mean, n = statistics.fmean(counts), len(counts)
    half = T_975[n - 2] * statistics.stdev(counts) / sqrt(n)
    return CompletionForecast(
        days=n,
        per_day=mean,
        expected=_after(today, left / mean),
        earliest=_after(today, left / (mean + half)),
        latest=_after(today, left / (mean - half)) if mean > half else None,
    )


def _after(today: date, days: float) -> date | None:
    """The day so many working days later; None beyond ten years."""
    return today + timedelta(days=int(-(-days // 1))) if days < 3650 else None


@dataclass(slots=True)
class AnnotatorWork:
    """One annotator in one duty. `fast`: items in less than a third of the duty's median time, among items with the
    same criteria, at most `fewest_seconds`; `same`: of the `sheets` with three scores or more, those on which all
    scores are the same.
    """

    work: Work
    pace: ItemPace
    fast: int
    fewest_seconds: float | None
    sheets: int
    same: int
    others_same: float | None
    last_on: date | None
    languages: tuple[tuple[str, int], ...]
    flags: list[str] = field(default_factory=list)
    name: str = ""
    open_items: int = 0


@dataclass(frozen=True, slots=True)
class DutyWork:
    """One duty: slots and submissions, pace of everybody together, forecast, and its annotators by pseudonym.

    `waiting`: those who may rate open items and have submitted nothing, each with how many.
    """

    duty: Duty
    slots: int
    submitted: int
    pace: ItemPace
    forecast: CompletionForecast
    annotators: tuple[AnnotatorWork, ...]
    cost: Any
    waiting: list[tuple[str, int]] = field(default_factory=list)

    @property
    def open(self) -> int:
        """How many assignments are not submitted."""
        return self.slots - self.submitted

    @property
    def is_anybody_able(self) -> bool:
        """Whether it is known of somebody that they may rate what is open."""
        return bool(self.waiting) or any(one.open_items for one in self.annotators)

    @property
    def rate(self) -> str:
        """What an hour or an item is paid, as a field of a form has it."""
        return pay.rate_text(getattr(self.duty, "pay_rate", None))


@dataclass(frozen=True, slots=True)
class LanguageWork:
    """The assignments of one language of the items."""

    language: str
    slots: int
    submitted: int
    pace: ItemPace


@dataclass(frozen=True, slots=True)
class Workload:
    """A campaign's duties and languages."""

    duties: tuple[DutyWork, ...]
    languages: tuple[LanguageWork, ...]


def workload(campaign: Campaign, today: date | None = None) -> Workload:
    """Everything that the page of the panel's work shows, in a fixed number of statements."""
    today = today or timezone.localdate()
    slots: Any = Assignment.objects.filter(duty__campaign=campaign, duty__stands_for=None)
    by_language = slots.order_by().values_list("duty", "item__language", "state").annotate(n=Count("pk"))
    counted = Counter[tuple[int, str, bool]]()
    for duty, language, state, n in by_language:
        counted[duty, language, state == Assignment.State.SUBMITTED] += n
    submitted = _submissions(campaign)
    sheets = _sheets(campaign)
    fewest = fewest_seconds(campaign)
    works: dict[int, list[Work]] = defaultdict(list)
    for one in pay.work_in(campaign):
        works[one.duty.pk].append(one)
    found = []
    for duty in Duty.objects.filter(campaign=campaign).select_related("panel", "pay_rate").order_by("pk"):
        own = submitted.get(duty.pk, [])
        total = sum(n for (key, _language, _done), n in counted.items() if key == duty.pk)
        done = sum(n for (key, _language, is_done), n in counted.items() if key == duty.pk and is_done)
        limits = {criteria_set: seconds for (name, criteria_set), seconds in fewest.items() if name == duty.name}
        people = _annotators(works[duty.pk], own, sheets.get(duty.pk, {}), limits)
        costs = [one.work.earned for one in people if one.work.earned is not None]
        days = Counter(each.day for each in own)
        pace = pace_of([each.seconds for each in own if each.seconds is not None])
        found.append(
            DutyWork(
                duty,
                total,
                done,
                pace,
                completion_forecast(days, total - done, today),
                people,
                sum(costs) if costs else None,
            )
        )
    return Workload(tuple(found), _languages(counted, submitted))


def _languages(
    counted: Mapping[tuple[int, str, bool], int], submitted: Mapping[int, Sequence[Submission]]
) -> tuple[LanguageWork, ...]:
    every = [each for own in submitted.values() for each in own]
    return tuple(
        LanguageWork(
            language,
            sum(n for (_duty, tag, _done), n in counted.items() if tag == language),
            sum(n for (_duty, tag, is_done), n in counted.items() if tag == language and is_done),
            pace_of([each.seconds for each in every if each.language == language and each.seconds is not None]),
        )
        for language in sorted({tag for _duty, tag, _done in counted})
    )


@dataclass(frozen=True, slots=True)
class Submission:
    """One submitted item: by whom, on which day (UTC), in how many active seconds, on which set of criteria."""

    annotator: int
    language: str
    seconds: float | None
    day: date
    criteria_set: int = 0


def _submissions(campaign: Campaign) -> dict[int, list[Submission]]:
    """By duty, every submission as it is now; a revised item counts on the day of its latest revision."""
    rows = Annotation.objects.filter(campaign=campaign, superseded_at=None, assignment__isnull=False)
    columns = ("assignment__duty", "annotator", "item__language", "seconds", "submitted_at", "assignment__criteria_set")
    found: dict[int, list[Submission]] = defaultdict(list)
    for duty, annotator, language, seconds, moment, asked in rows.values_list(*columns).iterator(CHUNK):
        found[duty].append(Submission(annotator, language, seconds, timezone.localdate(moment), asked))
    return found


def _sheets(campaign: Campaign) -> dict[int, dict[int, tuple[int, int]]]:
    """By duty and annotator: sheets with `FEWEST_CRITERIA` scores or more, and those with one score throughout."""
    scored = Rating.objects.filter(
        annotation__campaign=campaign, annotation__superseded_at=None, annotation__assignment__isnull=False
    ).exclude(score=None)
    rows = (
        scored.order_by()
        .values("annotation")
        .annotate(
            duty=F("annotation__assignment__duty"), annotator=F("annotation__annotator"),
            n=Count("pk"), low=Min("score"), high=Max("score"),
        )
        .filter(n__gte=FEWEST_CRITERIA)
        .values_list("duty", "annotator", "low", "high")
    )  # fmt: skip
    found: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
    for duty, annotator, low, high in rows.iterator(CHUNK):
        sheets, same = found[duty].get(annotator, (0, 0))
        found[duty][annotator] = (sheets + 1, same + (low == high))
    return found


def _annotators(
    works: Iterable[Work],
    submitted: Sequence[Submission],
    sheets: Mapping[int, tuple[int, int]],
    fewest: Mapping[int, float],
) -> tuple[AnnotatorWork, ...]:
    """Each annotator of a duty beside the others of it."""
    by_annotator: dict[int, list[Submission]] = defaultdict(list)
    for each in submitted:
        by_annotator[each.annotator].append(each)
    all_sheets, all_same = (sum(pair[place] for pair in sheets.values()) for place in (0, 1))
    found = []
    for work in works:
        own = by_annotator[work.annotator]
        times = [each.seconds for each in own if each.seconds is not None]
        limits = {fewest[each.criteria_set] for each in own if each.criteria_set in fewest}
        n_sheets, n_same = sheets.get(work.annotator, (0, 0))
        others = all_sheets - n_sheets
        one = AnnotatorWork(
            work=work,
            pace=pace_of(times),
            fast=sum(each.seconds is not None and each.seconds < fewest.get(each.criteria_set, 0.0) for each in own),
            fewest_seconds=max(limits, default=None),
            sheets=n_sheets,
            same=n_same,
            others_same=(all_same - n_same) / others if others else None,
            last_on=max((each.day for each in own), default=None),
            languages=tuple(sorted(Counter(each.language for each in own).items())),
        )
        one.flags = [*_speed_flag(one), *_same_flag(one)]
        found.append(one)
    return tuple(found)


def _speed_flag(one: AnnotatorWork) -> list[str]:
    if one.pace.n < FEWEST_ITEMS or one.fast < FAST_SHARE * one.pace.n or one.fewest_seconds is None:
        return []
    sentence = ngettext(
        "%(fast)d of %(n)d item took less than %(seconds).0f s, a third of the median time of the task.",
        "%(fast)d of %(n)d items took less than %(seconds).0f s, a third of the median time of the task.",
        one.pace.n,
    )
    return [sentence % {"fast": one.fast, "n": one.pace.n, "seconds": one.fewest_seconds}]


def _same_flag(one: AnnotatorWork) -> list[str]:
    """Where even the lower end of Wilson's interval of the share lies clearly above the others' share."""
    if one.sheets < FEWEST_ITEMS or one.others_same is None:
        return []
    low = wilson_low(one.same, one.sheets)
    if low < one.others_same + SAME_MARGIN:
        return []
    sentence = _(
        "All scores are the same on %(same)d of %(sheets)d items with three scores or more; others: %(share)s."
    )
    return [sentence % {"same": one.same, "sheets": one.sheets, "share": f"{one.others_same:.0%}"}]


def wilson_low(hits: float, n: float, z: float = 1.96) -> float:
    """The lower end of Wilson's interval of hits / n (Wilson 1927)."""
    p = hits / n
    return (p + z * z / (2 * n) - z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n)


# --- severity --------------------------------------------------------------------------------------------------------
def severity_question(campaign: Campaign) -> str:
    """Each annotator's severity; where there are controls, "the others" are without those who fall below their
    threshold, and who are paused."""
    without_paused = "controls" in available_exclusions(campaign)
    return f"{_SEVERITY}&exclude=controls" if without_paused else _SEVERITY


def severity_flags(estimates: list[Mapping[str, Any]]) -> dict[str, list[str]]:
    """By annotator, a sentence for each criterion on which they clearly give lower or higher scores than the others:
    clearly after Holm's correction for all annotators and criteria that are looked at."""
    figures = [(row, Figure.of(row)) for row in estimates if row["value"] is not None]
    looked_at = [
        (row, figure) for row, figure in figures if figure.n_items >= _FEWEST_SHARED and figure.low is not None
    ]
    found: dict[str, list[str]] = defaultdict(list)
    clear = clear_together([figure for _row, figure in looked_at])
    for (row, figure), is_clear in zip(looked_at, clear, strict=True):
        if not is_clear:
            continue
        sentence = _(
            "Gives lower scores than the others on %(criterion)s: %(value)s %(interval)s points, %(n)d items. Clear "
            "also after a correction for %(family)d comparisons (Holm, approximate)."
        )
        if row["value"] > 0:
            sentence = _(
                "Gives higher scores than the others on %(criterion)s: %(value)s %(interval)s points, %(n)d items. "
                "Clear also after a correction for %(family)d comparisons (Holm, approximate)."
            )
        about = {"criterion": row["criterion"], "value": figure.number, "interval": figure.interval}
        found[row["annotator"]].append(sentence % {**about, "n": figure.n_items, "family": len(looked_at)})
    return found


# --- what is open ----------------------------------------------------------------------------------------------------
MOST_OPEN = 20_000
"""Open assignments up to which it is counted who may rate them."""


def open_items(campaign: Campaign) -> dict[int, dict[int, int]]:
    """By duty and annotator, how many of the open items the person may rate, or is rating now.

    Those on the duty's panel who have not had the item and have not skipped it. Of one open place several may be able
    to take it: then it counts for each; so it does where somebody's lease has run out. Nobody whom controls paused.
    Nothing where more than `MOST_OPEN` are open.
    """
    waiting = Assignment.objects.filter(duty__campaign=campaign, duty__stands_for=None)
    waiting = waiting.exclude(state=Assignment.State.SUBMITTED)
    columns = ("duty", "duty__panel", "item", "state", "annotator", "leased_until")
    slots = list(waiting.order_by().values_list(*columns)[: MOST_OPEN + 1])
    if not slots or len(slots) > MOST_OPEN:
        return {}
    seats: dict[int, set[int]] = defaultdict(set)
    present = PanelSeat.objects.filter(panel__in={slot[1] for slot in slots}, annotator__removed_at=None)
    for panel, annotator in present.values_list("panel", "annotator"):
        seats[panel].add(annotator)
    known = {"duty__in": {slot[0] for slot in slots}, "item__in": {slot[2] for slot in slots}}
    had: dict[tuple[int, int], set[int]] = defaultdict(set)
    for rows in (Assignment.objects.exclude(annotator=None), Skip.objects.all()):
        for duty, item, annotator in rows.filter(**known).order_by().values_list("duty", "item", "annotator"):
            had[duty, item].add(annotator)
    may_rate: dict[tuple[int, int], set[int]] = defaultdict(set)
    stopped = ControlPause.objects.filter(duty__in=known["duty__in"], reinstated_at=None)
    paused = set(stopped.values_list("duty", "annotator"))
    now = timezone.now()
    for duty, panel, item, state, holder, until in slots:
        is_leased = state == Assignment.State.LEASED
        if is_leased and until is not None and until >= now:
            able = {holder}
        else:
            able = seats[panel] - had[duty, item] | (seats[panel] & {holder} if is_leased else set())
        for person in able:
            if (duty, person) not in paused:
                may_rate[duty, person].add(item)
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for (duty, person), items in may_rate.items():
        found[duty][person] = len(items)
    return {duty: dict(sorted(people.items())) for duty, people in sorted(found.items())}


def people_of(campaign: Campaign) -> list[Annotator]:
    """Who is on the panels of a campaign or has rated in it, with the person behind the pseudonym."""
    seated = PanelSeat.objects.filter(panel__in=Duty.objects.filter(campaign=campaign).values("panel"))
    rated = Annotation.objects.filter(campaign=campaign, superseded_at=None).order_by().values("annotator")
    who = Q(pk__in=seated.values("annotator")) | Q(pk__in=rated)
    return list(Annotator.objects.filter(who).select_related("user"))


@dataclass(slots=True)
class PositionPreference:
    """The choices of one annotator in one duty: `first` of `chosen` fell on the candidate that was shown first.

    Ties are counted apart. The order was drawn, so that without a preference for a position one half falls on it. It is
    drawn once for an item: `by_item` has, for each, how many choices fell on the first, and how many there are.
    """

    pseudonym: str
    ties: int = 0
    by_item: dict[int, tuple[int, int]] = field(default_factory=dict)

    def count(self, item: int, *, first: int, chosen: int) -> None:
        """Add choices on an item."""
        firsts, all_here = self.by_item.get(item, (0, 0))
        self.by_item[item] = firsts + first, all_here + chosen

    @property
    def first(self) -> int:
        return sum(first for first, _chosen in self.by_item.values())

    @property
    def chosen(self) -> int:
        return sum(chosen for _first, chosen in self.by_item.values())

    @property
    def items(self) -> int:
        return len(self.by_item)

    @property
    def share(self) -> float | None:
        return self.first / self.chosen if self.chosen else None

    @property
    def _independent(self) -> float:
        """How many independent choices say as much: p (1 - p) / v, v = sum over items of (first - p chosen)^2 / n^2.

        From half the items up to all choices; the items where the share does not vary. Source: effective number of a
        share, Kish 1965, Survey Sampling, 8.2.
        """
        n, p = self.chosen, self.first / self.chosen
        spread = sum((first - p * chosen) ** 2 for first, chosen in self.by_item.values()) / n**2
        if not 0 < p < 1 or not spread:
            return float(self.items)
        return min(float(n), max(self.items / 2, p * (1 - p) / spread))

    @property
    def low(self) -> float:
        """The lower end of Wilson's 95% interval of the share; choices on one item are not independent."""
        return self._wilson_low(self.share or 0.0) if self.chosen else 0.0

    @property
    def high(self) -> float:
        """The upper end."""
        return 1 - self._wilson_low(1 - (self.share or 0.0)) if self.chosen else 1.0

    def _wilson_low(self, share: float) -> float:
        return wilson_low(share * self._independent, self._independent)

    @property
    def is_flagged(self) -> bool:
        """Whether one half lies outside the interval, on enough items."""
        return self.items >= FEWEST_ITEMS and not self.low <= 0.5 <= self.high


def position_preferences(campaign: Campaign) -> Mapping[int, list[PositionPreference]]:
    """By duty, every annotator with pairwise choices, by pseudonym; if they are several, all together are the first."""
    asked = [criterion.pk for criterion in campaign.rubric_version.criteria.all() if pairs.is_preference(criterion)]
    found: dict[int, dict[str, PositionPreference]] = defaultdict(dict)
    if not asked or not Annotation.objects.filter(campaign=campaign, swapped__isnull=False).exists():
        return {}
    rows = Rating.objects.filter(
        annotation__campaign=campaign,
        annotation__superseded_at=None,
        annotation__swapped__isnull=False,
        criterion__in=asked,
        score__isnull=False,
    ).order_by("annotation__annotator__pseudonym")
    about = ("duty", "item")
    columns = (*(f"annotation__assignment__{name}" for name in about), "annotation__annotator__pseudonym")
    for duty, item, pseudonym, swapped, score in rows.values_list(*columns, "annotation__swapped", "score").iterator():
        one = found[duty].setdefault(pseudonym, PositionPreference(pseudonym))
        if score == pairs.TIE:
            one.ties += 1
        else:
            one.count(item, first=int(score == (pairs.SECOND if swapped else pairs.FIRST)), chosen=1)
    return {duty: _with_everybody([*people.values()]) for duty, people in found.items()}


def _with_everybody(people: list[PositionPreference]) -> list[PositionPreference]:
    if len(people) < 2:
        return people
    everybody = PositionPreference("", sum(one.ties for one in people))
    for one in people:
        for item, (first, chosen) in one.by_item.items():
            everybody.count(item, first=first, chosen=chosen)
    return [everybody, *people]


def judge_positions(campaign: Campaign, judge: Judge) -> PositionPreference | None:
    """The choices of a judge on the campaign's items, in both orders of the candidates; None without both.

    Its own, where it swaps in every second repeat, and those of the judge that differs from it only in the order
    (`PromptVariant.candidate_order`). Only items that were asked about in both orders, each order counted equally: by
    repeat, as often as in the other order.
    """
    asked = [criterion.pk for criterion in campaign.rubric_version.criteria.all() if pairs.is_preference(criterion)]
    orders = {other.pk: other.variant.get("candidate_order", "given") for other in _in_other_orders(judge)}
    if not asked or set(orders.values()) == {"given"}:
        return None
    rows = Verdict.objects.filter(
        run__in=JudgeRun.objects.ordinary().filter(judge__in=orders, dataset=campaign.dataset_id),
        run__rubric_version=campaign.rubric_version_id,
        criterion__in=asked,
        status="ok",
        score__isnull=False,
    )
    chosen: dict[tuple[int, int], dict[bool, list[float]]] = defaultdict(lambda: {False: [], True: []})
    columns = ("item", "criterion", "repeat", "run__judge", "score")
    for item, criterion, repeat, asking, score in rows.order_by("pk").values_list(*columns).iterator():
        order = orders[asking]
        swapped = order == "swapped" or (order == "both" and repeat % 2 == 0)
        chosen[item, criterion][swapped].append(score)
    found = PositionPreference(judge.name)
    for (item, _criterion), by_order in chosen.items():
        both = min(map(len, by_order.values()))
        for swapped, scores in by_order.items():
            first = pairs.SECOND if swapped else pairs.FIRST
            decided = [score for score in scores[:both] if score != pairs.TIE]
            found.ties += both - len(decided)
            if decided:
                found.count(item, first=decided.count(first), chosen=len(decided))
    return found if found.chosen or found.ties else None


def _in_other_orders(judge: Judge) -> list[Judge]:
    """The judge and those that differ from it only in the order of candidates."""
    others = Judge.objects.filter(project=judge.project_id, provider=judge.provider, model=judge.model)
    return [other for other in others if _but_for_order(other) == _but_for_order(judge)]


def _but_for_order(judge: Judge) -> str:
    variant = {name: level for name, level in (judge.variant or {}).items() if name != "candidate_order"}
    return str(canonical([variant, judge.parameters]))
