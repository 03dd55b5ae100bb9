"""Communicators of a part of the ranks: which ranks open a file together, as a rule for any number of ranks.

Problem.   A program opens a file for each node, each pair, its I/O ranks alone. A path stands for any number of ranks,
           so it cannot list members: it needs to know how they come about.
Algorithm. A trace has the members of the communicator of an open (`members` in `extra`: "0-3,8", "0-12:4"). Opens of
           files whose names differ in numbers only are looked at together. What fits their communicators first is their
           rule (`Rule`): blocks of k consecutive ranks; ranks that are equal modulo k; all from a rank on; else the
           ranks themselves. A number of the names that is the communicator's, or its first rank, becomes a field:
           ``half.{rank//2}``. Without such a number each file has a rule of its own.
Scaling.   Blocks keep their size and become more; the ranks equal modulo k stay k communicators and become
           larger. A trace of one number of ranks does not show what the program does. Listed ranks are those equal to
           them modulo the number that was traced.
Guarantee. Of as many ranks as were traced a rule gives the members that were traced. Files whose opens do not name
           their members are found, in all traces that there are, so that nothing is left out silently.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.pioneer.access import parsed
from mpiio_ext.pioneer.path.names import Template, communicator_template
from mpiio_ext.pioneer.path.rules import Rule

#: Name in `extra` of an open: place of its communicator's rule in `PathInfo.communicators`.
NUMBER = "communicator"
_MEMBERS = "members"
_OPEN = "MPI_File_open"
_SIZE = r'"comm_size":\s*(?P<size>\d+)'
_DIGITS = re.compile(r"\d+")
_RANGE = re.compile(r"(?P<first>\d+)(?:-(?P<last>\d+)(?::(?P<step>\d+))?)?")
#: Ranks of a communicator at most: the input must not fill the memory.
_MOST_RANKS = 1 << 24

_Set = tuple[int, ...]


def members_of(text: object) -> _Set | None:
    """Return the ranks of a text as "0-3,8", "0-12:4", ascending; None: it is no such text."""
    found: set[int] = set()
    for part in text.split(",") if isinstance(text, str) else ("",):
        match = _RANGE.fullmatch(part)
        if match is None:
            return None
        first, step = int(match["first"]), int(match["step"] or 1)
        last = int(match["last"] or first)
        if step < 1 or not first <= last < _MOST_RANKS:
            return None
        found.update(range(first, last + 1, step))
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True)
class Communicators:
    """The known communicators of a trace.

    Attributes
    ----------
    rules : in the order in which they were found.
    of : number of the rule of an open, by its file and the members that its communicator has.
    templates : of files whose names identify the communicator.
    members : ranks that have opened a file together; the first ones where there are several communicators.
    """

    rules: tuple[Rule, ...] = ()
    of: Mapping[tuple[str, _Set], int] = field(default_factory=dict)
    templates: Mapping[str, Template] = field(default_factory=dict)
    members: Mapping[str, _Set] = field(default_factory=dict)


# ---- what a trace has ------------------------------------------------------------------------------------------------


def _opens(table: pa.Table) -> pa.Table:
    return table.filter(pc.equal(table["operation"].cast(pa.string()), _OPEN)).select(["file", "extra"])


def _recorded(tables: Iterable[pa.Table]) -> dict[tuple[str, _Set], None]:
    """Return the files opened on communicators with known members, and these members, in the traces' order."""
    found: dict[tuple[str, _Set], None] = {}
    for table in tables:
        opens = _opens(table)
        for name, extra in zip(opens["file"].to_pylist(), opens["extra"].to_pylist(), strict=True):
            if name is not None and extra is not None and f'"{_MEMBERS}"' in extra:
                members = members_of(parsed(extra).get(_MEMBERS))
                if members is not None:
                    found[name, members] = None
    return found


def _disjoint(sets: Sequence[_Set]) -> bool:
    return len({rank for one in sets for rank in one}) == sum(map(len, sets))


