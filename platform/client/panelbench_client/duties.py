"""Duties and campaigns while they are rated, and what is asked when they are done; qualification; taxonomies.

Qualification has guidelines, reference items, and how annotators stand. A taxonomy has rules, which make duties.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from panelbench_client import types
from panelbench_client.connection import ServerConnection, operation


class DutyMethods(ServerConnection):
    @operation("GET", "/projects/{project}/campaigns/{campaign}/duties/{duty}/")
    def duty_settings(self, campaign: int, duty: int) -> types.DutySettings:
        """Priority, deadline, quota and pause of a duty."""
        return cast(types.DutySettings, self.json("GET", self.at("campaigns/{}/duties/{}/", campaign, duty)))

    @operation("PUT", "/projects/{project}/campaigns/{campaign}/duties/{duty}/")
    def change_duty(
        self,
        campaign: int,
        duty: int,
        *,
        priority: int = 0,
        due_at: str | None = None,
        quota: int | None = None,
        paused: bool = False,
    ) -> types.DutySettings:
        """Set all of them; ``due_at`` by ISO 8601. People with items left are reminded two days before."""
        body = {"priority": priority, "due_at": due_at, "quota": quota, "paused": paused}
        there = self.at("campaigns/{}/duties/{}/", campaign, duty)
        return cast(types.DutySettings, self.json("PUT", there, json=body))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/duties/{duty}/annotators/")
    def add_annotators(self, campaign: int, duty: int, *, overlap: int, more: int = 1) -> types.HandedOut:
        """Let ``more`` annotators score each item; ``overlap`` is the number now, else it is refused."""
        there = self.at("campaigns/{}/duties/{}/annotators/", campaign, duty)
        return cast(types.HandedOut, self.json("POST", there, json={"overlap": overlap, "more": more}))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/duties/{duty}/return/")
    def return_items(self, campaign: int, duty: int, *, annotators: Sequence[str]) -> types.Returned:
        """Return the items that these annotators (pseudonyms) have in progress to the queue."""
        there = self.at("campaigns/{}/duties/{}/return/", campaign, duty)
        return cast(types.Returned, self.json("POST", there, json={"annotators": list(annotators)}))

    @operation("GET", "/projects/{project}/people/")
    def people(self) -> Iterator[types.Person]:
        """The people whose data the project has, by pseudonym; for leads."""
        return self.pages(self.at("people/"))

    @operation("POST", "/projects/{project}/people/{annotator}/removal/")
    def remove_person(
        self, annotator: int, *, typed: str, with_ratings: bool = False, with_account: bool = False
    ) -> types.Removed:
        """Remove a person's data; ``typed`` is their pseudonym, as a confirmation. It can't be undone. For leads."""
        body = {"typed": typed, "with_ratings": with_ratings, "with_account": with_account}
        return cast(types.Removed, self.json("POST", self.at("people/{}/removal/", annotator), json=body))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/questionnaire/")
    def closing_questionnaire(self, campaign: int) -> types.ClosingResults:
        """What annotators found hard, in groups of five people or more; for leads."""
        return cast(types.ClosingResults, self.json("GET", self.at("campaigns/{}/questionnaire/", campaign)))

    @operation("PUT", "/projects/{project}/campaigns/{campaign}/questionnaire/")
    def switch_questionnaire(self, campaign: int, *, asked: bool) -> types.ClosingResults:
        """Ask annotators the closing questions when they have finished, or no longer; answers are kept."""
        there = self.at("campaigns/{}/questionnaire/", campaign)
        return cast(types.ClosingResults, self.json("PUT", there, json={"asked": asked}))

    @operation("GET", "/projects/{project}/campaigns/{campaign}/rubric-changes/")
    def rubric_differences(self, campaign: int, version: int) -> list[types.ChangedCriterion]:
        """What differs between the campaign's version of the rubric and another one, with the ratings it touches."""
        there = self.at("campaigns/{}/rubric-changes/", campaign)
        return cast(list[types.ChangedCriterion], self.json("GET", there, params={"version": version}))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/rubric-changes/")
    def change_rubric(
        self,
        campaign: int,
        *,
        from_version: int,
        version: int,
        decisions: Mapping[str, Any] | None = None,
        qualify_again: bool = False,
    ) -> types.RubricChange:
        """Use a newer version, such as ``{"fluency": {"decision": "map", "scores": {"1": 2}}}``; for leads.

        ``qualify_again``: training and exam count only from now on. A large campaign is changed by a worker: its
        `finished_at` is None until then, and `job` is the job to look at.
        """
        body = {"from_version": from_version, "version": version, "decisions": dict(decisions or {})}
        body |= {"qualify_again": qualify_again}
        there = self.at("campaigns/{}/rubric-changes/", campaign)
        return cast(types.RubricChange, self.json("POST", there, json=body))

    @operation("POST", "/projects/{project}/campaigns/{campaign}/rubric-changes/{change}/undo/")
    def undo_rubric_change(self, campaign: int, change: int) -> types.RubricChange:
        """Go back to the former version, as long as nothing was rated under the new one; for leads."""
        there = self.at("campaigns/{}/rubric-changes/{}/undo/", campaign, change)
        return cast(types.RubricChange, self.json("POST", there))


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
