"""What the numbers say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from panelbench.client import types
from panelbench.client.wire import Wire, operation


class Numbers(Wire):
    @operation("GET", "/projects/{project}/campaigns/{campaign}/numbers/", blind="blind_only")
    def numbers(self, campaign: int, *, raters: Sequence[str] = (), blind_only: bool = False) -> types.Numbers:
        """The newest figures, over the annotators of these pseudonyms or over all. Asking has stale ones computed.

        `blind_only` leaves out ratings by people who could see verdicts.
        """
        there = self.at("campaigns/{}/numbers/", campaign)
        return cast(types.Numbers, self.json("GET", there, params=_chosen(raters, blind_only)))

    def fresh_numbers(
        self, campaign: int, *, raters: Sequence[str] = (), blind_only: bool = False, timeout: float = 300.0
    ) -> types.Snapshot:
        """The figures once they are those of everything rated so far; raises `TimedOut`."""

        def fresh() -> types.Snapshot | None:
            found = self.numbers(campaign, raters=raters, blind_only=blind_only)
            return None if found["stale"] else found["snapshot"]

        return cast(types.Snapshot, self.wait(fresh, timeout=timeout, what=f"The numbers of campaign {campaign}"))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/ratings.csv", blind="blind_only")
    def save_ratings_table(
        self, campaign: int, to: str | os.PathLike[str], *, raters: Sequence[str] = (), blind_only: bool = False
    ) -> Path:
        """Write the table that the figures are computed from, byte for byte, to a CSV file."""
        there = self.at("campaigns/{}/ratings.csv", campaign)
        return self.save(there, to, params=_chosen(raters, blind_only))


def _chosen(raters: Sequence[str], blind_only: bool) -> dict[str, object]:
    return {"raters": tuple(raters), **({"blind": "only"} if blind_only else {})}
