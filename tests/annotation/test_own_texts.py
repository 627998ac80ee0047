"""Texts by people: places become free, decisions name what was read, bundles carry texts, nobody judges their own."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import Project
from accounts.refusals import Refused
from annotation import allocation, campaigns, panels
from annotation.collection import texts, texts_read
from annotation.desk import leasing
from annotation.models import (
    Annotator,
    Assignment,
    Dataset,
    ExamItem,
    Item,
    Panel,
    PanelSeat,
    WritingDuty,
    WritingSubmission,
    WritingText,
)
from annotation.sampling import user_comparison
from tests import make
from tests.analytics.test_bundles import loaded, rewritten, taken_out
from tests.annotation import qualified
from tests.annotation.scene import JSON, annotator, member
from tests.annotation.test_writing import ANSWER, answers, begun, key_of, opened, panel, submitted
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)


def wrote(cast: Cast, item: Item) -> WritingText:
    """Maarika wrote this item."""
    author = panels.annotator_for(project=cast.kassa, user=cast.maarika)
    duty = WritingDuty.objects.create(
        project=cast.kassa,
        name="Inimesed",
        dataset=item.dataset,
        panel=Panel.objects.filter(project=cast.kassa).first() or panel(cast),
        seed=1,
    )
    return WritingText.objects.create(
        duty=duty, item=item, annotator=author, place=1, state="accepted", key=uuid4(), held_until=timezone.now(),
        external_id=item.external_id,
    )  # fmt: skip


def accepted(cast: Cast, duty: WritingDuty, *said: str) -> WritingText:
    text = texts.take_prompt(duty=duty, annotator=annotator(cast, cast.maarika))
    assert text is not None
    texts.submit_writing(text=text, key=text.key, texts=said or [ANSWER], confirmed=True)
    texts_read.decide_writing(text=text, number=1, decision="accepted", actor=cast.aino)
    return text


def dialogue(number: int, turns: int) -> Any:
    said = [{"speaker": who, "text": f"{who} {turn}"} for turn in range(turns) for who in ("Klient", "agent")]
    return make.item_row(number, turns=said, scenario=f"s{number}", external_id=f"d{number}")


def test_dialogues_with_more_turns_than_are_stored_are_not_offered(cast: Cast) -> None:
    dataset = make.dataset(cast.kassa, [dialogue(1, 21), dialogue(2, 20)])
    duty = opened(cast, dataset=dataset, kind="turns", part="Agent", shortest=1)
    client = cast.client("maarika")
    address = begun(client, duty)
    page = client.get(address).content.decode()
    assert page.count("data-text") == 20
    assert submitted(client, address, *[f"Vastus {turn}" for turn in range(20)]).status_code == 302
    assert len(WritingSubmission.objects.get().texts) == 20
    assert begun(client, duty) == reverse("desk_writing", args=[duty.pk]), "no prompt is left"
    with pytest.raises(Refused) as refused:
        opened(
            cast, name="Pikad", dataset=make.dataset(cast.kassa, [dialogue(1, 21)], name="Pikad"), kind="turns",
            part="agent", panel=duty.panel,
        )  # fmt: skip
    assert refused.value.code == "no_items"


@pytest.mark.both_databases
def test_a_returned_text_keeps_its_place_for_three_days_only_and_a_lead_may_release_it(cast: Cast) -> None:
    jaan = member(cast, "Jaan")
    duty = opened(cast, panel=panel(cast, jaan), dataset=answers(cast, scenarios=1))
    client, lead = cast.client("maarika"), cast.client("boris")
    submitted(client, begun(client, duty), ANSWER)
    text = WritingText.objects.get()
    texts_read.decide_writing(text=text, number=1, decision="returned", comment="Lühemalt.", actor=cast.aino)
    PanelSeat.objects.filter(annotator__user=cast.maarika).delete()
    assert texts.take_prompt(duty=duty, annotator=annotator(cast, jaan)) is None
    WritingText.objects.update(held_until=timezone.now() - texts.HOLD)
    taken = texts.take_prompt(duty=duty, annotator=annotator(cast, jaan))
    assert taken is not None and taken.place == text.place
    text.refresh_from_db()
    assert (text.state, text.draft) == ("released", [ANSWER])

    read = reverse("writing_text", args=["kassa", duty.pk, taken.pk])
    assert "Give to somebody else" in lead.get(read).content.decode()
    lead.post(read, {"decision": "released"})
    taken.refresh_from_db()
    assert taken.state == "released"
    refused = lead.put(
        f"/api/v1/projects/kassa/writing/{duty.pk}/texts/{taken.pk}/decision/",
        {"decision": "released"},
        content_type="application/json",
    )
    assert refused.json()["code"] == "wrong_state"


@pytest.mark.both_databases
def test_a_decision_is_about_the_submission_that_was_read(cast: Cast) -> None:
    duty = opened(cast)
    client, lead = cast.client("maarika"), cast.client("boris")
    submitted(client, begun(client, duty), ANSWER)
    text = WritingText.objects.get()
    read = reverse("writing_text", args=["kassa", duty.pk, text.pk])
    assert 'name="number" value="1"' in lead.get(read).content.decode()
    texts_read.decide_writing(text=text, number=1, decision="returned", comment="Lühemalt.", actor=cast.aino)
    second = reverse("desk_writing_text", args=[text.key])
    assert submitted(client, second, ANSWER.partition(";")[0] + ".").status_code == 302
    late = lead.post(read, {"decision": "accepted", "number": "1"}, follow=True).content.decode()
    assert "submitted another text since" in late
    api = f"/api/v1/projects/kassa/writing/{duty.pk}/texts/{text.pk}/decision/"
    unread = lead.put(api, {"decision": "accepted", "number": 1}, content_type="application/json")
    assert unread.json()["code"] == "newer_submission"
    text.refresh_from_db()
    assert (text.state, text.submissions.get(number=2).decision) == ("submitted", None)
    assert lead.put(api, {"decision": "accepted", "number": 2}, content_type="application/json").status_code == 200


def test_somebody_without_a_seat_submits_nothing_and_their_draft_is_kept(cast: Cast) -> None:
    duty = opened(cast)
    client = cast.client("maarika")
    address = begun(client, duty)
    panels.unseat(seat=PanelSeat.objects.get(annotator__user=cast.maarika), actor=cast.aino)
    refused = submitted(client, address, ANSWER)
    assert refused.status_code == 422 and "You are not a member of this panel" in refused.content.decode()
    api = client.post(
        f"/api/v1/projects/kassa/desk/writing/at/{key_of(address)}/", {"texts": [ANSWER]}, "application/json"
    )
    assert api.json()["code"] == "not_seated"
    assert not WritingSubmission.objects.exists() and WritingText.objects.get().draft == [ANSWER]


def test_a_closed_duty_is_told_as_closed_and_its_texts_stay_in_reach(cast: Cast) -> None:
    duty, other = opened(cast), None
    client, lead = cast.client("maarika"), cast.client("aino")
    address = begun(client, duty)
    client.post(f"{address}draft/", {"text-0": ANSWER}, headers=JSON)
    other = opened(cast, name="Tühi", dataset=duty.dataset, panel=duty.panel)
    assert "Close this task?" in lead.get(reverse("writing_duty", args=["kassa", duty.pk])).content.decode()
    for one in (duty, other):
        texts.set_writing_state(duty=one, state="closed")
    home = client.get(reverse("desk")).content.decode()
    assert duty.name in home and "Tühi" not in home
    own = client.get(reverse("desk_writing", args=[duty.pk])).content.decode()
    assert "The lead closed this task." in own and "paused" not in own and address in own
    Project.objects.filter(pk=cast.kassa.pk).update(archived_at=timezone.now())
    late = client.post(f"{address}draft/", {"text-0": "Hilja."}, headers=JSON)
    assert late.status_code in (403, 409) and WritingText.objects.get().draft == [ANSWER]
    duty = WritingDuty.objects.select_related("project").get(pk=duty.pk)
    with pytest.raises(Refused):
        texts.set_writing_state(duty=duty, state="open")


def test_the_rest_of_a_models_text_is_neither_shown_nor_stored_under_a_person(cast: Cast) -> None:
    about = {"task": "kiri", "family": 3, "plan": "P", "spec": "s 1", "simulator": "sim", "ended": "stopped"}
    about |= {"user_turns": 2, "set_aside": "role_confusion"}
    fields = {"question": "Miks leib kuivab?", "answer": "MUDELI vastus", "kokkuvõte": "MUDELI kokkuvõte"}
    fields |= {"reference": "Tärklis."}
    rows = [
        make.item_row(
            number, generator=name, turns=[], fields=fields, scenario="s", external_id=f"d{number}",
            attributes={**about, "length": number},
        )
        for number, name in enumerate(("atlas", "boreas"))
    ]  # fmt: skip
    said = [{"speaker": "user", "text": "Miks leib kuivab?"}, {"speaker": "assistant", "text": "MUDELI jutt"}]
    rows.append(make.item_row(3, turns=said, scenario="t", external_id="d3"))
    duty = opened(cast, dataset=make.dataset(cast.kassa, rows))
    client = cast.client("maarika")
    for _prompt in range(2):
        address = begun(client, duty)
        page = client.get(address).content.decode()
        assert "Miks leib kuivab?" in page and "MUDELI" not in page and "Tärklis" not in page
        assert submitted(client, address, ANSWER).status_code == 302
    for text in WritingText.objects.all():
        texts_read.decide_writing(text=text, number=1, decision="accepted", actor=cast.aino)
    dataset = texts_read.store_writing(duty=duty, name="Inimeste")
    first, second = dataset.items.get(scenario="s"), dataset.items.get(scenario="t")
    assert first.fields == {"question": "Miks leib kuivab?", "answer": ANSWER, "reference": "Tärklis."}
    assert first.attributes == {
        "task": "kiri", "written_by": "person", "writing_duty": duty.name, "written_as": first.external_id,
    }  # fmt: skip
    assert second.turns == said[:1] and second.fields == {"answer": ANSWER}


@pytest.mark.both_databases
def test_own_turns_are_not_offered_in_the_mixed_set_nor_in_a_translation(cast: Cast) -> None:
    jaan = member(cast, "Jaan")
    both = panel(cast, jaan)
    duty = opened(cast, dataset=make.dataset(cast.kassa, [dialogue(1, 2)]), kind="turns", part="Klient", panel=both)
    accepted(cast, duty, "Tere, mu pakk ei tulnud eile.", "Number on neli kaheksa kaks üks.")
    human = texts_read.store_writing(duty=duty, name="Inimeste")
    program = dialogue(7, 2)
    program.attributes["simulator"] = "sim"
    settings = user_comparison.UserComparisonSettings(
        n=1, rated="dialogue", simulated_user="Klient", human_user="Klient", seed=1
    )
    campaign = user_comparison.start_user_comparison(
        project=cast.kassa, simulated=make.dataset(cast.kassa, [program], name="Simul"), human=human, name="Kes?",
        settings=settings,
    )  # fmt: skip
    own = Item.objects.of(campaign.dataset).get(attributes__origin="human")
    assert own.attributes["written_as"] == human.items.get().external_id
    _offered(cast, campaign, both, own)

    source = human.items.get()
    about = {"source_item": source.external_id}
    twin = make.item_row(
        1, turns=source.turns, external_id=f"{source.external_id}/et/gpt", attributes=about
    )  # fmt: skip
    copied = make.dataset(cast.kassa, [twin, dialogue(9, 1)], name="Tõlked")
    rated = campaigns.open_campaign(
        project=cast.kassa, name="Tõlked", dataset=copied, rubric_version=make.rubric(cast.kassa)
    )
    _offered(cast, rated, both, copied.items.get(external_id=twin.external_id))


def _offered(cast: Cast, campaign: Any, both: Panel, own: Item) -> None:
    """Jaan gets both items, Maarika the other one only."""
    work = allocation.allocate(campaign=campaign, panel=both, overlap=2)
    jaan = Annotator.objects.get(user__name="Jaan").user
    assert jaan is not None
    for user, count in ((cast.maarika, 1), (jaan, 2)):
        assert next(one for one in leasing.duties(user) if one.pk == work.pk).left == count
        got = set()
        for _item in range(count):
            slot = leasing.take(duty=work, annotator=annotator(cast, user))
            assert slot is not None
            got.add(slot.item_id)
            Assignment.objects.filter(pk=slot.pk).update(state="submitted")
        assert leasing.take(duty=work, annotator=annotator(cast, user)) is None
        assert (own.pk in got) == (user != cast.maarika)


@pytest.mark.both_databases
def test_nobody_is_examined_or_trained_with_a_text_that_they_wrote(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, training=[1, 2], exam=[3, 4], exam_items=1, attempts=3)
    items = {item.external_id: item for item in Item.objects.of(work.campaign.dataset)}
    first = wrote(cast, items["d1"])
    WritingText.objects.create(
        duty=first.duty, item=items["d3"], annotator=first.annotator, place=1, state="accepted", key=uuid4(),
        held_until=timezone.now(), external_id="d3",
    )  # fmt: skip
    maarika = cast.client("maarika")
    page = maarika.post(f"/desk/{work.pk}/training/")["Location"]
    trained = Assignment.objects.get(annotator=first.annotator)
    assert trained.item.external_id == "d2"
    told = qualified.submit_scores(maarika, page)
    assert told, "the only item of the training is done"
    maarika.post(f"/desk/{work.pk}/exam/")
    assert set(ExamItem.objects.values_list("item__external_id", flat=True)) == {"d4"}


def test_nobody_adjudicates_a_text_that_they_wrote(cast: Cast) -> None:
    dataset = make.dataset(cast.kassa, 2)
    campaign = campaigns.open_campaign(
        project=cast.kassa, name="Ring", dataset=dataset, rubric_version=make.rubric(cast.kassa)
    )
    make.rated(campaign, {"fluency": {"mari": [1, 2], "jaan": [3, 3]}})
    item = dataset.items.get(external_id="d1")
    text = wrote(cast, item)
    text.annotator.user = cast.aino
    text.annotator.save()
    address = reverse("adjudicate_item", args=["kassa", campaign.pk, item.pk])
    answer = cast.client("aino").post(address, {"score-fluency": "1", "key": str(uuid4())})
    assert "You wrote this text" in answer.content.decode(), answer.status_code


@pytest.mark.both_databases
def test_a_bundle_carries_duties_and_texts_and_nobody_is_offered_their_own_after_it(cast: Cast) -> None:
    jaan = member(cast, "Jaan")
    duty = opened(cast, panel=panel(cast, jaan))
    stored = accepted(cast, duty)
    texts_read.store_writing(duty=duty)
    waiting = accepted(cast, duty, ANSWER + " Teine.")
    draft = texts.take_prompt(duty=duty, annotator=annotator(cast, cast.maarika))
    assert draft is not None
    texts.save_writing(text=draft, key=draft.key, texts=["Mustand"])
    content = taken_out(cast.kassa)
    loaded(cast.teine, content)
    assert taken_out(cast.teine) == content
    there = WritingDuty.objects.get(project=cast.teine)
    carried = WritingText.objects.filter(duty=there).order_by("pk")
    assert [(text.state, text.external_id, text.draft) for text in carried] == [
        ("accepted", WritingText.objects.get(pk=stored.pk).external_id, []), ("accepted", "", []),
    ]  # fmt: skip
    assert carried[1].submissions.get().texts == [ANSWER + " Teine."]
    assert carried[1].submissions.get().decisions.get().decision == "accepted" and carried[1].key != waiting.key
    again = texts_read.store_writing(duty=there)
    assert Item.objects.of(again).filter(attributes__written_by="person").count() == 2

    author = carried[0].annotator
    author.user = cast.maarika
    author.save()
    campaign = campaigns.open_campaign(
        project=cast.teine, name="Ring", dataset=Dataset.objects.get(project=cast.teine, version=2),
        rubric_version=make.rubric(cast.teine),
    )  # fmt: skip
    work = allocation.allocate(campaign=campaign, panel=there.panel, overlap=1)
    got = set()
    while (slot := leasing.take(duty=work, annotator=author)) is not None:
        got.add(slot.item.external_id)
        Assignment.objects.filter(pk=slot.pk).update(state="submitted")
    assert len(got) == 6 and carried[0].external_id not in got


def as_version_10(members: dict[str, bytes]) -> None:
    """One decision as fields of its submission, as that version had it."""
    made = [orjson.loads(line) for line in members.pop("text_decisions.jsonl").splitlines()]
    sent = [orjson.loads(line) for line in members["text_submissions.jsonl"].splitlines()]
    for place, row in enumerate(sent):
        newest = next((one for one in reversed(made) if one["submission"] == place), {})
        row.update({"decision": "", "comment": "", "decided_at": None} | newest)
        row.pop("submission", None)
    members["text_submissions.jsonl"] = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in sent)
    manifest = orjson.loads(members["manifest.json"])
    del manifest["members"]["text_decisions"]
    members["manifest.json"] = orjson.dumps({**manifest, "version": 10})


@pytest.mark.both_databases
def test_a_bundle_of_version_10_has_the_decision_with_the_submission(cast: Cast) -> None:
    duty = opened(cast, panel=panel(cast, member(cast, "Jaan")))
    text = accepted(cast, duty)
    wrote_too = texts.take_prompt(duty=duty, annotator=annotator(cast, cast.maarika))
    assert wrote_too is not None
    content = taken_out(cast.kassa)
    loaded(cast.teine, rewritten(content, as_version_10))
    own = text.submissions.get().decisions.get()
    there = WritingText.objects.get(duty__project=cast.teine).submissions.get().decisions.get()
    assert (there.decision, there.comment, there.decided_at) == (own.decision, own.comment, own.decided_at)
    assert taken_out(cast.teine) == content


def test_pages_of_duties_read_the_items_once(cast: Cast) -> None:
    opened(cast)
    lead = cast.client("aino")
    page = reverse("writing_duties", args=["kassa"])
    assert "0 of 3 accepted" in lead.get(page).content.decode()
    with CaptureQueriesContext(connection) as queries:
        assert "0 of 3 accepted" in lead.get(page).content.decode()
    assert not [query for query in queries if '"ordinal"' in query["sql"]]
