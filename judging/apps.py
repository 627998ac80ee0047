from django.apps import AppConfig


class JudgingConfig(AppConfig):
    name = "judging"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from accounts import people
        from judging.runs import pause_all

        if pause_all not in people.stops:
            people.stops.append(pause_all)
