"""Judges: declared once, and identified by everything that can change a verdict.

The same digest means the same judge.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import orjson
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import audit, languages
from accounts.inputs import holds_nul, is_storable
from accounts.models import Project, User
from accounts.refusals import Refused
from analytics.stats.core.identifiers import normal_identifier
from annotation import rubrics
from annotation.models import Criterion, RubricVersion
from annotation.readers import RubricDocument, parse_rubric
from judging.asking import allowances, endpoints
from judging.asking.client import Endpoint
from judging.asking.endpoints import Pace
from judging.asking.refused_parts import RESERVED
from judging.models import Call, Judge, JudgeRun, JudgeTrial, PlanGenerator
from judging.prompts import (
    INSTRUCTION_LANGUAGES,
    CriterionBrief,
    Example,
    ItemText,
    OwnText,
    PointBrief,
    PromptVariant,
    Turn,
    render,
    repair_turn,
    response_schema,
)
from judging.study_presets import OWN, STUDY_PRESETS, TASKS, StudyPreset
from judging.versions import examples

# Two criteria and an item that together use every sentence of the templates.
_SPECIMEN_CRITERIA: Final = (
    CriterionBrief(
        key="specimen",
        name="Specimen",
        points=(PointBrief(0, "low", "text", "reason"), PointBrief(1)),
        question="question",
        definition="definition",
        allows_na=True,
        mark_if="mark",
        dont_mark_if="not",
        speaker="speaker",
    ),
    CriterionBrief(key="range", name="Range", points=(PointBrief(0), PointBrief(1)), level="interval"),
)
_SPECIMEN_ITEM: Final = ItemText(turns=(Turn("a", "b", "c"),), fields=(("d", "e"),), language="en", title="f")
FACTORS = {
    "grouping": ("single", "compound"),
    "anchor_detail": ("name", "anchors", "reasons"),
    "explanation": (True, False),
    "instruction_language": tuple(sorted(INSTRUCTION_LANGUAGES)),
    "repair": (True, False),
    "task": ("general", *sorted(TASKS), OWN),
    "rubric_text": ("specific", "general"),
    "reference_answer": ("layout", "shown", "hidden"),
    "criteria_order": ("rubric", "reversed"),
    "points_order": ("rubric", "reversed"),
    "candidate_order": ("given", "swapped", "both"),
}
"""The levels of each factor, by its name."""
TASK_NAMES = {
    "general": gettext_lazy("General: rate the material by the rubric"),
    "own": gettext_lazy("Own text, below"),
    "s0_annotator": gettext_lazy("Cross-lingual stability: linguist who rates support dialogues"),
    "s0_classifier": gettext_lazy("Cross-lingual stability: analyst who classifies support dialogues"),
    "s1_question": gettext_lazy("Multilingual judges: answers to questions"),
    "s1_mathematics": gettext_lazy("Multilingual judges: answers that need calculation"),
    "s1_translation": gettext_lazy("Multilingual judges: translations"),
    "s1_summary": gettext_lazy("Multilingual judges: summaries"),
    "s1_dialogue": gettext_lazy("Multilingual judges: next turn of a dialogue"),
    "s2_evaluator": gettext_lazy("POLLUX: evaluator with a reference answer"),
    "s3_detector": gettext_lazy("MEDAL: detector of issues"),
    "s4_assistant": gettext_lazy("Large models as evaluators: assistant that evaluates a text by metrics"),
}
TEXTS = {"role_text": 4_000, "persona": 500, "instructions": 4_000}
"""The maximum length, in characters, of each factor that is a text."""

# Default, minimum and maximum of each setting. A worker's task may take as long as the longest reply (judging.tasks).
PACES = {"timeout": (90, 1, 1800), "tries": (8, 1, 50), "concurrency": (64, 1, 256)}


def declare(
    *,
    project: Project,
    name: str,
    provider: str,
    model: str,
    parameters: Mapping[str, Any] | None = None,
    variant: Mapping[str, Any] | None = None,
    timeout: int | None = None,
    tries: int | None = None,
    concurrency: int | None = None,
    parent: Judge | None = None,
    actor: User | None = None,
) -> Judge:
    """Declare the judge with this provider, model, parameters and prompt variant, or return it if it exists.

    ``timeout`` (seconds for a reply), ``tries`` and ``concurrency`` (calls in flight) change no verdict: if the judge
    exists, the given values replace its own; refused while a run of it is running. ``parent`` is the judge of which a
    new judge is a version.
    """
    factors, name = dict(variant or {}), normal_identifier(name)
    if factors.get("examples"):
        factors["examples"] = examples.resolve_examples(project, factors["examples"])
    prompt, sent = variant_of(factors), checked_parameters(parameters or {})
    paces = {"timeout": timeout, "tries": tries, "concurrency": concurrency}
    paced = {name: _within(name, number) for name, number in paces.items() if number is not None}
    declared = endpoints.find_provider(provider)
    if declared is None:
        raise Refused(_undeclared(provider), code="unknown_provider", fields={"provider": _undeclared(provider)})
    allowances.allowance(project, provider)
    digest, as_given = (
        judge_digest(endpoint=provider, model=model, variant=prompt, parameters=numbers)
        for numbers in (sent, parameters or {})
    )
    if same := Judge.objects.filter(project=project, digest__in=[digest, as_given]).order_by("pk").first():
        return _paced_anew(same, paced, actor)
    try:
        with transaction.atomic():
            judge = Judge.objects.create(
                project=project,
                name=name,
                provider=provider,
                model=model,
                parameters=sent,
                variant=prompt.factors,
                simulated=declared.simulated,
                digest=digest,
                parent=parent,
                created_by=actor,
                **paced,
            )
            audit.record(actor=actor, project=project, verb="declare judge", subject=judge)
    except IntegrityError:
        taken = _(
            "Another judge of this project is called “%(name)s”. A changed judge is a new judge: give it a new name."
        )
        raise Refused(taken % {"name": name}, code="name_taken", fields={"name": taken % {"name": name}}) from None
    return judge


def is_declared_or_tested(
    project: Project,
    *,
    provider: str,
    model: str,
    parameters: Mapping[str, Any],
    variant: Mapping[str, Any],
    **_others: Any,
) -> bool:
    """Whether the project has this judge, or a score was read from a reply of a test of it (judging/trials.py)."""
    factors = dict(variant)
    if factors.get("examples"):
        factors["examples"] = examples.resolve_examples(project, factors["examples"])
    sent = checked_parameters(parameters)
    about = judge_digest(endpoint=provider, model=model, variant=variant_of(factors), parameters=sent)
    passed = JudgeTrial.objects.filter(project=project, digest=about, is_read=True)
    return passed.exists() or Judge.objects.filter(project=project, digest=about).exists()


@dataclass(frozen=True, slots=True)
class StudyJudge:
    """The result of `declare_as_study`: the judge, its rubric, and how many repeats the study asked for."""

    judge: Judge
    rubric_version: RubricVersion
    repeats: int


def study_preset(key: str) -> StudyPreset:
    """The configuration of a study by its key. An unknown key is refused with a list of the known keys."""
    if key not in STUDY_PRESETS:
        sentence = _("There is no study “%(key)s”. Use one of: %(keys)s.")
        sentence %= {"key": key, "keys": ", ".join(STUDY_PRESETS)}
        raise Refused(sentence, code="unknown_study", fields={"study": sentence})
    return STUDY_PRESETS[key]


def declare_as_study(
    *, project: Project, study: str, provider: str, model: str, name: str = "", actor: User | None = None
) -> StudyJudge:
    """Declare a judge with the configuration of a study, and publish the study's rubric unless the project has it."""
    preset = study_preset(study)
    with transaction.atomic():
        judge = declare(
            project=project,
            name=name or f"{model} as {study}",
            provider=provider,
            model=model,
            parameters=preset.parameters,
            variant=preset.variant,
            actor=actor,
        )
        return StudyJudge(judge, study_rubric(project=project, study=study, actor=actor), preset.repeats)


