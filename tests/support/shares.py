"""Distributed file systems under tests: their daemons, what happens to them, how full they are."""

from __future__ import annotations

import os
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


def write_mountinfo(proc: pathlib.Path, folder: pathlib.Path, mount: str, options: str = "rw") -> None:
    """Write PROC/mountinfo, which tells another type and source ("TYPE [SOURCE]") of the mount that `folder` lies on.

    For programs under fake_file_system.c with FAKE_PROC=PROC.
    """
    handle = os.open(folder, os.O_RDONLY)
    number = pathlib.Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="utf-8").split("mnt_id:")[1].split()[0]
    os.close(handle)
    kind, _, source = mount.partition(" ")
    line = f"{number} 1 0:99 / {folder} rw - {kind} {source or 'server:/x'} {options}\n"
    (proc / "mountinfo").write_text(line, encoding="utf-8")
