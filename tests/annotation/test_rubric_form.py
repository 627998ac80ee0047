"""Rubrics by form: what a document holds survives the form, the form's buttons, problems, and two editors at once."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.refusals import Refused
from annotation import rubrics
from annotation.models import RubricVersion
from annotation.readers import RubricDocument, parse_rubric
from tests.cast import Cast

ROOT = Path(__file__).parents[2]
RICH = """
key: rich
name: {en: Rich, ar: غني}
source_language: en
criteria:
  - key: tone
    name: {en: Tone, ja: 口調, ar: نبرة}
    question: {en: "Is the tone right?\\nSay why."}
    scale: {level: ordinal, points: [{value: -1, label: {en: Bad, ar: سيئ}}, {value: 0.5, label: {en: So-so}}, 2]}
    anchors: {"-1": {en: {text: Rude, reason: Hurts}, ja: 失礼}, "2": Kind}
    mark_if: {en: [Shouting, Swearing], ar: [صراخ]}
    dont_mark_if: [Irony]
    examples: {en: [{text: Go away., score: -1, comment: rude}]}
    speaker: agent
    not_applicable: true
    rationale: {rule: required_except_best, min_words: 3}
    evidence: required
    panel: natives
    translations: {ar: reviewed, ja: stale}
  - {key: stop, name: Stop, scale: {level: nominal, points: [{value: 0, label: No}, {value: 1, label: Yes}]},
     group: critical, direction: lower_is_better}
  - {key: slider, name: Slider, scale: {level: interval, min: 0, max: 100}, anchors: {0: None, 50.5: Half, 100: All},
     direction: lower_is_better, rationale: never}
"""


class Form(HTMLParser):
    """What a browser would send of the form with the given id, without its buttons."""

    def __init__(self, page: str, form: str = "rubric-form") -> None:
        super().__init__()
        self.values: dict[str, list[str]] = {}
        self._form, self._inside, self._area, self._select = form, False, "", ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._inside = given.get("id") == self._form
        if not self._inside or "disabled" in given:
            return
        if tag == "input" and (given.get("type") != "checkbox" or "checked" in given):
            self.values.setdefault(given["name"], []).append(given.get("value", ""))
        elif tag == "textarea":
            self._area = given["name"]
            self.values[self._area] = [""]
        elif tag == "select":
            self._select = given["name"]
        elif tag == "option" and (self._select not in self.values or "selected" in given):
            self.values[self._select] = [given["value"]]

    def handle_data(self, data: str) -> None:
        if self._area:
            self.values[self._area][0] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area:
            text = self.values[self._area][0].removeprefix("\n")  # as browsers do
            self.values[self._area], self._area = [text.replace("\n", "\r\n")], ""
        if tag == "form":
            self._inside = False


def document(text: str | bytes) -> RubricDocument:
    parsed = parse_rubric("rubric.yaml", text.encode() if isinstance(text, str) else text)
    assert parsed.document, parsed.problems.sentences()
    return parsed.document


def form(client: Client, address: str, **changes: Any) -> dict[str, Any]:
    """The form's values, with some of them changed."""
    answer = client.get(address)
    assert answer.status_code == 200, answer.content
    return {**Form(answer.content.decode()).values, **changes}


def press(client: Client, address: str, values: dict[str, Any], action: str, **changes: Any) -> dict[str, Any]:
    """The form's values after a button."""
    answer = client.post(address, {**values, **changes, "action": action})
    assert answer.status_code == 200, answer.content.decode()
    return Form(answer.content.decode()).values


FILES = ["examples/estonian-rubric.yaml", "platform/panelbench/demo/content/rubric.yaml", RICH]


@pytest.mark.parametrize("source", FILES, ids=["estonian", "demo", "rich"])
def test_a_rubric_sent_back_unchanged_is_the_same_document(cast: Cast, source: str) -> None:
    given = document(source if "\n" in source else (ROOT / source).read_bytes())
    version = rubrics.draft(project=cast.kassa, document=given)
    client, address = cast.client("aino"), f"/p/kassa/rubrics/{given.key}/v1/edit/"
    values = form(client, address)
    for shown in values["language"]:
        values = press(client, address, values, "show", shown=shown)
    assert client.post(address, {**values, "action": "save"}).status_code == 302
    version.refresh_from_db()
    assert (version.document, version.digest) == (
        given.as_dict(),
        rubrics.draft(project=cast.kassa, document=given).digest,
    )
    assert RubricVersion.objects.count() == 1


