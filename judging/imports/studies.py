"""Import a whole study: its datasets, rubrics, ratings and verdicts, each as a part of one import.

Either all parts are stored or none. A study can be imported again: a dataset from the same files, or the same rubric,
is not stored twice, and ratings and verdicts that are already stored are merged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any, BinaryIO, NamedTuple, cast

from django.core.files.storage import default_storage
from django.db import DatabaseError, transaction
from django.utils.translation import gettext as _

from accounts import jobs
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation import rubrics
from annotation.imports import import_jobs, lifecycle, opening, targets, undoing
from annotation.imports import storage as storing
from annotation.imports.check_reports import PreviewReport, plain
from annotation.imports.parsed_files import forget_parsed
from annotation.imports.storage import FileRefused
from annotation.models import Campaign, Dataset, Import, ImportFile, KeptFile, RubricVersion, opened_files
from annotation.readers import (
    File,
    FormatError,
    KnownStudy,
    Problems,
    Report,
    RubricDocument,
    StudyImport,
    is_not_data,
    open_stream,
    scale_in_words,
    unpacked_files,
    with_constants,
    with_inferred_rubrics,
)
from annotation.readers import known_studies as studies
from judging.imports import verdicts
from judging.models import JudgeRun

# --- files -----------------------------------------------------------------------------------------------------------
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")
CONSTANT_FIELDS = (
    "language",
    "generator",
    "scenario",
    "title",
    "content_warning",
    "criterion",
    "rater",
    "judge",
    "variant",
)


class StudyPart(NamedTuple):
    """One import of a study with its files: those that are kept already, and those that come out of an archive."""

    study_import: StudyImport
    kept: list[KeptFile]
    unpacked: list[File]

    @property
    def names(self) -> list[str]:
        """The names of its files."""
        return [*(kept_file.file[0] for kept_file in self.kept), *(name for name, _raw in self.unpacked)]

    @property
    def size(self) -> int:
        """How many bytes there are to read."""
        return sum(kept_file.size for kept_file in self.kept) + sum(
            open_stream(raw).seek(0, 2) for _name, raw in self.unpacked
        )

    @property
    def digests(self) -> set[str]:
        """The SHA-256 of each file."""
        return {kept_file.sha256 for kept_file in self.kept} | {_digest(raw) for _name, raw in self.unpacked}


class Sorted(NamedTuple):
    """The parts that the files of a study are for, and the names of the data files that are for none."""

    parts: list[StudyPart]
    left_alone: list[str]


def study_of(file_import: Import) -> KnownStudy:
    """The study whose files an import says it has, with what it says of all of them. Raises ``Refused``."""
    known, name = studies(), file_import.target.get("study", "")
    if name not in known:
        sentence = _("The study was not recognised by its files and columns. Choose one: %s.")
        raise Refused(sentence % ", ".join(known), code="no_study")
    return with_constants(known[name], _constants(file_import))


def _constants(file_import: Import) -> dict[str, str]:
    """What is the same in all files; a field that no file has is refused, as it would be passed over."""
    texts: dict[str, str] = file_import.target.get("constants", {})
    if unknown := [name for name in texts if name not in CONSTANT_FIELDS and not name.startswith("attributes.")]:
        sentence = _("There is no field “%(name)s” that can be set for all files. Available: %(fields)s, attributes.….")
        raise Refused(sentence % {"name": unknown[0], "fields": ", ".join(CONSTANT_FIELDS)}, code="unknown_field")
    return texts


@contextmanager
def sorted_files(file_import: Import, study: KnownStudy) -> Iterator[Sorted]:
    """The files of an import, open, by the parts of a study. Raises ``Refused``."""
    with ExitStack() as stack:
        kept = stack.enter_context(opened_files(file_import.files.order_by("pk")))
        loose = [kept_file for kept_file in kept if not kept_file.file[0].lower().endswith(ARCHIVES)]
        packed = [kept_file.file for kept_file in kept if kept_file not in loose]
        unpacked = [file for archive in packed for file in _unpacked(archive, stack)]
        files = [*(kept_file.file for kept_file in loose), *unpacked]
        parts = [
            StudyPart(
                study_import,
                [kept_file for kept_file in loose if kept_file.file in taken],
                [file for file in unpacked if file in taken],
            )
            for study_import, taken in _parts(study, files)
        ]
        taken = {name for part in parts for name in part.names}
        if not taken:
            sentence = _("By their names and columns, none of these files belongs to %(study)s: %(files)s.")
            names = ", ".join(name for name, _raw in files)
            raise Refused(sentence % {"study": study.title, "files": names}, code="other_study")
        yield Sorted(parts, [name for name, _raw in files if name not in taken and not is_not_data(name)])


def _parts(study: KnownStudy, files: Sequence[File]) -> list[tuple[StudyImport, list[File]]]:
    """The imports that the files are for, with their rubrics."""
    try:
        return with_inferred_rubrics(study.parts(files))
    except FormatError as error:
        problems = Problems()
        problems.add(error.problem)
        raise FileRefused(problems) from None


def _unpacked(archive: File, stack: ExitStack) -> list[File]:
    """The members of an archive, each as a file of its own until the end."""
    files: list[File] = []
    problems = Problems()
    try:
        for name, raw in unpacked_files([archive], problems):
            copy = cast(BinaryIO, stack.enter_context(TemporaryFile()))  # noqa: SIM115
            copyfileobj(open_stream(raw), copy)
            files.append((name, copy))
    except FormatError as error:
        problems.add(error.problem)
    if problems:
        raise FileRefused(problems)
    return files


def _digest(raw: bytes | BinaryIO) -> str:
    return hashlib.file_digest(open_stream(raw), "sha256").hexdigest()  # type: ignore[arg-type]


State, Kind = Import.State, Import.Kind
Tell = Callable[[int, int], None]
COUNTED = ("read", "stored", "not_applicable", "collapsed", "collapsed_blank", "missing", "refused", "flagged")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one part of a study. ``made`` names the stored object, new or existing (a key of the API)."""

    kind: str
    made: str
    report: Report
    import_id: int | None = None
    files: list[str] = field(default_factory=list)


