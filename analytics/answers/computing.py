"""Compute a campaign's numbers as jobs, with one open job per campaign. While one is open, no other is begun.

A computation that failed delays the next one with the same settings, longer each time. One whose worker died counts as
failed. One that was cancelled delays the next for an hour.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any, cast
from urllib.parse import urlencode

from celery.exceptions import SoftTimeLimitExceeded
from django.core.cache import caches
from django.db import transaction
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext_lazy

from accounts import jobs
from accounts.jobs import JobHeartbeat, JobKind
from accounts.models import Job
from accounts.refusals import Refused
from analytics.answers import numbers_content, revisions, snapshots
from analytics.judges import decisions
from analytics.judges.thresholds import GateSettings
from analytics.models import Computation
from analytics.questions.asked import question_of
from analytics.questions.question import DEFAULT_SETTINGS, NumbersQuestion, Settings
from analytics.ratings.rating_rows import COLUMNS, Row
from annotation.models import Campaign
from annotation.writers.tables import Table

logger = logging.getLogger(__name__)

LONGEST = 3000  # seconds; millions of rows on a busy machine
SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=6)
CANCELLED_PAUSE = timedelta(hours=1)
MOST_DETAIL = 400
HELD_UP_SECONDS = 10
_HELD_UP = "a-page-is-held-up"


# --- asking for one -------------------------------------------------------------------------------------------------
def begin_computation(*, campaign: Campaign, settings: Settings) -> Computation | None:
    """A computation with its waiting job, which the caller enqueues; None while one of the campaign is open, or these
    numbers have to wait.
    """
    if not may_begin(campaign_pk=campaign.pk, settings=settings):
        return None
    with transaction.atomic():
        Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)  # of two that begin the second waits
        if not may_begin(campaign_pk=campaign.pk, settings=settings):
            return None
        asked = _asked(settings)
        computation, _is_new = Computation.objects.get_or_create(campaign=campaign, **_identity(settings))
        tries = computation.tries + 1
        state = {"asked": asked, "tries": tries, "next_at": timezone.now() + pause(tries)}
        Computation.objects.filter(pk=computation.pk).update(**state, reason=Computation.Reason.ENDED, detail="")
        project = campaign.project
        jobs.begin(kind=Job.Kind.NUMBERS, subject=computation, project=project, owner=None, delete_former=True)
    return computation


def may_begin(*, campaign_pk: int, settings: Settings) -> bool:
    """Whether nothing of the campaign is being computed, and these numbers need not wait."""
    waits = Q(**_identity(settings), next_at__gt=timezone.now())
    return not Computation.objects.filter(Q(job__state__in=Job.OPEN) | waits, campaign=campaign_pk).exists()


def is_any_open() -> bool:
    """Whether numbers of any campaign wait for a worker or are being computed."""
    return Computation.objects.filter(job__state__in=Job.OPEN).exists()


def note_if_held_up(*, campaign_pk: int, settings: Settings) -> None:
    """Note that a page asks for numbers that can't be begun only because others of the campaign are being computed."""
    computations = Computation.objects.filter(campaign=campaign_pk)
    its_own = computations.filter(Q(job__state__in=Job.OPEN) | Q(next_at__gt=timezone.now()), **_identity(settings))
    if computations.filter(job__state__in=Job.OPEN).exists() and not its_own.exists():
        caches["content"].set(_HELD_UP, True, HELD_UP_SECONDS)


def is_a_page_held_up() -> bool:
    """Whether that was noted in the last `HELD_UP_SECONDS`. Such a page asks again every two seconds."""
    return caches["content"].get(_HELD_UP) is not None


def failed(*, campaign: Campaign, settings: Settings) -> Computation | None:
    """The last try at these numbers where it failed."""
    computations = Computation.objects.filter(campaign=campaign, **_identity(settings))
    return computations.exclude(job__state__in=Job.OPEN).first()


def pause(tries: int) -> timedelta:
    """How long to wait after so many tries: twice as long after each, six hours at most."""
    return min(LONGEST_PAUSE, SHORTEST_PAUSE * (1 << min(tries - 1, 20)))


def _identity(settings: Settings) -> dict[str, Any]:
    return {"settings_digest": settings.digest, "code_version": revisions.code_version()}


# --- doing it -------------------------------------------------------------------------------------------------------
def carry_out_computation(*, computation_pk: int) -> None:
    """Compute the numbers, unless somebody else does or did; one that fails says why on the page."""
    rows = Computation.objects.select_related("campaign__rubric_version", "campaign__dataset")
    computation = rows.filter(pk=computation_pk).first()
    if computation is None or (job := jobs.take_job(computation, Job.Kind.NUMBERS)) is None:
        return
    try:
        with JobHeartbeat(job) as heartbeat:
            settings = _settings(computation.asked)
            stored = snapshots.snapshot(campaign=computation.campaign, settings=settings, progress=heartbeat.tell)
            if isinstance(settings, GateSettings):
                decisions.record_changes(stored)
    except Refused as refused:  # cancelled, or in the hands of another worker: then this changes nothing
        _fail(computation, Computation.Reason.FAULT, refused.sentence)
    except Exception as error:
        logger.exception("the numbers of campaign %s can't be computed", computation.campaign_id)
        _fail(computation, *_why(error))
    else:
        _finish(computation, heartbeat)


