"""The page that puts judges side by side: agreement, differences, effects, cost, and items on which two differ."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts.refusals import Refused
from analytics import answers, compared_judges, computing, questions, ratings, tasks
from analytics.compared_judges import JudgeCost
from analytics.families import jury_name
from analytics.figures import MINUS, Figure
from analytics.models import Snapshot
from analytics.questions import NumbersQuestion
from analytics.views.explore import criterion_names
from analytics.views.items import shown_campaign
from annotation.models import Campaign
from judging.models import JudgeDesign, JudgeRun

MEASURE_NAMES = {
    "kappa": gettext_lazy("Cohen’s κ (quadratic on ordered scales)"),
    "accuracy": gettext_lazy("Equal scores"),
    "mae": gettext_lazy("Mean absolute error"),
}
CHOICES = ("design", "judge", "run", "measure", "against", "jury", "jury_rule", "first", "second", "seen")
LABEL_PLACES = ((14, -6), (14, 16), (-14, -6), (-14, 16), (0, -14), (0, 22), (28, 4), (-28, 4))
MOST_NAMED = 3
CHART = {"width": 640, "height": 300, "left": 56, "bottom": 46, "top": 14, "right": 24}


# --- what is asked ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ComparisonChoice:
    """What a reader chose: a measure, a design or judges, a jury, and two judges whose items are listed."""

    campaign: Campaign
    measure: str
    design: JudgeDesign | None
    question: NumbersQuestion
    first: str
    second: str

    @property
    def runs(self) -> list[JudgeRun]:
        """The runs that are compared."""
        return questions.chosen_runs(self.campaign, self.question)


def chosen_comparison(campaign: Campaign, query: QueryDict) -> ComparisonChoice:
    """The comparison that an address asks for; refused with a sentence where it names what is not there."""
    if unknown := sorted({*query} - {*CHOICES}):
        sentence = _("There is no parameter “%(name)s”. Available: %(all)s.")
        raise Refused(sentence % {"name": unknown[0], "all": ", ".join(CHOICES[:-1])}, code="unknown_choice")
    measure = query.get("measure", "") or "kappa"
    if measure not in MEASURE_NAMES:
        sentence = _("“%(measure)s” is not a measure. Available: %(all)s.")
        raise Refused(sentence % {"measure": measure, "all": ", ".join(MEASURE_NAMES)}, code="unknown_choice")
    design = _design(campaign, query.get("design", ""))
    pairs = [(name, text) for name in ("judge", "run", "jury", "jury_rule") for text in query.getlist(name)]
    if design is not None:
        runs = list(JudgeRun.objects.filter(design=design, is_pilot=False).select_related("judge"))
        pairs = [("run", str(run.pk)) for run in runs]
        if design.jury:
            names = ratings.rater_names(campaign, runs)
            pairs += [("jury", _csv_line(sorted({names[run.pk] for run in runs}))), ("jury_rule", design.jury)]
    pairs += [("against", query.get("against", "")), *(("statistic", name) for name in _statistics(measure))]
    question = questions.asked_question(campaign, pairs)
    return ComparisonChoice(campaign, measure, design, question, query.get("first", ""), query.get("second", ""))


def _design(campaign: Campaign, number: str) -> JudgeDesign | None:
    if not number:
        return None
    here = JudgeDesign.objects.filter(project=campaign.project_id, rubric_version=campaign.rubric_version_id)
    found = here.filter(pk=number).first() if number.isdecimal() and len(number) < 18 else None
    if found is None or found.started_at is None:
        raise Refused(_("There is no started design %s on this campaign’s rubric.") % number, code="unknown_choice")
    return found


def _csv_line(names: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def _statistics(measure: str) -> list[str]:
    kinds = ("", "_difference", "_effect", "_interaction")
    own = [f"comparison.{measure}{kind}" for kind in kinds]
    return [*own, "comparison.common_items", "comparison.left_out", "audit.repeat_sd"]


# --- what the page reads ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ComparedJudge:
    """One row of the table: a judge's cost, its agreement on the mean of the cells, and its repeats."""

    cost: JudgeCost
    name: str
    agreement: Figure | None
    repeat_sd: float | None
    repeat_sd_unit: str
    is_efficient: bool
    lower_is_better: bool

    @property
    def per_thousand(self) -> float | None:
        """USD for 1,000 items."""
        return None if self.cost.per_item is None else 1000 * self.cost.per_item

    @property
    def per_point(self) -> float | None:
        """USD for 1,000 items, for each point (0.01) of agreement; None for errors and without agreement."""
        value = self.agreement.value if self.agreement else None
        if self.per_thousand is None or self.lower_is_better or value is None or value <= 0:
            return None
        return self.per_thousand / (100 * value)


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A judge in the chart of cost and agreement: its place in pixels, and its number in the table and where it is."""

    number: int
    name: str
    x: float
    y: float
    is_efficient: bool
    label_x: float = 0.0
    label_y: float = 0.0


class ComparisonPage:
    """An answer as the page and the API show it."""

    def __init__(self, choice: ComparisonChoice, snapshot: Snapshot) -> None:
        self.choice, self.snapshot = choice, snapshot
        self.rows: list[Mapping[str, Any]] = snapshot.content["estimates"]
        self.criteria = criterion_names(choice.campaign)
        self.lower_is_better = choice.measure == "mae"

    def figures(self, kind: str) -> list[tuple[Mapping[str, Any], Figure]]:
        """The rows of one kind: "" (agreement), "_difference", "_effect", "_interaction"."""
        asked = f"comparison.{self.choice.measure}{kind}"
        return [(row, Figure.of(row)) for row in self.rows if row["asked"] == asked]

    def counted(self, name: str) -> list[Mapping[str, Any]]:
        return [row for row in self.rows if row["asked"] == f"comparison.{name}"]

    def cell_name(self, row: Mapping[str, Any]) -> str:
        """Clarity · et, or that it is the mean of cells."""
        if row["criterion"] is None:
            return _("Mean of criteria and languages")
        return f"{self.criteria.get(row['criterion'], row['criterion'])} · {row['language']}"

    @cached_property
    def cells(self) -> list[str]:
        """The cells of the table, the mean of them last."""
        return list(dict.fromkeys(self.cell_name(row) for row, _figure in self.figures("")))

    @cached_property
    def agreement(self) -> list[tuple[str, list[tuple[Figure | None, Figure | None]]]]:
        """By judge, its agreement in each cell, and the paired difference from the judge that is compared with."""
        by_judge: dict[str, dict[str, Figure]] = {}
        for row, figure in self.figures(""):
            by_judge.setdefault(str(row["judge"]), {})[self.cell_name(row)] = figure
        differences = self._differences
        return [
            (self.short(name), [(found.get(cell), differences.get((name, cell))) for cell in self.cells])
            for name, found in by_judge.items()
        ]

    @cached_property
    def against(self) -> str:
        """The judge that the others are compared with: the chosen one, or the first."""
        if self.choice.question.against:
            return self.choice.question.against
        return next((str(row["judge"]) for row, _figure in self.figures("")), "")

    @cached_property
    def _differences(self) -> dict[tuple[str, str], Figure]:
        """By judge and cell, its value less that of `against`; a pair that is stored the other way round is turned."""
        found = {}
        for row, figure in self.figures("_difference"):
            one, other = row["raters"]
            if other == self.against:
                found[one, self.cell_name(row)] = figure
            elif one == self.against:
                found[other, self.cell_name(row)] = _turned(row)
        return found

    @cached_property
    def effects(self) -> list[tuple[str, list[Figure]]]:
        """By cell, the effect of each level; the mean of the cells first."""
        return self._by_cell("_effect")

    @cached_property
    def interactions(self) -> list[tuple[str, list[Figure]]]:
        return self._by_cell("_interaction")

    def _by_cell(self, kind: str) -> list[tuple[str, list[Figure]]]:
        found: dict[str, list[Figure]] = {}
        for row, figure in self.figures(kind):
            found.setdefault(self.cell_name(row), []).append(figure)
        return list(reversed(found.items()))

    def short(self, name: str) -> str:
        """A judge's name; of a jury with many members only how many."""
        for members in self.choice.question.jury_members:
            if name == jury_name(members, self.choice.question.jury_rule) and len(members) > MOST_NAMED:
                return _("%(rule)s of %(n)d judges") % {"rule": self.choice.question.jury_rule, "n": len(members)}
        return name

    @property
    def left_out(self) -> list[tuple[str, int, int, list[tuple[str, int]]]]:
        """By cell: common items, items without a reference label, and judges by how many items they did not score."""
        found = []
        for row in self.counted("common_items"):
            about = [each for each in self.counted("left_out") if self.cell_name(each) == self.cell_name(row)]
            missing = sum(int(each["value"]) for each in about if each["judge"] is None)
            by_count: dict[int, list[str]] = {}
            for each in about:
                if each["judge"] and each["value"]:
                    by_count.setdefault(int(each["value"]), []).append(self.short(str(each["judge"])))
            judges = [(self._listed(names), count) for count, names in sorted(by_count.items())]
            found.append((self.cell_name(row), int(row["value"]), missing, judges))
        return found

    def _listed(self, names: Sequence[str]) -> str:
        everyone = len(self.agreement)
        return _("each judge") if len(names) == everyone > 1 else ", ".join(names)

    @cached_property
    def judges(self) -> list[ComparedJudge]:
        """A row for each judge and jury."""
        costs = compared_judges.judge_costs(self.choice.campaign, self.choice.runs)
        by_name = {cost.name: cost for cost in costs}
        for members in self.choice.question.jury_members:
            name = jury_name(members, self.choice.question.jury_rule)
            seated = [by_name[member] for member in members if member in by_name]
            costs.append(compared_judges.jury_cost(name, seated))
        whole = self._on_the_whole
        points = {
            cost.name: (cost.per_item, value)
            for cost in costs
            if cost.per_item is not None and cost.name in whole and (value := whole[cost.name].value) is not None
        }
        best = compared_judges.efficient(points, lower_is_better=self.lower_is_better)
        repeats = self._repeats
        return [
            ComparedJudge(
                cost=cost,
                name=self.short(cost.name),
                agreement=whole.get(cost.name),
                repeat_sd=repeats.get(cost.name),
                repeat_sd_unit=self.repeat_sd_unit,
                is_efficient=cost.name in best,
                lower_is_better=self.lower_is_better,
            )
            for cost in costs
        ]

    @cached_property
    def _on_the_whole(self) -> dict[str, Figure]:
        """By judge, its figure on the mean of the cells, or on the only cell."""
        figures = self.figures("")
        whole = [(row, figure) for row, figure in figures if row["criterion"] is None]
        chosen = whole or (figures if len(self.cells) == 1 else [])
        return {str(row["judge"]): figure for row, figure in chosen}

    @property
    def agreement_is(self) -> str:
        """What the table of judges shows as their agreement."""
        whole = next((figure for row, figure in self.figures("") if row["criterion"] is None), None)
        if whole is not None:
            return _("Agreement: %s (criterion and language).") % whole.note
        if len(self.cells) == 1:
            return _("Agreement: %s.") % self.cells[0]
        return _("No mean is given: it needs two cells of one kind with a value of every judge.")

    @cached_property
    def _repeat_rows(self) -> list[Mapping[str, Any]]:
        rows = (row for row in self.rows if row["asked"] == "audit.repeat_sd")
        return [row for row in rows if row["value"] is not None and row["judge"] and row["criterion"] in self._widths]

    @cached_property
    def _widths(self) -> dict[str, float]:
        """By criterion, the width of its scale."""
        criteria = self.choice.campaign.rubric_version.criteria.all()
        return {each.key: width for each in criteria if (width := each.maximum - each.minimum)}

    @property
    def repeat_sd_unit(self) -> str:
        """``points``, or ``width`` where the scales differ in width: each SD is divided by its scale's."""
        return "points" if len({self._widths[row["criterion"]] for row in self._repeat_rows}) <= 1 else "width"

    @property
    def repeats_are(self) -> str:
        """In what the standard deviation over repeats is given."""
        if self.repeat_sd_unit == "points":
            return _("It is in points of the scale.")
        return _("It is a share of the scale’s width, because the scales differ in width.")

    @cached_property
    def _repeats(self) -> dict[str, float]:
        """By judge, the mean over cells of the standard deviation over repeats, in `repeat_sd_unit`."""
        found: dict[str, list[float]] = {}
        in_points = self.repeat_sd_unit == "points"
        for row in self._repeat_rows:
            width = 1.0 if in_points else self._widths[row["criterion"]]
            found.setdefault(str(row["judge"]), []).append(float(row["value"]) / width)
        return {name: sum(values) / len(values) for name, values in found.items()}

    @cached_property
    def chart(self) -> dict[str, Any] | None:
        """Cost of 1,000 items beside agreement: points and the Pareto line in pixels; None without two known costs."""
        known = [
            (number, judge)
            for number, judge in enumerate(self.judges, 1)
            if judge.per_thousand is not None and judge.agreement and judge.agreement.value is not None
        ]
        if len(known) < 2:
            return None
        costs = [float(judge.per_thousand or 0) for _number, judge in known]
        values = [float(judge.agreement.value or 0) for _number, judge in known if judge.agreement]
        across, up = _Axis(0.0, max(costs) or 1.0), _Axis(min(values), max(values), pad=0.1)
        left, right = CHART["left"], CHART["width"] - CHART["right"]
        top, bottom = CHART["top"], CHART["height"] - CHART["bottom"]
        points = [
            ChartPoint(
                number,
                judge.cost.name,
                round(left + across.share(cost) * (right - left), 1),
                round(bottom - up.share(value) * (bottom - top), 1),
                judge.is_efficient,
            )
            for (number, judge), cost, value in zip(known, costs, values, strict=True)
        ]
        points = _labelled(points)
        line = sorted((point.x, point.y) for point in points if point.is_efficient)
        return {
            **CHART,
            "points": points,
            "line": " ".join(f"{x},{y}" for x, y in line),
            "floor": bottom,
            "end": right,
            "x_ticks": [(round(left + across.share(at) * (right - left), 1), f"${at:.3g}") for at in across.ticks],
            "y_ticks": [(round(bottom - up.share(at) * (bottom - top), 1), up.written(at)) for at in up.ticks],
        }


