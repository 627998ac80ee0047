"""The page Study: what was found in a campaign, in five sentences and four pictures."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import access, languages
from accounts.inputs import without_nul
from accounts.models import Role
from analytics import page_cache, tasks
from analytics.answers import computing
from analytics.questions.question_names import REFERENCE_NAMES
from analytics.study.study import COMPARED_WITH, CampaignStudy, StudyChoice
from analytics.views.items import shown_campaign
from analytics.workflow import AGREEMENT
from annotation.models import Campaign, Item


def study_choice(query: QueryDict) -> StudyChoice:
    """The choice of an address; what it does not name is left to the study."""
    chosen = {name: without_nul(query.get(name, "")) for name in ("judge", "criterion", "language", "cell")}
    return StudyChoice(**chosen, reference=query.get("reference", "") or "mean")


@require_safe
@login_required
@page_cache.cached_page
def study_page(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """The page. It asks for itself while figures are computed."""
    current = shown_campaign(request.user, project, campaign)
    is_lead = access.holds(user=request.user, project=current.project, roles=(Role.LEAD,))
    study = CampaignStudy(current, study_choice(request.GET), is_lead=is_lead)
    shown = {name: getattr(study, name) for name in ("findings", "squares", "forest", "heat", "dots")}
    for settings in study.stale:
        tasks.ask_to_compute(campaign=current, settings=settings)
    tries = [computing.failed(campaign=current, settings=each) for each in study.stale]
    failed = [computation for computation in tries if computation is not None]
    context = {
        "title": current.project.name,
        "head_title": _("Study"),
        "project": current.project,
        "campaign": current,
        "study": study,
        "is_lead": is_lead,
        "n_items": Item.objects.of(current.dataset).count(),
        "is_stale": bool(study.stale),
        "is_computing": len(failed) < len(study.stale),
        "failed": next(iter(failed), None),
        "bar": _bar(study, request.LANGUAGE_CODE),
        "links": _links(current, study),
        **shown,
    }
    return render(request, "analytics/study.html", context)


def _bar(study: CampaignStudy, spoken: str) -> list[dict[str, Any]]:
    """The fields of the bar: name, label, the options with their names, and the chosen one."""
    tags = languages.in_name_order(set(study.choices.languages), spoken)
    named = [(tag, languages.name_for(tag, spoken)) for tag in tags]
    fields = (
        ("judge", _("Judge"), [(name, name) for name in study.judges], study.choice.judge),
        ("criterion", _("Criterion"), list(study.criteria.items()), study.choice.criterion),
        ("language", _("Language"), [("", _("all")), *named], study.choice.language),
        (
            "reference",
            _("Compared with"),
            [(name, str(REFERENCE_NAMES[name])) for name in COMPARED_WITH],
            study.choice.reference,
        ),
    )
    return [
        {"name": name, "label": label, "options": options, "chosen": chosen}
        for name, label, options, chosen in fields
        if options
    ]


def _links(campaign: Campaign, study: CampaignStudy) -> dict[str, str]:
    """Where each finding and each picture leads on to."""
    here = [campaign.project.slug, campaign.pk]
    about = QueryDict(mutable=True)
    if study.choice.judge:
        about["judge"] = study.choice.judge
    judge = f"?{about.urlencode()}" if about else ""
    items = QueryDict(mutable=True)
    items.update({"criterion": study.choice.criterion, "judge": study.choice.judge, "sort": "judge_error"})
    if cell := study.chosen_cell:
        items["language"] = cell.row["language"]
    return {
        "people": reverse("numbers_agreement", args=here),
        "judges": reverse("judge_decisions", args=here) + judge,
        "generators": reverse("numbers_results", args=here) + judge,
        "certainty": reverse("numbers_planner", args=here) + judge,
        "bias": reverse("numbers_calibration", args=here) + judge,
        "worst": f"{reverse('numbers_items', args=here)}?{items.urlencode()}",
        "items": reverse("numbers_items", args=here),
        "explore": reverse("numbers_explore", args=here),
        "bias_csv": f"{reverse('numbers_cells_csv', args=here)}?{study.bias_question.query}",
        "heat_csv": f"{reverse('numbers_cells_csv', args=here)}?{AGREEMENT.query}",
        "dots_csv": f"{reverse('numbers_cells_csv', args=here)}?{study.leaderboard_question.query}",
    }
