"""How a panel works: the lead's page, flags, pay and forecast; each annotator beside the others; one's own work."""

from __future__ import annotations

import csv
import html
import io
import re
from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from statistics import fmean, stdev
from urllib.parse import urlencode
from uuid import uuid4

import numpy as np
import pandas as pd
import pytest
from django.test import Client
from scipy.stats import t
from statsmodels.stats.proportion import proportion_confint

from accounts.models import AuditEntry
from analytics import workload
from analytics.views.sections import severity_sentences
from analytics.workload import severity_flags, severity_question
from annotation import pay
from annotation.desk import service
from annotation.desk.answers import Answer
from annotation.models import Annotation, Campaign, Duty, PayRate
from tests import make
from tests.analytics import scene
from tests.annotation import qualified
from tests.annotation import scene as panel_scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db
TODAY = date(2026, 11, 23)


def read(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, answer.content
    return " ".join(html.unescape(answer.content.decode()).split())


@pytest.fixture
def duty(cast: Cast) -> Duty:
    """Twelve items with three criteria: Maarika takes 40 to 51 s; Jaan gives 2 to everything in 5 s."""
    jaan = panel_scene.member(cast, "Jaan")
    criteria = [make.criterion(key) for key in ("fluency", "tone", "help")]
    duty = panel_scene.duty(cast, items=12, criteria=criteria, seated=[jaan])
    for user, scores, start in ((cast.maarika, (0, 1, 3), 40), (jaan, (2, 2, 2), 5)):
        for number in range(12):
            taken = panel_scene.taken(cast, duty, user)
            answers = {key: Answer(score=score) for key, score in zip(("fluency", "tone", "help"), scores, strict=True)}
            seconds = start + number if start == 40 else start
            service.submit(assignment=taken, key=taken.key, answers=answers, seconds=seconds)
    return duty


def address(campaign: Campaign, more: str = "") -> str:
    return f"/p/kassa/numbers/{campaign.pk}/work/{more}"


# --- the lead's page -------------------------------------------------------------------------------------------------
def test_pace_progress_and_flags_have_their_counts(cast: Cast, duty: Duty) -> None:
    page = read(cast.client("aino"), address(duty.campaign))
    assert "24 of 24 assignments submitted" in page and "complete" in page
    seconds = [*range(40, 52), *[5] * 12]
    limit = float(np.median(seconds)) / 3
    assert f"12 of 12 items took less than {limit:.0f} s, a third of the median time of the task." in page
    assert "All scores are the same on 12 of 12 items with three scores or more; others: 0%." in page
    assert "No flag has consequences of its own: a person decides." in page
    low, middle, high = np.percentile(range(40, 52), [25, 50, 75])
    assert f"{low:.0f}–{high:.0f}" in page
    assert workload.pace_of([float(value) for value in range(40, 52)]).median == middle


def severity_row(annotator: str, value: float, half: float) -> dict[str, object]:
    figure = {"statistic": "annotators.severity", "value": value, "low": value - half, "high": value + half}
    return {**figure, "n_items": 30, "annotator": annotator, "criterion": "fluency"}


def test_flags_of_severity_are_corrected_for_their_number() -> None:
    """By hand: half = 1.96 se. z = 2.2, p = .0278: flagged alone, not among 20, as .0278 * 20 > .05. z = 4, p = 6e-5:
    6e-5 * 20 = .0013."""
    assert set(severity_flags([severity_row("A01", 0.22, 0.196)])) == {"A01"}
    rows = [severity_row(f"A{n:02}", 0.22 if n < 10 else 0.01, 0.196) for n in range(1, 20)]
    assert severity_flags(rows) == {}
    flagged = severity_flags([*rows, severity_row("A20", -0.4, 0.196)])
    assert set(flagged) == {"A20"}
    assert "lower scores" in flagged["A20"][0] and "a correction for 20 comparisons" in flagged["A20"][0]


def test_nobody_is_named_without_a_difference_that_is_clear_after_correction() -> None:
    """By hand, as above: of 20 cells one with p = .0278, then one more with p = 6e-5."""
    rows = [severity_row(f"A{n:02}", 0.22 if n < 2 else 0.01, 0.196) for n in range(1, 21)]
    assert severity_sentences(rows, 0.95) == [
        "The interval leaves out 0 in 1 of 20 cells; without any difference it would in about 1.",
        "No difference is clear after a correction for 20 comparisons (Holm, approximate).",
    ]
    judge = {**severity_row("قاضٍ 'J'", -0.4, 0.196), "judge": "قاضٍ 'J'"}
    assert severity_sentences([*rows[:-1], judge], 0.95)[1:] == [
        "Lower also after a correction for 20 comparisons (Holm, approximate): قاضٍ 'J' (judge) (1)."
    ]
    assert severity_sentences(rows[:3], 0.95) == []


def test_few_cells_would_leave_out_0_less_than_once_by_chance() -> None:
    rows = [severity_row(f"A{n}", 0.01, 0.196) for n in range(4)]
    assert "in fewer than 1 on average." in severity_sentences(rows, 0.95)[0]


@pytest.mark.parametrize(
    ("counts", "names"),
    [
        ((3, 2, 1, 1), "A0 (3), A1 (2), A2 (1), A3 (1)"),
        ((3, 2, 1, 1, 1), "A0 (3), A1 (2) + 3"),
        ((1, 1, 1, 1, 1), "5 raters"),
    ],
)
def test_equal_counts_are_named_together_or_not(counts: tuple[int, ...], names: str) -> None:
    rows = [severity_row(f"A{rater}", 1.0, 0.1) for rater, n in enumerate(counts) for _cell in range(n)]
    assert severity_sentences(rows, 0.95)[1].endswith(f": {names}.")


def test_the_others_are_without_those_who_are_paused(cast: Cast) -> None:
    work = qualified.qualified_duty(cast, items=60, control=range(1, 31), control_rate=0.5, fewest_controls=3)
    assert "exclude=controls" in severity_question(work.campaign)
    assert "exclude" not in severity_question(make.campaign(cast.teine))


def test_a_severe_annotator_is_flagged_with_interval_and_items(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa, items=30)
    scores = [float(score) for score in np.random.default_rng(5).integers(1, 4, 30)]
    raters = {"mari": scores, "jaan": scores, "stern": [score - 1 for score in scores]}
    make.rated(campaign, {"fluency": raters})
    here = f"/p/kassa/numbers/{campaign.pk}/annotators/"
    page = html.unescape(scene.answered(cast.client("aino"), campaign, here).content.decode())
    assert "stern" in page and "−1.00" in page


def test_a_clear_severity_is_marked_and_none_has_a_colour_of_agreement(cast: Cast) -> None:
    """21 annotators and two criteria: so many figures stand alone first."""
    campaign = make.campaign(cast.kassa, items=30)
    rng = np.random.default_rng(7)
    given: dict[str, dict[str, list[float | None]]] = {
        key: {f"R{place:02}": [*map(float, rng.integers(0, top, 30))] for place in range(21)}
        for key, top in (("fluency", 4), ("coherence", 2))
    }
    given["fluency"] |= {"R00": [0.0] * 30, "R01": [3.0] * 30}
    make.rated(campaign, given)
    page = scene.answered(cast.client("aino"), campaign, f"/p/kassa/numbers/{campaign.pk}/annotators/").content.decode()
    (table,) = re.findall(r'<table class="table table-compact agreement-brief">.*?</table>', page, re.DOTALL)
    assert "data-bin" not in table
    marked = re.findall(r"<td[^>]* data-clear[^>]*>(?:<a[^>]*>)?(−?)[0-9.]+", table)
    assert set(marked) == {"−", ""}


def test_researchers_and_annotators_do_not_see_it(cast: Cast, duty: Duty) -> None:
    for who in ("boris", "maarika", "layla"):
        for more in ("", "pay-sheet.csv"):
            assert cast.client(who).get(address(duty.campaign, more)).status_code == 403
        rate = cast.client(who).post(address(duty.campaign, f"{duty.pk}/rate/"), {"unit": "hour", "amount": "9"})
        assert rate.status_code == 403
    assert not PayRate.objects.exists()


# --- pay -------------------------------------------------------------------------------------------------------------
def test_the_pay_sheet_pays_hours_or_items(cast: Cast, duty: Duty) -> None:
    aino = cast.client("aino")
    for unit, given, rate in (("hour", "36,00", Decimal(36)), ("item", "0.25", Decimal("0.25"))):
        assert aino.post(address(duty.campaign, f"{duty.pk}/rate/"), {"unit": unit, "amount": given}).status_code == 302
        answer = aino.get(address(duty.campaign, "pay-sheet.csv"))
        rows = {
            row["annotator"]: row for row in csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode()))
        }
        maarika = panel_scene.annotator(cast, cast.maarika).pseudonym
        units = Decimal(sum(range(40, 52))) / 3600 if unit == "hour" else Decimal(12)
        assert Decimal(rows[maarika]["amount_usd"]) == (rate * units).quantize(Decimal("0.01"))
        assert rows[maarika]["items"] == "12" and len(rows) == 2
    assert AuditEntry.objects.filter(verb="set pay rate").count() == 2
    assert AuditEntry.objects.filter(verb="export pay-sheet").count() == 2
    assert "cost so far 6.00 USD" in read(aino, address(duty.campaign))


