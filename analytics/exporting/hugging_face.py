"""A campaign as a folder that the Hugging Face Hub and `datasets.load_dataset` read: a zip with its data card.

The card has the metadata that the Hub reads, and what a reader must know. Keys and values of the metadata:
https://github.com/huggingface/hub-docs/blob/main/datasetcard.md

What the card says of annotators are groups of consenting people, none so small that it points at somebody. Groups of
fewer than five are put together, and so is the smallest other group where subtraction would show them. Counts are
rounded to fives, so that two statements with one person between them are usually the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import pairwise
from typing import IO, Any, BinaryIO, NamedTuple, cast
from zipfile import ZIP_DEFLATED, ZipFile

import yaml
from django.conf import settings
from django.db.models import Count
from django.utils import translation
from django.utils.translation import gettext as _

from accounts import languages
from accounts.models import Profile
from analytics.answers import snapshots
from analytics.figures import SMALL, Figure
from analytics.models import Snapshot
from analytics.ratings.exclusions import not_blind
from analytics.stats.declared.agreement import GWET_AC, KRIPPENDORFF_ALPHA, PERCENT_AGREEMENT
from annotation import exports as rated
from annotation.models import Annotation, Campaign, Curation, Dataset, Item
from annotation.readers import (
    CriterionDocument,
    RubricDocument,
    TextByLanguage,
    parquet_is_installed,
    plain_number,
    rubric_from_dict,
)
from annotation.rubrics import translation_counts
from annotation.sampling.limits import limits_of
from annotation.writers import formats
from annotation.writers.archives import MemberContent, dateless, write_member
from annotation.writers.croissant import CROISSANT_NAME, CroissantDataset, DescribedFile, Digested
from annotation.writers.tables import Column, Table, nested
from judging import exports as judged
from judging.models import JudgeRun

FEWEST_IN_GROUP = 5
ROUNDED_TO = 5
SHOWN = (PERCENT_AGREEMENT, KRIPPENDORFF_ALPHA, GWET_AC)
IMPORTED = "Imported ratings"
ABOUT = {
    "items": "an item",
    "ratings": "one annotator's answer on one criterion of one item",
    "verdicts": "one judge's answer on one criterion of one item",
}


PSEUDONYMS = "Raters have pseudonyms. Rationales are free text in which people may say who they are."
OTHER_FILES = {"README.md": "The data card, for people", "rubric.yaml": "The rubric, with its scales and anchors"}


class Study(NamedTuple):
    """What goes into the folder: its tables, of which those without rows are left out, and the judges' runs."""

    campaign: Campaign
    tables: dict[str, Callable[[], Table]]
    runs: Sequence[JudgeRun]


def write_hugging_face(study: Study, out: BinaryIO) -> None:
    """Write the folder. The numbers are computed first if they are stale."""
    snapshot = snapshots.snapshot(campaign=study.campaign)
    with rated.consistent(), ZipFile(out, "w", ZIP_DEFLATED) as archive, translation.override("en"):
        tables = [written_table(archive, name, make()) for name, make in study.tables.items()]
        kept = [file for file in tables if file.rows]
        card = _card(study, kept, snapshot)
        texts = {"README.md": card.as_markdown(), "rubric.yaml": card.rubric.as_yaml()}
        others = [
            DescribedFile(name=path, path=path, about=OTHER_FILES[path], content=_written_text(archive, path, text))
            for path, text in texts.items()
        ]
        description = card.as_croissant(campaign=study.campaign, others=others)
        archive.writestr(dateless(CROISSANT_NAME), description.as_json())


def _written_text(archive: ZipFile, path: str, text: str) -> MemberContent:
    return write_member(archive, dateless(path), [text.encode()])


def written_table(archive: ZipFile, name: str, table: Table) -> File:
    """Write a table, if it has rows; returns what the card says of it."""
    kind = "parquet" if parquet_is_installed() else "jsonl"
    path = f"data/{name}.{formats.FORMATS[kind].ending}"
    rows = iter(table.rows)
    first = next(rows, None)
    if first is None:
        return File(name, path, ABOUT[name], 0)
    counted = _Counted(first, rows)
    with archive.open(dateless(path), "w", force_zip64=True) as member:
        digested = Digested(member)
        formats.write(_flat(Table(table.name, table.columns, counted)), kind, cast(IO[bytes], digested))
    return File(name, path, ABOUT[name], counted.count, digested.content, table.columns)


