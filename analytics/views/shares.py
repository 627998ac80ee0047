"""Share links: the lead's page of them, and what they show to whoever holds one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import languages
from accounts.api_requests import Throttle
from accounts.models import Membership, Project, Role, User
from analytics.answers import snapshots
from analytics.api.numbers import LONGEST, found_in
from analytics.exporting import hugging_face, shares
from analytics.exporting.hugging_face import Described, on_panel
from analytics.judges import decisions
from analytics.judges.decisions import CampaignDecisions
from analytics.models import Share, Snapshot
from analytics.numbers import NumbersPage
from analytics.views.exports import unrecorded_download
from analytics.views.items import criterion_name
from analytics.views.numbers import Raters, drawn_chart
from annotation.models import Annotation, Campaign
from annotation.readers import rubric_from_dict
from annotation.views.rubrics import wording
from judging.versions.seen_labels import SHARED_SCORES, record_seen_labels


class ShareForm(forms.Form):
    campaign = forms.ModelChoiceField(
        label=gettext_lazy("Campaign"), queryset=Campaign.objects.none(), empty_label=None
    )
    label = forms.CharField(
        label=gettext_lazy("For whom"),
        max_length=120,
        help_text=gettext_lazy("Only leads see this. It helps you to recognise the link."),
    )
    days = forms.IntegerField(
        label=gettext_lazy("Valid for (days)"),
        required=False,
        min_value=1,
        max_value=LONGEST,
        help_text=gettext_lazy("Leave empty to keep the link until you revoke it."),
    )

    shows_generators = forms.BooleanField(
        label=gettext_lazy("Show generators and scenarios"),
        required=False,
        help_text=gettext_lazy(
            "Also the attributes of items. Otherwise figures and tables do not name the model that wrote an item."
        ),
    )

    def __init__(self, *args: object, project: Project, user: User) -> None:
        super().__init__(*args)
        mine = Campaign.objects.visible_to(user).filter(project=project).select_related("project")
        self.fields["campaign"].queryset = mine  # type: ignore[attr-defined]


@require_http_methods(["GET", "POST"])
@never_cache
@login_required
def shares_page(request: HttpRequest, project: str) -> HttpResponse:
    """The links that work; a posted form makes one and shows its address once."""
    current_project, found = found_in(request.user, project)
    form, address = ShareForm(request.POST or None, project=current_project, user=request.user), ""
    status = 422 if form.errors else 200
    if form.is_valid():
        _share, secret = shares.make(actor=request.user, **form.cleaned_data)
        address = request.build_absolute_uri(reverse("shared", args=[secret]))
        form = ShareForm(project=current_project, user=request.user)
    context = {"title": _("Sharing"), "project": current_project, "shares": found, "form": form, "address": address}
    return render(request, "analytics/sharing.html", context, status=status)


@require_POST
@login_required
def revoke_share_view(request: HttpRequest, project: str, link: int) -> HttpResponse:
    current_project, found = found_in(request.user, project)
    shares.revoke_share(share=get_object_or_404(found, pk=link), actor=request.user)
    messages.success(request, _("Revoked. The link no longer works."))
    return redirect("shares", current_project.slug)


# --- what a link shows -----------------------------------------------------------------------------------------------
P = ParamSpec("P")
_WIDEST = decisions.ORDER[:3]
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
    """Decorator that gives the view the share instead of the link's secret. If no live link has this secret, a page
    says so."""

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
    if rate.allow_request(request, None):  # a Django request is enough: DRF's own attributes are not used
        return None
    refused = render(request, "429.html", status=429)
    refused["Retry-After"] = str(int(rate.wait() or 60) + 1)
    return refused


def _opened(view: Callable[..., HttpResponseBase], request: HttpRequest, **parts: Any) -> HttpResponseBase:
    secret = parts.pop("share")
    share = shares.find_share(secret)
    if share is None:
        return render(request, "analytics/shared_closed.html", status=404)
    if _rates_here(request, share):
        return render(request, "analytics/shared_closed.html", {"rates_here": True}, status=403)
    return view(request, share, secret=secret, **parts)


def _rates_here(request: HttpRequest, share: Share) -> bool:
    """Whether the reader is an annotator of the project: even with a link, they must not see judges or other people's
    ratings."""
    if not request.user.is_authenticated:
        return False
    here = Membership.objects.filter(user=request.user, project=share.campaign.project_id, role=Role.ANNOTATOR)
    return here.exists()


@by_link
def shared_numbers(request: HttpRequest, share: Share, *, secret: str) -> HttpResponse:
    """The numbers as they were last computed, and who rated."""
    snapshot, is_stale = snapshots.current_snapshot(campaign=share.campaign)
    decided = decisions.current_decisions(share.campaign)
    page = _page(request, share, snapshot, secret, decided) if snapshot else None
    numbers: dict[str, Any] = {"snapshot": snapshot, "is_stale": is_stale, "page": page, "raters": Raters(())}
    addresses = {
        "scores": reverse("shared_table", args=[secret, "scores"]),
        "scores_digest": reverse("shared_digest", args=[secret, "scores"]),
        "estimates": reverse("shared_figures", args=[secret]),
    }
    if page:
        numbers["scores_digest"] = shares.scores_digest(share)
    return _shown(
        request,
        share,
        "shared",
        {
            **numbers,
            "panels": _panels(share),
            "addresses": addresses,
            "decided": decided,
            "decisions": _decisions(share, decided),
        },
        secret,
    )


@by_link
def shared_figures(request: HttpRequest, share: Share, *, secret: str) -> JsonResponse:
    """The figures of the page as JSON, with how each was computed; an empty list if nothing is computed yet."""
    snapshot, is_stale = snapshots.current_snapshot(campaign=share.campaign)
    if snapshot is None:
        return JsonResponse({"stale": True, "estimates": []})
    made = ("created_at", "revision", "inputs_digest", "code_version", "seed")
    shown = shares.shared_snapshot(share, snapshot)
    return JsonResponse({"stale": is_stale, **{name: getattr(shown, name) for name in made}, **shown.content})


@by_link
def shared_rubric(request: HttpRequest, share: Share, *, secret: str) -> HttpResponse:
    """The rubric version that the campaign is rated on."""
    version = share.campaign.rubric_version
    return _shown(request, share, "shared_rubric", wording(rubric_from_dict(version.document)), secret)


@by_link
def shared_chart(request: HttpRequest, share: Share, *, secret: str, snapshot: int) -> HttpResponse:
    """The chart of one of this campaign's snapshots."""
    stored = get_object_or_404(snapshots.of_numbers_page(share.campaign), pk=snapshot)
    return drawn_chart(request, _page(request, share, stored, secret))


