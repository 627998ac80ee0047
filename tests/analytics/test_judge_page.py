"""The page of one judge: uses, prompt and versions, runs, unreadable replies by reason, and what it cost."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts import removal
from analytics.answers import revisions
from analytics.judges import decisions, thresholds
from analytics.models import GateDecision, GateThresholds, Snapshot
from annotation import campaigns
from annotation.models import Campaign
from judging import daily_spending
from judging.models import AlignmentProposal, Attempt, Call, GenerationAttempt, Judge, JudgeRun, JudgeTrial, Verdict
from tests import access, make
from tests.analytics import scene
from tests.cast import Cast

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

AGED_DECISIONS = "Something changed since these decisions were computed."
NAME = "قاضٍ “<b>%s</b>” {{ x }} e\u0301"
UNREAD: dict[str, list[float | str | None]] = {
    "fluency": [2, 1, "unparsed", "unparsed", "refused", 9] + 6 * [1],
    "coherence": 12 * ["unparsed"],
}


@pytest.fixture
def boris(cast: Cast) -> Client:
    return cast.client("boris")


def text_of(page: str) -> str:
    return unescape(" ".join(re.sub(r"<[^>]*>", " ", page.partition("<main")[2]).split()))


def page_of(client: Client, judge: Judge, query: str = "") -> str:
    answer = client.get(f"/p/{judge.project.slug}/judges/{judge.pk}/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def selected_judge(page: str) -> str:
    """The judge that the bar of a campaign's page has chosen."""
    (field,) = re.findall(r'<select name="judge">(.*?)</select>', page, re.DOTALL)
    (chosen,) = re.findall(r'<option value="([^"]*)" selected>', field)
    return unescape(chosen)


def decided(cast: Cast, campaign: Campaign) -> None:
    declared = thresholds.declare_thresholds(project=cast.kassa, preset="skilled", actor=cast.aino)
    scene.compute(campaign, decisions.settings_of(declared))


def asked(run: JudgeRun, place: int, **about: Any) -> Attempt:
    """A request of a run about its item at this place."""
    items = list(run.dataset.items.order_by("ordinal"))
    item = items[place % len(items)]
    call = Call.objects.create(run=run, item=item, state=Call.State.SETTLED, repeat=1 + run.calls.count())
    return Attempt.objects.create(call=call, number=1, **{"outcome": "replied", **about})


# --- the default of the campaign's bar ----------------------------------------------------------------------------


def test_a_judge_that_failed_is_the_default_of_no_page(cast: Cast, boris: Client) -> None:
    campaign = scene.rated_campaign(cast, name="Ring “üks”")
    scene.with_verdicts(campaign, {"fluency": 12 * ["unparsed"], "coherence": 12 * ["refused"]}, name="Aas “0”")
    scene.with_verdicts(campaign, name="قاضٍ")
    decided(cast, campaign)
    here = f"/p/kassa/numbers/{campaign.pk}"
    for page in ("study", "items", "judges", "calibration", "audits", "workflow", "planner"):
        shown = scene.answered(boris, campaign, f"{here}/{page}/").content.decode()
        assert selected_judge(shown) == "قاضٍ", page
        chosen = scene.answered(boris, campaign, f"{here}/{page}/?judge=Aas “0”").content.decode()
        assert selected_judge(chosen) == "Aas “0”", page


# --- what it may be used for --------------------------------------------------------------------------------------


def test_the_decisions_of_each_campaign_lead_to_its_pages_with_the_judge_chosen(cast: Cast, boris: Client) -> None:
    campaign = scene.rated_campaign(cast, name="Ring “üks” <i>")
    judge = scene.with_verdicts(campaign, name=NAME).judge
    assert "No thresholds are declared yet" in text_of(page_of(boris, judge))
    decided(cast, campaign)
    page = page_of(boris, judge)
    squares = re.findall(r'<a class="square" data-use="([^"]*)"[^>]* href="([^"]*)" aria-label="([^"]*)"', page)
    current = decisions.current_decisions(campaign)
    assert current is not None
    assert sorted(use for use, _address, _title in squares) == sorted(cell.use.value for cell in current.cells)
    for _use, address, title in squares:
        assert unescape(title).startswith(NAME)
        study = scene.answered(boris, campaign, unescape(address)).content.decode()
        assert selected_judge(study) == NAME and 'id="decision"' in study
    for name in ("judges", "calibration", "audits", "comparison"):
        (address,) = set(re.findall(rf'href="(/p/kassa/numbers/{campaign.pk}/{name}/\?[^"]*)"', page))
        assert boris.get(unescape(address)).status_code == 200
    assert "<b>%s</b>" not in page and "{{ x }}" in page


