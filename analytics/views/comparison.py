"""The page that puts judges side by side: agreement, differences, effects, cost, and items on which two differ."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_safe

from accounts.refusals import Refused
from analytics import answer_pages, page_cache, tasks
from analytics.answers.computing import failed
from analytics.figures import Figure
from analytics.judges import compared_judges
from analytics.judges.compared_judges import ComparedJudge, cost_chart, is_firm_agreement
from analytics.models import Snapshot
from analytics.questions.asked import asked_question
from analytics.questions.juries import jury_name
from analytics.questions.plan import chosen_runs
from analytics.questions.question import NumbersQuestion
from analytics.ratings.raters import audit_runs, judge_names, names_of_designs, newest_runs, rater_names, usual_judges
from analytics.views.audits import CHANGE_NAMES, language_name
from analytics.views.items import shown_campaign
from annotation.models import Campaign
from judging.models import JudgeDesign, JudgeRun
from judging.perturbation import change_of
from judging.templatetags.judging import factor_name, level_name

MEASURE_NAMES = {
    "kappa": gettext_lazy("Cohen’s κ, quadratic if ordered"),
    "accuracy": gettext_lazy("Equal scores"),
    "mae": gettext_lazy("Mean absolute error"),
}
CHOICES = ("design", "judge", "run", "designs", "measure", "against", "jury", "jury_rule", "first", "second", "seen")
SENSITIVITY = ("perturbation.score_drop", "perturbation.stay")
MOST_NAMED = 3
MOST_ACROSS = 8
"""Cells side by side; more stand one below the other, where judges are fewer."""


# --- what is asked ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ComparisonChoice:
    """The choices of a reader: a measure, a design or judges, a jury, and two judges whose items are listed."""

    campaign: Campaign
    measure: str
    design: JudgeDesign | None
    question: NumbersQuestion
    first: str
    second: str

    @property
    def runs(self) -> list[JudgeRun]:
        """The runs that are compared."""
        return chosen_runs(self.campaign, self.question)


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
    pairs = [(name, text) for name in ("judge", "run", "designs", "jury", "jury_rule") for text in query.getlist(name)]
    if design is not None:
        runs = list(JudgeRun.objects.filter(design=design, is_pilot=False).select_related("judge"))
        pairs = [("run", str(run.pk)) for run in runs]
        if design.jury:
            names = rater_names(campaign, runs)
            pairs += [("jury", _csv_line(sorted({names[run.pk] for run in runs}))), ("jury_rule", design.jury)]
    statistics = _statistics(measure, with_sensitivity=audit_runs(campaign).exists())
    pairs += [("against", query.get("against", "")), *(("statistic", name) for name in statistics)]
    question = asked_question(campaign, pairs)
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


def _statistics(measure: str, *, with_sensitivity: bool) -> list[str]:
    kinds = ("", "_difference", "_effect", "_interaction")
    own = [f"comparison.{measure}{kind}" for kind in kinds]
    more = SENSITIVITY if with_sensitivity else ()
    return [*own, "comparison.common_items", "comparison.left_out", "audit.repeat_sd", *more]


# --- what the page reads ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ComparedCell:
    """A judge in one cell: its agreement, and how far it lies from the judge that it is compared with."""

    figure: Figure | None
    difference: Figure | None
    is_same: bool = False
    """Whether it is the judge that the others are compared with."""
    items: str = ""
    """The address of the items of the cell; nothing for a mean of cells, and for a jury."""
    has_same_replies: bool = False
    """Whether all its replies are those of the judge that the others are compared with."""


@dataclass(frozen=True, slots=True)
class SensitivityRow:
    """One change of texts, and what it did to a judge's scores in each cell: the fall, and the share that stays."""

    judge: str
    change: str
    expects: str
    cells: list[tuple[str, Figure, Figure | None]]


