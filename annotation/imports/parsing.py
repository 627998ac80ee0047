"""Parsing: files are read with a mapping, with notes on their content; only names are queried from the database."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from annotation.imports.criterion_names import CriterionNames, label_values, with_criterion_keys
from annotation.models import Import, RubricVersion
from annotation.readers import (
    ColumnFacts,
    File,
    InvalidValue,
    Mapping,
    ParsedItems,
    PersonScores,
    Problem,
    Problems,
    Progress,
    Report,
    Spool,
    TableFacts,
    Words,
    as_answer,
    excerpt,
    first_lines,
    most_frequent,
    parse_items,
    parse_ratings,
    parse_verdicts,
    possible_rater_columns,
    sheet_names,
    shortened_list,
    unpacked_files,
)

Kind = Import.Kind
WORDS_OF_A_SENTENCE = 4
RATING_COLUMN = re.compile(
    r"(?i)(?:^|[_ .-])(?:annotat(?:ors?|ions?)|raters?|ratings?|reviewers?|workers?|coders?|severity)"
    r"(?:id|name|level)?(?:$|[_ .-])"
)
NUMBERED_RATER = re.compile(r"(?i)(?:annotator|rater|reviewer|worker|coder)s?[_ .-]?[0-9]{1,3}$")
OUTPUT_COLUMN = re.compile(
    r"(?i)^((?:model_?)?(?:output|response|answer|completion|reply|generation|conversation|candidate|translation|hypothesis"
    r"|summary|sentence|text)[_ .-]?)(a|b|1|2)$"
)
CHOSEN, REJECTED = "chosen", "rejected"  # the two outputs of a preference dataset


@dataclass(slots=True, kw_only=True)
class ParsedFiles:
    """The result of reading an import's files, before its rows are compared with the database.

    ``rows`` are `ItemRow`, `RatingRow` or `VerdictRow`; ``mapping`` is the mapping that was used, with the rubric's
    keys for its criteria. The ``report`` counts what was read. A page shows ``columns``, ``first_lines`` (the first
    rows of the first table unchanged, with their numbers) and ``sheets``. ``names`` are the names of all generators,
    raters or judges.
    """

    mapping: Mapping
    rows: Spool[Any]
    report: Report
    problems: Problems = field(default_factory=Problems)
    names: Sequence[str] = ()
    columns: Sequence[ColumnFacts] = ()
    first_lines: Sequence[tuple[int, list[str]]] = ()
    sheets: Sequence[str] = ()


def parse_files(
    kind: str,
    files: Sequence[File],
    mapping: Mapping,
    version: RubricVersion | None = None,
    progress: Progress | None = None,
    *,
    is_shown: bool = False,
) -> ParsedFiles:
    """Read files of items, ratings or verdicts with ``mapping``; answers get the rubric's keys of criteria."""
    facts = TableFacts() if is_shown else None
    if kind == Kind.DATASET:
        parsed = _parsed_items(files, mapping, progress, facts)
    else:
        parsed = _parsed_answers(kind, files, mapping, version, progress, facts)
    if facts is not None:
        parsed.columns = facts.columns(parsed.mapping)
        parsed.report.notes += _doubts(parsed.columns) if kind == Kind.DATASET else []
        _look_at_layout(parsed, files)
    return parsed


def _look_at_layout(parsed: ParsedFiles, files: Sequence[File]) -> None:
    """Store the first lines and the sheets of the first file, so that a person can choose the sheet and the header."""
    for name, raw in unpacked_files(files, Problems()):
        layout = parsed.mapping.of(name)
        if parsed.sheets or parsed.first_lines or not (isinstance(raw, bytes) or raw.seekable()):
            return
        parsed.sheets = sheet_names(name, raw, layout)
        parsed.first_lines = first_lines(name, raw, layout, parsed.problems.top)


