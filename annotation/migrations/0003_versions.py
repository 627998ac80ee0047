"""Dataset versions that extend earlier ones; every version so far is its only part."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

CHUNK = 5_000


def be_its_own_part(apps: Any, schema_editor: Any) -> None:
    dataset = apps.get_model("annotation", "Dataset")
    part = dataset.parts.through
    ready = dataset.objects.filter(state="ready").values_list("pk", flat=True)
    part.objects.bulk_create(
        [part(from_dataset_id=pk, to_dataset_id=pk) for pk in ready], batch_size=CHUNK, ignore_conflicts=True
    )


class Migration(migrations.Migration):
    dependencies = [("annotation", "0002_receiving")]

    operations = [
        migrations.AddField(
            model_name="dataset",
            name="extends",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="annotation.dataset",
            ),
        ),
        migrations.AddField(
            model_name="dataset",
            name="parts",
            field=models.ManyToManyField(editable=False, related_name="wholes", to="annotation.dataset"),
        ),
        migrations.AddField(
            model_name="duty",
            name="languages",
            field=models.JSONField(blank=True, default=list),
        ),
        migrations.RunPython(be_its_own_part, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="dataset",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "ready")), fields=("extends",), name="dataset_extended_once"
            ),
        ),
    ]
