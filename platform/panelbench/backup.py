"""Back up the whole instance to one file, and restore it: every table and every file, on either database.

A backup is a zip: one JSON Lines member per table, one row per line; the uploaded files; the signing key if it is in
the data directory; and a manifest with the version, the applied migrations, and the rows, bytes and SHA-256 of every
member. It is read and written row by row, so memory use is bounded, and it can be restored on SQLite and PostgreSQL.
The database is read from one consistent snapshot while the instance is running.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import IO, Any
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection, models, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.graph import MigrationGraph
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from accounts.models import Heartbeat
from annotation import bulk
from annotation.exports import consistent
from annotation.writers.archives import PIECE, member_content, write_member

FORMAT, VERSION = "panelbench-backup", 1
MANIFEST, KEY = "manifest.json", "secret_key"
LARGEST_MANIFEST = 64 * 2**20
TOGETHER = 2_000  # rows that are read or inserted at a time
MADE_BY_MIGRATING = frozenset({"django_content_type", "auth_permission", "accounts_heartbeat"})
PROCESSES = 2  # that write heartbeats: worker and beat
SQUASHED = "_squashed_"  # in a squashed migration's name, followed by the name of the last one that it replaces
Model = type[models.Model]
Migrations = set[tuple[str, str]]  # app and name


class CannotRestore(Exception):
    """The reason why nothing was restored, or why restoring failed; for the operator."""


class CannotBackUp(Exception):
    """The reason why there is no backup; for the operator."""


@dataclass(slots=True)
class Summary:
    """The content of a backup, in numbers."""

    version: str
    made_at: str
    tables: dict[str, int] = field(default_factory=dict)
    files: int = 0
    missing: list[str] = field(default_factory=list)
    has_key: bool = False
    other_key: bool = False

    @property
    def rows(self) -> int:
        return sum(self.tables.values())


# --- out ------------------------------------------------------------------------------------------------------------
def write_backup(out: IO[bytes], *, with_key: bool = True) -> Summary:
    """Write a backup of the database and of the files that its rows refer to, from one snapshot.

    Tables are read with the models of the applied migrations, so the next version's code can back up an instance before
    it is migrated. ``out`` need not be seekable. Raises ``CannotBackUp``.
    """
    migrated_models = _models(_registry(_applied()))
    summary = Summary(version=settings.VERSION, made_at=datetime.now(UTC).isoformat(timespec="seconds"))
    named: list[str] = []
    with ZipFile(out, "w", ZIP_DEFLATED, compresslevel=5) as archive:
        with _one_moment():
            tables = {model._meta.db_table: _written_table(archive, model, named) for model in migrated_models}
            migrations = sorted(MigrationRecorder(connection).applied_migrations())
        files = {}
        for name in sorted(set(named)):
            entry = _written_file(archive, f"files/{name}", settings.MEDIA_ROOT / name)
            if entry is None:
                summary.missing.append(name)  # the file was deleted after its row was read, such as an expired export
            else:
                files[name] = entry
        if with_key and _own_key_file().exists() and _own_key_file().read_text("ascii").strip() == settings.SECRET_KEY:
            summary.has_key = _written_file(archive, KEY, _own_key_file()) is not None
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "panelbench": settings.VERSION,
            "made_at": summary.made_at,
            "key": _key_digest(),
            "migrations": migrations,
            "tables": tables,
            "files": files,
        }
        archive.writestr(ZipInfo(MANIFEST, _now()), json.dumps(manifest, indent=1))
    summary.tables = {name: entry["rows"] for name, entry in tables.items()}
    summary.files = len(files)
    return summary


def _applied() -> Migrations:
    """The applied migrations. Raises ``CannotBackUp`` if there are none, or some of a later version."""
    applied = set(MigrationRecorder(connection).applied_migrations())
    if not applied:
        raise CannotBackUp("there is nothing here: this database was never migrated.")
    if unknown := _unknown(applied):
        raise CannotBackUp(f"this database is of a later version of Panelbench: {', '.join(map('.'.join, unknown))}.")
    return applied


def _unknown(applied: Migrations) -> list[tuple[str, str]]:
    """The applied migrations that our apps do not have.

    The file of a squashed one may be gone: it is known by the last migration that it replaced (decision 0066).
    """
    loader = MigrationLoader(None)
    known = set(loader.disk_migrations).union(*(squashed.replaces for squashed in loader.replacements.values()))
    ours = {app for app, _name in known}
    return sorted(
        (app, name)
        for app, name in applied
        if app in ours and not known & {(app, name), (app, name.rpartition(SQUASHED)[2])}
    )


def _loader(applied: Migrations) -> MigrationLoader:
    """The graph of all migrations for a database with these applied. A squashed migration is in it only if all that it
    replaces were applied."""
    loader = MigrationLoader(connection, replace_migrations=False)
    for node, squashed in loader.replacements.items():
        if applied.issuperset(squashed.replaces):
            loader.graph.remove_replaced_nodes(node, squashed.replaces)
        else:
            loader.graph.remove_replacement_node(node, squashed.replaces)
    return loader


def _leaves(graph: MigrationGraph, applied: Migrations) -> list[tuple[str, str]]:
    """The last of these migrations in every app."""
    known = {
        node
        for node, migration in graph.nodes.items()
        if node in applied or (migration and migration.replaces and applied.issuperset(migration.replaces))
    }
    followed = {parent.key for node in known for parent in graph.node_map[node].parents if parent.key[0] == node[0]}
    return sorted(known - followed)


def _registry(applied: Migrations) -> Any:
    """The models as they were after these migrations."""
    loader = _loader(applied)
    return loader.project_state(_leaves(loader.graph, applied)).apps


@contextlib.contextmanager
def _one_moment() -> Iterator[None]:
    """All queries inside read one snapshot, and block nobody."""
    if connection.vendor == "postgresql":
        with consistent():
            yield
        return
    connection.ensure_connection()
    with connection.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")  # by hand: Django's transactions would take the write lock
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ROLLBACK")


def _models(registry: Any) -> list[Model]:
    """The models with their own tables, including many-to-many tables, sorted by table name."""
    managed = [model for model in registry.get_models(include_auto_created=True) if model._meta.managed]
    return sorted((model for model in managed if not model._meta.proxy), key=lambda model: str(model._meta.db_table))


def _written_table(archive: ZipFile, model: Model, named: list[str]) -> dict[str, Any]:
    """Write a table. Returns its entry for the manifest, and adds the names of its files to ``named``."""
    fields = model._meta.concrete_fields
    kept = [place for place, column in enumerate(fields) if isinstance(column, models.FileField)]
    encoders = [_encoder(column) for column in fields]
    stored_rows = model._base_manager.order_by("pk").values_list(*(column.attname for column in fields))
    rows = 0

    def lines() -> Iterator[bytes]:
        nonlocal rows
        for row in stored_rows.iterator(TOGETHER):
            named.extend(row[place] for place in kept if row[place])
            rows += 1
            yield json.dumps([encode(value) for encode, value in zip(encoders, row, strict=True)]).encode() + b"\n"

    content = write_member(archive, _member(f"tables/{model._meta.db_table}.jsonl"), lines())
    columns = {column.column: column.get_internal_type() for column in fields}
    return {"rows": rows, **content.as_dict(), "columns": columns, "last_key": _last_key(model)}


def _encoder(column: models.Field[Any, Any]) -> Callable[[Any], Any]:
    """The function that converts a column's values to JSON."""
    if isinstance(column, models.JSONField):
        return lambda value: None if value is None and column.null else json.dumps(value)
    if isinstance(column, (models.BinaryField, models.DurationField)):
        raise CannotBackUp(f"{column.model._meta.db_table}.{column.column} has a type that no backup can contain yet.")
    return _plain


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return str(value) if isinstance(value, (date, Decimal, UUID)) else value


