"""A wheel of the running installation, for bundles that are computed again elsewhere: Panelbench is on no package
index.

It is made from the modules that run, whether they were installed from a wheel or are a checkout, so that it computes as
this instance does. The same installation gives the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module, metadata
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from django.conf import settings

from annotation.writers.archives import dateless

_PACKAGES = ("panelbench", "accounts", "annotation", "judging", "analytics")
RESOURCES = ("templates", "static", "locale")  # folders that a wheel contains inside the package `panelbench`
_LEFT_OUT = {"__pycache__", ".DS_Store"}
TAG = "py3-none-any"
FOOT = f"Wheel-Version: 1.0\nGenerator: panelbench\nRoot-Is-Purelib: true\nTag: {TAG}\n"


def wheel_name() -> str:
    """The name of the wheel's file."""
    return f"panelbench-{settings.VERSION}-{TAG}.whl"


@cache
def own_wheel() -> bytes:
    """The wheel."""
    folder = f"panelbench-{settings.VERSION}.dist-info"
    files = dict(_files())
    files[f"{folder}/METADATA"] = _metadata().encode()
    entry_points = metadata.distribution("panelbench").read_text("entry_points.txt")
    files[f"{folder}/entry_points.txt"] = (entry_points or "").encode()
    files[f"{folder}/WHEEL"] = FOOT.encode()
    record = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in files.items()]
    files[f"{folder}/RECORD"] = "\n".join([*record, f"{folder}/RECORD,,", ""]).encode()
    out = BytesIO()
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(dateless(name), content)
    return out.getvalue()


def _metadata() -> str:
    """The METADATA of the installation. In a checkout its dependencies are those of pyproject.toml: what pip wrote when
    the checkout was installed lacks dependencies that a later commit added."""
    text = metadata.distribution("panelbench").read_text("METADATA") or ""
    project = settings.RESOURCE_DIR / "pyproject.toml"
    if settings.RESOURCE_DIR == settings.PACKAGE_DIR or not project.is_file():
        return text
    head, blank, about = text.partition("\n\n")
    kept = [line for line in head.splitlines() if not line.startswith("Requires-Dist:") or "extra ==" in line]
    needed = tomllib.loads(project.read_text("utf-8"))["project"]["dependencies"]
    return "\n".join([*kept, *(f"Requires-Dist: {one}" for one in needed)]) + blank + about


def _files() -> Iterator[tuple[str, bytes]]:
    for package in _PACKAGES:
        place = Path(str(import_module(package).__file__)).parent
        inside = [path for path in sorted(place.rglob("*")) if path.is_file() and not _LEFT_OUT & set(path.parts)]
        yield from ((f"{package}/{path.relative_to(place).as_posix()}", path.read_bytes()) for path in inside)
    # Installed from a wheel: the package already contains these folders.
    if settings.RESOURCE_DIR == settings.PACKAGE_DIR:
        return
    for name in RESOURCES:
        for path in sorted((settings.RESOURCE_DIR / name).rglob("*")):
            if path.is_file() and not _LEFT_OUT & set(path.parts):
                yield f"panelbench/{path.relative_to(settings.RESOURCE_DIR).as_posix()}", path.read_bytes()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
