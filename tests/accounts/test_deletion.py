"""A project gets another name; it is deleted, restored within 30 days, or deleted for good, through HTTP."""

from __future__ import annotations

import html
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from unicodedata import normalize

import psycopg
import pytest
from celery import current_app
from django.apps import apps
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts import deletion, jobs, people, removal, tasks, tokens, webhooks
from accounts.models import (
    AuditEntry,
    Delivery,
    Invitation,
    Job,
    Membership,
    Project,
    ProjectDeletion,
    Role,
    Scope,
    SuspendedMembership,
    Token,
    User,
    Webhook,
)
from accounts.refusals import Refused
from analytics.answers import revisions
from analytics.exporting import transfers
from analytics.models import Transfer
from annotation.desk import service
from annotation.imports import import_jobs, previews
from annotation.models import Annotation, Annotator, Campaign, Dataset, Draft, Import, Item, Rating
from judging import judges, runs, work_sessions
from judging.generation import writing
from judging.models import Attempt, GenerationPlan, JudgeRun
from tests import access, make
from tests.annotation import scene
from tests.cast import Cast
from tests.conftest import database_url
from tests.provider_server import RunningProvider
from tests.test_access import address
from tests.workers import locked_table, wait_for_workers, waits_for_a_lock

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
commits = pytest.mark.django_db(transaction=True)  # of tests with other processes, threads or files

SETTINGS = "/p/kassa/settings/project/"
PAGE = "/p/kassa/settings/delete/"
API = "/api/v1/projects/kassa/"
NAME = "Two “words” اسم õun"


def delete(cast: Cast, name: str = "Kassa", *, who: str = "aino") -> str:
    return html.unescape(cast.client(who).post(PAGE, {"name": name}, follow=True).content.decode())


def restore(cast: Cast, *, who: str = "aino") -> int:
    return cast.client(who).post("/p/kassa/restore/").status_code


def later() -> Any:
    return timezone.now() + ProjectDeletion.GRACE + timedelta(hours=1)


def rows_of(project: Project) -> dict[str, list[Any]]:
    """Every row of a project, by table: what restoring brings back."""
    return {
        str(table.model._meta.label): sorted(
            table.model._base_manager.filter(**{table.path: project}).values_list("pk", flat=True)
        )
        for table in deletion._tables()
    }


def rated(cast: Cast, *, items: int = 2) -> Annotation:
    taken = scene.taken(cast, scene.duty(cast, items=items))
    return service.submit(assignment=taken, key=taken.key, answers=scene.ANSWERS, seconds=3)


def test_a_project_gets_another_name_and_keeps_its_address(cast: Cast) -> None:
    aino = cast.client("aino")
    assert 'value="Kassa"' in aino.get(SETTINGS).content.decode()
    page = aino.post(f"{SETTINGS}name/", {"name": "Kassa 2026", "description": "Receipts."}, follow=True)
    assert "Kassa 2026" in page.content.decode()
    assert 'title="Kassa 2026 · Lead"' in page.content.decode(), "a long name is cut in the menu, and whole here"
    assert Project.objects.get(slug="kassa").description == "Receipts."
    assert AuditEntry.objects.first().fields == ["description", "name"]
    assert aino.post(f"{SETTINGS}name/", {"name": " "}).status_code == 422
    assert cast.client("boris").post(f"{SETTINGS}name/", {"name": "Mine"}).status_code == 403
    assert Project.objects.get(slug="kassa").name == "Kassa 2026"


