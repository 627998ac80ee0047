"""Kept pages: what they save, whom they are for, and that they never hide a change."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.middleware import CHANGED
from accounts.models import Job, Membership, Role
from analytics import page_cache
from analytics.answers import snapshots
from analytics.judges import thresholds
from analytics.models import Computation
from annotation.models import Annotation, Annotator, Campaign, Duty, Panel, PrivateNote, Skip
from judging.models import Call, Judge, JudgeRun
from tests import make
from tests.analytics import scene
from tests.cast import Cast, make_cast, person

TOKEN = re.compile(rb'name="csrfmiddlewaretoken" value="(\w{64})"')
PAGES = (
    "",
    "numbers/{0}/",
    "numbers/{0}/items/",
    "numbers/{0}/items/{1}/",
    "numbers/{0}/judges/",
    "numbers/{0}/explore/",
    "numbers/{0}/agreement/",
    "numbers/{0}/comparison/",
    "numbers/{0}/audits/",
)

NEWCOMER = [2, 0, 1, 0, 3, 3, 0, 1, 2, 3, 0, 1]


@pytest.fixture(autouse=True)
def _kept(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pages are kept, and the state of a project is read for each request."""
    settings.PAGE_CACHE_MB = 8
    monkeypatch.setattr(page_cache, "STATE_SECONDS", 0.0)
    yield
    page_cache.PAGES.clear()
    page_cache.STATES.clear()


@pytest.fixture(scope="module")
def computed(once_per_module: Any) -> tuple[Cast, Campaign]:
    """The cast, and a campaign whose pages have nothing left to compute."""

    def made() -> tuple[Cast, Campaign]:
        cast = make_cast()
        campaign = scene.rated_campaign(cast)
        scene.with_verdicts(campaign)
        for page in PAGES:
            scene.answered(cast.client("aino"), campaign, address(page, campaign))
        return cast, campaign

    return once_per_module(made)


@pytest.fixture
def copied(computed: tuple[Cast, Campaign], db: None) -> tuple[Cast, Campaign]:
    return deepcopy(computed)


@pytest.fixture
def cast(copied: tuple[Cast, Campaign]) -> Cast:
    return copied[0]


@pytest.fixture
def campaign(copied: tuple[Cast, Campaign]) -> Campaign:
    return copied[1]


def address(page: str, campaign: Campaign) -> str:
    return f"/p/kassa/{page.format(campaign.pk, campaign.dataset.items.earliest('ordinal').pk)}"


def content(client: Client, path: str) -> bytes:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return TOKEN.sub(b"TOKEN", answer.content)


