"""What was found in a campaign, in words: about its people, its judges, its generators, and how sure that is.

Every sentence is made of figures with their intervals and of the decisions about judges, and says no more than they
allow. People agree where the whole interval lies above the floor; a judge is too generous where the whole interval of
its bias lies beyond the margin; a generator is first where no other one can be. What is not decided is named.
"Certainly" is said only of figures on 30 independent items or more whose intervals cover what they say; of others it is
"so far".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from analytics.figures import SMALL, Figure, listed
from analytics.grids import EstimateRow
from analytics.judges.reasons import ALONE, CellDecision, stands_against
from analytics.models import GateDecision
from analytics.places import place_range
from analytics.study.sentences import LISTED, Emphasised, Sentence, named_briefly, worded

Use = GateDecision.Use
RELIABLE = 0.667
"""Krippendorff (2018, section 12.4.3): the lowest alpha on which conclusions may rest, and then only tentative ones."""
_USABLE = (Use.JUDGE_ALONE, Use.JUDGE_WITH_CORRECTION, Use.RANKING_ONLY)
_NOT_COMPARED = (Use.STALE, Use.INSUFFICIENT, Use.RUBRIC_PROBLEM)
"""Decisions under which no figure of the judge is concluded from."""
_WARNED_OF = (Use.STALE, Use.HUMANS_ONLY)
"""Decisions for which a judge is named although others are only counted."""
Cell = tuple[str, str | None]
"""A criterion in a language."""


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


def is_firm(figure: Figure) -> bool:
    """Whether a sentence may say "certainly" of a figure whose interval lies where it says."""
    return not figure.is_small and not figure.is_approximate


def _cells_named(cells: Sequence[Cell], names: Names) -> Emphasised:
    """Cells by criterion and language, as briefly as they can be named: Fluency and Grammar in Arabic."""
    criteria = list(dict.fromkeys(criterion for criterion, _language in cells))
    tags = list(dict.fromkeys(language for _criterion, language in cells))
    if len(cells) == len(criteria) * len(tags) and (len(tags) == 1 or len(criteria) == 1) and all(tags):
        about = {
            "criterion": named_briefly([names.criterion(key) for key in criteria]),
            "language": named_briefly([names.language(str(tag)) for tag in tags]),
        }
        return Emphasised(_("%(criterion)s in %(language)s") % about)
    return named_briefly([names.cell(criterion, language) for criterion, language in cells])


# --- people ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Floors:
    """Agreement is hardly more than chance where the whole interval of alpha lies below `alpha`, and that of AC below
    `ac` (`GateThresholds`)."""

    alpha: float = 0.2
    ac: float = 0.4


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two raters whose agreement on a criterion in a language lies below what chance would give."""

    criterion: str
    language: str
    raters: tuple[str, str]


def agreement_state(alpha: Figure, ac: Figure | None, floors: Floors, is_problem: bool | None = None) -> str:
    """How far the raters of one cell agree: agrees, hardly, not_certain, or unknown without a value.

    `is_problem`: whether the decisions about judges found a rubric problem in this cell; None if there are none.
    """
    if is_problem:
        return "hardly"
    if not alpha.is_defined and not (ac and ac.is_defined):
        return "unknown"
    pairs = [(figure, floor) for figure, floor in ((alpha, floors.alpha), (ac, floors.ac)) if figure is not None]
    if any(figure.low is not None and figure.low >= floor for figure, floor in pairs):
        return "agrees"
    if is_problem is None and all(figure.high is not None and figure.high < floor for figure, floor in pairs):
        return "hardly"
    return "not_certain"


