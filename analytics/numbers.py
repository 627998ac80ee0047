"""One snapshot as the numbers page shows it: through a coefficient, a judge, a criterion and a language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from accounts import languages
from analytics import score_views
from analytics.answers.numbers_content import CALIBRATION
from analytics.figures import (
    SMALL,
    Figure,
    Figures,
    HeatCell,
    Heatmap,
    Labelled,
    Spread,
    heatmap,
    inline,
    listed,
    on_agreement,
    on_bias,
    on_calibration,
    shortened,
    spread,
)
from analytics.models import Chart, Snapshot
from analytics.questions.question_names import statistic_name
from analytics.questions.reference_rules import NEEDS_ORDER
from analytics.score_views import Line
from analytics.stats.declared.register import HEAT_MAPS, OVER_REPEATS, STATISTICS
from annotation.models import Campaign, Criterion

RULE_NAMES = {
    "": gettext_lazy("Mode (mean on interval scales)"),
    "mode": gettext_lazy("Mode, ties left out"),
    "mode_split": gettext_lazy("Mode; if tied, the median of all scores"),
    "median": gettext_lazy("Median"),
    "mean": gettext_lazy("Mean"),
    "minimum": gettext_lazy("Minimum"),
    "each": gettext_lazy("Each annotator"),
}
"""What a judge is compared with (`reference_rules.RULES`), as the page names it."""
TIES_LEFT_OUT = ("", "mode")


def chosen_option(given: str | None, choices: Sequence[str]) -> str:
    """What was given if it is a choice, else the first choice, else nothing."""
    return given if given and given in choices else next(iter(choices), "")


APPLICABILITY = ("applicability_agreement", "applicability_ac")
TOGETHER, EACH = "all", "each"
MANY_CRITERIA = 12
"""Criteria from which pages group them, and offer a search."""
GROUP_NAMES = {
    "critical": gettext_lazy("Critical"),
    "general": gettext_lazy("General"),
    "domain": gettext_lazy("Domain"),
    "task": gettext_lazy("Task"),
    "subjective": gettext_lazy("Subjective"),
}
FOLDS = ("agreement", "distributions", "generators")
"""Tables that a long page shows folded, and holds only where its address opens them (`open`)."""
T = TypeVar("T")
_REASONS = {
    "out_of_range": gettext_lazy("off the scale"),
    "unparsed": gettext_lazy("unreadable"),
    "refused": gettext_lazy("refused"),
    "truncated": gettext_lazy("cut off"),
    "error": gettext_lazy("errors"),
    "without_reference": gettext_lazy("on items with a tied panel mode"),
}


class NumbersPage:
    """One snapshot seen through a coefficient, a judge and a criterion."""

    small = SMALL

    def __init__(self, *, campaign: Campaign, snapshot: Snapshot, query: QueryDict, chart: str = "") -> None:
        self.campaign, self.snapshot, self.chart = campaign, snapshot, chart
        self.content: dict[str, Any] = snapshot.content
        self.figures = Figures(self.content["estimates"])
        self.languages = tuple(languages.in_name_order(self.content["languages"], get_language()))
        self.statistic = chosen_option(query.get("coefficient"), HEAT_MAPS)
        self.asked_judge, self.with_designs = query.get("judge", ""), query.get("designs") == "show"
        self.judge = chosen_option(query.get("judge"), [judge["name"] for judge in self.judges])
        self.criterion = chosen_option(query.get("criterion"), self.ordered or list(self.criteria))
        self.part = chosen_option(query.get("part"), [key for key, _name in self.parts])
        self.opened = {fold: not self.is_long or fold in query.getlist("open") for fold in FOLDS}
        asked = {name: texts for name, texts in query.lists() if name not in ("open", "seen")}
        self._to_rows = (
            "" if self.opened["agreement"] else f"?{urlencode({**asked, 'open': ['agreement']}, doseq=True)}"
        )

    @cached_property
    def criteria(self) -> dict[str, str]:
        """Every criterion of the rubric that somebody or some judge scored, by key, with its name."""
        spoken = get_language() or "en"
        counted = {row["criterion"] for row in self.content["counts"]}
        decimal = self.campaign.rubric_version.criteria.all()
        return {each.key: each.says("name", spoken) or each.key for each in decimal if each.key in counted}

    @cached_property
    def judges(self) -> list[dict[str, Any]]:
        """The judges that the page lists: those that are only cells of designs where they are asked for."""
        everyone: list[dict[str, Any]] = list(self.content["judges"])
        if self.with_designs:
            return everyone
        return [each for each in everyone if not each.get("of_design") or each["name"] == self.asked_judge] or everyone

    @property
    def hidden_judges(self) -> int:
        """How many judges of designs are not listed."""
        return len(self.content["judges"]) - len(self.judges)

    @cached_property
    def chosen(self) -> dict[str, str]:
        """What the address says beyond the raters."""
        more = {"designs": "show"} if self.with_designs else {}
        chosen = {"coefficient": self.statistic, "judge": self.judge, "criterion": self.criterion, "part": self.part}
        return chosen | more

    @property
    def run(self) -> dict[str, Any]:
        """The run of the judge shown; empty where there is no judge."""
        return next((dict(judge) for judge in self.judges if judge["name"] == self.judge), {})

    @cached_property
    def coefficient(self) -> str:
        return statistic_name(self.statistic)

    @property
    def symbol(self) -> str:
        return STATISTICS[self.statistic].symbol

    @cached_property
    def coefficients(self) -> list[tuple[str, str]]:
        return [(key, statistic_name(key)) for key in HEAT_MAPS]

    @cached_property
    def has_threshold(self) -> bool:
        return STATISTICS[self.statistic].is_chance_corrected

    @property
    def whole(self) -> str | None:
        """The language of figures about everything: None, all languages, or the only one."""
        return self.languages[0] if len(self.languages) == 1 else None

    # --- key figures --------------------------------------------------------------------------------------------------

    @cached_property
    def ordered(self) -> list[str]:
        """The criteria whose points have an order; nominal ones have figures of their own."""
        return [key for key in self.criteria if self.levels[key] != "nominal"]

    @property
    def nominal(self) -> list[str]:
        return [key for key in self.criteria if self.levels[key] == "nominal"]

    @property
    def summed_up(self) -> list[str]:
        """The criteria that a key figure is about: those with an order where there are any, never both kinds."""
        return self.ordered or self.nominal

    @cached_property
    def other_criteria(self) -> int:
        """How many nominal criteria the key figures are not about."""
        return len(self.nominal) if self.ordered else 0

    @cached_property
    def agreement(self) -> Spread | None:
        return spread(self.figures.among(self.statistic, self.summed_up, [self.whole]))

    @property
    def agreement_range(self) -> str:
        return self._range(self.agreement)

    @property
    def judged_range(self) -> str:
        return self._range(self.judged)

    def _range(self, shown: Spread | None) -> str:
        """From the lowest criterion to the highest, by name; nothing for a single one."""
        if shown is None or shown.count == 1:
            return ""
        return shown.between(*(self.criteria[figure.criterion] for figure in (shown.lowest, shown.highest)))

    @cached_property
    def judged(self) -> Spread | None:
        return spread(self.figures.among("cohen_kappa", self.summed_up, [self.whole], self.judge))

    @property
    def judged_symbol(self) -> str:
        return _("weighted κ") if self.ordered else _("κ")

    @property
    def judged_raters(self) -> int:
        """With how many annotators the judge is compared, at most."""
        kappas = self.figures.among("cohen_kappa", self.summed_up, [self.whole], self.judge)
        return max((figure.n_raters for figure in kappas), default=0)

    @cached_property
    def has_panel(self) -> bool:
        """Whether any annotator scored."""
        return bool(self.content["rated"]["ratings"])

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

    @cached_property
    def groups(self) -> dict[str, str]:
        """The name of each criterion's group, where there are many criteria in more than one group; else empty."""
        criteria = [each for each in self.campaign.rubric_version.criteria.all() if each.key in self.criteria]
        return criterion_groups(criteria)

    @property
    def is_long(self) -> bool:
        """Whether its tables are so long that a reader wants to search and sort them."""
        return max(len(self.criteria), len(self.languages)) > MANY_CRITERIA

    @property
    def is_turned(self) -> bool:
        """Whether the heatmap has a row for each language: there are more of them than fit beside each other."""
        return len(self.languages) > max(MANY_CRITERIA, len(self.criteria))

    def grouped(self, rows: Iterable[T], key: Callable[[T], str]) -> list[tuple[str, list[T]]]:
        """Rows by the group of their criterion, groups in the order of the rubric; all under "" without groups."""
        found: dict[str, list[T]] = {}
        for row in rows:
            found.setdefault(self.groups.get(key(row), ""), []).append(row)
        return list(found.items())

    @property
    def heat_groups(self) -> list[tuple[str, list[tuple[str, list[tuple[HeatCell, str, str]]]]]]:
        """The rows of the heatmap by group."""
        if self.is_turned:
            return [("", self.heat_rows)]
        return self.grouped(self.heat_rows, lambda row: row[1][0][0].criterion)

    @property
    def calibration_groups(self) -> list[tuple[str, list[Line]]]:
        return self.grouped(self.calibration_lines, lambda line: line.criterion_key)

    @property
    def heat_rows(self) -> list[tuple[str, list[tuple[HeatCell, str, str]]]]:
        """Each row's name and its cells, with a sentence about the cell and the address of its table row."""
        rows = [
            (
                self.criteria[criterion],
                [
                    (cell, self._cell_sentence(cell), f"{self._to_rows}#{_key(criterion, cell.language)}")
                    for cell in cells
                ],
            )
            for criterion, cells in self.heat.rows
        ]
        if not self.is_turned:
            return rows
        by_language = zip(*(cells for _name, cells in rows), strict=True)
        names = (self.language_name(tag) for tag in self.heat.languages)
        return [(name, list(cells)) for name, cells in zip(names, by_language, strict=True)]

    @property
    def heat_columns(self) -> list[tuple[bool, str]]:
        """Whether a column is that of all languages together, and its name."""
        if self.is_turned:
            return [(False, self.criteria[criterion]) for criterion, _cells in self.heat.rows]
        return [(tag is None, self.language_name(tag)) for tag in self.heat.languages]

    @cached_property
    def undefined(self) -> list[str]:
        """A sentence for every blank cell."""
        return [self._cell_sentence(cell) for cell in self.heat.undefined]

    @property
    def agreement_sentence(self) -> str:
        return on_agreement(self.heat, self.criteria.__getitem__, self.language_name)

    @property
    def agreement_lines(self) -> list[Line]:
        """The heatmap as a table, every coefficient beside the chosen one."""
        return self._lines(HEAT_MAPS, self.heat.languages)

    @cached_property
    def applicability_lines(self) -> list[Line]:
        """Agreement on whether the criterion applies at all, where somebody said that it doesn't."""
        return self._lines(APPLICABILITY, self.heat.languages)

    # --- calibration --------------------------------------------------------------------------------------------------

    @cached_property
    def parts(self) -> list[tuple[str, str]]:
        """What the calibration table may show: all languages together, one of them, or each of them."""
        if len(self.languages) < 2:
            return []
        single = [(tag, self.language_name(tag)) for tag in self.languages]
        return [(TOGETHER, _("All languages")), *single, (EACH, _("Each language"))]

    @cached_property
    def calibration_lines(self) -> list[Line]:
        return self._lines(CALIBRATION, self.shown_languages, judge=self.judge, criteria=self.ordered)

    @property
    def shown_languages(self) -> Sequence[str | None]:
        """The languages of the tables about the judge; None stands for all together."""
        return {TOGETHER: [self.whole], EACH: self.heat.languages, "": [self.whole]}.get(self.part, [self.part])

    @property
    def part_language(self) -> str | None:
        """The one language that the tables are about, or None."""
        return self.part if self.part in self.languages else self.whole

    @property
    def calibration_sentence(self) -> str:
        """On which criterion of the table above the judge is closest to the panel, and in which language."""
        kappas = self.figures.among("cohen_kappa", self.summed_up, [self.part_language], self.judge)
        sentence = on_calibration(kappas, self.criteria.__getitem__)
        if len(self.languages) < 2:
            return sentence
        named = {"language": self.language_name(self.part_language), "sentence": sentence}
        return _("%(language)s: %(sentence)s") % named

    # --- nominal criteria, and what needs no comparison ---------------------------------------------------------------

    @property
    def class_tables(self) -> list[score_views.ClassTable]:
        return score_views.class_tables(self)

    @cached_property
    def prevalence(self) -> list[score_views.PrevalenceTable]:
        return score_views.prevalence_tables(self)

    @cached_property
    def distributions(self) -> list[score_views.Distribution]:
        return score_views.distributions(self)

    @property
    def classes_in_explore(self) -> bool:
        """Whether the shares of scores by class of agreement in the language shown are computed only by Explore."""
        return self.part_language != self.whole and not any(shown.by_class for shown in self.distributions)

    @property
    def grouped_distributions(self) -> list[tuple[str, list[score_views.Distribution]]]:
        return self.grouped(self.distributions, lambda shown: shown.key)

    @cached_property
    def generator_lines(self) -> list[Line]:
        return score_views.generator_lines(self)

    @cached_property
    def repeat_lines(self) -> list[tuple[str, Line]]:
        """How far the repeats of each judge differ, where it has any."""
        names = [judge["name"] for judge in self.judges]
        return [(name, line) for name in names for line in self._lines(OVER_REPEATS, [self.part_language], judge=name)]

    @cached_property
    def repeats(self) -> Spread | None:
        """How many items change over the repeats of the judge shown, criterion by criterion."""
        return spread(self.figures.among("flip_rate", self.criteria, [self.whole], self.judge))

    def point_name(self, criterion: str, point: str | None) -> str:
        """What the rubric calls the point of a nominal scale, else the point itself."""
        return self._labels.get((criterion, point or ""), point or "")

    @cached_property
    def _labels(self) -> dict[tuple[str, str], str]:
        spoken = get_language() or "en"
        return {
            (criterion.key, f"{value:g}"): criterion.label(value, spoken) or f"{value:g}"
            for criterion in self.campaign.rubric_version.criteria.all()
            if criterion.level == "nominal"
            for value in criterion.values
        }

    @property
    def rule(self) -> str:
        """What the judge is compared with."""
        return str(RULE_NAMES[self.content["settings"]["reference"]])

    @property
    def rules(self) -> list[tuple[str, str]]:
        """The rules of reference to choose from: on nominal criteria alone, those that need no order."""
        return [(key, str(name)) for key, name in RULE_NAMES.items() if self.ordered or key not in NEEDS_ORDER]

    @property
    def keeping_rules(self) -> list[tuple[str, str]]:
        """Those that leave out no item for a tie; on nominal criteria the mode stands for rules that need an order."""
        return [(key, name) for key, name in self.rules if key not in TIES_LEFT_OUT]

    @property
    def rule_note(self) -> str:
        """What else there is to know of the rule, if anything."""
        rule = self.content["settings"]["reference"]
        if rule in TIES_LEFT_OUT:
            return _("Items with a tied mode are left out.")
        if rule in NEEDS_ORDER and any(self.levels[key] == "nominal" for key in self.criteria):
            return _("Nominal criteria keep the mode; there, items with a tied mode are left out.")
        return ""

    @cached_property
    def levels(self) -> dict[str, str]:
        """Of each criterion, its level of measurement."""
        return {criterion.key: criterion.level for criterion in self.campaign.rubric_version.criteria.all()}

    @cached_property
    def lower_is_better(self) -> set[str]:
        """The criteria on which rank 1 is the lowest mean."""
        criteria = self.campaign.rubric_version.criteria.all()
        return {each.key for each in criteria if each.direction == each.Direction.LOWER}

    @property
    def ranks_mean(self) -> str:
        """What rank 1 is among the criteria that have ranks."""
        turned = sum(key in self.lower_is_better for key in self.ordered)
        if not turned:
            return _("rank 1: the highest mean")
        if turned == len(self.ordered):
            return _("rank 1: the lowest mean, because lower is better")
        return _("rank 1: the highest mean, or the lowest where lower is better")

    @cached_property
    def tied(self) -> list[Figure]:
        """How many items with a tied mode the figures of the judge shown leave out, by criterion and language."""
        return list(self.figures.among("without_reference", self.criteria, self.languages, self.judge))

    @cached_property
    def mode_sentence(self) -> str:
        """What the mode leaves out of the figures of the judge shown, where that is much."""
        return score_views.on_mode(self.tied)

    @cached_property
    def mode_cells(self) -> str:
        """The cells of which it leaves out most."""
        language_name = self.language_name if len(self.languages) > 1 else None
        return score_views.mode_cells(self.tied, self.criteria.__getitem__, language_name) if len(self.tied) > 1 else ""

    @cached_property
    def left_out(self) -> list[tuple[str, int]]:
        """Why verdicts of this judge, and items without a settled panel score, enter no figure of the table."""
        tag = self.part if self.part in self.languages else self.whole
        counted: Counter[str] = Counter()
        for row in self.content["counts"]:
            if row["judge"] == self.judge and row.get("language") == tag:
                counted.update(row["reasons"])
        for figure in self.figures.among("without_reference", self.criteria, [tag], self.judge):
            counted[figure.statistic] += int(figure.value or 0)
        return [(str(_REASONS.get(reason, reason)), number) for reason, number in sorted(counted.items()) if number]

    # --- bias ---------------------------------------------------------------------------------------------------------

    @cached_property
    def bias(self) -> list[Labelled]:
        """The chosen criterion's signed differences, the smallest first."""
        found = self.figures.among("bias", [self.criterion], self.languages, self.judge)
        rows = [Labelled(self.language_name(figure.language), figure) for figure in found]
        return sorted(rows, key=lambda row: (not row.figure.is_defined, row.figure.value or 0.0, row.name))

    @cached_property
    def shows_bias(self) -> bool:
        """Whether there are a judge and a panel to compare on a criterion with distances."""
        return bool(self.judge and self.has_panel and self.ordered)

    @property
    def bias_criteria(self) -> list[tuple[str, str]]:
        """The criteria that the chart can show, by key, with their names."""
        return [(key, self.criteria[key]) for key in self.ordered]

    @cached_property
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

    @cached_property
    def charts(self) -> list[tuple[str, SafeString]]:
        """The chart for either width of screen, to stand in the page."""
        if self.stored_chart is None:
            return []
        drawn = {"wide": self.stored_chart.wide, "narrow": self.stored_chart.narrow}
        return [(width, inline(svg, self.chart_words)) for width, svg in drawn.items()]

    @cached_property
    def chart_words(self) -> dict[str, str]:
        """What the chart says, in the reader's language."""
        names = enumerate(map(self.language_name, self.content["languages"]))
        words = {"axis": _("← judge lower · judge higher →"), "approximate": _("approximate")}
        return words | {str(place): shortened(name) for place, name in names}

    @cached_property
    def bias_sentence(self) -> str:
        return on_bias((row.figure for row in self.bias), self.language_name)

    @cached_property
    def approximate_biases(self) -> str:
        """The languages whose interval in the chart is approximate."""
        return listed([row.name for row in self.bias if row.figure.is_approximate])

    @property
    def conservative_biases(self) -> str:
        """The languages whose interval in the chart is conservative."""
        return listed([row.name for row in self.bias if row.figure.is_conservative])

    @property
    def criterion_name(self) -> str:
        return self.criteria.get(self.criterion, self.criterion)

    def language_name(self, tag: str | None) -> str:
        return _("All languages") if tag is None else languages.name_for(tag, get_language())

    def _cell_sentence(self, cell: HeatCell) -> str:
        where = f"{self.criteria[cell.criterion]}, {self.language_name(cell.language)}"
        return f"{where}: {cell.figure or _('not rated')}"

    def _lines(
        self,
        statistics: Sequence[str],
        tags: Iterable[str | None],
        *,
        judge: str | None = None,
        criteria: Sequence[str] | None = None,
    ) -> list[Line]:
        """A row for every criterion and language that has any of the figures."""
        lines = []
        for criterion in self.criteria if criteria is None else criteria:
            for tag in tags:
                cells = tuple(self.figures.get(statistic, criterion, tag, judge) for statistic in statistics)
                if any(cells):
                    name = self.criteria[criterion]
                    key, is_all = _key(criterion, tag), tag is None
                    lines.append(Line(name, self.language_name(tag), key, cells, is_all, criterion))
        return lines


def criterion_groups(criteria: Iterable[Criterion]) -> dict[str, str]:
    """By key, the name of each criterion's group; empty where there are few criteria or they are in one group."""
    groups = {each.key: str(GROUP_NAMES.get(each.group, each.group)) for each in criteria}
    return groups if len(groups) > MANY_CRITERIA and len(set(groups.values())) > 1 else {}


def _key(criterion: str, tag: str | None) -> str:
    """What a table row is called in the page's address."""
    return f"{criterion}-{tag or 'all'}"