@by_link
def shared_table(request: HttpRequest, share: Share, *, secret: str, table: str) -> HttpResponseBase:
    """The campaign's scores or items, raters under pseudonyms made for this link."""
    if table not in TABLES:
        raise Http404("There is no such table.")
    if table == "scores":
        rated = Annotation.objects.filter(campaign=share.campaign).values_list("item", flat=True).distinct()
        record_seen_labels(campaign=share.campaign, items=list(rated.order_by()), actor=None, verb=SHARED_SCORES)
    return unrecorded_download(shares.shared_export(share, table))


@by_link
def shared_digest(request: HttpRequest, share: Share, *, secret: str, table: str) -> HttpResponse:
    """The SHA-256 of the file of `shared_table`, as `sha256sum --check` reads it."""
    if table not in TABLES:
        raise Http404("There is no such table.")
    name = shares.shared_export(share, table).file_name
    return HttpResponse(f"{shares.file_digest(share, table)}  {name}\n", content_type="text/plain; charset=utf-8")


def _page(
    request: HttpRequest, share: Share, snapshot: Snapshot, secret: str, decided: CampaignDecisions | None = None
) -> NumbersPage:
    """The figures of the chosen judge; of the one that may be used most widely if none is chosen."""
    chart = reverse("shared_chart", args=[secret, snapshot.pk])
    snapshot = shares.shared_snapshot(share, snapshot)
    query = request.GET.copy()
    if decided and decided.judges and "judge" not in query:
        query["judge"] = min(
            decided.judges, key=lambda judge: [-dict(decided.summary(judge)).get(use, 0) for use in _WIDEST]
        )
    return NumbersPage(campaign=share.campaign, snapshot=snapshot, query=query, chart=chart)


def _decisions(share: Share, decided: CampaignDecisions | None) -> list[tuple[str, list[dict[str, Any]]]]:
    """Every judge with its decisions, without reasons. Reasons may name annotators, and a link hides their project
    pseudonyms."""
    if decided is None:
        return []
    names = {each.key: criterion_name(each) for each in share.campaign.rubric_version.criteria.all()}
    return [
        (
            judge,
            [
                {
                    "criterion": names.get(cell.row["criterion"], cell.row["criterion"]),
                    "language": languages.name_for(cell.row["language"], get_language()),
                    "cell": cell,
                }
                for cell in decided.of_judge(judge)
            ],
        )
        for judge in decided.judges
    ]


def _shown(request: HttpRequest, share: Share, name: str, parts: dict[str, Any], secret: str) -> HttpResponse:
    context = {"campaign": share.campaign, "version": share.campaign.rubric_version, "secret": secret, **parts}
    return render(request, f"analytics/{name}.html", context)


def _panels(share: Share) -> list[dict[str, Any]]:
    """Each panel with its language, its numbers of annotators and ratings, and the facts that annotators agreed to
    publish. No names."""
    return [
        {"panel": panel, "language": _language(panel), "description": on_panel(panel, languages.english_name)}
        for panel in hugging_face.described_panels(share.campaign)
    ]


def _language(panel: Described) -> str:
    return languages.english_name(panel.language) if panel.language else ""
