"""Judge runs, their calls and verdicts; for leads and researchers."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django_filters import rest_framework as filters
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.inputs import holds_nul
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.api.campaigns import LARGEST_ID
from annotation.models import Dataset, ItemSelection, RubricVersion
from judging import perturbed_runs, reading_reasons, runs, tasks
from judging.api.judges import StrictSerializer
from judging.api.judges import judge_in_project as judges_in
from judging.known_replies import UnusedReplies
from judging.models import Attempt, Call, CallBatch, JudgeRun, JudgeRunQuerySet, Verdict
from judging.perturbation import USUAL
from judging.perturbed_runs import MOST_PER_LANGUAGE, PER_LANGUAGE


class ChosenRunSerializer(StrictSerializer):
    """What a run is about."""

    judge = serializers.IntegerField(source="judge_id", min_value=1, max_value=LARGEST_ID)
    dataset = serializers.IntegerField(source="dataset_id", min_value=1, max_value=LARGEST_ID)
    rubric_version = serializers.IntegerField(source="rubric_version_id", min_value=1, max_value=LARGEST_ID)
    selection = serializers.IntegerField(
        source="selection_id",
        min_value=1,
        max_value=LARGEST_ID,
        allow_null=True,
        default=None,
        help_text="Only the items of this selection of a campaign on the dataset are rated.",
    )
    repeats = serializers.IntegerField(min_value=1, max_value=runs.MAX_REPEATS, default=1)
    budget = serializers.DecimalField(max_digits=12, decimal_places=6, min_value=0, allow_null=True, default=None)
    by_batch = serializers.BooleanField(
        default=False, help_text="Ask by the provider's batch API: replies within a day, at the price of batches."
    )


class PerturbationSerializer(StrictSerializer):
    """What an audit run changes."""

    changes = serializers.ListField(
        child=serializers.CharField(max_length=40),
        min_length=1,
        max_length=40,
        default=lambda: [*USUAL[:1]],
        help_text=f"Any of {', '.join(USUAL)}; the shares, in percent, may differ.",
    )
    per_language = serializers.IntegerField(min_value=1, max_value=MOST_PER_LANGUAGE, default=PER_LANGUAGE)
    seed = serializers.IntegerField(min_value=0, max_value=2**31 - 1, default=0)


class RunSerializer(ChosenRunSerializer):
    id = serializers.IntegerField(source="pk", read_only=True)
    key = serializers.CharField(
        max_length=100,
        allow_null=True,
        default=None,
        help_text="Two requests with the same key start only one run. The header Idempotency-Key has the same effect.",
    )
    again = serializers.BooleanField(
        source="pays_again",
        default=False,
        help_text="Ask, and pay, again where an earlier run of the judge has a reply. Otherwise that reply is used.",
    )
    continues = serializers.IntegerField(source="continues_id", read_only=True, allow_null=True)
    perturbation = PerturbationSerializer(
        read_only=True,
        allow_null=True,
        help_text="Of an audit: what it changes, of how many items, drawn by which seed.",
    )
    state = serializers.SerializerMethodField(
        help_text="`finished` once every call of a run that is not cancelled has an answer or has failed."
    )
    reason = serializers.CharField(read_only=True)
    created_at = serializers.DateTimeField(read_only=True)

    @extend_schema_field(serializers.ChoiceField(choices=runs.Phase.choices))
    def get_state(self, run: JudgeRun) -> str:
        is_open = run.has_open_calls if hasattr(run, "has_open_calls") else runs.has_open_calls(run)
        return runs.phase(run, finished=not is_open).value


class ProgressSerializer(serializers.Serializer[runs.RunProgress]):
    finished = serializers.BooleanField()
    planned = serializers.IntegerField()
    waiting = serializers.IntegerField()
    in_flight = serializers.IntegerField()
    settled = serializers.IntegerField()
    failed = serializers.IntegerField()
    verdicts = serializers.DictField(child=serializers.IntegerField())
    reasons = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="Verdicts without a score on the scale, by the code of their reason.",
    )
    attempts = serializers.IntegerField()
    tokens_in = serializers.IntegerField()
    tokens_out = serializers.IntegerField()
    cost = serializers.DecimalField(max_digits=20, decimal_places=8, allow_null=True)
    estimated = serializers.DecimalField(
        max_digits=20,
        decimal_places=8,
        allow_null=True,
        help_text="The part of the cost that is estimated at its upper limit.",
    )
    reserved = serializers.DecimalField(
        max_digits=20, decimal_places=8, allow_null=True, help_text="The most that requests in progress can cost."
    )
    doubted = serializers.IntegerField(
        help_text="Replies for which the provider's own count of tokens was not believed, or another model answered."
    )
    lost = serializers.IntegerField(help_text="Requests that were sent but received no reply.")
    reused = serializers.IntegerField(help_text="Calls settled by a reply of an earlier run; they cost nothing.")
    latency = serializers.FloatField(allow_null=True)


class CallBatchSerializer(serializers.ModelSerializer[CallBatch]):
    """A batch of a run's calls; `status` is what the provider says of it."""

    class Meta:
        model = CallBatch
        fields = ("id", "provider_batch", "status", "calls", "answered", "reason", "sent_at", "ended_at")


