"""Bundles of figures: computed again in a process of its own without a database, and what was changed is named."""

from __future__ import annotations

import email
import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from accounts.refusals import Refused
from analytics.reports import own_wheel, recomputation
from annotation.models import Campaign
from tests.analytics import scene
from tests.analytics.test_transfers import asked, carried, fetched
from tests.cast import Cast

ROOT = Path(__file__).resolve().parents[2]


def make_scene(cast: Cast) -> Campaign:
    campaign = scene.rated_campaign(cast)
    scene.with_verdicts(campaign)
    return campaign


@pytest.fixture
def rated(module_scene: tuple[Cast, Campaign]) -> Campaign:
    return module_scene[1]


def bundle(cast: Cast, folder: Path, **options: Any) -> Path:
    browser = cast.client("boris")
    done = carried(asked(browser, what="recomputation", format="zip", **options))
    assert done.state == "done", done.sentence
    path = folder / done.name
    path.write_bytes(fetched(browser, done))
    return path


def unpacked(path: Path) -> Path:
    folder = path.with_suffix("")
    with ZipFile(path) as archive:
        archive.extractall(folder)
    return folder


def run(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, without the settings of this one."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "SYSTEMROOT")}
    env = {**kept, "PANELBENCH_DATA_DIR": str(folder / "elsewhere")}
    command = [sys.executable, "-m", "panelbench.cli", "recompute", str(path)]
    return subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def test_another_process_without_a_database_computes_the_same_figures(
    cast: Cast, rated: Campaign, tmp_path: Path
) -> None:
    path = bundle(cast, tmp_path)
    done = run(path, tmp_path)
    assert done.returncode == 0, done.stderr
    with ZipFile(path) as archive:
        digests = json.loads(archive.read("manifest.json"))["sha256"]
        figures = sum(map(len, json.loads(archive.read("estimates.json")).values()))
    assert figures > 30
    assert done.stdout == f"{figures} figures are the same to 12 digits; estimates.json {digests['estimates.json']}\n"
    assert not (tmp_path / "elsewhere" / "panelbench.sqlite3").exists()


@pytest.mark.parametrize("name", ["tables", "rubric.yaml", "thresholds.json", "questions.json", "requirements.txt"])
def test_a_changed_byte_is_named(cast: Cast, rated: Campaign, tmp_path: Path, name: str) -> None:
    folder = unpacked(bundle(cast, tmp_path))
    files = [each for each in sorted(folder.rglob("*")) if each.is_file()]
    changed = next(each for each in files if name in str(each.relative_to(folder)))
    content = bytearray(changed.read_bytes())
    content[len(content) // 2] ^= 1
    changed.write_bytes(bytes(content))
    with pytest.raises(Refused) as refused:
        recomputation.recompute(folder)
    assert refused.value.sentence == f"Changed since the bundle was written: {changed.relative_to(folder).as_posix()}."


def test_a_missing_file_and_another_zip_are_refused(cast: Cast, rated: Campaign, tmp_path: Path) -> None:
    folder = unpacked(bundle(cast, tmp_path))
    (folder / "scales.json").unlink()
    with pytest.raises(Refused, match=r"Missing in the bundle: scales\.json\."):
        recomputation.recompute(folder)
    other = tmp_path / "other.zip"
    with ZipFile(other, "w") as archive:
        archive.writestr("a.txt", "b")
    for path, told in ((other, "no bundle for a recomputation"), (tmp_path / "nothing.zip", "can't be read")):
        with pytest.raises(Refused, match=told):
            recomputation.recompute(path)


def test_a_zip_with_any_changed_byte_is_refused_or_has_the_same_files(tmp_path: Path) -> None:
    files = dict.fromkeys(("estimates.json", "questions.json", "scales.json"), b"[0.123456789, 2.5, 3.75]\n" * 9)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    about = {"format": recomputation.FORMAT, "version": 1, "digits": recomputation.DIGITS, "sha256": digests}
    files["manifest.json"] = json.dumps(about).encode()
    path = tmp_path / "bundle.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    whole, refused = path.read_bytes(), 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :])
        try:
            assert recomputation._checked_files(path) == files
        except Refused:
            refused += 1
    assert refused > len(whole) / 2
    del about["sha256"]["scales.json"]  # type: ignore[attr-defined]
    with ZipFile(path, "w") as archive:
        for name, content in {**files, "manifest.json": json.dumps(about).encode()}.items():
            archive.writestr(name, content)
    with pytest.raises(Refused, match=r"Missing in the bundle: scales\.json"):
        recomputation.recompute(path)


def test_another_figure_is_named_even_where_all_digests_are_right(cast: Cast, rated: Campaign, tmp_path: Path) -> None:
    folder = unpacked(bundle(cast, tmp_path))
    estimates = json.loads((folder / "estimates.json").read_bytes())
    place = next(place for place, row in enumerate(estimates["agreement"]) if row["value"] is not None)
    before = estimates["agreement"][place]["value"]
    estimates["agreement"][place]["value"] = before * (1 + 1e-9)
    text = json.dumps(estimates, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    (folder / "estimates.json").write_text(text, encoding="utf-8")
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["sha256"]["estimates.json"] = recomputation._sha256(text.encode())
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(Refused) as refused:
        recomputation.recompute(folder)
    named = f"The figures differ in 1 places: agreement[{place}].value: {before * (1 + 1e-9)!r} -> {before!r}."
    assert refused.value.sentence == named


def test_the_table_is_the_one_that_the_question_asked_for(cast: Cast, rated: Campaign, tmp_path: Path) -> None:
    with ZipFile(bundle(cast, tmp_path, question="where=language%3Det")) as archive:
        tables = [name for name in archive.namelist() if name.startswith("tables/")]
        parquet = pytest.importorskip("pyarrow.parquet")
        languages = [set(parquet.read_table(BytesIO(archive.read(name)))["language"].to_pylist()) for name in tables]
    assert languages
    assert all(found == {"et"} for found in languages)


def test_a_server_without_parquet_writes_lines_of_json(
    cast: Cast, rated: Campaign, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recomputation, "parquet_is_installed", lambda: False)
    path = bundle(cast, tmp_path)
    with ZipFile(path) as archive:
        assert all(name.endswith(".jsonl") for name in archive.namelist() if name.startswith("tables/"))
    assert recomputation.recompute(path).figures > 30


def test_a_study_s_layout_is_recomputed_with_its_juries_and_exclusions(
    cast: Cast, rated: Campaign, tmp_path: Path
) -> None:
    scene.with_verdicts(rated, {"fluency": [2] * 6 + [1] * 6, "coherence": 12 * [0]}, name="Teine")
    question = "jury=Kohtunik%2CTeine&jury_rule=median&raters=jaan&raters=mari&exclude=single"
    path = bundle(cast, tmp_path, layout="S2", question=question)
    assert recomputation.recompute(path).figures


@pytest.mark.slow
def test_its_readme_works_word_for_word_in_a_new_environment(cast: Cast, rated: Campaign, tmp_path: Path) -> None:
    """No package index has `panelbench`: the second command failed. Other packages are borrowed, not downloaded."""
    folder = unpacked(bundle(cast, tmp_path))
    commands = re.findall(r"^    (\S.*)$", (folder / "README.md").read_text("utf-8"), re.MULTILINE)
    assert [words.split()[0] for words in commands] == ["python3", "env/bin/pip", "env/bin/panelbench"]
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path), "PIP_NO_INDEX": "1"}
    for number, words in enumerate(commands):
        done = subprocess.run(words.split(), cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stderr)
        if number == 0:  # a .pth in a borrowed folder is not followed, so the checkout stays out of reach
            site_packages = next((folder / "env" / "lib").glob("python3*/site-packages"))
            (site_packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    assert " figures are the same to 12 digits" in done.stdout
    shown = subprocess.run(
        ["env/bin/python", "-c", "import analytics; print(analytics.__file__)"],
        cwd=folder, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(shown.stdout.strip()).is_relative_to(folder / "env")


def test_its_wheel_needs_what_the_code_needs_now() -> None:
    """A checkout that was installed before a dependency was added gave a wheel that could not be imported."""
    with ZipFile(BytesIO(own_wheel.own_wheel())) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        written = email.message_from_bytes(archive.read(name))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = [one for one in written.get_all("Requires-Dist", []) if "extra ==" not in one]
    assert sorted(needed) == sorted(project["dependencies"])
    assert written["Name"] == "panelbench"
