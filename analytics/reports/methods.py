"""The settings of a report in words that a paper can use, with versions of programs and the sources of methods."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from django.conf import settings
from django.db.models import Count, Q

from accounts import languages
from analytics.figures import listed
from analytics.questions.question import NumbersQuestion
from analytics.questions.question_names import (
    EXCLUSION_NAMES,
    JURY_RULE_NAMES,
    REFERENCE_NAMES,
    TIE_NAMES,
    statistic_name,
)
from analytics.ratings.raters import judge_names
from annotation import exports as rated
from annotation.models import Assignment, Campaign, Criterion, Item
from annotation.readers import rubric_from_dict
from annotation.rubrics import TranslationCounts, translation_counts
from judging import exports as judged
from judging.models import Attempt, JudgeRun
from judging.runs import whole_run

if TYPE_CHECKING:
    from analytics.reports.parts import AnsweredPart

PROGRAMS = ("panelbench", "numpy", "pandas", "scipy", "simplemma")
"""The programs that compute figures."""

REFERENCES: Mapping[str, str] = yaml.safe_load(Path(__file__).with_name("references.yaml").read_text("utf-8"))
"""Sources by a part of a statistic's name, or of the name of an interval's method."""


def methods_paragraphs(
    campaign: Campaign, parts: Sequence[AnsweredPart], runs: Sequence[JudgeRun]
) -> tuple[list[str], list[str]]:
    """Paragraphs on items, raters, judges, figures, intervals, exclusions and programs; the references they name."""
    cited = _cited(parts)
    numbers = {key: place for place, key in enumerate(cited, start=1)}
    versions = ", ".join(f"{name} {version}" for name, version in program_versions().items())
    digests = sorted({part.snapshot.inputs_digest[:12] for part in parts})
    paragraphs = [
        " ".join(sentences_on_items(campaign)),
        " ".join(_on_raters(campaign, parts)),
        " ".join(_on_judges(campaign, runs, parts)),
        " ".join(_on_figures(parts, numbers)),
        " ".join(_on_left_out(parts)),
        f"Computed with {versions}. SHA-256 of the ratings tables, first digits: {', '.join(digests)}.",
    ]
    return [text for text in paragraphs if text], [REFERENCES[key] for key in cited]


def program_versions() -> dict[str, str]:
    """The version of Python and of every program that figures are computed with."""
    there = {name: program_version(name) for name in PROGRAMS}
    return {"python": platform.python_version(), **{name: version for name, version in there.items() if version}}


def program_version(name: str) -> str:
    """The version of an installed program; "" if it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return str(settings.VERSION) if name == "panelbench" else ""


def sentences_on_items(campaign: Campaign) -> Iterator[str]:
    """The rated items, the rubric and its languages."""
    items = Item.objects.of(campaign.dataset).order_by()
    by_language: dict[str, int] = {}
    for tag in items.values_list("language", flat=True):
        by_language[tag] = by_language.get(tag, 0) + 1
    spoken = [f"{languages.english_name(tag)} ({count:,})" for tag, count in sorted(by_language.items())]
    generators = set(items.values_list("generator", flat=True).distinct()) - {""}
    many, dataset = _many(sum(by_language.values()), "item"), campaign.dataset
    yield f"The dataset “{dataset.name}” (version {dataset.version}) has {many} in {listed(spoken)}."
    if generators:
        yield f"They come from {_many(len(generators), 'generator')}."
    version = campaign.rubric_version
    criteria = [_criterion(each) for each in version.criteria.all()]
    rubric = f"version {version.number} of the rubric “{version.rubric.key}” (digest {version.digest[:12]})"
    yield f"They were rated on {rubric}: {'; '.join(criteria)}."
    document = rubric_from_dict(version.document)
    if translated := [_translated(count, len(criteria)) for count in translation_counts(document)]:
        source = languages.english_name(document.source_language)
        yield f"The rubric's texts were written in {source} and translated: {'; '.join(translated)}."