def stored_decisions(campaign: Campaign, judge: Judge, *criteria: str, revision: str = "") -> None:
    """Decisions as a worker stores them, of the campaign as it stands or of another revision."""
    settings = decisions.settings_of(GateThresholds.objects.get(project=campaign.project))
    counts = {"n_items": 12, "n_clusters": 6, "n_raters": 2}
    rows = [
        {"judge": NAME, "judge_id": judge.pk, "criterion": key, "language": "et", "decision": "humans_only"} | counts
        for key in criteria
    ]
    Snapshot.objects.create(
        campaign=campaign,
        revision=revision or revisions.snapshot_revision(campaign, settings),
        **revisions.settings_identity(settings),
        inputs_digest="",
        seed=0,
        content={"decisions": [{**row, "findings": []} for row in rows]},
        seconds=0,
    )


def test_the_squares_are_the_current_decisions_whatever_else_is_stored(cast: Cast, boris: Client) -> None:
    """A change of the rubric's version that was undone leaves newer decisions, on criteria that are gone again."""
    campaign = scene.rated_campaign(cast)
    judge = scene.with_verdicts(campaign, name=NAME).judge
    declared = thresholds.declare_thresholds(project=cast.kassa, preset="skilled", actor=cast.aino)

    def shown() -> tuple[list[str], bool, bool]:
        """The letters of the squares, and what is said of their age or lack."""
        page = page_of(boris, judge)
        assert "gone" not in text_of(page).partition("Prompt and settings")[0]
        return re.findall(r'<a class="square"[^>]*>(.*?)</a>', page), AGED_DECISIONS in page, "Not decided yet." in page

    assert shown() == ([], False, True)
    stored_decisions(campaign, judge, "gone “x”", "fluency", revision="of another version")
    assert shown() == (["F"], True, False), "the newest is shown until there is a current one"
    Snapshot.objects.all().delete()
    stored_decisions(campaign, judge, "coherence", "fluency")
    stored_decisions(campaign, judge, "gone “x”", "fluency", revision="of the undone version")
    assert shown() == (["F", "C"], False, False)
    make.rubric(cast.kassa, make.criterion("fluency"))
    assert shown() == (["F"], True, False), "a newer version of the rubric: decided again"
    Snapshot.objects.all().delete()  # as a release does, whose decisions are stored under its own version
    about = {"criterion": "fluency", "language": "et", "decision": "humans_only", "facts": {}}
    GateDecision.objects.create(campaign=campaign, judge=judge, thresholds=declared, **about)
    assert shown() == ([], True, False)


def test_a_judge_without_runs_says_what_it_lacks(cast: Cast, boris: Client) -> None:
    judge = Judge.objects.create(project=cast.kassa, name=NAME, provider="gone", model="m", digest="d")
    shown = text_of(page_of(boris, judge))
    for sentence in (
        "It has no run in a campaign yet.",
        "None yet. Before a run starts",
        "Nobody has written yet why a verdict is wrong.",
        "Nothing has been sent to a model yet.",
        "no dataset yet",
    ):
        assert sentence in shown
    assert "Verdicts without a score, by reason" not in shown and "Versions" not in shown
    imported = Judge.objects.create(project=cast.kassa, name="Toodud", model="m", digest="e")
    assert "none: its verdicts were imported" in text_of(page_of(boris, imported))


def test_the_number_of_queries_does_not_depend_on_how_much_there_is(cast: Cast, boris: Client) -> None:
    campaign = scene.rated_campaign(cast)
    judge = scene.with_verdicts(campaign, UNREAD).judge
    decided(cast, campaign)
    about = {"project": cast.kassa, "provider": "gone", "model": "m"}
    Judge.objects.filter(pk=judge.pk).update(parent=Judge.objects.create(name="Ema", digest="p", **about))
    page_of(boris, judge)
    with CaptureQueriesContext(
        connection,
    ) as few:
        page_of(boris, judge)
    rubric = {"dataset": campaign.dataset, "rubric_version": campaign.rubric_version}
    for number in range(3):
        campaigns.open_campaign(project=cast.kassa, name=f"Ring {number}", **rubric)
        run = scene.with_verdicts(campaign, UNREAD)
        for place in range(4):
            asked(run, place, cost=Decimal("0.1"))
        Judge.objects.create(name=f"Laps {number}", digest=f"c{number}", parent=judge, **about)
    older = Judge.objects.create(name="Vanaema", digest="q", **about)
    Judge.objects.filter(name="Ema").update(parent=older)
    page_of(boris, judge)
    with CaptureQueriesContext(connection) as many:
        page_of(boris, judge)
    assert len(many) <= len(few) <= 60, [query["sql"] for query in many.captured_queries]


