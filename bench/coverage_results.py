"""Do the intervals of corrected results, macro means and preferences cover? ``python -m bench.coverage_results [N]``.

The processes are not those that the methods assume. Means: scores are cut from normal qualities with a scenario's
share, the judge shrinks them, errs alike within a scenario and is more lenient in one language of four. Task types: a
rare type of another level, on which the judge is off by a point. Preferences: generators whose strengths differ between
scenarios, ties that depend on the pair, three raters with a favourite each. Truth: one sample of very many scenarios.
Printed: coverage, its Monte Carlo error, samples without an interval, the mean width, how many say "approximate".
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from analytics.stats.core.estimates import CellEstimate
from analytics.stats.core.scales import Scale
from analytics.stats.core.tables import RatingsTable
from analytics.stats.core.validation import ratings_table
from analytics.stats.judge.leaderboard import leaderboard_report
from analytics.stats.ranking.preferences import preference_report

SCALES = {
    "clarity": Scale(points=(0.0, 1.0, 2.0, 3.0, 4.0), level="ordinal"),
    "better": Scale(points=(1.0, 1.5, 2.0), level="ordinal"),
}
LANGUAGES = ("en", "et", "fi", "sw")
LIFT = {"en": 0.0, "et": 0.1, "fi": -0.1, "sw": 1.0}
"""How much more lenient the judge is; people find Swahili worse by as much."""
TYPES = {"chat": (0.7, 2.6, 0.0), "poem": (0.2, 1.8, 0.3), "code": (0.1, 3.0, -1.0)}
"""By task type: its share, its level, and the judge's error there."""
ABILITY = {"atlas": 0.7, "birch": 0.1, "cedar": -0.2, "dune": -0.6}
Made = Callable[[int, int, np.random.Generator], RatingsTable]
Reported = Callable[[RatingsTable, int], list[CellEstimate]]


