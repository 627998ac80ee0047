"""Questions about a campaign's ratings: as an address, on the page, by the API and by command."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone, translation

from accounts.models import Heartbeat
from accounts.refusals import Refused
from analytics import answer_pages
from analytics.answer_pages import AnswerPage
from analytics.answers import snapshots
from analytics.figure_words import translated_message
from analytics.questions.asked import asked_question, question_of
from analytics.questions.question import NumbersQuestion
from analytics.ratings.additions import model_family
from analytics.ratings.raters import newest_runs
from analytics.stats.core.messages import Message
from analytics.stats.declared.register import STATISTICS, statistics_of
from annotation import campaigns
from annotation.models import Annotator, Campaign
from judging.models import Judge, JudgeRun
from tests import make
from tests.analytics import scene
from tests.cast import Cast

TOPICS = [{"value": value, "label": {"en": name}} for value, name in enumerate(("Refund", "Delivery", "Other"))]
pytestmark = pytest.mark.django_db


def make_scene(cast: Cast) -> Campaign:
    made = scene.rated_campaign(cast)
    scene.with_verdicts(made)
    return made


@pytest.fixture
def campaign(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def read(client: Client, campaign: Campaign, query: str = "", *, status: int = 200) -> str:
    """The page's text, once a worker has computed what it asked for."""
    answer = scene.answered(client, campaign, f"/p/kassa/numbers/{campaign.pk}/explore/?{query}")
    assert answer.status_code == status
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", answer.content.decode()).split()))


class TestQuestion:
    def test_equal_questions_have_one_query_and_one_digest(self) -> None:
        first = question_of(
            "?rows=language&columns=&raters=b&raters=a&where=language%3Det&judge=Tamm%2C+J&pool=on&seed=7"
        )
        again = question_of(
            "seed=7&judge=Tamm%2C+J&raters=a&raters=b&raters=a&rows=language&columns=&pool=on&where=language=et"
        )
        assert first == again and first.digest == again.digest
        assert first.judges == ("Tamm, J",) and first.raters == ("a", "b") and first.where == (("language", "et"),)
        assert question_of(first.query) == first
        assert NumbersQuestion().query == "" and question_of("") == NumbersQuestion()
        assert replace(first, reference="each").digest != first.digest
        assert json.loads(json.dumps(first.as_json))["raters"] == ["a", "b"]

    @pytest.mark.parametrize(
        ("query", "sentence"),
        [
            ("rows=colour", "Available: criterion, language, generator, scenario, item, dataset_version, judge"),
            ("where=colour%3Dred", "“colour” is not a valid choice for “where”"),
            ("where=language%3Dfr", "Available: language=ar, language=et"),
            ("judge=Nobody", "Available: Kohtunik"),
            ("raters=nobody", "Available: hala, jaan, mari, noor"),
            ("run=x", "“x” is not a valid choice for “run”"),
            ("statistic=beauty", "“beauty” is not a valid choice for “statistic”"),
            ("reference=best", "Available: mode, mode_split, median, mean, minimum, each, dawid_skene"),
            ("bootstrap=10", "0, or 200 and more"),
            ("rows=language", "Rows and columns are both “language”"),
            ("colour=red", "There is no parameter “colour”"),
        ],
    )
    def test_what_there_is_not_is_refused_with_what_there_is(
        self, campaign: Campaign, query: str, sentence: str
    ) -> None:
        with pytest.raises(Refused) as refused:
            asked_question(campaign, [tuple(pair.split("=", 1)) for pair in query.replace("%3D", "=").split("&")])  # type: ignore[misc]
        assert sentence in refused.value.sentence

    def test_a_judge_is_needed_where_one_is_asked_about(self, cast: Cast) -> None:
        with pytest.raises(Refused, match="no judge has been run"):
            asked_question(scene.rated_campaign(cast), [("statistic", "mae")])

    def test_every_statistic_that_is_offered_is_one(self) -> None:
        from analytics.stats.agreement import rater_agreement
        from analytics.stats.judge import calibration, consistency
        from analytics.stats.ranking import stability

        among_raters = {*rater_agreement.STATISTICS, *rater_agreement.APPLICABILITY.values()}
        assert set(statistics_of("agreement")) <= among_raters
        assert set(statistics_of("calibration", "human ceiling")) <= {*calibration.STATISTICS}
        known = {"stability": stability.STATISTICS, "consistency": consistency.STATISTICS}
        for report, names in known.items():
            assert {STATISTICS[name].plain for name in statistics_of(report)} <= set(names)

    @pytest.mark.parametrize("query", ["confidence=0.9512345", "min_seconds=0.12345678", "min_seconds=-0"])
    def test_a_worker_reads_the_same_number(self, query: str) -> None:
        question = question_of(query)
        assert question_of(question.query).digest == question.digest


