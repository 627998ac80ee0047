"""Collections of prompts in the API: leads and researchers set them up; writers and reviewers work with their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast
from uuid import uuid4

from django.db.models import Q, QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access
from accounts.api_requests import UserThrottle
from accounts.inputs import is_storable
from accounts.models import SIGHTED, Role, User
from accounts.refusals import Refused
from annotation.collection import prompt_collections, prompt_exports, prompt_originality, prompt_writing
from annotation.collection.prompt_collections import CollectionProgress, MemberProgress, SlotProgress, WantedPrompts
from annotation.collection.prompt_originality import PromptNotices, SimilarPrompt
from annotation.models import CollectedPrompt, CollectionMember, PromptCollection, PromptSlot, PromptVersion

ANYONE = tuple(Role)
MOST_OF_SIMILAR = 600  # characters of a similar prompt, as on the page


class WantedPromptsSerializer(serializers.Serializer[Any]):
    task = serializers.CharField(max_length=prompt_collections.LONGEST_PART)
    style = serializers.CharField(max_length=prompt_collections.LONGEST_PART, default="", allow_blank=True)  # type: ignore[assignment]
    difficulty = serializers.CharField(max_length=prompt_collections.LONGEST_PART, default="", allow_blank=True)
    language = serializers.CharField(max_length=35)
    wanted = serializers.IntegerField(min_value=0, max_value=prompt_collections.MOST_WANTED)


class SlotProgressSerializer(serializers.Serializer[SlotProgress]):
    """A kind of prompt, and how many of it there are."""

    id = serializers.IntegerField(source="slot.pk")
    task = serializers.CharField(source="slot.task")
    style = serializers.CharField(source="slot.style")  # type: ignore[assignment]
    difficulty = serializers.CharField(source="slot.difficulty")
    language = serializers.CharField(source="slot.language")
    wanted = serializers.IntegerField(source="slot.wanted")
    accepted = serializers.IntegerField()
    in_review = serializers.IntegerField()
    returned = serializers.IntegerField()
    rejected = serializers.IntegerField()
    left = serializers.IntegerField(help_text="Still to be written.")


class MemberProgressSerializer(serializers.Serializer[MemberProgress]):
    """A person by pseudonym, and what they have written and reviewed."""

    annotator = serializers.CharField(source="member.annotator.pseudonym")
    writes = serializers.BooleanField(source="member.writes")
    reviews = serializers.BooleanField(source="member.reviews")
    written = serializers.IntegerField()
    accepted = serializers.IntegerField()
    waiting = serializers.IntegerField(help_text="Sent back to them.")
    rejected = serializers.IntegerField()
    reviewed = serializers.IntegerField()


class PromptCollectionSerializer(serializers.ModelSerializer[PromptCollection]):
    """A collection of prompts. `guidelines`: Markdown by language."""

    slots = WantedPromptsSerializer(many=True, write_only=True, required=False)

    class Meta:
        model = PromptCollection
        fields = ("id", "name", "guidelines", "due_on", "state", "created_at", "slots")
        read_only_fields = ("state", "created_at")
        extra_kwargs = {"name": {"validators": []}}

    def validate_guidelines(self, guidelines: Any) -> dict[str, str]:
        if not isinstance(guidelines, dict) or not all(isinstance(text, str) for text in guidelines.values()):
            raise serializers.ValidationError(_("Write texts by language."))
        if not is_storable(guidelines):
            raise serializers.ValidationError(_("Write texts by language."))
        return guidelines


class PromptCollectionChangeSerializer(PromptCollectionSerializer):
    """What is to be different in a collection; what is not named stays."""

    class Meta(PromptCollectionSerializer.Meta):
        fields = ("name", "guidelines", "due_on", "slots")  # type: ignore[assignment]
        read_only_fields = ()  # type: ignore[assignment]
        extra_kwargs = {"name": {"validators": [], "required": False}}  # type: ignore[dict-item]


class PromptCollectionDetailSerializer(PromptCollectionSerializer):
    """A collection with its kinds of prompts; `people`, `late_reviews` and `is_overdue` for leads and researchers."""

    progress = serializers.SerializerMethodField()

    class Meta(PromptCollectionSerializer.Meta):
        fields = (*PromptCollectionSerializer.Meta.fields, "progress")  # type: ignore[assignment]

    @extend_schema(responses=SlotProgressSerializer(many=True))
    def get_progress(self, collection: PromptCollection) -> Any:
        return SlotProgressSerializer(prompt_collections.slot_progress(collection), many=True).data


class CollectionProgressSerializer(serializers.Serializer[CollectionProgress]):
    """How far a collection is."""

    wanted = serializers.IntegerField()
    accepted = serializers.IntegerField()
    in_review = serializers.IntegerField()
    returned = serializers.IntegerField()
    left = serializers.IntegerField()
    late_reviews = serializers.IntegerField(help_text="Prompts that wait for a review for 3 days or more.")
    is_overdue = serializers.BooleanField()
    people = MemberProgressSerializer(source="members", many=True)


class SlotsSerializer(serializers.Serializer[Any]):
    slots = WantedPromptsSerializer(many=True)


class CollectionMemberSerializer(serializers.Serializer[Any]):
    email = serializers.EmailField(write_only=True, help_text="Of a member of the project.")
    annotator = serializers.CharField(source="annotator.pseudonym", read_only=True)
    writes = serializers.BooleanField(default=False)
    reviews = serializers.BooleanField(default=False)


class CollectionStateSerializer(serializers.Serializer[Any]):
    state = serializers.ChoiceField(choices=PromptCollection.State.choices)


class StorePromptsSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=120, write_only=True)
    dataset = serializers.IntegerField(read_only=True)


class SimilarPromptSerializer(serializers.Serializer[SimilarPrompt]):
    share = serializers.IntegerField(help_text="How equal, of 100.")
    text = serializers.CharField(help_text="Its beginning.")
    prompt = serializers.IntegerField(allow_null=True, help_text="Null: it is in a dataset of the project.")

    def to_representation(self, instance: SimilarPrompt) -> dict[str, Any]:
        return super().to_representation(replace(instance, text=instance.text[:MOST_OF_SIMILAR]))


class PromptNoticesSerializer(serializers.Serializer[PromptNotices]):
    """What is shown of a text before it is submitted. `language`: which check found something, or empty."""

    similar = SimilarPromptSerializer(many=True)
    language = serializers.SerializerMethodField()
    is_striking = serializers.BooleanField()

    def get_language(self, notices: PromptNotices) -> str:
        return notices.language[0] if notices.language else ""


class CheckedPromptSerializer(PromptNoticesSerializer):
    """The notices of a text, and what `confirmed` is then, so that this very text is submitted in spite of them."""

    confirm = serializers.SerializerMethodField()

    def get_confirm(self, notices: PromptNotices) -> str:
        return str(self.context["confirm"])


class PromptVersionSerializer(serializers.ModelSerializer[PromptVersion]):
    class Meta:
        model = PromptVersion
        fields = ("number", "text", "submitted_at", "decision", "comment", "reviewed_at")


class CollectedPromptSerializer(serializers.ModelSerializer[CollectedPrompt]):
    """A prompt with its versions, oldest first. `author`: the pseudonym; empty for whoever may review it."""

    task = serializers.CharField(source="slot.task")
    style = serializers.CharField(source="slot.style")  # type: ignore[assignment]
    difficulty = serializers.CharField(source="slot.difficulty")
    language = serializers.CharField(source="slot.language")
    author = serializers.SerializerMethodField()
    versions = PromptVersionSerializer(many=True)

    class Meta:
        model = CollectedPrompt
        fields = ("id", "slot", "task", "style", "difficulty", "language", "state", "author", "versions")

    def get_author(self, prompt: CollectedPrompt) -> str:
        is_blind = self.context.get("reviews") and prompt.state == CollectedPrompt.State.IN_REVIEW
        return str(prompt.author) if self.context.get("is_sighted") and not is_blind else ""


class WrittenPromptSerializer(serializers.Serializer[Any]):
    """A text for a slot, or the next version of a `prompt` that was sent back. `key`: the same again stores nothing."""

    slot = serializers.IntegerField(required=False)
    prompt = serializers.IntegerField(required=False)
    text = serializers.CharField(max_length=2 * prompt_writing.LONGEST_PROMPT, trim_whitespace=False)
    key = serializers.UUIDField(required=False)
    confirmed = serializers.CharField(
        max_length=64,
        default="",
        allow_blank=True,
        help_text="To submit in spite of similar prompts or the language: the `confirm` of the refusal "
        "`prompt_warnings`, or of a check of this very text.",
    )


class PromptReviewSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    decision = serializers.ChoiceField(choices=["accept", "send_back", "reject"])
    comment = serializers.CharField(default="", allow_blank=True, max_length=2 * prompt_writing.LONGEST_REVIEW)


def _found(user: User, slug: str, pk: int, *, sighted: bool = False) -> PromptCollection:
    project = access.require(user=user, slug=slug, roles=SIGHTED if sighted else ANYONE)
    visible = PromptCollection.objects.visible_to(user).filter(project=project).select_related("project")
    return get_object_or_404(visible, pk=pk)


def _worker(user: User, slug: str, pk: int) -> CollectionMember:
    member = prompt_collections.member_of_collection(_found(user, slug, pk), user)
    if member is None:
        raise PermissionDenied(_("This is for the writers and reviewers of the collection."))
    return member


class PromptCollections(generics.ListAPIView[PromptCollection]):
    """The collections of prompts that the user sees; posting makes one, for leads and researchers."""

    roles = ANYONE
    serializer_class = PromptCollectionSerializer
    queryset = PromptCollection.objects.none()

    def get_queryset(self) -> QuerySet[PromptCollection]:
        held = access.membership(user=self.request.user, slug=self.kwargs["project"])
        return PromptCollection.objects.visible_to(self.request.user).filter(project=held.project)

    @extend_schema(request=PromptCollectionSerializer, responses={201: PromptCollectionDetailSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Make a collection."""
        current_project = access.require(user=request.user, slug=project)
        serializer = PromptCollectionSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        made = prompt_collections.create_collection(
            project=current_project,
            name=values["name"],
            slots=[WantedPrompts(**slot) for slot in values.get("slots", ())],
            guidelines=values.get("guidelines"),
            due_on=values.get("due_on"),
            actor=request.user,
        )
        return Response(PromptCollectionDetailSerializer(made).data, status=201)


