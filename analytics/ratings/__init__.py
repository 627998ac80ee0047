"""The only reader of the database for numbers: ratings and verdicts as one ratings table (METHODS 0).

Training and exam never enter it; a superseded annotation does not either. A verdict off the scale keeps its number and
says so in `missing_reason`: the statistics count it and let it enter no mean. Rows are read without pandas, so that a
web process can stream them. They are the rows of the exports of ratings and of verdicts under the table's own names:
`export scores` has the same columns, then those that only an export has.
"""

from __future__ import annotations

import heapq
import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from django.core.cache import caches
from django.db.models import BooleanField, Exists, ExpressionWrapper, Max, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext as _

from accounts.refusals import Refused
from analytics.ratings.columns import coded_scores
from annotation import exports as rated
from annotation.models import Annotation, Annotator, Campaign, Criterion, Dataset, Item, Rating
from annotation.writers.coded_rows import CodedColumn, CodedRows
from annotation.writers.tables import Column, Table, nested, number
from judging import exports as judged
from judging.models import Call, Judge, JudgeRun, Verdict
from judging.runs import whole_run

if TYPE_CHECKING:
    import pandas as pd

    from analytics.stats.core.scales import Level, Scale


class Row(NamedTuple):
    """One score of one rater on one criterion of one item, or the reason there is none.

    `blind`: whether the annotator's role kept verdicts and other people's ratings from them when they submitted it;
    None where nobody knows (imported, or before this was stored) and for judges. `level` and `scale` are the
    criterion's (`Criterion.scale`); `score_label` is what the rubric calls the point. `seconds` is the time that the
    annotator took for the whole item. `rationale_length` counts characters. `certainty`: how sure the annotator was of
    the item's scores, 0 to 100; None where the rubric does not ask for it, and for judges.
    """

    item: str
    cluster: str
    criterion: str
    rater: str
    rater_kind: str
    rater_identified: bool
    panel: str | None
    language: str
    generator: str | None
    score: float | None
    applicable: bool
    missing_reason: str | None
    repeat: int
    inclusion_prob: float
    weight: float
    blind: bool | None
    level: str
    scale: list[float] | dict[str, float]
    score_label: str
    scenario: str | None
    dataset: str
    dataset_version: int
    rubric_version: int
    duty: str | None
    seconds: float | None
    rationale_length: int
    certainty: int | None


KINDS = {
    **dict.fromkeys(("rater_identified", "applicable", "blind"), "switch"),
    **dict.fromkeys(("score", "inclusion_prob", "weight", "seconds"), "number"),
    **dict.fromkeys(("repeat", "dataset_version", "rubric_version", "rationale_length", "certainty"), "integer"),
    **dict.fromkeys(("criterion", "rater_kind", "language", "missing_reason", "level"), "word"),
    "scale": "object",
}
COLUMNS = tuple(Column(name, cast("Any", KINDS.get(name, "text"))) for name in Row._fields)
"""The columns of every ratings table; those of the items' attributes follow."""
TAKEN = frozenset(
    column.name for column in (*COLUMNS, *rated.SHARED, *rated.OWN, *judged.OWN, rated.NAME, Column("judge"))
) | {
    "row",
    "item_key",
    "raw",
    "code",
    "missing",
    "out_of_range",
    "first_repeat",
    "week",
    "hundred",
    "rated_place",
    "submitted_at",
    "levels",
    "dialogue_fault",
}
"""Names that no attribute's column may have: `attribute_score` holds the attribute `score`."""
ATTRIBUTE = "attribute_"
MOST_VALUES = 200
KEPT_SECONDS = 86_400


def table(
    *,
    campaign: Campaign,
    runs: Iterable[JudgeRun] | None = None,
    raters: Collection[str] = (),
    blind_only: bool = False,
    more: Q | None = None,
) -> Table:
    """The ratings table in a stable order, as `CodedRows`: COLUMNS, then a column for each attribute.

    `runs` defaults to one run of each judge (`newest_runs`), and brings along those that they continue; `raters` names
    the annotators wanted, none of them meaning all. `blind_only` leaves out ratings by people who could see verdicts;
    ratings of which nobody knows whether they could stay. `more` is a further condition on ratings.
    """
    heads = list(newest_runs(campaign) if runs is None else runs)
    only = ratings_condition(raters, blind_only=blind_only) & (more or Q())
    names = rater_names(campaign, heads)
    with rated.consistent():
        found = coded_scores(campaign, only=only, runs=whole_run(heads), names=names)
        attributes = ItemAttributes(campaign.dataset)
    item = found["item"]
    own = [attributes.of(name) for name in item.values]
    more_columns = [CodedColumn(item.codes, [row[place] for row in own]) for place in range(len(attributes.keys))]
    rows = CodedRows([*(found[name] for name in Row._fields), *more_columns])
    return Table(f"{campaign.name} ratings", (*COLUMNS, *attributes.columns), rows)