class TestRuns:
    def test_a_run_that_asked_once_replaces_none_that_asked_three_times(self, campaign: Campaign) -> None:
        once = JudgeRun.objects.get()
        thrice = scene.with_verdicts(campaign)
        JudgeRun.objects.filter(pk=thrice.pk).update(repeats=3)
        scene.with_verdicts(campaign)
        assert [run.pk for run in newest_runs(campaign)] == [thrice.pk]
        each = asked_question(campaign, [("run", "each"), ("statistic", "accuracy"), ("rows", "judge")])
        named = {row["judge"] for row in snapshots.snapshot(campaign=campaign, settings=each).content["estimates"]}
        assert len(named) == 3 and f"Kohtunik (run {once.pk})" in named
        one = asked_question(campaign, [("run", str(once.pk)), ("statistic", "accuracy")])
        assert {row["judge"] for row in snapshots.snapshot(campaign=campaign, settings=one).content["estimates"]} == {
            "Kohtunik"
        }


class TestPage:
    def test_a_matrix_by_two_columns_with_counts_and_reasons(self, cast: Cast, campaign: Campaign) -> None:
        page = read(cast.client("boris"), campaign, "rows=language&columns=criterion&statistic=mae")
        assert "MAE Kohtunik" in page and "approximate" in page
        assert "fewer than 30 items" in page and "5 items × 2 raters" in page and "clusters" in page
        assert "no item has both a judge score and a reference label" in page
        assert "Rows: Language Columns: Criterion Raters: all" in page
        assert "12 items · 6 clusters · 4 annotators · 36 ratings · 1 judge · 24 verdicts" in page

    def test_a_wrong_question_keeps_the_form(self, cast: Cast, campaign: Campaign) -> None:
        page = read(cast.client("boris"), campaign, "rows=colour", status=422)
        assert "“colour” is not a valid choice for “rows”" in page and "Compute" in page

    def test_the_form_keeps_every_filter(self, cast: Cast, campaign: Campaign) -> None:
        query = "where=language%3Det&where=language%3Dar&where=criterion%3Dfluency&where=scenario%3Ds1&confidence=0.9"
        page = read_raw(cast.client("boris"), campaign, query)
        fields = re.findall(r'<input[^>]*name="(where|confidence)" value="([^"]*)"( checked)?>', page)
        sent = {(name, value) for name, value, checked in fields if checked or value in ("scenario=s1", "0.9")}
        assert question_of(urlencode(sorted(sent))).query == question_of(query).query

    def test_a_cell_leads_to_its_items(self, cast: Cast, campaign: Campaign) -> None:
        client = cast.client("boris")
        query = "statistic=mae&where=generator%3Datlas"
        answer = scene.answered(client, campaign, f"/p/kassa/numbers/{campaign.pk}/explore/?{query}")
        address = html.unescape(re.findall(r'href="(/p/kassa/numbers/\d+/items/\?[^"]*)"', answer.content.decode())[0])
        assert "criterion=" in address and "language=" in address and "generator=atlas" in address
        assert client.get(address).status_code == 200

    def test_every_preset_is_a_question(self, cast: Cast, campaign: Campaign) -> None:
        client = cast.client("boris")
        page = client.get(f"/p/kassa/numbers/{campaign.pk}/").content  # its one link
        assert client.get(f"/p/kassa/numbers/{campaign.pk}/explore/").status_code == 200
        form = client.get(f"/p/kassa/numbers/{campaign.pk}/explore/").content
        offered = re.findall(rb'<a class="btn btn-s" href="\?([^"]*)">As in', form)
        assert len(offered) == 7  # S0 and S4 have two each
        for query in offered:
            assert "being computed" not in read(client, campaign, html.unescape(query.decode()))
        assert b"/explore/" in page or not snapshots.newest([campaign])

    def test_a_worker_computes_however_small_it_is(self, cast: Cast, campaign: Campaign) -> None:
        client, query = cast.client("boris"), "statistic=mae&judge=Kohtunik"
        Heartbeat.objects.create(name="w", kind="worker", seen_at=timezone.now())
        address = f"/p/kassa/numbers/{campaign.pk}/explore/?{query}"
        assert "These figures are being computed." in client.get(address).content.decode()
        assert not snapshots.Snapshot.objects.exists()
        assert client.get(f"/p/kassa/numbers/{campaign.pk}/explore/cells.csv?{query}").status_code == 503
        assert client.get(f"/api/v1/projects/kassa/campaigns/{campaign.pk}/estimates/?{query}").json()["stale"] is True
        scene.compute(campaign, question_of(query))
        page = read(client, campaign, query)
        assert "being computed" not in page and "MAE" in page

    def test_ratings_that_were_left_out_are_counted(self, cast: Cast, campaign: Campaign) -> None:
        from annotation.models import Annotation

        Annotation.objects.filter(annotator__pseudonym="mari").update(seconds=2, blind=False)
        page = read(cast.client("boris"), campaign, "min_seconds=5&where=criterion%3Dcoherence")
        assert "6 ratings left out: item rated in less than 5 s" in page
        assert "6 ratings counted although their raters could see verdicts" in page
        page = read(cast.client("boris"), campaign, "min_seconds=5")
        assert "12 ratings left out: item rated in less than 5 s" in page
        assert "12 ratings counted although their raters could see verdicts" in page
        assert "24 ratings" in page


