"""Files that contain files (gzip, zip, tar, logs of Inspect AI), opened as streams within bounds, refused if doubtful.

A log of Inspect AI (``.eval``) is a zip of one header and of one file for each sample. It is read as one JSON log.
Members are stored, deflated, or compressed with Zstandard, which pyarrow decompresses.
"""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from shutil import copyfileobj
from tempfile import SpooledTemporaryFile
from typing import IO, BinaryIO, NamedTuple, TypeVar, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from annotation.readers.encoding import open_stream
from annotation.readers.formats import READ_FROM_END
from annotation.readers.problems import FormatError, Problem, Problems, excerpt, visible
from annotation.readers.rows import BOUNDS
from annotation.readers.words import Words

INSPECT_LOG = ".eval"
_ZSTANDARD = 93  # the number of the method in a zip
_HEADERS = ("header.json", "_journal/start.json")  # the headers of a finished and of an unfinished log
_LOCAL = struct.Struct("<4s2B4HL2L2H")  # a member's own header, before its name and its bytes
_LOG_PIECE = 2**16
LARGEST_HEADER = 64 * 2**20  # bytes: the header, without its samples, is kept in memory
File = tuple[str, bytes | BinaryIO]
TAPES = (".tar", ".tar.gz", ".tgz")
ARCHIVES = (".bz2", ".xz", ".zst", ".7z", ".rar", ".lz4", ".br", ".z")
_PROSE = (".md", ".pdf", ".rst", ".docx", ".html", ".bib", ".cff", ".py", ".sh", ".ipynb")
_PROSE_NAMES = ("readme", "licence", "license", "citation", "copying", "changelog", "notice", "source")
_ENCRYPTED = 0x1
_IN_MEMORY = 16 * 2**20
_PIECE = 2**20
_DIRECTORY_FILES, _DIRECTORY_SIZE = 4, 5  # indices into the result of `zipfile._EndRecData`
_TAR_BLOCK, _LONGEST_TAR_NAME = 512, 64 * 2**10  # bytes
# Types of headers that describe the next header: long names, and pax.
_TAR_EXTRAS = (b"L", b"K", tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)
_LONGEST_ENTRY = 1_000  # bytes of a file's entry in an archive's directory, on average
# The exceptions of Python's gzip, zipfile and tarfile for broken bytes, including undocumented ones.
_BROKEN = (BadZipFile, tarfile.TarError, zlib.error, struct.error)
FAULTS = (*_BROKEN, EOFError, OSError, ValueError, OverflowError, RuntimeError)


