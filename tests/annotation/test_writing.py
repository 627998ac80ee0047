"""Texts written by people: written on the desk, read by leads, stored blind among the models' texts."""

from __future__ import annotations

import html
import json
import re
from io import StringIO
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import deletion, removal
from accounts.models import Membership, Role, User
from accounts.refusals import Refused
from annotation import allocation, campaigns, panels
from annotation.collection import texts, texts_read
from annotation.desk import leasing
from annotation.models import Dataset, Item, Panel, WritingDuty, WritingSubmission, WritingText
from annotation.readers import NAMED_FIELDS
from annotation.readers.items import ItemRow
from annotation.sampling import storing
from annotation.sampling.draws import DrawnRow
from tests import make
from tests.annotation.scene import JSON, annotator, member
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)
QUESTION = "Miks läheb leib külmkapis kiiremini vanaks, kui seda hoida «kotis»?"
ANSWER = "Sest külmas kristalliseerub tärklis kiiremini ja leib muutub kõvaks; hoia seda parem kapis, ütles O'Malley."
ARABIC = "لأن النشا يتبلور أسرع في البرد، فيصبح الخبز قاسيًا بعد يوم واحد."


def answers(cast: Cast, scenarios: int = 3) -> Dataset:
    """Questions in Estonian, and in Arabic, with answers by two models."""
    rows: list[ItemRow] = []
    for language in ("et", "ar"):
        for scenario in range(scenarios):
            for generator in ("atlas", "boreas"):
                about = {"external_id": f"{language}/{scenario}/{generator}", "scenario": f"küsimus {scenario}"}
                fields = {"question": f"{QUESTION} ({scenario})", "answer": f"Vastus {scenario} mudelilt."}
                rows.append(
                    make.item_row(
                        len(rows), language, generator, turns=[], fields=fields, attributes={"level": scenario}, **about
                    )
                )
    return make.dataset(cast.kassa, rows, name="Vastused")


def panel(cast: Cast, *others: User) -> Panel:
    estonian = panels.create(project=cast.kassa, name="Estonian", language="et")
    for user in (cast.maarika, *others):
        panels.seat(panel=estonian, user=user)
    return estonian


def opened(cast: Cast, **options: Any) -> WritingDuty:
    about: dict[str, Any] = {"name": "Inimesed “vastavad”", "shortest": 20, "longest": 400, "actor": cast.aino}
    about |= {"dataset": options.pop("dataset", None) or answers(cast)}
    about |= {"panel": options.pop("panel", None) or panel(cast)}
    return texts.open_writing_duty(project=cast.kassa, **{**about, **options})


def begun(client: Client, duty: WritingDuty) -> str:
    """The address of the next prompt."""
    answer = client.post(reverse("desk_writing", args=[duty.pk]))
    assert answer.status_code == 302, answer.content
    return str(answer.headers["Location"])


def key_of(address: str) -> UUID:
    return UUID(address.strip("/").split("/")[-1])


def confirm_of(page: str) -> str:
    """What the page sends when its author has seen the notes about the text."""
    shown = re.search(r'name="confirmed" value="([0-9a-f]{32})"', page)
    assert shown, page
    return shown[1]


def submitted(client: Client, address: str, *said: str, **more: Any) -> Any:
    return client.post(f"{address}submit/", {f"text-{place}": text for place, text in enumerate(said)} | more)


