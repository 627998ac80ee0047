"""What only the database can refuse or point out: items, criteria and raters that are not there, and near ones."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command

from annotation.imports import previews
from annotation.imports.previews import Preview
from annotation.models import Annotator, Campaign, Import, Panel
from annotation.readers.guessing import propose_mapping
from annotation.readers.mapping import Mapping
from judging.imports import verdicts
from tests import make
from tests.cast import Cast

HEAD = "item,rater,criterion,score\n"


def make_scene(cast: Cast) -> Campaign:
    return make.campaign(cast.kassa)


@pytest.fixture
def campaign(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def looked(campaign: Campaign, *lines: str, **target_fields: object) -> Preview:
    files = [("r.csv", (HEAD + "\n".join(lines) + "\n").encode())]
    mapping = propose_mapping("ratings", files, Mapping(**target_fields))  # type: ignore[arg-type]
    target = {"campaign": campaign.pk}
    return previews.preview_files(
        project=campaign.project, kind="ratings", files=files, mapping=mapping, target_fields=target
    )


def test_a_criterion_that_the_rubric_has_not_got_is_named_with_the_nearest(campaign: Campaign) -> None:
    seen = looked(campaign, "d1,A,Fluencey,1", "d1,A,warmth,1")
    near, far = seen.problems
    assert (near.file, near.line, near.column, near.found) == ("r.csv", 2, "criterion", "“Fluencey”")
    assert near.expected == "did you mean “fluency”? one of the rubric's criteria: fluency, coherence"
    assert far.expected == "one of the rubric's criteria: fluency, coherence"


@pytest.mark.parametrize("written", ["D1", "d_1", "d-01", "d1.0"])
def test_an_item_that_is_spelt_another_way_is_named(campaign: Campaign, written: str) -> None:
    (problem,) = looked(campaign, f"{written},A,fluency,1").problems
    assert (problem.line, problem.column, problem.code) == (2, "item", "unknown_item")
    assert problem.expected == "did you mean “d1”? the id of an item in the dataset"


def test_an_item_that_is_like_none_is_said_to_be_unknown(campaign: Campaign) -> None:
    (problem,) = looked(campaign, "d77,A,fluency,1").problems
    assert (problem.found, problem.expected) == ("“d77”", "the id of an item in the dataset")


def test_verdicts_are_answered_alike(campaign: Campaign) -> None:
    files = [("v.csv", b"item,judge,criterion,score\nD1,J,fluency,1\nd1,J,coherense,1\n")]
    target = {"dataset": campaign.dataset.pk, "rubric_version": campaign.rubric_version.pk}
    mapping = propose_mapping("verdicts", files, Mapping())
    seen = verdicts.preview_verdicts(project=campaign.project, files=files, mapping=mapping, target_fields=target)
    assert [problem.expected.split("?")[0] for problem in seen.problems] == [
        "did you mean “d1”",
        "did you mean “coherence”",
    ]


def test_raters_who_are_new_here_already_or_on_no_panel_are_told_apart(campaign: Campaign) -> None:
    here = [Annotator.objects.create(project=campaign.project, pseudonym=name) for name in ("on", "off")]
    Panel.objects.create(project=campaign.project, name="P").seats.create(annotator=here[0])
    notes = looked(campaign, *(f"d1,{rater},fluency,1" for rater in ("on", "off", "new"))).report.notes
    new, known, unseated = notes
    assert new.startswith("Raters who are not known in this project: new; an annotator is created for each name")
    assert known == "Raters taken for the annotators of that name in this project: on, off."
    assert unseated == "Of these, on no panel: off."


def test_raters_called_by_an_address_are_pointed_out_until_they_have_codes(campaign: Campaign) -> None:
    lines = ["d1,marta@example.org,fluency,1", "d1,r@example.org,fluency,2"]
    assert "“marta@example.org”, “r@example.org”" in looked(campaign, *lines).report.notes[0]
    codes = {"rater": {"marta@example.org": "rater-1", "r@example.org": "rater-2"}}
    assert not any("addresses" in note for note in looked(campaign, *lines, values=codes).report.notes)


def test_a_column_called_by_an_address_is_pointed_out_everywhere_before_anything_is_stored(
    cast: Cast, tmp_path: Path
) -> None:
    content, boris = "id,language,answer,maria@ut.ee\nx,et,Tere!,1\n", cast.client("boris")
    boris.post("/p/kassa/imports/new/", {"files": [SimpleUploadedFile("wide.csv", content.encode())]})
    opened = Import.objects.get()
    (tmp_path / "wide.csv").write_text(content, encoding="utf-8")
    out = StringIO()
    call_command("import_dataset", str(tmp_path / "wide.csv"), "--project", "kassa", "--dry-run", stdout=out)
    page = boris.get(f"/p/kassa/imports/{opened.pk}/").content.decode()
    preview = boris.get(f"/api/v1/projects/kassa/imports/{opened.pk}/preview/").content.decode()
    for shown in (page, preview, out.getvalue()):
        assert "wide.csv: the names of these columns are e-mail addresses: “maria@ut.ee”." in shown