class _Counted:
    """Rows that are counted as they are gone through."""

    def __init__(self, first: Sequence[Any], rest: Iterator[Sequence[Any]]) -> None:
        self._first, self._rest = first, rest
        self.count = 0

    def __iter__(self) -> Iterator[Sequence[Any]]:
        self.count = 1
        yield self._first
        for row in self._rest:
            self.count += 1
            yield row


def _flat(table: Table) -> Table:
    """The table with attributes as JSON: their keys are anybody's, and a reader wants one type to a column."""
    places = {place for place, column in enumerate(table.columns) if column.kind == "object"}
    if not places:
        return table
    columns = tuple(Column(column.name) if column.kind == "object" else column for column in table.columns)
    rows = (tuple(nested(cell) if place in places else cell for place, cell in enumerate(row)) for row in table.rows)
    return Table(table.name, columns, rows)


# --- the card -------------------------------------------------------------------------------------------------------
def _card(study: Study, kept: Sequence[File], snapshot: Snapshot) -> Card:
    campaign = study.campaign
    figures = _figures(campaign, snapshot)
    spoken = _languages(campaign)
    return Card(
        title=f"{campaign.project.name}: {campaign.name}",
        summary=campaign.project.description.strip() or "Scores of people and of language models on the same items.",
        year=campaign.created_at.year,
        version=settings.VERSION,
        address=campaign.project.slug,
        licence=campaign.dataset.licence,
        files=kept,
        languages=spoken,
        panels=_panels(campaign),
        rubric=rubric_from_dict(campaign.rubric_version.document),
        design=rated.design(campaign),
        judges=[_judge(run) for run in study.runs],
        figures=figures,
        limitations=[*card_limits(figures, spoken), *study_limits(study.campaign, study.runs)],
    )


def _figures(campaign: Campaign, snapshot: Snapshot) -> list[Figure]:
    """The panels' agreement, by criterion; over all languages only if there are several."""
    criteria = campaign.rubric_version.criteria.order_by("position").values_list("key", flat=True)
    places = {key: place for place, key in enumerate(criteria)}
    found = [Figure.of(row) for row in snapshot.content["estimates"] if row["statistic"] in SHOWN]
    return sorted(
        (figure for figure in found if figure.judge is None),
        key=lambda figure: (places[figure.criterion], figure.language or "", SHOWN.index(figure.statistic)),
    )


def _languages(campaign: Campaign) -> list[Language]:
    found = Item.objects.of(campaign.dataset).order_by().values_list("language").order_by("language")
    counted = found.annotate(items=Count("pk"), generators=Count("generator", distinct=True))
    return [Language(tag, languages.english_name(tag), items, generators) for tag, items, generators in counted]


def _panels(campaign: Campaign) -> list[Described]:
    return [replace(panel, panel=panel.panel or IMPORTED) for panel in described_panels(campaign)]


def _judge(run: JudgeRun) -> dict[str, Any]:
    variant = judged.variant_name(run.judge)
    parameters = {name: run.judge.parameters.get(name) for name in ("temperature", "seed")}
    return {"judge": run.judge.name, "model": run.judge.model, "prompt_variant": variant, **parameters}


def study_limits(campaign: Campaign, runs: Sequence[JudgeRun]) -> Iterator[str]:
    """The limits that a reader must know before using the campaign's ratings and verdicts."""
    yield PSEUDONYMS
    yield from dataset_limits(campaign.dataset)
    if any(run.judge.simulated for run in runs):
        yield "At least one judge is simulated: its verdicts are invented and only for tests."
    if not_blind(campaign):
        yield "Some ratings are by people who could see verdicts and other ratings: `blind` is false in their rows."
    if Annotation.objects.filter(campaign=campaign, annotator__identified=False).exists():
        yield "Some raters are positions in a file, not persons: the same name may stand for different people."


def dataset_limits(dataset: Dataset) -> Iterator[str]:
    """The limits that a reader must know before using the items of a dataset."""
    if dataset.simulated:
        yield "The items were generated for this study; they are not real conversations."
    if curation := Curation.objects.filter(dataset=dataset).first():
        with translation.override("en"):
            yield f"The items were chosen out of a larger dataset, seed {curation.seed}."
            yield from limits_of(curation.rule, curation.certificate)


