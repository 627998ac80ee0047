"""A whole study comes in at once: its datasets, rubrics, ratings and verdicts, each an import that is part of one.

All of it is stored or nothing. A dataset that the very same files made is not stored again, ratings and verdicts that
are there already collapse, and the same rubric is the same version, so that a study can be imported again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from django.core.files.storage import default_storage
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Project, User
from accounts.refusals import Refused
from annotation import intake as storing
from annotation import reception, retraction, rubrics, targets
from annotation.formats.problems import Problems
from annotation.formats.report import Report
from annotation.formats.rubric import RubricDocument
from annotation.formats.scales import in_words
from annotation.intake import FileRefused
from annotation.models import Campaign, Dataset, Intake, IntakeFile, RubricVersion
from annotation.outlooks import Outlook, plain
from judging import intake_verdicts
from judging.models import JudgeRun
from judging.study_parts import Part, sorted_files, study_of

State, Kind = Intake.State, Intake.Kind
Tell = Callable[[int, int], None]
COUNTED = ("read", "stored", "not_applicable", "collapsed", "collapsed_blank", "missing", "refused", "flagged")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one import of a study came to: the row that was ``made``, or was there, and the import that stored it."""

    kind: str
    made: str
    report: Report
    intake: int | None = None
    files: list[str] = field(default_factory=list)


# --- storing --------------------------------------------------------------------------------------------------------
def carry_out(*, intake: Intake, actor: User | None = None) -> Intake:
    """Store a study, all or nothing; raises ``FileRefused`` with every problem of the part that was refused."""
    reception.start(intake=intake, actor=actor)
    return finish(intake=intake, actor=actor)


def finish(*, intake: Intake, actor: User | None = None) -> Intake:
    """Store a started study. Safe to repeat: what is stored once is not stored again."""
    told: list[Outcome] = []
    with reception.recording(intake) as held, sorted_files(intake, study_of(intake)) as (parts, _left_alone):
        try:
            for outcome in _carried_out(intake, parts, actor, held.tell):
                told.append(outcome)
                _tell(intake, told)
        except Refused:
            take_back(intake, actor)
            reception.tell(intake, Report())
            raise
        storing.settle(intake)
    return intake


def _tell(intake: Intake, told: Sequence[Outcome]) -> None:
    reception.tell(intake, total(told), parts=[asdict(each) for each in told])


def total(told: Sequence[Outcome]) -> Report:
    """The rows of all parts together; rubrics have none. Columns that no part takes are named."""
    rows = [each.report for each in told if each.kind != Kind.RUBRIC]
    report = Report(**{name: sum(getattr(each, name) for each in rows) for name in COUNTED})
    report.left_out = _left_out(told)
    if report.left_out:
        columns = ", ".join(report.left_out)
        report.notes.append(_("Columns of these files that no part of the import takes: %s.") % columns)
    return report


def _left_out(told: Sequence[Outcome]) -> list[str]:
    """The columns that every part with the same file leaves out."""
    parts = [each for each in told if each.kind != Kind.RUBRIC]
    found: dict[str, None] = {}
    for name in dict.fromkeys(name for each in parts for name in each.files):
        first, *others = [each.report.left_out for each in parts if name in each.files]
        found |= dict.fromkeys(column for column in first if all(column in other for other in others))
    return list(found)


def _carried_out(intake: Intake, parts: Sequence[Part], actor: User | None, tell: Tell) -> Iterator[Outcome]:
    """Store one part after the other, telling of each."""
    sizes = [part.size for part in parts]
    for number, part in enumerate(parts):
        tell(sum(sizes[:number]), sum(sizes))
        if part.said.document is not None:
            yield _publish(intake.project, part.said.document, part.said.inferred, actor)
        elif part.said.kind == "dataset":
            yield _same_dataset(intake, part) or _store_dataset(intake, part, actor)
        else:
            yield _store_answers(intake, part, actor)


def undo(*, intake: Intake, actor: User | None = None) -> None:
    """Take back all that a study stored, while nothing depends on it; rubrics, once published, stay."""
    with transaction.atomic():
        retraction.unsettle(intake=intake, actor=actor)
        take_back(intake, actor)


def take_back(intake: Intake, actor: User | None = None) -> None:
    """Undo the parts of a study, the latest first."""
    for part in intake.parts.order_by("-pk").select_related("project").prefetch_related("files"):
        if part.state == State.STORED:
            (intake_verdicts if part.kind == Kind.VERDICTS else retraction).undo(intake=part, actor=actor)
        storing.unstage(part)
        Intake.objects.filter(pk=part.pk, state=State.STORING).update(state=State.FAILED, lease=None)
        retraction.discard(intake=part, actor=actor)


def clear_commands() -> None:
    """Take back what a command had stored of a study before it was killed."""
    ended = Intake.objects.filter(kind=Kind.STUDY, state=State.FAILED, created_by=None, parts__isnull=False)
    for intake in ended.distinct():
        with suppress(Refused):
            take_back(intake)


