"""Arrays as the annotations of all statistics name them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
"""Places in a list: of points, raters, items, clusters."""
Integers = NDArray[np.integer]
