"""Keys of a mapping that change values: decimal comma, texts to replace, several sheets; tar archives; notes on texts
that look wrongly decoded. Each by page, command and API."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import unicodedata
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from annotation import tasks
from annotation.imports import undoing
from annotation.models import Import, Item, Rating
from annotation.readers.mapping import Mapping
from annotation.readers.problems import FormatError
from annotation.readers.rows import TextReplacement, misread_utf8
from tests import make
from tests.annotation.readers.test_archives import code_of
from tests.annotation.test_commands import run
from tests.annotation.test_import_pages import file, page, uploaded
from tests.annotation.test_mapping_ways import by_command, by_page, by_patch, by_upload
from tests.cast import Cast

MARKED_UP = 'id,language,answer\nd1,en,"<p class=""x"">One<br>two &amp; three</p>"\nd2,en,Plain.\n'
SHEETS = {
    "Wave 1": [["id", "language", "answer"], ["d1", "en", "One."]],
    "Wave 2": [["answer", "id", "language"], ["Two.", "d2", "en"]],
    "Empty": [],
}


def tape(*files: tuple[str, bytes], mode: str = "w:gz") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def opened(cast: Cast, number: int) -> None:
    """What a worker does with a packed file after each change."""
    tasks.open_packed(number)
    tasks.check_import(number)


def test_texts_are_replaced_by_every_way(cast: Cast, tmp_path: Path) -> None:
    boris, words = cast.client("boris"), {"replace": {"<br>": "\n", "<*>": "", "&amp;": "&", "absent": "x"}}
    given, raw = Mapping.from_dict(words), MARKED_UP.encode()
    stored = [way(boris, "t.csv", raw, given) for way in (by_page, by_patch, by_upload)]
    stored.append(by_command(tmp_path, "t.csv", raw, given))
    assert all(rows == stored[0] for rows in stored) and Mapping.from_yaml("m", given.as_yaml()) == given
    assert Item.objects.get(external_id="d1").fields == {"answer": "One\ntwo & three"}
    notes = run("import_dataset", tmp_path / "t.csv", "--mapping", tmp_path / "mapping.yaml", "--dry-run").lines
    assert any("Replaced in texts, as set in the mapping: “&amp;”, “<br>”, “<*>”." in line for line in notes)
    assert any("To be replaced, but not found in texts: “absent”." in line for line in notes)


def test_texts_to_replace_are_given_on_the_page(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("t.csv", MARKED_UP))
    address = f"/p/kassa/imports/{file_import.pk}/"
    shown = page(boris, address)
    assert 'name="replaced_text" value=""' in shown and "such as &lt;br&gt; or &lt;span*&gt;: * stands" in shown
    form = {"kind": "dataset", "name": "", "replaced_text": ["<br>", "<*>", ""], "replacement": ["\\n", "", "ignored"]}
    boris.post(f"{address}map/", form)
    assert Import.objects.get().mapping["replace"] == {"<br>": "\n", "<*>": ""}
    shown = page(boris, address)
    assert 'name="replacement" value="\\n"' in shown and "One\ntwo &amp;amp; three" in shown
    answer = boris.post(f"{address}map/", form | {"replaced_text": ["a*", "", ""]}, follow=True).content.decode()
    assert "“a*” can&#x27;t be replaced." in answer and 'value="&lt;br&gt;"' in answer
    boris.post(f"{address}map/", {"kind": "dataset", "name": ""})
    boris.post(f"{address}store/")
    assert Item.objects.get(external_id="d1").fields["answer"] == "One\ntwo &amp; three"


@pytest.mark.parametrize("text", ["", "*", "*a", "a*", "a*b*c"])
def test_a_text_that_cannot_be_replaced_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="at most one"):
        Mapping.from_dict({"replace": {text: "x"}})


def test_an_asterisk_and_a_backslash_are_what_they_are() -> None:
    replacement = TextReplacement({r"\*\*": "", "<i*>": r"\1"})
    assert replacement("**a** <i\nb> <b>") == "a \\1 <b>"
    assert replacement("<i" + "x" * 2_000 + ">") == "<i" + "x" * 2_000 + ">"
    assert TextReplacement({"<*>": ""})("a < b <br\n/>c<" + "<" * 1_000_000) == "a < b c<" + "<" * 1_000_000


def test_numbers_with_a_decimal_comma_are_read_by_every_way(cast: Cast, tmp_path: Path) -> None:
    campaign, boris = make.campaign(cast.kassa), cast.client("boris")
    name = campaign.dataset.items.order_by("ordinal").values_list("external_id", flat=True)[0]
    table = f"item;rater;criterion;score;seconds\n{name};A;fluency;2,0;1,25\n{name};B;fluency;1;3\n"
    target, stored = {"campaign": campaign.pk}, []

    def kept(number: int) -> None:
        ratings = Rating.objects.filter(annotation__file_import=number)
        stored.append(sorted(ratings.values_list("annotation__annotator__pseudonym", "score", "annotation__seconds")))
        undoing.undo(file_import=Import.objects.get(pk=number))

    file_import = uploaded(boris, file("r.csv", table), kind="ratings")
    address = f"/p/kassa/imports/{file_import.pk}/"
    form = {"kind": "ratings", "campaign": str(campaign.pk)}
    boris.post(f"{address}map/", form)
    shown = page(boris, address)
    assert 'name="decimal_comma"' in shown and "“2,0” in" not in shown and "can't be stored yet" in shown
    boris.post(f"{address}map/", form | {"decimal_comma": "on"})
    boris.post(f"{address}store/")
    kept(file_import.pk)
    sent = {"files": [file("r.csv", table)], "kind": "ratings", "target": json.dumps(target)}
    number = boris.post("/api/v1/projects/kassa/imports/", sent).json()["id"]
    change = json.dumps({"mapping": {"decimal_comma": True}})
    boris.patch(f"/api/v1/projects/kassa/imports/{number}/", change, content_type="application/json")
    assert boris.post(f"/api/v1/projects/kassa/imports/{number}/store/").status_code == 200
    kept(number)
    (tmp_path / "r.csv").write_text(table)
    (tmp_path / "m.yaml").write_text("decimal_comma: on\n")
    refused = run("import_ratings", tmp_path / "r.csv", "--campaign", campaign.name)
    assert refused.status == 1 and "decimal_comma: on in the mapping" in refused.problems[0]
    assert (
        run("import_ratings", tmp_path / "r.csv", "--campaign", campaign.name, "--mapping", tmp_path / "m.yaml").status
        == 0
    )
    kept(Import.objects.latest("pk").pk)
    assert stored == [[("A", 2.0, 1.25), ("B", 1.0, 3.0)]] * 3


def test_a_separator_of_thousands_is_not_taken_for_a_point(cast: Cast, tmp_path: Path) -> None:
    campaign = make.campaign(cast.kassa)
    (tmp_path / "r.csv").write_text("item;rater;criterion;score\nd1;A;fluency;1.000\n")
    (tmp_path / "m.yaml").write_text("decimal_comma: on\n")
    refused = run("import_ratings", tmp_path / "r.csv", "--campaign", campaign.name, "--mapping", tmp_path / "m.yaml")
    assert refused.status == 1 and "without a separator of thousands" in refused.problems[0]


def test_texts_in_doubt_are_reported_by_every_way(cast: Cast, tmp_path: Path) -> None:
    other = unicodedata.normalize("NFD", "õun")
    table = f"id,language,answer\nd1,et,TÃ¼re\nd2,et,{other}\nd3,et,l\ufffdhe\nd4,et,Õige «JÄ» naïve\n"
    notes = [
        "Items with text that looks wrongly decoded, such as “Ã¼” for “ü”: 1 (t.csv, line 2).",
        "Items with the character U+FFFD, which replaces lost characters: 1 (t.csv, line 4).",
        "Items with text that is not in Unicode normal form C (NFC), which is stored as it is: 1 (t.csv, line 3).",
    ]
    boris = cast.client("boris")
    file_import = uploaded(boris, file("t.csv", table))
    shown = page(boris, f"/p/kassa/imports/{file_import.pk}/")
    preview = boris.get(f"/api/v1/projects/kassa/imports/{file_import.pk}/preview/").json()["report"]["notes"]
    (tmp_path / "t.csv").write_text(table, encoding="utf-8")
    lines = "\n".join(run("import_dataset", tmp_path / "t.csv").lines)
    assert all(note in shown and note in "\n".join(preview) and note in lines for note in notes)
    assert Item.objects.get(external_id="d2").fields["answer"] == other


def test_ordinary_letters_are_not_taken_for_wrongly_decoded_ones() -> None:
    ordinary = ["CAFÉ»", "„HÄ“", "«NÃO»", "“IRMÔ", "naïve", "Ñandú", "Ærø", "ÅÄÖ", "Ünal’s", "Þór", "日本", "Привет"]
    assert [text for text in ordinary if misread_utf8(text)] == []
    for text in ("Привет", "日本", "سلام", "ñandú", "’", "😀"):
        assert misread_utf8(text.encode().decode("latin-1")), text


def test_all_sheets_of_a_workbook_are_read_by_every_way(cast: Cast, tmp_path: Path) -> None:
    boris, book = cast.client("boris"), make.workbook(SHEETS)
    items = {"d1": ("One.", {"(sheet)": "Wave 1"}), "d2": ("Two.", {"(sheet)": "Wave 2"})}

    def require_stored() -> None:
        assert {item.external_id: (item.fields["answer"], item.attributes) for item in Item.objects.all()} == items
        undoing.undo(file_import=Import.objects.latest("pk"))

    file_import = uploaded(boris, SimpleUploadedFile("book.xlsx", book))
    opened(cast, file_import.pk)
    address = f"/p/kassa/imports/{file_import.pk}/"
    assert '<option value="*" >all sheets with rows</option>' in page(boris, address)
    boris.post(f"{address}map/", {"kind": "dataset", "name": "", "sheet": "*"})
    opened(cast, file_import.pk)
    assert '<option value="*" selected>all sheets with rows</option>' in page(boris, address)
    boris.post(f"{address}store/")
    tasks.store_import(file_import.pk, cast.boris.pk)
    require_stored()
    sent = {"files": [SimpleUploadedFile("book.xlsx", book)], "mapping": json.dumps({"sheet": "Wave *"})}
    number = boris.post("/api/v1/projects/kassa/imports/", sent).json()["id"]
    opened(cast, number)
    boris.post(f"/api/v1/projects/kassa/imports/{number}/store/")
    tasks.store_import(number, cast.boris.pk)
    require_stored()
    (tmp_path / "book.xlsx").write_bytes(book)
    (tmp_path / "m.yaml").write_text('sheet: "*"\n')
    assert run("import_dataset", tmp_path / "book.xlsx", "--mapping", tmp_path / "m.yaml").status == 0
    require_stored()


def test_a_problem_in_one_of_several_sheets_names_it(cast: Cast, tmp_path: Path) -> None:
    sheets = SHEETS | {"Notes": [["id", "language", "answer"], ["d9", "klingon!", "x"]]}
    (tmp_path / "book.xlsx").write_bytes(make.workbook(sheets))
    (tmp_path / "m.yaml").write_text('sheet: "*"\n')
    refused = run("import_dataset", tmp_path / "book.xlsx", "--mapping", tmp_path / "m.yaml")
    assert refused.status == 1 and refused.problems[0].startswith("book.xlsx, line 2, [Notes].language: found")
    (tmp_path / "m.yaml").write_text('sheet: "Nothing *"\n')
    refused = run("import_dataset", tmp_path / "book.xlsx", "--mapping", tmp_path / "m.yaml")
    assert refused.status == 1 and "no sheet “Nothing *”" in refused.problems[0]


@pytest.mark.parametrize("name", ["study.tar.gz", "study.tgz", "study.tar"])
def test_a_tar_archive_is_read_by_every_way(cast: Cast, tmp_path: Path, name: str) -> None:
    boris, table = cast.client("boris"), b"id,language,answer\nd1,en,One.\n"
    archive = tape(
        ("./a.csv", table), ("./._a.csv", b"x"), ("README", b"x"), mode="w" if name.endswith(".tar") else "w:gz"
    )
    for way in ("page", "api"):
        raw = SimpleUploadedFile(name, archive)
        if way == "page":
            number = uploaded(boris, raw).pk
        else:
            number = boris.post("/api/v1/projects/kassa/imports/", {"files": [raw]}).json()["id"]
        opened(cast, number)
        assert f"{name}: 2 of its files are not data" in page(boris, f"/p/kassa/imports/{number}/")
        boris.post(f"/p/kassa/imports/{number}/store/")
        tasks.store_import(number, cast.boris.pk)
        assert Item.objects.get().fields == {"answer": "One."}
        undoing.undo(file_import=Import.objects.get(pk=number))
    (tmp_path / name).write_bytes(archive)
    assert run("import_dataset", tmp_path / name).status == 0 and Item.objects.count() == 1


def sparse() -> bytes:
    """A tar archive with a file that declares more than is there."""
    raw = bytearray(tape(("a.csv", b"id\n1\n"), mode="w"))
    raw[156:157] = b"S"
    raw[148:156] = b"        "
    raw[148:156] = f"{sum(raw[:512]):06o}\0 ".encode()
    return bytes(raw)


def linked() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        entry = tarfile.TarInfo("a.csv")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    return stream.getvalue()


WHOLE = tape(("a.csv", b"id,text\n1,a\n"), ("b.csv", b"id,text\n2,b\n"), mode="w")
DOUBTFUL = {
    "no tar": ("a.tar", b"id,text\n1,a\n" * 200, "broken_archive"),
    "no gzip": ("a.tgz", WHOLE, "broken_archive"),
    "cut in a member": ("a.tar", WHOLE[:600], "truncated"),
    "cut before a header": ("a.tar", WHOLE[:1024], "truncated"),
    "a header broken": ("a.tar", WHOLE[:1024] + b"?" * 200 + WHOLE[1224:], "broken_archive"),
    "gzip cut": ("a.tar.gz", gzip.compress(WHOLE, mtime=0)[:-20], "truncated"),
    "a link": ("a.tar", linked(), "archive"),
    "a sparse file": ("a.tar", sparse(), "archive"),
    "a zip inside": ("a.tar", tape(("b.zip", b"PK"), mode="w"), "nested_archive"),
    "one name twice": ("a.tar", tape(("a.csv", b"id\n1\n"), ("a.csv", b"id\n2\n"), mode="w"), "duplicate_name"),
    "nothing inside": ("a.tar", tape(mode="w"), "empty"),
    "a very long name": ("a.tar", tape(("x" * 100_000 + ".csv", b"id\n1\n"), mode="w"), "size"),
}


@pytest.mark.parametrize("case", DOUBTFUL)
def test_a_doubtful_tar_archive_is_refused(case: str) -> None:
    name, raw, code = DOUBTFUL[case]
    assert code_of(name, raw) == code
