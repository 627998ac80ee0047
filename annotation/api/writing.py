"""Texts written by people in the API: duties to write for leads and researchers, and the author's own side of them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.models import SIGHTED, Project, Role, User
from annotation.collection import texts, texts_read
from annotation.models import Dataset, Panel, WritingDecision, WritingDuty, WritingSubmission, WritingText

ANYONE = tuple(Role)


class WritingDutySerializer(serializers.Serializer[WritingDuty]):
    """A panel's duty to write. `part`: the field that is written, or the role whose turns are."""

    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(max_length=120)
    dataset = serializers.IntegerField(source="dataset_id", help_text="Whose items are the prompts.")
    panel = serializers.IntegerField(source="panel_id")
    kind = serializers.ChoiceField(choices=WritingDuty.Kind.choices, default=WritingDuty.Kind.ANSWER)
    part = serializers.CharField(max_length=60, default="answer")
    most_turns = serializers.IntegerField(min_value=1, max_value=texts.MOST_TURNS, default=1)
    shortest = serializers.IntegerField(min_value=1, max_value=texts.LONGEST_TEXT, default=1)
    longest = serializers.IntegerField(min_value=1, max_value=texts.LONGEST_TEXT, default=8_000)
    per_prompt = serializers.IntegerField(min_value=1, max_value=texts.MOST_PER_PROMPT, default=1)
    generator = serializers.CharField(
        max_length=80, default="", allow_blank=True, help_text="The name of all texts; empty: a code of each person."
    )
    instructions = serializers.CharField(max_length=texts.MOST_CHARACTERS, default="", allow_blank=True)
    seed = serializers.IntegerField(min_value=0, max_value=2**53, required=False)
    state = serializers.ChoiceField(choices=WritingDuty.State.choices, read_only=True)


class WritingProgressSerializer(serializers.Serializer[texts_read.WritingProgress]):
    wanted = serializers.IntegerField(help_text="Prompts, times the people per prompt.")
    writing = serializers.IntegerField()
    submitted = serializers.IntegerField()
    returned = serializers.IntegerField()
    accepted = serializers.IntegerField()
    skipped = serializers.IntegerField()
    released = serializers.IntegerField()
    stored = serializers.IntegerField()
    people = serializers.IntegerField()


class WritingDutyDetailSerializer(WritingDutySerializer):
    progress = serializers.SerializerMethodField()

    @extend_schema(responses=WritingProgressSerializer)
    def get_progress(self, duty: WritingDuty) -> Any:
        return WritingProgressSerializer(texts_read.writing_progress(duty)).data


class WritingStateSerializer(serializers.Serializer[Any]):
    state = serializers.ChoiceField(choices=WritingDuty.State.choices)


class StoreWritingSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=texts_read.LONGEST_NAME, default="", allow_blank=True)


class StoredWritingSerializer(serializers.Serializer[Any]):
    dataset = serializers.IntegerField()


class DecidedWritingSerializer(serializers.Serializer[WritingDecision]):
    decision = serializers.ChoiceField(choices=WritingDecision.Decision.choices)
    comment = serializers.CharField()
    decided_at = serializers.DateTimeField()


class WritingSubmissionSerializer(serializers.Serializer[WritingSubmission]):
    number = serializers.IntegerField()
    texts = serializers.ListField(child=serializers.CharField())
    warnings = serializers.JSONField(help_text="What was disclosed to the author, as `{code, values}`.")
    seconds = serializers.FloatField()
    pasted = serializers.IntegerField(help_text="Characters that were pasted in.")
    submitted_at = serializers.DateTimeField()
    decisions = DecidedWritingSerializer(many=True, help_text="All that leads decided, the last one is in force.")


class HumanTextSerializer(serializers.Serializer[WritingText]):
    """A text of one person for one prompt, as leads see it."""

    id = serializers.IntegerField(source="pk")
    item = serializers.CharField(source="item.external_id", help_text="The item whose prompt it is.")
    language = serializers.CharField(source="item.language")
    annotator = serializers.CharField(source="annotator.pseudonym")
    state = serializers.ChoiceField(choices=WritingText.State.choices)
    skip_reason = serializers.CharField()
    submissions = WritingSubmissionSerializer(many=True)
    stored_in = serializers.IntegerField(source="stored_in_id", allow_null=True)