@pytest.mark.django_db
class TestKeeping:
    @pytest.mark.parametrize("page", PAGES)
    def test_a_page_is_rendered_once(
        self, cast: Cast, campaign: Campaign, page: str, django_assert_max_num_queries: Any
    ) -> None:
        client, path = cast.client("aino"), address(page, campaign)
        first = content(client, path)
        with django_assert_max_num_queries(5):  # session, person, membership, state, heartbeats
            assert content(client, path) == first
        page_cache.PAGES.clear()
        assert content(client, path) == first

    def test_it_is_compressed_once_and_its_token_is_new_in_each_answer(self, cast: Cast, campaign: Campaign) -> None:
        client, path = cast.client("aino"), address("numbers/{0}/", campaign)
        plain = content(client, path)
        packed = [client.get(path, headers={"Accept-Encoding": "br, gzip"}) for _time in range(2)]
        assert all(answer["Content-Encoding"] == "gzip" and "Accept-Encoding" in answer["Vary"] for answer in packed)
        bodies = [gzip.decompress(answer.content) for answer in packed]
        assert [TOKEN.sub(b"TOKEN", body) for body in bodies] == [plain, plain]
        assert len(packed[0].content) == len(packed[1].content) < len(plain) / 3
        first, second = (set(TOKEN.findall(body)) for body in bodies)
        assert len(first) == len(second) == 1
        assert first != second
        assert "Content-Encoding" not in client.get(path, headers={"Accept-Encoding": "gzip;q=0"})

    def test_a_token_of_a_kept_page_is_taken(self, cast: Cast, campaign: Campaign) -> None:
        client = Client(enforce_csrf_checks=True)
        client.force_login(cast.aino)
        for _time in range(2):
            token = TOKEN.findall(client.get(address("", campaign)).content)[0].decode()
        sent = {"language": "et", "next": "/", "csrfmiddlewaretoken": token}
        assert client.post("/language/", sent).status_code == 302
        assert client.post("/language/", {**sent, "csrfmiddlewaretoken": page_cache.CSRF_TOKEN}).status_code == 403

    @pytest.mark.parametrize(("who", "missing", "status"), [("maarika", 0, 403), ("aino", 9_999_999, 404)])
    def test_a_token_of_an_error_page_is_taken(
        self, cast: Cast, campaign: Campaign, who: str, missing: int, status: int
    ) -> None:
        """The page of an error, too, has forms: sign out, and the choice of a language."""
        client = Client(enforce_csrf_checks=True)
        client.force_login(getattr(cast, who))
        refused = client.get(f"/p/kassa/numbers/{missing or campaign.pk}/")
        assert refused.status_code == status
        token = TOKEN.findall(refused.content)[0].decode()
        sent = {"language": "et", "next": "/", "csrfmiddlewaretoken": token}
        assert client.post("/language/", sent).status_code == 302

    @pytest.mark.parametrize("page", PAGES)
    def test_pages_of_a_closed_campaign_ask_for_themselves_only_while_figures_are_computed(
        self, cast: Cast, campaign: Campaign, page: str
    ) -> None:
        client, path = cast.client("aino"), address(page, campaign)
        Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.CLOSED)
        assert b'hx-trigger="every' not in content(client, path)
        scene.with_verdicts(campaign, name="Teine")
        is_asking = b'hx-trigger="every' in content(client, path)
        computation = Computation.objects.first()
        assert is_asking == (computation is not None)
        if computation is not None:  # nobody can compute them: the page that says so does not ask for ever
            Job.objects.update(state=Job.State.FAILED, lease=None, lease_until=None)
            assert b'hx-trigger="every' not in content(client, path)

    def test_a_page_that_asks_for_figures_is_not_kept(self, cast: Cast, campaign: Campaign) -> None:
        client, path = cast.client("aino"), address("numbers/{0}/", campaign)
        make.rated(campaign, {"fluency": {"newcomer": NEWCOMER}})
        content(client, path)
        assert len(page_cache.PAGES) == 0
        assert Computation.objects.count() == 1

    def test_what_is_kept_is_bounded(self, settings: Any, cast: Cast, campaign: Campaign) -> None:
        settings.PAGE_CACHE_MB = 0.2
        client = cast.client("aino")
        for number in range(12):
            content(client, f"{address('numbers/{0}/explore/', campaign)}?seen={number}")
            assert page_cache.PAGES.size <= 0.2 * 2**20
        assert 0 < len(page_cache.PAGES) < 12


