"""What tokens let through, over every operation of the API: a read token changes nothing, a bound one stays at home."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from accounts import tokens
from accounts.models import Membership, Project, Role, Scope
from panelbench.management.commands import client_types
from tests import access
from tests.cast import Cast

SAFE = ("GET", "HEAD", "OPTIONS")


def operations() -> Iterator[tuple[str, str]]:
    for path, methods in client_types.schema()["paths"].items():
        yield from ((method.upper(), path) for method in methods)


@pytest.fixture
def parts(cast: Cast) -> dict[str, Any]:
    return access.furnish(cast)


def asking(cast: Cast, scope: Scope, project: Project | None = None) -> Client:
    """A program of Aino's, who leads the project."""
    _token, secret = tokens.issue(user=cast.aino, name="program", scope=scope, project=project)
    return Client(headers={"authorization": f"Bearer {secret}"})


def asked(program: Client, method: str, path: str, parts: dict[str, Any]) -> tuple[int, str]:
    """The status and code of an answer to a request without a body."""
    address = path.format(**{"project": "kassa", **parts})
    answer = program.generic(method, address, content_type="application/json")
    content = b"".join(answer) if answer.streaming else answer.content
    if answer.get("Content-Type") != "application/json":
        return answer.status_code, ""
    said = json.loads(content)
    return answer.status_code, said.get("code", "") if isinstance(said, dict) else ""


def test_a_read_token_is_let_through_to_nothing_that_changes(cast: Cast, parts: dict[str, Any]) -> None:
    program = asking(cast, Scope.READ)
    for method, path in operations():
        status, code = asked(program, method, path, parts)
        if method in SAFE:
            assert code != "permission_denied", (method, path)
        else:
            assert (status, code) == (403, "permission_denied"), (method, path)


def test_a_bound_token_reaches_no_other_project_and_founds_none(cast: Cast, parts: dict[str, Any]) -> None:
    Membership.objects.create(project=cast.teine, user=cast.aino, role=Role.LEAD)
    program = asking(cast, Scope.WRITE, project=cast.teine)
    for method, path in operations():
        if "{project}" in path or method not in SAFE:
            assert asked(program, method, path, parts) == (403, "permission_denied"), (method, path)
    assert Project.objects.count() == 2
    assert [each["slug"] for each in program.get("/api/v1/projects/").json()["results"]] == ["teine"]
