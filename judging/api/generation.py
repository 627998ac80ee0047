"""Generation plans, their texts, and what people decide about them; for leads and researchers."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.models import Dataset, RubricVersion
from judging import tasks
from judging.api.judges import StrictSerializer
from judging.api.runs import BudgetSerializer
from judging.generation import decisions, plans, storing, utterances
from judging.generation.plan_forecasts import GenerationForecast, GeneratorForecast, forecast_plan
from judging.generation.plans import CellProgress, FamilyProgress, PlanPhase, PlanProgress
from judging.generation.specs import PRESETS, SIMULATIONS, Spec, from_yaml, parse_spec, preset
from judging.generation.utterance_judge import utterance_rubric
from judging.models import GenerationAttempt, GenerationPlan, Judge, PlanDataset, PlanGenerator, Realisation

Role = PlanGenerator.Role
USD = {"max_digits": 20, "decimal_places": 8, "allow_null": True}


class PlanGeneratorSerializer(StrictSerializer):
    """A model that writes: its name is the generator of the items."""

    provider = serializers.CharField(max_length=80)
    model = serializers.CharField(max_length=160)
    name = serializers.CharField(max_length=plans.MOST_NAMED, default="", allow_blank=True)
    parameters = serializers.DictField(child=serializers.JSONField(), required=False)


class GenerationPlanSerializer(StrictSerializer):
    """What is to be written: a spec, for a number of families, in these languages, by these generators."""

    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(max_length=plans.MOST_NAMED)
    spec = serializers.JSONField(help_text="A spec, its YAML as a text, or the key of a preset.")
    spec_digest = serializers.CharField(read_only=True)
    languages = serializers.ListField(child=serializers.CharField(max_length=35), max_length=plans.MOST_LANGUAGES)
    families = serializers.IntegerField(
        source="families_planned",
        min_value=1,
        max_value=plans.MOST_FAMILIES,
        help_text="Scenarios; of translations at most so many items, a sample if there are more.",
    )
    generators = PlanGeneratorSerializer(many=True)
    user_models = PlanGeneratorSerializer(
        many=True, default=list, source="asked_user_models", help_text="Of simulations: the models that play the user."
    )
    utterance_judge = serializers.IntegerField(
        source="utterance_judge_id",
        allow_null=True,
        default=None,
        help_text="Of simulations: a judge of the project, which judges every turn of a user.",
    )
    utterance_rubric = serializers.IntegerField(
        source="utterance_rubric_id",
        allow_null=True,
        default=None,
        help_text="The published rubric version of that judge; null: ours for turns of users.",
    )
    source_dataset = serializers.IntegerField(
        source="source_id", required=False, allow_null=True, default=None, help_text="Of translations: the dataset."
    )
    source_language = serializers.CharField(
        max_length=35,
        required=False,
        allow_blank=True,
        help_text="Of translations: the language that is translated from.",
    )
    repeats = serializers.IntegerField(min_value=1, max_value=plans.MOST_TIMES, default=1)
    seed = serializers.IntegerField(min_value=0, max_value=2**53, required=False)
    budget = serializers.DecimalField(max_digits=12, decimal_places=6, min_value=0, allow_null=True, default=None)
    created_at = serializers.DateTimeField(read_only=True)
    started_at = serializers.DateTimeField(read_only=True, allow_null=True)

    def to_representation(self, plan: GenerationPlan) -> dict[str, Any]:
        shown = super().to_representation(plan)
        models = list(plan.generators.all())
        for name, role in (("generators", Role.GENERATOR), ("user_models", Role.USER_MODEL)):
            of_role = [model for model in models if model.role == role]
            shown[name] = PlanGeneratorSerializer(of_role, many=True).data
        return shown


class FamilyProgressSerializer(serializers.Serializer[FamilyProgress]):
    number = serializers.IntegerField()
    planned = serializers.IntegerField()
    written = serializers.IntegerField()
    given_up = serializers.IntegerField()
    set_aside = serializers.IntegerField()
    is_whole = serializers.BooleanField()


class CellProgressSerializer(serializers.Serializer[CellProgress]):
    language = serializers.CharField()
    generator = serializers.CharField()
    planned = serializers.IntegerField()
    written = serializers.IntegerField()
    given_up = serializers.IntegerField()
    discarded = serializers.IntegerField(
        help_text="Replies that broke the rules of the spec. One for a first turn counts for all that share it."
    )


class PlanProgressSerializer(serializers.Serializer[PlanProgress]):
    phase = serializers.ChoiceField(choices=PlanPhase.choices)
    planned = serializers.IntegerField(help_text="Texts.")
    written = serializers.IntegerField()
    given_up = serializers.IntegerField()
    in_flight = serializers.IntegerField()
    waiting = serializers.IntegerField()
    whole = serializers.IntegerField(help_text="Families of which every text is written.")
    percent = serializers.IntegerField()
    attempts = serializers.IntegerField(help_text="Requests sent.")
    discarded = serializers.IntegerField()
    lost = serializers.IntegerField()
    tokens_in = serializers.IntegerField()
    tokens_out = serializers.IntegerField()
    cost = serializers.DecimalField(**USD, help_text="USD.")
    reserved = serializers.DecimalField(**USD)
    estimated = serializers.DecimalField(**USD)
    problems = serializers.DictField(
        child=serializers.IntegerField(), help_text="By code, how many replies were discarded for it."
    )
    families = FamilyProgressSerializer(many=True)


class GenerationPlanDetailSerializer(GenerationPlanSerializer):
    state = serializers.ChoiceField(choices=GenerationPlan.State.choices, read_only=True)
    reason = serializers.CharField(read_only=True, help_text="Why it is paused.")
    only_examples = serializers.BooleanField(read_only=True)
    progress = serializers.SerializerMethodField()
    cells = serializers.SerializerMethodField()

    @extend_schema(responses=PlanProgressSerializer)
    def get_progress(self, plan: GenerationPlan) -> Any:
        return PlanProgressSerializer(plans.plan_progress(plan)).data

    @extend_schema(responses=CellProgressSerializer(many=True))
    def get_cells(self, plan: GenerationPlan) -> Any:
        return CellProgressSerializer(plans.progress_by_cell(plan), many=True).data


class GeneratorForecastSerializer(serializers.Serializer[GeneratorForecast]):
    name = serializers.CharField()
    role = serializers.CharField(help_text="`generator`, `user_model` or `utterance_judge`.")
    texts = serializers.IntegerField()
    requests = serializers.IntegerField()
    tokens_in = serializers.IntegerField()
    tokens_out = serializers.IntegerField()
    cost = serializers.DecimalField(**USD, help_text="USD, likely.")
    worst = serializers.DecimalField(**USD, help_text="USD, at most, about.")


class GenerationForecastSerializer(serializers.Serializer[GenerationForecast]):
    texts = serializers.IntegerField(help_text="Still to be written.")
    requests = serializers.IntegerField()
    tokens = serializers.IntegerField()
    cost = serializers.DecimalField(**USD, help_text="USD, likely.")
    worst = serializers.DecimalField(**USD, help_text="USD, at most, about.")
    is_measured = serializers.BooleanField(help_text="Whether it rests on replies of the plan.")
    generators = GeneratorForecastSerializer(many=True)


class WrittenTextSerializer(serializers.Serializer[Realisation]):
    """A family in one language by one generator."""

    id = serializers.IntegerField(source="pk")
    family = serializers.IntegerField(source="family.number")
    language = serializers.CharField()
    generator = serializers.CharField(source="generator.name")
    simulator = serializers.CharField(
        source="simulator.name", default=None, allow_null=True, help_text="The user model of a conversation; else null."
    )
    repeat = serializers.IntegerField()
    source_item = serializers.CharField(
        source="family.source.external_id", allow_null=True, default=None, help_text="What is translated."
    )
    parameters = serializers.JSONField(source="family.parameters")
    state = serializers.ChoiceField(choices=Realisation.State.choices)
    reason = serializers.CharField(help_text="Why it was given up.")
    discarded = serializers.IntegerField(
        source="discarded_replies", help_text="Replies that were discarded, those for a shared first turn too."
    )
    ended = serializers.ChoiceField(
        choices=Realisation.Ended.choices, allow_blank=True, help_text="How a conversation ended."
    )
    problems = serializers.JSONField(help_text="Of the last discarded reply; of a set-aside conversation its faults.")
    turns = serializers.JSONField()
    fields = serializers.SerializerMethodField(method_name="get_text_fields")  # type: ignore[assignment]
    decision = serializers.ChoiceField(choices=Realisation.Decision.choices, allow_blank=True)
    decision_reason = serializers.CharField()

    @extend_schema(responses={"type": "object", "additionalProperties": {"type": "string"}})
    def get_text_fields(self, text: Realisation) -> Any:
        return text.fields


class GenerationAttemptSerializer(serializers.Serializer[GenerationAttempt]):
    """One request for a text. `problems`: why its reply was discarded."""

    number = serializers.IntegerField()
    step = serializers.ChoiceField(
        choices=Realisation.Step.choices, allow_blank=True, help_text="Of a conversation: what was asked for."
    )
    turn = serializers.IntegerField(help_text="Of a conversation: the number of the user turn, from 0.")
    text = serializers.CharField(help_text="Of a conversation: the user turn that was written or judged.")
    provider = serializers.CharField()
    model = serializers.CharField()
    outcome = serializers.ChoiceField(choices=GenerationAttempt.Outcome.choices)
    problems = serializers.JSONField()
    request = serializers.JSONField()
    reply = serializers.JSONField()
    reason = serializers.CharField()
    served_model = serializers.CharField()
    tokens_in = serializers.IntegerField(allow_null=True)
    tokens_out = serializers.IntegerField(allow_null=True)
    cost = serializers.DecimalField(**USD)
    latency = serializers.FloatField(allow_null=True)
    at = serializers.DateTimeField()


class WrittenTextDetailSerializer(WrittenTextSerializer):
    attempts = serializers.SerializerMethodField()
    opening_attempts = serializers.SerializerMethodField(
        help_text="Of a conversation: the requests for its first turn, which all chatbots share."
    )

    @extend_schema(responses=GenerationAttemptSerializer(many=True))
    def get_attempts(self, text: Realisation) -> Any:
        return GenerationAttemptSerializer(text.attempts.order_by("number"), many=True).data

    @extend_schema(responses=GenerationAttemptSerializer(many=True))
    def get_opening_attempts(self, text: Realisation) -> Any:
        attempts = text.opening.attempts.order_by("number") if text.opening else ()
        return GenerationAttemptSerializer(attempts, many=True).data


class TextDecisionSerializer(StrictSerializer):
    decision = serializers.ChoiceField(choices=Realisation.Decision.choices, allow_blank=True)
    reason = serializers.CharField(max_length=decisions.LONGEST_REASON, default="", allow_blank=True)


class StorePlanSerializer(StrictSerializer):
    name = serializers.CharField(max_length=storing.LONGEST_NAME)
    only = serializers.ChoiceField(choices=PlanDataset.Only.choices, default=PlanDataset.Only.WHOLE)
    with_natives = serializers.BooleanField(default=False, help_text="Store translations beside their sources.")


class StoredPlanSerializer(serializers.Serializer[Any]):
    """`job`: the one that stores the dataset, where it has many texts; `dataset` is null then."""

    dataset = serializers.IntegerField(allow_null=True)
    job = serializers.IntegerField(allow_null=True)


class UtterancesSerializer(StrictSerializer):
    name = serializers.CharField(max_length=120)
    most = serializers.IntegerField(
        min_value=1, allow_null=True, default=None, help_text="So many at random; null: all judged tries."
    )
    seed = serializers.IntegerField(required=False, min_value=0, max_value=2**53)


class StoredUtterancesSerializer(serializers.Serializer[Any]):
    dataset = serializers.IntegerField()


class SpecSerializer(serializers.Serializer[Spec]):
    key = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField()
    version = serializers.IntegerField()
    kind = serializers.CharField()
    digest = serializers.CharField()
    spec = serializers.JSONField(source="stored")


def plans_in(user: User, slug: str) -> tuple[Project, QuerySet[GenerationPlan]]:
    """The project, and the generation plans in it."""
    project = access.require(user=user, slug=slug)
    found = GenerationPlan.objects.visible_to(user).filter(project=project)
    return project, found.select_related("project").prefetch_related("generators")


def _plan(user: User, slug: str, pk: int) -> GenerationPlan:
    return get_object_or_404(plans_in(user, slug)[1], pk=pk)


def _text(user: User, slug: str, plan: int, text: int) -> Realisation:
    return get_object_or_404(
        _plan(user, slug, plan).realisations.select_related(
            "family__source", "generator", "simulator", "opening", "plan__project"
        ),
        pk=text,
    )


def read_spec(given: Any) -> Spec:
    """A preset by its key, YAML, or the values of a spec."""
    if isinstance(given, str):
        return preset(given) if given in (*PRESETS, *SIMULATIONS) else from_yaml(given)
    return parse_spec(given)


def _utterance_judging(project: Project, judge: int | None, rubric: int | None, user: User) -> dict[str, Any]:
    """The utterance judge and its rubric as `plans.create_plan` takes them; our rubric is published if it is needed."""
    if judge is None and rubric is None:
        return {}
    versions = RubricVersion.objects.published().filter(rubric__project=project)
    version = get_object_or_404(versions, pk=rubric) if rubric else utterance_rubric(project=project, actor=user)
    return {
        "utterance_judge": judge and get_object_or_404(Judge.objects.filter(project=project), pk=judge),
        "utterance_rubric": version,
    }


def find_source(project: Project, pk: int) -> Dataset:
    """A dataset of the project, to be translated."""
    found = Dataset.objects.ready().filter(project=project, pk=pk).first()
    if found is None:
        wrong = _("The project has no such dataset.")
        raise Refused(wrong, code="invalid", fields={"source_dataset": wrong})
    return found


class GenerationSpecs(APIView):
    @extend_schema(responses=SpecSerializer(many=True))
    def get(self, request: Request, project: str) -> Response:
        """The presets."""
        access.require(user=request.user, slug=project)
        return Response(SpecSerializer([preset(key) for key in (*PRESETS, *SIMULATIONS)], many=True).data)


class GenerationPlans(generics.ListAPIView[GenerationPlan]):
    """The project's generation plans; posting makes one, and sends nothing."""

    serializer_class = GenerationPlanSerializer
    queryset = GenerationPlan.objects.none()

    def get_queryset(self) -> QuerySet[GenerationPlan]:
        return plans_in(self.request.user, self.kwargs["project"])[1]

    @extend_schema(request=GenerationPlanSerializer, responses={201: GenerationPlanDetailSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Make a plan; `forecast/` says what it takes, `examples/` writes three families, `start/` all."""
        serializer = GenerationPlanSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = dict(serializer.validated_data)
        current_project = plans_in(request.user, project)[0]
        source = values.pop("source_id")
        with transaction.atomic():  # our rubric is published only with a plan that needs it
            judging = _utterance_judging(
                current_project, values.pop("utterance_judge_id"), values.pop("utterance_rubric_id"), request.user
            )
            plan = plans.create_plan(
                project=current_project,
                source=None if source is None else find_source(current_project, source),
                spec=read_spec(values.pop("spec")),
                families=values.pop("families_planned"),
                generators=[plans.GeneratorChoice(**choice) for choice in values.pop("generators")],
                user_models=[plans.GeneratorChoice(**choice) for choice in values.pop("asked_user_models")],
                actor=request.user,
                **judging,
                **values,
            )
        return Response(GenerationPlanDetailSerializer(plan).data, status=201)


class GenerationPlanDetail(APIView):
    @extend_schema(responses=GenerationPlanDetailSerializer)
    def get(self, request: Request, project: str, plan: int) -> Response:
        """One plan and how far it is: by family, and by language and generator."""
        return Response(GenerationPlanDetailSerializer(_plan(request.user, project, plan)).data)


class GenerationPlanForecast(APIView):
    @extend_schema(responses=GenerationForecastSerializer)
    def get(self, request: Request, project: str, plan: int) -> Response:
        """Requests, tokens and USD of the texts that are still to be written."""
        return Response(GenerationForecastSerializer(forecast_plan(_plan(request.user, project, plan))).data)


class _MovePlan(APIView):
    @extend_schema(request=None, responses=GenerationPlanDetailSerializer)
    def post(self, request: Request, project: str, plan: int) -> Response:
        moved = _plan(request.user, project, plan)
        if not self.move(moved, request.user):
            raise Refused(_("The plan is in another state now; nothing was changed."), code="wrong_state")
        if moved.state == GenerationPlan.State.RUNNING:
            tasks.enqueue_plan(moved)
        return Response(GenerationPlanDetailSerializer(moved).data)

    def move(self, plan: GenerationPlan, user: User) -> int | bool:
        raise NotImplementedError


class StartPlanExamples(_MovePlan):
    """Write the first three families."""

    def move(self, plan: GenerationPlan, user: User) -> bool:
        return plans.start_examples(plan=plan, actor=user)


class StartPlan(_MovePlan):
    """Write all families."""

    def move(self, plan: GenerationPlan, user: User) -> bool:
        return plans.start_plan(plan=plan, actor=user)


class PausePlan(_MovePlan):
    """Send nothing more; replies in flight are stored."""

    def move(self, plan: GenerationPlan, user: User) -> bool:
        return plans.pause_plan(plan=plan, actor=user)


class ResumePlan(_MovePlan):
    """Continue a paused plan."""

    def move(self, plan: GenerationPlan, user: User) -> bool:
        return plans.resume_plan(plan=plan, actor=user)


class CancelPlan(_MovePlan):
    """End a plan permanently; what is written is kept."""

    def move(self, plan: GenerationPlan, user: User) -> bool:
        return plans.cancel_plan(plan=plan, actor=user)


class AskPlanAgain(_MovePlan):
    """Ask again for the texts that were given up. Each new request is paid."""

    def move(self, plan: GenerationPlan, user: User) -> int:
        return plans.ask_again(plan=plan, actor=user)


class GenerationPlanBudget(APIView):
    @extend_schema(request=BudgetSerializer, responses=GenerationPlanDetailSerializer)
    def put(self, request: Request, project: str, plan: int) -> Response:
        """Raise, lower or lift the cap. A plan that paused for money has to be resumed besides."""
        capped = _plan(request.user, project, plan)
        serializer = BudgetSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        plans.set_plan_budget(plan=capped, actor=request.user, **serializer.validated_data)
        return Response(GenerationPlanDetailSerializer(capped).data)


class StorePlan(APIView):
    @extend_schema(request=StorePlanSerializer, responses={201: StoredPlanSerializer, 202: StoredPlanSerializer})
    def post(self, request: Request, project: str, plan: int) -> Response:
        """Store the written texts as a dataset; those that were set aside stay out, unless `only` is `every`. A worker
        stores many (202)."""
        kept = _plan(request.user, project, plan)
        serializer = StorePlanSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        dataset = tasks.store_texts_here_or_later(kept, request.user, **serializer.validated_data)
        if dataset is not None:
            return Response({"dataset": dataset.pk, "job": None}, status=201)
        return Response({"dataset": None, "job": kept.job_id}, status=202)


class StoreUtterances(APIView):
    @extend_schema(request=UtterancesSerializer, responses={201: StoredUtterancesSerializer})
    def post(self, request: Request, project: str, plan: int) -> Response:
        """Store the judged turns of a simulation's users as a dataset, refused ones too: for native speakers."""
        judged = _plan(request.user, project, plan)
        serializer = UtterancesSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        dataset = utterances.store_utterances(plan=judged, actor=request.user, **serializer.validated_data)
        return Response({"dataset": dataset.pk}, status=201)


TEXT_FILTERS = {
    "language": "language",
    "generator": "generator__name",
    "simulator": "simulator__name",
    "state": "state",
    "decision": "decision",
    "family": "family__number",
}


class WrittenTexts(generics.ListAPIView[Realisation]):
    """The texts of a plan, family by family."""

    serializer_class = WrittenTextSerializer
    queryset = Realisation.objects.none()

    @extend_schema(
        parameters=[
            OpenApiParameter("language", str),
            OpenApiParameter("generator", str),
            OpenApiParameter("simulator", str),
            OpenApiParameter("state", str, enum=Realisation.State.values),
            OpenApiParameter("decision", str, enum=[Realisation.Decision.KEEP, Realisation.Decision.SET_ASIDE]),
            OpenApiParameter("family", int),
        ]
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """By language, generator, user model, state, decision and family."""
        return super().get(request, *args, **kwargs)

    def get_queryset(self) -> QuerySet[Realisation]:
        plan = _plan(self.request.user, self.kwargs["project"], self.kwargs["plan"])
        asked = self.request.query_params
        filters = {column: asked[name] for name, column in TEXT_FILTERS.items() if asked.get(name)}
        if not str(filters.get("family__number", "0")).isdecimal() or len(str(filters.get("family__number", ""))) > 9:
            wrong = _("Write a whole number.")
            raise Refused(wrong, code="invalid", fields={"family": wrong})
        related = ("family__source", "generator", "simulator", "opening")
        return plan.realisations.filter(**filters).select_related(*related).order_by("pk")


class WrittenTextDetail(APIView):
    @extend_schema(responses=WrittenTextDetailSerializer)
    def get(self, request: Request, project: str, plan: int, text: int) -> Response:
        """One text with every request that was paid for it."""
        return Response(WrittenTextDetailSerializer(_text(request.user, project, plan, text)).data)


class TextDecision(APIView):
    @extend_schema(request=TextDecisionSerializer, responses=WrittenTextSerializer)
    def put(self, request: Request, project: str, plan: int, text: int) -> Response:
        """Keep a text, set it aside, or take that back with an empty decision."""
        decided = _text(request.user, project, plan, text)
        serializer = TextDecisionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        decisions.decide_realisation(realisation=decided, actor=request.user, **serializer.validated_data)
        return Response(WrittenTextSerializer(decided).data)