class PromptCollectionDetail(APIView):
    roles = ANYONE

    @extend_schema(responses=PromptCollectionDetailSerializer)
    def get(self, request: Request, project: str, collection: int) -> Response:
        """A collection with its kinds of prompts, and how many of each there are."""
        return Response(PromptCollectionDetailSerializer(_found(request.user, project, collection)).data)

    @extend_schema(request=PromptCollectionChangeSerializer, responses=PromptCollectionDetailSerializer)
    def put(self, request: Request, project: str, collection: int) -> Response:
        """Change name, guidelines and deadline, add kinds of prompts or change their numbers; the rest stays."""
        current = _found(request.user, project, collection, sighted=True)
        serializer = PromptCollectionChangeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = {"name": current.name, "guidelines": current.guidelines, "due_on": current.due_on}
        values |= serializer.validated_data
        values["slots"] = [WantedPrompts(**slot) for slot in values.get("slots", ())]
        prompt_collections.change_collection(collection=current, actor=request.user, **values)
        return Response(PromptCollectionDetailSerializer(current).data)


class PromptCollectionProgress(APIView):
    @extend_schema(responses=CollectionProgressSerializer)
    def get(self, request: Request, project: str, collection: int) -> Response:
        """Totals and people's counts."""
        current = _found(request.user, project, collection, sighted=True)
        return Response(CollectionProgressSerializer(prompt_collections.collection_progress(current)).data)


