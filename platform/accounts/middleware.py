"""What holds for every page: the reader's interface language, and how long somebody stays signed in."""

import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY, logout
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.cache import patch_vary_headers


class InterfaceLanguageMiddleware:
    """The signed-in person's `ui_language` first, then Accept-Language."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        language = _own_language(request) or translation.get_language_from_request(request)
        with translation.override(language):
            request.LANGUAGE_CODE = language
            response = self.get_response(request)
            response.headers.setdefault("Content-Language", language)
        patch_vary_headers(response, ("Accept-Language", "Cookie"))
        return response


def _own_language(request: HttpRequest) -> str:
    chosen = request.user.ui_language if request.user.is_authenticated else ""
    return chosen if translation.check_for_language(chosen or "") else ""


STARTED, SEEN = "signed_in_at", "seen_at"
SEEN_GRAIN = 300  # seconds; a session is written no oftener for being used


class SessionLimitsMiddleware:
    """Signs out who was idle for SESSION_IDLE_HOURS, or signed in for SESSION_HOURS."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        session, now = request.session, time.time()
        if SESSION_KEY in session:
            started, seen = session.get(STARTED), session.get(SEEN)
            if started is None or seen is None:
                start(request=request)
            elif now - started > settings.SESSION_HOURS * 3600 or now - seen > settings.SESSION_IDLE_HOURS * 3600:
                logout(request)
            elif now - seen > SEEN_GRAIN:
                session[SEEN] = now
        return self.get_response(request)


def start(*, request: HttpRequest, **signal: Any) -> None:
    """Both limits count from signing in."""
    request.session[STARTED] = request.session[SEEN] = time.time()
