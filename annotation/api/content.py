"""Datasets and their items, rubrics and their versions, taxonomies and the duties of their rules.

For leads and researchers. Only leads go on with a newer version of a campaign's rubric.
"""

from __future__ import annotations

import json
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field, extend_schema_serializer
from rest_framework import generics, serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import access, jobs
from accounts.api_requests import CursorPagination
from accounts.models import Project, Role, User
from accounts.refusals import Refused
from annotation import rubric_changes, rubrics, rule_plans, taxonomies
from annotation.api.campaigns import LARGEST_ID, LEAD, SEEDS, StratumSerializer, campaign_in_project
from annotation.carried_ratings import ChangedCriterion, RatedScore, RatingDecision
from annotation.models import (
    Campaign,
    Dataset,
    Item,
    ItemSelection,
    Panel,
    Rubric,
    RubricChange,
    RubricVersion,
    Taxonomy,
)
from annotation.readers import parse_rubric, parse_taxonomy, taxonomy_from_dict
from annotation.rubrics import PartChange

ITEM_PARAMETERS = [
    OpenApiParameter("language", OpenApiTypes.STR, description="A language tag, exactly."),
    OpenApiParameter("generator", OpenApiTypes.STR),
    OpenApiParameter("scenario", OpenApiTypes.STR),
    OpenApiParameter("q", OpenApiTypes.STR, description="A text in the turns, the fields, the title or the id."),
]


@extend_schema_serializer(deprecate_fields=["intake"])
class DatasetSerializer(serializers.Serializer[Dataset]):
    id = serializers.IntegerField(source="pk", read_only=True)
    name = serializers.CharField(read_only=True)
    version = serializers.IntegerField(read_only=True)
    licence = serializers.CharField(read_only=True)
    layout = serializers.JSONField(read_only=True)
    simulated = serializers.BooleanField(read_only=True)
    allocatable = serializers.BooleanField(read_only=True)
    derived_from = serializers.IntegerField(source="derived_from_id", read_only=True, allow_null=True)
    extends = serializers.IntegerField(source="extends_id", read_only=True, allow_null=True)
    import_id = serializers.IntegerField(source="file_import_id", read_only=True, allow_null=True)
    intake = serializers.IntegerField(source="file_import_id", read_only=True, allow_null=True)
    items = serializers.IntegerField(source="items_count", read_only=True)
    added = serializers.IntegerField(read_only=True)
    created_at = serializers.DateTimeField(read_only=True)


class DatasetTurnSerializer(serializers.Serializer[Any]):
    speaker = serializers.CharField()
    name = serializers.CharField(required=False)
    text = serializers.CharField()


class DatasetItemSerializer(serializers.Serializer[Item]):
    id = serializers.IntegerField(source="pk", read_only=True)
    external_id = serializers.CharField(read_only=True)
    ordinal = serializers.IntegerField(read_only=True)
    language = serializers.CharField(read_only=True)
    generator = serializers.CharField(read_only=True)
    scenario = serializers.CharField(read_only=True)
    title = serializers.CharField(read_only=True)
    turns = serializers.SerializerMethodField()
    fields = serializers.JSONField(read_only=True)  # type: ignore[assignment]
    attributes = serializers.JSONField(read_only=True)
    content_warning = serializers.CharField(read_only=True)
    digest = serializers.CharField(read_only=True)

    @extend_schema_field(DatasetTurnSerializer(many=True))
    def get_turns(self, item: Item) -> list[dict[str, str]]:
        return list(item.turns)


class ByOrdinal(CursorPagination):
    ordering = "ordinal"


class Datasets(generics.ListAPIView[Dataset]):
    """The project's datasets, every version."""

    serializer_class = DatasetSerializer
    queryset = Dataset.objects.none()

    def get_queryset(self) -> QuerySet[Dataset]:
        project = access.require(user=self.request.user, slug=self.kwargs["project"])
        datasets = Dataset.objects.visible_to(self.request.user).filter(project=project)
        return datasets.sized()


class DatasetDetail(generics.RetrieveAPIView[Dataset]):
    """One version of a dataset."""

    serializer_class = DatasetSerializer
    queryset = Dataset.objects.none()
    lookup_url_kwarg = "dataset"
    get_queryset = Datasets.get_queryset


