"""Read files: bytes -> rows, or problems with file, line and column. Pure. The facade for all other packages.

``from annotation.readers import Mapping, peek`` loads the module of each name on first use and no other. Modules
outside of this package import from here only (a contract of import-linter).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annotation.readers.answers import as_answer
    from annotation.readers.archives import (
        File,
        UnpackBounds,
        UnpackedBytes,
        is_compressed,
        is_not_data,
        unpacked_files,
    )
    from annotation.readers.columns import ColumnFacts, TableFacts
    from annotation.readers.documents import plain_document
    from annotation.readers.encoding import ENCODINGS, codec_called, open_stream
    from annotation.readers.evidence import (
        MOST_SPANS,
        Span,
        as_spans,
        field_text,
        item_texts,
        located_span,
        span_fault,
        spans_as_json,
    )
    from annotation.readers.file_types.parquet import parquet_is_installed
    from annotation.readers.guessing import (
        guess_kind,
        guess_mapping,
        kinds_of_files,
        propose_mapping,
        without_absent_columns,
    )
    from annotation.readers.items import NAMED_FIELDS, TURNS_COLUMN, ItemRow, ParsedItems, content_digest, parse_items
    from annotation.readers.json import require_storable
    from annotation.readers.mapping import Mapping, is_unnamed, note_on_rater_addresses
    from annotation.readers.people_columns import (
        RaterColumn,
        columns_called_after_raters,
        possible_rater_columns,
        rater_columns,
    )
    from annotation.readers.problems import (
        MOST_LISTED,
        FormatError,
        InvalidValue,
        Problem,
        Problems,
        Progress,
        Report,
        ShareProgress,
        TwoStepProgress,
        did_you_mean,
        excerpt,
        kind_of_problem,
        loose_key,
        most_frequent,
        nearest_name,
        progress_between,
        shortened_list,
    )
    from annotation.readers.ratings import (
        ParsedAnswers,
        RatingRow,
        VerdictRequest,
        VerdictRow,
        parse_ratings,
        parse_verdicts,
    )
    from annotation.readers.reading import (
        ABSENT,
        ADDED,
        MARKS_COLUMN,
        first_lines,
        peek,
        sheet_names,
        with_cached_head,
    )
    from annotation.readers.rows import as_language, as_written, case_folded, is_with_decimal_comma, set_bounds
    from annotation.readers.rubric import (
        CriterionDocument,
        ParsedRubric,
        RubricDocument,
        TextByLanguage,
        is_on_scale,
        parse_rubric,
        plain_number,
        rubric_from_dict,
        scale_in_words,
    )
    from annotation.readers.score_words import likely_score
    from annotation.readers.spool import PartitionedRows, PlainRow, Spool, rare_garbage_collection
    from annotation.readers.steps import PersonScores
    from annotation.readers.studies import (
        KnownStudy,
        StudyImport,
        known_studies,
        ready_mapping,
        recognise,
        with_constants,
        with_inferred_rubrics,
    )
    from annotation.readers.taxonomy import (
        RuleSample,
        TaxonomyDocument,
        TaxonomyNode,
        TaxonomyRule,
        names_in_items,
        parse_taxonomy,
        taxonomy_from_dict,
    )
    from annotation.readers.words import Field, Setting, Words, joined_words, read_words, with_words, words_by_text

__all__ = [
    "ABSENT",
    "ADDED",
    "ENCODINGS",
    "MARKS_COLUMN",
    "MOST_LISTED",
    "MOST_SPANS",
    "NAMED_FIELDS",
    "TURNS_COLUMN",
    "ColumnFacts",
    "CriterionDocument",
    "Field",
    "File",
    "FormatError",
    "InvalidValue",
    "ItemRow",
    "KnownStudy",
    "Mapping",
    "ParsedAnswers",
    "ParsedItems",
    "ParsedRubric",
    "PartitionedRows",
    "PersonScores",
    "PlainRow",
    "Problem",
    "Problems",
    "Progress",
    "RaterColumn",
    "RatingRow",
    "Report",
    "RubricDocument",
    "RuleSample",
    "Setting",
    "ShareProgress",
    "Span",
    "Spool",
    "StudyImport",
    "TableFacts",
    "TaxonomyDocument",
    "TaxonomyNode",
    "TaxonomyRule",
    "TextByLanguage",
    "TwoStepProgress",
    "UnpackBounds",
    "UnpackedBytes",
    "VerdictRequest",
    "VerdictRow",
    "Words",
    "as_answer",
    "as_language",
    "as_spans",
    "as_written",
    "case_folded",
    "codec_called",
    "columns_called_after_raters",
    "content_digest",
    "did_you_mean",
    "excerpt",
    "field_text",
    "first_lines",
    "guess_kind",
    "guess_mapping",
    "is_compressed",
    "is_not_data",
    "is_on_scale",
    "is_unnamed",
    "is_with_decimal_comma",
    "item_texts",
    "joined_words",
    "kind_of_problem",
    "kinds_of_files",
    "known_studies",
    "likely_score",
    "located_span",
    "loose_key",
    "most_frequent",
    "names_in_items",
    "nearest_name",
    "note_on_rater_addresses",
    "open_stream",
    "parquet_is_installed",
    "parse_items",
    "parse_ratings",
    "parse_rubric",
    "parse_taxonomy",
    "parse_verdicts",
    "peek",
    "plain_document",
    "plain_number",
    "possible_rater_columns",
    "progress_between",
    "propose_mapping",
    "rare_garbage_collection",
    "rater_columns",
    "read_words",
    "ready_mapping",
    "recognise",
    "require_storable",
    "rubric_from_dict",
    "scale_in_words",
    "set_bounds",
    "sheet_names",
    "shortened_list",
    "span_fault",
    "spans_as_json",
    "taxonomy_from_dict",
    "unpacked_files",
    "with_cached_head",
    "with_constants",
    "with_inferred_rubrics",
    "with_words",
    "without_absent_columns",
    "words_by_text",
]

_MODULES = {
    "answers": ("as_answer",),
    "archives": (
        "File",
        "UnpackBounds",
        "UnpackedBytes",
        "is_compressed",
        "is_not_data",
        "unpacked_files",
    ),
    "columns": (
        "ColumnFacts",
        "TableFacts",
    ),
    "documents": ("plain_document",),
    "encoding": (
        "ENCODINGS",
        "codec_called",
        "open_stream",
    ),
    "evidence": (
        "MOST_SPANS",
        "Span",
        "as_spans",
        "field_text",
        "item_texts",
        "located_span",
        "span_fault",
        "spans_as_json",
    ),
    "guessing": (
        "guess_kind",
        "guess_mapping",
        "kinds_of_files",
        "propose_mapping",
        "without_absent_columns",
    ),
    "items": (
        "ItemRow",
        "NAMED_FIELDS",
        "ParsedItems",
        "TURNS_COLUMN",
        "content_digest",
        "parse_items",
    ),
    "json": ("require_storable",),
    "mapping": ("Mapping", "is_unnamed", "note_on_rater_addresses"),
    "file_types.parquet": ("parquet_is_installed",),
    "problems": (
        "FormatError",
        "InvalidValue",
        "MOST_LISTED",
        "Problem",
        "Problems",
        "Progress",
        "Report",
        "ShareProgress",
        "TwoStepProgress",
        "did_you_mean",
        "excerpt",
        "kind_of_problem",
        "loose_key",
        "most_frequent",
        "nearest_name",
        "progress_between",
        "shortened_list",
    ),
    "ratings": (
        "ParsedAnswers",
        "RatingRow",
        "VerdictRequest",
        "VerdictRow",
        "parse_ratings",
        "parse_verdicts",
    ),
    "people_columns": ("RaterColumn", "columns_called_after_raters", "possible_rater_columns", "rater_columns"),
    "reading": (
        "ABSENT",
        "ADDED",
        "MARKS_COLUMN",
        "first_lines",
        "peek",
        "sheet_names",
        "with_cached_head",
    ),
    "score_words": ("likely_score",),
    "rows": ("as_language", "as_written", "case_folded", "is_with_decimal_comma", "set_bounds"),
    "rubric": (
        "CriterionDocument",
        "ParsedRubric",
        "RubricDocument",
        "TextByLanguage",
        "is_on_scale",
        "parse_rubric",
        "plain_number",
        "rubric_from_dict",
        "scale_in_words",
    ),
    "spool": (
        "PartitionedRows",
        "PlainRow",
        "Spool",
        "rare_garbage_collection",
    ),
    "studies": (
        "KnownStudy",
        "StudyImport",
        "known_studies",
        "ready_mapping",
        "recognise",
        "with_constants",
        "with_inferred_rubrics",
    ),
    "steps": ("PersonScores",),
    "taxonomy": (
        "RuleSample",
        "TaxonomyDocument",
        "TaxonomyNode",
        "TaxonomyRule",
        "names_in_items",
        "parse_taxonomy",
        "taxonomy_from_dict",
    ),
    "words": ("Field", "Setting", "Words", "joined_words", "read_words", "with_words", "words_by_text"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """One of ``__all__``, its module loaded on first use (PEP 562)."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
