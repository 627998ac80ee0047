"""`panelbench restore FILE`: restore an instance from a backup."""

from __future__ import annotations

import shutil
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from panelbench import backup
from panelbench.backup import Summary


class Command(BaseCommand):
    help = "Restore a backup into an empty instance, on SQLite or PostgreSQL, and migrate it to this version."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="made by `panelbench backup`, or - for standard input")
        parser.add_argument("--replace", action="store_true", help="delete everything that is here first")

    def handle(self, *, file: str, replace: bool, **options: Any) -> None:
        try:
            if file == "-":
                folder = Path(settings.DATA_DIR)  # /tmp is often memory, and small
                folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder) as spooled:  # a zip is read from its end
                    shutil.copyfileobj(sys.stdin.buffer, spooled)
                    summary = _read(spooled, replace)
            else:
                with Path(file).open("rb") as source:
                    summary = _read(source, replace)
        except backup.CannotRestore as error:
            raise CommandError(f"Not restored: {error}") from error.__cause__
        except OSError as error:
            raise CommandError(f"Not restored: {error.strerror or error}.") from None
        self.stderr.write(
            f"{summary.rows:,} rows of {len(summary.tables)} tables and {summary.files:,} files, "
            f"made {summary.made_at} by version {summary.version}."
        )
        if summary.other_key:
            self.stderr.write(
                "SECRET_KEY is not the one of the backup: everybody signs in again, and webhooks have new secrets."
            )


def _read(source: IO[bytes], replace: bool) -> Summary:
    source.seek(0)
    return backup.restore_backup(source, replace=replace)
