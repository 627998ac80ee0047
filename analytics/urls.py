"""Addresses of what the numbers say, and of a project's overview."""

from django.urls import path

from analytics.api import numbers as routes
from analytics.views import numbers, projects

pages = [
    path("p/<slug:project>/", projects.project_page, name="project"),
    path("p/<slug:project>/numbers/", numbers.numbers_page, name="numbers"),
    path("p/<slug:project>/numbers/<int:campaign>/", numbers.campaign_numbers, name="campaign_numbers"),
    path(
        "p/<slug:project>/numbers/<int:campaign>/<int:snapshot>/bias.svg", numbers.bias_chart, name="numbers_bias_chart"
    ),
]

api = [
    path("projects/<slug:project>/campaigns/<int:campaign>/numbers/", routes.Numbers.as_view(), name="api_numbers"),
    path(
        "projects/<slug:project>/campaigns/<int:campaign>/ratings.csv",
        routes.RatingsTable.as_view(),
        name="api_ratings_table",
    ),
    path("projects/<slug:project>/exports/<slug:what>/", routes.Exports.as_view(), name="api_export"),
]
