"""Imports by page and by API: upload, look, correct, store, take back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotation import campaigns, tasks
from annotation.imports import lifecycle
from annotation.models import Annotation, Dataset, Import, Item, RubricVersion
from annotation.readers import encoding
from judging.models import JudgeRun, Verdict
from tests import make
from tests.cast import Cast

# What must survive: CRLF in a cell, bidi marks, a joiner, a combining mark, a tatweel, an emoji with its joiner.
HARD = 'two\r\nlines \u200fعربي\u200e نقـــل \u202aX\u202c می\u200cخواهم e\u0301 👩\u200d💻 "quoted"'
DIALOGUES = "\ufeffid,language,question,answer,model,note\r\n" + "".join(
    f'd{n},et,"{HARD.replace(chr(34), chr(34) * 2)}",Vastus {n}.,m{n % 2},n{n}\r\n' for n in range(1, 4)
)
RATINGS = "item,rater,criterion,score\nd1,A1,Fluency,3\nd1,A1,coherence,1\nd2,A1,FLUENCY,\n"
RUBRIC = (
    "{key: short, name: Short, source_language: en, criteria: "
    "[{key: fluency, name: {en: Fluency, ar: سلاسة}, scale: {level: ordinal, points: [0, 1, 2, 3]}, "
    "anchors: {0: Poor}}]}"
)


def file(name: str, text: str) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode())


def uploaded(client: Client, *files: SimpleUploadedFile, kind: str = "") -> Import:
    """Upload by page; the import that came of it, whose page must show."""
    answer = client.post("/p/kassa/imports/new/", {"files": list(files), "kind": kind}, follow=True)
    assert answer.status_code == 200 and answer.redirect_chain, answer.content.decode()
    return Import.objects.latest("pk")


def page(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def test_a_file_becomes_a_dataset_byte_for_byte(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("dialogues.csv", DIALOGUES))
    assert (file_import.kind, file_import.state) == ("dataset", "uploaded")
    shown = page(boris, f"/p/kassa/imports/{file_import.pk}/")
    assert "What would be stored" in shown and 'name="column" value="model"' in shown
    assert Item.objects.count() == 0
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    stored = Dataset.objects.get()
    assert (stored.name, stored.items.count()) == ("dialogues", 3)
    items = boris.get(f"/api/v1/projects/kassa/datasets/{stored.pk}/items/").json()["results"]
    assert [item["fields"]["question"] for item in items] == [HARD] * 3
    assert items[0]["attributes"] == {"note": "n1"}
    kept = file_import.files.get()
    answer = boris.get(f"/p/kassa/imports/{file_import.pk}/files/{kept.pk}/")
    assert b"".join(answer.streaming_content) == DIALOGUES.encode()  # type: ignore[attr-defined]
    assert "dialogues v1" in page(boris, f"/p/kassa/imports/{file_import.pk}/")


def test_the_table_of_columns_is_taken_over_and_used_again(cast: Cast) -> None:
    boris = cast.client("boris")
    text = "nr,keel,tekst,autor\n1,et,Tere!,m1\n2,et,Hommikust!,m2\n"
    file_import = uploaded(boris, file("odd.csv", text))
    assert "can't be stored yet" in page(boris, f"/p/kassa/imports/{file_import.pk}/")
    form = {"kind": "dataset", "name": "Greetings", "licence": "CC0-1.0", "column": ["nr", "keel", "tekst", "autor"]}
    form |= {"field": ["id", "language", "answer", "ignore"], "constant-scenario": "greeting"}
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form)
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    stored = Dataset.objects.get()
    assert (stored.name, stored.licence) == ("Greetings", "CC0-1.0")
    first = stored.items.get(external_id="1")
    assert (first.fields, first.attributes, first.scenario) == ({"answer": "Tere!"}, {}, "greeting")

    again = uploaded(boris, file("more.csv", text))
    assert '<option value="">Choose a mapping…</option><optgroup' in page(
        boris, f"/p/kassa/imports/{again.pk}/mappings/"
    )
    unchosen = boris.post(f"/p/kassa/imports/{again.pk}/map/", {"mapping_of": ""}, follow=True)
    assert "Choose a mapping." in unchosen.content.decode()
    assert Import.objects.get(pk=again.pk).mapping == again.mapping
    boris.post(f"/p/kassa/imports/{again.pk}/map/", {"mapping_of": f"import-{file_import.pk}"})
    again.refresh_from_db()
    assert again.mapping["columns"] == {"nr": "id", "keel": "language", "tekst": "answer"}
    saved = boris.get(f"/p/kassa/imports/{again.pk}/mapping.yaml").content.decode()
    boris.post(f"/p/kassa/imports/{again.pk}/map/", {"yaml": saved.replace("answer", "question")})
    again.refresh_from_db()
    assert again.mapping["columns"]["tekst"] == "question"
    refused = boris.post(f"/p/kassa/imports/{again.pk}/map/", {"yaml": "colums: {}"}, follow=True)
    told = refused.content.decode()
    assert "did you mean columns?" in told and "colums: {}</textarea>" in told
    assert "colums" not in page(boris, f"/p/kassa/imports/{again.pk}/")


def test_the_sheet_of_a_workbook_is_chosen_and_its_rows_are_turns(cast: Cast) -> None:
    boris = cast.client("boris")
    rows = [
        ["ID", "Nr", "Kes", "Tekst"],
        ["a", 1, "klient", "Tere!"],
        ["a", 2, "teenindaja", "Jah?"],
        ["b", 1, "x", "y"],
    ]
    book = make.workbook({"Vestlused": rows, "Märkmed": [["jutt"], ["mitte midagi"]]})
    file_import = uploaded(boris, SimpleUploadedFile("vestlused.xlsx", book))
    tasks.open_packed(file_import.pk)
    tasks.check_import(file_import.pk)
    assert "“Vestlused”, “Märkmed”" in page(boris, f"/p/kassa/imports/{file_import.pk}/")
    form = {"kind": "dataset", "name": "", "sheet": "Vestlused", "constant-language": "et"}
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form)
    tasks.open_packed(file_import.pk)
    tasks.check_import(file_import.pk)
    assert "<bdi>Kes</bdi>" in page(boris, f"/p/kassa/imports/{file_import.pk}/")
    form |= {"column": ["ID", "Nr", "Kes", "Tekst"], "field": ["id", "turn.number", "turn.speaker", "turn.text"]}
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", form)
    tasks.check_import(file_import.pk)
    assert "3 rows are the turns of 2 dialogues." in page(boris, f"/p/kassa/imports/{file_import.pk}/")
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    tasks.store_import(file_import.pk, cast.boris.pk)
    assert [len(item.turns) for item in Item.objects.order_by("external_id")] == [2, 1]


def test_the_encoding_of_a_file_is_chosen(cast: Cast) -> None:
    boris = cast.client("boris")
    raw = "id,language,answer\n1,es,¿Cómo está señor?\n".encode("cp1252")
    file_import = uploaded(boris, SimpleUploadedFile("respuestas.csv", raw))
    assert '<option value="cp1252"' in page(boris, f"/p/kassa/imports/{file_import.pk}/")
    boris.post(f"/p/kassa/imports/{file_import.pk}/map/", {"kind": "dataset", "name": "", "encoding": "cp1252"})
    assert '<option value="cp1252" selected>' in page(boris, f"/p/kassa/imports/{file_import.pk}/")
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    assert Item.objects.get().fields == {"answer": "¿Cómo está señor?"}


def test_a_refused_file_shows_every_problem_and_leaves_nothing(cast: Cast) -> None:
    make.campaign(cast.kassa)
    boris = cast.client("boris")
    file_import = uploaded(boris, file("ratings.csv", "item,rater,criterion,score\nd1,A1,fluency,9\nd7,A1,fluency,1\n"))
    assert file_import.kind == "ratings"
    answer = boris.post(f"/p/kassa/imports/{file_import.pk}/store/", follow=True).content.decode()
    assert "a score on the scale 0, 1, 2, 3" in answer and "“d7”" in answer
    file_import.refresh_from_db()
    assert (file_import.state, Annotation.objects.count()) == ("failed", 0)
    boris.post(f"/p/kassa/imports/{file_import.pk}/discard/")
    assert not Import.objects.filter(pk=file_import.pk).exists()


def test_ratings_find_their_campaign_and_criteria_and_can_be_taken_back(cast: Cast) -> None:
    target = make.campaign(cast.kassa)
    boris = cast.client("boris")
    file_import = uploaded(boris, file("ratings.csv", RATINGS))
    assert file_import.target == {"campaign": target.pk}
    assert "“FLUENCY” was taken as the criterion fluency." in page(boris, f"/p/kassa/imports/{file_import.pk}/")
    before = campaigns.revision(target)
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    assert Annotation.objects.get().ratings.count() == 2
    assert campaigns.revision(target) != before
    assert "Already" not in page(boris, f"/p/kassa/imports/{file_import.pk}/")
    boris.post(f"/p/kassa/imports/{file_import.pk}/undo/")
    file_import.refresh_from_db()
    assert (file_import.state, Annotation.objects.count()) == ("uploaded", 0)


def test_a_dataset_in_use_is_not_taken_back(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("dialogues.csv", DIALOGUES))
    boris.post(f"/p/kassa/imports/{file_import.pk}/store/")
    campaign = campaigns.open_campaign(
        project=cast.kassa, name="Round", dataset=Dataset.objects.get(), rubric_version=make.rubric(cast.kassa)
    )
    refused = boris.post(f"/p/kassa/imports/{file_import.pk}/undo/", follow=True).content.decode()
    assert "in use by 1 campaign" in refused and Item.objects.count() == 3
    campaign.delete()
    boris.post(f"/p/kassa/imports/{file_import.pk}/undo/")
    assert (Dataset.objects.count(), Item.objects.count()) == (0, 0)


def test_an_import_under_way_shows_how_far_it_is(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("dialogues.csv", DIALOGUES))
    lifecycle.start(file_import=file_import)
    assert "Being stored" in page(boris, f"/p/kassa/imports/{file_import.pk}/")
    assert "HX-Refresh" not in boris.get(f"/p/kassa/imports/{file_import.pk}/progress/")


def test_an_upload_beyond_the_limit_says_so(cast: Cast, settings: Any) -> None:
    settings.UPLOAD_LIMIT = 50
    boris = cast.client("boris")
    answer = boris.post("/p/kassa/imports/new/", {"files": [file("big.csv", DIALOGUES)]})
    assert "UPLOAD_LIMIT_MB" in answer.content.decode()
    api = boris.post("/api/v1/projects/kassa/imports/", {"files": [file("big.csv", DIALOGUES)]})
    assert (api.status_code, api.json()["code"]) == (422, "too_large")
    assert Import.objects.count() == 0


def test_verdicts_are_uploaded_on_the_same_page(cast: Cast) -> None:
    make.dataset(cast.kassa)
    make.rubric(cast.kassa)
    boris = cast.client("boris")
    lines = '{"item": "d1", "judge": "x", "criterion": "fluency", "score": 2.5, "reply": "2.5 I think"}\n'
    file_import = uploaded(boris, file("verdicts.jsonl", lines))
    assert file_import.kind == "verdicts"
    address = f"/p/kassa/verdict-imports/{file_import.pk}"
    assert boris.get(f"/p/kassa/imports/{file_import.pk}/")["Location"] == f"{address}/"
    assert "between two points" in page(boris, f"{address}/")
    boris.post(f"{address}/store/")
    verdict = Verdict.objects.get()
    assert (verdict.score, verdict.fractional, verdict.repeat) == (2.5, True, 1)
    assert verdict.attempt and verdict.attempt.reply == {"imported": "2.5 I think"}
    assert "<bdi>x</bdi>" in page(boris, f"{address}/")
    boris.post(f"{address}/undo/")
    assert (Verdict.objects.count(), JudgeRun.objects.count()) == (0, 0)


def test_rubrics_are_drafted_published_and_compared(cast: Cast) -> None:
    aino = cast.client("aino")
    file_import = uploaded(aino, file("rubric.yaml", RUBRIC))
    assert "Poor" in page(aino, f"/p/kassa/imports/{file_import.pk}/")
    aino.post(f"/p/kassa/imports/{file_import.pk}/store/")
    shown = page(aino, "/p/kassa/rubrics/short/v1/")
    assert "سلاسة" in shown and "Delete the draft" in shown
    aino.post("/p/kassa/rubrics/short/v1/publish/")
    assert RubricVersion.objects.get().state == "published"
    second = uploaded(aino, file("rubric.yaml", RUBRIC.replace("Poor", "Very poor")))
    aino.post(f"/p/kassa/imports/{second.pk}/store/")
    assert "+      en: Very poor" in page(aino, "/p/kassa/rubrics/short/v2/")
    written = aino.get("/p/kassa/rubrics/short/v2.yaml").content.decode()
    assert "Very poor" in written
    aino.post("/p/kassa/rubrics/short/v1/withdraw/")
    aino.post("/p/kassa/rubrics/short/v2/withdraw/")
    assert [version.number for version in RubricVersion.objects.all()] == [1]
    assert "short" in page(aino, "/p/kassa/rubrics/")


def test_items_are_filtered_and_paged(cast: Cast) -> None:
    rows = [make.item_row(n, language="ar" if n % 2 else "et", generator=f"m{n % 3}") for n in range(1, 121)]
    stored = make.dataset(cast.kassa, rows)
    boris = cast.client("boris")
    address = f"/p/kassa/datasets/{stored.pk}/"
    assert "after=49" in page(boris, address)
    assert "60 items" in page(boris, f"{address}?language=ar")
    assert "1 item" in page(boris, f"{address}?q=number+117+on")
    assert "No item matches" in page(boris, f"{address}?generator=nobody")
    item = stored.items.get(external_id="d7")
    shown = page(boris, f"{address}items/{item.pk}/")
    assert "pakk number 7" in shown and "m1" in shown
    assert "d7" in page(boris, f"{address}?language=ar")
    found = boris.get(f"/api/v1/projects/kassa/datasets/{stored.pk}/items/?q=number 117 on").json()
    assert [item["external_id"] for item in found["results"]] == ["d117"]


def test_the_whole_import_by_api(cast: Cast) -> None:
    boris = cast.client("boris")
    base = "/api/v1/projects/kassa"
    raw = boris.post(
        f"{base}/imports/?name=dialogues.csv&kind=dataset", DIALOGUES.encode(), content_type="application/octet-stream"
    )
    assert raw.status_code == 201, raw.content
    made = raw.json()
    assert made["mapping"]["columns"]["model"] == "generator"
    address = f"{base}/imports/{made['id']}"
    boris.patch(f"{address}/", {"target": {"name": "By API"}}, content_type="application/json")
    seen = boris.get(f"{address}/preview/").json()
    assert (seen["report"]["stored"], len(seen["rows"]), seen["problems"]) == (3, 3, [])
    stored = boris.post(f"{address}/store/").json()
    assert (stored["state"], stored["report"]["stored"]) == ("stored", 3)
    assert boris.post(f"{address}/store/").status_code == 409
    assert [each["name"] for each in boris.get(f"{base}/datasets/").json()["results"]] == ["By API"]

    document = {"key": "short", "name": "Short", "source_language": "en", "criteria": [make.criterion("fluency")]}
    document["criteria"] += [make.criterion("coherence", (0, 1))]  # type: ignore[operator]
    drafted = boris.post(f"{base}/rubrics/", document, content_type="application/json")
    assert drafted.status_code == 201, drafted.content
    version = f"{base}/rubrics/{drafted.json()['rubric']}/versions/1"
    assert boris.post(f"{version}/publish/").json()["state"] == "published"
    form = {"files": [file("ratings.csv", RATINGS)], "kind": "ratings"}
    form["target"] = json.dumps({"dataset": Dataset.objects.get().pk, "rubric_version": drafted.json()["id"]})
    ratings = boris.post(f"{base}/imports/", form).json()
    assert boris.post(f"{base}/imports/{ratings['id']}/store/").json()["report"]["stored"] == 2
    assert boris.post(f"{address}/undo/").json()["code"] == "in_use"

    bad = boris.post(f"{base}/imports/", {**form, "files": [file("r.csv", RATINGS.replace(",3", ",8"))]}).json()
    refused = boris.post(f"{base}/imports/{bad['id']}/store/")
    assert (refused.status_code, refused.json()["problems"][0]["line"]) == (422, 2)
    wrong = boris.post(f"{base}/rubrics/", {"key": "x"}, content_type="application/json")
    assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid")


def test_what_no_database_can_keep_is_refused_by_name(cast: Cast) -> None:
    boris = cast.client("boris")
    file_import = uploaded(boris, file("dialogues.csv", DIALOGUES))
    address = f"/api/v1/projects/kassa/imports/{file_import.pk}/"
    for broken in ('{"mapping": {"columns": {"a\\u0000": "id"}}}', '{"mapping": {"columns": {"a\\ud800": "id"}}}'):
        answer = boris.patch(address, broken, content_type="application/json")
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    posted = boris.post(f"/p/kassa/imports/{file_import.pk}/map/", {"kind": "dataset", "name": "a\x00b"})
    assert posted.status_code == 302
    file_import.refresh_from_db()
    assert file_import.target["name"] == "ab"
    rubric = boris.post("/api/v1/projects/kassa/rubrics/", '{"key": "\\ud800"}', content_type="application/json")
    assert rubric.status_code == 400


@pytest.mark.parametrize("who", ["maarika", "zoltan"])
def test_annotators_and_strangers_reach_none_of_it(cast: Cast, who: str) -> None:
    dataset = make.dataset(cast.kassa)
    boris, other = cast.client("boris"), cast.client(who)
    file_import = uploaded(boris, file("dialogues.csv", DIALOGUES))
    item = dataset.items.first()
    assert item
    expected = {"maarika": 403, "zoltan": 404}[who]
    pages = ["datasets/", f"datasets/{dataset.pk}/", f"datasets/{dataset.pk}/items/{item.pk}/", "imports/", "rubrics/"]
    pages += ["imports/new/", f"imports/{file_import.pk}/", f"imports/{file_import.pk}/mapping.yaml"]
    assert {other.get(f"/p/kassa/{each}").status_code for each in pages} == {expected}
    routes = ["datasets/", f"datasets/{dataset.pk}/items/", "imports/", f"imports/{file_import.pk}/", "rubrics/"]
    assert {other.get(f"/api/v1/projects/kassa/{each}").status_code for each in routes} == {expected}
    # A lead of another project does not get there through their own.
    assert other.get(f"/p/teine/imports/{file_import.pk}/").status_code == 404


def test_the_page_of_an_import_decodes_its_file_once(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    boris = cast.client("boris")
    titled = "A title\n" + DIALOGUES.removeprefix("\ufeff")
    boris.post("/p/kassa/imports/new/", {"files": [file("titled.csv", titled)], "kind": "dataset"})
    file_import = Import.objects.latest("pk")
    decoded, codec_of = [], encoding.codec_of
    monkeypatch.setattr(encoding, "codec_of", lambda name, *rest: (decoded.append(name), codec_of(name, *rest))[1])
    for _view in range(2):
        shown = page(boris, f"/p/kassa/imports/{file_import.pk}/")
        assert "1: A title" in shown and "2: id · language · question" in shown
        assert decoded == ["titled.csv"], "the second view shows what the first has read"


def test_problems_on_the_page_name_its_labels_and_the_api_the_keys(cast: Cast) -> None:
    boris = cast.client("boris")
    turns = "id,language,turn.speaker,turn.text\n7e1,et,user,Tere\n7e1,et,,Head aega\n"
    ratings = 'item,rater,criterion,score,scale_max\nd1,mari,fluency,"1,5",kolm\n'
    quotes = 'id,language,answer\n1,et,"a "b" c"\n'
    expected = {
        ("turns.csv", turns, "dataset"): ("Ids like 7e1, or like a date", ("trust_ids",)),
        ("ratings.csv", ratings, "ratings"): ("Numbers like 3,5", ("decimal_comma", "scale_max with")),
        ("quotes.csv", quotes, "dataset"): ("Mapping (YAML)", ("in the mapping",)),
    }
    for (name, text, kind), (label, keys) in expected.items():
        file_import = uploaded(boris, file(name, text), kind=kind)
        shown = (
            page(boris, f"/p/kassa/imports/{file_import.pk}/").partition('id="problems"')[2].partition("</section>")[0]
        )
        assert label in shown and not [key for key in keys if key in shown], (name, shown)
        said = boris.get(f"/api/v1/projects/kassa/imports/{file_import.pk}/preview/").content.decode()
        assert keys[0] in said, (name, said)
