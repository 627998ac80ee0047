"""Other people's verdicts come in: each judge of the files gets one run, and every row is stored or accounted for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.imports import import_jobs, lifecycle, previews, removal, targets
from annotation.imports.parsed_files import ParsedFiles, parse_files, parse_import
from annotation.imports.previews import Preview
from annotation.imports.storage import FileRefused
from annotation.imports.targets import Target
from annotation.models import Dataset, Import, RubricVersion
from annotation.readers import (
    File,
    Mapping,
    Progress,
    Report,
    ShareProgress,
    TwoStepProgress,
    VerdictRow,
    progress_between,
)
from judging import judges
from judging.continuing import continued
from judging.imports import verdict_rows
from judging.imports.verdict_rows import VerdictsReport, fit_verdicts
from judging.models import Attempt, Call, Judge, JudgeRun, Verdict

HELD = 0.4  # the part of storing that is holding rows against what there is; the rest is writing them


def store_verdicts(
    *,
    project: Project,
    dataset: Dataset,
    rubric_version: RubricVersion,
    rows: Collection[VerdictRow],
    file_import: Import,
    actor: User | None = None,
    told: ShareProgress | None = None,
) -> VerdictsReport:
    """Store verdicts, all or none; raises `FileRefused` naming every bad row. ``told`` hears how far it is.

    Each judge, and each prompt variant that it was put, becomes an imported one with one run per import. It continues
    the judge's run before it, on this version or an earlier one, so that numbers read them as one. Verdicts that those
    runs have already collapse when they say the same.
    """
    newest = JudgeRun.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    fit = fit_verdicts(
        project=project, dataset=dataset, rubric_version=rubric_version, rows=rows, told=progress_between(told, 0, HELD)
    )
    if fit.problems:
        raise FileRefused(fit.problems)
    try:
        with transaction.atomic():
            runs = {
                judge: _run(_imported(project, *judge), dataset, rubric_version, repeats, file_import, actor)
                for judge, repeats in sorted(fit.repeats.items())
            }
            if any(run.continues_id and run.continues_id > newest for run in runs.values()):
                raise _outrun()
            verdict_rows.write(
                runs={judge: run.pk for judge, run in runs.items()}, rows=fit.rows, told=progress_between(told, HELD, 1)
            )
            import_jobs.settle(file_import)
            audit.record(actor=actor, project=project, verb="import verdicts", subject=file_import)
    except IntegrityError:
        raise _outrun() from None
    return fit.report


def _outrun() -> Refused:
    return Refused(_("Another import stored these judges at the same time. Store this one again."), code="in_use")


def _imported(project: Project, name: str, variant: str) -> Judge:
    """The imported judge of that name, locked until the end of the transaction, so that its runs come one by one."""
    called = judges.imported_name(name, variant)
    there = Judge.objects.filter(project=project, name=called).first()
    if there and (there.provider or judges.known_as(there) != judges.key_of(name, variant)):
        sentence = _("Another judge is already called “%(name)s”. Give the imported judge another name in the mapping.")
        raise Refused(sentence % {"name": called}, code="name_taken")
    judge = judges.imported(project=project, name=name, variant=variant)
    return Judge.objects.select_for_update().get(pk=judge.pk)


def _run(
    judge: Judge,
    dataset: Dataset,
    rubric_version: RubricVersion,
    repeats: int,
    file_import: Import,
    actor: User | None,
) -> JudgeRun:
    here = JudgeRun.objects.filter(judge=judge, dataset=dataset, rubric_version=rubric_version)
    earlier = here.order_by("-pk").first()
    return JudgeRun.objects.create(
        project=judge.project,
        judge=judge,
        dataset=dataset,
        rubric_version=rubric_version,
        repeats=repeats,
        continues=earlier or continued(judge=judge, dataset=dataset, rubric_version=rubric_version),
        file_import=file_import,
        created_by=actor,
    )


# --- imports --------------------------------------------------------------------------------------------------------
def preview_verdicts(*, project: Project, files: Sequence[File], mapping: Mapping, said: dict[str, Any]) -> Preview:
    """What storing files that are no import yet would come to, ``said`` being an import's target."""
    target = targets.resolve(project=project, said=said)
    parsed = parse_files(Import.Kind.VERDICTS, files, mapping, target.rubric_version if target else None, is_shown=True)
    return _compared(parsed, project, target)


