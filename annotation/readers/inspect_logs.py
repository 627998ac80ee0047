"""Logs of Inspect AI as it writes them (``.eval``): a zip of one header and of one file for each sample, read as the
JSON log that they make together. Members are stored, deflated, or packed with Zstandard, which pyarrow unpacks."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from annotation.readers.problems import FormatError, Problem, visible

INSPECT_LOG = ".eval"
_ZSTANDARD = 93  # the number of the method in a zip
_HEADERS = ("header.json", "_journal/start.json")  # of a log that has ended, and of one that has not
_LOCAL = struct.Struct("<4s2B4HL2L2H")  # a member's own header, before its name and its bytes
_PIECE = 2**16
LARGEST_HEADER = 64 * 2**20  # bytes: it is held whole, without its samples


class InspectLog(io.RawIOBase):
    """The log as one JSON document: what the header has, then ``samples``. Reads forward, or again from its start.

    Raises ``FormatError`` for an archive that is no log.
    """

    def __init__(self, name: str, archive: ZipFile, packed: BinaryIO) -> None:
        self.name, self._archive, self._packed = name, archive, packed
        members = {entry.filename: entry for entry in archive.infolist()}  # the last of a name counts, as in Inspect
        header = next((members[path] for path in _HEADERS if path in members), None)
        if header is None:
            text = "a .eval archive without header.json"
            raise FormatError(Problem(name, None, None, text, "a log of Inspect AI", "archive"))
        self._header = header
        self._samples = [
            entry for path, entry in sorted(members.items()) if path.startswith("samples/") and path.endswith(".json")
        ]
        self._pieces, self._rest = self._written(), b""

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Back to the start."""
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
            raise BadZipFile(f"{self._header.filename} is not one JSON object")
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
                text = f"{self._header.filename} of more than {LARGEST_HEADER / 2**20:,.0f} MB when unpacked"
                raise FormatError(Problem(self.name, None, None, text, "a log of Inspect AI", "size"))
        return b"".join(pieces)

    def _member(self, entry: ZipInfo) -> Iterator[bytes]:
        if entry.compress_type in (ZIP_STORED, ZIP_DEFLATED):
            with self._archive.open(entry) as stream:
                while piece := stream.read(_PIECE):
                    yield piece
        elif entry.compress_type == _ZSTANDARD:
            yield from self._unpacked(entry)
        else:
            raise NotImplementedError(f"method {entry.compress_type}")

    def _unpacked(self, entry: ZipInfo) -> Iterator[bytes]:
        try:
            import pyarrow as pa  # type: ignore[import-untyped]
        except ImportError:
            text = f"{visible(entry.filename)}, compressed with Zstandard, for which the server needs pyarrow"
            expected = "pip install 'panelbench[parquet]' on the server, or inspect log dump LOG.eval > log.json"
            raise FormatError(Problem(self.name, None, None, text, expected, "archive")) from None
        with pa.CompressedInputStream(pa.PythonFile(_Part(self._packed, entry), mode="r"), "zstd") as stream:
            while piece := stream.read(_PIECE):
                yield piece


class _Part(io.RawIOBase):
    """The bytes of a member as they are in the archive."""

    def __init__(self, packed: BinaryIO, entry: ZipInfo) -> None:
        packed.seek(entry.header_offset)
        head = packed.read(_LOCAL.size)
        if len(head) < _LOCAL.size or head[:4] != b"PK\x03\x04":
            raise BadZipFile("a member without its header")
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
