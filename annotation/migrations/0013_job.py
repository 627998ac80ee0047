"""An import refers to its newest job."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ('accounts', '0008_jobs'),
        ('annotation', '0012_plain_labels'),
    ]

    operations = [
        migrations.AddField(
            model_name='import',
            name='job',
            field=models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.job'),
        ),
    ]
