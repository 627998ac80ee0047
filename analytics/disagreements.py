"""The order in which items are adjudicated or discussed: how far the raters of each are apart, by a chosen measure.

Counted by the database in one statement and kept until a rating changes; without numpy: web processes use this. A queue
is about one criterion, or, in a campaign that is not too large, about all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import log2
from typing import Any
from urllib.parse import urlencode

from django.core.cache import caches
from django.db.models import Count
from django.http import QueryDict
from django.utils.translation import gettext as _

from accounts.inputs import whole_number, without_nul
from accounts.models import User
from accounts.refusals import Refused
from analytics.answers.revisions import code_version
from analytics.item_choices import CHUNK, default_rule
from analytics.items import reference_score, signed_error
from analytics.ratings.raters import newest_runs, rater_names
from annotation import adjudication, campaigns
from annotation.desk.answers import worst
from annotation.models import Adjudication, Campaign, Criterion, Item, Rating
from judging import runs
from judging.models import JudgeRun, Verdict
from judging.runs import whole_run

ORDERS = tuple(Adjudication.Order.values)
STATES = ("open", "stale", "decided", "all")
SEED = 20260101
MOST_RATINGS = 150_000
"""Up to so many ratings a queue may be about all criteria together: counting more takes longer than a page may."""
_KEPT_SECONDS = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChoice:
    """Which items, and in which order. No criterion: all of them. `seed` orders items with the same value."""

    order: str = "range"
    criterion: Criterion | None = None
    language: str = ""
    judge: str = ""
    run: JudgeRun | None = None
    state: str = "open"
    seed: int = SEED

    @property
    def query(self) -> str:
        """The choice as a query string, without what is as usual."""
        given = {
            "order": "" if self.order == "range" else self.order,
            "criterion": self.criterion.key if self.criterion else "",
            "language": self.language,
            "judge": self.judge if self.order == "judge" else "",
            "state": "" if self.state == "open" else self.state,
            "seed": "" if self.seed == SEED else str(self.seed),
        }
        return urlencode({name: value for name, value in given.items() if value})


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """What a queue can be filtered by. `is_large`: it is about one criterion at a time."""

    criteria: Mapping[str, Criterion]
    languages: tuple[str, ...]
    judges: Mapping[str, JudgeRun]
    is_large: bool


@dataclass(slots=True)
class QueuedItem:
    """An item with a value above 0 on some criterion. `values`: by criterion; `value`: the largest that counts here;
    `n_decided`: on how many of these criteria a decision is stored.
    """

    pk: int
    external_id: str
    language: str
    n_ratings: int
    values: Mapping[int, float]
    value: float = 0.0
    state: str = "open"
    n_decided: int = 0
    worst: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Queue:
    """The items of a queue in order, and how many there are in each state, whatever state was chosen.

    `rated`: items with two ratings or more on a criterion; `own`: items left out because the reader rated them.
    """

    items: tuple[QueuedItem, ...]
    counts: Mapping[str, int]
    rated: int
    own: int


def queue_options(campaign: Campaign) -> QueueOptions:
    """What there is to choose from in a campaign."""
    runs_here = list(newest_runs(campaign))
    names = rater_names(campaign, runs_here)
    languages = set(Item.objects.of(campaign.dataset).order_by().values_list("language", flat=True).distinct())
    here = Rating.objects.filter(annotation__campaign=campaign, annotation__superseded_at=None)
    return QueueOptions(
        criteria={criterion.key: criterion for criterion in campaign.rubric_version.criteria.all()},
        languages=tuple(sorted(languages)),
        judges={names[run.pk]: run for run in runs_here},
        is_large=here[MOST_RATINGS : MOST_RATINGS + 1].exists(),
    )


def chosen_queue(options: QueueOptions, query: QueryDict | Mapping[str, str]) -> QueueChoice:
    """The choice in an address; `Refused` with a sentence for each parameter that names nothing."""
    names = ("order", "criterion", "language", "judge", "state", "seed")
    given = {name: without_nul(query.get(name) or "").strip() for name in names}
    wrong = dict(_wrong(options, given))
    if wrong:
        raise Refused(" ".join(wrong.values()), code="unknown_choice", fields=wrong)
    order = given["order"] or "range"
    judge = given["judge"] or next(iter(options.judges), "") if order == "judge" else ""
    criterion = options.criteria.get(given["criterion"])
    if criterion is None and options.is_large:
        criterion = next(iter(options.criteria.values()))
    seed = whole_number(given["seed"]) if given["seed"] else SEED
    return QueueChoice(
        order=order,
        criterion=criterion,
        language=given["language"],
        judge=judge,
        run=options.judges.get(judge),
        state=given["state"] or "open",
        seed=SEED if seed is None else seed,
    )


def _wrong(options: QueueOptions, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    known: dict[str, Iterable[str]] = {
        "order": ORDERS,
        "criterion": options.criteria,
        "language": options.languages,
        "judge": options.judges,
        "state": STATES,
    }
    for name, choices in known.items():
        if given[name] and given[name] not in choices:
            yield name, _("“%(text)s” is not a valid choice for “%(name)s”. Available: %(all)s.") % {
                "text": given[name], "name": name, "all": ", ".join(choices) or _("none")
            }  # fmt: skip
    if given["seed"] and whole_number(given["seed"]) is None:
        yield "seed", _("“seed” is a whole number, 0 or more.")
    if given["order"] == "judge" and not options.judges:
        yield "order", _("No judge has rated these items. Choose another order.")


# --- the measures ----------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Answers:
    """What the raters of an item gave on one criterion: how many each score, and how many N/A."""

    counts: dict[float, int] = field(default_factory=dict)
    not_applicable: int = 0
    judge: float | None = None

    @property
    def n(self) -> int:
        return sum(self.counts.values())


def distance(answers: Answers, criterion: Criterion, order: str) -> float:
    """How far the raters are apart, from 0; comparable between criteria.

    ``range``: (largest score - smallest) / width of the scale; on nominal scales 1 where labels differ. ``entropy``:
    -sum_k p_k log2 p_k of the scores, in bits. ``na``: the smaller share of those who gave N/A and those who gave a
    score. ``critical``: the smaller share of those who gave the critical mark and those who gave another score.
    ``judge``: |judge's score - the panel's| / width, nominal 0 or 1; the panel's score is its mean, of
    labels its mode, and a tied mode has no distance (METHODS 1, 2).
    """
    n, width = answers.n, criterion.maximum - criterion.minimum
    is_nominal = criterion.level == Criterion.Level.NOMINAL
    if order == "range":
        spread = max(answers.counts) - min(answers.counts) if n > 1 else 0.0
        return float(spread > 0) if is_nominal else spread / width
    if order == "entropy":
        return -sum(count / n * log2(count / n) for count in answers.counts.values()) + 0.0
    if order == "na":
        return min(n, answers.not_applicable) / max(n + answers.not_applicable, 1)
    if order == "critical":
        mark = worst(criterion) if criterion.is_critical else None
        marks = answers.counts.get(mark, 0) if mark is not None else 0
        return min(marks, n - marks) / max(n, 1)
    error = signed_error(answers.judge, reference_score(answers.counts, default_rule(criterion)), criterion.level)
    return abs(error or 0.0) / (1.0 if is_nominal else width)


def _measured(campaign: Campaign, choice: QueueChoice) -> tuple[dict[int, tuple[int, dict[int, float]]], int]:
    """By item, its ratings and its values above 0 by criterion; and how many items two raters or more have rated."""
    criteria = {criterion.pk: criterion for criterion in campaign.rubric_version.criteria.all()}
    wanted = [choice.criterion.pk] if choice.criterion else list(criteria)
    answers: dict[tuple[int, int], Answers] = {}
    here = Rating.objects.filter(
        annotation__campaign=campaign, annotation__superseded_at=None, criterion__in=wanted
    ).exclude(status=Rating.Status.STOPPED)
    rows = here.order_by().values_list("annotation__item", "criterion", "score").annotate(count=Count("pk"))
    for item, criterion, score, count in rows.iterator(CHUNK):
        answer = answers.setdefault((item, criterion), Answers())
        if score is None:
            answer.not_applicable = count
        else:
            answer.counts[score] = count
    if choice.run is not None:
        for item, criterion, score in _first_scores(choice.run, wanted):
            if (item, criterion) in answers:
                answers[item, criterion].judge = score
    found: dict[int, tuple[int, dict[int, float]]] = {}
    rated = set()
    for (item, criterion), answer in answers.items():
        n = answer.n + answer.not_applicable
        if n > 1:
            rated.add(item)
        value = distance(answer, criteria[criterion], choice.order)
        if value > 1e-12:
            before, values = found.get(item, (0, {}))
            found[item] = (max(before, n), {**values, criterion: value})
    return found, len(rated)


def _first_scores(run: JudgeRun, criteria: Iterable[int]) -> Iterator[tuple[int, int, float]]:
    """Item, criterion and score of the judge's first repeat, where it is a score on the scale."""
    verdicts = Verdict.objects.filter(run__in=whole_run([run]), criterion__in=list(criteria))
    rows = verdicts.order_by("-repeat").values_list("item", "criterion", "status", "score")
    for item, criterion, status, score in rows.iterator(CHUNK):  # the first repeat comes last
        if status == Verdict.Status.OK and score is not None:
            yield item, criterion, score


