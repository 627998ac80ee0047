"""The links on every page about a campaign's figures, in groups: one row of groups, one row of the group's pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import template
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from annotation.models import Campaign

register = template.Library()


@dataclass(frozen=True, slots=True)
class CampaignPage:
    """A page of a campaign: its label, its URL name, and what other URL names are below it."""

    label: Any
    name: str
    below: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        return name in (self.name, f"{self.name}_part", *self.below)


WORK, ANNOTATORS = CampaignPage(_("Work"), "workload"), CampaignPage(_("Annotators"), "numbers_annotators")
GROUPS = (
    (_("Study"), (CampaignPage(_("Study"), "study"),)),
    (
        _("Figures"),
        (
            CampaignPage(_("Numbers"), "campaign_numbers"),
            CampaignPage(_("Explore"), "numbers_explore"),
            CampaignPage(_("Items"), "numbers_items", ("numbers_item",)),
        ),
    ),
    (
        _("Panel"),
        (
            CampaignPage(_("Agreement"), "numbers_agreement"),
            CampaignPage(_("Rater models"), "numbers_raters"),
            ANNOTATORS,
            WORK,
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
            CampaignPage(_("Declared judges"), "judges"),
        ),
    ),
    (
        _("Generators"),
        (CampaignPage(_("Results"), "numbers_results"), CampaignPage(_("Stability"), "numbers_stability")),
    ),
    (_("Planning"), (CampaignPage(_("Workflow"), "workflow"), CampaignPage(_("Planner"), "numbers_planner"))),
)


@register.simple_tag(takes_context=True)
def campaign_groups(context: Any, campaign: Campaign) -> list[dict[str, Any]]:
    """The groups that the reader may open, each with its pages; what is current comes from the request's address."""
    slug, here = context["project"].slug, context["request"].resolver_match.url_name
    groups = [_group(label, pages, slug, campaign, here) for label, pages in GROUPS]
    if not context["shell"]["is_lead"]:
        for group in groups:
            group["pages"] = [page for page in group["pages"] if page["name"] != WORK.name]
    return groups


def _group(label: Any, pages: tuple[CampaignPage, ...], slug: str, campaign: Campaign, here: str) -> dict[str, Any]:
    shown = [
        {"name": page.name, "label": page.label, "address": _address(page, slug, campaign), "current": page.has(here)}
        for page in pages
    ]
    return {"label": label, "pages": shown, "current": any(page["current"] for page in shown)}


def _address(page: CampaignPage, slug: str, campaign: Campaign) -> str:
    if page.name == "judges":
        return f"{reverse(page.name, args=[slug])}?campaign={campaign.pk}"
    return reverse(page.name, args=[slug, campaign.pk])