@pytest.mark.parametrize(
    ("unit", "amount"), [("day", "9"), ("hour", "-1"), ("hour", "NaN"), ("hour", "much"), ("item", "")]
)
def test_a_rate_that_is_none_is_refused(cast: Cast, duty: Duty, unit: str, amount: str) -> None:
    aino = cast.client("aino")
    page = aino.post(address(duty.campaign, f"{duty.pk}/rate/"), {"unit": unit, "amount": amount}, follow=True)
    assert page.status_code == 200 and not PayRate.objects.exists()


def test_an_annotator_sees_their_own_work_and_nobody_else(cast: Cast, duty: Duty) -> None:
    pay.set_pay_rate(duty=duty, unit="hour", amount=Decimal(36), actor=cast.aino)
    page = read(cast.client("maarika"), "/desk/work/")
    seconds = sum(range(40, 52))
    assert f"{(Decimal(36) * seconds / 3600):.2f} USD" in page and "36 USD per hour" in page
    assert "Jaan" not in page and panel_scene.annotator(cast, panel_scene.member(cast, "Liis")).pseudonym not in page
    assert "Nothing submitted yet" in read(cast.client("layla"), "/desk/work/")
    assert "Your work" in read(cast.client("maarika"), "/desk/")


def test_a_revised_item_is_paid_once(cast: Cast, duty: Duty) -> None:
    one = Annotation.objects.filter(annotator__user=cast.maarika).select_related("assignment").first()
    answers = {key: Answer(score=1) for key in ("fluency", "tone", "help")}
    service.revise_scores(
        assignment=one.assignment, shown=one.assignment.key, key=uuid4(), answers=answers, seconds=one.seconds + 10
    )
    (work,) = [row.work for row in pay.own_work(cast.maarika)]
    assert (work.items, work.seconds) == (12, sum(range(40, 52)) + 10)


