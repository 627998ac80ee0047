"""Campaigns, panels, duties and how far they are; and the desk, for programs that rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from panelbench.client import types
from panelbench.client.wire import Wire, operation


class Campaigns(Wire):
    @operation("GET", "/projects/{project}/campaigns/")
    def campaigns(self) -> Iterator[types.Campaign]:
        """The project's campaigns."""
        return self.pages(self.at("campaigns/"))

    @operation("POST", "/projects/{project}/campaigns/")
    def open_campaign(self, name: str, *, dataset: int, rubric_version: int) -> types.Campaign:
        """Open a campaign on a dataset and a published rubric version, each by its ``id``."""
        said = {"name": name, "dataset": dataset, "rubric_version": rubric_version}
        return cast(types.Campaign, self.json("POST", self.at("campaigns/"), json=said))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/")
    def campaign(self, campaign: int) -> types.Campaign:
        """One campaign."""
        return cast(types.Campaign, self.json("GET", self.at("campaigns/{}/", campaign)))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/state/")
    def move_campaign(self, campaign: int, state: types.CampaignState) -> types.Campaign:
        """Pause a campaign, open it again, or close it for good."""
        there = self.at("campaigns/{}/state/", campaign)
        return cast(types.Campaign, self.json("POST", there, json={"state": state}))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/progress/")
    def progress(self, campaign: int) -> list[types.DutyProgress]:
        """How far each duty is, and each annotator in it, by pseudonym."""
        there = self.at("campaigns/{}/progress/", campaign)
        return cast(list[types.DutyProgress], self.json("GET", there))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/dataset/")
    def extend_campaign(self, campaign: int, dataset: int) -> types.Campaign:
        """Go on with a later version of the dataset; every rating stays."""
        there = self.at("campaigns/{}/dataset/", campaign)
        return cast(types.Campaign, self.json("POST", there, json={"dataset": dataset}))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/hand-out/")
    def hand_out(self, campaign: int) -> types.HandedOut:
        """Give every duty the items that a later version of the dataset added."""
        return cast(types.HandedOut, self.json("POST", self.at("campaigns/{}/hand-out/", campaign)))

    # --- panels and duties ------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/panels/")
    def panels(self) -> Iterator[types.Panel]:
        """The project's panels."""
        return self.pages(self.at("panels/"))

    @operation("POST", "/projects/{project}/panels/")
    def make_panel(self, name: str, *, language: str = "") -> types.Panel:
        """Make a panel, usually of native speakers of one language."""
        said = {"name": name, "language": language}
        return cast(types.Panel, self.json("POST", self.at("panels/"), json=said))

    @operation("GET", "/projects/{project}/panels/{panel}/seats/")
    def seats(self, panel: int) -> Iterator[types.Seat]:
        """Who sits on a panel, by pseudonym."""
        return self.pages(self.at("panels/{}/seats/", panel))

    @operation("POST", "/projects/{project}/panels/{panel}/seats/")
    def seat(self, panel: int, user: int) -> types.Seat:
        """Put a member on a panel, by their user id; for leads."""
        return cast(types.Seat, self.json("POST", self.at("panels/{}/seats/", panel), json={"user": user}))

    @operation("DELETE", "/projects/{project}/panels/{panel}/seats/{seat}/")
    def unseat(self, panel: int, seat: int) -> None:
        """Take somebody off a panel; their ratings stay. For leads."""
        self.send("DELETE", self.at("panels/{}/seats/{}/", panel, seat))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/duties/")
    def duties(self, campaign: int) -> Iterator[types.Duty]:
        """The duties of a campaign."""
        return self.pages(self.at("campaigns/{}/duties/", campaign))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/duties/")
    def add_duty(
        self,
        campaign: int,
        *,
        panel: int,
        overlap: int,
        name: str | None = None,
        criteria: Sequence[str] | None = None,
        languages: Sequence[str] | None = None,
        seed: int | None = None,
        keep_names: bool | None = None,
    ) -> types.Duty:
        """Give a panel its share: so many annotators per item, on some or all criteria."""
        said = {"panel": panel, "overlap": overlap, "name": name, "seed": seed, "keep_names": keep_names}
        lists = {"criteria": criteria and list(criteria), "languages": languages and list(languages)}
        there = self.at("campaigns/{}/duties/", campaign)
        return cast(types.Duty, self.json("POST", there, json=_given(said | lists)))

    # --- the desk ---------------------------------------------------------------------------------------------------
    @operation("GET", "/projects/{project}/desk/")
    def desk(self) -> list[types.DeskDuty]:
        """What the token's owner can rate."""
        return cast(list[types.DeskDuty], self.json("GET", self.at("desk/")))

    @operation("POST", "/projects/{project}/desk/{duty}/take/")
    def take(self, duty: int) -> types.Assignment | None:
        """The item on the owner's desk, else the next one; None when nothing is left."""
        return cast("types.Assignment | None", self.json("POST", self.at("desk/{}/take/", duty), repeatable=True))

    @operation("POST", "/projects/{project}/desk/at/{key}/")
    def submit(self, key: str, answers: Sequence[types.Answer], *, seconds: float = 0.0) -> types.Annotation:
        """Hand an item in. The same key again returns what was stored."""
        said = {"answers": list(answers), "seconds": seconds}
        return cast(types.Annotation, self.json("POST", self.at("desk/at/{}/", key), json=said, repeatable=True))


def _given(said: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if value is not None}