def study_criteria(study: str) -> list[Criterion]:
    """The criteria of a study's rubric, unsaved, for a preview."""
    return rubrics.unsaved_criteria(_study_document(study))


def study_digest(study: str) -> str:
    """The digest that a version of the study's rubric has in every project."""
    return rubrics.document_digest(_study_document(study))


def _study_document(study: str) -> RubricDocument:
    parsed = parse_rubric("rubric.json", orjson.dumps(study_preset(study).rubric))
    if parsed.document is None:  # an error in our presets: tests/judging/test_variants.py reads every preset
        raise ValueError("; ".join(parsed.problems.sentences()))
    return parsed.document


def study_rubric(*, project: Project, study: str, actor: User | None = None) -> RubricVersion:
    """The published rubric of a study in the project; it is stored and published if the project does not have it."""
    version = rubrics.draft(project=project, document=_study_document(study), actor=actor)
    if version.state == RubricVersion.State.DRAFT:
        rubrics.publish(version=version, actor=actor)
    return version


def imported(*, project: Project, name: str, variant: str = "") -> Judge:
    """The judge of imported verdicts: known only by its name, plus the prompt's name if it was asked with several
    prompts."""
    name, variant = key_of(name, variant)
    factors = {"name": variant} if variant else {}
    defaults = {"name": imported_name(name, variant), "model": name, "variant": factors}
    identity = digest({"imported": name, **({"variant": variant} if variant else {})})
    judge, _is_new = Judge.objects.get_or_create(project=project, digest=identity, defaults=defaults)
    return judge


