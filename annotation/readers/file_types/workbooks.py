"""An Excel workbook (.xlsx): its sheets, its texts and which numbers are dates, without loading it whole into memory.

The parts are read with expat alone. They may not contain a document type, so no entity is ever expanded.
"""

from __future__ import annotations

import posixpath
import re
from array import array
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, NamedTuple
from xml.parsers import expat

from annotation.readers.archives import FAULTS, UnpackBounds, UnpackedBytes, UnpackedStream, open_zip
from annotation.readers.encoding import OLD_EXCEL
from annotation.readers.problems import FormatError, Problem
from annotation.readers.rows import BOUNDS, MEGABYTE, too_long_error
from annotation.readers.words import Words

Start = Callable[[str, dict[str, str]], None]
End = Callable[[str], None]
Text = Callable[[str], None]
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_PIECE = 2**16
_IN_MEMORY = 32 * 2**20
_SMALL_PART = 16 * 2**20  # bytes of a part that lists what is in the workbook
_LONGEST_TAG = 2**20  # bytes
_DEEPEST = 200  # tags inside tags
_MOST_STRINGS = 10_000_000  # shared texts; some bytes of memory are needed for each
_WHOLE = Words("a workbook that Excel opens without repairing it")


class Sheet(NamedTuple):
    """A sheet with cells, and the part that contains them."""

    name: str
    part: str


