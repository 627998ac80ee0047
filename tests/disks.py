"""Disks of their own for tests that take them away: mounting needs root, so such tests are left out for others."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

LONGEST_FREEZE = 45.0  # seconds
MOUNTS = os.geteuid() == 0 and all(map(shutil.which, ("mount", "umount", "mkfs.ext4", "fsfreeze")))


@contextlib.contextmanager
def own_disk(folder: Path) -> Iterator[Path]:
    """A small ext4 file system, mounted."""
    image, place = folder / "disk.img", folder / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(32 * 2**20)
    if not MOUNTS or _run("mkfs.ext4", "-q", str(image)) or _run("mount", "-o", "loop", str(image), str(place)):
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        _run("umount", "--lazy", str(place))


@contextlib.contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """The disk, mounted read-only."""
    assert _run("mount", "-o", "remount,ro", str(disk)) == 0
    try:
        yield
    finally:
        assert _run("mount", "-o", "remount,rw", str(disk)) == 0


@contextlib.contextmanager
def frozen(disk: Path) -> Iterator[None]:
    """The disk, which keeps everybody who writes waiting, as during a snapshot or when a network disk is away."""
    thaw = threading.Timer(LONGEST_FREEZE, _run, ("fsfreeze", "--unfreeze", str(disk)))
    assert _run("fsfreeze", "--freeze", str(disk)) == 0
    thaw.start()  # nothing else ends a thread of this process that writes to it
    try:
        yield
    finally:
        is_late = not thaw.is_alive()
        thaw.cancel()
        assert is_late or _run("fsfreeze", "--unfreeze", str(disk)) == 0
    assert not is_late, f"the disk was frozen for {LONGEST_FREEZE:g} s"


@contextlib.contextmanager
def vanished(folder: Path) -> Iterator[None]:
    """The folder under another name."""
    away = folder.with_name(f"{folder.name}-away")
    folder.rename(away)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        away.rename(folder)


def _run(*command: str) -> int:
    return subprocess.run(command, check=False, capture_output=True).returncode
