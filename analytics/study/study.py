"""A study: what stored answers and decisions say of a campaign, for the choice of judge, criterion and language.

Nothing is computed here. What is missing or out of date is listed in `CampaignStudy.stale`, for a worker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from statistics import NormalDist
from typing import Any
from urllib.parse import urlencode

from django.core.cache import caches
from django.db.models import Avg, Count, Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from accounts import languages
from analytics.answer_pages import criterion_names, current_answer
from analytics.answers import revisions
from analytics.figures import Figure, Figures, HeatCell, Heatmap, heatmap, on_agreement, on_bias
from analytics.grids import EstimateRow
from analytics.judges import decisions
from analytics.judges.reasons import CellDecision
from analytics.models import GateDecision, Snapshot
from analytics.overview import Attention
from analytics.places import CORRECTED, DIFFERENCE, LEADERBOARD, PANEL, POOLED
from analytics.questions.asked import QuestionChoices, question_choices
from analytics.questions.question import DEFAULT_SETTINGS, NumbersQuestion, Settings
from analytics.questions.question_names import REFERENCE_NAMES
from analytics.study import findings, pictures
from analytics.study.findings import Contradiction, Floors, LabelCost, Names, StudyFinding
from analytics.study.open_matters import open_matters
from analytics.study.pictures import Drawing, Meter, Square
from analytics.study.sentences import worded
from analytics.workflow import AGREEMENT
from annotation.models import Annotation, Assignment, Campaign, Criterion, PayRate

KRIPPENDORFF, GWET = "krippendorff_alpha", "gwet_ac"
RATERS = NumbersQuestion(rows="raters", columns="language", statistics=("pairs.cohen_kappa",), blind_only=True)
FEWEST_SHARED = 30
"""Items that two raters share, below which nobody is said to contradict the other."""
MOST_JUDGES = 12
"""Judges whose squares are shown."""
COMPARED_WITH = ("mean", "median", "mode", "mode_split", "each")
"""The rules of reference that a study may be compared with: those that every campaign has."""
SETTLED, RECENTLY = timedelta(minutes=2), timedelta(days=2)
"""How old the numbers over all raters are before the answers are prepared, and until when."""
Use = GateDecision.Use
MOST_URGENT = (
    Use.HUMANS_ONLY, Use.RUBRIC_PROBLEM, Use.RANKING_ONLY, Use.JUDGE_WITH_CORRECTION, Use.STALE, Use.INSUFFICIENT,
    Use.JUDGE_ALONE,
)  # fmt: skip
"""Which decision is shown in full without a choice: the first of these that there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyChoice:
    """What a reader chose in the bar of a study; empty: the first judge or criterion, all languages, the mean."""

    judge: str = ""
    criterion: str = ""
    language: str = ""
    reference: str = "mean"
    cell: str = ""
    """The language of the decision that is shown in full."""

    @property
    def query(self) -> str:
        """The choice as the parameters of an address, without what is not chosen."""
        chosen = {"judge": self.judge, "criterion": self.criterion, "language": self.language, "cell": self.cell}
        chosen["reference"] = "" if self.reference == "mean" else self.reference
        return urlencode({name: value for name, value in chosen.items() if value})

    def with_(self, **changes: str) -> str:
        """The parameters of an address with some of them changed."""
        return replace(self, **changes).query


@dataclass(frozen=True, slots=True)
class JudgeSquares:
    """The squares of one judge, by the tag and the name of each language."""

    judge: str
    query: str
    is_chosen: bool
    languages: tuple[tuple[str, str, tuple[Square | None, ...]], ...]


