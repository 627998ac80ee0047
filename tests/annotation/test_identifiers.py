"""Items and raters that a file spells in NFD are those that another spells in NFC (issue 26, C16)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal
from unicodedata import normalize

import pytest

from accounts.refusals import Refused
from annotation import campaigns
from annotation.models import Annotator, Import, Item, Rating
from judging import judges
from tests import make
from tests.annotation.test_commands import run
from tests.annotation.test_import_pages import file, page, uploaded
from tests.cast import Cast

Form = Literal["NFC", "NFD"]
NAMES = ["café 1", "«Jüri» 2", "سُؤال 3", "naïve-4"]


def text_of(form: Form, rows: list[str]) -> str:
    return normalize(form, "\n".join(rows) + "\n")


@pytest.mark.both_databases
def test_ratings_in_one_form_meet_items_and_raters_in_the_other(cast: Cast, tmp_path: Path) -> None:
    """Before: every rating was refused, because no item had its id."""
    boris = cast.client("boris")
    items = [f"{name},et,Vastus {place}, scène {place} " for place, name in enumerate(NAMES)]
    table = text_of("NFD", ["id,language,answer,scenario", *items])
    file_import = uploaded(boris, file("t.csv", table))
    noted = "Items named in another Unicode form than NFC, or with outer spaces: 4"
    assert noted in page(boris, f"/p/kassa/imports/{file_import.pk}/")
    (tmp_path / "t.csv").write_text(table, encoding="utf-8")
    stored = run("import_dataset", tmp_path / "t.csv", "--name", "Kõik 4 küsimust")
    assert stored.status == 0, stored.problems
    dataset = Item.objects.latest("pk").dataset
    ours = Item.objects.of(dataset)
    assert sorted(ours.values_list("external_id", flat=True)) == sorted(NAMES)
    assert sorted(ours.values_list("scenario", flat=True)) == [f"scène {place}" for place in range(4)]

    name = "Zoë & Élise"
    campaign = campaigns.open_campaign(
        project=cast.kassa, name=name, dataset=dataset, rubric_version=make.rubric(cast.kassa)
    )
    # An annotator and an item as an older version stored them.
    Annotator.objects.create(project=campaign.project, pseudonym=normalize("NFD", "Zoë"))
    ours.filter(external_id="café 1").update(external_id=normalize("NFD", "café 1"))
    rows = [f"{name},Zoë,fluency,1" for name in NAMES]
    first = text_of("NFC", ["item,rater,criterion,score", *rows]) + text_of("NFD", ["naïve-4,Élise,fluency,2"])
    (tmp_path / "r.csv").write_text(first + "naïve-4,Élise,fluency,2\n", encoding="utf-8")
    done = run("import_ratings", tmp_path / "r.csv", "--campaign", campaign.name)
    assert done.status == 0, done.problems
    assert Rating.objects.filter(annotation__campaign=campaign).count() == 5
    people = Annotator.objects.filter(project=campaign.project, identified=True)
    assert {"Zoë", "Élise"} <= {normalize("NFC", one.pseudonym) for one in people}
    assert Rating.objects.filter(annotation__annotator__pseudonym=normalize("NFD", "Zoë")).count() == 4
    assert not people.filter(pseudonym="Zoë").exists()
    assert "Raters named in another Unicode form than NFC" in "\n".join(done.lines)
    assert Import.objects.latest("pk").kind == Import.Kind.RATINGS


@pytest.mark.both_databases
def test_what_people_type_meets_names_in_the_other_form(cast: Cast, provider: Any) -> None:
    """Search, filters, questions, and names of judges: a person can't see which form their keyboard writes."""
    rows = [
        make.item_row(n, external_id=name, title=f"Pakk «é» {n}", scenario="scène", generator="ätläs")
        for n, name in enumerate(NAMES)
    ]
    campaign = make.campaign(cast.kassa, items=rows)
    make.rated(campaign, {"fluency": {"Zoë “Z”": [0, 1, 2, 3], "Élise": [0, 1, 2, 2], "Bo": [1, 1, 2, 2]}})
    boris, dataset = cast.client("boris"), campaign.dataset
    # As an older version stored it.
    Item.objects.of(dataset).filter(external_id=NAMES[1]).update(external_id=normalize("NFD", NAMES[1]))
    for form in ("NFC", "NFD"):
        words = {"q": normalize(form, "Jüri"), "scenario": normalize(form, "scène")}
        found = boris.get(f"/api/v1/projects/kassa/datasets/{dataset.pk}/items/", words).json()["results"]
        assert [normalize("NFC", row["external_id"]) for row in found] == [NAMES[1]]
        asked = {"raters": [normalize(form, "Zoë “Z”"), normalize(form, "Élise")]}
        answer = boris.get(f"/api/v1/projects/kassa/campaigns/{campaign.pk}/numbers/", asked)
        assert answer.status_code in (200, 202), (form, answer.json())
        asked |= {"where": normalize(form, "generator=ätläs")}
        answer = boris.get(f"/api/v1/projects/kassa/campaigns/{campaign.pk}/estimates/", asked)
        assert answer.status_code in (200, 202), (form, answer.json())
    named: dict[str, Any] = {"provider": "simulated", "model": "sim-steady"}
    judges.declare(project=cast.kassa, name=normalize("NFC", "Jüge"), **named)
    with pytest.raises(Refused, match="Another judge of this project is called"):
        judges.declare(project=cast.kassa, name=normalize("NFD", "Jüge"), **named, parameters={"temperature": 1})
