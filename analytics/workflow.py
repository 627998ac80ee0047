"""The staged workflow of S0 over a campaign, as a checklist (METHODS 7, docs/workflow.md).

Four steps: measures of the texts rank generators alike in all languages; the panel agrees; the judge agrees with the
panel in one language; the judge's rankings carry over to the others. Each has a state from the project's thresholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from accounts import languages
from analytics.answer_pages import answer_now, criterion_names, current_answer
from analytics.figures import Figure
from analytics.judges import decisions
from analytics.judges.reasons import CellDecision
from analytics.judges.thresholds import current_thresholds
from analytics.models import GateDecision, GateThresholds
from analytics.questions.asked import QuestionChoices, question_choices
from analytics.questions.question import NumbersQuestion
from analytics.stats.declared.agreement import GWET_AC, KRIPPENDORFF_ALPHA
from annotation.models import Campaign

SURFACE = ("text.characters", "text.mattr", "text.turns", "text.words")
"""The measures of the texts that stand for the first stage of S0; in order, as an address has them."""
_FEWEST_GENERATORS = 3
_FEW_GENERATORS = 5
"""With fewer, τ can take fewer than eleven values."""
_MOST_SHOWN = 12
TAU_B = "stability.kendall_tau_b"
STEPS = ("surface", "panel", "judge", "languages")
Use = GateDecision.Use
_USABLE = (Use.JUDGE_ALONE, Use.JUDGE_WITH_CORRECTION, Use.RANKING_ONLY)
_PIVOT = "en"


class StepState(StrEnum):
    """How far a step is. From the worst: what the whole workflow is, is the first of these that a step has."""

    FAILED = "failed"
    NOT_RUN = "not_run"
    INSUFFICIENT = "insufficient"
    PASSED = "passed"

    @property
    def label(self) -> str:
        names = {
            "failed": _("failed"),
            "not_run": _("not run"),
            "insufficient": _("insufficient"),
            "passed": _("passed"),
        }
        return names[self.value]


@dataclass(frozen=True, slots=True)
class StepFigure:
    """One figure of a step: of a criterion or measure, in one language or between two; or a decision of the gate."""

    criterion: str
    name: str
    tags: tuple[str, ...]
    state: StepState
    figure: Figure | None = None
    decision: str = ""
    words: str = ""

    @property
    def languages(self) -> str:
        return " – ".join(languages.name_for(tag, get_language()) for tag in self.tags if tag)

    @property
    def number(self) -> str:
        """The figure, or the name of the decision."""
        if self.decision:
            return str(Use(self.decision).label)
        return self.figure.number if self.figure else ""

    @property
    def below(self) -> str:
        """Its interval and counts, or why it is undefined."""
        figure = self.figure
        if figure is None or not figure.is_defined:
            return figure.reason if figure else self.words
        spans = figure.interval or figure.no_interval
        return f"{spans} {figure.mark}".rstrip() + f" · {figure.basis}"


@dataclass(frozen=True, slots=True)
class WorkflowStep:
    """One step. `threshold` says what it asks for; `action`: what has to be done where it did not pass.

    `is_computed_now`: it has no figures yet because a worker computes them.
    """

    name: str
    state: StepState
    sentence: str
    threshold: str
    action: str = ""
    figures: tuple[StepFigure, ...] = ()
    is_computed_now: bool = False

    @property
    def label(self) -> str:
        """Its state, as the page writes it."""
        return _("being computed") if self.is_computed_now else self.state.label

    @property
    def title(self) -> str:
        return _titles()[self.name]

    @property
    def shown(self) -> list[StepFigure]:
        """The figures that did not pass first; at most `_MOST_SHOWN`."""
        order = list(StepState)
        return sorted(self.figures, key=lambda each: order.index(each.state))[:_MOST_SHOWN]

    @property
    def more(self) -> int:
        return max(0, len(self.figures) - _MOST_SHOWN)


@dataclass(frozen=True, slots=True)
class CampaignWorkflow:
    """The steps of a campaign. `stale`: the questions whose answers have to be computed, and what they are about."""

    thresholds: GateThresholds | None
    judge: str
    language: str
    steps: tuple[WorkflowStep, ...]
    stale: tuple[Any, ...] = ()

    @property
    def state(self) -> StepState:
        """Failed where a step failed; passed where all did."""
        found = {step.state for step in self.steps}
        return next((state for state in StepState if state in found), StepState.NOT_RUN)

    @property
    def next_step(self) -> WorkflowStep | None:
        """The first step that did not pass: later ones can't be relied on before it does."""
        return next((step for step in self.steps if step.state is not StepState.PASSED), None)


