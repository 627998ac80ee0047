"""The URL patterns of the accounts app."""

from django.urls import path

from accounts import api as routes
from accounts.views import jobs, own_account, people, projects, trail, webhooks

pages = [
    path("", projects.home, name="home"),
    path("new/", projects.new_project, name="project_new"),
    path("join/<str:secret>/", people.join, name="join"),
    path("language/", own_account.set_language, name="set_language"),
    path("me/", own_account.me, name="me"),
    path("me/profile/", own_account.profile, name="profile"),
    path("me/erase/", own_account.erase, name="erase_me"),
    path("me/tokens/", own_account.tokens_page, name="tokens"),
    path("me/tokens/<int:token>/revoke/", own_account.revoke_token_view, name="token_revoke"),
    path("p/<slug:project>/people/", people.people_page, name="people"),
    path("p/<slug:project>/people/invite/", people.invite_list_view, name="people_invite"),
    path("p/<slug:project>/people/<int:member>/role/", people.change_role_view, name="member_role"),
    path("p/<slug:project>/people/<int:member>/remove/", people.remove_member_view, name="member_remove"),
    path(
        "p/<slug:project>/invitations/<int:invitation>/revoke/", people.revoke_invitation_view, name="invitation_revoke"
    ),
    path("p/<slug:project>/audit/", trail.audit_page, name="audit"),
    path("jobs/", jobs.all_jobs, name="all_jobs"),
    path("jobs/<int:job>/cancel/", jobs.cancel_any_job, name="any_job_cancel"),
    path("p/<slug:project>/jobs/", jobs.jobs_page, name="jobs"),
    path("p/<slug:project>/jobs/<int:job>/cancel/", jobs.cancel_job, name="job_cancel"),
    path("p/<slug:project>/settings/", webhooks.settings_page, name="settings"),
    path("p/<slug:project>/settings/project/", projects.project_rules, name="project_rules"),
    path("p/<slug:project>/settings/project/name/", projects.rename_project, name="project_rename"),
    path("p/<slug:project>/settings/delete/", projects.delete_project_view, name="project_delete"),
    path("p/<slug:project>/restore/", projects.restore_project_view, name="project_restore"),
    path("p/<slug:project>/settings/webhooks/", webhooks.webhooks_page, name="webhooks"),
    path("p/<slug:project>/settings/webhooks/<int:webhook>/", webhooks.webhook_page, name="webhook"),
    path("p/<slug:project>/settings/webhooks/<int:webhook>/turn/", webhooks.turn_webhook, name="webhook_turn"),
    path("p/<slug:project>/settings/webhooks/<int:webhook>/secret/", webhooks.renew_webhook, name="webhook_renew"),
    path("p/<slug:project>/settings/webhooks/<int:webhook>/test/", webhooks.test_webhook, name="webhook_test"),
    path(
        "p/<slug:project>/settings/webhooks/<int:webhook>/remove/", webhooks.remove_webhook_view, name="webhook_remove"
    ),
    path(
        "p/<slug:project>/settings/webhooks/<int:webhook>/deliveries/<int:delivery>/again/",
        webhooks.send_again_view,
        name="delivery_again",
    ),
]

api = [
    path("me/", routes.Me.as_view(), name="api_me"),
    path("projects/", routes.Projects.as_view(), name="api_projects"),
    path("projects/<slug:project>/", routes.ProjectDetail.as_view(), name="api_project"),
    path("projects/<slug:project>/restore/", routes.ProjectRestore.as_view(), name="api_project_restore"),
    path("projects/<slug:project>/jobs/", routes.Jobs.as_view(), name="api_jobs"),
    path("projects/<slug:project>/jobs/<int:job>/cancel/", routes.JobCancel.as_view(), name="api_job_cancel"),
    path("projects/<slug:project>/members/", routes.Members.as_view(), name="api_members"),
    path("projects/<slug:project>/invitations/", routes.Invitations.as_view(), name="api_invitations"),
    path("projects/<slug:project>/webhooks/", routes.Webhooks.as_view(), name="api_webhooks"),
    path("projects/<slug:project>/webhooks/<int:webhook>/", routes.WebhookDetail.as_view(), name="api_webhook"),
    path(
        "projects/<slug:project>/webhooks/<int:webhook>/secret/",
        routes.WebhookSecret.as_view(),
        name="api_webhook_secret",
    ),
    path(
        "projects/<slug:project>/webhooks/<int:webhook>/test/",
        routes.WebhookTest.as_view(),
        name="api_webhook_test",
    ),
    path(
        "projects/<slug:project>/webhooks/<int:webhook>/deliveries/",
        routes.Deliveries.as_view(),
        name="api_deliveries",
    ),
    path(
        "projects/<slug:project>/webhooks/<int:webhook>/deliveries/<int:delivery>/again/",
        routes.DeliveryAgain.as_view(),
        name="api_delivery_again",
    ),
]
