"""Items and people's ratings as tables: one row per item, or per item x rater x criterion. No names, no e-mails.

Rows are read lazily, as plain tuples. Values that thousands of rows share (names of campaigns, duties, panels and
criteria) are looked up once instead of joined to every row.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, NamedTuple

from django.db import connection, transaction
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Length

from accounts.models import Project
from annotation import evidence
from annotation.blinding import CANDIDATES
from annotation.models import (
    Annotation,
    Annotator,
    Campaign,
    Criterion,
    CuratedItem,
    Dataset,
    Duty,
    Item,
    Rating,
    Selection,
)
from annotation.readers import NAMED_FIELDS
from annotation.whole_item import WHOLE_ITEM_COLUMNS, item_answers
from annotation.writers.tables import BATCH, Column, Table

SHARED = (
    Column("dataset"),
    Column("dataset_version", "integer"),
    Column("item"),
    Column("language", "word"),
    Column("generator"),
    Column("scenario"),
    Column("rubric", "word"),
    Column("rubric_version", "integer"),
    Column("criterion", "word"),
    Column("rater"),
    Column("rater_kind", "word"),
    Column("repeat", "integer"),
    Column("status", "word"),
    Column("score", "number"),
    Column("not_applicable", "switch"),
    Column("rationale"),
    Column("inclusion_probability", "number"),
    Column("intake", "integer"),
    Column("cluster"),
    Column("level", "word"),
    Column("scale", "object"),
    Column("score_label"),
    Column("rationale_length", "integer"),
)
"""The columns of both ratings and verdicts."""
OWN = (
    Column("rater_identified", "switch"),
    Column("seconds", "number"),
    Column("campaign"),
    Column("duty"),
    Column("panel"),
    Column("stratum"),
    Column("wave", "integer"),
    Column("selection", "word"),
    Column("revision", "integer"),
    Column("submitted_at", "moment"),
    Column("superseded_at", "moment"),
    Column("blind", "switch"),
    Column("shown_first", "word"),
    Column("evidence", "object"),
    Column("given_score", "number"),
    *(Column(name, "number") for name in WHOLE_ITEM_COLUMNS),
)
"""The columns of ratings only."""
NAME = Column("rater_name")
"""The last column of ratings if the raters' names were requested."""
RATER = SHARED.index(Column("rater"))


@contextmanager
def consistent() -> Iterator[None]:
    """All queries inside read one consistent snapshot of the database. On SQLite only every single query is consistent,
    because a transaction would block writers.
    """
    if connection.vendor != "postgresql":
        yield
        return
    outermost = not connection.in_atomic_block
    with transaction.atomic():
        if outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


# --- items ----------------------------------------------------------------------------------------------------------
def items(dataset: Dataset, *, without: Collection[str] = ()) -> Table:
    """The items of a dataset in the form that our importer reads. Named fields that no item has are left out. Those of
    a random sample have its probability and stratum among their attributes, so that every format keeps them.

    Attributes with the keys ``without`` are left out.
    """
    fields = _fields(dataset)
    return Table(dataset.name, item_columns(fields), _items(dataset, fields, frozenset(without)))


def item_columns(fields: Iterable[str]) -> tuple[Column, ...]:
    """The columns of items that have these named fields."""
    return (
        *(Column(name) for name in ("id", "language", "generator", "scenario", "title")),
        Column("turns", "turns"),
        *(Column(name, "texts" if name == "passages" else "text", optional=True) for name in fields),
        Column("content_warning"),
        Column("attributes", "object"),
    )


def _fields(dataset: Dataset) -> tuple[str, ...]:
    """The named fields that at least one item has."""
    counts = {name: Count("pk", filter=Q(fields__has_key=name)) for name in NAMED_FIELDS}
    filled = Item.objects.of(dataset).order_by().aggregate(**counts)
    return tuple(name for name in NAMED_FIELDS if filled[name])


def _items(dataset: Dataset, fields: Sequence[str], without: frozenset[str]) -> Iterator[tuple[Any, ...]]:
    drawn = _drawn(dataset)
    read = ("external_id", "language", "generator", "scenario", "title", "turns", "fields", "content_warning")
    rows = Item.objects.of(dataset).values_list("pk", *read, "attributes")
    for pk, *head, turns, texts, warning, attributes in rows.iterator(BATCH):
        given = {**attributes, **drawn.get(pk, {})}
        kept = {key: value for key, value in given.items() if key not in without} if without else given
        yield (*head, turns, *(texts.get(name) for name in fields), warning, kept)


