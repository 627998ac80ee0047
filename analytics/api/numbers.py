"""The numbers of a campaign, the ratings behind them, judges side by side; for leads, share links."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from django.http import FileResponse, Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.text import slugify
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import Project, Role, User
from analytics import agreement, answer_pages, planning, tasks
from analytics.answers import snapshots
from analytics.exporting import shares
from analytics.exporting.exports import record_labels
from analytics.judges import compared_judges
from analytics.judges.compared_judges import ComparedJudge, JudgeDisagreement
from analytics.models import Share, Snapshot
from analytics.numbers import RULE_NAMES
from analytics.questions.asked import asked_question
from analytics.questions.parameters import BLIND_ONLY, PARAMETERS
from analytics.questions.plan import planned
from analytics.ratings.additions import question_table
from analytics.views.comparison import MEASURE_NAMES, ComparisonPage, chosen_comparison, named_run
from analytics.views.exports import download
from analytics.views.numbers import chosen_raters, named_raters
from annotation.api.campaigns import LARGEST_ID
from annotation.exports import consistent
from annotation.models import Campaign, Duty
from annotation.writers import formats

RATERS = OpenApiParameter(
    "raters",
    {"type": "array", "items": {"type": "string"}},
    description="Pseudonyms of the annotators that count, all of them by default.",
)
BLIND = OpenApiParameter(
    "blind",
    {"type": "string", "enum": [BLIND_ONLY]},
    description="`only`: leave out ratings by people who could see verdicts and other people's ratings.",
)
_REFERENCE = OpenApiParameter(
    "reference",
    {"type": "string", "enum": [name for name in RULE_NAMES if name]},
    description="What judges are compared with; by default the panel's mode, on interval scales its mean.",
)
QUESTION = [
    OpenApiParameter(
        parameter.name,
        {"type": "array", "items": {"type": "string"}} if parameter.is_list else {"type": "string"},
        description=parameter.meaning,
    )
    for parameter in PARAMETERS.values()
]
NUMBER = {"allow_null": True, "default": None}


class EstimateSerializer(serializers.Serializer[dict[str, Any]]):
    """One figure. `language` is null over all languages, `judge` is null for the panel alone."""

    statistic = serializers.CharField()
    variant = serializers.CharField(**NUMBER)
    level = serializers.CharField(**NUMBER)
    criterion = serializers.CharField()
    language = serializers.CharField(**NUMBER)
    judge = serializers.CharField(**NUMBER)
    generator = serializers.CharField(**NUMBER)
    agreement_class = serializers.CharField(**NUMBER)
    reference = serializers.CharField(**NUMBER)
    value = serializers.FloatField(**NUMBER)
    se = serializers.FloatField(**NUMBER)
    p = serializers.FloatField(**NUMBER)
    low = serializers.FloatField(**NUMBER)
    high = serializers.FloatField(**NUMBER)
    confidence = serializers.FloatField(**NUMBER)
    method = serializers.CharField(**NUMBER)
    n_items = serializers.IntegerField()
    n_raters = serializers.IntegerField()
    n_ratings = serializers.IntegerField()
    n_missing = serializers.IntegerField()
    seed = serializers.IntegerField(**NUMBER)
    undefined_share = serializers.FloatField(**NUMBER)
    reason = serializers.CharField(**NUMBER)
    interval_reason = serializers.CharField(**NUMBER)
    note = serializers.CharField(**NUMBER)
    n_clusters = serializers.IntegerField(**NUMBER)
    speaks_for = serializers.CharField(**NUMBER)
    p_corrected = serializers.FloatField(**NUMBER)
    family = serializers.IntegerField(**NUMBER)


class CountSerializer(serializers.Serializer[dict[str, Any]]):
    """What one cell holds, of the panel (`judge` is empty) or of one judge; `reasons`: why scores are missing."""

    criterion = serializers.CharField()
    language = serializers.CharField(**NUMBER)
    judge = serializers.CharField(allow_blank=True)
    items = serializers.IntegerField()
    raters = serializers.IntegerField()
    ratings = serializers.IntegerField()
    missing = serializers.IntegerField()
    not_applicable = serializers.IntegerField()
    reasons = serializers.DictField(child=serializers.IntegerField())


class JudgeSerializer(serializers.Serializer[dict[str, Any]]):
    name = serializers.CharField()
    judge = serializers.IntegerField()
    run = serializers.IntegerField()
    simulated = serializers.BooleanField()
    served = serializers.ListField(
        child=serializers.CharField(),
        default=list,
        help_text="Other models than the one that was asked for, as the replies name them.",
    )


class SettingsSerializer(serializers.Serializer[dict[str, Any]]):
    raters = serializers.ListField(child=serializers.CharField())
    blind_only = serializers.BooleanField()
    reference = serializers.ChoiceField(choices=list(RULE_NAMES), help_text="What judges are compared with.")
    bootstrap = serializers.IntegerField()
    confidence = serializers.FloatField()
    seed = serializers.IntegerField()


class SnapshotSerializer(serializers.Serializer[Snapshot]):
    """Estimates with what they were computed from. `inputs_digest` is the SHA-256 of the CSV of the ratings table."""

    id = serializers.IntegerField(source="pk")
    created_at = serializers.DateTimeField()
    revision = serializers.CharField()
    inputs_digest = serializers.CharField()
    code_version = serializers.CharField()
    seconds = serializers.FloatField()
    settings = SettingsSerializer(source="content.settings")
    languages = serializers.ListField(child=serializers.CharField(), source="content.languages")
    judges = JudgeSerializer(many=True, source="content.judges")
    not_blind = serializers.IntegerField(
        source="content.not_blind",
        help_text="Scores by people who could see verdicts; with `settings.blind_only` they are left out.",
    )
    counts = CountSerializer(many=True, source="content.counts")
    estimates = EstimateSerializer(many=True, source="content.estimates")


class CellEstimateSerializer(EstimateSerializer):
    """One figure of one cell. A cell that is cut by an attribute has its value under the attribute's column too."""

    asked = serializers.CharField(help_text="The statistic with its family, as the question names it.")
    criterion = serializers.CharField(**NUMBER)
    languages = serializers.ListField(child=serializers.CharField(), **NUMBER)
    raters = serializers.ListField(child=serializers.CharField(), **NUMBER)
    generator = serializers.CharField(**NUMBER)
    annotator = serializers.CharField(**NUMBER)
    weights = serializers.CharField(**NUMBER)

    def to_representation(self, instance: dict[str, Any]) -> dict[str, Any]:
        return dict(instance)


