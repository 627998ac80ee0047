"""Bytes -> text, strictly: as UTF-8 or in the encoding that the mapping names; other encodings are refused by name.

A guess of a file's encoding is only proposed to a person, or named in a refusal; it is never used without asking here.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator
from copy import copy
from io import SEEK_SET, BytesIO, RawIOBase, StringIO, UnsupportedOperation
from typing import BinaryIO, NamedTuple

from accounts.inputs import NUL
from annotation.readers.problems import FormatError, Problem, excerpt
from annotation.readers.rows import BOUNDS, too_long_error
from annotation.readers.words import Setting, Words

OLD_EXCEL = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # also what a workbook with a password is wrapped in
_KINDS = {
    b"PK\x03\x04": (
        Words("a zip archive or an Excel workbook"),
        Words("the ending .zip or .xlsx, or text saved as UTF-8"),
    ),
    b"\x1f\x8b": (Words("a gzip file"), Words("the ending .gz, or the file unpacked")),
    b"PAR1": (Words("a Parquet file"), Words("the ending .parquet, or text saved as UTF-8")),
    OLD_EXCEL: (Words("an old Excel file (.xls)"), Words("it saved as .xlsx, or as text in UTF-8")),
    b"BZh": (Words("a bzip2 file"), Words("the file unpacked, or compressed with gzip")),
    b"\xfd7zXZ\x00": (Words("an xz file"), Words("the file unpacked, or compressed with gzip")),
    b"\x28\xb5\x2f\xfd": (Words("a zstd file"), Words("the file unpacked, or compressed with gzip")),
    b"7z\xbc\xaf\x27\x1c": (Words("a 7z archive"), Words("the files unpacked, or in one .zip")),
    b"%PDF-": (Words("a PDF document"), Words("a file of data")),
    b"SQLite format 3\x00": (Words("an SQLite database"), Words("its table exported as CSV")),
}


def require_text(name: str, head: bytes) -> None:
    """Raises ``FormatError`` if the first bytes of a file show that it is not text."""
    for signature, (actual, expected) in _KINDS.items():
        if head.startswith(signature):
            raise FormatError(Problem(name, None, None, actual, expected, "format"))


# UTF-32 first: its little-endian byte order mark begins with the mark of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf_32_le",
    codecs.BOM_UTF32_BE: "utf_32_be",
    codecs.BOM_UTF16_LE: "utf_16_le",
    codecs.BOM_UTF16_BE: "utf_16_be",
    codecs.BOM_UTF8: "utf_8",
}
_WIDE = ("utf_32_le", "utf_32_be", "utf_16_le", "utf_16_be")
_SAMPLE = 65_536
_FOREIGN = re.compile(r"[^\x00-\x7f]")
_MIXED = re.compile(r"[A-Za-z][^\x00-\x7f]|[^\x00-\x7f][A-Za-z]")
_ACCENTED = re.compile(r"[^\x00-\x7f]{3,}")
_PLAIN = 0.5  # the minimum `_sense` at which a guessed encoding counts as certain
_PROVES_UTF8 = 3  # so many characters beyond ASCII do not make valid UTF-8 by chance


class Codepage(NamedTuple):
    """An encoding: its Python name, its common name, the non-ASCII letters that are frequent in its texts, and the
    weight of their share: in scripts with thousands of characters, the frequent ones make up less of a text."""

    codec: str
    name: str
    usual: str = ""
    weight: float = 1


# If two encodings have the same score, the first is chosen.
_LEGACY = (
    Codepage(
        "cp1252",
        Words(
            "%(encoding)s (Western European)",
            encoding=Words("%(name)s or %(other)s", name="Windows-1252", other="Latin-1"),
        ),
        "éèêëàáâãäåæçíìîïñóòôõöøúùûüß’‘“”–¿¡«»",
    ),
    Codepage("cp1251", Words("%(encoding)s (Cyrillic)", encoding="Windows-1251"), "оеаинтсрвлкмдпуяыь"),
    Codepage("koi8_r", Words("%(encoding)s (Cyrillic)", encoding="KOI8-R"), "оеаинтсрвлкмдпуяыь"),
    Codepage("cp866", Words("%(encoding)s (Cyrillic)", encoding="DOS 866"), "оеаинтсрвлкмдпуяыь"),
    Codepage(
        "cp1250", Words("%(encoding)s (Central European)", encoding="Windows-1250"), "ěščřžýáíéůúťďňőűöüółąęćńśźż"
    ),
    Codepage("cp1257", Words("%(encoding)s (Baltic)", encoding="Windows-1257"), "āčēģīķļņšūžąęėįųõäöü"),
    Codepage("cp1254", Words("%(encoding)s (Turkish)", encoding="Windows-1254"), "ışğçöüi"),
    Codepage("cp1253", Words("%(encoding)s (Greek)", encoding="Windows-1253"), "αοιετσνηυρπκμλςάέήίόύώ"),
    Codepage("cp1255", Words("%(encoding)s (Hebrew)", encoding="Windows-1255"), "יוהלארתבמשןםנעדחקפגכטצ"),
    Codepage("cp1256", Words("%(encoding)s (Arabic)", encoding="Windows-1256"), "اليمونترةبعسدفهك"),
    Codepage("cp874", Words("%(encoding)s (Thai)", encoding="Windows-874"), "านรอกเงมยลวดทสตะีั่้ิ"),
    Codepage(
        "cp932",
        Words("%(encoding)s (Japanese)", encoding="Shift JIS"),
        "のにはをたがでてとしれさあいうるなかっすこもんく。、ーンスっまよ",
        2,
    ),
    Codepage(
        "euc_jp",
        Words("%(encoding)s (Japanese)", encoding="EUC-JP"),
        "のにはをたがでてとしれさあいうるなかっすこもんく。、ーンスっまよ",
        2,
    ),
    Codepage(
        "cp949",
        Words("%(encoding)s (Korean)", encoding="EUC-KR"),
        "이다는의가에을를고하한지사기로서은도세안요아나시어자",
        2,
    ),
    Codepage(
        "gb18030",
        Words("%(encoding)s (Chinese)", encoding="GB 18030"),
        "的一是不了在人有我他这中大来上国个到说们为子和你，。",
        3,
    ),
    Codepage(
        "big5",
        Words("%(encoding)s (Chinese)", encoding="Big5"),
        "的一是不了在人有我他這中大來上國個到說們為子和你，。",
        3,
    ),
)
ENCODINGS = (*((page.codec, page.name) for page in _LEGACY), ("utf_16", "UTF-16"), ("mac_roman", "Mac Roman"))
"""The encodings that a person can choose if a file is not in UTF-8: Python's name and the common name of each."""
_OTHERS = (
    *("utf_8", "utf_16", "utf_32", *_WIDE, "cp437", "cp850", "cp852", "cp775", "cp1258", "koi8_u", "mac_roman"),
    *("shift_jis", "euc_kr", "gbk", "gb2312", "cp950", "big5hkscs", "tis_620"),
    *(f"iso8859_{part}" for part in (*range(1, 12), *range(13, 17))),
)
_KNOWN = frozenset({*_OTHERS, *(page.codec for page in _LEGACY)})


