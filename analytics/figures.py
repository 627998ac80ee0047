"""A snapshot's estimates as a page reads them: figures, heatmap, charts, sentences. No numpy, no renderer here."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from html import escape
from math import erfc, sqrt
from typing import Any
from urllib.parse import urlencode

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from accounts.sentences import left_to_right, with_commas
from analytics.figure_words import SPEAKS_FOR, translated_message
from analytics.stats.core.messages import is_approximate, is_conservative
from analytics.stats.declared.declaring import Statistic
from analytics.stats.declared.register import BY_PLAIN_NAME, OVER_REPEATS

VERY_FEW = 10  # items: fewer are reason enough to have no interval
SMALL = 30
"""Below this many items or clusters a figure is shown in muted ink, and no sentence concludes from it."""
ALPHA = 0.05
"""Of the corrected p of a difference."""
MINUS = "−"
NAMED_RULES = (
    "mode", "mode_split", "mode_lower", "mode_upper", "median", "minimum", "each", "dawid_skene", "adjudicated",
    "adjudicated_first",
)  # fmt: skip
"""Rules of reference for which a list of items is asked by name; without one it takes the mean, of labels the mode."""

_TRANSLATED = ("reason", "interval_reason", "note")


def rule_of_items(reference: str, ties: str = "exclude") -> str:
    """The rule by which a list of items has the reference of a figure: what a tied mode does is part of its name.

    `reference`: as an estimate states it, "mode, ties: median". `ties`: of its question, where it states none.
    """
    rule, _sign, stated = reference.partition(", ties: ")
    ties = stated or ties
    return f"mode_{'split' if ties == 'median' else ties}" if rule == "mode" and ties != "exclude" else rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One estimate: a value with its interval and counts, or the reason there is none.

    `language` is None over all languages, `judge` is None for the panel alone.
    """

    statistic: str
    criterion: str
    language: str | None = None
    judge: str | None = None
    variant: str | None = None
    level: str | None = None
    agreement_class: str | None = None
    generator: str | None = None
    reference: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n_items: int = 0
    n_raters: int = 0
    n_ratings: int = 0
    n_missing: int = 0
    n_clusters: int | None = None
    se: float | None = None
    p: float | None = None
    method: str = ""
    reason: str = ""
    interval_reason: str = ""
    note: str = ""
    speaks_for: str = ""
    p_corrected: float | None = None
    family: int | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Figure:
        """A figure from its row in `Snapshot.content`, with what is said of it in the reader's language."""
        values = {name: row[name] for name in cls.__slots__ if name in row}
        for name in _TRANSLATED:
            if text := values.get(name):
                values[name] = translated_message(text)
        return cls(**values)

    @property
    def _declared(self) -> Statistic | None:
        """What is declared of its statistic."""
        return BY_PLAIN_NAME.get(self.statistic)

    @property
    def _written(self) -> str:
        return self._declared.written if self._declared else "coefficient"

    @property
    def is_defined(self) -> bool:
        return self.value is not None

    @property
    def is_small(self) -> bool:
        """Whether it rests on too few items, or on too few clusters of them, to conclude from."""
        return self.independent < SMALL

    @property
    def independent(self) -> int:
        """How many items it rests on that are independent of each other: its clusters, where these are known."""
        return self.n_items if self.n_clusters is None else min(self.n_items, self.n_clusters)

    @property
    def part(self) -> str | None:
        """Which of several figures of this statistic and cell it is."""
        return getattr(self, self._declared.part) if self._declared and self._declared.part else None

    @property
    def excludes_zero(self) -> bool:
        """Whether the whole interval lies on one side of zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)

    @property
    def is_clear(self) -> bool:
        """Whether a difference from zero is certain, corrected for the other tests of its family where it has some."""
        return self.excludes_zero and (self.p_corrected is None or self.p_corrected < ALPHA)

    @property
    def _decimals(self) -> int:
        """Of a difference: two, or as many as show on which side of zero its interval is."""
        nearest = min(abs(self.low or 0), abs(self.high or 0)) if self.excludes_zero else 1
        return next((decimals for decimals in range(2, 6) if nearest >= 0.5 * 10**-decimals), 6)

    @property
    def shade(self) -> int:
        """1 to 7, the depth of the colour of a share of 0 to 1."""
        return min(int((self.value or 0.0) * _DEEPEST + 1e-9), _DEEPEST - 1) + 1

    @property
    def number(self) -> str:
        """0.71, 71% or +0.12."""
        return "" if self.value is None else self._spelt(self.value, suffix="%")

    @property
    def interval(self) -> str:
        """[0.64, 0.77], or nothing."""
        if self.low is None or self.high is None:
            return ""
        return left_to_right(f"[{self._spelt(self.low)}, {self._spelt(self.high)}]")

    @property
    def span(self) -> str:
        """0.64–0.77, where there is little room, or nothing; −0.42 to 0.34 where a dash would look like a sign."""
        if self.low is None or self.high is None:
            return ""
        if self._written == "signed" or self.low < 0:
            return _("%(low)s to %(high)s") % {"low": self._spelt(self.low), "high": self._spelt(self.high)}
        return left_to_right(f"{self._spelt(self.low)}–{self._spelt(self.high)}")

    @property
    def basis(self) -> str:
        """What it rests on: 120 items × 3 raters where everyone rated everything; 120 items × 2 repeats of a judge."""
        counts = (self.n_items, self.n_raters, self.n_ratings, self.n_clusters, self.n_missing)
        return _counted(get_language(), counts, self.statistic in OVER_REPEATS)

    @property
    def items_query(self) -> str:
        """The parameters under which the list of items shows what this figure is about (docs/items.md)."""
        about = {"criterion": self.criterion, "language": self.language, "generator": self.generator}
        about["judge"] = self.judge
        if self._declared and self._declared.items == "this score":
            about["judged" if self.judge else "scored"] = self.variant
        about["agreement"] = self.agreement_class
        about |= {"sort": "judge_error"} if self.judge else {}
        about |= {"compared": "only"} if self.is_compared else {}
        about |= {"reference": self.item_rule} if self.judge else {}
        return urlencode({name: value for name, value in about.items() if value})

    @property
    def item_rule(self) -> str:
        """The rule under which the list of items shows this figure's reference; "" for the usual one, the mean."""
        rule = rule_of_items(self.reference or "")
        return rule if rule in NAMED_RULES else ""

    @property
    def is_compared(self) -> bool:
        """Whether it rests on the items alone that have both a score of the judge and a reference of their own."""
        is_count = self._declared is not None and self._declared.items == "not compared"
        return bool(self.judge and self.reference and self.reference not in ("each", "dawid_skene") and not is_count)

    @property
    def is_approximate(self) -> bool:
        """Whether the method of its interval is known to cover only about as often as it says."""
        return self.has_interval and is_approximate(self.method)

    @property
    def is_conservative(self) -> bool:
        """Whether its interval is known to be wider than the confidence asks for."""
        return self.has_interval and not self.is_approximate and is_conservative(self.method)

    @property
    def mark(self) -> str:
        """The word beside its interval where that covers less or more than it says; the method says why."""
        if self.is_approximate:
            return _("approximate")
        return _("conservative") if self.is_conservative else ""

    @property
    def said_method(self) -> str:
        """The method of its interval in the reader's language."""
        return translated_message(self.method)

    @property
    def has_interval(self) -> bool:
        """Whether both of its ends are known."""
        return self.low is not None and self.high is not None

    @property
    def made(self) -> str:
        """How the interval was made, or why there is none; standard error and p where there are any."""
        return _made(get_language(), self)

    def _made(self) -> str:
        without = self._why_none if self.is_defined else self.reason
        parts = [self.said_method if self.has_interval else without]
        if self.is_defined and self.speaks_for:
            parts.append(str(SPEAKS_FOR.get(self.speaks_for, self.speaks_for)))
        numbers = (("se", self.se), ("p", self.p))
        parts += [f"{name} {_digits(number)}" for name, number in numbers if number is not None]
        return " · ".join(part for part in (*parts, self.note) if part)

    @property
    def no_interval(self) -> str:
        """No interval: 3 items; or why else there is none; or nothing where there is one."""
        if self.has_interval or not self.is_defined:
            return ""
        if self.n_items < (VERY_FEW if self.interval_reason else SMALL):
            return _("no interval: %s") % (ngettext("%d item", "%d items", self.n_items) % self.n_items)
        return self._why_none

    @property
    def _why_none(self) -> str:
        return _("no interval: %s") % (self.interval_reason or _("none was computed"))

    @property
    def why(self) -> str:
        """Why there is no value, or no interval."""
        return self.reason or self.interval_reason

    def __str__(self) -> str:
        """0.71 [0.64, 0.77] · 120 items × 3 raters, or why not."""
        if not self.is_defined:
            return f"{_('undefined')}: {self.reason} · {self.basis}"
        text = f"{self.number} {self.interval}".strip()
        return " · ".join(part for part in (text, self.basis, self.made) if part)

    def _spelt(self, value: float, suffix: str = "") -> str:
        if self._written == "share":
            text = f"{100 * value:.0f}"
        else:
            text, suffix = f"{value:+.{self._decimals}f}" if self._written == "signed" else f"{value:.2f}", ""
        return left_to_right((text.lstrip("+-") if float(text) == 0 else text.replace("-", MINUS)) + suffix)


