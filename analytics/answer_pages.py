"""Answers to questions: stored or computed by a command, as files, and as the matrices that pages and reports show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from accounts import languages
from accounts.models import Job, User
from accounts.refusals import Refused
from analytics.answers import snapshots
from analytics.figure_words import translated_message
from analytics.figures import SHARE_LEFT_OUT, SMALL, Figure, rule_of_items
from analytics.grids import in_order, plain_value, shared_counts
from analytics.item_choices import ASKED_RULES, ATTRIBUTE, COMPARED, CUT, NOT_OF_ONE_ITEM
from analytics.models import Computation, Snapshot
from analytics.numbers import criterion_groups
from analytics.questions.question import NumbersQuestion
from analytics.questions.question_names import EXCLUSION_NAMES, REFERENCE_NAMES, statistic_name
from analytics.questions.reference_rules import NEEDS_ORDER, usual_rule
from analytics.ratings.item_attributes import attribute_choices
from analytics.score_views import CLASS_NAMES
from analytics.stats.declared.register import STATISTICS
from annotation.models import Campaign, Item
from annotation.writers import tables
from judging.versions.seen_labels import record_seen_labels

MOST_MATRICES, MOST_WITH_COUNTS = 24, 8
KEEPING_RULES = ("mode_split", "median", "mean", "each")
"""Rules of reference that a page offers where the mode leaves out much."""
_ABOUT = (
    "criterion",
    "judge",
    "panel",
    "language",
    "languages",
    "generator",
    "raters",
    "annotator",
    "agreement_class",
    "item",
)


# --- cells as the template reads them --------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class ShownCell:
    """One cell of a matrix; without a figure nothing was rated there."""

    row: str
    column: str
    figure: Figure | None = None
    items: str = ""

    @property
    def few(self) -> str:
        """Why its value is muted: it rests on few items or few clusters."""
        figure = self.figure
        if figure is None or not figure.is_defined:
            return ""
        clusters = figure.n_clusters
        if clusters is not None and clusters < min(figure.n_items, SMALL):
            return ngettext("only %d cluster", "only %d clusters", clusters) % clusters
        return _("fewer than %d items") % SMALL if figure.is_small else ""

    @property
    def exact(self) -> str:
        """Its value with all digits, for programs that read the page."""
        return "" if self.figure is None or self.figure.value is None else repr(self.figure.value)

    @property
    def counts(self) -> str:
        """What it rests on: items, raters, ratings, clusters."""
        return self.figure.basis if self.figure else ""


@dataclass(frozen=True)
class Matrix:
    """The cells of one statistic, by row and column; `about`: what else all of them are about."""

    statistic: str
    about: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[ShownCell, ...]], ...]

    @property
    def cells(self) -> list[ShownCell]:
        return [cell for _name, row in self.rows for cell in row if cell.figure]

    @cached_property
    def shared(self) -> str:
        """The counts that all of several cells have, which are said once; nothing where they differ."""
        cells = [cell for cell in self.cells if cell.figure and cell.figure.is_defined]
        few = {cell.few for cell in cells}
        counts = shared_counts([cell.counts for cell in cells]) if len(cells) > MOST_WITH_COUNTS else ""
        return "; ".join(filter(None, (counts, *few))) if counts and len(few) == 1 else ""


class AnswerPage:
    """An answer as the page shows it: its matrices with the names of languages and criteria."""

    def __init__(self, campaign: Campaign, snapshot: Snapshot, question: NumbersQuestion) -> None:
        self.campaign, self.content, self.question = campaign, snapshot.content, question
        self.criteria = criterion_names(campaign)
        self.groups = criterion_groups(campaign.rubric_version.criteria.all())
        attributes = attribute_choices(campaign.dataset)
        self.keys = dict(zip(attributes.names, attributes.keys, strict=True))

    @cached_property
    def matrices(self) -> list[Matrix]:
        """A matrix for each statistic, and for each value of what is neither row nor column."""
        layers: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
        for row in self.content["estimates"]:
            variant = "" if "variant" in self.question.dimensions else row["variant"] or ""
            layers.setdefault((row["asked"], variant, *self._about(row)), []).append(row)
        return [self._matrix(key, rows) for key, rows in layers.items()]

    @property
    def notes(self) -> list[str]:
        """The notes on the ratings, in the reader's language."""
        return [translated_message(note) for note in self.content["notes"]]

    @property
    def shown(self) -> list[Matrix]:
        return self.matrices[:MOST_MATRICES]

    @property
    def more(self) -> int:
        return max(0, len(self.matrices) - MOST_MATRICES)

    @property
    def excluded(self) -> list[tuple[str, int]]:
        """Each exclusion that is on, and what it leaves out; and what would be left out if it were on."""
        found = self.content["left_out"]
        blind = (
            _("left out: by people who could see verdicts")
            if self.question.blind_only
            else _("counted although their raters could see verdicts")
        )
        left_out = [(blind, found["not_blind"])] if self.question.blind_only or found["not_blind"] else []
        if self.question.min_seconds:
            left_out.append(
                (_("left out: item rated in less than %g s") % self.question.min_seconds, found["too_fast"])
            )
        if "version" in found and "version" not in self.question.exclude:
            left_out.append((_("counted although given under an earlier version of the rubric"), found["version"]))
        return left_out + [
            (_("left out: %s") % name, found[key])
            for key, name in EXCLUSION_NAMES.items()
            if key in found and key in self.question.exclude
        ]

    @property
    def ties_sentence(self) -> str:
        """What a tied mode leaves out of the figures that need a reference label."""
        found = self.content.get("ties") or {}
        if not found.get("tied"):
            return ""
        sentence = ngettext(
            "The mode leaves out %(tied)s of %(pairs)s pair of item and criterion: its annotators are tied.",
            "The mode leaves out %(tied)s of %(pairs)s pairs of item and criterion: their annotators are tied.",
            found["pairs"],
        )
        return sentence % {name: f"{number:,}" for name, number in found.items()}

    @property
    def adjudicated_sentence(self) -> str:
        """How many pairs of item and criterion have an adjudication, where the rule of reference reads them."""
        found = self.content.get("adjudicated") or {}
        if not found:
            return ""
        sentence = _("Adjudicated: %(adjudicated)s of %(pairs)s pairs of item and criterion.")
        if self.question.reference == "adjudicated":
            sentence += " " + _("The other %(others)s are left out.")
        else:
            sentence += " " + _("The other %(others)s take the mode, which leaves out %(tied)s tied ones.")
        if found["not_applicable"]:
            sentence += " " + _("%(not_applicable)s were found not applicable and have no reference.")
        if found["stale"]:
            sentence += " " + _("%(stale)s were decided before a rating changed; they count.")
        counts = found | {"others": found["pairs"] - found["adjudicated"]}
        return sentence % {name: f"{number:,}" for name, number in counts.items()}

    @property
    def is_much_tied(self) -> bool:
        """Whether that is a tenth or more: other rules are then offered (METHODS 3)."""
        found = self.content.get("ties") or {"tied": 0, "pairs": 0}
        return bool(found["tied"]) and found["tied"] >= SHARE_LEFT_OUT * found["pairs"]

    @property
    def other_rules(self) -> list[tuple[str, str]]:
        """Rules of reference that leave out no tie, with the query string of the same question under each.

        Rules that need an order are left out if all criteria asked about are nominal: the mode is used for them.
        """
        asked_about = {value for column, value in self.question.where if column == "criterion"}
        criteria = self.campaign.rubric_version.criteria.all()
        levels = {self.question.level or each.level for each in criteria if each.key in (asked_about or {each.key})}
        has_order = levels != {"nominal"}
        names = [name for name in KEEPING_RULES if has_order or name not in NEEDS_ORDER]
        asked = [replace(self.question, reference=name, ties="exclude") for name in names]
        return [(str(REFERENCE_NAMES[each.reference]), each.query) for each in asked]

    def _about(self, row: Mapping[str, Any]) -> Iterator[str]:
        """What a row is about beside its row and its column."""
        for name in _ABOUT:
            if name not in self.question.dimensions and (value := plain_value(row.get(name))):
                yield self.name(name, value) if name != "judge" else value

    def _matrix(self, key: tuple[str, ...], rows: Sequence[Mapping[str, Any]]) -> Matrix:
        statistic, variant, *about = key
        names = {name: in_order(self.values(name), rows, name) for name in self.question.dimensions}
        down, across = names[self.question.rows], names.get(self.question.columns, [""])
        found = {
            (plain_value(row.get(self.question.rows)), plain_value(row.get(self.question.columns))): row for row in rows
        }
        title = statistic_name(statistic)
        shown = tuple(
            (self.name(self.question.rows, value), tuple(self._cell(value, column, found) for column in across))
            for value in down
        )
        columns = tuple(self.name(self.question.columns, column) for column in across)
        variant = translated_message(variant)
        return Matrix(f"{title} ({variant})" if variant else title, " · ".join(about), columns, shown)

    def _cell(self, down: str, across: str, found: Mapping[tuple[str, str], Mapping[str, Any]]) -> ShownCell:
        names = self.name(self.question.rows, down), self.name(self.question.columns, across)
        row = found.get((down, across))
        return ShownCell(*names, Figure.of(row), self.items_address(row)) if row else ShownCell(*names)

    def items_address(self, row: Mapping[str, Any]) -> str:
        """The address of the items behind a cell, those first on which raters, or the judge and the panel, differ most.

        The list shows one criterion, the first if the cell has several. Its address says what the list can't leave out.
        """
        question, wanted = self.question, self._wanted(row)
        criteria = [key for key in wanted.get("criterion", ()) if key in self.criteria] or list(self.criteria)
        single = [name for name in ("language", "generator", "panel") if len(wanted.get(name, ())) == 1]
        pairs = [("criterion", criteria[0]), *((name, wanted[name][0]) for name in single)]
        pairs += [("where", f"{name}={value}") for name in CUT for value in wanted.get(name, ()) if name not in single]
        pairs += [
            (f"{ATTRIBUTE}{self.keys[name]}", value)
            for name, values in wanted.items()
            if name in self.keys
            for value in values
        ]
        judges = {judge["name"] for judge in self.content["judges"]}
        if row.get("judge") in judges and not question.runs:
            pairs += [("judge", row["judge"]), ("sort", "judge_error")]
        pairs += [("rater", name) for name in self._raters(row)]
        pairs += [("panel", name) for name in question.panels if "panel" not in wanted]
        if (name := row.get("annotator")) and name not in judges and len(question.raters) != 1:
            pairs += [("without" if str(row.get("asked")).startswith("left_out.") else "by", name)]
        if row.get("agreement_class"):
            pairs += [("agreement", row["agreement_class"])]
        elif (declared := STATISTICS.get(str(row.get("asked")))) and declared.items == "two scores":
            pairs += [("scores", "2")]
        pairs += self._reference(row)
        pairs += [("blind", "only")] if question.blind_only else []
        pairs += [("min_seconds", tables.number(question.min_seconds))] if question.min_seconds else []
        pairs += [("exclude", name) for name in question.exclude]
        return f"{reverse('numbers_items', args=[self.campaign.project.slug, self.campaign.pk])}?{urlencode(pairs)}"

    def _reference(self, row: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The rule that settles the panel's score, where a row is compared with it; and that both scores are there."""
        rule = rule_of_items(row.get("reference") or "", self.question.rule[1])
        if rule not in ASKED_RULES:
            return []
        compared = [("compared", COMPARED)] if row.get("judge") and rule not in NOT_OF_ONE_ITEM else []
        return [("reference", rule), *compared] if rule != usual_rule("ordinal") else compared

    def _wanted(self, row: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        """What a row's items have in common, by column: from the question's filters, and from the row's own cell."""
        wanted: dict[str, tuple[str, ...]] = {}
        for name, value in self.question.where:
            wanted[name] = (*wanted.get(name, ()), value)
        for name in ("criterion", "panel", *CUT, *self.keys):
            if value := plain_value(row.get(name)):
                wanted[name] = (value,)
        if languages_compared := plain_value(row.get("languages")):
            wanted["language"] = tuple(languages_compared.split(" ~ "))
        return wanted

    def _raters(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """The annotators whose ratings a row is about: a pair of them, or those of the question."""
        pair = tuple(map(str, row.get("raters") or ()))
        return pair if len(pair) == 2 and str(row.get("asked")).startswith("pairs.") else self.question.raters

    def values(self, name: str) -> list[str]:
        """The known order of a column's values."""
        if name == "language":
            tags = {row["language"] for row in self.content["estimates"] if row.get("language")}
            return languages.in_name_order(tags, get_language())
        return list(self.criteria) if name == "criterion" else []

    def name(self, column: str, value: str) -> str:
        """A value as a reader knows it."""
        if column == "criterion":
            return self.criteria.get(value, value) or _("all criteria")
        if column in ("language", "languages") and value:
            return " ~ ".join(languages.name_for(tag, get_language()) for tag in value.split(" ~ "))
        if column == "agreement_class" and value in CLASS_NAMES:
            return str(CLASS_NAMES[value])
        return value or _("all")


def criterion_names(campaign: Campaign) -> dict[str, str]:
    """By key, each criterion's name in the reader's language, in the rubric's order."""
    spoken = get_language() or "en"
    criteria = campaign.rubric_version.criteria.all()
    return {each.key: str(each.says("name", spoken) or each.key) for each in criteria}


# --- the stored answer, one that a command computes, and both as files -----------------------------------------------
MADE = ("created_at", "revision", "inputs_digest", "code_version", "seed", "seconds")


def current_answer(campaign: Campaign, question: NumbersQuestion) -> tuple[Snapshot | None, bool]:
    """The newest answer and whether a worker has to compute another one.

    A web process computes none, however small: it would load pandas, and many cells or resamples take long.
    """
    return snapshots.current_snapshot(campaign=campaign, settings=question)


def answer_now(campaign: Campaign, question: NumbersQuestion) -> Snapshot:
    """The answer as things stand, stored or computed now, for commands; refused where the ratings can't be used.

    Where the database stays busy, the answer is given without being stored.
    """
    from analytics.stats.core.tables import TableError

    try:
        return snapshots.snapshot(campaign=campaign, settings=question, must_store=False)
    except TableError as error:
        raise Refused(str(error), code="unusable_ratings") from None


def open_job(campaign: Campaign, question: NumbersQuestion) -> Job | None:
    """The job that is computing this answer, with how far it is."""
    open_ones = Computation.objects.filter(campaign=campaign, job__state__in=Job.OPEN).select_related("job")
    computation = open_ones.filter(settings_digest=question.digest).first()
    return computation.job if computation else None


def record_labels_shown(snapshot: Snapshot, campaign: Campaign, actor: User) -> None:
    """Record whose labels an answer shows item by item: the soft labels of items on which annotators differ most."""
    names = {row["item"] for row in snapshot.content["estimates"] if row.get("item")}
    if names:
        shown = Item.objects.of(campaign.dataset).filter(external_id__in=names).values_list("pk", flat=True)
        record_seen_labels(campaign=campaign, items=list(shown), actor=actor)


def answer_document(snapshot: Snapshot) -> dict[str, Any]:
    """An answer as JSON: the question, what it was computed from, and `estimates` as in `panelbench stats`."""
    return {**{name: getattr(snapshot, name) for name in MADE}, **snapshot.content}


def answer_csv(snapshot: Snapshot) -> Iterator[bytes]:
    """The estimates as CSV, with the columns of `panelbench stats --format csv`."""
    from analytics.stats.cli.files import rendered_rows

    yield rendered_rows(snapshot.content["estimates"], "csv").encode()