def rows(
    *,
    campaign: Campaign,
    runs: Iterable[JudgeRun] | None = None,
    raters: Collection[str] = (),
    blind_only: bool = False,
) -> Iterator[Row]:
    """The rows of `table` without attributes."""
    found = table(campaign=campaign, runs=runs, raters=raters, blind_only=blind_only)
    return (Row(*row[: len(COLUMNS)]) for row in found.rows)


def load(
    *,
    campaign: Campaign,
    runs: Iterable[JudgeRun] | None = None,
    raters: Collection[str] = (),
    blind_only: bool = False,
) -> pd.DataFrame:
    """The table as a DataFrame."""
    return frame(table(campaign=campaign, runs=runs, raters=raters, blind_only=blind_only))


def frame(found: Table, only: Collection[str] | None = None, coded: Collection[str] = ()) -> pd.DataFrame:
    """A ratings table, or ``only`` some of its columns, as a DataFrame: missing scores are NaN, a scale is JSON.

    The columns ``coded`` of coded rows become categories, which need not be found among the rows again.
    """
    import pandas as pd

    chosen = {name: place for place, name in enumerate(found.names) if only is None or name in only}
    if isinstance(found.rows, CodedRows):
        made = {name: categories if name in coded else series for name in chosen}
        columns = {name: made[name](found.rows.columns[place], name) for name, place in chosen.items()}
    else:
        rows = list(found.rows)
        columns = {name: [row[place] for row in rows] for name, place in chosen.items()}
        if "scale" in columns:
            columns["scale"] = list(map(nested, columns["scale"]))
    kinds = {"score": float, "rater_identified": bool, "applicable": bool, "repeat": int, "inclusion_prob": float}
    kinds |= {"weight": float, "seconds": float, "rationale_length": int, "scale": object}
    return pd.DataFrame(columns).astype({name: kind for name, kind in kinds.items() if name in columns})


def series(column: CodedColumn, name: str) -> Any:
    """A column of a DataFrame: each value is converted once."""
    import pandas as pd

    values = list(map(nested, column.values)) if name == "scale" else column.values
    return pd.Series(values, dtype=None if len(values) else object).array.take(column.codes)


def categories(column: CodedColumn, name: str) -> Any:
    """A column of names as categories of a DataFrame, nothing as no category; as `series` where a name is no text."""
    import numpy as np
    import pandas as pd

    codes, values = column.distinct()
    if {*map(type, values)} - {str, type(None)}:
        return series(column, name)
    is_name = np.array([value is not None for value in values], dtype=bool)
    places = np.where(is_name, is_name.cumsum() - 1, -1)
    names = pd.Index([value for value in values if value is not None], dtype=object)
    return pd.Categorical.from_codes(places[codes], categories=names)


def counted_table(found: Table) -> dict[str, int]:
    """How many items, clusters, annotators, ratings and verdicts a table holds."""
    if isinstance(found.rows, CodedRows):
        return _counted_columns(found, found.rows)
    counted = [Row(*row[: len(COLUMNS)]) for row in found.rows]
    people = [row for row in counted if row.rater_kind == "annotator"]
    return {
        "items": len({row.item for row in counted}),
        "clusters": len({row.cluster for row in counted}),
        "raters": len({row.rater for row in people}),
        "ratings": len(people),
        "scores": sum(row.score is not None for row in people),
        "not_applicable": sum(not row.applicable for row in people),
        "stopped": sum(row.missing_reason is not None for row in people),
        "judges": len({row.rater for row in counted if row.rater_kind == "judge"}),
        "verdicts": sum(row.rater_kind == "judge" for row in counted),
    }