def _titles() -> dict[str, str]:
    return {
        "surface": _("Texts: measures rank the generators alike in all languages"),
        "panel": _("People: the panel agrees in every language"),
        "judge": _("Judge: it agrees with the panel in one language"),
        "languages": _("Languages: the judge ranks the generators alike in all of them"),
    }


# --- what the steps ask ----------------------------------------------------------------------------------------------
def rankings_question(judge: str) -> NumbersQuestion:
    """τ-b between two languages: by measures of the texts, the panel and the judge. One answer for steps 1 and 4."""
    judges = (judge,) if judge else ()
    return NumbersQuestion(columns="languages", statistics=(TAU_B,), measures=SURFACE, judges=judges, blind_only=True)


AGREEMENT = NumbersQuestion(statistics=(KRIPPENDORFF_ALPHA, GWET_AC), blind_only=True)


def campaign_workflow(
    campaign: Campaign,
    *,
    judge: str = "",
    language: str = "",
    now: bool = False,
    choices: QuestionChoices | None = None,
) -> CampaignWorkflow:
    """The steps as stored answers have them; `now` computes what is missing, for commands.

    Without a judge the first by name; without a language English, or the first that there is. Refused where `now` meets
    ratings that can't be used.
    """
    choices = choices or question_choices(campaign)
    declared = current_thresholds(campaign.project)
    judge = judge if judge in choices.judges else next(iter(choices.listed_judges(NumbersQuestion())), "")
    tags = choices.languages
    language = language if language in tags else _PIVOT if _PIVOT in tags else next(iter(tags), "")
    asked = [rankings_question(judge), AGREEMENT]
    found = [(answer_now(campaign, each), False) if now else current_answer(campaign, each) for each in asked]
    decided = (decisions.decide_now if now and declared else decisions.current_decisions)(campaign)
    stale: list[Any] = [each for each, (_snapshot, is_stale) in zip(asked, found, strict=True) if is_stale]
    if decided is not None and decided.is_stale:
        stale.append(decisions.settings_of(decided.thresholds))
    if declared is None:
        return CampaignWorkflow(None, judge, language, tuple(_undeclared(name) for name in STEPS), tuple(stale))
    rankings, agreement = (list(snapshot.content["estimates"]) if snapshot else None for snapshot, _is_stale in found)
    about = _About(campaign, declared, choices, judge, language)
    cells = [cell for cell in decided.of_judge(judge) if cell.row["language"] == language] if decided else []
    of_judge = about.of_judge(cells, is_missing=decided is not None and decided.is_stale and not cells)
    steps = (about.surface(rankings), about.panel(agreement), of_judge, about.carried_over(rankings))
    return CampaignWorkflow(declared, judge, language, steps, tuple(stale))


def _undeclared(name: str) -> WorkflowStep:
    sentence = _("No thresholds are declared, so that nothing passes or fails.")
    return WorkflowStep(name, StepState.NOT_RUN, sentence, "", "thresholds")


