"""Thresholds for the use of judges, which a project declares before it sees their figures, in versions.

Also the evidence for decisions: the figures of every judge, criterion and language, and what has changed since.

pandas and scipy are loaded by `decided_cells` alone.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Project, User
from accounts.refusals import Refused
from analytics.models import GateThresholds, Snapshot
from analytics.questions.question import Settings
from analytics.ratings.additions import CHANGED, FAMILY, LENGTH, with_audited
from analytics.ratings.ratings_tables import frame
from annotation.models import Campaign, RubricVersion
from annotation.writers.tables import Table
from judging import judges
from judging.judges import variant_of
from judging.models import Attempt, Call, JudgeRun, Verdict
from judging.perturbation import change_of
from judging.runs import whole_run

if TYPE_CHECKING:
    from analytics.stats.core.estimates import Estimate
    from analytics.stats.core.tables import RatingsTable
    from analytics.stats.judge.copies import CopiedAnnotator
    from analytics.stats.planning.gate import GatedCell, GateFinding, Thresholds

LIMITS: dict[str, tuple[float, float]] = {
    "epsilon": (0.0, 1.0),
    "bias_margin": (0.001, 0.5),
    "flip_rate": (0.0, 1.0),
    "fewest_items": (10, 100_000),
    "alpha_ceiling": (-1.0, 1.0),
    "ac_ceiling": (-1.0, 1.0),
    "omega": (0.01, 1.0),
    "readable": (0.0, 1.0),
    "tau_b": (-1.0, 1.0),
    "tau_b_low": (-1.0, 1.0),
}
"""The lowest and the highest value of each threshold."""
AUDITS = ("verbosity", "self_preference", "perturbation", "sensitivity")
"""The audits that thresholds may require. The last two need an audit run with changed texts; see docs/gate.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSettings(Settings):
    """The settings of a campaign's decisions: the primary key of the current thresholds.

    Ratings by people who could see verdicts are not evidence for a judge.
    """

    blind_only: bool = True
    thresholds: int = 0

    @property
    def described(self) -> dict[str, Any]:
        return {}  # the content names its thresholds itself


def preset_values(preset: str) -> dict[str, Any]:
    """The thresholds of a preset."""
    from analytics.stats.planning.gate import PRESETS

    return {**{name: getattr(PRESETS[preset], name) for name in LIMITS}, "audits": list(PRESETS[preset].audits)}


def current_thresholds(project: Project) -> GateThresholds | None:
    """The current thresholds: the newest version."""
    return GateThresholds.objects.filter(project=project).select_related("declared_by").first()


def figures_since(project: Project) -> datetime | None:
    """The time at which figures of a judge beside the panel were first stored in the project; None if there are no
    figures.
    """
    of_page = Q(content__rated__ratings__gt=0, content__rated__verdicts__gt=0)
    of_question = Q(content__counts__ratings__gt=0, content__counts__verdicts__gt=0)
    shown = Snapshot.objects.filter(of_page | of_question, campaign__project=project)
    return shown.order_by("pk").values_list("created_at", flat=True).first()


def declare_thresholds(
    *, project: Project, preset: str, changes: Mapping[str, float | Sequence[str]] | None = None, actor: User | None
) -> GateThresholds:
    """Declare a new version: the preset's thresholds with changes.

    If nothing differs from the newest version, that version is returned. A refusal has its sentence under the
    threshold's name. The version stores whether a judge's figures could already be read.
    """
    values = _checked({**preset_values(_known_preset(preset)), **(changes or {})}, changes or {})
    newest = current_thresholds(project)
    if newest and newest.preset == preset and all(getattr(newest, name) == value for name, value in values.items()):
        return newest
    changed = [name for name, value in values.items() if newest is None or getattr(newest, name) != value]
    number = newest.number + 1 if newest else 1
    try:
        with transaction.atomic():
            declared = GateThresholds.objects.create(
                project=project,
                number=number,
                preset=preset,
                figures_since=figures_since(project),
                declared_by=actor,
                **values,
            )
            audit.record(actor=actor, project=project, verb="declare thresholds", subject=declared, fields=changed)
    except IntegrityError:
        sentence = _("Somebody else declared thresholds at the same time. Look at theirs first.")
        raise Refused(sentence, code="taken") from None
    return declared


def _known_preset(preset: str) -> str:
    if preset not in GateThresholds.Preset.values:
        known = ", ".join(GateThresholds.Preset.values)
        sentence = _("“%(given)s” is no preset. There are: %(all)s.") % {"given": preset, "all": known}
        raise Refused(sentence, code="unknown_choice", fields={"preset": sentence})
    return preset


