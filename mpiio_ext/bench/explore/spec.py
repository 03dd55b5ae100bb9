"""An access pattern to explore, as the command line or a JSON file of FORGE names it.

Problem.    A pattern is more than the properties that identify a curve: how much it moves, how long it may take, past
which cache. Algorithm.  Words in any order, each of which can be one thing only; a size is the request first, then the
total. Guarantees. What is not understood is refused with the word. A pattern that cannot be (a file per process with a
stride,
            as FORGE has it too) is refused as well.
Source.     Section 2 of the arbitration paper (mpiio_ext.delegates.arbitration): file layout, spatiality, request size,
            "until a given total size is transferred or" a time has passed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from mpiio_ext.common.near import near_names
from mpiio_ext.common.options import Size
from mpiio_ext.delegates.arbitration.pattern import Layout, Pattern, Spatiality
from mpiio_ext.errors import ArgumentError

#: Name of the paper's patterns on the command line.
PAPER = "paper"
_PAPER_KIB = (32, 128, 512, 1024, 4096, 6144, 8192)
_PAPER_KINDS: tuple[tuple[Layout, Spatiality], ...] = (
    ("file-per-process", "contiguous"),
    ("shared", "contiguous"),
    ("shared", "strided"),
)

_LAYOUTS: dict[str, Layout] = {
    "shared": "shared",
    "individual": "file-per-process",
    "file-per-process": "file-per-process",
    "fpp": "file-per-process",
}
_SPATIALITIES: dict[str, Spatiality] = {"contiguous": "contiguous", "strided": "strided"}
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One pattern.

    Attributes
    ----------
    layout, spatiality : as a :class:`~mpiio_ext.delegates.arbitration.pattern.Pattern` has them
    request_bytes : of one request
    total_bytes : of all ranks together; what does not make up a request for each rank is left out
    operation : "write" or "read"
    stonewall_s : each rank stops after the request that ends later than this; 0 = none
    direct : whole blocks go past the page cache (O_DIRECT)
    io_nodes : numbers of delegates that the file of the pattern names; none = those of the command line
    repetitions : that it asks for; None = those of the command line
    """

    layout: Layout
    spatiality: Spatiality
    request_bytes: int
    total_bytes: int
    operation: str = "write"
    stonewall_s: float = 0.0
    direct: bool = False
    io_nodes: tuple[int, ...] = ()
    repetitions: int | None = None

    def __post_init__(self) -> None:
        if self.layout == "file-per-process" and self.spatiality == "strided":
            raise ArgumentError("a file for each process is contiguous: strided needs a shared file")
        if not 1 <= self.request_bytes < 2**31:
            raise ArgumentError(f"a request must have 1 byte to 2 GiB, not {self.request_bytes}")
        if self.total_bytes < self.request_bytes:
            raise ArgumentError(
                f"the total of {self.total_bytes} bytes is less than one request of {self.request_bytes}"
            )
        if self.operation not in ("write", "read"):
            raise ArgumentError(f"operation must be write or read, not {self.operation!r}")
        if not 0 <= self.stonewall_s < 1e6:
            raise ArgumentError(f"a stonewall is a time of 0 to 10^6 s, not {self.stonewall_s}")

    def pattern(self, compute_nodes: int, processes: int) -> Pattern:
        """Return the properties that identify its curve."""
        return Pattern(
            layout=self.layout,
            spatiality=self.spatiality,
            request_bytes=self.request_bytes,
            compute_nodes=compute_nodes,
            processes=processes,
            operation=self.operation,
            direct=self.direct,
        )

    def requests(self, processes: int) -> int:
        """Return how many requests each rank makes.

        Raises
        ------
        ArgumentError
            Not one for each.
        """
        count = self.total_bytes // (self.request_bytes * processes)
        if count < 1:
            raise ArgumentError(
                f"a total of {self.total_bytes} bytes leaves {processes} ranks without a request of "
                f"{self.request_bytes} each: raise the total"
            )
        return count

    def offset(self, rank: int, index: int, processes: int, requests: int) -> int:
        """Return where the request `index` of a rank begins in its file, bytes."""
        if self.layout == "file-per-process":
            return index * self.request_bytes
        if self.spatiality == "strided":
            return (index * processes + rank) * self.request_bytes
        return (rank * requests + index) * self.request_bytes


def _size(word: str) -> int | None:
    try:
        return Size().convert(word, None, None) if word[:1].isdigit() else None
    except Exception:  # click's, of which no more is wanted here
        return None


def parse(text: str, *, total_bytes: int) -> list[Spec]:
    """Return the patterns that a word of the command line names: ``shared,strided,64KiB,256MiB,5s,read``, ``paper``.

    Parameters
    ----------
    total_bytes : where the text does not say

    Raises
    ------
    ArgumentError
        A word is not understood, or comes twice.
    """
    words = [word.strip().lower() for word in text.split(",") if word.strip()]
    found: dict[str, Any] = {}

    def put(what: str, value: Any) -> None:
        if what in found:
            raise ArgumentError(f"pattern {text!r} says {what} twice")
        found[what] = value

    for word in words:
        seconds = _SECONDS.fullmatch(word)
        size = None if seconds else _size(word)
        if word in _LAYOUTS:
            put("the layout", _LAYOUTS[word])
        elif word in _SPATIALITIES:
            put("the spatiality", _SPATIALITIES[word])
        elif word in ("write", "read"):
            put("the operation", word)
        elif word == "direct":
            put("direct", True)
        elif word == PAPER:
            put("its name", PAPER)
        elif seconds:
            put("the stonewall", float(seconds[1]))
        elif size is not None:
            put("the request size" if "the request size" not in found else "the total size", size)
        else:
            near = near_names(word, (*_LAYOUTS, *_SPATIALITIES, "write", "read", "direct", PAPER))
            if near:
                raise ArgumentError(f"pattern {text!r}: {word!r} is not understood; did you mean {near[0]!r}?")
            raise ArgumentError(
                f"pattern {text!r}: {word!r} is not understood: shared or individual, contiguous or "
                "strided, write or read, the size of a request, that of all, seconds as in 5s, direct; "
                f"or {PAPER}"
            )
    return _made(text, found, total_bytes)


def _made(text: str, found: dict[str, Any], total_bytes: int) -> list[Spec]:
    sizes: list[int] = [found[name] for name in ("the request size", "the total size") if name in found]
    kinds: list[tuple[Layout, Spatiality, int]]
    if "its name" in found:
        if {"the layout", "the spatiality"} & set(found):
            raise ArgumentError(f"pattern {text!r}: {PAPER} has its own layouts, spatialities and request sizes")
        if len(sizes) > 1:
            raise ArgumentError(f"pattern {text!r}: one size is expected, the total: {PAPER} has its own request sizes")
        kinds = [(layout, spatiality, kib * 1024) for layout, spatiality in _PAPER_KINDS for kib in _PAPER_KIB]
        total = sizes[0] if sizes else total_bytes
    else:
        if not sizes:
            raise ArgumentError(f"pattern {text!r} has no size of a request, as 64KiB")
        kinds = [(found.get("the layout", "shared"), found.get("the spatiality", "contiguous"), sizes[0])]
        total = sizes[1] if len(sizes) > 1 else total_bytes
    return [
        Spec(
            layout=layout,
            spatiality=spatiality,
            request_bytes=request,
            total_bytes=total,
            operation=found.get("the operation", "write"),
            direct="direct" in found,
            stonewall_s=found.get("the stonewall", 0.0),
        )
        for layout, spatiality, request in kinds
    ]