# --- versions -----------------------------------------------------------------------------------------------------


def test_versions_are_listed_with_what_differs_in_settings_and_prompt(cast: Cast, boris: Client) -> None:
    campaign = scene.rated_campaign(cast)
    first = Judge.objects.create(
        project=cast.kassa, name="Ema “1”", provider="simulated", model="sim-steady", digest="1", variant={}
    )
    second = Judge.objects.create(
        project=cast.kassa,
        name="لهجة",
        provider="simulated",
        model="sim-harsh",
        digest="2",
        variant={"instructions": "Ole <rangem>."},
        parent=first,
    )
    shown = page_of(boris, second)
    assert campaign.dataset.items.exists()
    assert "What is different from Ema “1”" in text_of(shown)
    assert "sim-steady sim-harsh" in text_of(shown)
    assert re.search(r'class="added".*?Ole.*?&lt;', shown, re.DOTALL)
    assert f"/p/kassa/judges/{first.pk}/" in shown
    assert "Made from this one لهجة" in text_of(page_of(boris, first))


# --- runs, unreadable replies and errors ---------------------------------------------------------------------------


def test_unreadable_replies_are_counted_by_reason_with_three_examples(cast: Cast, boris: Client) -> None:
    campaign = scene.rated_campaign(cast)
    run = scene.with_verdicts(campaign, UNREAD, name=NAME)
    broken = {"code": "broken", "rung": "broken", "found": '{"skoor: <script>alert(1)</script>'}
    for place, verdict in enumerate(run.verdicts.filter(criterion__key="coherence").order_by("item__ordinal")):
        attempt = asked(run, place)
        Verdict.objects.filter(pk=verdict.pk).update(reason=broken, attempt=attempt)
    other = scene.with_verdicts(campaign, {"fluency": 12 * ["unparsed"]}, name="Teine")
    page = page_of(boris, run.judge)
    (table,) = re.findall(r'aria-label="Verdicts without a score, by reason">(.*?)</table>', page, re.DOTALL)
    rows = [text_of("<main" + row) for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)][1:]
    assert [row.split(" read as")[0].split(" et-")[0] for row in rows[:1]] == ["Broken JSON"]
    assert [re.match(r"(.*?) (\d+) ", row).groups() for row in rows[1:]] == [  # type: ignore[union-attr]
        ("Unreadable", "2"), ("Off the scale", "1"), ("Refused", "1"),
    ]  # fmt: skip
    assert "read as parts of broken JSON 12 " in rows[0]
    assert "&lt;script&gt;alert(1)" in page and "<script>alert(1)" not in page
    calls = re.findall(rf'href="(/p/kassa/runs/{run.pk}/calls/\d+/)"', table)
    assert len(calls) == 3 and all(boris.get(address).status_code == 200 for address in calls)
    assert "8 16 " in text_of(page), "scores that were read, and verdicts without one"
    (address,) = re.findall(r'href="([^"]*\?status=unread#log)"', page)
    assert len(boris.get(address).context["log"]) == 12
    assert str(other.pk) not in calls
    second = run.verdicts.filter(criterion__key="fluency", status="ok").order_by("item__ordinal").first()
    newest = run.verdicts.filter(criterion__key="coherence").order_by("-pk").first()
    Verdict.objects.filter(pk=second.pk).update(status="unparsed", score=None, reason=broken, attempt=newest.attempt)
    again = re.findall(rf'href="(/p/kassa/runs/{run.pk}/calls/\d+/)"', page_of(boris, run.judge))
    assert len(again) == len(set(again)) == 3, "one example of each reply"


def test_thousands_of_unreadable_replies_stay_a_short_page(cast: Cast, boris: Client) -> None:
    campaign = scene.rated_campaign(cast)
    run = scene.with_verdicts(campaign, {"fluency": 12 * [1]}, name=NAME)
    item, criterion = campaign.dataset.items.first(), campaign.rubric_version.criteria.first()
    codes = ["nothing", "differing", "not_a_score", "another_scale", "no_na", "not_named", "broken", "new in v9"]
    Verdict.objects.bulk_create(
        Verdict(
            run=run,
            item=item,
            criterion=criterion,
            repeat=repeat,
            status="unparsed",
            reason={"code": codes[repeat % 8], "rung": "text", "found": "ä" * 400},
        )
        for repeat in range(2, 4002)
    )
    page = page_of(boris, run.judge)
    assert text_of(page).count(" 500 ") == 8
    assert "ä" * 81 not in page and page.count("ä" * 79) == 24
    assert "Less frequent reasons" in page and "Unreadable read as plain text 500" in text_of(page)


