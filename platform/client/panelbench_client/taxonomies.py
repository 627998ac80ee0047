"""Taxonomies, and the duties that their rules make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from panelbench_client import types
from panelbench_client.connection import ServerConnection, operation


class TaxonomyMethods(ServerConnection):
    @operation("GET", "/projects/{project}/taxonomies/")
    def taxonomies(self) -> Iterator[types.Taxonomy]:
        """Every version of the project's taxonomies."""
        return self.pages(self.at("taxonomies/"))

    @operation("POST", "/projects/{project}/taxonomies/")
    def store_taxonomy(self, yaml: str) -> types.Taxonomy:
        """Store a taxonomy, the text of its file; an equal newest version is returned as it is."""
        return cast(types.Taxonomy, self.json("POST", self.at("taxonomies/"), json={"yaml": yaml}))

    @operation("GET", "/projects/{project}/taxonomies/{taxonomy}/")
    def taxonomy(self, taxonomy: int) -> types.TaxonomyDetail:
        """One version with its document as YAML."""
        return cast(types.TaxonomyDetail, self.json("GET", self.at("taxonomies/{}/", taxonomy)))

    @operation("DELETE", "/projects/{project}/taxonomies/{taxonomy}/")
    def remove_taxonomy(self, taxonomy: int) -> None:
        """Remove a version whose rules made no duty."""
        self.send("DELETE", self.at("taxonomies/{}/", taxonomy))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/duties/by-rules/")
    def add_duties_by_rules(
        self,
        campaign: int,
        taxonomy: int,
        *,
        panels: Mapping[str, Sequence[int]] | None = None,
        selection: int | None = None,
        seed: int | None = None,
        keep_names: bool = False,
        preview: bool = False,
    ) -> types.TaxonomyPlan:
        """Create the duties that the rules ask for, or add what they lack; ``preview`` only counts.

        ``panels``: by name in the rules, the ids of the panels that rate; by default those that are called so.
        """
        body = {"taxonomy": taxonomy, "selection": selection, "seed": seed, "keep_names": keep_names}
        named = {"panels": {name: list(ids) for name, ids in panels.items()}} if panels is not None else {}
        there = self.at("campaigns/{}/duties/by-rules/", campaign)
        return cast(types.TaxonomyPlan, self.json("POST", there, json={**body, **named, "preview": preview}))