def _frame(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({"criterion": "clarity", "generator": "atlas", "repeat": 1, **columns})


def languages_made(scenarios: int, labelled: int, rng: np.random.Generator) -> RatingsTable:
    """One generator's answers in four languages to the same scenarios; three people label some of them, a judge all."""
    parts, place = [], np.arange(scenarios)
    theme, slip = rng.normal(0, 0.7, scenarios), rng.normal(0, 0.4, scenarios)
    for tag in LANGUAGES:
        own = rng.permutation(scenarios) < labelled
        quality = 2.3 - LIFT[tag] / 2 + theme + rng.normal(0, 0.6, scenarios)
        raters = {f"p{n}": (own, quality + rng.normal(0, 0.7, scenarios)) for n in range(3)}
        judge = 1 + LIFT[tag] + 0.6 * quality + slip + rng.normal(0, 0.4, scenarios)
        for rater, (there, score) in {**raters, "judge": (np.ones(scenarios, bool), judge)}.items():
            items = [f"{tag}-{n}" for n in place[there]]
            kind = "judge" if rater == "judge" else "annotator"
            about = {"item": items, "cluster": [f"s{n}" for n in place[there]], "language": tag, "rater_kind": kind}
            parts.append(_frame(**about, rater=rater, score=np.clip(np.rint(score[there]), 0, 4)))
    return ratings_table(pd.concat(parts, ignore_index=True), scales=SCALES)


def tasks_made(scenarios: int, labelled: int, rng: np.random.Generator) -> RatingsTable:
    """Two items of each scenario, three task types of unequal size; at least two labels in each."""
    names = list(TYPES)
    kind = np.repeat(rng.choice(3, scenarios, p=[TYPES[name][0] for name in names]), 2)
    kind[:6] = [0, 0, 1, 1, 2, 2]
    cluster = np.repeat(np.arange(scenarios), 2)
    level, error = (np.array([TYPES[name][k] for name in names])[kind] for k in (1, 2))
    quality = level + rng.normal(0, 0.5, scenarios)[cluster] + rng.normal(0, 0.6, 2 * scenarios)
    drawn = np.repeat(rng.permutation(scenarios) < labelled // 2, 2)
    drawn[:6] = True
    judge = 0.8 + error + 0.7 * quality + rng.normal(0, 0.3, scenarios)[cluster] + rng.normal(0, 0.4, 2 * scenarios)
    raters = {f"p{n}": (drawn, quality + rng.normal(0, 0.7, 2 * scenarios)) for n in range(3)}
    parts = []
    for rater, (there, score) in {**raters, "judge": (np.ones(2 * scenarios, bool), judge)}.items():
        own = np.flatnonzero(there)
        about = {"item": [f"i{n}" for n in own], "cluster": cluster[own], "language": "en", "rater": rater}
        about |= {"rater_kind": "judge" if rater == "judge" else "annotator", "task_type": np.array(names)[kind[own]]}
        parts.append(_frame(**about, score=np.clip(np.rint(score[own]), 0, 4)))
    return ratings_table(pd.concat(parts, ignore_index=True), scales=SCALES)


def preferences_made(scenarios: int, per_scenario: int, rng: np.random.Generator) -> RatingsTable:
    """Pairs of four generators; a scenario moves the strengths of all its pairs, each rater has a favourite."""
    names, n = list(ABILITY), scenarios * per_scenario
    cluster = np.repeat(np.arange(scenarios), per_scenario)
    a = rng.integers(0, 4, n)
    b = (a + rng.integers(1, 4, n)) % 4
    own = np.array(list(ABILITY.values())) + rng.normal(0, 0.8, (scenarios, 4))
    gap = own[cluster, a] - own[cluster, b]
    parts = []
    for rater, favourite in enumerate((0, 2, 3)):
        lean = gap + 0.4 * ((a == favourite).astype(float) - (b == favourite)) + rng.logistic(0, 1, n)
        tie = np.abs(lean) < 0.2 + 0.3 * ((a + b) % 2)
        score = np.where(tie, 1.5, np.where(lean > 0, 1.0, 2.0))
        about = {"item": np.arange(n), "cluster": cluster, "language": "en", "rater": f"p{rater}"}
        about |= {"rater_kind": "annotator", "model_a": np.array(names)[a], "model_b": np.array(names)[b]}
        parts.append(pd.DataFrame({**about, "criterion": "better", "repeat": 1, "score": score}))
    return ratings_table(pd.concat(parts, ignore_index=True), scales=SCALES)


def shrunk(rows: list[CellEstimate]) -> list[CellEstimate]:
    """What the page does not offer: means of languages drawn towards their mean, by n / (n + 20), with their errors."""
    means = [row for row in rows if row.estimate.statistic == "corrected_mean" and row.estimate.low is not None]
    if len(means) < len(LANGUAGES):
        return []
    centre = float(np.mean([row.estimate.value or 0.0 for row in means]))
    found = []
    for row in means:
        e = row.estimate
        share = e.n_items / (e.n_items + 20)
        value = share * (e.value or 0.0) + (1 - share) * centre
        half = share * ((e.high or 0.0) - (e.low or 0.0)) / 2
        changed = e.with_(statistic="mean itself drawn (not offered)", value=value, low=value - half, high=value + half)
        found.append(CellEstimate(estimate=changed, cell=row.cell, judge=row.judge))
    return found


def of_languages(table: RatingsTable, seed: int) -> list[CellEstimate]:
    rows = leaderboard_report(table, judge="judge", seed=seed)
    kept = [row for row in rows if row.estimate.statistic in ("panel_mean", "corrected_mean", "pooled_mean")]
    return [*kept, *shrunk(rows)]


def of_tasks(table: RatingsTable, seed: int) -> list[CellEstimate]:
    rows = leaderboard_report(table, judge="judge", seed=seed)
    return [row for row in rows if row.estimate.statistic in ("panel_mean", "corrected_mean", "macro_mean")]


def of_preferences(table: RatingsTable, seed: int) -> list[CellEstimate]:
    # One generator at a time: at 1 - .2 / 4 each strength has its own 95 % interval.
    simple = preference_report(table, confidence=0.8)
    shares = [row for row in preference_report(table) if row.estimate.statistic in ("win", "tie")]
    return [*(row for row in simple if row.estimate.statistic == "strength"), *shares]


PROCESSES: tuple[tuple[str, Made, Reported, tuple[tuple[int, int], ...], int], ...] = (
    ("four languages", languages_made, of_languages, ((120, 20), (120, 30), (120, 60)), 30_000),
    ("task types", tasks_made, of_tasks, ((100, 40), (200, 80), (200, 160)), 30_000),
    ("preferences", preferences_made, of_preferences, ((15, 4), (40, 2), (60, 4), (200, 2)), 20_000),
)


def _key(row: CellEstimate) -> tuple[str, ...]:
    e = row.estimate
    return e.statistic, *(str(row.cell.get(name) or "") for name in ("language", "generator")), e.variant or ""


def result_coverage(simulations: int) -> Iterator[str]:
    """The table, a row for each process, size and statistic."""
    yield "| process | scenarios | labels, pairs | statistic | coverage | error | without | mean width | approximate |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, made, reported, sizes, many in PROCESSES:
        whole = made(many, many if name != "preferences" else 4, np.random.default_rng(1))
        truth = _truth(reported, whole)
        for scenarios, labelled in sizes:
            rng = np.random.default_rng(scenarios + labelled)
            held: dict[str, list[bool]] = defaultdict(list)
            rest: dict[str, list[tuple[float, bool]]] = defaultdict(list)
            without: dict[str, int] = defaultdict(int)
            for _ in range(simulations):
                for row in reported(made(scenarios, labelled, rng), int(rng.integers(2**31))):
                    e, true = row.estimate, truth.get(_key(row))
                    statistic = f"{e.statistic}{' (sw)' if row.cell.get('language') == 'sw' else ''}"
                    if e.low is None or e.high is None or true is None:
                        without[statistic] += 1
                        continue
                    held[statistic].append(e.low <= true <= e.high)
                    rest[statistic].append((e.high - e.low, "approximate" in (e.method or "")))
            for statistic in sorted(held | without):
                yield _line(name, scenarios, labelled, statistic, held[statistic], rest[statistic], without[statistic])


def _truth(reported: Reported, whole: RatingsTable) -> dict[tuple[str, ...], float]:
    """The figures of the large sample; corrected means are about the panel's mean."""
    found = {_key(row): row.estimate.value for row in reported(whole, 0) if row.estimate.value is not None}
    for key, value in list(found.items()):
        if key[0] == "panel_mean":
            for name in ("corrected_mean", "pooled_mean", "mean itself drawn (not offered)"):
                found[(name, *key[1:])] = value
    return {key: float(value) for key, value in found.items()}


def _line(
    name: str,
    scenarios: int,
    labelled: int,
    statistic: str,
    hits: list[bool],
    rest: list[tuple[float, bool]],
    none: int,
) -> str:
    total = len(hits) + none
    if not hits:
        return f"| {name} | {scenarios} | {labelled} | {statistic} | | | {none / total:.3f} | | |"
    share = float(np.mean(hits))
    error = np.sqrt(share * (1 - share) / len(hits))
    width, marked = np.array(rest).mean(axis=0)
    cells = (
        name,
        scenarios,
        labelled,
        statistic,
        f"{share:.3f}",
        f"{error:.3f}",
        f"{none / total:.3f}",
        f"{width:.2f}",
    )
    return f"| {' | '.join(map(str, cells))} | {marked:.0%} |"


if __name__ == "__main__":
    for line in result_coverage(int(sys.argv[1]) if len(sys.argv) > 1 else 2000):
        print(line, flush=True)
