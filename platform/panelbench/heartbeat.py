"""Heartbeats: workers and the scheduler write one row each every few seconds, and pages read how old they are.

A row that is overwritten cannot drift like a counter: the heartbeat of a killed process simply becomes old.
"""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

INTERVAL = 10.0  # seconds between two signs of life
SILENCE = timedelta(seconds=35)  # three missed signs and some slack
WORKER, BEAT = "worker", "beat"


def pulse(kind: str, name: str) -> None:
    """Write that the process ``name`` of this ``kind`` is alive now."""
    from accounts.models import Heartbeat

    Heartbeat.objects.update_or_create(name=name, defaults={"kind": kind, "seen_at": timezone.now()})


def silent() -> list[str]:
    """The kinds of process (worker, beat) not heard of lately; one query."""
    from accounts.models import Heartbeat

    recent = Heartbeat.objects.filter(seen_at__gte=timezone.now() - SILENCE)
    heard = set(recent.values_list("kind", flat=True))
    return [kind for kind in (WORKER, BEAT) if kind not in heard]
