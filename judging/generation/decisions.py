"""What people decide about written texts, as they read them: to keep a text, or to set it aside with a reason."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.models import Project, User
from accounts.refusals import Refused
from judging.models import GenerationFamily, GenerationPlan, Realisation

LONGEST_REASON = 2_000  # characters


def decide_realisation(*, realisation: Realisation, decision: str, reason: str = "", actor: User | None = None) -> None:
    """Keep a written text or set it aside; an empty ``decision`` takes it back. A later decision replaces this one."""
    if not _decide(realisation.plan, [realisation.pk], decision, reason, actor):
        raise Refused(_("Only a text that is written can be decided on."), code="wrong_state")
    realisation.refresh_from_db()


def decide_family(*, family: GenerationFamily, decision: str, reason: str = "", actor: User | None = None) -> int:
    """Decide on all written texts of a family; returns their number."""
    return _decide(family.plan, list(family.realisations.values_list("pk", flat=True)), decision, reason, actor)


def _decide(plan: GenerationPlan, keys: Sequence[int], decision: str, reason: str, actor: User | None) -> int:
    access.refuse_archived(plan.project)
    reason = reason.strip()
    if decision not in Realisation.Decision.values or len(reason) > LONGEST_REASON:
        sentence = _(
            "A decision keeps a text, sets it aside, or takes that back. Its reason has at most %d characters."
        )
        raise Refused(sentence % LONGEST_REASON, code="invalid", fields={"decision": sentence % LONGEST_REASON})
    made = {"decided_by": actor, "decided_at": timezone.now()} if decision else {"decided_by": None, "decided_at": None}
    with transaction.atomic():
        written = Realisation.objects.filter(pk__in=keys, state=Realisation.State.WRITTEN)
        done = written.update(decision=decision, decision_reason=reason if decision else "", **made)
        if done:
            audit.record_once_a_day(
                actor=actor, project=plan.project, verb="decide on texts", subject=plan, fields=["decision"]
            )
    return done


def redact_decisions(user: User, project: Project | None = None) -> None:
    """Empty the reasons that this person wrote, in a project or in all; the decisions are kept."""
    own = Realisation.objects.filter(decided_by=user).exclude(decision_reason="")
    if project is not None:
        own = own.filter(plan__project=project)
    own.update(decision_reason="")
