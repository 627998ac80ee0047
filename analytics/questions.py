"""What somebody asks of a campaign's ratings: one value, the same in an address, a command, the API and an answer.

A question names judges, raters, rows, columns, filters, the rule of reference, exclusions and statistics. Its query
string is canonical: defaults are left out and parameters stand in a fixed order, so that equal questions have one
address and one digest.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from django.utils.translation import gettext as _

from accounts.inputs import storable, without_nul
from accounts.refusals import Refused
from analytics import exclusions, families, planning, ratings
from analytics.stats.declared.register import STATISTICS, statistics_that_need
from annotation.models import Campaign, Criterion, Duty, Item
from annotation.writers import tables
from judging.models import JudgeRun
from judging.runs import whole_run

if TYPE_CHECKING:
    from analytics.stats.judge.reference import Ties

RULES: dict[str, tuple[str | None, Ties]] = {
    "": (None, "exclude"),
    "mode": ("mode", "exclude"),
    "mode_split": ("mode", "median"),
    "median": ("median", "exclude"),
    "mean": ("mean", "exclude"),
    "minimum": ("minimum", "exclude"),
    "each": ("each", "exclude"),
}
"""What a judge is compared with: the rule of the reference label and what a tied mode does. The first is the default of
each level of measurement: the mode, on interval scales the mean."""
NEEDS_ORDER = frozenset({"mode_split", "median", "mean", "minimum"})
"""On nominal criteria these have no meaning, and the mode is used."""
ADJUDICATED = ("adjudicated", "adjudicated_first")
"""Rules of reference that read adjudications: nothing else, or before the mode."""
REFERENCES = (*(name for name in RULES if name), "dawid_skene", *ADJUDICATED)
TIES = ("exclude", "lower", "upper", "median")
LEVELS = ("nominal", "ordinal", "interval")
OWN_COLUMNS = ("criterion", "language", "generator", "scenario", "item", "dataset_version")
"""Columns of the ratings table that rows, columns and filters may be, beside the attributes of the items."""
TIMES = ("week", "hundred")
"""When an item was rated last, as rows or columns: the ISO week, or the first of the hundred items in that order."""
NO_CUT = ("judge", "panel", "languages", "raters", "annotator", "variant", "agreement_class")
"""What else rows and columns may be: `languages` and `raters` are the pair that a figure compares, `annotator` is the
one that it is about, `variant` the label of F1 or the kind of a coefficient. They do not cut the ratings table."""
COMPUTED = (*NO_CUT, *TIMES)
CLUSTERS = ("item",)
ALL_PAIRS = ("all",)
EACH_RUN = "each"
BLIND_ONLY = "only"
FEWEST_RESAMPLES, MOST_RESAMPLES = 200, 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a reader may choose. `raters`: pseudonyms of the annotators that count, none meaning all of them.

    `blind_only`: ratings by people who could see verdicts do not count. `reference`: one of `RULES`.
    """

    raters: tuple[str, ...] = ()
    blind_only: bool = False
    reference: str = ""
    bootstrap: int = 2000
    confidence: float = 0.95
    seed: int = 20260101

    @property
    def digest(self) -> str:
        """Of everything that is chosen: part of a snapshot's key."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


DEFAULT_SETTINGS = Settings()


@dataclass(frozen=True, slots=True, kw_only=True)
class NumbersQuestion(Settings):
    """A question about a campaign's ratings; its answer is a matrix of estimates for each statistic.

    `where`: pairs of a column and a value; several of one column: any of them. `judges`: names, none meaning all.
    `runs`: numbers of judge runs, or `each`; none: one run of each judge (`ratings.newest_runs`). `panels`: names.
    `variants`: only these variants of a statistic; none: the usual one where there is a usual one. `reference`: one of
    `REFERENCES`, or empty as in `RULES`; `ties`: what the mode does with a tie. `pool`: criteria are pooled.
    `exclude`: what else is left out, of `exclusions.EXCLUSIONS`. `min_seconds`: ratings of items that took less time do
    not count. `level`: measure all criteria at this level. `against`: the judge that others are compared with in
    `comparison`. `juries`: judges that count as one more, by the rule `jury_rule`, a line of CSV with their names each.
    `measures`: numeric attributes and measures of the items' texts that are set beside scores and ranked. `cluster`:
    `item` takes items for independent of each other, also those of one scenario. `goals`: pairs of a goal of a plan
    and its value (`planning`). `pairs`: `all` lists the pairs of more than 24 raters. `designs`: where no judge and no
    run is chosen, those that are only cells of designs count, too.
    """

    rows: str = "criterion"
    columns: str = "language"
    where: tuple[tuple[str, str], ...] = ()
    statistics: tuple[str, ...] = ("krippendorff_alpha",)
    variants: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    juries: tuple[str, ...] = ()
    jury_rule: str = "majority"
    against: str = ""
    measures: tuple[str, ...] = ()
    goals: tuple[tuple[str, str], ...] = ()
    cluster: str = ""
    ties: str = "exclude"
    pool: bool = False
    exclude: tuple[str, ...] = ()
    min_seconds: float = 0.0
    level: str = ""
    designs: bool = False
    pairs: str = ""

    @property
    def query(self) -> str:
        """The canonical query string; empty for the default question."""
        return urlencode(pairs_of(self))

    @property
    def as_json(self) -> dict[str, Any]:
        """Its fields as plain values, lists for tuples."""
        return {name: json.loads(json.dumps(value)) for name, value in asdict(self).items()}

    @property
    def rule(self) -> tuple[str | None, str]:
        """The rule of the reference label, None for the default of each level, and what a tied mode does."""
        rule, ties = RULES.get(self.reference, (self.reference, "exclude"))
        return rule, self.ties if ties == "exclude" else ties

    @property
    def jury_members(self) -> list[tuple[str, ...]]:
        """The names of each jury's members."""
        return [_names(text) for text in self.juries]

    @property
    def judges_named(self) -> frozenset[str]:
        """The judges that it names, members of juries included."""
        members = (name for names in self.jury_members for name in names)
        return frozenset(filter(None, (*self.judges, *members, self.against)))

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Rows and columns, without an empty one."""
        return tuple(dict.fromkeys(name for name in (self.rows, self.columns) if name))

    @property
    def is_adjudicated(self) -> bool:
        """Whether its rule of reference reads adjudications."""
        return self.reference in ADJUDICATED

    @property
    def needs_judge(self) -> bool:
        return bool(statistics_that_need("judge").intersection(self.statistics))

    def wanted(self, family: Collection[str]) -> tuple[str, ...]:
        """Its statistics of one family, without the family's name."""
        return tuple(name.rpartition(".")[2] for name in self.statistics if name in family)


