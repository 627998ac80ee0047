"""How original a prompt is, and whether it is in its language: what its author and its reviewer are shown.

Prompts of the same language are compared: those of the collection, and those of the project's datasets, of which only
the question, or the first turn, is read. Signatures give the likeliest ones, and the edit distance decides, as for
duplicates in a dataset (`annotation.checkup.duplicates`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from annotation.checkup.checked_items import checked_item
from annotation.checkup.declared import CheckScope
from annotation.checkup.duplicates import COMPARED, MOST_CANDIDATES, SHINGLE, text_signature
from annotation.checkup.written_languages import OtherLanguage, OtherScript
from annotation.models import CollectedPrompt, Dataset, Item, PromptSlot, PromptVersion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIMILAR = 60  # of 100: how equal a prompt must be to be shown
STRIKING = 80  # of 100: from here on the author confirms before it is submitted
MOST_SHOWN = 5
MOST_READ = 20_000  # items of a project's datasets, the newest datasets first


@dataclass(frozen=True, slots=True)
class SimilarPrompt:
    """An earlier prompt, how equal it is of 100, and where it is: another prompt of the collection or a dataset."""

    share: int
    text: str
    prompt: int | None = None
    dataset: int | None = None


@dataclass(frozen=True, slots=True)
class PromptNotices:
    """What is shown of a text. ``language``: the check of `written_languages` that found something, and its values."""

    similar: tuple[SimilarPrompt, ...] = ()
    language: tuple[str, Mapping[str, str | int]] | None = None

    @property
    def is_striking(self) -> bool:
        """Whether the author confirms that it is meant so."""
        return self.language is not None or any(one.share >= STRIKING for one in self.similar)

    def as_json(self) -> dict[str, Any]:
        return {"similar": [asdict(one) for one in self.similar], "language": self.language}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> PromptNotices:
        language = stored.get("language")
        similar = tuple(SimilarPrompt(**one) for one in stored.get("similar", ()))
        return cls(similar, (language[0], language[1]) if language else None)


def text_identity(language: str, text: str) -> str:
    """Equal for equal texts in a language, however their letters are composed and their lines are broken."""
    plain = " ".join(unicodedata.normalize("NFC", text).split())
    return sha256(f"{language}\n{plain}".encode()).hexdigest()


def notices_about(*, slot: PromptSlot, text: str, but: CollectedPrompt | None = None) -> PromptNotices:
    """What is to be shown of a text for this slot; ``but``: the prompt that it is a version of."""
    return PromptNotices(_similar(slot, text, but), _language_notice(slot.language, text))


def dataset_with(*, slot: PromptSlot, text: str) -> Dataset | None:
    """A dataset of the project that has this very prompt."""
    identity = text_identity(slot.language, text)
    for dataset in _datasets(slot):
        if any(text_identity(slot.language, known) == identity for known in _texts_of(dataset.pk, slot.language)[0]):
            return dataset
    return None


def _datasets(slot: PromptSlot) -> Sequence[Dataset]:
    """The datasets whose prompts are read. A copy of another dataset has nothing new, and what was stored of this
    collection is compared as its prompts."""
    own = slot.collection.stored.values("dataset")
    ready = Dataset.objects.ready().filter(project=slot.collection.project_id, derived_from=None).exclude(pk__in=own)
    return list(ready.order_by("-pk")[:100])


def _similar(slot: PromptSlot, text: str, but: CollectedPrompt | None) -> tuple[SimilarPrompt, ...]:
    from rapidfuzz.fuzz import ratio

    words = _words(text)
    if len(words) < SHINGLE:
        return ()
    signature = text_signature(words)
    of_language = PromptVersion.objects.filter(
        prompt__collection=slot.collection_id,
        prompt__slot__language=slot.language,
        prompt__state__in=CollectedPrompt.LIVE,
    )
    if but is not None:
        of_language = of_language.exclude(prompt=but)
    newest = dict(of_language.order_by("number").values_list("prompt", "text"))
    found = _likeliest(signature, list(newest.values()), [_signature(one) for one in newest.values()])
    prompts = list(newest)
    likely = [SimilarPrompt(0, newest[prompts[place]], prompt=prompts[place]) for place in found]
    left = MOST_READ
    for dataset in _datasets(slot):
        texts, signatures = _texts_of(dataset.pk, slot.language)
        found = _likeliest(signature, texts[:left], signatures[:left])
        likely += [SimilarPrompt(0, texts[place], dataset=dataset.pk) for place in found]
        if (left := left - len(texts)) <= 0:
            break
    compared = [
        SimilarPrompt(int(ratio(words, _words(one.text))), one.text[:COMPARED], one.prompt, one.dataset)
        for one in likely
    ]
    shown: dict[str, SimilarPrompt] = {}
    for one in sorted(compared, key=lambda one: (-one.share, one.dataset is not None)):
        if one.share >= SIMILAR:
            shown.setdefault(one.text, one)
    return tuple(shown.values())[:MOST_SHOWN]


def _likeliest(signature: NDArray[np.uint32], texts: Sequence[str], signatures: Any) -> list[int]:
    """The places of the texts whose signatures are most alike."""
    import numpy as np

    if not texts:
        return []
    shares = (np.asarray(signatures) == signature).mean(axis=1)
    return [int(place) for place in np.argsort(-shares, kind="stable")[:MOST_CANDIDATES] if shares[place] > 0]


def _words(text: str) -> str:
    item = checked_item(ordinal=0, language="", generator="", scenario="", turns=(), fields={"question": text})
    return item.words[:COMPARED]


@lru_cache(maxsize=20_000)
def _signature(text: str) -> NDArray[np.uint32]:
    return text_signature(_words(text).ljust(SHINGLE))


@lru_cache(maxsize=64)
def _texts_of(dataset: int, language: str) -> tuple[list[str], list[NDArray[np.uint32]]]:
    """The different prompts of a dataset in this language, which never change, with their signatures."""
    rows = Item.objects.filter(dataset=dataset, language=language).order_by("ordinal").values_list("fields", "turns")
    texts = dict.fromkeys(text for fields, turns in rows[:MOST_READ] if (text := prompt_of(fields, turns)))
    return list(texts), [_signature(text) for text in texts]


def prompt_of(fields: Mapping[str, Any], turns: Sequence[Mapping[str, str]]) -> str:
    """What an item's text answers: its question, or its first turn; "" if it has neither."""
    return str(fields.get("question") or "") or (turns[0]["text"] if turns else "")


def _language_notice(language: str, text: str) -> tuple[str, Mapping[str, str | int]] | None:
    item = checked_item(ordinal=0, language=language, generator="", scenario="", turns=(), fields={"question": text})
    scope = CheckScope(frozenset({language}))
    for check in (OtherScript, OtherLanguage):
        for hit in check(scope).look(item):
            return check.name, hit.values
    return None
