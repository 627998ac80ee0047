from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

FIELDS = ("decision", "comment", "decided_by", "decided_at")


def keep_decisions(apps: Any, schema_editor: Any) -> None:
    """A row for the decision of each submission."""
    decisions = apps.get_model("annotation", "WritingDecision")
    decided = apps.get_model("annotation", "WritingSubmission").objects.exclude(decision="")
    for submission in decided.order_by("decided_at", "pk").iterator(1_000):
        decisions.objects.create(
            submission=submission,
            decision=submission.decision,
            comment=submission.comment,
            decided_by_id=submission.decided_by_id,
            decided_at=submission.decided_at or submission.submitted_at,
        )


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("annotation", "0039_prompt_codes"),
    ]

    operations = [
        migrations.CreateModel(
            name="WritingDecision",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "decision",
                    models.CharField(choices=[("accepted", "Accepted"), ("returned", "Sent back")], max_length=8),
                ),
                ("comment", models.TextField(blank=True)),
                ("decided_at", models.DateTimeField()),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "submission",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="decisions",
                        to="annotation.writingsubmission",
                    ),
                ),
            ],
            options={"ordering": ["pk"]},
        ),
        migrations.RunPython(keep_decisions, migrations.RunPython.noop, elidable=True),
        *(migrations.RemoveField("writingsubmission", field) for field in FIELDS),
    ]