class PromptCollectionSlots(APIView):
    @extend_schema(request=SlotsSerializer, responses=PromptCollectionDetailSerializer)
    def put(self, request: Request, project: str, collection: int) -> Response:
        """Add kinds of prompts, or change how many are wanted; 0 removes one without prompts."""
        current = _found(request.user, project, collection, sighted=True)
        serializer = SlotsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        slots = [WantedPrompts(**slot) for slot in serializer.validated_data["slots"]]
        prompt_collections.set_slots(collection=current, slots=slots, actor=request.user)
        return Response(PromptCollectionDetailSerializer(current).data)


class PromptCollectionMembers(APIView):
    @extend_schema(request=CollectionMemberSerializer, responses=CollectionMemberSerializer)
    def put(self, request: Request, project: str, collection: int) -> Response:
        """Let a member of the project write, review, both, or neither any more."""
        current = _found(request.user, project, collection, sighted=True)
        serializer = CollectionMemberSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        user = User.objects.filter(email=values.pop("email").lower(), memberships__project=current.project_id).first()
        if user is None:
            sentence = _("Only members of the project can write prompts. Invite the person first.")
            raise Refused(sentence, code="not_a_member", fields={"email": sentence})
        member = prompt_collections.set_member(collection=current, user=user, actor=request.user, **values)
        return Response(CollectionMemberSerializer(member).data)


class PromptCollectionState(APIView):
    @extend_schema(request=CollectionStateSerializer, responses=PromptCollectionDetailSerializer)
    def post(self, request: Request, project: str, collection: int) -> Response:
        """Close a collection, or open it again."""
        current = _found(request.user, project, collection, sighted=True)
        serializer = CollectionStateSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        prompt_collections.set_state(collection=current, actor=request.user, **serializer.validated_data)
        return Response(PromptCollectionDetailSerializer(current).data)


class PromptDatasets(APIView):
    @extend_schema(request=StorePromptsSerializer, responses={201: StorePromptsSerializer})
    def post(self, request: Request, project: str, collection: int) -> Response:
        """Store the accepted prompts as a dataset."""
        current = _found(request.user, project, collection, sighted=True)
        serializer = StorePromptsSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        name = serializer.validated_data["name"]
        dataset = prompt_exports.store_prompts(collection=current, name=name, actor=request.user)
        return Response(StorePromptsSerializer({"dataset": dataset.pk}).data, status=201)


