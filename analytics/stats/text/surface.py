"""Surface metrics of dialogues, cell by cell: what ``panelbench stats surface`` prints (METHODS 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from analytics.stats.core.estimate import CellEstimate, Estimate
from analytics.stats.judge.ppi import classical_mean
from analytics.stats.text import diversity, repetition
from analytics.stats.text.dialogues import Dialogue
from analytics.stats.text.embeddings import Embed
from analytics.stats.text.lemmas import has_stop_words, lemmatiser, without_stop_words
from analytics.stats.text.tokens import sentences, tokeniser

STATISTICS = (
    "characters", "words", "sentences", "turns", "ttr", "mattr", "mtld", "self_repetition", "self_bleu",
    "pairwise_cosine",
)  # fmt: skip
BY = ("language", "generator")
MOST_SPEAKERS = 4
_SHARED = "texts are each other's references: they don't vary alone"


def report(
    texts: Sequence[Dialogue],
    *,
    by: Sequence[str] = BY,
    engine: str = "simplemma",
    window: int = diversity.WINDOW,
    embed: Embed | None = None,
) -> list[CellEstimate]:
    """Every surface metric of every cell.

    Means over dialogues with t intervals and the standard deviation in the note: ``ttr``, ``mattr``, ``mtld`` (lemmas;
    TTR and MATTR without stop words), ``characters``, ``words``, ``sentences``, ``turns``,
    ``self_repetition`` (lemmas).
    Over the cell's texts together: ``self_bleu`` (words; variant: a speaker's side) and, with ``embed``,
    ``pairwise_cosine``. The note names tokeniser and lemmatiser.
    """
    found: list[CellEstimate] = []
    for key, cell in _cells(texts, by):
        made = [*_counts(cell), *_vocabulary(cell, engine, window), *_self_bleu(cell), *_cosine(cell, embed)]
        found += [CellEstimate(estimate=estimate, cell=key) for estimate in made]
    return found


def _cells(texts: Sequence[Dialogue], by: Sequence[str]) -> Iterator[tuple[dict[str, str | None], list[Dialogue]]]:
    def key(dialogue: Dialogue) -> tuple[str, ...]:
        return tuple(dialogue.value(column) or "" for column in by)

    for values, cell in groupby(sorted(texts, key=key), key):
        yield {column: value or None for column, value in zip(by, values, strict=True)}, list(cell)


def _counts(cell: list[Dialogue]) -> Iterator[Estimate]:
    counted = {
        "characters": [len(d.text()) for d in cell],
        "words": [len(_words(d)) for d in cell],
        "sentences": [len(sentences(d.text())) for d in cell],
        "turns": [len(d.turns) for d in cell],
    }
    for statistic, values in counted.items():
        yield _mean(statistic, list(map(float, values)))


def _vocabulary(cell: list[Dialogue], engine: str, window: int) -> Iterator[Estimate]:
    lemmas = [_lemmas(d, engine) for d in cell]
    kept = [without_stop_words(words, d.language) for words, d in zip(lemmas, cell, strict=True)]
    note = _note(cell, engine)
    yield _mean("ttr", [diversity.ttr(words) for words in kept], note)
    yield _mean("mattr", [diversity.mattr(words, window) for words in kept], f"{note}; window {window}", str(window))
    yield _mean("mtld", [diversity.mtld(words) for words in lemmas], note)
    yield _mean("self_repetition", repetition.self_repetition(lemmas).tolist(), note)


def _self_bleu(cell: list[Dialogue]) -> Iterator[Estimate]:
    speakers = sorted({who for d in cell for who, _ in d.turns if who})
    sides: list[str | None] = [None, *(speakers if len(speakers) <= MOST_SPEAKERS else [])]
    for side in sides:
        texts = [words for d in cell if (words := _words(d, side))]
        name = "whole" if side is None else side
        if len(texts) < 2:
            reason = "it needs two texts"
            yield Estimate(statistic="self_bleu", variant=name, value=None, n_items=len(texts), reason=reason)
            continue
        value = float(repetition.self_bleu(texts).mean())
        note = _tokeniser_note(cell)
        yield Estimate(
            statistic="self_bleu", variant=name, value=value, n_items=len(texts), interval_reason=_SHARED, note=note
        )


def _cosine(cell: list[Dialogue], embed: Embed | None) -> Iterator[Estimate]:
    if embed is None:
        return
    value = repetition.mean_cosine(embed([d.text() for d in cell]))
    reason = "it needs two texts" if value is None else None
    yield Estimate(
        statistic="pairwise_cosine", value=value, n_items=len(cell), reason=reason, interval_reason=_SHARED,
        note="higher: more alike",
    )  # fmt: skip


def _mean(
    statistic: str, values: Sequence[float | None], note: str | None = None, variant: str | None = None
) -> Estimate:
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    estimate = classical_mean(known, np.arange(len(known))).with_(
        statistic=statistic, variant=variant, n_missing=len(values) - len(known)
    )
    if not estimate.is_defined:
        return estimate.with_(reason="no dialogue is long enough", note=note)
    sd = f"sd {known.std(ddof=1):.4f}" if len(known) > 1 else None
    return estimate.with_(note="; ".join(part for part in (sd, note) if part) or None)


def _words(dialogue: Dialogue, speaker: str | None = None) -> list[str]:
    return tokeniser(dialogue.language)[1](dialogue.text(speaker))


def _lemmas(dialogue: Dialogue, engine: str) -> list[str]:
    return lemmatiser(dialogue.language, engine)[1](_words(dialogue))


def _note(cell: list[Dialogue], engine: str) -> str:
    """Which tokeniser, lemmatiser and stop words the cell's languages got."""
    languages = sorted({d.language or "" for d in cell})
    names = sorted({lemmatiser(language, engine)[0] for language in languages})
    stops = "stop words removed" if all(map(has_stop_words, languages)) else "no list of stop words"
    return "; ".join([_tokeniser_note(cell), f"lemmas: {', '.join(names)}", stops])


def _tokeniser_note(cell: list[Dialogue]) -> str:
    return ", ".join(sorted({tokeniser(d.language)[0] for d in cell}))
