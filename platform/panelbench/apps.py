from django.apps import AppConfig


class PanelbenchConfig(AppConfig):
    name = "panelbench"
