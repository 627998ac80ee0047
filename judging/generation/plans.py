"""Generation plans: what is to be written is planned as rows. Their states change by compare-and-set.

The unit is a family: one draw of the parameters, written in every language by every generator; in a simulation, with
every user model. A plan begins with its first families (`EXAMPLES`), so that people see examples before the whole is
paid for. No counter is stored: progress, and whether a plan has finished, are read from the rows.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product, zip_longest
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, F, Q, QuerySet, Sum, TextChoices
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import access, audit, webhooks
from accounts.languages import canonical_language
from accounts.models import Event, Project, User
from accounts.refusals import Refused
from annotation import bulk
from annotation.models import Dataset, Item, RubricVersion
from annotation.selections import new_seed
from judging import judges
from judging.asking import allowances, endpoints, prices
from judging.asking.refused_parts import TOKEN_LIMITS
from judging.generation.drawing import draw_families
from judging.generation.sources import chosen_source_language, draw_sources
from judging.generation.specs import Spec, in_language
from judging.generation.utterance_judge import UtteranceJudge
from judging.models import GenerationAttempt, GenerationFamily, GenerationPlan, Judge, PlanGenerator, Realisation

EXAMPLES = 3
"""How many families are written first."""
MOST_FAMILIES = 10_000
MOST_GENERATORS = 30
MOST_LANGUAGES = 60
MOST_TIMES = 20  # repeats of a realisation
MOST_REALISATIONS = 200_000
LONGEST_REPLY = 4_000  # tokens, for a generator whose parameters say nothing of it
MOST_REPLY_TOKENS = 1_000_000  # what parameters may allow
MOST_NAMED = 120
OPEN_STATES = (Realisation.State.WAITING, Realisation.State.LEASED)
LIVE_PLANS = (GenerationPlan.State.RUNNING, GenerationPlan.State.PAUSED)


# --- making a plan ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorChoice:
    """A model that is to write: the name that its texts are stored under is the model's, unless it is given."""

    provider: str
    model: str
    name: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemFamily:
    """A family that is a prompt of a dataset, instead of drawn: written in the language of the prompt only.
    ``scenario``: of the item. ``parameters``: what the spec takes from it, and its attributes."""

    scenario: str
    language: str
    parameters: Mapping[str, Any]


def create_plan(
    *,
    project: Project,
    name: str,
    spec: Spec,
    languages: Sequence[str],
    families: int,
    generators: Sequence[GeneratorChoice],
    repeats: int = 1,
    seed: int | None = None,
    budget: Decimal | None = None,
    source: Dataset | None = None,
    source_language: str = "",
    answers_to: Dataset | None = None,
    prompts: Sequence[ItemFamily] = (),
    user_models: Sequence[GeneratorChoice] = (),
    utterance_judge: Judge | None = None,
    utterance_rubric: RubricVersion | None = None,
    actor: User | None = None,
) -> GenerationPlan:
    """Plan every text: nothing is sent. Refused, with the field, if the plan could not be started.

    For translations ``source`` is the dataset, and ``families`` the most items of it: a sample if it has more. For
    answers to the ``prompts`` of a dataset see `item_plans.plan_answers`. Conversations need ``user_models``, which
    talk with every generator; a judge of every user turn comes with its rubric.
    """
    access.refuse_archived(project)
    name = name.strip()
    tags = plan_languages(languages)
    seed = new_seed() if seed is None else seed
    items, source_language = _sources(project, spec, source, source_language, tags, families, seed)
    families = len(items) or families
    if bool(spec.sources) != bool(prompts):
        raise _plan_refusal("spec", _("This spec needs the prompts of a dataset. Begin on the page of the dataset."))
    _refuse_roles(project, spec, user_models, utterance_judge, utterance_rubric)
    chosen = [plan_generator(project, position, choice, spec=spec) for position, choice in enumerate(generators)]
    simulators = [
        plan_generator(project, position, choice, spec=spec, role=PlanGenerator.Role.USER_MODEL)
        for position, choice in enumerate(user_models, len(chosen))
    ]
    judging = [judge_row(utterance_judge, len(chosen) + len(simulators))] if utterance_judge else []
    asked = [*chosen, *simulators, *judging]
    _refuse_size(name, tags[:1] if prompts else tags, families, chosen, simulators, repeats)
    for generator in asked:
        refuse_plan_cap(project, generator, budget)
    _refuse_missing_texts(spec, tags)
    drawn = draw_families(spec, seed=seed, numbers=range(1, families + 1))  # before the transaction: it may take long
    try:
        with transaction.atomic():
            plan = GenerationPlan.objects.create(
                project=project,
                name=name,
                spec=spec.stored,
                spec_digest=spec.digest,
                languages=tags,
                source=source,
                source_language=source_language,
                answers_to=answers_to,
                families_planned=families,
                repeats=repeats,
                seed=seed,
                budget=budget,
                utterance_judge=utterance_judge,
                utterance_rubric=utterance_rubric,
                created_by=actor,
            )
            for generator in asked:
                generator.plan = plan
            PlanGenerator.objects.bulk_create(asked)
            _plan_rows(plan, _families(plan, drawn, items, prompts), chosen, simulators)
            audit.record(actor=actor, project=project, verb="create generation plan", subject=plan)
    except IntegrityError:
        if not GenerationPlan.objects.filter(project=project, name=name).exists():
            raise
        sentence = _("Another plan of this project is called “%(name)s”. Choose another name.") % {"name": name}
        raise Refused(sentence, code="name_taken", fields={"name": sentence}) from None
    return plan