@pytest.mark.both_databases
def test_a_person_writes_a_lead_accepts_and_the_text_stands_blind_among_the_models(cast: Cast) -> None:
    duty = opened(cast, generator="human", instructions="Kirjuta ise.")
    client, lead = cast.client("maarika"), cast.client("boris")
    assert "Texts to write" in client.get(reverse("desk")).content.decode()
    address = begun(client, duty)
    page = client.get(address).content.decode()
    assert QUESTION[:30] in page and "Kirjuta ise." in page
    assert "mudelilt" not in page and "atlas" not in page, "neither the models' answer nor who wrote it"
    assert begun(client, duty) == address, "the same prompt until it is submitted"
    short = submitted(client, address, "Ei tea.")
    assert short.status_code == 422 and "Write at least 20 characters; there are 7." in short.content.decode()
    saved = client.post(f"{address}draft/", {"text-0": ANSWER[:30], "seconds": "31"}, headers=JSON)
    assert saved.status_code == 200
    assert ANSWER[:30] in client.get(address).content.decode()
    assert submitted(client, address, ANSWER, seconds="95").headers["Location"] == reverse(
        "desk_writing", args=[duty.pk]
    )
    submitted(client, address, ANSWER)
    assert WritingSubmission.objects.count() == 1, "sent twice, stored once"
    other = submitted(client, address, ANSWER + " Ja veel.")
    assert other.status_code == 422 and "You submitted this text already" in other.content.decode()

    text = WritingText.objects.get()
    listed = lead.get(reverse("writing_duty", args=["kassa", duty.pk])).content.decode()
    assert "0 of 3 accepted" in listed
    read = reverse("writing_text", args=["kassa", duty.pk, text.pk])
    assert ANSWER.replace("'", "&#x27;") in lead.get(read).content.decode()
    assert lead.post(read, {"decision": "returned", "number": 1}).headers["Location"] == read, "a comment is missing"
    lead.post(read, {"decision": "returned", "number": 1, "comment": "Lühemalt, palun."})
    again = client.get(reverse("desk_writing", args=[duty.pk])).content.decode()
    assert "Lühemalt, palun." in again and "Sent back" in again
    text.refresh_from_db()
    shorter = ANSWER.partition(";")[0] + "."
    late = submitted(client, address, ANSWER + " Hilja.")
    assert late.status_code == 422, "the key of the submission that was sent back is spent"
    second = reverse("desk_writing_text", args=[text.key])
    assert ANSWER[:40] in client.get(second).content.decode(), "it begins with what was submitted"
    assert submitted(client, second, shorter).status_code == 302
    lead.post(read, {"decision": "accepted", "number": 2})
    assert "1 of 3 accepted" in lead.get(reverse("writing_duties", args=["kassa"])).content.decode()

    stored = lead.post(reverse("writing_store", args=["kassa", duty.pk]), {"name": ""})
    dataset = Dataset.objects.get(name="Vastused", version=2)
    assert stored.headers["Location"] == reverse("dataset", args=["kassa", dataset.pk])
    item = Item.objects.of(dataset).get(generator="human")
    assert (item.language, item.fields["answer"], item.scenario) == ("et", shorter, text.item.scenario)
    assert "«kotis»" in item.fields["question"] and item.attributes["level"] == text.item.attributes["level"]
    assert Item.objects.of(dataset).filter(language="et", scenario=item.scenario).count() == 3
    with pytest.raises(Refused):
        texts_read.store_writing(duty=duty)


