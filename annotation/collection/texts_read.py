"""What leads do with texts written by people: read them, accept or send them back, and store them as items.

Who wrote a text is a code of the person, or one name for all: it is the item's generator, which no annotator sees. The
id of the item is random, and `desk.leasing` never offers it to its author, in copies of the dataset neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.db.models import Count, Min, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from accounts import access, audit
from accounts.inputs import storable
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.collection.texts import HOLD, UNFINISHED, prompts_of, written_parts
from annotation.imports import storage
from annotation.models import Dataset, Item, WritingDecision, WritingDuty, WritingSubmission, WritingText
from annotation.readers import ItemRow

LONGEST_DECISION_COMMENT = 2_000
LONGEST_NAME = 200
RELEASED = "released"
"""What pages and the API send instead of a decision, to give an unfinished text's place to somebody else."""
NOT_OF_PEOPLE = frozenset(
    {"is_translation", "translated_by", "source_language", "source_item", "source_set_aside", "written_as"}
    | {"family", "family_is_whole", "repeat", "plan", "spec", "simulator", "user_turns", "ended", "set_aside"}
    | {f"translation_{name}" for name in ("family", "family_is_whole", "repeat", "plan", "spec")}
)
"""Attributes of the prompt's item that are about the text of a model, and not about the scenario."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingProgress:
    """How far a duty to write is: texts that are wanted, and how many are in each state."""

    wanted: int
    writing: int
    submitted: int
    returned: int
    accepted: int
    skipped: int
    released: int
    stored: int
    people: int

    @property
    def percent(self) -> int:
        return 100 if self.accepted >= self.wanted else 100 * self.accepted // max(1, self.wanted)


def writing_progress(duty: WritingDuty) -> WritingProgress:
    """The progress of a duty, from its rows."""
    states = {state: Count("pk", filter=Q(state=state)) for state in WritingText.State.values}
    texts = WritingText.objects.filter(duty=duty)
    counted = texts.aggregate(
        **states,
        stored=Count("pk", filter=Q(stored_in__isnull=False)),
        people=Count("annotator", distinct=True),
    )
    return WritingProgress(wanted=len(prompts_of(duty)) * duty.per_prompt, **counted)


def decide_writing(
    *, text: WritingText, number: int, decision: str, comment: str = "", actor: User | None = None
) -> None:
    """Accept a submitted text, or send it back with a comment; an accepted one may still be sent back until it is
    stored. Earlier decisions stay. ``number`` is that of the submission that was read: refused if there is a newer one.
    The same decision again changes nothing. Nobody decides on their own text."""
    access.refuse_archived(text.duty.project)
    comment = storable(comment).strip()
    if actor is not None and text.annotator.user_id == actor.pk:
        raise Refused(_("You wrote this text. Another lead decides on it."), code="own_text")
    if decision not in (WritingDecision.Decision.ACCEPTED, WritingDecision.Decision.RETURNED):
        wrong = _("Accept the text, or send it back.")
        raise Refused(wrong, code="invalid", fields={"decision": wrong})
    if decision == WritingDecision.Decision.RETURNED and not comment:
        wrong = _("Write what should be different.")
        raise Refused(wrong, code="invalid", fields={"comment": wrong})
    if len(comment) > LONGEST_DECISION_COMMENT:
        wrong = _("At most %d characters.") % LONGEST_DECISION_COMMENT
        raise Refused(wrong, code="invalid", fields={"comment": wrong})
    now = timezone.now()
    with transaction.atomic():
        WritingText.objects.select_for_update(no_key=True).get(pk=text.pk)
        newest = WritingSubmission.objects.filter(text=text).order_by("-number").first()
        if newest is None or newest.number != number:
            newer = _("The author has submitted another text since. Read it first; nothing was changed.")
            raise Refused(newer, code="newer_submission")
        own = WritingText.objects.filter(pk=text.pk, stored_in=None)
        if decision == WritingDecision.Decision.ACCEPTED:
            done = own.filter(state=WritingText.State.SUBMITTED).update(state=WritingText.State.ACCEPTED)
        else:
            sent = own.filter(state__in=(WritingText.State.SUBMITTED, WritingText.State.ACCEPTED))
            done = sent.update(state=WritingText.State.RETURNED, key=uuid7(), held_until=now + HOLD)
        if not done:
            if own.filter(state=decision).exists():
                return
            raise Refused(_("This text is in another state now; nothing was changed."), code="wrong_state")
        WritingDecision.objects.create(
            submission=newest, decision=decision, comment=comment, decided_by=actor, decided_at=now
        )
        verb = "accept text" if decision == WritingDecision.Decision.ACCEPTED else "send text back"
        audit.record(actor=actor, project=text.duty.project, verb=verb, subject=text)
    text.refresh_from_db()


def release_writing(*, text: WritingText, actor: User | None = None) -> None:
    """Give the place of an unfinished text to somebody else. The draft stays with its author."""
    access.refuse_archived(text.duty.project)
    with transaction.atomic():
        unfinished = WritingText.objects.filter(pk=text.pk, state__in=UNFINISHED)
        if not unfinished.update(state=WritingText.State.RELEASED):
            raise Refused(_("This text is in another state now; nothing was changed."), code="wrong_state")
        audit.record(actor=actor, project=text.duty.project, verb="release text", subject=text)
    text.refresh_from_db()


def generator_codes(project: Project) -> dict[int, str]:
    """The code of each person who wrote in the project, by annotator: numbered by their first text, never changed."""
    rows = WritingText.objects.filter(duty__project=project).order_by().values("annotator").annotate(first=Min("pk"))
    ordered = sorted(rows, key=lambda row: row["first"])
    return {row["annotator"]: f"person {number:02d}" for number, row in enumerate(ordered, 1)}


def accepted_texts(duty: WritingDuty) -> QuerySet[WritingText]:
    """The accepted texts that are no items yet."""
    return WritingText.objects.filter(duty=duty, state=WritingText.State.ACCEPTED, stored_in=None).order_by("pk")


def store_writing(*, duty: WritingDuty, name: str = "", actor: User | None = None) -> Dataset:
    """Store the accepted texts as items, once: in the next version of the duty's dataset, among the models' texts, or
    as a dataset of the given ``name``.

    Refused: nothing to store, a name that is taken, and a dataset of prompts, which nobody rates, without a ``name``.
    """
    access.refuse_archived(duty.project)
    name = storable(name).strip()
    if len(name) > 200:
        raise Refused(
            _("At most %d characters.") % 200, code="invalid", fields={"name": _("At most %d characters.") % 200}
        )
    with transaction.atomic():
        WritingDuty.objects.select_for_update().get(pk=duty.pk)
        texts = list(accepted_texts(duty).select_related("item"))
        if not texts:
            raise Refused(_("No accepted text waits to be stored."), code="empty")
        if name and Dataset.objects.filter(project=duty.project, name=name).exists():
            raise storage.name_taken(name)
        newest = Dataset.objects.holding(duty.dataset).first() or duty.dataset
        if not name and not newest.allocatable:
            sentence = _("“%(dataset)s” has prompts only. Give the dataset of the texts a name.")
            sentence %= {"dataset": newest.name}
            raise Refused(sentence, code="invalid", fields={"name": sentence})
        for text in texts:
            text.external_id = f"{text.item.cluster[:150]}/{text.item.language}/text-{uuid4().hex[:12]}"
        rows = _rows(duty, texts)
        if name:
            dataset = storage.store(
                project=duty.project,
                name=name,
                items=rows,
                actor=actor,
                layout=duty.dataset.layout,
                licence=duty.dataset.licence,
                derived_from=duty.dataset,
            )
        else:
            dataset = storage.append_items(dataset=newest, items=rows, actor=actor)
        for text in texts:
            text.stored_in = dataset
        WritingText.objects.bulk_update(texts, ["external_id", "stored_in"], batch_size=500)
        audit.record(actor=actor, project=duty.project, verb="store written texts", subject=duty)
    return dataset


def _rows(duty: WritingDuty, texts: Sequence[WritingText]) -> Iterator[ItemRow]:
    codes = generator_codes(duty.project)
    submitted = WritingSubmission.objects.filter(text__in=texts).order_by("number").values_list("text", "texts")
    newest = dict(submitted)
    differing = _attributes_that_differ(duty)
    for text in texts:
        item = text.item
        turns, fields = written_parts(duty, item, newest[text.pk])
        yield ItemRow(
            external_id=text.external_id,
            language=item.language,
            generator=duty.generator or codes[text.annotator_id],
            scenario=item.cluster,
            title="",
            turns=turns,
            fields=fields,
            attributes={
                **{key: value for key, value in item.attributes.items() if key not in NOT_OF_PEOPLE | differing},
                "written_by": "person",
                "writing_duty": duty.name,
                "written_as": text.external_id,
            },
            content_warning=item.content_warning,
            line=0,
        )


def _attributes_that_differ(duty: WritingDuty) -> set[str]:
    """The attributes that differ among the items of one scenario in one language: they describe a text, not the
    scenario."""
    first: dict[tuple[str, str], Mapping[str, Any]] = {}
    differing: set[str] = set()
    items = Item.objects.of(duty.dataset).values_list("language", "scenario", "external_id", "attributes")
    for language, scenario, external, attributes in items.iterator(1_000):
        other = first.setdefault((language, scenario or external), attributes)
        differing |= {name for name in {*other, *attributes} if other.get(name) != attributes.get(name)}
    return differing
