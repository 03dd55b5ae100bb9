"""Datatype trees: a JSON form, a byte-exact NumPy model of their type maps, and their MPI counterparts.

A tree is a list whose first entry names the constructor; children are trees. A name that ends in ``_c`` stands for the
large-count form of the constructor, which describes the same. The model lists every data byte's displacement in
type-map order, which is slow and obviously right: it shares no idea with the library's descriptions.
Bounds follow the rules of the MPI standard. Where MPI libraries differ (padding of misaligned types, bounds of structs
that mix resized and plain members, empty types), the model says "ambiguous" and the generator wraps an explicit resize
around it, so that one tree means the same everywhere.
"""

from __future__ import annotations

import functools
import itertools
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from mpi4py import MPI

Tree = list[Any]
Offsets = npt.NDArray[np.int64]

#: name -> (sizes of the parts, their displacements, extent, alignment); all predefined types the trees use
NAMED: dict[str, tuple[tuple[int, ...], tuple[int, ...], int, int]] = {
    "BYTE": ((1,), (0,), 1, 1),
    "CHAR": ((1,), (0,), 1, 1),
    "SHORT": ((2,), (0,), 2, 2),
    "INT": ((4,), (0,), 4, 4),
    "FLOAT": ((4,), (0,), 4, 4),
    "DOUBLE": ((8,), (0,), 8, 8),
    "LONG": ((8,), (0,), 8, 8),
    "UINT16_T": ((2,), (0,), 2, 2),
    "INT64_T": ((8,), (0,), 8, 8),
    "C_DOUBLE_COMPLEX": ((16,), (0,), 16, 8),
    "SHORT_INT": ((2, 4), (0, 4), 8, 4),
    "DOUBLE_INT": ((8, 4), (0, 8), 16, 8),
}
PLAIN = tuple(name for name, parts in NAMED.items() if len(parts[0]) == 1)
PAIRS = tuple(name for name, parts in NAMED.items() if len(parts[0]) > 1)
#: Trees without children: handles that MPI has already.
ATOMS = ("named", "f90_real", "f90_integer")
BLOCK, CYCLIC, NONE, DEFAULT = "block", "cyclic", "none", -49767  # the last stands for MPI_DISTRIBUTE_DFLT_DARG


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What MPI says about a type.

    Attributes
    ----------
    offsets : displacement of every data byte in type-map order, shape (size,), bytes.
    parts : size of every basic element in type-map order, shape (elements,), bytes.
    lb, ub : bounds, bytes; ``sticky`` when an explicit marker set them.
    align : strictest alignment of the basic elements, bytes.
    ambiguous : MPI libraries differ on the bounds of this type.
    """

    offsets: Offsets
    parts: Offsets
    lb: int
    ub: int
    align: int
    sticky: bool = False
    ambiguous: bool = False
    _cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def size(self) -> int:
        """Data bytes."""
        return len(self.offsets)

    @property
    def extent(self) -> int:
        """Tiling step, bytes."""
        return self.ub - self.lb

    def tiled(self, count: int) -> Offsets:
        """Return the displacements of ``count`` tiles, shape (count * size,)."""
        starts = np.arange(count, dtype=np.int64)[:, None] * self.extent
        return np.asarray((starts + self.offsets[None, :]).reshape(-1))

    def stream(self, start: int, length: int) -> Offsets:
        """Return the displacements of stream bytes start .. start+length-1 of the endless tiling."""
        if length == 0:
            return np.empty(0, np.int64)
        position = np.arange(start, start + length, dtype=np.int64)
        return np.asarray(self.offsets[position % self.size] + position // self.size * self.extent)

    def elements(self, length: int) -> int | None:
        """Return the basic elements in the first ``length`` stream bytes; None when one of them is cut."""
        tiles, rest = divmod(length, self.size) if self.size else (0, 0)
        ends = np.cumsum(self.parts)
        whole = int(np.searchsorted(ends, rest, side="right"))
        if rest and (whole == 0 or ends[whole - 1] != rest):
            return None
        return tiles * len(self.parts) + whole

    def is_file_legal(self, *, write: bool) -> bool:
        """Tell whether this is a legal file type: offsets >= 0, never going back, no byte twice when written."""
        if self.size == 0:
            return True
        two = self.tiled(2)
        if write:
            ordered = bool((np.diff(two) >= 1).all())
        else:  # the standard orders the elements of the type map, not their bytes
            starts = np.cumsum(self.parts) - self.parts
            ordered = bool((np.diff(two[np.concatenate([starts, starts + self.size])]) >= 0).all())
        return ordered and int(self.offsets.min()) >= 0 and self.extent > 0

    def is_distinct(self, count: int) -> bool:
        """Tell whether no byte occurs twice in ``count`` tiles."""
        return distinct(self.tiled(count))


def distinct(values: Offsets) -> bool:
    """Tell whether no value occurs twice."""
    if (values[1:] > values[:-1]).all():  # most accesses go forward, and need no sort
        return True
    ordered = np.sort(values)
    return not bool((ordered[1:] == ordered[:-1]).any())


def _copies(child: Model, displacements: Offsets) -> Model:
    """Place copies of child at displacements (bytes)."""
    return _place([(child, displacements)])


def _place(groups: list[tuple[Model, Offsets]], *, struct: bool = False) -> Model:
    """Place copies of several children, each at its displacements, in order."""
    idle_markers = any(child.sticky or not child.size for child, at in groups if not len(at))  # MPICH counts them
    groups = [(child, at) for child, at in groups if len(at)]
    if not groups:
        return Model(offsets=np.empty(0, np.int64), parts=np.empty(0, np.int64), lb=0, ub=0, align=1, ambiguous=False)
    offsets = np.concatenate([(at[:, None] + child.offsets[None, :]).reshape(-1) for child, at in groups])
    parts = np.concatenate([np.tile(child.parts, len(at)) for child, at in groups])
    sticky = [child.sticky for child, _ in groups]
    bounded = [(child, at) for child, at in groups if child.sticky] if any(sticky) else groups
    lb = min(int(at.min()) + child.lb for child, at in bounded)
    ub = max(int(at.max()) + child.ub for child, at in bounded)
    align = max(child.align for child, _ in groups)
    ambiguous = any(child.ambiguous or child.size == 0 for child, _ in groups) or (any(sticky) and not all(sticky))
    ambiguous = ambiguous or idle_markers
    if (struct or not any(sticky)) and (ub - lb) % align:
        ambiguous = True  # Open MPI pads what has no explicit bounds, MPICH structs of different types
    return Model(offsets=offsets, parts=parts, lb=lb, ub=ub, align=align, sticky=any(sticky), ambiguous=ambiguous)


def _blocks(child: Model, lengths: list[int], displacements: list[int]) -> Offsets:
    """Return where the copies of child lie: block i holds lengths[i] copies from displacements[i] (bytes) on."""
    pieces = [d + np.arange(n, dtype=np.int64) * child.extent for n, d in zip(lengths, displacements, strict=True)]
    return np.concatenate(pieces) if pieces else np.empty(0, np.int64)


def _grid(child: Model, sizes: list[int], chosen: list[list[int]], order: str) -> Model:
    """Return a type that picks chosen[d] (ascending indices) of every dimension d of an array of child."""
    dimensions = list(range(len(sizes)))
    if order == "F":  # first index fastest: the same as C order with the dimensions turned round
        sizes, chosen = sizes[::-1], chosen[::-1]
    steps = [int(np.prod(sizes[d + 1 :], dtype=np.int64)) for d in dimensions]
    cells = [sum(i * s for i, s in zip(index, steps, strict=True)) for index in itertools.product(*chosen)]
    at = np.array(cells, dtype=np.int64) * child.extent
    inner = _copies(child, at)
    whole = int(np.prod(sizes, dtype=np.int64)) * child.extent
    return Model(
        offsets=inner.offsets,
        parts=inner.parts,
        lb=0,
        ub=whole,
        align=child.align,
        sticky=True,
        ambiguous=child.ambiguous or inner.size == 0,
    )


def darray_indices(size: int, distribution: str, argument: int, parts: int, part: int) -> list[int]:
    """Return the global indices that process ``part`` of ``parts`` owns in one dimension (MPI 4.1, section 5.1.4)."""
    if distribution == NONE:
        return list(range(size))
    if distribution == BLOCK:
        block = -(-size // parts) if argument == DEFAULT else argument
        return list(range(min(part * block, size), min((part + 1) * block, size)))
    block = 1 if argument == DEFAULT else argument
    return [i for i in range(size) if i // block % parts == part]


def _darray(tree: Tree) -> Model:
    _, size, rank, sizes, distributions, arguments, grid, order, child_tree = tree
    child = model(child_tree)
    place, rest = [], rank  # the process grid is always in C order
    for d in range(len(grid)):
        below = int(np.prod(grid[d + 1 :], dtype=np.int64))
        place.append(rest // below)
        rest %= below
    assert size == int(np.prod(grid, dtype=np.int64))
    chosen = [darray_indices(sizes[d], distributions[d], arguments[d], grid[d], place[d]) for d in range(len(sizes))]
    return _grid(child, list(sizes), chosen, order)


def plain(tree: Tree) -> str:
    """Return the name of a tree's constructor without its form."""
    return str(tree[0]).removesuffix("_c")