def imported_name(name: str, variant: str) -> str:
    """The name of an imported judge in the project."""
    name, variant = key_of(name, variant)
    return f"{name} ({variant})" if variant else name


def key_of(name: str, variant: str) -> tuple[str, str]:
    """The name and the prompt variant in a file, without spaces around them. Our own exports write "name (variant)" as
    the name, so the variant is removed from the end of the name.
    """
    name, variant = normal_identifier(name), normal_identifier(variant)
    return name.removesuffix(f" ({variant})") if variant else name, variant


def known_as(judge: Judge) -> tuple[str, str]:
    """The name and the prompt variant that an imported judge has in its files."""
    return judge.model, judge.variant.get("name", "")


def variant_of(factors: Mapping[str, Any]) -> PromptVariant:
    """A prompt variant from plain values. Refuses an unknown factor, or a level that is not one of the listed ones."""
    known = {factor.name for factor in fields(PromptVariant)}
    for factor, level in factors.items():
        if factor not in known:
            raise Refused(_("A prompt variant has no “%(factor)s”.") % {"factor": factor}, fields={"variant": factor})
        if factor in TEXTS:
            _check_text(factor, level)
        elif factor in FACTORS and not any(
            level is allowed or (level == allowed and isinstance(level, str)) for allowed in FACTORS[factor]
        ):
            there_is = ", ".join(str(allowed).lower() for allowed in FACTORS[factor])  # true, as JSON has it
            sentence = _("“%(level)s” is not a valid %(factor)s. Use one of: %(levels)s.")
            raise Refused(sentence % {"level": level, "factor": factor, "levels": there_is}, fields={"variant": factor})
    shown = tuple(Example(**example) for example in factors.get("examples") or ())
    own_texts = _own_texts(factors.get("own_texts") or ())
    variant = PromptVariant(**{**factors, "examples": shown, "own_texts": own_texts})
    if wrong := _contradiction(variant):
        raise Refused(wrong, fields={"variant": wrong})
    return variant


def _check_text(factor: str, text: Any) -> None:
    if not isinstance(text, str) or len(text) > TEXTS[factor] or holds_nul(text):
        sentence = _("“%(factor)s” is a text of at most %(most)d characters.")
        raise Refused(sentence % {"factor": factor, "most": TEXTS[factor]}, fields={"variant": factor})


MOST_OWN_TEXT = 2_000  # characters
MOST_OWN_TEXTS = 200


def _own_texts(given: Any) -> tuple[OwnText, ...]:
    """The judge's own texts for definitions and anchors, checked and sorted. Refused if one of them is invalid."""
    whole = isinstance(given, list | tuple) and len(given) <= MOST_OWN_TEXTS and all(map(_is_own_text, given))
    places = {(text["criterion"], text["point"]) for text in given} if whole else set()
    if not whole or len(places) < len(given):
        sentence = _(
            "Each of “own_texts” has a criterion, a point (null for the definition) and a text of at most %(most)d "
            "characters, and each place has one."
        )
        raise Refused(sentence % {"most": MOST_OWN_TEXT}, code="own_texts", fields={"variant": "own_texts"})
    texts = [OwnText(text["criterion"], text["point"], text["text"]) for text in given]
    return tuple(sorted(texts, key=lambda text: (text.criterion, text.point is not None, text.point or 0.0)))


