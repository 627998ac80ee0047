"""The desk as an annotator's browser uses it, and what a lease means."""

from __future__ import annotations

import re
from datetime import timedelta
from threading import Barrier, Thread
from uuid import uuid4

import pytest
import time_machine
from django.db import connection
from django.utils import timezone

from accounts.models import AuditEntry, Membership, User
from annotation import campaigns, panels
from annotation.desk import leasing, service
from annotation.desk.answers import Answer
from annotation.desk.leasing import LEASE
from annotation.models import (
    Annotation,
    Annotator,
    Assignment,
    Campaign,
    Draft,
    Duty,
    PanelSeat,
    PrivateNote,
    Rating,
    Skip,
)
from tests import make
from tests.annotation import scene
from tests.annotation.scene import ANSWERS, FULL, JSON
from tests.cast import Cast

pytestmark = pytest.mark.django_db

ITEM = Assignment.State


def test_scoring_item_after_item_until_nothing_is_left(cast: Cast) -> None:
    work = scene.duty(cast, items=3)
    maarika = cast.client("maarika")

    for _item in range(3):
        page = scene.next_page(maarika, work)
        assert maarika.get(page).status_code == 200
        answer = maarika.post(f"{page}submit/", FULL, headers=JSON)
        assert (answer.status_code, answer.json()) == (200, {"next": f"/desk/{work.pk}/"})

    done = maarika.get(f"/desk/{work.pk}/")
    assert "All scored" in done.content.decode()
    assert Rating.objects.filter(criterion__key="fluency").values_list("score", flat=True).distinct().get() == 2
    assert Annotation.objects.filter(seconds=12, revision=1).count() == 3
    assert Assignment.objects.filter(duty=work, state=ITEM.OPEN).count() == 3


def test_the_desk_shows_the_text_and_never_its_origin(cast: Cast) -> None:
    item = make.item_row(
        1,
        generator="secret-generator",
        scenario="secret-scenario",
        external_id="secret/id",
        title="Kadunud pakk",
        attributes={"difficulty": "secret-attribute"},
        fields={"context": "Klient ootab pakki."},
        content_warning="Vihane toon",
    )
    work = scene.duty(cast, items=[item])
    maarika = cast.client("maarika")

    page = maarika.get(scene.next_page(maarika, work)).content.decode()

    for shown in (
        "Kadunud pakk",
        "Klient ootab pakki.",
        "Vihane toon",
        "Minu pakk number 1",
        'lang="et"',
        "fluency at 3",
    ):
        assert shown in page
    assert "secret" not in page


def test_a_sheet_with_problems_stores_nothing_and_says_all_of_them(cast: Cast) -> None:
    work = scene.duty(cast)
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)

    told = maarika.post(f"{page}submit/", {"score-fluency": "7"}, headers=JSON)
    shown = maarika.post(f"{page}submit/", {"score-fluency": "3", "rationale-fluency": "Hea keel"})

    assert told.status_code == shown.status_code == 422
    assert told.json()["fields"] == {"fluency": "The score is not on the scale.", "coherence": "Give a score."}
    assert "Give a score." in shown.content.decode()
    assert "Hea keel" in shown.content.decode()
    assert not Annotation.objects.exists()


def test_the_same_submission_again_is_answered_alike_and_stored_once(cast: Cast) -> None:
    work = scene.duty(cast)
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)

    first = maarika.post(f"{page}submit/", FULL, headers=JSON)
    campaigns.move(campaign=work.campaign, to=Campaign.State.CLOSED)
    again = maarika.post(f"{page}submit/", {**FULL, "seconds": "40"}, headers=JSON)
    other = maarika.post(f"{page}submit/", {**FULL, "score-fluency": "0"}, headers=JSON)

    assert other.json()["code"] == "submitted_already"
    assert first.json() == again.json()
    assert Rating.objects.get(criterion__key="fluency").score == 2


