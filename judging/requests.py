"""What a judge is asked, from rows of the database: items and criteria as a prompt takes them, the request of each call
of a run, and the same requests for a preview.

A judge sees the visible part of an item and the criteria in the language of its instructions. Each request carries its
messages, the schema of the reply, the parameters, and what it costs at worst.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from random import Random
from typing import Any

from django.utils.translation import gettext as _

from accounts.inputs import storable
from accounts.refusals import Refused
from annotation.blinding import CANDIDATES, lay_out
from annotation.desk import pairs
from annotation.models import Criterion, Dataset, Item, RubricVersion
from judging import judges
from judging.asking import endpoints, prices
from judging.asking.leases import LeasedRequest
from judging.asking.paid_requests import PaidRequest, paid_request
from judging.models import Attempt, Call, Judge, JudgeRun
from judging.perturbation import RULE, changed_criteria, changed_text, changed_variant, changes_request
from judging.prompts import (
    FRAMES,
    CriterionBrief,
    Example,
    ItemText,
    Message,
    PointBrief,
    PromptVariant,
    ShownExample,
    Turn,
    check,
    render,
    repair_turn,
    response_schema,
    system_message,
    user_message,
)
from judging.replies import Reading, reply_text
from judging.versions import examples

# --- items and criteria as a prompt takes them ------------------------------------------------------------------------


REFERENCE = "reference"


def item_text(item: Item, reference: str = "layout") -> ItemText:
    """The parts of an item that a judge may see: never its generator, scenario or attributes.

    The reference answer is included if the layout shows it, or always (``shown``), or never (``hidden``).
    """
    layout, fields = item.dataset.layout or {}, item.fields
    if reference == "hidden":
        fields = {name: text for name, text in fields.items() if name != REFERENCE}
    elif reference == "shown" and layout.get("fields") and REFERENCE not in layout["fields"]:
        layout = {**layout, "fields": [*layout["fields"], REFERENCE]}
    shown = lay_out(fields=fields, turns=item.turns, layout=layout)
    brief = (("brief", shown.brief),) if shown.brief else ()
    return ItemText(
        turns=tuple(Turn(turn["speaker"], turn["text"], turn.get("name", "")) for turn in shown.turns),
        fields=(*brief, *shown.fields),
        language=item.language,
        title=item.title,
    )


def is_shown_swapped(
    text: ItemText, criteria: Sequence[CriterionBrief], variant: PromptVariant, repeat: int = 1
) -> bool:
    """Whether the second candidate of a pair is shown as the first one: only where every criterion compares them."""
    swaps = variant.candidate_order == "swapped" or (variant.candidate_order == "both" and repeat % 2 == 0)
    texts = dict(text.fields)
    is_pair = all(texts.get(name, "").strip() for name in CANDIDATES)
    return swaps and is_pair and all(brief.compares for brief in criteria)


def swapped_text(text: ItemText) -> ItemText:
    """The item's text with the texts of the two candidates exchanged; their names, which the rubric uses, are not."""
    texts = dict(text.fields)
    first, second = CANDIDATES
    exchanged = {first: texts[second], second: texts[first]}
    return replace(text, fields=tuple((name, exchanged.get(name, words)) for name, words in text.fields))


def unswapped_score(score: float) -> float:
    """A preference for one candidate, by the order of the screen, as one by the order of the item; or the reverse."""
    return pairs.FIRST + pairs.SECOND - score


def in_order_of_item(reading: Reading) -> Reading:
    """A preference that was given with the candidates exchanged, in the item's own order."""
    if reading.status != "ok" or reading.score is None:
        return reading
    expected = None if reading.expected is None else unswapped_score(reading.expected)
    return replace(reading, score=unswapped_score(reading.score), expected=expected)


def refuse_without_pairs(judge: Judge, rubric_version: RubricVersion, repeats: int | None) -> None:
    """Refuse a judge with an order of candidates if the order would have no effect, or not in every call.

    Without ``repeats``, the run is an audit or belongs to an alignment, and asks once.
    """
    variant = judges.variant_of(judge.variant)
    if variant.candidate_order == "given":
        return
    compared = [pairs.is_preference(criterion) for criterion in rubric_version.criteria.all()]
    if not any(compared) or (variant.grouping == "compound" and not all(compared)):
        sentence = _(
            "This judge swaps two candidates. The rubric needs a criterion that compares them, and no other one in the "
            "same call: choose a judge with one call per criterion."
        )
        raise Refused(sentence, code="prompt")
    if variant.candidate_order == "both" and repeats is None:
        sentence = _(
            "Audits and alignments ask about each item once, and this judge swaps two candidates in every second "
            "repeat. Choose a judge with one order of candidates."
        )
        raise Refused(sentence, code="prompt")
    if variant.candidate_order == "both" and repeats is not None and repeats < 2:
        sentence = _("This judge swaps two candidates in every second repeat. Ask for two repeats or more.")
        raise Refused(sentence, code="invalid", fields={"repeats": sentence})


