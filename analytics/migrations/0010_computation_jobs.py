"""A computation has a job in place of a lease; tries, reason and the time of the next try are kept."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0009_plain_job_labels'),
        ('analytics', '0009_without_leases'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='computation',
            name='lease',
        ),
        migrations.RemoveField(
            model_name='computation',
            name='lease_ends_at',
        ),
        migrations.AddField(
            model_name='computation',
            name='asked',
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name='computation',
            name='job',
            field=models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.job'),
        ),
        migrations.AlterField(
            model_name='computation',
            name='reason',
            field=models.CharField(choices=[('ended', 'The worker stopped before it had finished.'), ('long', 'It took longer than %(detail)s minutes and was stopped.'), ('table', "The ratings can't be used: %(detail)s"), ('fault', 'An error in Panelbench: %(detail)s'), ('cancelled', '%(detail)s')], default='ended', max_length=9),
        ),
    ]
