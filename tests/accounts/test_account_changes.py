"""Signing in and out, changes of an account and what its owner is told of them, through HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
import time_machine
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.contrib.auth.password_validation import validate_password
from django.core import mail
from django.core.exceptions import ValidationError
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from zeal import zeal_ignore

from accounts import tokens
from accounts.models import AuditEntry, Scope, User
from panelbench.celery import app
from tests.cast import PASSWORD, Cast
from tests.workers import absent_broker

NEW = "another long enough one"


@pytest.fixture
def mailed(django_capture_on_commit_callbacks: Callable[..., object]) -> Iterator[object]:
    """Mails that are asked for in here are written by this process, into its outbox."""
    app.conf.task_always_eager = True
    yield django_capture_on_commit_callbacks(execute=True)
    app.conf.task_always_eager = False


def signed_in(cast: Cast, name: str = "maarika", password: str = PASSWORD) -> Client:
    browser = Client()
    answer = browser.post("/account/login/", {"login": getattr(cast, name).email, "password": password})
    assert answer.status_code == 302
    return browser


def change_password(browser: Client) -> None:
    form = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    assert browser.post("/account/password/change/", form).status_code == 302


def opens(secret: str) -> bool:
    return Client().get("/api/v1/me/", headers={"authorization": f"Bearer {secret}"}).status_code == 200


def activity(browser: Client) -> str:
    page = browser.get("/me/").content.decode()
    return page[page.index("activity-head") :]


class TestTokens:
    @pytest.fixture
    def secret(self, cast: Cast) -> str:
        _token, secret = tokens.issue(user=cast.maarika, name="script", scope=Scope.READ)
        assert opens(secret)
        return secret

    def test_a_changed_password_ends_the_tokens_of_its_owner(self, cast: Cast, secret: str) -> None:
        _token, others = tokens.issue(user=cast.boris, name="script", scope=Scope.READ)
        browser = signed_in(cast)
        change_password(browser)
        assert not opens(secret)
        assert opens(others)
        assert "all API tokens are revoked" in browser.get("/account/login/").content.decode()

    def test_a_reset_password_ends_the_tokens(self, cast: Cast, secret: str, mailed: object) -> None:
        browser = Client()
        with mailed:  # type: ignore[attr-defined]
            browser.post("/account/password/reset/", {"email": "Maarika@panelbench.test"})
        link = re.search(r"http://testserver(/account/password/reset/key/\S+)", mail.outbox[-1].body).group(1)
        form = browser.get(link, follow=True).redirect_chain[-1][0]
        assert browser.post(form, {"password1": NEW, "password2": NEW}).status_code == 302
        assert not opens(secret)
        assert "Password changed through a link" in activity(signed_in(cast, password=NEW))

    def test_the_operators_new_password_ends_the_tokens(
        self, cast: Cast, secret: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("getpass.getpass", lambda prompt: NEW)
        call_command("changepassword", cast.maarika.email, stdout=StringIO())
        assert not opens(secret)
        assert User.objects.get(pk=cast.maarika.pk).check_password(NEW)


class TestActivity:
    def test_sign_ins_and_failures_are_kept_and_shown_to_the_owner(self, cast: Cast) -> None:
        Client().post("/account/login/", {"login": cast.maarika.email, "password": "wrong"})
        browser = signed_in(cast)
        kept = AuditEntry.objects.filter(subject="accounts.User", subject_pk=cast.maarika.pk)
        assert list(kept.values_list("verb", flat=True)) == ["sign in", "sign-in failed"]
        shown = activity(browser)
        assert "Signed in" in shown
        assert "wrong password" in shown
        assert "wrong password" not in activity(cast.client("layla"))

    def test_the_trail_holds_no_address(self, cast: Cast) -> None:
        Client().post("/account/login/", {"login": "nobody@panelbench.test", "password": "wrong"})
        kept = AuditEntry.objects.values().get(verb="sign-in failed")
        assert kept["subject_pk"] is None
        assert "nobody" not in str(kept)

    def test_the_owner_is_mailed_about_changes(self, cast: Cast, mailed: object) -> None:
        browser = signed_in(cast)
        with mailed:  # type: ignore[attr-defined]
            browser.post("/me/tokens/", {"name": "script", "scope": "read", "days": 30})
            change_password(browser)
        assert [(message.to, message.subject) for message in mail.outbox] == [
            ([cast.maarika.email], "[Panelbench] A new API token"),
            ([cast.maarika.email], "[Panelbench] Password Changed"),
        ]
        shown = activity(signed_in(cast, password=NEW))
        for sentence in ("API token created", "Password changed", "All API tokens revoked"):
            assert sentence in shown

    def test_a_wrong_code_is_kept(self, cast: Cast) -> None:
        TOTP.activate(cast.maarika, generate_totp_secret())
        browser = signed_in(cast)
        browser.post("/account/2fa/authenticate/", {"code": "000000"})
        assert AuditEntry.objects.filter(verb="code failed", subject_pk=cast.maarika.pk).exists()
        assert browser.get("/me/").status_code == 302


class TestSessions:
    @pytest.mark.parametrize(("step", "steps"), [(timedelta(hours=13), 1), (timedelta(hours=11), 16)])
    def test_a_session_ends_when_idle_and_in_any_case_after_a_week(
        self, cast: Cast, step: timedelta, steps: int
    ) -> None:
        with time_machine.travel(timezone.now(), tick=False) as clock:
            browser = cast.client("maarika")
            for number in range(steps):
                assert browser.get("/me/").status_code == 200, number
                clock.shift(step)
            assert browser.get("/me/").status_code == 302
            assert browser.get("/api/v1/me/").status_code == 401

    def test_other_browsers_can_be_signed_out(self, cast: Cast) -> None:
        with zeal_ignore():  # allauth looks at each of a person's own few sessions
            phone, laptop, others = signed_in(cast), signed_in(cast), signed_in(cast, "layla")
            assert "Sign out other sessions" in laptop.get("/account/sessions/").content.decode()
            laptop.post("/account/sessions/")
        assert phone.get("/me/").status_code == 302
        assert laptop.get("/me/").status_code == others.get("/me/").status_code == 200

    def test_a_changed_password_signs_out_every_browser(self, cast: Cast) -> None:
        phone, laptop = signed_in(cast), signed_in(cast)
        change_password(laptop)
        assert phone.get("/me/").status_code == 302


def test_a_reset_does_the_same_whether_or_not_the_address_is_registered(cast: Cast) -> None:
    def asked(email: str) -> tuple[int, str, list[str]]:
        with CaptureQueriesContext(connection) as queries:
            answer = Client().post("/account/password/reset/", {"email": email})
        return answer.status_code, answer["Location"], [query["sql"].replace(email, "ADDRESS") for query in queries]

    assert asked(cast.maarika.email) == asked("nobody@panelbench.test")
    assert not mail.outbox


def test_mails_do_not_get_lost_without_a_broker(
    cast: Cast, settings: Any, django_capture_on_commit_callbacks: Callable[..., Any]
) -> None:
    """What is changed is mailed by the request itself. Where that is impossible too, the change is kept."""
    if not settings.REDIS_URL:
        pytest.skip("needs Redis")
    browser = signed_in(cast)
    with absent_broker(), django_capture_on_commit_callbacks(execute=True):
        change_password(browser)
    changed = ([cast.maarika.email], "[Panelbench] Password Changed")
    assert [(sent.to, sent.subject) for sent in mail.outbox] == [changed]
    with absent_broker():
        page = Client().post("/account/password/reset/", {"email": cast.boris.email}).content.decode()
    assert "Mails can’t be sent at the moment." in page or "Mails can&#x27;t be sent at the moment." in page
    settings.EMAIL_BACKEND, settings.EMAIL_PORT = "django.core.mail.backends.smtp.EmailBackend", 1
    boris = signed_in(cast, "boris")
    with absent_broker(), django_capture_on_commit_callbacks(execute=True):
        change_password(boris)
    assert signed_in(cast, "boris", NEW).get("/me/").status_code == 200


class TestPasswords:
    @pytest.mark.parametrize(
        "password",
        [
            "password1234",
            "P4ssw0rd!2024",
            "qwertyuiopas",
            "12345678901234",
            "dragondragon",
            "aaaaaaaaaaab",
            "Panelbench2026",
        ],
    )
    def test_a_known_one_is_refused(self, cast: Cast, password: str) -> None:
        form = {"oldpassword": PASSWORD, "password1": password, "password2": password}
        assert "easy to guess" in signed_in(cast).post("/account/password/change/", form).content.decode()

    def test_a_short_one_is_refused(self) -> None:
        with pytest.raises(ValidationError, match="at least 12"):
            validate_password("elevenchars")

    @pytest.mark.parametrize("password", ["correct horse battery", "tere hommikust kallid", "x9!kQz_47vRt"])
    def test_a_good_one_is_taken(self, password: str) -> None:
        validate_password(password)
