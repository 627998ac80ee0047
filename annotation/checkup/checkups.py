"""Check-ups of datasets: begin one, carry it out in a worker, and make the dataset that leaves out what was found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import islice
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import access, audit, jobs
from accounts.jobs import JobKind
from accounts.models import Job, User
from accounts.refusals import Refused
from annotation.checkup.checked_items import CheckedItem, checked_item
from annotation.checkup.checking import RULES, CheckedDataset, check_items
from annotation.checkup.declared import CheckScope
from annotation.imports import storage
from annotation.models import Annotation, Dataset, DatasetCheckup, Item, Panel, Skip

AT_A_TIME = 200  # items that are read from the database in one piece; each may be long
MADE_AT_ONCE = 2_000  # items; a worker makes a larger dataset


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The dataset that is to be made: without the items in which these checks found something.

    ``families``: without the other items of their scenarios, too, so that families stay complete.
    """

    checks: tuple[str, ...]
    families: bool = False
    name: str = ""

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> LeftOut:
        return cls(tuple(document["checks"]), document["families"], document["name"])


# --- asking for one ---------------------------------------------------------------------------------------------------
def begin_checkup(*, dataset: Dataset, actor: User | None = None) -> DatasetCheckup:
    """A check-up that waits for a worker; the one under way if there is one. The caller enqueues it."""
    with transaction.atomic():
        Dataset.objects.select_for_update(no_key=True).get(pk=dataset.pk)  # of two at the same moment one begins
        checkup, _is_new = DatasetCheckup.objects.select_related("job", "dataset__project").get_or_create(
            dataset=dataset
        )
        if checkup.job is None or not checkup.job.is_open:
            _begin_job(checkup, {}, actor)
    return checkup


def _begin_job(checkup: DatasetCheckup, asked: dict[str, Any], actor: User | None) -> None:
    total = Item.objects.of(checkup.dataset).count()
    checkup.asked = asked
    checkup.save(update_fields=["asked"])
    project = checkup.dataset.project
    jobs.begin(
        kind=Job.Kind.CHECKUP, subject=checkup, project=project, owner=actor, total=total, unit=Job.Unit.ROWS,
        delete_former=True,
    )  # fmt: skip


def carry_out_checkup(checkup_pk: int) -> Dataset | None:
    """What a worker does: check the dataset, or make the one that leaves out what was found, which is returned."""
    checkup = DatasetCheckup.objects.select_related("dataset__project").filter(pk=checkup_pk).first()
    if checkup is None or (job := jobs.take_job(checkup, Job.Kind.CHECKUP)) is None:
        return None
    made = None
    try:
        access.refuse_archived(checkup.dataset.project)
        with jobs.JobHeartbeat(job) as heartbeat:
            if checkup.asked:
                made = _make_again(checkup, LeftOut.from_json(checkup.asked), job, heartbeat)
            else:
                result, digest = examine_dataset(checkup.dataset, lambda done: heartbeat.tell(done, job.total))
            with transaction.atomic():
                if not checkup.asked:
                    _keep(checkup, result, digest)
                if not jobs.finish_job(job, done=job.total):
                    transaction.set_rollback(True)
    except Refused as refused:
        jobs.fail(job, refused.sentence)
    return made


def _keep(checkup: DatasetCheckup, result: CheckedDataset, digest: str) -> None:
    DatasetCheckup.objects.filter(pk=checkup.pk).update(
        result=result.as_json(), rules=RULES, digest=digest, checked_at=timezone.now()
    )


def check_now(*, dataset: Dataset) -> DatasetCheckup:
    """Check a dataset in this process, as a command does, and keep the result. A job under way is cancelled."""
    result, digest = examine_dataset(dataset)
    with transaction.atomic():
        checkup, _is_new = DatasetCheckup.objects.get_or_create(dataset=dataset)
        jobs.drop(checkup)
        _keep(checkup, result, digest)
    return DatasetCheckup.objects.select_related("job", "dataset__project").get(pk=checkup.pk)


# --- checking ---------------------------------------------------------------------------------------------------------
def examine_dataset(
    dataset: Dataset, progress: Callable[[int], None] = lambda _done: None
) -> tuple[CheckedDataset, str]:
    """What a check-up finds in a dataset, and the digest of its items. It takes long: workers and commands only."""
    digest = sha256()

    def read_items() -> Iterator[CheckedItem]:
        columns = ("ordinal", "language", "generator", "scenario", "turns", "fields")
        rows = Item.objects.of(dataset).values_list(*columns, "digest").iterator(chunk_size=AT_A_TIME)
        for *values, item_digest in rows:
            digest.update(item_digest.encode())
            yield checked_item(**dict(zip(columns, values, strict=True)))

    result = check_items(read_items(), _scope(dataset), progress=progress)
    return result, digest.hexdigest()