def about_people(
    alphas: Sequence[Figure],
    states: Mapping[Cell, str],
    names: Names,
    *,
    floors: Floors = Floors(),
    contradictions: Sequence[Contradiction] = (),
) -> StudyFinding:
    """Where the panels agree, where they hardly do and who contradicts whom, and where that is not certain.

    `states`: `agreement_state` of each cell that `alphas` has.
    """
    cells: dict[str, list[Figure]] = {}
    for figure in alphas:
        cells.setdefault(states[figure.criterion, figure.language], []).append(figure)
    known = [figure for state, found in cells.items() if state != "unknown" for figure in found]
    if not known:
        nothing = _("Nobody knows yet whether the people agree: two of them must rate the same items.")
        return StudyFinding("people", (worded(nothing),))
    said = _where_people_agree(cells.get("agrees", []), len(alphas), floors)
    for state, text in (
        ("hardly", _("They agree hardly more than by chance on %(cells)s.")),
        ("not_certain", _("It is not certain on %(cells)s: the interval is too wide.")),
    ):
        if found := cells.get(state):
            where = _cells_named([(figure.criterion, figure.language) for figure in found], names)
            said.append(worded(text, cells=where))
    doubtful = {cell for cell, state in states.items() if state in ("hardly", "not_certain")}
    for each in [pair for pair in contradictions if (pair.criterion, pair.language) in doubtful][:LISTED]:
        first, second = map(Emphasised, each.raters)
        about = {"first": first, "second": second, "cell": names.cell(each.criterion, each.language)}
        said.append(worded(_("On %(cell)s %(first)s and %(second)s contradict each other."), **about))
    if unknown := len(cells.get("unknown", [])):
        text = ngettext("%(n)d cell has too few ratings.", "%(n)d cells have too few ratings.", unknown)
        said.append(worded(text, n=unknown))
    return StudyFinding("people", tuple(said), is_preliminary=any(figure.is_small for figure in known))


def _where_people_agree(agreeing: Sequence[Figure], n_cells: int, floors: Floors) -> list[Sentence]:
    """In how many cells, from which alpha to which, and in how many of them by AC alone or reliably."""
    share = Emphasised(_("%(some)d of %(all)d") % {"some": len(agreeing), "all": n_cells})
    text = _("The panels agree more than by chance in %(share)s cells of criterion and language.")
    said = [worded(text, share=share)]
    by_alpha = sorted(
        (figure for figure in agreeing if figure.low is not None and figure.low >= floors.alpha),
        key=lambda figure: figure.value or 0.0,
    )
    if by_alpha:
        ends = {"low": by_alpha[0].number, "high": by_alpha[-1].number}
        reliable = sum(is_firm(figure) and (figure.low or 0.0) >= RELIABLE for figure in by_alpha)
        text = _(
            "The panels agree more than by chance in %(share)s cells of criterion and language: "
            "α from %(low)s to %(high)s."
        )
        said = [worded(text, share=share, **ends)]
        if reliable:
            more = ngettext(
                "In %(n)d of them α is certainly above 0.667.", "In %(n)d of them α is certainly above 0.667.", reliable
            )
            said.append(worded(more, n=reliable))
    if by_ac := len(agreeing) - len(by_alpha):
        more = ngettext("In %(n)d of them only by Gwet’s AC.", "In %(n)d of them only by Gwet’s AC.", by_ac)
        said.append(worded(more, n=by_ac))
    return said