class TestCommand:
    def test_names_with_commas_and_filters(
        self, cast: Cast, campaign: Campaign, capsys: pytest.CaptureFixture[str]
    ) -> None:
        Annotator.objects.filter(pseudonym="mari").update(pseudonym="Tamm, Mari")
        asked = ["--project", "kassa", "--raters", "Tamm, Mari", "--raters", "jaan", "--statistic", "mae"]
        call_command("numbers", *asked, "--rows", "language", "--columns", "criterion", "--format", "json")
        told = json.loads(capsys.readouterr().out)
        assert {row["n_raters"] for row in told["estimates"] if row["value"] is not None} == {2}
        assert told["question"]["raters"] == ["Tamm, Mari", "jaan"]
        call_command("numbers", *asked, "--format", "csv")
        assert {row["statistic"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))} == {"mae"}
        call_command("numbers", *asked)
        assert "items x raters" in capsys.readouterr().out
        with pytest.raises(CommandError, match="Available: Tamm, Mari, hala"):
            call_command("numbers", "--project", "kassa", "--raters", "nobody")


def test_attributes_are_rows_columns_and_filters(cast: Cast) -> None:
    items = [
        make.item_row(n, external_id=f"i{n}", attributes={"task type": "qa" if n % 2 else "sum", "level": n % 3})
        for n in range(12)
    ]
    made = make.campaign(cast.kassa, items=items)
    scores = [float(n % 4) for n in range(12)]
    make.rated(made, {"fluency": {"mari": scores, "jaan": scores[::-1]}})
    page = read(cast.client("boris"), made, "rows=task_type&columns=attribute_level&where=criterion%3Dfluency")
    assert "task_type" in page and "2 items × 2 raters" in page
    page = read(cast.client("boris"), made, "rows=task_type&columns=&where=attribute_level%3D1")
    assert "4 items · 4 clusters · 2 annotators · 8 ratings" in page


