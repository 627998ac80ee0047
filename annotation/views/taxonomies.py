"""Taxonomies, and the duties that their rules make; for leads and researchers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import access
from accounts.models import Project
from accounts.refusals import Refused
from annotation import allocation, rule_plans, taxonomies
from annotation.models import Campaign, ItemSelection, Panel, Taxonomy
from annotation.models.content import spoken
from annotation.readers import TaxonomyDocument, TaxonomyNode, parse_taxonomy, taxonomy_from_dict
from annotation.rule_plans import TaxonomyPlan
from annotation.views import import_page

MOST_PROBLEMS = 50
LONGEST_TEXT = 2**20


class TaxonomyForm(forms.Form):
    """A taxonomy as YAML, typed or as a file."""

    text = forms.CharField(
        label=gettext_lazy("Taxonomy as YAML"),
        required=False,
        strip=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 24, "spellcheck": "false", "class": "code"}),
    )
    file = forms.FileField(
        label=gettext_lazy("Or a file"),
        required=False,
        help_text=gettext_lazy("YAML, or JSON if its name ends in .json. It replaces the text above."),
    )

    document: TaxonomyDocument | None = None

    def clean(self) -> dict[str, Any]:
        """Read the document; its problems are those of the text."""
        given = super().clean() or {}
        file = given.get("file")
        name, raw = (file.name, file.read(LONGEST_TEXT + 1)) if file else ("YAML", given.get("text", "").encode())
        if file and len(raw) <= LONGEST_TEXT:
            self.data = {**self.data.dict(), "text": raw.decode("utf-8", "replace")}  # type: ignore[attr-defined]
        self.document, problems = parse_taxonomy(name, raw)
        for problem in list(problems)[:MOST_PROBLEMS]:
            self.add_error("text", str(problem))
        if (more := len(problems) - MOST_PROBLEMS) > 0:
            self.add_error("text", _("... and %d more.") % more)
        return given


def _taxonomies(request: HttpRequest, project: str) -> tuple[Project, QuerySet[Taxonomy]]:
    current_project = access.require(user=request.user, slug=project)
    return current_project, Taxonomy.objects.visible_to(request.user).filter(project=current_project)


@require_safe
@login_required
def taxonomies_page(request: HttpRequest, project: str) -> HttpResponse:
    """Every taxonomy with its versions, newest first."""
    current_project, visible = _taxonomies(request, project)
    by_key: dict[str, list[Taxonomy]] = {}
    for version in visible:
        by_key.setdefault(version.key, []).append(version)
    listed = [(versions[0].name(request.LANGUAGE_CODE), versions) for versions in by_key.values()]
    context = {"title": _("Taxonomies"), "project": current_project, "taxonomies": listed}
    return render(request, "annotation/taxonomies.html", context)


@require_http_methods(["GET", "POST"])
@login_required
def new_taxonomy(request: HttpRequest, project: str) -> HttpResponse:
    """Type or upload a taxonomy; ``from``: begin with the text of a version, whose next version it becomes."""
    current_project, visible = _taxonomies(request, project)
    former = get_object_or_404(visible, pk=import_page.key(request.GET["from"])) if "from" in request.GET else None
    initial = {"text": taxonomy_from_dict(former.document).as_yaml() if former else ""}
    posted = request.method == "POST"
    form = TaxonomyForm(request.POST if posted else None, request.FILES if posted else None, initial=initial)
    if form.is_valid() and form.document:
        try:
            stored = taxonomies.store_taxonomy(project=current_project, document=form.document, actor=request.user)
            return redirect("taxonomy", current_project.slug, stored.pk)
        except Refused as refused:
            form.add_error(None, refused.sentence)
    title = _("Edit %s") % former if former else _("New taxonomy")
    return render(request, "annotation/taxonomy_new.html", {"title": title, "project": current_project, "form": form})


@require_POST
@login_required
def example_taxonomy(request: HttpRequest, project: str) -> HttpResponse:
    """Store the example that ships: a taxonomy, and the rubric whose criteria its rules give, as a draft."""
    current_project, _visible = _taxonomies(request, project)
    try:
        stored, rubric = taxonomies.store_example(project=current_project, actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect("taxonomies", current_project.slug)
    messages.success(request, _("The example is saved, with its rubric “%s”. Publish this before use.") % rubric)
    return redirect("taxonomy", current_project.slug, stored.pk)


@require_safe
@login_required
def taxonomy_page(request: HttpRequest, project: str, taxonomy: int) -> HttpResponse:
    """One version: its tasks, styles, groups of criteria and rules, and the campaigns that it can be applied to."""
    current_project, visible = _taxonomies(request, project)
    shown = get_object_or_404(visible, pk=taxonomy)
    document = taxonomy_from_dict(shown.document)
    campaigns = Campaign.objects.visible_to(request.user).filter(project=current_project)
    language = request.LANGUAGE_CODE
    context = {
        "title": shown.name(language),
        "project": current_project,
        "taxonomy": shown,
        "document": document,
        "tasks": [_in_words(path, document, language) for top in document.tasks for path in top.walk()],
        "styles": [_in_words((style,), document, language) for style in document.styles],
        "groups": [_in_words((group,), document, language) for group in document.groups],
        "versions": visible.filter(key=shown.key),
        "campaigns": campaigns.exclude(state=Campaign.State.CLOSED),
    }
    return render(request, "annotation/taxonomy.html", context)


def _in_words(path: Sequence[TaxonomyNode], document: TaxonomyDocument, language: str) -> dict[str, Any]:
    """A task, a style or a group of criteria in the reader's language; a task with the names of those above it."""
    shown = path[-1]

    def say(texts: Any) -> str:
        return spoken(texts, language, document.source_language) or ""

    return {
        "key": shown.key,
        "above": [say(node.name) for node in path[:-1]],
        "name": say(shown.name),
        "definition": say(shown.definition),
        "difficulties": [(level, say(texts)) for level, texts in shown.difficulties.items()],
        "criteria": shown.criteria,
    }


