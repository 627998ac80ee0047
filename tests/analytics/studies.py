"""Published studies of `../shared/data` as campaigns: for tests marked `study_data`."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from accounts.models import Project
from annotation import campaigns
from annotation.models import Campaign
from tests import make
from tests.study_data import study_file

HANNA_CRITERIA = ("re", "ch", "em", "su", "eg", "cx")
DICES_LABELS = ("No", "Yes", "Unsure")


def study_campaign(project: Project, name: str, items: list[Any], *criteria: dict[str, Any]) -> Campaign:
    """A campaign over these items with a rubric of these criteria."""
    rows = make.dataset(project, items, name=name)
    rubric = make.rubric(project, *criteria, key=name.lower())
    return campaigns.open_campaign(project=project, name=name, dataset=rows, rubric_version=rubric)


def dices_campaign(project: Project, *, items: int = 350) -> tuple[Campaign, dict[str, dict[str, list[float | None]]]]:
    """123 raters, one nominal criterion, 350 dialogues; and the scores by rater."""
    instances = json.loads(study_file("dices-350/dices_350_crowdsourced.json")[1])["instances"][:items]
    points = [{"value": value, "label": {"en": label}} for value, label in enumerate(DICES_LABELS)]
    safety = {"key": "safety", "name": {"en": "Safety"}, "scale": {"level": "nominal", "points": points}}
    rows = [make.item_row(n, "en", external_id=f"dices-{each['id']}") for n, each in enumerate(instances)]
    made = study_campaign(project, "DICES", rows, safety)
    given = [each["annotations"]["safety"]["individual_human_scores"] for each in instances]
    labels = [[float(DICES_LABELS.index(label)) for label in scores] for scores in given]
    scores: dict[str, list[float | None]] = {
        f"r{rater + 1:03}": [row[rater] for row in labels] for rater in range(len(labels[0]))
    }
    make.rated(made, {"safety": scores})
    return made, {"safety": scores}


def hanna_campaign(project: Project, *, stories: int = 96) -> tuple[Campaign, dict[str, dict[str, list[float | None]]]]:
    """Three human slots, six criteria from 1 to 5, 11 systems; and the scores by criterion and rater."""
    csv.field_size_limit(10_000_000)
    systems = list(csv.DictReader(io.StringIO(study_file("hanna/hanna_metric_scores_llm.csv")[1].decode())))
    rows = [
        make.item_row(n, "en", system["Model"], scenario=f"prompt-{prompt}", external_id=f"{system['Model']}/{prompt}")
        for n, (system, prompt) in enumerate((each, prompt) for each in systems for prompt in range(stories))
    ]
    made = study_campaign(project, "HANNA", rows, *(make.criterion(key, (1, 2, 3, 4, 5)) for key in HANNA_CRITERIA))
    scores: dict[str, dict[str, list[float | None]]] = {
        key: {
            f"human {rater}": [
                float(score) for each in systems for score in json.loads(each[f"Human {rater} {key.upper()}"])[:stories]
            ]
            for rater in (1, 2, 3)
        }
        for key in HANNA_CRITERIA
    }
    make.rated(made, scores)
    return made, scores
