"""Send e-mail about accounts from workers, so that response times do not reveal whether an account exists."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from allauth.account.adapter import get_adapter
from allauth.account.forms import default_token_generator
from allauth.account.utils import filter_users_by_email, user_pk_to_url_str
from django.conf import settings
from django.core.mail import send_mail
from django.urls import reverse
from django.utils import translation


class Site(NamedTuple):
    """The site's name and domain, as allauth's mail templates need them."""

    name: str
    domain: str


def mail_text(*, subject: str, body: str, to: list[str]) -> None:
    """Send a mail that is already rendered."""
    send_mail(subject, body, settings.DEFAULT_FROM_EMAIL, to)


def mail_password_reset(*, email: str, root: str, language: str) -> None:
    """Mail a link for a new password to every account with this address; if there is none, send nothing."""
    host = urlsplit(root).netloc
    for user in filter_users_by_email(email, is_active=True, prefer_verified=True):
        uid, key = user_pk_to_url_str(user), default_token_generator.make_token(user)
        path = reverse("account_reset_password_from_key", kwargs={"uidb36": uid, "key": key})
        written = {"user": user, "password_reset_url": root.rstrip("/") + path, "current_site": Site(host, host)}
        with translation.override(user.ui_language or language):
            get_adapter().render_mail("account/email/password_reset_key", user.email, written).send()
