"""What was found in a campaign, in words: about its people, its judges, its generators, and how sure that is.

Every sentence is made of figures with their intervals and of the decisions about judges, and says no more than the
intervals allow: people agree where the whole interval lies above the floor, a judge is too generous where the whole
interval of its bias lies beyond the margin, a generator is first where every difference is clear. What is not decided
is named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from analytics.figures import SMALL, Figure, listed
from analytics.grids import EstimateRow
from analytics.judges.reasons import CellDecision
from analytics.models import GateDecision
from analytics.places import place_range
from analytics.study.sentences import Emphasised, Sentence, worded

Use = GateDecision.Use
MOST_NAMED = 3
"""Cells, judges or languages that a sentence names; the others are counted."""
RELIABLE = 0.667
"""Krippendorff (2018, section 12.4.3): the lowest alpha on which conclusions may rest, and then only tentative ones."""
TENTATIVE = "preliminary"
USABLE = (Use.JUDGE_ALONE, Use.JUDGE_WITH_CORRECTION, Use.RANKING_ONLY)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of criteria and languages in the reader's language."""

    criterion: Callable[[str], str]
    language: Callable[[str], str]

    def cell(self, criterion: str, language: str | None) -> str:
        """Fluency in Japanese."""
        if not language:
            return self.criterion(criterion)
        about = {"criterion": self.criterion(criterion), "language": self.language(language)}
        return _("%(criterion)s in %(language)s") % about


@dataclass(frozen=True, slots=True)
class StudyFinding:
    """What was found about one topic: sentences, and whether it is preliminary."""

    topic: str
    sentences: tuple[Sentence, ...]
    is_preliminary: bool = False

    def __str__(self) -> str:
        return " ".join(map(str, self.sentences))


def _cells_named(cells: Sequence[tuple[str, str | None]], names: Names) -> Emphasised:
    """Cells by criterion and language, as briefly as they can be named: Fluency and Grammar in Arabic."""
    criteria = list(dict.fromkeys(criterion for criterion, _language in cells))
    tags = list(dict.fromkeys(language for _criterion, language in cells))
    if len(cells) == len(criteria) * len(tags) and (len(tags) == 1 or len(criteria) == 1) and all(tags):
        about = {
            "criterion": _named([names.criterion(key) for key in criteria]),
            "language": _named([names.language(str(tag)) for tag in tags]),
        }
        return Emphasised(_("%(criterion)s in %(language)s") % about)
    return _named([names.cell(criterion, language) for criterion, language in cells])


def _named(names: Sequence[str]) -> Emphasised:
    """Up to three names, and how many more there are."""
    more = len(names) - MOST_NAMED
    if more <= 0:
        return Emphasised(listed(names))
    return Emphasised(listed([*names[:MOST_NAMED], ngettext("%d more", "%d more", more) % more]))


