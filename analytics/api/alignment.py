"""Alignments; for leads and researchers."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access, jobs
from accounts.models import Role, User
from analytics.figures import Figure
from analytics.judges import alignments
from analytics.judges.alignments import Confusion, ShownLook, TunedVersion
from annotation.api.campaigns import LARGEST_ID
from annotation.models import Campaign
from judging import judges, tasks
from judging.api.judges import OwnTextSerializer, StrictSerializer
from judging.api.runs import BudgetSerializer
from judging.models import Alignment, AlignmentCandidate, AlignmentProposal, AlignmentSearch, Judge
from judging.versions import alignment, proposals

NULLABLE = {"allow_null": True}


class AlignmentSerializer(StrictSerializer):
    """What is stated before the first version of a judge is scored."""

    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(max_length=100)
    campaign = serializers.IntegerField(source="campaign_id", min_value=1, max_value=LARGEST_ID)
    base = serializers.IntegerField(source="base_id", min_value=1, max_value=LARGEST_ID, help_text="The judge.")
    share = serializers.FloatField(
        min_value=alignment.LEAST_SHARE, max_value=alignment.MOST_SHARE, default=0.4, help_text="Of locked scenarios."
    )
    looks = serializers.IntegerField(
        source="looks_allowed", min_value=1, max_value=alignment.MOST_LOOKS, default=3, help_text="Looks allowed."
    )
    measure = serializers.ChoiceField(choices=Alignment.Measure.choices, default="accuracy")
    confidence = serializers.FloatField(min_value=0.5, max_value=0.99, default=0.95)
    seed = serializers.IntegerField(min_value=-(2**63), max_value=2**63 - 1, required=False)
    budget = serializers.DecimalField(
        max_digits=12, decimal_places=6, min_value=0, allow_null=True, default=None, help_text="Of everything it asks."
    )
    closed_at = serializers.DateTimeField(read_only=True, allow_null=True)
    created_at = serializers.DateTimeField(read_only=True)


class AlignmentFigureSerializer(serializers.Serializer[Figure]):
    """A figure with its interval and counts; `value` is null with the `reason`."""

    value = serializers.FloatField(**NULLABLE)
    low = serializers.FloatField(**NULLABLE)
    high = serializers.FloatField(**NULLABLE)
    n_items = serializers.IntegerField()
    n_clusters = serializers.IntegerField(**NULLABLE)
    n_ratings = serializers.IntegerField(help_text="Pairs of item and criterion.")
    n_missing = serializers.IntegerField(help_text="Pairs without a readable verdict.")
    method = serializers.CharField()
    reason = serializers.CharField()


class AlignmentVersionSerializer(serializers.Serializer[TunedVersion]):
    """A version of the judge on the tuning items."""

    judge = serializers.IntegerField(source="candidate.judge_id")
    name = serializers.CharField(source="candidate.judge.name")
    made_from = serializers.IntegerField(
        source="candidate.judge.parent_id", allow_null=True, help_text="The judge that it was made from."
    )
    origin = serializers.ChoiceField(source="candidate.origin", choices=AlignmentCandidate.Origin.choices)
    run = serializers.IntegerField(source="run.pk", allow_null=True, default=None)
    planned = serializers.IntegerField(help_text="Calls.")
    done = serializers.IntegerField()
    answered = serializers.BooleanField(source="is_answered")
    score = AlignmentFigureSerializer(**NULLABLE)
    gain = AlignmentFigureSerializer(**NULLABLE)
    languages = serializers.DictField(child=AlignmentFigureSerializer())


class AlignmentLookSerializer(serializers.Serializer[ShownLook]):
    """A look at the locked split; figures are empty until all calls are answered.

    `tuning`, `test`, `base`, `gain` and `overfit`, with intervals at the corrected level.
    """

    number = serializers.IntegerField(source="look.number")
    judge = serializers.IntegerField(source="look.candidate.judge_id")
    taken_at = serializers.DateTimeField(source="look.taken_at")
    level = serializers.FloatField(help_text="Percent.")
    is_later = serializers.BooleanField(help_text="The version was made after the first look.")
    figures = serializers.DictField(child=AlignmentFigureSerializer())
    languages = serializers.DictField(child=serializers.DictField(child=AlignmentFigureSerializer()))


class LanguageSplitSerializer(serializers.Serializer[alignment.LanguageSplit]):
    language = serializers.CharField()
    tuning_items = serializers.IntegerField()
    tuning_scenarios = serializers.IntegerField()
    test_items = serializers.IntegerField()
    test_scenarios = serializers.IntegerField()
    is_short = serializers.BooleanField(help_text="Too few scenarios to say much.")


class ProposalSerializer(serializers.Serializer[AlignmentProposal]):
    """A version that a model was asked to write."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    provider = serializers.CharField()
    model = serializers.CharField()
    state = serializers.CharField(source="job.state", help_text="waiting, running, finished, failed or cancelled.")
    reason = serializers.CharField(help_text="Why no version came of it.")
    judge = serializers.IntegerField(source="candidate.judge_id", allow_null=True, default=None)
    cost = serializers.DecimalField(max_digits=12, decimal_places=8, allow_null=True)
    request = serializers.DictField(child=serializers.JSONField())
    reply = serializers.DictField(child=serializers.JSONField())


