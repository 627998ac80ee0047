"""Agreement and calibration of a campaign, read from its newest snapshot."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import access
from accounts.models import Project, User
from accounts.refusals import Refused
from analytics import computing, dashboards, pictures, ratings, tasks
from analytics.figures import Figures, spread
from analytics.models import Snapshot
from analytics.views import choices
from analytics.views.choices import Raters
from analytics.views.page import NumbersPage
from annotation.models import Campaign


@require_safe
@login_required
def numbers_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every campaign with its headline figures; the only one itself where there is only one."""
    room = access.require(user=request.user, slug=project)
    found = list(Campaign.objects.visible_to(request.user).filter(project=room).select_related(*_SHOWN))
    if len(found) == 1:
        return redirect("campaign_numbers", room.slug, found[0].pk)
    newest = dashboards.newest(found)
    entries = [(campaign, _headline(newest.get(campaign.pk))) for campaign in found]
    return render(request, "analytics/numbers.html", {"title": _("Numbers"), "project": room, "entries": entries})


@require_safe
@login_required
def campaign_numbers(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The page. It asks for itself every few seconds, with the state it has `seen`."""
    found = _campaign(request.user, project, campaign)
    raters, refusal = _raters(found, request)
    snapshot, is_stale = dashboards.current(campaign=found, settings=raters.settings)
    number = snapshot.pk if snapshot else 0
    if is_stale:
        tasks.ask(found.pk, raters.pks, blind_only=raters.blind_only, after=number)
    failed = computing.failed(campaign=found, settings=raters.settings) if is_stale else None
    state = f"{number}-{'stale' if is_stale else 'fresh'}"
    if _seen(request) == state and not is_stale:
        return HttpResponse(status=204)
    page = NumbersPage(campaign=found, snapshot=snapshot, query=request.GET) if snapshot else None
    context = {"project": found.project, "campaign": found, "raters": raters, "refusal": refusal, "page": page}
    told = {
        "snapshot": snapshot,
        "is_stale": is_stale,
        "state": state,
        "addresses": _addresses(found, raters),
        "failed": failed,
    }
    response = render(request, "analytics/campaign_numbers.html", {**context, **told})
    if _seen(request) and not _seen(request).startswith(f"{number}-"):
        response["HX-Retarget"] = response["HX-Reselect"] = "#main"  # new figures, not only news of them
    return response


@require_safe
@login_required
def bias_chart(request: HttpRequest, project: str, campaign: int, snapshot: int) -> HttpResponse:
    """The chart of one snapshot as SVG; the same address and reader's language always give the same picture."""
    found = _campaign(request.user, project, campaign)
    stored = get_object_or_404(Snapshot, campaign=found, pk=snapshot, code_version=dashboards.code_version())
    return drawn(request, NumbersPage(campaign=found, snapshot=stored, query=request.GET))


def drawn(request: HttpRequest, page: NumbersPage) -> HttpResponse:
    """The chart as a file: what was drawn with the snapshot."""
    theme = choices.one_of(request.GET.get("theme"), list(pictures.THEMES))
    if page.stored_chart is None:
        raise Http404("There is no chart of this judge and criterion.")
    name = f"bias:{page.snapshot.pk}:{page.stored_chart.pk}:{theme}:{get_language()}"
    title = f"{page.criterion_name}. {page.bias_sentence}"
    response = get_conditional_response(request, etag=f'"{name}"') or HttpResponse(
        pictures.alone(page.stored_chart.wide, page.chart_words, title=title, theme=theme),
        content_type="image/svg+xml",
    )
    response["ETag"], response["Cache-Control"] = f'"{name}"', "private, no-cache"
    return response


_SHOWN = ("project", "dataset", "rubric_version__rubric")


def _campaign(user: User, project: str, campaign: int) -> Campaign:
    room: Project = access.require(user=user, slug=project)
    mine = Campaign.objects.visible_to(user).filter(project=room).select_related(*_SHOWN)
    return get_object_or_404(mine.prefetch_related("rubric_version__criteria"), pk=campaign)


def _addresses(campaign: Campaign, raters: Raters) -> dict[str, str]:
    """Where the parts of the page lead; a shared page has fewer of them."""
    here, query = (campaign.project.slug, campaign.pk), f"?{raters.query}" if raters.query else ""
    return {
        "ratings": reverse("api_ratings_table", args=here) + query,
        "figures": reverse("api_numbers", args=here) + query,
        "judges": reverse("judges", args=here[:1]),
        "campaign": reverse("campaign", args=here),
    }


def _seen(request: HttpRequest) -> str:
    """The state of the page that asks for itself; nothing for a person's own request."""
    return request.GET.get("seen", "") if "HX-Request" in request.headers else ""


def _raters(campaign: Campaign, request: HttpRequest) -> tuple[Raters, str]:
    """Who counts, and what is wrong with the names given: then everyone counts."""
    try:
        return choices.raters(campaign, request.GET), ""
    except Refused as refused:
        return Raters(tuple(ratings.annotators(campaign))), refused.sentence


def _headline(snapshot: Snapshot | None) -> dict[str, Any] | None:
    """A campaign's agreement and judges, each as the middle and the outermost of its criteria."""
    if snapshot is None:
        return None
    content = snapshot.content
    figures = Figures(content["estimates"])
    keys = dict.fromkeys(row["criterion"] for row in content["counts"])
    whole = content["languages"][0] if len(content["languages"]) == 1 else None
    judges = [(judge, spread(figures.each("cohen_kappa", keys, [whole], judge["name"]))) for judge in content["judges"]]
    agreement = spread(figures.each("krippendorff_alpha", keys, [whole]))
    return {"snapshot": snapshot, "agreement": agreement, "judges": judges, "rated": content["rated"]}
