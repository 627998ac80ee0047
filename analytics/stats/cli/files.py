"""Reads files of ratings into frames (CSV, TSV, JSONL, Parquet; with the line of every record), and writes estimates as
text.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from analytics.stats.core.estimates import COLUMNS, CellEstimate
from analytics.stats.core.identifiers import normal_identifier
from analytics.stats.core.spreadsheets import harmless
from analytics.stats.core.tables import TableError, TableProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

# --- files of ratings -------------------------------------------------------------------------------------------------


Quoting = Literal[0, 3]
"""csv.QUOTE_MINIMAL or csv.QUOTE_NONE."""
Lines = Callable[[int], int]
"""Maps a record's 0-based position in the frame to the 1-based line of the file on which the record starts."""


MOST_DIGITS = 300

csv.field_size_limit(sys.maxsize)  # a dialogue in a cell is longer than the module's 131,072 characters


class RatingsFile:
    """One file: the digest of its bytes, its records as text, and the line of each record."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.content = self.path.read_bytes()

    @property
    def sha256(self) -> str:
        """Digest of the file's bytes."""
        return hashlib.sha256(self.content).hexdigest()

    def frame(self) -> tuple[pd.DataFrame, Lines]:
        """The records with the file's own column names, and the line of each."""
        readers = {".csv": self._csv, ".tsv": self._tsv, ".jsonl": self._jsonl, ".parquet": self._parquet}
        if reader := readers.get(self.path.suffix.lower()):
            frame, lines = reader()
            if frame.empty:
                raise TableError([TableProblem(None, "the file holds no rows")])
            return frame, lines
        raise TableError([TableProblem(None, "the file name should end in .csv, .tsv, .jsonl or .parquet")])

    def _text(self) -> str:
        """The file's text. Carriage returns alone end lines only if the file has no other line ends."""
        try:
            text = self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.content[: error.start].count(b"\n") + 1
            raise BrokenRowsError([(line, "is not UTF-8 text")]) from error
        if "\0" in text:
            broken = [number for number, line in enumerate(text.split("\n"), start=1) if "\0" in line]
            raise BrokenRowsError([(number, "holds a NUL byte: is it text?") for number in broken])
        return text if "\n" in text else text.replace("\r", "\n")

    def _csv(self) -> tuple[pd.DataFrame, Lines]:
        """Read a file with commas, or with semicolons, which spreadsheets write if the comma is the decimal mark."""
        text = self._text()
        header = text.partition("\n")[0]
        return _delimited(text, ";" if ";" in header and "," not in header else ",", csv.QUOTE_MINIMAL)

    def _tsv(self) -> tuple[pd.DataFrame, Lines]:
        """Quotes are text in a TSV file, unless its header is quoted."""
        text = self._text()
        return _delimited(text, "\t", csv.QUOTE_MINIMAL if text.startswith('"') else csv.QUOTE_NONE)

    def _jsonl(self) -> tuple[pd.DataFrame, Lines]:
        import pandas as pd

        records, places, broken = [], [], []
        text = self._text()
        if text.lstrip().startswith("["):
            raise BrokenRowsError([(1, "is a JSON list: write each of its objects on a line of its own")])
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                records.append(_json_object(line))
                places.append(number)
            except ValueError as error:
                broken.append((number, str(error)))
        if broken:
            raise BrokenRowsError(broken)
        frame = pd.DataFrame(records, dtype=object)
        return frame.map(_json_text), lambda row: places[row]

    def _parquet(self) -> tuple[pd.DataFrame, Lines]:
        import pandas as pd

        try:
            frame = pd.read_parquet(io.BytesIO(self.content))
            frame = frame.rename(columns=lambda name: normal_identifier(str(name)))
        except ImportError as error:
            raise TableError(
                [TableProblem(None, "reading Parquet needs pyarrow: pip install 'panelbench[parquet]'")]
            ) from error
        except Exception as error:  # pyarrow has no common parent for what a broken file raises
            raise TableError([TableProblem(None, f"is not a Parquet file: {error}")]) from error
        if not frame.columns.is_unique:
            raise TableError([TableProblem(None, "two columns have the same name")])
        return frame, lambda row: row + 1


class BrokenRowsError(ValueError):
    """Lines that can't be read as records, as (1-based line, what is wrong)."""

    def __init__(self, broken: list[tuple[int, str]]) -> None:
        super().__init__(f"{len(broken)} broken lines")
        self.broken = broken