def codec_called(name: str) -> str | None:
    """Python's codec for an encoding of text as people name it (``windows-1252``, ``Latin1``), if there is one."""
    try:
        codec = codecs.lookup(name.strip()).name.replace("-", "_")
    except (LookupError, ValueError):
        return None
    return codec if codec in _KNOWN else None


def codec_of(name: str, head: bytes, given: str | None) -> str:
    """The codec in which a file that begins with ``head`` is to be read; ``given`` is the encoding in its mapping.

    Raises ``FormatError`` if the file is clearly in another encoding.
    """
    marked = next((codec for mark, codec in _MARKS.items() if head.startswith(mark)), None)
    codec = codec_called(given) if given else "utf_8"
    if codec in {"utf_16", "utf_32"} and marked and marked.startswith(codec):
        return marked
    if codec is None or codec in {"utf_16", "utf_32"}:
        raise FormatError(_no_such(name, given or ""))
    seen = marked or _wide(head) or ("utf_8" if codec != "utf_8" and _is_utf8(head) else None)
    if seen is None or seen == codec:
        return codec
    raise FormatError(_another(name, head, seen))


def likely_codepage(content: bytes) -> Codepage | None:
    """The encoding with the best score (`_sense`) for the lines that are not UTF-8."""
    sample = b"\n".join(line for line in content[:_SAMPLE].split(b"\n") if not _decodes(line, "utf_8"))
    sense = {page: _sense(sample, page) for page in _LEGACY}
    best = max(sense, key=lambda page: sense[page])
    return best if sense[best] > 0 else None


def legacy_codec(head: bytes) -> str | None:
    """The likely encoding of a text with this beginning, if it is plainly not UTF-8: no non-ASCII line is valid UTF-8,
    and most non-ASCII letters are frequent ones of that encoding."""
    if any(head.startswith(mark) for mark in _MARKS) or _wide(head):
        return None
    lines = [line for line in head[: head.rfind(b"\n") + 1 or len(head)].split(b"\n") if not line.isascii()]
    if not lines or any(_decodes(line, "utf_8") for line in lines):
        return None
    page = likely_codepage(b"\n".join(lines))
    return page.codec if page and _sense(b"\n".join(lines)[:_SAMPLE], page) >= _PLAIN else None


