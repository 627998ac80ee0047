"""The attributes of a dataset's items: as columns of a ratings table, and as what a form offers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from math import isfinite
from typing import Any, NamedTuple

from django.core.cache import caches

from accounts.models import Project
from analytics.ratings.rating_rows import ATTRIBUTE, TAKEN
from annotation.imports.criterion_names import labels_known, names_known
from annotation.imports.parsing import RATING_COLUMN
from annotation.models import Dataset, Item
from annotation.readers import possible_rater_columns
from annotation.writers.tables import Column, nested, number

MOST_VALUES = 200
KEPT_SECONDS = 86_400


class ItemAttributes:
    """The attributes of a dataset's items as text, a column for each key that some item has.

    A key that the ratings table or an export has a column for is called `attribute_KEY`, spaces are underscores. Keys
    of ``without`` are left out.
    """

    def __init__(self, dataset: Dataset, *, without: Collection[str] = ()) -> None:
        having = Item.objects.of(dataset).exclude(attributes={}).values_list("external_id", "attributes")
        found: dict[str, Mapping[str, Any]] = dict(having.iterator())
        self.keys = tuple(sorted({key for attributes in found.values() for key in attributes} - {*without}))
        self.names = tuple(self._named())
        self.columns = tuple(map(Column, self.names))
        self._nothing: tuple[None, ...] = (None,) * len(self.keys)
        self._found = {
            item: tuple(attribute_text(values.get(key)) for key in self.keys) for item, values in found.items()
        }

    def of(self, item: str) -> tuple[str | None, ...]:
        """What an item has in each of the columns."""
        return self._found.get(item, self._nothing)

    def values(self) -> dict[str, tuple[str, ...]]:
        """By column, the values that occur, sorted; nothing where there are more than MOST_VALUES."""
        found = {name: {row[place] for row in self._found.values()} for place, name in enumerate(self.names)}
        return {
            name: tuple(sorted(value for value in values if value is not None)) if len(values) <= MOST_VALUES else ()
            for name, values in found.items()
        }

    def numeric(self) -> tuple[str, ...]:
        """The columns of which the first value is a number."""
        return tuple(name for place, name in enumerate(self.names) if self._begins_with_a_number(place))

    def _begins_with_a_number(self, place: int) -> bool:
        first = next((row[place] for row in self._found.values() if row[place] is not None), None)
        try:
            return first is not None and isfinite(float(first))
        except ValueError:
            return False

    def _named(self) -> Iterator[str]:
        names = set(TAKEN)
        for key in self.keys:
            name = re.sub(r"\s+", "_", key.strip()) or ATTRIBUTE
            while name in names:
                name = f"{ATTRIBUTE}{name}"
            names.add(name)
            yield name


class OfferedAttribute(NamedTuple):
    """An attribute that an export would contain; ``is_personal``: it looks like a person's scores or name."""

    name: str
    is_personal: bool


MOST_LOOKED_AT = 5_000  # items of a dataset
PERSONAL = re.compile(r"(?i)(?:^|[_ .-])(?:name|e-?mail|author|user(?:name)?|phone|person)(?:$|[_ .-])")


def offered_attributes(project: Project) -> tuple[OfferedAttribute, ...]:
    """The attributes of all items of a project, for a choice of those that an export leaves out."""
    ready = Dataset.objects.ready().filter(project=project)
    pks = sorted(ready.values_list("pk", flat=True))  # imports may end in another order than they began
    name = f"attributes-of-project:{project.pk}:{sha256(str(pks).encode()).hexdigest()}"
    if (kept := caches["content"].get(name)) is None:
        having = Item.objects.filter(dataset__in=ready).exclude(attributes={}).order_by("pk")
        values: dict[str, set[str]] = {}
        looked_at: Counter[int] = Counter()
        for dataset, attributes in having.values_list("dataset", "attributes").iterator():
            looked_at[dataset] += 1
            for key, value in attributes.items():
                cells = values.setdefault(key, set())
                if looked_at[dataset] <= MOST_LOOKED_AT and len(cells) <= MOST_VALUES:
                    cells.add(attribute_text(value) or "")
        people = possible_rater_columns(values, names_known(project), labels_known(project))
        kept = [
            (key, key in people or bool(RATING_COLUMN.search(key) or PERSONAL.search(key))) for key in sorted(values)
        ]
        caches["content"].set(name, kept, KEPT_SECONDS)
    return tuple(OfferedAttribute(*one) for one in kept)


class AttributeChoices(NamedTuple):
    """What a form offers of a dataset's attributes: `keys`, the columns that hold them, `values` by column, and the
    columns with numbers.
    """

    keys: tuple[str, ...]
    names: tuple[str, ...]
    values: dict[str, tuple[str, ...]]
    numeric: tuple[str, ...]


def attribute_choices(dataset: Dataset) -> AttributeChoices:
    """The attributes of a dataset's items. The items of a version never change: they are read once and kept."""
    name = f"attributes:{dataset.pk}:{dataset.created_at.timestamp()}"
    if (kept := caches["content"].get(name)) is None:
        found = ItemAttributes(dataset)
        kept = (found.keys, found.names, found.values(), found.numeric())  # plain: other code has to read it, too
        caches["content"].set(name, kept, KEPT_SECONDS)
    return AttributeChoices(*kept)


def attribute_text(value: Any) -> str | None:
    """An attribute as a cell or an address writes it: true, 3, a word; lists and objects as JSON; None without one."""
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return nested(value)
    return number(value)
