"""A whole study comes in at once: its datasets, rubrics, ratings and verdicts, each as an import of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Project, User
from accounts.refusals import Refused
from annotation import reception, retraction, rubrics, targets
from annotation.formats.encoding import opened
from annotation.formats.mapping import Mapping
from annotation.formats.reading import File
from annotation.formats.report import Report
from annotation.formats.rubric import RubricDocument
from annotation.formats.scales import ScaleFacts, coded, in_words, observed, proposed
from annotation.formats.studies import Import, Study
from annotation.models import Campaign, Dataset, Intake, IntakeFile, RubricVersion
from judging import intake_verdicts
from judging.models import JudgeRun

Part = tuple[Import, list[File]]


@dataclass(slots=True)
class Outcome:
    """What one import of a study came to: the row that was ``made``, or was there, and the import that stored it."""

    kind: str
    made: str
    report: Report
    intake: int | None = None


def carry_out(*, project: Project, study: Study, files: Sequence[File], actor: User | None = None) -> Iterator[Outcome]:
    """Store what the files hold, one import after the other, telling of each; each is stored whole or not at all.

    A dataset that these very files made is not stored again, ratings and verdicts that are there already collapse, and
    the same rubric is the same version, so that a study can be carried out again. Raises ``Refused``.
    """
    parts = _settled(study.parts(files))
    for each, taken in parts:
        if each.document is not None:
            yield _publish(project, each.document, each.inferred, actor)
        elif each.kind == "dataset":
            yield _same_dataset(project, each, taken) or _store_dataset(project, each, taken, actor)
        else:
            yield _store_answers(project, each, taken, actor)


def rehearse(*, project: Project, study: Study, files: Sequence[File]) -> list[Outcome]:
    """What `carry_out` would come to; stores nothing. Raises ``Refused``."""
    with transaction.atomic():
        newest = IntakeFile.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        try:
            return list(carry_out(project=project, study=study, files=files))
        finally:
            for each in IntakeFile.objects.filter(pk__gt=newest, intake__project=project):
                each.content.delete(save=False)
            transaction.set_rollback(True)


# --- rubrics --------------------------------------------------------------------------------------------------------
Facts = dict[str, ScaleFacts]


def _settled(parts: list[Part]) -> list[Part]:
    """The parts, with each rubric that is to be inferred made of the answers that name it."""
    inferred = {each.name: _facts(each.name, parts) for each, _files in parts if each.inferred}
    return [(_with_scales(each, inferred), taken) for each, taken in parts]


def _facts(rubric: str, parts: list[Part]) -> Facts:
    """What all answers on a rubric are, by criterion."""
    facts: Facts = {}
    for each, taken in parts:
        for criterion, seen in (observed(taken, each.mapping) if each.rubric == rubric else {}).items():
            facts[criterion] = facts[criterion].beside(seen) if criterion in facts else seen
    return facts


def _with_scales(each: Import, inferred: dict[str, Facts]) -> Import:
    if each.inferred:
        facts = inferred[each.name]
        return replace(each, document=proposed(each.name, facts, coded(Mapping(), facts)))
    if each.rubric in inferred:
        return replace(each, mapping=coded(each.mapping, inferred[each.rubric]))
    return each


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


# --- datasets -------------------------------------------------------------------------------------------------------
def _same_dataset(project: Project, each: Import, taken: list[File]) -> Outcome | None:
    """The dataset that these files made before, read as now."""
    digests = {_digest(raw) for _name, raw in taken}
    for dataset in Dataset.objects.ready().filter(project=project, name=each.name).select_related("intake"):
        if (intake := dataset.intake) is None or reception.mapping_of(intake) != each.mapping:
            continue
        if set(intake.files.values_list("sha256", flat=True)) == digests:
            read = Report.from_dict(intake.report).read
            return Outcome("dataset", str(dataset), Report(read=read, collapsed=read), intake.pk)
    return None


def _digest(raw: bytes | BinaryIO) -> str:
    return hashlib.file_digest(opened(raw), "sha256").hexdigest()  # type: ignore[arg-type]


def _store_dataset(project: Project, each: Import, taken: list[File], actor: User | None) -> Outcome:
    intake = _carried_out(project, each, taken, {"name": each.name, "licence": each.licence}, actor)
    return Outcome("dataset", str(Dataset.objects.get(intake=intake)), Report.from_dict(intake.report), intake.pk)


# --- ratings and verdicts -------------------------------------------------------------------------------------------
def _store_answers(project: Project, each: Import, taken: list[File], actor: User | None) -> Outcome:
    target = targets.only(project=project, dataset=each.dataset, rubric=each.rubric)
    intake = _carried_out(project, each, taken, target.as_dict(), actor)
    report = Report.from_dict(intake.report)
    if each.kind == "ratings":
        return Outcome(each.kind, str(Campaign.objects.get(pk=intake.report["campaign"]).name), report, intake.pk)
    runs = JudgeRun.objects.filter(intake=intake).select_related("judge")
    return Outcome(each.kind, f"{len(runs)} runs", report, intake.pk)


def _carried_out(
    project: Project, each: Import, taken: list[File], target: dict[str, Any], actor: User | None
) -> Intake:
    intake = reception.enter(
        project=project, kind=each.kind, files=taken, mapping=each.mapping, target=target, actor=actor
    )
    store = intake_verdicts.carry_out if each.kind == "verdicts" else reception.carry_out
    try:
        return store(intake=intake, actor=actor)
    except Refused:
        retraction.discard(intake=intake, actor=actor)
        raise
