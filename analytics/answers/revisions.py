"""Revisions: a text that changes whenever the input of a campaign's figures changes. Also finds the campaigns that have
changed since they were last marked as current.

Figures are stored under the revision of their campaign and the version of the code: they are stale if one of these
differs now; no flag is stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence

from django import conf
from django.core.cache import caches
from django.db.models import CharField, Count, Expression, Max, OuterRef, Q, Subquery, Value
from django.db.models.functions import Cast, Coalesce, Concat

from analytics.judges import thresholds
from analytics.models import GateThresholds
from analytics.questions.plan import chosen_runs
from analytics.questions.question import DEFAULT_SETTINGS, NumbersQuestion, Settings
from analytics.questions.reference_rules import ADJUDICATED
from analytics.ratings.dialogue_faults import dialogue_faults
from analytics.ratings.exclusions import below_controls
from analytics.ratings.raters import audit_runs, newest_runs
from annotation import adjudication, campaigns
from annotation.models import Annotation, Campaign, Rating, RubricVersion
from judging.models import Call, JudgeRun, Verdict
from judging.runs import run_revision, whole_run

LAYOUT = 18
"""Raise it whenever the shape of `Snapshot.content`, its charts, the choice of statistics, the columns of the ratings
table or the way a figure is computed change: stored figures are then computed again."""
REVISIONS_KEPT = 86_400  # seconds


def snapshot_revision(
    campaign: Campaign, settings: Settings = DEFAULT_SETTINGS, runs: Sequence[JudgeRun] | None = None
) -> str:
    """Changes with every annotation and verdict that enters or leaves the ratings table, and with the dataset.

    `runs`: the result of `chosen_runs`, if the caller has it already.
    """
    question = settings if isinstance(settings, NumbersQuestion) else None
    statistics = set(question.statistics) if question else set()
    found = whole_run(chosen_runs(campaign, settings) if runs is None else runs)
    chosen = f"{campaign.dataset_id}:{','.join(map(str, sorted(run.pk for run in found)))}"
    digest = hashlib.sha256(chosen.encode()).hexdigest()[:12]
    revision = f"{campaigns.revision(campaign)} {run_revision(found)} {digest}"
    if question and question.reference in ADJUDICATED:
        revision += f" {adjudication.adjudication_revision(campaign)}"
    if isinstance(settings, thresholds.GateSettings) or any(name.startswith("perturbation.") for name in statistics):
        revision += f" {run_revision(audit_runs(campaign))}"
    if statistics & {"rationale_share", "rationale_length"}:  # rationales may be erased
        here = Rating.objects.filter(annotation__campaign=campaign, annotation__superseded_at=None)
        revision += f" {here.exclude(rationale='').count()}"
    if any(name.startswith("survival.") for name in statistics):
        revision += f" {joint_digest([json.dumps(sorted(dialogue_faults(campaign).items())).encode()])[:12]}"
    if question and "controls" in question.exclude:
        # A digest, because all names would be too long for the column.
        below = json.dumps(sorted(below_controls(campaign)))
        revision += f" {joint_digest([below.encode()])[:12]}"
    if isinstance(settings, thresholds.GateSettings):  # a decision depends on what changed since the judge was run, too
        return f"{revision} {thresholds.changes_digest(campaign, list(newest_runs(campaign)))}"
    return revision


def code_version() -> str:
    """The release and the version of the layout of stored figures (`LAYOUT`)."""
    return f"{conf.settings.VERSION}/{LAYOUT}"


def settings_identity(settings: Settings) -> dict[str, str]:
    return {"settings_digest": settings.digest, "code_version": code_version()}


def campaign_revisions(campaign_pks: Collection[int], settings: Settings = DEFAULT_SETTINGS) -> dict[int, str]:
    """The revision of each campaign under the default settings or those of decisions; cached until one of its inputs
    changes."""
    if not campaign_pks:
        return {}
    wanted = Campaign.objects.filter(pk__in=campaign_pks).select_related("dataset")
    found = wanted.annotate(mark=Concat(*_marks()), newest_rubric=_newest_rubric())
    about = f"{code_version()} {settings.digest}"
    marks = {each: f"{each.dataset_id} {each.mark} {each.newest_rubric} {about}" for each in found}
    names = {f"numbers-revision:{each.pk}:{joint_digest([mark.encode()])}": each for each, mark in marks.items()}
    kept = caches["content"].get_many(list(names))
    new = {name: snapshot_revision(campaign, settings) for name, campaign in names.items() if name not in kept}
    if new:
        caches["content"].set_many(new, REVISIONS_KEPT)
    return {campaign.pk: (kept | new)[name] for name, campaign in names.items()}


def to_be_polled() -> list[Campaign]:
    """The open campaigns of projects in use that have changed since `mark_as_current` was called; one SQL statement.

    A closed campaign is never polled. If a judge has run since then, its numbers are computed again when somebody opens
    their page.
    """
    found = Campaign.objects.filter(project__archived_at=None).exclude(state=Campaign.State.CLOSED)
    # What else makes decisions about judges stale: the newest published version of the rubric, and the thresholds.
    declared = GateThresholds.objects.filter(project=OuterRef("project"))
    open_ones = list(
        found.select_related("dataset").annotate(
            mark=Concat(*_marks()),
            newest_rubric=_newest_rubric(),
            newest_thresholds=Subquery(declared.order_by("-number").values("number")[:1]),
        )
    )
    for campaign in open_ones:
        campaign.mark += f"{campaign.newest_rubric} {campaign.newest_thresholds}"
    noted = caches["content"].get_many([_current_key(campaign) for campaign in open_ones])
    return [campaign for campaign in open_ones if noted.get(_current_key(campaign)) != campaign.mark]


def mark_as_current(campaign: Campaign) -> None:
    """Remember that the numbers of a campaign from `to_be_polled` are current, in the state in which it was read."""
    caches["content"].set(_current_key(campaign), campaign.mark, None)  # type: ignore[attr-defined]


def _newest_rubric() -> Subquery:
    """The number of the newest published version of a campaign's rubric."""
    rubrics = RubricVersion.objects.published().filter(rubric=OuterRef("rubric_version__rubric"))
    return Subquery(rubrics.order_by("-number").values("number")[:1])


