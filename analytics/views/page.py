"""The page "Agreement and calibration" as its template reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from accounts import languages
from analytics import pictures, sentences
from analytics.figures import SMALL, Figure, Figures, Labelled, Spread, spread
from analytics.heatmaps import CHANCE_CORRECTED, COEFFICIENTS, HeatCell, Heatmap, heatmap
from analytics.models import Chart, Snapshot
from analytics.views import choices
from annotation.models import Campaign

COEFFICIENT_NAMES = {
    "krippendorff_alpha": (gettext_lazy("Krippendorff’s α"), "α"),
    "fleiss_kappa": (gettext_lazy("Fleiss’ κ"), "κ"),
    "gwet_ac": (gettext_lazy("Gwet’s AC"), "AC"),
    "percent_agreement": (gettext_lazy("Percent agreement"), "%"),
}
STATISTIC_NAMES = {
    **{key: name for key, (name, _symbol) in COEFFICIENT_NAMES.items()},
    "applicability_agreement": gettext_lazy("Percent agreement"),
    "applicability_ac": gettext_lazy("Gwet’s AC1"),
    "mae": gettext_lazy("MAE"),
    "bias": gettext_lazy("Bias"),
    "cohen_kappa": gettext_lazy("Weighted κ"),
    "spearman": gettext_lazy("Spearman ρ"),
}
APPLICABILITY = ("applicability_agreement", "applicability_ac")
CALIBRATION = ("mae", "bias", "cohen_kappa", "spearman")
TOGETHER, EACH = "all", "each"
REASONS = {
    "out_of_range": gettext_lazy("off the scale"),
    "unparsed": gettext_lazy("unreadable"),
    "refused": gettext_lazy("refused"),
    "truncated": gettext_lazy("cut off"),
    "error": gettext_lazy("errors"),
    "stopped": gettext_lazy("stopped by a critical mark"),
    "without_reference": gettext_lazy("on items with a tied panel mode"),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table: what it is about, and its figures in the order of the columns."""

    criterion: str
    language: str
    key: str
    figures: tuple[Figure | None, ...]
    is_all: bool = False

    @property
    def basis(self) -> str:
        """What the row's figures rest on, when they rest on the same."""
        return next((figure.basis for figure in self.figures if figure), "")

    @property
    def made(self) -> list[tuple[str, Figure]]:
        """Each figure under its name, to say how it was computed and from what."""
        return [(str(STATISTIC_NAMES[figure.statistic]), figure) for figure in self.figures if figure]