def _decoder(column: models.Field[Any, Any]) -> Callable[[Any], Any]:
    """The function that reads a column's values from JSON, for ``bulk.insert``; JSON columns stay text."""
    while isinstance(column, models.ForeignKey):
        column = column.target_field
    for kind, decode in (
        (models.DateTimeField, datetime.fromisoformat),
        (models.DecimalField, Decimal),
        (models.UUIDField, UUID),
        (models.FloatField, float),
    ):
        if isinstance(column, kind):
            return decode
    return lambda value: value


def _last_key(model: Model) -> int | None:
    """The last primary key that the database has used, also if its row was deleted."""
    if not isinstance(model._meta.pk, models.AutoField):
        return None
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [_quoted(model), model._meta.pk.column])
            cursor.execute("SELECT pg_sequence_last_value(%s::regclass)", cursor.fetchone())
        else:
            cursor.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = %s", [model._meta.db_table])
        last = cursor.fetchone()[0]
    return int(last) if last else None


def _quoted(model: Model) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _written_file(archive: ZipFile, name: str, path: Path) -> dict[str, Any] | None:
    """Write a file unchanged; None if it does not exist."""
    try:
        with path.open("rb") as source:
            return write_member(archive, _member(name, ZIP_STORED), iter(lambda: source.read(PIECE), b"")).as_dict()
    except FileNotFoundError:
        return None


