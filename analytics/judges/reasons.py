"""Decisions about judges in words: the reasons for each decision, strongest first, and what would change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from analytics.figures import Figure, listed
from analytics.models import GateDecision, GateThresholds

MOST_REASONS = 3
Use = GateDecision.Use
MEANINGS = {
    Use.JUDGE_ALONE: gettext_lazy("Use its scores as they are."),
    Use.JUDGE_WITH_CORRECTION: gettext_lazy("Use its scores together with human ratings that correct them."),
    Use.RANKING_ONLY: gettext_lazy("Use it to rank generators, not for scores."),
    Use.HUMANS_ONLY: gettext_lazy("Do not use it here: ask people."),
    Use.INSUFFICIENT: gettext_lazy("There are too few items with ratings to decide."),
    Use.RUBRIC_PROBLEM: gettext_lazy("The raters do not agree, so nothing can be compared with them."),
    Use.STALE: gettext_lazy("Something changed since it was measured."),
}
CORRECTION_TAKES = gettext_lazy("Correcting a generator’s mean takes 20 rated items; until then use the people’s.")
FINDING_NAMES = {
    "stale": gettext_lazy("Unchanged since it was measured"),
    "insufficient": gettext_lazy("Enough items"),
    "rubric_problem": gettext_lazy("The raters agree"),
    "copy": gettext_lazy("Not a copy of an annotator"),
    "alt_test": gettext_lazy("Alternative annotator test"),
    "bias": gettext_lazy("Bias within the margin"),
    "readable": gettext_lazy("Replies can be read"),
    "flip_rate": gettext_lazy("The same score when asked again"),
    "verbosity": gettext_lazy("Length does not move it"),
    "self_preference": gettext_lazy("No preference for its own family"),
    "perturbation": gettext_lazy("What must not matter does not move it"),
    "sensitivity": gettext_lazy("Worse texts lower its scores"),
    "ppi_gain": gettext_lazy("Correction pays"),
    "tau_b": gettext_lazy("The same ranking of generators"),
}
NO_SCORE = {
    "not_asked": gettext_lazy("not asked"),
    "failed": gettext_lazy("call failed"),
    "refused": gettext_lazy("refused"),
    "unparsed": gettext_lazy("unreadable"),
    "truncated": gettext_lazy("cut off"),
    "error": gettext_lazy("error"),
    "out_of_range": gettext_lazy("off the scale"),
    "not_applicable": gettext_lazy("not applicable"),
    "missing": gettext_lazy("without a score"),
}
"""Why an item has no score by the judge."""
PROBLEMS = frozenset({"stale", "insufficient", "rubric_problem"})
"""Findings that are bad if they are true."""
EFFECTS = ("verbosity", "self_preference", "perturbation", "sensitivity")
ALONE = ("copy", "alt_test", "bias", "readable", "flip_rate", *EFFECTS)
AUDITED = frozenset({"alt_test", "flip_rate", *EFFECTS})
"""Conditions that need an audit run; the other conditions are figures that are known or not known."""
GRANTS = {Use.JUDGE_ALONE: ("alt_test", "bias"), Use.JUDGE_WITH_CORRECTION: ("ppi_gain",), Use.RANKING_ONLY: ("tau_b",)}
"""The findings that a use depends on."""
_WIDER: dict[str, tuple[tuple[str, ...], ...]] = {
    Use.JUDGE_WITH_CORRECTION: (ALONE,),
    Use.RANKING_ONLY: (ALONE, ("ppi_gain",)),
    Use.HUMANS_ONLY: (ALONE, ("ppi_gain",), ("tau_b",)),
}
"""By decision, the conditions of each use that is wider."""
DECISION_STATES = ("certain", "not_certain")
GROUPS = {
    "labels": gettext_lazy("Human labels"),
    "people": gettext_lazy("People"),
    "rubric": gettext_lazy("Rubric work"),
    "judge": gettext_lazy("Judge"),
}
"""What a remedy needs."""
ACTIONS = {
    "run": gettext_lazy("Run the judge"),
    "again": gettext_lazy("Run the judge again"),
    "repeats": gettext_lazy("Run the repeats"),
    "perturbation": gettext_lazy("Run this audit"),
    "judges": gettext_lazy("Go to judges"),
    "declare": gettext_lazy("Add a judge"),
}
"""The text of the link that starts a remedy."""
STARTS = {
    "flip_rate": "repeats", "perturbation": "perturbation", "sensitivity": "perturbation", "self_preference": "judges",
}  # fmt: skip
"""What starts an audit that was not run."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What would change a decision: its key in `GROUPS`, its words, and the number of additional items, if known.

    `action`: a key of `ACTIONS`, if a link can start the remedy.
    """

    group: str
    sentence: str
    more_items: int | None = None
    action: str = ""

    @property
    def action_name(self) -> str:
        return str(ACTIONS[self.action])

    @property
    def group_name(self) -> str:
        return str(GROUPS[self.group])


@dataclass(frozen=True, slots=True)
class Condition:
    """One finding as a row: `state` is holds, fails, not_certain or not_run."""

    name: str
    state: str
    sentence: str
    figures: tuple[Figure, ...]

    @property
    def action(self) -> str:
        """The key of `ACTIONS` that starts the audit, if it was not run."""
        return STARTS.get(self.name, "") if self.state == "not_run" else ""

    @property
    def action_name(self) -> str:
        return str(ACTIONS[self.action])

    @property
    def state_name(self) -> str:
        if self.state == "not_run":
            return _("not run") if self.name in AUDITED else _("not known")
        if self.state == "not_certain":
            return _("not certain")
        return _("met") if self.state == "holds" else _("not met")

    @property
    def title(self) -> str:
        return str(FINDING_NAMES[self.name])


@dataclass(frozen=True)
class CellDecision:
    """What one judge may be used for in one criterion and language, from its row in `Snapshot.content`."""

    row: Mapping[str, Any]
    thresholds: GateThresholds

    @property
    def use(self) -> GateDecision.Use:
        return Use(self.row["decision"])

    @property
    def meaning(self) -> str:
        """What to do, in one or two sentences."""
        return " ".join(filter(None, (str(MEANINGS[self.use]), self.takes)))

    @property
    def takes(self) -> str:
        """What the use takes today; empty where it takes nothing."""
        return str(CORRECTION_TAKES) if self.use is Use.JUDGE_WITH_CORRECTION else ""

    @property
    def state(self) -> str:
        """`certain`, or `not_certain` where narrower intervals could lead to another decision.

        That is where an interval contains the threshold, of a condition of this use, of a wider one that nothing else
        stands against, or of the raters' agreement, which every use rests on.
        """
        return "not_certain" if self.open_conditions else "certain"

    @cached_property
    def open_conditions(self) -> set[str]:
        """The conditions that are not certain and could lead to another decision."""
        states = {condition.name: condition.state for condition in self.conditions}
        asked: list[tuple[str, ...]] = (
            [("rubric_problem",)] if self.use is Use.JUDGE_ALONE or self.use in _WIDER else []
        )
        asked += [ALONE] if self.use is Use.JUDGE_ALONE else []
        for names in _WIDER.get(self.use, ()):
            if not {states.get(name) for name in names} & {"fails", "not_run"}:
                asked.append(names)
        return {name for names in asked for name in names if states.get(name) == "not_certain"}

    @property
    def why_not_certain(self) -> str:
        """What "not certain" does to this use, and for which conditions; empty if the decision is certain.

        The decision applies all the same: what is open may withdraw the widest use, and else allow a wider one.
        """
        names = [condition.title for condition in self.conditions if condition.name in self.open_conditions]
        if not names:
            return ""
        if self.use is Use.JUDGE_ALONE:
            text = _("Not certain: you may use it so now, but more items may show that you may not.")
        elif "rubric_problem" in self.open_conditions:
            text = _("Not certain: the decision applies now, but more items may change it.")
        else:
            text = _("Not certain: the decision applies now, but more items may allow a wider use.")
        why = _("The interval contains the threshold: %s.") % listed(names)
        return f"{text} {why}"

    @property
    def otherwise(self) -> str:
        """For a stale decision: the decision if nothing had changed. Empty for any other decision."""
        return str(Use(self.row["otherwise"]).label) if "otherwise" in self.row else ""

    @property
    def basis(self) -> str:
        """The items with two raters and a score by the judge, their clusters, and the raters."""
        items = ngettext("%d item", "%d items", self.row["n_items"]) % self.row["n_items"]
        clusters = ngettext("%d cluster", "%d clusters", self.row["n_clusters"]) % self.row["n_clusters"]
        raters = ngettext("%d rater", "%d raters", self.row["n_raters"]) % self.row["n_raters"]
        return f"{items}, {clusters}, {raters}"

    @property
    def unscored(self) -> dict[str, int]:
        """By reason, how many items with two raters have no score by the judge."""
        return dict(self.row.get("unscored", {}))

    @cached_property
    def conditions(self) -> list[Condition]:
        """Every condition with its state and figures, in the order in which the gate asks."""
        return [self._condition(finding) for finding in self.row["findings"]]

    @property
    def reasons(self) -> list[str]:
        """The strongest reasons, at most three: findings that allow the use, then findings that prevent a better use.

        Among failed findings, measured figures come first, sorted by the distance from their thresholds, largest first.
        """
        sentences = [self._sentence(finding) for finding in self._reasons()]
        if self.use is Use.STALE:
            sentences = [_changed(change) for change in self.row["changes"]]
            sentences.append(_("Without this the decision would be: %s.") % self.otherwise)
        return sentences[:MOST_REASONS]

    @property
    def remedies(self) -> list[Remedy]:
        """What would change the decision, the easiest remedy first; at most three."""
        if self.use is Use.STALE:
            return [_renewed(change) for change in self.row["changes"]][:MOST_REASONS]
        if self.use in (Use.INSUFFICIENT, Use.RUBRIC_PROBLEM):
            return [self._remedy(self._finding(str(self.use)))]
        failed = sorted(self._failed(), key=lambda finding: (not finding["more"], finding["gap"]))
        if self.use is Use.JUDGE_ALONE:  # nothing prevents it: what would make it certain
            failed = [finding for finding in self.row["findings"] if finding["name"] in self.open_conditions]
        return [self._remedy(finding) for finding in failed][:MOST_REASONS]

    def _finding(self, name: str) -> dict[str, Any]:
        return next(finding for finding in self.row["findings"] if finding["name"] == name)

    def _reasons(self) -> Iterator[dict[str, Any]]:
        if self.use is Use.STALE:
            return
        if self.use in (Use.INSUFFICIENT, Use.RUBRIC_PROBLEM):
            yield self._finding(str(self.use))
            return
        for name in GRANTS.get(self.use, ()):
            yield self._finding(name)
        if self.use is Use.JUDGE_ALONE:
            yield from (
                found for found in self.row["findings"] if found["name"] in EFFECTS and _state(found) == "not_certain"
            )
            yield self._finding("flip_rate")
        yield from sorted(self._failed(), key=lambda finding: (not finding["measured"], -finding["gap"]))

    def _failed(self) -> Iterator[dict[str, Any]]:
        """The findings that prevent a better use."""
        if self.use is Use.JUDGE_ALONE:
            return
        names = {*ALONE, *(() if self.use is Use.JUDGE_WITH_CORRECTION else ("ppi_gain",))}
        names |= {"tau_b"} if self.use is Use.HUMANS_ONLY else set()
        yield from (found for found in self.row["findings"] if found["name"] in names and stands_against(found))

    def _condition(self, finding: Mapping[str, Any]) -> Condition:
        figures = tuple(self._figure(figure) for figure in finding["figures"])
        return Condition(finding["name"], _state(finding), self._sentence(finding), figures)

    def _figure(self, figure: Mapping[str, Any]) -> Figure:
        return Figure.of({**figure, "criterion": self.row["criterion"], "language": self.row["language"]})

    # --- sentences ----------------------------------------------------------------------------------------------------
    def _sentence(self, finding: Mapping[str, Any]) -> str:
        """One finding in words with its figures."""
        name, holds, t = finding["name"], finding["holds"], self.thresholds
        figures = [self._figure(figure) for figure in finding["figures"]]
        first = figures[0] if figures else None
        shown = {"figure": _shown(first), "margin": f"{self.row['margin']:.3g}", "why": first.why if first else ""}
        if name == "stale":
            return " ".join(map(_changed, self.row["changes"])) or _("Judge, prompt, rubric and model are the same.")
        if name == "insufficient":
            return self._enough(bool(holds))
        if name == "rubric_problem":
            return self._agreement(_state(finding), figures)
        if not finding["measured"]:
            return self._not_run(name, shown, first)
        if name == "alt_test":
            shown |= {"needed": _share(t.omega), "share": _share(first.value if first else None)}
            sentence = (
                _("Alternative annotator test: as good as %(share)s of annotators; %(needed)s is needed.") % shown
            )
            undecided = "" if finding.get("certain", True) else _("For others these items do not decide it.")
            return " ".join(filter(None, (sentence, undecided)))
        if name == "copy":
            return self._copy()
        if name == "readable":
            shown |= {"share": _range(first), "needed": _share(t.readable)}
            return _("%(share)s of its replies can be read; the whole interval has to be %(needed)s or more.") % shown
        if name == "flip_rate":
            shown |= {"share": _range(first), "needed": _share(t.flip_rate)}
            return (
                _("Asked again, it changes %(share)s of its scores; the whole interval has to be %(needed)s or less.")
                % shown
            )
        shown |= {"tau": f"{t.tau_b:.2f}", "low": f"{t.tau_b_low:.2f}"}
        if (name, "not certain") in _SENTENCES and not finding.get("certain", True):
            return str(_SENTENCES[name, "not certain"]) % shown
        return str(_SENTENCES[name, bool(holds)]) % shown

    def _copy(self) -> str:
        copied = self.row["copied"]
        sentence = ngettext(
            "It has the scores of %(annotator)s on %(n_same)d of %(n_items)d item; annotators agree on %(others)s.",
            "It has the scores of %(annotator)s on %(n_same)d of %(n_items)d items; annotators agree on %(others)s.",
            copied["n_items"],
        )
        return sentence % {**copied, "others": _share(copied["others"])}

    def _enough(self, short: bool) -> str:
        counts = {"items": self.row["n_items"], "needed": self.thresholds.fewest_items}
        if short:
            sentence = ngettext(
                "Only %(items)d item has two raters and a score by the judge; %(needed)d are needed.",
                "Only %(items)d items have two raters and a score by the judge; %(needed)d are needed.",
                counts["items"],
            )
            return " ".join(filter(None, (sentence % counts, self._no_score())))
        sentence = ngettext(
            "%(items)d item has two raters and a score by the judge; %(needed)d are needed.",
            "%(items)d items have two raters and a score by the judge; %(needed)d are needed.",
            counts["items"],
        )
        return sentence % counts

    def _no_score(self) -> str:
        """How many items with two raters have no score by the judge, and why; empty if all items have a score."""
        count = sum(self.unscored.values())
        if not count:
            return ""
        why = ", ".join(f"{NO_SCORE.get(reason, reason)} {number}" for reason, number in self.unscored.items())
        sentence = ngettext(
            "%(count)d more item with two raters has no score by the judge: %(why)s.",
            "%(count)d more items with two raters have no score by the judge: %(why)s.",
            count,
        )
        return sentence % {"count": count, "why": why}

    def _agreement(self, state: str, figures: Sequence[Figure]) -> str:
        shown = {"figures": "; ".join(f"{_coefficient(each)} {_shown(each)}" for each in figures)}
        if state == "fails":
            return _("The raters agree hardly more than by chance: %(figures)s.") % shown
        if state == "not_run":
            return _("How far the raters agree is not known: no item has two raters.")
        if state == "not_certain":
            return _("It is not certain that the raters agree more than by chance: %(figures)s.") % shown
        return _("The raters agree: %(figures)s.") % shown

    def _not_run(self, name: str, shown: dict[str, str], first: Figure | None) -> str:
        if name == "ppi_gain" and self.row["n_unrated"] == 0:
            return _("Correction can’t be tried: people have rated every item that the judge scored.")
        if name == "flip_rate" and (repeated := first.n_items if first else 0):
            counts = {"repeated": repeated, "needed": self.thresholds.fewest_items}
            return (
                ngettext(
                    "Repeats: %(repeated)d item has repeats; %(needed)d are needed.",
                    "Repeats: %(repeated)d items have repeats; %(needed)d are needed.",
                    repeated,
                )
                % counts
            )
        if name == "flip_rate":
            return _("Repeats: not run. Whether it gives the same score twice is not known.")
        if name == "tau_b" and (generators := self._few_generators()) is not None:
            counts = {"needed": self.row["fewest_generators"], "generators": generators}
            return _("A ranking needs at least %(needed)d generators; this cell has %(generators)d.") % counts
        shown = {**shown, "name": str(FINDING_NAMES[name])}
        if name in AUDITED:
            return (_("%(name)s: not run (%(why)s).") if shown["why"] else _("%(name)s: not run.")) % shown
        return (_("%(name)s: not known (%(why)s).") if shown["why"] else _("%(name)s: not known.")) % shown

    def _few_generators(self) -> int | None:
        """The number of generators, if they are too few for a ranking."""
        generators = self.row.get("n_generators")
        return generators if generators is not None and generators < self.row["fewest_generators"] else None

    # --- what would change it -----------------------------------------------------------------------------------------
    def _remedy(self, finding: Mapping[str, Any]) -> Remedy:
        name, more = finding["name"], finding["more"]
        if name == "insufficient":
            return self._more_items(more or 0)
        if name == "rubric_problem" and self.use is not Use.RUBRIC_PROBLEM:
            return Remedy("labels", _("More items with two raters: the interval of their agreement is too wide."))
        if name == "rubric_problem":
            return Remedy(
                "rubric", _("Make the anchors of this criterion more precise, train the panel, and rate again.")
            )
        if (remedy := self._more_data(finding)) is not None:
            return remedy
        if name == "copy":
            sentence = _("Compare it without the ratings of %(annotator)s, or find out why they are the same.")
            return Remedy("people", sentence % self.row["copied"])
        if name == "tau_b" and (generators := self._few_generators()) is not None:
            counts = {"needed": self.row["fewest_generators"], "generators": generators}
            sentence = _("Items of more generators: a ranking needs at least %(needed)d; this cell has %(generators)d.")
            return Remedy("labels", sentence % counts)
        if name == "alt_test" and not finding["measured"]:
            return Remedy("people", _("Two annotators or more who rate 30 of the same items."))
        if name == "ppi_gain" and self.row["n_unrated"] == 0:
            sentence = _("Run the judge on items that nobody has rated: a correction is for those.")
            return Remedy("judge", sentence, action="run")
        if name == "bias" and not finding["measured"] and any("value" in figure for figure in finding["figures"]):
            return Remedy(
                "labels",
                _("Rated items in 30 clusters or more: with fewer, a bias that never varies has no interval."),
            )
        key = name if finding["measured"] else f"{name} not run"
        action = "" if finding["measured"] else STARTS.get(name, "")
        return Remedy("judge", str(_REMEDIES.get(key) or _REMEDIES[name]), action=action)

    def _more_data(self, finding: Mapping[str, Any]) -> Remedy | None:
        """A remedy for more labels or replies if they are known to help, or a note that they are unlikely to help; else
        None.
        """
        name, more = finding["name"], finding["more"]
        if more:
            sentence = ngettext(
                "About %(more)d more item with ratings: %(name)s.",
                "About %(more)d more items with ratings: %(name)s.",
                more,
            )
            return Remedy("labels", sentence % {"more": more, "name": _WITH_MORE[name]}, more)
        if replies := finding.get("replies"):
            sentence = ngettext(
                "About %(replies)d more item that the judge scores: %(name)s.",
                "About %(replies)d more items that the judge scores: %(name)s.",
                replies,
            )
            return Remedy("judge", sentence % {"replies": replies, "name": _WITH_MORE[name]})
        if too_many := finding.get("too_many"):
            sentence = _(
                "More labels are unlikely to help with: %(name)s. It would take more than %(most)d more items."
            )
            return Remedy("judge", sentence % {"name": FINDING_NAMES[name], "most": too_many})
        if name in EFFECTS and not finding.get("certain", True):
            sentence = _("More items in this audit: the interval is too wide to decide.")
            return Remedy("judge", sentence, action=STARTS.get(name, ""))
        return None

    def _more_items(self, short: int) -> Remedy:
        """Labels up to the minimum number of items: items with one rater need one more rater, other items need two;
        some need the judge, too.
        """
        if (not_asked := self.unscored.get("not_asked", 0)) >= short:
            sentence = ngettext(
                "Run the judge on the %d item that has two raters and that it was not asked about.",
                "Run the judge on the %d items that have two raters and that it was not asked about.",
                not_asked,
            )
            return Remedy("judge", sentence % not_asked, action="run")
        single = min(short, self.row["n_single"])
        unrated = min(short - single, self.row["n_unrated"])
        if single + unrated < short:
            sentence = ngettext(
                "%d more item with two raters and a score by the judge.",
                "%d more items with two raters and a score by the judge.",
                short,
            )
            can_be_asked = any(self.unscored.get(reason) for reason in ("not_asked", "failed"))
            return Remedy("labels", sentence % short, short, action="run" if can_be_asked else "")
        n_labels = single + 2 * (short - single)
        labels = ngettext("%d more label", "%d more labels", n_labels) % n_labels
        items = ngettext("%d more item with two raters", "%d more items with two raters", short) % short
        return Remedy("labels", f"{labels}: {items}.", short)


def stands_against(finding: Mapping[str, Any]) -> bool:
    """Whether a finding prevents the use that it is asked for: not one of an audit that is not certain."""
    return bool(finding.get("prevents", not finding["holds"]))


def _state(finding: Mapping[str, Any]) -> str:
    """Whether a condition is met: holds, fails, not_certain or not_run; a problem that is there fails."""
    if not finding["measured"]:
        return "not_run"
    if not finding.get("certain", True):
        return "not_certain"
    return "holds" if finding["holds"] is not (finding["name"] in PROBLEMS) else "fails"


def _coefficient(figure: Figure) -> str:
    """α, or AC with its weights: other pages show AC with other weights."""
    if figure.statistic == "krippendorff_alpha":
        return "α"
    return _("AC with quadratic weights") if figure.variant == "quadratic" else "AC"


_SENTENCES: dict[tuple[str, bool | str], Any] = {
    ("bias", True): gettext_lazy("Its bias is %(figure)s points: the whole interval lies within ±%(margin)s."),
    ("bias", False): gettext_lazy("Its bias is %(figure)s points: the interval reaches beyond ±%(margin)s."),
    ("verbosity", True): gettext_lazy(
        "Twice the length moves its error by %(figure)s points: the whole interval lies within ±%(margin)s."
    ),
    ("verbosity", False): gettext_lazy("Twice the length moves its error by %(figure)s points: beyond ±%(margin)s."),
    ("self_preference", True): gettext_lazy(
        "It gives its own family %(figure)s points more: the whole interval lies within ±%(margin)s."
    ),
    ("self_preference", False): gettext_lazy("It gives its own family %(figure)s points more: beyond ±%(margin)s."),
    ("perturbation", True): gettext_lazy(
        "Changes that must not matter move its scores by %(figure)s points: the whole interval lies within ±%(margin)s."
    ),
    ("perturbation", False): gettext_lazy(
        "Changes that must not matter move its scores by %(figure)s points: beyond ±%(margin)s."
    ),
    ("verbosity", "not certain"): gettext_lazy(
        "Twice the length moves its error by %(figure)s points: the interval reaches beyond ±%(margin)s."
    ),
    ("self_preference", "not certain"): gettext_lazy(
        "It gives its own family %(figure)s points more: the interval reaches beyond ±%(margin)s."
    ),
    ("perturbation", "not certain"): gettext_lazy(
        "Changes that must not matter move its scores by %(figure)s points: the interval reaches beyond ±%(margin)s."
    ),
    ("sensitivity", "not certain"): gettext_lazy(
        "With worse texts its scores fall by %(figure)s points: the interval reaches below %(margin)s."
    ),
    ("sensitivity", True): gettext_lazy("With worse texts its scores fall by %(figure)s points."),
    ("sensitivity", False): gettext_lazy(
        "With worse texts its scores fall by %(figure)s points at most: less than %(margin)s."
    ),
    ("bias", "not certain"): gettext_lazy(
        "Its bias is %(figure)s points: the interval reaches beyond ±%(margin)s, so that this is not certain."
    ),
    ("ppi_gain", "not certain"): gettext_lazy(
        "With correction a label is worth %(figure)s labels: the interval contains 1, so that this is not certain."
    ),
    ("tau_b", "not certain"): gettext_lazy(
        "Its ranking of the generators: tau-b %(figure)s. "
        "%(tau)s is needed, and an interval above %(low)s: this is not certain."
    ),
    ("ppi_gain", True): gettext_lazy("With correction a label is worth %(figure)s labels without the judge."),
    ("ppi_gain", False): gettext_lazy(
        "With correction a label is worth %(figure)s labels; the interval has to lie above 1."
    ),
    ("tau_b", True): gettext_lazy("It ranks the generators as the panel does: tau-b %(figure)s."),
    ("tau_b", False): gettext_lazy(
        "Its ranking of the generators: tau-b %(figure)s; %(tau)s is needed, and an interval above %(low)s."
    ),
}
_WITH_MORE = {
    "alt_test": gettext_lazy("the alternative annotator test would pass if the judge stays as good"),
    "bias": gettext_lazy("the interval of the bias would lie within the margin"),
    "readable": gettext_lazy("the share of readable replies would be certain"),
    "flip_rate": gettext_lazy("the share of changed scores would be certain"),
    "verbosity": gettext_lazy("the effect of length would lie within the margin by its whole interval"),
    "ppi_gain": gettext_lazy("the gain by correction would be certain"),
    "tau_b": gettext_lazy("the ranking would be certain"),
}
_REMEDIES = {
    "alt_test": gettext_lazy("Another judge or prompt: it is farther from the raters than they are from each other."),
    "bias": gettext_lazy("Another judge or prompt, or a correction: the bias itself is not within the margin."),
    "bias not run": gettext_lazy("A bias needs an ordered scale, and items that the judge and people scored."),
    "readable": gettext_lazy("A stricter reply format, so that every reply has a score."),
    "flip_rate": gettext_lazy("Temperature 0, or the median of several repeats."),
    "flip_rate not run": gettext_lazy("Run the judge with three repeats."),
    "verbosity": gettext_lazy("A prompt or judge that length does not move."),
    "verbosity not run": gettext_lazy(
        "The audit runs automatically on an ordered scale when rated items differ in length."
    ),
    "self_preference": gettext_lazy("A judge of another family than the generators."),
    "self_preference not run": gettext_lazy("Run a second judge, of another family, on the same items."),
    "perturbation": gettext_lazy("A judge that such changes move less."),
    "perturbation not run": gettext_lazy("Audit the judge with changed texts, on the page “Audits”."),
    "sensitivity": gettext_lazy("A judge or prompt that reads the text: it misses what makes a text worse."),
    "sensitivity not run": gettext_lazy("Audit the judge with changed texts, on the page “Audits”."),
    "ppi_gain": gettext_lazy("A judge that follows the panel more closely."),
    "ppi_gain not run": gettext_lazy("At least 20 rated items on an ordered scale that the judge scored."),
    "tau_b": gettext_lazy("A judge that ranks the generators as the panel does."),
    "tau_b not run": gettext_lazy("Items of three generators or more, on an ordered scale."),
}


def _shown(figure: Figure | None) -> str:
    """0.71 [0.64, 0.77], and whether it is approximate or conservative, in words."""
    if figure is None or not figure.is_defined:
        return _("unknown")
    text = f"{figure.number} {figure.interval}".strip()
    if figure.is_approximate:
        return _("%s (approximate)") % text
    return _("%s (conservative)") % text if figure.is_conservative else text


def _share(value: float | None, digits: int = 0) -> str:
    return _("unknown") if value is None else f"{100 * value:.{digits}f}%"


def _range(figure: Figure | None) -> str:
    """98.3% [95.1%, 99.4%]."""
    if figure is None or figure.value is None:
        return _("unknown")
    bounds = "" if figure.low is None else f" [{_share(figure.low, 1)}, {_share(figure.high, 1)}]"
    return f"{_share(figure.value, 1)}{bounds}"


def _changed(change: Mapping[str, str]) -> str:
    """What has changed since the judge was measured."""
    sentences = {
        "rubric": _("The rubric has a newer version: %(now)s instead of %(before)s."),
        "prompt": _("The wording of the prompts has changed since this judge was added."),
        "served": _("The endpoint now answers with another model: %(now)s instead of %(before)s."),
        "mixed": _("The endpoint changed its model during the run: %(before)s."),
    }
    return sentences[change["code"]] % change


def _renewed(change: Mapping[str, str]) -> Remedy:
    if change["code"] == "rubric":
        sentence = _("Rate and judge with version %(now)s of the rubric in a new campaign.") % change
        return Remedy("rubric", sentence)
    if change["code"] == "prompt":
        return Remedy("judge", _("Add the judge again under another name, and run it."), action="declare")
    sentence = _("Run the judge again with “Ask again, and pay again”, so that one model gives all its scores.")
    return Remedy("judge", sentence, action="again")