@extend_schema(parameters=ITEM_PARAMETERS)
class DatasetItems(generics.ListAPIView[Item]):
    """The items of a dataset in their order; texts exactly as imported."""

    serializer_class = DatasetItemSerializer
    queryset = Item.objects.none()
    pagination_class = ByOrdinal

    def get_queryset(self) -> QuerySet[Item]:
        project = access.require(user=self.request.user, slug=self.kwargs["project"])
        mine = Dataset.objects.visible_to(self.request.user).filter(project=project)
        items = Item.objects.of(get_object_or_404(mine, pk=self.kwargs["dataset"]))
        return items.matching(self.request.query_params.dict())


# --- rubrics ---------------------------------------------------------------------------------------------------------
class RubricSerializer(serializers.Serializer[Rubric]):
    id = serializers.IntegerField(source="pk", read_only=True)
    key = serializers.CharField(read_only=True)


class RubricVersionSerializer(serializers.Serializer[RubricVersion]):
    id = serializers.IntegerField(source="pk", read_only=True)
    rubric = serializers.CharField(source="rubric.key", read_only=True)
    number = serializers.IntegerField(read_only=True)
    state = serializers.ChoiceField(choices=RubricVersion.State.choices, read_only=True)
    digest = serializers.CharField(read_only=True)
    created_at = serializers.DateTimeField(read_only=True)
    published_at = serializers.DateTimeField(read_only=True, allow_null=True)


class RubricDocumentSerializer(RubricVersionSerializer):
    document = serializers.JSONField(read_only=True)


def _versions(user: User, project: str) -> QuerySet[RubricVersion]:
    current_project = access.require(user=user, slug=project)
    return (
        RubricVersion.objects.visible_to(user).filter(rubric__project=current_project).select_related("rubric__project")
    )


class Rubrics(generics.ListAPIView[Rubric]):
    """The project's rubrics. POST a rubric document to create a draft version of the rubric with its key."""

    serializer_class = RubricSerializer
    queryset = Rubric.objects.none()

    def get_queryset(self) -> QuerySet[Rubric]:
        project = access.require(user=self.request.user, slug=self.kwargs["project"])
        return Rubric.objects.visible_to(self.request.user).filter(project=project, versions__isnull=False).distinct()

    @extend_schema(request=OpenApiTypes.OBJECT, responses={201: RubricDocumentSerializer})
    def post(self, request: Request, project: str) -> Response:
        """Create a draft version. The document is the JSON form in docs/formats.md; the same document posted again
        returns the existing version."""
        current_project = access.require(user=request.user, slug=project)
        parsed = parse_rubric("document.json", json.dumps(request.data).encode())
        if parsed.document is None:
            raise ValidationError({problem.column or "document": [str(problem)] for problem in parsed.problems})
        version = rubrics.draft(project=current_project, document=parsed.document, actor=request.user)
        return Response(RubricDocumentSerializer(version).data, status=status.HTTP_201_CREATED)


class RubricVersions(generics.ListAPIView[RubricVersion]):
    """The versions of one rubric."""

    serializer_class = RubricVersionSerializer
    queryset = RubricVersion.objects.none()

    def get_queryset(self) -> QuerySet[RubricVersion]:
        versions = _versions(self.request.user, self.kwargs["project"]).filter(rubric__key=self.kwargs["rubric"])
        if not versions.exists():
            raise Http404("No such rubric.")
        return versions


class RubricVersionDetail(APIView):
    @extend_schema(responses=RubricDocumentSerializer)
    def get(self, request: Request, project: str, rubric: str, number: int) -> Response:
        """One version with its document."""
        version = get_object_or_404(_versions(request.user, project), rubric__key=rubric, number=number)
        return Response(RubricDocumentSerializer(version).data)


class RubricPublication(APIView):
    @extend_schema(request=None, responses=RubricDocumentSerializer)
    def post(self, request: Request, project: str, rubric: str, number: int) -> Response:
        """Publish a draft. A published version cannot be changed."""
        version = get_object_or_404(_versions(request.user, project), rubric__key=rubric, number=number)
        return Response(RubricDocumentSerializer(rubrics.publish(version=version, actor=request.user)).data)


class PartChangeSerializer(serializers.Serializer[PartChange]):
    part = serializers.CharField()
    point = serializers.FloatField(allow_null=True)
    language = serializers.CharField(help_text="Empty for a part that has no language.")
    before = serializers.CharField()
    after = serializers.CharField()


class RatedScoreSerializer(serializers.Serializer[RatedScore]):
    score = serializers.FloatField()
    ratings = serializers.IntegerField()


