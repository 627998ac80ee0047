"""The wheel, built, installed in an environment of its own and started there by its one command."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from panelbench.probe import health

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment that holds the wheel, and borrows every other package from this one."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    wheel = next(folder.glob("*.whl"))
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True)
    # A .pth in a borrowed folder is not followed, so the checkout, installed as editable there, stays out of reach.
    site_packages = next((folder / "venv" / "lib").glob("python3*/site-packages"))
    (site_packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return python.parent


@pytest.fixture(scope="module")
def served(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the installed instance, started with `panelbench up` in an empty folder."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    keep = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    folder = tmp_path_factory.mktemp("elsewhere")
    with subprocess.Popen([installed / "panelbench", "up", "--port", str(port)], cwd=folder, env=keep) as instance:
        try:
            _wait_until_healthy(f"http://127.0.0.1:{port}/healthz")
            yield f"http://127.0.0.1:{port}"
        finally:
            instance.send_signal(signal.SIGINT)
            assert instance.wait(60) == 0


def _wait_until_healthy(url: str) -> None:
    deadline = time.monotonic() + 180
    while health(url).get("status") != "ok":
        assert time.monotonic() < deadline, health(url)
        time.sleep(0.2)


def test_the_package_is_the_installed_one(installed: Path) -> None:
    command = [installed / "python", "-c", "import panelbench; print(panelbench.__file__)"]
    place = subprocess.run(command, cwd="/", check=True, capture_output=True, text=True).stdout
    assert Path(place).is_relative_to(installed.parent)


def test_it_serves_the_sign_in_page_and_its_files_compressed_and_for_good(served: str) -> None:
    with urllib.request.urlopen(f"{served}/account/login/") as reply:
        page = reply.read().decode()
    assert 'name="login"' in page
    assets = re.findall(r'(?:href|src)="(/static/[^"#]+)', page)
    assert {Path(asset).suffix for asset in assets} >= {".css", ".js", ".svg"}
    for asset in assets:
        asked = urllib.request.Request(f"{served}{asset}", headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(asked) as reply:
            assert "immutable" in reply.headers["Cache-Control"], asset
            size = len(reply.read())
            assert size < 400 or reply.headers["Content-Encoding"] == "gzip", asset