PARAMETERS = {
    "rows": "rows",
    "columns": "columns",
    "where": "where",
    "statistic": "statistics",
    "variant": "variants",
    "judge": "judges",
    "run": "runs",
    "raters": "raters",
    "panel": "panels",
    "designs": "designs",
    "pairs": "pairs",
    "jury": "juries",
    "jury_rule": "jury_rule",
    "against": "against",
    "measure": "measures",
    "goal": "goals",
    "cluster": "cluster",
    "reference": "reference",
    "ties": "ties",
    "pool": "pool",
    "blind": "blind_only",
    "exclude": "exclude",
    "min_seconds": "min_seconds",
    "level": "level",
    "confidence": "confidence",
    "bootstrap": "bootstrap",
    "seed": "seed",
}
"""By parameter of an address, in canonical order, the field it sets. Lists are repeated parameters: a name may hold a
comma.
"""
LISTS = frozenset(
    ("where", "statistic", "variant", "judge", "run", "raters", "panel", "jury", "measure", "goal", "exclude")
)
SWITCHES = {"pool": "on", "blind": BLIND_ONLY, "designs": "show"}
DEFAULTS = {field.name: field.default for field in fields(NumbersQuestion) if field.default is not MISSING}


def pairs_of(question: NumbersQuestion) -> list[tuple[str, str]]:
    """A question as parameters in canonical order, without what is as usual."""
    values = {name: getattr(question, field) for name, field in PARAMETERS.items()}
    return [
        (name, text)
        for name, value in values.items()
        if value != DEFAULTS[PARAMETERS[name]]
        for text in _texts(name, value)
    ]


