"""A whole project as one file, and back: a zip of JSONL members with a manifest of their sizes and digests.

What is read back is the same content: taken out again, it is the same file, byte for byte. Nothing of it is stored
unless all of it is.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import orjson
from django.apps import apps
from django.conf import settings
from django.db import IntegrityError, models, transaction
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation import bundle
from annotation.bundle import Incoming, Member, Outgoing
from annotation.bundle_members import MEMBERS as OF_ANNOTATION
from annotation.bundle_members import require_own_items
from annotation.exports import consistent, other_names
from annotation.models import Annotator, Campaign, Dataset, Panel, Rubric
from annotation.readers import FormatError, Problem, UnpackBounds, UnpackedBytes
from annotation.writers.archives import dateless, member_content, spooled, write_member
from annotation.writers.tables import with_progress
from judging.exports import BUNDLE_MEMBERS as OF_JUDGING
from judging.exports import require_own_texts
from judging.models import Judge

logger = logging.getLogger(__name__)

MEMBERS = (*OF_ANNOTATION, *OF_JUDGING)
"""In the order in which they are written and read: a row refers to members that come before its own."""
_FORMAT, VERSION = "panelbench-bundle", 11
"""The version goes up with a new member or field; `Member.first` and `Member.since` say what earlier ones lack, and
`Member.until` what they had."""
_MANIFEST = "manifest.json"
_LARGEST_MANIFEST = 2**20
_LONGEST_LINE = 64 * 2**20


# --- out ------------------------------------------------------------------------------------------------------------
def bundle_pieces(project: Project, *, replies: bool = False, renumbered: int | None = None) -> Generator[bytes]:
    """The bundle of a project, piece by piece. ``replies``: the requests to judges and their answers, in full."""
    return spooled(lambda out: write_bundle(project, out, replies=replies, renumbered=renumbered))


def write_bundle(project: Project, out: BinaryIO, *, replies: bool = False, renumbered: int | None = None) -> None:
    """Write the bundle from one consistent snapshot."""
    with consistent(), ZipFile(out, "w", ZIP_DEFLATED, compresslevel=6) as archive:
        outgoing = Outgoing(project, replies, _pseudonyms(project, renumbered))
        members = {member.name: _written(archive, member, outgoing) for member in MEMBERS}
        manifest = {"format": _FORMAT, "version": VERSION, "panelbench": settings.VERSION, "members": members}
        archive.writestr(dateless(_MANIFEST), orjson.dumps(manifest, option=orjson.OPT_INDENT_2))


def _pseudonyms(project: Project, renumbered: int | None) -> dict[str, str]:
    if renumbered is None:
        return {}
    return other_names(Annotator.objects.filter(project=project).values_list("pseudonym", flat=True), renumbered)


def _written(archive: ZipFile, member: Member, outgoing: Outgoing) -> dict[str, Any]:
    """Write a member; returns what the manifest says of it."""
    content = write_member(archive, dateless(member.file), bundle.written(member, outgoing))
    return {"rows": len(outgoing.keys[member.name]), **content.as_dict()}


# --- in -------------------------------------------------------------------------------------------------------------
Progress = Callable[[int, int], None]


def _no_progress(done: int, total: int) -> None:
    """Nobody asks how far it is."""


@dataclass(frozen=True, slots=True)
class Carried:
    """The number of rows in a bundle, by member."""

    rows: dict[str, int]

    @property
    def sentence(self) -> str:
        named = ["datasets", "items", "rubrics", "campaigns", "annotations", "ratings", "judges", "verdicts"]
        named += ["plans"] if self.rows.get("plans") else []
        return ", ".join(f"{self.rows[name]:,} {name}" for name in named)


def look_into_bundle(*, project: Project, name: str, content: BinaryIO) -> Carried:
    """The content that a bundle declares; its rows are not read yet.

    Raises `Refused` with the reason if the file is not a bundle or the project is not empty.
    """
    with _explained(name), ZipFile(content) as archive:
        _version, members = _checked_manifest(name, archive)
        _require_empty(project)
        return _carried(members)


def load_bundle(
    *, project: Project, name: str, content: BinaryIO, actor: User | None = None, progress: Progress = _no_progress
) -> Carried:
    """Store everything a bundle holds in an empty project, all or nothing. Raises `Refused` naming what is wrong.

    ``progress`` is called with the number of rows stored so far, and the number of all rows.
    """
    with _explained(name), ZipFile(content) as archive:
        version, members = _checked_manifest(name, archive)
        for member in _members(version):
            # Nothing of a bundle is believed before all of it is what was written.
            if member_content(archive, member.file).sha256 != members[member.name].get("sha256"):
                text = "content that was changed since it was written"
                raise FormatError(
                    Problem(f"{name}/{member.file}", None, None, text, "the digest in the manifest", "digest")
                )
        return _stored(Incoming(project, version, actor), archive, members, progress)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn what is wrong with a file into a refusal that says so."""
    try:
        yield
    except (BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError):
        raise _unreadable(
            Problem(name, None, None, "no zip, or a damaged one", "a bundle of Panelbench", "zip")
        ) from None
    except FormatError as error:
        raise _unreadable(error.problem) from None
    except IntegrityError as error:
        logger.warning("a bundle was refused by a rule of the database: %s", str(error).splitlines()[0])
        found = f"rows that contradict each other{_about_rule(str(error))}"
        raise _unreadable(Problem(name, None, None, found, "whole rows", "rows")) from None