# --- the data card: the README of a published study ------------------------------------------------------------------
KEYWORDS = ("human-evaluation", "llm-as-a-judge", "panelbench")
NOTHING = MemberContent(0, sha256().hexdigest())
SPLIT = "train"  # the name that the Hub expects of data that is not split
SIZES = ((10**3, "1K"), (10**4, "10K"), (10**5, "100K"), (10**6, "1M"), (10**7, "10M"), (10**8, "100M"), (10**9, "1B"))
_KNOWN_LICENCE = re.compile(
    r"(apache-2\.0|mit|bsd(-[23]-clause)?|cc0-1\.0|cc-by(-nc)?(-sa|-nd)?-(2\.0|2\.5|3\.0|4\.0)|"
    r"odbl|odc-by|pddl|cdla-(sharing|permissive)-[12]\.0|gpl-3\.0|lgpl-3\.0|unknown)"
)
_LANGUAGE = re.compile(r"[a-z]{2,3}")
_ADDRESS = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class File:
    """One table of the study: its configuration's name, its path, what a row is, and how many there are."""

    name: str
    path: str
    about: str
    rows: int
    content: MemberContent = NOTHING
    columns: Sequence[Column] = ()

    def described(self) -> DescribedFile:
        """The same for `croissant.json`."""
        about = f"A row is {self.about}; {self.rows:,} rows"
        return DescribedFile(name=self.name, path=self.path, about=about, content=self.content, columns=self.columns)


@dataclass(frozen=True, slots=True)
class Language:
    """The items in one language."""

    tag: str
    name: str
    items: int
    generators: int