def test_a_lost_answer_is_repeated_even_after_the_item_was_taken_back_and_went_to_somebody_else(cast: Cast) -> None:
    piret = scene.member(cast, "Piret")
    work = scene.duty(cast, items=1, overlap=1, seated=[piret])
    assignment = scene.taken(cast, work)
    key = assignment.key
    assert key
    first = service.submit(assignment=assignment, key=key, answers=ANSWERS, seconds=1)

    service.undo_submission(assignment=service.on_desk(user=cast.maarika, key=key))
    with time_machine.travel(timezone.now() + LEASE + timedelta(minutes=1), tick=False):
        scene.taken(cast, work, piret)

    found = service.on_desk(user=cast.maarika, key=key)
    assert service.submit(assignment=found, key=key, answers=ANSWERS, seconds=9) == first


def test_a_draft_comes_back_on_the_page(cast: Cast) -> None:
    work = scene.duty(cast)
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)

    entered = {
        "score-fluency": "nonsense",
        "score-coherence": "1",
        "rationale-coherence": "Pooleli mõte",
        "seconds": "40",
    }
    saved = maarika.post(f"{page}draft/", entered, headers=JSON)

    assert saved.status_code == 200
    assert saved.json()["saved_at"]
    shown = maarika.get(scene.next_page(maarika, work)).content.decode()
    assert "Pooleli mõte" in shown
    assert 'name="seconds" value="40"' in shown
    answers, _seconds, _certainty = service.answers_so_far(Assignment.objects.get(state=ITEM.LEASED))
    assert answers == {"fluency": Answer(), "coherence": Answer(1.0, "scored", "Pooleli mõte")}


def test_an_expired_lease_still_counts_while_nobody_took_the_item(cast: Cast) -> None:
    work = scene.duty(cast)
    assignment = scene.taken(cast, work)
    assert assignment.key
    Assignment.objects.filter(pk=assignment.pk).update(leased_until=timezone.now() - timedelta(hours=5))

    again = scene.taken(cast, work)
    assert (again.pk, again.key) == (assignment.pk, assignment.key)
    assert again.leased_until
    assert again.leased_until > timezone.now()
    assert service.submit(assignment=assignment, key=assignment.key, answers=ANSWERS, seconds=1).pk


def test_a_slot_taken_over_refuses_the_late_submission_and_keeps_its_draft(cast: Cast) -> None:
    piret = scene.member(cast, "Piret")
    work = scene.duty(cast, items=1, overlap=1, seated=[piret])
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)
    maarika.post(f"{page}draft/", {"rationale-fluency": "Maarika mõte"}, headers=JSON)

    with time_machine.travel(timezone.now() + LEASE + timedelta(minutes=1), tick=False):
        cast_client = cast.client("aino")
        cast_client.force_login(piret)
        other = scene.next_page(cast_client, work)
        assert "Maarika" not in cast_client.get(other).content.decode()
    late = maarika.post(f"{page}submit/", FULL, headers=JSON)
    draft = maarika.post(f"{page}draft/", FULL, headers=JSON)
    beat = maarika.post(f"{page}heartbeat/", headers=JSON)

    assert [answer.status_code for answer in (late, draft, beat)] == [409, 409, 409]
    assert late.json()["code"] == "lease_lost"
    assert not Annotation.objects.exists()
    assert Draft.objects.get(annotator__user=cast.maarika).answers["fluency"]["rationale"] == "Maarika mõte"


def test_a_skipped_item_goes_to_the_others_and_comes_back_last(cast: Cast) -> None:
    work = scene.duty(cast, items=3, overlap=1)
    maarika = cast.client("maarika")
    skipped = scene.taken(cast, work).item_id

    first = maarika.post(f"{scene.next_page(maarika, work)}skip/", {"reason": "damaged", "note": "Katki"}, headers=JSON)
    assert first.json() == {"next": f"/desk/{work.pk}/"}

    met = []
    for _item in range(3):
        met.append(scene.taken(cast, work).item_id)
        maarika.post(f"{scene.next_page(maarika, work)}submit/", FULL)
    assert met[-1] == skipped
    assert len(set(met)) == 3
    assert Skip.objects.values_list("reason", "note").get() == ("damaged", "Katki")


