"""The audit trail of a project."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from accounts import access, audit
from accounts.forms import (
    TrailForm,
)
from accounts.inputs import whole_number
from accounts.models import (
    AuditEntry,
    Role,
)


@require_safe
@login_required
def audit_page(request: HttpRequest, project: str) -> HttpResponse:
    """The newest entries of the project's audit trail that match the filters; `before` leads to older ones."""
    current_project = access.require(user=request.user, slug=project, roles=(Role.LEAD,))
    entries = AuditEntry.objects.visible_to(request.user).filter(project=current_project)
    form = TrailForm(request.GET, choices=audit.trail_choices(entries))
    chosen = form.cleaned_data if form.is_valid() else {}
    page = audit.trail_page(entries, before=whole_number(request.GET.get("before")), **chosen)
    kept = urlencode({name: value for name, value in request.GET.items() if name in form.fields and value})
    context = {"project": current_project, "form": form, "entries": page.lines, "older": page.older, "kept": kept}
    return render(request, "accounts/audit.html", context)
