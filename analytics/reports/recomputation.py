"""Bundles with everything that the figures of a report need, and the command that computes the figures again elsewhere.

A bundle needs no database: it holds the ratings tables as they were asked for, the questions, the scales, and the
figures. Figures are compared to `DIGITS` significant digits; every file has its SHA-256 in the manifest.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from django.utils.translation import gettext as _

from accounts.refusals import Refused
from analytics import answer_pages
from analytics.answers.measured import measured_answer
from analytics.answers.numbers_content import no_progress
from analytics.answers.revisions import code_version
from analytics.answers.stored_cells import CellStore
from analytics.judges.thresholds import LIMITS
from analytics.models import GateThresholds
from analytics.questions.asked import question_of
from analytics.questions.plan import plan_of, planned
from analytics.ratings.additions import question_table
from analytics.reports import methods, own_wheel
from analytics.reports.content import ReportLayout, report_parts
from analytics.reports.parts import ReportPart
from annotation import exports as rated
from annotation.models import Campaign
from annotation.readers import parquet_is_installed, rubric_from_dict
from annotation.writers import formats
from annotation.writers.archives import dateless
from annotation.writers.tables import Column, Table

if TYPE_CHECKING:
    from analytics.stats.core.scales import Scale

DIGITS = 12
FORMAT, VERSION = "panelbench recomputation", 1
_MANIFEST, ESTIMATES, QUESTIONS, SCALES = "manifest.json", "estimates.json", "questions.json", "scales.json"
_MOST_NAMED = 5
"""The maximum number of differences that a refusal names."""
README = """\
# {title}

Ratings, questions and figures of a campaign, to be computed again without its database. In the folder of this file,
after the zip was unpacked:

    python3 -m venv env
    env/bin/pip install -r requirements.txt
    env/bin/panelbench recompute .

{wheel} is Panelbench itself, as the instance that wrote this bundle runs it: no package index has it.
pip takes the other packages from the index.
The command checks every file by its SHA-256, computes the figures again, and compares them with estimates.json to
{digits} significant digits. requirements.txt has the versions with which they were computed first, on Python {python}.

- tables/: the ratings tables as the questions asked for them, one row per score
- questions.json: each question with its settings and seed, its table, and the columns of that
- scales.json, rubric.yaml, campaign.json, thresholds.json: how it was rated, and what was declared for judges
- estimates.json: the figures
"""


# --- writing one -----------------------------------------------------------------------------------------------------
def write_recomputation(
    campaign: Campaign, layout: ReportLayout, out: BinaryIO, tell: Callable[[int, int], None]
) -> None:
    """Write the bundle of a report's figures as a zip; figures that are not stored are computed first."""
    files = dict(_files(campaign, report_parts(campaign, layout), tell))
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "code_version": code_version(),
        "digits": DIGITS,
        "programs": methods.program_versions(),
        "sha256": {name: _sha256(content) for name, content in files.items()},
    }
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, content in {_MANIFEST: _document(manifest), **files}.items():
            archive.writestr(dateless(name), content)


def _files(
    campaign: Campaign, parts: Sequence[ReportPart], tell: Callable[[int, int], None]
) -> Iterator[tuple[str, bytes]]:
    questions, figures, written = {}, {}, set()
    for done, part in enumerate(parts):
        tell(done, len(parts))
        with rated.consistent():
            snapshot = answer_pages.answer_now(campaign, part.question)
            found = question_table(campaign, planned(campaign, part.question)).settled()
        content = b"".join(formats.pieces(_plain_scale(found), _kind()))
        name = f"tables/{_sha256(content)[:16]}.{_kind()}"
        if name not in written:
            written.add(name)
            yield name, content
        columns = [[column.name, column.kind] for column in found.columns]
        questions[part.name] = {
            "title": part.title, "query": part.question.query, "settings": part.question.as_json, "table": name,
            "columns": columns,
        }  # fmt: skip
        figures[part.name] = snapshot.content["estimates"]
    tell(len(parts), len(parts))
    yield ESTIMATES, estimates_document(figures)
    yield QUESTIONS, _document(questions)
    yield from _about(campaign)