class Workbook:
    """Opens a workbook; the caller must ``close`` it. Raises ``FormatError`` if the workbook is broken."""

    def __init__(self, name: str, stream: BinaryIO) -> None:
        self.name = name
        head = stream.read(len(OLD_EXCEL))
        if head == OLD_EXCEL:
            text = Words("a workbook with a password, or an old one (.xls)")
            raise FormatError(Problem(name, None, None, text, Words("an .xlsx without a password"), "encrypted"))
        self._meter = UnpackedBytes(name, stream.seek(0, 2), UnpackBounds())
        self._text_length = 0  # characters of texts given to cells
        try:
            self._archive = open_zip(name, stream, UnpackBounds().members)
        except FormatError:
            raise
        except FAULTS as error:
            raise self.broken(Words("no workbook, or one that was cut (%(error)s)", error=error)) from None
        self._strings: _Strings | None = None
        self._book = self._target("", "officeDocument") or "xl/workbook.xml"
        self.starts_1904 = False
        self.sheets = list(self._listed())

    def close(self) -> None:
        """Close the archive and the temporary file of texts."""
        if self._strings:
            self._strings.close()
        self._archive.close()

    def broken(self, actual: str, code: str = "broken_workbook") -> FormatError:
        """The error for a broken workbook."""
        return FormatError(Problem(self.name, None, None, actual, _WHOLE, code))

    def string(self, index: str) -> str:
        """One of the texts that cells share."""
        if self._strings is None:
            self._strings = self._read_strings()
        text = self._strings.get(int(index)) if index.isdecimal() else None
        if text is None:
            raise self.broken(Words("a cell that refers to text number %(number)s, which is not there", number=index))
        self._text_length += len(text)
        if self._text_length > BOUNDS.unpacked:
            text = Words(
                "cells of more than %(number)s million characters together", number=f"{BOUNDS.unpacked // MEGABYTE:,}"
            )
            expected = Words(
                "at most %(number)s MB; the operator raises IMPORT_UNPACKED_MB",
                number=f"{BOUNDS.unpacked // MEGABYTE:,}",
            )
            raise FormatError(Problem(self.name, None, None, text, expected, "size"))
        return text

    def moments(self) -> list[str]:
        """By style: ``date``, ``time`` where the hour shows too, ``span`` for hours counted, or ``""`` for a number."""
        from openpyxl.styles.numbers import BUILTIN_FORMATS

        part = self._target(self._book, "styles")
        formats: dict[str, str] = {str(key): code for key, code in BUILTIN_FORMATS.items()}
        styles: list[str] = []
        for parent, tag, attributes in self._tags(part) if part else ():
            if tag == "numFmt":
                formats[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
            elif tag == "xf" and parent == "cellXfs":
                styles.append(attributes.get("numFmtId", "0"))
        return [_moment_kind(formats.get(style, "")) for style in styles]

    def walk(
        self, part: str, start: Start, end: End, text: Text, most: int | None = None
    ) -> Generator[None, None, None]:
        """Parse a part of at most ``most`` bytes, and yield after each piece, when the callbacks have its elements.
        Names have no namespace prefix, and entities are not expanded."""
        read = 0
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        with closing(self._opened(part)) as stream:
            try:
                while piece := stream.read(_PIECE):
                    parser.Parse(piece, False)
                    read += len(piece)
                    # The bytes that the callbacks have not received yet are one tag, which the parser keeps whole.
                    if read - parser.CurrentByteIndex > _LONGEST_TAG or (most and read > most):
                        raise self.broken(
                            Words("a tag or a list in %(part)s that no spreadsheet program writes", part=part)
                        )
                    yield
                parser.Parse(b"", True)
            except expat.ExpatError as error:
                raise self.broken(Words("broken XML in %(part)s (%(error)s)", part=part, error=error)) from None
        yield

    def _refuse_doctype(self, *declared: object) -> None:
        raise self.broken(Words("a document type, which no workbook has"))

    def _opened(self, part: str) -> UnpackedStream:
        try:
            return UnpackedStream(self.name, self._archive.open(part), self._meter)
        except KeyError:
            raise self.broken(Words("no part %(part)s", part=part)) from None
        except FAULTS as error:
            raise self.broken(Words("a part that cannot be opened (%(error)s)", error=error)) from None

    def _tags(self, part: str) -> Iterator[tuple[str, str, dict[str, str]]]:
        """(parent, name, attributes) of the elements of a small part."""
        tags: list[tuple[str, str, dict[str, str]]] = []
        within = [""]

        def start(tag: str, attributes: dict[str, str]) -> None:
            tags.append((within[-1], local_name(tag), {local_name(key): value for key, value in attributes.items()}))
            within.append(local_name(tag))
            if len(within) > _DEEPEST:
                raise self.broken(Words("tags in %(part)s that are nested too deeply", part=part))

        def end(tag: str) -> None:
            within.pop()

        for _ in self.walk(part, start, end, lambda text: None, _SMALL_PART):
            yield from tags
            tags.clear()

    def _targets(self, part: str) -> Iterator[tuple[str, str, str]]:
        """(id, kind, part) of what a part refers to; ``""`` is the workbook as a whole."""
        folder, file = posixpath.split(part)
        relations = posixpath.join(folder, "_rels", f"{file}.rels")
        if relations not in self._archive.namelist():
            return
        for _, tag, attributes in self._tags(relations):
            if tag == "Relationship" and attributes.get("TargetMode") != "External":
                kind = attributes.get("Type", "").rpartition("/")[2]
                target = posixpath.normpath(posixpath.join("/", folder, attributes.get("Target", "")))
                yield attributes.get("Id", ""), kind, target.lstrip("/")

    def _target(self, part: str, kind: str) -> str | None:
        return next((target for _, relation, target in self._targets(part) if relation == kind), None)

    def _listed(self) -> Iterator[Sheet]:
        parts = {key: target for key, kind, target in self._targets(self._book) if kind == "worksheet"}
        for _, tag, attributes in self._tags(self._book):
            if tag == "workbookPr":
                self.starts_1904 = attributes.get("date1904", "0") in {"1", "true"}
            elif tag == "sheet" and attributes.get("id") in parts:
                yield Sheet(attributes.get("name", ""), parts[attributes["id"]])

    def _read_strings(self) -> _Strings:
        strings, part = _Strings(self), self._target(self._book, "sharedStrings")
        for _ in self.walk(part, strings.start, strings.end, strings.text) if part else ():
            pass
        return strings


class _Strings:
    """The texts that cells share, on disk if they are large."""

    def __init__(self, workbook: Workbook) -> None:
        self._file = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed with the workbook
        self._ends = array("Q", [0])
        self._workbook = workbook
        self._collected = TextCollector(workbook.name)

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._collected.start(local_name(tag))

    def text(self, text: str) -> None:
        self._collected.text(text)

    def end(self, tag: str) -> None:
        self._collected.end(local_name(tag))
        if local_name(tag) == "si":
            written = self._file.write(self._collected.taken().encode("utf-8", "surrogatepass"))
            self._ends.append(self._ends[-1] + written)
            if len(self._ends) > _MOST_STRINGS:
                raise self._workbook.broken(Words("more than %(number)s texts", number=f"{_MOST_STRINGS:,}"), "size")

    def get(self, index: int) -> str | None:
        if index + 1 >= len(self._ends):
            return None
        start, end = self._ends[index], self._ends[index + 1]
        self._file.seek(start)
        return self._file.read(end - start).decode("utf-8", "surrogatepass")

    def close(self) -> None:
        self._file.close()


class TextCollector:
    """Collects the text of an element from its runs; phonetic hints are left out."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._pieces: list[str] = []
        self._wanted = False
        self._phonetic_depth = self._length = self._depth = 0

    def start(self, tag: str) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            actual = Words("tags that are nested too deeply")
            raise FormatError(Problem(self._name, None, None, actual, _WHOLE, "broken_workbook"))
        self._phonetic_depth += tag == "rPh"
        self._wanted = tag in {"t", "v"} and not self._phonetic_depth

    def text(self, text: str) -> None:
        if self._wanted:
            self._pieces.append(text)
            self._length += len(text)
            if self._length > BOUNDS.cell:
                raise too_long_error(self._name, None, Words("a cell"), "cell_size")

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._phonetic_depth -= tag == "rPh"
        self._wanted = False

    def taken(self) -> str:
        """Return the collected text, and start with an empty one."""
        text = "".join(self._pieces)
        self._pieces.clear()
        self._length = 0
        return unescaped(text)


def local_name(tag: str) -> str:
    """A name without its namespace prefix."""
    return tag[tag.find(":") + 1 :]


def unescaped(text: str) -> str:
    """Decode characters that XML does not allow, which a workbook writes as ``_x000D_``."""
    if "_x" not in text:
        return text
    plain = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    try:
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return plain  # half of a surrogate pair, which is refused with its row


def _moment_kind(code: str) -> str:
    from openpyxl.styles.numbers import is_date_format, is_timedelta_format

    if is_timedelta_format(code):
        return "span"
    if not is_date_format(code):
        return ""
    bare = re.sub(r'"[^"]*"|\\.|\[[^\]]*\]', "", code).lower()
    return "time" if "h" in bare or "s" in bare else "date"