class ChangedCriterionSerializer(serializers.Serializer[ChangedCriterion]):
    """A criterion of either version. `decisions` that are possible; none where there is nothing to decide."""

    criterion = serializers.CharField(source="difference.key")
    kind = serializers.CharField(source="difference.kind", help_text="same, changed, added or removed")
    scale_differs = serializers.BooleanField(source="difference.scale_differs")
    parts = PartChangeSerializer(source="difference.parts", many=True)
    ratings = serializers.IntegerField(source="rated.ratings")
    items = serializers.IntegerField(source="rated.items")
    annotators = serializers.IntegerField(source="rated.annotators")
    not_applicable = serializers.IntegerField(source="rated.not_applicable")
    imported = serializers.IntegerField(source="rated.imported", help_text="Nobody can rate these again.")
    scores = RatedScoreSerializer(source="rated.scores", many=True)
    decisions = serializers.ListField(child=serializers.CharField())


class RatingDecisionSerializer(serializers.Serializer[Any]):
    """`keep`, `requeue` or `map`; `scores` of a map: by old score the new one, null for what is rated again."""

    decision = serializers.CharField(max_length=10, help_text="keep, requeue or map")
    scores = serializers.DictField(child=serializers.FloatField(allow_null=True), required=False)


class RubricChangeSerializer(serializers.Serializer[RubricChange]):
    """Counts of ratings: `kept`, `mapped`, `requeued`, `removed`, `left` (imported); `assignments` rated again.

    A large campaign is changed, or changed back, by a worker: `job` is its newest one. `finished_at` is null until the
    change is carried out.
    """

    id = serializers.IntegerField(source="pk", read_only=True)
    from_version = serializers.IntegerField(
        source="from_version_id", min_value=1, max_value=LARGEST_ID, help_text="The version that you have seen."
    )
    version = serializers.IntegerField(source="to_version_id", min_value=1, max_value=LARGEST_ID)
    decisions = serializers.DictField(child=RatingDecisionSerializer(), required=False)
    qualify_again = serializers.BooleanField(
        required=False, help_text="Training and exam count only from the change on. Default: false."
    )
    counts = serializers.DictField(child=serializers.IntegerField(), read_only=True)
    at = serializers.DateTimeField(read_only=True)
    finished_at = serializers.DateTimeField(read_only=True, allow_null=True)
    undone_at = serializers.DateTimeField(read_only=True, allow_null=True)
    job = serializers.IntegerField(source="job_id", read_only=True, allow_null=True)


def _led(user: User, slug: str, campaign: int) -> Campaign:
    access.require(user=user, slug=slug, roles=(Role.LEAD,))
    return campaign_in_project(user, slug, campaign)


def _version(user: User, campaign: Campaign, pk: int) -> RubricVersion:
    own = RubricVersion.objects.visible_to(user).filter(rubric=campaign.rubric_version.rubric_id)
    return get_object_or_404(own.select_related("rubric"), pk=pk)


def _decisions(given: dict[str, Any]) -> dict[str, RatingDecision]:
    return {
        key: RatingDecision(one["decision"], {_score(old): new for old, new in one.get("scores", {}).items()})
        for key, one in given.items()
    }


