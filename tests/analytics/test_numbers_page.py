"""The pages: a project's overview, the list of campaigns, agreement and calibration with its chart."""

from __future__ import annotations

import html
import re
import sys
from typing import Any

import pytest
from django.core.cache import caches
from django.test import Client
from django.utils import timezone

import analytics
from accounts.models import Heartbeat
from analytics.answers import snapshots
from analytics.exporting import exports
from analytics.judges import thresholds
from analytics.models import Chart
from analytics.questions.question import Settings
from annotation import campaigns
from annotation.models import Campaign
from judging.models import Judge
from tests import make
from tests.analytics import scene
from tests.annotation import scene as panel_scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def make_scene(cast: Cast) -> Campaign:
    made = scene.rated_campaign(cast)
    scene.with_verdicts(made)
    snapshots.snapshot(campaign=made)
    return made


@pytest.fixture
def campaign(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def nominal_campaign(cast: Cast) -> Campaign:
    """Eight items and a criterion with the classes no and yes."""
    points = [{"value": value, "label": {"en": name}} for value, name in enumerate(("no", "yes"))]
    criterion = {"key": "toxic", "name": {"en": "Toxic"}, "scale": {"level": "nominal", "points": points}}
    return campaigns.open_campaign(
        project=cast.kassa,
        name="Flags",
        dataset=make.dataset(cast.kassa, 8, name="Flags"),
        rubric_version=make.rubric(cast.kassa, criterion, key="flags"),
    )


def read(client: Client, campaign: Campaign, query: str = "", **headers: str) -> str:
    answer = client.get(f"/p/kassa/numbers/{campaign.pk}/{query}", headers=headers)
    assert answer.status_code == 200
    return " ".join(re.sub(r"\s+", " ", answer.content.decode()).split())


class TestFigures:
    def test_a_cell_holds_its_value_and_tells_its_interval_and_basis(self, cast: Cast, campaign: Campaign) -> None:
        page = read(cast.client("boris"), campaign)
        assert re.search(r"Fluency, Estonian: 0\.9\d \[0\.\d\d, 1\.00\] · 6 items × 2 raters", page)
        assert "Krippendorff’s α" in page

    def test_few_items_mute_a_cell_and_only_the_undefined_is_blank(self, cast: Cast, campaign: Campaign) -> None:
        page = read(cast.client("boris"), campaign)
        assert re.search(r'<td data-bin="\d"[^>]* class=" muted"', page)
        assert page.count('<td class="undefined') == 1
        assert "Coherence, Arabic: not rated" in page
        assert "Every cell is based on fewer than 30 items (6 at most)" in page

    def test_an_undefined_cell_says_why(self, cast: Cast) -> None:
        made = make.campaign(cast.kassa)
        make.rated(made, {"fluency": {"mari": [0, 1, 2, 3]}})
        snapshots.snapshot(campaign=made)
        page = read(cast.client("boris"), made)
        assert "Fluency, Estonian: undefined: only one rater" in page
        assert "no judge yet" in page
        assert "Judge minus panel" not in page

    def test_the_first_line_says_what_the_mode_leaves_out(self, cast: Cast, campaign: Campaign) -> None:
        page = read(cast.client("boris"), campaign)
        sentence = (
            "The judge’s figures leave out 3 of 18 cells: the annotators are tied there, so that no score is the most "
            "frequent.</p> <p>Most: 1 of 6 items (Fluency, Arabic), 1 of 6 items (Fluency, Estonian) and 1 of 6 items "
            "(Coherence, Estonian).</p>"
        )
        assert page.index(sentence) < page.index("Computed ")
        for rule in ("mode_split", "median", "mean", "minimum", "each"):
            assert f'href="?reference={rule}"' in page

    @pytest.mark.parametrize(
        ("rule", "bias", "items"),
        [
            ("mode_split", "−0.17", "12 items"),  # Fluency: tied items take 2.5 and 0.5
            ("minimum", "−0.08", "12 items"),
            ("each", "−0.17", "12 items"),
        ],
    )
    def test_a_rule_chosen_in_the_address_is_what_the_judge_is_compared_with(
        self, cast: Cast, campaign: Campaign, rule: str, bias: str, items: str
    ) -> None:
        client = cast.client("boris")
        assert "No figures yet" in read(client, campaign, f"?reference={rule}")
        scene.compute(campaign, Settings(reference=rule))
        page = read(client, campaign, f"?reference={rule}&part=all")
        assert "The judge’s figures leave out" not in page
        assert re.search(rf"<b>{bias}</b>(?:(?!<tr).)*{items}", page)
        assert '<input type="hidden" name="reference" value="' in page
        told = client.get(f"/api/v1/projects/kassa/campaigns/{campaign.pk}/numbers/?reference={rule}").json()
        assert told["snapshot"]["settings"]["reference"] == rule
        refusal = "“best” is not a reference rule. Choose one of mode, mode_split, median, mean, minimum and each."
        assert refusal in read(client, campaign, "?reference=best")

    def test_the_sentence_under_the_judge_s_table_is_about_the_language_of_the_table(
        self, cast: Cast, campaign: Campaign
    ) -> None:
        client = cast.client("boris")
        assert "<span>Arabic: Every cell is based on" in read(client, campaign, "?part=ar")
        assert "<span>All languages: Every cell is based on" in read(client, campaign)

    def test_a_nominal_criterion_shows_each_class_and_no_distances(self, cast: Cast) -> None:
        """Of 8 items the panel puts 4 in "yes"; the judge 3 of these and 1 other: precision, recall and F1 are 3/4."""
        made = nominal_campaign(cast)
        make.rated(made, {"toxic": {rater: [1, 1, 1, 1, 0, 0, 0, 0] for rater in ("mari", "jaan")}})
        scene.with_verdicts(made, {"toxic": [1, 1, 1, 0, 1, 0, 0, 0]})
        snapshots.snapshot(campaign=made)
        page = read(cast.client("boris"), made)
        assert "no distances" not in page
        assert "Judge minus panel" not in page
        row = page[page.index('<th scope="row">yes</th>') :]
        assert re.findall(r"<b>([\d.]+)</b>|>(\d+%)</a></td>", row[: row.index("</tr>")]) == [
            ("", "50%"), ("", "50%"), ("0.75", ""), ("0.75", ""), ("0.75", ""),
        ]  # fmt: skip
        assert re.search(r"Accuracy: <span[^>]*><b>0\.75</b>", page)

    def test_a_campaign_that_only_judges_rated_shows_what_they_gave(self, cast: Cast) -> None:
        made = scene.campaign_without_ratings(cast)
        run = scene.with_verdicts(made, {"fluency": [3, 3, 2, 1, 0, 3] + 6 * [None]})
        first = run.verdicts.order_by("item__ordinal").first()
        run.verdicts.create(item=first.item, criterion=first.criterion, repeat=2, status="ok", score=1)
        snapshots.snapshot(campaign=made)
        page = read(cast.client("boris"), made)
        assert "no annotator yet" in page
        assert "Rater agreement by criterion" not in page
        cells = page.partition("<bdi>Kohtunik</bdi></th>")[2].partition("</tr>")[0]
        links = re.findall(r'<td data-bin="\d" title="[^"]*"><a href="([^"]+)">[\d%]+</a></td>', cells)
        assert len(links) == 4 and "judge=Kohtunik" in links[3] and "judged=3" in links[3]
        found = cast.client("boris").get(html.unescape(links[3])).content.decode()
        assert "3 items" in found and "<bdi>3</bdi>" in found  # of the first item the first repeat counts
        assert re.search(r"atlas</bdi></td><td[^>]*> ?<span[^>]*><b>2\.00</b>", page)
        assert "Repeats of a judge" in page

    def test_nothing_is_said_of_the_mode_where_it_leaves_out_less_than_a_tenth(self, cast: Cast) -> None:
        made = scene.rated_campaign(cast)
        make.rated(made, {"fluency": {"kolmas": [0, 1, 2, 3, 3, 1, 3, 2, 1, 1, 1, 2]}})
        make.rated(made, {"coherence": {"kolmas": [1, 0, 1, 1, 0, 1] + 6 * [None]}})
        scene.with_verdicts(made)
        snapshots.snapshot(campaign=made)
        assert "The judge’s figures leave out" not in read(cast.client("boris"), made)

    def test_every_figure_shows_its_method_and_what_it_rests_on(self, cast: Cast, campaign: Campaign) -> None:
        page = html.unescape(read(cast.client("boris"), campaign))
        rows = {
            (row["statistic"], row["criterion"], row.get("language"), row.get("judge")): row
            for row in snapshots.newest([campaign])[campaign.pk].content["estimates"]
        }
        for name, statistic, judge in (("Gwet’s AC", "gwet_ac", None), ("MAE", "mae", "Kohtunik")):
            row = rows[statistic, "fluency", None, judge]
            listed = re.findall(rf"<li><b>{name}</b>: (.*?)</li>", page)
            assert any(row["method"] in each and f"se {row['se']:.3f}" in each for each in listed)
            assert any(each.endswith("6 clusters") or "6 clusters, " in each for each in listed)
        assert rows["mae", "fluency", None, "Kohtunik"]["n_missing"] == 2
        assert "6 clusters, 2 missing" in page

    def test_an_approximate_interval_is_marked_in_words_in_every_table(self, cast: Cast, campaign: Campaign) -> None:
        page = read(cast.client("boris"), campaign)
        for caption in ("Every coefficient as a table", "Calibration table"):
            table = page[page.index(f'aria-label="{caption}"') :].split("</table>")[0]
            assert '</span> <span class="approximate">approximate</span>' in table

    def test_a_cell_shows_its_interval_and_that_it_is_approximate(self, cast: Cast, campaign: Campaign) -> None:
        page = read(cast.client("boris"), campaign)
        heat = page[page.index('<table class="heat" ') :].split("</table>")[0]
        cells = re.findall(r"<td data-bin.*?</td>", heat)
        assert cells
        interval = r"<small>(\d\.\d\d–\d\.\d\d|−\d\.\d\d to −?\d\.\d\d|no interval)</small>"
        assert all(re.search(interval, cell) for cell in cells)
        assert "<small>approximate</small>" in heat
        assert "read its interval" not in page

    def test_a_key_figure_prints_its_range_once(self, cast: Cast, campaign: Campaign) -> None:
        page = read(cast.client("boris"), campaign)
        box = page[page.index('aria-labelledby="kpi-agreement"') :].split("</section>")[0]
        assert re.search(r"from 0\.\d\d \[.*?\] \(\w+\) to 0\.\d\d \[.*?\] \(\w+\); no interval for the median", box)
        assert box.count("from ") == 1
        assert box.count("2 criteria") == 1

    def test_every_figure_says_for_whom_it_speaks(self, cast: Cast, campaign: Campaign) -> None:
        page = html.unescape(read(cast.client("boris"), campaign))
        made = re.findall(r"<li><b>(?:MAE|Gwet’s AC)</b>: (.*?)</li>", page)
        assert made
        assert all("for these raters" in each for each in made)

    def test_no_interval_is_said_with_its_reason_never_a_bare_number(self, cast: Cast) -> None:
        made = make.campaign(cast.kassa, items=[make.item_row(0, "et")])
        make.rated(made, {"fluency": {"mari": [2], "jaan": [1]}})
        snapshots.snapshot(campaign=made)
        page = read(cast.client("boris"), made)
        table = page[page.index('aria-label="Every coefficient as a table"') :].split("</table>")[0]
        values = re.findall(r"<b>[^<]+</b> <span class=\"interval[^>]*>([^<]*)</span>", table)
        assert values
        assert all(re.match(r"\[|no interval: \w+", each) for each in values)

    def test_another_coefficient(self, cast: Cast, campaign: Campaign) -> None:
        page = read(cast.client("boris"), campaign, "?coefficient=percent_agreement")
        assert "Fluency, Estonian: 83% [" in page
        assert "not corrected for chance" in page

    def test_the_calibration_table_of_the_judge_chosen(self, cast: Cast, campaign: Campaign) -> None:
        scene.with_verdicts(campaign, {"fluency": [9, *11 * [3]]}, name="Teine", simulated=False)
        snapshots.snapshot(campaign=campaign)
        page = read(cast.client("boris"), campaign, "?judge=Teine&part=et")
        assert "Teine against the panel" in page
        assert "1 off the scale" in page
        assert "1 on items with a tied panel mode" in page

    def test_a_judge_on_the_simulated_provider_is_marked_everywhere(self, cast: Cast, campaign: Campaign) -> None:
        assert read(cast.client("boris"), campaign).count("Simulated provider") == 3
        Judge.objects.update(simulated=False)
        make.rated(campaign, {"fluency": {"uus": [1, *11 * [None]]}})
        snapshots.snapshot(campaign=campaign)
        assert "Simulated provider" not in read(cast.client("boris"), campaign)

    def test_nothing_rated_yet(self, cast: Cast) -> None:
        made = make.campaign(cast.kassa)
        snapshots.snapshot(campaign=made)
        assert "Nothing is rated yet" in read(cast.client("boris"), made)

    def test_names_are_escaped(self, cast: Cast) -> None:
        made = scene.rated_campaign(cast)
        scene.with_verdicts(made, name="<b>J</b>")
        snapshots.snapshot(campaign=made)
        page = read(cast.client("boris"), made)
        assert "<b>J</b>" not in page
        assert "&lt;b&gt;J&lt;/b&gt;" in page


class TestFreshness:
    def test_without_figures_it_says_that_they_are_being_computed(self, cast: Cast) -> None:
        made = scene.rated_campaign(cast)
        Heartbeat.objects.create(name="w", kind="worker", seen_at=timezone.now())
        assert "The first figures are being computed." in read(cast.client("boris"), made)

    def test_without_a_worker_it_says_what_to_do(self, cast: Cast, campaign: Campaign) -> None:
        make.rated(campaign, {"fluency": {"uus": [3, *11 * [None]]}})
        page = read(cast.client("boris"), campaign)
        assert "no worker is running to compute new ones" in page
        assert "panelbench up" in page

    def test_opening_the_page_asks_for_what_is_missing(
        self, cast: Cast, django_capture_on_commit_callbacks: Any
    ) -> None:
        made = scene.rated_campaign(cast)
        with django_capture_on_commit_callbacks() as asked:
            read(cast.client("boris"), made)
            read(cast.client("boris"), made)
        assert len(asked) == 1

    def test_the_page_asks_for_itself_and_gets_only_what_changed(self, cast: Cast, campaign: Campaign) -> None:
        client = cast.client("boris")
        again = re.search(r'hx-get="([^"]*seen=[^"]*)"', read(client, campaign)).group(1)  # type: ignore[union-attr]
        assert client.get(again, headers={"HX-Request": "true"}).status_code == 204
        make.rated(campaign, {"fluency": {"uus": [3, *11 * [None]]}})
        stale = client.get(again, headers={"HX-Request": "true"})
        assert "data-stale" in stale.content.decode()
        assert "HX-Retarget" not in stale
        scene.compute(campaign)
        fresh = client.get(again, headers={"HX-Request": "true"})
        assert (fresh["HX-Retarget"], fresh["HX-Reselect"]) == ("#main", "#main")
        assert "data-stale" not in fresh.content.decode()

    def test_a_followed_link_is_always_answered(self, cast: Cast, campaign: Campaign) -> None:
        newest = snapshots.newest([campaign])[campaign.pk]
        assert "Computed" in read(cast.client("boris"), campaign, f"?seen={newest.pk}-fresh")


class TestRaters:
    def test_a_subset_is_computed_and_shown(self, cast: Cast, campaign: Campaign) -> None:
        snapshots.snapshot(campaign=campaign, settings=Settings(raters=("hala", "noor")))
        for query in ("?raters=noor,hala", "?raters=noor&raters=hala"):
            page = read(cast.client("boris"), campaign, query)
            assert "Only the chosen raters are included." in page
            assert "2 of 4 raters" in page
            assert "Fluency, Estonian: not rated" in page

    def test_a_subset_that_nobody_asked_for_before_is_asked_for(
        self, cast: Cast, campaign: Campaign, django_capture_on_commit_callbacks: Any
    ) -> None:
        with django_capture_on_commit_callbacks() as asked:
            page = read(cast.client("boris"), campaign, "?raters=noor,hala")
        assert len(asked) == 1
        assert "No figures yet" in page

    def test_a_stranger_is_named_and_everyone_counts(self, cast: Cast, campaign: Campaign) -> None:
        page = read(cast.client("boris"), campaign, "?raters=keegi")
        assert "Nobody called keegi has rated in this campaign." in page
        assert "All raters" in page


class TestChart:
    def address(self, cast: Cast, campaign: Campaign) -> str:
        page = read(cast.client("boris"), campaign)
        return re.search(r'download href="([^"]*bias.svg[^"]*)"', page).group(1).replace("&amp;", "&")  # type: ignore[union-attr]

    def test_page_and_chart_are_served_where_the_renderer_is_missing(
        self, cast: Cast, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        caches["content"].clear()
        for renderer in ("vl_convert", "analytics.charts"):
            monkeypatch.setitem(sys.modules, renderer, None)
        monkeypatch.delattr(analytics, "charts", raising=False)
        page = read(cast.client("boris"), campaign)
        assert page.count('<svg direction="ltr"') == 2  # one for wide screens, one for phones
        assert page.count('fill="var(--ink)">Estonian<') == 2
        assert page.count('fill="var(--ink-faint)">← judge lower') == 2
        alone = cast.client("boris").get(self.address(cast, campaign))
        assert alone.status_code == 200
        assert "Estonian" in alone.content.decode()

    def test_there_is_one_of_every_judge_and_criterion(self, cast: Cast, campaign: Campaign) -> None:
        scene.with_verdicts(campaign, name="<b>&Teine</b>")
        newest = snapshots.snapshot(campaign=campaign)
        drawn = set(newest.charts.values_list("judge", "criterion"))
        assert drawn == {(judge, key) for judge in ("Kohtunik", "<b>&Teine</b>") for key in ("fluency", "coherence")}
        page = read(cast.client("boris"), campaign, "?judge=%3Cb%3E%26Teine%3C/b%3E&criterion=coherence")
        assert page.count('<svg direction="ltr"') == 2
        assert "<b>&" not in page

    def test_a_chart_of_no_such_judge_is_not_there(self, cast: Cast, campaign: Campaign) -> None:
        Chart.objects.all().delete()
        assert cast.client("boris").get(self.address(cast, campaign)).status_code == 404

    def test_it_is_an_svg_of_its_own_with_an_etag(self, cast: Cast, campaign: Campaign) -> None:
        client, address = cast.client("boris"), self.address(cast, campaign)
        chart = client.get(address)
        assert (chart.status_code, chart["Content-Type"]) == (200, "image/svg+xml")
        assert "Estonian" in chart.content.decode()
        assert client.get(address, headers={"If-None-Match": chart["ETag"]}).status_code == 304
        dark = client.get(address.replace("theme=light", "theme=dark"))
        assert dark["ETag"] != chart["ETag"]
        assert dark.content != chart.content

    def test_its_values_stand_in_a_table_and_its_message_in_the_alternative_text(
        self, cast: Cast, campaign: Campaign
    ) -> None:
        page = read(cast.client("boris"), campaign)
        assert re.search(
            r'role="img" aria-label="Fluency\. Every cell is based on fewer than 30 items[^"]*table below', page
        )
        assert "The chart as a table" in page

    def test_a_snapshot_of_another_campaign_is_not_there(self, cast: Cast, campaign: Campaign) -> None:
        other = campaigns.open_campaign(
            project=cast.kassa, name="Round 2", dataset=campaign.dataset, rubric_version=campaign.rubric_version
        )
        newest = snapshots.newest([campaign])[campaign.pk]
        answer = cast.client("boris").get(f"/p/kassa/numbers/{other.pk}/{newest.pk}/bias.svg")
        assert answer.status_code == 404


@pytest.mark.parametrize(("who", "status"), [("aino", 200), ("boris", 200), ("maarika", 403), ("zoltan", 404)])
def test_numbers_are_for_leads_and_researchers(cast: Cast, campaign: Campaign, who: str, status: int) -> None:
    newest = snapshots.newest([campaign])[campaign.pk]
    base = f"/p/kassa/numbers/{campaign.pk}/"
    for address in ("/p/kassa/", base, f"{base}{newest.pk}/bias.svg"):
        assert cast.client(who).get(address).status_code == status


class TestList:
    def test_the_only_campaign_is_gone_to_at_once(self, cast: Cast, campaign: Campaign) -> None:
        answer = cast.client("boris").get("/p/kassa/numbers/")
        assert (answer.status_code, answer["Location"]) == (302, f"/p/kassa/numbers/{campaign.pk}/study/")

    def test_several_are_listed_with_their_headlines(
        self, cast: Cast, campaign: Campaign, django_assert_num_queries: Any
    ) -> None:
        for number in (2, 3):
            campaigns.open_campaign(
                project=cast.kassa,
                name=f"Round {number}",
                dataset=campaign.dataset,
                rubric_version=campaign.rubric_version,
            )
        client = cast.client("boris")
        with django_assert_num_queries(8):
            page = client.get("/p/kassa/numbers/").content.decode()
        assert page.count("Not computed yet.") == 2
        assert re.search(r"<dd>0\.\d\d</dd>", page)
        assert re.search(r'<dd class="extent">2 criteria, from 0\.\d\d \[.*?\] to 0\.\d\d \[', page)
        assert "(simulated)" in page

    def test_none_says_what_to_do(self, cast: Cast) -> None:
        assert "Open a campaign" in cast.client("boris").get("/p/kassa/numbers/").content.decode()


def test_the_page_asks_the_same_few_questions_whatever_its_size(
    cast: Cast, campaign: Campaign, django_assert_num_queries: Any
) -> None:
    client = cast.client("boris")
    with django_assert_num_queries(14):
        read(client, campaign)
    scene.with_verdicts(campaign, name="Teine")
    make.rated(campaign, {"fluency": {f"r{number}": 12 * [1] for number in range(9)}})
    snapshots.snapshot(campaign=campaign)
    with django_assert_num_queries(14):
        read(client, campaign)


class TestOverview:
    def test_an_empty_project_shows_the_way(self, cast: Cast) -> None:
        page = cast.client("aino").get("/p/kassa/").content.decode()
        assert "What to do next" in page
        assert page.count("data-done") == 0
        assert re.search(r'aria-current="step">\s*<div><b>Upload a dataset', page)

    def test_what_is_done_is_ticked_and_the_next_step_stands_out(self, cast: Cast) -> None:
        panel_scene.duty(cast)
        page = cast.client("aino").get("/p/kassa/").content.decode()
        assert page.count("data-done") == 4
        assert re.search(r'aria-current="step">\s*<div><b>Declare what a judge must reach', page)
        assert "0 of 6 assignments" in page

    def test_a_whole_project_shows_its_campaigns_and_runs(
        self, cast: Cast, campaign: Campaign, django_assert_num_queries: Any
    ) -> None:
        panel_scene.panels.seat(panel=panel_scene.panels.create(project=cast.kassa, name="P"), user=cast.maarika)
        thresholds.declare_thresholds(project=cast.kassa, preset="skilled", actor=cast.aino)
        client = cast.client("aino")
        page = client.get("/p/kassa/").content.decode()
        (report,) = re.findall(r'aria-current="step">\s*<div><b>Write the report.*?href="([^"]+)"', page, re.DOTALL)
        assert f'name="campaign" value="{campaign.pk}"' in client.get(report).content.decode()
        taken = exports.Export(project=cast.kassa, what="report", kind="html", subject=campaign)
        exports.record_export(taken, cast.aino)
        with django_assert_num_queries(56):  # open work takes some for each of five campaigns at most
            page = client.get("/p/kassa/").content.decode()
        assert "What to do next" not in page
        assert "24 imported annotations" in page
        assert "Kohtunik" in page
        assert "Simulated provider" in page


GROUPS = {
    "Study": {"Study": "numbers/{}/study/"},
    "People": {
        "Agreement": "numbers/{}/agreement/", "Annotators": "numbers/{}/annotators/",
        "Rater models": "numbers/{}/raters/", "Adjudication": "numbers/{}/adjudication/",
    },
    "Judges": {
        "Decisions": "numbers/{}/judges/", "Calibration": "numbers/{}/calibration/",
        "Comparison": "numbers/{}/comparison/", "Audits": "numbers/{}/audits/",
        "All judges": "judges/?campaign={}",
    },
    "Generators": {"Generators": "numbers/{}/results/"},
    "Next": {
        "Workflow": "numbers/{}/workflow/", "Planner": "numbers/{}/planner/", "Waves": "numbers/{}/waves/",
    },
    "Items": {"Items": "numbers/{}/items/"},
    "Report": {"Report": "numbers/{}/report/"},
    "All statistics": {"All statistics": "numbers/{}/all/", "Figures": "numbers/{}/", "Explore": "numbers/{}/explore/"},
    "Campaign": {"Tasks and settings": "campaigns/{}/", "Qualification": "campaigns/{}/qualification/"},
}  # fmt: skip


def test_every_page_about_a_campaign_links_to_all_groups_and_to_the_pages_of_its_own(
    cast: Cast, campaign: Campaign
) -> None:
    client = cast.client("boris")
    link = re.compile(r'<a href="([^"]*)"(?: aria-current="(\w+)")?>([^<]*)</a>')
    addresses = {
        group: {name: f"/p/kassa/{path.format(campaign.pk)}" for name, path in pages.items()}
        for group, pages in GROUPS.items()
    }
    firsts = [(next(iter(pages.values())), group) for group, pages in addresses.items()]
    for group, pages in addresses.items():
        for name, address in pages.items():
            page = client.get(address).content.decode()
            links = link.findall(page.partition('<nav class="campaign-pages"')[2].partition("</nav>")[0])
            of_group = [(to, of) for of, to in pages.items()] if len(pages) > 1 else []
            assert [(to, shown) for to, _current, shown in links] == [*firsts, *of_group]
            here = [("true", group), ("page", name)] if of_group else [("true", group)]
            assert [(current, shown) for _to, current, shown in links if current] == here
    for wrong in ("x", "999999", "9" * 30):
        assert "campaign-pages" not in client.get(f"/p/kassa/judges/?campaign={wrong}").content.decode()


def test_pages_below_the_settings_of_a_campaign_have_its_tabs_with_settings_current_and_the_way_back(
    cast: Cast, campaign: Campaign
) -> None:
    client, settings = cast.client("aino"), f"/p/kassa/campaigns/{campaign.pk}/"
    for below in ("duties/new/", "duties/by-rules/", "selections/new/", "rubric/", "references/", "references/edit/"):
        page = client.get(settings + below).content.decode()
        assert f'<a href="{settings}" aria-current="true">Campaign</a>' in page, below
        crumbs = page.partition('<p class="crumbs">')[2].partition("</p>")[0]
        assert re.findall(r'<a href="([^"]+)">', crumbs)[:3] == [
            "/p/kassa/campaigns/", f"/p/kassa/numbers/{campaign.pk}/study/", settings,
        ], below  # fmt: skip


def test_the_addresses_of_stability_lead_on_to_generators(cast: Cast, campaign: Campaign) -> None:
    there = f"/p/kassa/numbers/{campaign.pk}"
    for address, now in (("", ""), ("?judge=Kohtunik", "?judge=Kohtunik"), ("ranks/?judge=K", "ranks/?judge=K")):
        answer = cast.client("boris").get(f"{there}/stability/{address}")
        assert (answer.status_code, answer["Location"]) == (301, f"{there}/results/{now}")
