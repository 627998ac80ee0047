"""Erasing a person, by themselves and by the operator: nothing that is left tells who it was; the ratings stay."""

from __future__ import annotations

from io import StringIO

import pytest
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.apps import apps
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from accounts import people, tokens
from accounts.models import AuditEntry, Membership, Role, Scope, User
from annotation.desk import service
from annotation.desk.answers import Answer
from annotation.models import Annotation, Assignment, Draft, PanelSeat, Rating, Skip
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
