"""Writing and reviewing prompts: drafts, submissions, reviews. Nothing that was written is lost or stored twice."""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from accounts import access, audit, mail
from accounts.inputs import storable
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.collection import prompt_originality
from annotation.collection.prompt_originality import PromptNotices, text_identity
from annotation.models import Annotator, CollectedPrompt, CollectionMember, PromptCollection, PromptSlot, PromptVersion

LONGEST_PROMPT = 20_000  # characters
LONGEST_REVIEW = 4_000
STATES = {
    PromptVersion.Decision.ACCEPT: CollectedPrompt.State.ACCEPTED,
    PromptVersion.Decision.SEND_BACK: CollectedPrompt.State.RETURNED,
    PromptVersion.Decision.REJECT: CollectedPrompt.State.REJECTED,
}


class NewerDraft(Refused):
    """Raised if another draft was stored in the meantime than the one on which the text is based. ``stored``: the text
    of that draft."""

    def __init__(self, stored: str) -> None:
        super().__init__(_("Another draft was saved, perhaps on another device."), code="changed")
        self.stored = stored


class PromptWarned(Refused):
    """Raised if the author must see notices before submitting. Submitting again with ``confirm`` as ``confirmed`` is
    not refused for this reason."""

    def __init__(self, notices: PromptNotices, confirm: str) -> None:
        super().__init__(
            _("Look at the similar prompts and the language. You can submit it all the same."), code="prompt_warnings"
        )
        self.notices, self.confirm = notices, confirm
        self.more = {"confirm": confirm}


# --- writing ----------------------------------------------------------------------------------------------------------
def draft_digest(draft: str) -> str:
    """The digest that a device keeps, to say later on which draft its text is based; "" without a draft."""
    return sha256(draft.encode(errors="surrogatepass")).hexdigest()[:32] if draft else ""


def stored_draft(*, member: CollectionMember, slot: PromptSlot, prompt: CollectedPrompt | None = None) -> str:
    """What the person has entered and not submitted."""
    return _draft_rows(member, slot, prompt).values_list("draft", flat=True).first() or ""


def _draft_rows(
    member: CollectionMember, slot: PromptSlot, prompt: CollectedPrompt | None
) -> QuerySet[CollectedPrompt]:
    if prompt is not None:
        return CollectedPrompt.objects.filter(pk=prompt.pk, author=member, state=CollectedPrompt.State.RETURNED)
    return CollectedPrompt.objects.filter(slot=slot, author=member, state=CollectedPrompt.State.DRAFT)


def keep_draft(
    *,
    member: CollectionMember,
    slot: PromptSlot,
    text: str,
    prompt: CollectedPrompt | None = None,
    based_on: str | None = None,
    key: UUID | None = None,
) -> str:
    """Keep what was entered and not submitted, for a new prompt or for the next version of one that was sent back, and
    return its digest.

    Nothing is refused for its content; an empty new prompt is no draft. Refused: `NewerDraft` if a draft is stored
    that is neither this text nor the one it is ``based_on`` (a digest; None: whatever is stored); ``wrong_state`` if
    the page's ``key`` was submitted or the prompt is not to be revised any more; ``not_a_writer``.
    """
    text = storable(text).replace("\r\n", "\n")[: 2 * LONGEST_PROMPT]
    rows = _draft_rows(member, slot, prompt)
    for _attempt in range(3):  # if two requests come at the same moment, one of them reads the stored draft again
        stored = rows.values_list("draft", flat=True).first()
        if (key is not None and is_submitted(member, key)) or (stored is None and prompt is not None):
            raise _wrong_state()
        _refuse_older(stored, text, based_on)
        if _is_kept(rows, stored, text, member, slot):
            return draft_digest(text if text.strip() or prompt is not None else "")
    raise NewerDraft(stored_draft(member=member, slot=slot, prompt=prompt))


def _refuse_older(stored: str | None, text: str, based_on: str | None) -> None:
    if stored and based_on is not None and stored.strip() != text.strip() and draft_digest(stored) != based_on:
        raise NewerDraft(stored)