def in_shown_order(
    text: ItemText, criteria: Sequence[CriterionBrief], variant: PromptVariant, repeat: int = 1
) -> ItemText:
    return swapped_text(text) if is_shown_swapped(text, criteria, variant, repeat) else text


def criterion_brief(criterion: Criterion, language: str) -> CriterionBrief:
    """A criterion as the judge reads it, in ``language`` or the rubric's own."""
    return CriterionBrief(
        key=criterion.key,
        name=criterion.says("name", language) or criterion.key,
        points=_points(criterion, language),
        question=criterion.says("question", language) or "",
        definition=criterion.says("definition", language) or "",
        level=criterion.level,  # type: ignore[arg-type]
        allows_na=criterion.not_applicable,
        mark_if=_sentence(criterion.says("mark_if", language)),
        dont_mark_if=_sentence(criterion.says("dont_mark_if", language)),
        speaker=criterion.speaker,
        is_range=not criterion.points,
        step=criterion.step,
        direction=criterion.direction,  # type: ignore[arg-type]
        compares=pairs.is_preference(criterion),
    )


def _points(criterion: Criterion, language: str) -> tuple[PointBrief, ...]:
    if not criterion.points:
        return PointBrief(criterion.minimum), PointBrief(criterion.maximum)
    return tuple(
        PointBrief(value=value, label=criterion.label(value, language), **criterion.anchor(value, language))
        for value in criterion.values
    )


def _sentence(clauses: Iterable[str] | None) -> str:
    """The clauses as one, each without the full stop it would end with alone; the last keeps its own."""
    written = [clause.strip() for clause in clauses or () if clause.strip()]
    return "; ".join([*(clause.rstrip(".。") for clause in written[:-1]), *written[-1:]])


# --- changed items (judging/perturbation.py) --------------------------------------------------------------------------


def perturbed_text(
    item: Item, change: str, *, seed: int, reference: str = "layout", rule: int = RULE
) -> ItemText | None:
    """The text of an item with a change; None if the change has no effect. The item itself is not changed."""
    donor = _item_in_another_language(item, seed) if change == "foreign_turn" else None
    text, other = item_text(item, reference), item_text(donor, reference) if donor else None
    return changed_text(text, change, seed=seed, name=item.external_id, donor=other, rule=rule)


def _item_in_another_language(item: Item, seed: int) -> Item | None:
    """An item of the same dataset in another language: of the same scenario if there is one, else drawn by seed."""
    others = Item.objects.filter(dataset=item.dataset_id).exclude(language=item.language).order_by("pk")
    aligned = others.filter(scenario=item.scenario) if item.scenario else others.none()
    for candidates in (aligned, others):
        if count := candidates.count():
            place = Random(f"{seed}:{item.external_id}").randrange(count)
            return candidates.select_related("dataset")[place]
    return None


# --- the requests of a run --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest(LeasedRequest):
    """One request: the call it is for, what is sent, and the attempt under which it is booked.

    `criterion_keys` are the primary keys of the criteria by their own keys.
    """

    call: Call
    criteria: Sequence[CriterionBrief]
    attempt: Attempt = field(compare=False)
    criterion_keys: Mapping[str, int]
    is_swapped: bool = False
    """Whether the candidates were exchanged: scores of the reply are turned back."""

    @property
    def row(self) -> Call:
        return self.call

    @property
    def reply_key(self) -> str:
        """A key that is equal for requests that get the same reply: it covers what is sent, to whom, and the repeat."""
        return self.attempt.reply_key


NOTHING_CHANGED = "nothing_changed"  # the code of a refusal: the text of a call has no such change
LOOK_AHEAD = 250  # calls that are compared with known replies at a time


