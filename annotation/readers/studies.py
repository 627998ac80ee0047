"""Known studies: ``ready/NAME.yaml`` describes how their files are recognised and read."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files as resources
from typing import Any, Literal, get_args

import orjson

from annotation.readers.archives import File, is_container, is_not_data, unpacked_files
from annotation.readers.columns import ColumnPlanner
from annotation.readers.documents import Node, load_shipped, names_of, switch_of, word_of, words_of
from annotation.readers.encoding import open_stream
from annotation.readers.formats import READ_FROM_END
from annotation.readers.guessing import SCORE_KEYS
from annotation.readers.mapping import Mapping, unnamed_in_mapping
from annotation.readers.problems import FormatError, InvalidValue, Problem, Problems, excerpt
from annotation.readers.reading import join_aligned_files, peek, read_rows
from annotation.readers.rows import as_number, as_written, first_of, is_blank, match_file_name, matches_any, value_at
from annotation.readers.rubric import (
    CriterionDocument,
    PointDocument,
    RubricDocument,
    ScaleDocument,
    parse_rubric,
    rubric_from_dict,
)
from annotation.readers.score_words import kind_of_answer
from annotation.readers.words import Words

MOST_DISTINCT = 1_000
MOST_POINTS = 11


@dataclass(slots=True)
class ScaleFacts:
    """The answers on one criterion: ``scores`` and ``words`` count each value, up to a thousand different ones."""

    criterion: str
    scores: Counter[float] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    blank: int = 0
    not_applicable: int = 0
    minimum: float = float("inf")
    maximum: float = float("-inf")
    fractional: bool = False

    def see(self, value: Any, *, decimal_comma: bool = False) -> None:
        """Count one answer."""
        if is_blank(value):
            self.blank += 1
        elif isinstance(value, str) and value.strip().upper() == "N/A":
            self.not_applicable += 1
        else:
            self._see_answer(value, decimal_comma)

    def _see_answer(self, value: Any, decimal_comma: bool) -> None:
        try:
            score = as_number(value, "score", decimal_comma=decimal_comma)
        except InvalidValue:
            _count(self.words, as_written(value))
            return
        _count(self.scores, score)
        self.minimum, self.maximum = min(self.minimum, score), max(self.maximum, score)
        self.fractional |= not score.is_integer()

    def beside(self, other: ScaleFacts) -> ScaleFacts:
        """The facts of both together."""
        return ScaleFacts(
            criterion=self.criterion,
            scores=self.scores + other.scores,
            words=self.words + other.words,
            blank=self.blank + other.blank,
            not_applicable=self.not_applicable + other.not_applicable,
            minimum=min(self.minimum, other.minimum),
            maximum=max(self.maximum, other.maximum),
            fractional=self.fractional or other.fractional,
        )

    @property
    def sentence(self) -> str:
        """The facts as a text such as ``irony: 0 to 1, 2 values, whole numbers``."""
        if self.words:
            return f"{self.criterion}: the words {', '.join(sorted(self.words)[:MOST_POINTS])}"
        if not self.scores:
            return f"{self.criterion}: no score"
        kind = "fractions too" if self.fractional else "whole numbers"
        count = f"{len(self.scores):,} values" + (" or more" if len(self.scores) == MOST_DISTINCT else "")
        return f"{self.criterion}: {self.minimum:g} to {self.maximum:g}, {count}, {kind}"


def _count(counter: Counter[Any], value: Any) -> None:
    if value in counter or len(counter) < MOST_DISTINCT:
        counter[value] += 1


def observed_scales(files: Iterable[File], mapping: Mapping) -> dict[str, ScaleFacts]:
    """The answers of some files of ratings or verdicts by criterion, as their mapping reads them."""
    facts: dict[str, ScaleFacts] = {}
    for criterion, value in _answers(files, mapping):
        name = as_written(criterion)
        facts.setdefault(name, ScaleFacts(name)).see(value, decimal_comma=mapping.decimal_comma)
    return facts


def _answers(files: Iterable[File], mapping: Mapping) -> Iterator[tuple[Any, Any]]:
    problems = Problems()
    for name, raw in join_aligned_files(files, mapping, problems):
        planner = ColumnPlanner(mapping.of(name))
        for row in read_rows(name, raw, layout=mapping, problems=problems):
            try:
                values = planner.plan(row.fields).take(row.fields)
            except InvalidValue:
                continue  # refused when the file is read to be stored
            yield from _scores_in(values)


def _scores_in(values: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    for target, value in values.items():
        kind, _, criterion = target.partition(".")
        if target == "score":
            yield values.get("criterion"), value
        elif kind == "score":
            yield criterion, value
        elif kind == "ratings" and isinstance(value, list):
            yield from ((criterion, first_of(entry, SCORE_KEYS)) for entry in value if isinstance(entry, dict))


def with_word_codes(mapping: Mapping, facts: dict[str, ScaleFacts]) -> Mapping:
    """The mapping with a number for each answer that is a word, from 0 in the order of the words; numbers that are
    answers already are left out."""
    taken = {score for fact in facts.values() for score in fact.scores}
    free = (number for number in range(len(taken) + 10 * MOST_DISTINCT) if number not in taken)
    words = sorted({word for fact in facts.values() for word in fact.words})
    codes = dict(zip(words, map(str, free), strict=False))
    return replace(mapping, values={**mapping.values, "score": {**codes, **mapping.values.get("score", {})}})


def proposed_rubric(key: str, facts: dict[str, ScaleFacts], mapping: Mapping) -> RubricDocument:
    """A rubric that allows all observed answers, in the words of the file; ``mapping`` has the codes of words."""
    codes = mapping.values.get("score", {})
    return RubricDocument(
        key=as_rubric_key(key),
        name={"en": key},
        source_language="en",
        criteria=tuple(
            CriterionDocument(
                key=as_rubric_key(fact.criterion),
                name={"en": fact.criterion},
                scale=_scale(fact, codes),
                not_applicable=fact.not_applicable > 0,
                direction="none" if fact.words else "higher_is_better",
            )
            for fact in facts.values()
        ),
    )


def _scale(facts: ScaleFacts, codes: dict[str, str]) -> ScaleDocument:
    if facts.words:
        labels = {float(codes[word]): word for word in facts.words if word in codes}
        labels |= {score: f"{score:g}" for score in facts.scores}
        points = [PointDocument(value, {"en": labels[value]}) for value in sorted(labels)]
        # A nominal scale has at least two points; if the answers have one word only, a second point is added.
        points += [PointDocument(points[-1].value + 1, {"en": "other"})] if len(points) == 1 else []
        return ScaleDocument("nominal", tuple(points), points[0].value, points[-1].value)
    low, high = _ends(facts)
    if not facts.fractional and high - low < MOST_POINTS:
        values = [low + step for step in range(round(high - low) + 1)]
        return ScaleDocument("ordinal", tuple(PointDocument(value) for value in values), low, high)
    return ScaleDocument("interval", (), low, high, None if facts.fractional else 1)


def _ends(facts: ScaleFacts) -> tuple[float, float]:
    """The smallest and the largest score; always two different numbers, because a scale needs two."""
    if not facts.scores:
        return 0, 1
    low, high = facts.minimum, facts.maximum
    return (low, high) if low < high else (min(low, 0), max(high, 1))


def as_rubric_key(name: str) -> str:
    """A name as the key of a criterion or rubric: ``Is it fluent?`` -> ``is_it_fluent``."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    key = re.sub(r"[^a-z0-9_-]+", "_", plain).strip("_-")[:60]
    return key or "criterion_" + format(sum(map(ord, name)), "x")


