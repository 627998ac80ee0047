"""What somebody asks of a campaign's ratings: one value, the same in an address, a command, the API and an answer.

A question names judges, raters, rows, columns, filters, the rule of reference, exclusions and statistics. Its query
string is canonical: defaults are left out and parameters stand in a fixed order, so that equal questions have one
address and one digest.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any
from urllib.parse import urlencode

from analytics.questions.juries import jury_members
from analytics.questions.parameters import PARAMETERS
from analytics.questions.reference_rules import RULES
from analytics.stats.declared.register import statistics_that_need


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that a reader may choose. `raters`: pseudonyms of the annotators that count; if empty, all count.

    `blind_only`: ratings by people who could see verdicts do not count. `reference`: one of `RULES`.
    """

    raters: tuple[str, ...] = ()
    blind_only: bool = False
    reference: str = ""
    bootstrap: int = 2000
    confidence: float = 0.95
    seed: int = 20260101

    @property
    def digest(self) -> str:
        """The digest of all settings: part of a snapshot's key."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def described(self) -> dict[str, Any]:
        """How the content of a snapshot names its settings."""
        return {"settings": asdict(self)}


DEFAULT_SETTINGS = Settings()


@dataclass(frozen=True, slots=True, kw_only=True)
class NumbersQuestion(Settings):
    """A question about a campaign's ratings; its answer is a matrix of estimates for each statistic.

    `where`: pairs of a column and a value; several of one column: any of them. `judges`: names; if empty, all judges.
    `runs`: numbers of judge runs, or `each`; if empty, one run of each judge (`raters.newest_runs`). `panels`: names.
    `variants`: only these variants of a statistic; if empty, the usual variant if the statistic has one. `reference`:
    one of `REFERENCES`, or empty as in `RULES`; `ties`: what the mode does with a tie. `pool`: criteria are pooled.
    `exclude`: what else is left out, of `exclusions.EXCLUSIONS`. `min_seconds`: ratings of items that took less time do
    not count. `level`: measure all criteria at this level. `against`: the judge that others are compared with in
    `comparison`. `juries`: groups of judges, each read as one additional judge by the rule `jury_rule`; each is a line
    of CSV with the judges' names. `measures`: numeric attributes and measures of the items' texts that are set beside
    scores and ranked. `cluster`: `item` treats items as independent of each other, also the items of one scenario.
    `goals`: pairs of a goal of a plan and its value (`planning`). `pairs`: `all` lists the pairs of more than 24
    raters. `designs`: if no judge and no run is chosen, judges that are only cells of designs count, too.
    """

    rows: str = "criterion"
    columns: str = "language"
    where: tuple[tuple[str, str], ...] = ()
    statistics: tuple[str, ...] = ("krippendorff_alpha",)
    variants: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    panels: tuple[str, ...] = ()
    juries: tuple[str, ...] = ()
    jury_rule: str = "majority"
    against: str = ""
    measures: tuple[str, ...] = ()
    goals: tuple[tuple[str, str], ...] = ()
    cluster: str = ""
    ties: str = "exclude"
    pool: bool = False
    exclude: tuple[str, ...] = ()
    min_seconds: float = 0.0
    level: str = ""
    designs: bool = False
    pairs: str = ""

    @property
    def query(self) -> str:
        """The canonical query string; empty for the default question."""
        return urlencode(pairs_of(self))

    @property
    def described(self) -> dict[str, Any]:
        return {"question": self.as_json, "query": self.query}

    @property
    def as_json(self) -> dict[str, Any]:
        """Its fields as plain values, lists for tuples."""
        return {name: json.loads(json.dumps(value)) for name, value in asdict(self).items()}

    @property
    def rule(self) -> tuple[str | None, str]:
        """The rule of the reference label, None for the default of each level, and what a tied mode does."""
        rule, ties = RULES.get(self.reference, (self.reference, "exclude"))
        return rule, self.ties if ties == "exclude" else ties

    @property
    def jury_members(self) -> list[tuple[str, ...]]:
        """The names of each jury's members."""
        return [jury_members(text) for text in self.juries]

    @property
    def judges_named(self) -> frozenset[str]:
        """The judges that the question names, including the members of juries."""
        members = (name for names in self.jury_members for name in names)
        return frozenset(filter(None, (*self.judges, *members, self.against)))

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Rows and columns, without an empty one."""
        return tuple(dict.fromkeys(name for name in (self.rows, self.columns) if name))

    @property
    def needs_judge(self) -> bool:
        return bool(statistics_that_need("judge").intersection(self.statistics))


DEFAULTS = {field.name: field.default for field in fields(NumbersQuestion) if field.default is not MISSING}


def pairs_of(question: NumbersQuestion) -> list[tuple[str, str]]:
    """A question as parameters in canonical order, without default values."""
    values = [(parameter, getattr(question, parameter.field)) for parameter in PARAMETERS.values()]
    return [
        (parameter.name, text)
        for parameter, value in values
        if value != DEFAULTS[parameter.field]
        for text in parameter.texts(value)
    ]