class CampaignStudy:
    """What was found in a campaign. Answers are read once, at the first use of what rests on them."""

    def __init__(self, campaign: Campaign, choice: StudyChoice, *, is_lead: bool) -> None:
        self.campaign, self.is_lead = campaign, is_lead
        self.stale: list[Settings] = []
        self.choices: QuestionChoices = question_choices(campaign)
        self.criteria = {key: name for key, name in criterion_names(campaign).items() if key in self.choices.criteria}
        self.decided = decisions.current_decisions(campaign)
        if self.decided is not None and self.decided.is_stale:
            self.stale.append(decisions.settings_of(self.decided.thresholds))
        self.choice = self._checked(choice)
        self._agreement = self._rows(AGREEMENT)

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
        """The judges that a form offers, those that have decisions first; judges that are only cells of designs are
        hidden."""
        listed = self.choices.listed_judges(NumbersQuestion())
        decided = [name for name in (self.decided.judges if self.decided else ()) if name in listed]
        return list(dict.fromkeys([*decided, *listed]))

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
        """The same question as that of the page Results, so that both have one answer."""
        return NumbersQuestion(
            rows="generator",
            columns="language",
            statistics=(*LEADERBOARD, POOLED),
            where=(("criterion", self.choice.criterion),),
            judges=(self.choice.judge,),
        )

    @property
    def bias_question(self) -> NumbersQuestion:
        judges = (self.choice.judge,) if self.choice.judge else ()
        return NumbersQuestion(statistics=("bias",), judges=judges, reference=self.choice.reference, blind_only=True)

    @cached_property
    def _leaderboard(self) -> list[EstimateRow] | None:
        if len(self.choices.generators) < 2 or not self.choice.judge or not self.choices.raters:
            return []
        return self._rows(self.leaderboard_question)

    @cached_property
    def _contradictions(self) -> list[Contradiction]:
        """The pairs of raters who agree less than by chance, in cells where agreement is in doubt.

        Kappa has to lie below 0 with certainty corrected for all pairs of the cell (Bonferroni), on `FEWEST_SHARED`
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
                if high < 0 and row["n_items"] >= FEWEST_SHARED:
                    found.append(Contradiction(criterion, tag, (str(row["raters"][0]), str(row["raters"][1]))))
        return found

    @cached_property
    def states(self) -> dict[findings.Cell, str]:
        """How far people agree in each cell. Where judges are decided on, decisions say what a rubric problem is."""
        problems: dict[findings.Cell, bool] = {}
        for cell in self.cells:
            key = cell.row["criterion"], cell.row["language"]
            found = next((each for each in cell.row["findings"] if each["name"] == "rubric_problem"), None)
            if found is not None and cell.use is not Use.STALE:
                problems[key] = problems.get(key, False) or bool(found["holds"])
        states = {}
        for figure in self.alphas:
            key = figure.criterion, figure.language
            states[key] = findings.agreement_state(figure, self._acs.get(key), self.floors, problems.get(key))
        return states

    @property
    def floors(self) -> Floors:
        if self.decided is None:
            return Floors()
        return Floors(self.decided.thresholds.alpha_ceiling, self.decided.thresholds.ac_ceiling)

    @cached_property
    def alphas(self) -> list[Figure]:
        """Krippendorff's alpha of every criterion in every shown language."""
        return [figure for figure in self._figures(KRIPPENDORFF) if figure.language in self.languages]

    @cached_property
    def _acs(self) -> dict[tuple[str, str | None], Figure]:
        return {(figure.criterion, figure.language): figure for figure in self._figures(GWET)}

    def _figures(self, statistic: str) -> list[Figure]:
        return [Figure.of(row) for row in self._agreement or () if row["asked"] == statistic]

    @property
    def is_empty(self) -> bool:
        """Whether nobody has rated anything, and no judge has scored anything."""
        return not self.choices.raters and not self.choices.judges

    # --- what was found -----------------------------------------------------------------------------------------------
    @cached_property
    def findings(self) -> list[StudyFinding]:
        """One finding about each topic; topics whose answer is still computed are left out."""
        found = []
        if self._agreement is not None:
            found.append(
                findings.about_people(
                    self.alphas, self.states, self.names, floors=self.floors, contradictions=self._contradictions
                )
            )
        if self.decided is not None and self.decided.snapshot is not None:
            judge, states = self.choice.judge, self.states if self._agreement is not None else None
            found.append(findings.about_judges(self.cells, judge, self.names, order=decisions.ORDER, states=states))
        if (generators := self._about_generators()) is not None:
            found.append(generators)
        if self._agreement is not None:
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
        if self._leaderboard is None:
            return None
        return findings.about_generators(
            self._differences,
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
        rows = [row for found in self._differences.values() for row in found if row["value"] is not None]
        return counts + [Figure.of(row).independent for row in rows]

    @cached_property
    def open_matters(self) -> list[Attention]:
        return open_matters(self.campaign, self.decided, is_lead=self.is_lead)

    @property
    def direction(self) -> str:
        """Which end of the chosen criterion's scale is the better one."""
        criteria = self.campaign.rubric_version.criteria.all()
        return next((str(each.direction) for each in criteria if each.key == self.choice.criterion), "")

    @cached_property
    def _differences(self) -> dict[str, list[EstimateRow]]:
        """By language, the differences of two generators on the chosen criterion."""
        found: dict[str, list[EstimateRow]] = {tag: [] for tag in self.languages}
        for row in self._leaderboard or ():
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

    # --- pictures -----------------------------------------------------------------------------------------------------
    @cached_property
    def letters(self) -> dict[str, str]:
        """The letters that stand for each criterion."""
        return pictures.initials(self.criteria)

    @property
    def chosen_name(self) -> str:
        """Criterion and language of the decision that is shown in full."""
        cell = self.chosen_cell
        return self.names.cell(cell.row["criterion"], cell.row["language"]) if cell else ""

    @property
    def criterion_name(self) -> str:
        return self.criteria.get(self.choice.criterion, "")

    @property
    def reference_name(self) -> str:
        """What the bias is compared with."""
        return _("compared with: %s") % REFERENCE_NAMES[self.choice.reference]

    @property
    def squares(self) -> list[JudgeSquares]:
        """Every judge with a square for each criterion in each language."""
        by_place = {(cell.row["judge"], cell.row["language"], cell.row["criterion"]): cell for cell in self.cells}
        judges = list(dict.fromkeys(cell.row["judge"] for cell in self.cells))
        judges.sort(key=lambda name: name != self.choice.judge)  # the chosen one first, so that it is always shown
        return [
            JudgeSquares(
                judge,
                self.choice.with_(judge=judge),
                judge == self.choice.judge,
                tuple(
                    (
                        tag,
                        self.names.language(tag),
                        tuple(self._square(by_place.get((judge, tag, key)), key) for key in self.criteria),
                    )
                    for tag in self.languages
                ),
            )
            for judge in judges[:MOST_JUDGES]
        ]

    @property
    def hidden_judges(self) -> int:
        """How many judges have decisions and no squares."""
        return max(0, len({cell.row["judge"] for cell in self.cells}) - MOST_JUDGES)

    def _square(self, cell: CellDecision | None, criterion: str) -> Square | None:
        if cell is None:
            return None
        row = cell.row
        state = _("not certain") if cell.state == "not_certain" else ""
        about = (row["judge"], self.names.cell(criterion, row["language"]), cell.use.label, state, cell.basis)
        return Square(
            letters=self.letters[criterion],
            criterion=criterion,
            language=row["language"],
            use=cell.use.value,
            state=cell.state,
            title=" · ".join(str(part) for part in about if part),
            query=self.choice.with_(judge=row["judge"], criterion=criterion, cell=row["language"]),
            is_chosen=cell is self.chosen_cell,
        )

    @property
    def uses(self) -> list[tuple[str, str]]:
        """The decisions that occur, from the widest use: value and name."""
        occurring = {cell.use for cell in self.cells}
        return [(use.value, str(use.label)) for use in decisions.ORDER if use in occurring]

    @property
    def has_uncertain_squares(self) -> bool:
        return any(cell.state == "not_certain" for cell in self.cells)

    @property
    def meters(self) -> list[Meter]:
        return pictures.meters(self.chosen_cell) if self.chosen_cell else []

    @cached_property
    def biases(self) -> list[tuple[str, Figure]]:
        """By language, the bias of the chosen judge on the chosen criterion against the chosen reference."""
        judge, criterion = self.choice.judge, self.choice.criterion
        if self.choice.reference == "mean" and self.decided is not None:
            own = [cell for cell in self.cells if (cell.row["judge"], cell.row["criterion"]) == (judge, criterion)]
            own = [cell for cell in own if cell.use not in (Use.STALE, Use.RUBRIC_PROBLEM)]
            figures = [(cell.row["language"], findings.bias_figure(cell)) for cell in own]
            return [(self.names.language(tag), figure) for tag, figure in figures if figure is not None]
        if not judge:
            return []
        answer = self._rows(self.bias_question) or ()
        rows = [row for row in answer if row["criterion"] == criterion and row["value"] is not None]
        return [
            (self.names.language(str(row["language"])), Figure.of(row))
            for row in rows
            if row["language"] in self.languages
        ]

    @property
    def margin(self) -> float | None:
        """The declared margin of the bias on the chosen criterion, in points."""
        criterion = self.choice.criterion
        margins = (cell.row["margin"] for cell in self.cells if cell.row["criterion"] == criterion)
        return next(margins, None)

    @cached_property
    def forest(self) -> Drawing | None:
        return pictures.bias_forest(self.biases, self.margin)

    @cached_property
    def heat(self) -> Heatmap | None:
        """Krippendorff's alpha by criterion and language."""
        rows = [row for row in self._agreement or () if row["asked"] == KRIPPENDORFF]
        if not rows:
            return None
        plain = [{**row, "statistic": KRIPPENDORFF} for row in rows]
        return heatmap(Figures(plain), statistic=KRIPPENDORFF, criteria=list(self.criteria), languages=self.languages)

    @cached_property
    def dots(self) -> Drawing | None:
        """The means of the generators by language: corrected by the judge where that was possible."""
        best: dict[tuple[str, str], Figure] = {}
        for asked in (PANEL, CORRECTED):
            for row in self._leaderboard or ():
                if row["asked"] == asked and row["value"] is not None and row["language"] in self.languages:
                    best[str(row["language"]), str(row["generator"])] = Figure.of(row)
        names = self.choices.generators
        means: dict[str, Sequence[tuple[str, Figure]]] = {
            self.names.language(tag): [(name, best[tag, name]) for name in names if (tag, name) in best]
            for tag in self.languages
        }
        undecided = [
            self.names.language(tag)
            for tag in self.languages
            if len(findings.may_be_first(self._differences.get(tag, ()), self.direction)) != 1
        ]
        return pictures.generator_dots(means, names, undecided)

    @property
    def heat_columns(self) -> list[tuple[str, str]]:
        return [(tag, self.names.language(tag)) for tag in (self.heat.languages if self.heat else ()) if tag]

    @property
    def heat_rows(self) -> list[tuple[str, list[tuple[HeatCell, str]]]]:
        """By the name of a criterion, its cells with the address of their items, those that disagree most first."""
        items = reverse("numbers_items", args=[self.campaign.project.slug, self.campaign.pk])
        return [
            (
                self.criteria.get(key, key),
                [(cell, f"{items}?{cell.figure.items_query}" if cell.figure else "") for cell in row if cell.language],
            )
            for key, row in (self.heat.rows if self.heat else ())
        ]

    @property
    def heat_sentence(self) -> str:
        return on_agreement(self.heat, self.names.criterion, self.names.language) if self.heat else ""

    @property
    def bias_sentence(self) -> str:
        """In which languages the interval of the bias excludes 0, and in which direction."""
        return on_bias((figure for _name, figure in self.biases), self.names.language)

    # --- what is the same in all cells --------------------------------------------------------------------------------
    @property
    def basis_of_heat(self) -> str:
        """What all cells of the heat map rest on, once, where it is the same for all."""
        return _common_basis(self.alphas)

    @property
    def basis_of_bias(self) -> str:
        return _common_basis([figure for _name, figure in self.biases])

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


def _common_basis(figures: Sequence[Figure]) -> str:
    """The counts if they are the same for all figures; else the range of items."""
    known = [figure for figure in figures if figure.is_defined]
    bases = {figure.basis for figure in known}
    if len(bases) == 1:
        return bases.pop()
    counts = [figure.n_items for figure in known]
    if not counts or min(counts) == max(counts):
        return ngettext("%d item", "%d items", counts[0]) % counts[0] if counts else ""
    return _("%(low)d to %(high)d items") % {"low": min(counts), "high": max(counts)}


def settled_campaigns(now: datetime | None = None) -> list[Campaign]:
    """The open campaigns whose numbers over all raters are current and at least `SETTLED` old, at most `RECENTLY`.

    So much time has passed since the last rating, import or judge run that changed them. Those that `mark_as_prepared`
    was called for in this state are left out.
    """
    now = now or timezone.now()
    stored = Snapshot.objects.filter(
        **revisions.settings_identity(DEFAULT_SETTINGS),
        created_at__lte=now - SETTLED,
        created_at__gt=now - RECENTLY,
        campaign__project__archived_at=None,
    ).exclude(campaign__state=Campaign.State.CLOSED)
    newest = dict(stored.order_by("pk").values_list("campaign", "revision"))
    current = revisions.campaign_revisions(newest.keys())
    prepared = caches["content"].get_many([_prepared_key(pk) for pk in newest])
    wanted = [pk for pk, found in newest.items() if found == current.get(pk) != prepared.get(_prepared_key(pk))]
    return list(Campaign.objects.filter(pk__in=wanted).select_related("project", "dataset", "rubric_version__rubric"))


def _prepared_key(campaign: int) -> str:
    return f"study-prepared:{campaign}"


def mark_as_prepared(campaign: Campaign) -> None:
    """Remember that the study of a campaign needs nothing more in its current state."""
    revision = revisions.campaign_revisions([campaign.pk])[campaign.pk]
    caches["content"].set(_prepared_key(campaign.pk), revision, RECENTLY.total_seconds())


def stale_questions(campaign: Campaign) -> list[Settings]:
    """The answers that the study of a campaign needs without a choice, and that a worker has to compute."""
    study = CampaignStudy(campaign, StudyChoice(), is_lead=False)
    _needed = study.findings, study.dots, study.forest
    return study.stale
