"""The tables of an empty database; see docs/decisions/0035-squashed-migrations.md."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from accounts.table_creation import CreateTables


class Migration(migrations.Migration):

    replaces = [('judging', '0001_initial'), ('judging', '0002_continuing'), ('judging', '0003_spending'), ('judging', '0004_allowances'), ('judging', '0005_imports'), ('judging', '0006_plain_labels'), ('judging', '0007_reused_replies'), ('judging', '0008_capabilities'), ('judging', '0009_designs'), ('judging', '0010_perturbed_runs'), ('judging', '0011_run_selection'), ('judging', '0012_design_selection'), ('judging', '0013_alignments'), ('judging', '0014_proposals'), ('judging', '0015_searches'), ('judging', '0016_closed_alignments'), ('judging', '0017_batches')]

    initial = True

    dependencies = [
        ('accounts', '0015_batch_jobs'),
        ('annotation', '0017_selections'),
    ]

    operations = [
        CreateTables(
            operations=[
                migrations.CreateModel(
                    name='Judge',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120, verbose_name='name')),
                        ('provider', models.CharField(blank=True, max_length=80, verbose_name='provider')),
                        ('model', models.CharField(max_length=160, verbose_name='provider model')),
                        ('parameters', models.JSONField(default=dict, verbose_name='parameters')),
                        ('variant', models.JSONField(default=dict, verbose_name='prompt variant')),
                        ('simulated', models.BooleanField(default=False)),
                        ('digest', models.CharField(max_length=64)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('concurrency', models.PositiveSmallIntegerField(null=True, verbose_name='most calls at the same time')),
                        ('timeout', models.PositiveSmallIntegerField(null=True, verbose_name='seconds for a reply')),
                        ('tries', models.PositiveSmallIntegerField(null=True, verbose_name='tries')),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('parent', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='children', to='judging.judge')),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                    ],
                    options={
                        'ordering': ['name'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='judge_name_unique'), models.UniqueConstraint(fields=('project', 'digest'), name='judge_digest_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='Alignment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120, verbose_name='name')),
                        ('seed', models.BigIntegerField()),
                        ('share', models.FloatField()),
                        ('looks_allowed', models.PositiveSmallIntegerField()),
                        ('measure', models.CharField(choices=[('accuracy', 'Exact agreement with the reference label'), ('closeness', '1 less the mean distance, as a share of the scale')], default='accuracy', max_length=9)),
                        ('confidence', models.FloatField(default=0.95)),
                        ('budget', models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('closed_at', models.DateTimeField(null=True)),
                        ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.campaign')),
                        ('closed_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                        ('test', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.itemselection')),
                        ('tuning', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.itemselection')),
                        ('base', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='judging.judge')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='alignment_name_unique'), models.CheckConstraint(condition=models.Q(('looks_allowed__gte', 1)), name='alignment_looks_positive'), models.CheckConstraint(condition=models.Q(('share__gt', 0), ('share__lt', 1)), name='alignment_share_inside'), models.CheckConstraint(condition=models.Q(('budget', None), ('budget__gte', 0), _connector='OR'), name='alignment_budget_not_negative')],
                    },
                ),
                migrations.CreateModel(
                    name='AlignmentSearch',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('method', models.CharField(choices=[('random', 'Random: versions with random examples'), ('greedy', 'Greedy: one more example for the best version so far')], max_length=6)),
                        ('steps', models.PositiveSmallIntegerField()),
                        ('seed', models.BigIntegerField()),
                        ('reason', models.TextField(blank=True)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('alignment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='searches', to='judging.alignment')),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('job', models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.job')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'constraints': [models.CheckConstraint(condition=models.Q(('steps__gte', 1)), name='search_steps_positive')],
                    },
                ),
                migrations.CreateModel(
                    name='AlignmentCandidate',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('origin', models.CharField(choices=[('base', 'The judge as it was'), ('edit', 'Edited'), ('proposal', 'Proposed by a model'), ('search', 'Found by a search')], max_length=8)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('alignment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='candidates', to='judging.alignment')),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('search', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='candidates', to='judging.alignmentsearch')),
                        ('judge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='judging.judge')),
                    ],
                    options={
                        'ordering': ['pk'],
                        'constraints': [models.UniqueConstraint(fields=('alignment', 'judge'), name='candidate_once')],
                    },
                ),
                migrations.CreateModel(
                    name='AlignmentProposal',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120, verbose_name='name')),
                        ('provider', models.CharField(max_length=80, verbose_name='provider')),
                        ('model', models.CharField(max_length=160, verbose_name='provider model')),
                        ('parameters', models.JSONField(default=dict)),
                        ('request', models.JSONField(default=dict)),
                        ('reply', models.JSONField(default=dict)),
                        ('reason', models.TextField(blank=True)),
                        ('reserved', models.DecimalField(decimal_places=8, max_digits=12, null=True)),
                        ('cost', models.DecimalField(decimal_places=8, max_digits=12, null=True)),
                        ('sent_at', models.DateTimeField(null=True)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('alignment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='proposals', to='judging.alignment')),
                        ('candidate', models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='proposal', to='judging.alignmentcandidate')),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('job', models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.job')),
                        ('parent', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='judging.alignmentcandidate')),
                    ],
                    options={
                        'ordering': ['-pk'],
                    },
                ),
                migrations.CreateModel(
                    name='JudgeDesign',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120, verbose_name='name')),
                        ('factors', models.JSONField(default=dict)),
                        ('repeats', models.PositiveSmallIntegerField(default=1)),
                        ('budget', models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                        ('jury', models.CharField(blank=True, choices=[('majority', 'Majority (a tie gives no score)'), ('median', 'Median'), ('mean', 'Mean'), ('minimum', 'Minimum')], max_length=8)),
                        ('started_at', models.DateTimeField(null=True)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('dataset', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.dataset')),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                        ('rubric_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.rubricversion')),
                        ('selection', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.itemselection')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='design_name_unique'), models.CheckConstraint(condition=models.Q(('repeats__gte', 1)), name='design_repeats_positive'), models.CheckConstraint(condition=models.Q(('budget', None), ('budget__gte', 0), _connector='OR'), name='design_budget_not_negative')],
                    },
                ),
                migrations.CreateModel(
                    name='DesignCell',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('position', models.PositiveSmallIntegerField()),
                        ('levels', models.JSONField(default=dict)),
                        ('judge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='judging.judge')),
                        ('design', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='cells', to='judging.judgedesign')),
                    ],
                    options={
                        'ordering': ['position'],
                        'constraints': [models.UniqueConstraint(fields=('design', 'position'), name='design_cell_position_unique'), models.UniqueConstraint(fields=('design', 'judge'), name='design_cell_judge_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='JudgeRun',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('repeats', models.PositiveSmallIntegerField(default=1)),
                        ('state', models.CharField(choices=[('running', 'Running'), ('paused', 'Paused'), ('cancelled', 'Cancelled')], default='running', max_length=9)),
                        ('reason', models.CharField(blank=True, max_length=400)),
                        ('budget', models.DecimalField(blank=True, decimal_places=6, max_digits=12, null=True)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('key', models.CharField(max_length=100, null=True)),
                        ('width', models.PositiveSmallIntegerField(null=True)),
                        ('pays_again', models.BooleanField(db_default=False, default=False)),
                        ('is_pilot', models.BooleanField(db_default=False, default=False)),
                        ('perturbation', models.JSONField(null=True)),
                        ('by_batch', models.BooleanField(db_default=False, default=False)),
                        ('alignment', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='judging.alignment')),
                        ('continues', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='judging.judgerun')),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('dataset', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.dataset')),
                        ('design', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='judging.judgedesign')),
                        ('file_import', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.import')),
                        ('judge', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='judging.judge')),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                        ('rubric_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.rubricversion')),
                        ('selection', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.itemselection')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'constraints': [models.CheckConstraint(condition=models.Q(('repeats__gte', 1)), name='run_repeats_positive'), models.CheckConstraint(condition=models.Q(('state__in', ['running', 'paused', 'cancelled'])), name='run_state_known'), models.UniqueConstraint(fields=('project', 'key'), name='run_key_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='CallBatch',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('lease', models.UUIDField(unique=True)),
                        ('calls', models.PositiveIntegerField(default=0)),
                        ('answered', models.PositiveIntegerField(default=0)),
                        ('leaves_out', models.JSONField(default=list)),
                        ('input_file', models.CharField(blank=True, max_length=200)),
                        ('provider_batch', models.CharField(blank=True, max_length=200)),
                        ('status', models.CharField(blank=True, max_length=40)),
                        ('reason', models.TextField(blank=True)),
                        ('sent_at', models.DateTimeField(null=True)),
                        ('ended_at', models.DateTimeField(null=True)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('job', models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.job')),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='batches', to='judging.judgerun')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('run',), name='batch_open_once')],
                    },
                ),
                migrations.CreateModel(
                    name='ModelCapability',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('provider', models.CharField(max_length=80)),
                        ('model', models.CharField(max_length=160)),
                        ('refused', models.JSONField(default=list)),
                        ('learnt_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ],
                    options={
                        'ordering': ['provider', 'model'],
                        'constraints': [models.UniqueConstraint(fields=('provider', 'model'), name='capability_once')],
                    },
                ),
                migrations.CreateModel(
                    name='ProviderAllowance',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('provider', models.CharField(max_length=80, verbose_name='provider')),
                        ('cap_total', models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                        ('cap_per_day', models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                    ],
                    options={
                        'ordering': ['project', 'provider'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'provider'), name='allowance_once'), models.CheckConstraint(condition=models.Q(models.Q(('cap_total', None), ('cap_total__gte', 0), _connector='OR'), models.Q(('cap_per_day', None), ('cap_per_day__gte', 0), _connector='OR')), name='allowance_caps_not_negative')],
                    },
                ),
                migrations.CreateModel(
                    name='AlignmentLook',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('number', models.PositiveSmallIntegerField()),
                        ('result', models.JSONField(null=True)),
                        ('taken_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('alignment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='looks', to='judging.alignment')),
                        ('candidate', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='look', to='judging.alignmentcandidate')),
                        ('taken_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'ordering': ['number'],
                        'constraints': [models.UniqueConstraint(fields=('alignment', 'number'), name='look_number_unique'), models.CheckConstraint(condition=models.Q(('number__gte', 1)), name='look_number_positive')],
                    },
                ),
                migrations.CreateModel(
                    name='Attempt',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('number', models.PositiveSmallIntegerField()),
                        ('outcome', models.CharField(choices=[('pending', 'Not sent yet'), ('sent', 'Sent'), ('lost', 'Lost'), ('replied', 'Replied'), ('unavailable', 'Unavailable'), ('refused', 'Refused'), ('reused', 'Reply of an earlier run')], max_length=11)),
                        ('request', models.JSONField(default=dict)),
                        ('reply', models.JSONField(default=dict)),
                        ('reason', models.TextField(blank=True)),
                        ('served_model', models.CharField(blank=True, max_length=160)),
                        ('tokens_in', models.PositiveIntegerField(null=True)),
                        ('tokens_out', models.PositiveIntegerField(null=True)),
                        ('cost', models.DecimalField(decimal_places=8, max_digits=12, null=True)),
                        ('latency', models.FloatField(null=True)),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('estimated', models.BooleanField(db_default=False, default=False)),
                        ('reserved', models.DecimalField(decimal_places=8, max_digits=12, null=True)),
                        ('reply_key', models.CharField(blank=True, db_default='', default='', max_length=64)),
                        ('reused_from', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='judging.attempt')),
                        ('call', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='attempts', to='judging.call')),
                    ],
                    options={
                        'indexes': [models.Index(fields=['at'], name='attempt_by_time'), models.Index(condition=models.Q(('outcome', 'replied')), fields=['reply_key'], name='attempt_reply_key')],
                        'constraints': [models.UniqueConstraint(fields=('call', 'number'), name='attempt_number_unique'), models.UniqueConstraint(condition=models.Q(('outcome__in', ['pending', 'sent'])), fields=('call',), name='attempt_open_once')],
                    },
                ),
                migrations.CreateModel(
                    name='Call',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('repeat', models.PositiveSmallIntegerField(default=1)),
                        ('state', models.CharField(choices=[('waiting', 'Waiting'), ('leased', 'In progress'), ('settled', 'Finished'), ('failed', 'Failed')], default='waiting', max_length=8)),
                        ('lease', models.UUIDField(null=True)),
                        ('leased_until', models.DateTimeField(null=True)),
                        ('not_before', models.DateTimeField(null=True)),
                        ('tries', models.PositiveSmallIntegerField(default=0)),
                        ('change', models.CharField(blank=True, db_default='', default='', max_length=40)),
                        ('criterion', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.criterion')),
                        ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.item')),
                        ('repairs', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='judging.attempt')),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='calls', to='judging.judgerun')),
                    ],
                    options={
                        'indexes': [models.Index(condition=models.Q(('state', 'waiting')), fields=['run', 'id'], name='call_queue'), models.Index(condition=models.Q(('state', 'leased')), fields=['leased_until'], name='call_leases'), models.Index(fields=['run', 'state'], name='call_by_state')],
                        'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('lease__isnull', False), ('leased_until__isnull', False), ('state', 'leased')), models.Q(models.Q(('state', 'leased'), _negated=True), ('lease', None), ('leased_until', None)), _connector='OR'), name='call_lease_whole'), models.UniqueConstraint(condition=models.Q(('criterion__isnull', False)), fields=('run', 'item', 'criterion', 'repeat', 'change'), name='call_once'), models.UniqueConstraint(condition=models.Q(('criterion', None)), fields=('run', 'item', 'repeat', 'change'), name='call_compound_once')],
                    },
                ),
                migrations.CreateModel(
                    name='Verdict',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('repeat', models.PositiveSmallIntegerField(default=1)),
                        ('status', models.CharField(choices=[('ok', 'Read'), ('unparsed', 'Unreadable'), ('out_of_range', 'Off the scale'), ('refused', 'Refused'), ('truncated', 'Cut off'), ('error', 'Error')], max_length=12)),
                        ('score', models.FloatField(null=True)),
                        ('applicable', models.BooleanField(default=True)),
                        ('fractional', models.BooleanField(default=False)),
                        ('coerced', models.CharField(blank=True, max_length=80)),
                        ('rationale', models.TextField(blank=True)),
                        ('confidence', models.FloatField(null=True)),
                        ('expected', models.FloatField(null=True)),
                        ('change', models.CharField(blank=True, db_default='', default='', max_length=40)),
                        ('attempt', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='verdicts', to='judging.attempt')),
                        ('criterion', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.criterion')),
                        ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.item')),
                        ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='verdicts', to='judging.judgerun')),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('applicable', True), ('score__isnull', False), ('status', 'ok')), models.Q(('applicable', False), ('score', None), ('status', 'ok')), models.Q(('score__isnull', False), ('status', 'out_of_range')), models.Q(models.Q(('status__in', ['ok', 'out_of_range']), _negated=True), ('score', None)), _connector='OR'), name='verdict_score_fits_status'), models.UniqueConstraint(fields=('run', 'item', 'criterion', 'repeat', 'change'), name='verdict_once')],
                    },
                ),
            ],
        ),
    ]
