"""Campaigns, their duties and how far they are; for leads and researchers."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.inputs import is_storable
from accounts.models import Project, User
from annotation import allocation, campaigns
from annotation.models import Campaign, Criterion, Dataset, Duty, ItemSelection, Panel, RubricVersion

LARGEST_ID = 2**63 - 1
SEEDS = {"min_value": -(2**63), "max_value": LARGEST_ID}


class CampaignSerializer(serializers.Serializer[Campaign]):
    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(max_length=120)
    dataset = serializers.IntegerField(source="dataset_id", min_value=1, max_value=LARGEST_ID)
    rubric_version = serializers.IntegerField(source="rubric_version_id", min_value=1, max_value=LARGEST_ID)
    state = serializers.ChoiceField(choices=Campaign.State.choices, read_only=True)
    created_at = serializers.DateTimeField(read_only=True)


class StateSerializer(serializers.Serializer[Campaign]):
    state = serializers.ChoiceField(choices=Campaign.State.choices)


class ExtensionSerializer(serializers.Serializer[Campaign]):
    dataset = serializers.IntegerField(min_value=1, max_value=LARGEST_ID)


class HandedOutSerializer(serializers.Serializer[Any]):
    assignments = serializers.IntegerField()


class CriterionField(serializers.SlugRelatedField[Criterion]):
    """A criterion by its key; a text that no database can hold is the key of none."""

    def to_internal_value(self, key: Any) -> Criterion:
        if not is_storable(key):
            self.fail("invalid")
        return super().to_internal_value(key)


class DutySerializer(serializers.Serializer[Duty]):
    """A panel's share. Without `criteria` the panel rates on the whole rubric; with none of `languages`, its own."""

    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(max_length=120, required=False)
    panel = serializers.IntegerField(source="panel_id", min_value=1, max_value=LARGEST_ID)
    overlap = serializers.IntegerField(min_value=1, max_value=allocation.MOST_OVERLAP)
    criteria = CriterionField(
        slug_field="key", many=True, queryset=Criterion.objects.none(), required=False, allow_empty=False
    )
    languages = serializers.ListField(
        child=serializers.CharField(max_length=35), required=False, write_only=True, max_length=100
    )
    seed = serializers.IntegerField(
        required=False, **SEEDS, help_text="Gives the order of the items; without one a random seed is drawn and kept."
    )
    keep_names = serializers.BooleanField(
        required=False, write_only=True, help_text="Annotators may see generators' names that the items show."
    )
    selection = serializers.IntegerField(
        source="chosen_id",
        required=False,
        allow_null=True,
        min_value=1,
        max_value=LARGEST_ID,
        help_text="The panel rates only the items of this selection of the campaign.",
    )
    again = serializers.BooleanField(
        required=False, write_only=True, help_text="The same people rate items again that they have in another duty."
    )

    def __init__(self, *args: Any, campaign: Campaign | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        known_criteria = Criterion.objects.filter(rubric_version=campaign.rubric_version_id) if campaign else None
        self.fields["criteria"].child_relation.queryset = known_criteria or Criterion.objects.none()  # type: ignore[attr-defined]


class AnnotatorProgressSerializer(serializers.Serializer[campaigns.AnnotatorProgress]):
    pseudonym = serializers.CharField()
    submitted = serializers.IntegerField()
    on_desk = serializers.IntegerField()
    last_at = serializers.DateTimeField(allow_null=True)


class DutyProgressSerializer(serializers.Serializer[campaigns.DutyProgress]):
    duty = serializers.IntegerField(source="duty.pk")
    name = serializers.CharField(source="duty.name")
    overlap = serializers.IntegerField(source="duty.overlap")
    items = serializers.IntegerField()
    complete = serializers.IntegerField()
    slots = serializers.IntegerField()
    submitted = serializers.IntegerField()
    on_desk = serializers.IntegerField()
    annotators = AnnotatorProgressSerializer(many=True)


def _of(user: User, slug: str) -> tuple[Project, QuerySet[Campaign]]:
    project = access.require(user=user, slug=slug)
    return project, Campaign.objects.visible_to(user).filter(project=project)


def campaign_in_project(user: User, slug: str, pk: int) -> Campaign:
    """The campaign with its dataset, rubric version and project, or 404."""
    return get_object_or_404(_of(user, slug)[1].select_related("dataset", "rubric_version", "project"), pk=pk)


class Campaigns(generics.ListCreateAPIView[Campaign]):
    """The project's campaigns; posting opens one on a dataset and a published rubric version."""

    serializer_class = CampaignSerializer
    queryset = Campaign.objects.none()

    def get_queryset(self) -> QuerySet[Campaign]:
        return _of(self.request.user, self.kwargs["project"])[1]

    def perform_create(self, serializer: Any) -> None:
        user = self.request.user
        project, _campaigns = _of(user, self.kwargs["project"])
        chosen = serializer.validated_data
        serializer.instance = campaigns.open_campaign(
            project=project,
            name=chosen["name"],
            dataset=get_object_or_404(Dataset.objects.visible_to(user), project=project, pk=chosen["dataset_id"]),
            rubric_version=get_object_or_404(
                RubricVersion.objects.visible_to(user), rubric__project=project, pk=chosen["rubric_version_id"]
            ),
            actor=user,
        )


class CampaignDetail(APIView):
    @extend_schema(responses=CampaignSerializer)
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """One campaign."""
        return Response(CampaignSerializer(campaign_in_project(request.user, project, campaign)).data)


class CampaignState(APIView):
    @extend_schema(request=StateSerializer, responses=CampaignSerializer)
    def post(self, request: Request, project: str, campaign: int) -> Response:
        """Pause a campaign, open it again, or close it permanently."""
        current_campaign = campaign_in_project(request.user, project, campaign)
        serializer = StateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        moved = campaigns.move(
            campaign=current_campaign, to=Campaign.State(serializer.validated_data["state"]), actor=request.user
        )
        return Response(CampaignSerializer(moved).data)


class CampaignDataset(APIView):
    @extend_schema(request=ExtensionSerializer, responses=CampaignSerializer)
    def post(self, request: Request, project: str, campaign: int) -> Response:
        """Continue the campaign with a later version of the dataset. Ratings, assignments and selections are kept."""
        current_campaign = campaign_in_project(request.user, project, campaign)
        serializer = ExtensionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        mine = Dataset.objects.visible_to(request.user).filter(project=current_campaign.project_id)
        chosen = get_object_or_404(mine, pk=serializer.validated_data["dataset"])
        return Response(
            CampaignSerializer(
                campaigns.extend_campaign(campaign=current_campaign, dataset=chosen, actor=request.user)
            ).data
        )


class HandOut(APIView):
    @extend_schema(request=None, responses=HandedOutSerializer)
    def post(self, request: Request, project: str, campaign: int) -> Response:
        """Assign the items that a later version of the dataset added: one more wave in every duty."""
        current_campaign = campaign_in_project(request.user, project, campaign)
        created = allocation.hand_out(campaign=current_campaign, actor=request.user)
        return Response(HandedOutSerializer({"assignments": created}).data)


class Duties(generics.ListCreateAPIView[Duty]):
    """A campaign's duties. POST creates a duty: it assigns a share of the campaign to a panel."""

    serializer_class = DutySerializer
    queryset = Duty.objects.none()

    def get_queryset(self) -> QuerySet[Duty]:
        campaign = campaign_in_project(self.request.user, self.kwargs["project"], self.kwargs["campaign"])
        return Duty.objects.filter(campaign=campaign).prefetch_related("criteria")

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        campaign = campaign_in_project(request.user, kwargs["project"], kwargs["campaign"])
        serializer = DutySerializer(data=request.data, campaign=campaign)
        serializer.is_valid(raise_exception=True)
        chosen = dict(serializer.validated_data)
        mine = Panel.objects.visible_to(request.user).filter(project=campaign.project_id)
        panel = get_object_or_404(mine, pk=chosen.pop("panel_id"))
        wanted = chosen.pop("chosen_id", None)
        selection = get_object_or_404(ItemSelection, campaign=campaign, pk=wanted) if wanted else None
        duty = allocation.allocate(campaign=campaign, panel=panel, selection=selection, actor=request.user, **chosen)
        return Response(DutySerializer(duty).data, status=status.HTTP_201_CREATED)


class CampaignProgress(APIView):
    @extend_schema(responses=DutyProgressSerializer(many=True))
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """The progress of every duty and of every annotator in it, by pseudonym."""
        current_campaign = campaign_in_project(request.user, project, campaign)
        return Response(DutyProgressSerializer(campaigns.progress(current_campaign), many=True).data)
