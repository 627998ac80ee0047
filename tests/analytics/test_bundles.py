"""A project out of one database and into another: the same content, or nothing at all."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import orjson
import pandas as pd
import pytest
from django.conf import settings
from django.utils import timezone

from accounts.models import Project
from accounts.refusals import Refused
from analytics.exporting import bundles
from analytics.ratings import ratings_tables
from annotation import allocation, panels, questionnaires, selections
from annotation.desk import service
from annotation.desk.answers import Answer
from annotation.imports import storage
from annotation.models import (
    Annotation,
    Assignment,
    Campaign,
    Dataset,
    Import,
    Item,
    ItemSelection,
    MeetingDecision,
    ReferenceItem,
    ReferenceScore,
)
from annotation.qualification import guidelines, references
from annotation.readers.ratings import RatingRow
from annotation.readers.rows import set_bounds
from judging.models import Attempt, Call, Judge, JudgeRun, Verdict
from tests import make
from tests.analytics import scene
from tests.annotation import scene as desks
from tests.cast import Cast
from tests.releases.databases import copy_migrated

NASTY = "\ufeff=1+1\r\n\u202eabc\u200d👩‍🔬 e\u0301 ـ\t\u0085\u2028\x0b"

# One process for all commands: each would spend a second on starting.
ELSEWHERE = """
import sys, django
django.setup()
from django.core.management import call_command
from accounts.models import Project
Project.objects.create(slug="elsewhere", name="Elsewhere")
call_command("import_bundle", "elsewhere", sys.argv[1])
call_command("export", "elsewhere", "bundle", "--replies", "--out", sys.argv[2])
"""


def make_scene(cast: Cast) -> Campaign:
    """Desk work with a revision and a desk under way, imported ratings, a judge with a paid call, a second dataset."""
    duty = desks.duty(
        cast, items=[make.item_row(n, title=NASTY, fields={"context": NASTY}) for n in (1, 2, 3)], overlap=2
    )
    for score in (2, 3):
        taken = desks.taken(cast, duty)
        answers = {"fluency": Answer(score=score, rationale=NASTY), "coherence": Answer(score=1)}
        service.submit(assignment=taken, key=taken.key, answers=answers, seconds=1.25)
    again = service.undo_submission(assignment=Assignment.objects.get(pk=taken.pk))
    service.submit(assignment=again, key=again.key, answers={**answers, "fluency": Answer(score=0)}, seconds=2)
    desks.taken(cast, duty)
    campaign = duty.campaign
    rows = [RatingRow(f"d{n}", "mari", "fluency", n, True, False, NASTY, None, None, None, "r.csv", n) for n in (1, 2)]
    opened = Import.objects.create(project=cast.kassa, kind=Import.Kind.RATINGS)
    storage.store_ratings(campaign=campaign, rows=rows, file_import=opened, identified=False)
    run = scene.with_verdicts(campaign, {"fluency": [1, "unparsed", 7]})
    call = Call.objects.create(run=run, item=campaign.dataset.items.first(), state=Call.State.SETTLED)
    attempt = Attempt.objects.create(
        call=call, number=1, outcome="replied", reply={"imported": NASTY}, cost="0.00012", tokens_in=7, latency=0.5
    )
    Verdict.objects.filter(run=run, score=1).update(attempt=attempt)
    make.dataset(cast.kassa, 2, name="Leftovers")
    run.selection = selections.select(campaign=campaign, name=NASTY, rule={"kind": "list", "items": ["d1"]})
    run.save()
    return campaign


@pytest.fixture
def study(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def _qualified(campaign: Campaign) -> None:
    """Guidelines with an example, a reference item with its range, a rule, a decision of a meeting."""
    worked = {"text": NASTY, "criterion": "fluency", "score": 2, "explanation": "Sest."}
    guidelines.publish_guideline(campaign=campaign, language="et", text="Loe.", examples=[worked])
    fluency = campaign.rubric_version.criteria.get(key="fluency")
    marked = ReferenceItem.objects.create(campaign=campaign, item=campaign.dataset.items.last(), purpose="control")
    ReferenceScore.objects.create(reference=marked, criterion=fluency, score=2, lowest=1, highest=2)
    references.set_rule(campaign=campaign, seed=7, control_rate=0.1)
    decided = {"held_on": date(2026, 5, 4), "decision": NASTY, "criterion": fluency, "item": marked.item}
    MeetingDecision.objects.create(campaign=campaign, **decided)
    questionnaires.switch_questionnaire(campaign=campaign, asked=True)


def test_guidelines_references_rules_and_meetings_are_carried(cast: Cast, study: Campaign) -> None:
    _qualified(study)
    content = taken_out(cast.kassa)
    for name, good, bad, sentence in (
        ("guidelines", b'"explanation":"Sest."', b'"explanation":1', "worked examples"),
        ("guidelines", b'"language":"et"', b'"language":"--"', "language"),
        ("meeting_decisions", b"2026-05-04", b"2026-15-04", "a date"),
    ):
        with pytest.raises(Refused, match=sentence):
            loaded(cast.teine, rewritten(content, replaced(f"{name}.jsonl", good, bad)))
    loaded(cast.teine, content)
    assert taken_out(cast.teine) == content
    there = Campaign.objects.get(project=cast.teine)
    assert there.asks_at_close
    assert (there.guidelines.get().text, there.guidelines.get().examples[0]["criterion"]) == ("Loe.", "fluency")
    score = ReferenceScore.objects.get(reference__campaign=there)
    assert (score.lowest, score.score, score.criterion.rubric_version) == (1, 2, there.rubric_version)
    assert (there.qualification_rule.seed, there.qualification_rule.control_rate) == (7, 0.1)
    decided = MeetingDecision.objects.get(campaign=there)
    assert (decided.held_on, decided.recorded_by, decided.item.dataset) == (date(2026, 5, 4), None, there.dataset)


def taken_out(project: Project, **options: Any) -> bytes:
    return b"".join(bundles.bundle_pieces(project, **options))


def loaded(project: Project, content: bytes) -> bundles.Carried:
    return bundles.load_bundle(project=project, name="study.zip", content=BytesIO(content))


def test_out_and_in_and_out_again_is_the_same_file(cast: Cast, study: Campaign) -> None:
    content = taken_out(cast.kassa, replies=True)
    carried = loaded(cast.teine, content)
    assert taken_out(cast.teine, replies=True) == content
    assert (carried.rows["items"], carried.rows["annotations"], carried.rows["ratings"]) == (5, 5, 8)
    there = Campaign.objects.get(project=cast.teine)
    pd.testing.assert_frame_equal(ratings_tables.load(campaign=there), ratings_tables.load(campaign=study))
    assert Item.objects.filter(dataset__project=cast.teine).first().title == NASTY  # type: ignore[union-attr]


def test_a_judge_keeps_what_it_was_made_from(cast: Cast, study: Campaign) -> None:
    first = Judge.objects.get(project=cast.kassa)
    second = Judge.objects.create(project=cast.kassa, name="Made from it", model="m", digest="made", parent=first)
    content = taken_out(cast.kassa)
    loaded(cast.teine, content)
    there = Judge.objects.get(project=cast.teine, name=second.name)
    assert [judge.name for judge in there.ancestry()] == [first.name]
    own = rewritten(content, replaced("judges.jsonl", b'"parent":0', b'"parent":1'))
    with pytest.raises(Refused, match="a parent that comes before the judge"):
        loaded(Project.objects.create(slug="kolmas", name="Kolmas"), own)


def test_work_goes_on_where_the_bundle_was_loaded(cast: Cast, study: Campaign) -> None:
    loaded(cast.teine, taken_out(cast.kassa))
    campaign = Campaign.objects.get(project=cast.teine)
    assert not Assignment.objects.filter(duty__campaign=campaign, state="leased").exists()
    panel = panels.create(project=cast.teine, name="Second", language="et")
    duty = allocation.allocate(campaign=campaign, panel=panel, overlap=1)
    assert duty.selections.count() == 3
    assert Annotation.objects.filter(campaign=campaign, superseded_at=None, assignment__isnull=False).count() == 2


def test_a_bundle_names_nobody_and_may_leave_the_replies(cast: Cast, study: Campaign) -> None:
    content = taken_out(cast.kassa, renumbered=7)
    with ZipFile(BytesIO(content)) as archive:
        told = b"".join(archive.read(name) for name in archive.namelist())
        attempts = orjson.loads(archive.read("attempts.jsonl"))
    for user in (cast.aino, cast.boris, cast.maarika):
        assert user.email.encode() not in told
        assert user.name.encode() not in told
    assert b"mari" not in told
    assert (attempts["reply"], attempts["tokens_in"], attempts["cost"]) == ({}, 7, "0.00012000")


def test_another_engine_holds_the_same_content(cast: Cast, study: Campaign, tmp_path: Path) -> None:
    """Out of PostgreSQL, into SQLite by command, and out again."""
    there, back = tmp_path / "there.zip", tmp_path / "back.zip"
    there.write_bytes(taken_out(cast.kassa, replies=True))
    copy_migrated(tmp_path)
    environment = {**os.environ, "PANELBENCH_DATA_DIR": str(tmp_path), "DATABASE_URL": "", "REDIS_URL": ""}
    command = [sys.executable, "-c", ELSEWHERE, str(there), str(back)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert back.read_bytes() == there.read_bytes()


def rewritten(content: bytes, change: Callable[[dict[str, bytes]], None], *, sign: bool = True) -> bytes:
    """The bundle with members changed; ``sign``: by somebody who puts the manifest right."""
    with ZipFile(BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    if sign:
        manifest = orjson.loads(members["manifest.json"])
        for name, facts in manifest["members"].items():
            if (found := members.get(f"{name}.jsonl")) is not None:
                facts |= {"bytes": len(found), "sha256": hashlib.sha256(found).hexdigest()}
        members["manifest.json"] = orjson.dumps(manifest)
    made = BytesIO()
    with ZipFile(made, "w", ZIP_DEFLATED) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return made.getvalue()


def replaced(file: str, old: bytes, new: bytes) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        assert old in members[file]
        members[file] = members[file].replace(old, new, 1)

    return change


ADDED = {
    2: {
        "annotations": ["blind"],
        "judges": ["concurrency", "timeout", "tries"],
        "runs": ["key", "width"],
        "attempts": ["estimated", "reserved"],
    },
    3: {
        "duties": ["chosen"],
        "runs": ["perturbation", "selection"],
        "calls": ["change"],
        "verdicts": ["change"],
    },
    4: {"judges": ["parent"]},
    5: {
        "annotations": ["swapped"],
        "duties": ["taxonomy", "criteria_sets", "priority", "due_at", "quota", "paused"],
        "assignments": ["criteria_set"],
        "criteria": ["evidence_rule"],
    },
    6: {"campaigns": ["asks_at_close"], "ratings": ["given_version", "given_score"]},
    7: {
        "annotations": ["certainty"],
        "runs": ["bills_from"],
        "calls": ["losses"],
        "attempts": ["doubt"],
        "verdicts": ["confidence", "expected", "reason"],
    },
}
"""By version and member, the fields that it brought."""
QUALIFYING = ["guidelines", "qualification_rules", "reference_items", "reference_scores", "meeting_decisions"]
NEW_MEMBERS = {
    3: ["item_selections", "selected_items"],
    4: ["adjudications"],
    5: ["taxonomies", "evidence"],
    6: QUALIFYING,
    8: ["dataset_checkups", "curations", "curated_items"],
    9: [
        *("plans", "plan_generators", "families", "realisations", "generation_attempts", "plan_datasets"),
        *("prompt_collections", "prompt_slots", "prompt_writers", "prompts", "prompt_versions", "prompt_datasets"),
        *("writing_duties", "human_texts", "text_submissions", "text_decisions"),
    ],
}


def as_version_1(members: dict[str, bytes]) -> None:
    as_version(1, members)


def as_version_2(members: dict[str, bytes]) -> None:
    as_version(2, members)


def as_version(version: int, members: dict[str, bytes]) -> None:
    """Rewrite a bundle as that version wrote it."""
    newer = [later for later in sorted({*ADDED, *NEW_MEMBERS}) if later > version]
    for name, added in ((name, added) for later in newer for name, added in ADDED.get(later, {}).items()):
        rows = [orjson.loads(line) for line in members[f"{name}.jsonl"].splitlines()]
        kept = [{key: value for key, value in row.items() if key not in added} for row in rows]
        members[f"{name}.jsonl"] = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in kept)
    manifest = orjson.loads(members["manifest.json"])
    for name in (name for later in newer for name in NEW_MEMBERS.get(later, ())):
        del members[f"{name}.jsonl"], manifest["members"][name]
    members["manifest.json"] = orjson.dumps({**manifest, "version": version})


def test_a_bundle_of_version_2_has_no_selections(cast: Cast, study: Campaign) -> None:
    loaded(cast.teine, rewritten(taken_out(cast.kassa), as_version_2))
    assert Assignment.objects.filter(duty__campaign__project=cast.teine, duty__chosen=None).exists()
    assert not ItemSelection.objects.filter(campaign__project=cast.teine).exists()


def test_a_bundle_of_version_1_is_read_and_what_it_lacks_is_not_known(cast: Cast, study: Campaign) -> None:
    content = taken_out(cast.kassa, replies=True)
    loaded(cast.teine, rewritten(content, as_version_1))
    there = Annotation.objects.filter(campaign__project=cast.teine)
    assert set(there.values_list("blind", flat=True)) == {None}
    own = Annotation.objects.filter(campaign=study).values_list("submitted_at", "seconds").order_by("pk")
    assert list(there.values_list("submitted_at", "seconds").order_by("pk")) == list(own)
    assert not Attempt.objects.get(call__run__project=cast.teine).estimated


@pytest.mark.both_databases
def test_reasons_doubts_losses_and_probabilities_come_back_equal(cast: Cast, study: Campaign) -> None:
    run = JudgeRun.objects.get(project=cast.kassa)
    JudgeRun.objects.filter(pk=run.pk).update(bills_from=timezone.now())
    Call.objects.filter(run=run).update(losses=2)
    Attempt.objects.filter(call__run=run).update(doubt=Attempt.Doubt.TOO_FEW)
    reason = {"code": "differing", "rung": "prose", "found": NASTY}
    Verdict.objects.filter(run=run, status="unparsed").update(reason=reason, expected=1.25, confidence=0.5)
    content = taken_out(cast.kassa, replies=True)
    loaded(cast.teine, content)
    assert taken_out(cast.teine, replies=True) == content
    there = JudgeRun.objects.get(project=cast.teine)
    assert there.bills_from == JudgeRun.objects.get(pk=run.pk).bills_from
    assert (there.calls.get().losses, there.calls.get().attempts.get().doubt) == (2, "too_few")
    verdict = there.verdicts.get(status="unparsed")
    assert (verdict.reason, verdict.expected, verdict.confidence) == (reason, 1.25, 0.5)


@pytest.mark.both_databases
def test_the_reply_is_not_quoted_in_a_bundle_without_replies(cast: Cast, study: Campaign) -> None:
    run = JudgeRun.objects.get(project=cast.kassa)
    reason = {"code": "nothing", "rung": "text", "found": "Ei oska öelda “سر”"}
    Verdict.objects.filter(run=run, status="unparsed").update(reason=reason)
    content = taken_out(cast.kassa)
    loaded(cast.teine, content)
    assert taken_out(cast.teine) == content
    verdict = Verdict.objects.get(run__project=cast.teine, status="unparsed")
    assert verdict.reason == {**reason, "found": "…"}


@pytest.mark.parametrize(
    ("good", "wrong"),
    [
        (b'"code":"differing"', b'"code":"none"'),
        (b'"code":"differing"', b'"code":1'),
        (b'"code":"differing"', b'"code":"differing","more":1'),
        (b'"rung":""', b'"rung":"roof"'),
    ],
)
def test_a_reason_that_no_reader_of_replies_gives_is_refused(
    cast: Cast, study: Campaign, good: bytes, wrong: bytes
) -> None:
    reason = {"code": "differing", "rung": "", "found": "3 or 4"}
    Verdict.objects.filter(run__project=cast.kassa, status="unparsed").update(reason=reason)
    content = rewritten(taken_out(cast.kassa, replies=True), replaced("verdicts.jsonl", good, wrong))
    with pytest.raises(Refused, match=r"why there is no score|a rung of"):
        loaded(cast.teine, content)


def test_whether_ratings_were_blind_is_carried(cast: Cast, study: Campaign) -> None:
    loaded(cast.teine, taken_out(cast.kassa))
    for project in (cast.kassa, cast.teine):
        marks = Annotation.objects.filter(campaign__project=project).order_by("pk").values_list("blind", flat=True)
        assert list(marks) == [True, True, True, None, None]


REFUSALS = {
    "another word": (replaced("ratings.jsonl", b'"score":2.0', b'"score":3.0'), False, "digest"),
    "a newer version": (replaced("manifest.json", b'"version": 11', b'"version": 12'), False, "newer Panelbench"),
    "no member": (lambda members: members.pop("ratings.jsonl"), False, "ratings.jsonl"),
    "a member more": (lambda members: members.update({"more.jsonl": b""}), False, "more.jsonl"),
    "no manifest": (lambda members: members.pop("manifest.json"), False, "manifest.json"),
    "a foreign id": (replaced("annotations.jsonl", b'"item":0', b'"item":99'), True, "the number of a row of items"),
    "a field more": (replaced("items.jsonl", b'{"attributes"', b'{"user":1,"attributes"'), True, "the fields"),
    "a field less": (replaced("annotations.jsonl", b'"blind":true,', b""), True, "the fields"),
    "a score of no number": (replaced("ratings.jsonl", b'"score":2.0', b'"score":"2"'), True, "a number"),
    "a set of criteria that the duty lacks": (
        replaced("assignments.jsonl", b'"criteria_set":0', b'"criteria_set":2'),
        True,
        "a criteria_set from 0 to 0",
    ),
    "a set that names no criterion": (
        replaced("duties.jsonl", b'"criteria_sets":[]', b'"criteria_sets":[["nothing"]]'),
        True,
        "sets with a criterion of the rubric, not nothing",
    ),
    "a rule of a selection that says nothing": (
        replaced("item_selections.jsonl", b'"kind":"list"', b'"kind":"draw"'),
        True,
        "a rule of a selection",
    ),
    "a probability above 1": (
        replaced("selected_items.jsonl", b'"probability":1.0', b'"probability":1.5'),
        True,
        "selected_items.jsonl, line 1: found",
    ),
    "a selected item that is none": (
        replaced("selected_items.jsonl", b'"item":0', b'"item":99'),
        True,
        "the number of a row of items",
    ),
    "a selected item of another dataset": (
        replaced("selected_items.jsonl", b'"item":0', b'"item":3'),
        True,
        "items of the dataset of the selection’s campaign",
    ),
    "a wave before the first": (replaced("selections.jsonl", b'"wave":1', b'"wave":0'), True, "a wave of 1 or more"),
    "no wave": (replaced("selections.jsonl", b',"wave":1', b""), True, "the fields"),
    "no JSON": (replaced("ratings.jsonl", b"{", b""), True, "one JSON object per line"),
    "a row less": (lambda members: members.update({"skips.jsonl": b"{}\n"}), True, "rows"),
    "a rating twice": (replaced("ratings.jsonl", b'"annotation":1', b'"annotation":0'), True, "contradict"),
}


@pytest.mark.parametrize("fault", REFUSALS)
def test_what_was_changed_or_is_not_whole_is_refused_and_nothing_is_stored(
    cast: Cast, study: Campaign, fault: str
) -> None:
    change, sign, said = REFUSALS[fault]
    content = rewritten(taken_out(cast.kassa), change, sign=sign)  # type: ignore[arg-type]
    with pytest.raises(Refused) as refused:
        loaded(cast.teine, content)
    assert said in refused.value.sentence
    assert not Dataset.objects.filter(project=cast.teine).exists()
    assert not Import.objects.filter(project=cast.teine).exists()


def test_a_bundle_that_unpacks_to_too_much_is_refused_before_it_is_read(cast: Cast, study: Campaign) -> None:
    content = rewritten(taken_out(cast.kassa), lambda members: members.update({"skips.jsonl": b" " * 3 * 2**20}))
    set_bounds(**settings.IMPORT_BOUNDS | {"unpacked_mb": 2})
    try:
        with pytest.raises(Refused) as refused:
            loaded(cast.teine, content)
    finally:
        set_bounds(**settings.IMPORT_BOUNDS)
    assert "more than 2 MB when unpacked" in refused.value.sentence and "IMPORT_UNPACKED_MB" in refused.value.sentence
    assert not Dataset.objects.filter(project=cast.teine).exists()


@pytest.mark.parametrize("place", [0, 30, 500, -300, -10])
def test_a_damaged_file_is_refused(cast: Cast, study: Campaign, place: int) -> None:
    content = bytearray(taken_out(cast.kassa))
    content[place] ^= 0xFF
    try:
        loaded(cast.teine, bytes(content))
    except Refused:
        assert not Dataset.objects.filter(project=cast.teine).exists()
    else:  # a byte that says nothing, such as a date
        assert taken_out(cast.teine) == taken_out(cast.kassa)


def test_half_a_file_is_refused(cast: Cast, study: Campaign) -> None:
    content = taken_out(cast.kassa)
    with pytest.raises(Refused, match="no zip"):
        loaded(cast.teine, content[: len(content) // 2])


def test_a_project_with_something_in_it_takes_no_bundle(cast: Cast, study: Campaign) -> None:
    with pytest.raises(Refused, match="empty project"):
        loaded(cast.kassa, taken_out(cast.kassa))


def test_a_run_under_way_waits_where_it_is_loaded(cast: Cast, study: Campaign) -> None:
    run = scene.with_verdicts(study, {"fluency": [1, 1, 1]}, name="Busy")
    Call.objects.create(run=run, item=study.dataset.items.first(), criterion=None)
    loaded(cast.teine, taken_out(cast.kassa))
    states = dict(run.__class__.objects.filter(project=cast.teine).values_list("judge__name", "state"))
    assert states == {"Kohtunik": "running", "Busy": "paused"}


@pytest.mark.both_databases
def test_rows_that_a_rule_of_the_database_refuses_are_named_in_words(cast: Cast, study: Campaign) -> None:
    """The refusal named the rule, such as `rating_score_iff_scored`, which means nothing to whoever has the file."""

    def twice(members: dict[str, bytes]) -> None:
        rows = members["items.jsonl"].splitlines(keepends=True)
        members["items.jsonl"] = b"".join([rows[0], rows[0], *rows[2:]])

    with pytest.raises(Refused) as refused:
        loaded(cast.teine, rewritten(taken_out(cast.kassa), twice))
    assert refused.value.code == "bundle_refused"
    assert "rows that contradict each other (items)" in refused.value.sentence
    assert not re.search(r"[a-z]_[a-z]|constraint|UNIQUE|duplicate key", refused.value.sentence), refused.value.sentence
    assert Item.objects.filter(dataset__project=cast.teine).count() == 0
