"""Curate a dataset: read the pool and a judge's verdicts, choose items, certify the choice, and store it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.refusals import Refused
from annotation import selections
from annotation.models import Criterion, Curation, Dataset, Item, Rating
from annotation.sampling import certificates, storing
from annotation.sampling.draws import DrawnRow, MixedFamily, SampleRow, draw_rows, most_of_family, whole_families
from annotation.sampling.storing import PoolItem
from judging import runs
from judging.generation.curation import BalanceRow, balanced_rows
from judging.generation.judge_errors import Cell, ComparedFlags, FlagsInSet, error_bounds
from judging.models import Alignment, JudgeRun, JudgeRunQuerySet, Verdict
from judging.versions import examples

METHODS = ("balanced", "random")
FACETS = ("issue", "score", "generator", "length")
BANDS = 5  # of a scale without points, or with more than MOST_POINTS
MOST_POINTS = 11
MOST_ASKED = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationSettings:
    """What is asked for. Without a ``run`` nothing depends on verdicts.

    ``issues``, ``overall`` and ``unreadable`` are keys of criteria of the run's rubric; None means `default_issues` and
    so on, "" none. An item flagged as ``unreadable`` is left out; with ``words``, only if the judge's rationale has one
    of them. ``user``: the attribute with the user model. ``balance``: the facets that a balanced choice keeps even.
    ``by``: the columns that make the strata of a random draw. ``languages``: none means all.
    """

    n: int
    method: str = "balanced"
    run: JudgeRun | None = None
    languages: Sequence[str] = ()
    issues: Sequence[str] | None = None
    overall: str | None = None
    unreadable: str | None = None
    words: Sequence[str] = ()
    user: str = ""
    clean_first: bool = True
    balance: Sequence[str] = FACETS
    by: Sequence[str] = ()
    by_family: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class CurationDraw:
    """The chosen items (primary key and draw), what was asked for in full, and the certificate. Nothing is stored."""

    chosen: list[tuple[int, DrawnRow]]
    rule: dict[str, Any]
    certificate: dict[str, Any]


def source_runs(dataset: Dataset, among: JudgeRunQuerySet) -> QuerySet[JudgeRun]:
    """The runs ``among`` these that a choice out of the dataset can use, newest first: on this version, on one that it
    extends or on one that extends it; no audits and no runs of alignments."""
    related = {*Dataset.objects.parts_of(dataset).values_list("pk", flat=True)}
    related |= {*Dataset.objects.holding(dataset).values_list("pk", flat=True)}
    ordinary = among.ordinary().filter(project=dataset.project_id)
    fitting = ordinary.filter(dataset__in=related).select_related("judge", "rubric_version__rubric").order_by("-pk")
    return fitting.prefetch_related("rubric_version__criteria")


def flagging_criteria(run: JudgeRun) -> list[Criterion]:
    """The criteria by which an item can be flagged or scored: those of which one end is better."""
    return [criterion for criterion in run.rubric_version.criteria.all() if criterion.best is not None]


def default_unreadable(criteria: Sequence[Criterion]) -> str:
    """The criterion about text that can't be read: the first with two points whose key says so."""
    two = (criterion.key for criterion in criteria if len(criterion.points) == 2)
    return next((key for key in two if "interpret" in key or "readable" in key), "")


def default_overall(criteria: Sequence[Criterion]) -> str:
    """The criterion called overall, else the only one with more than two points."""
    more = [criterion.key for criterion in criteria if len(criterion.points) != 2]
    return next((key for key in more if "overall" in key), more[0] if len(more) == 1 else "")


def default_issues(criteria: Sequence[Criterion]) -> list[str]:
    """The criteria with two points; where there are none, all but the overall score."""
    two = [criterion.key for criterion in criteria if len(criterion.points) == 2]
    overall = default_overall(criteria)
    return two or [criterion.key for criterion in criteria if criterion.key != overall]