class ComparisonPage:
    """An answer as the page and the API show it."""

    small = compared_judges.FEWEST_COMMON

    def __init__(self, choice: ComparisonChoice, snapshot: Snapshot) -> None:
        self.choice, self.snapshot = choice, snapshot
        self.rows: list[Mapping[str, Any]] = snapshot.content["estimates"]
        self.criteria = answer_pages.criterion_names(choice.campaign)
        self.lower_is_better = choice.measure == "mae"
        self.runs = choice.runs
        self.costs, self.costs_at = compared_judges.kept_costs(choice.campaign, self.runs, snapshot)
        self.same_replies = compared_judges.same_replies(self.costs)

    def figures(self, kind: str) -> list[tuple[Mapping[str, Any], Figure]]:
        """The rows of one kind: "" (agreement), "_difference", "_effect", "_interaction"."""
        asked = f"comparison.{self.choice.measure}{kind}"
        return [(row, Figure.of(row)) for row in self.rows if row["asked"] == asked]

    def counted(self, name: str) -> list[Mapping[str, Any]]:
        return [row for row in self.rows if row["asked"] == f"comparison.{name}"]

    def _named(self, cell: CellKey) -> str:
        if cell[0] is None:
            return _("Mean of criteria and languages")
        return f"{self.criteria.get(cell[0], cell[0])} · {language_name(cell[1] or '')}"

    # --- agreement, cell by cell --------------------------------------------------------------------------------------
    @cached_property
    def cells(self) -> list[CellKey]:
        """The columns of the table: the mean of the cells, then criterion by criterion."""
        order = [None, *self.criteria]
        cells = {_cell_of(row) for row, _figure in self.figures("")}
        return sorted(cells, key=lambda cell: (order.index(cell[0]) if cell[0] in order else len(order), cell[1] or ""))

    @property
    def groups(self) -> list[tuple[str, list[str]]]:
        """The columns by criterion, with the languages of each."""
        found: dict[str | None, list[str]] = {}
        for criterion, language in self.cells:
            name = _("criteria and languages") if criterion is None else language_name(language or "")
            found.setdefault(criterion, []).append(name)
        return [(_("Mean") if key is None else self.criteria.get(key, key), names) for key, names in found.items()]

    @cached_property
    def agreement(self) -> list[tuple[str, list[ComparedCell]]]:
        """By judge, its agreement in each cell, and the paired difference from the judge that is compared with."""
        by_judge: dict[str, dict[CellKey, Figure]] = {}
        for row, figure in self.figures(""):
            by_judge.setdefault(str(row["judge"]), {})[_cell_of(row)] = figure
        differences, judges = self._differences, {judge["name"] for judge in self.snapshot.content.get("judges", ())}
        return [
            (
                self.short(name),
                [
                    ComparedCell(
                        found.get(cell),
                        differences.get((name, cell)),
                        is_same=name == self.against,
                        items=self._items(found.get(cell), judges),
                        has_same_replies=tuple(sorted((name, self.against))) in self.same_replies,
                    )
                    for cell in self.cells
                ],
            )
            for name, found in by_judge.items()
        ]

    def _items(self, figure: Figure | None, judges: Collection[str]) -> str:
        if figure is None or not figure.criterion or figure.judge not in judges:
            return ""
        here = [self.choice.campaign.project.slug, self.choice.campaign.pk]
        return f"{reverse('numbers_items', args=here)}?{figure.items_query}"

    @property
    def is_turned(self) -> bool:
        """Whether cells are the rows of the table: many of them side by side are too wide for any screen."""
        return len(self.cells) > max(MOST_ACROSS, len(self.agreement))

    @property
    def agreement_rows(self) -> list[tuple[str, list[ComparedCell]]]:
        """The rows of the table: a judge in each cell, or a cell of each judge."""
        if not self.is_turned:
            return self.agreement
        by_cell = zip(*(cells for _name, cells in self.agreement), strict=True)
        return [(self._named(cell), list(row)) for cell, row in zip(self.cells, by_cell, strict=True)]

    @property
    def answers(self) -> list[str]:
        """What the table of cells comes to: whose value is best, who may be as good, and who differs from `against`."""
        whole = {name: figure for name, figure in self._on_the_whole.items() if figure.value is not None}
        if not whole:
            return []
        rested = {name: (figure.note, figure.n_items) for name, figure in whole.items()}
        first = next(iter(rested.values()))
        equal = [name for name in whole if rested[name] == first]
        if len(equal) < 2:
            return []
        sign = -1 if self.lower_is_better else 1
        best = max(equal, key=lambda name: sign * (whole[name].value or 0.0))
        found = self._best_in_words(best, whole[best], equal)
        kinds = self._compared_kinds(equal, self.against)
        words = {
            "worse": _("Certainly worse than %(judge)s: %(others)s."),
            "better": _("Certainly better than %(judge)s: %(others)s."),
            "unclear": _("Not certain whether they differ from %(judge)s: %(others)s."),
        }
        if self.against == best:
            del words["unclear"]  # the same is said of the best
        for kind, sentence in words.items():
            names = [name for name in equal if kinds.get(name) == kind and (kind != "unclear" or name != best)]
            if names:
                found.append(sentence % {"judge": self.short(self.against), "others": self._some(names)})
        if elsewhere := [name for name in whole if name not in equal]:
            found.append(_("On other items, so left out here: %s.") % self._some(elsewhere))
        return found

    def _best_in_words(self, best: str, figure: Figure, equal: Sequence[str]) -> list[str]:
        """The highest value of judges on equal items with its counts, and which judges are not certainly below it."""
        highest = _("Highest on the whole: %(judge)s, %(value)s (%(counts)s).")
        unclear = _("Not certainly below it: %s.")
        if self.lower_is_better:
            highest = _("Lowest on the whole: %(judge)s, %(value)s (%(counts)s).")
            unclear = _("Not certainly above it: %s.")
        value = " ".join(filter(None, (figure.number, figure.interval or figure.no_interval, figure.mark)))
        found = [highest % {"judge": self.short(best), "value": value, "counts": figure.basis}]
        kinds = self._compared_kinds(equal, best)
        if names := [name for name in equal if kinds.get(name) in ("unclear", "better")]:
            found.append(unclear % self._some(names))
        if names := [name for name in equal if name != best and name not in kinds]:
            found.append(_("Not compared with it: %s.") % self._some(names))
        return found

    def _compared_kinds(self, names: Sequence[str], other: str) -> dict[str, str]:
        """Of those judges whose difference from another was computed: worse, better, or unclear, also for few
        scenarios.
        """
        differences, found = self._differences_from(other), {}
        for name in names:
            difference = differences.get((name, self.cells[0]))
            if name == other or difference is None or difference.value is None:
                continue
            is_better = (difference.value > 0) != self.lower_is_better
            is_certain = difference.is_clear and not difference.is_small
            found[name] = ("better" if is_better else "worse") if is_certain else "unclear"
        return found

    def _some(self, names: Sequence[str]) -> str:
        """The first names, and how many more there are."""
        more = f" + {len(names) - MOST_NAMED}" if names[MOST_NAMED:] else ""
        return ", ".join(map(self.short, names[:MOST_NAMED])) + more

    @property
    def agreement_folds(self) -> list[tuple[bool, list[tuple[str, list[ComparedCell]]]]]:
        """The rows of the table: the mean of the cells at once and the cells in a fold, where they are many."""
        rows = self.agreement_rows
        if not self.is_turned:
            return [(False, rows)]
        n_means = sum(cell == (None, None) for cell in self.cells)
        return [(False, rows[:n_means]), (True, rows[n_means:])] if n_means else [(True, rows)]

    @cached_property
    def against(self) -> str:
        """The judge that the others are compared with: the chosen one, or the first."""
        if self.choice.question.against:
            return self.choice.question.against
        return next((str(row["judge"]) for row, _figure in self.figures("")), "")

    @cached_property
    def _differences(self) -> dict[tuple[str, CellKey], Figure]:
        return self._differences_from(self.against)

    def _differences_from(self, judge: str) -> dict[tuple[str, CellKey], Figure]:
        """By judge and cell, its value less that of another judge; a pair that is stored the other way is turned."""
        found = {}
        for row in self.counted(f"{self.choice.measure}_difference"):
            one, other = row["raters"]
            if other == judge:
                found[one, _cell_of(row)] = Figure.of(row)
            elif one == judge:
                found[other, _cell_of(row)] = _turned(row)
        return found

    # --- effects and interactions -------------------------------------------------------------------------------------
    @cached_property
    def effects(self) -> list[tuple[str, list[tuple[str, Figure]]]]:
        """By cell, the effect of each level under its name; the mean of the cells first."""
        return self._by_cell("_effect")

    @cached_property
    def interactions(self) -> list[tuple[str, list[tuple[str, Figure]]]]:
        return self._by_cell("_interaction")

    @property
    def why_no_effect(self) -> str:
        """Why no effect has a value: judges that differ in no factor have none. Nothing where one has."""
        every = [figure for _cell, figures in self.effects for _name, figure in figures]
        return "" if any(figure.is_defined for figure in every) else next((figure.reason for figure in every), "")

    def _by_cell(self, kind: str) -> list[tuple[str, list[tuple[str, Figure]]]]:
        found: dict[CellKey, list[tuple[str, Figure]]] = {}
        for row, figure in self.figures(kind):
            name = self._level_names.get(figure.variant or "", figure.variant or "")
            found.setdefault(_cell_of(row), []).append((name, figure))
        order = [(None, None), *self.cells]
        cells = sorted(found.items(), key=lambda cell: order.index(cell[0]) if cell[0] in order else len(order))
        return [(self._named(cell), figures) for cell, figures in cells]

    @cached_property
    def _level_names(self) -> dict[str, str]:
        """By the name that figures have for a level or a pair of levels, its labels in the form of a judge."""
        levels = [cost.levels for cost in self.costs]
        single = {
            f"{factor} = {level}": _("%(factor)s: %(level)s")
            % {"factor": factor_name(factor), "level": level_name(level) if level else _("none")}
            for each in levels
            for factor, level in each.items()
        }
        pairs = {f"{one} × {other}": f"{single[one]} × {single[other]}" for one in single for other in single}
        return {**pairs, **single}

    # --- what was left out --------------------------------------------------------------------------------------------
    def short(self, name: str) -> str:
        """A judge's name; of a jury with many members only how many."""
        for members in self.choice.question.jury_members:
            if name == jury_name(members, self.choice.question.jury_rule) and len(members) > MOST_NAMED:
                return _("%(rule)s of %(n)d judges") % {"rule": self.choice.question.jury_rule, "n": len(members)}
        return name

    @property
    def left_out(self) -> list[tuple[str, list[str]]]:
        """By cell, in words: common items, those of juries, and who left out how many for what reason."""
        found: dict[CellKey, list[str]] = {}
        for row in self.counted("common_items"):
            shared = ngettext("%d common item", "%d common items", int(row["value"])) % int(row["value"])
            mine = f"{self.short(str(row['judge']))}: {shared}" if row["judge"] else shared
            found.setdefault(_cell_of(row), []).append(mine)
        names: dict[tuple[CellKey, str, int], list[str]] = {}
        for row in self.counted("left_out"):
            if row["value"]:
                key = (_cell_of(row), str(row["variant"]), int(row["value"]))
                names.setdefault(key, []).append(self.short(str(row["judge"])) if row["judge"] else "")
        for (cell, why, count), judges in names.items():
            words = _LEFT_OUT.get(why, why)
            text = f"{count} {words}"
            found.setdefault(cell, []).append(f"{self._listed(judges)}: {text}" if any(judges) else text)
        return [(self._named(cell), texts) for cell, texts in found.items()]

    def _listed(self, names: Sequence[str]) -> str:
        everyone = len(self.agreement)
        return _("each judge") if len(names) == everyone > 1 else ", ".join(names)

    @property
    def small_cells(self) -> list[str]:
        """The cells that are in no mean and no effect because they have too few common items."""
        counts = {_cell_of(row): int(row["value"]) for row in self.counted("common_items") if not row["judge"]}
        return [f"{self._named(cell)} ({n})" for cell, n in counts.items() if n < compared_judges.FEWEST_COMMON]

    # --- cost and agreement -------------------------------------------------------------------------------------------
    @cached_property
    def judges(self) -> list[ComparedJudge]:
        """A row for each judge and jury."""
        costs = list(self.costs)
        by_name = {cost.name: cost for cost in costs}
        for members in self.choice.question.jury_members:
            name = jury_name(members, self.choice.question.jury_rule)
            seated = [by_name[member] for member in members if member in by_name]
            costs.append(compared_judges.jury_cost(name, seated))
        whole = self._on_the_whole
        points = {
            cost.name: (cost.per_item, value)
            for cost in costs
            if cost.per_item is not None and is_firm_agreement(figure := whole.get(cost.name)) and figure is not None
            if (value := figure.value) is not None
        }
        best = compared_judges.efficient(points, lower_is_better=self.lower_is_better) if len(points) > 1 else set()
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

    @property
    def has_cost(self) -> bool:
        return any(judge.cost.per_item is not None or judge.cost.paid for judge in self.judges)

    @property
    def has_repeats(self) -> bool:
        return any(judge.repeat_sd is not None for judge in self.judges)

    @cached_property
    def _on_the_whole(self) -> dict[str, Figure]:
        """By judge, its figure on the mean of the cells, or on the only cell."""
        figures = self.figures("")
        whole = [(row, figure) for row, figure in figures if row["criterion"] is None]
        chosen = whole or (figures if len(self.cells) == 1 else [])
        return {str(row["judge"]): figure for row, figure in chosen}

    @property
    def note_of_mean(self) -> str:
        """The cells in the first judge's mean, in words; empty if there is no mean."""
        return next((figure.note for row, figure in self.figures("") if row["criterion"] is None), "")

    @property
    def measure_name(self) -> str:
        return str(MEASURE_NAMES[self.choice.measure])

    @property
    def agreement_is(self) -> str:
        """The sentence that says which agreement the table of judges shows."""
        if note := self.note_of_mean:
            return _("Agreement: %s (criterion and language).") % note
        if len(self.cells) == 1:
            return _("Agreement: %s.") % self._named(self.cells[0])
        sentence = _(
            "No mean is given: it needs two cells of one kind with %d common items and a value of every judge."
        )
        return sentence % compared_judges.FEWEST_COMMON

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
        """The sentence on the unit of the standard deviation over repeats."""
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
    def _drawn(self) -> list[tuple[int, str, float, float, bool]]:
        """The judges of the chart: a known cost, and agreement with an interval on enough items."""
        return [
            (number, judge.cost.name, judge.per_thousand, judge.agreement.value, judge.is_efficient)
            for number, judge in enumerate(self.judges, 1)
            if judge.per_thousand is not None and judge.is_firm
            if judge.agreement is not None and judge.agreement.value is not None
        ]

    @cached_property
    def chart(self) -> dict[str, Any] | None:
        """Cost of 1,000 items beside agreement, and the Pareto line; None with fewer than two points."""
        return cost_chart(self._drawn) if len(self._drawn) > 1 else None

    @property
    def chart_basis(self) -> str:
        """The basis of the points: cells, items, clusters and raters."""
        numbers = {number for number, *_rest in self._drawn}
        firm = [judge.agreement for number, judge in enumerate(self.judges, 1) if number in numbers and judge.agreement]
        return "; ".join(dict.fromkeys(" · ".join(filter(None, (figure.note, figure.basis))) for figure in firm))

    @property
    def not_drawn(self) -> list[str]:
        """The judges that are not in the chart."""
        numbers = {number for number, *_rest in self._drawn}
        return [judge.name for number, judge in enumerate(self.judges, 1) if number not in numbers]

    # --- sensitivity --------------------------------------------------------------------------------------------------
    @cached_property
    def sensitivity(self) -> list[SensitivityRow]:
        """By judge and change of texts, by how many points the scores fall in each cell; empty without an audit run."""
        of_asked: dict[str, dict[tuple[str, str, CellKey], Figure]] = {name: {} for name in SENSITIVITY}
        for row in self.rows:
            if row["asked"] in of_asked and row["variant"]:
                key = (str(row["judge"]), str(row["variant"]), _cell_of(row))
                of_asked[row["asked"]][key] = Figure.of(row)
        drops, stays = (of_asked[name] for name in SENSITIVITY)
        found: dict[tuple[str, str], list[tuple[str, Figure, Figure | None]]] = {}
        for (judge, change, cell), figure in drops.items():
            stay = stays.get((judge, change, cell))
            found.setdefault((judge, change), []).append((self._named(cell), figure, stay))
        return [
            SensitivityRow(
                judge=self.short(judge),
                change=str(CHANGE_NAMES.get(change, change)),
                expects=str(_EXPECTED[change_of(change).expects]),
                cells=cells,
            )
            for (judge, change), cells in sorted(found.items())
        ]


