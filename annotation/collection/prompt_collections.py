"""Collections of prompts: what is wanted, who writes and reviews, and how far it is."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from hashlib import sha256
from io import StringIO
from itertools import product

from django.db import IntegrityError, transaction
from django.db.models import Count, Min, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.inputs import is_storable, whole_number
from accounts.languages import canonical_language
from accounts.models import Membership, Project, User
from accounts.refusals import Refused
from analytics.stats.core.spreadsheets import FORMULA_STARTS
from annotation import panels
from annotation.models import CollectedPrompt, CollectionMember, PromptCollection, PromptSlot, PromptVersion

LONGEST_PART = 120  # characters of a task, style or difficulty
LONGEST_GUIDELINES = 100_000
MOST_SLOTS = 5_000
MOST_WANTED = 100_000
WAITS_LONG = timedelta(days=3)  # from here on a review is late
QUOTED_FORMULA = re.compile(rf"'+[{re.escape(''.join(sorted(FORMULA_STARTS)))}]")
"""The beginning of a cell of `slots_csv` whose first quote is no part of the name."""
SLOT_COLUMNS = ("task", "style", "difficulty", "language", "wanted")


@dataclass(frozen=True, slots=True)
class WantedPrompts:
    """A slot that is to be in a collection."""

    task: str
    style: str
    difficulty: str
    language: str
    wanted: int


# --- making a collection ----------------------------------------------------------------------------------------------
def create_collection(
    *,
    project: Project,
    name: str,
    slots: Sequence[WantedPrompts] = (),
    guidelines: Mapping[str, str] | None = None,
    due_on: date | None = None,
    actor: User | None = None,
) -> PromptCollection:
    """An open collection with these slots."""
    access.refuse_archived(project)
    name, texts = _checked_name(name), _checked_guidelines(guidelines or {})
    try:
        with transaction.atomic():
            collection = PromptCollection.objects.create(
                project=project, name=name, guidelines=texts, due_on=due_on, created_by=actor
            )
            set_slots(collection=collection, slots=slots, actor=None)
            audit.record(actor=actor, project=project, verb="create prompt collection", subject=collection)
    except IntegrityError:
        raise _name_taken(name) from None
    return collection


def change_collection(
    *,
    collection: PromptCollection,
    name: str,
    guidelines: Mapping[str, str],
    due_on: date | None,
    slots: Sequence[WantedPrompts] = (),
    read: str | None = None,
    actor: User | None = None,
) -> None:
    """Change name, guidelines and deadline, and add or change slots: all of it, or nothing.

    Refused with the code ``changed`` if ``read``, the `collection_digest` of what the caller saw, is not that of what
    is stored.
    """
    access.refuse_archived(collection.project)
    collection.name, collection.guidelines, collection.due_on = (
        _checked_name(name),
        _checked_guidelines(guidelines),
        due_on,
    )
    fields = ["name", "guidelines", "due_on"]
    try:
        with transaction.atomic():
            stored = PromptCollection.objects.select_for_update(no_key=True).get(pk=collection.pk)
            if read is not None and read != collection_digest(stored):
                sentence = _("Somebody has changed this collection. Open its page in another tab and compare.")
                raise Refused(sentence, code="changed")
            collection.save(update_fields=fields)
            set_slots(collection=collection, slots=slots, actor=actor)
            audit.record(
                actor=actor,
                project=collection.project,
                verb="change prompt collection",
                subject=collection,
                fields=fields,
            )
    except IntegrityError:
        raise _name_taken(name) from None


def collection_digest(collection: PromptCollection) -> str:
    """Another one after each change of name, guidelines or deadline."""
    read = [collection.name, sorted(collection.guidelines.items()), str(collection.due_on)]
    return sha256(json.dumps(read).encode()).hexdigest()[:32]


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= 120 or not is_storable(name):
        raise _invalid("name", _("A name has from 1 to %d characters.") % 120)
    return name


def _name_taken(name: str) -> Refused:
    sentence = _("Another prompt collection of this project is called “%(name)s”. Choose another name.")
    return Refused(sentence % {"name": name}, code="name_taken", fields={"name": sentence % {"name": name}})


def _checked_guidelines(guidelines: Mapping[str, str]) -> dict[str, str]:
    kept = {_language("guidelines", tag): text.strip() for tag, text in guidelines.items() if text.strip()}
    for text in kept.values():
        if len(text) > LONGEST_GUIDELINES or not is_storable(text):
            sentence = _("Shorten the guidelines to %(most)d characters.") % {"most": LONGEST_GUIDELINES}
            raise _invalid("guidelines", sentence)
    return kept


def _language(name: str, tag: str) -> str:
    try:
        return canonical_language(tag.strip())
    except ValueError as error:
        raise _invalid(name, str(error)) from None


def _invalid(name: str, sentence: str) -> Refused:
    return Refused(sentence, code="invalid", fields={name: sentence})


def set_state(*, collection: PromptCollection, state: str, actor: User | None = None) -> bool:
    """Close a collection, so that nothing is written any more, or open it again. False if it was so already."""
    access.refuse_archived(collection.project)
    verb = {"closed": "close prompt collection", "open": "open prompt collection"}[state]
    with transaction.atomic():
        changed = PromptCollection.objects.filter(pk=collection.pk).exclude(state=state).update(state=state)
        if changed:
            audit.record(actor=actor, project=collection.project, verb=verb, subject=collection, fields=["state"])
    collection.refresh_from_db(fields=["state"])
    return bool(changed)


# --- slots ------------------------------------------------------------------------------------------------------------
def crossed_slots(
    *, tasks: Sequence[str], styles: Sequence[str], difficulties: Sequence[str], languages: Sequence[str], wanted: int
) -> list[WantedPrompts]:
    """A slot for every combination, each with the same number."""
    if len(tasks) * (len(styles) or 1) * (len(difficulties) or 1) * len(languages) > MOST_SLOTS:
        raise _invalid("slots", _("A collection has at most %d kinds of prompts.") % MOST_SLOTS)
    return [
        WantedPrompts(task, style, difficulty, language, wanted)
        for task, style, difficulty, language in product(tasks, styles or [""], difficulties or [""], languages)
    ]


def slots_from_csv(text: str) -> list[WantedPrompts]:
    """The slots of a CSV file with the columns task, style, difficulty, language and wanted. Refused with the line."""
    text = text.removeprefix("\ufeff")
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    try:
        header = [name.strip().casefold() for name in next(rows, [])]
        if missing := [name for name in ("task", "language", "wanted") if name not in header]:
            raise _invalid("slots", _("The file has no column “%(name)s”.") % {"name": missing[0]})
        slots = []
        for cells in rows:
            if not any(cell.strip() for cell in cells):
                continue
            plain = (cell[1:] if QUOTED_FORMULA.match(cell) else cell for cell in cells)
            row = dict(zip(header, map(str.strip, plain), strict=False))
            wanted = whole_number(row.get("wanted"), largest=MOST_WANTED)
            if wanted is None:
                sentence = _("Line %(line)d: write in “wanted” a whole number up to %(most)d.")
                raise _invalid("slots", sentence % {"line": rows.line_num, "most": MOST_WANTED})
            parts = (row.get("task", ""), row.get("style", ""), row.get("difficulty", ""), row.get("language", ""))
            slots.append(WantedPrompts(*parts, wanted))
    except csv.Error as error:
        raise _invalid("slots", str(error)) from None
    return slots


def set_slots(*, collection: PromptCollection, slots: Sequence[WantedPrompts], actor: User | None) -> int:
    """Add these slots, or change the number of those that are there; returns how many differ from before.

    A slot of which none is wanted any more is removed, unless it has prompts.
    """
    access.refuse_archived(collection.project)
    wanted: dict[tuple[str, str, str, str], int] = {}
    for slot in slots:
        tag = _language("slots", slot.language)
        parts = tuple(part.strip() for part in (slot.task, slot.style, slot.difficulty))
        if not parts[0] or any(len(part) > LONGEST_PART or not is_storable(part) for part in parts):
            raise _invalid(
                "slots", _("A task has from 1 to %d characters, a style or difficulty at most as many.") % LONGEST_PART
            )
        if not 0 <= slot.wanted <= MOST_WANTED:
            raise _invalid("slots", _("Ask for at most %d prompts of a kind.") % MOST_WANTED)
        wanted[(parts[0], parts[1], parts[2], tag)] = slot.wanted
    changed = 0
    with transaction.atomic():
        PromptCollection.objects.select_for_update(no_key=True).get(pk=collection.pk)
        present = {(slot.task, slot.style, slot.difficulty, slot.language): slot for slot in collection.slots.all()}
        if len(present.keys() | wanted.keys()) > MOST_SLOTS:
            raise _invalid("slots", _("A collection has at most %d kinds of prompts.") % MOST_SLOTS)
        for key, number in wanted.items():
            kept = present.get(key)
            if kept is not None and number == 0 and not kept.prompts.exists():
                kept.delete()
            elif kept is not None and kept.wanted != number:
                PromptSlot.objects.filter(pk=kept.pk).update(wanted=number)
            elif kept is None and number:
                names = dict(zip(("task", "style", "difficulty", "language"), key, strict=True))
                PromptSlot.objects.create(collection=collection, wanted=number, **names)
            else:
                continue
            changed += 1
        if changed and actor is not None:
            audit.record(
                actor=actor, project=collection.project, verb="change slots", subject=collection, fields=["slots"]
            )
    return changed


# --- people -----------------------------------------------------------------------------------------------------------
def set_member(
    *, collection: PromptCollection, user: User, writes: bool, reviews: bool, actor: User | None = None
) -> CollectionMember:
    """Let a member of the project write, review, do both, or neither any more."""
    access.refuse_archived(collection.project)
    if not Membership.objects.filter(project=collection.project_id, user=user).exists():
        raise Refused(_("Only members of the project can write prompts. Invite the person first."), code="not_a_member")
    annotator = panels.annotator_for(project=collection.project, user=user)
    chosen = {"writes": writes, "reviews": reviews}
    with transaction.atomic():
        member, _is_new = CollectionMember.objects.update_or_create(
            collection=collection, annotator=annotator, defaults=chosen
        )
        audit.record(
            actor=actor, project=collection.project, verb="set prompt writers", subject=member, fields=[*chosen]
        )
    return member


def member_of_collection(collection: PromptCollection, user: User) -> CollectionMember | None:
    """The user as a writer or reviewer of this collection."""
    own = collection.members.filter(Q(writes=True) | Q(reviews=True), annotator__user=user)
    return own.select_related("annotator", "collection__project").first()


# --- progress ---------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class SlotProgress:
    """A slot with the numbers of its prompts. ``open``: in review or sent back. ``held``: sent back to somebody who can
    still revise it."""

    slot: PromptSlot
    accepted: int = 0
    in_review: int = 0
    returned: int = 0
    rejected: int = 0
    released: int = 0
    held: int = 0

    @property
    def open(self) -> int:
        return self.in_review + self.returned

    @property
    def left(self) -> int:
        """How many are still to be written."""
        return max(0, self.slot.wanted - self.accepted - self.in_review - self.held)


@dataclass(slots=True)
class MemberProgress:
    """What a person has written, by state, and reviewed; ``waiting``: prompts that were sent back to them."""

    member: CollectionMember
    written: int = 0
    accepted: int = 0
    waiting: int = 0
    rejected: int = 0
    reviewed: int = 0


@dataclass(frozen=True, slots=True)
class CollectionProgress:
    """How far a collection is. ``late_reviews``: prompts that have waited for a review for three days or more."""

    slots: list[SlotProgress]
    members: list[MemberProgress]
    late_reviews: int
    oldest_waiting: date | None
    is_overdue: bool

    def total(self, name: str) -> int:
        return sum(getattr(slot, name) for slot in self.slots)

    @property
    def wanted(self) -> int:
        return sum(slot.slot.wanted for slot in self.slots)

    @property
    def accepted(self) -> int:
        return self.total("accepted")

    @property
    def in_review(self) -> int:
        return self.total("in_review")

    @property
    def returned(self) -> int:
        return self.total("returned")

    @property
    def left(self) -> int:
        return self.total("left")


def slot_progress(collection: PromptCollection) -> list[SlotProgress]:
    """Every slot with its counts, in order."""
    rows = CollectedPrompt.objects.filter(collection=collection).exclude(state=CollectedPrompt.State.DRAFT).order_by()
    counts = {(slot, state): count for slot, state, count in rows.values_list("slot", "state").annotate(Count("pk"))}
    writing = Membership.objects.filter(project=collection.project_id, user__is_active=True).values("user")
    returned = rows.filter(state=CollectedPrompt.State.RETURNED, author__writes=True)
    held = dict(returned.filter(author__annotator__user__in=writing).values_list("slot").annotate(Count("pk")))
    states = [state.value for state in CollectedPrompt.State if state != CollectedPrompt.State.DRAFT]
    return [
        SlotProgress(slot, held=held.get(slot.pk, 0), **{state: counts.get((slot.pk, state), 0) for state in states})
        for slot in collection.slots.all()
    ]


def collection_progress(collection: PromptCollection) -> CollectionProgress:
    """The counts of a lead's page."""
    slots = slot_progress(collection)
    rows = CollectedPrompt.objects.filter(collection=collection).exclude(state=CollectedPrompt.State.DRAFT).order_by()
    written: dict[int, Counter[str]] = defaultdict(Counter)
    for author, state, count in rows.values_list("author", "state").annotate(Count("pk")):
        written[author][state] = count
    reviews = PromptVersion.objects.filter(prompt__collection=collection).exclude(reviewer=None).order_by()
    reviewed = dict(reviews.values_list("reviewer").annotate(Count("pk")))
    members = [
        MemberProgress(
            member,
            written=written[member.pk].total(),
            accepted=written[member.pk]["accepted"],
            waiting=written[member.pk]["returned"],
            rejected=written[member.pk]["rejected"],
            reviewed=reviewed.get(member.pk, 0),
        )
        for member in collection.members.select_related("annotator__user").order_by("annotator__pseudonym")
    ]
    waiting = PromptVersion.objects.filter(prompt__collection=collection, decision="")
    late = waiting.filter(submitted_at__lte=timezone.now() - WAITS_LONG).aggregate(
        count=Count("pk"), oldest=Min("submitted_at")
    )
    is_short = any(slot.accepted < slot.slot.wanted for slot in slots)
    is_past = collection.due_on is not None and collection.due_on < timezone.localdate()
    return CollectionProgress(
        slots=slots,
        members=members,
        late_reviews=late["count"],
        oldest_waiting=late["oldest"].date() if late["oldest"] else None,
        is_overdue=is_past and is_short and collection.state == PromptCollection.State.OPEN,
    )


def named_lines(text: str) -> list[str]:
    """The lines of a text that hold something, once each."""
    return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


def languages_of(slots: Iterable[PromptSlot]) -> list[str]:
    """The languages of slots, once each."""
    return list(dict.fromkeys(slot.language for slot in slots))
