"""Invitations, roles and tokens, through HTTP."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from threading import Barrier

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts import people, tokens
from accounts.models import AuditEntry, Invitation, Membership, Project, Role, Scope, Token, User
from accounts.refusals import Refused
from tests.cast import PASSWORD, Cast, make_cast


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


def test_an_invitation_makes_one_account(cast: Cast) -> None:
    link = _link(cast)
    first, second = Client(), Client()
    for browser in (first, second):
        browser.get(link)
    first.post("/account/signup/", {"email": "one@panelbench.test", "password1": "a long enough one"})
    second.post("/account/signup/", {"email": "two@panelbench.test", "password1": "a long enough one"})
    assert list(User.objects.filter(email__startswith="one").values_list("memberships__project", flat=True)) == [
        cast.kassa.pk
    ]
    assert not User.objects.filter(email="two@panelbench.test").exists()
    assert first.get(link)["Location"] == "/"


@pytest.mark.django_db(transaction=True)
def test_of_two_who_sign_up_at_once_by_one_invitation_one_gets_an_account() -> None:
    cast = make_cast()
    link, ready = _link(cast), Barrier(2)

    def sign_up(name: str) -> int:
        try:
            browser = Client()
            browser.get(link)
            ready.wait(30)
            form = {"email": f"{name}@panelbench.test", "password1": "a long enough one"}
            return browser.post("/account/signup/", form).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(sign_up, ("one", "two"))) in ([302, 302], [302, 200], [200, 302])
    made = User.objects.filter(email__in=("one@panelbench.test", "two@panelbench.test"))
    assert [user.memberships.count() for user in made] == [1]
    assert Invitation.objects.get().accepted_by == made.get()


def test_an_invitation_is_for_the_invited_address(cast: Cast) -> None:
    link = _link(cast, email="Sofia@panelbench.test")
    stranger = Client()
    stranger.get(link)
    stranger.post("/account/signup/", {"email": "other@panelbench.test", "password1": "a long enough one"})
    assert not User.objects.filter(email="other@panelbench.test").exists()
    page = cast.client("zoltan").post(link, follow=True).content.decode()
    assert "for another e-mail address" in page
    assert not Membership.objects.filter(project=cast.kassa, user=cast.zoltan).exists()
    sofia = Client()
    sofia.get(link)
    assert "sofia@panelbench.test" in sofia.get("/account/signup/").content.decode()
    sofia.post("/account/signup/", {"email": "sofia@panelbench.test", "password1": "a long enough one"})
    assert Membership.objects.get(user__email="sofia@panelbench.test").project == cast.kassa


def test_signing_up_does_not_tell_who_is_registered(cast: Cast) -> None:
    link = _link(cast, email="sofia@panelbench.test")
    browser = Client()
    browser.get(link)

    def answer(email: str) -> str:
        page = browser.post("/account/signup/", {"email": email, "password1": "a long enough one"}).content.decode()
        return re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", page.replace(email, "ADDRESS"))

    assert answer("maarika@panelbench.test") == answer("nobody@panelbench.test")


def test_a_link_for_anybody_tells_of_one_address_at_most(cast: Cast) -> None:
    browser = Client()
    browser.get(_link(cast))
    browser.post("/account/signup/", {"email": "maarika@panelbench.test", "password1": "a long enough one"})
    assert Invitation.objects.get().email == "maarika@panelbench.test"
    browser.post("/account/signup/", {"email": "new@panelbench.test", "password1": "a long enough one"})
    assert not User.objects.filter(email="new@panelbench.test").exists()


def test_a_member_does_not_use_up_somebody_elses_link(cast: Cast) -> None:
    link = _link(cast)
    cast.client("aino").post(link)
    assert Invitation.objects.open().count() == 1


class TestFounding:
    BODY = {"name": "Mine", "slug": "mine"}

    def test_only_those_the_operator_names_found_projects(self, cast: Cast) -> None:
        browser = cast.client("boris")
        answer = browser.post("/api/v1/projects/", self.BODY, "application/json")
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")
        assert "Ask the operator of this server" in answer.json()["detail"]
        assert browser.post("/new/", self.BODY).status_code == browser.get("/new/").status_code == 403
        assert "/new/" not in browser.get("/").content.decode()
        assert not Project.objects.filter(slug="mine").exists()
        call_command("allow_founding", cast.boris.email, stdout=StringIO())
        assert "/new/" in browser.get("/").content.decode()
        assert browser.post("/api/v1/projects/", self.BODY, "application/json").status_code == 201
        call_command("allow_founding", cast.boris.email, "--revoke", stdout=StringIO())
        assert browser.post("/new/", {"name": "More", "slug": "more"}).status_code == 403
        assert list(
            AuditEntry.objects.filter(subject="accounts.User", subject_pk=cast.boris.pk).values_list("verb", flat=True)
        ) == [
            "forbid founding",
            "allow founding",
        ]

    def test_the_first_account_and_those_made_for_it_may(self, db: None) -> None:
        for email, extra in (("first@x.test", []), ("second@x.test", []), ("third@x.test", ["--may-found"])):
            call_command("create_user", email, *extra, stdout=StringIO())
        may = User.objects.order_by("pk").values_list("may_found_projects", flat=True)
        assert list(may) == [True, False, True]


def test_nobody_signs_up_without_an_invitation(cast: Cast) -> None:
    Client().post("/account/signup/", {"email": "new@panelbench.test", "password1": "a long enough one"})
    assert not User.objects.filter(email="new@panelbench.test").exists()


@pytest.mark.parametrize("end", ["expired", "revoked"])
def test_a_closed_invitation_lets_nobody_in(cast: Cast, end: str) -> None:
    invitation, secret = people.invite(project=cast.kassa, role=Role.LEAD, created_by=cast.aino)
    if end == "expired":
        Invitation.objects.filter(pk=invitation.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    else:
        people.revoke_invitation(invitation=invitation, actor=cast.aino)
    with pytest.raises(people.InvitationClosed):
        people.accept(secret=secret, user=cast.zoltan)
    assert not Membership.objects.filter(project=cast.kassa, user=cast.zoltan).exists()


def test_the_stored_invitation_does_not_hold_its_secret(cast: Cast) -> None:
    secret = _link(cast).split("/")[2]
    assert secret not in str(Invitation.objects.values().get())


def test_a_project_keeps_a_lead(cast: Cast) -> None:
    own = Membership.objects.get(project=cast.kassa, user=cast.aino)
    with pytest.raises(Refused, match="needs a lead"):
        people.change_role(member=own, role=Role.RESEARCHER, actor=cast.aino)
    with pytest.raises(Refused, match="needs a lead"):
        people.remove_member(member=own, actor=cast.aino)
    assert Membership.objects.get(pk=own.pk).role == Role.LEAD


def test_a_taken_address_is_refused_in_words(cast: Cast) -> None:
    page = cast.client("aino").post("/new/", {"name": "Kassa again", "slug": "kassa"})
    assert "is already in use" in page.content.decode()


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
        _token, secret = tokens.issue(user=cast.aino, name="script", scope=Scope.WRITE)
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
            tokens.revoke_token(token=token)
        elif end == "expired":
            Token.objects.filter(pk=token.pk).update(expires_at=timezone.now())
        else:
            User.objects.filter(pk=cast.boris.pk).update(is_active=False)
        status, body = self.get(secret)
        assert (status, body["code"]) == (401, "authentication_failed")

    def test_a_stored_token_does_not_hold_its_secret(self, cast: Cast) -> None:
        _token, secret = tokens.issue(user=cast.boris, name="script", scope=Scope.READ)
        assert secret not in str(Token.objects.values().get())
