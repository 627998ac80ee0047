"""Do the intervals of models of raters cover? ``python -m bench.coverage_raters [SIMULATIONS]``.

The processes are not those that the models assume: scores are cut from normal qualities that the items of a cluster
share, raters differ in severity and in how far they agree with anybody, one uses the middle of the scale only, and each
item has three of five raters (a judge scores all). Truth: the figure on one sample of very many clusters with the same
raters and languages, since intervals are for these raters. Printed: coverage, its Monte Carlo error, the share of
samples without an interval, the mean width.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pandas as pd

from analytics.stats.agreement.generalizability import generalizability_report
from analytics.stats.agreement.rasch import rasch_report
from analytics.stats.core.estimates import Estimate
from analytics.stats.core.scales import scale_of
from analytics.stats.core.tables import RatingsTable
from analytics.stats.core.validation import ratings_table

SCALE = {"tone": scale_of((1.0, 2.0, 3.0, 4.0, 5.0), "ordinal")}
CLUSTERS = (15, 30, 60, 120)
SEVERITY, NOISE, REACH = (-0.5, -0.1, 0.0, 0.2, 0.4), (0.5, 0.7, 0.6, 1.2, 0.6), (1.0, 1.0, 1.0, 1.0, 0.5)


def rated_clusters(clusters: int, rng: np.random.Generator, *, per_cluster: int, skewed: bool) -> RatingsTable:
    """Ratings of the items of some clusters, in two languages in turn; ``skewed``: most items are good."""
    n = clusters * per_cluster
    cluster = np.repeat(np.arange(clusters), per_cluster)
    quality = 0.7 * rng.normal(size=clusters)[cluster] + 0.7 * rng.normal(size=n)
    if skewed:
        quality = 1.4 - np.exp(quality)
    language = cluster % 2
    parts = []
    drawn = rng.random((n, 5)).argsort(axis=1)[:, :3]
    for rater in range(6):
        own = np.flatnonzero((drawn == rater).any(axis=1)) if rater < 5 else np.arange(n)
        lift, noise, reach = (SEVERITY[rater], NOISE[rater], REACH[rater]) if rater < 5 else (0.3, 0.4, 0.7)
        seen = reach * (quality[own] + 0.3 * language[own]) + lift + noise * rng.normal(size=len(own))
        score = np.clip(np.round(3 + seen), 1, 5)
        kind = {"rater": f"r{rater}", "rater_kind": "annotator" if rater < 5 else "judge"}
        rows = {"item": own, "cluster": cluster[own], "language": np.array(["et", "fi"])[language[own]], "score": score}
        parts.append(pd.DataFrame({**rows, **kind, "criterion": "tone"}))
    return ratings_table(pd.concat(parts, ignore_index=True), scales=SCALE)


def rater_figures(table: RatingsTable) -> Iterator[tuple[str, Estimate]]:
    """The figures that the page Rater models prints with intervals."""
    for row in rasch_report(table, statistics=("rasch_severity",)):
        yield f"rasch_severity {row.annotator}", row.estimate
    for row in generalizability_report(table):
        if row.estimate.statistic == "variance_share" or row.estimate.variant in ("1", "3"):
            yield f"{row.estimate.statistic} {row.estimate.variant}", row.estimate


def rater_coverage(simulations: int, size: int) -> Iterator[str]:
    """The table, a row for each process, number of clusters and figure."""
    yield "| process | clusters | figure | coverage | error | without | mean width |"
    yield "|---|---|---|---|---|---|---|"
    for per_cluster, skewed in ((1, False), (4, False), (4, True)):
        source = f"{per_cluster} to a cluster{', skewed' if skewed else ''}"
        how = {"per_cluster": per_cluster, "skewed": skewed}
        truth = {name: e.value for name, e in rater_figures(rated_clusters(size, np.random.default_rng(1), **how))}  # type: ignore[arg-type]
        for clusters in CLUSTERS:
            rng = np.random.default_rng(clusters)
            held: dict[str, list[bool]] = defaultdict(list)
            widths: dict[str, list[float]] = defaultdict(list)
            for _ in range(simulations):
                for name, e in rater_figures(rated_clusters(clusters, rng, **how)):  # type: ignore[arg-type]
                    if e.low is not None and e.high is not None:
                        held[name].append(e.low <= (truth[name] or 0.0) <= e.high)
                        widths[name].append(e.high - e.low)
            for name, hits in held.items():
                share = float(np.mean(hits))
                error = np.sqrt(share * (1 - share) / len(hits))
                none = 1 - len(hits) / simulations
                cells = (source, str(clusters), name, f"{share:.3f}", f"{error:.3f}", f"{none:.3f}")
                yield f"| {' | '.join(cells)} | {np.mean(widths[name]):.2f} |"


if __name__ == "__main__":
    for line in rater_coverage(int([*sys.argv, "400"][1]), 8000):
        print(line, flush=True)
