"""The closing questionnaire: who is asked and when, and what a lead sees of it: never a group under five."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from analytics.reports import content
from annotation import campaigns, panels, questionnaires
from annotation.models import Campaign, ClosingAnswer, Criterion, Duty
from tests.annotation import scene
from tests.cast import Cast


def answer(number: int, language: str, difficulty: int | None = 4) -> ClosingAnswer:
    given = {"fluency": {"difficulty": difficulty, "confidence": None}}
    return ClosingAnswer(pk=number, language=language, answers=given)


class TestGroups:
    def test_small_languages_are_put_together_and_answers_come_in_fives(self) -> None:
        answers = [answer(number, "et" if number < 7 else "ar" if number < 10 else "fi") for number in range(14)]
        groups = questionnaires.shown_groups(answers)
        assert {language: [one.pk for one in group] for language, group in groups.items()} == {
            "et": [0, 1, 2, 3, 4],
            "": [7, 8, 9, 10, 11],
        }

    def test_four_people_are_no_group(self) -> None:
        assert questionnaires.shown_groups([answer(number, "et") for number in range(4)]) == {}

    def test_two_looks_never_differ_by_the_answer_of_one_person_where_others_left_it_out(self) -> None:
        answers = [answer(number, "et", 4 if number < 5 or number == 9 else None) for number in range(10)]
        fluency = Criterion(key="fluency")
        looks = [questionnaires.counted_points(answers[:n], fluency, "difficulty") for n in (5, 10)]
        assert looks[0] == looks[1] == questionnaires.PointCounts((0, 0, 0, 5, 0))


@pytest.mark.django_db
class TestAQuestionnaire:
    def finished(self, cast: Cast, people: int) -> tuple[Duty, list[Any]]:
        """A duty of one item that Maarika and further people have scored; their browsers."""
        others = [scene.member(cast, f"Person{number}") for number in range(people - 1)]
        duty = scene.duty(cast, items=1, overlap=people, seated=others)
        browsers = []
        for user in (cast.maarika, *others):
            browser = cast.client("maarika")
            browser.force_login(user)
            there = scene.next_page(browser, duty)
            assert browser.post(f"{there}submit/", scene.FULL, headers=scene.JSON).status_code == 200
            browsers.append(browser)
        return duty, browsers

    def test_it_is_asked_where_the_lead_wants_it_and_answered_once(self, cast: Cast) -> None:
        duty, (maarika,) = self.finished(cast, 1)
        there, invites = f"/desk/{duty.pk}/closing/", "Answer a few closing questions"
        assert maarika.get(there).status_code == 404 and invites not in maarika.get("/desk/").content.decode()
        lead, page = cast.client("aino"), f"/p/kassa/campaigns/{duty.campaign_id}/questionnaire/"
        assert lead.post(page, {"asked": "yes"}).status_code == 302
        assert cast.client("boris").get(page).status_code == 403
        for listed in ("/desk/", f"/desk/{duty.pk}/"):
            assert invites in maarika.get(listed).content.decode()
        assert "Answer at least one question" in maarika.post(there, {"difficulty-fluency": "9"}).content.decode()
        fields = {"difficulty-fluency": "5", "confidence-fluency": "2", "difficulty-other": "1", "comment": " Raske. "}
        for _click in range(2):
            assert maarika.post(there, fields).status_code == 302
        stored = ClosingAnswer.objects.get()
        assert (stored.language, stored.comment) == ("et", "Raske.")
        assert stored.answers == {"fluency": {"difficulty": 5, "confidence": 2}}
        assert invites not in maarika.get("/desk/").content.decode()
        shown = lead.get(page).content.decode()
        assert "Answered: 1 of 1" in shown and "Raske" not in shown and "Nothing to show yet" in shown

    def test_it_waits_for_the_last_item_or_the_end_of_the_campaign(self, cast: Cast) -> None:
        duty = scene.duty(cast, items=2, overlap=1)
        questionnaires.switch_questionnaire(campaign=duty.campaign, asked=True)
        maarika = cast.client("maarika")
        maarika.post(f"{scene.next_page(maarika, duty)}submit/", scene.FULL, headers=scene.JSON)
        there = f"/desk/{duty.pk}/closing/"
        early = maarika.get(there).content.decode()
        assert "These questions open when" in early and "<select" not in early
        assert maarika.post(there, {"difficulty-fluency": "3"}).status_code == 302
        assert not ClosingAnswer.objects.exists()
        campaigns.move(campaign=duty.campaign, to=Campaign.State.CLOSED)
        assert f'href="{there}"' in maarika.get("/desk/").content.decode()
        maarika.post(there, {"difficulty-fluency": "3"})
        assert ClosingAnswer.objects.get().answers == {"fluency": {"difficulty": 3, "confidence": None}}

    def test_five_people_are_shown_on_the_page_in_the_api_the_csv_and_the_statement(self, cast: Cast) -> None:
        duty, browsers = self.finished(cast, 6)
        questionnaires.switch_questionnaire(campaign=duty.campaign, asked=True)
        api = f"/api/v1/projects/kassa/campaigns/{duty.campaign_id}/questionnaire/"
        lead, page = cast.client("aino"), f"/p/kassa/campaigns/{duty.campaign_id}/questionnaire"
        for number, browser in enumerate(browsers):
            assert lead.get(api).json()["criteria"] == [] or number == 5
            fields = {"difficulty-fluency": "5" if number else "3", "comment": f"comment {number}"}
            browser.post(f"/desk/{duty.pk}/closing/", fields)
        results = lead.get(api).json()
        assert (results["people"], results["answered"], results["waiting"]) == (6, 6, 1)
        assert results["criteria"] == [
            {
                "criterion": "fluency",
                "language": "et",
                "difficulty": {"people": 5, "mean": 4.6, "counts": [0, 0, 1, 0, 4]},
                "confidence": None,
            }
        ]
        assert results["comments"] == [f"comment {number}" for number in range(5)]
        assert "0 · 0 · 1 · 0 · 4" in lead.get(f"{page}/").content.decode()
        (row,) = csv.DictReader(lead.get(f"{page}.csv").content.decode().splitlines())
        assert (row["people"], row["difficulty_5"], row["mean_difficulty"], row["mean_confidence"]) == (
            "5", "4", "4.600", "",
        )  # fmt: skip
        (sentence,) = [text for text in content._statement(duty.campaign) if "questionnaire" in text]
        assert "fluency (et) 4.6 from 5 people" in sentence
        for user in (cast.maarika, cast.aino):
            assert user.name not in str(results) + sentence
        assert lead.put(api, {"asked": False}, content_type="application/json").json()["asked"] is False
        assert cast.client("boris").get(api).status_code == 403

    def test_a_person_who_left_the_panel_is_not_asked(self, cast: Cast) -> None:
        duty, (maarika,) = self.finished(cast, 1)
        questionnaires.switch_questionnaire(campaign=duty.campaign, asked=True)
        panels.unseat(seat=duty.panel.seats.get())
        assert "closing" not in maarika.get("/desk/").content.decode()
        assert maarika.get(f"/desk/{duty.pk}/closing/").status_code == 404
