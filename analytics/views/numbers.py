"""The page of a campaign's numbers: agreement and calibration, and what a reader chose in the address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import access, languages
from accounts.models import Project, User
from accounts.refusals import Refused
from analytics import computing, figures, items, ratings, snapshots, tasks
from analytics.figures import (
    CHANCE_CORRECTED,
    COEFFICIENTS,
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
    mode_cells,
    on_agreement,
    on_bias,
    on_calibration,
    on_mode,
    shortened,
    spread,
)
from analytics.models import Chart, Snapshot
from analytics.questions import NEEDS_ORDER, Settings
from annotation.models import Annotator, Campaign

# --- what a reader chose in the address ------------------------------------------------------------------------------
BLIND_ONLY = "only"
RULE_NAMES = {
    "": gettext_lazy("Mode (mean on interval scales)"),
    "mode": gettext_lazy("Mode, ties left out"),
    "mode_split": gettext_lazy("Mode, ties take the median"),
    "median": gettext_lazy("Median"),
    "mean": gettext_lazy("Mean"),
    "minimum": gettext_lazy("Minimum"),
    "each": gettext_lazy("Each annotator"),
}
"""What a judge is compared with (`questions.RULES`), as the page names it."""
TIES_LEFT_OUT = ("", "mode")


@dataclass(frozen=True, slots=True)
class Raters:
    """The annotators whose ratings count; `chosen` is empty when all of them do.

    `blind_only`: what they rated while they could see verdicts does not. `reference`: what judges are compared with, a
    key of `RULE_NAMES`.
    """

    everyone: tuple[Annotator, ...]
    chosen: tuple[Annotator, ...] = ()
    blind_only: bool = False
    reference: str = ""

    @property
    def settings(self) -> Settings:
        chosen = tuple(annotator.pseudonym for annotator in self.chosen)
        return Settings(raters=chosen, blind_only=self.blind_only, reference=self.reference)

    @property
    def query(self) -> str:
        """The choice as a query string, empty for everyone."""
        blind = [("blind", BLIND_ONLY)] if self.blind_only else []
        rule = [("reference", self.reference)] if self.reference else []
        return urlencode([*(("raters", annotator.pseudonym) for annotator in self.chosen), *blind, *rule])

    @property
    def items_query(self) -> str:
        """The same for the list of items, as far as it knows the rule."""
        blind = [("blind", BLIND_ONLY)] if self.blind_only else []
        rule = [("reference", self.reference)] if self.reference in items.REFERENCES else []
        return urlencode([*(("rater", annotator.pseudonym) for annotator in self.chosen), *blind, *rule])

    @property
    def rules(self) -> list[tuple[str, str]]:
        """The reference rules to choose from, by key, with their names."""
        return [(key, str(name)) for key, name in RULE_NAMES.items()]

    @property
    def keeping_rules(self) -> list[tuple[str, str]]:
        """Those that leave out no item for a tie."""
        return [(key, name) for key, name in self.rules if key not in TIES_LEFT_OUT]


def chosen_raters(campaign: Campaign, query: QueryDict) -> Raters:
    """The annotators named in `?raters=A,B` or `?raters=A&raters=B`; refused when there is nobody of that name.

    `?blind=only` leaves out ratings by people who could see verdicts; `?reference=median` is one of `RULE_NAMES`.
    """
    everyone = tuple(ratings.annotators(campaign))
    known = {annotator.pseudonym for annotator in everyone}
    wanted = {name for given in query.getlist("raters") for name in _names(given, known)}
    if strangers := sorted(wanted - known):
        sentence = _("Nobody called %s has rated in this campaign.") % ", ".join(strangers)
        raise Refused(sentence, code="unknown_rater", fields={"raters": sentence})
    if (blind := query.get("blind", "")) not in ("", BLIND_ONLY):
        sentence = _("“blind” can only be “%s”, or left out.") % BLIND_ONLY
        raise Refused(sentence, code="unknown_choice", fields={"blind": sentence})
    if (reference := query.get("reference", "")) not in RULE_NAMES:
        known_rules = listed([name for name in RULE_NAMES if name])
        sentence = _("“%(given)s” is no reference rule. Choose one of %(rules)s.")
        sentence %= {"given": reference, "rules": known_rules}
        raise Refused(sentence, code="unknown_choice", fields={"reference": sentence})
    chosen = tuple(annotator for annotator in everyone if annotator.pseudonym in wanted)
    everybody = len(chosen) == len(everyone)
    return Raters(everyone, () if everybody else chosen, blind_only=bool(blind), reference=reference)


def chosen_option(given: str | None, choices: Sequence[str]) -> str:
    """What was given if it is a choice, else the first choice, else nothing."""
    return given if given and given in choices else next(iter(choices), "")


def _names(given: str, known: set[str]) -> list[str]:
    """A pseudonym may hold a comma itself."""
    return [given] if given in known else [name.strip() for name in given.split(",") if name.strip()]


# --- the page as its template reads it -------------------------------------------------------------------------------
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
        self.statistic = chosen_option(query.get("coefficient"), COEFFICIENTS)
        self.judge = chosen_option(query.get("judge"), [judge["name"] for judge in self.judges])
        self.criterion = chosen_option(query.get("criterion"), list(self.criteria))
        self.part = chosen_option(query.get("part"), [key for key, _name in self.parts])

    @cached_property
    def criteria(self) -> dict[str, str]:
        """Every criterion of the rubric that somebody or some judge scored, by key, with its name."""
        spoken = get_language() or "en"
        counted = {row["criterion"] for row in self.content["counts"]}
        decimal = self.campaign.rubric_version.criteria.all()
        return {each.key: each.says("name", spoken) or each.key for each in decimal if each.key in counted}

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
        return next((dict(judge) for judge in self.judges if judge["name"] == self.judge), {})

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
        return spread(self.figures.among(self.statistic, self.criteria, [self.whole]))

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
        return spread(self.figures.among("cohen_kappa", self.criteria, [self.whole], self.judge))

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
        return on_agreement(self.heat, self.criteria.__getitem__)

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
        figures = self.figures.among("cohen_kappa", self.criteria, [self.whole], self.judge)
        return on_calibration(figures, self.criteria.__getitem__)

    @property
    def rule(self) -> str:
        """What the judge is compared with."""
        return str(RULE_NAMES[self.content["settings"]["reference"]])

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
    def tied(self) -> list[Figure]:
        """How many items with a tied mode the figures of the judge shown leave out, by criterion and language."""
        return list(self.figures.among("without_reference", self.criteria, self.languages, self.judge))

    @property
    def mode_sentence(self) -> str:
        """What the mode leaves out of the figures of the judge shown, where that is much."""
        return on_mode(self.tied)

    @property
    def mode_cells(self) -> str:
        """The cells of which it leaves out most."""
        language_name = self.language_name if len(self.languages) > 1 else None
        return mode_cells(self.tied, self.criteria.__getitem__, language_name) if len(self.tied) > 1 else ""

    @property
    def left_out(self) -> list[tuple[str, int]]:
        """Why verdicts of this judge, and items without a settled panel score, enter no figure of the table."""
        tag = self.part if self.part in self.languages else self.whole
        counted: Counter[str] = Counter()
        for row in self.content["counts"]:
            if row["judge"] == self.judge and row.get("language") == tag:
                counted.update(row["reasons"])
        for figure in self.figures.among("without_reference", self.criteria, [tag], self.judge):
            counted[figure.statistic] += int(figure.value or 0)
        return [(str(REASONS.get(reason, reason)), number) for reason, number in sorted(counted.items()) if number]

    # --- bias ---------------------------------------------------------------------------------------------------------

    @cached_property
    def bias(self) -> list[Labelled]:
        """The chosen criterion's signed differences, the smallest first."""
        found = self.figures.among("bias", [self.criterion], self.languages, self.judge)
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
        return [(width, inline(svg, self.chart_words)) for width, svg in drawn.items()]

    @property
    def chart_words(self) -> dict[str, str]:
        """What the chart says, in the reader's language."""
        names = enumerate(map(self.language_name, self.content["languages"]))
        words = {"axis": _("← judge harsher · judge more generous →"), "approximate": _("approximate")}
        return words | {str(place): shortened(name) for place, name in names}

    @property
    def bias_sentence(self) -> str:
        return on_bias((row.figure for row in self.bias), self.language_name)

    @property
    def approximate_biases(self) -> str:
        """The languages whose interval in the chart is approximate."""
        return listed([row.name for row in self.bias if row.figure.is_approximate])

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


