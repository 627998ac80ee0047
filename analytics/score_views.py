"""Scores as the numbers page shows them without a coefficient: shares, classes, prevalence, and means with ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics.figures import SHARE_LEFT_OUT, Figure, Figures, Names, listed
from analytics.stats.declared.register import BY_PLAIN_NAME

CLASS_NAMES = {
    "full": gettext_lazy("all agree"),
    "partial": gettext_lazy("some agree"),
    "none": gettext_lazy("no two agree"),
}
Shares = list[tuple[str, list[Figure]]]
"""By rater, the share of each point."""


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table: what it is about, and its figures in the order of the columns."""

    criterion: str
    language: str
    key: str
    figures: tuple[Figure | None, ...]
    is_all: bool = False
    criterion_key: str = ""
    ranks: tuple[str, ...] = ()

    @property
    def ranked(self) -> list[tuple[Figure | None, str]]:
        """Each figure with its rank."""
        return list(zip(self.figures, self.ranks, strict=True))

    @property
    def basis(self) -> str:
        """What the row's figures rest on, when they rest on the same."""
        return next((figure.basis for figure in self.figures if figure), "")

    @property
    def made(self) -> list[tuple[str, Figure]]:
        """Each figure under its name, to say how it was computed and from what."""
        declared = [(BY_PLAIN_NAME[figure.statistic], figure) for figure in self.figures if figure]
        return [(_(statistic.short_title or statistic.title), figure) for statistic, figure in declared]


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One class of a nominal criterion: its share among the panel's scores and the judge's; precision, recall, F1."""

    name: str
    shares: tuple[Figure | None, Figure | None]
    figures: tuple[Figure | None, ...]


@dataclass(frozen=True, slots=True)
class ClassTable:
    """One nominal criterion in one language, class by class."""

    key: str
    criterion: str
    language: str
    rows: tuple[ClassRow, ...]
    accuracy: Figure | None
    kappa: Figure | None


@dataclass(frozen=True, slots=True)
class Distribution:
    """One criterion: the share of each point, for the panel and each judge; the shares of the agreement classes.

    `by_class`: the name of each class with the shares among its items.
    """

    key: str
    criterion: str
    points: tuple[str, ...]
    shares: Shares
    classes: list[Figure]
    by_class: list[tuple[str, Shares]]

    @property
    def class_shares(self) -> list[tuple[str, Figure]]:
        """The agreement classes by name."""
        return [(str(CLASS_NAMES[figure.part or ""]), figure) for figure in self.classes]


@dataclass(frozen=True, slots=True)
class PrevalenceTable:
    """The share of one label of a flag, by generator and language; in each cell by rater, the panel first."""

    key: str
    criterion: str
    label: str
    languages: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[tuple[str, Figure], ...], ...]], ...]


class ScoredPage(Protocol):
    """What the tables here read of a page of numbers."""

    content: dict[str, Any]
    figures: Figures
    judge: str
    languages: tuple[str, ...]

    @property
    def criteria(self) -> Mapping[str, str]: ...

    @property
    def nominal(self) -> list[str]: ...

    @property
    def ordered(self) -> list[str]: ...

    @property
    def judges(self) -> list[dict[str, Any]]: ...

    @property
    def part_language(self) -> str | None: ...

    @property
    def has_panel(self) -> bool: ...

    @property
    def lower_is_better(self) -> set[str]: ...

    def point_name(self, criterion: str, point: str | None) -> str: ...

    def language_name(self, tag: str | None) -> str: ...


def class_tables(page: ScoredPage) -> list[ClassTable]:
    """Of each nominal criterion the judge's figures for each class, in the language that is shown."""
    return [table for key in page.nominal if (table := _class_table(page, key)).rows]