def _translated(count: TranslationCounts, criteria: int) -> str:
    """A language with the states of its texts: of all criteria, or by state."""
    name = languages.english_name(count.language)
    if count.reviewed == criteria:
        return f"{name} (all {_many(criteria, 'criterion', 'criteria')} reviewed)"
    words = {"reviewed": count.reviewed, "draft": count.draft, "stale": count.stale, "without texts": count.lacking}
    return f"{name} ({', '.join(f'{number} {word}' for word, number in words.items() if number)})"


def _criterion(criterion: Criterion) -> str:
    name = criterion.says("name", "en") or criterion.key
    if criterion.points:
        points = ", ".join(f"{value:g}" for value in sorted(criterion.values))
        return f"{name} ({criterion.level}, points {points})"
    return f"{name} ({criterion.level}, {criterion.minimum:g} to {criterion.maximum:g})"


def _on_raters(campaign: Campaign, parts: Sequence[AnsweredPart]) -> Iterator[str]:
    duties = rated.design(campaign)["duties"]
    done = Count("assignments", filter=Q(assignments__state=Assignment.State.SUBMITTED))
    counted = campaign.duties.annotate(slots=Count("assignments"), submitted=done)
    progress = {
        name: (slots, submitted) for name, slots, submitted in counted.values_list("name", "slots", "submitted")
    }
    for duty in duties:
        panel, drawn = duty["panel"], duty["selections"]
        people, per_item = _many(panel["annotators"], "annotator"), duty["annotators_per_item"]
        how = "; ".join(_drawn(selection) for selection in drawn)
        who = f"Panel “{panel['name']}” ({languages.english_name(panel['language'])}, {people})"
        criteria = _many(len(duty["criteria"]), "criterion", "criteria")
        times = "once" if per_item == 1 else f"{per_item} times"
        yield f"{who} was to rate each item {times} on {criteria} (seed {duty['seed']}{'; ' if how else ''}{how})."
        slots, submitted = progress.get(duty["name"], (0, 0))
        yield f"Of its {_many(slots, 'assignment')}, {submitted:,} {'was' if submitted == 1 else 'were'} submitted."
    counts = parts[0].counts
    if not duties:
        yield "The ratings were imported."
    ends = f"{counts['not_applicable']:,} not applicable, {counts['stopped']:,} stopped by a critical mark"
    ratings_by = f"{_many(counts['ratings'], 'rating')} by {_many(counts['raters'], 'annotator')}"
    yield f"The tables are about {_many(counts['items'], 'item')}."
    yield f"They rest on {ratings_by} ({_many(counts['scores'], 'score')}, {ends}), and on the scores of judges."


def _drawn(selection: Mapping[str, Any]) -> str:
    chance = selection["probability"]
    which = "not drawn at random" if chance == 1 else f"each with probability {chance:.3g}"
    return f"wave {selection['wave']}: {_many(selection['items'], 'item')}, {which}"


def _on_judges(campaign: Campaign, runs: Sequence[JudgeRun], parts: Sequence[AnsweredPart]) -> Iterator[str]:
    names = judge_names(campaign, runs)
    for run in runs:
        judge = run.judge
        facts = [f"model {judge.model}", f"prompt variant {judged.variant_name(judge) or 'not stated'}"]
        served = set(Attempt.objects.filter(call__run__in=whole_run([run])).values_list("served_model", flat=True))
        if served := served - {"", judge.model}:
            facts.append(f"served as {', '.join(sorted(served))}")
        facts += [f"{name} {value}" for name, value in sorted(judge.parameters.items()) if value is not None]
        repeats = "once" if run.repeats == 1 else f"{run.repeats} times"
        invented = " Its verdicts are invented, for tests only." if judge.simulated else ""
        when = f"run {run.pk}, {run.created_at:%Y-%m-%d}"
        yield f"The judge “{names[run.pk]}” ({'; '.join(facts)}) was asked {repeats} ({when}).{invented}"
    verdicts = max((part.counts["verdicts"] for part in parts), default=0)
    if runs:
        yield f"In all, {_many(verdicts, 'verdict')} enter the tables."


