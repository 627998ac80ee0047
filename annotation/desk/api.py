"""The API of the desk: an annotator's duties, the next item, and its submission. It shows no more than the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args
from uuid import UUID

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import Role, User
from annotation.desk import leasing, pairs, presentation, service
from annotation.desk.answers import LONGEST_RATIONALE, Answer
from annotation.models import Annotation, Assignment, Duty
from annotation.readers import MOST_SPANS, Span
from annotation.whole_item import WHOLE_ITEM_COLUMNS, WHOLE_ITEM_QUESTIONS, AskedAs, item_answers

ANYONE = tuple(Role)
NEEDED = ("item", "duty__campaign__dataset")


class DeskDutySerializer(serializers.Serializer[leasing.DeskDuty]):
    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    campaign = serializers.CharField()
    language = serializers.CharField()
    paused = serializers.BooleanField()
    due_at = serializers.DateTimeField(allow_null=True)
    done = serializers.IntegerField()
    total = serializers.IntegerField(help_text="The even share of the items; `done` may exceed it.")
    left = serializers.IntegerField(help_text="The items that may still be offered.")


class TurnSerializer(serializers.Serializer[presentation.TurnShown]):
    number = serializers.IntegerField()
    speaker = serializers.CharField(source="speaker_label")
    rated = serializers.BooleanField()
    text = serializers.CharField()


class FieldSerializer(serializers.Serializer[presentation.FieldShown]):
    name = serializers.CharField()
    text = serializers.CharField()


class ItemSerializer(serializers.Serializer[presentation.ItemShown]):
    title = serializers.CharField()
    language = serializers.CharField()
    brief = serializers.CharField()
    content_warning = serializers.CharField()
    turns = TurnSerializer(many=True)
    fields = FieldSerializer(many=True, source="all_fields")  # type: ignore[assignment]


class PointSerializer(serializers.Serializer[presentation.PointShown]):
    value = serializers.FloatField()
    label = serializers.CharField()  # type: ignore[assignment]
    text = serializers.CharField()
    reason = serializers.CharField()


class RangeSerializer(serializers.Serializer[presentation.RangeShown]):
    min = serializers.FloatField()
    max = serializers.FloatField()
    step = serializers.FloatField(allow_null=True)


class CriterionSerializer(serializers.Serializer[presentation.CriterionShown]):
    key = serializers.CharField()
    name = serializers.CharField()
    question = serializers.CharField()
    definition = serializers.CharField()
    allows_na = serializers.BooleanField()
    points = PointSerializer(many=True)
    numeric = RangeSerializer(allow_null=True)
    rationale = serializers.CharField(source="rationale.rule")
    rationale_words = serializers.IntegerField(source="rationale.min_words")
    evidence = serializers.CharField()
    critical = serializers.BooleanField()


class AssignmentSerializer(serializers.Serializer[Assignment]):
    key = serializers.UUIDField()
    expires_at = serializers.DateTimeField()
    item = ItemSerializer()
    criteria = CriterionSerializer(many=True)

    def get_fields(self) -> dict[str, Any]:
        """How each question about the whole item is asked goes with it."""
        return super().get_fields() | {
            name: serializers.ChoiceField(choices=get_args(AskedAs)) for name in WHOLE_ITEM_COLUMNS
        }


class SpanSerializer(serializers.Serializer[Span]):
    turn = serializers.IntegerField(min_value=0, allow_null=True, default=None, help_text="From 0; or the field.")
    field = serializers.CharField(allow_blank=True, default="", max_length=60)
    start = serializers.IntegerField(min_value=0, help_text="In Unicode code points of the text, from 0.")
    end = serializers.IntegerField(min_value=1, help_text="The first code point after the span.")
    quote = serializers.CharField(trim_whitespace=False, help_text="The text from start to end.")
    label = serializers.CharField(read_only=True, help_text="Of an imported error: its kind.")  # type: ignore[assignment]
    severity = serializers.CharField(read_only=True)


class AnswerSerializer(serializers.Serializer[Answer]):
    criterion = serializers.SlugField(max_length=60)
    score = serializers.FloatField(allow_null=True, default=None)
    status = serializers.ChoiceField(choices=["scored", "na", "stopped"], default="scored")
    rationale = serializers.CharField(allow_blank=True, default="", max_length=LONGEST_RATIONALE)
    evidence = SpanSerializer(many=True, default=list, max_length=MOST_SPANS)  # type: ignore[call-arg]


class SubmissionSerializer(serializers.Serializer[Annotation]):
    answers = AnswerSerializer(many=True, max_length=500)  # type: ignore[call-arg]
    seconds = serializers.FloatField(default=0.0)

    def get_fields(self) -> dict[str, Any]:
        """The answers about the whole item go with it."""
        about = {
            question.name: serializers.IntegerField(
                min_value=question.lowest, max_value=question.highest, allow_null=True, default=None,
                help_text=f"{question.title}, if the rubric asks for it.",
            )
            for question in WHOLE_ITEM_QUESTIONS
        }  # fmt: skip
        return super().get_fields() | about


class AnnotationSerializer(serializers.Serializer[Annotation]):
    key = serializers.UUIDField()
    revision = serializers.IntegerField()
    submitted_at = serializers.DateTimeField()


class DeskDuties(APIView):
    roles = ANYONE

    @extend_schema(responses=DeskDutySerializer(many=True))
    def get(self, request: Request, project: str) -> Response:
        """The user's own duties in this project."""
        current_project = access.require(user=request.user, slug=project, roles=ANYONE)
        mine = [duty for duty in leasing.duties(request.user) if duty.project_slug == current_project.slug]
        return Response(DeskDutySerializer(mine, many=True).data)