def _parsed_items(
    files: Sequence[File], mapping: Mapping, progress: Progress | None, facts: TableFacts | None
) -> ParsedFiles:
    parsed = parse_items(files, mapping, progress=progress, facts=facts)
    if not parsed.items and not parsed.problems:
        parsed.problems.add(
            Problem(files[0][0] if files else "", None, None, Words("no item"), Words("at least one"), "empty")
        )
    read = parsed.report
    report = Report(
        read=read.read,
        stored=read.taken,
        collapsed=read.collapsed,
        refused=parsed.problems.refused,
        flagged=read.empty,
        embedded_ratings=read.embedded_ratings,
        left_out=parsed.problems.left_out,
        notes=_item_notes(parsed),
        found={"languages": most_frequent(read.languages), "generators": most_frequent(read.generators)},
    )
    return ParsedFiles(
        mapping=mapping, rows=parsed.items, report=report, problems=parsed.problems, names=list(read.generators)
    )


def _item_notes(parsed: ParsedItems) -> list[str]:
    read = parsed.report
    notes = [*parsed.problems.notes]
    if read.derived_ids:
        notes.append(
            Words("Items without an id, which got one from their content: %(number)s.", number=f"{read.derived_ids:,}")
        )
    if read.empty:
        notes.append(
            Words(
                "Without any content, kept because the mapping allows it: %(number)s.",
                number=shortened_list(read.empty_at, read.empty),
            )
        )
    if read.embedded_ratings:
        notes.append(
            Words(
                "%(number)s ratings are inside the items: import this file as ratings too.",
                number=f"{read.embedded_ratings:,}",
            )
        )
    if read.dropped:
        notes.append(Words("Keys of turns that are not kept: %(names)s.", names=shortened_list(read.dropped)))
    return notes


def _doubts(columns: Sequence[ColumnFacts]) -> list[str]:
    """Warnings about columns of a dataset that seem to give another field than the one they are mapped to."""
    notes = []
    for column in columns:
        sentences = [value for value in column.counts if value.count(" ") >= WORDS_OF_A_SENTENCE - 1]
        if column.target == "id" and 2 * len(sentences) > column.distinct:
            notes.append(
                Words(
                    "The column %(name)s gives the id, but its values are sentences, such as %(examples)s. Choose "
                    "another column for the id, or none.",
                    name=column.name,
                    examples=excerpt(sentences[0]),
                )
            )
    kept = [column for column in columns if column.filled and column.target.partition(".")[0] in ("", "attributes")]
    possible = possible_rater_columns({column.name: column.counts for column in kept})
    if rated := [column.name for column in kept if column.name in possible or _looks_rated(column)]:
        notes.append(
            Words(
                "Columns that look like ratings become attributes of the items: %(names)s. Import this file as "
                "ratings too, or leave these columns out.",
                names=shortened_list(rated),
            )
        )
    return [*notes, *_outputs_side_by_side([column.name for column in kept], columns)]


def _looks_rated(column: ColumnFacts) -> bool:
    """Whether a column's name is usual for ratings; a numbered column, such as `annotator1`, must also have scores."""
    name = column.name.rpartition(".")[2]
    if NUMBERED_RATER.search(name):
        return all(_is_number(value) for value in column.counts)
    return bool(RATING_COLUMN.search(name))


def _is_number(value: str) -> bool:
    try:
        return as_answer(value).score is not None
    except InvalidValue:
        return False


def _outputs_side_by_side(kept: Sequence[str], columns: Sequence[ColumnFacts]) -> list[str]:
    """A note on two columns that look like two outputs for one input, with the ways to compare or to rate them."""
    stems: dict[str, list[str]] = {}
    for name in kept:
        if match := OUTPUT_COLUMN.match(name):
            stems.setdefault(match[1], []).append(name)
    pairs = {stem: names for stem, names in stems.items() if len(names) == 2}
    lower = {name.lower(): name for name in kept}
    if not pairs and CHOSEN in lower and REJECTED in lower:
        pairs = {"": [lower[CHOSEN], lower[REJECTED]]}
    if not pairs:
        return []
    stem, (first, second) = next(iter(pairs.items()))
    key = next((column.name for column in columns if column.target == "id"), "")
    steps = [{"melt": {f"{stem}{{generator}}": "answer"}}]
    if key:
        steps.append({"compose": {key: f"{{{key}}}-{{generator}}"}})
    offer = Words(
        " To rate each of them as an item, add to the mapping: %(steps)s",
        steps=json.dumps({"shape": steps}, ensure_ascii=False),
    )
    return [
        Words(
            "The columns %(one)s and %(other)s look like two outputs for one input, and become attributes of "
            "the items. To compare them, use them as Passage A and Passage B.%(rest)s",
            "The columns %(one)s and %(other)s look like two outputs for one input, and become attributes of "
            "the items. To compare them, use them as Passage A and Passage B (passage_a and passage_b in a "
            "mapping).%(rest)s",
            one=first,
            other=second,
            rest=offer if stem and (not key or key.isidentifier()) else "",
        )
    ]


