"""The columns of a known study that nothing is made of are named: by page, API and command alike."""

from __future__ import annotations

import io
import json
from pathlib import Path

from django.core.management import call_command

from annotation.models import Item, Rating
from tests.cast import Cast
from tests.judging.test_study_imports import opened, page, stored

RECORD = {
    "text": json.dumps({"prev_agent": "_", "prev_user": "_", "agent": "Well?", "user": "Go away"}),
    "annotation task": "abusiveness detection",
    "number of annotations": 2,
    "annotations": "-1,1",
    "annotators": "Ann1,Ann2",
    "lang": "en",
    "hard_label": "1",
    "soft_label": {"0": 0.5, "1": 0.5},
    "split": "train",
    "other_info": {"bot": "E.L.I.Z.A.", "other_annotations": {"ableist": "0,1", "target.system": "1,1"}},
}
FILE = json.dumps({"1": RECORD, "2": {**RECORD, "annotations": "1,1"}}).encode()
LEFT_OUT = ["hard_label", "number of annotations", "soft_label.0", "soft_label.1"]


def test_what_no_part_takes_is_named_and_what_one_takes_is_not(cast: Cast, tmp_path: Path) -> None:
    boris = cast.client("boris")
    file_import = opened(boris, {"ConvAbuse_train.json": FILE})
    seen = boris.get(f"/api/v1/projects/kassa/study-imports/{file_import.pk}/preview/").json()
    assert sorted(seen["report"]["left_out"]) == LEFT_OUT
    sentence = f"These columns are not used by any part of the import: {', '.join(seen['report']['left_out'])}."
    assert seen["report"]["notes"] == [sentence]
    assert sentence in page(boris, file_import)

    (tmp_path / "ConvAbuse_train.json").write_bytes(FILE)
    told = io.StringIO()
    call_command("import_study", "kassa", str(tmp_path / "ConvAbuse_train.json"), "--dry-run", stdout=told)
    assert sentence in told.getvalue()

    assert stored(boris, file_import).state == "stored"
    assert sentence in page(boris, file_import)
    assert Rating.objects.count() == 2 * 2 * 3  # items, raters, criteria
    assert [turn["speaker"] for turn in Item.objects.first().turns] == ["agent", "user", "agent", "user"]
