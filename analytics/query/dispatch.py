"""Queries cut along the units of a placed store: what can be answered unit by unit, and the query that does so.

Problem. The tables of a placed store are split by job range, all at the same job IDs, and each unit of them lies on one
storage target (IOMiner, Section II-C). An executor should read from one target and find both sides of a join by job ID
there. Spark knows nothing of that: it packs files of several targets into a task, and shuffles all rows for a join.

Algorithm. A relation of a query is *local* when its rows for different units can be computed apart. The tables of the
store are. A filter or a projection of row by row values of a local relation is. A join of local ones is, when it
compares their keys; a group or a distinct, when the key is among its columns. A sort, a limit, a group by another
column are not. Each largest local relation of a query is replaced by the union of its copies, one a unit, each over the
tables of that unit alone; what stands above it is computed from the union.

Guarantees. The result is the same. Where it is not certain that a relation is local (a key that an outer join may have
made NULL, operations that are not known here) it counts as not local.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ibis.expr.operations as ops


@dataclasses.dataclass(frozen=True)
class Placed:
    """A table that lies in units.

    Attributes
    ----------
    domain : str
        What the tables are split by, also the name of the key's column; units of different domains do not go together.
    units : how many there are.
    used : those that have files.
    table : returns the relation (an Ibis operation) of one unit's files.
    """

    domain: str
    units: int
    used: frozenset[int]
    table: Callable[[int], Any]


@dataclasses.dataclass(frozen=True)
class _Local:
    """A local relation: the tables that it is made of, and its columns that hold the key.

    `keys` says of each whether it is never NULL; where it is not NULL it is the key of the unit.
    """

    domain: str
    sources: frozenset[Any]
    keys: Mapping[str, bool]


def cut(root: ops.Node, placed: Mapping[ops.Node, Placed]) -> tuple[ops.Node, list[list[int]]]:
    """Return a query whose local relations are unions over units, and the units of each union in its order.

    Parameters
    ----------
    root : Ibis operation
    placed : relations of tables that lie in units.
    """
    found = list(_largest(root, placed))
    made = {}
    units = []
    for relation, sources in found:
        used = _used(sources, placed)
        made[relation] = _union([_copy(relation, sources, placed, unit) for unit in used])
        units.append(used)
    return (root.replace(made) if made else root), units


def local_units(root: Any, placed: Mapping[Any, Placed], keys: list[str]) -> list[Any] | None:
    """Return the copies of a query for its units if groups by the columns `keys` are local; None otherwise."""
    local = _Locals(placed).of(root)
    if local is None or not any(local.keys.get(key, False) for key in keys):
        return None
    return [_copy(root, local.sources, placed, unit) for unit in _used(local.sources, placed)]


def _used(sources: frozenset[Any], placed: Mapping[Any, Placed]) -> list[int]:
    """Return the units in which any table has files; one at least, so that there is something to make a union of."""
    used = frozenset[int]().union(*(placed[source].used for source in sources))
    return sorted(used) or [0]


def _copy(relation: ops.Node, sources: frozenset[ops.Node], placed: Mapping[ops.Node, Placed], unit: int) -> ops.Node:
    return relation.replace({source: placed[source].table(unit) for source in sources})


def _union(relations: list[ops.Node]) -> ops.Node:
    """Return the union of relations as a tree of small depth: the engine's compiler walks it by recursion."""
    import ibis.expr.operations as ops

    if len(relations) == 1:
        return relations[0]
    half = len(relations) // 2
    return ops.Union(_union(relations[:half]), _union(relations[half:]), distinct=False)


def _largest(root: Any, placed: Mapping[Any, Placed]) -> Iterator[tuple[Any, frozenset[Any]]]:
    """Yield the local relations of a query that are not part of a larger one."""
    import ibis.expr.operations as ops

    locals_ = _Locals(placed)
    stack, seen = [root], set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        # A reference is a part of its join and cannot be replaced; what it refers to can.
        local = locals_.of(node) if isinstance(node, ops.Relation) and not isinstance(node, ops.Reference) else None
        if local is not None:
            yield node, local.sources
        else:
            stack.extend(node.__children__)


