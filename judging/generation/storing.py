"""Written texts become a dataset: an item for each, with the drawn parameters of its family as attributes.

The family is the scenario of its items, so that they are parallel across languages and generators. A family is whole if
every text of it is written and none was set aside: whole families alone keep languages and generators balanced.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts import access, audit, jobs
from accounts.jobs import JobKind
from accounts.models import Job, User
from accounts.refusals import Refused
from annotation import bulk
from annotation.imports import storage
from annotation.models import Dataset, Item
from annotation.readers import ItemRow
from judging.asking import endpoints
from judging.generation.conversations import set_aside_code
from judging.generation.specs import Spec, parse_spec
from judging.models import GenerationFamily, GenerationPlan, PlanDataset, Realisation

LONGEST_NAME = 200
LONGEST_KEY = 200
LONGEST_SCENARIO = 130  # characters of it in the key of a conversation or of a judged turn: the rest is at most 70
MOST_IN_REQUEST = 5_000
"""Texts that a web request stores; a worker stores more."""
CHUNK = 2_000  # texts that are in memory at a time


def written_texts(plan: GenerationPlan) -> tuple[list[tuple[int, int, bool]], set[int]]:
    """The keys of all written texts, each with that of its family and whether it is usable, which is not set aside; and
    the families of which every text is. All of it from one statement, because people decide meanwhile."""
    written = plan.realisations.filter(state=Realisation.State.WRITTEN).order_by("pk")
    rows = written.values_list("pk", "family", "decision")
    texts = [(text, family, decision != Realisation.Decision.SET_ASIDE) for text, family, decision in rows]
    in_languages = 1 if plan.answers_to_id else len(plan.languages)
    in_a_family = in_languages * plan.writers.count() * max(1, plan.user_models.count()) * plan.repeats
    counts = Counter(family for _text, family, is_usable in texts if is_usable)
    return texts, {family for family, count in counts.items() if count == in_a_family}


def begin_text_storing(
    *,
    plan: GenerationPlan,
    name: str,
    only: str = PlanDataset.Only.WHOLE,
    actor: User | None = None,
    with_natives: bool = False,
) -> Dataset | None:
    """Store a dataset as `store_dataset` does. None if it has many texts: then a job of the plan stores it, and the
    caller enqueues it."""
    asked: dict[str, Any] = {"name": name.strip(), "only": only, "with_natives": with_natives}
    with transaction.atomic():
        locked = GenerationPlan.objects.select_for_update(no_key=True, of=("self",)).get(pk=plan.pk)
        keys, _whole = _refused_or_kept(plan, **asked)
        if len(keys) <= MOST_IN_REQUEST:
            return store_dataset(plan=plan, actor=actor, **asked)
        if locked.job is not None and locked.job.is_open:
            raise Refused(_("A worker is storing texts of this plan already."), code="wrong_state")
        GenerationPlan.objects.filter(pk=plan.pk).update(storing=asked)
        jobs.begin(
            kind=Job.Kind.TEXTS, subject=plan, project=plan.project, owner=actor, total=len(keys), unit=Job.Unit.ROWS,
            delete_former=True,
        )  # fmt: skip
    return None


def carry_out_storing(plan_pk: int) -> Dataset | None:
    """What a worker does: store the dataset that a job asks for. The job ends in the transaction that stores it."""
    plan = GenerationPlan.objects.select_related("project", "source").filter(pk=plan_pk).first()
    if plan is None or (job := jobs.take_job(plan, Job.Kind.TEXTS)) is None:
        return None
    try:
        with jobs.JobHeartbeat(job) as heartbeat, transaction.atomic():
            dataset = store_dataset(
                plan=plan,
                actor=job.owner,
                staged=lambda done: heartbeat.tell(done, job.total),
                **(plan.storing or {"name": ""}),
            )
            if jobs.finish_job(job, done=job.total):
                return dataset
            transaction.set_rollback(True)
    except Refused as refused:
        jobs.fail(job, refused.sentence)
    return None


KIND = JobKind(
    model=GenerationPlan,
    task=lambda _plan: "judging.tasks.store_texts",
    fail=lambda _plan, _sentence: True,
    title=lambda plan: str((plan.storing or {}).get("name") or plan),
    address=lambda plan: reverse("generation_plan", args=[plan.project.slug, plan.pk]),
    related=("project",),
)


def store_dataset(
    *,
    plan: GenerationPlan,
    name: str,
    only: str = PlanDataset.Only.WHOLE,
    actor: User | None = None,
    with_natives: bool = False,
    staged: Callable[[int], None] | None = None,
) -> Dataset:
    """Store what is written, and not set aside, as a dataset: of ``whole`` families only, or ``all`` of it.

    ``every``: also what was set aside, with the reason as the attribute `set_aside`, so that figures can be read with
    and without it.
    ``with_natives``: beside translations, copies of the items of their source dataset (`_natives`).

    One transaction: the dataset, and which item each text became. Refused if the project has a dataset of this name, or
    nothing can be stored. ``staged`` is called with the number of items that are stored so far.
    """
    name = name.strip()
    with transaction.atomic():
        GenerationPlan.objects.select_for_update(no_key=True).get(pk=plan.pk)
        keys, whole = _refused_or_kept(plan, name=name, only=only, with_natives=with_natives)
        providers = set(plan.generators.values_list("provider", flat=True))
        declared = [endpoints.find_provider(provider) for provider in providers]
        origin = plan.source or plan.answers_to
        dataset = storage.store(
            project=plan.project,
            name=name,
            items=chain(_items(plan, keys, whole), _natives(plan, plan.source) if with_natives and plan.source else ()),
            actor=actor,
            staged=staged,
            simulated=any(provider is not None and provider.simulated for provider in declared)
            or (plan.source is not None and plan.source.simulated),
            layout=origin.layout if origin else None,
            licence=origin.licence if origin else "",
            derived_from=plan.source,
        )
        # The first items are in the order of the texts.
        items = Item.objects.filter(dataset=dataset).order_by("ordinal").values_list("pk", flat=True)[: len(keys)]
        pairs = list(zip(keys, items, strict=True))
        for start in range(0, len(pairs), CHUNK):
            bulk.update(Realisation, ("item",), pairs[start : start + CHUNK])
        PlanDataset.objects.create(plan=plan, dataset=dataset, only=only)
        audit.record(actor=actor, project=plan.project, verb="store texts", subject=plan)
    return dataset


def _refused_or_kept(plan: GenerationPlan, *, name: str, only: str, with_natives: bool) -> tuple[list[int], set[int]]:
    """The keys of the texts that are stored, and the families that are whole; refused as `store_dataset` says."""
    access.refuse_archived(plan.project)
    if not 1 <= len(name) <= LONGEST_NAME or only not in PlanDataset.Only.values:
        sentence = _("Give the dataset a name, and store whole families or all texts.")
        raise Refused(sentence, code="invalid", fields={"name": sentence})
    if Dataset.objects.filter(project=plan.project, name=name).exists():
        taken = _("Another dataset of this project is called “%(name)s”. Choose another name.") % {"name": name}
        raise Refused(taken, code="name_taken", fields={"name": taken})
    if with_natives and plan.source is None:
        natives_of = _("Only translations can be stored beside their sources.")
        raise Refused(natives_of, code="invalid", fields={"with_natives": natives_of})
    texts, whole = written_texts(plan)
    wanted = whole if only == PlanDataset.Only.WHOLE else None
    keys = [
        text
        for text, family, is_usable in texts
        if (is_usable or only == PlanDataset.Only.EVERY) and (wanted is None or family in wanted)
    ]
    if not keys:
        raise Refused(_("No text can be stored yet: no family is whole, or nothing is written."), code="wrong_state")
    if with_natives and plan.source:
        natives = set(_native_items(plan, plan.source).values_list("external_id", flat=True))
        rows = Realisation.objects.select_related("family__source", "generator", "simulator").defer("turns", "fields")
        parts = (rows.filter(pk__in=keys[at : at + CHUNK]) for at in range(0, len(keys), CHUNK))
        doubled = [key for row in chain.from_iterable(parts) if (key := item_key(row)) in natives]
        if doubled:
            sentence = _("An item “%(item)s” of the source would have the id of a translation.") % {"item": doubled[0]}
            raise Refused(sentence, code="invalid", fields={"with_natives": sentence})
    return keys, whole


def item_key(realisation: Realisation) -> str:
    """The key of the item that a text becomes: family or source, language, generator, and its repeat if there are
    several. That of a conversation names no model (`conversation_key`). A key that would be too long ends with a
    digest."""
    if realisation.simulator is not None:
        return conversation_key(realisation)
    family = realisation.family
    first = family_scenario(family) if family.source is None else family.source.external_id
    key = f"{first}/{realisation.language}/{realisation.generator.name}"
    key = key if realisation.repeat == 1 else f"{key}/{realisation.repeat}"
    if len(key) <= LONGEST_KEY:
        return key
    return f"{key[: LONGEST_KEY - 17]}/{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def conversation_key(row: Realisation) -> str:
    """A key of a conversation, or of an opening: family, language, and a digest of the models that take part, so that
    who reads an item by its key, as adjudicators do, does not learn them. The same plan stored again has the same
    keys."""
    models = [row.generator.name, row.simulator.name if row.simulator else None]
    place = [row.plan.name, row.plan.seed, row.family.number, row.language, *models, row.repeat]
    digest = hashlib.sha256(json.dumps(place).encode()).hexdigest()[:12]
    return f"{family_scenario(row.family)[:LONGEST_SCENARIO]}/{row.language}/{digest}"


def family_scenario(family: GenerationFamily) -> str:
    """The scenario of the items of a family; of translations that of their source, of answers that of their prompt."""
    drawn = family.scenario or f"family-{family.number:04d}"
    return drawn if family.source is None else family.source.cluster


def _items(plan: GenerationPlan, keys: Sequence[int], whole: set[int]) -> Iterator[ItemRow]:
    spec = parse_spec(plan.spec)
    warnings = _warnings_of_prompts(plan)
    texts = Realisation.objects.select_related("plan", "family__source", "generator", "simulator").order_by("pk")
    for row in chain.from_iterable(texts.filter(pk__in=keys[at : at + CHUNK]) for at in range(0, len(keys), CHUNK)):
        family, source = row.family, row.family.source
        of_plan = {
            "family": family.number,
            "family_is_whole": family.pk in whole,
            "repeat": row.repeat,
            "plan": plan.name,
            "spec": f"{spec.key} {spec.version}",
        }
        yield ItemRow(
            external_id=item_key(row),
            language=row.language,
            generator=row.generator.name if source is None else source.generator or None,
            scenario=family_scenario(family),
            title="",
            turns=row.turns,
            fields=row.fields,
            attributes={
                **(_drawn(family, spec) | of_plan if source is None else _of_twin(row, source, of_plan)),
                **_conversation_attributes(row),
            },
            content_warning=source.content_warning if source else warnings.get((family.scenario, row.language), ""),
            line=0,
        )


def _drawn(family: GenerationFamily, spec: Spec) -> dict[str, Any]:
    """The parameters of a family, without those that are a field of the items."""
    return {name: value for name, value in family.parameters.items() if name not in spec.sources}


def _warnings_of_prompts(plan: GenerationPlan) -> dict[tuple[str, str], str]:
    """The content warnings of the prompts that a plan answers, by scenario and language: of the first item, as the
    prompt is (`item_plans.item_families`)."""
    if plan.answers_to is None:
        return {}
    warnings: dict[tuple[str, str], str] = {}
    prompts = Item.objects.of(plan.answers_to).values_list("scenario", "external_id", "language", "content_warning")
    for scenario, external, language, warning in prompts.iterator(CHUNK):
        warnings.setdefault((scenario or external, language), warning)
    return warnings


def _of_twin(row: Realisation, source: Item, of_plan: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a translation: those of its source, under which both are joined, and where it comes from. Of a
    source that was set aside the reason is `source_set_aside`, because the translation has its own decision."""
    kept = {**source.attributes}
    if "set_aside" in kept:
        kept["source_set_aside"] = kept.pop("set_aside")
    return {
        **kept,
        **{f"translation_{name}": value for name, value in of_plan.items()},
        "is_translation": True,
        "translated_by": row.generator.name,
        "source_language": source.language,
        "source_item": source.external_id,
    }


