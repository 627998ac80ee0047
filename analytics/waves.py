"""The waves of a campaign's duties: what was drawn, by whom and when, with what probabilities, and what is rated.

A wave is what came into a duty at one time: the whole dataset, a selection, items of a later version, or the next items
that active sampling drew. Who and when are in the audit trail, all else is counted from selections and assignments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, Max, Min, OuterRef, Q, Subquery, Sum
from django.utils.translation import gettext_lazy

from accounts import audit
from accounts.models import AuditEntry, User
from analytics.planning import open_waves
from annotation import pay
from annotation.exports import GIVEN_FORMER
from annotation.models import Annotation, Assignment, Campaign, Duty, Selection

ORIGIN_NAMES = {
    "all": gettext_lazy("All items"),
    "selection": gettext_lazy("A selection"),
    "random": gettext_lazy("Drawn at random"),
    GIVEN_FORMER: gettext_lazy("Next items, drawn by a judge’s scores"),
}
OF_WAVES = ("allocate", "apply taxonomy", "hand out items")
NOT_DRAWN = ("duty", "filter", "list")
"""Kinds of selections that no seed has a part in."""
DRAWN, WITHDRAWN = "draw next items", "take back next items"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """One wave of a duty.

    `lowest`, `highest`: the inclusion probabilities that are stored with its items. `entry`: the line of the audit
    trail about it; None where none was written. `seconds`: of the `timed` annotations, None without any.
    """

    duty: Duty
    number: int
    origin: str
    items: int
    lowest: float
    highest: float
    strata: int
    assignments: int
    submitted: int
    seconds: float | None
    entry: AuditEntry | None
    may_withdraw: bool

    @property
    def origin_name(self) -> str:
        return str(ORIGIN_NAMES.get(self.origin, self.origin))

    @property
    def at(self) -> datetime | None:
        return self.entry.at if self.entry else None

    @property
    def actor(self) -> User | None:
        return self.entry.actor if self.entry else None

    @property
    def about(self) -> dict[str, str]:
        """The criterion and the judge of a draw."""
        return {name: text for name, text in _fields(self.entry).items() if name in ("criterion", "judge")}

    @property
    def seed(self) -> int | None:
        """Of the draw of its items; None where they were not drawn, or the seed is not recorded."""
        if self.origin == "selection":
            chosen = self.duty.chosen
            return chosen.seed if chosen and chosen.rule.get("kind") not in NOT_DRAWN else None
        seed = _fields(self.entry).get("seed") if self.origin == GIVEN_FORMER else None
        return int(seed) if seed else None

    @property
    def probability(self) -> str:
        """The probabilities of its items, from the lowest to the highest; one above 0 is never written as 0."""
        ends = dict.fromkeys(f"{Decimal(f'{end:.3g}'):f}" for end in (self.lowest, self.highest))
        return "–".join(ends)

    @property
    def hours(self) -> float | None:
        return None if self.seconds is None else self.seconds / 3600

    @property
    def price(self) -> Decimal | None:
        """What its ratings so far are paid, in USD; None without a rate."""
        return pay.amount(getattr(self.duty, "pay_rate", None), items=self.submitted, seconds=self.seconds or 0.0)


@dataclass(frozen=True, slots=True)
class WithdrawnWave:
    """A wave that was drawn and taken back before anybody rated it."""

    duty: Duty
    wave: str
    items: str
    at: datetime
    actor: User | None


def waves(campaign: Campaign) -> list[Wave]:
    """The waves of a campaign, duty by duty, the newest first."""
    duties = {duty.pk: duty for duty in campaign.duties.select_related("panel", "pay_rate", "chosen")}
    drawn = Selection.objects.filter(duty__in=duties).order_by("duty", "wave").values("duty", "wave", "origin")
    rows = drawn.annotate(
        items=Count("pk"),
        lowest=Min("probability"),
        highest=Max("probability"),
        strata=Count("stratum", distinct=True),
    )
    slots = _by_wave(Assignment.objects.filter(duty__in=duties), "duty", "item").annotate(
        every=Count("pk"), submitted=Count("pk", filter=Q(state=Assignment.State.SUBMITTED))
    )
    given = Annotation.objects.filter(assignment__duty__in=duties, superseded_at=None)
    times = _by_wave(given, "assignment__duty", "item").annotate(spent=Sum("seconds"))
    states = {(row["of_duty"], row["wave"]): row for row in slots}
    spent = {(row["of_duty"], row["wave"]): row["spent"] for row in times}
    entries = entries_of_waves(rows, _entries(duties.values(), (*OF_WAVES, DRAWN)))
    withdrawable = {(wave.duty.pk, wave.wave) for wave in open_waves(campaign)}
    found = []
    for row in rows:
        key = row["duty"], row["wave"]
        state = states.get(key, {"every": 0, "submitted": 0})
        found.append(
            Wave(
                duty=duties[row["duty"]],
                number=row["wave"],
                origin=row["origin"],
                items=row["items"],
                lowest=row["lowest"],
                highest=row["highest"],
                strata=row["strata"],
                assignments=state["every"],
                submitted=state["submitted"],
                seconds=spent.get(key),
                entry=entries.get(key),
                may_withdraw=key in withdrawable,
            )
        )
    return sorted(found, key=lambda wave: (wave.duty.pk, -wave.number))


def withdrawn_waves(campaign: Campaign) -> list[WithdrawnWave]:
    """The drawn waves that were taken back, the newest first."""
    duties = {duty.pk: duty for duty in campaign.duties.all()}
    found = []
    for entry in reversed(_entries(duties.values(), (WITHDRAWN,))):
        about = _fields(entry)
        found.append(
            WithdrawnWave(
                duties[entry.subject_pk or 0], about.get("wave", ""), about.get("items", ""), entry.at, entry.actor
            )
        )
    return found


def entries_of_waves(
    rows: Iterable[Mapping[str, Any]], entries: Sequence[AuditEntry]
) -> dict[tuple[int, int], AuditEntry]:
    """By duty and wave, the newest entry that names the wave: its number is given again once it is withdrawn.

    Entries from before all of them named it are in the order of the waves that were not drawn, but rules that only
    added annotators wrote one as well. So beyond the first they are known only where there are as many as waves.
    """
    named = {
        (entry.subject_pk, int(wave), entry.verb == DRAWN): entry
        for entry in entries
        if (wave := _fields(entry).get("wave"))
    }
    found, others = {}, defaultdict[int, list[int]](list)
    for row in rows:
        duty, wave, is_drawn = row["duty"], row["wave"], row["origin"] == GIVEN_FORMER
        if entry := named.get((duty, wave, is_drawn)):
            found[duty, wave] = entry
        elif not is_drawn:
            others[duty].append(wave)
    for duty, waves_of in others.items():
        own = [entry for entry in entries if entry.subject_pk == duty and not _fields(entry)]
        certain = waves_of if len(own) == len(waves_of) else [wave for wave in waves_of if wave == 1]
        found.update({(duty, wave): entry for wave, entry in zip(certain, own, strict=False)})
    return found


def _by_wave(rows: Any, duty: str, item: str) -> Any:
    """The rows grouped by duty and wave: the wave that drew their item into their duty."""
    wave = Selection.objects.filter(duty=OuterRef(duty), item=OuterRef(item)).values("wave")[:1]
    return rows.order_by().annotate(of_duty=F(duty), wave=Subquery(wave)).values("of_duty", "wave")


def _entries(duties: Iterable[Duty], verbs: tuple[str, ...]) -> list[AuditEntry]:
    own = AuditEntry.objects.filter(verb__in=verbs, subject=audit.label(Duty), subject_pk__in=[d.pk for d in duties])
    return list(own.select_related("actor").order_by("pk"))


def _fields(entry: AuditEntry | None) -> dict[str, str]:
    """The fields of an entry that are written as name=value."""
    texts = entry.fields if entry else []
    return dict(text.split("=", 1) for text in texts if "=" in text)
