"""Evidence spans of ratings: check them against the stored text, store them, and read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.refusals import Refused
from annotation.blinding import lay_out
from annotation.models import Assignment, Campaign, EvidenceSpan, Item, Rating
from annotation.readers import Span, item_texts, span_fault
from annotation.writers.tables import BATCH

if TYPE_CHECKING:
    from annotation.desk.answers import Answer

PARTS = ("start", "end", "turn", "field", "quote", "label", "severity")
"""The columns of a span, in the order of `Span`."""


def quoted(assignment: Assignment, answered: Mapping[str, Answer]) -> dict[str, Answer]:
    """The answers with the quotes of their spans as the text is stored. Raises ``Refused``, by criterion, for a span
    that is in no text that the annotator sees, or of which the quote is not the text at its offsets."""
    if not any(answer.evidence for answer in answered.values()):
        return dict(answered)
    item = Item.objects.only("turns", "fields").get(pk=assignment.item_id)
    layouts = Campaign.with_hidden.filter(pk=assignment.duty.campaign_id).values_list("dataset__layout", flat=True)
    texts = shown_texts(item, layouts.get())
    wrong = {key: sentence for key, answer in answered.items() if (sentence := _fault_in_words(answer, texts))}
    if wrong:
        raise Refused(_("Some criteria need a correction."), code="invalid", fields=wrong)
    return {key: replace(answer, evidence=_as_stored(answer.evidence, texts)) for key, answer in answered.items()}


def shown_texts(item: Item, layout: Mapping[str, Any] | None) -> dict[int | str, str]:
    """The texts of an item that a dataset's layout shows, by turn (from 0) and by name of a field."""
    parts = lay_out(fields=item.fields, turns=item.turns, layout=layout)
    named = dict(parts.fields)
    if brief := (layout or {}).get("brief"):
        named |= {brief: parts.brief} if parts.brief else {}
    return item_texts(parts.turns, named)


def _fault_in_words(answer: Answer, texts: Mapping[int | str, str]) -> str:
    faults = {span_fault(span, texts) for span in answer.evidence} - {""}
    if "part" in faults:
        return _("This item does not show the marked text. Remove it and mark the text again.")
    if faults:
        return _("The marked text is not what the item says there. Remove it and mark the text again.")
    return ""


def _as_stored(spans: Sequence[Span], texts: Mapping[int | str, str]) -> tuple[Span, ...]:
    """Each span once, in one text, with its quote; labels are those of imported errors, nobody gives one here."""
    found = []
    for start, end, turn, field, *_given in spans:
        part: int | str = field if turn is None else turn
        found.append(Span(start, end, turn, field if turn is None else "", texts[part][start:end]))
    return tuple(dict.fromkeys(found))


def store_spans(ratings: Sequence[Rating], answered: Mapping[str, Answer]) -> None:
    """Store the spans of new ratings, in the caller's transaction."""
    spans = [
        EvidenceSpan(rating=rating, **span._asdict())
        for rating in ratings
        for span in answered[rating.criterion.key].evidence
    ]
    if spans:
        EvidenceSpan.objects.bulk_create(spans)


def as_span(marked: EvidenceSpan) -> Span:
    """A stored span as exports and pages have it."""
    return Span(*(getattr(marked, name) for name in PARTS))


def spans_of(condition: Q) -> dict[int, tuple[Span, ...]]:
    """The spans that a condition on `EvidenceSpan` lets through, by primary key of their rating."""
    found: dict[int, tuple[Span, ...]] = {}
    rows = EvidenceSpan.objects.filter(condition).order_by("pk").values_list("rating", *PARTS)
    for rating, *parts in rows.iterator(BATCH):
        found[rating] = (*found.get(rating, ()), Span(*parts))
    return found