def test_the_lead_reads_why_an_item_was_skipped_and_marks_it_as_resolved(cast: Cast) -> None:
    work = scene.duty(cast, items=1, overlap=1)
    maarika, boris = cast.client("maarika"), cast.client("boris")
    skipping = {"reason": "damaged", "note": "Katki"}
    maarika.post(f"{scene.next_page(maarika, work)}skip/", skipping)
    skip, campaign = Skip.objects.get(), f"/p/kassa/campaigns/{work.campaign_id}/"

    def skips() -> str:
        return boris.get(campaign).content.decode().partition("Skipped items")[2]

    for shown in (skip.item.external_id, skip.annotator.pseudonym, "Damaged or incomplete text", "Katki"):
        assert shown in skips()
    assert "1 unresolved" in skips() and "Maarika" not in skips()
    assert boris.post(f"{campaign}skips/{skip.pk}/", {"resolved": "1"}).status_code == 302
    assert "1 unresolved" not in skips() and "Reopen" in skips()
    assert boris.post(f"{campaign}skips/{skip.pk}/").status_code == 302
    assert "1 unresolved" in skips()
    assert [entry.verb for entry in AuditEntry.objects.all()[:2]] == ["reopen skip", "resolve skip"]
    boris.post(f"{campaign}skips/{skip.pk}/", {"resolved": "1"})
    service.skip(assignment=scene.taken(cast, work), reason="other")
    assert Skip.objects.get().reason == "other"
    assert "1 unresolved" in skips(), "the item was skipped once more"


def test_a_reason_to_skip_is_chosen_and_not_offered_as_given(cast: Cast) -> None:
    work = scene.duty(cast)
    page = cast.client("maarika").get(scene.next_page(cast.client("maarika"), work)).content.decode()
    reasons = page.partition('id="skip-form"')[2].partition("</form>")[0]
    assert reasons.count('name="reason"') == 5
    assert "checked" not in reasons


def test_taking_back_the_last_submission_makes_a_second_revision(cast: Cast) -> None:
    work = scene.duty(cast)
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)
    maarika.post(f"{page}submit/", {**FULL, "rationale-fluency": "Esimene"})
    revision = campaigns.revision(work.campaign)
    onward = maarika.get(scene.next_page(maarika, work)).content.decode()
    assert f'action="{page}undo/"' in onward

    back = maarika.post(f"{page}undo/")
    assert "Esimene" in maarika.get(back["Location"]).content.decode()
    assert campaigns.revision(work.campaign) != revision
    maarika.post(f"{back['Location']}submit/", {**FULL, "score-fluency": "3"})

    stored = Annotation.objects.order_by("revision")
    assert [(each.revision, each.superseded_at is None) for each in stored] == [(1, False), (2, True)]
    assert [rating.score for rating in Rating.objects.filter(criterion__key="fluency").order_by("pk")] == [2, 3]


def test_only_the_last_submission_within_the_lease_can_be_taken_back(cast: Cast) -> None:
    work = scene.duty(cast)
    maarika = cast.client("maarika")
    pages = []
    for _item in range(2):
        pages.append(scene.next_page(maarika, work))
        maarika.post(f"{pages[-1]}submit/", FULL)

    assert maarika.post(f"{pages[0]}undo/", headers=JSON).json()["code"] == "undo_late"
    Annotation.objects.update(submitted_at=timezone.now() - LEASE - timedelta(seconds=1))
    assert maarika.post(f"{pages[1]}undo/", headers=JSON).json()["code"] == "undo_late"


