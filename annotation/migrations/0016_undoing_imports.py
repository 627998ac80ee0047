"""Large imports are undone under a job."""

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0011_undo_jobs'),
        ('annotation', '0015_without_leases'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='import',
            name='import_state_known',
        ),
        migrations.AlterField(
            model_name='import',
            name='state',
            field=models.CharField(choices=[('uploaded', 'Uploaded'), ('checking', 'Being checked'), ('storing', 'Being stored'), ('stored', 'Stored'), ('undoing', 'Being undone'), ('failed', 'Failed')], default='uploaded', max_length=10),
        ),
        migrations.AddConstraint(
            model_name='import',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['uploaded', 'checking', 'storing', 'stored', 'undoing', 'failed'])), name='import_state_known'),
        ),
    ]