class CollectedPrompts(generics.ListAPIView[CollectedPrompt]):
    """Submitted prompts: all for leads and researchers; for others their own, and those that they may review."""

    roles = ANYONE
    serializer_class = CollectedPromptSerializer
    queryset = CollectedPrompt.objects.none()

    def get_queryset(self) -> QuerySet[CollectedPrompt]:
        current = _found(self.request.user, self.kwargs["project"], self.kwargs["collection"])
        prompts = CollectedPrompt.objects.submitted().filter(collection=current)
        shown = prompts.select_related("slot", "author__annotator").prefetch_related("versions")
        if not self._is_sighted():
            member = prompt_collections.member_of_collection(current, self.request.user)
            reviews = Q(state=CollectedPrompt.State.IN_REVIEW) if member and member.reviews else Q(pk=None)
            shown = shown.filter(Q(author=member) | reviews)
        return shown.order_by("pk")

    def get_serializer_context(self) -> dict[str, Any]:
        context = {**super().get_serializer_context(), "is_sighted": self._is_sighted()}
        if context["is_sighted"]:
            own = CollectionMember.objects.filter(collection=self.kwargs["collection"], reviews=True)
            context["reviews"] = own.filter(annotator__user=cast(User, self.request.user)).exists()
        return context

    def _is_sighted(self) -> bool:
        if "project" not in self.kwargs:  # of the schema
            return False
        return Role(access.membership(user=self.request.user, slug=self.kwargs["project"]).role) in SIGHTED

    @extend_schema(request=WrittenPromptSerializer, responses={201: CollectedPromptSerializer})
    def post(self, request: Request, project: str, collection: int) -> Response:
        """Submit a prompt for a slot, or the next version of one that was sent back."""
        member = _worker(request.user, project, collection)
        slot, prompt, values = _written(request, member)
        key, confirmed = values.get("key") or uuid4(), values["confirmed"]
        try:
            version = prompt_writing.submit_prompt(
                member=member, slot=slot, prompt=prompt, text=values["text"], key=key, confirmed=confirmed
            )
        except prompt_writing.PromptWarned as warned:
            warned.more["notices"] = PromptNoticesSerializer(warned.notices).data
            raise
        stored = member.collection.prompts.select_related("slot", "author__annotator").get(pk=version.prompt_id)
        return Response(CollectedPromptSerializer(stored).data, status=201)


def _written(request: Request, member: CollectionMember) -> tuple[PromptSlot, CollectedPrompt | None, dict[str, Any]]:
    serializer = WrittenPromptSerializer(data=request.data)
    serializer.is_valid(raise_exception=True)
    values = serializer.validated_data
    prompt = None
    if (number := values.get("prompt")) is not None:
        prompt = get_object_or_404(member.collection.prompts.filter(author=member), pk=number)
    slots = member.collection.slots.select_related("collection__project")
    slot = get_object_or_404(slots, pk=prompt.slot_id if prompt else values.get("slot"))
    return slot, prompt, values


class CheckThrottle(UserThrottle):
    """Checks show texts of other people, so nobody reads a project by trying."""

    scope = "prompt_checks"
    rate = "60/min"


class PromptChecks(APIView):
    roles = ANYONE
    throttle_classes = (CheckThrottle,)

    @extend_schema(request=WrittenPromptSerializer, responses=CheckedPromptSerializer)
    def post(self, request: Request, project: str, collection: int) -> Response:
        """What would be shown of a text: similar prompts, and whether its language looks right. Nothing is stored."""
        member = _worker(request.user, project, collection)
        slot, prompt, values = _written(request, member)
        text = prompt_writing.checked_text(values["text"])
        notices = prompt_originality.notices_about(slot=slot, text=text, but=prompt, reader=member.annotator_id)
        confirm = prompt_originality.text_identity(slot.language, text)
        return Response(CheckedPromptSerializer(notices, context={"confirm": confirm}).data)


class PromptReviews(APIView):
    roles = ANYONE

    @extend_schema(request=PromptReviewSerializer, responses=CollectedPromptSerializer)
    def post(self, request: Request, project: str, collection: int, prompt: int) -> Response:
        """Accept a version of somebody else's prompt, send it back with a comment, or reject it with the reason."""
        member = _worker(request.user, project, collection)
        serializer = PromptReviewSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
        shown = get_object_or_404(CollectedPrompt.objects.submitted(), collection=member.collection, pk=prompt)
        versions = shown.versions.select_related("prompt__collection__project", "author__annotator__user")
        version = get_object_or_404(versions, number=values.pop("version"))
        prompt_writing.review_prompt(version=version, reviewer=member, **values)
        stored = member.collection.prompts.select_related("slot", "author__annotator").get(pk=prompt)
        return Response(CollectedPromptSerializer(stored).data)
