"""The product's addresses and the bare view."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import include, path

from annotation.models import Annotation, Assignment, Rating


def bare(request: HttpRequest, assignment: int) -> HttpResponse:
    """What a submission writes, and nothing else: no look-up, no check, no draft; the form brings every key."""
    if not request.user.is_authenticated:
        return HttpResponse(status=401)
    form = request.POST
    with transaction.atomic():
        Assignment.objects.filter(pk=assignment).update(state=Assignment.State.SUBMITTED)
        annotation = Annotation.objects.create(
            assignment_id=assignment,
            campaign_id=form["campaign"],
            item_id=form["item"],
            annotator_id=form["annotator"],
            key=form["key"],
            seconds=float(form["seconds"]),
        )
        Rating.objects.bulk_create(
            Rating(annotation=annotation, criterion_id=criterion, score=float(form[f"score-{criterion}"]))
            for criterion in form["criteria"].split(",")
        )
    answer = JsonResponse({"next": "/"})
    answer.headers["Content-Length"] = str(len(answer.content))  # without it the server would send chunks
    return answer


urlpatterns = [path("bare/<int:assignment>/", bare), path("", include("panelbench.urls"))]