def _drawn(dataset: Dataset) -> dict[int, dict[str, Any]]:
    """How the items of a random sample were drawn, as attributes by item. Where items have attributes of these
    names, they are kept, and these are called ``sample_...``."""
    draws = CuratedItem.objects.filter(item__in=Item.objects.of(dataset)).exclude(probability=None)
    rows = list(draws.values_list("item", "probability", "stratum"))
    probability_name, stratum_name = "inclusion_probability", "stratum"
    own = Item.objects.of(dataset)
    while rows and own.filter(attributes__has_any_keys=[probability_name, stratum_name]).exists():
        probability_name, stratum_name = f"sample_{probability_name}", f"sample_{stratum_name}"
    return {
        item: {probability_name: probability} | ({stratum_name: stratum} if stratum else {})
        for item, probability, stratum in rows
    }


# --- raters ---------------------------------------------------------------------------------------------------------
def pseudonyms(project: Project, renumbered: int | None = None) -> dict[int, str]:
    """Pseudonyms by annotator. With the seed ``renumbered``, other pseudonyms; the same seed gives the same ones."""
    names = dict(Annotator.objects.filter(project=project).values_list("pk", "pseudonym"))
    if renumbered is None:
        return names
    others = other_names(names.values(), renumbered)
    return {pk: others[name] for pk, name in names.items()}


def other_names(names: Iterable[str], seed: int) -> dict[str, str]:
    """A new pseudonym for every name, in an order that depends on ``seed``."""
    order = sorted(names)
    random.Random(seed).shuffle(order)
    width = max(2, len(str(len(order))))
    return {name: f"rater-{number:0{width}d}" for number, name in enumerate(order, start=1)}


def people(project: Project) -> dict[int, str]:
    """Names of users by annotator; imported raters and erased users are left out."""
    annotators = Annotator.objects.filter(project=project, user__isnull=False)
    return dict(annotators.values_list("pk", "user__name"))


# --- ratings --------------------------------------------------------------------------------------------------------
class SelectedAs(NamedTuple):
    """How an item was selected for a duty: its inclusion probability, stratum, wave and origin."""

    probability: float
    stratum: str
    wave: int
    origin: str


GIVEN_FORMER = "active"
"""The origin of a wave that was drawn from the items that were left, by what former waves had shown."""
EVERYTHING = SelectedAs(1.0, "", 1, "all")
IMPORTED = SelectedAs(1.0, "", 1, "imported")


class SelectionsByDuty:
    """How every item was selected for every duty. If all items of a duty were selected in the same way, as in most
    duties, only one entry is kept for the duty."""

    def __init__(self, duties: Iterable[int]) -> None:
        ways = Selection.objects.filter(duty__in=list(duties)).order_by()
        kinds: dict[int, list[SelectedAs]] = {}
        for duty, *drawn in ways.values_list("duty", *_WAY).distinct():
            kinds.setdefault(duty, []).append(SelectedAs(*drawn))
        given_former = [duty for duty, kind in kinds.items() if any(each.origin == GIVEN_FORMER for each in kind)]
        self._last_given_former = _last_rated_wave(ways, given_former)
        kinds = {duty: list(dict.fromkeys(self._given(duty, each) for each in kind)) for duty, kind in kinds.items()}
        self._alike = {duty: drawn_ways[0] for duty, drawn_ways in kinds.items() if len(drawn_ways) == 1}
        mixed = ways.filter(duty__in=kinds.keys() - self._alike.keys()).values_list("duty", "item", *_WAY)
        known = {drawn: drawn for kind in kinds.values() for drawn in kind}
        self._by_item = {
            (duty, item): known[self._given(duty, SelectedAs(*drawn))] for duty, item, *drawn in mixed.iterator(BATCH)
        }

    def _given(self, duty: int, drawn: SelectedAs) -> SelectedAs:
        """The probability given the waves before: once a wave that was drawn from what former ones showed has a rated
        item, their items are certain.
        """
        is_former = drawn.wave < self._last_given_former.get(duty, 0)
        return drawn._replace(probability=1.0) if is_former else drawn

    def of(self, duty: int | None, item: int) -> SelectedAs:
        """The selection of an item; ``IMPORTED`` for an imported rating, which has no duty."""
        if duty is None:
            return IMPORTED
        return self._alike.get(duty) or self._by_item.get((duty, item), EVERYTHING)