# --- people ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Floors:
    """Agreement is hardly more than chance where the whole interval of alpha lies below `alpha`, and that of AC below
    `ac` (`GateThresholds`)."""

    alpha: float = 0.2
    ac: float = 0.4


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two raters whose agreement on a criterion lies wholly below what chance would give."""

    criterion: str
    raters: tuple[str, str]


def agreement_state(alpha: Figure, ac: Figure | None, floors: Floors) -> str:
    """How far the raters of one cell agree: agrees, hardly, not_certain, or unknown without a value."""
    if not alpha.is_defined and not (ac and ac.is_defined):
        return "unknown"
    pairs = [(figure, floor) for figure, floor in ((alpha, floors.alpha), (ac, floors.ac)) if figure is not None]
    if any(figure.low is not None and figure.low >= floor for figure, floor in pairs):
        return "agrees"
    if all(figure.high is not None and figure.high < floor for figure, floor in pairs):
        return "hardly"
    return "not_certain"


def about_people(
    alphas: Sequence[Figure],
    acs: Mapping[tuple[str, str | None], Figure],
    names: Names,
    *,
    floors: Floors = Floors(),
    contradictions: Sequence[Contradiction] = (),
) -> StudyFinding:
    """Where the panels agree, where they hardly do and who contradicts whom, and where that is not certain."""
    cells: dict[str, list[Figure]] = {}
    for figure in alphas:
        ac = acs.get((figure.criterion, figure.language))
        cells.setdefault(agreement_state(figure, ac, floors), []).append(figure)
    known = [figure for state, found in cells.items() if state != "unknown" for figure in found]
    if not known:
        nothing = _("Nobody knows yet whether the people agree: two of them must rate the same items.")
        return StudyFinding("people", (worded(nothing),))
    said = [_where_people_agree(cells.get("agrees", []), len(alphas))]
    if hardly := cells.get("hardly"):
        where = _cells_named([(figure.criterion, figure.language) for figure in hardly], names)
        said.append(worded(_("They agree hardly more than by chance on %(cells)s."), cells=where))
    if uncertain := cells.get("not_certain"):
        where = _cells_named([(figure.criterion, figure.language) for figure in uncertain], names)
        said.append(worded(_("It is not certain on %(cells)s: the interval is too wide."), cells=where))
    doubtful = {figure.criterion for state in ("hardly", "not_certain") for figure in cells.get(state, [])}
    for each in [pair for pair in contradictions if pair.criterion in doubtful][:MOST_NAMED]:
        first, second = map(Emphasised, each.raters)
        about = {"first": first, "second": second, "criterion": names.criterion(each.criterion)}
        said.append(worded(_("On %(criterion)s %(first)s and %(second)s contradict each other."), **about))
    if unknown := len(cells.get("unknown", [])):
        text = ngettext("%(n)d has too few ratings.", "%(n)d have too few ratings.", unknown)
        said.append(worded(text, n=unknown))
    return StudyFinding("people", tuple(said), is_preliminary=any(figure.is_small for figure in known))


def _where_people_agree(agreeing: Sequence[Figure], n_cells: int) -> Sentence:
    if not agreeing:
        text = _("The panels agree on %(share)s of criterion and language.")
        return worded(text, share=Emphasised(_("none of %(all)d pairs") % {"all": n_cells}))
    counts = {"some": len(agreeing), "all": n_cells}
    share = _("all %(all)d") if len(agreeing) == n_cells else _("%(some)d of %(all)d")
    values = sorted((figure for figure in agreeing if figure.value is not None), key=lambda figure: figure.value or 0)
    share = Emphasised(share % counts)
    if not values:
        return worded(_("The panels agree on %(share)s pairs of criterion and language, by Gwet’s AC."), share=share)
    reliable = sum(figure.low is not None and figure.low >= RELIABLE for figure in values)
    about = {"share": share, "low": values[0].number, "high": values[-1].number, "well": reliable}
    if reliable:
        text = ngettext(
            "The panels agree on %(share)s pairs of criterion and language: α from %(low)s to %(high)s, in %(well)d "
            "certainly above 0.667.",
            "The panels agree on %(share)s pairs of criterion and language: α from %(low)s to %(high)s, in %(well)d "
            "certainly above 0.667.",
            reliable,
        )
        return worded(text, **about)
    text = _(
        "The panels agree on %(share)s pairs of criterion and language more than by chance: α from %(low)s to %(high)s."
    )
    return worded(text, **about)


# --- judges ----------------------------------------------------------------------------------------------------------
def about_judges(cells: Sequence[CellDecision], judge: str, names: Names) -> StudyFinding:
    """What each judge may be used for, and where it is certainly too generous or too strict: the chosen one first."""
    by_judge: dict[str, list[CellDecision]] = {}
    for cell in cells:
        by_judge.setdefault(cell.row["judge"], []).append(cell)
    if not by_judge:
        nothing = _("No judge has scored items that people rated.")
        return StudyFinding("judges", (worded(nothing),))
    order = sorted(by_judge, key=lambda name: (name != judge, *_rank(by_judge[name]), name))
    said = [each for name in order[:MOST_NAMED] for each in _one_judge(name, by_judge[name], names)]
    if (more := len(order) - MOST_NAMED) > 0:
        text = ngettext(
            "%(n)d more judge is in the picture below.", "%(n)d more judges are in the picture below.", more
        )
        said.append(worded(text, n=more))
    decided = [cell for cell in cells if cell.use not in (Use.STALE, Use.INSUFFICIENT)]
    return StudyFinding("judges", tuple(said), is_preliminary=any(_clusters(cell) < SMALL for cell in decided))


def _clusters(cell: CellDecision) -> int:
    return min(int(cell.row["n_items"]), int(cell.row["n_clusters"]))


def _rank(cells: Iterable[CellDecision]) -> tuple[int, ...]:
    """Fewer is better: for sorting judges, the widest use in most cells first."""
    counted = Counter(cell.use for cell in cells)
    return tuple(-counted[use] for use in USABLE)


def _one_judge(name: str, cells: Sequence[CellDecision], names: Names) -> list[Sentence]:
    counted, n_cells = Counter(cell.use for cell in cells), len(cells)
    judge = Emphasised(name)
    if counted[Use.STALE] == n_cells:
        return [worded(_("%(judge)s must be measured again."), judge=judge)]
    if counted[Use.INSUFFICIENT] == n_cells:
        return [worded(_("%(judge)s can’t be decided on: too few items have two ratings and its score."), judge=judge)]
    phrases = {
        Use.JUDGE_ALONE: ngettext("alone in %(n)d", "alone in %(n)d", counted[Use.JUDGE_ALONE]),
        Use.JUDGE_WITH_CORRECTION: ngettext(
            "with correction in %(n)d", "with correction in %(n)d", counted[Use.JUDGE_WITH_CORRECTION]
        ),
        Use.RANKING_ONLY: ngettext("for ranking only in %(n)d", "for ranking only in %(n)d", counted[Use.RANKING_ONLY]),
    }
    uses = [text % {"n": counted[use]} for use, text in phrases.items() if counted[use]]
    if counted[Use.JUDGE_ALONE] == n_cells:
        said = [worded(_("%(judge)s may score alone everywhere (%(all)d of %(all)d)."), judge=judge, all=n_cells)]
    elif uses:
        text = _("%(judge)s may be used %(uses)s of %(all)d.")
        said = [worded(text, judge=judge, uses=listed(uses), all=n_cells)]
    else:
        said = [worded(_("%(judge)s may be used nowhere yet (0 of %(all)d)."), judge=judge, all=n_cells)]
    if biased := [(cell, bias) for cell in cells if (bias := certain_bias(cell)) is not None]:
        said += _how_biased(biased, names)
    rest = {
        Use.STALE: ngettext("%(n)d must be measured again.", "%(n)d must be measured again.", counted[Use.STALE]),
        Use.INSUFFICIENT: ngettext(
            "%(n)d has too few ratings.", "%(n)d have too few ratings.", counted[Use.INSUFFICIENT]
        ),
    }
    return said + [worded(text, n=counted[use]) for use, text in rest.items() if counted[use]]


def bias_figure(cell: CellDecision) -> Figure | None:
    """The bias of a judge against the panel's mean in one cell, as its decision measured it; None without a value."""
    for condition in cell.conditions:
        if condition.name == "bias" and condition.figures and condition.figures[0].is_defined:
            return condition.figures[0]
    return None