@pytest.mark.both_databases
def test_nobody_rates_a_text_that_they_wrote_nor_a_copy_of_it(cast: Cast) -> None:
    jaan = member(cast, "Jaan")
    estonian = panel(cast, jaan)
    duty = opened(cast, panel=estonian)
    written = texts.take_prompt(duty=duty, annotator=annotator(cast, cast.maarika))
    assert written is not None
    texts.submit_writing(text=written, key=written.key, texts=[ANSWER])
    texts_read.decide_writing(number=1, text=written, decision="accepted", actor=cast.aino)
    dataset = texts_read.store_writing(duty=duty)
    item = Item.objects.of(dataset).get(generator="person 01")
    estonian_items = Item.objects.of(dataset).filter(language="et")
    kept = [(one.pk, DrawnRow(place, 1.0, "")) for place, one in enumerate(estonian_items)]
    copy = storing.store_curation(dataset=dataset, name="Valik", chosen=kept, rule={}, seed=1, certificate={}).dataset
    for number, rated in enumerate((dataset, copy)):
        rubric = make.rubric(cast.kassa, key=f"r{number}")
        campaign = campaigns.open_campaign(
            project=cast.kassa, name=f"Round {number}", dataset=rated, rubric_version=rubric
        )
        work = allocation.allocate(campaign=campaign, panel=estonian, overlap=2)
        for user, total in ((cast.maarika, 6), (jaan, 7)):
            shown = next(one for one in leasing.duties(user) if one.pk == work.pk)
            assert shown.left == total, "what they wrote is not offered, and not counted"
            got = set()
            client = Client()
            client.force_login(user)
            for _item in range(total):
                slot = leasing.take(duty=work, annotator=annotator(cast, user))
                assert slot is not None
                page = client.get(reverse("desk_item", args=[slot.key])).content.decode()
                assert "person 01" not in page and "atlas" not in page
                got.add(type(slot).objects.values_list("item__external_id", flat=True).get(pk=slot.pk))
                full = {"score-fluency": "2", "score-coherence": "1", "seconds": "12"}
                assert client.post(reverse("desk_submit", args=[slot.key]), full).status_code in (302, 307)
            assert leasing.take(duty=work, annotator=annotator(cast, user)) is None
            assert (item.external_id in got) == (user == jaan)


@pytest.mark.both_databases
def test_a_role_is_written_turn_by_turn_and_the_other_half_is_given(cast: Cast) -> None:
    turns = [
        {"speaker": "Klient", "text": "Tere, mu pakk ei tulnud."},
        {"speaker": "agent", "text": "MUDELI vastus."},
        {"speaker": "Klient", "text": "Number on 4821."},
    ]
    scene = [{"speaker": "Klient", "text": "Tere, kas te olete avatud ka pühapäeval?"}]
    rows = [
        make.item_row(n, turns=said, scenario=f"s{n}", external_id=f"d{n}") for n, said in enumerate((turns, scene))
    ]
    duty = opened(cast, dataset=make.dataset(cast.kassa, rows), kind="turns", part="agent", most_turns=2, seed=1)
    client = cast.client("maarika")
    for _prompt in range(2):
        address = begun(client, duty)
        page = client.get(address).content.decode()
        assert "MUDELI" not in page
        assert page.count("data-text") == (1 if "4821" in page else 2)
        said = ("Tere! Mis on teie paki number?",) if "4821" in page else ("Jah, kella kümnest neljani.", "")
        assert submitted(client, address, *said).status_code == 302
    assert client.post(reverse("desk_writing", args=[duty.pk])).headers["Location"] == reverse(
        "desk_writing", args=[duty.pk]
    )
    for text in WritingText.objects.all():
        texts_read.decide_writing(number=1, text=text, decision="accepted", actor=cast.aino)
    dataset = texts_read.store_writing(duty=duty, name="Pooled")
    first, second = (dataset.items.get(scenario=f"s{number}") for number in (0, 1))
    assert [turn["speaker"] for turn in first.turns] == ["Klient", "agent", "Klient"]
    assert first.turns[1]["text"].startswith("Tere! Mis") and len(second.turns) == 2
    assert dataset.derived_from == duty.dataset


def test_what_is_noticed_is_disclosed_and_never_refuses(cast: Cast) -> None:
    duty = opened(cast)
    client = cast.client("maarika")
    address = begun(client, duty)
    english = "Because starch crystallises faster in the cold, so that the bread becomes hard very soon."
    warned = submitted(client, address, english, pasted=str(len(english)))
    page = warned.content.decode()
    assert warned.status_code == 422 and "another language: English" in page and "100 % of the text" in page
    assert english in page
    said = {"confirmed": confirm_of(page), "pasted": str(len(english))}
    assert submitted(client, address, english + " It is so.", **said).status_code == 422, "another text than was seen"
    assert submitted(client, address, english, **said | {"confirmed": "1"}).status_code == 422
    assert submitted(client, address, english, **said).status_code == 302
    stored = WritingSubmission.objects.get()
    assert {warning["code"] for warning in stored.warnings} == {"language", "pasted"}
    read = cast.client("aino").get(reverse("writing_text", args=["kassa", duty.pk, stored.text_id])).content.decode()
    assert "another language: English" in read
    second = begun(client, duty)
    question = WritingText.objects.get(key=key_of(second)).item.fields["question"]
    assert "same as the prompt" in submitted(client, second, question).content.decode()


