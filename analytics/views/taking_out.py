"""What a project holds, as files: chosen on one page, and sent as they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect, render
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts import access, jobs
from accounts.inputs import whole_number
from accounts.models import Project, Role
from accounts.refusals import Refused
from analytics import asking, exports, extents, transfers
from analytics.exports import SUBJECTS, Export, Options
from analytics.views import carrying, sending
from annotation.readers import parquet_is_installed

SWITCHES = ("replies", "revisions", "every_run", "names")
KEPT = ("what", "format", *set(SUBJECTS.values()), "renumbered", "without_rationales", *SWITCHES)
MOST_SEED = 2**31


@dataclass(frozen=True, slots=True)
class Card:
    """One form of the page: what it offers, and the options that make a difference to it."""

    title: Any
    about: Any
    whats: tuple[tuple[str, Any], ...]
    options: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        return SUBJECTS[self.whats[0][0]]

    @property
    def formats(self) -> tuple[str, ...]:
        return exports.offered(self.whats[0][0])

    def chosen(self, said: QueryDict) -> dict[str, Any]:
        """What the address says was chosen in this form; nothing where it is about another one."""
        return said.dict() if said.get("what") in dict(self.whats) else {}


CARDS = (
    Card(
        _("Ratings and verdicts"),
        _("One row per item, rater and criterion. Raters are shown by pseudonym."),
        (("scores", _("People and judges")), ("ratings", _("People only")), ("verdicts", _("Judges only"))),
        ("rationales", "renumbered", *SWITCHES),
    ),
    Card(_("Items"), _("The items, in the format that an import reads."), (("items", _("Items")),)),
    Card(
        _("Verdicts on a dataset"),
        _("What judges said of a dataset on every rubric, also where no campaign rates it."),
        (("dataset-verdicts", _("Verdicts")),),
        ("rationales", "replies", "every_run"),
    ),
    Card(_("Rubric"), _("Criteria, scales and anchors in all their languages."), (("rubric", _("Rubric")),)),
    Card(_("Campaign"), _("Duties, panels, overlap, and how items were selected."), (("campaign", _("Design")),)),
    Card(
        _("Label Studio"),
        _("Items as tasks, ratings as annotations, verdicts as predictions (JSON); the labelling interface (XML)."),
        (("label-studio", _("Tasks and interface")),),
        ("rationales", "renumbered"),
    ),
    Card(
        _("Hugging Face"),
        _("A folder for the Hub: tables, rubric, and a card with languages, panels, agreement and licence."),
        (("hugging-face", _("Folder")),),
        ("rationales", "renumbered", "replies", "revisions", "every_run"),
    ),
    Card(
        _("The whole project"),
        _("The whole project in one file, which can be loaded into an empty project. It contains the rationales."),
        (("bundle", _("Bundle")),),
        ("renumbered", "replies"),
    ),
)


@require_safe
@login_required
def export_page(request: HttpRequest, project: str) -> HttpResponseBase:
    """Choose what, about which, in which format."""
    room = access.require(user=request.user, slug=project)
    offered = [(card, _subjects(room, card.subject), card.chosen(request.GET)) for card in CARDS]
    chosen = [
        each
        for card, subjects, _said in offered
        for each in subjects
        if request.GET.get(card.subject) in (str(each.pk), str(each))
    ]
    is_lead = access.holds(user=request.user, project=room, roles=(Role.LEAD,))
    context = {"title": _("Export"), "project": room, "offered": offered, "chosen": chosen, "is_lead": is_lead}
    context["has_parquet"] = parquet_is_installed()
    return render(request, "analytics/export.html", {**context, **carrying.listed(room, request.user)})


def _back(room: Project, said: QueryDict) -> HttpResponseRedirect:
    """The page again, with the form as it was filled in."""
    kept = {name: said[name] for name in KEPT if said.get(name)}
    page = reverse("export", args=[room.slug])
    return redirect(f"{page}?{urlencode(kept)}" if kept else page)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def export_file(request: HttpRequest, project: str) -> HttpResponseBase:
    """The file that was asked for, or the page with why there is none: how large it would be, or that a worker writes
    it. A mere address gives the file, however large.
    """
    room = access.require(user=request.user, slug=project)
    said = request.POST if request.method == "POST" else request.GET
    try:
        export = asking.asked(project=room, what=said.get("what", ""), said=said.dict(), options=_options(said))
        exports.permit(export, user=request.user)
        response = _answer(request, export, said)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return _back(room, said)
    return response


def _answer(request: HttpRequest, export: Export, said: QueryDict) -> HttpResponseBase:
    if "look" in said:
        messages.info(request, _told(export))
        return _back(export.project, said)
    if request.method == "POST" and ("later" in said or extents.is_large(export)):
        jobs.enqueue(transfers.prepare(export=export, actor=request.user))
        return redirect("export", export.project.slug)
    return sending.recorded(export, actor=request.user)


def _told(export: Export) -> str:
    rows, size = extents.extent(export)
    sentence = ngettext("%(name)s: %(rows)s row", "%(name)s: %(rows)s rows", rows)
    in_words = sentence % {"name": export.file_name, "rows": f"{rows:,}"}
    return (
        in_words
        if size is None
        else gettext("%(rows)s, about %(size)s") % {"rows": in_words, "size": filesizeformat(size)}
    )


def _subjects(room: Project, subject: str) -> list[Any]:
    return [] if subject == "project" else list(asking.choices(project=room, subject=subject))


def _options(said: QueryDict) -> Options:
    seed = said.get("renumbered", "").strip()
    number = whole_number(seed, largest=MOST_SEED - 1)
    if seed and number is None:
        sentence = str(_("The seed for other pseudonyms must be a whole number."))
        raise Refused(sentence, fields={"renumbered": sentence})
    switched = {name: name in said for name in SWITCHES}
    return Options(renumbered=number, rationales="without_rationales" not in said, **switched)