def curate(*, dataset: Dataset, name: str, settings: CurationSettings, actor: User | None = None) -> Curation:
    """Choose items of a dataset, and store them as a new dataset with the certificate of the choice."""
    draw = draw_curation(dataset=dataset, settings=settings)
    return storing.store_curation(
        dataset=dataset,
        name=name,
        chosen=draw.chosen,
        rule=draw.rule,
        seed=settings.seed,
        certificate=draw.certificate,
        simulated=settings.run is not None and settings.run.judge.simulated,
        actor=actor,
    )


def draw_curation(*, dataset: Dataset, settings: CurationSettings) -> CurationDraw:
    """Choose items as asked, and certify the choice; stores nothing. Refused: settings that do not fit the dataset."""
    pool = storing.read_pool(dataset)
    languages = _languages(pool, settings.languages)
    bands, bounds = certificates.length_bands([(item.language, item.length) for item in pool])
    band_of = {item.pk: band for item, band in zip(pool, bands, strict=True)}
    pool = [item for item in pool if item.language in set(languages)]
    rule, read = _checked(dataset, settings, languages)
    left_out = Counter[str]()
    if read is not None:
        left_out["unread"] = sum(item.pk not in read.issues for item in pool)
        pool = [item for item in pool if item.pk in read.issues]
        left_out["unreadable"] = sum(item.pk in read.unreadable for item in pool)
        pool = [item for item in pool if item.pk not in read.unreadable]
    if settings.by_family:
        pool = _whole(pool, languages, left_out, dataset)
    available = Counter(item.language for item in pool)
    storing.refuse_too_many(sum(min(settings.n, count) for count in available.values()))
    facets = {item.pk: _facets(item, band_of, read) for item in pool}
    chosen = _drawn(pool, facets, rule, read, settings)
    unused = {"issue": not rule["issues"], "score": not rule["overall"]}
    certificate = certificates.certify(
        [certificates.PoolRow(item.language, item.family, facets[item.pk]) for item in pool],
        [drawn.place for drawn in chosen],
        n=settings.n,
        languages=languages,
        facets=[facet for facet in FACETS if not unused.get(facet)],
        left_out={code: count for code, count in left_out.items() if count},
        by_family=settings.by_family,
    )
    certificate |= {"lengths": bounds, "judge": None, "errors": None}
    if read is not None and settings.run is not None:
        certificate["judge"] = _judge(settings.run)
        kept = [pool[drawn.place] for drawn in chosen]
        cells = {item.pk: (read.scores.get(item.pk, ""), item.generator) for item in pool}
        labelled = _labelled(dataset, settings.run, read, rule["issues"], cells)
        certificate["errors"] = error_bounds(labelled, _flags_in_set(kept, read, languages, rule["issues"], cells))
    return CurationDraw([(pool[drawn.place].pk, drawn) for drawn in chosen], rule, certificate)


def _drawn(
    pool: Sequence[PoolItem],
    facets: Mapping[int, Mapping[str, tuple[str, ...]]],
    rule: Mapping[str, Any],
    read: _ReadVerdicts | None,
    settings: CurationSettings,
) -> list[DrawnRow]:
    if settings.by_family and pool:
        most = most_of_family([_sample_row(item, ()) for item in pool])
        if most > settings.n:
            sentence = _("A family has up to %(most)d items in a language. Ask for %(most)d or more per language.")
            raise _wrong(sentence % {"most": most}, "n")
    if settings.method == "random":
        try:
            sample = [_sample_row(item, settings.by) for item in pool]
            return draw_rows(sample, n=settings.n, by_family=settings.by_family, seed=settings.seed)
        except MixedFamily as mixed:
            sentence = _("Items of the family “%s” are in several strata. Whole families need strata that they share.")
            raise _wrong(sentence % mixed, "by") from None
    best = None if read is None else read.best
    rows = [
        BalanceRow(
            key=item.external_id,
            language=item.language,
            family=item.family,
            facets=tuple(facets[item.pk][facet] for facet in rule["balance"]),
            pair=(str(item.attributes.get(settings.user, "")), item.generator),
            is_clean=read is not None and not read.issues[item.pk] and read.scores.get(item.pk) == best,
        )
        for item in pool
    ]
    clean_first = settings.clean_first and read is not None
    places = balanced_rows(
        rows, n=settings.n, clean_first=clean_first, by_family=settings.by_family, seed=settings.seed
    )
    return [DrawnRow(place, None, "") for place in places]


