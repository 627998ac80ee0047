"""Encodings: another than UTF-8 is named and shown, and read only where the mapping says so."""

from io import BytesIO

import pytest

from annotation.readers import encoding as room
from annotation.readers.encoding import PIECE, HeadCache
from annotation.readers.mapping import Mapping
from annotation.readers.problems import FormatError, Problems
from annotation.readers.reading import read_rows

# A sentence, the encoding it is written in, what a refusal calls that, and what can be said in the mapping.
WRITTEN = [
    ("Põhja-Eesti õlu on “hea”", "cp1252", "Windows-1252", "cp1252"),
    ("Señor: ¿qué tal está?", "latin-1", "Latin-1", "cp1252"),
    ("Grüße aus Köln an Jürgen", "latin-1", "Latin-1", "cp1252"),
    ("Šodien ir ļoti jauka diena", "cp1257", "Baltic", "cp1257"),
    ("Šią savaitę bus šilčiau", "cp1257", "Baltic", "cp1257"),
    ("Příliš žluťoučký kůň", "cp1250", "Central European", "cp1250"),
    ("Привет! Как дела у вас?", "cp1251", "Windows-1251", "cp1251"),
    ("Привет! Как дела у вас?", "koi8-r", "KOI8-R", "koi8_r"),
    ("Привет! Как дела у вас?", "cp866", "DOS 866", "cp866"),
    ("今日はとても良い天気です。", "shift_jis", "Shift JIS", "cp932"),
    ("今日はとても良い天気です。", "euc_jp", "EUC-JP", "euc_jp"),
    ("안녕하세요 세계 여러분", "euc_kr", "EUC-KR", "cp949"),
    ("你好，我们今天去公园，你来吗", "gb18030", "GB 18030", "gb18030"),
    ("你好，我們今天去公園，你來嗎", "big5", "Big5", "big5"),
    ("مرحبا بالعالم كله", "cp1256", "Arabic", "cp1256"),
    ("שלום לכולם, מה שלומכם", "cp1255", "Hebrew", "cp1255"),
    ("Καλημέρα σε όλους", "cp1253", "Greek", "cp1253"),
    ("Привет, как дела у вас", "utf-16", "UTF-16LE", "utf-16-le"),
    ("Привет, как дела у вас", "utf-16-be", "UTF-16BE", "utf-16-be"),
    ("你好，我們今天去公園", "utf-16-le", "UTF-16LE", "utf-16-le"),
    ("Привет", "utf-32-le", "UTF-32LE", "utf-32-le"),
    ("Привет", "utf-32", "UTF-32LE", "utf-32-le"),
]


def rows(raw: bytes, encoding: str | None = None) -> tuple[list[str], Problems]:
    problems = Problems()
    taken = [
        row.fields["text"] for row in read_rows("a.csv", raw, layout=Mapping(encoding=encoding), problems=problems)
    ]
    return taken, problems


@pytest.mark.parametrize(("sentence", "encoding", "called", "said"), WRITTEN)
def test_another_encoding_is_named_and_shown_and_can_be_said(
    sentence: str, encoding: str, called: str, said: str
) -> None:
    raw = f'n\ttext\n1\t"{sentence}"\n2\tplain\n3\tplain\n'.encode(encoding)
    taken, problems = rows(raw)
    assert taken == []
    (problem,) = problems
    assert problem.code == "encoding"
    assert called in problem.found
    assert sentence[:9] in problem.found
    assert f"encoding: {said} in the mapping" in problem.expected
    taken, problems = rows(raw, said)
    assert taken == [sentence, "plain", "plain"]
    assert not problems


def test_a_byte_that_does_not_belong_is_refused_with_its_place() -> None:
    raw = "n,text\n1,õ\n2,x\n".encode("cp1257") + b"3,ab\xa1\n"
    taken, problems = rows(raw, "windows-1257")
    assert taken == []
    assert [(problem.line, problem.column, problem.code) for problem in problems] == [(4, "byte 5", "encoding")]


def test_utf8_is_not_read_as_something_else() -> None:
    _, problems = rows("n,text\n1,Põhjaõlu\n2,õ\n".encode(), "cp1252")
    (problem,) = problems
    assert "UTF-8" in problem.found
    assert "Põhjaõlu" in problem.found


@pytest.mark.parametrize("said", ["utf-16", "utf-32"])
def test_a_wide_encoding_without_a_mark_needs_its_byte_order(said: str) -> None:
    (problem,) = rows("n,text\n1,a\n".encode(f"{said}-le"), said)[1]
    assert f"encoding: {said}-le or {said}-be" in problem.expected
    assert rows("n,text\n1,a\n".encode(said), said)[0] == ["a"]


@pytest.mark.parametrize("said", ["utf-7", "rot13", "base64", "idna", "nonsense", "../x", "unicode_escape"])
def test_only_encodings_of_text_can_be_said(said: str) -> None:
    with pytest.raises(FormatError, match="an encoding such as utf-8"):
        Mapping.from_yaml("m.yaml", f'encoding: "{said}"')


def test_the_place_is_right_however_the_file_is_cut_into_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = "n,text\n1,õõõõ👩‍👧\n2,äää\n".encode() + b"3,\xc3\x28\n"
    for piece in range(1, 40):
        monkeypatch.setattr(room, "PIECE", piece)
        assert [(problem.line, problem.column) for problem in rows(raw)[1]] == [(4, "byte 3")], piece
        assert rows(raw[: raw.index(b"3,")])[0] == ["õõõõ👩‍👧", "äää"], piece


def test_a_damaged_file_in_another_encoding_is_refused_by_its_name() -> None:
    raw = b"\xff\xfe" + "id,text\n1,Привет".encode("utf-16-le") + b"\x00\xd8" + "\n2,а\n".encode("utf-16-le")

    problems = Problems()
    assert list(read_rows("a.csv", raw, problems=problems)) == []

    assert [problem.code for problem in problems] == ["encoding"]


@pytest.mark.parametrize("size", [0, 10, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
def test_a_cached_head_reads_as_the_file_does(size: int) -> None:
    content = bytes(number % 251 for number in range(size))
    cached = HeadCache(BytesIO(content))
    for steps in ([-1], [10, -1], [PIECE, 5, -1], [PIECE + 7, PIECE, -1], [3 * PIECE + 1]):
        cached.seek(0)
        assert b"".join(_read_fully(cached, step) for step in steps) == content[: None if -1 in steps else sum(steps)]


def _read_fully(stream: HeadCache, size: int) -> bytes:
    """So many bytes, in as many reads as that takes."""
    if size < 0:
        return stream.read()
    content = b""
    while len(content) < size and (more := stream.read(size - len(content))):
        content += more
    return content
