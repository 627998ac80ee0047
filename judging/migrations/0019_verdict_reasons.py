"""Why a verdict has no score on the scale."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("judging", "0018_stored_providers")]

    operations: ClassVar = [
        migrations.AddField(model_name="verdict", name="reason", field=models.JSONField(null=True)),
    ]