Kind = Literal["dataset", "rubric", "ratings", "verdicts"]
HEAD = 2**20
ROWS = 20


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a file or of a member, which is enough to recognise a study. Each layout reads it once."""

    name: str
    file: File
    _read: dict[str, list[dict[str, Any]]] = field(default_factory=dict, repr=False, compare=False)

    def rows(self, layout: Mapping) -> list[dict[str, Any]]:
        """The fields of the first rows in a layout, also of rows with missing cells; empty if they can't be read."""
        layout = replace(layout, short_rows=True)
        key = repr(layout)
        if key not in self._read:
            try:
                self._read[key] = [row.fields for row in peek(*self.file, layout=layout, rows=ROWS).rows]
            except FormatError:
                self._read[key] = []
        return self._read[key]


@dataclass(frozen=True, slots=True)
class StudyImport:
    """One import of a study: the kind of its rows, its files, how they are read, and where they are stored.

    ``name`` is the name of a dataset; ratings and verdicts name their ``dataset`` and ``rubric``. A rubric is given
    whole, or read from a file of the study with a name as in ``files``, or ``inferred`` from the import that
    names it. A file belongs to an import if its name matches one of ``files`` (if there are any), if it has all
    ``columns`` (and no others if ``whole``), if every cell matches its pattern in ``cells``, and if in each row a cell
    of any column matches ``some``. Ratings and verdicts that name no dataset are not part of the study: they describe
    how its files are read if they are imported alone, for items that are stored already.
    """

    kind: Kind
    name: str = ""
    licence: str = ""
    dataset: str = ""
    rubric: str = ""
    document: RubricDocument | None = None
    inferred: bool = False
    files: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    whole: bool = False
    cells: dict[str, str] = field(default_factory=dict)
    some: str = ""
    mapping: Mapping = field(default_factory=Mapping)
    rubric_name: str = ""
    """The name by which the other imports refer to a rubric that was read from a file."""

    @property
    def is_by_itself(self) -> bool:
        """Whether the import is for items that are stored already."""
        return self.kind in ("ratings", "verdicts") and not self.dataset

    @property
    def has_rows(self) -> bool:
        """Whether its files have rows; a rubric's file is one document."""
        return self.kind != "rubric"

    def takes(self, head: Head) -> bool:
        """Whether a file belongs to this import, judged by its name and its first megabyte."""
        if not self.has_rows:
            return any(match_file_name(pattern, head.name) is not None for pattern in self.files)
        if self.mapping.aligned:
            if any(match_file_name(pattern, head.name) is not None for pattern in self.mapping.shared):
                return True
            lines = head.rows(Mapping()) if self.columns else []
            is_called_so = any(match_file_name(pattern, head.name) is not None for pattern in self.mapping.aligned)
            return is_called_so and (not self.columns or (bool(lines) and self._looks_right(lines[0])))
        if self.files and all(match_file_name(pattern, head.name) is None for pattern in self.files):
            return False
        rows = head.rows(_layout(head.name, self.mapping.of(head.name)))
        return bool(rows) and all(map(self._looks_right, rows[:1])) and all(map(self._cells_fit, rows))

    def extends(self, head: Head) -> bool:
        """Whether a file has all columns of a ``whole`` import and more: a later version with added columns."""
        rows = head.rows(_layout(head.name, self.mapping.of(head.name))) if self.whole else []
        return bool(rows) and rows[0].keys() > {*self.columns}

    def _looks_right(self, fields: dict[str, Any]) -> bool:
        if self.whole and not fields.keys() <= {*self.columns}:
            return False
        return all(
            any(matches_any(name, [column]) for name in fields)
            if "*" in column
            else value_at(fields, column) is not None
            for column in self.columns
        )

    def _cells_fit(self, fields: dict[str, Any]) -> bool:
        for column, pattern in self.cells.items():
            names = [name for name in fields if matches_any(name, [column])] if "*" in column else [column]
            if not all(re.fullmatch(pattern, _written(value_at(fields, name)), re.DOTALL) for name in names):
                return False
        return not self.some or any(re.fullmatch(self.some, _written(value), re.DOTALL) for value in fields.values())


