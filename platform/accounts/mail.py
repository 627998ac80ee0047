"""Send e-mail about accounts from workers, so that response times do not reveal whether an account exists."""

from __future__ import annotations

import logging
from functools import partial
from typing import NamedTuple
from urllib.parse import urlsplit

from allauth.account.adapter import get_adapter
from allauth.account.forms import default_token_generator
from allauth.account.utils import filter_users_by_email, user_pk_to_url_str
from django.conf import settings
from django.core.mail import get_connection, send_mail
from django.urls import reverse
from django.utils import translation

from accounts import addresses, jobs

logger = logging.getLogger(__name__)

OWN_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
"""What a machine calls itself: no address for anybody else."""
IN_REQUEST = 5.0  # seconds that a web request waits for the mail server


class Site(NamedTuple):
    """The site's name and domain, as allauth's mail templates need them."""

    name: str
    domain: str


def site_address(path: str) -> str:
    """The public address of a page, for a mail.

    At ``SITE_ADDRESS`` if it is set; else at the host of the request that this runs in, unless that is this machine's
    own name and ALLOWED_HOSTS has another; else at the first host of ALLOWED_HOSTS, other names before this machine's.
    """
    if settings.SITE_ADDRESS:
        return f"{settings.SITE_ADDRESS}{path}"
    named = sorted((host for host in settings.ALLOWED_HOSTS if host.strip(".*")), key=_is_own_name)
    requested = addresses.REQUESTED_SITE.get()
    if requested and not (_is_own_name(urlsplit(requested).hostname or "") and named and not _is_own_name(named[0])):
        return f"{requested}{path}"
    if not named:
        return path
    return f"{'https' if settings.SECURE_SSL_REDIRECT else 'http'}://{named[0].lstrip('.')}{path}"


def _is_own_name(host: str) -> bool:
    return host.strip("[]") in OWN_NAMES


def is_sent() -> bool:
    """Whether this server sends mail; otherwise mails are only written to its log."""
    return not settings.EMAIL_BACKEND.endswith(("console.EmailBackend", "dummy.EmailBackend"))


def mail_text(*, subject: str, body: str, to: list[str], timeout: float | None = None) -> None:
    """Send a mail that is already rendered, with the mail server's ``timeout`` in seconds."""
    server = get_connection(timeout=timeout) if timeout else None
    send_mail(subject, body, settings.DEFAULT_FROM_EMAIL, to, connection=server)


def queue_text(*, subject: str, body: str, to: list[str]) -> None:
    """Let a worker send a rendered mail, once the transaction is committed; without a broker it is sent at once.

    A mail server that then refuses the mail or is away is logged: the change of the account is kept.
    """
    at_once = partial(_mail_at_once, subject=subject, body=body, to=to)
    jobs.enqueue_task("accounts.tasks.send_mail", subject, body, to, without_broker=at_once)


def _mail_at_once(*, subject: str, body: str, to: list[str]) -> None:
    try:
        mail_text(subject=subject, body=body, to=to, timeout=IN_REQUEST)
    except OSError:  # smtplib's errors are OSErrors
        logger.exception("neither the message broker nor the mail server is available; a mail is lost: %s", subject)


def mail_password_reset(*, email: str, root: str, language: str) -> None:
    """Mail a link for a new password to every account with this address; if there is none, send nothing."""
    host = urlsplit(root).netloc
    for user in filter_users_by_email(email, is_active=True, prefer_verified=True):
        uid, key = user_pk_to_url_str(user), default_token_generator.make_token(user)
        path = reverse("account_reset_password_from_key", kwargs={"uidb36": uid, "key": key})
        written = {"user": user, "password_reset_url": root.rstrip("/") + path, "current_site": Site(host, host)}
        with translation.override(user.ui_language or language):
            get_adapter().render_mail("account/email/password_reset_key", user.email, written).send()
