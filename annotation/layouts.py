"""How the texts of a dataset are shown: plain, or as Markdown. Its items, and what judges read, do not change."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import User
from accounts.refusals import Refused
from annotation.desk.markup import MARKDOWN
from annotation.models import Dataset

PLAIN = "plain"
MARKUPS = (PLAIN, MARKDOWN)


def markup_of(dataset: Dataset) -> str:
    """One of `MARKUPS`."""
    return MARKDOWN if dataset.layout.get("markup") == MARKDOWN else PLAIN


def set_markup(*, dataset: Dataset, markup: str, actor: User | None = None) -> None:
    """Show the texts of this version as plain text or as Markdown; versions that extend it later do the same."""
    if markup not in MARKUPS:
        wrong = _("Choose “Plain text” or “Markdown”.")
        raise Refused(wrong, code="invalid", fields={"markup": wrong})
    with transaction.atomic():
        locked = Dataset.objects.select_for_update(of=("self",), no_key=True).get(pk=dataset.pk)
        if markup == markup_of(locked):
            return
        others = {name: value for name, value in locked.layout.items() if name != "markup"}
        dataset.layout = {**others, "markup": markup} if markup != PLAIN else others
        dataset.save(update_fields=["layout"])
        audit.record(actor=actor, project=dataset.project, verb="set text format", subject=dataset, fields=["layout"])