class _Locals:
    """Finds out which relations are local; each is looked at once."""

    def __init__(self, placed: Mapping[Any, Placed]) -> None:
        self._placed = placed
        self._known: dict[Any, _Local | None] = {}

    def of(self, relation: Any) -> _Local | None:
        """Return what is known of a local relation; None for one that is not."""
        if relation not in self._known:
            self._known[relation] = self._look(relation)
        return self._known[relation]

    def _look(self, relation: Any) -> _Local | None:
        import ibis.expr.operations as ops

        if relation in self._placed:
            domain = self._placed[relation].domain
            return _Local(domain, frozenset((relation,)), {domain: True})
        if isinstance(relation, ops.JoinChain):
            return self._join(relation)
        if not isinstance(relation, (ops.Reference, ops.Project, ops.Filter, ops.Aggregate, ops.Distinct)):
            return None
        parent = self.of(relation.parent)
        if parent is None:
            return None
        if isinstance(relation, ops.Project):
            if not all(map(_by_row, relation.values.values())):
                return None
            return dataclasses.replace(parent, keys=_kept(relation.values, parent.keys))
        if isinstance(relation, ops.Filter):
            return parent if all(map(_by_row, relation.predicates)) else None
        if isinstance(relation, ops.Aggregate):
            groups = _kept(relation.groups, parent.keys)
            if not any(groups.values()) or not all(map(_by_row, relation.metrics.values())):
                return None
            return dataclasses.replace(parent, keys=groups)
        if isinstance(relation, ops.Distinct) and not any(parent.keys.values()):
            return None
        return parent

    def _join(self, chain: Any) -> _Local | None:
        """Return what is known of a chain of joins, each of which must compare keys."""
        first = self.of(chain.first)
        if first is None:
            return None
        sources = first.sources
        keys: dict[Any, Mapping[str, bool]] = {chain.first: first.keys}
        for link in chain.rest:
            other = self.of(link.table)
            if other is None or other.domain != first.domain or link.how not in _NULL_AFTER:
                return None
            if not any(_compares_keys(predicate, keys, link.table, other.keys) for predicate in link.predicates):
                return None
            if not all(map(_by_row, link.predicates)):
                return None
            sources |= other.sources
            left, right = _NULL_AFTER[link.how]
            keys = {reference: _nullable(names) if left else names for reference, names in keys.items()}
            keys[link.table] = _nullable(other.keys) if right else other.keys
        kept = {}
        for name, value in chain.values.items():
            rel = getattr(value, "rel", None)
            if rel in keys and value.name in keys[rel]:
                kept[name] = keys[rel][value.name]
        return _Local(first.domain, sources, kept)


#: Kind of join -> whether keys of the left and of the right side may be NULL behind it.
_NULL_AFTER = {
    "inner": (False, False),
    "left": (False, True),
    "right": (True, False),
    "outer": (True, True),
    "semi": (False, False),
    "anti": (False, False),
}


def _nullable(keys: Mapping[str, bool]) -> dict[str, bool]:
    return dict.fromkeys(keys, False)


def _kept(values: Mapping[str, Any], keys: Mapping[str, bool]) -> dict[str, bool]:
    """Return the columns that are the key of the relation below, under their new names."""
    import ibis.expr.operations as ops

    found = {}
    for name, value in values.items():
        if isinstance(value, ops.Field) and value.name in keys:
            found[name] = keys[value.name]
        elif isinstance(value, ops.Coalesce) and all(
            isinstance(one, ops.Field) and one.name in keys for one in value.arg
        ):
            found[name] = any(keys[one.name] for one in value.arg)
    return found


def _by_row(value: Any) -> bool:
    """Return whether a value needs its own row (or group) alone: no window, no query inside."""
    import ibis.expr.operations as ops

    return not value.find((ops.WindowFunction, ops.Analytic, ops.Subquery), filter=ops.Value)


def _compares_keys(
    predicate: Any, left: Mapping[Any, Mapping[str, bool]], table: Any, right: Mapping[str, bool]
) -> bool:
    import ibis.expr.operations as ops

    if not isinstance(predicate, ops.Equals):
        return False
    for one, other in ((predicate.left, predicate.right), (predicate.right, predicate.left)):
        if not (isinstance(one, ops.Field) and isinstance(other, ops.Field)):
            return False
        if one.rel in left and one.name in left[one.rel] and other.rel == table and other.name in right:
            return True
    return False