def children_of(tree: Tree) -> list[Tree]:
    """Return the trees that a tree is made of."""
    if tree[0] in ATOMS:
        return []
    return list(tree[3]) if plain(tree) == "struct" else [tree[-1]]


def classic_text(tree: Tree) -> str:
    """Return a tree as JSON with every constructor in its classic form."""
    return json.dumps(tree).replace('_c"', '"')


def model(tree: Tree) -> Model:
    """Return the model of a tree (cached by content)."""
    return _model_of(classic_text(tree))


@functools.lru_cache(maxsize=4000)
def _model_of(text: str) -> Model:
    tree: Tree = json.loads(text)
    kind = tree[0]
    if kind == "named":
        sizes, places, extent, align = NAMED["BYTE" if tree[1] == "NULL" else tree[1]]
        offsets = np.concatenate([np.arange(p, p + s, dtype=np.int64) for p, s in zip(places, sizes, strict=True)])
        return Model(offsets=offsets, parts=np.array(sizes, np.int64), lb=0, ub=extent, align=align)
    if kind == "f90_real":
        size = 4 if tree[1] <= 6 else 8
        return Model(offsets=np.arange(size), parts=np.array([size]), lb=0, ub=size, align=size)
    if kind == "f90_integer":
        size = 2 if tree[1] <= 4 else 4 if tree[1] <= 9 else 8
        return Model(offsets=np.arange(size), parts=np.array([size]), lb=0, ub=size, align=size)
    if kind == "darray":
        return _darray(tree)
    if kind == "struct":
        members = []
        for n, d, child_tree in zip(*tree[1:4], strict=True):
            child = model(child_tree)
            members.append((child, _blocks(child, [n], [d])))
        return _place(members, struct=True)
    child = model(tree[-1])
    step = child.extent
    if kind in ("dup", "raw"):
        return child
    if kind == "contiguous":
        return _copies(child, _blocks(child, [tree[1]], [0]))
    if kind in ("vector", "hvector"):
        n, length, stride = tree[1:4]
        unit = step if kind == "vector" else 1
        result = _copies(child, _blocks(child, [length] * n, [i * stride * unit for i in range(n)]))
        # Open MPI 4.1 takes a stride of -1 byte for "no stride given"
        return (
            replace(result, ambiguous=True, parts=result.parts[:0], offsets=result.offsets[:0])
            if stride * unit == -1
            else result
        )
    if kind in ("indexed", "hindexed"):
        return _copies(child, _blocks(child, tree[1], [d * (step if kind == "indexed" else 1) for d in tree[2]]))
    if kind in ("indexed_block", "hindexed_block"):
        unit = step if kind == "indexed_block" else 1
        return _copies(child, _blocks(child, [tree[1]] * len(tree[2]), [d * unit for d in tree[2]]))
    if kind == "subarray":
        sizes, subsizes, starts, order = tree[1:5]
        return _grid(child, sizes, [list(range(s, s + n)) for s, n in zip(starts, subsizes, strict=True)], order)
    if kind == "resized":
        return Model(
            offsets=child.offsets, parts=child.parts, lb=tree[1], ub=tree[1] + tree[2], align=child.align, sticky=True
        )
    raise ValueError(f"unknown constructor {kind!r}")


