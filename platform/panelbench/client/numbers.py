"""What the numbers say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

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
