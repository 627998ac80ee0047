"""The check-up of a dataset, from an import to the dataset that leaves out what was found: pages, API, command."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts import people
from accounts.models import AuditEntry, Job
from accounts.refusals import Refused
from annotation import tasks
from annotation.checkup import checkups
from annotation.checkup.checking import RULES
from annotation.checkup.native_flags import ReadItem, compare_flags
from annotation.imports import storage
from annotation.models import Dataset, DatasetCheckup, Item, Skip
from annotation.views.checkup import threshold_words
from tests import make
from tests.analytics.test_bundles import loaded, rewritten, taken_out
from tests.cast import Cast

pytestmark = pytest.mark.django_db

ENGLISH = "Hello, I ordered a book from you last week, but the parcel has still not arrived at my place."
NAME = 'Dialoogid «A & "B"» مرحبا'


def rows() -> list[Any]:
    """Twelve dialogues in pairs of one scenario; number 3 has a placeholder, 4 is in English, 12 is like 11."""
    turns: dict[int, list[str]] = {
        3: ["Tere {name}!", "Tere, kuidas saan teid täna aidata?"],
        4: [ENGLISH, "I am sorry to hear that. Could you please give me the number of your order?"],
        12: ["Tere! Minu pakk number 11 on kadunud.", "Vaatan kohe järele, kus pakk 11 on. Palun oodake veidi. "],
    }
    said: dict[int, dict[str, Any]] = {
        number: {
            "turns": [{"speaker": who, "text": text} for who, text in zip(("customer", "agent"), texts, strict=True)]
        }
        for number, texts in turns.items()
    }
    return [
        make.item_row(
            number,
            scenario=f"juhtum {(number + 1) // 2}",
            generator=("atlas", 'm "2"')[number % 2],
            **said.get(number, {}),
        )
        for number in range(1, 13)
    ]


@pytest.fixture
def checked(cast: Cast) -> Dataset:
    """A dataset that a worker has checked."""
    dataset = make.dataset(cast.kassa, rows(), name=NAME)
    checkups.carry_out_checkup(checkups.begin_checkup(dataset=dataset, actor=cast.aino).pk)
    return dataset


def address(dataset: Dataset, below: str = "") -> str:
    return f"/p/kassa/datasets/{dataset.pk}/checkup/{below}"


def api(dataset: Dataset, below: str = "") -> str:
    return f"/api/v1/projects/kassa/datasets/{dataset.pk}/checkup/{below}"


def found(document: dict[str, Any]) -> dict[str, int]:
    return {finding["check"]: finding["items"] for finding in document["findings"] if finding["items"]}


@pytest.mark.both_databases
def test_an_import_is_checked_by_a_worker_and_its_page_leads_there(cast: Cast) -> None:
    lead = cast.client("aino")
    file = SimpleUploadedFile("Tere «1».csv", b"id,language,answer\na,et,Tere [REDACTED] hommikust\nb,et,Tere!\n")
    there = lead.post("/p/kassa/imports/new/", {"files": [file]})["Location"]
    lead.post(f"{there}store/")
    dataset = Dataset.objects.get()
    assert address(dataset) in lead.get(there).content.decode()
    assert address(dataset) in lead.get(f"/p/kassa/datasets/{dataset.pk}/").content.decode()
    checkup = DatasetCheckup.objects.get()
    assert checkup.job is not None and checkup.job.state == Job.State.WAITING
    assert "A worker checks this dataset" in lead.get(address(dataset)).content.decode()
    tasks.check_dataset(checkup.pk)
    page = lead.get(address(dataset)).content.decode()
    assert "Placeholder that was not filled in" in page
    assert "Tere [REDACTED] hommikust" in page
    assert "does not apply, because no item has turns" in page
    checkup.refresh_from_db()
    assert (checkup.rules, checkup.job.state if checkup.job else "") == (RULES, Job.State.FINISHED)
    # The import can be undone: nothing depends on it but its check-up, which goes with it.
    lead.post(f"{there}undo/")
    assert not Dataset.objects.exists()
    assert not DatasetCheckup.objects.exists()


@pytest.mark.both_databases
def test_findings_are_left_out_of_a_new_dataset(cast: Cast, checked: Dataset) -> None:
    lead = cast.client("boris")
    before = list(Item.objects.of(checked).values())
    asked = {"checks": ["placeholder", "other_language"], "name": "Puhas «1»"}
    answer = lead.post(address(checked, "leave-out/"), asked, follow=True)
    made = Dataset.objects.get(name="Puhas «1»")
    page = answer.content.decode()
    assert answer.redirect_chain[-1][0] == address(made)
    assert "How this dataset was made" in page
    assert "without 2 items" in page
    assert made.derived_from == checked
    kept = [row["external_id"] for row in before if row["external_id"] not in ("d3", "d4")]
    assert list(Item.objects.of(made).values_list("external_id", flat=True)) == kept
    same = dict(Item.objects.of(made).values_list("external_id", "digest"))
    assert same == {row["external_id"]: row["digest"] for row in before if row["external_id"] in same}
    assert list(Item.objects.of(checked).values()) == before, "nothing of the original changes"
    note = DatasetCheckup.objects.get(dataset=made).made_from
    assert note["findings"] == {"other_language": 1, "placeholder": 1}
    assert note["digest"] == DatasetCheckup.objects.get(dataset=checked).digest
    entry = AuditEntry.objects.get(verb="leave out items")
    assert (entry.subject_pk, entry.fields) == (made.pk, ["other_language", "placeholder"])
    tasks.check_dataset(DatasetCheckup.objects.get(dataset=made).pk)
    again = lead.get(api(made)).json()
    assert "placeholder" not in found(again)
    assert again["made_from"]["items"] == 2
    assert "Puhas «1»" in lead.get(address(checked)).content.decode()


def test_whole_scenarios_are_left_out_on_request(cast: Cast, checked: Dataset) -> None:
    body = {"checks": ["placeholder"], "families": True}
    answer = cast.client("boris").post(api(checked, "leave-out/"), body, content_type="application/json")
    assert answer.status_code == 201
    made = Dataset.objects.get(pk=answer.json()["dataset"])
    assert made.name == f"{NAME}, checked"
    left = set(Item.objects.of(checked).values_list("external_id", flat=True)) - set(
        Item.objects.of(made).values_list("external_id", flat=True)
    )
    assert left == {"d3", "d4"}, "d4 is of the scenario of d3"


@pytest.mark.both_databases
def test_a_large_dataset_is_made_by_a_worker_once(
    cast: Cast, checked: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkups, "MADE_AT_ONCE", 3)
    lead = cast.client("boris")
    body = {"checks": ["placeholder"], "name": "Suur"}
    answer = lead.post(api(checked, "leave-out/"), body, content_type="application/json").json()
    assert answer["dataset"] is None
    busy = lead.post(api(checked, "leave-out/"), body, content_type="application/json")
    assert (busy.status_code, busy.json()["code"]) == (409, "busy")
    assert "A worker makes the new dataset" in lead.get(address(checked)).content.decode()
    checkup = DatasetCheckup.objects.get(dataset=checked)
    tasks.check_dataset(checkup.pk)
    assert Item.objects.of(Dataset.objects.get(name="Suur")).count() == 11
    # A worker that was killed between the dataset and the end of its job: another one makes no second dataset.
    DatasetCheckup.objects.filter(dataset__name="Suur").delete()
    Job.objects.filter(pk=answer["job"]).update(state=Job.State.WAITING, lease=None, ended_at=None)
    tasks.check_dataset(checkup.pk)
    assert Dataset.objects.filter(name="Suur").count() == 1
    assert DatasetCheckup.objects.get(dataset__name="Suur").made_from["items"] == 1


def test_what_cannot_be_left_out_is_refused_with_a_reason(cast: Cast, checked: Dataset) -> None:
    lead = cast.client("boris")

    def refused(of: Dataset, *checks: str) -> tuple[int, str]:
        answer = lead.post(api(of, "leave-out/"), {"checks": list(checks)}, content_type="application/json")
        return answer.status_code, answer.json()["code"]

    assert refused(checked) == (422, "invalid")
    assert refused(checked, "no_such_check") == (422, "invalid")
    assert refused(checked, "wrong_encoding") == (409, "same")
    unchecked = make.dataset(cast.kassa, 2, name="Uus")
    assert refused(unchecked, "placeholder") == (409, "not_checked")
    DatasetCheckup.objects.filter(dataset=checked).update(rules=0)
    assert refused(checked, "placeholder") == (409, "not_checked")
    assert "There are newer checks" in lead.get(address(checked)).content.decode()
    single = make.dataset(cast.kassa, [make.item_row(1, turns=[{"speaker": "a", "text": "[nimi]"}])], name="Üks")
    checkups.carry_out_checkup(checkups.begin_checkup(dataset=single).pk)
    assert refused(single, "placeholder") == (409, "empty")
    assert (
        "nothing would be left"
        in lead.post(address(single, "leave-out/"), {"checks": ["placeholder"]}, follow=True).content.decode()
    )
    assert Dataset.objects.count() == 3


@pytest.mark.both_databases
def test_asked_twice_there_is_one_dataset_and_a_taken_name_is_refused(cast: Cast, checked: Dataset) -> None:
    lead = cast.client("boris")
    other = make.dataset(cast.kassa, 2, name="Võõras «1»")

    def asked(*checks: str, name: str) -> Any:
        body = {"checks": list(checks), "name": name}
        return lead.post(api(checked, "leave-out/"), body, content_type="application/json")

    first, second = asked("placeholder", name="Puhas"), asked("placeholder", name=" Puhas ")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert Dataset.objects.filter(name="Puhas").count() == 1
    assert AuditEntry.objects.filter(verb="leave out items").count() == 1
    for refused in (asked("other_language", name="Puhas"), asked("placeholder", name=other.name)):
        assert (refused.status_code, refused.json()["code"]) == (422, "name_taken")
    page = lead.post(address(checked, "leave-out/"), {"checks": ["placeholder"], "name": other.name}, follow=True)
    assert "already has a dataset called “Võõras «1»”" in page.content.decode()
    with pytest.raises(CommandError, match="already has a dataset"):
        call_command("checkup", NAME, "--project", "kassa", "--leave-out", "placeholder", "--name", other.name)
    assert list(Dataset.objects.filter(name=other.name)) == [other]
    assert Dataset.objects.count() == 3


def test_a_name_that_is_taken_at_the_same_moment_is_refused(
    cast: Cast, checked: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another request has stored version 1 after this one had looked which version is next."""
    make.dataset(cast.kassa, 1, name="Puhas")
    monkeypatch.setattr(checkups, "_made_before", lambda *_about: None)
    monkeypatch.setattr("annotation.imports.storage._next_version", lambda *_about: 1)
    body = {"checks": ["placeholder"], "name": "Puhas"}
    refused = cast.client("boris").post(api(checked, "leave-out/"), body, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (422, "name_taken")
    assert Dataset.objects.filter(name="Puhas").count() == 1


@pytest.mark.both_databases
def test_a_dataset_that_a_worker_makes_is_checked_and_keeps_how_it_was_made(
    cast: Cast, checked: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkups, "MADE_AT_ONCE", 3)
    # A check-up of the new dataset that begins before it is noted how it was made takes nothing away.
    monkeypatch.setattr(storage, "store", _checked_at_once(storage.store))
    lead = cast.client("boris")
    body = {"checks": ["placeholder"], "name": "Suur «2»"}
    lead.post(api(checked, "leave-out/"), body, content_type="application/json")
    tasks.check_dataset(DatasetCheckup.objects.get(dataset=checked).pk)
    made = DatasetCheckup.objects.get(dataset__name="Suur «2»")
    assert made.made_from["items"] == 1
    assert made.job is not None and made.job.state == Job.State.WAITING
    again = lead.post(api(checked, "leave-out/"), body, content_type="application/json").json()
    assert again == {"dataset": made.dataset_id, "job": None}


def _checked_at_once(store: Any) -> Any:
    def stored(**about: Any) -> Dataset:
        made: Dataset = store(**about)
        checkups.check_now(dataset=made)
        return made

    return stored


def test_nothing_is_made_in_an_archived_project(cast: Cast, checked: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkups, "MADE_AT_ONCE", 3)
    checkup = DatasetCheckup.objects.get(dataset=checked)
    left_out = checkups.LeftOut(("placeholder",), name="Hilja")
    checkups.leave_out(checkup=checkup, left_out=left_out, actor=cast.boris)
    cast.kassa.archived_at = timezone.now()
    cast.kassa.save()
    tasks.check_dataset(checkup.pk)
    checkup.refresh_from_db()
    assert checkup.job is not None
    assert (checkup.job.state, checkup.job.sentence) == (
        Job.State.FAILED,
        "This project is archived: it can be read, not changed.",
    )
    fresh = DatasetCheckup.objects.select_related("dataset__project").get(pk=checkup.pk)
    with pytest.raises(Refused, match="archived"):
        checkups.make_without(checkup=fresh, left_out=left_out)
    assert Dataset.objects.count() == 1


@pytest.mark.both_databases
def test_how_a_dataset_was_made_moves_with_its_project(cast: Cast, checked: Dataset) -> None:
    left_out = checkups.LeftOut(("placeholder",), families=True, name="Puhas «1»")
    checkup = DatasetCheckup.objects.select_related("dataset__project").get(dataset=checked)
    made = checkups.make_without(checkup=checkup, left_out=left_out)
    content = taken_out(cast.kassa)
    loaded(cast.teine, content)
    theirs = DatasetCheckup.objects.get(dataset__project=cast.teine)
    assert theirs.dataset.name == "Puhas «1»"
    assert theirs.made_from == DatasetCheckup.objects.get(dataset=made).made_from
    assert (theirs.result, theirs.job) == (None, None)
    page = cast.client("zoltan").get(f"/p/teine/datasets/{theirs.dataset_id}/checkup/").content.decode()
    assert "How this dataset was made" in page
    assert "without 2 items" in page
    assert taken_out(cast.teine) == content
    checkups.carry_out_checkup(checkups.begin_checkup(dataset=theirs.dataset).pk)
    theirs.refresh_from_db()
    assert theirs.made_from["items"] == 2
    assert theirs.result is not None

    def broken(members: dict[str, bytes]) -> None:
        row = json.loads(members["dataset_checkups.jsonl"])
        members["dataset_checkups.jsonl"] = json.dumps({**row, "made_from": {"items": 2}}).encode() + b"\n"

    third = people.create_project(name="Third", slug="third", founder=cast.zoltan)
    with pytest.raises(Refused, match="how a dataset was made"):
        loaded(third, rewritten(content, broken))


def test_the_page_filters_and_shows_every_item_of_one_check(cast: Cast, checked: Dataset) -> None:
    lead = cast.client("boris")
    page = lead.get(address(checked)).content.decode()
    assert "Probably written in another language" in page
    assert "Rather English than Estonian" in page
    assert "turn-1" in page
    other = lead.get(address(checked), {"generator": 'm "2"'}).content.decode()
    assert "Rather English than Estonian" not in other, "d4 is by the other generator"
    severe = lead.get(address(checked), {"severity": "error"}).content.decode()
    assert "Placeholder that was not" not in severe
    single = lead.get(address(checked), {"check": "placeholder"}).content.decode()
    item = Item.objects.get(dataset=checked, external_id="d3")
    assert f"/p/kassa/datasets/{checked.pk}/items/{item.pk}/#turn-1" in single
    assert 'id="turn-1"' in lead.get(f"/p/kassa/datasets/{checked.pk}/items/{item.pk}/").content.decode()
    for odd in ({"check": "x"}, {"severity": "x"}, {"after": "-1"}, {"language": "\x00"}, {"scenario": "juhtum 2"}):
        assert lead.get(address(checked), odd).status_code == 200


def test_the_pages_read_what_is_stored(cast: Cast, checked: Dataset, django_assert_max_num_queries: Any) -> None:
    lead = cast.client("boris")
    lead.get(address(checked))
    with django_assert_max_num_queries(16):
        lead.get(address(checked))
    with django_assert_max_num_queries(10):
        lead.get(api(checked))


def test_only_leads_and_researchers_of_the_project_see_it(cast: Cast, checked: Dataset) -> None:
    for name, status in {"maarika": 403, "zoltan": 404}.items():
        client = cast.client(name)
        assert client.get(address(checked)).status_code == status
        assert client.post(address(checked, "check/")).status_code == status
        assert client.post(address(checked, "leave-out/"), {"checks": ["placeholder"]}).status_code == status
        assert client.get(api(checked)).status_code == status
        assert client.post(api(checked)).status_code == status
    assert Dataset.objects.count() == 1
    assert not DatasetCheckup.objects.visible_to(cast.maarika).exists()


def test_the_api_asks_for_a_check_up_once(cast: Cast) -> None:
    dataset = make.dataset(cast.kassa, 2)
    lead = cast.client("boris")
    none = lead.get(api(dataset)).json()
    assert (none["checked_at"], none["findings"], none["is_under_way"]) == (None, [], False)
    first, second = lead.post(api(dataset)), lead.post(api(dataset))
    assert (first.status_code, second.status_code) == (202, 202)
    assert first.json()["job"] == second.json()["job"]
    assert second.json()["is_under_way"]
    tasks.check_dataset(DatasetCheckup.objects.get().pk)
    done = lead.get(api(dataset)).json()
    assert done["items"] == 2
    assert done["lengths"][0]["language"] == "et"
    assert not done["is_under_way"]


def test_annotators_flags_are_findings(cast: Cast) -> None:
    from annotation import allocation, panels

    campaign = make.campaign(cast.kassa)
    panel = panels.create(project=cast.kassa, name="Eesti", language="et")
    seat = panels.seat(panel=panel, user=cast.maarika)
    duty = allocation.allocate(campaign=campaign, panel=panel, overlap=1)
    item = Item.objects.get(dataset=campaign.dataset, external_id="d2")
    Skip.objects.create(duty=duty, item=item, annotator=seat.annotator, reason=Skip.Reason.LANGUAGE, at=timezone.now())
    checkups.check_now(dataset=campaign.dataset)
    document = cast.client("boris").get(api(campaign.dataset)).json()
    assert found(document)["flagged_language"] == 1
    Skip.objects.update(resolved_at=timezone.now())
    checkups.check_now(dataset=campaign.dataset)
    resolved = cast.client("boris").get(api(campaign.dataset)).json()
    assert "flagged_language" not in found(resolved), "a lead has looked at it"


# --- the command ------------------------------------------------------------------------------------------------------
def run(*arguments: str) -> tuple[str, int]:
    out = StringIO()
    try:
        call_command("checkup", *arguments, stdout=out, stderr=out)
    except SystemExit as ended:
        return out.getvalue(), int(str(ended.code))
    return out.getvalue(), 0


def test_the_command_checks_a_dataset_and_leaves_out(cast: Cast) -> None:
    dataset = make.dataset(cast.kassa, rows(), name=NAME)
    text, status = run(NAME, "--project", "kassa", "--leave-out", "placeholder", "--name", "Käsust")
    assert status == 1
    assert "warning  Placeholder that was not filled in: 1" in text
    assert "d3 turn 1: {name}" in text
    assert "dataset: Käsust v1" in text
    assert DatasetCheckup.objects.get(dataset=dataset).result is not None
    assert Item.objects.of(Dataset.objects.get(name="Käsust")).count() == 11


def test_the_command_checks_files_and_stores_nothing(cast: Cast, tmp_path: Path) -> None:
    file = tmp_path / "read ä.csv"
    file.write_text('id,language,answer\n"a ""1""",et,Tere <br> hommikust\nb,et,Tere!\n')
    text, status = run(str(file), "--json")
    assert status == 1
    assert found(json.loads(text)) == {"markup": 1}
    assert json.loads(text)["findings"][0]["reason"] == "no_families"
    file.write_text("id,language,answer\na,et,Tere hommikust\n")
    assert run(str(file))[1] == 0
    for wrong in ([str(tmp_path / "none.csv")], ["x", "--project", "none"], ["x", "--project", "kassa"]):
        with pytest.raises(CommandError) as refused:
            run(*wrong)
        assert refused.value.returncode == 2
    assert not Dataset.objects.exists()


# --- the languages beside the annotators ------------------------------------------------------------------------------
FINNISH_FOUND = (
    *("Missä minun pakettini on nyt", "Hyvää päivää, missä paketti on?", "Kuka avaa oven huomenna?"),
    *("Olen kotona koko illan", "Soita minulle huomenna", "Rahat takaisin heti", "Hyvää iltaa kaikille"),
    "Tilaus on myöhässä taas",
)
FINNISH_MISSED = ("Kiitos paljon avusta", "Paketti tuli rikki", "Minun paketti ei tullut", "Poika istuu puussa")
ESTONIAN = ("Homme lähen maale", "Tere, kus mu pakk on?", "Aitäh, kõik on korras", "Mul on uus telefon katki")


def read_by_maarika(cast: Cast, *, flags: int = 12) -> Dataset:
    """12 Finnish and 24 Estonian items that are declared as Estonian, of which Maarika flags some and rates the others
    over HTTP."""
    from annotation import allocation, campaigns, panels

    texts = [*FINNISH_FOUND, *FINNISH_MISSED, *(ESTONIAN[number % 4] for number in range(24))]
    rows = [
        make.item_row(number, turns=[{"speaker": "Kasutaja “1”", "text": text}]) for number, text in enumerate(texts)
    ]
    campaign = campaigns.open_campaign(
        project=cast.kassa,
        name="Ring",
        dataset=make.dataset(cast.kassa, rows, name="Mõõdetud «keel»"),
        rubric_version=make.rubric(cast.kassa),
    )
    panel = panels.create(project=cast.kassa, name="Eesti", language="et")
    panels.seat(panel=panel, user=cast.maarika)
    duty = allocation.allocate(campaign=campaign, panel=panel, overlap=1)
    desk, as_json = "/api/v1/projects/kassa/desk/", "application/json"
    maarika: Any = cast.client("maarika")
    left, read = flags, 0
    while read < 36:
        taken = maarika.post(f"{desk}{duty.pk}/take/", {}, content_type=as_json).json()
        text = taken["item"]["turns"][0]["text"]
        if text not in ESTONIAN and left:
            assert maarika.post(f"/desk/at/{taken['key']}/skip/", {"reason": "language"}).status_code == 307
            left, read = left - 1, read + 1
            continue
        answers = [{"criterion": one["key"], "score": one["points"][0]["value"]} for one in taken["criteria"]]
        sent = {"answers": answers, "seconds": 9}
        assert maarika.post(f"{desk}at/{taken['key']}/", sent, content_type=as_json).status_code < 300
        read += 1
    return campaign.dataset


@pytest.mark.both_databases
def test_natives_flags_correct_the_threshold_of_their_language(cast: Cast) -> None:
    dataset = read_by_maarika(cast)
    boris: Any = cast.client("boris")
    before = boris.post(api(dataset)).json()
    checkups.check_now(dataset=dataset)
    document = boris.get(api(dataset)).json()
    assert before["findings"] == [] and found(document)["other_language"] == 12
    (row,) = document["natives"]
    assert (row["language"], row["read"], row["flagged"], row["reason"]) == ("et", 36, 12, "")
    assert (row["found"], row["missed"], row["false_alarms"]) == (8, 4, 0)
    assert (row["corrected_missed"], row["corrected_false_alarms"]) == (0, 0) and 0.14 < row["threshold"] < 0.43
    page = " ".join(boris.get(address(dataset)).content.decode().split())
    assert "the program beside annotators" in page
    assert f"Corrected: the declared language is at most {100 * row['threshold']:.0f}% probable." in page
    assert "Then missed: 0, false alarms: 0." in page
    text, _status = run(dataset.name, "--project", "kassa")
    assert "annotators, et: 12 of 36 flagged, 8 found, 4 missed, 0 false alarms; threshold 0." in text


def test_few_flags_correct_nothing_and_a_flag_beside_a_rating_of_more_is_none(cast: Cast) -> None:
    dataset = read_by_maarika(cast, flags=9)
    checkups.check_now(dataset=dataset)
    document = cast.client("boris").get(api(dataset)).json()
    (row,) = document["natives"]
    assert (row["flagged"], row["reason"], row["threshold"], row["corrected_missed"]) == (9, "few_flags", 0.02, None)
    assert found(document)["other_language"] == 8, "the usual threshold"
    assert "The usual one: too few items are flagged." in cast.client("boris").get(address(dataset)).content.decode()


def test_a_threshold_that_makes_no_fewer_errors_is_not_taken() -> None:
    flagged = [ReadItem(1e-9, is_usual=True, is_flagged=True)] * 12
    others = [ReadItem(1.0, is_usual=False, is_flagged=False)] * 20
    assert compare_flags("et", [*flagged, *others], usual=0.02).reason == "not_better"
    assert compare_flags("et", [*flagged, *others[1:]], usual=0.02).reason == "few_others"
    alarmed = [ReadItem(1e-4, is_usual=True, is_flagged=False)] * 3
    row = compare_flags("et", [*flagged, *others, *alarmed], usual=0.02)
    assert (row.false_alarms, row.corrected_false_alarms, row.corrected_missed) == (3, 0, 0)
    assert 1e-7 < row.threshold < 1e-6, "between the two in powers of ten"
    impossible = [ReadItem(0.0, is_usual=True, is_flagged=place % 2 == 0) for place in range(60)]
    assert compare_flags("et", impossible, usual=0.02).missed == 0


def test_a_threshold_that_nothing_corrects_is_the_usual_one() -> None:
    flagged = [ReadItem(1.0, is_usual=False, is_flagged=True)] * 10
    others = [ReadItem(1.0, is_usual=False, is_flagged=False)] * 20
    row = compare_flags("fi", [*flagged, *others], usual=0.02)
    assert (row.reason, row.threshold, row.corrected_missed) == ("not_better", 0.02, None)


def test_a_corrected_threshold_is_said_as_it_is() -> None:
    flagged = [ReadItem(0.55, is_usual=False, is_flagged=True)] * 10
    others = [ReadItem(1.0, is_usual=False, is_flagged=False)] * 20
    row = compare_flags("fi", [*flagged, *others], usual=0.02)
    words = threshold_words(row.as_json())
    assert row.reason == "" and words == {"odds": 1, "share": "74", "is_least": False}
    assert threshold_words({"threshold": 0.02}) == {"odds": 50, "share": "", "is_least": False}
    assert threshold_words({"threshold": 1e-12}) == {"odds": 1_000_000, "share": "", "is_least": True}