class ShownExamples:
    """The examples of a variant, by criterion: those in the item's language, and none of the item's own scenario."""

    def __init__(self, variant: PromptVariant, project: int) -> None:
        self.variant = variant
        self._items = examples.example_items(variant.examples, project) if variant.examples else {}

    def about(self, criteria: Sequence[CriterionBrief], item: Item, repeat: int = 1) -> list[ShownExample]:
        """What is shown before this item when it is rated on the first of these criteria, candidates in its order."""
        criterion = criteria[0].key
        return [
            self._shown(example, criteria, repeat)
            for example in self.variant.examples
            if example.criterion == criterion and example.language == item.language
            if not _is_kin(self._items[example.item], item)
        ]

    def _shown(self, example: Example, criteria: Sequence[CriterionBrief], repeat: int) -> ShownExample:
        text = item_text(self._items[example.item], self.variant.reference_answer)
        if is_shown_swapped(text, criteria, self.variant, repeat):
            return swapped_text(text), unswapped_score(example.score)
        return text, example.score


def _is_kin(example: Item, item: Item) -> bool:
    """Whether they are the same text, or of the same scenario."""
    return example.digest == item.digest or bool(example.scenario and example.scenario == item.scenario)


class CallRequestWriter:
    """Writes the requests of one run. If ``can_reuse``, ``looks_ahead`` is the number of calls to compare with known
    replies; `calls.take_calls` sets both."""

    def __init__(self, run: JudgeRun) -> None:
        self.run = run
        self.looks_ahead = LOOK_AHEAD
        self.can_reuse: bool | None = None
        self.variant: PromptVariant = judges.variant_of(run.judge.variant)
        self._same_for_every_item: dict[tuple[int | None, str], tuple[Sequence[CriterionBrief], Any, Message]] = {}

    @cached_property
    def _criteria(self) -> list[Criterion]:
        return list(self.run.rubric_version.criteria.all())

    @cached_property
    def _criterion_keys(self) -> dict[str, int]:
        return {criterion.key: criterion.pk for criterion in self._criteria}

    @cached_property
    def dataset(self) -> Dataset:
        """The dataset of the run, read once for all its items."""
        return self.run.dataset

    def _same(self, call: Call, variant: PromptVariant) -> tuple[Sequence[CriterionBrief], dict[str, Any], Message]:
        """What is the same for every item: the criteria asked about, the schema of the reply, and the instructions."""
        key = call.criterion_id, call.change
        if key not in self._same_for_every_item:
            asked = [each for each in self._criteria if call.criterion_id in (None, each.pk)]
            briefs = [criterion_brief(criterion, variant.instruction_language) for criterion in asked]
            briefs = changed_criteria(briefs, call.change)
            fixed = briefs, response_schema(briefs, variant), system_message(briefs, variant)
            self._same_for_every_item[key] = fixed
        return self._same_for_every_item[key]

    @cached_property
    def _priced(self) -> dict[str, Any]:
        """The arguments about cost that are the same for every request."""
        judge, by_batch = self.run.judge, self.run.by_batch
        return {
            "price": prices.price(judge, by_batch=by_batch, run=self.run),
            "prices": prices.price_list(judge.provider, by_batch=by_batch, run=self.run),
            "api": endpoints.api_of(judge.provider),
        }

    @cached_property
    def _examples(self) -> ShownExamples:
        return ShownExamples(self.variant, self.run.project_id)

    def write(self, call: Call) -> CallRequest:
        """The request for one call. The item and its dataset are loaded with the call."""
        call.run = self.run  # with its prices, for what a reply costs
        variant = changed_variant(self.variant, call.change) if call.change else self.variant
        criteria, schema, instructions = self._same(call, variant)
        shown = self._examples.about(criteria, call.item, call.repeat) if variant.examples else ()
        text = self._text(call, variant, criteria)
        is_swapped = is_shown_swapped(text, criteria, variant, call.repeat)
        messages = [instructions, user_message(swapped_text(text) if is_swapped else text, variant, shown)]
        if call.repairs is not None:
            messages = repair_turn(messages, storable(reply_text(call.repairs.reply, call.repairs.answer)), variant)
        judge = self.run.judge
        sent: dict[str, Any] = {"schema": schema, "parameters": self._parameters(call), "messages": messages}
        key = judges.reply_key(judge, repeat=call.repeat, **sent)
        paid = paid_request(provider=judge.provider, model=judge.model, **self._priced, **sent)
        return CallRequest(
            **{each.name: getattr(paid, each.name) for each in fields(PaidRequest)},
            call=call,
            criteria=criteria,
            attempt=Attempt(call=call, reserved=paid.worst_case, reply_key=key),
            criterion_keys=self._criterion_keys,
            is_swapped=is_swapped,
        )

    def _text(self, call: Call, variant: PromptVariant, criteria: Sequence[CriterionBrief]) -> ItemText:
        """The text of the call's item, changed where the call says so."""
        if not call.change or changes_request(call.change, variant=variant, criteria=criteria) is not None:
            return item_text(call.item, variant.reference_answer)
        plan = self.run.perturbation or {}
        how = {"seed": int(plan.get("seed", 0)), "rule": int(plan.get("rule", 1))}
        changed = perturbed_text(call.item, call.change, reference=variant.reference_answer, **how)
        if changed is None:
            raise Refused(_("This change does not change the item any more."), code=NOTHING_CHANGED)
        return changed

    def _parameters(self, call: Call) -> dict[str, Any]:
        """The judge's parameters. A declared seed increases with the repeat: repeats differ but are reproducible."""
        parameters = dict(self.run.judge.parameters)
        if isinstance(parameters.get("seed"), int):
            parameters["seed"] += call.repeat - 1
        return parameters