def _checked(values: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    problems: dict[str, str] = {}
    if unknown := sorted(set(given) - {*LIMITS, "audits"}):
        known = {"name": unknown[0], "all": ", ".join((*LIMITS, "audits"))}
        problems[unknown[0]] = _("There is no threshold “%(name)s”. There are: %(all)s.") % known
    for name, (low, high) in LIMITS.items():
        if not (isinstance(values[name], int | float) and low <= values[name] <= high):
            problems[name] = _("This is a number from %(low)g to %(high)g.") % {"low": low, "high": high}
    if not problems and values["tau_b_low"] > values["tau_b"]:
        problems["tau_b_low"] = _("The lower bound can’t be above the value itself.")
    if strangers := [name for name in values["audits"] if name not in AUDITS]:
        known = {"name": strangers[0], "all": ", ".join(AUDITS)}
        problems["audits"] = _("There is no audit “%(name)s”. There are: %(all)s.") % known
    if problems:
        raise Refused(next(iter(problems.values())), code="unknown_choice", fields=problems)
    kept = {name: values[name] for name in LIMITS}
    kept["fewest_items"] = int(kept["fewest_items"])
    return {**kept, "audits": sorted(set(values["audits"]), key=AUDITS.index)}


# --- evidence: the figures of every judge, criterion and language, and what has changed since ------------------------
FIGURE = (
    "statistic", "variant", "level", "value", "low", "high", "confidence", "method", "n_items", "n_clusters",
    "n_raters", "n_ratings", "reason", "interval_reason",
)  # fmt: skip
"""The fields that are stored of an estimate."""


# --- what has changed since the judge was run ------------------------------------------------------------------------
def judge_changes(campaign: Campaign, run: JudgeRun) -> list[dict[str, str]]:
    """Why the figures of a run are no longer valid for the judge.

    `code` is rubric, prompt, served or mixed; `before` and `now` are the old and the new value.
    """
    changes = []
    newest = _newest_rubric(campaign)
    if newest > campaign.rubric_version.number:
        changes.append({"code": "rubric", "before": str(campaign.rubric_version.number), "now": str(newest)})
    if _has_other_prompt(run):
        changes.append({"code": "prompt", "before": "", "now": ""})
    # The models that gave the verdicts of a run, as the endpoint calls them.
    replied = Attempt.objects.filter(call__run__in=whole_run([run]))
    served = sorted(set(replied.exclude(served_model="").order_by().values_list("served_model", flat=True).distinct()))
    last = _last_served(run)
    if len(served) > 1:
        changes.append({"code": "mixed", "before": ", ".join(served), "now": ""})
    elif served and last and last not in served:
        changes.append({"code": "served", "before": served[0], "now": last})
    return changes


def changes_digest(campaign: Campaign, runs: Sequence[JudgeRun]) -> str:
    """A digest that differs whenever the result of `judge_changes` or `failed_calls` could differ for a run."""
    of_runs = ([run.pk, _has_other_prompt(run), _last_served(run), _without_verdict(run).count()] for run in runs)
    facts = [_newest_rubric(campaign), *of_runs]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


def _newest_rubric(campaign: Campaign) -> int:
    published = RubricVersion.objects.published().filter(rubric=campaign.rubric_version.rubric_id)
    return max(published.values_list("number", flat=True), default=0)


def _has_other_prompt(run: JudgeRun) -> bool:
    """Whether the wording of our prompt templates has changed since the judge was declared.

    Imported judges have no template.
    """
    judge = run.judge
    if not judge.provider:
        return False
    try:
        variant = variant_of(judge.variant)
    except Refused:
        return True
    ours = {"endpoint": judge.provider, "model": judge.model, "variant": variant, "parameters": judge.parameters}
    return judges.judge_digest(**ours) != judge.digest


def _last_served(run: JudgeRun) -> str:
    """The model that answered the judge's newest request, in any run.

    Replies that are used again do not count, because no request was sent for them.
    """
    sent = Attempt.objects.filter(call__run__judge=run.judge_id).exclude(outcome=Attempt.Outcome.REUSED)
    served = sent.exclude(served_model="").order_by("-at", "-pk")
    return served.values_list("served_model", flat=True).first() or ""


def _without_verdict(run: JudgeRun) -> QuerySet[Call]:
    """The failed calls of a run, and of those that it continues, that have no verdict in the table."""
    of_item = Verdict.objects.filter(run=OuterRef("run"), item=OuterRef("item"), repeat=OuterRef("repeat"))
    of_criterion = of_item.filter(criterion=OuterRef("criterion"))
    has_verdict = Q(Exists(of_criterion)) | Q(Exists(of_item), criterion=None)
    return Call.objects.filter(run__in=whole_run([run]), state=Call.State.FAILED).exclude(has_verdict)


def failed_calls(campaign: Campaign, run: JudgeRun) -> dict[tuple[str | None, str | None], int]:
    """By criterion and language, the number of failed calls of a run.

    A call about all criteria counts for every criterion.
    """
    every = list(campaign.rubric_version.criteria.values_list("key", flat=True))
    counted: Counter[tuple[str | None, str | None]] = Counter()
    counts = _without_verdict(run).values_list("criterion__key", "item__language").annotate(Count("pk"))
    for criterion, language, number in counts.order_by():
        counted.update(
            dict.fromkeys(((key, language or None) for key in ([criterion] if criterion else every)), number)
        )
    return dict(counted)


def failed_items(run: JudgeRun) -> set[tuple[str | None, str]]:
    """Criterion (None: all of them) and item of the calls of a run that failed and have no verdict."""
    return set(_without_verdict(run).values_list("criterion__key", "item__external_id"))


# --- decisions from a ratings table ----------------------------------------------------------------------------------
def decided_cells(
    campaign: Campaign,
    found: Table,
    runs: Sequence[JudgeRun],
    names: Mapping[int, str],
    settings: GateSettings,
    progress: Callable[[int, int], None],
) -> dict[str, Any]:
    """The decision of every judge in every criterion and language as plain values, with the figures that it uses."""
    from analytics.stats.core.validation import ratings_table
    from analytics.stats.judge.soundness import judge_families
    from analytics.stats.planning.gate import gated_cells

    declared = GateThresholds.objects.get(pk=settings.thresholds)
    thresholds = _as_declared(declared)
    audited = with_audited(found, campaign, runs, names, (LENGTH, FAMILY, CHANGED))
    table = ratings_table(frame(audited), scales=campaign.rubric_version.scales)
    known = set(table.frame["rater"].unique())
    decided: list[dict[str, Any]] = []
    for done, run in enumerate(runs):
        progress(done, len(runs))
        changes = judge_changes(campaign, run)
        about = {"judge": names[run.pk], "judge_id": run.judge_id, "run": run.pk, "repeats": run.repeats}
        if names[run.pk] not in known:
            continue
        gated = gated_cells(
            table, thresholds, judge=names[run.pk], length=LENGTH,
            families=judge_families(table), expects=expected_effects(table),
            bootstrap=settings.bootstrap, seed=settings.seed,
            stale_because=", ".join(change["code"] for change in changes) or None,
            failed_calls=failed_calls(campaign, run),
        )  # fmt: skip
        failed = failed_items(run)
        decided += [
            {**about, **_plain_cell(each, thresholds), "unscored": _unscored(each, failed), "changes": changes}
            for each in gated
        ]
    progress(len(runs), len(runs))
    return {"gate": {"thresholds": declared.pk, "number": declared.number}, "decisions": decided}


def expected_effects(table: RatingsTable) -> dict[str, str]:
    """By kind of changed text, the expected effect on the scores of a sound judge: fall, same or no_rise."""
    known = {key for text in table.frame[CHANGED].unique() if text for key in json.loads(text)}
    return {key: change_of(key).expects for key in sorted(known)}


def _as_declared(declared: GateThresholds) -> Thresholds:
    from analytics.stats.planning.gate import Thresholds

    values = {name: getattr(declared, name) for name in LIMITS}
    return Thresholds(version=f"{declared.preset}-{declared.number}", audits=tuple(declared.audits), **values)


def _plain_cell(gated: GatedCell, thresholds: Thresholds) -> dict[str, Any]:
    """One decision. `otherwise`: the decision if nothing had changed since the run."""
    from analytics.stats.planning.gate import FEWEST_GENERATORS, decide

    evidence, verdict = gated.evidence, gated.verdict
    otherwise = decide(replace(evidence, stale_because=None), thresholds).decision
    return {
        "criterion": gated.cell["criterion"],
        "language": gated.cell["language"] or "",
        "decision": str(verdict.decision),
        **({"otherwise": str(otherwise)} if evidence.stale_because else {}),
        **gated.counts,
        "n_single": evidence.n_single,
        "n_unrated": evidence.n_unrated,
        "n_generators": evidence.n_generators,
        "fewest_generators": FEWEST_GENERATORS,
        "margin": thresholds.bias_margin * evidence.scale_width,
        **({"copied": _plain_copy(evidence.copied)} if evidence.copied else {}),
        "findings": [_plain_finding(finding) for finding in (*verdict.findings, *verdict.others)],
    }


def _plain_copy(copied: CopiedAnnotator) -> dict[str, Any]:
    return {"annotator": copied.annotator, "n_same": copied.n_same, "n_items": copied.n_items, "others": copied.others}


def _unscored(gated: GatedCell, failed: Collection[tuple[str | None, str]]) -> dict[str, int]:
    """How many items with two raters have no score by the judge, by reason: the reason in its verdict, failed, or
    not_asked.
    """
    from analytics.stats.judge.soundness import NO_ROW

    counted: Counter[str] = Counter()
    for reason, items in gated.unscored.items():
        for item in items:
            has_failed = (gated.cell["criterion"], item) in failed or (None, item) in failed
            counted[reason if reason != NO_ROW else "failed" if has_failed else "not_asked"] += 1
    return dict(counted)


def _plain_finding(finding: GateFinding) -> dict[str, Any]:
    from analytics.stats.planning.gate import MOST_FURTHER_ITEMS

    return {
        "name": finding.name,
        "holds": bool(finding.holds),
        "prevents": bool(finding.prevents),
        "measured": finding.measured,
        "certain": bool(finding.is_certain),
        "replies": finding.more_replies,
        "gap": finding.gap,
        "more": finding.more_labels,
        "too_many": MOST_FURTHER_ITEMS if finding.too_many else None,
        "figures": [_plain_figure(estimate) for estimate in finding.estimates],
    }


def _plain_figure(estimate: Estimate) -> dict[str, Any]:
    values = {name: getattr(estimate, name) for name in FIGURE}
    return {name: value for name, value in values.items() if value is not None}