def _counted_columns(found: Table, coded: CodedRows) -> dict[str, int]:
    place = {name: number for number, name in enumerate(found.names)}
    people, judges = (coded.where({place["rater_kind"]: kind.__eq__}) for kind in ("annotator", "judge"))
    return {
        "items": len(coded.values(place["item"])),
        "clusters": len(coded.values(place["cluster"])),
        "raters": len(people.values(place["rater"])),
        "ratings": len(people),
        "scores": len(people.where({place["score"]: lambda score: score is not None})),
        "not_applicable": len(people.where({place["applicable"]: operator.not_})),
        "stopped": len(people.where({place["missing_reason"]: lambda reason: reason is not None})),
        "judges": len(judges.values(place["rater"])),
        "verdicts": len(judges),
    }


def combined(
    campaign: Campaign, people: Table, judges: Table
) -> Iterator[tuple[Row, Sequence[Any] | None, Sequence[Any] | None]]:
    """The rows of an export of ratings and of one of verdicts as rows of the ratings table, each with the row that it
    is of; in the order of the items, then of the criteria, people first.
    """
    places = dict(Item.objects.of(campaign.dataset).values_list("external_id", "ordinal"))
    positions = {criterion.key: criterion.position for criterion in campaign.rubric_version.criteria.all()}

    def place(found: tuple[Row, Any, Any]) -> tuple[int, int]:
        return places[found[0].item], positions.get(found[0].criterion, len(positions))  # a version had more

    ours, theirs = _person_reader(people), _judge_reader(judges)
    return heapq.merge(
        ((ours(row), row, None) for row in people.rows), ((theirs(row), None, row) for row in judges.rows), key=place
    )


_ALIKE = (
    *("item", "cluster", "criterion", "language", "generator", "score", "level", "scale", "score_label", "scenario"),
    *("dataset", "dataset_version", "rubric_version", "repeat", "rationale_length"),
)
"""Columns that both exports have under the table's own names."""
_OR_NONE = ("generator", "scenario", "panel", "duty")
"""Columns in which nothing is None in the table, and an empty text in exports."""


def _person_reader(people: Table) -> Callable[[Sequence[Any]], Row]:
    """What makes a row of the ratings table of one of the export of ratings."""
    own = ("rater", "rater_identified", "panel", "blind", "duty", "seconds", "certainty")
    values, others = _values_of(people, (*_ALIKE, *own)), _values_of(people, ("status", "inclusion_probability"))

    def read(row: Sequence[Any]) -> Row:
        status, drawn_with = others(row).values()
        return Row(
            **values(row),
            rater_kind="annotator",
            applicable=status != Rating.Status.NOT_APPLICABLE,
            missing_reason=status if status == Rating.Status.STOPPED else None,
            inclusion_prob=drawn_with,
            weight=1 / drawn_with,
        )

    return read


def _judge_reader(judges: Table) -> Callable[[Sequence[Any]], Row]:
    """What makes a row of the ratings table of one of the export of verdicts."""
    own = ("judge", "status", "not_applicable", "inclusion_probability")
    values, others = _values_of(judges, _ALIKE), _values_of(judges, own)

    def read(row: Sequence[Any]) -> Row:
        rater, status, not_applicable, drawn_with = others(row).values()
        return Row(
            **values(row),
            rater=rater,
            rater_kind="judge",
            rater_identified=True,
            panel=None,
            applicable=not not_applicable,
            missing_reason=None if status == Verdict.Status.OK else status,
            inclusion_prob=drawn_with,
            weight=1 / drawn_with,
            blind=None,
            duty=None,
            seconds=None,
            certainty=None,
        )

    return read


def _values_of(table: Table, names: Sequence[str]) -> Callable[[Sequence[Any]], dict[str, Any]]:
    """What gives the values of these columns of a row, by name."""
    pick, or_none = itemgetter(*map(table.names.index, names)), [name for name in _OR_NONE if name in names]

    def read(row: Sequence[Any]) -> dict[str, Any]:
        values = dict(zip(names, pick(row), strict=True))
        for name in or_none:
            values[name] = values[name] or None
        return values

    return read


