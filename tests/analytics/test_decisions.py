"""May a judge be used: thresholds, the decisions on page, API, command, client and webhook, and how they change."""

from __future__ import annotations

import html
import json
import random
import re
from collections.abc import Iterable
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from accounts import webhooks
from accounts.models import AuditEntry, Delivery, Event
from accounts.refusals import Refused
from analytics import latex_tables, tasks
from analytics.answers import snapshots
from analytics.exporting import shares
from analytics.judges import decisions, thresholds
from analytics.judges.compared_judges import ItemCosts
from analytics.judges.reasons import CellDecision
from analytics.models import Computation, GateDecision, GateThresholds, Snapshot
from analytics.questions.question import NumbersQuestion, Settings
from analytics.reports import content
from analytics.reports import files as report_files
from analytics.stats.planning.gate import Decision
from annotation import pay
from annotation.imports import storage
from annotation.models import Campaign, Import
from annotation.readers.ratings import RatingRow
from judging.models import Attempt, Call, Judge, JudgeRun, Verdict
from tests import make
from tests.analytics import scene
from tests.annotation import scene as desk_scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db
RATED, UNRATED = 60, 60
POINTS = range(5)
GENERATORS = ("atlas", "borea", "cirrus", "delta")
MEAN = {"atlas": 0.4, "borea": 1.4, "cirrus": 2.4, "delta": 3.4}


def truths() -> list[int]:
    """The quality of each item: generators differ by a point."""
    draw = random.Random(5)
    found = []
    for number in range(RATED + UNRATED):
        mean = MEAN[GENERATORS[number % len(GENERATORS)]]
        found.append(min(4, max(0, round(mean + draw.gauss(0, 0.6)))))
    return found


def near(value: float, spread: float, draw: random.Random) -> float:
    return float(min(4, max(0, round(value + draw.gauss(0, spread)))))


def rated_campaign(
    cast: Cast, *, panel: str = "agrees", rated: int = RATED, very_different_lengths: bool = False
) -> Campaign:
    """120 Estonian items by four generators, of which three people rated the first 60.

    ``panel`` "agrees": they see the quality of an item, within a point; "guesses": they do not look at it.
    ``very_different_lengths``: from one to 81 sentences, so that the interval of the length audit is narrow.
    """
    items = [
        make.item_row(number + 1, generator=GENERATORS[number % len(GENERATORS)], external_id=f"d{number:03}")
        for number in range(RATED + UNRATED)
    ]
    if very_different_lengths:
        for number, item in enumerate(items):
            item.turns[1]["text"] = "Palun oodake veidi. " * 3 ** (number % 5)
    campaign = make.campaign(cast.kassa, items=items, name="Round 1")
    rubric = make.rubric(cast.kassa, make.criterion("tone", tuple(POINTS)), key="gate")
    Campaign.objects.filter(pk=campaign.pk).update(rubric_version=rubric)
    campaign = Campaign.objects.select_related("project", "dataset", "rubric_version__rubric").get(pk=campaign.pk)
    rate(campaign, range(rated), panel=panel)
    return campaign


def rate(campaign: Campaign, places: Iterable[int], *, panel: str = "agrees") -> None:
    """What three people say of the items at these places; it is the same whenever they are asked."""
    draw = random.Random(7)
    scores = [
        [near(truth, 0.7, draw) if panel == "agrees" else float(draw.choice(POINTS)) for truth in truths()]
        for _person in range(3)
    ]
    rows = [
        RatingRow(f"d{place:03}", name, "tone", given[place], True, False, "", None, None, None, "ratings.csv", line)
        for name, given in zip(("mari", "jaan", "tiit"), scores, strict=True)
        for line, place in enumerate(places, start=2)
    ]
    opened = Import.objects.create(project=campaign.project, kind=Import.Kind.RATINGS)
    storage.store_ratings(campaign=campaign, rows=rows, file_import=opened)


def judged(campaign: Campaign, name: str, scores: list[float], *, repeats: int = 2, flips: int = 0) -> JudgeRun:
    """A run of a judge that gives these scores in every repeat, but for the first ``flips`` items in the last one."""
    judge, _is_new = Judge.objects.get_or_create(
        project=campaign.project, name=name, defaults={"digest": name, "model": name}
    )
    run = JudgeRun.objects.create(
        project=campaign.project, judge=judge, dataset=campaign.dataset, rubric_version=campaign.rubric_version,
        repeats=repeats,
    )  # fmt: skip
    criterion = campaign.rubric_version.criteria.get()
    Verdict.objects.bulk_create(
        Verdict(
            run=run, item=item, criterion=criterion, repeat=repeat, status="ok",
            score=(score + 1) % 5 if repeat == repeats and repeats > 1 and place < flips else score,
        )
        for repeat in range(1, repeats + 1)
        for place, (item, score) in enumerate(zip(campaign.dataset.items.order_by("ordinal"), scores, strict=True))
    )  # fmt: skip
    return run


