"""Providers that an operator stores here, and tests; `judging/asking/endpoints.py` reads them.

A stored provider has an address, models with prices, limits, and the name of the environment variable with its key. The
key itself is read by the worker that makes a call, and stored nowhere. A provider of the environment can't be changed
here, and a stored one can't take its name.

The address of a provider that judges use is never changed, because the judges would silently become others.

A test makes one call, which a worker sends once, and keeps what came of it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import ROUND_UP, Decimal, InvalidOperation
from typing import Any, NoReturn

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import addresses, audit
from accounts.inputs import is_storable
from accounts.models import Project, User
from accounts.refusals import Refused
from judging.asking import allowances, client, endpoints
from judging.asking.bills import served_price
from judging.asking.declarations import API_NAMES, MOST, OPENAI, DeclaredProvider, price_rows, price_table
from judging.models import Call, Judge, JudgeRun, ProviderListing, ProviderTest, StoredProvider
from judging.prompts import CriterionBrief, ItemText, PointBrief, PromptVariant, Turn, render, response_schema
from judging.replies import parse

KEY_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,80}_API_KEY|PANELBENCH_KEY_[A-Z0-9_]{1,80}")
"""Names of variables that may be sent as a key: no other secret of the server has such a name."""
PROVIDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
MOST_MODELS = 500
_LONGEST_MODEL = 160
TEST_SECONDS = 60
TEST_TOKENS = 400
"""The limit on the reply of a test."""
SPECIMEN_CRITERION = CriterionBrief(
    key="clarity",
    name="Clarity",
    points=(PointBrief(1, "unclear"), PointBrief(2, "partly clear"), PointBrief(3, "clear")),
)
SPECIMEN_ITEM = ItemText(turns=(Turn("user", "When do you open?"), Turn("agent", "We open at nine.")), language="en")


# --- changing ---------------------------------------------------------------------------------------------------------


def add_provider(*, name: str, base_url: str, actor: User | None = None, **settings_given: Any) -> StoredProvider:
    """Store a provider. Refused if its name is taken, or was the name of another address that judges have used."""
    name, base_url = name.strip(), base_url.strip()
    if not PROVIDER_NAME.fullmatch(name):
        _refuse("name", _("A name has letters, digits, points, hyphens and underscores: 80 at most, no spaces."))
    if name in settings.PROVIDERS:
        sentence = _("The environment declares a provider “%s”. Choose another name.") % name
        _refuse("name", sentence, code="name_taken")
    fields = _checked(settings_given)
    _refuse_batches(fields.get("api", OPENAI), fields.get("batches", False))
    check_provider_address(base_url)
    taken = _("There is already a provider “%s”.") % name
    with transaction.atomic():
        row = StoredProvider.objects.select_for_update().filter(name=name).first()
        if row is None:
            try:
                with transaction.atomic():
                    row = StoredProvider.objects.create(name=name, base_url=base_url, **fields)
            except IntegrityError:
                _refuse("name", taken, code="name_taken")
        elif row.removed_at is None:
            _refuse("name", taken, code="name_taken")
        else:
            if row.base_url != base_url and Judge.objects.filter(provider=name).exists():
                sentence = _("Judges were asked at %(address)s under this name. Choose another name.")
                _refuse("name", sentence % {"address": row.base_url}, code="name_taken")
            row = StoredProvider(pk=row.pk, name=name, base_url=base_url, created_at=row.created_at, **fields)
            row.save(force_update=True)
        ProviderListing.objects.filter(provider=name).delete()  # that of another address, if there was one
        audit.record(actor=actor, project=None, verb="add provider", subject=row, fields=["base_url", *fields])
    return row


def change_provider(*, name: str, actor: User | None = None, **settings_given: Any) -> StoredProvider:
    """Change the settings that are given. Runs that were started keep their prices; the address of judges stays."""
    base_url = settings_given.pop("base_url", None)
    with transaction.atomic():
        row = _stored(name)
        fields = _checked(settings_given, row.models)
        if base_url is not None and base_url.strip() != row.base_url:
            if Judge.objects.filter(provider=name).exists():
                sentence = _("Judges are asked at this address, so it can't change. Add a provider with another name.")
                _refuse("base_url", sentence, code="in_use")
            check_provider_address(base_url.strip())
            fields["base_url"] = base_url.strip()
        if fields.get("api", row.api) != row.api and Judge.objects.filter(provider=name).exists():
            sentence = _("Judges are asked at this address, so it can't change. Add a provider with another name.")
            _refuse("api", sentence, code="in_use")
        _refuse_batches(fields.get("api", row.api), fields.get("batches", row.batches))
        changed = [field for field, value in fields.items() if getattr(row, field) != value]
        for field in changed:
            setattr(row, field, fields[field])
        if changed:
            row.save(update_fields=changed)
            if "base_url" in changed:
                ProviderListing.objects.filter(provider=name).delete()
            audit.record(actor=actor, project=None, verb="change provider", subject=row, fields=changed)
    return row


def remove_provider(*, name: str, actor: User | None = None) -> None:
    """Take a stored provider out of use. Refused while runs use it."""
    with transaction.atomic():
        row = _stored(name)
        waiting = Call.objects.exclude(state__in=[Call.State.SETTLED, Call.State.FAILED])
        if waiting.filter(run__judge__provider=name, run__state=JudgeRun.State.RUNNING).exists():
            sentence = _("Runs ask this provider now. Pause or cancel them first.")
            raise Refused(sentence, code="in_use")
        row.removed_at = timezone.now()
        row.save(update_fields=["removed_at"])
        ProviderListing.objects.filter(provider=name).delete()
        audit.record(actor=actor, project=None, verb="remove provider", subject=row)


def _stored(name: str) -> StoredProvider:
    if name in settings.PROVIDERS:
        sentence = _("“%s” is declared by the environment: it is changed there, and with a restart.") % name
        raise Refused(sentence, code="of_environment")
    row = StoredProvider.objects.select_for_update().filter(name=name, removed_at=None).first()
    if row is None:
        raise Refused(_("There is no provider “%s”.") % name, code="unknown_provider")
    return row


def _refuse_batches(api: str, batches: bool) -> None:
    if batches and api != OPENAI:
        _refuse("batches", _("Only a provider with OpenAI’s API is asked in batches."))


def check_provider_address(address: str) -> None:
    """Refuse an address that no prompt may be sent to: https to a public or allowed network, or this machine."""
    try:
        addresses.check_address(address, addresses.Limits(networks=settings.WEBHOOK_NETWORKS, loopback=True))
    except addresses.AddressForbidden as forbidden:
        _refuse("base_url", str(forbidden), code="address")


def _checked(given: Mapping[str, Any], known: Sequence[str] = ()) -> dict[str, Any]:
    """The settings as they are stored: models and prices in plain JSON, and each within its limits.

    ``known``: the models that there are; every model with a price is one.
    """
    fields = dict(given)
    if (variable := fields.get("key_variable")) and not KEY_VARIABLE.fullmatch(variable):
        sentence = _(
            "Write the name of an environment variable that ends with _API_KEY or begins with PANELBENCH_KEY_. Never "
            "write the key itself."
        )
        _refuse("key_variable", sentence)
    if fields.get("api", OPENAI) not in API_NAMES:
        _refuse("api", _("Choose one of the kinds of API: %s.") % ", ".join(API_NAMES))
    for table in ("prices", "batch_prices"):
        if table in fields:
            try:
                fields[table] = price_table(price_rows(fields[table]))
            except (TypeError, ValueError, AttributeError, InvalidOperation):
                _refuse(table, _("A price is two numbers of USD, for a million tokens in and out."))
    if fields.keys() & {"models", "prices", "batch_prices"}:
        priced = [*fields.get("prices", {}), *fields.get("batch_prices", {})]
        fields["models"] = list(dict.fromkeys([*map(str, fields.get("models", known)), *priced]))
        fit = all(0 < len(model) <= _LONGEST_MODEL and is_storable(model) for model in fields["models"])
        if not fit or len(fields["models"]) > MOST_MODELS:
            sentence = _("A provider has at most %(count)d models, with names of at most %(length)d characters.")
            _refuse("models", sentence % {"count": MOST_MODELS, "length": _LONGEST_MODEL})
    for limit, most in MOST.items():
        number = fields.get(limit)
        if number is not None and not (type(number) is int and 1 <= number <= most):
            _refuse(limit, _("Write a whole number from 1 to %d, or nothing.") % most)
    return fields


def _refuse(field: str, sentence: str, *, code: str = "invalid") -> NoReturn:
    raise Refused(sentence, code=code, fields={field: sentence})


# --- the endpoint's own list of models --------------------------------------------------------------------------------
LISTED_FOR = timedelta(days=1)
ASKED_AGAIN = timedelta(minutes=10)
LISTING_SECONDS = 20.0


def outdated_listings(names: Iterable[str]) -> list[str]:
    """The providers among ``names`` whose list of models a worker should read now; each is returned once."""
    now, due = timezone.now(), []
    known = {row.provider: row for row in ProviderListing.objects.filter(provider__in=list(names))}
    for name in names:
        row = known.get(name)
        if row is None:
            _row, is_new = ProviderListing.objects.get_or_create(provider=name)
            due += [name] if is_new else []
        elif row.asked_at < now - (LISTED_FOR if row.listed_at else ASKED_AGAIN):
            unasked = ProviderListing.objects.filter(pk=row.pk, asked_at=row.asked_at)
            due += [name] if unasked.update(asked_at=now) else []
    return due


def read_listing(name: str) -> None:
    """Read the endpoint's own list of models, which costs nothing, and store it, or why there is none."""
    provider = endpoints.find_provider(name)
    if provider is None:
        return
    found: dict[str, Any] = {}
    try:
        if not endpoints.is_of_environment(name):
            check_provider_address(provider.base_url)
        listed = asyncio.run(_listed(endpoints.endpoint_of(provider)))
        names = [model for model in listed if len(model) <= _LONGEST_MODEL and is_storable(model)][:MOST_MODELS]
        found = {"names": names, "reason": "", "listed_at": timezone.now()}
    except Refused as refusal:
        found = {"reason": refusal.sentence[:400]}
    except (client.ProviderUnavailable, client.ProviderRefused) as failure:
        found = {"reason": failure.reason[:400]}
    ProviderListing.objects.update_or_create(provider=name, defaults=found)


