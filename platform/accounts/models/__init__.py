"""The models of people, projects, webhooks and jobs."""

from accounts.models.jobs import HasJob, Job
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
    "HasJob",
    "Heartbeat",
    "Invitation",
    "Job",
    "Membership",
    "Profile",
    "Project",
    "Role",
    "Scope",
    "Token",
    "User",
    "Webhook",
]
