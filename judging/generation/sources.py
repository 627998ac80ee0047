"""The items that a plan of translations translates: which of a dataset, and as what a request has them."""

from __future__ import annotations

import hashlib

from django.utils.translation import gettext as _

from accounts.models import Project
from accounts.refusals import Refused
from annotation.models import Dataset, Item
from judging.generation.translations import SourceText
from judging.models import GenerationFamily

LONGEST_SOURCE = 60_000  # characters of an item that is translated in one request


def source_of(family: GenerationFamily) -> SourceText | None:
    """The text that is translated; None in a plan of other texts."""
    return None if family.source is None else source_text(family.source)


def source_text(item: Item) -> SourceText:
    """An item as a request for its translation has it."""
    return SourceText(language=item.language, turns=item.turns, fields=item.fields)


def source_languages(dataset: Dataset) -> list[str]:
    """The languages of a dataset, the most frequent first."""
    languages = list(Item.objects.of(dataset).order_by().values_list("language", flat=True))
    return sorted(set(languages), key=lambda language: (-languages.count(language), language))


def chosen_source_language(project: Project, dataset: Dataset, language: str, targets: list[str]) -> str:
    """The language that is translated from: the one given, or the only one that is no target. Refused without one."""
    if dataset.project_id != project.pk:
        raise _refusal("source", _("This dataset belongs to another project."))
    spoken = source_languages(dataset)
    possible = [tag for tag in spoken if tag not in targets]
    if language and language not in spoken:
        raise _refusal("source_language", _("This dataset has no items in that language."))
    if language in targets or not possible:
        raise _refusal("source_language", _("Items can't be translated into their own language."))
    if not language and len(possible) > 1:
        named = ", ".join(possible)
        raise _refusal(
            "source_language", _("Choose the language to translate from: %(languages)s.") % {"languages": named}
        )
    return language or possible[0]


def draw_sources(dataset: Dataset, language: str, *, most: int, seed: int) -> list[Item]:
    """At most ``most`` items of a dataset in a language, in the order of the dataset. The seed and the ids of the items
    alone decide which. Refused if there are none, or one is too long for a request."""
    items = [item for item in Item.objects.of(dataset).filter(language=language) if not source_text(item).is_empty]
    if not items:
        raise _refusal("source", _("There is no item to translate."))
    if len(items) > most:
        items.sort(key=lambda item: hashlib.sha256(f"{seed}\x1f{item.external_id}".encode()).digest())
        items = sorted(items[:most], key=lambda item: item.ordinal)
    for item in items:
        if len(source_text(item).as_json) > LONGEST_SOURCE:
            sentence = _(
                "The item “%(item)s” is too long to be translated in one request (at most %(most)d characters)."
            )
            raise _refusal("source", sentence % {"item": item.external_id, "most": LONGEST_SOURCE})
    return items


def _refusal(name: str, sentence: str) -> Refused:
    return Refused(sentence, code="invalid", fields={name: sentence})