def certain_bias(cell: CellDecision) -> Figure | None:
    """The bias of a cell if its whole interval lies beyond the margin, on one side; else None."""
    figure, margin = bias_figure(cell), cell.row["margin"]
    if figure is None or figure.low is None or figure.high is None or cell.use is Use.STALE:
        return None
    return figure if figure.low > margin or figure.high < -margin else None


def _how_biased(biased: Sequence[tuple[CellDecision, Figure]], names: Names) -> list[Sentence]:
    """Where it certainly gives too much, and where too little, with the largest interval bounds named."""
    said = []
    high = [(cell, figure) for cell, figure in biased if (figure.low or 0) > 0]
    low = [(cell, figure) for cell, figure in biased if (figure.low or 0) <= 0]
    for found, text in (
        (high, _("It certainly gives too much on %(cells)s: %(least)s to %(most)s points.")),
        (low, _("It certainly gives too little on %(cells)s: %(least)s to %(most)s points.")),
    ):
        if found:
            bounds = [abs(end) for _cell, figure in found for end in (figure.low, figure.high) if end is not None]
            where = _cells_named([(cell.row["criterion"], cell.row["language"]) for cell, _figure in found], names)
            said.append(worded(text, cells=where, least=f"{min(bounds):.2f}", most=f"{max(bounds):.2f}"))
    return said


