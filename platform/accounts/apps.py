from typing import Any

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "accounts"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from allauth.mfa.signals import authentication_failed
        from django.contrib.auth.signals import user_logged_in

        from accounts import middleware
        from accounts.texts import refuse_numbers

        refuse_numbers()
        # What Django and allauth tell by signals only.
        user_logged_in.connect(middleware.start, dispatch_uid="session limits")
        authentication_failed.connect(_code_failed, dispatch_uid="wrong codes")


def _code_failed(*, user: Any, **signal: Any) -> None:
    from accounts import activity

    activity.record(verb=activity.CODE_FAILED, user_pk=user.pk)
