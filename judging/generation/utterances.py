"""The user turns of a simulation become a dataset: every try that the judge of user turns has judged, refused or not.

Each item is what the judge saw: the conversation up to the turn in question, which is its last one. Native speakers
rate these items by the rubric of the simulation, and a run of the same judge about them finds its replies by their
keys: so the judge of user turns is calibrated on the pages for every judge, by language, and nothing is paid twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from django.db import transaction
from django.utils.translation import gettext as _

from accounts import access, audit
from accounts.models import User
from accounts.refusals import Refused
from annotation.imports import storage
from annotation.models import Dataset
from annotation.readers import ItemRow
from annotation.selections import new_seed
from judging.asking import endpoints
from judging.generation.messages import given_fields
from judging.generation.specs import Spec, parse_spec
from judging.generation.storing import CHUNK, LONGEST_NAME, conversation_key, family_scenario
from judging.generation.utterance_judge import utterance_turns
from judging.models import GenerationAttempt, GenerationPlan, Realisation
from judging.models.generation import READ_VERDICT


def judged_tries(plan: GenerationPlan) -> list[int]:
    """The keys of the verdicts on user turns that could be read, in order: of a try that was asked about twice, the
    last one."""
    verdicts = GenerationAttempt.objects.filter(
        READ_VERDICT,
        realisation__plan=plan,
        step=Realisation.Step.VERDICT,
        outcome=GenerationAttempt.Outcome.REPLIED,
    )
    keys = verdicts.order_by("realisation", "number").values_list("realisation", "turn", "text", "pk")
    return sorted({(row, turn, text): pk for row, turn, text, pk in keys if text.strip()}.values())


def store_utterances(
    *,
    plan: GenerationPlan,
    name: str,
    most: int | None = None,
    seed: int | None = None,
    actor: User | None = None,
) -> Dataset:
    """Store the judged user turns of a simulation as a dataset: all of them, or ``most`` drawn at random by ``seed``.

    Refused if the project has a dataset of this name, or no turn was judged.
    """
    access.refuse_archived(plan.project)
    name = name.strip()
    if not 1 <= len(name) <= LONGEST_NAME or (most is not None and most < 1):
        sentence = _("Give the dataset a name, and store at least one turn.")
        raise Refused(sentence, code="invalid", fields={"name": sentence})
    with transaction.atomic():
        GenerationPlan.objects.select_for_update(no_key=True).get(pk=plan.pk)
        if Dataset.objects.filter(project=plan.project, name=name).exists():
            taken = _("Another dataset of this project is called “%(name)s”. Choose another name.") % {"name": name}
            raise Refused(taken, code="name_taken", fields={"name": taken})
        keys = judged_tries(plan)
        if not keys:
            raise Refused(_("No user turn of this plan has been judged."), code="wrong_state")
        if most is not None and most < len(keys):
            keys = sorted(Random(new_seed() if seed is None else seed).sample(keys, most))
        declared = [endpoints.find_provider(one) for one in set(plan.generators.values_list("provider", flat=True))]
        dataset = storage.store(
            project=plan.project,
            name=name,
            items=_turn_items(plan, keys),
            actor=actor,
            simulated=any(provider is not None and provider.simulated for provider in declared),
        )
        audit.record(actor=actor, project=plan.project, verb="store texts", subject=plan)
    return dataset


def _turn_items(plan: GenerationPlan, keys: Sequence[int]) -> Iterator[ItemRow]:
    spec = parse_spec(plan.spec)
    about = [f"realisation__{name}" for name in ("plan", "family", "generator", "simulator")]
    for start in range(0, len(keys), CHUNK):
        attempts = GenerationAttempt.objects.select_related(*about).filter(pk__in=keys[start : start + CHUNK])
        for attempt in attempts.order_by("pk"):
            yield _turn_item(plan, spec, attempt)


def _turn_item(plan: GenerationPlan, spec: Spec, attempt: GenerationAttempt) -> ItemRow:
    row = attempt.realisation
    family, chatbot = row.family, "" if row.is_opening else row.generator.name
    user_model = (row.simulator or row.generator).name
    return ItemRow(
        external_id=f"{conversation_key(row)}/{attempt.number}",
        language=row.language,
        generator=user_model,
        scenario=family_scenario(family),
        title="",
        turns=utterance_turns(spec, row.turns[: 2 * attempt.turn], attempt.text),
        fields=given_fields(spec, family.parameters, row.language),
        attributes={
            **family.parameters,
            "family": family.number,
            "turn": attempt.turn + 1,
            "accepted": not attempt.problems,
            "chatbot": chatbot,
            "repeat": row.repeat,
            "plan": plan.name,
        },
        content_warning="",
        line=0,
    )