def test_own_scores_are_looked_at_and_changed_until_the_campaign_closes(cast: Cast) -> None:
    work = scene.duty(cast)
    maarika = cast.client("maarika")
    for rationale in ("Esimene", "Teine"):
        maarika.post(f"{scene.next_page(maarika, work)}submit/", {**FULL, "rationale-fluency": rationale})
    Annotation.objects.update(submitted_at=timezone.now() - timedelta(days=30))
    oldest = Annotation.objects.earliest("pk")
    address = f"/desk/at/{oldest.key}/scores/"
    assert f'href="/desk/{work.pk}/scored/"' in maarika.get("/desk/").content.decode()
    assert maarika.get(f"/desk/{work.pk}/scored/").content.decode().count('/scores/"') == 2

    shown = maarika.get(address)
    page = shown.content.decode()
    assert "Esimene" in page and 'value="2" data-digit="2" data-label="2" checked' in " ".join(page.split())
    assert "skip-form" not in page and "/undo/" not in page
    own = shown.context["desk"]["assignment"]["key"]
    assert maarika.post(address, {**FULL, "key": own, "score-fluency": "9"}, headers=JSON).status_code == 422
    changed = {**FULL, "key": own, "score-fluency": "3"}
    for _sent in range(2):  # the second time its answer was lost on the way
        answer = maarika.post(address, changed, headers=JSON)
        assert (answer.status_code, answer.json()["next"]) == (200, f"/desk/{work.pk}/scored/")
    stale = maarika.post(address, {**changed, "key": str(uuid4())}, headers=JSON)
    assert stale.json()["code"] == "lease_lost", "another tab still shows the scores from before"
    mine = oldest.assignment.annotations.order_by("revision")
    assert [(each.revision, each.superseded_at is None) for each in mine] == [(1, False), (2, True)]
    assert mine.last().ratings.get(criterion__key="fluency").score == 3
    assert scene.taken(cast, work).item_id not in Annotation.objects.values_list("item", flat=True)

    earlier = "Earlier versions of your scores"
    assert earlier not in page
    history = maarika.get(f"/desk/at/{mine.last().key}/scores/").content.decode()
    assert history.count("data-version") == 1 and "Esimene" in history.partition(earlier)[2]
    of_lead = cast.client("aino").get(f"/p/kassa/numbers/{work.campaign_id}/items/{oldest.item_id}/")
    assert "1 earlier rating" in of_lead.content.decode()
    assert cast.client("layla").get(address).status_code == 404
    assert cast.client("layla").get(f"/desk/{work.pk}/scored/").status_code == 404
    campaigns.move(campaign=work.campaign, to=Campaign.State.PAUSED)
    late = maarika.post(f"/desk/at/{mine.last().key}/scores/", {**changed, "key": str(uuid4())}, headers=JSON)
    assert late.json()["code"] == "campaign_paused"


def test_who_takes_an_item_over_sees_no_earlier_version_of_somebody_else(cast: Cast) -> None:
    work = scene.duty(cast, items=1, overlap=1, seated=[cast.layla])
    maarika, layla = cast.client("maarika"), cast.client("layla")
    there = scene.next_page(maarika, work)
    maarika.post(f"{there}submit/", {**FULL, "rationale-fluency": "Esimene"}, headers=JSON)
    reopened = maarika.post(f"{there}undo/", headers=JSON).json()["next"]
    assert "Earlier versions of your scores" in maarika.get(reopened).content.decode()
    Assignment.objects.update(leased_until=timezone.now() - timedelta(days=1))
    assert "Earlier versions" not in layla.get(scene.next_page(layla, work)).content.decode()


def test_a_private_note_is_kept_with_the_item_for_its_author_alone(cast: Cast) -> None:
    work = scene.duty(cast, seated=[cast.layla])
    maarika, note = cast.client("maarika"), "Ask Layla about this word"
    page = scene.next_page(maarika, work)
    maarika.post(f"{page}draft/", {**FULL, "note": note})
    assert note in maarika.get(page).content.decode()
    assert maarika.post(f"{page}submit/", {"note": f"{note}!", "seconds": "1"}, headers=JSON).status_code == 422
    maarika.post(f"{page}submit/", {**FULL, "note": f"{note}!"})
    assert f"{note}!" in maarika.get(f"/desk/{work.pk}/scored/").content.decode()
    item = Annotation.objects.get().item
    addresses = (f"campaigns/{work.campaign_id}/", f"numbers/{work.campaign_id}/items/{item.pk}/")
    for address in addresses:
        lead = cast.client("aino").get(f"/p/kassa/{address}")
        assert lead.status_code == 200 and note not in lead.content.decode()
    theirs = scene.taken(cast, work, cast.layla)
    assert theirs.item_id == item.pk
    assert note not in cast.client("layla").get(f"/desk/at/{theirs.key}/").content.decode()
    maarika.post(f"/desk/at/{Annotation.objects.get().key}/scores/", {"note": " "}, headers=JSON)
    assert not PrivateNote.objects.exists()
    maarika.post(f"{scene.next_page(maarika, work)}draft/", {**FULL, "note": note})
    panels.redact(cast.maarika)
    assert not PrivateNote.objects.exists()


