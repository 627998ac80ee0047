"""One word: what was called an intake is an import."""

from typing import Any, ClassVar

from django.db import migrations, models

ONE_ORIGIN = models.Q(
    models.Q(("assignment__isnull", False), ("file_import", None), ("key__isnull", False)),
    models.Q(("assignment", None), ("file_import__isnull", False), ("key", None)),
    _connector="OR",
)


def parts_renamed(apps: Any, old: str, new: str) -> None:
    """What a study's import or its dry run says of its parts names their imports."""
    for model, column in (("Import", "report"), ("DryRun", "seen")):
        for row in apps.get_model("annotation", model).objects.filter(**{f"{column}__has_key": "parts"}):
            for part in getattr(row, column)["parts"]:
                if old in part:
                    part[new] = part.pop(old)
            row.save(update_fields=[column])


def subjects_renamed(apps: Any, old: str, new: str) -> None:
    """The audit trail names the rows of a table by its label."""
    apps.get_model("accounts", "AuditEntry").objects.filter(subject=old).update(subject=new)


def forwards(apps: Any, editor: Any) -> None:
    parts_renamed(apps, "intake", "import_id")
    subjects_renamed(apps, "annotation.Intake", "annotation.Import")


def backwards(apps: Any, editor: Any) -> None:
    parts_renamed(apps, "import_id", "intake")
    subjects_renamed(apps, "annotation.Import", "annotation.Intake")


class Migration(migrations.Migration):
    # No dependency on judging, whose squashed migration depends on this app: see docs/decisions/0035-squashed-migrations.md.
    dependencies: ClassVar = [("accounts", "0006_invitation_name"), ("annotation", "0010_invited_seats")]

    operations: ClassVar = [
        migrations.RemoveConstraint("annotation", "annotation_imported_once"),
        migrations.RemoveConstraint("annotation", "annotation_has_one_origin"),
        migrations.RemoveConstraint("intake", "intake_kind_known"),
        migrations.RemoveConstraint("intake", "intake_state_known"),
        migrations.RenameModel("Intake", "Import"),
        migrations.RenameModel("IntakeFile", "ImportFile"),
        migrations.RenameIndex("import", new_name="import_by_project", old_name="intake_by_project"),
        migrations.RenameField("importfile", "intake", "file_import"),
        migrations.RenameField("dryrun", "intake", "file_import"),
        migrations.RenameField("dataset", "intake", "file_import"),
        migrations.RenameField("annotation", "intake", "file_import"),
        migrations.AlterField("importfile", "content", models.FileField(upload_to="imports/%Y/%m/")),
        migrations.AlterField("upload", "content", models.FileField(upload_to="imports/%Y/%m/")),
        migrations.AddConstraint(
            "annotation",
            models.UniqueConstraint(fields=("file_import", "item", "annotator"), name="annotation_imported_once"),
        ),
        migrations.AddConstraint(
            "annotation", models.CheckConstraint(condition=ONE_ORIGIN, name="annotation_has_one_origin")
        ),
        migrations.AddConstraint(
            "import",
            models.CheckConstraint(
                condition=models.Q(("kind__in", ["dataset", "rubric", "ratings", "verdicts", "study"])),
                name="import_kind_known",
            ),
        ),
        migrations.AddConstraint(
            "import",
            models.CheckConstraint(
                condition=models.Q(("state__in", ["uploaded", "checking", "storing", "stored", "failed"])),
                name="import_state_known",
            ),
        ),
        migrations.RunPython(forwards, backwards, elidable=True),
    ]
