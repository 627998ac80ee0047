"""Guidelines, reference items, and the state of annotators in training, exams and controls. For leads and researchers;
only leads decide about people."""

from __future__ import annotations

from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.inputs import is_storable
from accounts.models import Role
from accounts.refusals import Refused
from annotation.api.campaigns import LARGEST_ID, SEEDS, campaign_in_project
from annotation.models import (
    Annotator,
    Assignment,
    ControlPause,
    Criterion,
    Duty,
    Guideline,
    QualificationRule,
    ReferenceItem,
    ReferenceScore,
)
from annotation.qualification import controls, guidelines, references, standings
from annotation.qualification.matching import ReferenceComparison
from annotation.qualification.references import ReferenceRow, rule_of

LEAD = (Role.LEAD,)
SHARE = {"min_value": 0.0, "max_value": 1.0}
RATE = {"min_value": 0.0, "max_value": 0.5}
COUNT = {"max_value": 1000}


class QualificationRuleSerializer(serializers.Serializer[QualificationRule]):
    """What a campaign asks of its annotators."""

    training = serializers.BooleanField(default=True)
    exam_items = serializers.IntegerField(default=0, min_value=0, **COUNT, help_text="0: there is no exam.")
    matching = serializers.ChoiceField(choices=QualificationRule.Matching.choices, default="exact")
    tolerance = serializers.FloatField(default=1.0, min_value=0.0, max_value=1e6, help_text="In steps of the scale.")
    threshold = serializers.FloatField(default=0.7, **SHARE)
    attempts = serializers.IntegerField(default=2, min_value=1, **COUNT)
    wait_hours = serializers.IntegerField(default=24, min_value=0, max_value=100_000)
    valid_days = serializers.IntegerField(default=None, allow_null=True, min_value=1, max_value=36_500)
    control_rate = serializers.FloatField(default=0.0, **RATE)
    repeat_rate = serializers.FloatField(default=0.0, **RATE)
    control_threshold = serializers.FloatField(default=0.7, **SHARE)
    fewest_controls = serializers.IntegerField(default=5, min_value=1, **COUNT)
    seed = serializers.IntegerField(required=False, **SEEDS, help_text="Without one a random seed is drawn and kept.")


class WorkedExampleSerializer(serializers.Serializer[Any]):
    text = serializers.CharField(max_length=20_000)
    criterion = serializers.CharField(max_length=60, allow_blank=True, default="")
    score = serializers.FloatField(allow_null=True, default=None)
    explanation = serializers.CharField(max_length=20_000, allow_blank=True, default="")


class GuidelineSerializer(serializers.Serializer[Guideline]):
    """One version in one language; posting publishes the next one."""

    id = serializers.IntegerField(source="pk", read_only=True)
    language = serializers.CharField(max_length=35)
    number = serializers.IntegerField(read_only=True)
    text = serializers.CharField(max_length=guidelines.LONGEST_TEXT, help_text="Markdown; HTML is shown as text.")
    examples = WorkedExampleSerializer(many=True, default=list, max_length=guidelines.MOST_EXAMPLES)  # type: ignore[call-arg]
    acknowledged = serializers.IntegerField(read_only=True, help_text="Annotators who confirmed this version.")
    created_at = serializers.DateTimeField(read_only=True)


class ReferenceScoreSerializer(serializers.Serializer[ReferenceScore]):
    criterion = serializers.CharField(source="criterion.key", max_length=60)
    score = serializers.FloatField(allow_null=True, help_text="null: not applicable.")
    lowest = serializers.FloatField(allow_null=True, default=None)
    highest = serializers.FloatField(allow_null=True, default=None)
    explanation = serializers.CharField(max_length=references.LONGEST_EXPLANATION, allow_blank=True, default="")


class ReferenceItemSerializer(serializers.Serializer[ReferenceItem]):
    id = serializers.IntegerField(source="pk", read_only=True)
    item = serializers.CharField(source="item.external_id", max_length=200)
    purpose = serializers.ChoiceField(choices=ReferenceItem.Purpose.choices)
    scores = ReferenceScoreSerializer(many=True, max_length=500)  # type: ignore[call-arg]


class ReferencesSerializer(serializers.Serializer[Any]):
    references = ReferenceItemSerializer(many=True, max_length=5000)  # type: ignore[call-arg]


class MarkedSerializer(serializers.Serializer[Any]):
    marked = serializers.IntegerField()


