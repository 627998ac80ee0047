"""The tables of an empty database; see docs/decisions/0035-squashed-migrations.md."""

import uuid

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from accounts.table_creation import CreateTables


class Migration(migrations.Migration):

    replaces = [('annotation', '0001_initial'), ('annotation', '0002_receiving'), ('annotation', '0003_versions'), ('annotation', '0004_staged'), ('annotation', '0005_studies'), ('annotation', '0006_drawn_seed'), ('annotation', '0007_names_shown'), ('annotation', '0008_unread'), ('annotation', '0009_blind'), ('annotation', '0010_invited_seats'), ('annotation', '0011_imports'), ('annotation', '0012_plain_labels'), ('annotation', '0013_job'), ('annotation', '0014_running_jobs'), ('annotation', '0015_without_leases'), ('annotation', '0016_undoing_imports'), ('annotation', '0017_selections'), ('annotation', '0018_resolved_skips'), ('annotation', '0019_private_notes'), ('annotation', '0020_erased_rationales'), ('annotation', '0021_qualification'), ('annotation', '0022_adjudication'), ('annotation', '0023_note_of_repeat')]

    initial = True

    dependencies = [
        ('accounts', '0014_search_jobs'),
        # The tables of signing in go first: each of their small migrations would render all of our models again.
        ('mfa', '0003_authenticator_type_uniq'),
        ('socialaccount', '0006_alter_socialaccount_extra_data'),
        ('usersessions', '0001_initial'),
    ]

    operations = [
        CreateTables(
            operations=[
                migrations.CreateModel(
                    name='Annotator',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('pseudonym', models.CharField(max_length=80, verbose_name='pseudonym')),
                        ('identified', models.BooleanField(default=True)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                        ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'ordering': ['pseudonym'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'pseudonym'), name='annotator_pseudonym_unique'), models.UniqueConstraint(condition=models.Q(('user__isnull', False)), fields=('project', 'user'), name='annotator_user_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='Import',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('kind', models.CharField(choices=[('dataset', 'Dataset'), ('rubric', 'Rubric'), ('ratings', 'Ratings'), ('verdicts', 'Verdicts'), ('study', 'A whole study')], max_length=10)),
                        ('state', models.CharField(choices=[('uploaded', 'Uploaded'), ('checking', 'Being checked'), ('storing', 'Being stored'), ('stored', 'Stored'), ('undoing', 'Being undone'), ('failed', 'Failed')], default='uploaded', max_length=10)),
                        ('target', models.JSONField(default=dict)),
                        ('mapping', models.JSONField(default=dict)),
                        ('report', models.JSONField(default=dict)),
                        ('state_since', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('batch', models.UUIDField(db_index=True, editable=False, null=True)),
                        ('unread', models.JSONField(editable=False, null=True)),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('job', models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.job')),
                        ('part_of', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='parts', to='annotation.import')),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(fields=['project', '-id'], name='import_by_project')],
                        'constraints': [models.CheckConstraint(condition=models.Q(('kind__in', ['dataset', 'rubric', 'ratings', 'verdicts', 'study'])), name='import_kind_known'), models.CheckConstraint(condition=models.Q(('state__in', ['uploaded', 'checking', 'storing', 'stored', 'undoing', 'failed'])), name='import_state_known')],
                    },
                ),
                migrations.CreateModel(
                    name='Dataset',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120, verbose_name='name')),
                        ('version', models.PositiveIntegerField(default=1)),
                        ('state', models.CharField(choices=[('loading', 'Loading'), ('ready', 'Ready')], default='loading', max_length=8)),
                        ('allocatable', models.BooleanField(default=True)),
                        ('layout', models.JSONField(blank=True, default=dict)),
                        ('licence', models.CharField(blank=True, max_length=200)),
                        ('simulated', models.BooleanField(default=False)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('staged_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('names_shown', models.JSONField(editable=False, null=True)),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('derived_from', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.dataset')),
                        ('extends', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.dataset')),
                        ('parts', models.ManyToManyField(editable=False, related_name='wholes', to='annotation.dataset')),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                        ('file_import', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.import')),
                    ],
                    options={
                        'ordering': ['name', '-version'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'name', 'version'), name='dataset_version_unique'), models.CheckConstraint(condition=models.Q(('state__in', ['loading', 'ready'])), name='dataset_state_known'), models.UniqueConstraint(condition=models.Q(('state', 'ready')), fields=('extends',), name='dataset_extended_once')],
                    },
                ),
                migrations.CreateModel(
                    name='DryRun',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('asked', models.CharField(max_length=64)),
                        ('seen', models.JSONField(default=dict)),
                        ('made_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('file_import', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='dry_run', to='annotation.import')),
                    ],
                ),
                migrations.CreateModel(
                    name='ImportFile',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=255)),
                        ('content', models.FileField(upload_to='imports/%Y/%m/')),
                        ('size', models.BigIntegerField()),
                        ('sha256', models.CharField(max_length=64)),
                        ('file_import', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='annotation.import')),
                    ],
                ),
                migrations.CreateModel(
                    name='Item',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('external_id', models.CharField(max_length=200)),
                        ('ordinal', models.PositiveIntegerField()),
                        ('language', models.CharField(max_length=35)),
                        ('generator', models.CharField(blank=True, max_length=120)),
                        ('scenario', models.CharField(blank=True, max_length=200)),
                        ('title', models.TextField(blank=True)),
                        ('turns', models.JSONField(default=list)),
                        ('fields', models.JSONField(default=dict)),
                        ('attributes', models.JSONField(default=dict)),
                        ('content_warning', models.TextField(blank=True)),
                        ('digest', models.CharField(max_length=64)),
                        ('dataset', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='annotation.dataset')),
                    ],
                    options={
                        'ordering': ['dataset', 'ordinal'],
                        'indexes': [models.Index(fields=['dataset', 'language'], name='item_by_language')],
                        'constraints': [models.UniqueConstraint(fields=('dataset', 'external_id'), name='item_id_unique'), models.UniqueConstraint(fields=('dataset', 'ordinal'), name='item_ordinal_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='Panel',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120, verbose_name='name')),
                        ('language', models.CharField(blank=True, max_length=35, verbose_name='language')),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                        ('annotators', models.ManyToManyField(related_name='panels', through='annotation.PanelSeat', to='annotation.annotator')),
                    ],
                    options={
                        'ordering': ['name'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'name'), name='panel_name_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='InvitedSeat',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('invitation', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.invitation')),
                        ('panel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotation.panel')),
                    ],
                ),
                migrations.CreateModel(
                    name='PanelSeat',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='seats', to='annotation.annotator')),
                        ('panel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='seats', to='annotation.panel')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('panel', 'annotator'), name='panel_seat_once')],
                    },
                ),
                migrations.CreateModel(
                    name='PrivateNote',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('text', models.CharField(max_length=2000)),
                        ('of_repeat', models.BooleanField(default=False)),
                        ('annotator', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.annotator')),
                        ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.item')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('annotator', 'item', 'of_repeat'), name='private_note_once')],
                    },
                ),
                migrations.CreateModel(
                    name='Rubric',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.SlugField(max_length=60)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                    ],
                    options={
                        'ordering': ['key'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'key'), name='rubric_key_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='RubricVersion',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('number', models.PositiveIntegerField()),
                        ('state', models.CharField(choices=[('draft', 'Draft'), ('published', 'Published')], default='draft', max_length=10)),
                        ('document', models.JSONField()),
                        ('digest', models.CharField(max_length=64)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('published_at', models.DateTimeField(null=True)),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('rubric', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='annotation.rubric')),
                    ],
                    options={
                        'ordering': ['rubric', '-number'],
                        'constraints': [models.UniqueConstraint(fields=('rubric', 'number'), name='rubric_number_unique'), models.CheckConstraint(condition=models.Q(models.Q(('published_at', None), ('state', 'draft')), models.Q(('published_at__isnull', False), ('state', 'published')), _connector='OR'), name='rubric_published_has_date')],
                    },
                ),
                migrations.CreateModel(
                    name='Criterion',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.SlugField(max_length=60)),
                        ('position', models.PositiveSmallIntegerField()),
                        ('level', models.CharField(choices=[('nominal', 'Nominal'), ('ordinal', 'Ordinal'), ('interval', 'Interval')], max_length=8)),
                        ('points', models.JSONField(default=list)),
                        ('minimum', models.FloatField()),
                        ('maximum', models.FloatField()),
                        ('step', models.FloatField(null=True)),
                        ('not_applicable', models.BooleanField(default=False)),
                        ('rationale_rule', models.CharField(choices=[('never', 'Never'), ('optional', 'Optional'), ('required', 'Required'), ('required_except_best', 'Required below the best point')], default='optional', max_length=20)),
                        ('rationale_words', models.PositiveSmallIntegerField(default=0)),
                        ('group', models.CharField(default='general', max_length=12)),
                        ('speaker', models.CharField(blank=True, max_length=60)),
                        ('panel_hint', models.CharField(blank=True, max_length=120)),
                        ('direction', models.CharField(choices=[('higher_is_better', 'Higher is better'), ('lower_is_better', 'Lower is better'), ('none', 'Neither')], default='higher_is_better', max_length=16)),
                        ('text', models.JSONField(default=dict)),
                        ('rubric_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='criteria', to='annotation.rubricversion')),
                    ],
                    options={
                        'ordering': ['rubric_version', 'position'],
                        'constraints': [models.UniqueConstraint(fields=('rubric_version', 'key'), name='criterion_key_unique'), models.UniqueConstraint(fields=('rubric_version', 'position'), name='criterion_position_unique'), models.CheckConstraint(condition=models.Q(('minimum__lt', models.F('maximum'))), name='criterion_scale_wide'), models.CheckConstraint(condition=models.Q(('level__in', ['nominal', 'ordinal', 'interval'])), name='criterion_level_known')],
                    },
                ),
                migrations.CreateModel(
                    name='Campaign',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120, verbose_name='name')),
                        ('state', models.CharField(choices=[('open', 'Open'), ('paused', 'Paused'), ('closed', 'Closed')], default='open', max_length=8)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                        ('qualification_of', models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotation.campaign')),
                        ('dataset', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.dataset')),
                        ('rubric_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.rubricversion')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['open', 'paused', 'closed'])), name='campaign_state_known'), models.UniqueConstraint(condition=models.Q(('qualification_of', None)), fields=('project', 'name'), name='campaign_name_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='Guideline',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('language', models.CharField(max_length=35, verbose_name='language')),
                        ('number', models.PositiveIntegerField()),
                        ('text', models.TextField(verbose_name='text')),
                        ('examples', models.JSONField(blank=True, default=list)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='guidelines', to='annotation.campaign')),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'ordering': ['campaign', 'language', '-number'],
                        'constraints': [models.UniqueConstraint(fields=('campaign', 'language', 'number'), name='guideline_number_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='Acknowledgement',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.annotator')),
                        ('guideline', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='acknowledgements', to='annotation.guideline')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('guideline', 'annotator'), name='acknowledgement_once')],
                    },
                ),
                migrations.CreateModel(
                    name='ItemSelection',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120, verbose_name='name')),
                        ('rule', models.JSONField(default=dict)),
                        ('seed', models.BigIntegerField()),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='selections', to='annotation.campaign')),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'constraints': [models.UniqueConstraint(fields=('campaign', 'name'), name='item_selection_name_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='Duty',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120, verbose_name='name')),
                        ('overlap', models.PositiveSmallIntegerField(verbose_name='annotators per item')),
                        ('seed', models.BigIntegerField()),
                        ('languages', models.JSONField(blank=True, default=list)),
                        ('purpose', models.CharField(choices=[('rating', 'Rating'), ('training', 'Training'), ('exam', 'Exam'), ('control', 'Control'), ('repeat', 'Repeat')], default='rating', editable=False, max_length=8)),
                        ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='duties', to='annotation.campaign')),
                        ('criteria', models.ManyToManyField(related_name='+', to='annotation.criterion')),
                        ('stands_for', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotation.duty')),
                        ('chosen', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='duties', to='annotation.itemselection')),
                        ('panel', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.panel')),
                    ],
                    options={
                        'verbose_name_plural': 'duties',
                        'ordering': ['campaign', 'pk'],
                        'constraints': [models.CheckConstraint(condition=models.Q(('overlap__gte', 1)), name='duty_overlap_positive'), models.UniqueConstraint(condition=models.Q(('stands_for', None)), fields=('campaign', 'name'), name='duty_name_unique'), models.UniqueConstraint(fields=('stands_for', 'purpose'), name='duty_purpose_once'), models.CheckConstraint(condition=models.Q(models.Q(('purpose', 'rating'), ('stands_for', None)), models.Q(('purpose__in', ['training', 'exam', 'control', 'repeat']), ('stands_for__isnull', False)), _connector='OR'), name='duty_purpose_known')],
                    },
                ),
                migrations.CreateModel(
                    name='ControlPause',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('paused_at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('controls', models.PositiveIntegerField()),
                        ('matched', models.FloatField()),
                        ('upper', models.FloatField()),
                        ('reinstated_at', models.DateTimeField(null=True)),
                        ('note', models.TextField(blank=True)),
                        ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.annotator')),
                        ('reinstated_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('duty', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='control_pauses', to='annotation.duty')),
                    ],
                    options={
                        'ordering': ['-paused_at'],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('reinstated_at', None)), fields=('duty', 'annotator'), name='control_pause_open_once')],
                    },
                ),
                migrations.CreateModel(
                    name='Assignment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('slot', models.PositiveSmallIntegerField()),
                        ('position', models.PositiveIntegerField()),
                        ('state', models.CharField(choices=[('open', 'Open'), ('leased', 'In progress'), ('submitted', 'Submitted')], default='open', max_length=9)),
                        ('key', models.UUIDField(null=True)),
                        ('revision', models.PositiveSmallIntegerField(default=1)),
                        ('leased_at', models.DateTimeField(null=True)),
                        ('leased_until', models.DateTimeField(null=True)),
                        ('annotator', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.annotator')),
                        ('duty', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='assignments', to='annotation.duty')),
                        ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.item')),
                    ],
                    options={
                        'indexes': [models.Index(fields=['duty', 'state', 'position', 'slot'], name='assignment_queue'), models.Index(fields=['annotator', 'duty', 'state', 'position'], name='assignment_by_annotator')],
                        'constraints': [models.UniqueConstraint(fields=('duty', 'item', 'slot'), name='assignment_slot_unique'), models.UniqueConstraint(condition=models.Q(('annotator__isnull', False)), fields=('duty', 'item', 'annotator'), name='assignment_once_each'), models.UniqueConstraint(condition=models.Q(('key__isnull', False)), fields=('key',), name='assignment_key_unique'), models.CheckConstraint(condition=models.Q(models.Q(('annotator', None), ('key', None), ('leased_until', None), ('state', 'open')), models.Q(('annotator__isnull', False), ('key__isnull', False), ('leased_until__isnull', False), ('state', 'leased')), models.Q(('annotator__isnull', False), ('key__isnull', False), ('state', 'submitted')), _connector='OR'), name='assignment_state_whole')],
                    },
                ),
                migrations.CreateModel(
                    name='ExamAttempt',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('number', models.PositiveSmallIntegerField()),
                        ('started_at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('finished_at', models.DateTimeField(null=True)),
                        ('passed', models.BooleanField(null=True)),
                        ('expires_at', models.DateTimeField(null=True)),
                        ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.annotator')),
                        ('duty', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='exam_attempts', to='annotation.duty')),
                    ],
                    options={
                        'ordering': ['duty', 'annotator', 'number'],
                        'constraints': [models.UniqueConstraint(fields=('duty', 'annotator', 'number'), name='exam_attempt_number'), models.UniqueConstraint(condition=models.Q(('finished_at', None)), fields=('duty', 'annotator'), name='exam_attempt_open_once'), models.CheckConstraint(condition=models.Q(models.Q(('finished_at', None), ('passed', None)), models.Q(('finished_at__isnull', False), ('passed__isnull', False)), _connector='OR'), name='exam_attempt_finished')],
                    },
                ),
                migrations.CreateModel(
                    name='ExamItem',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('position', models.PositiveSmallIntegerField()),
                        ('assignment', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotation.assignment')),
                        ('attempt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='items', to='annotation.examattempt')),
                        ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.item')),
                    ],
                    options={
                        'ordering': ['attempt', 'position'],
                        'constraints': [models.UniqueConstraint(fields=('attempt', 'item'), name='exam_item_once')],
                    },
                ),
                migrations.CreateModel(
                    name='Draft',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.UUIDField()),
                        ('answers', models.JSONField(default=dict)),
                        ('seconds', models.FloatField(default=0)),
                        ('saved_at', models.DateTimeField()),
                        ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.annotator')),
                        ('duty', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotation.duty')),
                        ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.item')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('duty', 'item', 'annotator'), name='draft_once'), models.UniqueConstraint(fields=('key',), name='draft_key_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='Annotation',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.UUIDField(null=True)),
                        ('revision', models.PositiveSmallIntegerField(default=1)),
                        ('seconds', models.FloatField(null=True)),
                        ('submitted_at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('superseded_at', models.DateTimeField(null=True)),
                        ('blind', models.BooleanField(null=True)),
                        ('annotator', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.annotator')),
                        ('assignment', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='annotations', to='annotation.assignment')),
                        ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.campaign')),
                        ('file_import', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.import')),
                        ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.item')),
                    ],
                    options={
                        'indexes': [models.Index(fields=['annotator', 'id'], name='annotation_by_annotator')],
                        'constraints': [models.UniqueConstraint(fields=('assignment', 'revision'), name='annotation_revision_unique'), models.UniqueConstraint(condition=models.Q(('superseded_at', None)), fields=('assignment',), name='annotation_current_once'), models.UniqueConstraint(fields=('key',), name='annotation_key_unique'), models.UniqueConstraint(fields=('file_import', 'item', 'annotator'), name='annotation_imported_once'), models.CheckConstraint(condition=models.Q(models.Q(('assignment__isnull', False), ('file_import', None), ('key__isnull', False)), models.Q(('assignment', None), ('file_import__isnull', False), ('key', None)), _connector='OR'), name='annotation_has_one_origin')],
                    },
                ),
                migrations.CreateModel(
                    name='MeetingDecision',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('held_on', models.DateField(verbose_name='date of the meeting')),
                        ('decision', models.TextField(verbose_name='decision')),
                        ('guideline_change', models.TextField(blank=True, verbose_name='change of the guidelines')),
                        ('recorded_at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.campaign')),
                        ('criterion', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.criterion')),
                        ('item', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.item')),
                        ('recorded_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'ordering': ['-held_on', '-pk'],
                    },
                ),
                migrations.CreateModel(
                    name='MismatchReview',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('state', models.CharField(choices=[('contested', 'Waiting for a decision'), ('accepted', 'Accepted'), ('rejected', 'Not accepted')], max_length=9)),
                        ('objection', models.TextField(blank=True)),
                        ('contested_at', models.DateTimeField(null=True)),
                        ('note', models.TextField(blank=True)),
                        ('decided_at', models.DateTimeField(null=True)),
                        ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='mismatch_reviews', to='annotation.assignment')),
                        ('criterion', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.criterion')),
                        ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('assignment', 'criterion'), name='mismatch_review_once'), models.CheckConstraint(condition=models.Q(models.Q(('decided_at', None), ('state', 'contested')), models.Q(('decided_at__isnull', False), ('state__in', ['accepted', 'rejected'])), _connector='OR'), name='mismatch_review_decided')],
                    },
                ),
                migrations.CreateModel(
                    name='PayRate',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('unit', models.CharField(choices=[('hour', 'Hour'), ('item', 'Item')], max_length=4)),
                        ('amount', models.DecimalField(decimal_places=4, max_digits=10)),
                        ('set_at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('duty', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='pay_rate', to='annotation.duty')),
                        ('set_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('unit__in', ['hour', 'item'])), name='pay_rate_unit_known'), models.CheckConstraint(condition=models.Q(('amount__gte', 0)), name='pay_rate_not_negative')],
                    },
                ),
                migrations.CreateModel(
                    name='QualificationRule',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('training', models.BooleanField(default=True)),
                        ('exam_items', models.PositiveSmallIntegerField(default=0)),
                        ('matching', models.CharField(choices=[('exact', 'The same score'), ('tolerance', 'A score within the tolerance')], default='exact', max_length=9)),
                        ('tolerance', models.FloatField(default=1, validators=[django.core.validators.MinValueValidator(0)])),
                        ('threshold', models.FloatField(default=0.7, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1)])),
                        ('attempts', models.PositiveSmallIntegerField(default=2)),
                        ('wait_hours', models.PositiveIntegerField(default=24)),
                        ('valid_days', models.PositiveIntegerField(null=True)),
                        ('control_rate', models.FloatField(default=0, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1)])),
                        ('repeat_rate', models.FloatField(default=0, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1)])),
                        ('control_threshold', models.FloatField(default=0.7, validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(1)])),
                        ('fewest_controls', models.PositiveSmallIntegerField(default=5)),
                        ('seed', models.BigIntegerField()),
                        ('campaign', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='qualification_rule', to='annotation.campaign')),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('control_threshold__range', (0, 1)), ('threshold__range', (0, 1))), name='qualification_thresholds'), models.CheckConstraint(condition=models.Q(('control_rate__gte', 0), ('repeat_rate__gte', 0), ('control_rate__lte', 0.5), ('repeat_rate__lte', 0.5), ('tolerance__gte', 0)), name='qualification_rates'), models.CheckConstraint(condition=models.Q(('attempts__gte', 1), ('fewest_controls__gte', 1)), name='qualification_counts'), models.CheckConstraint(condition=models.Q(('matching__in', ['exact', 'tolerance'])), name='qualification_matching')],
                    },
                ),
                migrations.CreateModel(
                    name='Rating',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('status', models.CharField(choices=[('scored', 'Scored'), ('na', 'Not applicable'), ('stopped', 'Stopped')], default='scored', max_length=7)),
                        ('score', models.FloatField(null=True)),
                        ('rationale', models.TextField(blank=True)),
                        ('rule_kept', models.BooleanField(null=True)),
                        ('annotation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='ratings', to='annotation.annotation')),
                        ('criterion', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.criterion')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('annotation', 'criterion'), name='rating_once'), models.CheckConstraint(condition=models.Q(models.Q(('score__isnull', False), ('status', 'scored')), models.Q(('status__in', ['na', 'stopped']), ('score', None)), _connector='OR'), name='rating_score_fits_status'), models.CheckConstraint(condition=models.Q(('score', None), models.Q(('score__gte', -1000000000000.0), ('score__lte', 1000000000000.0)), _connector='OR'), name='rating_score_finite')],
                    },
                ),
                migrations.CreateModel(
                    name='ReferenceItem',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('purpose', models.CharField(choices=[('training', 'Training'), ('exam', 'Exam'), ('control', 'Control')], max_length=8)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('campaign', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reference_items', to='annotation.campaign')),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.item')),
                    ],
                    options={
                        'ordering': ['campaign', 'purpose', 'item__ordinal'],
                        'constraints': [models.UniqueConstraint(fields=('campaign', 'item'), name='reference_item_once'), models.CheckConstraint(condition=models.Q(('purpose__in', ['training', 'exam', 'control'])), name='reference_item_purpose')],
                    },
                ),
                migrations.CreateModel(
                    name='ReferenceScore',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('score', models.FloatField(null=True)),
                        ('lowest', models.FloatField(null=True)),
                        ('highest', models.FloatField(null=True)),
                        ('explanation', models.TextField(blank=True)),
                        ('criterion', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.criterion')),
                        ('reference', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scores', to='annotation.referenceitem')),
                    ],
                    options={
                        'ordering': ['reference', 'criterion__position'],
                        'constraints': [models.UniqueConstraint(fields=('reference', 'criterion'), name='reference_score_once'), models.CheckConstraint(condition=models.Q(models.Q(('highest', None), ('lowest', None)), models.Q(('highest__gte', models.F('score')), ('lowest__lte', models.F('score')), ('score__isnull', False)), _connector='OR'), name='reference_score_range')],
                    },
                ),
                migrations.CreateModel(
                    name='Adjudication',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('status', models.CharField(choices=[('scored', 'Scored'), ('na', 'Not applicable')], default='scored', max_length=6)),
                        ('score', models.FloatField(null=True)),
                        ('cause', models.CharField(blank=True, choices=[('misread_rubric', 'Rubric misread'), ('misread_dialogue', 'Dialogue misread'), ('slip', 'Slip: another score was meant'), ('ambiguous_rubric', 'Rubric ambiguous'), ('ambiguous_dialogue', 'Dialogue ambiguous'), ('standards', 'Different standards'), ('language', 'Language or variety'), ('other', 'Something else')], max_length=18)),
                        ('cause_note', models.CharField(blank=True, max_length=300)),
                        ('rationale', models.TextField(blank=True)),
                        ('seen', models.JSONField(default=list)),
                        ('digest', models.CharField(max_length=64)),
                        ('order', models.CharField(blank=True, choices=[('range', 'Range of the scores'), ('entropy', 'Entropy of the scores'), ('na', 'Score against N/A'), ('critical', 'Disputed critical mark'), ('judge', 'Distance of a judge')], max_length=8)),
                        ('key', models.UUIDField()),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('adjudicator', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('campaign', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.campaign')),
                        ('criterion', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.criterion')),
                        ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.item')),
                        ('rubric_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.rubricversion')),
                    ],
                    options={
                        'ordering': ['pk'],
                        'indexes': [models.Index(fields=['campaign', 'item', 'criterion'], name='adjudication_of_item')],
                        'constraints': [models.UniqueConstraint(fields=('key', 'criterion'), name='adjudication_once'), models.CheckConstraint(condition=models.Q(models.Q(('score__isnull', False), ('status', 'scored')), models.Q(('score', None), ('status', 'na')), _connector='OR'), name='adjudication_score_fits_status'), models.CheckConstraint(condition=models.Q(('score', None), models.Q(('score__gte', -1000000000000.0), ('score__lte', 1000000000000.0)), _connector='OR'), name='adjudication_score_finite')],
                    },
                ),
                migrations.CreateModel(
                    name='SavedMapping',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120, verbose_name='name')),
                        ('kind', models.CharField(choices=[('dataset', 'Dataset'), ('rubric', 'Rubric'), ('ratings', 'Ratings'), ('verdicts', 'Verdicts'), ('study', 'A whole study')], max_length=10)),
                        ('mapping', models.JSONField(default=dict)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                    ],
                    options={
                        'ordering': ['kind', 'name'],
                        'constraints': [models.UniqueConstraint(fields=('project', 'kind', 'name'), name='saved_mapping_name_unique'), models.CheckConstraint(condition=models.Q(('kind__in', ['dataset', 'ratings', 'verdicts'])), name='saved_mapping_kind_known')],
                    },
                ),
                migrations.CreateModel(
                    name='SelectedItem',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('probability', models.FloatField(default=1.0)),
                        ('stratum', models.CharField(blank=True, max_length=400)),
                        ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.item')),
                        ('selection', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='selected', to='annotation.itemselection')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('selection', 'item'), name='selected_item_once'), models.CheckConstraint(condition=models.Q(('probability__gt', 0), ('probability__lte', 1)), name='selected_item_probability')],
                    },
                ),
                migrations.CreateModel(
                    name='Selection',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('wave', models.PositiveIntegerField(default=1)),
                        ('probability', models.FloatField(default=1.0)),
                        ('stratum', models.CharField(blank=True, max_length=120)),
                        ('origin', models.CharField(default='all', max_length=40)),
                        ('duty', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='selections', to='annotation.duty')),
                        ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.item')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('duty', 'item'), name='selection_once'), models.CheckConstraint(condition=models.Q(('probability__gt', 0), ('probability__lte', 1)), name='selection_probability')],
                    },
                ),
                migrations.CreateModel(
                    name='Skip',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('reason', models.CharField(choices=[('cannot_judge', "Can't judge it"), ('language', "Not in the annotator's language or variety"), ('damaged', 'Damaged or incomplete text'), ('distressing', 'Does not want to read it'), ('other', 'Something else')], max_length=12)),
                        ('note', models.CharField(blank=True, max_length=500)),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('resolved_at', models.DateTimeField(null=True)),
                        ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.annotator')),
                        ('duty', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotation.duty')),
                        ('item', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='annotation.item')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('duty', 'item', 'annotator'), name='skip_once')],
                    },
                ),
                migrations.CreateModel(
                    name='Upload',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                        ('name', models.CharField(max_length=255)),
                        ('size', models.BigIntegerField()),
                        ('received', models.BigIntegerField(default=0)),
                        ('sha256', models.CharField(blank=True, max_length=64)),
                        ('content', models.FileField(upload_to='imports/%Y/%m/')),
                        ('changed_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                    ],
                    options={
                        'constraints': [models.CheckConstraint(condition=models.Q(('received__gte', 0), ('received__lte', models.F('size'))), name='upload_fits')],
                    },
                ),
            ],
        ),
    ]
