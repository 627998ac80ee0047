"""Selections of a campaign's items; for leads and researchers."""

from __future__ import annotations

from typing import Any

from django.db.models import Count, QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.inputs import is_storable
from accounts.models import User
from annotation import selections
from annotation.api.campaigns import SEEDS, campaign_in_project
from annotation.models import ItemSelection, SelectedItem


class SelectionSerializer(serializers.Serializer[ItemSelection]):
    id = serializers.IntegerField(source="pk", read_only=True)
    campaign = serializers.IntegerField(source="campaign_id", read_only=True)
    name = serializers.CharField(max_length=120)
    rule = serializers.JSONField(
        help_text='Such as {"kind": "draw", "n": 20, "by": ["language", "generator"], "unit": "item", "filter": {}}; '
        "kinds: draw, filter, duty, list."
    )
    seed = serializers.IntegerField(required=False, **SEEDS, help_text="Without one a random seed is drawn and kept.")
    items = serializers.IntegerField(source="items_count", read_only=True)
    created_at = serializers.DateTimeField(read_only=True)

    def validate_rule(self, rule: Any) -> dict[str, Any]:
        if not isinstance(rule, dict):
            raise serializers.ValidationError("A rule is a JSON object.")
        if not is_storable(rule):
            raise serializers.ValidationError(_("The rule has a number or a character that can't be stored."))
        return rule


class StratumSerializer(serializers.Serializer[selections.Stratum]):
    name = serializers.CharField()
    available = serializers.IntegerField(help_text="Units (items or scenarios) that there were.")
    chosen = serializers.IntegerField(help_text="Units that were chosen.")
    items = serializers.IntegerField(help_text="Items of the chosen units.")


class SelectionDetailSerializer(SelectionSerializer):
    strata = serializers.SerializerMethodField()

    @extend_schema(responses=StratumSerializer(many=True))
    def get_strata(self, selection: ItemSelection) -> Any:
        return StratumSerializer(selections.strata_of(selection), many=True).data


class SelectedItemSerializer(serializers.Serializer[SelectedItem]):
    item = serializers.CharField(source="item.external_id")
    probability = serializers.FloatField()
    stratum = serializers.CharField()


def selections_in_project(user: User, slug: str) -> QuerySet[ItemSelection]:
    """The selections of a project's campaigns, each with the number of its items."""
    project = access.require(user=user, slug=slug)
    found = ItemSelection.objects.visible_to(user).filter(campaign__project=project)
    return found.annotate(items_count=Count("selected")).select_related("campaign__dataset")


class Selections(generics.ListCreateAPIView[ItemSelection]):
    """The selections of a campaign; posting draws one."""

    serializer_class = SelectionSerializer
    queryset = ItemSelection.objects.none()

    def get_queryset(self) -> QuerySet[ItemSelection]:
        campaign = campaign_in_project(self.request.user, self.kwargs["project"], self.kwargs["campaign"])
        return selections_in_project(self.request.user, self.kwargs["project"]).filter(campaign=campaign)

    @extend_schema(responses={201: SelectionDetailSerializer})
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        campaign = campaign_in_project(request.user, kwargs["project"], kwargs["campaign"])
        serializer = SelectionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        made = selections.select(campaign=campaign, actor=request.user, **serializer.validated_data)
        stored = selections_in_project(request.user, kwargs["project"]).get(pk=made.pk)
        return Response(SelectionDetailSerializer(stored).data, status=status.HTTP_201_CREATED)


class SelectionDetail(APIView):
    @extend_schema(responses=SelectionDetailSerializer)
    def get(self, request: Request, project: str, selection: int) -> Response:
        """One selection with its strata."""
        shown = get_object_or_404(selections_in_project(request.user, project), pk=selection)
        return Response(SelectionDetailSerializer(shown).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, selection: int) -> Response:
        """Remove a selection that no run and no duty uses."""
        removed = get_object_or_404(selections_in_project(request.user, project), pk=selection)
        selections.remove_selection(selection=removed, actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SelectionItems(generics.ListAPIView[SelectedItem]):
    """The items of a selection, each with its probability and stratum."""

    serializer_class = SelectedItemSerializer
    queryset = SelectedItem.objects.none()

    def get_queryset(self) -> QuerySet[SelectedItem]:
        found = selections_in_project(self.request.user, self.kwargs["project"])
        selection = get_object_or_404(found, pk=self.kwargs["selection"])
        return SelectedItem.objects.filter(selection=selection).select_related("item").order_by("pk")
