from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


class AnnotationConfig(AppConfig):
    """Registers what lower apps call. The modules that do it are imported when it is called: commands start sooner."""

    name = "annotation"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts import deletion, jobs, people, removal
        from annotation.readers import set_bounds

        removal.redactions.append(_redact)
        deletion.contents.append(_contents)
        jobs.kinds_of_apps.append(_job_kinds)
        jobs.cleanings.extend((_sweep_stored, _sweep_uploads, _sweep_parsed))
        people.panel_access.append(
            people.PanelAccess(
                choices=lambda project: _panels().choices(project),
                reserve=lambda invitation, panel: _panels().reserve(invitation, panel),
                seat=lambda invitation, user: _panels().seat_invited(invitation, user),
                seat_member=lambda member, panel, actor: _panels().seat_listed(member, panel, actor),
                names=lambda invitations: _panels().names_by_invitation(invitations),
            )
        )
        if wrong := [name for name, value in settings.IMPORT_BOUNDS.items() if value < 1]:
            raise ImproperlyConfigured(f"The bounds of imports are 1 or more: {', '.join(wrong)}.")
        set_bounds(**settings.IMPORT_BOUNDS)


def _panels() -> Any:
    from annotation import panels

    return panels


def _redact(user: Any, project: Any) -> None:
    from annotation.collection import prompt_writing, texts
    from annotation.desk import answers

    prompt_writing.redact_prompts(user, project)
    texts.redact_writing(user, project)
    answers.note_rules_kept(user, project)  # the rationales are checked, then erased
    _panels().redact(user, project)


def _contents(project: Any) -> Any:
    from annotation import campaigns

    return campaigns.contents(project)


def _job_kinds() -> dict[str, Any]:
    from annotation import rubric_changes
    from annotation.checkup import checkups
    from annotation.imports import import_jobs

    return import_jobs.KINDS | rubric_changes.KINDS | checkups.KINDS


def _sweep_stored() -> None:
    from annotation.imports import storage

    storage.sweep()


def _sweep_uploads() -> None:
    from annotation.imports import uploads

    uploads.sweep_uploads()


def _sweep_parsed() -> None:
    from annotation.imports import parsed_files

    parsed_files.sweep_parsed()
