"""Erasing a person, by themselves and by the operator: nothing that is left tells who it was; the ratings stay."""

from __future__ import annotations

from decimal import Decimal
from io import StringIO
from uuid import uuid4

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.apps import apps
from django.core.management import call_command
from django.core.management.base import CommandError
from django.http import HttpResponse
from django.test import Client

from accounts import audit, people, tokens
from accounts.models import AuditEntry, Membership, Role, Scope, User
from accounts.refusals import Refused
from analytics.models import Snapshot
from annotation import campaigns, panels, pay
from annotation.adjudication import digest_of
from annotation.desk import notes, service
from annotation.desk.answers import Answer
from annotation.models import Adjudication, Annotation, Assignment, Draft, Duty, PanelSeat, Rating, Skip
from tests.annotation import scene
from tests.cast import PASSWORD, Cast

REASON = "because my own words say so"


def rated(cast: Cast) -> None:
    """Maarika has rated one item with reasons, skipped one with a remark and holds a third with a draft."""
    duty = scene.duty(cast, items=3)
    first = scene.taken(cast, duty)
    answers = {"fluency": Answer(score=1, rationale=REASON), "coherence": Answer(score=0, rationale=REASON)}
    service.submit(assignment=first, key=first.key, answers=answers, seconds=5)
    service.skip(assignment=scene.taken(cast, duty), reason=Skip.Reason.OTHER, note=REASON)
    service.save_draft(assignment=scene.taken(cast, duty), answers=answers, seconds=2)


def everything(**but: object) -> str:
    """The text of every row of every table."""
    return "\n".join(str(row) for model in apps.get_models() for row in model.objects.values())


def test_one_erases_oneself_and_the_ratings_stay(cast: Cast) -> None:
    rated(cast)
    people.describe_self(user=cast.maarika, education="linguistics", experience="", grew_up_with=["et"], consent=True)
    EmailAddress.objects.create(user=cast.maarika, email=cast.maarika.email, primary=True)
    TOTP.activate(cast.maarika, generate_totp_secret())
    _token, secret = tokens.issue(user=cast.maarika, name="Maarika's script", scope=Scope.READ)
    phone, browser = cast.client("maarika"), cast.client("maarika")
    assert "Erase my account" in browser.get("/me/").content.decode()
    answer = browser.post("/me/erase/", {"email": "Maarika@panelbench.test", "password": PASSWORD})
    assert (answer.status_code, answer["Location"]) == (302, "/account/login/")

    assert phone.get("/me/").status_code == browser.get("/me/").status_code == 302
    assert Client().get("/api/v1/me/", headers={"authorization": f"Bearer {secret}"}).status_code == 401
    Client().post("/account/login/", {"login": "maarika@panelbench.test", "password": PASSWORD})
    left = everything()
    for word in ("maarika", "Maarika", REASON, "linguistics"):
        assert word not in left
    gone = User.objects.get(pk=cast.maarika.pk)
    assert (gone.is_active, gone.name, gone.erased_at is None) == (False, "", False)
    assert not Membership.objects.filter(user=gone).exists()
    assert not Authenticator.objects.exists()
    assert list(Rating.objects.values_list("score", "rationale").order_by("score")) == [(0.0, ""), (1.0, "")]
    assert Annotation.objects.get().annotator.user is None
    assert not Draft.objects.exists()
    assert not PanelSeat.objects.exists()
    assert not Assignment.objects.filter(state=Assignment.State.LEASED).exists()
    assert AuditEntry.objects.filter(verb="erase", subject_pk=gone.pk).exists()


@pytest.mark.parametrize(
    "form",
    [{"email": "layla@panelbench.test", "password": PASSWORD}, {"email": "maarika@panelbench.test", "password": "x"}],
)
def test_nothing_is_erased_without_address_and_password(cast: Cast, form: dict[str, str]) -> None:
    assert cast.client("maarika").post("/me/erase/", form).status_code == 422
    assert User.objects.get(pk=cast.maarika.pk).erased_at is None


def test_the_last_lead_first_finds_another(cast: Cast) -> None:
    page = cast.client("aino").post("/me/erase/", {"email": cast.aino.email, "password": PASSWORD})
    assert "has no other lead" in page.content.decode()
    with pytest.raises(CommandError, match="--successor"):
        call_command("erase_user", cast.aino.email, "--yes")
    call_command("erase_user", cast.aino.email, "--yes", "--successor", cast.boris.email, stdout=StringIO())
    assert Membership.objects.get(project=cast.kassa, user=cast.boris).role == Role.LEAD
    assert "Aino" not in everything()
    with pytest.raises(CommandError, match="no account"):
        call_command("erase_user", cast.aino.email, "--yes")


# --- removal from one project, by a lead ------------------------------------------------------------------------------
def removal(cast: Cast, **form: str) -> HttpResponse:
    pk = scene.annotator(cast, cast.maarika).pk
    return cast.client("aino").post(f"/p/kassa/people/removal/{pk}/", form, follow="with_ratings" in form)


