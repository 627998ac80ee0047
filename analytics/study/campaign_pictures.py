"""The four pictures of a campaign, and the decision that is shown in full, from the answers of its study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from analytics import items
from analytics.figures import Figure, Figures, HeatCell, Heatmap, heatmap, on_agreement, on_bias
from analytics.item_choices import REFERENCES, ItemChoice, item_options, settled_rule
from analytics.judges import decisions
from analytics.judges.reasons import CellDecision
from analytics.models import GateDecision
from analytics.places import CORRECTED, PANEL
from analytics.questions.question_names import REFERENCE_NAMES
from analytics.stats.declared.agreement import KRIPPENDORFF_ALPHA
from analytics.study import findings, pictures
from analytics.study.choice import StudyChoice
from analytics.study.findings import Names
from analytics.study.pictures import Drawing, Meter, Square
from analytics.study.study import CampaignStudy

Use = GateDecision.Use
MOST_JUDGES = 12
"""Judges whose squares are shown."""
WORST = 3
"""Items that are named beside a decision."""


@dataclass(frozen=True, slots=True)
class JudgeSquares:
    """The squares of one judge, by the tag and the name of each language."""

    judge: str
    query: str
    is_chosen: bool
    languages: tuple[tuple[str, str, tuple[Square | None, ...]], ...]


@dataclass(frozen=True, slots=True)
class WorstItem:
    """An item on which the chosen judge is far from the people: its name and address, both scores, its primary key."""

    pk: int
    name: str
    address: str
    judge: str
    panel: str


class CampaignPictures:
    """What the pictures show, for the choice of the study."""

    def __init__(self, study: CampaignStudy) -> None:
        self.study = study
        self.choice: StudyChoice = study.choice
        self.names: Names = study.names

    @cached_property
    def letters(self) -> dict[str, str]:
        """The letters that stand for each criterion."""
        return pictures.initials(self.study.criteria)

    @property
    def chosen_name(self) -> str:
        """Criterion and language of the decision that is shown in full."""
        cell = self.study.chosen_cell
        return self.names.cell(cell.row["criterion"], cell.row["language"]) if cell else ""

    @property
    def criterion_name(self) -> str:
        return self.study.criteria.get(self.choice.criterion, "")

    @property
    def reference_name(self) -> str:
        """What the bias is compared with."""
        return _("compared with: %s") % REFERENCE_NAMES[self.choice.reference]

    @property
    def squares(self) -> list[JudgeSquares]:
        """Every judge with a square for each criterion in each language."""
        by_place = {(cell.row["judge"], cell.row["language"], cell.row["criterion"]): cell for cell in self.study.cells}
        judges = list(dict.fromkeys(cell.row["judge"] for cell in self.study.cells))
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
                        tuple(self._square(by_place.get((judge, tag, key)), key) for key in self.study.criteria),
                    )
                    for tag in self.study.languages
                ),
            )
            for judge in judges[:MOST_JUDGES]
        ]

    @property
    def hidden_judges(self) -> int:
        """How many judges have decisions and no squares."""
        return max(0, len({cell.row["judge"] for cell in self.study.cells}) - MOST_JUDGES)

    def _square(self, cell: CellDecision | None, criterion: str) -> Square | None:
        if cell is None:
            return None
        language = cell.row["language"]
        return pictures.decision_square(
            cell,
            letters=self.letters[criterion],
            name=self.names.cell(criterion, language),
            query=self.choice.with_(judge=cell.row["judge"], criterion=criterion, cell=language),
            is_chosen=cell is self.study.chosen_cell,
        )

    @property
    def uses(self) -> list[tuple[str, str]]:
        """The decisions that occur, from the widest use: value and name."""
        occurring = {cell.use for cell in self.study.cells}
        return [(use.value, str(use.label)) for use in decisions.ORDER if use in occurring]

    @property
    def has_uncertain_squares(self) -> bool:
        return any(cell.state == "not_certain" for cell in self.study.cells)

    @property
    def meters(self) -> list[Meter]:
        return pictures.meters(self.study.chosen_cell) if self.study.chosen_cell else []

    @cached_property
    def biases(self) -> list[tuple[str, Figure]]:
        """By language, the bias of the chosen judge on the chosen criterion, where its decision compares it."""
        judge, criterion = self.choice.judge, self.choice.criterion
        own = {cell.row["language"]: cell.use for cell in self.study.cells if cell.row["judge"] == judge
               and cell.row["criterion"] == criterion}  # fmt: skip
        left_out = (Use.STALE, Use.RUBRIC_PROBLEM)
        return [
            (self.names.language(tag), figure)
            for (name, key, tag), figure in (self.study.biases or {}).items()
            if (name, key) == (judge, criterion) and own.get(tag) not in left_out
        ]

    @property
    def margin(self) -> float | None:
        """The declared margin of the bias on the chosen criterion, in points."""
        criterion = self.choice.criterion
        margins = (cell.row["margin"] for cell in self.study.cells if cell.row["criterion"] == criterion)
        return next(margins, None)

    @cached_property
    def forest(self) -> Drawing | None:
        return pictures.bias_forest(self.biases, self.margin)

    @cached_property
    def heat(self) -> Heatmap | None:
        """Krippendorff's alpha by criterion and language."""
        rows = [row for row in self.study.agreement or () if row["asked"] == KRIPPENDORFF_ALPHA]
        if not rows:
            return None
        plain = [{**row, "statistic": KRIPPENDORFF_ALPHA} for row in rows]
        return heatmap(
            Figures(plain),
            statistic=KRIPPENDORFF_ALPHA,
            criteria=list(self.study.criteria),
            languages=self.study.languages,
        )

    @cached_property
    def dots(self) -> Drawing | None:
        """The means of the generators by language: corrected by the judge where that was possible."""
        best: dict[tuple[str, str], Figure] = {}
        for asked in (PANEL, CORRECTED):
            for row in self.study.leaderboard or ():
                if row["asked"] == asked and row["value"] is not None and row["language"] in self.study.languages:
                    best[str(row["language"]), str(row["generator"])] = Figure.of(row)
        names = self.study.choices.generators
        means: dict[str, Sequence[tuple[str, Figure]]] = {
            self.names.language(tag): [(name, best[tag, name]) for name in names if (tag, name) in best]
            for tag in self.study.languages
        }
        undecided = [
            self.names.language(tag)
            for tag in self.study.languages
            if len(findings.may_be_first(self.study.differences.get(tag, ()), self.study.direction)) != 1
        ]
        return pictures.generator_dots(means, names, undecided)

    @property
    def heat_columns(self) -> list[tuple[str, str]]:
        return [(tag, self.names.language(tag)) for tag in (self.heat.languages if self.heat else ()) if tag]

    @property
    def heat_rows(self) -> list[tuple[str, list[tuple[HeatCell, str]]]]:
        """By the name of a criterion, its cells with the address of their items, those that disagree most first."""
        address = reverse("numbers_items", args=[self.study.campaign.project.slug, self.study.campaign.pk])
        return [
            (
                self.study.criteria.get(key, key),
                [
                    (cell, f"{address}?{cell.figure.items_query}&blind=only" if cell.figure else "")
                    for cell in row
                    if cell.language
                ],
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

    @property
    def about_means(self) -> str:
        """Which means of generators are shown: corrected ones where that was possible; else what a correction takes."""
        corrected = [row for row in self.study.leaderboard or () if row["asked"] == CORRECTED]
        if corrected and all(row["value"] is None for row in corrected):
            return _("The people’s mean by language, not corrected; simultaneous 95 % intervals.")
        return _("Mean by language, corrected by the judge where that was possible; simultaneous 95 % intervals.")

    @property
    def preliminary_decisions(self) -> str:
        """That decisions are based on few independent items; empty if none is."""
        counts = [findings.independent_items(cell) for cell in self.study.cells if cell.use is not Use.STALE]
        return findings.preliminary_sentence(counts)

    @property
    def preliminary_means(self) -> str:
        """The same of the means of generators."""
        marks = [mark for row in (self.dots.rows if self.dots else ()) for mark in row.marks]
        return findings.preliminary_sentence([mark.figure.independent for mark in marks])

    @property
    def basis_of_heat(self) -> str:
        """What all cells of the heat map rest on, once, where it is the same for all."""
        return _common_basis(self.study.alphas)

    @property
    def basis_of_bias(self) -> str:
        return _common_basis([figure for _name, figure in self.biases])

    # --- the items behind the decision that is shown in full ------------------------------------------------------
    @cached_property
    def item_choice(self) -> ItemChoice | None:
        """The items of the chosen decision, those first on which the judge and the people are furthest apart."""
        cell = self.study.chosen_cell
        options = item_options(self.study.campaign)
        run = options.judges.get(cell.row["judge"]) if cell else None
        if cell is None or run is None:
            return None
        criterion = options.criteria[cell.row["criterion"]]
        reference = self.choice.reference if self.choice.reference in REFERENCES else "mean"
        return ItemChoice(
            criterion=criterion, language=cell.row["language"], judge=cell.row["judge"], run=run, blind_only=True,
            compared=True, sort="judge_error", reference=settled_rule(criterion, reference),
        )  # fmt: skip

    @cached_property
    def worst(self) -> list[WorstItem]:
        """The items with the largest errors of the chosen decision; none where the judge is right everywhere."""
        if (choice := self.item_choice) is None:
            return []
        here = [self.study.campaign.project.slug, self.study.campaign.pk]
        scored = [each for each in items.listed_items(self.study.campaign, choice)[:WORST] if each.judge_error]
        return [
            WorstItem(
                item.pk,
                item.external_id,
                f"{reverse('numbers_item', args=[*here, item.pk])}?{choice.query}",
                f"{scores.judge.score:.3g}" if scores.judge and scores.judge.score is not None else "",
                f"{scores.reference:.3g}" if scores.reference is not None else "",
            )
            for item, scores in items.with_items(scored)
        ]


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
