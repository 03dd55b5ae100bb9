"""Distributed file systems under tests: their daemons, what happens to them, how full they are."""

from __future__ import annotations

import pathlib

#: Kinds of shared folders that Debian's packages start on any machine with FUSE.
DISTRIBUTED = ("gluster", "gluster-shard", "gluster-disperse", "cephfs", "moosefs")


def daemons_of(private: pathlib.Path) -> list[tuple[int, str]]:
    """Return the processes that have a cluster's folder in their command line: (process id, command line)."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                continue
            if f"{private}/" in words and "keeper.py" not in words:
                found.append((int(entry.name), words))
    return found