def _class_table(page: ScoredPage, criterion: str) -> ClassTable:
    where = (criterion, page.part_language)
    rows = []
    for share in page.figures.parts("score_share", *where, page.judge):
        names = ("precision", "recall", "f1")
        found = [page.figures.get(name, *where, page.judge, share.part) for name in names]
        panel = page.figures.get("score_share", *where, None, share.part)
        rows.append(ClassRow(page.point_name(criterion, share.part), (panel, share), tuple(found)))
    whole = [page.figures.get(name, *where, page.judge) for name in ("accuracy", "cohen_kappa")]
    compared = tuple(row for row in rows if any(row.figures))
    return ClassTable(criterion, page.criteria[criterion], page.language_name(where[1]), compared, whole[0], whole[1])


def _raters(page: ScoredPage) -> list[tuple[str | None, str]]:
    return [(None, _("Panel")), *((judge["name"], judge["name"]) for judge in page.judges)]


def distributions(page: ScoredPage) -> list[Distribution]:
    """Of each criterion, the share of each point among the panel's scores and each judge's."""
    shown = []
    raters, inside = _raters(page), _rows_by(page, "class_score_share")
    for criterion, name in page.criteria.items():
        place = (criterion, page.part_language)
        found = [(rater, page.figures.parts("score_share", *place, judge)) for judge, rater in raters]
        if shares := [(rater, parts) for rater, parts in found if parts]:
            points = tuple(page.point_name(criterion, figure.part) for figure in shares[0][1])
            classes = page.figures.parts("class_share", *place)
            by_class = _by_class(inside.get(place, []), raters)
            shown.append(Distribution(criterion, name, points, shares, classes, by_class))
    return shown


def _rows_by(page: ScoredPage, statistic: str) -> dict[tuple[str, str | None], list[Mapping[str, Any]]]:
    """The rows of a statistic by criterion and language."""
    found: dict[tuple[str, str | None], list[Mapping[str, Any]]] = {}
    for row in page.content["estimates"]:
        if row["statistic"] == statistic:
            found.setdefault((row["criterion"], row.get("language")), []).append(row)
    return found


def _by_class(rows: Iterable[Mapping[str, Any]], raters: Sequence[tuple[str | None, str]]) -> list[tuple[str, Shares]]:
    """By class of agreement the shares of each point, for the panel and each judge (METHODS 3: S4 4.2)."""
    found: dict[str, dict[str | None, list[Figure]]] = {}
    for row in rows:
        if row.get("value") is not None:
            found.setdefault(row["agreement_class"], {}).setdefault(row.get("judge"), []).append(Figure.of(row))
    return [
        (str(name), [(rater, found[key][judge]) for judge, rater in raters if judge in found[key]])
        for key, name in CLASS_NAMES.items()
        if key in found
    ]


def prevalence_tables(page: ScoredPage) -> list[PrevalenceTable]:
    """Of each flag, the share of its higher label by generator and language: of the panel, and of the judge shown."""
    tables = []
    rows: dict[str, dict[tuple[str, str], dict[str | None, Figure]]] = {}
    labels: dict[str, str] = {}
    for row in page.content["estimates"]:
        if row["statistic"] == "prevalence" and row.get("judge") in (None, page.judge):
            cell = (row.get("generator") or "", row.get("language") or "")
            rows.setdefault(row["criterion"], {}).setdefault(cell, {})[row.get("judge")] = Figure.of(row)
            labels[row["criterion"]] = page.point_name(row["criterion"], row["variant"])
    raters = [(judge, name) for judge, name in _raters(page) if judge in (None, page.judge)]
    for criterion in [key for key in page.nominal if key in rows]:
        cells, spoken = rows[criterion], page.languages
        shown = tuple(
            (
                generator or _("no generator"),
                tuple(_prevalence(cells.get((generator, tag), {}), raters) for tag in spoken),
            )
            for generator in sorted({generator for generator, _language in cells})
        )
        names = tuple(page.language_name(tag) for tag in spoken)
        tables.append(PrevalenceTable(criterion, page.criteria[criterion], labels[criterion], names, shown))
    return tables


def _prevalence(
    figures: Mapping[str | None, Figure], raters: Sequence[tuple[str | None, str]]
) -> tuple[tuple[str, Figure], ...]:
    return tuple((name, figures[judge]) for judge, name in raters if judge in figures)


