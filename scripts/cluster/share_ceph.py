"""CephFS: a monitor and a metadata server on node1, an object store (OSD) on each of the first two hosts, FUSE clients.

Method.    A Ceph cluster needs no more for a file system: no manager daemon (so `df` shows no sizes), no keys
           (cephx is switched off). The object stores keep their data in their own memory (memstore), two copies of it
           where there are two hosts: a store may die, and what is written goes on. Files that a program lays out itself
           (the attributes ceph.file.layout.*) are really striped over both.
Guarantee. Nothing of it is outside the hosts' memory and the cluster's private folder. A store that has died has lost
           its data and is filled again from the other; with node1 the file system is lost.
Source.    Ceph's manual deployment (docs.ceph.com, "Manual Deployment" and "Adding/Removing OSDs"), release 16.
"""

from __future__ import annotations

import uuid
from pathlib import Path

from cluster.network import SUBNET, address
from cluster.served import SERVER, Place, lacking_fuse
from cluster.tools import ClusterError

TOOLS = {
    "ceph-mon": "ceph-mon",
    "ceph-osd": "ceph-osd",
    "ceph-mds": "ceph-mds",
    "ceph-fuse": "ceph-fuse",
    "ceph": "ceph-common",
    "ceph-authtool": "ceph-common",
    "monmaptool": "ceph-base",
}
PORT = 3300
OWN = "/dev/shm/ceph"
#: Most object stores, each on a host of its own; their copies of everything.
STORES = 2
#: Bytes that a store takes; of its metadata server's cache, of each client's.
STORE_BYTES, METADATA_BYTES, CLIENT_BYTES = 512 << 20, 128 << 20, 32 << 20
#: Seconds without a sign of life after which a store, or the metadata server, counts as dead: the machine may be busy.
GRACE_S = 60
POOL_OF_DATA, POOL_OF_NAMES = "data", "names"
SETTINGS = f"""\
[global]
fsid = @fsid@
mon host = [v2:{address(SERVER)}:{PORT}]
mon initial members = a
public network = {SUBNET}
auth cluster required = none
auth service required = none
auth client required = none
osd pool default size = @copies@
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon data avail warn = 0
mon data avail crit = 0
run dir = {OWN}/run
crash dir = {OWN}/crash
pid file = {OWN}/run/$name.pid
admin socket = {OWN}/run/$name.asok
log file = @private@/ceph-$name.log
keyring = @private@/ceph.keyring
[mon]
mon data = {OWN}/mon
mds beacon grace = {GRACE_S}
[osd]
osd data = {OWN}/osd.$id
osd objectstore = memstore
memstore device bytes = {STORE_BYTES}
osd heartbeat grace = {GRACE_S}
[mds]
mds data = {OWN}/mds
mds cache memory limit = {METADATA_BYTES}
[client]
admin socket =
client oc size = {CLIENT_BYTES}
"""


def lacking(rootless: bool) -> list[str]:
    """Return further needs."""
    return (["root: its daemons and clients are started as root"] if rootless else []) + lacking_fuse()


def _settings(place: Place) -> Path:
    return place.private / "ceph.conf"


def _run(place: Place, k: int, name: str, *words: str) -> str:
    """Run one of Ceph's commands on host k with this cluster's settings; the log of `name` explains a failure."""
    return place.logged(place.private / f"ceph-{name}.log", k, [words[0], "-c", f"{_settings(place)}", *words[1:]])


def command(place: Place, *words: str) -> str:
    """Run `ceph WORDS` on the monitor's host; its output."""
    return _run(place, SERVER, "mon.a", "ceph", "--connect-timeout", "30", *words)


def serve(place: Place, k: int) -> None:
    """Start the servers of host k."""
    place.run(k, ["mkdir", "-p", f"{OWN}/run", f"{OWN}/crash"])
    if k == SERVER:
        if _settings(place).exists():
            raise ClusterError("node1 had Ceph's monitor: the file system is lost, start the cluster again")
        _start_monitor(place)
    if k <= STORES:
        start_store(place, k)
    if k == SERVER:
        for pool in (POOL_OF_NAMES, POOL_OF_DATA):
            command(place, "osd", "pool", "create", pool, "8")
        command(place, "fs", "new", "shared", POOL_OF_NAMES, POOL_OF_DATA)
        place.run(k, ["mkdir", "-p", f"{OWN}/mds"])
        _run(place, k, "mds.a", "ceph-mds", "-i", "a")


def _start_monitor(place: Place) -> None:
    fsid, keys, monitors = str(uuid.uuid4()), place.private / "ceph.keyring", place.private / "ceph.monmap"
    text = SETTINGS.replace("@fsid@", fsid).replace("@private@", f"{place.private}")
    text = text.replace("@copies@", str(min(STORES, place.count)))
    _settings(place).write_text(text, encoding="utf-8")
    place.run(SERVER, ["mkdir", "-p", f"{OWN}/mon"])
    place.run(SERVER, ["ceph-authtool", "--create-keyring", f"{keys}", "--gen-key", "-n", "mon."])
    where = ["--addv", "a", f"[v2:{address(SERVER)}:{PORT}]"]
    place.run(SERVER, ["monmaptool", "--create", "--fsid", fsid, *where, f"{monitors}"])
    _run(place, SERVER, "mon.a", "ceph-mon", "--mkfs", "-i", "a", "--monmap", f"{monitors}", "--keyring", f"{keys}")
    _run(place, SERVER, "mon.a", "ceph-mon", "-i", "a")


def start_store(place: Place, k: int) -> None:
    """Start the object store of host k, empty: number k - 1."""
    number, name = k - 1, str(uuid.uuid4())
    try:
        command(place, "osd", "new", name, str(number))
    except ClusterError:  # there was one, whose data went with its memory
        command(place, "osd", "destroy", str(number), "--force", "--yes-i-really-mean-it")
        command(place, "osd", "new", name, str(number))
    place.run(k, ["sh", "-c", f"rm -rf {OWN}/osd.{number} && mkdir -p {OWN}/osd.{number}"])
    _run(place, k, f"osd.{number}", "ceph-osd", "-i", str(number), "--mkfs", "--osd-uuid", name)
    _run(place, k, f"osd.{number}", "ceph-osd", "-i", str(number))


def mount(place: Place, where: Path, k: int) -> None:
    """Start the client of host k."""
    log = place.private / f"ceph-client.{k}.log"
    place.logged(log, k, ["ceph-fuse", "-c", f"{_settings(place)}", f"--log-file={log}", str(where)])