def _native_items(plan: GenerationPlan, source: Dataset) -> QuerySet[Item]:
    """The items of the source dataset that the translations are compared with: in the plan's languages, and of the same
    scenarios; where items have no scenario, all in these languages. Earlier translations are no natives."""
    sources = Item.objects.filter(pk__in=plan.families.values("source"))
    scenarios = set(sources.exclude(scenario="").values_list("scenario", flat=True))
    natives = Item.objects.of(source).filter(language__in=[*plan.languages, plan.source_language])
    translated = Item.objects.of(source).filter(attributes__is_translation=True)
    return natives.exclude(pk__in=translated.values("pk")).filter(Q(scenario="") | Q(scenario__in=scenarios))


def _natives(plan: GenerationPlan, source: Dataset) -> Iterator[ItemRow]:
    """Copies of the natives."""
    for item in _native_items(plan, source).iterator(CHUNK):
        yield replace(storage.copied_row(item), attributes={"is_translation": False, **item.attributes})


def _conversation_attributes(row: Realisation) -> dict[str, str | int]:
    """Who played the user, how many turns it has and how it ended; and of any text why it was set aside."""
    code = set_aside_code(row)
    attributes: dict[str, str | int] = {"set_aside": code} if code else {}
    if row.simulator is not None:
        attributes |= {
            "simulator": row.simulator.name,
            "user_turns": (len(row.turns) + 1) // 2,
            "ended": row.ended,
        }
    return attributes
