"""What other people's packages give for tables of scores: tables as JSON on standard input, figures on standard output.

``bench/against_others.py`` runs this file with an interpreter that has the packages; nothing of Panelbench is imported.
Scores are an (items, raters) list with null where missing. A figure is named statistic|variant|level|pair|field; its
value is a number, or null where the package gives none. The name of the package stands beside it.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

PACKAGES = ("irrCAC", "krippendorff", "pingouin", "statsmodels", "scikit-learn", "pandas", "scipy", "numpy")
LEVELS = ("nominal", "ordinal", "interval", "ratio")
WEIGHTINGS = ("identity", "linear", "quadratic", "ordinal")
FORMS = {"1,1": "ICC(1,1)", "2,1": "ICC(A,1)", "3,1": "ICC(C,1)", "1,k": "ICC(1,k)", "2,k": "ICC(A,k)",
         "3,k": "ICC(C,k)"}  # fmt: skip
MOST_IN_LINEAR_MODEL = 2000
MOST_FITTED = 60
"""Balanced tables of no more scores are fitted by MixedLM too; more take long."""
Found = Iterator[tuple[str, str, float | None]]


def figure_key(statistic: str, variant: str = "", level: str = "", pair: str = "", field: str = "value") -> str:
    return f"{statistic}|{variant}|{level}|{pair}|{field}"


def categorical(scores: np.ndarray[Any, Any], points: list[float]) -> Found:
    """Agreement on a declared list of points."""
    yield from _by_irrcac(scores, points)
    yield from _by_hand(scores)
    for level in LEVELS:
        yield figure_key("krippendorff_alpha", "", level), "krippendorff", _alpha(scores, level, points)
    for a, b in itertools.combinations(range(scores.shape[1]), 2):
        yield from _cohen(scores[:, [a, b]], points, f"{a + 1}-{b + 1}")


def _by_irrcac(scores: np.ndarray[Any, Any], points: list[float]) -> Found:
    cac, frame = import_module("irrCAC.raw").CAC, import_module("pandas").DataFrame
    rated = scores[~np.isnan(scores).all(axis=1)]

    def made(weights: Any, rows: np.ndarray[Any, Any] = rated) -> Any:
        return cac(frame(rows.copy()), weights=weights, categories=list(points), digits=15)

    for name in WEIGHTINGS:
        for statistic, method in (("gwet_ac", "gwet"), ("brennan_prediger", "bp"), ("conger_kappa", "conger")):
            found = _estimate(getattr(made(name), method))
            yield figure_key(statistic, name), "irrCAC", found["coefficient_value"]
            yield figure_key(statistic, name, field="se"), "irrCAC", found["se"]
    step = np.abs(np.subtract.outer(np.arange(len(points)), np.arange(len(points))))
    yield figure_key("percent_agreement"), "irrCAC", _estimate(made("identity").bp)["pa"]
    yield figure_key("percent_agreement_adjacent"), "irrCAC", _estimate(made((step <= 1).astype(float)).gwet)["pa"]
    whole = rated[~np.isnan(rated).any(axis=1)]
    for variant, rows in (("unequal", rated), ("complete", whole)):
        if len(rows) < 2:
            continue
        found = _estimate(made("identity", rows).fleiss)
        yield figure_key("fleiss_kappa", variant), "irrCAC", found["coefficient_value"]
        yield figure_key("fleiss_kappa", variant, field="se"), "irrCAC", found["se"]
    for level, name in (("nominal", "identity"), ("interval", "quadratic")):
        found = _estimate(made(name).krippendorff)
        yield figure_key("krippendorff_alpha", "", level), "irrCAC", found["coefficient_value"]
    if len(whole) >= 2:
        tools = import_module("statsmodels.stats.inter_rater")
        counts = np.stack([(whole == point).sum(axis=1) for point in points], axis=1)
        yield figure_key("fleiss_kappa", "complete"), "statsmodels", float(tools.fleiss_kappa(counts))


def _estimate(method: Callable[[], dict[str, Any]]) -> dict[str, float | None]:
    """A coefficient of irrCAC, or nothing where it divides by 0 because chance alone agrees always."""
    try:
        return dict(method()["est"])
    except ZeroDivisionError:
        return {"coefficient_value": None, "se": None, "pa": None}


def _by_hand(scores: np.ndarray[Any, Any]) -> Found:
    """Two shares that no package has, pair by pair."""
    agreeing, unanimous = [], []
    for row in scores:
        given = row[~np.isnan(row)]
        pairs = [float(a == b) for a, b in itertools.combinations(given, 2)]
        agreeing += pairs
        unanimous += [float(all(pairs))] if pairs else []
    yield figure_key("percent_agreement_pooled"), "pairs counted here", _mean(agreeing)
    yield figure_key("percent_agreement_exact"), "pairs counted here", _mean(unanimous)


def _mean(numbers: list[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def _alpha(scores: np.ndarray[Any, Any], level: str, points: list[float] | None) -> float | None:
    found = import_module("krippendorff").alpha(
        reliability_data=scores.T, value_domain=points, level_of_measurement=level
    )
    return float(found)


def _cohen(pair: np.ndarray[Any, Any], points: list[float], name: str) -> Found:
    both = pair[~np.isnan(pair).any(axis=1)]
    if len(both) < 2:
        return
    place = {point: index for index, point in enumerate(points)}
    a, b = ([place[score] for score in column] for column in both.T)
    table = np.zeros((len(points), len(points)))
    np.add.at(table, (a, b), 1)
    kappa = import_module("statsmodels.stats.inter_rater").cohens_kappa
    for variant, wt in (("unweighted", None), ("linear", "linear"), ("quadratic", "quadratic")):
        found = kappa(table, weights=None if wt is None else np.array(points), wt=wt)
        yield figure_key("cohen_kappa", variant, "", name), "statsmodels", found.kappa
        yield figure_key("cohen_kappa", variant, "", name, "se"), "statsmodels", math.sqrt(max(found.var_kappa, 0.0))
    if len(set(np.diff(points))) == 1:
        score = import_module("sklearn.metrics").cohen_kappa_score
        for variant, wt in (("unweighted", None), ("linear", "linear"), ("quadratic", "quadratic")):
            yield (figure_key("cohen_kappa", variant, "", name), "scikit-learn",
                   score(a, b, weights=wt, labels=list(range(len(points)))))  # fmt: skip


def numeric(scores: np.ndarray[Any, Any], name: str) -> Found:
    """Intraclass correlations of complete rows and variance components of all."""
    whole = scores[~np.isnan(scores).any(axis=1)]
    if len(whole) >= 2:
        yield from _icc(whole)
    if name != "large":
        components = henderson(scores)
        for part, value in zip(("item", "rater", "residual"), components, strict=True):
            yield figure_key("variance_component", part), "quadratic forms made here", max(float(value), 0.0)
    if len(whole) == len(scores):
        yield from _balanced(scores)


def _icc(whole: np.ndarray[Any, Any]) -> Found:
    pingouin, pandas = import_module("pingouin"), import_module("pandas")
    pingouin.options["round.column.CI95"] = None
    n, k = whole.shape
    long = pandas.DataFrame(
        {"item": np.repeat(np.arange(n), k), "rater": np.tile(np.arange(k), n), "score": whole.ravel()}
    )
    found = pingouin.intraclass_corr(long, targets="item", raters="rater", ratings="score").set_index("Type")
    for form, label in FORMS.items():
        yield figure_key("icc", form), "pingouin", found.loc[label, "ICC"]
        low, high = found.loc[label, "CI95"]
        yield figure_key("icc", form, field="low"), "pingouin", low
        yield figure_key("icc", form, field="high"), "pingouin", high


def henderson(scores: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Variances of items, raters and the rest: sums of squares equated with their expectations, from matrices.

    Each sum of squares is y' Q y with a projection Q, and E[y' Q y] = tr(Q V) + mu^2 1'Q1 with V = sum of s_c Z_c Z_c'.
    """
    item, rater = np.nonzero(~np.isnan(scores))
    y = scores[item, rater] - np.nanmean(scores)
    mean = np.ones((len(y), 1))
    designs = [(codes[:, None] == np.unique(codes)).astype(float) for codes in (item, rater)]
    parts = [*designs, np.eye(len(y))]
    quadratic = [onto @ np.linalg.pinv(onto) - mean @ mean.T / len(y) for onto in parts]
    expected = [[np.trace(z.T @ q @ z) for z in parts] for q in quadratic]
    return np.linalg.solve(np.array(expected), np.array([y @ q @ y for q in quadratic]))


