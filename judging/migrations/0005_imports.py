"""One word: what was called an intake is an import."""

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    dependencies: ClassVar = [("annotation", "0011_imports"), ("judging", "0004_allowances")]

    operations: ClassVar = [migrations.RenameField("judgerun", "intake", "file_import")]