def test_a_skipped_or_abandoned_prompt_goes_to_somebody_else_and_no_draft_is_lost(cast: Cast) -> None:
    jaan = member(cast, "Jaan")
    duty = opened(cast, panel=panel(cast, jaan), dataset=answers(cast, scenarios=1))
    client = cast.client("maarika")
    address = begun(client, duty)
    client.post(f"{address}draft/", {"text-0": ANSWER}, headers=JSON)
    second = Client()
    second.force_login(jaan)
    assert second.post(reverse("desk_writing", args=[duty.pk])).headers["Location"] == reverse(
        "desk_writing", args=[duty.pk]
    )
    WritingText.objects.update(held_until=timezone.now() - texts.HOLD)
    theirs = begun(second, duty)
    late = client.post(f"{address}draft/", {"text-0": ANSWER + " Veel."}, headers=JSON)
    assert (late.status_code, late.json()["code"]) == (409, "writing_taken")
    assert "Veel." in client.get(address).content.decode(), "the draft is kept all the same"
    refused = submitted(client, address, ANSWER)
    assert refused.status_code == 422 and "somebody else writes for it" in refused.content.decode()
    second.post(f"{theirs}skip/", {"reason": "language", "note": "murre"})
    assert submitted(client, address, ANSWER).status_code == 302, "the place is free again"
    skipped = WritingText.objects.get(annotator__user=jaan)
    assert (skipped.state, skipped.skip_reason, skipped.note) == ("skipped", "language", "murre")
    shown = cast.client("aino").get(reverse("writing_duty", args=["kassa", duty.pk])).content.decode()
    assert "murre" in shown


def test_two_at_once_never_get_one_place_and_two_tabs_one_prompt(cast: Cast) -> None:
    people = [cast.maarika, *(member(cast, name) for name in ("Jaan", "Mart"))]
    duty = opened(cast, panel=panel(cast, *people[1:]), dataset=answers(cast, scenarios=2), per_prompt=1)
    taken = [texts.take_prompt(duty=duty, annotator=annotator(cast, user)) for user in people]
    assert [one is None for one in taken] == [False, False, True]
    assert len({one.item_id for one in taken if one}) == 2
    again = texts.take_prompt(duty=duty, annotator=annotator(cast, cast.maarika))
    assert again and taken[0] and again.pk == taken[0].pk


def test_a_paused_duty_keeps_drafts_and_a_lead_does_not_decide_on_their_own_text(cast: Cast) -> None:
    estonian = panel(cast)
    panels.seat(panel=estonian, user=cast.aino)
    duty = opened(cast, panel=estonian)
    client = cast.client("aino")
    address = begun(client, duty)
    cast.client("boris").post(reverse("writing_state", args=["kassa", duty.pk]), {"state": "paused"})
    assert "This task is paused" in submitted(client, address, ANSWER).content.decode()
    assert WritingText.objects.get().draft == [ANSWER]
    texts.set_writing_state(duty=duty, state="open")
    assert submitted(client, address, ANSWER).status_code == 302
    text = WritingText.objects.get()
    with pytest.raises(Refused) as refused:
        texts_read.decide_writing(number=1, text=text, decision="accepted", actor=cast.aino)
    assert refused.value.code == "own_text"
    texts_read.decide_writing(number=1, text=text, decision="accepted", actor=cast.boris)
    texts_read.decide_writing(
        number=1, text=text, decision="accepted", actor=cast.boris
    )  # nothing happens a second time


