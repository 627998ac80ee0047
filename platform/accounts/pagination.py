"""Lists go by cursor: stable under inserts, at any depth."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination as DrfCursorPagination
from rest_framework.request import Request

from accounts.parameters import whole_number


class CursorPagination(DrfCursorPagination):
    """`limit` rows to a page, a thousand at most; what is no number is refused rather than guessed."""

    ordering = "pk"
    page_size = 100
    page_size_query_param = "limit"
    max_page_size = 1000

    def decode_cursor(self, request: Request) -> Any:
        """The place to go on from. Every list goes by a number: a cursor that says another thing is none of ours."""
        cursor = super().decode_cursor(request)
        if cursor is not None and cursor.position is not None and whole_number(str(cursor.position)) is None:
            sentence = _("This is not a valid cursor. Use the cursors from the replies of this list.")
            raise ValidationError({self.cursor_query_param: [sentence]})
        return cursor

    def get_page_size(self, request: Request) -> int | None:
        """The asked for size, cut to the largest."""
        asked = request.query_params.get(self.page_size_query_param)
        if asked is not None and not whole_number(asked):
            raise ValidationError({self.page_size_query_param: [_("Give a whole number of 1 or more.")]})
        size: int | None = super().get_page_size(request)
        return size
