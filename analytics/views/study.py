"""The page Study: what was found in a campaign, in five sentences and four pictures."""

from __future__ import annotations

import hashlib
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import access
from accounts.inputs import without_nul
from accounts.models import Role
from analytics import page_cache, tasks
from analytics.answers import computing
from analytics.study.campaign_pictures import CampaignPictures
from analytics.study.choice import StudyChoice, chosen_in_bar
from analytics.study.picture_files import PICTURES, decisions_csv, svg_file, tex_file
from analytics.study.study import CampaignStudy
from analytics.views.items import shown_campaign
from analytics.workflow import AGREEMENT
from annotation.models import Campaign, Item
from judging.versions.seen_labels import record_seen_labels

PICTURE_KINDS = {
    "svg": "image/svg+xml",
    "tex": "application/x-tex; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
}
"""The media type of each kind of file of a picture."""


def study_choice(query: QueryDict) -> StudyChoice:
    """The choice of an address; what it does not name is left to the study."""
    chosen = {name: without_nul(query.get(name, "")) for name in ("judge", "criterion", "language", "cell")}
    return StudyChoice(**chosen, reference=query.get("reference", "") or "mean")


@require_safe
@login_required
@page_cache.cached_page
def study_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The page. While figures are computed it asks for itself, with the state it has `seen`: 204 if nothing changed."""
    current = shown_campaign(request.user, project, campaign)
    is_lead = access.holds(user=request.user, project=current.project, roles=(Role.LEAD,))
    study = CampaignStudy(current, study_choice(request.GET), is_lead=is_lead)
    pictures = CampaignPictures(study)
    found = study.findings
    shown = {name: getattr(pictures, name) for name in ("squares", "forest", "heat", "dots", "worst")}
    record_seen_labels(campaign=current, items=[item.pk for item in pictures.worst], actor=request.user)
    for settings in study.stale:
        tasks.ask_to_compute(campaign=current, settings=settings)
    tries = [computing.failed(campaign=current, settings=each) for each in study.stale]
    failed = [computation for computation in tries if computation is not None]
    missing = " ".join(sorted(settings.digest for settings in study.stale))
    state = hashlib.sha256(f"{missing} {len(failed)}".encode()).hexdigest()[:12]
    if "HX-Request" in request.headers and study.stale and request.GET.get("seen") == state:
        return HttpResponse(status=204)
    context = {
        "title": current.project.name,
        "head_title": _("Study"),
        "project": current.project,
        "campaign": current,
        "study": study,
        "is_lead": is_lead,
        "n_items": Item.objects.of(current.dataset).count(),
        "is_stale": bool(study.stale),
        "again": f"?{_kept(request.GET, seen=state)}",
        "is_computing": len(failed) < len(study.stale),
        "failed": next(iter(failed), None),
        "links": _links(current, pictures, request.GET),
        "pictures": pictures,
        "findings": found,
        **shown,
    }
    return render(request, "analytics/study.html", context)


def _kept(asked: QueryDict, **more: str) -> str:
    """The parameters of the page's own address, and `more`."""
    pairs = [(name, asked[name]) for name in asked if name != "seen"]
    return urlencode([*pairs, *more.items()])


def _links(campaign: Campaign, pictures: CampaignPictures, asked: QueryDict) -> dict[str, str]:
    """Where each finding and each picture leads on to."""
    here, study = [campaign.project.slug, campaign.pk], pictures.study
    chosen = ({"judge": study.choice.judge} if study.choice.judge else {}) | chosen_in_bar(asked)
    about = f"?{urlencode(chosen)}" if chosen else ""
    compared = f"?{urlencode({**chosen, 'blind': 'only'})}"
    items = reverse("numbers_items", args=here)
    kept = f"?{query}" if (query := _kept(asked)) else ""
    files = {
        f"{picture}_{kind}": reverse("study_picture", args=[*here, picture, kind]) + kept
        for picture in PICTURES
        for kind in PICTURE_KINDS
    }
    cells = reverse("numbers_cells_csv", args=here)
    return files | {
        "people": reverse("numbers_agreement", args=here) + about,
        "judges": reverse("judge_decisions", args=here) + about,
        "generators": reverse("numbers_results", args=here) + about,
        "certainty": reverse("numbers_planner", args=here) + about,
        "bias": reverse("numbers_calibration_part", args=[*here, "bias"]) + compared,
        "worst": f"{items}?{pictures.item_choice.query}" if pictures.item_choice else items,
        "items": items,
        "explore": reverse("numbers_explore", args=here),
        "bias_csv": f"{cells}?{study.bias_question.query}",
        "agreement_csv": f"{cells}?{AGREEMENT.query}",
        "generators_csv": f"{cells}?{study.leaderboard_question.query}",
    }


@require_safe
@login_required
def study_picture(request: HttpRequest, project: str, campaign: int, picture: str, kind: str) -> HttpResponse:
    """A picture as a file; figures of the other three pictures are CSV on the page Explore."""
    if picture not in PICTURES or kind not in PICTURE_KINDS or (kind == "csv" and picture != "decisions"):
        raise Http404("There is no such picture.")
    current = shown_campaign(request.user, project, campaign)
    study = CampaignStudy(current, study_choice(request.GET), is_lead=False)
    drawn = CampaignPictures(study)
    if kind == "csv":
        content: str | None = "".join(decisions_csv(drawn))
    else:
        content = (svg_file if kind == "svg" else tex_file)(drawn, picture)
    if content is None:
        for settings in study.stale:
            tasks.ask_to_compute(campaign=current, settings=settings)
        text = _("There are no figures for this picture yet.")
        return HttpResponse(text, status=503, content_type="text/plain; charset=utf-8", headers={"Retry-After": "5"})
    name = f"{slugify(current.name) or current.pk}-{picture}.{kind}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(content, content_type=PICTURE_KINDS[kind], headers=headers)