@dataclass(slots=True)
class Described:
    """Who rated: one panel, and what those of it who consented let a study say."""

    panel: str
    language: str
    annotators: int = 0
    items: int = 0
    annotations: int = 0
    consenting: int = 0
    grew_up_with: Counter[str] = field(default_factory=Counter)
    education: Counter[str] = field(default_factory=Counter)
    experience: Counter[str] = field(default_factory=Counter)
    dialect: Counter[str] = field(default_factory=Counter)
    age_band: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Everything that the README says."""

    title: str
    summary: str
    year: int
    version: str
    address: str
    licence: str
    files: Sequence[File]
    languages: Sequence[Language]
    panels: Sequence[Described]
    rubric: RubricDocument
    design: Mapping[str, Any]
    judges: Sequence[Mapping[str, Any]]
    figures: Sequence[Figure]
    limitations: Sequence[str]

    def as_markdown(self) -> str:
        """The file, metadata first."""
        head = yaml.safe_dump(self.metadata(), allow_unicode=True, sort_keys=False, width=1000)
        return f"---\n{head}---\n\n" + "\n".join(self._body()) + "\n"

    def metadata(self) -> dict[str, Any]:
        """The metadata that the Hub reads."""
        bases = {language.tag.partition("-")[0].lower() for language in self.languages}
        known = sorted(base for base in bases if _LANGUAGE.fullmatch(base) and base != "und")
        makers = [*(["other"] if self.panels else []), *(["machine-generated"] if self.judges else [])]
        return {
            "pretty_name": self.title,
            "language": known,
            "language_bcp47": [language.tag for language in self.languages],
            **licence(self.licence),
            "multilinguality": ["multilingual" if len(self.languages) > 1 else "monolingual"],
            "size_categories": [size_in_words(max((file.rows for file in self.files), default=0))],
            "task_categories": ["text-classification"],
            "annotations_creators": makers or ["no-annotation"],
            "tags": list(KEYWORDS),
            "configs": [
                {
                    "config_name": each.name,
                    "data_files": [{"split": SPLIT, "path": each.path}],
                    **({"default": True} if number == 0 else {}),
                }
                for number, each in enumerate(self.files)
            ],
        }

    def as_croissant(self, *, campaign: Campaign, others: Sequence[DescribedFile]) -> CroissantDataset:
        """The same for machines, `croissant.json`, with what is known of how people and judges rated."""
        source, figures = self.rubric.source_language, [figure for figure in self.figures if figure.number]
        asked = ((each.key, _in(each.question or each.definition, source)) for each in self.rubric.criteria)
        return CroissantDataset(
            name=self.title,
            description=self.summary,
            creator=campaign.project.name,
            licence=self.licence,
            version=campaign.dataset.version,
            published=campaign.created_at.date(),
            languages=[language.tag for language in self.languages],
            cite_as="\n".join(list(self._citation())[1:-1]),
            keywords=KEYWORDS,
            files=[*(file.described() for file in self.files), *others],
            responsible={
                "dataCollection": "\n".join(self._collection()),
                "dataAnnotationProtocol": [f"{key}: {question}" if question else key for key, question in asked],
                "dataAnnotationPlatform": [f"Panelbench {self.version}"],
                "dataAnnotationAnalysis": [
                    f"{figure.criterion}, {figure.language or 'all'}: {figure.statistic.replace('_', ' ')} "
                    f"{figure.number} {figure.interval or figure.why}, {figure.basis}"
                    for figure in figures
                ],
                "annotationsPerItem": "; ".join(
                    f"{duty['panel']['name']}: {duty['annotators_per_item']}" for duty in self.design["duties"]
                ),
                "annotatorDemographics": [statement(panel) for panel in self.panels],
                "machineAnnotationTools": [
                    ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in judge.items() if value)
                    for judge in self.judges
                ],
                "personalSensitiveInformation": [PSEUDONYMS],
                "dataLimitations": [limit for limit in self.limitations if limit != PSEUDONYMS],
            },
        )

    def _body(self) -> Iterator[str]:
        parts = (
            (f"# {_line(self.title)}", [self.summary]),
            ("## Files", self._files()),
            ("## Languages", self._languages()),
            ("## Who rated", self._panels()),
            ("## Rubric", self._rubric()),
            ("## How it was collected", self._collection()),
            ("## Agreement", self._agreement()),
            ("## Licence", [_line(self.licence) or "No licence was given: ask before you use the texts."]),
            ("## Citation", self._citation()),
            ("## Limitations", [f"- {limitation}" for limitation in self.limitations]),
        )
        for title, lines in parts:
            yield from (title, "", *lines, "")

    def _files(self) -> Iterator[str]:
        rows = ((f"`{file.name}`", f"`{file.path}`", file.about, f"{file.rows:,}") for file in self.files)
        yield from markdown_table(("Configuration", "File", "A row is", "Rows"), rows)
        yield from ("", "```python", "from datasets import load_dataset", "")
        yield from (f'{file.name} = load_dataset("PATH", "{file.name}", split="{SPLIT}")' for file in self.files)
        yield from (
            "```",
            "",
            f"`{CROISSANT_NAME}` describes the files and their columns for machines (Croissant 1.0).",
        )

    def _languages(self) -> list[str]:
        rows = ((language.tag, language.name, language.items, language.generators) for language in self.languages)
        return markdown_table(("Language", "Name", "Items", "Generators"), rows)

    def _panels(self) -> Iterator[str]:
        if not self.panels:
            yield "Nobody has rated these items yet."
            return
        rows = ((each.panel, each.language, each.annotators, each.items, each.annotations) for each in self.panels)
        yield from markdown_table(("Panel", "Language", "Annotators", "Items rated", "Annotations"), rows)
        for each in self.panels:
            yield from ("", statement(each))

    def _rubric(self) -> Iterator[str]:
        yield f"`rubric.yaml` contains the full rubric: {len(self.rubric.criteria)} criteria."
        source = self.rubric.source_language
        if counts := translation_counts(self.rubric):
            yield from (
                "",
                f"Its texts were written in {languages.english_name(source)}; criteria by their translation:",
                "",
            )
            rows = [(languages.english_name(one.language), *map(str, one[1:])) for one in counts]
            yield from markdown_table(("Language", "Reviewed", "Draft", "Stale", "Without texts"), rows)
        for criterion in self.rubric.criteria:
            yield from ("", f"### {_line(_in(criterion.name, source))} (`{criterion.key}`)", "")
            if asked := _in(criterion.question or criterion.definition, source):
                yield from (_line(asked), "")
            yield from _scale(criterion, source)

    def _collection(self) -> Iterator[str]:
        for duty in self.design["duties"]:
            yield (
                f"- Panel “{_line(duty['panel']['name'])}” ({duty['panel']['language']}): "
                f"{duty['annotators_per_item']} annotators per item on {', '.join(duty['criteria'])}; "
                + "; ".join(_drawn(each) for each in duty["selections"])
                + "."
            )
        if not self.design["duties"]:
            yield "- The ratings were collected elsewhere and imported."
        for judge in self.judges:
            texts = [f"{name.replace('_', ' ')} {value}" for name, value in judge.items() if name != "judge" and value]
            yield f"- Judge “{_line(str(judge['judge']))}”: {_line(', '.join(texts)) or 'imported'}."

    def _agreement(self) -> Iterator[str]:
        yield "Only for the annotators, by criterion and language, with a 95% interval or the reason for none."
        yield ""
        rows = (
            (
                figure.criterion,
                figure.language or "all",
                figure.statistic.replace("_", " "),
                figure.number or "undefined",
                figure.interval or figure.why,
                figure.basis,
            )
            for figure in self.figures
        )
        yield from markdown_table(("Criterion", "Language", "Statistic", "Value", "Interval", "On"), rows)

    def _citation(self) -> Iterator[str]:
        title = re.sub(r"[{}\\]", "", self.title)
        key = re.sub(r"[^a-z0-9]+", "", self.address.lower()) or "study"
        yield from ("```bibtex", f"@misc{{{key}{self.year},", f"  title = {{{title}}},", f"  year = {{{self.year}}},")
        yield from (f"  note = {{Collected with Panelbench {self.version}}}", "}", "```")


# --- parts ----------------------------------------------------------------------------------------------------------
def licence(text: str) -> dict[str, str]:
    """A licence as the Hub knows it, or ``other`` with its name and address."""
    name = re.sub(r"[\s_]+", "-", text.strip().lower())
    if not name:
        return {"license": "unknown"}
    if _KNOWN_LICENCE.fullmatch(name):
        return {"license": name}
    address = _ADDRESS.search(text)
    link = {"license_link": address[0]} if address else {}
    return {"license": "other", "license_name": re.sub(r"[^a-z0-9.]+", "-", name).strip("-") or "other", **link}


def size_in_words(rows: int) -> str:
    """The Hub's word for so many rows."""
    if rows < SIZES[0][0]:
        return f"n<{SIZES[0][1]}"
    below, above = next((pair for pair in pairwise(SIZES) if rows < pair[1][0]), SIZES[-2:])
    return f"{below[1]}<n<{above[1]}"


