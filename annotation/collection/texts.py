"""Texts written by people: duties to write, the next prompt of a writer, drafts, submissions and skips.

A prompt is an item of the duty's dataset without what people write themselves: its answer, or the turns of one role.
There is one prompt for each scenario, so that a person's text stands under the scenario of the models' texts. A text is
held by who took it; after `HOLD` without a change somebody else may take the prompt; the draft stays with its author.
"""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from uuid_utils.compat import uuid7

from accounts import access, audit, languages
from accounts.inputs import storable
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.allocation import SEEDS, items_for
from annotation.checkup.written_languages import FEWEST_LETTERS, Identifier, language_words
from annotation.models import (
    Annotator,
    Dataset,
    Item,
    Panel,
    PanelSeat,
    WritingDecision,
    WritingDuty,
    WritingSubmission,
    WritingText,
)
from annotation.readers import NAMED_FIELDS

HOLD = timedelta(days=3)
UNFINISHED = (WritingText.State.WRITING, WritingText.State.RETURNED)
"""The states of a text that its author has to go on with; after `HOLD` somebody else may take its place."""
LONGEST_TEXT = 20_000  # characters
MOST_PER_PROMPT = 20
MOST_TURNS = 20
MOST_CHARACTERS = 10_000  # of instructions
MOST_SECONDS = 30 * 86_400.0
GIVEN_FIELDS = frozenset({"context", "question", "source", "document", "passages", "passage_a", "passage_b"})
"""The fields of an item that are a prompt. All others are the text of its generator, or its reference."""
MUCH_PASTED = 0.5
"""The share of a text that was pasted from which on its author is asked, and leads see it."""


class WritingWarned(Refused):
    """What the author has to know before the text is submitted; with ``confirm`` it is not refused for it again."""

    def __init__(self, warnings: Sequence[Mapping[str, Any]], confirm: str) -> None:
        super().__init__(_("Look at the notes below. You can submit the text all the same."), code="writing_warnings")
        self.warnings, self.confirm = list(warnings), confirm
        self.more = {"warnings": self.warnings, "confirm": confirm}


# --- duties to write --------------------------------------------------------------------------------------------------


def open_writing_duty(
    *,
    project: Project,
    name: str,
    dataset: Dataset,
    panel: Panel,
    kind: str = WritingDuty.Kind.ANSWER,
    part: str = "answer",
    most_turns: int = 1,
    shortest: int = 1,
    longest: int = 8_000,
    per_prompt: int = 1,
    generator: str = "",
    instructions: str = "",
    seed: int | None = None,
    actor: User | None = None,
) -> WritingDuty:
    """Open a duty to write. Refused, with the fields: what can't be written, or no prompt in the panel's language."""
    access.refuse_archived(project)
    duty = WritingDuty(
        project=project,
        name=storable(name).strip(),
        dataset=dataset,
        panel=panel,
        kind=kind,
        part=storable(part).strip(),
        most_turns=most_turns,
        shortest=shortest,
        longest=longest,
        per_prompt=per_prompt,
        generator=storable(generator).strip(),
        instructions=storable(instructions).strip(),
        seed=secrets.randbelow(SEEDS) if seed is None else seed,
        created_by=actor,
    )
    if wrong := _wrong_duty(duty):
        raise Refused(next(iter(wrong.values())), code="invalid", fields=wrong)
    if not prompts_of(duty):
        sentence = _("%(dataset)s has no prompt in the language of %(panel)s.")
        raise Refused(sentence % {"dataset": dataset, "panel": panel.name}, code="no_items")
    try:
        with transaction.atomic():
            duty.save()
            audit.record(actor=actor, project=project, verb="open duty to write", subject=duty)
    except IntegrityError:
        taken = _("Another writing task is called “%(name)s”. Choose another name.") % {"name": name}
        raise Refused(taken, code="name_taken", fields={"name": taken}) from None
    return duty


