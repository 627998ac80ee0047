"""Audit runs: a judge scores some items, unchanged and with changes. This shows which changes move its scores.

A changed text is a part of a request (docs/decisions/0028): no item is stored for it, so that no panel can be given it
and nothing counts it. The calls about the unchanged items use the replies that the judge's other runs have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.models import User
from accounts.refusals import Refused
from annotation import bulk
from annotation.models import Dataset, Item, RubricVersion
from judging import judges, runs
from judging.asking import endpoints, prices
from judging.models import Attempt, Call, Judge, JudgeRun
from judging.perturbation import RULE, USUAL, change_of, changes_request
from judging.requests import criterion_brief, perturbed_text, prompts_about
from judging.versions import examples

PER_LANGUAGE = 30
MOST_PER_LANGUAGE = 500
UNCHANGED = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbationForecast(runs.Forecast):
    """The forecast of an audit run. `perturbed`: for each change, the number of items that it changes; the change is
    left out for other items."""

    perturbed: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbationPlan:
    """The items of an audit, by their keys in order, and those that each change changes."""

    items: tuple[int, ...]
    perturbed: Mapping[str, tuple[int, ...]]

    def texts(self) -> Iterator[tuple[str, int]]:
        """Each item as it is, then with each change."""
        yield from ((UNCHANGED, item) for item in self.items)
        yield from ((change, item) for change, items in self.perturbed.items() for item in items)


def start_perturbed_run(
    *,
    judge: Judge,
    dataset: Dataset,
    rubric_version: RubricVersion,
    changes: Sequence[str],
    per_language: int = PER_LANGUAGE,
    seed: int = 0,
    budget: Decimal | None = None,
    key: str | None = None,
    actor: User | None = None,
) -> JudgeRun:
    """Plan an audit run: calls about each item, unchanged and with each change that applies. The caller then enqueues
    `tasks.work`.

    Draws ``per_language`` items of each language by ``seed``: first from items that the judge has answered about, then
    from the others. If a run with this ``key`` exists, that run is returned. Refused if no change applies to any item.
    """
    access.refuse_archived(judge.project)
    about: dict[str, Any] = {"judge": judge, "dataset": dataset, "rubric_version": rubric_version}
    chosen: dict[str, Any] = {"changes": list(dict.fromkeys(changes)), "per_language": per_language, "seed": seed}
    if key and (started := _started(judge, key, about, chosen)):
        return started
    refuse_unfit_audit(**about, changes=changes, per_language=per_language, budget=budget)
    plan = planned_texts(**about, **chosen)
    if not any(plan.perturbed.values()):
        sentence = _("None of the chosen changes changes any of these items.")
        raise Refused(sentence, code="nothing_to_change", fields={"changes": sentence})
    try:
        with transaction.atomic():
            run = JudgeRun.objects.create(
                project=judge.project,
                **about,
                budget=budget,
                perturbation={**chosen, "rule": RULE},
                prices=endpoints.prices_now(judge.provider),
                key=key or None,
                created_by=actor,
            )
            bulk.insert(
                Call, ("run_id", "item_id", "criterion_id", "repeat", "change", "state", "tries"), _calls(run, plan)
            )
            audit.record(actor=actor, project=judge.project, verb="start judge run", subject=run)
    except IntegrityError:
        if key and (started := _started(judge, key, about, chosen)):
            return started
        raise
    return run


def _started(judge: Judge, key: str, about: Mapping[str, Any], chosen: Mapping[str, Any]) -> JudgeRun | None:
    """The audit run that was started with this key. Refused if the key was used for a different run."""
    run = JudgeRun.objects.filter(project=judge.project_id, key=key).first()
    asked = run and {name: part for name, part in (run.perturbation or {}).items() if name != "rule"}
    if run and (asked != chosen or any(getattr(run, name) != value for name, value in about.items())):
        raise Refused(_("This key was already used for another run (%d). Use a new key.") % run.pk, code="key_used")
    return run


def refuse_unfit_audit(
    *,
    judge: Judge,
    dataset: Dataset,
    rubric_version: RubricVersion,
    changes: Sequence[str],
    per_language: int = PER_LANGUAGE,
    budget: Decimal | None = None,
) -> None:
    """Refuse an audit run that can't be started, saying why."""
    fit: dict[str, Any] = {"judge": judge, "dataset": dataset, "rubric_version": rubric_version, "budget": budget}
    runs.refuse_unready(**fit, repeats=None)
    if not changes:
        sentence = _("Choose at least one change.")
        raise Refused(sentence, code="changes", fields={"changes": sentence})
    for change in changes:
        try:
            change_of(change)
        except ValueError:
            sentence = _("There is no change “%(change)s”. There are: %(all)s; shares from 1 to 100.")
            sentence %= {"change": change, "all": ", ".join(USUAL)}
            raise Refused(sentence, code="changes", fields={"changes": sentence}) from None
    if not 1 <= per_language <= MOST_PER_LANGUAGE:
        sentence = _("Items per language must be from 1 to %d.") % MOST_PER_LANGUAGE
        raise Refused(sentence, code="per_language", fields={"per_language": sentence})


