"""A verb's no: one sentence that says what to do, for a page, the API and the command line alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from django.contrib import messages
from django.http import HttpRequest


class Refused(Exception):
    """What was asked can't be done as they are; nothing was changed.

    ``fields`` maps the name of an input to what is wrong with it.
    """

    def __init__(self, sentence: str, *, code: str = "refused", fields: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code
        self.fields = dict(fields or {})


@contextmanager
def refusals_as_messages(request: HttpRequest) -> Iterator[None]:
    """Say a refusal on the page that comes next, instead of raising it."""
    try:
        yield
    except Refused as refused:
        messages.error(request, refused.sentence)
