"""Erase a person's texts in this app; their scores stay under their pseudonym (DESIGN 8.25)."""

from __future__ import annotations

from accounts.models import User
from annotation.models import Annotator, Assignment, Draft, PanelSeat, Rating, Skip, Upload


def redact(user: User) -> None:
    """Empty a person's rationales and notes, delete their drafts, free their leased items, remove them from panels.

    Runs in the transaction that erases the user. Scores and times are kept.
    """
    own = Annotator.objects.filter(user=user)
    Rating.objects.filter(annotation__annotator__in=own).exclude(rationale="").update(rationale="")
    Skip.objects.filter(annotator__in=own).exclude(note="").update(note="")
    Draft.objects.filter(annotator__in=own).delete()
    held = Assignment.objects.filter(annotator__in=own, state=Assignment.State.LEASED)
    held.update(state=Assignment.State.OPEN, annotator=None, key=None, leased_at=None, leased_until=None)
    PanelSeat.objects.filter(annotator__in=own).delete()
    Upload.objects.filter(created_by=user).update(name="")
    own.update(user=None)