def exact() -> list[float]:
    return [float(truth) for truth in truths()]


def lenient() -> list[float]:
    """A point too high: biased, but it follows the quality."""
    return [float(min(4, truth + 1)) for truth in truths()]


def guessing() -> list[float]:
    draw = random.Random(11)
    return [float(draw.choice(POINTS)) for _ in truths()]


def declared(cast: Cast, preset: str = "crowd", **changes: Any) -> GateThresholds:
    """Thresholds that a judge without a fault can pass with the replies of these campaigns."""
    changes = {"readable": 0.95, **changes}
    return thresholds.declare_thresholds(project=cast.kassa, preset=preset, changes=changes, actor=cast.aino)


def text(content: bytes) -> str:
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", content.decode()).split()))


def uses(campaign: Campaign) -> dict[str, str]:
    return {cell.row["judge"]: cell.use.value for cell in decisions.decide_now(campaign).cells}


class TestDecisions:
    def test_decisions_of_judges_whose_worth_is_known(self, cast: Cast) -> None:
        """Exact: sees the quality itself. Unsteady: the same, but a fifth of its scores change. Lenient: a point too
        high. Once: exact, never asked again. Guessing: does not look."""
        campaign = rated_campaign(cast)
        declared(cast)
        judged(campaign, "Exact", exact())
        judged(campaign, "Unsteady", exact(), flips=24)
        judged(campaign, "Lenient", lenient())
        judged(campaign, "Once", exact(), repeats=1)
        judged(campaign, "Guessing", guessing())
        assert uses(campaign) == {
            "Exact": "judge_alone",
            "Unsteady": "judge_with_correction",
            "Lenient": "judge_with_correction",
            "Once": "judge_with_correction",
            "Guessing": "humans_only",
        }
        cells = {cell.row["judge"]: cell for cell in decisions.decide_now(campaign).cells}
        assert all(1 <= len(cell.reasons) <= 3 for cell in cells.values())
        assert "20.0% [13.7%, 28.2%] of its scores" in " ".join(cells["Unsteady"].reasons)
        assert "Repeats: not run" in " ".join(cells["Once"].reasons)
        assert "Its bias is" in " ".join(cells["Lenient"].reasons)
        assert [remedy.sentence for remedy in cells["Once"].remedies] == ["Run the judge with three repeats."]
        offered = {}
        for name, cell in cells.items():
            page = text(cast.client("aino").get(f"/p/kassa/numbers/{campaign.pk}/judges/", {"judge": name}).content)
            offered[name] = "repeats" in [remedy.action for remedy in cell.remedies]
            assert "Where to use judges" in page and "May I use this judge" not in page
        assert offered == {name: name == "Once" for name in cells}, "all is judged; only one lacks repeats"
        assert cells["Exact"].remedies == []
        agreement = next(row for row in cells["Exact"].conditions if row.name == "rubric_problem")
        assert "; AC with quadratic weights " in agreement.sentence
        states = {condition.name: condition.state for condition in cells["Once"].conditions}
        assert states["flip_rate"] == "not_run" and states["bias"] == "holds"

    def test_too_few_items_and_a_panel_that_guesses(self, cast: Cast) -> None:
        campaign = rated_campaign(cast, rated=29)
        declared(cast)
        judged(campaign, "Exact", exact())
        (cell,) = decisions.decide_now(campaign).cells
        assert cell.use.value == "insufficient" and cell.row["n_items"] == 29
        assert [remedy.sentence for remedy in cell.remedies] == ["2 more labels: 1 more item with two raters."]

    def test_nobody_agrees(self, cast: Cast) -> None:
        campaign = rated_campaign(cast, panel="guesses")
        declared(cast)
        judged(campaign, "Exact", exact())
        (cell,) = decisions.decide_now(campaign).cells
        assert cell.use.value == "rubric_problem"
        assert cell.remedies[0].group == "rubric"

    def test_the_names_of_decisions_are_those_of_the_gate(self) -> None:
        assert GateDecision.Use.values == [use.value for use in Decision]
        known = {
            name for constraint in GateDecision._meta.constraints for name in re.findall(r"'(\w+)'", str(constraint))
        }
        assert {use.value for use in Decision} <= known


