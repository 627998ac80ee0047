"""Bytes -> text, strictly: as UTF-8 or in the encoding that the mapping names; another one is named and refused."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from io import BytesIO, StringIO
from typing import BinaryIO

from accounts.storable import NUL
from annotation.readers.bounds import BOUNDS, too_long
from annotation.readers.codepages import codec_of, suspected
from annotation.readers.problems import FormatError, Problem, excerpt
from annotation.readers.signatures import require_text

PIECE = 2**20
SHOWN_AROUND = 20
_LONGEST_MARK = 4  # bytes of a byte order mark


def opened(raw: bytes | BinaryIO) -> BinaryIO:
    """A stream over the content, from its start."""
    stream: BinaryIO = BytesIO(raw) if isinstance(raw, bytes) else raw
    if stream.seekable():
        stream.seek(0)
    return stream


def text_pieces(name: str, raw: bytes | BinaryIO, encoding: str | None = None) -> Iterator[str]:
    """The text from its start, a piece at a time, cut anywhere, line ends as they are. Raises ``FormatError``."""
    stream = opened(raw)
    head = stream.read(PIECE)
    while len(head) < _LONGEST_MARK and (more := stream.read(PIECE)):
        head += more
    decoder = _Decoder(name, encoding, head)
    yield decoder.first()
    for piece in iter(lambda: stream.read(PIECE), b""):
        yield decoder.decoded(piece)
    yield decoder.decoded(b"", final=True)


def line_blocks(name: str, raw: bytes | BinaryIO, encoding: str | None = None) -> Iterator[list[str]]:
    """The physical lines with their line ends, some at a time; only LF ends a line. Raises ``FormatError``."""
    rest: list[str] = []
    number, length = 1, 0
    for piece in text_pieces(name, raw, encoding):
        end = piece.rfind("\n") + 1
        if not end:
            rest.append(piece)
            length += len(piece)
            if length > BOUNDS.cell:
                raise too_long(name, number, "a line", "long_line")
            continue
        block = list(StringIO("".join((*rest, piece[:end])), newline="\n"))
        yield block
        rest, length, number = [piece[end:]], len(piece) - end, number + len(block)
    if length:
        yield ["".join(rest)]


def text_lines(name: str, raw: bytes | BinaryIO, encoding: str | None = None) -> Iterator[str]:
    """The lines of ``line_blocks``, one by one."""
    for block in line_blocks(name, raw, encoding):
        yield from block


def whole_text(name: str, raw: bytes | BinaryIO, most: int) -> str:
    """All of a document of at most ``most`` characters, line ends as they are. Raises ``FormatError``."""
    pieces: list[str] = []
    length = 0
    for piece in text_pieces(name, raw):
        pieces.append(piece)
        length += len(piece)
        if length > most:
            found, expected = f"more than {most:,} characters", "a shorter document"
            raise FormatError(Problem(name, None, None, found, expected, "size"))
    return "".join(pieces)


class _Decoder:
    """Decodes one file piece by piece and knows the line and byte it has come to."""

    def __init__(self, name: str, encoding: str | None, head: bytes) -> None:
        self.name, self._head = name, head
        require_text(name, head)
        self._codec = codec_of(name, head, encoding)
        self._decoder = codecs.getincrementaldecoder(self._codec)("strict")
        self._line, self._bytes = 1, 0  # the line that the next piece goes on with, and how much of it is read

    def first(self) -> str:
        """The text of the head; a byte order mark is no part of it."""
        return self.decoded(self._head).removeprefix("\ufeff")

    def decoded(self, piece: bytes, *, final: bool = False) -> str:
        """The text of the next piece. Raises ``FormatError``."""
        try:
            text = self._decoder.decode(piece, final)
        except UnicodeDecodeError as error:
            raise FormatError(self._undecodable(error)) from None
        if NUL in text:
            line, byte = self._place(text[: text.index(NUL)])
            raise FormatError(
                Problem(
                    self.name, line, f"byte {byte}", "a NUL character (U+0000)", "text without NUL characters", "nul"
                )
            )
        self._count(text)
        return text

    def _count(self, text: str) -> None:
        ends = text.count("\n")
        self._line += ends
        last = text[text.rfind("\n") + 1 :]
        self._bytes = (0 if ends else self._bytes) + len(last.encode(self._codec))

    def _place(self, before: str) -> tuple[int, int]:
        """The line, and the byte in it, that follow some text of the piece at hand."""
        last = before[before.rfind("\n") + 1 :]
        read = 0 if "\n" in before else self._bytes
        return self._line + before.count("\n"), read + len(last.encode(self._codec)) + 1

    def _undecodable(self, error: UnicodeDecodeError) -> Problem:
        content, start = error.object, error.start
        line, byte = self._place(content[:start].decode(self._codec))
        named = "UTF-8" if self._codec == "utf_8" else self._codec
        found, expected = f"the byte 0x{content[start]:02X}, which is not {named}", "a file saved as UTF-8"
        begin = content.rfind(b"\n", 0, start) + 1
        if self._codec == "utf_8" and (likely := suspected(content[begin:])):
            near = content[max(begin, start - SHOWN_AROUND) : start + SHOWN_AROUND].split(b"\n")[0]
            shown = near.decode(likely.codec, errors="replace").strip()
            found += f" (it may be {likely.name}: {excerpt(shown)})"
            expected += f", or encoding: {likely.codec} in the mapping"
        return Problem(self.name, line, f"byte {byte}", found, expected, "encoding")
