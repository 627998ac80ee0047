"""Answers to questions: the stored one, one that a command computes, and both as files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accounts.models import Job
from accounts.refusals import Refused
from analytics import snapshots
from analytics.models import Computation, Snapshot
from analytics.questions import NumbersQuestion
from annotation.models import Campaign

MADE = ("created_at", "revision", "inputs_digest", "code_version", "seed", "seconds")


def current_answer(campaign: Campaign, question: NumbersQuestion) -> tuple[Snapshot | None, bool]:
    """The newest answer and whether a worker has to compute another one.

    A web process computes none, however small: it would load pandas, and many cells or resamples take long.
    """
    return snapshots.current_snapshot(campaign=campaign, settings=question)


def answer_now(campaign: Campaign, question: NumbersQuestion) -> Snapshot:
    """The answer as things stand, stored or computed now, for commands; refused where the ratings can't be used.

    Where the database stays busy, the answer is given without being stored.
    """
    from analytics.stats.core.tables import TableError

    try:
        return snapshots.snapshot(campaign=campaign, settings=question, must_store=False)
    except TableError as error:
        raise Refused(str(error), code="unusable_ratings") from None


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
