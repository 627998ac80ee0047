"""Test a judge before it is saved: one call each about up to three items, with the prompt beside the reply.

The calls go through the one door to paid models: the project must be allowed the provider, the worst case of each is
reserved under the project's caps and under `MOST_USD` for the series, and what came is booked. A judge without a limit
on its reply gets `MOST_TOKENS` for the test, so that a worst case is known. A test is never sent twice.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import access, audit
from accounts.models import Project, User
from accounts.refusals import Refused
from annotation.models import Criterion, Item, RubricVersion
from judging import judges, providers, requests
from judging.asking import allowances, budgets
from judging.asking.budgets import Cap, Committed, SentRequests
from judging.asking.client import ProviderAnswer
from judging.asking.paid_requests import PaidRequest
from judging.asking.refused_parts import TOKEN_LIMITS
from judging.models import Call, GenerationPlan, Judge, JudgeRun, JudgeTrial, Verdict
from judging.prompts import CriterionBrief, PromptVariant, render, response_schema
from judging.replies import parse
from judging.requests import Prompt
from judging.single_requests import ask_of_row
from judging.versions import examples

logger = logging.getLogger(__name__)

MOST_ITEMS = 3
MOST_USD = Decimal("0.50")
"""What all calls of one test may cost together."""
MOST_TOKENS = 2_000
"""The limit on a reply, for a judge that sets none."""
PATIENCE = timedelta(minutes=5)
"""How long after the longest time of a call it counts as lost."""


def begin_trials(
    *,
    project: Project,
    provider: str,
    model: str,
    parameters: Mapping[str, Any],
    variant: Mapping[str, Any],
    items: Sequence[Item] = (),
    rubric_version: RubricVersion | None = None,
    study: str = "",
    actor: User | None = None,
) -> UUID:
    """Store one call about each item, which the caller enqueues (`tasks.ask_trials`); returns the key of the series.

    A judge that asks about one criterion in a call is asked about another one for each item. Without items, the call
    is about a built-in specimen. Refused if the project may not use the provider, or a cap can't be kept.
    """
    access.refuse_archived(project)
    if len(items) > MOST_ITEMS:
        raise Refused(_("A test is about at most %d items.") % MOST_ITEMS, code="too_many_items")
    factors = dict(variant)
    if factors.get("examples"):
        factors["examples"] = examples.resolve_examples(project, factors["examples"])
    prompt, sent = judges.variant_of(factors), judges.checked_parameters(parameters)
    judge = Judge(
        project=project, name=model, provider=provider, model=model.strip(), parameters=sent, variant=prompt.factors
    )
    judges.endpoint(judge)
    allowances.allowance(project, provider)
    examples.refuse_locked(judge, Item.objects.filter(pk__in=[item.pk for item in items]))
    if not sent.keys() & set(TOKEN_LIMITS):
        judge.parameters = {**sent, TOKEN_LIMITS[0]: MOST_TOKENS}
    digest = judges.judge_digest(endpoint=provider, model=judge.model, variant=prompt, parameters=sent)
    series, rows = uuid4(), []
    for number, (item, asked) in enumerate(_asked(prompt, items, rubric_version, study)):
        chosen = number % len(asked)
        material = {"item": item.pk if item else None, "study": study, "prompt": chosen}
        rows.append(
            JudgeTrial(
                project=project,
                series=series,
                digest=digest,
                provider=provider,
                model=judge.model,
                parameters=judge.parameters,
                variant=prompt.factors,
                material={**material, "rubric_version": rubric_version.pk if rubric_version else None},
                about=f"{item.external_id} · {item.language}"[:300] if item else "",
                request={"messages": asked[chosen].messages, "schema": asked[chosen].schema},
                created_by=actor,
            )
        )
    with transaction.atomic():
        JudgeTrial.objects.bulk_create(rows)
        first = JudgeTrial.objects.filter(series=series).earliest("pk")
        audit.record(actor=actor, project=project, verb="test judge", subject=first)
    return series


def _asked(
    prompt: PromptVariant, items: Sequence[Item], rubric_version: RubricVersion | None, study: str
) -> list[tuple[Item | None, list[Prompt]]]:
    """Every item with the prompts about it; without items, the specimen with its one."""
    if items and (study or rubric_version):
        if rubric_version and not study:
            examples.refuse_other_rubric(prompt, rubric_version)
        criteria = _criteria({"study": study, "rubric_version": rubric_version and rubric_version.pk})
        return [(item, requests.prompts_about(prompt, criteria, item)) for item in items]
    plain = PromptVariant(**{**_fields(prompt), "examples": (), "own_texts": ()})
    criterion = providers.SPECIMEN_CRITERION
    messages = render(item=providers.SPECIMEN_ITEM, criteria=[criterion], variant=plain)
    return [(None, [Prompt([criterion.name], messages, response_schema([criterion], plain))])]


def _fields(prompt: PromptVariant) -> dict[str, Any]:
    return {name: getattr(prompt, name) for name in PromptVariant.__dataclass_fields__}


def _criteria(material: Mapping[str, Any]) -> list[Criterion]:
    if material["study"]:
        return judges.study_criteria(material["study"])
    return list(Criterion.objects.filter(rubric_version=material["rubric_version"]).order_by("position"))


def carry_out_trials(series: UUID) -> None:
    """Make the calls of a series that nobody has made, one after the other. A failure is stored with its call."""
    for trial in JudgeTrial.objects.filter(series=series, sent_at=None, ended_at=None).select_related("project"):
        try:
            answer = ask_of_row(
                trial, asker=_judge(trial), schema=trial.request["schema"], reserve=partial(_reserve, trial)
            )
            verdicts = _read(trial, answer)
            JudgeTrial.objects.filter(pk=trial.pk, ended_at=None).update(
                verdicts=verdicts,
                is_read=any(row["status"] == Verdict.Status.OK for row in verdicts),
                served_model=answer.served_model[:160],
                seconds=round(answer.latency, 2),
                ended_at=timezone.now(),
            )
        except Refused as refused:
            if refused.code == "taken":
                continue
            lost = JudgeTrial.objects.filter(pk=trial.pk, ended_at=None)
            lost.update(reason=refused.sentence, is_read=False, ended_at=timezone.now())
        except Exception:
            logger.exception("a call of the test %s was not finished", series)
            _end_lost([trial.pk])


def sweep_trials(*, now: datetime | None = None) -> None:
    """End the calls whose worker died, long after their reply was due, and those that no worker has made in a day."""
    now = now or timezone.now()
    waiting = JudgeTrial.objects.filter(ended_at=None).select_related("project")
    sent = waiting.filter(sent_at__lt=now - PATIENCE)
    late = [one.pk for one in sent if one.sent_at and one.sent_at < now - PATIENCE - _longest(one)]
    unsent = waiting.filter(sent_at=None, created_at__lt=now - timedelta(days=1))
    _end_lost([*late, *unsent.values_list("pk", flat=True)])


def _longest(trial: JudgeTrial) -> timedelta:
    """How long a call may take: it waits for the limits of the provider, then for the reply."""
    return 2 * timedelta(seconds=judges.pace(_judge(trial)).timeout)


def _end_lost(keys: Sequence[int]) -> None:
    """End calls that no worker will finish. What was sent and has no bill is booked at its worst case."""
    open_calls = JudgeTrial.objects.filter(pk__in=keys, ended_at=None)
    with transaction.atomic():
        unsent = open_calls.filter(sent_at=None)
        ended: dict[str, Any] = {"is_read": False, "ended_at": timezone.now()}
        unsent.update(reason=_("The worker stopped before it had finished."), **ended)
        open_calls.filter(cost=None, reserved__isnull=False).update(cost=F("reserved"), estimated=True)
        sentence = _("The worker stopped before the reply was stored; it may have been paid for.")
        open_calls.update(reason=sentence, **ended)


def _judge(trial: JudgeTrial) -> Judge:
    """The tested judge, unsaved, for functions that need one."""
    return Judge(project=trial.project, provider=trial.provider, model=trial.model, parameters=trial.parameters)


def _reserve(trial: JudgeTrial, request: PaidRequest) -> None:
    """Reserve the most that a call can cost, and mark it as sent. Refused if a cap does not allow it."""
    with transaction.atomic():
        held = allowances.locked_caps(trial.project, trial.provider, timezone.now())
        if request.worst_case is not None:
            spent = committed_to_trials(JudgeTrial.objects.filter(series=trial.series))
            sentence = _("A test may cost at most USD %s. Set a lower “max_tokens”, or choose fewer items.") % MOST_USD
            held = [Cap(MOST_USD, spent, sentence), *held]
        budgets.refuse_beyond(held, request.worst_case)
        unsent = JudgeTrial.objects.filter(pk=trial.pk, sent_at=None, ended_at=None)
        if not unsent.update(reserved=request.worst_case, sent_at=timezone.now()):
            raise Refused(_("Another worker makes this call."), code="taken")


def _read(trial: JudgeTrial, answer: ProviderAnswer) -> list[dict[str, Any]]:
    """The scores in a reply by criterion, or why there is none."""
    variant = judges.variant_of(trial.variant)
    briefs: list[CriterionBrief] = [providers.SPECIMEN_CRITERION]
    if trial.material["item"] is not None:
        briefs = [
            requests.criterion_brief(criterion, variant.instruction_language) for criterion in _criteria(trial.material)
        ]
        briefs = [briefs[trial.material["prompt"]]] if variant.grouping == "single" else briefs
    else:
        variant = PromptVariant(**{**_fields(variant), "examples": (), "own_texts": ()})
    readings = parse(
        answer.readable,
        criteria=briefs,
        variant=variant,
        finish_reason=answer.finish_reason,
        refusal=answer.refusal,
    )
    return [
        {"criterion": brief.name, "status": str(read.status), "score": read.score, "rationale": read.rationale}
        for brief, read in zip(briefs, readings, strict=True)
    ]


# --- what came of tests -----------------------------------------------------------------------------------------------
def failed_judges(judges_of_project: QuerySet[Judge]) -> QuerySet[Judge]:
    """The judges of which no score was ever read, although they were asked: by a run, or by a test that failed last."""
    scores = Verdict.objects.filter(run__judge=OuterRef("pk"), status=Verdict.Status.OK)
    ended = Call.objects.filter(run__judge=OuterRef("pk"), state__in=[Call.State.SETTLED, Call.State.FAILED])
    tests = JudgeTrial.objects.filter(project=OuterRef("project"), digest=OuterRef("digest"))
    tests_failed = tests.filter(is_read=False).exclude(sent_at=None)
    asked = Q(Exists(ended)) | (Q(Exists(tests_failed)) & ~Q(Exists(tests.filter(is_read=True))))
    return judges_of_project.exclude(provider="").filter(asked).exclude(Exists(scores))


# --- money ------------------------------------------------------------------------------------------------------------
def committed_to_trials(trials: QuerySet[JudgeTrial]) -> Committed:
    """What the calls of tests have cost; one without a cost counts at its worst case. The provider may bill a call that
    failed with a server error: its worst case counts until the project tests a judge of this provider again, or resumes
    a run or plan there, which people do when they have looked at the bill."""
    later = JudgeTrial.objects.filter(project=OuterRef("project"), provider=OuterRef("provider"))
    later = later.filter(pk__gt=OuterRef("pk")).exclude(series=OuterRef("series"))
    since = {"project": OuterRef("project"), "bills_from__gte": OuterRef("sent_at")}
    resumed_runs = JudgeRun.objects.filter(judge__provider=OuterRef("provider"), **since)
    resumed_plans = GenerationPlan.objects.filter(generators__provider=OuterRef("provider"), **since)
    return budgets.committed(
        trials.exclude(sent_at=None),
        is_open=Q(cost=None),
        may_be_billed=~Q(Exists(later)) & ~Q(Exists(resumed_runs)) & ~Q(Exists(resumed_plans)),
        in_flight=Q(cost=None, reserved__gt=0, ended_at=None),
    )


class PaidTrials:
    """Tests of judges, as a kind of paid requests."""

    titles: ClassVar = {"tests": gettext_lazy("Tests of judges")}

    def spent(self, project: int, provider: str, since: Any) -> Committed:
        """What a project's tests at a provider have cost, and what is reserved for them."""
        asked = JudgeTrial.objects.filter(project=project, provider=provider)
        return committed_to_trials(asked if since is None else asked.filter(sent_at__gte=since))

    def stop(self, project: int, *, provider: str, model: str, reason: str) -> None:
        """End the calls that wait to be sent."""
        waiting = JudgeTrial.objects.filter(project=project, provider=provider, model=model, sent_at=None)
        waiting.filter(ended_at=None).update(reason=reason, is_read=False, ended_at=timezone.now())

    def sent(self, project: Project, judge: Judge | None) -> Iterator[SentRequests]:
        """The tests that were sent; those of a judge have its digest."""
        tests = JudgeTrial.objects.filter(project=project).exclude(sent_at=None)
        asked = tests if judge is None else tests.filter(digest=judge.digest)
        yield SentRequests("tests", asked, "sent_at", "created_by")