class QuestionAnswerSerializer(serializers.Serializer[Snapshot]):
    """The answer to a question: `query` is the question's canonical query string, `counts` what its table holds.

    `inputs_digest` is the SHA-256 of `ratings.csv` under the same query string.
    """

    created_at = serializers.DateTimeField()
    revision = serializers.CharField()
    inputs_digest = serializers.CharField()
    code_version = serializers.CharField()
    seed = serializers.IntegerField()
    seconds = serializers.FloatField()
    query = serializers.CharField(source="content.query", allow_blank=True)
    question = serializers.DictField(source="content.question")
    counts = serializers.DictField(child=serializers.IntegerField(), source="content.counts")
    left_out = serializers.DictField(child=serializers.IntegerField(), source="content.left_out")
    ties = serializers.DictField(
        child=serializers.IntegerField(),
        source="content.ties",
        default=dict,
        help_text="`tied` of all `pairs` of item and criterion have a tied mode, and are left out beside a judge.",
    )
    adjudicated = serializers.DictField(
        child=serializers.IntegerField(),
        source="content.adjudicated",
        default=dict,
        help_text="Where the reference reads adjudications: how many `pairs` of item and criterion have one.",
    )
    judges = JudgeSerializer(many=True, source="content.judges")
    notes = serializers.ListField(child=serializers.CharField(), source="content.notes")
    estimates = CellEstimateSerializer(many=True, source="content.estimates")


class EstimatesSerializer(serializers.Serializer[dict[str, Any]]):
    """The newest answer, null until there is one; a stale one is being computed anew."""

    stale = serializers.BooleanField()
    answer = QuestionAnswerSerializer(allow_null=True)


class NumbersSerializer(serializers.Serializer[dict[str, Any]]):
    """The newest snapshot, null until there is one; a stale one is being computed anew."""

    stale = serializers.BooleanField()
    snapshot = SnapshotSerializer(allow_null=True)


def _campaign(user: User, project: str, campaign: int) -> Campaign:
    current_project = access.require(user=user, slug=project)
    campaigns = (
        Campaign.objects.visible_to(user).filter(project=current_project).select_related("rubric_version", "dataset")
    )
    return get_object_or_404(campaigns, pk=campaign)


class Numbers(APIView):
    @extend_schema(parameters=[RATERS, BLIND, _REFERENCE], responses=NumbersSerializer)
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """Agreement and calibration by criterion and language, with provenance."""
        found = _campaign(request.user, project, campaign)
        raters = chosen_raters(found, request.query_params)
        snapshot, is_stale = snapshots.current_snapshot(campaign=found, settings=raters.settings)
        if is_stale:
            tasks.ask_to_compute(campaign=found, settings=raters.settings)
        return Response(NumbersSerializer({"stale": is_stale, "snapshot": snapshot}).data)


