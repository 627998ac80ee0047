"""Files as they come: bytes -> rows, or errors with file, line and column. Pure. What other packages need is here.

``from annotation.readers import Mapping, peek`` loads the module of each name on first use and no other. Modules
outside of this package import from here only (a contract of import-linter).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from annotation.readers.answers import as_answer
    from annotation.readers.bounds import set_bounds
    from annotation.readers.codepages import CHOICES as ENCODINGS
    from annotation.readers.codepages import codec_called
    from annotation.readers.columnar import is_installed as parquet_is_installed
    from annotation.readers.columns import ColumnFacts, Facts
    from annotation.readers.containers import File, is_no_data, is_packed, members
    from annotation.readers.encoding import opened
    from annotation.readers.fields import as_language, folded, written
    from annotation.readers.garbage import seldom_collected
    from annotation.readers.gathering import COLUMN as TURNS_COLUMN
    from annotation.readers.guessing import guess
    from annotation.readers.headings import about_raters
    from annotation.readers.items import NAMED_FIELDS, ItemRow, ParsedItems, content_digest, parse_items
    from annotation.readers.jsontext import require_storable
    from annotation.readers.mapping import Mapping
    from annotation.readers.marks import ABSENT, ADDED, FORMULA_STARTS, MARKS
    from annotation.readers.nearness import hint, loosely, nearest
    from annotation.readers.problems import FormatError, Problem, Problems, Unfit, excerpt
    from annotation.readers.progress import Halves, Progress, Told, between
    from annotation.readers.proposing import guess_kind, kinds_within, propose, still_there
    from annotation.readers.ratings import ParsedRatings, RatingRow, parse_ratings
    from annotation.readers.reading import first_lines, peek, sheet_names
    from annotation.readers.report import MOST_NAMED, Report, found, named
    from annotation.readers.rubric import parse_rubric, rubric_from_dict
    from annotation.readers.rubric_document import CriterionDocument, RubricDocument, Words, is_on_scale, plain
    from annotation.readers.scales import in_words
    from annotation.readers.shelves import Shelves
    from annotation.readers.spool import Plain, Spool
    from annotation.readers.studies import Study, StudyImport, recognise, settled, with_constants
    from annotation.readers.studies import studies as known_studies
    from annotation.readers.unnamed import is_unnamed
    from annotation.readers.verdicts import ParsedVerdicts, VerdictRow, parse_verdicts

__all__ = [
    "ABSENT",
    "ADDED",
    "ENCODINGS",
    "FORMULA_STARTS",
    "MARKS",
    "MOST_NAMED",
    "NAMED_FIELDS",
    "TURNS_COLUMN",
    "ColumnFacts",
    "CriterionDocument",
    "Facts",
    "File",
    "FormatError",
    "Halves",
    "ItemRow",
    "Mapping",
    "ParsedItems",
    "ParsedRatings",
    "ParsedVerdicts",
    "Plain",
    "Problem",
    "Problems",
    "Progress",
    "RatingRow",
    "Report",
    "RubricDocument",
    "Shelves",
    "Spool",
    "Study",
    "StudyImport",
    "Told",
    "Unfit",
    "VerdictRow",
    "Words",
    "about_raters",
    "as_answer",
    "as_language",
    "between",
    "codec_called",
    "content_digest",
    "excerpt",
    "first_lines",
    "folded",
    "found",
    "guess",
    "guess_kind",
    "hint",
    "in_words",
    "is_no_data",
    "is_on_scale",
    "is_packed",
    "is_unnamed",
    "kinds_within",
    "known_studies",
    "loosely",
    "members",
    "named",
    "nearest",
    "opened",
    "parquet_is_installed",
    "parse_items",
    "parse_ratings",
    "parse_rubric",
    "parse_verdicts",
    "peek",
    "plain",
    "propose",
    "recognise",
    "require_storable",
    "rubric_from_dict",
    "seldom_collected",
    "set_bounds",
    "settled",
    "sheet_names",
    "still_there",
    "with_constants",
    "written",
]

_PLACES = {
    "ABSENT": "marks",
    "ADDED": "marks",
    "ColumnFacts": "columns",
    "CriterionDocument": "rubric_document",
    "ENCODINGS": "codepages:CHOICES",
    "FORMULA_STARTS": "marks",
    "Facts": "columns",
    "File": "containers",
    "FormatError": "problems",
    "Halves": "progress",
    "ItemRow": "items",
    "MARKS": "marks",
    "MOST_NAMED": "report",
    "Mapping": "mapping",
    "NAMED_FIELDS": "items",
    "ParsedItems": "items",
    "ParsedRatings": "ratings",
    "ParsedVerdicts": "verdicts",
    "Plain": "spool",
    "Problem": "problems",
    "Problems": "problems",
    "Progress": "progress",
    "RatingRow": "ratings",
    "Report": "report",
    "RubricDocument": "rubric_document",
    "Shelves": "shelves",
    "Spool": "spool",
    "Study": "studies",
    "StudyImport": "studies",
    "TURNS_COLUMN": "gathering:COLUMN",
    "Told": "progress",
    "Unfit": "problems",
    "VerdictRow": "verdicts",
    "Words": "rubric_document",
    "about_raters": "headings",
    "as_answer": "answers",
    "as_language": "fields",
    "between": "progress",
    "codec_called": "codepages",
    "content_digest": "items",
    "excerpt": "problems",
    "first_lines": "reading",
    "folded": "fields",
    "found": "report",
    "guess": "guessing",
    "guess_kind": "proposing",
    "hint": "nearness",
    "in_words": "scales",
    "is_no_data": "containers",
    "is_on_scale": "rubric_document",
    "is_packed": "containers",
    "is_unnamed": "unnamed",
    "kinds_within": "proposing",
    "known_studies": "studies:studies",
    "loosely": "nearness",
    "members": "containers",
    "named": "report",
    "nearest": "nearness",
    "opened": "encoding",
    "parquet_is_installed": "columnar:is_installed",
    "parse_items": "items",
    "parse_ratings": "ratings",
    "parse_rubric": "rubric",
    "parse_verdicts": "verdicts",
    "peek": "reading",
    "plain": "rubric_document",
    "propose": "proposing",
    "recognise": "studies",
    "require_storable": "jsontext",
    "rubric_from_dict": "rubric",
    "seldom_collected": "garbage",
    "set_bounds": "bounds",
    "settled": "studies",
    "sheet_names": "reading",
    "still_there": "proposing",
    "with_constants": "studies",
    "written": "fields",
}
"""Module of each name in this package, and its name there where it is another one."""


def __getattr__(name: str) -> Any:
    """One of ``__all__``, its module loaded on first use (PEP 562)."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, inside = _PLACES[name].partition(":")
    found = getattr(import_module(f"{__name__}.{module}"), inside or name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