async def _listed(endpoint: client.Endpoint) -> list[str]:
    async with client.connect(endpoint) as connection:
        return await client.list_models(connection, seconds=LISTING_SECONDS)


@dataclass(frozen=True, slots=True)
class OfferedModels:
    """The models of a provider that a form offers: those that its operator declared, then those that it lists itself.

    ``prices``: USD for a million tokens in and out, by model, where declared. ``is_listed``: the endpoint's own list is
    known; ``reason``: why it is not.
    """

    provider: str
    models: tuple[str, ...]
    prices: Mapping[str, tuple[Decimal, Decimal]]
    is_listed: bool
    reason: str

    @property
    def priced(self) -> list[tuple[str, tuple[Decimal, Decimal] | None]]:
        """Every model with its price."""
        return [(model, self.prices.get(model)) for model in self.models]


def offered_models(project: Project) -> list[OfferedModels]:
    """What a form offers of every provider; what an endpoint lists itself only where the project may use it."""
    allowed = allowances.allowed_names(project)
    listings = {row.provider: row for row in ProviderListing.objects.filter(provider__in=allowed)}
    offered = []
    for provider in endpoints.all_providers().values():
        listing = listings.get(provider.name)
        names = dict.fromkeys([*provider.models, *(row[0] for row in provider.prices)])
        offered.append(
            OfferedModels(
                provider=provider.name,
                models=tuple(dict.fromkeys([*names, *(listing.names if listing else ())])),
                prices={model: (into, out) for model, into, out in provider.prices},
                is_listed=bool(listing and listing.listed_at),
                reason=listing.reason if listing else "",
            )
        )
    return offered


