"""Runs the simulated provider in a process of its own for as long as a test needs it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RunningProvider:
    """A provider that answers. ``base_url`` ends in ``/v1``."""

    base_url: str
    pid: int

    @property
    def root(self) -> str:
        return self.base_url.removesuffix("/v1")

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.root}{path}", timeout=60) as response:
            return json.load(response)

    def post(self, path: str, **body: Any) -> Any:
        request = urllib.request.Request(f"{self.root}{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def control(self, **wanted: Any) -> Any:
        """Change its behaviour; without arguments, read its counts."""
        return self.post("/control", **wanted) if wanted else self.get("/control")


@contextmanager
def running_provider(*arguments: str, latency: float = 0.0) -> Iterator[RunningProvider]:
    """Start a provider on a free port, wait until it is healthy, and stop it by its pid."""
    command = [sys.executable, "-m", "panelbench.provider", "--port", "0", "--latency", str(latency), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            provider = RunningProvider(process.stdout.readline().strip() if process.stdout else "", process.pid)
            _wait_until_healthy(provider)
            yield provider
        finally:
            process.terminate()
            try:
                _, complaints = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()  # or the end of the `with` would wait for it for ever
                raise
            assert "Traceback" not in complaints, complaints


def _wait_until_healthy(provider: RunningProvider) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            assert provider.get("/healthz") == {"status": "ok", "simulated": True}
            return
        except (OSError, ValueError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
