"""From a figure down to its items: the list by disagreement and judge's error, and everything given to one item."""

from __future__ import annotations

import csv
import html
import io
import itertools
import re
from urllib.parse import urlencode, urlsplit
from uuid import uuid4

import pytest

from accounts.models import Membership, Role
from analytics import items
from analytics.answers import snapshots
from analytics.exporting import shares
from analytics.ratings import ratings_tables
from annotation import allocation, campaigns
from annotation.desk import service
from annotation.desk.answers import Answer
from annotation.models import Adjudication, Annotation, Campaign, Item
from judging.models import Attempt, Call, Verdict
from tests import make
from tests.analytics import scene
from tests.annotation import scene as panel_scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db
DISAGREEING = {
    "fluency": {
        "mari": [0, 1, 2, 3, None],
        "jaan": [3, 1, 1, 3, None],
        "liis": [3, 1, None, 2, None],
    },
    "coherence": {"mari": [1, 0, None, None, None]},
}


def make_scene(cast: Cast) -> Campaign:
    """Five items: d1 is rated 0, 3, 3; d2 1, 1, 1; d3 2, 1; d4 3, 3, 2; d5 by the judge alone."""
    rows = [
        make.item_row(1, generator="atlas", attributes={"style": "plain", "turns": 3}),
        make.item_row(2, generator="atlas", attributes={"style": "ornate", "turns": 3}),
        make.item_row(3, generator="birch", attributes={"style": "plain", "turns": 4}),
        make.item_row(4, "ar", generator="birch"),
        make.item_row(5, "ar", generator="birch"),
    ]
    made = make.campaign(cast.kassa, items=rows)
    make.rated(made, DISAGREEING)
    scene.with_verdicts(made, {"fluency": [2, 3, "unparsed", 3, 0]})
    return made


