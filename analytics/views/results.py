"""Sections of Generators: their means by the panel and by the judge, and corrected by both together (METHODS 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics.figure_words import translated_message
from analytics.figures import Figure
from analytics.grids import NOTHING, CellRows, EstimateRow, GridCell, rows_by, text_of
from analytics.places import CORRECTED, DIFFERENCE, JUDGE, LABELS, LEADERBOARD, PANEL, POOLED, place_range
from analytics.planning import FEWEST_FOR_CORRECTION
from analytics.questions.question_names import column_name
from analytics.score_views import ranks_of_means
from analytics.stats.core.messages import is_approximate
from analytics.views.sections import Section, ShownSection, figure_cell, number_line
from annotation.models import Criterion

MACRO = "leaderboard.macro_mean"
PREFERENCES = tuple(f"preference.{name}" for name in ("strength", "win", "tie", "loss"))
_CELL = gettext_lazy(
    "The first figure is the mean corrected by PPI++: the judge’s scores of all items, and what the panel’s labels say "
    "about its error. Where it can’t be computed, the mean of the panel alone stands there and is named."
)
_PLACE = gettext_lazy("Places are those that the clear differences leave open; place 1 is the best score.")
_EMPTY = gettext_lazy("Results need two generators with scores in order by the panel, and a judge.")


# --- sections --------------------------------------------------------------------------------------------------------
def _board(shown: ShownSection) -> None:
    column = shown.question.columns
    differences = rows_by(shown.of(DIFFERENCE), column)
    directions = _directions(shown)
    undefined = {row["reason"] for row in shown.rows if row["asked"] == CORRECTED and row["value"] is None}
    shared = list(undefined) if len(undefined) == 1 and not shown.of(CORRECTED) else []
    shown.cells_of(partial(_cell, shown, differences, directions, shared))
    if not column:
        shown.grids[:] = [replace(grid, columns=(_("Corrected mean"),)) for grid in shown.grids]
    if shown.grids:
        shown.notes += [
            *_whole_worth(shown),
            *(_("No mean is corrected: %s.") % translated_message(reason) for reason in shared),
            *_until_corrected(shown, bool(shared)),
        ]
        shown.notes.append(str(_PLACE))
        text = _("Intervals are simultaneous for the means, and for the differences, of a column (Bonferroni).")
        shown.notes.append(text)


def _until_corrected(shown: ShownSection, is_lacking: bool) -> list[str]:
    """What to do where no mean is corrected: how many items to rate, and which mean to use until then."""
    rows = [row for row in shown.rows if row["asked"] == CORRECTED and row["value"] is None]
    short = max((FEWEST_FOR_CORRECTION - int(row["n_items"]) for row in rows), default=0)
    if not is_lacking or short <= 0:
        return []
    text = ngettext(
        "Rate %d more item of each generator here, or use the panel’s mean, which stands first.",
        "Rate %d more items of each generator here, or use the panel’s mean, which stands first.",
        short,
    )
    over = _("“%s” has more labels for each mean.") % _("Generators over all languages")
    return [text % short, *([over] if shown.question.columns == "language" else [])]


def _directions(shown: ShownSection) -> dict[str, str]:
    criteria = shown.page.campaign.rubric_version.criteria.all()
    return {each.key: each.direction for each in criteria}


def _cell(
    shown: ShownSection,
    differences: Mapping[str, Sequence[EstimateRow]],
    directions: Mapping[str, str],
    shared: Sequence[str],
    found: CellRows,
) -> GridCell:
    """One generator in one column: its corrected mean, its place, and the means that it is made of."""
    of_panel, corrected = found.get(PANEL), found.get(CORRECTED, {"value": None, "reason": None})
    if of_panel is None or of_panel["value"] is None:
        row = found.get(JUDGE)
        if row is None or row["value"] is None:
            return NOTHING
        return GridCell(lines=(_("no labels by the panel"), *number_line(_("judge alone: %s"), row)))
    column = shown.question.columns
    rows = differences.get(text_of(of_panel, column), ())
    criterion = text_of(of_panel, "criterion") or dict(shown.question.where).get("criterion", "")
    place = _place(of_panel["generator"], rows, directions.get(criterion, ""))
    is_corrected = corrected["value"] is not None
    main = corrected if is_corrected else of_panel
    own = number_line(_("panel alone: %s"), of_panel) if is_corrected else (_("panel alone, not corrected"),)
    reason = "" if corrected["reason"] in shared else translated_message(corrected["reason"] or "")
    lines = (
        place, *own, *number_line(_("judge alone: %s"), found.get(JUDGE)), reason, *_worth(found.get(LABELS)),
        *number_line(_("calibrated with all languages: %s"), found.get(POOLED)),
    )  # fmt: skip
    return figure_cell(shown.page, main, *(line for line in lines if line), inked=False)


def _whole_worth(shown: ShownSection) -> list[str]:
    """The effective number of all labels of a section, if it has one column: the sum over its generators."""
    rows = shown.of(LABELS)
    if shown.question.columns or len(rows) < 2 or len(rows) < sum(row["asked"] == LABELS for row in shown.rows):
        return []
    worth = {"n": sum(row["n_items"] for row in rows), "worth": round(sum(row["value"] for row in rows))}
    return [_("Your %(n)d labels are worth %(worth)d with this judge.") % worth]


def _worth(row: EstimateRow | None) -> list[str]:
    """The effective number of the labels if the judge's scores are used with them."""
    if row is None or row["value"] is None:
        return []
    text = ngettext("%(n)d label is worth %(worth)d", "%(n)d labels are worth %(worth)d", row["n_items"])
    interval = f" [{row['low']:.0f}, {row['high']:.0f}]" if row.get("low") is not None else ""
    how = f" {_('approximate')}" if is_approximate(row.get("method")) else ""
    return [text % {"n": row["n_items"], "worth": round(row["value"])} + interval + how]