class ServedModelSerializer(serializers.Serializer[runs.ServedModel]):
    model = serializers.CharField()
    replies = serializers.IntegerField()
    is_other = serializers.BooleanField(help_text="Whether it is another model than was asked for.")


class RunDetailSerializer(RunSerializer):
    progress = serializers.SerializerMethodField()
    served_models = serializers.SerializerMethodField(help_text="The models that the replies name.")
    batches = CallBatchSerializer(many=True, read_only=True)

    @extend_schema(responses=ProgressSerializer)
    def get_progress(self, run: JudgeRun) -> Any:
        return ProgressSerializer(runs.run_progress(run)).data

    @extend_schema_field(ServedModelSerializer(many=True))
    def get_served_models(self, run: JudgeRun) -> Any:
        return ServedModelSerializer(runs.served_models([run]), many=True).data


class UnusedRepliesSerializer(serializers.Serializer[UnusedReplies]):
    judge = serializers.IntegerField(source="judge.pk")
    rubric_version = serializers.IntegerField(source="rubric_version.pk")
    calls = serializers.IntegerField()
    why = serializers.CharField(help_text="What differs: the model, parameters, messages or rubric.")


class ForecastSerializer(serializers.Serializer[runs.Forecast]):
    calls = serializers.IntegerField()
    answered = serializers.IntegerField(help_text="Calls with a reply from an earlier run, which is used again.")
    verdicts = serializers.IntegerField()
    tokens_in = serializers.IntegerField()
    tokens_out = serializers.IntegerField()
    cost = serializers.DecimalField(max_digits=20, decimal_places=8, allow_null=True, help_text="Of the other calls.")
    tokens_in_again = serializers.IntegerField(help_text="Of all calls, if they are sent again.")
    tokens_out_again = serializers.IntegerField(help_text="Of all calls, if they are sent again.")
    cost_again = serializers.DecimalField(
        max_digits=20, decimal_places=8, allow_null=True, help_text="Of all calls, if they are paid again."
    )
    items = serializers.IntegerField()
    continues = serializers.IntegerField(source="continues.pk", allow_null=True, default=None)
    unused = UnusedRepliesSerializer(many=True, help_text="Earlier replies about these items that are not used.")


class BudgetSerializer(StrictSerializer):
    budget = serializers.DecimalField(max_digits=12, decimal_places=6, min_value=0, allow_null=True)


class CallSerializer(serializers.Serializer[Call]):
    id = serializers.IntegerField(source="pk")
    item = serializers.CharField(source="item.external_id")
    language = serializers.CharField(source="item.language")
    criterion = serializers.CharField(source="criterion.key", default=None, allow_null=True)
    repeat = serializers.IntegerField()
    change = serializers.CharField(help_text="In an audit, what is changed about the item or the request.")
    state = serializers.ChoiceField(choices=Call.State.choices)
    tries = serializers.IntegerField()


class AttemptSerializer(serializers.ModelSerializer[Attempt]):
    class Meta:
        model = Attempt
        fields = (
            *("number", "outcome", "request", "reply", "reason", "served_model"),
            *("tokens_in", "tokens_out", "reserved", "cost", "estimated", "doubt", "latency", "at"),
        )


class NoScoreSerializer(serializers.Serializer[dict[str, str]]):
    """Why a verdict has no score on the scale."""

    code = serializers.CharField(help_text="One of the codes in docs/judges.md.")
    rung = serializers.CharField(help_text="What the reply was read as.")
    found = serializers.CharField(help_text="What stood there, shortened.")
    sentence = serializers.SerializerMethodField()

    def get_sentence(self, reason: dict[str, str]) -> str:
        return reading_reasons.reason_sentence(reason)


