"""What may not be concluded from a curated set, as sentences for its page, the API and exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy

CHOSEN_FOR_BALANCE = gettext_lazy(
    "Items were chosen for balance, not at random, so they have no inclusion probability. "
    "Shares and means in this set say nothing about the source dataset."
)
CHOSEN_BY_VERDICTS = gettext_lazy(
    "The choice depends on the verdicts of one judge. Issues that this judge misses are rarer here than its "
    "verdicts suggest. A sensitivity that is measured on this set is true only of this set."
)
SAME_JUDGE = gettext_lazy(
    "Do not compare this judge with other judges on this set: its own errors decided which items are in it."
)
LANGUAGES = gettext_lazy(
    "Each language was filled separately, so the set does not show in which language issues are more frequent."
)
RANDOM = gettext_lazy(
    "Items were drawn at random, and each has its inclusion probability. "
    "Weight scores by 1 / probability to estimate means of the items that could be drawn."
)
LEFT_OUT = gettext_lazy("Items that were excluded before the choice are not represented.")
SHORT = gettext_lazy("At least one language has fewer items than were asked for. Nothing was added in their place.")
ERRORS_UNKNOWN = gettext_lazy(
    "No panel has labelled items of the source by these criteria, so how often the judge errs is unknown."
)
ERRORS_ASSUMED = gettext_lazy(
    "How many items have an issue follows from labelled items with the same flag, score and generator. "
    "It is assumed that nothing else changes how often the judge errs."
)


def limits_of(rule: Mapping[str, Any], certificate: Mapping[str, Any]) -> list[str]:
    """The sentences that are true of a set with this rule and certificate."""
    is_balanced, by_judge = rule["method"] != "random", certificate["judge"] is not None
    is_judged = is_balanced and by_judge
    is_short = any(row["missing"] for row in certificate["languages"])
    is_unknown = bool(certificate["errors"]) and not any(row["labelled"] for row in certificate["errors"])
    parts = (
        (CHOSEN_FOR_BALANCE, is_balanced),
        (CHOSEN_BY_VERDICTS, is_judged),
        (SAME_JUDGE, is_judged),
        (LANGUAGES, is_balanced and not rule["by_family"] and len(certificate["languages"]) > 1),
        (RANDOM, not is_balanced),
        (ERRORS_UNKNOWN, is_unknown),
        (ERRORS_ASSUMED, any(row["labelled"] for row in certificate["errors"] or ())),
        (LEFT_OUT, any(certificate["left_out"].values())),
        (SHORT, is_short),
    )
    return [str(sentence) for sentence, is_true in parts if is_true]