def _texts(name: str, value: Any) -> list[str]:
    if name in ("where", "goal"):
        return [f"{column}={wanted}" for column, wanted in value]
    if name in SWITCHES:
        return [SWITCHES[name]]
    return (
        [str(each) for each in value]
        if isinstance(value, tuple)
        else [tables.number(value) if name in _DECIMALS else str(value)]
    )


_DECIMALS = ("min_seconds", "confidence")


# --- reading one -----------------------------------------------------------------------------------------------------
def parsed_question(pairs: Iterable[tuple[str, str]]) -> NumbersQuestion:
    """The question of these parameters; refused with the sentence under the parameter's name. Empty ones count for
    nothing but `columns`, where nothing means one column.
    """
    found: dict[str, list[str]] = {}
    for name, text in pairs:
        found.setdefault(name, []).append(storable(without_nul(text)).strip())
    values: dict[str, Any] = {}
    for name, field in PARAMETERS.items():
        texts = [text for text in found.pop(name, []) if text or name == "columns"]
        if texts:
            values[field] = _value(name, texts)
    if found:
        unknown = next(iter(found))
        raise _refusal(
            unknown,
            _("There is no parameter “%(name)s”. Available: %(all)s.")
            % {"name": unknown, "all": ", ".join(PARAMETERS)},
        )
    return NumbersQuestion(**values)


def question_of(query: str) -> NumbersQuestion:
    """The question of a query string."""
    return parsed_question(parse_qsl(query.lstrip("?"), keep_blank_values=True))


def _value(name: str, texts: Sequence[str]) -> Any:
    if name == "where":
        return tuple(sorted({_filter(text) for text in texts}))
    if name == "goal":
        return tuple(sorted(dict(map(planning.parsed_goal, texts)).items()))
    if name == "jury":
        texts = [_jury(text) for text in texts]
    if name in LISTS:
        unique = dict.fromkeys(texts)
        return tuple(unique) if name == "statistic" else tuple(sorted(unique))
    text = texts[-1]
    if name in SWITCHES:
        return _one_of(name, text, (SWITCHES[name],)) == SWITCHES[name]
    choices = {
        "reference": REFERENCES,
        "ties": TIES,
        "level": LEVELS,
        "jury_rule": families.JURY_RULES,
        "cluster": CLUSTERS,
        "pairs": ALL_PAIRS,
    }
    if name in choices:
        return _one_of(name, text, choices[name])
    if name in ("rows", "columns", "against"):
        return text
    return _number(name, text)


def _filter(text: str) -> tuple[str, str]:
    column, sign, value = text.partition("=")
    if not (sign and column.strip()):
        raise _refusal("where", _("“%s” is not a filter. Write it as COLUMN=VALUE.") % text)
    return column.strip(), value


def _jury(text: str) -> str:
    """The members of a jury in order, each once, as a line of CSV: `A,B,"Tamm, Jaan"`."""
    names = sorted(set(_names(text)))
    if len(names) < 2:
        raise _refusal(
            "jury", _("“%s” is no jury. Write two names or more as A,B,C, in quotes where one has a comma.") % text
        )
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()


def _names(text: str) -> tuple[str, ...]:
    row = next(csv.reader([text.replace("\n", " ").replace("\r", " ")], skipinitialspace=True), [])
    return tuple(name.strip() for name in row if name.strip())


