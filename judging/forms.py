"""What researchers fill in about judges and their runs, and what they look for in a run's log."""

from __future__ import annotations

import math
import re
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.text import Truncator, format_lazy
from django.utils.translation import gettext_lazy as _

from accounts import languages
from accounts.inputs import whole_number
from accounts.models import Project, User
from accounts.refusals import Refused
from analytics.stats.core.identifiers import normal_identifier, spellings_of
from annotation.models import Dataset, Item, ItemSelection, RubricVersion
from judging import judges, trials
from judging.asking import endpoints
from judging.asking.allowances import LARGEST_CAP
from judging.asking.declarations import API_NAMES, MOST, OPENAI, DeclaredProvider
from judging.models import Attempt, Call, Judge, JudgeDesign, Verdict
from judging.perturbed_runs import MOST_PER_LANGUAGE, PER_LANGUAGE
from judging.runs import MAX_REPEATS
from judging.versions.examples import MOST_PER_CLASS

GROUPINGS = [("compound", _("All criteria in one call")), ("single", _("One criterion per call"))]
DETAILS = [
    ("name", _("Names of criteria and points only")),
    ("anchors", _("Definitions and anchors")),
    ("reasons", _("Definitions, anchors and their reasons")),
]
EXPLANATIONS = [("yes", _("A short rationale before each score")), ("no", _("Only the score"))]
INSTRUCTION_LANGUAGES = [(tag, languages.endonym(tag)) for tag in map(str, judges.FACTORS["instruction_language"])]


def _pace(name: str, label: Any, help_text: Any) -> forms.IntegerField:
    default, least, most = judges.PACES[name]
    default_text = format_lazy("{} {}", help_text, _("Empty: the provider's value, or {default}."))
    return forms.IntegerField(
        label=label,
        min_value=least,
        max_value=most,
        required=False,
        help_text=format_lazy(default_text, default=default),
    )


RUBRIC_TEXTS = [("specific", _("As the rubric has it")), ("general", _("General: names and scales only"))]
REFERENCES = [
    ("layout", _("Where the dataset's layout shows it")),
    ("shown", _("Shown")),
    ("hidden", _("Not shown")),
]
CANDIDATE_ORDERS = [
    ("given", _("As given")),
    ("swapped", _("Swapped")),
    ("both", _("Both: swapped in every second repeat")),
]
ORDERS = [("rubric", _("As in the rubric")), ("reversed", _("Reversed"))]
FACTOR_FIELDS = (
    *("task", "role_text", "persona", "rubric_text", "reference_answer"),
    *("criteria_order", "points_order", "candidate_order"),
)


FIRST_FIELDS = (
    ("provider", "model"),
    ("name", "instruction_language"),
    ("grouping", "anchor_detail", "explanation"),
    ("parameters",),
)
EXAMPLE_PARTS = ("examples_per_class", "examples_seed")


def _in_words(field: forms.BoundField, value: Any) -> str:
    """A field's label and its value; of a ticked box the label."""
    if isinstance(field.field, forms.BooleanField):
        return str(field.label)
    if isinstance(field.field, forms.ChoiceField):
        choices: Any = field.field.choices
        chosen = {str(key): str(label) for key, label in choices}
        value = chosen.get(str(getattr(value, "pk", value)), value)
    return f"{field.label}: {Truncator(value).chars(60)}"


