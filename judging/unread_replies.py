"""Why replies of a judge have no score: the stored reasons counted, each with some verdicts to look at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from django.db.models import Count, F, Window
from django.db.models.functions import RowNumber
from django.utils.translation import gettext as _

from judging.models import Judge, Verdict
from judging.reading_reasons import LABELS, READ_AS

EXAMPLES = 3
LOOKED_AT = 60
"""The newest verdicts of a reason among which examples are sought, each of another reply: one reply may be about many
criteria."""


@dataclass(frozen=True, slots=True)
class UnreadGroup:
    """The verdicts of one status that have no score for one reason: a code and a rung of `replies.NoScore`, empty where
    none is stored. `examples`: the newest, with their item, criterion and attempt."""

    status: str
    code: str
    rung: str
    count: int
    examples: list[Verdict] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The reason in a few words; the status where no reason is stored, or one of another version."""
        return str(LABELS.get(self.code) or Verdict.Status(self.status).label)

    @property
    def read_as(self) -> str:
        """What the reply was read as, in a few words; empty if that is not known."""
        return str(READ_AS.get(self.rung, ""))


def unread_groups(judge: Judge) -> list[UnreadGroup]:
    """The verdicts of a judge without a score on the scale, by status and reason, the most frequent first."""
    unread = Verdict.objects.filter(run__judge=judge).exclude(status=Verdict.Status.OK).order_by()
    by_reason = ("status", "reason__code", "reason__rung")
    counted = unread.values_list(*by_reason).annotate(count=Count("pk"))
    groups = {
        (status, code or "", rung or ""): UnreadGroup(status, code or "", rung or "", count)
        for status, code, rung, count in counted
    }
    number = Window(RowNumber(), partition_by=[F(name) for name in by_reason], order_by=F("pk").desc())
    newest = unread.annotate(number=number).filter(number__lte=LOOKED_AT).values_list("pk", flat=True)
    about = ("item", "criterion", "attempt__call")
    chosen = Verdict.objects.filter(pk__in=list(newest) if groups else []).select_related(*about).order_by("-pk")
    for verdict in chosen.only(
        *("status", "score", "reason", "run_id", "item__external_id", "item__language", "criterion__key"),
        *("attempt__call__id", "attempt__call__run_id"),
    ):
        reason = verdict.reason or {}
        examples = groups[verdict.status, reason.get("code") or "", reason.get("rung") or ""].examples
        if len(examples) < EXAMPLES and verdict.attempt_id not in {each.attempt_id or 0 for each in examples}:
            examples.append(verdict)
    return sorted(groups.values(), key=lambda group: (-group.count, group.label, group.code, group.rung))


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """How many verdicts have a score, or N/A, and how many have neither."""

    read: int = 0
    unread: int = 0

    @property
    def share(self) -> str:
        """The share that was read, in percent; empty without verdicts. It is 100 only where all were read."""
        both = self.read + self.unread
        if not both:
            return ""
        percent = 100 * self.read / both
        return _("%(percent)s %%") % {"percent": "100" if not self.unread else f"{min(percent, 99.9):.1f}"}


def read_counts(judge: Judge, runs: Collection[int]) -> Mapping[int, ReadCounts]:
    """By key of a run, how many of its verdicts were read; one query."""
    verdicts = Verdict.objects.filter(run__judge=judge, run__in=runs).order_by()
    found: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for run, status, count in verdicts.values_list("run", "status").annotate(count=Count("pk")):
        found[run][status != Verdict.Status.OK] += count
    return {run: ReadCounts(*counts) for run, counts in found.items()}