# --- the requests that would be sent ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages of one call, the schema its reply has to keep, and which criteria it asks about."""

    criteria: Sequence[str]
    messages: list[Message]
    schema: dict[str, Any]

    @property
    def tokens(self) -> int:
        """About how many tokens the messages take: four bytes each."""
        return sum(len(message["content"].encode("utf-8", "replace")) for message in self.messages) // 4


def preview_prompts(*, judge: Judge, item: Item, rubric_version: RubricVersion) -> list[Prompt]:
    """Exactly what the judge would be sent about this item: one prompt, or one per criterion."""
    return prompts_of_judges([judge], item=item, rubric_version=rubric_version)[0]


def prompts_of_judges(asked: Sequence[Judge], *, item: Item, rubric_version: RubricVersion) -> list[list[Prompt]]:
    """What each judge would be sent about this item. Raises ``Refused``."""
    criteria, prompts = _criteria(rubric_version), []
    for judge in asked:
        variant = judges.variant_of(judge.variant)
        examples.refuse_other_rubric(variant, rubric_version)
        prompts.append(prompts_about(variant, criteria, item))
    return prompts


def instructions(criteria: Sequence[Criterion], language: str) -> tuple[str, str]:
    """The default variant's instructions about criteria, saved or not, and their language: ``language``, or English
    where there are no instructions in it. Raises ``Refused``."""
    variant = PromptVariant(instruction_language=language if language in FRAMES else "en")
    briefs = [criterion_brief(criterion, variant.instruction_language) for criterion in criteria]
    try:
        check(briefs, variant)
    except ValueError as error:
        raise Refused(str(error), code="prompt") from None
    return system_message(briefs, variant)["content"], variant.instruction_language


def judge_instructions(variant: PromptVariant, criteria: Sequence[Criterion]) -> str:
    """A judge's instructions about all criteria together, however it groups them."""
    briefs = [criterion_brief(criterion, variant.instruction_language) for criterion in criteria]
    return system_message(briefs, replace(variant, grouping="compound"))["content"]


def _criteria(rubric_version: RubricVersion) -> list[Criterion]:
    return list(rubric_version.criteria.order_by("position"))


def prompts_about(variant: PromptVariant, criteria: Sequence[Criterion], item: Item) -> list[Prompt]:
    briefs = [criterion_brief(criterion, variant.instruction_language) for criterion in criteria]
    shown = ShownExamples(variant, item.dataset.project_id)
    groups = [[brief] for brief in briefs] if variant.grouping == "single" else [briefs]
    try:
        return [_prompt(variant, group, item, shown) for group in groups]
    except ValueError as error:
        raise Refused(str(error), code="prompt") from None


def _prompt(variant: PromptVariant, briefs: Sequence[CriterionBrief], item: Item, shown: ShownExamples) -> Prompt:
    before = shown.about(briefs, item) if variant.examples else ()
    text = in_shown_order(item_text(item, variant.reference_answer), briefs, variant)
    messages = render(item=text, criteria=briefs, variant=variant, examples=before)
    return Prompt([brief.name for brief in briefs], messages, response_schema(briefs, variant))