class TestStale:
    def test_a_newer_rubric_a_changed_prompt_and_another_model_make_it_stale(self, cast: Cast) -> None:
        campaign = rated_campaign(cast)
        declared(cast)
        run = judged(campaign, "Exact", exact())
        assert uses(campaign) == {"Exact": "judge_alone"}
        criterion = make.criterion("tone", tuple(POINTS), question={"en": "How is the tone?"})
        make.rubric(cast.kassa, criterion, key="gate")
        current = decisions.current_decisions(campaign)
        assert current is not None and current.is_stale
        (cell,) = decisions.decide_now(campaign).cells
        assert cell.use.value == "stale" and cell.otherwise == "Judge alone"
        assert cell.reasons[0] == "The rubric has a newer version: 2 instead of 1."
        Judge.objects.filter(pk=run.judge_id).update(provider="sim", digest="of another wording")
        (cell,) = decisions.decide_now(campaign).cells
        assert "wording of the prompts" in cell.reasons[1]
        history = [(change.former, change.use.label) for change in decisions.decision_history(campaign)]
        assert history == [("Judge alone", "Must be measured again"), ("", "Judge alone")]

    def test_words_for_what_is_measured_on_too_few_items(self, cast: Cast) -> None:
        limits = declared(cast)
        bias = {"statistic": "bias", "value": 0.0, "interval_reason": "every unit gives the same value", "n_items": 12}
        flips = {"statistic": "flip_rate", "value": 0.0, "n_items": 1}
        lacking = {"holds": False, "measured": False, "gap": 1.0, "more": None}
        findings = [
            {"name": name, "figures": [figure], **lacking} for name, figure in (("bias", bias), ("flip_rate", flips))
        ]
        about = {"criterion": "tone", "language": "et", "margin": 0.4, "n_unrated": 0, "changes": []}
        cell = CellDecision({**about, "decision": "humans_only", "findings": findings}, limits)
        assert "1 item has repeats; 30 are needed" in cell.conditions[1].sentence
        known = [remedy.sentence for remedy in cell.remedies]
        assert any("30 clusters" in sentence for sentence in known)
        assert not any("needs an ordered scale" in sentence for sentence in known)

    @pytest.mark.parametrize("decision", ["judge_alone", "judge_with_correction", "ranking_only", "humans_only"])
    def test_no_decision_is_certain_where_it_is_not_whether_the_raters_agree(self, cast: Cast, decision: str) -> None:
        def finding(name: str, holds: bool, certain: bool) -> dict[str, Any]:
            figure = {"statistic": name, "value": 0.24, "low": -0.03, "high": 0.51, "n_items": 40, "n_raters": 3}
            about = {"name": name, "holds": holds, "certain": certain, "measured": True, "gap": 0.5, "more": None}
            return {**about, "figures": [figure], "too_many": None}

        met = decision == "judge_alone"
        findings = [
            finding("rubric_problem", False, False), finding("bias", met, True), finding("verbosity", met, met),
            finding("ppi_gain", decision == "judge_with_correction", True), finding("tau_b", False, True),
        ]  # fmt: skip
        about = {"criterion": "tone", "language": "et", "margin": 0.225, "n_unrated": 0, "changes": []}
        cell = CellDecision({**about, "decision": decision, "findings": findings}, declared(cast))
        assert cell.state == "not_certain" and "The raters agree" in cell.why_not_certain
        assert "Length does not move it" not in cell.why_not_certain  # the bias stands against it anyway
        findings[0] |= {"certain": True}
        assert CellDecision({**about, "decision": decision, "findings": findings}, declared(cast)).state == "certain"

    @pytest.mark.parametrize(
        ("decision", "bias", "verbosity", "state"),
        [
            ("judge_alone", (True, True), (False, False), "not_certain"),  # .24 [-.03, .51] of a margin of .225
            ("judge_alone", (True, True), (True, True), "certain"),
            ("judge_with_correction", (False, False), (False, False), "not_certain"),
            ("judge_with_correction", (False, True), (False, False), "certain"),  # the bias stands against it anyway
        ],
    )
    def test_a_decision_is_not_certain_where_only_wide_intervals_are_between_it_and_another(
        self, cast: Cast, decision: str, bias: tuple[bool, bool], verbosity: tuple[bool, bool], state: str
    ) -> None:
        def finding(name: str, holds: bool, certain: bool, **more: Any) -> dict[str, Any]:
            figure = {"statistic": name, "value": 0.24, "low": -0.03, "high": 0.51, "n_items": 40, "n_raters": 3}
            about = {"name": name, "holds": holds, "certain": certain, "measured": True, "gap": 0.5, "more": None}
            return {**about, "figures": [figure], "too_many": None, **more}

        findings = [
            finding("alt_test", True, True), finding("bias", *bias), finding("flip_rate", True, True),
            finding("verbosity", *verbosity, prevents=verbosity == (False, True)), finding("ppi_gain", True, True),
        ]  # fmt: skip
        about = {"criterion": "tone", "language": "et", "margin": 0.225, "n_unrated": 0, "changes": []}
        cell = CellDecision({**about, "decision": decision, "findings": findings}, declared(cast))
        assert cell.state == state
        states = {condition.name: condition.state_name for condition in cell.conditions}
        assert states["verbosity"] == ("met" if verbosity[0] else "not certain")
        assert ("Not certain: " in cell.why_not_certain) is (state == "not_certain")
        if verbosity == (False, False) and decision == "judge_alone":
            assert "Length does not move it" in cell.why_not_certain
            assert "the interval reaches beyond ±0.225" in " ".join(cell.reasons)

    def test_words_for_labels_that_would_not_help_and_for_too_few_generators(self, cast: Cast) -> None:
        lacking = {"holds": False, "measured": True, "gap": 1.0, "more": None, "figures": []}
        findings = [{"name": "alt_test", **lacking, "too_many": 500}, {"name": "tau_b", **lacking, "measured": False}]
        about = {"criterion": "tone", "language": "et", "margin": 0.4, "n_unrated": 0, "changes": []}
        generators = {"n_generators": 1, "fewest_generators": 3}
        cell = CellDecision({**about, **generators, "decision": "humans_only", "findings": findings}, declared(cast))
        first, second = (remedy.sentence for remedy in cell.remedies)
        assert first.startswith("More labels are unlikely to help with: Alternative annotator test. ")
        assert first.endswith("It would take more than 500 more items.")
        assert second == "Items of more generators: a ranking needs at least 3; this cell has 1."
        assert cell.conditions[1].sentence == "A ranking needs at least 3 generators; this cell has 1."

    def test_too_few_items_say_which_have_no_score_by_the_judge_and_why(self, cast: Cast) -> None:
        """Of 60 items with three raters, the judge was asked about 32: one reply is unreadable, one call failed, and
        two were refused."""
        campaign = rated_campaign(cast)
        declared(cast)
        run = judged(campaign, "Exact", exact())
        of_items = Verdict.objects.filter(run=run)
        ids = [f"d{place:03}" for place in range(RATED)]
        of_items.exclude(item__external_id__in=ids[:31]).delete()
        of_items.filter(item__external_id=ids[0]).update(status="unparsed", score=None)
        of_items.filter(item__external_id__in=ids[1:3]).update(status="refused", score=None)
        Call.objects.create(run=run, item=run.dataset.items.get(external_id=ids[31]), state=Call.State.FAILED)
        (cell,) = decisions.decide_now(campaign).cells
        assert cell.row["unscored"] == {"failed": 1, "not_asked": 28, "refused": 2, "unparsed": 1}
        assert cell.reasons[0].startswith("Only 28 items have two raters and a score by the judge; 30 are needed. ")
        assert cell.reasons[0].endswith(
            "32 more items with two raters have no score by the judge: "
            "call failed 1, not asked 28, refused 2, unreadable 1."
        )
        (remedy,) = cell.remedies
        assert remedy.sentence == "Run the judge on the 28 items that have two raters and that it was not asked about."

    def test_a_judge_whose_stored_name_ends_in_a_space_has_decisions(self, cast: Cast) -> None:
        campaign = rated_campaign(cast)
        declared(cast)
        judged(campaign, "Exact ", exact())
        assert uses(campaign) == {"Exact": "judge_alone"}

    def test_another_served_model_is_noticed(self, cast: Cast) -> None:
        campaign = rated_campaign(cast)
        declared(cast)
        run = judged(campaign, "Exact", exact())
        self._served(run, "m-1")
        assert uses(campaign) == {"Exact": "judge_alone"}
        later = JudgeRun.objects.create(
            project=cast.kassa, judge=run.judge, dataset=make.dataset(cast.kassa, 1, name="Other"),
            rubric_version=run.rubric_version,
        )  # fmt: skip
        item = later.dataset.items.get()
        Verdict.objects.create(
            run=later, item=item, criterion=run.rubric_version.criteria.get(), status="ok", score=1,
            attempt=self._attempt(later, item, "m-2"),
        )  # fmt: skip
        (cell,) = decisions.decide_now(campaign).cells
        assert cell.use.value == "stale"
        assert cell.reasons[0] == "The endpoint now answers with another model: m-2 instead of m-1."

    def test_replies_used_again_do_not_say_that_the_model_is_as_it_was(self, cast: Cast) -> None:
        campaign = rated_campaign(cast)
        declared(cast)
        run = judged(campaign, "Exact", exact())
        self._served(run, "m-1")
        items = list(run.dataset.items.order_by("ordinal")[1:3])
        self._attempt(judged(campaign, "Exact", exact()), items[0], "m-2")
        third = judged(campaign, "Exact", exact())
        self._served(third, "m-1", outcome="reused")
        self._attempt(third, items[1], "", outcome="refused")
        (cell,) = decisions.decide_now(campaign).cells
        assert cell.use.value == "stale" and "m-2 instead of m-1" in cell.reasons[0]
        assert "pay again" in cell.remedies[0].sentence

    def test_failed_calls_count_among_those_that_cannot_be_read(self, cast: Cast) -> None:
        campaign = rated_campaign(cast)
        declared(cast)
        run = judged(campaign, "Exact", exact(), repeats=2)
        assert uses(campaign) == {"Exact": "judge_alone"}
        before = thresholds.changes_digest(campaign, [run])
        lost = list(run.dataset.items.order_by("ordinal")[:28])
        Verdict.objects.filter(run=run, item__in=lost[1:]).delete()
        calls = [Call(run=run, item=item, repeat=repeat, state="failed") for item in lost for repeat in (1, 2)]
        Call.objects.bulk_create(calls)  # compound ones; the first item still has its verdicts
        assert thresholds.changes_digest(campaign, [run]) != before
        (cell,) = decisions.decide_now(campaign).cells
        assert cell.use.value != "judge_alone"
        (readable,) = (each for each in cell.conditions if each.name == "readable")
        assert (readable.state, readable.figures[0].value) == ("fails", pytest.approx(93 / 120))

    def _served(self, run: JudgeRun, model: str, *, outcome: str = "replied") -> None:
        verdict = run.verdicts.order_by("-pk").first()
        assert verdict is not None
        Verdict.objects.filter(pk=verdict.pk).update(attempt=self._attempt(run, verdict.item, model, outcome=outcome))

    def _attempt(self, run: JudgeRun, item: Any, model: str, *, outcome: str = "replied") -> Attempt:
        call = Call.objects.create(run=run, item=item, state=Call.State.SETTLED)
        return Attempt.objects.create(call=call, number=1, outcome=outcome, served_model=model)

    def test_a_late_or_returning_computation_is_not_taken_for_the_newest(self, cast: Cast) -> None:
        """A worker begins at the first state and stores after the second is decided; then the second is taken back."""
        campaign = rated_campaign(cast)
        asked = decisions.settings_of(declared(cast))
        judged(campaign, "Exact", exact())
        assert uses(campaign) == {"Exact": "judge_alone"}
        early = snapshots.snapshot(campaign=campaign, settings=asked)
        later = judged(campaign, "Exact", guessing())
        assert uses(campaign) == {"Exact": "humans_only"}
        Snapshot.objects.filter(pk=early.pk).delete()
        early.pk = None
        early.save(force_insert=True)  # the late worker's
        decisions.record_changes(early)
        lead, there = cast.client("aino"), f"/api/v1/projects/kassa/campaigns/{campaign.pk}/decisions/"
        self._shows(lead.get(there).json(), "humans_only")
        assert [change.use.value for change in decisions.decision_history(campaign)] == ["humans_only", "judge_alone"]
        assert decisions.to_be_decided(campaign) is None
        Verdict.objects.filter(run=later).delete()
        JudgeRun.objects.filter(pk=later.pk).update(state=JudgeRun.State.CANCELLED)
        self._shows(lead.get(there).json(), "judge_alone")
        scene.compute(campaign, decisions.to_be_decided(campaign))  # as the sweep does
        assert decisions.decision_history(campaign)[0].use.value == "judge_alone"
        assert decisions.to_be_decided(campaign) is None

    def _shows(self, answer: dict[str, Any], use: str) -> None:
        assert (answer["stale"], [each["decision"] for each in answer["decisions"]]) == (False, [use])

    def test_the_numbers_page_marks_stale_decisions_of_a_closed_campaign(self, cast: Cast) -> None:
        campaign = rated_campaign(cast)
        declared(cast)
        judged(campaign, "Exact", exact())
        assert uses(campaign) == {"Exact": "judge_alone"}
        snapshots.snapshot(campaign=campaign)
        Campaign.objects.update(state=Campaign.State.CLOSED)
        lead, there, mark = cast.client("aino"), f"/p/kassa/numbers/{campaign.pk}/", "Something changed since these"
        page = text(lead.get(there).content)
        assert "Exact : Judge alone 1" in page and mark not in page
        make.rubric(cast.kassa, make.criterion("tone", tuple(POINTS), question={"en": "How is the tone?"}), key="gate")
        page = text(lead.get(there).content)
        assert "Exact : Judge alone 1" in page and mark in page


