from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('annotation', '0017_selections'),
    ]

    operations = [
        migrations.AddField(
            model_name='skip',
            name='resolved_at',
            field=models.DateTimeField(null=True),
        ),
    ]