def _member(name: str, compression: int = ZIP_DEFLATED) -> ZipInfo:
    entry = ZipInfo(name, _now())
    entry.compress_type, entry.external_attr = compression, 0o600 << 16
    return entry


def _now() -> tuple[int, int, int, int, int, int]:
    now = datetime.now(UTC)
    return now.year, now.month, now.day, now.hour, now.minute, now.second


def _own_key_file() -> Path:
    return Path(settings.DATA_DIR) / KEY


def _key_digest() -> str:
    """A digest to compare signing keys without revealing them."""
    return hashlib.sha256(b"panelbench backup" + settings.SECRET_KEY.encode()).hexdigest()[:16]


# --- in -------------------------------------------------------------------------------------------------------------
def restore_backup(source: IO[bytes], *, replace: bool = False) -> Summary:
    """Restore a backup into an empty instance, or with ``replace`` over existing content; migrate it to this version.

    The file is verified before anything is changed. Raises ``CannotRestore``.
    """
    try:
        with ZipFile(source) as archive:
            manifest = _manifest(archive)
            applied = _applied_there(manifest)
            _verify(archive, manifest)
            with _alone():
                if not replace:
                    _require_empty()
                return _restored(archive, manifest, applied, keeps_tables=not replace and _has_tables_of(applied))
    except (BadZipFile, zlib.error, EOFError) as error:
        raise CannotRestore(f"this is not a backup, or it is damaged: {error}") from None


def _manifest(archive: ZipFile) -> dict[str, Any]:
    try:
        if archive.getinfo(MANIFEST).file_size > LARGEST_MANIFEST:
            raise CannotRestore("this is not a backup of Panelbench: its manifest is too long.")
        manifest = dict(json.loads(archive.read(MANIFEST)))
    except (KeyError, ValueError, TypeError):
        manifest = {}
    if manifest.get("format") != FORMAT:
        raise CannotRestore("this is not a backup of Panelbench: `panelbench backup` makes them.")
    if manifest["version"] > VERSION:
        raise CannotRestore(_newer(manifest))
    return manifest


def _newer(manifest: dict[str, Any]) -> str:
    return (
        f"this backup was made by version {manifest['panelbench']}, which is newer than this one "
        f"({settings.VERSION}). Restore it with that version, or a later one."
    )


def _applied_there(manifest: dict[str, Any]) -> Migrations:
    """The migrations of the backup's tables. Raises ``CannotRestore`` if one is unknown to this version."""
    applied = {(str(app), str(name)) for app, name in manifest["migrations"]}
    if unknown := _unknown(applied):
        raise CannotRestore(f"{_newer(manifest)} Unknown here: {', '.join(map('.'.join, unknown))}.")
    return applied


