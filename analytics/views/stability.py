"""The Stability page: do the rankings of generators carry over from language to language, and from panel to judge?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics.answer_pages import plain_value
from analytics.figure_words import FIGURE_SENTENCES
from analytics.figures import Figure
from analytics.questions.asked import QuestionChoices
from analytics.questions.question import NumbersQuestion
from analytics.questions.question_names import column_name
from analytics.views import parts
from analytics.views.agreement_sections import (
    NOTHING,
    AgreementSection,
    Grid,
    GridCell,
    GridRow,
    figure_cell,
    plain_cells,
)
from analytics.views.calibration import cells_by_variant, p_in_words, page_about_judges
from analytics.views.parts import STABILITY_PARTS
from analytics.workflow import SURFACE
from annotation.models import Campaign, Criterion

TITLES = {
    "ranks": gettext_lazy("Ranking of generators in each language"),
    "rankings": gettext_lazy("Do two languages rank alike?"),
    "judge": gettext_lazy("The judge’s ranking beside the panel’s"),
    "surface": gettext_lazy("Measures of the texts, then scores"),
    "parallel": gettext_lazy("Consistency of each judge across languages"),
    "pivot": gettext_lazy("Each language against English"),
    "juries": gettext_lazy("All judges together"),
}
NOTES = {
    "ranks": gettext_lazy(
        "The rank of each generator by its mean score. In brackets: the ranks that are possible given the clear "
        "differences."
    ),
    "rankings": gettext_lazy(
        "Kendall’s τ-b of the generators’ means in two languages: 1 is the same order, −1 the opposite one. "
        "An inversion is a pair of generators that change places; it is confirmed where both differences are clear."
    ),
    "judge": gettext_lazy("Kendall’s τ-b of the generators’ means by the judge and by the panel, on the same items."),
    "surface": gettext_lazy(
        "First stage: do plain measures of the texts rank the generators alike in both languages? "
        "Second stage: do the panel’s scores?"
    ),
    "parallel": gettext_lazy(
        "Fleiss’ κ with languages as raters, on scenarios that exist in several languages. "
        "Below it the lowest and the highest mean of a language."
    ),
    "pivot": gettext_lazy("Cohen’s κ of the judge’s scores in a language and in English, on the same scenarios."),
    "juries": gettext_lazy(
        "Fleiss’ κ with languages as raters, of the majority of all judges; below it that of the worst judge, "
        "and the difference."
    ),
}
EMPTY = {
    "ranks": gettext_lazy("A ranking needs two generators with scores in order."),
    "rankings": gettext_lazy("Rankings are compared where two languages have the same two generators or more."),
    "judge": gettext_lazy("This needs two generators with scores in order by a judge and by the panel."),
    "surface": gettext_lazy("Rankings are compared where two languages have the same two generators or more."),
    "parallel": gettext_lazy("This needs a judge, and scenarios that exist in two languages or more."),
    "pivot": gettext_lazy("This needs a judge, and scenarios that exist in English and in another language."),
    "juries": gettext_lazy("This needs two judges or more, and scenarios that exist in two languages or more."),
}
STEP_ACROSS, STEP_DOWN, MARGIN, NAMES = 96, 34, 22, 132
MOST_LINES = 8
"""Generators whose lines have a colour of their own; further ones share them."""


@dataclass(frozen=True, slots=True)
class BumpLine:
    """One generator: the points of its line as SVG writes them, dots, and where its name stands."""

    name: str
    colour: int
    points: str
    dots: tuple[tuple[float, float], ...]
    end: tuple[float, float]


@dataclass(frozen=True, slots=True)
class BumpChart:
    """Ranks by language: a line for each generator. `summary` says it in words."""

    title: str
    width: int
    height: int
    columns: tuple[tuple[float, str], ...]
    lines: tuple[BumpLine, ...]
    summary: str


class StabilitySection(AgreementSection):
    """A section of the Stability page."""

    def build(self) -> None:
        _BUILDERS[self.part.name](self)


def _whose(shown: AgreementSection) -> list[tuple[str, str]]:
    """The panel and the chosen judge: the value in the column `judge`, and the name."""
    judge = next(iter(shown.question.judges), "")
    return [("", _("The panel")), *([(judge, judge)] if judge else [])]


# --- sections --------------------------------------------------------------------------------------------------------
def _ranks(shown: AgreementSection) -> None:
    if shown.of("stability.rank"):
        shown.notes.append(_rank_one(shown))
    means = {_place(row): row for row in shown.of("stability.mean")}
    for judge, title in _whose(shown):
        rows = [row for row in shown.of("stability.rank") if plain_value(row["judge"]) == judge]
        languages, generators = (sorted({row[name] for row in rows}) for name in ("language", "generator"))
        if not rows:
            continue
        ranks = {(row["generator"], row["language"]): row for row in rows}
        tied = [tag for tag in languages if len({ranks[key]["value"] for key in ranks if key[1] == tag}) == 1]
        names = [shown.name("language", tag) for tag in languages]
        shown.charts.append(_bump(title, ranks, languages, names, generators))
        cells = tuple(
            GridRow(
                name,
                tuple(_rank_cell(shown, ranks.get((name, tag)), means.get((judge, name, tag))) for tag in languages),
            )
            for name in generators
        )
        notes = [
            _("%s: all means are equal, so that there is no ranking (a ceiling).") % shown.name("language", tag)
            for tag in tied
        ]
        shown.grids.append(Grid(column_name("generator"), tuple(names), cells, tuple(notes), title=title))


def _rank_one(shown: AgreementSection) -> str:
    """What rank 1 is on the criterion shown."""
    key = dict(shown.question.where).get("criterion", "")
    criterion = shown.page.campaign.rubric_version.criteria.filter(key=key).first()
    if criterion is not None and criterion.direction == Criterion.Direction.LOWER:
        return _("Rank 1 has the lowest mean: the rubric says that lower is better.")
    if criterion is not None and criterion.direction == Criterion.Direction.HIGHER:
        return _("Rank 1 has the highest mean: the rubric says that higher is better.")
    return _("Rank 1 has the highest mean: the rubric prefers neither end of the scale.")


def _place(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return plain_value(row["judge"]), row["generator"], row["language"]


def _rank_cell(shown: AgreementSection, row: Mapping[str, Any] | None, mean: Mapping[str, Any] | None) -> GridCell:
    if row is None:
        return NOTHING
    figure, lines = Figure.of(row), []
    if row.get("low") is not None:
        lines.append(f"[{row['low']:g}, {row['high']:g}]")
    if mean is not None:
        of_mean = Figure.of(mean)
        lines += [_("mean %s") % f"{of_mean.number} {of_mean.interval}".strip(), of_mean.basis]
    return GridCell(f"{row['value']:g}", tuple(lines), url=shown.page.items_address(row), title=figure.made)


def _bump(
    title: str,
    ranks: Mapping[tuple[str, str], Mapping[str, Any]],
    languages: Sequence[str],
    names: Sequence[str],
    generators: Sequence[str],
) -> BumpChart:
    def at(generator: str, tag: str) -> tuple[float, float]:
        rank = ranks[generator, tag]["value"]
        return float(MARGIN + STEP_ACROSS * languages.index(tag)), round(MARGIN + 14 + STEP_DOWN * (rank - 1), 1)

    lines, sentences = [], []
    for number, generator in enumerate(generators):
        there = [tag for tag in languages if (generator, tag) in ranks]
        dots = tuple(at(generator, tag) for tag in there)
        points = " ".join(f"{x:g},{y:g}" for x, y in dots)
        lines.append(BumpLine(generator, number % MOST_LINES, points, dots, (dots[-1][0] + 12, dots[-1][1] + 4)))
        places = ", ".join(
            f"{name} {ranks[generator, tag]['value']:g}"
            for tag, name in zip(languages, names, strict=True)
            if tag in there
        )
        sentences.append(f"{generator}: {places}.")
    columns = tuple((float(MARGIN + STEP_ACROSS * place), name) for place, name in enumerate(names))
    width = 2 * MARGIN + STEP_ACROSS * (len(languages) - 1) + NAMES
    height = 2 * MARGIN + 14 + STEP_DOWN * (len(generators) - 1)
    return BumpChart(title, width, height, columns, tuple(lines), " ".join(sentences))


def _rankings(shown: AgreementSection) -> None:
    found: dict[tuple[str, tuple[str, ...]], dict[str, Mapping[str, Any]]] = {}
    for row in shown.rows:
        if row["languages"]:
            found.setdefault((plain_value(row["judge"]), tuple(row["languages"])), {})[row["asked"]] = row
    for judge, title in _whose(shown):
        pairs = {languages: rows for (who, languages), rows in found.items() if who == judge}
        both = {**pairs, **{pair[::-1]: rows for pair, rows in pairs.items()}}
        tags = sorted({tag for pair in pairs for tag in pair})
        cells = tuple(
            GridRow(
                shown.name("language", down), tuple(_ranking_cell(shown, both.get((down, across))) for across in tags)
            )
            for down in tags
        )
        if cells:
            names = tuple(shown.name("language", tag) for tag in tags)
            shown.grids.append(Grid(column_name("language"), names, cells, title=title))
    if shown.grids:
        shown.notes.append(_("p: by permutation of the languages; Holm’s correction is with the method of each cell."))


def _ranking_cell(shown: AgreementSection, rows: Mapping[str, Mapping[str, Any]] | None) -> GridCell:
    if not rows or (row := rows.get("stability.kendall_tau_b")) is None:
        return NOTHING
    lines = []
    inversions, sure, tied = (
        rows.get(f"stability.{name}") for name in ("inversions", "confirmed_inversions", "tied_pairs")
    )
    if inversions is not None and inversions["value"] is not None:
        count = int(inversions["value"])
        text = ngettext("%d inversion", "%d inversions", count) % count
        lines.append(f"{text}, {p_in_words(inversions['p'])}" if inversions.get("p") is not None else text)
    if sure is not None and sure["value"] is not None:
        lines.append(_("%d confirmed") % int(sure["value"]))
    if tied is not None and tied["value"]:
        lines.append(ngettext("%d tied pair", "%d tied pairs", int(tied["value"])) % int(tied["value"]))
    cell = figure_cell(shown.page, row, *lines)
    notes = [
        FIGURE_SENTENCES.translated(str(each["note"]))
        for each in (inversions, sure)
        if each is not None and each.get("note")
    ]
    return replace(cell, title=" · ".join([cell.title, *notes]))


def _surface(shown: AgreementSection) -> None:
    stages = (
        (_("First stage: measures of the texts"), lambda row: row["criterion"] in SURFACE),
        (_("Second stage: scores of the panel"), lambda row: not row["judge"]),
    )
    for title, is_of_stage in stages:
        found: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
        for row in filter(is_of_stage, shown.rows):
            place = plain_value(row["criterion"]), plain_value(row["languages"])
            found.setdefault(place, {})[row["asked"]] = row
        pairs = sorted({pair for _key, pair in found if pair})
        cells = tuple(
            GridRow(
                _MEASURE_NAMES.get(key) or shown.name("criterion", key),
                tuple(_ranking_cell(shown, found.get((key, pair))) for pair in pairs),
            )
            for key in dict.fromkeys(key for key, _pair in found)
        )
        if pairs:
            names = tuple(shown.name("languages", pair) for pair in pairs)
            shown.grids.append(Grid(_("Measure or criterion"), names, cells, title=title))
    shown.notes += [str(note) for note in shown.page.content.get("notes", []) if str(note).startswith("words of texts")]


_MEASURE_NAMES = {
    "text.characters": gettext_lazy("Characters"),
    "text.words": gettext_lazy("Words"),
    "text.turns": gettext_lazy("Turns"),
    "text.mattr": gettext_lazy("Variety of words (MATTR)"),
}


def _parallel(shown: AgreementSection) -> None:
    means: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in shown.of("consistency.mean"):
        means.setdefault((row["judge"], row["criterion"]), []).append(row)

    def build(found: dict[str, Mapping[str, Any]]) -> GridCell:
        row = found.get("consistency.fleiss_kappa")
        if row is None:
            return NOTHING
        ordered = sorted(means.get((row["judge"], row["criterion"]), []), key=lambda each: each["value"])
        means_by_language = [f"{Figure.of(each).number} {shown.name('language', each['language'])}" for each in ordered]
        line = (
            _("mean %(low)s to %(high)s") % {"low": means_by_language[0], "high": means_by_language[-1]}
            if len(means_by_language) > 1
            else ""
        )
        return figure_cell(shown.page, row, line)

    shown.cells_of(build)


def _juries(shown: AgreementSection) -> None:
    further = [("min", _("worst judge: %s")), ("ens-min", _("difference: %s"))]
    cells_by_variant(shown, "languages.ensemble_kappa", "ens", further, _("Majority of all judges"))
    rows = {plain_value(row["criterion"]): row for row in shown.of("languages.kappa_against_level")}
    cells = tuple(
        GridRow(shown.name("criterion", key), (GridCell(Figure.of(row).number, (_judges(row["n_raters"]),)),))
        for key, row in rows.items()
    )
    if cells:
        columns = (_("Spearman’s ρ"),)
        title = _("Over judges: is who scores higher also more consistent?")
        notes = (_("Shown without an interval."),)
        shown.grids.append(Grid(column_name("criterion"), columns, cells, notes, title=title))


def _judges(count: int) -> str:
    return ngettext("%d judge", "%d judges", count) % count


_BUILDERS: dict[str, Callable[[AgreementSection], None]] = {
    "ranks": _ranks,
    "rankings": _rankings,
    "judge": plain_cells,
    "surface": _surface,
    "parallel": _parallel,
    "pivot": plain_cells,
    "juries": _juries,
}


# --- the page --------------------------------------------------------------------------------------------------------
def _offered(campaign: Campaign, question: NumbersQuestion, choices: QuestionChoices) -> dict[str, Any]:
    """The judges to choose from; or what is missing."""
    if len(choices.generators) < 2:
        more = _("A ranking compares generators: the items’ column “generator” names fewer than two.")
        return {"nothing": _("There is nothing to rank"), "nothing_more": more}
    if not (choices.raters or choices.judges):
        more = _("Let a panel rate, or run a judge.")
        return {"nothing": _("Nobody has scored these items"), "nothing_more": more}
    one = _("The items are in one language, so that only the ranking itself and the judge’s are shown.")
    note = one if len(choices.languages) < 2 else ""
    return {
        "judges": choices.listed_judges(question),
        "judge": parts.chosen_judge(question, choices),
        "form_note": note,
    }


STABILITY = page_about_judges(
    name="stability",
    title=gettext_lazy("Stability"),
    parts=STABILITY_PARTS,
    words=(TITLES, NOTES, EMPTY),
    section=StabilitySection,
    offered=_offered,
)