def _number(name: str, text: str) -> float | int:
    limits: dict[str, tuple[float, float]] = {
        "confidence": (0.5, 0.999),
        "bootstrap": (0, MOST_RESAMPLES),
        "seed": (0, 2**62),
        "min_seconds": (0, 1e6),
    }
    low, high = limits[name]
    try:
        value = float(text) + 0.0 if name in _DECIMALS else int(text)  # no negative zero
    except ValueError:
        value = -1.0
    if not low <= value <= high or (name == "bootstrap" and 0 < value < FEWEST_RESAMPLES):
        more = _(" (0, or %d and more)") % FEWEST_RESAMPLES if name == "bootstrap" else ""
        raise _refusal(
            name,
            _("“%(name)s” is a number from %(low)s to %(high)s%(more)s.")
            % {"name": name, "low": tables.number(low), "high": tables.number(high), "more": more},
        )
    return value


def _one_of(name: str, text: str, known: Iterable[str]) -> str:
    if text not in known:
        raise _refusal(
            name,
            _("“%(text)s” is not a valid choice for “%(name)s”. Available: %(all)s.")
            % {"text": text, "name": name, "all": ", ".join(known) or _("none")},
        )
    return text


def _refusal(name: str, sentence: str) -> Refused:
    return Refused(sentence, code="unknown_choice", fields={name: sentence})


# --- what a campaign has to choose from ------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class QuestionChoices:
    """What may be asked of one campaign. `attributes`: columns of its items' attributes, with the values of each."""

    criteria: tuple[str, ...]
    attributes: Mapping[str, tuple[str, ...]]
    languages: tuple[str, ...]
    generators: tuple[str, ...]
    judges: tuple[str, ...]
    runs: tuple[JudgeRun, ...]
    raters: tuple[str, ...]
    panels: tuple[str, ...]
    measures: tuple[str, ...] = ()
    exclusions: tuple[str, ...] = exclusions.EXCLUSIONS
    of_designs: frozenset[str] = frozenset()

    def listed_judges(self, question: NumbersQuestion) -> tuple[str, ...]:
        """The judges that a form offers: those only of designs where the question asks for them, or names them."""
        hidden = () if question.designs else self.of_designs
        return ratings.usual_judges(self.judges, hidden, chosen=question.judges_named)

    @property
    def columns(self) -> tuple[str, ...]:
        """What rows and columns may be."""
        return (*OWN_COLUMNS, *self.attributes, *COMPUTED)

    @property
    def filters(self) -> tuple[str, ...]:
        """What a filter may be about."""
        return (*OWN_COLUMNS, *self.attributes)


def question_choices(campaign: Campaign) -> QuestionChoices:
    """What there is to choose from in a campaign."""
    items = Item.objects.of(campaign.dataset).order_by()
    criteria = Criterion.objects.filter(rubric_version=campaign.rubric_version_id)
    languages, generators = (
        tuple(sorted(set(items.values_list(name, flat=True).distinct()) - {""})) for name in ("language", "generator")
    )
    runs = tuple(ratings.all_runs(campaign))
    names = ratings.judge_names(campaign, runs)
    attributes = ratings.attribute_choices(campaign.dataset)
    return QuestionChoices(
        criteria=tuple(criteria.order_by("position").values_list("key", flat=True)),
        attributes=attributes.values,
        languages=languages,
        generators=generators,
        judges=tuple(sorted({names[run.pk] for run in runs})),
        runs=runs,
        raters=tuple(annotator.pseudonym for annotator in ratings.annotators(campaign)),
        panels=tuple(sorted(set(Duty.objects.filter(campaign=campaign).values_list("panel__name", flat=True)))),
        measures=(*attributes.numeric, *families.TEXT_MEASURES),
        exclusions=exclusions.available_exclusions(campaign),
        of_designs=ratings.names_of_designs(runs, names),
    )


