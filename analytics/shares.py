"""Share links: whoever holds one reads the numbers of one campaign, without an account, until it ends."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from accounts import audit
from accounts.models import User
from analytics.models import Share
from annotation.models import Campaign

LAST_USED_GRAIN = timedelta(minutes=1)
LONGEST_SECRET = 64


def share_digest(secret: str) -> str:
    """What is stored of a link's secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def make(*, campaign: Campaign, label: str, days: int | None = None, actor: User) -> tuple[Share, str]:
    """Make a link, for so many ``days`` or until it is revoked; its secret of 256 bits is returned once."""
    secret = secrets.token_urlsafe(32)
    ends = timezone.now() + timedelta(days=days) if days else None
    with transaction.atomic():
        share = Share.objects.create(
            campaign=campaign, label=label, digest=share_digest(secret), expires_at=ends, created_by=actor
        )
        audit.record(actor=actor, project=campaign.project, verb="share campaign", subject=share)
    return share, secret


def find_share(secret: str) -> Share | None:
    """The live link behind a secret, its campaign loaded; notes its use at most once a minute."""
    if len(secret) > LONGEST_SECRET:
        return None
    loaded = Share.objects.live().select_related("campaign__project", "campaign__rubric_version__rubric__project")
    share = loaded.filter(digest=share_digest(secret)).first()
    now = timezone.now()
    if share and (share.last_used_at is None or share.last_used_at < now - LAST_USED_GRAIN):
        Share.objects.filter(pk=share.pk).update(last_used_at=now)
    return share


def revoke_share(*, share: Share, actor: User) -> None:
    """Revoke a link."""
    with transaction.atomic():
        Share.objects.filter(pk=share.pk, revoked_at=None).update(revoked_at=timezone.now())
        audit.record(actor=actor, project=share.campaign.project, verb="revoke share", subject=share)
