"""What an item without a title is called, and what a new duty begins with."""

from __future__ import annotations

import pytest

from annotation import panels
from annotation.blinding import LONGEST_HEADING, heading_of, lay_out
from annotation.desk import service
from tests import make
from tests.annotation import scene
from tests.cast import Cast

LONG = "Tere! See siin on üks väga pikk lause, mida keegi lõpuni ei loe, ja ta läheb edasi."


def test_a_heading_is_the_title_or_the_first_words_that_are_shown() -> None:
    turns = [{"speaker": "a", "text": "  \n"}, {"speaker": "b", "text": LONG}]
    heading = heading_of("", lay_out(fields={}, turns=turns))
    assert heading == "Tere! See siin on üks väga pikk lause, mida keegi lõpuni ei…"
    assert len(heading) <= LONGEST_HEADING + 1
    assert heading_of(" Pakk ", lay_out(fields={}, turns=turns)) == "Pakk"
    assert (
        heading_of("", lay_out(fields={}, turns=[{"speaker": "a", "text": "字" * 90}])) == "字" * LONGEST_HEADING + "…"
    )
    hidden = {"reference": "the expected answer", "answer": "Jah, “muidugi”."}
    assert heading_of("", lay_out(fields=hidden, turns=(), layout={"fields": ["answer"]})) == "Jah, “muidugi”."
    assert heading_of("", lay_out(fields={}, turns=())) == "…"


@pytest.mark.both_databases
@pytest.mark.django_db
def test_the_desk_and_the_list_of_scored_items_call_an_item_by_its_first_words(cast: Cast) -> None:
    row = make.item_row(7, title="", turns=[{"speaker": "klient", "text": LONG}])
    duty = scene.duty(cast, items=[row], overlap=1)
    taken = scene.taken(cast, duty)
    maarika = cast.client("maarika")
    page = maarika.get(f"/desk/at/{taken.key}/").content.decode()
    assert "mida keegi lõpuni ei…" in page
    assert "Untitled" not in page
    service.submit(assignment=taken, key=taken.key, answers=scene.ANSWERS, seconds=5)
    assert "mida keegi lõpuni ei…" in maarika.get(f"/desk/{duty.pk}/scored/").content.decode()


@pytest.mark.django_db
def test_a_new_duty_begins_with_three_annotators_and_the_panel_of_the_language(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa)
    mine = panels.create(project=cast.kassa, name="Eesti", language="et")
    panels.create(project=cast.kassa, name="Arabic", language="ar")
    page = cast.client("boris").get(f"/p/kassa/campaigns/{campaign.pk}/duties/new/")
    assert page.status_code == 200
    forms = {form.panel.pk: form for form in page.context["shares"]}
    assert forms[mine.pk]["overlap"].value() == 3
    assert [key for key, form in forms.items() if form["takes_part"].value()] == [mine.pk]
    assert "fewer annotators than each item needs" in page.content.decode()