def _is_kept(
    rows: QuerySet[CollectedPrompt], stored: str | None, text: str, member: CollectionMember, slot: PromptSlot
) -> bool:
    """Replace the stored draft by the text; False if another request has changed the stored draft."""
    now = timezone.now()
    if stored is not None:
        unchanged = rows.filter(draft=stored)
        if text.strip() or rows.filter(state=CollectedPrompt.State.RETURNED).exists():
            return bool(unchanged.update(draft=text, changed_at=now))
        return bool(unchanged.delete()[0])
    if not text.strip():
        return True
    if not member.writes:
        raise _not_a_writer()
    try:
        with transaction.atomic():
            CollectedPrompt.objects.create(collection_id=slot.collection_id, slot=slot, author=member, draft=text)
    except IntegrityError:
        return False
    return True


def _wrong_state() -> Refused:
    return Refused(_("This prompt can't be changed now. Look at its page."), code="wrong_state")


def _not_a_writer() -> Refused:
    return Refused(_("You do not write prompts for this collection."), code="not_a_writer")


def submit_prompt(
    *,
    member: CollectionMember,
    slot: PromptSlot,
    text: str,
    key: UUID,
    prompt: CollectedPrompt | None = None,
    notices: PromptNotices | None = None,
    based_on: str | None = None,
    confirmed: str | None = None,
) -> PromptVersion:
    """Submit a new prompt, or the next version of one that was sent back; a second person reviews it.

    The same ``key`` again returns the version that was stored. Refused: codes ``collection_closed``, ``not_a_writer``,
    ``invalid``, ``same_text`` (of another prompt of the collection or a dataset), ``wrong_state``, ``archived``,
    ``changed`` (`NewerDraft`: another draft than the one it is ``based_on`` would be lost), `PromptWarned` if its
    notices are striking and ``confirmed`` is not the identity of this text (None: the author is never asked).
    """
    if (stored := _submitted(member, key)) is not None:
        return stored
    collection = slot.collection
    access.refuse_archived(collection.project)
    if collection.state != PromptCollection.State.OPEN:
        raise Refused(_("This collection is closed. Your text is kept as a draft."), code="collection_closed")
    if not member.writes:
        raise _not_a_writer()
    text = checked_text(text)
    _refuse_older(stored_draft(member=member, slot=slot, prompt=prompt), text, based_on)
    identity = text_identity(slot.language, text)
    shown = notices or prompt_originality.notices_about(slot=slot, text=text, but=prompt, reader=member.annotator_id)
    if confirmed is not None and shown.is_striking and confirmed != identity:
        raise PromptWarned(shown, identity)
    _refuse_same_text(slot, text, prompt)
    try:
        with transaction.atomic():
            if prompt is None:
                target, _is_new = CollectedPrompt.objects.select_for_update().get_or_create(
                    slot=slot,
                    author=member,
                    state=CollectedPrompt.State.DRAFT,
                    defaults={"collection": collection},
                )
            else:
                target = prompt
            own = CollectedPrompt.objects.filter(pk=target.pk, author=member)
            ready = own.filter(state__in=(CollectedPrompt.State.DRAFT, CollectedPrompt.State.RETURNED))
            changes = {
                "state": CollectedPrompt.State.IN_REVIEW,
                "draft": "",
                "digest": identity,
                "changed_at": timezone.now(),
            }
            if not ready.update(**changes):
                raise _wrong_state()
            version = PromptVersion.objects.create(
                prompt=target,
                number=target.versions.count() + 1,
                author=member,
                text=text,
                key=key,
                notices=shown.as_json(),
                signature=prompt_originality.stored_signature(text),
            )
            audit.record(actor=member.annotator.user, project=collection.project, verb="submit prompt", subject=target)
    except (IntegrityError, Refused) as error:
        if (stored := _submitted(member, key)) is not None:  # the same submission has just been stored
            return stored
        if isinstance(error, Refused):
            raise
        raise _collision(collection, identity, prompt) from None
    return version