# --- storing --------------------------------------------------------------------------------------------------------
def carry_out_study(*, file_import: Import, actor: User | None = None) -> Import:
    """Store a study, all or nothing; raises ``FileRefused`` with every problem of the part that was refused."""
    lifecycle.start(file_import=file_import, actor=actor)
    return finish_study(file_import=file_import, actor=actor)


def finish_study(*, file_import: Import, actor: User | None = None) -> Import:
    """Store a started study. Safe to repeat: what is stored once is not stored again."""
    outcomes: list[Outcome] = []
    with (
        lifecycle.hold_for_storing(file_import) as held,
        sorted_files(file_import, study_of(file_import)) as (parts, _left_alone),
    ):
        try:
            for outcome in _carried_out(file_import, parts, actor, held.tell):
                outcomes.append(outcome)
                _tell(file_import, outcomes)
        except Refused:
            _give_back(file_import, actor)
            raise
        import_jobs.settle(file_import)
    return file_import


def _tell(file_import: Import, outcomes: Sequence[Outcome]) -> None:
    lifecycle.save_report(file_import, total(outcomes), parts=[asdict(outcome) for outcome in outcomes])


def total(outcomes: Sequence[Outcome]) -> Report:
    """The rows of all parts together; rubrics have none. Columns that no part takes are named."""
    rows = [outcome.report for outcome in outcomes if outcome.kind != Kind.RUBRIC]
    report = Report(**{name: sum(getattr(row, name) for row in rows) for name in COUNTED})
    report.left_out = _left_out(outcomes)
    if report.left_out:
        columns = ", ".join(report.left_out)
        report.notes.append(_("These columns are not used by any part of the import: %s.") % columns)
    return report


def _left_out(outcomes: Sequence[Outcome]) -> list[str]:
    """The columns that every part with the same file leaves out."""
    parts = [outcome for outcome in outcomes if outcome.kind != Kind.RUBRIC]
    columns: dict[str, None] = {}
    for name in dict.fromkeys(name for part in parts for name in part.files):
        first, *others = [part.report.left_out for part in parts if name in part.files]
        columns |= dict.fromkeys(column for column in first if all(column in other for other in others))
    return list(columns)


