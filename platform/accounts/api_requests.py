"""Requests to the API: authentication, permissions of tokens and roles, throttles, JSON bodies, pagination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

from django.core.cache import cache
from django.utils.translation import gettext as _
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import throttling
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.authentication import SessionAuthentication as DrfSessionAuthentication
from rest_framework.exceptions import AuthenticationFailed, ParseError, ValidationError
from rest_framework.pagination import CursorPagination as DrfCursorPagination
from rest_framework.parsers import JSONParser
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from accounts import access, addresses, tokens
from accounts.inputs import whole_number
from accounts.models import SIGHTED, Scope, Token, User

if TYPE_CHECKING:
    from rest_framework.views import APIView


# --- authentication --------------------------------------------------------------------------------------------------
class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer pb_...`"""

    keyword = "bearer"

    def authenticate(self, request: Request) -> tuple[User, Token] | None:
        parts = get_authorization_header(request).decode("latin-1").split()
        if not parts or parts[0].lower() != self.keyword:
            return None
        token = tokens.find_token(parts[1]) if len(parts) == 2 else None
        if token is None or not token.user.is_active:
            raise AuthenticationFailed("This token is unknown, revoked or has expired.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class SessionAuthentication(DrfSessionAuthentication):
    """Session authentication for pages; without a session the response is 401, as without a token."""

    def authenticate_header(self, request: Request) -> str:
        return "Session"


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.api_requests.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "accounts.api_requests.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}


# --- permissions -----------------------------------------------------------------------------------------------------
class HasScope(BasePermission):
    """A read token only reads. A token for one project can't access other projects, and can't create projects."""

    message = "This token's scope does not allow that."

    def has_permission(self, request: Request, view: APIView) -> bool:
        token = request.auth
        if not isinstance(token, Token):
            return True
        reads, slug = request.method in SAFE_METHODS, view.kwargs.get("project")
        if token.project is not None and (slug != token.project.slug if slug else not reads):
            return False
        return reads or token.scope == Scope.WRITE


class InProject(BasePermission):
    """Below a project, allows only leads and researchers unless the view sets `roles`: for all methods, or by method
    (``{"POST": (Role.LEAD,)}``, SIGHTED for other methods). Checked before the body is read.

    An archived project is read-only, except in views with `works_archived`.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        slug = view.kwargs.get("project")
        if slug is None:
            return True
        roles = getattr(view, "roles", SIGHTED)
        if isinstance(roles, dict):
            roles = roles.get(request.method, SIGHTED)
        # IsAuthenticated is checked first, so this is a user.
        project = access.require(user=request.user, slug=slug, roles=roles)  # type: ignore[arg-type]
        if request.method not in SAFE_METHODS and not getattr(view, "works_archived", False):
            access.refuse_archived(project)
        return True


# --- throttles -------------------------------------------------------------------------------------------------------
class Throttle(throttling.SimpleRateThrottle):
    """DRF's rates and scopes, with an atomic counter per time window. A client is an IPv4 address or IPv6 network."""

    duration: int
    num_requests: int
    ends = 0.0

    def allow_request(self, request: Any, view: Any) -> bool:
        """Count the request; True if the limit of this window is not exceeded."""
        key = self.get_cache_key(request, view)
        if key is None:
            return True
        window = int(self.timer() // self.duration)
        self.ends = float((window + 1) * self.duration)
        name = f"{key}:{window}"
        cache.add(name, 0, self.duration + 1)
        try:
            count = cache.incr(name)
        except ValueError:  # it expired between the two calls: the window has ended
            return True
        return bool(count <= self.num_requests)

    def wait(self) -> float:
        """Seconds until the window ends."""
        return max(1.0, self.ends - self.timer())

    def get_ident(self, request: Any) -> str:
        """The client of the request."""
        return addresses.group(str(request.META.get("REMOTE_ADDR", "")))


class AnonymousThrottle(Throttle, throttling.AnonRateThrottle):
    """Requests of one client without a signed-in user."""


class UserThrottle(Throttle, throttling.UserRateThrottle):
    """Requests of one user."""


class UnauthenticatedThrottle(Throttle):
    """Requests of one client that were refused because of an invalid token or session. Others are not counted."""

    scope = "anon"

    def get_cache_key(self, request: Any, view: Any) -> str:
        """One counter per client."""
        return f"unauthenticated:{self.get_ident(request)}"


# --- bodies ----------------------------------------------------------------------------------------------------------
DEEPEST = 64  # levels of nested objects and lists


class ShallowJSONParser(JSONParser):
    """DRF's JSON parser with a limit on nesting. DRF's own fails with a server error if JSON nests deeper than Python's
    stack."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The parsed body. Raises ``ParseError`` if it is not JSON or nested too deeply."""
        sentence = _("This JSON nests more than %(most)d objects or lists inside one another.") % {"most": DEEPEST}
        try:
            parsed: dict[str, Any] = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise ParseError(sentence) from None
        if is_deeper(parsed, DEEPEST):
            raise ParseError(sentence)
        return parsed


def is_deeper(value: Any, most: int) -> bool:
    """Whether a parsed value has more than ``most`` levels of nested objects or lists."""
    level = [value]
    for _depth in range(most + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


# --- pages -----------------------------------------------------------------------------------------------------------
class CursorPagination(DrfCursorPagination):
    """Pages of `limit` rows, at most 1,000. A `limit` that is not a number is refused."""

    ordering = "pk"
    page_size = 100
    page_size_query_param = "limit"
    max_page_size = 1000

    def decode_cursor(self, request: Request) -> Any:
        """The position at which the page starts. All lists are sorted by a number, so a cursor with another position is
        refused."""
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None and whole_number(str(cursor.position)) is None:
            sentence = _("This is not a valid cursor. Use the cursors from the replies of this list.")
            raise ValidationError({self.cursor_query_param: [sentence]})
        return cursor

    def get_page_size(self, request: Request) -> int | None:
        """The requested size, at most the largest allowed."""
        limit = request.query_params.get(self.page_size_query_param)
        if limit is not None and not whole_number(limit):
            raise ValidationError({self.page_size_query_param: [_("Give a whole number of 1 or more.")]})
        size: int | None = super().get_page_size(request)
        return size