@pytest.fixture
def campaign(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def read(cast: Cast, campaign: Campaign, query: str = "", *, who: str = "boris", status: int = 200) -> str:
    answer = cast.client(who).get(f"/p/kassa/numbers/{campaign.pk}/items/{query}")
    assert answer.status_code == status, answer.content
    return " ".join(answer.content.decode().split())


def ids(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="[^"]+"><bdi>([^<]+)</bdi>', page)


def cells(page: str, item: str) -> list[str]:
    """The text of each cell of an item's row."""
    row = next(row for row in page.split("<tr>") if f"<bdi>{item}</bdi>" in row)
    return [" ".join(re.sub(r"<[^>]+>", " ", cell).split()) for cell in re.findall(r"<td.*?</td>", row)]


def item_page(cast: Cast, campaign: Campaign, name: str, query: str = "", *, who: str = "boris") -> str:
    pk = Item.objects.get(dataset=campaign.dataset, external_id=name).pk
    answer = cast.client(who).get(f"/p/kassa/numbers/{campaign.pk}/items/{pk}/{query}")
    assert answer.status_code == 200
    return " ".join(answer.content.decode().split())


# --- measures --------------------------------------------------------------------------------------------------------
def test_disagreement_is_the_mean_over_all_pairs_of_ratings() -> None:
    for scores in itertools.combinations_with_replacement((0.0, 1.0, 2.5, 3.0), 4):
        counts = {score: scores.count(score) for score in scores}
        pairs = list(itertools.combinations(scores, 2))
        expected = sum(abs(a - b) for a, b in pairs) / len(pairs)
        assert items.item_disagreement(counts, "pair_difference") == pytest.approx(expected)
    assert items.item_disagreement({1: 2, 0: 1, 7: 1}, "mode_share") == 0.5
    assert items.item_disagreement({1: 1}, "mode_share") is None


def test_a_tied_mode_is_no_reference() -> None:
    assert items.reference_score({0: 1, 3: 1}, "mode") is None
    assert items.reference_score({0: 1, 3: 2}, "mode") == 3
    assert items.reference_score({0: 1, 3: 1}, "median") == 1.5
    assert items.reference_score({0: 1, 3: 2}, "mean") == 2
    assert items.reference_score({}, "mean") is None


# --- the list --------------------------------------------------------------------------------------------------------
class TestList:
    def test_items_come_by_disagreement_with_scores_reference_and_judge(self, cast: Cast, campaign: Campaign) -> None:
        page = read(cast, campaign)
        assert ids(page) == ["d1", "d3", "d4", "d2", "d5"]
        assert "5 items · 11 ratings · 5 verdicts of Kohtunik" in page
        who = "3 of 3 jaan 3 liis 3 mari 0"
        assert cells(page, "d1") == ["0, 3 ×2", "2", "2", "2", "0", who, "et", "atlas"]
        by_mode = read(cast, campaign, "?reference=mode")
        assert cells(by_mode, "d1") == ["0, 3 ×2", "2", "3", "2", "−1", who, "et", "atlas"]
        who = "2 of 2 jaan 1 mari 2"
        assert cells(by_mode, "d3") == ["1, 2", "1", "tied", "Unreadable", "– none", who, "et", "birch"]
        none = ["–", "– fewer than two scores", "no score", "0", "– none", "0 of 0", "ar", "birch"]
        assert cells(page, "d5") == none
        assert cells(page, "d2")[4] == "+2"

    def test_who_has_rated_of_all_who_were_asked(self, cast: Cast) -> None:
        work = panel_scene.duty(cast, items=1, overlap=2)
        lease = panel_scene.taken(cast, work)
        service.submit(assignment=lease, key=lease.key, answers=panel_scene.ANSWERS, seconds=31)
        name = lease.annotator.pseudonym
        assert cells(read(cast, work.campaign), "d1")[-2:] == [f"1 of 2 {name} 2 1 not yet rated", "atlas"]
        assert cells(read(cast, work.campaign, f"?rater={name}"), "d1")[-2] == f"1 {name} 2"
        assert cells(read(cast, work.campaign, "?panel=Estonian"), "d1")[-2].startswith("1 of 2 ")
        assert cells(read(cast, work.campaign, "?min_seconds=31"), "d1")[-2] == f"1 {name} 2", (
            "of how many is not known"
        )

    def test_a_person_with_two_tasks_on_one_item_counts_once(self, cast: Cast) -> None:
        work = panel_scene.duty(cast, items=1, overlap=2)
        more = allocation.allocate(campaign=work.campaign, panel=work.panel, overlap=1, name="More", again=True)
        for duty in (work, more):
            lease = panel_scene.taken(cast, duty)
            service.submit(assignment=lease, key=lease.key, answers=panel_scene.ANSWERS, seconds=31)
        name = lease.annotator.pseudonym
        assert cells(read(cast, work.campaign), "d1")[-2] == f"1 of 2 {name} 2 {name} 2 1 not yet rated"

    def test_filters_are_folded_and_open_where_something_is_wrong(self, cast: Cast, campaign: Campaign) -> None:
        def fold(page: str) -> str:
            return re.findall(r'<details class="fold more-filters"[^>]*> <summary>[^<]+', page)[0]

        assert fold(read(cast, campaign)).endswith("data-together> <summary>Filters (0 chosen)")
        chosen = "?judge=Kohtunik&language=et&generator=atlas&scored=3&where=item%3Dd1&where=item%3Dd2&sort=n"
        assert fold(read(cast, campaign, chosen)).endswith("data-together> <summary>Filters (4 chosen)")
        assert " open>" in fold(read(cast, campaign, "?scored=x", status=422))

    def test_orders(self, cast: Cast, campaign: Campaign) -> None:
        assert ids(read(cast, campaign, "?sort=judge_error&reference=mode")) == ["d2", "d1", "d4", "d3", "d5"]
        assert ids(read(cast, campaign, "?sort=judge_above&reference=mode")) == ["d2", "d4", "d1", "d3", "d5"]
        assert ids(read(cast, campaign, "?sort=judge_below&reference=mode")) == ["d1", "d4", "d2", "d3", "d5"]
        assert ids(read(cast, campaign, "?sort=id")) == ["d1", "d2", "d3", "d4", "d5"]
        assert ids(read(cast, campaign, "?sort=n")) == ["d1", "d2", "d4", "d3", "d5"]

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("?criterion=coherence", ["d1", "d2"]),
            ("?language=ar", ["d4", "d5"]),
            ("?generator=birch&language=et", ["d3"]),
            ("?attribute.style=plain", ["d1", "d3"]),
            ("?attribute.turns=3&attribute.style=ornate", ["d2"]),
            ("?attribute.style=plain&attribute.style=ornate", ["d1", "d3", "d2"]),
            ("?q=number+4", ["d4"]),
            ("?rater=mari&rater=liis", ["d1", "d4", "d2", "d3", "d5"]),
            ("?where=item%3Dd4&where=item%3Dd2&where=language%3Dar&where=language%3Det", ["d4", "d2"]),
            ("?where=dataset_version%3D1&where=generator%3Datlas", ["d1", "d2"]),
            ("?where=dataset_version%3D2", []),
            (f"?where=dataset_version%3D{9**30}", []),
            ("?where=hundred%3D1", ["d1", "d3", "d4", "d2"]),
            ("?where=week%3D1999-W01", []),
            ("?scored=0", ["d1"]),
            ("?settled=3&reference=mode", ["d1", "d4"]),
            ("?judged=3", ["d4", "d2"]),
            ("?settled=3&judged=3&reference=mode", ["d4"]),
        ],
    )
    def test_filters(self, cast: Cast, campaign: Campaign, query: str, expected: list[str]) -> None:
        assert ids(read(cast, campaign, query)) == expected

    def test_a_judge_between_two_points_is_at_the_nearest_one(self, cast: Cast) -> None:
        half = make.criterion("fluency", (1, 1.5, 2))
        about = {"dataset": make.dataset(cast.kassa, 3), "rubric_version": make.rubric(cast.kassa, half)}
        made = campaigns.open_campaign(project=cast.kassa, name="Halves", **about)
        make.rated(made, {"fluency": {"mari": [1, 1.5, 2]}})
        scene.with_verdicts(made, {"fluency": [1.2, 1.5, 1.75]})
        found = [len(ids(read(cast, made, f"?judged={point}"))) for point in (1, 1.5, 2)]
        assert found == [1, 1, 1]

    def test_what_the_figure_leaves_out_and_the_list_does_not_is_said(self, cast: Cast, campaign: Campaign) -> None:
        page = read(cast, campaign, "?exclude=single&where=generator%3Datlas")
        assert "The figure leaves out more ratings: the only rating left of the item and criterion." in page
        assert 'name="where" value="generator=atlas" checked' in page and 'name="exclude" value="single"' in page

    def test_only_the_chosen_raters_and_the_chosen_rule_count(self, cast: Cast, campaign: Campaign) -> None:
        page = read(cast, campaign, "?rater=mari&rater=jaan&reference=mean")
        assert cells(page, "d1")[:6] == ["0, 3", "3", "1.5", "2", "+0.5", "2 jaan 3 mari 0"]

    def test_classes_of_agreement_counts_of_scores_and_people(self, cast: Cast) -> None:
        made = make.campaign(cast.kassa, items=5)
        scores = {"mari": [1, 1, 0, 2, 3], "jaan": [1, 1, 1, 2, None], "liis": [1, 2, 2, None, None]}
        make.rated(made, {"fluency": scores})
        scene.with_verdicts(made, {"fluency": [1, "unparsed", 3, 2, 3]})
        for query, wanted in {
            "agreement=full": {"d1", "d4"},
            "agreement=partial": {"d2"},
            "agreement=none": {"d3"},
            "scores=3": {"d1", "d2", "d3"},
            "scores=2&rater=jaan&rater=liis": {"d1", "d2", "d3"},
            "by=jaan": {"d1", "d2", "d3", "d4"},
            "by=jaan&by=liis": {"d1", "d2", "d3"},
            "without=mari&scores=1": {"d1", "d2", "d3", "d4"},
            "without=jaan&agreement=none": {"d2", "d3"},
            "compared=only": {"d1", "d3", "d4", "d5"},
            "compared=only&reference=mode": {"d1", "d4", "d5"},
        }.items():
            assert set(ids(read(cast, made, f"?{query}"))) == wanted, query

    def test_rules_of_ties_and_of_adjudications(self, cast: Cast) -> None:
        made = make.campaign(cast.kassa, items=2)
        make.rated(made, {"fluency": {"mari": [0, 1], "jaan": [3, 1]}})
        assert '<option value="" selected>Mean (labels: mode)</option>' in read(cast, made)
        by_rule = {"mode": "tied", "mode_split": "1.5", "mode_lower": "0", "mode_upper": "3", "adjudicated": "tied"}
        for rule, reference in by_rule.items():
            assert cells(read(cast, made, f"?reference={rule}"), "d1")[2] == reference, rule
        criterion = made.rubric_version.criteria.get(key="fluency")
        first = Item.objects.of(made.dataset).get(external_id="d1")
        Adjudication.objects.create(
            campaign=made, item=first, criterion=criterion, rubric_version=made.rubric_version, score=2,
            adjudicator=cast.boris, order="range", digest="0", key=uuid4(),
        )  # fmt: skip
        assert ids(read(cast, made, "?reference=adjudicated&settled=2")) == ["d1"]
        assert ids(read(cast, made, "?reference=adjudicated_first&settled=1")) == ["d2"]
        page = read(cast, made, "?reference=dawid_skene")
        assert "The figure’s reference is “Dawid-Skene”, a rule for all items together." in page
        assert 'value="dawid_skene" selected' in page

    @pytest.mark.parametrize(
        ("query", "sentence"),
        [
            ("?criterion=grace", "This rubric has no criterion “grace”."),
            ("?language=fi", "No item of this campaign has the language “fi”."),
            ("?generator=elm", "No item of this campaign is by generator “elm”."),
            ("?judge=Nobody", "No judge “Nobody” has rated these items."),
            ("?rater=mari&rater=x&rater=y", "Nobody called x, y has rated in this campaign."),
            ("?panel=Estonian", "No panel “Estonian” rates in this campaign."),
            ("?sort=beauty", "“beauty” is not a sort order."),
            (
                "?reference=max",
                "mode, mode_split, mode_lower, mode_upper, median, mean, minimum, adjudicated, adjudicated_first, each",
            ),
            ("?blind=no", "“blind” can only be “only”"),
            ("?attribute.size=3", "No item of this campaign has the attribute “size”."),
            ("?where=colour%3Dred", "“colour=red” is not a filter."),
            ("?where=language%3Dfi", "No item of this campaign has “fi” as its language."),
            ("?exclude=rain", "“rain” can&#x27;t be left out."),
            ("?agreement=much", "“much” is not a class of agreement."),
            ("?by=x", "Nobody called x has rated in this campaign."),
            ("?scored=x", "“x” is not a number for “scored”."),
            ("?min_seconds=nan", "“nan” is not a number for “min_seconds”."),
            ("?attribute.style=x", "No item of this campaign has “x” as its attribute “style”."),
        ],
    )
    def test_what_names_nothing_is_refused_in_words(
        self, cast: Cast, campaign: Campaign, query: str, sentence: str
    ) -> None:
        page = read(cast, campaign, query, status=422)
        assert sentence in page
        assert "The list is not shown. Choose again below." in page
        assert ids(page) == []

    def test_a_nominal_criterion_counts_scores_that_differ(self, cast: Cast) -> None:
        points = [{"value": 0, "label": {"en": "No"}}, {"value": 1, "label": {"en": "Yes"}}]
        flag = {"key": "toxic", "name": {"en": "Toxic"}, "scale": {"level": "nominal", "points": points}}
        made = make.campaign(cast.kassa)
        version = make.rubric(cast.kassa, flag, key="flags")
        made.rubric_version = version
        made.save(update_fields=["rubric_version"])
        make.rated(made, {"toxic": {"a": [1, 0, 1, 0], "b": [1, 1, 1, 0], "c": [0, 1, 1, 0]}})
        scene.with_verdicts(made, {"toxic": [0, 1, 1, 0]})
        page = read(cast, made)
        assert cells(page, "d1") == ["No, Yes ×2", "0.33", "Yes", "No", "1", "3 of 3 a Yes b Yes c No", "atlas"]
        assert cells(page, "d3") == ["Yes ×3", "0", "Yes", "Yes", "0", "3 of 3 a Yes b Yes c Yes", "atlas"]
        by_mean = read(cast, made, "?reference=mean")
        assert cells(by_mean, "d1") == cells(page, "d1")
        assert "Labels without an order have no mean and no median." in by_mean

    def test_attributes_are_written_as_in_the_ratings_table(self, cast: Cast) -> None:
        given: list[object] = [3.0, ["a", "b"], True, None]
        rows = [make.item_row(n, attributes={"part": value}) for n, value in enumerate(given, 1)]
        made = make.campaign(cast.kassa, items=rows)
        make.rated(made, {"fluency": {"mari": [0, 1, 2, 3]}})
        table = ratings_tables.table(campaign=made, runs=[])
        written = {row[table.names.index("item")]: row[table.names.index("part")] for row in table.rows}
        for name in ("d1", "d2", "d3"):
            assert ids(read(cast, made, "?" + urlencode({"attribute.part": written[name]}))) == [name]

    def test_pages_and_the_whole_list_as_csv(self, cast: Cast) -> None:
        made = make.campaign(cast.kassa, items=60)
        make.rated(made, {"fluency": {"mari": [number % 4 for number in range(60)], "jaan": [0] * 60}})
        pages = [ids(read(cast, made, f"?page={number}")) for number in range(1, 6)]
        assert [len(page) for page in pages] == [12] * 5
        assert len({name for page in pages for name in page}) == 60
        answer = cast.client("boris").get(f"/p/kassa/numbers/{made.pk}/items.csv?generator=atlas")
        rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))
        assert [row["item"] for row in rows] == [name for page in pages for name in page]
        assert rows[0]["scores"] == '{"0": 1, "3": 1}'
        assert (rows[0]["disagreement"], rows[0]["disagreement_measure"], rows[0]["judge"]) == (
            "3", "pair_difference", "",
        )  # fmt: skip

    def test_a_wrong_address_of_the_csv_leads_to_the_page_that_says_so(self, cast: Cast, campaign: Campaign) -> None:
        answer = cast.client("boris").get(f"/p/kassa/numbers/{campaign.pk}/items.csv?sort=beauty")
        assert answer["Location"] == f"/p/kassa/numbers/{campaign.pk}/items/?sort=beauty"

    def test_before_anything_is_rated(self, cast: Cast) -> None:
        page = read(cast, make.campaign(cast.kassa))
        assert "Nothing is rated yet" in page
        page = read(cast, Campaign.objects.get(), "?sort=n")
        assert "Choose another criterion, or remove all filters." in page
        page = read(cast, Campaign.objects.get(), "?sort=judge_error", status=422)
        assert "No judge has rated these items, so they can&#x27;t be sorted by the judge&#x27;s error." in page

    def test_no_more_queries_for_more_items(self, cast: Cast, django_assert_max_num_queries: object) -> None:
        made = make.campaign(cast.kassa, items=40)
        make.rated(made, {"fluency": {"mari": [1] * 40, "jaan": [2] * 40}})
        client = cast.client("boris")
        with django_assert_max_num_queries(24):  # type: ignore[operator]
            client.get(f"/p/kassa/numbers/{made.pk}/items/")