class StandingSerializer(serializers.Serializer[standings.AnnotatorStanding]):
    """An annotator in a duty. `match`: the share of criteria that match the reference, averaged over control items,
    with a Wilson interval."""

    duty = serializers.IntegerField(source="duty.pk")
    annotator = serializers.IntegerField(source="annotator.pk")
    pseudonym = serializers.CharField(source="annotator.pseudonym")
    acknowledged = serializers.BooleanField(allow_null=True)
    training_done = serializers.IntegerField(source="training.done", default=None, allow_null=True)
    training_total = serializers.IntegerField(source="training.total", default=None, allow_null=True)
    exam = serializers.CharField(source="exam.state", default=None, allow_null=True)
    controls = serializers.IntegerField(source="controls.controls")
    match = serializers.FloatField(source="controls.matched", allow_null=True)
    match_low = serializers.FloatField(source="controls.lower", allow_null=True)
    match_high = serializers.FloatField(source="controls.upper", allow_null=True)
    repeats_same = serializers.SerializerMethodField()
    repeats = serializers.SerializerMethodField()
    paused = serializers.SerializerMethodField()
    contested = serializers.IntegerField()

    def get_repeats_same(self, standing: standings.AnnotatorStanding) -> int:
        return standing.repeats[0]

    def get_repeats(self, standing: standings.AnnotatorStanding) -> int:
        return standing.repeats[1]

    def get_paused(self, standing: standings.AnnotatorStanding) -> bool:
        return standing.pause is not None


class MismatchSerializer(serializers.Serializer[ReferenceComparison]):
    assignment = serializers.IntegerField(source="assignment.pk")
    purpose = serializers.CharField(source="assignment.duty.purpose")
    item = serializers.CharField(source="assignment.item.external_id")
    criterion = serializers.CharField(source="criterion.key")
    score = serializers.FloatField(source="given.score", allow_null=True)
    status = serializers.CharField(source="given.status")
    rationale = serializers.CharField(source="given.rationale")
    reference = serializers.FloatField(source="reference.score", allow_null=True)
    decision = serializers.CharField(source="review.state", default=None, allow_null=True)
    objection = serializers.CharField(source="review.objection", default="")


class MismatchDecisionSerializer(serializers.Serializer[Any]):
    assignment = serializers.IntegerField(min_value=1, max_value=LARGEST_ID)
    criterion = serializers.CharField(max_length=60)
    accept = serializers.BooleanField()
    note = serializers.CharField(max_length=2000, allow_blank=True, default="")


class ReinstatementSerializer(serializers.Serializer[Any]):
    note = serializers.CharField(max_length=2000, allow_blank=True, default="")


class Qualification(APIView):
    @extend_schema(responses=QualificationRuleSerializer)
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """What the campaign asks of its annotators; 404 where nothing was set."""
        target = campaign_in_project(request.user, project, campaign)
        return Response(QualificationRuleSerializer(get_object_or_404(QualificationRule, campaign=target)).data)

    @extend_schema(request=QualificationRuleSerializer, responses=QualificationRuleSerializer)
    def put(self, request: Request, project: str, campaign: int) -> Response:
        """Set what the campaign asks of its annotators; fields that are left out get their defaults."""
        target = campaign_in_project(request.user, project, campaign)
        serializer = QualificationRuleSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        rule = references.set_rule(campaign=target, actor=request.user, **serializer.validated_data)
        return Response(QualificationRuleSerializer(rule).data)


class Guidelines(APIView):
    @extend_schema(responses=GuidelineSerializer(many=True))
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """Every version of the guidelines, by language, newest first."""
        target = campaign_in_project(request.user, project, campaign)
        return Response(GuidelineSerializer(guidelines.versions(target), many=True).data)

    @extend_schema(request=GuidelineSerializer, responses={201: GuidelineSerializer})
    def post(self, request: Request, project: str, campaign: int) -> Response:
        """Publish the next version in a language; annotators confirm it before their next item."""
        target = campaign_in_project(request.user, project, campaign)
        serializer = GuidelineSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        _require_storable(serializer.validated_data)
        made = guidelines.publish_guideline(campaign=target, actor=request.user, **serializer.validated_data)
        shown = GuidelineSerializer(guidelines.versions(target).get(pk=made.pk)).data
        return Response(shown, status=status.HTTP_201_CREATED)


def _require_storable(value: Any) -> None:
    if not is_storable(value):
        raise Refused(_("There is a character that can't be stored."), code="invalid")