def _sense(sample: bytes, page: Codepage) -> float:
    """A score for an encoding: the share of frequent letters among the non-ASCII ones, less a penalty for words in two
    scripts and Latin words of accented letters only. The sample may end within a character."""
    decoder = codecs.getincrementaldecoder(page.codec)("strict")
    try:
        text = decoder.decode(sample)
    except UnicodeDecodeError:
        return 0
    foreign = [char for char in text if not char.isascii()]
    is_latin = unicodedata.name(page.usual[0]).startswith("LATIN")
    usual = sum((char.lower() if is_latin else char) in page.usual for char in foreign)
    odd = sum(map(len, (_ACCENTED if is_latin else _MIXED).findall(text)))
    return min(1, page.weight * (usual - odd) / len(foreign)) if foreign else 0


def _wide(head: bytes) -> str | None:
    """UTF-16 or UTF-32 without a byte order mark: many NUL bytes, but the decoded text has no NUL."""
    sample = head[:_SAMPLE]
    if sample.count(0) < max(4, len(sample) // 32):
        return None  # a stray NUL, if any
    return next((codec for codec in _WIDE if _is_text(sample[: len(sample) // 4 * 4], codec)), None)


def _is_text(sample: bytes, codec: str) -> bool:
    try:
        text = codecs.getincrementaldecoder(codec)("strict").decode(sample)
    except UnicodeDecodeError:
        return False
    plain = sum(char.isprintable() or char in "\r\n\t" for char in text)
    return NUL not in text and plain > 0.95 * len(text) > 0


def _is_utf8(head: bytes) -> bool:
    """Whether the head is UTF-8 and not just ASCII."""
    try:
        text = codecs.getincrementaldecoder("utf_8")("strict").decode(head)
    except UnicodeDecodeError:
        return False
    return not text.isascii() and len(_FOREIGN.findall(text, 0, _SAMPLE)) >= _PROVES_UTF8


def _decodes(line: bytes, codec: str) -> bool:
    try:
        line.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def _no_such(name: str, given: str) -> Problem:
    if codec_called(given) is None:
        actual = Words("the encoding %(encoding)s", encoding=excerpt(given))
        return Problem(name, None, None, actual, Words("one such as utf-8, windows-1252 or utf-16-le"), "encoding")
    actual = Words("no byte order mark, without which %(encoding)s leaves the order of its bytes open", encoding=given)
    choice = Setting("encoding", f"encoding: {given}-le or {given}-be in the mapping")
    return Problem(name, None, None, actual, choice, "encoding")


def _another(name: str, head: bytes, seen: str) -> Problem:
    """The problem of a file that is in the encoding ``seen`` and not in the expected one."""
    called = seen.upper().replace("_", "-", 1).replace("_", "")
    lines = codecs.getincrementaldecoder(seen)("replace").decode(head[:4096]).removeprefix("\ufeff").split("\n")
    number = next((number for number, line in enumerate(lines) if not line.isascii()), 0)
    text = Words(
        "the encoding %(encoding)s, in which line %(line)s reads %(text)s",
        encoding=called,
        line=number + 1,
        text=excerpt(lines[number].strip()),
    )
    if seen == "utf_8":
        return Problem(name, 1, None, text, Words("no other encoding named under “Mapping (YAML)”"), "encoding")
    choice = Setting("encoding", f"encoding: {seen.replace('_', '-')} in the mapping")
    expected = Words("a file saved as UTF-8, or %(choice)s", choice=choice)
    return Problem(name, 1, None, text, expected, "encoding")


PIECE = 2**20
SHOWN_AROUND = 20
_LONGEST_MARK = 4  # bytes of a byte order mark


def open_stream(raw: bytes | BinaryIO) -> BinaryIO:
    """A stream over the content, from its start."""
    stream: BinaryIO = BytesIO(raw) if isinstance(raw, bytes) else raw
    if stream.seekable():
        stream.seek(0)
    return stream


class HeadCache(RawIOBase):
    """A stream that reads and decodes its first piece only once, even if it is read from its start several times.

    The bytes after the first piece are read each time. ``decoded`` caches the text of the first piece and its decoder,
    by the encoding that the mapping names.
    """

    def __init__(self, raw: BinaryIO) -> None:
        self._stream = open_stream(raw)
        self.decoded: dict[str | None, tuple[str, _Decoder]] = {}
        self._head: bytes | None = None  # read when it is first asked for
        self._read = 0  # of the stream
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        """Go back to the start, the only position that readers of text ask for."""
        if offset or whence != SEEK_SET:
            raise UnsupportedOperation(Words("only to the start"))
        self._place = 0
        return 0

    def read(self, size: int = -1) -> bytes:
        if self._head is None:
            self._head = self._taken(PIECE)
        if self._place < len(self._head):
            content = self._head[self._place :] if size < 0 else self._head[self._place : self._place + size]
            content += self._after(len(self._head), -1) if size < 0 else b""
        else:
            content = self._after(self._place, size)
        self._place += len(content)
        return content

    def _after(self, place: int, size: int) -> bytes:
        """The bytes after a position; a compressed stream must read everything before it first."""
        if self._read != place:
            open_stream(self._stream)
            self._read = 0
            while self._read < place and self._taken(min(place - self._read, PIECE)):
                pass
        return self._taken(size)

    def _taken(self, size: int) -> bytes:
        content = self._stream.read(size)
        self._read += len(content)
        return content


def text_pieces(name: str, raw: bytes | BinaryIO, encoding: str | None = None) -> Iterator[str]:
    """The text from its start in pieces of any length, with unchanged line ends. Raises ``FormatError``."""
    stream = open_stream(raw)
    head = stream.read(PIECE)
    while len(head) < _LONGEST_MARK and (more := stream.read(PIECE)):
        head += more
    decoded = raw.decoded if isinstance(raw, HeadCache) else {}
    if encoding not in decoded:
        first = _Decoder(name, encoding, head)
        decoded[encoding] = first.first(), first
    text, first = decoded[encoding]
    decoder = first.copied()
    yield text
    for piece in iter(lambda: stream.read(PIECE), b""):
        yield decoder.decoded(piece)
    yield decoder.decoded(b"", final=True)


def line_blocks(name: str, raw: bytes | BinaryIO, encoding: str | None = None) -> Iterator[list[str]]:
    """The physical lines with their line ends, in blocks; only LF ends a line. Raises ``FormatError``."""
    rest: list[str] = []
    number, length = 1, 0
    for piece in text_pieces(name, raw, encoding):
        end = piece.rfind("\n") + 1
        if not end:
            rest.append(piece)
            length += len(piece)
            if length > BOUNDS.cell:
                raise too_long_error(name, number, Words("a line"), "long_line")
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
    """The text of a document of at most ``most`` characters, with unchanged line ends. Raises ``FormatError``."""
    pieces: list[str] = []
    length = 0
    for piece in text_pieces(name, raw):
        pieces.append(piece)
        length += len(piece)
        if length > most:
            actual, expected = Words("more than %(number)s characters", number=f"{most:,}"), Words("a shorter document")
            raise FormatError(Problem(name, None, None, actual, expected, "size"))
    return "".join(pieces)


class _Decoder:
    """Decodes one file piece by piece, and keeps the current line and byte."""

    def __init__(self, name: str, encoding: str | None, head: bytes) -> None:
        self.name, self._head = name, head
        require_text(name, head)
        self._codec = codec_of(name, head, encoding)
        self._decoder = codecs.getincrementaldecoder(self._codec)("strict")
        self._line, self._bytes = 1, 0  # the line in which the next piece begins, and the bytes of it that are read

    def copied(self) -> _Decoder:
        """Another decoder at the same place of the same file."""
        other = copy(self)
        other._decoder = codecs.getincrementaldecoder(self._codec)("strict")
        other._decoder.setstate(self._decoder.getstate())
        return other

    def first(self) -> str:
        """The text of the head, without a byte order mark."""
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
                    self.name,
                    line,
                    Words("byte %(number)s", number=byte),
                    Words("a NUL character (U+0000)"),
                    Words("text without NUL characters"),
                    "nul",
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
        """The line, and the byte in it, after the text ``before`` of the current piece."""
        last = before[before.rfind("\n") + 1 :]
        read = 0 if "\n" in before else self._bytes
        return self._line + before.count("\n"), read + len(last.encode(self._codec)) + 1

    def _undecodable(self, error: UnicodeDecodeError) -> Problem:
        content, start = error.object, error.start
        line, byte = self._place(content[:start].decode(self._codec))
        named = "UTF-8" if self._codec == "utf_8" else self._codec
        actual, expected = (
            Words("the byte 0x%(byte)s, which is not %(encoding)s", byte=f"{content[start]:02X}", encoding=named),
            Words("a file saved as UTF-8"),
        )
        begin = content.rfind(b"\n", 0, start) + 1
        if self._codec == "utf_8" and (likely := likely_codepage(content[begin:])):
            near = content[max(begin, start - SHOWN_AROUND) : start + SHOWN_AROUND].split(b"\n")[0]
            shown = near.decode(likely.codec, errors="replace").strip()
            actual = Words(
                "%(text)s (it may be %(encoding)s: %(shown)s)",
                text=actual,
                encoding=likely.name,
                shown=excerpt(shown),
            )
            choice = Setting("encoding", f"encoding: {likely.codec} in the mapping")
            expected = Words("a file saved as UTF-8, or %(choice)s", choice=choice)
        return Problem(self.name, line, Words("byte %(number)s", number=byte), actual, expected, "encoding")
