"""Projects that have judges keep the providers that these use."""

from typing import Any

from django.db import migrations


def allow_what_is_used(apps: Any, schema_editor: Any) -> None:
    judges = apps.get_model("judging", "Judge").objects.exclude(provider="").filter(simulated=False)
    allowance = apps.get_model("judging", "ProviderAllowance")
    used = judges.order_by().values_list("project", "provider").distinct()
    allowance.objects.bulk_create(
        [allowance(project_id=project, provider=provider) for project, provider in used], ignore_conflicts=True
    )


class Migration(migrations.Migration):
    dependencies = [("judging", "0003_spending")]

    operations = [migrations.RunPython(allow_what_is_used, migrations.RunPython.noop)]