def _score(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise serializers.ValidationError({"decisions": [f"“{text}” is no score."]}) from None


class RubricChanges(APIView):
    roles = LEAD

    @extend_schema(
        parameters=[OpenApiParameter("version", int, required=True)],
        responses=ChangedCriterionSerializer(many=True),
    )
    def get(self, request: Request, project: str, campaign: int) -> Response:
        """What differs between the campaign's version of the rubric and another one, with the ratings it touches."""
        current = _led(request.user, project, campaign)
        wanted = request.query_params.get("version", "")
        version = _version(request.user, current, int(wanted[:18]) if wanted.isdecimal() else 0)
        return Response(ChangedCriterionSerializer(rubric_changes.touched_criteria(current, version), many=True).data)

    @extend_schema(request=RubricChangeSerializer, responses={201: RubricChangeSerializer})
    def post(self, request: Request, project: str, campaign: int) -> Response:
        """Go on with a newer version of the rubric, with a decision on the ratings of each criterion that differs."""
        current = _led(request.user, project, campaign)
        serializer = RubricChangeSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        chosen = serializer.validated_data
        change = rubric_changes.change_version(
            campaign=current,
            version=_version(request.user, current, chosen["to_version_id"]),
            decisions=_decisions(chosen.get("decisions", {})),
            from_version=chosen["from_version_id"],
            qualify_again=chosen.get("qualify_again", False),
            is_large=rubric_changes.is_large(current),
            actor=request.user,
        )
        if change.job:
            jobs.enqueue(change)
        return Response(RubricChangeSerializer(change).data, status=status.HTTP_201_CREATED)


class RubricChangeUndo(APIView):
    roles = LEAD

    @extend_schema(request=None, responses=RubricChangeSerializer)
    def post(self, request: Request, project: str, campaign: int, change: int) -> Response:
        """Go back to the former version, as long as nothing was rated under the new one."""
        current = _led(request.user, project, campaign)
        undone = get_object_or_404(current.rubric_changes.select_related("campaign__project"), pk=change)
        is_large = rubric_changes.is_large(current)
        rubric_changes.undo_change(change=undone, is_large=is_large, actor=request.user)
        if is_large:
            jobs.enqueue(undone)
        undone.refresh_from_db()
        return Response(RubricChangeSerializer(undone).data)


class TaxonomySerializer(serializers.Serializer[Taxonomy]):
    id = serializers.IntegerField(source="pk", read_only=True)
    key = serializers.CharField(read_only=True)
    number = serializers.IntegerField(read_only=True)
    yaml = serializers.CharField(
        write_only=True, max_length=2**20, trim_whitespace=False, help_text="The document, as YAML or JSON."
    )
    created_at = serializers.DateTimeField(read_only=True)


class TaxonomyDetailSerializer(TaxonomySerializer):
    yaml = serializers.SerializerMethodField()  # type: ignore[assignment]

    def get_yaml(self, taxonomy: Taxonomy) -> str:
        return taxonomy_from_dict(taxonomy.document).as_yaml()


class RulesSerializer(serializers.Serializer[Any]):
    """What is applied to what. Without `panels`, each name in the rules means the panels that are called so."""

    taxonomy = serializers.IntegerField(min_value=1, max_value=LARGEST_ID)
    panels = serializers.DictField(
        child=serializers.ListField(child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID), max_length=200),
        required=False,
        help_text="By name of a panel in the rules, the ids of the panels that rate.",
    )
    selection = serializers.IntegerField(required=False, allow_null=True, min_value=1, max_value=LARGEST_ID)
    seed = serializers.IntegerField(required=False, allow_null=True, **SEEDS)
    keep_names = serializers.BooleanField(required=False, default=False)
    preview = serializers.BooleanField(required=False, default=False, help_text="Count only; create nothing.")


class PlannedDutySerializer(serializers.Serializer[rule_plans.PlannedDuty]):
    panel = serializers.IntegerField(source="panel.pk")
    name = serializers.CharField()
    duty = serializers.IntegerField(source="duty.pk", default=None, allow_null=True, help_text="Null: a new duty.")
    items = serializers.IntegerField()
    assignments = serializers.IntegerField()
    ratings = serializers.IntegerField()
    hours = serializers.FloatField()
    seats = serializers.IntegerField()
    lacking = serializers.IntegerField(help_text="How many more people the panel needs.")
    overlaps = serializers.DictField(child=serializers.IntegerField(), help_text="Annotators per criterion.")


class RuleSampleSerializer(serializers.Serializer[rule_plans.RuleMatch]):
    """What the sample of a rule draws of the items that fit it. `selection`: null until it is stored."""

    rule = serializers.CharField(source="rule.name")
    fitting = serializers.IntegerField(source="items")
    drawn = serializers.SerializerMethodField()
    seed = serializers.SerializerMethodField(help_text="Null in a preview, where the rule names none.")
    selection = serializers.IntegerField(source="draw.stored.pk", default=None, allow_null=True)
    strata = StratumSerializer(source="draw.strata", many=True)

    def get_drawn(self, match: rule_plans.RuleMatch) -> int:
        return len(match.draw.drawn) if match.draw else 0

    def get_seed(self, match: rule_plans.RuleMatch) -> int | None:
        is_known = match.draw and (match.draw.stored or (match.rule.sample and match.rule.sample.seed is not None))
        return match.draw.seed if match.draw and is_known else None


