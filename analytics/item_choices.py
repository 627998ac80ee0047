"""What a reader asks of the list of items: one criterion, filters, whose ratings count, and the order.

The filter `where` is that of a question (`questions`): a figure leads to the items that it is about.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, get_args
from urllib.parse import urlencode

from django.core.cache import caches
from django.db.models import Exists, OuterRef, Q
from django.http import QueryDict
from django.utils.translation import gettext as _

from accounts.inputs import without_nul
from accounts.refusals import Refused
from analytics.figures import listed
from analytics.questions.parameters import BLIND_ONLY
from analytics.questions.reference_rules import ADJUDICATED, usual_rule
from analytics.ratings.exclusions import EXCLUSIONS
from analytics.ratings.item_attributes import attribute_text
from analytics.ratings.raters import campaign_annotators, names_of_designs, names_of_failed, newest_runs, rater_names
from annotation.models import Campaign, Criterion, Dataset, Duty, Item, Rating
from annotation.writers import tables
from judging.models import JudgeRun, Verdict
from judging.runs import whole_run

Sort = Literal["disagreement", "judge_error", "judge_above", "judge_below", "id", "n"]
Measure = Literal["mode_share", "pair_difference"]
SORTS: tuple[Sort, ...] = get_args(Sort)
ERROR_ORDERS = ("judge_error", "judge_above", "judge_below")
"""Orders by the judge's error: by its size; from the judge's score far above the reference, or far below it."""
REFERENCES = (
    "mode", "mode_split", "mode_lower", "mode_upper", "median", "mean", "minimum", "adjudicated", "adjudicated_first",
)  # fmt: skip
"""Rules that settle the score of one item; `mode_…`: what a tied mode does (METHODS 2)."""
NOT_OF_ONE_ITEM = ("each", "dawid_skene")
"""Rules of a figure that settle no item alone: an address may name them, and the list says what it shows instead."""
ASKED_RULES = (*REFERENCES, *NOT_OF_ONE_ITEM)
CLASSES = ("full", "partial", "none")
COMPARED = "only"
ATTRIBUTE = "attribute."
CUT = ("language", "generator", "scenario", "item", "dataset_version", "week", "hundred")
"""Columns that the filter `where` may name, as in a question; several values of one column: any of them."""
MOST_VALUES = 200
"""An attribute with more values than this is filtered by its address only."""
KEPT_SECONDS = 24 * 3600
CHUNK = 20_000


@dataclass(frozen=True, slots=True)
class ItemOptions:
    """What the list of a campaign's items can be filtered by. An attribute with too many values has None."""

    criteria: dict[str, Criterion]
    languages: tuple[str, ...]
    generators: tuple[str, ...]
    attributes: dict[str, tuple[str, ...] | None]
    judges: dict[str, JudgeRun]
    of_designs: frozenset[str]
    raters: tuple[str, ...]
    panels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChoice:
    """Which items on which criterion, whose ratings count, and the order. `run` is the judge's; None without a judge.

    `where`: pairs of a column of `CUT` and a value. `min_seconds`: ratings of items that took less time do not count.
    `agreement`: only items of this class (`stats.judge.agreement_classes.agreement_class`); `scores`: only with so many
    scores or more; `compared`: only with a reference and a score of the judge; `by`: only those that all these people
    scored. `without`: people whose ratings do not count.
    `scored`, `settled`, `judged`: only items that a rater gave this score, with this reference, or this score of the
    judge (the point nearest to it, halves upwards). `left_out`: what the figure that led here leaves out beside; the
    list has it all the same, and says so. `reference` is the rule that settles the panel's score: by default the
    mean, of labels without an order the mode (`usual_rule`). `asked_rule`: a figure's that is of `NOT_OF_ONE_ITEM`.
    """

    criterion: Criterion
    language: str = ""
    generator: str = ""
    where: tuple[tuple[str, str], ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    min_seconds: float = 0.0
    scored: float | None = None
    settled: float | None = None
    judged: float | None = None
    left_out: tuple[str, ...] = ()
    agreement: str = ""
    scores: int = 0
    compared: bool = False
    by: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    judge: str = ""
    run: JudgeRun | None = None
    raters: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    blind_only: bool = False
    q: str = ""
    sort: Sort = "disagreement"
    reference: str
    asked_rule: str = ""

    @property
    def measure(self) -> Measure:
        """How disagreement on one item is measured at the criterion's level (`item_disagreement`)."""
        return "mode_share" if self.criterion.level == Criterion.Level.NOMINAL else "pair_difference"

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The choice as parameters of an address."""
        reference = "" if self.reference == default_rule(self.criterion) else self.reference
        single = {
            "criterion": self.criterion.key,
            "language": self.language,
            "generator": self.generator,
            "judge": self.judge,
            "q": self.q,
            "sort": "" if self.sort == SORTS[0] else self.sort,
            "reference": self.asked_rule or reference,
            "blind": BLIND_ONLY if self.blind_only else "",
            "agreement": self.agreement,
            "scores": str(self.scores) if self.scores else "",
            "compared": COMPARED if self.compared else "",
            "min_seconds": tables.number(self.min_seconds) if self.min_seconds else "",
        }
        single |= {name: "" if value is None else tables.number(value) for name, value in self.of_cell.items()}
        several = [("rater", name) for name in self.raters] + [("panel", name) for name in self.panels]
        several += [("where", f"{column}={value}") for column, value in self.where]
        several += [("exclude", name) for name in self.left_out] + [("by", name) for name in self.by]
        several += [("without", name) for name in self.without]
        by_attribute = [(f"{ATTRIBUTE}{key}", value) for key, value in self.attributes]
        return [pair for pair in (*single.items(), *several, *by_attribute) if pair[1]]

    @property
    def query(self) -> str:
        return urlencode(self.parameters)

    @property
    def of_cell(self) -> dict[str, float | None]:
        """By parameter, the scores that its items have."""
        return {"scored": self.scored, "settled": self.settled, "judged": self.judged}

    def wanted(self, column: str) -> set[str]:
        """The values of a column that the filter `where` lets through; none meaning all."""
        return {value for name, value in self.where if name == column}

    @property
    def about_ratings(self) -> Q:
        """The condition on ratings of its raters, panels and times."""
        found = Q(annotation__annotator__pseudonym__in=self.raters) if self.raters else Q()
        if self.without:
            found &= ~Q(annotation__annotator__pseudonym__in=self.without)
        if self.panels:
            found &= Q(annotation__assignment__duty__panel__name__in=self.panels)
        if self.blind_only:
            found &= Q(annotation__blind=True) | Q(annotation__blind=None)
        if self.min_seconds:
            found &= Q(annotation__seconds=None) | Q(annotation__seconds__gte=self.min_seconds)
        return found


def item_options(campaign: Campaign) -> ItemOptions:
    """What the items of this campaign can be filtered by."""
    runs = list(newest_runs(campaign))
    names = rater_names(campaign, runs)
    judged, of_designs = {names[run.pk]: run for run in runs}, names_of_designs(runs, names)
    failed = names_of_failed(runs, names)
    panels = Duty.objects.filter(campaign=campaign).order_by("panel__name").values_list("panel__name", flat=True)
    languages, generators, attributes = _described(campaign.dataset)
    return ItemOptions(
        criteria={criterion.key: criterion for criterion in campaign.rubric_version.criteria.all()},
        languages=languages,
        generators=generators,
        attributes=attributes,
        judges={name: judged[name] for name in sorted(judged, key=lambda name: (name in of_designs, name in failed))},
        of_designs=of_designs,
        raters=tuple(campaign_annotators(campaign).values_list("pseudonym", flat=True)),
        panels=tuple(dict.fromkeys(panels)),
    )


def chosen_items(campaign: Campaign, options: ItemOptions, query: QueryDict) -> ItemChoice:
    """The choice in an address; `Refused` with one sentence for each parameter that names nothing.

    Parameters: criterion, language, generator, attribute.KEY, judge, rater, panel, where=COLUMN=VALUE and exclude (may
    be repeated), blind=only, min_seconds, scored, settled, judged, agreement, scores, by, without, compared=only, q,
    sort, reference.
    """
    given = {name: without_nul(query.get(name, "")).strip() for name in ("language", "generator", "judge", "q")}
    raters, panels, by = (tuple(filter(None, query.getlist(name))) for name in ("rater", "panel", "by"))
    attributes = tuple(
        (name.removeprefix(ATTRIBUTE), value)
        for name, values in query.lists()
        for value in values
        if name.startswith(ATTRIBUTE) and value
    )
    where = tuple(sorted({_cut(without_nul(text)) for text in query.getlist("where") if text.strip()}))
    left_out = tuple(name for name in EXCLUSIONS if name in query.getlist("exclude"))
    sort, reference = query.get("sort") or SORTS[0], query.get("reference") or ""
    wrong = dict(_wrong(options, query, given, raters, panels, attributes)) | dict(_wrong_cut(options, query, where))
    if wrong:
        raise Refused(" ".join(wrong.values()), code="unknown_choice", fields=wrong)
    if sort in ERROR_ORDERS and not options.judges:
        sentence = _("No judge has rated these items, so they can't be sorted by the judge's error.")
        raise Refused(sentence, code="no_judge", fields={"sort": sentence})
    criterion = _criterion(campaign, options, query.get("criterion", ""))
    if sort in ERROR_ORDERS and criterion.level == Criterion.Level.NOMINAL:
        sort = "judge_error"  # labels without an order are equal or not
    judge = given["judge"] or next(iter(options.judges), "")
    return ItemChoice(
        criterion=criterion,
        language=given["language"],
        generator=given["generator"],
        where=where,
        attributes=attributes,
        min_seconds=_number(query, "min_seconds") or 0.0,
        scored=_number(query, "scored"),
        settled=_number(query, "settled"),
        judged=_number(query, "judged"),
        left_out=left_out,
        agreement=query.get("agreement", ""),
        scores=int(_number(query, "scores") or 0),
        compared=query.get("compared") == COMPARED,
        by=tuple(dict.fromkeys(by)),
        without=tuple(dict.fromkeys(filter(None, query.getlist("without")))),
        judge=judge,
        run=options.judges.get(judge),
        raters=tuple(dict.fromkeys(raters)),
        panels=tuple(dict.fromkeys(panels)),
        blind_only=query.get("blind") == BLIND_ONLY,
        q=given["q"],
        sort=next(known for known in SORTS if known == sort),
        reference=settled_rule(criterion, "" if reference in NOT_OF_ONE_ITEM else reference),
        asked_rule=reference if reference in NOT_OF_ONE_ITEM else "",
    )


def default_rule(criterion: Criterion) -> str:
    """The usual rule of the criterion's level: a list of items shows the judge's distance, a figure of levels."""
    return usual_rule(criterion.level)


def settled_rule(criterion: Criterion, wanted: str) -> str:
    """The rule wanted, or the default; labels without an order have a mode or an adjudication."""
    if criterion.level == Criterion.Level.NOMINAL and wanted not in ADJUDICATED:
        return default_rule(criterion)
    return wanted or default_rule(criterion)


def _wrong(
    options: ItemOptions,
    query: QueryDict,
    given: Mapping[str, str],
    raters: Sequence[str],
    panels: Sequence[str],
    attributes: Sequence[tuple[str, str]],
) -> Iterator[tuple[str, str]]:
    """A sentence by parameter for everything that there is not."""
    no_order = _("“%(given)s” is not a sort order. Choose one of %(orders)s.")
    no_order %= {"given": "%s", "orders": listed(SORTS)}
    no_rule = _("“%(given)s” is not a reference rule. Choose one of %(rules)s.")
    no_rule %= {"given": "%s", "rules": listed(ASKED_RULES)}
    no_class = _("“%s” is not a class of agreement. Choose full, partial or none.")
    known: tuple[tuple[str, Sequence[str], Iterable[str], str], ...] = (
        ("criterion", [query.get("criterion", "")], options.criteria, _("This rubric has no criterion “%s”.")),
        ("language", [given["language"]], options.languages, _("No item of this campaign has the language “%s”.")),
        ("generator", [given["generator"]], options.generators, _("No item of this campaign is by generator “%s”.")),
        ("judge", [given["judge"]], options.judges, _("No judge “%s” has rated these items.")),
        ("rater", raters, options.raters, _("Nobody called %s has rated in this campaign.")),
        ("by", query.getlist("by"), options.raters, _("Nobody called %s has rated in this campaign.")),
        ("without", query.getlist("without"), options.raters, _("Nobody called %s has rated in this campaign.")),
        ("panel", panels, options.panels, _("No panel “%s” rates in this campaign.")),
        ("sort", [query.get("sort", "")], SORTS, no_order),
        ("reference", [query.get("reference", "")], ASKED_RULES, no_rule),
        ("blind", [query.get("blind", "")], [BLIND_ONLY], _("“blind” can only be “only”, not “%s”.")),
        ("compared", [query.get("compared", "")], [COMPARED], _("“compared” can only be “only”, not “%s”.")),
        ("agreement", [query.get("agreement", "")], CLASSES, no_class),
    )
    for name, values, choices, sentence in known:
        if unknown := [value for value in values if value and value not in set(choices)]:
            yield name, sentence % ", ".join(unknown)
    for key, value in attributes:
        if key not in options.attributes:
            yield f"{ATTRIBUTE}{key}", _("No item of this campaign has the attribute “%s”.") % key
        elif (existing := options.attributes[key]) is not None and value not in existing:
            sentence = _("No item of this campaign has “%(value)s” as its attribute “%(key)s”.")
            yield f"{ATTRIBUTE}{key}", sentence % {"value": value, "key": key}


def _cut(text: str) -> tuple[str, str]:
    column, _sign, value = text.partition("=")
    return column.strip(), value.strip()


def _number(query: QueryDict, name: str) -> float | None:
    """The number of a parameter; None where there is none."""
    try:
        value = float(query.get(name, ""))
    except ValueError:
        return None
    return value if isfinite(value) else None


def _wrong_cut(options: ItemOptions, query: QueryDict, where: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The same for the filters that a question has, too."""
    known: dict[str, Collection[str]] = {"language": options.languages, "generator": options.generators}
    for column, value in where:
        if column not in CUT or not value:
            sentence = _("“%(given)s” is not a filter. Write it as COLUMN=VALUE. Available columns: %(all)s.")
            yield "where", sentence % {"given": "=".join(filter(None, (column, value))), "all": ", ".join(CUT)}
        elif value not in known.get(column, (value,)):
            sentence = _("No item of this campaign has “%(value)s” as its %(column)s.")
            yield "where", sentence % {"value": value, "column": column}
    if unknown := [name for name in query.getlist("exclude") if name and name not in EXCLUSIONS]:
        sentence = _("“%(given)s” can't be left out. Available: %(all)s.")
        yield "exclude", sentence % {"given": ", ".join(unknown), "all": ", ".join(EXCLUSIONS)}
    for name in ("min_seconds", "scored", "settled", "judged", "scores"):
        if query.get(name, "").strip() and _number(query, name) is None:
            yield name, _("“%(given)s” is not a number for “%(name)s”.") % {"given": query.get(name, ""), "name": name}


def _criterion(campaign: Campaign, options: ItemOptions, key: str) -> Criterion:
    """The criterion of that key, else the first with a score, else the first."""
    if key:
        return options.criteria[key]
    current = Rating.objects.filter(
        criterion=OuterRef("pk"), annotation__campaign=campaign, annotation__superseded_at=None
    )
    judged = Verdict.objects.filter(criterion=OuterRef("pk"), run__in=whole_run(options.judges.values()))
    scored = campaign.rubric_version.criteria.filter(Exists(current) | Exists(judged)).order_by("position").first()
    return options.criteria[scored.key] if scored else next(iter(options.criteria.values()))


def _described(dataset: Dataset) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, tuple[str, ...] | None]]:
    """Languages, generators and attributes with their values. The items of a dataset never change: kept for a day."""
    name = f"item-choices:{dataset.pk}:{dataset.created_at.timestamp()}"
    kept = caches["content"].get(name)
    if kept is None:
        kept = _read(dataset)
        caches["content"].set(name, kept, KEPT_SECONDS)
    return kept  # type: ignore[no-any-return]


def _read(dataset: Dataset) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, tuple[str, ...] | None]]:
    languages, generators = set[str](), set[str]()
    values: dict[str, set[str]] = defaultdict(set)
    rows = Item.objects.of(dataset).values_list("language", "generator", "attributes")
    for language, generator, attributes in rows.iterator(CHUNK):
        languages.add(language)
        generators.add(generator)
        for key, value in attributes.items():
            existing, text = values[key], attribute_text(value)
            if text is not None and len(existing) <= MOST_VALUES:
                existing.add(text)
    by_key = {key: tuple(sorted(texts)) if len(texts) <= MOST_VALUES else None for key, texts in sorted(values.items())}
    return tuple(sorted(languages)), tuple(sorted(generators - {""})), by_key