class NewSearchSerializer(StrictSerializer):
    """How versions with examples are searched for."""

    method = serializers.ChoiceField(choices=AlignmentSearch.Method.choices)
    steps = serializers.IntegerField(min_value=1, max_value=proposals.MOST_STEPS)
    seed = serializers.IntegerField(min_value=-(2**63), max_value=2**63 - 1, required=False)


class VersionSearchSerializer(serializers.Serializer[AlignmentSearch]):
    """A search for versions: `done` of `steps`; its job can be cancelled."""

    id = serializers.IntegerField(source="pk")
    method = serializers.ChoiceField(choices=AlignmentSearch.Method.choices)
    steps = serializers.IntegerField()
    seed = serializers.IntegerField()
    state = serializers.CharField(source="job.state", help_text="waiting, running, finished, failed or cancelled.")
    job = serializers.IntegerField(source="job_id")
    done = serializers.IntegerField()
    reason = serializers.CharField(help_text="Why it ended before its last step.")


class AlignmentDetailSerializer(AlignmentSerializer):
    tuning = serializers.IntegerField(source="tuning_id", help_text="The selection of the tuning items.")
    split = serializers.SerializerMethodField()
    versions = serializers.SerializerMethodField()
    looks_left = serializers.SerializerMethodField()
    looks_taken = serializers.SerializerMethodField()
    proposals = serializers.SerializerMethodField()
    searches = VersionSearchSerializer(many=True)

    @extend_schema(responses=LanguageSplitSerializer(many=True))
    def get_split(self, current: Alignment) -> Any:
        return LanguageSplitSerializer(alignment.split_by_language(current), many=True).data

    @extend_schema(responses=AlignmentVersionSerializer(many=True))
    def get_versions(self, current: Alignment) -> Any:
        return AlignmentVersionSerializer(alignments.tuned_versions(current), many=True).data

    @extend_schema(responses=ProposalSerializer(many=True))
    def get_proposals(self, current: Alignment) -> Any:
        return ProposalSerializer(current.proposals.select_related("job", "candidate"), many=True).data

    def get_looks_left(self, current: Alignment) -> int:
        return alignment.looks_left(current)

    @extend_schema(responses=AlignmentLookSerializer(many=True))
    def get_looks_taken(self, current: Alignment) -> Any:
        return AlignmentLookSerializer(alignments.shown_looks(current), many=True).data


class NewVersionSerializer(StrictSerializer):
    """The next version of a judge in an alignment: its own instructions, and texts in the place of the rubric's."""

    made_from = serializers.IntegerField(
        min_value=1, max_value=LARGEST_ID, help_text="A judge that is a version already."
    )
    name = serializers.CharField(max_length=120)
    instructions = serializers.CharField(max_length=judges.TEXTS["instructions"], allow_blank=True, default="")
    own_texts = OwnTextSerializer(many=True, required=False)


class ProposedVersionSerializer(StrictSerializer):
    """Which model writes the next version."""

    name = serializers.CharField(max_length=120)
    provider = serializers.CharField(max_length=80)
    model = serializers.CharField(max_length=160)
    tokens = serializers.IntegerField(
        min_value=1, max_value=proposals.MOST_TOKENS, default=proposals.TOKENS, help_text="Most of the reply."
    )


class ConfirmedLookSerializer(StrictSerializer):
    confirm = serializers.BooleanField(help_text="true: a look is counted and can't be taken back.")