def _wrong_duty(duty: WritingDuty) -> dict[str, str]:
    """What is wrong with a new duty, by field."""
    most = {"most_turns": MOST_TURNS, "shortest": LONGEST_TEXT, "longest": LONGEST_TEXT, "per_prompt": MOST_PER_PROMPT}
    wrong = {
        key: _("Write a whole number from %(least)s to %(most)s.") % {"least": 1, "most": largest}
        for key, largest in most.items()
        if not 1 <= getattr(duty, key) <= largest
    }
    sizes = {"name": (duty.name, 120), "generator": (duty.generator, 80), "part": (duty.part, 60)}
    sizes["instructions"] = (duty.instructions, MOST_CHARACTERS)
    wrong |= {key: _("At most %d characters.") % size for key, (text, size) in sizes.items() if len(text) > size}
    others = {"dataset": duty.dataset.project_id, "panel": duty.panel.project_id}
    wrong |= {key: _("This belongs to another project.") for key, of in others.items() if of != duty.project_id}
    if duty.shortest > duty.longest:
        wrong["longest"] = _("The most is less than the least.")
    fields = [one for one in NAMED_FIELDS if one != "passages"]
    if duty.kind not in WritingDuty.Kind.values:
        wrong["kind"] = _("Write one of: %(names)s.") % {"names": ", ".join(WritingDuty.Kind.values)}
    elif duty.kind == WritingDuty.Kind.ANSWER and duty.part not in fields:
        wrong["part"] = _("Write one of: %(names)s.") % {"names": ", ".join(fields)}
    wrong |= {key: _("Write a name.") for key in ("name", "part") if not getattr(duty, key)}
    return wrong


def set_writing_state(*, duty: WritingDuty, state: str, actor: User | None = None) -> None:
    """Open, pause or close a duty. Drafts are kept; nothing is submitted while it is not open."""
    if state not in WritingDuty.State.values:
        raise Refused(_("A task is open, paused or closed."), code="invalid", fields={"state": _("Unknown.")})
    access.refuse_archived(duty.project)
    with transaction.atomic():
        WritingDuty.objects.filter(pk=duty.pk).update(state=state)
        audit.record(actor=actor, project=duty.project, verb="change duty to write", subject=duty, fields=["state"])
    duty.state = state


def prompts_of(duty: WritingDuty) -> Sequence[int]:
    """The items whose prompts are written for, in the order of the duty: in the panel's language, the first item of
    each scenario that has at most `MOST_TURNS` turns of the role."""
    role = duty.part.casefold() if duty.kind == WritingDuty.Kind.TURNS else ""
    return _ordered_prompts(duty.dataset, duty.dataset.created_at, duty.panel, duty.panel.language, role, duty.seed)


@lru_cache(maxsize=64)
def _ordered_prompts(
    dataset: Dataset, _created_at: datetime, panel: Panel, _language: str, role: str, seed: int
) -> tuple[int, ...]:
    """Items never change, so that pages needn't read them again. The time and the language are part of the key."""
    items = items_for(dataset=dataset, panel=panel).order_by("ordinal")
    first: dict[tuple[str, str], int] = {}
    columns = ("pk", "language", "scenario", "external_id", *(["turns"] if role else []))
    for pk, language, scenario, external, *turns in items.values_list(*columns).iterator(1_000):
        if not role or sum(turn["speaker"].casefold() == role for turn in turns[0]) <= MOST_TURNS:
            first.setdefault((language, scenario or external), pk)
    ordered = list(first.values())
    random.Random(seed).shuffle(ordered)
    return tuple(ordered)


# --- what is shown and written ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WritingPrompt:
    """What the author sees: the fields, and the turns, of which those to be written are None. ``places``: how many
    texts are written; ``least``: how many of them at least."""

    fields: Mapping[str, Any]
    turns: Sequence[Mapping[str, str] | None]
    places: int
    least: int


