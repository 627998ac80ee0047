"""What may be locked, tuned on and said in an alignment, where several of them and other figures meet."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from accounts.refusals import Refused
from analytics import alignments
from analytics.figures import Figure
from analytics.stats.judge import alignment as kernels
from annotation import selections
from annotation.models import Criterion
from judging import runs, search
from judging.models import Alignment, AlignmentCandidate, AlignmentLook, AlignmentSearch, JudgeRun
from tests import make
from tests.analytics.test_alignment import ROOT, aligned, rows, study, version_of, words_of
from tests.cast import Cast
from tests.judging.test_money import priced
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["priced"]


def test_overfitting_is_said_only_where_the_interval_shows_it(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=20)
    current = aligned(cast, campaign)
    chosen = version_of(current, "One", "Mind the length.")
    look = AlignmentLook.objects.create(alignment=current, number=1, candidate=chosen)
    page, codes = f"{ROOT}{current.pk}/", np.arange(8)
    tuning = np.array([1, 1, 1, 0, 1, 1, 0, 1.0])
    said = []
    for test in (tuning[::-1] * (codes != 7), 0 * tuning):
        found = {
            "tuning": kernels.mean_agreement(tuning, codes, items=8),
            "test": kernels.mean_agreement(test, codes, items=8),
            "base": kernels.mean_agreement(test, codes, items=8),
            "gain": kernels.paired_gain(test, test, codes, items=8, confidence=0.95),
            "overfit": kernels.overfit(tuning, codes, test, codes, items=16, confidence=0.95),
        }
        result = {name: estimate.as_dict() for name, estimate in found.items()}
        AlignmentLook.objects.filter(pk=look.pk).update(result={**result, "languages": {}, "is_later": False})
        said.append(words_of(cast.client("boris"), page))
    assert "You overfit" not in said[0]
    assert "The difference does not show overfitting." in said[0]
    assert "You overfit by 0.75." in said[1]


def scenarios_of(selection: Any) -> set[str]:
    return set(selections.selected_items(selection).values_list("scenario", flat=True))


def test_a_second_alignment_does_not_open_what_the_first_has_locked(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=20)
    first = aligned(cast, campaign, looks=1)
    version = version_of(first, "One", "Mind the length.")
    locked, names = (
        scenarios_of(first.test),
        selections.selected_items(first.test).values_list("external_id", flat=True),
    )
    dataset = make.dataset(cast.kassa, rows(40), name="Round 2")  # the same dialogues in another dataset, and new ones
    more = make.campaigns.open_campaign(
        project=cast.kassa, name="Round 2", dataset=dataset, rubric_version=campaign.rubric_version
    )
    make.rated(more, {"fluency": {"c": [1.0] * 80}})
    second = aligned(cast, more, name="Second", base=version.judge)
    assert not locked & (scenarios_of(second.tuning) | scenarios_of(second.test))
    assert scenarios_of(first.tuning) < scenarios_of(second.tuning)
    copies = selections.select(campaign=more, name="Copies", rule={"kind": "list", "items": [names[0]]})
    asked: Any = {"dataset": more.dataset, "rubric_version": more.rubric_version, "selection": copies}
    for within in (None, second):
        with pytest.raises(Refused, match="may not be asked about its locked items"):
            runs.refuse_unfit(judge=version.judge, alignment=within, **asked)
    runs.refuse_unfit(judge=version.judge, alignment=first, **asked)
    with pytest.raises(Refused, match=r"used: 0 to tune on and 0 to lock"):
        aligned(cast, campaign, name="Early", base=first.base)
    AlignmentLook.objects.create(alignment=first, number=1, candidate=version)
    runs.refuse_unfit(judge=version.judge, alignment=second, **asked)


def test_the_examples_of_a_search_leave_most_tuning_scenarios_to_be_asked_about(
    cast: Cast, priced: RunningProvider
) -> None:
    campaign, _brief = study(cast, scenarios=14)
    current = aligned(cast, campaign)
    searched = AlignmentSearch(alignment=current, method="random", steps=2, seed=1)
    scenarios = dict(selections.selected_items(current.tuning).values_list("digest", "scenario"))
    for seed in range(20):
        _parent, shown = search._random(searched, Random(seed))
        units = {scenarios[example["item"]] for example in shown}
        assert 1 <= len(units) <= len(scenarios_of(current.tuning)) / 3


def test_a_search_does_not_choose_by_versions_that_are_hardly_answered() -> None:
    def version(judge: int, origin: str, *, done: int = 8, scenarios: int = 8, state: str = "running") -> Any:
        figure = Figure(statistic="alignment_gain", criterion="", value=0.1 * judge, n_clusters=scenarios)
        return alignments.TunedVersion(
            candidate=AlignmentCandidate(judge_id=judge, origin=origin),
            run=JudgeRun(state=state),
            planned=8,
            done=done,
            score=figure,
            gain=None if origin == "base" else figure,
            languages={},
        )

    versions = [
        version(1, "base"),
        version(2, "edit", scenarios=4),
        version(3, "edit", scenarios=3),
        version(4, "edit", done=1),
        version(5, "search", state="cancelled"),
    ]
    assert alignments.comparable_gains(versions) == {2: 0.2}


def test_on_interval_scales_the_mean_of_the_panel_counts_as_the_nearest_point_as_the_judge_does() -> None:
    levels = {"level": Criterion.Level.INTERVAL, "minimum": 1, "maximum": 5}
    criteria = {1: Criterion(points=[{"value": point} for point in range(1, 6)], **levels), 2: Criterion(**levels)}
    means = {(item, criterion): mean for criterion in criteria for item, mean in enumerate((10 / 3, 10 / 3, 3.5, 3.5))}
    side = alignments.SideLabels(means, {}, criteria, 0)
    scores = {(item, criterion): score for criterion in criteria for item, score in enumerate((10 / 3, 3.0, 4.0, 3.0))}
    found = alignments._agreement(Alignment(measure="accuracy"), side, scores)
    assert [found[item, 1] for item in range(4)] == [1, 1, 1, 0]
    assert [found[item, 2] for item in range(4)] == [1, 0, 0, 0]