def _place(generator: str, differences: Iterable[EstimateRow], direction: str) -> str:
    """Place 1 to 2 of 4: from how many others the whole interval of the difference tells it apart."""
    if (places := place_range(generator, differences, direction)) is None:
        return ""
    about = dict(zip(("first", "last", "all"), places, strict=True))
    if about["first"] == about["last"]:
        return _("place %(first)d of %(all)d") % about
    return _("place %(first)d to %(last)d of %(all)d") % about


def _differences(shown: ShownSection) -> None:
    column = shown.question.columns
    rows = [row for row in shown.rows if row["asked"] == DIFFERENCE]
    pairs = sorted({(row["generator"], row["variant"]) for row in rows})
    shown.table(
        rows, lambda found: _difference(shown, found[DIFFERENCE]), down=_pair, across=column,
        corner=column_name("generator"), downs=[f"{first} − {second}" for first, second in pairs],
        acrosses=shown.axis(column, rows),
    )  # fmt: skip
    shown.note(_("Intervals are simultaneous for all differences of a column (Bonferroni)."))


def _pair(row: EstimateRow) -> str:
    return f"{row['generator']} − {row['variant']}"


def _difference(shown: ShownSection, row: EstimateRow) -> GridCell:
    cell = figure_cell(shown.page, row, inked=False)
    if row["value"] is None:
        return cell
    clear = _("clear difference") if Figure.of(row).is_clear else ""
    return replace(cell, lines=tuple(line for line in (clear, *cell.lines) if line), url="")


def _tasks(shown: ShownSection) -> None:
    """Macro means with the micro mean and both ranks."""
    directions = _directions(shown)
    ranks = {
        key: _ranks(
            [row for row in shown.of(asked) if text_of(row, "criterion") == key[1]],
            is_lower_better=directions.get(key[1]) == Criterion.Direction.LOWER,
        )
        for asked in (MACRO, _micro(shown))
        for key in {(asked, text_of(row, "criterion")) for row in shown.of(asked)}
    }

    def build(found: CellRows) -> GridCell:
        row, micro = found.get(MACRO), found.get(_micro(shown))
        if row is None:
            return NOTHING
        criterion, name = text_of(row, "criterion"), row["generator"]
        before, after = (ranks.get((asked, criterion), {}).get(name) for asked in (_micro(shown), MACRO))
        change = ""
        if before and after:
            change = _("rank %(before)g by all items, %(after)g by task types") % {"before": before, "after": after}
        return figure_cell(shown.page, row, change, *number_line(_("all items: %s"), micro), inked=False)

    if shown.of(MACRO):
        shown.cells_of(build)


def _micro(shown: ShownSection) -> str:
    """The mean of all items to compare with: corrected, if every generator with a macro mean has it."""
    names = {(row["generator"], row["criterion"]) for row in shown.of(MACRO)}
    corrected = {(row["generator"], row["criterion"]) for row in shown.of(CORRECTED)}
    return CORRECTED if names <= corrected else PANEL


def _ranks(rows: Sequence[EstimateRow], *, is_lower_better: bool) -> dict[str, float]:
    """By generator its rank, 1 for the best value."""
    sign = -1 if is_lower_better else 1
    return ranks_of_means({row["generator"]: sign * row["value"] for row in rows})


