from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


class AnnotationConfig(AppConfig):
    name = "annotation"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts import jobs, people, removal
        from annotation import campaigns, panels, rubric_changes
        from annotation.desk import answers
        from annotation.imports import import_jobs, parsed_files, storage, uploads
        from annotation.readers import set_bounds

        for redact in (answers.note_rules_kept, panels.redact):  # the rationales are checked, then erased
            if redact not in removal.redactions:
                removal.redactions.append(redact)
        if campaigns.contents not in removal.contents:
            removal.contents.append(campaigns.contents)
        jobs.KINDS.update(import_jobs.KINDS | rubric_changes.KINDS)
        for clear in (storage.sweep, uploads.sweep_uploads, parsed_files.sweep_parsed):
            if clear not in jobs.cleanings:
                jobs.cleanings.append(clear)
        if not people.panel_access:
            people.panel_access.append(
                people.PanelAccess(
                    choices=panels.choices,
                    reserve=panels.reserve,
                    seat=panels.seat_invited,
                    names=panels.names_by_invitation,
                )
            )
        if wrong := [name for name, value in settings.IMPORT_BOUNDS.items() if value < 1]:
            raise ImproperlyConfigured(f"The bounds of imports are 1 or more: {', '.join(wrong)}.")
        set_bounds(**settings.IMPORT_BOUNDS)