def _balanced(scores: np.ndarray[Any, Any]) -> Found:
    """Complete tables: mean squares of a two-way analysis of variance, and REML where no variance is at 0."""
    pandas, formula = import_module("pandas"), import_module("statsmodels.formula.api")
    n, k = scores.shape
    item, rater = np.indices(scores.shape)
    long = pandas.DataFrame({"item": item.ravel(), "rater": rater.ravel(), "score": scores.ravel(), "one": 1})
    if scores.size <= MOST_IN_LINEAR_MODEL:
        fitted = formula.ols("score ~ C(item) + C(rater)", long).fit()
        anova, package = import_module("statsmodels.stats.anova").anova_lm(fitted), "statsmodels anova_lm"
        bms, jms, ems = (anova["sum_sq"] / anova["df"]).to_numpy()
    else:
        anova, package = import_module("pingouin").anova(long, dv="score", between=["item", "rater"]), "pingouin anova"
        bms, jms, ems = anova["MS"].iloc[0], anova["MS"].iloc[1], anova["SS"].iloc[2:].sum() / ((n - 1) * (k - 1))
    for part, value in (("item", (bms - ems) / k), ("rater", (jms - ems) / n), ("residual", ems)):
        yield figure_key("variance_component", part), package, max(value, 0.0)
    if min(bms - ems, jms - ems) > 0.2 * ems and scores.size <= MOST_FITTED:
        unit = float(np.std(scores))
        mixed = formula.mixedlm(
            "score ~ 1", long.assign(score=(long["score"] - long["score"].mean()) / unit), groups="one", re_formula="0",
            vc_formula={"item": "0 + C(item)", "rater": "0 + C(rater)"},
        )  # fmt: skip
        fit = mixed.fit(reml=True, method="bfgs", gtol=1e-9, maxiter=200)
        for part, value in zip(("item", "rater"), fit.vcomp, strict=True):
            yield figure_key("variance_component", part), "statsmodels MixedLM", float(value) * unit**2
        yield figure_key("variance_component", "residual"), "statsmodels MixedLM", float(fit.scale) * unit**2
    if min(bms - ems, jms - ems) > 0:
        ((_, _, value),) = (found for found in _icc(scores) if found[0] == figure_key("icc", "2,k"))
        yield figure_key("panel_reliability", str(k)), "pingouin", value


