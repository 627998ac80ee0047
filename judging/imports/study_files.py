"""The files of a study's import by the part that each is for, those in an archive unpacked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import BinaryIO, NamedTuple, cast

from django.utils.translation import gettext as _

from accounts.refusals import Refused
from annotation.imports import uploads
from annotation.imports.storage import FileRefused
from annotation.imports.uploads import Kept
from annotation.models import Import
from annotation.readers import (
    File,
    FormatError,
    KnownStudy,
    Problems,
    StudyImport,
    is_not_data,
    open_stream,
    unpacked_files,
    with_constants,
    with_inferred_rubrics,
)
from annotation.readers import known_studies as studies

ARCHIVE = ".zip"
SAID = ("language", "generator", "scenario", "title", "content_warning", "criterion", "rater", "judge", "variant")


class StudyPart(NamedTuple):
    """One import of a study with its files: those that are kept already, and those that come out of an archive."""

    said: StudyImport
    kept: list[Kept]
    unpacked: list[File]

    @property
    def names(self) -> list[str]:
        """The names of its files."""
        return [*(each.file[0] for each in self.kept), *(name for name, _raw in self.unpacked)]

    @property
    def size(self) -> int:
        """How many bytes there are to read."""
        return sum(each.size for each in self.kept) + sum(open_stream(raw).seek(0, 2) for _name, raw in self.unpacked)

    @property
    def digests(self) -> set[str]:
        """The SHA-256 of each file."""
        return {each.sha256 for each in self.kept} | {_digest(raw) for _name, raw in self.unpacked}


class Sorted(NamedTuple):
    """The parts that the files of a study are for, and the names of the data files that are for none."""

    parts: list[StudyPart]
    left_alone: list[str]


def study_of(file_import: Import) -> KnownStudy:
    """The study whose files an import says it has, with what it says of all of them. Raises ``Refused``."""
    known, name = studies(), file_import.target.get("study", "")
    if name not in known:
        sentence = _("The study was not recognised by its files and columns. Choose one: %s.")
        raise Refused(sentence % ", ".join(known), code="no_study")
    return with_constants(known[name], _constants(file_import))


def _constants(file_import: Import) -> dict[str, str]:
    """What is the same in all files; a field that no file has is refused, as it would be passed over."""
    texts: dict[str, str] = file_import.target.get("constants", {})
    if unknown := [name for name in texts if name not in SAID and not name.startswith("attributes.")]:
        sentence = _("There is no field “%(name)s” that can be set for all files. Available: %(fields)s, attributes.….")
        raise Refused(sentence % {"name": unknown[0], "fields": ", ".join(SAID)}, code="unknown_field")
    return texts


@contextmanager
def sorted_files(file_import: Import, study: KnownStudy) -> Iterator[Sorted]:
    """The files of an import, open, by the parts of a study. Raises ``Refused``."""
    with ExitStack() as stack:
        kept = stack.enter_context(uploads.reopened(file_import.files.order_by("pk")))
        loose = [each for each in kept if not each.file[0].lower().endswith(ARCHIVE)]
        packed = [each.file for each in kept if each not in loose]
        unpacked = [file for archive in packed for file in _unpacked(archive, stack)]
        files = [*(each.file for each in loose), *unpacked]
        parts = [
            StudyPart(
                said, [each for each in loose if each.file in taken], [file for file in unpacked if file in taken]
            )
            for said, taken in with_inferred_rubrics(study.parts(files))
        ]
        taken = {name for part in parts for name in part.names}
        if not taken:
            sentence = _("By their names and columns, none of these files belongs to %(study)s: %(files)s.")
            names = ", ".join(name for name, _raw in files)
            raise Refused(sentence % {"study": study.title, "files": names}, code="other_study")
        yield Sorted(parts, [name for name, _raw in files if name not in taken and not is_not_data(name)])


def _unpacked(archive: File, stack: ExitStack) -> list[File]:
    """The members of an archive, each as a file of its own until the end."""
    files: list[File] = []
    problems = Problems()
    try:
        for name, raw in unpacked_files([archive], problems):
            copy = cast(BinaryIO, stack.enter_context(TemporaryFile()))  # noqa: SIM115
            copyfileobj(open_stream(raw), copy)
            files.append((name, copy))
    except FormatError as error:
        problems.add(error.problem)
    if problems:
        raise FileRefused(problems)
    return files


def _digest(raw: bytes | BinaryIO) -> str:
    return hashlib.file_digest(open_stream(raw), "sha256").hexdigest()  # type: ignore[arg-type]