def writing_prompt(duty: WritingDuty, item: Item) -> WritingPrompt:
    """The prompt of an item: nothing of what is to be written is in it."""
    given = {name: text for name, text in item.fields.items() if name in GIVEN_FIELDS and name != duty.part}
    if duty.kind == WritingDuty.Kind.ANSWER:
        return WritingPrompt(given, _turns_before_answer(duty, item), 1, 1)
    role = duty.part.casefold()
    turns = [None if turn["speaker"].casefold() == role else turn for turn in item.turns]
    own = turns.count(None)
    if own:
        return WritingPrompt(given, turns, own, own)
    return WritingPrompt(given, [*turns, *[None] * duty.most_turns], duty.most_turns, 1)


def _turns_before_answer(duty: WritingDuty, item: Item) -> list[dict[str, str]]:
    """The turns that an answer is written to. Where the item has its answer as the last turns, which are not by the
    speaker who began, they are left out."""
    turns = list(item.turns)
    while duty.part not in item.fields and turns and turns[-1]["speaker"] != turns[0]["speaker"]:
        turns.pop()
    return turns


def written_parts(duty: WritingDuty, item: Item, texts: Sequence[str]) -> tuple[list[dict[str, str]], dict[str, Any]]:
    """The turns and fields of the item that a text becomes: the prompt, the text, and the reference if there is one.
    Nothing else of the item's generator goes out under the person's name."""
    kept = {name: text for name, text in item.fields.items() if name in GIVEN_FIELDS or name == "reference"}
    if duty.kind == WritingDuty.Kind.ANSWER:
        order = [name for name in item.fields if name in kept or name == duty.part]
        order += [] if duty.part in item.fields else [duty.part]
        fields = {name: texts[0] if name == duty.part else kept[name] for name in order}
        return _turns_before_answer(duty, item), fields
    left = iter(texts)
    turns = []
    for turn in writing_prompt(duty, item).turns:
        if turn is not None:
            turns.append(dict(turn))
        elif text := next(left, ""):
            turns.append({"speaker": duty.part, "text": text})
    return turns, kept


# --- taking a prompt --------------------------------------------------------------------------------------------------


def writing_duties(user: User) -> QuerySet[WritingDuty]:
    """The duties to write of the user's panels, in projects that are not archived; closed ones with own texts only."""
    member = access.member_of(user, project="project")
    own = WritingDuty.objects.filter(member, panel__seats__annotator__user=user, project__archived_at=None)
    has_texts = Exists(WritingText.objects.filter(duty=OuterRef("pk"), annotator__user=user))
    return own.filter(~Q(state=WritingDuty.State.CLOSED) | has_texts).select_related("project", "panel", "dataset")


def writer_of(*, user: User, duty: int) -> tuple[WritingDuty, Annotator]:
    """The user's duty, and the user as its annotator. Raises ``WritingDuty.DoesNotExist`` for everybody else."""
    member = access.member_of(user, project="project")
    own = WritingDuty.objects.filter(member, panel__seats__annotator__user=user, project__archived_at=None, pk=duty)
    writing_duty = own.select_related("project", "panel", "dataset").get()
    return writing_duty, Annotator.objects.get(project=writing_duty.project_id, user=user)


def take_prompt(*, duty: WritingDuty, annotator: Annotator, now: datetime | None = None) -> WritingText | None:
    """The text that the annotator is writing, else one for the next prompt with a free place; None if there is none."""
    now = now or timezone.now()
    require_writing_open(duty)
    prompts = prompts_of(duty)
    with transaction.atomic():
        seat = PanelSeat.objects.select_for_update(no_key=True).filter(panel=duty.panel_id, annotator=annotator)
        if not seat.exists():
            raise Refused(_("You are not a member of this panel. Ask the project lead."), code="not_seated")
        own = WritingText.objects.filter(duty=duty, annotator=annotator)
        if held := own.filter(state=WritingText.State.WRITING).first():
            WritingText.objects.filter(pk=held.pk, state=held.state).update(held_until=now + HOLD)
            return held
        seen = set(own.values_list("item", flat=True))
        live = WritingText.objects.filter(duty=duty, state__in=WritingText.LIVE)
        over = Q(state__in=UNFINISHED, held_until__lt=now)
        taken: dict[int, set[int]] = {}
        for item, place in live.exclude(over).values_list("item", "place"):
            taken.setdefault(item, set()).add(place)
        for item in prompts:
            free = set(range(1, duty.per_prompt + 1)) - taken.get(item, set())
            if item not in seen and free and (text := _hold(duty, item, annotator, min(free), now)):
                return text
    return None


