"""Shared folders of the hosts with a client of their own on each: GlusterFS volumes, CephFS, MooseFS, an NFS export.

Problem.   A folder that is bind-mounted into all hosts has one page cache, as a parallel file system with coherent
           caches seems to have. On a distributed file system every node has a cache of its own, and may not see what
           another node has written.
Method.    Servers run on the hosts, over the hosts' network, on folders of their own /dev/shm or in their memory; every
           host, node1 too, mounts the file system at the same path. One file for each system: share_gluster.py,
           share_ceph.py, share_moosefs.py, share_nfs.py.
Guarantee. Servers, clients and mounts are the hosts' and end with them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cluster import share_ceph, share_gluster, share_moosefs, share_nfs
from cluster.needs import lacking_tools
from cluster.served import Place, keep_trying


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of shared folder.

    Attributes
    ----------
    tools : commands that it needs, with Debian's package of each.
    lacking : what else keeps it from being served or mounted; argument: in a user namespace.
    serve : starts those of its servers that run on host k; called for every host in order, and again for a host that is
        brought back.
    mount : mounts it at a path on host k; may return before it can be used.
    """

    tools: dict[str, str]
    lacking: Callable[[bool], list[str]]
    serve: Callable[[Place, int], None]
    mount: Callable[[Place, Path, int], None]


def _gluster(volume: share_gluster.Volume) -> Kind:
    own = share_gluster
    return Kind(tools=own.TOOLS, lacking=own.lacking, serve=volume.serve, mount=volume.mount)


KINDS: dict[str, Kind] = {
    **{volume.name: _gluster(volume) for volume in share_gluster.VOLUMES},
    "cephfs": Kind(tools=share_ceph.TOOLS, lacking=share_ceph.lacking, serve=share_ceph.serve, mount=share_ceph.mount),
    "moosefs": Kind(
        tools=share_moosefs.TOOLS, lacking=share_moosefs.lacking, serve=share_moosefs.serve, mount=share_moosefs.mount
    ),
    "nfs": Kind(tools=share_nfs.TOOLS, lacking=share_nfs.lacking, serve=share_nfs.serve, mount=share_nfs.mount),
}


def missing(kind: str, *, rootless: bool) -> list[str]:
    """Return why a kind of shared folder cannot be served and mounted here."""
    return lacking_tools(KINDS[kind].tools) + KINDS[kind].lacking(rootless)


def path_of(kind: str, private: Path) -> Path:
    """Return where the hosts mount it."""
    return private / kind


def serve(kind: str, place: Place, k: int) -> None:
    """Start the servers of a kind that run on host k."""
    path_of(kind, place.private).mkdir(exist_ok=True)
    KINDS[kind].serve(place, k)


def mount(kind: str, place: Place, k: int) -> None:
    """Mount it on host k, and prove that it is there."""
    where = path_of(kind, place.private)
    KINDS[kind].mount(place, where, k)
    # Clients in user space go into the background before they have reached their servers, and these may have no space
    # to give before all of them know each other.
    own = f"{where}/.host{k}"
    probe = f'mountpoint -q "{where}" && echo up > "{own}" && grep -q up "{own}" && rm "{own}"'
    keep_trying(lambda: place.run(k, ["sh", "-c", probe]))
