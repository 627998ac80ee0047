"""The two statements that every submission sends besides its own rows, written out in SQL.

Everything else in the product goes through Django's compiler; here building the query took longer than running it, and
this path decides how many annotators a machine carries (bench/submit.py).
"""

from __future__ import annotations

from uuid import UUID

from django.db import connection

from accounts.models import User
from annotation.models import Assignment, Campaign, Duty

# The same rows as Assignment.objects.visible_to(user).filter(key=key).
_BY_KEY = """
SELECT duty.campaign_id, campaign.state,
       assignment.id, assignment.duty_id, assignment.item_id, assignment.state, assignment.annotator_id,
       assignment.revision
FROM annotation_assignment assignment
JOIN annotation_annotator annotator ON annotator.id = assignment.annotator_id
JOIN annotation_duty duty ON duty.id = assignment.duty_id
JOIN annotation_campaign campaign ON campaign.id = duty.campaign_id
JOIN accounts_membership membership ON membership.project_id = campaign.project_id
WHERE assignment.key = %s AND annotator.user_id = %s AND membership.user_id = %s
"""
_LOADED = ("id", "duty_id", "item_id", "state", "annotator_id", "revision")  # in the model's order, for from_db
_DROP_DRAFT = "DELETE FROM annotation_draft WHERE duty_id = %s AND item_id = %s AND annotator_id = %s"
_KEY = Assignment._meta.get_field("key")


def find(*, user: User, key: UUID) -> Assignment | None:
    """The assignment this person holds or submitted under ``key``, as a member of its project; the rest is deferred.

    Of its duty and campaign only the primary keys and the campaign's state are loaded.
    """
    with connection.cursor() as cursor:
        cursor.execute(_BY_KEY, [_KEY.get_db_prep_value(key, connection), user.pk, user.pk])
        row = cursor.fetchone()
    if row is None:
        return None
    campaign, state, *loaded = row
    assignment = Assignment.from_db(None, _LOADED, loaded)
    assignment.key = key
    assignment.duty = Duty.from_db(None, ("id", "campaign_id"), (assignment.duty_id, campaign))
    assignment.duty.campaign = Campaign.from_db(None, ("id", "state"), (campaign, state))
    return assignment


def drop_draft(assignment: Assignment) -> None:
    """Its holder's draft of the item, if there is one."""
    with connection.cursor() as cursor:
        cursor.execute(_DROP_DRAFT, [assignment.duty_id, assignment.item_id, assignment.annotator_id])
