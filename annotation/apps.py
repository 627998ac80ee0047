from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


class AnnotationConfig(AppConfig):
    name = "annotation"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts import erasure
        from annotation.formats.bounds import set_bounds
        from annotation.redaction import redact

        if redact not in erasure.redactions:
            erasure.redactions.append(redact)
        if wrong := [name for name, value in settings.IMPORT_BOUNDS.items() if value < 1]:
            raise ImproperlyConfigured(f"The bounds of imports are 1 or more: {', '.join(wrong)}.")
        set_bounds(**settings.IMPORT_BOUNDS)