def constructors(tree: Tree) -> set[str]:
    """Return the names of all constructors in a tree, with their forms."""
    if tree[0] in ATOMS:
        return {"pair" if tree[0] == "named" and tree[1] in PAIRS else tree[0]}
    return {str(tree[0])}.union(*(constructors(child) for child in children_of(tree)))


def leaves(tree: Tree) -> set[str]:
    """Return the predefined types in a tree, as text."""
    if tree[0] in ATOMS:
        return {json.dumps(tree)}
    return set().union(*(leaves(child) for child in children_of(tree)))


def composites(tree: Tree) -> list[Tree]:
    """Return the tree and all trees in it that are no predefined types, in the order in which build() makes them."""
    if tree[0] in ATOMS:
        return []
    return [part for child in children_of(tree) for part in composites(child)] + [tree]


def build(tree: Tree, made: list[MPI.Datatype]) -> MPI.Datatype:
    """Make the MPI datatype of a tree; everything to be freed is appended to ``made``. The result is not committed."""
    from mpi4py import MPI

    from differential import classic

    kind = tree[0]
    if kind == "named":
        named: MPI.Datatype = getattr(MPI, "DATATYPE_NULL" if tree[1] == "NULL" else tree[1])
        return named
    if kind == "f90_real":
        return MPI.Datatype.Create_f90_real(tree[1], tree[2])
    if kind == "f90_integer":
        return MPI.Datatype.Create_f90_integer(tree[1])
    children = [build(child, made) for child in children_of(tree)]
    if kind == "dup":
        result = children[0].Dup()
    elif kind == plain(tree):
        result = classic.datatype(kind, tree[1 : 3 if kind == "struct" else -1], children)
    else:
        result = _build_large(tree, children)
    made.append(result)
    return result