class ConfirmedClosingSerializer(StrictSerializer):
    confirm = serializers.BooleanField(help_text="true: the looks that are left are given up for good.")


class ConfusionSerializer(serializers.Serializer[Confusion]):
    """A tuning item and criterion on which a version differs from the panel."""

    item = serializers.CharField(source="item.external_id")
    language = serializers.CharField(source="item.language")
    criterion = serializers.CharField(source="criterion.key")
    reference = serializers.FloatField(source="label")
    score = serializers.FloatField(source="verdict.score")
    rationale = serializers.CharField(source="verdict.rationale")
    panel_rationales = serializers.SerializerMethodField()

    def get_panel_rationales(self, confusion: Confusion) -> list[str]:
        return [rating.rationale for rating in confusion.ratings if rating.rationale]


def _alignments(user: User, slug: str) -> QuerySet[Alignment]:
    project = access.require(user=user, slug=slug)
    found = Alignment.objects.visible_to(user).filter(project=project)
    related = ("project", "campaign__dataset", "campaign__rubric_version", "base", "tuning", "test")
    return found.select_related(*related).prefetch_related("campaign__rubric_version__criteria")


def _candidate(user: User, slug: str, alignment_pk: int, judge: int) -> AlignmentCandidate:
    current = get_object_or_404(_alignments(user, slug), pk=alignment_pk)
    candidate = get_object_or_404(current.candidates.select_related("judge__project"), judge=judge)
    candidate.alignment = current
    return candidate


class Alignments(generics.ListAPIView[Alignment]):
    """The project's alignments; posting splits the labels, and sends nothing."""

    serializer_class = AlignmentSerializer
    queryset = Alignment.objects.none()

    def get_queryset(self) -> QuerySet[Alignment]:
        return _alignments(self.request.user, self.kwargs["project"])

    @extend_schema(request=AlignmentSerializer, responses={201: AlignmentDetailSerializer})
    def post(self, request: Request, project: str) -> Response:
        """State what is aligned and split the campaign's labels into tuning and locked items."""
        serializer = AlignmentSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values, user = dict(serializer.validated_data), request.user
        current_project = access.require(user=user, slug=project)
        campaigns = Campaign.objects.visible_to(user).filter(project=current_project)
        askable = Judge.objects.visible_to(user).filter(project=current_project)
        created = alignment.create_alignment(
            campaign=get_object_or_404(campaigns, pk=values.pop("campaign_id")),
            base=get_object_or_404(askable, pk=values.pop("base_id")),
            looks=values.pop("looks_allowed"),
            actor=user,
            **values,
        )
        return Response(AlignmentDetailSerializer(created).data, status=201)


class AlignmentDetail(APIView):
    @extend_schema(responses=AlignmentDetailSerializer)
    def get(self, request: Request, project: str, alignment_pk: int) -> Response:
        """The split, every version on the tuning items, and what the looks have shown."""
        current = get_object_or_404(_alignments(request.user, project), pk=alignment_pk)
        return Response(AlignmentDetailSerializer(current).data)


class AlignmentBudget(APIView):
    @extend_schema(request=BudgetSerializer, responses=AlignmentDetailSerializer)
    def put(self, request: Request, project: str, alignment_pk: int) -> Response:
        """Raise, lower or remove the cap over everything that an alignment asks."""
        current = get_object_or_404(_alignments(request.user, project), pk=alignment_pk)
        serializer = BudgetSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        alignment.rebudget_alignment(alignment=current, actor=request.user, **serializer.validated_data)
        return Response(AlignmentDetailSerializer(current).data)


class CloseAlignment(APIView):
    @extend_schema(request=ConfirmedClosingSerializer, responses=AlignmentDetailSerializer)
    def post(self, request: Request, project: str, alignment_pk: int) -> Response:
        """Give up the looks that are left. Without a look so far, what was locked is free for another alignment."""
        access.require(user=request.user, slug=project, roles=(Role.LEAD,))
        current = get_object_or_404(_alignments(request.user, project), pk=alignment_pk)
        serializer = ConfirmedClosingSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        if not serializer.validated_data["confirm"]:
            sentence = "An alignment is closed only when it is confirmed: send true."
            raise serializers.ValidationError({"confirm": [sentence]})
        alignment.close_alignment(alignment=current, actor=request.user)
        return Response(AlignmentDetailSerializer(current).data)


