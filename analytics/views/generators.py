"""The page Generators: their results and how stable their rankings are. Results and Stability were two pages."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from analytics.questions.asked import QuestionChoices
from analytics.questions.question import NumbersQuestion
from analytics.views.items import shown_campaign
from analytics.views.parts import PartsPage, chosen_judge
from analytics.views.results import RESULT_SECTIONS
from analytics.views.stability import STABILITY_SECTIONS
from annotation.models import Campaign


def _offered(campaign: Campaign, question: NumbersQuestion, choices: QuestionChoices) -> dict[str, Any]:
    """What the page needs: the judges to choose from, or the sentences that say what is missing."""
    if len(choices.generators) < 2 and not {"model_a", "model_b"} <= set(choices.attributes):
        more = _("A ranking compares generators: the items’ column “generator” names fewer than two.")
        return {"nothing": _("There is nothing to rank"), "nothing_more": more}
    if not (choices.raters or choices.judges):
        more = _("Let a panel rate, or run a judge.")
        return {"nothing": _("Nobody has scored these items"), "nothing_more": more}
    notes = []
    if not choices.raters:
        notes.append(_("A judge is corrected by people: let a panel rate a sample of the items, or import ratings."))
    elif choices.judges:
        notes.append(_("A correction needs 20 labelled items of a generator, and items that only the judge scored."))
    if len(choices.languages) < 2:
        notes.append(_("The items are in one language, so that only the ranking itself and the judge’s are shown."))
    return {
        "judges": choices.listed_judges(question),
        "judge": chosen_judge(question, choices),
        "form_note": " ".join(notes),
    }


def _opening(choices: QuestionChoices) -> str:
    """The section shown first: corrected means by language if there are people, judges and several generators,
    otherwise rankings."""
    return "languages" if choices.raters and choices.judges and len(choices.generators) > 1 else "ranks"


GENERATORS = PartsPage(
    name="results",
    title=gettext_lazy("Generators"),
    sections=(*RESULT_SECTIONS, *STABILITY_SECTIONS),
    offered=_offered,
    opening=_opening,
)


@require_safe
@login_required
def stability_page(request: HttpRequest, project: str, campaign: int, part: str = "") -> HttpResponse:
    """Redirect old addresses of the page Stability and its sections to the page Generators."""
    current = shown_campaign(request.user, project, campaign)
    here = [current.project.slug, current.pk]
    address = reverse("numbers_results_part", args=[*here, part]) if part else reverse("numbers_results", args=here)
    query = request.META["QUERY_STRING"]
    return redirect(f"{address}?{query}" if query else address, permanent=True)


_STABILITY = "p/<slug:project>/numbers/<int:campaign>/stability/"
ROUTES_OF_STABILITY = [
    path(_STABILITY, stability_page, name="numbers_stability"),
    path(f"{_STABILITY}<slug:part>/", stability_page, name="numbers_stability_part"),
]
