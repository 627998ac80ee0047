"""Taxonomies, and the duties that their rules make; for leads and researchers."""

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
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation import rule_plans, taxonomies
from annotation.api.campaigns import LARGEST_ID, SEEDS, StratumSerializer, campaign_in_project
from annotation.models import ItemSelection, Panel, Taxonomy
from annotation.readers import parse_taxonomy, taxonomy_from_dict


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
