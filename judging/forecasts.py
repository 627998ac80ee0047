"""What the replies of a design's pilot say of what its other calls may cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

FEWEST_PILOT_CALLS = 5
"""Replies of a pilot below which the forecast gets no interval."""
STUDENT = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)
"""Upper 2.5 % points of Student's t with 1, 2, ... degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Range:
    """A forecast total with the bounds of its interval; no bounds where too few replies are known."""

    value: Decimal
    low: Decimal | None = None
    high: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PilotForecast:
    """What the replies of a pilot say of the calls that have none yet: a total and its 95 % interval.

    ``calls``: how many replies it rests on. ``cost`` is None without a price. ``unanswered``: the judges of the design
    that no reply is from, without which there is no interval.
    """

    calls: int
    tokens: Range
    cost: Range | None
    unanswered: Sequence[str] = ()


def ratio_forecast(replies: Sequence[tuple[float, float]], *, expected: float, calls: int) -> Range:
    """The total over ``calls`` new calls that were ``expected`` to come to so much; ``replies``: actual and expected.

    Ratio estimator (Cochran 1977, 6.3): R = sum a / sum e, total = R * expected. The 95 % interval has the error of R
    and the spread of the new calls around it: var = (expected / sum e)^2 n s^2 + calls s^2, s^2 = sum (a - R e)^2 /
    (n - 1), Student's t with n - 1 degrees of freedom. No interval from fewer than FEWEST_PILOT_CALLS replies.
    """
    n, actual, base = len(replies), sum(a for a, _e in replies), sum(e for _a, e in replies)
    ratio = actual / base if base else 0.0
    total = ratio * expected
    if n < FEWEST_PILOT_CALLS or not base:
        return Range(_decimal(total))
    spread = sum((a - ratio * e) ** 2 for a, e in replies) / (n - 1)
    error = math.sqrt((expected / base) ** 2 * n * spread + calls * spread)
    half = STUDENT[min(n - 1, len(STUDENT)) - 1] * error
    return Range(_decimal(total), _decimal(max(0.0, total - half)), _decimal(total + half))


def _decimal(number: float) -> Decimal:
    return Decimal(f"{number:.8f}")
