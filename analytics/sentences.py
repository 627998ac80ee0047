"""What the figures of a panel say, in one plain sentence computed from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from analytics.data_cards import Described
from analytics.figures import SMALL, Figure, spread
from analytics.heatmaps import Heatmap

Names = Callable[[str], str]
"""From a criterion's key or a language's tag to its name."""
SHARE_LEFT_OUT = 0.1
"""From this share of the items on a page says what the mode leaves out; the command line asks (METHODS 3)."""
MOST_NAMED = 3


def listed(names: Sequence[str]) -> str:
    """Arabic; Arabic and Thai; Arabic, Thai and Hindi."""
    if len(names) < 2:
        return "".join(names)
    return _("%(first)s and %(last)s") % {"first": ", ".join(names[:-1]), "last": names[-1]}


def on_agreement(heatmap: Heatmap, criterion_name: Names) -> str:
    """Which criterion the panels agree on least, and whether there are enough items to say so."""
    figures = [cell.figure for cell in heatmap.cells if cell.figure and cell.figure.is_defined]
    if not figures:
        return _(
            "No cell has a value yet: at least two people must score the same items, and the scores must not all "
            "be equal."
        )
    if all(figure.is_small for figure in figures):
        largest = max(figure.n_items for figure in figures)
        counts = {"small": SMALL, "largest": largest}
        return (
            _(
                "Every cell is based on fewer than %(small)d items (%(largest)d at most): treat these figures as "
                "preliminary."
            )
            % counts
        )
    return _weakest(figures, criterion_name)


def _weakest(figures: Sequence[Figure], criterion_name: Names) -> str:
    by_language: dict[str | None, list[Figure]] = {}
    for figure in figures:
        by_language.setdefault(figure.language, []).append(figure)
    compared = [here for here in by_language.values() if len(here) > 1]
    if not compared:
        return _("One criterion has values so far, so there is nothing to compare it with.")
    last = Counter(min(here, key=lambda figure: figure.value or 0.0).criterion for here in compared)
    criterion, times = last.most_common(1)[0]
    if 2 * times <= len(compared):
        return _("No criterion is the least reliable one in most languages.")
    sentence = ngettext(
        "%(criterion)s is the least reliable criterion in %(times)d of %(languages)d language. "
        "Review its anchors before comparing generators on it.",
        "%(criterion)s is the least reliable criterion in %(times)d of %(languages)d languages. "
        "Review its anchors before comparing generators on it.",
        len(compared),
    )
    return sentence % {"criterion": criterion_name(criterion), "times": times, "languages": len(compared)}


def on_bias(figures: Iterable[Figure], language_name: Names) -> str:
    """In which languages the judge is harsher or more generous than the panel beyond doubt."""
    bounded = [figure for figure in figures if figure.low is not None and figure.language]
    if not bounded:
        return _(
            "No language has an interval yet: the judge and the panel must both score items from at least two clusters."
        )
    clear = [figure for figure in bounded if figure.excludes_zero]
    harsh = [language_name(f.language or "") for f in clear if (f.value or 0.0) < 0]
    generous = [language_name(f.language or "") for f in clear if (f.value or 0.0) > 0]
    if harsh and generous:
        names = {"harsh": listed(harsh), "generous": listed(generous)}
        return _("The judge is harsher than the panel in %(harsh)s and more generous in %(generous)s.") % names
    if harsh:
        return _("The judge is harsher than the panel in %s.") % listed(harsh)
    if generous:
        return _("The judge is more generous than the panel in %s.") % listed(generous)
    return _("No interval excludes zero, in any language: these items show no bias.")


def on_calibration(kappas: Iterable[Figure], criterion_name: Names) -> str:
    """On which criterion the judge comes closest to the panel, and on which it stays farthest."""
    found = spread(kappas)
    if found is None:
        return _("No item has both a judge score and a clear panel score yet.")
    nearest, farthest = found.highest, found.lowest
    if nearest is farthest:
        return _("On %(criterion)s the judge reaches a weighted κ of %(value)s.") % {
            "criterion": criterion_name(nearest.criterion),
            "value": nearest.number,
        }
    return _(
        "The judge is closest to the panel on %(nearest)s (%(most)s) and farthest on %(farthest)s (%(least)s)."
    ) % {
        "nearest": criterion_name(nearest.criterion),
        "most": nearest.number,
        "farthest": criterion_name(farthest.criterion),
        "least": farthest.number,
    }


def on_mode(counts: Sequence[Figure], criterion_name: Names, language_name: Names | None) -> str:
    """What the mode leaves out, where that is a tenth or more of the items of a criterion in a language.

    The worst are named; nothing is said where there are none. ``language_name`` is None where there is one language.
    """
    split = [(int(f.value or 0), int(f.value or 0) + f.n_items, f) for f in counts]
    most = sorted(
        (row for row in split if row[0] and row[0] >= SHARE_LEFT_OUT * row[1]), key=lambda row: -row[0] / row[1]
    )
    if not most:
        return ""
    shown = []
    for left_out, items, figure in most[:MOST_NAMED]:
        told: dict[str, int | str] = {
            "left_out": left_out,
            "items": items,
            "criterion": criterion_name(figure.criterion),
        }
        if language_name is not None:
            told["language"] = language_name(figure.language or "")
            shown.append(_("%(left_out)d of %(items)d items (%(criterion)s, %(language)s)") % told)
        elif len(counts) > 1:
            shown.append(_("%(left_out)d of %(items)d items (%(criterion)s)") % told)
        else:
            shown.append(_("%(left_out)d of %(items)d items") % told)
    if (rest := len(most) - MOST_NAMED) > 0:
        shown.append(ngettext("%d more cell", "%d more cells", rest) % rest)
    return _(
        "The mode leaves out %s where the annotators are tied. Median, mean and “each annotator” keep them."
    ) % listed(shown)


def on_panel(panel: Described, language_name: Names) -> str:
    """What those who consented let the study say of a panel; of the others nothing but their number."""
    if not panel.consenting:
        return _("Nobody on this panel has agreed to be described.")
    facts = (
        (_("First languages"), Counter({language_name(tag): count for tag, count in panel.grew_up_with.items()})),
        (_("Education"), panel.education),
        (_("Experience with language work"), panel.experience),
    )
    of = _("%(consenting)d of %(annotators)d agreed to be described.")
    counted = of % {"consenting": panel.consenting, "annotators": panel.annotators}
    return " ".join([counted, *(f"{name}: {_counted(counts)}." for name, counts in facts if counts)])


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{value} ({count})" for value, count in sorted(counts.items()))