def test_an_old_address_shows_and_changes_nothing_of_who_has_the_item_now(cast: Cast) -> None:
    work = scene.duty(cast, items=1, overlap=1, seated=[cast.layla])
    maarika, layla, secret = cast.client("maarika"), cast.client("layla"), "Layla's own words"
    page = scene.next_page(maarika, work)
    maarika.post(f"{page}submit/", FULL)
    old = Annotation.objects.get().key
    again = maarika.post(f"/desk/at/{old}/undo/", headers=JSON).json()["next"]
    maarika.post(f"{again}skip/", {"reason": Skip.Reason.OTHER}, headers=JSON)
    theirs = scene.next_page(layla, work)
    layla.post(f"{theirs}submit/", {**FULL, "rationale-fluency": secret, "note": secret})
    assert PrivateNote.objects.get().text == secret
    for address in (f"/desk/at/{old}/scores/", f"/desk/at/{old}/"):
        assert secret not in maarika.get(address, follow=True).content.decode()
    for address in ("scores/", "submit/"):
        for note in ("", "mine now"):
            maarika.post(f"/desk/at/{old}/{address}", {**FULL, "key": str(uuid4()), "note": note}, headers=JSON)
    assert PrivateNote.objects.get().text == secret
    assert Annotation.objects.filter(superseded_at=None).get().annotator.user == cast.layla


def test_who_left_the_panel_changes_no_scores_and_a_closed_campaign_takes_no_note(cast: Cast) -> None:
    work = scene.duty(cast, seated=[cast.layla])
    maarika = cast.client("maarika")
    maarika.post(f"{scene.next_page(maarika, work)}submit/", FULL)
    address = f"/desk/at/{Annotation.objects.get().key}/scores/"
    assert maarika.get(address).status_code == 200
    changed = {**FULL, "key": str(uuid4()), "score-fluency": "3", "note": "late"}
    Campaign.objects.update(state=Campaign.State.CLOSED)
    assert maarika.post(address, changed, headers=JSON).json()["code"] == "campaign_closed"
    assert not PrivateNote.objects.exists()
    Campaign.objects.update(state=Campaign.State.OPEN)
    panels.unseat(seat=PanelSeat.objects.get(panel=work.panel, annotator__user=cast.maarika))
    assert maarika.get(address).status_code == 404
    assert maarika.post(address, changed, headers=JSON).status_code == 404
    assert Annotation.objects.get().revision == 1


def test_a_key_of_another_item_is_no_new_revision(cast: Cast) -> None:
    work = scene.duty(cast)
    maarika = cast.client("maarika")
    for _item in range(2):
        maarika.post(f"{scene.next_page(maarika, work)}submit/", FULL)
    first, second = Annotation.objects.order_by("pk")
    answer = maarika.post(f"/desk/at/{first.key}/scores/", {**FULL, "key": str(second.key)}, headers=JSON)
    assert answer.json()["code"] == "lease_lost"
    assert Annotation.objects.count() == 2


def test_a_critical_mark_closes_the_rest_as_stopped(cast: Cast) -> None:
    harm = make.criterion("harm", (0, 1), group="critical", direction="lower_is_better")
    work = scene.duty(cast, criteria=[harm, make.criterion("fluency")])
    maarika = cast.client("maarika")

    maarika.post(f"{scene.next_page(maarika, work)}submit/", {"score-harm": "1"}, headers=JSON)

    ratings = Rating.objects.order_by("criterion__position").values_list("status", "score")
    assert list(ratings) == [("scored", 1.0), ("stopped", None)]


@pytest.mark.parametrize("state", [Campaign.State.PAUSED, Campaign.State.CLOSED])
def test_a_paused_or_closed_campaign_says_so_and_keeps_the_draft(cast: Cast, state: Campaign.State) -> None:
    work = scene.duty(cast)
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)
    maarika.post(f"{page}draft/", FULL)

    campaigns.move(campaign=work.campaign, to=state)

    refused = maarika.post(f"{page}submit/", FULL, headers=JSON)
    assert (refused.status_code, refused.json()["code"]) == (409, f"campaign_{state}")
    assert maarika.get(f"/desk/{work.pk}/", follow=True).redirect_chain == [("/desk/", 302)]
    assert Draft.objects.exists()
    assert not Annotation.objects.exists()


