"""`panelbench providers`: list, add, change, test and remove the endpoints that judges are asked at."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.refusals import Refused
from judging import providers
from judging.asking import endpoints
from judging.asking.declarations import API_NAMES, MOST, DeclaredProvider
from judging.forms import models_in_text
from judging.models import ProviderTest

ACTIONS = ("list", "add", "change", "test", "remove")


class Command(BaseCommand):
    help = "List the providers, add, change or remove a stored one, or test one with a single call."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", nargs="?", choices=ACTIONS, default="list")
        parser.add_argument("name", nargs="?", help="the provider's name")
        parser.add_argument("base_url", nargs="?", help="for add: the address, such as https://api.openai.com/v1")
        parser.add_argument("--api", choices=API_NAMES, help="the kind of its API; openai where none is named")
        key = "the name of the environment variable with its key, never the key itself"
        parser.add_argument("--key-variable", metavar="NAME", help=key)
        price = "a model, its prices in USD for a million tokens in and out, then those in a batch; may be repeated"
        parser.add_argument("--model", action="append", metavar='"NAME IN OUT"', help=price)
        parser.add_argument("--batches", action="store_const", const=True, help="it has OpenAI's batch API")
        for limit in MOST:
            parser.add_argument(f"--{limit.replace('_', '-')}", type=int, metavar="N")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *, action: str, name: str | None, base_url: str | None, **options: Any) -> None:
        if action != "list" and not name:
            raise CommandError(f"Name the provider: panelbench providers {action} NAME", returncode=2)
        if action == "add" and not base_url:
            raise CommandError("Write the address too: panelbench providers add NAME ADDRESS", returncode=2)
        try:
            self._carry_out(action, name or "", base_url, options)
        except Refused as refused:
            raise CommandError(refused.sentence, returncode=2) from None

    def _carry_out(self, action: str, name: str, base_url: str | None, options: dict[str, Any]) -> None:
        if action == "list":
            listed = [_about(provider) for provider in endpoints.all_providers().values()]
            text = json.dumps(listed, indent=2) if options["as_json"] else "\n".join(map(_row, listed))
            self.stdout.write(text or "No provider is declared.")
        elif action == "add":
            providers.add_provider(name=name, base_url=base_url or "", **_given(options))
            self.stdout.write(f"Added. A project may use it after: panelbench allow_provider PROJECT {name} --cap USD")
        elif action == "change":
            providers.change_provider(name=name, **_given({**options, "base_url": base_url}))
            self.stdout.write("Changed. Runs that were started before keep their prices.")
        elif action == "remove":
            providers.remove_provider(name=name)
            self.stdout.write("Removed. Its judges stay, and can't be run.")
        else:
            names = [text.split()[0] for text in options["model"] or []]
            test = providers.begin_test(name=name, model=next(iter(names), ""))
            providers.carry_out_test(test.pk)
            test.refresh_from_db()
            self.stdout.write(json.dumps(test.result) if options["as_json"] else _shown(test))
            if "reason" in test.result:
                raise SystemExit(1)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The settings that the command names, as `providers` takes them."""
    plain = ("base_url", "api", "key_variable", "batches", *MOST)
    given = {name: options[name] for name in plain if options.get(name) is not None}
    return given | (models_in_text("\n".join(options["model"])) if options["model"] else {})


def _about(provider: DeclaredProvider) -> dict[str, Any]:
    declared_by = "environment" if endpoints.is_of_environment(provider.name) else "operator"
    prices = {model: [str(into), str(out)] for model, into, out in provider.prices}
    about = {"name": provider.name, "base_url": provider.base_url, "api": provider.api}
    about["key_variable"] = provider.key_variable
    return {**about, "declared_by": declared_by, "models": list(provider.models), "prices": prices}


def _row(about: dict[str, Any]) -> str:
    priced = {model: f" ${into} in, ${out} out" for model, (into, out) in about["prices"].items()}
    models = [f"{model}{priced.get(model, '')}" for model in dict.fromkeys([*about["models"], *priced])]
    by = "the environment" if about["declared_by"] == "environment" else "the operator"
    return f"{about['name']}: {about['base_url']}, declared by {by}; models: {'; '.join(models) or 'any'}"


def _shown(test: ProviderTest) -> str:
    """What a test showed, a line for each thing."""
    result = test.result
    if "reason" in result:
        return f"No reply: {result['reason']}"
    limits = ", ".join(f"{count} {unit} left" for unit, count in result["limits"].items())
    rows = {
        "asked for": test.model,
        "served": result["served_model"] or "not stated",
        "form": result["form"],
        "refused": ", ".join(result["refused"]) or "nothing",
        "read": f"{result['read']} {result['score'] if result['score'] is not None else ''}".strip(),
        "limits": limits or "not stated",
        "tokens": f"{result['tokens_in']} in, {result['tokens_out']} out",
        "cost": "no price is declared" if result["cost"] is None else f"${result['cost']}",
        "seconds": str(result["seconds"]),
    }
    return "\n".join(f"{name:<9} {text}" for name, text in rows.items())