def renamed(frame: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """The frame with its columns under the table's names: ``names`` maps item, rater, ... to the file's own."""
    if absent := [
        f"the column {own!r} (given by --{name}) is missing" for name, own in names.items() if own not in frame
    ]:
        raise TableError([TableProblem(None, message) for message in absent])
    shadowed = [name for name, own in names.items() if name != own and name in frame.columns]
    twice = {name: frame[own] for place, (name, own) in enumerate(names.items()) if own in list(names.values())[:place]}
    once = {own: name for name, own in names.items() if name not in twice}
    return frame.drop(columns=[*shadowed]).rename(columns=once).assign(**twice)


def known_columns(frame: pd.DataFrame, by: Sequence[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """The columns of --by with the table's names; a person may write the table's names or the file's names."""
    columns = tuple(next((name for name, own in names.items() if own == column), column) for column in by)
    if absent := [column for column in columns if column not in frame]:
        raise TableError([TableProblem(None, f"the column {column!r} (given by --by) is missing") for column in absent])
    return columns


def with_normal_names(frame: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Normalise the texts in the --by columns in the same way as identifiers, because they name cells."""
    texts = {column: frame[column] for column in by if frame[column].dtype == object}
    spelt = {
        column: {text: normal_identifier(text) for text in values.unique() if isinstance(text, str)}
        for column, values in texts.items()
    }
    changed = {c: texts[c].map(names) for c, names in spelt.items() if any(a != b for a, b in names.items())}
    return frame.assign(**changed) if changed else frame


def _delimited(text: str, delimiter: str, quoting: Quoting) -> tuple[pd.DataFrame, Lines]:
    """Read records with pandas' parser; the slower csv module finds line numbers only if quoted cells span lines."""
    import pandas as pd

    header = next(csv.reader(io.StringIO(text), delimiter=delimiter, quoting=quoting), None)
    if not header:
        raise TableError([TableProblem(None, "the file is empty")])
    header = [normal_identifier(name) for name in header]
    if len(set(header)) != len(header):
        raise TableError([TableProblem(None, "two columns have the same name")])
    _refuse_ragged(text, delimiter, quoting, len(header))
    frame = pd.read_csv(io.StringIO(text), sep=delimiter, quoting=quoting, names=header, header=0, dtype=str,
                        keep_default_na=False, na_filter=False, index_col=False, engine="c")  # fmt: skip
    return frame.apply(_repeated_once), _Starts(text, delimiter, quoting)


def _repeated_once(column: pd.Series[Any]) -> pd.Series[Any]:
    """Text as Python strings; equal texts share one string: a million ratings name few items, raters and criteria."""
    import pandas as pd

    codes, names = pd.factorize(column)
    return pd.Series(names.to_numpy(dtype=object)[codes], index=column.index, dtype=object)


def _is_regular(text: str, delimiter: str, width: int) -> bool:
    """Whether every line has the delimiters of ``width`` fields; reads the bytes once instead of line by line."""
    import numpy as np

    content = np.frombuffer((text if text.endswith("\n") else text + "\n").encode(), dtype=np.uint8)
    ends = np.searchsorted(np.flatnonzero(content == ord(delimiter)), np.flatnonzero(content == ord("\n")))
    return bool((np.diff(ends, prepend=0) == width - 1).all())


def _refuse_ragged(text: str, delimiter: str, quoting: Quoting, width: int) -> None:
    """Refuse records with too few or too many fields, or a quote that never closes."""
    if quoting == csv.QUOTE_NONE or '"' not in text:
        if _is_regular(text, delimiter, width):
            return
        rows = text.split("\n")
        broken = [
            (number, f"has {row.count(delimiter) + 1} fields, the header has {width}")
            for number, row in enumerate(rows, start=1)
            if row.strip("\r") and row.count(delimiter) != width - 1
        ]
    else:
        broken = _ragged_quoted(text, delimiter, width)
    if broken:
        raise BrokenRowsError(broken)


def _ragged_quoted(text: str, delimiter: str, width: int) -> list[tuple[int, str]]:
    broken, start = [], 1
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for fields in reader:
            if fields and len(fields) != width:
                broken.append((start, f"has {len(fields)} fields, the header has {width}"))
            start = reader.line_num + 1
    except csv.Error as error:
        broken.append((start, f"is broken: {error}"))
    return broken


class _Starts:
    """The first line of each record, computed only when it is needed."""

    def __init__(self, text: str, delimiter: str, quoting: Quoting) -> None:
        self.text, self.delimiter, self.quoting = text, delimiter, quoting
        self.starts: list[int] | None = None

    def __call__(self, row: int) -> int:
        if self.starts is None:
            self.starts = self._found()
        return self.starts[row]

    def _found(self) -> list[int]:
        starts, line = [], 1
        reader = csv.reader(io.StringIO(self.text, newline=""), delimiter=self.delimiter, quoting=self.quoting)
        for fields in reader:
            if fields:
                starts.append(line)
            line = reader.line_num + 1
        return starts[1:]


def _json_object(line: str) -> dict[str, Any]:
    """The record of a line; ``ValueError`` says what is wrong with it, to follow its number."""
    try:
        record = json.loads(line, object_pairs_hook=_named_once, parse_int=_whole)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg}") from error
    except RecursionError as error:
        raise ValueError("holds lists within lists without end") from error
    if not isinstance(record, dict):
        raise ValueError("is not a JSON object")
    if "\\u" in line and not _is_whole(record):
        raise ValueError("holds half a character (a surrogate without its other half)")
    return _named_once([(normal_identifier(name), value) for name, value in record.items()])


def _whole(digits: str) -> int | str:
    """A whole number; a number with too many digits for computing stays text."""
    return int(digits) if len(digits) < MOST_DIGITS else digits


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"gives {next(name for name in names if names.count(name) > 1)!r} twice")
    return record


def _is_whole(record: dict[str, Any]) -> bool:
    try:
        json.dumps(record, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _json_text(value: Any) -> Any:
    """JSON values as the text in an equivalent CSV file; null and an absent key are empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, (dict, list, bool)):
        return json.dumps(value, ensure_ascii=False)
    return value


# --- estimates as text ------------------------------------------------------------------------------------------------


FORMATS = ("table", "json", "csv")


def rendered_estimates(estimates: Sequence[CellEstimate], form: str, provenance: dict[str, Any]) -> str:
    """The estimates in one of ``FORMATS``, ending in a newline."""
    return rendered_rows([estimate.as_row() for estimate in estimates], form, {"provenance": provenance})


def rendered_rows(rows: Sequence[dict[str, Any]], form: str, more: dict[str, Any] | None = None) -> str:
    """Rows of estimates (``CellEstimate.as_row``) in one of ``FORMATS``; JSON also has ``more``."""
    if form == "json":
        document = {"estimates": rows, **(more or {})}
        return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    return _as_csv(rows) if form == "csv" else _as_table(rows)


def _as_csv(rows: Sequence[dict[str, Any]]) -> str:
    columns = list(COLUMNS) + [
        name for name in dict.fromkeys(name for row in rows for name in row) if name not in COLUMNS
    ]
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writerow({name: _field(name) for name in columns})
    writer.writerows({name: _field(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def _field(value: Any) -> Any:
    """A CSV field: lists joined by commas; text that a spreadsheet would run as a formula gets a quote before it."""
    if isinstance(value, list):
        value = ",".join(map(str, value))
    return harmless(value) if isinstance(value, str) else value


HEADINGS = ("cell", "statistic", "value", "se", "interval", "p", "items x raters", "missing", "method", "remarks")


def _as_table(rows: Sequence[dict[str, Any]]) -> str:
    """One line per estimate: cell, statistic, value and its error, interval and its method, p, counts, remarks.

    Columns that are empty in all rows are left out; the scales follow below the table.
    """
    if not rows:
        return "nothing to show\n"
    lines = [_line(row) for row in rows]
    kept = [column for column, name in enumerate(HEADINGS) if name == "value" or any(line[column] for line in lines)]
    shown = [[line[column] for column in kept] for line in (HEADINGS, *lines)]
    widths = [max(len(line[column]) for line in shown) for column in range(len(kept))]
    widths[-1] = 0
    text = "".join(
        "  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip() + "\n" for line in shown
    )
    return text + "".join(f"{line}\n" for line in _scales(rows))


def _scales(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Each scale once, with the criterion's name if there are several scales."""
    scales = {(row["criterion"], row["scale"]): None for row in rows if row.get("scale")}
    return [f"scale{f' of {name}' if name else ''}: {scale}" for name, scale in scales]


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    value = "undefined" if row["value"] is None else f"{row['value']:.4f}"
    interval = "" if row["low"] is None else f"[{row['low']:.4f}, {row['high']:.4f}]"
    method = "" if row["low"] is None else _method(row)
    clusters = row["n_clusters"] or row["n_items"]
    within = "" if clusters == row["n_items"] else f" in {clusters} clusters"
    size = f"{row['n_items']}{within} x {row['n_raters']}"
    missing = str(row["n_missing"]) if row["n_missing"] else ""
    remarks = "; ".join(row[name] for name in ("reason", "interval_reason", "note") if row.get(name))
    return _where(row), _what(row), value, _small(row["se"]), interval, _small(row["p"]), size, missing, method, remarks


def _method(row: dict[str, Any]) -> str:
    """The method of the interval, and its confidence if this is not .95."""
    level = "" if row["confidence"] in (None, 0.95) else f"{row['confidence']:.0%} "
    whom = f"; for {row['speaks_for']}" if row["speaks_for"] else ""
    return f"{level}{row['method'] or ''}{whom}"


def _small(number: float | None) -> str:
    """An error or a p: four decimals, or two significant digits if four decimals would be 0."""
    if number is None:
        return ""
    return f"{number:.4f}" if number == 0 or abs(number) >= 0.0001 else f"{number:.1e}"


def _where(row: dict[str, Any]) -> str:
    counted = ("seed", "undefined_share", "interval_reason", "note", "n_clusters", "speaks_for", "scale")
    fixed = {*COLUMNS, *counted} - {"language", "criterion", "generator"}
    parts = [str(value) for name, value in row.items() if name not in fixed and value]
    return " / ".join(parts) or "all"


def _what(row: dict[str, Any]) -> str:
    names = [row["statistic"], row["variant"] and f"({row['variant']})"]
    names += [row[column] and " ~ ".join(row[column]) for column in ("raters", "languages")]
    names += [row["judge"], row["annotator"] and f"without {row['annotator']}" if LEFT_OUT in (row.get("note") or "")
              else row["annotator"], row["reference"] and f"vs {row['reference']}"]  # fmt: skip
    return " ".join(str(name) for name in names if name)


LEFT_OUT = "this annotator left out"
