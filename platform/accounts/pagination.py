"""Lists go by cursor: stable under inserts, at any depth."""

from rest_framework.pagination import CursorPagination as DrfCursorPagination


class CursorPagination(DrfCursorPagination):
    ordering = "pk"
    page_size = 100
    page_size_query_param = "limit"
    max_page_size = 1000
