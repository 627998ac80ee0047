"""Bytes -> text, as UTF-8 and nothing else: another encoding is named and refused, never guessed into the text."""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO

from annotation.formats.problems import FormatError, Problem, excerpt

LONGEST_LINE = 64 * 2**20

# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS = {BOM_UTF32_LE: "UTF-32", BOM_UTF32_BE: "UTF-32", BOM_UTF16_LE: "UTF-16", BOM_UTF16_BE: "UTF-16"}

# Each legacy encoding with its name and the foreign letters that its texts are mostly made of; ties go to the first.
_LEGACY = {
    "cp1252": ("Windows-1252 (Western European)", "éèêëàáâãäåæçíìîïñóòôõöøúùûüßÄÖÜÉÕ’‘“”–"),
    "cp1251": ("Windows-1251 (Cyrillic)", "оеаинтсрвлкмдпуяыь"),
    "koi8_r": ("KOI8-R (Cyrillic)", "оеаинтсрвлкмдпуяыь"),
    "cp1250": ("Windows-1250 (Central European)", "ěščřžýáíéůúťďňőűöüółąęćńśźż"),
    "cp1257": ("Windows-1257 (Baltic)", "āčēģīķļņšūžąęėįųõäöü"),
    "cp1254": ("Windows-1254 (Turkish)", "ışğçöüİ"),
    "cp1253": ("Windows-1253 (Greek)", "αοιετσνηυρπκμλςάέήίόύώ"),
    "cp1255": ("Windows-1255 (Hebrew)", "יוהלארתבמשןםנעדחקפגכטצ"),
    "cp1256": ("Windows-1256 (Arabic)", "اليمونترةبعسدفهك"),
    "cp874": ("Windows-874 (Thai)", "านรอกเงมยลวดทสตะีั่้ิ"),
    "shift_jis": ("Shift JIS (Japanese)", "のにはをたがでてとしれさあいうるなかっすこもんく。、ーンス"),
    "euc_kr": ("EUC-KR (Korean)", "이다는의가에을를고하한지사기로서은도세안요아나시어자"),
    "gb18030": ("GB 18030 (Chinese)", "的一是不了在人有我他这中大来上国个到说们为子和你，。"),
    "big5": ("Big5 (Chinese)", "的一是不了在人有我他這中大來上國個到說們為子和你，。"),
}


def opened(raw: bytes | BinaryIO) -> BinaryIO:
    """A stream over the content, from its start."""
    stream: BinaryIO = BytesIO(raw) if isinstance(raw, bytes) else raw
    if stream.seekable():
        stream.seek(0)
    return stream


def text_lines(name: str, raw: bytes | BinaryIO) -> Iterator[str]:
    """The physical lines with their line ends, byte for byte; only LF ends a line. Raises ``FormatError``."""
    stream = opened(raw)
    for number, line in enumerate(iter(lambda: stream.readline(LONGEST_LINE), b""), start=1):
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            raise FormatError(Problem(name, number, None, "a line of more than 64 MB", "shorter lines", "long_line"))
        yield _decoded(name, number, line) if number > 1 else _first_decoded(name, line)


def whole_text(name: str, raw: bytes | BinaryIO) -> str:
    """The whole content, line ends as they are. Raises ``FormatError``."""
    return "".join(text_lines(name, raw))


def _first_decoded(name: str, line: bytes) -> str:
    kind = next((kind for mark, kind in _MARKS.items() if line.startswith(mark)), None)
    # Western text in two bytes a character, without a mark: about every second byte is NUL.
    if kind is None and len(line) >= 8 and 3 * line.count(0) > len(line):
        kind = "UTF-16"
    if kind:
        raise FormatError(Problem(name, 1, None, f"the encoding {kind}", "a file saved as UTF-8", "encoding"))
    return _decoded(name, 1, line.removeprefix(BOM_UTF8))


def _decoded(name: str, number: int, line: bytes) -> str:
    if b"\0" in line:
        found = f"a NUL character (U+0000) at byte {line.index(0) + 1} of the line"
        raise FormatError(Problem(name, number, None, found, "text without NUL characters", "nul"))
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise FormatError(_not_utf8(name, number, line, error.start)) from None


def _not_utf8(name: str, number: int, line: bytes, start: int) -> Problem:
    found = f"the byte 0x{line[start]:02X} at byte {start + 1} of the line, which is not UTF-8"
    if codec := guessed_codec(line):
        near = line[max(0, start - 20) : start + 20].decode(codec, errors="replace").strip()
        found += f" (it may be {_LEGACY[codec][0]}: {excerpt(near)})"
    return Problem(name, number, None, found, "a file saved as UTF-8", "encoding")


def guessed_codec(line: bytes) -> str | None:
    """The codec in which a line makes most sense, to be named in a problem; never used to read the file."""
    sense = {codec: _share_of_common(line, codec, usual) for codec, (_, usual) in _LEGACY.items()}
    best = max(sense, key=lambda codec: sense[codec])
    return best if sense[best] > 0 else None


def _share_of_common(line: bytes, codec: str, usual: str) -> float:
    try:
        foreign = [char for char in line.decode(codec) if not char.isascii()]
    except UnicodeDecodeError:
        return 0
    return sum(char in usual for char in foreign) / len(foreign) if foreign else 0