def _hold(duty: WritingDuty, item: int, annotator: Annotator, place: int, now: datetime) -> WritingText | None:
    """Hold a place of a prompt, that of somebody whose time for it is over too; None if somebody was faster."""
    over = WritingText.objects.filter(duty=duty, item=item, place=place, state__in=UNFINISHED)
    over.filter(held_until__lt=now).update(state=WritingText.State.RELEASED)
    about: dict[str, Any] = {"duty": duty, "item_id": item, "annotator": annotator, "place": place}
    try:
        with transaction.atomic():
            return WritingText.objects.create(**about, key=uuid7(), taken_at=now, held_until=now + HOLD)
    except IntegrityError:
        return None


def require_writing_open(duty: WritingDuty) -> None:
    """Refuse while the duty is paused, closed, or its project archived."""
    access.refuse_archived(duty.project)
    if duty.state == WritingDuty.State.PAUSED:
        raise Refused(_("This task is paused. Your draft is kept; come back later."), code="duty_paused")
    if duty.state == WritingDuty.State.CLOSED:
        raise Refused(_("This task is closed: nothing more can be submitted. Your draft is kept."), code="duty_closed")


def authors_text(*, user: User, key: UUID) -> WritingText:
    """The user's text with this key, or one that was submitted with it. Raises ``WritingText.DoesNotExist``."""
    own = WritingText.objects.visible_to(user).select_related(
        "duty__project", "duty__panel", "duty__dataset", "item", "annotator"
    )
    return own.filter(Q(key=key) | Q(submissions__key=key)).distinct().get()


# --- drafts, submissions, skips ---------------------------------------------------------------------------------------


def save_writing(
    *, text: WritingText, key: UUID, texts: Sequence[str], seconds: float = 0, pasted: int = 0
) -> datetime:
    """Save what is entered, and return the time. Refused if the text is not being written any more under this key; the
    draft of one that was given to somebody else is kept all the same."""
    access.refuse_archived(text.duty.project)
    now = timezone.now()
    entered = _as_draft(texts, seconds=seconds, pasted=pasted, now=now)
    own = WritingText.objects.filter(pk=text.pk, key=key)
    if own.filter(state__in=UNFINISHED).update(**entered, held_until=now + HOLD):
        return now
    if own.filter(state=WritingText.State.RELEASED).update(**entered):
        sentence = _("Your time for this prompt ended, and somebody else may write for it. Your draft is kept.")
        raise Refused(sentence, code="writing_taken")
    raise Refused(_("This text was submitted or skipped in another tab."), code="wrong_state")


def keep_sent_text(*, user: User, key: UUID, texts: Sequence[str], seconds: float = 0, pasted: int = 0) -> None:
    """Store what a page sends after its project was deleted as the draft of the text, if its author still writes it."""
    entered = _as_draft(texts, seconds=seconds, pasted=pasted, now=timezone.now())
    if any(entered["draft"]):
        WritingText.objects.filter(key=key, annotator__user=user, state__in=UNFINISHED).update(**entered)


def _as_draft(texts: Sequence[str], *, seconds: float, pasted: int, now: datetime) -> dict[str, Any]:
    kept = [storable(one)[: 2 * LONGEST_TEXT] for one in texts][:MOST_TURNS]
    return {"draft": kept, "saved_at": now, "seconds": _possible(seconds), "pasted": _count(pasted)}


