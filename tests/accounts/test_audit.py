"""The audit trail is read as sentences and filtered, through HTTP."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

from django.utils import timezone

from accounts.models import AuditEntry
from annotation import panels
from tests import make
from tests.annotation import scene
from tests.cast import Cast
from tests.test_layout import ROOT

AUDIT = "/p/kassa/audit/"


def shown(cast: Cast, query: str = "") -> list[str]:
    page = cast.client("aino").get(f"{AUDIT}{query}").content.decode()
    rows = re.findall(r"<tr><td.*?</tr>", page, re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]+>", " ", row)).split()) for row in rows]


def test_an_entry_is_a_sentence_and_the_thing_has_its_name(cast: Cast) -> None:
    panels.create(project=cast.kassa, name="Estonian readers", language="et", actor=cast.aino)
    make.campaign(cast.kassa)
    lines = shown(cast)
    assert any(line.endswith("Aino created a panel panel Estonian readers language, name") for line in lines)
    assert any("Server opened a campaign campaign Round 1" in line for line in lines)
    assert any("Aino created the project project Kassa" in line for line in lines)
    assert not any(re.search(r"(annotation|accounts|judging)\.[A-Z]|—", line) for line in lines)


def test_it_is_filtered_by_person_action_thing_and_day(cast: Cast) -> None:
    panels.create(project=cast.kassa, name="Estonian readers", language="et", actor=cast.boris)
    make.campaign(cast.kassa)
    every = shown(cast)
    (boris,) = shown(cast, f"?person={cast.boris.pk}")
    assert "Boris created a panel" in boris
    assert shown(cast, "?person=-") == [line for line in every if "Server" in line]
    assert shown(cast, "?action=create+panel") == [line for line in every if "created a panel" in line]
    assert shown(cast, "?thing=annotation.Campaign") == [line for line in every if "campaign Round 1" in line]
    AuditEntry.objects.filter(verb="create panel").update(at=timezone.now() - timedelta(days=40))
    yesterday = (timezone.now() - timedelta(days=1)).date().isoformat()
    assert len(shown(cast, f"?first={yesterday}")) == len(every) - 1
    assert len(shown(cast, f"?last={yesterday}")) == 1
    assert shown(cast, "?thing=annotation.Campaign&person=-&last=2001-01-01") == ["No entry matches the filter."]


def test_older_entries_keep_the_choice(cast: Cast) -> None:
    entry = AuditEntry.objects.get(project=cast.kassa, verb="found project")
    AuditEntry.objects.bulk_create(
        AuditEntry(project=cast.kassa, actor=cast.boris, verb="set budget", subject=entry.subject) for _n in range(201)
    )
    page = cast.client("aino").get(f"{AUDIT}?person={cast.boris.pk}").content.decode()
    older = unescape(re.search(r'href="(\?[^"]*before=\d+)"', page).group(1))
    assert f"person={cast.boris.pk}" in older
    assert len(shown(cast, older)) == 1


def test_the_number_of_queries_does_not_grow_with_the_entries(cast: Cast, django_assert_max_num_queries: Any) -> None:
    scene.duty(cast, items=2)
    for number in range(20):
        panels.create(project=cast.kassa, name=f"Panel {number}", actor=cast.aino)
    client = cast.client("aino")
    with django_assert_max_num_queries(30):
        client.get(AUDIT)


def test_every_verb_that_the_code_writes_has_its_words() -> None:
    from accounts.audit import ACTIONS

    folders = (ROOT / name for name in ("platform/accounts", "annotation", "judging", "analytics"))
    code = "".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py"))
    plain = set(re.findall(r'\bproject=[\w.]+, verb="([^"]+)"', code))
    assert len(plain) > 25
    # These belong to no project.
    assert plain - set(ACTIONS) - {"erase", "remove project", "describe self"} == set()
