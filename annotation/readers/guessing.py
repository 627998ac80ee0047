"""Guesses about files: their kind, and a first mapping from the names of columns and a sample of their values.

A person sees the guess, corrects it and saves it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

from annotation.readers.archives import File, unpacked_files
from annotation.readers.encoding import open_stream
from annotation.readers.items import TURN_PREFIX
from annotation.readers.mapping import Mapping
from annotation.readers.people_columns import RaterColumn, cells_of, columns_called_after_raters, rater_columns
from annotation.readers.problems import FormatError, Problems
from annotation.readers.reading import Sample, guess_layout, join_aligned_files, peek, with_cached_head
from annotation.readers.rows import KEY_COLUMN, SPEAKER_KEYS, TEXT_KEYS, as_written, case_folded, matches_any
from annotation.readers.steps import Digest, PersonScores

Kind = Literal["dataset", "ratings", "verdicts"]
RATER_KEYS = (
    *("rater", "rater_id", "annotator", "annotator_id", "annotator_name", "reviewer", "reviewer_name"),
    *("calibration_reviewer_name", "worker_id", "worker", "coder", "participant_id", "prolific_pid"),
    *("labeler", "labeler_id", "labeller", "labeller_id", "assessor", "assessor_id"),
)
SCORE_KEYS = ("score", "rating_value", "rating", "value", "label")
_ITEM_KEYS = (
    *("external_id", "item_id", "conversation_external_id", "conversation_id", "dialogue_id", "dialog_id", "item"),
    *("segid", "uid", "uuid", "id", "input_hash"),
)
_GENERATOR_KEYS = ("generator", "generator_model", "model", "model_name", "model_id", "system")
_LANGUAGE_KEYS = ("language", "lang", "language_code", "locale")
RATIONALE_KEYS = ("rationale", "explanation", "justification", "reason", "comment")
_CRITERION_KEYS = ("criterion", "rating_category_name", "metric", "dimension", "aspect", "category")
# Field -> the column names that mean this field, the best name first.
_NAMES: dict[Kind, dict[str, tuple[str, ...]]] = {
    "dataset": {
        "id": _ITEM_KEYS,
        "language": _LANGUAGE_KEYS,
        "generator": _GENERATOR_KEYS,
        "scenario": ("scenario", "scenario_id", "scenario_key"),
        "title": ("title", "subject"),
        "turns": ("turns", "messages", "conversation", "dialogue", "dialog", "utterances", "conversations"),
        "context": ("context", "post"),
        "question": ("question", "prompt", "instruction", "query", "user_prompt"),
        "source": ("source", "src", "source_text", "original"),
        "document": ("document", "article"),
        "passages": ("passages",),
        "passage_a": ("passage_a",),
        "passage_b": ("passage_b",),
        "answer": (
            *("answer", "response", "reply", "completion", "output", "translation", "hypothesis"),
            *("summary", "decoded", "prediction", "generated_text", "model_output", "candidate"),
        ),
        "reference": ("reference", "reference_answer"),
        "content_warning": ("content_warning", "warning"),
        "attributes": ("attributes", "_metadata", "metadata", "meta"),
    },
    "ratings": {
        "item": _ITEM_KEYS,
        "rater": RATER_KEYS,
        "criterion": (*_CRITERION_KEYS, "question"),
        "score": (*SCORE_KEYS, "response"),
        "rationale": RATIONALE_KEYS,
        "seconds": ("seconds", "duration_seconds", "lead_time"),
        "evidence": ("evidence",),
        "language": _LANGUAGE_KEYS,
        "scale_max": ("scale_max", "rating_max"),
    },
    "verdicts": {
        "item": _ITEM_KEYS,
        "judge": ("judge", "judge_model", "judge_name", "evaluator", "evaluator_model"),
        "variant": ("variant", "prompt_variant"),
        "criterion": _CRITERION_KEYS,
        "score": SCORE_KEYS,
        "rationale": RATIONALE_KEYS,
        "repeat": ("repeat", "repetition", "run", "trial"),
        "reply": ("reply", "raw_reply", "raw", "raw_response"),
        "prompt": ("judge_prompt",),
        "served_model": ("served_model",),
        "tokens_in": ("tokens_in",),
        "tokens_out": ("tokens_out",),
        "cost": ("cost_usd",),
        "latency": ("latency_seconds",),
        "generator": _GENERATOR_KEYS,
    },
}
# Columns that every file of an export has, and no other files have.
_WRITTEN: dict[Kind, set[str]] = {
    "dataset": {"id", "language", "generator", "scenario", "title", "turns", "content_warning", "attributes"},
    "ratings": {"item", "rater", "criterion", "score", "rationale", "not_applicable", "inclusion_probability"},
    "verdicts": {"item", "judge", "criterion", "score", "rationale", "not_applicable", "inclusion_probability"},
}
# Column names for a text without a stated role: the rated text or, beside a rated text, its source.
_TEXT_NAMES = ("text", "sentence", "content", "utterance", "post_text", "comment_text", "tweet")
# Column names in files with one row per turn.
_TURN_NAMES = {
    "speaker": (*SPEAKER_KEYS, "speaker_role", "participant"),
    "text": (*TEXT_KEYS, "turn_text", "utterance_text", "message_text", "body"),
    "name": ("speaker_name",),
    "number": ("turn", "turn_number", "turn_id", "turn_index", "turn_idx", "utterance_id", "message_index", "position"),
}
_LETTERS = {"G": "grammar", "R": "readability", "C": "coherence", "F": "fluency"}
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LIST_SUFFIX = re.compile(r"_(annotations|ratings|scores|labels)$")


def guess_mapping(
    kind: Kind,
    columns: Sequence[str],
    sample: Iterable[dict[str, Any]] = (),
    criteria: Collection[str] = (),
    labels: Collection[str] = (),
    settled: Collection[str] = (),
) -> Mapping:
    """The mapping that the names of the columns and a sample of their values suggest.

    ``columns`` and ``sample`` come from `reading.peek`: objects are opened one level deep as ``outer.inner``.
    ``criteria`` are the names, case folded, of the criteria in the existing rubrics, ``labels`` those of their points.
    ``settled`` are the columns that a given mapping names. Columns with the scores of one person each are left out of
    items, and become rows of ratings.
    """
    sample = list(sample)
    if sample and (own := _own(kind, sample[0])):
        return Mapping(columns=own)
    rows = [flatten_one_level(fields) for fields in sample]
    key = _text_key(columns, rows) if kind != "verdicts" else ()
    if key:
        return _keyed_by_text(kind, columns, sample, criteria, key)
    known = [column for column in columns if not any(_has_ratings(row.get(column)) for row in rows)]
    guessed = _by_name(kind, known, rows)
    if kind == "verdicts" and sum(letter in columns for letter in _LETTERS) > 1:
        guessed |= {letter: f"score.{key}" for letter, key in _LETTERS.items() if letter in columns}
    if kind != "verdicts":
        left = {*columns}.difference(known)
        guessed |= {column: f"ratings.{_criterion(column)}" for column in columns if column in left}
    counting = _row_numbers(columns, rows)
    if kind == "verdicts":
        guessed |= _by_criterion(guessed, columns, criteria)
        return Mapping(columns=guessed, ignore=(*_unused_key(guessed, columns), *counting))
    free = [column for column in columns if column not in {*guessed, *settled}]
    of_people = () if "rater" in guessed.values() else rater_columns(cells_of(free, rows), criteria, labels)
    if kind == "ratings":
        guessed = _with_likely_criterion(guessed, rows, criteria)
        shape = _people_as_rows(of_people, [column for column in columns if column not in guessed])
        guessed |= _of_step(shape)
        guessed |= _by_criterion(guessed, columns, criteria)
        return Mapping(columns=guessed, ignore=(*_unused_key(guessed, columns), *counting), shape=shape)
    items = _of_items(guessed, columns, rows)
    apart = [found.column for found in of_people if found.column not in items.columns]
    return replace(items, ignore=tuple(dict.fromkeys((*items.ignore, *counting, *apart))))


def _with_likely_criterion(
    guessed: dict[str, str], rows: list[dict[str, Any]], criteria: Collection[str]
) -> dict[str, str]:
    """Without the column `question` as the criterion, unless it has names of criteria or few values beside scores."""
    column = next((name for name, field in guessed.items() if field == "criterion" and _leaf(name) == "question"), "")
    asked = [case_folded(as_written(row.get(column))) for row in rows]
    is_long = {"rater", "score"} <= set(guessed.values()) and 2 * len(set(asked)) <= max(len(asked), 2)
    if not column or is_long or (asked and set(asked) <= set(criteria)):
        return guessed
    return {name: field for name, field in guessed.items() if name != column}


def _people_as_rows(found: Sequence[RaterColumn], columns: Collection[str]) -> tuple[PersonScores, ...]:
    """The step that makes rows of the columns of people; names of other columns are not used again."""
    if not found:
        return ()
    scores = {one.column: one.rater for one in found if not one.is_rationale}
    taken = {*columns}.difference(one.column for one in found)
    names = {name: name if name not in taken else f"{name} of the person" for name in _PERSON_FIELDS}
    return (
        PersonScores(
            scores=scores,
            criteria={one.column: one.criterion for one in found if one.criterion},
            rationales={one.column: one.rater for one in found if one.is_rationale},
            **names,
        ),
    )


_PERSON_FIELDS = ("rater", "criterion", "score", "rationale")


def _of_step(shape: Sequence[PersonScores]) -> dict[str, str]:
    """The fields that the columns of the step give."""
    made = {getattr(step, name): name for step in shape for name in _PERSON_FIELDS}
    return {column: field for column, field in made.items() if field != "rationale" or shape[0].rationales}


TEXT_KEY = "text_key"
"""The column with an identifier made from the texts, if rows of several raters have the same texts."""
RATER_SAMPLE = 5_000
"""Rows that are read if a column names raters, because a file may have all rows of one rater before another's."""


