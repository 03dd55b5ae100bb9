"""An NFS export: nfs-ganesha on node1, the kernel's NFS 4.1 client on every host."""

from __future__ import annotations

from pathlib import Path

from cluster.network import SUBNET, address
from cluster.served import SERVED, SERVER, Place, keep_trying

TOOLS = {"ganesha.nfsd": "nfs-ganesha", "mount.nfs4": "nfs-common"}
PORT = 2049
#: Options of every host's mount: version 4.1 over TCP, attributes cached as by default.
OPTIONS = f"vers=4.1,proto=tcp,port={PORT},hard"
SETTINGS = f"""\
NFS_CORE_PARAM {{
    Protocols = 4; NFS_Port = {PORT}; Bind_addr = {address(SERVER)}; Enable_NLM = false; Enable_RQUOTA = false;
}}
NFS_KRB5 {{ Active_krb5 = false; CCacheDir = "@private@/ganesha"; }}
NFSV4 {{ Graceless = true; RecoveryRoot = "@private@/ganesha"; }}
EXPORT {{
    Export_Id = 1; Path = {SERVED}; Pseudo = /served; Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
    CLIENT {{ Clients = {SUBNET}; Access_Type = RW; }}
    FSAL {{ Name = VFS; }}
}}
"""


def lacking(rootless: bool) -> list[str]:
    """Return further needs."""
    found = []
    known = Path("/proc/filesystems").read_text(encoding="ascii").split()
    if "nfs4" not in known and "nfs" not in known:
        found.append("a kernel with an NFS client (CONFIG_NFS_V4, or the module nfsv4)")
    if rootless:
        found.append("root: NFS cannot be mounted in a user namespace")
    return found


def serve(place: Place, k: int) -> None:
    """Start the server on node1."""
    if k != SERVER:
        return
    place.run(k, ["mkdir", "-p", SERVED])
    settings, own = place.private / "ganesha.conf", place.private / "ganesha"
    settings.write_text(SETTINGS.replace("@private@", str(place.private)), encoding="utf-8")
    own.mkdir(exist_ok=True)
    log, pid = place.private / "ganesha.log", place.private / "ganesha.pid"
    place.logged(log, k, ["ganesha.nfsd", "-f", f"{settings}", "-L", f"{log}", "-p", f"{pid}"])


def mount(place: Place, where: Path, k: int) -> None:
    """Mount the export; the server may still be starting."""
    words = ["mount", "-t", "nfs4", "-o", OPTIONS, f"{address(SERVER)}:/served", str(where)]
    keep_trying(lambda: place.run(k, words))
