"""How often one client may ask, counted per window of time by an atomic increment."""

from __future__ import annotations

from typing import Any

from django.core.cache import cache
from rest_framework import throttling

from accounts import addresses


class Throttle(throttling.SimpleRateThrottle):
    """DRF's rates and scopes. Requests that come at once are each counted; a client is an address (IPv6: a network)."""

    duration: int
    num_requests: int
    ends = 0.0

    def allow_request(self, request: Any, view: Any) -> bool:
        """Count the request, and say whether it is one of those allowed in this window."""
        key = self.get_cache_key(request, view)
        if key is None:
            return True
        window = int(self.timer() // self.duration)
        self.ends = float((window + 1) * self.duration)
        name = f"{key}:{window}"
        cache.add(name, 0, self.duration + 1)
        try:
            count = cache.incr(name)
        except ValueError:  # it expired between the two: the window is over
            return True
        return bool(count <= self.num_requests)

    def wait(self) -> float:
        """Seconds until the window ends."""
        return max(1.0, self.ends - self.timer())

    def get_ident(self, request: Any) -> str:
        """The client."""
        return addresses.group(str(request.META.get("REMOTE_ADDR", "")))


class AnonymousThrottle(Throttle, throttling.AnonRateThrottle):
    """Requests of one client that nobody is signed in for."""


class UserThrottle(Throttle, throttling.UserRateThrottle):
    """Requests of one person."""


class UnauthenticatedThrottle(Throttle):
    """Requests of one client that were refused for want of a good token or session. Good ones are not counted."""

    scope = "anon"

    def get_cache_key(self, request: Any, view: Any) -> str:
        """One count for each client."""
        return f"unauthenticated:{self.get_ident(request)}"
