"""Markdown of rated texts: formatted where the dataset asks for it, and never more than formatted."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from html.parser import HTMLParser
from pathlib import Path

import pytest

from accounts.models import AuditEntry
from annotation import layouts
from annotation.desk.markup import formatted
from annotation.models import Dataset
from tests import make
from tests.annotation import scene
from tests.cast import Cast

HOSTILE = [
    line.replace("\\n", "\n").replace("\\u0000", "\0").replace("\\u202e", "\u202e").replace("\\x01", "\x01")
    for line in (Path(__file__).parent / "hostile.md").read_text(encoding="utf-8").splitlines()
]
ALLOWED: dict[str, AbstractSet[str]] = {
    "p": {"class"},
    "span": {"class"},
    "bdi": {"class", "dir"},
    "code": {"dir"},
    "pre": {"dir"},
    "ol": {"start"},
    **dict.fromkeys(("em", "strong", "s", "ul", "li", "blockquote", "br", "hr"), frozenset()),
    **dict.fromkeys(("table", "thead", "tbody", "tr", "th", "td"), frozenset()),
}


class Allowed(HTMLParser):
    """Refuses every tag and attribute that is not in the list."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, (tag, self.rawdata)
        assert {name for name, _value in attrs} <= ALLOWED[tag], (attrs, self.rawdata)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


@pytest.mark.parametrize("text", [*HOSTILE, "\n".join(HOSTILE), "\n\n".join(HOSTILE)])
def test_a_hostile_text_becomes_only_formatted_text(text: str) -> None:
    Allowed().feed(formatted(text))


def test_there_are_thirty_hostile_texts_at_least() -> None:
    assert len(HOSTILE) >= 30


def test_what_markdown_becomes() -> None:
    text = "# Title\n\n[link](https://a.test/) ![pic](b.png)\n\n```py\nx < 1\n```\n\n|a|\n|-:|\n|`b`|\n"
    html = formatted(text)
    assert '<p class="heading-1">Title</p>' in html
    assert '<span class="link-text">link</span> <bdi class="address" dir="ltr">(https://a.test/)</bdi>' in html
    assert '<span class="link-text">pic</span> <bdi class="address" dir="ltr">(b.png)</bdi>' in html
    assert '<pre dir="ltr"><code>x &lt; 1\n</code></pre>' in html
    assert '<td><code dir="ltr">b</code></td>' in html


@pytest.mark.django_db
def test_a_dataset_shows_markdown_only_where_somebody_asked_for_it(cast: Cast) -> None:
    turns = [{"speaker": "agent", "text": "**Tere** <b>"}]
    work = scene.duty(cast, items=[make.item_row(1, turns=turns)], overlap=1)
    dataset = work.campaign.dataset
    desk, address = cast.client("maarika"), f"/p/kassa/datasets/{dataset.pk}/"
    item = scene.next_page(desk, work)
    assert "**Tere** &lt;b&gt;" in desk.get(item).content.decode()

    boris = cast.client("boris")
    assert "Choose" in boris.post(f"{address}text-format/", {"markup": "html"}, follow=True).content.decode()
    boris.post(f"{address}text-format/", {"markup": "markdown"})
    dataset.refresh_from_db()
    assert layouts.markup_of(dataset) == "markdown"
    stored = dataset.items.get().pk
    for client, page in ((desk, item), (boris, f"{address}items/{stored}/")):
        answer = client.get(page)
        assert "<strong>Tere</strong> &lt;b&gt;" in answer.content.decode()
        assert "script-src 'self'" in answer["Content-Security-Policy"]
    boris.post(f"{address}text-format/", {"markup": "plain"})
    assert "**Tere**" in desk.get(item).content.decode()
    assert Dataset.objects.get(pk=dataset.pk).layout == {}
    assert AuditEntry.objects.filter(verb="set text format").count() == 2
