"""The size of file that a slow native path can afford.

Before a native method is measured on a pattern, it is tried on 1/64, 1/16 and 1/4 of the size. The growth of its time
gives the full time. If that exceeds the limit, the largest affordable fraction is measured instead. Its rows are
marked as scaled, and ratios compare bandwidths. A kernel has the size that it has.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

from mpiio_ext.bench.execution.case import Case
from mpiio_ext.bench.kernels import create_patterns
from mpiio_ext.errors import ArgumentError

_SMALLEST_TRIAL_BYTES = 256 << 10
_FRACTIONS = (64, 16, 4, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeLimit:
    """Limits of the cost of native methods.

    Attributes
    ----------
    seconds : longest time of a native write and read; 0 = no limit
    file_bytes : file size for the native methods; 0 = as the others
    """

    seconds: float = 6.0
    file_bytes: int = 0


def _smaller(case: Case, file_bytes: int, ranks: int) -> Case | None:
    """Return the case with another file size, or None when the geometry does not allow it."""
    assert case.sizes is not None
    sizes = dataclasses.replace(case.sizes, file_bytes=file_bytes)
    try:
        variants = create_patterns((case.program.name,), sizes, ranks)
    except ValueError:
        return None
    return next((dataclasses.replace(case, program=v) for v in variants if v.key == case.program.key), None)


def scaled(case: Case, share: float, ranks: int) -> Case:
    """Return the case with about that share of its data, or as it is if it has one size."""
    if case.sizes is not None:
        return _smaller(case, round(share * case.sizes.file_bytes), ranks) or case
    assert case.request is not None
    request = dataclasses.replace(case.request, scale=share * case.request.scale)
    try:
        return dataclasses.replace(case, request=request, program=request.create(ranks))
    except ArgumentError:
        return case


def affordable(case: Case, ranks: int, limit: NativeLimit, trial: Callable[[Case], float]) -> Case:
    """Return the case at the size at which a native method can afford it.

    Parameters
    ----------
    case : what is to be measured; returned as it is where it can be
    ranks : that are there
    limit : of time and size
    trial : runs a case once and returns the seconds of its accesses, the same on all ranks; collective
    """
    if case.sizes is None:
        return case
    full_bytes = case.sizes.file_bytes
    if limit.file_bytes and limit.file_bytes < full_bytes:
        return _smaller(case, limit.file_bytes, ranks) or case
    if not limit.seconds:
        return case
    trials: list[tuple[int, float]] = []
    for fraction in _FRACTIONS:
        size = full_bytes // fraction
        if size < _SMALLEST_TRIAL_BYTES:
            continue
        if trials and predict(trials, full_bytes) <= limit.seconds:
            return case
        if trials and predict(trials, size) > limit.seconds:
            return _smaller(case, trials[-1][0], ranks) or case
        if fraction == 1:
            break
        small = _smaller(case, size, ranks)
        if small is None:
            continue
        trials.append((size, trial(small)))
    return case


def predict(trials: list[tuple[int, float]], size: int) -> float:
    """Extrapolate the time of a size from the last two trials by a power law with an exponent from 1 to 2.5."""
    last_size, last_s = trials[-1]
    exponent = 1.0
    if len(trials) > 1:
        before_size, before_s = trials[-2]
        exponent = math.log(max(last_s, 1e-9) / max(before_s, 1e-9)) / math.log(last_size / before_size)
        exponent = min(max(exponent, 1.0), 2.5)
    return float(last_s * (size / last_size) ** exponent)
