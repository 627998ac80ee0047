"""What a database is made of, as lines of text: columns, constraints, indexes, triggers, extensions.

The order of columns is left out, and the names that Django makes up for foreign keys and indexes: it keeps them when a
table or a column is renamed.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg

from tests.releases.databases import SQLITE

MADE_UP = re.compile(r'"?\b\w+_[0-9a-f]{8}(_(uniq|like|fk_\w+))?\b"?|\b\w+_(pkey|key|id_seq)\b')
POSTGRESQL = """
SELECT format('%s: column %s %s%s default %s identity %s', c.relname, attname, format_type(atttypid, atttypmod),
  CASE WHEN attnotnull THEN ' not null' END, pg_get_expr(adbin, adrelid), attidentity)
  FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE c.relkind = 'r' AND relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped
UNION ALL SELECT format('%s: constraint %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
UNION ALL SELECT format('%s: index %s', tablename, indexdef) FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT format('%s: trigger %s', tgrelid::regclass, pg_get_triggerdef(oid)) FROM pg_trigger
  WHERE NOT tgisinternal
UNION ALL SELECT format('function %s', pg_get_functiondef(oid)) FROM pg_proc
  WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT format('extension %s', extname) FROM pg_extension
"""


def of(variables: dict[str, str]) -> list[str]:
    """The schema of the instance with these variables."""
    url = variables.get("DATABASE_URL", "")
    if url.startswith("postgres"):
        return of_postgresql(url)
    return of_sqlite(Path(variables["PANELBENCH_DATA_DIR"]) / SQLITE)


def of_postgresql(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return sorted(MADE_UP.sub("*", str(line)) for (line,) in connection.execute(POSTGRESQL))


def of_sqlite(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        rows = connection.execute("SELECT type, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return sorted(MADE_UP.sub("*", line) for row in rows for line in _lines(*row))


def _lines(kind: str, table: str, sql: str) -> Iterator[str]:
    if kind != "table":
        yield f"{table}: {sql}"
        return
    inside = sql[sql.index("(") + 1 : sql.rindex(")")]
    depth, line = 0, ""
    for character in inside:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield f"{table}: {line.strip()}"
            line = ""
        else:
            line += character
    yield f"{table}: {line.strip()}"