def _about(campaign: Campaign) -> Iterator[tuple[str, bytes]]:
    """Scales, rubric, design, thresholds, versions and how to use them."""
    scales = {key: asdict(scale) for key, scale in campaign.rubric_version.scales.items()}
    declared = GateThresholds.objects.filter(project=campaign.project).order_by("number")
    names = ("number", "preset", *LIMITS, "audits", "declared_at", "figures_since")
    programs = methods.program_versions()
    pins = [f"./{own_wheel.wheel_name()}"]
    pins += [f"{name}=={version}" for name, version in programs.items() if name not in ("python", "panelbench")]
    pins += [f"pyarrow=={version}"] if (version := methods.program_version("pyarrow")) and _kind() == "parquet" else []
    yield SCALES, _document(scales)
    yield "rubric.yaml", rubric_from_dict(campaign.rubric_version.document).as_yaml().encode()
    yield "campaign.json", _document(rated.design(campaign))
    yield "thresholds.json", _document([{name: getattr(each, name) for name in names} for each in declared])
    yield "requirements.txt", "".join(f"{pin}\n" for pin in pins).encode()
    title = f"{campaign.project.name}: {campaign.name}"
    wheel = own_wheel.wheel_name()
    yield wheel, own_wheel.own_wheel()
    yield "README.md", README.format(title=title, digits=DIGITS, python=programs["python"], wheel=wheel).encode()


def _kind() -> str:
    return "parquet" if parquet_is_installed() else "jsonl"


def _plain_scale(found: Table) -> Table:
    """The table without the scale, which `scales.json` has."""
    place = found.names.index("scale")
    columns = (*found.columns[:place], *found.columns[place + 1 :])
    return Table(found.name, columns, [(*row[:place], *row[place + 1 :]) for row in found.rows])


def _document(content: Any) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True, default=str) + "\n").encode()


def estimates_document(figures: Mapping[str, Iterable[Mapping[str, Any]]]) -> bytes:
    """Figures by question as JSON in one spelling: numbers to `DIGITS` significant digits, keys in order."""
    return _document({name: [_rounded(row) for row in rows] for name, rows in figures.items()})


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") + 0.0 if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): _rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return value


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# --- computing it again ----------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Recomputed:
    """The result of a recomputation: the digest and the number of its figures, and programs with other versions."""

    sha256: str
    figures: int
    other_versions: tuple[str, ...]


def recompute(path: Path, tell: Callable[[int, int], None] = lambda _done, _total: None) -> Recomputed:
    """Compute the figures of a bundle again, a zip or its unpacked folder.

    Refused if a file is missing or was changed, with the file's name, and if figures differ, with the first
    differences.
    """
    files = _checked_files(path)
    questions = json.loads(files[QUESTIONS])
    if missing := sorted({asked["table"] for asked in questions.values()} - files.keys()):
        raise _unusable(_("Missing in the bundle: %s.") % ", ".join(missing))
    scales = {key: _scale(fields) for key, fields in json.loads(files[SCALES]).items()}
    figures: dict[str, list[dict[str, Any]]] = {}
    for done, (name, asked) in enumerate(questions.items()):
        tell(done, len(questions))
        found = _table(asked, files[asked["table"]])
        plan, store = plan_of(question_of(asked["query"]), scales), CellStore(None, "", code_version())
        content = measured_answer(found, plan, store=store, progress=no_progress)
        figures[name] = content["estimates"]
    tell(len(questions), len(questions))
    again, before = estimates_document(figures), files[ESTIMATES]
    if again != before:
        raise _differs(json.loads(before), json.loads(again))
    programs = json.loads(files[_MANIFEST])["programs"]
    here = methods.program_versions()
    others = [f"{name} {here.get(name, '-')} ({wrote})" for name, wrote in programs.items() if here.get(name) != wrote]
    return Recomputed(_sha256(again), sum(map(len, figures.values())), tuple(others))


