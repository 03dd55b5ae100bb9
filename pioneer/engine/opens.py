"""Opens and closes that a trace does not have: without them nothing of such a file could be carried out.

Problem.   Darshan DXT records accesses alone, and a trace may begin when files are open already. An access needs a
           handle (a hard dependency of the paper's Figures 1a and 1b).
Algorithm. A session of the path that moves data and has no open gets one before its first operation, made by all
           groups that use it, and a close behind its last one, where it has none. Their slack times are 0. `extra` of
           such an open, and of such a close, says ``"implied": true``: the seeks of the session are not known either,
           so that its accesses are made at their offsets (`AT_OFFSETS`).
Guarantee. Every other operation stays as it is, in its order, with its session's number. A path that has all
           opens is returned itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mpiio_ext.pioneer.operations import DATA, Operation, Role, operation_of
from mpiio_ext.pioneer.path import WorkloadPath
from mpiio_ext.pioneer.path.workload_path import PER_GROUP
from mpiio_ext.pioneer.profile import find_sessions
from mpiio_ext.pioneer.profile.sessions import OUTSIDE

IMPLIED = "implied"
#: `extra` of an added operation.
IMPLIED_MARK = f'{{"{IMPLIED}":true}}'
#: Operation at a given offset, by the operation at the file pointer; collectives have to be the same on all
#: ranks, of which some may not know their offsets.
AT_OFFSETS: Mapping[str, str] = {
    "read": "pread",
    "readv": "pread",
    "write": "pwrite",
    "writev": "pwrite",
    **{f"MPI_File_{kind}": f"MPI_File_{kind}_at" for kind in ("read", "write", "iread", "iwrite")},
}
_PAIRS = {"posix": ("open", "close"), "stdio": ("fopen", "fclose"), "mpiio": ("MPI_File_open", "MPI_File_close")}
_MOVING = DATA | {Role.MAP, Role.RESIZE, Role.BEGIN}


def _made_up(path: WorkloadPath, row: int, name: str, groups: int) -> dict[str, Any]:
    """Return an operation on the file of a row."""
    like = path.table.slice(row, 1).to_pylist()[0]
    values: dict[str, Any] = {name: like[name] for name in ("id", "file", "owner", "layer")}
    values |= {"operation": name, "groups": groups, "extra": IMPLIED_MARK}
    for group in range(path.group_count):
        taking_part = groups >> group & 1
        values |= {f"{column}_{group}": None for column in PER_GROUP}
        values |= {f"{column}_{group}": 0 for column in ("slack", "duration") if taking_part}
    return values


def with_opens(path: WorkloadPath) -> WorkloadPath:
    """Return a path in which every session that moves data has an open."""
    return opened(path)[0]


def opened(path: WorkloadPath) -> tuple[WorkloadPath, NDArray[np.int64]]:
    """Return the path of `with_opens`, and each row's ID in the original; an added row has that of the row beside."""
    pairs = list(zip(path.words("layer").tolist(), path.words("operation").tolist(), strict=True))
    known = {pair: operation_of(*pair) for pair in set(pairs)}
    kinds: list[Operation] = [known[pair] for pair in pairs]
    groups = path.table["groups"].to_pylist()
    rows, places = [], []
    sessions = find_sessions(path)
    for number, session in enumerate(sessions.sessions):
        if session.has_open or not any(kinds[row].role in _MOVING for row in session.members):
            continue
        users = 0
        for row in session.members:
            users |= groups[row]
        opening, closing = _PAIRS[session.layer]
        rows.append(_made_up(path, session.first, opening, users) | {"session": number})
        places.append(session.first - 0.5)
        if not session.has_close:
            rows.append(_made_up(path, session.last, closing, users) | {"session": number})
            places.append(session.last + 0.5)
    if not rows:
        return path, path.table["id"].to_numpy()
    schema = path.table.schema.remove_metadata()
    plain = pa.schema(
        [pa.field(field.name, pa.string() if pa.types.is_dictionary(field.type) else field.type) for field in schema]
    )
    numbers = pa.array(sessions.of, mask=sessions.of == OUTSIDE)
    numbered = path.table.set_column(schema.get_field_index("session"), schema.field("session"), numbers)
    whole = pa.concat_tables([numbered.cast(plain), pa.Table.from_pylist(rows, plain)])
    order = np.argsort(np.concatenate([np.arange(path.table.num_rows), places]), kind="stable")
    whole = whole.take(pa.array(order)).cast(schema)
    ids = pa.array(np.arange(whole.num_rows, dtype=np.int64))
    return WorkloadPath(whole.set_column(0, schema.field("id"), ids), path.info), whole["id"].to_numpy()