def clear_together(differences: Sequence[Figure], *, confidence: float = 0.95) -> list[bool]:
    """Which of these differences from 0 are clear after Holm's correction (1979) for all of them, in their order.

    A difference without a p has that of a normal distribution with the width of its interval.
    """
    from analytics.stats.core.estimates import holm  # NumPy, which few pages of figures need

    corrected = holm([_p_of_difference(figure, confidence) for figure in differences])
    return [p < ALPHA and figure.excludes_zero for figure, p in zip(differences, corrected, strict=True)]


def _p_of_difference(figure: Figure, confidence: float) -> float:
    if figure.p is not None:
        return figure.p
    if figure.value is None or figure.low is None or figure.high is None:
        return 1.0
    half = statistics.NormalDist().inv_cdf((1 + confidence) / 2)
    standard_error = (figure.high - figure.low) / (2 * half)
    return erfc(abs(figure.value) / standard_error / sqrt(2)) if standard_error > 0 else float(figure.value == 0)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A figure under the name its row bears."""

    name: str
    figure: Figure


# A page has the same counts and figures again and again, and asks for itself every few seconds.
@lru_cache(maxsize=4096)
def _made(_language: str | None, figure: Figure) -> str:
    return figure._made()


@lru_cache(maxsize=4096)
def _counted(_language: str | None, counts: tuple[int, int, int, int | None, int], over_repeats: bool) -> str:
    n_items, n_raters, n_ratings, n_clusters, n_missing = counts
    items = ngettext("%d item", "%d items", n_items) % n_items
    raters = ngettext("%d rater", "%d raters", n_raters) % n_raters
    if over_repeats and n_ratings:
        each, rest = divmod(n_ratings, n_items or 1)
        repeats = ngettext("%d repeat", "%d repeats", each) % each
        scores = ngettext("%d score", "%d scores", n_ratings) % n_ratings
        parts = [items, scores] if rest else [f"{items} × {repeats}"]
    elif over_repeats or not n_raters:  # no rater is counted where no person's score enters
        parts = [items]
    elif not n_ratings or n_ratings == n_items * n_raters:
        parts = [f"{items} × {raters}"]
    else:
        parts = [items, raters, ngettext("%d rating", "%d ratings", n_ratings) % n_ratings]
    if n_clusters is not None:
        parts.append(ngettext("%d cluster", "%d clusters", n_clusters) % n_clusters)
    if n_missing:
        parts.append(_("%d missing") % n_missing)
    return with_commas(parts)


def _digits(number: float) -> str:
    """Three decimals, or two digits that count where these would be 0."""
    return f"{number:.3f}" if number == 0 or abs(number) >= 0.001 else f"{number:.1e}"


Key = tuple[str, str, str | None, str | None, str | None]


class Figures:
    """The estimates of one snapshot, by statistic, criterion, language and judge."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        figures = map(Figure.of, rows)
        self._by_key: dict[Key, Figure] = {(f.statistic, f.criterion, f.language, f.judge, f.part): f for f in figures}

    def get(
        self,
        statistic: str,
        criterion: str,
        language: str | None = None,
        judge: str | None = None,
        part: str | None = None,
    ) -> Figure | None:
        """The figure, or None when nobody rated this cell at all. `part`: which of several (`Statistic.part`)."""
        return self._by_key.get((statistic, criterion, language, judge, part))

    def parts(
        self, statistic: str, criterion: str, language: str | None = None, judge: str | None = None
    ) -> list[Figure]:
        """All of several (`Statistic.part`), in the order in which they were computed."""
        wanted = (statistic, criterion, language, judge)
        return [figure for key, figure in self._by_key.items() if key[:4] == wanted]

    def among(
        self, statistic: str, criteria: Iterable[str], languages: Iterable[str | None], judge: str | None = None
    ) -> Iterator[Figure]:
        """The figures there are of these criteria and languages, criterion by criterion."""
        spoken = list(languages)
        for criterion in criteria:
            for language in spoken:
                if figure := self.get(statistic, criterion, language, judge):
                    yield figure


