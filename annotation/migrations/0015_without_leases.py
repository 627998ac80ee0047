"""Lease, heartbeat and progress of an import are in its job."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ('annotation', '0014_running_jobs'),
    ]

    operations = [
        migrations.RemoveField(model_name='import', name='beat_at'),
        migrations.RemoveField(model_name='import', name='done'),
        migrations.RemoveField(model_name='import', name='lease'),
        migrations.RemoveField(model_name='import', name='total'),
    ]
