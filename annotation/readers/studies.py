"""Studies whose files are known: how each is read, said once in ``ready/NAME.yaml``, and recognised by its shape."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files as resources
from typing import Any, Literal, get_args

import orjson

from annotation.readers.containers import is_container, is_no_data, members
from annotation.readers.documents import Node, load_shipped, words_of
from annotation.readers.encoding import opened
from annotation.readers.mapping import Mapping
from annotation.readers.nodes import names_of, switch_of, word_of
from annotation.readers.paths import found
from annotation.readers.patterns import file_fits, fits
from annotation.readers.problems import FormatError, Problems, excerpt
from annotation.readers.reading import File, peek
from annotation.readers.rubric import RubricDocument, rubric_from_dict
from annotation.readers.scales import ScaleFacts, coded, observed, proposed
from annotation.readers.unnamed import mentioned

Kind = Literal["dataset", "rubric", "ratings", "verdicts"]
HEAD = 2**20
ROWS = 20


@dataclass(frozen=True, slots=True)
class Head:
    """A file, or a member of one, with as much of it as recognising looks at. Each layout reads it once."""

    name: str
    file: File
    _read: dict[str, list[dict[str, Any]]] = field(default_factory=dict, repr=False, compare=False)

    def rows(self, layout: Mapping) -> list[dict[str, Any]]:
        """The fields of the first rows as a layout reads them; none where it can't."""
        key = repr(layout)
        if key not in self._read:
            try:
                self._read[key] = [row.fields for row in peek(*self.file, layout=layout, rows=ROWS).rows]
            except FormatError:
                self._read[key] = []
        return self._read[key]


@dataclass(frozen=True, slots=True)
class StudyImport:
    """One import of a study: what kind of rows, from which of its files, read how, and where they go.

    ``name`` is a dataset's own; ratings and verdicts say on which ``dataset`` and ``rubric`` they are. A rubric is
    given whole, or is ``inferred`` from the import that names it. A file belongs to an import when its name fits one
    of ``files``, where there are any, when it has all ``columns``, when every cell fits its pattern in ``cells``, and
    when some cell of each row fits ``some``, whatever its column.
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
    cells: dict[str, str] = field(default_factory=dict)
    some: str = ""
    mapping: Mapping = field(default_factory=Mapping)

    def takes(self, head: Head) -> bool:
        """Whether a file is one of this import's, by its name and its first megabyte."""
        if self.mapping.aligned:
            return any(file_fits(pattern, head.name) is not None for pattern in self.mapping.aligned)
        if self.files and all(file_fits(pattern, head.name) is None for pattern in self.files):
            return False
        rows = head.rows(_layout(head.name, self.mapping.of(head.name)))
        return bool(rows) and all(map(self._looks_right, rows[:1])) and all(map(self._cells_fit, rows))

    def _looks_right(self, fields: dict[str, Any]) -> bool:
        return all(
            any(fits(name, [column]) for name in fields) if "*" in column else found(fields, column) is not None
            for column in self.columns
        )

    def _cells_fit(self, fields: dict[str, Any]) -> bool:
        for column, pattern in self.cells.items():
            names = [name for name in fields if fits(name, [column])] if "*" in column else [column]
            if not all(re.fullmatch(pattern, _written(found(fields, name)), re.DOTALL) for name in names):
                return False
        return not self.some or any(re.fullmatch(self.some, _written(value), re.DOTALL) for value in fields.values())


Part = tuple[StudyImport, list[File]]


_LAYOUT = ("format", "encoding", "sheet", "delimiter", "quoting", "line_breaks", "header", "header_row", "short_rows")
_LAYOUT_OF = {".json": ("records",), ".parquet": ("ignore",)}


def _layout(name: str, mapping: Mapping) -> Mapping:
    """What of a mapping decides which rows and columns a file has before they are shaped."""
    parts = (*_LAYOUT, *_LAYOUT_OF.get(f".{mapping.format or name.lower().rpartition('.')[2]}", ()))
    columns = dict.fromkeys(mentioned(mapping), "id")  # those without a name are read where the mapping speaks of them
    return Mapping(columns=columns, **{part: getattr(mapping, part) for part in parts})


