"""What the numbers say, and everything as files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from panelbench.client import types
from panelbench.client.wire import Wire, operation


class Numbers(Wire):
    @operation("GET", "/projects/{project}/campaigns/{campaign}/numbers/")
    def numbers(self, campaign: int, *, raters: Sequence[str] = ()) -> types.Numbers:
        """The newest figures, over the annotators of these pseudonyms or over all. Asking has stale ones computed."""
        there = self.at("campaigns/{}/numbers/", campaign)
        return cast(types.Numbers, self.json("GET", there, params={"raters": tuple(raters)}))

    def fresh_numbers(self, campaign: int, *, raters: Sequence[str] = (), timeout: float = 300.0) -> types.Snapshot:
        """The figures once they are those of everything rated so far; raises `TimedOut`."""

        def fresh() -> types.Snapshot | None:
            found = self.numbers(campaign, raters=raters)
            return None if found["stale"] else found["snapshot"]

        return cast(types.Snapshot, self.wait(fresh, timeout=timeout, what=f"The numbers of campaign {campaign}"))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/ratings.csv")
    def save_ratings_table(self, campaign: int, to: str | os.PathLike[str], *, raters: Sequence[str] = ()) -> Path:
        """Write the table that the figures are computed from, byte for byte, to a CSV file."""
        there = self.at("campaigns/{}/ratings.csv", campaign)
        return self.save(there, to, params={"raters": tuple(raters)})

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
