"""Single jobs that are far from the level around them.

Algorithm. The modified z-score of B. Iglewicz and D. Hoaglin, "How to Detect and Handle Outliers" (1993): the distance
from the median, over the median absolute distance scaled to the standard deviation of a normal distribution; beyond 3.5
a value is an outlier. Median and scale are those of a level between two changes, or of a window, so that a step of the
series makes no outliers. Performance is skewed: it falls further below its median than it rises above it. Where that
matters (`sided_z`) each side has its own scale, the median absolute distance of the values on that side.

Guarantees. Where most values are equal, so that there is no scale, nothing is an outlier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mpiio_ext.analytics.tables.arrays import Numbers

#: Modified z-score beyond which a value is an outlier.
LIMIT = 3.5


#: Standard deviations of a normal distribution in its median absolute deviation.
_NORMAL = 1.4826


def modified_z(distances: Numbers, spread: Numbers | float | None = None) -> Numbers:
    """Return the modified z-score of each value.

    Parameters
    ----------
    distances : numpy.ndarray, shape (jobs,)
        Of each value from its median; all known.
    spread : float or numpy.ndarray, optional
        Median absolute distance: one, or one for each value. Default: that of all.
    """
    if not len(distances):
        return distances
    scale = _NORMAL * np.asarray(np.median(np.abs(distances)) if spread is None else spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(scale > 0, distances / scale, 0.0)


def sided_z(distances: Numbers) -> Numbers:
    """Return the modified z-score of each value by the spread of the values on its own side of the median.

    Parameters
    ----------
    distances : numpy.ndarray, shape (jobs,)
        Of each value from the median of all; all known.
    """
    low, high = distances <= 0, distances >= 0
    out = np.zeros(len(distances))
    for side in (low, high):
        if side.any():
            out[side] = modified_z(distances[side])
    return out