def _marks() -> Iterator[Expression]:
    """Counts that change whenever `snapshot_revision` may: of annotations, verdicts, judge runs and open calls."""
    of_rubric = {"project": OuterRef("project"), "rubric_version": OuterRef("rubric_version")}
    of_runs = {f"run__{name}": value for name, value in of_rubric.items()}
    is_open = Q(state__in=[Call.State.WAITING, Call.State.LEASED])
    cancelled = Count("pk", filter=Q(state=JudgeRun.State.CANCELLED))
    for rows, by, counts in (
        (Annotation.objects.filter(campaign=OuterRef("pk")), "campaign", (Count("superseded_at"),)),
        (Verdict.objects.filter(**of_runs), "run__rubric_version", ()),
        (JudgeRun.objects.filter(**of_rubric), "rubric_version", (cancelled,)),
        (Call.objects.filter(is_open, **of_runs), "run__rubric_version", ()),
    ):
        texts = (Cast(each, CharField()) for each in (Count("pk"), Max("pk"), *counts))
        spaced = [part for text in texts for part in (text, Value(":"))]
        marked = rows.order_by().values(by).annotate(mark=Concat(*spaced)).values("mark")
        yield Coalesce(Subquery(marked), Value("0"), output_field=CharField())
        yield Value(" ")


def _current_key(campaign: Campaign) -> str:
    return f"numbers-current:{campaign.pk}:{code_version()}"


def joint_digest(pieces: Iterable[bytes]) -> str:
    """The SHA-256 of pieces of bytes, one after the other."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()
