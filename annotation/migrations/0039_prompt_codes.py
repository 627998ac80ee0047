from typing import Any

from django.db import migrations, models

import annotation.models.collection


def name_prompts(apps: Any, schema_editor: Any) -> None:
    for prompt in apps.get_model("annotation", "CollectedPrompt").objects.filter(code="").only("pk"):
        prompt.code = annotation.models.collection.new_prompt_code()
        prompt.save(update_fields=["code"])


class Migration(migrations.Migration):
    dependencies = [("annotation", "0038_writing_duties")]

    operations = [
        migrations.AddField(
            "promptversion",
            "signature",
            models.CharField(blank=True, default="", editable=False, max_length=512),
            preserve_default=False,
        ),
        migrations.AddField(
            "collectedprompt",
            "code",
            models.CharField(default="", editable=False, max_length=10),
            preserve_default=False,
        ),
        migrations.RunPython(name_prompts, migrations.RunPython.noop, elidable=True),
        migrations.AlterField(
            "collectedprompt",
            "code",
            models.CharField(default=annotation.models.collection.new_prompt_code, editable=False, max_length=10),
        ),
        migrations.AlterField(
            "collectedprompt",
            "state",
            models.CharField(
                choices=[
                    ("draft", "Draft"),
                    ("in_review", "In review"),
                    ("returned", "Sent back"),
                    ("accepted", "Accepted"),
                    ("rejected", "Rejected"),
                    ("released", "Given to somebody else"),
                ],
                default="draft",
                max_length=9,
            ),
        ),
        migrations.RemoveConstraint("collectedprompt", "prompt_state_known"),
        migrations.AddConstraint(
            "collectedprompt",
            models.CheckConstraint(
                condition=models.Q(state__in=["draft", "in_review", "returned", "accepted", "rejected", "released"]),
                name="prompt_state_known",
            ),
        ),
    ]
