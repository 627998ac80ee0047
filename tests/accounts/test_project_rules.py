"""A project that is archived, and one that asks for a second factor, through HTTP."""

from __future__ import annotations

import pytest
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts import people, tokens
from accounts.models import AuditEntry, Membership, Project, Role, Scope
from accounts.refusals import Refused
from annotation.models import Annotation, Import
from judging import runs
from judging.models import Judge, JudgeRun
from tests import access
from tests.annotation import scene
from tests.cast import Cast
from tests.test_access import address

SETTINGS = "/p/kassa/settings/project/"


def with_factor(cast: Cast, name: str) -> Client:
    TOTP.activate(getattr(cast, name), generate_totp_secret())
    return cast.client(name)


class TestArchived:
    def test_nothing_new_comes_in_until_it_is_brought_back(self, cast: Cast) -> None:
        duty = scene.duty(cast, items=2)
        taken = scene.taken(cast, duty)
        aino, boris, maarika = cast.client("aino"), cast.client("boris"), cast.client("maarika")
        assert aino.post(SETTINGS, {"do": "archive"}).status_code == 302

        upload, key = reverse("api_uploads", args=["kassa"]), taken.key
        scores = [{"criterion": name, "score": 1} for name in ("fluency", "coherence")]

        def handed_in(path: str) -> int:
            body = {"answers": scores, "seconds": 3}
            return maarika.post(path, body, "application/json", headers={"accept": "application/json"}).status_code

        assert boris.post(upload, {"name": "a.csv", "size": 3}, "application/json").status_code == 409
        assert handed_in(reverse("api_desk_submit", args=["kassa", key])) == 409
        page = maarika.post(f"/desk/at/{key}/submit/", {"key": key, "seconds": 3, "score-fluency": 1}, follow=True)
        assert page.status_code in (200, 404, 409, 422)
        boris.post("/p/kassa/imports/new/", {"files": [SimpleUploadedFile("d.csv", b"id,text\n1,a\n")]})
        assert not Import.objects.exists()
        assert not Annotation.objects.exists()
        assert reverse("desk_duty", args=[duty.pk]) not in maarika.get("/desk/").content.decode()
        assert maarika.get(reverse("desk_duty", args=[duty.pk])).status_code == 404
        page = boris.get("/").content.decode()
        assert "Archived" in page
        assert boris.get("/p/kassa/").status_code == boris.get("/p/kassa/datasets/").status_code == 200
        assert boris.get("/api/v1/projects/kassa/").json()["archived_at"]
        aino.post(SETTINGS, {"do": "unarchive"})
        assert boris.post(upload, {"name": "a.csv", "size": 3}, "application/json").status_code != 409
        assert handed_in(reverse("api_desk_submit", args=["kassa", key])) == 200
        assert list(AuditEntry.objects.filter(subject="accounts.Project").values_list("verb", flat=True))[:2] == [
            "unarchive project",
            "archive project",
        ]

    def test_running_judges_are_paused_and_none_starts(self, cast: Cast) -> None:
        parts = access.furnish(cast)
        run = JudgeRun.objects.get(pk=parts["run"])
        JudgeRun.objects.filter(pk=run.pk).update(state=JudgeRun.State.RUNNING)
        people.archive(project=cast.kassa, actor=cast.aino)
        assert JudgeRun.objects.get(pk=run.pk).state == JudgeRun.State.PAUSED
        cast.client("boris").post(f"/p/kassa/runs/{run.pk}/resume/")
        assert JudgeRun.objects.get(pk=run.pk).state == JudgeRun.State.PAUSED
        judge = Judge.objects.get(pk=parts["judge"])
        with pytest.raises(Refused, match="archived"):
            runs.start_judge_run(judge=judge, dataset=run.dataset, rubric_version=run.rubric_version)

    def test_only_a_lead_archives(self, cast: Cast) -> None:
        assert cast.client("boris").post(SETTINGS, {"do": "archive"}).status_code == 403
        assert Project.objects.get(pk=cast.kassa.pk).archived_at is None


class TestSecondFactor:
    def test_members_without_one_are_sent_to_set_it_up(self, cast: Cast) -> None:
        taken = scene.taken(cast, scene.duty(cast, items=2))
        aino, boris, maarika = with_factor(cast, "aino"), cast.client("boris"), cast.client("maarika")
        _token, secret = tokens.issue(user=cast.boris, name="script", scope=Scope.READ)
        aino.post(SETTINGS, {"do": "require"})
        assert aino.get("/p/kassa/").status_code == 200
        for browser, page in ((boris, "/p/kassa/"), (boris, "/p/kassa/datasets/"), (boris, "/"), (maarika, "/")):
            assert browser.get(page)["Location"] == "/account/2fa/", page
        assert "requires two-factor authentication" in boris.get("/p/kassa/", follow=True).content.decode()
        for program in (boris, Client(headers={"authorization": f"Bearer {secret}"})):
            answer = program.get("/api/v1/projects/kassa/datasets/")
            assert (answer.status_code, answer.json()["code"]) == (403, "second_factor_required")
        assert maarika.get(f"/desk/at/{taken.key}/").status_code == 404
        assert maarika.post(f"/desk/at/{taken.key}/submit/", {"key": taken.key}).status_code == 404
        assert "Kassa" not in maarika.get("/desk/").content.decode()
        with_factor(cast, "boris")
        assert boris.get("/p/kassa/").status_code == 200
        TOTP.activate(cast.maarika, generate_totp_secret())
        assert maarika.get(f"/desk/at/{taken.key}/").status_code == 200

    def test_who_has_none_cannot_ask_for_one(self, cast: Cast) -> None:
        page = cast.client("aino").post(SETTINGS, {"do": "require"}, follow=True).content.decode()
        assert "for your own account first" in page
        assert not Project.objects.get(pk=cast.kassa.pk).requires_second_factor

    def test_no_page_of_the_project_opens_without_it(self, cast: Cast) -> None:
        parts = access.furnish(cast)
        Membership.objects.filter(project=cast.kassa, user=cast.boris).update(role=Role.LEAD)
        Project.objects.filter(pk=cast.kassa.pk).update(requires_second_factor=True)
        boris, opened = cast.client("boris"), []
        for route in access.routes():
            if "<slug:project>" not in route.pattern or route.name.startswith(("shared", "api_")):
                continue
            there = address(route, parts)
            if boris.get(there).status_code == 200:
                opened.append(there)
        assert opened == []