def submit_writing(
    *, text: WritingText, key: UUID, texts: Sequence[str], seconds: float = 0, pasted: int = 0, confirmed: str = ""
) -> WritingSubmission:
    """Submit a text. The same key and texts again return what is stored.

    Refused: texts that are too short or too long, with the fields (``text-0`` ...); `WritingWarned` unless
    ``confirmed`` is the digest of these very texts and what is disclosed about them; other texts under a key that was
    submitted (code ``submitted_already``).
    """
    sent = [storable(one).replace("\r\n", "\n").strip() for one in texts]
    if (stored := WritingSubmission.objects.filter(text=text, key=key).first()) is not None:
        return _alike(stored, sent)
    require_writing_open(text.duty)
    if not PanelSeat.objects.filter(panel=text.duty.panel_id, annotator=text.annotator_id).exists():
        raise Refused(_("You are not a member of this panel. Ask the project lead."), code="not_seated")
    sent = _checked(text, sent)
    warnings = writing_warnings(text, sent, pasted)
    codes = sorted(warning["code"] for warning in warnings)
    confirm = sha256(json.dumps([sent, codes]).encode(errors="surrogatepass")).hexdigest()[:32]
    if warnings and confirmed != confirm:
        raise WritingWarned(warnings, confirm)
    try:
        with transaction.atomic():
            own = WritingText.objects.filter(pk=text.pk, key=key)
            changes = {"state": WritingText.State.SUBMITTED, "draft": sent, "saved_at": timezone.now()}
            if not own.filter(state__in=UNFINISHED).update(**changes) and not _again(own, text, changes):
                raise Refused(_("This text was submitted or skipped in another tab."), code="wrong_state")
            last = WritingSubmission.objects.filter(text=text).order_by("-number").values_list("number", flat=True)
            return WritingSubmission.objects.create(
                text=text,
                number=(last.first() or 0) + 1,
                key=key,
                texts=sent,
                warnings=warnings,
                seconds=_possible(seconds),
                pasted=_count(pasted),
            )
    except (IntegrityError, Refused) as error:  # the same submission may have been stored at the same time
        if (stored := WritingSubmission.objects.filter(text=text, key=key).first()) is not None:
            return _alike(stored, sent)
        if isinstance(error, Refused):
            raise
        sentence = _("Your time for this prompt ended, and somebody else writes for it. Your draft is kept.")
        raise Refused(sentence, code="writing_taken") from None


def _again(own: QuerySet[WritingText], text: WritingText, changes: Mapping[str, Any]) -> bool:
    """Take a free place again for a text that was released; raises ``IntegrityError`` if there is none."""
    live = WritingText.objects.filter(duty=text.duty_id, item=text.item_id, state__in=WritingText.LIVE)
    free = set(range(1, text.duty.per_prompt + 1)) - set(live.values_list("place", flat=True))
    released = own.filter(state=WritingText.State.RELEASED)
    return bool(released.update(**changes, place=min(free) if free else text.place))


def _alike(stored: WritingSubmission, sent: Sequence[str]) -> WritingSubmission:
    if [one for one in sent if one] != stored.texts:
        sentence = _("You submitted this text already, in other words. Those are stored; what is on this page is not.")
        raise Refused(sentence, code="submitted_already")
    return stored


def _checked(text: WritingText, sent: Sequence[str]) -> list[str]:
    """The texts as they are stored: without empty turns at the end, each as long as the duty asks."""
    duty, prompt = text.duty, writing_prompt(text.duty, text.item)
    own = list(sent[: prompt.places])
    while len(own) > prompt.least and not own[-1]:
        own.pop()
    wrong: dict[str, str] = {}
    for place, one in enumerate([*own, *[""] * (prompt.least - len(own))]):
        length = len(one)
        if length < duty.shortest:
            sentence = _("Write at least %(least)d characters; there are %(count)d.")
            wrong[f"text-{place}"] = sentence % {"least": duty.shortest, "count": length}
        elif length > duty.longest:
            sentence = _("Write at most %(most)d characters; there are %(count)d.")
            wrong[f"text-{place}"] = sentence % {"most": duty.longest, "count": length}
    if len(sent) > prompt.places and any(sent[prompt.places :]):
        wrong["text-0"] = _("Write at most %d turns.") % prompt.places
    if wrong:
        raise Refused(next(iter(wrong.values())), code="invalid", fields=wrong)
    return own


