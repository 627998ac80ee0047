"""Providers: for superusers to declare and test; leads and researchers read what they may choose from."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import User
from judging import providers, tasks
from judging.api.judges import StrictSerializer
from judging.asking import endpoints
from judging.asking.declarations import API_NAMES, MOST, DeclaredProvider, price_table
from judging.models import ProviderTest


class ListedProviderSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    models = serializers.ListField(child=serializers.CharField())
    simulated = serializers.BooleanField()
    batches = serializers.BooleanField()


def _limit(name: str) -> serializers.IntegerField:
    return serializers.IntegerField(min_value=1, max_value=MOST[name], required=False, allow_null=True)


def _prices(help_text: str) -> serializers.DictField:
    pair = serializers.ListField(
        child=serializers.DecimalField(max_digits=14, decimal_places=6, min_value=0), min_length=2, max_length=2
    )
    return serializers.DictField(child=pair, required=False, help_text=help_text)


class ChangedProviderSerializer(StrictSerializer):
    """The settings of a provider; `key_variable` names the environment variable that has the key."""

    base_url = serializers.CharField(max_length=500, required=False)
    api = serializers.ChoiceField(choices=[*API_NAMES], required=False, help_text="The kind of its API.")
    key_variable = serializers.CharField(max_length=100, required=False, allow_blank=True)
    models = serializers.ListField(child=serializers.CharField(max_length=160), required=False)
    prices = _prices("By model, USD for a million tokens in and out.")
    batch_prices = _prices("The same in a batch.")
    batches = serializers.BooleanField(required=False)
    requests_per_minute = _limit("requests_per_minute")
    tokens_per_minute = _limit("tokens_per_minute")
    timeout = _limit("timeout")
    tries = _limit("tries")
    concurrency = _limit("concurrency")


class ProviderSerializer(ChangedProviderSerializer):
    name = serializers.CharField(max_length=80)
    base_url = serializers.CharField(max_length=500)
    simulated = serializers.BooleanField(read_only=True)
    declared_by = serializers.ChoiceField(choices=["environment", "operator"], read_only=True)


class NewTestSerializer(StrictSerializer):
    model = serializers.CharField(max_length=160, required=False, allow_blank=True)


class ProviderTestSerializer(serializers.Serializer[ProviderTest]):
    """A test of one call. `result` is empty until it has ended; it has a `reason` where there was no reply."""

    id = serializers.IntegerField(source="pk")
    model = serializers.CharField()
    result = serializers.DictField(child=serializers.JSONField(allow_null=True))
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)


def _require_superuser(user: User) -> None:
    if not user.is_superuser:
        raise PermissionDenied("This is for the operator of the instance.")


def _whole(provider: DeclaredProvider) -> dict[str, Any]:
    plain = ("name", "base_url", "api", "key_variable", "models", "batches", "simulated", *MOST)
    fields = {name: getattr(provider, name) for name in plain}
    tables = {name: price_table(getattr(provider, name)) for name in ("prices", "batch_prices")}
    declared_by = "environment" if endpoints.is_of_environment(provider.name) else "operator"
    shown = {**fields, **tables, "declared_by": declared_by}
    return dict(ProviderSerializer(shown).data)


def _found(user: User, name: str) -> DeclaredProvider:
    """For superusers; to all others there is none."""
    provider = endpoints.find_provider(name) if user.is_superuser else None
    if provider is None:
        raise NotFound
    return provider


class Providers(APIView):
    @extend_schema(responses=ListedProviderSerializer(many=True), operation_id="providers_list")
    def get(self, request: Request) -> Response:
        """The names and models of every provider; for leads and researchers of any project."""
        access.require_sighted_somewhere(request.user)
        return Response(ListedProviderSerializer(endpoints.all_providers().values(), many=True).data)

    @extend_schema(request=ProviderSerializer, responses={201: ProviderSerializer})
    def post(self, request: Request) -> Response:
        """Add a provider; for superusers."""
        _require_superuser(request.user)
        serializer = ProviderSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        row = providers.add_provider(actor=request.user, **serializer.validated_data)
        return Response(_whole(endpoints.declaration_of(row)), status=201)


class ProviderDetail(APIView):
    @extend_schema(responses=ProviderSerializer)
    def get(self, request: Request, provider: str) -> Response:
        """One provider with its address, prices and limits; for superusers."""
        return Response(_whole(_found(request.user, provider)))

    @extend_schema(request=ChangedProviderSerializer, responses=ProviderSerializer)
    def patch(self, request: Request, provider: str) -> Response:
        """Change the settings that are sent. Runs that were started before keep their prices."""
        _found(request.user, provider)
        serializer = ChangedProviderSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        row = providers.change_provider(name=provider, actor=request.user, **serializer.validated_data)
        return Response(_whole(endpoints.declaration_of(row)))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, provider: str) -> Response:
        """Remove a stored provider, once no run asks there."""
        _found(request.user, provider)
        providers.remove_provider(name=provider, actor=request.user)
        return Response(status=204)


class ProviderTests(APIView):
    @extend_schema(responses=ProviderTestSerializer(many=True), operation_id="provider_tests_list")
    def get(self, request: Request, provider: str) -> Response:
        """The newest tests of a provider, at most five."""
        _found(request.user, provider)
        return Response(ProviderTestSerializer(providers.latest_tests(provider), many=True).data)

    @extend_schema(request=NewTestSerializer, responses={202: ProviderTestSerializer})
    def post(self, request: Request, provider: str) -> Response:
        """Let a worker make one call to the provider."""
        _found(request.user, provider)
        serializer = NewTestSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        test = providers.begin_test(name=provider, actor=request.user, **serializer.validated_data)
        tasks.enqueue_test(test.pk)
        return Response(ProviderTestSerializer(test).data, status=202)