@require_safe
@login_required
def taxonomy_yaml(request: HttpRequest, project: str, taxonomy: int) -> HttpResponse:
    """The document as YAML, to keep or to change."""
    _project, visible = _taxonomies(request, project)
    shown = get_object_or_404(visible, pk=taxonomy)
    text = taxonomy_from_dict(shown.document).as_yaml()
    name = f"{shown.key}-v{shown.number}.yaml"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(text, content_type="application/yaml; charset=utf-8", headers=headers)


@require_POST
@login_required
def remove_taxonomy_view(request: HttpRequest, project: str, taxonomy: int) -> HttpResponse:
    """Remove a version whose rules made no duty."""
    current_project, visible = _taxonomies(request, project)
    removed = get_object_or_404(visible, pk=taxonomy)
    name = str(removed)
    try:
        taxonomies.remove_taxonomy(taxonomy=removed, actor=request.user)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return redirect("taxonomy", current_project.slug, taxonomy)
    messages.success(request, _("“%s” was removed.") % name)
    return redirect("taxonomies", current_project.slug)


# --- duties by rules --------------------------------------------------------------------------------------------------
class RulesForm(forms.Form):
    """Which taxonomy is applied to which items, and which panels of the project its rules mean."""

    taxonomy = forms.ModelChoiceField(
        label=gettext_lazy("Taxonomy"), queryset=Taxonomy.objects.none(), empty_label=gettext_lazy("Choose a taxonomy")
    )
    selection = forms.ModelChoiceField(
        label=gettext_lazy("Items"),
        queryset=ItemSelection.objects.none(),
        required=False,
        empty_label=gettext_lazy("All items of the campaign"),
    )

    def __init__(
        self, given: QueryDict, *, campaign: Campaign, versions: QuerySet[Taxonomy], panels: list[Panel]
    ) -> None:
        super().__init__(given or None)
        self.fields["taxonomy"].queryset = versions  # type: ignore[attr-defined]
        self.fields["selection"].queryset = ItemSelection.objects.filter(campaign=campaign)  # type: ignore[attr-defined]
        chosen = versions.filter(pk=import_page.key(given.get("taxonomy", ""))).first()
        self.named = list(taxonomies.panels_for(taxonomy_from_dict(chosen.document), panels).items()) if chosen else []
        for number, (name, same) in enumerate(self.named):
            self.fields[f"panel-{number}"] = forms.ModelMultipleChoiceField(
                label=name,
                queryset=Panel.objects.filter(pk__in=[panel.pk for panel in panels]),
                required=False,
                widget=forms.CheckboxSelectMultiple,
                initial=same,
            )
        if chosen and f"of-{chosen.pk}" not in given:  # first sight of this taxonomy: the panels of the same names
            self.data = given.copy()
            for number, (_name, same) in enumerate(self.named):
                self.data.setlist(f"panel-{number}", [str(panel.pk) for panel in same])

    @property
    def panel_fields(self) -> list[forms.BoundField]:
        """The choices of panels, one for each name in the rules."""
        return [self[f"panel-{number}"] for number in range(len(self.named))]

    @property
    def panels(self) -> dict[str, list[Panel]]:
        """Map each name in the rules to the panels chosen in a valid form."""
        return {name: list(self.cleaned_data[f"panel-{number}"]) for number, (name, _same) in enumerate(self.named)}


