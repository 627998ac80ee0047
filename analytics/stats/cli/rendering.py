"""Estimates as text: a table to read, JSON or CSV to compute with."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from analytics.stats.core.estimate import COLUMNS, CellEstimate

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMATS = ("table", "json", "csv")


def rendered_estimates(estimates: Sequence[CellEstimate], form: str, provenance: dict[str, Any]) -> str:
    """The estimates in one of ``FORMATS``, ending in a newline."""
    rows = [estimate.as_row() for estimate in estimates]
    if form == "json":
        document = {"estimates": rows, "provenance": provenance}
        return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    return _as_csv(rows) if form == "csv" else _as_table(rows)


def _as_csv(rows: Sequence[dict[str, Any]]) -> str:
    columns = list(COLUMNS) + [
        name for name in dict.fromkeys(name for row in rows for name in row) if name not in COLUMNS
    ]
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _field(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def _field(value: Any) -> Any:
    """A CSV field: lists joined by commas; text that a spreadsheet would run as a formula gets a quote before it."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value


HEADINGS = ("cell", "statistic", "value", "se", "interval", "p", "items x raters", "missing", "method", "remarks")


def _as_table(rows: Sequence[dict[str, Any]]) -> str:
    """One line per estimate: where, what, value and its error, interval and how it was made, p, counts, remarks.

    Columns that no row fills are left out; the scales stand below.
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
    """Each scale once, under the criterion's name where there are several."""
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
    """How the interval was made, and at which confidence where that is not .95."""
    level = "" if row["confidence"] in (None, 0.95) else f"{row['confidence']:.0%} "
    whom = f"; for {row['speaks_for']}" if row["speaks_for"] else ""
    return f"{level}{row['method'] or ''}{whom}"


def _small(number: float | None) -> str:
    """An error or a p: four decimals, or two digits that count where these would be 0."""
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
