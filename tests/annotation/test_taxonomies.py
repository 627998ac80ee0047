"""Taxonomies: reading them, what their rules give to whom, and a campaign by the rules of the example."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from django.test import Client

from annotation import campaigns, panels, rubrics, selections, taxonomies
from annotation.models import (
    Assignment,
    Campaign,
    Criterion,
    Duty,
    ItemSelection,
    Panel,
    Rating,
    RubricVersion,
    Selection,
    Taxonomy,
)
from annotation.qualification import references
from annotation.readers import parse_taxonomy
from tests import make
from tests.annotation import scene
from tests.cast import Cast

STYLES = ("literature", "science")
SMALL = """
key: small
name: {en: Small}
source_language: en
tasks:
- {key: writing, name: Writing, tasks: [{key: letter, name: Letter}, {key: poem, name: Poem}]}
styles: [{key: plain, name: Plain}, {key: high, name: High}]
criteria:
- {key: must, name: Must, criteria: [fluency]}
- {key: more, name: More, criteria: [coherence]}
rules:
- {name: All, criteria: [must], panel: Readers, overlap: 3}
- {name: Poems, criteria: [more], panel: Readers, overlap: 2, tasks: [poem], styles: [high]}
"""
FAULTY = """key: x
name: X
source_language: en
colour: red
criteria:
- {key: g, name: G, criteria: [a, b]}
- {key: h, name: H, criteria: [b]}
tasks:
- {key: t, name: T}
- {key: t, name: T2}
rules:
- {criteria: [g], panel: P, overlap: 0}
- {criteria: [q], panel: P, overlap: 2, tasks: [tt], panl: x}
"""


def items(*cells: tuple[str, str], each: int = 2) -> list[Any]:
    """So many items of every (task, style)."""
    return [
        make.item_row(number, attributes={"task_type": task, "functional_style": style})
        for number, (task, style) in enumerate((cell for cell in cells for _copy in range(each)), 1)
    ]


def stored(cast: Cast, text: str) -> Taxonomy:
    document, problems = parse_taxonomy("t.yaml", text.encode())
    assert document, problems.sentences()
    return taxonomies.store_taxonomy(project=cast.kassa, document=document)


def panel_of(cast: Cast, name: str, people: int) -> Panel:
    """A panel with so many people of its own."""
    panel = panels.create(project=cast.kassa, name=name, language="et")
    for number in range(people):
        panels.seat(panel=panel, user=scene.member(cast, f"{name.split(maxsplit=1)[0]}{number}"))
    return panel


def slots(duty: Duty) -> Counter[tuple[str, tuple[str, ...]]]:
    """How many slots each item has for which criteria."""
    duty.refresh_from_db()
    rows = Assignment.objects.filter(duty=duty).values_list("item__external_id", "criteria_set")
    return Counter((item, tuple(duty.criteria_sets[number - 1])) for item, number in rows)


class TestReading:
    def test_every_fault_has_its_line(self) -> None:
        document, problems = parse_taxonomy("t.yaml", FAULTY.encode())
        said = problems.sentences()
        assert document is None
        assert [sentence.split(":")[0] for sentence in said] == [
            "t.yaml, line 4, colour",
            "t.yaml, line 10, tasks[2]",
            "t.yaml, line 6, criteria",
            "t.yaml, line 12, rules[1].overlap",
            "t.yaml, line 13, rules[2].panl",
            "t.yaml, line 13, rules[2].criteria",
            "t.yaml, line 13, rules[2].tasks",
        ]
        assert "panel (did you mean that?)" in said[4]

    def test_the_example_is_read_back_from_its_own_yaml(self) -> None:
        document, _none = parse_taxonomy("t.yaml", taxonomies.example_text("taxonomy"))
        assert document is not None
        assert parse_taxonomy("t.yaml", document.as_yaml().encode())[0] == document
        leaves = [task for task in document.task_paths().values() if not task[-1].children]
        assert (len(leaves), sum(len(group.criteria) for group in document.groups)) == (35, 68)


@pytest.mark.django_db
class TestApplying:
    def test_criteria_and_overlaps_by_item_in_one_duty_and_only_what_lacks_is_added(self, cast: Cast) -> None:
        cells = (("letter", "plain"), ("poem", "high"))
        campaign = make.campaign(cast.kassa, items=items(*cells, each=1))
        panel = panel_of(cast, "Readers", 2)
        taxonomy = stored(cast, SMALL)
        chosen = {"campaign": campaign, "taxonomy": taxonomy, "panels": {"Readers": [panel]}}
        plan = taxonomies.apply_rules(**chosen)
        duty = Duty.objects.get()
        assert (plan.assignments, plan.ratings, plan.duties[0].lacking, duty.overlap) == (6, 8, 1, 3)
        assert slots(duty) == {
            ("d1", ("fluency",)): 3,
            ("d2", ("fluency", "coherence")): 2,
            ("d2", ("fluency",)): 1,
        }
        assert taxonomies.apply_rules(**chosen).assignments == 0  # as by a double click
        more = stored(cast, SMALL.replace("overlap: 2", "overlap: 3"))
        plan = taxonomies.apply_rules(**{**chosen, "taxonomy": more})
        assert slots(duty)["d2", ("coherence",)] == 1 == plan.assignments
        fewer = stored(cast, SMALL.replace("overlap: 3", "overlap: 1"))
        plan = taxonomies.apply_rules(**{**chosen, "taxonomy": fewer})
        assert (plan.assignments, plan.beyond, Assignment.objects.count()) == (0, 2, 7)

    def test_a_criterion_for_items_that_were_given_before_makes_a_duty_of_its_own(self, cast: Cast) -> None:
        campaign = make.campaign(cast.kassa, items=items(("letter", "plain")))
        panel = panel_of(cast, "Readers", 3)
        chosen = {"campaign": campaign, "panels": {"Readers": [panel]}}
        taxonomies.apply_rules(**chosen, taxonomy=stored(cast, SMALL))
        changed = SMALL.replace("tasks: [poem], styles: [high]", "tasks: [writing]")
        plan = taxonomies.apply_rules(**chosen, taxonomy=stored(cast, changed))
        assert [(duty.name, list(duty.criteria)) for duty in plan.duties] == [("Readers", ["coherence"])]
        assert list(Duty.objects.order_by("pk").values_list("name", flat=True)) == ["Readers", "Readers 2"]
        assert taxonomies.apply_rules(**chosen, taxonomy=stored(cast, changed)).assignments == 0

    def test_what_a_lead_should_know_before(self, cast: Cast) -> None:
        cells = (("letter", "plain"), ("sonnet", "plain"), ("poem", "high"))
        campaign = make.campaign(cast.kassa, items=items(*cells))
        panel = panel_of(cast, "Readers", 3)
        text = SMALL.replace("panel: Readers, overlap: 3", "panel: Readers, overlap: 3, tasks: [writing]")
        text += "- {name: Again, criteria: [fluency], panel: readers, overlap: 1, tasks: [poem]}\n"
        text += "- {name: Nothing, criteria: [must], panel: Nobody, overlap: 1, tasks: [letter], styles: [high]}\n"
        taxonomy = stored(cast, text.replace("[coherence]", "[coherence, unheard]"))
        named = taxonomies.panels_for(parse_taxonomy("t", text.encode())[0], [panel])
        plan = taxonomies.apply_rules(campaign=campaign, taxonomy=taxonomy, panels=named)
        assert (plan.unmatched, plan.unknown_tasks, plan.missing_panels) == (2, [("sonnet", 2)], ["Nobody"])
        assert plan.twice == {("All", "Again"): 2}
        assert [rule.name for rule in plan.without_items] == ["Nothing"]
        assert plan.unknown_criteria == ["unheard"]
        assert plan.assignments == 2 * 3 + 2 * 3

    def test_a_drawn_selection_keeps_its_probabilities(self, cast: Cast) -> None:
        campaign = make.campaign(cast.kassa, items=items(("letter", "plain"), ("poem", "high"), each=4))
        panel = panel_of(cast, "Readers", 3)
        rule = {"kind": "draw", "n": 1, "by": ["attribute:task_type"]}
        chosen = {"campaign": campaign, "taxonomy": stored(cast, SMALL), "panels": {"Readers": [panel]}}
        taxonomies.apply_rules(**chosen, selection=selections.select(campaign=campaign, name="S", rule=rule, seed=1))
        assert set(Selection.objects.values_list("probability", "stratum")) == {(0.25, "letter"), (0.25, "poem")}
        assert taxonomies.apply_rules(**chosen).duties[0].items == 6  # the others, in a duty of their own
        assert Duty.objects.count() == 2


@pytest.mark.django_db
class TestCampaignOfTheExample:
    """Three panels and a crowd, as study S2 has them: everything through HTTP."""

    @pytest.fixture
    def campaign(self, cast: Cast) -> Campaign:
        browser = cast.client("aino")
        base = f"/p/{cast.kassa.slug}"
        browser.post(f"{base}/taxonomies/example/")
        rubrics.publish(version=RubricVersion.objects.get())
        cells = (("Literary text", "literature"), ("summary", "science"))
        return campaigns.open_campaign(
            project=cast.kassa,
            name="S2",
            dataset=make.dataset(cast.kassa, items(*cells, each=1)),
            rubric_version=RubricVersion.objects.get(),
        )

    def test_from_the_rules_to_a_critical_mark_that_stops_the_rest(self, cast: Cast, campaign: Campaign) -> None:
        browser, address = cast.client("aino"), f"/p/{cast.kassa.slug}/campaigns/{campaign.pk}/duties/by-rules/"
        taxonomy = Taxonomy.objects.get()
        without_panels = browser.get(address, {"taxonomy": taxonomy.pk}).content.decode()
        assert "Nothing would be added." in without_panels and "have all that the rules ask for" not in without_panels
        for name, people in (("Crowd", 4), ("Editing", 2), ("Literature", 2), ("Science et", 2)):
            panel_of(cast, name, people)
        page = browser.get(address, {"taxonomy": taxonomy.pk})
        plan = page.context["plan"]
        counts = {duty.panel.name: (duty.items, duty.assignments, duty.lacking) for duty in plan.duties}
        assert counts == {"Crowd": (2, 10, 1), "Editing": (2, 4, 0), "Literature": (1, 2, 0), "Science et": (1, 2, 0)}
        assert "1 more needed" in page.content.decode()
        assert not Duty.objects.exists()
        posted = dict(page.context["form"].data.lists())
        for _click in range(2):
            assert browser.post(address, posted).status_code == 302
        assert (Duty.objects.count(), Assignment.objects.count()) == (4, 18)
        self._stop_and_score(cast, Duty.objects.get(panel__name="Crowd"))

    def _stop_and_score(self, cast: Cast, duty: Duty) -> None:
        """Four of the crowd score both items: three are asked about everything, the fourth only for critical marks."""
        asked = []
        for number in range(4):
            browser = Client()
            browser.force_login(duty.panel.annotators.order_by("pk")[number].user)
            for _item in range(2):
                there = scene.next_page(browser, duty)
                criteria = {row.key: row for row in browser.get(there).context["desk"]["criteria"]}
                marked = {f"score-{key}": "1" if number == 0 and key == "no-answer" else "0" for key in criteria}
                full = marked | {f"score-{key}": "2" for key in criteria if key not in ("unusable-form", "no-answer")}
                stops = {"score-unusable-form": "0", "score-no-answer": "1"}
                answer = browser.post(f"{there}submit/", {**(stops if number == 0 else full), "seconds": "30"})
                assert answer.status_code in (302, 307), answer.content
                asked.append(len(criteria))
        assert asked == [11, 11, 11, 11, 11, 11, 2, 2]
        stopped = Rating.objects.filter(annotation__assignment__duty=duty, status="stopped")
        assert stopped.count() == 2 * 9
        per_criterion = Counter(Rating.objects.values_list("criterion__key", flat=True))
        assert (per_criterion["no-answer"], per_criterion["natural-speech"]) == (8, 6)
        assert Criterion.objects.filter(key="no-answer").get().is_critical

    def test_the_api_counts_creates_and_keeps_a_version_in_use(self, cast: Cast, campaign: Campaign) -> None:
        crowd = panel_of(cast, "People", 2)
        browser, base = cast.client("boris"), f"/api/v1/projects/{cast.kassa.slug}"
        taxonomy = Taxonomy.objects.get()
        body = {"taxonomy": taxonomy.pk, "panels": {"Crowd": [crowd.pk]}, "preview": True}
        address = f"{base}/campaigns/{campaign.pk}/duties/by-rules/"
        counted = browser.post(address, body, content_type="application/json").json()
        assert (counted["assignments"], counted["duties"][0]["lacking"], Duty.objects.count()) == (10, 3, 0)
        made = browser.post(address, {**body, "preview": False}, content_type="application/json").json()
        assert made["assignments"] == 10 == Assignment.objects.count()
        there = f"{base}/taxonomies/{taxonomy.pk}/"
        text = browser.get(there).json()["yaml"]
        assert browser.delete(there).status_code == 409
        again = browser.post(f"{base}/taxonomies/", {"yaml": text}, content_type="application/json")
        assert (again.status_code, again.json()["number"]) == (201, 1)
        wrong = browser.post(f"{base}/taxonomies/", {"yaml": FAULTY}, content_type="application/json")
        assert wrong.status_code in (409, 422) and "line 12, rules[1].overlap" in wrong.json()["fields"]["yaml"][0]
        unknown = browser.post(address, {**body, "panels": {"Crowd": [10**9]}}, content_type="application/json")
        assert unknown.status_code in (409, 422)


def test_a_control_asks_for_the_criteria_of_an_ordinary_item() -> None:
    """It would be known by a set of criteria that no other item has."""
    sets = [["a", "b", "c"], ["a", "b"], ["c", "d"]]
    assert references.closest_set(sets, {"a"}) == 2
    assert references.closest_set(sets, {"a", "c"}) == 1
    assert references.closest_set(sets, {"b", "d"}) == 2, "none has both: one of the smallest with one of them"
    assert references.closest_set(sets, {"a", "b", "c", "d"}) == 1
    assert references.closest_set([], {"a"}) == 0


@pytest.mark.django_db
def test_a_rule_draws_a_sample_of_its_items(cast: Cast) -> None:
    """In the YAML, counted before, stored with its seed and probabilities, and drawn once."""
    campaign = make.campaign(cast.kassa, items=items(("letter", "plain"), ("poem", "high"), each=4))
    panel_of(cast, "Readers", 3)
    browser, base = cast.client("aino"), f"/api/v1/projects/{cast.kassa.slug}"
    sampled = SMALL.split("- {name: Poems", maxsplit=1)[0]
    sampled += "- {name: Twice, criteria: [more], panel: Readers, overlap: 2, sample: {n: 3, by: [task], seed: 5}}\n"
    sampled += "- {name: Once, criteria: [must], panel: Readers, overlap: 1, sample: {n: 1}}\n"
    first = browser.post(f"{base}/taxonomies/", {"yaml": sampled}, content_type="application/json").json()
    text = browser.get(f"{base}/taxonomies/{first['id']}/").json()["yaml"]
    again = browser.post(f"{base}/taxonomies/", {"yaml": text}, content_type="application/json").json()
    assert again["id"] == first["id"], "the same document"
    rules_page = browser.get(f"/p/{cast.kassa.slug}/taxonomies/{first['id']}/").content.decode()
    assert "/ task" in rules_page and "Sample" in rules_page
    address = f"{base}/campaigns/{campaign.pk}/duties/by-rules/"
    body = {"taxonomy": first["id"], "seed": 9}
    counted = browser.post(address, {**body, "preview": True}, content_type="application/json").json()
    strata = [(one["name"], one["available"], one["chosen"]) for one in counted["samples"][0]["strata"]]
    assert strata == [("letter", 4, 3), ("poem", 4, 3)] and counted["samples"][0]["seed"] == 5
    assert not ItemSelection.objects.exists()
    page = browser.get(f"/p/{cast.kassa.slug}/campaigns/{campaign.pk}/duties/by-rules/", {"taxonomy": first["id"]})
    assert "Sample of “Twice”" in page.content.decode() and "3 items of every task_type" in page.content.decode()
    for click, assignments in enumerate((8 * 3 + 6 * 2, 0)):
        made = browser.post(address, body, content_type="application/json").json()
        assert made["assignments"] == assignments, click
    stored_draw = ItemSelection.objects.get()  # "Once" gives nothing that "All" does not give every item
    assert (stored_draw.seed, stored_draw.rule["n"], made["samples"][0]["selection"]) == (5, 3, stored_draw.pk)
    duty = Duty.objects.get(name="Readers: Twice")
    assert duty.chosen == stored_draw and set(duty.criteria.values_list("key", flat=True)) == {"coherence"}
    assert set(duty.selections.values_list("probability", "stratum")) == {(0.75, "letter"), (0.75, "poem")}
    assert set(Duty.objects.get(name="Readers").selections.values_list("probability", flat=True)) == {1.0}
    there = f"/p/{cast.kassa.slug}/selections/{stored_draw.pk}/"
    assert "3 items of every task_type, at random." in browser.get(there).content.decode()


@pytest.mark.django_db
def test_samples_that_would_bias_each_other_and_faulty_ones_are_refused(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa, items=items(("letter", "plain"), each=4))
    panel_of(cast, "Readers", 3)
    browser, base = cast.client("aino"), f"/api/v1/projects/{cast.kassa.slug}"
    rule = "- {{name: {0}, criteria: [more], panel: Readers, overlap: 2, sample: {1}}}\n"
    address = f"{base}/campaigns/{campaign.pk}/duties/by-rules/"
    both = [rule.format("A", "{n: 1, seed: 1}"), rule.format("B", "{n: 2, seed: 1}")]
    for rules, sentence in ((both, "draw different samples"), ([rule.format("A", "{n: 1, by: [colour]}")], "colour")):
        text = SMALL.split("- {name: All", maxsplit=1)[0] + "".join(rules)
        made = browser.post(f"{base}/taxonomies/", {"yaml": text}, content_type="application/json").json()
        refused = browser.post(address, {"taxonomy": made["id"]}, content_type="application/json")
        assert refused.status_code in (409, 422) and sentence in refused.json()["detail"], refused.content
        page = browser.get(f"/p/{cast.kassa.slug}/campaigns/{campaign.pk}/duties/by-rules/", {"taxonomy": made["id"]})
        assert sentence in page.content.decode()
    for sample in ("{n: 0}", "{by: [task]}", "{n: 2, unit: word}", "{n: true}", "{n: 2, seed: -1}", "[1]"):
        text = SMALL.split("- {name: All", maxsplit=1)[0] + rule.format("A", sample)
        assert parse_taxonomy("t.yaml", text.encode())[0] is None, sample
