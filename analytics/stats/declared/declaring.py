"""The declaration of a statistic, and of the report that computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from typing import Any, Literal

Option = Literal[
    "by",
    "pool",
    "statistics",
    "keeps",
    "bootstrap",
    "resamples",
    "confidence",
    "seed",
    "pairs",
    "goals",
    "against",
]
"""What a report may take beside its table: its statistics without prefix, a filter of variants, `resamples` where it
calls `bootstrap` so, `all` pairs of a large panel, the goals of a plan, the judge that others are compared with."""
Once = Literal[
    "judge",
    "panel and judges",
    "first judge",
    "pair of judges",
    "judges",
    "rule",
    "rules",
    "pair of panels",
    "measure",
    "measure and other",
]
"""What a report is computed once for, which it gets by keyword.

`judge`: each in turn, as `judge`; `panel and judges`: the same, after None for the panel; `first judge`: the first one,
or None; `pair of judges`: as `pair`; `judges`: all of them in one call. `rule`: each rule of reference, as `reference`
and `ties`, on the rows of its criteria; `rules`: all in one call, with their criteria. `pair of panels`: as `first` and
`second`. `measure`: each measure of the items; `measure and other`: `measure`, `other` and `is_measure`, for it and
each later one, the panel and each judge.
"""
Verdicts = Literal["none", "one", "one or all", "all"]
Written = Literal["coefficient", "share", "signed"]
Need = Literal["judge", "two judges", "measure"]
Better = Literal["", "higher", "lower", "zero"]
Items = Literal["", "two scores", "this score", "not compared"]


def translatable(text: str) -> str:
    """The text as it is; `manage.py catalogues` puts it into the catalogues of translations."""
    return text


@dataclass(frozen=True, slots=True)
class StatisticsReport:
    """A function that computes statistics from a ratings table, all of them in one pass, as `CellEstimate`s.

    `compute`: its module and name, as `analytics.stats.judge.consistency:consistency_report`. `prefix`: what stands
    before the names of its statistics where they are asked for. `takes`: the options that it is called with;
    `once_per`: it is called once for each combination of these. `reads`: columns that it reads beside those that every
    report reads. `verdicts`: of which judges it reads verdicts in one call. Called for no
    judge, `one` reads none, and `one or all` all of them.

    `across`: columns that it compares, so that they do not cut its table; `also_by`: columns that always do, unless
    it pools criteria. `is_whole`: its cells are computed together, because one may depend on another.
    `in_file_order`: the order of the rows counts. `needs_means`: it is for criteria whose mean says something alone.
    `fixed`: further arguments.

    Of its statistics: `group`, one of `register.GROUPS`; what all of them need; where docs/ explains them, file and
    heading.
    """

    name: str
    compute: str
    _: KW_ONLY
    group: str
    doc: str
    needs: tuple[Need, ...] = ()
    prefix: str = ""
    takes: tuple[Option, ...] = ("by", "pool")
    once_per: tuple[Once, ...] = ()
    reads: tuple[str, ...] = ()
    verdicts: Verdicts = "none"
    across: tuple[str, ...] = ()
    also_by: tuple[str, ...] = ()
    is_whole: bool = False
    in_file_order: bool = False
    needs_means: bool = False
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def function(self) -> Callable[..., Any]:
        """The function that computes it; only now pandas and scipy are loaded."""
        module, _, name = self.compute.partition(":")
        function: Callable[..., Any] = getattr(import_module(module), name)
        return function


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic, as it is asked for by `name`: `mae`, or `audit.flip_rate` of a report with a prefix.

    `title`: what pages and reports call it, in English, to translate; `short_title`: in narrow tables, if it is
    another; `symbol`: in the heading of a heat map. `written`: as 0.71, 71% or +0.12. `usual`: the variant that is
    shown unless others are asked for, by level of measurement. `better`: where a figure says something good.
    `part`: the column that tells several figures of one cell apart. `over_repeats`: its ratings are the repeats of one
    judge. `items`: which of a cell's items it rests on, where it is not all of them, or all that both sides scored.
    `is_coefficient`: a page on agreement may be about it alone. `is_chance_corrected`: 0 is agreement by chance;
    `counts_unused_points`: the chance follows from the number of points that its scale has. `prefers_bca`: if
    resampled, it gets BCa, because percentile intervals cover too little on small panels (docs/decisions/0009).
    `of_use`: the statistic that says the same of whether a criterion was answered or "not applicable". `reads`: columns
    that it alone reads. `kernel`: of a coefficient that follows from how many raters gave each point, its function in
    `stats.agreement.coefficients`; some have more in `coefficient_estimates`. `doc`: where docs/ explains it, if not
    where its report says.
    """

    name: str
    report: StatisticsReport
    title: str
    _: KW_ONLY
    short_title: str = ""
    symbol: str = ""
    written: Written = "coefficient"
    usual: Mapping[str, str] = field(default_factory=dict)
    better: Better = ""
    part: str = ""
    over_repeats: bool = False
    items: Items = ""
    is_coefficient: bool = False
    is_chance_corrected: bool = False
    counts_unused_points: bool = False
    prefers_bca: bool = False
    of_use: str = ""
    reads: tuple[str, ...] = ()
    kernel: str = ""
    doc: str = ""

    @property
    def plain(self) -> str:
        """Its name without the prefix: `Estimate.statistic` of its figures."""
        return self.name.removeprefix(self.report.prefix)
