"""A Python client of Panelbench's API, for scripts: typed, synchronous, and nothing but httpx.

    from panelbench_client import Client

    with Client("https://bench.example.org", token="pb_...", project="kassa") as bench:
        for dataset in bench.datasets():
            print(dataset["name"], dataset["items"])

Importing this sets nothing up and needs no Django.
"""

from __future__ import annotations

from typing import Self

from panelbench_client import types
from panelbench_client.connection import (
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
from panelbench_client.files import ExportMethods, ImportMethods
from panelbench_client.numbers import AdjudicationMethods, DecisionMethods, NumberMethods
from panelbench_client.resources import JudgeMethods, ProjectMethods
from panelbench_client.webhooks import Event, received

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


class Client(
    ProjectMethods,
    ExportMethods,
    ImportMethods,
    JudgeMethods,
    NumberMethods,
    AdjudicationMethods,
    DecisionMethods,
):
    """Everything a researcher does in one project. Close it, or use it as a context manager."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