def continuous(scores: np.ndarray[Any, Any]) -> Found:
    for level in ("interval", "ratio"):
        if level == "interval" or np.nanmin(scores) >= 0:
            yield figure_key("krippendorff_alpha", "", level), "krippendorff", _alpha(scores, level, None)


def package_figures(table: dict[str, Any]) -> list[tuple[str, str, float | None]]:
    """All figures of one table; a package's exception is the figure's value null with the words beside it."""
    scores = np.array(table["scores"], dtype=float)
    parts: list[Callable[[], Found]] = [lambda: numeric(scores, table["name"])]
    if table["points"]:
        parts.append(lambda: categorical(scores, table["points"]))
    elif table["name"] != "large":
        parts.append(lambda: continuous(scores))
    found: list[tuple[str, str, float | None]] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for part in parts:
            found += [(name, package, _number(value)) for name, package, value in part()]
    return found


def _number(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _main() -> None:
    """Versions and figures of every table, one JSON document."""
    tables = json.load(sys.stdin)
    versions = {name: version(name) for name in PACKAGES}
    if int(versions["pandas"].partition(".")[0]) >= 3:
        sys.exit("irrCAC gives wrong values with pandas 3: install 'pandas<3' beside it")
    for name in ("irrCAC.raw", "krippendorff", "pingouin", "statsmodels", "sklearn"):
        import_module(name)
    output = {
        "python": sys.version.split()[0],
        "versions": versions,
        "tables": [package_figures(table) for table in tables],
    }
    sys.stdout.write(json.dumps(output))


if __name__ == "__main__":
    _main()
