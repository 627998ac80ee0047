"""Collecting prompts in Chromium: a draft is kept, a review by keys, on a phone, and what axe finds."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from annotation.collection import prompt_collections, prompt_writing
from annotation.collection.prompt_collections import WantedPrompts
from annotation.models import CollectedPrompt, PromptVersion
from tests.browser.conftest import VisitAs
from tests.browser.test_curation import audited
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "اكتب رسالة قصيرة إلى جارك تشكره فيها على مساعدته لك في نقل الأثاث."


def test_a_prompt_is_kept_submitted_and_reviewed(cast: Cast, visit_as: VisitAs) -> None:
    slots = [WantedPrompts("Kiri «ametlik»", "äri", "raske", tag, 2) for tag in ("ar", "et")]
    made = prompt_collections.create_collection(
        project=cast.kassa, name="Kogu “1”", slots=slots, guidelines={"ar": "اكتب *بنفسك*.", "et": "Kirjuta *ise*."}
    )
    for user in (cast.maarika, cast.layla):
        prompt_collections.set_member(collection=made, user=user, writes=True, reviews=True)
    there = f"/p/kassa/prompts/{made.pk}/"
    page = visit_as("layla", there)
    found = {"own page": audited(page)}
    page.get_by_role("link", name="Kiri «ametlik» · äri · raske").first.click()
    field = page.get_by_label("Prompt")
    field.fill("اكتب")
    expect(page.get_by_text("Kept as a draft.")).to_be_visible()
    page.reload()
    expect(field).to_have_value("اكتب")
    field.fill(TEXT)
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("No similar prompt was found")).to_be_visible()
    found["writing"] = audited(page)
    field.press("Control+Enter")
    expect(page.get_by_text("Submitted. Somebody else reviews it now.")).to_be_visible()
    expect(field).to_have_value("")
    assert PromptVersion.objects.get().text == TEXT and CollectedPrompt.objects.count() == 1
    page = visit_as("maarika", f"{there}review/")
    expect(page.get_by_role("heading", name="Review a prompt")).to_be_visible()
    found["review"] = audited(page)
    page.keyboard.press("a")
    expect(page.get_by_text("Saved. No other prompt waits for your review.")).to_be_visible()
    page = visit_as("aino", there)
    expect(page.get_by_text("1 / 0 / 2")).to_be_visible()
    found["lead"] = audited(page)
    with page.expect_navigation():
        page.get_by_role("button", name="Store 1 prompt as a dataset").click()
    with page.expect_navigation():
        page.get_by_role("link", name="Have models answer").click()
    found["answers"] = audited(page)
    page.goto(f"{page.url.split('/p/')[0]}/p/kassa/prompts/new/")
    found["new"] = audited(page)
    assert [fault for faults in found.values() for fault in faults] == []


def test_what_the_server_did_not_take_stays_on_the_device(cast: Cast, visit_as: VisitAs) -> None:
    slots = [WantedPrompts("Story", "", "", "et", 1)]
    made = prompt_collections.create_collection(project=cast.kassa, name="Kogu", slots=slots)
    member = prompt_collections.set_member(collection=made, user=cast.maarika, writes=True, reviews=False)
    slot = made.slots.get()
    page = visit_as("maarika", f"/p/kassa/prompts/{made.pk}/write/{slot.pk}/")
    page.route("**/draft/", lambda route: route.abort())
    page.get_by_label("Prompt").fill("Kirjuta jutt.")
    expect(page.get_by_text("Kept on this device.")).to_be_visible()
    page.unroute("**/draft/")
    page.reload()
    expect(page.get_by_label("Prompt")).to_have_value("Kirjuta jutt.")
    expect(page.get_by_text("Kept as a draft.")).to_be_visible()
    assert CollectedPrompt.objects.get(author=member).draft == "Kirjuta jutt."
    prompt_writing.keep_draft(member=member, slot=slot, text="")


def test_of_two_devices_the_older_text_does_not_replace_the_newer_draft(cast: Cast, visit_as: VisitAs) -> None:
    slots = [WantedPrompts("Story", "", "", "et", 1)]
    made = prompt_collections.create_collection(project=cast.kassa, name="Kogu", slots=slots)
    member = prompt_collections.set_member(collection=made, user=cast.maarika, writes=True, reviews=False)
    slot = made.slots.get()
    page = visit_as("maarika", f"/p/kassa/prompts/{made.pk}/write/{slot.pk}/")
    page.route("**/draft/", lambda route: route.abort())
    page.get_by_label("Prompt").fill("Vana tekst sülearvutis.")
    expect(page.get_by_text("Kept on this device.")).to_be_visible()
    prompt_writing.keep_draft(member=member, slot=slot, text="Uuem tekst «telefonis».")
    page.unroute("**/draft/")
    page.reload()
    field = page.get_by_label("Prompt")
    expect(field).to_have_value("Uuem tekst «telefonis».")
    expect(page.get_by_text("Vana tekst sülearvutis.")).to_be_visible()
    assert audited(page) == []
    page.wait_for_timeout(1_000)
    assert CollectedPrompt.objects.get().draft == "Uuem tekst «telefonis»."
    page.get_by_role("button", name="Take this draft").click()
    expect(page.get_by_text("Kept as a draft.")).to_be_visible()
    expect(field).to_have_value("Vana tekst sülearvutis.")
    assert CollectedPrompt.objects.get().draft == "Vana tekst sülearvutis."
    prompt_writing.keep_draft(member=member, slot=slot, text="Kolmas, telefonis.")
    field.fill("Neljas, siin.")
    expect(page.get_by_text("Kolmas, telefonis.")).to_be_visible()
    assert CollectedPrompt.objects.get().draft == "Kolmas, telefonis."
    page.get_by_role("button", name="Keep what is in the box").click()
    expect(page.get_by_text("Kept as a draft.")).to_be_visible()
    assert CollectedPrompt.objects.get().draft == "Neljas, siin."
    field.press("Control+Enter")
    expect(page.get_by_text("Submitted. Somebody else reviews it now.")).to_be_visible()


def test_what_is_typed_before_the_script_has_come_is_kept(cast: Cast, visit_as: VisitAs) -> None:
    made = prompt_collections.create_collection(
        project=cast.kassa, name="Kogu “3”", slots=[WantedPrompts("Kiri", "", "", "et", 1)], guidelines={}
    )
    prompt_collections.set_member(collection=made, user=cast.maarika, writes=True, reviews=False)
    page = visit_as("maarika", f"/p/kassa/prompts/{made.pk}/")
    waiting: list[Any] = []

    def hold(route: Any) -> None:
        waiting.append(route)

    page.route("**/prompts*.js", hold)
    page.get_by_role("link", name="Kiri").first.click(no_wait_after=True)
    page.get_by_label("Prompt").fill("Kirjuta naabrile «õhtul»")
    while not waiting:
        page.wait_for_timeout(50)
    for route in waiting:
        route.continue_()
    expect(page.get_by_text("Kept as a draft.")).to_be_visible()
    page.unroute_all(behavior="ignoreErrors")
    page.reload()
    expect(page.get_by_label("Prompt")).to_have_value("Kirjuta naabrile «õhtul»")
