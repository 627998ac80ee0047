"""What a share link opens, without an account: one campaign's numbers, rubric, panels and tables, and nothing else.

Every view takes the campaign from the link alone. Nothing here leads into the project.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts import languages
from accounts.api_requests import Throttle
from accounts.models import Membership, Role
from analytics import dashboards, exports, panels, shares
from analytics.data_cards import Described
from analytics.models import Share, Snapshot
from analytics.sentences import on_panel
from analytics.views import sending
from analytics.views.choices import Raters
from analytics.views.numbers import drawn
from analytics.views.page import NumbersPage
from annotation.readers import rubric_from_dict
from annotation.views.rubrics import wording

P = ParamSpec("P")
TABLES = ("scores", "items")


class SharedRate(Throttle):
    """How often one reader may ask, whatever link they try."""

    scope = "shared"

    def get_cache_key(self, request: Any, view: Any) -> str:
        """One count for each address that asks."""
        return f"shared:{self.get_ident(request)}"


def by_link(
    view: Callable[Concatenate[HttpRequest, Share, P], HttpResponseBase],
) -> Callable[..., HttpResponseBase]:
    """Give the view the link in place of its secret; who comes without a good one gets a page that says so."""

    @require_safe
    @never_cache
    @wraps(view)
    def opened(request: HttpRequest, *args: P.args, **parts: P.kwargs) -> HttpResponseBase:
        answer = _refusal(request) or _opened(view, request, **parts)
        answer["Referrer-Policy"], answer["X-Robots-Tag"] = "no-referrer", "noindex, nofollow"
        return answer

    return opened


def _refusal(request: HttpRequest) -> HttpResponse | None:
    rate = SharedRate()
    if rate.allow_request(request, None):  # it reads nothing that Django's request lacks
        return None
    refused = render(request, "429.html", status=429)
    refused["Retry-After"] = str(int(rate.wait() or 60) + 1)
    return refused


def _opened(view: Callable[..., HttpResponseBase], request: HttpRequest, **parts: Any) -> HttpResponseBase:
    secret = parts.pop("share")
    share = shares.find(secret)
    if share is None:
        return render(request, "analytics/shared_closed.html", status=404)
    if _rates_here(request, share):
        return render(request, "analytics/shared_closed.html", {"rates_here": True}, status=403)
    return view(request, share, secret=secret, **parts)


def _rates_here(request: HttpRequest, share: Share) -> bool:
    """The project's own annotators must see no judge and nobody else's ratings, link or not."""
    if not request.user.is_authenticated:
        return False
    here = Membership.objects.filter(user=request.user, project=share.campaign.project_id, role=Role.ANNOTATOR)
    return here.exists()


@by_link
def shared_numbers(request: HttpRequest, share: Share, *, secret: str) -> HttpResponse:
    """The numbers as they were last computed, and who rated."""
    snapshot, is_stale = dashboards.current(campaign=share.campaign)
    page = _page(request, share, snapshot, secret) if snapshot else None
    numbers = {"snapshot": snapshot, "is_stale": is_stale, "page": page, "raters": Raters(())}
    addresses = {"scores": reverse("shared_table", args=[secret, "scores"])}
    addresses["estimates"] = reverse("shared_figures", args=[secret])
    return _shown(request, share, "shared", {**numbers, "panels": _panels(share), "addresses": addresses}, secret)


@by_link
def shared_figures(request: HttpRequest, share: Share, *, secret: str) -> JsonResponse:
    """The figures of the page as JSON: estimates with how each was made; none until some are computed."""
    snapshot, is_stale = dashboards.current(campaign=share.campaign)
    if snapshot is None:
        return JsonResponse({"stale": True, "estimates": []})
    made = ("created_at", "revision", "inputs_digest", "code_version", "seed")
    return JsonResponse({"stale": is_stale, **{name: getattr(snapshot, name) for name in made}, **snapshot.content})


@by_link
def shared_rubric(request: HttpRequest, share: Share, *, secret: str) -> HttpResponse:
    """The rubric version that the campaign is rated on."""
    version = share.campaign.rubric_version
    return _shown(request, share, "shared_rubric", wording(rubric_from_dict(version.document)), secret)


@by_link
def shared_chart(request: HttpRequest, share: Share, *, secret: str, snapshot: int) -> HttpResponse:
    """The chart of one of this campaign's snapshots."""
    mine = Snapshot.objects.filter(campaign=share.campaign, code_version=dashboards.code_version())
    return drawn(request, _page(request, share, get_object_or_404(mine, pk=snapshot), secret))


@by_link
def shared_table(request: HttpRequest, share: Share, *, secret: str, table: str) -> HttpResponseBase:
    """The campaign's scores or items, raters under pseudonyms made for this link."""
    if table not in TABLES:
        raise Http404("There is no such table.")
    campaign = share.campaign
    options = exports.Options(renumbered=share.pk, rationales=False)
    subject = campaign.dataset if table == "items" else campaign
    export = exports.asked(project=campaign.project, what=table, kind="csv", subject=subject, options=options)
    return sending.unrecorded(export)


def _page(request: HttpRequest, share: Share, snapshot: Snapshot, secret: str) -> NumbersPage:
    chart = reverse("shared_chart", args=[secret, snapshot.pk])
    return NumbersPage(campaign=share.campaign, snapshot=snapshot, query=request.GET, chart=chart)


def _shown(request: HttpRequest, share: Share, name: str, parts: dict[str, Any], secret: str) -> HttpResponse:
    context = {"campaign": share.campaign, "version": share.campaign.rubric_version, "secret": secret, **parts}
    return render(request, f"analytics/{name}.html", context)


def _panels(share: Share) -> list[dict[str, Any]]:
    """Each panel with its language, how many rated on it and how much, and what they let the study say; no name."""
    return [
        {"panel": panel, "language": _language(panel), "said": on_panel(panel, languages.english_name)}
        for panel in panels.described(share.campaign)
    ]


def _language(panel: Described) -> str:
    return languages.english_name(panel.language) if panel.language else ""
