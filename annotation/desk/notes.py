"""What an annotator notes about an item for themselves; nobody else sees it."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from annotation.models import Annotator, Assignment, Campaign, Duty, PrivateNote

LONGEST_NOTE = 2000


def private_note(assignment: Assignment) -> str:
    """What the annotator has noted for themselves about the item."""
    own = PrivateNote.objects.filter(**_owner_of_note(assignment))
    return own.values_list("text", flat=True).first() or ""


def _owner_of_note(assignment: Assignment) -> dict[str, Any]:
    is_repeat = assignment.duty.purpose == Duty.Purpose.REPEAT
    return {"annotator_id": assignment.annotator_id, "item_id": assignment.item_id, "of_repeat": is_repeat}


def keep_note(*, user: User, assignment: Assignment, text: str) -> None:
    """Keep the user's private note about the item, or delete it where ``text`` is empty.

    Nothing changes where the slot is somebody else's by now, nor in a closed campaign.
    """
    holder = assignment.annotator_id
    is_own = holder is not None and Annotator.objects.filter(pk=holder, user=user).exists()
    if not is_own or assignment.duty.campaign.state == Campaign.State.CLOSED:
        return
    own = _owner_of_note(assignment)
    if kept := text.strip()[:LONGEST_NOTE]:
        PrivateNote.objects.update_or_create(**own, defaults={"text": kept})
    else:
        PrivateNote.objects.filter(**own).delete()
