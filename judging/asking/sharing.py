"""How workers share their time: whether other work waits, of any kind of leased rows (judging/asking/leases.py)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from django.db.models import Model, QuerySet
from django.utils import timezone


class SharedWork(Protocol):
    """A kind of leased rows."""

    def unattended(self, now: datetime) -> QuerySet[Any]:
        """What may ask and has due rows, and no worker."""


_kinds: dict[str, Callable[[], SharedWork]] = {}


def register_rows(name: str, kind: Callable[[], SharedWork]) -> None:
    """Let the workers share their time among these rows and the others; called from `ready` of an app's configuration.

    ``kind`` is called when it is needed, so that its module is imported late.
    """
    _kinds[name] = kind


def other_work_waits(kind: SharedWork, asker: Model) -> bool:
    """Whether anything else has due rows and no worker: another asker of this kind, or one of another kind."""
    now = timezone.now()
    if kind.unattended(now).exclude(pk=asker.pk).exists():
        return True
    others = [other() for other in _kinds.values()]
    return any(other.unattended(now).exists() for other in others if other is not kind)
