"""Reports of a campaign: asked for by one click, written by a worker, self-contained, with every setting and count."""

from __future__ import annotations

import csv
import re
import zlib
from html import unescape
from html.parser import HTMLParser
from io import BytesIO, StringIO
from typing import Any
from zipfile import ZipFile

import pytest
from django.core.management import call_command

from analytics import answer_pages
from analytics.judges import thresholds
from analytics.latex_tables import latex_text
from analytics.models import Snapshot, Transfer
from analytics.questions.question import NumbersQuestion
from analytics.reports import content
from analytics.reports import files as report_files
from annotation.desk import service
from annotation.models import Campaign, Criterion
from tests import make
from tests.analytics import scene
from tests.analytics.test_transfers import asked, carried, fetched
from tests.annotation import scene as desks
from tests.cast import Cast


def make_scene(cast: Cast) -> Campaign:
    campaign = scene.rated_campaign(cast)
    scene.with_verdicts(campaign)
    return campaign


@pytest.fixture
def rated(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def written(cast: Cast, **options: Any) -> bytes:
    browser = cast.client("boris")
    done = carried(asked(browser, what="report", **options))
    assert done.state == "done", done.sentence
    return fetched(browser, done)


class Addresses(HTMLParser):
    """What a browser would fetch for a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.found += [
            value or "" for name, value in attrs if name in ("src", "href", "data", "action", "srcset", "xlink:href")
        ]


def test_one_click_on_the_page_of_numbers_has_a_worker_write_the_report(cast: Cast, rated: Campaign) -> None:
    browser = cast.client("aino")
    scene.compute(rated)
    page = browser.get(f"/p/kassa/numbers/{rated.pk}/").content.decode()
    fields = dict(re.findall(r'name="(what|format|campaign)" value="([^"]+)"', page))
    assert fields == {"what": "report", "format": "html", "campaign": str(rated.pk)}
    answer = browser.post("/p/kassa/export/file/", {**fields, "later": "on"})
    assert (answer.status_code, answer["Location"]) == (302, "/p/kassa/export/")
    done = carried(Transfer.objects.get())
    assert (done.state, done.name) == ("done", "round-1-report.html"), done.sentence


def test_the_page_fetches_nothing_and_has_every_figure_and_setting(cast: Cast, rated: Campaign) -> None:
    page = written(cast, format="html").decode()
    addresses = Addresses(page)
    assert not addresses.found
    assert not {"script", "link", "iframe", "img"} & set(addresses.tags)
    assert "url(" not in page
    assert "@import" not in page
    alpha = answer_pages.answer_now(
        rated, NumbersQuestion(statistics=("krippendorff_alpha", "gwet_ac", "percent_agreement"))
    )
    for row in alpha.content["estimates"]:
        if row["value"] is not None and row["asked"] == "krippendorff_alpha":
            assert f"<b>{row['value']:.2f}</b>".replace("-", "−") in page
    for text in ("Krippendorff’s α [", "doi:10.1080/19312450709336664", "2,000 resamples", "seed 20260101"):
        assert text in page
    for text in ("The judge “Kohtunik”", "12 items in Arabic (6) and Estonian (6)", "Licence of the items", "scipy "):
        assert text in page
    assert "prefers-color-scheme: dark" in page
    assert "<svg" in page


def test_names_in_the_data_are_text_in_page_and_latex(cast: Cast, rated: Campaign) -> None:
    Criterion.objects.filter(rubric_version=rated.rubric_version, key="fluency").update(
        text={"name": {"en": "<script>alert(1)</script> 50% & #1_x"}}
    )
    Criterion.objects.filter(rubric_version=rated.rubric_version).exclude(key="fluency").update(
        text={"name": {"en": "[1cm] var(--none)\n=HYPERLINK(1)"}}
    )
    with ZipFile(BytesIO(written(cast, format="zip"))) as archive:
        page = archive.read("report.html").decode()
        latex = archive.read("tables/01-agreement.tex").decode()
    assert r"\raggedright {}[1cm] var(--none) =HYPERLINK(1)} &" in latex
    report = content.composed_report(rated, content.ReportLayout(NumbersQuestion()), lambda _done, _total: None)
    in_print = report_files.report_page(report, report_files.numbered_tables(report), is_print=True)
    assert "var(--none)" in in_print
    assert "var(--ink)" not in in_print
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; 50% &amp; #1_x" in page
    assert r"<script>alert(1)</script> 50\% \& \#1\_x" in latex


def test_the_zip_has_the_tables_of_the_answers_and_their_charts(cast: Cast, rated: Campaign) -> None:
    with ZipFile(BytesIO(written(cast, format="zip"))) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    question = NumbersQuestion(statistics=("krippendorff_alpha", "gwet_ac", "percent_agreement"))
    expected = answer_pages.answer_now(rated, question).content["estimates"]
    rows = list(csv.DictReader(StringIO(files["tables/agreement.csv"].decode())))
    assert {row["statistic"] for row in rows} == set(question.statistics)
    assert [row["value"] for row in rows] == ["" if row["value"] is None else repr(row["value"]) for row in expected]
    latex = files["tables/01-agreement.tex"].decode()
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 1
    assert latex.count("{") == latex.count("}")
    heads = [line for line in latex.splitlines() if "&" in line]
    assert len({line.count("&") for line in heads}) == 1  # each row has as many cells as the head
    tables = "".join(text.decode() for name, text in files.items() if name.endswith(".tex"))
    assert tables.count(r"\centering") == tables.count(r"\begin{table}")
    undefined = re.findall(r"<small>undefined: ([^<]+)</small>", files["report.html"].decode())
    assert undefined
    assert tables.count(r"\scriptsize undefined: ") == len(undefined)
    assert all(latex_text(unescape(reason)) in tables for reason in undefined)
    drawn = [name for name in files if name.startswith("figures/")]
    assert drawn
    assert all(b"var(--" not in files[name] and b"<title>" in files[name] for name in drawn)


def test_thresholds_declared_after_figures_were_shown_are_marked(cast: Cast, rated: Campaign) -> None:
    thresholds.declare_thresholds(project=cast.kassa, preset="skilled", actor=cast.aino)
    first = written(cast, format="html").decode()
    assert "Yes: declared after figures were shown" not in first
    assert "Insufficient" in first  # six items a language
    assert Snapshot.objects.filter(campaign=rated).exists()
    thresholds.declare_thresholds(project=cast.kassa, preset="skilled", changes={"flip_rate": 0.2}, actor=cast.aino)
    second = written(cast, format="html").decode()
    assert second.count("Yes: declared after figures were shown") == 1
    assert "flip_rate 0.2" in second


def test_bias_and_order_are_against_the_mean_that_decisions_take(cast: Cast, rated: Campaign) -> None:
    """On an ordinal scale, in the tables as on the pages of a judge; classes are against the mode."""
    report = content.composed_report(rated, content.ReportLayout(NumbersQuestion()), lambda *_done: None)
    rules = {
        part.part.name: {row["reference"] for row in part.page.content["estimates"] if row["criterion"] == "fluency"}
        for part in report.parts
    }
    assert rules["bias"] == rules["order"] == {"mean"}
    assert all("mode" in rule for rule in rules["judges"])
    methods = " ".join(report.methods)
    assert "The reference label of a judge is the panel’s: mode" in methods
    assert re.search(r"For [^.]*Spearman[^.]*Bias[^.]*, it is the panel’s mean, and of labels", methods)
    chosen = content.report_parts(rated, content.ReportLayout(NumbersQuestion(reference="median")))
    assert {part.question.reference for part in chosen} == {"median"}


def test_settings_of_the_question_hold_for_all_tables(cast: Cast, rated: Campaign) -> None:
    page = written(cast, format="html", question="where=language%3Det&raters=jaan&raters=mari").decode()
    assert "Only language = et was taken." in page
    assert "Arabic</bdi>" not in page
    assert page.count("Raters: jaan, mari.") >= 2


def test_a_layout_asks_what_the_study_asked(cast: Cast, rated: Campaign) -> None:
    page = written(cast, format="html", layout="S4").decode()
    assert "Laid out as in Large models as evaluators." in page
    assert "Classes of agreement (S4)" in page
    assert "Krippendorff’s α" not in page
    answer = cast.client("boris").post(
        "/api/v1/projects/kassa/transfers/", {"what": "report", "layout": "S9"}, content_type="application/json"
    )
    assert answer.status_code == 400


def test_a_request_computes_nothing_and_says_who_writes_reports(cast: Cast, rated: Campaign) -> None:
    answer = cast.client("boris").get("/api/v1/projects/kassa/exports/report/")
    assert answer.status_code == 409
    assert "in the background" in answer.json()["detail"]
    assert not Snapshot.objects.exists()


def test_a_question_that_the_campaign_cant_be_asked_is_refused_before_a_worker_begins(
    cast: Cast, rated: Campaign
) -> None:
    body = {"what": "report", "question": "where=language%3Dxx"}
    answer = cast.client("boris").post("/api/v1/projects/kassa/transfers/", body, content_type="application/json")
    assert (answer.status_code, list(answer.json()["fields"])) == (422, ["where"])
    assert not Transfer.objects.exists()


def test_the_command_writes_the_report_that_a_worker_would(cast: Cast, rated: Campaign, tmp_path: Any) -> None:
    by_worker = written(cast, format="html", layout="S4")
    out = tmp_path / "report.html"
    call_command("report", "kassa", layout="S4", out=out)
    assert out.read_bytes() == by_worker


def test_a_pdf_has_pages_with_its_tables(cast: Cast, rated: Campaign) -> None:
    pytest.importorskip("weasyprint")
    pdf = written(cast, format="pdf")
    assert pdf.startswith(b"%PDF-")
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    plain = b"".join(zlib.decompressobj().decompress(each) for each in streams if each.startswith(b"x"))
    assert len(re.findall(rb"/Type /Page\b", plain)) >= 2


def test_a_campaign_without_judges_and_one_without_ratings_have_reports(cast: Cast) -> None:
    scene.campaign_without_ratings(cast, name="Empty")
    page = written(cast, format="html").decode()
    assert "No cell has a value." in page
    assert "No thresholds for the use of judges are declared." in page


def test_what_was_given_out_is_not_counted_as_rated(cast: Cast) -> None:
    """Four items for three people are twelve assignments; one of them was submitted."""
    rows = [make.item_row(place, "et") for place in range(4)]
    duty = desks.duty(cast, items=rows, overlap=3)
    taken = desks.taken(cast, duty)
    service.submit(assignment=taken, key=taken.key, answers=desks.ANSWERS, seconds=3)
    report = content.composed_report(duty.campaign, content.ReportLayout(NumbersQuestion()), lambda *_done: None)
    methods = " ".join(report.methods)
    assert "was to rate each item 3 times on" in methods and "rated each item" not in methods
    assert "Of its 12 assignments, 1 was submitted." in methods
    assert any("Annotations, each by one person of one item: 1." in sentence for sentence in report.statement)