@dataclass(frozen=True, slots=True)
class Spread:
    """Several criteria's figures without pooling them: the middle one's value, and the outermost."""

    median: float
    lowest: Figure
    highest: Figure
    count: int

    @property
    def median_number(self) -> str:
        """The median in the figures' own spelling."""
        return replace(self.lowest, value=self.median).number

    @property
    def extent(self) -> str:
        """From the lowest to the highest, each with its interval; criteria are not pooled, so the median has none."""
        if self.count == 1:
            return str(self.lowest)
        ends = [f"{figure.number} {figure.interval}".strip() for figure in (self.lowest, self.highest)]
        counts = {"count": self.count, "lowest": ends[0], "highest": ends[1]}
        return _("%(count)d criteria, from %(lowest)s to %(highest)s; no interval for the median") % counts

    def between(self, lowest: str, highest: str) -> str:
        """The same below the median and the number of criteria, naming the outermost."""
        ends = [f"{figure.number} {figure.interval}".strip() for figure in (self.lowest, self.highest)]
        ends_named = {"lowest": ends[0], "highest": ends[1], "first": lowest, "last": highest}
        return _("from %(lowest)s (%(first)s) to %(highest)s (%(last)s); no interval for the median") % ends_named


def spread(figures: Iterable[Figure]) -> Spread | None:
    """How far the defined figures lie apart; None when there is none."""
    defined = sorted((f for f in figures if f.value is not None), key=lambda f: f.value or 0.0)
    if not defined:
        return None
    return Spread(statistics.median(f.value or 0.0 for f in defined), defined[0], defined[-1], len(defined))


