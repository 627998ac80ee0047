"""A Python client of Panelbench's API, for scripts: typed, synchronous, and nothing but httpx.

    from panelbench.client import Client

    with Client("https://bench.example.org", token="pb_...", project="kassa") as bench:
        for dataset in bench.datasets():
            print(dataset["name"], dataset["items"])

docs/client.md walks a whole study. Importing this sets nothing up and needs no Django.
"""

from __future__ import annotations

from typing import Self

from panelbench.client import types
from panelbench.client.campaigns import Campaigns
from panelbench.client.corpus import Corpus
from panelbench.client.errors import (
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Forged,
    Gone,
    ImportFailed,
    NotFound,
    NotSignedIn,
    PanelbenchError,
    Refused,
    TimedOut,
    TooLarge,
    TooMany,
    TransferFailed,
    Unavailable,
    Unreachable,
)
from panelbench.client.exports import Exports
from panelbench.client.imports import Imports
from panelbench.client.judges import Judges
from panelbench.client.notices import Notices
from panelbench.client.numbers import Numbers
from panelbench.client.projects import Projects
from panelbench.client.receiving import Event, received

__all__ = [
    "ApiError",
    "BadRequest",
    "Client",
    "Conflict",
    "Event",
    "Forbidden",
    "Forged",
    "Gone",
    "ImportFailed",
    "NotFound",
    "NotSignedIn",
    "PanelbenchError",
    "Refused",
    "TimedOut",
    "TooLarge",
    "TooMany",
    "TransferFailed",
    "Unavailable",
    "Unreachable",
    "received",
    "types",
]


class Client(Projects, Corpus, Campaigns, Exports, Imports, Judges, Numbers, Notices):
    """Everything a researcher does in one project. Close it, or use it as a context manager."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
