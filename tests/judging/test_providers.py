"""Providers that an operator stores: page, API, command, a test of one call, and prices that a started run keeps."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from accounts.models import AuditEntry, User
from judging import judges, providers, runs
from judging.asking import allowances
from judging.models import Attempt, Judge, ProviderTest, StoredProvider
from tests.cast import Cast
from tests.judging.test_runs import started, worked
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)

API = "/api/v1/providers/"
PRICED = "sim-steady 2 8\nsim-terse"


@pytest.fixture
def operator(cast: Cast) -> Client:
    """The browser of the person who runs the server; no member of any project."""
    client = Client()
    client.force_login(User.objects.create_superuser("ops@panelbench.test", "correct horse battery", name="Ops"))
    return client


@pytest.fixture
def stored(operator: Client, provider: RunningProvider, settings: Any) -> RunningProvider:
    """The simulated server, stored on the operator's page as one that costs money; the environment declares none."""
    settings.PROVIDERS = {}
    answer = operator.post(
        reverse("providers"), {"name": "near", "base_url": provider.base_url, "models": PRICED, "tries": "3"}
    )
    assert answer.status_code == 302, answer.content.decode()
    return provider


def near_judge(cast: Cast) -> Judge:
    allowances.allow(project=cast.kassa, provider="near", cap_total=Decimal(5))
    about = {"provider": "near", "model": "sim-steady", "parameters": {"max_tokens": 400}}
    return judges.declare(project=cast.kassa, name="Nähe “1”", actor=cast.boris, **about)


def errors(client: Client, **fields: str) -> str:
    answer = client.post(reverse("providers"), fields)
    assert answer.status_code == 422
    return answer.content.decode()


class TestPage:
    def test_a_stored_provider_is_chosen_and_asked_without_a_restart(
        self, cast: Cast, operator: Client, stored: RunningProvider
    ) -> None:
        boris = cast.client("boris")
        form = boris.get(reverse("judge_new", args=["kassa"])).content.decode()
        assert '<option value="near">near' in form
        assert '<option value="sim-terse">near</option>' in form
        judge = near_judge(cast)
        assert (judge.simulated, judges.pace(judge).tries) == (False, 3)
        run = started(cast, judge, items=3, budget=Decimal(1))
        done = worked(run)
        assert done.finished
        assert done.cost == sum(
            (Decimal(2) * into + Decimal(8) * out) / 1_000_000
            for into, out in Attempt.objects.values_list("tokens_in", "tokens_out")
        )

    def test_a_started_run_keeps_its_prices_and_a_new_one_has_the_new(
        self, cast: Cast, operator: Client, stored: RunningProvider
    ) -> None:
        run = started(cast, near_judge(cast), items=2)
        changed = operator.post(
            reverse("provider", args=["near"]), {"base_url": stored.base_url, "models": "sim-steady 20 80"}
        )
        assert changed.status_code == 302
        first = worked(run)
        assert first.finished
        dearer = runs.start_judge_run(
            judge=run.judge, dataset=run.dataset, rubric_version=run.rubric_version, again=True
        )
        second = worked(dearer)
        assert first.cost and second.cost
        attempts = [Attempt.objects.filter(call__run=each) for each in (run, dearer)]
        tokens = [list(rows.values_list("tokens_in", "tokens_out")) for rows in attempts]
        for rows, done, factor in zip(tokens, (first, second), (1, 10), strict=True):
            assert done.cost == sum(factor * (Decimal(2) * into + Decimal(8) * out) / 1_000_000 for into, out in rows)

    def test_what_is_refused_says_why_and_stores_nothing(
        self, operator: Client, provider: RunningProvider, settings: Any
    ) -> None:
        known = {"base_url": provider.base_url}
        assert "The environment declares a provider" in errors(operator, name="simulated", **known)
        for name in ("two words", "a/b", "قريب", "x" * 81):
            assert "name" in errors(operator, name=name, **known)
        for address in (
            "http://example.org/v1",
            "https://169.254.169.254/latest",
            "https://10.0.0.5/v1",
            "file:///etc/passwd",
            "https://user:pass@1.1.1.1/",
        ):
            errors(operator, name="far", base_url=address)
        for variable in ("SECRET_KEY", "DATABASE_URL", "sk-proj-abcdefgh", "AWS_SECRET_ACCESS_KEY"):
            assert "PANELBENCH_KEY_" in errors(operator, name="far", key_variable=variable, **known)
        for models in ("m 1", "m 1 2 3", "m -1 2", "m 1 NaN", "m one two"):
            assert "two prices" in errors(operator, name="far", models=models, **known)
        assert not StoredProvider.objects.exists()
        operator.post(reverse("providers"), {"name": "far", **known})
        assert "There is already a provider" in errors(operator, name="far", **known)

    def test_the_trail_says_who_changed_what(self, operator: Client, stored: RunningProvider) -> None:
        address = reverse("provider", args=["near"])
        operator.post(address, {"base_url": stored.base_url, "models": "sim-steady 3 9\nsim-terse"})
        operator.post(reverse("provider_remove", args=["near"]))
        entries = AuditEntry.objects.filter(subject="judging.StoredProvider").order_by("pk")
        assert [(entry.verb, entry.actor.name) for entry in entries] == [
            ("add provider", "Ops"),
            ("change provider", "Ops"),
            ("remove provider", "Ops"),
        ]
        assert entries[1].fields == ["prices", "tries"]
        assert "changed a provider" in operator.get(reverse("providers")).content.decode()
        assert operator.get(address).status_code == 404

    def test_an_address_that_judges_use_stays_and_a_run_under_way_forbids_removal(
        self, cast: Cast, operator: Client, stored: RunningProvider
    ) -> None:
        run = started(cast, near_judge(cast), items=2)
        other = {"base_url": "http://127.0.0.1:9/v1", "models": PRICED}
        answer = operator.post(reverse("provider", args=["near"]), other)
        assert (answer.status_code, "can&#x27;t change" in answer.content.decode()) == (422, True)
        page = operator.post(reverse("provider_remove", args=["near"]), follow=True).content.decode()
        assert "Pause or cancel them first" in page
        assert runs.pause_run(run=run)
        assert "Removed." in operator.post(reverse("provider_remove", args=["near"]), follow=True).content.decode()
        assert "Choose another name" in errors(operator, name="near", **other)
        again = operator.post(reverse("providers"), {"name": "near", "base_url": stored.base_url, "models": PRICED})
        assert again.status_code == 302
        assert runs.resume_run(run=run)
        assert worked(run).finished

    def test_providers_of_the_environment_are_shown_and_not_changed(
        self, operator: Client, provider: RunningProvider
    ) -> None:
        page = operator.get(reverse("providers")).content.decode()
        assert "declared by the environment" in page
        assert "restarted" in operator.get(reverse("provider", args=["simulated"])).content.decode()
        sent = {"base_url": "http://127.0.0.1:9/v1"}
        answer = operator.post(reverse("provider", args=["simulated"]), sent)
        assert "declared by the environment" in answer.content.decode()
        removed = operator.post(reverse("provider_remove", args=["simulated"]), follow=True)
        assert "declared by the environment" in removed.content.decode()
        assert not StoredProvider.objects.exists()

    @pytest.mark.parametrize("name", ["aino", "boris", "maarika", "zoltan"])
    def test_nobody_else_reaches_the_pages(self, cast: Cast, name: str, provider: RunningProvider) -> None:
        client = cast.client(name)
        assert client.get(reverse("providers")).status_code == 403
        assert client.post(reverse("provider_test", args=["simulated"])).status_code == 403
        User.objects.filter(pk=getattr(cast, name).pk).update(is_staff=True)
        assert client.post(reverse("providers"), {"name": "x", "base_url": provider.base_url}).status_code == 403