# --- generators ------------------------------------------------------------------------------------------------------
def about_generators(
    differences: Mapping[str, Sequence[EstimateRow]], generators: Sequence[str], names: Names, *, criterion: str,
    direction: str,
) -> StudyFinding:  # fmt: skip
    """Which generator is first in which language on one criterion, and where that is not decided.

    `differences`: by language, the rows of differences of two generators.
    """
    if len(generators) < 2:
        return StudyFinding("generators", (worded(_("There are no two generators to compare.")),))
    about = names.criterion(criterion)
    first_places = {tag: found for tag, rows in differences.items() if (found := may_be_first(rows, direction))}
    if not first_places:
        text = _("The generators can’t be ordered on %(criterion)s yet: no difference has an interval.")
        return StudyFinding("generators", (worded(text, criterion=about),))
    decided: dict[str, list[str]] = {}
    for tag, found in first_places.items():
        if len(found) == 1:
            decided.setdefault(found[0], []).append(tag)
    said = []
    for name, tags in sorted(decided.items(), key=lambda found: (-len(found[1]), found[0])):
        first = Emphasised(name)
        if len(tags) == len(first_places) > 1:
            text = _("On %(criterion)s %(generator)s is certainly first in every language (%(n)d).")
            said.append(worded(text, criterion=about, generator=first, n=len(tags)))
        else:
            where = _named([names.language(tag) for tag in tags])
            text = _("On %(criterion)s %(generator)s is certainly first in %(languages)s.")
            said.append(worded(text, criterion=about, generator=first, languages=where))
    undecided = {tag: found for tag, found in first_places.items() if len(found) > 1}
    said += _undecided(undecided, about, names, is_everywhere=not decided)
    small = any(Figure.of(row).is_small for tag in first_places for row in differences[tag] if row["value"] is not None)
    return StudyFinding("generators", tuple(said), is_preliminary=small)


def may_be_first(rows: Sequence[EstimateRow], direction: str) -> list[str]:
    """The generators to which the first place is open; nothing if no difference has an interval."""
    if not any(row.get("low") is not None for row in rows):
        return []
    names = dict.fromkeys(name for row in rows for name in (row["generator"], row["variant"]))
    places = {name: place_range(name, rows, direction) for name in names}
    return sorted(name for name, found in places.items() if found is not None and found[0] == 1)


def _undecided(
    undecided: Mapping[str, Sequence[str]], criterion: str, names: Names, *, is_everywhere: bool
) -> list[Sentence]:
    """The generators that may be first, by language, where there are several."""
    if is_everywhere and len({tuple(found) for found in undecided.values()}) == 1:
        text = _("On %(criterion)s it is not decided which generator is first: %(generators)s.")
        return [worded(text, criterion=criterion, generators=_or(next(iter(undecided.values()))))]
    text = _("In %(language)s it is not decided which one is first: %(generators)s.")
    said = [
        worded(text, language=names.language(tag), generators=_or(found))
        for tag, found in list(undecided.items())[:MOST_NAMED]
    ]
    if (more := len(undecided) - MOST_NAMED) > 0:
        text = ngettext("%(n)d more language is not decided.", "%(n)d more languages are not decided.", more)
        said.append(worded(text, n=more))
    return said


def _or(names: Sequence[str]) -> Emphasised:
    """atlas, birch or cedar."""
    if len(names) < 2:
        return Emphasised("".join(names))
    about = {"first": listed(names[:-1]) if len(names) == 2 else ", ".join(names[:-1]), "last": names[-1]}
    return Emphasised(_("%(first)s or %(last)s") % about)