def _why(error: Exception) -> tuple[Computation.Reason, str]:
    from analytics.stats.core.tables import TableError

    if isinstance(error, SoftTimeLimitExceeded):
        return Computation.Reason.LONG, str(LONGEST // 60)
    if isinstance(error, TableError):
        return Computation.Reason.TABLE, str(error)
    return Computation.Reason.FAULT, f"{type(error).__name__}: {error}"


def _finish(computation: Computation, heartbeat: JobHeartbeat) -> None:
    """The numbers are stored: the computation is deleted, and its job finished, if this worker still has it."""
    job = cast(Job, computation.job)
    with transaction.atomic():
        Computation.objects.filter(pk=computation.pk, job=job).delete()
        if not jobs.finish_job(job, done=heartbeat.done, total=heartbeat.total):
            transaction.set_rollback(True)


def _fail(computation: Computation, reason: Computation.Reason, detail: str) -> None:
    """Say why on the computation and its job, and put off the next try, if this worker still has it."""
    with transaction.atomic():
        _ended(computation, reason, detail, wait=pause(computation.tries))
        computation.reason, computation.detail = reason, detail[:MOST_DETAIL]
        if not jobs.fail(cast(Job, computation.job), computation.sentence):
            transaction.set_rollback(True)


def _ended(computation: Computation, reason: Computation.Reason, detail: str, *, wait: timedelta) -> bool:
    changes = {"reason": reason, "detail": detail[:MOST_DETAIL], "next_at": timezone.now() + wait}
    return bool(Computation.objects.filter(pk=computation.pk).update(**changes))


def _asked(settings: Settings) -> dict[str, Any]:
    """What a computation keeps of its settings: a question by its query string."""
    if isinstance(settings, NumbersQuestion):
        return {"question": settings.query}
    if isinstance(settings, GateSettings):
        return {"thresholds": settings.thresholds}
    return {"raters": list(settings.raters), "blind_only": settings.blind_only, "reference": settings.reference}


def _settings(asked: dict[str, Any]) -> Settings:
    if "question" in asked:
        return question_of(asked["question"])
    if "thresholds" in asked:
        return GateSettings(thresholds=asked["thresholds"])
    return Settings(**{**asked, "raters": tuple(asked["raters"])})


# --- before the first one -------------------------------------------------------------------------------------------
def load_statistics() -> None:
    """Load pandas, scipy, our statistics and the renderer of charts, by computing the figures of three made items.

    The first computation of a process then takes no longer than the next ones. Nothing is read or stored.
    """
    from analytics import charts
    from analytics.stats.core.scales import scale_of

    scores = [(item, rater, float((item + rater) % 3)) for item in range(3) for rater in range(3)]
    made = [_made_rating(f"item {item}", ("one", "two", "judge")[rater], score) for item, rater, score in scores]
    table = Table("made", COLUMNS, made)
    content = numbers_content.measured_content(table, DEFAULT_SETTINGS, scales={"*": scale_of(range(3))})
    charts.bias(content | {"judges": [{"name": "judge"}]})


def _made_rating(item: str, rater: str, score: float) -> Row:
    kind = "judge" if rater == "judge" else "annotator"
    return Row(
        item=item,
        cluster=item,
        criterion="criterion",
        rater=rater,
        rater_kind=kind,
        rater_identified=True,
        panel=None,
        language="en",
        generator="generator",
        score=score,
        applicable=True,
        missing_reason=None,
        repeat=0,
        inclusion_prob=1.0,
        weight=1.0,
        blind=None,
        level="ordinal",
        scale=[0.0, 1.0, 2.0],
        score_label="",
        scenario=None,
        dataset="made",
        dataset_version=1,
        rubric_version=1,
        duty=None,
        seconds=None,
        rationale_length=0,
    )


# --- what jobs have to know -----------------------------------------------------------------------------------------
def _address(computation: Computation) -> str:
    if "thresholds" in computation.asked:
        return reverse("judge_decisions", args=[computation.campaign.project.slug, computation.campaign_id])
    if "question" in computation.asked:
        page = reverse("numbers_explore", args=[computation.campaign.project.slug, computation.campaign_id])
        return f"{page}?{computation.asked['question']}"
    chosen = [("raters", name) for name in computation.asked.get("raters", [])]
    blind = [("blind", "only")] if computation.asked.get("blind_only") else []
    rule = [("reference", name)] if (name := computation.asked.get("reference")) else []
    query = urlencode([*chosen, *blind, *rule])
    page = reverse("campaign_numbers", args=[computation.campaign.project.slug, computation.campaign_id])
    return f"{page}?{query}" if query else page


KINDS: dict[str, JobKind] = {
    Job.Kind.NUMBERS: JobKind(
        model=Computation,
        task=lambda _computation: "analytics.tasks.compute_numbers",
        fail=lambda computation, _sentence: _ended(
            computation, Computation.Reason.ENDED, "", wait=pause(computation.tries)
        ),
        cancel=lambda computation, sentence: _ended(
            computation, Computation.Reason.CANCELLED, sentence, wait=CANCELLED_PAUSE
        ),
        title=lambda computation: str(computation.campaign.name),
        address=_address,
        related=("campaign__project",),
        most_tries=1,
        interrupted=gettext_lazy("The worker stopped before it had finished."),
        loses=gettext_lazy("The figures are not computed again within the next hour."),
    ),
}
