from django.apps import AppConfig
from django.conf import settings
from django.utils import formats


class PanelbenchConfig(AppConfig):
    name = "panelbench"

    def ready(self) -> None:
        # Tasks find their broker through the application that is loaded last: it must be ours in every process.
        from panelbench import celery, health  # noqa: F401

        write_numbers_alike()


def write_numbers_alike() -> None:
    """Numbers of pages as in the figures beside them, in every language: 0.71 and 1,500 (decision 0040)."""
    for language, _name in settings.LANGUAGES:
        for module in formats.get_format_modules(language):
            vars(module).update(DECIMAL_SEPARATOR=".", THOUSAND_SEPARATOR=",", NUMBER_GROUPING=3)