class TestRules:
    def test_a_rule_that_needs_an_order_is_for_ordered_criteria_alone(self, cast: Cast) -> None:
        topic = {"key": "topic", "name": {"en": "Topic"}, "scale": {"level": "nominal", "points": TOPICS}}
        made = campaigns.open_campaign(
            project=cast.kassa,
            name="Study",
            dataset=make.dataset(cast.kassa, 4),
            rubric_version=make.rubric(cast.kassa, topic, make.criterion("fluency")),
        )
        by_rater = {"mari": [0, 1, 2, 0], "jaan": [0, 1, 2, 1], "noor": [2, 0, 0, 2]}
        make.rated(made, {"topic": by_rater, "fluency": by_rater})
        scene.with_verdicts(made, {"topic": [0, 1, 2, 0], "fluency": [0, 1, 2, 0]})

        def measured(query: str) -> dict[str, tuple[float, str]]:
            asked = question_of(f"statistic=accuracy&bootstrap=0&columns=&{query}")
            rows = snapshots.snapshot(campaign=made, settings=asked).content["estimates"]
            return {row["criterion"]: (row["value"], row["reference"]) for row in rows}

        for rule in ("mean", "median", "minimum"):
            both = measured(f"reference={rule}")
            assert both["topic"] == (1.0, "mode") and both["fluency"][1] == rule
        assert measured("reference=mean")["fluency"][0] < 1
        both = measured("reference=mode&ties=upper")
        assert both["topic"] == (1.0, "mode") and both["fluency"] == (0.75, "mode, ties: upper")
        assert measured("reference=mean&level=nominal") == {"topic": (1.0, "mode"), "fluency": (1.0, "mode")}


class TestApi:
    def test_a_nul_in_a_filter_is_left_out(self, cast: Cast, campaign: Campaign) -> None:
        address = f"/api/v1/projects/kassa/campaigns/{campaign.pk}/estimates/?where=item=a%00b"
        told = scene.answered(cast.client("boris"), campaign, address)
        assert told.status_code == 200 and told.json()["answer"]["query"] == "where=item%3Dab"

    def test_the_ratings_behind_any_rule_can_be_downloaded(self, cast: Cast, campaign: Campaign) -> None:
        client, address = cast.client("boris"), f"/api/v1/projects/kassa/campaigns/{campaign.pk}/ratings.csv"
        rows = b"".join(client.get(f"{address}?reference=dawid_skene&raters=mari,jaan"))
        assert b",mari," in rows and b",noor," not in rows
        assert client.get(f"{address}?raters=nobody").status_code == 422
        assert client.get(f"{address}?reference=best").status_code == 422


def test_intervals_beside_the_panel_have_the_confidence_that_is_asked_for(campaign: Campaign) -> None:
    asked = question_of("statistic=ceiling_accuracy&statistic=ceiling_mae&columns=&confidence=0.8")
    rows = snapshots.snapshot(campaign=campaign, settings=asked).content["estimates"]
    assert {row["confidence"] for row in rows if row["low"] is not None} == {0.8}


def test_statistics_of_two_families_have_headings_of_their_own(cast: Cast, campaign: Campaign) -> None:
    names = ("fleiss_kappa", "consistency.fleiss_kappa", "kendall_tau_b", "stability.kendall_tau_b")
    query = "&".join(["columns=", *(f"statistic={name}" for name in names)])
    address = f"/api/v1/projects/kassa/campaigns/{campaign.pk}/estimates/?{query}"
    told = scene.answered(cast.client("boris"), campaign, address).json()
    assert {row["asked"] for row in told["answer"]["estimates"]} == set(names)
    page = cast.client("boris").get(f"/p/kassa/numbers/{campaign.pk}/explore/?{query}").content.decode()
    headings = [html.unescape(title) for title in re.findall(r'<h2 id="matrix-\d+">([^<]*)</h2>', page)]
    for title in ("Fleiss’ κ", "Fleiss’ κ with languages as raters", "τ-b between the rankings", "Kendall’s τ-b"):
        assert any(re.match(rf"{title}( \(| of two|$)", heading) for heading in headings), (title, headings)