# --- testing ----------------------------------------------------------------------------------------------------------


def begin_test(*, name: str, model: str = "", actor: User | None = None) -> ProviderTest:
    """Plan one call to a provider; the caller enqueues `tasks.test_provider`. The first of its models, without one."""
    provider = endpoints.find_provider(name)
    if provider is None:
        raise Refused(_("There is no provider “%s”.") % name, code="unknown_provider")
    model = model.strip() or next(iter(provider.models), "")
    if not model or len(model) > _LONGEST_MODEL or not is_storable(model):
        _refuse("model", _("Choose the model that the test asks."))
    with transaction.atomic():
        test = ProviderTest.objects.create(provider=name, model=model)
        audit.record(actor=actor, project=None, verb="test provider", subject=test)
    return test


def carry_out_test(test_pk: int) -> None:
    """Make the call of a test and store what came of it. A test that was begun already is not sent again."""
    if not ProviderTest.objects.filter(pk=test_pk, started_at=None).update(started_at=timezone.now()):
        return
    test = ProviderTest.objects.get(pk=test_pk)
    test.result, test.ended_at = _result(test), timezone.now()
    test.save(update_fields=["result", "ended_at"])


def _result(test: ProviderTest) -> dict[str, Any]:
    """What a test showed, or why it shows nothing."""
    provider = endpoints.find_provider(test.provider)
    if provider is None:
        return {"reason": _("There is no provider “%s”.") % test.provider}
    variant = PromptVariant()
    asked: dict[str, Any] = {
        "model": test.model,
        "messages": render(item=SPECIMEN_ITEM, criteria=[SPECIMEN_CRITERION], variant=variant),
        "schema": response_schema([SPECIMEN_CRITERION], variant),
        "parameters": {"max_tokens": TEST_TOKENS},
        "timeout": TEST_SECONDS,
    }
    try:
        if not endpoints.is_of_environment(provider.name):
            check_provider_address(provider.base_url)
        answer, refused = asyncio.run(_asked(endpoints.endpoint_of(provider), asked))
    except Refused as refusal:
        return {"reason": refusal.sentence}
    except client.ProviderUnavailable as unavailable:
        return {"reason": unavailable.reason}
    except client.ProviderRefused as refusal:
        return {"reason": refusal.reason}
    (reading,) = parse(
        answer.readable,
        criteria=[SPECIMEN_CRITERION],
        variant=variant,
        finish_reason=answer.finish_reason,
        refusal=answer.refusal,
    )
    return {
        "served_model": answer.served_model,
        "form": endpoints.reply_form(provider.name, refused),
        "refused": list(refused),
        "limits": {unit: quota.remaining for unit, quota in answer.quotas.items()},
        "tokens_in": answer.tokens_in,
        "tokens_out": answer.tokens_out,
        "cost": _cost(provider, test.model, answer),
        "seconds": round(answer.latency, 2),
        "read": reading.status,
        "score": reading.score,
    }


async def _asked(endpoint: client.Endpoint, asked: dict[str, Any]) -> tuple[client.ProviderAnswer, list[str]]:
    async with client.connect(endpoint) as connection:
        answer = await client.ask(connection, **asked)
        return answer, connection.refused[asked["model"]]


def _cost(provider: DeclaredProvider, model: str, answer: client.ProviderAnswer) -> str | None:
    """USD of one call at the price of the served model, as a run would book it; None where it is not known."""
    price = provider.price(answer.served_model)
    if price is None and provider.price(model):
        price = served_price(model, answer.served_model, {name: (into, out) for name, into, out in provider.prices})
    if price is None or answer.billed_in is None or answer.tokens_out is None:
        return None
    exact = (price[0] * answer.billed_in + price[1] * answer.tokens_out) / 1_000_000
    return str(exact.quantize(Decimal("0.00000001"), rounding=ROUND_UP))


def latest_tests(name: str) -> list[ProviderTest]:
    """The newest tests of a provider."""
    return list(ProviderTest.objects.filter(provider=name)[:5])
