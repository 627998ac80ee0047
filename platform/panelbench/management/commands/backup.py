"""`panelbench backup FILE`: the whole instance as one file."""

from __future__ import annotations

import contextlib
import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from panelbench import backup
from panelbench.backup import Summary


class Command(BaseCommand):
    help = "Write the whole instance, tables and uploaded files, to one file, while it runs. `-` is standard output."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a file that is not there yet, or - for standard output")
        parser.add_argument(
            "--without-key", action="store_false", dest="with_key", help="leave the signing key out, to keep it apart"
        )

    def handle(self, *, file: str, with_key: bool, **options: Any) -> None:
        try:
            if file == "-":
                summary = backup.write_backup(sys.stdout.buffer, with_key=with_key)
            else:
                summary = _written(Path(file), with_key=with_key)
        except backup.CannotBackUp as error:
            raise CommandError(f"No backup: {error}") from None
        except OSError as error:
            raise CommandError(f"No backup: {error.strerror or error}.") from None
        self.stderr.write(
            f"{summary.rows:,} rows of {len(summary.tables)} tables and {summary.files:,} files"
            f"{', with the signing key' if summary.has_key else ''}. Keep it as safe as the instance itself."
        )
        for name in summary.missing:
            self.stderr.write(f"not there any more: {name}")


def _written(path: Path, *, with_key: bool) -> Summary:
    """Write to a temporary name and rename at the end, so that a partial backup never has the final name."""
    if path.exists():
        raise CommandError(f"No backup: {path} is there already.")
    part = path.with_name(f"{path.name}.part")
    try:
        with os.fdopen(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as out:
            summary = backup.write_backup(out, with_key=with_key)
            out.flush()
            os.fsync(out.fileno())
        part.rename(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()
    return summary
