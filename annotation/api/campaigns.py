"""Campaigns, their duties and how far they are, selections of their items, panels; for leads and researchers.

A duty has its deadline, priority, quota and pause, more annotators, and items in progress. The closing questionnaire
of a campaign is for leads.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import Count, QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.inputs import is_storable
from accounts.models import Membership, Project, Role, User
from annotation import allocation, campaigns, duty_settings, panels, questionnaires, selections
from annotation.duty_settings import HIGHEST_PRIORITY, LARGEST_QUOTA, DutySettings
from annotation.models import (
    Annotator,
    Campaign,
    Criterion,
    Dataset,
    Duty,
    ItemSelection,
    Panel,
    PanelSeat,
    RubricVersion,
    SelectedItem,
)
from annotation.questionnaires import ClosingResults, CriterionDifficulty, PointCounts

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


# --- selections ------------------------------------------------------------------------------------------------------
class SelectionSerializer(serializers.Serializer[ItemSelection]):
    id = serializers.IntegerField(source="pk", read_only=True)
    campaign = serializers.IntegerField(source="campaign_id", read_only=True)
    name = serializers.CharField(max_length=120)
    rule = serializers.JSONField(
        help_text='Such as {"kind": "draw", "n": 20, "by": ["language", "generator"], "unit": "item", "filter": {}}; '
        "kinds: draw, filter, duty, list."
    )
    seed = serializers.IntegerField(required=False, **SEEDS, help_text="Without one a random seed is drawn and kept.")
    items = serializers.IntegerField(source="items_count", read_only=True)
    created_at = serializers.DateTimeField(read_only=True)

    def validate_rule(self, rule: Any) -> dict[str, Any]:
        if not isinstance(rule, dict):
            raise serializers.ValidationError("A rule is a JSON object.")
        if not is_storable(rule):
            raise serializers.ValidationError(_("The rule has a number or a character that can't be stored."))
        return rule


class StratumSerializer(serializers.Serializer[selections.Stratum]):
    name = serializers.CharField()
    available = serializers.IntegerField(help_text="Units (items or scenarios) that there were.")
    chosen = serializers.IntegerField(help_text="Units that were chosen.")
    items = serializers.IntegerField(help_text="Items of the chosen units.")


class SelectionDetailSerializer(SelectionSerializer):
    strata = serializers.SerializerMethodField()

    @extend_schema(responses=StratumSerializer(many=True))
    def get_strata(self, selection: ItemSelection) -> Any:
        return StratumSerializer(selections.strata_of(selection), many=True).data


class SelectedItemSerializer(serializers.Serializer[SelectedItem]):
    item = serializers.CharField(source="item.external_id")
    probability = serializers.FloatField()
    stratum = serializers.CharField()


def selections_in_project(user: User, slug: str) -> QuerySet[ItemSelection]:
    """The selections of a project's campaigns, each with the number of its items."""
    project = access.require(user=user, slug=slug)
    found = ItemSelection.objects.visible_to(user).filter(campaign__project=project)
    return found.annotate(items_count=Count("selected")).select_related("campaign__dataset")


class Selections(generics.ListCreateAPIView[ItemSelection]):
    """The selections of a campaign; posting draws one."""

    serializer_class = SelectionSerializer
    queryset = ItemSelection.objects.none()

    def get_queryset(self) -> QuerySet[ItemSelection]:
        campaign = campaign_in_project(self.request.user, self.kwargs["project"], self.kwargs["campaign"])
        return selections_in_project(self.request.user, self.kwargs["project"]).filter(campaign=campaign)

    @extend_schema(responses={201: SelectionDetailSerializer})
    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        campaign = campaign_in_project(request.user, kwargs["project"], kwargs["campaign"])
        serializer = SelectionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        made = selections.select(campaign=campaign, actor=request.user, **serializer.validated_data)
        stored = selections_in_project(request.user, kwargs["project"]).get(pk=made.pk)
        return Response(SelectionDetailSerializer(stored).data, status=status.HTTP_201_CREATED)


