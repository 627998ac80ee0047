"""The audits of a judge in a campaign: each with its effect, interval and counts in a sentence, or not run.

The page is a list of sections (`AUDITS`), all of one question's answer (`QUESTION`), which Explore, the API and the
command give too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import get_language, gettext_lazy, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import languages
from analytics import answer_pages, page_cache, tasks
from analytics.answers import computing
from analytics.figures import Figure
from analytics.judges.thresholds import current_thresholds
from analytics.models import Snapshot
from analytics.questions.question import NumbersQuestion
from analytics.ratings.raters import with_scores
from analytics.views.items import criterion_name, shown_campaign
from analytics.views.sections import Section
from analytics.workload import judge_positions
from annotation.models import Campaign
from judging.forms import CHANGES, audit_query, run_query
from judging.models import Judge
from judging.perturbation import change_of

USUAL_MARGIN = 0.075
"""The share of a scale's width that an effect has to exceed where the project has declared no thresholds."""
REPEATS = 3
"""How often a run asks that is started for its repeats."""
MOST_SENTENCES = 8
"""Flaws that an audit names one by one; its table has all."""
STAY = gettext_lazy("Scores that stay")
FLAWS = (gettext_lazy("flaws found"), gettext_lazy("no flaw found"))
CHANGE_NAMES = dict(CHANGES)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One effect: what it is of, its figure, what is beside it, and whether it is a flaw (None: not known)."""

    criterion: str
    language: str
    what: str
    figure: Figure
    beside: Figure | None
    is_flaw: bool | None
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit(Section):
    """The section of an audit. `action`: of `start_address`; `beside`: the column beside the effect; `outcomes`: that
    there are flaws, and that there are none; `rises`, `falls`: the sentence of a flaw above and below 0.
    """

    action: str = ""
    beside: Any = STAY
    outcomes: tuple[Any, Any] = FLAWS
    rises: Any = ""
    falls: Any = ""


@dataclass(frozen=True, slots=True)
class ShownAudit:
    """One audit as its template reads it: its rows, and the address where it is started if a run would help."""

    part: Audit
    rows: tuple[AuditRow, ...]
    url: str

    @property
    def known(self) -> list[AuditRow]:
        return [row for row in self.rows if row.figure.is_defined]

    @property
    def flaws(self) -> list[AuditRow]:
        return [row for row in self.rows if row.is_flaw]

    @property
    def state(self) -> str:
        """not_run, fails, unknown or holds."""
        if not self.known:
            return "not_run"
        if self.flaws:
            return "fails"
        return "unknown" if any(row.is_flaw is None for row in self.known) else "holds"

    @property
    def state_name(self) -> str:
        fails, holds = self.part.outcomes
        return str({"not_run": _("not run"), "fails": fails, "holds": holds}.get(self.state, _("not certain")))

    @property
    def sentences(self) -> list[str]:
        """The flaws one by one; else how many effects were measured and what can be said of them."""
        if self.state == "not_run":
            why = next((row.figure.reason for row in self.rows if row.figure.reason), "")
            return [_("Not run: %s.") % why.removeprefix("not run: ") if why else _("Not run.")]
        if self.flaws:
            sentences = [row.sentence for row in self.flaws[:MOST_SENTENCES]]
            more = len(self.flaws) - len(sentences)
            if self.part.name == "rated_items":
                last = ngettext("%d more difference is in the table.", "%d more differences are in the table.", more)
            else:
                last = ngettext("%d more flaw is in the table.", "%d more flaws are in the table.", more)
            last %= more
            return [*sentences, last] if more else sentences
        count = len(self.known)
        open_ones = sum(row.is_flaw is None for row in self.known)
        if open_ones:
            sentence = _("No flaw was found; %(open)d of %(count)d intervals are too wide to rule one out.")
            return [sentence % {"open": open_ones, "count": count}]
        return [
            ngettext(
                "No flaw was found: %d effect was measured.", "No flaw was found: %d effects were measured.", count
            )
            % count
        ]


def start_address(campaign: Campaign, judge: Judge, action: str, repeats: int = 1) -> str:
    """The form, filled in, that starts what a judge lacks in a campaign; empty where nothing can be started.

    `action`: run, again (pays again), an audit (`judging.forms.CHANGES_OF`, repeats), judges or declare.
    """
    project = campaign.project.slug
    if action in ("judges", "declare"):
        return reverse("judges" if action == "judges" else "judge_new", args=[project])
    if not action or not judge.provider:
        return ""
    if action in ("run", "again", "repeats"):
        query = run_query(campaign.dataset_id, campaign.rubric_version_id, REPEATS if action == "repeats" else repeats)
        return f"{reverse('run_start', args=[project, judge.pk])}?{query}{'&again=yes' if action == 'again' else ''}"
    query = audit_query(judge, campaign.dataset_id, campaign.rubric_version_id, action)
    return f"{reverse('audit_start', args=[project, judge.pk])}?{query}"


class AuditsPage:
    """The audits of one judge, as one answer has them."""

    def __init__(self, campaign: Campaign, snapshot: Snapshot, judge: str) -> None:
        self.campaign, self.snapshot = campaign, snapshot
        self.judges: list[dict[str, Any]] = snapshot.content["judges"]
        self.judge = judge if judge in self.judge_names else self._usual_judge()
        self.thresholds = current_thresholds(campaign.project)
        self.margin = self.thresholds.bias_margin if self.thresholds else USUAL_MARGIN

    def _usual_judge(self) -> str:
        """The first judge of which a score was read, else the first."""
        read = set(with_scores([each["run"] for each in self.judges]))
        return next((each["name"] for each in self.judges if each["run"] in read), next(iter(self.judge_names), ""))

    @property
    def judge_names(self) -> list[str]:
        return [each["name"] for each in self.judges]

    @cached_property
    def declared(self) -> Judge:
        pk = next(each["judge"] for each in self.judges if each["name"] == self.judge)
        return Judge.objects.get(pk=pk)

    @property
    def can_be_asked(self) -> bool:
        return bool(self.declared.provider)

    @cached_property
    def criteria(self) -> dict[str, Any]:
        return {each.key: each for each in self.campaign.rubric_version.criteria.all()}

    @cached_property
    def figures(self) -> list[tuple[str, Figure]]:
        """The statistic as it was asked for, and the figure, of this judge, criterion by criterion."""
        own = [row for row in self.snapshot.content["estimates"] if row.get("judge") == self.judge]
        order = list(self.criteria)
        own.sort(key=lambda row: (order.index(row["criterion"]), row.get("language") or "", row.get("variant") or ""))
        return [(row["asked"], Figure.of(row)) for row in own]

    @property
    def sections(self) -> list[ShownAudit]:
        here = self.campaign, self.declared
        return [
            ShownAudit(audit, tuple(audit.build(self, audit)), start_address(*here, audit.action)) for audit in AUDITS
        ]

    def of(self, asked: str) -> list[Figure]:
        """The figures of one statistic."""
        return [figure for name, figure in self.figures if name == asked]

    # --- rows ---------------------------------------------------------------------------------------------------------
    def effects(self, audit: Audit) -> Iterator[AuditRow]:
        """An effect in points is a flaw where its whole interval lies beyond the margin."""
        for figure in self.of(audit.statistics[0]):
            flaw = self._beyond(figure, figure.low, figure.high)
            yield self._row(figure, "", flaw, str(audit.falls if (figure.value or 0) < 0 else audit.rises))

    def scale_use(self, _audit: Audit) -> Iterator[AuditRow]:
        """A share is a flaw where its interval and that of the panel's share do not meet."""
        own = {(f.criterion, f.language, f.variant): f for f in self.of("audit.scale_use")}
        for (criterion, language, part), figure in own.items():
            if part not in _PARTS:
                if not figure.is_defined:
                    yield self._row(figure, "", None, "")
                continue
            panel = own.get((criterion, language, f"panel_{part}"))
            sentence = _("%(where)s, %(what)s: %(figure)s of its scores; the panel %(beside)s.")
            yield self._row(figure, str(_PARTS[part]), _apart(figure, panel), sentence, panel)

    def rated_items(self, _audit: Audit) -> Iterator[AuditRow]:
        """A difference is a flaw where it is certain after correction; the weighted bias stands beside the score.

        Length and generators are those of the items, whatever the criterion: they are said once a language.
        """
        seen: set[tuple[str, str, str]] = set()
        weighted = {(f.criterion, f.language): f for f in self.of("audit.bias_weighted")}
        for figure in self.of("audit.rated_difference"):
            flaw = figure.is_clear if figure.has_interval else None
            kind, _is, generator = (figure.variant or "").partition(" = ")
            what = f"{_RATED.get(kind, kind)} {generator}".strip()
            is_of_items = kind != "judge score"
            if is_of_items and (figure.language or "", what, figure.number) in seen:
                continue
            seen.add((figure.language or "", what, figure.number))
            sentence = _(
                "%(where)s: the rated items differ in %(what)s by %(figure)s. A figure of them does not speak for all."
            )
            beside = weighted.get((figure.criterion, figure.language)) if kind == "judge score" else None
            row = self._row(figure, what, flaw, sentence, beside)
            if is_of_items:
                whole = language_name(figure.language or "")
                row = replace(row, criterion="–", sentence=row.sentence.replace(f"{row.criterion}, {whole}", whole))
            yield row

    def repeats(self, _audit: Audit) -> Iterator[AuditRow]:
        allowed = self.thresholds.flip_rate if self.thresholds else 0.08
        for figure in self.of("audit.flip_rate"):
            flaw = None if figure.low is None or figure.high is None else figure.low > allowed
            flaw = None if flaw is False and (figure.high or 0) > allowed else flaw
            yield self._row(figure, "", flaw, _("%(where)s: asked again, it changes %(figure)s of its scores."))

    def changes(self, audit: Audit) -> Iterator[AuditRow]:
        stays = {(f.criterion, f.language, f.variant): f for f in self.of("perturbation.stay")}
        for figure in self.of("perturbation.score_drop"):
            if figure.variant is None:
                yield self._row(figure, "", None, "")
            elif change_of(figure.variant).audit == audit.name:
                stay = stays.get((figure.criterion, figure.language, figure.variant))
                what = str(CHANGE_NAMES.get(figure.variant, figure.variant))
                flaw, sentence = self._judged(figure)
                yield self._row(figure, what, flaw, sentence, stay)

    def _judged(self, figure: Figure) -> tuple[bool | None, str]:
        """Whether what a change does to the scores is a flaw, and the sentence for it."""
        expects = change_of(figure.variant or "").expects
        if expects == "fall":
            sentence = _(
                "%(where)s, %(what)s: it hardly reacts. Scores fall by %(figure)s points, less than %(margin)s."
            )
            margin = self._margin(figure)
            if figure.low is None or figure.high is None:
                return None, sentence
            return (True if figure.high < margin else None if figure.low <= 0 else False), sentence
        low, high = figure.low, figure.high
        if expects == "no_rise":
            high = None if high is None else min(high, 0.0)
            low = None if low is None else min(low, 0.0)
        sentence = _("%(where)s, %(what)s: it moves the scores. They fall by %(figure)s points, beyond ±%(margin)s.")
        return self._beyond(figure, low, high), sentence

    def _beyond(self, figure: Figure, low: float | None, high: float | None) -> bool | None:
        """True beyond the margin, False within it, None where the interval reaches over it or there is none."""
        margin = self._margin(figure)
        if low is None or high is None:
            return False if figure.value == 0 else None  # no score moved
        if low > margin or high < -margin:
            return True
        return False if -margin <= low and high <= margin else None

    def _margin(self, figure: Figure) -> float:
        criterion = self.criteria[figure.criterion]
        ends = criterion.values if criterion.points else (criterion.minimum, criterion.maximum)
        return float(self.margin * (max(ends) - min(ends)))

    def _row(
        self, figure: Figure, what: str, flaw: bool | None, sentence: str, beside: Figure | None = None
    ) -> AuditRow:
        criterion = criterion_name(self.criteria[figure.criterion])
        language = language_name(figure.language or "")
        shown = {
            "where": f"{criterion}, {language}",
            "what": what,
            "figure": f"{figure.number} {figure.interval}".strip(),
            "beside": f"{beside.number} {beside.interval}".strip() if beside else "",
            "margin": f"{self._margin(figure):.3g}",
        }
        flaw = flaw if figure.is_defined else None
        return AuditRow(criterion, language, what, figure, beside, flaw, sentence % shown if sentence else "")


