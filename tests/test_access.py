"""Every route x every role x another project: reached, or refused; and what an annotator must never be able to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client
from django.urls import reverse

from tests import access
from tests.access import Route, answers_to_every_method
from tests.cast import Cast, make_cast

SECTIONS = {
    "numbers_calibration_part": {"part": "bias"},
    "numbers_raters_part": {"part": "severity"},
    "numbers_stability_part": {"part": "ranks"},
    "numbers_results_part": {"part": "board"},
    "numbers_planner_part": {"part": "labels"},
    "numbers_annotators_part": {"part": "severity"},
}
ROUTES = access.routes()
ANNOTATORS = ("layla", "maarika")
# An invitation is for whoever holds its link, and so are the pages of a share link.
BY_LINK = ("join", "shared", "shared_rubric", "shared_chart", "shared_table", "shared_digest", "shared_figures")


@dataclass(frozen=True, slots=True)
class Furnished:
    """The cast, one of everything, the files of that, and the session cookie of each person."""

    cast: Cast
    parts: dict[str, Any]
    files: dict[Path, bytes]
    cookies: dict[str, str]


def uploaded_files() -> set[Path]:
    return {path for path in (settings.DATA_DIR / "uploads").rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def furnished(django_db_setup: None, django_db_blocker: Any) -> Iterator[Furnished]:
    """Made once: every test, and every request of `asked`, is rolled back to it."""
    with django_db_blocker.unblock(), transaction.atomic():
        before = uploaded_files()
        cast = make_cast()
        parts = access.furnish(cast)
        uploads = uploaded_files() - before  # those of earlier tests stay in the folder
        cookies = {who: cast.client(who).cookies[settings.SESSION_COOKIE_NAME].value for who in access.PEOPLE}
        yield Furnished(cast, parts, {path: path.read_bytes() for path in uploads}, cookies)
        transaction.set_rollback(True)


@pytest.fixture
def cast(furnished: Furnished, db: None) -> Cast:
    return furnished.cast


@pytest.fixture
def parts(furnished: Furnished) -> dict[str, Any]:
    """What stands for each part of an address. No rollback brings a removed file back, so that is done here."""
    for path, content in furnished.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return furnished.parts


def address(route: Route, parts: dict[str, Any]) -> str:
    unknown = set(route.parts) - set(parts)
    assert not unknown, f"tests/access.py:furnish does not know what {unknown} in {route.pattern} stands for"
    for folder, kind in (("verdict-imports", access.VERDICTS), ("study-imports", access.STUDY)):
        if folder in route.pattern:
            parts = {**parts, "file_import": parts[kind]}
    if route.name == "desk_feedback":
        parts = {**parts, "key": parts[access.TRAINED]}
    chosen = {**parts, **SECTIONS.get(route.name, {})}
    return reverse(route.name, kwargs={part: chosen[part] for part in route.parts})


def browser(furnished: Furnished, who: str) -> Client:
    """A new browser with the cookie of somebody who signed in, or of nobody."""
    opened = access.anonymous()
    if who in furnished.cookies:
        opened.cookies[settings.SESSION_COOKIE_NAME] = furnished.cookies[who]
    return opened


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_a_route_is_open_to_those_who_may_reach_it_and_to_nobody_of_another_project(
    furnished: Furnished, parts: dict[str, Any], db: None, route: Route
) -> None:
    there = address(route, parts)
    methods: Sequence[str] = access.METHODS
    for who in sorted(access.EVERYONE):
        answers = answers_to_every_method(browser(furnished, who), there, methods)
        methods = [answer.method for answer in answers if answer.status != 405]  # what a view lacks, it lacks for all
        broken = [answer for answer in answers if answer.status >= 500 and answer.status != 503]
        assert not broken, f"{who}: {broken}"
        reached = [answer.method for answer in answers if not answer.is_denied]
        assert bool(reached) == (who in route.allowed), f"{who} at {there}: {[(a.method, a.status) for a in answers]}"
        if who in ANNOTATORS:
            seen = [secret for answer in answers for secret in access.HIDDEN if secret in answer.text]
            assert not seen, f"{who} reads {seen} at {there}"
    if not set(route.parts) - {"project"} or route.name in BY_LINK:
        return
    there = address(route, {**parts, "project": furnished.cast.teine.slug})
    answers = answers_to_every_method(browser(furnished, "zoltan"), there, methods)
    assert all(answer.is_denied for answer in answers), [(answer.method, answer.status) for answer in answers]


def test_the_desk_shows_the_dialogue_it_must_not_say_who_wrote(cast: Cast, parts: dict[str, Any]) -> None:
    page = cast.client("maarika").get(f"/desk/at/{parts['key']}/")
    assert "Minu pakk number" in page.content.decode()


def test_a_removed_member_reaches_nothing(cast: Cast, parts: dict[str, Any]) -> None:
    browser = cast.client("maarika")
    cast.maarika.memberships.all().delete()
    assert browser.get(f"/desk/at/{parts['key']}/").status_code == 404
    assert browser.post(f"/desk/at/{parts['key']}/submit/", {"key": parts["key"]}).status_code in (403, 404)
