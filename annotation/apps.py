from django.apps import AppConfig


class AnnotationConfig(AppConfig):
    name = "annotation"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts import erasure
        from annotation.redaction import redact

        if redact not in erasure.redactions:
            erasure.redactions.append(redact)
