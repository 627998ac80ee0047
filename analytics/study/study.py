"""A study: what stored answers and decisions say of a campaign, for the choice of judge, criterion and language.

Nothing is computed here. What is missing or out of date is listed in `CampaignStudy.stale`, for a worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from statistics import NormalDist
from typing import Any

from django.db.models import Avg, Count, Q
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from accounts import languages
from analytics.answer_pages import criterion_names, current_answer
from analytics.figures import Figure
from analytics.grids import EstimateRow
from analytics.judges import decisions
from analytics.judges.reasons import CellDecision
from analytics.models import GateDecision, Snapshot
from analytics.open_work import Attention, DecidedCell, open_work
from analytics.places import DIFFERENCE, LEADERBOARD, POOLED
from analytics.questions.asked import QuestionChoices, question_choices
from analytics.questions.question import NumbersQuestion, Settings
from analytics.questions.question_names import REFERENCE_NAMES
from analytics.stats.declared.agreement import GWET_AC, KRIPPENDORFF_ALPHA
from analytics.study import findings
from analytics.study.choice import COMPARED_WITH, StudyChoice
from analytics.study.findings import Contradiction, Floors, LabelCost, Names, StudyFinding, cell_of
from analytics.study.sentences import worded
from analytics.workflow import AGREEMENT
from annotation.models import Annotation, Assignment, Campaign, Criterion, PayRate

RATERS = NumbersQuestion(rows="raters", columns="language", statistics=("pairs.cohen_kappa",), blind_only=True)
_FEWEST_SHARED = 30
"""Items that two raters share, below which nobody is said to contradict the other."""
Use = GateDecision.Use
MOST_URGENT = (
    Use.HUMANS_ONLY, Use.RUBRIC_PROBLEM, Use.RANKING_ONLY, Use.JUDGE_WITH_CORRECTION, Use.STALE, Use.INSUFFICIENT,
    Use.JUDGE_ALONE,
)  # fmt: skip
"""Which decision is shown in full without a choice: the first of these that there is."""


class CampaignStudy:
    """The sentences about a campaign, and the answers below them.

    Answers are read once, at the first use of what rests on them.
    """

    def __init__(self, campaign: Campaign, choice: StudyChoice, *, is_lead: bool) -> None:
        self.campaign, self.is_lead = campaign, is_lead
        self.stale: list[Settings] = []
        self.choices: QuestionChoices = question_choices(campaign)
        self.criteria = {key: name for key, name in criterion_names(campaign).items() if key in self.choices.criteria}
        self.decided = decisions.current_decisions(campaign)
        if self.decided is not None and self.decided.is_stale:
            self.stale.append(decisions.settings_of(self.decided.thresholds))
        self.choice = self._checked(choice)
        self.agreement = self._rows(AGREEMENT)

    # --- the choice ---------------------------------------------------------------------------------------------------
    def _checked(self, choice: StudyChoice) -> StudyChoice:
        """The choice with what does not exist replaced by what is shown without a choice."""
        return StudyChoice(
            judge=choice.judge if choice.judge in self.judges else next(iter(self.judges), ""),
            criterion=choice.criterion if choice.criterion in self.criteria else self._first_criterion(),
            language=choice.language if choice.language in self.choices.languages else "",
            reference=choice.reference if choice.reference in COMPARED_WITH else "mean",
            cell=choice.cell if choice.cell in self.choices.languages else "",
        )

    def _first_criterion(self) -> str:
        """The first criterion with scores in order and a better end; else the first one."""
        criteria = [each for each in self.campaign.rubric_version.criteria.all() if each.key in self.criteria]
        better = (Criterion.Direction.HIGHER, Criterion.Direction.LOWER)
        ordered = [each for each in criteria if each.level != Criterion.Level.NOMINAL and each.direction in better]
        return next((str(each.key) for each in (*ordered, *criteria)), "")

    @cached_property
    def judges(self) -> list[str]:
        """The judges that a form offers, those that have decisions first and those that failed last; judges that are
        only cells of designs are hidden."""
        decided = self.decided.judges if self.decided else ()
        listed = self.choices.listed_judges(NumbersQuestion())
        return sorted(listed, key=lambda name: (name in self.choices.failed, name not in decided))

    @cached_property
    def languages(self) -> list[str]:
        """The tags of the languages in the order of their names; only the chosen one if there is one."""
        tags = languages.in_name_order(set(self.choices.languages), get_language())
        return [tag for tag in tags if self.choice.language in ("", tag)]

    @property
    def names(self) -> Names:
        return Names(
            lambda key: self.criteria.get(key, key), lambda tag: languages.name_for(tag, get_language()) if tag else ""
        )

    @cached_property
    def cells(self) -> list[CellDecision]:
        """The decisions on the judges that are offered, in the chosen languages."""
        tags, judges = set(self.languages), set(self.judges)
        decided = self.decided.cells if self.decided else ()
        return [cell for cell in decided if cell.row["language"] in tags and cell.row["judge"] in judges]

    @cached_property
    def chosen_cell(self) -> CellDecision | None:
        """The decision of the chosen judge and criterion in the language chosen for it, or else in the one that needs
        most attention."""
        judge, criterion = self.choice.judge, self.choice.criterion
        own = [cell for cell in self.cells if (cell.row["judge"], cell.row["criterion"]) == (judge, criterion)]
        asked = [cell for cell in own if cell.row["language"] == self.choice.cell]
        return min(asked or own, key=lambda cell: MOST_URGENT.index(cell.use), default=None)

    # --- stored answers -----------------------------------------------------------------------------------------------
    def _rows(self, question: NumbersQuestion) -> list[EstimateRow] | None:
        """The rows of a stored answer; None before there is one. If it is out of date, it is asked for again."""
        snapshot, is_stale = current_answer(self.campaign, question)
        if is_stale:
            self.stale.append(question)
        return list(snapshot.content["estimates"]) if isinstance(snapshot, Snapshot) else None

    @property
    def leaderboard_question(self) -> NumbersQuestion:
        """The same question as that of the page Generators, so that both have one answer."""
        return NumbersQuestion(
            rows="generator",
            columns="language",
            statistics=(*LEADERBOARD, POOLED),
            where=(("criterion", self.choice.criterion),),
            judges=(self.choice.judge,),
        )

    @property
    def bias_question(self) -> NumbersQuestion:
        """The bias of all judges, so that there is one answer whichever judge is chosen."""
        return NumbersQuestion(statistics=("bias",), reference=self.choice.reference, blind_only=True)

    @cached_property
    def leaderboard(self) -> list[EstimateRow] | None:
        if len(self.choices.generators) < 2 or not self.choice.judge or not self.choices.raters:
            return []
        return self._rows(self.leaderboard_question)

    @cached_property
    def biases(self) -> dict[tuple[str, str, str], Figure] | None:
        """By judge, criterion and language, the bias against the chosen reference; None before there is an answer.

        Against the panel's mean it is that of the decisions about judges, where there are some.
        """
        if not self.choice.judge:
            return {}
        if self.choice.reference == "mean" and self.decided is not None:
            found = {(cell.row["judge"], *cell_of(cell)): findings.bias_figure(cell) for cell in self.cells}
            return {key: figure for key, figure in found.items() if figure is not None}
        answer = self._rows(self.bias_question)
        if answer is None:
            return None
        return {
            (str(row["judge"]), str(row["criterion"]), str(row["language"])): Figure.of(row)
            for row in answer
            if row["value"] is not None and row["language"] in self.languages and row["judge"] in self.judges
        }

    @cached_property
    def _contradictions(self) -> list[Contradiction]:
        """The pairs of raters who agree less than by chance, in cells where agreement is in doubt.

        Kappa has to lie below 0 with certainty corrected for all pairs of the cell (Bonferroni), on `_FEWEST_SHARED`
        items or more.
        """
        doubtful = {cell for cell, state in self.states.items() if state in ("hardly", "not_certain")}
        pairs: dict[tuple[str, str], list[EstimateRow]] = {}
        for row in (self._rows(RATERS) or []) if doubtful else []:
            cell = str(row["criterion"]), str(row["language"])
            if row.get("raters") and row.get("high") is not None and cell in doubtful:
                pairs.setdefault(cell, []).append(row)
        found = []
        for (criterion, tag), rows in pairs.items():
            wider = NormalDist().inv_cdf(1 - 0.025 / len(rows)) / NormalDist().inv_cdf(0.975)
            for row in sorted(rows, key=lambda row: row["value"]):
                high = row["value"] + wider * (row["high"] - row["value"])
                if high < 0 and row["n_items"] >= _FEWEST_SHARED:
                    found.append(Contradiction(criterion, tag, (str(row["raters"][0]), str(row["raters"][1]))))
        return found

    @cached_property
    def states(self) -> dict[findings.Cell, str]:
        """How far people agree in each cell. Where judges are decided on, decisions say what a rubric problem is."""
        problems: dict[findings.Cell, bool] = {}
        for cell in self.cells:
            key = cell_of(cell)
            found = next((each for each in cell.row["findings"] if each["name"] == "rubric_problem"), None)
            if found is not None and cell.use is not Use.STALE:
                problems[key] = problems.get(key, False) or bool(found["holds"])
        states: dict[findings.Cell, str] = {}
        for figure in self.alphas:
            place = figure.criterion, figure.language
            states[place] = findings.agreement_state(figure, self._acs.get(place), self.floors, problems.get(place))
        return states

    @property
    def floors(self) -> Floors:
        if self.decided is None:
            return Floors()
        return Floors(self.decided.thresholds.alpha_ceiling, self.decided.thresholds.ac_ceiling)

    @cached_property
    def alphas(self) -> list[Figure]:
        """Krippendorff's alpha of every criterion in every shown language."""
        return [figure for figure in self._figures(KRIPPENDORFF_ALPHA) if figure.language in self.languages]

    @cached_property
    def _acs(self) -> dict[tuple[str, str | None], Figure]:
        return {(figure.criterion, figure.language): figure for figure in self._figures(GWET_AC)}

    def _figures(self, statistic: str) -> list[Figure]:
        return [Figure.of(row) for row in self.agreement or () if row["asked"] == statistic]

    @property
    def is_empty(self) -> bool:
        """Whether nobody has rated anything, and no judge has scored anything."""
        return not self.choices.raters and not self.choices.judges

    # --- what was found -----------------------------------------------------------------------------------------------
    @cached_property
    def findings(self) -> list[StudyFinding]:
        """One finding about each topic; topics whose answer is still computed are left out."""
        found = []
        if self.agreement is not None:
            found.append(
                findings.about_people(
                    self.alphas, self.states, self.names, floors=self.floors, contradictions=self._contradictions
                )
            )
        if self.decided is not None and self.decided.snapshot is not None:
            judge, states = self.choice.judge, self.states if self.agreement is not None else None
            against = "" if self.choice.reference == "mean" else str(REFERENCE_NAMES[self.choice.reference])
            of_judges = findings.about_judges(
                self.cells, judge, self.names,
                order=decisions.ORDER, states=states, biases=self.biases or {}, against=against,
            )  # fmt: skip
            found.append(of_judges)
        if (generators := self._about_generators()) is not None:
            found.append(generators)
        if self.agreement is not None:
            counts = self._independent
            found.append(findings.about_certainty(counts, self.cells, self.choice.judge, self.label_cost))
        return found

    def _about_generators(self) -> StudyFinding | None:
        """The finding about generators, or why there is none; None while it is computed."""
        about = self.names.criterion(self.choice.criterion)
        criteria = {each.key: each for each in self.campaign.rubric_version.criteria.all()}
        criterion = criteria.get(self.choice.criterion)
        text = ""
        if len(self.choices.generators) < 2:
            text = _("There are no two generators to compare.")
        elif criterion is None or criterion.level == Criterion.Level.NOMINAL:
            text = _("The scores of %(criterion)s have no order, so that generators have none either.")
        elif self.direction not in (Criterion.Direction.HIGHER, Criterion.Direction.LOWER):
            text = _("%(criterion)s has no better end, so that generators have no order on it.")
        elif not self.choice.judge:
            text = _("Generators are compared when a judge has scored all items, and people some of them.")
        if text:
            return StudyFinding("generators", (worded(text, criterion=about),))
        if self.leaderboard is None:
            return None
        return findings.about_generators(
            self.differences,
            self.languages,
            self.names,
            criterion=self.choice.criterion,
            direction=self.direction,
        )

    @property
    def _independent(self) -> list[int]:
        """The number of independent items of every figure that the sentences use."""
        counts = [figure.independent for figure in self.alphas if figure.is_defined]
        own = [cell for cell in self.cells if cell.row["judge"] == self.choice.judge and cell.use is not Use.STALE]
        counts += [findings.independent_items(cell) for cell in own]
        rows = [row for found in self.differences.values() for row in found if row["value"] is not None]
        return counts + [Figure.of(row).independent for row in rows]

    @cached_property
    def open_matters(self) -> list[Attention]:
        """What waits for a person: first that nothing is decided because no thresholds are declared."""
        found: list[Attention] = []
        if self.decided is None and self.is_lead:
            text = _("Declare what a judge has to reach: without thresholds nothing is decided.")
            found.append(Attention(text, reverse("thresholds", args=[self.campaign.project.slug])))
        cells = [DecidedCell.of(cell) for cell in (self.decided.cells if self.decided else ())]
        return found + open_work(self.campaign, cells, is_lead=self.is_lead, with_names=False)

    @property
    def direction(self) -> str:
        """Which end of the chosen criterion's scale is the better one."""
        criteria = self.campaign.rubric_version.criteria.all()
        return next((str(each.direction) for each in criteria if each.key == self.choice.criterion), "")

    @cached_property
    def differences(self) -> dict[str, list[EstimateRow]]:
        """By language, the differences of two generators on the chosen criterion."""
        found: dict[str, list[EstimateRow]] = {tag: [] for tag in self.languages}
        for row in self.leaderboard or ():
            if row["asked"] == DIFFERENCE and row["language"] in found:
                found[str(row["language"])].append(row)
        return {tag: rows for tag, rows in found.items() if rows}

    @cached_property
    def label_cost(self) -> LabelCost:
        """What an item takes here: people who rate it, the mean of their seconds, and what is paid."""
        done = Annotation.objects.filter(campaign=self.campaign, superseded_at=None)
        taken = done.aggregate(seconds=Avg("seconds"), n=Count("pk"), items=Count("item", distinct=True))
        seconds = float(taken["seconds"]) if taken["seconds"] else None
        overlap = round(taken["n"] / taken["items"]) if taken["items"] else 2
        return LabelCost(max(2, overlap), seconds, self._pay_per_item(seconds))

    def _pay_per_item(self, seconds: float | None) -> float | None:
        """What one person is paid for one item, if all duties of the campaign pay the same."""
        rates = set(PayRate.objects.filter(duty__campaign=self.campaign).values_list("unit", "amount"))
        if len(rates) != 1:
            return None
        unit, amount = rates.pop()
        if unit == PayRate.Unit.ITEM:
            return float(amount)
        return float(amount) * seconds / 3600 if seconds else None

    @cached_property
    def progress(self) -> dict[str, int]:
        """How many ratings there are of how many that were given out; imported ones have no assignment."""
        slots = Assignment.objects.filter(duty__campaign=self.campaign, duty__stands_for=None)
        submitted = Q(state=Assignment.State.SUBMITTED)
        return slots.aggregate(slots=Count("pk"), submitted=Count("pk", filter=submitted))

    def document(self) -> Mapping[str, Any]:
        """The findings as JSON. They are read first, because that is when it is known what is missing."""
        found = self.findings
        return {
            "choice": {name: getattr(self.choice, name) for name in ("judge", "criterion", "language", "reference")},
            "is_computed": not self.stale,
            "findings": [
                {
                    "topic": each.topic,
                    "sentences": [str(one) for one in each.sentences],
                    "is_preliminary": each.is_preliminary,
                }
                for each in found
            ],
            "open": [{"sentence": each.sentence, "address": each.address} for each in self.open_matters],
        }
