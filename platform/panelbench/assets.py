"""Static files: compressed, named by a digest of their content, and cached permanently by browsers.

`panelbench up`, `panelbench demo` and the image collect them (`collect`). If nothing was collected, as in tests and
with DEBUG, files keep their plain names. Large files of libraries that few pages use (the API's documentation) are not
processed, so that collecting takes a second and not half a minute.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from whitenoise.storage import CompressedManifestStaticFilesStorage

AS_IT_IS = ("drf_spectacular_sidecar/", "rest_framework/", "django_htmx/ext/")


class AssetStorage(CompressedManifestStaticFilesStorage):
    """Adds digests to the names of the pages' files and compresses them; files that were not collected keep their
    names."""

    support_js_module_import_aggregation = True

    def post_process(self, paths: dict[str, Any], dry_run: bool = False, **options: Any) -> Iterator[Any]:
        own = {name: source for name, source in paths.items() if not name.startswith(AS_IT_IS)}
        yield from super().post_process(own, dry_run, **options)

    def stored_name(self, name: str) -> str:
        kept: str = self.hashed_files.get(self.hash_key(self.clean_name(name)), name)
        return kept


def collect() -> bool:
    """Collect the files into STATIC_ROOT. False if it contains the same files already."""
    digest, stamp = _digest(), settings.STATIC_ROOT / "collected.sha256"
    if stamp.exists() and stamp.read_text() == digest:
        return False
    ignored = [f"{folder}*" for folder in AS_IT_IS]
    call_command("collectstatic", interactive=False, verbosity=0, clear=True, ignore_patterns=ignored)
    stamp.write_text(digest)
    return True


def _digest() -> str:
    """A digest of the version, and of the names and contents of all files."""
    digest = hashlib.sha256(settings.VERSION.encode())
    for folder in map(Path, settings.STATICFILES_DIRS):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                digest.update(f"{path.relative_to(folder)} {path.stat().st_size} ".encode() + path.read_bytes())
    return digest.hexdigest()
