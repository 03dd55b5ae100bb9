"""The exact multiple-choice knapsack on arrays: one class a job, one option a number of I/O nodes.

Problem.    One option of every class, weights within the capacity, the largest sum of values, in milliseconds for a
            queue of 512 jobs, again whenever a job begins or ends.
Algorithm.  Values are rounded to multiples of a power of two, so coarse that the sum over all classes is a whole number
            below 2^52: all sums of doubles are then exact, whatever their order. Of each class the options are kept
            that fit and are worth more than every lighter one. The linear relaxation gives the price L of a unit of
            capacity (two lines of its dual are intersected until nothing lies above): sum over classes of max(value - L
            weight) + L capacity bounds every choice from above. An option whose own value - L weight lies below its
            class's best by more than the bound lies above a known choice is in no best choice. The remaining options,
            the core, go through the dynamic programming, first with options of small loss only: the solution proves
            that most of the other options are in no best choice. Row i of its table holds, for every capacity x, the
            best value of the first i classes: f_i(x) = max over the options of f_(i-1)(x - weight) + value, all options
            of a class at once as windows of one padded row. The choice is found by walking back. If the rows do not fit
            in the allowed memory, only every sqrt(classes)-th row is stored, and the others are computed again by
            blocks.
Guarantees. Exact for the rounded values; rounding changes a value by less than 2^-52 of (largest value x number of
            classes, each taken up to a power of two). Among the best choices it is one of least total weight. Among
            these choices, from the last class to the first, each class takes its lightest option that leaves a best
            choice to the classes before it. Of options of one weight it takes the best, and of equally good options the
            first. Options are left out only when they are in no best choice at all, so that ties are decided alike with
            and without them. Time O(capacity x options) where nothing can be left out (values proportional to weights),
            memory O(capacity x sqrt(classes)).
Source.     Section 3.1 of the arbitration paper, equation 1; dominance: Sinha and Zoltners, "The multiple-choice
            knapsack problem" (1979); bound and core: Dyer, Riha, Walker, "A hybrid dynamic programming/branch-and-bound
            algorithm for the multiple-choice knapsack problem" (1995), Pisinger (1995); walk back: Hirschberg (1975).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Sums stay below 2^52, so that half a unit more or less is still exact.
_SUM_BITS = 52
#: A unit is at least 2^-1000: smaller values are as good as none.
_MAX_EXPONENT = 1000
#: The unit depends on the number of classes in steps of this many bits: the same while a few come and go.
_CLASS_BITS = 5
#: Doubles of the table above which only every sqrt(classes)-th row is stored: 32 MiB.
_MOST_ROWS = 2**22
#: Doubles that are compared at once: the capacity of a core's cache.
_AT_ONCE = 2**15
#: Part of the gap between bound and first choice that an option of the first core may lose.
_FIRST_LOSS = 1 / 16
#: Lines of the dual that are tried at most: any price gives a bound.
_MOST_PRICES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """Options of all classes: `of` ascends, in a class `weight` and `value` ascend strictly.

    Attributes
    ----------
    first : (classes + 1,) the options of class i are [first[i], first[i + 1])
    of : (options,) class
    weight : (options,)
    value : (options,) in units, whole numbers
    index : (options,) place in the caller's arrays
    """

    first: Ints
    of: Ints
    weight: Ints
    value: Floats
    index: Ints

    def where(self, keep: npt.NDArray[np.bool_] | Ints) -> _Options:
        """Return some of the options, of every class at least one."""
        of = self.of[keep]
        return _Options(
            first=_firsts(of, self.first.size - 1),
            of=of,
            weight=self.weight[keep],
            value=self.value[keep],
            index=self.index[keep],
        )


class Best(NamedTuple):
    """A best choice: see :class:`mpiio_ext.delegates.arbitration.solver.Solution`."""

    value: float
    bound: float
    weight: int
    choices: npt.NDArray[np.int32]
    core: int


class _Relaxed(NamedTuple):
    """The result of the linear relaxation.

    `bound` : of all choices, in units; `value` : of a choice that fits; `loss` : (options,) how far an option lies
    behind its class's best at the price; `margin` : what rounding may have changed.
    """

    bound: float
    value: float
    loss: Floats
    margin: float


def _firsts(of: Ints, classes: int) -> Ints:
    return np.searchsorted(of, np.arange(classes + 1))


def _exponent(values: Floats, classes: int) -> int:
    """Return e: a unit of values is 2^-e."""
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0:
        return 0
    bits = -(-math.frexp(classes)[1] // _CLASS_BITS) * _CLASS_BITS
    return min(_SUM_BITS - math.frexp(largest)[1] - bits, _MAX_EXPONENT)


def _reduced(first: Ints, weights: Ints, values: Floats, capacity: int, exponent: int) -> _Options | None:
    """Return the options that may be chosen; None if no option of a class fits."""
    classes = first.size - 1
    of = np.repeat(np.arange(classes), np.diff(first))
    key = of * (2**31) + weights
    index = np.arange(key.size) if (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")
    index = index[weights[index] <= capacity]
    key = key[index]
    if key.size == 0:
        return None
    new = np.flatnonzero(np.diff(key, prepend=-1))  # of the same weight: the best, the first of several
    if new.size < key.size:
        given = values[index]
        run = np.repeat(np.arange(new.size), np.diff(new, append=key.size))
        best = np.flatnonzero(given == np.maximum.reduceat(given, new)[run])
        index = index[best[np.flatnonzero(np.diff(run[best], prepend=-1))]]
    of, value = of[index], np.rint(values[index] * math.ldexp(1.0, exponent))
    is_first = np.diff(of, prepend=-1) > 0
    if np.count_nonzero(is_first) < classes:
        return None
    # a running maximum in each class: every class is lifted above those before it, sums stay below 2^53
    lifted = value + of * (2 * float(np.abs(value).max()) + 1)
    keep = is_first
    keep[1:] |= lifted[1:] > np.maximum.accumulate(lifted)[:-1]
    of, index = of[keep], index[keep]
    return _Options(first=_firsts(of, classes), of=of, weight=weights[index], value=value[keep], index=index)


def _relax(options: _Options, capacity: int) -> _Relaxed:
    """Return the bound of the linear relaxation, a choice near it, and the loss of each option."""
    start, weight, value = options.first[:-1], options.weight, options.value
    low_weight, low_value = int(weight[start].sum()), float(value[start].sum())  # fits
    last = options.first[1:] - 1
    high_weight, high_value = int(weight[last].sum()), float(value[last].sum())
    size = float(np.abs(value[start]).sum() + np.abs(value[last]).sum())
    price, known, reduced = 0.0, low_value, value
    best = value[last]
    if high_weight <= capacity:
        known = high_value
    else:
        for _ in range(_MOST_PRICES):
            price = (high_value - low_value) / (high_weight - low_weight)
            reduced = value - price * weight
            best = np.maximum.reduceat(reduced, start)
            margin = (start.size + 8) * 2.0**-50 * (size + price * capacity)
            if float(best.sum()) - (low_value - price * low_weight) <= margin:
                break
            taken = np.flatnonzero(reduced == best[options.of])
            taken = taken[np.flatnonzero(np.diff(options.of[taken], prepend=-1))]
            now_weight, now_value = int(weight[taken].sum()), float(value[taken].sum())
            if now_weight <= capacity:
                low_weight, low_value = now_weight, now_value
            else:
                high_weight, high_value = now_weight, now_value
        known = low_value
    margin = (start.size + 8) * 2.0**-50 * (size + price * capacity)
    return _Relaxed(price * capacity + float(best.sum()), known, best[options.of] - reduced, margin)


def _rows(first: list[int], weights: Ints, values: Floats, row: Floats, out: Floats) -> None:
    """Fill rows of the table.

    Parameters
    ----------
    first : the options of class i are [first[i], first[i + 1])
    weights : (options,) from 0 to the capacity
    values : (options,)
    row : (capacity + 1,) the row before the first class
    out : (classes, capacity + 1)
    """
    width, most = row.size, int(weights.max(initial=0))
    padded = np.full(most + width, -np.inf)
    before = padded[most:]
    before[:] = row
    windows = np.lib.stride_tricks.sliding_window_view(padded, width)
    at, column, step = most - weights, values[:, None], max(1, _AT_ONCE // width)
    for best, (start, end) in zip(out, pairwise(first), strict=True):
        for place in range(start, end, step):
            stop = min(place + step, end)
            found = windows[at[place:stop]]
            found += column[place:stop]
            if place == start:
                np.maximum.reduce(found, axis=0, out=best)
            else:
                np.maximum(best, np.maximum.reduce(found, axis=0), out=best)
        before[:] = best


def _walk(first: list[int], weights: list[int], values: list[float], rows: Floats, left: int, chosen: Ints) -> int:
    """Choose for classes from the last to the first; return the capacity that is left to the classes before.

    Parameters
    ----------
    rows : (classes + 1, capacity + 1) of the table, from the one before the first class
    left : capacity of the last row that the choice is worth
    chosen : (classes,) gets the places of the options
    """
    value_at = rows.item
    for i in range(chosen.size - 1, -1, -1):
        option, wanted = first[i], value_at(i + 1, left)
        while value_at(i, left - weights[option]) + values[option] != wanted:
            option += 1
        chosen[i] = option
        left -= weights[option]
    return left


def _decided(options: _Options, capacity: int) -> tuple[Ints, float]:
    """Return the places of the best options of classes whose lightest ones weigh 0, and their value."""
    classes = options.first.size - 1
    chosen = np.empty(classes, np.int64)
    if classes == 0:
        return chosen, 0.0
    width = min(capacity, int(options.weight[options.first[1:] - 1].sum())) + 1
    block = classes if classes * width <= _MOST_ROWS else math.isqrt(classes - 1) + 1
    first, weights, values = options.first.tolist(), options.weight.tolist(), options.value.tolist()
    blocks = [(start, min(start + block, classes)) for start in range(0, classes, block)]
    before = np.zeros((len(blocks), width))  # the row before each block
    rows = np.empty((block + 1, width))

    def fill(number: int) -> Floats:
        start, end = blocks[number]
        some = slice(first[start], first[end])
        rows[0] = before[number]
        _rows(
            [place - first[start] for place in first[start : end + 1]],
            options.weight[some],
            options.value[some],
            before[number],
            rows[1 : end - start + 1],
        )
        last: Floats = rows[end - start]
        return last

    for number in range(len(blocks) - 1):
        before[number + 1] = fill(number)
    last = fill(len(blocks) - 1)
    value = float(last[-1])
    left = int(np.searchsorted(last, value))
    for number in reversed(range(len(blocks))):
        if number < len(blocks) - 1:
            fill(number)
        start, end = blocks[number]
        left = _walk(first[start : end + 1], weights, values, rows, left, chosen[start:end])
    return chosen, value


def _of_core(options: _Options, relaxed: _Relaxed, most: float, capacity: int) -> tuple[Ints, float, int]:
    """Decide by the options that lose at most `most`.

    Returns
    -------
    chosen : (classes,) places of the options
    value : of this choice, in units; -inf where none of these options fit together
    core : classes that the dynamic programming decided
    """
    places = np.flatnonzero(relaxed.loss <= most)
    some = options.where(places)
    start, many = some.first[:-1], np.diff(some.first) > 1
    lightest = some.weight[start]
    left = capacity - int(lightest.sum())
    chosen = places[start]
    if left < 0:
        return chosen, -math.inf, 0
    weight = some.weight - lightest[some.of]
    inner = np.flatnonzero(many[some.of] & (weight <= left))
    of = (np.cumsum(many) - 1)[some.of[inner]]
    core = int(np.count_nonzero(many))
    decided, value = _decided(
        _Options(first=_firsts(of, core), of=of, weight=weight[inner], value=some.value[inner], index=places[inner]),
        left,
    )
    chosen[many] = places[inner][decided]
    return chosen, value + float(some.value[start[~many]].sum()), core


def best_choice(first: Ints, weights: Ints, values: Floats, capacity: int) -> Best | None:
    """Return the best choice, None if none is within the capacity.

    Parameters
    ----------
    first : (classes + 1,) the options of class i are [first[i], first[i + 1]), at least one
    weights : (options,) 0 to below 2^31
    values : (options,) finite, magnitudes up to 1e300
    capacity : 0 or more

    Raises
    ------
    MemoryError
        The tables do not fit.
    """
    classes = first.size - 1
    if classes == 0:
        return Best(0.0, 0.0, 0, np.empty(0, np.int32), 0)
    exponent = _exponent(values, classes)
    options = _reduced(first, weights, values, capacity, exponent)
    if options is None or int(options.weight[options.first[:-1]].sum()) > capacity:
        return None
    relaxed = _relax(options, capacity)
    gap = max(relaxed.bound - relaxed.value, 0.0)
    most = gap * _FIRST_LOSS + relaxed.margin
    while True:
        chosen, value, core = _of_core(options, relaxed, most, capacity)
        needed = relaxed.bound - value + relaxed.margin
        if needed <= most:
            break
        most = min(needed, 4 * most)  # 4: a solution in between often proves that less is needed
    return Best(
        math.ldexp(value, -exponent),
        math.ldexp(max(relaxed.bound, value), -exponent),
        int(options.weight[chosen].sum()),
        (options.index[chosen] - first[:-1]).astype(np.int32),
        core,
    )


def profile_table(first: Ints, weights: Ints, values: Floats, members: Ints, capacity: int) -> Floats:
    """Return the best value at every capacity up to `capacity` of many sets of classes, values as they are.

    Parameters
    ----------
    first, weights, values : as for :func:`best_choice`
    members : (sets, n) classes of each set

    Returns
    -------
    (sets, capacity + 1) float64
        -inf where no choice fits.
    """
    best = np.zeros((members.shape[0], capacity + 1))
    ends = first.tolist()
    for column in members.T:
        row = np.full_like(best, -np.inf)
        order = np.argsort(column, kind="stable")
        starts = np.flatnonzero(np.diff(column[order], prepend=-1)).tolist()
        for start, end in pairwise([*starts, order.size]):
            sets = order[start:end]  # all that have the same class here
            option = int(column[sets[0]])
            before, found = best[sets], row[sets]
            for place in range(ends[option], ends[option + 1]):
                weight = int(weights[place])
                if weight <= capacity:
                    here = found[:, weight:]
                    np.maximum(here, before[:, : capacity + 1 - weight] + values[place], out=here)
            row[sets] = found
        best = row
    return best