def _is_own_text(text: Any) -> bool:
    if not isinstance(text, Mapping) or text.keys() != {"criterion", "point", "text"}:
        return False
    words = [text["criterion"], text["text"]]
    written = all(isinstance(part, str) and 0 < len(part) <= MOST_OWN_TEXT and is_storable(part) for part in words)
    point = text["point"]
    return written and (point is None or (type(point) in (int, float) and abs(point) <= LARGEST_LEVEL))


def _contradiction(variant: PromptVariant) -> str:
    """Why these factors can't be combined; empty if they can."""
    if (variant.task == OWN) != bool(variant.role_text.strip()):
        return _("The task “Own text” (own) needs “Own role and task” (role_text), and the other way round.")
    if variant.task not in ("general", OWN) and variant.instruction_language not in TASKS[variant.task]:
        known = ", ".join(f"{languages.both_names(tag)} ({tag})" for tag in sorted(TASKS[variant.task]))
        about = {"task": TASK_NAMES[variant.task], "key": variant.task, "languages": known}
        return _("The task “%(task)s” (%(key)s) has instructions in: %(languages)s. Choose one of these.") % about
    if variant.examples and variant.grouping != "single":
        return _("Examples need the grouping “One criterion per call” (single).")
    if variant.own_texts and (variant.rubric_text == "general" or variant.anchor_detail == "name"):
        return _(
            "Own texts for definitions and anchors need a judge that is shown these: see rubric_text, anchor_detail."
        )
    return ""


def differs_in(judge: Judge, other: Judge) -> list[str]:
    """The differences between ``judge`` and ``other``, each in a few words: provider, model, parameters, messages."""
    found = []
    if judge.provider != other.provider:
        found.append(_("another provider (%s)") % (other.provider or _("imported")))
    if judge.model != other.model:
        found.append(_("another model (%s)") % other.model)
    for sentence, own, others in (
        (_("other parameters (%s)"), judge.parameters, other.parameters),
        (_("other messages (%s)"), judge.variant, other.variant),
    ):
        if names := [name for name in sorted({*own, *others}) if own.get(name) != others.get(name)]:
            found.append(sentence % ", ".join(names))
    return found or [_("another wording of the prompt")]


LARGEST_LEVEL = 1e6  # largest absolute value of a parameter, or of the point of an own text
MOST_OF_A_LEVEL = 120  # characters


def refuse_unsendable(parameter: str, levels: Sequence[Any]) -> None:
    """Refuse invalid levels of a parameter: `reasoning_effort` needs short texts, the others need finite numbers."""
    if parameter == "reasoning_effort":
        form = _("a short text")
        fit = all(
            isinstance(level, str) and 0 < len(level) <= MOST_OF_A_LEVEL and is_storable(level) for level in levels
        )
    else:
        form = _("a finite number")
        fit = all(type(level) in (int, float) and abs(level) <= LARGEST_LEVEL for level in levels)
    if not fit:
        sentence = _("Every level of “%(factor)s” is %(form)s.") % {"factor": parameter, "form": form}
        raise Refused(sentence, code="factors", fields={"factors": sentence})


def endpoint(judge: Judge | PlanGenerator) -> Endpoint:
    """The endpoint of this judge's provider, as the operator declares it now."""
    provider = endpoints.find_provider(judge.provider)
    if provider is None:
        raise Refused(_undeclared(judge.provider), code="unknown_provider")
    return endpoints.endpoint_of(provider)


def refused_by_model(judge: Judge) -> list[str]:
    """The reply formats and parameters that the judge's model has recently refused by name."""
    return endpoints.refused_by(judge.provider, judge.model)


def pace(judge: Judge | PlanGenerator) -> Pace:
    """The pace of the judge; a value that it does not have comes from its provider, or else from the default."""
    provider = endpoints.find_provider(judge.provider)
    chosen = {}
    for name, (default, _least, _most) in PACES.items():
        chosen[name] = getattr(judge, name, None) or getattr(provider, name, None) or default
    return Pace(**chosen)


def _within(name: str, number: int) -> int:
    _default, least, most = PACES[name]
    if not least <= number <= most:
        sentence = _("“%(name)s” must be from %(least)d to %(most)d.") % {"name": name, "least": least, "most": most}
        raise Refused(sentence, code="pace", fields={name: sentence})
    return number


