"""What a researcher fills in about a generation plan: one form, shown in four steps."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from django import forms
from django.conf import settings
from django.db.models import Max
from django.http import QueryDict
from django.utils.functional import cached_property
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from accounts import languages
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.models import Dataset, RubricVersion
from judging.asking import endpoints
from judging.asking.allowances import LARGEST_CAP
from judging.asking.declarations import DeclaredProvider
from judging.generation import plans, sources
from judging.generation.preset_words import translated_title
from judging.generation.specs import PRESETS, SIMULATIONS, Spec, from_yaml, parse_spec, preset
from judging.generation.translations import SourceText
from judging.generation.utterance_judge import (
    VERDICT_PARAMETERS,
    UtteranceJudge,
    declare_utterance_judge,
    may_judge_utterances,
    utterance_rubric,
)
from judging.judges import variant_of
from judging.models import GenerationPlan, Judge, PlanDataset, PlanGenerator, Realisation

OWN_SPEC = "own"
STEPS = (
    ("what", _("What"), ("spec", "own_spec")),
    ("languages", _("Languages"), ("source", "source_language", "languages", "further_languages")),
    (
        "generators",
        _("By whom"),
        (
            *("generators", "further_generators", "user_models", "further_user_models"),
            *("utterance_judge", "utterance_rubric", "temperature", "max_tokens"),
        ),
    ),
    ("money", _("How much"), ("name", "families", "repeats", "budget", "seed")),
)
LARGEST_SEED = 2**53
OFFERED_SPECS = (*PRESETS, *SIMULATIONS)
A_JUDGE, A_MODEL = "judge-", "model-"
"""How a choice of an utterance judge begins: with a judge of the project, or with a model that becomes one."""


class PlanForm(forms.Form):
    """A plan in four steps. `visited` is the number of the last step that was sent: what comes after it is not there
    yet, and has its initial values."""

    spec = forms.ChoiceField(label=_("What is written"), widget=forms.RadioSelect, initial=PRESETS[0])
    own_spec = forms.CharField(
        label=_("Own spec"),
        required=False,
        strip=False,
        max_length=1_000_000,
        widget=forms.Textarea(attrs={"rows": 24, "class": "code", "spellcheck": "false", "dir": "auto"}),
        help_text=_("As YAML: key, title, kind, templates, parameters with levels and weights, rules."),
    )
    source = forms.TypedChoiceField(label=_("Dataset to translate"), required=False, coerce=int, empty_value=None)
    source_language = forms.CharField(
        label=_("Language to translate from"),
        required=False,
        max_length=35,
        help_text=_("A language tag, such as: en. May be empty if the dataset has only one other language."),
    )
    languages = forms.MultipleChoiceField(label=_("Languages"), required=False, widget=forms.CheckboxSelectMultiple)
    further_languages = forms.CharField(
        label=_("Further languages"),
        required=False,
        max_length=400,
        help_text=_("Language tags, separated by commas, such as: es-MX, pt-BR"),
    )
    generators = forms.MultipleChoiceField(label=_("Models"), required=False, widget=forms.CheckboxSelectMultiple)
    further_generators = forms.CharField(
        label=_("Further models"),
        required=False,
        max_length=4_000,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "dir": "ltr"}),
        help_text=_("One a line: the name of the provider, a slash, and the name that it gives the model."),
    )
    user_models = forms.MultipleChoiceField(label=_("User models"), required=False, widget=forms.CheckboxSelectMultiple)
    further_user_models = forms.CharField(
        label=_("Further user models"),
        required=False,
        max_length=4_000,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "dir": "ltr"}),
        help_text=_("One a line: the name of the provider, a slash, and the name that it gives the model."),
    )
    utterance_judge = forms.ChoiceField(
        label=_("Judge of the user’s turns"),
        required=False,
        help_text=_("It refuses a turn with a reason, and the user model writes it again."),
    )
    utterance_rubric = forms.ChoiceField(
        label=_("Rubric of that judge"),
        required=False,
        help_text=_("A turn is accepted if each criterion is in the better half of its scale."),
    )
    temperature = forms.FloatField(
        label=_("Temperature"),
        required=False,
        min_value=0,
        max_value=2,
        help_text=_("Of all models. Empty: the provider’s own."),
    )
    max_tokens = forms.IntegerField(
        label=_("Longest reply in tokens"),
        min_value=50,
        max_value=100_000,
        initial=plans.LONGEST_REPLY,
        help_text=_("A reply that is cut off here is discarded. The most that a request can cost depends on it."),
    )
    name = forms.CharField(label=_("Name of the plan"), max_length=plans.MOST_NAMED)
    families = forms.IntegerField(
        label=_("Families"),
        min_value=1,
        max_value=plans.MOST_FAMILIES,
        initial=20,
        help_text=_("Scenarios. Each is written in every language by every model."),
    )
    repeats = forms.IntegerField(
        label=_("Repeats"),
        min_value=1,
        max_value=plans.MOST_TIMES,
        initial=1,
        help_text=_("How often each model writes the same scenario in the same language."),
    )
    budget = forms.DecimalField(
        label=_("Budget in USD"),
        required=False,
        min_value=0,
        max_value=LARGEST_CAP,
        decimal_places=6,
        help_text=_("The plan pauses before it spends more. Leave empty for no limit."),
    )
    seed = forms.IntegerField(
        label=_("Seed"),
        required=False,
        min_value=0,
        max_value=LARGEST_SEED,
        help_text=_("The same spec and seed draw the same scenarios. Empty: a new one."),
    )

    def __init__(self, project: Project, sent: QueryDict | None = None, *, begins_with: Mapping[str, Any]) -> None:
        self.project = project
        self.chosen_spec: Spec | None = None
        visited = int(text) if sent and (text := sent.get("visited", "0")).isdecimal() and len(text) < 3 else 0
        self.visited = min(visited, len(STEPS))
        super().__init__(self._filled(sent, begins_with) if sent is not None else None, initial=dict(begins_with))
        self.fields["source"].choices = _datasets_of(project)  # type: ignore[attr-defined]
        self.fields["spec"].choices = self._specs()  # type: ignore[attr-defined]
        self.fields["languages"].choices = _languages_of(project)  # type: ignore[attr-defined]
        self.models = model_choices()
        for name in ("generators", "user_models"):
            self.fields[name].choices = self.models  # type: ignore[attr-defined]
        self.fields["utterance_judge"].choices = _utterance_judges(project, self.models)  # type: ignore[attr-defined]
        self.fields["utterance_rubric"].choices = _utterance_rubrics(project)  # type: ignore[attr-defined]

    def _filled(self, sent: QueryDict, begins_with: Mapping[str, Any]) -> QueryDict:
        """What was sent, with the initial values of the steps that were not shown yet."""
        filled = sent.copy()
        for _key, _title, names in STEPS[self.visited :]:
            for name in names:
                initial = begins_with.get(name, self.base_fields[name].initial)
                if name not in filled and initial not in (None, ""):
                    filled.setlist(name, list(map(str, initial if isinstance(initial, list) else [initial])))
        return filled

    @cached_property
    def own_specs(self) -> list[tuple[GenerationPlan, Spec]]:
        """The specs of the project's plans."""
        return specs_of_plans(self.project)

    def _specs(self) -> list[tuple[str, str]]:
        of_plans = [(f"plan-{plan.pk}", translated_title(spec.title)) for plan, spec in self.own_specs]
        return [
            *((key, translated_title(preset(key).title)) for key in OFFERED_SPECS),
            *of_plans,
            (OWN_SPEC, gettext("Own spec")),
        ]

    def clean_further_languages(self) -> list[str]:
        """Canonical tags."""
        tags = []
        for tag in self.cleaned_data["further_languages"].replace(";", ",").split(","):
            if tag.strip():
                try:
                    tags.append(languages.canonical_language(tag.strip()))
                except ValueError as error:
                    raise forms.ValidationError(str(error)) from None
        return tags

    def clean_further_generators(self) -> list[tuple[str, str]]:
        """Providers and models."""
        return named_models(self.cleaned_data["further_generators"])

    def clean_further_user_models(self) -> list[tuple[str, str]]:
        """Providers and models."""
        return named_models(self.cleaned_data["further_user_models"])

    def clean(self) -> dict[str, Any]:
        """Also reads the spec, and asks for a language and a model at least."""
        chosen: dict[str, Any] = super().clean() or {}
        try:
            self.chosen_spec = self._spec(chosen.get("spec", ""), chosen.get("own_spec", ""))
        except Refused as refused:
            for place, sentence in list(refused.fields.items())[:8] or [("", refused.sentence)]:
                self.add_error("own_spec", f"{place}: {sentence}" if place not in ("", "spec") else sentence)
        self._check_source(chosen)
        if not chosen.get("languages") and not chosen.get("further_languages") and "further_languages" in chosen:
            self.add_error("languages", gettext("Choose at least one language."))
        if not chosen.get("generators") and not chosen.get("further_generators") and "further_generators" in chosen:
            self.add_error("generators", gettext("Choose at least one model."))
        has_user = chosen.get("user_models") or chosen.get("further_user_models")
        if self.is_simulation and not has_user and "further_user_models" in chosen:
            self.add_error("user_models", gettext("Choose at least one model that plays the user."))
        return chosen

    @property
    def is_simulation(self) -> bool:
        """Whether the chosen spec asks for conversations."""
        return self.chosen_spec is not None and self.chosen_spec.kind == "conversation"

    @property
    def is_translation(self) -> bool:
        """Whether the chosen spec asks for translations."""
        return self.chosen_spec is not None and self.chosen_spec.kind == "translation"

    def _check_source(self, chosen: Mapping[str, Any]) -> None:
        """Ask for the dataset and the language of translations; read what is translated, for the forecast."""
        self.sources: list[SourceText] = []
        if not self.is_translation or "source" not in chosen or "further_languages" not in chosen:
            return
        if chosen["source"] is None:
            self.add_error("source", gettext("Choose the dataset to translate."))
            return
        targets = [*chosen.get("languages", ()), *chosen["further_languages"]]
        source = Dataset.objects.get(pk=chosen["source"])
        try:
            language = sources.chosen_source_language(
                self.project, source, chosen.get("source_language", "").strip(), targets
            )
            most, seed = chosen.get("families") or plans.MOST_FAMILIES, chosen.get("seed") or 0
            items = sources.draw_sources(source, language, most=most, seed=seed)
            self.sources = [sources.source_text(item) for item in items]
        except Refused as refused:
            for name, sentence in refused.fields.items():
                self.add_error(name, sentence)

    def _spec(self, key: str, text: str) -> Spec | None:
        if key == OWN_SPEC:
            return from_yaml(text)
        if key.startswith("plan-"):
            return next((spec for plan, spec in self.own_specs if f"plan-{plan.pk}" == key), None)
        return preset(key) if key in OFFERED_SPECS else None

    def edit(self) -> None:
        """Take the chosen spec as the own one, as its next version."""
        if self.chosen_spec is None:
            return
        key = self.chosen_spec.key
        used = [spec.version for _plan, spec in self.own_specs if spec.key == key]
        version = max([self.chosen_spec.version, *used]) + 1
        sent = self.data.copy()  # type: ignore[attr-defined]  # a QueryDict, see __init__
        sent["spec"], sent["own_spec"] = OWN_SPEC, parse_spec({**self.chosen_spec.stored, "version": version}).as_yaml
        self.data = sent
        self.full_clean()

    def has_errors(self, step: int) -> bool:
        """Whether anything of the first steps is wrong."""
        return any(name in self.errors for _key, _title, names in STEPS[: step + 1] for name in names)

    def first_wrong_step(self, step: int) -> int:
        """The first step, up to this one, that something is wrong with; this one if nothing is."""
        return next((number for number in range(step) if self.has_errors(number)), step)

    def without_later_errors(self, step: int) -> None:
        """Leave out what is wrong with steps that nobody has filled in yet."""
        for _key, _title, names in STEPS[max(step, self.visited) :]:
            for name in names:
                self.errors.pop(name, None)

    @property
    def spec_options(self) -> list[tuple[Any, str]]:
        """The specs to choose from, each with its description."""
        descriptions = {key: preset(key).description for key in OFFERED_SPECS}
        descriptions |= {f"plan-{plan.pk}": plan.name for plan, _spec in self.own_specs}
        descriptions[OWN_SPEC] = gettext("Templates, parameters and rules of your own, as YAML.")
        return [(option, descriptions.get(str(option.data["value"]), "")) for option in self["spec"]]

    @property
    def tags(self) -> list[str]:
        """The chosen languages."""
        values = self.cleaned_data
        return list(dict.fromkeys([*values.get("languages", ()), *values.get("further_languages", ())]))

    @property
    def choices(self) -> list[plans.GeneratorChoice]:
        """The chosen models; the sampling parameters of a simulation are in its spec."""
        given = {name: self.cleaned_data.get(name) for name in ("temperature", "max_tokens")}
        parameters = {} if self.is_simulation else {name: value for name, value in given.items() if value is not None}
        return self._chosen_models("generators", "further_generators", parameters)

    @property
    def user_choices(self) -> list[plans.GeneratorChoice]:
        """The chosen user models; none where the spec asks for no conversations."""
        return self._chosen_models("user_models", "further_user_models", {}) if self.is_simulation else []

    def _chosen_models(self, listed: str, named: str, parameters: Mapping[str, Any]) -> list[plans.GeneratorChoice]:
        values = self.cleaned_data
        pairs = [tuple(value.split("\x1f", 1)) for value in values.get(listed, ())]
        pairs = list(dict.fromkeys([*pairs, *values.get(named, ())]))
        models = [model for _provider, model in pairs]
        return [
            plans.GeneratorChoice(
                provider=provider,
                model=model,
                name=f"{provider}/{model}" if models.count(model) > 1 else model,
                parameters=parameters,
            )
            for provider, model in pairs
        ]

    def planned_models(self, spec: Spec) -> tuple[list[PlanGenerator], UtteranceJudge | None]:
        """The unsaved rows of every model that the plan would ask, for its forecast; and the utterance judge, if it and
        its rubric are there already."""
        role = PlanGenerator.Role.USER_MODEL
        rows = [plans.plan_generator(self.project, *pair, spec=spec) for pair in enumerate(self.choices)]
        users = enumerate(self.user_choices, len(rows))
        rows += [plans.plan_generator(self.project, *pair, spec=spec, role=role) for pair in users]
        judge = self._unsaved_judge()
        if judge is None:
            return rows, None
        rows.append(plans.judge_row(judge, len(rows)))
        version = self._rubric_version()
        return rows, UtteranceJudge(judge, version) if version and not judge._state.adding else None

    def _unsaved_judge(self) -> Judge | None:
        chosen = self.cleaned_data.get("utterance_judge", "") if self.is_simulation else ""
        if chosen.startswith(A_JUDGE):
            return Judge.objects.filter(project=self.project, pk=chosen.removeprefix(A_JUDGE)).first()
        if not chosen:
            return None
        provider, model = chosen.removeprefix(A_MODEL).split("\x1f", 1)
        return Judge(project=self.project, name=model, provider=provider, model=model, parameters=VERDICT_PARAMETERS)

    def _rubric_version(self) -> RubricVersion | None:
        chosen = self.cleaned_data.get("utterance_rubric", "")
        return RubricVersion.objects.filter(rubric__project=self.project, pk=chosen).first() if chosen else None

    def utterance_judging(self, actor: User) -> dict[str, Any]:
        """The utterance judge and its rubric as `plans.create_plan` takes them. A model becomes a judge of the project,
        and our rubric is published in it, unless they are there."""
        judge = self._unsaved_judge()
        if judge is None:
            return {}
        if judge._state.adding:
            asked = {"project": self.project, "provider": judge.provider, "model": judge.model}
            judge = declare_utterance_judge(**asked, actor=actor)
        version = self._rubric_version() or utterance_rubric(project=self.project, actor=actor)
        return {"utterance_judge": judge, "utterance_rubric": version}

    @property
    def asked(self) -> dict[str, Any]:
        """What `plans.create_plan` takes."""
        plain = {name: self.cleaned_data[name] for name in ("name", "families", "repeats", "budget", "seed")}
        asked = {**plain, "spec": self.chosen_spec, "languages": self.tags, "generators": self.choices}
        if self.is_simulation:
            asked["user_models"] = self.user_choices
        if not self.is_translation:
            return asked
        source = Dataset.objects.get(pk=self.cleaned_data["source"])
        return {**asked, "source": source, "source_language": self.cleaned_data["source_language"].strip()}

    @property
    def shown_steps(self) -> list[tuple[str, Any, list[forms.BoundField]]]:
        """Every step with its key, its title and its fields."""
        return [(key, title, [self[name] for name in names]) for key, title, names in STEPS]


