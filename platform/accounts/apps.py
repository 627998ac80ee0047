from typing import Any

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from allauth.mfa.signals import authentication_failed
        from django.contrib.auth.signals import user_logged_in

        from accounts import jobs, middleware

        _refuse_numbers_for_text()
        jobs.kinds_of_apps.append(_job_kinds)
        # Django and allauth report these two events only by signals.
        user_logged_in.connect(middleware.start_session_limits, dispatch_uid="session limits")
        authentication_failed.connect(_code_failed, dispatch_uid="wrong codes")


def _job_kinds() -> dict[str, Any]:
    from accounts import webhooks

    return webhooks.KINDS


def _code_failed(*, user: Any, **signal: Any) -> None:
    from accounts import audit

    audit.record_activity(verb=audit.CODE_FAILED, user_pk=user.pk)


def _refuse_numbers_for_text() -> None:
    """Refuse numbers in text fields of the API, as its schema promises.

    REST framework converts numbers to text in all its text fields, also in those of model serializers, and has no
    setting to change that.
    """
    from rest_framework.serializers import CharField

    written_out = CharField.to_internal_value

    def text(field: CharField, value: Any) -> str:
        if not isinstance(value, str):
            field.fail("invalid")
        return written_out(field, value)

    CharField.to_internal_value = text  # type: ignore[method-assign, assignment]