def planned_texts(
    *,
    judge: Judge,
    dataset: Dataset,
    rubric_version: RubricVersion,
    changes: Sequence[str],
    per_language: int,
    seed: int,
) -> PerturbationPlan:
    """The items that are drawn, and which of them each change changes."""
    drawn = drawn_items(
        judge=judge, dataset=dataset, rubric_version=rubric_version, per_language=per_language, seed=seed
    )
    variant = judges.variant_of(judge.variant)
    shown = variant.reference_answer
    criteria = rubric_version.criteria.order_by("position")
    briefs = [criterion_brief(criterion, variant.instruction_language) for criterion in criteria]
    perturbed = {}
    for change in dict.fromkeys(changes):
        of_request = changes_request(change, variant=variant, criteria=briefs)
        can = [
            item.pk
            for item in drawn
            if (
                perturbed_text(item, change, seed=seed, reference=shown) is not None
                if of_request is None
                else of_request
            )
        ]
        perturbed[change] = tuple(can)
    return PerturbationPlan(items=tuple(item.pk for item in drawn), perturbed=perturbed)


def drawn_items(
    *, judge: Judge, dataset: Dataset, rubric_version: RubricVersion, per_language: int, seed: int
) -> list[Item]:
    """At most ``per_language`` items of each language by ``seed``, in the order of the dataset.

    First of the items that the judge has answered about in an ordinary run, whose replies are used again; where a
    language has too few of them, also of the others. A pilot is no ordinary run. The judge's examples are left out, and
    so are items that an alignment has locked for a test of this judge.
    """
    items = examples.without_open_tests(examples.without_examples(Item.objects.of(dataset), judge), judge)
    answered = Call.objects.filter(
        run__in=JudgeRun.objects.ordinary().filter(judge=judge, rubric_version=rubric_version),
        state=Call.State.SETTLED,
    )
    known = set(answered.order_by().values_list("item", flat=True).distinct())
    by_language: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for pk, language in items.values_list("pk", "language"):
        by_language[language][pk not in known].append(pk)
    chosen: list[int] = []
    for language, pools in by_language.items():
        draw, left = Random(f"{seed}:{language}"), per_language
        for pool in pools:
            drawn = draw.sample(pool, min(left, len(pool)))
            chosen, left = chosen + drawn, left - len(drawn)
    return list(items.filter(pk__in=chosen).select_related("dataset"))


def _calls(run: JudgeRun, plan: PerturbationPlan) -> Iterator[tuple[Any, ...]]:
    single = run.judge.variant["grouping"] == "single"
    criteria = list(run.rubric_version.criteria.values_list("pk", flat=True)) if single else [None]
    for change, item in plan.texts():
        for criterion in criteria:
            yield run.pk, item, criterion, 1, change, Call.State.WAITING.value, 0


def forecast_audit(
    *,
    judge: Judge,
    dataset: Dataset,
    rubric_version: RubricVersion,
    changes: Sequence[str],
    per_language: int = PER_LANGUAGE,
    seed: int = 0,
) -> PerturbationForecast:
    """Calls and verdicts exactly; tokens from the prompts about a few of the items as they are."""
    about: dict[str, Any] = {"judge": judge, "dataset": dataset, "rubric_version": rubric_version}
    plan = planned_texts(**about, changes=changes, per_language=per_language, seed=seed)
    variant, criteria = judges.variant_of(judge.variant), list(rubric_version.criteria.order_by("position"))
    per_item = len(criteria) if variant.grouping == "single" else 1
    texts = len(plan.items) + sum(map(len, plan.perturbed.values()))
    replied = Attempt.objects.filter(
        call__run__judge=judge, call__run__rubric_version=rubric_version, call__item__in=plan.items, call__repeat=1,
        call__change=UNCHANGED, call__state=Call.State.SETTLED, outcome=Attempt.Outcome.REPLIED,
    ).exclude(reply_key="")  # fmt: skip
    answered = replied.order_by().values("call__item", "call__criterion").distinct().count()
    sample = Item.objects.filter(pk__in=plan.items[: runs.SAMPLE]).select_related("dataset")
    prompts = [prompt for item in sample for prompt in prompts_about(variant, criteria, item)]
    calls = texts * per_item
    into = calls * sum(prompt.tokens for prompt in prompts) // max(1, len(prompts))
    out = texts * len(criteria) * (runs.TOKENS_PER_SCORE + (runs.TOKENS_PER_RATIONALE if variant.explanation else 0))
    new_in, new_out = (tokens * (calls - answered) // max(1, calls) for tokens in (into, out))
    return PerturbationForecast(
        calls=calls,
        answered=answered,
        verdicts=texts * len(criteria),
        tokens_in=new_in,
        tokens_out=new_out,
        cost=prices.cost(judge, new_in, new_out),
        tokens_in_again=into,
        tokens_out_again=out,
        cost_again=prices.cost(judge, into, out),
        items=len(plan.items),
        continues=None,
        perturbed={change: len(items) for change, items in plan.perturbed.items()},
    )
