"""All URL patterns. Each app defines its own pages and API routes; this file includes them."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

import accounts.urls
import analytics.urls
import annotation.urls
import judging.urls
from panelbench import health

handler404 = "panelbench.pages.not_found"
handler500 = "panelbench.pages.server_error"

APPS = (accounts.urls, annotation.urls, judging.urls, analytics.urls)


class DocumentationPage(SpectacularSwaggerSplitView):
    """The API's documentation. Only GET and HEAD are allowed: OPTIONS would look for a template that does not exist."""

    http_method_names = ["get", "head"]


urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    *(path("", include(app.pages)) for app in APPS),
    path("account/", include("allauth.urls")),
    *(path("api/v1/", include(app.api)) for app in APPS),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", DocumentationPage.as_view(url_name="schema"), name="api_docs"),
]
