"""What workers do now in a project: imports, checks, exports and bundles, how far they are, and how to stop one."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access, jobs
from accounts.jobs import ListedJob
from accounts.models import Job, User
from accounts.models.jobs import JobQuerySet


class JobSerializer(serializers.Serializer[ListedJob]):
    """`done` of `total` in `unit`; the total is 0 as long as it is unknown. `sentence` says why it failed.

    A job that waits with `is_sent` false has not reached the queue; it is sent as soon as the queue is back.
    """

    id = serializers.IntegerField(source="job.pk")
    kind = serializers.ChoiceField(source="job.kind", choices=Job.Kind.choices)
    state = serializers.ChoiceField(source="job.state", choices=Job.State.choices)
    title = serializers.CharField()
    owner = serializers.SerializerMethodField()
    done = serializers.IntegerField(source="job.done")
    total = serializers.IntegerField(source="job.total")
    unit = serializers.ChoiceField(source="job.unit", choices=Job.Unit.choices)
    tries = serializers.IntegerField(source="job.tries")
    sentence = serializers.CharField(source="job.sentence")
    is_sent = serializers.SerializerMethodField()
    may_cancel = serializers.BooleanField()
    created_at = serializers.DateTimeField(source="job.created_at")
    started_at = serializers.DateTimeField(source="job.started_at", allow_null=True)
    beat_at = serializers.DateTimeField(source="job.beat_at", allow_null=True)
    ended_at = serializers.DateTimeField(source="job.ended_at", allow_null=True)

    def get_owner(self, listed: ListedJob) -> str:
        return str(listed.job.owner or "")

    def get_is_sent(self, listed: ListedJob) -> bool:
        return listed.job.sent_at is not None


def _of(user: User, slug: str) -> JobQuerySet:
    project = access.require(user=user, slug=slug)
    return Job.objects.visible_to(user).filter(project=project).select_related("owner")


class Jobs(generics.ListAPIView[Any]):
    """The waiting and running jobs of a project, and those that failed or were cancelled in the last seven days; newest
    first."""

    serializer_class = JobSerializer
    queryset = Job.objects.none()

    def get_queryset(self) -> QuerySet[Job]:
        return _of(self.request.user, self.kwargs["project"]).current()

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        return jobs.list_jobs(page if page is not None else queryset, user=self.request.user)


class JobCancel(APIView):
    @extend_schema(request=None, responses=JobSerializer)
    def post(self, request: Request, project: str, job: int) -> Response:
        """Cancel a job: the user's own, or as a lead any of the project. What it has stored so far is deleted."""
        chosen = get_object_or_404(_of(request.user, project), pk=job)
        jobs.cancel(job=chosen, actor=request.user)
        (shown,) = jobs.list_jobs([chosen], user=request.user)
        return Response(JobSerializer(shown).data)