def test_a_removed_member_can_do_nothing_more(cast: Cast) -> None:
    work = scene.duty(cast)
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)

    Membership.objects.filter(user=cast.maarika).delete()

    posts = [maarika.post(f"{page}{action}/", FULL).status_code for action in ("submit", "draft", "heartbeat", "skip")]
    assert posts == [404] * 4
    assert maarika.get(page).status_code == maarika.get(f"/desk/{work.pk}/").status_code == 404
    assert not Annotation.objects.exists()


@pytest.mark.parametrize("name", ["layla", "aino", "boris", "zoltan"])
def test_an_item_on_one_desk_does_not_exist_for_anybody_else(cast: Cast, name: str) -> None:
    work = scene.duty(cast)
    page = scene.next_page(cast.client("maarika"), work)
    stranger = cast.client(name)

    assert stranger.get(page).status_code == stranger.get(f"/desk/{work.pk}/").status_code == 404
    posts = [
        stranger.post(f"{page}{act}/", FULL).status_code for act in ("submit", "draft", "heartbeat", "skip", "undo")
    ]
    assert posts == [404] * 5
    assert stranger.get(f"/desk/at/{uuid4()}/").status_code == 404


def test_the_first_page_lists_ones_duties_and_how_far_they_are(cast: Cast) -> None:
    work = scene.duty(cast, items=4)
    maarika = cast.client("maarika")
    maarika.post(f"{scene.next_page(maarika, work)}submit/", FULL)

    page = maarika.get("/desk/").content.decode()

    assert "\u20681\u2069 of \u20684\u2069 done" in page  # numbers are isolated from the direction of the sentence
    assert f'action="/desk/{work.pk}/" method="post"' in page
    assert [duty.total for duty in leasing.duties(cast.layla)] == []


def test_who_did_their_share_goes_on_while_something_is_left(cast: Cast) -> None:
    others = [scene.member(cast, name) for name in ("Piret", "Kaur", "Liis")]
    work = scene.duty(cast, items=4, overlap=1, seated=others)
    progress = []
    for _item in range(4):
        assignment = scene.taken(cast, work)
        assert assignment.key
        service.submit(assignment=assignment, key=assignment.key, answers=ANSWERS, seconds=1)
        progress.append(next((mine.done, mine.total, mine.extra, mine.left) for mine in leasing.duties(cast.maarika)))
    assert progress == [(1, 1, 0, 3), (2, 1, 1, 2), (3, 1, 2, 1), (4, 1, 3, 0)]


def test_all_scored_is_not_shown_beside_a_part_of_the_share(cast: Cast) -> None:
    """Others score faster: nothing is left, and her share is not done."""
    layla = scene.member(cast, "Helin")
    work = scene.duty(cast, items=4, overlap=1, seated=[layla])
    maarika = cast.client("maarika")
    maarika.post(f"{scene.next_page(maarika, work)}submit/", FULL)
    for _item in range(3):
        service.submit(
            assignment=(one := scene.taken(cast, work, layla)), key=one.key, answers=scene.ANSWERS, seconds=9
        )
    page = maarika.get(f"/desk/{work.pk}/").content.decode()
    assert re.search(r"\b1\W+of\W+2\W+done", page)
    assert "All scored" not in page and "Nothing left to score" in page
    assert "All done" not in maarika.get("/desk/").content.decode()


def test_texts_that_are_not_translated_have_their_own_language_and_direction(cast: Cast) -> None:
    part = make.criterion("fluency", (0, 1), name={"en": "Fluency", "ar": "الطلاقة"}, question={"en": "Is it fluent?"})
    part["anchors"] = {"0": {"en": {"text": "No native"}}, "1": {"en": {"text": "Native"}, "ar": {"text": "فصيح"}}}
    part["mark_if"] = {"en": ["It reads well"]}
    rows = [make.item_row(1, "ar", turns=[{"speaker": "agent", "text": "مرحبا"}])]
    work = scene.duty(cast, items=rows, criteria=[part], language="ar")
    maarika = cast.client("maarika")
    page = " ".join(maarika.get(scene.next_page(maarika, work)).content.decode().split())
    assert '<span class="criterion-name" lang="ar" dir="rtl">الطلاقة' in page
    assert 'id="ask-fluency" lang="en" dir="ltr">Is it fluent?' in page
    assert '<span class="point-anchor" lang="en" dir="ltr">No native' in page
    assert '<span class="point-anchor" lang="ar" dir="rtl">فصيح' in page
    assert '<ul lang="en" dir="ltr"><li>It reads well' in page


