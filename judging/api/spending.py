"""What a project's paid requests have cost, by day and person; for leads and researchers."""

from __future__ import annotations

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.inputs import whole_number
from judging import daily_spending
from judging.api.judges import judge_in_project
from judging.daily_spending import DailySpending


class DailySpendingSerializer(serializers.Serializer[DailySpending]):
    day = serializers.DateField(help_text="A day of UTC.")
    person = serializers.CharField(
        source="person_name", help_text="Who started them; empty for a command, or where nobody is known."
    )
    kind = serializers.ChoiceField(choices=list(daily_spending.request_kinds()))
    requests = serializers.IntegerField()
    requests_without_cost = serializers.IntegerField(source="unpriced")
    usd = serializers.DecimalField(
        source="cost", max_digits=20, decimal_places=8, allow_null=True, help_text="null where no price is known."
    )


class Spending(APIView):
    @extend_schema(
        parameters=[OpenApiParameter("judge", int, description="Only this judge: its runs, and its tests.")],
        responses=DailySpendingSerializer(many=True),
    )
    def get(self, request: Request, project: str) -> Response:
        """What was booked for the project's requests, by day, person and kind, the newest day first."""
        current_project, judges_of_project = judge_in_project(request.user, project)
        asked, judge = request.query_params.get("judge"), None
        if asked is not None:
            judge = get_object_or_404(judges_of_project, pk=whole_number(asked))
        return Response(DailySpendingSerializer(daily_spending.daily_spending(current_project, judge), many=True).data)
