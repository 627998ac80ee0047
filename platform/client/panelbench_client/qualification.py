"""Guidelines, reference items, and how annotators stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from panelbench_client import types
from panelbench_client.connection import ServerConnection, operation


class QualificationMethods(ServerConnection):
    @operation("GET", "/projects/{project}/campaigns/{campaign}/qualification/")
    def qualification(self, campaign: int) -> types.QualificationRule:
        """What a campaign asks of its annotators. Raises `NotFound` where nothing was set."""
        there = self.at("campaigns/{}/qualification/", campaign)
        return cast(types.QualificationRule, self.json("GET", there))

    @operation("PUT", "/projects/{project}/campaigns/{campaign}/qualification/")
    def set_qualification(self, campaign: int, **rule: Any) -> types.QualificationRule:
        """Set what a campaign asks of its annotators: ``exam_items=10, threshold=0.7, control_rate=0.1`` and so on."""
        there = self.at("campaigns/{}/qualification/", campaign)
        return cast(types.QualificationRule, self.json("PUT", there, json=rule))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/guidelines/")
    def guidelines(self, campaign: int) -> list[types.Guideline]:
        """Every version of a campaign's guidelines, by language, newest first."""
        return cast(list[types.Guideline], self.json("GET", self.at("campaigns/{}/guidelines/", campaign)))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/guidelines/")
    def publish_guideline(
        self, campaign: int, *, language: str, text: str, examples: Sequence[Mapping[str, Any]] = ()
    ) -> types.Guideline:
        """Publish the next version in a language; annotators confirm it before their next item."""
        body = {"language": language, "text": text, "examples": [dict(example) for example in examples]}
        there = self.at("campaigns/{}/guidelines/", campaign)
        return cast(types.Guideline, self.json("POST", there, json=body))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/references/")
    def references(self, campaign: int) -> list[types.ReferenceItem]:
        """The reference items of a campaign with their scores."""
        return cast(list[types.ReferenceItem], self.json("GET", self.at("campaigns/{}/references/", campaign)))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/references/")
    def mark_references(self, campaign: int, references: Sequence[Mapping[str, Any]]) -> types.Marked:
        """Mark items for training, exams or controls: ``[{"item": "d1", "purpose": "exam", "scores": [...]}]``."""
        body = {"references": [dict(reference) for reference in references]}
        there = self.at("campaigns/{}/references/", campaign)
        return cast(types.Marked, self.json("POST", there, json=body))

    @operation("DELETE", "/projects/{project}/campaigns/{campaign}/references/{reference}/")
    def remove_reference(self, campaign: int, reference: int) -> None:
        """Unmark an item that nobody has answered."""
        self.send("DELETE", self.at("campaigns/{}/references/{}/", campaign, reference))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/standings/")
    def standings(self, campaign: int) -> list[types.Standing]:
        """How every annotator stands in every duty, by pseudonym."""
        return cast(list[types.Standing], self.json("GET", self.at("campaigns/{}/standings/", campaign)))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/standings/{duty}/{annotator}/mismatches/")
    def mismatches(self, campaign: int, duty: int, annotator: int) -> list[types.Mismatch]:
        """An annotator's answers to exams and controls that differ from their references, newest first."""
        there = self.at("campaigns/{}/standings/{}/{}/mismatches/", campaign, duty, annotator)
        return cast(list[types.Mismatch], self.json("GET", there))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/standings/{duty}/{annotator}/mismatches/")
    def decide_mismatch(
        self, campaign: int, duty: int, annotator: int, *, assignment: int, criterion: str, accept: bool, note: str = ""
    ) -> list[types.Mismatch]:
        """Accept a score that differs from its reference, or not; leads only."""
        body = {"assignment": assignment, "criterion": criterion, "accept": accept, "note": note}
        there = self.at("campaigns/{}/standings/{}/{}/mismatches/", campaign, duty, annotator)
        return cast(list[types.Mismatch], self.json("POST", there, json=body))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/standings/{duty}/{annotator}/reinstate/")
    def reinstate(self, campaign: int, duty: int, annotator: int, *, note: str = "") -> types.Standing:
        """Let a paused annotator work again; leads only."""
        there = self.at("campaigns/{}/standings/{}/{}/reinstate/", campaign, duty, annotator)
        return cast(types.Standing, self.json("POST", there, json={"note": note}))