_WAY = ("probability", "stratum", "wave", "origin")


def _last_rated_wave(ways: QuerySet[Selection], duties: Sequence[int]) -> dict[int, int]:
    """Map each duty to the last wave given former ones of which some item is rated: until then it tells nothing."""
    if not duties:
        return {}
    current = Annotation.objects.filter(assignment__duty=OuterRef("duty"), item=OuterRef("item"), superseded_at=None)
    rated = ways.filter(Exists(current), duty__in=duties, origin=GIVEN_FORMER)
    return dict(rated.values_list("duty").annotate(last=Max("wave")))


def ratings(
    campaign: Campaign,
    *,
    names: Mapping[int, str],
    rationales: bool = True,
    revisions: bool = False,
    people: Mapping[int, str] | None = None,
    only: Q | None = None,
) -> Table:
    """Every rating of a campaign, or ``only`` some, sorted by item, criterion and annotation. ``names``: pseudonyms by
    annotator. ``revisions``: superseded ratings too. ``people``: names of users by annotator, for a last column.
    """
    selected = Rating.objects.filter(only or Q(), annotation__campaign=campaign)
    if not revisions:
        selected = selected.filter(annotation__superseded_at=None)
    rows = _ratings(campaign, selected, names, rationales)
    if people is None:
        return Table(f"{campaign.name} ratings", (*SHARED, *OWN), rows)
    named = {names[pk]: name for pk, name in people.items()}
    with_names = ((*row, named.get(row[RATER], "")) for row in rows)
    return Table(f"{campaign.name} ratings", (*SHARED, *OWN, NAME), with_names)


_READ = {
    "external": "annotation__item__external_id",
    "language": "annotation__item__language",
    "generator": "annotation__item__generator",
    "scenario": "annotation__item__scenario",
    "dataset": "annotation__item__dataset",
    "item": "annotation__item",
    "criterion": "criterion",
    "person": "annotation__annotator",
    "duty": "annotation__assignment__duty",
    "file_import": "annotation__file_import",
    "status": "status",
    "score": "score",
    "seconds": "annotation__seconds",
    "revision": "annotation__revision",
    "submitted": "annotation__submitted_at",
    "superseded": "annotation__superseded_at",
    "blind": "annotation__blind",
    "swapped": "annotation__swapped",
    "written": "written",
    "pk": "pk",
    "given_version": "given_version",
    "given_score": "given_score",
    **{name: f"annotation__{name}" for name in WHOLE_ITEM_COLUMNS},
    "rationale": "rationale",
}
"""What is read of each rating, with the fields of the database."""


