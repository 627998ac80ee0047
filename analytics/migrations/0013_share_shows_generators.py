from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [('analytics', '0012_gate')]

    operations = [
        migrations.AddField(
            model_name='share',
            name='shows_generators',
            field=models.BooleanField(default=False),
        ),
    ]
