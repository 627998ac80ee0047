"""Refusals: one sentence that says what to do, for pages, API and commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest


class Refused(Exception):
    """An action is not possible in the present state, or with these inputs; nothing was changed.

    ``fields`` maps the names of inputs to their problems; ``more`` is what an API response says beside them.
    """

    def __init__(self, sentence: str, *, code: str = "refused", fields: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code
        self.fields = dict(fields or {})
        self.more: dict[str, object] = {}


@contextmanager
def refusals_as_messages(request: HttpRequest, *, done: str = "") -> Iterator[None]:
    """Show a refusal as a message on the next page instead of raising it; otherwise ``done``, if given."""
    try:
        yield
        if done:
            messages.success(request, done)
    except Refused as refused:
        messages.error(request, refused.sentence)
