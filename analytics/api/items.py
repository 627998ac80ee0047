"""API of the items behind a campaign's numbers: their list, all scores of one item, and adjudication.

Adjudication has a queue, one queued item with raters' names hidden, a way to decide on it, and the decisions of
meetings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import generics, serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from accounts.api_requests import CursorPagination
from accounts.inputs import whole_number
from analytics import disagreements, item_choices, items
from analytics.disagreements import QueuedItem
from analytics.item_choices import ItemChoice
from analytics.items import CriterionScores, GivenVerdict, ItemScores
from analytics.questions.parameters import BLIND_ONLY
from analytics.ratings.exclusions import EXCLUSIONS
from analytics.views.items import RatingShown, shown_campaign
from annotation import adjudication
from annotation.adjudication import Adjudicated, CriterionDecision, SeenRating
from annotation.api.content import DatasetItemSerializer
from annotation.desk.api import SpanSerializer
from annotation.models import Adjudication, Campaign, Item, MeetingDecision, Rating
from annotation.whole_item import WHOLE_ITEM_COLUMNS
from judging.versions.seen_labels import record_seen_labels

TEXTS = {"type": "array", "items": {"type": "string"}}
CHOICES = [
    OpenApiParameter("criterion", str, description="A key of the rubric; by default the first criterion with scores."),
    OpenApiParameter("language", str, description="A language tag, exactly."),
    OpenApiParameter("generator", str),
    OpenApiParameter("judge", str, description="A judge by name; by default the first."),
    OpenApiParameter("rater", TEXTS, description="Pseudonyms of the annotators that count, all of them by default."),
    OpenApiParameter("panel", TEXTS, description="Names of the panels that count, all of them by default."),
    OpenApiParameter("blind", {"type": "string", "enum": [BLIND_ONLY]}),
    OpenApiParameter(
        "where", TEXTS, description=f"COLUMN=VALUE, as in a question; columns: {', '.join(item_choices.CUT)}."
    ),
    OpenApiParameter("scored", float, description="Only items that a rater gave this score."),
    OpenApiParameter("settled", float, description="Only items with this reference."),
    OpenApiParameter(
        "judged", float, description="Only items that the judge gave this point or a score nearest to it."
    ),
    OpenApiParameter(
        "agreement",
        {"type": "string", "enum": list(item_choices.CLASSES)},
        description="Only items of this class of agreement: all scores equal, some, no two.",
    ),
    OpenApiParameter("scores", int, description="Only items with so many scores or more."),
    OpenApiParameter(
        "compared",
        {"type": "string", "enum": [item_choices.COMPARED]},
        description="Only items with a reference and a score of the judge.",
    ),
    OpenApiParameter("by", TEXTS, description="Only items that all these annotators scored."),
    OpenApiParameter("without", TEXTS, description="Pseudonyms of annotators whose ratings do not count."),
    OpenApiParameter("min_seconds", float, description="Ratings of items that took less time do not count."),
    OpenApiParameter(
        "exclude",
        {"type": "array", "items": {"type": "string", "enum": list(EXCLUSIONS)}},
        description="What a figure leaves out beside; the list has it all the same.",
    ),
    OpenApiParameter("q", str, description="A text that turns, fields, title or id hold."),
    OpenApiParameter("sort", {"type": "string", "enum": list(item_choices.SORTS)}),
    OpenApiParameter(
        "reference",
        {"type": "string", "enum": list(item_choices.ASKED_RULES)},
        description="`each` and `dawid_skene` settle no item by itself: the default rule is shown instead.",
    ),
]
NUMBER = {"allow_null": True, "read_only": True}
QUEUE_CHOICES = [
    OpenApiParameter("order", {"type": "string", "enum": list(disagreements.ORDERS)}),
    OpenApiParameter(
        "criterion", str, description="A key of the rubric; without it all, unless the campaign is large."
    ),
    OpenApiParameter("language", str, description="A language tag, exactly."),
    OpenApiParameter("judge", str, description="For the order `judge`: whose distance counts; by default the first."),
    OpenApiParameter("state", {"type": "string", "enum": list(disagreements.STATES)}),
    OpenApiParameter("seed", int, description="Draws the order of items with the same value."),
]


class ScoreCountSerializer(serializers.Serializer[Any]):
    """How many ratings gave a score."""

    score = serializers.FloatField()
    count = serializers.IntegerField()


class FirstVerdictSerializer(serializers.Serializer[Any]):
    """The judge's first repeat. There is a score or N/A only if `status` is "ok"; `repeats`: how many verdicts there
    are."""

    judge = serializers.CharField()
    status = serializers.CharField()
    score = serializers.FloatField(**NUMBER)
    applicable = serializers.BooleanField()
    repeats = serializers.IntegerField()


class ScoresSerializer(serializers.Serializer[Any]):
    """The scores of an item on one criterion; the input has the attributes `scores` (`ItemScores`) and `choice`
    (`ItemChoice`).

    `measure` of disagreement: `pair_difference` is the mean absolute difference between two raters, in points;
    `mode_share` (nominal scales) the share of scores that differ from the most frequent one.
    """

    criterion = serializers.CharField(source="choice.criterion.key")
    level = serializers.CharField(source="choice.criterion.level")
    n_scores = serializers.IntegerField(source="scores.n")
    n_not_applicable = serializers.IntegerField(source="scores.not_applicable")
    n_stopped = serializers.IntegerField(source="scores.stopped")
    scores = serializers.SerializerMethodField()
    disagreement = serializers.FloatField(source="scores.disagreement", **NUMBER)
    measure = serializers.CharField(source="choice.measure")
    reference = serializers.FloatField(source="scores.reference", **NUMBER)
    reference_rule = serializers.CharField(source="choice.reference")

    @extend_schema_field(ScoreCountSerializer(many=True))
    def get_scores(self, given: Any) -> list[dict[str, float]]:
        return [{"score": score, "count": count} for score, count in given.scores.counts.items()]


class ListedItem:
    """A row of the list: an item with its scores under a choice."""

    def __init__(self, item: Item, scores: ItemScores, choice: ItemChoice) -> None:
        self.item, self.scores, self.choice = item, scores, choice


class ListedItemSerializer(ScoresSerializer):
    """An item with what it was given on the chosen criterion.

    `signed_error`: the judge's score minus the reference, in points; `judge_error` is its size; nominal: 0 or 1.
    """

    id = serializers.IntegerField(source="item.pk")
    item = serializers.CharField(source="item.external_id")
    language = serializers.CharField(source="item.language")
    generator = serializers.CharField(source="item.generator")
    scenario = serializers.CharField(source="item.scenario")
    title = serializers.CharField(source="item.title")
    verdict = serializers.SerializerMethodField()
    judge_error = serializers.FloatField(source="scores.judge_error", **NUMBER)
    signed_error = serializers.FloatField(source="scores.signed_error", **NUMBER)

    @extend_schema_field(FirstVerdictSerializer(allow_null=True))
    def get_verdict(self, given: ListedItem) -> dict[str, Any] | None:
        judge = given.scores.judge
        if judge is None:
            return None
        return {
            "judge": given.choice.judge,
            "status": judge.status,
            "score": judge.score,
            "applicable": judge.applicable,
            "repeats": judge.repeats,
        }


class ItemRatingSerializer(serializers.Serializer[Rating]):
    """One person's rating, by pseudonym. Imported ratings have no `panel`, `seconds` or `certainty`; `certainty` is
    about the whole item."""

    rater = serializers.CharField(source="annotation.annotator.pseudonym")
    panel = serializers.SerializerMethodField()
    status = serializers.CharField()
    score = serializers.FloatField(**NUMBER)
    rationale = serializers.CharField()
    evidence = SpanSerializer(many=True, source="evidence.all")
    critical_mark = serializers.SerializerMethodField()
    seconds = serializers.FloatField(source="annotation.seconds", **NUMBER)
    blind = serializers.BooleanField(source="annotation.blind", **NUMBER)
    revision = serializers.IntegerField(source="annotation.revision")
    submitted_at = serializers.DateTimeField(source="annotation.submitted_at")
    superseded_at = serializers.DateTimeField(source="annotation.superseded_at", **NUMBER)

    def get_fields(self) -> dict[str, Any]:
        """Adds the fields of answers about the whole item, such as `certainty`."""
        about_item = {
            name: serializers.IntegerField(source=f"annotation.{name}", **NUMBER) for name in WHOLE_ITEM_COLUMNS
        }
        return super().get_fields() | about_item

    def get_panel(self, rating: Rating) -> str:
        return RatingShown(rating).panel

    def get_critical_mark(self, rating: Rating) -> bool:
        return RatingShown(rating).is_critical_mark


class ItemVerdictSerializer(serializers.Serializer[GivenVerdict]):
    """One verdict. `counts`: whether the numbers read its run; `call` is null where it was imported."""

    id = serializers.IntegerField(source="verdict.pk")
    judge = serializers.CharField()
    run = serializers.IntegerField(source="verdict.run_id")
    repeat = serializers.IntegerField(source="verdict.repeat")
    status = serializers.CharField(source="verdict.status")
    score = serializers.FloatField(source="verdict.score", **NUMBER)
    applicable = serializers.BooleanField(source="verdict.applicable")
    rationale = serializers.CharField(source="verdict.rationale")
    error = serializers.FloatField(**NUMBER)
    signed_error = serializers.FloatField(**NUMBER)
    counts = serializers.BooleanField()
    call = serializers.IntegerField(**NUMBER)


class ItemAdjudicationSerializer(serializers.Serializer[Adjudicated]):
    """One adjudication, the newest first. `counts`: no later one replaced it; `stale`: a rating has changed since.

    `seen`: the ratings that the adjudicator saw, with their `digest`; `order`: what the queue was ordered by.
    """

    criterion = serializers.CharField(source="adjudication.criterion.key")
    status = serializers.CharField(source="adjudication.status")
    score = serializers.FloatField(source="adjudication.score", **NUMBER)
    cause = serializers.CharField(source="adjudication.cause")
    cause_note = serializers.CharField(source="adjudication.cause_note")
    rationale = serializers.CharField(source="adjudication.rationale")
    adjudicator = serializers.CharField()
    order = serializers.CharField(source="adjudication.order")
    seen = serializers.ListField(source="adjudication.seen", child=serializers.DictField())
    digest = serializers.CharField(source="adjudication.digest")
    at = serializers.DateTimeField(source="adjudication.at")
    counts = serializers.BooleanField()
    stale = serializers.BooleanField()


class CriterionScoresSerializer(ScoresSerializer):
    """Everything given to an item on one criterion; `superseded` are ratings that later ones replaced."""

    adjudications = ItemAdjudicationSerializer(many=True)

    ratings = ItemRatingSerializer(many=True)
    superseded = ItemRatingSerializer(many=True)
    verdicts = ItemVerdictSerializer(many=True)


class ItemDetailSerializer(serializers.Serializer[dict[str, Any]]):
    """An item with its text, and what it was given in this campaign, the chosen criterion first."""

    item = DatasetItemSerializer()
    criteria = CriterionScoresSerializer(many=True)


class ByNumber(CursorPagination):
    """Pages of a sorted list: the cursor is the number of rows before the page."""

    def paginate_queryset(self, queryset: Any, request: Request, view: APIView | None = None) -> list[Any]:
        """The rows of one page."""
        given = request.query_params.get(self.cursor_query_param) or "0"
        start, size = whole_number(given), self.get_page_size(request) or self.page_size
        if start is None:
            sentence = _("This is not a valid cursor. Use the cursors from the replies of this list.")
            raise ValidationError({self.cursor_query_param: [sentence]})
        self.address = request.build_absolute_uri()
        self.following = start + size if start + size < len(queryset) else None
        self.preceding = max(0, start - size) if start else None
        return list(queryset[start : start + size])

    def get_next_link(self) -> str | None:
        return self._link(self.following)

    def get_previous_link(self) -> str | None:
        return self._link(self.preceding)

    def _link(self, start: int | None) -> str | None:
        return None if start is None else replace_query_param(self.address, self.cursor_query_param, str(start))


def _chosen(request: Request, campaign: Campaign) -> tuple[item_choices.ItemOptions, ItemChoice]:
    options = item_choices.item_options(campaign)
    return options, item_choices.chosen_items(campaign, options, request.query_params)


class CampaignItems(generics.GenericAPIView[Any]):
    serializer_class = ListedItemSerializer
    queryset = Item.objects.none()
    pagination_class = ByNumber

    @extend_schema(parameters=CHOICES, responses=ListedItemSerializer(many=True))
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """Items with their scores on one criterion, those that disagree most first.

        `attribute.KEY=VALUE` keeps items with this attribute.
        """
        current = shown_campaign(request.user, project, campaign)
        _options, choice = _chosen(request, current)
        page: Sequence[ItemScores] = self.paginate_queryset(items.listed_items(current, choice)) or []
        record_seen_labels(campaign=current, items=[scores.item for scores in page], actor=request.user)
        rows = [ListedItem(item, scores, choice) for item, scores in items.with_items(page)]
        return self.get_paginated_response(ListedItemSerializer(rows, many=True).data)


class CampaignItem(APIView):
    @extend_schema(parameters=CHOICES, responses=ItemDetailSerializer)
    def get(self, request: Request, project: str, campaign: int, item: int) -> Response:
        """One item: its text, every rating by pseudonym and every verdict, by criterion."""
        current = shown_campaign(request.user, project, campaign)
        stored = get_object_or_404(Item.objects.visible_to(request.user).of(current.dataset), pk=item)
        options, choice = _chosen(request, current)
        record_seen_labels(campaign=current, items=[stored.pk], actor=request.user)
        given: list[CriterionScores] = items.scores_of_item(current, stored, options, choice)
        return Response(ItemDetailSerializer({"item": stored, "criteria": given}).data)


class QueuedItemSerializer(serializers.Serializer[QueuedItem]):
    """One item of the queue. `value`: the largest value among its undecided criteria; `criteria`: the criteria that
    have this value."""

    id = serializers.IntegerField(source="pk")
    item = serializers.CharField(source="external_id")
    language = serializers.CharField()
    n_ratings = serializers.IntegerField()
    value = serializers.FloatField()
    criteria = serializers.ListField(source="worst", child=serializers.CharField())
    state = serializers.ChoiceField(choices=disagreements.STATES[:-1])


class SeenRatingSerializer(serializers.Serializer[SeenRating]):
    """One rating. `rater` is a code that identifies the rater on this item only."""

    rater = serializers.CharField(source="code")
    status = serializers.CharField()
    score = serializers.FloatField(allow_null=True)
    rationale = serializers.CharField()
    evidence = SpanSerializer(many=True)


class DisputedCriterionSerializer(serializers.Serializer[dict[str, Any]]):
    """One criterion of an item. `seen` is the digest of its ratings; a client sends it back with a decision."""

    criterion = serializers.CharField()
    disputed = serializers.BooleanField()
    seen = serializers.CharField()
    ratings = SeenRatingSerializer(many=True)
    adjudications = ItemAdjudicationSerializer(many=True)


class AdjudicationDecisionSerializer(serializers.Serializer[Any]):
    """A decision on one criterion: `score` null is N/A. `cause` may be empty where the raters agree."""

    criterion = serializers.CharField()
    score = serializers.FloatField(allow_null=True)
    cause = serializers.ChoiceField(choices=Adjudication.Cause.choices, allow_blank=True, default="")
    cause_note = serializers.CharField(allow_blank=True, default="", max_length=adjudication.LONGEST_NOTE)
    rationale = serializers.CharField(max_length=adjudication.LONGEST_RATIONALE)
    seen = serializers.CharField(max_length=64)


class ItemDecisionsSerializer(serializers.Serializer[Any]):
    """Decisions on criteria of one item. The same `key` again stores nothing."""

    decisions = AdjudicationDecisionSerializer(many=True, allow_empty=False)
    order = serializers.ChoiceField(choices=disagreements.ORDERS, default="range")
    key = serializers.UUIDField(required=False)


class MeetingDecisionSerializer(serializers.ModelSerializer):
    """A decision of a calibration meeting. `item` is the item's external id."""

    criterion = serializers.CharField(source="criterion.key", default=None, allow_null=True, read_only=True)
    item = serializers.CharField(source="item.external_id", default=None, allow_null=True, read_only=True)

    class Meta:
        model = MeetingDecision
        fields = ("id", "held_on", "criterion", "item", "decision", "guideline_change", "recorded_at")
        read_only_fields = fields


