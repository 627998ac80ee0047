"""Sections of Generators: do rankings carry over from language to language, and from panel to judge?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics.figure_words import translated_message
from analytics.figures import Figure
from analytics.grids import NOTHING, CellRows, EstimateRow, GridCell, rows_by
from analytics.questions.question_names import column_name
from analytics.views.sections import (
    Section,
    ShownSection,
    cells_by_variant,
    figure_cell,
    p_in_words,
    plain_cells,
)
from analytics.views.survival import SURVIVAL_SECTION, panel_and_judge
from analytics.workflow import SURFACE
from annotation.models import Criterion

STEP_ACROSS, STEP_DOWN, _MARGIN, NAMES = 96, 34, 22, 132
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


# --- sections --------------------------------------------------------------------------------------------------------
def _ranks(shown: ShownSection) -> None:
    if shown.of("stability.rank"):
        shown.notes.append(_rank_one(shown))
    both = [*shown.of("stability.rank"), *shown.of("stability.mean")]
    by_judge = rows_by(both, "judge")
    for judge, title in panel_and_judge(shown):
        rows = [row for row in by_judge.get(judge, ()) if row["asked"] == "stability.rank"]
        languages, generators = (sorted({row[name] for row in rows}) for name in ("language", "generator"))
        if not rows:
            continue
        ranks = {(row["generator"], row["language"]): row for row in rows}
        tied = [tag for tag in languages if len({ranks[key]["value"] for key in ranks if key[1] == tag}) == 1]
        names = [shown.name("language", tag) for tag in languages]
        shown.charts.append(_bump(title, ranks, languages, names, generators))
        ceiling = _("%s: all means are equal, so that there is no ranking (a ceiling).")
        shown.table(
            by_judge[judge], lambda found: _rank_cell(shown, found), down="generator", across="language",
            downs=generators, acrosses=languages, row_name=str, title=title,
            notes=tuple(ceiling % shown.name("language", tag) for tag in tied),
        )  # fmt: skip
    shown.note(
        _(
            "Each interval of a mean here is for that mean alone. The intervals in the results are simultaneous for "
            "the means of a column (Bonferroni)."
        )
    )


def _rank_one(shown: ShownSection) -> str:
    """What rank 1 is on the criterion shown."""
    criterion = shown.page.campaign.rubric_version.criteria.filter(key=shown.criterion).first()
    if criterion is not None and criterion.direction == Criterion.Direction.LOWER:
        return _("Rank 1 has the lowest mean: the rubric says that lower is better.")
    if criterion is not None and criterion.direction == Criterion.Direction.HIGHER:
        return _("Rank 1 has the highest mean: the rubric says that higher is better.")
    return _("Rank 1 has the highest mean: the rubric prefers neither end of the scale.")


def _rank_cell(shown: ShownSection, found: CellRows) -> GridCell:
    row, mean = found.get("stability.rank"), found.get("stability.mean")
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
        return float(_MARGIN + STEP_ACROSS * languages.index(tag)), round(_MARGIN + 14 + STEP_DOWN * (rank - 1), 1)

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
    columns = tuple((float(_MARGIN + STEP_ACROSS * place), name) for place, name in enumerate(names))
    width = 2 * _MARGIN + STEP_ACROSS * (len(languages) - 1) + NAMES
    height = 2 * _MARGIN + 14 + STEP_DOWN * (len(generators) - 1)
    return BumpChart(title, width, height, columns, tuple(lines), " ".join(sentences))


def _rankings(shown: ShownSection) -> None:
    found = rows_by((row for row in shown.rows if row["languages"]), "judge")
    for judge, title in panel_and_judge(shown):
        shown.table(
            found.get(judge, []), lambda rows: _ranking_cell(shown, rows), is_mirrored=True, title=title,
            down=lambda row: row["languages"][0], across=lambda row: row["languages"][1],
            corner=column_name("language"), row_name=partial(shown.name, "language"),
            column_name=partial(shown.name, "language"),
        )  # fmt: skip
    shown.note(_("p: by permutation of the languages; Holm’s correction is with the method of each cell."))


def _ranking_cell(shown: ShownSection, rows: CellRows) -> GridCell:
    if (row := rows.get("stability.kendall_tau_b")) is None:
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
    notes = [translated_message(each["note"]) for each in (inversions, sure) if each is not None and each.get("note")]
    return replace(cell, title=" · ".join([cell.title, *notes]))


def _surface(shown: ShownSection) -> None:
    for title, rows in (
        (_("First stage: measures of the texts"), [row for row in shown.rows if row["criterion"] in SURFACE]),
        (_("Second stage: scores of the panel"), [row for row in shown.rows if not row["judge"]]),
    ):
        if pairs := sorted(filter(None, rows_by(rows, "languages"))):
            shown.table(
                rows, lambda found: _ranking_cell(shown, found), down="criterion", across="languages", acrosses=pairs,
                corner=_("Measure or criterion"), title=title,
                row_name=lambda key: _MEASURE_NAMES.get(key) or shown.name("criterion", key),
            )  # fmt: skip
    shown.notes += [str(note) for note in shown.page.content.get("notes", []) if str(note).startswith("words of texts")]


_MEASURE_NAMES = {
    "text.characters": gettext_lazy("Characters"),
    "text.words": gettext_lazy("Words"),
    "text.turns": gettext_lazy("Turns"),
    "text.mattr": gettext_lazy("Variety of words (MATTR)"),
}


def _parallel(shown: ShownSection) -> None:
    means: dict[tuple[str, str], list[EstimateRow]] = {}
    for row in shown.of("consistency.mean"):
        means.setdefault((row["judge"], row["criterion"]), []).append(row)

    def build(found: CellRows) -> GridCell:
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


def _juries(shown: ShownSection) -> None:
    further = [("min", _("worst judge: %s")), ("ens-min", _("difference: %s"))]
    cells_by_variant(shown, "languages.ensemble_kappa", "ens", further, _("Majority of all judges"))

    def build(found: CellRows) -> GridCell:
        row = next(iter(found.values()))
        judges = ngettext("%d judge", "%d judges", row["n_raters"]) % row["n_raters"]
        return GridCell(Figure.of(row).number, (judges,))

    shown.table(
        shown.of("languages.kappa_against_level"), build, down="criterion", across="",
        column_name=lambda _column: _("Spearman’s ρ"), notes=(_("Shown without an interval."),),
        title=_("Over judges: is who scores higher also more consistent?"),
    )  # fmt: skip


# --- what the page lists ------------------------------------------------------------------------------------------
STABILITY_SECTIONS = (
    Section(
        "ranks",
        title=gettext_lazy("Ranking of generators in each language"),
        about=gettext_lazy(
            "The rank of each generator by its mean score. In brackets: the ranks that are possible given the "
            "clear differences."
        ),
        empty=gettext_lazy("A ranking needs two generators with scores in order."),
        build=_ranks,
        statistics=("stability.rank", "stability.mean"),
        columns="language",
        one_criterion=True,
        needs_order=True,
    ),
    Section(
        "rankings",
        title=gettext_lazy("Do two languages rank alike?"),
        about=gettext_lazy(
            "Kendall’s τ-b of the generators’ means in two languages: 1 is the same order, −1 the opposite one. "
            "An inversion is a pair of generators that change places; it is confirmed where both differences are "
            "clear."
        ),
        empty=gettext_lazy("Rankings are compared where two languages have the same two generators or more."),
        build=_rankings,
        statistics=tuple(
            f"stability.{name}" for name in ("kendall_tau_b", "inversions", "confirmed_inversions", "tied_pairs")
        ),
        columns="languages",
        one_criterion=True,
        needs_order=True,
    ),
    Section(
        "judge",
        title=gettext_lazy("The judge’s ranking beside the panel’s"),
        about=gettext_lazy("Kendall’s τ-b of the generators’ means by the judge and by the panel, on the same items."),
        empty=gettext_lazy("This needs two generators with scores in order by a judge and by the panel."),
        build=plain_cells,
        statistics=("ranking.ranking_tau_b",),
        columns="language",
        needs_order=True,
    ),
    SURVIVAL_SECTION,
    Section(
        "surface",
        title=gettext_lazy("Measures of the texts, then scores"),
        about=gettext_lazy(
            "First stage: do plain measures of the texts rank the generators alike in both languages? "
            "Second stage: do the panel’s scores?"
        ),
        empty=gettext_lazy("Rankings are compared where two languages have the same two generators or more."),
        build=_surface,
        statistics=("stability.kendall_tau_b", "stability.inversions"),
        columns="languages",
        is_catalogue=True,
    ),
    Section(
        "parallel",
        title=gettext_lazy("Consistency of each judge across languages"),
        about=gettext_lazy(
            "Fleiss’ κ with languages as raters, on scenarios that exist in several languages. "
            "Below it the lowest and the highest mean of a language."
        ),
        empty=gettext_lazy("This needs a judge, and scenarios that exist in two languages or more."),
        build=_parallel,
        statistics=("consistency.fleiss_kappa", "consistency.mean"),
        rows="judge",
        columns="criterion",
        is_catalogue=True,
    ),
    Section(
        "pivot",
        title=gettext_lazy("Each language against English"),
        about=gettext_lazy("Cohen’s κ of the judge’s scores in a language and in English, on the same scenarios."),
        empty=gettext_lazy("This needs a judge, and scenarios that exist in English and in another language."),
        build=plain_cells,
        statistics=("consistency.cohen_kappa",),
        columns="languages",
        is_catalogue=True,
    ),
    Section(
        "juries",
        title=gettext_lazy("All judges together"),
        about=gettext_lazy(
            "Fleiss’ κ with languages as raters, of the majority of all judges; below it that of the worst judge, "
            "and the difference."
        ),
        empty=gettext_lazy("This needs two judges or more, and scenarios that exist in two languages or more."),
        build=_juries,
        statistics=("languages.ensemble_kappa", "languages.kappa_against_level"),
        is_catalogue=True,
    ),
)