Part = tuple[StudyImport, list[File]]
_LAYOUT = ("format", "encoding", "sheet", "delimiter", "quoting", "line_breaks", "header", "header_row")
_LAYOUT_OF = {".json": ("records", "beside"), ".parquet": ("ignore",)}


def _layout(name: str, mapping: Mapping) -> Mapping:
    """The part of a mapping that decides which rows and columns a file has before the ``shape`` changes them."""
    parts = (*_LAYOUT, *_LAYOUT_OF.get(f".{mapping.format or name.lower().rpartition('.')[2]}", ()))
    columns = dict.fromkeys(
        unnamed_in_mapping(mapping), "id"
    )  # columns without a name are read only if the mapping mentions them
    return Mapping(columns=columns, **{part: getattr(mapping, part) for part in parts})


def _written(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


@dataclass(frozen=True, slots=True)
class KnownStudy:
    """A study that Panelbench knows, or the format of a tool, which is recognised after all studies."""

    name: str
    title: str
    about: str
    source: str
    tool: bool
    imports: tuple[StudyImport, ...]

    def parts(self, files: Sequence[File]) -> list[Part]:
        """The imports that these files belong to, in order; a rubric comes with the imports that need it."""
        heads = [_heads(file) for file in files]
        shared = {
            number: [file for file, head in zip(files, heads, strict=True) if any(map(part.takes, head))]
            for number, part in enumerate(self.imports)
            if not part.is_by_itself
        }
        needed = {self.imports[number].rubric for number, taken in shared.items() if taken}
        parts = ((part, shared.get(number, [])) for number, part in enumerate(self.imports))
        return [(part, taken) for part, taken in parts if taken or (not part.has_rows and part.name in needed)]

    def unclaimed(self, files: Sequence[File]) -> list[str]:
        """The names of the files that belong to no import."""
        claimed = {name for _each, taken in self.parts(files) for name, _raw in taken}
        return [name for name, _raw in files if name not in claimed]

    def is_of(self, heads: Sequence[Head]) -> bool:
        """Whether each file belongs to an import of the study. Items of a tool alone are not a study; a rubric's file
        and ratings without their items aren't either."""
        parts = [part for part in self.imports if not part.is_by_itself]
        kinds = [{part.kind for part in parts if part.takes(head)} for head in heads]
        if any(kinds):  # files with outputs of judges beside the items are not read
            beside = [any(part.extends(head) for part in parts) for head in heads]
            kinds = [kind for kind, is_beside in zip(kinds, beside, strict=True) if kind or not is_beside]
        has_files_of_rubrics = any(not part.has_rows and part.files for part in parts)
        if has_files_of_rubrics and not any("dataset" in kind for kind in kinds):
            return False
        return all(kinds) and (not self.tool or any(kind - {"dataset"} for kind in kinds))


def _heads(file: File) -> list[Head]:
    """The heads of a file's members; a file that is no archive has one head."""
    name, _raw = file
    packed = is_container(name)
    try:
        inside = unpacked_files([file], Problems()) if packed else [file]
        return [Head(inner, (inner, _beginning(inner, raw, packed))) for inner, raw in inside]
    except FormatError:
        return []


def _beginning(name: str, raw: Any, packed: bool) -> Any:
    # Workbooks and Parquet are read from their end; a stream from an archive closes when the next one is opened.
    if name.lower().endswith(READ_FROM_END):
        return open_stream(raw).read() if packed else raw
    return raw[:HEAD] if isinstance(raw, bytes) else open_stream(raw).read(HEAD)


@cache
def known_studies() -> dict[str, KnownStudy]:
    """Every ready study by its name, the formats of tools last."""
    return {study.name: study for study in _ready_files() if not all(part.is_by_itself for part in study.imports)}


@cache
def _ready_files() -> tuple[KnownStudy, ...]:
    """The content of all ready mappings, including those without items of their own."""
    folder = resources("annotation.readers") / "ready"
    read = [_study(file.name, file.read_bytes()) for file in folder.iterdir() if file.name.endswith(".yaml")]
    return tuple(sorted(read, key=lambda study: (study.tool, study.name)))


def recognise(files: Sequence[File]) -> KnownStudy | None:
    """The study that all of these files belong to; studies of researchers are tried before formats of tools.

    Files that are not data, such as a licence, are not considered.
    """
    inside = [_heads(file) for file in files if not is_not_data(file[0])]
    if not inside or not all(inside):
        return None
    heads = [head for heads_of_file in inside for head in heads_of_file]
    return next((study for study in known_studies().values() if study.is_of(heads)), None)


def ready_mapping(kind: str, files: Sequence[File]) -> Mapping | None:
    """The ready mapping of the tool that wrote all of these files, for its ratings or verdicts on stored items."""
    inside = [_heads(file) for file in files if not is_not_data(file[0])]
    heads = [head for heads_of_file in inside for head in heads_of_file]
    parts = (part for study in _ready_files() for part in study.imports if part.kind == kind)
    fitting = (part.mapping for part in parts if part.is_by_itself and heads and all(map(part.takes, heads)))
    return next(fitting, None)


# --- scales that the answers show -----------------------------------------------------------------------------------
FactsByCriterion = dict[str, ScaleFacts]


def with_inferred_rubrics(parts: Sequence[Part]) -> list[Part]:
    """The parts; each rubric is read from its file, or derived from the answers that name it if it is ``inferred``.
    Raises ``FormatError`` for a file that is no rubric."""
    parts = [(_with_document(part, taken), taken) for part, taken in parts]
    keys = {part.rubric_name: part.name for part, _files in parts if part.rubric_name}
    parts = [(replace(part, rubric=keys.get(part.rubric, part.rubric)), taken) for part, taken in parts]
    inferred = {part.name: _facts(part.name, parts) for part, _files in parts if part.inferred}
    for name, facts in inferred.items():
        _refuse_unclear(facts, next((own[0][0] for part, own in parts if own and part.rubric == name), ""))
    return [(_with_scales(part, inferred), taken) for part, taken in parts]


def _with_document(part: StudyImport, taken: Sequence[File]) -> StudyImport:
    if part.has_rows or not taken:
        return part
    parsed = parse_rubric(taken[0][0], open_stream(taken[0][1]).read())
    if parsed.document is None:
        raise FormatError(parsed.problems.shown[0])
    key = parsed.document.key
    return replace(part, name=key, rubric_name=part.name, document=parsed.document, inferred=False)


def _facts(rubric: str, parts: Sequence[Part]) -> FactsByCriterion:
    """The facts of all answers on a rubric, by criterion."""
    facts: FactsByCriterion = {}
    for part, taken in parts:
        for criterion, seen in (observed_scales(taken, part.mapping) if part.rubric == rubric else {}).items():
            facts[criterion] = facts[criterion].beside(seen) if criterion in facts else seen
    return facts


def _refuse_unclear(facts: FactsByCriterion, file: str) -> None:
    """Refuse to infer categories from answers that are clearly numbers or times in another form."""
    for fact in facts.values():
        kinds = Counter(filter(None, map(kind_of_answer, fact.words)))
        if kinds and (kinds.total() > 1 or len(fact.words) == 1):
            kind = kinds.most_common(1)[0][0]
            words = ", ".join(excerpt(word) for word in sorted(fact.words) if kind_of_answer(word) == kind)
            expected = Words(
                "numbers, or a rubric and a mapping that says what they mean: import the files one by one, with "
                "values: {score: {...}} under “Mapping (YAML)”"
            )
            found = f"{kind} as answers on {fact.criterion}: {words}"
            raise FormatError(Problem(file, None, None, found, expected, "unclear_scores"))


def _with_scales(part: StudyImport, inferred: dict[str, FactsByCriterion]) -> StudyImport:
    if part.inferred:
        facts = inferred[part.name]
        return replace(part, document=proposed_rubric(part.name, facts, with_word_codes(Mapping(), facts)))
    if part.rubric in inferred:
        return replace(part, mapping=with_word_codes(part.mapping, inferred[part.rubric]))
    return part


# --- reading --------------------------------------------------------------------------------------------------------
def _study(file: str, raw: bytes) -> KnownStudy:
    parts = dict(load_shipped(file, raw).members())
    texts = {name: word_of(parts[name]) for name in ("name", "title", "about", "source")}
    tool = "tool" in parts and switch_of(parts["tool"])
    return KnownStudy(**texts, tool=tool, imports=tuple(_import(node) for node in parts["imports"].value))


def _import(node: Node) -> StudyImport:
    parts = dict(node.members())
    if unknown := parts.keys() - _READERS.keys():
        raise FormatError(
            node.problem(Words("one of %(names)s", names=", ".join(_READERS)), "unknown_key", excerpt(min(unknown)))
        )
    return StudyImport(**{name: _READERS[name](child) for name, child in parts.items()})


def _kind(node: Node) -> Kind:
    if node.text not in get_args(Kind):
        raise FormatError(node.problem(Words("one of %(names)s", names=", ".join(get_args(Kind))), "kind"))
    return node.text  # type: ignore[return-value]


def _document(node: Node) -> RubricDocument:
    return rubric_from_dict(_plain(node))


def _plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {name: _plain(child) for name, child in node.members()}
    return [_plain(child) for child in node.value] if isinstance(node.value, list) else node.value


_READERS: dict[str, Any] = {
    "kind": _kind,
    "name": word_of,
    "licence": word_of,
    "dataset": word_of,
    "rubric": word_of,
    "document": _document,
    "inferred": switch_of,
    "files": names_of,
    "columns": names_of,
    "whole": switch_of,
    "cells": words_of,
    "some": word_of,
    "mapping": Mapping.from_document,
}


def with_constants(study: KnownStudy, constants: dict[str, str]) -> KnownStudy:
    """The study with constants for all of its files, such as a language that they do not give."""
    mapping = Mapping(constants=constants)
    return replace(study, imports=tuple(replace(part, mapping=part.mapping.updated(mapping)) for part in study.imports))
