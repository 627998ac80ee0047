"""What a check is: declared once, with its words, and run over the items of one dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from analytics.stats.declared.declaring import translatable
from annotation.checkup.checked_items import CheckedItem

Severity = Literal["error", "warning", "notice"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "notice")
Subject = Literal["families", "turns", "languages", "duplicates", "placeholders", "personal data", "damaged text"]
SUBJECTS: dict[Subject, str] = {
    "families": translatable("Families of items"),
    "turns": translatable("Turns and lengths"),
    "languages": translatable("Languages and scripts"),
    "duplicates": translatable("Duplicates"),
    "placeholders": translatable("Placeholders and markup"),
    "personal data": translatable("Personal data"),
    "damaged text": translatable("Damaged text"),
}
REASONS: dict[str, str] = {
    "no_items": translatable("there are no items"),
    "no_texts": translatable("no item has a text"),
    "no_turns": translatable("no item has turns"),
    "no_dialogues": translatable("most items have no more than one turn"),
    "no_families": translatable("no scenario has more than one item"),
    "one_combination": translatable("there is only one language and one generator"),
    "no_common_role": translatable("no role occurs in at least 90 % of the dialogues"),
    "unknown_languages": translatable("the languages of this dataset are not known to the language identifier"),
    "few_items": translatable("no language has at least 20 items"),
    "too_short": translatable("every text is too short to tell its language"),
    "nobody_skipped": translatable("no annotator has worked on these items"),
}
"""Why a check does not apply to a dataset, by code; each follows on "because"."""
Values = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class Hit:
    """What a check found in an item: at which turn or field, if it is at one, and the values of the check's words."""

    ordinal: int
    place: int | str | None = None
    values: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckScope:
    """What is known of a dataset before its items are read.

    ``languages``: the declared ones of the dataset and of its project. ``flagged``: the ordinals of the items that
    annotators skipped because they are in another language, with how many did; None if nobody has rated any.
    ``natives``: by ordinal, whether at least half of the annotators who read the item flagged its language so.
    """

    languages: frozenset[str] = frozenset()
    flagged: dict[int, int] | None = None
    natives: Mapping[int, bool] = field(default_factory=dict)


class Check:
    """One check over one dataset. It looks at every item in order, then tells what only the whole set shows.

    ``says``: what is found, with the values of a `Hit`. Values whose names end in ``language`` or ``languages`` are
    language tags, and shown as names. ``at_work`` is called often by a check that takes long after the last item, so
    that a cancelled check-up ends.
    """

    name: ClassVar[str]
    subject: ClassVar[Subject]
    severity: ClassVar[Severity]
    title: ClassVar[str]
    help: ClassVar[str]
    says: ClassVar[str] = "%(text)s"

    at_work: Callable[[], None]

    def __init__(self, scope: CheckScope) -> None:
        self.scope = scope
        self.at_work = lambda: None

    def look(self, item: CheckedItem) -> Iterable[Hit]:
        """What is wrong with one item."""
        return ()

    def finish(self) -> Iterable[Hit]:
        """What is wrong with items, seen after the last one."""
        return ()

    def why_not(self) -> str:
        """The code of the reason why the check does not apply to this dataset, after the last item; "" if it does."""
        return ""
