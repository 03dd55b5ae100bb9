"""Workload paths as a person may spoil them: rows of good paths, changed at random in every column."""

from __future__ import annotations

import json
import random
from typing import Any

from mpiio_ext.pioneer.operations import CATALOG
from mpiio_ext.pioneer.path.workload_path import WorkloadPath
from support.pioneer_paths import EVERYTHING, path_of, row

_MORE = [
    row("open", "d/a.{rank}", "private", extra={"flags": 66}),
    row("write", "d/a.{rank}", "private", size=300),
    row("mmap", "d/a.{rank}", "private", at=0, size=300, extra={"protection": 3}),
    row("msync", "d/a.{rank}", "private"),
    row("munmap", "d/a.{rank}", "private"),
    row("close", "d/a.{rank}", "private"),
    row("link", "d/a.{rank}", "private", extra={"file2": "d/c.{rank}"}),
    row("rename", "d/a.{rank}", "private", extra={"file2": "d/b.{rank}"}),
    row("opendir", "in", "shared"),
    row("readdir", "in", "shared"),
    row("closedir", "in", "shared"),
    row("unlink", "gone", "root", groups=1),
    row("truncate", "t.{rank}", "private", size=9),
    row("open", "from", "root", groups=1),
    row("open", "to", "root", groups=1),
    row("copy_file_range", "from", "root", groups=1, size=90, extra={"file2": "to", "moved": 50}),
    row("close", "from", "root", groups=1),
    row("close", "to", "root", groups=1),
    row("MPI_File_open", "view", "shared", "mpiio"),
    row("MPI_File_preallocate", "view", "shared", "mpiio", size=100),
    row("MPI_File_set_view", "view", "shared", "mpiio", extra={"displacement": 0, "filetype": "8"}),
    row("MPI_File_iwrite_at", "view", "shared", "mpiio", at=0, size=30, step=30, extra={"request": 5}),
    row("MPI_Wait", "view", "shared", "mpi", extra={"request": 5}),
    row("MPI_File_write_at_all_begin", "view", "shared", "mpiio", at=0, size=30, step=30),
    row("MPI_File_write_at_all_end", "view", "shared", "mpiio"),
    row("MPI_File_close", "view", "shared", "mpiio"),
]
_SIZES = (None, 0, 1, 77, 3000, -1, -(2**62), 2**60 + 1, 2**62, 2**63 - 1)
_FILES = (
    None,
    "",
    "a",
    "all",
    "in",
    "d",
    "../out",
    "/",
    "n\0ul",
    "{rank",
    "{rank~1}",
    "{rank=2}.x",
    "x" * 300,
    "d/a.{rank}",
)
_KEYS = (
    "flags",
    "mode",
    "amode",
    "file2",
    "moved",
    "protection",
    "request",
    "displacement",
    "filetype",
    "whence",
    "comm",
    "communicator",
    "address",
    "value",
    "complete",
    "implied",
    "errno",
    "groups",
)
_VALUES: tuple[Any, ...] = (
    None,
    0,
    1,
    3,
    -1,
    2**31,
    2**70,
    1.5,
    True,
    "",
    "x",
    "O_RDWR|O_CREAT",
    "PROT_READ",
    "r",
    "w+",
    "self",
    "8",
    "4,2",
    [1],
    {"a": 1},
    [[0, 1]],
)


def _extra(one: random.Random, before: str | None) -> str | None:
    if one.random() < 0.1:
        return one.choice((None, "{", "[]", "3", "{}"))
    found = json.loads(before) if before and before.startswith("{") and before != "{" else {}
    return json.dumps(found | {one.choice(_KEYS): one.choice(_VALUES)})


def _spoil(one: random.Random, rows: list[dict[str, Any]]) -> None:
    """Change something of one row, or the rows themselves."""
    at = one.randrange(len(rows))
    what = one.choice(
        (
            "operation",
            "file",
            "owner",
            "session",
            "groups",
            "size",
            "offset",
            "extra",
            "layer",
            "slack",
            "away",
            "twice",
            "elsewhere",
        )
    )
    spoilt = dict(rows[at])
    if what == "away" and len(rows) > 1:
        del rows[at]
        return
    if what in ("twice", "elsewhere"):
        rows.insert(one.randrange(len(rows) + 1), rows[at] if what == "twice" else rows.pop(at))
        return
    if what == "operation":
        layer, name = one.choice(sorted(CATALOG))
        spoilt |= {"operation": name} | ({"layer": layer} if one.random() < 0.7 else {})
    elif what in ("size", "offset"):
        spoilt[f"{what}_{one.randrange(2)}"] = one.choice(_SIZES)
    elif what == "slack":
        spoilt["slack_0"] = one.choice((0, -5, 2**61, None))
    elif what == "extra":
        spoilt["extra"] = _extra(one, spoilt["extra"])
    else:
        choices: dict[str, tuple[Any, ...]] = {
            "file": _FILES,
            "owner": ("root", "shared", "private", "child", None),
            "session": (None, 0, 1, 2, 7),
            "groups": (1, 2, 3),
            "layer": ("posix", "stdio", "mpiio", "mpi"),
        }
        spoilt[what] = one.choice(choices.get(what, (None,)))
    rows[at] = spoilt


def spoilt_path(one: random.Random) -> WorkloadPath:
    """Return a path of a root and its children, with up to five things spoilt; the same of the same numbers."""
    rows = [dict(item) for item in (EVERYTHING, _MORE, EVERYTHING + _MORE)[one.randrange(3)]]
    for item in rows:
        item["slack_0"] = item["slack_1"] = 0
    for _ in range(one.randrange(6)):
        _spoil(one, rows)
    return path_of(rows, members=((0,), (1, 2)))
