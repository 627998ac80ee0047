"""Imports below the edges: files kept as they came, nothing half-loaded, nothing stored twice."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from io import BytesIO

import pytest
from django.utils import timezone

from accounts import jobs
from accounts.models import AuditEntry
from accounts.refusals import Refused
from annotation.imports import import_jobs, lifecycle, opening, undoing
from annotation.imports import storage as storing
from annotation.imports.import_jobs import ImportLease
from annotation.imports.storage import FileRefused
from annotation.models import Annotation, Annotator, Campaign, Dataset, Import, Item, Rating
from annotation.readers.guessing import guess_kind, propose_mapping
from annotation.readers.items import ItemRow
from annotation.readers.mapping import Mapping
from annotation.readers.problems import Problems
from tests import make, workers
from tests.annotation.scene import duty, taken
from tests.cast import Cast

JSONL = '{"id": "a", "language": "et", "answer": "Tere"}\r\n{"id": "b", "language": "ar", "answer": "نعم"}'.encode()
CALIBRATION = b"reviewer_name,item,criterion,score\nA1,d1,fluency,2\nA1,d2,fluency,\n"
MANUAL = b"calibration_reviewer_name,item,criterion,score\nA1,d1,fluency,2.0\nA2,d1,fluency,3\n"


def opened(cast: Cast, kind: str, *files: tuple[str, bytes], **parts: object) -> Import:
    return opening.open_import(project=cast.kassa, kind=kind, files=files, **parts)  # type: ignore[arg-type]


def test_files_are_kept_byte_for_byte_under_their_own_names(cast: Cast) -> None:
    file_import = opened(cast, "dataset", ("../folder\\dialogues.jsonl", JSONL), ("empty.csv", b""))
    kept = file_import.files.order_by("pk")
    assert [each.name for each in kept] == ["dialogues.jsonl", "empty.csv"]
    with file_import.opened() as files:
        assert [raw.read() for _name, raw in files] == [JSONL, b""]  # type: ignore[union-attr]
    assert [each.size for each in kept] == [len(JSONL), 0]


def test_a_stream_is_kept_from_its_start(cast: Cast) -> None:
    stream = BytesIO(JSONL)
    stream.seek(10)
    file_import = opening.open_import(project=cast.kassa, kind="dataset", files=[("d.jsonl", stream)])
    assert lifecycle.carry_out(file_import=file_import).report["stored"] == 2


def test_files_of_one_study_are_mapped_each_by_its_own_names(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa)
    files = [("calibration.csv", CALIBRATION), ("manual.csv", MANUAL)]
    assert guess_kind(files) == "ratings"
    file_import = opened(cast, "ratings", *files, target={"campaign": campaign.pk})
    report = lifecycle.carry_out(file_import=file_import).report
    assert [report[name] for name in ("read", "stored", "collapsed", "missing")] == [4, 2, 1, 1]


def test_what_is_said_about_a_field_replaces_the_guess_about_it() -> None:
    file = ("r.csv", b"id,uid,annotator,label,category\n1,a,A1,2,x\n")
    said = Mapping(columns={"uid": "item"}, constants={"criterion": "irony"}, ignore=("annotator",))
    assert propose_mapping("ratings", [file], said).columns == {"label": "score", "uid": "item"}


def test_the_same_import_is_stored_once_however_often_it_is_asked_for(cast: Cast) -> None:
    file_import = opened(cast, "dataset", ("d.jsonl", JSONL))
    lifecycle.start(file_import=file_import)
    same = Import.objects.get(pk=file_import.pk)
    lifecycle.finish(file_import=file_import)
    with pytest.raises(Refused, match="already stored"):
        lifecycle.finish(file_import=same)
    assert (Dataset.objects.count(), Item.objects.count()) == (1, 2)
    assert Import.objects.get(pk=file_import.pk).state == "stored"
    with pytest.raises(Refused, match="Reload the page"):
        lifecycle.carry_out(file_import=same)


def test_an_interrupted_import_leaves_nothing_that_shows_and_can_be_started_again(cast: Cast) -> None:
    def broken() -> Iterator[ItemRow]:
        yield from (make.item_row(number) for number in range(1, 1_501))
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        storing.store(project=cast.kassa, name="Half", items=broken())
    assert (Dataset.objects.count(), Item.objects.count()) == (0, 0)

    abandoned = Dataset.objects.create(project=cast.kassa, name="Killed")
    assert storing.sweep(older_than=timedelta(seconds=-1)) == 1
    assert not Dataset.objects.filter(pk=abandoned.pk).exists()


def test_an_import_is_held_by_one_and_taken_up_by_another_when_that_one_falls_silent(cast: Cast) -> None:
    file_import = opened(cast, "dataset", ("d.jsonl", JSONL), actor=cast.boris)
    lifecycle.start(file_import=file_import)
    dead = Import.objects.get(pk=file_import.pk)
    with ImportLease(dead):
        with pytest.raises(Refused, match="being stored"):
            lifecycle.finish(file_import=file_import)
        assert Import.objects.get(pk=file_import.pk).state == "storing", "who does not hold it does not fail it"
        half = Dataset.objects.create(project=cast.kassa, name="d", file_import=file_import)
        assert jobs.sweep_jobs() == [], "a young lease still runs"
        assert jobs.sweep_jobs(now=workers.long_after()) == [dead.job]
        lifecycle.finish(file_import=Import.objects.get(pk=file_import.pk))
        assert not Dataset.objects.filter(pk=half.pk).exists(), "what was staged before is cleared"
        assert (Dataset.objects.get().state, Item.objects.count()) == ("ready", 2)
        with pytest.raises(Refused, match="already stored"):
            import_jobs.settle(dead)


def test_an_import_that_kills_whoever_stores_it_is_given_up(cast: Cast) -> None:
    file_import = opened(cast, "dataset", ("d.jsonl", JSONL), actor=cast.boris)
    lifecycle.start(file_import=file_import)
    for _try in range(jobs.MOST_TRIES):
        with ImportLease(Import.objects.get(pk=file_import.pk)):
            pass
        freed = jobs.sweep_jobs(now=workers.long_after())
    assert freed == []
    file_import.refresh_from_db()
    assert file_import.state == "failed" and "interrupted 3 times" in file_import.report["sentence"]
    assert lifecycle.carry_out(file_import=file_import).state == "stored"


def test_a_young_import_is_not_swept(cast: Cast) -> None:
    Dataset.objects.create(project=cast.kassa, name="Loading")
    lifecycle.start(file_import=opened(cast, "dataset", ("d.jsonl", JSONL)))
    assert (storing.sweep(), jobs.sweep_jobs()) == (0, [])


def test_names_beyond_their_columns_are_refused_with_their_line(cast: Cast) -> None:
    long = f'{{"id": "{"x" * 201}", "language": "et", "answer": "Tere"}}\n'.encode()
    with pytest.raises(FileRefused) as refused:
        lifecycle.carry_out(file_import=opened(cast, "dataset", ("d.jsonl", JSONL + b"\n" + long)))
    assert [(problem.line, problem.code) for problem in refused.value.problems] == [(3, "too_long")]
    assert Dataset.objects.count() == 0


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"d9,A1,fluency,1", "unknown_item"),
        (b"d1,A1,tone,1", "unknown_criterion"),
        (b"d1,A1,fluency,1.5", "off_scale"),
        (b"d1,A1,fluency,N/A", "na_not_allowed"),
        (b"d1," + b"A" * 81 + b",fluency,1", "too_long"),
        (b"d1,A0,fluency,1", "conflict"),
    ],
)
def test_a_rating_that_does_not_fit_keeps_all_others_out(cast: Cast, line: bytes, code: str) -> None:
    campaign = make.campaign(cast.kassa)
    make.rated(campaign, {"fluency": {"A0": [3, None, None, None]}})
    text = b"item,rater,criterion,score\nd2,A1,fluency,2\n" + line
    with pytest.raises(FileRefused) as refused:
        lifecycle.carry_out(file_import=opened(cast, "ratings", ("r.csv", text), target={"campaign": campaign.pk}))
    assert dict(refused.value.problems.codes) == {code: 1}
    assert Rating.objects.count() == 1


def test_a_scale_that_ends_elsewhere_is_another_scale(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa)
    text = b"item,rater,criterion,score,rating_max\nd1,A1,fluency,2,5\n"
    with pytest.raises(FileRefused) as refused:
        lifecycle.carry_out(file_import=opened(cast, "ratings", ("r.csv", text), target={"campaign": campaign.pk}))
    assert [problem.code for problem in refused.value.problems] == ["other_scale"]


def test_ratings_without_a_place_to_go_say_so(cast: Cast) -> None:
    file_import = opened(cast, "ratings", ("r.csv", CALIBRATION))
    with pytest.raises(Refused, match="Choose the campaign"):
        lifecycle.carry_out(file_import=file_import)
    assert Import.objects.get(pk=file_import.pk).state == "failed"


def test_undoing_ratings_spares_what_others_gave(cast: Cast) -> None:
    work = duty(cast)
    taken(cast, work)
    campaign = work.campaign
    make.rated(campaign, {"fluency": {"A9": [3, None, None]}})
    file_import = opened(cast, "ratings", ("m.csv", MANUAL), target={"campaign": campaign.pk})
    lifecycle.carry_out(file_import=file_import)
    assert set(Annotator.objects.filter(user=None).values_list("pseudonym", flat=True)) == {"A1", "A2", "A9"}
    undoing.undo(file_import=file_import)
    assert set(Annotator.objects.filter(user=None).values_list("pseudonym", flat=True)) == {"A9"}
    assert (Annotation.objects.count(), Campaign.objects.count()) == (1, 1)
    assert AuditEntry.objects.filter(verb="undo import", subject_pk=file_import.pk).count() == 1


def test_undoing_takes_the_campaign_along_that_was_opened_for_it(cast: Cast) -> None:
    dataset, version = make.dataset(cast.kassa), make.rubric(cast.kassa)
    target = {"dataset": dataset.pk, "rubric_version": version.pk, "name": "Imported"}
    file_import = opened(cast, "ratings", ("m.csv", MANUAL), target=target)
    lifecycle.carry_out(file_import=file_import)
    assert Campaign.objects.get().name == "Imported"
    undoing.undo(file_import=file_import)
    assert (Campaign.objects.count(), Annotation.objects.count()) == (0, 0)
    lifecycle.carry_out(file_import=Import.objects.get(pk=file_import.pk))
    assert Annotation.objects.count() == 2


def test_only_what_is_not_stored_can_be_mapped_or_discarded(cast: Cast) -> None:
    file_import = opened(cast, "dataset", ("d.jsonl", JSONL))
    lifecycle.carry_out(file_import=file_import)
    with pytest.raises(Refused):
        lifecycle.revise(file_import=file_import, mapping=Mapping())
    with pytest.raises(Refused, match="Undo it first"):
        undoing.discard(file_import=file_import)
    assert file_import.state_since <= timezone.now()


def test_problems_beyond_the_limit_are_counted(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa)
    lines = b"".join(b"x%d,A1,fluency,1\n" % number for number in range(300))
    with pytest.raises(FileRefused) as refused:
        lifecycle.carry_out(
            file_import=opened(
                cast, "ratings", ("r.csv", b"item,rater,criterion,score\n" + lines), target={"campaign": campaign.pk}
            )
        )
    problems: Problems = refused.value.problems
    assert (len(problems), len(problems.shown), problems.more) == (300, 200, 100)
