"""Imports that are being checked or stored become jobs and go on; of those that ended, jobs keep how much was done."""

from datetime import timedelta
from typing import Any

from django.db import migrations
from django.utils import timezone

LEASE_TIMEOUT = timedelta(minutes=2)


def forwards(apps: Any, editor: Any) -> None:
    every = apps.get_model("annotation", "Import").objects.filter(part_of=None)
    Job = apps.get_model("accounts", "Job")
    for row in every.filter(state__in=["checking", "storing"]).iterator():
        began, is_held = row.beat_at or row.state_since, row.lease is not None
        row.job = Job.objects.create(
            **_told(row),
            kind="check" if row.state == "checking" else "store",
            state="running" if is_held else "waiting",
            lease=row.lease,
            lease_until=began + LEASE_TIMEOUT if is_held else None,
            beat_at=row.beat_at,
            sent_at=began,
            due_at=began + LEASE_TIMEOUT,
            started_at=row.state_since if is_held else None,
        )
        row.save(update_fields=["job"])
    for row in every.filter(state__in=["uploaded", "stored", "failed"]).exclude(done=0, total=0).iterator():
        row.job = Job.objects.create(
            **_told(row),
            kind="check" if row.state == "uploaded" else "store",
            state="failed" if row.state == "failed" else "finished",
            sentence=row.report.get("sentence", "") if row.state == "failed" else "",
            started_at=row.beat_at,
            ended_at=row.state_since,
        )
        row.save(update_fields=["job"])


def _told(row: Any) -> dict[str, Any]:
    tries = row.report.get("tries", 0)
    counted = {"done": row.done, "total": row.total, "unit": "bytes", "tries": tries if isinstance(tries, int) else 0}
    return {"project": row.project, "owner": row.created_by, "created_at": row.state_since or timezone.now(), **counted}


class Migration(migrations.Migration):
    dependencies = [
        ('annotation', '0013_job'),
    ]

    operations = [migrations.RunPython(forwards, migrations.RunPython.noop)]
