"""Parameters of the machines that the exchange is simulated on: LogGP with a cost of each byte for the processors.

LogGP (A. Alexandrov, M. Ionescu, K. Schauser, C. Scheiman, SPAA 1995, section 2): latency L, overhead o of a message
for the processor that sends or receives it, gap g between messages and gap per byte G of the network. LogGOPS
(T. Hoefler, T. Schneider, A. Lumsdaine, "LogGOPSim", LSAP 2010, section 2) adds O, what a byte costs the processor,
which is the most of it over TCP. Here the link, with g and G, is the node's: all its ranks share it.

Parameters come from a file that ``exchange.py probe`` writes on the cluster of namespaces, or are assumed
(:data:`FABRIC`), and then the results are no more than that assumption.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["FABRIC", "QUIET", "Machine", "fit_line", "load", "save"]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine in the terms of LogGOPS, and what copies and storage cost.

    Attributes
    ----------
    latency_s : L
    send_overhead_s, receive_overhead_s : o, of a message
    gap_s : g, between messages of a link
    byte_gap_s : G, seconds a byte of a link
    send_byte_s, receive_byte_s : O, seconds of a processor a byte
    copy_byte_s : of one core's copies in long pieces, a byte
    piece_s : of a copy, for each of its pieces, in this library
    native_piece_s : what a piece costs the MPI library wherever it handles it: in its lists, packing, placing
    store_byte_s, load_byte_s : of the storage as a node reaches it, a byte
    call_s : of an access in this library, for each rank that shares the cores: agreeing before and after
    window_s, native_round_s : of a round beyond all that, in this library and in the MPI library: waiting for one's
        turn on cores that others use too, waking
    cores : of a node
    shared_cores : cores that all nodes have together, where they are one machine; 0: each node has its own
    storage_on_cores : storage is copying by a core (a file system in memory)
    """

    latency_s: float
    send_overhead_s: float
    receive_overhead_s: float
    gap_s: float
    byte_gap_s: float
    send_byte_s: float
    receive_byte_s: float
    copy_byte_s: float
    piece_s: float
    native_piece_s: float
    store_byte_s: float
    load_byte_s: float
    call_s: float = 0.0
    window_s: float = 0.0
    native_round_s: float = 0.0
    cores: int = 64
    shared_cores: int = 0
    storage_on_cores: bool = False

    def on_nodes_of_their_own(self, cores: int) -> Machine:
        """Return the same with so many cores in each node, none of them shared, so that nobody waits for a turn."""
        return replace(self, cores=cores, shared_cores=0, call_s=0.0, window_s=0.0, native_round_s=0.0)

    def storing(self, bytes_per_s: float) -> Machine:
        """Return the same with storage of so many bytes a second for each node."""
        return replace(self, store_byte_s=1 / bytes_per_s, load_byte_s=1 / bytes_per_s, storage_on_cores=False)


#: Copies of a core, and pieces: from docs/notes/2026-11-20-collective-access.md, two cores without other work. 8 B and
#: 64 KiB interleaved, written over: 5.9 and 7.0 GB/s here, 0.13 GB/s native, which handles a piece three times.
QUIET = {"copy_byte_s": 1 / 6e9, "piece_s": 0.5e-9, "native_piece_s": 42e-9}
#: A present-day fabric with remote memory access, 100 Gbit/s a node, and storage of 2 GB/s a node: assumed, of the
#: order of vendors' data sheets.
FABRIC = Machine(
    latency_s=1.5e-6, send_overhead_s=0.3e-6, receive_overhead_s=0.3e-6, gap_s=0.1e-6, byte_gap_s=1 / 12.5e9,
    send_byte_s=0.0, receive_byte_s=0.0, store_byte_s=1 / 2e9, load_byte_s=1 / 2e9, **QUIET,
)


def fit_line(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Return (a, b) of a + b × size, by least squares of the relative errors; neither is negative.

    Parameters
    ----------
    sizes : bytes
    seconds : measured, all positive
    """
    from scipy.optimize import nnls

    weights = 1 / np.asarray(seconds, dtype=float)
    columns = np.stack([np.ones(len(sizes)), np.asarray(sizes, dtype=float)], axis=1)
    found, _ = nnls(columns * weights[:, None], np.ones(len(sizes)))
    return float(found[0]), float(found[1])


def save(path: Path, machines: dict[str, Machine], **more: Any) -> None:
    """Write machines, one for each MPI family, and what else belongs to them."""
    document = {"units": "seconds, bytes", "machines": {name: asdict(one) for name, one in machines.items()}, **more}
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")


def load(path: Path) -> dict[str, Machine]:
    """Return the machines of a file that :func:`save` wrote.

    Raises
    ------
    ValueError
        it is no such file
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return {name: Machine(**fields) for name, fields in document["machines"].items()}
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: no parameters of `exchange.py probe`: {error}") from error