# --- the heatmap of one coefficient, criterion by language -----------------------------------------------------------
FAINTEST, STEP, _DEEPEST = 0.2, 0.1, 7
"""The first bin ends at FAINTEST + STEP; each of the seven bins is a STEP wide but the outermost, which are open."""
ATTENTION = 0.4


@dataclass(frozen=True, slots=True)
class HeatCell:
    """One cell; without a figure nobody rated it."""

    criterion: str
    language: str | None
    figure: Figure | None

    @property
    def bin(self) -> int | None:
        """1 to 7, or None for an undefined cell."""
        if self.figure is None or self.figure.value is None:
            return None
        steps = int((self.figure.value - FAINTEST) / STEP + 1e-9) if self.figure.value >= FAINTEST else 0
        return min(steps, _DEEPEST - 1) + 1

    @property
    def is_muted(self) -> bool:
        return self.figure is not None and self.figure.is_defined and self.figure.is_small

    @property
    def needs_attention(self) -> bool:
        """Whether chance-corrected agreement is below ATTENTION."""
        figure = self.figure
        if figure is None or figure.value is None or not BY_PLAIN_NAME[figure.statistic].is_chance_corrected:
            return False
        return round(figure.value, 2) < ATTENTION  # as it is printed


@dataclass(frozen=True, slots=True)
class Heatmap:
    """Rows are criteria, columns are `languages`; None stands for all languages together."""

    statistic: str
    languages: tuple[str | None, ...]
    rows: tuple[tuple[str, tuple[HeatCell, ...]], ...]

    @property
    def cells(self) -> list[HeatCell]:
        """Every cell of a single language, criterion by criterion."""
        return [cell for _criterion, row in self.rows for cell in row if cell.language is not None]

    @property
    def undefined(self) -> list[HeatCell]:
        """Every cell without a value, those over all languages included."""
        return [cell for _criterion, row in self.rows for cell in row if cell.bin is None]


def heatmap(figures: Figures, *, statistic: str, criteria: Sequence[str], languages: Sequence[str]) -> Heatmap:
    """The cells of every criterion in every language, and over all languages where there are several."""
    columns: tuple[str | None, ...] = (*languages, None) if len(languages) > 1 else tuple(languages)
    rows = tuple(
        (criterion, tuple(HeatCell(criterion, tag, figures.get(statistic, criterion, tag)) for tag in columns))
        for criterion in criteria
    )
    return Heatmap(statistic, columns, rows)