# --- one item --------------------------------------------------------------------------------------------------------
class TestItem:
    def test_it_shows_the_dialogue_and_everything_that_was_given(self, cast: Cast, campaign: Campaign) -> None:
        page = item_page(cast, campaign, "d1")
        assert "Tere! Minu pakk number 1 on kadunud." in page
        assert re.findall(r'<h2 id="criterion-(\w+)">', page) == ["fluency", "coherence"]
        assert "disagreement 2" in page
        for pseudonym in ("mari", "jaan", "liis"):
            assert f"<bdi>{pseudonym}</bdi>" in page
        assert "error 0" in page
        assert "error −1" in item_page(cast, campaign, "d1", "?reference=mode")
        assert "67%" in page  # two of three raters gave 3

    def test_an_unreadable_verdict_is_missing_and_never_wrong(self, cast: Cast, campaign: Campaign) -> None:
        page = item_page(cast, campaign, "d3")
        assert "<bdi>Unreadable</bdi>" in page
        assert "error" not in page.split("Verdicts")[1]

    def test_a_verdict_leads_to_its_call(self, cast: Cast, campaign: Campaign) -> None:
        verdict = Verdict.objects.get(item__external_id="d1", criterion__key="fluency")
        call = Call.objects.create(run=verdict.run, item=verdict.item, state=Call.State.SETTLED)
        verdict.attempt = Attempt.objects.create(call=call, number=1, outcome="replied")
        verdict.rationale = "<b>Two slips</b>"
        verdict.save()
        page = item_page(cast, campaign, "d1")
        assert f'href="/p/kassa/runs/{verdict.run_id}/calls/{call.pk}/"' in page
        assert "&lt;b&gt;Two slips&lt;/b&gt;" in page

    def test_a_run_that_the_numbers_do_not_read_is_marked(self, cast: Cast, campaign: Campaign) -> None:
        assert "not in the numbers" not in item_page(cast, campaign, "d1")
        scene.with_verdicts(campaign, {"fluency": [3, 3, 3, 3, 3]})
        page = item_page(cast, campaign, "d1")
        assert page.count("not in the numbers") == 1

    def test_the_neighbours_are_those_of_the_list(self, cast: Cast, campaign: Campaign) -> None:
        page = item_page(cast, campaign, "d3", "?generator=birch")
        following = Item.objects.get(dataset=campaign.dataset, external_id="d4").pk
        assert "Item 1 of 3 in the list" in page
        assert 'rel="prev"' not in page
        assert re.search(
            rf'rel="next" href="/p/kassa/numbers/{campaign.pk}/items/{following}/\?[^"]*generator=birch', page
        )
        assert "not in the list with these filters" in item_page(cast, campaign, "d1", "?generator=birch")

    def test_earlier_ratings_na_and_critical_marks(self, cast: Cast) -> None:
        critical = make.criterion("safety", (0, 1), group="critical")
        work = panel_scene.duty(
            cast, items=1, overlap=1, criteria=[critical, make.criterion("fluency", not_applicable=True)]
        )
        lease = panel_scene.taken(cast, work)
        answers = {
            "safety": Answer(score=1, rationale="nothing wrong"),
            "fluency": Answer(score=None, status="na", rationale="no text"),
        }
        service.submit(assignment=lease, key=lease.key, answers=answers, seconds=31)
        lease = service.undo_submission(assignment=lease)
        marked = {"safety": Answer(score=0, rationale="a threat")}
        service.submit(assignment=lease, key=lease.key, answers=marked, seconds=8)
        assert Annotation.objects.exclude(superseded_at=None).count() == 1
        page = item_page(cast, work.campaign, "d1")
        assert "critical mark" in page
        assert "a threat" in page
        assert "<bdi>Stopped</bdi>" in page
        assert "1 earlier rating" in page
        assert "nothing wrong" in page
        assert "<bdi>Not applicable</bdi>" in page
        assert "8 s for the item" in page
        assert "<bdi>Estonian</bdi>" in page

    def test_campaigns_are_shown_apart(self, cast: Cast, campaign: Campaign) -> None:
        from annotation import campaigns

        other = campaigns.open_campaign(
            project=cast.kassa, name="Round 2", dataset=campaign.dataset, rubric_version=campaign.rubric_version
        )
        make.rated(other, {"fluency": {"teine": [3, 3, 3, 3, 3]}})
        page = item_page(cast, campaign, "d1")
        assert "<bdi>teine</bdi>" not in page
        pk = Item.objects.get(dataset=campaign.dataset, external_id="d1").pk
        assert f'href="/p/kassa/numbers/{other.pk}/items/{pk}/">Round 2</a>' in page
        assert "<bdi>teine</bdi>" in item_page(cast, other, "d1")