class TestOneCall:
    def test_it_shows_model_form_limits_and_price_and_is_sent_once(
        self, operator: Client, stored: RunningProvider
    ) -> None:
        stored.control(limits={"x-ratelimit-remaining-requests": "41", "x-ratelimit-reset-requests": "6s"})
        before = stored.control()["requests"]
        operator.post(reverse("provider_test", args=["near"]), {"model": "sim-steady:no_format"})
        test = ProviderTest.objects.get()
        assert "waits for a worker" in operator.get(reverse("provider", args=["near"])).content.decode()
        for _delivered in range(3):  # a broker may deliver a task again
            providers.carry_out_test(test.pk)
        test.refresh_from_db()
        assert test.result["refused"] == ["json_schema", "json_object"]
        assert (test.result["form"], test.result["read"]) == ("tool_call", "ok")
        assert stored.control()["requests"] - before <= 3  # the two that were refused cost nothing
        page = operator.get(reverse("provider", args=["near"])).content.decode()
        for words in ("a tool call", "41 requests", "json_schema", "no price is declared", "sim-steady"):
            assert words in page

    def test_the_price_of_the_call_is_that_of_its_tokens(self, operator: Client, stored: RunningProvider) -> None:
        out = StringIO()
        call_command("providers", "test", "near", as_json=True, stdout=out)
        result = json.loads(out.getvalue())
        exact = (2 * Decimal(result["tokens_in"]) + 8 * Decimal(result["tokens_out"])) / 1_000_000
        assert Decimal(result["cost"]) == exact > 0
        assert (result["served_model"], result["refused"]) == ("sim-steady-2026-01", [])
        assert stored.control()["tokens_in"] == result["tokens_in"]

    def test_a_missing_key_and_a_closed_port_are_said(
        self, operator: Client, stored: RunningProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("NEAR_API_KEY", raising=False)
        call_command("providers", "change", "near", key_variable="NEAR_API_KEY")
        out = StringIO()
        with pytest.raises(SystemExit):
            call_command("providers", "test", "near", stdout=out)
        assert "Set the variable NEAR_API_KEY" in out.getvalue()
        monkeypatch.setenv("NEAR_API_KEY", "secret-of-the-worker")
        call_command("providers", "test", "near", stdout=out)
        assert "secret-of-the-worker" not in str(list(ProviderTest.objects.values())) + out.getvalue()
        call_command("providers", "add", "closed", "http://127.0.0.1:9/v1")
        with pytest.raises(SystemExit):
            call_command("providers", "test", "closed", model=["m"], stdout=out)
        assert "No connection" in out.getvalue()

    def test_a_redirect_is_not_followed(
        self, operator: Client, stored: RunningProvider, redirecting: list[str]
    ) -> None:
        address, *_paths = redirecting
        call_command("providers", "add", "moved", f"{address}/v1")
        before = stored.control()["requests"]
        out = StringIO()
        with pytest.raises(SystemExit):
            call_command("providers", "test", "moved", model=["sim-steady"], stdout=out)
        assert "No reply" in out.getvalue()
        assert stored.control()["requests"] == before


@pytest.fixture
def redirecting(stored: RunningProvider) -> Iterator[list[str]]:
    """The address of a server that sends every request on to the simulated provider."""

    class Moved(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(307)
            self.send_header("Location", f"{stored.base_url}/chat/completions")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Moved) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield [f"http://127.0.0.1:{server.server_port}"]
        server.shutdown()


class TestInterface:
    def test_superusers_write_and_researchers_read_names(
        self, cast: Cast, operator: Client, stored: RunningProvider
    ) -> None:
        boris = cast.client("boris")
        (listed,) = boris.get(API).json()
        assert listed == {
            "name": "near",
            "models": ["sim-steady", "sim-terse"],
            "simulated": False,
            "batches": False,
        }
        assert cast.client("maarika").get(API).status_code == 403
        assert Client().get(API).status_code in (401, 403)
        sent = {"name": "far", "base_url": stored.base_url, "prices": {"m": ["0.10", "2"]}, "timeout": 30}
        for client, status in ((boris, 403), (cast.client("aino"), 403), (operator, 201)):
            assert client.post(API, sent, content_type="application/json").status_code == status
        assert boris.get(f"{API}far/").status_code == 404
        assert boris.delete(f"{API}far/").status_code == 404
        whole = operator.get(f"{API}far/").json()
        assert (whole["prices"], whole["models"], whole["timeout"]) == ({"m": ["0.100000", "2.000000"]}, ["m"], 30)
        assert whole["declared_by"] == "operator"
        changed = operator.patch(f"{API}far/", {"timeout": None, "batches": True}, content_type="application/json")
        assert (changed.json()["timeout"], changed.json()["batches"]) == (None, True)
        test = operator.post(f"{API}far/tests/", {"model": "sim-steady"}, content_type="application/json")
        assert (test.status_code, test.json()["result"]) == (202, {})
        providers.carry_out_test(test.json()["id"])
        assert operator.get(f"{API}far/tests/").json()[0]["result"]["served_model"] == "sim-steady-2026-01"
        assert operator.delete(f"{API}far/").status_code == 204
        assert operator.get(f"{API}far/").status_code == 404

    @pytest.mark.parametrize(
        ("sent", "field"),
        [
            ({"prices": {"m": ["-1", "2"]}}, "prices"),
            ({"prices": {"m": ["1"]}}, "prices"),
            ({"key_variable": "SECRET_KEY"}, "key_variable"),
            ({"key": "sk-abc"}, "key"),
            ({"base_url": "http://192.168.0.1/v1"}, "base_url"),
            ({"timeout": 0}, "timeout"),
            ({"models": ["a" * 161]}, "models"),
        ],
    )
    def test_bad_input_is_named(
        self, operator: Client, provider: RunningProvider, sent: dict[str, Any], field: str
    ) -> None:
        whole = {"name": "far", "base_url": provider.base_url, **sent}
        answer = operator.post(API, whole, content_type="application/json")
        assert 400 <= answer.status_code < 500
        assert field in answer.json()["fields"]

    def test_the_command_lists_adds_and_removes(self, operator: Client, provider: RunningProvider) -> None:
        out = StringIO()
        call_command(
            "providers", "add", "far", provider.base_url, model=["m 1 2 0.5 1", "n"], requests_per_minute=9, stdout=out
        )
        call_command("providers", stdout=out)
        assert "far: " in out.getvalue() and "m $1 in, $2 out; n" in out.getvalue()
        assert "declared by the environment" in out.getvalue()
        row = StoredProvider.objects.get()
        assert (row.batch_prices, row.requests_per_minute) == ({"m": ["0.5", "1"]}, 9)
        with pytest.raises(CommandError, match="declared by the environment"):
            call_command("providers", "remove", "simulated")
        call_command("providers", "remove", "far", stdout=out)
        with pytest.raises(CommandError, match="no provider"):
            call_command("providers", "remove", "far")