def _parsed_answers(
    kind: str,
    files: Sequence[File],
    mapping: Mapping,
    version: RubricVersion | None,
    progress: Progress | None,
    facts: TableFacts | None,
) -> ParsedFiles:
    parse = parse_ratings if kind == Kind.RATINGS else parse_verdicts
    names = CriterionNames(version)
    mapping = with_label_values(_with_only_criterion(mapping, version), version)
    parsed = parse(files, mapping, progress=progress, facts=facts, criterion_key=names.key_of)
    mapping = with_criterion_keys(mapping, names.matches) if names.matches else mapping
    notes = [
        Words("“%(found)s” was taken as the criterion %(criterion)s.", found=name, criterion=key)
        for name, key in sorted(names.matches.items())
    ]
    counts = parsed.counts()
    if kind == Kind.RATINGS:
        _explain_words(parsed.problems, counts.scored)
    report = Report(
        read=parsed.read,
        stored=counts.scored + counts.not_applicable,
        not_applicable=counts.not_applicable,
        collapsed=parsed.collapsed,
        collapsed_blank=parsed.collapsed_blank,
        missing=counts.missing,
        refused=parsed.refused,
        left_out=parsed.problems.left_out,
        notes=[*notes, *parsed.problems.notes],
        found={
            "raters" if kind == Kind.RATINGS else "judges": most_frequent(counts.whose),
            "criteria": most_frequent(counts.criteria),
        },
    )
    return ParsedFiles(
        mapping=mapping, rows=parsed.rows, report=report, problems=parsed.problems, names=list(counts.whose)
    )


def _with_only_criterion(mapping: Mapping, version: RubricVersion | None) -> Mapping:
    """The mapping with the only criterion of the rubric for columns of one person each that name none."""
    keys = [criterion.key for criterion in version.criteria.all()] if version else []
    if len(keys) != 1:
        return mapping
    shape = tuple(
        replace(step, criteria={**dict.fromkeys(step.scores, keys[0]), **step.criteria})
        if isinstance(step, PersonScores)
        else step
        for step in mapping.shape
    )
    return replace(mapping, shape=shape)


def with_label_values(mapping: Mapping, version: RubricVersion | None) -> Mapping:
    """The mapping with the value of each label of the rubric's points; a value in the mapping itself has precedence."""
    known = label_values(version)
    if not known:
        return mapping
    fields = {"score", *(field for field in mapping.columns.values() if field.startswith("score."))}
    values = dict(mapping.values)
    for target in fields & known.keys():
        written = {
            spelling: value
            for label, value in known[target].items()
            for spelling in {label, label.upper(), label.capitalize(), label.title()}
        }
        shared = mapping.values.get("score", {})
        values[target] = {**written, **shared, **mapping.values.get(target, {})}
    return replace(mapping, values=values)


def _explain_words(problems: Problems, scored: int) -> None:
    """Replace many problems by one if all answers are words: it says how words can become scores."""
    words = [problem for problem in problems if problem.code == "not_a_number"]
    if scored or len(words) < 2 or not any(" " in problem.found.strip("“”") for problem in words):
        return
    text = Words("answers in words, such as %(examples)s, and no score at all", examples=words[0].found)
    expected = Words(
        "scores. Texts that are to be rated are the items of a dataset; texts that explain scores are rationales; "
        "words that stand for scores get them under values: {score: {Yes: 1}} under “Mapping (YAML)”"
    )
    problems.instead("not_a_number", Problem(words[0].file, None, words[0].column, text, expected, "free_text"))
