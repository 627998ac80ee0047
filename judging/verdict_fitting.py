"""Other people's verdicts, held against items, scales and what was imported before.

A number beyond the scale's ends is kept as `out_of_range` and enters nothing; a fraction between two points is kept and
flagged, as for judges run here (replies).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from accounts.models import Project
from annotation.formats.problems import Problem, Problems
from annotation.formats.verdicts import VerdictRow
from annotation.models import Criterion, Dataset, Item, RubricVersion
from judging.models import JudgeRun, Verdict

LONGEST_JUDGE = 120
MOST_REPEATS = 1000
Status = Verdict.Status


@dataclass(slots=True)
class VerdictsReport:
    """What became of the rows: ``given = stored + collapsed + missing`` and those refused.

    ``not_applicable``, ``out_of_range``, ``fractional`` and ``unparsed`` (an N/A that the rubric does not allow) are
    among those stored.
    """

    given: int = 0
    stored: int = 0
    not_applicable: int = 0
    out_of_range: int = 0
    fractional: int = 0
    unparsed: int = 0
    collapsed: int = 0
    missing: int = 0
    judges: list[str] = field(default_factory=list)
    items: int = 0


class Fitting(NamedTuple):
    """A row to store, held against its scale."""

    row: VerdictRow
    item: int
    criterion: Criterion
    status: str
    fractional: bool

    @property
    def score(self) -> float | None:
        return self.row.score if self.status != Status.UNPARSED else None

    @property
    def applicable(self) -> bool:
        return self.row.applicable or self.status == Status.UNPARSED


@dataclass(slots=True)
class Fit:
    rows: list[Fitting] = field(default_factory=list)
    report: VerdictsReport = field(default_factory=VerdictsReport)
    problems: Problems = field(default_factory=Problems)


def fit_verdicts(
    *, project: Project, dataset: Dataset, rubric_version: RubricVersion, rows: Sequence[VerdictRow]
) -> Fit:
    """Hold verdicts against the items, the scales and what was imported of the same judges before."""
    fit = Fit(report=VerdictsReport(given=len(rows)))
    items = {
        external: (pk, generator)
        for external, pk, generator in Item.objects.of(dataset).order_by().values_list("external_id", "pk", "generator")
    }
    criteria = {criterion.key: criterion for criterion in rubric_version.criteria.all()}
    known = _known(project, dataset, rubric_version)
    for row in rows:
        _fit(fit, row, items.get(row.item), criteria, known)
    fit.report.judges = sorted({each.row.judge for each in fit.rows})
    fit.report.items = len({each.item for each in fit.rows})
    return fit


Known = Mapping[tuple[str, int, int, int], tuple[float | None, bool]]


def _known(project: Project, dataset: Dataset, rubric_version: RubricVersion) -> Known:
    """Answers imported for this version or one that it extends, by (judge, item, criterion, repeat)."""
    parts = Dataset.objects.parts_of(dataset)
    runs = JudgeRun.objects.filter(project=project, dataset__in=parts, rubric_version=rubric_version)
    stored = Verdict.objects.filter(run__in=runs.exclude(intake=None))
    names = ("run__judge__name", "item_id", "criterion_id", "repeat", "score", "applicable", "status")
    return {
        (judge, item, criterion, repeat): (score, applicable and status != Status.UNPARSED)
        for judge, item, criterion, repeat, score, applicable, status in stored.values_list(*names).iterator(20_000)
    }


def _fit(
    fit: Fit, row: VerdictRow, item: tuple[int, str] | None, criteria: Mapping[str, Criterion], known: Known
) -> None:
    criterion = criteria.get(row.criterion)
    if (problem := _unfit(row, item, criterion, criteria)) is not None:
        fit.problems.refuse(problem)
    elif row.missing:
        fit.report.missing += 1
    elif item is not None and criterion is not None:
        before = known.get((row.judge, item[0], criterion.pk, row.repeat + 1))
        if before is None:
            _take(fit, row, item[0], criterion)
        elif before == (row.score, row.applicable):
            fit.report.collapsed += 1
        else:
            expected = f"{_said(*before)}, which was imported before"
            fit.problems.refuse(_problem(row, "score", _said(row.score, row.applicable), expected, "conflict"))


def _take(fit: Fit, row: VerdictRow, item: int, criterion: Criterion) -> None:
    status, fractional = _held(row, criterion)
    fit.rows.append(Fitting(row, item, criterion, status, fractional))
    fit.report.stored += 1
    fit.report.not_applicable += not row.applicable and status == Status.OK
    fit.report.out_of_range += status == Status.OUT_OF_RANGE
    fit.report.unparsed += status == Status.UNPARSED
    fit.report.fractional += fractional


def _held(row: VerdictRow, criterion: Criterion) -> tuple[str, bool]:
    """The status of a verdict on its scale, and whether it lies between two points."""
    if row.score is None:
        return (Status.OK if criterion.not_applicable else Status.UNPARSED), False
    on_a_point = row.score in criterion.values
    beyond = not criterion.minimum <= row.score <= criterion.maximum
    if beyond or (criterion.level == Criterion.Level.NOMINAL and not on_a_point):
        return Status.OUT_OF_RANGE, False
    return Status.OK, criterion.level == Criterion.Level.ORDINAL and not criterion.is_on_scale(row.score)


def _unfit(
    row: VerdictRow, item: tuple[int, str] | None, criterion: Criterion | None, criteria: Mapping[str, Criterion]
) -> Problem | None:
    if item is None:
        return _problem(row, "item", f"“{row.item}”", "the id of an item in the dataset", "unknown_item")
    if row.generator and row.generator != item[1]:
        expected = f"“{item[1]}”, which wrote the item {row.item}"
        return _problem(row, "generator", f"“{row.generator}”", expected, "other_generator")
    if criterion is None:
        expected = f"one of the rubric's criteria: {', '.join(criteria)}"
        return _problem(row, "criterion", f"“{row.criterion}”", expected, "unknown_criterion")
    if len(row.judge) > LONGEST_JUDGE:
        return _problem(row, "judge", f"{len(row.judge)} characters", f"at most {LONGEST_JUDGE}", "too_long")
    if row.repeat >= MOST_REPEATS:
        return _problem(row, "repeat", str(row.repeat), f"a number below {MOST_REPEATS}", "repeat")
    return None


def _problem(row: VerdictRow, column: str, found: str, expected: str, code: str) -> Problem:
    return Problem(row.file, row.line, column, found, expected, code)


def _said(score: float | None, applicable: bool) -> str:
    return f"{score:g}" if score is not None else "an N/A" if not applicable else "nothing readable"
