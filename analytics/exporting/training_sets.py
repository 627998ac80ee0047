"""Training sets for judges: a row for each item and criterion with the panel's label, as a distribution and as a score.

Only what people gave counts: no verdict is among it. Items are split by scenario, so that no scenario is on two sides.
Scenarios that an alignment has locked for its test are always in the split `test`, whatever the seed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from django.db.models import QuerySet

from accounts.models import Project
from analytics.items import reference_score
from analytics.questions.reference_rules import usual_rule
from annotation.models import Campaign, Criterion, Item, Rating
from annotation.writers.tables import BATCH, Column, Table
from judging.models import Alignment
from judging.versions import examples

TRAINING_COLUMNS = (
    *(Column(name) for name in ("item", "language", "generator", "scenario")),
    Column("split", "word"),
    *(Column(name) for name in ("instruction", "answer", "reference")),
    Column("criterion", "word"),
    Column("rubric"),
    Column("level", "word"),
    Column("scale", "object"),
    Column("score", "number"),
    Column("score_rule", "word"),
    Column("soft_label", "object"),
    *(Column(name, "integer") for name in ("n_raters", "n_not_applicable", "n_stopped")),
    Column("rationale"),
)
_ANSWER, _REFERENCE = "answer", "reference"
_READ = ("annotation__item", "criterion", "status", "score", "rationale")
_ITEMS = 200  # whose texts are read at once


@dataclass(frozen=True, slots=True)
class ScenarioSplit:
    """How items come to the splits: the ``share`` of scenarios in the test split, drawn by ``seed``; and the locked
    ones, which are always in it."""

    seed: int
    share: float
    locked: frozenset[str]

    def of(self, unit: str) -> str:
        """The split of a scenario: its place in [0, 1), by the seed and its name, is below the share or not."""
        if unit in self.locked:
            return "test"
        digest = hashlib.sha256(f"{self.seed}:{unit}".encode()).digest()
        return "test" if int.from_bytes(digest[:8]) / 2**64 < self.share else "train"


def training_set(campaign: Campaign, *, seed: int, share: float, rationales: bool = True) -> Table:
    """A row for each item and criterion that somebody rated, in the order of the items; superseded ratings don't count.

    ``soft_label``: the share of each point of the scale among the ``n_raters`` scores. N/A is no point: it is counted
    beside, and a row that has nothing else has no label. ``score``: by ``score_rule``; None where modes tie.
    """
    split = ScenarioSplit(seed, share, locked_scenarios(campaign.project))
    criteria = {criterion.pk: criterion for criterion in campaign.rubric_version.criteria.all()}
    return Table(f"{campaign.name} training set", TRAINING_COLUMNS, _rows(campaign, criteria, split, rationales))


def rated_places(campaign: Campaign) -> QuerySet[Rating, tuple[Any, ...]]:
    """The pairs of item and criterion that the campaign's annotators rated, each once."""
    return _current(campaign).order_by().values_list("annotation__item", "criterion").distinct()


def _current(campaign: Campaign) -> QuerySet[Rating]:
    return Rating.objects.filter(annotation__campaign=campaign, annotation__superseded_at=None)


def _rows(
    campaign: Campaign, criteria: Mapping[int, Criterion], split: ScenarioSplit, rationales: bool
) -> Iterator[tuple[Any, ...]]:
    place = ("annotation__item__ordinal", "annotation__item", "criterion__position", "annotation")
    given = _current(campaign).order_by(*place).values_list(*_READ).iterator(BATCH)
    groups = ((item, list(rows)) for item, rows in groupby(given, key=itemgetter(0)))
    while some := list(islice(groups, _ITEMS)):
        items = Item.objects.in_bulk([item for item, _rows_of_item in some])
        for pk, of_item in some:
            item = items[pk]
            about = (item.external_id, item.language, item.generator, item.scenario)
            texts = (split.of(item.scenario or item.digest), *texts_of(item))
            for key, of_criterion in groupby(of_item, key=itemgetter(1)):
                criterion = criteria[key]
                label = _label(criterion, [row[2:] for row in of_criterion], rationales)
                yield (*about, *texts, criterion.key, rubric_text(criterion, item.language), *label)


def _label(criterion: Criterion, given: list[tuple[str, float | None, str]], rationales: bool) -> tuple[Any, ...]:
    counts = Counter(score for _status, score, _rationale in given if score is not None)
    of_status = Counter(status for status, _score, _rationale in given)
    n, rule = sum(counts.values()), usual_rule(criterion.level, of_classes=True)
    score = reference_score(counts, rule)
    points = [*criterion.values, *sorted(counts.keys() - set(criterion.values))]
    soft = {f"{point:g}": counts[point] / n for point in points} if n else None
    reasons = [rationale for _status, given_score, rationale in given if rationale and given_score == score]
    rationale = "\n".join(dict.fromkeys(reasons)) if rationales and score is not None else ""
    others = (of_status[Rating.Status.NOT_APPLICABLE], of_status[Rating.Status.STOPPED])
    return criterion.level, criterion.scale, score, rule, soft, n, *others, rationale


def texts_of(item: Item) -> tuple[str, str, str]:
    """Instruction, answer and reference of an item: the answer is its field of that name, or its dialogue where it has
    none; the instruction is everything else that a rater saw."""
    dialogue = "\n".join(f"{turn.get('name') or turn['speaker']}: {turn['text']}" for turn in item.turns)
    fields = {name: "\n".join(text) if isinstance(text, list) else str(text) for name, text in item.fields.items()}
    answer = fields.get(_ANSWER, "")
    others = {name: text for name, text in fields.items() if name not in (_ANSWER, _REFERENCE) and text.strip()}
    parts = [next(iter(others.values()))] if len(others) == 1 else [f"{name}: {text}" for name, text in others.items()]
    if answer.strip() and dialogue:
        parts.append(dialogue)
    return "\n\n".join(parts), answer if answer.strip() else dialogue, fields.get(_REFERENCE, "")


def rubric_text(criterion: Criterion, language: str) -> str:
    """The criterion as its raters read it: name, question, and a line for each point with its label and anchor."""
    lines = [criterion.says("name", language), criterion.says("question", language)]
    for value in criterion.values:
        words = ": ".join(filter(None, (criterion.label(value, language), criterion.anchor(value, language)["text"])))
        lines.append(f"{value:g} = {words}" if words else f"{value:g}")
    return "\n".join(filter(None, lines))


def locked_scenarios(project: Project) -> frozenset[str]:
    """The scenarios, and the contents of items without one, that alignments of the project have locked for a test, with
    all copies of them in the project."""
    return examples.linked_units(examples.locked_items(Alignment.objects.filter(project=project)), project.pk)