def _carried_out(
    file_import: Import, parts: Sequence[StudyPart], actor: User | None, tell: Tell, *, keeps: bool = False
) -> Iterator[Outcome]:
    """Store one part after the other, telling of each."""
    sizes = [part.size for part in parts]
    for number, part in enumerate(parts):
        tell(sum(sizes[:number]), sum(sizes))
        if part.study_import.document is not None:
            yield _publish(file_import.project, part.study_import.document, part.study_import.inferred, actor)
        elif part.study_import.kind == "dataset":
            yield _same_dataset(file_import, part) or _store_dataset(file_import, part, actor, keeps)
        else:
            yield _store_answers(file_import, part, actor, keeps)


def remove_study(*, file_import: Import, actor: User | None = None) -> None:
    """Take back all that a study stored, while nothing depends on it; rubrics, once published, stay."""
    with transaction.atomic():
        take_back(file_import, actor)
        undoing.unsettle(file_import=file_import, actor=actor)


def take_back(file_import: Import, actor: User | None = None) -> None:
    """Undo the parts of a study, the latest first."""
    for part in file_import.parts.order_by("-pk").select_related("project").prefetch_related("files"):
        if part.state == State.STORED:
            undo_part = verdicts.remove_verdicts if part.kind == Kind.VERDICTS else undoing.undo
            undo_part(file_import=part, actor=actor)
        storing.unstage(part)
        Import.objects.filter(pk=part.pk, state=State.STORING).update(state=State.FAILED)
        undoing.discard(file_import=part, actor=actor)


def _give_back(file_import: Import, actor: User | None) -> None:
    """Undo the parts, unless another worker or a newer job continues the import."""
    with transaction.atomic():
        now = Import.objects.select_for_update().filter(pk=file_import.pk).values_list("state", "job").first()
        is_held = file_import.job is None or jobs.is_held(file_import.job)  # a command has no job
        if is_held or now == (State.FAILED, file_import.job_id):
            take_back(file_import, actor)
            lifecycle.save_report(file_import, Report())


def clear_failed() -> None:
    """Undo the parts of studies that were cancelled or failed, or were stored by a command that was killed."""
    failed = Import.objects.filter(kind=Kind.STUDY, state=State.FAILED, parts__isnull=False)
    for file_import in failed.distinct():
        with suppress(Refused), transaction.atomic():
            if Import.objects.select_for_update().filter(pk=file_import.pk, state=State.FAILED).exists():
                take_back(file_import)


# --- looking --------------------------------------------------------------------------------------------------------
def study_preview_report(file_import: Import, tell: Tell = lambda _done, _total: None) -> PreviewReport:
    """What `carry_out_study` would store: the whole study is stored, reported and rolled back.

    Keys: kind, name, title, about, source, parts, left_alone, report, sentence, problems, more_problems.
    """
    outcomes: list[Outcome] = []
    forget_parsed(file_import.pk)
    study, sentence, problems = study_of(file_import), "", Problems()
    copies: list[str] = []
    try:
        with sorted_files(file_import, study) as (parts, left_alone), transaction.atomic():
            try:
                outcomes.extend(_carried_out(file_import, parts, file_import.created_by, tell, keeps=True))
            except FileRefused as refused:
                sentence, problems = refused.sentence, refused.problems
            except Refused as refused:
                sentence = refused.sentence
            finally:
                with suppress(DatabaseError):
                    copies = _copies(file_import)
            own = set(file_import.parts.values_list("pk", flat=True))
            transaction.set_rollback(True)
    finally:  # also when the disk is full, or time is up
        for name in copies:
            default_storage.delete(name)
    return plain(
        {
            "kind": Kind.STUDY.value,
            **{name: getattr(study, name) for name in ("name", "title", "about", "source")},
            "parts": [
                asdict(replace(outcome, import_id=None) if outcome.import_id in own else outcome)
                for outcome in outcomes
            ],
            "left_alone": left_alone,
            "report": total(outcomes).as_dict(),
            "sentence": sentence,
            "problems": [problem.as_dict() for problem in problems],
            "more_problems": problems.more,
        }
    )