def check_question(question: NumbersQuestion, choices: QuestionChoices) -> None:
    """Refuse a question that names what the campaign does not have, naming what there is."""
    for name, text in (("rows", question.rows), ("columns", question.columns)):
        if text or name == "rows":
            _one_of(name, text, choices.columns)
    if question.rows == question.columns:
        raise _refusal("columns", _("Rows and columns are both “%s”. Choose two different ones.") % question.rows)
    known: dict[str, Sequence[str]] = {
        "statistic": tuple(STATISTICS),
        "judge": choices.judges,
        "run": (EACH_RUN, *(str(run.pk) for run in choices.runs)),
        "raters": choices.raters,
        "panel": choices.panels,
        "measure": choices.measures,
        "exclude": choices.exclusions,
    }
    for name, there in known.items():
        for text in getattr(question, PARAMETERS[name]):
            _one_of(name, text, there)
    _check_families(question, choices)
    planning.check_goals(question.goals, choices.languages)
    values = {"criterion": choices.criteria, "language": choices.languages, "generator": choices.generators}
    for column, value in question.where:
        _one_of("where", column, choices.filters)
        if in_column := {**values, **choices.attributes}.get(column):
            _one_of("where", f"{column}={value}", [f"{column}={each}" for each in in_column])
    if question.needs_judge and not choices.judges:
        asked = next(name for name in question.statistics if name in statistics_that_need("judge"))
        raise _refusal("statistic", _("“%s” is about a judge, and no judge has been run on these items.") % asked)


def _check_families(question: NumbersQuestion, choices: QuestionChoices) -> None:
    if question.against:
        juries = [families.jury_name(members, question.jury_rule) for members in question.jury_members]
        _one_of("against", question.against, [*choices.judges, *juries])
    for member in (name for members in question.jury_members for name in members):
        _one_of("jury", member, choices.judges)
    if question.juries and EACH_RUN in question.runs:
        raise _refusal(
            "jury", _("A jury takes one run of each judge. Choose “One run of each judge”, or runs by number.")
        )
    need_measure, need_two = statistics_that_need("measure"), statistics_that_need("two judges")
    if not question.measures and (asked := [name for name in question.statistics if name in need_measure]):
        sentence = _("“%(asked)s” is about a measure of the items. Choose one. Available: %(all)s.")
        raise _refusal("measure", sentence % {"asked": asked[0], "all": ", ".join(choices.measures)})
    judges = len(question.judges or choices.judges) + len(question.juries)
    if judges < 2 and (asked := [name for name in question.statistics if name in need_two]):
        raise _refusal("statistic", _("“%s” is about two judges. Only one is chosen or has been run.") % asked[0])
    if "languages.kappa_gap" in question.statistics:
        chosen = [value for column, value in question.where if column == "criterion"] or choices.criteria
        if len(chosen) > families.MOST_COMPARED:
            sentence = _("“languages.kappa_gap” compares every two criteria. Choose at most %d of them.")
            raise _refusal("statistic", sentence % families.MOST_COMPARED)


def asked_question(campaign: Campaign, pairs: Iterable[tuple[str, str]]) -> NumbersQuestion:
    """The question of these parameters, checked against the campaign. The default question fits every campaign."""
    question = parsed_question(pairs)
    if question != NumbersQuestion():
        check_question(question, question_choices(campaign))
    return question


def chosen_runs(campaign: Campaign, question: NumbersQuestion) -> list[JudgeRun]:
    """The judge runs that a question is about, without those that they continue."""
    if question.runs:
        runs = list(ratings.all_runs(campaign))
        inner = {part.pk for run in runs for part in whole_run([run]) if part.pk != run.pk}
        runs = [
            run for run in runs if str(run.pk) in question.runs or (EACH_RUN in question.runs and run.pk not in inner)
        ]
    else:
        runs = list(ratings.newest_runs(campaign))
    is_every = question.runs or question.designs or all(run.design_id is None for run in runs)
    if is_every and not question.judges:
        return runs
    names = ratings.judge_names(campaign, runs)
    wanted: Collection[str] = {*question.judges, *(name for members in question.jury_members for name in members)}
    if not question.judges:
        everyone, of_designs = [names[run.pk] for run in runs], ratings.names_of_designs(runs, names)
        wanted = ratings.usual_judges(everyone, of_designs, chosen=question.judges_named)
    return [run for run in runs if names[run.pk] in wanted]