def test_a_text_that_is_sent_after_its_project_was_deleted_is_kept(cast: Cast) -> None:
    client = cast.client("maarika")
    address = begun(client, opened(cast))
    client.post(f"{address}draft/", {"text-0": "Mustand"}, headers=JSON)
    removed = deletion.delete_project(project=cast.kassa, name="Kassa", actor=cast.aino)
    sent = submitted(client, address, ANSWER)
    assert sent.status_code == 410 and "This study has ended" in sent.content.decode()
    assert client.post(f"{address}skip/", {"reason": "other"}).status_code == 410
    assert submitted(cast.client("layla"), address, "Kellegi teise oma.").status_code == 404
    text = WritingText.objects.get()
    assert (text.draft, text.state) == ([ANSWER], "writing")
    deletion.restore_project(deletion=removed, actor=cast.aino)
    assert html.escape(ANSWER) in client.get(address).content.decode()


def test_only_the_panel_writes_and_only_leads_read(cast: Cast) -> None:
    duty = opened(cast)
    address = begun(cast.client("maarika"), duty)
    for name in ("layla", "boris", "zoltan"):
        client = cast.client(name)
        assert client.post(reverse("desk_writing", args=[duty.pk])).status_code == 404
        assert client.get(address).status_code == 404
        assert submitted(client, address, ANSWER).status_code == 404
    for name, code in (("layla", 403), ("maarika", 403), ("zoltan", 404)):
        assert cast.client(name).get(reverse("writing_duty", args=["kassa", duty.pk])).status_code in (code, 404)


def test_an_erased_person_leaves_submissions_but_no_draft(cast: Cast) -> None:
    duty = opened(cast, per_prompt=2)
    client = cast.client("maarika")
    address = begun(client, duty)
    submitted(client, address, ANSWER)
    client.post(f"{begun(client, duty)}draft/", {"text-0": "Isiklik mõte."}, headers=JSON)
    removal.erase(user=cast.maarika) if hasattr(removal, "erase") else texts.redact_writing(cast.maarika)
    assert list(WritingText.objects.order_by("pk").values_list("state", "draft")) == [
        ("submitted", []),
        ("released", []),
    ]
    assert WritingSubmission.objects.get().texts == [ANSWER]


