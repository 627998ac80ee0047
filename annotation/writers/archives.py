"""Zip members without a date, so that the same content always gives the same archive."""

from __future__ import annotations

from zipfile import ZIP_DEFLATED, ZipInfo


def dateless(name: str) -> ZipInfo:
    """A zip member with a fixed date."""
    member = ZipInfo(name)
    member.compress_type = ZIP_DEFLATED
    return member
