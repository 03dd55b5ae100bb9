"""What the SDCI page says of its Figure 2, as statements about the lock model (sources: docs/partitioning.md)."""

from __future__ import annotations

import pytest

from mpiio_ext.partitioning import Geometry
from mpiio_ext.partitioning.locks import Outcome, gpfs, lustre, simulate

MIB = 2**20


def run(method: str, *, stripes: int = 36, servers: int = 3, aggregators: int = 6, **options: object) -> Outcome:
    geometry = Geometry.of_stripes(stripes, servers=servers, aggregators=aggregators)
    given = {"file_system": lustre(), "window_bytes": MIB, **options}
    return simulate(geometry, method, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("system", [lustre(), gpfs()], ids=lambda s: s.name)
def test_aligned_has_no_false_sharing(system: object) -> None:
    """'If file domains are not partitioned at the file stripe boundaries, lock contentions will occur.'"""
    geometry = Geometry(start_bytes=100, end_bytes=60 * MIB + 7, stripe_size_bytes=MIB, servers=3, aggregators=6)
    even, aligned = (
        simulate(geometry, m, file_system=system, window_bytes=4 * MIB)  # type: ignore[arg-type]
        for m in ("even", "aligned")
    )
    assert even.totals["shared_units"] == 5
    assert aligned.totals["shared_units"] == 0
    assert aligned.total_conflicts < even.total_conflicts


def test_static_cyclic_each_server_hears_one_aggregator_when_they_are_a_factor() -> None:
    """'each I/O server will receive requests from one and only aggregator': no lock is ever called back."""
    o = run("static_cyclic", servers=6, aggregators=3, collectives=4)
    assert o.aggregators.tolist() == [1] * 6
    assert o.lock_requests.tolist() == [1] * 6  # the association stays over successive collectives
    assert o.total_revocations == 0


def test_interleaving_revokes_and_group_cyclic_does_not() -> None:
    """Interleaved requests revoke 'each other's lock extent'; group-cyclic avoids it: its cost does not grow."""
    short = {m: run(m).total_revocations for m in ("static_cyclic", "group_cyclic")}
    long = {m: run(m, stripes=360).total_revocations for m in ("static_cyclic", "group_cyclic")}
    assert long["static_cyclic"] > 5 * short["static_cyclic"]
    assert long["group_cyclic"] == short["group_cyclic"] < short["static_cyclic"]


def test_transpose_has_one_lock_extent_conflict_per_server() -> None:
    """'there is only one lock extent conflict per I/O server in this example'"""
    o = run("transpose", stripes=12, aggregators=5)
    assert o.owner_changes.tolist() == [1, 1, 1]
    assert o.aggregators.tolist() == [2, 2, 2]