class Estimates(APIView):
    @extend_schema(parameters=QUESTION, responses=EstimatesSerializer)
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """Estimates by any two columns of the ratings table: rows, columns, filters and statistics as asked."""
        current = _campaign(request.user, project, campaign)
        question = asked_question(current, _pairs(request))
        snapshot, is_stale = answer_pages.current_answer(current, question)
        if snapshot:
            answer_pages.record_labels_shown(snapshot, current, request.user)
        if is_stale:
            tasks.ask_to_compute(campaign=current, settings=question)
        return Response(EstimatesSerializer({"stale": is_stale, "answer": snapshot}).data)


def _pairs(request: Request) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in request.query_params.lists() for text in texts]


class WhateverIsAccepted(BaseContentNegotiation):
    """A client that asks for text/csv gets its table, and its errors as JSON like everyone's."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        return next(iter(parsers))

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        first = next(iter(renderers))
        return first, first.media_type


class RatingsTableDownload(APIView):
    content_negotiation_class = WhateverIsAccepted

    @extend_schema(parameters=QUESTION, responses={(200, "text/csv"): OpenApiTypes.STR})
    def get(self, request: Request, project: str, campaign: int) -> FileResponse:
        """The ratings table, or the part of it that a question is about: one row per score of an annotator or a judge.

        The same query string as for estimates gives the rows that they are computed from.
        """
        current = _campaign(request.user, project, campaign)
        raters = named_raters(current, request.query_params.getlist("raters"))
        asked = [pair for pair in _pairs(request) if pair[0] != "raters"]
        question = replace(asked_question(current, asked), raters=raters.settings.raters)
        record_labels(current, request.user)
        name = slugify(current.name) or f"campaign-{current.pk}"
        with consistent():
            table = question_table(current, planned(current, question))
            kind = formats.FORMATS["csv"].media_type
            return download(formats.pieces(table, "csv"), name=f"{name}-ratings.csv", media_type=kind)


class SoftLabelsDownload(APIView):
    content_negotiation_class = WhateverIsAccepted

    @extend_schema(
        parameters=[OpenApiParameter("kind", {"type": "string", "enum": ["csv", "json"]}, "path"), *QUESTION],
        responses={(200, "text/csv"): OpenApiTypes.STR, (200, "application/json"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, project: str, campaign: int, kind: str) -> FileResponse:
        """The distribution of the annotators' scores of every item and criterion that a question is about.

        CSV: a row for every score that was given, with its count and share. JSON: `labels`, with `shares` by score.
        """
        if kind not in ("csv", "json"):
            raise Http404
        current = _campaign(request.user, project, campaign)
        question = asked_question(current, _pairs(request))
        record_labels(current, request.user)
        name = f"{slugify(current.name) or current.pk}-soft-labels.{kind}"
        with consistent():
            table = agreement.soft_labels(current, question)
            if kind == "json":
                return download(agreement.soft_labels_json(table), name=name, media_type="application/json")
            return download(formats.pieces(table, "csv"), name=name, media_type=formats.FORMATS["csv"].media_type)


# --- judges side by side ---------------------------------------------------------------------------------------------
MANY = {"type": "array", "items": {"type": "string"}}
COMPARISON_PARAMETERS = [
    OpenApiParameter("design", int, description="The judges of this design, and its jury."),
    OpenApiParameter("judge", MANY, description="Names of judges; all by default."),
    OpenApiParameter("run", MANY, description="Numbers of judge runs, or `each`."),
    OpenApiParameter("designs", str, description="`show`: judges that are only cells of designs, too."),
    OpenApiParameter("measure", {"type": "string", "enum": list(MEASURE_NAMES)}, description="kappa by default."),
    OpenApiParameter("against", str, description="The judge that the others are compared with."),
    OpenApiParameter("jury", MANY, description="Judges as one more rater: A,B,C."),
    OpenApiParameter("jury_rule", str, description="majority, median, mean or minimum."),
    OpenApiParameter("first", str, description="Two judges: the items on which they differ most are listed."),
    OpenApiParameter("second", str, description="The other one."),
]


class ComparedJudgeSerializer(serializers.Serializer[ComparedJudge]):
    """A judge or jury: what it costs, its agreement with the panel on the mean of the cells, and its repeats."""

    name = serializers.CharField(source="cost.name")
    run = serializers.IntegerField(source="cost.run.pk", **NUMBER)
    levels = serializers.DictField(source="cost.levels", child=serializers.CharField())
    calls = serializers.IntegerField(source="cost.calls")
    sent = serializers.IntegerField(source="cost.sent")
    reused = serializers.IntegerField(source="cost.reused")
    paid = serializers.DecimalField(source="cost.paid", max_digits=20, decimal_places=8, allow_null=True)
    verdicts = serializers.IntegerField(source="cost.verdicts")
    unreadable = serializers.IntegerField(source="cost.unreadable")
    cost_per_item = serializers.FloatField(source="cost.per_item", **NUMBER)
    cost_per_point = serializers.FloatField(
        source="per_point", **NUMBER, help_text="USD of 1,000 items for each 0.01 of agreement."
    )
    agreement = serializers.FloatField(source="agreement.value", **NUMBER)
    repeat_sd = serializers.FloatField(**NUMBER)
    repeat_sd_unit = serializers.CharField(help_text="points, or width: a share of the width of each scale.")
    is_efficient = serializers.BooleanField(help_text="On the Pareto line of cost and agreement.")


class DisagreementSerializer(serializers.Serializer[JudgeDisagreement]):
    item = serializers.CharField(source="item.external_id")
    language = serializers.CharField(source="item.language")
    criterion = serializers.CharField(source="criterion.key")
    first_score = serializers.FloatField(source="first.score")
    second_score = serializers.FloatField(source="second.score")
    first_rationale = serializers.CharField(source="first.rationale")
    second_rationale = serializers.CharField(source="second.rationale")


class ComparisonSerializer(serializers.Serializer[dict[str, Any]]):
    """The newest answer, null until there is one; costs are those of this moment."""

    stale = serializers.BooleanField()
    answer = QuestionAnswerSerializer(allow_null=True)
    judges = ComparedJudgeSerializer(many=True)
    disagreements = DisagreementSerializer(many=True)


class JudgeComparison(APIView):
    @extend_schema(parameters=COMPARISON_PARAMETERS, responses=ComparisonSerializer)
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """Judges on the items that all of them scored: agreement, paired differences, effects, cost."""
        current_project = access.require(user=request.user, slug=project)
        here = Campaign.objects.visible_to(request.user).filter(project=current_project)
        found = get_object_or_404(here.select_related("project", "rubric_version", "dataset"), pk=campaign)
        choice = chosen_comparison(found, request.query_params)
        snapshot, is_stale = answer_pages.current_answer(found, choice.question)
        if is_stale:
            tasks.ask_to_compute(campaign=found, settings=choice.question)
        listed: list[JudgeDisagreement] = []
        if choice.first and choice.second:
            first, second = named_run(choice, choice.first), named_run(choice, choice.second)
            listed = compared_judges.disagreements(first, second)
        judges = ComparisonPage(choice, snapshot).judges if snapshot else []
        content = {"stale": is_stale, "answer": snapshot, "judges": judges, "disagreements": listed}
        return Response(ComparisonSerializer(content).data)


# --- share links, for leads ------------------------------------------------------------------------------------------
LEAD = (Role.LEAD,)
LONGEST = 3650


class ShareSerializer(serializers.Serializer[Share]):
    """`days` is how long the link is to be good; without, until it is revoked."""

    id = serializers.IntegerField(source="pk", read_only=True)
    campaign = serializers.IntegerField(source="campaign_id", min_value=1, max_value=LARGEST_ID)
    label = serializers.CharField(max_length=120)  # type: ignore[assignment]
    days = serializers.IntegerField(min_value=1, max_value=LONGEST, required=False, allow_null=True, write_only=True)
    shows_generators = serializers.BooleanField(
        default=False, help_text="generators, scenarios and attributes of items too"
    )
    created_at = serializers.DateTimeField(read_only=True)
    expires_at = serializers.DateTimeField(read_only=True, allow_null=True)
    last_used_at = serializers.DateTimeField(read_only=True, allow_null=True)


class ShareAddressSerializer(ShareSerializer):
    """A link with its address, which is shown only once."""

    address = serializers.URLField(read_only=True)


def found_in(user: User, slug: str) -> tuple[Project, QuerySet[Share]]:
    """The project, and the links into it that still work."""
    project = access.require(user=user, slug=slug, roles=LEAD)
    found = Share.objects.visible_to(user).live().filter(campaign__project=project)
    return project, found.select_related("campaign__project")


class Shares(generics.ListAPIView[Share]):
    """The links that work; posting makes one."""

    roles = LEAD
    serializer_class = ShareSerializer
    queryset = Share.objects.none()

    def get_queryset(self) -> QuerySet[Share]:
        return found_in(self.request.user, self.kwargs["project"])[1]

    @extend_schema(request=ShareSerializer, responses={201: ShareAddressSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Make a link to one campaign's numbers. The answer alone holds its address."""
        current_project, _found = found_in(request.user, project)
        asked = ShareSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        given: dict[str, Any] = dict(asked.validated_data)
        mine = Campaign.objects.visible_to(request.user).filter(project=current_project).select_related("project")
        campaign = get_object_or_404(mine, pk=given.pop("campaign_id"))
        share, secret = shares.make(campaign=campaign, actor=request.user, **given)
        share.address = request.build_absolute_uri(reverse("shared", args=[secret]))  # type: ignore[attr-defined]
        return Response(ShareAddressSerializer(share).data, status=status.HTTP_201_CREATED)


