"""Snapshots: computed once, stale when something was rated since, and by workers only."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from typing import Any

import pytest

from analytics import tasks
from analytics.answers import revisions, snapshots
from analytics.figures import Figure, Figures
from analytics.models import Snapshot, StoredCell
from analytics.questions.question import NumbersQuestion, Settings
from analytics.ratings import ratings_tables
from annotation.models import Annotation, Campaign
from annotation.writers import formats
from judging.models import JudgeRun, Verdict
from tests import make
from tests.analytics import scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def figures(found: Snapshot) -> Figures:
    return Figures(found.content["estimates"])


def alpha(found: Snapshot, language: str | None = "et", criterion: str = "fluency") -> Figure:
    figure = figures(found).get("krippendorff_alpha", criterion, language)
    assert figure is not None
    return figure


def make_scene(cast: Cast) -> Campaign:
    made = scene.rated_campaign(cast)
    scene.with_verdicts(made)
    return made


@pytest.fixture
def campaign(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


class TestContent:
    def test_every_criterion_and_language_and_all_languages_but_never_criteria_together(
        self, campaign: Campaign
    ) -> None:
        rows = snapshots.snapshot(campaign=campaign).content["estimates"]
        cells = {(row["criterion"], row.get("language")) for row in rows}
        assert cells == {(key, tag) for key in ("coherence", "fluency") for tag in ("ar", "et", None)}

    def test_the_agreement_of_two_who_differ_once(self, campaign: Campaign) -> None:
        found = snapshots.snapshot(campaign=campaign)
        percent = figures(found).get("percent_agreement", "fluency", "et")
        assert percent is not None
        assert percent.value == pytest.approx(5 / 6)
        assert (percent.n_items, percent.n_raters, percent.n_ratings) == (6, 2, 12)

    def test_the_judge_against_the_panels_mode_by_hand(self, campaign: Campaign) -> None:
        # Estonian modes 0 1 2 3 (3|2 tied) 1 against 1 1 2 3 2 0: errors 1 0 0 0 1, signed sum 0 over 5 items.
        found = figures(snapshots.snapshot(campaign=campaign))
        mae, bias = (found.get(name, "fluency", "et", "Kohtunik") for name in ("mae", "bias"))
        assert (mae.value, bias.value, mae.n_items, mae.n_missing) == (pytest.approx(0.4), 0.0, 5, 1)  # type: ignore[union-attr]
        assert found.get("without_reference", "fluency", "et", "Kohtunik").value == 1.0  # type: ignore[union-attr]

    def test_figures_count_the_clusters_of_their_items(self, campaign: Campaign) -> None:
        found = figures(snapshots.snapshot(campaign=campaign))
        both, one = (found.get("krippendorff_alpha", "fluency", tag) for tag in (None, "et"))
        assert both is not None
        assert one is not None
        assert (both.n_items, both.n_clusters, one.n_items, one.n_clusters) == (12, 6, 6, 6)
        # The tied items are s4 in Estonian and s3 in Arabic: every scenario is left in one language.
        mae = found.get("mae", "fluency", None, "Kohtunik")
        assert mae is not None
        assert (mae.n_items, mae.n_clusters) == (10, 6)

    def test_what_nobody_rated_twice_is_undefined_with_a_reason(self, cast: Cast) -> None:
        made = make.campaign(cast.kassa)
        make.rated(made, {"fluency": {"mari": [0, 1, 2, 3]}})
        undefined = alpha(snapshots.snapshot(campaign=made))
        assert (undefined.value, undefined.reason) == (None, "only one rater")

    def test_one_variant_of_each_statistic(self, campaign: Campaign) -> None:
        rows = snapshots.snapshot(campaign=campaign).content["estimates"]
        variants = {(row["statistic"], row.get("variant")) for row in rows}
        assert {("fleiss_kappa", "unequal"), ("gwet_ac", "ordinal"), ("cohen_kappa", "quadratic")} <= variants
        about = ("statistic", "criterion", "language", "judge", "generator", "agreement_class")
        of_points = ("score_share", "class_score_share")
        names = [tuple(row.get(name) for name in about) for row in rows if row["statistic"] not in of_points]
        assert len(names) == len(set(names))

    def test_counts_say_what_was_left_out(self, cast: Cast) -> None:
        made = scene.rated_campaign(cast)
        scene.with_verdicts(made, {"fluency": [9, "unparsed", "refused", *9 * [1]]})
        counts = snapshots.snapshot(campaign=made).content["counts"]
        judge = next(row for row in counts if (row["judge"], row.get("language")) == ("Kohtunik", "et"))
        assert (judge["ratings"], judge["missing"]) == (3, 2)
        assert judge["reasons"] == {"out_of_range": 1, "refused": 1, "unparsed": 1}
        panel = next(
            row for row in counts if (row["judge"], row["criterion"], row.get("language")) == ("", "fluency", "et")
        )
        assert (panel["items"], panel["raters"], panel["ratings"]) == (6, 2, 12)

    def test_an_empty_campaign_has_an_empty_snapshot(self, cast: Cast) -> None:
        content = snapshots.snapshot(campaign=make.campaign(cast.kassa)).content
        assert (content["estimates"], content["languages"], content["rated"]["items"]) == ([], [], 0)

    def test_provenance(self, campaign: Campaign) -> None:
        found = snapshots.snapshot(campaign=campaign)
        csv = b"".join(formats.pieces(ratings_tables.table(campaign=campaign), "csv"))
        assert found.inputs_digest == hashlib.sha256(csv).hexdigest()
        assert (found.seed, found.code_version) == (Settings().seed, revisions.code_version())
        assert [(judge["name"], judge["simulated"]) for judge in found.content["judges"]] == [("Kohtunik", True)]


class TestFreshness:
    def test_the_same_rows_give_the_same_snapshot(self, campaign: Campaign) -> None:
        first = snapshots.snapshot(campaign=campaign)
        assert snapshots.snapshot(campaign=campaign) == first
        assert snapshots.current_snapshot(campaign=campaign) == (first, False)

    def test_the_same_rows_and_seed_give_the_same_figures(self, campaign: Campaign) -> None:
        first = snapshots.snapshot(campaign=campaign).content
        Snapshot.objects.all().delete()
        assert json.dumps(snapshots.snapshot(campaign=campaign).content) == json.dumps(first)

    def test_a_new_rating_makes_it_stale_and_a_refresh_moves_the_figure(self, campaign: Campaign) -> None:
        before = snapshots.snapshot(campaign=campaign)
        make.rated(campaign, {"fluency": {"uus": [3, 2, 1, 0, 0, 3, *6 * [None]]}})
        assert snapshots.current_snapshot(campaign=campaign) == (before, True)
        scene.compute(campaign)
        after, is_stale = snapshots.current_snapshot(campaign=campaign)
        assert not is_stale
        assert alpha(after).value < alpha(before).value  # type: ignore[operator, arg-type]

    @pytest.mark.parametrize("change", ["verdict", "run", "superseded"])
    def test_everything_that_enters_or_leaves_the_table_makes_it_stale(self, campaign: Campaign, change: str) -> None:
        snapshots.snapshot(campaign=campaign)
        if change == "verdict":
            verdict = Verdict.objects.first()
            Verdict.objects.create(
                run=verdict.run, item=verdict.item, criterion=verdict.criterion, repeat=2, status="ok", score=1
            )
        elif change == "run":
            scene.with_verdicts(campaign)
        else:
            row = Annotation.objects.first()
            Annotation.objects.filter(pk=row.pk).update(superseded_at=row.submitted_at)
        assert snapshots.current_snapshot(campaign=campaign)[1]

    def test_the_list_of_campaigns_shows_the_figures_of_a_state_that_came_back(self, campaign: Campaign) -> None:
        """A run that is taken back, a late worker: the snapshot that was stored last is not the current one."""
        before = snapshots.snapshot(campaign=campaign)
        later = scene.with_verdicts(campaign, {"fluency": 12 * [3]})
        after = snapshots.snapshot(campaign=campaign)
        assert snapshots.newest([campaign]) == {campaign.pk: after} != {campaign.pk: before}
        Verdict.objects.filter(run=later).delete()
        JudgeRun.objects.filter(pk=later.pk).update(state=JudgeRun.State.CANCELLED)
        assert snapshots.current_snapshot(campaign=campaign) == (before, False)
        assert snapshots.newest([campaign]) == {campaign.pk: before}

    def test_a_snapshot_of_older_code_is_none(self, campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
        snapshots.snapshot(campaign=campaign)
        monkeypatch.setattr(revisions, "LAYOUT", revisions.LAYOUT + 1)
        assert snapshots.current_snapshot(campaign=campaign) == (None, True)

    def test_only_so_many_are_kept(self, campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(snapshots, "KEPT", 1)
        for number in range(2):
            make.rated(campaign, {"fluency": {f"uus-{number}": [number, *11 * [None]]}})
            newest = snapshots.snapshot(campaign=campaign)
        assert list(Snapshot.objects.all()) == [newest]

    def test_cells_of_answers_that_are_not_kept_go_with_them(
        self, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(snapshots, "KEPT_ANSWERS", 1)
        for level in ("nominal", "ordinal"):
            newest = snapshots.snapshot(campaign=campaign, settings=NumbersQuestion(level=level, bootstrap=0))
        kept = StoredCell.objects.values_list("settings_digest", flat=True)
        assert {*kept} == {newest.settings_digest}


class TestRaters:
    def test_a_subset_has_a_snapshot_of_its_own(self, campaign: Campaign) -> None:
        everyone = snapshots.snapshot(campaign=campaign)
        settings = Settings(raters=("hala", "noor"))
        scene.compute(campaign, settings)
        subset, is_stale = snapshots.current_snapshot(campaign=campaign, settings=settings)
        assert not is_stale
        assert subset != everyone
        assert figures(subset).get("krippendorff_alpha", "fluency", "et") is None
        assert alpha(subset, "ar").value == alpha(everyone, "ar").value
        assert snapshots.newest([campaign]) == {campaign.pk: everyone}


class TestTasks:
    def test_stale_numbers_are_asked_for_once(
        self, campaign: Campaign, django_capture_on_commit_callbacks: Any
    ) -> None:
        with django_capture_on_commit_callbacks() as asked:
            tasks.refresh_stale()
            tasks.refresh_stale()
        assert len(asked) == 1
        scene.compute(campaign)
        with django_capture_on_commit_callbacks() as asked:
            tasks.refresh_stale()
        assert not asked

    def test_what_became_stale_again_is_asked_for_again(
        self, campaign: Campaign, django_capture_on_commit_callbacks: Any
    ) -> None:
        tasks.refresh_stale()
        scene.compute(campaign)
        make.rated(campaign, {"fluency": {"uus": [3, *11 * [None]]}})
        with django_capture_on_commit_callbacks() as asked:
            tasks.refresh_stale()
        assert len(asked) == 1


def test_web_processes_load_neither_pandas_nor_scipy_nor_the_renderer() -> None:
    """Every address resolved, as a web process does at its start."""
    heavy = {"pandas", "scipy", "vl_convert", "analytics.charts"}
    look = f"import django, sys; django.setup(); import panelbench.urls; print({heavy} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