def _text_key(columns: Sequence[str], rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """The columns of the texts, if rows of several raters repeat texts and no id identifies the item of a row.

    An id that differs in each of these rows identifies the row, not the item.
    """
    raters = [column for column in columns if any(_goes_by(column, name) for name in RATER_KEYS)]
    if not raters or TEXT_KEY in columns or any("." in column for column in columns):
        return ()
    guessed = _by_name("dataset", columns, rows)
    items = _with_text({column: field for column, field in guessed.items() if field != "id"}, columns, rows)
    texts = tuple(column for column in columns if items.get(column) in _TEXT_FIELDS and _are_words(column, rows))
    said: dict[tuple[Any, ...], set[str]] = {}
    ids: dict[tuple[Any, ...], set[str]] = {}
    key = next((column for column, field in guessed.items() if field == "id"), None)
    for row in rows:
        words = tuple(row.get(column) for column in texts)
        said.setdefault(words, set()).add("/".join(as_written(row.get(rater)) for rater in raters))
        ids.setdefault(words, set()).add(as_written(row.get(key)) if key else "")
    repeated = [words for words, people in said.items() if len(people) > 1 and any(words)]
    if not texts or not repeated:
        return ()
    is_of_row = key is None or all(len(ids[words]) > 1 for words in repeated)
    return texts if is_of_row else ()


_TEXT_FIELDS = frozenset(
    ("turns", "context", "question", "source", "document", "passage_a", "passage_b", "answer", "reference")
)


def _keyed_by_text(
    kind: Kind, columns: Sequence[str], sample: list[dict[str, Any]], criteria: Collection[str], texts: tuple[str, ...]
) -> Mapping:
    """The mapping of rows that have the ratings of one rater each; the texts identify the item."""
    row_ids = [column for column, field in _by_name("dataset", columns, sample).items() if field == "id"]
    others = [column for column in columns if column not in row_ids]
    shape = (Digest(digest=TEXT_KEY, of=texts),)
    keyed = [{TEXT_KEY: as_written([row.get(column) for column in texts]), **row} for row in sample]
    if kind == "ratings":
        plain = [column for column in others if column not in texts]
        guessed = {TEXT_KEY: "item", **_by_name("ratings", plain, sample)}
        guessed |= _by_criterion(guessed, plain, criteria)
        return Mapping(columns=guessed, ignore=tuple(row_ids), shape=shape)
    items = _of_items({TEXT_KEY: "id", **_by_name("dataset", others, sample)}, [TEXT_KEY, *others], keyed)
    return replace(items, ignore=(*row_ids, *items.ignore), shape=shape)


def _row_numbers(columns: Sequence[str], rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """The first column if it counts the rows from 0: an index that pandas wrote and read as a column."""
    first = next(iter(columns), "")
    numbers = [as_written(row.get(first)) for row in rows] if first == "Unnamed: 0" else []
    return (first,) if numbers and numbers == [str(number) for number in range(len(rows))] else ()


def _unused_key(guessed: dict[str, str], columns: Sequence[str]) -> tuple[str, ...]:
    return (KEY_COLUMN,) if KEY_COLUMN in columns and KEY_COLUMN not in guessed else ()


def _of_items(guessed: dict[str, str], columns: Sequence[str], rows: list[dict[str, Any]]) -> Mapping:
    """The mapping of a dataset, from the fields that were guessed from its column names."""
    if KEY_COLUMN in columns:
        guessed |= _of_key(guessed, rows)
    guessed = _with_id(_with_text(guessed, columns, rows), columns, rows)
    with_turns = _with_turns(guessed, columns, rows)
    theirs = _of_raters(guessed, columns, rows) if with_turns == guessed else ()
    kept = {column: field for column, field in with_turns.items() if column not in theirs}
    # S0's files by generator hold a dialogue without messages, which its counts include.
    empty = kept.get(KEY_COLUMN) == "generator" and "turns" in kept.values()
    ignored = (*_unused_key(guessed, columns), *theirs)
    return Mapping(columns=kept, ignore=ignored, speakers=speakers_in(kept.items(), rows), allow_empty=empty)


def speakers_in(columns: Iterable[tuple[str, str]], rows: list[dict[str, Any]]) -> dict[str, str]:
    """The prefixes that seem to name the speakers in columns with all turns as one text."""
    giving = {column for column, field in columns if field == "turns"}
    texts = [value for row in rows for column in giving if isinstance(value := row.get(column), str) and value]
    return speakers_of(texts)


def _with_id(guessed: dict[str, str], columns: Sequence[str], rows: list[dict[str, Any]]) -> dict[str, str]:
    """Guess the id if no column has a name for ids: the only column ``…_id``, if it differs in every row."""
    called = [column for column in columns if _leaf(column).endswith("_id") and column not in guessed]
    if (
        "id" in guessed.values()
        or len(called) != 1
        or len({as_written(row.get(called[0])) for row in rows}) < len(rows)
    ):
        return guessed
    return {called[0]: "id", **guessed}


def _with_text(guessed: dict[str, str], columns: Sequence[str], rows: list[dict[str, Any]]) -> dict[str, str]:
    """A column of plain text becomes the rated text or, where there is one already, its source document."""
    called = [column for name in _TEXT_NAMES for column in columns if _leaf(column) == name and column not in guessed]
    free = [part for part in ("answer", "document") if part not in guessed.values()]
    if not free or not called or "turns" in guessed.values() or not _are_words(called[0], rows):
        return guessed
    return {**guessed, called[0]: free[0]}


def _are_words(column: str, rows: list[dict[str, Any]]) -> bool:
    return all(isinstance(row.get(column), str | None) for row in rows)


def _by_criterion(guessed: dict[str, str], columns: Sequence[str], criteria: Collection[str]) -> dict[str, str]:
    """If no column names the criterion, columns with the name of a criterion contain the scores on it."""
    if {"criterion", "score"} & set(guessed.values()):
        return {}
    names = {column: column.rpartition(".")[2] for column in columns if column not in guessed}
    return {column: f"score.{name}" for column, name in names.items() if case_folded(name) in criteria}


def _with_turns(guessed: dict[str, str], columns: Sequence[str], rows: list[dict[str, Any]]) -> dict[str, str]:
    """If several rows have the same id and each row has a speaker and a text, the rows are turns."""
    parts = {part: [column for column in columns if _leaf(column) in names] for part, names in _TURN_NAMES.items()}
    if "turns" in guessed.values() or not (parts["speaker"] and parts["text"]):
        return guessed
    differing = [column for column in _varying(guessed, columns, rows) if guessed.get(column) != "language"]
    return {**guessed, **{column: f"{TURN_PREFIX}{_part(column, parts)}" for column in differing}}


def _of_raters(guessed: dict[str, str], columns: Sequence[str], rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """The raters' own columns, if several rows have the same id because several people rated the item."""
    varying = _varying(guessed, columns, rows)
    if not any(_goes_by(column, name) for column in varying for name in RATER_KEYS):
        return ()
    rationales = [column for column in columns for name in RATIONALE_KEYS if _goes_by(column, name)]
    return tuple(column for column in columns if column in {*varying, *rationales})


def _varying(guessed: dict[str, str], columns: Sequence[str], rows: list[dict[str, Any]]) -> list[str]:
    """The columns that differ between rows with the same id."""
    key = next((column for column, field in guessed.items() if field == "id"), None)
    first: dict[str, dict[str, Any]] = {}
    pairs = [(row, first.setdefault(as_written(row.get(key)), row)) for row in rows if key is not None]
    return [column for column in columns if any(row.get(column) != other.get(column) for row, other in pairs)]


def _part(column: str, parts: dict[str, list[str]]) -> str:
    return next((part for part, called in parts.items() if called[:1] == [column]), _leaf(column))


def _own(kind: Kind, fields: dict[str, Any]) -> dict[str, str]:
    """The columns of a file that an export wrote; each column has the name of its field."""
    given = {name: name for name in _NAMES[kind] if name in fields}
    if kind == "verdicts":
        ours = {"prompt_variant": "variant", "judge_prompt": "prompt", "cost_usd": "cost", "latency_seconds": "latency"}
        given |= {column: target for column, target in ours.items() if column in fields}
    return given if _WRITTEN[kind] <= fields.keys() else {}


def flatten_one_level(fields: dict[str, Any]) -> dict[str, Any]:
    """A row with its objects opened one level deep, with column names as in `reading.peek`."""
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        inner = {f"{name}.{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
        flat |= inner
    return flat


def _by_name(kind: Kind, columns: Sequence[str], rows: list[dict[str, Any]]) -> dict[str, str]:
    guessed: dict[str, str] = {}
    for target, names in _NAMES[kind].items():
        if target == "attributes":
            heads = [column.partition(".")[0] for column in columns]
            guessed |= {head: target for head in heads if _plain(head) in names and head not in columns}
            continue
        called = [column for name in names for column in columns if _goes_by(column, name) and column not in guessed]
        fitting = [column for column in called if target != "source" or _is_text(column, rows)]
        guessed |= {column: target for column in fitting if _agree(fitting[0], column, rows)}
    return guessed


def _goes_by(column: str, name: str) -> bool:
    """Whether a column has this name, also if it is written as ``WorkerId`` or ``_worker_id``."""
    return name in _spellings(column)


@lru_cache(maxsize=20_000)
def _spellings(column: str) -> tuple[str, ...]:
    own = column.rpartition(".")[2]
    return (_plain(own), _plain(own).strip("_"), _plain(_CAMEL.sub("_", own)))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", name.strip().lower())


def _leaf(column: str) -> str:
    return _plain(column.rpartition(".")[2])


def _agree(first: str, other: str, rows: list[dict[str, Any]]) -> bool:
    """Whether two columns never differ in the sample: only then do both give the same field."""
    return first == other or (bool(rows) and all(row.get(first) == row.get(other) for row in rows))


def _is_text(column: str, rows: list[dict[str, Any]]) -> bool:
    """Whether a column has sentences rather than codes: `source` may be a source text, or the name of a web site."""
    values = [value for row in rows if isinstance(value := row.get(column), str) and value]
    return not values or any(" " in value or len(value) > 40 for value in values)


def _of_key(guessed: dict[str, str], rows: list[dict[str, Any]]) -> dict[str, str]:
    """The field that the JSON key of records gives: the id if keys are unique, the generator if records share keys."""
    keys = [row.get(KEY_COLUMN) for row in rows]
    if "id" not in guessed.values() and 1 < len(rows) == len(set(keys)):
        return {KEY_COLUMN: "id"}
    columns = [column for column, target in guessed.items() if target == "generator"]
    is_generator = keys == [row.get(columns[0]) for row in rows] if columns else len(set(keys)) > 1
    return {KEY_COLUMN: "generator"} if is_generator else {}


def _has_ratings(value: Any) -> bool:
    """Whether a value is a list of {annotator, value} inside an item."""
    if not isinstance(value, list) or not value or not all(isinstance(part, dict) for part in value):
        return False
    return all(any(key in part for key in RATER_KEYS) and any(key in part for key in SCORE_KEYS) for part in value)


def _criterion(column: str) -> str:
    return _LIST_SUFFIX.sub("", _leaf(column))


FileKind = Literal["dataset", "rubric", "ratings", "verdicts"]
HEAD = 65_536


def guess_kind(files: Sequence[File], given: Mapping | None = None) -> FileKind:
    """The kind of files: a rubric by its shape, verdicts if a judge is named, ratings if a rater is, else a dataset."""
    kinds = list(kinds_of_files(files, given).values())
    if "rubric" in kinds:
        return "rubric"
    return next((kind for kind in kinds if kind != "dataset"), "dataset")


def kinds_of_files(files: Sequence[File], given: Mapping | None = None) -> dict[str, FileKind]:
    """The guessed kind of each file by its name; each file inside a zip has its own kind."""
    return {name: _kind_of(name, raw, given) for name, raw in unpacked_files(files, Problems())}


def _kind_of(name: str, raw: Any, given: Mapping | None) -> FileKind:
    if _is_rubric(name, raw):
        return "rubric"
    given = given or Mapping()
    sample = _sampled(name, raw, _laid(name, guess_layout(name, raw, given), given))
    rows = [row.fields for row in sample.rows]
    if "judge" in guess_mapping("verdicts", sample.columns, rows).columns.values():
        return "verdicts"
    as_ratings, as_items = (guess_mapping(kind, sample.columns, rows) for kind in ("ratings", "dataset"))
    is_rating = {"rater", "item"} <= set(as_ratings.columns.values()) and not _are_turns(as_items)
    if as_ratings.shape and any(isinstance(step, PersonScores) for step in as_ratings.shape):
        is_rating &= _TEXT_FIELDS.isdisjoint(as_items.columns.values())
    return "ratings" if is_rating else "dataset"


def _sampled(name: str, raw: Any, layout: Mapping) -> Sample:
    """The columns and first rows of a file; more rows if it has a column of raters, or one for each."""
    sample = peek(name, raw, layout=layout)
    has_raters = any(_goes_by(column, known) for column in sample.columns for known in RATER_KEYS)
    if has_raters or columns_called_after_raters(sample.columns):
        return peek(name, raw, layout=layout, rows=RATER_SAMPLE)
    return sample


def _are_turns(guessed: Mapping) -> bool:
    return any(field.startswith(TURN_PREFIX) for field in guessed.columns.values())


def _is_rubric(name: str, raw: Any) -> bool:
    if name.lower().endswith((".yaml", ".yml")):
        return True
    try:
        head = open_stream(raw).read(HEAD)
    except FormatError:
        return False  # the reader of the file reports what is wrong
    return name.lower().endswith(".json") and b'"criteria"' in head and b'"source_language"' in head


def propose_mapping(
    kind: Literal["dataset", "ratings", "verdicts"],
    files: Iterable[File],
    given: Mapping,
    criteria: Collection[str] = (),
    labels: Collection[str] = (),
) -> Mapping:
    """The guesses for all files, combined and updated by the ``given`` mapping; the arguments as for `guess_mapping`.

    Pages, API and commands all use this rule. A given field replaces every guess about that field; columns given as
    ignored or unmapped are not guessed. If a proposed mapping is given again, the result is the same mapping.
    """
    guessed, unread = Mapping(), Problems()
    layouts: dict[str, Mapping] = {}
    given_mappings = [given, *given.files.values()]
    ignored = [pattern for part in given_mappings for pattern in part.ignore]
    named = {column for part in given_mappings for column in (*part.columns, *part.unmapped)}
    for file in join_aligned_files(unpacked_files(files, unread), given, unread):
        name, raw = with_cached_head(file, given)
        layouts[name] = guess_layout(name, raw, given)
        sample = _sampled(name, raw, _laid(name, layouts[name], given))
        rows = [row.fields for row in sample.rows]
        settled = {column for column in sample.columns if column in named or matches_any(column, ignored)}
        mapping = guess_mapping(kind, sample.columns, rows, criteria, labels, settled)
        spoken = speakers_in({*mapping.columns.items(), *given.of(name).columns.items()}, rows)
        guessed = guessed.updated(replace(mapping, speakers=mapping.speakers or spoken))
    settled_fields = {field for part in given_mappings for field in (*part.columns.values(), *part.constants)}
    kept = {
        column: field
        for column, field in guessed.columns.items()
        if field not in settled_fields and column not in named and not matches_any(column, ignored)
    }
    left_out = [column for part in (guessed, *layouts.values()) for column in part.ignore if column not in named]
    ignore = dict.fromkeys([*given.ignore, *left_out])
    speakers = {} if given.speakers else guessed.speakers
    laid = _together(layouts).updated(replace(guessed, columns=kept, speakers=speakers)).updated(given)
    return replace(laid, ignore=tuple(ignore))


def _laid(name: str, guessed: Mapping, given: Mapping) -> Mapping:
    """The layout of one file, from the given and the guessed mapping."""
    here = given.of(name)
    return replace(guessed.updated(here), ignore=(*guessed.ignore, *here.ignore), files=given.files)


def _together(layouts: dict[str, Mapping]) -> Mapping:
    """The layouts guessed for several files as one mapping: common settings, or settings by file name."""
    if len({str(layout.as_dict()) for layout in layouts.values()}) <= 1:
        return next(iter(layouts.values()), Mapping())
    plain = {name.rpartition("/")[2]: layout for name, layout in layouts.items()}
    return Mapping(files={name: layout for name, layout in plain.items() if layout != Mapping() and "{" not in name})


def without_absent_columns(files: Iterable[File], given: Mapping) -> Mapping:
    """The mapping without the columns that the files do not have if they are read in its present layout; unchanged if
    they can't be read in it."""
    columns: set[str] = set()
    for name, raw in unpacked_files(files, Problems()):
        columns.update(peek(name, raw, layout=given).columns)
    there = columns | {column.partition(".")[0] for column in columns}
    if not there:
        return given
    return replace(
        given,
        columns={column: field for column, field in given.columns.items() if _is_in(column, there)},
        ignore=tuple(column for column in given.ignore if "*" in column or _is_in(column, there)),
        unmapped=tuple(column for column in given.unmapped if _is_in(column, there)),
    )


def _is_in(column: str, there: Collection[str]) -> bool:
    return column in there or column.partition(".")[0] in there


_PREFIX = re.compile(r"^([^\W\d_][^:\n]{0,24}):(?=\s|$)", re.MULTILINE)


def speakers_of(texts: Sequence[str]) -> dict[str, str]:
    """The prefixes that seem to name speakers: they are at the start of lines in at least half of the texts."""
    inside = Counter(prefix for text in texts for prefix in {match[1] for match in _PREFIX.finditer(text)})
    speakers = {prefix: prefix.lower() for prefix, count in inside.items() if 2 * count >= len(texts)}
    begin = all((match := _PREFIX.match(text)) and match[1] in speakers for text in texts)
    return speakers if begin and len(speakers) > 1 and len(texts) > 1 else {}
