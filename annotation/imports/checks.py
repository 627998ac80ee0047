"""Checks: parsed items and ratings are compared with what the database has stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from django.db.models import Count

from accounts.models import Project
from analytics.stats.core.identifiers import normal_identifier, spellings_of
from annotation import blinding
from annotation.blinding import Finding
from annotation.imports.criterion_names import names_known
from annotation.imports.parsing import ParsedFiles
from annotation.imports.rating_rows import RatingsReport
from annotation.imports.targets import Target
from annotation.models import Annotator, Dataset, Item
from annotation.readers import (
    ItemRow,
    Problem,
    Problems,
    Report,
    Words,
    columns_called_after_raters,
    content_digest,
    excerpt,
    most_frequent,
    note_on_rater_addresses,
    shortened_list,
)

NAMES_SHOWN = "generator_name"  # the code of a problem that a person must decide about


def compare_items(
    parsed: ParsedFiles, extends: Dataset | None = None, *, names: str = ""
) -> tuple[Report, list[Finding]]:
    """The report of some items. The reasons why they can't be stored, or can't be added to the dataset that they
    extend, become problems.

    ``names`` says whether generators' names in visible texts are masked or kept; otherwise they are a problem. The
    names that are left are returned too.
    """
    report = parsed.report
    shown_names = _settle_names(parsed, extends, names)
    unfit = fit_items(parsed.rows)
    append_problems(parsed.problems, unfit)
    report.refused = parsed.problems.refused
    report.notes += _name_notes(shown_names, names)
    if extends:
        append_problems(parsed.problems, compare_with_dataset(extends, parsed.rows, report))
    report.stored -= unfit.refused
    return report, [] if names == blinding.MASK else shown_names


def _settle_names(parsed: ParsedFiles, extends: Dataset | None, names: str) -> list[Finding]:
    """The generators' names that are left in the items after masking; a problem unless they are kept."""
    layout = extends.layout if extends else None
    before = Item.objects.of(extends).order_by().values_list("generator", flat=True).distinct() if extends else ()
    shown = blinding.find_generator_names(parsed.rows, layout, generators=[*parsed.names, *before])
    if names == blinding.MASK:
        parsed.rows.change(blinding.masker(shown))
    elif names != blinding.KEEP:
        expected = Words("text that does not show who wrote it: mask the names, or decide to keep them")
        for finding in shown:
            text = Words(
                "the name of the generator %(name)s (items: %(items)s), such as %(examples)s",
                name=excerpt(finding.generator),
                items=f"{finding.items:,}",
                examples=excerpt(finding.example),
            )
            parsed.problems.add(Problem(finding.file, finding.line, finding.place, text, expected, NAMES_SHOWN))
    return shown


def _name_notes(shown: Sequence[Finding], names: str) -> list[str]:
    if not shown or names not in blinding.CHOICES:
        return []
    done = "masked" if names == blinding.MASK else Words("kept, and seen by annotators and judges")
    return [f"Generators' names {done}: {shortened_list([finding.words for finding in shown], len(shown))}."]


def note_people(parsed: ParsedFiles, project: Project) -> None:
    """Name in the report of items the columns of one person each that are left out, and whose; count their ratings.

    They are known by their names alone: they are left out for all rows, also if only the first have scores in them.
    """
    ignored = {column.name: column.filled for column in parsed.columns if column.target == "ignore"}
    if not parsed.columns:  # they are counted for pages only
        ignored = dict.fromkeys((name for name in parsed.mapping.ignore if "*" not in name), 0)
    found = columns_called_after_raters(ignored, names_known(project))
    people: Counter[str] = Counter()
    for one in found:
        people[one.rater] += 0 if one.is_rationale else ignored[one.column]
    if not people:
        return
    report = parsed.report
    report.embedded_ratings += people.total()
    report.found["raters"] = most_frequent(people)
    report.notes.append(
        Words(
            "Columns with the scores of one person each are not stored with the items: %(names)s. Import this file as "
            "ratings too.",
            names=shortened_list(f"{one.column} ({one.rater})" for one in found),
        )
    )


def report_ratings(parsed: ParsedFiles, target: Target | None) -> Report:
    """The report of some ratings, with notes on their raters; `add_stored` adds the counts from the database."""
    report = parsed.report
    if not parsed.mapping.positional:
        report.notes += _rater_notes(parsed.names, target)
    return report