class _About:
    """What the steps of one campaign are judged by."""

    def __init__(
        self, campaign: Campaign, declared: GateThresholds, choices: QuestionChoices, judge: str, language: str
    ) -> None:
        self.declared, self.choices, self.judge, self.language = declared, choices, judge, language
        self.names = criterion_names(campaign)

    @property
    def _of_rankings(self) -> str:
        limits = {"tau": f"{self.declared.tau_b:g}", "low": f"{self.declared.tau_b_low:g}"}
        return _("Kendall’s τ-b of at least %(tau)s between every two languages, its interval above %(low)s.") % limits

    def surface(self, rows: Sequence[Mapping[str, Any]] | None) -> WorkflowStep:
        """Step 1: plain measures of the texts."""
        if reason := self._cannot_compare():
            return WorkflowStep("surface", StepState.INSUFFICIENT, reason, self._of_rankings, "items")
        own = [row for row in rows or () if row["asked"] == TAU_B and row["criterion"] in SURFACE]
        words = {
            StepState.PASSED: _("Measures of the texts rank the generators alike: the texts are comparable."),
            StepState.FAILED: _("The texts already differ between languages. A judge can’t be blamed for that alone."),
            StepState.INSUFFICIENT: self._too_wide(
                _("The intervals are too wide to say whether the texts are comparable.")
            ),
        }
        return self._step("surface", map(self._tau, own), words, self._of_rankings, "items", rows is None)

    def carried_over(self, rows: Sequence[Mapping[str, Any]] | None) -> WorkflowStep:
        """Step 4: the judge's rankings in the chosen language and in each other one."""
        if not self.judge:
            return self._no_judge("languages", self._of_rankings)
        if reason := self._cannot_compare():
            return WorkflowStep("languages", StepState.INSUFFICIENT, reason, self._of_rankings, "items")
        own = [
            row for row in rows or ()
            if row["asked"] == TAU_B and row["judge"] == self.judge and row["criterion"] not in SURFACE
            and self.language in (row["languages"] or ())
        ]  # fmt: skip
        words = {
            StepState.PASSED: _("The judge ranks the generators alike in all languages."),
            StepState.FAILED: _("The judge’s ranking changes with the language: calibrate it there, or use people."),
            StepState.INSUFFICIENT: self._too_wide(
                _("The intervals are too wide to say whether the rankings are alike.")
            ),
        }
        return self._step("languages", map(self._tau, own), words, self._of_rankings, "calibrate", rows is None)

    def panel(self, rows: Sequence[Mapping[str, Any]] | None) -> WorkflowStep:
        """Step 2: enough items with two ratings, and agreement above the floor of the gate."""
        declared = self.declared
        limits = {"n": declared.fewest_items, "alpha": f"{declared.alpha_ceiling:g}", "ac": f"{declared.ac_ceiling:g}"}
        threshold = _("%(n)d items with two ratings; Krippendorff’s α of %(alpha)s or Gwet’s AC of %(ac)s.") % limits
        of_ac = {_place(row): row for row in rows or () if row["asked"] == GWET_AC}
        own = [self._agreement(row, of_ac.get(_place(row))) for row in rows or () if row["asked"] == KRIPPENDORFF_ALPHA]
        words = {
            StepState.PASSED: _("The panel agrees on every criterion in every language."),
            StepState.FAILED: _("The panel agrees hardly more than by chance: work on the rubric first."),
            StepState.INSUFFICIENT: _("More items with two ratings are needed: about 100 in a language are advised."),
        }
        step = self._step("panel", own, words, threshold, "label", rows is None)
        return replace(step, action="rubric") if step.state is StepState.FAILED else step

    def of_judge(self, cells: Sequence[CellDecision], *, is_missing: bool) -> WorkflowStep:
        """Step 3: the decisions of the gate in one language."""
        threshold = _("The decision is “judge alone”, “with correction” or “ranking only” on every criterion.")
        if not self.judge:
            return self._no_judge("judge", threshold)
        words = {
            StepState.PASSED: _("The judge agrees with the panel in this language."),
            StepState.FAILED: _("The judge doesn’t agree with the panel in this language."),
            StepState.INSUFFICIENT: _("It can’t be decided yet whether the judge agrees with the panel."),
        }
        return self._step("judge", map(self._decision, cells), words, threshold, "decisions", is_missing)

    def _step(
        self, name: str, found: Iterable[StepFigure], words: Mapping[StepState, str], threshold: str, action: str,
        is_missing: bool,
    ) -> WorkflowStep:  # fmt: skip
        figures = tuple(found)
        if not figures:
            sentence = _("There is nothing to compare.")
            if is_missing:
                sentence = _("It is being computed.")
                return WorkflowStep(name, StepState.NOT_RUN, sentence, threshold, is_computed_now=True)
            if name == "judge":
                sentence = _("The judge has no decision in this language: run it on items that people rated.")
            return WorkflowStep(name, StepState.NOT_RUN, sentence, threshold, "run" if name == "judge" else action)
        states = {figure.state for figure in figures}
        state = next(each for each in StepState if each in states)
        return WorkflowStep(name, state, words[state], threshold, "" if state is StepState.PASSED else action, figures)

    def _no_judge(self, name: str, threshold: str) -> WorkflowStep:
        sentence = _("No judge has scored these items.")
        return WorkflowStep(name, StepState.NOT_RUN, sentence, threshold, "run")

    def _too_wide(self, sentence: str) -> str:
        """With what would help: of few generators τ has few values, however many items they have."""
        if (n := len(self.choices.generators)) >= _FEW_GENERATORS:
            return sentence
        more = _("With %d generators τ has few values: items of more generators help most.") % n
        return f"{sentence} {more}"

    def _cannot_compare(self) -> str:
        if len(self.choices.languages) < 2:
            return _("The items are in one language: there is nothing to compare.")
        if len(self.choices.generators) < _FEWEST_GENERATORS:
            return _("A ranking needs three generators or more.")
        return ""

    def _name(self, criterion: str) -> str:
        measures = {
            "text.characters": _("Characters"), "text.words": _("Words"), "text.turns": _("Turns"),
            "text.mattr": _("Variety of words (MATTR)"),
        }  # fmt: skip
        return measures.get(criterion) or self.names.get(criterion, criterion)

    def _tau(self, row: Mapping[str, Any]) -> StepFigure:
        state = StepState.PASSED
        if row["value"] is None:
            state = StepState.INSUFFICIENT
        elif row["value"] < self.declared.tau_b and (row.get("high") is None or row["high"] < self.declared.tau_b):
            state = StepState.FAILED
        elif row["value"] < self.declared.tau_b or row.get("low") is None or row["low"] <= self.declared.tau_b_low:
            state = StepState.INSUFFICIENT
        key = str(row["criterion"])
        return StepFigure(key, self._name(key), tuple(row["languages"] or ()), state, Figure.of(row))

    def _agreement(self, row: Mapping[str, Any], of_ac: Mapping[str, Any] | None) -> StepFigure:
        """Failed where both are clearly below their floors, as RUBRIC_PROBLEM; passed where one of them reaches it."""
        floors = ((row, self.declared.alpha_ceiling), (of_ac or {}, self.declared.ac_ceiling))
        defined = [(each, floor) for each, floor in floors if each.get("value") is not None]
        key = str(row["criterion"])
        if row["n_items"] < self.declared.fewest_items or not defined:
            state = StepState.INSUFFICIENT
        elif any(each["value"] >= floor for each, floor in defined):
            state = StepState.PASSED
        elif all(each.get("high") is not None and each["high"] < floor for each, floor in defined):
            state = StepState.FAILED
        else:
            state = StepState.INSUFFICIENT
        ac = Figure.of(of_ac).number if of_ac and of_ac["value"] is not None else ""
        beside = _("AC %s") % ac if ac else ""
        return StepFigure(key, self._name(key), (str(row["language"] or ""),), state, Figure.of(row), words=beside)

    def _decision(self, cell: CellDecision) -> StepFigure:
        state = StepState.PASSED if cell.use in _USABLE else StepState.INSUFFICIENT
        if cell.use is Use.HUMANS_ONLY or cell.use is Use.RUBRIC_PROBLEM:
            state = StepState.FAILED
        key, reasons = str(cell.row["criterion"]), cell.reasons
        words = " ".join([f"{cell.basis}.", *reasons[:1]])
        return StepFigure(key, self._name(key), (self.language,), state, decision=cell.use.value, words=words)


def _place(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row["criterion"]), str(row["language"])