_RATED = {
    "judge score": gettext_lazy("the judge’s score"),
    "length": gettext_lazy("length, in doublings"),
    "generator": gettext_lazy("the share of generator"),
}
_PARTS = {
    "top": gettext_lazy("top point"),
    "bottom": gettext_lazy("bottom point"),
    "middle": gettext_lazy("points between"),
}


def _apart(first: Figure, second: Figure | None) -> bool | None:
    """Whether two intervals have no value in common; None without them."""
    if second is None or first.low is None or first.high is None or second.low is None or second.high is None:
        return None
    return first.high < second.low or second.high < first.low


def language_name(tag: str) -> str:
    """A language as pages call it for this reader."""
    return languages.name_for(tag, get_language())


CHANGED = ("perturbation.score_drop", "perturbation.stay")
AUDITS = (
    Audit(
        name="length", title=gettext_lazy("Length"), build=AuditsPage.effects, statistics=("audit.verbosity",),
        about=gettext_lazy("Does the length of a text move its error? Points per doubling."),
        rises=gettext_lazy("%(where)s: it favours long texts. With twice the length its scores rise by %(figure)s "
                           "points against the panel’s, beyond ±%(margin)s."),
        falls=gettext_lazy("%(where)s: it favours short texts. With twice the length its scores move by %(figure)s "
                           "points against the panel’s, beyond ±%(margin)s."),
    ),
    Audit(
        name="self_preference", title=gettext_lazy("Self-preference"), build=AuditsPage.effects,
        statistics=("audit.self_preference",), action="judges",
        about=gettext_lazy("Does it give texts of its own model family more than other judges do? Points."),
        rises=gettext_lazy("%(where)s: it prefers its own family. Its texts get %(figure)s points more than from other "
                           "judges, beyond ±%(margin)s."),
        falls=gettext_lazy("%(where)s: it prefers other families. Texts of its own get %(figure)s points beside other "
                           "judges, beyond ±%(margin)s."),
    ),
    Audit(
        name="scale_use", title=gettext_lazy("Use of the scale"), build=AuditsPage.scale_use,
        statistics=("audit.scale_use",), beside=gettext_lazy("Panel"),
        about=gettext_lazy("Does it give the top, the bottom and the middle points about as often as the panel?"),
    ),
    Audit(
        name="rated_items", title=gettext_lazy("Rated items"), build=AuditsPage.rated_items,
        statistics=("audit.rated_difference", "audit.bias_weighted"),
        about=gettext_lazy("Are the items that people rated like those that only the judge scored? "
                           "Rated less not rated."),
        beside=gettext_lazy("Bias over all items, weighted"),
        outcomes=(gettext_lazy("they differ"), gettext_lazy("no difference found")),
    ),
    Audit(
        name="repeats", title=gettext_lazy("Repeats"), build=AuditsPage.repeats, statistics=("audit.flip_rate",),
        about=gettext_lazy("Does it give the same score when it is asked again?"), action="repeats",
    ),
    Audit(
        name="position", title=gettext_lazy("Position"), build=AuditsPage.changes, statistics=CHANGED,
        about=gettext_lazy("Does the order of criteria or of points move its scores? Points by which they fall."),
        action="position",
    ),
    Audit(
        name="prompt_language", title=gettext_lazy("Language of the prompt"), build=AuditsPage.changes,
        about=gettext_lazy("Do instructions in another language move its scores? Points by which they fall."),
        statistics=CHANGED, action="prompt_language",
    ),
    Audit(
        name="perturbation", title=gettext_lazy("Changed texts"), build=AuditsPage.changes, statistics=CHANGED,
        about=gettext_lazy("Do worse texts lower its scores, and does what must not matter leave them? "
                           "Points of the fall."),
        action="perturbation",
    ),
    Audit(
        name="canaries", title=gettext_lazy("Canaries"), build=AuditsPage.changes, statistics=CHANGED,
        about=gettext_lazy("Does nonsense get lower scores, and can a text ask for a high one? Points of the fall."),
        action="canaries",
    ),
)  # fmt: skip
"""The sections of the page, in their order."""
QUESTION = NumbersQuestion(statistics=tuple(dict.fromkeys(name for audit in AUDITS for name in audit.statistics)))
"""What the page asks; `blind_only` and all else as usual."""


@require_safe
@login_required
@page_cache.cached_page
def judge_audits(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The audits of a judge. The page asks for itself while they are computed."""
    found = shown_campaign(request.user, project, campaign)
    snapshot, is_stale = answer_pages.current_answer(found, QUESTION)
    context: dict[str, Any] = {"project": found.project, "campaign": found, "is_stale": is_stale, "snapshot": snapshot}
    if is_stale:
        tasks.ask_to_compute(campaign=found, settings=QUESTION)
        context |= {
            "job": answer_pages.open_job(found, QUESTION),
            "failed": computing.failed(campaign=found, settings=QUESTION),
        }
    if snapshot is not None:
        page = context["page"] = AuditsPage(found, snapshot, request.GET.get("judge", ""))
        context["position"] = judge_positions(found, page.declared) if page.judges else None
    subtitle = _("Audits measure what moves a judge’s scores. They do not measure whether it agrees with people.")
    return render(request, "analytics/audits.html", {"title": _("Audits"), "subtitle": subtitle, **context})
