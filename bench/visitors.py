"""People who come to a running instance as its users do: by command, invitation link and pages.

Nothing here imports the product: an account is made by `panelbench create_user`, others sign up behind a link that the
lead makes on the page of people, and everybody makes a token on their own page.
"""

from __future__ import annotations

import html
import re
import secrets
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from panelbench_client import Client

_FORM = re.compile(r"<form\b([^>]*)>(.*?)</form>", re.DOTALL)
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')
_SECRET = re.compile(r'<code class="code code-wrap" id="(?:token|invitation-link)" dir="ltr">([^<]+)</code>')


@dataclass(slots=True)
class SignedUpPerson:
    """A signed-in person with a browser that runs no script, and a client with a token."""

    name: str
    email: str
    browser: httpx.Client
    password: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    client: Client = field(init=False)

    def get(self, path: str) -> str:
        """The page."""
        answer = self.browser.get(path)
        assert answer.status_code == 200, (path, answer.status_code)
        return answer.text

    def send(self, path: str, action: str = "", **entered: Any) -> httpx.Response:
        """Send a form of the page at ``path``, the one whose action is ``action``, with its hidden fields."""
        page = self.get(path)
        wanted = f'action="{action}"'
        bodies = [
            body for head, body in _FORM.findall(page) if wanted in head or (not action and "action=" not in head)
        ]
        answer = self.browser.post(action or path, data=hidden_fields("".join(bodies)) | entered)
        assert answer.status_code < 500, (path, answer.status_code)
        return answer

    def make_token(self, address: str, slug: str) -> None:
        shown = self.send("/me/tokens/", name="bench", scope="write", days="7")
        self.client = Client(address, _shown_secret(shown.text), slug)

    def close(self) -> None:
        self.browser.close()
        self.client.close()


def founder(address: str, name: str, *, project: str, slug: str) -> SignedUpPerson:
    """The first person of an instance, by command, with a project that they made on its page."""
    lead = _visitor(address, name)
    command = [sys.executable, "-m", "panelbench.cli", "create_user", lead.email, "--name", name, "--password-stdin"]
    subprocess.run(command, input=f"{lead.password}\n", text=True, check=True, stdout=subprocess.DEVNULL)
    lead.send("/account/login/", "/account/login/", login=lead.email, password=lead.password)
    lead.send("/new/", name=project, slug=slug)
    lead.make_token(address, slug)
    return lead


def invited(address: str, lead: SignedUpPerson, names: Sequence[str], *, slug: str) -> list[SignedUpPerson]:
    """Annotators who sign up behind a link that the lead made."""
    visitors = []
    for name in names:
        visitor = _visitor(address, name)
        link = _shown_secret(lead.send(f"/p/{slug}/people/", role="annotator", email=visitor.email, days="7").text)
        visitor.get(link.removeprefix(address))
        signed_up = {"email": visitor.email, "password1": visitor.password}
        visitor.send("/account/signup/", "/account/signup/", **signed_up)
        visitor.send("/me/", name=name, languages="", ui_language="en")
        visitor.make_token(address, slug)
        visitors.append(visitor)
    return visitors


def hidden_fields(page: str) -> dict[str, str]:
    """The hidden fields of forms, by name."""
    return {name: html.unescape(value) for name, value in _HIDDEN.findall(page)}


def page_words(page: str) -> str:
    """What a page says, for a message about it."""
    return " ".join(html.unescape(re.sub(r"<style.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)).split())[:2_000]


def _visitor(address: str, name: str) -> SignedUpPerson:
    browser = httpx.Client(base_url=address, headers={"Accept-Language": "en"}, timeout=60, follow_redirects=True)
    number = secrets.token_hex(4)
    return SignedUpPerson(name, f"person-{number}@panelbench.test", browser)


def _shown_secret(page: str) -> str:
    shown = _SECRET.search(page)
    assert shown, page_words(page)
    return html.unescape(shown[1])
