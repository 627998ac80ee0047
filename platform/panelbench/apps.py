from django.apps import AppConfig


class PanelbenchConfig(AppConfig):
    name = "panelbench"

    def ready(self) -> None:
        # Tasks find their broker through the application that is loaded last: it must be ours in every process.
        from panelbench import celery, health  # noqa: F401
