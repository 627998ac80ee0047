"""Other people's verdicts: compared with items, scales and earlier imports, and stored as one run for each judge.

A number beyond the scale's ends is kept as `out_of_range` and enters nothing; a fraction between two points is kept and
flagged, as for judges run here (replies).

"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import orjson
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.inputs import storable
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation import bulk
from annotation.imports import checks, import_jobs, lifecycle, previews, targets, undoing
from annotation.imports.parsed_files import parse_import
from annotation.imports.parsing import ParsedFiles, parse_files
from annotation.imports.previews import Preview
from annotation.imports.rating_rows import TOGETHER, Items, chunks, one_of, partitions
from annotation.imports.storage import FileRefused
from annotation.imports.targets import Target
from annotation.models import Criterion, Dataset, Import, RubricVersion
from annotation.readers import (
    File,
    PartitionedRows,
    PlainRow,
    Problem,
    Problems,
    Progress,
    Report,
    ShareProgress,
    TwoStepProgress,
    VerdictRequest,
    VerdictRow,
    Words,
    excerpt,
    progress_between,
)
from annotation.readers import Mapping as ColumnMapping
from judging import judges
from judging.models import Attempt, Call, ErrorTag, Judge, JudgeRun, Verdict
from judging.replies import plain_text
from judging.runs import run_to_continue

LONGEST_JUDGE = 120
LONGEST_MODEL = 160
CENT_FRACTION = Decimal("0.00000001")
MOST_JUDGES = 1_000
MOST_REPEATS = 1000
Status = Verdict.Status
JudgeKey = tuple[str, str]  # name and prompt variant, as the file calls them


@dataclass(slots=True)
class VerdictsReport:
    """Result of the rows: ``given = stored + collapsed + missing`` and those refused.

    ``not_applicable``, ``out_of_range``, ``fractional`` and ``unparsed`` (an N/A that the rubric does not allow) are
    among those stored.
    """

    given: int = 0
    stored: int = 0
    not_applicable: int = 0
    out_of_range: int = 0
    fractional: int = 0
    unparsed: int = 0
    collapsed: int = 0
    missing: int = 0


@dataclass(slots=True)
class VerdictFit:
    """What becomes of each row, and the ``repeats`` of each judge that has one to be stored.

    Those to be stored are in partitions by judge and item, as ``(judge, item, criterion, repeat, status, score,
    applicable, fractional, rationale, request)``, with the primary keys of item and criterion, repeats from 1, and the
    request as a plain `VerdictRequest`, or None.
    """

    rows: PartitionedRows
    report: VerdictsReport
    problems: Problems = field(default_factory=Problems)
    repeats: dict[JudgeKey, int] = field(default_factory=dict)


def fit_verdicts(
    *,
    project: Project,
    dataset: Dataset,
    rubric_version: RubricVersion,
    rows: Collection[VerdictRow],
    progress: ShareProgress | None = None,
) -> VerdictFit:
    """Compare verdicts with the items, the scales, and verdicts of the same judges that were imported before."""
    fit = VerdictFit(partitions(rows), VerdictsReport(given=len(rows)))
    items, known = Items(dataset), _Known(project, dataset, rubric_version)
    criteria = {criterion.key: criterion for criterion in rubric_version.criteria.all()}
    for some in chunks(rows, TOGETHER, progress):
        items_by_name = items.named({row.item for row in some})
        before = known.on({items_by_name[row.item].pk for row in some if row.item in items_by_name})
        fit.rows.extend([plain for row in some if (plain := _fitted(row, fit, items, criteria, before))])
        if len(fit.repeats) > MOST_JUDGES:
            expected = Words("at most %(number)s: is this the column that says who judged?", number=f"{MOST_JUDGES:,}")
            fit.problems.add(_problem(some[0], "judge", Words("too many judges"), expected, "judges"))
            break
    return fit


Before = Mapping[tuple[JudgeKey, int, int, int], tuple[float | None, bool]]
"""Answers by judge, item, criterion and repeat."""


class _Known:
    """The answers imported for this version or one that it extends."""

    def __init__(self, project: Project, dataset: Dataset, rubric_version: RubricVersion) -> None:
        parts = Dataset.objects.parts_of(dataset)
        runs = JudgeRun.objects.filter(project=project, dataset__in=parts, rubric_version=rubric_version)
        imported = runs.exclude(file_import=None).select_related("judge")
        self._judges: dict[int, JudgeKey] = {run.pk: judges.known_as(run.judge) for run in imported}

    def on(self, items: set[int]) -> Before:
        """Those on some items."""
        if not self._judges:
            return {}
        stored = Verdict.objects.filter(run__in=self._judges, item__in=items)
        columns = ("run_id", "item_id", "criterion_id", "repeat", "score", "applicable", "status")
        return {
            (self._judges[run], item, criterion, repeat): (score, applicable and status != Status.UNPARSED)
            for run, item, criterion, repeat, score, applicable, status in stored.values_list(*columns)
        }


def _fitted(
    row: VerdictRow, fit: VerdictFit, items: Items, criteria: Mapping[str, Criterion], before: Before
) -> PlainRow | None:
    """The row as it is to be stored; None when it is refused, there already, or says nothing, which is counted."""
    item, criterion = items.known(row.item), criteria.get(row.criterion)
    if (problem := _unfit(row, items, criterion, criteria)) is not None:
        fit.problems.refuse(problem)
        return None
    if row.missing or item is None or criterion is None:
        fit.report.missing += 1
        return None
    judge, repeat = judges.key_of(row.judge, row.variant), row.repeat + 1  # files count from 0
    if before and (key := (judge, item.pk, criterion.pk, repeat)) in before:
        _meet(row, fit, *before[key])
        return None
    fit.repeats[judge] = max(repeat, fit.repeats.get(judge, 0))
    request = tuple(row.request) if any(part not in (None, "") for part in row.request) else None
    return judge, item.pk, criterion.pk, repeat, *_taken(row, fit.report, criterion), row.rationale, request


def _meet(row: VerdictRow, fit: VerdictFit, score: float | None, applicable: bool) -> None:
    """Compare a verdict with the verdict that was imported before."""
    if (score, applicable) == (row.score, row.applicable):
        fit.report.collapsed += 1
        return
    expected = Words("%(score)s, which was imported before", score=_score_in_words(score, applicable))
    fit.problems.refuse(_problem(row, "score", _score_in_words(row.score, row.applicable), expected, "conflict"))


def _taken(row: VerdictRow, report: VerdictsReport, criterion: Criterion) -> tuple[str, float | None, bool, bool]:
    """Status, score, whether it applies and whether it lies between two points; counted."""
    status, fractional = _held(row, criterion)
    report.stored += 1
    report.not_applicable += not row.applicable and status == Status.OK
    report.out_of_range += status == Status.OUT_OF_RANGE
    report.unparsed += status == Status.UNPARSED
    report.fractional += fractional
    is_read = status != Status.UNPARSED
    return str(status), row.score if is_read else None, row.applicable or not is_read, fractional


def _held(row: VerdictRow, criterion: Criterion) -> tuple[str, bool]:
    """The status of a verdict on its scale, and whether it lies between two points."""
    if row.score is None:
        return (Status.OK if criterion.not_applicable else Status.UNPARSED), False
    is_between_points = not criterion.is_on_scale(row.score)
    is_beyond = not criterion.minimum <= row.score <= criterion.maximum
    if is_beyond or (is_between_points and criterion.level == Criterion.Level.NOMINAL):
        return Status.OUT_OF_RANGE, False
    return Status.OK, is_between_points and criterion.level == Criterion.Level.ORDINAL


def _unfit(
    row: VerdictRow, items: Items, criterion: Criterion | None, criteria: Mapping[str, Criterion]
) -> Problem | None:
    if (item := items.known(row.item)) is None:
        return _problem(row, "item", excerpt(row.item), items.expected(row.item), "unknown_item")
    if row.generator and row.generator != item.generator:
        expected = Words("%(name)s, which wrote the item %(item)s", name=f"“{item.generator}”", item=row.item)
        return _problem(row, "generator", f"“{row.generator}”", expected, "other_generator")
    if criterion is None:
        return _problem(row, "criterion", excerpt(row.criterion), one_of(row.criterion, criteria), "unknown_criterion")
    if (length := len(judges.imported_name(row.judge, row.variant))) > LONGEST_JUDGE:
        return _problem(
            row, "judge", f"{length} characters", Words("at most %(number)s", number=LONGEST_JUDGE), "too_long"
        )
    if row.repeat >= MOST_REPEATS:
        return _problem(
            row, "repeat", str(row.repeat), Words("a number below %(number)s", number=MOST_REPEATS), "repeat"
        )
    return None


def _problem(row: VerdictRow, column: str, actual: str, expected: str, code: str) -> Problem:
    return Problem(row.file, row.line, column, actual, expected, code)


def _score_in_words(score: float | None, applicable: bool) -> str:
    return f"{score:g}" if score is not None else Words("an N/A") if not applicable else Words("nothing readable")


# Imported verdicts as rows. The request behind one, where a file has it, is kept as the attempt of a settled call.

CallKey = tuple[int, int, int | None, int]  # run, item, criterion (None: one reply for all of them), repeat
CALL = ("id", "run_id", "item_id", "criterion_id", "repeat", "state", "tries")
ATTEMPT = (
    *("id", "call_id", "number", "outcome", "request", "reply", "reason", "served_model"),
    *("tokens_in", "tokens_out", "cost", "latency", "at"),
)
VERDICT = ("run_id", "item_id", "criterion_id", "repeat", "status", "score", "applicable", "fractional", "coerced")


def write_verdicts(
    *, runs: Mapping[JudgeKey, int], rows: PartitionedRows, progress: ShareProgress | None = None
) -> None:
    """Insert fitted verdicts in the caller's transaction, by partition; ``runs`` are the keys of the judges' runs."""
    with bulk.Load() as load:
        for partition in rows.with_progress(progress):
            _write_partition(load, runs, partition)


def _write_partition(load: bulk.Load, runs: Mapping[JudgeKey, int], partition: list[PlainRow]) -> None:
    keys = _call_keys(runs, partition)
    requests: dict[CallKey, VerdictRequest] = {}
    for key, (*_answer, request) in zip(keys, partition, strict=True):
        if request is not None:
            requests.setdefault(key, VerdictRequest(*request))
    attempts = _write_requests(load, requests)
    load.insert(
        Verdict,
        (*VERDICT, "rationale", "attempt_id"),
        [
            (runs[judge], *answer, "", rationale, attempts.get(key))
            for key, (judge, *answer, rationale, _request) in zip(keys, partition, strict=True)
        ],
    )


def _call_keys(runs: Mapping[JudgeKey, int], partition: list[PlainRow]) -> list[CallKey]:
    """The call behind each row. Criteria of one item and repeat that have the same prompt and reply share a call: that
    of all criteria where it is the only one, else that of the first of them."""
    texts = [VerdictRequest(*row[-1])[:2] if row[-1] else ("", "") for row in partition]
    first: dict[tuple[Any, ...], int] = {}
    sharing: dict[tuple[Any, ...], list[tuple[str, str]]] = defaultdict(list)
    for (judge, item, criterion, repeat, *_answer), text in zip(partition, texts, strict=True):
        sharing[judge, item, repeat].append(text)
        first.setdefault((judge, item, repeat, text), criterion)
    keys = []
    for (judge, item, criterion, repeat, *_answer), text in zip(partition, texts, strict=True):
        together = sharing[judge, item, repeat]
        is_only_one = len(together) > 1 and len(set(together)) == 1 and any(text)
        of = None if is_only_one else first[judge, item, repeat, text] if any(text) else criterion
        keys.append((runs[judge], item, of, repeat))
    return keys


def _write_requests(load: bulk.Load, requests: Mapping[CallKey, VerdictRequest]) -> dict[CallKey, int]:
    """Store the requests; returns the attempt that holds each."""
    now = timezone.now()
    calls = bulk.reserve_keys(Call, len(requests))
    settled = (Call.State.SETTLED.value, 1)
    load.insert(Call, CALL, [(number, *key, *settled) for number, key in zip(calls, requests, strict=True)])
    attempts = bulk.reserve_keys(Attempt, len(requests))
    load.insert(
        Attempt,
        ATTEMPT,
        [
            (number, call, 1, Attempt.Outcome.REPLIED.value, *_kept(request), now)
            for number, call, request in zip(attempts, calls, requests.values(), strict=True)
        ],
    )
    return dict(zip(requests, attempts, strict=True))


def _kept(request: VerdictRequest) -> tuple[Any, ...]:
    """The columns of an attempt that say what was sent and what came back."""
    sent = {"imported": True, "messages": _messages(request.prompt)} if request.prompt else {}
    reply = {"imported": request.reply} if request.reply else {}
    cost = None if request.cost is None else Decimal(repr(request.cost)).quantize(CENT_FRACTION)
    amounts = (request.served_model[:LONGEST_MODEL], request.tokens_in, request.tokens_out, cost, request.latency)
    return orjson.dumps(sent).decode(), orjson.dumps(reply).decode(), "", *amounts


def _messages(prompt: str) -> list[dict[str, str]]:
    """The messages of a prompt: those of a chat that is written as JSON, else one of the user."""
    with suppress(orjson.JSONDecodeError):
        messages = orjson.loads(prompt) if prompt.startswith("[") else None
        if messages and all(isinstance(message, dict) and "content" in message for message in messages):
            return [
                {
                    "role": storable(str(message.get("role", "user"))),
                    "content": storable(plain_text(message["content"])),
                }
                for message in messages
            ]
    return [{"role": "user", "content": prompt}]


# --- storing, previewing and undoing ---------------------------------------------------------------------------------
HELD = 0.4  # share of the progress for comparing rows with the stored data; the rest is for writing them


def store_verdict_rows(
    *,
    project: Project,
    dataset: Dataset,
    rubric_version: RubricVersion,
    rows: Collection[VerdictRow],
    file_import: Import,
    actor: User | None = None,
    progress: ShareProgress | None = None,
) -> VerdictsReport:
    """Store verdicts, all or none; raises `FileRefused` naming every bad row. ``progress`` gets the share done.

    Each judge, and each prompt variant that it was put, becomes an imported one with one run per import. It continues
    the judge's run before it, on this version or an earlier one, so that numbers read them as one. Verdicts that those
    runs have already collapse when they say the same.
    """
    newest = JudgeRun.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    fit = fit_verdicts(
        project=project,
        dataset=dataset,
        rubric_version=rubric_version,
        rows=rows,
        progress=progress_between(progress, 0, HELD),
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
            write_verdicts(
                runs={judge: run.pk for judge, run in runs.items()},
                rows=fit.rows,
                progress=progress_between(progress, HELD, 1),
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
        continues=earlier or run_to_continue(judge=judge, dataset=dataset, rubric_version=rubric_version),
        file_import=file_import,
        created_by=actor,
    )


# --- imports --------------------------------------------------------------------------------------------------------
def preview_verdicts(
    *, project: Project, files: Sequence[File], mapping: ColumnMapping, target_fields: dict[str, Any]
) -> Preview:
    """What storing files that are not an import yet would give; ``target_fields`` are as in `Import.target`."""
    target = targets.resolve(project=project, target_fields=target_fields)
    parsed = parse_files(Import.Kind.VERDICTS, files, mapping, target.rubric_version if target else None, is_shown=True)
    return _compared(parsed, project, target)


def preview_verdict_import(file_import: Import, progress: Progress | None = None) -> Preview:
    """Preview the result of storing an import; stores no verdicts. The rows that were read are kept for storing."""
    target, way = (
        targets.resolve(project=file_import.project, target_fields=file_import.target),
        TwoStepProgress(progress),
    )
    mapping, reading_progress = file_import.column_mapping(), way.reading if target else progress
    parsed = parse_import(
        file_import, mapping, target.rubric_version if target else None, reading_progress, is_shown=True
    )
    return _compared(parsed, file_import.project, target, way.holding)


def _compared(
    parsed: ParsedFiles, project: Project, target: Target | None, progress: ShareProgress | None = None
) -> Preview:
    report = parsed.report
    if target is not None:
        fit = fit_verdicts(
            project=project,
            dataset=target.dataset,
            rubric_version=target.rubric_version,
            rows=parsed.rows,
            progress=progress,
        )
        checks.append_problems(parsed.problems, fit.problems)
        _complete(report, fit.report)
    report.refused = parsed.problems.refused
    return previews.preview_of(Import.Kind.VERDICTS, parsed, report, target)


def carry_out_verdicts(*, file_import: Import, actor: User | None = None) -> Import:
    """Store an import of verdicts, all or nothing; raises `FileRefused` with every problem."""
    lifecycle.start(file_import=file_import, actor=actor)
    return finish_verdicts(file_import=file_import, actor=actor)


def finish_verdicts(*, file_import: Import, actor: User | None = None, keeps: bool = False) -> Import:
    """Store a started import, as `lifecycle.finish` does."""
    with lifecycle.hold_for_storing(file_import) as held:
        target = targets.resolve(project=file_import.project, target_fields=file_import.target)
        if target is None:
            raise Refused(_("Choose the dataset and the rubric of these verdicts."), code="no_target")
        mapping = file_import.column_mapping()
        parsed = parse_import(file_import, mapping, target.rubric_version, held.reading, keeps=keeps)
        report = parsed.report
        lifecycle.save_report(file_import, report)
        if parsed.problems:
            raise FileRefused(parsed.problems)
        with transaction.atomic():
            stored = store_verdict_rows(
                project=file_import.project,
                dataset=target.dataset,
                rubric_version=target.rubric_version,
                rows=parsed.rows,
                file_import=file_import,
                actor=actor,
                progress=held.writing,
            )
            _complete(report, stored)
            lifecycle.save_report(file_import, report)
    return file_import


def remove_verdicts(*, file_import: Import, actor: User | None = None) -> None:
    """Delete the runs of a stored import, and the judges that have no other."""
    runs = list(JudgeRun.objects.filter(file_import=file_import).select_related("judge"))
    with transaction.atomic():
        undoing.require_unused(runs, but=(Verdict, Call))
        _refuse_tagged(runs)
        Verdict.objects.filter(run__in=runs)._raw_delete(using="default")
        bulk.delete_by_key(Attempt, "call", Call.objects.filter(run__in=runs).values_list("pk", flat=True))
        Call.objects.filter(run__in=runs)._raw_delete(using="default")
        JudgeRun.objects.filter(file_import=file_import).delete()
        Judge.objects.filter(pk__in=[run.judge_id for run in runs], provider="", runs=None).delete()
        undoing.unsettle(file_import=file_import, actor=actor)


def _refuse_tagged(of_import: list[JudgeRun]) -> None:
    """Refuse if people have tagged verdicts of these runs: what they wrote is no part of the import."""
    tags = ErrorTag.objects.filter(verdict__run__in=of_import)
    if count := tags.count():
        names = ErrorTag._meta
        users = f"{count} {names.verbose_name if count == 1 else names.verbose_name_plural}"
        sentence = _("“%(row)s” is in use by %(users)s. Undo those first.")
        run = JudgeRun.objects.filter(pk__in=tags.values("verdict__run")).order_by("pk")[0]
        raise Refused(sentence % {"row": run, "users": users}, code="in_use")


def _complete(report: Report, stored: VerdictsReport) -> None:
    report.stored, report.not_applicable = stored.stored, stored.not_applicable
    report.collapsed += stored.collapsed
    report.missing = stored.missing
    flags = {
        Words("outside the scale: stored, but not used in means"): stored.out_of_range,
        Words("between two points of a scale: kept as they are"): stored.fractional,
        Words("N/A where the rubric allows none: kept as unreadable"): stored.unparsed,
    }
    report.flagged = sum(flags.values())
    report.notes += [
        Words("%(number)s verdicts are %(state)s.", number=f"{count:,}", state=words)
        for words, count in flags.items()
        if count
    ]
    if stored.collapsed:
        report.notes.append(
            Words("%(number)s verdicts were already stored and are the same.", number=f"{stored.collapsed:,}")
        )