class VerdictSerializer(serializers.Serializer[Verdict]):
    id = serializers.IntegerField(source="pk")
    run = serializers.IntegerField(source="run_id")
    judge = serializers.CharField(source="run.judge.name")
    item = serializers.CharField(source="item.external_id")
    language = serializers.CharField(source="item.language")
    criterion = serializers.CharField(source="criterion.key")
    repeat = serializers.IntegerField()
    change = serializers.CharField(help_text="In an audit, what is changed about the item or the request.")
    status = serializers.ChoiceField(choices=Verdict.Status.choices)
    score = serializers.FloatField(allow_null=True)
    applicable = serializers.BooleanField()
    fractional = serializers.BooleanField()
    coerced = serializers.CharField()
    expected = serializers.FloatField(allow_null=True, help_text="The mean of the points by the model's probabilities.")
    confidence = serializers.FloatField(allow_null=True, help_text="The model's probability of the score that it gave.")
    rationale = serializers.CharField()
    reason = NoScoreSerializer(allow_null=True, help_text="Null for a score on the scale, and for imported verdicts.")


class CallDetailSerializer(CallSerializer):
    attempts = AttemptSerializer(many=True)


class RunFilters(filters.FilterSet):
    judge = filters.NumberFilter(min_value=1, max_value=LARGEST_ID)
    dataset = filters.NumberFilter(min_value=1, max_value=LARGEST_ID)
    state = filters.ChoiceFilter(choices=runs.Phase.choices, method="in_state")

    def in_state(self, listed: QuerySet[JudgeRun], _name: str, state: str) -> QuerySet[JudgeRun]:
        return runs.in_phase(listed, runs.Phase(state))


class CallFilters(filters.FilterSet):
    state = filters.ChoiceFilter(choices=Call.State.choices)
    language = filters.CharFilter(field_name="item__language")
    item = filters.CharFilter(field_name="item__external_id")


class VerdictFilters(filters.FilterSet):
    run = filters.NumberFilter(min_value=1, max_value=LARGEST_ID)
    judge = filters.NumberFilter(field_name="run__judge", min_value=1, max_value=LARGEST_ID)
    status = filters.ChoiceFilter(choices=Verdict.Status.choices)
    criterion = filters.CharFilter(field_name="criterion__key")
    language = filters.CharFilter(field_name="item__language")
    item = filters.CharFilter(field_name="item__external_id")


def run_in_project(user: User, slug: str) -> tuple[Project, JudgeRunQuerySet]:
    """The project, and the runs in it."""
    project = access.require(user=user, slug=slug)
    judge_runs = JudgeRun.objects.visible_to(user).filter(project=project)
    return project, judge_runs.select_related("project", "judge")


def _run(user: User, slug: str, pk: int) -> JudgeRun:
    return get_object_or_404(run_in_project(user, slug)[1], pk=pk)


def _chosen(request: Request, slug: str, serializer: ChosenRunSerializer) -> dict[str, Any]:
    """The objects that a request names for a run. All of them must be in the project (404 otherwise)."""
    serializer.is_valid(raise_exception=True)
    values, user = serializer.validated_data, request.user
    project = access.require(user=user, slug=slug)
    selected = ItemSelection.objects.visible_to(user).filter(campaign__project=project)
    return {
        **_rows_of(user, slug, values),
        "selection": get_object_or_404(selected, pk=values["selection_id"]) if values["selection_id"] else None,
        "repeats": values["repeats"],
        "budget": values["budget"],
        "by_batch": values["by_batch"],
    }


def _rows_of(user: User, slug: str, values: dict[str, Any]) -> dict[str, Any]:
    project, judges = judges_in(user, slug)
    versions = RubricVersion.objects.visible_to(user).filter(rubric__project=project)
    return {
        "judge": get_object_or_404(judges, pk=values["judge_id"]),
        "dataset": get_object_or_404(Dataset.objects.visible_to(user), project=project, pk=values["dataset_id"]),
        "rubric_version": get_object_or_404(versions, pk=values["rubric_version_id"]),
    }


def _idempotency_key(request: Request) -> str | None:
    key: str = request.headers.get("Idempotency-Key", "").strip()
    if len(key) > 100 or holds_nul(key):
        sentence = _("A key can have at most 100 characters.")
        raise Refused(sentence, code="key", fields={"key": sentence})
    return key or None


