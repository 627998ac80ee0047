"""A judge is asked about the items that a later version of a dataset adds, and about no other a second time."""

from __future__ import annotations

import pytest

from accounts.refusals import Refused
from annotation.imports import storage
from annotation.models import Dataset, Import, RubricVersion
from judging import runs
from judging.imports import verdicts
from judging.models import Judge, JudgeRun, Verdict
from tests import make
from tests.cast import Cast
from tests.judging.test_runs import declared, worked
from tests.judging.test_verdict_import import row
from tests.provider_server import RunningProvider

pytestmark = pytest.mark.django_db(transaction=True)


def versions(cast: Cast) -> tuple[Dataset, Dataset, RubricVersion]:
    first = make.dataset(cast.kassa, 3)
    return (
        first,
        storage.append_items(dataset=first, items=[make.item_row(4), make.item_row(5)]),
        make.rubric(cast.kassa),
    )


def asked(run: JudgeRun) -> list[str]:
    return list(run.calls.order_by("item__ordinal").values_list("item__external_id", flat=True))


def test_a_run_on_a_later_version_asks_about_the_new_items_only(cast: Cast, provider: RunningProvider) -> None:
    first, second, version = versions(cast)
    judge = declared(cast)
    earlier = runs.start_judge_run(judge=judge, dataset=first, rubric_version=version)
    worked(earlier)
    forecast = runs.forecast(judge=judge, dataset=second, rubric_version=version)
    assert (forecast.calls, forecast.items, forecast.continues) == (2, 2, earlier)
    later = runs.start_judge_run(judge=judge, dataset=second, rubric_version=version)
    assert (later.continues, asked(later)) == (earlier, ["d4", "d5"])
    worked(later)
    third = storage.append_items(dataset=second, items=[make.item_row(6)])
    last = runs.start_judge_run(judge=judge, dataset=third, rubric_version=version)
    assert (last.continues, asked(last)) == (later, ["d6"])
    assert set(runs.whole_run([last])) == {earlier, later, last}
    assert Verdict.objects.filter(run__in=runs.whole_run([later])).values("item").distinct().count() == 5


def test_another_question_is_asked_about_every_item(cast: Cast, provider: RunningProvider) -> None:
    first, second, version = versions(cast)
    judge = declared(cast)
    earlier = runs.start_judge_run(judge=judge, dataset=first, rubric_version=version)
    for other, options in ((judge, {"repeats": 2}), (declared(cast, grouping="single"), {})):
        run = runs.start_judge_run(judge=other, dataset=second, rubric_version=version, **options)  # type: ignore[arg-type]
        assert (run.continues, len(set(asked(run)))) == (None, 5)
    again = runs.start_judge_run(judge=judge, dataset=first, rubric_version=version, again=True)
    assert (again.continues, len(asked(again))) == (None, 3)
    assert runs.start_judge_run(judge=judge, dataset=second, rubric_version=version, again=True).continues == again
    runs.cancel_run(run=again)
    assert runs.start_judge_run(judge=judge, dataset=second, rubric_version=version, again=True).continues == earlier


def test_a_run_that_goes_on_from_a_cancelled_one_is_not_gone_on_from(cast: Cast, provider: RunningProvider) -> None:
    first, second, version = versions(cast)
    judge = declared(cast)
    earlier = runs.start_judge_run(judge=judge, dataset=first, rubric_version=version)
    runs.start_judge_run(judge=judge, dataset=second, rubric_version=version)
    runs.cancel_run(run=earlier)
    third = storage.append_items(dataset=second, items=[make.item_row(6)])
    last = runs.start_judge_run(judge=judge, dataset=third, rubric_version=version)
    assert (last.continues, len(asked(last))) == (None, 6)


def test_a_run_that_would_ask_nothing_is_refused_by_page_and_api_alike(cast: Cast, provider: RunningProvider) -> None:
    first, second, version = versions(cast)
    judge = declared(cast)
    runs.start_judge_run(judge=judge, dataset=second, rubric_version=version)
    same = Dataset.objects.create(project=cast.kassa, name="Same", version=1, extends=second, state="ready")
    same.parts.set([first, second, same])
    client, api = cast.client("boris"), "/api/v1/projects/kassa/runs/"
    chosen = {"dataset": same.pk, "rubric_version": version.pk, "repeats": 1}
    sentence = "This judge has already been asked about every item of this dataset."
    for page in (client.get, client.post):
        assert sentence in page(f"/p/kassa/judges/{judge.pk}/runs/new/", chosen).content.decode()
    body = {"judge": judge.pk, "dataset": same.pk, "rubric_version": version.pk}
    for address in (api, f"{api}forecast/"):
        refused = client.post(address, body, content_type="application/json")
        assert (refused.status_code, refused.json()["code"]) == (409, "nothing_to_ask")
        assert refused.json()["detail"] == sentence
    assert JudgeRun.objects.count() == 1


def test_a_page_says_so_before_the_run_is_paid_for(cast: Cast, provider: RunningProvider) -> None:
    first, second, version = versions(cast)
    judge = declared(cast)
    earlier = runs.start_judge_run(judge=judge, dataset=first, rubric_version=version)
    client, there = cast.client("boris"), f"/p/kassa/judges/{judge.pk}/runs/new/"
    chosen = {"dataset": second.pk, "rubric_version": version.pk, "repeats": 1}
    page = client.get(there, chosen).content.decode()
    assert "only the 2 items added since Dialogues v1 are rated" in page
    assert "Start: 2 calls" in page
    started = client.post(there, chosen, follow=True).content.decode()
    assert f">run {earlier.pk}</a>" in started
    told = client.get("/api/v1/projects/kassa/runs/").json()["results"]
    assert {each["continues"] for each in told} == {earlier.pk, None}


def imported(cast: Cast, dataset: Dataset, version: RubricVersion, scores: dict[str, float]) -> Import:
    rows = [row(item, score) for item, score in scores.items()]
    file_import = Import.objects.create(project=cast.kassa, kind=Import.Kind.VERDICTS)
    verdicts.store_verdict_rows(
        project=cast.kassa, dataset=dataset, rubric_version=version, rows=rows, file_import=file_import
    )
    return file_import


def test_verdicts_made_elsewhere_go_on_likewise(cast: Cast) -> None:
    first, second, version = versions(cast)
    one = imported(cast, first, version, {"d1": 1, "d2": 2})
    two = imported(cast, second, version, {"d2": 2, "d4": 3})
    earlier, later = JudgeRun.objects.order_by("pk")
    assert later.continues == earlier
    assert list(later.verdicts.values_list("item__external_id", flat=True)) == ["d4"]
    with pytest.raises(Refused, match="1 problem"):
        imported(cast, second, version, {"d1": 3})
    with pytest.raises(Refused, match="in use by 1 judge run"):
        verdicts.remove_verdicts(file_import=one)
    for file_import in (two, one):
        verdicts.remove_verdicts(file_import=file_import)
    assert not Judge.objects.exists()
