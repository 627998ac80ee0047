"""The bar of the pages about a campaign's figures: judge, criterion, language, and what the judge is compared with."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from accounts import languages
from analytics.answer_pages import criterion_names
from analytics.item_choices import item_options
from analytics.questions.question_names import ITEM_RULE_NAMES, REFERENCE_NAMES
from analytics.ratings.raters import usual_judges
from analytics.study.choice import BAR, COMPARED_WITH, FILTERS_OF_BAR, chosen_in_bar
from annotation.models import Campaign

register = template.Library()
USED_BY = {
    "study": BAR,
    "numbers_items": BAR,
    "numbers_agreement": FILTERS_OF_BAR,
    "numbers_annotators": FILTERS_OF_BAR,
    "numbers_raters": FILTERS_OF_BAR,
    "judge_decisions": ("judge", "criterion"),
    "numbers_calibration": BAR,
    "judge_audits": ("judge",),
    "numbers_results": ("judge", "criterion", "language"),
    "workflow": ("judge", "language"),
    "numbers_planner": ("judge", "criterion", "language"),
}
"""By page the fields that change what it shows. What else is chosen stays in its address."""
WITHOUT_ALL = {"criterion": ("study", "judge_decisions", "numbers_items"), "language": ("workflow",)}
"""Pages that are about one criterion or language at a time."""


@register.simple_tag(takes_context=True)
def campaign_bar(context: Any, campaign: Campaign) -> dict[str, Any]:
    """The fields of the bar with their options, and the other parameters of the address, which a choice keeps."""
    request = context["request"]
    page = request.resolver_match.url_name.removesuffix("_part")
    if page not in USED_BY:
        return {}
    chosen, spoken = chosen_in_bar(request.GET), get_language()
    options = item_options(campaign)
    hidden = () if request.GET.get("designs") else options.of_designs
    judges = usual_judges(tuple(options.judges), hidden, chosen=[chosen.get("judge", "")])
    tags = languages.in_name_order(options.languages, spoken)
    shown = dict(_shown(context))
    values = {
        "judge": [(name, name) for name in judges],
        "criterion": list(criterion_names(campaign).items()),
        "language": [(tag, languages.name_for(tag, spoken)) for tag in tags],
    }
    fields = []
    labels = {"judge": _("Judge"), "criterion": _("Criterion"), "language": _("Language")}
    for name in USED_BY[page]:
        if name == "reference":
            fields.append(_reference_field(page, request.GET.get("reference", "")))
            continue
        current = shown.get(name) or chosen.get(name, "")
        is_one = name == "judge" or page in WITHOUT_ALL.get(name, ())
        empty = [] if is_one and current else [("", _("all"))]
        if values[name]:
            fields.append({"name": name, "label": labels[name], "options": [*empty, *values[name]], "chosen": current})
    offered = {field["name"] for field in fields}
    kept = [
        (name, text)
        for name, texts in request.GET.lists()
        for text in texts
        if text
        and name not in (*offered, "seen", "page", "cell")
        and not (name == "where" and text.partition("=")[0] in offered)
    ]
    return {"fields": fields, "kept": kept}


def _reference_field(page: str, asked: str) -> dict[str, Any]:
    """The rules of reference to choose from. The first is the page's usual one: it is never in an address, where it
    would change the figures of other pages, which have another usual one.
    """
    usual = {
        "study": REFERENCE_NAMES["mean"], "numbers_items": _("Mean (labels: mode)"),
        "numbers_calibration": _("the usual of each figure"),
    }[page]  # fmt: skip
    rules = [name for name in COMPARED_WITH if page != "study" or name != "mean" or asked == "mean"]
    if page == "numbers_items":
        rules += [name for name in ITEM_RULE_NAMES if name not in COMPARED_WITH]
    if asked in REFERENCE_NAMES and asked not in ("", *rules) and page != "study":
        rules.append(asked)
    options = [(name, str(REFERENCE_NAMES.get(name) or ITEM_RULE_NAMES[name])) for name in rules]
    if page != "study" or asked != "mean":
        options.insert(0, ("", str(usual)))
    chosen = asked if asked in rules else ""
    return {"name": "reference", "label": _("Compared with"), "options": options, "chosen": chosen}


def _shown(context: Any) -> Any:
    """What the page shows without a choice, by field, as far as it has one."""
    for name in ("study", "choice", "page", "workflow"):
        about = context.get(name)
        about = getattr(about, "choice", about)
        for field in BAR:
            value = getattr(about, field, "")
            value = getattr(value, "key", value)
            if isinstance(value, str) and value:
                yield field, value
    if isinstance(context.get("judge"), str):
        yield "judge", context["judge"]