# --- views -----------------------------------------------------------------------------------------------------------
@require_safe
@login_required
def numbers_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every campaign with its headline figures; the only one itself where there is only one."""
    current_project = access.require(user=request.user, slug=project)
    campaigns = list(Campaign.objects.visible_to(request.user).filter(project=current_project).select_related(*_SHOWN))
    if len(campaigns) == 1:
        return redirect("campaign_numbers", current_project.slug, campaigns[0].pk)
    newest = snapshots.newest(campaigns)
    entries = [(campaign, _headline(newest.get(campaign.pk))) for campaign in campaigns]
    return render(
        request, "analytics/numbers.html", {"title": _("Numbers"), "project": current_project, "entries": entries}
    )


@require_safe
@login_required
def campaign_numbers(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The page. It asks for itself every few seconds, with the state it has `seen`."""
    found = _campaign(request.user, project, campaign)
    raters, refusal = _raters(found, request)
    snapshot, is_stale = snapshots.current_snapshot(campaign=found, settings=raters.settings)
    number = snapshot.pk if snapshot else 0
    if is_stale:
        tasks.ask_to_compute(campaign=found, settings=raters.settings)
    failed = computing.failed(campaign=found, settings=raters.settings) if is_stale else None
    state = f"{number}-{'stale' if is_stale else 'fresh'}"
    if _seen(request) == state and not is_stale:
        return HttpResponse(status=204)
    page = NumbersPage(campaign=found, snapshot=snapshot, query=request.GET) if snapshot else None
    context = {"project": found.project, "campaign": found, "raters": raters, "refusal": refusal, "page": page}
    told = {
        "snapshot": snapshot,
        "is_stale": is_stale,
        "state": state,
        "addresses": _addresses(found, raters),
        "failed": failed,
    }
    response = render(request, "analytics/campaign_numbers.html", {**context, **told})
    if _seen(request) and not _seen(request).startswith(f"{number}-"):
        response["HX-Retarget"] = response["HX-Reselect"] = "#main"  # new figures, not only news of them
    return response