class References(APIView):
    @extend_schema(responses=ReferenceItemSerializer(many=True))
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """The reference items of a campaign with their scores."""
        target = campaign_in_project(request.user, project, campaign)
        found = ReferenceItem.objects.filter(campaign=target).select_related("item")
        return Response(ReferenceItemSerializer(found.prefetch_related("scores__criterion"), many=True).data)

    @extend_schema(request=ReferencesSerializer, responses=MarkedSerializer)
    def post(self, request: Request, project: str, campaign: int) -> Response:
        """Mark items, all or none; the scores of an item replace those that it had."""
        target = campaign_in_project(request.user, project, campaign)
        serializer = ReferencesSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        _require_storable(serializer.validated_data)
        rows = [
            _row(number, marked, score)
            for number, marked in enumerate(serializer.validated_data["references"], 1)
            for score in marked["scores"]
        ]
        return Response(
            MarkedSerializer({"marked": references.mark(campaign=target, rows=rows, actor=request.user)}).data
        )


def _row(number: int, marked: dict[str, Any], score: dict[str, Any]) -> ReferenceRow:
    texts = {
        part: "" if score.get(part) is None else repr(float(score[part])) for part in ("score", "lowest", "highest")
    }
    return ReferenceRow(
        item=marked["item"]["external_id"],
        purpose=marked["purpose"],
        criterion=score["criterion"]["key"],
        explanation=score["explanation"],
        place=_("Reference %(number)d") % {"number": number},
        **{**texts, "score": texts["score"] or "NA"},
    )


class ReferenceDetail(APIView):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, campaign: int, reference: int) -> Response:
        """Remove the mark of a reference item that nobody has answered."""
        target = campaign_in_project(request.user, project, campaign)
        found = ReferenceItem.objects.filter(campaign=target).select_related("campaign__project")
        references.remove_reference(reference=get_object_or_404(found, pk=reference), actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Standings(APIView):
    @extend_schema(responses=StandingSerializer(many=True))
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """The state of every annotator in every duty, by pseudonym: guidelines, training, exam, controls and
        repeats."""
        target = campaign_in_project(request.user, project, campaign)
        return Response(StandingSerializer(standings.standings(target), many=True).data)


class Mismatches(APIView):
    roles: ClassVar = {"POST": LEAD}

    @extend_schema(responses=MismatchSerializer(many=True))
    def get(self, request: Request, project: str, campaign: int, duty: int, annotator: int) -> Response:
        """The annotator's answers to exams and controls that differ from their references, newest first."""
        own_duty, person = _person(request, project, campaign, duty, annotator)
        return Response(MismatchSerializer(standings.mismatches(duty=own_duty, annotator=person), many=True).data)

    @extend_schema(request=MismatchDecisionSerializer, responses=MismatchSerializer(many=True))
    def post(self, request: Request, project: str, campaign: int, duty: int, annotator: int) -> Response:
        """Accept a score that differs from its reference, or not; leads only. Returns the mismatches."""
        access.require(user=request.user, slug=project, roles=LEAD)
        own_duty, person = _person(request, project, campaign, duty, annotator)
        serializer = MismatchDecisionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        _require_storable(serializer.validated_data)
        chosen = dict(serializer.validated_data)
        answers = Assignment.objects.filter(duty__stands_for=own_duty, annotator=person, state="submitted")
        criteria = Criterion.objects.filter(rubric_version=own_duty.campaign.rubric_version_id)
        standings.decide_mismatch(
            assignment=get_object_or_404(
                answers.select_related("duty__campaign__project"), pk=chosen.pop("assignment")
            ),
            criterion=get_object_or_404(criteria, key=chosen.pop("criterion")),
            actor=request.user,
            **chosen,
        )
        return Response(MismatchSerializer(standings.mismatches(duty=own_duty, annotator=person), many=True).data)


class Reinstatement(APIView):
    roles: ClassVar = {"POST": LEAD}

    @extend_schema(request=ReinstatementSerializer, responses=StandingSerializer)
    def post(self, request: Request, project: str, campaign: int, duty: int, annotator: int) -> Response:
        """Let a paused annotator work again; leads only."""
        access.require(user=request.user, slug=project, roles=LEAD)
        own_duty, person = _person(request, project, campaign, duty, annotator)
        serializer = ReinstatementSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        _require_storable(serializer.validated_data)
        paused = ControlPause.objects.filter(duty=own_duty, annotator=person, reinstated_at=None)
        pause = get_object_or_404(paused.select_related("duty__campaign__project"))
        controls.reinstate(pause=pause, actor=request.user, **serializer.validated_data)
        standing = standings.standing_in(own_duty, person, rule_of(own_duty.campaign_id))
        return Response(StandingSerializer(standing).data)


def _person(request: Request, project: str, campaign: int, duty: int, annotator: int) -> tuple[Duty, Annotator]:
    target = campaign_in_project(request.user, project, campaign)
    duties = Duty.objects.filter(campaign=target).select_related("panel", "campaign__project")
    people_here = Annotator.objects.filter(project=target.project_id).select_related("user")
    return get_object_or_404(duties, pk=duty), get_object_or_404(people_here, pk=annotator)