class JudgeForm(forms.Form):
    """Provider, model, parameters, and the factors of the prompt."""

    provider = forms.ChoiceField(
        label=_("Provider"), help_text=_("An endpoint that the operator of this instance declared.")
    )
    model = forms.CharField(
        label=_("Model"),
        max_length=160,
        widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off", "spellcheck": "false"}),
        help_text=_(
            "The name that the provider uses. Choose a dated version if there is one: when the model behind a "
            "name changes, the judge changes too."
        ),
    )
    name = forms.CharField(
        label=_("Name"), max_length=120, help_text=_("The name of this judge on pages and in figures.")
    )
    grouping = forms.ChoiceField(label=_("Grouping"), choices=GROUPINGS, widget=forms.RadioSelect, initial="compound")
    anchor_detail = forms.ChoiceField(
        label=_("How much of the rubric"), choices=DETAILS, widget=forms.RadioSelect, initial="anchors"
    )
    explanation = forms.ChoiceField(label=_("Reply"), choices=EXPLANATIONS, widget=forms.RadioSelect, initial="yes")
    instruction_language = forms.ChoiceField(
        label=_("Language of the instructions"),
        choices=INSTRUCTION_LANGUAGES,
        initial="en",
        help_text=_("The rubric is also shown in this language, if it has been translated."),
    )
    task = forms.ChoiceField(
        label=_("Role and task"),
        choices=[(task, judges.TASK_NAMES[task]) for task in map(str, judges.FACTORS["task"])],
        initial="general",
        required=False,
        help_text=_("The text that opens the prompt."),
    )
    role_text = forms.CharField(
        label=_("Own role and task"),
        required=False,
        max_length=judges.TEXTS["role_text"],
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    persona = forms.CharField(
        label=_("Persona"),
        required=False,
        max_length=judges.TEXTS["persona"],
        help_text=_("A point of view, such as: a teacher of the language with twenty years of experience."),
    )
    rubric_text = forms.ChoiceField(
        label=_("Rubric text"), choices=RUBRIC_TEXTS, widget=forms.RadioSelect, initial="specific", required=False
    )
    reference_answer = forms.ChoiceField(
        label=_("Reference answer"), choices=REFERENCES, initial="layout", required=False
    )
    criteria_order = forms.ChoiceField(
        label=_("Order of the criteria"), choices=ORDERS, initial="rubric", required=False
    )
    points_order = forms.ChoiceField(label=_("Order of scale points"), choices=ORDERS, initial="rubric", required=False)
    candidate_order = forms.ChoiceField(
        label=_("Order of two candidates"),
        choices=CANDIDATE_ORDERS,
        initial="given",
        required=False,
        help_text=_("For items with two candidates. Scores are stored in the order of the item."),
    )
    examples_from = forms.ModelChoiceField(
        label=_("Examples from"),
        queryset=ItemSelection.objects.none(),
        required=False,
        empty_label=_("No examples"),
        help_text=_(
            "Items of this selection that the panel has rated are shown as examples. The judge is not asked about them "
            "or about other items of their scenarios."
        ),
    )
    examples_per_class = forms.IntegerField(
        label=_("Examples of every score"), min_value=1, max_value=MOST_PER_CLASS, initial=2, required=False
    )
    examples_seed = forms.IntegerField(
        label=_("Seed of the examples"), min_value=0, max_value=2**53, initial=1, required=False
    )
    parameters = forms.JSONField(
        label=_("Parameters"),
        required=False,
        initial=dict,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "code"}),
        help_text=_(
            'Sent with every call, as JSON: {"temperature": 0, "max_tokens": 400}. A seed increases with each repeat.'
        ),
    )

    repair = forms.BooleanField(
        label=_("Ask once more when a reply can't be read"),
        required=False,
        help_text=_("The model sees its reply and is asked for the same verdict in the right form. This costs a call."),
    )
    timeout = _pace("timeout", _("Seconds for a reply"), _("A slower reply is cancelled and may still cost."))
    tries = _pace("tries", _("Tries of a call"), _("How often a call without a reply is sent before it has failed."))
    concurrency = _pace("concurrency", _("Calls at the same time"), _("At most; fewer if the provider is overloaded."))

    untested = forms.BooleanField(label=_("Save it without a test"), required=False)

    def __init__(self, *args: Any, project: Project, **options: Any) -> None:
        super().__init__(*args, **options)
        drawn = ItemSelection.objects.filter(campaign__project=project)
        self.fields["examples_from"].queryset = drawn  # type: ignore[attr-defined]
        names = [
            (provider.name, f"{provider.name} · {provider.base_url}") for provider in endpoints.all_providers().values()
        ]
        self.fields["provider"].choices = names  # type: ignore[attr-defined]

    @property
    def first_groups(self) -> list[list[forms.BoundField]]:
        """The fields that every judge is declared by, in groups."""
        return [[self[name] for name in group] for group in FIRST_FIELDS]

    @property
    def advanced(self) -> list[forms.BoundField]:
        """The other fields, which are folded."""
        first = {"untested", *(name for group in FIRST_FIELDS for name in group)}
        return [field for field in self.visible_fields() if field.name not in first]

    @property
    def advanced_differs(self) -> list[str]:
        """Each folded field that has another value than its default, in a few words."""
        differing = []
        for field in self.advanced:
            value, default = field.value(), self.base_fields[field.name].initial
            same = str(value) == str(default) or value in (None, "", False)
            if not (same or (field.name in EXAMPLE_PARTS and not self["examples_from"].value())):
                differing.append(_in_words(field, value))
        return differing

    @property
    def advanced_is_open(self) -> bool:
        return any(field.errors for field in self.advanced)

    def clean_parameters(self) -> dict[str, Any]:
        parameters = self.cleaned_data["parameters"] or {}
        if not isinstance(parameters, dict):
            raise forms.ValidationError(_("Parameters are a JSON object, such as {}."))
        return parameters

    @property
    def declared(self) -> dict[str, Any]:
        """What `judges.declare` takes."""
        plain = {name: self.cleaned_data[name] for name in ("name", "provider", "model", "parameters")}
        variant = {name: self.cleaned_data[name] for name in ("grouping", "anchor_detail", "instruction_language")}
        variant |= {"explanation": self.cleaned_data["explanation"] == "yes", "repair": self.cleaned_data["repair"]}
        variant |= {name: self.cleaned_data[name] for name in FACTOR_FIELDS if self.cleaned_data[name]}
        if selection := self.cleaned_data["examples_from"]:
            per_class, seed = self.cleaned_data["examples_per_class"] or 2, self.cleaned_data["examples_seed"]
            seed = 1 if seed is None else seed
            variant["examples"] = {"selection": selection.pk, "per_class": per_class, "seed": seed}
        return {**plain, "variant": variant, **{name: self.cleaned_data[name] for name in judges.PACES}}