# --- judges ----------------------------------------------------------------------------------------------------------
def about_judges(
    cells: Sequence[CellDecision],
    judge: str,
    names: Names,
    *,
    order: Sequence[GateDecision.Use] = tuple(Use),
    states: Mapping[Cell, str] | None = None,
    biases: Mapping[tuple[str, str, str], Figure] | None = None,
    against: str = "",
) -> StudyFinding:
    """What each judge may be used for, and where it is too generous or too strict: the chosen one first. Of many judges
    those are named, too, that may not be used somewhere or must be measured again.

    `states`: how far people agree in each cell; a bias is claimed only where they do. Without it, everywhere.
    `biases`: by judge, criterion and language, the bias against the reference named `against`. Without it, that of the
    decisions, against the panel's mean.
    """
    by_judge: dict[str, list[CellDecision]] = {}
    for cell in cells:
        by_judge.setdefault(cell.row["judge"], []).append(cell)
    if not by_judge:
        nothing = _("No judge has scored items that people rated.")
        return StudyFinding("judges", (worded(nothing),))
    ranked = sorted(by_judge, key=lambda name: (name != judge, *_rank(by_judge[name]), name))
    if biases is None:
        own = {(cell.row["judge"], *cell_of(cell)): bias_figure(cell) for cell in cells}
        biases = {key: figure for key, figure in own.items() if figure is not None}
    said: list[Sentence] = []
    for name in ranked[:LISTED]:
        said += _one_judge(name, by_judge[name], order, as_before=bool(said) and _as_many(by_judge, ranked[0], name))
        biased = [
            (cell, figure)
            for cell in by_judge[name]
            if (figure := biases.get((name, *cell_of(cell)))) is not None
            and is_beyond_margin(cell, figure)
            and (states is None or states.get(cell_of(cell)) == "agrees")
        ]
        said += _how_biased(biased, names, against)
    warned = [name for name in ranked[LISTED:] if any(cell.use in _WARNED_OF for cell in by_judge[name])]
    for name in warned:
        said += _one_judge(name, by_judge[name], order, as_before=_as_many(by_judge, ranked[0], name))
    if (more := len(ranked) - LISTED - len(warned)) > 0:
        text = ngettext("%(n)d more judge is in the picture.", "%(n)d more judges are in the picture.", more)
        said.append(worded(text, n=more))
    decided = [cell for cell in cells if cell.use not in _NOT_COMPARED]
    return StudyFinding("judges", tuple(said), is_preliminary=any(independent_items(cell) < SMALL for cell in decided))


def independent_items(cell: CellDecision) -> int:
    """How many items a decision is based on that are independent of each other."""
    return min(int(cell.row["n_items"]), int(cell.row["n_clusters"]))


def cell_of(cell: CellDecision) -> tuple[str, str]:
    """The criterion and the language of a decision."""
    return cell.row["criterion"], cell.row["language"]


def _rank(cells: Iterable[CellDecision]) -> tuple[int, ...]:
    """Fewer is better: for sorting judges, the widest use in most cells first."""
    counted = Counter(cell.use for cell in cells)
    return tuple(-counted[use] for use in _USABLE)


def _as_many(by_judge: Mapping[str, Sequence[CellDecision]], first: str, name: str) -> bool:
    """Whether a judge has as many cells as the first one, so that their number need not be said again."""
    is_counted = any(cell.use not in (Use.STALE, Use.JUDGE_ALONE) for cell in by_judge[first])
    return is_counted and len(by_judge[first]) == len(by_judge[name])


def _one_judge(
    name: str, cells: Sequence[CellDecision], order: Sequence[GateDecision.Use], *, as_before: bool
) -> list[Sentence]:
    """How many cells have which decision. `as_before`: of as many as the sentence before has named."""
    judge, counted, n_cells = Emphasised(name), Counter(cell.use for cell in cells), len(cells)
    if counted[Use.STALE] == n_cells:
        return [worded(_("%(judge)s must be measured again."), judge=judge)]
    if counted[Use.JUDGE_ALONE] == n_cells:
        text = _("%(judge)s may score alone in all %(all)d cells of criterion and language.")
        return [worded(text, judge=judge, all=n_cells)]
    uses = [f"{use.label} {counted[use]}" for use in order if counted[use]]
    if as_before:
        return [worded(_("%(judge)s: %(uses)s."), judge=judge, uses=listed(uses))]
    text = _("%(judge)s in %(all)d cells of criterion and language: %(uses)s.")
    return [worded(text, judge=judge, all=n_cells, uses=listed(uses))]


def bias_figure(cell: CellDecision) -> Figure | None:
    """The bias of a judge against the panel's mean in one cell, as its decision measured it; None without a value."""
    for finding in cell.row["findings"]:
        if finding["name"] == "bias" and finding["figures"] and finding["figures"][0].get("value") is not None:
            about = {"criterion": cell.row["criterion"], "language": cell.row["language"]}
            return Figure.of({**finding["figures"][0], **about})
    return None


def is_beyond_margin(cell: CellDecision, figure: Figure) -> bool:
    """Whether the whole interval of a bias lies beyond the margin of a cell whose decision compares the judge."""
    if cell.use in _NOT_COMPARED or figure.low is None or figure.high is None:
        return False
    return bool(figure.low > cell.row["margin"] or figure.high < -cell.row["margin"])


