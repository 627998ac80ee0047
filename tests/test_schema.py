"""The API keeps to its own schema, whatever it is sent (schemathesis), and the schema says everything there is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from django.test import Client
from hypothesis import HealthCheck, given, settings
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from accounts import tokens
from accounts.models import Scope
from annotation.api.uploads import CHUNK_TYPE
from panelbench.wsgi import application
from tests import access
from tests.cast import Cast

# Our bodies are narrower than a schema can say: a well-formed id may name nothing, a well-formed tag no language. And
# whom a token lets in is the business of tests/test_access.py: here every request carries a good one.
EXCLUDED = [positive_data_acceptance, ignored_auth]

schemathesis.serializer.alias(CHUNK_TYPE, "application/octet-stream")  # a chunk of an upload is bytes like any other


@pytest.fixture
def api(cast: Cast) -> Iterator[Any]:
    """The schema as it is served, a lead's token, and the parts of addresses that lead somewhere."""
    parts = access.furnish(cast)
    _token, secret = tokens.issue(user=cast.aino, name="schema", scope=Scope.WRITE)
    # A server's requests end their connections; these share the test's, as those of Django's own client do.
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    schema = schemathesis.openapi.from_wsgi("/api/schema/?format=json", _served)
    yield schema, {"Authorization": f"Bearer {secret}"}, parts
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def _served(environ: Any, start_response: Any) -> list[bytes]:
    """The application as a server calls it: an answer is closed once it is read."""
    with closing(application(environ, start_response)) as answer:
        return [b"".join(answer)]


def test_the_schema_names_every_route_of_the_api(cast: Cast) -> None:
    paths = cast.client("aino").get("/api/schema/?format=json").json()["paths"]
    ours = [route.pattern for route in access.routes() if route.pattern.startswith("api/v1/")]
    assert len(paths) == len(ours)


@pytest.mark.parametrize("sends_rubbish", [False, True])
def test_the_api_keeps_to_its_schema(api: Any, sends_rubbish: bool) -> None:
    schema, headers, parts = api
    mode = schemathesis.GenerationMode.NEGATIVE if sends_rubbish else schemathesis.GenerationMode.POSITIVE
    for result in schema.exclude(deprecated=True).get_all_operations():  # the old names lead to the same views
        operation = result.ok()
        strategy = operation.as_strategy(generation_mode=mode)

        @settings(max_examples=4, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(case=strategy)
        def put(case: Any) -> None:
            if not sends_rubbish:
                case.path_parameters.update({name: str(parts[name]) for name in case.path_parameters if name in parts})
            with transaction.atomic():
                answer = case.call(headers=headers)
                transaction.set_rollback(True)
            case.validate_response(answer, excluded_checks=EXCLUDED)

        put()


def test_queries_with_unlisted_values_are_refused(cast: Cast) -> None:
    parts = access.furnish(cast)
    campaign, writing = parts["campaign"], parts["writing"]
    base = f"/api/v1/projects/{parts['project']}"
    for address, name in (
        (f"{base}/campaigns/{campaign}/study/", "reference"),
        (f"{base}/writing/{writing}/texts/", "state"),
    ):
        assert cast.client("aino").get(address).status_code == 200
        for value in ("", "õ"):
            assert cast.client("aino").get(address, {name: value}).status_code == 400


def test_the_documentation_is_served_under_our_content_policy(cast: Cast) -> None:
    page = Client().get("/api/docs/")
    assert page.status_code == 200
    assert "'unsafe-inline'" not in page.headers["Content-Security-Policy"]


def test_every_address_of_the_api_answers_what_it_allows(cast: Cast) -> None:
    """OPTIONS, which browsers and generated clients send, was a 500 at the documentation."""
    parts = access.furnish(cast)
    _token, secret = tokens.issue(user=cast.aino, name="options", scope=Scope.WRITE)
    client = Client(raise_request_exception=False, headers={"authorization": f"Bearer {secret}"})
    routes = [route.pattern for route in access.routes() if route.pattern.startswith("api/")]
    assert len(routes) > 100
    answers = {}
    for pattern in routes:
        address = re.sub(r"<\w+:(\w+)>", lambda part: str(parts.get(part[1], 1)), pattern)
        answers[pattern] = client.options(f"/{address}").status_code
    wrong = {pattern: status for pattern, status in answers.items() if status not in (200, 204, 404)}
    assert set(wrong) <= {"api/docs/"}, wrong
    assert list(answers.values()).count(200) > 0.9 * len(answers)
