"""The client's own distribution: built, installed alone into a fresh environment, and used from there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from accounts import tokens
from accounts.models import Scope
from tests.cast import Cast

DISTRIBUTION = Path(__file__).resolve().parents[2] / "platform" / "client"
STUDY = """
import json, sys
from pathlib import Path
from panelbench_client import Client, types

address, token, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
with Client(address, token, "kassa") as bench:
    projects = [project["slug"] for project in bench.projects()]
    opened = bench.open_import(folder / "dialogues.jsonl", kind="dataset", target={"name": "Dialogues"})
    upload = bench.upload(folder / "dialogues.jsonl")
    preview = bench.preview_import(opened["id"])
    bench.store_import(opened["id"])
    stored = bench.wait_for_import(opened["id"])
    bench.export("items", folder / "items.csv", format="csv")
print(json.dumps({
    "projects": projects, "received": upload["received"], "stored": preview["report"]["stored"],
    "state": stored["state"], "server": sorted({"django", "panelbench", "accounts", "pandas"} & set(sys.modules)),
}))
"""


def needed(requirements: list[str]) -> Iterator[str]:
    """The names of the distributions that these need here, with all that those need."""
    for requirement in map(Requirement, requirements):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name
            yield from needed(distribution(requirement.name).requires or [])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("client")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(build, cwd=DISTRIBUTION, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """An environment that holds the wheel and what it requires, copied from this one, and nothing else."""
    venv.create(wheel.parent / "venv", with_pip=False)
    python = wheel.parent / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel]
    subprocess.run(pip, check=True)
    asked = "import json, importlib.metadata as m; print(json.dumps(m.requires('panelbench-client')))"
    told = subprocess.run([python, "-I", "-c", asked], check=True, capture_output=True, text=True)
    site_packages = next((wheel.parent / "venv" / "lib").glob("python3*/site-packages"))
    for name in set(needed(json.loads(told.stdout))):
        for file in distribution(name).files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = site_packages / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), target)
    return python


def test_the_wheel_holds_the_client_alone_and_needs_httpx_only(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        needs = [row for row in archive.read(metadata).decode().splitlines() if row.startswith("Requires-Dist:")]
    assert {name.partition("/")[0] for name in names} == {"panelbench_client", metadata.partition("/")[0]}
    assert "panelbench_client/py.typed" in names
    assert needs == ["Requires-Dist: httpx>=0.27"]


@pytest.mark.django_db(transaction=True)
def test_installed_alone_it_does_a_study(cast: Cast, live_server: Any, python: Path, tmp_path: Path) -> None:
    _token, secret = tokens.issue(user=cast.aino, name="script", scope=Scope.WRITE)
    row = '{{"id": "d{0}", "language": "et", "generator": "g", "question": "Küsimus {0}?"}}\n'
    (tmp_path / "dialogues.jsonl").write_text("".join(row.format(n) for n in range(3)), "utf-8")
    study = [python, "-I", "-c", STUDY, live_server.url, secret, tmp_path]
    ran = subprocess.run(study, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    size = (tmp_path / "dialogues.jsonl").stat().st_size
    assert told == {**told, "received": size, "stored": 3, "state": "stored", "server": []}
    assert "kassa" in told["projects"]
    assert len((tmp_path / "items.csv").read_text("utf-8").splitlines()) == 4
