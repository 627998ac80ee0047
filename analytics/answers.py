"""Answers to questions: the stored one, one computed at once where it is small, and both as files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accounts.models import Job
from accounts.refusals import Refused
from analytics import snapshots
from analytics.models import Computation, Snapshot
from analytics.questions import NumbersQuestion, chosen_runs
from annotation.models import Campaign, Rating
from judging.models import Verdict
from judging.runs import whole_run

AT_ONCE = 3_000
"""Rows of a ratings table up to which an answer is computed by whoever asks, unless many statistics are asked for."""
MADE = ("created_at", "revision", "inputs_digest", "code_version", "seed", "seconds")


def current_answer(campaign: Campaign, question: NumbersQuestion) -> tuple[Snapshot | None, bool]:
    """The newest answer and whether a worker has to compute another one. A small one is computed now; refused where the
    ratings can't be used.
    """
    stored, is_stale = snapshots.current_snapshot(campaign=campaign, settings=question)
    if is_stale and _is_small(campaign, question):
        return answer_now(campaign, question), False
    return stored, is_stale


def answer_now(campaign: Campaign, question: NumbersQuestion) -> Snapshot:
    """The answer as things stand, stored or computed now; refused where the ratings can't be used."""
    from analytics.stats.core.tables import TableError

    try:
        return snapshots.snapshot(campaign=campaign, settings=question)
    except TableError as error:
        raise Refused(str(error), code="unusable_ratings") from None


def _is_small(campaign: Campaign, question: NumbersQuestion) -> bool:
    runs = chosen_runs(campaign, question)
    if len(question.statistics) * max(1, len(runs)) > 12:
        return False
    count = Rating.objects.filter(annotation__campaign=campaign, annotation__superseded_at=None)[: AT_ONCE + 1].count()
    return count <= AT_ONCE and count + Verdict.objects.filter(run__in=whole_run(runs))[:AT_ONCE].count() <= AT_ONCE


def open_job(campaign: Campaign, question: NumbersQuestion) -> Job | None:
    """The job that is computing this answer, with how far it is."""
    open_ones = Computation.objects.filter(campaign=campaign, job__state__in=Job.OPEN).select_related("job")
    computation = open_ones.filter(settings_digest=question.digest).first()
    return computation.job if computation else None


def answer_document(snapshot: Snapshot) -> dict[str, Any]:
    """An answer as JSON: the question, what it was computed from, and `estimates` as in `panelbench stats`."""
    return {**{name: getattr(snapshot, name) for name in MADE}, **snapshot.content}


def answer_csv(snapshot: Snapshot) -> Iterator[bytes]:
    """The estimates as CSV, with the columns of `panelbench stats --format csv`."""
    from analytics.stats.cli.files import rendered_rows

    yield rendered_rows(snapshot.content["estimates"], "csv").encode()