def preview_verdict_import(file_import: Import, progress: Progress | None = None) -> Preview:
    """What storing an import would come to; stores nothing. What was read is kept, and is what storing stores."""
    target, way = targets.resolve(project=file_import.project, said=file_import.target), TwoStepProgress(progress)
    mapping, told = lifecycle.mapping_of(file_import), way.reading if target else progress
    parsed = parse_import(file_import, mapping, target.rubric_version if target else None, told, is_shown=True)
    return _compared(parsed, file_import.project, target, way.holding)


def _compared(
    parsed: ParsedFiles, project: Project, target: Target | None, told: ShareProgress | None = None
) -> Preview:
    report = parsed.report
    if target is not None:
        fit = fit_verdicts(
            project=project,
            dataset=target.dataset,
            rubric_version=target.rubric_version,
            rows=parsed.rows,
            told=told,
        )
        previews.append(parsed.problems, fit.problems)
        _complete(report, fit.report)
    report.refused = parsed.problems.refused
    return previews.preview_of(Import.Kind.VERDICTS, parsed, report, target)


def carry_out(*, file_import: Import, actor: User | None = None) -> Import:
    """Store an import of verdicts, all or nothing; raises `FileRefused` with every problem."""
    lifecycle.start(file_import=file_import, actor=actor)
    return finish(file_import=file_import, actor=actor)


def finish(*, file_import: Import, actor: User | None = None, keeps: bool = False) -> Import:
    """Store a started import, as `lifecycle.finish` does."""
    with lifecycle.recording(file_import) as held:
        target = targets.resolve(project=file_import.project, said=file_import.target)
        if target is None:
            raise Refused(_("Choose the dataset and the rubric of these verdicts."), code="no_target")
        mapping = lifecycle.mapping_of(file_import)
        parsed = parse_import(file_import, mapping, target.rubric_version, held.reading, keeps=keeps)
        report = parsed.report
        lifecycle.tell(file_import, report)
        if parsed.problems:
            raise FileRefused(parsed.problems)
        with transaction.atomic():
            stored = store_verdicts(
                project=file_import.project,
                dataset=target.dataset,
                rubric_version=target.rubric_version,
                rows=parsed.rows,
                file_import=file_import,
                actor=actor,
                told=held.writing,
            )
            _complete(report, stored)
            lifecycle.tell(file_import, report)
    return file_import


def undo(*, file_import: Import, actor: User | None = None) -> None:
    """Delete the runs of a stored import, and the judges that have no other."""
    runs = list(JudgeRun.objects.filter(file_import=file_import).select_related("judge"))
    with transaction.atomic():
        removal.unsettle(file_import=file_import, actor=actor)
        removal.require_unused(runs, but=(Verdict, Call))
        Verdict.objects.filter(run__in=runs)._raw_delete(using="default")
        Attempt.objects.filter(call__in=Call.objects.filter(run__in=runs))._raw_delete(using="default")
        Call.objects.filter(run__in=runs)._raw_delete(using="default")
        JudgeRun.objects.filter(file_import=file_import).delete()
        Judge.objects.filter(pk__in=[run.judge_id for run in runs], provider="", runs=None).delete()


def _complete(report: Report, stored: VerdictsReport) -> None:
    report.stored, report.not_applicable = stored.stored, stored.not_applicable
    report.collapsed += stored.collapsed
    report.missing = stored.missing
    flags = {
        "outside the scale: stored, but not used in means": stored.out_of_range,
        "between two points of a scale: kept as they are": stored.fractional,
        "N/A where the rubric allows none: kept as unreadable": stored.unparsed,
    }
    report.flagged = sum(flags.values())
    report.notes += [f"{count:,} verdicts are {words}." for words, count in flags.items() if count]
    if stored.collapsed:
        report.notes.append(f"{stored.collapsed:,} verdicts were already stored and are the same.")