def test_every_page_shows_the_same_progress(cast: Cast) -> None:
    work = scene.duty(cast, items=6, overlap=1, seated=[scene.member(cast, "Piret")])
    maarika = cast.client("maarika")
    for words in ("0 of 3 done", "1 of 3 done", "2 of 3 done", "3 of 3 done", "3 of 3 done, and 1 more"):
        address = scene.next_page(maarika, work)
        for page in (maarika.get(address), maarika.get("/desk/")):
            text = page.content.decode().replace("\u2068", "").replace("\u2069", "")
            assert f">{words}<" in text.replace("\n", "")
        maarika.post(f"{address}submit/", FULL)


def test_the_api_serves_the_desk_as_blind_as_the_page(cast: Cast) -> None:
    work = scene.duty(cast, items=[make.item_row(1, generator="secret-generator", external_id="secret")])
    maarika = cast.client("maarika")
    base = "/api/v1/projects/kassa/desk"

    assert [duty["id"] for duty in maarika.get(f"{base}/").json()] == [work.pk]
    taken = maarika.post(f"{base}/{work.pk}/take/").json()
    assert "secret" not in str(taken)
    assert [point["value"] for point in taken["criteria"][0]["points"]] == [0, 1, 2, 3]

    body = {"answers": [{"criterion": "fluency", "score": 2}, {"criterion": "coherence", "score": 5}], "seconds": 3}
    address = f"{base}/at/{taken['key']}/"
    wrong = maarika.post(address, body, content_type="application/json")
    assert (wrong.status_code, list(wrong.json()["fields"])) == (422, ["coherence"])
    body["answers"][1]["score"] = 1  # type: ignore[index]
    first, again = (maarika.post(address, body, content_type="application/json").json() for _try in range(2))
    assert first == again
    assert maarika.post(f"{base}/{work.pk}/take/").status_code == 204
    assert cast.client("layla").post(address, body, content_type="application/json").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_the_cap_holds_with_everybody_at_once(cast: Cast) -> None:
    """Six annotators with two tabs each on 12 items x overlap 3: every slot once, nobody an item twice."""
    others = [scene.member(cast, f"Person{number}") for number in range(5)]
    work = scene.duty(cast, items=12, overlap=3, seated=others)
    people = [cast.maarika, *others] * 2
    start = Barrier(len(people))
    failures: list[BaseException] = []

    threads = [
        Thread(target=_score_all, args=(work, scene.annotator(cast, user), user, start, failures)) for user in people
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert Assignment.objects.filter(duty=work).exclude(state=ITEM.SUBMITTED).count() == 0
    pairs = list(Annotation.objects.values_list("item", "annotator"))
    assert len(pairs) == len(set(pairs)) == 36
    assert Rating.objects.count() == 72


def _score_all(work: Duty, annotator: Annotator, user: User, start: Barrier, failures: list[BaseException]) -> None:
    try:
        start.wait()
        while (assignment := leasing.take(duty=work, annotator=annotator)) is not None:
            key = assignment.key
            assert key
            service.submit(assignment=service.on_desk(user=user, key=key), key=key, answers=ANSWERS, seconds=1)
    except BaseException as failure:  # noqa: BLE001 a thread's failure would be lost otherwise
        failures.append(failure)
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_one_person_in_many_tabs_holds_one_item(cast: Cast) -> None:
    work = scene.duty(cast, items=8, overlap=2)
    who = scene.annotator(cast, cast.maarika)
    start = Barrier(6)
    taken: list[Assignment | None] = []

    def take() -> None:
        start.wait()
        taken.append(leasing.take(duty=work, annotator=who))
        connection.close()

    threads = [Thread(target=take) for _tab in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({each.pk for each in taken if each}) == 1
    assert len(taken) == 6


def test_somebody_off_the_panel_gets_nothing_new_but_may_finish(cast: Cast) -> None:
    work = scene.duty(cast)
    maarika = cast.client("maarika")
    page = scene.next_page(maarika, work)

    panels.unseat(seat=work.panel.seats.get())

    assert maarika.get(f"/desk/{work.pk}/").status_code == 404
    assert maarika.post(f"{page}submit/", FULL, headers=JSON).status_code == 200
