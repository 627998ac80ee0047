"""Lease, heartbeat, progress and tries of a transfer are in its job."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ('analytics', '0008_running_jobs'),
    ]

    operations = [
        migrations.RemoveField(model_name='transfer', name='beat_at'),
        migrations.RemoveField(model_name='transfer', name='done'),
        migrations.RemoveField(model_name='transfer', name='lease'),
        migrations.RemoveField(model_name='transfer', name='total'),
        migrations.RemoveField(model_name='transfer', name='tries'),
        migrations.AddConstraint(
            model_name='transfer',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'done', 'failed'])), name='transfer_state_known'),
        ),
    ]
