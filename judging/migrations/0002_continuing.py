import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="judgerun",
            name="continues",
            field=models.ForeignKey(
                null=True, on_delete=django.db.models.deletion.PROTECT, related_name="+", to="judging.judgerun"
            ),
        ),
    ]
