"""Memory of one process in a two-phase access between nodes, term by term: this library's leader, native's aggregator.

The only place that knows sizes. Sizes of this library's structs are those of the headers (`STRUCTS`; a test asks the
compiler); each formula names the code that it follows. Those of the MPI library are of ROMIO (`ad_write_coll.c`,
`ad_aggregate.c` of MPICH): lists of an offset and a length for each piece, as it makes them for its own accesses and
as its aggregators receive them.

`Hints.destinations` is how the message destinations are bounded, which is where implementations differ:

pool    two halves of a pool for what a node sends, and a message and its answers for each aggregator: buffers by hint,
        whatever the number of nodes (csrc/mpiio/transport)
each    an area for each other node and parity of the round, and as much again for receiving; what was used stays
        resident: the ranks of a node times the windows of the other at worst (the library's first form)
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BLOCK_BYTES", "RANK_ACCESS_BYTES", "STRUCTS", "VIEW_BLOB_BYTES", "Hints", "leader_bytes", "native_bytes",
           "view_message_bytes"]

#: sizeof, in bytes, on 64-bit machines.
STRUCTS = {
    "mpiox_message_entry": 24,
    "mpiox_destination_buffer": 64,
    "mpiox_interval": 16,
    "mpiox_known_view": 16,
    "mpiox_exchange_entry": 40,
    "mpiox_due": 40,
    "mpiox_node_access": 24,
    "mpiox_buffer_slot": 64,
    "mpiox_contribution": 1384,
    "mpiox_reduction": 1264,
    "mpiox_error": 144,
}
_POINTER, _INT, _REQUEST, _OFFSET = 8, 4, 8, 8
_PAGE, _EXCHANGE_ROUNDS, _STORE_BYTES = 4096, 5, 1 << 20
_SHARE_BYTES, _SHARE_LEAST, _TOLD_BYTES, _VIEW_SLOTS = 4 << 20, 4096, 16, 8192
#: What most nodes tell of their ranks' views, and what the first form kept of every rank's access.
BLOCK_BYTES, RANK_ACCESS_BYTES = 2048, 40
#: Of a view that is a vector, a subarray or a tree of a few loops: serialized, and rebuilt from that.
VIEW_BLOB_BYTES, VIEW_TREE_BYTES = 192, 320


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What bounds the memory.

    Attributes
    ----------
    window_bytes : `cb_buffer_size` of this library
    buffers : `mpiox_buffers`, collective buffers of an aggregator
    aggregators : on a node
    destinations : "pool" or "each"; see above
    native_buffer_bytes : `cb_buffer_size` of the MPI library
    """

    window_bytes: int = 1 << 20
    buffers: int = 2
    aggregators: int = 2
    destinations: str = "pool"
    native_buffer_bytes: int = 16 << 20