# --- from the numbers ------------------------------------------------------------------------------------------------
def test_every_row_of_the_numbers_leads_to_its_items(cast: Cast, campaign: Campaign) -> None:
    snapshots.snapshot(campaign=campaign, settings=snapshots.Settings(raters=("jaan", "mari")))
    client = cast.client("boris")
    page = client.get(f"/p/kassa/numbers/{campaign.pk}/?raters=mari,jaan").content.decode()
    links = {
        html.unescape(link) for link in re.findall(r'href="(/p/kassa/numbers/\d+/items/\?[^"]*criterion[^"]*)"', page)
    }
    about = {urlsplit(link).query.split("&", 2)[2] for link in links}
    judged = "judge=Kohtunik&sort=judge_error&compared=only&reference=mode"
    assert {"criterion=fluency", "criterion=fluency&language=et", f"criterion=fluency&{judged}"} <= about
    assert f"criterion=fluency&language=ar&{judged}" in about, "a row of the bias chart"
    for link in links:
        answer = client.get(link)
        assert answer.status_code == 200
        assert tuple(sorted(answer.context["choice"].raters, reverse=True)) == ("mari", "jaan")
    # the figures leave out items without a mode, ratings or a readable verdict, and so do their lists
    compared = client.get(next(link for link in links if link.endswith(f"criterion=fluency&{judged}")))
    assert ids(compared.content.decode()) == ["d2", "d4"]


