"""Two judges of a project beside each other: their settings, what each is sent, and where their scores differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.refusals import Refused
from analytics.judges import compared_judges
from analytics.judges.compared_judges import JudgeDisagreement
from analytics.judges.prompt_changes import prompt_changes
from annotation.desk import presentation
from annotation.models import Campaign, Item, RubricVersion
from judging import requests
from judging.models import Judge, JudgeRun
from judging.templatetags.judging import factor_name, level_name
from judging.views.judges import find_judge

COUNTED = ("examples", "own_texts")
"""Factors with whole texts: the prompt shows them, and the table of differences says how many there are."""


@dataclass(frozen=True, slots=True)
class PairedRuns:
    """The newest runs of two judges about the same dataset by the same rubric version."""

    first: JudgeRun
    second: JudgeRun

    @property
    def campaign(self) -> Campaign | None:
        """The newest campaign about these items by this rubric: its pages have the panel's ratings of them."""
        about = {"dataset": self.first.dataset_id, "rubric_version": self.first.rubric_version_id}
        return Campaign.objects.filter(project=self.first.project_id, **about).order_by("-pk").first()


@require_safe
@login_required
def paired_judges_page(request: HttpRequest, project: str, judge: int) -> HttpResponse:
    """A judge beside another one: by default the one that it was made from, else the newest other judge."""
    current_project, judges_of_project = find_judge(request, project)
    second = get_object_or_404(judges_of_project, pk=judge)
    others = list(judges_of_project.exclude(pk=second.pk).order_by("-pk"))
    asked = request.GET.get("other", "")
    wanted = asked or str(second.parent_id or next((other.pk for other in others), ""))
    first = next((other for other in others if str(other.pk) == wanted), None)
    if asked and first is None:
        raise Http404
    context: dict[str, Any] = {"title": second.name, "project": current_project, "judge": second, "others": others}
    if first is None:
        return render(request, "analytics/paired_judges.html", context)
    paired = _paired_runs(first, second)
    listed = compared_judges.disagreements(paired.first, paired.second) if paired else []
    item = _chosen_item(request, paired, listed)
    context |= {
        "title": _("%(first)s beside %(second)s") % {"first": first.name, "second": second.name},
        "other": first,
        "differences": list(setting_differences(first, second)),
        "paired": paired,
        "campaign": paired.campaign if paired else None,
        "disagreements": listed,
        "chosen": [each for each in listed if item is not None and each.item.pk == item.pk],
        "item": presentation.show_item(item, (), item.dataset.layout) if item else None,
        "stored": item,
        **(_counts(paired) if paired else {}),
        **(prompt_differences(first, second, item, paired.second.rubric_version) if item and paired else {}),
    }
    return render(request, "analytics/paired_judges.html", context)


def _paired_runs(first: Judge, second: Judge) -> PairedRuns | None:
    """The newest runs with which both judges scored the same items; none where they never did."""
    whole = {"is_pilot": False, "perturbation__isnull": True}
    mine = {(run.dataset_id, run.rubric_version_id): run for run in first.runs.filter(**whole).order_by("pk")}
    for run in second.runs.filter(**whole).select_related("rubric_version", "dataset").order_by("-pk"):
        if found := mine.get((run.dataset_id, run.rubric_version_id)):
            return PairedRuns(found, run)
    return None


def _chosen_item(request: HttpRequest, paired: PairedRuns | None, listed: list[JudgeDisagreement]) -> Item | None:
    """The item of the address, else the one on which the judges part most, else the first of the dataset."""
    if paired is None:
        return None
    items = Item.objects.of(paired.first.dataset).select_related("dataset")
    chosen = request.GET.get("item", "")
    if chosen:
        return get_object_or_404(items, pk=chosen if chosen.isdecimal() and len(chosen) < 18 else None)
    return items.filter(pk=listed[0].item.pk).first() if listed else items.first()


def _counts(paired: PairedRuns) -> dict[str, int]:
    both, differ = compared_judges.count_disagreements(paired.first, paired.second)
    return {"both": both, "differ": differ}


def setting_differences(first: Judge, second: Judge) -> Iterator[tuple[str, str, str]]:
    """What is configured differently, in words: the name of the setting, and what each judge has."""
    for name, mine, theirs in (
        (_("Provider"), first.provider, second.provider),
        (_("Model"), first.model, second.model),
        *(
            (factor_name(name), first.parameters.get(name), second.parameters.get(name))
            for name in sorted(first.parameters.keys() | second.parameters.keys())
        ),
    ):
        if mine != theirs:
            yield str(name), _shown(mine), _shown(theirs)
    for factor in sorted(first.variant.keys() | second.variant.keys()):
        mine, theirs = first.variant.get(factor), second.variant.get(factor)
        if mine == theirs or not (mine or theirs):
            continue
        if factor in COUNTED:
            yield factor_name(factor), str(len(mine or ())), str(len(theirs or ()))
        else:
            yield factor_name(factor), _shown(mine), _shown(theirs)


def _shown(level: Any) -> str:
    return level_name(level) if level not in (None, "") else _("none")


def prompt_differences(first: Judge, second: Judge, item: Item, version: RubricVersion) -> dict[str, Any]:
    """What differs in the prompts about an item, or why one of them can't be shown."""
    try:
        before, after = requests.prompts_of_judges([first, second], item=item, rubric_version=version)
    except Refused as refused:
        return {"refusal": refused.sentence}
    return {"changes": prompt_changes(_prompt_text(before), _prompt_text(after))}


def _prompt_text(prompts: list[requests.Prompt]) -> str:
    """The messages of all calls about an item, one below the other, each under its role."""
    return "\n".join(f"[{message['role']}]\n{message['content']}" for prompt in prompts for message in prompt.messages)
