"""More items for a dataset: a new version that has every item of the one before, the same rows, and its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from django.db import IntegrityError
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.refusals import Refused
from annotation.imports import storage as storing
from annotation.imports.storage import FileRefused
from annotation.models import Dataset, Import, Item
from annotation.readers import ItemRow, Problem, Problems, Report, content_digest, excerpt

AT_ONCE = 1_000


class Additions:
    """Compare rows with a version: new ones pass, identical ones collapse, another item with the same id is refused.

    The version never changes, so rows held against it twice come out the same.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.new = self.collapsed = 0
        self.problems = Problems()

    def among(self, rows: Iterable[ItemRow]) -> Iterator[ItemRow]:
        """The rows whose ids the version has not got, in bounded memory."""
        source = iter(rows)
        while some := list(islice(source, AT_ONCE)):
            known = self._known(some)
            for row in some:
                if row.external_id not in known:
                    self.new += 1
                    yield row
                else:
                    self._meet(row, *known[row.external_id])

    def _known(self, rows: list[ItemRow]) -> dict[str, tuple[str, int]]:
        """By id, content digest and the version that brought it."""
        found = Item.objects.of(self.dataset).filter(external_id__in=[row.external_id for row in rows]).order_by()
        columns = found.values_list("external_id", "digest", "dataset__version")
        return {name: (digest, version) for name, digest, version in columns}

    def _meet(self, row: ItemRow, digest: str, version: int) -> None:
        if digest == content_digest(row):
            self.collapsed += 1
            return
        text = f"{excerpt(row.external_id)}, which is another item in {self.dataset.name} v{version}"
        expected = "an id of its own for each item, or the very same item"
        self.problems.refuse(Problem(row.file, row.line, "id", text, expected, "duplicate_id"))


def hold(dataset: Dataset, items: Iterable[ItemRow], report: Report) -> Problems:
    """What speaks against adding ``items`` to a version; puts into their report how many of them are new to it."""
    additions = Additions(dataset)
    report.stored = sum(1 for _each in additions.among(items))
    report.collapsed += additions.collapsed
    report.refused += additions.problems.refused
    if additions.collapsed:
        report.notes.append(f"{additions.collapsed:,} items are in {dataset} already, saying the same.")
    if additions.collapsed and not (report.stored or report.refused):
        expected = f"at least one item that is not in {dataset}"
        additions.problems.add(Problem("", None, None, "no new item", expected, "nothing_new"))
    return additions.problems


def append(
    *,
    dataset: Dataset,
    items: Iterable[ItemRow],
    file_import: Import | None = None,
    licence: str = "",
    actor: User | None = None,
    staged: Callable[[int], None] | None = None,
) -> Dataset:
    """Store a version that extends ``dataset``, the newest of its line, by those of ``items`` that it has not got.

    Layout and origin are those of ``dataset``, and so is the licence unless another is said. An item that is there
    already collapses; an id that means another item there is refused, as `FileRefused` naming every such row, and so
    is an append of nothing new. Of two appends at once one is refused, and can be started again.
    """
    _require_newest(dataset)
    try:
        return storing.store(
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
    """The new rows; at their end, refuses what was found among the others, and that there was none."""
    yield from additions.among(items)
    if additions.problems:
        raise FileRefused(additions.problems)
    if not additions.new:
        sentence = _("All items are already in “%s”: there is nothing to add.")
        raise Refused(sentence % additions.dataset, code="nothing_new")
