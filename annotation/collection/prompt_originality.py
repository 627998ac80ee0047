"""How original a prompt is, and whether it is in its language: what its author and its reviewer are shown.

Prompts of the same language are compared: those of the collection, and those of the project's datasets, of which only
the question, or the first turn, is read. Signatures give the likeliest ones, and the edit distance decides, as for
duplicates in a dataset (`annotation.checkup.duplicates`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django.db.models import Exists, OuterRef, Q

from annotation.checkup.checked_items import checked_item
from annotation.checkup.declared import CheckScope
from annotation.checkup.duplicates import COMPARED, MOST_CANDIDATES, PERMUTATIONS, SHINGLE, text_signature
from annotation.checkup.written_languages import OtherLanguage, OtherScript
from annotation.models import Campaign, CollectedPrompt, Dataset, Item, PromptSlot, PromptVersion

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


def notices_about(
    *, slot: PromptSlot, text: str, but: CollectedPrompt | None = None, reader: int | None = None
) -> PromptNotices:
    """What is to be shown of a text for this slot; ``but``: the prompt that it is a version of; ``reader``: who
    is shown it, an annotator, and sees nothing of datasets that they rate or that have reference items."""
    return PromptNotices(_similar(slot, text, but, reader), _language_notice(slot.language, text))


def is_in_dataset(*, slot: PromptSlot, text: str) -> bool:
    """Whether a dataset of the project has this very prompt."""
    return text_identity(slot.language, text) in _identities(_datasets(slot), slot.language)


def _datasets(slot: PromptSlot, reader: int | None = None) -> tuple[tuple[int, datetime], ...]:
    """The datasets whose prompts are read, and when each was stored. A copy of another dataset has nothing new, and
    what was stored of this collection is compared as its prompts."""
    own = slot.collection.stored.values("dataset")
    ready = Dataset.objects.ready().filter(project=slot.collection.project_id, derived_from=None).exclude(pk__in=own)
    if reader is not None:
        rated = Q(reference_items__isnull=False) | Q(duties__panel__seats__annotator=reader)
        ready = ready.exclude(
            pk__in=Campaign.objects.filter(rated, project=slot.collection.project_id).values("dataset")
        )
    return tuple(ready.order_by("-pk").values_list("pk", "created_at")[:100])


def _similar(slot: PromptSlot, text: str, but: CollectedPrompt | None, reader: int | None) -> tuple[SimilarPrompt, ...]:
    from rapidfuzz.fuzz import ratio

    words = _words(text)
    if len(words) < SHINGLE:
        return ()
    signature = text_signature(words)
    versions, signatures = _newest_versions(slot, but)
    likely = PromptVersion.objects.filter(pk__in=_likeliest(signature, versions, signatures))
    compared = [SimilarPrompt(0, known, prompt=prompt) for prompt, known in likely.values_list("prompt", "text")]
    items = Item.objects.filter(pk__in=_likeliest(signature, *_signed_items(_datasets(slot, reader), slot.language)))
    compared += [SimilarPrompt(0, prompt_of(one.fields, one.turns), dataset=one.dataset_id) for one in items]
    shares = [replace(one, share=int(ratio(words, _words(one.text))), text=one.text[:COMPARED]) for one in compared]
    shown: dict[str, SimilarPrompt] = {}
    for one in sorted(shares, key=lambda one: (-one.share, one.dataset is not None)):
        if one.share >= SIMILAR:
            shown.setdefault(one.text, one)
    return tuple(shown.values())[:MOST_SHOWN]


def _newest_versions(slot: PromptSlot, but: CollectedPrompt | None) -> tuple[list[int], NDArray[np.uint32]]:
    """The newest versions of the collection's live prompts in a language, with their signatures. One that has none (it
    came in a bundle) gets it now."""
    later = PromptVersion.objects.filter(prompt=OuterRef("prompt"), number__gt=OuterRef("number"))
    newest = PromptVersion.objects.filter(
        ~Exists(later),
        prompt__collection=slot.collection_id,
        prompt__slot__language=slot.language,
        prompt__state__in=CollectedPrompt.LIVE,
    )
    if but is not None:
        newest = newest.exclude(prompt=but)
    signed = dict(newest.values_list("pk", "signature"))
    unsigned = [pk for pk, signature in signed.items() if not signature]
    for pk, text in PromptVersion.objects.filter(pk__in=unsigned).values_list("pk", "text"):
        signed[pk] = stored_signature(text)
        PromptVersion.objects.filter(pk=pk).update(signature=signed[pk])
    return list(signed), _read_signatures(signed.values())


def _likeliest(signature: NDArray[np.uint32], keys: Sequence[int], signatures: NDArray[np.uint32]) -> list[int]:
    """The keys of the texts whose signatures are most alike."""
    import numpy as np

    if not keys:
        return []
    shares = (signatures == signature).mean(axis=1)
    return [keys[int(place)] for place in np.argsort(-shares, kind="stable")[:MOST_CANDIDATES] if shares[place] > 0]


def _words(text: str) -> str:
    item = checked_item(ordinal=0, language="", generator="", scenario="", turns=(), fields={"question": text})
    return item.words[:COMPARED]


def stored_signature(text: str) -> str:
    """The signature of a text as it is stored: little-endian numbers, in hexadecimal digits."""
    return text_signature(_words(text).ljust(SHINGLE)).astype("<u4").tobytes().hex()


def _read_signatures(stored: Iterable[str]) -> NDArray[np.uint32]:
    import numpy as np

    return np.frombuffer(bytes.fromhex("".join(stored)), dtype="<u4").reshape(-1, PERMUTATIONS)


# Datasets never change, so these hold as long as the project has no new one; the time is of the key since a database
# that was restored may have another dataset under the same number. Of 20,000 items, 3 and 5 MB are kept.
@lru_cache(maxsize=8)
def _identities(datasets: tuple[tuple[int, datetime], ...], language: str) -> Mapping[str, int]:
    """The different prompts of the first `MOST_READ` items in this language: their identities, and an item of each."""
    known: dict[str, int] = {}
    left = MOST_READ
    for dataset, _stored_at in datasets:
        items = Item.objects.filter(dataset=dataset, language=language).order_by("ordinal")
        for pk, fields, turns in items.values_list("pk", "fields", "turns")[:left].iterator(1_000):
            left -= 1
            if text := prompt_of(fields, turns):
                known.setdefault(text_identity(language, text), pk)
    return known


@lru_cache(maxsize=8)
def _signed_items(datasets: tuple[tuple[int, datetime], ...], language: str) -> tuple[list[int], NDArray[np.uint32]]:
    """The items of `_identities` with the signatures of their prompts."""
    keys = list(_identities(datasets, language).values())
    signed: dict[int, str] = {}
    for start in range(0, len(keys), 500):
        items = Item.objects.filter(pk__in=keys[start : start + 500]).values_list("pk", "fields", "turns")
        signed |= {pk: stored_signature(prompt_of(fields, turns)) for pk, fields, turns in items}
    return list(signed), _read_signatures(signed.values())


def prompt_of(fields: Mapping[str, Any], turns: Sequence[Mapping[str, str]]) -> str:
    """What an item's text answers: its question, or its first turn; "" if it has neither."""
    return str(fields.get("question") or "") or (turns[0]["text"] if turns else "")


def _language_notice(language: str, text: str) -> tuple[str, Mapping[str, str | int]] | None:
    item = checked_item(ordinal=0, language=language, generator="", scenario="", turns=(), fields={"question": text})
    scope = CheckScope(frozenset({language}))
    for check in (OtherScript(scope), OtherLanguage(scope)):
        for hit in (*check.look(item), *check.finish()):
            return check.name, hit.values
    return None
