"""Addresses of people and projects."""

from django.urls import path

from accounts import api as routes
from accounts.views import home, me, people

pages = [
    path("", home.home, name="home"),
    path("new/", home.new_project, name="project_new"),
    path("join/<str:secret>/", people.join, name="join"),
    path("language/", me.set_language, name="set_language"),
    path("me/", me.me, name="me"),
    path("me/profile/", me.profile, name="profile"),
    path("me/tokens/", me.tokens_page, name="tokens"),
    path("me/tokens/<int:token>/revoke/", me.revoke_token, name="token_revoke"),
    path("p/<slug:project>/people/", people.people_page, name="people"),
    path("p/<slug:project>/people/<int:member>/role/", people.change_role, name="member_role"),
    path("p/<slug:project>/people/<int:member>/remove/", people.remove_member, name="member_remove"),
    path("p/<slug:project>/invitations/<int:invitation>/revoke/", people.revoke_invitation, name="invitation_revoke"),
    path("p/<slug:project>/audit/", people.audit_page, name="audit"),
]

api = [
    path("me/", routes.Me.as_view(), name="api_me"),
    path("projects/", routes.Projects.as_view(), name="api_projects"),
    path("projects/<slug:project>/", routes.ProjectDetail.as_view(), name="api_project"),
    path("projects/<slug:project>/members/", routes.Members.as_view(), name="api_members"),
]