def statement(panel: Described) -> str:
    """What those who consented let the study say of a panel; of the others nothing but their number."""
    of = f"Of the {panel.annotators} annotators of “{_line(panel.panel)}”"
    if panel.consenting < FEWEST_IN_GROUP:
        return f"{of}, fewer than {FEWEST_IN_GROUP} agreed to be described, so nothing is said of them."
    parts = (
        ("First languages", panel.grew_up_with),
        ("Dialects", panel.dialect),
        ("Ages", panel.age_band),
        ("Education", panel.education),
        ("Experience", panel.experience),
    )
    words = [(name, groups_in_words(counts, panel.consenting, "other or not stated")) for name, counts in parts]
    texts = [f" {name}: {_line(text)}." for name, text in words if text]
    about = f"about {rounded_count(panel.consenting)} agreed to be described (counts to the nearest five)"
    return f"{of}, {about}.{''.join(texts)}"


def card_limits(figures: Iterable[Figure], languages: Sequence[Language]) -> Iterator[str]:
    """The limits of the figures and items that their own values show."""
    small = sorted({figure.language or "all" for figure in figures if figure.is_small and figure.language})
    if small:
        named = ", ".join(small)
        few = f"Fewer than {SMALL} items, or clusters of items, with more than one rater in: {named}."
        yield f"{few} Treat those figures as preliminary."
    if len(languages) > 1:
        yield "Scores of different languages come from different panels: compare them with care."


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """A table in Markdown, whatever the cells hold."""
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(_line(str(cell)) for cell in line)} |" for line in lines]


def _line(text: str) -> str:
    """Text from outside in one line, in which nothing is markup."""
    plain_text = " ".join(text.split()).replace("\\", "\\\\")
    return re.sub(r"([|*\[\]#])", r"\\\1", plain_text).replace("<", "&lt;")


def _in(words: TextByLanguage, language: str) -> str:
    return words.get(language) or next(iter(words.values()), "")


def _scale(criterion: CriterionDocument, language: str) -> Iterator[str]:
    scale = criterion.scale
    may_not_apply = "; N/A where it does not apply" if criterion.not_applicable else ""
    if not scale.points:
        ends = f"{plain_number(scale.minimum)} to {plain_number(scale.maximum)}"
        yield f"{scale.level.capitalize()}, {ends}{may_not_apply}."
        return
    yield f"{scale.level.capitalize()}, {len(scale.points)} points{may_not_apply}."
    yield ""
    for point in scale.points:
        anchor = {tag: each.text for tag, each in criterion.anchors.get(point.value, {}).items()}
        text = " — ".join(part for part in (_in(point.label, language), _in(anchor, language)) if part)
        yield f"- {plain_number(point.value)}: {_line(text)}" if text else f"- {plain_number(point.value)}"