class SelectionDetail(APIView):
    @extend_schema(responses=SelectionDetailSerializer)
    def get(self, request: Request, project: str, selection: int) -> Response:
        """One selection with its strata."""
        shown = get_object_or_404(selections_in_project(request.user, project), pk=selection)
        return Response(SelectionDetailSerializer(shown).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, selection: int) -> Response:
        """Remove a selection that no run and no duty uses."""
        removed = get_object_or_404(selections_in_project(request.user, project), pk=selection)
        selections.remove_selection(selection=removed, actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SelectionItems(generics.ListAPIView[SelectedItem]):
    """The items of a selection, each with its probability and stratum."""

    serializer_class = SelectedItemSerializer
    queryset = SelectedItem.objects.none()

    def get_queryset(self) -> QuerySet[SelectedItem]:
        found = selections_in_project(self.request.user, self.kwargs["project"])
        selection = get_object_or_404(found, pk=self.kwargs["selection"])
        return SelectedItem.objects.filter(selection=selection).select_related("item").order_by("pk")


# --- panels ----------------------------------------------------------------------------------------------------------
LEAD = (Role.LEAD,)


class PanelSerializer(serializers.Serializer[Panel]):
    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(max_length=120)
    language = serializers.CharField(max_length=35, allow_blank=True, default="")


class SeatSerializer(serializers.Serializer[PanelSeat]):
    id = serializers.IntegerField(source="pk", read_only=True)
    pseudonym = serializers.CharField(source="annotator.pseudonym", read_only=True)
    sees_verdicts = serializers.BooleanField(
        read_only=True,
        help_text="Leads and researchers see verdicts and others' ratings: their own ratings are marked as not blind.",
    )
    user = serializers.IntegerField(write_only=True, min_value=1, max_value=2**63 - 1)


class PersonSerializer(serializers.Serializer[Annotator]):
    id = serializers.IntegerField(source="pk", read_only=True)
    pseudonym = serializers.CharField(read_only=True)


class RemovalSerializer(serializers.Serializer[Any]):
    typed = serializers.CharField(max_length=80, help_text="The person's pseudonym, as a confirmation.")
    with_ratings = serializers.BooleanField(default=False, help_text="Delete their ratings, too.")
    with_account = serializers.BooleanField(
        default=False, help_text="Erase their account, if only this project has it."
    )


class RemovedSerializer(serializers.Serializer[Any]):
    ratings = serializers.IntegerField(help_text="How many ratings were deleted.")


class People(generics.ListAPIView[Annotator]):
    """The people whose data the project has, by pseudonym; for leads."""

    roles = LEAD
    serializer_class = PersonSerializer
    queryset = Annotator.objects.none()

    def get_queryset(self) -> QuerySet[Annotator]:
        return panels.people_held(access.require(user=self.request.user, slug=self.kwargs["project"], roles=LEAD))


class PersonRemoval(APIView):
    roles = LEAD

    @extend_schema(request=RemovalSerializer, responses=RemovedSerializer)
    def post(self, request: Request, project: str, annotator: int) -> Response:
        """Remove a person's data from the project on their request. This can't be undone."""
        current_project = access.require(user=request.user, slug=project, roles=LEAD)
        person = get_object_or_404(panels.people_held(current_project).select_related("project"), pk=annotator)
        serializer = RemovalSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        deleted = panels.remove_person(annotator=person, actor=request.user, **serializer.validated_data)
        return Response({"ratings": deleted})


class Panels(generics.ListCreateAPIView[Panel]):
    """The project's panels. POST creates one."""

    serializer_class = PanelSerializer
    queryset = Panel.objects.none()

    def get_queryset(self) -> QuerySet[Panel]:
        project = access.require(user=self.request.user, slug=self.kwargs["project"])
        return Panel.objects.visible_to(self.request.user).filter(project=project)

    def perform_create(self, serializer: Any) -> None:
        project = access.require(user=self.request.user, slug=self.kwargs["project"])
        serializer.instance = panels.create(project=project, actor=self.request.user, **serializer.validated_data)


class Seats(generics.ListCreateAPIView[PanelSeat]):
    """The annotators of a panel, by pseudonym. POST adds a member of the project by user id (leads only)."""

    roles: ClassVar = {"POST": LEAD}
    serializer_class = SeatSerializer
    queryset = PanelSeat.objects.none()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Find the panel before the body is read: 404 if there is none."""
        super().initial(request, *args, **kwargs)
        mine = Panel.objects.visible_to(request.user).filter(project__slug=kwargs["project"])
        self.panel = get_object_or_404(mine, pk=kwargs["panel"])

    def get_queryset(self) -> QuerySet[PanelSeat]:
        return panels.seats(self.panel)

    def perform_create(self, serializer: Any) -> None:
        panel = self.panel
        members = Membership.objects.visible_to(self.request.user).filter(project=panel.project_id)
        member = get_object_or_404(members, user=serializer.validated_data["user"])
        seat = panels.seat(panel=panel, user=member.user, actor=self.request.user)
        serializer.instance = panels.seats(panel).get(pk=seat.pk)


class Seat(APIView):
    roles = LEAD

    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, panel: int, seat: int) -> Response:
        """Remove an annotator from the panel. Their ratings are kept."""
        current_project = access.require(user=request.user, slug=project, roles=LEAD)
        panel_seat = get_object_or_404(PanelSeat.objects.filter(panel__project=current_project, panel=panel), pk=seat)
        panels.unseat(seat=panel_seat, actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class DutySettingsSerializer(serializers.Serializer[Duty]):
    priority = serializers.IntegerField(default=0, min_value=-HIGHEST_PRIORITY, max_value=HIGHEST_PRIORITY)
    due_at = serializers.DateTimeField(default=None, allow_null=True)
    quota = serializers.IntegerField(default=None, allow_null=True, min_value=1, max_value=LARGEST_QUOTA)
    paused = serializers.BooleanField(default=False)


class MoreAnnotatorsSerializer(serializers.Serializer[Any]):
    overlap = serializers.IntegerField(min_value=1, max_value=allocation.MOST_OVERLAP, help_text="The number now.")
    more = serializers.IntegerField(min_value=1, max_value=allocation.MOST_OVERLAP)


class ReturnSerializer(serializers.Serializer[Any]):
    annotators = serializers.ListField(
        child=serializers.CharField(max_length=80), max_length=1000, help_text="Pseudonyms."
    )


class ReturnedSerializer(serializers.Serializer[Any]):
    items = serializers.IntegerField()


def _duty(user: User, slug: str, campaign: int, pk: int) -> Duty:
    found = Duty.objects.filter(campaign=campaign_in_project(user, slug, campaign))
    return get_object_or_404(found.select_related("campaign__project"), pk=pk)


class DutyDetail(APIView):
    @extend_schema(responses=DutySettingsSerializer)
    def get(self, request: Request, project: str, campaign: int, duty: int) -> Response:
        """The settings of one duty."""
        return Response(DutySettingsSerializer(_duty(request.user, project, campaign, duty)).data)

    @extend_schema(request=DutySettingsSerializer, responses=DutySettingsSerializer)
    def put(self, request: Request, project: str, campaign: int, duty: int) -> Response:
        """Set priority, deadline, quota and pause; what is left out has its default."""
        changed = _duty(request.user, project, campaign, duty)
        serializer = DutySettingsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        settings = DutySettings(**serializer.validated_data)
        duty_settings.change_duty(duty=changed, settings=settings, actor=request.user)
        return Response(DutySettingsSerializer(changed).data)


class DutyAnnotators(APIView):
    @extend_schema(request=MoreAnnotatorsSerializer, responses=HandedOutSerializer)
    def post(self, request: Request, project: str, campaign: int, duty: int) -> Response:
        """Let more annotators score each item."""
        grown = _duty(request.user, project, campaign, duty)
        serializer = MoreAnnotatorsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        created = duty_settings.add_annotators(duty=grown, actor=request.user, **serializer.validated_data)
        return Response(HandedOutSerializer({"assignments": created}).data)


class DutyReturn(APIView):
    @extend_schema(request=ReturnSerializer, responses=ReturnedSerializer)
    def post(self, request: Request, project: str, campaign: int, duty: int) -> Response:
        """Return the items that these annotators have in progress to the queue."""
        shown = _duty(request.user, project, campaign, duty)
        serializer = ReturnSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        named = set(serializer.validated_data["annotators"])
        keys = [pk for pk, pseudonym, _count in duty_settings.people_with_items(shown) if pseudonym in named]
        returned = duty_settings.return_items(duty=shown, annotators=keys, actor=request.user)
        return Response(ReturnedSerializer({"items": returned}).data)


# --- the closing questionnaire ---------------------------------------------------------------------------------------
class PointCountsSerializer(serializers.Serializer[PointCounts]):
    """How many people chose each point from 1 to 5."""

    people = serializers.IntegerField()
    mean = serializers.FloatField(allow_null=True)
    counts = serializers.ListField(child=serializers.IntegerField())


class CriterionDifficultySerializer(serializers.Serializer[CriterionDifficulty]):
    """`language`: "" where languages with few people are put together; null: too few people answered."""

    criterion = serializers.CharField(source="criterion.key")
    language = serializers.CharField()
    difficulty = PointCountsSerializer(allow_null=True)
    confidence = PointCountsSerializer(allow_null=True)


class ClosingResultsSerializer(serializers.Serializer[ClosingResults]):
    """`answered` of `people` have answered; `waiting` answers are not shown yet, because their group is too small."""

    asked = serializers.BooleanField(source="is_asked")
    people = serializers.IntegerField()
    answered = serializers.IntegerField()
    waiting = serializers.IntegerField()
    criteria = CriterionDifficultySerializer(source="rows", many=True)
    comments = serializers.ListField(child=serializers.CharField())


class ClosingSwitchSerializer(serializers.Serializer[Any]):
    asked = serializers.BooleanField()


def _led(user: User, slug: str, campaign: int) -> Campaign:
    access.require(user=user, slug=slug, roles=(Role.LEAD,))
    return campaign_in_project(user, slug, campaign)


class ClosingQuestionnaire(APIView):
    @extend_schema(responses=ClosingResultsSerializer)
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """What annotators answered to the closing questionnaire, in groups of five people or more; for leads."""
        results = questionnaires.closing_results(_led(request.user, project, campaign))
        return Response(ClosingResultsSerializer(results).data)

    @extend_schema(request=ClosingSwitchSerializer, responses=ClosingResultsSerializer)
    def put(self, request: Request, project: str, campaign: int) -> Response:
        """Switch the closing questionnaire on or off; for leads."""
        current = _led(request.user, project, campaign)
        serializer = ClosingSwitchSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        questionnaires.switch_questionnaire(campaign=current, actor=request.user, **serializer.validated_data)
        return Response(ClosingResultsSerializer(questionnaires.closing_results(current)).data)