def _scope(dataset: Dataset) -> CheckScope:
    """The languages of the dataset and of the project's panels, and what annotators skipped as another language."""
    items = Item.objects.of(dataset)
    declared = set(items.order_by().values_list("language", flat=True).distinct())
    panels = set(
        Panel.objects.filter(project=dataset.project_id).exclude(language="").values_list("language", flat=True)
    )
    skipped = Skip.objects.filter(item__in=items.values("pk"), reason=Skip.Reason.LANGUAGE, resolved_at=None)
    people = skipped.values_list("item__ordinal").annotate(people=Count("annotator", distinct=True))
    flagged = dict(people)
    readers: defaultdict[int, set[int]] = defaultdict(set)
    rated = Annotation.objects.filter(item__in=items.values("pk"), superseded_at=None).order_by()
    for ordinal, annotator in rated.values_list("item__ordinal", "annotator").distinct().iterator(5_000):
        readers[ordinal].add(annotator)
    flaggers: defaultdict[int, set[int]] = defaultdict(set)
    for ordinal, annotator in skipped.values_list("item__ordinal", "annotator"):
        flaggers[ordinal].add(annotator)
    natives = {
        ordinal: 0 < len(readers[ordinal] | flaggers[ordinal]) <= 2 * len(flaggers[ordinal])
        for ordinal in sorted({*readers, *flaggers})
    }
    is_rated = bool(natives) or Annotation.objects.filter(item__in=items.values("pk")).exists()
    return CheckScope(frozenset(declared | panels), flagged if is_rated else None, natives)


# --- a dataset without what was found ---------------------------------------------------------------------------------
def leave_out(*, checkup: DatasetCheckup, left_out: LeftOut, actor: User | None = None) -> Dataset | None:
    """Make the dataset that leaves out the items of these findings. None if it is large: then a job makes it, and the
    caller enqueues the check-up.

    Nothing is edited: the new dataset is derived from this one, and its own check-up says how it was made. Asked twice
    for the same, it gives the same dataset. Refused: codes ``not_checked``, ``invalid``, ``same``, ``empty``,
    ``busy``, ``name_taken``, ``archived``.
    """
    kept = Item.objects.of(checkup.dataset).count() - len(_left_ordinals(checkup, left_out))
    if kept > MADE_AT_ONCE:
        with transaction.atomic():
            locked = DatasetCheckup.objects.select_for_update(of=("self",)).select_related("job").get(pk=checkup.pk)
            if locked.job is not None and locked.job.is_open:
                raise Refused(_("A worker is busy with this dataset. Wait until it has finished."), code="busy")
            if made := _made_before(checkup, left_out):
                return made
            _begin_job(checkup, asdict(left_out), actor)
        return None
    with transaction.atomic():  # of two requests at the same moment the second finds what the first has made
        DatasetCheckup.objects.select_for_update(of=("self",)).get(pk=checkup.pk)
        return make_without(checkup=checkup, left_out=left_out, actor=actor)


def _left_ordinals(checkup: DatasetCheckup, left_out: LeftOut) -> set[int]:
    """The items that the new dataset leaves out."""
    if checkup.result is None or checkup.rules != RULES:
        raise Refused(_("Check this dataset first: its last check-up is older than the checks."), code="not_checked")
    result = CheckedDataset.from_json(checkup.result)
    ran = {finding.check: finding for finding in result.findings if not finding.reason}
    if unknown := sorted(set(left_out.checks) - ran.keys()):
        sentence = _("There is no finding %(names)s in this dataset.") % {"names": ", ".join(unknown)}
        raise Refused(sentence, code="invalid", fields={"checks": sentence})
    if not left_out.checks:
        sentence = _("Choose at least one finding.")
        raise Refused(sentence, code="invalid", fields={"checks": sentence})
    ordinals = {ordinal for name in left_out.checks for ordinal in ran[name].held()}
    if left_out.families:
        ordinals |= _of_their_families(checkup.dataset, ordinals)
    if not ordinals:
        raise Refused(_("No item has one of these findings: the dataset would be the same."), code="same")
    if Item.objects.of(checkup.dataset).count() == len(ordinals):
        raise Refused(_("Every item has one of these findings: nothing would be left."), code="empty")
    return ordinals


def _of_their_families(dataset: Dataset, ordinals: set[int]) -> set[int]:
    members = list(Item.objects.of(dataset).exclude(scenario="").values_list("ordinal", "scenario"))
    scenarios = {scenario for ordinal, scenario in members if ordinal in ordinals}
    return {ordinal for ordinal, scenario in members if scenario in scenarios}


