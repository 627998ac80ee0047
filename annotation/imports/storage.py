"""Parsed files become rows: they are staged, invisible until complete, and refused as a whole for any problem."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation import bulk
from annotation.campaigns import lock_campaign
from annotation.imports import rating_rows
from annotation.imports.checks import Additions
from annotation.imports.import_jobs import settle
from annotation.imports.rating_rows import RatingsReport, fit_ratings
from annotation.models import (
    Campaign,
    Dataset,
    Import,
    Item,
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

STAGE = 20_000  # the most rows of one transaction
STAGE_BYTES = 8 * 2**20  # about the most bytes of turns and fields in one transaction
PATIENCE = timedelta(minutes=5)  # the longest time for which a living process stages nothing
HELD = 0.4  # the share of the time of storing ratings that is comparing them with stored ones; the rest is writing
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
    """A file with problems: nothing of it was stored; `problems` are the problems with their places."""

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

    Some thousand items are staged in each transaction while the dataset is `loading` and invisible; then one
    compare-and-set makes it `ready`, and its ``import`` stored. ``staged`` is called after each transaction with the
    number stored so far.
    ``names_shown``: generators' names in the items, if they were checked (`Dataset.names_shown`).
    After an error the staged items are deleted; if the process dies, `sweep` or the next try to store the same
    ``import`` deletes them.
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


def copied_row(item: Item) -> ItemRow:
    """An item as a row, for a dataset that is derived from its own."""
    return ItemRow(
        external_id=item.external_id,
        language=item.language,
        generator=item.generator or None,
        scenario=item.scenario or None,
        title=item.title,
        turns=item.turns,
        fields=item.fields,
        attributes=item.attributes,
        content_warning=item.content_warning,
        line=item.ordinal + 1,
    )


def name_taken(name: str) -> Refused:
    """The refusal of a name that a dataset of the project has already."""
    sentence = _("This project already has a dataset called “%(name)s”. Choose another name.") % {"name": name}
    return Refused(sentence, code="name_taken", fields={"name": sentence})


def unstage(file_import: Import) -> None:
    """Delete the staged items of an import that did not end."""
    for abandoned in Dataset.objects.filter(file_import=file_import, state=Dataset.State.LOADING):
        _clear(abandoned)


def sweep(*, older_than: timedelta = PATIENCE) -> int:
    """Delete loading datasets into which nothing has been staged for ``older_than``; return their number."""
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
    """The rows in lists of a size that suits memory and one transaction."""
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
    """Delete a loading dataset; never one that is ready, or that has grown since ``untouched_since``."""
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

    A rater becomes the annotator with that pseudonym. A rating that is stored already is counted as collapsed if it is
    equal, and refused if it differs. A row without a score is counted as missing, and nothing is stored for it.
    ``progress`` is called with the share that is done.
    """
    with transaction.atomic():
        # Two simultaneous imports would not see each other's ratings. The lock does not block annotators' submissions.
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
    """Store a version that extends ``dataset``, its newest version, by the new ones of ``items``.

    Layout and origin are copied from ``dataset``, and the licence too unless another is given. An item that is stored
    already is counted as collapsed. If the id of a row belongs to another item, `FileRefused` names every such row; an
    append without new items is refused too. Of two simultaneous appends one is refused, and can be started again.
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
    """The new rows. After the last one, raises ``Refused`` for problems in other rows, or if no row was new."""
    yield from additions.among(items)
    if additions.problems:
        raise FileRefused(additions.problems)
    if not additions.new:
        sentence = _("All items are already in “%s”: there is nothing to add.")
        raise Refused(sentence % additions.dataset, code="nothing_new")