class NumbersPage:
    """One snapshot seen through a coefficient, a judge and a criterion."""

    small = SMALL

    def __init__(self, *, campaign: Campaign, snapshot: Snapshot, query: QueryDict, chart: str = "") -> None:
        self.campaign, self.snapshot, self.chart = campaign, snapshot, chart
        self.content: dict[str, Any] = snapshot.content
        self.figures = Figures(self.content["estimates"])
        self.languages = tuple(sorted(self.content["languages"], key=self.language_name))
        self.statistic = choices.one_of(query.get("coefficient"), COEFFICIENTS)
        self.judge = choices.one_of(query.get("judge"), [judge["name"] for judge in self.judges])
        self.criterion = choices.one_of(query.get("criterion"), list(self.criteria))
        self.part = choices.one_of(query.get("part"), [key for key, _name in self.parts])

    @cached_property
    def criteria(self) -> dict[str, str]:
        """Every criterion of the rubric that somebody or some judge scored, by key, with its name."""
        spoken = get_language() or "en"
        counted = {row["criterion"] for row in self.content["counts"]}
        found = self.campaign.rubric_version.criteria.all()
        return {each.key: each.says("name", spoken) or each.key for each in found if each.key in counted}

    @property
    def judges(self) -> list[dict[str, Any]]:
        return list(self.content["judges"])

    @property
    def chosen(self) -> dict[str, str]:
        """What the address says beyond the raters."""
        return {"coefficient": self.statistic, "judge": self.judge, "criterion": self.criterion, "part": self.part}

    @property
    def run(self) -> dict[str, Any]:
        """The run of the judge shown; empty where there is no judge."""
        return next((dict(each) for each in self.judges if each["name"] == self.judge), {})

    @property
    def coefficient(self) -> str:
        return str(COEFFICIENT_NAMES[self.statistic][0])

    @property
    def symbol(self) -> str:
        return COEFFICIENT_NAMES[self.statistic][1]

    @property
    def coefficients(self) -> list[tuple[str, str]]:
        return [(key, str(COEFFICIENT_NAMES[key][0])) for key in COEFFICIENTS]

    @property
    def has_threshold(self) -> bool:
        return self.statistic in CHANCE_CORRECTED

    @property
    def whole(self) -> str | None:
        """The language of figures about everything: None, all languages, or the only one."""
        return self.languages[0] if len(self.languages) == 1 else None

    # --- key figures --------------------------------------------------------------------------------------------------

    @cached_property
    def agreement(self) -> Spread | None:
        return spread(self.figures.each(self.statistic, self.criteria, [self.whole]))

    @property
    def agreement_range(self) -> str:
        return self._range(self.agreement)

    @property
    def judged_range(self) -> str:
        return self._range(self.judged)

    def _range(self, found: Spread | None) -> str:
        """From the lowest criterion to the highest, by name; nothing for a single one."""
        if found is None or found.count == 1:
            return ""
        return found.between(*(self.criteria[figure.criterion] for figure in (found.lowest, found.highest)))

    @cached_property
    def judged(self) -> Spread | None:
        return spread(self.figures.each("cohen_kappa", self.criteria, [self.whole], self.judge))

    @cached_property
    def attended(self) -> list[HeatCell]:
        return [cell for cell in self.heat.cells if cell.needs_attention]

    @property
    def attended_firmly(self) -> int:
        """How many of them rest on enough items."""
        return sum(not cell.is_muted for cell in self.attended)

    # --- agreement ----------------------------------------------------------------------------------------------------

    @cached_property
    def heat(self) -> Heatmap:
        return heatmap(self.figures, statistic=self.statistic, criteria=list(self.criteria), languages=self.languages)

    @property
    def heat_rows(self) -> list[tuple[str, list[tuple[HeatCell, str, str]]]]:
        """Each criterion's name and its cells, with what a reader is told of the cell and the key of its table row."""
        return [
            (self.criteria[criterion], [(cell, self._told(cell), _key(criterion, cell.language)) for cell in cells])
            for criterion, cells in self.heat.rows
        ]

    @property
    def heat_languages(self) -> list[tuple[str | None, str]]:
        return [(tag, self.language_name(tag)) for tag in self.heat.languages]

    @property
    def undefined(self) -> list[str]:
        """A sentence for every blank cell."""
        return [self._told(cell) for cell in self.heat.undefined]

    @property
    def agreement_sentence(self) -> str:
        return sentences.on_agreement(self.heat, self.criteria.__getitem__)

    @property
    def agreement_lines(self) -> list[Line]:
        """The heatmap as a table, every coefficient beside the chosen one."""
        return self._lines(COEFFICIENTS, self.heat.languages)

    @property
    def applicability_lines(self) -> list[Line]:
        """Agreement on whether the criterion applies at all, where somebody said that it doesn't."""
        return self._lines(APPLICABILITY, self.heat.languages)

    # --- calibration --------------------------------------------------------------------------------------------------

    @property
    def parts(self) -> list[tuple[str, str]]:
        """What the calibration table may show: all languages together, one of them, or each of them."""
        if len(self.languages) < 2:
            return []
        single = [(tag, self.language_name(tag)) for tag in self.languages]
        return [(TOGETHER, _("All languages")), *single, (EACH, _("Each language"))]

    @property
    def calibration_lines(self) -> list[Line]:
        shown = {TOGETHER: [self.whole], EACH: self.heat.languages, "": [self.whole]}.get(self.part, [self.part])
        return self._lines(CALIBRATION, shown, judge=self.judge)

    @property
    def calibration_sentence(self) -> str:
        figures = self.figures.each("cohen_kappa", self.criteria, [self.whole], self.judge)
        return sentences.on_calibration(figures, self.criteria.__getitem__)

    @property
    def mode_sentence(self) -> str:
        """What the mode leaves out of the figures of the judge shown, language by language, where that is much."""
        counts = list(self.figures.each("without_reference", self.criteria, self.languages, self.judge))
        language_name = self.language_name if len(self.languages) > 1 else None
        return sentences.on_mode(counts, self.criteria.__getitem__, language_name)

    @property
    def left_out(self) -> list[tuple[str, int]]:
        """Why verdicts of this judge, and items without a settled panel score, enter no figure of the table."""
        tag = self.part if self.part in self.languages else self.whole
        counted: Counter[str] = Counter()
        for row in self.content["counts"]:
            if row["judge"] == self.judge and row.get("language") == tag:
                counted.update(row["reasons"])
        for figure in self.figures.each("without_reference", self.criteria, [tag], self.judge):
            counted[figure.statistic] += int(figure.value or 0)
        return [(str(REASONS.get(reason, reason)), number) for reason, number in sorted(counted.items()) if number]

    # --- bias ---------------------------------------------------------------------------------------------------------

    @cached_property
    def bias(self) -> list[Labelled]:
        """The chosen criterion's signed differences, the smallest first."""
        found = self.figures.each("bias", [self.criterion], self.languages, self.judge)
        rows = [Labelled(self.language_name(figure.language), figure) for figure in found]
        return sorted(rows, key=lambda row: (not row.figure.is_defined, row.figure.value or 0.0, row.name))

    @property
    def has_bias(self) -> bool:
        return any(row.figure.is_defined for row in self.bias)

    @property
    def no_bias_reason(self) -> str:
        """Why nothing can be drawn."""
        return next((row.figure.reason for row in self.bias), "")

    @property
    def chart_url(self) -> str:
        project = self.campaign.project.slug
        address = self.chart or reverse("numbers_bias_chart", args=[project, self.campaign.pk, self.snapshot.pk])
        return f"{address}?{urlencode({'judge': self.judge, 'criterion': self.criterion})}"

    @cached_property
    def stored_chart(self) -> Chart | None:
        """The chart of the judge and criterion shown, as it was drawn with the snapshot."""
        return self.snapshot.charts.filter(judge=self.judge, criterion=self.criterion).first()

    @property
    def charts(self) -> list[tuple[str, SafeString]]:
        """The chart for either width of screen, to stand in the page."""
        if self.stored_chart is None:
            return []
        drawn = {"wide": self.stored_chart.wide, "narrow": self.stored_chart.narrow}
        return [(width, pictures.inline(svg, self.chart_words)) for width, svg in drawn.items()]

    @property
    def chart_words(self) -> dict[str, str]:
        """What the chart says, in the reader's language."""
        names = enumerate(map(self.language_name, self.content["languages"]))
        words = {"axis": _("← judge harsher · judge more generous →"), "approximate": _("approximate")}
        return words | {str(place): pictures.shortened(name) for place, name in names}

    @property
    def bias_sentence(self) -> str:
        return sentences.on_bias((row.figure for row in self.bias), self.language_name)

    @property
    def approximate_biases(self) -> str:
        """The languages whose interval in the chart is approximate."""
        return sentences.listed([row.name for row in self.bias if row.figure.is_approximate])

    @property
    def criterion_name(self) -> str:
        return self.criteria.get(self.criterion, self.criterion)

    def language_name(self, tag: str | None) -> str:
        """In English for English pages, else in the language itself."""
        if tag is None:
            return _("All languages")
        return languages.english_name(tag) if (get_language() or "en").startswith("en") else languages.endonym(tag)

    def _told(self, cell: HeatCell) -> str:
        where = f"{self.criteria[cell.criterion]}, {self.language_name(cell.language)}"
        return f"{where}: {cell.figure or _('not rated')}"

    def _lines(self, statistics: Sequence[str], tags: Iterable[str | None], *, judge: str | None = None) -> list[Line]:
        """A row for every criterion and language that has any of the figures."""
        lines = []
        for criterion, name in self.criteria.items():
            for tag in tags:
                found = tuple(self.figures.get(statistic, criterion, tag, judge) for statistic in statistics)
                if any(found):
                    lines.append(Line(name, self.language_name(tag), _key(criterion, tag), found, tag is None))
        return lines


def _key(criterion: str, tag: str | None) -> str:
    """What a table row is called in the page's address."""
    return f"{criterion}-{tag or 'all'}"
