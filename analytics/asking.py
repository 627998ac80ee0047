"""What somebody asked for, in the words of a page, an address or a command line, as an export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Model, QuerySet
from django.utils.translation import gettext as _

from accounts.inputs import whole_number
from accounts.models import Project
from accounts.refusals import Refused
from analytics import exports
from analytics.exports import SUBJECTS, Export, Options
from annotation.models import Campaign, Dataset, RubricVersion


def asked(*, project: Project, what: str, said: Mapping[str, str], options: Options) -> Export:
    """The export of these words: ``format``, and ``campaign``, ``dataset`` or ``rubric`` by name or by number."""
    kind, subject = said.get("format", ""), SUBJECTS.get(what, "")
    found: Any = project if subject == "project" else None
    if subject and found is None:
        found = chosen(project=project, subject=subject, name=said.get(subject, ""))
    return exports.asked(project=project, what=what, kind=kind, subject=found, options=options)


def choices(*, project: Project, subject: str) -> QuerySet[Any]:
    """The things of a kind that a project has, as they are offered."""
    if subject == "dataset":
        return Dataset.objects.ready().filter(project=project).select_related("project")
    if subject == "rubric":
        return RubricVersion.objects.filter(rubric__project=project).select_related("rubric__project")
    campaigns = Campaign.objects.filter(project=project)
    return campaigns.select_related("project", "dataset", "rubric_version__rubric")


def chosen(*, project: Project, subject: str, name: str = "") -> Any:
    """The thing of that name (the newest version, or the very one: ``Dialogues v2``) or number; without either, the
    only one there is.
    """
    there = list(choices(project=project, subject=subject))
    found = [row for row in there if str(row) == name] or [row for row in there if _base(row) == name]
    if not found:
        found = [row for row in there if row.pk == whole_number(name)]
    if not name and len({_base(row) or str(row) for row in there}) == 1:
        found = there
    if found:
        return found[0]  # the newest version comes first
    told = _("There is no %(subject)s “%(name)s” in this project. Available: %(all)s.")
    if not name:
        told = _("Name the %(subject)s. Available: %(all)s.")
    sentence = told % {"subject": subject, "name": name, "all": "; ".join(map(str, there)) or _("none")}
    raise Refused(sentence, code="no_subject", fields={subject: sentence})


def _base(row: Model) -> str:
    return str(row).rpartition(" v")[0]