def _rater_notes(raters: Collection[str], target: Target | None) -> list[str]:
    """Notes on raters: who seems to be called by a real name, who is new, and who is an annotator already."""
    notes = note_on_rater_addresses(raters)
    if target is None or not raters:
        return notes
    annotators = Annotator.objects.filter(project=target.dataset.project, pseudonym__in=spellings_of(raters))
    counted = annotators.annotate(taken=Count("seats")).values_list("pseudonym", "taken")
    seats = {normal_identifier(name): taken for name, taken in counted}
    if new := [rater for rater in raters if rater not in seats]:
        text = Words("an annotator is created for each name, without a panel and without an account")
        notes.append(
            Words(
                "Raters who are not known in this project: %(names)s; %(rest)s.", names=shortened_list(new), rest=text
            )
        )
    if known := [rater for rater in raters if rater in seats]:
        notes.append(
            Words(
                "Raters taken for the annotators of that name in this project: %(names)s.", names=shortened_list(known)
            )
        )
    if unseated := [rater for rater in known if not seats[rater]]:
        notes.append(Words("Of these, on no panel: %(names)s.", names=shortened_list(unseated)))
    return notes


def add_stored(report: Report, stored: RatingsReport) -> None:
    """Add the counts from comparing the rows with the database to a report."""
    report.stored, report.not_applicable = stored.stored + stored.not_applicable, stored.not_applicable
    report.collapsed += stored.collapsed
    report.missing = stored.missing
    if stored.collapsed:
        report.notes.append(
            Words("%(number)s ratings were already stored and are the same.", number=f"{stored.collapsed:,}")
        )


def append_problems(problems: Problems, more: Problems) -> None:
    """Add the problems of a second check to those of the first; a row has at most one problem."""
    problems.refused += more.refused
    problems.codes.update(more.codes)
    problems.alike.update(more.alike)
    problems.shown.extend(more.shown[: max(0, problems.limit - len(problems.shown))])


LONGEST = {"external_id": 200, "language": 35, "generator": 120, "scenario": 200}


def fit_items(items: Iterable[ItemRow]) -> Problems:
    """Problems for the values of parsed items that are longer than the database columns."""
    problems = Problems()
    for row in items:
        faults = [
            Problem(
                row.file,
                row.line,
                name,
                f"{length} characters",
                Words("at most %(number)s characters", number=longest),
                "too_long",
            )
            for name, longest in LONGEST.items()
            if (length := len(getattr(row, name) or "")) > longest
        ]
        for number, fault in enumerate(faults):
            (problems.add if number else problems.refuse)(fault)
    return problems


LOOKED_UP_AT_ONCE = 1_000


class Additions:
    """Compares rows with a dataset version: new rows pass, identical rows are counted as collapsed, and another item
    with the same id is refused.

    The version never changes, so a second comparison of the same rows has the same result.
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.new = self.collapsed = 0
        self.problems = Problems()

    def among(self, rows: Iterable[ItemRow]) -> Iterator[ItemRow]:
        """The rows with ids that the version does not have, in bounded memory."""
        source = iter(rows)
        while some := list(islice(source, LOOKED_UP_AT_ONCE)):
            known = self._known(some)
            for row in some:
                if row.external_id not in known:
                    self.new += 1
                    yield row
                else:
                    self._meet(row, *known[row.external_id])

    def _known(self, rows: list[ItemRow]) -> dict[str, tuple[str, int]]:
        """Map the id of each known item to its content digest and the name of the version that added it."""
        names = spellings_of(row.external_id for row in rows)
        items = Item.objects.of(self.dataset).filter(external_id__in=names).order_by()
        columns = items.values_list("external_id", "digest", "dataset__version")
        return {normal_identifier(name): (digest, version) for name, digest, version in columns}

    def _meet(self, row: ItemRow, digest: str, version: int) -> None:
        if digest == content_digest(row):
            self.collapsed += 1
            return
        place = f"{self.dataset.name} v{version}"
        text = Words("%(item)s, which is another item in %(place)s", item=excerpt(row.external_id), place=place)
        expected = Words("an id of its own for each item, or the very same item")
        self.problems.refuse(Problem(row.file, row.line, "id", text, expected, "duplicate_id"))


def compare_with_dataset(dataset: Dataset, items: Iterable[ItemRow], report: Report) -> Problems:
    """The problems of adding ``items`` to a version; sets in their report how many of them are new."""
    additions = Additions(dataset)
    report.stored = sum(1 for _each in additions.among(items))
    report.collapsed += additions.collapsed
    report.refused += additions.problems.refused
    if additions.collapsed:
        report.notes.append(
            Words(
                "%(number)s items are in %(dataset)s already, saying the same.",
                number=f"{additions.collapsed:,}",
                dataset=dataset,
            )
        )
    if additions.collapsed and not (report.stored or report.refused):
        expected = Words("at least one item that is not in %(dataset)s", dataset=dataset)
        additions.problems.add(Problem("", None, None, Words("no new item"), expected, "nothing_new"))
    return additions.problems
