"""What annotators have done, in items and active seconds, and what it is paid at the rate of the duty.

Seconds are those that the desk counted: of a pause without moving, typing or scrolling, one minute at most.
Controls and repeats are work like any other item, and annotators can't tell them from items: they count and are paid
alike. Training and exams do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.models import User
from accounts.refusals import Refused
from annotation.desk import leasing
from annotation.models import Annotation, Campaign, Duty, PayRate
from annotation.qualification.references import UNSEEN

CENT = Decimal("0.01")
LARGEST = Decimal(10_000)
COUNTED = (Duty.Purpose.RATING, *UNSEEN)


@dataclass(frozen=True, slots=True)
class Work:
    """What one annotator has submitted in one duty, its controls and repeats among the items.

    `seconds`: of the `timed` items whose time is known. `is_removed`: the person was removed, so nothing is paid.
    """

    duty: Duty
    annotator: int
    pseudonym: str
    items: int
    timed: int
    seconds: float
    rate: PayRate | None
    is_removed: bool = False

    @property
    def hours(self) -> float:
        return self.seconds / 3600

    @property
    def earned(self) -> Decimal | None:
        """In USD, rounded to the cent; None without a rate."""
        return amount(self.rate, items=self.items, seconds=self.seconds)

    @property
    def rate_text(self) -> str:
        """What an hour or an item is paid."""
        return rate_text(self.rate)

    @property
    def earned_text(self) -> str:
        """The same with its currency: 12.50 USD."""
        return "" if self.earned is None else f"{self.earned} USD"


def rate_text(rate: PayRate | None) -> str:
    """The amount of a rate without zeros that say nothing: 18.5; nothing without a rate."""
    return f"{rate.amount.normalize():f}" if rate else ""


def amount(rate: PayRate | None, *, items: int, seconds: float) -> Decimal | None:
    """What so much work is paid at a rate, in USD, rounded to the cent; None without a rate."""
    if rate is None:
        return None
    units = Decimal(items) if rate.unit == PayRate.Unit.ITEM else Decimal(str(seconds)) / 3600
    return (rate.amount * units).quantize(CENT, ROUND_HALF_UP)


def set_pay_rate(*, duty: Duty, unit: str, amount: Decimal | None, actor: User) -> PayRate:
    """Set what a duty is paid, from its first item on; the same again changes nothing."""
    wrong = {}
    if unit not in PayRate.Unit.values:
        wrong["unit"] = _("Choose “Hour” or “Item”.")
    if amount is None or not amount.is_finite() or not 0 <= amount <= LARGEST:
        wrong["amount"] = _("Give an amount in USD from 0 to %s, such as 18.50.") % f"{LARGEST:,}"
    if wrong or amount is None:
        raise Refused(" ".join(wrong.values()), code="invalid", fields=wrong)
    with transaction.atomic():
        values = {"unit": unit, "amount": amount, "set_by": actor, "set_at": timezone.now()}
        rate, _is_new = PayRate.objects.update_or_create(duty=duty, defaults=values)
        audit.record(actor=actor, project=duty.campaign.project, verb="set pay rate", subject=duty, fields=["amount"])
    return rate


def work_done(condition: Q) -> list[Work]:
    """The work of annotators by duty, in two statements. `condition` is on annotations."""
    rows: Any = (
        Annotation.objects.filter(condition, superseded_at=None, assignment__duty__purpose__in=COUNTED)
        .annotate(known_duty=Coalesce("assignment__duty__stands_for", "assignment__duty"))
        .values("known_duty", "annotator", "annotator__pseudonym", "annotator__removed_at")
        .annotate(items=Count("pk"), timed=Count("seconds"), spent=Sum("seconds"))
        .order_by("known_duty", "annotator__pseudonym")
    )
    found = list(rows)
    duties = Duty.objects.select_related("campaign__project", "panel", "pay_rate")
    by_key = duties.in_bulk({row["known_duty"] for row in found})
    return [
        Work(
            duty=by_key[row["known_duty"]],
            annotator=row["annotator"],
            pseudonym=row["annotator__pseudonym"],
            items=row["items"],
            timed=row["timed"],
            seconds=row["spent"] or 0.0,
            rate=None if row["annotator__removed_at"] else getattr(by_key[row["known_duty"]], "pay_rate", None),
            is_removed=row["annotator__removed_at"] is not None,
        )
        for row in found
        if row["known_duty"] in by_key
    ]


def work_in(campaign: Campaign) -> list[Work]:
    """The work of everybody in a campaign."""
    return work_done(Q(campaign=campaign) | Q(campaign__qualification_of=campaign))


@dataclass(frozen=True, slots=True)
class OwnWork:
    """An annotator's own work in one duty: `open` items could still be given to them."""

    work: Work
    open: int


def own_work(user: User) -> list[OwnWork]:
    """What somebody has done themselves, in the projects that they are a member of; nothing of others."""
    here = access.member_of(user, project="campaign__project") & Q(annotator__user=user)
    left = {duty.pk: duty.left for duty in leasing.duties(user)}
    return [OwnWork(one, left.get(one.duty.pk, 0)) for one in work_done(here)]


SHEET = (
    "duty", "panel", "annotator", "items", "items_with_time", "active_hours", "rate_unit", "rate_usd", "amount_usd",
)  # fmt: skip


def pay_rows(campaign: Campaign) -> Iterator[tuple[Any, ...]]:
    """The pay sheet of a campaign under `SHEET`: a row for each duty and annotator, by pseudonym.

    Without people who were removed.
    """
    for one in work_in(campaign):
        if one.is_removed:
            continue
        rate, earned = one.rate, one.earned
        yield (
            one.duty.name, one.duty.panel.name, one.pseudonym, one.items, one.timed, f"{one.hours:.4f}",
            rate.unit if rate else None, rate_text(rate) or None,
            str(earned) if earned is not None else None,
        )  # fmt: skip
