"""The API of projects, members and the user's own account."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access, people
from accounts.models import Membership, Project, Role, Token, User


class ProjectSerializer(serializers.ModelSerializer[Project]):
    class Meta:
        model = Project
        fields = ("slug", "name", "description", "created_at", "archived_at", "requires_second_factor")
        read_only_fields = ("archived_at", "requires_second_factor")
        extra_kwargs = {"slug": {"validators": []}}  # people.found_project refuses an address in use


class MembershipSerializer(serializers.ModelSerializer[Membership]):
    user = serializers.IntegerField(source="user_id")
    name = serializers.CharField(source="user.name")
    email = serializers.EmailField(source="user.email")

    class Meta:
        model = Membership
        fields = ("user", "name", "email", "role", "since")


class RoleSerializer(serializers.Serializer[Membership]):
    project = serializers.SlugField(source="project.slug")
    role = serializers.ChoiceField(Role.choices)


class MeSerializer(serializers.ModelSerializer[User]):
    languages = serializers.ListField(child=serializers.CharField())
    memberships = RoleSerializer(many=True)

    class Meta:
        model = User
        fields = ("email", "name", "languages", "ui_language", "may_found_projects", "memberships")


class Me(APIView):
    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        """The user of the token or session, and their role in every project."""
        person = User.objects.prefetch_related("memberships__project").get(pk=request.user.pk)
        return Response(MeSerializer(person).data)


class Projects(generics.ListCreateAPIView[Project]):
    """The user's projects. POST creates one, if the operator allows the user to create projects."""

    serializer_class = ProjectSerializer
    queryset = Project.objects.none()

    def get_queryset(self) -> QuerySet[Project]:
        projects = Project.objects.visible_to(self.request.user)
        bound = self.request.auth.project_id if isinstance(self.request.auth, Token) else None
        return projects.filter(pk=bound) if bound else projects

    def perform_create(self, serializer: Any) -> None:
        if not people.may_found(self.request.user):
            raise PermissionDenied(people.MAY_NOT_FOUND)
        serializer.instance = people.found_project(founder=self.request.user, **serializer.validated_data)


class ProjectDetail(APIView):
    roles = tuple(Role)

    @extend_schema(responses=ProjectSerializer)
    def get(self, request: Request, project: str) -> Response:
        """One project."""
        return Response(ProjectSerializer(access.membership(user=request.user, slug=project).project).data)


class Members(generics.ListAPIView[Membership]):
    """The members of the project; for its leads."""

    roles = (Role.LEAD,)
    serializer_class = MembershipSerializer
    queryset = Membership.objects.none()

    def get_queryset(self) -> QuerySet[Membership]:
        project = access.require(user=self.request.user, slug=self.kwargs["project"], roles=(Role.LEAD,))
        return Membership.objects.visible_to(self.request.user).filter(project=project).select_related("user")
