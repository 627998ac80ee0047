"""Everything as files, and a whole project back in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from panelbench.client import types
from panelbench.client.errors import TransferFailed
from panelbench.client.imports import Imports
from panelbench.client.wire import operation

Key = UUID | str
SUBJECTS = ("campaign", "dataset", "rubric")


class Exports(Imports):
    @operation("GET", "/projects/{project}/exports/{what}/")
    def export(
        self,
        what: str,
        to: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002  # as the API calls it
        campaign: str | int | None = None,
        dataset: str | int | None = None,
        rubric: str | int | None = None,
        **options: Any,
    ) -> Path:
        """Write ``what`` (items, ratings, verdicts, scores, rubric, campaign) to a file; docs/exporting.md names all.

        Raters bear pseudonyms. Where the project has only one campaign, dataset or rubric it need not be named.
        """
        params = {"format": format, "campaign": campaign, "dataset": dataset, "rubric": rubric, **options}
        return self.save(self.at("exports/{}/", what), to, params=params)

    @operation("GET", "/projects/{project}/exports/{what}/size/")
    def export_size(
        self,
        what: str,
        *,
        format: str | None = None,  # noqa: A002  # as the API calls it
        campaign: str | int | None = None,
        dataset: str | int | None = None,
        rubric: str | int | None = None,
        **options: Any,
    ) -> types.Extent:
        """How many rows the export has, and about how many bytes."""
        params = {"format": format, "campaign": campaign, "dataset": dataset, "rubric": rubric, **options}
        return cast(types.Extent, self.json("GET", self.at("exports/{}/size/", what), params=params))

    # --- in the background ------------------------------------------------------------------------------------------
    @operation("POST", "/projects/{project}/transfers/")
    def prepare_export(
        self,
        what: str,
        *,
        format: str | None = None,  # noqa: A002  # as the API calls it
        campaign: str | int | None = None,
        dataset: str | int | None = None,
        rubric: str | int | None = None,
        **options: Any,
    ) -> types.Transfer:
        """Have a worker write a large export; `wait_for_transfer`, then `save_transfer`. The token has to be one that
        may write.
        """
        said = {"format": format, "campaign": campaign, "dataset": dataset, "rubric": rubric, **options}
        named = {name: str(value) if name in SUBJECTS else value for name, value in said.items() if value is not None}
        return cast(types.Transfer, self.json("POST", self.at("transfers/"), json={"what": what, **named}))

    @operation("GET", "/projects/{project}/transfers/")
    def transfers(self) -> Iterator[types.Transfer]:
        """One's own, the newest first."""
        return self.pages(self.at("transfers/"))

    @operation("GET", "/projects/{project}/transfers/{transfer}/")
    def transfer(self, transfer: Key) -> types.Transfer:
        """How far it is, and what came of it."""
        return cast(types.Transfer, self.json("GET", self.at("transfers/{}/", transfer)))

    def wait_for_transfer(self, transfer: Key, *, timeout: float = 3600.0) -> types.Transfer:
        """The transfer once it is done; raises `TransferFailed` with what stood in the way, or `TimedOut`."""

        def ended() -> types.Transfer | None:
            found = self.transfer(transfer)
            if found["state"] == "failed":
                raise TransferFailed(found["sentence"])
            return found if found["state"] == "done" else None

        return cast(types.Transfer, self.wait(ended, timeout=timeout, what=f"Transfer {transfer}"))

    @operation("GET", "/projects/{project}/transfers/{transfer}/content/")
    def save_transfer(self, transfer: Key, to: str | os.PathLike[str]) -> Path:
        """Write the file that a worker wrote, to a file here."""
        return self.save(self.at("transfers/{}/content/", transfer), to)

    @operation("DELETE", "/projects/{project}/transfers/{transfer}/")
    def remove_transfer(self, transfer: Key) -> None:
        """Forget a transfer, and delete its file there."""
        self.send("DELETE", self.at("transfers/{}/", transfer))

    @operation("POST", "/projects/{project}/bundles/", upload="")
    def load_bundle(self, file: str | os.PathLike[str]) -> types.Transfer:
        """Upload a bundle and have it loaded into this empty project; `wait_for_transfer` says when it is there."""
        key = self.upload(Path(file))["key"]
        return cast(types.Transfer, self.json("POST", self.at("bundles/"), json={"upload": key}))