_EXPECTED = {  # what a change of a text should do to its score
    "fall": gettext_lazy("should fall"),
    "same": gettext_lazy("should stay"),
    "no_rise": gettext_lazy("must not rise"),
}
_LEFT_OUT = {
    "without a reference label": gettext_lazy("without a reference label"),
    "without a score on the scale": gettext_lazy("without a score"),
    "a tied jury": gettext_lazy("left out because the jury is tied"),
}
"""By reason of `comparison.left_out`, how the page says it after a number of items."""
CellKey = tuple[str | None, str | None]
"""The criterion and the language of a cell; None for the mean of cells."""


def _cell_of(row: Mapping[str, Any]) -> CellKey:
    return row["criterion"], row["language"]


def _turned(row: Mapping[str, Any]) -> Figure:
    """The figure of a difference, the other way round."""
    value, low, high = (None if row[name] is None else -row[name] for name in ("value", "low", "high"))
    return Figure.of({**row, "value": value, "low": high, "high": low})


# --- the view ---------------------------------------------------------------------------------------------------------
@require_safe
@login_required
@page_cache.cached_page
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
        **_offered(current, request),
    }
    if not context["everyone"]:
        return render(request, "analytics/comparison.html", {**context, "nobody": True})
    try:
        choice = chosen_comparison(current, request.GET)
        snapshot, is_stale = answer_pages.current_answer(current, choice.question)
        computation = _computation(request, choice, snapshot, is_stale=is_stale)
        seen = request.GET.get("seen", "") if "HX-Request" in request.headers else ""
        if is_stale and seen == computation["state"]:
            return render(request, "analytics/_comparison_progress.html", computation)
        pair = _two(choice)
    except Refused as refused:
        return render(request, "analytics/comparison.html", {**context, "refusal": refused.sentence}, status=422)
    here = [current.project.slug, current.pk]
    context |= {
        "choice": choice,
        "snapshot": snapshot,
        "page": ComparisonPage(choice, snapshot) if snapshot else None,
        "estimates": f"{reverse('api_comparison', args=here)}?{_query(request)}",
        "names": sorted(set(rater_names(current, choice.runs).values())),
        **computation,
        **pair,
    }
    response = render(request, "analytics/comparison.html", context)
    if seen:
        response["HX-Retarget"] = response["HX-Reselect"] = "#answer"  # new figures, not only news of them
    return response


