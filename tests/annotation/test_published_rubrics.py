"""What may be published as a rubric: every example of the docs, and no critical criterion that stops nothing."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from annotation import rubrics
from annotation.models import RubricVersion
from annotation.readers.rubric import parse_rubric, rubric_from_dict
from judging.study_presets import STUDY_PRESETS
from tests import make
from tests.cast import Cast

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]
FILES = [ROOT / "annotation/examples/rubric.yaml", ROOT / "platform/panelbench/demo/content/rubric.yaml"]
SAFE = {
    "key": "safe",
    "name": {"en": "Safe", "ar": "آمن"},
    "scale": {
        "level": "nominal",
        "points": [{"value": 0, "label": {"en": "No"}}, {"value": 1, "label": {"en": "Yes"}}],
    },
    "group": "critical",
}


def examples() -> dict[str, Any]:
    """Every whole rubric that the docs, the example files, the demo and the presets of studies contain."""
    found = {path.parent.name: yaml.safe_load(path.read_text()) for path in FILES}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for number, block in enumerate(re.findall(r"```yaml[^\n]*\n(.*?)```", page.read_text(), re.DOTALL)):
            read = yaml.safe_load(block) if "source_language:" in block and "criteria:" in block else {}
            if read and "tasks" not in read:  # a taxonomy has tasks
                found[f"{page.stem}-{number}"] = read
    return found | {study: preset.rubric for study, preset in STUDY_PRESETS.items()}


EXAMPLES = examples()


def document(*criteria: dict[str, Any]) -> dict[str, Any]:
    return {"key": "safety", "name": {"en": "Safety “أمان”"}, "source_language": "en", "criteria": list(criteria)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_can_be_published_and_every_critical_criterion_stops_something(cast: Cast, name: str) -> None:
    boris, there = cast.client("boris"), "/api/v1/projects/kassa/rubrics/"
    drafted = boris.post(there, EXAMPLES[name], content_type="application/json")
    assert drafted.status_code == 201, drafted.content
    key = drafted.json()["rubric"] if "rubric" in drafted.json() else drafted.json()["key"]
    published = boris.post(f"{there}{key}/versions/1/publish/")
    assert published.status_code == 200, published.content
    version = RubricVersion.objects.get(state="published")
    assert all(one.best is not None for one in version.criteria.all() if one.is_critical)


def test_the_docs_have_rubrics() -> None:
    assert {"formats-0", "examples"} <= {re.sub(r"-\d+$", "-0", name) for name in EXAMPLES}


@pytest.mark.both_databases
def test_a_critical_criterion_without_direction_is_not_published(cast: Cast) -> None:
    boris, there = cast.client("boris"), "/api/v1/projects/kassa/rubrics/"
    boris.post(there, document(SAFE), content_type="application/json")
    refused = boris.post(f"{there}safety/versions/1/publish/")
    assert (refused.status_code, refused.json()["code"]) == (409, "critical_direction")
    assert "safe" in refused.json()["detail"] and "“lower is better” if 1 does" in refused.json()["detail"]
    page = "/p/kassa/rubrics/safety/v1/"
    shown = html.unescape(boris.post(f"{page}publish/", follow=True).content.decode())
    assert "these critical criteria have no direction: safe. Set it" in shown
    assert "Set their direction before you publish this version." in shown
    assert RubricVersion.objects.get().state == "draft"
    boris.post(there, document({**SAFE, "direction": "higher_is_better"}), content_type="application/json")
    assert boris.post(f"{there}safety/versions/2/publish/").status_code == 200
    assert "have no direction" not in boris.get("/p/kassa/rubrics/safety/v2/").content.decode()


@pytest.mark.both_databases
def test_a_version_published_earlier_warns_on_its_page(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        earlier.setattr(rubrics, "stops_nothing", lambda _document: [])
        old = parse_rubric("rubric.json", orjson.dumps(document(SAFE, make.criterion("fluency")))).document
        assert old
        rubrics.publish(version=rubrics.draft(project=cast.kassa, document=old))
    shown = html.unescape(cast.client("boris").get("/p/kassa/rubrics/safety/v1/").content.decode())
    assert (
        "These critical criteria have no direction, so no mark stops the rating of an item: \u2068safe\u2069." in shown
    )
    assert "Edit the rubric as the next version" in shown
    assert rubrics.stops_nothing(rubric_from_dict(RubricVersion.objects.get().document)) == ["safe"]
