"""The page of one judge: what it may be used for, how it asks, what came of it, and what that cost."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from analytics.study.judge_uses import judge_uses
from analytics.views.paired_judges import prompt_differences, setting_differences
from annotation.models import Campaign
from judging import daily_spending, error_tags, judges, runs, trials, unread_replies
from judging.asking import endpoints
from judging.models import Judge
from judging.views.judges import REPLY_FORMS, find_judge, listed_audits, prompt_preview
from judging.views.spending import shown_spending

MOST_RELATED = 20
"""Ancestors or versions of a judge that are listed."""


@require_safe
@login_required
def judge_page(request: HttpRequest, project: str, judge: int) -> HttpResponse:
    """Uses by campaign, prompt and versions, runs with what could not be read, errors, audits, and cost."""
    current_project, judges_of_project = find_judge(request, project)
    shown = get_object_or_404(judges_of_project.select_related("project", "created_by"), pk=judge)
    campaigns = Campaign.objects.visible_to(request.user).filter(project=current_project)
    refused = judges.refused_by_model(shown)
    listed = runs.list_runs(shown.runs.all())
    read = unread_replies.read_counts(shown, [row.run.pk for row in listed])
    preview = prompt_preview(request, current_project, shown)
    context = {
        "title": shown.name,
        "simulated": shown.simulated,
        "project": current_project,
        "judge": shown,
        "uses": judge_uses(shown, request.user),
        "pace": judges.pace(shown),
        "reply_form": REPLY_FORMS[endpoints.reply_form(shown.provider, refused)],
        "refused": refused,
        "has_failed": trials.failed_judges(judges_of_project).filter(pk=shown.pk).exists(),
        **_versions(shown, preview),
        "runs": [(row, read.get(row.run.pk, unread_replies.ReadCounts())) for row in listed],
        "unread": unread_replies.unread_groups(shown),
        "tags": error_tags.count_tags(shown),
        "audits": listed_audits(shown, listed, campaigns),
        **shown_spending(daily_spending.daily_spending(current_project, shown)),
        "chose_item": "dataset" in request.GET,
        **preview,
    }
    return render(request, "analytics/judge.html", context)


def _versions(judge: Judge, preview: dict[str, Any]) -> dict[str, Any]:
    """The judges that this one was made from, the nearest first, those made from it, and what differs from the nearest:
    in its settings, and in its prompt about the item of the preview."""
    related = {each.pk: each for each in Judge.objects.filter(project=judge.project_id).only("name", "parent")}
    ancestry, made_from = list[Judge](), judge.parent_id
    while made_from in related and len(ancestry) < MOST_RELATED:
        ancestry.append(related[made_from])
        made_from = related[made_from].parent_id
    made = sorted((each for each in related.values() if each.parent_id == judge.pk), key=lambda each: -each.pk)
    found: dict[str, Any] = {"ancestry": ancestry, "made": made[:MOST_RELATED], "more_made": len(made[MOST_RELATED:])}
    if not ancestry:
        return found
    previous = Judge.objects.get(pk=ancestry[0].pk)
    found |= {"other": previous, "differences": list(setting_differences(previous, judge))}
    item, version = preview.get("item"), preview.get("version")
    if item and version and previous.provider:
        differences = prompt_differences(previous, judge, item, version)
        found |= {"changes": differences.get("changes"), "refused_changes": differences.get("refusal")}
    return found