def test_a_cell_leads_to_the_items_by_its_rule_and_panels(cast: Cast, campaign: Campaign) -> None:
    def links(query: str) -> list[str]:
        page = read_raw(cast.client("boris"), campaign, f"statistic=accuracy&{query}")
        return [html.unescape(found) for found in re.findall(r'href="/p/kassa/numbers/\d+/items/\?([^"]*)"', page)]

    assert all("reference=median" in link for link in links("reference=median")) and links("reference=median")
    for query, rule in {"reference=mode_split": "mode_split", "reference=mode&ties=lower": "mode_lower"}.items():
        found = [link for link in links(query) if "criterion=" in link]  # it is stated as "mode, ties: median"
        assert found and all(f"reference={rule}&compared=only" in link for link in found), found
    by_each = links("reference=each")  # no rule for one item: the list names it and says which rule it uses instead
    assert by_each and all("reference=each" in link and "compared=" not in link for link in by_each)
    assert links("level=nominal") and all("min_seconds=5" in link for link in links("min_seconds=5"))
    asked = question_of("statistic=accuracy&panel=Tartu")
    row = {"criterion": "fluency", "language": "et", "reference": "mode", "judge": None}
    answer = snapshots.snapshot(campaign=campaign, settings=question_of("statistic=accuracy"))
    assert "panel=Tartu" in AnswerPage(campaign, answer, asked).items_address(row)
    pooled = AnswerPage(campaign, answer, asked).items_address({**row, "criterion": None})
    assert f"criterion={next(iter(AnswerPage(campaign, answer, asked).criteria))}" in pooled  # a list is about one


@pytest.mark.parametrize(
    "query",
    [
        "rows=scenario&columns=week&statistic=percent_agreement&exclude=single&min_seconds=0.5",
        "rows=item&columns=dataset_version&statistic=mae&where=language%3Det&where=language%3Dar",
        "columns=languages&rows=judge&statistic=stability.kendall_tau_b&statistic=consistency.fleiss_kappa",
        "rows=raters&columns=hundred&statistic=pairs.percent_agreement&where=criterion%3Dfluency",
        "rows=annotator&columns=&statistic=left_out.gwet_ac_change&where=criterion%3Dfluency&blind=only",
    ],
)
def test_every_cell_leads_to_a_list_of_its_items(cast: Cast, campaign: Campaign, query: str) -> None:
    client = cast.client("boris")
    page = read_raw(client, campaign, f"bootstrap=0&{query}")
    cells = re.findall(r"<td[ >].*?</td>", page.partition('id="answer"')[2].partition('id="basis-title"')[0], re.DOTALL)
    given = [cell for cell in cells if "not rated" not in cell]
    links = {html.unescape(found) for cell in given for found in re.findall(r'href="([^"]*/items/\?[^"]*)"', cell)}
    assert links and all("/items/?" in cell for cell in given if cell[:4] != "<td>" or "<data" in cell)
    for link in sorted(links)[:4]:
        assert client.get(link).status_code == 200, link


def test_a_judge_among_the_raters_leads_to_no_list_of_items_that_an_annotator_scored(
    cast: Cast, campaign: Campaign
) -> None:
    page = read_raw(cast.client("boris"), campaign, "rows=annotator&columns=criterion&statistic=raters.rasch_severity")
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', page.partition('id="answer"')[2], re.DOTALL)
    links = {
        re.sub(r"<[^>]+>", "", name).strip(): re.findall(r'href="([^"]*/items/\?[^"]*)"', row) for name, row in rows
    }
    assert links["Kohtunik"] and all("by=" not in link for link in links["Kohtunik"])
    assert links["mari"] and all("by=mari" in link for link in links["mari"])
    assert cast.client("boris").get(html.unescape(links["Kohtunik"][0])).status_code == 200


def read_raw(client: Client, campaign: Campaign, query: str) -> str:
    return scene.answered(client, campaign, f"/p/kassa/numbers/{campaign.pk}/explore/?{query}").content.decode()


