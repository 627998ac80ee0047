"""What is answered where an address leads nowhere, and when the server fails: a page for people, our error shape for
programs.
"""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.utils.translation import gettext as _
from django.views import defaults

from annotation.imports.uploads import FULL

NO_SPACE = 507  # Insufficient Storage
SQLITE_FULL, POSTGRESQL_FULL = "SQLITE_FULL", "53100"
RETRY_AFTER = 60  # seconds


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404, in the form the caller reads."""
    if request.path.startswith("/api/"):
        return JsonResponse({"code": "not_found", "detail": _("There is nothing here."), "fields": {}}, status=404)
    return defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """500, or 507 with a sentence about it when the disk of the server or of its database is full."""
    if not is_disk_full(sys.exc_info()[1]):
        return defaults.server_error(request)
    if request.path.startswith("/api/") or "application/json" in request.headers.get("Accept", ""):
        detail = _("The server's disk is full, so nothing can be stored now. Keep your input and try again later.")
        response: HttpResponse = JsonResponse({"code": "disk_full", "detail": detail, "fields": {}}, status=NO_SPACE)
    else:
        response = HttpResponse(loader.get_template("507.html").render(), status=NO_SPACE)
    response.headers["Retry-After"] = str(RETRY_AFTER)
    return response


def is_disk_full(error: BaseException | None) -> bool:
    """Whether an exception, or one that it came from, says that a disk had no room."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        if getattr(error, "sqlite_errorname", "") == SQLITE_FULL or getattr(error, "sqlstate", "") == POSTGRESQL_FULL:
            return True
        error = error.__cause__ or error.__context__
    return False
