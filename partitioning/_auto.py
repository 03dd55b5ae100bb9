"""The decisions of ``auto``, and its rules, as in the library.

This function decides nothing: it passes facts to libmpiio_ext.so, which evaluates the table that collective I/O uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mpiio_ext._binding import ffi, lib
from mpiio_ext.errors import ArgumentError, MpiioExtError
from mpiio_ext.partitioning._plan import MAX_OFFSET_BYTES, Geometry, _check, _fields, _text, check_method

#: Lock protocols: one kernel, each I/O server (Lustre), a distributed token manager (GPFS), none.
LOCKS = ("local", "server", "token", "none")

_WISHES = {False: 0, True: 1, None: 2}
_LINE_BYTES = 1024
_E_NOMEM = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The choice of ``auto``, and the reason.

    Parameters
    ----------
    method : str
        File-domain method.
    aggregators : int
        Number of aggregators.
    aggregators_used : int
        How many of them have file domains after the method's own adjustment.
    window_bytes : int
        Size of a collective buffer, which is the largest request.
    alignment_bytes : int
        No file domain begins inside such a unit of the file: the stripe size, or 1.
    stripe_size_io : bool
        Whether no request is larger than a stripe or crosses a stripe's end.
    reason : str
        One line: the numbers it was decided for, the rule's reason and source, and times where methods were compared.
    source : str
        Where the rule that chose the method comes from.
    """

    method: str
    aggregators: int
    aggregators_used: int
    window_bytes: int
    alignment_bytes: int
    stripe_size_io: bool
    reason: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of ``auto``; of those of a topic the first one that applies counts.

    Parameters
    ----------
    topic : {"aggregators", "window", "method", "again", "estimate", "requests"}
        What it decides.
    when : str
        When it holds: S servers, A aggregators.
    takes, reason, source : str
        The choice, its reason, and the source of the reason.
    """

    topic: str
    when: str
    takes: str
    reason: str
    source: str


def rules() -> tuple[Rule, ...]:
    """Return the rules of ``auto`` in the order in which they are tried."""
    found = []
    for i in range(lib.mpiio_ext_partition_rule_count()):
        text, reason, source = ffi.new("char[]", _LINE_BYTES), ffi.new("char const **"), ffi.new("char const **")
        lib.mpiio_ext_partition_rule(i, text, _LINE_BYTES, reason, source)
        topic, when, takes = _text(text).split("\n")
        found.append(Rule(topic=topic, when=when, takes=takes, reason=_text(reason[0]), source=_text(source[0])))
    return tuple(found)


def rules_markdown() -> str:
    """Return the rules as the table of docs/reference/rules.md."""
    head = "| decides | when | takes | why | source |\n|---|---|---|---|---|\n"
    return head + "".join(f"| {r.topic} | {r.when} | {r.takes} | {r.reason} | {r.source} |\n" for r in rules())


def _check_words(lock: str, operation: str, method: str, stripe_size_io: bool | None, held: str | None) -> None:
    if lock not in LOCKS:
        raise ArgumentError(f"unknown lock protocol {lock!r}: choose from {', '.join(LOCKS)}")
    if operation not in ("write", "read"):
        raise ArgumentError(f"unknown operation {operation!r}: choose from write, read")
    check_method(method, before=("auto",))
    if held is not None:
        check_method(held, where=" for held")
    if stripe_size_io not in _WISHES:
        raise ArgumentError(f"stripe_size_io must be True, False or None, not {stripe_size_io!r}")


def _check_code(code: int, geometry: Geometry) -> None:
    if code == _E_NOMEM:
        raise MpiioExtError(f"not enough memory to decide for {geometry}")
    if code != 0:
        raise ArgumentError(f"the library refuses to decide for {geometry}")


def _choice(decision: Any, reason: Any) -> Choice:
    return Choice(
        method=_text(decision.method),
        aggregators=decision.aggregators,
        aggregators_used=decision.aggregators_use,
        window_bytes=decision.window_bytes,
        alignment_bytes=decision.alignment_bytes,
        stripe_size_io=bool(decision.stripe_size_io),
        reason=_text(reason),
        source=_text(decision.source),
    )


def choose(
    geometry: Geometry,
    *,
    lock: str,
    coherent: bool = False,
    operation: str = "write",
    nodes: int = 0,
    nics: int = 0,
    stripe_known: bool = True,
    method: str = "auto",
    window_bytes: int = 0,
    aggregators: int = 0,
    stripe_size_io: bool | None = None,
    held: str | None = None,
    held_bytes: int = 0,
) -> Choice:
    """Return the library's decisions where hints leave them open.

    Parameters
    ----------
    geometry : Geometry
        Region (empty: a file is being opened), stripes, servers; its aggregators are as many as there may be.
    lock : {"local", "server", "token", "none"}
        Who grants locks; see `LOCKS`.
    coherent : bool
        Whether one page cache serves every process (a local file system).
    operation : {"write", "read"}
        What the access does.
    nodes, nics : int
        Number of nodes that aggregators may lie on; 0 if the number is settled and all nodes take part. Cards of the
        fast network that each of these has; 0: not known.
    stripe_known : bool
        False when the stripe size is only a guess.
    method, window_bytes, aggregators, stripe_size_io
        The values of the hints ``mpiox_partition``, ``cb_buffer_size``, ``cb_nodes`` (counts with nodes > 0) and
        ``mpiox_stripe_size_io``; "auto", 0 and None leave the choice open.
    held : str or None
        Method of the collective before on the same open file; None: this is the first one.
    held_bytes : int
        Bytes of the region that were written under it.

    Raises
    ------
    ArgumentError, MpiioExtError
        An argument is unknown or out of range; there is not enough memory for the estimate.
    """
    _check_words(lock, operation, method, stripe_size_io, held)
    for name, number in (("nodes", nodes), ("nics", nics), ("aggregators", aggregators)):
        _check(name, number, 0, 2**31 - 1)
    for name, number in (("window_bytes", window_bytes), ("held_bytes", held_bytes)):
        _check(name, number, 0, MAX_OFFSET_BYTES)
    lock_name, method_name, held_name = (
        ffi.NULL if name in (None, "auto") else ffi.new("char[]", name.encode()) for name in (lock, method, held)
    )  # the struct does not keep its texts
    facts = ffi.new(
        "mpiio_ext_partition_facts *",
        {
            "geometry": _fields(geometry),
            "lock": lock_name,
            "coherent": int(coherent),
            "stripe_known": int(stripe_known),
            "write": int(operation == "write"),
            "nodes": nodes,
            "nics": nics,
            "aggregators_asked": aggregators,
            "window_asked": window_bytes,
            "method": method_name,
            "stripe_size_io": _WISHES[stripe_size_io],
            "held": held_name,
            "held_bytes": held_bytes,
        },
    )
    decision, reason = ffi.new("mpiio_ext_partition_decision *"), ffi.new("char[]", _LINE_BYTES)
    _check_code(lib.mpiio_ext_partition_decide(facts, decision, reason, _LINE_BYTES), geometry)
    return _choice(decision, reason)
