"""Where the nodes of a job lie in the machine's network, and how far apart.

Source: TOKIO, Section "Other components": a job's layout from its list of nodes and a map of the topology.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from mpiio_ext.analytics.sources.topology import job_radius
from mpiio_ext.analytics.tools.rows import Read

__all__ = ["Placement", "placement"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Placement:
    """Where nodes are.

    Attributes
    ----------
    nodes : int
        Nodes whose place is known.
    least, mean, greatest : float
        Distances from their centre, in coordinates of the network (TOKIO's radius of a job).
    centre : (3,) tuple of float
    path : str
        The map.
    """

    nodes: int
    least: float
    mean: float
    greatest: float
    centre: tuple[float, float, float]
    path: str


def placement(records: Sequence[Read], names: Sequence[str] | None) -> tuple[Placement | None, list[str]]:
    """Return where nodes are, and what is not known about it.

    Parameters
    ----------
    records : sequence of Records
        Of a map of the network: tables ``processors``; the first that knows most of the nodes counts.
    names : sequence of str, or None
        Of the nodes; None: no source says which nodes the job had.
    """
    maps = [each for each in records if "processors" in each.tables]
    if not maps:
        return None, ["no map of the network"]
    if not names:
        return None, ["no source says on which nodes the job ran"]
    found: list[tuple[Any, Read]] = [(job_radius(each.tables["processors"], names), each) for each in maps]
    best, where = max(found, key=lambda pair: pair[0].nodes)
    if best.mean is None or best.least is None or best.greatest is None or best.centroid is None:
        return None, [f"{where.path}: knows none of the job's {len(names):,} nodes, such as {names[0]}"]
    notes = []
    if best.unknown:
        notes.append(
            f"{where.path}: does not know {len(best.unknown):,} of {len(names):,} nodes, such as {best.unknown[0]}"
        )
    return Placement(nodes=best.nodes, least=best.least, mean=best.mean, greatest=best.greatest,
                     centre=best.centroid, path=where.path), notes  # fmt: skip