# --- cost ---------------------------------------------------------------------------------------------------------


def paid_judge(cast: Cast, campaign: Campaign | None = None) -> Judge:
    """A judge with a run by Boris and one by Aino on two days, a test by Boris, an imported run, and what is no cost of
    it: replies that were used again, requests that were never sent, another judge's."""
    campaign = campaign or scene.rated_campaign(cast)
    scores = {"fluency": campaign.dataset.items.count() * [1]}
    run = scene.with_verdicts(campaign, scores, name=NAME)
    mine, late = datetime(2026, 3, 1, 23, 59, tzinfo=UTC), datetime(2026, 3, 2, 0, 1, tzinfo=UTC)
    JudgeRun.objects.filter(pk=run.pk).update(created_by=cast.boris)
    second = scene.with_verdicts(campaign, scores, name=NAME)
    JudgeRun.objects.filter(pk=second.pk).update(created_by=cast.aino)
    command = scene.with_verdicts(campaign, scores, name=NAME)
    for place, (made, at, cost, outcome) in enumerate(
        [
            (run, mine, "0.00000001", "replied"),
            (run, mine, "1.25", "lost"),
            (run, late, "0.5", "replied"),
            (run, late, None, "unavailable"),
            (second, late, "2", "replied"),
            (command, late, None, "replied"),
            (run, late, "9", "reused"),
            (run, late, "9", "pending"),
        ]
    ):
        asked(made, place, at=at, cost=None if cost is None else Decimal(cost), outcome=outcome)
    test = {"project": cast.kassa, "model": "m", "digest": run.judge.digest, "created_by": cast.boris}
    for sent_at in (late, None):
        JudgeTrial.objects.create(series=uuid4(), sent_at=sent_at, cost=Decimal("0.125"), **test)
    JudgeTrial.objects.create(series=uuid4(), sent_at=late, cost=Decimal(3), **{**test, "digest": "another judge"})
    others = scene.with_verdicts(campaign, scores, name="Teine")
    asked(others, 0, at=late, cost=Decimal(4))
    return run.judge


OWN_COST = [
    ("2026-03-02", "Aino", "runs", "1", "0", "2.00000000"),
    ("2026-03-02", "Boris", "runs", "2", "1", "0.50000000"),
    ("2026-03-02", "Boris", "tests", "1", "0", "0.12500000"),
    ("2026-03-02", "", "runs", "1", "1", ""),
    ("2026-03-01", "Boris", "runs", "2", "0", "1.25000001"),
]


def rows_of_file(client: Client, address: str) -> list[tuple[str, ...]]:
    answer = client.get(address)
    assert answer.status_code == 200 and answer["Content-Type"].startswith("text/csv")
    head, *rows = csv.reader(io.StringIO(b"".join(answer).decode()))
    assert tuple(head) == daily_spending.SPENDING_COLUMNS
    return [tuple(row) for row in rows]


def test_cost_by_day_and_person_is_on_the_page_in_the_file_and_by_api(cast: Cast, boris: Client) -> None:
    judge = paid_judge(cast)
    address = f"/p/kassa/judges/{judge.pk}/spending.csv"
    assert [(*row[:5], row[5] and f"{Decimal(row[5]):.8f}") for row in rows_of_file(boris, address)] == OWN_COST
    shown = text_of(page_of(boris, judge))
    assert "In all: $3.88 for 7 requests. 2 of them have no cost: no price is known." in shown
    assert "Aino $2.00 1 request Boris $1.88 5 requests by command – 1 request" in shown
    assert "2 Mar 2026 Aino Runs 1 $2.00" in shown and "1 Mar 2026 Boris Runs 2 $1.25" in shown
    found = boris.get(f"/api/v1/projects/kassa/spending/?judge={judge.pk}").json()
    written = [(row["day"], row["person"], row["kind"], str(row["requests"]), str(row["requests_without_cost"]),
                row["usd"] or "") for row in found]  # fmt: skip
    assert written == OWN_COST
    for wrong in (10**30, "x", "", judge.pk + 10_000):
        assert boris.get(f"/api/v1/projects/kassa/spending/?judge={wrong}").status_code == 404


