"""What is said of a figure: a sentence with its values, in English until a page shows it in another language.

The catalogues have the first argument of ``Message`` (`manage.py catalogues` finds it); pages translate it and put its
values in again (`analytics.figure_words`). Stored, a message keeps both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Self


class Message(str):
    """A text in English, with its ``template`` and the ``values`` in it, which may be messages too."""

    template: str
    values: dict[str, str]

    def __new__(cls, template: str, /, **values: object) -> Self:
        texts = {name: value if isinstance(value, str) else str(value) for name, value in values.items()}
        message = super().__new__(cls, template % texts if texts else template)
        message.template, message.values = template, texts
        return message

    @property
    def is_approximate(self) -> bool:
        """Whether it, or a message in it, names a method whose intervals may cover less than they should."""
        return self.template in APPROXIMATE or any(map(is_approximate, self.values.values()))

    @property
    def is_conservative(self) -> bool:
        """Whether it, or a message in it, names a method whose intervals cover more than they say."""
        return self.template == CONSERVATIVE or any(map(is_conservative, self.values.values()))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        values = {name: text.as_dict() if isinstance(text, Message) else text for name, text in self.values.items()}
        return {"template": self.template, "values": values}


APPROXIMATE = (
    Message("%(method)s (approximate)", method="").template,
    Message("%(method)s (approximate: %(why)s)", method="", why="").template,
    Message("%(method)s, approximate: %(why)s", method="", why="").template,
)
CONSERVATIVE = Message("%(method)s (conservative: %(why)s)", method="", why="").template


def approximate(method: str, why: str = "") -> Message:
    """The name of a method that says that its intervals may cover less than they should, and why."""
    if isinstance(method, Message) and method.is_approximate:
        return method
    if isinstance(method, Message) and method.template == CONSERVATIVE:
        method = method.values["method"]  # one word: it may cover less, whatever else is so
    if why:
        return Message("%(method)s (approximate: %(why)s)", method=method, why=why)
    return Message("%(method)s (approximate)", method=method)


def is_approximate(method: str | None) -> bool:
    """Whether a method says that its intervals may cover less than they should."""
    return isinstance(method, Message) and method.is_approximate


def conservative(method: str, why: str) -> Message:
    """The name of a method that says that its intervals are wider than needed, and why, if it is not approximate."""
    if isinstance(method, Message) and (method.is_approximate or method.is_conservative):
        return method
    return Message("%(method)s (conservative: %(why)s)", method=method, why=why)


def is_conservative(method: str | None) -> bool:
    """Whether a method says that its intervals cover more than they say."""
    return isinstance(method, Message) and method.is_conservative


def joined(parts: Iterable[str | None], separator: str = "; ") -> str:
    """The texts that there are in a row, each of them still a message; empty for none."""
    texts = [part for part in parts if part]
    if len(texts) < 2:
        return texts[0] if texts else ""
    values = {f"part_{number}": text for number, text in enumerate(texts)}
    return Message(separator.join(f"%({name})s" for name in values), **values)


def plain_message(value: Any) -> Any:
    """A value for JSON: a message with values becomes an object, which `read_message` reads."""
    return value.as_dict() if isinstance(value, Message) and value.values else value


def read_message(value: Mapping[str, Any]) -> Any:
    """An object of JSON, which is a message if it has a template and values."""
    if value.keys() != {"template", "values"}:
        return value
    template, values = value["template"], value["values"]
    return Message(template, **values)


def coded_messages(value: Any) -> Any:
    """A value for JSON, with every message in it as its template and values."""
    if isinstance(value, dict):
        return {name: coded_messages(part) for name, part in value.items()}
    return list(map(coded_messages, value)) if isinstance(value, list | tuple) else plain_message(value)


class MessageDecoder(json.JSONDecoder):
    """Reads JSON in which messages are objects (`coded_messages`)."""

    def __init__(self) -> None:
        super().__init__(object_hook=read_message)
