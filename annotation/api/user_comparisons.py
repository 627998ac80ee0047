"""Comparisons of simulated users with people; for leads and researchers."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import Project, User
from annotation import allocation, selections
from annotation.api.campaigns import LARGEST_ID, SEEDS, CampaignSerializer
from annotation.models import Dataset, Panel
from annotation.sampling import user_comparison
from annotation.sampling.user_comparison import DrawnComparison, UserComparisonSettings


class UserComparisonSerializer(serializers.Serializer[Any]):
    """Two datasets and how they are mixed; docs/simulation.md says what each part does."""

    simulated = serializers.IntegerField(min_value=1, max_value=LARGEST_ID, help_text="The dataset of simulated users.")
    human = serializers.IntegerField(min_value=1, max_value=LARGEST_ID, help_text="The dataset with people.")
    n = serializers.IntegerField(
        min_value=1, max_value=user_comparison.MOST_PER_LANGUAGE, default=50, help_text="Of each origin per language."
    )
    rated = serializers.ChoiceField(choices=user_comparison.UNITS_RATED, default="turn")
    simulated_user = serializers.CharField(
        max_length=200, allow_blank=True, default="", help_text="The speaker who is the user; empty: found by its name."
    )
    human_user = serializers.CharField(max_length=200, allow_blank=True, default="")
    seed = serializers.IntegerField(required=False, **SEEDS, help_text="Without one a random seed is drawn and kept.")


class NewUserComparisonSerializer(UserComparisonSerializer):
    name = serializers.CharField(
        max_length=user_comparison.LONGEST_COMPARISON_NAME, help_text="Of the campaign and of the mixed dataset."
    )
    panels = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID),
        default=list,
        max_length=100,
        help_text="The panels that rate it; without them nobody has items yet.",
    )
    overlap = serializers.IntegerField(min_value=1, max_value=allocation.MOST_OVERLAP, default=3)
    keep_names = serializers.BooleanField(default=False)


class ComparedLanguageSerializer(serializers.Serializer[Any]):
    language = serializers.CharField()
    simulated = serializers.IntegerField(help_text="Dialogues with simulated users.")
    human = serializers.IntegerField(help_text="Dialogues with people.")
    pairs = serializers.IntegerField(help_text="How many of each are chosen.")


class DrawnComparisonSerializer(serializers.Serializer[Any]):
    items = serializers.IntegerField()
    seed = serializers.IntegerField(source="settings.seed")
    rated = serializers.CharField(source="settings.rated")
    simulated_user = serializers.CharField(source="settings.simulated_user")
    human_user = serializers.CharField(source="settings.human_user")
    languages = ComparedLanguageSerializer(many=True)


def _asked(project: Project, user: User, given: dict[str, Any]) -> dict[str, Any]:
    visible = Dataset.objects.visible_to(user).filter(project=project).select_related("project")
    found = visible.in_bulk([given["simulated"], given["human"]])
    if missing := {given["simulated"], given["human"]} - found.keys():
        raise Http404(f"There is no dataset {min(missing)}.")
    sources = {name: found[given[name]] for name in ("simulated", "human")}
    seed = given.get("seed")
    settings = UserComparisonSettings(
        seed=selections.new_seed() if seed is None else seed,
        **{name: given[name] for name in ("n", "rated", "simulated_user", "human_user")},
    )
    return {**sources, "settings": settings}


class UserComparisons(APIView):
    @extend_schema(request=NewUserComparisonSerializer, responses={201: CampaignSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Mix the dialogues into one dataset, and open a campaign in which annotators say who is a person."""
        current_project = access.require(user=request.user, slug=project)
        serializer = NewUserComparisonSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        given = serializer.validated_data
        visible = Panel.objects.visible_to(request.user).filter(project=current_project)
        panels = list(visible.filter(pk__in=given["panels"]))
        if len(panels) < len({*given["panels"]}):
            raise Http404("There is no such panel.")
        campaign = user_comparison.start_user_comparison(
            project=current_project,
            name=given["name"],
            panels=panels,
            overlap=given["overlap"],
            keep_names=given["keep_names"],
            actor=request.user,
            **_asked(current_project, request.user, given),
        )
        return Response(CampaignSerializer(campaign).data, status=status.HTTP_201_CREATED)


class UserComparisonPreview(APIView):
    @extend_schema(request=UserComparisonSerializer, responses=DrawnComparisonSerializer)
    def post(self, request: Request, project: str) -> Response:
        """How many dialogues a comparison would have; stores nothing."""
        current_project = access.require(user=request.user, slug=project)
        serializer = UserComparisonSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        asked = _asked(current_project, request.user, serializer.validated_data)
        drawn: DrawnComparison = user_comparison.draw_comparison(**asked)
        return Response(DrawnComparisonSerializer(drawn).data)
