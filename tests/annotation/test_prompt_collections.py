"""Prompts that people write and others review: drafts, submissions, originality, reviews, exports."""

from __future__ import annotations

import unicodedata
from typing import Any
from uuid import uuid4

import pytest

from accounts.refusals import Refused
from annotation.collection import prompt_collections, prompt_exports, prompt_originality, prompt_writing
from annotation.collection.prompt_collections import WantedPrompts
from annotation.imports import storage
from annotation.models import CollectionMember, Item, CollectedPrompt, PromptCollection, PromptVersion
from tests import make
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
    assert not prompt_writing.waiting_for(writer) and prompt_writing.waiting_for(layla) == [version]
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
