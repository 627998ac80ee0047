"""The providers of this instance as they are declared now: of the environment first, then those stored by an operator.

A judge run keeps the prices that it was started with (`prices_now`): a changed price counts for runs started after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.conf import settings
from django.utils import timezone

from judging.asking import client
from judging.asking.declarations import MOST, OPENAI, DeclaredProvider, price_rows, price_table
from judging.asking.wire import wire_of
from judging.models import ModelCapability, StoredProvider


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a reply may take, how often a request is tried, and how many are in flight at most."""

    timeout: int
    tries: int
    concurrency: int


def find_provider(name: str) -> DeclaredProvider | None:
    """The declared provider of this name: of the environment, else a stored one."""
    if name in settings.PROVIDERS:
        declared: DeclaredProvider = settings.PROVIDERS[name]
        return declared
    row = StoredProvider.objects.filter(name=name, removed_at=None).first() if name else None
    return declaration_of(row) if row else None


def all_providers() -> dict[str, DeclaredProvider]:
    """Every declared provider by name, those of the environment first; one query."""
    stored = {row.name: declaration_of(row) for row in StoredProvider.objects.filter(removed_at=None)}
    return {**settings.PROVIDERS, **{name: row for name, row in stored.items() if name not in settings.PROVIDERS}}


def is_of_environment(name: str) -> bool:
    """Whether the environment declares a provider of this name: it can't be changed here."""
    return name in settings.PROVIDERS


def declaration_of(row: StoredProvider) -> DeclaredProvider:
    """A stored provider as every other one."""
    return DeclaredProvider(
        name=row.name,
        base_url=row.base_url,
        key_variable=row.key_variable,
        models=tuple(row.models),
        prices=price_rows(row.prices),
        batch_prices=price_rows(row.batch_prices),
        batches=row.batches,
        api=row.api,
        **{limit: getattr(row, limit) for limit in MOST},
    )


def api_of(name: str) -> str:
    """The kind of API of a provider; OpenAI's where it is not declared any more."""
    provider = find_provider(name)
    return provider.api if provider else OPENAI


def reply_form(name: str, refused: Sequence[str]) -> str:
    """The strictest form of a reply that a model of this provider has not refused."""
    return client.strictest_form(refused, wire_of(api_of(name)).FORMS)


def endpoint_of(provider: DeclaredProvider) -> client.Endpoint:
    """Where the calls of a provider go."""
    return client.Endpoint(
        name=provider.name,
        base_url=provider.base_url,
        api_key_variable=provider.key_variable,
        requests_per_minute=provider.requests_per_minute,
        tokens_per_minute=provider.tokens_per_minute,
        simulated=provider.simulated,
        api=provider.api,
    )


def prices_now(name: str) -> dict[str, dict[str, list[str]]]:
    """All prices of a provider, for a run to keep."""
    provider = find_provider(name)
    if provider is None or not (provider.prices or provider.batch_prices):
        return {}
    return {"prices": price_table(provider.prices), "batch_prices": price_table(provider.batch_prices)}


def kept_price(
    kept: Mapping[str, Mapping[str, list[str]]], model: str, *, by_batch: bool = False
) -> tuple[Decimal, Decimal] | None:
    """The price of a model among those that a run kept; None where there was none when it was started."""
    tables = ("batch_prices", "prices") if by_batch else ("prices",)
    found = next((kept[table][model] for table in tables if model in kept.get(table, {})), None)
    return (Decimal(found[0]), Decimal(found[1])) if found else None


LEARNT_FOR = timedelta(days=30)  # then what a model refused is tried again


def refused_by(provider: str, model: str) -> list[str]:
    """What a model has refused by name lately: forms of a reply, and parameters."""
    return refused_by_models().get((provider, model), [])


def refused_by_models() -> dict[tuple[str, str], list[str]]:
    """The same of every model, by provider and model."""
    lately = ModelCapability.objects.filter(learnt_at__gt=timezone.now() - LEARNT_FOR)
    return {(known.provider, known.model): list(known.refused) for known in lately}


def learn(provider: str, model: str, refused: Sequence[str]) -> None:
    """Keep what a model has refused, for everybody who asks it."""
    if refused and list(refused) != refused_by(provider, model):
        learnt = {"refused": list(refused), "learnt_at": timezone.now()}
        ModelCapability.objects.update_or_create(provider=provider, model=model, defaults=learnt)