def test_a_lead_removes_a_person_and_the_ratings_stay(cast: Cast) -> None:
    rated(cast)
    Membership.objects.create(project=cast.teine, user=cast.maarika, role=Role.ANNOTATOR)
    audit.record(actor=cast.maarika, project=cast.kassa, verb="contest control", subject=cast.kassa)
    notes.keep_note(user=cast.maarika, assignment=Assignment.objects.get(state="leased"), text=REASON)
    campaign = Duty.objects.get().campaign
    pay.set_pay_rate(duty=Duty.objects.get(), unit="item", amount=Decimal(1), actor=cast.aino)
    assert len(list(pay.pay_rows(campaign))) == 1
    name = scene.annotator(cast, cast.maarika).pseudonym
    listed = cast.client("aino").get("/p/kassa/people/removal/").content.decode()
    assert name in listed and "Maarika" in listed
    assert "Stays with their account" in removal(cast, typed="wrong").content.decode()
    assert Membership.objects.filter(project=cast.kassa, user=cast.maarika).exists()
    assert removal(cast, typed=name, with_account="on").status_code == 302  # the choice is not offered

    assert REASON not in everything()
    assert "Maarika" not in cast.client("aino").get("/p/kassa/audit/").content.decode()
    assert User.objects.get(pk=cast.maarika.pk).name == "Maarika"
    assert cast.client("maarika").get("/p/kassa/").status_code == 404
    assert list(Rating.objects.values_list("score", flat=True).order_by("score")) == [0.0, 1.0]
    assert list(pay.pay_rows(campaign)) == []
    assert Membership.objects.filter(user=cast.maarika).count() == 1


def test_ratings_and_account_go_where_that_was_asked_for(cast: Cast) -> None:
    rated(cast)
    campaign = Duty.objects.get().campaign
    annotation, name = Annotation.objects.get(), scene.annotator(cast, cast.maarika).pseudonym
    seen = [{"rater": name, "revision": 1, "status": "scored", "score": 1.0}]
    Adjudication.objects.create(
        campaign=campaign,
        item=annotation.item,
        criterion=campaign.rubric_version.criteria.first(),
        rubric_version=campaign.rubric_version,
        score=1,
        seen=seen,
        digest=digest_of(seen),
        key=uuid4(),
    )
    Snapshot.objects.create(
        campaign=campaign,
        revision=campaigns.revision(campaign),
        settings_digest="s",
        inputs_digest="i",
        seed=0,
        code_version="1",
        content={"raters": [name]},
        seconds=1,
    )
    shown = removal(cast, typed=f" {name} ", with_ratings="on", with_account="on").content.decode()
    assert "2 ratings are deleted" in shown and "1 person was removed earlier" in shown
    assert not Rating.objects.exists() and not Annotation.objects.exists() and not Snapshot.objects.exists()
    assert Adjudication.objects.get().seen == []
    assert set(Assignment.objects.values_list("state", "annotator", "revision")) == {("open", None, 1)}
    assert "aarika" not in everything()
    assert AuditEntry.objects.filter(verb="remove person", fields=["account", "ratings"]).count() == 1
    other = scene.member(cast, "Piret")
    panels.seat(panel=campaign.duties.get().panel, user=other)
    assert scene.taken(cast, campaign.duties.get(), other).slot == 1


def test_nobody_is_removed_twice_by_themselves_or_by_others_than_leads(cast: Cast) -> None:
    rated(cast)
    person = scene.annotator(cast, cast.maarika)
    panels.remove_person(annotator=person, typed=person.pseudonym, actor=cast.aino)
    with pytest.raises(Refused, match="before"):
        panels.remove_person(annotator=person, typed=person.pseudonym, actor=cast.aino)
    own = scene.annotator(cast, cast.aino)
    with pytest.raises(Refused, match="yourself"):
        panels.remove_person(annotator=own, typed=own.pseudonym, actor=cast.aino)
    assert cast.client("boris").get("/p/kassa/people/removal/").status_code == 403
    assert cast.client("zoltan").get(f"/p/kassa/people/removal/{own.pk}/").status_code == 404


def test_a_person_is_removed_by_api_and_command(cast: Cast) -> None:
    rated(cast)
    lead, base = cast.client("aino"), "/api/v1/projects/kassa/people/"
    (person,) = lead.get(base).json()["results"]
    there = f"{base}{person['id']}/removal/"
    wrong = lead.post(there, {"typed": "somebody"}, content_type="application/json")
    assert (wrong.status_code, wrong.json()["code"]) == (422, "wrong_name")
    assert cast.client("boris").get(base).status_code == 403
    body = {"typed": person["pseudonym"], "with_ratings": True}
    done = lead.post(there, body, content_type="application/json")
    assert done.status_code == 200 and done.json()["ratings"] > 0 and lead.get(base).json()["results"] == []
    other = scene.annotator(cast, scene.member(cast, "Piret"))
    named = ("remove_person", other.pseudonym, "--project", "kassa", "--yes")
    with pytest.raises(CommandError, match="leads no project"):
        call_command(*named, "--as", cast.boris.email)
    call_command(*named, "--as", cast.aino.email, stdout=StringIO())
    assert AuditEntry.objects.filter(verb="remove person").count() == 2