class AlignmentVersions(APIView):
    @extend_schema(request=NewVersionSerializer, responses={201: AlignmentDetailSerializer})
    def post(self, request: Request, project: str, alignment_pk: int) -> Response:
        """Make a version and ask it about the tuning items."""
        get_object_or_404(_alignments(request.user, project), pk=alignment_pk)
        serializer = NewVersionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        parent = _candidate(request.user, project, alignment_pk, values["made_from"])
        texts = [dict(text) for text in values.get("own_texts", ())]
        added = alignment.add_candidate(
            alignment=parent.alignment,
            parent=parent.judge,
            variant=alignment.edited_variant(
                parent.alignment, parent.judge, instructions=values["instructions"], own_texts=texts
            ),
            name=values["name"],
            actor=request.user,
        )
        tasks.enqueue_run(alignment.start_tuning(candidate=added, actor=request.user).pk)
        return Response(AlignmentDetailSerializer(parent.alignment).data, status=201)


class AlignmentVersionRun(APIView):
    @extend_schema(request=None, responses=AlignmentDetailSerializer)
    def post(self, request: Request, project: str, alignment_pk: int, judge: int) -> Response:
        """Ask a version about the tuning items. Started again, it is the same run."""
        candidate = _candidate(request.user, project, alignment_pk, judge)
        tasks.enqueue_run(alignment.start_tuning(candidate=candidate, actor=request.user).pk)
        return Response(AlignmentDetailSerializer(candidate.alignment).data)


class AlignmentConfusions(APIView):
    @extend_schema(
        parameters=[OpenApiParameter("language", str), OpenApiParameter("criterion", str)],
        responses=ConfusionSerializer(many=True),
    )
    def get(self, request: Request, project: str, alignment_pk: int, judge: int) -> Response:
        """The tuning items on which a version differs most from the panel, with the words of both."""
        candidate = _candidate(request.user, project, alignment_pk, judge)
        current = candidate.alignment
        run = alignment.run_of(current, candidate.judge, current.tuning)
        about = {name: request.query_params.get(name, "") for name in ("language", "criterion")}
        listed, _count = alignments.confusions(current, run, **about)
        return Response(ConfusionSerializer(listed, many=True).data)


class ProposeVersion(APIView):
    @extend_schema(request=ProposedVersionSerializer, responses={202: ProposalSerializer})
    def post(self, request: Request, project: str, alignment_pk: int, judge: int) -> Response:
        """Have a model write the next version from this one's differences on the tuning items, as a job."""
        candidate = _candidate(request.user, project, alignment_pk, judge)
        serializer = ProposedVersionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        current = candidate.alignment
        cases = alignments.proposal_cases(current, alignment.run_of(current, candidate.judge, current.tuning))
        proposal = proposals.begin_proposal(
            candidate=candidate, cases=cases, actor=request.user, **serializer.validated_data
        )
        jobs.enqueue(proposal)
        return Response(ProposalSerializer(proposal).data, status=202)


class StartSearch(APIView):
    @extend_schema(request=NewSearchSerializer, responses={202: VersionSearchSerializer})
    def post(self, request: Request, project: str, alignment_pk: int) -> Response:
        """Search for versions with examples from the tuning items, as a job; the alignment's budget caps it."""
        current = get_object_or_404(_alignments(request.user, project), pk=alignment_pk)
        serializer = NewSearchSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        begun = proposals.begin_search(alignment_searched=current, actor=request.user, **serializer.validated_data)
        jobs.enqueue(begun)
        return Response(VersionSearchSerializer(begun).data, status=202)


class TakeLook(APIView):
    @extend_schema(request=ConfirmedLookSerializer, responses={201: AlignmentDetailSerializer})
    def post(self, request: Request, project: str, alignment_pk: int, judge: int) -> Response:
        """Test a version on the locked items: counted, written to the audit trail, refused when no look is left."""
        candidate = _candidate(request.user, project, alignment_pk, judge)
        serializer = ConfirmedLookSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        if not serializer.validated_data["confirm"]:
            raise serializers.ValidationError({"confirm": ["A look is taken only when it is confirmed: send true."]})
        look = alignment.take_look(candidate=candidate, actor=request.user)
        tasks.enqueue_runs(alignment.look_runs(look))
        return Response(AlignmentDetailSerializer(candidate.alignment).data, status=201)
