"""Which metrics differ between two sets of jobs: as SciPy's test says of each metric alone."""

from __future__ import annotations

import numpy as np
import pytest

from mpiio_ext.analytics.jobs.statistics.moved import compared
from mpiio_ext.analytics.jobs.table import Jobs


@pytest.mark.parametrize("seed", range(20))
def test_each_metric_is_tested_as_if_alone(seed: int) -> None:
    """Sets that are small or not, with ties and missing values or without, are tested in groups of equal sizes."""
    import scipy.stats

    source = np.random.default_rng(seed)
    ones, twos = (source.normal(size=(12, count)) for count in source.integers(5, 25, 2))
    for values in (ones, twos):
        values[::3] = np.round(values[::3])
        values[1::4, :2] = np.nan
    names = [f"metric{number}" for number in range(12)]
    found = compared(Jobs(dict(zip(names, ones, strict=True))), Jobs(dict(zip(names, twos, strict=True))), names)
    assert sorted(each.metric for each in found) == sorted(names)
    assert [abs(each.effect) for each in found] == sorted((abs(each.effect) for each in found), reverse=True)
    for each in found:
        one, two = (values[int(each.metric[6:])] for values in (ones, twos))
        one, two = one[~np.isnan(one)], two[~np.isnan(two)]
        wanted = scipy.stats.mannwhitneyu(two, one)
        assert each.p == pytest.approx(wanted.pvalue, rel=1e-12)
        assert each.effect == pytest.approx(2 * wanted.statistic / (len(one) * len(two)) - 1, rel=1e-12)
        assert (each.before, each.after) == (np.median(one), np.median(two))
