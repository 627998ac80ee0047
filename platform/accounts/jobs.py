"""Jobs: the long work of workers, from the waiting row to its end. One model for all kinds (decision 0025).

A function that changes data writes the waiting row in its own transaction (`begin`); the view, API or command that
called it sends the job to a worker (`enqueue`). If the broker can't be reached, the row waits, its page says this, and
the sweep sends it later: a web request itself does only small work. The calls of judge runs and the items given to
annotators have leases of their own. A worker takes the lease of a job (`take_job`) and reports its progress with
heartbeats (`JobHeartbeat`). If the heartbeats stop, the sweep lets another worker start again, at most
`JobKind.most_tries` times. To end a job, a process changes the job's subject first and then the job, in one
transaction: a process that has lost the lease changes nothing.
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
LOCK_WAIT_SECONDS = 1.0  # how long a heartbeat waits for a locked row or database; then it tries again
LAST_HEARTBEAT_SECONDS = 10.0  # the longest that the end of a job waits for the heartbeat that is under way
LEASE_TIMEOUT = timedelta(minutes=2)  # without a heartbeat the holder counts as dead
RESEND = timedelta(minutes=2)  # a job that no worker took for so long is sent once more
MOST_TRIES = 3
ABSENT_BROKER = (
    BrokerError,
    ChannelError,
    OSError,
    AttributeError,
)  # Kombu raises AttributeError for later messages after the first one failed
INTERRUPTED = gettext_lazy("It was interrupted %d times and will not be tried again.")
PROJECT_DELETED = gettext_lazy("This was cancelled because the project was deleted.")
# The kinds that go on when their project stops: past events are still announced, and the requests of a batch are paid
# in any case.
GOING_ON = (Job.Kind.DELIVERIES, Job.Kind.CALLS)


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """The description of one kind of job, from the app that does the work.

    The subject of a job is a row of ``model``, which has a field `job`. ``task`` returns the name of the Celery task
    for a row; the task gets the row's primary key. ``fail`` marks a row as failed with a sentence, and returns whether
    the row was unfinished; it must not change the job. ``stranded`` returns why only the dead process could continue
    the work; empty if any worker can.
    """

    model: type[models.Model]
    task: Callable[[Any], str]
    fail: Callable[[Any, str], bool]
    title: Callable[[Any], str]
    address: Callable[[Any], str]
    cancel: Callable[[Any, str], bool] | None = None  # used in place of `fail` when a person cancels
    stranded: Callable[[Any], str] = lambda _subject: ""
    most_tries: int | None = MOST_TRIES
    interrupted: str | Promise = INTERRUPTED
    expires: float | None = None  # seconds after which a message that no worker took is dropped
    loses: str | Promise = ""  # what is lost if the job is cancelled; empty if nothing
    related: tuple[str, ...] = ()  # related rows that `title` and `address` read

    def subject(self, job: Job) -> Any:
        """The row that the job is about; None if the row is deleted or has a newer job."""
        return self.model._base_manager.filter(job=job.pk).first()


# Each app adds a function that imports and returns its kinds: a command that looks at no job need not import them.
kinds_of_apps: list[Callable[[], Mapping[str, JobKind]]] = []
# Functions of the apps that the sweep calls to delete old files and the remains of abandoned imports.
cleanings: list[Callable[[], object]] = []


@cache
def job_kinds() -> dict[str, JobKind]:
    """The description of every kind of job, from all apps."""
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
    """Create a waiting job of ``subject`` in the caller's transaction; the former job is cancelled if it is open.

    The caller then sends the job (`enqueue`) or takes it directly. If it does neither, the sweep sends the job.
    ``delete_former`` also deletes the former job: for subjects that have many jobs, one after another.
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
    """Cancel the open job of a subject that is changed or removed; the worker of the job then stores nothing."""
    Job.objects.open().filter(pk__in=_current(subject)).update(**_ended(State.CANCELLED))


def _current(subject: models.Model) -> models.QuerySet[Any, Any]:
    return type(subject)._base_manager.filter(pk=subject.pk).values("job")


def enqueue(subject: Any) -> None:
    """Send the waiting job of ``subject`` to the workers once it is committed; without a broker the sweep sends it."""
    transaction.on_commit(partial(_send, subject.job))


def _send(job: Job) -> None:
    """Send a job. If the broker is not available, nothing is lost: the job stays due, and the sweep sends it later."""
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
    """Send a message that is not a job after the commit: for rows that wait for a worker, or for a mail.

    If the broker is not available, the message is dropped and logged, and the next sweep sends the waiting rows. If no
    row stores the work, as for a mail, the caller gives ``without_broker``, which is then called instead.
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
    """Whether the broker answers now; checked before work that would be lost without it."""
    try:
        with current_app.connection_for_write() as broker:
            broker.ensure_connection(max_retries=1, timeout=2)
    except ABSENT_BROKER:
        return False
    return True


# --- doing it -------------------------------------------------------------------------------------------------------
def take_job(subject: Any, *kinds: Job.Kind) -> Job | None:
    """Take the lease of the waiting job of ``subject``, if it is of one of these kinds. None if the job has ended,
    another worker has it, or its project was deleted: then a request that began before the deletion created the job.
    """
    lease, now = uuid4(), timezone.now()
    leased: dict[str, Any] = {"lease": lease, "lease_until": now + LEASE_TIMEOUT, "beat_at": now}
    begun: dict[str, Any] = {"state": State.RUNNING, "tries": models.F("tries") + 1, "done": 0, "started_at": now}
    waiting = Job.objects.filter(pk__in=_current(subject), kind__in=kinds, state=State.WAITING)
    cancel_open(waiting.filter(project__deletion__isnull=False).exclude(kind__in=GOING_ON), sentence=PROJECT_DELETED)
    if not waiting.update(**leased, **begun):
        return None
    job = Job.objects.select_related("owner").get(lease=lease)
    subject.job = job
    return job


class JobHeartbeat:
    """Stores heartbeats and progress of a leased job, from its own thread and database connection.

    So others see them during a long transaction, before its own updates are visible.
    """

    def __init__(self, job: Job) -> None:
        self.is_lost = False  # the job was cancelled, or another worker has it
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
        """Report that ``done`` of ``total`` units are done. Refused if the lease is lost."""
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
        """Store one heartbeat, and check whether the lease is lost.

        It waits only briefly for a lock, because the lock may belong to a transaction of our own worker, which waits
        for this thread.
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
        # SQLite has one writer: while our worker writes, the sweep can't free our job either.
        self.is_lost = not is_held and Job.objects.filter(pk=self.job.pk).exists()