# --- how sure --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class LabelCost:
    """What one more item takes: raters, seconds of one of them, and pay in USD, where these are known."""

    raters: int = 2
    seconds: float | None = None
    pay: float | None = None


def about_certainty(
    figures: Sequence[Figure], cells: Sequence[CellDecision], judge: str, names: Names, cost: LabelCost
) -> StudyFinding:
    """What the figures are based on, and how many more items would decide what about the chosen judge."""
    said = [_what_they_rest_on([figure for figure in figures if figure.is_defined])]
    own = [cell for cell in cells if cell.row["judge"] == judge]
    wanted = [(cell, more) for cell in own if (more := most_items(cell))]
    if wanted:
        by_language: dict[str, int] = {}
        for cell, more in wanted:
            by_language[cell.row["language"]] = max(more, by_language.get(cell.row["language"], 0))
        items = sum(by_language.values())
        effort = _effort(items, cost)
        text = ngettext(
            "About %(items)s (%(effort)s) would decide %(cells)d open cell of %(judge)s, if it stays as good.",
            "About %(items)s (%(effort)s) would decide %(cells)d open cells of %(judge)s, if it stays as good.",
            len(wanted),
        )
        more_items = Emphasised(ngettext("%d more item", "%d more items", items) % items)
        said.append(worded(text, items=more_items, effort=effort, cells=len(wanted), judge=judge))
        if narrowed := _narrowed(wanted):
            said.append(narrowed)
    elif own and any(cell.use is not Use.JUDGE_ALONE for cell in own):
        said.append(worded(_("More labels alone are not known to change a decision about %(judge)s."), judge=judge))
    return StudyFinding("certainty", tuple(said), is_preliminary=any(figure.is_small for figure in figures))


def _what_they_rest_on(figures: Sequence[Figure]) -> Sentence:
    if not figures:
        return worded(_("There are no figures yet."))
    counts = [figure.independent for figure in figures]
    small = sum(count < SMALL for count in counts)
    about: dict[str, Any] = {"least": min(counts), "most": max(counts), "small": small, "all": len(counts)}
    if not small:
        return worded(_("Every figure is based on %(least)d independent items or more."), **about)
    if small == len(counts):
        if about["least"] == about["most"]:
            text = _("Every figure is based on %(most)d independent items only: preliminary.")
        else:
            text = _("Every figure is based on %(least)d to %(most)d independent items only: preliminary.")
        return worded(text, **about)
    text = ngettext(
        "%(small)d of %(all)d figures is based on fewer than 30 independent items: preliminary.",
        "%(small)d of %(all)d figures are based on fewer than 30 independent items: preliminary.",
        small,
    )
    return worded(text, **about)


def most_items(cell: CellDecision) -> int:
    """How many more items with ratings would change the decision of a cell; 0 if that is not known to help."""
    return max((remedy.more_items or 0 for remedy in cell.remedies if remedy.group == "labels"), default=0)


def _effort(items: int, cost: LabelCost) -> str:
    ratings = items * cost.raters
    parts = [ngettext("%d rating", "%d ratings", ratings) % ratings]
    if cost.seconds:
        hours = ratings * cost.seconds / 3600
        parts.append(_("about %s hours") % (f"{hours:.1f}" if hours < 10 else f"{hours:.0f}"))
    if cost.pay:
        parts.append(f"${ratings * cost.pay:,.2f}")
    return ", ".join(parts)


def _narrowed(wanted: Sequence[tuple[CellDecision, int]]) -> Sentence | None:
    """How the widest interval of the bias would narrow, as the root of the number of independent items."""
    widths = [
        ((figure.high - figure.low) / 2, more, figure.independent)
        for cell, more in wanted
        if (figure := bias_figure(cell)) and figure.low is not None and figure.high is not None and figure.independent
    ]
    if not widths:
        return None
    half, more, independent = max(widths)
    after = half * (independent / (independent + more)) ** 0.5
    text = _("The widest interval of its bias would narrow from ±%(before)s to about ±%(after)s.")
    return worded(text, before=f"{half:.2f}", after=f"{after:.2f}")
