"""A newer version of the rubric in a running campaign: keep, rate again, map, and back."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from accounts.models import AuditEntry
from accounts.refusals import Refused
from analytics import ratings as ratings_table
from annotation import allocation, campaigns, exports, panels, rubric_changes, rubrics
from annotation.desk import service
from annotation.desk.answers import Answer
from annotation.models import Annotation, Assignment, Campaign, Duty, Rating, RubricChange, RubricVersion
from annotation.readers import rubric_from_dict
from tests import make
from tests.annotation import scene
from tests.cast import Cast


def rated_duty(cast: Cast, items: int = 3) -> tuple[Duty, Client]:
    """Maarika has rated all items but the last: fluency 2, coherence 1."""
    duty = scene.duty(cast, items=items, overlap=1)
    annotator = cast.client("maarika")
    for _item in range(items - 1):
        there = scene.next_page(annotator, duty)
        assert annotator.post(f"{there}submit/", scene.FULL, headers=scene.JSON).status_code == 200
    return duty, annotator


def next_version(cast: Cast, version: RubricVersion, *criteria: dict[str, Any]) -> RubricVersion:
    document = rubric_from_dict({**version.document, "criteria": list(criteria)})
    return rubrics.publish(version=rubrics.draft(project=cast.kassa, document=document))


def anchored(key: str, **parts: Any) -> dict[str, Any]:
    return {**make.criterion(key), "anchors": {"0": {"en": "Other words now."}}, **parts}


def address(cast: Cast, campaign: Campaign, below: str = "rubric/") -> str:
    return f"/p/{cast.kassa.slug}/campaigns/{campaign.pk}/{below}"


def pause(lead: Client, cast: Cast, campaign: Campaign, to: str = "paused") -> None:
    lead.post(address(cast, campaign, "state/"), {"to": to})


def rows_of(campaign: Campaign) -> list[tuple[str, str, float | None, int]]:
    found = ratings_table.rows(campaign=Campaign.objects.get(pk=campaign.pk))
    return [(row.item, row.criterion, row.score, row.rubric_version) for row in found]


def stored(campaign: Campaign) -> list[Any]:
    """Everything that an undo has to bring back."""
    slots = Assignment.objects.filter(duty__campaign=campaign).order_by("pk")
    kept = Annotation.objects.filter(campaign=campaign).order_by("pk")
    return [
        list(slots.values("pk", "state", "annotator", "revision")),
        list(kept.values("pk", "assignment__key", "key", "superseded_at", "revision")),
        list(Rating.objects.filter(annotation__campaign=campaign).order_by("pk").values()),
        sorted(Duty.objects.get(campaign=campaign).criteria.values_list("pk", flat=True)),
    ]


@pytest.mark.django_db
def test_keep_one_map_another_and_undo(cast: Cast) -> None:
    duty, annotator = rated_duty(cast)
    campaign, lead = duty.campaign, cast.client("aino")
    scene.next_page(annotator, duty)
    old = campaign.rubric_version
    new = next_version(cast, old, anchored("fluency"), make.criterion("coherence", (1, 2, 3, 4, 5)))
    before = rows_of(campaign)
    page = lead.get(address(cast, campaign)).content.decode()
    assert "Other words now." in page and "2 ratings" in page and "Other scale" in page
    posted = {
        "version": new.pk, "from_version": old.pk, "decision-fluency": "keep", "decision-coherence": "map",
        "map-coherence-1": "4",
    }  # fmt: skip
    assert "Pause the campaign first" in lead.post(address(cast, campaign), posted).content.decode()
    pause(lead, cast, campaign)
    as_it_was = stored(campaign)
    assert lead.post(address(cast, campaign), posted).status_code == 302
    assert lead.post(address(cast, campaign), posted).status_code == 200  # a second click
    assert RubricChange.objects.get().counts == {"kept": 2, "mapped": 2, "assignments": 0}
    assert AuditEntry.objects.filter(verb="change rubric version").count() == 1
    assert rows_of(campaign) == [
        (item, key, 4.0 if key == "coherence" else score, 1) for item, key, score, _v in before
    ]
    current = Rating.objects.filter(annotation__superseded_at=None, criterion__key="coherence")
    assert set(current.values_list("score", "given_score", "given_version")) == {(4.0, 1.0, old.pk)}
    names = exports.pseudonyms(cast.kassa)
    table = exports.ratings(Campaign.objects.get(pk=campaign.pk), names=names, revisions=True)
    place = [table.names.index(name) for name in ("rubric_version", "criterion", "score", "given_score", "scale")]
    given = {tuple(str(row[at]) for at in place) for row in table.rows}
    assert ("1", "coherence", "1.0", "None", "[0, 1]") in given  # as it was given
    assert ("1", "coherence", "4.0", "1.0", "[1, 2, 3, 4, 5]") in given
    change = RubricChange.objects.get()
    assert lead.post(address(cast, campaign, f"rubric/{change.pk}/undo/")).status_code == 302
    assert stored(campaign) == as_it_was and rows_of(campaign) == before
    assert Campaign.objects.get(pk=campaign.pk).rubric_version == old
    pause(lead, cast, campaign, "open")
    there = scene.next_page(annotator, duty)
    assert annotator.post(f"{there}submit/", scene.FULL, headers=scene.JSON).status_code == 200


@pytest.mark.django_db
def test_rated_again_with_the_other_scores_kept(cast: Cast) -> None:
    duty, annotator = rated_duty(cast)
    campaign, lead = duty.campaign, cast.client("aino")
    held = scene.next_page(annotator, duty)
    old = campaign.rubric_version
    new = next_version(cast, old, make.criterion("fluency"), anchored("coherence"), make.criterion("tone"))
    pause(lead, cast, campaign)
    posted = {
        "version": new.pk, "from_version": old.pk, "decision-coherence": "requeue", "decision-tone": "keep",
    }  # fmt: skip
    assert lead.post(address(cast, campaign), posted).status_code == 302
    assert [row[1:] for row in rows_of(campaign)] == [("fluency", 2.0, 1)] * 2  # until they are rated again
    pause(lead, cast, campaign, "open")
    late = annotator.post(f"{held}submit/", scene.FULL, headers=scene.JSON)  # the page shows the old version
    assert (late.status_code, late.json()["code"]) == (409, "lease_lost")
    there = scene.next_page(annotator, duty)
    form = annotator.get(there).content.decode()
    assert "score-tone" in form and 'value="2"' in form
    short = annotator.post(f"{there}submit/", scene.FULL, headers=scene.JSON)
    assert short.status_code == 422 and list(short.json()["fields"]) == ["tone"]
    full = {**scene.FULL, "score-coherence": "3", "score-tone": "1"}
    assert annotator.post(f"{there}submit/", full, headers=scene.JSON).status_code == 200
    assert ("coherence", 3.0, 2) in [row[1:] for row in rows_of(campaign)]
    current = Annotation.objects.filter(campaign=campaign, superseded_at=None)
    assert current.count() == 2 and Annotation.objects.count() == 5
    pause(lead, cast, campaign)
    change = RubricChange.objects.get()
    page = lead.post(address(cast, campaign, f"rubric/{change.pk}/undo/"), follow=True).content.decode()
    assert "scores were submitted under the new version" in page
    assert Campaign.objects.get(pk=campaign.pk).rubric_version == new


@pytest.mark.django_db
def test_what_is_refused_and_the_api(cast: Cast) -> None:
    duty, _annotator = rated_duty(cast)
    campaign, lead = duty.campaign, cast.client("aino")
    old = campaign.rubric_version
    new = next_version(cast, old, make.criterion("fluency", (1, 2)), make.criterion("coherence", (0, 1)))
    there = f"/api/v1/projects/{cast.kassa.slug}/campaigns/{campaign.pk}/rubric-changes/"
    fluency = lead.get(there, {"version": new.pk}).json()[0]
    assert fluency["scores"] == [{"score": 2.0, "ratings": 2}] and fluency["decisions"] == ["requeue", "map"]
    assert cast.client("boris").get(there, {"version": new.pk}).status_code == 403
    pause(lead, cast, campaign)

    def sent(**more: Any) -> Any:
        body = {"from_version": old.pk, "version": new.pk, "decisions": {}, **more}
        return lead.post(there, body, content_type="application/json")

    assert sent().json()["fields"].keys() == {"fluency"}
    for scores in ({"2": 7}, {"1": 2}, {"2": None}, {}):
        assert sent(decisions={"fluency": {"decision": "map", "scores": scores}}).status_code == 422, scores
    assert sent(decisions={"fluency": {"decision": "keep"}}).status_code == 422
    assert sent(decisions={"fluency": {"decision": "map", "scores": {"x": 1}}}).status_code == 400
    assert sent(from_version=new.pk).json()["code"] == "changed"
    assert sent(version=old.pk).json()["code"] == "no_newer"
    done = sent(decisions={"fluency": {"decision": "map", "scores": {"2": 1}}})
    assert done.status_code == 201 and done.json()["counts"] == {"kept": 2, "mapped": 2, "assignments": 0}
    undone = lead.post(f"{there}{done.json()['id']}/undo/")
    assert undone.status_code == 200 and undone.json()["undone_at"]
    assert lead.post(f"{there}{done.json()['id']}/undo/").status_code == 409


@pytest.mark.django_db
def test_a_reviewed_translation_is_stale_when_only_the_source_changes(cast: Cast) -> None:
    anchors = {"0": {"en": "Broken.", "et": "Katki.", "fi": "Rikki."}}
    states = {"et": "reviewed", "fi": "reviewed"}
    first = make.rubric(cast.kassa, {**make.criterion("fluency"), "anchors": anchors, "translations": states})
    assert rubrics.unreviewed(first, ["et", "fi-FI", "en", ""]) == {}
    changed = {"0": {"en": "Not readable.", "et": "Katki.", "fi": "Lukukelvoton."}}
    second = next_version(cast, first, {**make.criterion("fluency"), "anchors": changed, "translations": states})
    assert second.document["criteria"][0]["translations"] == {"et": "stale", "fi": "reviewed"}
    assert rubrics.unreviewed(second, ["et-EE", "fi"]) == {"et": {"stale": 1}}
    campaign = campaigns.open_campaign(
        project=cast.kassa, name="Round 1", dataset=make.dataset(cast.kassa), rubric_version=second
    )
    panel = panels.create(project=cast.kassa, name="Estonian", language="et")
    lead = cast.client("aino")
    assert "1 stale" in lead.get(address(cast, campaign, "duties/new/")).content.decode()
    assert "reviewed translation" not in lead.get(address(cast, campaign, "")).content.decode()
    allocation.allocate(campaign=campaign, panel=panel, overlap=1)
    assert "1 stale" in lead.get(address(cast, campaign, "")).content.decode()
    third = next_version(cast, second, {**make.criterion("fluency"), "anchors": changed, "translations": states})
    assert third.document["criteria"][0]["translations"] == states  # read again
    assert "1 criterion" not in (page := lead.get(address(cast, campaign)).content.decode())
    assert "The criteria are the same in both versions" in page


@pytest.mark.django_db
def test_earlier_scores_are_shown_as_they_were_given(cast: Cast) -> None:
    points = [{"value": value, "label": {"en": f"old {value}"}} for value in (0, 1, 2)]
    duty = scene.duty(cast, items=1, overlap=1, criteria=[labelled(points)])
    campaign, annotator = duty.campaign, cast.client("maarika")
    there = scene.next_page(annotator, duty)
    assert annotator.post(f"{there}submit/", {"score-fluency": "2"}, headers=scene.JSON).status_code == 200
    new = next_version(cast, campaign.rubric_version, labelled([*points[:2], {"value": 2, "label": {"en": "new 2"}}]))
    pause(cast.client("aino"), cast, campaign)
    again = {"fluency": rubric_changes.RatingDecision("requeue")}
    rubric_changes.change_version(
        campaign=Campaign.objects.get(), version=new, decisions=again, from_version=campaign.rubric_version_id
    )
    pause(cast.client("aino"), cast, campaign, "open")
    assert service.last_submitted(duty=duty, annotator=scene.annotator(cast, cast.maarika)) is None  # it is open again
    there = scene.next_page(annotator, duty)
    assert annotator.post(f"{there}submit/", {"score-fluency": "1"}, headers=scene.JSON).status_code == 200
    earlier = (
        annotator.get(f"{there}scores/")
        .content.decode()
        .split("Earlier versions of your scores")[1]
        .split("</details>")[0]
    )
    assert "2 · old 2" in earlier and "new 2" not in earlier
    assert earlier.count("data-version") == 1  # not what the change itself wrote


@pytest.mark.django_db
def test_the_list_of_scored_items_leads_to_those_that_are_rated_again(cast: Cast) -> None:
    duty, annotator = rated_duty(cast)
    go_on(cast, duty, make.criterion("fluency"), anchored("coherence"), coherence="requeue")
    slot = scene.taken(cast, duty)
    page = annotator.get(f"/desk/{duty.pk}/scored/").content.decode()
    assert page.count('class="btn" href="/desk/at/') == 2 and "/scores/" not in page and "changed" not in page
    assert annotator.get(f"/desk/at/{slot.key}/").status_code == 200
    service.skip(assignment=slot, reason="other")
    page = annotator.get(f"/desk/{duty.pk}/scored/")
    assert page.status_code == 200 and page.content.decode().count('class="btn" href="/desk/at/') == 1


def labelled(points: list[dict[str, Any]]) -> dict[str, Any]:
    return {**make.criterion("fluency", (0, 1, 2)), "scale": {"level": "ordinal", "points": points}}


@pytest.mark.django_db
def test_a_slot_that_two_people_rated_can_be_rated_by_a_third_after_a_removal(cast: Cast) -> None:
    duty, _annotator = rated_duty(cast, items=2)
    second, third = scene.member(cast, "Piret"), scene.member(cast, "Tiina")
    panels.unseat(seat=duty.panel.seats.get())
    go_on(cast, duty, make.criterion("fluency"), anchored("coherence"), coherence="requeue")
    for user in (second, third):
        panels.seat(panel=duty.panel, user=user)
    slot = scene.taken(cast, duty, second)
    service.submit(assignment=slot, key=slot.key, answers=scene.ANSWERS, seconds=1)
    person = scene.annotator(cast, second)
    panels.remove_person(annotator=person, typed=person.pseudonym, with_ratings=True, actor=cast.aino)
    for _item in range(2):
        slot = scene.taken(cast, duty, third)
        service.submit(assignment=slot, key=slot.key, answers=scene.ANSWERS, seconds=1)
    assert Annotation.objects.filter(superseded_at=None).count() == 2


def go_on(cast: Cast, duty: Duty, *criteria: dict[str, Any], **decisions: Any) -> Campaign:
    """The campaign with the next version, open again."""
    campaign = Campaign.objects.get(pk=duty.campaign_id)
    campaigns.move(campaign=campaign, to=Campaign.State.PAUSED)
    rubric_changes.change_version(
        campaign=campaign,
        version=next_version(cast, campaign.rubric_version, *criteria),
        decisions={
            key: one if isinstance(one, rubric_changes.RatingDecision) else rubric_changes.RatingDecision(one)
            for key, one in decisions.items()
        },
        from_version=campaign.rubric_version_id,
    )
    campaigns.move(campaign=campaign, to=Campaign.State.OPEN)
    return campaign


@pytest.mark.django_db
def test_what_a_critical_mark_stopped_is_rated_again_when_the_mark_stops_nothing(cast: Cast) -> None:
    harm = make.criterion("harm", (0, 1), group="critical", direction="lower_is_better")
    duty = scene.duty(cast, items=2, overlap=1, criteria=[harm, make.criterion("fluency")])
    for score in (1, 0):
        slot = scene.taken(cast, duty)
        given = {"harm": Answer(score)} | ({} if score else {"fluency": Answer(3)})
        service.submit(assignment=slot, key=slot.key, answers=given, seconds=1)
    go_on(cast, duty, {**harm, "group": "general"}, make.criterion("fluency"), harm="keep")
    assert RubricChange.objects.get().counts == {"kept": 3, "requeued": 1, "assignments": 1}
    assert not Rating.objects.filter(annotation__superseded_at=None, status=Rating.Status.STOPPED).exists()
    campaigns.move(campaign=Campaign.objects.get(), to=Campaign.State.CLOSED)
    next_version(cast, RubricVersion.objects.latest("number"), make.criterion("fluency"))
    page = cast.client("aino").get(address(cast, duty.campaign)).content.decode()
    assert "This campaign is closed" in page and "Pause the campaign" not in page


@pytest.mark.django_db
def test_who_still_sees_the_former_version_adds_no_duty_and_no_ratings(cast: Cast) -> None:
    duty, _annotator = rated_duty(cast)
    before = Campaign.objects.select_related("rubric_version").get(pk=duty.campaign_id)
    go_on(cast, duty, anchored("fluency"), make.criterion("coherence", (0, 1)), fluency="keep")
    with pytest.raises(Refused, match="has just changed"):
        allocation.allocate(campaign=before, panel=duty.panel, overlap=1, name="More", again=True)
    assert Duty.objects.count() == 1
