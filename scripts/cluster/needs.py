"""The needs of a cluster on a machine, and which are missing: one line for each, with the remedy."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

#: Tool: Debian's package.
TOOLS = {"unshare": "util-linux", "nsenter": "util-linux", "mount": "mount", "ip": "iproute2"}
SHAPING = {"tc": "iproute2"}
KINDS = ("net", "mnt", "uts", "ipc", "pid")


def missing(*, rootless: bool | None = None, shaping: bool = False) -> list[str]:
    """Return why a cluster cannot start, as far as that shows without trying; empty if nothing prevents it.

    Parameters
    ----------
    rootless : whether it is to run in a user namespace; None: when the caller is not root.
    shaping : whether bandwidth or latency is to be limited.
    """
    if sys.platform != "linux":
        return ["Linux: hosts are made of its namespaces"]
    rootless = os.geteuid() != 0 if rootless is None else rootless
    found = lacking_tools(TOOLS | (SHAPING if shaping else {}))
    for kind in (*KINDS, *(["user"] if rootless else [])):
        if not Path(f"/proc/self/ns/{kind}").exists():
            found.append(f"a kernel with {kind} namespaces")
    if rootless and _limit("/proc/sys/user/max_user_namespaces") == 0:
        found.append("user namespaces, or root: sysctl user.max_user_namespaces is 0")
    if rootless and _limit("/proc/sys/kernel/unprivileged_userns_clone") == 0:
        found.append("user namespaces, or root: sysctl kernel.unprivileged_userns_clone is 0")
    if not os.access("/dev/shm", os.W_OK):
        found.append("/dev/shm that can be written: the folder that all hosts share lies there")
    return found


def lacking_tools(tools: dict[str, str]) -> list[str]:
    """Return a line for each tool that is not on the PATH."""
    return [f"the command {name} (Debian: apt-get install {tools[name]})" for name in tools if not shutil.which(name)]


def _limit(path: str) -> int | None:
    try:
        return int(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
