"""Share links; for leads."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import Project, Role, User
from analytics import shares
from analytics.models import Share
from annotation.api.campaigns import LARGEST_ID
from annotation.models import Campaign

LEAD = (Role.LEAD,)
LONGEST = 3650


class ShareSerializer(serializers.Serializer[Share]):
    """`days` is how long the link is to be good; without, until it is revoked."""

    id = serializers.IntegerField(source="pk", read_only=True)
    campaign = serializers.IntegerField(source="campaign_id", min_value=1, max_value=LARGEST_ID)
    label = serializers.CharField(max_length=120)  # type: ignore[assignment]
    days = serializers.IntegerField(min_value=1, max_value=LONGEST, required=False, allow_null=True, write_only=True)
    created_at = serializers.DateTimeField(read_only=True)
    expires_at = serializers.DateTimeField(read_only=True, allow_null=True)
    last_used_at = serializers.DateTimeField(read_only=True, allow_null=True)


class ShareAddressSerializer(ShareSerializer):
    """A link with its address, which is shown only once."""

    address = serializers.URLField(read_only=True)


def found_in(user: User, slug: str) -> tuple[Project, QuerySet[Share]]:
    """The project, and the links into it that still work."""
    project = access.require(user=user, slug=slug, roles=LEAD)
    found = Share.objects.visible_to(user).live().filter(campaign__project=project)
    return project, found.select_related("campaign__project")


class Shares(generics.ListAPIView[Share]):
    """The links that work; posting makes one."""

    roles = LEAD
    serializer_class = ShareSerializer
    queryset = Share.objects.none()

    def get_queryset(self) -> QuerySet[Share]:
        return found_in(self.request.user, self.kwargs["project"])[1]

    @extend_schema(request=ShareSerializer, responses={201: ShareAddressSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Make a link to one campaign's numbers. The answer alone holds its address."""
        current_project, _found = found_in(request.user, project)
        asked = ShareSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        given: dict[str, Any] = dict(asked.validated_data)
        mine = Campaign.objects.visible_to(request.user).filter(project=current_project).select_related("project")
        campaign = get_object_or_404(mine, pk=given.pop("campaign_id"))
        share, secret = shares.make(campaign=campaign, actor=request.user, **given)
        share.address = request.build_absolute_uri(reverse("shared", args=[secret]))  # type: ignore[attr-defined]
        return Response(ShareAddressSerializer(share).data, status=status.HTTP_201_CREATED)


class ShareDetail(APIView):
    roles = LEAD

    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, link: int) -> Response:
        """Revoke a link: it stops working immediately."""
        found = get_object_or_404(found_in(request.user, project)[1], pk=link)
        shares.revoke_share(share=found, actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)