def _ratings(
    campaign: Campaign, selected: QuerySet[Rating], names: Mapping[int, str], rationales: bool
) -> Iterator[tuple[Any, ...]]:
    place = ("annotation__item__ordinal", "criterion__position", "annotation")
    ordered = selected.annotate(written=Length("rationale")).order_by(*place)
    rubric = campaign.rubric_version.rubric
    studies = dataset_versions(Dataset.objects.parts_of(campaign.dataset))
    versions = dict(rubric.versions.values_list("pk", "number"))
    criteria = on_scales(versions)
    duties = {duty.pk: (duty.name, duty.panel.name) for duty in _duties(campaign)}
    marked = _evidence(selected)
    identified = dict(Annotator.objects.filter(project=campaign.project_id).values_list("pk", "identified"))
    draws = SelectionsByDuty(duties)
    read: dict[str, Any] = _READ if rationales else {**_READ, "rationale": Value("")}
    in_order = itemgetter(*(column.name for column in (*SHARED, *OWN)))
    for row in ordered.values_list(*read.values()).iterator(BATCH):
        rating = dict(zip(_READ, row, strict=True))
        drawn, scale = draws.of(rating["duty"], rating["item"]), criteria[rating["criterion"]]
        dataset, dataset_version = studies[rating["dataset"]]
        duty, panel = duties.get(rating["duty"], ("", ""))
        values = {
            "dataset": dataset,
            "dataset_version": dataset_version,
            "item": rating["external"],
            "language": rating["language"],
            "generator": rating["generator"],
            "scenario": rating["scenario"],
            "rubric": rubric.key,
            "rubric_version": versions[rating["given_version"] or scale.version],
            "criterion": scale.key,
            "rater": names[rating["person"]],
            "rater_kind": "annotator",
            "repeat": 0,
            "status": rating["status"],
            "score": rating["score"],
            "not_applicable": rating["status"] == "na",
            "rationale": rating["rationale"],
            "inclusion_probability": drawn.probability,
            "intake": rating["file_import"],
            "cluster": rating["scenario"] or rating["external"],
            "level": scale.level,
            "scale": scale.scale,
            "score_label": scale.labels.get(rating["score"], ""),
            "rationale_length": rating["written"],
            "rater_identified": identified[rating["person"]],
            "seconds": rating["seconds"],
            "campaign": campaign.name,
            "duty": duty,
            "panel": panel,
            "stratum": drawn.stratum,
            "wave": drawn.wave,
            "selection": drawn.origin,
            "revision": rating["revision"],
            "submitted_at": rating["submitted"],
            "superseded_at": rating["superseded"],
            "blind": rating["blind"],
            "shown_first": None if rating["swapped"] is None else CANDIDATES[rating["swapped"]],
            "evidence": marked.get(rating["pk"]),
            "given_score": rating["given_score"],
            **item_answers(rating),
        }
        yield in_order(values)


def _evidence(selected: QuerySet[Rating]) -> dict[int, list[dict[str, Any]]]:
    """The spans of these ratings as plain values, by primary key of the rating."""
    spans = evidence.spans_of(Q(rating__in=selected.order_by()))
    return {rating: [span.as_dict() for span in some] for rating, some in spans.items()}


def dataset_versions(datasets: QuerySet[Dataset]) -> dict[int, tuple[str, int]]:
    """Map each primary key to the name and the version of these datasets."""
    return {pk: (name, version) for pk, name, version in datasets.values_list("pk", "name", "version")}


class OnScale(NamedTuple):
    """A criterion as the rows show it: ``scale`` as in `Criterion.scale`, ``labels`` by point; version, place."""

    key: str
    level: str
    scale: list[float] | dict[str, float]
    labels: dict[float | None, str]
    version: int
    position: int


def on_scales(versions: Iterable[int]) -> dict[int, OnScale]:
    """The criteria of these rubric versions, by primary key."""
    criteria = Criterion.objects.filter(rubric_version__in=list(versions))
    return {
        criterion.pk: OnScale(
            key=criterion.key,
            level=criterion.level,
            scale=criterion.scale,
            labels={**criterion.labels},
            version=criterion.rubric_version_id,
            position=criterion.position,
        )
        for criterion in criteria
    }


def _duties(campaign: Campaign) -> Iterable[Duty]:
    return Duty.objects.filter(campaign=campaign).select_related("panel").order_by("pk")


# --- the design -----------------------------------------------------------------------------------------------------
def design(campaign: Campaign) -> dict[str, Any]:
    """The design of a campaign: dataset, rubric, duties with their panels and overlap, and how items were selected."""
    version = campaign.rubric_version
    duties = _duties(campaign).prefetch_related("criteria")  # type: ignore[attr-defined]
    return {
        "name": campaign.name,
        "state": campaign.state,
        "opened_at": campaign.created_at,
        "dataset": {"name": campaign.dataset.name, "version": campaign.dataset.version},
        "rubric": {"key": version.rubric.key, "version": version.number, "digest": version.digest},
        "duties": [_duty(duty) for duty in duties],
    }


def _duty(duty: Duty) -> dict[str, Any]:
    drawn = Selection.objects.filter(duty=duty).order_by(*_WAY).values(*_WAY)
    return {
        "name": duty.name,
        "panel": {
            "name": duty.panel.name,
            "language": duty.panel.language,
            "annotators": duty.panel.seats.count(),
        },
        "annotators_per_item": duty.overlap,
        "criteria": [criterion.key for criterion in duty.criteria.all()],
        "seed": duty.seed,
        "selections": list(drawn.annotate(items=Count("pk"))),
    }
