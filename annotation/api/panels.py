"""Panels and their seats."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import Membership, Role
from annotation import panels
from annotation.models import Panel, PanelSeat

LEAD = (Role.LEAD,)


class PanelSerializer(serializers.Serializer[Panel]):
    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(max_length=120)
    language = serializers.CharField(max_length=35, allow_blank=True, default="")


class SeatSerializer(serializers.Serializer[PanelSeat]):
    id = serializers.IntegerField(source="pk", read_only=True)
    pseudonym = serializers.CharField(source="annotator.pseudonym", read_only=True)
    sees_verdicts = serializers.BooleanField(
        read_only=True,
        help_text="Leads and researchers see verdicts and others' ratings: their own ratings are marked as not blind.",
    )
    user = serializers.IntegerField(write_only=True, min_value=1, max_value=2**63 - 1)


class Panels(generics.ListCreateAPIView[Panel]):
    """The project's panels. POST creates one."""

    serializer_class = PanelSerializer
    queryset = Panel.objects.none()

    def get_queryset(self) -> QuerySet[Panel]:
        project = access.require(user=self.request.user, slug=self.kwargs["project"])
        return Panel.objects.visible_to(self.request.user).filter(project=project)

    def perform_create(self, serializer: Any) -> None:
        project = access.require(user=self.request.user, slug=self.kwargs["project"])
        serializer.instance = panels.create(project=project, actor=self.request.user, **serializer.validated_data)


class Seats(generics.ListCreateAPIView[PanelSeat]):
    """The annotators of a panel, by pseudonym. POST adds a member of the project by user id (leads only)."""

    roles: ClassVar = {"POST": LEAD}
    serializer_class = SeatSerializer
    queryset = PanelSeat.objects.none()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Find the panel before the body is read: 404 if there is none."""
        super().initial(request, *args, **kwargs)
        mine = Panel.objects.visible_to(request.user).filter(project__slug=kwargs["project"])
        self.panel = get_object_or_404(mine, pk=kwargs["panel"])

    def get_queryset(self) -> QuerySet[PanelSeat]:
        return panels.seats(self.panel)

    def perform_create(self, serializer: Any) -> None:
        panel = self.panel
        members = Membership.objects.visible_to(self.request.user).filter(project=panel.project_id)
        member = get_object_or_404(members, user=serializer.validated_data["user"])
        seat = panels.seat(panel=panel, user=member.user, actor=self.request.user)
        serializer.instance = panels.seats(panel).get(pk=seat.pk)


class Seat(APIView):
    roles = LEAD

    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, panel: int, seat: int) -> Response:
        """Remove an annotator from the panel. Their ratings are kept."""
        current_project = access.require(user=request.user, slug=project, roles=LEAD)
        panel_seat = get_object_or_404(PanelSeat.objects.filter(panel__project=current_project, panel=panel), pk=seat)
        panels.unseat(seat=panel_seat, actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)