def test_the_project_spends_what_its_judges_plans_and_proposals_do(cast: Cast, boris: Client) -> None:
    access.furnish(cast)
    judge = paid_judge(cast, Campaign.objects.order_by("pk").first())
    at = datetime(2026, 3, 3, tzinfo=UTC)
    AlignmentProposal.objects.update(sent_at=at, cost=Decimal("0.25"), created_by=cast.aino)
    GenerationAttempt.objects.update(at=at, cost=Decimal("0.75"))
    rows = rows_of_file(boris, "/p/kassa/spending.csv")
    assert [row[:3] for row in rows if row[0] == "2026-03-03"] == [
        ("2026-03-03", "", "texts"), ("2026-03-03", "Aino", "proposals"),
    ]  # fmt: skip
    assert sum(Decimal(row[5]) for row in rows if row[5]) == Decimal("11.87500001")
    shown = text_of(boris.get("/p/kassa/spending/").content.decode())
    assert "In all: $11.88 for" in shown and "Generated texts 1 $0.75" in shown
    assert "/p/kassa/spending/" in boris.get("/p/kassa/judges/").content.decode()
    assert len(boris.get("/api/v1/projects/kassa/spending/").json()) == len(rows)
    assert judge.pk
    empty = cast.client("zoltan")
    assert "Nothing has been sent to a model yet." in text_of(empty.get("/p/teine/spending/").content.decode())


def test_an_erased_person_stays_a_number(cast: Cast) -> None:
    judge = paid_judge(cast)
    removal.erase_user(user=cast.boris, actor=cast.aino)
    client = cast.client("aino")
    rows = rows_of_file(client, f"/p/kassa/judges/{judge.pk}/spending.csv")
    assert [row[1] for row in rows] == [
        "Aino",
        *2 * [f"erased account {cast.boris.pk}"],
        "",
        f"erased account {cast.boris.pk}",
    ]
    assert "Boris" not in page_of(client, judge) and "erased.invalid" not in page_of(client, judge)


def test_a_name_that_is_a_formula_is_harmless_in_the_file(cast: Cast) -> None:
    judge = paid_judge(cast)
    cast.aino.name = '=HYPERLINK("x") <b>'
    cast.aino.save()
    client = cast.client("aino")
    rows = rows_of_file(client, f"/p/kassa/judges/{judge.pk}/spending.csv")
    assert rows[0][1] == "'" + cast.aino.name
    assert "=HYPERLINK(&quot;x&quot;) &lt;b&gt;" in page_of(client, judge)


def test_many_days_are_folded_and_the_file_has_them_all(cast: Cast, boris: Client) -> None:
    campaign = scene.rated_campaign(cast)
    run = scene.with_verdicts(campaign, name=NAME)
    item = campaign.dataset.items.first()
    made = [Call(run=run, item=item, repeat=number, state="settled") for number in range(1, 451)]
    Attempt.objects.bulk_create(
        Attempt(call=call, number=1, outcome="replied", cost=Decimal("0.01"), at=datetime(2025, 1, 1, tzinfo=UTC)
                + number * (timedelta(days=1)))
        for number, call in enumerate(Call.objects.bulk_create(made))
    )  # fmt: skip
    page = page_of(boris, run.judge)
    assert "50 more rows are in the CSV file." in text_of(page)
    assert "In all: $4.50 for 450 requests." in text_of(page)
    assert len(rows_of_file(boris, f"/p/kassa/judges/{run.judge_id}/spending.csv")) == 450


# --- who may read it ----------------------------------------------------------------------------------------------


def test_a_judge_of_another_project_is_none_and_annotators_see_nothing(cast: Cast, boris: Client) -> None:
    judge = paid_judge(cast)
    foreign = Judge.objects.create(project=cast.teine, name="V", provider="gone", model="m", digest="d")
    for address in ("judges/{0}/", "judges/{0}/spending.csv"):
        assert boris.get(f"/p/kassa/{address.format(foreign.pk)}").status_code == 404
        assert boris.get(f"/p/kassa/{address.format(10**30)}").status_code == 404
        assert cast.client("zoltan").get(f"/p/kassa/{address.format(judge.pk)}").status_code == 404
    assert boris.get(f"/api/v1/projects/kassa/spending/?judge={foreign.pk}").status_code == 404
    for address in (f"judges/{judge.pk}/", f"judges/{judge.pk}/spending.csv", "spending/", "spending.csv"):
        assert cast.client("maarika").get(f"/p/kassa/{address}").status_code == 403