def _paced_anew(judge: Judge, paced: Mapping[str, int], actor: User | None) -> Judge:
    changed = {name: number for name, number in paced.items() if getattr(judge, name) != number}
    if changed:
        open_calls = Call.objects.filter(run=OuterRef("pk"), state__in=[Call.State.WAITING, Call.State.LEASED])
        running = JudgeRun.objects.filter(Exists(open_calls), judge=judge, state=JudgeRun.State.RUNNING)
        if (run := running.order_by("pk").first()) is not None:
            sentence = _("Run %(run)d of this judge is running, and this would change it: %(names)s. Pause it first.")
            sentence %= {"run": run.pk, "names": ", ".join(sorted(changed))}
            raise Refused(sentence, code="pace", fields=dict.fromkeys(sorted(changed), sentence))
        with transaction.atomic():
            Judge.objects.filter(pk=judge.pk).update(**changed)
            audit.record(actor=actor, project=judge.project, verb="pace judge", subject=judge, fields=sorted(changed))
        judge.refresh_from_db()
    return judge


def _undeclared(provider: str) -> str:
    if not provider:
        return _("This judge was imported with its verdicts, so it can't be run.")
    declared = ", ".join(endpoints.all_providers()) or _("none")
    return _(
        "The provider “%(name)s” is not declared (declared: %(declared)s). The operator declares providers "
        "on the page /providers/, or in PANELBENCH_PROVIDERS."
    ) % {
        "name": provider,
        "declared": declared,
    }


LONGEST_PARAMETERS = 20_000  # characters, as JSON: they go out with every request


def checked_parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters, checked. Refused if they are not valid JSON, or include a parameter that Panelbench itself
    sets."""
    sentence = ""
    if reserved := sorted(RESERVED & parameters.keys()):
        sentence = _("Not a parameter of a judge: %s") % ", ".join(reserved)
    elif not _is_json(parameters):
        sentence = _("The parameters contain a number or a character that JSON does not allow.")
    elif len(canonical(parameters)) > LONGEST_PARAMETERS:
        sentence = _("The parameters have more than %d characters.") % LONGEST_PARAMETERS
    if sentence:
        raise Refused(sentence, code="parameters", fields={"parameters": sentence})
    return {name: as_whole(value) for name, value in parameters.items()}


def as_whole(value: Any) -> Any:
    """A whole number as an integer (0.0 becomes 0), so that 0 and 0.0 are the same parameter of a judge."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def _is_json(value: Any) -> bool:
    try:
        canonical(value).decode()  # half a surrogate pair is no UTF-8
    except (ValueError, RecursionError):
        return False
    return not holds_nul(value)


def canonical(value: Any) -> bytes:
    """The canonical form of a JSON value: sorted keys, no spaces, UTF-8. Raises on NaN, which JSON does not allow."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, in hexadecimal (64 characters)."""
    return hashlib.sha256(canonical(value)).hexdigest()


def reply_key(judge: Judge, *, repeat: int = 1, **sent: Any) -> str:
    """The key of the reply to a request of a judge: it covers what is sent (`schema`, `parameters`, `messages`), to
    whom, and the repeat."""
    return digest({"provider": judge.provider, "model": judge.model, "repeat": repeat, **sent})


def template_digest(variant: PromptVariant) -> str:
    """A digest of the fixed wording and structure of a variant's prompt; it does not depend on rubric or item."""
    criteria = _SPECIMEN_CRITERIA if variant.grouping == "compound" else _SPECIMEN_CRITERIA[:1]
    about: Any = {"item": _SPECIMEN_ITEM, "variant": variant}
    about |= {"examples": [(_SPECIMEN_ITEM, 1.0)]} if variant.examples else {}
    shown = [render(criteria=[criterion], **about) for criterion in _SPECIMEN_CRITERIA]
    together = render(criteria=criteria, **about)
    shape = [shown, together, response_schema(criteria, variant)]
    return digest([*shape, repair_turn([], "", variant)] if variant.repair else shape)


def judge_digest(*, endpoint: str, model: str, variant: PromptVariant, parameters: Mapping[str, Any]) -> str:
    """The identity of a judge: everything that can change a verdict except the item and the rubric."""
    return digest(
        {
            "endpoint": endpoint,
            "model": model,
            "variant": variant.factors,
            "template": template_digest(variant),
            "parameters": dict(parameters),
        }
    )
