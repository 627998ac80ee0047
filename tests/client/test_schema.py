"""The client keeps step with the API: every operation, every input and every answer of the schema has a counterpart."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any

from panelbench.management.commands import client_types
from panelbench_client import Client, types

PAGING = {"cursor", "limit"}


@cache
def schema() -> dict[str, Any]:
    return client_types.schema()


def operations() -> Iterator[tuple[str, str]]:
    for path, methods in schema()["paths"].items():
        # The client speaks today's addresses; deprecated ones stand for programs that are older than it.
        yield from ((method.upper(), path) for method, said in methods.items() if not said.get("deprecated"))


def counterparts() -> dict[tuple[str, str], tuple[str, dict[str, str]]]:
    methods = inspect.getmembers(Client, inspect.isfunction)
    return {
        (method, path): (name, named)
        for name, function in methods
        for method, path, named in getattr(function, "operations", ())
    }


def part(reference: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in reference:
        return reference
    return dict(schema()["components"]["schemas"][reference["$ref"].rpartition("/")[2]])


def inputs(said: dict[str, Any]) -> set[str]:
    """What an operation takes: parts of its address, its query, and of its body's fields those that are written."""
    named = {each["name"] for each in said.get("parameters", ()) if each["in"] != "header"} - PAGING - {"project"}
    for body in said.get("requestBody", {}).get("content", {}).values():
        fields = part(body["schema"]).get("properties", {})
        named |= {name for name, field in fields.items() if not field.get("readOnly")}
    return named


def answers(said: dict[str, Any]) -> set[Any]:
    """The Python types of a JSON answer; nothing for one without content, of another kind, or that is a file."""
    found = set()
    for status, answer in said["responses"].items():
        content = answer.get("content", {}).get("application/json")
        if status.startswith("2") and content and content["schema"].get("format") != "binary":
            found.add(client_types.python(content["schema"]))
    return found


def returned(name: str) -> str:
    """What a method says it returns, in the words of the types module."""
    hint = typing.get_type_hints(getattr(Client, name))["return"]
    text = getattr(hint, "__name__", "") if inspect.isclass(hint) and not typing.get_args(hint) else str(hint)
    return text.replace("panelbench_client.types.", "").replace("collections.abc.", "")


def test_every_operation_has_a_method_and_every_method_an_operation() -> None:
    assert set(counterparts()) == set(operations())


def test_a_method_takes_every_input() -> None:
    for method, path in operations():
        said = schema()["paths"][path][method.lower()]
        name, named = counterparts()[method, path]
        parameters = inspect.signature(getattr(Client, name)).parameters
        open_to_more = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
        missing = {named.get(each, each) for each in inputs(said)} - set(parameters) - {""}
        assert open_to_more or not missing, name


def test_a_method_returns_what_is_answered() -> None:
    for method, path in operations():
        said, name = schema()["paths"][path][method.lower()], counterparts()[method, path][0]
        for kind in answers(said):
            wanted = kind.replace("Paginated", "Iterator[").removesuffix("List") + "]" if "Paginated" in kind else kind
            if name in {"preview_import", "preview_study"} and wanted == "Import":
                continue  # while a worker reads, which the method waits for
            assert wanted in returned(name)


def test_types_and_plain_methods_are_those_of_the_schema() -> None:
    """If not: `manage.py client_types`."""
    for path, text in client_types.rendered_files().items():
        assert path.read_text(encoding="utf-8") == text, path.name
    assert typing.get_type_hints(types.Dataset)["items"] is int