def _preferences(shown: ShownSection) -> None:
    """By criterion the strengths of the generators by the panel and by the judge, then every two of them."""
    strength, *shares = PREFERENCES
    for criterion in shown.axis("criterion", [*shown.of(strength), *shown.of(shares[0])]):
        own = [row for row in shown.rows if text_of(row, "criterion") == criterion]
        shape = {
            "across": lambda row: row["judge"] or "",
            "acrosses": sorted({row["judge"] or "" for row in own}),
            "column_name": lambda judge: judge or _("Panel"),
            "title": shown.name("criterion", criterion),
        }
        strengths = [row for row in own if row["asked"] == strength]
        names = sorted({row["generator"] for row in strengths})
        shown.table(
            strengths, lambda found: figure_cell(shown.page, found[strength], inked=False),
            down="generator", downs=names, row_name=str, **shape,
        )  # fmt: skip
        wins = [row for row in own if row["asked"] != strength]
        shown.table(
            wins, partial(_win, shown), down=_two, downs=sorted(rows_by(wins, _two)), corner=_("Two generators"),
            **shape,
        )  # fmt: skip
    shown.note(_("Intervals of strengths are simultaneous for the generators of a criterion (Bonferroni)."))


def _two(row: EstimateRow) -> str:
    return f"{row['generator']} – {row['variant']}"


def _win(shown: ShownSection, found: CellRows) -> GridCell:
    """Share of wins, with ties and losses below."""
    win, tie, loss = (found.get(name) for name in PREFERENCES[1:])
    if win is None:
        return NOTHING
    lines = (*number_line(_("tie: %s"), tie), *number_line(_("lost: %s"), loss))
    return replace(figure_cell(shown.page, win, *lines, inked=False), url="")


# --- what the page lists ------------------------------------------------------------------------------------------
RESULT_SECTIONS = (
    Section(
        "board",
        title=gettext_lazy("Generators over all languages"),
        about=_CELL,
        empty=_EMPTY,
        build=_board,
        statistics=LEADERBOARD,
        rows="generator",
        one_criterion=True,
        needs_order=True,
    ),
    Section(
        "languages",
        title=gettext_lazy("Generators in each language"),
        about=gettext_lazy(
            "The first figure is the mean corrected in this language alone, or the panel’s mean where it can’t be "
            "corrected. The last one has a calibrator that is drawn towards that of all languages."
        ),
        empty=_EMPTY,
        build=_board,
        statistics=(*LEADERBOARD, POOLED),
        rows="generator",
        columns="language",
        one_criterion=True,
        needs_order=True,
    ),
    Section(
        "criteria",
        title=gettext_lazy("Generators on each criterion"),
        about=gettext_lazy("All items of all languages count once, each criterion on its own scale."),
        empty=_EMPTY,
        build=_board,
        statistics=LEADERBOARD,
        rows="generator",
        columns="criterion",
        needs_order=True,
    ),
    Section(
        "differences",
        title=gettext_lazy("Differences of two generators"),
        about=gettext_lazy(
            "The first generator less the second, in points, on the scenarios that both answered. "
            "The judge’s difference counts on scenarios without labels."
        ),
        empty=_EMPTY,
        build=_differences,
        statistics=LEADERBOARD[-1:],
        columns="language",
        one_criterion=True,
        needs_order=True,
    ),
    Section(
        "tasks",
        title=gettext_lazy("Every task type counts once"),
        about=gettext_lazy(
            "The first figure is the macro mean: every task type counts once, however many items it has. The mean "
            "of all items stands below it, with both ranks."
        ),
        empty=gettext_lazy(
            "A mean over task types needs items with an attribute “task_type” or “macro_group” of two values or "
            "more, and labels of every type."
        ),
        build=_tasks,
        statistics=(MACRO, *LEADERBOARD[:3]),
        rows="generator",
        columns="criterion",
        needs_order=True,
        is_catalogue=True,
    ),
    Section(
        "preferences",
        title=gettext_lazy("Preferences between two candidates"),
        about=gettext_lazy(
            "Items that show two candidates. The strength is the log odds of being preferred to the mean generator "
            "(Bradley-Terry, a tie is half a win); two generators with strengths s and t: 1 / (1 + exp(t − s))."
        ),
        empty=gettext_lazy(
            "No criterion on a scale from 1 to 2 compares two candidates of items with the attributes “model_a” "
            "and “model_b”."
        ),
        build=_preferences,
        statistics=PREFERENCES,
        rows="criterion",
        columns="",
    ),
)
