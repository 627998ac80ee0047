"""What an erased person wrote goes; what they gave stays under their pseudonym (DESIGN 8.25)."""

from __future__ import annotations

from accounts.models import User
from annotation.models import Annotator, Assignment, Draft, PanelSeat, Rating, Skip, Upload


def redact(user: User) -> None:
    """Blank somebody's rationales and remarks, delete their drafts, free what they hold and leave their seats empty.

    Runs inside the transaction that erases them. Scores, times and the fact that they rated stay.
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