class Take(APIView):
    roles = ANYONE

    @extend_schema(request=None, responses={200: AssignmentSerializer, 204: None})
    def post(self, request: Request, project: str, duty: int) -> Response:
        """The item that the user has leased, else the next free item; 204 if no item is left."""
        own_duty, annotator = _duty_and_annotator(request.user, project, duty)
        taken = leasing.take(duty=own_duty, annotator=annotator)
        if taken is None:
            return Response(status=status.HTTP_204_NO_CONTENT)
        whole = service.on_desk(user=request.user, key=taken.key, related=NEEDED)
        return Response(AssignmentSerializer(_shown(whole)).data)


class Submit(APIView):
    roles = ANYONE

    @extend_schema(request=SubmissionSerializer, responses=AnnotationSerializer)
    def post(self, request: Request, project: str, key: UUID) -> Response:
        """Submit an item. The same key and answers again return the stored annotation, even if it was changed since.

        Other answers under the key of a submitted item: 409 `submitted_already`, with `stored` and `sent`.
        """
        current_project = access.require(user=request.user, slug=project, roles=ANYONE)
        assignment = _on_desk(request.user, key, current_project.pk)
        posted = SubmissionSerializer(data=request.data)
        posted.is_valid(raise_exception=True)
        answers = {
            answer.pop("criterion"): Answer(
                **{**answer, "evidence": tuple(dict.fromkeys(Span(**span) for span in answer["evidence"]))}
            )
            for answer in posted.validated_data["answers"]
        }
        try:
            about, seconds = item_answers(posted.validated_data), posted.validated_data["seconds"]
            annotation = service.submit(
                assignment=assignment, key=key, answers=answers, seconds=seconds, about_item=about
            )
        except service.SubmittedAlready as refused:
            refused.more = {
                "stored": _listed(service.answers_of(refused.stored)),
                "sent": _listed(refused.sent),
            }
            raise
        return Response(AnnotationSerializer(annotation).data)


def _listed(answers: Mapping[str, Answer]) -> list[dict[str, Any]]:
    return [
        {
            "criterion": key,
            "score": answer.score,
            "status": answer.status,
            "rationale": answer.rationale,
            "evidence": [span.as_dict() for span in answer.evidence],
        }
        for key, answer in answers.items()
    ]


def _duty_and_annotator(user: User, slug: str, duty: int) -> tuple[Duty, Any]:
    project = access.require(user=user, slug=slug, roles=ANYONE)
    try:
        own_duty, annotator = leasing.duty_and_annotator(user=user, duty=duty)
    except Duty.DoesNotExist:
        raise Http404("You have no such duty.") from None
    if own_duty.campaign.project_id != project.pk:
        raise Http404("You have no such duty.")
    return own_duty, annotator


def _on_desk(user: User, key: UUID, project: int) -> Assignment:
    try:
        assignment = service.on_desk(user=user, key=key)
    except Assignment.DoesNotExist:
        raise Http404("Nothing of yours has this key.") from None
    if assignment.duty.campaign.project_id != project:
        raise Http404("Nothing of yours has this key.")
    return assignment


def _shown(assignment: Assignment) -> dict[str, Any]:
    criteria = service.criteria_on_desk(assignment)
    language = presentation.text_language(criteria, assignment.item.language)
    swapped = pairs.swapped_for(assignment, criteria)
    return {
        "key": assignment.key,
        "expires_at": assignment.leased_until,
        "item": presentation.show_item(assignment.item, criteria, assignment.duty.campaign.dataset.layout, swapped),
        "criteria": presentation.show_criteria(criteria, language, {}, swapped),
        **service.asked_of_item(assignment),
    }
