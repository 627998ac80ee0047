"""Invitations, roles and tokens, through HTTP."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts import invitations, people, tokens
from accounts.models import AuditEntry, Invitation, Membership, Role, Scope, Token, User
from accounts.refusals import Refused
from tests.cast import PASSWORD, Cast


def _link(cast: Cast, **form: object) -> str:
    page = cast.client("aino").post("/p/kassa/people/", {"role": "annotator", "days": 7, **form}).content.decode()
    return re.search(r"/join/[\w-]+/", page).group()


def test_a_new_person_joins_by_link_once(cast: Cast) -> None:
    link = _link(cast, languages="ET, es-mx")
    browser = Client()
    assert "Kassa" in browser.get(link).content.decode()
    browser.post("/account/signup/", {"email": "New@Panelbench.test", "password1": "a long enough one"})
    assert browser.post(link).status_code == 302
    member = Membership.objects.get(user__email="new@panelbench.test")
    assert (member.role, member.user.languages) == ("annotator", ["es-MX", "et"])
    assert cast.client("layla").get(link).status_code == 410


def test_nobody_signs_up_without_an_invitation(cast: Cast) -> None:
    Client().post("/account/signup/", {"email": "new@panelbench.test", "password1": "a long enough one"})
    assert not User.objects.filter(email="new@panelbench.test").exists()


@pytest.mark.parametrize("end", ["expired", "revoked"])
def test_a_closed_invitation_lets_nobody_in(cast: Cast, end: str) -> None:
    invitation, secret = invitations.invite(project=cast.kassa, role=Role.LEAD, created_by=cast.aino)
    if end == "expired":
        Invitation.objects.filter(pk=invitation.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    else:
        invitations.revoke(invitation=invitation, actor=cast.aino)
    with pytest.raises(invitations.InvitationClosed):
        invitations.accept(secret=secret, user=cast.zoltan)
    assert not Membership.objects.filter(project=cast.kassa, user=cast.zoltan).exists()


def test_the_stored_invitation_does_not_hold_its_secret(cast: Cast) -> None:
    secret = _link(cast).split("/")[2]
    assert secret not in str(Invitation.objects.values().get())


def test_a_project_keeps_a_lead(cast: Cast) -> None:
    own = Membership.objects.get(project=cast.kassa, user=cast.aino)
    with pytest.raises(Refused, match="needs a lead"):
        people.change_role(member=own, role=Role.RESEARCHER, actor=cast.aino)
    with pytest.raises(Refused, match="needs a lead"):
        people.remove(member=own, actor=cast.aino)
    assert Membership.objects.get(pk=own.pk).role == Role.LEAD


def test_a_taken_address_is_refused_in_words(cast: Cast) -> None:
    page = cast.client("boris").post("/new/", {"name": "Kassa again", "slug": "kassa"})
    assert "is taken" in page.content.decode()


def test_one_cannot_reach_into_another_project_by_a_members_number(cast: Cast) -> None:
    theirs = Membership.objects.get(project=cast.teine, user=cast.zoltan)
    answer = cast.client("aino").post(f"/p/kassa/people/{theirs.pk}/remove/")
    assert answer.status_code == 404
    assert Membership.objects.filter(pk=theirs.pk).exists()


def test_every_change_leaves_a_line_in_the_trail(cast: Cast) -> None:
    _link(cast)
    entry = AuditEntry.objects.first()
    assert (entry.verb, entry.actor, entry.subject) == ("invite", cast.aino, "accounts.Invitation")
    assert "invite" in cast.client("aino").get("/p/kassa/audit/").content.decode()


def test_nothing_of_a_profile_is_kept_without_consent(cast: Cast) -> None:
    browser = cast.client("layla")
    browser.post("/me/profile/", {"education": "linguistics", "grew_up_with": "ar", "consent": "on"})
    assert cast.layla.profile.education == "linguistics"
    browser.post("/me/profile/", {"education": "linguistics", "grew_up_with": "ar"})
    cast.layla.profile.refresh_from_db()
    assert (cast.layla.profile.education, cast.layla.profile.consented_at) == ("", None)


def test_a_wrong_language_tag_is_named(cast: Cast) -> None:
    page = cast.client("layla").post("/me/", {"name": "Layla", "languages": "ar, klingonese-xx-yy-1"})
    assert "klingonese" in page.content.decode()
    assert User.objects.get(pk=cast.layla.pk).languages == ["ar", "en"]


def test_sign_in_by_email_and_password(cast: Cast) -> None:
    browser = Client()
    answer = browser.post("/account/login/", {"login": "Maarika@panelbench.test", "password": PASSWORD})
    assert (answer.status_code, answer.url) == (302, "/")


class TestTokens:
    def get(self, secret: str, path: str = "/api/v1/projects/") -> tuple[int, object]:
        answer = Client().get(path, headers={"authorization": f"Bearer {secret}"})
        return answer.status_code, answer.json()

    def test_a_token_reads_as_its_owner(self, cast: Cast) -> None:
        _token, secret = tokens.issue(user=cast.boris, name="script", scope=Scope.READ)
        status, page = self.get(secret)
        assert (status, [project["slug"] for project in page["results"]]) == (200, ["kassa"])

    def test_a_read_token_does_not_write(self, cast: Cast) -> None:
        _token, secret = tokens.issue(user=cast.boris, name="script", scope=Scope.READ)
        answer = Client().post(
            "/api/v1/projects/",
            {"name": "X", "slug": "x"},
            "application/json",
            headers={"authorization": f"Bearer {secret}"},
        )
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")

    @pytest.mark.parametrize("slug", [15, 1.5, True, None, ["x"]])
    def test_text_is_text(self, cast: Cast, slug: object) -> None:
        _token, secret = tokens.issue(user=cast.boris, name="script", scope=Scope.WRITE)
        body, headers = {"name": "X", "slug": slug}, {"authorization": f"Bearer {secret}"}
        answer = Client().post("/api/v1/projects/", body, "application/json", headers=headers)
        assert (answer.status_code, list(answer.json()["fields"])) == (400, ["slug"])

    def test_a_token_of_one_project_reaches_no_other(self, cast: Cast) -> None:
        Membership.objects.create(project=cast.teine, user=cast.boris, role=Role.RESEARCHER)
        _token, secret = tokens.issue(user=cast.boris, name="script", scope=Scope.READ, project=cast.kassa)
        assert [project["slug"] for project in self.get(secret)[1]["results"]] == ["kassa"]
        assert self.get(secret, "/api/v1/projects/teine/")[0] == 403
        assert self.get(secret, "/api/v1/projects/kassa/")[0] == 200

    @pytest.mark.parametrize("end", ["revoked", "expired", "inactive"])
    def test_a_dead_token_opens_nothing(self, cast: Cast, end: str) -> None:
        token, secret = tokens.issue(user=cast.boris, name="script", scope=Scope.READ)
        if end == "revoked":
            tokens.revoke(token=token)
        elif end == "expired":
            Token.objects.filter(pk=token.pk).update(expires_at=timezone.now())
        else:
            User.objects.filter(pk=cast.boris.pk).update(is_active=False)
        status, body = self.get(secret)
        assert (status, body["code"]) == (401, "authentication_failed")

    def test_a_stored_token_does_not_hold_its_secret(self, cast: Cast) -> None:
        _token, secret = tokens.issue(user=cast.boris, name="script", scope=Scope.READ)
        assert secret not in str(Token.objects.values().get())
