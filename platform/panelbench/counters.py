"""A file-based cache for counters: entries are never evicted before they expire, and updates are atomic."""

from __future__ import annotations

import fcntl
import os
import pickle
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT
from django.core.cache.backends.filebased import FileBasedCache

SWEEP_SHARE = 0.01  # this share of the writes also deletes expired entries


class FileCounters(FileBasedCache):
    """Django's file-based cache with atomic `add` and `incr`; only expired entries are deleted.

    Django's own cache deletes random entries when it has more than 300, so a client could reset throttles by creating
    entries.
    """

    _dir: str
    _key_to_file: Callable[..., str]
    _list_cache_files: Callable[[], list[str]]
    _is_expired: Callable[[IO[bytes]], bool]
    _createdir: Callable[[], None]

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        with self._locked():
            return super().add(key, value, timeout, version)

    def incr(self, key: Any, delta: int = 1, version: int | None = None) -> int:
        """Add to a counter; its expiry does not change. Raises ``ValueError`` if there is no such counter."""
        with self._locked():
            value = self.get(key, version=version)
            if value is None:
                raise ValueError(f"Key {key!r} not found")
            with Path(self._key_to_file(key, version)).open("rb") as file:
                expires: float | None = pickle.load(file)  # noqa: S301 Django's own file, in our own folder
            self.set(key, value + delta, None if expires is None else max(0.0, expires - time.time()), version)
        return int(value + delta)

    def _cull(self) -> None:
        if random.random() >= SWEEP_SHARE:
            return
        for name in self._list_cache_files():
            try:
                with Path(name).open("rb") as file:
                    self._is_expired(file)  # deletes the entry if it has expired
            except FileNotFoundError:
                continue

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._createdir()
        descriptor = os.open(Path(self._dir) / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
