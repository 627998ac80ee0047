"""API tokens: shown once, stored as a digest, revocable, with an expiry date."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from accounts import audit
from accounts.models import Project, Scope, Token, User

PREFIX = "pb_"
LAST_USED_GRAIN = timedelta(minutes=1)


def token_digest(secret: str) -> str:
    """The digest that is stored instead of the token."""
    return hashlib.sha256(secret.encode()).hexdigest()


def issue(*, user: User, name: str, scope: Scope, days: int = 90, project: Project | None = None) -> tuple[Token, str]:
    """Create a token. The secret is returned once and not stored."""
    secret = PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        token = Token.objects.create(
            user=user,
            name=name,
            scope=scope,
            project=project,
            digest=token_digest(secret),
            expires_at=timezone.now() + timedelta(days=days),
        )
        audit.record(actor=user, project=project, verb="issue token", subject=token, fields=["scope"])
    return token, secret


def find_token(secret: str) -> Token | None:
    """The valid token with this secret, with its owner. Stores the time of use at most once a minute.

    A token that is for one project is not valid while that is deleted.
    """
    live = Token.objects.live().select_related("user").filter(project__deletion=None)
    token = live.filter(digest=token_digest(secret)).first()
    now = timezone.now()
    if token and (token.last_used_at is None or token.last_used_at < now - LAST_USED_GRAIN):
        Token.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def revoke_all(*, user: User) -> int:
    """Revoke all valid tokens of a user, because their password changed. Returns their number."""
    with transaction.atomic():
        ended = Token.objects.live().filter(user=user).update(revoked_at=timezone.now())
        if ended:
            audit.record_activity(verb=audit.REVOKE_TOKENS, user_pk=user.pk, by=user)
    return ended


def revoke_token(*, token: Token) -> None:
    """Revoke a token."""
    with transaction.atomic():
        Token.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now())
        audit.record(actor=token.user, project=token.project, verb="revoke token", subject=token)