def test_the_forms_api_and_command(cast: Cast) -> None:
    dataset, estonian = answers(cast), panel(cast)
    lead = cast.client("aino")
    assert "Nobody writes yet" in lead.get(reverse("writing_duties", args=["kassa"])).content.decode()
    new = reverse("writing_duty_new", args=["kassa"])
    filled = {"name": "Vorm", "dataset": dataset.pk, "panel": estonian.pk, "kind": "answer", "part": "vastus"}
    filled |= {"most_turns": 1, "shortest": 20, "longest": 300, "per_prompt": 1}
    assert "Write one of:" in lead.post(new, filled).content.decode()
    assert lead.post(new, {**filled, "part": "answer"}).status_code == 302

    def sent(client: Client, verb: str, path: str, **body: Any) -> Any:
        address = f"/api/v1/projects/kassa/{path}"
        return getattr(client, verb)(address, json.dumps(body), content_type="application/json")

    body = {"name": "API", "dataset": dataset.pk, "panel": estonian.pk, "generator": "human", "longest": 300}
    made = sent(lead, "post", "writing/", **body)
    assert (made.status_code, made.json()["progress"]["wanted"]) == (201, 3), made.json()
    assert sent(lead, "post", "writing/", **body).status_code in (409, 422)
    duty = made.json()["id"]
    writer = cast.client("maarika")
    assert {one["name"] for one in writer.get("/api/v1/projects/kassa/desk/writing/").json()} == {"Vorm", "API"}
    prompt = sent(writer, "post", f"desk/writing/{duty}/take/").json()
    assert "answer" not in prompt["fields"] and prompt["places"] == 1
    at = f"desk/writing/at/{prompt['key']}/"
    assert sent(writer, "post", at, texts=["x" * 400]).status_code == 422
    for _twice in range(2):
        assert sent(writer, "post", at, texts=[ANSWER]).json()["state"] == "submitted"
    assert sent(writer, "post", f"desk/writing/at/{uuid4()}/", texts=[ANSWER]).status_code == 404
    listed = lead.get(f"/api/v1/projects/kassa/writing/{duty}/texts/?state=submitted").json()["results"]
    assert listed[0]["submissions"][0]["texts"] == [ANSWER]
    decision = f"writing/{duty}/texts/{listed[0]['id']}/decision/"
    assert sent(lead, "put", decision, decision="accepted", number=1).json()["state"] == "accepted"
    assert sent(lead, "put", f"writing/{duty}/state/", state="closed").json()["state"] == "closed"
    out = StringIO()
    call_command("writing", "kassa", "--store", "API", "--name", "Inimesed", stdout=out)
    assert "Dataset “Inimesed” v1" in out.getvalue() and "“API” (closed): 1 of 3 accepted" in out.getvalue()
    call_command("writing", "kassa", "--open", "Käsk", "--dataset", "Vastused", "--panel", "Estonian", stdout=out)
    with pytest.raises(CommandError):
        call_command("writing", "kassa", "--open", "Käsk", "--dataset", "Olematu", "--panel", "Estonian", stdout=out)


def test_prompts_that_nobody_rates_are_stored_as_a_dataset_of_their_own(cast: Cast) -> None:
    prompts = answers(cast, scenarios=1)
    Dataset.objects.filter(pk=prompts.pk).update(allocatable=False)
    prompts.refresh_from_db()
    duty = opened(cast, dataset=prompts)
    text = texts.take_prompt(duty=duty, annotator=annotator(cast, cast.maarika))
    assert text is not None
    texts.submit_writing(text=text, key=text.key, texts=[ANSWER])
    texts_read.decide_writing(number=1, text=text, decision="accepted", actor=cast.aino)
    with pytest.raises(Refused) as refused:
        texts_read.store_writing(duty=duty)
    assert list(refused.value.fields) == ["name"]
    assert texts_read.store_writing(duty=duty, name="Inimeste vastused").items.get().generator == "person 01"
    assert Membership.objects.filter(project=cast.kassa, role=Role.LEAD).exists()


def test_an_author_confirms_by_api_the_text_that_they_were_told_about(cast: Cast) -> None:
    duty = opened(cast)
    writer: Any = cast.client("maarika")
    as_json: Any = {"content_type": "application/json"}
    prompt = writer.post(f"/api/v1/projects/kassa/desk/writing/{duty.pk}/take/", {}, **as_json).json()
    at = f"/api/v1/projects/kassa/desk/writing/at/{prompt['key']}/"
    english = "Because starch crystallises faster in the cold, so that “the bread” becomes hard very soon."
    warned = writer.post(at, {"texts": [english]}, **as_json)
    assert (warned.status_code, warned.json()["code"]) == (409, "writing_warnings")
    assert warned.json()["warnings"] == [{"code": "language", "values": {"language": "en"}}]
    confirmed = warned.json()["confirm"]
    other = writer.post(at, {"texts": [english + " Always."], "confirmed": confirmed}, **as_json)
    assert other.json()["code"] == "writing_warnings" and other.json()["confirm"] != confirmed
    pasted = writer.post(at, {"texts": [english], "pasted": len(english), "confirmed": confirmed}, **as_json)
    assert {one["code"] for one in pasted.json()["warnings"]} == {"language", "pasted"}, "more than was confirmed"
    assert not WritingSubmission.objects.exists()
    assert writer.post(at, {"texts": [english], "confirmed": confirmed}, **as_json).json()["state"] == "submitted"
    assert writer.post(at, {"texts": [english]}, **as_json).status_code == 200, "what is stored is not asked about"


