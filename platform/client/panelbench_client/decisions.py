"""Methods for what judges may be used for: thresholds, decisions and their history."""

from __future__ import annotations

from typing import Any, cast

from panelbench_client import types
from panelbench_client.connection import ServerConnection, operation


class DecisionMethods(ServerConnection):
    @operation("GET", "/projects/{project}/campaigns/{campaign}/decisions/")
    def decisions(
        self,
        campaign: int,
        *,
        judge: str | None = None,
        criterion: str | None = None,
        language: str | None = None,
        decision: str | None = None,
    ) -> types.Decisions:
        """What each judge may be used for in each criterion and language, with reasons and figures."""
        asked = {"judge": judge, "criterion": criterion, "language": language, "decision": decision}
        there = self.at("campaigns/{}/decisions/", campaign)
        return cast(
            types.Decisions,
            self.json("GET", there, params={name: text for name, text in asked.items() if text is not None}),
        )

    def wait_for_decisions(
        self, campaign: int, *, judge: str | None = None, timeout: float = 3600.0
    ) -> list[types.Decision]:
        """The decisions as things stand, once a worker has computed them. Raises `TimedOut`; `ValueError` without
        thresholds."""

        def fresh() -> types.Decisions | None:
            found = self.decisions(campaign, judge=judge)
            if found["thresholds"] is None:
                raise ValueError("No thresholds are declared: a lead declares them in the project's settings.")
            return None if found["stale"] else found

        found = self.wait(fresh, timeout=timeout, what=f"The decisions of campaign {campaign}")
        return cast(types.Decisions, found)["decisions"]

    @operation("GET", "/projects/{project}/campaigns/{campaign}/decisions/history/")
    def decision_history(self, campaign: int) -> list[types.DecisionChange]:
        """The changes of a campaign's decisions, newest first, each with why."""
        there = self.at("campaigns/{}/decisions/history/", campaign)
        return cast(list[types.DecisionChange], self.json("GET", there))

    @operation("GET", "/projects/{project}/thresholds/")
    def thresholds(self) -> list[types.Thresholds]:
        """Every version of the project's thresholds, the one that holds first."""
        return cast(list[types.Thresholds], self.json("GET", self.at("thresholds/")))

    @operation("POST", "/projects/{project}/thresholds/")
    def declare_thresholds(self, preset: types.PresetEnum, **changes: Any) -> types.Thresholds:
        """Declare a new version: ``experts``, ``skilled`` or ``crowd``, and what differs from it; for leads."""
        body = {"preset": preset, **changes}
        return cast(types.Thresholds, self.json("POST", self.at("thresholds/"), json=body, repeatable=True))
