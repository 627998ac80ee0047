"""Judges and rankings: speed beside a loop over the usual libraries, and coverage of intervals by simulation.

    python -m bench.stats_judges speed       seconds, ratio and largest difference, in one run
    python -m bench.stats_judges coverage    share of 2,000 simulated studies whose 95 % interval holds the truth

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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analytics.stats import calibration, correction, orders, ranking
from analytics.stats.correction import Labelled
from analytics.stats.meeting import Meeting
from analytics.stats.prevalence import Flags, rogan_gladen
from analytics.stats.repetition import self_bleu
from analytics.stats.scales import scale_of

Floats = NDArray[np.float64]
SIMULATIONS = 2000


def main() -> None:
    """One table to standard output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "coverage"))
    parser.add_argument("--nltk", metavar="DIRECTORY", help="where NLTK is installed")
    parser.add_argument("--simulations", type=int, default=SIMULATIONS)
    arguments = parser.parse_args()
    lines = speed(arguments.nltk) if arguments.what == "speed" else coverage(arguments.simulations)
    for line in lines:
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
    scores = ranking.Scores(score, generator, language, scenario, *names)

    def boards() -> Floats:
        return ranking.resampled_boards(scores, resamples=1500, rng=np.random.default_rng(1), parallel=True)

    def taus(drawn: Floats) -> Floats:
        signs = ranking.rank_pairs(drawn)
        return np.array([ranking.tau_b(signs[..., a], signs[..., b]) for a, b in ranking.language_pairs(4)])

    def with_intervals() -> Floats:
        drawn, means = boards(), ranking.board(scores)
        for pair in ranking.language_pairs(4):
            orders.intervals(means[:, pair], drawn[:, :, pair], n_scenarios=100)
        return taus(drawn)

    def theirs() -> Floats:
        found = np.empty((6, 1500))
        draws = np.random.default_rng(1).integers(0, 100, size=(1500, 100), dtype=np.uint16)
        wide = score.reshape(100, 6, 4)
        for b, drawn in enumerate(draws):
            means = wide[drawn].mean(axis=0).round(9)
            for pair, (first, second) in enumerate(ranking.language_pairs(4)):
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


def coverage(simulations: int) -> Iterator[str]:
    """Rows of a table: interval, n, share of studies that hold the truth, and its Monte Carlo error."""
    yield "| interval | labels | coverage | MC error |\n|---|---|---|---|"
    for name, study in (("means", _study_of_means), ("calibration", _study_of_calibration), ("flags", _study_of_flags)):
        truth = _truth(study)
        for n in (50, 100, 300):
            yield from _covered(name, study, truth, n, simulations)


def _covered(name: str, study: Any, truth: dict[str, float], n: int, simulations: int) -> Iterator[str]:
    rng = np.random.default_rng([3, n, len(name)])
    hits: Counter[str] = Counter()
    given: Counter[str] = Counter()
    for _ in range(simulations):
        for figure, low, high in study(n, rng):
            if low is not None:
                given[figure] += 1
                hits[figure] += low <= truth[figure] <= high
    for figure, total in given.items():
        share = hits[figure] / total
        yield f"| {figure} | {n} | {share:.3f} | {(share * (1 - share) / total) ** 0.5:.3f} |"


def _truth(study: Any) -> dict[str, float]:
    """The figures of a study so large that its error is nothing beside the intervals'."""
    return {str(name): float(value) for name, value in study(None, np.random.default_rng(4))}


def _graded(n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Three annotators' and a judge's scores 0 to 3 of n items."""
    quality = rng.normal(size=(n, 1))
    humans = np.clip(np.round(1.5 + quality + 0.6 * rng.normal(size=(n, 3))), 0, 3)
    judge = np.clip(np.round(1.9 + 0.8 * quality[:, 0] + 0.6 * rng.normal(size=n)), 0, 3)
    return humans, judge


def _study_of_means(n: int | None, rng: np.random.Generator) -> Iterator[Any]:
    if n is None:
        mean = float(_graded(2_000_000, rng)[0].mean())
        yield from ((f, mean) for f in ("classical_mean", "ppi_mean", "ppi_plus_mean plain", "ppi_plus_mean crossfit"))
        return
    humans, judge = _graded(n + 1000, rng)
    s = Labelled.of(humans[:n].mean(axis=1), judge[:n], judge[n:])
    found = {
        "classical_mean": correction.classical_mean(s.y, s.cluster),
        "ppi_mean": correction.ppi_mean(s),
        "ppi_plus_mean plain": correction.ppi_plus_mean(s),
        "ppi_plus_mean crossfit": correction.crossfit_mean(s, rng=rng).estimate,
    }
    yield from ((name, e.low, e.high) for name, e in found.items())


_CALIBRATION = ["mae", "rmse", "bias", "pearson", "spearman", "kendall_tau_b", "accuracy", "cohen_kappa", "f1_weighted"]


def _study_of_calibration(n: int | None, rng: np.random.Generator) -> Iterator[Any]:
    humans, judge = _graded(n or 400_000, rng)
    names = tuple("abc")
    meeting = Meeting(judge, humans, np.arange(len(judge)), names, scale_of(range(4)), None)  # type: ignore[arg-type]
    resamples = 500 if n else 0
    for e in calibration.calibrate(
        meeting, rule="mode", statistics=_CALIBRATION, bootstrap=resamples, seed=int(rng.integers(2**31))
    ):
        name = " ".join(filter(None, (e.statistic, e.variant)))
        yield (name, e.value) if n is None else (name, e.low, e.high)


def _study_of_flags(n: int | None, rng: np.random.Generator) -> Iterator[Any]:
    """A flag on 15 % of the items, a judge with sensitivity .8 and specificity .9, n labelled and 1,000 other items."""
    if n is None:
        yield "rogan_gladen", 0.15
        return
    truth = rng.random(n + 1000) < 0.15
    flag = np.where(truth, rng.random(n + 1000) < 0.8, rng.random(n + 1000) < 0.1)
    known, told = truth[:n], flag[:n]
    e = rogan_gladen(
        Flags(
            flagged=int(flag[n:].sum()), judged=1000,
            true_positives=int((known & told).sum()), positives=int(known.sum()),
            true_negatives=int((~known & ~told).sum()), negatives=int((~known).sum()),
        )
    )  # fmt: skip
    yield "rogan_gladen", e.low, e.high


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