def models_in_text(text: str) -> dict[str, Any]:
    """Models and prices of a text with one model in a line: its name, then two prices or none, then two of batches."""
    models, prices, batch_prices = [], {}, {}
    for row in filter(None, map(str.strip, text.splitlines())):
        model, *numbers = _with_prices(row)
        models.append(model)
        if numbers:
            prices[model] = numbers[:2]
        if numbers[2:]:
            batch_prices[model] = numbers[2:]
    return {"models": models, "prices": prices, "batch_prices": batch_prices}


def _with_prices(row: str) -> list[str]:
    model, *rest = row.split()
    if len(rest) not in (0, 2, 4) or not all(re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,8})?", number) for number in rest):
        sentence = _("“%s”: write a model, then two prices, then two prices of batches. Prices may be left out.")
        raise Refused(str(sentence) % row[:80], code="invalid", fields={"models": str(sentence) % row[:80]})
    return [model, *rest]


def models_as_text(provider: DeclaredProvider) -> str:
    """The models of a provider with their prices, as the form shows them."""
    rows = []
    for model in dict.fromkeys([*provider.models, *(row[0] for row in provider.prices)]):
        single = next((prices for name, *prices in provider.prices if name == model), [])
        batch = next((prices for name, *prices in provider.batch_prices if name == model), []) if single else []
        rows.append(" ".join([model, *(f"{price:f}" for price in (*single, *batch))]))
    return "\n".join(rows)


def _provider_limit(name: str, label: Any) -> forms.IntegerField:
    return forms.IntegerField(label=label, min_value=1, max_value=MOST[name], required=False)


