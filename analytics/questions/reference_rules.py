"""What a judge is compared with: the rules of the reference label."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analytics.stats.judge.reference import Ties

RULES: dict[str, tuple[str | None, Ties]] = {
    "": (None, "exclude"),
    "mode": ("mode", "exclude"),
    "mode_split": ("mode", "median"),
    "median": ("median", "exclude"),
    "mean": ("mean", "exclude"),
    "minimum": ("minimum", "exclude"),
    "each": ("each", "exclude"),
}
"""What a judge is compared with: the rule of the reference label and what a tied mode does. The first is the default of
each level of measurement: the mode, on interval scales the mean."""

OF_LEVELS = frozenset({"bias", "pearson", "spearman", "kendall_tau_b"})
"""Figures about the height of scores. On pages about a judge, their reference is the panel's mean (METHODS 2)."""


def usual_rule(level: str, *, of_classes: bool = False) -> str:
    """The rule of the reference label if nobody has chosen one, by level of measurement (METHODS 2).

    The mean for scores with an order. The mode for nominal labels, and for ordinal scores that count as classes
    (accuracy, kappa, F1, confusion, training labels).
    """
    return "mode" if level == "nominal" or (of_classes and level == "ordinal") else "mean"


NEEDS_ORDER = frozenset({"mode_split", "median", "mean", "minimum"})
"""On nominal criteria these have no meaning, and the mode is used."""
ADJUDICATED = ("adjudicated", "adjudicated_first")
"""Rules of the reference label that use adjudications: only adjudications, or adjudications first and otherwise the
mode."""
REFERENCES = (*(name for name in RULES if name), "dawid_skene", *ADJUDICATED)
TIES = ("exclude", "lower", "upper", "median")
