"""What files seem to be: their kind, and a mapping for all of them together, to be shown and corrected."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

from annotation.readers.aligning import aligned
from annotation.readers.containers import members
from annotation.readers.encoding import opened
from annotation.readers.gathering import PREFIX
from annotation.readers.guessing import guess, speakers_in
from annotation.readers.mapping import Mapping
from annotation.readers.patterns import fits
from annotation.readers.problems import FormatError, Problems
from annotation.readers.reading import File, guess_layout, peek

FileKind = Literal["dataset", "rubric", "ratings", "verdicts"]
HEAD = 65_536


def guess_kind(files: Sequence[File], said: Mapping | None = None) -> FileKind:
    """A rubric by its shape; verdicts where a judge is named, ratings where a rater is; otherwise a dataset."""
    kinds = list(kinds_within(files, said).values())
    if "rubric" in kinds:
        return "rubric"
    return next((kind for kind in kinds if kind != "dataset"), "dataset")


def kinds_within(files: Sequence[File], said: Mapping | None = None) -> dict[str, FileKind]:
    """What each file seems to hold, those inside of a zip by themselves, by their names."""
    return {name: _kind_of(name, raw, said) for name, raw in members(files, Problems())}


def _kind_of(name: str, raw: Any, said: Mapping | None) -> FileKind:
    if _is_rubric(name, raw):
        return "rubric"
    said = said or Mapping()
    sample = peek(name, raw, layout=_laid(name, guess_layout(name, raw, said), said))
    rows = [row.fields for row in sample.rows]
    if "judge" in guess("verdicts", sample.columns, rows).columns.values():
        return "verdicts"
    given = set(guess("ratings", sample.columns, rows).columns.values())
    is_rating = {"rater", "item"} <= given and not _are_turns(guess("dataset", sample.columns, rows))
    return "ratings" if is_rating else "dataset"


def _are_turns(guessed: Mapping) -> bool:
    return any(field.startswith(PREFIX) for field in guessed.columns.values())


def _is_rubric(name: str, raw: Any) -> bool:
    if name.lower().endswith((".yaml", ".yml")):
        return True
    try:
        head = opened(raw).read(HEAD)
    except FormatError:
        return False  # whoever reads it says what is wrong
    return name.lower().endswith(".json") and b'"criteria"' in head and b'"source_language"' in head


def propose(
    kind: Literal["dataset", "ratings", "verdicts"],
    files: Iterable[File],
    said: Mapping,
    criteria: Collection[str] = (),
) -> Mapping:
    """The guess for each file, put together, with what was ``said`` laid over it; ``criteria`` as for `guess`.

    This is the one rule of every way to import. What is said about a field replaces every guess about that field; what
    is said to be ignored or unmapped is not guessed at. Proposing what was proposed changes nothing.
    """
    guessed, unread = Mapping(), Problems()
    layouts: dict[str, Mapping] = {}
    for name, raw in aligned(members(files, unread), said, unread):
        layouts[name] = guess_layout(name, raw, said)
        sample = peek(name, raw, layout=_laid(name, layouts[name], said))
        rows = [row.fields for row in sample.rows]
        found = guess(kind, sample.columns, rows, criteria)
        spoken = speakers_in({*found.columns.items(), *said.of(name).columns.items()}, rows)
        guessed = guessed.updated(replace(found, speakers=found.speakers or spoken))
    everywhere = [said, *said.files.values()]
    settled = {field for each in everywhere for field in (*each.columns.values(), *each.constants)}
    named = {column for each in everywhere for column in (*each.columns, *each.unmapped)}
    ignored = [pattern for each in everywhere for pattern in each.ignore]
    kept = {
        column: field
        for column, field in guessed.columns.items()
        if field not in settled and column not in named and not fits(column, ignored)
    }
    left_out = [column for each in (guessed, *layouts.values()) for column in each.ignore if column not in named]
    ignore = dict.fromkeys([*said.ignore, *left_out])
    speakers = {} if said.speakers else guessed.speakers
    laid = _together(layouts).updated(replace(guessed, columns=kept, speakers=speakers)).updated(said)
    return replace(laid, ignore=tuple(ignore))


def _laid(name: str, guessed: Mapping, said: Mapping) -> Mapping:
    """What is said and guessed of the layout of one file."""
    here = said.of(name)
    return replace(guessed.updated(here), ignore=(*guessed.ignore, *here.ignore), files=said.files)


def _together(layouts: dict[str, Mapping]) -> Mapping:
    """The layouts guessed for several files: what all have, or else what each has by its name."""
    if len({str(layout.as_dict()) for layout in layouts.values()}) <= 1:
        return next(iter(layouts.values()), Mapping())
    plain = {name.rpartition("/")[2]: layout for name, layout in layouts.items()}
    return Mapping(files={name: layout for name, layout in plain.items() if layout != Mapping() and "{" not in name})


def still_there(files: Iterable[File], said: Mapping) -> Mapping:
    """The mapping without the columns that the files, read as it says now, no longer have; whole where they can't be
    read so."""
    columns: set[str] = set()
    for name, raw in members(files, Problems()):
        columns.update(peek(name, raw, layout=said).columns)
    there = columns | {column.partition(".")[0] for column in columns}
    if not there:
        return said
    return replace(
        said,
        columns={column: field for column, field in said.columns.items() if _is_in(column, there)},
        ignore=tuple(column for column in said.ignore if "*" in column or _is_in(column, there)),
        unmapped=tuple(column for column in said.unmapped if _is_in(column, there)),
    )


def _is_in(column: str, there: Collection[str]) -> bool:
    return column in there or column.partition(".")[0] in there
