"""Zip archives with members of known size and digest: bundles and backups; and complete files in pieces."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable
from dataclasses import asdict, dataclass
from tempfile import TemporaryFile
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

PIECE = 2**20


def dateless(name: str) -> ZipInfo:
    """A zip member with a fixed date, so that the same content always gives the same archive."""
    member = ZipInfo(name)
    member.compress_type = ZIP_DEFLATED
    return member


@dataclass(frozen=True, slots=True)
class MemberContent:
    """What a manifest says of a member's content."""

    bytes: int
    sha256: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def write_member(archive: ZipFile, member: ZipInfo, pieces: Iterable[bytes]) -> MemberContent:
    """Write a member piece by piece."""
    digest, size = hashlib.sha256(), 0
    with archive.open(member, "w", force_zip64=True) as file:
        for piece in pieces:
            file.write(piece)
            digest.update(piece)
            size += len(piece)
    return MemberContent(size, digest.hexdigest())


def member_content(archive: ZipFile, name: str) -> MemberContent:
    """The content that a member has, to be compared with its manifest."""
    digest, size = hashlib.sha256(), 0
    with archive.open(name) as file:
        for piece in iter(lambda: file.read(PIECE), b""):
            digest.update(piece)
            size += len(piece)
    return MemberContent(size, digest.hexdigest())


def spooled(write: Callable[[BinaryIO], None]) -> Generator[bytes]:
    """Write a complete temporary file, then yield it in pieces."""
    with TemporaryFile() as spool:
        write(spool)
        spool.seek(0)
        yield from iter(lambda: spool.read(256 * 1024), b"")
