"""A webhook refers to the job that sends its deliveries."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0009_plain_job_labels'),
    ]

    operations = [
        migrations.AddField(
            model_name='webhook',
            name='job',
            field=models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.job'),
        ),
    ]
