
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_webhooks'),
        ('annotation', '0005_studies'),
        ('judging', '0002_continuing'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ProviderAllowance',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('provider', models.CharField(max_length=80, verbose_name='provider')),
                ('cap_total', models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                ('cap_per_day', models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                'ordering': ['project', 'provider'],
            },
        ),
        migrations.AddField(
            model_name='attempt',
            name='estimated',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='attempt',
            name='reserved',
            field=models.DecimalField(decimal_places=8, max_digits=12, null=True),
        ),
        migrations.AddField(
            model_name='judge',
            name='concurrency',
            field=models.PositiveSmallIntegerField(null=True, verbose_name='calls in flight at most'),
        ),
        migrations.AddField(
            model_name='judge',
            name='timeout',
            field=models.PositiveSmallIntegerField(null=True, verbose_name='seconds for a reply'),
        ),
        migrations.AddField(
            model_name='judge',
            name='tries',
            field=models.PositiveSmallIntegerField(null=True, verbose_name='tries'),
        ),
        migrations.AddField(
            model_name='judgerun',
            name='key',
            field=models.CharField(max_length=100, null=True),
        ),
        migrations.AddField(
            model_name='judgerun',
            name='width',
            field=models.PositiveSmallIntegerField(null=True),
        ),
        migrations.AlterField(
            model_name='attempt',
            name='outcome',
            field=models.CharField(choices=[('pending', 'Not sent yet'), ('sent', 'Sent'), ('lost', 'Lost'), ('replied', 'Replied'), ('unavailable', 'Unavailable'), ('refused', 'Refused')], max_length=11),
        ),
        migrations.AddIndex(
            model_name='attempt',
            index=models.Index(fields=['at'], name='attempt_by_time'),
        ),
        migrations.AddConstraint(
            model_name='attempt',
            constraint=models.UniqueConstraint(condition=models.Q(('outcome__in', ['pending', 'sent'])), fields=('call',), name='attempt_open_once'),
        ),
        migrations.AddConstraint(
            model_name='judgerun',
            constraint=models.UniqueConstraint(fields=('project', 'key'), name='run_key_unique'),
        ),
        migrations.AddField(
            model_name='providerallowance',
            name='project',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project'),
        ),
        migrations.AddConstraint(
            model_name='providerallowance',
            constraint=models.UniqueConstraint(fields=('project', 'provider'), name='allowance_once'),
        ),
        migrations.AddConstraint(
            model_name='providerallowance',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('cap_total', None), ('cap_total__gte', 0), _connector='OR'), models.Q(('cap_per_day', None), ('cap_per_day__gte', 0), _connector='OR')), name='allowance_caps_not_negative'),
        ),
    ]