def _sample_row(item: PoolItem, by: Sequence[str]) -> SampleRow:
    plain = {"language": item.language, "generator": item.generator, "scenario": item.family}
    values = [selections.column_value(column, plain, item.attributes) or selections.NOTHING for column in by]
    stratum = " · ".join(values)[: selections.STRATUM_LENGTH]
    return SampleRow(item.external_id, item.language, item.generator, item.family, stratum)


def _whole(
    pool: Sequence[PoolItem], languages: Sequence[str], left_out: Counter[str], dataset: Dataset
) -> list[PoolItem]:
    """The items of whole families. A family of which an item was left out before is not whole any more."""
    whole = whole_families([_sample_row(item, ()) for item in pool], languages)
    of_all: Counter[str] = Counter()
    for scenario, external in (
        Item.objects.of(dataset).filter(language__in=languages).values_list("scenario", "external_id")
    ):
        of_all[scenario or external] += 1
    here = Counter(item.family for item in pool)
    kept = [item for item in pool if item.family in whole and here[item.family] == of_all[item.family]]
    left_out["not_whole"] = len(pool) - len(kept)
    return kept


def _facets(item: PoolItem, bands: Mapping[int, str], read: _ReadVerdicts | None) -> dict[str, tuple[str, ...]]:
    values: dict[str, tuple[str, ...]] = {"generator": (item.generator,), "length": (bands[item.pk],)}
    if read is None:
        return values
    return {"issue": read.issues[item.pk] or ("",), "score": (read.scores.get(item.pk, ""),), **values}


# --- what was asked for -----------------------------------------------------------------------------------------------
def _languages(pool: Sequence[PoolItem], asked: Sequence[str]) -> list[str]:
    there = sorted({item.language for item in pool})
    if unknown := [tag for tag in asked if tag not in there]:
        sentence = _("No item is in “%(language)s”. There are: %(languages)s.")
        about = {"language": unknown[0][: selections.MOST_SHOWN], "languages": ", ".join(there)}
        raise _wrong(sentence % about, "languages")
    return [tag for tag in there if not asked or tag in asked]


def _checked(
    dataset: Dataset, settings: CurationSettings, languages: Sequence[str]
) -> tuple[dict[str, Any], _ReadVerdicts | None]:
    """What was asked for with its defaults, as it is stored, and the verdicts that it rests on."""
    _refuse_unfit(dataset, settings)
    rule: dict[str, Any] = {"method": settings.method, "n": settings.n, "languages": list(languages)}
    rule |= {"by_family": settings.by_family, "user": settings.user, "words": [], "run": None}
    rule |= {"issues": [], "overall": "", "unreadable": ""}
    read = None
    if settings.run is not None:
        criteria = flagging_criteria(settings.run)
        by_key = {criterion.key: criterion for criterion in criteria}
        rule["run"] = settings.run.pk
        rule["issues"] = default_issues(criteria) if settings.issues is None else list(settings.issues)
        rule["overall"] = default_overall(criteria) if settings.overall is None else settings.overall
        rule["unreadable"] = default_unreadable(criteria) if settings.unreadable is None else settings.unreadable
        rule["words"] = [word.strip() for word in settings.words if word.strip()]
        for part in ("issues", "overall", "unreadable"):
            keys = rule[part] if part == "issues" else [rule[part]]
            if unknown := [key for key in keys if key and key not in by_key]:
                sentence = _("The rubric of this run has no criterion “%(key)s” of which one end is better.")
                raise _wrong(sentence % {"key": unknown[0][: selections.MOST_SHOWN]}, part)
        if not any((*rule["issues"], rule["overall"])):
            raise _wrong(_("Choose at least one issue or the overall score, or choose without verdicts."), "issues")
        read = _read_verdicts(dataset, settings.run, by_key, rule)
    if settings.method == "random":
        return rule | {"by": list(settings.by)}, read
    unused = {"issue": not rule["issues"], "score": not rule["overall"]}
    balance = [facet for facet in FACETS if facet in settings.balance and not unused.get(facet)]
    return rule | {"balance": balance, "clean_first": settings.clean_first and read is not None}, read