def _how_biased(biased: Sequence[tuple[CellDecision, Figure]], names: Names, against: str) -> list[Sentence]:
    """Where it gives too much, and where too little, from the smallest to the largest bound of the intervals."""
    texts = {
        (True, True): _("It certainly gives more than the panel’s mean on %(cells)s: %(least)s to %(most)s points."),
        (True, False): _("So far it gives more than the panel’s mean on %(cells)s: %(least)s to %(most)s points."),
        (False, True): _("It certainly gives less than the panel’s mean on %(cells)s: %(least)s to %(most)s points."),
        (False, False): _("So far it gives less than the panel’s mean on %(cells)s: %(least)s to %(most)s points."),
    }
    if against:
        texts = {
            (True, True): _(
                "Compared with “%(against)s” it certainly gives more on %(cells)s: %(least)s to %(most)s points."
            ),
            (True, False): _(
                "Compared with “%(against)s” it gives more so far on %(cells)s: %(least)s to %(most)s points."
            ),
            (False, True): _(
                "Compared with “%(against)s” it certainly gives less on %(cells)s: %(least)s to %(most)s points."
            ),
            (False, False): _(
                "Compared with “%(against)s” it gives less so far on %(cells)s: %(least)s to %(most)s points."
            ),
        }
    said = []
    for (is_more, firm), text in texts.items():
        found = [
            (cell, figure)
            for cell, figure in biased
            if ((figure.low or 0.0) > 0) is is_more and is_firm(figure) is firm
        ]
        if found:
            bounds = [abs(end) for _cell, figure in found for end in (figure.low, figure.high) if end is not None]
            where = _cells_named([cell_of(cell) for cell, _figure in found], names)
            ends = {"least": f"{min(bounds):.2f}", "most": f"{max(bounds):.2f}"}
            said.append(worded(text, cells=where, against=against, **ends))
    return said


# --- generators ------------------------------------------------------------------------------------------------------
def about_generators(
    differences: Mapping[str, Sequence[EstimateRow]], languages: Collection[str], names: Names, *, criterion: str,
    direction: str,
) -> StudyFinding:  # fmt: skip
    """Which generator is first in which language on one criterion, and where that is not decided.

    `differences`: by language, the rows of differences of two generators. `languages`: all that are shown.
    """
    about = names.criterion(criterion)
    may_be = {tag: found for tag in languages if (found := may_be_first(differences.get(tag, ()), direction))}
    if not may_be:
        text = _("The generators can’t be ordered on %(criterion)s yet: no difference has an interval.")
        return StudyFinding("generators", (worded(text, criterion=about),))
    firm = {tag: all(is_firm(Figure.of(row)) for row in differences[tag] if row["value"] is not None) for tag in may_be}
    decided: dict[tuple[str, bool], list[str]] = {}
    for tag, found in may_be.items():
        if len(found) == 1:
            decided.setdefault((found[0], firm[tag]), []).append(tag)
    said = []
    for (name, is_certain), tags in sorted(decided.items(), key=lambda found: (-len(found[1]), found[0])):
        where = _("every language (%d)") % len(tags) if len(tags) == len(languages) > 1 else ""
        first, place = (
            Emphasised(name),
            Emphasised(where) if where else named_briefly([names.language(tag) for tag in tags]),
        )
        text = (
            _("On %(criterion)s %(generator)s is certainly first in %(languages)s.")
            if is_certain
            else _("On %(criterion)s %(generator)s is so far first in %(languages)s.")
        )
        said.append(worded(text, criterion=about, generator=first, languages=place))
    undecided = {tag: found for tag, found in may_be.items() if len(found) > 1}
    said += _undecided(undecided, about, names, is_everywhere=not decided)
    if unknown := [names.language(tag) for tag in languages if tag not in may_be]:
        text = _("In %(languages)s no difference has an interval.")
        said.append(worded(text, languages=named_briefly(unknown)))
    return StudyFinding("generators", tuple(said), is_preliminary=not all(firm.values()))


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
        for tag, found in list(undecided.items())[:LISTED]
    ]
    if (more := len(undecided) - LISTED) > 0:
        text = ngettext("%(n)d more language is not decided.", "%(n)d more languages are not decided.", more)
        said.append(worded(text, n=more))
    return said


