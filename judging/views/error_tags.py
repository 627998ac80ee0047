"""Error analysis on pages: tags of a judge's verdicts counted and listed, and given to one verdict."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts import access, refusals
from accounts.inputs import without_nul
from accounts.models import Project
from annotation.models import Campaign, Item
from annotation.writers.csv import csv_lines
from judging import error_tags
from judging.models import ErrorTag, Verdict
from judging.views.judges import find_judge

TAGS_PER_PAGE = 50
TAG_COLUMNS = ("tag", "judge", "run", "item", "language", "criterion", "repeat", "score", "by", "at")


@require_safe
@login_required
def judge_errors(request: HttpRequest, project: str, judge: int) -> HttpResponse:
    """Why a judge's verdicts are wrong: its tags with their counts, and the tagged verdicts."""
    current_project, judges_of_project = find_judge(request, project)
    shown = get_object_or_404(judges_of_project, pk=judge)
    tags = error_tags.tags_of_judge(shown)
    if chosen := without_nul(request.GET.get("tag", "")):
        tags = tags.filter(text=chosen)
    context = {
        "title": _("Errors by reason"),
        "project": current_project,
        "judge": shown,
        "counts": error_tags.count_tags(shown),
        "chosen": chosen,
        "page_obj": Paginator(tags, TAGS_PER_PAGE).get_page(request.GET.get("page")),
    }
    return render(request, "judging/judge_errors.html", context)


@require_safe
@login_required
def judge_errors_csv(request: HttpRequest, project: str, judge: int) -> HttpResponse:
    """The tags of a judge's verdicts, one a row, the newest first."""
    _current, judges_of_project = find_judge(request, project)
    shown = get_object_or_404(judges_of_project, pk=judge)
    rows = (
        (
            tag.text,
            shown.name,
            tag.verdict.run_id,
            tag.verdict.item.external_id,
            tag.verdict.item.language,
            tag.verdict.criterion.key,
            tag.verdict.repeat,
            tag.verdict.score,
            tag.created_by.name if tag.created_by else None,
            tag.created_at.isoformat(),
        )
        for tag in error_tags.tags_of_judge(shown)
    )
    headers = {"Content-Disposition": f'attachment; filename="judge-{shown.pk}-errors.csv"'}
    return HttpResponse(csv_lines(TAG_COLUMNS, rows), content_type="text/csv; charset=utf-8", headers=headers)


@require_POST
@login_required
def add_error_tag(request: HttpRequest, project: str, verdict: int) -> HttpResponse:
    """Tag a verdict, and go back to its item."""
    current_project = access.require(user=request.user, slug=project)
    verdicts = Verdict.objects.filter(run__project=current_project).select_related("run__project", "item")
    tagged = get_object_or_404(verdicts, pk=verdict)
    with refusals.refusals_as_messages(request):
        error_tags.tag_verdict(verdict=tagged, text=without_nul(request.POST.get("text", "")), actor=request.user)
    return redirect(_address_of(request, current_project, tagged))


@require_POST
@login_required
def remove_error_tag(request: HttpRequest, project: str, tag: int) -> HttpResponse:
    """Take a tag from its verdict, and go back to its item."""
    current_project = access.require(user=request.user, slug=project)
    tags = ErrorTag.objects.visible_to(request.user).filter(verdict__run__project=current_project)
    removed = get_object_or_404(tags.select_related("verdict__run__project", "verdict__item"), pk=tag)
    error_tags.remove_tag(tag=removed, actor=request.user)
    return redirect(_address_of(request, current_project, removed.verdict))


def _address_of(request: HttpRequest, project: Project, verdict: Verdict) -> str:
    """The verdict on the page of its item in the campaign that the form names, else the errors of its judge."""
    chosen = request.POST.get("campaign", "")
    campaigns = Campaign.objects.visible_to(request.user).filter(project=project).select_related("dataset")
    campaign = campaigns.filter(pk=chosen).first() if chosen.isdecimal() and len(chosen) < 18 else None
    if campaign and Item.objects.of(campaign.dataset).filter(pk=verdict.item_id).exists():
        return f"{reverse('numbers_item', args=[project.slug, int(chosen), verdict.item_id])}#verdict-{verdict.pk}"
    return reverse("judge_errors", args=[project.slug, verdict.run.judge_id])