class WritingDecisionSerializer(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(
        choices=["accepted", "returned", texts_read.RELEASED],
        help_text="`released` gives the place of an unfinished text to somebody else.",
    )
    number = serializers.IntegerField(
        min_value=0, max_value=32_767, default=0, help_text="Of the submission that was read. Needed for a decision."
    )
    comment = serializers.CharField(max_length=texts_read.LONGEST_DECISION_COMMENT, default="", allow_blank=True)


class OwnWritingDutySerializer(serializers.Serializer[WritingDuty]):
    id = serializers.IntegerField(source="pk")
    name = serializers.CharField()
    instructions = serializers.CharField()
    shortest = serializers.IntegerField()
    longest = serializers.IntegerField()
    paused = serializers.SerializerMethodField()

    def get_paused(self, duty: WritingDuty) -> bool:
        return duty.state == WritingDuty.State.PAUSED


class WritingPromptSerializer(serializers.Serializer[Any]):
    """A prompt as its author sees it. A turn that is to be written is null."""

    key = serializers.UUIDField()
    state = serializers.CharField()
    language = serializers.CharField()
    fields = serializers.JSONField()  # type: ignore[assignment]
    turns = serializers.JSONField()
    places = serializers.IntegerField(help_text="How many texts are written at most.")
    least = serializers.IntegerField(help_text="How many of them at least.")
    draft = serializers.ListField(child=serializers.CharField(allow_blank=True))
    comment = serializers.CharField(allow_blank=True, help_text="Why it was sent back.")


class SubmitWritingSerializer(serializers.Serializer[Any]):
    texts = serializers.ListField(child=serializers.CharField(allow_blank=True), max_length=texts.MOST_TURNS)
    seconds = serializers.FloatField(min_value=0, default=0)
    pasted = serializers.IntegerField(min_value=0, max_value=10_000_000, default=0)
    confirmed = serializers.CharField(
        max_length=32,
        default="",
        allow_blank=True,
        help_text="To submit in spite of what was disclosed: the `confirm` of the refusal `writing_warnings`.",
    )


def _project(user: User, slug: str) -> Project:
    return access.require(user=user, slug=slug, roles=SIGHTED)


def _duty(user: User, slug: str, pk: int) -> WritingDuty:
    duties = WritingDuty.objects.filter(project=_project(user, slug))
    return get_object_or_404(duties.select_related("project", "panel", "dataset"), pk=pk)


class WritingDuties(generics.ListAPIView[WritingDuty]):
    """The project's duties to write; posting opens one."""

    serializer_class = WritingDutySerializer
    queryset = WritingDuty.objects.none()

    def get_queryset(self) -> QuerySet[WritingDuty]:
        return WritingDuty.objects.filter(project=_project(self.request.user, self.kwargs["project"]))

    @extend_schema(request=WritingDutySerializer, responses={201: WritingDutyDetailSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Open a duty to write."""
        current_project = _project(request.user, project)
        serializer = WritingDutySerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = dict(serializer.validated_data)
        datasets = Dataset.objects.ready().filter(project=current_project)
        duty = texts.open_writing_duty(
            project=current_project,
            dataset=get_object_or_404(datasets, pk=values.pop("dataset_id")),
            panel=get_object_or_404(Panel.objects.filter(project=current_project), pk=values.pop("panel_id")),
            actor=request.user,
            **values,
        )
        return Response(WritingDutyDetailSerializer(duty).data, status=status.HTTP_201_CREATED)


class WritingDutyDetail(APIView):
    @extend_schema(responses=WritingDutyDetailSerializer)
    def get(self, request: Request, project: str, writing: int) -> Response:
        """One duty to write, and how far it is."""
        return Response(WritingDutyDetailSerializer(_duty(request.user, project, writing)).data)


class WritingDutyState(APIView):
    @extend_schema(request=WritingStateSerializer, responses=WritingDutyDetailSerializer)
    def put(self, request: Request, project: str, writing: int) -> Response:
        """Open, pause or close a duty to write."""
        changed = _duty(request.user, project, writing)
        serializer = WritingStateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        texts.set_writing_state(duty=changed, actor=request.user, **serializer.validated_data)
        return Response(WritingDutyDetailSerializer(changed).data)


class StoreWriting(APIView):
    @extend_schema(request=StoreWritingSerializer, responses={201: StoredWritingSerializer})
    def post(self, request: Request, project: str, writing: int) -> Response:
        """Store the accepted texts as items: among those of the prompts' dataset, or as a dataset with a `name`."""
        kept = _duty(request.user, project, writing)
        serializer = StoreWritingSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        dataset = texts_read.store_writing(duty=kept, actor=request.user, **serializer.validated_data)
        return Response({"dataset": dataset.pk}, status=status.HTTP_201_CREATED)


class HumanTexts(generics.ListAPIView[WritingText]):
    """The texts of a duty to write."""

    serializer_class = HumanTextSerializer
    queryset = WritingText.objects.none()

    @extend_schema(parameters=[OpenApiParameter("state", str, enum=WritingText.State.values)])
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """By state."""
        return super().get(request, *args, **kwargs)

    def get_queryset(self) -> QuerySet[WritingText]:
        duty = _duty(self.request.user, self.kwargs["project"], self.kwargs["writing"])
        human_texts = WritingText.objects.filter(duty=duty).select_related("item", "annotator").order_by("pk")
        if "state" in self.request.query_params:
            state = serializers.ChoiceField(choices=WritingText.State.values)
            human_texts = human_texts.filter(state=state.run_validation(self.request.query_params["state"]))
        return human_texts.prefetch_related("submissions__decisions")


class DecideWriting(APIView):
    @extend_schema(request=WritingDecisionSerializer, responses=HumanTextSerializer)
    def put(self, request: Request, project: str, writing: int, human_text: int) -> Response:
        """Accept a submitted text, send it back with a comment, or give an unfinished one's place to somebody else."""
        human_texts = WritingText.objects.filter(duty=_duty(request.user, project, writing))
        decided = get_object_or_404(human_texts.select_related("item", "annotator", "duty__project"), pk=human_text)
        serializer = WritingDecisionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        if serializer.validated_data["decision"] == texts_read.RELEASED:
            texts_read.release_writing(text=decided, actor=request.user)
        else:
            texts_read.decide_writing(text=decided, actor=request.user, **serializer.validated_data)
        return Response(HumanTextSerializer(decided).data)


# --- the author's side ------------------------------------------------------------------------------------------------


class OwnWritingDuties(APIView):
    roles = ANYONE

    @extend_schema(responses=OwnWritingDutySerializer(many=True))
    def get(self, request: Request, project: str) -> Response:
        """The duties to write of the user's panels in this project."""
        current_project = access.require(user=request.user, slug=project, roles=ANYONE)
        own = texts.writing_duties(request.user).filter(project=current_project)
        return Response(OwnWritingDutySerializer(own, many=True).data)


class TakePrompt(APIView):
    roles = ANYONE

    @extend_schema(request=None, responses={200: WritingPromptSerializer, 204: None})
    def post(self, request: Request, project: str, writing: int) -> Response:
        """The prompt that the user is writing for, else the next one; 204 if none is left."""
        access.require(user=request.user, slug=project, roles=ANYONE)
        try:
            own_duty, annotator = texts.writer_of(user=request.user, duty=writing)
        except WritingDuty.DoesNotExist:
            raise Http404 from None
        text = texts.take_prompt(duty=own_duty, annotator=annotator)
        if text is None:
            return Response(status=status.HTTP_204_NO_CONTENT)
        return Response(_shown(texts.authors_text(user=request.user, key=text.key)))


class SubmitWriting(APIView):
    roles = ANYONE

    @extend_schema(request=SubmitWritingSerializer, responses=WritingPromptSerializer)
    def post(self, request: Request, project: str, writing_key: UUID) -> Response:
        """Submit a text. The same key and texts again are stored once."""
        access.require(user=request.user, slug=project, roles=ANYONE)
        try:
            text = texts.authors_text(user=request.user, key=writing_key)
        except WritingText.DoesNotExist:
            raise Http404 from None
        serializer = SubmitWritingSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        texts.submit_writing(text=text, key=writing_key, **serializer.validated_data)
        text.refresh_from_db(fields=["state", "draft", "key"])
        return Response(_shown(text))


def _shown(text: WritingText) -> Any:
    prompt = texts.writing_prompt(text.duty, text.item)
    newest = text.submissions.order_by("-number").first()
    returned = text.state == WritingText.State.RETURNED and newest is not None
    shown = {
        "key": text.key,
        "state": text.state,
        "language": text.item.language,
        "fields": prompt.fields,
        "turns": prompt.turns,
        "places": prompt.places,
        "least": prompt.least,
        "draft": text.draft,
        "comment": newest.decision.comment if returned and newest and newest.decision else "",
    }
    return WritingPromptSerializer(shown).data
