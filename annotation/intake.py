"""Parsed files become rows: staged, invisible until whole, refused as a whole when anything is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any, TypeVar

import orjson
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit, webhooks
from accounts.models import Event, Project, User
from accounts.refusals import Refused
from annotation import bulk
from annotation.formats.items import ItemRow, content_digest
from annotation.formats.problems import Problem, Problems
from annotation.formats.ratings import RatingRow
from annotation.models import (
    Annotation,
    Annotator,
    Campaign,
    Criterion,
    Dataset,
    Intake,
    Item,
    Rating,
    RubricVersion,
)

STAGE = 1_000
LONGEST = {"external_id": 200, "language": 35, "generator": 120, "scenario": 200}
ITEM_FIELDS = (
    "dataset_id",
    "external_id",
    "ordinal",
    "language",
    "generator",
    "scenario",
    "title",
    "turns",
    "fields",
    "attributes",
    "content_warning",
    "digest",
)
LONGEST_RATER = 80
T = TypeVar("T")


class FileRefused(Refused):
    """A file with problems: nothing of it was stored, and `problems` says where and what."""

    def __init__(self, problems: Problems) -> None:
        first = next(iter(problems), None)
        super().__init__(
            _("Nothing was stored. %(count)d problem(s); the first: %(first)s")
            % {"count": len(problems), "first": first or ""},
            code="file_refused",
        )
        self.problems = problems


# --- datasets -------------------------------------------------------------------------------------------------------
def store(
    *,
    project: Project,
    name: str,
    items: Iterable[ItemRow],
    actor: User | None = None,
    intake: Intake | None = None,
    layout: Mapping[str, Any] | None = None,
    licence: str = "",
    derived_from: Dataset | None = None,
    allocatable: bool = True,
    simulated: bool = False,
    extends: Dataset | None = None,
) -> Dataset:
    """Store items as the next version of the dataset called ``name``; `appending.append` makes one that ``extends``.

    Items are staged a thousand to a transaction while the dataset is `loading`, which nothing shows; one
    compare-and-set then makes it `ready`, and its ``intake`` stored. When anything goes wrong the stage is cleared;
    when the process dies, `sweep` clears it.
    """
    dataset = Dataset.objects.create(
        project=project,
        name=name,
        version=_next_version(project, name),
        layout=dict(layout or {}),
        licence=licence,
        derived_from=derived_from,
        allocatable=allocatable,
        simulated=simulated,
        extends=extends,
        intake=intake,
        created_by=actor,
    )
    try:
        stored = _stage(dataset, items)
        if not stored:
            raise Refused(_("There is no item in it."), code="empty")
        _make_ready(dataset, actor)
    except BaseException:
        _clear(dataset)
        raise
    return dataset


def sweep(*, older_than: timedelta = timedelta(hours=6)) -> int:
    """Clear datasets abandoned while loading; returns how many."""
    abandoned = Dataset.objects.filter(state=Dataset.State.LOADING, created_at__lt=timezone.now() - older_than)
    return sum(_clear(dataset) for dataset in abandoned)


def _next_version(project: Project, name: str) -> int:
    newest = Dataset.objects.filter(project=project, name=name).aggregate(newest=Max("version"))["newest"]
    return (newest or 0) + 1


def _stage(dataset: Dataset, items: Iterable[ItemRow]) -> int:
    stored, first = 0, Item.objects.of(dataset.extends).count() if dataset.extends else 0
    for stage in _chunks(items, STAGE):
        with transaction.atomic():
            places = enumerate(stage, first + stored)
            bulk.insert(Item, ITEM_FIELDS, (_item(dataset.pk, place, row) for place, row in places))
        stored += len(stage)
    return stored


def _item(dataset_pk: int, ordinal: int, row: ItemRow) -> tuple[Any, ...]:
    return (
        dataset_pk,
        row.external_id,
        ordinal,
        row.language,
        row.generator or "",
        row.scenario or "",
        row.title,
        _json(row.turns),
        _json(row.fields),
        _json(row.attributes),
        row.content_warning,
        content_digest(row),
    )


def _json(value: Any) -> str:
    return orjson.dumps(value).decode() if value else "[]" if isinstance(value, list) else "{}"


def _make_ready(dataset: Dataset, actor: User | None) -> None:
    with transaction.atomic():
        loading = Dataset.objects.filter(pk=dataset.pk, state=Dataset.State.LOADING)
        if not loading.update(state=Dataset.State.READY):
            raise Refused(_("This import was cleared away while it ran. Start it again."), code="swept")
        dataset.parts.add(dataset, *(Dataset.objects.parts_of(dataset.extends) if dataset.extends else ()))
        settle(dataset.intake)
        audit.record(actor=actor, project=dataset.project, verb="store dataset", subject=dataset, fields=["state"])
    dataset.state = Dataset.State.READY


def settle(intake: Intake | None) -> None:
    """Mark an import as stored, in the transaction that stores the last of it: it can't be stored twice."""
    if intake is None:
        return
    open_ones = Intake.objects.filter(pk=intake.pk).exclude(state=Intake.State.STORED)
    if not open_ones.update(state=Intake.State.STORED, state_since=timezone.now()):
        raise Refused(_("This import is stored already."), code="already_stored")
    intake.state = Intake.State.STORED
    webhooks.announce(
        project=intake.project_id,
        event=Event.IMPORT,
        subject=intake.pk,
        payload={"intake": intake.pk, "kind": intake.kind},
    )


