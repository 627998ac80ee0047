"""Judges and rankings: speed beside a loop over the usual libraries, in one run. ``python -m bench.stats_judges``.

NLTK is no dependency: ``--nltk DIRECTORY`` names where it is installed; without it self-BLEU is timed against the same
definition in plain Python.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analytics.stats.ranking import concordance
from analytics.stats.text.surface import self_bleu

Floats = NDArray[np.float64]


def _main() -> None:
    """One table to standard output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nltk", metavar="DIRECTORY", help="where NLTK is installed")
    arguments = parser.parse_args()
    for line in speed(arguments.nltk):
        print(line, flush=True)


def speed(nltk: str | None) -> Iterator[str]:
    """Rows of a table: what, ours, theirs, ratio, largest difference."""
    yield "| what | ours, s | theirs, s | ratio | largest difference |\n|---|---|---|---|---|"
    yield from _tau()
    yield _bleu(nltk)


def _tau() -> Iterator[str]:
    """6 generators x 100 items x 4 languages, 1,500 resamples, all pairs of languages; then their intervals as well."""
    rng = np.random.default_rng(0)
    scenario, generator, language = (a.ravel() for a in np.indices((100, 6, 4)))
    score = np.round(generator / 3 + rng.normal(size=2400), 1)
    names = (tuple("abcdef"), ("et", "fi", "hu", "en"))
    scores = concordance.Scores(score, generator, language, scenario, *names)

    def boards() -> Floats:
        return concordance.resampled_boards(scores, resamples=1500, rng=np.random.default_rng(1), parallel=True)

    def taus(drawn: Floats) -> Floats:
        signs = concordance.rank_pairs(drawn)
        return np.array([concordance.tau_b(signs[..., a], signs[..., b]) for a, b in concordance.language_pairs(4)])

    def with_intervals() -> Floats:
        drawn, means = boards(), concordance.board(scores)
        for pair in concordance.language_pairs(4):
            concordance.rank_intervals(means[:, pair], drawn[:, :, pair], n_scenarios=100)
        return taus(drawn)

    def theirs() -> Floats:
        found = np.empty((6, 1500))
        draws = np.random.default_rng(1).integers(0, 100, size=(1500, 100), dtype=np.uint16)
        wide = score.reshape(100, 6, 4)
        for b, drawn in enumerate(draws):
            means = wide[drawn].mean(axis=0).round(9)
            for pair, (first, second) in enumerate(concordance.language_pairs(4)):
                found[pair, b] = stats.kendalltau(means[:, first], means[:, second]).statistic
        return found

    what = "6 x 100 x 4, 1,500 resamples, against a loop over scipy"
    yield _row(f"tau-b bootstrap, {what}", lambda: taus(boards()), theirs, repeats=9)
    yield _row(f"tau-b bootstrap and default intervals, {what}", with_intervals, theirs, repeats=9)


def _bleu(nltk: str | None) -> str:
    """120 dialogues of 150 to 350 words."""
    rng = np.random.default_rng(2)
    texts = [[str(word) for word in rng.zipf(1.3, rng.integers(150, 351)) % 4000] for _ in range(120)]
    name, bleu = _nltk_bleu(nltk) if nltk else ("plain Python", _plain_bleu)

    def theirs() -> Floats:
        return np.array([bleu([t for j, t in enumerate(texts) if j != i], text) for i, text in enumerate(texts)])

    return _row(f"self-BLEU of 120 dialogues, against {name}", lambda: self_bleu(texts), theirs, repeats=9)


def _nltk_bleu(directory: str) -> tuple[str, Callable[..., float]]:
    sys.path.insert(0, directory)
    import nltk
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    smoothing = SmoothingFunction().method4
    version = f"NLTK {nltk.__version__}"
    return version, lambda others, text: sentence_bleu(others, text, smoothing_function=smoothing)


def _plain_bleu(others: list[list[str]], text: list[str]) -> float:
    log_sum = 0.0
    for n in range(1, 5):
        own, *rest = (Counter(zip(*(t[i:] for i in range(n)), strict=False)) for t in (text, *others))
        matched = sum(min(count, max(other[gram] for other in rest)) for gram, count in own.items())
        log_sum += math.log(matched / sum(own.values())) / 4
    closest = min((abs(len(other) - len(text)), len(other)) for other in others)[1]
    return math.exp(log_sum + min(0.0, 1 - closest / len(text)))


def _row(what: str, ours: Callable[[], Floats], theirs: Callable[[], Floats], *, repeats: int) -> str:
    mine, fast = min((_timed(ours) for _ in range(repeats)), key=lambda pair: pair[1])
    other, slow = _timed(theirs)
    return f"| {what} | {fast:.4f} | {slow:.2f} | {slow / fast:.0f} | {np.nanmax(abs(mine - other)):.1e} |"


def _timed(work: Callable[[], Floats]) -> tuple[Floats, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    _main()
