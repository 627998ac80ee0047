from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Count, F, Max
from django.utils import timezone


def finish_changes(apps: Any, _schema_editor: Any) -> None:
    changes = apps.get_model("annotation", "RubricChange")
    changes.objects.update(finished_at=F("at"))


def keep_newest(apps: Any, _schema_editor: Any) -> None:
    """Of two current annotations that one person has of an item in a duty, keep the newest."""
    current = {"superseded_at": None, "assignment__isnull": False}
    annotations = apps.get_model("annotation", "Annotation").objects.filter(**current)
    own = annotations.order_by().values("assignment__duty", "item", "annotator")
    for row in own.annotate(count=Count("pk"), newest=Max("pk")).filter(count__gt=1):
        of_one = {name: row[name] for name in ("assignment__duty", "item", "annotator")}
        older = annotations.filter(**of_one, pk__lt=row["newest"]).values_list("pk", flat=True)
        annotations.filter(pk__in=list(older)).update(superseded_at=timezone.now())


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0017_rubric_jobs"),
        ("annotation", "0031_rubric_changes"),
    ]

    operations = [
        migrations.AddField(
            model_name="rubricchange",
            name="job",
            field=models.OneToOneField(
                editable=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="accounts.job",
            ),
        ),
        migrations.AddField(
            model_name="rubricchange",
            name="qualify_again",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="rubricchange",
            name="finished_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.RunPython(finish_changes, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(keep_newest, migrations.RunPython.noop, elidable=True),
    ]
