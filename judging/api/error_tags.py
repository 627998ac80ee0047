"""Error analysis: why verdicts are wrong, written by people and counted; for leads and researchers."""

from __future__ import annotations

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import User
from annotation.api.campaigns import LARGEST_ID
from judging import error_tags
from judging.api.judges import StrictSerializer, judge_in_project
from judging.error_tags import TagCount
from judging.models import ErrorTag, Verdict


class NewErrorTagSerializer(StrictSerializer):
    verdict = serializers.IntegerField(min_value=1, max_value=LARGEST_ID)
    text = serializers.CharField(max_length=error_tags.LONGEST_TAG, help_text="Why the verdict is wrong.")


class ErrorTagSerializer(serializers.Serializer[ErrorTag]):
    id = serializers.IntegerField(source="pk", read_only=True)
    text = serializers.CharField(read_only=True)
    verdict = serializers.IntegerField(source="verdict_id", read_only=True)
    judge = serializers.IntegerField(source="verdict.run.judge_id", read_only=True)
    run = serializers.IntegerField(source="verdict.run_id", read_only=True)
    item = serializers.CharField(source="verdict.item.external_id", read_only=True)
    language = serializers.CharField(source="verdict.item.language", read_only=True)
    criterion = serializers.CharField(source="verdict.criterion.key", read_only=True)
    created_by = serializers.CharField(source="created_by.name", read_only=True, default=None, allow_null=True)
    created_at = serializers.DateTimeField(read_only=True)


class TagCountSerializer(serializers.Serializer[TagCount]):
    text = serializers.CharField()
    verdicts = serializers.IntegerField()
    items = serializers.IntegerField()
    criteria = serializers.DictField(child=serializers.IntegerField(), help_text="Verdicts by the key of a criterion.")
    languages = serializers.DictField(child=serializers.IntegerField(), help_text="Verdicts by language.")


def tags_in_project(user: User, slug: str) -> QuerySet[ErrorTag]:
    project = access.require(user=user, slug=slug)
    tags = ErrorTag.objects.visible_to(user).filter(verdict__run__project=project)
    whole = tags.select_related("verdict__run__project", "verdict__item", "verdict__criterion", "created_by")
    return whole.defer(*(f"verdict__item__{field}" for field in ("turns", "fields", "attributes"))).order_by("-pk")


class JudgeErrors(APIView):
    @extend_schema(responses=TagCountSerializer(many=True))
    def get(self, request: Request, project: str, judge: int) -> Response:
        """The reasons of a judge's wrong verdicts, the most frequent first. Only verdicts to which people gave a reason
        are counted."""
        counted = get_object_or_404(judge_in_project(request.user, project)[1], pk=judge)
        return Response(TagCountSerializer(error_tags.count_tags(counted), many=True).data)


class ErrorTags(generics.ListAPIView[ErrorTag]):
    """The project's reasons of wrong verdicts, newest first."""

    serializer_class = ErrorTagSerializer
    queryset = ErrorTag.objects.none()

    def get_queryset(self) -> QuerySet[ErrorTag]:
        return tags_in_project(self.request.user, self.kwargs["project"])

    @extend_schema(request=NewErrorTagSerializer, responses={201: ErrorTagSerializer})
    def post(self, request: Request, project: str) -> Response:
        serializer = NewErrorTagSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        given = serializer.validated_data
        current_project = access.require(user=request.user, slug=project)
        verdicts = Verdict.objects.filter(run__project=current_project).select_related("run__project")
        tagged = get_object_or_404(verdicts, pk=given["verdict"])
        tag = error_tags.tag_verdict(verdict=tagged, text=given["text"], actor=request.user)
        return Response(ErrorTagSerializer(tag).data, status=status.HTTP_201_CREATED)


class ErrorTagDetail(APIView):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, tag: int) -> Response:
        """Remove a reason from its verdict."""
        removed = get_object_or_404(tags_in_project(request.user, project), pk=tag)
        error_tags.remove_tag(tag=removed, actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)
