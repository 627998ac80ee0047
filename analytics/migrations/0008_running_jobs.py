"""Transfers become jobs: those that wait or are under way go on, and of the others jobs keep how much was done."""

from datetime import timedelta
from typing import Any

from django.db import migrations

LEASE_TIMEOUT = timedelta(minutes=2)
STATES = {"waiting": "waiting", "working": "running", "done": "finished", "failed": "failed"}


def forwards(apps: Any, editor: Any) -> None:
    Job = apps.get_model("accounts", "Job")
    for row in apps.get_model("analytics", "Transfer").objects.iterator():
        state = STATES[row.state]
        row.job = Job.objects.create(
            project=row.project,
            owner=row.created_by,
            kind=row.kind,
            state=state,
            done=row.done,
            total=row.total,
            unit="rows",
            tries=row.tries,
            sentence=row.sentence if state == "failed" else "",
            lease=row.lease,
            lease_until=row.beat_at + LEASE_TIMEOUT if state == "running" else None,
            beat_at=row.beat_at if row.tries else None,
            sent_at=row.beat_at,
            due_at=row.beat_at + LEASE_TIMEOUT,
            created_at=row.created_at,
            started_at=row.created_at if row.tries else None,
            ended_at=row.beat_at if state in ("finished", "failed") else None,
        )
        row.state = "waiting" if row.state == "working" else row.state
        row.lease = None
        row.save(update_fields=["job", "state", "lease"])


class Migration(migrations.Migration):
    dependencies = [
        ('analytics', '0007_job'),
    ]

    operations = [migrations.RunPython(forwards, migrations.RunPython.noop)]
