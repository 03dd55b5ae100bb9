"""MooseFS: a master on node1, a chunk server on each of the first three hosts, FUSE clients.

Method.    Every file has two copies where there are two hosts: a chunk server may die, and what is written goes on. A
           file is cut in chunks of 64 MiB; which servers have a chunk, the master chooses. Clients wait for what a
           server does not do, but no longer than IO_S, and not for space where there is none: then they fail.
Guarantee. Nothing of it is outside the hosts' memory and the cluster's private folder. With node1 the file system is
           lost.
Source.    The manual pages of MooseFS 3 (mfsmaster.cfg, mfschunkserver.cfg, mfshdd.cfg, mfsmount).
"""

from __future__ import annotations

from pathlib import Path

from cluster.network import SUBNET, address
from cluster.served import SERVER, Place, lacking_fuse, make_disk
from cluster.tools import ClusterError

TOOLS = {
    "mfsmaster": "moosefs-master",
    "mfschunkserver": "moosefs-chunkserver",
    "mfsmount": "moosefs-client",
    "mfssetgoal": "moosefs-client",
}
#: As it is installed: the metadata of an empty file system.
EMPTY = Path("/var/lib/mfs/metadata.mfs.empty")
OWN = "/dev/shm/moosefs"
DISK = f"{OWN}/chunks"
#: Most chunk servers, each on a host of its own; copies of every file.
SERVERS, COPIES = 3, 2
#: Space of a chunk server.
SPACE = "1GiB"
#: Seconds until a client reports an error for a request without an answer.
IO_S = 30
#: Of both daemons: as any other process, and their memory is the machine's.
COMMON = "WORKING_USER = root\nWORKING_GROUP = root\nNICE_LEVEL = 0\nDISABLE_OOM_KILLER = 0\n"
MASTER = f"""{COMMON}
DATA_PATH = {OWN}/master
EXPORTS_FILENAME = @private@/mfsexports.cfg
TOPOLOGY_FILENAME = @private@/mfstopology.cfg
MATOCL_LISTEN_HOST = {address(SERVER)}
MATOCS_LISTEN_HOST = {address(SERVER)}
MATOML_LISTEN_HOST = {address(SERVER)}
REPLICATIONS_DELAY_INIT = 5
CHUNKS_LOOP_MIN_TIME = 60
"""
CHUNK_SERVER = f"""{COMMON}
DATA_PATH = {OWN}/server
HDD_CONF_FILENAME = @private@/mfshdd.cfg
HDD_LEAVE_SPACE_DEFAULT = 1MiB
MASTER_HOST = {address(SERVER)}
MASTER_RECONNECTION_DELAY = 1
BIND_HOST = @address@
CSSERV_LISTEN_HOST = @address@
"""
#: Of every host's mount: small caches, errors in place of waiting without end.
OPTIONS = f"mfsmaster={address(SERVER)},mfsnice=0,mfsallowoomkiller,mfswritecachesize=32,mfsreadaheadsize=32"
OPTIONS += f",mfserroronnospace,mfstimeout={IO_S}"


def lacking(rootless: bool) -> list[str]:
    """Return further needs."""
    found = ["root: its daemons and clients are started as root"] if rootless else []
    return found + ([] if EMPTY.exists() else [f"{EMPTY} (Debian: apt-get install moosefs-master)"]) + lacking_fuse()


def _settings(place: Place, name: str, text: str) -> Path:
    path = place.private / name
    path.write_text(text.replace("@private@", str(place.private)), encoding="utf-8")
    return path


def serve(place: Place, k: int) -> None:
    """Start the servers of host k."""
    if k == SERVER:
        if (place.private / "mfsmaster.cfg").exists():
            raise ClusterError("node1 had MooseFS' master: the file system is lost, start the cluster again")
        _settings(place, "mfsexports.cfg", f"{SUBNET} / rw,alldirs,admin,maproot=0:0\n")
        _settings(place, "mfstopology.cfg", "")
        _settings(place, "mfshdd.cfg", f"{DISK} {SPACE}\n")
        settings = _settings(place, "mfsmaster.cfg", MASTER)
        place.run(k, ["sh", "-c", f"mkdir -p {OWN}/master && cp {EMPTY} {OWN}/master/metadata.mfs"])
        place.run(k, ["mfsmaster", "-c", f"{settings}", "start"])
    if k <= SERVERS:
        start_chunk_server(place, k)


def start_chunk_server(place: Place, k: int) -> None:
    """Start the chunk server of host k, on its existing chunks."""
    text = CHUNK_SERVER.replace("@address@", address(k))
    settings = _settings(place, f"mfschunkserver.{k}.cfg", text)
    place.run(k, ["mkdir", "-p", f"{OWN}/server"])
    make_disk(place, k, DISK)
    place.run(k, ["mfschunkserver", "-c", f"{settings}", "start"])


def mount(place: Place, where: Path, k: int) -> None:
    """Mount it on host k; the first host also sets how many copies there are, when all servers have come."""
    place.run(k, ["mfsmount", "-o", f"{OPTIONS},mfsbind={address(k)}", str(where)])
    if k == SERVER:
        place.run(k, ["mfssetgoal", str(min(COPIES, place.count)), str(where)])