def _verify(archive: ZipFile, manifest: dict[str, Any]) -> None:
    """Compare every member with its size and digest."""
    entries = {f"tables/{name}.jsonl": entry for name, entry in manifest["tables"].items()}
    entries |= {f"files/{name}": entry for name, entry in manifest["files"].items()}
    names = set(archive.namelist())
    for name, entry in entries.items():
        if name not in names:
            raise CannotRestore(f"this backup is damaged: {name} is missing.")
        content = member_content(archive, name)
        if (content.bytes, content.sha256) != (entry["bytes"], entry["sha256"]):
            raise CannotRestore(f"this backup is damaged: {name} is not what was written.")
    for name in manifest["files"]:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise CannotRestore(f"this backup is damaged: a file is called {name}.")


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Lock the data directory. Raises ``CannotRestore`` if an instance, a worker or beat is running."""
    Path(settings.DATA_DIR).mkdir(parents=True, exist_ok=True)
    with (Path(settings.DATA_DIR) / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotRestore(f"an instance runs on {settings.DATA_DIR}. Stop it, and try again.") from None
        has_table = Heartbeat._meta.db_table in connection.introspection.table_names()
        if has_table and len(Heartbeat.objects.silent()) < PROCESSES:
            sentence = "worker or beat runs on this database. Stop web, worker and beat, and try again after 40 s."
            raise CannotRestore(sentence)
        yield


def _require_empty() -> None:
    tables = set(connection.introspection.table_names())
    for model in _models(apps):
        table = model._meta.db_table
        if table in tables and table not in MADE_BY_MIGRATING and model._base_manager.exists():
            raise CannotRestore(
                f"this instance is not empty: {table} has rows. Restore into a new data directory or database; "
                "or, to delete everything that is here and restore in its place, add --replace."
            )
    if any(path.is_file() for path in Path(settings.MEDIA_ROOT).rglob("*")):
        raise CannotRestore(f"{settings.MEDIA_ROOT} is not empty. Move it away, or add --replace to delete it.")


def _has_tables_of(applied: Migrations) -> bool:
    """Whether exactly the migrations of the backup were applied here, so that its tables are there already."""
    here = set(MigrationRecorder(connection).applied_migrations())
    # The migrations that they replace are recorded too.
    is_squashed = {node for node in here | applied if SQUASHED in node[1]}
    return here - is_squashed == applied - is_squashed


def _restored(archive: ZipFile, manifest: dict[str, Any], applied: Migrations, *, keeps_tables: bool) -> Summary:
    """Create the tables of the backup's version, unless they are there and empty; fill and migrate them."""
    try:
        if not keeps_tables:
            _drop_tables()
            executor = MigrationExecutor(connection)
            executor.loader = _loader(applied)
            executor.migrate(_leaves(executor.loader.graph, applied))
        _fill(archive, manifest, _models(_registry(applied)))
        _restore_files(archive, manifest)
        has_key = _restore_key(archive)
        call_command("migrate", verbosity=0, interactive=False)
    except (DatabaseError, OSError, ValueError) as error:
        sentence = "restoring was interrupted, and the instance is incomplete; correct the cause and restore again"
        raise CannotRestore(f"{sentence} with --replace. {type(error).__name__}: {error}") from error
    return Summary(
        version=manifest["panelbench"],
        made_at=manifest["made_at"],
        tables={name: entry["rows"] for name, entry in manifest["tables"].items()},
        files=len(manifest["files"]),
        has_key=has_key,
        other_key=not has_key and manifest["key"] != _key_digest(),
    )


def _drop_tables() -> None:
    """Drop all our tables, and the record of applied migrations."""
    ours = {str(model._meta.db_table) for model in _models(apps)} | {"django_migrations"}
    tables = sorted(ours & set(connection.introspection.table_names()))
    cascade = " CASCADE" if connection.vendor == "postgresql" else ""
    with connection.constraint_checks_disabled(), connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"DROP TABLE {connection.ops.quote_name(table)}{cascade}")


