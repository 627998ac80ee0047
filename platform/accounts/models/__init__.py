"""People and projects, and who is told of what happens in them."""

from accounts.models.people import (
    SIGHTED,
    AuditEntry,
    Heartbeat,
    Invitation,
    Membership,
    Profile,
    Project,
    Role,
    Scope,
    Token,
    User,
)
from accounts.models.webhooks import Delivery, Event, Webhook

__all__ = [
    "SIGHTED",
    "AuditEntry",
    "Delivery",
    "Event",
    "Heartbeat",
    "Invitation",
    "Membership",
    "Profile",
    "Project",
    "Role",
    "Scope",
    "Token",
    "User",
    "Webhook",
]