def is_held(job: Job) -> bool:
    """Whether this process still has the lease on a job that it took."""
    return _held(job).exists()


def _held(job: Job) -> models.QuerySet[Job]:
    return Job.objects.filter(pk=job.pk, state=State.RUNNING, lease=job.lease)


# --- the end of it --------------------------------------------------------------------------------------------------
def finish_job(job: Job, **figures: Any) -> bool:
    """Mark a leased job as finished, in the transaction that stores its result. False if the lease is lost."""
    with transaction.atomic():
        if job.project_id is not None:
            hold_project(job.project_id)
        return bool(_held(job).update(**_ended(State.FINISHED), **figures))


def hold_project(project: int) -> None:
    """Lock a project until the transaction ends, before the rows of its jobs: its deletion locks it first, too.

    Rows that name the project are checked at the end of a transaction. Without this lock, that check and the deletion
    could wait for each other.
    """
    Project.objects.select_for_update(no_key=True).filter(pk=project).first()


def fail(job: Job, sentence: str) -> bool:
    """Mark a leased job as failed, in the transaction that changes its subject. False if the lease is lost."""
    return bool(_held(job).update(**_ended(State.FAILED), sentence=sentence))


def release(job: Job, *, due_at: datetime, **figures: Any) -> bool:
    """Let a leased job wait again until ``due_at``. False if the lease is lost."""
    waiting = {"state": State.WAITING, "lease": None, "lease_until": None, "due_at": due_at}
    return bool(_held(job).update(**waiting, **figures))


def cancel(*, job: Job, actor: User) -> None:
    """Stop an open job permanently. Its worker notices this at its next heartbeat, and its work so far is undone."""
    if not Job.objects.filter(pk=job.pk, project=job.project_id).cancellable_by(actor).exists() and job.is_open:
        sentence = _("Only a lead of the project, the person who started this, or staff can cancel it.")
        raise Refused(sentence, code="not_yours")
    if not _cancelled(job.pk, _("This was cancelled by %s.") % actor):
        raise Refused(_("This is over already. Reload the page."), code="wrong_state")
    job.refresh_from_db()


def cancel_all(*, project: Project, sentence: str) -> None:
    """Stop the open jobs of an archived project, except those that go on (`GOING_ON`)."""
    cancel_open(Job.objects.filter(project=project).exclude(kind__in=GOING_ON), sentence=sentence)


def cancel_open(listed: models.QuerySet[Job], *, sentence: str | Promise) -> None:
    """Stop the open jobs among ``listed``, with a sentence that gives the reason."""
    for pk in listed.filter(state__in=Job.OPEN).values_list("pk", flat=True):
        _cancelled(pk, str(sentence))


def _cancelled(pk: int, sentence: str) -> bool:
    for _attempt in range(2):  # a worker may take it just now
        job = Job.objects.open().filter(pk=pk).first()
        if job is not None and _give_up(job, State.CANCELLED, sentence):
            return True
    return False


def _give_up(job: Job, state: str, sentence: str) -> bool:
    """End a job that this process does not have. False if another process ended or took the job first."""
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
    """Free the jobs whose heartbeats stopped, and send the waiting jobs that are due. Returns the jobs that were sent.

    A job fails if its heartbeats stopped too often, because it probably kills its worker, or if only the dead process
    could have continued it.
    """
    now = now or timezone.now()
    silent_jobs = Job.objects.filter(state=State.RUNNING, lease_until__lt=now)
    if connection.vendor == "sqlite" and silent_jobs.exists():
        with transaction.atomic():  # waits for the writing process: no heartbeat could be stored while it wrote
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
    """Whether the job must not be tried again, and was ended as failed here."""
    kind = job_kinds()[job.kind]
    subject = kind.subject(job)
    if subject is not None and (sentence := kind.stranded(subject)):
        return _give_up(job, State.FAILED, sentence)
    if kind.most_tries is not None and job.tries >= kind.most_tries:
        return _give_up(job, State.FAILED, str(kind.interrupted).replace("%d", str(kind.most_tries)))
    return False


def _forget(now: datetime) -> None:
    """Delete jobs that ended a while ago and to which no row refers: former jobs of a row, and jobs of deleted rows."""
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
    """Jobs with their subjects: one query for each kind. A job that was replaced by a newer one has no subject."""
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