def _fill(archive: ZipFile, manifest: dict[str, Any], migrated_models: Sequence[Model]) -> None:
    """Fill the tables, all or none; foreign keys are checked at the end."""
    by_table = {str(model._meta.db_table): model for model in migrated_models}
    if unknown := sorted(manifest["tables"].keys() - by_table.keys()):
        raise CannotRestore(f"this backup has tables that its migrations do not make: {', '.join(unknown)}.")
    with transaction.atomic():
        _empty(migrated_models)
        with bulk.Load() as load:
            for table in _parents_first(by_table):
                if table in manifest["tables"]:
                    _fill_table(archive, by_table[table], manifest["tables"][table], load)
        connection.check_constraints()


def _empty(migrated_models: Iterable[Model]) -> None:
    """Delete the rows that migrations have inserted."""
    with connection.cursor() as cursor:
        for model in migrated_models:
            cursor.execute(f"DELETE FROM {_quoted(model)}")  # noqa: S608 (names of our own tables)


def _parents_first(by_table: dict[str, Model]) -> list[str]:
    """The tables, each after the tables it refers to, as far as there are no cycles."""
    ordered: list[str] = []
    waiting = dict.fromkeys(by_table)

    def add(table: str) -> None:
        if table not in waiting:
            return
        del waiting[table]
        for column in by_table[table]._meta.concrete_fields:
            if isinstance(column, models.ForeignKey):
                add(str(column.related_model._meta.db_table))
        ordered.append(table)

    for table in list(waiting):
        add(table)
    return ordered


def _fill_table(archive: ZipFile, model: Model, entry: dict[str, Any], load: bulk.Load) -> None:
    by_column = {str(field.column): field for field in model._meta.concrete_fields}
    if set(entry["columns"]) != set(by_column):
        differing = ", ".join(sorted(set(entry["columns"]) ^ set(by_column)))
        raise CannotRestore(f"{model._meta.db_table} has other columns than in the backup: {differing}.")
    fields = [by_column[column] for column in entry["columns"]]
    decoders = [_decoder(column) for column in fields]
    names = [column.attname for column in fields]
    insert = load.insert if isinstance(fields[0], models.AutoField) else bulk.insert
    rows: list[tuple[Any, ...]] = []

    with archive.open(f"tables/{model._meta.db_table}.jsonl") as file:
        for line in file:
            values = zip(decoders, json.loads(line), strict=True)
            rows.append(tuple(None if value is None else decode(value) for decode, value in values))
            if len(rows) == TOGETHER:
                insert(model, names, rows)
                rows = []
    if rows:
        insert(model, names, rows)
    if entry["last_key"] is not None:
        _set_last_key(model, entry["last_key"])


def _set_last_key(model: Model, last: int) -> None:
    """Let the database continue with the primary key after ``last``."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            column = model._meta.pk.column if model._meta.pk else "id"
            cursor.execute("SELECT setval(pg_get_serial_sequence(%s, %s), %s)", [_quoted(model), column, last])
            return
        cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [model._meta.db_table])
        cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", [model._meta.db_table, last])


def _restore_files(archive: ZipFile, manifest: dict[str, Any]) -> None:
    """Replace the uploaded files by those of the backup."""
    media = Path(settings.MEDIA_ROOT)
    arriving = media.with_name(f"{media.name}.restoring")
    shutil.rmtree(arriving, ignore_errors=True)
    arriving.mkdir(parents=True)
    for name in manifest["files"]:
        path = arriving / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(f"files/{name}") as source, _private(path) as file:
            shutil.copyfileobj(source, file, PIECE)
    shutil.rmtree(media, ignore_errors=True)
    arriving.rename(media)


def _restore_key(archive: ZipFile) -> bool:
    """Write the backup's signing key to the data directory. False if this instance uses a configured key, or the
    backup has none."""
    own = _own_key_file()
    is_ours = own.exists() and own.read_text("ascii").strip() == settings.SECRET_KEY
    if not is_ours or KEY not in archive.namelist():
        return False
    with _private(own) as file:
        file.write(archive.read(KEY))
    return True


def _private(path: Path) -> IO[bytes]:
    """A new or emptied file that only its owner can read."""
    return os.fdopen(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb")