class Runs(generics.ListAPIView[JudgeRun]):
    """The project's runs; posting starts one."""

    serializer_class = RunSerializer
    filterset_class = RunFilters
    queryset = JudgeRun.objects.none()

    def get_queryset(self) -> QuerySet[JudgeRun]:
        return runs.with_open_calls(run_in_project(self.request.user, self.kwargs["project"])[1])

    @extend_schema(request=RunSerializer, responses={201: RunDetailSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Start a run; `forecast/` gives its calls and cost beforehand. A second request with the same key starts no
        second run."""
        serializer = RunSerializer(data=request.data)
        chosen = _chosen(request, project, serializer)
        key, again = serializer.validated_data["key"], serializer.validated_data["pays_again"]
        run = runs.start_judge_run(actor=request.user, key=key or _idempotency_key(request), again=again, **chosen)
        tasks.enqueue_run(run.pk)
        return Response(RunDetailSerializer(run).data, status=201)


class RunForecast(APIView):
    @extend_schema(request=ChosenRunSerializer, responses=ForecastSerializer)
    def post(self, request: Request, project: str) -> Response:
        """The number of calls, and estimates of tokens and USD, for a run; it is not started."""
        chosen = _chosen(request, project, ChosenRunSerializer(data=request.data))
        runs.refuse_unfit(**chosen)
        del chosen["budget"]
        return Response(ForecastSerializer(runs.forecast(explains=True, **chosen)).data)


class ChosenAuditSerializer(PerturbationSerializer):
    """What an audit run is about."""

    judge = serializers.IntegerField(source="judge_id", min_value=1, max_value=LARGEST_ID)
    dataset = serializers.IntegerField(source="dataset_id", min_value=1, max_value=LARGEST_ID)
    rubric_version = serializers.IntegerField(source="rubric_version_id", min_value=1, max_value=LARGEST_ID)
    budget = serializers.DecimalField(max_digits=12, decimal_places=6, min_value=0, allow_null=True, default=None)


class StartedAuditSerializer(ChosenAuditSerializer):
    key = serializers.CharField(
        max_length=100, allow_null=True, default=None, help_text="Two requests with the same key start only one run."
    )


class PerturbationForecastSerializer(ForecastSerializer):
    perturbed = serializers.DictField(
        child=serializers.IntegerField(), help_text="By change, how many items it changes; the others are left out."
    )


def _chosen_audit(request: Request, slug: str, serializer: ChosenAuditSerializer) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    values = serializer.validated_data
    chosen = _rows_of(request.user, slug, values)
    return chosen | {name: values[name] for name in ("changes", "per_language", "seed", "budget")}


class Audits(APIView):
    @extend_schema(request=StartedAuditSerializer, responses={201: RunDetailSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Start an audit run: a judge scores some items, unchanged and with changes. A second request with the same key
        starts no second run.

        Its figures are the statistics `perturbation.*` of a campaign's numbers.
        """
        serializer = StartedAuditSerializer(data=request.data)
        chosen = _chosen_audit(request, project, serializer)
        key = serializer.validated_data["key"] or _idempotency_key(request)
        run = perturbed_runs.start_perturbed_run(actor=request.user, key=key, **chosen)
        tasks.enqueue_run(run.pk)
        return Response(RunDetailSerializer(run).data, status=201)


class AuditForecast(APIView):
    @extend_schema(request=ChosenAuditSerializer, responses=PerturbationForecastSerializer)
    def post(self, request: Request, project: str) -> Response:
        """The number of calls, and estimates of tokens and USD, for an audit run; it is not started."""
        chosen = _chosen_audit(request, project, ChosenAuditSerializer(data=request.data))
        budget, seed = chosen.pop("budget"), chosen.pop("seed")
        perturbed_runs.refuse_unfit_audit(budget=budget, **chosen)
        return Response(PerturbationForecastSerializer(perturbed_runs.forecast_audit(seed=seed, **chosen)).data)


class RunDetail(APIView):
    @extend_schema(responses=RunDetailSerializer)
    def get(self, request: Request, project: str, run: int) -> Response:
        """One run with its progress."""
        return Response(RunDetailSerializer(_run(request.user, project, run)).data)


class _Move(APIView):
    """Moves a run from one state to another; 409 when it is not in the state for that."""

    @extend_schema(request=None, responses=RunDetailSerializer)
    def post(self, request: Request, project: str, run: int) -> Response:
        moved = _run(request.user, project, run)
        if not self.move(moved, request.user):
            sentence = _("The run is %s; nothing was changed.") % moved.get_state_display().lower()
            raise Refused(sentence, code="wrong_state")
        return Response(RunDetailSerializer(moved).data)

    def move(self, run: JudgeRun, user: User) -> bool:
        raise NotImplementedError


class Pause(_Move):
    """Pause a run: no more calls are sent; replies of calls in flight are still stored."""

    def move(self, run: JudgeRun, user: User) -> bool:
        return runs.pause_run(run=run, actor=user)


class Resume(_Move):
    """Go on with a paused run."""

    def move(self, run: JudgeRun, user: User) -> bool:
        resumed = runs.resume_run(run=run, actor=user)
        if resumed:
            tasks.enqueue_run(run.pk)
        return resumed


class Cancel(_Move):
    """End a run permanently; stored verdicts are kept."""

    def move(self, run: JudgeRun, user: User) -> bool:
        return runs.cancel_run(run=run, actor=user)


class RerunSerializer(StrictSerializer):
    statuses = serializers.ListField(
        child=serializers.ChoiceField(choices=runs.RERUN),
        min_length=1,
        default=lambda: [*runs.RERUN[:1]],
        help_text="Why a call is repeated: it failed, or a verdict of its reply has this status.",
    )


class Rerun(APIView):
    @extend_schema(request=RerunSerializer, responses=RunDetailSerializer)
    def post(self, request: Request, project: str, run: int) -> Response:
        """Repeat the failed calls, or the calls whose verdicts have one of the given statuses. They are paid again. 409
        if there are none."""
        again = _run(request.user, project, run)
        serializer = RerunSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        runs.rerun_failed(run=again, actor=request.user, **serializer.validated_data)
        tasks.enqueue_run(again.pk)
        return Response(RunDetailSerializer(again).data)


class RerunFailed(_Move):
    """Send the failed calls again; 409 if there are none."""

    def move(self, run: JudgeRun, user: User) -> bool:
        runs.rerun_failed(run=run, actor=user)
        tasks.enqueue_run(run.pk)
        return True


class Budget(APIView):
    @extend_schema(request=BudgetSerializer, responses=RunDetailSerializer)
    def put(self, request: Request, project: str, run: int) -> Response:
        """Raise, lower or remove the cap. A run that paused because of its cap must also be resumed."""
        capped = _run(request.user, project, run)
        serializer = BudgetSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        runs.rebudget(run=capped, actor=request.user, **serializer.validated_data)
        return Response(RunDetailSerializer(capped).data)


class Calls(generics.ListAPIView[Call]):
    """The calls of a run; each one's own address has its attempts."""

    serializer_class = CallSerializer
    filterset_class = CallFilters
    queryset = Call.objects.none()

    def get_queryset(self) -> QuerySet[Call]:
        run = _run(self.request.user, self.kwargs["project"], self.kwargs["run"])
        return run.calls.select_related("item", "criterion").defer("item__turns", "item__fields", "item__attributes")


class CallDetail(APIView):
    @extend_schema(responses=CallDetailSerializer)
    def get(self, request: Request, project: str, run: int, call: int) -> Response:
        """One call with every request that was sent for it and what came back."""
        calls = _run(request.user, project, run).calls.select_related("item", "criterion").prefetch_related("attempts")
        return Response(CallDetailSerializer(get_object_or_404(calls, pk=call)).data)


class Verdicts(generics.ListAPIView[Verdict]):
    """The project's verdicts. Verdicts of audits and pilots are included only if the query names their run.

    Only verdicts with status `ok` enter a figure.
    """

    serializer_class = VerdictSerializer
    filterset_class = VerdictFilters
    queryset = Verdict.objects.none()

    def get_queryset(self) -> QuerySet[Verdict]:
        mine = run_in_project(self.request.user, self.kwargs["project"])[1].order_by()
        if not self.request.query_params.get("run", "").strip():
            mine = mine.ordinary()
        verdicts = Verdict.objects.filter(run__in=mine.values("pk")).select_related("run__judge", "item", "criterion")
        return verdicts.defer("item__turns", "item__fields", "item__attributes")