def _build_large(tree: Tree, children: list[MPI.Datatype]) -> MPI.Datatype:
    """Make the MPI datatype of a tree over its children by mpi4py: in large-count form where there is one."""
    from mpi4py import MPI

    kind, child = plain(tree), children[0] if children else MPI.DATATYPE_NULL
    order = {"C": MPI.ORDER_C, "F": MPI.ORDER_F}
    if kind == "struct":
        return MPI.Datatype.Create_struct(tree[1], tree[2], children)
    if kind == "contiguous":
        return child.Create_contiguous(tree[1])
    if kind == "vector":
        return child.Create_vector(*tree[1:4])
    if kind == "hvector":
        return child.Create_hvector(*tree[1:4])
    if kind == "indexed":
        return child.Create_indexed(tree[1], tree[2])
    if kind == "hindexed":
        return child.Create_hindexed(tree[1], tree[2])
    if kind == "indexed_block":
        return child.Create_indexed_block(tree[1], tree[2])
    if kind == "hindexed_block":
        return child.Create_hindexed_block(tree[1], tree[2])
    if kind == "subarray":
        return child.Create_subarray(tree[1], tree[2], tree[3], order[tree[4]])
    if kind == "darray":
        ways = {BLOCK: MPI.DISTRIBUTE_BLOCK, CYCLIC: MPI.DISTRIBUTE_CYCLIC, NONE: MPI.DISTRIBUTE_NONE}
        arguments = [MPI.DISTRIBUTE_DFLT_DARG if a == DEFAULT else a for a in tree[5]]
        return child.Create_darray(
            tree[1], tree[2], tree[3], [ways[w] for w in tree[4]], arguments, tree[6], order[tree[7]]
        )
    if kind == "resized":
        return child.Create_resized(tree[1], tree[2])
    raise ValueError(f"unknown constructor {kind!r}")


def countable(tree: Tree, family: str) -> bool:
    """Tell whether MPI_Get_elements can be asked: MPICH 5.0 aborts on mixed and empty types, pairs count as 1 or 2."""
    kinds = {name.removesuffix("_c") for name in constructors(tree)}
    if not model(tree).size or "pair" in kinds:
        return False
    simple = {"named", "contiguous", "vector", "hvector", "indexed", "hindexed"}
    return family == "openmpi" or (len(leaves(tree)) == 1 and kinds <= simple)