def _or(names: Sequence[str]) -> Emphasised:
    """atlas, birch or cedar."""
    if len(names) < 2:
        return Emphasised("".join(names))
    about = {"first": ", ".join(names[:-1]), "last": names[-1]}
    return Emphasised(_("%(first)s or %(last)s") % about)


# --- how sure --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class LabelCost:
    """What one more item takes: raters, seconds of one of them, and pay in USD, where these are known."""

    raters: int = 2
    seconds: float | None = None
    pay: float | None = None


def about_certainty(
    independent: Sequence[int], cells: Sequence[CellDecision], judge: str, cost: LabelCost
) -> StudyFinding:
    """What the figures are based on, and how many more items would decide what about the chosen judge.

    `independent`: of every figure that the other findings use, the number of independent items.
    """
    said = [_what_they_are_based_on(independent)]
    own = [cell for cell in cells if cell.row["judge"] == judge]
    # Of a cell that has no figure yet, nobody knows how good it stays.
    wanted = [(cell, more) for cell in own if independent_items(cell) and (more := items_that_decide(cell))]
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
    elif any(independent_items(cell) and cell.use is not Use.JUDGE_ALONE for cell in own):
        said.append(worded(_("More labels alone are not known to change a decision about %(judge)s."), judge=judge))
    return StudyFinding("certainty", tuple(said), is_preliminary=any(0 < count < SMALL for count in independent))


def preliminary_sentence(counts: Sequence[int]) -> str:
    """Of how many figures the numbers of independent items are few; empty if of none."""
    return str(_what_they_are_based_on(counts)) if any(0 < count < SMALL for count in counts) else ""


def _what_they_are_based_on(independent: Sequence[int]) -> Sentence:
    counts = [count for count in independent if count]  # a figure of nothing is no figure
    if not counts:
        return worded(_("There are no figures yet."))
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


def items_that_decide(cell: CellDecision) -> int:
    """How many more items with ratings would decide a cell; 0 if labels alone are not known to do so.

    Too few items become enough; else every condition that fails must be one that more labels can settle.
    """
    if cell.use is Use.INSUFFICIENT:
        return max((remedy.more_items or 0 for remedy in cell.remedies), default=0)
    failed = [finding for finding in cell.row["findings"] if finding["name"] in ALONE and stands_against(finding)]
    if cell.use in _NOT_COMPARED or not all(finding["more"] for finding in failed):
        return 0
    return max((int(finding["more"]) for finding in failed), default=0)


def _effort(items: int, cost: LabelCost) -> str:
    assignments = items * cost.raters
    parts = [ngettext("%d assignment", "%d assignments", assignments) % assignments]
    if cost.seconds:
        hours = assignments * cost.seconds / 3600
        parts.append(_("about %s hours") % (f"{hours:.1f}" if hours < 10 else f"{hours:.0f}"))
    if cost.pay:
        parts.append(f"${assignments * cost.pay:,.2f}")
    return ", ".join(parts)


def _narrowed(wanted: Sequence[tuple[CellDecision, int]]) -> Sentence | None:
    """How the widest interval of the bias that more labels can settle would narrow, as the root of the items."""
    widths = []
    for cell, more in wanted:
        figure = bias_figure(cell)
        wants_bias = any(finding["name"] == "bias" and finding["more"] for finding in cell.row["findings"])
        if wants_bias and figure and figure.low is not None and figure.high is not None:
            widths.append(((figure.high - figure.low) / 2, more, figure.n_items))
    if not widths:
        return None
    half, more, n_items = max(widths)
    after = half * (n_items / (n_items + more)) ** 0.5
    text = _("The widest interval of its bias would narrow from ±%(before)s to about ±%(after)s.")
    return worded(text, before=f"{half:.2f}", after=f"{after:.2f}")
