"""Rows of a hand-written statement as objects of their models.

Django's `Model.from_db` does not look at the names that it is given: it fills in the fields in the order of the model,
whatever the order of the columns. A list in another order puts values into wrong fields, or fails when a field is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from django.db.models import Model

Row = TypeVar("Row", bound=Model)


class ColumnList(Generic[Row]):
    """The columns of a model that a hand-written statement reads, in any order; other fields are deferred.

    The only caller of `Model.from_db` (tests/annotation/test_column_lists.py). Raises ``ValueError`` for a name that is
    no column of the model, or stands twice.
    """

    def __init__(self, model: type[Row], names: Sequence[str]) -> None:
        order = [field.attname for field in model._meta.concrete_fields]
        wrong = [name for name in names if name not in order or list(names).count(name) > 1]
        if wrong or model._meta.pk is None or model._meta.pk.attname not in names:
            raise ValueError(f"{model.__name__}: not a list of its columns with its primary key: {', '.join(names)}")
        self.names = tuple(names)
        self._model = model
        self._places = sorted(range(len(names)), key=lambda place: order.index(names[place]))
        self._in_order = tuple(names[place] for place in self._places)

    def load(self, values: Sequence[Any]) -> Row:
        """The object of one row; ``values`` are in the order of ``names``."""
        if len(values) != len(self.names):
            raise ValueError(f"{self._model.__name__}: {len(values)} values for {len(self.names)} columns")
        return self._model.from_db(None, self._in_order, [values[place] for place in self._places])
