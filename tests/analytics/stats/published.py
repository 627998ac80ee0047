"""Numbers printed in the literature, as data for the tests."""

from __future__ import annotations

import numpy as np

_ = np.nan

KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
).T
"""12 units x 4 coders (Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011)."""

_FLEISS_ROWS = """
00060 03003 01401 00006 03030 20400 00402 20310 20040 00006 10050 11040 03300 10050 02031
00501 30012 51000 02040 10203 00006 01050 02013 20040 10041 05010 40002 02040 10500 00006
"""
FLEISS = np.array([[int(digit) for digit in row] for row in _FLEISS_ROWS.split()])
"""30 patients x 5 diagnoses, 6 psychiatrists each (Fleiss 1971, Table 1): kappa .430."""

TEXTBOOK = np.array(
    [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
)
"""10 subjects x 5 categories, 14 raters: kappa .20993."""

SHROUT_FLEISS = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], dtype=float
)
"""6 targets x 4 judges (Shrout & Fleiss 1979, Table 2)."""

COHEN = np.array([[88, 14, 18], [10, 40, 10], [2, 6, 12]])
"""200 patients, two psychiatrists (Cohen 1968, Table 1): kappa .492; with its disagreement weights .348."""
