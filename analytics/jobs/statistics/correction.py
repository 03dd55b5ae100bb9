"""Correction for testing many hypotheses at once: Benjamini and Hochberg's, of SciPy.

Tables of correlations and of metrics that moved are screenings: dozens of metrics in dozens of histories, of which a
person looks at those that stand out. What matters there is the share of false ones among those that are listed, which
the false discovery rate of Benjamini and Hochberg (1995) limits. It holds for metrics that depend on each other
positively, as loads of the same servers do (Benjamini and Yekutieli, 2001). Holm's method limits the chance of a single
false one among all tests instead, and so leaves out most of what is there. It would also need statsmodels, with pandas
and patsy behind it; `scipy.stats.false_discovery_control` is there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def corrected(values: Sequence[float]) -> list[float]:
    """Return the p-values adjusted by Benjamini and Hochberg's procedure; NaN, a test that was not made, stays NaN."""
    import scipy.stats

    given = np.asarray(values, dtype=np.float64)
    out = np.full(len(given), np.nan)
    known = ~np.isnan(given)
    if known.any():
        out[known] = scipy.stats.false_discovery_control(given[known], method="bh")
    return [float(value) for value in out]
