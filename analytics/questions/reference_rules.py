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
"""Figures of how high the scores are: the pages about a judge take them against the panel's mean (METHODS 2)."""


def usual_rule(level: str, *, of_classes: bool = False) -> str:
    """The rule of a figure or a list for which nobody has chosen one, by level of measurement (METHODS 2).

    The panel's mean of scores in order. The most frequent score of labels, and of points of a scale where they count as
    classes (accuracy, kappa, F1, confusion, training labels).
    """
    return "mode" if level == "nominal" or (of_classes and level == "ordinal") else "mean"


NEEDS_ORDER = frozenset({"mode_split", "median", "mean", "minimum"})
"""On nominal criteria these have no meaning, and the mode is used."""
ADJUDICATED = ("adjudicated", "adjudicated_first")
"""Rules of reference that read adjudications: nothing else, or before the mode."""
REFERENCES = (*(name for name in RULES if name), "dawid_skene", *ADJUDICATED)
TIES = ("exclude", "lower", "upper", "median")