class NewMeetingDecisionSerializer(serializers.Serializer[Any]):
    """What a meeting decided, on a criterion (its key) and an item (its external id) or in general."""

    held_on = serializers.DateField()
    decision = serializers.CharField()
    guideline_change = serializers.CharField(allow_blank=True, default="")
    criterion = serializers.CharField(allow_blank=True, default="")
    item = serializers.CharField(allow_blank=True, default="")


class AdjudicationQueue(generics.GenericAPIView[Any]):
    serializer_class = QueuedItemSerializer
    queryset = Item.objects.none()
    pagination_class = ByNumber

    @extend_schema(parameters=QUEUE_CHOICES, responses=QueuedItemSerializer(many=True))
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """The items on which raters differ, largest difference first. Items that you have rated are left out."""
        current = shown_campaign(request.user, project, campaign)
        choice = disagreements.chosen_queue(disagreements.queue_options(current), request.query_params)
        page = self.paginate_queryset(disagreements.queue(current, choice, request.user).items) or []
        record_seen_labels(campaign=current, items=[one.pk for one in page], actor=request.user)
        return self.get_paginated_response(QueuedItemSerializer(page, many=True).data)


class ItemAdjudications(APIView):
    @extend_schema(responses=DisputedCriterionSerializer(many=True))
    def get(self, request: Request, project: str, campaign: int, item: int) -> Response:
        """The rated criteria of an item with their ratings, names hidden, and what was decided; no verdicts."""
        current = shown_campaign(request.user, project, campaign)
        stored = _item(request, current, item)
        record_seen_labels(campaign=current, items=[stored.pk], actor=request.user)
        return Response(_criteria(current, stored))

    @extend_schema(request=ItemDecisionsSerializer, responses={201: DisputedCriterionSerializer(many=True)})
    def post(self, request: Request, project: str, campaign: int, item: int) -> Response:
        """Decide criteria of an item. The ratings stay as they are; the newest decision counts."""
        current = shown_campaign(request.user, project, campaign)
        stored = _item(request, current, item)
        asked = ItemDecisionsSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        criteria = {criterion.key: criterion for criterion in current.rubric_version.criteria.all()}
        given = asked.validated_data["decisions"]
        if unknown := [each["criterion"] for each in given if each["criterion"] not in criteria]:
            raise ValidationError({"decisions": [_("This rubric has no criterion “%s”.") % unknown[0]]})
        adjudication.adjudicate(
            campaign=current,
            item=stored,
            decisions=[CriterionDecision(**{**each, "criterion": criteria[each["criterion"]]}) for each in given],
            order=asked.validated_data["order"],
            key=asked.validated_data.get("key") or uuid4(),
            actor=request.user,
        )
        record_seen_labels(campaign=current, items=[stored.pk], actor=request.user)
        return Response(_criteria(current, stored), status=status.HTTP_201_CREATED)