def item_times(campaign: Campaign) -> dict[str, tuple[str, str, int]]:
    """By item its `week`, `hundred` and place in the order of rating, by its last annotation; items without one are
    not in it. Items with the same time are in the order of the dataset.
    """
    here = Annotation.objects.filter(campaign=campaign, superseded_at=None)
    last = here.values_list("item__external_id").annotate(last=Max("submitted_at")).order_by("last", "item__ordinal")
    return {item: (iso_week(moment), str(place // 100 * 100 + 1), place) for place, (item, moment) in enumerate(last)}


def rating_moments(campaign: Campaign) -> dict[tuple[str, str], float]:
    """By item and rater when the rating was submitted here, in seconds; not of imported ratings, which have no such
    moment.
    """
    here = Annotation.objects.filter(campaign=campaign, superseded_at=None, file_import=None)
    names = rated.pseudonyms(campaign.project)
    found = here.order_by("submitted_at").values_list("item__external_id", "annotator", "submitted_at")
    return {(item, names[annotator]): moment.timestamp() for item, annotator, moment in found}


def iso_week(moment: datetime) -> str:
    """2026-W47, in UTC."""
    year, week, _day = moment.astimezone(UTC).isocalendar()
    return f"{year:04}-W{week:02}"


class ItemAttributes:
    """The attributes of a dataset's items as text, a column for each key that some item has.

    A key that the ratings table or an export has a column for is called `attribute_KEY`, spaces are underscores.
    """

    def __init__(self, dataset: Dataset) -> None:
        having = Item.objects.of(dataset).exclude(attributes={}).values_list("external_id", "attributes")
        found: dict[str, Mapping[str, Any]] = dict(having.iterator())
        self.keys = tuple(sorted({key for attributes in found.values() for key in attributes}))
        self.names = tuple(self._named())
        self.columns = tuple(map(Column, self.names))
        self._nothing: tuple[None, ...] = (None,) * len(self.keys)
        self._found = {
            item: tuple(attribute_text(values.get(key)) for key in self.keys) for item, values in found.items()
        }

    def of(self, item: str) -> tuple[str | None, ...]:
        """What an item has in each of the columns."""
        return self._found.get(item, self._nothing)

    def values(self) -> dict[str, tuple[str, ...]]:
        """By column, the values that occur, sorted; nothing where there are more than MOST_VALUES."""
        found = {name: {row[place] for row in self._found.values()} for place, name in enumerate(self.names)}
        return {
            name: tuple(sorted(value for value in values if value is not None)) if len(values) <= MOST_VALUES else ()
            for name, values in found.items()
        }

    def numeric(self) -> tuple[str, ...]:
        """The columns of which the first value is a number."""
        return tuple(name for place, name in enumerate(self.names) if self._begins_with_a_number(place))

    def _begins_with_a_number(self, place: int) -> bool:
        first = next((row[place] for row in self._found.values() if row[place] is not None), None)
        try:
            return first is not None and isfinite(float(first))
        except ValueError:
            return False

    def _named(self) -> Iterator[str]:
        names = set(TAKEN)
        for key in self.keys:
            name = re.sub(r"\s+", "_", key.strip()) or ATTRIBUTE
            while name in names:
                name = f"{ATTRIBUTE}{name}"
            names.add(name)
            yield name


class AttributeChoices(NamedTuple):
    """What a form offers of a dataset's attributes: `keys`, the columns that hold them, `values` by column, and the
    columns with numbers.
    """

    keys: tuple[str, ...]
    names: tuple[str, ...]
    values: dict[str, tuple[str, ...]]
    numeric: tuple[str, ...]


def attribute_choices(dataset: Dataset) -> AttributeChoices:
    """The attributes of a dataset's items. The items of a version never change: they are read once and kept."""
    name = f"attribute-choices:{dataset.pk}:{dataset.created_at.timestamp()}"
    if (kept := caches["content"].get(name)) is None:
        found = ItemAttributes(dataset)
        kept = AttributeChoices(found.keys, found.names, found.values(), found.numeric())
        caches["content"].set(name, kept, KEPT_SECONDS)
    return cast("AttributeChoices", kept)


def attribute_text(value: Any) -> str | None:
    """An attribute as a cell or an address writes it: true, 3, a word; lists and objects as JSON; None without one."""
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return nested(value)
    return number(value)


def scales(campaign: Campaign) -> dict[str, Scale]:
    """The declared scale of every criterion of the campaign's rubric version."""
    return {criterion.key: scale(criterion) for criterion in campaign.rubric_version.criteria.all()}


def scale(criterion: Criterion) -> Scale:
    """A criterion's scale: its points, the steps between its ends, or any number between them."""
    from analytics.stats.core.scales import Scale, range_scale

    level = cast("Level", criterion.level)
    if criterion.points:
        declared = Scale(points=tuple(sorted(criterion.values)), level=level)
    else:
        declared = range_scale(criterion.minimum, criterion.maximum, criterion.step, level)
    return replace(declared, lower_is_better=criterion.direction == criterion.Direction.LOWER)


def newest_runs(campaign: Campaign) -> QuerySet[JudgeRun]:
    """One run of each judge on the campaign's items and rubric version: of those with nothing left to ask and with
    verdicts the one with most repeats, of these the newest. A run under way, cancelled or without a verdict so replaces
    no finished one, one over a selection none over all items, one on an earlier version none on a later, one with
    failed calls no complete one on the same version, and one that asked once none that asked three times.
    """
    return newest_runs_on(dataset=campaign.dataset, rubric_version=campaign.rubric_version_id)


def all_runs(campaign: Campaign) -> QuerySet[JudgeRun]:
    """Every run on the campaign's items and rubric version that has or may get verdicts, by judge and number."""
    runs = _runs_on(campaign.dataset, campaign.rubric_version_id)
    return runs.select_related("judge").order_by("judge__name", "pk")


def _runs_on(dataset: Dataset, rubric_version: int) -> QuerySet[JudgeRun]:
    parts = Dataset.objects.parts_of(dataset)
    here = JudgeRun.objects.ordinary().filter(dataset__in=parts, rubric_version=rubric_version)
    return here.exclude(state=JudgeRun.State.CANCELLED, verdicts=None)


def newest_runs_on(*, dataset: Dataset, rubric_version: int) -> QuerySet[JudgeRun]:
    """The same on a dataset and a rubric version, by primary key, whether or not a campaign has them."""
    here = _runs_on(dataset, rubric_version)
    asking = Call.objects.filter(run=OuterRef("pk"), state__in=[Call.State.WAITING, Call.State.LEASED])
    failed = Call.objects.filter(run=OuterRef("pk"), state=Call.State.FAILED)
    cancelled = Q(state=JudgeRun.State.CANCELLED)
    of_judge = (
        here.filter(judge=OuterRef("judge"))
        .annotate(
            asking=Exists(asking),
            is_cut=ExpressionWrapper(cancelled, output_field=BooleanField()),
            has_verdicts=Exists(Verdict.objects.filter(run=OuterRef("pk"))),
            has_failed=Exists(failed),
            is_part=ExpressionWrapper(Q(selection__isnull=False), output_field=BooleanField()),
        )
        .order_by("-has_verdicts", "asking", "is_cut", "is_part", "-dataset_id", "has_failed", "-repeats", "-pk")
    )
    return here.filter(pk=Subquery(of_judge.values("pk")[:1])).select_related("judge").order_by("judge__name")


def audit_runs(campaign: Campaign) -> QuerySet[JudgeRun]:
    """The audits of judges on the campaign's items and rubric version: what they gave changed texts."""
    parts = Dataset.objects.parts_of(campaign.dataset)
    here = JudgeRun.objects.perturbed().filter(dataset__in=parts, rubric_version=campaign.rubric_version_id)
    return here.exclude(state=JudgeRun.State.CANCELLED, verdicts=None)


def changed_scores(campaign: Campaign, names: Mapping[int, str]) -> dict[tuple[str, str, str], str]:
    """By judge, item and criterion, as JSON: by change the score before and after it, both of the newest audit that
    has them. ``names``: the judges wanted, by key, as the table calls them. N/A and scores off the scale don't count.
    """
    verdicts = Verdict.objects.filter(
        run__in=audit_runs(campaign).filter(judge__in=names), status=Verdict.Status.OK, score__isnull=False
    )
    columns = ("run", "change", "run__judge", "item__external_id", "criterion__key", "score")
    before: dict[tuple[int, str, str], float] = {}
    changed: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for run, change, judge, item, criterion, score in verdicts.order_by("run", "change").values_list(*columns):
        if not change:
            before[run, item, criterion] = score
        elif (first := before.get((run, item, criterion))) is not None:
            changed.setdefault((names[judge], item, criterion), {})[change] = [first, score]
    return {key: nested(scores) for key, scores in changed.items()}


def annotators(campaign: Campaign) -> QuerySet[Annotator]:
    """Everyone whose ratings are in the table."""
    here = Annotation.objects.filter(annotator=OuterRef("pk"), campaign=campaign, superseded_at=None)
    return Annotator.objects.filter(Exists(here), project=campaign.project_id).order_by("pseudonym")


def judge_names(campaign: Campaign, runs: Iterable[JudgeRun]) -> dict[int, str]:
    """By run, the judge's name as the table has it, without spaces around it: marked when an annotator bears the same,
    and by its key when another judge does.
    """
    taken = set(Annotator.objects.filter(project=campaign.project_id).values_list("pseudonym", flat=True))
    judge_of = {run.pk: (run.judge.name.strip(), run.judge_id) for run in runs}
    bearers = Counter(name for name, _judge in set(judge_of.values()))
    marks = {run: f" (judge {judge})" if bearers[name] > 1 else "" for run, (name, judge) in judge_of.items()}
    return {run: name + (marks[run] or (" (judge)" if name in taken else "")) for run, (name, _) in judge_of.items()}


def rater_names(campaign: Campaign, runs: Iterable[JudgeRun]) -> dict[int, str]:
    """By run, and by each run that it continues, the judge's name as the table has it.

    It ends in the run's number when there are several runs of the judge. Refused when two of the runs continue the
    same one.
    """
    chains = {run.pk: (run, whole_run([run])) for run in runs}
    inner = {part.pk for pk, (_run, chain) in chains.items() for part in chain if part.pk != pk}
    heads = [(run, chain) for pk, (run, chain) in chains.items() if pk not in inner]
    several = Counter(run.judge_id for run, _chain in heads)
    known, names = judge_names(campaign, [run for run, _chain in heads]), dict[int, str]()
    for run, chain in heads:
        name = known[run.pk] if several[run.judge_id] == 1 else f"{known[run.pk]} (run {run.pk})"
        if both := [part.pk for part in chain if part.pk in names]:
            sentence = _("Two of the chosen runs continue run %d. Choose one of them.") % both[0]
            raise Refused(sentence, code="shared_run", fields={"runs": sentence})
        names |= {part.pk: name for part in chain}
    return names


def names_of_designs(runs: Sequence[JudgeRun], names: Mapping[int, str]) -> frozenset[str]:
    """Of the judges of these runs, the names of those that are only cells of designs."""
    judges = {run.judge_id for run in runs if run.design_id is not None}
    if not judges:
        return frozenset()
    of_designs = set(Judge.objects.filter(pk__in=judges).only_in_designs().values_list("pk", flat=True))
    return frozenset(names[run.pk] for run in runs if run.judge_id in of_designs)


def usual_judges(names: Sequence[str], of_designs: Collection[str], chosen: Collection[str] = ()) -> tuple[str, ...]:
    """The names without those of designs that are not chosen; all of them where none would be left."""
    kept = tuple(name for name in names if name not in of_designs or name in chosen)
    return kept or tuple(names)


def given_earlier(campaign: Campaign, raters: Collection[str] = ()) -> int:
    """How many of the ratings (of these annotators, or of all) were given under an earlier version of the rubric."""
    here = Rating.objects.filter(
        ratings_condition(raters), annotation__campaign=campaign, annotation__superseded_at=None
    )
    return here.filter(given_version__isnull=False).exclude(status=Rating.Status.STOPPED).count()


def marked_counts(campaign: Campaign, raters: Collection[str] = ()) -> dict[str, int]:
    """`not_blind` and `given_earlier`, as a snapshot's content has them."""
    return {"not_blind": not_blind(campaign, raters), "given_earlier": given_earlier(campaign, raters)}


def not_blind(campaign: Campaign, raters: Collection[str] = ()) -> int:
    """How many of the scores (of these annotators, or of all) were given by people who could see verdicts."""
    here = Rating.objects.filter(
        ratings_condition(raters), annotation__campaign=campaign, annotation__superseded_at=None
    )
    return here.filter(annotation__blind=False, status=Rating.Status.SCORED).count()


def ratings_condition(raters: Collection[str], *, blind_only: bool = False) -> Q:
    """The condition on ratings of these annotators, or of all; `blind_only` as in `table`."""
    chosen = Q(annotation__annotator__pseudonym__in=raters) if raters else Q()
    return chosen & (Q(annotation__blind=True) | Q(annotation__blind=None)) if blind_only else chosen
