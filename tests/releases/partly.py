"""Bring an empty database as far as a commit between two releases left it, as a process of its own.

`python -m tests.releases.partly accounts.0015_batch_jobs annotation.0023_note_of_repeat ...` applies the migrations up
to these one by one, and names those of the first squash as applied: it made the same tables in one step
(docs/decisions/0035).
"""

from __future__ import annotations

import os
import sys

FIRST_SQUASH = {
    "accounts": "0015_batch_jobs",
    "annotation": "0023_note_of_repeat",
    "judging": "0017_batches",
    "analytics": "0012_gate",
}


def migrate_partly(last: list[tuple[str, str]]) -> None:
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor
    from django.db.migrations.loader import MigrationLoader

    loader = MigrationLoader(connection, replace_migrations=False)
    for node, squashed in loader.replacements.items():
        loader.graph.remove_replacement_node(node, squashed.replaces)
    executor = MigrationExecutor(connection)
    executor.loader = loader
    executor.migrate(last)
    for app, name in FIRST_SQUASH.items():
        executor.recorder.record_applied(app, f"0001_squashed_{name}")


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panelbench.settings")
    django.setup()
    given = [argument.partition(".") for argument in sys.argv[1:]]
    migrate_partly([(app, name) for app, _, name in given])
