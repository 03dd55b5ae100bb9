"""GlusterFS volumes: one brick, whole files on four (distribute), pieces on two (shard), coded on three (disperse).

Method. Volumes run without GlusterFS' management daemon, which would keep its state in the machine's /var: servers and
        clients get the graphs that `gluster volume create` of release 10 writes for such volumes, less the features
        that are switched off by default and the keep-alive settings. There is no daemon that heals, either: what a
        brick has missed is healed by the clients that use the file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cluster.network import address
from cluster.served import SERVED, SERVER, Place, lacking_fuse, make_disk

TOOLS = {"glusterfs": "glusterfs-client", "glusterfsd": "glusterfs-server"}
#: Seconds without an answer after which a client gives a server up.
PING_TIMEOUT_S = 42
#: Bytes of a piece where files are cut (GlusterFS' own default is 64 MiB: no test's file would be cut).
SHARD_BYTES = 4 << 20
#: A translator's options; "": none.
Translator = tuple[str, str, str]


def graph(*translators: Translator, below: str = "") -> str:
    """Return the text of translators on top of each other: name, type, options; `below` is under the first."""
    parts = []
    for name, kind, options in translators:
        lines = [f"volume {name}", f"    type {kind}", *(f"    option {line}" for line in options.split("; ") if line)]
        lines += [f"    subvolumes {below}"] if below else []
        parts.append("\n".join([*lines, "end-volume", ""]))
        below = name
    return "".join(parts)


def lacking(rootless: bool) -> list[str]:
    """Return further needs."""
    own = ["root: the server keeps what it knows of files in attributes that user namespaces may not set"]
    return (own if rootless else []) + lacking_fuse()


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A GlusterFS volume.

    Attributes
    ----------
    name : of the kind of shared folder.
    port : of the first brick; the others count on.
    bricks : in turn on node1, node2, …, as far as there are hosts.
    redundancy : bricks that may fail, where files are coded over all bricks (disperse); 0: they are not.
    shard : files are cut in pieces, which are distributed over the bricks.
    """

    name: str
    port: int
    bricks: int = 1
    redundancy: int = 0
    shard: bool = False

    def host_of(self, brick: int, count: int) -> int:
        """Return the number of the host that has a brick (0 is the first)."""
        return SERVER + brick % count

    def folder(self, brick: int) -> str:
        """Return where its host has a brick's files."""
        return f"{SERVED}/{self.name}-{brick}"

    def server_graph(self, brick: int, host: int) -> str:
        """Return the command of a brick's process."""
        index = f"index-base {self.folder(brick)}/.glusterfs/indices; xattrop64-watchlist trusted.ec.dirty"
        indexed = [("index", "features/index", index)] if self.redundancy else []
        transport = f"transport-type tcp; transport.address-family inet; transport.socket.bind-address {address(host)}"
        transport += f"; transport.socket.listen-port {self.port + brick}; auth.addr.brick.allow *"
        return graph(
            ("posix", "storage/posix", f"directory {self.folder(brick)}"),
            ("access-control", "features/access-control", ""),
            ("locks", "features/locks", "enforce-mandatory-lock off"),
            ("leases", "features/leases", "leases off"),
            ("upcall", "features/upcall", "cache-invalidation off"),
            ("io-threads", "performance/io-threads", ""),
            *indexed,
            ("brick", "debug/io-stats", ""),
            ("server", "protocol/server", transport),
        )

    def client_graph(self, count: int) -> str:
        """Return the command of every host's client."""
        texts, names = [], [f"remote-{brick}" for brick in range(self.bricks)]
        for brick, name in enumerate(names):
            where = f"remote-host {address(self.host_of(brick, count))}; remote-port {self.port + brick}"
            options = f"transport-type tcp; transport.address-family inet; {where}; remote-subvolume brick"
            options += f"; ping-timeout {PING_TIMEOUT_S}; strict-locks off; send-gids true"
            texts.append(graph((name, "protocol/client", options)))
        below = " ".join(names)
        if self.redundancy:
            texts.append(graph(("disperse", "cluster/disperse", f"redundancy {self.redundancy}"), below=below))
            below = "disperse"
        cut = [("shard", "features/shard", f"shard-block-size {SHARD_BYTES}")] if self.shard else []
        texts.append(
            graph(
                ("distribute", "cluster/distribute", "lock-migration off; force-migration off"),
                *cut,
                ("utime", "features/utime", "noatime on"),
                ("write-behind", "performance/write-behind", ""),
                ("open-behind", "performance/open-behind", ""),
                ("quick-read", "performance/quick-read", ""),
                ("md-cache", "performance/md-cache", ""),
                ("io-threads", "performance/io-threads", ""),
                below=below,
            )
        )
        return "".join(texts)

    def serve(self, place: Place, k: int) -> None:
        """Start the bricks of host k."""
        for brick in range(self.bricks):
            if self.host_of(brick, place.count) == k:
                self.start_brick(place, brick)

    def start_brick(self, place: Place, brick: int) -> None:
        """Start the process of a brick, on its existing files."""
        k, name = self.host_of(brick, place.count), place.private / f"{self.name}-server-{brick}"
        settings, log = name.with_suffix(".vol"), name.with_suffix(".log")
        own = [f"{self.folder(brick)}/.glusterfs/indices"] if self.redundancy else []  # which only the daemon makes
        make_disk(place, k, SERVED)
        place.run(k, ["mkdir", "-p", self.folder(brick), *own])
        settings.write_text(self.server_graph(brick, k), encoding="utf-8")
        words = ["glusterfsd", f"--volfile={settings}", f"--log-file={log}", f"--pid-file={name.with_suffix('.pid')}"]
        place.logged(log, k, words)

    def mount(self, place: Place, where: Path, k: int) -> None:
        """Start the client of host k, which then waits for the bricks."""
        settings, log = place.private / f"{self.name}-client.vol", place.private / f"{self.name}-client.{k}.log"
        settings.write_text(self.client_graph(place.count), encoding="utf-8")
        words = ["glusterfs", f"--volfile={settings}", f"--log-file={log}", "--process-name", "fuse", str(where)]
        place.logged(log, k, words)


VOLUMES = (
    Volume(name="gluster", port=24007),
    Volume(name="gluster-distribute", port=24037, bricks=4),
    Volume(name="gluster-shard", port=24017, bricks=2, shard=True),
    Volume(name="gluster-disperse", port=24027, bricks=3, redundancy=1),
)