class ShareDetail(APIView):
    roles = LEAD

    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, link: int) -> Response:
        """Revoke a link: it stops working immediately."""
        found = get_object_or_404(found_in(request.user, project)[1], pk=link)
        shares.revoke_share(share=found, actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


# --- the next items --------------------------------------------------------------------------------------------------
class DrawSerializer(serializers.Serializer[dict[str, Any]]):
    """From which judge's errors, on which criterion, how many items on average."""

    judge = serializers.CharField(help_text="by name; it must have scored all items of the duty's language")
    criterion = serializers.CharField()
    wanted = serializers.IntegerField(min_value=1, help_text="the expected number of items; the draw itself varies")
    seed = serializers.IntegerField(required=False, min_value=0, max_value=2**53 - 1)
    digest = serializers.CharField(
        required=False, max_length=64, help_text="of a preview: refused if other items would be given out now"
    )


class DrawnSerializer(serializers.Serializer[dict[str, Any]]):
    """How many items were drawn into the duty."""

    items = serializers.IntegerField()


class DrawPreviewSerializer(serializers.Serializer[planning.DrawPreview]):
    """What a draw with this `seed` gives out, and the panel's mean half an interval wide before and about after it.

    `hours`, `price_usd` and the widths are null where they are not known. Post the same with this `seed` and `digest`
    to draw exactly these items. `is_approximate`: the widths are of few scenarios.
    """

    seed = serializers.IntegerField()
    items = serializers.IntegerField()
    assignments = serializers.IntegerField()
    hours = serializers.FloatField(allow_null=True)
    price_usd = serializers.DecimalField(max_digits=12, decimal_places=2, allow_null=True, source="price")
    half_width_before = serializers.FloatField(allow_null=True, source="half_before")
    half_width_after = serializers.FloatField(allow_null=True, source="half_after")
    is_approximate = serializers.BooleanField()
    digest = serializers.CharField()


class DrawNextItems(APIView):
    @extend_schema(parameters=[DrawSerializer], responses=DrawPreviewSerializer)
    def get(self, request: Request, project: str, campaign: int, duty: int) -> Response:
        """What a draw would give out, what that costs, and how much narrower it makes an interval; stores nothing."""
        current_duty = self._duty(request, project, campaign, duty)
        serializer = DrawSerializer(data=request.query_params)
        serializer.is_valid(raise_exception=True)
        asked = {name: value for name, value in serializer.validated_data.items() if name != "digest"}
        preview = planning.preview_draw(duty=current_duty, **asked)
        return Response(DrawPreviewSerializer(preview).data)

    @extend_schema(responses={200: DrawnSerializer})
    def delete(self, request: Request, project: str, campaign: int, duty: int) -> Response:
        """Take back the items that were drawn last, while nobody has rated one of them."""
        taken = planning.take_back_draw(duty=self._duty(request, project, campaign, duty), actor=request.user)
        return Response({"items": taken})

    @extend_schema(request=DrawSerializer, responses={201: DrawnSerializer})
    def post(self, request: Request, project: str, campaign: int, duty: int) -> Response:
        """Draw the next items into a duty, more often where the judge may be wrong; their probabilities are stored."""
        current_duty = self._duty(request, project, campaign, duty)
        serializer = DrawSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        drawn = planning.draw_next_items(duty=current_duty, actor=request.user, **serializer.validated_data)
        return Response({"items": drawn}, status=status.HTTP_201_CREATED)

    def _duty(self, request: Request, project: str, campaign: int, duty: int) -> Duty:
        current_project = access.require(user=request.user, slug=project)
        mine = Campaign.objects.visible_to(request.user).filter(project=current_project)
        return get_object_or_404(Duty.objects.filter(campaign__in=mine, campaign=campaign), pk=duty)