# --- looking --------------------------------------------------------------------------------------------------------
def look(intake: Intake, tell: Tell = lambda _done, _total: None) -> Outlook:
    """What `carry_out` would come to: all of it is stored, looked at and rolled back.

    Keys: kind, name, title, about, source, parts, left_alone, report, sentence, problems, more_problems.
    """
    told: list[Outcome] = []
    study, sentence, problems = study_of(intake), "", Problems()
    with sorted_files(intake, study) as (parts, left_alone), transaction.atomic():
        try:
            told.extend(_carried_out(intake, parts, intake.created_by, tell))
        except FileRefused as refused:
            sentence, problems = refused.sentence, refused.problems
        except Refused as refused:
            sentence = refused.sentence
        copies, own = _copies(intake), set(intake.parts.values_list("pk", flat=True))
        transaction.set_rollback(True)
    for name in copies:
        default_storage.delete(name)
    return plain(
        {
            "kind": Kind.STUDY.value,
            **{name: getattr(study, name) for name in ("name", "title", "about", "source")},
            "parts": [asdict(replace(each, intake=None) if each.intake in own else each) for each in told],
            "left_alone": left_alone,
            "report": total(told).as_dict(),
            "sentence": sentence,
            "problems": [problem.as_dict() for problem in problems],
            "more_problems": problems.more,
        }
    )


def _copies(intake: Intake) -> list[str]:
    """What the parts of a study have copied out of archives."""
    own = intake.files.values("content")
    copied = IntakeFile.objects.filter(intake__part_of=intake).exclude(content__in=own)
    return list(copied.values_list("content", flat=True))


# --- rubrics --------------------------------------------------------------------------------------------------------
def _publish(project: Project, document: RubricDocument, inferred: bool, actor: User | None) -> Outcome:
    version = rubrics.draft(project=project, document=document, actor=actor)
    is_new = version.state == RubricVersion.State.DRAFT
    if is_new:
        version = rubrics.publish(version=version, actor=actor)
    report = Report(read=1, stored=int(is_new), collapsed=int(not is_new))
    if inferred:
        said = "; ".join(f"{criterion.key}: {in_words(criterion.scale)}" for criterion in document.criteria)
        report.notes.append(_("Each scale is what the answers show, and may have been wider: %s.") % said)
    return Outcome("rubric", str(version), report)


# --- datasets, ratings and verdicts ---------------------------------------------------------------------------------
def _same_dataset(intake: Intake, part: Part) -> Outcome | None:
    """The dataset that these files made in another import, read as now."""
    there = Dataset.objects.ready().filter(project=intake.project, name=part.said.name)
    for dataset in there.exclude(intake__part_of=intake).select_related("intake"):
        if (made_by := dataset.intake) is None or reception.mapping_of(made_by) != part.said.mapping:
            continue
        if set(made_by.files.values_list("sha256", flat=True)) == part.digests:
            earlier = Report.from_dict(made_by.report)
            report = Report(read=earlier.read, collapsed=earlier.read, left_out=earlier.left_out)
            return Outcome("dataset", str(dataset), report, made_by.pk, part.names)
    return None


def _store_dataset(intake: Intake, part: Part, actor: User | None) -> Outcome:
    target = {"name": part.said.name, "licence": part.said.licence}
    if "generator_names" in intake.target:
        target["generator_names"] = intake.target["generator_names"]
    stored = _stored(intake, part, target, actor)
    return _outcome(part, stored, str(Dataset.objects.get(intake=stored)))


def _store_answers(intake: Intake, part: Part, actor: User | None) -> Outcome:
    target = targets.only(project=intake.project, dataset=part.said.dataset, rubric=part.said.rubric)
    stored = _stored(intake, part, target.as_dict(), actor)
    if part.said.kind == "ratings":
        return _outcome(part, stored, Campaign.objects.get(pk=stored.report["campaign"]).name)
    return _outcome(part, stored, f"{JudgeRun.objects.filter(intake=stored).count()} runs")


def _outcome(part: Part, stored: Intake, made: str) -> Outcome:
    return Outcome(part.said.kind, made, Report.from_dict(stored.report), stored.pk, part.names)


def _stored(intake: Intake, part: Part, target: dict[str, Any], actor: User | None) -> Intake:
    """The import of one part, stored: the one that a worker who died had begun, or a new one."""
    one = _begun(intake, part) or reception.enter(
        project=intake.project,
        kind=part.said.kind,
        files=part.unpacked,
        kept=part.kept,
        mapping=part.said.mapping,
        target=target,
        part_of=intake,
        actor=actor,
    )
    if one.state == State.STORED:
        return one
    if one.state == State.STORING:
        Intake.objects.filter(pk=one.pk, state=State.STORING).update(lease=None)
    else:
        reception.start(intake=one, actor=actor)
    finish_one = intake_verdicts.finish if one.kind == Kind.VERDICTS else reception.finish
    return finish_one(intake=one, actor=actor)


def _begun(intake: Intake, part: Part) -> Intake | None:
    alike = intake.parts.filter(kind=part.said.kind).select_related("project")
    return next((each for each in alike if reception.mapping_of(each) == part.said.mapping), None)
