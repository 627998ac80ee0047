"""Members of zips that are the same file whenever they are written."""

from __future__ import annotations

from zipfile import ZIP_DEFLATED, ZipInfo


def dateless(name: str) -> ZipInfo:
    """A member without the hour of its writing: the same content is the same archive."""
    member = ZipInfo(name)
    member.compress_type = ZIP_DEFLATED
    return member