def _written(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


@dataclass(frozen=True, slots=True)
class Study:
    """A study that Panelbench knows, or the format of a tool, which is recognised after all studies."""

    name: str
    title: str
    about: str
    source: str
    tool: bool
    imports: tuple[StudyImport, ...]

    def parts(self, files: Sequence[File]) -> list[Part]:
        """The imports that these files are for, in their order; a rubric with those that need it."""
        heads = [_heads(each) for each in files]
        shared = {
            number: [file for file, head in zip(files, heads, strict=True) if any(map(each.takes, head))]
            for number, each in enumerate(self.imports)
            if each.kind != "rubric"
        }
        needed = {self.imports[number].rubric for number, taken in shared.items() if taken}
        found = ((each, shared.get(number, [])) for number, each in enumerate(self.imports))
        return [(each, taken) for each, taken in found if taken or (each.kind == "rubric" and each.name in needed)]

    def unclaimed(self, files: Sequence[File]) -> list[str]:
        """The names of the files that no import takes."""
        claimed = {name for _each, taken in self.parts(files) for name, _raw in taken}
        return [name for name, _raw in files if name not in claimed]

    def is_of(self, heads: Sequence[Head]) -> bool:
        """Whether each is of one of its imports; a tool's items alone are no study."""
        kinds = [{each.kind for each in self.imports if each.kind != "rubric" and each.takes(head)} for head in heads]
        return all(kinds) and (not self.tool or any(found - {"dataset"} for found in kinds))


def _heads(file: File) -> list[Head]:
    """The members of a file, each with its name and as much of it as recognising looks at."""
    name, _raw = file
    packed = is_container(name)
    try:
        inside = members([file], Problems()) if packed else [file]
        return [Head(inner, (inner, _beginning(inner, raw, packed))) for inner, raw in inside]
    except FormatError:
        return []


def _beginning(name: str, raw: Any, packed: bool) -> Any:
    # Workbooks and Parquet are read from their end; a stream out of an archive is gone once the next one begins.
    if name.lower().endswith((".xlsx", ".parquet")):
        return opened(raw).read() if packed else raw
    return raw[:HEAD] if isinstance(raw, bytes) else opened(raw).read(HEAD)


@cache
def studies() -> dict[str, Study]:
    """Every ready study by its name, the formats of tools last."""
    folder = resources("annotation.readers") / "ready"
    read = [_study(each.name, each.read_bytes()) for each in folder.iterdir() if each.name.endswith(".yaml")]
    return {each.name: each for each in sorted(read, key=lambda study: (study.tool, study.name))}


def recognise(files: Sequence[File]) -> Study | None:
    """The study that all of these files are of, those of researchers before the formats of tools.

    What is no data, such as a licence beside them, does not count.
    """
    inside = [_heads(file) for file in files if not is_no_data(file[0])]
    if not inside or not all(inside):
        return None
    heads = [head for each in inside for head in each]
    return next((study for study in studies().values() if study.is_of(heads)), None)


# --- scales that the answers show -----------------------------------------------------------------------------------
Facts = dict[str, ScaleFacts]


def settled(parts: Sequence[Part]) -> list[Part]:
    """The parts, with each rubric that is to be inferred made of the answers that name it."""
    inferred = {each.name: _facts(each.name, parts) for each, _files in parts if each.inferred}
    return [(_with_scales(each, inferred), taken) for each, taken in parts]


def _facts(rubric: str, parts: Sequence[Part]) -> Facts:
    """What all answers on a rubric are, by criterion."""
    facts: Facts = {}
    for each, taken in parts:
        for criterion, seen in (observed(taken, each.mapping) if each.rubric == rubric else {}).items():
            facts[criterion] = facts[criterion].beside(seen) if criterion in facts else seen
    return facts


def _with_scales(each: StudyImport, inferred: dict[str, Facts]) -> StudyImport:
    if each.inferred:
        facts = inferred[each.name]
        return replace(each, document=proposed(each.name, facts, coded(Mapping(), facts)))
    if each.rubric in inferred:
        return replace(each, mapping=coded(each.mapping, inferred[each.rubric]))
    return each


# --- reading --------------------------------------------------------------------------------------------------------
def _study(file: str, raw: bytes) -> Study:
    parts = dict(load_shipped(file, raw).members())
    said = {name: word_of(parts[name]) for name in ("name", "title", "about", "source")}
    tool = "tool" in parts and switch_of(parts["tool"])
    return Study(**said, tool=tool, imports=tuple(_import(node) for node in parts["imports"].value))


def _import(node: Node) -> StudyImport:
    parts = dict(node.members())
    if unknown := parts.keys() - _READERS.keys():
        raise FormatError(node.problem(f"one of {', '.join(_READERS)}", "unknown_key", excerpt(min(unknown))))
    return StudyImport(**{name: _READERS[name](child) for name, child in parts.items()})


def _kind(node: Node) -> Kind:
    if node.text not in get_args(Kind):
        raise FormatError(node.problem(f"one of {', '.join(get_args(Kind))}", "kind"))
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
    "cells": words_of,
    "some": word_of,
    "mapping": Mapping.from_document,
}


def with_constants(study: Study, constants: dict[str, str]) -> Study:
    """The study with constants said for all of its files, such as a language that they don't give."""
    said = Mapping(constants=constants)
    return replace(study, imports=tuple(replace(each, mapping=each.mapping.updated(said)) for each in study.imports))
