"""Prompts that people write and others review: drafts, submissions, originality, reviews, exports."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from accounts import removal
from accounts.refusals import Refused
from annotation import allocation, campaigns, panels
from annotation.collection import prompt_collections, prompt_exports, prompt_originality, prompt_writing
from annotation.collection.prompt_collections import WantedPrompts
from annotation.imports import storage
from annotation.models import CollectedPrompt, CollectionMember, Item, PromptCollection, PromptVersion
from tests import make
from tests.analytics.test_bundles import loaded, taken_out
from tests.cast import Cast

POEM = "Kirjuta lühike luuletus sellest, kuidas kass O’Malley «vaatab» vihma ja ootab, millal kevad tuleb."
POEM_AGAIN = "Kirjuta lühike luuletus sellest, kuidas kass O’Malley «vaatab» lund ja ootab, millal kevad tuleb."
LETTER = "Kirjuta ametlik kiri linnavalitsusele, milles palud parandada katkise tänavalaterna oma maja ees."
ARABIC = "اكتب رسالة قصيرة إلى جارك تشكره فيها على مساعدته لك في نقل الأثاث يوم الجمعة الماضي."


@pytest.fixture
def collection(cast: Cast) -> PromptCollection:
    slots = [
        WantedPrompts("Story", "fiction", "easy", "et", 2),
        WantedPrompts("Letter", "business", "hard", "et", 1),
        WantedPrompts("Letter", "", "", "ar", 1),
    ]
    made = prompt_collections.create_collection(
        project=cast.kassa, name="Käskude «kogu»", slots=slots, guidelines={"et": "Kirjuta *ise*."}, actor=cast.aino
    )
    for user, writes, reviews in ((cast.maarika, True, True), (cast.layla, True, True), (cast.boris, False, True)):
        prompt_collections.set_member(collection=made, user=user, writes=writes, reviews=reviews, actor=cast.aino)
    return made


def member(collection: PromptCollection, name: str) -> CollectionMember:
    return collection.members.get(annotator__user__name=name)


def submitted(collection: PromptCollection, text: str, name: str = "Maarika", place: int = 0) -> PromptVersion:
    slot = collection.slots.all()[place]
    return prompt_writing.submit_prompt(member=member(collection, name), slot=slot, text=text, key=uuid4())


@pytest.mark.both_databases
def test_an_accepted_prompt_becomes_an_item_with_its_author_and_version(
    cast: Cast, collection: PromptCollection
) -> None:
    first = submitted(collection, POEM)
    layla = member(collection, "Layla")
    prompt_writing.review_prompt(version=first, reviewer=layla, decision="send_back", comment="=Liiga pikk?")
    prompt = CollectedPrompt.objects.get()
    assert prompt.state == "returned"
    again: dict[str, Any] = {"member": member(collection, "Maarika"), "slot": prompt.slot, "prompt": prompt}
    with pytest.raises(Refused, match="Nothing is changed"):
        prompt_writing.submit_prompt(text=unicodedata.normalize("NFD", POEM), key=uuid4(), **again)
    second = prompt_writing.submit_prompt(text=POEM_AGAIN, key=uuid4(), **again)
    assert second.number == 2 and second.notices["similar"] == []  # its own first version is not another prompt
    prompt_writing.review_prompt(version=second, reviewer=layla, decision="accept")
    dataset = prompt_exports.store_prompts(collection=collection, name="Prompts", actor=cast.aino)
    item = Item.objects.get(dataset=dataset)
    assert item.fields == {"question": POEM_AGAIN} and item.language == "et" and item.scenario == item.external_id
    code = str(member(collection, "Maarika"))
    named = {"task": "Story", "style": "fiction", "difficulty": "easy", "author": code, "version": 2}
    assert item.attributes == named | {"collection": "Käskude «kogu»"}
    lines = "".join(prompt_exports.prompts_csv(collection))
    assert "'=Liiga pikk?" in lines and POEM_AGAIN in lines and "Maarika" not in lines


@pytest.mark.both_databases
def test_one_submission_that_is_sent_twice_is_stored_once(collection: PromptCollection) -> None:
    slot, key = collection.slots.all()[0], uuid4()
    writer = member(collection, "Maarika")
    prompt_writing.keep_draft(member=writer, slot=slot, text="Kirj")
    sent = [prompt_writing.submit_prompt(member=writer, slot=slot, text=POEM, key=key) for _time in range(2)]
    assert sent[0].pk == sent[1].pk and PromptVersion.objects.count() == CollectedPrompt.objects.count() == 1
    assert CollectedPrompt.objects.get().state == "in_review" and CollectedPrompt.objects.get().draft == ""


@pytest.mark.both_databases
def test_the_same_text_is_refused_and_a_similar_one_is_shown(cast: Cast, collection: PromptCollection) -> None:
    submitted(collection, POEM)
    with pytest.raises(Refused) as refused:
        submitted(collection, f"  {unicodedata.normalize('NFD', POEM)}\r\n", "Layla", 1)
    assert refused.value.code == "same_text" and CollectedPrompt.objects.count() == 1
    shown = prompt_originality.notices_about(slot=collection.slots.all()[1], text=POEM_AGAIN)
    assert shown.is_striking and shown.similar[0].share > 90 and shown.similar[0].text == POEM
    assert not prompt_originality.notices_about(slot=collection.slots.all()[1], text=LETTER).similar
    rows = [make.item_row(1, turns=[], fields={"question": LETTER, "answer": "Tere"})]
    storage.store(project=cast.kassa, name="Vanad", items=rows)
    with pytest.raises(Refused, match="very prompt"):
        submitted(collection, LETTER, "Layla", 1)


def test_a_prompt_in_another_language_or_script_is_noticed(collection: PromptCollection) -> None:
    estonian, _other, arabic = collection.slots.all()
    assert prompt_originality.notices_about(slot=arabic, text=ARABIC).language is None
    assert (prompt_originality.notices_about(slot=arabic, text=LETTER).language or ("",))[0] == "other_script"
    english = (
        "Write a short letter to the city council in which you ask them to repair the street light near your house."
    )
    notice = prompt_originality.notices_about(slot=estonian, text=english).language
    assert notice is not None and notice[0] == "other_language" and notice[1]["found_language"] == "en"


@pytest.mark.both_databases
def test_nobody_reviews_their_own_prompt_and_one_review_counts(collection: PromptCollection) -> None:
    version = submitted(collection, POEM)
    writer, layla, boris = (member(collection, name) for name in ("Maarika", "Layla", "Boris"))
    assert not prompt_writing.waiting_for(writer) and list(prompt_writing.waiting_for(layla)) == [version]
    with pytest.raises(Refused) as own:
        prompt_writing.review_prompt(version=version, reviewer=writer, decision="accept")
    assert own.value.code == "own_prompt"
    with pytest.raises(Refused) as silent:
        prompt_writing.review_prompt(version=version, reviewer=layla, decision="reject", comment=" ")
    assert silent.value.fields.keys() == {"comment"}
    prompt_writing.review_prompt(version=version, reviewer=layla, decision="reject", comment="Kopeeritud")
    assert (
        prompt_writing.review_prompt(version=version, reviewer=layla, decision="reject", comment="x").comment
        == "Kopeeritud"
    )
    with pytest.raises(Refused) as late:
        prompt_writing.review_prompt(version=version, reviewer=boris, decision="accept")
    assert late.value.code == "reviewed" and CollectedPrompt.objects.get().state == "rejected"
    submitted(collection, POEM, "Layla")  # a rejected text is free again


def test_slots_are_read_from_csv_and_changed(collection: PromptCollection) -> None:
    lines = (
        "\ufefftask;style;difficulty;language;wanted\r\nStory;fiction;easy;ET;5\r\n\r\n=Sum;;;ar;3\r\nLetter;;;ar;0\r\n"
    )
    slots = prompt_collections.slots_from_csv(lines)
    assert prompt_collections.set_slots(collection=collection, slots=slots, actor=None) == 3
    assert [slot.wanted for slot in collection.slots.all()] == [5, 1, 3]
    assert "'=Sum" in "".join(prompt_exports.slots_csv(collection))
    with pytest.raises(Refused, match="Line 2"):
        prompt_collections.slots_from_csv("task,language,wanted\nStory,et,many\n")
    with pytest.raises(Refused, match="wanted"):
        prompt_collections.slots_from_csv("task,language\nStory,et\n")


# --- pages, API and command -------------------------------------------------------------------------------------------
def test_a_prompt_is_written_sent_back_revised_and_accepted_on_pages(
    cast: Cast, mailed_at_once: None, mailoutbox: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    lead, writer, reviewer = (cast.client(name) for name in ("aino", "maarika", "layla"))
    sent = {"name": "Kogu “1”", "tasks": "Lugu\n\nKiri ", "difficulties": "kerge", "languages": "et, ar", "wanted": 2}
    there = lead.post("/p/kassa/prompts/new/", sent).headers["Location"]
    assert PromptCollection.objects.get().slots.count() == 4
    for user, does in ((cast.maarika, ("writes", "reviews")), (cast.layla, ("reviews",))):
        lead.post(f"{there}people/", {"user": user.pk, **dict.fromkeys(does, "on")})
    assert there in writer.get("/desk/").content.decode()
    slot = PromptCollection.objects.get().slots.get(task="Lugu", language="et")
    page = f"{there}write/{slot.pk}/"
    assert writer.post(f"{page}draft/", {"text": "Kirju"}).status_code == 200
    assert "Kirju" in writer.get(page).content.decode()
    key = str(uuid4())
    checked = writer.post(page, {"text": POEM, "key": key, "check": "1"}).content.decode()
    assert "No similar prompt was found" in checked and not PromptVersion.objects.exists()
    answers = [writer.post(page, {"text": POEM, "key": key}) for _time in range(2)]
    assert [answer.status_code for answer in answers] == [302, 302] and PromptVersion.objects.count() == 1
    prompt = CollectedPrompt.objects.get()
    assert reviewer.get(page).status_code == 403
    address = f"{there}{prompt.pk}/"
    assert reviewer.get(f"{there}review/").headers["Location"] == address
    shown = reviewer.get(address).content.decode()
    assert POEM in unescape(shown) and "Maarika" not in shown and str(prompt.author) not in shown
    assert "Review" not in writer.get(address).content.decode()
    writer.post(f"{address}review/", {"version": 1, "decision": "accept"})
    with django_capture_on_commit_callbacks(execute=True):
        reviewer.post(f"{address}review/", {"version": 1, "decision": "send_back", "comment": "<b>Lühem</b>"})
    assert CollectedPrompt.objects.get().state == "returned"
    assert [mail.to for mail in mailoutbox] == [[cast.maarika.email]] and address in mailoutbox[0].body
    again = writer.get(address).content.decode()
    assert "&lt;b&gt;Lühem" in again
    assert writer.post(f"{address}draft/", {"text": "Uus"}).status_code == 200
    assert "Uus</textarea>" in writer.get(address).content.decode()
    writer.post(address, {"text": LETTER, "key": str(uuid4())})
    reviewer.post(f"{address}review/", {"version": 1, "decision": "accept"})  # of the version before: refused
    assert CollectedPrompt.objects.get().state == "in_review"
    reviewer.post(f"{address}review/", {"version": 2, "decision": "accept"})
    page_of_lead = lead.get(there).content.decode()
    assert "1 / 0 / 2" in page_of_lead
    stored = lead.post(f"{there}store/", {"name": "Prompts «1»"})
    assert Item.objects.get().fields == {"question": LETTER} and "/datasets/" in stored.headers["Location"]
    answer: Any = lead.get(f"{there}prompts.csv")
    file = b"".join(answer.streaming_content).decode()
    assert file.count("\r\n") >= 3 and "Lühem" in file


def test_a_striking_text_is_submitted_only_after_its_author_has_seen_why(
    cast: Cast, collection: PromptCollection
) -> None:
    submitted(collection, POEM, "Layla")
    slot = collection.slots.all()[0]
    page = f"/p/kassa/prompts/{collection.pk}/write/{slot.pk}/"
    writer, key = cast.client("maarika"), str(uuid4())
    shown = writer.post(page, {"text": POEM_AGAIN, "key": key}).content.decode()
    assert "% alike" in shown and "Submit all the same" in shown and PromptVersion.objects.count() == 1
    seen = re.search(r'name="seen" value="(\w+)"', shown)
    assert seen is not None
    assert writer.post(page, {"text": POEM_AGAIN, "key": key, "seen": seen[1]}).status_code == 302
    assert PromptVersion.objects.count() == 2
    same = writer.post(page, {"text": POEM, "key": str(uuid4()), "seen": "x"}).content.decode()
    assert "Submit all the same" in same
    confirmed = re.search(r'name="seen" value="(\w+)"', same)
    assert confirmed is not None
    refused = writer.post(page, {"text": POEM, "key": str(uuid4()), "seen": confirmed[1]}).content.decode()
    assert "this very text" in refused and PromptVersion.objects.count() == 2
    assert POEM in unescape(writer.get(page).content.decode())  # it stays as a draft


@pytest.mark.django_db(transaction=True)
def test_of_two_reviews_and_of_two_submissions_at_once_one_is_stored(cast: Cast) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("one writer at a time")
    slots = [WantedPrompts("Story", "", "", "et", 2)]
    made = prompt_collections.create_collection(project=cast.kassa, name="Race", slots=slots)
    for user in (cast.maarika, cast.layla, cast.boris):
        prompt_collections.set_member(collection=made, user=user, writes=True, reviews=True)
    key, slot = uuid4(), made.slots.get()

    def in_thread(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Refused as refused:
            return refused.code
        finally:
            connection.close()

    def submit() -> Any:
        return prompt_writing.submit_prompt(member=member(made, "Maarika"), slot=slot, text=POEM, key=key).pk

    def review(name: str, decision: str) -> Any:
        version = PromptVersion.objects.select_related("prompt__collection__project", "author").get()
        reviewer = member(made, name)
        done = prompt_writing.review_prompt(version=version, reviewer=reviewer, decision=decision, comment="Nii")
        return done.decision

    with ThreadPoolExecutor(4) as pool:
        sent = list(pool.map(in_thread, [submit] * 4))
    assert len(set(sent)) == 1 and PromptVersion.objects.count() == CollectedPrompt.objects.count() == 1
    with ThreadPoolExecutor(2) as pool:
        decided = [
            pool.submit(in_thread, lambda: review("Layla", "accept")),
            pool.submit(in_thread, lambda: review("Boris", "reject")),
        ]
    answers = {future.result() for future in decided}
    stored = PromptVersion.objects.get()
    assert answers == {"reviewed", stored.decision}
    assert CollectedPrompt.objects.get().state == {"accept": "accepted", "reject": "rejected"}[stored.decision]


def test_the_api_makes_a_collection_and_people_work_with_it(cast: Cast) -> None:
    lead, writer, reviewer = (cast.client(name) for name in ("aino", "maarika", "layla"))
    base = "/api/v1/projects/kassa/prompt-collections/"
    as_json: Any = {"content_type": "application/json"}
    slots = [{"task": "=1+1", "language": "AR", "wanted": 1}]
    made = lead.post(base, {"name": "API", "slots": slots, "guidelines": {"ar": "اكتب."}}, **as_json).json()
    there, slot = f"{base}{made['id']}/", made["progress"][0]
    assert slot["language"] == "ar" and slot["left"] == 1
    assert writer.post(base, {"name": "B"}, **as_json).status_code == 403
    assert writer.get(there).status_code == 404 and writer.get(base).json()["results"] == []
    for name, does in (("maarika", "writes"), ("layla", "reviews")):
        lead.put(f"{there}people/", {"email": f"{name}@panelbench.test", does: True}, **as_json)
    text = {"slot": slot["id"], "text": ARABIC, "key": str(uuid4())}
    checked = writer.post(f"{there}check/", text, **as_json).json()
    confirm = prompt_originality.text_identity("ar", ARABIC)
    assert checked == {"similar": [], "language": "", "is_striking": False, "confirm": confirm}
    sent = [writer.post(f"{there}prompts/", text, **as_json) for _time in range(2)]
    assert [one.status_code for one in sent] == [201, 201] and PromptVersion.objects.count() == 1
    number = sent[0].json()["id"]
    assert reviewer.get(f"{there}prompts/").json()["results"][0]["author"] == ""
    own = writer.post(f"{there}prompts/{number}/review/", {"version": 1, "decision": "accept"}, **as_json)
    assert own.json()["code"] == "own_prompt"
    done = reviewer.post(f"{there}prompts/{number}/review/", {"version": 1, "decision": "accept"}, **as_json)
    assert done.json()["state"] == "accepted"
    progress = lead.get(f"{there}progress/").json()
    assert progress["accepted"] == 1 and {one["written"] for one in progress["people"]} == {0, 1}
    lead.post(f"{there}state/", {"state": "closed"}, **as_json)
    late = writer.post(f"{there}prompts/", {**text, "key": str(uuid4()), "text": ARABIC * 2}, **as_json)
    assert late.json()["code"] == "collection_closed"
    stored = lead.post(f"{there}store/", {"name": "From API"}, **as_json).json()
    assert Item.objects.get(dataset=stored["dataset"]).attributes["task"] == "=1+1"


def test_a_command_makes_a_collection_and_exports_it(cast: Cast, tmp_path: Path) -> None:
    (tmp_path / "slots.csv").write_text("task,language,wanted\nStory,et,3\n", encoding="utf-8")
    (tmp_path / "et.md").write_text("Kirjuta ise.", encoding="utf-8")
    out = StringIO()
    given = {"project": "kassa", "slots": tmp_path / "slots.csv", "writer": ["maarika@panelbench.test"]}
    call_command("collection", "Kogu", stdout=out, guidelines=[f"et={tmp_path / 'et.md'}"], **given)
    made = PromptCollection.objects.get()
    assert made.guidelines == {"et": "Kirjuta ise."} and "0 of 3 accepted" in out.getvalue()
    submitted(made, POEM)
    call_command("collection", "Kogu", project="kassa", csv=tmp_path / "out.csv", stdout=out)
    assert POEM in (tmp_path / "out.csv").read_text(encoding="utf-8") and "1 in review" in out.getvalue()
    with pytest.raises(CommandError, match="No prompt is accepted"):
        call_command("collection", "Kogu", project="kassa", store="Prompts", stdout=out)


def test_erasing_a_person_deletes_drafts_and_comments_and_keeps_prompts(
    cast: Cast, collection: PromptCollection
) -> None:
    version = submitted(collection, POEM)
    layla = member(collection, "Layla")
    prompt_writing.keep_draft(member=layla, slot=collection.slots.all()[1], text="Minu isiklik mustand")
    prompt_writing.review_prompt(version=version, reviewer=layla, decision="reject", comment="Isiklik")
    removal.erase_user(user=cast.layla, actor=None)
    version.refresh_from_db()
    assert version.comment == "" and version.decision == "reject" and CollectedPrompt.objects.count() == 1
    assert not collection.members.filter(annotator__pseudonym=str(layla), reviews=True).exists()


def test_a_bundle_has_the_collection_without_drafts_and_names(cast: Cast, collection: PromptCollection) -> None:
    first = submitted(collection, POEM)
    prompt_writing.review_prompt(version=first, reviewer=member(collection, "Layla"), decision="accept")
    prompt_writing.keep_draft(member=member(collection, "Maarika"), slot=collection.slots.all()[1], text="Mustand")
    prompt_exports.store_prompts(collection=collection, name="Prompts")
    loaded(cast.teine, taken_out(cast.kassa))
    there = PromptCollection.objects.get(project=cast.teine)
    assert there.prompts.count() == 1 and there.slots.count() == 3 and there.stored.count() == 1
    version = PromptVersion.objects.get(prompt__collection=there)
    assert version.text == POEM and version.decision == "accept" and str(version.author) == str(first.author)


# --- two devices, two tabs, two leads ---------------------------------------------------------------------------------
def test_an_older_text_never_overwrites_a_newer_draft(collection: PromptCollection, cast: Cast) -> None:
    page = f"/p/kassa/prompts/{collection.pk}/write/{collection.slots.all()[0].pk}/"
    client = cast.client("maarika")
    first = client.post(f"{page}draft/", {"text": "Esimene", "based_on": ""}).json()["based_on"]
    newer = client.post(f"{page}draft/", {"text": "Teine «uuem»", "based_on": first}).json()["based_on"]
    for stale in ("", "Esimene ja", "Teine"):  # the first clears its box
        refused = client.post(f"{page}draft/", {"text": stale, "based_on": first})
        assert refused.status_code == 409
        assert refused.json() | {"detail": ""} == {
            "code": "changed", "detail": "", "text": "Teine «uuem»", "based_on": newer,
        }  # fmt: skip
    both = client.post(page, {"text": POEM, "based_on": first, "key": str(uuid4())}).content.decode()
    assert "Teine «uuem»" in both and POEM in unescape(both) and not PromptVersion.objects.exists()
    assert CollectedPrompt.objects.get().draft == "Teine «uuem»"
    again = re.search(r'name="based_on" value="(\w+)"', both)
    assert again is not None
    assert client.post(page, {"text": POEM, "based_on": again[1], "key": str(uuid4())}).status_code == 302


def test_a_draft_is_not_said_to_be_kept_when_nothing_was_stored(collection: PromptCollection, cast: Cast) -> None:
    version = submitted(collection, POEM)
    review: dict[str, Any] = {"reviewer": member(collection, "Layla"), "decision": "send_back", "comment": "Lühem"}
    prompt_writing.review_prompt(version=version, **review)
    client, there = cast.client("maarika"), f"/p/kassa/prompts/{collection.pk}/"
    client.post(f"{there}{version.prompt_id}/", {"text": LETTER, "key": str(uuid4())})
    other_tab = client.post(f"{there}{version.prompt_id}/draft/", {"text": "Veel üks"})
    assert (other_tab.status_code, other_tab.json()["code"]) == (409, "wrong_state")
    people = {"user": cast.maarika.pk, "reviews": "on"}
    cast.client("aino").post(f"{there}people/", people)
    unseated = client.post(f"{there}write/{collection.slots.all()[1].pk}/draft/", {"text": "Uus"})
    assert (unseated.status_code, unseated.json()["code"]) == (409, "not_a_writer")


def test_a_draft_that_lands_after_its_submission_is_no_draft(collection: PromptCollection, cast: Cast) -> None:
    client, key = cast.client("maarika"), str(uuid4())
    page = f"/p/kassa/prompts/{collection.pk}/write/{collection.slots.all()[0].pk}/"
    assert client.post(page, {"text": POEM, "key": key, "based_on": ""}).status_code == 302
    assert client.post(f"{page}draft/", {"text": POEM, "key": key, "based_on": ""}).status_code == 409
    assert not CollectedPrompt.objects.filter(state="draft").exists()


def test_a_form_with_too_many_kinds_is_refused_before_they_are_made(cast: Cast) -> None:
    lines = "\n".join(f"k{number}" for number in range(200))
    form = {"name": "Suur", "tasks": lines, "styles": lines, "difficulties": lines, "languages": "et", "wanted": 1}
    page = cast.client("aino").post("/p/kassa/prompts/new/", form)
    assert "at most 5000 kinds" in page.content.decode() and not PromptCollection.objects.exists()


def test_who_reviews_sees_no_author_by_api_nor_in_csv(collection: PromptCollection, cast: Cast) -> None:
    code = str(submitted(collection, POEM).author)
    boris, aino = cast.client("boris"), cast.client("aino")
    api = f"/api/v1/projects/kassa/prompt-collections/{collection.pk}/prompts/"
    csv = f"/p/kassa/prompts/{collection.pk}/prompts.csv"

    def file(client: Any) -> str:
        return b"".join(client.get(csv).streaming_content).decode()

    assert aino.get(api).json()["results"][0]["author"] == code and code in file(aino)
    assert boris.get(api).json()["results"][0]["author"] == "" and code not in file(boris)


def test_an_edit_is_stored_whole_and_not_over_that_of_another_lead(collection: PromptCollection, cast: Cast) -> None:
    page = f"/p/kassa/prompts/{collection.pk}/edit/"
    first, second = cast.client("aino"), cast.client("boris")
    read = re.search(r'name="read" value="(\w+)"', first.get(page).content.decode())
    assert read is not None
    bad = {"name": "Uus nimi", "read": read[1], "tasks": "x" * 200, "languages": "et", "wanted": 1}
    assert first.post(page, bad).status_code == 200
    collection.refresh_from_db()
    assert collection.name == "Käskude «kogu»"
    assert second.post(page, {"name": "Borissi oma", "read": read[1]}).status_code == 302
    late = first.post(page, {"name": "Aino oma", "read": read[1], "guidelines-et": "Muu"}).content.decode()
    collection.refresh_from_db()
    assert "Somebody has changed this collection" in late and collection.name == "Borissi oma"


def test_what_a_person_does_is_shown_in_their_row_and_changed_there(collection: PromptCollection, cast: Cast) -> None:
    page = cast.client("aino").get(f"/p/kassa/prompts/{collection.pk}/").content.decode()
    row = page[page.index(f'name="user" value="{cast.boris.pk}"') :].partition("</form>")[0]
    boxes = re.findall(r'name="(writes|reviews)" (checked)?', row)
    assert boxes == [("writes", ""), ("reviews", "checked")]
    assert f'<option value="{cast.boris.pk}"' not in page and f'<option value="{cast.aino.pk}"' in page


def test_kinds_survive_their_own_csv(collection: PromptCollection, cast: Cast) -> None:
    hostile = [("=task", "-"), ("'=task", "''=1+1"), ("'quoted’", "＝täis"), ("'", "'a"), ("O'Malley\n«ü»", "a,b;c\td")]
    slots = [WantedPrompts(task, style, "", "et", 1) for task, style in hostile]
    prompt_collections.set_slots(collection=collection, slots=slots, actor=None)
    before = list(collection.slots.values_list("pk", "task", "style", "wanted"))
    client = cast.client("aino")
    answer: Any = client.get(f"/p/kassa/prompts/{collection.pk}/wanted.csv")
    file = StringIO(b"".join(answer.streaming_content).decode())
    file.name = "wanted.csv"
    assert client.post(f"/p/kassa/prompts/{collection.pk}/edit/", {"name": "K", "file": file}).status_code == 302
    assert list(collection.slots.values_list("pk", "task", "style", "wanted")) == before


def test_a_change_by_api_needs_no_name_and_its_kinds_are_stored(collection: PromptCollection, cast: Cast) -> None:
    there, as_json = f"/api/v1/projects/kassa/prompt-collections/{collection.pk}/", "application/json"
    kind = {"task": "Uus «töö»", "language": "ar", "wanted": 3}
    changed: Any = cast.client("aino").put(there, {"due_on": "2031-05-06", "slots": [kind]}, content_type=as_json)
    assert (changed.json()["name"], changed.json()["due_on"]) == (collection.name, "2031-05-06")
    assert changed.json()["guidelines"] == collection.guidelines
    assert changed.json()["progress"][-1]["task"] == "Uus «töö»" and len(changed.json()["progress"]) == 4
    schema: Any = cast.client("aino").get("/api/schema/?format=json").json()
    body = schema["paths"]["/api/v1/projects/{project}/prompt-collections/{collection}/"]["put"]["requestBody"]
    name = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert "required" not in schema["components"]["schemas"][name], "as the server does"


def test_a_striking_prompt_is_confirmed_by_api_as_that_very_text(collection: PromptCollection, cast: Cast) -> None:
    submitted(collection, POEM, "Layla")
    writer: Any = cast.client("maarika")
    there = f"/api/v1/projects/kassa/prompt-collections/{collection.pk}/"
    sent: Any = {"slot": collection.slots.all()[0].pk, "text": POEM_AGAIN, "key": str(uuid4())}
    as_json: Any = {"content_type": "application/json"}
    warned = writer.post(f"{there}prompts/", sent, **as_json)
    assert (warned.status_code, warned.json()["code"]) == (409, "prompt_warnings")
    assert warned.json()["notices"]["similar"][0]["text"] == POEM
    confirm = warned.json()["confirm"]
    assert writer.post(f"{there}check/", sent, **as_json).json()["confirm"] == confirm
    other = writer.post(f"{there}prompts/", sent | {"text": POEM_AGAIN + " Nüüd!", "confirmed": confirm}, **as_json)
    assert other.json()["code"] == "prompt_warnings" and PromptVersion.objects.count() == 1
    for _time in range(2):
        assert writer.post(f"{there}prompts/", sent | {"confirmed": confirm}, **as_json).status_code == 201
    assert PromptVersion.objects.count() == 2


def test_a_body_that_is_too_large_is_refused_as_json(collection: PromptCollection, cast: Cast) -> None:
    there = f"/api/v1/projects/kassa/prompt-collections/{collection.pk}/"
    large = cast.client("aino").put(there, {"name": "õ" * 1_400_000}, content_type="application/json")
    assert large.status_code == 413 and large.json()["code"] == "too_large", large.content[:200]
    assert "2.5 MB" in large.json()["detail"]


# --- places, names, and what is read of datasets ----------------------------------------------------------------------
def test_a_returned_prompt_holds_its_place_only_while_its_author_can_revise(
    cast: Cast, collection: PromptCollection
) -> None:
    version = submitted(collection, LETTER, place=1)
    layla = member(collection, "Layla")
    prompt_writing.review_prompt(version=version, reviewer=layla, decision="send_back", comment="Pikem")
    lead, there = cast.client("aino"), f"/p/kassa/prompts/{collection.pk}/"

    def left() -> int:
        answer = lead.get(f"/api/v1/projects/kassa/prompt-collections/{collection.pk}/").json()
        return int(answer["progress"][1]["left"])

    assert left() == 0
    lead.post(f"{there}people/", {"user": cast.maarika.pk, "reviews": "on"})
    assert left() == 1, "its author does not write any more"
    lead.post(f"{there}people/", {"user": cast.maarika.pk, "writes": "on"})
    release = f"{there}{version.prompt_id}/release/"
    assert left() == 0 and release in lead.get(there).content.decode()
    assert cast.client("maarika").post(release).status_code == 403
    lead.post(release)
    assert left() == 1 and CollectedPrompt.objects.get().state == "released"
    assert "can&#x27;t be changed" in lead.post(release, follow=True).content.decode()
    submitted(collection, LETTER, "Layla", 1)  # its text is free again


def test_a_prompt_keeps_its_name_in_another_installation(cast: Cast, collection: PromptCollection) -> None:
    for text, place in ((POEM, 0), (LETTER, 1)):
        prompt_writing.review_prompt(
            version=submitted(collection, text, place=place), reviewer=member(collection, "Layla"), decision="accept"
        )
    before = prompt_exports.store_prompts(collection=collection, name="Enne")
    loaded(cast.teine, taken_out(cast.kassa))
    there = PromptCollection.objects.get(project=cast.teine)
    names = {}
    for client, slug, key in (
        (cast.client("aino"), "kassa", collection.pk),
        (cast.client("zoltan"), "teine", there.pk),
    ):
        client.post(f"/p/{slug}/prompts/{key}/store/", {"name": "Pärast"})
        after = Item.objects.filter(dataset__name="Pärast", dataset__project__slug=slug)
        names[slug] = {item.fields["question"]: item.scenario for item in after}
    assert names["kassa"] == names["teine"] and len(set(names["kassa"].values())) == 2
    assert set(Item.objects.filter(dataset=before).values_list("scenario", flat=True)) == set(names["kassa"].values())


def test_identities_of_datasets_are_read_once_and_without_signatures(
    cast: Cast, collection: PromptCollection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_originality, "MOST_READ", 3)
    for number in range(2):
        questions = [f"Küsimus {number} {place}: miks on meri soolane ja mägi kõrge?" for place in range(2)]
        rows = [make.item_row(place, turns=[], fields={"question": text}) for place, text in enumerate(questions)]
        storage.store(project=cast.kassa, name=f"Vanad {number}", items=rows)
    datasets = prompt_originality._datasets(collection.slots.all()[0])
    assert len(prompt_originality._identities(datasets, "et")) == 3, "of the whole project"
    page = f"/p/kassa/prompts/{collection.pk}/write/{collection.slots.all()[0].pk}/"
    answer = cast.client("maarika").post(page, {"text": "Küsimus 1 0: miks on meri soolane ja mägi kõrge?"})
    assert "in a dataset of the project" in answer.content.decode()
    submitted(collection, POEM)
    assert len(bytes.fromhex(PromptVersion.objects.get().signature)) == 256


def test_nobody_is_shown_texts_that_they_rate_nor_much_of_others(cast: Cast, collection: PromptCollection) -> None:
    question = "Miks on meri soolane ja mägi kõrge, küsib Küsija? " * 30
    rows = [make.item_row(0, "et", "atlas", turns=[], fields={"question": question, "answer": "Nii."})]
    dataset = make.dataset(cast.kassa, rows, name="Hinnatavad")
    client = cast.client("maarika")
    check = f"/api/v1/projects/kassa/prompt-collections/{collection.pk}/check/"
    text = {"slot": collection.slots.all()[0].pk, "text": f"{question} Palun."}
    shown = client.post(check, text, content_type="application/json").json()["similar"]
    assert [len(one["text"]) for one in shown] == [600]
    campaign = campaigns.open_campaign(
        project=cast.kassa, name="K", dataset=dataset, rubric_version=make.rubric(cast.kassa)
    )
    estonian = panels.create(project=cast.kassa, name="Estonian", language="et")
    panels.seat(panel=estonian, user=cast.maarika)
    allocation.allocate(campaign=campaign, panel=estonian, overlap=1)
    assert client.post(check, text, content_type="application/json").json()["similar"] == []
