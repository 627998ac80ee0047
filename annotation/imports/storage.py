"""Parsed files become rows: staged, invisible until complete, refused as a whole when anything is wrong; and undoing.

An import is undone as a whole, while nothing depends on it. Its files stay, so that it can be stored again. A worker
undoes a large one under a job: stored -> undoing -> uploaded, in one transaction, or back to stored when something
depends on it. A worker that is killed changes nothing, and another one begins again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.core.files.storage import default_storage
from django.db import IntegrityError, models, transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit, jobs
from accounts.jobs import JobHeartbeat
from accounts.models import Job, Project, User
from accounts.refusals import Refused
from annotation import bulk
from annotation.campaigns import lock_campaign
from annotation.imports import rating_rows
from annotation.imports.import_jobs import EDITABLE, keep_stored, settle
from annotation.imports.parsed_files import forget_parsed
from annotation.imports.previews import Additions
from annotation.imports.rating_rows import RatingsReport, fit_ratings
from annotation.models import (
    Annotation,
    Annotator,
    Campaign,
    Dataset,
    DryRun,
    EvidenceSpan,
    Import,
    ImportFile,
    Item,
    Rating,
    RubricVersion,
)
from annotation.readers import (
    ItemRow,
    Problems,
    RatingRow,
    ShareProgress,
    content_digest,
    progress_between,
    rare_garbage_collection,
)

STAGE = 20_000  # rows of one transaction at most,
STAGE_BYTES = 8 * 2**20  # and about as many bytes of turns and fields
PATIENCE = timedelta(minutes=5)  # the longest that a living process stages nothing
HELD = 0.4  # the part of storing ratings that is holding them against what there is; the rest is writing them
ITEM_FIELDS = (
    "dataset_id",
    "external_id",
    "ordinal",
    "language",
    "generator",
    "scenario",
    "title",
    "turns",
    "fields",
    "attributes",
    "content_warning",
    "digest",
)


_LONG = [ITEM_FIELDS.index(name) for name in ("turns", "fields", "attributes")]


class FileRefused(Refused):
    """A file with problems: nothing of it was stored, and `problems` says where and what."""

    def __init__(self, problems: Problems) -> None:
        first = next(iter(problems), None)
        super().__init__(
            _("Nothing was stored. %(count)d problem(s); the first: %(first)s")
            % {"count": len(problems), "first": first or ""},
            code="file_refused",
        )
        self.problems = problems


# --- datasets -------------------------------------------------------------------------------------------------------
def store(
    *,
    project: Project,
    name: str,
    items: Iterable[ItemRow],
    actor: User | None = None,
    file_import: Import | None = None,
    layout: Mapping[str, Any] | None = None,
    licence: str = "",
    derived_from: Dataset | None = None,
    allocatable: bool = True,
    simulated: bool = False,
    extends: Dataset | None = None,
    staged: Callable[[int], None] | None = None,
    names_shown: list[dict[str, Any]] | None = None,
) -> Dataset:
    """Store items as the next version of the dataset called ``name``; `append_items` makes one that ``extends``.

    Items are staged some thousands to a transaction while the dataset is `loading`, which nothing shows; one
    compare-and-set then makes it `ready`, and its ``import`` stored. ``staged`` is called after each transaction with
    the number stored so far.
    ``names_shown``: generators' names in them, where somebody has looked (`Dataset.names_shown`).
    When anything goes wrong the stage is cleared; when the process dies, `sweep` clears it, or the next try to store
    the same ``import``.
    """
    if file_import is not None:
        unstage(file_import)
    dataset = Dataset.objects.create(
        project=project,
        name=name,
        version=_next_version(project, name),
        layout=dict(layout or {}),
        licence=licence,
        derived_from=derived_from,
        allocatable=allocatable,
        simulated=simulated,
        extends=extends,
        file_import=file_import,
        created_by=actor,
        names_shown=names_shown,
    )
    try:
        stored = _stage(dataset, items, staged)
        if not stored:
            raise Refused(_("There are no items in it."), code="empty")
        _make_ready(dataset, actor)
    except BaseException:
        _clear(dataset)
        raise
    return dataset


def unstage(file_import: Import) -> None:
    """Clear what an import that did not end left half-stored."""
    for abandoned in Dataset.objects.filter(file_import=file_import, state=Dataset.State.LOADING):
        _clear(abandoned)


def sweep(*, older_than: timedelta = PATIENCE) -> int:
    """Clear datasets into which nothing has been staged for so long; returns how many."""
    silent = Dataset.objects.filter(state=Dataset.State.LOADING, staged_at__lt=timezone.now() - older_than)
    return sum(_clear(dataset, untouched_since=dataset.staged_at) for dataset in silent)


def _next_version(project: Project, name: str) -> int:
    newest = Dataset.objects.filter(project=project, name=name).aggregate(newest=Max("version"))["newest"]
    return (newest or 0) + 1


def _stage(dataset: Dataset, items: Iterable[ItemRow], staged: Callable[[int], None] | None) -> int:
    stored, first = 0, Item.objects.of(dataset.extends).count() if dataset.extends else 0
    rows = (_item(dataset.pk, place, row) for place, row in enumerate(items, first))
    for stage in _stages(rows):
        with transaction.atomic():
            loading = Dataset.objects.filter(pk=dataset.pk, state=Dataset.State.LOADING)
            if not loading.update(staged_at=timezone.now()):
                raise _swept()
            bulk.insert(Item, ITEM_FIELDS, stage)
        stored += len(stage)
        if staged:
            staged(stored)
    return stored


def _stages(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """The rows, so many at a time as memory and a transaction should hold."""
    stage: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        stage.append(row)
        size += sum(len(row[place]) for place in _LONG)
        if len(stage) >= STAGE or size >= STAGE_BYTES:
            yield stage
            stage, size = [], 0
    if stage:
        yield stage


def _swept() -> Refused:
    return Refused(_("This import was deleted while it was running. Start it again."), code="swept")


def _item(dataset_pk: int, ordinal: int, row: ItemRow) -> tuple[Any, ...]:
    return (
        dataset_pk,
        row.external_id,
        ordinal,
        row.language,
        row.generator or "",
        row.scenario or "",
        row.title,
        _json(row.turns),
        _json(row.fields),
        _json(row.attributes),
        row.content_warning,
        content_digest(row),
    )


def _json(value: Any) -> str:
    return orjson.dumps(value).decode() if value else "[]" if isinstance(value, list) else "{}"


def _make_ready(dataset: Dataset, actor: User | None) -> None:
    with transaction.atomic():
        loading = Dataset.objects.filter(pk=dataset.pk, state=Dataset.State.LOADING)
        if not loading.update(state=Dataset.State.READY):
            raise _swept()
        dataset.parts.add(dataset, *(Dataset.objects.parts_of(dataset.extends) if dataset.extends else ()))
        settle(dataset.file_import)
        audit.record(actor=actor, project=dataset.project, verb="store dataset", subject=dataset, fields=["state"])
    dataset.state = Dataset.State.READY


def _clear(dataset: Dataset, *, untouched_since: datetime | None = None) -> bool:
    """Delete a stage; never a dataset that is ready, nor one that has grown since then."""
    with transaction.atomic():
        loading = Dataset.objects.select_for_update().filter(pk=dataset.pk, state=Dataset.State.LOADING)
        if untouched_since is not None:
            loading = loading.filter(staged_at=untouched_since)
        if not loading.exists():
            return False
        Item.objects.filter(dataset=dataset)._raw_delete(using="default")
        return bool(loading.delete())


# --- ratings --------------------------------------------------------------------------------------------------------
@rare_garbage_collection()
def store_ratings(
    *,
    campaign: Campaign,
    rows: Collection[RatingRow],
    file_import: Import,
    identified: bool = True,
    actor: User | None = None,
    progress: ShareProgress | None = None,
) -> RatingsReport:
    """Store other people's ratings in a campaign, all or none; raises `FileRefused` naming every bad row.

    A rater becomes the annotator of that pseudonym. A rating that is already there collapses when it says the same and
    is refused when it says something else. A row without a score is missing: counted, and nothing is stored for it.
    ``progress`` is called with the share that is done.
    """
    with transaction.atomic():
        # Two imports at once would not see each other's ratings; annotators, who only point at it, may go on.
        lock_campaign(campaign)
        fit = fit_ratings(
            dataset=campaign.dataset,
            rubric_version=campaign.rubric_version,
            campaign=campaign,
            rows=rows,
            progress=progress_between(progress, 0, HELD),
        )
        if fit.problems:
            raise FileRefused(fit.problems)
        rating_rows.write_ratings(
            campaign=campaign,
            file_import=file_import,
            rows=fit.rows,
            raters=fit.report.raters,
            identified=identified,
            has_evidence=fit.has_evidence,
            progress=progress_between(progress, HELD, 1),
        )
        settle(file_import)
        audit.record(actor=actor, project=campaign.project, verb="import ratings", subject=file_import)
    return fit.report


# --- more items for a dataset ----------------------------------------------------------------------------------------


def append_items(
    *,
    dataset: Dataset,
    items: Iterable[ItemRow],
    file_import: Import | None = None,
    licence: str = "",
    actor: User | None = None,
    staged: Callable[[int], None] | None = None,
) -> Dataset:
    """Store a version that extends ``dataset``, the newest of its line, by those of ``items`` that it has not got.

    Layout and origin are those of ``dataset``, and so is the licence unless another is given. An item that is there
    already collapses; an id that means another item there is refused, as `FileRefused` naming every such row, and so
    is an append of nothing new. Of two appends at once one is refused, and can be started again.
    """
    _require_newest(dataset)
    try:
        return store(
            project=dataset.project,
            name=dataset.name,
            items=_required(Additions(dataset), items),
            actor=actor,
            file_import=file_import,
            layout=dataset.layout,
            licence=licence or dataset.licence,
            derived_from=dataset.derived_from,
            allocatable=dataset.allocatable,
            simulated=dataset.simulated,
            extends=dataset,
            staged=staged,
        )
    except IntegrityError:
        sentence = _("Somebody else added items to “%s” at the same time. Their items are kept. Start again.")
        raise Refused(sentence % dataset.name, code="extended_meanwhile") from None


def _require_newest(dataset: Dataset) -> None:
    newest = Dataset.objects.holding(dataset).first()
    if newest is None:
        raise Refused(_("“%s” is not ready yet. Add the items when it is ready.") % dataset, code="not_ready")
    if newest != dataset:
        sentence = _("“%(old)s” already has a newer version. Add the items to “%(new)s”.")
        raise Refused(sentence % {"old": dataset, "new": newest}, code="not_newest")


def _required(additions: Additions, items: Iterable[ItemRow]) -> Iterator[ItemRow]:
    """The new rows. After the last one, raises ``Refused`` for problems in the others, or when no row was new."""
    yield from additions.among(items)
    if additions.problems:
        raise FileRefused(additions.problems)
    if not additions.new:
        sentence = _("All items are already in “%s”: there is nothing to add.")
        raise Refused(sentence % additions.dataset, code="nothing_new")


# --- undoing: all of an import, while nothing depends on it ----------------------------------------------------------
State = Import.State


def undo(*, file_import: Import, actor: User | None = None) -> None:
    """Delete what a stored import stored; refused, with what stands in the way, as soon as something depends on it."""
    take_back = {
        Import.Kind.DATASET: _take_back_dataset,
        Import.Kind.RUBRIC: _take_back_rubrics,
        Import.Kind.RATINGS: _take_back_ratings,
    }[Import.Kind(file_import.kind)]
    try:
        with transaction.atomic():
            take_back(file_import)
            unsettle(file_import=file_import, actor=actor)
    except IntegrityError:  # something came to depend on it just now
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
    """Undo an import that is to be undone, unless another worker does or did; ``undo`` is the function of its kind.

    When something depends on it, it stays stored, and its job says why.
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

    By then nobody waits long for the import's own row, so that its undo can be cancelled while it runs.
    """
    job = file_import.job if file_import.state == State.UNDOING else None
    stored = Import.objects.filter(pk=file_import.pk, state=State.UNDOING if job else State.STORED)
    if not stored.update(state=State.UPLOADED, state_since=timezone.now(), report={}):
        raise _not_stored()
    if job is not None and not jobs.finish_job(job):
        raise _not_stored()
    DryRun.objects.filter(file_import=file_import).delete()  # it says nothing about what is there now
    audit.record(actor=actor, project=file_import.project, verb="undo import", subject=file_import)
    file_import.state = State.UPLOADED


def _used_now() -> Refused:
    return Refused(_("This import is now in use, so it can't be undone. Reload the page."), code="in_use")


def _not_stored() -> Refused:
    return Refused(_("Only an import that is stored can be undone."), code="not_stored")


def discard(*, file_import: Import, actor: User | None = None) -> None:
    """Delete an import that stored nothing, and those of its files that no other import shares."""
    number, names = file_import.pk, [str(file.content.name) for file in file_import.files.all()]
    if file_import.parts.exists():
        raise Refused(_("Parts of this import are stored. Undo it first."), code="stored")
    with transaction.atomic():
        audit.record(actor=actor, project=file_import.project, verb="discard import", subject=file_import)
        Import.objects.select_for_update().filter(pk=file_import.pk).first()  # the import before its job, as everywhere
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
    """Refuse when a row of any app points at one of ``rows``; rows of the models in ``but`` go with them."""
    for row in rows:
        if users := _users(row, but):
            sentence = _("“%(row)s” is in use by %(users)s. Undo those first.")
            raise Refused(sentence % {"row": row, "users": ", ".join(users)}, code="in_use")


def _users(row: models.Model, but: tuple[type[models.Model], ...]) -> list[str]:
    """The rows that point at ``row``, by kind: ``2 campaigns``."""
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
    require_unused(datasets, but=(Item, part))
    part._default_manager.filter(from_dataset__in=datasets)._raw_delete(using="default")
    # Raw, because the ORM would load every item to look for rows that the check above has ruled out.
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