def _labelled(points: Sequence[ChartPoint]) -> list[ChartPoint]:
    """The points with a place for each number, beside its point and apart from the numbers before it."""
    placed: list[ChartPoint] = []
    for point in points:
        places = [(point.x + x, point.y + y) for x, y in LABEL_PLACES]
        free = [
            (x, y)
            for x, y in places
            if all(abs(x - other.label_x) > 14 or abs(y - other.label_y) > 12 for other in placed)
        ]
        x, y = (free or places)[0]
        placed.append(replace(point, label_x=round(x, 1), label_y=round(y, 1)))
    return placed


class _Axis:
    """From the lowest to the highest number, with a share of it beyond both ends."""

    def __init__(self, low: float, high: float, pad: float = 0.0) -> None:
        air = pad * (high - low or 1.0)
        self.low, self.high = low - air, (high + air) if pad else high * 1.08

    def share(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low or 1.0)

    def written(self, value: float) -> str:
        """As many digits as tell two ticks apart."""
        digits = 2 if self.high - self.low >= 0.04 else 3 if self.high - self.low >= 0.004 else 4
        return f"{value:.{digits}f}".replace("-", MINUS)

    @property
    def ticks(self) -> list[float]:
        return [self.low + step * (self.high - self.low) / 4 for step in range(5)]


