"""Who is in a ratings table: annotators and judge runs, and the names that judges have in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext as _

from accounts.refusals import Refused
from annotation.models import Annotation, Annotator, Campaign, Dataset
from judging.models import Call, Judge, JudgeRun, Verdict
from judging.runs import whole_run


def campaign_annotators(campaign: Campaign) -> QuerySet[Annotator]:
    """Everyone whose ratings are in the table."""
    here = Annotation.objects.filter(annotator=OuterRef("pk"), campaign=campaign, superseded_at=None)
    return Annotator.objects.filter(Exists(here), project=campaign.project_id).order_by("pseudonym")


def newest_runs(campaign: Campaign) -> QuerySet[JudgeRun]:
    """The best run of each judge on the campaign's items and rubric version. A run is preferred, in this order: with
    verdicts, with nothing left to ask, not cancelled, over all items, on a later dataset version. Then: without failed
    calls, with more repeats, newer.
    """
    return newest_runs_on(dataset=campaign.dataset, rubric_version=campaign.rubric_version_id)


def newest_runs_on(*, dataset: Dataset, rubric_version: int) -> QuerySet[JudgeRun]:
    """As `newest_runs`, for a dataset and a rubric version (its primary key) that need not belong to a campaign."""
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
    chosen = here.filter(pk=Subquery(of_judge.values("pk")[:1])).annotate(has_scores=_has_scores())
    return chosen.select_related("judge").order_by("judge__name")


def all_runs(campaign: Campaign) -> QuerySet[JudgeRun]:
    """Every run on the campaign's items and rubric version that has or may get verdicts, by judge and number. Runs
    without any score come last, so that no page begins with a judge that failed."""
    runs = _runs_on(campaign.dataset, campaign.rubric_version_id)
    runs = runs.annotate(has_scores=_has_scores())
    return runs.select_related("judge").order_by("-has_scores", "judge__name", "pk")


def with_scores(runs: Collection[int]) -> QuerySet[JudgeRun, int]:
    """The primary keys of the runs that have at least one score on the scale."""
    return JudgeRun.objects.filter(_has_scores(), pk__in=runs).order_by().values_list("pk", flat=True)


def _has_scores() -> Exists:
    return Exists(Verdict.objects.filter(run=OuterRef("pk"), status=Verdict.Status.OK))


def names_of_failed(runs: Iterable[JudgeRun], names: Mapping[int, str]) -> frozenset[str]:
    """The names of judges without a score in any of these runs (from `all_runs` or `newest_runs`). Forms list them
    last, and no page begins with them."""
    read = {names[run.pk] for run in runs if run.has_scores}  # type: ignore[attr-defined]
    return frozenset(names[run.pk] for run in runs) - read


def audit_runs(campaign: Campaign) -> QuerySet[JudgeRun]:
    """The audit runs of judges on the campaign's items and rubric version; they have the verdicts on changed texts."""
    parts = Dataset.objects.parts_of(campaign.dataset)
    here = JudgeRun.objects.perturbed().filter(dataset__in=parts, rubric_version=campaign.rubric_version_id)
    return here.exclude(state=JudgeRun.State.CANCELLED, verdicts=None)


def _runs_on(dataset: Dataset, rubric_version: int) -> QuerySet[JudgeRun]:
    parts = Dataset.objects.parts_of(dataset)
    here = JudgeRun.objects.ordinary().filter(dataset__in=parts, rubric_version=rubric_version)
    return here.exclude(state=JudgeRun.State.CANCELLED, verdicts=None)


def judge_names(campaign: Campaign, runs: Iterable[JudgeRun]) -> dict[int, str]:
    """Map each run to the judge's name in the table, without spaces around it. "(judge)" is added if an annotator has
    the same name, and the judge's key if another judge has it.
    """
    taken = set(Annotator.objects.filter(project=campaign.project_id).values_list("pseudonym", flat=True))
    judge_of = {run.pk: (run.judge.name.strip(), run.judge_id) for run in runs}
    bearers = Counter(name for name, _judge in set(judge_of.values()))
    marks = {run: f" (judge {judge})" if bearers[name] > 1 else "" for run, (name, judge) in judge_of.items()}
    return {run: name + (marks[run] or (" (judge)" if name in taken else "")) for run, (name, _) in judge_of.items()}


def rater_names(campaign: Campaign, runs: Iterable[JudgeRun]) -> dict[int, str]:
    """Map each run, and each run that it continues, to the judge's name in the table.

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
    """The names of the judges of these runs that exist only as cells of designs."""
    judges = {run.judge_id for run in runs if run.design_id is not None}
    if not judges:
        return frozenset()
    of_designs = set(Judge.objects.filter(pk__in=judges).only_in_designs().values_list("pk", flat=True))
    return frozenset(names[run.pk] for run in runs if run.judge_id in of_designs)


def usual_judges(names: Sequence[str], of_designs: Collection[str], chosen: Collection[str] = ()) -> tuple[str, ...]:
    """The names without judges of designs, unless these are chosen; all names if no name would be left."""
    kept = tuple(name for name in names if name not in of_designs or name in chosen)
    return kept or tuple(names)


def ratings_condition(raters: Collection[str], *, blind_only: bool = False) -> Q:
    """The condition on ratings of these annotators, or of all; `blind_only` as in `ratings_tables.table`."""
    chosen = Q(annotation__annotator__pseudonym__in=raters) if raters else Q()
    return chosen & (Q(annotation__blind=True) | Q(annotation__blind=None)) if blind_only else chosen