def _clear(dataset: Dataset) -> bool:
    """Delete a stage; never a dataset that is ready."""
    with transaction.atomic():
        loading = Dataset.objects.select_for_update().filter(pk=dataset.pk, state=Dataset.State.LOADING)
        if not loading.exists():
            return False
        Item.objects.filter(dataset=dataset)._raw_delete(using="default")
        return bool(loading.delete())


def _chunks(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    source = iter(rows)
    while chunk := list(islice(source, size)):
        yield chunk


def fit_items(items: Iterable[ItemRow]) -> Problems:
    """What of parsed items the tables have no room for."""
    problems = Problems()
    for row in items:
        for name, longest in LONGEST.items():
            if len(getattr(row, name) or "") > longest:
                found = f"{len(getattr(row, name))} characters"
                problems.refuse(Problem(row.file, row.line, name, found, f"at most {longest} characters", "too_long"))
    return problems


# --- ratings --------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class RatingsReport:
    """What became of the rows: ``given = stored + not_applicable + collapsed + missing`` and those refused."""

    given: int = 0
    stored: int = 0
    not_applicable: int = 0
    collapsed: int = 0
    missing: int = 0
    raters: list[str] = field(default_factory=list)
    items: int = 0


def store_ratings(
    *,
    campaign: Campaign,
    rows: Sequence[RatingRow],
    intake: Intake,
    identified: bool = True,
    actor: User | None = None,
) -> RatingsReport:
    """Store other people's ratings in a campaign, all or none; raises `FileRefused` naming every bad row.

    A rater becomes the annotator of that pseudonym. A rating that is already there collapses when it says the same and
    is refused when it says something else. A row without a score is missing: counted, and nothing is stored for it.
    """
    with transaction.atomic():
        # Two imports at once would not see each other's ratings.
        Campaign.objects.select_for_update().get(pk=campaign.pk)
        fit = fit_ratings(
            dataset=campaign.dataset, rubric_version=campaign.rubric_version, campaign=campaign, rows=rows
        )
        if fit.problems:
            raise FileRefused(fit.problems)
        settle(intake)
        _write_ratings(campaign, fit.rows, intake, identified)
        audit.record(actor=actor, project=campaign.project, verb="import ratings", subject=intake)
    return fit.report


Fitting = tuple[RatingRow, int, Criterion]


@dataclass(slots=True)
class Fit:
    """The ratings that would be stored, with their item and criterion, and what becomes of every other row."""

    rows: list[Fitting] = field(default_factory=list)
    report: RatingsReport = field(default_factory=RatingsReport)
    problems: Problems = field(default_factory=Problems)


def fit_ratings(
    *, dataset: Dataset, rubric_version: RubricVersion, campaign: Campaign | None, rows: Sequence[RatingRow]
) -> Fit:
    """Hold ratings against the items, the scales and what the campaign, where there is one, has already."""
    fit = Fit(report=RatingsReport(given=len(rows)))
    items = dict(Item.objects.of(dataset).order_by().values_list("external_id", "pk"))
    criteria = {criterion.key: criterion for criterion in rubric_version.criteria.all()}
    known = _known(campaign) if campaign else {}
    for row in rows:
        _fit(fit, row, items.get(row.item), criteria.get(row.criterion), criteria, known)
    fit.report.raters = sorted({row.rater for row, _item, _criterion in fit.rows})
    fit.report.items = len({item for _row, item, _criterion in fit.rows})
    return fit


def _fit(
    fit: Fit,
    row: RatingRow,
    item: int | None,
    criterion: Criterion | None,
    criteria: Mapping[str, Criterion],
    known: Mapping[tuple[str, int, int], tuple[float | None]],
) -> None:
    problem = _unfit(row, item, criterion, criteria)
    if problem is not None:
        fit.problems.refuse(problem)
    elif row.missing:
        fit.report.missing += 1
    elif item is not None and criterion is not None:
        before = known.get((row.rater, item, criterion.pk))
        if before is None:
            fit.report.stored += row.score is not None
            fit.report.not_applicable += row.score is None
            fit.rows.append((row, item, criterion))
        elif before == (row.score,):
            fit.report.collapsed += 1
        else:
            found, expected = f"the score {_said(row.score)}", f"{_said(before[0])}, which this rater gave before"
            fit.problems.refuse(_problem(row, "score", found, expected, "conflict"))


def _said(score: float | None) -> str:
    return "N/A" if score is None else f"{score:g}"


def _unfit(
    row: RatingRow, item: int | None, criterion: Criterion | None, criteria: Mapping[str, Criterion]
) -> Problem | None:
    if item is None:
        return _problem(row, "item", f"“{row.item}”", "the id of an item in the campaign's dataset", "unknown_item")
    if criterion is None:
        expected = f"one of the rubric's criteria: {', '.join(criteria)}"
        return _problem(row, "criterion", f"“{row.criterion}”", expected, "unknown_criterion")
    if len(row.rater) > LONGEST_RATER:
        expected = f"at most {LONGEST_RATER} characters"
        return _problem(row, "rater", f"a name of {len(row.rater)} characters", expected, "too_long")
    if row.scale_max is not None and row.scale_max != criterion.maximum:
        expected = f"{criterion.maximum:g}, where the rubric's scale of {criterion.key} ends"
        return _problem(row, "scale_max", f"a scale up to {row.scale_max:g}", expected, "other_scale")
    if not row.applicable and not criterion.not_applicable:
        return _problem(row, "score", "N/A", f"a score: {criterion.key} allows no N/A", "na_not_allowed")
    if row.score is not None and not criterion.is_on_scale(row.score):
        return _problem(row, "score", f"{row.score:g}", f"a score on the scale {scale_words(criterion)}", "off_scale")
    return None


def scale_words(criterion: Criterion) -> str:
    """The scale as people write it: ``0, 1, 2, 3`` or ``0 to 100``."""
    if criterion.points:
        return ", ".join(f"{value:g}" for value in criterion.values)
    return f"{criterion.minimum:g} to {criterion.maximum:g}"


def _problem(row: RatingRow, column: str, found: str, expected: str, code: str) -> Problem:
    return Problem(row.file, row.line, column, found, expected, code)


def _known(campaign: Campaign) -> dict[tuple[str, int, int], tuple[float | None]]:
    """Scores already in the campaign, by (rater, item, criterion)."""
    rows = Rating.objects.filter(annotation__campaign=campaign, annotation__superseded_at=None).values_list(
        "annotation__annotator__pseudonym", "annotation__item_id", "criterion_id", "score"
    )
    return {(rater, item, criterion): (score,) for rater, item, criterion, score in rows.iterator(20_000)}


def _write_ratings(campaign: Campaign, fitting: Sequence[Fitting], intake: Intake, identified: bool) -> None:
    if not fitting:
        return
    annotators = _annotators(campaign.project, {row.rater for row, _, _ in fitting}, identified)
    pairs = {(item, annotators[row.rater]): row.seconds for row, item, _ in fitting}
    now = timezone.now()
    bulk.insert(
        Annotation,
        ("campaign_id", "item_id", "annotator_id", "intake_id", "revision", "seconds", "submitted_at"),
        ((campaign.pk, item, person, intake.pk, 1, seconds, now) for (item, person), seconds in pairs.items()),
    )
    made = Annotation.objects.filter(intake=intake).values_list("item_id", "annotator_id", "pk")
    numbers = {(item, person): pk for item, person, pk in made.iterator(20_000)}
    bulk.insert(
        Rating,
        ("annotation_id", "criterion_id", "status", "score", "rationale"),
        (
            (numbers[item, annotators[row.rater]], criterion.pk, _status(row), row.score, row.rationale)
            for row, item, criterion in fitting
        ),
    )


def _status(row: RatingRow) -> str:
    return (Rating.Status.SCORED if row.applicable else Rating.Status.NOT_APPLICABLE).value


def _annotators(project: Project, names: set[str], identified: bool) -> dict[str, int]:
    Annotator.objects.bulk_create(
        [Annotator(project=project, pseudonym=name, identified=identified) for name in sorted(names)],
        ignore_conflicts=True,
    )
    return dict(Annotator.objects.filter(project=project, pseudonym__in=names).values_list("pseudonym", "pk"))
