"""The tables of an empty database; see docs/decisions/0035-squashed-migrations.md and 0066."""

import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

from accounts.table_creation import CreateTables


class Migration(migrations.Migration):

    replaces = [('accounts', '0001_initial'), ('accounts', '0002_webhooks'), ('accounts', '0003_founding'), ('accounts', '0004_account_activity'), ('accounts', '0005_project_rules'), ('accounts', '0006_invitation_name'), ('accounts', '0007_plain_labels'), ('accounts', '0008_jobs'), ('accounts', '0009_plain_job_labels'), ('accounts', '0010_webhook_jobs'), ('accounts', '0011_undo_jobs'), ('accounts', '0012_decision_event'), ('accounts', '0013_proposal_jobs'), ('accounts', '0014_search_jobs'), ('accounts', '0015_batch_jobs'), ('accounts', '0016_profile_dialect_age'), ('accounts', '0017_rubric_jobs'), ('accounts', '0018_checkup_jobs'), ('accounts', '0019_plan_events'), ('accounts', '0020_project_deletion')]

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        CreateTables(
            operations=[
                migrations.CreateModel(
                    name='Heartbeat',
                    fields=[
                        ('name', models.CharField(max_length=120, primary_key=True, serialize=False)),
                        ('kind', models.CharField(max_length=12)),
                        ('seen_at', models.DateTimeField()),
                    ],
                ),
                migrations.CreateModel(
                    name='User',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('password', models.CharField(max_length=128, verbose_name='password')),
                        ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                        ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                        ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                        ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                        ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                        ('email', models.EmailField(max_length=254, verbose_name='e-mail')),
                        ('name', models.CharField(blank=True, max_length=120, verbose_name='name')),
                        ('languages', models.JSONField(blank=True, default=list, verbose_name='languages')),
                        ('ui_language', models.CharField(blank=True, max_length=35, verbose_name='interface language')),
                        ('erased_at', models.DateTimeField(blank=True, null=True)),
                        ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                        ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
                        ('may_found_projects', models.BooleanField(default=False, verbose_name='can create projects')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('email',), name='user_email_unique'), models.CheckConstraint(condition=models.Q(('email', django.db.models.functions.text.Lower('email'))), name='user_email_lower')],
                    },
                ),
                migrations.CreateModel(
                    name='Profile',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('education', models.CharField(blank=True, max_length=120, verbose_name='education')),
                        ('experience', models.CharField(blank=True, max_length=240, verbose_name='experience')),
                        ('grew_up_with', models.JSONField(blank=True, default=list, verbose_name='languages grown up with')),
                        ('consented_at', models.DateTimeField(blank=True, null=True)),
                        ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='profile', to=settings.AUTH_USER_MODEL)),
                        ('age_band', models.CharField(blank=True, max_length=5)),
                        ('dialect', models.CharField(blank=True, max_length=80)),
                    ],
                ),
                migrations.CreateModel(
                    name='Project',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('slug', models.SlugField(max_length=60)),
                        ('name', models.CharField(max_length=120, verbose_name='name')),
                        ('description', models.TextField(blank=True, verbose_name='description')),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('archived_at', models.DateTimeField(blank=True, null=True)),
                        ('requires_second_factor', models.BooleanField(default=False, verbose_name='requires a second factor')),
                    ],
                    options={
                        'ordering': ['name', 'pk'],
                        'constraints': [models.UniqueConstraint(fields=('slug',), name='project_slug_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='Membership',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('role', models.CharField(choices=[('lead', 'Lead'), ('researcher', 'Researcher'), ('annotator', 'Annotator')], max_length=12, verbose_name='role')),
                        ('since', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to='accounts.project')),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('project', 'user'), name='membership_once'), models.CheckConstraint(condition=models.Q(('role__in', ['lead', 'researcher', 'annotator'])), name='membership_role_known')],
                    },
                ),
                migrations.CreateModel(
                    name='Job',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('kind', models.CharField(choices=[('check', 'Check of an import'), ('store', 'Import'), ('undo', 'Undo of an import'), ('export', 'Export'), ('bundle', 'Bundle import'), ('deliveries', 'Webhook deliveries'), ('numbers', 'Numbers of a campaign'), ('proposal', 'Version of a judge, proposed by a model'), ('search', 'Search for a version of a judge'), ('calls', 'Batch of calls'), ('rubric', "Change of a rubric's version"), ('checkup', 'Check-up of a dataset'), ('texts', 'Storing of written texts')], max_length=10)),
                        ('state', models.CharField(choices=[('waiting', 'Waiting'), ('running', 'Running'), ('finished', 'Finished'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='waiting', max_length=9)),
                        ('done', models.BigIntegerField(default=0)),
                        ('total', models.BigIntegerField(default=0)),
                        ('unit', models.CharField(blank=True, choices=[('bytes', 'bytes'), ('rows', 'rows'), ('deliveries', 'deliveries'), ('', '')], default='', max_length=10)),
                        ('tries', models.PositiveIntegerField(default=0)),
                        ('sentence', models.TextField(blank=True)),
                        ('lease', models.UUIDField(editable=False, null=True)),
                        ('lease_until', models.DateTimeField(editable=False, null=True)),
                        ('beat_at', models.DateTimeField(editable=False, null=True)),
                        ('sent_at', models.DateTimeField(editable=False, null=True)),
                        ('due_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('started_at', models.DateTimeField(editable=False, null=True)),
                        ('ended_at', models.DateTimeField(editable=False, null=True)),
                        ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(fields=['project', '-id'], name='job_by_project'), models.Index(condition=models.Q(('state__in', ['waiting', 'running'])), fields=['due_at'], name='job_open')],
                        'constraints': [models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'running', 'finished', 'failed', 'cancelled'])), name='job_state_known'), models.CheckConstraint(condition=models.Q(models.Q(('lease__isnull', False), ('lease_until__isnull', False), ('state', 'running')), models.Q(models.Q(('state', 'running'), _negated=True), ('lease', None)), _connector='OR'), name='job_leased_while_running'), models.CheckConstraint(condition=models.Q(('kind__in', ['check', 'store', 'undo', 'export', 'bundle', 'deliveries', 'numbers', 'proposal', 'search', 'calls', 'rubric', 'checkup', 'texts'])), name='job_kind_known')],
                    },
                ),
                migrations.CreateModel(
                    name='Invitation',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('role', models.CharField(choices=[('lead', 'Lead'), ('researcher', 'Researcher'), ('annotator', 'Annotator')], max_length=12)),
                        ('note', models.CharField(blank=True, max_length=120, verbose_name='for whom')),
                        ('languages', models.JSONField(blank=True, default=list)),
                        ('secret_digest', models.CharField(max_length=64)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('expires_at', models.DateTimeField()),
                        ('accepted_at', models.DateTimeField(null=True)),
                        ('revoked_at', models.DateTimeField(null=True)),
                        ('accepted_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='accounts.project')),
                        ('email', models.EmailField(blank=True, max_length=254, verbose_name='e-mail')),
                        ('name', models.CharField(blank=True, max_length=120, verbose_name='name')),
                        ('mailed_at', models.DateTimeField(null=True)),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'constraints': [models.UniqueConstraint(fields=('secret_digest',), name='invitation_secret_unique'), models.CheckConstraint(condition=models.Q(('role__in', ['lead', 'researcher', 'annotator'])), name='invitation_role_known')],
                    },
                ),
                migrations.CreateModel(
                    name='AuditEntry',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('verb', models.CharField(max_length=60)),
                        ('subject', models.CharField(max_length=60)),
                        ('subject_pk', models.BigIntegerField(null=True)),
                        ('fields', models.JSONField(default=list)),
                        ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.project')),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'indexes': [models.Index(fields=['project', '-id'], name='audit_by_project'), models.Index(condition=models.Q(('subject', 'accounts.User')), fields=['subject_pk'], name='audit_by_account')],
                    },
                ),
                migrations.CreateModel(
                    name='Token',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=80, verbose_name='name')),
                        ('scope', models.CharField(choices=[('read', 'Read everything I can read'), ('write', 'Upload, publish and run everything I can')], default='read', max_length=8, verbose_name='scope')),
                        ('digest', models.CharField(max_length=64)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('expires_at', models.DateTimeField()),
                        ('last_used_at', models.DateTimeField(null=True)),
                        ('revoked_at', models.DateTimeField(null=True)),
                        ('project', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.project')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tokens', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'ordering': ['-pk'],
                        'constraints': [models.UniqueConstraint(fields=('digest',), name='token_digest_unique'), models.CheckConstraint(condition=models.Q(('scope__in', ['read', 'write'])), name='token_scope_known')],
                    },
                ),
                migrations.CreateModel(
                    name='Webhook',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('address', models.CharField(max_length=500, verbose_name='address')),
                        ('events', models.JSONField(default=list, verbose_name='events')),
                        ('nonce', models.CharField(max_length=64)),
                        ('off', models.CharField(blank=True, choices=[('by_hand', 'Turned off by hand.'), ('gone', 'Turned off: the receiver answered 410, so it wants no more requests.'), ('failing', 'Turned off: no delivery succeeded for a day.')], max_length=8)),
                        ('failing_since', models.DateTimeField(null=True)),
                        ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='accounts.project')),
                        ('job', models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='accounts.job')),
                    ],
                    options={
                        'ordering': ['pk'],
                        'indexes': [models.Index(condition=models.Q(('off', '')), fields=['project'], name='webhook_listening')],
                        'constraints': [models.UniqueConstraint(fields=('project', 'address'), name='webhook_address_unique'), models.CheckConstraint(condition=models.Q(('off__in', ['', 'by_hand', 'gone', 'failing'])), name='webhook_off_known')],
                    },
                ),
                migrations.CreateModel(
                    name='Delivery',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.UUIDField()),
                        ('event', models.CharField(choices=[('ratings.submitted', 'Ratings submitted'), ('run.finished', 'Judge run finished'), ('plan.finished', 'Generation plan finished'), ('plan.paused', 'Generation plan paused'), ('import.finished', 'Import finished'), ('decision.changed', 'Decision about a judge changed'), ('test', 'Test')], max_length=20)),
                        ('subject_pk', models.BigIntegerField(null=True)),
                        ('payload', models.JSONField()),
                        ('state', models.CharField(choices=[('waiting', 'Waiting'), ('delivered', 'Delivered'), ('given_up', 'Not delivered')], default='waiting', max_length=9)),
                        ('tries', models.PositiveSmallIntegerField(default=0)),
                        ('due_at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('made_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('tried_at', models.DateTimeField(null=True)),
                        ('status', models.PositiveSmallIntegerField(null=True)),
                        ('reason', models.CharField(blank=True, max_length=200)),
                        ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='accounts.webhook')),
                    ],
                    options={
                        'verbose_name_plural': 'deliveries',
                        'ordering': ['-pk'],
                        'indexes': [models.Index(condition=models.Q(('state', 'waiting')), fields=['webhook', 'due_at'], name='delivery_due')],
                        'constraints': [models.UniqueConstraint(fields=('key',), name='delivery_key_unique'), models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'delivered', 'given_up'])), name='delivery_state_known')],
                    },
                ),
                migrations.CreateModel(
                    name='ProjectDeletion',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('deleted_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                        ('archived_before', models.DateTimeField(null=True)),
                        ('purge_started_at', models.DateTimeField(null=True)),
                        ('deleted_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                        ('project', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='deletion', to='accounts.project')),
                    ],
                ),
                migrations.CreateModel(
                    name='SuspendedMembership',
                    fields=[
                        ('membership_pk', models.BigIntegerField(primary_key=True, serialize=False)),
                        ('role', models.CharField(choices=[('lead', 'Lead'), ('researcher', 'Researcher'), ('annotator', 'Annotator')], max_length=12)),
                        ('since', models.DateTimeField()),
                        ('project', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='suspended_memberships', to='accounts.project')),
                        ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='suspended_memberships', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'constraints': [models.UniqueConstraint(fields=('project', 'user'), name='suspended_membership_once')],
                    },
                ),
            ],
        ),
    ]