# --- the forecast ----------------------------------------------------------------------------------------------------
def test_the_forecast_is_the_mean_of_whole_days_with_its_interval() -> None:
    counts = [4, 0, 7, 5, 6, 3, 8, 5, 0, 6]
    by_day = Counter({TODAY - timedelta(days=back): n for back, n in enumerate(counts, 1)})
    by_day[TODAY] = 90  # not over yet
    found = workload.completion_forecast(by_day, 100, TODAY)
    mean, n = fmean(counts), len(counts)
    half = t.ppf(0.975, n - 1) * stdev(counts) / n**0.5
    days = [TODAY + timedelta(days=int(np.ceil(100 / rate))) for rate in (mean, mean + half, mean - half)]
    assert [found.expected, found.earliest, found.latest] == days and found.days == n
    assert workload.completion_forecast({TODAY: 5}, 9, TODAY).reason == "too few days to say"
    assert workload.completion_forecast(by_day, 0, TODAY).reason == "complete"
    ragged = {TODAY - timedelta(days=6): 1, TODAY - timedelta(days=2): 30}
    assert workload.completion_forecast(ragged, 50, TODAY).latest is None


def test_wilson_and_t_are_those_of_the_libraries() -> None:
    for hits, n in ((12, 12), (3, 20), (0, 10)):
        expected = proportion_confint(hits, n, method="wilson")[0]
        assert workload.wilson_low(hits, n, z=1.959963984540054) == pytest.approx(expected, abs=1e-9)
    assert [round(float(t.ppf(0.975, df)), 3) for df in range(1, 14)] == pytest.approx(workload.T_975, abs=5e-3)


# --- each annotator beside the others --------------------------------------------------------------------------------
def test_severity_and_agreement_are_those_computed_by_hand(cast: Cast) -> None:
    campaign = make.campaign(cast.kassa, items=25)
    rng = np.random.default_rng(3)
    base = rng.integers(0, 4, 25)
    given = {
        name: [float(np.clip(score + rng.integers(-1, 2), 0, 3)) for score in base] for name in ("mari", "jaan", "liis")
    }
    given["liis"][:5] = [None] * 5  # type: ignore[list-item]
    make.rated(campaign, {"fluency": given})
    names = ("annotators.severity", "annotators.accuracy", "annotators.same_score", "annotators.cohen_kappa")
    query = urlencode([("rows", "annotator"), ("columns", "criterion"), *(("statistic", name) for name in names)])
    scene.answered(cast.client("boris"), campaign, f"/p/kassa/numbers/{campaign.pk}/explore/?{query}&bootstrap=200")
    there = f"/p/kassa/numbers/{campaign.pk}/explore/cells.json?{query}&bootstrap=200"
    rows = cast.client("boris").get(there).json()["estimates"]
    found = {(row["asked"].partition(".")[2], row["annotator"]): row for row in rows}
    frame = pd.DataFrame(given)
    for name in given:
        others = frame.drop(columns=name)
        severity = (frame[name] - others.mean(axis=1))[frame[name].notna() & others.notna().any(axis=1)]
        row = found["severity", name]
        assert row["value"] == pytest.approx(severity.mean()) and row["n_items"] == len(severity)
        assert row["low"] < row["value"] < row["high"]
        pairs = [frame[[name, other]].dropna() for other in others]
        equal = [float((pair[name] == pair[other]).mean()) for pair, other in zip(pairs, others, strict=True)]
        assert found["accuracy", name]["value"] == pytest.approx(fmean(equal))
        shares = frame[name].dropna().value_counts(normalize=True)
        assert found["same_score", name]["value"] == pytest.approx(shares.iloc[0])
        assert found["cohen_kappa", name]["value"] is not None