@require_http_methods(["GET", "POST"])
@login_required
def duties_by_rules(request: HttpRequest, project: str, campaign: int) -> HttpResponse:
    """Count what the rules of a taxonomy would give to whom (GET), and create these duties (POST)."""
    current_project, versions = _taxonomies(request, project)
    visible = Campaign.objects.visible_to(request.user).filter(project=current_project)
    target = get_object_or_404(visible.select_related("dataset", "rubric_version__rubric", "project"), pk=campaign)
    panels = list(Panel.objects.visible_to(request.user).filter(project=current_project))
    given = request.POST if request.method == "POST" else request.GET
    form = RulesForm(given, campaign=target, versions=versions, panels=panels)
    plan = None
    if form.is_valid():
        chosen = {name: form.cleaned_data[name] for name in ("taxonomy", "selection")} | {"panels": form.panels}
        if request.method == "POST" and _applied(request, target, chosen):
            return redirect("campaign", current_project.slug, target.pk)
        plan = _planned(request, target, chosen)
    shown = allocation.names_shown(target.dataset) if plan else []
    context = {
        "title": _("Rating tasks by rules"),
        "project": current_project,
        "campaign": target,
        "form": form,
        "plan": plan,
        "has_taxonomies": versions.exists(),
        "has_panels": bool(panels),
        "names_shown": [] if shown and allocation.keeps_names(target.dataset) else shown,
    }
    return render(request, "annotation/duties_by_rules.html", context)


def _planned(request: HttpRequest, campaign: Campaign, chosen: dict[str, Any]) -> TaxonomyPlan | None:
    try:
        return rule_plans.plan_duties(campaign=campaign, **chosen)
    except Refused as refused:
        if request.method != "POST":  # its own refusal is shown already
            messages.error(request, refused.sentence)
        return None


def _applied(request: HttpRequest, campaign: Campaign, chosen: dict[str, Any]) -> bool:
    try:
        knowingly = "keep_names" in request.POST
        made = taxonomies.apply_rules(campaign=campaign, keep_names=knowingly, actor=request.user, **chosen)
    except Refused as refused:
        messages.error(request, refused.sentence)
        return False
    count = made.assignments
    done = ngettext("%d assignment was created.", "%d assignments were created.", count) % count
    messages.success(request, done if count else _("Nothing to add: the rating tasks have all that the rules ask for."))
    return True
