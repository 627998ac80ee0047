"""Designs; for leads and researchers."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.api.campaigns import LARGEST_ID
from annotation.models import Dataset, ItemSelection, RubricVersion
from judging import designs, runs, tasks
from judging.api.judges import StrictSerializer
from judging.api.judges import judge_in_project as judges_in
from judging.api.runs import BudgetSerializer, ProgressSerializer
from judging.forecasts import PilotForecast, Range
from judging.models import JudgeDesign, JudgeRun

MONEY = {"max_digits": 20, "decimal_places": 8}


class DesignSerializer(StrictSerializer):
    """A factorial of judges, prompt factors and parameters over the same items."""

    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(max_length=designs.MOST_NAME)
    judges = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID),
        min_length=1,
        max_length=designs.MOST_CELLS,
        write_only=True,
    )
    factors = serializers.DictField(
        child=serializers.ListField(child=serializers.JSONField(), max_length=designs.MOST_CELLS),
        required=False,
        help_text="By name of a prompt factor or parameter, its levels.",
    )
    dataset = serializers.IntegerField(source="dataset_id", min_value=1, max_value=LARGEST_ID)
    rubric_version = serializers.IntegerField(source="rubric_version_id", min_value=1, max_value=LARGEST_ID)
    selection = serializers.IntegerField(
        source="selection_id", min_value=1, max_value=LARGEST_ID, allow_null=True, default=None
    )
    repeats = serializers.IntegerField(min_value=1, max_value=runs.MAX_REPEATS, default=1)
    budget = serializers.DecimalField(
        max_digits=12,
        decimal_places=6,
        min_value=0,
        allow_null=True,
        default=None,
        help_text="Of all runs together, the pilot included.",
    )
    jury = serializers.ChoiceField(choices=JudgeDesign.Jury.choices, allow_blank=True, default="")
    started_at = serializers.DateTimeField(read_only=True, allow_null=True)
    created_at = serializers.DateTimeField(read_only=True)


class CellResultSerializer(serializers.Serializer[designs.CellResult]):
    """One combination of levels, and what came of its run."""

    judge = serializers.IntegerField(source="cell.judge_id")
    name = serializers.CharField(source="cell.judge.name")
    levels = serializers.DictField(source="cell.levels", child=serializers.JSONField())
    run = serializers.IntegerField(source="run.pk", allow_null=True, default=None)
    planned = serializers.IntegerField()
    done = serializers.IntegerField()
    failed = serializers.IntegerField()
    sent = serializers.IntegerField(help_text="Requests.")
    reused = serializers.IntegerField(help_text="Calls settled by replies of earlier runs.")
    paid = serializers.DecimalField(**MONEY, allow_null=True, help_text="USD that this run paid.")
    worth = serializers.DecimalField(
        **MONEY, allow_null=True, help_text="USD that its replies cost when they were sent, reused ones included."
    )
    tokens = serializers.IntegerField()
    verdicts = serializers.IntegerField()
    unreadable = serializers.IntegerField()


class DesignDetailSerializer(DesignSerializer):
    phase = serializers.SerializerMethodField()
    reasons = serializers.SerializerMethodField(help_text="Why its runs are paused.")
    spent = serializers.SerializerMethodField(help_text="USD paid by all runs, the pilot included.")
    progress = serializers.SerializerMethodField()
    cells = serializers.SerializerMethodField()

    @extend_schema(responses=serializers.ChoiceField(choices=designs.DesignPhase.choices))
    def get_phase(self, design: JudgeDesign) -> str:
        return designs.phase_of(design).value

    def get_reasons(self, design: JudgeDesign) -> list[str]:
        return designs.pause_reasons(design)

    def get_spent(self, design: JudgeDesign) -> str:
        return f"{designs.spent_on(design).paid:.8f}"

    @extend_schema(responses=ProgressSerializer)
    def get_progress(self, design: JudgeDesign) -> Any:
        return ProgressSerializer(designs.progress_of_design(design)).data

    @extend_schema(responses=CellResultSerializer(many=True))
    def get_cells(self, design: JudgeDesign) -> Any:
        return CellResultSerializer(designs.cell_results(design), many=True).data


class ForecastRangeSerializer(serializers.Serializer[Range]):
    """A total with the bounds of its 95 % interval."""

    value = serializers.DecimalField(**MONEY)
    low = serializers.DecimalField(**MONEY, allow_null=True)
    high = serializers.DecimalField(**MONEY, allow_null=True)


class PilotForecastSerializer(serializers.Serializer[PilotForecast]):
    """What the replies of the pilot say of the calls that are new."""

    calls = serializers.IntegerField()
    tokens = ForecastRangeSerializer()
    cost = ForecastRangeSerializer(allow_null=True)
    unanswered = serializers.ListField(
        child=serializers.CharField(), help_text="Judges without a reply; there is no interval until each has one."
    )


class DesignForecastSerializer(serializers.Serializer[designs.DesignForecast]):
    calls = serializers.IntegerField()
    answered = serializers.IntegerField(help_text="Calls with a reply from an earlier run or the pilot.")
    shared = serializers.IntegerField(help_text="Further calls whose request another judge of the design sends, too.")
    verdicts = serializers.IntegerField()
    items = serializers.IntegerField()
    tokens_in = serializers.IntegerField(help_text="Of the other calls, from the prompts about a few items.")
    tokens_out = serializers.IntegerField()
    cost = serializers.DecimalField(**MONEY, allow_null=True)
    spent = serializers.DecimalField(**MONEY, allow_null=True, help_text="USD that the pilot has cost.")
    pilot = PilotForecastSerializer(allow_null=True)


def designs_in(user: User, slug: str) -> tuple[Project, QuerySet[JudgeDesign]]:
    """The project, and the designs in it."""
    project = access.require(user=user, slug=slug)
    found = JudgeDesign.objects.visible_to(user).filter(project=project)
    return project, found.select_related("project", "dataset", "rubric_version", "selection")


def _design(user: User, slug: str, pk: int) -> JudgeDesign:
    return get_object_or_404(designs_in(user, slug)[1], pk=pk)


class Designs(generics.ListAPIView[JudgeDesign]):
    """The project's designs; posting makes one, and sends nothing."""

    serializer_class = DesignSerializer
    queryset = JudgeDesign.objects.none()

    def get_queryset(self) -> QuerySet[JudgeDesign]:
        return designs_in(self.request.user, self.kwargs["project"])[1]

    @extend_schema(request=DesignSerializer, responses={201: DesignDetailSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Make a design; `forecast/` says what it takes, `start/` starts it."""
        serializer = DesignSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values, user = serializer.validated_data, request.user
        current_project, judges = judges_in(user, project)
        by_key = judges.in_bulk(values["judges"])
        if missing := [pk for pk in values["judges"] if pk not in by_key]:
            sentence = _("There is no judge %d in this project.") % missing[0]
            raise Refused(sentence, code="judges", fields={"judges": sentence})
        datasets = Dataset.objects.visible_to(user).filter(project=current_project)
        versions = RubricVersion.objects.visible_to(user).filter(rubric__project=current_project)
        selections = ItemSelection.objects.visible_to(user).filter(campaign__project=current_project)
        chosen = values["selection_id"]
        plain = {name: values[name] for name in ("name", "repeats", "budget", "jury")}
        design = designs.create_design(
            project=current_project,
            judges_asked=[by_key[pk] for pk in values["judges"]],
            dataset=get_object_or_404(datasets, pk=values["dataset_id"]),
            rubric_version=get_object_or_404(versions, pk=values["rubric_version_id"]),
            selection=get_object_or_404(selections, pk=chosen) if chosen else None,
            factors=values.get("factors"),
            actor=user,
            **plain,
        )
        return Response(DesignDetailSerializer(design).data, status=201)


class DesignDetail(APIView):
    @extend_schema(responses=DesignDetailSerializer)
    def get(self, request: Request, project: str, design: int) -> Response:
        """One design, how far it is, and a row for each of its cells."""
        return Response(DesignDetailSerializer(_design(request.user, project, design)).data)


class DesignForecastView(APIView):
    @extend_schema(responses=DesignForecastSerializer)
    def get(self, request: Request, project: str, design: int) -> Response:
        """Calls, tokens and USD of all runs; with an interval once a pilot has replies."""
        forecast = designs.forecast_design(_design(request.user, project, design))
        return Response(DesignForecastSerializer(forecast).data)


class _MoveDesign(APIView):
    """Moves every run of a design that can be moved; 409 when none can."""

    @extend_schema(request=None, responses=DesignDetailSerializer)
    def post(self, request: Request, project: str, design: int) -> Response:
        moved = _design(request.user, project, design)
        runs_moved = self.move(moved, request.user)
        if not runs_moved:
            raise Refused(_("No run of this design could be moved; nothing was changed."), code="wrong_state")
        tasks.enqueue_runs(run for run in runs_moved if run.state == JudgeRun.State.RUNNING)
        return Response(DesignDetailSerializer(moved).data)

    def move(self, design: JudgeDesign, user: User) -> list[JudgeRun]:
        raise NotImplementedError


class StartPilot(_MoveDesign):
    """Ask twenty calls of the design beforehand; its runs use their replies."""

    def move(self, design: JudgeDesign, user: User) -> list[JudgeRun]:
        return designs.start_pilot(design=design, actor=user)


class StartDesign(_MoveDesign):
    """Start a run for every cell. Started again, it is the same runs."""

    def move(self, design: JudgeDesign, user: User) -> list[JudgeRun]:
        return designs.start_design(design=design, actor=user)


class PauseDesign(_MoveDesign):
    """Send nothing more; calls in flight come in."""

    def move(self, design: JudgeDesign, user: User) -> list[JudgeRun]:
        return designs.pause_design(design=design, actor=user)


class ResumeDesign(_MoveDesign):
    """Go on with the paused runs."""

    def move(self, design: JudgeDesign, user: User) -> list[JudgeRun]:
        return designs.resume_design(design=design, actor=user)


class CancelDesign(_MoveDesign):
    """End the runs permanently; stored verdicts are kept."""

    def move(self, design: JudgeDesign, user: User) -> list[JudgeRun]:
        return designs.cancel_design(design=design, actor=user)


class DesignBudget(APIView):
    @extend_schema(request=BudgetSerializer, responses=DesignDetailSerializer)
    def put(self, request: Request, project: str, design: int) -> Response:
        """Raise, lower or lift the cap over all runs. Runs that paused for money have to be resumed besides."""
        capped = _design(request.user, project, design)
        serializer = BudgetSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        designs.rebudget_design(design=capped, actor=request.user, **serializer.validated_data)
        return Response(DesignDetailSerializer(capped).data)
