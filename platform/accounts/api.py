"""The API of projects, members, the user's own account, jobs (for members) and webhooks (for leads)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access, addresses, deletion, jobs, mail, people, webhooks
from accounts.api_requests import HasScope
from accounts.invitation_lists import InvitationOutcome, InvitedRow, checked_person, invite_many
from accounts.jobs import ListedJob
from accounts.models import (
    Delivery,
    Invitation,
    Job,
    JobQuerySet,
    Membership,
    Project,
    ProjectDeletion,
    Role,
    Token,
    User,
    Webhook,
)
from accounts.people import DEFAULT_DAYS


class ProjectSerializer(serializers.ModelSerializer[Project]):
    class Meta:
        model = Project
        fields = ("slug", "name", "description", "created_at", "archived_at", "requires_second_factor")
        read_only_fields = ("archived_at", "requires_second_factor")
        extra_kwargs = {"slug": {"validators": []}}  # people.create_project refuses an address in use


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
        serializer.instance = people.create_project(founder=self.request.user, **serializer.validated_data)


class ProjectNameSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=500)


class ProjectDeletionSerializer(serializers.ModelSerializer[ProjectDeletion]):
    slug = serializers.SlugField(source="project.slug")
    restorable_until = serializers.DateTimeField()

    class Meta:
        model = ProjectDeletion
        fields = ("slug", "deleted_at", "restorable_until")


class ProjectDetail(APIView):
    roles: ClassVar = {**dict.fromkeys(SAFE_METHODS, tuple(Role)), "DELETE": (Role.LEAD,)}
    works_archived = True

    @extend_schema(responses=ProjectSerializer)
    def get(self, request: Request, project: str) -> Response:
        """One project."""
        return Response(ProjectSerializer(access.membership(user=request.user, slug=project).project).data)

    @extend_schema(
        request={"application/json": ProjectNameSerializer},
        parameters=[
            OpenApiParameter("name", str, description="The project's name, to confirm; it may be in the body instead.")
        ],
        responses={200: ProjectDeletionSerializer},
    )
    def delete(self, request: Request, project: str) -> Response:
        """Delete the project: its people lose it at once, and for 30 days a lead can restore it. For leads."""
        current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
        body = request.data if isinstance(request.data, dict) else {}
        asked = ProjectNameSerializer(data={"name": request.query_params.get("name"), **body})
        asked.is_valid(raise_exception=True)
        deleted = deletion.delete_project(
            project=current_project, name=asked.validated_data["name"], actor=request.user
        )
        return Response(ProjectDeletionSerializer(deleted).data)


class ProjectRestore(APIView):
    permission_classes = (IsAuthenticated, HasScope)  # nobody is a member of a deleted project

    @extend_schema(request=None, responses=ProjectSerializer)
    def post(self, request: Request, project: str) -> Response:
        """Restore a deleted project; for those who led it. Judge runs stay paused."""
        deleted = get_object_or_404(deletion.deleted_projects(request.user), project__slug=project)
        return Response(ProjectSerializer(deletion.restore_project(deletion=deleted, actor=request.user)).data)


class Members(generics.ListAPIView[Membership]):
    """The members of the project; for its leads."""

    roles = (Role.LEAD,)
    serializer_class = MembershipSerializer
    queryset = Membership.objects.none()

    def get_queryset(self) -> QuerySet[Membership]:
        project = access.require(user=self.request.user, slug=self.kwargs["project"], roles=(Role.LEAD,))
        return Membership.objects.visible_to(self.request.user).filter(project=project).select_related("user")


# --- invitations -----------------------------------------------------------------------------------------------------
class OpenInvitationSerializer(serializers.ModelSerializer[Invitation]):
    """An invitation that was not used yet; its link was shown once and is not stored."""

    id = serializers.IntegerField(source="pk")
    email = serializers.CharField()
    languages = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = Invitation
        fields = ("id", "role", "email", "name", "note", "languages", "created_at", "expires_at")


class InvitedPersonSerializer(serializers.Serializer[Any]):
    email = serializers.CharField(max_length=254)
    name = serializers.CharField(max_length=120, required=False, default="", allow_blank=True)
    panels = serializers.ListField(child=serializers.IntegerField(), required=False, default=list, max_length=50)
    languages = serializers.ListField(child=serializers.CharField(), required=False, default=list, max_length=50)


class InvitePeopleSerializer(serializers.Serializer[Any]):
    """`panels` and `languages` are for people without their own. `send`: mail the links, where the server sends
    mail."""

    people = serializers.ListField(child=InvitedPersonSerializer(), allow_empty=False, max_length=500)
    role = serializers.ChoiceField(Role.choices, default=Role.ANNOTATOR)
    panels = serializers.ListField(child=serializers.IntegerField(), required=False, default=list, max_length=50)
    languages = serializers.ListField(child=serializers.CharField(), required=False, default=list, max_length=50)
    days = serializers.IntegerField(min_value=1, max_value=90, default=DEFAULT_DAYS)
    send = serializers.BooleanField(default=False)


class InvitedRowSerializer(serializers.Serializer[InvitedRow]):
    """`link` is answered once. `seated`: the panels that a member has joined; `note`: why a member has not,
    or why an invitation was not mailed."""

    email = serializers.CharField()
    outcome = serializers.ChoiceField([(outcome.value, outcome.name.title()) for outcome in InvitationOutcome])
    link = serializers.CharField()
    seated = serializers.ListField(child=serializers.CharField())
    note = serializers.CharField()


class InvitedPeopleSerializer(serializers.Serializer[Any]):
    rows = InvitedRowSerializer(many=True)
    is_mailed = serializers.BooleanField(help_text="Whether the links are sent by e-mail: never without a mail server.")


class Invitations(APIView):
    """The open invitations of the project; for its leads."""

    roles = (Role.LEAD,)

    @extend_schema(responses=OpenInvitationSerializer(many=True))
    def get(self, request: Request, project: str) -> Response:
        """The open invitations, newest first."""
        current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
        waiting = Invitation.objects.visible_to(request.user).filter(project=current_project).open()
        return Response(OpenInvitationSerializer(waiting, many=True).data)

    @extend_schema(request=InvitePeopleSerializer, responses=InvitedPeopleSerializer)
    def post(self, request: Request, project: str) -> Response:
        """Invite people: all rows, or none if one can't be used. Members and duplicates are named, not invited."""
        current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
        asked = InvitePeopleSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        chosen = dict(asked.validated_data)
        listed = [
            checked_person(email=row["email"], name=row["name"], panels=row["panels"], spoken=row["languages"])
            for row in chosen.pop("people")
        ]
        rows = invite_many(
            project=current_project,
            listed=listed,
            created_by=request.user,
            spoken=chosen.pop("languages"),
            **chosen,
        )
        answered = [{**asdict(row), "link": request.build_absolute_uri(row.link) if row.link else ""} for row in rows]
        is_mailed = chosen["send"] and mail.is_sent()
        return Response(InvitedPeopleSerializer({"rows": answered, "is_mailed": is_mailed}).data)