# --- a chart that was drawn with its snapshot: its words and colours filled in, nothing rendered ---------------------
AXIS = "← judge lower · judge higher →"
LONGEST_NAME = 24
"""Letters of a name that a chart has room for."""
FILLER = "n"
STANDS_FOR = re.compile(rf">\{{(\w+):{FILLER}*\}}<")
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # no XML may hold them

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', Arial, sans-serif"
# The page's tokens (static/css/base.css) in a notation that every program for SVG reads, for files that stand alone.
LIGHT = {
    "ink": "#122027",
    "ink-faint": "#58666c",
    "line": "#e3e1dc",
    "brass": "#c58632",
    "accent": "#005f66",
    "surface": "#ffffff",
}
DARK = {
    "ink": "#efece8",
    "ink-faint": "#939fa3",
    "line": "#253034",
    "brass": "#e7b463",
    "accent": "#62c7c8",
    "surface": "#11191c",
}
THEMES = {"light": LIGHT, "dark": DARK}


def stands_for(word: str, letters: int = 0) -> str:
    """What is drawn in place of a word, about as wide as so many letters."""
    return f"{{{word}:{FILLER * (letters - len(word) - 3)}}}"


def shortened(name: str) -> str:
    """A name that has room beside the chart."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def inline(svg: str, words: Mapping[str, str]) -> SafeString:
    """The picture as part of a page, in whose colours it is shown. `words` may hold anything: they are escaped."""
    filled = STANDS_FOR.sub(lambda found: f">{_spelt(words.get(found[1], ''))}<", svg)
    return mark_safe(filled)  # noqa: S308 (drawn by `charts`; every word in it is escaped here)


def alone(svg: str, words: Mapping[str, str], *, title: str, theme: str) -> str:
    """The picture as a file of its own, in plain colours."""
    coloured = re.sub(r"var\(--([a-z-]+)\)", lambda found: THEMES[theme][found[1]], svg)
    return str(inline(coloured, words)).replace(">", f"><title>{_spelt(title)}</title>", 1)


def _spelt(word: str) -> str:
    return escape(UNPRINTABLE.sub("", word))


# --- what the figures of a panel say, in one plain sentence computed from them ---------------------------------------
Names = Callable[[str], str]
"""From a criterion's key or a language's tag to its name."""
SHARE_LEFT_OUT = 0.1
"""From this share of the items on a page says what the mode leaves out; the command line asks (METHODS 3)."""


def listed(names: Sequence[str]) -> str:
    """Arabic; Arabic and Thai; Arabic, Thai and Hindi."""
    if len(names) < 2:
        return "".join(names)
    return _("%(first)s and %(last)s") % {"first": with_commas(names[:-1]), "last": names[-1]}


def on_agreement(heatmap: Heatmap, criterion_name: Names, language_name: Names = str) -> str:
    """Which criterion the panels agree on least, of the cells on enough items and clusters; or that there are none."""
    defined = [cell.figure for cell in heatmap.cells if cell.figure and cell.figure.is_defined]
    if not defined:
        return _(
            "No cell has a value yet: at least two raters must score the same items, and the scores must not all "
            "be equal."
        )
    firm = [figure for figure in defined if not figure.is_small]
    if not firm:
        together = [cell.figure for _criterion, row in heatmap.rows for cell in row if cell.language is None]
        is_firm_together = any(figure and figure.is_defined and not figure.is_small for figure in together)
        return _("Single languages: %s") % _all_small(defined) if is_firm_together else _all_small(defined)
    if len(heatmap.rows) == 1:
        return _of_one_criterion(firm, language_name)
    return _weakest(firm, criterion_name)


def _of_one_criterion(figures: Sequence[Figure], language_name: Names) -> str:
    """The only criterion: in which language agreement is lowest, and in which highest."""
    found = spread(figures)
    if found is None or found.lowest is found.highest:
        return _("One criterion in one language: there is nothing to compare.")
    ends = {"lowest": found.lowest, "highest": found.highest}
    words = {name: f"{language_name(figure.language or '')} ({figure.number})" for name, figure in ends.items()}
    sentence = _(
        "Of the languages with at least %(small)d items and clusters, agreement is lowest in %(lowest)s and highest in "
        "%(highest)s."
    )
    return sentence % {"small": SMALL, **words}


def _all_small(defined: Sequence[Figure]) -> str:
    """That nothing is concluded from figures that are all on few items or clusters."""
    counts = {"small": SMALL, "largest": max(figure.independent for figure in defined)}
    if any(figure.independent < figure.n_items for figure in defined):
        sentence = _(
            "Every cell is based on fewer than %(small)d clusters (%(largest)d at most): treat these figures as "
            "preliminary."
        )
    else:
        sentence = _(
            "Every cell is based on fewer than %(small)d items (%(largest)d at most): treat these figures as "
            "preliminary."
        )
    return sentence % counts


def _weakest(figures: Sequence[Figure], criterion_name: Names) -> str:
    by_language: dict[str | None, list[Figure]] = {}
    for figure in figures:
        by_language.setdefault(figure.language, []).append(figure)
    compared = [here for here in by_language.values() if len(here) > 1]
    if not compared:
        return _("No language has two criteria with a value and at least %d items and clusters.") % SMALL
    last = Counter(min(here, key=lambda figure: figure.value or 0.0).criterion for here in compared)
    criterion, times = last.most_common(1)[0]
    if len(compared) == 1:
        sentence = _(
            "%(criterion)s has the lowest agreement of the criteria with at least %(small)d items and clusters."
        )
        return sentence % {"criterion": criterion_name(criterion), "small": SMALL}
    if 2 * times <= len(compared):
        return _("No criterion has the lowest agreement in most languages.")
    sentence = ngettext(
        "%(criterion)s has the lowest agreement in %(times)d of %(languages)d language. "
        "Review its scale points before you compare generators on it.",
        "%(criterion)s has the lowest agreement in %(times)d of %(languages)d languages. "
        "Review its scale points before you compare generators on it.",
        len(compared),
    )
    return sentence % {"criterion": criterion_name(criterion), "times": times, "languages": len(compared)}


def on_bias(figures: Iterable[Figure], language_name: Names) -> str:
    """In which languages the interval of the bias excludes zero: the judge scores lower or higher than the panel."""
    bounded = [figure for figure in figures if figure.low is not None and figure.language]
    if not bounded:
        return _(
            "No language has an interval yet: the judge and the panel must both score items from at least two clusters."
        )
    firm = [figure for figure in bounded if not figure.is_small]
    if not firm:
        return _all_small(bounded)
    clear = [figure for figure in firm if figure.excludes_zero]
    lower = [language_name(f.language or "") for f in clear if (f.value or 0.0) < 0]
    higher = [language_name(f.language or "") for f in clear if (f.value or 0.0) > 0]
    if lower and higher:
        sentence = _("The judge scores lower than the panel in %(lower)s and higher in %(higher)s.")
        return sentence % {"lower": listed(lower), "higher": listed(higher)}
    if lower:
        return _("The judge scores lower than the panel in %s.") % listed(lower)
    if higher:
        return _("The judge scores higher than the panel in %s.") % listed(higher)
    sentence = _(
        "No interval with at least %d items and clusters excludes zero. This does not prove that there is no bias."
    )
    return sentence % SMALL


def on_calibration(kappas: Iterable[Figure], criterion_name: Names) -> str:
    """On which criterion the judge comes closest to the panel, and on which it stays farthest."""
    figures = [figure for figure in kappas if figure.is_defined]
    if not figures:
        return _("κ has no value yet: no item has both scores, or the scores do not vary.")
    found = spread(figure for figure in figures if not figure.is_small)
    if found is None:
        return _all_small(figures)
    nearest, farthest = found.highest, found.lowest
    if nearest is farthest:
        words = {"criterion": criterion_name(nearest.criterion), "value": nearest.number}
        return _("On %(criterion)s the judge reaches a κ of %(value)s.") % words
    names = {"nearest": criterion_name(nearest.criterion), "farthest": criterion_name(farthest.criterion)}
    sentence = _(
        "On criteria with at least %(small)d items and clusters, the judge is closest to the panel on %(nearest)s "
        "(%(most)s) and farthest on %(farthest)s (%(least)s)."
    )
    return sentence % {"small": SMALL, "most": nearest.number, "least": farthest.number, **names}