def _sources(
    project: Project, spec: Spec, source: Dataset | None, language: str, targets: list[str], most: int, seed: int
) -> tuple[list[Item], str]:
    """The items to translate and their language; nothing for other kinds of texts."""
    if spec.kind != "translation":
        if source is not None:
            raise _plan_refusal("source", _("Only translations have a source."))
        return [], ""
    if source is None:
        raise _plan_refusal("source", _("Choose the dataset to translate."))
    language = chosen_source_language(project, source, language, targets)
    return draw_sources(source, language, most=min(most, MOST_FAMILIES), seed=seed), language


ROW_COLUMNS = (
    *("id", "plan_id", "family_id", "language", "generator_id", "simulator_id", "repeat", "opening_id", "is_opening"),
    *("step", "state", "tries", "discarded", "problems", "reason", "turns", "fields", "decision", "decision_reason"),
)


def _families(
    plan: GenerationPlan,
    drawn: Sequence[Mapping[str, str | int]],
    sources: Sequence[Item],
    prompts: Sequence[ItemFamily],
) -> list[GenerationFamily]:
    """The families with their drawn parameters, with the items that are translated, or with the prompts."""
    families = [
        GenerationFamily(plan=plan, number=number, parameters=parameters, source=source)
        for number, (parameters, source) in enumerate(zip_longest(drawn, sources), 1)
    ]
    for family, prompt in zip(families, prompts, strict=False):
        family.scenario, family.language = prompt.scenario, prompt.language
        family.parameters = {**prompt.parameters, **family.parameters}
    return families


def _plan_rows(
    plan: GenerationPlan,
    families: Sequence[GenerationFamily],
    generators: Sequence[PlanGenerator],
    simulators: Sequence[PlanGenerator],
) -> None:
    """The families, and a waiting row for each text; in a simulation also for each opening, which the conversations of
    its user model with every generator wait for."""
    GenerationFamily.objects.bulk_create(families, batch_size=1_000)
    repeats = range(1, plan.repeats + 1)
    places = [
        (family.pk, language)
        for family in families
        for language in ([family.language] if family.language else plan.languages)
    ]
    waiting = (Realisation.State.WAITING.value, 0, 0, "[]", "", "[]", "{}", "", "")
    utterance, opening = Realisation.Step.UTTERANCE.value, Realisation.Step.OPENING.value

    def insert(rows: Sequence[tuple[Any, ...]]) -> list[tuple[int, tuple[Any, ...]]]:
        keyed = list(zip(bulk.reserve_keys(Realisation, len(rows)), rows, strict=True))
        bulk.insert(Realisation, ROW_COLUMNS, ((pk, plan.pk, *row, *waiting) for pk, row in keyed))
        return keyed

    if not simulators:
        texts = product(places, generators, repeats)
        insert([(*place, writer.pk, None, repeat, None, False, "") for place, writer, repeat in texts])
        return
    shared = product(places, simulators, repeats)
    openings = insert([(*place, user.pk, None, repeat, None, True, utterance) for place, user, repeat in shared])
    insert(
        [
            (family, language, writer.pk, user, repeat, pk, False, opening)
            for pk, (family, language, user, _none, repeat, *_rest) in openings
            for writer in generators
        ]
    )


