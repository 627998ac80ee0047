"""What judges may be used for in a campaign: the current decisions, the time of each, and the reasons for changes.

Page, API, command, client and webhook all read `current_decisions`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts import webhooks
from accounts.models import Event, Job
from accounts.refusals import Refused
from analytics.answers import revisions, snapshots
from analytics.judges.reasons import CellDecision, stands_against
from analytics.judges.thresholds import GateSettings, current_thresholds
from analytics.models import Computation, GateDecision, GateThresholds, Snapshot
from annotation.models import Campaign

Use = GateDecision.Use
ORDER = (
    Use.JUDGE_ALONE, Use.JUDGE_WITH_CORRECTION, Use.RANKING_ONLY, Use.HUMANS_ONLY, Use.INSUFFICIENT, Use.RUBRIC_PROBLEM,
    Use.STALE,
)  # fmt: skip
"""From the widest use to no use, then the reasons for which there is no decision yet."""
MOST_ANNOUNCED = 100
"""The maximum number of changes that one webhook event names; `count` is the number of all changes."""


@dataclass(frozen=True)
class CampaignDecisions:
    """Every decision of a campaign. `snapshot` and `cells` are None and empty until they are computed."""

    thresholds: GateThresholds
    snapshot: Snapshot | None
    is_stale: bool
    cells: tuple[CellDecision, ...]

    @property
    def judges(self) -> list[str]:
        return list(dict.fromkeys(cell.row["judge"] for cell in self.cells))

    def of_judge(self, judge: str) -> list[CellDecision]:
        return [cell for cell in self.cells if cell.row["judge"] == judge]

    @property
    def summaries(self) -> list[tuple[str, list[tuple[GateDecision.Use, int]]]]:
        """Every judge with its summary."""
        return [(judge, self.summary(judge)) for judge in self.judges]

    def summary(self, judge: str) -> list[tuple[GateDecision.Use, int]]:
        """How many criteria and languages have each decision, from the widest use."""
        counted = Counter(cell.use for cell in self.of_judge(judge))
        return [(use, counted[use]) for use in ORDER if counted[use]]


def current_decisions(campaign: Campaign) -> CampaignDecisions | None:
    """The newest stored decisions, and whether they must be computed again; None without thresholds."""
    thresholds = current_thresholds(campaign.project)
    if thresholds is None:
        return None
    snapshot, is_stale = snapshots.current_snapshot(campaign=campaign, settings=settings_of(thresholds))
    return _decisions(thresholds, snapshot, is_stale)


def decide_now(campaign: Campaign) -> CampaignDecisions:
    """The current decisions, computed now if they are not stored.

    Refused without thresholds, or if the ratings can't be used.
    """
    from analytics.stats.core.tables import TableError

    thresholds = current_thresholds(campaign.project)
    if thresholds is None:
        raise Refused(
            _("No thresholds are declared. A lead declares them in the project’s settings first."), code="no_thresholds"
        )
    try:
        snapshot = snapshots.snapshot(campaign=campaign, settings=settings_of(thresholds))
    except TableError as error:
        raise Refused(str(error), code="unusable_ratings") from None
    record_changes(snapshot)
    return _decisions(thresholds, snapshot, is_stale=False)


def settings_of(thresholds: GateThresholds) -> GateSettings:
    return GateSettings(thresholds=thresholds.pk)


def _decisions(thresholds: GateThresholds, snapshot: Snapshot | None, is_stale: bool) -> CampaignDecisions:
    rows = snapshot.content["decisions"] if snapshot else []
    return CampaignDecisions(thresholds, snapshot, is_stale, tuple(CellDecision(row, thresholds) for row in rows))


def to_be_decided(campaign: Campaign) -> GateSettings | None:
    """The settings for computing the decisions again, or for recording stored decisions in the history.

    None if nothing changed or if no decisions are requested.
    """
    thresholds = current_thresholds(campaign.project)
    if thresholds is None:
        return None
    settings = settings_of(thresholds)
    snapshot, is_stale = snapshots.current_snapshot(campaign=campaign, settings=settings)
    return settings if is_stale or snapshot is None or _changed_rows(snapshot, latest_decisions(campaign)) else None


def open_decision_job(campaign: Campaign, thresholds: GateThresholds) -> Job | None:
    """The job that is computing the decisions, with how far it is."""
    waiting = Computation.objects.filter(campaign=campaign, job__state__in=Job.OPEN).select_related("job")
    computation = waiting.filter(settings_digest=settings_of(thresholds).digest).first()
    return computation.job if computation else None


# --- history ---------------------------------------------------------------------------------------------------------
def record_changes(snapshot: Snapshot) -> list[GateDecision]:
    """Record the decisions that differ from the previous decisions, and announce them.

    Nothing changes if the snapshot was recorded before, or has an earlier state or earlier thresholds: a slow worker
    may finish after a newer snapshot is recorded.
    """
    thresholds = GateThresholds.objects.get(pk=snapshot.content["gate"]["thresholds"])
    with transaction.atomic():
        locked = Campaign.objects.select_for_update(no_key=True, of=("self",))
        campaign = locked.select_related("project", "dataset", "rubric_version").get(pk=snapshot.campaign_id)
        if not _is_current(snapshot, thresholds, campaign):
            return []
        former = latest_decisions(campaign)
        changed = [
            GateDecision(
                campaign=campaign,
                judge_id=row["judge_id"],
                criterion=row["criterion"],
                language=row["language"],
                decision=row["decision"],
                former=before.decision if (before := former.get(_cell_key(row))) else "",
                thresholds=thresholds,
                facts=facts_of(row),
            )
            for row in _changed_rows(snapshot, former)
        ]
        GateDecision.objects.bulk_create(changed)
        if changed:
            webhooks.announce(
                project=campaign.project_id,
                event=Event.DECISION,
                subject=campaign.pk,
                payload=_payload(campaign, changed),
            )
    return changed


def _is_current(snapshot: Snapshot, thresholds: GateThresholds, campaign: Campaign) -> bool:
    """Whether a snapshot has the decisions of the campaign's current state, under the current thresholds."""
    if current_thresholds(campaign.project) != thresholds:
        return False
    return snapshot.revision == revisions.snapshot_revision(campaign, settings_of(thresholds))


