"""Pages and API of a simulation: its conversations turn by turn, what was set aside and why, and what is stored."""

from __future__ import annotations

from decimal import Decimal

import pytest

from annotation.models import Dataset, Item
from judging.models import PlanDataset, Realisation
from tests.cast import Cast
from tests.judging.generation.conversed import BOTS, LANGUAGES, SIMULATED_USERS, TURN_TEXTS, simulated_plan

pytestmark = pytest.mark.django_db


@pytest.mark.both_databases
def test_a_conversation_is_shown_turn_by_turn_with_every_refused_try(cast: Cast) -> None:
    plan = simulated_plan(cast)
    text = Realisation.objects.filter(plan=plan, family__number=3, language="et").first()
    assert text is not None
    page = cast.client("boris").get(f"/p/kassa/generation/{plan.pk}/texts/{text.pk}/")
    shown = page.content.decode()
    first, second = page.context["conversation"]
    assert (first.number, first.is_shared, first.refused, len(first.attempts)) == (1, True, 2, 6)
    assert [each.is_refused_by_guard for each in first.tries] == [True, False, False]
    assert [each.refusal is not None for each in first.tries] == [False, True, False]
    assert (first.user, first.answer) == tuple(TURN_TEXTS["et"][:2])
    assert (second.user, second.answer, second.refused, second.is_shared) == (*TURN_TEXTS["et"][2:], 0, False)
    for words in ("2 tries refused", "shared by all chatbots", "refused by the reply guard", "refused by the judge"):
        assert words in shown
    assert "&lt;think&gt;Ma olen kasutaja" in shown and "<think>" not in shown
    assert "Nobody writes “Dear chatbot” &lt;b&gt;." in shown
    assert "Request opening 1" in shown and "Request verdict 3" in shown and "The user ended it" in shown
    assert first.cost == Decimal("0.006")

    told = cast.client("boris").get(f"/api/v1/projects/kassa/generation/{plan.pk}/texts/{text.pk}/").json()
    assert (told["simulator"], told["generator"], told["ended"]) == (SIMULATED_USERS[0], BOTS[0], "stopped")
    assert [(each["step"], each["turn"]) for each in told["attempts"]] == [
        ("answer", 0), ("utterance", 1), ("verdict", 1), ("answer", 1),
    ]  # fmt: skip
    assert [each["step"] for each in told["opening_attempts"]].count("opening") == 3
    assert cast.client("maarika").get(f"/p/kassa/generation/{plan.pk}/texts/{text.pk}/").status_code in (403, 404)


def test_what_was_set_aside_is_counted_by_reason_language_and_generator(cast: Cast) -> None:
    plan = simulated_plan(cast)
    boris = cast.client("boris")
    by_hand = Realisation.objects.filter(plan=plan, language="ar", generator__name=BOTS[1]).first()
    assert by_hand is not None
    boris.post(f"/p/kassa/generation/{plan.pk}/texts/{by_hand.pk}/decision/", {"decision": "set_aside", "reason": "x"})
    page = boris.get(f"/p/kassa/generation/{plan.pk}/")
    assert page.context["aside_codes"][:2] == ["mixed_language", "role_confusion"]
    rows = {(row.language, row.generator): counts for row, counts in page.context["aside_rows"]}
    assert rows == {
        **{(tag, BOTS[0]): [2, 2, 0] for tag in LANGUAGES},
        ("et", BOTS[1]): [0, 0, 0],
        ("ar", BOTS[1]): [0, 0, 1],
    }
    assert "9 texts are set aside" in page.content.decode() and "by a reader" in page.content.decode()
    listed = boris.get(f"/p/kassa/generation/{plan.pk}/texts/?decision=set_aside&simulator=")
    assert listed.context["page_obj"].paginator.count == 9
    user = plan.user_models.first()
    listed = boris.get(f"/p/kassa/generation/{plan.pk}/texts/?simulator={user.pk}")
    assert listed.context["page_obj"].paginator.count == 16
    api = f"/api/v1/projects/kassa/generation/{plan.pk}/texts/"
    assert boris.get(f"{api}?decision=set_aside").json()["results"][0]["problems"][0]["code"] == "mixed_language"


def test_stored_with_and_without_what_was_set_aside(cast: Cast) -> None:
    plan = simulated_plan(cast)
    boris = cast.client("boris")
    at = f"/p/kassa/generation/{plan.pk}/store/"
    for name, only, count in (("Terved", "whole", 16), ("Kõik", "all", 24), ("Ka vigased", "every", 32)):
        answer = boris.post(at, {"name": name, "only": only})
        dataset = Dataset.objects.get(name=name)
        assert answer["Location"] == f"/p/kassa/datasets/{dataset.pk}/"
        items = Item.objects.of(dataset)
        assert items.count() == count == items.filter(attributes__has_key="simulator").count()
        assert PlanDataset.objects.get(dataset=dataset).only == only
    aside = {item.external_id: item.attributes["set_aside"] for item in items if "set_aside" in item.attributes}
    assert aside == {
        f"family-{number:04}/{tag}/{BOTS[0]}/{user}": code
        for number, code in ((1, "mixed_language"), (2, "role_confusion"))
        for tag in LANGUAGES
        for user in SIMULATED_USERS
    }
    item = items.get(external_id=f"family-0003/et/{BOTS[1]}/{SIMULATED_USERS[1]}")
    assert (item.attributes["simulator"], item.attributes["user_turns"], item.attributes["ended"]) == (
        SIMULATED_USERS[1], 2, "stopped",
    )  # fmt: skip
    assert (item.generator, item.scenario) == (BOTS[1], "family-0003")
