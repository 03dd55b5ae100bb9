"""Layouts of files on real distributed file systems, and files created with a striping: what servers and clients say.

GlusterFS volumes, CephFS and MooseFS on the cluster of namespaces: docs/reference/layout.md, docs/project/clusters.md.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
from collections.abc import Iterator

import pytest

from cluster import share_gluster
from support import hosts
from support.launch import json_lines
from support.shares import DISTRIBUTED

pytestmark = [pytest.mark.mpi, pytest.mark.both, pytest.mark.slow]

MIB = 1 << 20
LIMIT_S = 60.0
MOUNTINFO, VOLFILE, CEPH = "/proc/self/mountinfo", "volume file .meta/graphs/active/volfile", "xattr ceph.file.layout"
CHUNKS = "protocol: chunks of 64 MiB"
#: What is known of a file, by kind of share: value and source.
FACTS: dict[str, dict[str, tuple[object, str]]] = {
    "gluster": {
        "file_system": ("glusterfs", MOUNTINFO),
        "pattern": ("whole", VOLFILE),
        "servers": (1, "xattr glusterfs.pathinfo"),
    },
    "gluster-shard": {
        "file_system": ("glusterfs", MOUNTINFO),
        "pattern": ("distribute 2,shard,whole", VOLFILE),
        "stripe_size": (share_gluster.SHARD_BYTES, VOLFILE),
        "object_size": (share_gluster.SHARD_BYTES, VOLFILE),
        "servers": (2, VOLFILE),
    },
    "gluster-disperse": {
        "file_system": ("glusterfs", MOUNTINFO),
        "pattern": ("disperse", VOLFILE),
        "redundancy": ("disperse 2+1", VOLFILE),
        "stripe_size": (1024, VOLFILE),
    },
    "cephfs": {
        "file_system": ("ceph", MOUNTINFO),
        "stripe_size": (4 * MIB, CEPH),
        "stripe_count": (1, CEPH),
        "object_size": (4 * MIB, CEPH),
        "pool": ("data", CEPH),
    },
    "moosefs": {
        "file_system": ("moosefs", MOUNTINFO),
        "mount_source": ("mfs#10.77.0.1:9421", MOUNTINFO),
        "stripe_size": (64 * MIB, CHUNKS),
        "object_size": (64 * MIB, CHUNKS),
    },
}
PROGRAM = """
import json, sys
from mpi4py import MPI
path, hints = sys.argv[1], json.loads(sys.argv[2])
world, info = MPI.COMM_WORLD, MPI.Info.Create()
for name, value in hints.items():
    info.Set(name, value)
file = MPI.File.Open(world, path, MPI.MODE_CREATE | MPI.MODE_RDWR, info)
used = file.Get_info()
file.Write_at_all(world.rank * 200_000, bytes([65 + world.rank]) * 200_000)
file.Close()
if world.rank == 0:
    print(json.dumps({name: used.Get(name) for name in ("striping_unit", "striping_factor")}))
"""


@pytest.fixture(scope="module", params=DISTRIBUTED)
def share(request: pytest.FixtureRequest, family: str, extension: str) -> Iterator[tuple[str, hosts.Cluster]]:
    """Bring up two hosts with one kind of file system."""
    hosts.require(request.param)
    with hosts.cluster(2, shares=(request.param,)) as found:
        yield request.param, found


def told(cluster: hosts.Cluster, k: int, path: pathlib.Path) -> dict[str, tuple[object, str]]:
    """Return what `mpiio-ext layout` says of a path on host k: value and source by fact."""
    command = pathlib.Path(sys.prefix) / "bin" / "mpiio-ext"
    (found,) = json.loads(cluster.call(k, [command, "layout", "--json", path], timeout_s=LIMIT_S))
    return {name: (fact["value"], fact["source"]) for name, fact in found["facts"].items()}


def create(
    cluster: hosts.Cluster, path: pathlib.Path, hints: dict[str, str]
) -> tuple[dict[str, str], dict[str, object]]:
    """Write a file on both hosts; return what MPI_File_get_info said of its striping, and the file's statistics."""
    statistics = cluster.folder / f"{path.name}.jsonl"
    env = {"MPIOX_STATS": "1", "MPIOX_STATS_FILE": str(statistics)}
    launch = cluster.run([sys.executable, "-c", PROGRAM, path, json.dumps(hints)], 2, 1, env=env, timeout_s=LIMIT_S)
    lines = json_lines(statistics)
    return json.loads(launch.stdout), next(line for line in lines if line["kind"] == "file")