def measured_items(campaign: Campaign, choice: QueueChoice) -> tuple[dict[int, tuple[int, dict[int, float]]], int]:
    """The same, kept until a rating, a verdict or the code changes."""
    about = [code_version(), campaigns.revision(campaign), choice.order, choice.criterion.pk if choice.criterion else 0]
    if choice.run is not None:
        about += [choice.run.pk, runs.run_revision([choice.run])]
    digest = hashlib.sha256(repr(about).encode()).hexdigest()
    name = f"disagreements:{campaign.pk}:{digest}"
    kept: Any = caches["content"].get(name)
    if kept is None:
        kept = _measured(campaign, choice)
        caches["content"].set(name, kept, _KEPT_SECONDS)
    found, rated = kept
    return found, rated


# --- the queue -------------------------------------------------------------------------------------------------------
def queue(campaign: Campaign, choice: QueueChoice, reader: User | None = None) -> Queue:
    """The items with a value above 0 in order, the largest first; ties in an order drawn with the seed.

    An item is `decided` when all its criteria with a value are, `stale` when one of these decisions saw other ratings
    than there are now, else `open`, and then its value is the largest of those to be decided. Items that `reader` has
    rated are left out and counted.
    """
    found, rated = measured_items(campaign, choice)
    own = adjudication.rated_by(campaign, reader) & found.keys() if reader else set()
    decided = adjudication.current(campaign)
    old = adjudication.stale(campaign, {place: row for place, row in decided.items() if place[0] in found})
    keys = {criterion.pk: criterion.key for criterion in campaign.rubric_version.criteria.all()}
    items = Item.objects.of(campaign.dataset).matching({"language": choice.language})
    listed = []
    for pk, external_id, language in items.values_list("pk", "external_id", "language").iterator(CHUNK):
        if pk in found and pk not in own:
            n, values = found[pk]
            one = QueuedItem(pk, external_id, language, n, values)
            _settle(one, decided.keys(), old, keys)
            listed.append(one)
    counts = {state: sum(one.state == state for one in listed) for state in STATES[:-1]}
    chosen = [one for one in listed if choice.state in ("all", one.state)]
    chosen.sort(key=lambda one: (-round(one.value, 12), drawn_place(choice.seed, one.external_id)))
    return Queue(tuple(chosen), {**counts, "all": len(listed)}, rated, len(own))