# --- jobs ------------------------------------------------------------------------------------------------------------
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


def _jobs_of(user: User, slug: str) -> JobQuerySet:
    project = access.require(user=user, slug=slug)
    return Job.objects.visible_to(user).filter(project=project).select_related("owner")


class Jobs(generics.ListAPIView[Any]):
    """The waiting and running jobs of a project, and those that failed or were cancelled in the last seven days; newest
    first."""

    serializer_class = JobSerializer
    queryset = Job.objects.none()

    def get_queryset(self) -> QuerySet[Job]:
        return _jobs_of(self.request.user, self.kwargs["project"]).current()

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        return jobs.list_jobs(page if page is not None else queryset, user=self.request.user)


class JobCancel(APIView):
    @extend_schema(request=None, responses=JobSerializer)
    def post(self, request: Request, project: str, job: int) -> Response:
        """Cancel a job: the user's own, or as a lead any of the project. What it has stored so far is deleted."""
        chosen = get_object_or_404(_jobs_of(request.user, project), pk=job)
        jobs.cancel(job=chosen, actor=request.user)
        (shown,) = jobs.list_jobs([chosen], user=request.user)
        return Response(JobSerializer(shown).data)


# --- webhooks --------------------------------------------------------------------------------------------------------
LEAD = (Role.LEAD,)
EVENTS = [(event.value, event.label) for event in webhooks.OFFERED]


class WebhookSerializer(serializers.Serializer[Webhook]):
    """`off` is the reason why nothing is sent; empty while the webhook is on."""

    id = serializers.IntegerField(source="pk", read_only=True)
    address = serializers.CharField(max_length=addresses.LONGEST_ADDRESS)
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=EVENTS), allow_empty=False, max_length=len(EVENTS)
    )
    off = serializers.ChoiceField(choices=[("", "On"), *Webhook.Off.choices], read_only=True)
    failing_since = serializers.DateTimeField(read_only=True, allow_null=True)
    created_at = serializers.DateTimeField(read_only=True)


class SecretSerializer(WebhookSerializer):
    """A webhook with its signing secret, which is shown only once."""

    secret = serializers.SerializerMethodField()

    def get_secret(self, webhook: Webhook) -> str:
        return webhooks.secret(webhook)


class ChangeSerializer(serializers.Serializer[Webhook]):
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=EVENTS), allow_empty=False, max_length=len(EVENTS), required=False
    )
    on = serializers.BooleanField(required=False)