def test_a_decision_names_what_was_read_and_a_later_one_leaves_it(cast: Cast) -> None:
    duty = opened(cast)
    client, lead, other = cast.client("maarika"), cast.client("aino"), cast.client("boris")
    submitted(client, begun(client, duty), ANSWER)
    text = WritingText.objects.get()
    api = f"/api/v1/projects/kassa/writing/{duty.pk}/texts/{text.pk}/decision/"
    read = reverse("writing_text", args=["kassa", duty.pk, text.pk])
    as_json: Any = {"content_type": "application/json"}
    for number in (0, 2):
        unread = lead.put(api, {"decision": "accepted", "number": number}, **as_json)
        assert (unread.status_code, unread.json()["code"]) == (409, "newer_submission")
    assert "Read it first" in lead.post(read, {"decision": "accepted"}, follow=True).content.decode()
    assert lead.put(api, {"decision": "accepted"}, **as_json).status_code == 409, "an unread one"
    text.refresh_from_db()
    assert text.state == "submitted"
    lead.put(api, {"decision": "accepted", "number": 1, "comment": "Hea “töö”."}, **as_json)
    assert other.post(read, {"decision": "returned", "number": 1, "comment": "Siiski lühemalt."}).status_code == 302
    shown = lead.put(api, {"decision": "returned", "number": 1, "comment": "Jälle"}, **as_json).json()
    decisions = [(one["decision"], one["comment"]) for one in shown["submissions"][0]["decisions"]]
    assert decisions == [("accepted", "Hea “töö”."), ("returned", "Siiski lühemalt.")], "nothing was overwritten"
    page = lead.get(read).content.decode()
    assert "Hea “töö”." in page and "Siiski lühemalt." in page and "Aino" in page and "Boris" in page
    text.refresh_from_db()
    mine = client.get(reverse("desk_writing_text", args=[text.key])).content.decode()
    assert "Siiski lühemalt." in mine and "Hea" not in mine
    texts.redact_writing(cast.aino)
    left = text.submissions.get().decisions.values_list("decision", "comment")
    assert list(left) == [("accepted", ""), ("returned", "Siiski lühemalt.")]


@pytest.mark.parametrize(("kind", "part"), [("answer", "answer"), ("turns", "agent")])
def test_nothing_else_of_the_model_is_in_a_persons_item(cast: Cast, kind: str, part: str) -> None:
    turns = [{"speaker": "Klient", "text": "Tere, mu pakk ei tulnud."}, {"speaker": "agent", "text": "MUDEL vastab."}]
    fields = {name: "MUDELI osa." for name in NAMED_FIELDS if name not in (*texts.GIVEN_FIELDS, "reference")}
    fields |= {"question": "Kus on «pakk»?"}
    turns = turns[:1] if kind == "answer" else turns
    about: dict[str, Any] = {"title": "MUDELI pealkiri", "attributes": {"spec": "MUDEL", "level": 1}}
    rows = [make.item_row(0, turns=turns, fields=fields, external_id="d0", scenario="s0", **about)]
    duty = opened(cast, dataset=make.dataset(cast.kassa, rows), kind=kind, part=part)
    client = cast.client("maarika")
    address = begun(client, duty)
    assert "MUDEL" not in client.get(address).content.decode()
    assert submitted(client, address, ANSWER).status_code == 302
    text = WritingText.objects.get()
    texts_read.decide_writing(number=1, text=text, decision="accepted", actor=cast.aino)
    item = texts_read.store_writing(duty=duty, name="Inimesed").items.get()
    kept = json.dumps([item.turns, item.fields, item.attributes, item.title], ensure_ascii=False)
    assert ANSWER in kept and "«pakk»" in kept and "MUDEL" not in kept.replace(ANSWER, "")
