"""S3aSim: the results of a parallel search in a sequence database, written by the workers that found them.

Source: A. Ching, W. Feng, H. Lin, X. Ma, A. Choudhary, "Exploring I/O Strategies for Parallel Sequence-Search Tools
with S3aSim", HPDC 2006. The database is cut into fragments; a worker searches a query in a fragment and then asks the
master for the next pair. The master sorts the results of a query by score and sends each worker the offsets of its own;
the workers write. Results of query q follow those of query q - 1, so the file has neither gaps nor overlaps.

Configuration: Bez et al., "Arbitration Policies for On-Demand User-Level I/O Forwarding on HPC Platforms" (Section
5.1). 100 queries, uniformly 1 to 10 results of uniformly 6 to 45 088 768 bytes each, that is some 100 MB a query. 128
fragments, individual writes and no synchronisation after a query. (Their Table 3 has 19.6 GB in all, more than 100 such
queries.)

Ours: which pair goes to which worker is a matter of speed in the original; here the pairs are dealt in turn. The
fragment of a result is uniformly random, and so is its rank by score. The seed is one whose queries write from 4 MB
to 320 MB, 108 MB on average, where the paper has 4 MB to 328 MB and about 100 MB.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mpiio_ext.bench.kernels.layout import FileLayout, Slab, packed_variables
from mpiio_ext.bench.kernels.program import Access, Close, Kernel, Open, Phase, Step
from mpiio_ext.errors import ArgumentError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    """Results of a query in the order of the file: sizes in bytes, fragments in which they were found."""

    sizes: tuple[int, ...]
    fragments: tuple[int, ...]


@functools.lru_cache(maxsize=8)
def _searched(
    queries: int, fragments: int, results: tuple[int, int], sizes: tuple[int, int], seed: int
) -> tuple[_Query, ...]:
    generator = np.random.Generator(np.random.PCG64(seed))
    found = []
    for _ in range(queries):
        count = int(generator.integers(*results, endpoint=True))
        found.append(
            _Query(
                sizes=tuple(generator.integers(*sizes, count, endpoint=True).tolist()),
                fragments=tuple(generator.integers(0, fragments, count).tolist()),
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3aSim(Kernel):
    """Worker-writing, individually: a worker writes its results one by one, query after query.

    Rank 0 is the master and writes nothing; with one rank it does the work as well.

    Attributes
    ----------
    queries, fragments : how many
    results_min, results_max : of a query
    size_min, size_max : of a result, in bytes
    seed : of all random numbers
    """

    name: ClassVar[str] = "s3asim"
    title: ClassVar[str] = "S3aSim"
    noncontiguous: ClassVar[bool] = False
    interfaces: ClassVar[tuple[str, ...]] = ("mpiio", "posix")
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "quick": {"queries": 20, "size_max": 200_000},
        "laptop": {"queries": 100, "size_max": 700_000},
        "published": {},
    }

    queries: int = 100
    fragments: int = 128
    results_min: int = 1
    results_max: int = 10
    size_min: int = 6
    size_max: int = 45_088_768
    seed: int = 1632

    @property
    def key(self) -> str:  # noqa: D102
        return (
            f"{self.name}-{self.queries}-{self.fragments}-{self.results_min}-{self.results_max}-{self.size_min}-"
            f"{self.size_max}-{self.seed}"
        )

    @property
    def note(self) -> str:  # noqa: D102
        return "rank 0 is the master and the only worker" if self.ranks == 1 else "rank 0 is the master: writes nothing"

    def check(self) -> None:  # noqa: D102
        self.check_least(1, "queries", "fragments", "results_min", "size_min")
        for field in ("results", "size"):
            if getattr(self, f"{field}_min") > getattr(self, f"{field}_max"):
                raise ArgumentError(f"{self.name}: {field}_min must not be more than {field}_max")

    def scaling(self, factor: float) -> dict[str, Any]:  # noqa: D102
        return {"size_max": max(self.size_min, round(self.size_max * factor))}

    def _results(self) -> tuple[_Query, ...]:
        return _searched(
            self.queries,
            self.fragments,
            (self.results_min, self.results_max),
            (self.size_min, self.size_max),
            self.seed,
        )

    def files(self) -> tuple[FileLayout, ...]:  # noqa: D102
        parts = ((_array(number), "|u1", (sum(query.sizes),)) for number, query in enumerate(self._results()))
        return (FileLayout(name=self.key, variables=packed_variables(*parts)),)

    def phases(self) -> tuple[Phase, ...]:  # noqa: D102
        return (Phase(name="results", operation="write"),)

    def worker(self, query: int, fragment: int) -> int:
        """Return the rank that searches a query in a fragment: the pairs are dealt to the workers in turn."""
        if self.ranks == 1:
            return 0
        return 1 + (query * self.fragments + fragment) % (self.ranks - 1)

    def steps(self, phase: str, rank: int, interface: str) -> Iterator[Step]:  # noqa: D102
        del phase, interface
        yield Open(file=0, mode="create")
        for number, query in enumerate(self._results()):
            yield from self._write(number, self._own(number, query, rank))
        yield Close(file=0)

    def _own(self, number: int, query: _Query, rank: int) -> tuple[Slab, ...]:
        """Return a rank's results of a query, in the order of the file."""
        own, begin = [], 0
        for size, fragment in zip(query.sizes, query.fragments, strict=True):
            if self.worker(number, fragment) == rank:
                own.append(((begin,), (size,)))
            begin += size
        return tuple(own)

    def _write(self, number: int, own: tuple[Slab, ...]) -> Iterator[Step]:
        for slab in own:
            yield Access(file=0, variable=_array(number), write=True, slabs=(slab,), collective=False)


def _array(query: int) -> str:
    return f"query{query:04d}"