def _changed_rows(snapshot: Snapshot, former: Mapping[tuple[int, str, str], GateDecision]) -> list[dict[str, Any]]:
    """The rows with a decision that differs from the last recorded decision."""
    return [
        row
        for row in snapshot.content["decisions"]
        if (before := former.get(_cell_key(row))) is None or before.decision != row["decision"]
    ]


def latest_decisions(campaign: Campaign) -> dict[tuple[int, str, str], GateDecision]:
    """The newest recorded decision by judge, criterion and language."""
    kept = GateDecision.objects.filter(campaign=campaign).order_by("pk")
    return {(row.judge_id, row.criterion, row.language): row for row in kept}


def _cell_key(row: Mapping[str, Any]) -> tuple[int, str, str]:
    return row["judge_id"], row["criterion"], row["language"]


def facts_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The facts stored with a decision, to explain later why the next decision differs: items, raters, run, what
    failed, changes.
    """
    failed = [each["name"] for each in row["findings"] if each["measured"] and stands_against(each)]
    return {
        "n_items": row["n_items"],
        "n_raters": row["n_raters"],
        "run": row["run"],
        "failed": failed,
        "changes": [change["code"] for change in row["changes"]],
    }


def _payload(campaign: Campaign, changed: list[GateDecision]) -> dict[str, Any]:
    changes = [
        {
            "judge": each.judge_id,
            "criterion": each.criterion,
            "language": each.language,
            "decision": each.decision,
            "former": each.former or None,
        }
        for each in changed[:MOST_ANNOUNCED]
    ]
    return {"campaign": campaign.pk, "count": len(changed), "changes": changes}


@dataclass(frozen=True, slots=True)
class DecisionChange:
    """One entry of the history: the old decision, the new decision, and the reason in words."""

    kept: GateDecision
    why: str

    @property
    def use(self) -> GateDecision.Use:
        return Use(self.kept.decision)

    @property
    def former(self) -> str:
        return str(Use(self.kept.former).label) if self.kept.former else ""


def decision_history(campaign: Campaign, judge: int | None = None) -> list[DecisionChange]:
    """The changes of a campaign's decisions, newest first, each with its reason."""
    rows: QuerySet[GateDecision] = GateDecision.objects.filter(campaign=campaign).select_related("thresholds", "judge")
    return list(_explained(rows if judge is None else rows.filter(judge=judge)))


def _explained(rows: Iterable[GateDecision]) -> list[DecisionChange]:
    before: dict[tuple[int, str, str], GateDecision] = {}
    changes = []
    for row in sorted(rows, key=lambda each: each.pk):
        key = (row.judge_id, row.criterion, row.language)
        changes.append(DecisionChange(row, _why_changed(row, before.get(key))))
        before[key] = row
    return changes[::-1]


def _why_changed(row: GateDecision, former: GateDecision | None) -> str:
    if former is None:
        return _("First decision.")
    old, new = former.facts, row.facts
    reasons = []
    if row.thresholds_id != former.thresholds_id:
        reasons.append(_("The thresholds changed."))
    if new["changes"] != old["changes"]:
        reasons.append(
            _("Judge, prompt, rubric or model changed.")
            if new["changes"]
            else _("What had to be measured again was measured.")
        )
    if new["run"] != old["run"]:
        reasons.append(_("Another run of the judge counts."))
    if new["n_items"] != old["n_items"]:
        counts = {"before": old["n_items"], "now": new["n_items"]}
        reasons.append(_("Items with two raters: %(before)d before, %(now)d now.") % counts)
    return " ".join(reasons) or _("Ratings or verdicts changed.")
