"""The criteria that a file names, found among a rubric's: by key, by name or by question, in any language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from accounts.models import Project
from annotation.models import Criterion, RubricVersion
from annotation.readers import File, Mapping, case_folded


class Named(Protocol):
    @property
    def criterion(self) -> str: ...


class Answers(Protocol):
    """What `parse_ratings` and `parse_verdicts` give."""

    @property
    def rows(self) -> Sequence[Named]: ...


Parsed = TypeVar("Parsed", bound=Answers)


def read_matched(
    parse: Callable[[Iterable[File], Mapping], Parsed],
    files: Sequence[File],
    mapping: Mapping,
    rubric_version: RubricVersion | None,
) -> tuple[Parsed, Mapping, list[str]]:
    """The answers in ``files`` under the rubric's keys; the mapping that gave them; a sentence for each match made.

    Names are matched before the answers are put together, so that one file may name a criterion by its key and another
    by its question.
    """
    parsed = parse(files, mapping)
    if rubric_version is None:
        return parsed, mapping, []
    matches = match({row.criterion for row in parsed.rows}, list(rubric_version.criteria.all()))
    if not matches:
        return parsed, mapping, []
    mapping = applied(mapping, matches)
    notes = [f"“{name}” was taken as the criterion {key}." for name, key in matches.items()]
    return parse(files, mapping), mapping, notes


def match(names: Iterable[str], criteria: Sequence[Criterion]) -> dict[str, str]:
    """The key of each name that is not a key itself and that only one criterion goes by, upper and lower case alike."""
    keys = {criterion.key for criterion in criteria}
    called: dict[str, set[str]] = {}
    for criterion in criteria:
        for spelling in _spellings(criterion):
            called.setdefault(spelling, set()).add(criterion.key)
    found = {name: called.get(case_folded(name), set()) for name in sorted(names) if name not in keys}
    return {name: next(iter(among)) for name, among in found.items() if len(among) == 1}


def names_known(project: Project) -> set[str]:
    """Every name, case folded, by which a published rubric of the project knows a criterion."""
    published = RubricVersion.objects.published().filter(rubric__project=project)
    known = Criterion.objects.filter(rubric_version__in=published)
    return {spelling for criterion in known for spelling in _spellings(criterion)}


def applied(mapping: Mapping, matches: dict[str, str]) -> Mapping:
    """The mapping with the file's names for criteria replaced wherever they stand: in cells, columns and constants."""
    constants = dict(mapping.constants)
    if constants.get("criterion") in matches:
        constants["criterion"] = matches[constants["criterion"]]
    columns = {column: _field(field, matches) for column, field in mapping.columns.items()}
    # What a value map gives is not looked up again: its results are replaced.
    said = {found: matches.get(meant, meant) for found, meant in mapping.values.get("criterion", {}).items()}
    values = {**mapping.values, "criterion": {**matches, **said}}
    return replace(mapping, columns=columns, constants=constants, values=values)


def _field(field: str, matches: dict[str, str]) -> str:
    kind, dot, criterion = field.partition(".")
    return f"{kind}.{matches[criterion]}" if dot and criterion in matches else field


def _spellings(criterion: Criterion) -> set[str]:
    texts = [criterion.text.get(part, {}) for part in ("name", "question")]
    return {
        case_folded(criterion.key),
        *(case_folded(words) for by_language in texts for words in by_language.values()),
    }