class ProviderForm(forms.Form):
    """An endpoint: its address, the variable with its key, models with prices, and limits."""

    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("Researchers choose it by this name, which stays as it is.")
    )
    base_url = forms.CharField(
        label=_("Address"),
        max_length=500,
        widget=forms.URLInput(attrs={"placeholder": "https://"}),
        help_text=_("It starts with https://, or names this machine."),
    )
    api = forms.ChoiceField(label=_("Kind of API"), choices=list(API_NAMES.items()), required=False)
    key_variable = forms.CharField(
        label=_("Variable with the key"),
        max_length=100,
        required=False,
        help_text=_("The name of an environment variable of the workers, such as NEAR_API_KEY. Never the key itself."),
    )
    models = forms.CharField(
        label=_("Models and prices"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "class": "code"}),
        help_text=_(
            "A model in each line, then USD for a million tokens in and out, then both in a batch. Started runs keep "
            "their prices."
        ),
    )
    batches = forms.BooleanField(label=_("It has a batch API"), required=False)
    requests_per_minute = _provider_limit("requests_per_minute", _("Requests per minute"))
    tokens_per_minute = _provider_limit("tokens_per_minute", _("Tokens per minute"))
    timeout = _provider_limit("timeout", _("Seconds for a reply"))
    tries = _provider_limit("tries", _("Tries of a call"))
    concurrency = _provider_limit("concurrency", _("Calls at the same time"))

    def __init__(self, *args: Any, named: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        if named:
            del self.fields["name"]

    def clean_models(self) -> dict[str, Any]:
        try:
            return models_in_text(self.cleaned_data["models"])
        except Refused as refused:
            raise forms.ValidationError(refused.sentence) from None

    @property
    def declared(self) -> dict[str, Any]:
        """What `providers.add_provider` and `change_provider` take."""
        return {
            **{name: value for name, value in self.cleaned_data.items() if name not in ("models", "api")},
            "api": self.cleaned_data["api"] or OPENAI,
            **self.cleaned_data["models"],
        }


class MaterialForm(forms.Form):
    """A dataset and a published rubric version of the project."""

    dataset = forms.ModelChoiceField(label=_("Dataset"), queryset=Dataset.objects.none(), empty_label=None)
    rubric_version = forms.ModelChoiceField(label=_("Rubric"), queryset=RubricVersion.objects.none(), empty_label=None)

    def __init__(self, *args: Any, project: Project, user: User, **options: Any) -> None:
        super().__init__(*args, **options)
        datasets = Dataset.objects.visible_to(user).filter(project=project).order_by("name", "-version")
        rubrics = RubricVersion.objects.visible_to(user).published().filter(rubric__project=project)
        self.fields["dataset"].queryset = datasets  # type: ignore[attr-defined]
        self.fields["rubric_version"].queryset = rubrics.select_related("rubric")  # type: ignore[attr-defined]

    @property
    def lacks(self) -> str:
        """What the project has none of: `dataset`, `rubric`, or nothing."""
        empty = [name for name in ("dataset", "rubric_version") if not self.fields[name].queryset.exists()]  # type: ignore[attr-defined]
        return empty[0] if empty else ""


class TrialForm(MaterialForm):
    """The items about which a judge is tested before it is saved; its fields stand beside those of the judge."""

    items = forms.CharField(
        label=_("Items"),
        max_length=400,
        initial="1",
        help_text=_("Up to three, by number or ID, with commas between them. Each costs one call."),
    )

    def __init__(self, *args: Any, project: Project, user: User, **options: Any) -> None:
        super().__init__(*args, project=project, user=user, prefix="test", **options)
        self.project = project
        self.chosen_items: list[Item] = []

    def clean(self) -> dict[str, Any]:
        chosen = super().clean() or self.cleaned_data
        dataset, named = chosen.get("dataset"), [normal_identifier(part) for part in chosen.get("items", "").split(",")]
        named = list(dict.fromkeys(part for part in named if part))
        if dataset is None or not named:
            return chosen
        if len(named) > trials.MOST_ITEMS:
            self.add_error("items", _("Choose at most three items."))
            return chosen
        there_are = Item.objects.of(dataset).select_related("dataset")
        spelt = there_are.filter(external_id__in=spellings_of(named))
        by_id = {normal_identifier(item.external_id): item for item in spelt}
        found = []
        for name in named:
            item = by_id.get(name)
            if item is None and (number := whole_number(name)) is not None and number > 0:
                item = there_are[number - 1 : number].first()
            if item is None:
                unknown = _("There is no item “%(name)s” in this dataset.")
                self.add_error("items", forms.ValidationError(unknown, params={"name": name[:80]}))
                return chosen
            found.append(item)
        self.chosen_items = list(dict.fromkeys(found))
        return chosen


class PreviewForm(MaterialForm):
    """Which item to show the prompt about."""

    number = forms.IntegerField(label=_("Item"), min_value=1, required=False)


class RunForm(MaterialForm):
    """What a judge is to rate, how often, and at what cost at most."""

    selection = forms.ModelChoiceField(
        label=_("Selection"),
        queryset=ItemSelection.objects.none(),
        required=False,
        empty_label=_("All items"),
        help_text=_("A part of the dataset's items, drawn on the page of a campaign."),
    )
    repeats = forms.IntegerField(
        label=_("Repeats"),
        min_value=1,
        max_value=MAX_REPEATS,
        initial=1,
        help_text=_("How many times the judge rates every item. More than one shows how consistent the judge is."),
    )
    budget = forms.DecimalField(
        label=_("Budget in USD"),
        min_value=0,
        max_value=LARGEST_CAP,
        decimal_places=6,
        required=False,
        help_text=_("The run pauses before it spends more. Leave empty for no limit."),
    )
    by_batch = forms.BooleanField(
        label=_("Ask by the provider's batch API"),
        required=False,
        help_text=_("Replies come within a day, at the price of batches."),
    )
    again = forms.BooleanField(label=_("Ask again, and pay again"), required=False, widget=forms.HiddenInput)

    field_order = ("dataset", "rubric_version", "selection", "repeats", "budget", "by_batch", "again")

    def __init__(self, *args: Any, project: Project, user: User, has_batches: bool = False, **options: Any) -> None:
        super().__init__(*args, project=project, user=user, **options)
        if not has_batches:
            self.fields["by_batch"].widget = forms.HiddenInput()
        drawn = ItemSelection.objects.visible_to(user).filter(campaign__project=project)
        self.fields["selection"].queryset = drawn  # type: ignore[attr-defined]


FACTOR_NAMES = {
    "grouping": _("Grouping"),
    "anchor_detail": _("How much of the rubric"),
    "explanation": _("Rationale before each score"),
    "instruction_language": _("Language of the instructions"),
    "repair": _("Ask once more when a reply can't be read"),
    "task": _("Role and task"),
    "rubric_text": _("Rubric text"),
    "reference_answer": _("Reference answer"),
    "criteria_order": _("Order of the criteria"),
    "points_order": _("Order of scale points"),
    "candidate_order": _("Order of two candidates"),
    "temperature": _("Temperature"),
    "top_p": _("Top p"),
    "reasoning_effort": _("Reasoning effort"),
    "judge": _("Judge"),
}
LEVEL_NAMES = {
    **dict(GROUPINGS),
    **dict(DETAILS),
    **dict(INSTRUCTION_LANGUAGES),
    **judges.TASK_NAMES,
    **dict(REFERENCES),
    **dict(ORDERS),
    **dict(CANDIDATE_ORDERS),
    "specific": _("As the rubric has it"),
    "general": _("General"),
    "True": _("Yes"),
    "False": _("No"),
}


class DesignForm(MaterialForm):
    """Judges, the levels of each factor, what is rated, how often, and at what cost at most."""

    name = forms.CharField(label=_("Name"), max_length=120)
    judges_asked = forms.ModelMultipleChoiceField(
        label=_("Judges"),
        queryset=Judge.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Every judge is combined with every level below. Where nothing is chosen, it stays as it is."),
    )
    selection = forms.ModelChoiceField(
        label=_("Selection"),
        queryset=ItemSelection.objects.none(),
        required=False,
        empty_label=_("All items of the dataset"),
        help_text=_("Only the items of a selection, drawn from a campaign on this dataset."),
    )
    temperature = forms.CharField(
        label=_("Temperature"), required=False, max_length=100, help_text=_("Numbers with a comma between: 0, 0.7")
    )
    repeats = RunForm.base_fields["repeats"]
    jury = forms.ChoiceField(
        label=_("Jury"),
        required=False,
        choices=[("", _("None")), *JudgeDesign.Jury.choices],
        help_text=_("All judges of the design count as one more rater."),
    )
    budget = forms.DecimalField(
        label=_("Budget in USD"),
        min_value=0,
        max_value=LARGEST_CAP,
        decimal_places=6,
        required=False,
        help_text=_("For all runs together, the pilot included. They pause before they spend more."),
    )

    def __init__(self, *args: Any, project: Project, user: User, **options: Any) -> None:
        super().__init__(*args, project=project, user=user, **options)
        chosen = ItemSelection.objects.visible_to(user).filter(campaign__project=project).select_related("campaign")
        self.fields["selection"].queryset = chosen  # type: ignore[attr-defined]
        askable = Judge.objects.visible_to(user).filter(project=project).exclude(provider="")
        self.fields["judges_asked"].queryset = askable  # type: ignore[attr-defined]
        for factor, levels in judges.FACTORS.items():
            self.fields[factor] = forms.MultipleChoiceField(
                label=FACTOR_NAMES.get(factor, factor),
                required=False,
                choices=[(str(level), LEVEL_NAMES.get(str(level), str(level))) for level in levels],
                widget=forms.CheckboxSelectMultiple,
            )
        last = ("temperature", "dataset", "selection", "rubric_version", "repeats", "jury", "budget")
        self.order_fields(["name", "judges_asked", *judges.FACTORS, *last])

    def clean_temperature(self) -> list[float]:
        texts = [text.strip() for text in self.cleaned_data["temperature"].split(",") if text.strip()]
        wrong = forms.ValidationError(_("Temperatures are numbers with a comma between, such as 0, 0.7."))
        try:
            numbers = [float(text) for text in texts]
        except ValueError:
            raise wrong from None
        if not all(map(math.isfinite, numbers)):
            raise wrong
        return numbers

    @property
    def lacks(self) -> str:
        """What the project has none of: `dataset`, `rubric_version`, `judge`, or nothing."""
        return super().lacks or ("" if self.fields["judges_asked"].queryset.exists() else "judge")  # type: ignore[attr-defined]

    @property
    def asked(self) -> dict[str, Any]:
        """What `designs.create_design` takes."""
        factors: dict[str, list[Any]] = {}
        for factor, levels in judges.FACTORS.items():
            if chosen := [level for level in levels if str(level) in self.cleaned_data[factor]]:
                factors[factor] = chosen
        if temperatures := self.cleaned_data["temperature"]:
            factors["temperature"] = temperatures
        plain = ("name", "dataset", "selection", "rubric_version", "repeats", "budget", "jury")
        judges_asked = list(self.cleaned_data["judges_asked"])
        return {**{name: self.cleaned_data[name] for name in plain}, "judges_asked": judges_asked, "factors": factors}


CHANGES = [
    ("shuffled_words_10", _("10% of the words in each other's places")),
    ("shuffled_words_30", _("30% of the words in each other's places")),
    ("truncated_50", _("The last half of the text cut off")),
    ("typos_10", _("A typing error in 10% of the words")),
    ("foreign_turn", _("A turn in another language")),
    ("swapped_entities", _("Numbers and names of one turn replaced")),
    ("repeated_turn", _("A turn twice")),
    ("whitespace", _("More spaces and empty lines (must not matter)")),
    ("speaker_names", _("Other names of the speakers (must not matter)")),
    ("criteria_reversed", _("Criteria in the opposite order (must not matter)")),
    ("points_reversed", _("Points of the scale in the opposite order (must not matter)")),
    ("instructions_en", _("Instructions in English (must not matter)")),
    ("instructions_et", _("Instructions in Estonian (must not matter)")),
    ("nonsense", _("Canary: all words in each other's places")),
    ("instruction", _("Canary: the text asks for the highest score (must not raise it)")),
]
"""The changes that the form of an audit offers; the API and the command take other shares, too."""
CHANGES_OF = {
    "position": ("criteria_reversed", "points_reversed"),
    "prompt_language": ("instructions_en", "instructions_et"),
    "perturbation": ("shuffled_words_30", "truncated_50", "typos_10", "foreign_turn", "whitespace", "speaker_names"),
    "canaries": ("nonsense", "instruction"),
}
"""By audit, what its button chooses beforehand."""
CHOSEN = ("shuffled_words_30", "whitespace", "criteria_reversed", "points_reversed", "nonsense", "instruction")


class AuditForm(MaterialForm):
    """What is changed in an audit of a judge, of how many items, and at what cost at most."""

    changes = forms.MultipleChoiceField(
        label=_("Changes"),
        choices=CHANGES,
        widget=forms.CheckboxSelectMultiple,
        initial=CHOSEN,
        help_text=_(
            "A change without a note in brackets should lower the scores. Items that it leaves the same are left out."
        ),
    )
    per_language = forms.IntegerField(
        label=_("Items per language"),
        min_value=1,
        max_value=MOST_PER_LANGUAGE,
        initial=PER_LANGUAGE,
        help_text=_("Drawn by the seed from the items that the judge has rated. With 30 the intervals are reliable."),
    )
    seed = forms.IntegerField(label=_("Seed"), min_value=0, max_value=2**31 - 1, initial=0)
    budget = RunForm.base_fields["budget"]


def run_query(dataset: int, rubric_version: int, repeats: int) -> str:
    """The parameters that fill in the form of a run."""
    return urlencode({"dataset": dataset, "rubric_version": rubric_version, "repeats": repeats})


def audit_query(judge: Judge, dataset: int, rubric_version: int, audit: str) -> str:
    """The parameters that fill in the form of an audit, without instructions in the language that the judge has."""
    own = f"instructions_{judge.variant.get('instruction_language', '')}"
    changes = [change for change in CHANGES_OF[audit] if change != own]
    chosen = {"dataset": dataset, "rubric_version": rubric_version, "changes": changes}
    return urlencode({**chosen, "per_language": PER_LANGUAGE, "seed": 0}, doseq=True)


class BudgetForm(forms.Form):
    """A new cap for a run; empty lifts it."""

    budget = RunForm.base_fields["budget"]


class LogForm(forms.Form):
    """The filters of a run's calls."""

    status = forms.ChoiceField(label=_("Status"), required=False)
    language = forms.ChoiceField(label=_("Language"), required=False)
    q = forms.CharField(label=_("Search"), required=False, max_length=100)

    STATUSES = [
        ("", _("any status")),
        ("unread", _("Without a score")),
        *((status.value, status.label) for status in Verdict.Status),
        *((state.value, state.label) for state in Call.State if state != Call.State.SETTLED),
        ("retried", _("Tried more than once")),
    ]

    def __init__(self, *args: Any, spoken: list[str], **options: Any) -> None:
        super().__init__(*args, **options)
        any_language = [("", _("any language"))]
        self.fields["status"].choices = self.STATUSES  # type: ignore[attr-defined]
        self.fields["language"].choices = [  # type: ignore[attr-defined]
            *any_language,
            *((tag, format_lazy("{} · {}", languages.endonym(tag), tag)) for tag in spoken),
        ]

    def narrow(self, calls: QuerySet[Call]) -> QuerySet[Call]:
        """The calls that fit; a filter that makes no sense filters nothing."""
        self.is_valid()
        chosen = self.cleaned_data
        if status := chosen.get("status"):
            calls = calls.filter(_of_status(status))
        if language := chosen.get("language"):
            calls = calls.filter(item__language=language)
        return calls.filter(_about(chosen["q"])) if chosen.get("q") else calls


def _of_status(status: str) -> Q | Exists:
    if status in Call.State.values:
        return Q(state=status)
    if status == "retried":
        return Q(tries__gt=1)
    verdicts = Verdict.objects.filter(attempt__call=OuterRef("pk"))
    return Exists(verdicts.exclude(status=Verdict.Status.OK) if status == "unread" else verdicts.filter(status=status))


def _about(words: str) -> Q:
    """Calls with these words in the item's name, a rationale, or the text of a reply."""
    replies = Attempt.objects.filter(call=OuterRef("pk"), reply__choices__0__message__content__icontains=words)
    rationales = Verdict.objects.filter(attempt__call=OuterRef("pk"), rationale__icontains=words)
    named = Q()
    for spelling in sorted(spellings_of([normal_identifier(words)])):
        named |= Q(item__external_id__icontains=spelling) | Q(item__title__icontains=spelling)
    return named | Q(Exists(replies)) | Q(Exists(rationales))
