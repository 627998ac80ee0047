"""The links on every page of a campaign, in groups: one row of groups, one row of the current group's pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import template
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from analytics.study.choice import chosen_in_bar
from annotation.models import Campaign

register = template.Library()


@dataclass(frozen=True, slots=True)
class CampaignPage:
    """A page of a campaign: its label, its URL name, what other URL names are below it, and who may open it."""

    label: Any
    name: str
    below: tuple[str, ...] = ()
    is_for_leads: bool = False

    def has(self, name: str) -> bool:
        return name in (self.name, f"{self.name}_part", *self.below)


GROUPS = (
    (_("Study"), (CampaignPage(_("Study"), "study"),)),
    (
        _("People"),
        (
            CampaignPage(_("Agreement"), "numbers_agreement"),
            CampaignPage(_("Annotators"), "numbers_annotators"),
            CampaignPage(_("Work"), "workload", is_for_leads=True),
            CampaignPage(_("Rater models"), "numbers_raters"),
            CampaignPage(_("Adjudication"), "adjudication", ("adjudicate_item", "meeting")),
        ),
    ),
    (
        _("Judges"),
        (
            CampaignPage(_("Decisions"), "judge_decisions"),
            CampaignPage(_("Calibration"), "numbers_calibration"),
            CampaignPage(_("Comparison"), "numbers_comparison"),
            CampaignPage(_("Audits"), "judge_audits"),
            CampaignPage(_("All judges"), "judges"),
        ),
    ),
    (_("Generators"), (CampaignPage(_("Generators"), "numbers_results"),)),
    (
        _("Next"),
        (
            CampaignPage(_("Workflow"), "workflow"),
            CampaignPage(_("Planner"), "numbers_planner", ("numbers_draw", "numbers_further")),
            CampaignPage(_("Waves"), "numbers_waves"),
        ),
    ),
    (_("Items"), (CampaignPage(_("Items"), "numbers_items", ("numbers_item",)),)),
    (_("Report"), (CampaignPage(_("Report"), "report"),)),
    (
        _("All statistics"),
        (
            CampaignPage(_("All statistics"), "all_statistics"),
            CampaignPage(_("Figures"), "campaign_numbers"),
            CampaignPage(_("Explore"), "numbers_explore"),
        ),
    ),
    (
        _("Campaign"),
        (
            CampaignPage(
                _("Tasks and settings"),
                "campaign",
                ("duty", "duty_new", "duties_by_rules", "selection", "selection_new", "rubric_change"),
            ),
            CampaignPage(
                _("Qualification"),
                "qualification",
                ("references", "reference_form", "standing", "guideline", "guideline_new"),
            ),
            CampaignPage(_("Questions"), "annotator_questions", is_for_leads=True),
            CampaignPage(_("Questionnaire"), "questionnaire", is_for_leads=True),
        ),
    ),
)


@register.simple_tag(takes_context=True)
def campaign_groups(context: Any, campaign: Campaign) -> list[dict[str, Any]]:
    """The groups that the reader may open, each with its pages; what is current comes from the request's address."""
    slug, here = context["project"].slug, context["request"].resolver_match.url_name
    is_lead = context["shell"]["is_lead"]
    chosen = chosen_in_bar(context["request"].GET)
    groups = []
    for label, pages in GROUPS:
        shown = [
            {
                "label": page.label,
                "address": _address(page, slug, campaign, chosen),
                "current": page.has(here),
            }
            for page in pages
            if is_lead or not page.is_for_leads
        ]
        groups.append({"label": label, "pages": shown, "current": any(page["current"] for page in shown)})
    return groups


def _address(page: CampaignPage, slug: str, campaign: Campaign, chosen: Mapping[str, str]) -> str:
    """The address of a page, with what is chosen in the bar."""
    if page.name == "judges":
        return f"{reverse(page.name, args=[slug])}?{urlencode({'campaign': campaign.pk, **chosen})}"
    address = reverse(page.name, args=[slug, campaign.pk])
    return f"{address}?{urlencode(chosen)}" if chosen else address