@require_safe
@login_required
def bias_chart(request: HttpRequest, project: str, campaign: int, snapshot: int) -> HttpResponse:
    """The chart of one snapshot as SVG; the same address and reader's language always give the same picture."""
    found = _campaign(request.user, project, campaign)
    stored = get_object_or_404(Snapshot, campaign=found, pk=snapshot, code_version=snapshots.code_version())
    return drawn_chart(request, NumbersPage(campaign=found, snapshot=stored, query=request.GET))


def drawn_chart(request: HttpRequest, page: NumbersPage) -> HttpResponse:
    """The chart as a file: what was drawn with the snapshot."""
    theme = chosen_option(request.GET.get("theme"), list(figures.THEMES))
    if page.stored_chart is None:
        raise Http404("There is no chart of this judge and criterion.")
    name = f"bias:{page.snapshot.pk}:{page.stored_chart.pk}:{theme}:{get_language()}"
    title = f"{page.criterion_name}. {page.bias_sentence}"
    response = get_conditional_response(request, etag=f'"{name}"') or HttpResponse(
        figures.alone(page.stored_chart.wide, page.chart_words, title=title, theme=theme),
        content_type="image/svg+xml",
    )
    response["ETag"], response["Cache-Control"] = f'"{name}"', "private, no-cache"
    return response


_SHOWN = ("project", "dataset", "rubric_version__rubric")


def _campaign(user: User, project: str, campaign: int) -> Campaign:
    current_project: Project = access.require(user=user, slug=project)
    mine = Campaign.objects.visible_to(user).filter(project=current_project).select_related(*_SHOWN)
    return get_object_or_404(mine.prefetch_related("rubric_version__criteria"), pk=campaign)


def _addresses(campaign: Campaign, raters: Raters) -> dict[str, str]:
    """Where the parts of the page lead; a shared page has fewer of them."""
    here, query = (campaign.project.slug, campaign.pk), f"?{raters.query}" if raters.query else ""
    return {
        "ratings": reverse("api_ratings_table", args=here) + query,
        "figures": reverse("api_numbers", args=here) + query,
        "judges": reverse("judges", args=here[:1]),
        "campaign": reverse("campaign", args=here),
        "item_list": f"{reverse('numbers_items', args=here)}?{raters.items_query}",
    }


def _seen(request: HttpRequest) -> str:
    """The state of the page that asks for itself; nothing for a person's own request."""
    return request.GET.get("seen", "") if "HX-Request" in request.headers else ""


def _raters(campaign: Campaign, request: HttpRequest) -> tuple[Raters, str]:
    """Who counts, and what is wrong with the names given: then everyone counts."""
    try:
        return chosen_raters(campaign, request.GET), ""
    except Refused as refused:
        return Raters(tuple(ratings.annotators(campaign))), refused.sentence


def _headline(snapshot: Snapshot | None) -> dict[str, Any] | None:
    """A campaign's agreement and judges, each as the middle and the outermost of its criteria."""
    if snapshot is None:
        return None
    content = snapshot.content
    figures = Figures(content["estimates"])
    keys = dict.fromkeys(row["criterion"] for row in content["counts"])
    whole = content["languages"][0] if len(content["languages"]) == 1 else None
    judges = [
        (judge, spread(figures.among("cohen_kappa", keys, [whole], judge["name"]))) for judge in content["judges"]
    ]
    agreement = spread(figures.among("krippendorff_alpha", keys, [whole]))
    return {"snapshot": snapshot, "agreement": agreement, "judges": judges, "rated": content["rated"]}
