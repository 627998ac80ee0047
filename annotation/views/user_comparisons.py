"""A comparison of simulated users with people: asked for on a form, counted before it is stored, then a campaign."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts import access, languages
from accounts.inputs import whole_number
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation import selections
from annotation.models import Dataset
from annotation.sampling import user_comparison
from annotation.sampling.user_comparison import UserComparisonSettings
from annotation.views.campaigns import show_refusal

RATED_CHOICES = [
    ("turn", gettext_lazy("One turn of a user, with the dialogue before it")),
    ("dialogue", gettext_lazy("The whole dialogue")),
]


class UserComparisonForm(forms.Form):
    """Two datasets, how many dialogues of each, and what an item is."""

    simulated = forms.TypedChoiceField(label=gettext_lazy("Dialogues with simulated users"))
    human = forms.TypedChoiceField(
        label=gettext_lazy("Dialogues with people"),
        help_text=gettext_lazy("In the same languages, and about similar things: else annotators tell them by that."),
    )
    name = forms.CharField(
        label=gettext_lazy("Name of the campaign"),
        max_length=user_comparison.LONGEST_COMPARISON_NAME,
        help_text=gettext_lazy("Annotators see it. The mixed dataset has the same name."),
    )
    rated = forms.ChoiceField(
        label=gettext_lazy("What is rated"), choices=RATED_CHOICES, widget=forms.RadioSelect, initial="turn"
    )
    n = forms.IntegerField(
        label=gettext_lazy("Dialogues of each origin in a language"),
        min_value=1,
        max_value=user_comparison.MOST_PER_LANGUAGE,
        initial=50,
    )
    simulated_user = forms.CharField(
        label=gettext_lazy("Speaker who is the simulated user"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("Empty: the speaker called user, customer, client or the like."),
    )
    human_user = forms.CharField(
        label=gettext_lazy("Speaker who is the person"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("Empty: the speaker called user, customer, client or the like."),
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed"),
        min_value=-(2**63),
        max_value=2**63 - 1,
        required=False,
        help_text=gettext_lazy("The same seed gives the same items. Empty: a random one, which is stored."),
    )

    def __init__(self, *args: Any, project: Project, user: User, **options: Any) -> None:
        super().__init__(*args, **options)
        visible = Dataset.objects.visible_to(user).filter(project=project).select_related("project")
        own = {str(dataset.pk): dataset for dataset in visible.order_by("name", "-version")}
        choices = [("", _("Choose a dataset")), *((pk, str(dataset)) for pk, dataset in own.items())]
        for name in ("simulated", "human"):
            self.fields[name].choices = choices  # type: ignore[attr-defined]
            self.fields[name].coerce = own.__getitem__  # type: ignore[attr-defined]

    @property
    def asked(self) -> dict[str, Any]:
        """What a valid form asks for, as the verbs take it."""
        given = dict(self.cleaned_data)
        datasets = {name: given.pop(name) for name in ("simulated", "human")}
        del given["name"]
        return {**datasets, "settings": UserComparisonSettings(**given)}


@require_http_methods(["GET", "POST"])
@login_required
def new_user_comparison(request: HttpRequest, project: str) -> HttpResponse:
    """Ask for a comparison, see how many dialogues it has (`preview`), then open its campaign: panels come next."""
    current_project = access.require(user=request.user, slug=project)
    posted = request.POST.copy() if request.method == "POST" else None
    if posted is not None and not posted.get("seed"):
        posted["seed"] = str(selections.new_seed())  # so that what was shown is what is stored
    begins = {"simulated": whole_number(request.GET.get("simulated"))}
    form = UserComparisonForm(posted, project=current_project, user=request.user, initial=begins)
    context: dict[str, Any] = {
        "title": _("Compare simulated users with people"),
        "project": current_project,
        "form": form,
    }
    if form.is_valid():
        try:
            if "preview" not in request.POST:
                opened = user_comparison.start_user_comparison(
                    project=current_project, name=form.cleaned_data["name"], actor=request.user, **form.asked
                )
                return redirect("duty_new", current_project.slug, opened.pk)
            drawn = user_comparison.draw_comparison(**form.asked)
            spoken_now = get_language() or "en"
            names = [(languages.name_for(row.language, spoken_now), row) for row in drawn.languages]
            context |= {"drawn": drawn, "languages": names}
        except Refused as refused:
            show_refusal(form, refused)
    return render(request, "annotation/user_comparison_new.html", context)