def _refuse_unfit(dataset: Dataset, settings: CurationSettings) -> None:
    """Refuse what does not depend on verdicts."""
    if settings.method not in METHODS:
        raise _wrong(_("Items are chosen in one of these ways: %s.") % ", ".join(METHODS), "method")
    if not 1 <= settings.n <= MOST_ASKED:
        raise _wrong(_("Give the number of items per language, 1 or more."), "n")
    if set(settings.balance) - set(FACETS):
        raise _wrong(_("A choice can be balanced over: %s.") % ", ".join(FACETS), "balance")
    if not (settings.by or settings.user):
        return
    known = [*selections.PLAIN[1:], *attribute_columns(dataset)]
    asked = [(column, column, "by") for column in settings.by]
    asked += [(f"{selections.ATTRIBUTE}{settings.user}", settings.user, "user")] if settings.user else []
    for column, name, part in asked:
        if column not in known:
            raise _wrong(_("These items have no “%s”.") % name[: selections.MOST_SHOWN], part)


def attribute_columns(dataset: Dataset) -> list[str]:
    """The attributes that items of the dataset have, as columns."""
    having = Item.objects.of(dataset).exclude(attributes={}).order_by().values_list("attributes", flat=True)
    return [f"{selections.ATTRIBUTE}{key}" for key in sorted({key for row in having.iterator() for key in row})]


def _wrong(sentence: str, where: str) -> Refused:
    return Refused(sentence, code="invalid", fields={where: sentence})


# --- verdicts and labels ----------------------------------------------------------------------------------------------
@dataclass(slots=True)
class _ReadVerdicts:
    """By item with a readable verdict on every criterion asked for: its issues, and its overall score as a value."""

    best: str | None
    issues: dict[int, tuple[str, ...]] = field(default_factory=dict)
    scores: dict[int, str] = field(default_factory=dict)
    unreadable: set[int] = field(default_factory=set)


def is_flagged(criterion: Criterion, score: float) -> bool:
    """Whether a score is in the worse half of its scale."""
    middle = (criterion.minimum + criterion.maximum) / 2
    return score < middle if criterion.direction == Criterion.Direction.HIGHER else score > middle


def score_value(criterion: Criterion, score: float) -> str:
    """The point of the scale nearest to a score (half up); on a scale of many points the fifth of it, as ``0-20``."""
    points = criterion.values
    if 0 < len(points) <= MOST_POINTS:
        nearest = min(points, key=lambda point: (abs(point - score), -point))
        return f"{nearest:g}"
    width = (criterion.maximum - criterion.minimum) / BANDS
    band = min(BANDS - 1, math.floor((score - criterion.minimum) / width))
    return f"{criterion.minimum + band * width:g}-{criterion.minimum + (band + 1) * width:g}"


def _read_verdicts(
    dataset: Dataset, run: JudgeRun, by_key: Mapping[str, Criterion], rule: Mapping[str, Any]
) -> _ReadVerdicts:
    """The first repeat's verdicts of a run and of the runs that it continues. N/A is no flag."""
    asked = {key for key in (*rule["issues"], rule["overall"], rule["unreadable"]) if key}
    by_pk = {criterion.pk: criterion for key, criterion in by_key.items() if key in asked}
    overall = by_key.get(rule["overall"])
    read = _ReadVerdicts(None if overall is None or overall.best is None else score_value(overall, overall.best))
    words = [word.casefold() for word in rule["words"]]
    flags: dict[int, list[str]] = defaultdict(list)
    readable: Counter[int] = Counter()
    for item, criterion_pk, score, rationale in _readable_verdicts(dataset, run, by_pk, with_text=bool(words)):
        readable[item] += 1
        if score is None:
            continue
        criterion = by_pk[criterion_pk]
        if criterion is overall:
            read.scores[item] = score_value(criterion, score)
        if not is_flagged(criterion, score):
            continue
        if criterion.key in rule["issues"]:
            flags[item].append(criterion.key)
        if criterion.key == rule["unreadable"]:
            text = rationale.casefold()
            if not words or any(word in text for word in words):
                read.unreadable.add(item)
    read.issues = {item: tuple(sorted(flags[item])) for item, count in readable.items() if count == len(by_pk)}
    return read


