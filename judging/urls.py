"""Addresses of judges, their runs and imported verdicts."""

from django.urls import path

from judging.api import verdict_imports as verdict_import_routes
from judging.views import verdict_imports

pages = [
    path("p/<slug:project>/verdict-imports/<int:intake>/", verdict_imports.verdict_import, name="verdict_import"),
    path(
        "p/<slug:project>/verdict-imports/<int:intake>/store/",
        verdict_imports.store_verdict_import,
        name="verdict_import_store",
    ),
    path(
        "p/<slug:project>/verdict-imports/<int:intake>/undo/",
        verdict_imports.undo_verdict_import,
        name="verdict_import_undo",
    ),
]

api = [
    path(
        "projects/<slug:project>/verdict-imports/<int:intake>/preview/",
        verdict_import_routes.VerdictPreview.as_view(),
        name="api_verdict_import_preview",
    ),
    path(
        "projects/<slug:project>/verdict-imports/<int:intake>/store/",
        verdict_import_routes.VerdictStorage.as_view(),
        name="api_verdict_import_store",
    ),
    path(
        "projects/<slug:project>/verdict-imports/<int:intake>/undo/",
        verdict_import_routes.VerdictUndo.as_view(),
        name="api_verdict_import_undo",
    ),
]
