"""Where the nodes of a job lie in the machine's network, and how far apart.

Source: TOKIO, Section "Other components": a job's layout from its list of nodes and a map of the topology.
"""

from __future__ import annotations

from collections.abc import Sequence

from mpiio_ext.analytics.sources import Records
from mpiio_ext.analytics.sources.topology import JobRadius, job_radius


def placement(records: Sequence[Records], names: Sequence[str] | None) -> tuple[JobRadius | None, list[str]]:
    """Return the places of nodes, and the unknown parts.

    Parameters
    ----------
    records : of a map of the network: tables ``processors``; the first that knows most of the nodes counts.
    names : of the nodes; None: no source says which nodes the job had.
    """
    maps = [each for each in records if "processors" in each.tables]
    if not maps:
        return None, ["no map of the network"]
    if not names:
        return None, ["no source names the nodes of the job"]
    found = [(job_radius(each.tables["processors"], names), each) for each in maps]
    best, where = max(found, key=lambda pair: pair[0].nodes)
    if not best.nodes:
        return None, [f"{where.path}: knows none of the job's {len(names):,} nodes, such as {names[0]}"]
    notes = []
    if best.unknown:
        notes.append(
            f"{where.path}: does not know {len(best.unknown):,} of {len(names):,} nodes, such as {best.unknown[0]}"
        )
    return best, notes
