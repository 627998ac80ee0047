"""What a question leaves out is chosen in the form, stands in the address, and is counted before the figures."""

from __future__ import annotations

import csv
import html
import io
import re
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
from django.test import Client

from accounts import removal
from analytics.models import Snapshot
from analytics.questions.asked import question_of
from analytics.ratings.rationale_languages import is_in_another_language
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge.reference import excluding
from analytics.workload import workload
from annotation import allocation, campaigns
from annotation.imports import storage
from annotation.models import Annotation, Annotator, Assignment, Campaign, Duty, Import, Rating
from annotation.readers.ratings import RatingRow
from tests import make
from tests.analytics import scene
from tests.annotation import scene as desk
from tests.cast import Cast

pytestmark = pytest.mark.django_db
WORDS = {"rule": "required_except_best", "min_words": 3}
SAFE = {"group": "critical", "direction": "lower_is_better"}
POINTS = [{"value": value, "label": {"en": name}} for value, name in enumerate(("no", "yes"))]
LONG, SHORT = "because of this sentence", "bad"
# By criterion and rater, the score of four items and how its rationale was written: a capital is long enough.
GIVEN = {
    "fluency": {"mari": ("2L", "3S", "1S", "0L"), "jaan": ("2L", "2L", "1L", "0S"), "noor": ("1L", "2L", None, "1S")},
    "broken": {"mari": ("0L", "1L", "0L", "0L"), "jaan": ("0L", "0L", "0L", "0L"), "noor": (None, None, "0L", None)},
}


def make_scene(cast: Cast) -> Campaign:
    rubric = make.rubric(
        cast.kassa, make.criterion("fluency", rationale=WORDS), make.criterion("broken", (0, 1), **SAFE)
    )
    made = campaigns.open_campaign(
        project=cast.kassa, name="Round 1", dataset=make.dataset(cast.kassa, 4), rubric_version=rubric
    )
    rows = [
        RatingRow(
            f"d{place + 1}", rater, key, float(cell[0]), True, False, LONG if cell[1] == "L" else SHORT, None, None,
            None, "ratings.csv", place + 2,
        )
        for key, by_rater in GIVEN.items()
        for rater, cells in by_rater.items()
        for place, cell in enumerate(cells)
        if cell
    ]  # fmt: skip
    opened = Import.objects.create(project=cast.kassa, kind=Import.Kind.RATINGS)
    storage.store_ratings(campaign=made, rows=rows, file_import=opened)
    return made


