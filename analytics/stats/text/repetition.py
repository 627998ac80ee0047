"""How much texts of one source repeat each other: self-BLEU, self-repetition, mean cosine (METHODS 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ORDER = 4
_SMOOTHING_K = 5
SELF_REPETITION_N = 6


def self_bleu(texts: Sequence[Sequence[str]]) -> Floats:
    """BLEU of each tokenised text against all others -> (D,), NaN for a lone text; their mean is the self-BLEU.

    4-grams, equal weights, smoothing method 4 with K = 5, as NLTK computes them. The clipped count of an n-gram is the
    smaller of its own count and the largest in any other text; that largest is known from the two largest counts over
    all texts, so the cost grows with the number of n-grams, not of pairs of texts. Sources: Zhu et al. 2018 (Texygen),
    doi:10.1145/3209978.3210080; Papineni et al. 2002, doi:10.3115/1073083.1073135; Chen & Cherry 2014,
    doi:10.3115/v1/W14-3346.
    """
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    if len(texts) < 2:
        return np.full(len(texts), np.nan)
    matched, total = np.array([_clipped(*grams, len(texts)) for grams in _grams(texts, lengths)]).swapaxes(0, 1)
    precision = _smoothed(matched, np.maximum(total, 1), lengths)
    # A precision that stays 0 (a one-word text) is left out of the product, as NLTK leaves it out.
    mean = np.log(precision, out=np.zeros_like(precision), where=precision > 0).mean(axis=0)
    return np.where(matched[0] > 0, _brevity(lengths) * np.exp(mean), 0.0)


def self_repetition(texts: Sequence[Sequence[str]], n: int = SELF_REPETITION_N) -> Floats:
    """log(1 + how often n-grams of each text recur in other texts) -> (D,); 0: nothing recurs, and none too short to.

    For each distinct n-gram of the text the other texts that hold it are counted. Source: Salkar et al. 2022,
    doi:10.18653/v1/2022.aacl-short.42.
    """
    holders: dict[tuple[str, ...], int] = {}
    distinct = [{tuple(text[i : i + n]) for i in range(len(text) - n + 1)} for text in texts]
    for grams in distinct:
        for gram in grams:
            holders[gram] = holders.get(gram, 0) + 1
    return np.log1p([sum(holders[gram] - 1 for gram in grams) for grams in distinct])


def mean_cosine(vectors: Floats) -> float | None:
    """Mean cosine over all pairs of D vectors (D, k): (|sum of unit vectors|^2 - D) / (D (D - 1)); higher = more alike.

    None for fewer than two vectors that aren't zero.
    """
    norms = np.linalg.norm(vectors, axis=1)
    units = vectors[norms > 0] / norms[norms > 0, None]
    d = len(units)
    return None if d < 2 else float((np.square(units.sum(axis=0)).sum() - d) / (d * (d - 1)))


def _grams(texts: Sequence[Sequence[str]], lengths: Integers) -> Iterator[tuple[Integers, Integers]]:
    """For n = 1..4 every n-gram as a number, and the text it is of."""
    numbers: dict[str, int] = {}
    words = np.array([numbers.setdefault(word, len(numbers)) for text in texts for word in text], dtype=np.int64)
    owner = np.repeat(np.arange(len(texts)), lengths)
    left = np.cumsum(lengths)[owner] - np.arange(len(words))
    start, grams = np.arange(len(words)), words
    for n in range(1, ORDER + 1):
        if n > 1:
            fits = left[start] >= n
            start = start[fits]
            # Numbering the shorter n-grams anew keeps the product below 2^63.
            _, shorter = np.unique(grams[fits], return_inverse=True)
            grams = shorter * len(numbers) + words[start + n - 1]
        yield grams, owner[start]


def _clipped(grams: Integers, owner: Integers, n_texts: int) -> tuple[Floats, Floats]:
    """(D,) sum of clipped counts and of all counts of the n-grams of each text."""
    _, gram = np.unique(grams, return_inverse=True)
    held, count = np.unique(gram * n_texts + owner, return_counts=True)
    gram, owner = np.divmod(held, n_texts)
    order = np.lexsort((-count, gram))
    gram, owner, count = gram[order], owner[order], count[order]
    is_first = np.concatenate([[True], gram[1:] != gram[:-1]])[: len(gram)]
    largest = count[np.maximum.accumulate(np.where(is_first, np.arange(len(gram)), 0))]
    following = np.concatenate([np.where(is_first[1:], 0, count[1:]), [0]])[: len(gram)]
    elsewhere = np.where(is_first, following, largest)
    clipped, every = (
        np.bincount(owner, weights=weights, minlength=n_texts) for weights in (np.minimum(count, elsewhere), count)
    )
    return clipped.astype(np.float64), every.astype(np.float64)


def _smoothed(matched: Floats, total: Floats, lengths: Integers) -> Floats:
    """(4, D) precisions; the j-th that is 0 becomes ln(length) / (2^j K total), in texts of two words or more."""
    is_empty = (matched == 0) & (lengths > 1)
    j = np.cumsum(is_empty, axis=0)
    return np.where(is_empty, np.log(np.maximum(lengths, 1)) / (2.0**j * _SMOOTHING_K), matched) / total


def _brevity(lengths: Integers) -> Floats:
    """(D,) exp(1 - r / c) where the text is shorter than the other text closest in length (the shorter of two)."""
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order].astype(np.float64)
    below, above = np.concatenate([[-np.inf], ordered[:-1]]), np.concatenate([ordered[1:], [np.inf]])
    closest = np.empty(len(lengths))
    closest[order] = np.where(ordered - below <= above - ordered, below, above)
    own = np.maximum(lengths, 1)
    return np.where(lengths == 0, 0.0, np.exp(np.minimum(0.0, 1 - closest / own)))
