"""What was found in a campaign, for leads and researchers."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import Role
from analytics import tasks
from analytics.study.choice import COMPARED_WITH
from analytics.study.study import CampaignStudy
from analytics.views.items import shown_campaign
from analytics.views.study import study_choice

TOPICS = ("people", "judges", "generators", "certainty")


class StudyFindingSerializer(serializers.Serializer[Any]):
    """What was found about one topic, in sentences of the reader's language."""

    topic = serializers.ChoiceField(choices=TOPICS)
    sentences = serializers.ListField(child=serializers.CharField())
    is_preliminary = serializers.BooleanField()


class StudyChoiceSerializer(serializers.Serializer[Any]):
    """What the findings are about; an empty language means all of them."""

    judge = serializers.CharField(allow_blank=True)
    criterion = serializers.CharField(allow_blank=True)
    language = serializers.CharField(allow_blank=True)
    reference = serializers.ChoiceField(choices=COMPARED_WITH)


class OpenMatterSerializer(serializers.Serializer[Any]):
    """Something that waits for a person, and the address of the page on which it is dealt with."""

    sentence = serializers.CharField()
    address = serializers.CharField()


class StudyFindingsSerializer(serializers.Serializer[Any]):
    """The findings; `is_computed`: false while figures are computed, so that topics may be missing or out of date."""

    choice = StudyChoiceSerializer()
    is_computed = serializers.BooleanField()
    findings = StudyFindingSerializer(many=True)
    open = OpenMatterSerializer(many=True)


class StudyFindings(APIView):
    @extend_schema(
        parameters=[OpenApiParameter(name, {"type": "string"}) for name in ("judge", "criterion", "language")]
        + [OpenApiParameter("reference", {"type": "string", "enum": list(COMPARED_WITH)})],
        responses=StudyFindingsSerializer,
    )
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """What was found: people, judges, generators, how sure that is, and what is open."""
        current = shown_campaign(request.user, project, campaign)
        if "reference" in request.query_params:
            serializers.ChoiceField(choices=COMPARED_WITH).run_validation(request.query_params["reference"])
        is_lead = access.holds(user=request.user, project=current.project, roles=(Role.LEAD,))
        study = CampaignStudy(current, study_choice(request.query_params), is_lead=is_lead)
        document = study.document()
        for settings in study.stale:
            tasks.ask_to_compute(campaign=current, settings=settings)
        return Response(StudyFindingsSerializer(document).data)