def plan_languages(languages: Sequence[str]) -> list[str]:
    """The languages in one form, once each, in the order that they were given in."""
    tags: list[str] = []
    for language in languages:
        try:
            tag = canonical_language(language)
        except ValueError as error:
            raise _plan_refusal("languages", str(error)) from None
        if tag not in tags:
            tags.append(tag)
    if not 1 <= len(tags) <= MOST_LANGUAGES:
        raise _plan_refusal("languages", _("Choose from 1 to %d languages.") % MOST_LANGUAGES)
    return tags


def _refuse_missing_texts(spec: Spec, languages: Sequence[str]) -> None:
    """Refuse a language for which the spec has no template, or no text of a field that it gives."""
    given = {f"fields.{one.name}": one.texts for one in spec.fields if one.texts}
    for place, texts in {"templates": spec.templates, **given}.items():
        if missing := [language for language in languages if not in_language(texts, language)]:
            named = {"place": place, "languages": ", ".join(missing)}
            raise _plan_refusal("languages", _("The spec has no text for %(languages)s: %(place)s.") % named)


def _refuse_roles(
    project: Project,
    spec: Spec,
    user_models: Sequence[GeneratorChoice],
    judge: Judge | None,
    rubric_version: RubricVersion | None,
) -> None:
    """Refuse user models and an utterance judge where there are no conversations, and conversations without a user."""
    if spec.kind != "conversation":
        if user_models or judge or rubric_version:
            raise _plan_refusal("user_models", _("Only conversations have user models and an utterance judge."))
        return
    if not 1 <= len(user_models) <= MOST_GENERATORS:
        raise _plan_refusal("user_models", _("Choose from 1 to %d user models.") % MOST_GENERATORS)
    if (judge is None) != (rubric_version is None):
        raise _plan_refusal(
            "utterance_judge", _("An utterance judge needs a published rubric, and the rubric a judge.")
        )
    if judge is not None and rubric_version is not None:
        if judge.project_id != project.pk or rubric_version.rubric.project_id != project.pk:
            raise _plan_refusal("utterance_judge", _("The judge and its rubric must be of this project."))
        UtteranceJudge(judge, rubric_version)


def plan_generator(
    project: Project,
    position: int,
    choice: GeneratorChoice,
    *,
    spec: Spec,
    role: str = PlanGenerator.Role.GENERATOR,
) -> PlanGenerator:
    """The unsaved row of a generator or a user model; it has a limit on the tokens of a reply, so that a budget can be
    kept: that of its parameters, or else the largest that the spec gives for its steps, if it does for all."""
    field_name = "generators" if role == PlanGenerator.Role.GENERATOR else "user_models"
    model = choice.model.strip()
    if not model or len(model) > 160:
        raise _plan_refusal(field_name, _("Name the model of each generator."))
    parameters = judges.checked_parameters(choice.parameters)
    if endpoints.find_provider(choice.provider) is None:
        sentence = _("The provider “%(name)s” is not declared (declared: %(declared)s).")
        sentence %= {"name": choice.provider, "declared": ", ".join(endpoints.all_providers()) or _("none")}
        raise Refused(sentence, code="unknown_provider", fields={field_name: sentence})
    allowances.allowance(project, choice.provider)
    if not any(name in parameters for name in TOKEN_LIMITS):
        parameters = {**parameters, "max_tokens": _usual_limit(spec, role)}
    refuse_unlimited(parameters, field_name)
    for step in _sampled_steps(role) if spec.conversation else ():
        refuse_unlimited(judges.checked_parameters(sampled_parameters(spec, step, parameters)), "spec")
    name = unicodedata.normalize("NFC", choice.name.strip() or model)  # as imports compare names
    return PlanGenerator(
        role=role,
        position=position,
        name=name[:MOST_NAMED],
        provider=choice.provider,
        model=model,
        parameters=parameters,
    )


