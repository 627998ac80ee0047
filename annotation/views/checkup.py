"""The check-up of a dataset, for leads and researchers: what it found, where, and a dataset without it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts import access, jobs, languages
from accounts.inputs import whole_number, without_nul
from accounts.models import Project
from accounts.refusals import Refused
from annotation import tasks
from annotation.checkup import checkups
from annotation.checkup.checking import CHECKS, CheckedDataset, CheckFinding
from annotation.checkup.checkups import LeftOut
from annotation.checkup.declared import REASONS, SEVERITIES, SUBJECTS
from annotation.checkup.native_flags import FEWEST_FLAGS, FEWEST_OTHERS, LEAST_PROBABILITY, USUAL_BECAUSE
from annotation.models import Dataset, Item
from annotation.models.content import ITEM_FILTERS

EXAMPLES_SHOWN = 4  # of one check, on the page of all
ITEMS_SHOWN = 50  # on the page of one check
MOST_ODDS = 1_000_000
LARGEST_IN_ODDS = 0.1
"""A probability above it is written in percent."""


@dataclass(slots=True)
class FoundItemShown:
    """An item in which something was found, with its address, and the words if they were stored."""

    external_id: str
    address: str
    turn: int | None = None
    part: str = ""
    text: str = ""


@dataclass(slots=True)
class FindingShown:
    """One check as the page shows it: ``items`` among those that the filter matches."""

    check: str
    severity: str
    title: str
    help: str
    reason: str
    items: int
    ordinals: list[int]
    examples: list[FoundItemShown] = field(default_factory=list)


@dataclass(slots=True)
class SubjectShown:
    """The checks of one subject: those that found something, then the titles of those that did not."""

    name: str
    title: str
    findings: list[FindingShown] = field(default_factory=list)
    nothing: list[FindingShown] = field(default_factory=list)
    not_applied: list[FindingShown] = field(default_factory=list)


def _dataset(request: HttpRequest, project: str, dataset: int) -> tuple[Project, Dataset]:
    current_project = access.require(user=request.user, slug=project)
    datasets = Dataset.objects.visible_to(request.user).filter(project=current_project)
    return current_project, get_object_or_404(datasets.select_related("project"), pk=dataset)


@require_safe
@login_required
def dataset_checkup_page(request: HttpRequest, project: str, dataset: int) -> HttpResponse:
    """What the newest check-up found, by subject and filtered; of one check, every item."""
    current_project, shown = _dataset(request, project, dataset)
    checkup = checkups.checkup_of(shown)
    is_open = checkup is not None and checkup.job is not None and checkup.job.is_open
    context: dict[str, Any] = {
        "title": _("Check-up"),
        "project": current_project,
        "dataset": shown,
        "checkup": checkup,
        "pending": checkup.job if checkup and is_open else None,
        "failure": checkup.job.sentence if checkup and checkup.job and not is_open else "",
        "outdated": checkup is not None and checkups.is_outdated(checkup),
        "made": Dataset.objects.visible_to(request.user).filter(derived_from=shown).order_by("pk"),
        "made_from": _making(checkup.made_from) if checkup else None,
    }
    if checkup is not None and checkup.result is not None:
        context |= _result(request, shown, CheckedDataset.from_json(checkup.result))
    return render(request, "annotation/checkup.html", context)


def _result(request: HttpRequest, dataset: Dataset, result: CheckedDataset) -> dict[str, Any]:
    chosen = {name: request.GET.get(name, "") for name in (*ITEM_FILTERS, "severity", "check")}
    filters = {name: chosen[name] for name in ITEM_FILTERS if chosen[name]}
    matching = set(Item.objects.of(dataset).matching(filters).values_list("ordinal", flat=True)) if filters else None
    is_single = chosen["check"] in CHECKS
    subjects = {name: SubjectShown(name, _(title)) for name, title in SUBJECTS.items()}
    shown: list[tuple[CheckFinding, FindingShown]] = []
    for finding in result.findings:
        check = CHECKS.get(finding.check)
        if check is None or (is_single and finding.check != chosen["check"]):
            continue  # it is not one of today's checks
        if chosen["severity"] in SEVERITIES and finding.severity != chosen["severity"]:
            continue
        ordinals = [ordinal for ordinal in finding.held() if matching is None or ordinal in matching]
        reason = _(REASONS[finding.reason]) if finding.reason in REASONS else ""
        row = FindingShown(
            check=finding.check,
            severity=finding.severity,
            title=_(check.title),
            help=_(check.help),
            reason=reason,
            items=len(ordinals),
            ordinals=ordinals,
        )
        of_subject = subjects[check.subject]
        (of_subject.not_applied if reason else of_subject.findings if ordinals else of_subject.nothing).append(row)
        shown.append((finding, row))
    after = whole_number(request.GET.get("after")) if is_single else None
    _add_examples(dataset, shown, is_single=is_single, after=-1 if after is None else after)
    listed = [subject for subject in subjects.values() if subject.findings or subject.nothing or subject.not_applied]
    found = Item.objects.of(dataset).order_by()
    return {
        "result": result,
        "subjects": listed,
        "single": shown[0][1] if is_single and shown else None,
        "next_after": _next_after(shown[0][1], after) if is_single and shown else None,
        "is_first_page": after is None,
        "chosen": chosen,
        "is_filtered": bool(filters) or chosen["severity"] in SEVERITIES,
        "languages": _named(found.values_list("language", flat=True).distinct()),
        "generators": sorted(filter(None, found.values_list("generator", flat=True).distinct())),
        "natives": [_beside_natives(row) for row in result.natives],
        "fewest": {"flags": FEWEST_FLAGS, "others": FEWEST_OTHERS},
        "lengths": [{**row, "name": languages.name_for(row["language"], get_language())} for row in result.lengths],
        "has_findings": any(subject.findings for subject in listed),
    }


def _beside_natives(row: dict[str, Any]) -> dict[str, Any]:
    """A comparison with the annotators, with its reason and its threshold in words."""
    return {
        **row,
        **threshold_words(row),
        "name": languages.name_for(row["language"], get_language()),
        "because": _(USUAL_BECAUSE[row["reason"]]) if row["reason"] in USUAL_BECAUSE else "",
    }


def threshold_words(row: dict[str, Any]) -> dict[str, Any]:
    """``odds``: the threshold as one in so many; ``share``: in percent, where that says more; ``is_least``: below the
    least that is written as odds.
    """
    threshold = row["threshold"]
    return {
        "odds": min(round(1 / max(threshold, LEAST_PROBABILITY)), MOST_ODDS),
        "share": f"{100 * threshold:.0f}" if threshold > LARGEST_IN_ODDS else "",
        "is_least": threshold < 1 / MOST_ODDS,
    }


def _named(tags: Iterable[str]) -> list[tuple[str, str]]:
    spoken = get_language()
    return [(tag, languages.name_for(tag, spoken)) for tag in languages.in_name_order(tags, spoken)]


def _next_after(row: FindingShown, after: int | None) -> int | None:
    """The last item of this page of one check, if there are more."""
    left = [ordinal for ordinal in row.ordinals if after is None or ordinal > after]
    return left[ITEMS_SHOWN - 1] if len(left) > ITEMS_SHOWN else None


def _add_examples(
    dataset: Dataset, shown: list[tuple[CheckFinding, FindingShown]], *, is_single: bool, after: int
) -> None:
    """The items that the page links to: a few of each check with words, or a page of one check's items."""
    listed: dict[str, list[int]] = {}
    for finding, row in shown:
        if is_single:
            listed[row.check] = [ordinal for ordinal in row.ordinals if ordinal > after][:ITEMS_SHOWN]
        else:
            with_words = {example["ordinal"] for example in finding.examples}
            first = [ordinal for ordinal in row.ordinals if ordinal in with_words] or row.ordinals
            listed[row.check] = first[:: max(1, len(first) // EXAMPLES_SHOWN)][:EXAMPLES_SHOWN]
    keys = checkups.item_keys(dataset, sorted({ordinal for some in listed.values() for ordinal in some}))
    for finding, row in shown:
        words = {example["ordinal"]: example for example in finding.examples}
        row.examples = [
            _example(dataset, keys[ordinal], finding.check, words.get(ordinal))
            for ordinal in listed[row.check]
            if ordinal in keys
        ]


def _example(dataset: Dataset, key: tuple[int, str], check: str, stored: dict[str, Any] | None) -> FoundItemShown:
    address = reverse("item", args=[dataset.project.slug, dataset.pk, key[0]])
    if stored is None:
        return FoundItemShown(key[1], address)
    place = stored["place"]
    turn = place + 1 if isinstance(place, int) else None
    part = place if isinstance(place, str) else ""
    return FoundItemShown(key[1], address, turn, part, finding_words(check, stored["values"]))


def finding_words(check: str, values: dict[str, Any]) -> str:
    """What a check says of one item, in the language of the page."""
    spoken = get_language()
    named = {
        name: languages.name_for(str(value), spoken) if name.endswith("language") else value
        for name, value in values.items()
    }
    return _(CHECKS[check].says) % named


def _making(made_from: dict[str, Any]) -> dict[str, Any] | None:
    """How this dataset was made, with the titles of the findings that it leaves out."""
    if not made_from:
        return None
    titles = [
        (_(CHECKS[name].title) if name in CHECKS else name, count) for name, count in made_from["findings"].items()
    ]
    return {**made_from, "findings": titles}


@require_POST
@login_required
def check_dataset_view(request: HttpRequest, project: str, dataset: int) -> HttpResponse:
    """Ask for a check-up; a worker carries it out."""
    current_project, shown = _dataset(request, project, dataset)
    tasks.check_later(shown, request.user)
    return redirect("dataset_checkup", project=current_project.slug, dataset=shown.pk)


@require_POST
@login_required
def leave_out_view(request: HttpRequest, project: str, dataset: int) -> HttpResponse:
    """Make a dataset without the items of the chosen findings."""
    current_project, shown = _dataset(request, project, dataset)
    checkup = checkups.checkup_of(shown)
    chosen = tuple(sorted(set(request.POST.getlist("checks"))))
    left_out = LeftOut(chosen, "families" in request.POST, without_nul(request.POST.get("name", "")))
    try:
        if checkup is None:
            raise Refused(_("Check this dataset first."), code="not_checked")
        made = checkups.leave_out(checkup=checkup, left_out=left_out, actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect("dataset_checkup", project=current_project.slug, dataset=shown.pk)
    if made is None:
        jobs.enqueue(checkup)
        return redirect("dataset_checkup", project=current_project.slug, dataset=shown.pk)
    tasks.check_later(made, request.user)
    messages.success(request, _("“%(dataset)s” is stored. Nothing of the original was changed.") % {"dataset": made})
    return redirect("dataset_checkup", project=current_project.slug, dataset=made.pk)
