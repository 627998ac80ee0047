"""The names that files use for criteria and for points of scales, and the keys and values that they mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from accounts.models import Project
from annotation.models import (
    Criterion,
    RubricVersion,
)
from annotation.readers import (
    InvalidValue,
    Mapping,
    as_answer,
    as_written,
    case_folded,
)


class CriterionNames:
    """The criteria of a rubric by the names in files: by key, by name or by question, in any language.

    A name that is no key means a criterion if only this criterion has it; case is ignored. Names are matched before
    answers are compared, so that one file may use the key of a criterion and another its question. ``matches`` maps
    the names that occurred to their keys.
    """

    def __init__(self, version: RubricVersion | None) -> None:
        criteria = list(version.criteria.all()) if version else []
        self.matches: dict[str, str] = {}
        self._keys = {criterion.key for criterion in criteria}
        self._called: dict[str, set[str]] = {}
        for criterion in criteria:
            for spelling in criterion_spellings(criterion):
                self._called.setdefault(spelling, set()).add(criterion.key)

    def key_of(self, name: str) -> str:
        """The key of the criterion with this name; the name itself if no criterion, or more than one, has it."""
        among = () if name in self._keys else self._called.get(case_folded(name), ())
        if len(among) != 1:
            return name
        self.matches[name] = next(iter(among))
        return self.matches[name]


def names_known(project: Project) -> set[str]:
    """Every name of a criterion in the project's published rubrics, case folded."""
    published = RubricVersion.objects.published().filter(rubric__project=project)
    known = Criterion.objects.filter(rubric_version__in=published)
    return {spelling for criterion in known for spelling in criterion_spellings(criterion)}


def labels_known(project: Project) -> set[str]:
    """Every label of a point in the project's published rubrics, case folded."""
    published = RubricVersion.objects.published().filter(rubric__project=project).prefetch_related("criteria")
    return {label for version in published for field in label_values(version).values() for label in field}


def label_values(version: RubricVersion | None) -> dict[str, dict[str, str]]:
    """Map each field to the values of the labels of a rubric's points.

    ``score`` has the labels that mean the same value on all scales that have them; ``score.CRITERION`` has the labels
    of that criterion. A label that is a number is left out.
    """
    criteria = list(version.criteria.all()) if version else []
    own = {f"score.{criterion.key}": score_labels([criterion]) for criterion in criteria}
    return {field: labels for field, labels in {**own, "score": score_labels(criteria)}.items() if labels}


def score_labels(criteria: Iterable[Criterion]) -> dict[str, str]:
    """The value of each label, case folded, that means the same value on all scales that have it."""
    called: dict[str, set[str]] = {}
    for criterion in criteria:
        for point in criterion.points:
            for label in (point.get("label") or {}).values():
                called.setdefault(case_folded(label), set()).add(as_written(point["value"]))
    return {label: next(iter(meant)) for label, meant in called.items() if len(meant) == 1 and not _is_answer(label)}


def _is_answer(label: str) -> bool:
    """Whether a label itself reads as a score, as N/A or as a blank."""
    try:
        as_answer(label)
    except InvalidValue:
        return False
    return True


def with_criterion_keys(mapping: Mapping, matches: dict[str, str]) -> Mapping:
    """The mapping with the file's names for criteria replaced by keys: in cells, columns and constants."""
    constants = dict(mapping.constants)
    if constants.get("criterion") in matches:
        constants["criterion"] = matches[constants["criterion"]]
    columns = {column: _with_key(field, matches) for column, field in mapping.columns.items()}
    # The results of a value map are not looked up a second time, so they are replaced here.
    stated = {text: matches.get(meant, meant) for text, meant in mapping.values.get("criterion", {}).items()}
    values = {_with_key(field, matches): text for field, text in mapping.values.items()}
    values["criterion"] = {**matches, **stated}
    return replace(mapping, columns=columns, constants=constants, values=values)


def _with_key(field: str, matches: dict[str, str]) -> str:
    kind, dot, criterion = field.partition(".")
    return f"{kind}.{matches[criterion]}" if dot and criterion in matches else field


def criterion_spellings(criterion: Criterion) -> set[str]:
    texts = [criterion.text.get(part, {}) for part in ("name", "question")]
    return {
        case_folded(criterion.key),
        *(case_folded(words) for by_language in texts for words in by_language.values()),
    }
