"""Shared folders of the hosts whose caches nothing keeps coherent: a GlusterFS volume, an NFS export.

Problem.   A folder that is bind-mounted into all hosts has one page cache, as a parallel file system with coherent
           caches seems to have. On NFS and FUSE every node has a cache of its own, and may not see what another node
           has written.
Method.    node1 serves a folder of its own /dev/shm over the hosts' network; every host, node1 too, mounts it at the
           same path. GlusterFS runs without its management daemon, which would keep its state in the machine's /var:
           server and clients get the graphs that `gluster volume create` of release 10 writes for a volume of one
           brick, less the features that are switched off by default. NFS is nfs-ganesha's, and needs the kernel's
           client.
Guarantee. Servers, clients and mounts are the hosts' and end with them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from cluster.needs import missing_for_gluster, missing_for_nfs
from cluster.network import SUBNET, address
from cluster.tools import START_S, ClusterError

KINDS = ("gluster", "nfs")
#: The served folder on node1, in the memory of its own /dev/shm.
SERVED = "/dev/shm/served"
SERVER = 1
GLUSTER_PORT, NFS_PORT = 24007, 2049
#: Seconds without an answer after which a client gives its server up.
PING_TIMEOUT_S = 42
#: Options of every host's NFS mount: version 4.1 over TCP, attributes cached as by default.
NFS_OPTIONS = f"vers=4.1,proto=tcp,port={NFS_PORT},hard"

GLUSTER_SERVER = f"""\
volume posix
    type storage/posix
    option directory {SERVED}
end-volume
volume access-control
    type features/access-control
    subvolumes posix
end-volume
volume locks
    type features/locks
    option enforce-mandatory-lock off
    subvolumes access-control
end-volume
volume leases
    type features/leases
    option leases off
    subvolumes locks
end-volume
volume upcall
    type features/upcall
    option cache-invalidation off
    subvolumes leases
end-volume
volume io-threads
    type performance/io-threads
    subvolumes upcall
end-volume
volume brick
    type debug/io-stats
    subvolumes io-threads
end-volume
volume server
    type protocol/server
    option transport-type tcp
    option transport.address-family inet
    option transport.socket.bind-address {address(SERVER)}
    option transport.socket.listen-port {GLUSTER_PORT}
    option auth.addr.brick.allow *
    subvolumes brick
end-volume
"""
GLUSTER_CLIENT = f"""\
volume remote
    type protocol/client
    option transport-type tcp
    option transport.address-family inet
    option remote-host {address(SERVER)}
    option remote-port {GLUSTER_PORT}
    option remote-subvolume brick
    option ping-timeout {PING_TIMEOUT_S}
    option strict-locks off
    option send-gids true
end-volume
volume distribute
    type cluster/distribute
    option lock-migration off
    option force-migration off
    subvolumes remote
end-volume
volume utime
    type features/utime
    option noatime on
    subvolumes distribute
end-volume
volume write-behind
    type performance/write-behind
    subvolumes utime
end-volume
volume open-behind
    type performance/open-behind
    subvolumes write-behind
end-volume
volume quick-read
    type performance/quick-read
    subvolumes open-behind
end-volume
volume md-cache
    type performance/md-cache
    subvolumes quick-read
end-volume
volume io-threads
    type performance/io-threads
    subvolumes md-cache
end-volume
"""
GANESHA = f"""\
NFS_CORE_PARAM {{
    Protocols = 4; NFS_Port = {NFS_PORT}; Bind_addr = {address(SERVER)}; Enable_NLM = false; Enable_RQUOTA = false;
}}
NFS_KRB5 {{ Active_krb5 = false; CCacheDir = "@private@/ganesha"; }}
NFSV4 {{ Graceless = true; RecoveryRoot = "@private@/ganesha"; }}
EXPORT {{
    Export_Id = 1; Path = {SERVED}; Pseudo = /served; Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
    CLIENT {{ Clients = {SUBNET}; Access_Type = RW; }}
    FSAL {{ Name = VFS; }}
}}
"""  # fmt: skip

#: Lines of the servers' logs that say what is wrong, and how many of them a message has.
ERROR_LINE = re.compile(r"\] [EC] \[|:(CRIT|MAJ|FATAL|EVENT):")
LOG_LINES = 5
#: Runs a command on a host, which must succeed: (number of the host, words).
Run = Callable[[int, list[str]], str]


def missing(kind: str, *, rootless: bool) -> list[str]:
    """Return what keeps a kind of shared folder from being served and mounted here."""
    return {"gluster": missing_for_gluster, "nfs": missing_for_nfs}[kind](rootless=rootless)


def path_of(kind: str, private: Path) -> Path:
    """Return where the hosts mount it."""
    return private / kind


def serve(kind: str, private: Path, run: Run) -> None:
    """Start the server of a kind on node1; `run` runs a command on a host."""
    path_of(kind, private).mkdir(exist_ok=True)
    run(SERVER, ["mkdir", "-p", SERVED])
    if kind == "gluster":
        graph = private / "gluster-server.vol"
        graph.write_text(GLUSTER_SERVER, encoding="utf-8")
        (private / "gluster-client.vol").write_text(GLUSTER_CLIENT, encoding="utf-8")
        log, pid = private / "gluster-server.log", private / "gluster-server.pid"
        _with_log(log, run, SERVER, ["glusterfsd", f"--volfile={graph}", f"--log-file={log}", f"--pid-file={pid}"])
    else:
        settings = private / "ganesha.conf"
        settings.write_text(GANESHA.replace("@private@", str(private)), encoding="utf-8")
        (private / "ganesha").mkdir(exist_ok=True)
        log, pid = private / "ganesha.log", private / "ganesha.pid"
        _with_log(log, run, SERVER, ["ganesha.nfsd", "-f", f"{settings}", "-L", f"{log}", "-p", f"{pid}"])


def mount(kind: str, private: Path, k: int, run: Run) -> None:
    """Mount it on host k, and prove that it is there."""
    where = path_of(kind, private)
    if kind == "gluster":
        graph, log = private / "gluster-client.vol", private / f"gluster-client.{k}.log"
        words = ["glusterfs", f"--volfile={graph}", f"--log-file={log}", "--process-name", "fuse", str(where)]
        _with_log(log, run, k, words)
    else:
        words = ["mount", "-t", "nfs4", "-o", NFS_OPTIONS, f"{address(SERVER)}:/served", str(where)]
        _keep_trying(lambda: run(k, words))
    # A client of GlusterFS goes into the background before it has reached its server.
    probe = f'touch "{where}/.host{k}" && rm "{where}/.host{k}" && mountpoint -q "{where}"'
    _keep_trying(lambda: run(k, ["sh", "-c", probe]))


def _with_log(log: Path, run: Run, k: int, words: list[str]) -> None:
    """Run a command; where it fails, the end of its log is part of the message."""
    try:
        run(k, words)
    except ClusterError as error:
        text = log.read_text("utf-8", errors="replace") if log.exists() else ""
        lines = [line for line in text.splitlines() if ERROR_LINE.search(line)]
        raise ClusterError("\n".join([str(error), *lines[-LOG_LINES:]])) from error


def _keep_trying(step: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + START_S
    while True:
        try:
            step()
        except ClusterError:
            if time.monotonic() > deadline_s:
                raise
            time.sleep(0.1)
        else:
            return