def _collision(collection: PromptCollection, identity: str, prompt: CollectedPrompt | None) -> Refused:
    """What a constraint of the database has found: an equal text, or two submissions of one prompt at once."""
    live = CollectedPrompt.objects.filter(collection=collection, digest=identity, state__in=CollectedPrompt.LIVE)
    if (live.exclude(pk=prompt.pk) if prompt else live).exists():
        return _same_text(_("Another prompt of this collection has this very text. Write another one."))
    return _wrong_state()


def _refuse_same_text(slot: PromptSlot, text: str, prompt: CollectedPrompt | None) -> None:
    """Refuse a returned prompt whose text is unchanged, and a text that is in a dataset. A constraint of the database
    refuses texts of the collection."""
    newest = prompt.versions.order_by("-number").first() if prompt else None
    if newest is not None and text_identity(slot.language, newest.text) == text_identity(slot.language, text):
        raise _same_text(_("Nothing is changed yet. Read the comment, then change the text."))
    if prompt_originality.is_in_dataset(slot=slot, text=text):
        raise _same_text(_("A dataset of this project has this very prompt. Write another one."))


def is_submitted(member: CollectionMember, key: UUID) -> bool:
    """Whether a version was stored with this key."""
    return _submitted(member, key) is not None


def newest_keys(member: CollectionMember) -> list[UUID]:
    """The keys of the person's last submissions, so that their device forgets these texts."""
    return list(PromptVersion.objects.filter(author=member).order_by("-pk").values_list("key", flat=True)[:10])


def _submitted(member: CollectionMember, key: UUID) -> PromptVersion | None:
    return PromptVersion.objects.filter(author=member, key=key).select_related("prompt").first()


def checked_text(text: str) -> str:
    """A text as it is stored. Refused: empty or too long."""
    text = storable(text).replace("\r\n", "\n").strip()
    if not text:
        raise _text_refusal(_("Write a prompt first."))
    if len(text) > LONGEST_PROMPT:
        sentence = _("This prompt has %(count)d characters. Shorten it to %(most)d.")
        raise _text_refusal(sentence % {"count": len(text), "most": LONGEST_PROMPT})
    return text


def _text_refusal(sentence: str) -> Refused:
    return Refused(sentence, code="invalid", fields={"text": sentence})


def _same_text(sentence: str) -> Refused:
    return Refused(sentence, code="same_text", fields={"text": sentence})


# --- reviewing --------------------------------------------------------------------------------------------------------
def waiting_for(member: CollectionMember) -> QuerySet[PromptVersion]:
    """The versions that this reviewer may review, the longest waiting first, without their texts."""
    if not member.reviews:
        return PromptVersion.objects.none()
    waiting = PromptVersion.objects.filter(prompt__collection=member.collection_id, decision="").exclude(author=member)
    return waiting.defer("text", "notices").order_by("submitted_at", "pk")