def _turned(row: Mapping[str, Any]) -> Figure:
    """The figure of a difference, the other way round."""
    value, low, high = (None if row[name] is None else -row[name] for name in ("value", "low", "high"))
    return Figure.of({**row, "value": value, "low": high, "high": low})


# --- the view ---------------------------------------------------------------------------------------------------------
@require_safe
@login_required
def comparison_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The form and the answer. While a worker computes, the page asks for itself."""
    current = shown_campaign(request.user, project, campaign)
    started = JudgeDesign.objects.filter(project=current.project_id, rubric_version=current.rubric_version_id)
    context: dict[str, Any] = {
        "title": _("Comparison of judges"),
        "project": current.project,
        "campaign": current,
        "designs": started.exclude(started_at=None),
        "measures": [(name, str(label)) for name, label in MEASURE_NAMES.items()],
        "everyone": sorted(set(ratings.judge_names(current, ratings.newest_runs(current)).values())),
        "picked": request.GET.getlist("judge"),
    }
    if not context["everyone"]:
        return render(request, "analytics/comparison.html", {**context, "nobody": True})
    try:
        choice = chosen_comparison(current, request.GET)
        snapshot, is_stale = answers.current_answer(current, choice.question)
        pair = _two(choice)
    except Refused as refused:
        return render(request, "analytics/comparison.html", {**context, "refusal": refused.sentence}, status=422)
    if is_stale:
        tasks.ask_to_compute(campaign=current, settings=choice.question)
    context |= {
        "choice": choice,
        "snapshot": snapshot,
        "is_stale": is_stale,
        "failed": computing.failed(campaign=current, settings=choice.question) if is_stale else None,
        "job": answers.open_job(current, choice.question) if is_stale else None,
        "page": ComparisonPage(choice, snapshot) if snapshot else None,
        "this": request.get_full_path(),
        "estimates": f"{reverse('api_comparison', args=[current.project.slug, current.pk])}?{request.GET.urlencode()}",
        "names": sorted(set(ratings.rater_names(current, choice.runs).values())),
        **pair,
    }
    return render(request, "analytics/comparison.html", context)


def _two(choice: ComparisonChoice) -> dict[str, Any]:
    """The items on which the two chosen judges differ; nothing where none is chosen."""
    if not (choice.first and choice.second):
        return {}
    first, second = (named_run(choice, name) for name in (choice.first, choice.second))
    both, differ = compared_judges.count_disagreements(first, second)
    return {"disagreements": compared_judges.disagreements(first, second), "both": both, "differ": differ}


def named_run(choice: ComparisonChoice, name: str) -> JudgeRun:
    """The run of a judge that is compared; refused with the names there are."""
    names = ratings.rater_names(choice.campaign, choice.runs)
    found = next((run for run in choice.runs if names[run.pk] == name), None)
    if found is None:
        known = ", ".join(sorted(set(names.values())))
        sentence = _("“%(name)s” is not among the judges that are compared: %(known)s.")
        raise Refused(sentence % {"name": name, "known": known}, code="unknown_choice")
    return found