def judge_row(judge: Judge, position: int) -> PlanGenerator:
    """The unsaved row of an utterance judge, whose requests are those of the judge."""
    return PlanGenerator(
        role=PlanGenerator.Role.UTTERANCE_JUDGE,
        position=position,
        name=judge.name[:MOST_NAMED],
        provider=judge.provider,
        model=judge.model,
        parameters=judge.parameters,
    )


def _usual_limit(spec: Spec, role: str) -> int:
    """The most tokens of a reply where the parameters say nothing of it."""
    if spec.conversation is None:
        return LONGEST_REPLY
    steps = _sampled_steps(role)
    limits = [prices.token_limit(spec.conversation.sampling.get(step, {})) for step in steps]
    known = [limit for limit in limits if limit]
    return max(known) if len(known) == len(steps) else LONGEST_REPLY


def _sampled_steps(role: str) -> Sequence[str]:
    return ("answer",) if role == PlanGenerator.Role.GENERATOR else ("opening", "utterance")


def sampled_parameters(spec: Spec, step: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What the requests for a step of a conversation are sent with: what the spec gives for it, and over that the
    parameters of the model."""
    sampling = spec.simulation.sampling.get(step, {})
    return {**{name: judges.as_whole(value) for name, value in sampling.items()}, **parameters}


def refuse_unlimited(parameters: Mapping[str, Any], field_name: str = "generators") -> None:
    """Refuse parameters by which no limit on the tokens of a reply is known: nothing could be reserved for it."""
    if not 1 <= (prices.token_limit(parameters) or 0) <= MOST_REPLY_TOKENS:
        names = " · ".join(name for name in TOKEN_LIMITS if name in parameters) or TOKEN_LIMITS[0]
        sentence = _("Write a whole number from %(least)s to %(most)s.") % {"least": 1, "most": MOST_REPLY_TOKENS}
        raise _plan_refusal(field_name, f"{names}: {sentence}")


def _refuse_size(
    name: str,
    languages: Sequence[str],
    families: int,
    generators: Sequence[PlanGenerator],
    simulators: Sequence[PlanGenerator],
    repeats: int,
) -> None:
    if not 1 <= len(name) <= MOST_NAMED:
        raise _plan_refusal("name", _("A name has from 1 to %d characters.") % MOST_NAMED)
    if not any(character.isprintable() and not character.isspace() for character in name):
        raise _plan_refusal("name", _("Give the plan a name that can be seen."))
    if not 1 <= len(generators) <= MOST_GENERATORS:
        raise _plan_refusal("generators", _("Choose from 1 to %d generators.") % MOST_GENERATORS)
    # The key of a text ends with its generator, and with its repeat from the second on (`storing.item_key`).
    ends = ("", *(f"/{repeat}" for repeat in range(2, 1 if simulators else min(repeats, MOST_TIMES) + 1)))
    for field_name, models in (("generators", generators), ("user_models", simulators)):
        names = Counter(f"{generator.name}{end}" for generator in models for end in ends)
        if twice := [called for called, times in names.items() if times > 1]:
            sentence = _("Two generators are called “%s”. Give one of them another name.") % twice[0]
            raise _plan_refusal(field_name, sentence)
    if not 1 <= families <= MOST_FAMILIES:
        raise _plan_refusal("families", _("A plan has from 1 to %d families.") % MOST_FAMILIES)
    if not 1 <= repeats <= MOST_TIMES:
        raise _plan_refusal("repeats", _("Repeats must be from 1 to %d.") % MOST_TIMES)
    texts = families * len(languages) * len(generators) * max(1, len(simulators)) * repeats
    if texts > MOST_REALISATIONS:
        sentence = _("This plan has %(texts)d texts, and at most %(most)d are possible. Make several plans.")
        raise _plan_refusal("families", sentence % {"texts": texts, "most": MOST_REALISATIONS})


def refuse_plan_cap(project: Project, generator: PlanGenerator, budget: Decimal | None) -> None:
    """Refuse a budget, or a cap of the project, that can't be guaranteed for this generator."""
    if budget is not None and not 0 <= budget <= allowances.LARGEST_CAP:
        raise _plan_refusal("budget", _("A budget must be from 0 to %s USD.") % allowances.LARGEST_CAP)
    has_price = prices.price(generator, run=generator) is not None
    allowed = allowances.allowance(project, generator.provider)
    is_capped = allowed is not None and (allowed.cap_total is not None or allowed.cap_per_day is not None)
    if budget is None and not is_capped:
        return
    if has_price:
        refuse_unlimited(generator.parameters)
        return
    named = {"model": generator.model, "provider": generator.provider}
    sentence = _("No price is declared for %(model)s at %(provider)s, so a budget can't be guaranteed.") % named
    remedy = _("Ask the operator to declare its price.")
    raise Refused(f"{sentence} {remedy}", code="budget", fields={"budget": sentence})


def _plan_refusal(name: str, sentence: str) -> Refused:
    return Refused(sentence, code="invalid", fields={name: sentence})


# --- changing the state of a plan -------------------------------------------------------------------------------------


def start_examples(*, plan: GenerationPlan, actor: User | None = None) -> bool:
    """Have the first families written, before the whole is started. False if the plan is no draft any more."""
    return _start(plan, (GenerationPlan.State.DRAFT,), "start examples", actor, only_examples=True)


def start_plan(*, plan: GenerationPlan, actor: User | None = None) -> bool:
    """Have all families written; examples that are there already stay. False if that was started, or is cancelled."""
    begun = {"only_examples": False}
    if plan.only_examples:
        states = (GenerationPlan.State.DRAFT, *LIVE_PLANS)
        return _start(plan, states, "start generation plan", actor, **begun)
    return False


def _start(plan: GenerationPlan, before: Sequence[str], verb: str, actor: User | None, *, only_examples: bool) -> bool:
    access.refuse_archived(plan.project)
    generators = list(plan.generators.all())
    for generator in generators:
        refuse_plan_cap(plan.project, generator, plan.budget)
    now = timezone.now()
    with transaction.atomic():
        stored = GenerationPlan.objects.filter(pk=plan.pk, state__in=before, only_examples=True)
        changes = {"state": GenerationPlan.State.RUNNING, "reason": "", "bills_from": now}
        done = stored.update(**changes, only_examples=only_examples, started_at=plan.started_at or now)
        if done:
            for generator in generators:
                if not generator.prices:
                    generator.prices = endpoints.prices_now(generator.provider)
                    generator.save(update_fields=["prices"])
            audit.record(actor=actor, project=plan.project, verb=verb, subject=plan, fields=["state"])
    plan.refresh_from_db()
    return bool(done)


def pause_plan(*, plan: GenerationPlan, actor: User | None = None, reason: str = "") -> bool:
    """Send no more requests; replies to those in flight are stored. False if the plan was not running."""
    reason = reason or _("Paused by hand.")
    return _change_plan(plan, (GenerationPlan.State.RUNNING,), GenerationPlan.State.PAUSED, actor, reason)


def resume_plan(*, plan: GenerationPlan, actor: User | None = None) -> bool:
    """Resume a paused plan. Refused if nothing may be spent or no budget can hold."""
    if plan.state == GenerationPlan.State.PAUSED:
        access.refuse_archived(plan.project)
        for generator in plan.generators.all():
            refuse_plan_cap(plan.project, generator, plan.budget)
    return _change_plan(plan, (GenerationPlan.State.PAUSED,), GenerationPlan.State.RUNNING, actor, "")


def cancel_plan(*, plan: GenerationPlan, actor: User | None = None) -> bool:
    """End a plan permanently; what is written is kept."""
    live = (GenerationPlan.State.DRAFT, *LIVE_PLANS)
    return _change_plan(plan, live, GenerationPlan.State.CANCELLED, actor, _("Cancelled."))


def set_plan_budget(*, plan: GenerationPlan, budget: Decimal | None, actor: User | None = None) -> None:
    """Change or remove the budget of a plan."""
    for generator in plan.generators.all():
        refuse_plan_cap(plan.project, generator, budget)
    with transaction.atomic():
        GenerationPlan.objects.filter(pk=plan.pk).update(budget=budget)
        audit.record(actor=actor, project=plan.project, verb="set budget of plan", subject=plan, fields=["budget"])
    plan.refresh_from_db(fields=["budget"])


def ask_again(*, plan: GenerationPlan, actor: User | None = None) -> int:
    """Ask again for the texts that ended without one, unless the plan was cancelled; every new request is paid. A
    conversation goes on at its turn.

    Returns how many; refused if there are none.
    """
    access.refuse_archived(plan.project)
    fresh: dict[str, Any] = {"state": Realisation.State.WAITING, "reason": "", "not_before": None}
    fresh |= {"tries": 0, "losses": 0, "discarded": 0, "problems": [], "refused_tries": 0, "ended": ""}
    with transaction.atomic():
        live = GenerationPlan.objects.select_for_update(no_key=True).filter(pk=plan.pk, state__in=LIVE_PLANS)
        ended = Realisation.objects.filter(plan=plan, state=Realisation.State.GIVEN_UP)
        count = ended.update(**fresh) if live.exists() else 0
        # Only now: a worker may have given up an opening, with its conversations, until just before.
        waiting = Realisation.objects.filter(plan=plan, state=Realisation.State.WAITING, step=Realisation.Step.OPENING)
        openings = Realisation.everything.filter(pk__in=waiting.values("opening"), state=Realisation.State.GIVEN_UP)
        reopened = openings.update(**fresh) if live.exists() else 0
        if not (count or reopened):
            raise Refused(_("No text of this plan can be asked for again."), code="nothing_failed")
        GenerationPlan.objects.filter(pk=plan.pk).update(bills_from=timezone.now())
        audit.record(actor=actor, project=plan.project, verb="ask for texts again", subject=plan)
    return count


def _change_plan(plan: GenerationPlan, before: Sequence[str], after: str, actor: User | None, reason: str) -> bool:
    with transaction.atomic():
        changes: dict[str, Any] = {"state": after, "reason": reason[:400]}
        if after == GenerationPlan.State.RUNNING:
            changes["bills_from"] = timezone.now()  # what was billed before says nothing of what is billed now
        done = GenerationPlan.objects.filter(pk=plan.pk, state__in=before).update(**changes)
        if done:
            verb = f"generation plan {after}"
            audit.record(actor=actor, project=plan.project, verb=verb, subject=plan, fields=["state"])
            if after == GenerationPlan.State.PAUSED:
                _announce_plan(plan, Event.PLAN_PAUSED, PlanPhase.PAUSED)
    plan.refresh_from_db(fields=["state", "reason", "bills_from"])
    return bool(done)


def announce_plan_end(keys: QuerySet[Any, Any]) -> None:
    """Notify the project's webhooks once nothing is left to ask of a plan, or of its examples. Call it after settling,
    in the same transaction.

    The plan is locked first: if two workers settle the last texts at once, the second sees the first’s changes.
    """
    plan = GenerationPlan.objects.filter(pk__in=keys, state__in=LIVE_PLANS, project__webhooks__off="").first()
    if plan is None:
        return
    plan = GenerationPlan.objects.select_for_update(no_key=True).get(pk=plan.pk)
    if (phase := plan_phase(plan)) in (PlanPhase.EXAMPLES, PlanPhase.FINISHED):
        _announce_plan(plan, Event.PLAN, phase)


def _announce_plan(plan: GenerationPlan, event: Event, phase: PlanPhase) -> None:
    rows = Realisation.objects.filter(plan=plan)
    counted = rows.aggregate(
        texts=Count("pk"),
        written=Count("pk", filter=Q(state=Realisation.State.WRITTEN)),
        given_up=Count("pk", filter=Q(state=Realisation.State.GIVEN_UP)),
    )
    payload = {"plan": plan.pk, "phase": phase.value, **counted}
    webhooks.announce(project=plan.project_id, event=event, subject=plan.pk, payload=payload)


def pause_plans(project: Project, reason: str) -> None:
    """Pause all running plans of a project, because it is archived or deleted."""
    for plan in GenerationPlan.objects.filter(project=project, state=GenerationPlan.State.RUNNING):
        pause_plan(plan=plan, reason=reason)


# --- progress ---------------------------------------------------------------------------------------------------------


class PlanPhase(TextChoices):
    """The state of a plan as a page shows it: finished when nothing is left to ask, unless it was cancelled."""

    DRAFT = "draft", gettext_lazy("Draft")
    RUNNING = "running", gettext_lazy("Running")
    PAUSED = "paused", gettext_lazy("Paused")
    EXAMPLES = "examples", gettext_lazy("Examples are written")
    FINISHED = "finished", gettext_lazy("Finished")
    CANCELLED = "cancelled", gettext_lazy("Cancelled")


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyProgress:
    """One family: how many of its texts are in each state. It is whole when all are written and none is set aside, as
    it is stored."""

    number: int
    planned: int
    written: int
    given_up: int
    in_flight: int
    set_aside: int = 0

    @property
    def is_whole(self) -> bool:
        return self.written == self.planned and not self.set_aside

    @property
    def is_incomplete(self) -> bool:
        """Whether it can't become whole: a text was given up or set aside."""
        return self.given_up > 0 or self.set_aside > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanProgress:
    """How far a plan is, from its rows: two queries for texts, one for requests and money.

    ``estimated`` is the part of ``cost`` that is the worst case of requests whose cost is unknown; ``reserved`` is what
    requests in flight may cost, beside ``cost``. ``problems``: by code, how many replies were discarded for it, the
    most frequent first.
    """

    phase: PlanPhase
    families: Sequence[FamilyProgress]
    planned: int
    written: int
    given_up: int
    in_flight: int
    waiting: int
    attempts: int = 0
    discarded: int = 0
    lost: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: Decimal | None = None
    estimated: Decimal | None = None
    reserved: Decimal | None = None
    problems: Mapping[str, int] = field(default_factory=dict)

    @property
    def done(self) -> int:
        """Texts that are written or given up."""
        return self.written + self.given_up

    @property
    def percent(self) -> int:
        """Whole percent done, 100 only when nothing is left."""
        return 100 if self.done == self.planned else 100 * self.done // max(1, self.planned)

    @property
    def whole(self) -> int:
        """Families of which every text is written and kept."""
        return sum(family.is_whole for family in self.families)


def open_realisations(plan: GenerationPlan) -> QuerySet[Realisation]:
    """The texts that are still to be written: of the first families only, until the whole is started."""
    left = Realisation.objects.filter(plan=plan, state__in=OPEN_STATES)
    return left.filter(family__number__lte=EXAMPLES) if plan.only_examples else left


def has_finished(plan: GenerationPlan) -> bool:
    """Whether nothing is left to ask, or may be asked any more."""
    return plan_phase(plan) in (PlanPhase.EXAMPLES, PlanPhase.FINISHED, PlanPhase.CANCELLED)


def plan_phase(plan: GenerationPlan, *, is_open: bool | None = None) -> PlanPhase:
    """The phase of a plan; ``is_open``: whether texts are left to be written, if that is known."""
    live = plan.state in LIVE_PLANS
    if live and not (open_realisations(plan).exists() if is_open is None else is_open):
        return PlanPhase.EXAMPLES if plan.only_examples and plan.families_planned > EXAMPLES else PlanPhase.FINISHED
    return PlanPhase(plan.state)


def plan_progress(plan: GenerationPlan) -> PlanProgress:
    """The progress of a plan, with a place per family."""
    of_state: dict[str, Any] = {state: Count("pk", filter=Q(state=state)) for state in Realisation.State.values}
    rows = Realisation.objects.filter(plan=plan).order_by("family__number").values("family__number")
    set_aside = Count("pk", filter=Q(decision=Realisation.Decision.SET_ASIDE))
    counted: list[Any] = list(rows.annotate(**of_state, planned=Count("pk"), set_aside=set_aside))
    families = [
        FamilyProgress(
            number=row["family__number"],
            planned=row["planned"],
            written=row["written"],
            given_up=row["given_up"],
            in_flight=row["leased"],
            set_aside=row["set_aside"],
        )
        for row in counted
    ]
    asked = [row for row in counted if not plan.only_examples or row["family__number"] <= EXAMPLES]
    total = {state: sum(row[state] for row in counted) for state in Realisation.State.values}
    attempts = GenerationAttempt.objects.filter(realisation__plan=plan)
    sums = attempts.aggregate(
        attempts=Count("pk", filter=~Q(outcome=GenerationAttempt.Outcome.PENDING)),
        discarded=Count("pk", filter=~Q(problems=[])),
        lost=Count("pk", filter=Q(outcome=GenerationAttempt.Outcome.LOST)),
        tokens_in=Sum("tokens_in"),
        tokens_out=Sum("tokens_out"),
        estimated=Sum("cost", filter=Q(estimated=True)),
        cost=Sum("cost"),
        reserved=Sum("reserved", filter=Q(outcome__in=GenerationAttempt.OPEN)),
    )
    codes = Counter(
        problem["code"]
        for problems in attempts.exclude(problems=[]).values_list("problems", flat=True)
        for problem in problems
    )
    return PlanProgress(
        phase=plan_phase(plan, is_open=any(row["waiting"] or row["leased"] for row in asked)),
        families=families,
        planned=sum(row["planned"] for row in counted),
        written=total["written"],
        given_up=total["given_up"],
        in_flight=total["leased"] + _openings_in_flight(plan),
        waiting=total["waiting"],
        **{**sums, "tokens_in": sums["tokens_in"] or 0, "tokens_out": sums["tokens_out"] or 0},
        problems=dict(codes.most_common()),
    )


def _openings_in_flight(plan: GenerationPlan) -> int:
    openings = Realisation.everything.filter(plan=plan, is_opening=True, state=Realisation.State.LEASED)
    return openings.count() if plan.is_simulation else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CellProgress:
    """The texts of one language by one generator: how many are planned, written, given up, and replies discarded.

    A discarded reply for a first turn counts for each generator whose conversations begin with it.
    """

    language: str
    generator: str
    planned: int
    written: int
    given_up: int
    discarded: int


def progress_by_cell(plan: GenerationPlan) -> list[CellProgress]:
    """The progress of every language and generator, in the order of the plan; one query."""
    rows = Realisation.objects.filter(plan=plan).order_by().values("language", "generator__name", "generator__position")
    counted = rows.annotate(
        planned=Count("pk"),
        written=Count("pk", filter=Q(state=Realisation.State.WRITTEN)),
        given_up=Count("pk", filter=Q(state=Realisation.State.GIVEN_UP)),
        broken=Sum("discarded") + Coalesce(Sum("opening__discarded"), 0),
    )
    places = {language: place for place, language in enumerate(plan.languages)}
    ordered = sorted(counted, key=lambda row: (places[row["language"]], row["generator__position"]))
    return [
        CellProgress(
            language=row["language"],
            generator=row["generator__name"],
            planned=row["planned"],
            written=row["written"],
            given_up=row["given_up"],
            discarded=row["broken"],
        )
        for row in ordered
    ]


def plan_revision(plan: GenerationPlan) -> str:
    """A text that changes whenever a request for a text of the plan begins or ends, a text is decided on, or the plan
    changes state or its budget."""
    counts = Realisation.everything.filter(plan=plan).aggregate(
        done=Count("pk", filter=~Q(state__in=OPEN_STATES)),
        flight=Count("pk", filter=Q(state=Realisation.State.LEASED)),
        decided=Count("pk", filter=~Q(decision="")),
        ended=Sum(F("discarded") + F("tries") + F("losses") + F("turn")),
    )
    return ":".join(map(str, (plan.state, plan.only_examples, plan.budget, *counts.values())))


def counts_of_plans(plans_shown: Sequence[GenerationPlan]) -> dict[int, dict[str, Any]]:
    """By plan, how many texts are planned, written, given up, and open now; one query."""
    asked = Q(plan__only_examples=False) | Q(family__number__lte=EXAMPLES)
    rows = Realisation.objects.filter(plan__in=plans_shown).order_by().values("plan")
    counted = rows.annotate(
        planned=Count("pk"),
        written=Count("pk", filter=Q(state=Realisation.State.WRITTEN)),
        given_up=Count("pk", filter=Q(state=Realisation.State.GIVEN_UP)),
        open=Count("pk", filter=Q(state__in=OPEN_STATES) & asked),
    )
    return {row["plan"]: dict(row) for row in counted}
