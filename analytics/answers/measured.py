"""The figures of a plan: one loop over its reports.

A cell that was computed once is stored by the digest of all that it depends on (docs/decisions/0027): after a
submission only the cells that it touches are computed again. pandas and scipy are loaded by workers and commands alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, groupby, product
from typing import TYPE_CHECKING, Any

from analytics.answers.stored_cells import (
    ALL_JUDGES,
    NEEDED,
    CellReport,
    CellStore,
    CodedTable,
    asked_row,
    computed_cells,
    usual_row,
)
from analytics.questions.goals import goal_values
from analytics.questions.plan import Plan, PlannedReport
from analytics.questions.question import NumbersQuestion, Settings
from analytics.questions.reference_rules import NEEDS_ORDER
from analytics.stats.core.messages import Message
from analytics.stats.declared.declaring import Once, StatisticsReport
from analytics.stats.declared.register import is_usual
from annotation.writers.tables import Table

if TYPE_CHECKING:
    from analytics.stats.core.scales import Scale
    from analytics.stats.core.tables import RatingsTable

Progress = Callable[[int, int], None]
Arguments = dict[str, Any]


def measured_answer(found: Table, plan: Plan, *, store: CellStore, progress: Progress) -> dict[str, Any]:
    """Estimates of every cell of a plan's ratings table as rows (`CellEstimate.as_row`), and the notes on the table.

    `asked` of a row is its statistic with the report's prefix before it, as in `stats.declared`.
    """
    question = plan.question
    table = CodedTable(found, plan.scales, {*NEEDED, *plan.columns})
    reports = [*_planned_cells(table, plan)]
    *answers, off_points = computed_cells(table, reports, store=store, progress=progress, beside=[_OFF_POINTS])
    # What does not depend on the judge is in the report of each.
    rows = {json.dumps(row): row for answer in answers for row in answer}
    notes = [*_notes(off_points), *_measure_notes(table, question)]
    store.forget_others()
    if question.variants and not rows:  # an empty answer says why
        names = ", ".join(question.variants)
        notes += [
            Message("no figure of %(statistic)s has the variant %(variant)s", statistic=each, variant=names)
            for each in question.statistics
        ]
    return {"estimates": list(rows.values()), "notes": notes}


def report_cells(
    declared: StatisticsReport,
    settings: Settings,
    by: Sequence[str],
    statistics: Sequence[str],
    *,
    criteria: Sequence[str] | None = None,
    panel: str | None = None,
    arguments: Mapping[str, Any],
    more: Sequence[str] = (),
) -> CellReport:
    """A declared report with the options that it takes, for these statistics.

    `arguments`: what it is computed for; `more`: the columns that it reads beside those that every figure needs.
    """
    question = settings if isinstance(settings, NumbersQuestion) else NumbersQuestion()
    pool, variants = question.pool, question.variants
    by = tuple(name for name in by if name not in declared.across)
    if not (pool and "pool" in declared.takes):
        by = tuple(dict.fromkeys((*by, *declared.also_by)))
    options: Arguments = {
        "by": by,
        "pool": pool,
        "statistics": tuple(statistics),
        "bootstrap": settings.bootstrap,
        "resamples": settings.bootstrap,
        "confidence": settings.confidence,
        "seed": settings.seed,
        "goals": goal_values(question.goals) if "goals" in declared.takes else {},
        "against": question.against,
        **({"pairs": question.pairs} if question.pairs else {}),
    }
    given = {str(name): options[name] for name in declared.takes if name in options} | {**declared.fixed, **arguments}
    keeps = {"keeps": None if variants else is_usual} if "keeps" in declared.takes else {}
    judge = {
        "none": None,
        "one": arguments.get("judge"),
        "one or all": arguments.get("judge") or ALL_JUDGES,
        "all": ALL_JUDGES,
    }[declared.verdicts]
    return CellReport(
        name=declared.name,
        compute=partial(declared.function(), **given, **keeps),
        options={**given, "asked": question.statistics, "variants": variants},
        by=by,
        pool=pool,
        judge=judge,
        criteria=criteria,
        panel=panel,
        in_file_order=declared.in_file_order or (bool(variants) and declared.name == "agreement"),
        is_whole=declared.is_whole,
        more=tuple(more),
        row=partial(asked_row, question.statistics, variants, declared.prefix, panel)
        if settings is question
        else usual_row,
    )


def _planned_cells(table: CodedTable, plan: Plan) -> Iterator[CellReport]:
    """Every report of a plan with the judges, rules, panels and measures that it is computed for.

    Reports whose cells are cut take turns: all that are computed for one judge, then all for the next.
    """
    values = _values(table, plan)
    ordered = [key for key in table.criteria if _has_means(table.scale(key))]
    panels: list[str] | list[None] = table.values("panel") if plan.panels_apart else [None]
    for panel in panels:
        for _turn, together in groupby(plan.reports, _turn_of):
            calls = [
                (planned, parts)
                for planned in together
                for parts in product(*(values[once] for once in planned.declared.once_per))
            ]
            calls.sort(key=lambda call: values[call[0].declared.once_per[0]].index(call[1][0]) if call[1] else 0)
            for (declared, names, more), parts in calls:
                arguments = {name: value for part in parts for name, value in part.items()}
                criteria = arguments.pop("criteria", ordered if declared.needs_means else None)
                about = {"criteria": criteria, "panel": panel, "more": more}
                yield report_cells(declared, plan.question, plan.by, names, arguments=arguments, **about)


def _turn_of(planned: PlannedReport) -> object:
    """What consecutive reports have in common that take turns."""
    declared = planned.declared
    return declared.name if declared.in_file_order else declared.once_per[:1]


def _values(table: CodedTable, plan: Plan) -> dict[Once, list[Arguments]]:
    """What a report may be computed once for, as its arguments; `criteria` are the only ones that it is then about."""
    question = plan.question
    named = set(table.values("rater", table.is_judge))
    if question.judges and question.juries:  # not those that only sit on a jury
        named -= {name for members in plan.juries for name in members} - set(question.judges)
    judges, rules = sorted(named), _rules(table, plan)
    panels = table.values("panel", table.where("rater_kind", ("annotator",)))
    measures = question.measures
    return {
        "judge": [{"judge": judge} for judge in judges],
        "panel and judges": [{"judge": judge} for judge in (None, *judges)],
        "first judge": [{"judge": next(iter(judges), None)}],
        "pair of judges": [{"pair": pair} for pair in combinations(judges, 2)],
        "judges": [{"judges": judges}],
        "rule": [{"criteria": criteria, "reference": rule, "ties": ties} for criteria, rule, ties in rules],
        "rules": [{"rules": rules}],
        "pair of panels": [{"first": first, "second": second} for first, second in combinations(panels, 2)],
        "measure": [{"measure": measure} for measure in measures],
        "measure and other": [
            {"measure": measure, "other": other, "is_measure": other in measures}
            for place, measure in enumerate(measures)
            for other in (*measures[place + 1 :], None, *judges)
        ],
    }


def _rules(table: CodedTable, plan: Plan) -> list[tuple[list[str], str | None, str]]:
    """The criteria with their rule of reference (None: the default of each level) and what it does with a tie.

    Nominal criteria have no order: the mode stands for a rule that needs one, and ties are left out. Criteria that are
    pooled have one rule.
    """
    rule, ties = plan.rule
    nominal = [key for key in table.criteria if table.scale(key).level == "nominal"]
    if plan.question.pool and nominal:
        nominal = table.criteria
    ordered = [key for key in table.criteria if key not in nominal]
    rules = [(nominal, "mode" if rule in NEEDS_ORDER else rule, "exclude"), (ordered, rule, ties)]
    return [one for one in rules if one[0]]


def _has_means(scale: Scale) -> bool:
    """Whether a mean of its scores says something: scores in order, or a share of one of two labels."""
    return scale.is_numeric and (scale.has_order or scale.q == 2)


def _off_points(table: RatingsTable) -> Iterator[dict[str, int]]:
    """How many scores of judges lie beyond the ends of the scale, and how many between its points."""
    from analytics.stats.core.validation import scores_off_points

    beyond, between = scores_off_points(table)
    yield {"beyond": beyond, "between": between}


_OFF_POINTS = CellReport(name="off points", compute=_off_points, options={}, by=("criterion",), judge=ALL_JUDGES)


def _notes(counts: Iterable[Mapping[str, int]]) -> list[str]:
    """What a reader should know of scores that are no points of the scale."""
    from analytics.stats.core.validation import notes_off_points

    every = list(counts)
    return list(notes_off_points(*(sum(each[name] for each in every) for name in ("beyond", "between"))))


def _measure_notes(table: CodedTable, question: NumbersQuestion) -> list[str]:
    """Which lemmatiser and list of stop words the measures of texts had, by language."""
    from analytics.stats.text.words import has_stop_words, lemmatiser, tokeniser

    if not {"text.words", "text.ttr", "text.mattr", "text.mtld"}.intersection(question.measures):
        return []
    return [
        f"words of texts in {language}: {tokeniser(language)[0]}; lemmas: {lemmatiser(language)[0]}; "
        + ("stop words removed from TTR and MATTR" if has_stop_words(language) else "no list of stop words")
        for language in table.values("language")
    ]
