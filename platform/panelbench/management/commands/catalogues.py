"""Update the catalogues in `locale/` with the sentences that the code marks for translation, and compile them.

For a checkout; docs/translating.md explains how to use it. Uses Babel, so GNU gettext is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils.translation.template import templatize

FOLDERS = ("templates", "platform", "annotation", "judging", "analytics")
KEYWORDS = {
    **DEFAULT_KEYWORDS,
    **{f"{name}_lazy": DEFAULT_KEYWORDS[name] for name in ("gettext", "ngettext", "pgettext")},
}
_CALL = re.compile(rf"\b(?:{'|'.join(KEYWORDS)})\s*\(".encode())


def sources(root: Path) -> Iterator[Path]:
    """All files that can contain marked sentences."""
    for folder in FOLDERS:
        for suffix in ("html", "txt", "py"):
            yield from sorted((root / folder).rglob(f"*.{suffix}"))


def extracted(root: Path, paths: Iterable[Path]) -> Catalog:
    """A catalogue of the marked sentences in ``paths``, without translations."""
    catalogue = Catalog(fuzzy=False)
    for path in paths:
        code = _as_python(path)
        if not _CALL.search(code):  # most modules say nothing, and Babel takes long over each
            continue
        marked = extract("python", BytesIO(code), KEYWORDS, ["Translators:"], {"encoding": "utf-8"})
        for line, message, comments, context in marked:
            place = (path.relative_to(root).as_posix(), line)
            catalogue.add(message, locations=[place], auto_comments=comments, context=context)
    return catalogue


def _as_python(path: Path) -> bytes:
    """The file as Python. Django's `templatize` replaces everything in a template except its sentences; indentation
    is removed."""
    code = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        code = "\n".join(line.strip() for line in templatize(code, origin=str(path)).splitlines())
    return code.encode()


def read_catalogue(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parent.parent.name)


def compiled(catalogue: Catalog) -> bytes:
    """The catalogue in gettext's binary format, without untranslated sentences."""
    translated = deepcopy(catalogue)
    for message in translated:
        if not any(message.string or ()):  # as many empty forms as there are plurals count for Babel as a translation
            message.string = ""
    target = BytesIO()
    write_mo(target, translated)
    return target.getvalue()


def refreshed_catalogue(path: Path, template: Catalog) -> Catalog:
    """Update the catalogue at ``path`` to the sentences of the template, keep their translations, and compile it."""
    catalogue = read_catalogue(path)
    # A copy: a new message would be shared with the next catalogue, which has other plural forms.
    catalogue.update(deepcopy(template), no_fuzzy_matching=True, update_creation_date=False)
    with path.open("wb") as file:
        write_po(file, catalogue, width=120, sort_by_file=True, include_lineno=False, ignore_obsolete=True)
    path.with_suffix(".mo").write_bytes(compiled(catalogue))
    return catalogue


class Command(BaseCommand):
    help = "Update and compile the catalogues in locale/ from what the code marks for translation."

    def handle(self, *args: Any, **options: Any) -> None:
        template = extracted(settings.CHECKOUT_DIR, sources(settings.CHECKOUT_DIR))
        for path in sorted((settings.CHECKOUT_DIR / "locale").glob("*/LC_MESSAGES/django.po")):
            catalogue = refreshed_catalogue(path, template)
            done = sum(1 for message in catalogue if message.id and message.string and all(message.string))
            self.stdout.write(f"{path.parent.parent.name}: {done} of {len(template)} sentences translated")