def find_communicators(tables: Mapping[int, pa.Table], ranks: int) -> Communicators:
    """Return the rules of all communicators of a part of the ranks.

    Parameters
    ----------
    tables : trace table (`pioneer.table.SCHEMA`) by rank.
    ranks : of the program.
    """
    recorded = [key for key in _recorded(tables.values()) if len(key[1]) < ranks]
    families: dict[str, list[tuple[str, _Set]]] = defaultdict(list)
    for name, members in recorded:
        families[_DIGITS.sub("#", name)].append((name, members))
    rules: dict[Rule, int] = {}
    of: dict[tuple[str, _Set], int] = {}
    templates: dict[str, Template] = {}
    for family in families.values():
        if all(len(one) == 1 for _, one in family):  # each rank for itself
            continue
        for part in _alike(family, templates, tables.keys(), ranks):
            rule = Rule.of(sorted({one for _, one in part}), ranks, tables.keys())
            of |= dict.fromkeys(part, rules.setdefault(rule, len(rules)))
    return Communicators(tuple(rules), of, templates, dict(reversed(of)))


def _alike(
    family: Sequence[tuple[str, _Set]], templates: dict[str, Template], traced: Iterable[int], ranks: int
) -> list[list[tuple[str, _Set]]]:
    """Return the opens of a family that have one rule each; add templates of names that identify the communicator."""
    sets = sorted({members for _, members in family})
    if len(sets) > 1 and _disjoint(sets):
        found = communicator_template(dict(family), Rule.of(sets, ranks, traced))
        if found is not None and len(found) == len(family):
            templates |= found
            return [list(family)]
    parts = []
    for _, several in itertools.groupby(sorted(family), key=lambda item: item[0]):
        opens = list(several)
        parts += [opens] if _disjoint([members for _, members in opens]) else [[one] for one in opens]
    return parts


def with_numbers(table: pa.Table, known: Communicators) -> pa.Table:
    """Return a trace table whose opens have the number of their communicator's rule in place of its members."""
    rows_with_members = pc.fill_null(pc.match_substring(table["extra"].cast(pa.string()), f'"{_MEMBERS}"'), False)
    rows = pc.indices_nonzero(rows_with_members).to_pylist()
    if not rows:
        return table
    extras, files = table["extra"].cast(pa.string()).to_pylist(), table["file"].cast(pa.string()).to_pylist()
    for row in rows:
        found = parsed(extras[row])
        members = members_of(found.get(_MEMBERS))
        number = None if members is None else known.of.get((files[row], members))
        if members is not None and len(members) == 1:
            found["comm"] = "self"
        if number is not None or (members is not None and len(members) == 1):
            del found[_MEMBERS]
        extras[row] = json.dumps(found | ({} if number is None else {NUMBER: number}), separators=(",", ":"))
    place = table.schema.get_field_index("extra")
    return table.set_column(place, table.schema.field("extra"), pa.array(extras, pa.string()))


# ---- what it lacks ---------------------------------------------------------------------------------------------------


def opened_by_a_part(tables: Mapping[int, pa.Table], ranks: int, known: Communicators | None = None) -> dict[str, int]:
    """Return the files that were opened on communicators of several ranks but not all, with the sizes of these.

    Parameters
    ----------
    tables : trace table (`pioneer.table.SCHEMA`) by rank.
    ranks : of the program.
    known : communicators that a path has; their files are left out.
    """
    found: dict[str, int] = {}
    for table in tables.values():
        opens = _opens(table)
        sizes = pc.struct_field(pc.extract_regex(opens["extra"].cast(pa.string()), _SIZE), "size").to_pylist()
        for name, extra, size in zip(opens["file"].to_pylist(), opens["extra"].to_pylist(), sizes, strict=True):
            if name is None or size is None or not 1 < int(size) < ranks:
                continue
            members = members_of(parsed(extra).get(_MEMBERS))
            if known is None or members is None or (name, members) not in known.of:
                found[name] = int(size)
    return found


def partly_words(found: Mapping[str, int], ranks: int) -> str:
    """Return a note on such files, one line; empty if there are none."""
    if not found:
        return ""
    name, size = min(found.items())
    return (
        f"{len(found)} files were opened on communicators of a part of the ranks, as {name!r} by {size} of "
        f"{ranks}, and the trace does not name the ranks: a replay opens them on all ranks, or on each alone, and "
        "files of other parts may be missing; --each-rank keeps the files of every rank"
    )
