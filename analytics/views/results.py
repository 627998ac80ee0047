"""The Results page: the generators by the panel and by the judge, and corrected by both together (METHODS 3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics.answer_pages import plain_value
from analytics.figure_words import FIGURE_SENTENCES
from analytics.figures import Figure
from analytics.questions.asked import QuestionChoices
from analytics.questions.question import NumbersQuestion
from analytics.questions.question_names import column_name
from analytics.score_views import ranks_of_means
from analytics.views import parts
from analytics.views.agreement_sections import NOTHING, AgreementSection, Grid, GridCell, GridRow, figure_cell
from analytics.views.calibration import number_line, page_about_judges
from analytics.views.parts import MACRO, POOLED, PREFERENCES, RESULTS_PARTS
from annotation.models import Campaign, Criterion

Rows = Mapping[str, Mapping[str, Any]]
CORRECTED, PANEL, JUDGE, LABELS, DIFFERENCE = (
    f"leaderboard.{name}"
    for name in ("corrected_mean", "panel_mean", "judge_mean", "effective_labels", "corrected_difference")
)
TITLES = {
    "board": gettext_lazy("Generators over all languages"),
    "languages": gettext_lazy("Generators in each language"),
    "criteria": gettext_lazy("Generators on each criterion"),
    "differences": gettext_lazy("Differences of two generators"),
    "tasks": gettext_lazy("Every task type counts once"),
    "preferences": gettext_lazy("Preferences between two candidates"),
}
_CELL = gettext_lazy(
    "The first figure is the mean corrected by PPI++: the judge’s scores of all items, and what the panel’s labels say "
    "about its error. Where it can’t be computed, the mean of the panel alone stands there and is named."
)
_PLACE = gettext_lazy("Places are those that the clear differences leave open; place 1 is the best score.")
NOTES = {
    "board": _CELL,
    "languages": gettext_lazy(
        "The first figure is the mean corrected in this language alone. The last one has a calibrator that is drawn "
        "towards that of all languages. The mean itself is not drawn: that would hide a language that differs."
    ),
    "criteria": gettext_lazy("All items of all languages count once, each criterion on its own scale."),
    "differences": gettext_lazy(
        "The first generator less the second, in points, on the scenarios that both answered. "
        "The judge’s difference counts on scenarios without labels."
    ),
    "tasks": gettext_lazy(
        "The first figure is the macro mean: every task type counts once, however many items it has. The mean of all "
        "items stands below it, with both ranks."
    ),
    "preferences": gettext_lazy(
        "Items that show two candidates. The strength is the log odds of being preferred to the mean generator "
        "(Bradley-Terry, a tie is half a win); two generators with strengths s and t: 1 / (1 + exp(t − s))."
    ),
}
EMPTY = {
    **dict.fromkeys(
        TITLES, gettext_lazy("Results need two generators with scores in order by the panel, and a judge.")
    ),
    "tasks": gettext_lazy(
        "A mean over task types needs items with an attribute “task_type” or “macro_group” of two values or more, and "
        "labels of every type."
    ),
    "preferences": gettext_lazy(
        "No criterion on a scale from 1 to 2 compares two candidates of items with the attributes “model_a” and "
        "“model_b”."
    ),
}


class ResultsSection(AgreementSection):
    """A section of the Results page."""

    def build(self) -> None:
        _BUILDERS[self.part.name](self)


def _key_of(row: Mapping[str, Any], column: str) -> str:
    return plain_value(row.get(column)) if column else ""


# --- sections --------------------------------------------------------------------------------------------------------
def _board(shown: AgreementSection) -> None:
    column = shown.question.columns
    differences: dict[str, list[Mapping[str, Any]]] = {}
    for row in shown.of(DIFFERENCE):
        differences.setdefault(_key_of(row, column), []).append(row)
    directions = _directions(shown)
    undefined = {str(row["reason"]) for row in shown.rows if row["asked"] == CORRECTED and row["value"] is None}
    shared = list(undefined) if len(undefined) == 1 and not shown.of(CORRECTED) else []
    shown.cells_of(partial(_cell, shown, differences, directions, shared))
    if not column:
        shown.grids[:] = [replace(grid, columns=(_("Corrected mean"),)) for grid in shown.grids]
    if shown.grids:
        shown.notes += [
            *_whole_worth(shown),
            *(_("No mean is corrected: %s.") % FIGURE_SENTENCES.translated(reason) for reason in shared),
        ]
        shown.notes.append(str(_PLACE))
        text = _("Intervals are simultaneous for the means, and for the differences, of a column (Bonferroni).")
        shown.notes.append(text)


def _directions(shown: AgreementSection) -> dict[str, str]:
    criteria = shown.page.campaign.rubric_version.criteria.all()
    return {each.key: each.direction for each in criteria}


def _cell(
    shown: AgreementSection,
    differences: Mapping[str, Sequence[Mapping[str, Any]]],
    directions: Mapping[str, str],
    shared: Sequence[str],
    found: dict[str, Mapping[str, Any]],
) -> GridCell:
    """One generator in one column: its corrected mean, its place, and the means that it is made of."""
    of_panel, corrected = found.get(PANEL), found.get(CORRECTED, {"value": None, "reason": None})
    if of_panel is None or of_panel["value"] is None:
        row = found.get(JUDGE)
        if row is None or row["value"] is None:
            return NOTHING
        return GridCell(lines=(_("no labels by the panel"), *number_line(_("judge alone: %s"), row)))
    column = shown.question.columns
    rows = differences.get(_key_of(of_panel, column), ())
    criterion = _key_of(of_panel, "criterion") or dict(shown.question.where).get("criterion", "")
    place = _place(of_panel["generator"], rows, directions.get(criterion, ""))
    is_corrected = corrected["value"] is not None
    main = corrected if is_corrected else of_panel
    own = number_line(_("panel alone: %s"), of_panel) if is_corrected else (_("panel alone, not corrected"),)
    reason = "" if corrected["reason"] in shared else FIGURE_SENTENCES.translated(corrected["reason"] or "")
    lines = (
        place, *own, *number_line(_("judge alone: %s"), found.get(JUDGE)), reason, *_worth(found.get(LABELS)),
        *number_line(_("calibrated with all languages: %s"), found.get(POOLED)),
    )  # fmt: skip
    return figure_cell(shown.page, main, *(line for line in lines if line), inked=False)


def _whole_worth(shown: AgreementSection) -> list[str]:
    """What all labels of a section are worth, where it is one column: the labels of its generators added up."""
    rows = shown.of(LABELS)
    if shown.question.columns or len(rows) < 2 or len(rows) < sum(row["asked"] == LABELS for row in shown.rows):
        return []
    worth = {"n": sum(row["n_items"] for row in rows), "worth": round(sum(row["value"] for row in rows))}
    return [_("Your %(n)d labels are worth %(worth)d with this judge.") % worth]


def _worth(row: Mapping[str, Any] | None) -> list[str]:
    """What the labels are worth with the judge beside them."""
    if row is None or row["value"] is None:
        return []
    text = ngettext("%(n)d label is worth %(worth)d", "%(n)d labels are worth %(worth)d", row["n_items"])
    interval = f" [{row['low']:.0f}, {row['high']:.0f}]" if row.get("low") is not None else ""
    how = f" {_('approximate')}" if "approximate" in (row.get("method") or "") else ""
    return [text % {"n": row["n_items"], "worth": round(row["value"])} + interval + how]


def _place(generator: str, differences: Iterable[Mapping[str, Any]], direction: str) -> str:
    """Place 1 to 2 of 4: from how many others the whole interval of the difference tells it apart."""
    better = worse = others = 0
    for row in differences:
        if generator not in (row["generator"], row["variant"]):
            continue
        others += 1
        if row.get("low") is None or row.get("high") is None or row["low"] <= 0 <= row["high"]:
            continue
        is_above = (row["low"] > 0) == (row["generator"] == generator)
        if is_above == (direction != Criterion.Direction.LOWER):
            worse += 1  # the other one is worse
        else:
            better += 1
    if not others or direction not in (Criterion.Direction.LOWER, Criterion.Direction.HIGHER):
        return ""
    first, last = 1 + better, 1 + others - worse
    about = {"first": first, "last": last, "all": others + 1}
    if first == last:
        return _("place %(first)d of %(all)d") % about
    return _("place %(first)d to %(last)d of %(all)d") % about


def _differences(shown: AgreementSection) -> None:
    column = shown.question.columns
    rows = [row for row in shown.rows if row["asked"] == DIFFERENCE]
    found = {(row["generator"], row["variant"], _key_of(row, column)): row for row in rows}
    pairs = sorted({key[:2] for key in found})
    places = shown.axis(column, rows)
    cells = tuple(
        GridRow(f"{first} − {second}", tuple(_difference(shown, found.get((first, second, place))) for place in places))
        for first, second in pairs
    )
    if pairs:
        names = tuple(shown.name(column, place) for place in places)
        shown.grids.append(Grid(column_name("generator"), names, cells))
        shown.notes.append(_("Intervals are simultaneous for all differences of a column (Bonferroni)."))


def _difference(shown: AgreementSection, row: Mapping[str, Any] | None) -> GridCell:
    if row is None:
        return NOTHING
    cell = figure_cell(shown.page, row, inked=False)
    if row["value"] is None:
        return cell
    clear = _("clear difference") if Figure.of(row).is_clear else ""
    return replace(cell, lines=tuple(line for line in (clear, *cell.lines) if line), url="")


def _tasks(shown: AgreementSection) -> None:
    """Macro means with the micro mean and both ranks."""
    directions = _directions(shown)
    ranks = {
        key: _ranks(
            [row for row in shown.of(asked) if _key_of(row, "criterion") == key[1]],
            is_lower_better=directions.get(key[1]) == Criterion.Direction.LOWER,
        )
        for asked in (MACRO, _micro(shown))
        for key in {(asked, _key_of(row, "criterion")) for row in shown.of(asked)}
    }

    def build(found: dict[str, Mapping[str, Any]]) -> GridCell:
        row, micro = found.get(MACRO), found.get(_micro(shown))
        if row is None:
            return NOTHING
        criterion, name = _key_of(row, "criterion"), row["generator"]
        before, after = (ranks.get((asked, criterion), {}).get(name) for asked in (_micro(shown), MACRO))
        change = ""
        if before and after:
            change = _("rank %(before)g by all items, %(after)g by task types") % {"before": before, "after": after}
        return figure_cell(shown.page, row, change, *number_line(_("all items: %s"), micro), inked=False)

    if shown.of(MACRO):
        shown.cells_of(build)


def _micro(shown: AgreementSection) -> str:
    """The mean of all items to compare with: corrected, if every generator with a macro mean has it."""
    names = {(row["generator"], row["criterion"]) for row in shown.of(MACRO)}
    corrected = {(row["generator"], row["criterion"]) for row in shown.of(CORRECTED)}
    return CORRECTED if names <= corrected else PANEL


def _ranks(rows: Sequence[Mapping[str, Any]], *, is_lower_better: bool) -> dict[str, float]:
    """By generator its rank, 1 for the best value."""
    sign = -1 if is_lower_better else 1
    return ranks_of_means({row["generator"]: sign * row["value"] for row in rows})


def _preferences(shown: AgreementSection) -> None:
    """By criterion the strengths of the generators by the panel and by the judge, then every two of them."""
    strength, *shares = PREFERENCES
    for criterion in shown.axis("criterion", [*shown.of(strength), *shown.of(shares[0])]):
        own = [row for row in shown.rows if _key_of(row, "criterion") == criterion]
        judges = sorted({row["judge"] or "" for row in own})
        names = tuple(judge or _("Panel") for judge in judges)
        title = shown.name("criterion", criterion)
        for heading, key_of, build in (
            (column_name("generator"), lambda row: row["generator"], _strength),
            (_("Two generators"), lambda row: f"{row['generator']} – {row['variant']}", _win),
        ):
            of_kind = [row for row in own if (row["asked"] == strength) == (build is _strength)]
            found: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
            for row in of_kind:
                found.setdefault((key_of(row), row["judge"] or ""), {})[row["asked"]] = row
            rows = tuple(
                GridRow(down, tuple(build(shown, found.get((down, judge), {})) for judge in judges))
                for down in sorted({key for key, _judge in found})
            )
            if rows:
                shown.grids.append(Grid(heading, names, rows, title=title))
    if shown.grids:
        shown.notes.append(_("Intervals of strengths are simultaneous for the generators of a criterion (Bonferroni)."))


def _strength(shown: AgreementSection, found: Mapping[str, Mapping[str, Any]]) -> GridCell:
    row = found.get(PREFERENCES[0])
    return figure_cell(shown.page, row, inked=False) if row else NOTHING


def _win(shown: AgreementSection, found: Mapping[str, Mapping[str, Any]]) -> GridCell:
    """Share of wins, with ties and losses below."""
    win, tie, loss = (found.get(name) for name in PREFERENCES[1:])
    if win is None:
        return NOTHING
    lines = (*number_line(_("tie: %s"), tie), *number_line(_("lost: %s"), loss))
    return replace(figure_cell(shown.page, win, *lines, inked=False), url="")


_BUILDERS: dict[str, Callable[[AgreementSection], None]] = {
    "tasks": _tasks,
    "preferences": _preferences,
    "board": _board,
    "languages": _board,
    "criteria": _board,
    "differences": _differences,
}


# --- the page --------------------------------------------------------------------------------------------------------
def _offered(campaign: Campaign, question: NumbersQuestion, choices: QuestionChoices) -> dict[str, Any]:
    """The judges to choose from; or what is missing."""
    if len(choices.generators) < 2 and not {"model_a", "model_b"} <= set(choices.attributes):
        more = _("Results compare generators: the items’ column “generator” names fewer than two.")
        return {"nothing": _("There is nothing to compare"), "nothing_more": more}
    if not choices.judges:
        more = _("Run a judge on all items, or import verdicts: the panel’s own means are under Numbers.")
        return {"nothing": _("No judge has scored these items"), "nothing_more": more}
    if not choices.raters:
        more = _("A judge is corrected by people: let a panel rate a sample of the items, or import ratings.")
        return {"nothing": _("Nobody has rated these items"), "nothing_more": more}
    note = _("A correction needs 20 labelled items of a generator, and items that only the judge scored.")
    return {"judges": choices.judges, "judge": parts.chosen_judge(question, choices), "form_note": note}


RESULTS = page_about_judges(
    name="results",
    title=gettext_lazy("Results"),
    parts=RESULTS_PARTS,
    words=(TITLES, NOTES, EMPTY),
    section=ResultsSection,
    offered=_offered,
)
