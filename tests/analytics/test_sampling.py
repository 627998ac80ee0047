"""The next items of a duty: drawn more often where the judge may be wrong, with probabilities that estimates use."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from accounts.models import AuditEntry
from accounts.refusals import Refused
from analytics import further_ratings, planning
from analytics.answer_pages import answer_now
from analytics.questions.question import NumbersQuestion
from analytics.ratings import ratings_tables
from analytics.stats.judge.corrected_means import ScoredItems
from analytics.stats.judge.leaderboard import weighted_mean
from analytics.stats.planning.pilot import expected_error, inclusion_probabilities, independent_draws, interval_sequence
from annotation import allocation, pay
from annotation.desk import leasing, service
from annotation.desk.answers import Answer
from annotation.models import Annotation, Campaign, Duty, Rating, ReferenceItem, Selection, Skip
from tests import make
from tests.analytics import scene
from tests.annotation import scene as desks
from tests.cast import Cast


# --- kernels ---------------------------------------------------------------------------------------------------------
def test_errors_are_drawn_towards_the_mean_by_twenty_labels() -> None:
    f = np.array([0.0] * 20 + [1.0] * 20 + [1.0])
    y = np.array([0.0] * 20 + [0.0, 2.0] * 10 + [np.nan])
    # The mean error is 0; the squared errors are 0 at score 0 and 1 at score 1, .5 overall.
    low, high = np.sqrt((0 + 20 * 0.5) / 40), np.sqrt((20 + 20 * 0.5) / 40)
    assert expected_error(y, f) == pytest.approx([low] * 20 + [high] * 21)
    assert (expected_error(np.where(np.arange(41) < 19, y, np.nan), f) == 1).all()  # 19 labels say nothing yet


def test_probabilities_add_up_and_stay_within_one() -> None:
    error = np.array([0.1, 0.1, 0.1, 10.0])
    found = inclusion_probabilities(error, 2.0)
    assert found.sum() == pytest.approx(2)
    assert found[3] == 1
    assert found[:3] == pytest.approx([1 / 3] * 3)
    even = inclusion_probabilities(np.array([1.0, 3.0]), 1.0, uniform=0.0)
    assert even == pytest.approx([0.25, 0.75])
    for wrong in (0.0, 2.5):
        with pytest.raises(ValueError, match="expected number"):
            inclusion_probabilities(np.ones(2), wrong)


def test_items_are_drawn_as_often_as_their_probabilities_say() -> None:
    rng, chances = np.random.default_rng(1), np.array([0.1, 0.5, 1.0])
    shares = np.mean([independent_draws(chances, rng=rng) for _ in range(4000)], axis=0)
    assert shares == pytest.approx(chances, abs=4 * np.sqrt(0.25 / 4000))


def test_the_sequence_is_the_published_one_computed_step_by_step() -> None:
    x, low, high = np.array([3.0, 0.0, 2.0, 3.0, 1.0]), 0.0, 4.0
    lower, upper = interval_sequence(x, low, high)
    before, spread, bets, centre, costs = 0.5, 0.25, 0.0, 0.0, 0.0
    seen: list[float] = []
    best = (0.0, 1.0)
    for t, value in enumerate(x / 4, start=1):
        bet = min(0.5, np.sqrt(2 * np.log(2 / 0.05) / (spread * t * np.log(1 + t))))
        bets, centre = bets + bet, centre + bet * value
        costs += 4 * (value - before) ** 2 * (-np.log(1 - bet) - bet) / 4
        seen.append(value)
        before = (0.5 + sum(seen)) / (t + 1)
        means = [(0.5 + sum(seen[: i + 1])) / (i + 2) for i in range(t)]
        spread = (0.25 + sum((one - mean) ** 2 for one, mean in zip(seen, means, strict=True))) / (t + 1)
        half = (np.log(2 / 0.05) + costs) / bets
        best = max(best[0], centre / bets - half), min(best[1], centre / bets + half)
        assert (lower[t - 1], upper[t - 1]) == pytest.approx((4 * best[0], 4 * best[1]))


def test_repeated_looks_seldom_exclude_the_truth() -> None:
    rng, errors = np.random.default_rng(2), 0
    for _study in range(200):
        lower, upper = interval_sequence(rng.binomial(4, 0.6, 300).astype(float), 0, 4)
        errors += bool(((lower > 2.4) | (upper < 2.4)).any())
    assert errors <= 10


def test_the_weighted_mean_is_unbiased_and_the_mean_of_the_drawn_labels_is_not() -> None:
    rng = np.random.default_rng(3)
    f = rng.integers(0, 5, 400).astype(float)
    y = np.where(f == 2, f - 1.5 + rng.normal(0, 0.5, 400), f + rng.normal(0, 0.2, 400))
    chances = np.where(f == 2, 0.6, 0.1)
    weighted, plain, holds = [], [], 0
    for seed in range(300):
        drawn = independent_draws(chances, rng=rng)
        items = ScoredItems.of_scores(np.where(drawn, y, np.nan), f, np.arange(400), chances)
        assert items.is_weighted
        found = weighted_mean(items, f, 0.95, seed=seed)
        assert found.value is not None
        assert found.low is not None
        assert found.high is not None
        weighted.append(found.value)
        plain.append(float(y[drawn].mean()))
        holds += found.low <= y.mean() <= found.high
    assert np.mean(weighted) == pytest.approx(y.mean(), abs=4 * np.std(weighted) / 300**0.5)
    assert abs(np.mean(plain) - y.mean()) > 0.3
    assert holds >= 0.93 * 300


@pytest.mark.parametrize(("pilot", "wave", "answered"), [(60, 90, 0.3), (100, 5, 1.0)])
def test_a_wave_half_rated_or_small_keeps_its_interval(pilot: int, wave: int, answered: float) -> None:
    rng, holds, given = np.random.default_rng(4), 0, 0
    for seed in range(300):
        quality = 1 + 6 * rng.beta(2, 1.2, 600)
        f = np.clip(np.rint(quality + 0.7 + rng.normal(0, 0.6, 600)), 1, 7)
        y = np.clip(quality + np.where(f <= 3, 1.5, 0.4) * rng.normal(0, 1, 600), 1, 7)
        certain = np.zeros(600, dtype=np.bool_)
        certain[rng.permutation(600)[:pilot]] = True
        chances = np.ones(600)
        chances[~certain] = inclusion_probabilities(expected_error(np.where(certain, y, np.nan), f)[~certain], wave)
        rated = certain | (independent_draws(chances, rng=rng) & (rng.random(600) < answered))
        items = ScoredItems.of_scores(np.where(rated, y, np.nan), f, np.arange(600), chances)
        found = weighted_mean(items, f, 0.95, seed=seed)
        if found.low is not None and found.high is not None:
            given, holds = given + 1, holds + (found.low <= y.mean() <= found.high)
    assert given >= 250
    assert holds >= 0.92 * given


# --- a campaign ------------------------------------------------------------------------------------------------------
N = 60
JUDGED = [place % 4 for place in range(N)]


@pytest.fixture
def piloted(module_scene: tuple[Cast, tuple[Campaign, Duty]]) -> tuple[Campaign, Duty]:
    return module_scene[1]


def make_scene(cast: Cast) -> tuple[Campaign, Duty]:
    """Sixty Estonian items, of which half were drawn for a pilot and rated; a judge that errs on middle scores."""
    rows = [make.item_row(place, "et", scenario=f"s{place}", external_id=f"et-{place}") for place in range(N)]
    duty = desks.duty(cast, items=rows, overlap=1, criteria=[make.criterion("fluency")])
    campaign = duty.campaign
    scene.with_verdicts(campaign, {"fluency": JUDGED})
    Selection.objects.filter(duty=duty).delete()
    duty.assignments.all().delete()
    items = list(campaign.dataset.items.order_by("ordinal"))[: N // 2]
    allocation.draw(duty=duty, items=items, probabilities=[0.5] * len(items), origin="random")
    rate_all(cast, duty)
    return campaign, duty


def rate_all(cast: Cast, duty: Duty) -> None:
    """Maarika rates what is open: as the judge did at the ends of the scale, one or two points off between them."""
    while (taken := leasing.take(duty=duty, annotator=desks.annotator(cast, cast.maarika))) is not None:
        place = int(taken.item.external_id.removeprefix("et-"))
        score = JUDGED[place]
        off = score if score in (0, 3) else (score + 1 + place // 4 % 2) % 4
        service.submit(assignment=taken, key=taken.key, answers={"fluency": Answer(score=off)}, seconds=5)


def test_one_click_draws_items_with_their_probabilities_into_the_duty(
    cast: Cast, piloted: tuple[Campaign, Duty]
) -> None:
    campaign, duty = piloted
    browser = cast.client("aino")
    body = {"duty": str(duty.pk), "criterion": "fluency", "judge": "Kohtunik", "wanted": "12"}
    pay.set_pay_rate(duty=duty, unit="item", amount=Decimal("0.50"), actor=cast.aino)
    there = f"/p/kassa/numbers/{campaign.pk}/planner/draw/"
    preview = browser.post(there, body)
    assert preview.status_code == 200 and not Selection.objects.filter(duty=duty, wave=2).exists()
    shown = dict(re.findall(r'name="(seed|wanted|digest)" value="(\w+)"', preview.content.decode()))
    answer = browser.post(there, {**body, **shown, "create": "1"})
    assert (answer.status_code, answer["Location"]) == (
        302, f"/p/kassa/numbers/{campaign.pk}/planner/#next-items",
    )  # fmt: skip
    drawn = Selection.objects.filter(duty=duty, wave=2).select_related("item")
    assert 3 <= len(drawn) <= 25
    page = " ".join(re.sub(r"<[^>]*>", " ", preview.content.decode()).split())
    assert f"Items {len(drawn)} Assignments {len(drawn)}, 1 annotator each" in page
    assert f"USD {len(drawn) / 2:.2f}" in page and "now, about ±" in page
    assert "for as many items taken at random" in page
    assert {row.origin for row in drawn} == {"active"}
    assert duty.assignments.filter(item__in=[row.item_id for row in drawn]).count() == len(drawn) * duty.overlap
    assert AuditEntry.objects.filter(verb="draw next items").count() == 1
    places = {int(row.item.external_id.removeprefix("et-")): row.probability for row in drawn}
    middle = [chance for place, chance in places.items() if JUDGED[place] in (1, 2)]
    ends = [chance for place, chance in places.items() if JUDGED[place] in (0, 3)]
    assert min(middle, default=1) > max(ends, default=0)


def test_what_was_drawn_before_is_certain_and_new_items_have_their_probability(
    cast: Cast, piloted: tuple[Campaign, Duty]
) -> None:
    campaign, duty = piloted
    before = {row.inclusion_prob for row in ratings_tables.rows(campaign=campaign) if row.rater_kind == "annotator"}
    assert before == {0.5}
    planning.draw_next_items(duty=duty, judge="Kohtunik", criterion="fluency", wanted=12, seed=1)
    unrated = {row.inclusion_prob for row in ratings_tables.rows(campaign=campaign) if row.rater_kind == "annotator"}
    assert unrated == {0.5}  # a wave of which nothing is rated tells nothing
    stored = dict(Selection.objects.filter(duty=duty, wave=2).values_list("item__external_id", "probability"))
    rate_all(cast, duty)
    rows = [row for row in ratings_tables.rows(campaign=campaign) if row.rater_kind == "annotator"]
    assert {row.item: row.inclusion_prob for row in rows if row.item in stored} == stored
    assert {row.inclusion_prob for row in rows if row.item not in stored} == {1.0}
    assert set(Selection.objects.filter(duty=duty, wave=1).values_list("probability", flat=True)) == {0.5}


def test_what_was_drawn_is_taken_back_until_the_first_rating(cast: Cast, piloted: tuple[Campaign, Duty]) -> None:
    campaign, duty = piloted
    before = set(duty.assignments.values_list("item", "slot", "state"))
    there = f"/api/v1/projects/kassa/campaigns/{campaign.pk}/duties/{duty.pk}/next-items/"
    lead, body = cast.client("aino"), {"judge": "Kohtunik", "criterion": "fluency", "wanted": 12}
    preview = lead.get(there, body).json()
    assert 0 < preview["half_width_after"] < preview["half_width_before"] and preview["price_usd"] is None
    assert preview["hours"] == pytest.approx(preview["assignments"] * 5 / 3600)
    bound = {**body, "seed": preview["seed"], "digest": preview["digest"]}
    drawn = lead.post(there, bound, content_type="application/json")
    first = sorted(Selection.objects.filter(duty=duty, wave=2).values_list("item", flat=True))
    assert (drawn.status_code, drawn.json()) == (201, {"items": preview["items"]})
    page = f"/p/kassa/numbers/{campaign.pk}/planner/"
    shown = lead.get(page).content.decode()
    assert f"{page}take-back/" in shown and "nobody has rated" in shown
    assert 'name="wanted"' not in shown, "no more are drawn before these are rated"
    aside = {"annotator": desks.annotator(cast, cast.maarika), "reason": Skip.Reason.LANGUAGE}
    Skip.objects.create(duty=duty, item_id=first[0], **aside)
    assert cast.client("maarika").post(f"{page}take-back/", {"duty": duty.pk}).status_code in (403, 404)
    assert "withdrawn" in lead.post(f"{page}take-back/", {"duty": duty.pk}, follow=True).content.decode()
    assert set(duty.assignments.values_list("item", "slot", "state")) == before
    assert not Selection.objects.filter(duty=duty, wave=2).exists()
    assert list(Skip.objects.values_list("item", "reason")) == [(first[0], "language")], "a finding of its own"
    withdrawn = AuditEntry.objects.get(verb="take back next items").fields
    assert {f"seed={preview['seed']}", "wave=2", f"item_ids={','.join(map(str, first))}"} <= set(withdrawn)
    assert lead.delete(there).json()["code"] == "nothing_drawn", "the pilot was not drawn here"
    lead.post(there, body, content_type="application/json")
    taken = leasing.take(duty=duty, annotator=desks.annotator(cast, cast.maarika))
    assert taken is not None
    service.submit(assignment=taken, key=taken.key, answers={"fluency": Answer(score=1)}, seconds=5)
    refusal = lead.delete(there)
    assert (refusal.status_code, refusal.json()["code"]) == (409, "has_ratings")
    assert f"{page}take-back/" not in lead.get(page).content.decode()
    Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.CLOSED)
    for closed in (lead.get(there, body), lead.delete(there)):
        assert closed.json()["code"] == "campaign_closed"


def test_so_many_more_ratings_are_items_hours_a_price_and_widths(cast: Cast, piloted: tuple[Campaign, Duty]) -> None:
    """Thirty items are left: of forty, ten need new items. The widths are those of the preview."""
    campaign, duty = piloted
    lead, there = cast.client("aino"), f"/p/kassa/numbers/{campaign.pk}/planner/more/"
    asked = {"more": "12", "unit": "items", "judge": "Kohtunik"}
    page = " ".join(re.sub(r"<[^>]*>", " ", lead.get(there, asked).content.decode()).split())
    assert "12 items · 12 assignments · 12 ratings" in page and "12 of 30 left" in page
    assert "no pay is set. Set the pay" in page and "new items are needed" not in page
    pay.set_pay_rate(duty=duty, unit="item", amount=Decimal("0.50"), actor=cast.aino)
    (share,) = further_ratings.further_ratings(campaign, wanted=12, unit="ratings", judge="Kohtunik").shares
    (width,) = share.widths
    preview = planning.preview_draw(duty=duty, judge="Kohtunik", criterion="fluency", wanted=12, seed=1)
    assert (share.items, share.price) == (12, Decimal("6.00")) and share.hours == pytest.approx(12 * 5 / 3600)
    assert (width.before, width.judge_before) == (preview.half_before, preview.judge_before)
    assert width.after is not None and width.before is not None and width.after < width.before
    assert width.judge_before is not None and width.judge_before < width.before
    much = further_ratings.further_ratings(campaign, wanted=40, unit="items")
    assert (much.items, much.lacking, much.price) == (30, 10, Decimal("15.00"))
    page = lead.get(there, {**asked, "more": "40"}).content.decode()
    assert "No items are left for 10 of these 40: new items are needed." in page
    assert lead.get(there, {**asked, "more": "0"}).status_code == 422
    assert "Choose what is counted" in lead.get(there, {"more": "6"}).content.decode()
    assert lead.get(there).status_code == 200 and "Give a number" not in lead.get(there).content.decode()
    assert cast.client("maarika").get(there, asked).status_code in (403, 404)


def test_what_is_less_than_an_item_costs_is_not_lacking() -> None:
    assert further_ratings._split(100, {1: 16}, {1: 6}) == ({1: 16}, 0)
    assert further_ratings._split(102, {1: 16}, {1: 6}) == ({1: 16}, 6)


def test_where_all_items_are_rated_a_judge_adds_nothing_and_nothing_is_drawn(
    cast: Cast, piloted: tuple[Campaign, Duty]
) -> None:
    campaign, duty = piloted
    left, criterion = list(planning.items_left(duty)), campaign.rubric_version.criteria.get()
    lead, there = cast.client("aino"), f"/p/kassa/numbers/{campaign.pk}/planner/more/"
    asked = {"more": "6", "unit": "items", "judge": "Kohtunik"}
    page = lead.get(there, asked).content.decode()
    assert "Draw them<" in page and '<bdi dir="ltr">± ' in page and ">approximate<" in page
    whole = planning.precision_of(duty, criterion, "Kohtunik")
    assert whole.half_width_with_judge(30) == pytest.approx(whole.half_width(30)), "after all of them"
    allocation.draw(duty=duty, items=left, probabilities=[0.5] * len(left), origin="random")
    assert "Draw them<" not in lead.get(there, asked).content.decode(), "a wave is not rated yet"
    rate_all(cast, duty)
    found = planning.precision_of(duty, criterion, "Kohtunik")
    assert found.half_width_with_judge(0) == pytest.approx(found.half_width(0))
    campaign.rubric_version.criteria.update(level="nominal")
    assert f"<bdi>{duty.name}</bdi>" in lead.get(there, asked).content.decode().partition("<tbody>")[2]


def test_a_refused_draw_keeps_its_form_and_its_preview_has_the_pages_of_the_campaign(
    cast: Cast, piloted: tuple[Campaign, Duty]
) -> None:
    campaign, duty = piloted
    there, lead = f"/p/kassa/numbers/{campaign.pk}/planner/draw/", cast.client("aino")
    body = {"duty": str(duty.pk), "criterion": "fluency", "judge": "Kohtunik", "wanted": "31"}
    page = lead.post(there, body, follow=True).content.decode()
    assert "Draw from 1 to 30 items" in page and 'name="wanted" inputmode="numeric" value="31"' in page
    preview = lead.post(there, {**body, "wanted": "6"}).content.decode()
    assert 'class="campaign-pages"' in preview and f"/p/kassa/numbers/{campaign.pk}/work/" in preview
    assert "The panel’s mean alone is known to" in preview and "The mean with the judge is known to" in preview


def test_a_draw_gives_the_previewed_items_or_is_refused(cast: Cast, piloted: tuple[Campaign, Duty]) -> None:
    campaign, duty = piloted
    body = {"duty": str(duty.pk), "criterion": "fluency", "judge": "Kohtunik", "wanted": "12"}
    there, lead = f"/p/kassa/numbers/{campaign.pk}/planner/draw/", cast.client("aino")
    preview = lead.post(there, body).content.decode()
    bound = {**body, "create": "1", **dict(re.findall(r'name="(seed|digest)" value="(\w+)"', preview))}
    for missing in ("seed", "digest"):
        again = lead.post(there, {name: value for name, value in bound.items() if name != missing})
        assert again.status_code == 200 and 'name="digest"' in again.content.decode()
    Rating.objects.filter(annotation__campaign=campaign, score=3).update(score=0)
    assert "other items are drawn now" in lead.post(there, bound, follow=True).content.decode()
    assert not Selection.objects.filter(duty=duty, wave=2).exists()


def test_reference_items_are_not_drawn(cast: Cast, piloted: tuple[Campaign, Duty]) -> None:
    campaign, duty = piloted
    kept = list(campaign.dataset.items.order_by("ordinal"))[N // 2 : N // 2 + 10]
    ReferenceItem.objects.bulk_create(ReferenceItem(campaign=campaign, item=item, purpose="control") for item in kept)
    left = planning.next_items(duty=duty, judge="Kohtunik", criterion="fluency", wanted=20)
    assert len(left.items) == 20 and not {item.pk for item in left.items} & {item.pk for item in kept}
    assert planning.draw_next_items(duty=duty, judge="Kohtunik", criterion="fluency", wanted=20) == 20


def test_the_width_of_a_preview_is_by_scenario_and_not_of_weighted_labels(
    cast: Cast, piloted: tuple[Campaign, Duty]
) -> None:
    campaign, duty = piloted
    asked: dict[str, Any] = {"duty": duty, "judge": "Kohtunik", "criterion": "fluency", "wanted": 6, "seed": 1}
    whole = planning.preview_draw(**asked)
    labels = list(Rating.objects.filter(annotation__campaign=campaign).values_list("score", flat=True))
    half = (
        2.0452296 * float(np.std(np.array(labels, dtype=float), ddof=1)) / 30**0.5
    )  # t at .975 with 29 degrees of freedom
    assert whole.half_before == pytest.approx(half) and not whole.is_approximate
    later = list(campaign.dataset.items.order_by("ordinal").values_list("pk", flat=True))[20:]
    Rating.objects.filter(annotation__item__in=later).delete()
    Selection.objects.filter(duty=duty, item__in=later).delete()
    assert planning.preview_draw(**asked).is_approximate
    first = Selection.objects.filter(duty=duty).order_by("item")[:5].values("pk")
    Selection.objects.filter(pk__in=list(first.values_list("pk", flat=True))).update(probability=0.25)
    assert planning.preview_draw(**asked).half_before is None


def refused(duty: Duty, **changes: Any) -> str:
    with pytest.raises(Refused) as found:
        planning.draw_next_items(**{"duty": duty, "judge": "Kohtunik", "criterion": "fluency", "wanted": 12, **changes})
    return found.value.sentence


def test_what_can_t_be_drawn_is_refused_with_what_to_do(cast: Cast, piloted: tuple[Campaign, Duty]) -> None:
    _campaign, duty = piloted
    assert "There is no judge “Nobody”" in refused(duty, judge="Nobody")
    assert "“pace” is not rated in this task" in refused(duty, criterion="pace")
    assert refused(duty, wanted=31) == "Draw from 1 to 30 items: so many are left."
    planning.draw_next_items(duty=duty, judge="Kohtunik", criterion="fluency", wanted=12)
    assert "drawn items are not rated yet" in refused(duty)
    assert Selection.objects.filter(duty=duty).order_by("-wave").first().wave == 2  # type: ignore[union-attr]


def test_the_page_says_whether_labelling_may_stop(cast: Cast, piloted: tuple[Campaign, Duty]) -> None:
    campaign, _duty = piloted
    question = NumbersQuestion(statistics=("plan.sequence_mean",), goals=(("half_width", "2"),), columns="")
    (row,) = answer_now(campaign, question).content["estimates"]
    labels = {row.item: row.score for row in ratings_tables.rows(campaign=campaign) if row.rater_kind == "annotator"}
    assert row["value"] == pytest.approx(float(np.mean(list(labels.values()))))
    assert row["method"] == "confidence sequence (empirical Bernstein)"
    assert row["low"] < row["value"] < row["high"]
    assert "as narrow as the goal of 2" in row["note"]
    address = f"/p/kassa/numbers/{campaign.pk}/planner/stop/?half_width=2"
    page = scene.answered(cast.client("aino"), campaign, address).content.decode()
    assert "you may stop: ±" in page and ">Yes<" in page.replace("\n", "")
    few = ratings_of_first(campaign, 2)
    page = scene.answered(cast.client("aino"), few, f"/p/kassa/numbers/{few.pk}/planner/stop/").content.decode()
    assert "Not yet" in page and "too early: every mean of the scale is still possible" in page
    assert "[0.00, 3.00]" not in page


def ratings_of_first(campaign: Campaign, kept: int) -> Campaign:
    """The campaign with the ratings of its first items only."""
    first = campaign.dataset.items.order_by("ordinal")[:kept].values_list("pk", flat=True)
    Rating.objects.filter(annotation__campaign=campaign).exclude(annotation__item__in=list(first)).delete()
    Annotation.objects.filter(campaign=campaign).exclude(item__in=list(first)).delete()
    return campaign