def review_prompt(
    *, version: PromptVersion, reviewer: CollectionMember, decision: str, comment: str = ""
) -> PromptVersion:
    """Accept a version, send it back to its author with a comment, or reject it with the reason.

    The same decision by the same person again changes nothing. Refused: codes ``own_prompt``, ``not_a_writer``,
    ``reviewed`` (somebody was faster), ``invalid``, ``archived``.
    """
    prompt, collection = version.prompt, version.prompt.collection
    access.refuse_archived(collection.project)
    if version.author_id == reviewer.pk:
        raise Refused(_("You wrote this prompt: somebody else reviews it."), code="own_prompt")
    if not reviewer.reviews or reviewer.collection_id != prompt.collection_id:
        raise Refused(_("You do not review prompts of this collection."), code="not_a_writer")
    comment = storable(comment).replace("\r\n", "\n").strip()
    if decision not in STATES:
        raise Refused(_("Accept the prompt, send it back or reject it."), code="invalid", fields={"decision": ""})
    if decision != PromptVersion.Decision.ACCEPT and not comment:
        sentence = _("Write a comment, so that the author knows why.")
        raise Refused(sentence, code="invalid", fields={"comment": sentence})
    if len(comment) > LONGEST_REVIEW:
        sentence = _("Shorten the comment to %d characters.") % LONGEST_REVIEW
        raise Refused(sentence, code="invalid", fields={"comment": sentence})
    now = timezone.now()
    with transaction.atomic():
        waiting = PromptVersion.objects.filter(pk=version.pk, decision="")
        done = waiting.update(decision=decision, comment=comment, reviewer=reviewer, reviewed_at=now)
        if done:
            in_review = CollectedPrompt.objects.filter(pk=prompt.pk, state=CollectedPrompt.State.IN_REVIEW)
            in_review.update(state=STATES[PromptVersion.Decision(decision)], changed_at=now)
            verb = {"accept": "accept prompt", "send_back": "send back prompt", "reject": "reject prompt"}[decision]
            audit.record(actor=reviewer.annotator.user, project=collection.project, verb=verb, subject=prompt)
            _notify_author(version, decision)
    version.refresh_from_db()
    if not done and (version.reviewer_id, version.decision) != (reviewer.pk, decision):
        raise Refused(_("Somebody else has just reviewed this prompt."), code="reviewed")
    return version


def release_prompt(*, prompt: CollectedPrompt, actor: User | None = None) -> None:
    """Free the slot of a prompt that was sent back and not revised, so that another person can write one. Its versions
    stay.

    Refused: codes ``wrong_state``, ``archived``.
    """
    project = prompt.collection.project
    access.refuse_archived(project)
    with transaction.atomic():
        returned = CollectedPrompt.objects.filter(pk=prompt.pk, state=CollectedPrompt.State.RETURNED)
        if not returned.update(state=CollectedPrompt.State.RELEASED, changed_at=timezone.now()):
            raise _wrong_state()
        audit.record(actor=actor, project=project, verb="release prompt", subject=prompt)


def _notify_author(version: PromptVersion, decision: str) -> None:
    """Mail the author that a prompt came back, in the language of their interface; an accepted one is on their page."""
    author = version.author.annotator.user
    if author is None or not author.is_active or decision == PromptVersion.Decision.ACCEPT:
        return
    prompt = version.prompt
    with translation.override(author.ui_language or "en"):
        if decision == PromptVersion.Decision.SEND_BACK:
            subject = _("A prompt of yours came back")
            text = _(
                "A reviewer has commented on a prompt that you wrote for “%(collection)s”. Please revise it: %(path)s"
            )
        else:
            subject = _("A prompt of yours was not accepted")
            text = _("A reviewer has rejected a prompt that you wrote for “%(collection)s”. The reason: %(path)s")
        path = reverse("prompt", args=[prompt.collection.project.slug, prompt.collection_id, prompt.pk])
        body = text % {"collection": prompt.collection.name, "path": mail.site_address(path)}
        mail.queue_text(subject=subject, body=body, to=[author.email])


# --- erasing ----------------------------------------------------------------------------------------------------------
def redact_prompts(user: User, project: Project | None = None) -> None:
    """Delete a person's drafts and empty the comments of their reviews; prompts stay under the pseudonym.

    In one project, or in all of them; must run before `panels.redact`, which separates the pseudonym from the person.
    """
    annotators = Annotator.objects.filter(user=user, **({"project": project} if project else {}))
    CollectedPrompt.objects.filter(author__annotator__in=annotators, state=CollectedPrompt.State.DRAFT).delete()
    own = CollectedPrompt.objects.filter(author__annotator__in=annotators)
    own.exclude(draft="").update(draft="")
    own.filter(state=CollectedPrompt.State.RETURNED).update(state=CollectedPrompt.State.RELEASED)
    PromptVersion.objects.filter(reviewer__annotator__in=annotators).exclude(comment="").update(comment="")
    CollectionMember.objects.filter(annotator__in=annotators).update(writes=False, reviews=False)
