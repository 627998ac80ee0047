"""A newer version of the rubric in a running campaign: keep, rate again, map, and back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts import jobs
from accounts.models import AuditEntry, Job
from accounts.refusals import Refused
from analytics.ratings import ratings_tables
from annotation import allocation, campaigns, carried_ratings, exports, panels, rubric_changes, rubrics
from annotation.desk import service
from annotation.desk.answers import Answer
from annotation.models import Annotation, Assignment, Campaign, Duty, Rating, RubricChange, RubricVersion
from annotation.qualification import exams, gate
from annotation.readers import rubric_from_dict
from tests import make, workers
from tests.annotation import qualified, scene
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
    found = ratings_tables.rows(campaign=Campaign.objects.get(pk=campaign.pk))
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
    assert "1 out of date" in lead.get(address(cast, campaign, "duties/new/")).content.decode()
    assert "reviewed translation" not in lead.get(address(cast, campaign, "")).content.decode()
    allocation.allocate(campaign=campaign, panel=panel, overlap=1)
    assert "1 out of date" in lead.get(address(cast, campaign, "")).content.decode()
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
    again = {"fluency": carried_ratings.RatingDecision("requeue")}
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
            key: one if isinstance(one, carried_ratings.RatingDecision) else carried_ratings.RatingDecision(one)
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


def _change_by_page(cast: Cast, campaign: Campaign, new: RubricVersion, **chosen: str) -> None:
    """Pause, go on with the new version, resume."""
    lead = cast.client("aino")
    pause(lead, cast, campaign)
    own = Campaign.objects.get(pk=campaign.pk).rubric_version_id
    posted = {"version": new.pk, "from_version": own, **chosen}
    answer = lead.post(address(cast, campaign), posted)
    assert answer.status_code == 302, answer.content.decode()
    pause(lead, cast, campaign, "open")


@pytest.mark.django_db
def test_controls_and_repeats_are_rated_again_like_items(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, items=50, control=range(1, 21), control_rate=0.3, repeat_rate=0.3)
    maarika, order = cast.client("maarika"), []
    for _item in range(25):
        page = scene.next_page(maarika, work)
        order.append(Assignment.objects.get(key=scene.key_at(page)).pk)
        qualified.submit_scores(maarika, page)
    new = next_version(cast, work.campaign.rubric_version, make.criterion("fluency"), anchored("coherence"))
    desk = "/api/v1/projects/kassa/desk/"
    _change_by_page(cast, work.campaign, new, **{"decision-coherence": "requeue"})
    assert maarika.get(desk).json()[0]["done"] == 0
    seen, back, takes = {}, [], []
    for _item in order:
        with CaptureQueriesContext(connection) as taking:
            page = scene.next_page(maarika, work)
        takes.append(len(taking))
        slot = Assignment.objects.select_related("duty").get(key=scene.key_at(page))
        back.append(slot.pk)
        with CaptureQueriesContext(connection) as asked:
            shown = maarika.get(page).content.decode()
            told = str(qualified.submit_scores(maarika, page))
        assert (
            "The rubric changed after you scored this item." in shown
            and "New or changed: \u2068Coherence\u2069." in shown
        )
        if len(back) > 1:  # at the first one there is nothing to undo
            seen.setdefault(slot.duty.purpose, set()).add((len(asked), told))
    assert back == order, "in the order in which she scored them"
    assert seen.keys() == {"rating", "control", "repeat"}
    assert seen["rating"] == seen["control"] == seen["repeat"]
    assert len(set(takes[1:])) == 1, "also before the first control"
    assert maarika.get(desk).json()[0]["done"] == 25


@pytest.mark.django_db
def test_nobody_has_two_current_annotations_of_an_item(cast: Cast) -> None:
    other = scene.member(cast, "Piret")
    duty = scene.duty(cast, items=1, overlap=2, seated=[other])
    maarika = cast.client("maarika")
    there = scene.next_page(maarika, duty)
    assert maarika.post(f"{there}submit/", scene.FULL, headers=scene.JSON).status_code == 200
    go_on(cast, duty, make.criterion("fluency"), anchored("coherence"), coherence="requeue")
    there = scene.next_page(maarika, duty)
    maarika.post(f"{there}skip/", {"reason": "other"}, headers=scene.JSON)
    assert scene.taken(cast, duty, other).slot == 1, "the slot that she had"
    there = scene.next_page(maarika, duty)
    assert maarika.post(f"{there}submit/", scene.FULL, headers=scene.JSON).status_code == 200
    current = Annotation.objects.filter(superseded_at=None).values_list("assignment__slot", flat=True)
    assert list(current) == [2]


@pytest.mark.django_db
@pytest.mark.parametrize("again", [True, False])
def test_training_counts_only_after_a_change_that_asks_for_it_again(cast: Cast, again: bool) -> None:
    work = qualified.qualified_duty(cast, training=[1, 2], exam=[3, 4, 5], exam_items=1)
    maarika = cast.client("maarika")
    stage = f"/desk/{work.pk}/"
    for _item in range(2):
        qualified.submit_scores(maarika, maarika.post(f"{stage}training/")["Location"])
    maarika.post(f"{stage}exam/")
    qualified.submit_scores(maarika, scene.next_page(maarika, work))
    person = scene.annotator(cast, cast.maarika)
    assert gate.stage_of(duty=work, annotator=person).name == "open"
    new = next_version(cast, work.campaign.rubric_version, make.criterion("fluency"), anchored("coherence"))
    chosen = {"decision-coherence": "keep", **({"qualify_again": "on"} if again else {})}
    _change_by_page(cast, work.campaign, new, **chosen)
    work = Duty.objects.select_related("campaign").get(pk=work.pk)
    progress = exams.training_progress(duty=work, annotator=person)
    assert (progress.done, progress.rounds) == ((0, 0) if again else (2, 1))
    assert gate.stage_of(duty=work, annotator=person).name == ("training" if again else "open")
    if again:
        for _item in range(2):
            qualified.submit_scores(maarika, maarika.post(f"{stage}training/")["Location"])
        assert gate.stage_of(duty=work, annotator=person).name == "exam"
        maarika.post(f"{stage}exam/")
        qualified.submit_scores(maarika, scene.next_page(maarika, work))
        assert gate.stage_of(duty=work, annotator=person).name == "open"


@pytest.mark.django_db
def test_an_undo_brings_back_the_answers_of_drafts(cast: Cast) -> None:
    duty, annotator = rated_duty(cast)
    there = scene.next_page(annotator, duty)
    assert annotator.post(f"{there}draft/", scene.FULL, headers=scene.JSON).status_code == 200
    new = next_version(cast, duty.campaign.rubric_version, make.criterion("fluency"), anchored("coherence"))
    _change_by_page(cast, duty.campaign, new, **{"decision-coherence": "requeue"})
    held = Assignment.objects.get(state="leased", revision=1)
    assert service.answers_so_far(held)[0].keys() == {"fluency"}
    lead = cast.client("aino")
    pause(lead, cast, duty.campaign)
    lead.post(address(cast, duty.campaign, f"rubric/{RubricChange.objects.get().pk}/undo/"))
    held.refresh_from_db()
    assert {key: one.score for key, one in service.answers_so_far(held)[0].items()} == {"fluency": 2, "coherence": 1}


@pytest.mark.django_db
def test_a_large_change_is_a_job_that_survives_its_worker(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rubric_changes, "LARGE", 0)
    duty, _annotator = rated_duty(cast)
    campaign, lead = duty.campaign, cast.client("aino")
    new = next_version(cast, campaign.rubric_version, make.criterion("fluency"), anchored("coherence"))
    there = f"/api/v1/projects/{cast.kassa.slug}/campaigns/{campaign.pk}/rubric-changes/"
    pause(lead, cast, campaign)
    as_it_was = stored(campaign)
    body = {
        "from_version": campaign.rubric_version_id,
        "version": new.pk,
        "decisions": {"coherence": {"decision": "requeue"}},
    }
    change = lead.post(there, body, content_type="application/json").json()
    assert change["finished_at"] is None and stored(campaign) == as_it_was
    (listed,) = lead.get(f"/api/v1/projects/{cast.kassa.slug}/jobs/").json()["results"]
    assert (listed["id"], listed["kind"], listed["total"]) == (change["job"], "rubric", 2)
    assert "A worker changes the campaign to" in lead.get(address(cast, campaign)).content.decode()
    assert lead.post(there, body, content_type="application/json").json()["code"] == "changing"
    pause(lead, cast, campaign, "open")
    assert Campaign.objects.get(pk=campaign.pk).state == "paused", "it stays so until the worker has finished"
    assert jobs.take_job(RubricChange.objects.get(), Job.Kind.RUBRIC)  # this worker dies
    rubric_changes.carry_out_job(change["id"])
    assert stored(campaign) == as_it_was, "the dead worker has the job"
    jobs.sweep_jobs(now=workers.long_after())
    rubric_changes.carry_out_job(change["id"])
    assert RubricChange.objects.get().counts["requeued"] == 2 and Job.objects.get().state == "finished"
    undone = lead.post(f"{there}{change['id']}/undo/").json()
    assert undone["undone_at"] is None
    rubric_changes.carry_out_job(change["id"])
    assert stored(campaign) == as_it_was
    pause(lead, cast, campaign, "open")
    assert Campaign.objects.get(pk=campaign.pk).state == "open"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_undone", [False, True])
def test_a_change_waits_for_scores_that_are_being_revised_or_undone(cast: Cast, is_undone: bool) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer")
    rated_duty(cast)
    campaign = Campaign.objects.get()
    new = next_version(cast, campaign.rubric_version, anchored("fluency"), make.criterion("coherence", (0, 1)))
    slot = service.on_desk(user=cast.maarika, key=Annotation.objects.latest("pk").key)
    campaigns.move(campaign=campaign, to=Campaign.State.PAUSED)  # she was allowed just before

    def change() -> None:
        try:
            rubric_changes.change_version(
                campaign=Campaign.objects.get(),
                version=new,
                decisions={"fluency": carried_ratings.RatingDecision("keep")},
                from_version=campaign.rubric_version_id,
            )
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other, transaction.atomic():  # which ends first
        if is_undone:
            service.undo_submission(assignment=slot)
        else:
            revised = {**scene.ANSWERS, "fluency": Answer(score=3)}
            service.revise_scores(assignment=slot, shown=slot.key, key=uuid4(), answers=revised, seconds=2)
        changing = other.submit(change)
        workers.wait_for_workers(lambda: changing.done() or workers.waits_for_a_lock())
    changing.result()
    current = Rating.objects.filter(annotation__superseded_at=None, criterion__key="fluency")
    assert sorted(one.score or 0 for one in current) == ([2.0] if is_undone else [2.0, 3.0])
    slot.refresh_from_db()
    assert slot.state == ("leased" if is_undone else "submitted")
