"""What browsers are told and what they cannot be made to do: headers, forged forms, redirects."""

from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import User
from tests.cast import Cast


def test_every_answer_carries_the_headers(db: None) -> None:
    answer = Client().get("/account/login/")
    policy = answer["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert (answer["X-Content-Type-Options"], answer["X-Frame-Options"]) == ("nosniff", "DENY")
    assert answer["Referrer-Policy"] == "same-origin"
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.parametrize("path", ["/me/", "/p/kassa/people/", "/me/erase/", "/me/tokens/", "/api/v1/projects/"])
def test_a_form_from_another_site_does_nothing(cast: Cast, path: str) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(cast.aino)
    assert browser.post(path, {"name": "Forged"}).status_code == 403
    assert User.objects.get(pk=cast.aino.pk).name == "Aino"


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_no_redirect_leads_out_of_the_site(cast: Cast, target: str) -> None:
    assert Client().post("/language/", {"language": "et", "next": target})["Location"] == "/"
    form = {"login": cast.aino.email, "password": "correct horse battery", "next": target}
    assert Client().post("/account/login/", form)["Location"] == "/"


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/docs/", "/api/schema/"])
def test_the_documentation_answers_each_method(path: str) -> None:
    """OPTIONS at /api/docs/ looked for a template that it has not: 500."""
    browser = Client(raise_request_exception=False)
    methods = ("get", "head", "options", "post", "put", "patch", "delete", "trace")
    codes = {name: getattr(browser, name)(path).status_code for name in methods}
    assert (codes["get"], codes["head"]) == (200, 200)
    assert max(codes.values()) < 500, codes