def _readable_verdicts(
    dataset: Dataset, run: JudgeRun, criteria: Collection[int], *, with_text: bool
) -> Iterator[tuple[int, int, float | None, str]]:
    rows = Verdict.objects.filter(
        run__in=[each.pk for each in runs.whole_run([run])],
        criterion__in=list(criteria),
        repeat=1,
        change="",
        status=Verdict.Status.OK,
        item__dataset__in=Dataset.objects.parts_of(dataset).values("pk"),
    )
    columns = ("item_id", "criterion_id", "score", *(["rationale"] if with_text else []))
    for item, criterion, score, *text in rows.values_list(*columns).iterator(20_000):
        yield item, criterion, score, text[0] if text else ""


def _judge(run: JudgeRun) -> dict[str, Any]:
    return {
        "name": run.judge.name,
        "model": run.judge.model,
        "run": run.pk,
        "rubric": str(run.rubric_version),
        "simulated": run.judge.simulated,
    }


def _flags_in_set(
    kept: Sequence[PoolItem],
    read: _ReadVerdicts,
    languages: Sequence[str],
    keys: Sequence[str],
    cells: Mapping[int, Cell],
) -> dict[tuple[str, str], FlagsInSet]:
    """By language and issue of the chosen items: how many of each cell are flagged, and how many are not."""
    counted = {(language, key): (Counter[Cell](), Counter[Cell]()) for language in languages for key in keys}
    for item in kept:
        for key in keys:
            flagged, other = counted[item.language, key]
            (flagged if key in read.issues[item.pk] else other)[cells[item.pk]] += 1
    return {about: FlagsInSet(flagged, other) for about, (flagged, other) in counted.items()}


def _labelled(
    dataset: Dataset, run: JudgeRun, read: _ReadVerdicts, issues: Sequence[str], cells: Mapping[int, Cell]
) -> Iterator[ComparedFlags]:
    """The judge's flag beside the panel's, where most annotators flagged the item or most did not.

    Only items of ``cells``, which could be chosen, and labels by the same rubric version, none by people who could see
    verdicts. What an alignment has locked is left out: a look at it is counted there. So is what it tuned the judge on:
    a judge agrees better with labels that shaped it.
    """
    criteria = {criterion.pk: criterion for criterion in flagging_criteria(run) if criterion.key in issues}
    locked = examples.is_locked(examples.with_test(Alignment.objects.filter(project=dataset.project_id)))
    items = Item.objects.of(dataset).order_by().exclude(locked).exclude(examples.is_tuned_on(run.judge))
    given = Rating.objects.filter(
        annotation__item__in=items.values("pk"),
        annotation__superseded_at=None,
        annotation__campaign__project=dataset.project_id,
        annotation__campaign__qualification_of=None,
        criterion__in=list(criteria),
        score__isnull=False,
    ).exclude(annotation__blind=False)
    votes: dict[tuple[int, int], list[bool]] = defaultdict(list)
    about: dict[int, tuple[str, str]] = {}
    of_item = ("annotation__item__language", "annotation__item__scenario", "annotation__item__external_id")
    rows = given.values_list("annotation__item_id", "criterion_id", "score", *of_item)
    for item, criterion, score, language, scenario, external in rows.iterator(20_000):
        votes[item, criterion].append(is_flagged(criteria[criterion], score))
        about[item] = language, scenario or external
    for (item, criterion), flags in votes.items():
        if item in cells and 2 * sum(flags) != len(flags):
            (language, family), key = about[item], criteria[criterion].key
            yield ComparedFlags(
                language=language,
                issue=key,
                family=family,
                by_judge=key in read.issues[item],
                by_panel=2 * sum(flags) > len(flags),
                cell=cells[item],
            )