def leader_bytes(nodes: int, ranks_per_node: int, hints: Hints,
                 largest_messages_bytes: float = 0.0) -> dict[str, float]:
    """Return what the leader of a node needs beyond the program's buffers, by term.

    Parameters
    ----------
    nodes, ranks_per_node : of the job
    hints : in force
    largest_messages_bytes : of destinations "each": the largest message to each other node, summed over nodes

    Notes
    -----
    Collective buffers, coverage maps, contributions, slots: ``mpiox_buffers_attach``. Destination buffers, halves of
    the pool, the store of views: ``lay_out`` of the transport; inboxes: ``mpiox_inbox``; spreading of views, with two
    hash tables: ``renew`` of ``mpiox_message_views.c``. Reductions: ``mpiox_topology_gather_nodes``. The plan: a
    stripe set for each aggregator, and its first window. Owners: ranks in three orders, and what all nodes access
    (``mpiox_owners_choose``).
    """
    size, aggregators = nodes * ranks_per_node, nodes * hints.aggregators
    slots = hints.aggregators * hints.buffers
    topology = size * 3 * _INT + nodes * _INT
    plan = aggregators * (5 * _OFFSET + 2 * _POINTER + STRUCTS["mpiox_interval"] + 3 * _INT)
    agreed = nodes * (2 * STRUCTS["mpiox_node_access"] + STRUCTS["mpiox_reduction"] + 2 * _INT)
    windows = slots * (2 * hints.window_bytes + STRUCTS["mpiox_buffer_slot"])
    contributions = ranks_per_node * STRUCTS["mpiox_contribution"] + STRUCTS["mpiox_reduction"]
    terms = {"windows": float(windows), "ranges": float(topology + plan + agreed + contributions)}
    if hints.destinations == "each":
        heads = 2 * nodes * STRUCTS["mpiox_destination_buffer"] + nodes * (2 * _POINTER + _REQUEST + 2 * _INT)
        terms["destinations"] = heads + 3 * largest_messages_bytes
        spreading = size * (VIEW_BLOB_BYTES + _INT) + ranks_per_node * VIEW_BLOB_BYTES
        terms["views"] = float(size * (VIEW_TREE_BYTES + _POINTER) + spreading)
        terms["ranges"] += size * (2 * RANK_ACCESS_BYTES + _INT)
        return terms
    half = hints.aggregators * hints.window_bytes + hints.window_bytes // 2 + 2 * _PAGE
    inboxes = hints.aggregators * (2 * half + nodes * 2 * _OFFSET)
    each_round = STRUCTS["mpiox_destination_buffer"] + STRUCTS["mpiox_exchange_entry"]
    waiting = aggregators * (_EXCHANGE_ROUNDS * each_round + STRUCTS["mpiox_due"])
    terms["destinations"] = float(2 * half + inboxes + waiting)
    told = view_message_bytes(nodes, ranks_per_node) + BLOCK_BYTES + _OFFSET + 2 * _INT
    mine = ranks_per_node * _TOLD_BYTES + max(_SHARE_BYTES // nodes, _SHARE_LEAST) + 2 * _VIEW_SLOTS * _OFFSET
    terms["views"] = float(size * STRUCTS["mpiox_known_view"] + _STORE_BYTES + nodes * told + mine)
    return terms


def view_message_bytes(nodes: int, ranks_per_node: int) -> float:
    """Return what a node tells of its ranks' views: a word on each, and the different ones, up to its share.

    All are taken to be different, though those that differ by their place alone are told once.
    """
    different = min(ranks_per_node * VIEW_BLOB_BYTES, max(_SHARE_BYTES // nodes, _SHARE_LEAST))
    return float(ranks_per_node * _TOLD_BYTES + different)


def native_bytes(nodes: int, ranks_per_node: int, aggregators: int, rank_bytes: float, piece_bytes: float,
                 hints: Hints) -> dict[str, float]:
    """Return what a rank of native needs that is an aggregator, by term.

    Parameters
    ----------
    nodes, ranks_per_node, aggregators : of the job; aggregators in all
    rank_bytes : data of one rank in the call
    piece_bytes : of a contiguous piece

    Notes
    -----
    `ADIOI_Calc_my_req` and `ADIOI_Calc_others_req`: an offset and a length of 8 bytes each for a piece, of this rank's
    own pieces and of all ranks' in this aggregator's domain; a third time as memory addresses (`mem_ptrs`). Rounds
    (`ADIOI_Exch_and_write`): the collective buffer; counts, requests and a type of each rank, and pieces of a round
    sorted by a heap.
    """
    size = nodes * ranks_per_node
    own = rank_bytes / piece_bytes
    domain = size * rank_bytes / aggregators
    in_domain = domain / piece_bytes
    in_round = min(hints.native_buffer_bytes, domain) / piece_bytes
    return {
        "windows": float(min(hints.native_buffer_bytes, domain)),
        "destinations": min(rank_bytes, rank_bytes * hints.native_buffer_bytes / domain),
        "views": own * 2 * _OFFSET + in_domain * 3 * _OFFSET,
        "ranges": size * (2 * 40.0 + 10 * _INT + 2 * _REQUEST) + in_round * (2 * _OFFSET + _INT),
    }