@pytest.mark.django_db
class TestReaders:
    @pytest.mark.parametrize("page", PAGES)
    def test_nobody_is_given_the_page_of_another(self, cast: Cast, campaign: Campaign, page: str) -> None:
        path = address(page, campaign)
        leads = content(cast.client("aino"), path)
        assert b"Aino" in leads
        researchers = content(cast.client("boris"), path)
        assert b"Aino" not in researchers.replace(b"Ask Aino.", b"")  # whom the guided steps name
        assert b"Boris" in researchers
        page_cache.PAGES.clear()
        assert content(cast.client("boris"), path) == researchers
        for who, status in (("maarika", 403), ("layla", 403), ("zoltan", 404)):
            answer = cast.client(who).get(path)
            assert answer.status_code == status, who
            assert b"Aino" not in answer.content
        assert Client().get(path).status_code == 302

    @pytest.mark.parametrize("page", PAGES)
    def test_who_leaves_or_gets_another_role_gets_another_answer_at_once(
        self, cast: Cast, campaign: Campaign, page: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(page_cache, "STATE_SECONDS", 60.0)
        client, path = cast.client("boris"), address(page, campaign)
        content(client, path)
        held = Membership.objects.filter(project=cast.kassa, user=cast.boris)
        held.update(role=Role.LEAD)
        assert b"/p/kassa/people/" in content(client, path)
        held.update(role=Role.ANNOTATOR)
        assert client.get(path).status_code == 403
        held.delete()
        assert client.get(path).status_code == 404

    def test_a_project_that_starts_to_require_a_second_factor_shows_nothing(
        self, cast: Cast, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(page_cache, "STATE_SECONDS", 60.0)
        client, path = cast.client("boris"), address("numbers/{0}/", campaign)
        content(client, path)
        type(cast.kassa).objects.filter(pk=cast.kassa.pk).update(requires_second_factor=True)
        assert client.get(path).status_code == 302


@pytest.mark.django_db
class TestChanges:
    def test_a_person_sees_their_own_change_at_once(
        self, cast: Cast, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(page_cache, "STATE_SECONDS", 60.0)
        aino, boris, path = cast.client("aino"), cast.client("boris"), address("", campaign)
        before = content(boris, path)
        content(aino, path)
        aino.post("/p/kassa/settings/project/name/", {"name": "Renamed", "description": ""})
        assert aino.cookies[CHANGED].value == "1"
        aino.get("/me/")  # shows the message
        assert b"Renamed" in content(aino, path)
        assert CHANGED not in boris.cookies
        assert content(boris, path) != before  # the state that aino's request read is known to all

    def test_a_change_by_others_is_seen_when_the_state_is_read_again(self, cast: Cast, campaign: Campaign) -> None:
        client = cast.client("boris")
        numbers, overview = (content(client, address(page, campaign)) for page in ("numbers/{0}/", ""))
        make.rated(campaign, {"fluency": {"newcomer": NEWCOMER}})
        assert content(client, address("numbers/{0}/", campaign)) != numbers
        assert content(client, address("", campaign)) != overview

    def test_figures_are_those_of_the_snapshot_and_the_question(self, cast: Cast, campaign: Campaign) -> None:
        """The figures of the numbers page are kept apart from the page, by snapshot, language and address."""
        client, path = cast.client("boris"), address("numbers/{0}/", campaign)
        alpha, kappa = (
            content(client, f"{path}?coefficient={name}") for name in ("krippendorff_alpha", "fleiss_kappa")
        )
        assert alpha != kappa
        make.rated(campaign, {"fluency": {"newcomer": NEWCOMER}})
        snapshots.snapshot(campaign=campaign)
        later = content(client, f"{path}?coefficient=krippendorff_alpha")
        values = [re.findall(rb'data-bin="\d"[^>]*title="([^"]+)"', page) for page in (alpha, later)]
        assert values[0] != values[1]

    def test_state_follows_thresholds_members_and_names(self, cast: Cast, campaign: Campaign) -> None:
        first = page_cache.project_state(cast.kassa)
        states = [first.digest]
        thresholds.declare_thresholds(project=cast.kassa, actor=cast.aino, preset="experts")
        states.append(page_cache.project_state(cast.kassa, first).digest)
        Membership.objects.create(project=cast.kassa, user=person("Piia"), role=Role.LEAD)
        states.append(page_cache.project_state(cast.kassa, first).digest)
        Campaign.objects.filter(pk=campaign.pk).update(name="Another name")
        states.append(page_cache.project_state(cast.kassa, first).digest)
        assert len(set(states)) == len(states)
        assert page_cache.project_state(cast.kassa).digest == states[-1]

    def test_an_item_that_is_skipped_again_for_another_reason_is_shown_so(self, cast: Cast, campaign: Campaign) -> None:
        """The row of a skip is changed when the same person skips the item again."""
        item = campaign.dataset.items.earliest("ordinal")
        seat = Annotator.objects.filter(project=cast.kassa).earliest("pk")
        panel = Panel.objects.create(project=cast.kassa, name="Panel")
        duty = Duty.objects.create(campaign=campaign, panel=panel, name="Duty", overlap=1, seed=1)
        skip = Skip.objects.create(duty=duty, item=item, annotator=seat, reason="damaged", note="No end.")
        client, path = cast.client("aino"), address("numbers/{0}/items/{1}/", campaign)
        assert b"No end." in content(client, path)
        Skip.objects.filter(pk=skip.pk).update(note="In Finnish.", at=timezone.now())
        assert b"In Finnish." in content(client, path)

    def test_what_judges_cost_is_added_up_again_after_a_call(self, cast: Cast, campaign: Campaign) -> None:
        before = page_cache.project_state(cast.kassa).digest
        run = JudgeRun.objects.filter(project=cast.kassa).earliest("pk")
        Call.objects.create(run=run, item=campaign.dataset.items.earliest("ordinal"))
        waiting = page_cache.project_state(cast.kassa).digest
        Call.objects.filter(run=run).update(state=Call.State.FAILED)
        assert len({before, waiting, page_cache.project_state(cast.kassa).digest}) == 3

    def test_state_does_not_follow_what_no_page_of_figures_shows(self, cast: Cast, campaign: Campaign) -> None:
        """A private note, which the desk saves while it is written, and all of a judge that its digest stands for."""
        before = page_cache.project_state(cast.kassa).digest
        seat, item = Annotator.objects.filter(project=cast.kassa).first(), campaign.dataset.items.first()
        PrivateNote.objects.create(annotator=seat, item=item, text="Ask about this one.")
        assert page_cache.project_state(cast.kassa).digest == before
        judges = Judge.objects.filter(project=cast.kassa)
        assert judges.update(variant={"instructions": "long"}, parameters={"seed": 1}, timeout=9)
        assert page_cache.project_state(cast.kassa).digest == before
        states = [before]
        for shown in ({"name": "Renamed"}, {"digest": "0" * 64}, {"simulated": False}):
            judges.filter(pk=judges.earliest("pk").pk).update(**shown)
            states.append(page_cache.project_state(cast.kassa).digest)
        assert len(set(states)) == len(states)

    def test_long_tables_are_counted_when_something_else_changed_or_some_seconds_passed(
        self, cast: Cast, campaign: Campaign, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
    ) -> None:
        first = page_cache.project_state(cast.kassa)
        with django_assert_num_queries(2):
            assert page_cache.project_state(cast.kassa, first) == first
        make.rated(campaign, {"fluency": {"newcomer": NEWCOMER}})
        later = page_cache.project_state(cast.kassa, first)
        assert later.counted != first.counted
        Annotation.objects.filter(pk=Annotation.objects.earliest("pk").pk).update(superseded_at=timezone.now())
        assert page_cache.project_state(cast.kassa, later) == later
        monkeypatch.setattr(page_cache, "COUNT_SECONDS", 0.0)
        assert page_cache.project_state(cast.kassa, later).counted != later.counted


def test_what_is_said_of_tables_is_about_tables_of_projects() -> None:
    named = [*page_cache.SOME_COLUMNS, *page_cache.COUNTED, *page_cache.LEFT_OUT]
    assert len(named) == len(set(named))
    of_projects = {model._meta.label for model in page_cache.project_tables()}
    assert set(named) <= of_projects
    assert {"analytics.GateThresholds", "judging.JudgeDesign"} <= of_projects - set(named)
