"""What every item taken and every item submitted asks of the database besides its own rows, written out in SQL.

Everything else in the product goes through Django's compiler; here building the query took longer than running it, and
this path decides how many annotators a machine carries (bench/submit.py, bench/next_item.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db import connection

from accounts.models import User
from annotation.models import Annotator, Assignment, Campaign, Duty

# The same rows as Assignment.objects.visible_to(user).filter(key=key).
_BY_KEY = """
SELECT duty.campaign_id, CASE WHEN project.archived_at IS NULL THEN campaign.state ELSE 'closed' END,
       campaign.project_id,
       assignment.id, assignment.duty_id, assignment.item_id, assignment.state, assignment.annotator_id,
       assignment.revision, membership.role
FROM annotation_assignment assignment
JOIN annotation_annotator annotator ON annotator.id = assignment.annotator_id
JOIN annotation_duty duty ON duty.id = assignment.duty_id
JOIN annotation_campaign campaign ON campaign.id = duty.campaign_id
JOIN accounts_project project ON project.id = campaign.project_id
JOIN accounts_membership membership ON membership.project_id = campaign.project_id
WHERE assignment.key = %s AND annotator.user_id = %s AND membership.user_id = %s
  AND (NOT project.requires_second_factor OR EXISTS (
    SELECT 1 FROM mfa_authenticator factor
    WHERE factor.user_id = membership.user_id AND factor.type IN ('totp', 'webauthn')))
"""
_LOADED = ("id", "duty_id", "item_id", "state", "annotator_id", "revision")  # in the model's order, for from_db
_SEAT = "SELECT seat.id FROM annotation_panelseat seat WHERE seat.panel_id = %s AND seat.annotator_id = %s "
_HELD = """
SELECT own.id FROM annotation_assignment own
WHERE own.annotator_id = %s AND own.duty_id = %s AND own.state = 'leased' ORDER BY own.leased_at DESC LIMIT 1
"""
# Past the furthest item of their own everything is new to the annotator, but for what they skipped; the index
# assignment_queue leads straight to the first free slot there.
_AHEAD = """
SELECT slot.id FROM annotation_assignment slot
WHERE slot.duty_id = %s AND slot.state = 'open'
  AND slot.position > COALESCE((
    SELECT MAX(own.position) FROM annotation_assignment own
    WHERE own.annotator_id = %s AND own.duty_id = %s AND own.state = 'submitted'), 0)
  AND NOT EXISTS (
    SELECT 1 FROM annotation_skip skip
    WHERE skip.duty_id = slot.duty_id AND skip.item_id = slot.item_id AND skip.annotator_id = %s)
ORDER BY slot.position, slot.slot LIMIT 1
"""
_UNLOCKED = "FOR NO KEY UPDATE OF slot SKIP LOCKED"
_DROP_DRAFT = "DELETE FROM annotation_draft WHERE duty_id = %s AND item_id = %s AND annotator_id = %s"
_KEY = Assignment._meta.get_field("key")


def find(*, user: User, key: UUID) -> Assignment | None:
    """The assignment this person holds or submitted under ``key``, as a member of its project; the rest is deferred.

    Of its duty and campaign only the primary keys and the campaign's project and state are loaded; the person's role in
    the project is its ``holder_role``.
    """
    with connection.cursor() as cursor:
        cursor.execute(_BY_KEY, [_KEY.get_db_prep_value(key, connection), user.pk, user.pk])
        row = cursor.fetchone()
    if row is None:
        return None
    campaign, state, project, *loaded, role = row
    assignment = Assignment.from_db(None, _LOADED, loaded)
    assignment.key, assignment.holder_role = key, role
    assignment.duty = Duty.from_db(None, ("id", "campaign_id"), (assignment.duty_id, campaign))
    assignment.duty.campaign = Campaign.from_db(None, ("id", "project_id", "state"), (campaign, project, state))
    return assignment


def lock_seat(*, duty: Duty, annotator: Annotator) -> bool:
    """Whether the annotator sits on the duty's panel; the seat's row stays locked until the transaction ends."""
    locking = "FOR NO KEY UPDATE" if connection.features.has_select_for_no_key_update else ""
    return _first(_SEAT + locking, [duty.panel_id, annotator.pk]) is not None


def held(*, duty: Duty, annotator: Annotator) -> int | None:
    """The primary key of what lies on the annotator's desk, the newest first."""
    return _first(_HELD, [annotator.pk, duty.pk])


def ahead(*, duty: Duty, annotator: Annotator) -> Assignment | None:
    """The first open slot that lies ahead of the annotator's own work and is in nobody else's hands, locked."""
    locking = _UNLOCKED if connection.features.has_select_for_update_skip_locked else ""
    pk = _first(_AHEAD + locking, [duty.pk, annotator.pk, duty.pk, annotator.pk])
    if pk is None:
        return None
    unleased = (pk, Assignment.State.OPEN, None, None, None)
    return Assignment.from_db(None, ("id", "state", "annotator_id", "key", "leased_until"), unleased)


def _first(statement: str, values: Sequence[int]) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row = cursor.fetchone()
    return row[0] if row else None


def drop_draft(assignment: Assignment) -> None:
    """Its holder's draft of the item, if there is one."""
    with connection.cursor() as cursor:
        cursor.execute(_DROP_DRAFT, [assignment.duty_id, assignment.item_id, assignment.annotator_id])
