"""The only reader of the database for numbers: ratings and verdicts as one ratings table (METHODS 0).

Training and exam never enter it; a superseded annotation does not either. A verdict off the scale keeps its number and
says so in `missing_reason`: the statistics count it and let it enter no mean. Rows are read without pandas, so that a
web process can stream them.
"""

from __future__ import annotations

import csv
import heapq
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from django.db.models import Exists, FloatField, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from annotation.exports import OnScale, on_scales
from annotation.models import Annotation, Annotator, Campaign, Criterion, Dataset, Rating, Selection
from judging.models import Call, JudgeRun, Verdict
from judging.runs import whole_run

if TYPE_CHECKING:
    import pandas as pd

    from analytics.stats.core.scales import Level, Scale


CHUNK = 20_000


class Row(NamedTuple):
    """One score of one rater on one criterion of one item, or the reason there is none.

    `blind`: whether the annotator's role kept verdicts and other people's ratings from them when they submitted it;
    None where nobody knows (imported, or before this was stored) and for judges. `level` and `scale` are the
    criterion's, the scale as JSON (`Criterion.scale`); `score_label` is what the rubric calls the point.
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
    scale: str
    score_label: str


COLUMNS = Row._fields
Placed = tuple[Sequence[Any], Mapping[str, Any]]
"""What says which item and criterion a score is on (`_ITEM`, `_CRITERION`), and what was given."""


def rows(
    *,
    campaign: Campaign,
    runs: Iterable[JudgeRun] | None = None,
    raters: Collection[str] = (),
    blind_only: bool = False,
) -> Iterator[Row]:
    """Every row of the ratings table in a stable order, read as it is asked for.

    `runs` defaults to each judge's newest run, and brings along those that they continue; `raters` names the annotators
    wanted, none of them meaning all. `blind_only` leaves out ratings by people who could see verdicts; ratings of which
    nobody knows whether they could stay.
    """
    chosen = whole_run(newest_runs(campaign) if runs is None else runs)
    people = _of_annotators(campaign, raters, blind_only)
    placed = heapq.merge(people, _of_judges(campaign, chosen), key=_order)
    asked = {each.key: (each, json.dumps(each.scale)) for each in on_scales([campaign.rubric_version_id]).values()}
    return (_row(place, given, *asked[place[-1]]) for place, given in placed)


def load(
    *,
    campaign: Campaign,
    runs: Iterable[JudgeRun] | None = None,
    raters: Collection[str] = (),
    blind_only: bool = False,
) -> pd.DataFrame:
    """The rows as a DataFrame with COLUMNS."""
    return frame(rows(campaign=campaign, runs=runs, raters=raters, blind_only=blind_only))


def frame(table: Iterable[Row]) -> pd.DataFrame:
    """Rows as a DataFrame, missing scores as NaN."""
    import pandas as pd

    kinds = {"score": float, "rater_identified": bool, "applicable": bool, "repeat": int, "inclusion_prob": float}
    return pd.DataFrame.from_records(list(table), columns=list(COLUMNS)).astype({**kinds, "weight": float})


def scales(campaign: Campaign) -> dict[str, Scale]:
    """The declared scale of every criterion of the campaign's rubric version."""
    return {criterion.key: scale(criterion) for criterion in campaign.rubric_version.criteria.all()}


def scale(criterion: Criterion) -> Scale:
    """A criterion's scale: its points, the steps between its ends, or any number between them."""
    from analytics.stats.core.scales import Scale, range_scale

    level = cast("Level", criterion.level)
    if criterion.points:
        return Scale(points=tuple(sorted(criterion.values)), level=level)
    return range_scale(criterion.minimum, criterion.maximum, criterion.step, level)


def newest_runs(campaign: Campaign) -> QuerySet[JudgeRun]:
    """One run of each judge on the campaign's items and rubric version: the newest with nothing left to ask, else the
    newest. A run under way so replaces no finished one, and one on an earlier version none on a later.
    """
    return newest_runs_on(dataset=campaign.dataset, rubric_version=campaign.rubric_version_id)


def newest_runs_on(*, dataset: Dataset, rubric_version: int) -> QuerySet[JudgeRun]:
    """The same on a dataset and a rubric version, by primary key, whether or not a campaign has them."""
    parts = Dataset.objects.parts_of(dataset)
    here = JudgeRun.objects.filter(dataset__in=parts, rubric_version=rubric_version).exclude(
        state=JudgeRun.State.CANCELLED, verdicts=None
    )
    asking = Call.objects.filter(run=OuterRef("pk"), state__in=[Call.State.WAITING, Call.State.LEASED])
    of_judge = (
        here.filter(judge=OuterRef("judge")).annotate(asking=Exists(asking)).order_by("asking", "-dataset_id", "-pk")
    )
    return here.filter(pk=Subquery(of_judge.values("pk")[:1])).select_related("judge").order_by("judge__name")


def annotators(campaign: Campaign) -> QuerySet[Annotator]:
    """Everyone whose ratings are in the table."""
    here = Annotation.objects.filter(annotator=OuterRef("pk"), campaign=campaign, superseded_at=None)
    return Annotator.objects.filter(Exists(here), project=campaign.project_id).order_by("pseudonym")