def _about_rule(error: str) -> str:
    """Of which kind of rows, in words: the names of our tables and rules mean nothing to people."""
    tables = {model._meta.db_table: model for model in apps.get_models()}
    named = max((table for table in tables if table in error), key=len, default="")
    rules = {rule.name: model for model in apps.get_models() for rule in model._meta.constraints}
    broken = max((name for name in rules if name in error), key=len, default="")
    model = rules.get(broken) or tables.get(named)
    return f" ({model._meta.verbose_name_plural})" if model else ""


def _unreadable(problem: Problem) -> Refused:
    return Refused(_("Nothing was stored. %s") % problem, code="bundle_refused", fields={"file": str(problem)})


def _stored(incoming: Incoming, archive: ZipFile, members: dict[str, Any], progress: Progress) -> Carried:
    carried, done, project = _carried(members), 0, incoming.project
    total = sum(carried.rows.values())
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        _require_empty(project)
        for member in _members(incoming.version):
            with archive.open(member.file) as file:
                lines = with_progress(_lines(member, file), partial(_tell, progress, done, total))
                bundle.store_member(member, lines, carried.rows[member.name], incoming)
            done += carried.rows[member.name]
        require_own_items(project)
        require_own_texts(project)
        audit.record(actor=incoming.actor, project=project, verb="import bundle", subject=project)
    return carried


def _members(version: int) -> list[Member]:
    """The members that a bundle of this version has."""
    return [member for member in MEMBERS if member.first <= version]


def _tell(progress: Progress, before: int, total: int, rows: int) -> None:
    progress(before + rows, total)


def _carried(members: dict[str, Any]) -> Carried:
    return Carried({name: facts["rows"] for name, facts in members.items()})


def _require_empty(project: Project) -> None:
    kinds: tuple[type[models.Model], ...] = (Dataset, Rubric, Panel, Annotator, Campaign, Judge)
    for kind in kinds:
        if kind._default_manager.filter(project=project).exists():
            sentence = _(
                "This project already has %(things)s. A bundle can only be loaded into an empty project: create "
                "one first."
            )
            raise Refused(sentence % {"things": kind._meta.verbose_name_plural}, code="not_empty")


def _checked_manifest(name: str, archive: ZipFile) -> tuple[int, dict[str, Any]]:
    """The version of the bundle, and what the manifest says of each member, compared with what is there."""
    version, members = _read_manifest(name, archive)
    entries = [entry for entry in archive.infolist() if entry.filename != _MANIFEST]
    there = {entry.filename: entry.file_size for entry in entries}
    named = {f"{member}.jsonl": facts["bytes"] for member, facts in members.items()}
    wanted = {member.file for member in _members(version)}
    odd = (there.keys() ^ named.keys()) | (named.keys() ^ wanted)
    odd |= {file for file in there.keys() & named.keys() if there[file] != named[file]}
    if odd or len(entries) != len(there):
        text = f"{', '.join(sorted(odd)) or 'a member twice'} missing, too many, or of another size"
        raise FormatError(Problem(name, None, None, text, "the members that the manifest names", "members"))
    packed = sum(entry.compress_size for entry in archive.infolist())
    UnpackedBytes(name, packed, UnpackBounds()).count(sum(there.values()))
    return version, members


def _read_manifest(name: str, archive: ZipFile) -> tuple[int, dict[str, Any]]:
    """The version and the members of the manifest, once its format and version are ours."""
    place = f"{name}/{_MANIFEST}"
    sizes = [entry.file_size for entry in archive.infolist() if entry.filename == _MANIFEST]
    if len(sizes) != 1 or sizes[0] > _LARGEST_MANIFEST:
        raise FormatError(Problem(name, None, None, f"no {_MANIFEST}", "a bundle of Panelbench", "no_manifest"))
    try:
        manifest = orjson.loads(archive.read(_MANIFEST))
        version, members = manifest["version"], manifest["members"]
        whole = manifest["format"] == _FORMAT and type(version) is int
        whole = whole and all(type(facts[key]) is int for facts in members.values() for key in ("rows", "bytes"))
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError):
        whole, version, members = False, 0, {}
    if not whole:
        raise FormatError(Problem(place, None, None, "another manifest", f"one of the format {_FORMAT}", "manifest"))
    if version > VERSION:
        expected = f"at most {VERSION}: a newer Panelbench wrote it; update this one"
        raise FormatError(Problem(place, None, "version", str(version), expected, "newer_version"))
    return version, dict(members)


def _lines(member: Member, file: Any) -> Iterator[bytes]:
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), start=1):
        if len(line) == _LONGEST_LINE:
            raise FormatError(Problem(member.file, number, None, "a line of 64 MB", "shorter ones", "long_line"))
        yield line
