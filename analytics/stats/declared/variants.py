"""The variants that are shown unless others are asked for, by level of measurement."""

from __future__ import annotations

UNEQUAL = dict.fromkeys(("nominal", "ordinal", "interval"), "unequal")
WEIGHTED_AC = {"nominal": "identity", "ordinal": "ordinal", "interval": "quadratic"}
QUADRATIC = {"nominal": "identity", "ordinal": "quadratic", "interval": "quadratic"}
WEIGHTED_KAPPA = {"nominal": "unweighted", "ordinal": "quadratic", "interval": "quadratic"}