def specs_of_plans(project: Project) -> list[tuple[GenerationPlan, Spec]]:
    """The specs that plans of the project were made with, other than the presets, the newest first, once each."""
    plans_of_it = GenerationPlan.objects.filter(project=project)
    own = plans_of_it.exclude(spec_digest__in=[preset(key).digest for key in OFFERED_SPECS])
    newest = own.order_by().values("spec_digest").annotate(newest=Max("pk")).values("newest")
    found = []
    for plan in GenerationPlan.objects.filter(pk__in=newest).order_by("-pk"):
        with suppress(Refused):  # from before the rules of specs
            found.append((plan, parse_spec(plan.spec)))
    return found


def _datasets_of(project: Project) -> list[tuple[Any, Any]]:
    """The datasets of the project, the newest first, by the newest version of each."""
    found: dict[str, Dataset] = {}
    for dataset in Dataset.objects.ready().filter(project=project).order_by("-pk"):
        found.setdefault(dataset.name, dataset)
    return [("", "—"), *((dataset.pk, str(dataset)) for dataset in found.values())]


def _languages_of(project: Project) -> list[tuple[str, str]]:
    """Languages to choose from: those of the project's datasets, and those of the interface."""
    datasets = Dataset.objects.filter(project=project)
    used = datasets.values_list("parts__items__language", flat=True).distinct()
    tags = {tag for tag in used if tag} | {languages.canonical_language(code) for code, _name in settings.LANGUAGES}
    return [(tag, languages.both_names(tag, get_language())) for tag in languages.in_name_order(tags, get_language())]