class TestDeleting:
    def test_the_page_says_what_goes_and_whether_it_was_exported_since_the_last_rating(self, cast: Cast) -> None:
        rated(cast)
        aino = cast.client("aino")
        assert f'href="{PAGE}"' in aino.get(SETTINGS).content.decode()
        page = html.unescape(aino.get(PAGE).content.decode())
        for words in ("2 ratings", "2 items", "4 memberships", "1 campaign", "1 panel", "For 30 days"):
            assert words in page, words
        assert "never exported as a bundle" in page and 'href="/p/kassa/export/"' in page
        AuditEntry.objects.create(project=cast.kassa, verb="export bundle", subject="accounts.Project")
        assert "after the last ratings." in aino.get(PAGE).content.decode()
        Annotation.objects.update(submitted_at=timezone.now() + timedelta(hours=1))
        assert "before the last ratings" in aino.get(PAGE).content.decode()

    def test_only_a_lead_deletes_and_only_with_the_name(self, cast: Cast) -> None:
        for who, status in (("boris", 403), ("maarika", 403), ("zoltan", 404)):
            assert cast.client(who).get(PAGE).status_code == status
            assert cast.client(who).post(PAGE, {"name": "Kassa"}).status_code == status
        for wrong in ("", "kassa", "Kass", "Kassa!"):
            answer = cast.client("aino").post(PAGE, {"name": wrong})
            assert answer.status_code == 422, wrong
        assert "This is not the project's name. Type “Kassa” to delete it." in delete(cast, "kassa")
        assert Client(enforce_csrf_checks=True).post(PAGE, {"name": "Kassa"}).status_code == 403
        checked = Client(enforce_csrf_checks=True)
        checked.force_login(cast.aino)
        assert checked.post(PAGE, {"name": "Kassa"}).status_code == 403
        assert not ProjectDeletion.objects.exists()

    @pytest.mark.parametrize("typed", [NAME, normalize("NFD", NAME), f"  {normalize('NFC', NAME)} \u00a0"])
    def test_a_name_is_typed_as_it_is_shown(self, cast: Cast, typed: str) -> None:
        Project.objects.filter(pk=cast.kassa.pk).update(name=normalize("NFD", NAME).replace(" ", "  ", 1))
        assert "can be restored until" in delete(cast, typed)

    def test_quotes_of_a_name_may_be_typed_straight(self) -> None:
        assert deletion.is_typed_name('Kitchen "talk" مطبخ', "Kitchen “talk” مطبخ")
        assert deletion.is_typed_name('"a" "b" 5"', "„a“ «b» 5″") and not deletion.is_typed_name("a", '"a"')

    def test_it_is_gone_for_everybody_but_those_who_led_it(self, cast: Cast) -> None:
        parts = access.furnish(cast)
        AuditEntry.objects.create(project=cast.kassa, verb="x", subject="accounts.Project")
        page = delete(cast)
        assert "This project was deleted" in page and "Deleted by Aino." in page and "Restore the project" in page
        boris, aino, maarika = cast.client("boris"), cast.client("aino"), cast.client("maarika")
        assert "Kassa" not in boris.get("/").content.decode()
        assert 'href="/p/kassa/"' in aino.get("/").content.decode()
        reached = []
        for route in access.routes():
            if "<slug:project>" not in route.pattern or route.name in ("project_restore", "api_project_restore"):
                continue
            there = address(route, parts)
            reached += [("Boris", there)] if boris.get(there).status_code not in (403, 404, 405) else []
            reached += [("Aino", there)] if aino.get(there).status_code not in (404, 405, 410) else []
        assert reached == []
        for there in ("/p/kassa/", "/p/kassa/datasets/", PAGE, f"/p/kassa/campaigns/{parts['campaign']}/"):
            assert aino.get(there).status_code == 410
            assert cast.client("boris").get(there).status_code == 404
            assert Client().get(there).status_code == 302
        assert [entry["slug"] for entry in aino.get("/api/v1/projects/").json()["results"]] == []
        assert aino.get(API).status_code == 404
        assert "Kassa" not in [each["project"] for each in aino.get("/api/v1/me/").json()["memberships"]]
        assert maarika.get("/").headers["Location"] == "/desk/"

    def test_links_tokens_and_webhooks_stop_and_come_back(self, cast: Cast) -> None:
        parts = access.furnish(cast)
        _token, bound = tokens.issue(user=cast.boris, name="bound", scope=Scope.READ, project=cast.kassa)
        _token, free = tokens.issue(user=cast.boris, name="free", scope=Scope.READ)
        Webhook.objects.filter(pk=parts["webhook"]).update(events=["ratings.submitted"])
        waiting = Delivery.objects.create(webhook_id=parts["webhook"], key=parts["key"], event="test", payload={})
        share = reverse("shared", args=[parts["share"]])

        def answers() -> list[int]:
            with_token = [
                Client(headers={"authorization": f"Bearer {secret}"}).get(API).status_code for secret in (bound, free)
            ]
            return [*with_token, Client().get(share).status_code, Client().get(f"/join/{parts['secret']}/").status_code]

        assert answers() == [200, 200, 200, 200]
        assert webhooks.due() == [parts["webhook"]]
        delete(cast)
        assert answers() == [401, 404, 404, 410]
        joining = cast.client("zoltan")
        joining.post(f"/join/{parts['secret']}/")
        assert not Membership.objects.filter(project=cast.kassa).exists()
        assert webhooks.due() == [] and webhooks.claim(webhook_pk=parts["webhook"]) is None
        announced = webhooks.announce(project=cast.kassa.pk, event="ratings.submitted", subject=1, payload={})
        assert announced == 0 and Delivery.objects.get(pk=waiting.pk).tries == 0
        assert cast.kassa.pk not in [campaign.project_id for campaign in revisions.to_be_polled()]
        assert restore(cast) == 302
        assert answers() == [200, 200, 200, 200] and webhooks.due() == [parts["webhook"]]

    @commits
    def test_an_invitation_that_is_withdrawn_meanwhile_is_not_accepted(self, cast: Cast) -> None:
        invitation, secret = people.invite(project=cast.kassa, role=Role.RESEARCHER, created_by=cast.aino)
        with CaptureQueriesContext(connection) as asked:
            assert people.revoke_invitation(invitation=invitation, actor=cast.aino)
        update = next(query["sql"] for query in asked if query["sql"].startswith("UPDATE"))
        assert "JOIN" not in update, "a condition of a subquery is not asked again after waiting for the row"
        if connection.vendor == "sqlite":  # has one writer
            return
        Invitation.objects.update(revoked_at=None)

        def accept() -> None:
            try:
                people.accept(secret=secret, user=cast.zoltan)
            finally:
                connection.close()

        with psycopg.connect(database_url()) as other, ThreadPoolExecutor(1) as pool:
            other.execute("UPDATE accounts_invitation SET revoked_at = now()")
            accepting = pool.submit(accept)
            wait_for_workers(waits_for_a_lock)
            other.commit()
            with pytest.raises(people.InvitationClosed):
                accepting.result(60)
        assert not Membership.objects.filter(project=cast.kassa, user=cast.zoltan).exists()

    def test_its_address_is_taken_until_it_is_deleted_for_good(self, cast: Cast) -> None:
        delete(cast)
        User.objects.filter(pk=cast.zoltan.pk).update(may_found_projects=True)
        body = {"slug": "kassa", "name": "Kassa 2"}
        refused = cast.client("zoltan").post("/api/v1/projects/", body, content_type="application/json")
        assert refused.status_code == 422
        assert "of a deleted project, which can still be restored" in refused.json()["detail"]
        deletion.purge_deleted(now=later())
        created = cast.client("zoltan").post("/api/v1/projects/", body, content_type="application/json")
        assert created.status_code == 201

    def test_annotators_read_that_the_study_has_ended_and_keep_what_they_entered(self, cast: Cast) -> None:
        Project.objects.filter(pk=cast.kassa.pk).update(name=NAME)
        work = scene.duty(cast, items=2)
        maarika = cast.client("maarika")
        page = scene.next_page(maarika, work)
        maarika.post(f"{page}draft/", {**scene.FULL, "rationale-fluency": "Mustand"}, headers=scene.JSON)
        delete(cast, NAME)
        for there in (page, f"/desk/{work.pk}/"):
            answer = maarika.get(there)
            assert answer.status_code == 410
            assert "This study has ended" in answer.content.decode() and "“words” اسم" in answer.content.decode()
        home = html.unescape(maarika.get("/desk/").content.decode())
        assert "has ended: its lead has deleted the project." in home and f"/desk/{work.pk}/" not in home
        sent = maarika.post(f"{page}submit/", {**scene.FULL, "rationale-fluency": "Viimane"}, headers=scene.JSON)
        assert (sent.status_code, sent.json()["code"], sent.json()["title"]) == (
            409, "study_ended", "This study has ended",
        )  # fmt: skip
        assert maarika.post(f"{page}heartbeat/", headers=scene.JSON).json()["code"] == "study_ended"
        assert not Annotation.objects.exists()
        assert Draft.objects.get().answers["fluency"]["rationale"] == "Viimane"
        for stranger in ("layla", "zoltan"):
            assert cast.client(stranger).get(page).status_code == 404
        assert "ended" not in cast.client("zoltan").get("/desk/").content.decode()
        restore(cast)
        assert "Viimane" in maarika.get(page).content.decode()
        assert maarika.post(f"{page}submit/", scene.FULL, headers=scene.JSON).status_code == 200

    def test_running_work_stops(self, cast: Cast) -> None:
        parts = access.furnish(cast)
        JudgeRun.objects.filter(pk=parts["run"]).update(state=JudgeRun.State.RUNNING)
        delete(cast)
        run, plan = JudgeRun.objects.get(pk=parts["run"]), GenerationPlan.objects.get(pk=parts["plan"])
        assert (run.state, plan.state) == ("paused", "paused")
        assert run.reason == plan.reason == "The project was deleted."
        left = Job.objects.open().filter(project=cast.kassa).values_list("kind", flat=True)
        assert set(left) <= {Job.Kind.DELIVERIES, Job.Kind.CALLS}
        restore(cast)
        run.refresh_from_db()
        assert run.state == "paused"

    def test_a_job_that_a_late_request_creates_is_cancelled_by_its_worker(
        self, cast: Cast, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The request was let in before the deletion, and commits after it."""
        access.furnish(cast)
        monkeypatch.setattr("annotation.models.content.AT_ONCE", 10)  # so a worker checks the file
        boris = cast.client("boris")
        boris.post("/p/kassa/imports/new/", {"files": [SimpleUploadedFile("d.csv", 'id,text\n1,"اسم õ"\n'.encode())]})
        delete(cast)
        known = {job.pk: jobs.job_kinds()[job.kind].subject(job) for job in Job.objects.filter(project=cast.kassa)}
        late = {pk: subject for pk, subject in known.items() if subject is not None}
        Job.objects.filter(pk__in=late).update(
            state="waiting", lease=None, sentence="", ended_at=None, due_at=timezone.now()
        )
        Transfer.objects.update(state="waiting")
        Import.objects.filter(job__kind="check").update(state="checking")
        before, tries = rows_of(cast.kassa), dict(Job.objects.values_list("pk", "tries"))
        kinds = set()
        for job in Job.objects.filter(pk__in=late).exclude(kind__in=jobs.GOING_ON):
            subject = jobs.job_kinds()[job.kind].subject(job)
            current_app.tasks[jobs.job_kinds()[job.kind].task(subject)](subject.pk)
            job.refresh_from_db()
            assert (job.state, job.tries) == ("cancelled", tries[job.pk]), job.kind
            assert job.sentence == "This was cancelled because the project was deleted.", job.kind
            kinds.add(job.kind)
        assert kinds >= {"check", "export"}
        assert rows_of(cast.kassa) == before and not any(map(transfers.has_file, Transfer.objects.all()))

    @commits
    def test_what_a_late_request_starts_asks_no_model(self, cast: Cast, provider: RunningProvider) -> None:
        parts = access.furnish(cast)
        judge = judges.declare(project=cast.kassa, name="Slow", provider="simulated", model="sim-steady")
        about = {"dataset": make.dataset(cast.kassa, 3), "rubric_version": make.rubric(cast.kassa, key="late")}
        plan = GenerationPlan.objects.get(pk=parts["plan"])
        delete(cast)
        sent = provider.control()["requests"]
        run = runs.start_judge_run(judge=judge, **about)  # its project was read before the deletion
        assert run.state == "running" and not work_sessions.work_on_run(run.pk)
        run.refresh_from_db()
        assert (run.state, run.reason) == ("paused", "The project was deleted.")
        GenerationPlan.objects.filter(pk=plan.pk).update(state="running", reason="")
        plan.generators.update(provider="simulated", model="sim-steady")
        generator = plan.generators.first()
        assert generator is not None and not writing.work_on_generator(generator.pk)
        plan.refresh_from_db()
        assert (plan.state, plan.reason) == ("paused", "The project was deleted.")
        assert provider.control()["requests"] == sent and not Attempt.objects.filter(call__run=run).exists()

    @commits
    @pytest.mark.parametrize("which", ["import", "export"])
    def test_what_a_worker_is_at_leaves_nothing(self, cast: Cast, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("annotation.models.content.AT_ONCE", 10)  # so a worker stores it
        if connection.vendor == "sqlite":
            pytest.skip("has one writer")
        make.dataset(cast.kassa, 3)
        items, boris = Item.objects.count(), cast.client("boris")
        if which == "export":
            body = {"what": "items", "format": "csv"}
            boris.post("/api/v1/projects/kassa/transfers/", body, content_type="application/json")
        else:
            text = "id,language,question\n" + "".join(f"d{number},et,اسم õ\n" for number in range(80))
            boris.post("/p/kassa/imports/new/", {"files": [SimpleUploadedFile("d.csv", text.encode())]})
            (checked,) = Import.objects.all()
            import_jobs.carry_out_check(import_pk=checked.pk, look=previews.preview_import)
            boris.post(f"/p/kassa/imports/{checked.pk}/store/")
        (job,) = Job.objects.open()
        subject = jobs.job_kinds()[job.kind].subject(job)

        def work() -> None:
            try:
                current_app.tasks[jobs.job_kinds()[job.kind].task(subject)](subject.pk)
            finally:
                connection.close()

        def delete_meanwhile() -> int:
            try:
                return cast.client("aino").post(PAGE, {"name": "Kassa"}).status_code
            finally:
                connection.close()

        with ThreadPoolExecutor(2) as pool:
            with psycopg.connect(database_url()) as other:
                other.execute("LOCK TABLE annotation_item IN ACCESS EXCLUSIVE MODE")
                working = pool.submit(work)
                wait_for_workers(waits_for_a_lock)
                deleting = pool.submit(delete_meanwhile)
                if which == "export":  # an import holds the project's row until its batch of rows is stored
                    assert deleting.result(180) == 302
            working.result(180)
            assert deleting.result(180) == 302
        job.refresh_from_db()
        subject.refresh_from_db()
        assert not Dataset.objects.filter(state="loading").exists()
        if job.state == "finished":  # it was faster than the deletion, which then deletes it with the rest
            assert (which, subject.state, Item.objects.count()) == ("import", "stored", items + 80)
            return
        assert (job.state, subject.state, Item.objects.count()) == ("cancelled", "failed", items)
        assert job.sentence == "This was cancelled because the project was deleted."
        assert restore(cast) == 302
        assert job.sentence in boris.get("/p/kassa/jobs/").content.decode()

    @commits
    def test_a_run_in_flight_ends_with_its_requests_booked(self, cast: Cast, provider: RunningProvider) -> None:
        judge = judges.declare(project=cast.kassa, name="Slow", provider="simulated", model="sim-steady", concurrency=4)
        about = {"judge": judge, "dataset": make.dataset(cast.kassa, 40), "rubric_version": make.rubric(cast.kassa)}
        run = runs.start_judge_run(**about)
        if connection.vendor == "sqlite":
            delete(cast)
            assert not work_sessions.work_on_run(run.pk) and not Attempt.objects.exists()
            return
        provider.control(latency=600)
        command = f"import django; django.setup(); from judging import work_sessions as w; w.work_on_run({run.pk})"
        environment = {**os.environ, "DATABASE_URL": database_url(), "DJANGO_SETTINGS_MODULE": "panelbench.settings"}
        with subprocess.Popen([sys.executable, "-c", command], env=environment) as working:
            wait_for_workers(lambda: provider.control()["in_flight"] == 4)
            delete(cast)
            sent = provider.control()["requests"]
            provider.control(latency=0)
            working.wait(60)
        assert provider.control()["requests"] == sent == 4, "nothing was sent after the deletion"
        assert list(Attempt.objects.values_list("outcome", flat=True)) == ["replied"] * 4
        assert all(attempt.reply for attempt in Attempt.objects.all())
        run.refresh_from_db()
        assert run.state == "paused"


class TestRestoring:
    def test_everything_is_back_as_it_was(self, cast: Cast) -> None:
        access.furnish(cast)
        before = rows_of(cast.kassa)
        open_jobs = set(Job.objects.open().filter(project=cast.kassa).values_list("pk", flat=True))
        members = list(Membership.objects.filter(project=cast.kassa).order_by("pk").values())
        delete(cast)
        assert not Membership.objects.filter(project=cast.kassa).exists()
        for who in ("boris", "maarika", "zoltan"):
            assert restore(cast, who=who) == 404
        assert restore(cast) == 302
        assert list(Membership.objects.filter(project=cast.kassa).order_by("pk").values()) == members
        after = rows_of(cast.kassa)
        assert after == before and open_jobs
        assert not SuspendedMembership.objects.exists() and not ProjectDeletion.objects.exists()
        assert Project.objects.get(pk=cast.kassa.pk).archived_at is None
        assert cast.client("boris").get("/p/kassa/datasets/").status_code == 200
        verbs = AuditEntry.objects.filter(subject="accounts.Project").values_list("verb", flat=True)
        assert list(verbs)[:2] == ["restore project", "delete project"]
        page = cast.client("aino").get("/p/kassa/audit/").content.decode()
        assert "restored the deleted project" in page and "deleted the project" in page
        assert restore(cast) == 404

    def test_an_archived_project_stays_archived(self, cast: Cast) -> None:
        people.archive(project=cast.kassa, actor=cast.aino)
        before = Project.objects.get(pk=cast.kassa.pk).archived_at
        delete(cast)
        restore(cast)
        assert Project.objects.get(pk=cast.kassa.pk).archived_at == before

    def test_who_erased_their_account_meanwhile_does_not_come_back(self, cast: Cast) -> None:
        delete(cast)
        assert not removal.may_erase_account(user=cast.maarika, project=cast.teine, actor=cast.zoltan)
        removal.erase_user(user=cast.maarika, actor=None)
        restore(cast)
        assert not Membership.objects.filter(user=cast.maarika).exists()
        assert Membership.objects.filter(project=cast.kassa).count() == 3

    def test_a_lead_who_is_an_annotator_elsewhere_finds_it_on_the_start_page(self, cast: Cast) -> None:
        Membership.objects.create(project=cast.teine, user=cast.aino, role=Role.ANNOTATOR)
        delete(cast)
        page = cast.client("aino").get("/")
        assert page.status_code == 200 and 'href="/p/kassa/"' in page.content.decode()
        restore(cast)
        assert cast.client("aino").get("/").status_code == 200
        Membership.objects.filter(project=cast.kassa, user=cast.aino).delete()
        assert cast.client("aino").get("/").headers["Location"] == "/desk/"

    def test_it_says_that_the_account_of_who_deleted_it_was_erased(self, cast: Cast) -> None:
        Membership.objects.filter(project=cast.kassa, user=cast.boris).update(role=Role.LEAD)
        delete(cast)
        removal.erase_user(user=cast.aino, actor=None)
        page = cast.client("boris").get("/p/kassa/").content.decode()
        assert f"Deleted by erased account {cast.aino.pk}." in page and "erased.invalid" not in page

    def test_what_commits_after_the_deletion_keeps_nobody_from_restoring(self, cast: Cast) -> None:
        people.archive(project=cast.kassa, actor=cast.aino)
        delete(cast)
        assert not people.unarchive(project=cast.kassa, actor=cast.aino)
        Membership.objects.create(project=cast.kassa, user=cast.boris, role=Role.LEAD)
        assert restore(cast) == 302
        assert Membership.objects.filter(project=cast.kassa).count() == 4
        assert Project.objects.get(pk=cast.kassa.pk).archived_at is not None

    @pytest.mark.parametrize("successor", ["boris", "zoltan"])
    def test_the_successor_of_an_erased_lead_can_restore_it(self, cast: Cast, successor: str) -> None:
        delete(cast)
        heir = {"boris": cast.boris, "zoltan": cast.zoltan}[successor]
        removal.erase_user(user=cast.aino, actor=None, successor=heir)
        assert restore(cast, who=successor) == 302
        assert Membership.objects.get(project=cast.kassa, role=Role.LEAD).user == heir
        assert not Membership.objects.filter(user=cast.aino).exists()

    def test_an_operator_restores_it_when_all_who_led_it_have_erased_their_accounts(self, cast: Cast) -> None:
        Project.objects.filter(pk=cast.kassa.pk).update(name=NAME)
        operator = User.objects.create_superuser("operator@panelbench.test", name="Operator")
        there = Client()
        there.force_login(operator)
        delete(cast, NAME)
        assert there.get("/p/kassa/").status_code == 404 and there.post("/p/kassa/restore/").status_code == 404
        page = html.unescape(cast.client("aino").get("/me/erase/").content.decode())
        assert "Only you can restore these deleted projects." in page and f"“{NAME}”" in page
        said = StringIO()
        call_command("erase_user", cast.aino.email, "--yes", stdout=said)
        assert "They alone led these deleted projects: kassa." in said.getvalue()
        assert 'href="/p/kassa/"' in there.get("/").content.decode()
        page = there.get("/p/kassa/")
        assert page.status_code == 410 and "Nobody who led it has an account any more." in page.content.decode()
        assert cast.client("boris").get("/p/kassa/").status_code == 404 and restore(cast, who="boris") == 404
        assert there.post("/p/kassa/restore/").status_code == 302
        assert Membership.objects.get(project=cast.kassa, role=Role.LEAD).user == operator
        assert Membership.objects.filter(project=cast.kassa).count() == 4
        assert [entry.verb for entry in AuditEntry.objects.filter(project=cast.kassa)[:2]] == [
            "restore project", "change role",
        ]  # fmt: skip
        assert there.get("/p/kassa/datasets/").status_code == 200

    def test_a_lead_whose_account_is_deactivated_leaves_it_to_no_operator(self, cast: Cast) -> None:
        operator = User.objects.create_superuser("operator@panelbench.test", name="Operator")
        Membership.objects.create(project=cast.kassa, user=operator, role=Role.ANNOTATOR)
        there = Client()
        there.force_login(operator)
        delete(cast)
        User.objects.filter(pk=cast.aino.pk).update(is_active=False)
        assert there.get("/p/kassa/").status_code == 404 and there.post("/p/kassa/restore/").status_code == 404
        User.objects.filter(pk=cast.aino.pk).update(is_active=True)
        assert restore(cast) == 302
        assert Membership.objects.get(project=cast.kassa, user=operator).role == Role.ANNOTATOR

    def test_it_is_deleted_for_good_when_nobody_is_left_to_restore_it(self, cast: Cast) -> None:
        access.furnish(cast)
        delete(cast)
        removal.erase_user(user=cast.aino, actor=None)
        assert deletion.purge_deleted(now=later(), seconds=600) == ["kassa"]
        assert not Project.objects.filter(slug="kassa").exists()

    def test_who_needs_a_second_factor_there_needs_it_to_restore(self, cast: Cast) -> None:
        delete(cast)
        Project.objects.filter(pk=cast.kassa.pk).update(requires_second_factor=True)
        assert restore(cast) == 404 and cast.client("aino").get("/p/kassa/").status_code == 404

    @commits
    def test_two_leads_at_once(self, cast: Cast) -> None:
        Membership.objects.filter(project=cast.kassa, user=cast.boris).update(role=Role.LEAD)
        two = [cast.client("aino"), cast.client("boris")]

        def at_once(send: Any) -> list[int]:
            def one(client: Client) -> int:
                try:
                    return int(send(client).status_code)
                finally:
                    connection.close()

            with ThreadPoolExecutor(2) as pool:
                return sorted(pool.map(one, two))

        statuses = at_once(lambda client: client.post(PAGE, {"name": "Kassa"}))
        assert statuses[0] == 302 and statuses[1] in (302, 404, 410, 422)
        assert ProjectDeletion.objects.count() == 1 and SuspendedMembership.objects.count() == 4
        statuses = at_once(lambda client: client.post("/p/kassa/restore/"))
        assert statuses[0] == 302 and statuses[1] in (302, 404)
        assert Membership.objects.filter(project=cast.kassa).count() == 4
        assert not SuspendedMembership.objects.exists()

    @commits
    def test_a_failure_in_the_middle_leaves_the_project_as_it_was(self, cast: Cast) -> None:
        def fail(_project: Project, _reason: str) -> None:
            raise RuntimeError("the process dies here")

        people.stops.append(fail)
        try:
            with pytest.raises(RuntimeError):
                deletion.delete_project(project=cast.kassa, name="Kassa", actor=cast.aino)
        finally:
            people.stops.remove(fail)
        assert Membership.objects.filter(project=cast.kassa).count() == 4
        assert not ProjectDeletion.objects.exists() and Project.objects.get(pk=cast.kassa.pk).archived_at is None


class TestApi:
    def send(self, cast: Cast, method: str, path: str = "", *, who: str = "aino", **body: Any) -> Any:
        client = cast.client(who)
        return getattr(client, method)(f"{API}{path}", body, content_type="application/json")

    def test_delete_and_restore(self, cast: Cast) -> None:
        wrong = self.send(cast, "delete", name="Teine")
        assert (wrong.status_code, wrong.json()["code"]) == (422, "wrong_name")
        assert list(wrong.json()["fields"]) == ["name"]
        missing = self.send(cast, "delete")
        assert (missing.status_code, missing.json()["code"]) == (400, "invalid")
        for who, status in (("boris", 403), ("maarika", 403), ("zoltan", 404)):
            assert self.send(cast, "delete", who=who, name="Kassa").status_code == status
        assert self.send(cast, "post", "restore/").status_code == 404
        deleted = self.send(cast, "delete", name=" Kassa ")
        assert deleted.status_code == 200 and deleted.json()["slug"] == "kassa"
        assert set(deleted.json()) == {"slug", "deleted_at", "restorable_until"}
        assert self.send(cast, "delete", name="Kassa").status_code == 404
        for who in ("boris", "maarika", "zoltan"):
            assert self.send(cast, "post", "restore/", who=who).status_code == 404
        restored = self.send(cast, "post", "restore/")
        assert restored.status_code == 200 and restored.json()["archived_at"] is None
        assert cast.client("aino").delete(f"{API}?name=Kassa").status_code == 200

    def test_scopes(self, cast: Cast) -> None:
        def program(scope: Scope, project: Project | None) -> Client:
            _token, secret = tokens.issue(user=cast.aino, name="program", scope=scope, project=project)
            return Client(headers={"authorization": f"Bearer {secret}"})

        reads, other = program(Scope.READ, None), program(Scope.WRITE, cast.teine)
        for refused in (reads, other):
            assert refused.delete(f"{API}?name=Kassa").status_code == 403
        assert program(Scope.WRITE, cast.kassa).delete(f"{API}?name=Kassa").status_code == 200
        assert reads.post(f"{API}restore/").status_code == 403
        assert program(Scope.WRITE, None).post(f"{API}restore/").status_code == 200


class TestPurging:
    @commits
    def test_after_thirty_days_rows_and_files_are_gone_and_the_audit_trail_stays(self, cast: Cast) -> None:
        access.furnish(cast)
        tokens.issue(user=cast.boris, name="bound", scope=Scope.READ, project=cast.kassa)
        upload = SimpleUploadedFile("d.csv", b"id,text\n1,a\n")
        cast.client("boris").post("/p/kassa/imports/new/", {"files": [upload]})
        newest = Import.objects.filter(part_of=None).latest("pk")
        (kept,) = (Path(settings.MEDIA_ROOT) / file.content.name for file in newest.files.all())
        other = rows_of(cast.teine)
        delete(cast)
        assert deletion.purge_deleted(now=later() - timedelta(days=1)) == []
        assert kept.exists() and Rating.objects.exists()
        assert deletion.purge_deleted(now=later()) == ["kassa"]
        assert not any(rows_of(cast.kassa).values())
        left = [model for model in (Annotator, Dataset, Import, Item, Rating, Campaign) if model._base_manager.exists()]
        assert left == [] and not Project.objects.filter(slug="kassa").exists() and not kept.exists()
        assert not Token.objects.filter(name="bound").exists() and not Invitation.objects.exists()
        last = AuditEntry.objects.first()
        assert (last.verb, last.project, last.actor, last.subject_pk) == ("purge project", None, None, cast.kassa.pk)
        assert AuditEntry.objects.filter(verb="open campaign", project=None).exists()
        assert rows_of(cast.teine) == other and other["accounts.Membership"]
        assert deletion.purge_deleted(now=later()) == []
        assert cast.client("aino").get("/p/kassa/").status_code == 404

    def test_it_goes_on_where_it_was_stopped_and_nobody_can_restore_then(
        self, cast: Cast, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(deletion, "ROWS_AT_ONCE", 2)
        rated(cast, items=9)
        delete(cast)
        assert deletion.purge_deleted(now=later(), seconds=0) == []
        page = cast.client("aino").get("/p/kassa/").content.decode()
        assert "are being deleted now" in page and "Restore the project" not in page
        home = cast.client("aino").get("/").content.decode()
        assert "are being deleted now" in home and "can be restored until" not in home
        assert restore(cast) == 302
        assert ProjectDeletion.objects.exists() and not Membership.objects.filter(project=cast.kassa).exists()
        refused = cast.client("aino").post(f"{API}restore/")
        assert (refused.status_code, refused.json()["code"]) == (409, "wrong_state")
        passes = 0
        while not deletion.purge_deleted(now=later(), seconds=0):
            passes += 1
        assert passes > 10 and not Project.objects.filter(slug="kassa").exists()

    def test_a_project_that_fails_holds_up_no_other(self, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
        deletion.delete_project(project=cast.kassa, name="Kassa", actor=cast.aino)
        deletion.delete_project(project=cast.teine, name=cast.teine.name, actor=cast.zoltan)
        delete_batch = deletion._delete_batch

        def failing(project: Project) -> bool:
            if project == cast.kassa:
                raise OSError("the storage is away")
            return delete_batch(project)

        with monkeypatch.context() as broken:
            broken.setattr(deletion, "_delete_batch", failing)
            assert deletion.purge_deleted(now=later()) == [cast.teine.slug]
        assert deletion.purge_deleted(now=later()) == ["kassa"]

    @commits
    def test_a_process_that_is_killed_leaves_the_rest_to_the_next(self, cast: Cast) -> None:
        rated(cast, items=5)
        delete(cast)
        ProjectDeletion.objects.update(deleted_at=timezone.now() - ProjectDeletion.GRACE - timedelta(hours=1))
        command = "import django; django.setup(); from accounts import tasks; tasks.purge_projects()"
        environment = {**os.environ, "DATABASE_URL": database_url(), "DJANGO_SETTINGS_MODULE": "panelbench.settings"}
        if connection.vendor == "postgresql":
            with (
                locked_table("annotation_assignment"),
                subprocess.Popen([sys.executable, "-c", command], env=environment) as purging,
            ):
                wait_for_workers(waits_for_a_lock)
                purging.send_signal(signal.SIGKILL)
                purging.wait(60)
            assert not Rating.objects.exists() and Item.objects.exists()
        tasks.purge_projects()
        assert not Project.objects.filter(slug="kassa").exists() and not Item.objects.exists()

    @commits
    def test_two_workers_at_once(self, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(deletion, "ROWS_AT_ONCE", 3)
        rated(cast, items=9)
        delete(cast)

        def purge(_worker: int) -> list[str]:
            try:
                return deletion.purge_deleted(now=later())
            finally:
                connection.close()

        with ThreadPoolExecutor(2) as pool:
            done = list(pool.map(purge, range(2)))
        assert ["kassa"] in done and not Project.objects.filter(slug="kassa").exists()
        assert AuditEntry.objects.filter(verb="purge project").count() == 1

    def test_every_model_with_a_project_is_known(self) -> None:
        known = {table.model for table in deletion._tables()}
        direct = {
            model
            for model in apps.get_models()
            for field in model._meta.fields
            if field.related_model is Project and not field.null
        }
        assert direct <= known | {ProjectDeletion, SuspendedMembership}


def test_a_project_in_grace_asks_no_model(cast: Cast) -> None:
    from judging.asking import allowances

    delete(cast)
    with pytest.raises(Refused) as refused:
        allowances.locked_caps(cast.kassa, "simulated", timezone.now())
    assert refused.value.code == "deleted"