def test_files_hold_the_stored_answer_while_a_newer_one_is_computed(cast: Cast, campaign: Campaign) -> None:
    asked = question_of("statistic=mae")
    scene.compute(campaign, asked)
    stored, _is_stale = snapshots.current_snapshot(campaign=campaign, settings=asked)
    scene.with_verdicts(campaign)
    assert stored is not None and snapshots.current_snapshot(campaign=campaign, settings=asked) == (stored, True)
    client, address = cast.client("boris"), f"/p/kassa/numbers/{campaign.pk}/explore"
    told = client.get(f"{address}/cells.json?{asked.query}")
    assert told.status_code == 200 and told.json()["revision"] == stored.revision
    assert b"\nmae," in b"".join(client.get(f"{address}/cells.csv?{asked.query}"))
    assert answer_pages.open_job(campaign, asked)


def test_a_long_answer_comes_in_parts(cast: Cast, campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = question_of("statistic=mae&statistic=bias")
    scene.compute(campaign, asked)
    client = cast.client("boris")
    address = f"/p/kassa/numbers/{campaign.pk}/explore/cells.json?{asked.query}"
    whole = client.get(address).json()
    n_figures = len(whole["estimates"])
    assert whole["next"] is None and whole["total"] == n_figures > 5
    monkeypatch.setattr("analytics.views.explore.MOST_ROWS", n_figures - 1)
    first = client.get(address).json()
    rest = client.get(first["next"]).json()
    assert first["estimates"] + rest["estimates"] == whole["estimates"] and len(rest["estimates"]) == 1
    assert rest["next"] is None and rest["total"] == n_figures
    rows = csv.DictReader(io.StringIO(b"".join(client.get(address.replace("json", "csv"))).decode()))
    assert len(list(rows)) == n_figures


def test_a_question_without_figures_says_so(cast: Cast, campaign: Campaign) -> None:
    page = read(cast.client("boris"), campaign, "variant=none")
    assert "There is no figure for this question" in page and "Choose other statistics, variants" in page
    assert "has the variant none" in page


def test_notes_on_the_ratings_are_in_the_readers_language(cast: Cast) -> None:
    made = scene.rated_campaign(cast)
    query = "statistic=krippendorff_alpha&variant=quadratic&columns="
    client = cast.client("boris")
    english = read(client, made, query)
    asked = question_of(query)
    (note,) = snapshots.snapshot(campaign=made, settings=asked).content["notes"]
    assert isinstance(note, Message) and note in english
    type(cast.boris).objects.filter(pk=cast.boris.pk).update(ui_language="et")
    with translation.override("et"):
        estonian = translated_message(note)
    assert estonian != note
    page = read(client, made, query)
    assert estonian in page and note not in page


def test_the_family_that_wrote_an_item_can_be_an_attribute(cast: Cast) -> None:
    """Generators are called after fruit; the attribute says whose models they are."""
    families = ["gpt" if n % 2 else "claude" for n in range(12)]
    items = [
        make.item_row(n, external_id=f"i{n}", generator="õun" if n % 2 else "pirn",
                      attributes={"generator_family": family}) for n, family in enumerate(families)
    ]  # fmt: skip
    made = make.campaign(cast.kassa, items=items)
    make.rated(made, {"fluency": {"mari": [float(n % 4) for n in range(12)]}})
    for name, model in (("Gert", "openai/gpt-4o"), ("Klaus", "claude-3")):
        of_family = [float(family == model_family(model)) + n % 3 for n, family in enumerate(families)]
        run = scene.with_verdicts(made, {"fluency": of_family}, name=name)
        Judge.objects.filter(pk=run.judge_id).update(model=model)
    asked = question_of("statistic=audit.self_preference&columns=&confidence=0.8")
    rows = snapshots.snapshot(campaign=made, settings=asked).content["estimates"]
    assert {row["judge"]: row["value"] for row in rows if row["value"] is not None} == {
        "Gert": pytest.approx(1.0), "Klaus": pytest.approx(1.0)
    }  # fmt: skip
    assert {row["confidence"] for row in rows if row["low"] is not None} <= {0.8}
