"""Large imports are undone under a job."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0010_webhook_jobs'),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name='job',
            name='job_kind_known',
        ),
        migrations.AlterField(
            model_name='job',
            name='kind',
            field=models.CharField(choices=[('check', 'Check of an import'), ('store', 'Import'), ('undo', 'Undo of an import'), ('export', 'Export'), ('bundle', 'Bundle import'), ('deliveries', 'Webhook deliveries'), ('numbers', 'Numbers of a campaign')], max_length=10),
        ),
        migrations.AddConstraint(
            model_name='job',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['check', 'store', 'undo', 'export', 'bundle', 'deliveries', 'numbers'])), name='job_kind_known'),
        ),
    ]
