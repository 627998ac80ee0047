"""The API of webhooks and their deliveries; for leads."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access, outgoing, webhooks
from accounts.models import Delivery, Project, Role, User, Webhook

LEAD = (Role.LEAD,)
EVENTS = [(event.value, event.label) for event in webhooks.OFFERED]


class WebhookSerializer(serializers.Serializer[Webhook]):
    """`off` is the reason why nothing is sent; empty while the webhook is on."""

    id = serializers.IntegerField(source="pk", read_only=True)
    address = serializers.CharField(max_length=outgoing.LONGEST_ADDRESS)
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


def _of(user: User, slug: str) -> tuple[Project, QuerySet[Webhook]]:
    project = access.require(user=user, slug=slug, roles=LEAD)
    return project, Webhook.objects.visible_to(user).filter(project=project).select_related("project")


def _webhook(user: User, slug: str, pk: int) -> Webhook:
    return get_object_or_404(_of(user, slug)[1], pk=pk)


class Webhooks(generics.ListAPIView[Webhook]):
    """The project's webhooks. POST adds one."""

    roles = LEAD
    serializer_class = WebhookSerializer
    queryset = Webhook.objects.none()

    def get_queryset(self) -> QuerySet[Webhook]:
        return _of(self.request.user, self.kwargs["project"])[1]

    @extend_schema(request=WebhookSerializer, responses={201: SecretSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Add a webhook. Only this response contains the secret."""
        current_project, _webhooks = _of(request.user, project)
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