def _checked_files(path: Path) -> dict[str, bytes]:
    """The manifest and every file that it lists, each with the digest in the manifest; other files are not read."""
    files = _read_files(path)
    try:
        manifest = json.loads(files[_MANIFEST])
        digests, is_ours = dict(manifest["sha256"]), manifest["format"] == FORMAT
        is_newer = int(manifest["version"]) > VERSION or manifest["digits"] != DIGITS
    except (KeyError, ValueError, TypeError, RecursionError):
        digests, is_ours, is_newer = {}, False, False
    if not is_ours:
        raise _unusable(_("%s is no bundle for a recomputation: it has no manifest of one.") % path)
    if is_newer:
        raise _unusable(_("A newer Panelbench wrote this bundle. Install the version in its requirements.txt."))
    listed = {name: content for name, content in files.items() if name in digests}
    if missing := sorted({*digests, ESTIMATES, QUESTIONS, SCALES} - listed.keys()):
        raise _unusable(_("Missing in the bundle: %s.") % ", ".join(missing))
    if changed := sorted(name for name, digest in digests.items() if _sha256(files[name]) != digest):
        raise _unusable(_("Changed since the bundle was written: %s.") % ", ".join(changed))
    return {_MANIFEST: files[_MANIFEST], **listed}


def _read_files(path: Path) -> dict[str, bytes]:
    if path.is_dir():
        inner = [each for each in sorted(path.rglob("*")) if each.is_file()]
        return {each.relative_to(path).as_posix(): each.read_bytes() for each in inner}
    try:
        with ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    except (BadZipFile, OSError, EOFError, RuntimeError, ValueError, zlib.error) as error:  # of changed bytes
        raise _unusable(_("%(path)s can't be read: %(error)s.") % {"path": path, "error": error}) from None


def _scale(fields: Mapping[str, Any]) -> Scale:
    from analytics.stats.core.scales import Scale

    return Scale(**{**fields, "points": tuple(fields["points"])})


def _table(asked: Mapping[str, Any], content: bytes) -> Table:
    """The ratings table of a question, with an empty scale in its place."""
    columns = tuple(Column(name, kind) for name, kind in asked["columns"])
    if asked["table"].endswith(".parquet"):
        try:
            import pyarrow.parquet  # type: ignore[import-untyped]
        except ImportError:
            told = _("The bundle has Parquet files. Install pyarrow: its requirements.txt names the version.")
            raise _unusable(told) from None
        rows = cast("list[dict[str, Any]]", pyarrow.parquet.read_table(BytesIO(content)).to_pylist())
    else:
        rows = [json.loads(line) for line in content.decode().splitlines()]
    return Table("ratings", columns, [tuple(row.get(column.name) for column in columns) for row in rows])


def _differs(before: Mapping[str, Any], again: Mapping[str, Any]) -> Refused:
    """Which figures differ, the first `_MOST_NAMED` of them."""
    named = list(_differences(before, again))
    told = _("The figures differ in %(count)d places: %(first)s.")
    return _unusable(told % {"count": len(named), "first": "; ".join(named[:_MOST_NAMED])})


def _differences(before: Mapping[str, Any], again: Mapping[str, Any]) -> Iterator[str]:
    for name, rows in before.items():
        others = again.get(name, [])
        if len(rows) != len(others):
            yield f"{name}: {len(rows)} -> {len(others)}"
        for place, (row, other) in enumerate(zip(rows, others, strict=False)):
            for key in sorted({*row, *other}):
                if row.get(key) != other.get(key):
                    yield f"{name}[{place}].{key}: {row.get(key)} -> {other.get(key)}"


def _unusable(sentence: str) -> Refused:
    return Refused(sentence, code="recomputation_refused")
