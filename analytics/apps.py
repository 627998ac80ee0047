from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    name = "analytics"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts import jobs
        from analytics import transfers

        jobs.KINDS.update(transfers.KINDS)
        if transfers.clear not in jobs.cleanings:
            jobs.cleanings.append(transfers.clear)
