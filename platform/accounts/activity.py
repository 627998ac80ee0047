"""What happened to somebody's account: sign-ins and changes, kept in the audit trail and shown to its owner."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts import audit
from accounts.models import AuditEntry, User

SIGN_IN, SIGN_IN_FAILED, CODE_FAILED = "sign in", "sign-in failed", "code failed"
REVOKE_TOKENS, END_SESSIONS = "revoke tokens", "end sessions"
SENTENCES = {
    SIGN_IN: _("Signed in"),
    SIGN_IN_FAILED: _("A sign-in with a wrong password"),
    CODE_FAILED: _("A sign-in with a wrong code"),
    "password changed": _("Password changed"),
    "password set": _("Password changed"),
    "password reset": _("Password changed through a link in an e-mail"),
    "email changed": _("E-mail address changed"),
    "email deleted": _("E-mail address removed"),
    "email confirm": _("E-mail address confirmed"),
    "totp activated": _("Authenticator app added"),
    "totp deactivated": _("Authenticator app removed"),
    "webauthn added": _("Passkey added"),
    "webauthn removed": _("Passkey removed"),
    "recovery codes generated": _("Recovery codes created"),
    "issue token": _("API token created"),
    "revoke token": _("API token revoked"),
    REVOKE_TOKENS: _("All API tokens revoked"),
}
SHOWN = 20


class Happening(NamedTuple):
    """One line of the list an owner sees."""

    at: datetime
    sentence: str


def record(*, verb: str, user_pk: int | None, by: User | None = None) -> None:
    """Append an entry about an account; `user_pk` None: of no account here, kept so that both take equal work."""
    AuditEntry.objects.create(actor=by, verb=verb, subject=audit.label(User), subject_pk=user_pk)


def record_failure(*, email: str) -> None:
    """A sign-in with this address failed. The address itself is not kept."""
    found = User.objects.filter(email=email.strip().lower()).values_list("pk", flat=True).first()
    record(verb=SIGN_IN_FAILED, user_pk=found)


def recent(*, user: User) -> list[Happening]:
    """The newest entries about somebody's account and tokens."""
    own = Q(subject=audit.label(User), subject_pk=user.pk) | Q(actor=user, verb__in=("issue token", "revoke token"))
    entries = AuditEntry.objects.filter(own).order_by("-pk")[:SHOWN]
    return [Happening(entry.at, str(SENTENCES.get(entry.verb, entry.verb))) for entry in entries]