class TestThresholds:
    def test_versions_are_audited_and_marked_when_figures_could_be_seen(self, cast: Cast) -> None:
        campaign = rated_campaign(cast)
        first = declared(cast)
        assert (first.number, first.figures_since) == (1, None)
        assert declared(cast) == first  # the same again is no new version
        judged(campaign, "Exact", exact())
        page = text(cast.client("aino").get(f"/p/kassa/numbers/{campaign.pk}/judges/").content)
        assert "after the figures were seen" not in page and "after figures could be seen" not in page
        snapshots.snapshot(campaign=campaign)
        second = declared(cast, bias_margin=0.2)
        assert second.number == 2 and second.figures_since is not None
        page = text(cast.client("boris").get(f"/p/kassa/numbers/{campaign.pk}/judges/").content)
        assert "The thresholds changed after the figures were seen." in page
        trail = AuditEntry.objects.filter(verb="declare thresholds").order_by("pk")
        assert [entry.fields for entry in trail][1] == ["bias_margin"]
        assert {entry.actor_id for entry in trail} == {cast.aino.pk}

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"bias_margin": 0.9}, "bias_margin"),
            ({"fewest_items": 1}, "fewest_items"),
            ({"tau_b": 0.2}, "tau_b_low"),
            ({"epsilon": float("nan")}, "epsilon"),
            ({"beauty": 1.0}, "beauty"),
            ({"audits": ["horoscope"]}, "audits"),
        ],
    )
    def test_what_makes_no_sense_is_refused_at_its_field(self, cast: Cast, changes: dict[str, Any], field: str) -> None:
        with pytest.raises(Refused) as refused:
            thresholds.declare_thresholds(project=cast.kassa, preset="crowd", changes=changes, actor=cast.aino)
        assert list(refused.value.fields) == [field]
        assert not GateThresholds.objects.exists()

    def test_the_page_shows_costs_beside_epsilon(self, cast: Cast) -> None:
        def page() -> str:
            return " ".join(text(cast.client("aino").get("/p/kassa/settings/thresholds/").content).split())

        assert "an item costs" not in page() and "judges cost" not in page()
        run = judged(rated_campaign(cast), "Exact", exact(), repeats=1)
        call = Call.objects.create(run=run, item=run.dataset.items.first(), state=Call.State.SETTLED)
        Attempt.objects.create(call=call, number=1, outcome="replied", cost=Decimal("0.12"))
        assert "no pay rate is set; rated by a judge, 0.12000 USD (1 judge)." in page()

    def test_the_page_shows_what_annotators_are_paid_beside_epsilon(self, cast: Cast) -> None:
        duty = desk_scene.duty(cast, overlap=1)
        pay.set_pay_rate(duty=duty, unit="item", amount=Decimal("0.50"), actor=cast.aino)
        maarika = cast.client("maarika")
        item = desk_scene.next_page(maarika, duty)
        submitted = maarika.post(f"{item}submit/", desk_scene.FULL, headers=desk_scene.JSON)
        assert submitted.status_code == 200, submitted.content
        shown = " ".join(text(cast.client("aino").get("/p/kassa/settings/thresholds/").content).split())
        assert (
            "rated once by an annotator, an item costs 0.500 USD (1 item paid); what judges cost is not known." in shown
        )
        assert ItemCosts(campaign=duty.campaign, people=0.5, judge=0.001, n_items=1, n_judges=1).ratio == 500

    def test_a_lead_declares_them_on_the_page_and_by_the_api(self, cast: Cast) -> None:
        lead, researcher = cast.client("aino"), cast.client("boris")
        shown = lead.get("/p/kassa/settings/thresholds/").content
        assert "Experts 0.2 0.05 0.05" in text(shown) and "Skilled annotators 0.15 0.075 0.08" in text(shown)
        assert b"data-confirm=" in shown and "strict" not in text(shown)
        assert lead.post("/p/kassa/settings/thresholds/", {"preset": "experts"}).status_code == 302
        assert researcher.get("/p/kassa/settings/thresholds/").status_code == 403
        bad = lead.post("/p/kassa/settings/thresholds/", {"preset": "crowd", "bias_margin": "3"})
        assert bad.status_code == 422 and "This is a number from 0.001 to 0.5." in text(bad.content)
        there = "/api/v1/projects/kassa/thresholds/"
        posted = lead.post(there, {"preset": "crowd", "flip_rate": 0.02}, content_type="application/json")
        assert (posted.status_code, posted.json()["number"], posted.json()["flip_rate"]) == (201, 2, 0.02)
        assert researcher.post(there, {"preset": "crowd"}, content_type="application/json").status_code == 403
        assert [version["preset"] for version in researcher.get(there).json()] == ["crowd", "experts"]