def test_a_rubric_is_written_from_nothing_and_published(cast: Cast) -> None:
    client, address = cast.client("aino"), "/p/kassa/rubrics/new/"
    values = form(client, address, key="service")
    values["name-en"] = "Service"
    values = press(client, address, values, "add-language", new_language="pt_br")
    values = press(client, address, values, "add-criterion")
    values |= {"c0-key": "second", "c0-name-en": "Second", "c1-key": "first", "c1-name-en": "First"}
    values |= {
        "name-pt-BR": "Serviço",
        "c1p0-anchor-pt-BR": "Péssimo",
        "c1p0-anchor-en": "Awful",
        "c1p4-label-en": "Top",
    }
    values = press(client, address, values, "add-point:1")
    values = press(client, address, values, "remove-point:1:1")
    values = press(client, address, values, "up:1")
    assert client.post(address, {**values, "action": "save"}).status_code == 302
    version = RubricVersion.objects.get(rubric__key="service")
    first, second = version.document["criteria"]
    assert (first["key"], second["key"]) == ("first", "second")
    assert first["scale"]["points"] == [1, 3, 4, {"value": 5, "label": {"en": "Top"}}, 6]
    assert first["anchors"] == {"1": {"en": "Awful", "pt-BR": "Péssimo"}}
    assert version.document["name"] == {"en": "Service", "pt-BR": "Serviço"}
    rubrics.publish(version=version)
    assert list(version.criteria.values_list("key", flat=True)) == ["first", "second"]


def test_problems_stand_at_their_criterion_and_nothing_typed_is_lost(cast: Cast) -> None:
    client, address = cast.client("aino"), "/p/kassa/rubrics/new/"
    values = form(client, address)
    values |= {"name-en": "Half done", "c0-question-en": "Long question", "c0p1-value": "x", "c0-min_words": "-2"}
    answer = client.post(address, {**values, "action": "save"})
    page = answer.content.decode()
    assert answer.status_code == 400 and not RubricVersion.objects.exists()
    assert "Fill in: Key." in page and "Fill in: Name." in page
    assert "expected a number" in page and "a whole number up to 1,000" in page
    kept = Form(page).values
    assert (kept["c0-question-en"], kept["c0p1-value"], kept["c0-min_words"]) == (["Long question"], ["x"], ["-2"])


def test_a_draft_that_somebody_else_changed_is_not_overwritten(cast: Cast) -> None:
    rubrics.draft(project=cast.kassa, document=document(RICH))
    address = "/p/kassa/rubrics/rich/v1/edit/"
    first, second = cast.client("aino"), cast.client("boris")
    early, late = form(first, address), form(second, address)
    assert second.post(address, {**late, "name-en": "Theirs", "action": "save"}).status_code == 302
    refused = first.post(address, {**early, "name-en": "Mine", "action": "save"})
    assert refused.status_code == 400 and "changed or published by somebody else" in refused.content.decode()
    assert Form(refused.content.decode()).values["name-en"] == ["Mine"]
    assert RubricVersion.objects.get().document["name"]["en"] == "Theirs"


def test_a_draft_that_was_changed_meanwhile_is_not_published(cast: Cast) -> None:
    """Publishing begins with the draft as it was; an editor saves before it ends."""
    begun = rubrics.draft(project=cast.kassa, document=document(RICH))
    edited = RubricVersion.objects.get()
    changed = document(RICH.replace("key: tone", "key: manner"))
    rubrics.edit(version=edited, document=changed, former_digest=edited.digest)
    with pytest.raises(Refused, match="changed since you opened it") as refused:
        rubrics.publish(version=begun)
    assert refused.value.code == "changed" and edited.criteria.count() == 0
    assert list(rubrics.publish(version=edited).criteria.values_list("key", flat=True)) == ["manner", "stop", "slider"]


