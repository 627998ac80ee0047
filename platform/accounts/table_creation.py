"""The operation of squashed migrations: create all tables of an app at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import CreateModel
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class CreateTables(Operation):
    """Create these models' tables, with indexes and constraints.

    Django renders every related model anew for each `CreateModel`: 3 s of the 4 s that an empty database took. Here
    they are rendered once, when the state has all of them; so they may also refer to each other in circles.
    """

    serialization_expand_args = ["operations"]

    def __init__(self, operations: Sequence[CreateModel]) -> None:
        self.operations = operations

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        state.__dict__.pop("apps", None)  # a cached property
        for operation in self.operations:
            operation.state_forwards(app_label, state)

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        for operation in self.operations:
            schema_editor.create_model(to_state.apps.get_model(app_label, operation.name))

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        for operation in reversed(self.operations):
            schema_editor.delete_model(from_state.apps.get_model(app_label, operation.name))

    def describe(self) -> str:
        return f"Create {len(self.operations)} tables"