def make_without(
    *,
    checkup: DatasetCheckup,
    left_out: LeftOut,
    actor: User | None = None,
    staged: Callable[[int], None] | None = None,
) -> Dataset:
    """Make the dataset of `leave_out` in this process, however large it is."""
    original, ordinals = checkup.dataset, _left_ordinals(checkup, left_out)
    if former := _made_before(checkup, left_out):
        return former
    name = _name_of(original, left_out)
    try:
        items = Item.objects.of(original).iterator(chunk_size=AT_A_TIME)
        made = storage.store(
            project=original.project,
            name=name,
            items=(storage.copied_row(item) for item in items if item.ordinal not in ordinals),
            actor=actor,
            layout=original.layout,
            licence=original.licence,
            derived_from=original,
            allocatable=original.allocatable,
            simulated=original.simulated,
            staged=staged,
        )
    except IntegrityError:  # a dataset of that name was stored at the same time
        raise storage.name_taken(name) from None
    _note_making(made, checkup, left_out, actor)
    return made


def _made_before(checkup: DatasetCheckup, left_out: LeftOut) -> Dataset | None:
    """The dataset of that name if it was made in just this way. Refused: the project has another one of that name."""
    original, name = checkup.dataset, _name_of(checkup.dataset, left_out)
    access.refuse_archived(original.project)
    named = Dataset.objects.filter(project=original.project, name=name)
    for made in named.filter(derived_from=original).select_related("checkup").order_by("-pk"):
        if hasattr(made, "checkup") and made.checkup.made_from == _making(checkup, left_out):
            return made
    if named.exists():
        raise storage.name_taken(name)
    return None


def _name_of(original: Dataset, left_out: LeftOut) -> str:
    return (left_out.name.strip() or _("%(dataset)s, checked") % {"dataset": original.name[:100]})[:120]


def _making(checkup: DatasetCheckup, left_out: LeftOut) -> dict[str, Any]:
    """How a dataset is made, as it is kept with it."""
    counted = Counter(dict.fromkeys(left_out.checks, 0))
    for finding in (checkup.result or {"findings": []})["findings"]:
        if finding["check"] in counted:
            counted[finding["check"]] = finding["items"]
    return {
        "dataset": str(checkup.dataset),
        "digest": checkup.digest,
        "rules": checkup.rules,
        "findings": dict(counted),
        "families": left_out.families,
        "items": len(_left_ordinals(checkup, left_out)),
    }


def _note_making(made: Dataset, checkup: DatasetCheckup, left_out: LeftOut, actor: User | None) -> None:
    """How a dataset was made is kept with it, and in the audit trail."""
    with transaction.atomic():
        DatasetCheckup.objects.update_or_create(dataset=made, defaults={"made_from": _making(checkup, left_out)})
        audit.record(actor=actor, project=made.project, verb="leave out items", subject=made, fields=[*left_out.checks])


def _make_again(checkup: DatasetCheckup, left_out: LeftOut, job: Job, heartbeat: jobs.JobHeartbeat) -> Dataset:
    """Make the dataset, unless a worker that died had made it: then only note how."""
    former = Dataset.objects.ready().filter(
        derived_from=checkup.dataset, name=_name_of(checkup.dataset, left_out), created_at__gte=job.created_at
    )
    if (made := former.order_by("-pk").first()) is None:
        return make_without(
            checkup=checkup,
            left_out=left_out,
            actor=job.owner,
            staged=lambda done: heartbeat.tell(done, job.total),
        )
    if not DatasetCheckup.objects.filter(dataset=made).exclude(made_from={}).exists():
        _note_making(made, checkup, left_out, job.owner)
    return made


# --- reading ----------------------------------------------------------------------------------------------------------
def item_keys(dataset: Dataset, ordinals: Sequence[int]) -> dict[int, tuple[int, str]]:
    """Primary key and id of some items of a dataset, by ordinal."""
    found: dict[int, tuple[int, str]] = {}
    left = iter(ordinals)
    while some := list(islice(left, 500)):
        rows = Item.objects.of(dataset).filter(ordinal__in=some).values_list("ordinal", "pk", "external_id")
        found |= {ordinal: (pk, external_id) for ordinal, pk, external_id in rows}
    return found


def checkup_of(dataset: Dataset) -> DatasetCheckup | None:
    """The check-up of a dataset with its job, if anybody has asked for one."""
    return DatasetCheckup.objects.select_related("job", "dataset__project").filter(dataset=dataset).first()


def is_outdated(checkup: DatasetCheckup) -> bool:
    """Whether there are newer checks than those that it was made with."""
    return checkup.result is not None and checkup.rules != RULES


KINDS: dict[str, JobKind] = {
    Job.Kind.CHECKUP: JobKind(
        model=DatasetCheckup,
        task=lambda _checkup: "annotation.tasks.check_dataset",
        fail=lambda _checkup, _sentence: True,  # the former result stays
        title=lambda checkup: str(checkup.dataset),
        address=lambda checkup: reverse("dataset_checkup", args=[checkup.dataset.project.slug, checkup.dataset_id]),
        related=("dataset__project",),
        interrupted=gettext_lazy(
            "The check-up was interrupted %d times. Start it again when the machine is less busy."
        ),
    )
}
