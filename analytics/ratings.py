"""The only reader of the database for numbers: annotators' ratings and judges' verdicts as one ratings table (METHODS 0).

Training and exam never enter it; a superseded annotation does not either. A verdict off the scale keeps its number and
says so in `missing_reason`: the statistics count it and let it enter no mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from django.db.models import OuterRef, QuerySet, Subquery

from analytics.stats.scales import Scale
from annotation.models import Campaign, Criterion, Item, Rating, Selection
from judging.models import JudgeRun, Verdict

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "item",
    "cluster",
    "criterion",
    "rater",
    "rater_kind",
    "rater_identified",
    "panel",
    "language",
    "generator",
    "score",
    "applicable",
    "missing_reason",
    "repeat",
    "inclusion_prob",
    "weight",
)
LONGEST_SCALE = 1001


def load(*, campaign: Campaign, runs: Iterable[JudgeRun] | None = None) -> pd.DataFrame:
    """One row per score, COLUMNS as above, in a stable order; `runs` defaults to each judge's newest run."""
    import pandas as pd

    chosen = list(newest_runs(campaign) if runs is None else runs)
    humans = _of_annotators(campaign)
    judges = _of_judges(chosen, taken=set(humans["rater"]))
    table = pd.concat([frame for frame in (humans, judges) if len(frame)] or [humans], ignore_index=True)
    table = table.merge(_items(campaign), on="item_pk", how="left", validate="many_to_one")
    order = ["item_pk", "position", "rater_kind", "rater", "repeat"]
    return table.sort_values(order, ignore_index=True)[list(COLUMNS)]


def scales(campaign: Campaign) -> dict[str, Scale]:
    """The declared scale of every criterion of the campaign's rubric version."""
    return {criterion.key: scale(criterion) for criterion in campaign.rubric_version.criteria.all()}


def scale(criterion: Criterion) -> Scale:
    """A criterion's scale; a long one is spelled out step by step."""
    return Scale(points=criterion.values or _steps(criterion), level=criterion.level)  # type: ignore[arg-type]


def _steps(criterion: Criterion) -> tuple[float, ...]:
    span = criterion.maximum - criterion.minimum
    step = criterion.step or max(1.0, span / (LONGEST_SCALE - 1))
    return tuple(criterion.minimum + number * step for number in range(round(span / step) + 1))


def newest_runs(campaign: Campaign) -> QuerySet[JudgeRun]:
    """The newest run of each judge on the campaign's items and rubric version."""
    here = JudgeRun.objects.filter(dataset=campaign.dataset_id, rubric_version=campaign.rubric_version_id).exclude(
        state=JudgeRun.State.CANCELLED, verdicts=None
    )
    newest = here.filter(judge=OuterRef("judge")).order_by("-pk").values("pk")[:1]
    return here.filter(pk=Subquery(newest)).select_related("judge").order_by("judge__name")


def _of_annotators(campaign: Campaign) -> pd.DataFrame:
    columns = {
        "annotation__item_id": "item_pk",
        "criterion__key": "criterion",
        "criterion__position": "position",
        "annotation__annotator__pseudonym": "rater",
        "annotation__annotator__identified": "rater_identified",
        "annotation__assignment__duty_id": "duty_pk",
        "annotation__assignment__duty__panel__name": "panel",
        "score": "score",
        "status": "status",
    }
    rows = Rating.objects.filter(annotation__campaign=campaign, annotation__superseded_at=None)
    table = _frame(rows.values_list(*columns).iterator(20_000), list(columns.values()))
    table["rater_kind"], table["repeat"] = "annotator", 1
    table["applicable"] = table["status"] != Rating.Status.NOT_APPLICABLE
    table["missing_reason"] = table["status"].where(table["status"] == Rating.Status.STOPPED, None)
    return _with_probabilities(table, campaign)


def _with_probabilities(table: pd.DataFrame, campaign: Campaign) -> pd.DataFrame:
    """The probability with which the duty drew the item, and its inverse as weight; 1 for imported ratings."""
    rows = Selection.objects.filter(duty__campaign=campaign).values_list("duty_id", "item_id", "probability")
    drawn = _frame(rows.iterator(20_000), ["duty_pk", "item_pk", "inclusion_prob"])
    keys = {"duty_pk": "float64", "item_pk": "int64"}  # imported ratings have no duty
    table = table.astype(keys).merge(drawn.astype(keys), on=list(keys), how="left")
    table["inclusion_prob"] = table["inclusion_prob"].astype("float64").fillna(1.0)
    table["weight"] = 1 / table["inclusion_prob"]
    return table.drop(columns=["duty_pk", "status"])


def _of_judges(runs: Sequence[JudgeRun], *, taken: set[str]) -> pd.DataFrame:
    columns = ["item_pk", "criterion", "position", "run_pk", "repeat", "score", "status", "applicable"]
    rows = Verdict.objects.filter(run__in=runs).values_list(
        "item_id", "criterion__key", "criterion__position", "run_id", "repeat", "score", "status", "applicable"
    )
    table = _frame(rows.iterator(20_000), columns)
    table["rater"] = table.pop("run_pk").map({run.pk: rater_name(run, taken) for run in runs})
    table["rater_kind"], table["rater_identified"], table["panel"] = "judge", True, None
    table["missing_reason"] = table["status"].where(table["status"] != Verdict.Status.OK, None)
    table["inclusion_prob"] = table["weight"] = 1.0
    return table.drop(columns="status")


def rater_name(run: JudgeRun, taken: set[str]) -> str:
    """The judge's name, marked when an annotator bears the same."""
    return f"{run.judge.name} (judge)" if run.judge.name in taken else run.judge.name


def _items(campaign: Campaign) -> pd.DataFrame:
    rows = Item.objects.filter(dataset=campaign.dataset_id)
    columns = ["item_pk", "item", "scenario", "language", "generator"]
    table = _frame(rows.values_list("pk", "external_id", "scenario", "language", "generator").iterator(20_000), columns)
    table["cluster"] = table["scenario"].where(table["scenario"] != "", table["item"])
    return table.drop(columns="scenario")


def _frame(rows: Iterable[tuple[Any, ...]], columns: list[str]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame.from_records(list(rows), columns=columns)