def _drawn(selection: Mapping[str, Any]) -> str:
    probability = selection["probability"]
    how = "all of them" if probability == 1 else f"each with probability {probability:g}"
    return f"{selection['items']:,} items in wave {selection['wave']}, {how}"


def described_panels(campaign: Campaign) -> list[Described]:
    """Every panel with ratings, by name; imported ratings have none. Of profiles only those with consent, as counts."""
    panel = "assignment__duty__panel"
    current = Annotation.objects.filter(campaign=campaign, superseded_at=None)
    counted = current.order_by().values_list(f"{panel}__name", f"{panel}__language", "annotator", "annotator__user")
    rows = list(counted.annotate(annotations=Count("pk")))
    profiles = Profile.objects.in_bulk([user for *_panel, user, _count in rows if user], field_name="user_id")
    fields: dict[tuple[str, str], Described] = {}
    for name, language, _annotator, user, so_many in rows:
        key = (name or "", language or "")
        _count(fields.setdefault(key, Described(*key)), so_many, user, profiles)
    rated = current.order_by().values_list(f"{panel}__name", f"{panel}__language")
    for name, language, items in rated.annotate(items=Count("item", distinct=True)):
        fields[name or "", language or ""].items = items
    return [fields[key] for key in sorted(fields)]


def _count(panel: Described, annotations: int, user: int | None, profiles: Mapping[int, Profile]) -> None:
    panel.annotators += 1
    panel.annotations += annotations
    profile = profiles.get(user) if user else None
    if profile is None or profile.consented_at is None:
        return
    panel.consenting += 1
    panel.grew_up_with += Counter(profile.grew_up_with)
    panel.education += Counter(filter(None, [profile.education]))
    panel.experience += Counter(filter(None, [profile.experience]))
    panel.dialect += Counter(filter(None, [profile.dialect]))
    panel.age_band += Counter(filter(None, [profile.age_band]))


def on_panel(panel: Described, language_name: Callable[[str], str]) -> str:
    """What those who consented let the study say of a panel; of the others nothing but their number."""
    if panel.consenting < FEWEST_IN_GROUP:
        return _("Fewer than five people on this panel have agreed to be described, so nothing is said of them.")
    facts = (
        (_("First languages"), Counter({language_name(tag): count for tag, count in panel.grew_up_with.items()})),
        (_("Dialects"), panel.dialect),
        (_("Ages"), panel.age_band),
        (_("Education"), panel.education),
        (_("Experience with language work"), panel.experience),
    )
    of = _("About %(consenting)d of %(annotators)d agreed to be described; counts are to the nearest five.")
    counted = of % {"consenting": rounded_count(panel.consenting), "annotators": panel.annotators}
    words = [(name, groups_in_words(counts, panel.consenting, _("other or not stated"))) for name, counts in facts]
    return " ".join([counted, *(f"{name}: {text}." for name, text in words if text)])


def published_groups(counts: Mapping[str, int], people: int) -> tuple[list[tuple[str, int]], int]:
    """The groups of five people or more, largest first, and how many of `people` are in none of them.

    Both rounded to fives. Spellings that differ in case or spaces are one group. One person may be in several groups,
    as with languages. The rest is 0 or five at least: else the smallest group joins it.
    """
    spelled: dict[str, Counter[str]] = {}
    for value, count in counts.items():
        words = " ".join(value.split())
        spelled.setdefault(words.casefold(), Counter())[words] += count
    sizes = {spellings.most_common(1)[0][0]: sum(spellings.values()) for spellings in spelled.values()}
    large = sorted((name for name in sizes if sizes[name] >= FEWEST_IN_GROUP), key=lambda name: (-sizes[name], name))
    rest = max(people - sum(sizes[name] for name in large), sum(sizes.values()) - sum(sizes[name] for name in large))
    while 0 < rest < FEWEST_IN_GROUP and large:
        rest += sizes[large.pop()]
    return [(name, rounded_count(sizes[name])) for name in large], rounded_count(rest) if large else 0


def rounded_count(count: int) -> int:
    """To the nearest five, at least five if there is anybody."""
    return max(ROUNDED_TO, round(count / ROUNDED_TO) * ROUNDED_TO) if count else 0


def groups_in_words(counts: Mapping[str, int], people: int, rest_name: str) -> str:
    """``Estonian (10), Russian (5), other or not stated (5)``; "" if no group is large enough."""
    groups, rest = published_groups(counts, people)
    shown = [*groups, (rest_name, rest)] if rest else groups
    return ", ".join(f"{name} ({count})" for name, count in shown) if groups else ""