def writing_warnings(text: WritingText, texts: Sequence[str], pasted: int) -> list[dict[str, Any]]:
    """What the author and leads see of a text, as codes with values: another language, pasted, or a copy of the
    prompt."""
    warnings: list[dict[str, Any]] = []
    whole = " ".join(texts)
    tag, words = text.item.language, language_words(whole)
    identifier = Identifier([tag])
    is_known = identifier.knows(tag) and sum(map(str.isalpha, words)) >= FEWEST_LETTERS
    if other := identifier.other_language(words, tag) if is_known else "":
        warnings.append({"code": "language", "values": {"language": other}})
    if _count(pasted) >= MUCH_PASTED * max(1, len(whole)):
        warnings.append({"code": "pasted", "values": {"percent": min(100, round(100 * pasted / max(1, len(whole))))}})
    prompt = writing_prompt(text.duty, text.item)
    given = [str(value) for value in prompt.fields.values()] + [turn["text"] for turn in prompt.turns if turn]
    folded = {" ".join(one.casefold().split()) for one in given}
    if any(" ".join(one.casefold().split()) in folded for one in texts):
        warnings.append({"code": "copied", "values": {}})
    return warnings


def warning_sentence(stored: Mapping[str, Any], language: str) -> str:
    """A stored warning in words; ``language``: that of the interface."""
    values = stored.get("values", {})
    match stored.get("code"):
        case "language":
            name = languages.name_for(str(values.get("language", "")), language)
            return _("The text may be in another language: %(language)s") % {"language": name}
        case "pasted":
            return _("About %(percent)s %% of the text were pasted in.") % {"percent": values.get("percent", "?")}
        case "copied":
            return _("A part is the same as the prompt.")
    return str(stored.get("code", ""))


def skip_writing(*, text: WritingText, key: UUID, reason: str, note: str = "") -> None:
    """Give a prompt up with a reason: somebody else may write for it. The draft is kept."""
    known = reason if reason in WritingText.SkipReason.values else WritingText.SkipReason.OTHER
    own = WritingText.objects.filter(pk=text.pk, key=key)
    states = (*UNFINISHED, WritingText.State.RELEASED)
    skipped = {"state": WritingText.State.SKIPPED, "skip_reason": known, "note": storable(note).strip()[:500]}
    if not own.filter(state__in=states).update(**skipped) and not own.filter(state=WritingText.State.SKIPPED).exists():
        raise Refused(_("This text was submitted or skipped in another tab."), code="wrong_state")


def _possible(seconds: float) -> float:
    return min(max(seconds, 0.0), MOST_SECONDS) if seconds == seconds else 0.0


def _count(pasted: int) -> int:
    return min(max(pasted, 0), 2 * MOST_TURNS * LONGEST_TEXT)


# --- the person is removed --------------------------------------------------------------------------------------------


def redact_writing(user: User, project: Project | None = None) -> None:
    """Delete drafts and notes of a person, and their comments as a lead; what they submitted is kept under its code."""
    own = WritingText.objects.filter(annotator__user=user)
    decided = WritingDecision.objects.filter(decided_by=user).exclude(comment="")
    if project is not None:
        own, decided = own.filter(duty__project=project), decided.filter(submission__text__duty__project=project)
    decided.update(comment="")
    own.update(draft=[], note="")
    own.filter(state__in=UNFINISHED).update(state=WritingText.State.RELEASED)
