from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    name = "analytics"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts import jobs
        from analytics import computing, transfers

        jobs.KINDS.update(transfers.KINDS)
        jobs.KINDS.update(computing.KINDS)
        if transfers.clear not in jobs.cleanings:
            jobs.cleanings.append(transfers.clear)
