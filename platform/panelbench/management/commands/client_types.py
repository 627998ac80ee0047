"""`manage.py client_types`: write the types and the plain methods of `panelbench_client` from the API's schema."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from drf_spectacular.generators import SchemaGenerator

from panelbench.client_methods import rendered_methods

FOLDER = settings.CHECKOUT_DIR / "platform" / "client" / "panelbench_client"
HEAD = '''"""Types of the API's requests and replies, written by `manage.py client_types` from the schema."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Json: TypeAlias = Any
Moment: TypeAlias = str
"""Date and time of day by ISO 8601, in UTC."""
Decimal: TypeAlias = str
"""An exact number, written out."""
'''
LEFT_OUT = re.compile("^(Paginated|Patched)|^Error$")
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict[str, Json]"}
FORMATS = {"date-time": "Moment", "decimal": "Decimal"}


class Command(BaseCommand):
    help = "Write the types and plain methods of the Python client, or with --check say whether they are up to date."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="write nothing; fail when they are not")

    def handle(self, **options: Any) -> None:
        for path, text in rendered_files().items():
            if not options["check"]:
                path.write_text(text, encoding="utf-8")
            elif path.read_text(encoding="utf-8") != text:
                self.stderr.write(f"{path.name} is not what the schema says; run manage.py client_types.")
                sys.exit(1)


def rendered_files() -> dict[Path, str]:
    """The files of the client that are written from the schema, with their text."""
    described = schema()
    return {
        FOLDER / "types.py": rendered_types(described["components"]["schemas"]),
        FOLDER / "methods.py": rendered_methods(described, python),
    }


def schema() -> dict[str, Any]:
    """The API's OpenAPI schema."""
    fields: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return fields


def rendered_types(components: Mapping[str, Mapping[str, Any]]) -> str:
    """The module's source: one type per component of the schema."""
    kept = {name: part for name, part in sorted(components.items()) if not LEFT_OUT.match(name)}
    choices = [f"{name}: TypeAlias = {_literal(part)}" for name, part in kept.items() if "enum" in part]
    shapes = [_shape(name, part) for name, part in kept.items() if "enum" not in part]
    return "\n".join([HEAD, *choices]) + "\n\n\n" + "\n\n\n".join(shapes) + "\n"


def _literal(part: Mapping[str, Any]) -> str:
    plain = f"Literal[{', '.join(_quoted(value) for value in part['enum'])}]"
    if len(plain) < 80:
        return plain
    return "Literal[\n" + "".join(f"    {_quoted(value)},\n" for value in part["enum"]) + "]"


def _quoted(value: Any) -> str:
    return '"' + value + '"' if isinstance(value, str) else repr(value)


def _shape(name: str, part: Mapping[str, Any]) -> str:
    return "\n".join([f"class {name}(TypedDict):", *_body(part)])


def _body(part: Mapping[str, Any]) -> Iterator[str]:
    text = " ".join(str(part.get("description", "")).split())
    if text:
        yield f'    """{text}"""' if len(text) <= 110 else _wrapped(text)
        yield ""
    for name, held in part.get("properties", {}).items():
        if not held.get("writeOnly"):
            kind = python(held)
            yield f"    {name}: {kind if name in part.get('required', ()) else f'NotRequired[{kind}]'}"


def _wrapped(text: str) -> str:
    from textwrap import fill

    return '    """' + fill(text, 110, subsequent_indent="    ") + '\n    """'


def python(held: Mapping[str, Any]) -> str:
    """A part of the schema as a Python type."""
    several = [python(part) for part in (*held.get("allOf", ()), *held.get("oneOf", ()))]
    if "$ref" in held:
        kind = str(held["$ref"]).rpartition("/")[2]
    elif several:
        kind = " | ".join(several)
    elif "enum" in held:
        kind = _literal(held)
    elif held.get("type") == "array":
        kind = f"list[{python(held['items'])}]"
    elif isinstance(held.get("additionalProperties"), dict):
        kind = f"dict[str, {python(held['additionalProperties'])}]"
    else:
        kind = FORMATS.get(held.get("format", ""), PLAIN.get(held.get("type", ""), "Json"))
    return f"{kind} | None" if held.get("nullable") and kind != "Json" else kind