def named_models(text: str) -> list[tuple[str, str]]:
    """The provider and the model of each line."""
    pairs = []
    for line in filter(None, map(str.strip, text.splitlines())):
        provider, slash, model = line.partition("/")
        if not slash or not model.strip() or endpoints.find_provider(provider.strip()) is None:
            known = ", ".join(endpoints.all_providers()) or gettext("none")
            wrong = gettext("“%(line)s” has no declared provider before a slash. There are: %(known)s")
            raise forms.ValidationError(wrong % {"line": line[:100], "known": known})
        pairs.append((provider.strip(), model.strip()))
    return pairs


def model_choices() -> list[tuple[str, str]]:
    """Every model that a provider declares, with its price."""
    return [
        (f"{provider.name}\x1f{model}", f"{model} · {provider.name} · {_price(provider, model)}")
        for provider in endpoints.all_providers().values()
        for model in dict.fromkeys([*provider.models, *(row[0] for row in provider.prices)])
    ]


def _utterance_judges(project: Project, models: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """None, the judges of the project that may do it, or a model, which becomes a judge."""
    declared = Judge.objects.filter(project=project).exclude(provider="").order_by("name", "-pk")
    fit = [judge for judge in declared if may_judge_utterances(variant_of(judge.variant))]
    return [
        ("", gettext("None: the reply guard alone")),
        *((f"{A_JUDGE}{judge.pk}", judge.name) for judge in fit),
        *((f"{A_MODEL}{value}", gettext("New judge: %s") % label) for value, label in models),
    ]


def _utterance_rubrics(project: Project) -> list[tuple[str, str]]:
    """Ours, or a published rubric of the project."""
    versions = RubricVersion.objects.published().filter(rubric__project=project).select_related("rubric")
    return [("", gettext("Ours for turns of users")), *((str(version.pk), str(version)) for version in versions)]


def _price(provider: DeclaredProvider, model: str) -> str:
    if (price := provider.price(model)) is not None:
        amounts = {"into": f"${price[0]:f}", "out": f"${price[1]:f}"}
        return gettext("%(into)s in, %(out)s out per million tokens") % amounts
    return gettext("simulated, costs nothing") if provider.simulated else gettext("no price is declared")


class TextsForm(forms.Form):
    """Which texts of a plan are listed."""

    language = forms.ChoiceField(label=_("Language"), required=False)
    generator = forms.ChoiceField(label=_("Generator"), required=False)
    simulator = forms.ChoiceField(label=_("User model"), required=False)
    state = forms.ChoiceField(label=_("State"), required=False, choices=[("", _("Any")), *Realisation.State.choices])
    decision = forms.ChoiceField(
        label=_("Decision"),
        required=False,
        choices=[("", _("Any")), ("none", _("No decision")), *Realisation.Decision.choices[1:]],
    )
    problem = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)
    family = forms.IntegerField(required=False, min_value=1, max_value=plans.MOST_FAMILIES, widget=forms.HiddenInput)

    def __init__(self, plan: GenerationPlan, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        spoken = get_language()
        tags = [(tag, languages.name_for(tag, spoken)) for tag in languages.in_name_order(plan.languages, spoken)]
        self.fields["language"].choices = [("", gettext("All")), *tags]  # type: ignore[attr-defined]
        for field, models in (("generator", plan.writers), ("simulator", plan.user_models)):
            names = [(str(model.pk), model.name) for model in models]
            self.fields[field].choices = [("", gettext("All")), *names]  # type: ignore[attr-defined]
        if not plan.is_simulation:
            del self.fields["simulator"]

    @property
    def filters(self) -> dict[str, Any]:
        """As a query of realisations takes them."""
        if not self.is_valid():
            return {}
        given = {name: value for name, value in self.cleaned_data.items() if value}
        names = {"family": "family__number", "generator": "generator_id", "simulator": "simulator_id"}
        given.pop("problem", None)
        if given.get("decision") == "none":
            given["decision"] = ""
        return {names.get(name, name): value for name, value in given.items()}


class StoreForm(forms.Form):
    """The dataset that the texts of a plan become; `with_natives` is asked of translations only."""

    name = forms.CharField(label=_("Name of the dataset"), max_length=200)
    only = forms.ChoiceField(
        label=_("Which texts"),
        choices=PlanDataset.Only.choices,
        initial=PlanDataset.Only.WHOLE,
        widget=forms.RadioSelect,
    )
    with_natives = forms.BooleanField(
        label=_("Store them beside their sources"),
        required=False,
        help_text=_("Copies of the items that they are compared with, as one dataset with them."),
    )


class UtterancesForm(forms.Form):
    """The dataset that the judged turns of users become."""

    name = forms.CharField(label=_("Name of the dataset"), max_length=120)
    most = forms.IntegerField(
        label=_("At most"), required=False, min_value=1, help_text=_("Drawn at random. Empty: all of them.")
    )


class DecisionForm(forms.Form):
    """Keep a text or set it aside."""

    decision = forms.ChoiceField(choices=[*Realisation.Decision.choices], required=False)
    reason = forms.CharField(label=_("Reason"), required=False, max_length=2_000)