def rater_names(campaign: Campaign, runs: Iterable[JudgeRun]) -> dict[int, str]:
    """By run, the judge's name as the table has it: marked when an annotator bears the same."""
    taken = set(Annotator.objects.filter(project=campaign.project_id).values_list("pseudonym", flat=True))
    return {run.pk: f"{run.judge.name} (judge)" if run.judge.name in taken else run.judge.name for run in runs}


# What places an item and says what it is, read alike from ratings (behind `annotation__`) and from verdicts.
_ITEM = ("item__ordinal", "item__external_id", "item__scenario", "item__language", "item__generator")
_CRITERION = ("criterion__position", "criterion__key")


def not_blind(campaign: Campaign, raters: Collection[str] = ()) -> int:
    """How many of the scores (of these annotators, or of all) were given by people who could see verdicts."""
    return _ratings(campaign, raters).filter(annotation__blind=False, status=Rating.Status.SCORED).count()


def _ratings(campaign: Campaign, raters: Collection[str]) -> QuerySet[Rating]:
    ratings = Rating.objects.filter(annotation__campaign=campaign, annotation__superseded_at=None)
    return ratings.filter(annotation__annotator__pseudonym__in=raters) if raters else ratings


def _of_annotators(campaign: Campaign, raters: Collection[str], blind_only: bool) -> Iterator[Placed]:
    found = _ratings(campaign, raters)
    if blind_only:
        found = found.filter(Q(annotation__blind=True) | Q(annotation__blind=None))
    drawn = Selection.objects.filter(duty=OuterRef("annotation__assignment__duty"), item=OuterRef("annotation__item"))
    # Imported ratings have no duty: their items were there for everyone.
    probability = Coalesce(Subquery(drawn.values("probability")[:1]), Value(1.0), output_field=FloatField())
    item, annotator = (f"annotation__{column}" for column in ("item", "annotator"))
    panel = "annotation__assignment__duty__panel__name"
    ordered = found.order_by(f"{item}__ordinal", "criterion__position", annotator, "pk").values_list(
        *(f"annotation__{column}" for column in _ITEM), *_CRITERION,
        f"{annotator}__pseudonym", f"{annotator}__identified", panel, "score", "status", probability,
        "annotation__blind",
    )  # fmt: skip
    for *place, rater, identified, panel_name, score, status, drawn_with, blind in ordered.iterator(CHUNK):
        given = {
            "rater": rater,
            "rater_kind": "annotator",
            "rater_identified": identified,
            "panel": panel_name,
            "score": score,
            "applicable": status != Rating.Status.NOT_APPLICABLE,
            "missing_reason": status if status == Rating.Status.STOPPED else None,
            "repeat": 1,
            "inclusion_prob": drawn_with,
            "weight": 1 / drawn_with,
            "blind": blind,
        }
        yield place, given


def _of_judges(campaign: Campaign, runs: Collection[JudgeRun]) -> Iterator[Placed]:
    names = rater_names(campaign, runs)
    ordered = Verdict.objects.filter(run__in=runs).order_by("item__ordinal", "criterion__position", "run", "repeat")
    columns = (*_ITEM, *_CRITERION, "run", "repeat", "score", "status", "applicable")
    for *place, run, repeat, score, status, applicable in ordered.values_list(*columns).iterator(CHUNK):
        given = {
            "rater": names[run],
            "rater_kind": "judge",
            "rater_identified": True,
            "panel": None,
            "score": score,
            "applicable": applicable,
            "missing_reason": None if status == Verdict.Status.OK else status,
            "repeat": repeat,
            "inclusion_prob": 1.0,
            "weight": 1.0,
            "blind": None,
        }
        yield place, given


def _order(placed: Placed) -> tuple[int, int]:
    """By the item's place, then the criterion's."""
    ordinal, _item, _scenario, _language, _generator, position, _criterion = placed[0]
    return ordinal, position


def _row(place: Sequence[Any], given: Mapping[str, Any], asked: OnScale, scale: str) -> Row:
    _ordinal, item, scenario, language, generator, _position, criterion = place
    return Row(
        item=item,
        cluster=scenario or item,
        criterion=criterion,
        language=language,
        generator=generator or None,
        level=asked.level,
        scale=scale,
        score_label=asked.labels.get(given["score"], ""),
        **given,
    )


# --- tables as CSV text that a spreadsheet opens without running it (DESIGN 8.11) ------------------------------------
# What spreadsheets take for the start of a formula, in both widths.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class _Line:
    """A file for csv.writer that hands each line back."""

    def write(self, line: str) -> str:
        return line


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """The header and each row as one line of CSV, made when it is asked for."""
    writer = csv.writer(_Line(), lineterminator="\n")
    yield writer.writerow(header)
    for row in rows:
        yield writer.writerow([csv_cell(value) for value in row])


def csv_cell(value: object) -> str:
    """One value as text: nothing for None, whole numbers without .0, text that looks like a formula behind a quote."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(FORMULA_STARTS) else text
