"""mpiio_ext.layout on real GlusterFS: volumes of three bricks, served and mounted by this test."""

from __future__ import annotations

import os
import pathlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from mpiio_ext.layout import Layout, inspect

pytestmark = pytest.mark.slow

MIB = 2**20
BRICKS = 3
LIMIT_S = 30
SERVER = """\
volume posix
    type storage/posix
    option directory {folder}
end-volume
volume locks
    type features/locks
    subvolumes posix
end-volume
volume index
    type features/index
    option index-base {folder}/.glusterfs/indices
    subvolumes locks
end-volume
volume brick
    type debug/io-stats
    subvolumes index
end-volume
volume server
    type protocol/server
    option transport-type tcp
    option transport.address-family inet
    option transport.socket.bind-address 127.0.0.1
    option transport.socket.listen-port {port}
    option auth.addr.brick.allow *
    subvolumes brick
end-volume
"""
CLIENT = """\
volume c{number}
    type protocol/client
    option transport-type tcp
    option transport.address-family inet
    option remote-host 127.0.0.1
    option remote-port {port}
    option remote-subvolume brick
end-volume
"""
CLIENTS = " ".join(f"c{number}" for number in range(BRICKS))
TOP = "volume top\n type features/utime\n subvolumes {below}\nend-volume\n"
DISTRIBUTE = f"volume dht\n type cluster/distribute\n subvolumes {CLIENTS}\nend-volume\n" + TOP.format(below="dht")
REPLICATE = (
    f"volume afr\n type cluster/replicate\n option afr-pending-xattr {CLIENTS.replace(' ', ',')}\n"
    f" subvolumes {CLIENTS}\nend-volume\n" + TOP.format(below="afr")
)
DISPERSE = (
    f"volume ec\n type cluster/disperse\n option redundancy 1\n subvolumes {CLIENTS}\nend-volume\n"
    "volume dht\n type cluster/distribute\n subvolumes ec\nend-volume\n"
    "volume shard\n type features/shard\n option shard-block-size 4MB\n subvolumes dht\nend-volume\n"
    + TOP.format(below="shard")
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(program: str, folder: pathlib.Path, name: str, *more: str) -> int:
    """Start a daemon of GlusterFS; return its process number."""
    pid = folder / f"{name}.pid"
    command = [program, "-f", str(folder / f"{name}.vol"), "-l", str(folder / f"{name}.log"), "-p", str(pid), *more]
    subprocess.run(command, check=True, timeout=LIMIT_S)
    deadline = time.monotonic() + LIMIT_S
    while not (pid.exists() and pid.read_text(encoding="utf-8").strip()):
        assert time.monotonic() < deadline, f"{program} has not started"
        time.sleep(0.05)
    return int(pid.read_text(encoding="utf-8"))


@contextmanager
def mounted(folder: pathlib.Path, graph: str) -> Iterator[pathlib.Path]:
    """Serve three bricks and mount a volume of them; nothing is left behind."""
    running, point = [], folder / "mount"
    point.mkdir()
    clients = ""
    try:
        for number in range(BRICKS):
            brick, port = folder / f"brick{number}", free_port()
            (brick / ".glusterfs" / "indices").mkdir(parents=True)
            (folder / f"server{number}.vol").write_text(SERVER.format(folder=brick, port=port), encoding="utf-8")
            running.append(start("glusterfsd", folder, f"server{number}"))
            clients += CLIENT.format(number=number, port=port)
        (folder / "client.vol").write_text(clients + graph, encoding="utf-8")
        running.append(start("glusterfs", folder, "client", str(point)))
        deadline = time.monotonic() + LIMIT_S
        while not os.path.ismount(point) or not writable(point / "probe"):
            assert time.monotonic() < deadline, "the volume does not serve"
            time.sleep(0.1)
        yield point
    finally:
        subprocess.run(["umount", "-l", str(point)], check=False, timeout=LIMIT_S, capture_output=True)
        for pid in reversed(running):
            with suppress(ProcessLookupError):
                os.kill(pid, 9)


def writable(path: pathlib.Path) -> bool:
    try:
        path.write_bytes(b"x")
    except OSError:
        return False
    return True


def found(tmp_path: pathlib.Path, graph: str) -> tuple[Layout, Layout]:
    """Return what is known of a file on such a volume, and of its folder."""
    if shutil.which("glusterfsd") is None or shutil.which("glusterfs") is None:
        pytest.skip("no GlusterFS (Debian: glusterfs-server)")
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("mounting needs root and /dev/fuse")
    with mounted(tmp_path, graph) as point:
        (point / "file").write_bytes(b"x" * 100)
        return inspect(point / "file"), inspect(point)


def test_distribute(tmp_path: pathlib.Path) -> None:
    """A file is on the one brick that has it."""
    file, folder = found(tmp_path, DISTRIBUTE)
    assert (file.value("file_system"), file.value("mount_type")) == ("glusterfs", "fuse.glusterfs")
    assert (file.value("pattern"), folder.value("pattern")) == ("distribute 3,whole", "distribute 3,whole")
    (part,) = file.components
    (brick,) = [path for path in tmp_path.glob("brick*/file") if path.stat().st_size == 100]
    assert [target.split(":", 1)[1] for target in part.targets] == [str(brick.parent)]
    assert (folder.components, file.source("servers")) == ((), "xattr glusterfs.pathinfo")


def test_replicate(tmp_path: pathlib.Path) -> None:
    file, _ = found(tmp_path, REPLICATE)
    assert (file.value("redundancy"), file.value("servers")) == ("replicate 3", 3)
    (part,) = file.components
    assert sorted(target.split(":", 1)[1] for target in part.targets) == [str(tmp_path / f"brick{i}") for i in range(3)]


def test_disperse_and_shards(tmp_path: pathlib.Path) -> None:
    file, folder = found(tmp_path, DISPERSE)
    for layout in (file, folder):
        assert (layout.value("redundancy"), layout.value("pattern")) == ("disperse 2+1", "shard,disperse")
        assert layout.value("stripe_size") == layout.value("object_size") == 4 * MIB
        assert layout.source("stripe_size") == "volume file .meta/graphs/active/volfile"
