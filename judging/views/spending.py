"""What a project's paid requests have cost, by day and person; the same of one judge as a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts import access
from annotation.writers.csv import csv_lines
from judging import daily_spending
from judging.asking import allowances
from judging.daily_spending import SPENDING_COLUMNS, DailySpending
from judging.views.judges import find_judge

MOST_ROWS = 400
"""Rows that a page shows; the file has all."""


@require_safe
@login_required
def spending_page(request: HttpRequest, project: str) -> HttpResponse:
    """What was booked for all requests of a project: judges, their tests and versions, and generated texts."""
    current_project = access.require(user=request.user, slug=project)
    rows = daily_spending.daily_spending(current_project)
    context = {
        "title": _("Spending"),
        "subtitle": _("What requests to models have cost, by day and by who started them. A day is a day of UTC."),
        "project": current_project,
        "allowed": allowances.allowed_providers(current_project),
        **shown_spending(rows),
    }
    return render(request, "judging/spending.html", context)


def shown_spending(rows: Sequence[DailySpending]) -> dict[str, Any]:
    """What `judging/_spending.html` takes."""
    return {
        "spending": rows[:MOST_ROWS],
        "hidden_rows": max(0, len(rows) - MOST_ROWS),
        "total": daily_spending.spending_total(rows),
        "by_person": daily_spending.totals_by_person(rows),
    }


@require_safe
@login_required
def spending_csv(request: HttpRequest, project: str) -> HttpResponse:
    """The same as a file, with every row."""
    current_project = access.require(user=request.user, slug=project)
    return _file(daily_spending.daily_spending(current_project), "spending.csv")


@require_safe
@login_required
def judge_spending_csv(request: HttpRequest, project: str, judge: int) -> HttpResponse:
    """What one judge has cost, as a file."""
    current_project, judges_of_project = find_judge(request, project)
    shown = get_object_or_404(judges_of_project, pk=judge)
    return _file(daily_spending.daily_spending(current_project, shown), f"judge-{shown.pk}-spending.csv")


def _file(rows: Sequence[DailySpending], name: str) -> HttpResponse:
    lines = csv_lines(SPENDING_COLUMNS, daily_spending.spending_lines(rows))
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)