def test_a_shared_page_leads_to_no_items(cast: Cast, campaign: Campaign) -> None:
    snapshots.snapshot(campaign=campaign)
    _share, secret = shares.make(campaign=campaign, label="reviewers", actor=cast.aino)
    page = cast.client("zoltan").get(f"/shared/{secret}/").content.decode()
    assert "How computed" in page
    assert ">Items<" not in page


# --- by API ----------------------------------------------------------------------------------------------------------
class TestApi:
    def test_the_list_is_the_list_of_the_page(self, cast: Cast, campaign: Campaign) -> None:
        address = f"/api/v1/projects/kassa/campaigns/{campaign.pk}/items/"
        client = cast.client("boris")
        first = client.get(f"{address}?limit=2&generator=birch").json()
        assert [row["item"] for row in first["results"]] == ["d3", "d4"]
        row = first["results"][1]
        assert row["scores"] == [{"score": 2.0, "count": 1}, {"score": 3.0, "count": 2}]
        assert (row["disagreement"], row["measure"]) == (pytest.approx(2 / 3), "pair_difference")
        assert (row["reference"], row["reference_rule"], row["judge_error"]) == (
            pytest.approx(8 / 3),
            "mean",
            pytest.approx(1 / 3),
        )
        assert row["signed_error"] == pytest.approx(1 / 3)
        by_mode = client.get(f"{address}?where=item%3Dd1&reference=mode").json()["results"][0]
        assert (by_mode["judge_error"], by_mode["signed_error"]) == (1.0, -1.0)
        unread = first["results"][0]["verdict"]
        assert unread == {"judge": "Kohtunik", "status": "unparsed", "score": None, "applicable": True, "repeats": 1}
        second = client.get(first["next"]).json()
        assert [row["item"] for row in second["results"]] == ["d5"]
        assert (second["next"], "cursor=0" in second["previous"]) == (None, True)

    def test_what_names_nothing_is_refused_with_its_field(self, cast: Cast, campaign: Campaign) -> None:
        address = f"/api/v1/projects/kassa/campaigns/{campaign.pk}/items/"
        answer = cast.client("boris").get(f"{address}?criterion=grace&attribute.size=3")
        assert answer.status_code == 422
        assert set(answer.json()["fields"]) == {"criterion", "attribute.size"}
        assert cast.client("boris").get(f"{address}?cursor=x").status_code == 400

    def test_one_item_has_its_ratings_and_verdicts(self, cast: Cast, campaign: Campaign) -> None:
        pk = Item.objects.get(dataset=campaign.dataset, external_id="d3").pk
        answer = cast.client("boris").get(f"/api/v1/projects/kassa/campaigns/{campaign.pk}/items/{pk}/").json()
        assert answer["item"]["external_id"] == "d3"
        (fluency,) = answer["criteria"]
        assert [(rating["rater"], rating["score"]) for rating in fluency["ratings"]] == [("jaan", 1.0), ("mari", 2.0)]
        (verdict,) = fluency["verdicts"]
        assert (verdict["status"], verdict["score"], verdict["error"], verdict["counts"]) == (
            "unparsed", None, None, True,
        )  # fmt: skip


# --- who may see it --------------------------------------------------------------------------------------------------
def test_annotators_reach_neither_page_nor_file(cast: Cast, campaign: Campaign) -> None:
    pk = campaign.dataset.items.first().pk
    for address in ("items/", "items.csv", f"items/{pk}/"):
        answer = cast.client("maarika").get(f"/p/kassa/numbers/{campaign.pk}/{address}")
        assert answer.status_code == 403
        assert "Kohtunik" not in answer.content.decode()
        assert cast.client("zoltan").get(f"/p/kassa/numbers/{campaign.pk}/{address}").status_code == 404


def test_a_lead_who_rates_in_the_campaign_is_warned(cast: Cast) -> None:
    work = panel_scene.duty(cast, seated=[cast.aino])
    warning = "You rate in this project. The scores of judges and of other people could influence your ratings."
    assert Membership.objects.get(user=cast.aino, project=cast.kassa).role == Role.LEAD
    assert warning in read(cast, work.campaign, who="aino")
    assert warning in item_page(cast, work.campaign, "d1", who="aino")
    assert warning not in read(cast, work.campaign, who="boris")