class DeliverySerializer(serializers.Serializer[Delivery]):
    """One event for one webhook. `status` is the status of the newest response, null if there was none."""

    id = serializers.IntegerField(source="pk")
    key = serializers.SerializerMethodField()
    event = serializers.CharField()
    payload = serializers.DictField(child=serializers.JSONField(allow_null=True))
    state = serializers.ChoiceField(choices=Delivery.State.choices)
    tries = serializers.IntegerField()
    status = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField()
    made_at = serializers.DateTimeField()
    tried_at = serializers.DateTimeField(allow_null=True)
    due_at = serializers.DateTimeField()

    def get_key(self, delivery: Delivery) -> str:
        return webhooks.delivery_key(delivery)


def _webhooks_of(user: User, slug: str) -> tuple[Project, QuerySet[Webhook]]:
    project = access.require(user=user, slug=slug, roles=LEAD)
    return project, Webhook.objects.visible_to(user).filter(project=project).select_related("project")


def _webhook(user: User, slug: str, pk: int) -> Webhook:
    return get_object_or_404(_webhooks_of(user, slug)[1], pk=pk)


class Webhooks(generics.ListAPIView[Webhook]):
    """The project's webhooks. POST adds one."""

    roles = LEAD
    serializer_class = WebhookSerializer
    queryset = Webhook.objects.none()

    def get_queryset(self) -> QuerySet[Webhook]:
        return _webhooks_of(self.request.user, self.kwargs["project"])[1]

    @extend_schema(request=WebhookSerializer, responses={201: SecretSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Add a webhook. Only this response contains the secret."""
        current_project, _webhooks = _webhooks_of(request.user, project)
        serializer = WebhookSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        added = webhooks.add(project=current_project, actor=request.user, **serializer.validated_data)
        return Response(SecretSerializer(added).data, status=status.HTTP_201_CREATED)


class WebhookDetail(APIView):
    roles = LEAD

    @extend_schema(responses=WebhookSerializer)
    def get(self, request: Request, project: str, webhook: int) -> Response:
        """One webhook."""
        return Response(WebhookSerializer(_webhook(request.user, project, webhook)).data)

    @extend_schema(request=ChangeSerializer, responses=WebhookSerializer)
    def patch(self, request: Request, project: str, webhook: int) -> Response:
        """Change the events, or turn the webhook off or on."""
        current_webhook = _webhook(request.user, project, webhook)
        serializer = ChangeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        if "events" in serializer.validated_data:
            webhooks.listen(webhook=current_webhook, events=serializer.validated_data["events"], actor=request.user)
        if "on" in serializer.validated_data:
            turn = webhooks.turn_on if serializer.validated_data["on"] else webhooks.turn_off
            turn(webhook=current_webhook, actor=request.user)
        return Response(WebhookSerializer(current_webhook).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, webhook: int) -> Response:
        """Delete the webhook and its deliveries."""
        webhooks.remove_webhook(webhook=_webhook(request.user, project, webhook), actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class WebhookSecret(APIView):
    roles = LEAD

    @extend_schema(request=None, responses=SecretSerializer)
    def post(self, request: Request, project: str, webhook: int) -> Response:
        """Replace the secret. The old secret is no longer used for signing."""
        current_webhook = _webhook(request.user, project, webhook)
        webhooks.renew(webhook=current_webhook, actor=request.user)
        return Response(SecretSerializer(current_webhook).data)


class WebhookTest(APIView):
    roles = LEAD

    @extend_schema(request=None, responses={201: DeliverySerializer})
    def post(self, request: Request, project: str, webhook: int) -> Response:
        """Send a test. Its delivery shows the result."""
        delivery = webhooks.test(webhook=_webhook(request.user, project, webhook), actor=request.user)
        return Response(DeliverySerializer(delivery).data, status=status.HTTP_201_CREATED)


class Deliveries(generics.ListAPIView[Delivery]):
    """The deliveries of a webhook in the last thirty days, sent and waiting."""

    roles = LEAD
    serializer_class = DeliverySerializer
    queryset = Delivery.objects.none()

    def get_queryset(self) -> QuerySet[Delivery]:
        return Delivery.objects.filter(
            webhook=_webhook(self.request.user, self.kwargs["project"], self.kwargs["webhook"])
        )


class DeliveryAgain(APIView):
    roles = LEAD

    @extend_schema(request=None, responses=DeliverySerializer)
    def post(self, request: Request, project: str, webhook: int, delivery: int) -> Response:
        """Send a delivery again, with the same id."""
        deliveries: Any = Delivery.objects.filter(webhook=_webhook(request.user, project, webhook))
        chosen = get_object_or_404(deliveries.select_related("webhook__project"), pk=delivery)
        webhooks.send_again(delivery=chosen, actor=request.user)
        return Response(DeliverySerializer(chosen).data)