class InspectLog(io.RawIOBase):
    """The log as one JSON document: the values of the header, then ``samples``. Reads forward, or again from its start.

    Raises ``FormatError`` for an archive that is not a log.
    """

    def __init__(self, name: str, archive: ZipFile, packed: BinaryIO) -> None:
        self.name, self._archive, self._packed = name, archive, packed
        members = {entry.filename: entry for entry in archive.infolist()}  # of equal names the last counts, as there
        header = next((members[path] for path in _HEADERS if path in members), None)
        if header is None:
            text = Words("a .eval archive without header.json")
            raise FormatError(Problem(name, None, None, text, Words("a log of Inspect AI"), "archive"))
        self._header = header
        self._samples = [
            entry for path, entry in sorted(members.items()) if path.startswith("samples/") and path.endswith(".json")
        ]
        self._pieces, self._rest = self._written(), b""

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go back to the start."""
        self._pieces, self._rest = self._written(), b""
        return 0

    def read(self, size: int = -1) -> bytes:
        parts, length = [self._rest], len(self._rest)
        while size < 0 or length < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            parts.append(piece)
            length += len(piece)
        whole = b"".join(parts)
        end = len(whole) if size < 0 else size
        self._rest = whole[end:]
        return whole[:end]

    def _written(self) -> Iterator[bytes]:
        header = self._whole_header().strip()
        if not header.startswith(b"{") or not header.endswith(b"}"):
            raise BadZipFile(Words("%(name)s is not one JSON object", name=self._header.filename))
        yield header[:-1].rstrip()
        yield b',\n"samples": ['
        for number, sample in enumerate(self._samples):
            yield b",\n" if number else b"\n"
            yield from self._member(sample)
        yield b"]}"

    def _whole_header(self) -> bytes:
        pieces, length = [], 0
        for piece in self._member(self._header):
            pieces.append(piece)
            length += len(piece)
            if length > LARGEST_HEADER:
                text = Words(
                    "%(name)s of more than %(number)s MB when unpacked",
                    name=self._header.filename,
                    number=f"{LARGEST_HEADER / 2**20:,.0f}",
                )
                raise FormatError(Problem(self.name, None, None, text, Words("a log of Inspect AI"), "size"))
        return b"".join(pieces)

    def _member(self, entry: ZipInfo) -> Iterator[bytes]:
        if entry.compress_type in (ZIP_STORED, ZIP_DEFLATED):
            with self._archive.open(entry) as stream:
                while piece := stream.read(_LOG_PIECE):
                    yield piece
        elif entry.compress_type == _ZSTANDARD:
            yield from self._unpacked(entry)
        else:
            raise NotImplementedError(f"method {entry.compress_type}")

    def _unpacked(self, entry: ZipInfo) -> Iterator[bytes]:
        try:
            import pyarrow as pa  # type: ignore[import-untyped]
        except ImportError:
            text = Words(
                "%(name)s, compressed with %(method)s, for which the server needs pyarrow",
                name=visible(entry.filename),
                method="Zstandard",
            )
            expected = Words("pip install 'panelbench[parquet]' on the server, or inspect log dump LOG.eval > log.json")
            raise FormatError(Problem(self.name, None, None, text, expected, "archive")) from None
        with pa.CompressedInputStream(pa.PythonFile(_Part(self._packed, entry), mode="r"), "zstd") as stream:
            while piece := stream.read(_LOG_PIECE):
                yield piece


class _Part(io.RawIOBase):
    """The bytes of a member as they are in the archive."""

    def __init__(self, packed: BinaryIO, entry: ZipInfo) -> None:
        packed.seek(entry.header_offset)
        head = packed.read(_LOCAL.size)
        if len(head) < _LOCAL.size or head[:4] != b"PK\x03\x04":
            raise BadZipFile(Words("a member without its header"))
        *_fields, name_length, extra_length = _LOCAL.unpack(head)
        self._packed = packed
        self._at = entry.header_offset + _LOCAL.size + name_length + extra_length
        self._left = entry.compress_size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        self._packed.seek(self._at)
        piece = self._packed.read(self._left if size < 0 else min(size, self._left))
        self._at += len(piece)
        self._left -= len(piece)
        return piece


class UnpackBounds(NamedTuple):
    """The most bytes that one file may unpack to: ``total`` (by default `BOUNDS.unpacked`), and above ``floor`` at most
    ``ratio`` times the size of the file."""

    total: int | None = None
    floor: int = 256 * 2**20
    ratio: int = 100
    members: int = 10_000


def unpacked_files(files: Iterable[File], problems: Problems, bounds: UnpackBounds = UnpackBounds()) -> Iterator[File]:  # noqa: B008
    """The files; each gzip, zip or tar is replaced by its members, with names such as ``study.zip/labels.csv``.

    A stream can be read until the next file is requested. Never raises: a file that cannot be opened is a problem. A
    later fault raises ``FormatError`` when the stream is read, where every reader expects it.
    """
    for name, raw in files:
        try:
            yield from _opened(name, raw, problems, bounds)
        except FormatError as error:
            problems.add(error.problem)


def is_compressed(name: str) -> bool:
    """Whether a small file with this name may unpack to a large one."""
    return is_container(name) or name.lower().endswith(READ_FROM_END)


def is_container(name: str) -> bool:
    """Whether a file with this name contains files."""
    return name.lower().endswith((".gz", ".zip", INSPECT_LOG, *TAPES, *ARCHIVES))


def _opened(name: str, raw: bytes | BinaryIO, problems: Problems, bounds: UnpackBounds) -> Iterator[File]:
    lower = name.lower()
    if lower.endswith(ARCHIVES):
        text = Words("an archive of the kind %(kind)s", kind=next(end for end in ARCHIVES if lower.endswith(end)))
        expected = Words("its files themselves, each as it is or compressed with gzip, or all in one .zip")
        raise FormatError(Problem(name, None, None, text, expected, "archive"))
    if lower.endswith(TAPES):
        yield from _untarred(name, open_stream(raw), problems, bounds)
    elif lower.endswith(".gz"):
        yield from _gunzipped(name, open_stream(raw), bounds)
    elif lower.endswith(INSPECT_LOG):
        yield from _inspected(name, open_stream(raw), bounds)
    elif lower.endswith(".zip"):
        yield from _unzipped(name, open_stream(raw), problems, bounds)
    else:
        yield name, raw


def _gunzipped(name: str, packed: BinaryIO, bounds: UnpackBounds) -> Iterator[File]:
    meter = UnpackedBytes(name, _size(packed), bounds)
    inner = name[: -len(".gz")]
    if is_container(inner):
        raise FormatError(_nested(name, inner))
    with gzip.GzipFile(fileobj=packed) as stream:
        yield from _readable(inner, cast(BinaryIO, UnpackedStream(name, stream, meter)))


def open_zip(name: str, packed: BinaryIO, most: int) -> ZipFile:
    """An archive of at most ``most`` files: a longer directory is not even read. Raises ``FormatError`` or `FAULTS`."""
    packed.seek(0)
    end = zipfile._EndRecData(packed)  # type: ignore[attr-defined]  # where the directory begins, as ZipFile finds it
    packed.seek(0)
    if end and (end[_DIRECTORY_FILES] > most or end[_DIRECTORY_SIZE] > most * _LONGEST_ENTRY):
        text = Words("%(number)s files or more", number=f"{max(most + 1, end[_DIRECTORY_FILES]):,}")
        raise FormatError(
            Problem(name, None, None, text, Words("at most %(number)s in one archive", number=f"{most:,}"), "size")
        )
    return ZipFile(packed)


def _open_archive(name: str, packed: BinaryIO, bounds: UnpackBounds) -> ZipFile:
    try:
        return open_zip(name, packed, bounds.members)
    except FormatError:
        raise
    except FAULTS as error:
        raise FormatError(_broken(name, error)) from None


def _unzipped(name: str, packed: BinaryIO, problems: Problems, bounds: UnpackBounds) -> Iterator[File]:
    meter = UnpackedBytes(name, _size(packed), bounds)
    with _open_archive(name, packed, bounds) as archive:
        entries = {entry: entry.filename for entry in archive.infolist() if not entry.is_dir()}
        wanted = _wanted(name, entries, problems, bounds)
        if locked := [entry.filename for entry in wanted if entry.flag_bits & _ENCRYPTED]:
            shown = f"{name}/{visible(locked[0])}"
            raise FormatError(Problem(shown, None, None, Words("a password"), Words("files without one"), "encrypted"))
        for entry in wanted:
            shown = f"{name}/{visible(entry.filename)}"
            try:
                stream = archive.open(entry)
            except FAULTS as error:
                raise FormatError(_broken(shown, error)) from None
            with stream:
                yield from _readable(shown, cast(BinaryIO, UnpackedStream(shown, stream, meter)))


def _inspected(name: str, packed: BinaryIO, bounds: UnpackBounds) -> Iterator[File]:
    meter = UnpackedBytes(name, _size(packed), bounds)
    with _open_archive(name, packed, bounds) as archive, InspectLog(name, archive, packed) as log:
        shown = f"{name}/log.json"
        yield shown, cast(BinaryIO, UnpackedStream(shown, log, meter))


Entry = TypeVar("Entry", ZipInfo, tarfile.TarInfo)


def _wanted(name: str, paths: dict[Entry, str], problems: Problems, bounds: UnpackBounds) -> list[Entry]:
    """The members that are read, out of ``paths``; files that are not data are left out and reported."""
    if len(paths) > bounds.members:
        raise FormatError(
            Problem(
                name,
                None,
                None,
                Words("%(number)s files", number=f"{len(paths):,}"),
                Words("at most %(number)s", number=f"{bounds.members:,}"),
                "size",
            )
        )
    left_out = [path for path in paths.values() if is_not_data(path)]
    wanted = {entry: path for entry, path in paths.items() if not is_not_data(path)}
    if left_out:
        names = ", ".join(map(visible, left_out[:5])) + (", …" if len(left_out) > 5 else "")
        problems.note(
            name,
            Words(
                "%(number)s of its files are not data and were left out: %(names)s.", number=len(left_out), names=names
            ),
        )
    for path in wanted.values():
        if is_container(path):
            raise FormatError(_nested(name, path))
    if repeated := [path for path, count in Counter(wanted.values()).items() if count > 1]:
        text = Words("two files of the name %(name)s", name=excerpt(repeated[0]))
        raise FormatError(Problem(name, None, None, text, Words("a name of its own for each file"), "duplicate_name"))
    if not wanted:
        raise FormatError(Problem(name, None, None, Words("no data file in it"), Words("at least one"), "empty"))
    return list(wanted)


def _untarred(name: str, packed: BinaryIO, problems: Problems, bounds: UnpackBounds) -> Iterator[File]:
    """The members of a tar archive; a compressed one is unpacked to a temporary file first, within the bounds."""
    size = _size(packed)
    with SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
        tape = packed
        if not name.lower().endswith(".tar"):
            tape = cast(BinaryIO, spool)
            with gzip.GzipFile(fileobj=packed) as stream:
                unpacked = UnpackedStream(name, stream, UnpackedBytes(name, size, bounds))
                copyfileobj(unpacked, tape, 2**20)
        meter = UnpackedBytes(name, size, bounds)
        try:
            count = _tar_files(name, tape, bounds)
            archive = tarfile.open(fileobj=tape, mode="r:")  # noqa: SIM115  # closed with its file
            entries = {entry: entry.name.removeprefix("./") for entry in archive.getmembers() if not entry.isdir()}
        except FormatError:
            raise
        except FAULTS as error:
            raise FormatError(_broken(name, error)) from None
        if len(entries) != count:
            raise FormatError(_broken(name, tarfile.ReadError(Words("a header that can't be read"))))
        for entry in _wanted(name, entries, problems, bounds):
            shown = f"{name}/{visible(entries[entry])}"
            member = archive.extractfile(entry) if entry.isreg() and not entry.issparse() else None
            if member is None:
                raise FormatError(
                    Problem(shown, None, None, Words("a link or a special file"), Words("plain files"), "archive")
                )
            with member:
                yield from _readable(shown, cast(BinaryIO, UnpackedStream(shown, member, meter)))


def _tar_files(name: str, tape: BinaryIO, bounds: UnpackBounds) -> int:
    """The number of members of a tar archive, without folders. Raises ``FormatError`` if it is truncated or too large,
    and `FAULTS` for a broken header. Python's tarfile stops there without an error, and reads names of any length.
    """
    tape.seek(0)
    count = 0
    while (block := tape.read(_TAR_BLOCK)) != bytes(_TAR_BLOCK):
        if len(block) < _TAR_BLOCK:
            raise EOFError
        entry = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        is_about_next = entry.type in _TAR_EXTRAS
        if is_about_next and entry.size > _LONGEST_TAR_NAME:
            raise FormatError(
                Problem(name, None, None, Words("a name that is too long"), Words("shorter names"), "size")
            )
        count += not is_about_next and not entry.isdir()
        if count > bounds.members:
            most = f"{bounds.members:,}"
            raise FormatError(
                Problem(
                    name,
                    None,
                    None,
                    Words("more than %(number)s files", number=most),
                    Words("at most %(number)s", number=most),
                    "size",
                )
            )
        if not entry.islnk() and not entry.issym():
            tape.seek(-(-entry.size // _TAR_BLOCK) * _TAR_BLOCK, io.SEEK_CUR)
    tape.seek(0)
    return count


def is_not_data(path: str) -> bool:
    """Whether a file is not data, but a resource fork, a dotfile, a paper, a licence or a description of the data."""
    parts = PurePosixPath(path.replace("\\", "/").lower()).parts
    if not parts or parts[0] == "__macosx" or parts[-1] in {"thumbs.db", "desktop.ini", "croissant.json"}:
        return True
    dotted, last = any(part.startswith(".") and part != ".." for part in parts), parts[-1]
    return dotted or last.endswith(_PROSE) or last.partition(".")[0] in _PROSE_NAMES


def _readable(name: str, stream: BinaryIO) -> Iterator[File]:
    """The member as a stream, or copied to a temporary file if its reader needs to seek in it."""
    if not name.lower().endswith(READ_FROM_END):
        yield name, stream
        return
    with SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
        copyfileobj(stream, spool, 2**20)
        spool.seek(0)
        yield name, cast(BinaryIO, spool)


class UnpackedBytes:
    """Counts the unpacked bytes of one file, all its members together."""

    def __init__(self, name: str, size: int, bounds: UnpackBounds) -> None:
        self.name, self.taken, self.bounds = name, 0, bounds
        self._most = min(bounds.total or BOUNDS.unpacked, max(bounds.floor, bounds.ratio * size))

    def count(self, length: int) -> None:
        """Add ``length`` bytes. Raises ``FormatError`` as soon as the total is above the bounds."""
        self.taken += length
        if self.taken > self._most:
            text = Words("more than %(number)s MB when unpacked", number=f"{self._most / 2**20:,.0f}")
            expected = Words(
                "at most %(number)s MB (the operator raises IMPORT_UNPACKED_MB), and above %(floor)s MB at most "
                "%(ratio)s times the file's size; or the files unpacked",
                number=f"{BOUNDS.unpacked / 2**20:,.0f}",
                floor=f"{self.bounds.floor / 2**20:,.0f}",
                ratio=self.bounds.ratio,
            )
            raise FormatError(Problem(self.name, None, None, text, expected, "size"))


class UnpackedStream(io.RawIOBase):
    """The unpacked bytes of a compressed stream; its faults are raised as ``FormatError``."""

    def __init__(self, name: str, stream: IO[bytes] | gzip.GzipFile | InspectLog, meter: UnpackedBytes) -> None:
        self.name, self._stream, self._meter = name, stream, meter
        self._before = meter.taken

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go back to the start, the only position that readers of text ask for."""
        if offset or whence != io.SEEK_SET:
            raise io.UnsupportedOperation(Words("only to the start"))
        self._meter.taken = self._before
        try:
            return self._stream.seek(0)
        except FAULTS as error:
            raise FormatError(_broken(self.name, error)) from None

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size >= 0:
            return self._counted(size)
        return b"".join(iter(lambda: self._counted(_PIECE), b""))  # pieces: a zip bomb is refused early

    def _counted(self, size: int) -> bytes:
        try:
            content = self._stream.read(size)
        except FormatError:
            raise
        except FAULTS as error:
            raise FormatError(_broken(self.name, error)) from None
        self._meter.count(len(content))
        return content


def _size(stream: BinaryIO) -> int:
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    return size


def _nested(name: str, inner: str) -> Problem:
    text = Words("the compressed file %(name)s inside a compressed one", name=excerpt(inner))
    return Problem(name, None, None, text, Words("files that are compressed once"), "nested_archive")


def _broken(name: str, error: Exception) -> Problem:
    if isinstance(error, EOFError):
        return Problem(
            name, None, None, Words("the end of a compressed file that continues"), Words("the rest of it"), "truncated"
        )
    if isinstance(error, NotImplementedError):
        expected = Words("a .zip made with the usual compression (deflate)")
        return Problem(
            name, None, None, Words("a compression that is not read here (%(error)s)", error=error), expected, "archive"
        )
    text = Words("a broken compressed file (%(error)s)", error=str(error) or type(error).__name__)
    return Problem(name, None, None, text, Words("one that unpacks without an error"), "broken_archive")
