"""The models of people, projects and webhooks."""

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
