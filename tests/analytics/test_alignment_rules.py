"""What may be locked, tuned on and said in an alignment, where several of them and other figures meet."""

from __future__ import annotations

import json
from io import StringIO
from random import Random
from threading import Thread
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test import Client

from accounts.models import AuditEntry, Project
from accounts.refusals import Refused
from analytics.figures import Figure
from analytics.judges import alignments
from analytics.stats.judge import alignment as kernels
from annotation import selections
from annotation.models import Criterion
from judging import designs, runs
from judging.models import Alignment, AlignmentCandidate, AlignmentLook, AlignmentSearch, Judge, JudgeRun
from judging.versions import alignment, proposals
from tests import make
from tests.analytics.test_alignment import ROOT, aligned, flawed, rows, study, version_of, words_of
from tests.cast import Cast
from tests.judging.test_designs import worked
from tests.judging.test_money import priced
from tests.provider_server import RunningProvider
from tests.workers import wait_for_workers

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
        _parent, shown = proposals._random(searched, Random(seed))
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


# --- closing ----------------------------------------------------------------------------------------------------------
def test_a_closed_alignment_gives_its_unseen_scenarios_back(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=30)
    first = aligned(cast, campaign, looks=2)
    tuned, locked = scenarios_of(first.tuning), scenarios_of(first.test)
    version = version_of(first, "One", "Mind the length.")
    run = alignment.start_tuning(candidate=version)
    page = f"{ROOT}{first.pk}/"
    lead, researcher = cast.client("aino"), cast.client("boris")
    assert researcher.get(f"{page}close/").status_code == 403
    assert f'href="{page}close/"' not in researcher.get(page).content.decode()
    assert "2 looks at the locked split are left" in words_of(lead, f"{page}close/")
    assert lead.post(f"{page}close/").status_code == 400
    lead.post(f"{page}close/", {"confirm": "yes"})
    assert "2 unused looks were cancelled. Its locked scenarios were never looked at" in words_of(lead, page)
    entry = AuditEntry.objects.get(verb="close alignment")
    assert (entry.actor, entry.subject_pk) == (cast.aino, first.pk)
    run.refresh_from_db()
    assert run.state == JudgeRun.State.CANCELLED
    first.refresh_from_db()
    fresh = AlignmentCandidate.objects.select_related("alignment", "judge").get(pk=version.pk)
    for refused in (
        lambda: version_of(first, "Two", "More."),
        lambda: alignment.start_tuning(candidate=fresh),
        lambda: alignment.close_alignment(alignment=first),
        lambda: proposals.begin_search(alignment_searched=first, method="random", steps=1),
    ):
        with pytest.raises(Refused, match="This alignment is closed"):
            refused()
    second = aligned(cast, campaign, name="Second", base=first.base, seed=8, share=0.5)
    assert scenarios_of(second.test) < locked
    assert tuned < scenarios_of(second.tuning)


def test_scenarios_that_were_looked_at_are_never_unseen_again(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=20)
    first = aligned(cast, campaign, looks=2)
    chosen, late = (version_of(first, name, f"Mind the length. {name}") for name in ("One", "Late"))
    for candidate in first.candidates.all():
        run = alignment.start_tuning(candidate=candidate)
        worked([run])
    look = alignment.take_look(candidate=chosen)
    client, there = cast.client("aino"), f"/api/v1/projects/kassa/alignments/{first.pk}/"

    def closed(confirm: bool) -> Any:
        return client.post(f"{there}close/", json.dumps({"confirm": confirm}), content_type="application/json")

    assert closed(False).status_code == 400
    assert client.get(there).json()["looks_left"] == 1
    answer = closed(True)
    assert (answer.status_code, answer.json()["looks_left"]) == (200, 0)
    assert answer.json()["closed_at"]
    assert closed(True).json()["code"] == "closed"
    worked(alignment.look_runs(look))  # what was taken is answered and kept
    assert alignments.settle_open_looks() == 1
    with pytest.raises(Refused, match=r"1 unused look was cancelled\. Its locked scenarios have been looked at"):
        alignment.take_look(candidate=late)
    with pytest.raises(Refused, match="too few labelled scenarios that no alignment has used: 0 to tune on and 0"):
        aligned(cast, campaign, name="Again", seed=99, base=first.base)


def test_the_command_closes_an_alignment(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=20)
    aligned(cast, campaign, looks=1)
    out = StringIO()
    call_command("align_judge", "--project", "kassa", "--name", "Closer", "--close", stdout=out)
    assert "1 unused look was cancelled." in out.getvalue()
    with pytest.raises(CommandError, match="is closed"):
        call_command("align_judge", "--project", "kassa", "--name", "Closer", "--close", stdout=out)


# --- what is made of a version, and splits made at once ---------------------------------------------------------------
def test_a_design_of_a_version_does_not_reach_what_is_locked(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=20)
    current = aligned(cast, campaign, looks=1)
    version = version_of(current, "One", "Mind the length.")
    about = {"dataset": campaign.dataset, "rubric_version": campaign.rubric_version}

    def cells(judge: Judge, name: str, temperature: float) -> list[Judge]:
        factors = {"temperature": [temperature]}
        made = designs.create_design(project=cast.kassa, name=name, judges_asked=[judge], factors=factors, **about)
        return [cell.judge for cell in made.cells.select_related("judge")]

    [of_base] = cells(current.base, "Of the base", 0.5)
    assert of_base.ancestry() == [current.base]
    with pytest.raises(Refused, match="may not be asked about its locked items"):
        cells(version.judge, "Of the version", 0.5)
    AlignmentLook.objects.create(alignment=current, number=1, candidate=version)
    [of_version] = cells(version.judge, "Of the version", 0.5)
    assert of_version.ancestry() == [version.judge, current.base]


def test_of_two_splits_made_at_once_the_second_sees_the_first(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=20)
    base, outcomes = flawed(cast), []

    def split(name: str) -> None:
        try:
            alignment.create_alignment(campaign=campaign, base=base, name=name, seed=len(name))
            outcomes.append("split")
        except Refused as refused:
            outcomes.append(refused.code)
        finally:
            connection.close()

    threads = [Thread(target=split, args=(name,)) for name in ("One", "Second")]
    with transaction.atomic():  # both come to the lock before either gets it
        Project.objects.select_for_update(no_key=True).get(pk=cast.kassa.pk)
        for thread in threads:
            thread.start()
        if connection.vendor == "postgresql":
            wait_for_workers(lambda: waiting_for_locks() == 2)
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["split", "too_few_labels"]
    assert Alignment.objects.count() == 1


def waiting_for_locks() -> int:
    """How many connections to the database wait for a lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return int(cursor.fetchone()[0])


def test_the_page_of_a_version_shows_ten_differences_at_a_time(cast: Cast, priced: RunningProvider) -> None:
    campaign, _brief = study(cast, scenarios=30)
    current = aligned(cast, campaign)
    worked([alignment.start_tuning(candidate=current.candidates.get())])
    page, client = f"{ROOT}{current.pk}/versions/{current.base_id}/", cast.client("boris")
    run = alignment.run_of(current, current.base, current.tuning)
    names = [confusion.item.external_id for confusion in alignments.confusions(current, run)[0]]
    assert len(names) > 10
    shown = [[name for name in names if f">{name}<" in answered(client, f"{page}?page={number}")] for number in (1, 2)]
    assert shown == [names[:10], names[10:20]]
    assert " selected" not in answered(client, page).partition("<select")[2].partition("</form>")[0]
    assert '<option value="et" selected>' in answered(client, f"{page}?language=et")


def answered(client: Client, address: str) -> str:
    return client.get(address).content.decode()