class TestSurfaces:
    def test_a_shared_link_begins_with_decisions_and_the_judge_of_the_widest_use(self, cast: Cast) -> None:
        campaign = rated_campaign(cast)
        judged(campaign, "A guess", guessing())
        judged(campaign, "Exact", exact())
        _share, secret = shares.make(campaign=campaign, label="Reviewer", actor=cast.aino)
        snapshots.snapshot(campaign=campaign, settings=Settings())
        assert "What judges may be used for" not in text(Client().get(f"/shared/{secret}/").content)
        declared(cast)
        decided = {cell.row["judge"]: cell for cell in decisions.decide_now(campaign).cells}
        page = Client().get(f"/shared/{secret}/").content
        shown = text(page)
        first, figures = shown.index("What judges may be used for"), shown.index("Judge A guess Exact")
        assert first < figures
        assert f"Exact {decided['Exact'].use.label} · 1" in shown and decided["A guess"].meaning in shown
        assert b'<option value="Exact" selected>' in page
        assert b'<option value="A guess" selected>' in Client().get(f"/shared/{secret}/?judge=A+guess").content
        assert not any(reason in shown for cell in decided.values() for reason in cell.reasons)

    def test_page_api_report_and_latex_mark_what_is_not_certain(self, cast: Cast) -> None:
        """40 dialogues of nearly one length: how far twice the length moves its error is not known to the margin."""
        campaign = rated_campaign(cast, rated=40)
        declared(cast)
        judged(campaign, "Exact", exact())
        (cell,) = decisions.decide_now(campaign).cells
        states = {condition.name: condition.state for condition in cell.conditions}
        assert (states["verbosity"], cell.state) == ("not_certain", "not_certain"), cell.reasons
        sentence = cell.why_not_certain
        lead = cast.client("aino")
        page = lead.get(f"/p/kassa/numbers/{campaign.pk}/judges/").content
        assert b'data-state="not_certain"' in page and sentence in text(page)
        (shown,) = lead.get(f"/api/v1/projects/kassa/campaigns/{campaign.pk}/decisions/").json()["decisions"]
        (verbosity,) = (each for each in shown["conditions"] if each["name"] == "verbosity")
        assert (shown["state"], verbosity["state"]) == ("not_certain", "not_certain")
        report = content.composed_report(campaign, content.ReportLayout(NumbersQuestion()), lambda *_done: None)
        written = text(report_files.report_page(report, report_files.numbered_tables(report)).encode())
        assert sentence in written and f"{cell.use.label} not certain" in written
        latex = latex_tables.latex_decisions((row[:6] for row in report.decision_rows), name="7")
        assert f"{cell.use.label} (not certain)" in latex and latex.count(r"\\[2pt]") == 1

    def test_page_api_command_client_and_webhook_say_the_same(self, cast: Cast, settings: Any) -> None:
        campaign = rated_campaign(cast)
        settings.DEBUG = True
        webhooks.add(project=cast.kassa, address="http://127.0.0.1:9/", events=[Event.DECISION], actor=cast.aino)
        judged(campaign, "Exact", exact())
        judged(campaign, "Guessing", guessing())
        lead, there = cast.client("aino"), f"/api/v1/projects/kassa/campaigns/{campaign.pk}/decisions/"
        empty = lead.get(there).json()
        assert empty == {"stale": False, "thresholds": None, "computed_at": None, "decisions": []}
        assert "No thresholds are declared yet" in text(lead.get(f"/p/kassa/numbers/{campaign.pk}/judges/").content)
        with pytest.raises(CommandError) as undeclared:
            self._gate(campaign)
        assert undeclared.value.returncode == 2
        declared(cast)
        assert lead.get(there).json()["stale"]
        decisions.decide_now(campaign)
        answer = lead.get(there).json()
        by_api = {each["judge"]: each["decision"] for each in answer["decisions"]}
        assert by_api == {"Exact": "judge_alone", "Guessing": "humans_only"}
        told = Delivery.objects.get().payload["data"]
        judges = {judge.pk: judge.name for judge in Judge.objects.all()}
        assert {judges[change["judge"]]: change["decision"] for change in told["changes"]} == by_api
        assert (told["campaign"], told["count"]) == (campaign.pk, 2)
        status, out, _error = self._gate(campaign, as_json=True)
        assert status == 1
        assert json.loads(out) == json.loads(json.dumps(answer["decisions"]))
        assert self._gate(campaign, judge=["Exact"], fail_on="HUMANS_ONLY")[0] == 0
        assert self._gate(campaign, judge=["Guessing"], fail_on="none")[0] == 0
        assert self._gate(campaign, judge=["Guessing"], fail_on="humans_only")[0] == 1
        for judge, label in (("Exact", "Judge alone"), ("Guessing", "Humans only")):
            page = text(lead.get(f"/p/kassa/numbers/{campaign.pk}/judges/?judge={judge}").content)
            shown = next(each for each in answer["decisions"] if each["judge"] == judge)
            assert label in page and all(reason in page for reason in shown["reasons"])
            assert all(remedy["sentence"] in page for remedy in shown["would_change_it"])
        assert Delivery.objects.count() == 1  # asking again changes nothing

    @pytest.mark.parametrize(
        "asked",
        [{"fail_on": "SOMETIMES"}, {"fail_on": ""}, {"fail_on": " ,"}, {"judge": ["Nobody"]}, {"campaign": "x"}],
    )
    def test_wrong_usage_ends_with_two(self, cast: Cast, asked: dict[str, Any]) -> None:
        campaign = rated_campaign(cast)
        declared(cast)
        judged(campaign, "Exact", exact())
        with pytest.raises(CommandError) as wrong:
            self._gate(asked.pop("campaign", campaign), **asked)
        assert wrong.value.returncode == 2

    def test_a_run_of_failed_calls_hides_no_bad_judge(self, cast: Cast) -> None:
        """A dead run and one with a failed call replace no complete one; a judge with a dead run only fails."""
        campaign = rated_campaign(cast)
        declared(cast)
        judged(campaign, "Guessing", guessing())
        broken, dead, lost = (judged(campaign, name, exact(), repeats=3) for name in ("Guessing", "Guessing", "Lost"))
        Verdict.objects.filter(run__in=(dead, lost)).delete()
        item = campaign.dataset.items.order_by("ordinal")[0]
        Call.objects.bulk_create(Call(run=run, item=item, state=Call.State.FAILED) for run in (dead, broken, lost))
        status, out, _error = self._gate(campaign, as_json=True, criterion=["tone"])
        shown = {each["judge"]: each["decision"] for each in json.loads(out)}
        assert (status, shown) == (1, {"Guessing": "humans_only", "Lost": "insufficient"})
        status, out, _error = self._gate(campaign, judge=["Lost"])
        assert status == 1 and f"Its run {lost.pk} has no verdict" in out and out.startswith("INSUFFICIENT")
        assert self._gate(campaign, judge=["Lost"], fail_on="none")[0] == 0

    def _gate(self, campaign: Any, **asked: Any) -> tuple[int, str, str]:
        out, error = StringIO(), StringIO()
        number = str(getattr(campaign, "pk", campaign))
        try:
            call_command("gate", campaign=number, stdout=out, stderr=error, **asked)
        except SystemExit as ended:
            return int(str(ended.code)), out.getvalue(), error.getvalue()
        return 0, out.getvalue(), error.getvalue()

    def test_a_campaign_without_judges_says_what_to_do(self, cast: Cast) -> None:
        campaign = scene.rated_campaign(cast)
        declared(cast)
        there = f"/p/kassa/numbers/{campaign.pk}/judges/"
        assert cast.client("aino").get(there).status_code == 200  # it asks a worker to compute them
        for computation in Computation.objects.filter(job__state="waiting"):
            tasks.compute_numbers(computation.pk)
        current = decisions.current_decisions(campaign)
        assert current is not None and not current.is_stale and current.cells == ()
        page = text(cast.client("aino").get(f"/p/kassa/numbers/{campaign.pk}/judges/").content)
        assert "No judge has scored these items" in page


def test_the_decision_flips_when_the_labels_are_added_that_it_asks_for(cast: Cast) -> None:
    """With 40 rated items the bias may lie within the margin; as many more as it asks for show that it does."""
    campaign = rated_campaign(cast, rated=40, very_different_lengths=True)
    declared(cast, "experts", bias_margin=0.03)
    judged(campaign, "Exact", exact())
    (cell,) = decisions.decide_now(campaign).cells
    assert cell.use.value == "judge_with_correction", [c.sentence for c in cell.conditions]
    (remedy,) = cell.remedies
    assert remedy.group == "labels" and 0 < (remedy.more_items or 0) <= 80, remedy
    rate(campaign, range(40, 40 + (remedy.more_items or 0)))
    (cell,) = decisions.decide_now(campaign).cells
    assert cell.use.value == "judge_alone", (cell.reasons, cell.remedies)
    newest, *_earlier = decisions.decision_history(campaign)
    assert newest.former == "With correction"
    assert newest.why == f"Items with two raters: 40 before, {40 + (remedy.more_items or 0)} now."
