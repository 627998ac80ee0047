"""The tables of an empty database; see docs/decisions/0035-squashed-migrations.md and 0066."""

import uuid

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from accounts.table_creation import CreateTables


class Migration(migrations.Migration):

    replaces = [('analytics', '0001_initial'), ('analytics', '0002_shares'), ('analytics', '0003_transfers'), ('analytics', '0004_computations'), ('analytics', '0005_charts'), ('analytics', '0006_plain_labels'), ('analytics', '0007_job'), ('analytics', '0008_running_jobs'), ('analytics', '0009_without_leases'), ('analytics', '0010_computation_jobs'), ('analytics', '0011_stored_cells'), ('analytics', '0012_gate'), ('analytics', '0013_share_shows_generators'), ('analytics', '0014_words_of_decisions')]

    initial = True

    dependencies = [
        ('accounts', '0012_decision_event'),
        ('annotation', '0016_undoing_imports'),
        ('judging', '0006_plain_labels'),
    ]

    operations = [
        CreateTables(
            operations=[
                migrations.CreateModel(
                    name='GateThresholds',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('number', models.PositiveSmallIntegerField()),
                        ('preset', models.CharField(choices=[('experts', 'Experts'), ('skilled', 'Skilled annotators'), ('crowd', 'Crowd')], max_length=8, verbose_name='who the annotators are')),
                        ('epsilon', models.FloatField()),
                        ('bias_margin', models.FloatField()),
                        ('flip_rate', models.FloatField()),
                        ('fewest_items', models.PositiveIntegerField()),
                        ('alpha_ceiling', models.FloatField()),
                        ('ac_ceiling', models.FloatField()),
                        ('omega', models.FloatField()),
                        ('readable', models.FloatField()),
                        ('tau_b', models.FloatField()),
                        ('tau_b_low', models.FloatField()),
                        ('audits', models.JSONField(default=list)),
                        ('figures_since', models.DateTimeField(null=True)),
                        ('declared_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('declared_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                    ],
                    options={
                        'verbose_name_plural': 'gate thresholds',
                        'ordering': ['-number'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'number'), name='thresholds_number_unique'), models.CheckConstraint(condition=models.Q(('preset__in', ['experts', 'skilled', 'crowd'])), name='thresholds_preset_known')],
                    },
                ),
                migrations.CreateModel(
                    name='GateDecision',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('criterion', models.CharField(max_length=60)),
                        ('language', models.CharField(max_length=35)),
                        ('decision', models.CharField(choices=[('stale', 'Must be measured again'), ('insufficient', 'Insufficient'), ('rubric_problem', 'Rubric problem'), ('judge_alone', 'Judge alone'), ('judge_with_correction', 'With correction'), ('ranking_only', 'Ranking only'), ('humans_only', 'Humans only')], max_length=21)),
                        ('former', models.CharField(blank=True, choices=[('stale', 'Must be measured again'), ('insufficient', 'Insufficient'), ('rubric_problem', 'Rubric problem'), ('judge_alone', 'Judge alone'), ('judge_with_correction', 'With correction'), ('ranking_only', 'Ranking only'), ('humans_only', 'Humans only')], max_length=21)),
                        ('facts', models.JSONField(default=dict)),
                        ('at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.campaign')),
                        ('judge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='judging.judge')),
                        ('thresholds', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='analytics.gatethresholds')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(fields=['campaign', 'judge', '-id'], name='gate_decision_history')],
                        'constraints': [models.CheckConstraint(condition=models.Q(('decision__in', ['stale', 'insufficient', 'rubric_problem', 'judge_alone', 'judge_with_correction', 'ranking_only', 'humans_only'])), name='gate_decision_known')],
                    },
                ),
                migrations.CreateModel(
                    name='Share',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('label', models.CharField(max_length=120)),
                        ('digest', models.CharField(max_length=64)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('expires_at', models.DateTimeField(null=True)),
                        ('last_used_at', models.DateTimeField(null=True)),
                        ('revoked_at', models.DateTimeField(null=True)),
                        ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.campaign')),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('shows_generators', models.BooleanField(default=False)),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'constraints': [models.UniqueConstraint(fields=('digest',), name='share_digest_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='Snapshot',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('revision', models.CharField(max_length=120)),
                        ('settings_digest', models.CharField(max_length=64)),
                        ('inputs_digest', models.CharField(max_length=64)),
                        ('seed', models.BigIntegerField()),
                        ('code_version', models.CharField(max_length=40)),
                        ('content', models.JSONField()),
                        ('seconds', models.FloatField()),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.campaign')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'constraints': [models.UniqueConstraint(fields=('campaign', 'revision', 'settings_digest', 'code_version'), name='snapshot_once')],
                    },
                ),
                migrations.CreateModel(
                    name='Chart',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('judge', models.TextField()),
                        ('criterion', models.TextField()),
                        ('wide', models.TextField()),
                        ('narrow', models.TextField()),
                        ('snapshot', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='charts', to='analytics.snapshot')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('snapshot', 'judge', 'criterion'), name='chart_of_snapshot_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='StoredCell',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('settings_digest', models.CharField(max_length=64)),
                        ('digest', models.CharField(max_length=64)),
                        ('content', models.JSONField()),
                        ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotation.campaign')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('campaign', 'settings_digest', 'digest'), name='stored_cell_once')],
                    },
                ),
                migrations.CreateModel(
                    name='Transfer',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                        ('kind', models.CharField(choices=[('export', 'Export'), ('bundle', 'Bundle import')], max_length=6)),
                        ('state', models.CharField(choices=[('waiting', 'Waiting'), ('working', 'Running'), ('done', 'Done'), ('failed', 'Failed')], default='waiting', max_length=7)),
                        ('asked', models.JSONField(default=dict)),
                        ('name', models.CharField(max_length=255)),
                        ('content', models.FileField(blank=True, max_length=300, upload_to='transfers/%Y/%m/')),
                        ('size', models.BigIntegerField(null=True)),
                        ('sentence', models.TextField(blank=True)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('expires_at', models.DateTimeField()),
                        ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                        ('job', models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.job')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['export', 'bundle'])), name='transfer_kind_known'), models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'done', 'failed'])), name='transfer_state_known')],
                    },
                ),
                migrations.CreateModel(
                    name='Computation',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('settings_digest', models.CharField(max_length=64)),
                        ('code_version', models.CharField(max_length=40)),
                        ('tries', models.PositiveSmallIntegerField(default=0)),
                        ('next_at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('reason', models.CharField(choices=[('ended', 'The worker stopped before it had finished.'), ('long', 'It took longer than %(detail)s minutes and was stopped.'), ('table', "The ratings can't be used: %(detail)s"), ('fault', 'An error in Panelbench: %(detail)s'), ('cancelled', '%(detail)s')], default='ended', max_length=9)),
                        ('detail', models.CharField(blank=True, max_length=400)),
                        ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotation.campaign')),
                        ('asked', models.JSONField(default=dict)),
                        ('job', models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.job')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('campaign', 'settings_digest', 'code_version'), name='computation_of_settings_unique')],
                    },
                ),
            ],
        ),
    ]
