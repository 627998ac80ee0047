"""How templates write prompt variants, money and what became of a call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import template
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from accounts import languages
from judging.forms import DETAILS, FACTOR_NAMES, GROUPINGS, LEVEL_NAMES, JudgeForm
from judging.generation.preset_words import translated_title
from judging.generation.problem_words import PROBLEM_LABELS, problem_sentence
from judging.judges import TASK_NAMES
from judging.models import Attempt, Call, Verdict
from judging.reading_reasons import LABELS, read_as, reason_sentence
from judging.replies import reply_text

register = template.Library()
register.filter("translated_title", translated_title)


@register.filter
def variant_chips(variant: Mapping[str, Any]) -> list[str]:
    """A prompt variant in a few words each; an imported judge has none."""
    if not variant:
        return []
    chips = [str(dict(GROUPINGS).get(variant.get("grouping", "compound"), ""))]
    chips.append(str(dict(DETAILS).get(variant.get("anchor_detail", "anchors"), "")))
    chips.append(_("With rationale") if variant.get("explanation", True) else _("Only the score"))
    instructions = languages.endonym(variant.get("instruction_language", "en"))
    chips.append(_("Instructions: %s") % instructions)
    chips += [_("Asks once more")] if variant.get("repair") else []
    chips += [str(TASK_NAMES[variant["task"]])] if variant.get("task") in TASK_NAMES else []
    chips += [_("Persona: %s") % variant["persona"]] if variant.get("persona") else []
    chips += [_("General rubric text")] if variant.get("rubric_text") == "general" else []
    known = {"shown": _("Reference answer shown"), "hidden": _("Reference answer not shown")}
    chips += [known[answer]] if (answer := variant.get("reference_answer")) in known else []
    chips += [_("Criteria reversed")] if variant.get("criteria_order") == "reversed" else []
    chips += [_("Scale points reversed")] if variant.get("points_order") == "reversed" else []
    swapped = {"swapped": _("Candidates swapped"), "both": _("Candidates in both orders")}
    chips += [swapped[order]] if (order := variant.get("candidate_order")) in swapped else []
    chips += [_("Further instructions")] if variant.get("instructions") else []
    own = len(variant.get("own_texts", ()))
    chips += [ngettext("%d own text", "%d own texts", own) % own] if own else []
    shown = len(variant.get("examples", ()))
    return [*chips, ngettext("%d example", "%d examples", shown) % shown] if shown else chips


@register.filter
def factor_name(factor: str) -> str:
    """What pages call a factor of a design or a parameter: its label in the form of a judge, where it has one."""
    field = JudgeForm.base_fields.get(factor)
    return str(FACTOR_NAMES.get(factor) or (field and field.label) or factor.replace("_", " "))


@register.filter
def level_name(level: Any) -> str:
    """What pages call a level of a factor; `true` and `false` are those of JSON."""
    text = str(level)
    return str(LEVEL_NAMES.get({"true": "True", "false": "False"}.get(text, text), text))


@register.filter
def levels_in_words(levels: Mapping[str, Any]) -> list[str]:
    """Each level of a cell of a design with its factor: `Temperature: 0`."""
    words = _("%(factor)s: %(level)s")
    return [words % {"factor": factor_name(name), "level": level_name(level)} for name, level in levels.items()]


@register.filter
def why_no_score(verdict: Verdict) -> str:
    """Why a verdict has no score on the scale; empty where it has one, or nobody knows."""
    return reason_sentence(verdict.reason)


@register.filter
def read_from(verdict: Verdict) -> str:
    """What the reply of a verdict without a score was read as."""
    return read_as(verdict.reason)


@register.filter
def reason_label(code: str) -> str:
    """A reason in two or three words."""
    return str(LABELS.get(code, code))


@register.filter
def problem_label(code: str) -> str:
    """Why replies of generators were discarded, in two or three words."""
    return str(PROBLEM_LABELS.get(code, code))


@register.filter
def in_a_sentence(problem: Mapping[str, Any]) -> str:
    """Why one reply of a generator was discarded."""
    return problem_sentence(problem)


@register.filter
def usd(amount: Decimal | None) -> str:
    """$0.0042, $0.00018, $1.37, $240.00: at least two digits that say something; a dash for an unknown amount."""
    if amount is None:
        return "–"
    digits = 2 if amount >= 1 or not amount else 1 - amount.adjusted()
    return f"${amount:,.{max(digits, 2)}f}"


@register.filter
def cost_in_words(amount: Decimal | None, is_simulated: bool) -> str:
    """What requests cost, in one way on all pages: an amount, "free" if nobody is paid, or "no price is known"."""
    if amount is not None:
        return usd(amount)
    return _("free") if is_simulated else _("no price is known")


@register.filter
def named_language(tag: str) -> str:
    """A language by its name in the reader's language."""
    return languages.name_for(tag, get_language())


@register.filter
def points(score: float) -> str:
    """3, not 3.0."""
    return f"{score:g}"


@register.filter
def indented(value: Any) -> str:
    """JSON for people to read."""
    return json.dumps(value, ensure_ascii=False, indent=2)


@register.filter(name="reply_text")
def attempt_text(attempt: Attempt) -> str:
    """The text of a reply; nothing without one."""
    return reply_text(attempt.reply, attempt.answer)


@register.filter
def verdicts(call: Call) -> list[Verdict]:
    """The verdicts of a call, from prefetched rows."""
    return [verdict for attempt in call.attempts.all() for verdict in attempt.verdicts.all()]


@register.filter
def last(call: Call) -> Attempt | None:
    """The newest attempt of a call, from prefetched rows."""
    return next(iter(reversed(call.attempts.all())), None)