def test_facts(share: tuple[str, hosts.Cluster]) -> None:
    """Both hosts know the same of a file: the file system's name, its pieces, and who has said it."""
    kind, cluster = share
    path = cluster.of.shares()[kind] / "plain"
    cluster.call(1, ["sh", "-c", f"head -c 10000 /dev/zero > {path}"])
    for k in (1, 2):
        facts = told(cluster, k, path)
        assert {name: facts.get(name) for name in FACTS[kind]} == FACTS[kind]
        assert facts["coherent"][0] in (False, "false")
        folder = told(cluster, k, path.parent)
        assert folder["file_system"] == FACTS[kind]["file_system"]


@pytest.mark.parametrize("share", ["gluster-shard"], indirect=True, scope="module")
def test_sharded_files_are_left_alone(share: tuple[str, hosts.Cluster]) -> None:
    """The bricks have a file's pieces in .shard; another client's size of such a file stays: the MPI library has it."""
    kind, cluster = share
    path = cluster.of.shares()[kind] / "cut"
    cluster.call(1, ["sh", "-c", f"head -c {10 * MIB} /dev/urandom > {path}"])
    (volume,) = (volume for volume in share_gluster.VOLUMES if volume.name == kind)
    pieces = [cluster.call(k, ["ls", f"{volume.folder(k - 1)}/.shard"]).split() for k in (1, 2)]
    assert len([name for names in pieces for name in names if re.search(r"\.[12]$", name)]) == 2, pieces
    for name in ("cut", "new", "folder/new"):
        cluster.call(1, ["mkdir", "-p", path.parent / "folder"])
        _, line = create(cluster, path.parent / name, {"mpiox_coherence": "auto"})
        assert "several nodes may share the file" in str(line["reason"]), line
    _, line = create(cluster, path.parent / "asked", {"mpiox_coherence": "refresh"})
    assert line["collective_writes"], line


@pytest.mark.parametrize("share", ["gluster", "gluster-disperse", "cephfs", "moosefs"], indirect=True, scope="module")
def test_refreshed_by_themselves(share: tuple[str, hosts.Cluster]) -> None:
    """These are known, and their files are the library's between hosts without a hint."""
    kind, cluster = share
    _, line = create(cluster, cluster.of.shares()[kind] / "refreshed", {})
    assert line["collective_writes"] and not line["native_calls"], line


def getfattr(cluster: hosts.Cluster, k: int, path: pathlib.Path) -> dict[str, str]:
    """Return an attribute ceph.file.layout on host k, as the client says it."""
    code = "import os, sys; print(os.getxattr(sys.argv[1], 'ceph.file.layout').decode())"
    return dict(word.split("=") for word in cluster.call(k, [sys.executable, "-S", "-c", code, path]).split())


@pytest.mark.parametrize("share", ["cephfs"], indirect=True, scope="module")
@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        ({"striping_unit": "65536", "striping_factor": "2"}, (65536, 2, 4 * MIB)),
        ({"striping_factor": "3"}, (4 * MIB, 3, 4 * MIB)),
        ({"striping_unit": "196608"}, (196608, 1, 22 * 196608)),  # 4 MiB is no multiple of it
        ({"striping_unit": "1000", "striping_factor": "2"}, None),  # not what CephFS can do: units are of 64 KiB
        ({}, None),
    ],
)
def test_striping(share: tuple[str, hosts.Cluster], hints: dict[str, str], expected: tuple[int, int, int]) -> None:
    """A new file has the striping of the hints where CephFS can have it: for both clients, and in the object stores."""
    kind, cluster = share
    path = cluster.of.shares()[kind] / ("striped" + "".join(f"_{value}" for value in hints.values()))
    info, line = create(cluster, path, hints)
    unit, count, size = expected or (4 * MIB, 1, 4 * MIB)
    for k in (1, 2):
        layout = getfattr(cluster, k, path)
        found = tuple(int(layout[name]) for name in ("stripe_unit", "stripe_count", "object_size"))
        assert found == (unit, count, size)
        facts = told(cluster, k, path)
        names = ("stripe_size", "stripe_count", "object_size")
        assert [facts[name] for name in names] == [(value, CEPH) for value in found]
    if expected:
        assert info == {"striping_unit": str(unit), "striping_factor": str(count)}
    assert line["collective_writes"] and not line["native_calls"], line
    inode = cluster.call(1, ["stat", "-c", "%i", path]).strip()
    listed = cluster.call(1, ["rados", "-c", cluster.private / "ceph.conf", "-p", "data", "ls"]).split()
    objects = [name for name in listed if name.startswith(f"{int(inode):x}.")]
    assert len(objects) == min(count, -(-400_000 // unit)), (objects, "400,000 bytes")
