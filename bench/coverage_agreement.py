"""Do the 95 % intervals cover? ``python bench/coverage_agreement.py [SIMULATIONS [RESAMPLES [METHOD ...]]]``.

Two populations of items: a four-point ordinal scale with moderate agreement, and a binary flag raised on one item in
six. Three raters, a fifth of the ratings missing. The true value is the statistic of 400,000 items. Printed: the share
of intervals that hold it, per method and number of items, with its Monte Carlo error.
"""

from __future__ import annotations

import sys
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from analytics.stats import countwise, pairwise, reliability
from analytics.stats.countwise import Resampling
from analytics.stats.estimate import Estimate
from analytics.stats.scales import Scale, scale_of
from analytics.stats.tables import Coded, coded_from_matrix

Scores = NDArray[np.float64]
Shares = dict[tuple[str, ...], list[float]]
SIZES = (50, 100, 200)
TRUE_ITEMS = 400_000


def ordinal(rng: np.random.Generator, n_items: int) -> Scores:
    """A latent quality, three raters of different severity, cut into 0..3."""
    quality = rng.normal(0.4, 1, (n_items, 1))
    seen = quality + np.array([-0.2, 0.0, 0.3]) + rng.normal(0, 0.8, (n_items, 3))
    return with_gaps(rng, np.digitize(seen, [-1.0, 0.0, 1.2]).astype(float))


def flag(rng: np.random.Generator, n_items: int) -> Scores:
    """A rare flag, found with sensitivity .7 and raised by mistake on 4 % of the others."""
    present = rng.random((n_items, 1)) < 1 / 6
    raised = np.where(present, rng.random((n_items, 3)) < 0.7, rng.random((n_items, 3)) < 0.04)
    return with_gaps(rng, raised.astype(float))


def with_gaps(rng: np.random.Generator, scores: Scores) -> Scores:
    return np.where(rng.random(scores.shape) < 0.2, np.nan, scores)


def named(estimate: Estimate) -> str:
    return f"{estimate.statistic} {estimate.variant or estimate.level}"


def counted(cell: Coded, how: Resampling, rng: np.random.Generator) -> list[Estimate]:
    """Count-based figures without the paper's biased one; the complete variant keeps half of the items here."""
    figures = [figure for figure in countwise.figures_for(cell) if not figure.paper and figure.complete is None]
    return countwise.estimates(cell, figures, rng=rng, how=how)


def paired(cell: Coded, how: Resampling, rng: np.random.Generator) -> list[Estimate]:
    """Cohen's kappa of the first pair and on average, Conger's kappa."""
    cohen = list(pairwise.cohen_rows(cell, rng=rng, how=how, positional=False))
    first = [e.with_(statistic="cohen_kappa of a pair") for e, raters in cohen if raters == ("1", "2")]
    means = [e for e, raters in cohen if raters is None]
    conger = [e for e, _ in pairwise.conger_rows(cell, rng=rng, how=how, positional=False)]
    return [e for e in [*first, *means, *conger] if e.variant in ("unweighted", "identity", "quadratic")]


def every(scores: Scores, scale: Scale, how: Resampling, rng: np.random.Generator) -> list[Estimate]:
    cell = coded_from_matrix(scores, scale=scale)
    found = [*counted(cell, how, rng), *paired(cell, how, rng)]
    if how.resamples == 0 and scale.has_order:
        full = np.where(np.isnan(scores).any(axis=1)[:, None], np.nan, scores)
        found += [reliability.icc(full, form) for form in reliability.FORMS]
    return found


def simulate(name: str, simulations: int, methods: dict[str, Resampling]) -> Shares:
    draw, scale = {"ordinal": (ordinal, scale_of(range(4))), "flag": (flag, scale_of([0, 1], "nominal"))}[name]
    rng = np.random.default_rng(99)
    truth = {named(e): e.value or 0.0 for e in every(draw(rng, TRUE_ITEMS), scale, Resampling(0), rng)}
    shares: Shares = defaultdict(list)
    for size in SIZES:
        for number in range(simulations):
            rng = np.random.default_rng([7, size, number])
            scores = draw(rng, size)
            for method, how in methods.items():
                for estimate in every(scores, scale, how, rng):
                    shares[named(estimate), method, str(size)].append(covers(estimate, truth[named(estimate)]))
    return shares


def covers(estimate: Estimate, true: float) -> float:
    """1 or 0, NaN where no interval is given; a constant statistic (chance at fixed n) counts within rounding."""
    if estimate.low is None or estimate.high is None:
        return float("nan")
    return float(estimate.low - 1e-9 <= true <= estimate.high + 1e-9)


def main(argv: list[str]) -> None:
    simulations, resamples = (int(argv[0]) if argv else 2000), (int(argv[1]) if len(argv) > 1 else 1000)
    every_method = {
        "default": Resampling(resamples),
        "percentile": Resampling(resamples, "percentile"),
        "bca": Resampling(resamples, "bca"),
        "closed": Resampling(0),
    }
    methods = {name: how for name, how in every_method.items() if name in (argv[2:] or every_method)}
    error = 100 * (0.95 * 0.05 / simulations) ** 0.5
    sys.stdout.write(
        f"{simulations} simulations, {resamples} resamples; Monte Carlo error near 95 %: {error:.1f} points.\n"
    )
    for name in ("ordinal", "flag"):
        sys.stdout.write("\n".join(table(name, simulate(name, simulations, methods), list(methods))) + "\n")
        sys.stdout.flush()


def spelled(covered: list[float] | None) -> str:
    """Coverage of the intervals that are given, and in brackets the share of simulations without one."""
    if covered is None:
        return ""
    none = np.isnan(covered).mean()
    return f"{100 * np.nanmean(covered):.1f}" + (f" (none: {100 * none:.0f})" if none >= 0.005 else "")


def table(name: str, shares: Shares, methods: list[str]) -> list[str]:
    heads = [(method, str(size)) for method in methods for size in SIZES]
    titles = [f"{method} n={size}" for method, size in heads]
    out = ["", name, "", f"| figure | {' | '.join(titles)} |", "|---" * (len(heads) + 1) + "|"]
    for figure in dict.fromkeys(key[0] for key in shares):
        found = [shares.get((figure, *head)) for head in heads]
        out.append(f"| {figure} | " + " | ".join(map(spelled, found)) + " |")
    return out


if __name__ == "__main__":
    main(sys.argv[1:])
