"""The URL patterns of the desk. A GET never leases an item; only a POST does."""

from django.urls import path

from annotation.desk import api as routes
from annotation.desk import stage_pages, views

pages = [
    path("desk/", views.duties_view, name="desk"),
    path("desk/work/", views.work_view, name="desk_work"),
    path("desk/leave/", views.leave, name="desk_leave"),
    path("desk/<int:duty>/", views.next_item, name="desk_duty"),
    path("desk/<int:duty>/scored/", views.scored_view, name="desk_scored"),
    path("desk/<int:duty>/questions/", views.thread_view, name="desk_questions"),
    path("desk/<int:duty>/before/", stage_pages.before_work_view, name="desk_before"),
    path("desk/<int:duty>/closing/", stage_pages.closing_view, name="desk_closing"),
    path("desk/<int:duty>/guidelines/", stage_pages.guidelines_view, name="desk_guidelines"),
    path("desk/<int:duty>/training/", stage_pages.training_view, name="desk_training"),
    path("desk/<int:duty>/exam/", stage_pages.exam_view, name="desk_exam"),
    path("desk/at/<uuid:key>/feedback/", stage_pages.feedback_view, name="desk_feedback"),
    path("desk/at/<uuid:key>/contest/", stage_pages.contest_view, name="desk_contest"),
    path("desk/at/<uuid:key>/scores/", views.revise_view, name="desk_revise"),
    path("desk/at/<uuid:key>/", views.item, name="desk_item"),
    path("desk/at/<uuid:key>/submit/", views.submit_view, name="desk_submit"),
    path("desk/at/<uuid:key>/draft/", views.draft_view, name="desk_draft"),
    path("desk/at/<uuid:key>/heartbeat/", views.heartbeat, name="desk_heartbeat"),
    path("desk/at/<uuid:key>/ask/", views.ask_view, name="desk_ask"),
    path("desk/at/<uuid:key>/skip/", views.skip_view, name="desk_skip"),
    path("desk/at/<uuid:key>/undo/", views.undo_view, name="desk_undo"),
]

api = [
    path("projects/<slug:project>/desk/", routes.DeskDuties.as_view(), name="api_desk"),
    path("projects/<slug:project>/desk/<int:duty>/take/", routes.Take.as_view(), name="api_desk_take"),
    path("projects/<slug:project>/desk/at/<uuid:key>/", routes.Submit.as_view(), name="api_desk_submit"),
]