def _on_figures(parts: Sequence[AnsweredPart], numbers: Mapping[str, int]) -> Iterator[str]:
    asked = dict.fromkeys(name for part in parts for name in part.part.question.statistics)
    names = [_with_source(name, numbers) for name in asked]
    yield f"The figures are {listed(names)}; each cell names its items, raters and clusters."
    question = parts[0].part.question
    level = f"All criteria were taken as {question.level}." if question.level else ""
    yield level or "Coefficients take each criterion at its own level of measurement."
    if question.pool:
        yield "Criteria were pooled."
    rows = [row for part in parts for row in part.page.content["estimates"]]
    intervals = sorted({row["method"] for row in rows if row.get("method")})
    if question.bootstrap and intervals:
        cited = [_with_source(method, numbers) for method in _short(intervals)]
        drawn = f"bootstraps draw {question.bootstrap:,} resamples of clusters with seed {question.seed}"
        yield f"Intervals are at {100 * question.confidence:g}% ({'; '.join(cited)}); {drawn}."
    yield (
        "Clusters are items: items of one scenario are taken for independent."
        if question.cluster
        else "A cluster is a scenario with all of its items, or an item that has none."
    )
    if any(part.part.question.needs_judge for part in parts):
        yield from _on_reference(question, parts)


def _on_reference(question: NumbersQuestion, parts: Sequence[AnsweredPart]) -> Iterator[str]:
    rule, ties = str(REFERENCE_NAMES[question.reference]), str(TIE_NAMES[question.ties])
    yield f"The reference label of a judge is the panel’s: {rule.lower()}; ties of the mode: {ties}."
    of_mean = [part.part.question.statistics for part in parts if part.part.question.reference == "mean"]
    if of_mean and question.reference != "mean":
        names = listed([statistic_name(name) for name in dict.fromkeys(chain(*of_mean))])
        yield f"For {names}, it is the panel’s mean, and of labels without an order the mode."
    for members in question.jury_members:
        yield f"A jury of {listed(members)} counts as one more judge by {JURY_RULE_NAMES[question.jury_rule]}."


def _short(intervals: Sequence[str]) -> list[str]:
    """Each method once, without what follows a comma: counts and “approximate” are in the cells."""
    return list(dict.fromkeys(re.split("[,;]", method)[0].strip() for method in intervals))[:8]


def _on_left_out(parts: Sequence[AnsweredPart]) -> Iterator[str]:
    question = parts[0].part.question
    if question.where:
        yield f"Only {listed([f'{column} = {value}' for column, value in question.where])} was taken."
    if question.raters:
        yield f"Only ratings by {listed(question.raters)} were taken."
    if question.panels:
        yield f"Only ratings of {listed(question.panels)} were taken."
    found = dict(pair for part in parts for pair in part.page.excluded)
    if found:
        yield f"Ratings: {'; '.join(f'{name}: {number:,}' for name, number in found.items())}."
    else:
        yield "No rating was left out."
    names = sorted({name for part in parts for name in part.part.question.exclude})
    if names:
        yield f"Rules of exclusion: {'; '.join(str(EXCLUSION_NAMES[name]) for name in names)}."
    yield from dict.fromkeys(part.page.ties_sentence for part in parts if part.page.ties_sentence)


def _with_source(name: str, numbers: Mapping[str, int]) -> str:
    places = sorted({place for key, place in numbers.items() if key in name})
    shown = statistic_name(name)
    return f"{shown} [{', '.join(map(str, places))}]" if places else shown


def _cited(parts: Sequence[AnsweredPart]) -> list[str]:
    """The keys of the sources of these parts, in the order in which they are named."""
    asked = [name for part in parts for name in part.part.question.statistics]
    made = [row.get("method") or "" for part in parts for row in part.page.content["estimates"]]
    rules = [part.part.question.reference for part in parts]
    named = "\n".join([*asked, *sorted(set(made)), *rules])
    return [key for key in REFERENCES if key in named]


def _many(count: int, noun: str, several: str = "") -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {several or noun + 's'}"