def count_open(campaign: Campaign, choice: QueueChoice) -> int:
    """How many items the queue of every language has to decide, for whoever has rated none, without reading items."""
    found, _rated = measured_items(campaign, choice)
    decided = adjudication.current(campaign).keys()
    return sum(any((pk, key) not in decided for key in values) for pk, (_n, values) in found.items())


def _settle(one: QueuedItem, decided: Iterable[tuple[int, int]], old: set[tuple[int, int]], keys: Any) -> None:
    waiting = {criterion for criterion in one.values if (one.pk, criterion) not in decided}
    again = {criterion for criterion in one.values if (one.pk, criterion) in old}
    one.n_decided = len(one.values) - len(waiting)
    one.state = "open" if waiting else "stale" if again else "decided"
    counted = waiting or again or set(one.values)
    one.value = max(one.values[criterion] for criterion in counted)
    one.worst = [keys[pk] for pk in keys if pk in counted and one.values[pk] >= one.value - 1e-12]


def drawn_place(seed: int, external_id: str) -> str:
    """What orders items with the same value: the same for the same seed and item, and otherwise without a meaning."""
    return hashlib.sha256(f"{seed}:{external_id}".encode()).hexdigest()


def following_item(campaign: Campaign, choice: QueueChoice, reader: User, after: int) -> int | None:
    """The first item of the queue that is not this one."""
    listed = queue(campaign, replace(choice, state="open"), reader).items
    return next((one.pk for one in listed if one.pk != after), None)
