"""A section of Results and of Stability: which places survive without faulty dialogues and by each simulator."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics.grids import NOTHING, CellRows, EstimateRow, GridCell
from analytics.views.sections import Section, ShownSection

_PLACE, SURVIVAL, SURVIVALS = "survival.place", "survival.survival", "survival.survivals"
FAULTY_DIALOGUES = "survival.faulty_dialogues"
ALL_VARIANT, SOUND_VARIANT, SIMULATOR_PREFIX = "all", "sound", "simulator: "  # of analytics/stats/ranking/survival.py


def panel_and_judge(shown: ShownSection) -> list[tuple[str, str]]:
    """The panel and the chosen judge: the value in the column `judge`, and the name."""
    judge = next(iter(shown.question.judges), "")
    return [("", _("The panel")), *([(judge, judge)] if judge else [])]


def _survival(shown: ShownSection) -> None:
    for judge, title in panel_and_judge(shown):
        own = [row for row in shown.rows if (row["judge"] or "") == judge]
        outcomes = [row for row in own if row["asked"] == SURVIVAL]
        by_variant: dict[tuple[str, str], dict[str, EstimateRow]] = defaultdict(dict)
        for row in own:
            if row["asked"] == _PLACE and row["value"] is not None:
                by_variant[row["generator"], row["language"]][row["variant"]] = row
        languages, generators = (sorted({row[name] for row in outcomes}) for name in ("language", "generator"))
        ranked = Counter((tag, variant) for (_g, tag), own_places in by_variant.items() for variant in own_places)

        def build(found: CellRows, by_variant: Any = by_variant, ranked: Any = ranked) -> GridCell:
            row = found.get(SURVIVAL)
            if row is None:
                return NOTHING
            return _outcome_cell(shown, row, by_variant[row["generator"], row["language"]], ranked)

        counted = {row["variant"]: int(row["value"]) for row in own if row["asked"] == SURVIVALS}
        faulty = [_faulty(row) for row in own if row["asked"] == FAULTY_DIALOGUES]
        shown.table(
            outcomes, build, down="generator", across="language", downs=generators, acrosses=languages, row_name=str,
            title=title, notes=(_counts(counted), *faulty) if counted else (),
        )  # fmt: skip
    shown.note(
        _(
            "A place survives if it says something and every other place lies within it. It changes if two of them "
            "have nothing in common. Fewer dialogues say less, so that many places stay open."
        ),
        _("Two places are compared among the generators that both have."),
        _(
            "Faulty: set aside when it was made, marked as critical or skipped as damaged by the panel, or found by "
            "the check-up."
        ),
    )


def _outcome_cell(
    shown: ShownSection, row: EstimateRow, by_variant: dict[str, EstimateRow], ranked: Counter[tuple[str, str]]
) -> GridCell:
    """The outcome of one generator in one language, and its places; ``ranked``: how many a language and variant has."""
    of_all = by_variant.get(ALL_VARIANT)
    if of_all is None:
        return NOTHING
    outcome = {1.0: _("survives"), 0.0: _("changes"), None: _("not decided")}[row["value"]]
    lines = [
        outcome,
        _("of %(all)d generators; %(items)s") % {"all": ranked[row["language"], ALL_VARIANT], "items": _items(of_all)},
    ]
    for variant, place in sorted(by_variant.items(), key=lambda each: (each[0] != SOUND_VARIANT, each[0])):
        n = ranked[row["language"], variant]
        generators = ngettext("%d generator", "%d generators", n) % n
        about = {"places": _places(place), "generators": generators, "items": _items(place)}
        if variant == SOUND_VARIANT:
            lines.append(_("without faulty dialogues: %(places)s; %(generators)s, %(items)s") % about)
        elif variant != ALL_VARIANT:
            about["name"] = variant.removeprefix(SIMULATOR_PREFIX)
            lines.append(_("simulator %(name)s: %(places)s; %(generators)s, %(items)s") % about)
    return GridCell(_places(of_all), tuple(lines), url=shown.page.items_address(of_all))


def _places(row: EstimateRow) -> str:
    """1, or 1 to 2; the rank of the mean where no interval says which places are possible."""
    if row.get("low") is None or row.get("high") is None:
        return _("rank %g, without an interval") % row["value"]
    if row["low"] == row["high"]:
        return f"{row['low']:g}"
    return _("%(low)s to %(high)s") % {"low": f"{row['low']:g}", "high": f"{row['high']:g}"}


def _items(row: EstimateRow) -> str:
    return ngettext("%d item", "%d items", row["n_items"]) % row["n_items"]


def _counts(counted: dict[str, int]) -> str:
    about = {"all": sum(counted.values()), **counted}
    sentence = _("Of %(all)d places: %(survives)d survive, %(changes)d change, %(undecided)d not decided.")
    return sentence % about


def _faulty(row: EstimateRow) -> str:
    n = int(row["value"])
    if not n:
        return _("No rated dialogue has a known fault.")
    return ngettext("%(n)d rated dialogue is faulty.", "%(n)d rated dialogues are faulty.", n) % {"n": n}


SURVIVAL_SECTION = Section(
    "survival",
    title=gettext_lazy("Which places survive?"),
    about=gettext_lazy(
        "The place of each generator with all dialogues, without the faulty ones, and with the dialogues of each "
        "simulator alone. A ranking that depends on the simulator says as much about the simulator."
    ),
    empty=gettext_lazy(
        "This needs two generators with scores in order. And it needs faulty dialogues, or an attribute “simulator” "
        "with two values or more."
    ),
    build=_survival,
    statistics=(_PLACE, SURVIVAL, SURVIVALS, FAULTY_DIALOGUES),
    columns="language",
    one_criterion=True,
    needs_order=True,
)
