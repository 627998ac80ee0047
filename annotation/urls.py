"""Addresses of what is rated, by whom, on which rubric."""

from django.urls import path

from annotation.api import campaigns as campaign_routes
from annotation.api import desk as desk_routes
from annotation.api import panels as panel_routes
from annotation.views import campaigns, desk, panels

pages = [
    path("desk/", desk.duties, name="desk"),
    path("desk/leave/", desk.leave, name="desk_leave"),
    path("desk/<int:duty>/", desk.next_item, name="desk_duty"),
    path("desk/at/<uuid:key>/", desk.item, name="desk_item"),
    path("desk/at/<uuid:key>/submit/", desk.submit, name="desk_submit"),
    path("desk/at/<uuid:key>/draft/", desk.draft, name="desk_draft"),
    path("desk/at/<uuid:key>/heartbeat/", desk.heartbeat, name="desk_heartbeat"),
    path("desk/at/<uuid:key>/skip/", desk.skip, name="desk_skip"),
    path("desk/at/<uuid:key>/undo/", desk.undo, name="desk_undo"),
    path("p/<slug:project>/campaigns/", campaigns.campaigns_page, name="campaigns"),
    path("p/<slug:project>/campaigns/new/", campaigns.new_campaign, name="campaign_new"),
    path("p/<slug:project>/campaigns/<int:campaign>/", campaigns.campaign_page, name="campaign"),
    path("p/<slug:project>/campaigns/<int:campaign>/state/", campaigns.move_campaign, name="campaign_move"),
    path("p/<slug:project>/campaigns/<int:campaign>/duties/new/", campaigns.new_duty, name="duty_new"),
    path("p/<slug:project>/panels/", panels.panels_page, name="panels"),
    path("p/<slug:project>/panels/<int:panel>/", panels.panel_page, name="panel"),
    path("p/<slug:project>/panels/<int:panel>/seats/", panels.seat_member, name="panel_seat"),
    path("p/<slug:project>/panels/<int:panel>/seats/<int:seat>/remove/", panels.unseat, name="panel_unseat"),
]

api = [
    path("projects/<slug:project>/campaigns/", campaign_routes.Campaigns.as_view(), name="api_campaigns"),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/",
        campaign_routes.CampaignDetail.as_view(),
        name="api_campaign",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/state/",
        campaign_routes.CampaignState.as_view(),
        name="api_campaign_state",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/duties/",
        campaign_routes.Duties.as_view(),
        name="api_duties",
    ),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/progress/",
        campaign_routes.CampaignProgress.as_view(),
        name="api_campaign_progress",
    ),
    path("projects/<slug:project>/panels/", panel_routes.Panels.as_view(), name="api_panels"),
    path("projects/<slug:project>/panels/<int:panel>/seats/", panel_routes.Seats.as_view(), name="api_seats"),
    path("projects/<slug:project>/panels/<int:panel>/seats/<int:seat>/", panel_routes.Seat.as_view(), name="api_seat"),
    path("projects/<slug:project>/desk/", desk_routes.DeskDuties.as_view(), name="api_desk"),
    path("projects/<slug:project>/desk/<int:duty>/take/", desk_routes.Take.as_view(), name="api_desk_take"),
    path("projects/<slug:project>/desk/at/<uuid:key>/", desk_routes.Submit.as_view(), name="api_desk_submit"),
]
