"""The product's server with one view beside it that does no more than it must: `/bare/` with session and login only.

Both answer from the same processes, threads and database connections, so that only the code differs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "panelbench.settings")

import django

django.setup()

from django.conf import settings  # noqa: E402 it reads the environment above
from django.core.handlers.wsgi import WSGIHandler  # noqa: E402

BARE = "/bare/"
BARE_MIDDLEWARE = (
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
)


def _handler(middleware: Iterable[str]) -> WSGIHandler:
    """A WSGIHandler reads the setting once, when it is made."""
    whole, settings.MIDDLEWARE = settings.MIDDLEWARE, list(middleware)
    made = WSGIHandler()
    settings.MIDDLEWARE = whole
    return made


settings.ROOT_URLCONF = "bench.urls"
_bare, _product = _handler(BARE_MIDDLEWARE), _handler(settings.MIDDLEWARE)


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    chosen = _bare if environ["PATH_INFO"].startswith(BARE) else _product
    return chosen(environ, start_response)
