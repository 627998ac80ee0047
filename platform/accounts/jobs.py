"""Jobs: the long work of workers, from the waiting row to its end. One model for all kinds (decision 0025).

A function that changes data writes the waiting row in its own transaction (`begin`); the view, API or command that
called it has it sent (`enqueue`). Where the broker can't be reached the row waits, its page says so, and the sweep
sends it later: a web request stores only what is small. The calls of judge runs and the items on the desk have leases
of their own. A worker takes the lease of a job (`take_job`) and reports that it lives and how far it is
(`JobHeartbeat`). When it falls silent, the sweep lets another worker begin again, at most `JobKind.most_tries` times.
Whoever ends a job changes what it is about first and the job after it, in one transaction: one that lost its lease
meanwhile changes nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from celery import current_app
from django.db import InterfaceError, OperationalError, connection, models, transaction
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from kombu.exceptions import ChannelError
from kombu.exceptions import OperationalError as BrokerError

from accounts.models import Job, Project, User
from accounts.refusals import Refused

logger = logging.getLogger(__name__)

State = Job.State
HEARTBEAT_SECONDS = 2.0
LOCK_WAIT_SECONDS = 1.0  # of a heartbeat, for a row or a database that a transaction holds; then it tries again
LAST_HEARTBEAT_SECONDS = 10.0  # the longest that the end of a job waits for the heartbeat that is under way
LEASE_TIMEOUT = timedelta(minutes=2)  # without a heartbeat the holder counts as dead
RESEND = timedelta(minutes=2)  # a job that no worker took for so long is sent once more
MOST_TRIES = 3
ABSENT_BROKER = (
    BrokerError,
    ChannelError,
    OSError,
    AttributeError,
)  # the last: Kombu, after a first message that failed
INTERRUPTED = gettext_lazy("It was interrupted %d times and will not be tried again.")


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """What this module has to know of one kind of job, from the app that does it.

    ``model`` has a field `job`; ``task`` names the Celery task that works on one of its rows, which takes its primary
    key. ``fail`` leaves such a row failed with a sentence, and says whether it was still to be done; it may not touch
    the job. ``stranded`` says why nobody but the dead process can go on with it; empty where anybody can.
    """

    model: type[models.Model]
    task: Callable[[Any], str]
    fail: Callable[[Any, str], bool]
    title: Callable[[Any], str]
    address: Callable[[Any], str]
    cancel: Callable[[Any, str], bool] | None = None  # as `fail`, where somebody who cancels wants something else
    stranded: Callable[[Any], str] = lambda _subject: ""
    most_tries: int | None = MOST_TRIES
    interrupted: str | Promise = INTERRUPTED
    expires: float | None = None  # seconds after which a message that no worker took is dropped
    loses: str | Promise = ""  # what is lost when it is cancelled, where anything is
    related: tuple[str, ...] = ()  # what `title` and `address` read of a row

    def subject(self, job: Job) -> Any:
        """The row that the job is about; None where that is gone, or has a newer job."""
        return self.model._base_manager.filter(job=job.pk).first()


# Each app adds a function that imports and returns its kinds: a command that looks at no job need not import them.
kinds_of_apps: list[Callable[[], Mapping[str, JobKind]]] = []
# What else apps clear away at every sweep: files that have had their time, what abandoned imports left behind.
cleanings: list[Callable[[], object]] = []


@cache
def job_kinds() -> dict[str, JobKind]:
    """What this module has to know of each kind of job, from all apps."""
    return {name: kind for kinds in kinds_of_apps for name, kind in kinds().items()}


# --- asking for one -------------------------------------------------------------------------------------------------
def begin(
    *,
    kind: Job.Kind,
    subject: Any,
    project: Project,
    owner: User | None,
    total: int = 0,
    unit: str = "",
    delete_former: bool = False,
) -> Job:
    """A waiting job of ``subject``, in the caller's transaction; the one before it, if it is still open, is cancelled.

    Whoever called either has it sent (`enqueue`) or takes it at once. If neither happens, the sweep sends it.
    ``delete_former`` also deletes the one before it: for what has one job after another.
    """
    former = subject.job_id
    job = Job.objects.create(
        kind=kind, project=project, owner=owner, total=total, unit=unit, due_at=timezone.now() + RESEND
    )
    drop(subject)
    type(subject)._base_manager.filter(pk=subject.pk).update(job=job)
    subject.job = job
    if delete_former and former is not None:
        Job.objects.filter(pk=former).delete()
    return job


def drop(subject: Any) -> None:
    """Cancel the open job of what is changed or removed while it runs; its worker finds nothing to settle."""
    Job.objects.open().filter(pk__in=_current(subject)).update(**_ended(State.CANCELLED))


def _current(subject: models.Model) -> models.QuerySet[Any, Any]:
    return type(subject)._base_manager.filter(pk=subject.pk).values("job")


def enqueue(subject: Any) -> None:
    """Send the waiting job of ``subject`` to the workers once it is committed; without a broker the sweep sends it."""
    transaction.on_commit(partial(_send, subject.job))


def _send(job: Job) -> None:
    """Send a job. A broker that is away loses nothing: the job is due, and the sweep sends it once that is back."""
    kind, now = job_kinds()[job.kind], timezone.now()
    waiting = Job.objects.filter(pk=job.pk, state=State.WAITING)
    if (subject := kind.subject(job)) is None:
        waiting.update(**_ended(State.CANCELLED))
        return
    if _queued(kind.task(subject), (subject.pk,), expires=kind.expires):
        waiting.update(sent_at=now, due_at=now + RESEND)
    else:
        waiting.update(sent_at=None, due_at=now)


def enqueue_task(
    task: str, *arguments: Any, expires: float | None = None, without_broker: Callable[[], object] | None = None
) -> None:
    """Send a message that is no job, once the transaction is committed: a wake-up for rows that wait, or a mail.

    Without a broker it is dropped and logged: the next sweep sends rows that wait. What no row keeps, such as a mail,
    gives ``without_broker``, which is then called in its place.
    """

    def send() -> None:
        if not _queued(task, arguments, expires=expires) and without_broker is not None:
            without_broker()

    transaction.on_commit(send)


def _queued(task: str, arguments: tuple[Any, ...], *, expires: float | None) -> bool:
    """Whether the broker took a message for the task of that name."""
    try:
        current_app.signature(task, arguments).apply_async(expires=expires)
    except ABSENT_BROKER as error:
        logger.warning("The message broker is not available; %s%s is not queued: %s", task, arguments, error)
        return False
    return True


def is_broker_available() -> bool:
    """Whether the broker answers now: for what would be lost without it."""
    try:
        with current_app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=2)
    except ABSENT_BROKER:
        return False
    return True


# --- doing it -------------------------------------------------------------------------------------------------------
def take_job(subject: Any, *kinds: Job.Kind) -> Job | None:
    """The waiting job of ``subject``, of one of these kinds, with a lease on it; None when it is over or in other
    hands.
    """
    lease, now = uuid4(), timezone.now()
    leased: dict[str, Any] = {"lease": lease, "lease_until": now + LEASE_TIMEOUT, "beat_at": now}
    begun: dict[str, Any] = {"state": State.RUNNING, "tries": models.F("tries") + 1, "done": 0, "started_at": now}
    waiting = Job.objects.filter(pk__in=_current(subject), kind__in=kinds, state=State.WAITING)
    if not waiting.update(**leased, **begun):
        return None
    job = Job.objects.select_related("owner").get(lease=lease)
    subject.job = job
    return job


class JobHeartbeat:
    """Reports that the holder of a lease lives and how far it is, from a thread and a connection of its own.

    So others see it while a long transaction runs, whose own updates they would not see.
    """

    def __init__(self, job: Job) -> None:
        self.is_lost = False  # it was cancelled, or somebody else has it
        self.job = job
        self.done, self.total = job.done, job.total
        self._over = threading.Event()
        self._beating = threading.Thread(target=self._beat, name=f"job {job.pk}", daemon=True)

    def __enter__(self) -> Self:
        self._beating.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._beating.join(LAST_HEARTBEAT_SECONDS)

    def tell(self, done: int, total: int) -> None:
        """So much of it is done. Refused when the lease is lost."""
        if self.is_lost:
            raise Refused(_("This was cancelled or deleted while it was running. Start it again."), code="swept")
        self.done, self.total = done, total

    def _beat(self) -> None:
        try:
            while not self._over.wait(HEARTBEAT_SECONDS):
                try:
                    self._store()
                except (OperationalError, InterfaceError):  # locked for too long, or the connection is lost
                    connection.close()
        finally:
            connection.close()

    def _store(self) -> None:
        """Store one heartbeat, and look whether the lease is lost.

        It waits for a lock briefly only, as the transaction that holds it may be our own holder's, which waits for us.
        """
        is_sqlite = connection.vendor == "sqlite"
        with nullcontext() if is_sqlite else transaction.atomic(), connection.cursor() as cursor:
            milliseconds = int(1000 * LOCK_WAIT_SECONDS)
            cursor.execute(
                f"PRAGMA busy_timeout = {milliseconds}" if is_sqlite else f"SET LOCAL lock_timeout = {milliseconds}"
            )
            now = timezone.now()
            alive = {"beat_at": now, "lease_until": now + LEASE_TIMEOUT}
            is_held = _held(self.job).update(**alive, done=self.done, total=self.total)
        # SQLite has one writer: while we write, nobody can sweep us either.
        self.is_lost = not is_held and Job.objects.filter(pk=self.job.pk).exists()


def is_held(job: Job) -> bool:
    """Whether this process still has the lease on a job that it took."""
    return _held(job).exists()


def _held(job: Job) -> models.QuerySet[Job]:
    return Job.objects.filter(pk=job.pk, state=State.RUNNING, lease=job.lease)


# --- the end of it --------------------------------------------------------------------------------------------------
def finish_job(job: Job, **figures: Any) -> bool:
    """Say that a leased job is done, in the transaction that stores its result; False when the lease is lost."""
    return bool(_held(job).update(**_ended(State.FINISHED), **figures))


def fail(job: Job, sentence: str) -> bool:
    """Say why a leased job failed, beside the change of what it is about; False when the lease is lost."""
    return bool(_held(job).update(**_ended(State.FAILED), sentence=sentence))


def release(job: Job, *, due_at: datetime, **figures: Any) -> bool:
    """Let a leased job wait again until it is due; False when the lease is lost."""
    waiting = {"state": State.WAITING, "lease": None, "lease_until": None, "due_at": due_at}
    return bool(_held(job).update(**waiting, **figures))


def cancel(*, job: Job, actor: User) -> None:
    """Stop an open job for good. Its worker notices at its next heartbeat, and what it did so far is taken back."""
    if not Job.objects.filter(pk=job.pk, project=job.project_id).cancellable_by(actor).exists() and job.is_open:
        sentence = _("Only a lead of the project, the person who started this, or staff can cancel it.")
        raise Refused(sentence, code="not_yours")
    if not _cancelled(job.pk, _("This was cancelled by %s.") % actor):
        raise Refused(_("This is over already. Reload the page."), code="wrong_state")
    job.refresh_from_db()


def cancel_all(*, project: Project, sentence: str) -> None:
    """Stop the open jobs of a project that is archived, but for deliveries and batches of calls: what has happened is
    still announced, and what was asked is paid."""
    going_on = (Job.Kind.DELIVERIES, Job.Kind.CALLS)
    cancel_open(Job.objects.filter(project=project).exclude(kind__in=going_on), sentence=sentence)


def cancel_open(listed: models.QuerySet[Job], *, sentence: str) -> None:
    """Stop those of the jobs that are open, because of what else has happened."""
    for pk in listed.filter(state__in=Job.OPEN).values_list("pk", flat=True):
        _cancelled(pk, sentence)


def _cancelled(pk: int, sentence: str) -> bool:
    for _attempt in range(2):  # a worker may take it just now
        job = Job.objects.open().filter(pk=pk).first()
        if job is not None and _give_up(job, State.CANCELLED, sentence):
            return True
    return False


def _give_up(job: Job, state: str, sentence: str) -> bool:
    """End a job that another process has, or none; False when that process ended it, or took it, first."""
    kind = job_kinds()[job.kind]
    subject = kind.subject(job)
    with transaction.atomic():
        end = kind.cancel if state == State.CANCELLED and kind.cancel else kind.fail
        is_given_up = subject is None or end(subject, sentence)
        as_seen = Job.objects.filter(pk=job.pk, state=job.state, lease=job.lease, tries=job.tries)
        if is_given_up and as_seen.update(**_ended(state), sentence=sentence):
            return True
        transaction.set_rollback(True)
    return False


def _ended(state: str) -> dict[str, Any]:
    return {"state": state, "lease": None, "lease_until": None, "ended_at": timezone.now()}


# --- the sweep ------------------------------------------------------------------------------------------------------
def sweep_jobs(*, now: datetime | None = None) -> list[Job]:
    """Free the jobs whose worker fell silent, and send those that wait and are due; returns which were sent.

    One that went silent too often takes its worker down with it, and is given up; so is one that only the dead process
    could have ended.
    """
    now = now or timezone.now()
    silent_jobs = Job.objects.filter(state=State.RUNNING, lease_until__lt=now)
    if connection.vendor == "sqlite" and silent_jobs.exists():
        with transaction.atomic():  # waits for who is writing: no heartbeat could be stored meanwhile
            pass
        time.sleep(2 * HEARTBEAT_SECONDS)
    for silent in silent_jobs.all():
        if not _given_up(silent):
            again = {"state": State.WAITING, "lease": None, "lease_until": None, "sent_at": None, "due_at": now}
            _held(silent).filter(lease_until=silent.lease_until).update(**again)
    due = [job for job in Job.objects.filter(state=State.WAITING, due_at__lte=now) if not _given_up(job)]
    for job in due:
        _send(job)
    _forget(now)
    return due


def _given_up(job: Job) -> bool:
    """Whether nobody is to try again, and so the job is ended."""
    kind = job_kinds()[job.kind]
    subject = kind.subject(job)
    if subject is not None and (sentence := kind.stranded(subject)):
        return _give_up(job, State.FAILED, sentence)
    if kind.most_tries is not None and job.tries >= kind.most_tries:
        return _give_up(job, State.FAILED, str(kind.interrupted).replace("%d", str(kind.most_tries)))
    return False


def _forget(now: datetime) -> None:
    """Delete what ended a while ago and nothing refers to any more: the older jobs of a row, and those of rows gone."""
    for name, kind in job_kinds().items():
        current = kind.model._base_manager.exclude(job=None).values("job")
        old = Job.objects.filter(kind=name, ended_at__lt=now - timedelta(days=1))
        old.exclude(pk__in=current).delete()


# --- what is shown of them ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ListedJob:
    """A job as a list shows it: what it is about, where that is, and what cancelling it would lose."""

    job: Job
    title: str
    address: str
    loses: str
    may_cancel: bool


def list_jobs(shown_jobs: Iterable[Job], *, user: User) -> list[ListedJob]:
    """Jobs with what they are about: one query for every kind. Nothing is known of one that has been replaced."""
    all_jobs = list(shown_jobs)
    keys = [job.pk for job in all_jobs]
    cancellable = set(Job.objects.filter(pk__in=keys).cancellable_by(user).values_list("pk", flat=True))
    subjects: dict[int, Any] = {}
    kinds = job_kinds()
    for name in {job.kind for job in all_jobs}:
        rows: Any = kinds[name].model._base_manager.filter(job__in=[job.pk for job in all_jobs if job.kind == name])
        subjects |= {row.job_id: row for row in rows.prefetch_related(*kinds[name].related)}
    return [_listed(job, kinds[job.kind], subjects.get(job.pk), job.pk in cancellable) for job in all_jobs]


def _listed(job: Job, kind: JobKind, subject: Any, may_cancel: bool) -> ListedJob:
    if subject is None:
        return ListedJob(job, str(job), "", "", may_cancel)
    return ListedJob(job, kind.title(subject), kind.address(subject), str(kind.loses), may_cancel)
