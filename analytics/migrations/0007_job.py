"""A transfer refers to its job."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ('accounts', '0008_jobs'),
        ('analytics', '0006_plain_labels'),
    ]

    operations = [
        migrations.AddField(
            model_name='transfer',
            name='job',
            field=models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.job'),
        ),
        migrations.RemoveConstraint(model_name='transfer', name='transfer_state_known'),
        migrations.RemoveConstraint(model_name='transfer', name='transfer_leased_while_working'),
    ]
