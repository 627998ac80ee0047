"""Pages speak the reader's own interface language, and otherwise the browser's."""

from collections.abc import Callable

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