def generator_lines(page: ScoredPage) -> list[Line]:
    """Mean score of each generator on each criterion, with its rank: of the panel where it rated, and of each judge.

    Rankings are per language (METHODS 4): means over several languages have no rank.
    """
    lines = []
    for criterion in page.ordered:
        means = [page.figures.parts("classical_mean", criterion)] if page.has_panel else []
        means += [page.figures.parts("judge_mean", criterion, None, judge["name"]) for judge in page.judges]
        by_generator = [{figure.part or "": figure for figure in column} for column in means]
        sign = -1 if criterion in page.lower_is_better else 1
        ranks = [_ranks(column, sign) if len(page.languages) == 1 else {} for column in by_generator]
        for generator in sorted({part for column in by_generator for part in column if part}):
            figures = tuple(column.get(generator) for column in by_generator)
            ranked = tuple(column.get(generator, "") for column in ranks)
            key = f"{criterion}-{generator}"
            lines.append(Line(page.criteria[criterion], generator, key, figures, False, criterion, ranked))
    return lines


def _ranks(column: Mapping[str, Figure], sign: int) -> dict[str, str]:
    """The rank of each generator by its mean, in words; none for one generator."""
    values = {name: sign * figure.value for name, figure in column.items() if name and figure.value is not None}
    return {name: f"{rank:g}" for name, rank in ranks_of_means(values).items()} if len(values) > 1 else {}


def ranks_of_means(values: Mapping[str, float]) -> dict[str, float]:
    """The rank of each name by its value, 1 the highest; values equal within 1e-9 share the mean of their ranks."""
    ranks = {}
    for name, value in values.items():
        above = sum(other > value + 1e-9 for other in values.values())
        equal = sum(abs(other - value) <= 1e-9 for other in values.values())
        ranks[name] = above + (equal + 1) / 2
    return ranks


# --- what the mode leaves out ----------------------------------------------------------------------------------------
_MOST_NAMED = 3


def on_mode(counts: Sequence[Figure]) -> str:
    """How many cells (an item on a criterion) the mode leaves out, where that is a tenth or more of all or of those of
    a criterion in a language; else nothing.
    """
    split = [_left_out(figure) for figure in counts]
    left_out, cells = sum(row[0] for row in split), sum(row[1] for row in split)
    if not any(row[0] and row[0] >= SHARE_LEFT_OUT * row[1] for row in (*split, (left_out, cells))):
        return ""
    sentence = ngettext(
        "The judge’s figures leave out %(left_out)s of %(cells)s cell: the annotators are tied there, so "
        "that no score is the most frequent.",
        "The judge’s figures leave out %(left_out)s of %(cells)s cells: the annotators are tied there, so "
        "that no score is the most frequent.",
        cells,
    )
    return sentence % {"left_out": f"{left_out:,}", "cells": f"{cells:,}"}


def mode_cells(counts: Sequence[Figure], criterion_name: Names, language_name: Names | None) -> str:
    """The criteria and languages of which the mode leaves out most; `language_name` is None where there is one."""
    split = [(*_left_out(figure), figure) for figure in counts]
    most = [row for row in split if row[0] and row[0] >= SHARE_LEFT_OUT * row[1]]
    most.sort(key=lambda row: -row[0] / row[1])
    shown = []
    for left_out, items, figure in most[:_MOST_NAMED]:
        fields: dict[str, int | str] = {"left_out": left_out, "items": items}
        fields["criterion"] = criterion_name(figure.criterion)
        if language_name is None:
            shown.append(_("%(left_out)d of %(items)d items (%(criterion)s)") % fields)
        else:
            fields["language"] = language_name(figure.language or "")
            shown.append(_("%(left_out)d of %(items)d items (%(criterion)s, %(language)s)") % fields)
    if (rest := len(most) - _MOST_NAMED) > 0:
        shown.append(_("%d more") % rest)
    return listed(shown)


def _left_out(figure: Figure) -> tuple[int, int]:
    """Items without a mode, and all the items that the panel and the judge scored."""
    left_out = int(figure.value or 0)
    return left_out, left_out + figure.n_items
