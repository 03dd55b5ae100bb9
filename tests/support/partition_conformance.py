"""What every partition method must keep, as a class to subclass: test_partition_methods.py does so for every method.

Random geometries come from ``numpy.random.default_rng([seed, case])``, so that one failing case can be run alone. The
seed is 20081115 unless the environment variable MPIOX_TEST_SEED says otherwise; it stands in every failure.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.partitioning import Geometry, Plan, plan
from support import fuzz
from support.partition_reference import REFERENCE, Case, Extent, adjusted, merged, servers_touched, windows_of_set

SEED = int(os.environ.get("MPIOX_TEST_SEED", "20081115"))
CASES = 10_000
LIMIT = 2**62


def random_case(rng: np.random.Generator) -> tuple[Case, int]:
    """Return a geometry small enough for brute force, anywhere in the file, and a window size."""
    shape = rng.integers(0, 10)
    stripe_size = int(rng.choice([1, 2, 3, 7, 16, 64, 100, 4096]))
    if shape == 0:  # stripes so large that the file has few of them
        stripe_size = int(rng.integers(1, 2**56))
    servers = int(rng.integers(1, 13))
    aggregators = int(rng.integers(1, 21))
    stripes = int(rng.integers(0, 70))
    first = 0
    if shape in (1, 2, 3):
        first = int(rng.integers(0, 200))
    elif shape in (4, 5):  # beyond 2^31, up to the last stripes below the limit
        first = int(rng.integers(0, (LIMIT - 100 * stripe_size) // stripe_size + 1))
    base = first * stripe_size
    start = base + int(rng.integers(0, stripe_size))
    end = start + int(rng.integers(0, stripes * stripe_size + 1))
    if rng.integers(0, 4) == 0:  # whole stripes
        start, end = base, base + stripes * stripe_size
    end = min(end, LIMIT)
    start = min(start, end)
    window = int(rng.integers(1, 6 * stripe_size + 1))
    if stripe_size > 2 * 10**4:
        window = int(rng.integers(stripe_size // 5 + 1, 6 * stripe_size + 1))
    elif stripe_size > 64:
        window = max(window, stripe_size // 9)
    return Case(start, end, stripe_size, servers, aggregators), window


def planned(case: Case, method: str) -> Plan:
    geometry = Geometry(
        start_bytes=case.start,
        end_bytes=case.end,
        stripe_size_bytes=case.stripe_size,
        servers=case.servers,
        aggregators=case.aggregators,
    )
    return plan(geometry, method)


def extents_of(p: Plan, aggregator: int) -> list[Extent]:
    return [(o, o + n) for o, n in p.extents(aggregator).tolist()]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, int]:
    """Geometries that shrink towards few small stripes at the beginning of the file."""
    stripe_size = draw(st.integers(1, 50))
    start = draw(st.one_of(st.integers(0, 500), st.integers(0, 2**61)))
    end = start + draw(st.integers(0, 40 * stripe_size))
    case = Case(start, end, stripe_size, draw(st.integers(1, 9)), draw(st.integers(1, 30)))
    return case, draw(st.integers(1, 300))


class PartitionConformance:
    """Subclass, set `method`, and every rule below is checked for it."""

    method: ClassVar[str]

    def random_cases(self) -> Iterator[tuple[str, Case, int]]:
        count = fuzz.examples(CASES)
        print(f"seed {SEED}, {count} cases (MPIOX_TEST_SEED sets the seed)")
        for number in range(count):
            case, window = random_case(np.random.default_rng([SEED, number]))
            yield f"seed {SEED} case {number}: {case} window {window}", case, window

    def test_agrees_with_the_reference(self) -> None:
        """Domains, their order, coverage and the owner of bytes, on random geometries."""
        for where, case, _window in self.random_cases():
            self.check_domains(case, where)

    def test_windows_follow_their_rule(self) -> None:
        """Windows partition every domain, and are cut where the rule says, on random geometries."""
        for where, case, window in self.random_cases():
            self.check_windows(case, window, where)

    def test_smallest_counterexample(self) -> None:
        """The same by hypothesis, which shrinks what fails to the smallest geometry."""

        @settings(max_examples=200, deadline=None)
        @given(cases())
        def check(drawn: tuple[Case, int]) -> None:
            case, window = drawn
            self.check_domains(case, str(drawn))
            self.check_windows(case, window, str(drawn))

        check()

    def check_domains(self, case: Case, where: str) -> None:
        p = planned(case, self.method)
        expected = REFERENCE[self.method](case)
        found = [extents_of(p, a) for a in range(case.aggregators)]
        assert [merged(f) for f in found] == [merged(e) for e in expected], where
        # Each byte exactly once.
        flat = sorted((start, end) for extents in found for start, end in extents)
        assert merged(flat) == ([(case.start, case.end)] if case.start < case.end else []), where
        assert all(a[1] == b[0] for a, b in itertools.pairwise(flat)), where
        self.check_sets(p, case, where)
        self.check_flat(p, case, expected, where)
        # The owner of the first and the last byte of every extent, and of bytes outside.
        offsets = [o for extents in found for start, end in extents for o in (start, end - 1)]
        owners = [a for a, extents in enumerate(found) for _ in extents for _ in (0, 1)]
        assert p.owner(np.array(offsets, np.int64)).tolist() == owners, where
        assert p.owner([case.start - 1, case.end]).tolist() == [-1, -1], where

    def check_sets(self, p: Plan, case: Case, where: str) -> None:
        """The form that mpiox_partition.h promises: whole stripes, ascending, none clipped away, few of them."""
        used = p.aggregators_used
        assert used == (adjusted(case) if self.method == "group_cyclic" else case.aggregators), where
        assert all(len(sets) == 0 for sets in p.domains[used:]), where
        assert sum(len(sets) for sets in p.domains) <= case.aggregators + case.servers, where
        for sets in p.domains:
            for offset, length, stride, count in sets.tolist():
                assert count >= 1 and length >= 1, where
                assert stride > length if count > 1 else stride == 0, where
                assert offset + length > case.start, where
                assert offset + (count - 1) * stride < case.end, where

    def check_flat(self, p: Plan, case: Case, expected: list[list[Extent]], where: str) -> None:
        """The flat arrays: domains are views into them; bytes and servers are those of the definition."""
        flat = p.sets()
        assert flat.first[0] == 0 and flat.first[-1] == len(flat.rows), where
        assert np.diff(flat.first).tolist() == [len(sets) for sets in p.domains], where
        assert all(np.shares_memory(sets, flat.rows) for sets in p.domains if len(sets)), where
        assert flat.bytes.tolist() == [sum(end - start for start, end in extents) for extents in expected], where
        assert flat.servers.tolist() == [servers_touched(case, extents) for extents in expected], where

    def check_windows(self, case: Case, window: int, where: str) -> None:
        p = planned(case, self.method)
        for a in range(case.aggregators):
            expected = [w for s in p.domains[a].tolist() for w in windows_of_set(case, tuple(s), window)]
            found = [[(o, o + n) for o, n in w.tolist()] for w in p.windows(a, window)]
            assert found == expected, f"{where} aggregator {a}"
            assert all(sum(end - start for start, end in w) <= window for w in found), where
            assert merged([e for w in found for e in w]) == merged(extents_of(p, a)), where
            assert len(p.window(a, window, len(found))) == 0, where