def _copies(file_import: Import) -> list[str]:
    """What the parts of a study have copied out of archives."""
    own = file_import.files.values("content")
    copied = ImportFile.objects.filter(file_import__part_of=file_import).exclude(content__in=own)
    return list(copied.values_list("content", flat=True))


# --- rubrics --------------------------------------------------------------------------------------------------------
def _publish(project: Project, document: RubricDocument, inferred: bool, actor: User | None) -> Outcome:
    version = rubrics.draft(project=project, document=document, actor=actor)
    is_new = version.state == RubricVersion.State.DRAFT
    if is_new:
        version = rubrics.publish(version=version, actor=actor)
    report = Report(read=1, stored=int(is_new), collapsed=int(not is_new))
    if inferred:
        text = "; ".join(f"{criterion.key}: {scale_in_words(criterion.scale)}" for criterion in document.criteria)
        report.notes.append(_("The scales were taken from the answers; the original scales may be wider: %s.") % text)
    return Outcome("rubric", str(version), report)


# --- datasets, ratings and verdicts ---------------------------------------------------------------------------------
def _same_dataset(file_import: Import, part: StudyPart) -> Outcome | None:
    """The dataset stored from the same files by another import, with the same mapping."""
    there = Dataset.objects.ready().filter(project=file_import.project, name=part.study_import.name)
    for dataset in there.exclude(file_import__part_of=file_import).select_related("file_import"):
        if (made_by := dataset.file_import) is None or made_by.column_mapping() != part.study_import.mapping:
            continue
        if set(made_by.files.values_list("sha256", flat=True)) == part.digests:
            earlier = Report.from_dict(made_by.report)
            report = Report(read=earlier.read, collapsed=earlier.read, left_out=earlier.left_out)
            return Outcome("dataset", str(dataset), report, made_by.pk, part.names)
    return None


def _store_dataset(file_import: Import, part: StudyPart, actor: User | None, keeps: bool) -> Outcome:
    target = {"name": part.study_import.name, "licence": part.study_import.licence}
    if "generator_names" in file_import.target:
        target["generator_names"] = file_import.target["generator_names"]
    stored = _stored(file_import, part, target, actor, keeps)
    return _outcome(part, stored, str(Dataset.objects.get(file_import=stored)))


def _store_answers(file_import: Import, part: StudyPart, actor: User | None, keeps: bool) -> Outcome:
    target = targets.only(
        project=file_import.project, dataset=part.study_import.dataset, rubric=part.study_import.rubric
    )
    stored = _stored(file_import, part, target.as_dict(), actor, keeps)
    if part.study_import.kind == "ratings":
        return _outcome(part, stored, Campaign.objects.get(pk=stored.report["campaign"]).name)
    return _outcome(part, stored, f"{JudgeRun.objects.filter(file_import=stored).count()} runs")


def _outcome(part: StudyPart, stored: Import, text: str) -> Outcome:
    return Outcome(part.study_import.kind, text, Report.from_dict(stored.report), stored.pk, part.names)


def _stored(file_import: Import, part: StudyPart, target: dict[str, Any], actor: User | None, keeps: bool) -> Import:
    """The import of one part, stored: the one that a worker who died had begun, or a new one."""
    one = _begun(file_import, part) or opening.create_import(
        project=file_import.project,
        kind=part.study_import.kind,
        files=part.unpacked,
        kept=part.kept,
        mapping=part.study_import.mapping,
        target=target,
        part_of=file_import,
        actor=actor,
    )
    if one.state == State.STORED:
        return one
    if one.state != State.STORING:  # else a worker who died had begun it
        lifecycle.start(file_import=one, actor=actor)
    finish_one = verdicts.finish_verdicts if one.kind == Kind.VERDICTS else lifecycle.finish
    return finish_one(file_import=one, actor=actor, keeps=keeps)


def _begun(file_import: Import, part: StudyPart) -> Import | None:
    alike = file_import.parts.filter(kind=part.study_import.kind).select_related("project")
    return next(
        (part_import for part_import in alike if part_import.column_mapping() == part.study_import.mapping), None
    )