class TaxonomyPlanSerializer(serializers.Serializer[rule_plans.TaxonomyPlan]):
    duties = PlannedDutySerializer(many=True)
    items = serializers.IntegerField()
    assignments = serializers.IntegerField()
    ratings = serializers.IntegerField()
    hours = serializers.FloatField()
    unmatched = serializers.IntegerField(help_text="Items that no rule fits.")
    already = serializers.IntegerField(help_text="Items that a panel rates in a duty that no rule made.")
    beyond = serializers.IntegerField(help_text="Items with more annotators than the rules ask for.")
    rules_without_items = serializers.SerializerMethodField()
    rules_without_panel = serializers.SerializerMethodField()
    missing_panels = serializers.ListField(child=serializers.CharField())
    unknown_criteria = serializers.ListField(child=serializers.CharField(), help_text="Not in the campaign's rubric.")
    ungiven_criteria = serializers.ListField(child=serializers.CharField(), help_text="Given by no rule.")
    samples = RuleSampleSerializer(many=True, help_text="Of the rules with a sample.")
    twice = serializers.SerializerMethodField(help_text="Pairs of rules that give a panel the same criterion of items.")

    def get_rules_without_items(self, plan: rule_plans.TaxonomyPlan) -> list[str]:
        return [rule.name for rule in plan.without_items]

    def get_rules_without_panel(self, plan: rule_plans.TaxonomyPlan) -> list[str]:
        return [rule.name for rule in plan.without_panel]

    def get_twice(self, plan: rule_plans.TaxonomyPlan) -> list[dict[str, Any]]:
        return [{"rules": list(pair), "items": items} for pair, items in plan.twice.items()]


def _of(user: User, slug: str) -> tuple[Project, QuerySet[Taxonomy]]:
    project = access.require(user=user, slug=slug)
    return project, Taxonomy.objects.visible_to(user).filter(project=project)


class Taxonomies(generics.ListCreateAPIView[Taxonomy]):
    """Every version of the project's taxonomies. POST stores the next version of the one with the document's key."""

    serializer_class = TaxonomySerializer
    queryset = Taxonomy.objects.none()

    def get_queryset(self) -> QuerySet[Taxonomy]:
        return _of(self.request.user, self.kwargs["project"])[1]

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        project, _visible = _of(request.user, kwargs["project"])
        serializer = TaxonomySerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        document, problems = parse_taxonomy("YAML", serializer.validated_data["yaml"].encode("utf-8", "surrogatepass"))
        if document is None:
            sentence = "\n".join(problems.sentences())
            raise Refused(sentence, code="invalid", fields={"yaml": sentence})
        stored = taxonomies.store_taxonomy(project=project, document=document, actor=request.user)
        return Response(TaxonomySerializer(stored).data, status=status.HTTP_201_CREATED)


class TaxonomyDetail(APIView):
    @extend_schema(responses=TaxonomyDetailSerializer)
    def get(self, request: Request, project: str, taxonomy: int) -> Response:
        """One version with its document as YAML."""
        return Response(TaxonomyDetailSerializer(get_object_or_404(_of(request.user, project)[1], pk=taxonomy)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, project: str, taxonomy: int) -> Response:
        """Remove a version whose rules made no duty."""
        removed = get_object_or_404(_of(request.user, project)[1], pk=taxonomy)
        taxonomies.remove_taxonomy(taxonomy=removed, actor=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class DutiesByRules(APIView):
    @extend_schema(request=RulesSerializer, responses=TaxonomyPlanSerializer)
    def post(self, request: Request, project: str, campaign: int) -> Response:
        """Create the duties that the rules of a taxonomy ask for, or extend those they made; `preview` only counts."""
        target = campaign_in_project(request.user, project, campaign)
        serializer = RulesSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        asked = dict(serializer.validated_data)
        version = get_object_or_404(_of(request.user, project)[1], pk=asked["taxonomy"])
        wanted = asked.get("selection")
        chosen = {
            "campaign": target,
            "taxonomy": version,
            "panels": _panels(request.user, version, asked.get("panels")),
            "selection": get_object_or_404(ItemSelection, campaign=target, pk=wanted) if wanted else None,
        }
        if asked["preview"]:
            return Response(TaxonomyPlanSerializer(rule_plans.plan_duties(**chosen)).data)
        made = taxonomies.apply_rules(
            **chosen, keep_names=asked["keep_names"], seed=asked.get("seed"), actor=request.user
        )
        return Response(TaxonomyPlanSerializer(made).data)


def _panels(user: User, taxonomy: Taxonomy, given: dict[str, list[int]] | None) -> dict[str, list[Panel]]:
    mine = Panel.objects.visible_to(user).filter(project=taxonomy.project_id)
    by_name = taxonomies.panels_for(taxonomy_from_dict(taxonomy.document), mine)
    by_key = {panel.pk: panel for panel in mine}
    for name, keys in (given or {}).items():
        if name not in by_name or not by_key.keys() >= set(keys):
            wrong = "Name panels of the rules, each with ids of panels of this project."
            raise Refused(wrong, code="invalid", fields={"panels": wrong})
        by_name[name] = [by_key[key] for key in dict.fromkeys(keys)]
    return by_name
