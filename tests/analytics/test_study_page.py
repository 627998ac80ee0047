"""The page Study through HTTP: what it says is what its figures say, for those who may read it."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import replace
from html import unescape
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

import pytest
from django.core.cache import caches
from django.utils import timezone

from analytics import tasks
from analytics.answers.snapshots import current_snapshot
from analytics.judges import decisions, thresholds
from analytics.models import Computation, Snapshot
from analytics.questions.asked import question_choices
from analytics.questions.question import NumbersQuestion, Settings
from analytics.study.choice import StudyChoice
from analytics.study.picture_files import PICTURES
from analytics.study.preparing import SETTLED, settled_campaigns, stale_questions, study_lacks
from analytics.study.study import CampaignStudy
from analytics.views.agreement import AGREEMENT as AGREEMENT_PAGE
from analytics.views.calibration import CALIBRATION
from analytics.views.explore import QuestionForm
from analytics.views.parts import judge_question
from annotation import allocation, campaigns, panels
from annotation.desk import service
from annotation.models import Annotation, Campaign
from judging.models import Call, Judge, JudgeRun
from tests import make
from tests.analytics import scene
from tests.analytics.test_judge_pages import judged_campaign, text_of
from tests.annotation import scene as desk_scene
from tests.cast import Cast

pytestmark = pytest.mark.django_db


def make_scene(cast: Cast) -> Campaign:
    target = judged_campaign(cast)
    thresholds.declare_thresholds(project=target.project, preset="skilled", actor=None)
    for judge in ("Anna", "Bert"):
        page(cast, target, f"?judge={judge}")
    return target


def without_spaces(text: str) -> str:
    return "".join(text.split())


@pytest.fixture
def judged(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


@pytest.fixture
def cast(module_scene: tuple[Cast, Campaign]) -> Cast:
    return module_scene[0]


def page(cast: Cast, target: Campaign, query: str = "", user: str = "aino") -> str:
    """The page when everything that it asks for is computed."""
    address = f"/p/kassa/numbers/{target.pk}/study/{query}"
    for _try in range(4):
        found: str = scene.answered(cast.client(user), target, address).content.decode()
        if "hx-get" not in found:
            break
    return found


def test_the_sentences_say_what_the_decisions_say(cast: Cast, judged: Campaign) -> None:
    found = page(cast, judged, "?judge=Anna")
    decided = decisions.current_decisions(judged)
    assert decided is not None and decided.snapshot is not None
    squares = re.findall(r'data-use="(\w+)"[^>]*aria-label="(Anna|Bert) ', found)
    for judge in ("Anna", "Bert"):
        counted = {use.value: n for use, n in decided.summary(judge)}
        assert Counter(use for use, name in squares if name == judge) == counted
    words = text_of(found)
    assert "The panels agree more than by chance in" in words and "Anna" in words and "To do" in words
    sentences = text_of(found[found.index('class="study-findings"') : found.index("</dl>")])
    assert sentences.count("so far first") + sentences.count("not decided") >= 1 and "certainly" not in sentences
    assert "Every figure is based on 10 independent items only: preliminary." in words
    assert "to do" in words.lower()


def test_the_api_says_the_same(cast: Cast, judged: Campaign) -> None:
    words = without_spaces(text_of(page(cast, judged, "?judge=Bert", user="boris")))
    answered = cast.client("boris").get(f"/api/v1/projects/kassa/campaigns/{judged.pk}/study/?judge=Bert").json()
    assert answered["is_computed"] is True and answered["choice"]["judge"] == "Bert"
    assert [each["topic"] for each in answered["findings"]] == ["people", "judges", "generators", "certainty"]
    for finding in answered["findings"]:
        for sentence in finding["sentences"]:
            assert without_spaces(sentence) in words


def test_the_bar_is_kept_and_one_language_leaves_the_others_out(cast: Cast, judged: Campaign) -> None:
    found = page(cast, judged, "?judge=Bert&language=et")
    assert '<option value="et" selected>' in found and '<option value="Bert" selected>' in found
    pictures = found[found.index('class="study-pictures"') : found.index("</main>")]
    assert "Estonian" in pictures and ">English<" not in pictures
    assert re.search(r'class="square"[^>]*href="\?judge=Anna[^"]*language=et', pictures)


def test_another_reference_is_asked_for(cast: Cast, judged: Campaign) -> None:
    study = CampaignStudy(judged, StudyChoice(judge="Anna", reference="median"), is_lead=True)
    found = page(cast, judged, "?judge=Anna&reference=median")
    assert "compared with: Median" in text_of(found)
    snapshot, is_stale = current_snapshot(campaign=judged, settings=study.bias_question)
    assert snapshot is not None and not is_stale


@pytest.mark.parametrize(
    "query", ["?judge=Nobody&criterion=x&language=xx&reference=y&cell=zz", "?judge=%00&language=%FF"]
)
def test_unknown_choices_show_the_usual_page(cast: Cast, judged: Campaign, query: str) -> None:
    assert '<option value="" selected>Mean</option>' in page(cast, judged, query)


def test_only_leads_and_researchers_read_it(cast: Cast, judged: Campaign) -> None:
    address = f"/p/kassa/numbers/{judged.pk}/study/"
    assert cast.client("maarika").get(address).status_code in (403, 404)
    assert cast.client("maarika").get(f"/api/v1/projects/kassa/campaigns/{judged.pk}/study/").status_code in (403, 404)
    assert "/p/kassa/settings/sharing/" not in page(cast, judged, user="boris")


def test_what_the_page_needs_is_computed_when_ratings_have_settled(cast: Cast, judged: Campaign) -> None:
    panel = panels.create(project=cast.kassa, name="Eesti «paneel»", language="et")
    panels.seat(panel=panel, user=cast.maarika)
    taken = desk_scene.taken(cast, allocation.allocate(campaign=judged, panel=panel, overlap=1))
    service.submit(assignment=taken, key=taken.key, answers=desk_scene.ANSWERS, seconds=3)
    Snapshot.objects.filter(campaign=judged).delete()
    wanted, of_study = stale_questions(judged), study_lacks(judged)
    assert of_study and wanted[: len(of_study)] == of_study and len(wanted) > len(of_study)
    scene.compute(judged)  # the numbers over all raters, as the beat has them computed
    tasks.prepare_studies()  # who rates at the desk sends more soon
    assert not Computation.objects.filter(campaign=judged).exists()
    at_the_desk = Annotation.objects.filter(campaign=judged, file_import=None)
    at_the_desk.update(submitted_at=timezone.now() - SETTLED)  # what was imported is complete
    assert AGREEMENT_PAGE.usual_questions(judged, question_choices(judged))
    for _time in range(60):
        if not stale_questions(judged):
            break
        tasks.prepare_studies()
        for computation in Computation.objects.filter(campaign=judged, job__state="waiting"):
            tasks.compute_numbers(computation.pk)
    assert not stale_questions(judged)
    tasks.prepare_studies()
    assert settled_campaigns() == []  # it is known that nothing is missing
    assert "hx-get" not in cast.client("aino").get(f"/p/kassa/numbers/{judged.pk}/study/").content.decode()
    judges = ("calibration", "comparison", "audits")
    for name in ("agreement", "annotators", "raters", "planner", "workflow", "explore", *judges):
        shown = cast.client("aino").get(f"/p/kassa/numbers/{judged.pk}/{name}/").content.decode()
        assert "every 2s" not in shown, f"{name} has to be computed"


def test_what_a_page_asks_for_comes_before_what_is_prepared(cast: Cast, judged: Campaign) -> None:
    scene.compute(judged)
    Annotation.objects.filter(campaign=judged, file_import=None).update(submitted_at=timezone.now() - SETTLED)
    tasks.prepare_studies()
    prepared = Computation.objects.get(job__state="waiting")
    chosen = Settings(raters=("mari",))
    tasks.ask_to_compute(campaign=judged, settings=chosen)  # a page, while an answer is being prepared
    tasks.compute_numbers(prepared.pk)
    tasks.prepare_studies()
    assert not Computation.objects.filter(job__state="waiting").exists(), "the page has not asked again yet"
    tasks.ask_to_compute(campaign=judged, settings=chosen)
    own = Computation.objects.get(job__state="waiting")
    assert own.asked["raters"] == ["mari"]
    caches["content"].clear()
    tasks.prepare_studies()
    assert Computation.objects.get(job__state="waiting") == own, "nothing is prepared while numbers are computed"


def test_nothing_is_prepared_at_once_while_a_judge_is_being_run(cast: Cast, judged: Campaign) -> None:
    scene.compute(judged)
    Annotation.objects.filter(campaign=judged, file_import=None).update(submitted_at=timezone.now() - SETTLED)
    assert settled_campaigns() == [judged]
    run = JudgeRun.objects.filter(dataset=judged.dataset, rubric_version=judged.rubric_version).first()
    assert run is not None
    Call.objects.create(run=run, item=judged.dataset.items.first(), repeat=9, state=Call.State.WAITING)
    assert settled_campaigns() == []
    assert settled_campaigns(timezone.now() + SETTLED) == [judged]


def test_a_hostile_name_is_shown_as_it_is(cast: Cast, judged: Campaign) -> None:
    name = 'Bert "<b>%(n)d</b>" ؤ'
    Judge.objects.filter(name="Bert").update(name=name)
    found = page(cast, judged)
    assert "<b>%(n)d</b>" not in found and "&lt;b&gt;%(n)d&lt;/b&gt;" in found


def test_a_campaign_without_ratings_says_what_comes(cast: Cast, judged: Campaign) -> None:
    nothing = make.dataset(cast.kassa, 4, name="Nothing yet")
    empty = campaigns.open_campaign(
        project=cast.kassa, name='Round "two"', dataset=nothing, rubric_version=judged.rubric_version
    )
    found = text_of(page(cast, empty))
    assert "Nothing is rated yet" in found and "To do" in found


def test_the_bar_is_kept_from_page_to_page(cast: Cast, judged: Campaign) -> None:
    asked = {"judge": "Bert", "criterion": "fluency", "language": "et", "reference": "median"}
    for name in ("study", "agreement", "calibration", "results", "planner", "items", "judges", "workflow", "audits"):
        response = cast.client("boris").get(f"/p/kassa/numbers/{judged.pk}/{name}/", asked)
        assert response.status_code == 200, name
        found = response.content.decode()
        nav, bar = found[found.index('class="campaign-pages"') :].split("</nav>", 1)
        assert f"numbers/{judged.pk}/calibration/?{urlencode(asked)}" in unescape(nav) or name not in (
            "audits",
            "judges",
        )
        form = bar[: bar.index("</form>")]
        for field, value in asked.items():
            kept = f'<input type="hidden" name="{field}" value="{value}">'
            assert f'<option value="{value}" selected>' in form or kept in form, (name, field)


def sent_by_the_bar(cast: Cast, target: Campaign, address: str) -> dict[str, str]:
    """What the form of the bar sends if one of its fields is changed, and the others stay as they are."""
    found = cast.client("boris").get(f"/p/kassa/numbers/{target.pk}/{address}").content.decode()
    form = found[found.index('class="campaign-bar"') :]
    form = form[: form.index("</form>")]
    sent = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))
    for name, options in re.findall(r'<select name="(\w+)">(.*?)</select>', form, re.DOTALL):
        selected = re.findall(r'value="([^"]*)" selected', options)
        sent[name] = (selected or re.findall(r'value="([^"]*)"', options))[0]
    return sent


@pytest.mark.parametrize("name", ["study/", "items/", "calibration/", "calibration/bias/"])
def test_the_bar_sends_no_reference_that_was_not_chosen(cast: Cast, judged: Campaign, name: str) -> None:
    assert sent_by_the_bar(cast, judged, name)["reference"] == ""
    for chosen in ("mean", "median"):
        assert sent_by_the_bar(cast, judged, f"{name}?reference={chosen}")["reference"] == chosen


def test_a_form_keeps_the_only_language_once(judged: Campaign) -> None:
    choices = replace(question_choices(judged), languages=("et",))
    form = QuestionForm(NumbersQuestion(where=(("language", "et"),)), choices, {})
    assert ("where", "language=et") not in form.kept and form.chosen_in_bar == ["language=et"]


def test_the_table_of_the_bias_is_of_what_its_picture_shows(cast: Cast, judged: Campaign) -> None:
    found = page(cast, judged, "?judge=Bert")
    (address,) = re.findall(r'href="([^"]*/calibration/[^"]*)"', found[found.index('class="study-pictures"') :])
    assert address.partition("?")[0].endswith("/calibration/bias/") and "reference" not in address
    study = CampaignStudy(judged, StudyChoice(judge="Bert"), is_lead=True)
    asked = cast.client("boris").get(unescape(address)).context["question"]
    assert asked.blind_only is study.bias_question.blind_only is True and asked.judges == ("Bert",)


def test_the_page_of_one_section_names_its_judge(cast: Cast, judged: Campaign) -> None:
    assert sent_by_the_bar(cast, judged, "calibration/bias/")["judge"] == "Anna"
    assert sent_by_the_bar(cast, judged, "calibration/bias/?judge=Nobody")["judge"] == "Anna"
    assert sent_by_the_bar(cast, judged, "calibration/judges/")["judge"] == ""


def test_the_bar_filters_the_questions_of_pages(cast: Cast, judged: Campaign) -> None:
    client, here = cast.client("boris"), f"/p/kassa/numbers/{judged.pk}/explore/"
    short = client.get(here, {"criterion": "fluency", "language": "et"}).context["question"]
    assert short == client.get(here, {"where": ["criterion=fluency", "language=et"]}).context["question"]
    assert short.where == (("criterion", "fluency"), ("language", "et"))


def test_a_sentence_names_another_reference_than_the_mean(cast: Cast, judged: Campaign) -> None:
    words = text_of(page(cast, judged, "?judge=Bert&reference=median"))
    assert "than the panel’s mean" not in words and "Decisions compare the judge with the panel’s mean." in words


def file_of(cast: Cast, target: Campaign, name: str, query: str = "") -> str:
    response = cast.client("boris").get(f"/p/kassa/numbers/{target.pk}/study/{name}{query}")
    assert response.status_code == 200 and "attachment" in response["Content-Disposition"]
    return str(response.content.decode())


@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_is_a_file_that_stands_alone(cast: Cast, judged: Campaign, picture: str) -> None:
    page(cast, judged, "?judge=Anna")
    svg = ET.fromstring(file_of(cast, judged, f"{picture}.svg", "?judge=Anna"))
    words = " ".join("".join(each.itertext()) for each in svg.iter("{http://www.w3.org/2000/svg}text"))
    assert ("Estonian" in words and "preliminary" in words) or picture != "agreement"
    names = {name for each in svg.iter() for name in each.attrib}
    assert not names & {"class", "style"} and {"fill", "stroke"} <= names
    tex = file_of(cast, judged, f"{picture}.tex", "?judge=Anna")
    assert tex.count(r"\begin{tabular}") == tex.count(r"\end{tabular}") >= 1 and "Estonian" in tex


def test_the_decisions_are_a_file(cast: Cast, judged: Campaign) -> None:
    rows = list(csv.DictReader(file_of(cast, judged, "decisions.csv").splitlines()))
    decided = decisions.current_decisions(judged)
    assert decided is not None
    assert Counter(row["decision"] for row in rows) == Counter(cell.use.value for cell in decided.cells)


def test_what_is_no_picture_is_not_found(cast: Cast, judged: Campaign) -> None:
    for name in ("nothing.svg", "bias.exe", "bias.csv"):
        assert cast.client("boris").get(f"/p/kassa/numbers/{judged.pk}/study/{name}").status_code == 404
    assert cast.client("maarika").get(f"/p/kassa/numbers/{judged.pk}/study/bias.svg").status_code in (403, 404)


@pytest.mark.parametrize("name", ["results", "planner", "agreement", "calibration"])
def test_a_reference_changes_the_questions_of_pages_that_have_one(cast: Cast, judged: Campaign, name: str) -> None:
    shown = cast.client("boris").get(f"/p/kassa/numbers/{judged.pk}/{name}/?reference=each")
    assert shown.context["question"].reference == ("each" if name == "calibration" else "")
    sections = cast.client("boris").get(f"/p/kassa/numbers/{judged.pk}/all/?judge=Bert&reference=each").content.decode()
    assert f"/{name}/?judge=Bert&amp;reference=each" in sections


def test_levels_are_against_the_mean_where_nobody_has_chosen(judged: Campaign) -> None:
    choices, usual = question_choices(judged), NumbersQuestion()
    rules = {part.name: judge_question(judged, part, usual, choices).reference for part in CALIBRATION.sections}
    assert {name for name, rule in rules.items() if rule} == {"bias", "correlation", "pooled"}
    assert rules["correlation"] == rules["bias"] == "mean"


def test_the_worst_items_of_a_decision_are_those_of_the_list(cast: Cast, judged: Campaign) -> None:
    found = page(cast, judged, "?judge=Bert&criterion=fluency&cell=et")
    named = re.findall(r'href="([^"]*/items/(\d+)/[^"]*)"><bdi>', found[found.index('id="decision"') :])
    address = next(iter(re.findall(r'href="([^"]*/items/\?[^"]*)"', found[found.index("Worst items") :])))
    listed = cast.client("boris").get(unescape(address)).content.decode()
    assert "a rule for all items together" not in listed  # the mean is a rule of one item
    first = re.findall(r"/items/(\d+)/", listed[listed.index("<tbody>") :])[:3]
    assert [pk for _address, pk in named] == first and 1 <= len(first) <= 3
    assert "sort=judge_error" in address and "reference" not in address and "blind=only" in address
