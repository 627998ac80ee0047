"""Share links: with a link, people without an account can read the numbers of one campaign until the link expires or is
revoked."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Any

from django.core.cache import caches
from django.db import transaction
from django.utils import timezone

from accounts import audit
from accounts.models import User
from analytics.answers import revisions
from analytics.exporting import exports
from analytics.models import Share, Snapshot
from annotation.exports import pseudonyms
from annotation.models import Campaign
from judging.models import Judge

_LAST_USED_GRAIN = timedelta(minutes=1)
LONGEST_SECRET = 64
MOST_DIGESTED = 20_000
"""The page computes the digest of a shared file only if the file has at most this many rows."""
KEPT_DIGEST = 600  # seconds


def share_digest(secret: str) -> str:
    """The digest that is stored instead of a link's secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def make(
    *, campaign: Campaign, label: str, days: int | None = None, shows_generators: bool = False, actor: User
) -> tuple[Share, str]:
    """Create a link that is valid for ``days``, or without ``days`` until it is revoked. Also returns its secret of 256
    bits, which is not stored.

    Generators, scenarios and attributes of items are shown only if ``shows_generators`` is set.
    """
    secret = secrets.token_urlsafe(32)
    ends = timezone.now() + timedelta(days=days) if days else None
    with transaction.atomic():
        share = Share.objects.create(
            campaign=campaign,
            label=label,
            digest=share_digest(secret),
            expires_at=ends,
            shows_generators=shows_generators,
            created_by=actor,
        )
        audit.record(actor=actor, project=campaign.project, verb="share campaign", subject=share)
    return share, secret


def find_share(secret: str) -> Share | None:
    """The live link behind a secret, its campaign loaded; notes its use at most once a minute.

    None while the project is deleted.
    """
    if len(secret) > LONGEST_SECRET:
        return None
    loaded = Share.objects.live().select_related("campaign__project", "campaign__rubric_version__rubric__project")
    share = loaded.filter(digest=share_digest(secret), campaign__project__deletion=None).first()
    now = timezone.now()
    if share and (share.last_used_at is None or share.last_used_at < now - _LAST_USED_GRAIN):
        Share.objects.filter(pk=share.pk).update(last_used_at=now)
    return share


def revoke_share(*, share: Share, actor: User) -> None:
    """Revoke a link."""
    with transaction.atomic():
        Share.objects.filter(pk=share.pk, revoked_at=None).update(revoked_at=timezone.now())
        audit.record(actor=actor, project=share.campaign.project, verb="revoke share", subject=share)


# --- the files of a link ---------------------------------------------------------------------------------------------
def shared_export(share: Share, table: str) -> exports.Export:
    """The campaign's scores or items as CSV: pseudonyms of this link, and no rationales."""
    options = exports.Options(renumbered=share.pk, rationales=False, hides_generators=not share.shows_generators)
    subject = share.campaign.dataset if table == "items" else share.campaign
    return exports.checked_export(
        project=share.campaign.project, what=table, kind="csv", subject=subject, options=options
    )


def shared_snapshot(share: Share, snapshot: Snapshot) -> Snapshot:
    """The snapshot as this link shows it: without rows about single generators or scenarios, unless the link has
    ``shows_generators``."""
    if not share.shows_generators:
        snapshot.content = {name: _without_origin(part) for name, part in snapshot.content.items()}
    return snapshot


def _without_origin(part: Any) -> Any:
    """A part of a snapshot without the rows that have a generator or scenario."""
    if not isinstance(part, list):
        return part
    return [row for row in part if not (isinstance(row, dict) and {"generator", "scenario"} & row.keys())]


def file_digest(share: Share, table: str) -> str:
    """The SHA-256 of the file of `shared_export` with its current content."""
    digest = hashlib.sha256()
    for piece in exports.export_pieces(shared_export(share, table)):
        digest.update(piece)
    return digest.hexdigest()


def scores_digest(share: Share) -> str:
    """The SHA-256 of the file of scores, cached until something in it changes; empty if the file has more than
    `MOST_DIGESTED` rows."""
    if exports.row_count(shared_export(share, "scores")) > MOST_DIGESTED:
        return ""
    names = [
        *sorted(pseudonyms(share.campaign.project, share.pk).items()),
        *share.campaign.duties.order_by("pk").values_list("name", "panel__name"),
        *Judge.objects.filter(project=share.campaign.project_id).order_by("pk").values_list("name", flat=True),
        share.campaign.name,
    ]
    link = f"{share.pk} {share.shows_generators}"
    state = f"{link} {revisions.code_version()} {revisions.snapshot_revision(share.campaign)} {names}"
    key = f"shared-digest:{hashlib.sha256(state.encode()).hexdigest()}"
    cache = caches["content"]
    if (kept := cache.get(key)) is None:
        cache.set(key, kept := file_digest(share, "scores"), KEPT_DIGEST)
    return str(kept)
