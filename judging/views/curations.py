"""Curated datasets: asked for on a form, seen before they are stored, and the page of their certificate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import slugify
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from accounts import access, languages
from accounts.inputs import whole_number
from accounts.models import Project
from accounts.refusals import Refused
from annotation import selections
from annotation.models import CuratedItem, Curation, Dataset, Item
from annotation.sampling.limits import limits_of
from annotation.views.campaigns import show_refusal
from annotation.writers.csv import csv_lines
from judging.generation import curating
from judging.generation.curating import CurationSettings
from judging.models import JudgeRun

METHOD_CHOICES = [
    ("balanced", gettext_lazy("Balanced: the rarer values first, at random among equals")),
    ("random", gettext_lazy("Random: each item with a known probability")),
]
FACET_NAMES = {
    "issue": gettext_lazy("Issues"),
    "score": gettext_lazy("Overall score"),
    "generator": gettext_lazy("Generators"),
    "length": gettext_lazy("Lengths"),
}
LENGTH_NAMES = {
    "short": gettext_lazy("Short third"),
    "middle": gettext_lazy("Middle third"),
    "long": gettext_lazy("Long third"),
}
LEFT_OUT_NAMES = {
    "unread": gettext_lazy("without a readable verdict on each criterion"),
    "unreadable": gettext_lazy("flagged as not interpretable"),
    "not_whole": gettext_lazy("in families that are not whole"),
}
FOR_METHODS = {"clean_first": "balanced", "user": "balanced", "balance": "balanced", "by": "random"}
SHEET = ("item", "language", "generator", "scenario", "probability", "stratum")
NOT_CHOSEN = ("", gettext_lazy("None"))


class CurationForm(forms.Form):
    """What is asked for. The fields about verdicts are there when a run is chosen."""

    run = forms.IntegerField(required=False, widget=forms.HiddenInput)
    name = forms.CharField(label=gettext_lazy("Name of the new dataset"), max_length=120)
    n = forms.IntegerField(
        label=gettext_lazy("Items per language"), min_value=1, max_value=curating.MOST_ASKED, initial=100
    )
    languages = forms.MultipleChoiceField(
        label=gettext_lazy("Languages"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("None: all languages of the dataset."),
    )
    method = forms.ChoiceField(
        label=gettext_lazy("How items are chosen"),
        choices=METHOD_CHOICES,
        widget=forms.RadioSelect,
        initial="balanced",
    )
    issues = forms.MultipleChoiceField(
        label=gettext_lazy("Issues"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("An item has an issue if its score is in the worse half of the scale."),
    )
    overall = forms.ChoiceField(label=gettext_lazy("Overall score"), required=False)
    unreadable = forms.ChoiceField(
        label=gettext_lazy("Exclude items flagged as"),
        required=False,
        help_text=gettext_lazy("Text that nobody can interpret is easy to detect and teaches little."),
    )
    words = forms.CharField(
        label=gettext_lazy("Only if the judge's rationale has one of these words"),
        required=False,
        max_length=1_000,
        help_text=gettext_lazy("Separated by commas. Empty: all items flagged so are excluded."),
    )
    clean_first = forms.BooleanField(
        label=gettext_lazy("Start with one item without issues for every pair of user and generator"),
        required=False,
        initial=True,
    )
    user = forms.ChoiceField(
        label=gettext_lazy("Attribute with the simulated user"),
        required=False,
        help_text=gettext_lazy("None: one item without issues for every generator."),
    )
    balance = forms.MultipleChoiceField(
        label=gettext_lazy("Balance over"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        choices=list(FACET_NAMES.items()),
        initial=list(curating.FACETS),
    )
    by = forms.MultipleChoiceField(
        label=gettext_lazy("Strata within a language"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Every combination is a stratum, and strata get equal numbers. None: one stratum."),
    )
    by_family = forms.BooleanField(
        label=gettext_lazy("Whole families only"),
        required=False,
        help_text=gettext_lazy("A family is the items of one scenario in all languages. It is kept or dropped whole."),
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed"),
        min_value=-(2**63),
        max_value=2**63 - 1,
        required=False,
        help_text=gettext_lazy("The same seed gives the same items. Empty: a random one, which is stored."),
    )

    def __init__(self, *args: Any, dataset: Dataset, run: JudgeRun | None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.chosen_run = run
        columns = curating.attribute_columns(dataset)
        attributes = [(column, column.removeprefix(selections.ATTRIBUTE)) for column in columns]
        tags = Item.objects.of(dataset).order_by().values_list("language", flat=True).distinct()
        spoken_now = get_language()
        choices: dict[str, list[Any]] = {
            "languages": [
                (tag, languages.name_for(tag, spoken_now)) for tag in languages.in_name_order(set(tags), spoken_now)
            ],
            "user": [NOT_CHOSEN, *((name, name) for _column, name in attributes)],
            "by": [*((column, column) for column in selections.PLAIN[1:]), *attributes],
        }
        if run is None:
            for name in ("issues", "overall", "unreadable", "words", "clean_first", "user"):
                del self.fields[name]
            choices["balance"] = [(key, FACET_NAMES[key]) for key in ("generator", "length")]
            del choices["user"]
        else:
            criteria = curating.flagging_criteria(run)
            named = [(criterion.key, criterion.says("name", spoken_now) or criterion.key) for criterion in criteria]
            choices |= {"issues": named, "overall": [NOT_CHOSEN, *named], "unreadable": [NOT_CHOSEN, *named]}
            self.initial = {
                **self.initial,
                "run": run.pk,
                "issues": curating.default_issues(criteria),
                "overall": curating.default_overall(criteria),
                "unreadable": curating.default_unreadable(criteria),
            }
        for name, offered in choices.items():
            self.fields[name].choices = offered  # type: ignore[attr-defined]

    @property
    def fields_with_methods(self) -> list[tuple[forms.BoundField, str]]:
        """Each field, and the method that it is for; empty for both."""
        return [(field, FOR_METHODS.get(field.name, "")) for field in self.visible_fields()]

    @property
    def settings(self) -> CurationSettings:
        """What a valid form asks for."""
        given = dict(self.cleaned_data)
        for name in ("name", "run"):
            del given[name]
        given["words"] = given.get("words", "").split(",")
        return CurationSettings(run=self.chosen_run, **given)


@require_http_methods(["GET", "POST"])
@login_required
def new_curation(request: HttpRequest, project: str, dataset: int) -> HttpResponse:
    """Ask for a set (the address may name the run), see its certificate (`preview`), and store exactly that."""
    current_project = access.require(user=request.user, slug=project)
    datasets = Dataset.objects.visible_to(request.user).filter(project=current_project)
    source = get_object_or_404(datasets.select_related("project"), pk=dataset)
    runs = curating.source_runs(source, JudgeRun.objects.visible_to(request.user))
    asked = whole_number((request.POST if request.method == "POST" else request.GET).get("run"))
    run = get_object_or_404(runs, pk=asked) if asked is not None else None
    posted = request.POST.copy() if request.method == "POST" else None
    if posted is not None and not posted.get("seed"):
        posted["seed"] = str(selections.new_seed())  # so that what was shown is what is stored
    form = CurationForm(posted, dataset=source, run=run)
    context: dict[str, Any] = {
        "title": _("Curate a dataset"),
        "project": current_project,
        "dataset": source,
        "form": form,
        "runs": runs,
        "run": run,
    }
    if form.is_valid():
        try:
            if "preview" not in request.POST:
                name = form.cleaned_data["name"]
                stored = curating.curate(dataset=source, name=name, settings=form.settings, actor=request.user)
                return redirect("curation", current_project.slug, stored.pk)
            drawn = curating.draw_curation(dataset=source, settings=form.settings)
            context |= {"certified": certificate_shown(drawn.rule, drawn.certificate, run)}
        except Refused as refused:
            show_refusal(form, refused)
    return render(request, "judging/curation_new.html", context)


@require_safe
@login_required
def curation_page(request: HttpRequest, project: str, curation: int) -> HttpResponse:
    """The certificate of a curated dataset."""
    current_project, shown = find_curation(request, project, curation)
    visible = JudgeRun.objects.visible_to(request.user).filter(project=current_project)
    run = visible.select_related("judge", "rubric_version").filter(pk=shown.rule.get("run")).first()
    judge = shown.certificate["judge"]
    if run is not None and (judge is None or run.judge.name != judge["name"]):
        run = None  # of another instance, from which the project was copied
    context = {
        "title": shown.dataset.name,
        "project": current_project,
        "curation": shown,
        "simulated": shown.dataset.simulated,
        "run": run,
        "certified": certificate_shown(shown.rule, shown.certificate, run),
    }
    return render(request, "judging/curation.html", context)


@require_safe
@login_required
def curation_csv(request: HttpRequest, project: str, curation: int) -> HttpResponse:
    """The chosen items, each with its inclusion probability and stratum."""
    _project, shown = find_curation(request, project, curation)
    of_item = ("item__external_id", "item__language", "item__generator", "item__scenario")
    rows = CuratedItem.objects.filter(curation=shown).order_by("item__ordinal")
    lines = csv_lines(SHEET, rows.values_list(*of_item, "probability", "stratum"))
    name = f"{slugify(shown.dataset.name) or f'curation-{shown.pk}'}-items.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)


def find_curation(request: HttpRequest, project: str, curation: int) -> tuple[Project, Curation]:
    current_project = access.require(user=request.user, slug=project)
    visible: QuerySet[Curation] = Curation.objects.visible_to(request.user).filter(dataset__project=current_project)
    return current_project, get_object_or_404(visible.select_related("dataset", "source", "created_by"), pk=curation)


# --- a certificate in words -------------------------------------------------------------------------------------------
def certificate_shown(rule: Mapping[str, Any], certificate: Mapping[str, Any], run: JudgeRun | None) -> dict[str, Any]:
    """A certificate as its page shows it: names instead of keys, a table for every facet with all languages."""
    spoken_now = get_language()
    names = {} if run is None else {one.key: one.says("name", spoken_now) for one in curating.flagging_criteria(run)}
    counts = [{**row, "name": languages.name_for(row["language"], spoken_now)} for row in certificate["languages"]]
    tags = {row["language"]: row["name"] for row in counts}
    errors = [
        {
            **row,
            "name": tags.get(row["language"], row["language"]),
            "issue": names.get(row["issue"]) or row["issue"],
            "shares": [row["sensitivity"], row["specificity"]],
        }
        for row in certificate["errors"] or ()
    ]
    unlabelled: dict[str, list[str]] = defaultdict(list)
    for row in errors:
        if not row["labelled"]:
            unlabelled[row["name"]].append(row["issue"])
    return {
        "rule": rule,
        "certificate": certificate,
        "method": dict(METHOD_CHOICES).get(rule["method"], rule["method"]),
        "languages": counts,
        "total": sum(row["chosen"] for row in counts),
        "left_out": [(LEFT_OUT_NAMES.get(code, code), count) for code, count in certificate["left_out"].items()],
        "facets": [_facet_shown(facet, certificate["tables"], list(tags), names) for facet in _facets(certificate)],
        "names": list(tags.items()),
        "errors": [row for row in errors if row["labelled"]],
        "unlabelled": [(name, ", ".join(issues)) for name, issues in unlabelled.items()],
        "limits": limits_of(rule, certificate),
    }


def _facets(certificate: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(table["facet"] for table in certificate["tables"]))


def _facet_shown(
    facet: str, tables: Sequence[Mapping[str, Any]], tags: Sequence[str], names: Mapping[str, str]
) -> dict[str, Any]:
    """One facet: its values as rows, in each language before and after; and how uneven it is."""
    own = {table["language"]: table for table in tables if table["facet"] == facet}
    cells = {tag: {value: (before, after) for value, before, after in own[tag]["values"]} for tag in tags}
    values = sorted({value for by_value in cells.values() for value in by_value}, key=_place)
    return {
        "facet": facet,
        "name": FACET_NAMES.get(facet, facet),
        "rows": [
            (_value_name(facet, value, names), [cells[tag].get(value, (0, 0)) for tag in tags]) for value in values
        ],
        "uneven": [tuple(None if share is None else 100 * share for share in own[tag]["uneven"]) for tag in tags],
    }


def _place(value: str) -> tuple[int, float, str]:
    """Nothing first, then numbers, then lengths from short to long, then names."""
    if value in LENGTH_NAMES:
        return 2, float(list(LENGTH_NAMES).index(value)), value
    try:
        return (1, float(value.partition("-")[0] or value), value) if value else (0, 0.0, value)
    except ValueError:
        return 3, 0.0, value


def _value_name(facet: str, value: str, names: Mapping[str, str]) -> Any:
    if facet == "issue":
        return names.get(value) or value if value else _("No issue")
    if facet == "length":
        return LENGTH_NAMES.get(value, value)
    return value or (_("No score") if facet == "score" else "—")