@pytest.fixture
def campaign(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def asked(client: Client, campaign: Campaign, query: str) -> dict[str, Any]:
    """The answer to a question by the API."""
    address = f"/api/v1/projects/kassa/campaigns/{campaign.pk}/estimates/?columns=&bootstrap=0&{query}"
    found: dict[str, Any] = scene.answered(client, campaign, address).json()["answer"]
    return found


def page_of(client: Client, campaign: Campaign, page: str, query: str) -> str:
    answer = scene.answered(client, campaign, f"/p/kassa/numbers/{campaign.pk}/{page}/?{query}")
    assert answer.status_code == 200, answer.content.decode()[-3000:]
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", answer.content.decode()).split()))


def table_of(client: Client, campaign: Campaign, query: str = "") -> pd.DataFrame:
    text = b"".join(client.get(f"/api/v1/projects/kassa/campaigns/{campaign.pk}/ratings.csv?{query}")).decode()
    return pd.DataFrame(list(csv.DictReader(io.StringIO(text))))


def test_what_an_erased_person_wrote_counts_as_it_did(cast: Cast, campaign: Campaign) -> None:
    """Maarika wrote as mari: three rationales that keep the rule or need none, one that breaks it."""
    client, query = cast.client("boris"), "exclude=rationale"
    before = asked(client, campaign, query)
    mari = Annotator.objects.get(pseudonym="mari", project=campaign.project)
    Annotator.objects.filter(project=campaign.project, user=cast.maarika).delete()
    Annotator.objects.filter(pk=mari.pk).update(user=cast.maarika)
    removal.erase_user(user=cast.maarika, actor=cast.maarika)
    assert not Rating.objects.filter(annotation__annotator=mari).exclude(rationale="").exists()
    after = asked(client, campaign, f"{query}&seed=7")  # another question: not the stored answer again
    assert before["left_out"] == after["left_out"] and after["left_out"]["rationale"] > 0
    assert [row["value"] for row in before["estimates"]] == [row["value"] for row in after["estimates"]]


def test_each_exclusion_and_all_together_against_the_function_of_the_library(cast: Cast, campaign: Campaign) -> None:
    client = cast.client("boris")
    everything = table_of(client, campaign)
    given = {(f"d{place + 1}", key, rater): cell for key, by_rater in GIVEN.items() for rater, cells in by_rater.items()
             for place, cell in enumerate(cells)}  # fmt: skip
    cells = [given[row.item, row.criterion, row.rater] for row in everything.itertuples()]
    broken = [row.criterion == "fluency" and cell == f"{cell[0]}S" and cell[0] != "3"
              for row, cell in zip(everything.itertuples(), cells, strict=True)]  # fmt: skip
    critical = [row.criterion == "broken" and cell[0] == "1"
                for row, cell in zip(everything.itertuples(), cells, strict=True)]  # fmt: skip
    flags = everything.assign(score=everything["score"].astype(float), was_broken=broken, was_critical=critical)
    table = ratings_table(flags.drop(columns=["level", "scale", "score_label"]))
    kept, counts = excluding(table, broken_rationale="was_broken", critical="was_critical")
    assert (counts.broken_rationale, counts.critical, counts.single) == (3, 2, 2)

    answer = asked(client, campaign, "exclude=rationale&exclude=critical&exclude=single")
    assert answer["left_out"] == {"not_blind": 0, "too_fast": 0, "rationale": 3, "critical": 2, "single": 2}
    assert answer["question"]["exclude"] == ["critical", "rationale", "single"]
    left = table_of(client, campaign, "exclude=rationale&exclude=critical&exclude=single")
    place = ["item", "criterion", "rater"]
    assert set(map(tuple, left[place].to_numpy())) == set(map(tuple, kept.frame[place].to_numpy()))
    assert asked(client, campaign, "exclude=critical")["left_out"] == {"not_blind": 0, "too_fast": 0, "critical": 2}
    assert asked(client, campaign, "exclude=single")["left_out"] == {"not_blind": 0, "too_fast": 0, "single": 0}


def test_a_rationale_in_a_language_that_nobody_asked_for_is_left_out(cast: Cast, campaign: Campaign) -> None:
    boris, place = cast.client("boris"), campaign.pk
    assert asked(boris, campaign, "exclude=language")["left_out"]["language"] == 0  # English, as its rubric
    Rating.objects.filter(annotation__campaign=place, criterion__key="fluency", rationale=SHORT).update(
        rationale="потому что ответ плохой"
    )
    written = Rating.objects.filter(annotation__campaign=place, rationale__startswith="потому").count()
    assert asked(boris, campaign, "exclude=language&seed=2")["left_out"]["language"] == written > 0


@pytest.mark.parametrize(
    ("text", "expected", "is_foreign"),
    [
        ("because the agent was rude and did not answer", {"et"}, True),
        ("because the agent was rude and did not answer", {"et", "en"}, False),
        ("sest agent oli ebaviisakas ega vastanud küsimusele", {"et"}, False),
        ("because the agent was rude", {"ar"}, True),
        ("لأن الوكيل كان وقحا ولم يجب", {"ar"}, False),
        ("rude", {"ar"}, False),
        ("担当者が失礼でした、回答もありません", {"ja"}, False),
        ("因为他没有回答这个问题的所有部分", {"zh-Hans"}, False),
        ("пакет не пришёл вовремя", {"et"}, True),
        ("Odgovor je jasan i tačan, ali predug.", {"sr"}, False),
        ("Odgovor je jasan i tačan, ali predug.", {"sr-Cyrl"}, True),
        ("לא ענה על השאלה בכלל", {"sr"}, True),
    ],
)
def test_what_another_language_is(text: str, expected: set[str], is_foreign: bool) -> None:
    assert is_in_another_language(text, expected) is is_foreign


def test_counts_are_those_under_the_filters(cast: Cast, campaign: Campaign) -> None:
    answer = asked(cast.client("boris"), campaign, "exclude=rationale&exclude=critical&where=criterion%3Dbroken")
    assert answer["left_out"] == {"not_blind": 0, "too_fast": 0, "rationale": 0, "critical": 2}
    assert asked(cast.client("boris"), campaign, "exclude=rationale&raters=mari")["left_out"]["rationale"] == 1


def test_the_first_lines_of_an_answer_count_what_is_left_out(cast: Cast, campaign: Campaign) -> None:
    client, query = cast.client("boris"), "exclude=rationale&exclude=critical"
    for page in ("explore", "agreement"):
        text = page_of(client, campaign, page, f"columns=&{query}")
        said = text.index("3 ratings left out: rationale breaks the rule of its criterion")
        assert (
            said < text.index("2 ratings left out: a critical mark on the item and criterion") < text.rindex("Fluency")
        )
    section = page_of(client, campaign, "agreement/classes", query)
    assert "3 ratings left out: rationale breaks the rule" in section
    form = client.get(f"/p/kassa/numbers/{campaign.pk}/explore/?{query}").content.decode()
    chosen = dict(re.findall(r'name="exclude" value="(\w+)"( checked)?', form))
    assert chosen == {"rationale": " checked", "language": "", "critical": " checked", "single": ""}


def test_what_a_campaign_has_no_data_for_is_not_offered(cast: Cast) -> None:
    plain = scene.rated_campaign(cast)
    form = cast.client("boris").get(f"/p/kassa/numbers/{plain.pk}/explore/").content.decode()
    assert re.findall(r'name="exclude" value="(\w+)"', form) == ["single"]
    address = f"/api/v1/projects/kassa/campaigns/{plain.pk}/estimates/?exclude=critical"
    refused = cast.client("boris").get(address)
    assert refused.status_code == 422 and "Available: single" in refused.json()["detail"]
    assert "exclude=critical" not in form and "As in POLLUX" not in form
    scene.with_verdicts(plain)
    assert "exclude=single" in cast.client("boris").get(f"/p/kassa/numbers/{plain.pk}/explore/").content.decode()


def test_a_suspicious_speed_is_below_a_third_of_the_median(cast: Cast) -> None:
    made = scene.rated_campaign(cast)
    rows = list(Annotation.objects.order_by("pk"))
    assert len(rows) == 24
    seconds = [30.0, 33.0, 3.0, 27.0, 9.0, 11.0, 30.0, 60.0, 8.9, 30.0, 31.0, 29.0]
    for row, value in zip(rows, seconds, strict=False):
        Annotation.objects.filter(pk=row.pk).update(seconds=value)
    limit = float(np.median(seconds)) / 3
    fast = [row.pk for row, value in zip(rows, seconds, strict=False) if value < limit]
    answer = asked(cast.client("boris"), made, "exclude=speed")
    assert answer["left_out"]["speed"] == Rating.objects.filter(annotation__in=fast).count() > 0
    Annotation.objects.filter(pk__in=[row.pk for row in rows[9:]]).update(seconds=None)
    Snapshot.objects.all().delete()  # nine times are too few
    assert asked(cast.client("boris"), made, "exclude=speed")["left_out"]["speed"] == 0


def test_fewer_criteria_take_less_time_and_are_no_suspicious_speed(cast: Cast) -> None:
    duty = desk.duty(cast, items=26, overlap=1)
    Duty.objects.update(criteria_sets=[["fluency"]])
    Assignment.objects.filter(position__lte=12).update(criteria_set=1)
    piece: dict[str, Any] = {"campaign": duty.campaign, "annotator": desk.annotator(cast, cast.maarika)}
    for slot in Assignment.objects.order_by("position"):
        seconds = 6.0 if slot.criteria_set else 3.0 if slot.position == 26 else 60.0
        key = uuid4()
        Assignment.objects.filter(pk=slot.pk).update(state="submitted", key=key, annotator=piece["annotator"])
        done = Annotation.objects.create(**piece, item=slot.item, assignment=slot, key=key, seconds=seconds)
        for criterion in allocation.criteria_of(duty.pk, duty.campaign.rubric_version_id, slot.criteria_set):
            Rating.objects.create(annotation=done, criterion=criterion, score=1)
    left_out = asked(cast.client("boris"), duty.campaign, "exclude=speed")["left_out"]
    assert left_out["speed"] == 2
    (work,) = workload(duty.campaign).duties
    assert [one.fast for one in work.annotators] == [1]


def test_what_a_critical_mark_stopped_is_left_out_for_everybody(cast: Cast, campaign: Campaign) -> None:
    Rating.objects.filter(
        annotation__annotator__pseudonym="mari", criterion__key="fluency", annotation__item__external_id="d1"
    ).update(status="stopped", score=None)
    left = table_of(cast.client("boris"), campaign, "exclude=critical&where=criterion%3Dfluency")
    assert set(left["item"]) == {"d2", "d3", "d4"}
    assert asked(cast.client("boris"), campaign, "exclude=critical")["left_out"]["critical"] == 2 + 2


def test_a_critical_mark_of_a_rater_who_is_not_chosen_counts(cast: Cast, campaign: Campaign) -> None:
    left = table_of(cast.client("boris"), campaign, "exclude=critical&raters=jaan&where=criterion%3Dbroken")
    assert set(left["item"]) == {"d1", "d3", "d4"}  # mari marked d2
    assert asked(cast.client("boris"), campaign, "exclude=critical&raters=jaan")["left_out"]["critical"] == 1


def test_not_applicable_is_no_second_score(cast: Cast, campaign: Campaign) -> None:
    Rating.objects.filter(
        annotation__annotator__pseudonym="mari", criterion__key="broken", annotation__item__external_id="d1"
    ).update(status="na", score=None)
    answer = asked(cast.client("boris"), campaign, "exclude=single")
    assert answer["left_out"]["single"] == 1  # jaan's, which is the only score


def test_a_rating_that_is_not_blind_and_too_fast_is_counted_once(cast: Cast, campaign: Campaign) -> None:
    Annotation.objects.filter(annotator__pseudonym="mari").update(blind=False, seconds=2)
    given = Rating.objects.filter(annotation__annotator__pseudonym="mari").count()
    for filters, expected in (("", given), ("&where=criterion%3Dbroken", 4)):
        counts = asked(cast.client("boris"), campaign, f"blind=only&min_seconds=5{filters}")["left_out"]
        assert counts == {"not_blind": expected, "too_fast": 0}
        counts = asked(cast.client("boris"), campaign, f"min_seconds=5{filters}")["left_out"]
        assert counts == {"not_blind": expected, "too_fast": expected}


def test_two_annotators_and_the_mode_are_said_first(cast: Cast) -> None:
    """MEDAL-shaped: flags by two annotators; the mode drops every disagreement."""
    flag = {"key": "toxic", "name": {"en": "Toxic"}, "scale": {"level": "nominal", "points": POINTS}}
    made = campaigns.open_campaign(
        project=cast.kassa,
        name="Flags",
        dataset=make.dataset(cast.kassa, 10),
        rubric_version=make.rubric(cast.kassa, flag),
    )
    make.rated(made, {"toxic": {"mari": [0.0] * 8 + [1.0] * 2, "jaan": [0.0] * 7 + [1.0] * 3}})
    scene.with_verdicts(made, {"toxic": [0.0] * 9 + [1.0]})
    client = cast.client("boris")
    text = page_of(client, made, "explore", "columns=&statistic=accuracy")
    sentence = "The mode leaves out 1 of 10 pairs of item and criterion: their annotators are tied."
    assert text.index(sentence) < text.index("Accuracy", text.index("Compute ")) and "Rules that keep them" in text
    assert "The mode leaves out" not in page_of(client, made, "explore", "columns=&statistic=accuracy&reference=each")
    assert "The mode leaves out" not in page_of(client, made, "explore", "columns=")
    assert asked(client, made, "statistic=accuracy")["ties"] == {"pairs": 10, "tied": 1}
    assert question_of("exclude=single&exclude=rationale").query == "exclude=rationale&exclude=single"