def _offered(campaign: Campaign, request: HttpRequest) -> dict[str, Any]:
    """The judges to choose from; those that are only cells of designs where they are asked for or chosen."""
    runs, picked = list(newest_runs(campaign)), request.GET.getlist("judge")
    names = judge_names(campaign, runs)
    everyone = sorted({names[run.pk] for run in runs})
    hidden = () if request.GET.get("designs") == "show" else names_of_designs(runs, names)
    listed = usual_judges(everyone, hidden, chosen=picked)
    return {
        "everyone": listed,
        "picked": picked,
        "hidden_judges": len(everyone) - len(listed),
        "with_designs": request.GET.get("designs") == "show",
    }


def _computation(
    request: HttpRequest, choice: ComparisonChoice, snapshot: Snapshot | None, *, is_stale: bool
) -> dict[str, Any]:
    """How far the answer is, which a worker is asked for where it is stale; `state`: which figures the page shows."""
    about: dict[str, Any] = {"campaign": choice.campaign, "settings": choice.question}
    if is_stale:
        tasks.ask_to_compute(**about)
    return {
        "is_stale": is_stale,
        "state": f"figures-{snapshot.pk if snapshot else 0}",
        "this": f"{request.path}?{_query(request)}",
        "failed": failed(**about) if is_stale else None,
        "job": answer_pages.open_job(choice.campaign, choice.question) if is_stale else None,
    }


def _query(request: HttpRequest) -> str:
    """The address without what a page has seen of its own figures."""
    asked = request.GET.copy()
    asked.pop("seen", None)
    return asked.urlencode()


def _two(choice: ComparisonChoice) -> dict[str, Any]:
    """The items on which the two chosen judges differ; nothing where none is chosen."""
    if not (choice.first and choice.second):
        return {}
    first, second = (named_run(choice, name) for name in (choice.first, choice.second))
    both, differ = compared_judges.count_disagreements(first, second)
    return {"disagreements": compared_judges.disagreements(first, second), "both": both, "differ": differ}


def named_run(choice: ComparisonChoice, name: str) -> JudgeRun:
    """The run of a judge that is compared; refused with the names there are."""
    names = rater_names(choice.campaign, choice.runs)
    found = next((run for run in choice.runs if names[run.pk] == name), None)
    if found is None:
        known = ", ".join(sorted(set(names.values())))
        sentence = _("“%(name)s” is not among the judges that are compared: %(known)s.")
        raise Refused(sentence % {"name": name, "known": known}, code="unknown_choice")
    return found
