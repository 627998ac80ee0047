"""Annotators, and the panels that they belong to."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import SIGHTED, Invitation, Project, User


class SightedAccess(models.QuerySet):
    """Rows that only leads and researchers of their project see."""

    def visible_to(self, user: User) -> SightedAccess:
        return self.filter(project__memberships__user=user, project__memberships__role__in=SIGHTED)


class Annotator(models.Model):
    """A person who rates in a project: a member, or a rater of an imported study who is known only by `pseudonym`.

    Exports and numbers show the `pseudonym`. `identified` is False for imported raters that are positions in a file
    (such as column 1, 2, 3), because the same position may be different persons.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    pseudonym = models.CharField(_("pseudonym"), max_length=80)
    identified = models.BooleanField(default=True)

    objects = SightedAccess.as_manager()

    class Meta:
        ordering: ClassVar = ["pseudonym"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["project", "pseudonym"], name="annotator_pseudonym_unique"),
            models.UniqueConstraint(
                fields=["project", "user"], condition=models.Q(user__isnull=False), name="annotator_user_unique"
            ),
        ]

    def __str__(self) -> str:
        return self.pseudonym


class Panel(models.Model):
    """A group of annotators who rate together, usually native speakers of one `language`."""

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(_("name"), max_length=120)
    language = models.CharField(_("language"), max_length=35, blank=True)
    annotators = models.ManyToManyField(Annotator, through="PanelSeat", related_name="panels")

    objects = SightedAccess.as_manager()

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["project", "name"], name="panel_name_unique")]

    def __str__(self) -> str:
        return self.name


class PanelSeat(models.Model):
    panel = models.ForeignKey(Panel, on_delete=models.CASCADE, related_name="seats")
    annotator = models.ForeignKey(Annotator, on_delete=models.PROTECT, related_name="seats")

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["panel", "annotator"], name="panel_seat_once")]

    def __str__(self) -> str:
        return f"{self.annotator} · {self.panel}"


class InvitedSeat(models.Model):
    """The panel that an invited annotator will join. Deleted when they accept and get their seat."""

    invitation = models.OneToOneField(Invitation, on_delete=models.CASCADE, related_name="+")
    panel = models.ForeignKey(Panel, on_delete=models.CASCADE, related_name="+")