def _item(request: Request, campaign: Campaign, item: int) -> Item:
    return get_object_or_404(Item.objects.visible_to(request.user).of(campaign.dataset), pk=item)


def _criteria(campaign: Campaign, item: Item) -> Any:
    """The rated criteria of an item, in the order of the rubric."""
    seen = adjudication.seen_ratings(campaign, [item.pk], with_evidence=True)
    decided = list(adjudication.adjudications_of(campaign, item))
    rows = [
        {
            "criterion": criterion.key,
            "disputed": adjudication.is_disputed(given),
            "seen": adjudication.digest_of(one.stored for one in given),
            "ratings": given,
            "adjudications": [one for one in decided if one.adjudication.criterion_id == criterion.pk],
        }
        for criterion in campaign.rubric_version.criteria.all()
        if (given := seen.get((item.pk, criterion.pk)))
    ]
    return DisputedCriterionSerializer(rows, many=True).data


class MeetingDecisions(APIView):
    @extend_schema(responses=MeetingDecisionSerializer(many=True))
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """The decisions of a campaign's calibration meetings, the newest meeting first."""
        current = shown_campaign(request.user, project, campaign)
        return Response(MeetingDecisionSerializer(adjudication.meeting_decisions(current), many=True).data)

    @extend_schema(request=NewMeetingDecisionSerializer, responses={201: MeetingDecisionSerializer})
    def post(self, request: Request, project: str, campaign: int) -> Response:
        """Record a decision. It is not changed later: record another one."""
        current = shown_campaign(request.user, project, campaign)
        asked = NewMeetingDecisionSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        given = dict(asked.validated_data)
        about = adjudication.subject_of_decision(current, criterion=given.pop("criterion"), item=given.pop("item"))
        stored = adjudication.record_decision(campaign=current, **given, **about, actor=request.user)
        return Response(MeetingDecisionSerializer(stored).data, status=status.HTTP_201_CREATED)
