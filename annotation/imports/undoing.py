"""Undo a stored import completely, while nothing depends on it; discard an import that is not stored.

A worker undoes a large import under a job: stored -> undoing -> uploaded, in one transaction, or back to stored if
something depends on it. A worker that is killed changes nothing, and another worker starts again."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from django.core.files.storage import default_storage
from django.db import IntegrityError, models, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit, jobs
from accounts.jobs import JobHeartbeat
from accounts.models import Job, User
from accounts.refusals import Refused
from annotation import bulk
from annotation.imports.import_jobs import EDITABLE, keep_stored
from annotation.imports.parsed_files import forget_parsed
from annotation.models import (
    Annotation,
    Annotator,
    Campaign,
    Dataset,
    DatasetCheckup,
    DryRun,
    EvidenceSpan,
    Import,
    ImportFile,
    Item,
    Rating,
    RubricVersion,
)

State = Import.State


def undo(*, file_import: Import, actor: User | None = None) -> None:
    """Delete the rows of a stored import. If other rows depend on them, raises ``Refused``, which names these rows."""
    take_back = {
        Import.Kind.DATASET: _take_back_dataset,
        Import.Kind.RUBRIC: _take_back_rubrics,
        Import.Kind.RATINGS: _take_back_ratings,
    }[Import.Kind(file_import.kind)]
    try:
        with transaction.atomic():
            take_back(file_import)
            unsettle(file_import=file_import, actor=actor)
    except IntegrityError:  # a row that depends on it was created after the check
        raise _used_now() from None


def start_undo(*, file_import: Import, actor: User) -> None:
    """Create the job that undoes a stored import; the caller enqueues it."""
    stored = Import.objects.filter(pk=file_import.pk, state=State.STORED)
    with transaction.atomic():
        if not stored.update(state=State.UNDOING, state_since=timezone.now()):
            raise _not_stored()
        jobs.begin(kind=Job.Kind.UNDO, subject=file_import, project=file_import.project, owner=actor)
    file_import.state = State.UNDOING


def carry_out_undo(*, import_pk: int, undo: Callable[..., None]) -> None:
    """Undo an import in the state undoing, unless another worker does or did it; ``undo`` is its kind's function.

    If something depends on the import, it stays stored, and its job says why.
    """
    file_import = Import.objects.filter(pk=import_pk, state=State.UNDOING).select_related("project").first()
    if file_import is None or (job := jobs.take_job(file_import, Job.Kind.UNDO)) is None:
        return
    try:
        with JobHeartbeat(job):
            undo(file_import=file_import, actor=job.owner)
    except (Refused, IntegrityError) as error:
        refused = error if isinstance(error, Refused) else _used_now()
        with transaction.atomic():
            if not (keep_stored(file_import) and jobs.fail(job, refused.sentence)):
                transaction.set_rollback(True)


def unsettle(*, file_import: Import, actor: User | None = None) -> None:
    """Set a stored import back to uploaded, last in the transaction that deletes its rows.

    It is the last step, so that the import's own row is locked only briefly and the undo can be cancelled until then.
    """
    job = file_import.job if file_import.state == State.UNDOING else None
    stored = Import.objects.filter(pk=file_import.pk, state=State.UNDOING if job else State.STORED)
    if not stored.update(state=State.UPLOADED, state_since=timezone.now(), report={}):
        raise _not_stored()
    if job is not None and not jobs.finish_job(job):
        raise _not_stored()
    DryRun.objects.filter(file_import=file_import).delete()  # its result no longer describes the stored rows
    audit.record(actor=actor, project=file_import.project, verb="undo import", subject=file_import)
    file_import.state = State.UPLOADED


def _used_now() -> Refused:
    return Refused(_("This import is now in use, so it can't be undone. Reload the page."), code="in_use")


def _not_stored() -> Refused:
    return Refused(_("Only an import that is stored can be undone."), code="not_stored")


def discard(*, file_import: Import, actor: User | None = None) -> None:
    """Delete an import that stored nothing, and its files that no other import shares."""
    number, names = file_import.pk, [str(file.content.name) for file in file_import.files.all()]
    if file_import.parts.exists():
        raise Refused(_("Parts of this import are stored. Undo it first."), code="stored")
    with transaction.atomic():
        audit.record(actor=actor, project=file_import.project, verb="discard import", subject=file_import)
        Import.objects.select_for_update().filter(pk=file_import.pk).first()  # the import is locked before its job
        jobs.drop(file_import)
        gone, _each = Import.objects.filter(pk=file_import.pk, state__in=EDITABLE).delete()
        if not gone:
            raise Refused(_("This import is stored. Undo it first."), code="stored")
        transaction.on_commit(lambda: _delete_unshared(names))
        transaction.on_commit(lambda: forget_parsed(number))


def _delete_unshared(names: Iterable[str]) -> None:
    shared = set(ImportFile.objects.filter(content__in=names).values_list("content", flat=True))
    for name in {*names} - shared:
        default_storage.delete(name)


def require_unused(rows: Iterable[models.Model], *, but: tuple[type[models.Model], ...] = ()) -> None:
    """Refuse if a row of any app refers to one of ``rows``; rows of the models in ``but`` are deleted with them."""
    for row in rows:
        if users := _users(row, but):
            sentence = _("“%(row)s” is in use by %(users)s. Undo those first.")
            raise Refused(sentence % {"row": row, "users": ", ".join(users)}, code="in_use")


def _users(row: models.Model, but: tuple[type[models.Model], ...]) -> list[str]:
    """The counts of the rows that refer to ``row``, by kind: ``2 campaigns``."""
    users = []
    for relation in row._meta.get_fields(include_hidden=True):
        if not isinstance(relation, models.ManyToOneRel) or issubclass(relation.related_model, but):
            continue
        model = relation.related_model
        if count := model._base_manager.filter(**{relation.field.name: row}).count():
            names = model._meta
            users.append(f"{count} {names.verbose_name if count == 1 else names.verbose_name_plural}")
    return users


def _take_back_dataset(file_import: Import) -> None:
    datasets = list(Dataset.objects.filter(file_import=file_import))
    part = Dataset.parts.through
    require_unused(datasets, but=(Item, part, DatasetCheckup))
    DatasetCheckup.objects.filter(dataset__in=datasets).delete()
    part._default_manager.filter(from_dataset__in=datasets)._raw_delete(using="default")
    # A raw delete, because the ORM would load every item to look for dependent rows; the check above found none.
    Item.objects.filter(dataset__in=datasets)._raw_delete(using="default")
    Dataset.objects.filter(pk__in=[dataset.pk for dataset in datasets])._raw_delete(using="default")


def _take_back_rubrics(file_import: Import) -> None:
    rubric_versions = RubricVersion.objects.filter(pk__in=file_import.report.get("made", []))
    if published := rubric_versions.published().first():
        raise Refused(_("“%s” is published and can't be deleted.") % published, code="in_use")
    rubric_versions.delete()


def _take_back_ratings(file_import: Import) -> None:
    annotations = Annotation.objects.filter(file_import=file_import)
    raters = set(annotations.values_list("annotator", flat=True))
    spans = EvidenceSpan.objects.filter(rating__annotation__file_import=file_import)
    bulk.delete_by_key(EvidenceSpan, "id", spans.values_list("pk", flat=True))
    bulk.delete_by_key(Rating, "annotation", annotations.values_list("pk", flat=True))
    annotations._raw_delete(using="default")
    for annotator in Annotator.objects.filter(pk__in=raters, user=None):
        if not _users(annotator, ()):
            annotator.delete()
    opened = Campaign.objects.filter(pk=file_import.report.get("opened_campaign")).first()
    if opened is not None and not _users(opened, ()):
        opened.delete()
