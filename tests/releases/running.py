"""An instance of some release as its operator runs it, and people who use it from outside: pages and API only.

What is said here must hold for every release, so it imports nothing of the product.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import httpx

PASSWORD = "panelbench demo"
SECRET_KEY = "kept-for-tests-of-releases-0123456789-abcdefghij"  # not a secret
TUS = {"Tus-Resumable": "1.0.0"}


def environment(folder: Path, *, providers: str, code: Path | None = None, **more: str) -> dict[str, str]:
    """The variables of an instance on this data directory; ``code`` is the checkout of another release."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR"}}
    own = {"PANELBENCH_DATA_DIR": str(folder), "SECRET_KEY": SECRET_KEY, "PANELBENCH_PROVIDERS": providers}
    own |= {"PANELBENCH_SECURE": "off", "LOG_LEVEL": "WARNING", "API_RATE_USER": "100000/min"}
    if code:
        own["PYTHONPATH"] = f"{code / 'platform'}{os.pathsep}{code}"
    return kept | own | more


class Person:
    """Somebody with a browser."""

    def __init__(self, address: str, email: str = "") -> None:
        self.http = httpx.Client(base_url=address, timeout=60)
        self.http.get("/account/login/")
        if email:
            answer = self.post("/account/login/", login=email, password=PASSWORD)
            assert answer.status_code == 302, f"{email} could not sign in: {answer.status_code}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.http.close()

    def get(self, path: str) -> httpx.Response:
        return self.http.get(path)

    def post(self, path: str, **form: Any) -> httpx.Response:
        token = self.http.cookies.get("csrftoken") or ""
        return self.http.post(path, data={"csrfmiddlewaretoken": token, **form})

    def api(self, method: str, path: str, json: Any = None, **more: Any) -> Any:
        """One request to the API in the session of the browser; what it answered."""
        headers = {"X-CSRFToken": self.http.cookies.get("csrftoken") or "", **more.pop("headers", {})}
        answer = self.http.request(method, f"/api/v1/{path}", json=json, headers=headers, **more)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:400]}"
        return answer.json() if answer.content else answer

    def take(self) -> tuple[str, dict[str, str]]:
        """The key of the item on this person's desk, else of the next one, and answers to all it asks."""
        duty = next(found for found in re.findall(r'(?:href|action)="(/desk/\d+/)"', self.get("/desk/").text))
        answer = self.post(duty)
        location = (self.get(duty) if answer.status_code == 405 else answer).headers["Location"]  # 405: older releases
        page = self.get(location).text
        scores = dict(reversed(re.findall(r'name="(score-[^"]+)"[^>]*value="(\d+)"', page)))
        rationales = dict.fromkeys(re.findall(r'name="(rationale-[^"]+)"', page), "Written for this.")
        return location.rstrip("/").rpartition("/")[2], scores | rationales

    def progress(self, project: str) -> list[dict[str, Any]]:
        """How far each judge's run is."""
        found = self.api("GET", f"projects/{project}/runs/")["results"]
        return [self.api("GET", f"projects/{project}/runs/{run['id']}/")["progress"] for run in found]

    def upload(self, project: str, name: str, content: bytes, *, only: int | None = None) -> str:
        """Upload a file, or its first ``only`` bytes; its key."""
        named = base64.b64encode(name.encode()).decode()
        length = {"Upload-Length": str(len(content)), "Upload-Metadata": f"filename {named}"}
        key = str(self.api("POST", f"projects/{project}/uploads/", headers=TUS | length)["key"])
        chunk = {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
        self.api("PATCH", f"projects/{project}/uploads/{key}/", content=content[:only], headers=TUS | chunk)
        return key


@contextlib.contextmanager
def running_release(variables: Mapping[str, str], *arguments: str, log: Path, command: str = "up") -> Iterator[str]:
    """`panelbench up` until the block ends; then everything is killed at once, as by a power cut. Its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    words = [sys.executable, "-m", "panelbench.cli", command, "--port", port, *arguments]
    with log.open("ab") as out:
        started = subprocess.Popen(
            words, env=dict(variables), cwd=log.parent, stdout=out, stderr=out, start_new_session=True
        )  # not from a checkout, whose code would come before that of PYTHONPATH
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(lambda: started.poll() is not None or _is_ready(address), f"{command} to be ready", log=log)
        assert started.poll() is None, log.read_text(errors="replace")[-3000:]
        yield address
    finally:
        kill_all(started.pid)
        started.wait()


def _is_ready(address: str) -> bool:
    with contextlib.suppress(httpx.TransportError, ValueError):
        return httpx.get(f"{address}/healthz", timeout=5).json()["status"] == "ok"
    return False


def kill_all(pid: int) -> None:
    """SIGKILL to a process and everything below it."""
    below = _below(pid)
    for each in (pid, *below):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def _below(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return [found for child in children for found in (child, *_below(child))]
    return []


def wait_for(condition: Callable[[], Any], what: str, *, seconds: float = 600, log: Path | None = None) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            told = log.read_text(errors="replace")[-3000:] if log else ""
            raise AssertionError(f"waited {seconds:.0f} s in vain for {what}\n{told}")
        time.sleep(0.1)
