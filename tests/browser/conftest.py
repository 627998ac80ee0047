"""The cast before their screens: Chromium on the live server, signed in as somebody of the cast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from playwright.sync_api import BrowserContext, Page

from tests.cast import Cast

VisitAs = Callable[[str, str], Page]


@pytest.fixture
def visit_as(context: BrowserContext, live_server: Any, cast: Cast) -> VisitAs:
    """Opens an address of the server for the person of that name, in the first tab of the browser."""

    def opened(name: str, address: str) -> Page:
        cookie = cast.client(name).cookies[settings.SESSION_COOKIE_NAME].value
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}])
        page = context.pages[0] if context.pages else context.new_page()
        page.set_default_timeout(20_000)
        page.goto(f"{live_server.url}{address}")
        return page

    return opened