def test_the_second_of_two_editors_of_a_published_version_is_told(cast: Cast) -> None:
    rubrics.publish(version=rubrics.draft(project=cast.kassa, document=document(RICH)))
    address = "/p/kassa/rubrics/rich/v1/edit/"
    first, second = cast.client("aino"), cast.client("boris")
    early, late = form(first, address), form(second, address)
    assert second.post(address, {**late, "name-en": "Theirs", "action": "save"}).status_code == 302
    for _time in range(2):
        refused = first.post(address, {**early, "name-en": "Mine", "action": "save"})
        assert refused.status_code == 400 and "saved a newer version" in refused.content.decode()
        early = Form(refused.content.decode()).values
        assert early["name-en"] == ["Mine"]
    assert [version.document["name"]["en"] for version in RubricVersion.objects.order_by("number")] == [
        "Rich",
        "Theirs",
    ]
    assert second.post(address, {**late, "name-en": "Theirs", "action": "save"}).status_code == 302
    older = form(first, address)
    assert first.post(address, {**older, "name-en": "From the first", "action": "save"}).status_code == 302


def test_a_published_version_is_edited_as_the_next_one_and_a_key_is_used_once(cast: Cast) -> None:
    published = rubrics.publish(version=rubrics.draft(project=cast.kassa, document=document(RICH)))
    client = cast.client("aino")
    values = form(client, "/p/kassa/rubrics/rich/v1/edit/")
    client.post("/p/kassa/rubrics/rich/v1/edit/", {**values, "name-en": "Richer", "action": "save"})
    assert [version.state for version in RubricVersion.objects.order_by("number")] == ["published", "draft"]
    copied = form(client, f"/p/kassa/rubrics/new/?from={published.pk}")
    assert copied["key"] == [""] and copied["name-en"] == ["Rich"]
    taken = client.post("/p/kassa/rubrics/new/", {**copied, "key": "rich", "action": "save"})
    assert "The project has a rubric with the key" in taken.content.decode()


def test_previews_show_the_desk_and_the_judges_instructions_from_the_same_anchors(cast: Cast) -> None:
    rubrics.draft(project=cast.kassa, document=document(RICH))
    client = cast.client("aino")
    values = form(client, "/p/kassa/rubrics/rich/v1/edit/", shown="")
    values["c1-key"] = [""]
    desk = client.post("/p/kassa/rubrics/preview/", values).content.decode()
    prompt = client.post("/p/kassa/rubrics/prompt/", values).content.decode()
    for text in ("Rude", "Shouting"):
        assert text in desk and text in prompt
    assert "1 criterion is not complete yet" in desk and 'id="criterion-stop"' not in desk
    arabic = client.post("/p/kassa/rubrics/preview/", {**values, "shown": "ar"}).content.decode()
    assert "صراخ" in arabic
    assert "In <bdi>Arabic (العربية)</bdi>." in arabic and "In <bdi>English</bdi>." in desk
    assert "Text missing" in arabic and "Shown in <bdi>English</bdi>: " in arabic and "Text missing" not in desk
    version = client.get("/p/kassa/rubrics/rich/v1/").content.decode()
    assert re.search(r"can no longer be changed\. Missing texts: [^\"]*Arabic \(العربية\): \d+", version)


def test_hostile_forms_are_answered(cast: Cast) -> None:
    client = cast.client("aino")
    for values in (
        {"action": "save"},
        {"action": "remove:99", "criteria": "x"},
        {
            "action": "remove-point:0:99",
            "criteria": "1",
            "c0-points": "-1",
            "c0-examples": "[1]",
            "hidden_texts": "nan",
        },
        {"action": "add-language", "new_language": "not a language"},
        {
            "action": "save",
            "criteria": "1",
            "c0-points": "2",
            "c0p0-value": "1e999",
            "c0p1-value": "nan",
            "key": "\x00",
        },
        {
            "action": "save",
            "criteria": "1",
            "c0-level": "x",
            "c0-group": "x",
            "c0-rule": "x",
            "c0-examples": '{"en": 3}',
        },
    ):
        assert client.post("/p/kassa/rubrics/new/", values).status_code in (200, 400), values
        for preview in ("preview", "prompt"):
            assert client.post(f"/p/kassa/rubrics/{preview}/", values).status_code == 200, values
    assert not RubricVersion.objects.exists()
